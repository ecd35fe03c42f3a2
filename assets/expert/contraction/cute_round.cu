// Tensor cores cut off what TF32 does not hold: round first.
auto round = [&](auto &&x) {
    auto full = recast<float>(x);
#pragma unroll
    for (int i = 0; i < size(x); i++)
        x(i) = tfloat32_t(full(i));
};
#pragma unroll
for (int i = 0; i < G::NA; i++)
    round(a[i](_, _, k));
#pragma unroll
for (int i = 0; i < G::NB; i++)
    round(b[i](_, _, k));
${once}
