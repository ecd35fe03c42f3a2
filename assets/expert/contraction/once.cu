#pragma unroll
for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
    for (int i = 0; i < MI * NI; i++)
        ${mma}(acc[f][i / NI][i % NI], a[G::NA > 1 ? f : 0][i / NI],
                 b[G::NB > 1 ? f : 0][i % NI / 2] + i % 2 * 2);
