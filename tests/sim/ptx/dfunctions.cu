// Double-precision functions; sin and pow call functions of the module.
#define OUT 16
extern "C" __global__ void dfunctions(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double a = __uint_as_float(in[i]);
    double r[8] = {exp(a), erf(a), tanh(a), log(fabs(a)), sin(a), a / 3.1, sqrt(fabs(a)), pow(fabs(a), 1.5)};
    for (int k = 0; k < 8; k++) {
        double x = r[k] != r[k] ? 1.5 : r[k];
        out[i * OUT + 2 * k] = __double2loint(x);
        out[i * OUT + 2 * k + 1] = __double2hiint(x);
    }
}
