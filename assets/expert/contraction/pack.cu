// ${tensor} as rows along k, ${what}.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, ${type} *__restrict__ ${packed}) {
    __shared__ ${element} ${tile}[32][${width}];
    const int ${tid} = threadIdx.x, ${k0} = (int)(blockIdx.x % ((${pitch} + 31) / 32)) * 32;
    const ${index} ${slab} = blockIdx.x / ((${pitch} + 31) / 32) / ((${total} + 31) / 32);
    const ${index} ${first} =
        (${index})(blockIdx.x / ((${pitch} + 31) / 32) % ((${total} + 31) / 32)) * 32;
    ${batch}
#pragma unroll
    for (int ${i} = 0; ${i} < 4; ${i}++) {
        ${decode}
        const bool ${exists} = ${test};
        ${tile}[${row}][${col}] = ${exists} ? ${value} : ${zero};
    }
    __syncthreads();
#pragma unroll
    for (int ${i} = 0; ${i} < 4; ${i}++) {
        const ${index} ${at} = ${first} + ${i} * 8 + ${tid} / 32;
        if (${at} < ${total} && ${k0} + ${tid} % 32 < ${pitch}) {
            ${store}
        }
    }
}

