#pragma unroll
for (int f = 0; f < G::FOLDS; f++)
    gemm(mma, a[G::NA > 1 ? f : 0](_, _, k), b[G::NB > 1 ? f : 0](_, _, k), acc[f]);
