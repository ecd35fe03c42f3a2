#pragma unroll
for (int i = 0; i < G::NA * MI * 4; i++)
    a[i / 4 / MI][i / 4 % MI][i % 4] =
        gemm_tf32(__uint_as_float(a[i / 4 / MI][i / 4 % MI][i % 4]));
#pragma unroll
for (int i = 0; i < G::NB * NI * 2; i++)
    b[i / 2 / NI][i / 4 % (NI / 2)][i % 4] =
        gemm_tf32(__uint_as_float(b[i / 2 / NI][i / 4 % (NI / 2)][i % 4]));
${once}
