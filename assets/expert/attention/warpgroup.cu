// ${rows} queries of one head, their keys tile by tile, by wgmma. One warp keeps tiles of keys and
// values on their way; two groups of four warps have 64 queries each and take turns: one multiplies
// while the other weighs its scores. Scores and weights stay in registers, and the next scores are
// multiplied while the weights before them mix their values.
extern "C" __global__ void __launch_bounds__(384, 1)
    ${kernel}(${params}) {
    constexpr int kRows = ${rows}; // queries of a block
    constexpr int kKeys = ${keys}; // keys and values of a tile
    constexpr int kStages = ${stages}; // tiles on their way or in use
    // Head sizes of keys and of values in rows of 128 bytes: what is beyond the task's is zero.
    constexpr int kDim = ${dim}, kOut = ${out}, kSteps = ${steps};
    constexpr int kKeyBytes = kKeys * kDim * 2, kValueBytes = kKeys * kOut * 2;
    extern __shared__ __align__(128) unsigned char bytes[];
    __shared__ alignas(8) unsigned long long barriers[4 * kStages];
    unsigned char *const smem = bytes + (-(unsigned)__cvta_generic_to_shared(bytes) % 1024);
    const unsigned queries = (unsigned)__cvta_generic_to_shared(smem);
    const unsigned key_ring = queries + kRows * kDim * 2;
    const unsigned value_ring = key_ring + kStages * kKeyBytes;
    const unsigned key_full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned key_empty = key_full + 8 * kStages, value_full = key_empty + 8 * kStages;
    const unsigned value_empty = value_full + 8 * kStages;
    const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int batch = ${batch}, first = (${tile}) * kRows;
    ${coordinates}

    // Queries, in rows of 128 bytes whose pieces of 16 are exchanged as the copy engine does it.
    for (int piece = threadIdx.x; piece < kRows * (kDim / 8); piece += 384) {
        const int row = piece / (kDim / 8), column = piece % (kDim / 8) * 8;
        const int tile_row = first + row;
        const ${type} *source = ${q};
        int count = 0;
        if (tile_row < ${row_count} && column < ${size}) {
            ${q_coordinates}
            source += ${q_base} + (long long)column * ${q_step};
            count = ${size} - column;
        }
        ${type} *to = reinterpret_cast<${type} *>(smem + column / 64 * (kRows * 128) + row * 128 + (column / 8 ^ row) % 8 * 16);
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
    if (threadIdx.x < kRows) {
        int from, end;
        find_keys(first + threadIdx.x, from, end);
        if (from < end) {
            atomicMin(&block_from, from);
            atomicMax(&block_end, end);
        }
    }
//% end
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; stage++) {
            cp_barrier_init(key_full + 8 * stage, 1);
            cp_barrier_init(key_empty + 8 * stage, 2);
            cp_barrier_init(value_full + 8 * stage, 1);
            cp_barrier_init(value_empty + 8 * stage, 2);
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
//% if bounded
    const int key_begin = block_from / kKeys, key_end = (block_end + kKeys - 1) / kKeys;
//% else
    const int key_begin = 0, key_end = (${nkeys} + kKeys - 1) / kKeys;
//% end
    const int tiles = max(key_end - key_begin, 0);

    if (warpgroup == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        for (int t = 0; threadIdx.x == 256 && t < tiles; t++) {
            const int stage = t % kStages, key0 = (key_begin + t) * kKeys;
            const unsigned key_to = key_ring + stage * kKeyBytes;
            const unsigned value_to = value_ring + stage * kValueBytes;
            cp_barrier_wait(key_empty + 8 * stage, t / kStages % 2 ^ 1);
            cp_barrier_expect(key_full + 8 * stage, kKeyBytes);
//% if k_turned
            for (int part = 0; part < kKeys / 64; part++)
                cp_copy_box(key_to + part * (kDim * 128), &key_map, key0 + part * 64, ${k_middle}, 0, ${k_slab}, key_full + 8 * stage);
//% else
            for (int part = 0; part < kDim / 64; part++)
                cp_copy_box(key_to + part * (kKeys * 128), &key_map, ${k_inner} + part * 64, ${k_middle}, key0, ${k_slab}, key_full + 8 * stage);
//% end
            cp_barrier_wait(value_empty + 8 * stage, t / kStages % 2 ^ 1);
            cp_barrier_expect(value_full + 8 * stage, kValueBytes);
//% if v_turned
            for (int part = 0; part < kKeys / 64; part++)
                cp_copy_box(value_to + part * (kOut * 128), &value_map, key0 + part * 64, ${v_middle}, 0, ${v_slab}, value_full + 8 * stage);
//% else
            for (int part = 0; part < kOut / 64; part++)
                cp_copy_box(value_to + part * (kKeys * 128), &value_map, ${v_inner} + part * 64, ${v_middle}, key0, ${v_slab}, value_full + 8 * stage);
//% end
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int warp_row = warp * 16;
//% if bounded
    // Of the two of this thread, and those that all queries of the warp have.
    int row_from[2], row_end[2];
    find_keys(first + warp_row + lane / 4, row_from[0], row_end[0]);
    find_keys(first + warp_row + lane / 4 + 8, row_from[1], row_end[1]);
    const int common_from = __reduce_max_sync(0xffffffffu, max(row_from[0], row_from[1]));
    const int common_end = __reduce_min_sync(0xffffffffu, min(row_end[0], row_end[1]));
//% end
    // Weights are powers of two: of the score times `unit`.
//% if linear
    const float scale = ${scale}, unit = scale * 1.44269504f;
//% else
    constexpr float unit = 1.44269504f;
//% end
    float mixed[kOut / 2], score[kKeys / 2];
    float top[2] = {-INFINITY, -INFINITY}, norm[2] = {0.0f, 0.0f}, shrink[2];
    unsigned weights[kKeys / 16][4];

    const auto multiply_keys = [&](int t) {
        const unsigned tile = key_ring + t % kStages * kKeyBytes;
        cp_barrier_wait(key_full + 8 * (t % kStages), t / kStages % 2);
        cp_products_begin();
#pragma unroll
        for (int step = 0; step < kSteps; step++)
            ${multiply_scores}(score,
                cp_product_tile(queries + warpgroup * 8192 + step / 4 * (kRows * 128), 16) + step % 4 * 2,
//% if k_turned
                cp_product_tile(tile, kDim * 128) + step * 128,
//% else
                cp_product_tile(tile + step / 4 * (kKeys * 128), 16) + step % 4 * 2,
//% end
                step > 0);
        cp_products_end();
    };
    const auto multiply_values = [&](int t) {
        const unsigned tile = value_ring + t % kStages * kValueBytes;
        cp_barrier_wait(value_full + 8 * (t % kStages), t / kStages % 2);
        cp_products_begin();
#pragma unroll
        for (int step = 0; step < kKeys / 16; step++)
            ${multiply_values}(mixed, weights[step],
//% if v_turned
                cp_product_tile(tile + step / 4 * (kOut * 128), 16) + step % 4 * 2,
//% else
                cp_product_tile(tile, kKeys * 128) + step * 128,
//% end
                t > 0 || step > 0);
        cp_products_end();
    };
    // Scores become weights, and `shrink` what sums so far are to be multiplied by.
    const auto weigh = [&](int t) {
        const int key0 = (key_begin + t) * kKeys;
        // Most tiles count as a whole, for all rows of the warp: no key is looked at there.
        const bool whole = key0 + kKeys <= ${nkeys} && first + warp_row + 16 <= ${row_count}
//% if bounded
            && common_from <= key0 && key0 + kKeys <= common_end
//% end
            ;
        if (whole) {
//% if masks
#pragma unroll
            for (int at = 0; at < kKeys / 2; at++) {
                const int tile_row = first + warp_row + lane / 4 + at / 2 % 2 * 8;
                const int ${key} = key0 + at / 4 * 8 + lane % 4 * 2 + at % 2;
                ${either_coordinates}
                const float raw = score[at];
//% if guard
                score[at] = ${guard} ? ${f} : -INFINITY;
//% else
                score[at] = ${f};
//% end
            }
//% end
        } else {
#pragma unroll
            for (int at = 0; at < kKeys / 2; at++) {
                const int tile_row = first + warp_row + lane / 4 + at / 2 % 2 * 8;
                const int ${key} = key0 + at / 4 * 8 + lane % 4 * 2 + at % 2;
                const float raw = score[at];
                score[at] = -INFINITY;
//% if bounded
                if (${key} < row_from[at / 2 % 2] || ${key} >= row_end[at / 2 % 2])
                    continue;
//% end
                if (tile_row >= ${row_count} || ${key} >= ${nkeys})
                    continue;
                ${either_coordinates}
//% if guard
                if (!(${guard}))
                    continue;
//% end
                score[at] = ${f};
            }
        }
        float peak[2] = {top[0], top[1]}, shift[2], sums[2] = {0.0f, 0.0f};
#pragma unroll
        for (int at = 0; at < kKeys / 2; at++)
            peak[at / 2 % 2] = ${larger}(peak[at / 2 % 2], score[at]);
        bool grew = false;
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            peak[pair] = ${larger}(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 1));
            peak[pair] = ${larger}(peak[pair], __shfl_xor_sync(0xffffffffu, peak[pair], 2));
            // Of a row without a key so far, and of one whose scores are all minus infinity.
            const float base = peak[pair] == -INFINITY ? 0.0f : peak[pair];
            shrink[pair] = cp_exp2((top[pair] - base) * unit);
            shift[pair] = base;
            grew |= !(peak[pair] == top[pair]);
            top[pair] = peak[pair];
        }
#pragma unroll
        for (int at = 0; at < kKeys / 2; at++) {
            // The difference first: of large scores a rounded product is off by powers of two.
            const float power = (score[at] - shift[at / 2 % 2]) * unit;
//% if half
            // 2^15 times as large: a half has few exponents below 1.
            score[at] = cp_exp2(power + 15.0f);
//% else
            score[at] = cp_exp2(power);
//% end
            sums[at / 2 % 2] += score[at];
        }
        norm[0] = norm[0] * shrink[0] + sums[0];
        norm[1] = norm[1] * shrink[1] + sums[1];
        return __any_sync(0xffffffffu, grew);
    };
    const auto pack = [&] {
#pragma unroll
        for (int step = 0; step < kKeys / 16; step++)
#pragma unroll
            for (int part = 0; part < 4; part++)
                weights[step][part] = cp_pair_${mma}(score[step * 8 + part * 2], score[step * 8 + part * 2 + 1]);
    };

#pragma unroll
    for (int at = 0; at < kOut / 2; at++)
        mixed[at] = 0.0f;
    if (tiles > 0) {
        // The first group begins.
        if (warpgroup == 1)
            cp_turn_call(1);
        cp_turn_wait(1 + warpgroup);
        multiply_keys(0);
        cp_turn_call(2 - warpgroup);
        cp_products_wait<0>(score);
        if (threadIdx.x % 128 == 0)
            cp_barrier_arrive(key_empty);
        weigh(0);
        pack();
        for (int t = 1; t < tiles; t++) {
            cp_turn_wait(1 + warpgroup);
            multiply_keys(t);
            multiply_values(t - 1);
            cp_turn_call(2 - warpgroup);
            cp_products_wait<1>(score);
            if (threadIdx.x % 128 == 0)
                cp_barrier_arrive(key_empty + 8 * (t % kStages));
            const bool grew = weigh(t);
            cp_products_wait<0>(mixed);
            if (threadIdx.x % 128 == 0)
                cp_barrier_arrive(value_empty + 8 * ((t - 1) % kStages));
            if (grew) {
#pragma unroll
                for (int at = 0; at < kOut / 2; at++)
                    mixed[at] *= shrink[at / 2 % 2];
            }
            pack();
        }
        cp_turn_wait(1 + warpgroup);
        multiply_values(tiles - 1);
        if (warpgroup == 0)
            cp_turn_call(2);
        cp_products_wait<0>(mixed);
    }

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
                    const float sum = mixed[group * 4 + 2 * pair + elem] * smaller;
//% else
                    const float sum = mixed[group * 4 + 2 * pair + elem];
//% end
                    packed_pair[elem] = ${packed};
                }
            }
            const int column = group * 8 + lane % 4 * 2;
            if (column < ${out_size})
                *reinterpret_cast<unsigned *>(&${to}[${place}]) = *reinterpret_cast<unsigned *>(packed_pair);
//% end
#pragma unroll
            for (int elem = 0; elem < 2; elem++) {
                const int column = group * 8 + lane % 4 * 2 + elem;
                if (column >= ${out_size})
                    continue;
//% if half
                const float sum = mixed[group * 4 + 2 * pair + elem] * smaller;
//% else
                const float sum = mixed[group * 4 + 2 * pair + elem];
//% end
//% each stores
                ${to}[${place}] = ${packed};
//% end
            }
        }
    }
}
