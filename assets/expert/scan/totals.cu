// Totals of the ${split} parts of each row.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    __shared__ ${type} totals[${warps}];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int row = blockIdx.x / ${split};
    const int part = blockIdx.x % ${split};
    const ${index} begin = part * ${length};
    const ${index} end = min(begin + ${length}, ${extent});
//% if writes_parts
    ${type} *totals_of_parts = (${type} *)memory_of_parts;
//% end
//% if reads_parts
    const ${type} *totals_of_parts = (const ${type} *)memory_of_parts;
//% end
    ${coordinates}
    const int first = ${vector} * ${width};
    ${type} sum[${width}];
#pragma unroll
    for (int elem = 0; elem < ${width}; elem++)
        sum[elem] = ${identity};
//% each streams
    cp_pack<${element_type}, ${width}> ${now}[${items}];
//% end
    for (${index} chunk = begin; chunk < end; chunk += ${chunk_size}) {
//% if streams
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} position = chunk + first + item * ${step};
            if (position < end) {
//% each streams
                ${now}[item] = cp_load<${width}>(${from} + ${offset});
//% end
            }
        }
//% end
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} position = chunk + first + item * ${step};
#pragma unroll
            for (int elem = 0; elem < ${width}; elem++)
                sum[elem] = ${combine}(sum[elem], ${term});
        }
    }
    ${type} total = sum[0];
#pragma unroll
    for (int elem = 1; elem < ${width}; elem++)
        total = ${combine}(total, sum[elem]);
    total = ${warp_scan}(total);
    if (lane == 31)
        totals[warp] = total;
    __syncthreads();
    if (warp > 0)
        return;
    total = ${warp_scan}(lane < ${warps} ? totals[lane] : ${identity});
    if (lane == 31)
        totals_of_parts[blockIdx.x] = total;
}

