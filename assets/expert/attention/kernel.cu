// ${rows} queries of one head, their keys tile by tile: scores and weights stay in registers. Each
// row carries its largest score so far and rescales what it has summed when that grows.
extern "C" __global__ void __launch_bounds__(${threads})
    ${kernel}(${params}) {
    constexpr int kRows = ${rows}; // queries of a block, 16 a warp
    constexpr int kKeys = ${keys}; // keys and values of a tile
    constexpr int kStages = ${stages}; // tiles on their way or in use
    // Head sizes of keys and of values, rounded up to 16: what is beyond the task's is zero.
    constexpr int kDim = ${dim}, kOut = ${out};
    constexpr int kPitch = kDim + 8, kOutPitch = kOut + 8; // ldmatrix without conflicts
    constexpr int kRowWarps = kRows / 16, kKeyWarps = ${key_warps};
    constexpr int kThreads = 32 * kRowWarps * kKeyWarps;
    constexpr int kShare = kKeys / kKeyWarps; // keys of a tile that a warp takes
    extern __shared__ __align__(16) ${type} shared_${mma}[];
    ${type} *queries = shared_${mma}, *keys = queries + kRows * kPitch,
           *values = keys + kStages * kKeys * kPitch;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp % kRowWarps * 16, warp_key = warp / kRowWarps * kShare;
    const int batch = ${batch}, first = (${tile}) * kRows;
    ${coordinates}
    const ${type} *key_rows = ${k} + ${k_base};
    const ${type} *value_rows = ${v} + ${v_base};
    const bool wide_keys = ${k_step} == 1 && ${k_stride} % 8 == 0 && ${size} % 8 == 0 && (size_t)key_rows % 16 == 0;
    const bool wide_values = ${v_step} == 1 && ${v_stride} % 8 == 0 && ${out_size} % 8 == 0 && (size_t)value_rows % 16 == 0;

    for (int piece = threadIdx.x; piece < kRows * (kDim / 8); piece += kThreads) {
        const int tile_row = first + piece / (kDim / 8), column = piece % (kDim / 8) * 8;
        const ${type} *source = ${q};
        int count = 0;
        if (tile_row < ${row_count} && column < ${size}) {
            ${q_coordinates}
            source += ${q_base} + (long long)column * ${q_step};
            count = ${size} - column;
        }
        ${type} *to = queries + piece / (kDim / 8) * kPitch + column;
        if (${q_step} == 1 && (size_t)source % 16 == 0 && (count == 0 || count >= 8))
            cp_load_piece<true>(to, source, ${q_step}, count);
        else
            cp_load_piece<false>(to, source, ${q_step}, count);
    }

//% if bounded
    // The keys of one query: from the first of them to the one behind the last.
    const auto find_keys = [&](int tile_row, int &from, int &end) {
        from = end = 0;
        if (tile_row >= ${row_count})
            return;
        ${bound_coordinates}
        end = ${nkeys};
//% each lows
        from = max(from, cp_key(${low}, ${nkeys}));
//% end
//% each highs
        end = min(end, cp_key(${high}, ${nkeys}));
//% end
    };
    // Of all queries of the block.
    __shared__ int block_from, block_end;
    if (threadIdx.x == 0) {
        block_from = ${nkeys};
        block_end = 0;
    }
    __syncthreads();
    for (int row = threadIdx.x; row < kRows; row += kThreads) {
        int from, end;
        find_keys(first + row, from, end);
        if (from < end) {
            atomicMin(&block_from, from);
            atomicMax(&block_end, end);
        }
    }
    __syncthreads();
    int key_begin = block_from / kKeys, key_end = (block_end + kKeys - 1) / kKeys;
    // Of the two of this thread, and those that all queries of the warp have.
    int row_from[2], row_end[2];
    find_keys(first + warp_row + lane / 4, row_from[0], row_end[0]);
    find_keys(first + warp_row + lane / 4 + 8, row_from[1], row_end[1]);
    const int common_from = __reduce_max_sync(0xffffffffu, max(row_from[0], row_from[1]));
    const int common_end = __reduce_min_sync(0xffffffffu, min(row_end[0], row_end[1]));
//% else
    int key_begin = 0, key_end = (${nkeys} + kKeys - 1) / kKeys;
//% end
//% if splits
    const int share = (max(key_end - key_begin, 0) + (int)gridDim.z - 1) / (int)gridDim.z;
    key_begin += (int)blockIdx.z * share;
    key_end = min(key_end, key_begin + share);
//% end
    for (int stage = 0; stage < kStages - 1; stage++) {
        if (key_begin + stage < key_end) {
            const int at = (key_begin + stage) * kKeys;
            cp_load_rows<kKeys, kDim, kThreads>(keys + stage * kKeys * kPitch, key_rows, ${k_stride}, ${k_step}, at, ${nkeys}, ${size}, wide_keys);
            cp_load_rows<kKeys, kOut, kThreads>(values + stage * kKeys * kOutPitch, value_rows, ${v_stride}, ${v_step}, at, ${nkeys}, ${out_size}, wide_values);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    // Weights are powers of two: of the score times `unit`.
//% if linear
    const float scale = ${scale}, unit = scale * 1.44269504f;
//% else
    constexpr float unit = 1.44269504f;
//% end
    float mixed[kOut / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, norm[2] = {0.0f, 0.0f};
    for (int tile = key_begin; tile < key_end; tile++) {
        const int ahead = tile + kStages - 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
        __syncthreads(); // the tile is there, and everybody is done with the one before
        if (ahead < key_end) {
            const int slot = (ahead - key_begin) % kStages * kKeys;
            cp_load_rows<kKeys, kDim, kThreads>(keys + slot * kPitch, key_rows, ${k_stride}, ${k_step}, ahead * kKeys, ${nkeys}, ${size}, wide_keys);
            cp_load_rows<kKeys, kOut, kThreads>(values + slot * kOutPitch, value_rows, ${v_stride}, ${v_step}, ahead * kKeys, ${nkeys}, ${out_size}, wide_values);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        const int slot = (tile - key_begin) % kStages * kKeys + warp_key, key0 = tile * kKeys + warp_key;
        const ${type} *key_tile = keys + slot * kPitch, *value_tile = values + slot * kOutPitch;

        float score[kShare / 8][4] = {};
#pragma unroll
        for (int depth = 0; depth < kDim; depth += 16) {
            unsigned left[4], right[4];
            cp_load_matrices(left, queries + (warp_row + lane % 16) * kPitch + depth + lane / 16 * 8);
#pragma unroll
            for (int group = 0; group < kShare; group += 16) {
                cp_load_matrices(right, key_tile + (group + lane / 16 * 8 + lane % 8) * kPitch + depth + lane / 8 % 2 * 8);
                cp_multiply_${mma}(score[group / 8], left, right[0], right[1]);
                cp_multiply_${mma}(score[group / 8 + 1], left, right[2], right[3]);
            }
        }

        // Most tiles count as a whole, for all rows of the warp: no key is looked at there.
        const bool whole = key0 + kShare <= ${nkeys} && first + warp_row + 16 <= ${row_count}
//% if bounded
            && common_from <= key0 && key0 + kShare <= common_end
//% end
            ;
        if (whole) {
//% if not linear
#pragma unroll
            for (int group = 0; group < kShare / 8; group++)
#pragma unroll
                for (int elem = 0; elem < 4; elem++) {
                    const int tile_row = first + warp_row + lane / 4 + elem / 2 * 8;
                    const int ${key} = key0 + group * 8 + lane % 4 * 2 + elem % 2;
                    ${either_coordinates}
                    const float raw = score[group][elem];
//% if guard
                    score[group][elem] = ${guard} ? ${f} : -INFINITY;
//% else
                    score[group][elem] = ${f};
//% end
                }
//% else
//% if guard
#pragma unroll
            for (int group = 0; group < kShare / 8; group++)
#pragma unroll
                for (int elem = 0; elem < 4; elem++) {
                    const int tile_row = first + warp_row + lane / 4 + elem / 2 * 8;
                    const int ${key} = key0 + group * 8 + lane % 4 * 2 + elem % 2;
                    ${guard_coordinates}
                    if (!(${guard}))
                        score[group][elem] = -INFINITY;
                }
//% end
//% end
        } else {
#pragma unroll
            for (int group = 0; group < kShare / 8; group++)
#pragma unroll
                for (int elem = 0; elem < 4; elem++) {
                    const int tile_row = first + warp_row + lane / 4 + elem / 2 * 8;
                    const int ${key} = key0 + group * 8 + lane % 4 * 2 + elem % 2;
                    const float raw = score[group][elem];
                    score[group][elem] = -INFINITY;
//% if bounded
                    if (${key} < row_from[elem / 2] || ${key} >= row_end[elem / 2])
                        continue;
//% end
                    if (tile_row >= ${row_count} || ${key} >= ${nkeys})
                        continue;
                    ${either_coordinates}
//% if guard
                    if (!(${guard}))
                        continue;
//% end
                    score[group][elem] = ${f};
                }
        }
        float peak[2] = {top[0], top[1]};
#pragma unroll
        for (int group = 0; group < kShare / 8; group++)
#pragma unroll
            for (int elem = 0; elem < 4; elem++)
                peak[elem / 2] = ${larger}(peak[elem / 2], score[group][elem]);
        float shift[2];
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            peak[pair] = ${larger}(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 1));
            peak[pair] = ${larger}(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 2));
            // Of a row without a key so far, and of one whose scores are all minus infinity.
            const float base = peak[pair] == -INFINITY ? 0.0f : peak[pair];
            const float shrink = cp_exp2((top[pair] - base) * unit);
            shift[pair] = base;
            const bool grew = !(peak[pair] == top[pair]);
            top[pair] = peak[pair];
            if (__any_sync(0xffffffffu, grew)) {
                norm[pair] *= shrink;
#pragma unroll
                for (int group = 0; group < kOut / 8; group++) {
                    mixed[group][2 * pair] *= shrink;
                    mixed[group][2 * pair + 1] *= shrink;
                }
            }
        }
#pragma unroll
        for (int group = 0; group < kShare / 8; group++)
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
                // The difference first: of large scores a rounded product is off by powers of two.
                const float power = (score[group][elem] - shift[elem / 2]) * unit;
//% if half
                // 2^15 times as large: a half has few exponents below 1.
                score[group][elem] = cp_exp2(power + 15.0f);
//% else
                score[group][elem] = cp_exp2(power);
//% end
                norm[elem / 2] += score[group][elem];
            }

#pragma unroll
        for (int from = 0; from < kShare; from += 16) {
            const float(&low)[4] = score[from / 8], (&high)[4] = score[from / 8 + 1];
            const unsigned left[4] = {cp_pair_${mma}(low[0], low[1]), cp_pair_${mma}(low[2], low[3]),
                                   cp_pair_${mma}(high[0], high[1]), cp_pair_${mma}(high[2], high[3])};
#pragma unroll
            for (int depth = 0; depth < kOut; depth += 16) {
                unsigned right[4];
                cp_load_transposed(right, value_tile + (from + lane % 16) * kOutPitch + depth + lane / 16 * 8);
                cp_multiply_${mma}(mixed[depth / 8], left, right[0], right[1]);
                cp_multiply_${mma}(mixed[depth / 8 + 1], left, right[2], right[3]);
            }
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory"); // also of a block without a tile

#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        norm[pair] += __shfl_xor_sync(0xffffffffu, norm[pair], 1);
        norm[pair] += __shfl_xor_sync(0xffffffffu, norm[pair], 2);
        const int tile_row = first + warp_row + lane / 4 + 8 * pair;
//% if half
        const float total = norm[pair] * 0x1p-15f, smaller = 0x1p-15f;
//% else
        const float total = norm[pair];
//% end
//% if kept
//% if linear
        const float largest = top[pair] * scale;
//% else
        const float largest = top[pair];
//% end
//% end
        if (tile_row >= ${row_count})
            continue;
//% if parts
        const long long part = ((long long)(blockIdx.z * kKeyWarps + warp / kRowWarps) * ${batches} + batch) * ${row_count} + tile_row;
        if (lane % 4 == 0) {
            part_rows[2 * part] = largest;
            part_rows[2 * part + 1] = total;
        }
//% end
        ${store_coordinates}
//% each row_stores
        if (lane % 4 == 0)
            ${to}[${place}] = ${packed};
//% end
#pragma unroll
        for (int group = 0; group < kOut / 8; group++) {
//% each pairs
            ${element} packed_pair[2];
#pragma unroll
            for (int elem = 0; elem < 2; elem++) {
                const int column = group * 8 + lane % 4 * 2 + elem;
                if (column < ${out_size}) {
//% if half
                    const float sum = mixed[group][2 * pair + elem] * smaller;
//% else
                    const float sum = mixed[group][2 * pair + elem];
//% end
                    packed_pair[elem] = ${packed};
                }
            }
            const int column = group * 8 + lane % 4 * 2;
            ${element} *const pair_at = &${to}[${place}];
            if (${out_size} % 2 == 0 && column < ${out_size}) {
                *reinterpret_cast<unsigned *>(pair_at) = *reinterpret_cast<unsigned *>(packed_pair);
            } else {
                if (column < ${out_size})
                    pair_at[0] = packed_pair[0];
                if (column + 1 < ${out_size})
                    pair_at[1] = packed_pair[1];
            }
//% end
#pragma unroll
            for (int elem = 0; elem < 2; elem++) {
                const int column = group * 8 + lane % 4 * 2 + elem;
                if (column >= ${out_size})
                    continue;
//% if half
                const float sum = mixed[group][2 * pair + elem] * smaller;
//% else
                const float sum = mixed[group][2 * pair + elem];
//% end
//% if parts
                parts[part * ${out_size} + column] = sum;
//% end
//% each stores
                ${to}[${place}] = ${packed};
//% end
            }
        }
    }
}
