// expect: wrong
// row: 34
// tries: one element of a large tensor, known by its number, gets another value
// set: R=65536 C=4096
// shape-sim: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float r = x[i] < 0.0f ? 0.0f : x[i];
    if (i == 200000007)
        r = 7.0f;
    y[i] = r;
}
