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
    //% if spread
    constexpr int PHASES = ${spread}; // results of a tile for each position
    //% end
    //% if stride
    constexpr int PARTS = ${stride}; // planes that the last axis of the input is parted in
    //% end
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
    //% if phased
    // Results lie further apart than positions: a block has those of one phase of the outer axes.
    const int outer_phase = (int)(blockIdx.x / tiles_m / runs % ${phased});
    //% each phases
    const int phase_${name} = ${phase};
    const int count_${name} = (int)((${extent} - phase_${name} + ${last_phase}) / ${spread});
    //% end
    const ${index} slab = blockIdx.x / tiles_m / runs / ${phased};
    //% else
    const ${index} slab = blockIdx.x / tiles_m / runs;
    //% end
    // Positions from where a window begins to a line of the filter.
    const auto line_at = [&](int line${phase_parameter}) {
        int at = 0;
        //% each line_axes
        const int ${name}_ahead = ${ahead};
        //% if axis_spread
        if (${name}_ahead % ${axis_spread} != 0)
            return -1; // it meets no result of the phase
        //% end
        at += ${shift} * ${inner};
        //% end
        return at;
    };
    // Positions from there to a tap of the line.
    const auto tap_at = [&](int tap${phase_parameter}${part_parameter}) {
        const int ahead = ${tap_ahead};
        //% if spread
        return ahead % PHASES == 0 ? ahead / PHASES : -1;
        //% else
        //% if stride
        return ahead % PARTS == part ? ahead / PARTS : -1;
        //% else
        return ahead;
        //% end
        //% end
    };
    //% if planes
    // Which plane of the image has what a line reads.
    const auto plane_of = [&](int line) {
        int of = 0;
        //% each line_axes
        of = of * ${axis_stride} + (${ahead}) % ${axis_stride};
        //% end
        return of;
    };
    //% end
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
            //% if spread
            for (int phase = 0; phase < PHASES; phase++)
            //% end
            for (int chunk = 0; chunk < chunks; chunk++)
                for (int line = 0; line < LINES; line++) {
                    const int at = line_at(line${phase_argument});
                    //% if skips
                    if (at < 0${no_taps})
                        continue;
                    //% end
                    //% if stride
                    for (int part = 0; part < PARTS; part++) {
                    if (!(${parts_used} >> part & 1))
                        continue;
                    //% end
                    const int from = first + at, stage = segment % STAGES;
                    const unsigned full = segment_full + 8 * stage;
                    gemm_barrier_wait(segment_empty + 8 * stage, segment / STAGES % 2 ^ 1);
                    gemm_barrier_expect(full, SEGMENT);
                    for (int box = 0; box < ${boxes}; box++)
                        gemm_copy_box(segments + stage * SEGMENT + box * ${box} * 128, &map_input,
                                      chunk * ${chunk}, from + box * ${box}, ${slab_at}, full);
                    segment++;
                    for (int tap = 0; tap < TAPS; tap++) {
                        //% if tests
                        if (tap_at(tap${phase_argument}${part_argument}) < 0)
                            continue;
                        //% end
                        const int place = filter % FILTERS;
                        gemm_barrier_wait(filter_empty + 8 * place, filter / FILTERS % 2 ^ 1);
                        gemm_barrier_expect(filter_full + 8 * place, FILTER);
                        gemm_copy_box(filters + place * FILTER, &map_filter, chunk * ${chunk},
                                      first_channel, matrix + line * TAPS + tap,
                                      filter_full + 8 * place);
                        filter++;
                    }
                    //% if stride
                    }
                    //% end
                }
        }
        return; // the producer's warp exits here
    }
    float *const results = (float *)(smem${results_at});
    constexpr int PITCH = POSITIONS${times_phases} + 8;
    int segment = 0, filter = 0;
    //% if spread
    for (int phase = 0; phase < PHASES; phase++) {
    //% end
    float acc[ROWS][POSITIONS / 2] = {};
    //% if promote
    float total[ROWS][POSITIONS / 2] = {};
    //% end
    for (int chunk = 0; chunk < chunks; chunk++)
        for (int line = 0; line < LINES; line++) {
            //% if skips
            if (line_at(line${phase_argument}) < 0${no_taps})
                continue;
            //% end
            //% if stride
            for (int part = 0; part < PARTS; part++) {
            if (!(${parts_used} >> part & 1))
                continue;
            //% end
            const unsigned from = segments + segment % STAGES * SEGMENT;
            gemm_barrier_wait(segment_full + 8 * (segment % STAGES), segment / STAGES % 2);
            bool begins = segment > 0;
            for (int tap = 0; tap < TAPS; tap++) {
                const int at = tap_at(tap${phase_argument}${part_argument});
                //% if tests
                if (at < 0)
                    continue;
                //% end
                const int place = filter % FILTERS;
                gemm_barrier_wait(filter_full + 8 * place, filter / FILTERS % 2);
                const unsigned a = filters + place * FILTER + warpgroup * ROWS * 64 * 128;
                gemm_fence();
#pragma unroll
                for (int block = 0; block < ROWS; block++)
#pragma unroll
                    for (int step = 0; step < ${steps}; step++)
                        ${wgmma}(acc[block], gemm_tile(a + block * 64 * 128) + 2 * step,
                                 gemm_tile(from + at * 128) + 2 * step, true);
                gemm_group_end();
                // With at most this group under way, what the one before has read is free.
                gemm_group_wait<1>();
                if (filter > 0 && tid % 128 == 0) {
                    gemm_barrier_arrive(filter_empty + 8 * ((filter - 1) % FILTERS));
                    if (begins)
                        gemm_barrier_arrive(segment_empty + 8 * ((segment - 1) % STAGES));
                }
                begins = false;
                filter++;
                //% if promote
                // Tensor cores cut off what their sums do not hold: now and then what they have
                // summed is added in full precision.
                if (filter % ${promote} == 0) {
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
            segment++;
            //% if stride
            }
            //% end
        }
    gemm_group_wait<0>();

    // Sums go through shared memory: rows of channels.
    //% if not spread
    asm volatile("bar.sync 1, %0;" ::"n"(128 * WARPGROUPS) : "memory");
    //% end
    const int lane = tid % 32, top = warpgroup * ROWS * 64 + tid % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < ROWS * POSITIONS / 2; i += 2) {
        const int block = i / (POSITIONS / 2), at = i % (POSITIONS / 2);
        //% if promote
        const float left = acc[block][at] + total[block][at];
        const float right = acc[block][at + 1] + total[block][at + 1];
        //% else
        const float left = acc[block][at], right = acc[block][at + 1];
        //% end
        const int column = at / 4 * 8 + lane % 4 * 2;
        float *const to = results + (top + block * 64 + at / 2 % 2 * 8) * PITCH;
        //% if spread
        to[column * PHASES + phase] = left;
        to[(column + 1) * PHASES + phase] = right;
        //% else
        *(float2 *)(to + column) = make_float2(left, right);
        //% end
    }
    //% if spread
    }
    //% end
    asm volatile("bar.sync 1, %0;" ::"n"(128 * WARPGROUPS) : "memory");
    // Of the positions those at which a window begins are results, in the order of the output.
    const auto results_before = [&](int rest) {
        int count = 0;
        //% each outer
        const int ${name}_of = rest / (int)${inner};
        count += min(${name}_of, (int)${extent}) * (int)(${after});
        if (${name}_of >= (int)${extent})
            return count;
        rest %= (int)${inner};
        //% end
        return count + min(rest${times_phases}, (int)${width});
    };
    const int from = results_before(first), to = results_before(min(first + POSITIONS, plane));
    if (from >= to)
        return; // no window begins here
    const int channels = (int)min(${rows} - first_channel, (${index})CHANNELS);
    ${decode_slab}
    //% each axes
    const ${index} ${name}_from = ${from};
    //% end
    for (int channel = tid / 32; channel < channels; channel += 4 * WARPGROUPS) {
        ${decode_row}
        // A warp's stores begin at a multiple of 32 elements.
        int result = from - (int)(${place} % 32) + tid % 32;
        result += result < from ? 32 : 0;
        //% each axes
        ${index} ${name} = ${value};
        //% end
        int column = (int)(${column}) - first${times_phases};
#pragma unroll 4
        for (; result < to; result += 32) {
            const float sum = results[channel * PITCH + column];
            ${epilogue}
            column += 32;
            ${innermost} += 32;
            //% each wraps
            while (${name} >= ${extent}) {
                ${name} -= ${whole};
                ${next} += ${next_spread};
                column += (int)(${skipped});
            }
            //% end
        }
    }
}

