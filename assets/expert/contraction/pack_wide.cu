// ${tensor} once more, each number as three bf16 numbers, for those tiles of k where some number is
// none for f16 (of any operand: all that is multiplied with it is needed in this form too).
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, ${shift_parameters}__nv_bfloat16 *__restrict__ ${packed}) {
    __shared__ float tile[${rows}][65];
    const int tid = threadIdx.x, k_tiles = (${depth} + 63) / 64, k_tile = (int)(blockIdx.x % k_tiles);
    const int row_tiles = (int)((${total} + (${rows} - 1)) / ${rows}), k0 = k_tile * 64;
    const int groups = (row_tiles + 7) / 8, group = (int)(blockIdx.x / k_tiles % groups);
    const ${index} slab = blockIdx.x / k_tiles / groups;
    bool needed = false;
    //% each shifts
    for (int at = tid; at < ${count}; at += 256)
        needed |= gemm_is_wide(${shift}[${shift_at}]);
    //% end
    if (!__syncthreads_or(needed))
        return;
    ${decode_batch}
    const int last_tile = min(group * 8 + 8, row_tiles);
    for (int row_tile = group * 8; row_tile < last_tile; row_tile++) {
        const ${index} first = (${index})row_tile * ${rows};
#pragma unroll 16
        for (int turn = 0; turn < ${turns}; turn++) {
            ${decode}
            const bool exists = ${exists};
            tile[${row}][${col}] = exists ? ${value} : 0.0f;
        }
        __syncthreads();
        for (int piece = tid; piece < ${rows} * 8; piece += 256) {
            const ${index} at = first + piece / 8;
            const int column = piece % 8 * 8;
            if (at >= ${total} || k0 + column >= ${pitch})
                continue;
            // 24 bits as three times 8: the first part is cut off, which cannot overflow, what is
            // left rounded.
            alignas(16) __nv_bfloat16 part[3][8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float value = tile[piece / 8][column + i];
                const float big = __uint_as_float(__float_as_uint(value) & 0xffff0000u);
                part[0][i] = __float2bfloat16_rn(big);
                part[1][i] = __float2bfloat16_rn(value - big);
                part[2][i] = __float2bfloat16_rn(value - big - __bfloat162float(part[1][i]));
            }
            __nv_bfloat16 *const to = ${packed} + (3ll * slab * ${total} + at) * ${pitch} + k0 + column;
#pragma unroll
            for (int p = 0; p < 3; p++)
                *(uint4 *)(to + (long long)p * ${total} * ${pitch}) = *(const uint4 *)part[p];
        }
        __syncthreads();
    }
}

