// ${tensor} with its channels innermost, at all positions that windows reach: zero beyond the edges,
// ${what}.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, ${type} *__restrict__ ${packed}) {
    // 64 positions by ${chunk} channels, read one way and written the other.
    __shared__ ${type} tile[64][${width}];
    const int tid = threadIdx.x, plane = (int)${plane}, padded = (int)${pitch};
    const int chunks = (padded + ${last}) / ${chunk}, runs = (plane + 63) / 64;
    const int first_channel = (int)(blockIdx.x % chunks) * ${chunk};
    const int first = (int)(blockIdx.x / chunks % runs) * 64;
    const ${index} slab = blockIdx.x / chunks / runs;
    ${decode_slab}
#pragma unroll ${unroll}
    for (int turn = 0; turn < ${turns}; turn++) {
        const int row = ${row}, col = ${col};
        const int position = first + row, channel = first_channel + col;
        ${decode_position}
        ${decode_channel}
        const bool exists = position < plane && channel < ${channels}${exists};
        tile[row][col] = exists ? ${value} : ${zero};
    }
    __syncthreads();
    for (int piece = tid; piece < 64 * 8; piece += 256) {
        const int row = piece / 8, col = piece % 8 * ${vector};
        if (first + row < plane && first_channel + col < padded) {
            alignas(16) ${type} values[${vector}];
#pragma unroll
            for (int element = 0; element < ${vector}; element++)
                values[element] = tile[row][col + element];
            *(uint4 *)(${packed} + ((long long)slab * plane + first + row) * padded + first_channel +
                       col) = *(const uint4 *)values;
        }
    }
}

