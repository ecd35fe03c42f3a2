// ${rows} queries of one head, all their keys tile by tile: scores and weights stay in registers.
// Each row carries its largest score so far and rescales what it has summed when that grows.
extern "C" __global__ void __launch_bounds__(${threads})
    ${kernel}(${params}) {
    constexpr int kRows = ${rows}; // queries of a block, 16 a warp
    constexpr int kKeys = ${keys}; // keys and values of a tile
    constexpr int kStages = ${stages}; // tiles on their way or in use
    constexpr int kDim = ${dim}; // head size, rounded up to 16: what is beyond the task's is zero
    constexpr int kPitch = kDim + 8; // of a row in shared memory: ldmatrix without conflicts
    constexpr int kThreads = 2 * kRows;
    extern __shared__ __align__(16) ${type} shared_${mma}[];
    ${type} *queries = shared_${mma}, *keys = queries + kRows * kPitch,
           *values = keys + kStages * kKeys * kPitch;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    ${coordinates}
    const int first = ${block} * kRows, last = min(first + kRows, ${nrows}) - 1;
    const int key_begin = ${begin}, key_end = (${end} + kKeys - 1) / kKeys;
    const ${type} *query_rows = ${q} + ${q_base};
    const ${type} *key_rows = ${k} + ${k_base};
    const ${type} *value_rows = ${v} + ${v_base};

    cp_load_rows<kRows, kDim, kThreads>(queries, query_rows, ${q_stride}, first, ${nrows}, ${size});
    for (int stage = 0; stage < kStages - 1; stage++) {
        if (key_begin + stage < key_end) {
            const int at = (key_begin + stage) * kKeys, slot = stage * kKeys * kPitch;
            cp_load_rows<kKeys, kDim, kThreads>(keys + slot, key_rows, ${k_stride}, at, ${nkeys}, ${size});
            cp_load_rows<kKeys, kDim, kThreads>(values + slot, value_rows, ${v_stride}, at, ${nkeys}, ${size});
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

//% if divisor
    const float inverse = 1.0f / (${divisor});
//% end
    float mixed[kDim / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, norm[2] = {0.0f, 0.0f};
    for (int tile = key_begin; tile < key_end; tile++) {
        const int ahead = tile + kStages - 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
        __syncthreads(); // the tile is there, and everybody is done with the one before
        if (ahead < key_end) {
            const int slot = (ahead - key_begin) % kStages * kKeys * kPitch;
            cp_load_rows<kKeys, kDim, kThreads>(keys + slot, key_rows, ${k_stride}, ahead * kKeys, ${nkeys}, ${size});
            cp_load_rows<kKeys, kDim, kThreads>(values + slot, value_rows, ${v_stride}, ahead * kKeys, ${nkeys}, ${size});
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        const ${type} *key_tile = keys + (tile - key_begin) % kStages * kKeys * kPitch;
        const ${type} *value_tile = values + (tile - key_begin) % kStages * kKeys * kPitch;

        float score[kKeys / 8][4] = {};
#pragma unroll
        for (int depth = 0; depth < kDim; depth += 16) {
            unsigned left[4], right[4];
            cp_load_matrices(left, queries + (warp * 16 + lane % 16) * kPitch + depth + lane / 16 * 8);
#pragma unroll
            for (int group = 0; group < kKeys; group += 16) {
                cp_load_matrices(right, key_tile + (group + lane / 16 * 8 + lane % 8) * kPitch + depth + lane / 8 % 2 * 8);
                cp_multiply_${mma}(score[group / 8], left, right[0], right[1]);
                cp_multiply_${mma}(score[group / 8 + 1], left, right[2], right[3]);
            }
        }

        float peak[2] = {top[0], top[1]};
        // Most tiles count as a whole, for all rows of the warp: no key is looked at there.
        if (${whole}) {
#pragma unroll
            for (int group = 0; group < kKeys / 8; group++)
#pragma unroll
                for (int elem = 0; elem < 4; elem++) {
                    const int ${row} = first + warp * 16 + lane / 4 + elem / 2 * 8;
                    const int ${key} = tile * kKeys + group * 8 + lane % 4 * 2 + elem % 2;
                    const float raw = score[group][elem];
                    score[group][elem] = ${f};
                }
        } else {
#pragma unroll
            for (int group = 0; group < kKeys / 8; group++)
#pragma unroll
                for (int elem = 0; elem < 4; elem++) {
                    const int ${row} = first + warp * 16 + lane / 4 + elem / 2 * 8;
                    const int ${key} = tile * kKeys + group * 8 + lane % 4 * 2 + elem % 2;
                    const float raw = score[group][elem];
                    score[group][elem] = ${selected} ? ${f} : -INFINITY;
                }
        }
#pragma unroll
        for (int group = 0; group < kKeys / 8; group++)
#pragma unroll
            for (int elem = 0; elem < 4; elem++)
                peak[elem / 2] = fmaxf(peak[elem / 2], score[group][elem]);
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            peak[pair] = fmaxf(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 1));
            peak[pair] = fmaxf(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 2));
            // Of a row without a key so far, and of one whose scores are all minus infinity.
            const float base = peak[pair] == -INFINITY ? 0.0f : peak[pair];
            const float shrink = exp2f((top[pair] - base) * 1.44269504f);
            top[pair] = peak[pair];
            peak[pair] = base;
            norm[pair] *= shrink;
#pragma unroll
            for (int group = 0; group < kDim / 8; group++) {
                mixed[group][2 * pair] *= shrink;
                mixed[group][2 * pair + 1] *= shrink;
            }
        }
#pragma unroll
        for (int group = 0; group < kKeys / 8; group++)
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
//% if half
                // 2^15 times as large: a half has few exponents below 1.
                score[group][elem] = exp2f((score[group][elem] - peak[elem / 2]) * 1.44269504f + 15.0f);
//% else
                score[group][elem] = exp2f((score[group][elem] - peak[elem / 2]) * 1.44269504f);
//% end
                norm[elem / 2] += score[group][elem];
            }

#pragma unroll
        for (int from = 0; from < kKeys; from += 16) {
            const float(&low)[4] = score[from / 8], (&high)[4] = score[from / 8 + 1];
            const unsigned left[4] = {cp_pair_${mma}(low[0], low[1]), cp_pair_${mma}(low[2], low[3]),
                                   cp_pair_${mma}(high[0], high[1]), cp_pair_${mma}(high[2], high[3])};
#pragma unroll
            for (int depth = 0; depth < kDim; depth += 16) {
                unsigned right[4];
                cp_load_transposed(right, value_tile + (from + lane % 16) * kPitch + depth + lane / 16 * 8);
                cp_multiply_${mma}(mixed[depth / 8], left, right[0], right[1]);
                cp_multiply_${mma}(mixed[depth / 8 + 1], left, right[2], right[3]);
            }
        }
    }

#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        norm[pair] += __shfl_xor_sync(0xffffffffu, norm[pair], 1);
        norm[pair] += __shfl_xor_sync(0xffffffffu, norm[pair], 2);
    }
//% if half
    for (int group = 0; group < kDim / 8; group++)
        for (int elem = 0; elem < 4; elem++)
            mixed[group][elem] *= 0x1p-15f;
    for (int pair = 0; pair < 2; pair++)
        norm[pair] *= 0x1p-15f;
//% end
#pragma unroll
    for (int group = 0; group < kDim / 8; group++)
#pragma unroll
        for (int elem = 0; elem < 4; elem++) {
            const int ${row} = first + warp * 16 + lane / 4 + elem / 2 * 8;
            const int column = group * 8 + lane % 4 * 2 + elem % 2;
            if (${row} >= ${nrows} || column >= ${size})
                continue;
//% each stores
            ${to}[${place}] = ${packed};
//% end
        }
}
