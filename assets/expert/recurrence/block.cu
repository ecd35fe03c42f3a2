// ${definition}: a block for all lines that read each other${where}, a barrier after each let of a step.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
//% if shared
    extern __shared__ __align__(16) unsigned char step_memory[];
//% each kept
    ${type} *const ${name} = reinterpret_cast<${type} *>(${start});
//% end
//% end
//% if warp
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
//% end
    ${coordinates}
    for (${index} step = 0; step < ${steps}; step++) {
        const ${index} ${axis} = ${place};
        ${body}
    }
}

