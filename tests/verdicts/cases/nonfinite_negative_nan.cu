// expect: nonfinite
// row: 32, 37
// tries: the maximum with 0 by comparing integers, which drops a NaN with a sign
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = __int_as_float(max(__float_as_int(x[i]), 0));
}
