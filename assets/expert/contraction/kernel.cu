${comment}
extern "C" __global__ void __launch_bounds__(${threads}, 1)
    ${kernel}(${parameters}) {
    using ${tiles} = ${config};
    ${shared}
    const int ${tid} = threadIdx.x;
    ${position}
    ${range}
    ${loaders}
    ${product}
    ${results}
    for (int ${col} = ${tid} % ${across}; ${col} < ${cols}; ${col} += ${across}) {
        ${decode_n}
#pragma unroll 4
        for (int ${row} = ${tid} / ${across}; ${row} < ${rows}; ${row} += ${down}) {
            ${decode_m}
            ${accumulators}
            ${finish}
        }
    }
}

