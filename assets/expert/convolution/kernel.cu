// ${definitions}
// by ${format}.
// A tile is a run of positions of the packed input. All taps of a line of the filter, here ${taps},
// read from one segment of it in shared memory.
extern "C" __global__ void __launch_bounds__(${block}, ${blocks})
    ${kernel}(${parameters}) {
    constexpr int CHANNELS = ${tile_m}, POSITIONS = ${tile_n}; // of a tile
    constexpr int WARPGROUPS = ${warpgroups};                  // that multiply
    constexpr int ROWS = CHANNELS / 64 / WARPGROUPS;           // 64 channels each, of a warpgroup
    constexpr int LINES = ${lines}, TAPS = ${taps};            // of the filter
    constexpr int STAGES = ${stages}, SEGMENT = ${segment};    // the ring of segments, bytes of one
    constexpr int FILTERS = ${filters}, FILTER = CHANNELS * 128; // the ring of filter tiles
    extern __shared__ __align__(128) unsigned char bytes[];
    unsigned char *const smem = bytes + (-(unsigned)__cvta_generic_to_shared(bytes) % 1024);
    __shared__ alignas(8) unsigned long long barriers[2 * (STAGES + FILTERS)];
    const int tid = threadIdx.x, warpgroup = tid / 128;
    const unsigned segments = (unsigned)__cvta_generic_to_shared(smem);
    const unsigned filters = segments + STAGES * SEGMENT;
    const unsigned segment_full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned segment_empty = segment_full + 8 * STAGES;
    const unsigned filter_full = segment_empty + 8 * STAGES;
    const unsigned filter_empty = filter_full + 8 * FILTERS;
    const int plane = (int)${plane}, chunks = (int)((${channels} + ${last}) / ${chunk});
    const int tiles_m = (int)((${rows} + (CHANNELS - 1)) / CHANNELS);
    const int runs = (int)((${used} + (POSITIONS - 1)) / POSITIONS);
    const int first_channel = (int)(blockIdx.x % tiles_m) * CHANNELS;
    const int first = (int)(blockIdx.x / tiles_m % runs) * POSITIONS;
    const ${index} slab = blockIdx.x / tiles_m / runs;
    if (tid == 0) {
        for (int s = 0; s < STAGES; s++) {
            gemm_barrier_init(segment_full + 8 * s, 1);
            gemm_barrier_init(segment_empty + 8 * s, WARPGROUPS);
        }
        for (int s = 0; s < FILTERS; s++) {
            gemm_barrier_init(filter_full + 8 * s, 1);
            gemm_barrier_init(filter_empty + 8 * s, WARPGROUPS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == WARPGROUPS) {
        if (tid % 32 == 0) {
            const int matrix = (int)${first_matrix};
            int segment = 0, filter = 0;
            for (int chunk = 0; chunk < chunks; chunk++)
                for (int line = 0; line < LINES; line++, segment++) {
                    const int from = first + ${line_at}, stage = segment % STAGES;
                    const unsigned full = segment_full + 8 * stage;
                    gemm_barrier_wait(segment_empty + 8 * stage, segment / STAGES % 2 ^ 1);
                    gemm_barrier_expect(full, SEGMENT);
                    for (int box = 0; box < ${boxes}; box++)
                        gemm_copy_box(segments + stage * SEGMENT + box * ${box} * 128, &map_input,
                                      chunk * ${chunk}, from + box * ${box}, (int)slab, full);
                    for (int tap = 0; tap < TAPS; tap++, filter++) {
                        const int place = filter % FILTERS;
                        gemm_barrier_wait(filter_empty + 8 * place, filter / FILTERS % 2 ^ 1);
                        gemm_barrier_expect(filter_full + 8 * place, FILTER);
                        gemm_copy_box(filters + place * FILTER, &map_filter, chunk * ${chunk},
                                      first_channel, matrix + line * TAPS + tap,
                                      filter_full + 8 * place);
                    }
                }
        }
        return; // the producer's warp exits here
    }
    float acc[ROWS][POSITIONS / 2] = {};
    //% if promote
    float total[ROWS][POSITIONS / 2] = {};
    //% end
    const int all = chunks * LINES;
    for (int segment = 0, filter = 0; segment < all; segment++) {
        gemm_barrier_wait(segment_full + 8 * (segment % STAGES), segment / STAGES % 2);
        for (int tap = 0; tap < TAPS; tap++, filter++) {
            const int place = filter % FILTERS;
            gemm_barrier_wait(filter_full + 8 * place, filter / FILTERS % 2);
            const unsigned a = filters + place * FILTER + warpgroup * ROWS * 64 * 128;
            const unsigned b = segments + segment % STAGES * SEGMENT + ${tap_at} * 128;
            gemm_fence();
#pragma unroll
            for (int block = 0; block < ROWS; block++)
#pragma unroll
                for (int step = 0; step < ${steps}; step++)
                    ${wgmma}(acc[block], gemm_tile(a + block * 64 * 128) + 2 * step,
                             gemm_tile(b) + 2 * step, true);
            gemm_group_end();
            // With at most this group under way, what the one before has read is free.
            gemm_group_wait<1>();
            if (filter > 0 && tid % 128 == 0) {
                gemm_barrier_arrive(filter_empty + 8 * ((filter - 1) % FILTERS));
                if (tap == 0)
                    gemm_barrier_arrive(segment_empty + 8 * ((segment - 1) % STAGES));
            }
            //% if promote
            // Tensor cores cut off what their sums do not hold: now and then what they have summed
            // is added in full precision.
            if (filter % ${promote} == ${promote} - 1) {
                gemm_group_wait<0>();
#pragma unroll
                for (int i = 0; i < ROWS * POSITIONS / 2; i++) {
                    total[i / (POSITIONS / 2)][i % (POSITIONS / 2)] +=
                        acc[i / (POSITIONS / 2)][i % (POSITIONS / 2)];
                    acc[i / (POSITIONS / 2)][i % (POSITIONS / 2)] = 0.0f;
                }
            }
            //% end
        }
    }
    gemm_group_wait<0>();

    // Sums go through shared memory, where the rings were: rows of channels.
    constexpr int PITCH = POSITIONS + 8;
    float *const results = (float *)smem;
    asm volatile("bar.sync 1, %0;" ::"n"(128 * WARPGROUPS) : "memory");
    {
        const int lane = tid % 32;
        const int top = warpgroup * ROWS * 64 + tid % 128 / 32 * 16 + lane / 4;
#pragma unroll
        for (int i = 0; i < ROWS * POSITIONS / 2; i += 2) {
            const int block = i / (POSITIONS / 2), at = i % (POSITIONS / 2);
            //% if promote
            const float left = acc[block][at] + total[block][at];
            const float right = acc[block][at + 1] + total[block][at + 1];
            //% else
            const float left = acc[block][at], right = acc[block][at + 1];
            //% end
            *(float2 *)(results + (top + block * 64 + at / 2 % 2 * 8) * PITCH + at / 4 * 8 +
                        lane % 4 * 2) = make_float2(left, right);
        }
    }
    asm volatile("bar.sync 1, %0;" ::"n"(128 * WARPGROUPS) : "memory");
    // Of the positions those at which a window begins are results, in the order of the output.
    const auto results_before = [&](int rest) {
        int count = 0;
        //% each outer
        const int ${name}_of = rest / (int)${inner};
        count += min(${name}_of, (int)${extent}) * (int)${after};
        if (${name}_of >= (int)${extent})
            return count;
        rest %= (int)${inner};
        //% end
        return count + min(rest, (int)${width});
    };
    const int from = results_before(first), to = results_before(min(first + POSITIONS, plane));
    const int channels = (int)min(${rows} - first_channel, (${index})CHANNELS);
    ${decode_slab}
    for (int channel = tid / 32; channel < channels; channel += 4 * WARPGROUPS) {
        ${decode_row}
        // A warp's stores begin at a multiple of 32 elements.
        const int shift = (int)((${place} + from) % 32);
        int result = from - shift + tid % 32;
        result += result < from ? 32 : 0;
        //% each axes
        ${index} ${name} = ${value};
        //% end
        int column = (int)(${column}) - first;
#pragma unroll 4
        for (; result < to; result += 32) {
            const float sum = results[channel * PITCH + column];
            ${epilogue}
            column += 32;
            ${innermost} += 32;
            //% each wraps
            while (${name} >= ${extent}) {
                ${name} -= ${extent};
                ${next}++;
                column += (int)(${skipped});
            }
            //% end
        }
    }
}

