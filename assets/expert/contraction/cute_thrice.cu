// x = big + small, both TF32: of the four products the smallest is left out.
auto split = [&](auto &&x, auto &&small) {
    auto full = recast<float>(x);
#pragma unroll
    for (int i = 0; i < size(x); i++) {
        const float value = full(i);
        x(i) = tfloat32_t(value);
        small(i) = tfloat32_t(value - float(x(i)));
    }
};
decltype(make_fragment_like(a[0](_, _, 0))) a_small[G::NA];
decltype(make_fragment_like(b[0](_, _, 0))) b_small[G::NB];
#pragma unroll
for (int i = 0; i < G::NA; i++)
    split(a[i](_, _, k), a_small[i]);
#pragma unroll
for (int i = 0; i < G::NB; i++)
    split(b[i](_, _, k), b_small[i]);
#pragma unroll
for (int f = 0; f < G::FOLDS; f++) {
    const int fa = G::NA > 1 ? f : 0, fb = G::NB > 1 ? f : 0;
    gemm(mma, a_small[fa], b[fb](_, _, k), acc[f]);
    gemm(mma, a[fa](_, _, k), b_small[fb], acc[f]);
    gemm(mma, a[fa](_, _, k), b[fb](_, _, k), acc[f]);
}
