// ${kRows} queries of one head, all their keys tile by tile: scores and weights stay in registers.
// Each row carries its largest score so far and rescales what it has summed when that grows.
extern "C" __global__ void __launch_bounds__(${kThreads})
    ${kernel}(${params}) {
    extern __shared__ __align__(16) ${type} shared[];
    ${type} *queries = shared, *keys = queries + ${kRows} * ${kPitch},
           *values = keys + ${kStages} * ${kKeys} * ${kPitch};
    const int ${warp} = threadIdx.x / 32, ${lane} = threadIdx.x % 32;
    ${coordinates}
    const int ${first} = ${block} * ${kRows}, ${last} = min(${first} + ${kRows}, ${nrows}) - 1;
    const int key_begin = ${begin}, key_end = (${end} + ${kKeys} - 1) / ${kKeys};
    const ${type} *query_rows = ${q} + ${q_base};
    const ${type} *key_rows = ${k} + ${k_base};
    const ${type} *value_rows = ${v} + ${v_base};

    ${load_rows}<${kRows}>(queries, query_rows, ${q_stride}, ${first}, ${nrows}, ${size});
    for (int s = 0; s < ${kStages} - 1; s++) {
        if (key_begin + s < key_end) {
            const int at = (key_begin + s) * ${kKeys}, slot = s * ${kKeys} * ${kPitch};
            ${load_rows}<${kKeys}>(keys + slot, key_rows, ${k_stride}, at, ${nkeys}, ${size});
            ${load_rows}<${kKeys}>(values + slot, value_rows, ${v_stride}, at, ${nkeys}, ${size});
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    ${scale}
    float ${mixed}[${kDim} / 8][4] = {};
    float ${top}[2] = {-INFINITY, -INFINITY}, ${norm}[2] = {0.0f, 0.0f};
    for (int ${tile} = key_begin; ${tile} < key_end; ${tile}++) {
        const int ahead = ${tile} + ${kStages} - 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(${kStages} - 2) : "memory");
        __syncthreads(); // the tile is there, and everybody is done with the one before
        if (ahead < key_end) {
            const int slot = (ahead - key_begin) % ${kStages} * ${kKeys} * ${kPitch};
            ${load_rows}<${kKeys}>(keys + slot, key_rows, ${k_stride}, ahead * ${kKeys}, ${nkeys}, ${size});
            ${load_rows}<${kKeys}>(values + slot, value_rows, ${v_stride}, ahead * ${kKeys}, ${nkeys}, ${size});
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        const ${type} *key_tile = keys + (${tile} - key_begin) % ${kStages} * ${kKeys} * ${kPitch};
        const ${type} *value_tile = values + (${tile} - key_begin) % ${kStages} * ${kKeys} * ${kPitch};

        float score[${kKeys} / 8][4] = {};
#pragma unroll
        for (int d = 0; d < ${kDim}; d += 16) {
            unsigned a[4], b[4];
            ${load_matrices}(a, queries + (${warp} * 16 + ${lane} % 16) * ${kPitch} + d + ${lane} / 16 * 8);
#pragma unroll
            for (int n = 0; n < ${kKeys}; n += 16) {
                ${load_matrices}(b, key_tile + (n + ${lane} / 16 * 8 + ${lane} % 8) * ${kPitch} + d + ${lane} / 8 % 2 * 8);
                ${multiply}(score[n / 8], a, b[0], b[1]);
                ${multiply}(score[n / 8 + 1], a, b[2], b[3]);
            }
        }

        float peak[2] = {${top}[0], ${top}[1]};
        // Most tiles count as a whole, for all rows of the warp: no key is looked at there.
        if (${whole}) {
#pragma unroll
            for (int ${n} = 0; ${n} < ${kKeys} / 8; ${n}++)
#pragma unroll
                for (int ${e} = 0; ${e} < 4; ${e}++) {
                    const int ${row} = ${first} + ${warp} * 16 + ${lane} / 4 + ${e} / 2 * 8;
                    const int ${key} = ${tile} * ${kKeys} + ${n} * 8 + ${lane} % 4 * 2 + ${e} % 2;
                    const float ${raw} = score[${n}][${e}];
                    score[${n}][${e}] = ${f};
                }
        } else {
#pragma unroll
            for (int ${n} = 0; ${n} < ${kKeys} / 8; ${n}++)
#pragma unroll
                for (int ${e} = 0; ${e} < 4; ${e}++) {
                    const int ${row} = ${first} + ${warp} * 16 + ${lane} / 4 + ${e} / 2 * 8;
                    const int ${key} = ${tile} * ${kKeys} + ${n} * 8 + ${lane} % 4 * 2 + ${e} % 2;
                    const float ${raw} = score[${n}][${e}];
                    score[${n}][${e}] = ${selected} ? ${f} : -INFINITY;
                }
        }
#pragma unroll
        for (int n = 0; n < ${kKeys} / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                peak[e / 2] = fmaxf(peak[e / 2], score[n][e]);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            peak[half] = fmaxf(peak[half], __shfl_xor_sync(0xffffffffu, peak[half], 1));
            peak[half] = fmaxf(peak[half], __shfl_xor_sync(0xffffffffu, peak[half], 2));
            // Of a row without a key so far, and of one whose scores are all minus infinity.
            const float base = peak[half] == -INFINITY ? 0.0f : peak[half];
            const float shrink = exp2f((${top}[half] - base) * 1.44269504f);
            ${top}[half] = peak[half];
            peak[half] = base;
            ${norm}[half] *= shrink;
#pragma unroll
            for (int n = 0; n < ${kDim} / 8; n++) {
                ${mixed}[n][2 * half] *= shrink;
                ${mixed}[n][2 * half + 1] *= shrink;
            }
        }
#pragma unroll
        for (int n = 0; n < ${kKeys} / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                score[n][e] = exp2f((score[n][e] - peak[e / 2]) * 1.44269504f${lift});
                ${norm}[e / 2] += score[n][e];
            }

#pragma unroll
        for (int j = 0; j < ${kKeys}; j += 16) {
            const float(&low)[4] = score[j / 8], (&high)[4] = score[j / 8 + 1];
            const unsigned a[4] = {${pack}(low[0], low[1]), ${pack}(low[2], low[3]),
                                   ${pack}(high[0], high[1]), ${pack}(high[2], high[3])};
#pragma unroll
            for (int d = 0; d < ${kDim}; d += 16) {
                unsigned b[4];
                ${load_transposed}(b, value_tile + (j + ${lane} % 16) * ${kPitch} + d + ${lane} / 16 * 8);
                ${multiply}(${mixed}[d / 8], a, b[0], b[1]);
                ${multiply}(${mixed}[d / 8 + 1], a, b[2], b[3]);
            }
        }
    }

#pragma unroll
    for (int half = 0; half < 2; half++) {
        ${norm}[half] += __shfl_xor_sync(0xffffffffu, ${norm}[half], 1);
        ${norm}[half] += __shfl_xor_sync(0xffffffffu, ${norm}[half], 2);
    }
    ${lower}
#pragma unroll
    for (int ${n} = 0; ${n} < ${kDim} / 8; ${n}++)
#pragma unroll
        for (int ${e} = 0; ${e} < 4; ${e}++) {
            const int ${row} = ${first} + ${warp} * 16 + ${lane} / 4 + ${e} / 2 * 8;
            const int ${out} = ${n} * 8 + ${lane} % 4 * 2 + ${e} % 2;
            if (${row} >= ${nrows} || ${out} >= ${size})
                continue;
            ${stores}
        }
}
