// ${definitions}
// by ${how}.
extern "C" __global__ void __launch_bounds__(${block}, ${blocks})
    ${kernel}(${parameters}) {
    using Tiles = ${tiles};
    //% if alignment
    extern __shared__ __align__(128) unsigned char bytes[];
    unsigned char *const smem = bytes + (-(unsigned)__cvta_generic_to_shared(bytes) % ${alignment});
    //% else
    extern __shared__ __align__(128) unsigned char smem[];
    //% end
    const int tid = threadIdx.x;
    ${schedule}
    //% each operands
    ${loader}
    //% end
    ${main_loop}<Tiles>(
        smem, k_begin, k_end,
        [&](${load_parameters}) {
            //% each operands
            ${load}
            //% end
        },
        //% if shifts
        [&](int k0, int (&exponents_m)[Tiles::NA], int (&exponents_n)[Tiles::NB]) {
            //% each operands
            ${shift}
            //% end
        },
        //% end
        //% if keeps
        [&](int stage) {
            //% each operands
            ${keep}
            //% end
        },
        //% end
        ${sink});
    //% if producers
    if (tid >= ${threads})
        return; // producer warps exit here
    //% end
    ${results}
    ${schedule_end}
}

