// ${tensor} as rows along k, ${what}.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, ${type} *__restrict__ ${packed}) {
    __shared__ ${element} tile[32][${width}];
    const int tid = threadIdx.x, k0 = (int)(blockIdx.x % ((${pitch} + 31) / 32)) * 32;
    const ${index} slab = blockIdx.x / ((${pitch} + 31) / 32) / ((${total} + 31) / 32);
    const ${index} first =
        (${index})(blockIdx.x / ((${pitch} + 31) / 32) % ((${total} + 31) / 32)) * 32;
    ${decode_batch}
#pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        ${decode}
        const bool exists = ${exists};
        tile[${row}][${col}] = exists ? ${value} : ${zero};
    }
    __syncthreads();
#pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        const ${index} at = first + turn * 8 + tid / 32;
        if (at < ${total} && k0 + tid % 32 < ${pitch}) {
            //% if splits
            // 24 bits as three times 8: the first part is cut off, which cannot overflow, what is
            // left rounded.
            const float value = tile[turn * 8 + tid / 32][tid % 32];
            const float big = __uint_as_float(__float_as_uint(value) & 0xffff0000u);
            const float middle = __bfloat162float(__float2bfloat16_rn(value - big));
            __nv_bfloat16 *const to =
                ${packed} + (3ll * slab * ${total} + at) * ${pitch} + k0 + tid % 32;
            to[0] = __float2bfloat16_rn(big);
            to[(long long)${total} * ${pitch}] = __float2bfloat16_rn(middle);
            to[2ll * ${total} * ${pitch}] = __float2bfloat16_rn(value - big - middle);
            //% else
            ${packed}[(slab * ${total} + at) * ${pitch} + k0 + tid % 32] =
                tile[turn * 8 + tid / 32][tid % 32];
            //% end
        }
    }
}

