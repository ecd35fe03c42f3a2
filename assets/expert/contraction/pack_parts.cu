// ${tensor} as rows along k, each number as two f16 numbers: what the first one leaves is in the
// second, times 2^11. A tile of ${rows} x 64 is scaled by a power of two, so that its largest number
// is near f16's largest; the exponent is kept. Where then a number is below f16's normal ones, or some
// number is not finite, it is GEMM_WIDE, and the tile has no such parts.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, __half *__restrict__ ${packed}, int *__restrict__ ${shift}) {
    __shared__ float tile[${rows}][65];
    __shared__ unsigned most_of[8], least_of[8];
    const int tid = threadIdx.x, k_tiles = (${depth} + 63) / 64, k_tile = (int)(blockIdx.x % k_tiles);
    const int row_tiles = (int)((${total} + (${rows} - 1)) / ${rows}), k0 = k_tile * 64;
    const int row_tile = (int)(blockIdx.x / k_tiles % row_tiles);
    const ${index} slab = blockIdx.x / k_tiles / row_tiles, first = (${index})row_tile * ${rows};
    ${decode_batch}
    unsigned most = 0, least = 0xffffffffu; // bits of magnitudes; of the least one less 1, 0 last
#pragma unroll 16
    for (int turn = 0; turn < ${turns}; turn++) {
        ${decode}
        const bool exists = ${exists};
        const float value = exists ? ${value} : 0.0f;
        tile[${row}][${col}] = value;
        most = max(most, __float_as_uint(value) & 0x7fffffffu);
        least = min(least, (__float_as_uint(value) & 0x7fffffffu) - 1u);
    }
    most = __reduce_max_sync(0xffffffffu, most);
    least = __reduce_min_sync(0xffffffffu, least);
    if (tid % 32 == 0) {
        most_of[tid / 32] = most;
        least_of[tid / 32] = least;
    }
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < 8; warp++) {
        most = max(most, most_of[warp]);
        least = min(least, least_of[warp]);
    }
    // Magnitudes below 2^15 when scaled, and none below 2^-14 but 0.
    const int top = (int)(most >> 23), exponent = most ? 14 + 127 - top : 0;
    const bool fits =
        most == 0 || (abs(exponent) <= 60 && (int)((least + 1u) >> 23) >= top - 28);
    if (tid == 0)
        ${shift}[(slab * k_tiles + k_tile) * row_tiles + row_tile] = fits ? exponent : GEMM_WIDE;
    if (!fits)
        return;
    const float factor = __uint_as_float((unsigned)(127 + exponent) << 23);
#pragma unroll
    for (int piece = tid; piece < ${rows} * 8; piece += 256) {
        const ${index} at = first + piece / 8;
        const int column = piece % 8 * 8;
        if (at >= ${total} || k0 + column >= ${pitch})
            continue;
        alignas(16) __half2 high[4], low[4];
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            const float even = tile[piece / 8][column + 2 * pair] * factor;
            const float odd = tile[piece / 8][column + 2 * pair + 1] * factor;
            high[pair] = __floats2half2_rn(even, odd);
            low[pair] = __floats2half2_rn((even - __low2float(high[pair])) * 2048.0f,
                                          (odd - __high2float(high[pair])) * 2048.0f);
        }
        __half *const to = ${packed} + (2ll * slab * ${total} + at) * ${pitch} + k0 + column;
        *(uint4 *)to = *(const uint4 *)high;
        *(uint4 *)(to + (long long)${total} * ${pitch}) = *(const uint4 *)low;
    }
}

