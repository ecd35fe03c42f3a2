// Double precision: equal bits on an H200.
#define OUT 28
extern "C" __global__ void doubles(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double a = __hiloint2double(in[i], in[n + i]), b = __hiloint2double(in[n + i], in[2 * n + i]),
           c = (double)__uint_as_float(in[2 * n + i]);
    unsigned *o = out + i * OUT;
    double r[12] = {a + b,        a * c,        fma(a, c, b), c / 3.0,    __dsqrt_rn(fabs(c)), rint(c),
                    __dadd_rz(a, b), __drcp_rn(c), floor(c),    fmin(a, b), (double)(int)in[i],
                    (double)((long long)in[i] << 32 | in[n + i])};
    for (int k = 0; k < 12; k++) {
        double x = r[k] != r[k] ? 1.5 : r[k]; // the sign and payload of a NaN are nobody's promise
        o[2 * k] = __double2loint(x);
        o[2 * k + 1] = __double2hiint(x);
    }
    o[24] = __float_as_uint(__double2float_rn(a));
    o[25] = __float_as_uint(__double2float_rz(b));
    o[26] = __double2int_rz(c);
    o[27] = (unsigned)__double2ull_rn(c);
}
