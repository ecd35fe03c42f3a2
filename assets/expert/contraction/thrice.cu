// x = big + small, both TF32: of the four products the smallest is left out.
unsigned a_small[G::NA][MI][4], b_small[G::NB][NI / 2][4];
#pragma unroll
for (int i = 0; i < G::NA * MI * 4; i++) {
    unsigned &big = a[i / 4 / MI][i / 4 % MI][i % 4];
    const float x = __uint_as_float(big);
    big = gemm_tf32(x);
    a_small[i / 4 / MI][i / 4 % MI][i % 4] = gemm_tf32(x - __uint_as_float(big));
}
#pragma unroll
for (int i = 0; i < G::NB * NI * 2; i++) {
    unsigned &big = b[i / 2 / NI][i / 4 % (NI / 2)][i % 4];
    const float x = __uint_as_float(big);
    big = gemm_tf32(x);
    b_small[i / 2 / NI][i / 4 % (NI / 2)][i % 4] = gemm_tf32(x - __uint_as_float(big));
}
#pragma unroll
for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
    for (int i = 0; i < 3 * MI * NI; i++) {
        const int part = i / (MI * NI), r = i / NI % MI, c = i % NI;
        const int fa = G::NA > 1 ? f : 0, fb = G::NB > 1 ? f : 0;
        gemm_mma_tf32(acc[f][r][c], part == 0 ? a_small[fa][r] : a[fa][r],
                 (part == 1 ? b_small[fb][c / 2] : b[fb][c / 2]) + c % 2 * 2);
    }
