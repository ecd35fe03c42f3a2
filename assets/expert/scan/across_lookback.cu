// Over the warps, then over the chunks before: the first warp looks back, 32 of them at a time,
// until it meets one that knows the total up to its own end.
if (${lane} == 31)
    ${totals}[${warp}] = ${total};
__syncthreads();
const ${type} ${sums} = ${warp_scan}(${lane} < ${warps} ? ${totals}[${lane}] : ${identity});
const ${type} ${earlier} = __shfl_sync(0xffffffffu, ${sums}, max(${warp} - 1, 0));
if (${warp} == 0) {
    const ${type} ${all} = __shfl_sync(0xffffffffu, ${sums}, ${last_warp});
    if (${lane} == 0)
        cp_publish(${states} + ${tile}, ${tile} == 0 ? cp_upto : cp_total, ${all});
    for (int ${nearest} = ${tile} - 1; ${nearest} >= 0; ${nearest} -= 32) {
        long long ${seen} = cp_upto;
        do {
            if (${nearest} - ${lane} >= 0)
                ${seen} = cp_observe(${states} + ${nearest} - ${lane});
        } while (__any_sync(0xffffffffu, ${seen} < cp_total));
        const unsigned ${known} = __ballot_sync(
            0xffffffffu, ${seen} >= cp_upto && ${nearest} - ${lane} >= 0);
        const int ${reach} = ${known} ? __ffs(${known}) - 1 : min(${nearest}, 31);
        ${type} ${part} = ${lane} <= ${reach} ? __uint_as_float((unsigned)${seen}) : ${identity};
#pragma unroll
        for (int ${d} = 16; ${d} > 0; ${d} /= 2)
            ${part} = ${combine}(__shfl_xor_sync(0xffffffffu, ${part}, ${d}), ${part});
        ${carry} = ${combine}(${part}, ${carry});
        if (${known})
            break;
    }
    if (${lane} == 0) {
        if (${tile} > 0)
            cp_publish(${states} + ${tile}, cp_upto, ${combine}(${carry}, ${all}));
        ${ahead} = ${carry};
    }
}
__syncthreads();
${carry} = ${ahead};
const ${type} ${offset} = ${warp} == 0 ? ${carry} : ${combine}(${carry}, ${earlier});
