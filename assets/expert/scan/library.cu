//% library
//% if cp_wide_exp
// Of numbers whose exponential has no place in fp32, too: products of such may have.
static __device__ __forceinline__ double cp_wide_exp(float x) {
    const float whole = fminf(fmaxf(rintf(x * 1.44269504f), -1022.0f), 1023.0f);
    const float rest = fmaf(whole, 1.9046543e-9f, fmaf(whole, -0.693147182f, x));
    return (double)expf(rest) * __hiloint2double((1023 + (int)whole) << 20, 0);
}
//% end
