// ${tensor}, ${rows} x ${row} of it, one element a copy. A place is the sum of a thread's own part
// and one of k's, which each lane computes for one k and hands to the others.
//% if before
${before}
//% end
//% if offset
const float *const from_${name} = ${pointer} + (${offset});
//% end
//% each tested
const int tested${number}_${name} = ${own};
//% end
const int base_${name} = ${base};
auto load_${name} = [&](int stage, int k0) {
    float *const to = (float *)(smem + stage * Tiles::STAGE + ${tile_at});
    int places[${parts}];
    //% if shift
    int shifts[${parts}];
    //% end
#pragma unroll
    for (int turn = 0; turn < ${parts}; turn++) {
        ${decode_k}
        places[turn] = ${flat_k} < k_end ? (int)(${by_k}) : INT_MIN;
        //% if shift
        shifts[turn] = ${shift};
        //% end
    }
#pragma unroll
    for (int turn = 0; turn < ${turns}; turn++) {
        const int by_k = __shfl_sync(0xffffffff, places[turn * ${step} / 32],
                                     turn * ${step} % 32 + tid / ${along});
        //% if shift
        const int shift_k = __shfl_sync(0xffffffff, shifts[turn * ${step} / 32],
                                        turn * ${step} % 32 + tid / ${along});
        //% end
        const bool exists = ${exists};
        gemm_copy4(to + Tiles::${place}(${tile_row}, ${tile_col}),
                   ${from} + (exists ? base_${name} + by_k : 0), exists);
    }
};
