// ${definitions}
// A thread computes all ${outputs} channels of ${results} results, from the input as it lies: the places of one
// channel that they need are in registers, those of the next on their way. Weights wait in shared
// memory, ${chunk} channels at a time.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    constexpr int ROWS = ${rows}, PHASES = ${phases}, OUTPUTS = ${outputs}, PITCH = ${pitch}, TAPS = ${taps};
    constexpr int ROWS_IN = ${rows_in}, COLS_IN = ${cols_in}, CHUNK = ${chunk};
    __shared__ __align__(16) float weights[CHUNK * TAPS * PITCH];
    const int tid = threadIdx.x, channels = (int)${channels};
    const int cells_across = (int)${cells_across}, cells = (int)${cells};
    const int blocks = (cells + ${block} - 1) / ${block};
    const int cell = (int)(blockIdx.x % blocks) * ${block} + tid;
    const ${index} slab = blockIdx.x / blocks;
    ${decode_slab}
//% if down
    const int cell_across = cell % cells_across, cell_down = cell / cells_across * ROWS;
    const int first_row = ${first_row};
//% else
    const int cell_across = cell;
//% end
    const int first_col = ${first_col};
    const auto load = [&](int channel, float (&patch)[ROWS_IN][COLS_IN]) {
        ${decode_channel}
#pragma unroll
        for (int row = 0; row < ROWS_IN; row++) {
#pragma unroll
            for (int col = 0; col < COLS_IN; col++) {
//% if down
                const int ${down} = first_row + row;
//% end
                const int ${across} = first_col + col;
                const bool exists = ${exists};
                patch[row][col] = exists ? ${input} : 0.0f;
            }
        }
    };
    float sum[OUTPUTS][PHASES][ROWS] = {}, patch[ROWS_IN][COLS_IN], ahead[ROWS_IN][COLS_IN];
    load(0, ahead);
#pragma unroll 1
    for (int from = 0; from < channels; from += CHUNK) {
        __syncthreads();
        for (int at = tid; at < CHUNK * TAPS * PITCH; at += ${block}) {
            const int channel = from + at / (TAPS * PITCH), tap = at / PITCH % TAPS;
            const int output = at % PITCH;
            ${decode_filter}
            const bool exists = channel < channels && output < OUTPUTS;
            weights[at] = exists ? ${filter} : 0.0f;
        }
        __syncthreads();
        const int end = min(CHUNK, channels - from);
#pragma unroll 1
        for (int step = 0; step < end; step++) {
#pragma unroll
            for (int row = 0; row < ROWS_IN; row++) {
#pragma unroll
                for (int col = 0; col < COLS_IN; col++)
                    patch[row][col] = ahead[row][col];
            }
            if (from + step + 1 < channels)
                load(from + step + 1, ahead);
            const auto add = [&](int tap, int phase, int row_at, int col_at) {
                const float *at = weights + (step * TAPS + tap) * PITCH;
                float weight[PITCH];
//% if vectors
#pragma unroll
                for (int output = 0; output < PITCH; output += 4) {
                    const float4 four = *(const float4 *)(at + output);
                    weight[output] = four.x;
                    weight[output + 1] = four.y;
                    weight[output + 2] = four.z;
                    weight[output + 3] = four.w;
                }
//% else
#pragma unroll
                for (int output = 0; output < PITCH; output++)
                    weight[output] = at[output];
//% end
#pragma unroll
                for (int output = 0; output < OUTPUTS; output++) {
#pragma unroll
                    for (int row = 0; row < ROWS; row++)
                        sum[output][phase][row] +=
                            patch[${place_of_row} + row_at][col_at] * weight[output];
                }
            };
//% each taps
            add(${tap}, ${phase}, ${row_at}, ${col_at});
//% end
        }
    }
    if (cell >= cells)
        return;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
#pragma unroll
        for (int phase = 0; phase < PHASES; phase++) {
//% if down
            const int ${down} = ${down_value};
//% end
            const int ${across} = ${across_value};
            if (${within}) {
#pragma unroll
                for (int output = 0; output < OUTPUTS; output++) {
                    ${decode_output}
                    const float value = sum[output][phase][row];
                    ${maps}
//% each stores
                    ${store};
//% end
                }
            }
        }
    }
}

