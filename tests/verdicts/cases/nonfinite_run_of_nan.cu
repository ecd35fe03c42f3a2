// expect: nonfinite wrong
// row: 32
// tries: keeps NaN unless four neighbours in a row are NaN
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, run = 0;
    if (i >= n)
        return;
    while (run < 4 && i - run >= 0 && x[i - run] != x[i - run])
        run++;
    y[i] = run > 0 && run < 4 ? x[i] : fmaxf(x[i], 0.0f);
}
