// Over the warps. Chunks take turns with two sets of totals, so one barrier is enough.
if (${lane} == 31)
    ${totals}[${turn}][${warp}] = ${total};
__syncthreads();
const ${type} ${sums} = ${warp_scan}(${lane} < ${warps} ? ${totals}[${turn}][${lane}] : ${identity});
const ${type} ${earlier} = __shfl_sync(0xffffffffu, ${sums}, max(${warp} - 1, 0));
const ${type} ${offset} = ${warp} == 0 ? ${carry} : ${combine}(${carry}, ${earlier});
