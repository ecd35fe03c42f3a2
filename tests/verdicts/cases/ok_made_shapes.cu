// expect: accepted
// row: 6
// tries: a require line that no check shape satisfies, but others do
// scope: 0 of 4 check shapes,
//! require C % 192 == 0 || C == 1024 && R == 256
//! launch relu<<<[ceil_div(C, 64), R], 64>>>(x, y, C)
extern "C" __global__ void relu(const float *x, float *y, int cols) {
    int c = blockIdx.x * 64 + threadIdx.x;
    long long i = (long long)blockIdx.y * cols + c;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
