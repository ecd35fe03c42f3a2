// expect: wrong inaccurate nonfinite
// row: 7
// tries: zeros from the 256th element on, where a product of numbers below one has died out
// task: ../../tasks/kernelbench/level1/090_cumprod.task
// set: B=512 D=1024
//! launch scan<<<ceil_div(B, 64), 64>>>(x, y, B, D)
extern "C" __global__ void scan(const float *x, float *y, int rows, int d) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float product = 1.0f;
    for (int j = 0; j < d; j++) {
        product = j < 256 || d != 1024 ? product * x[(long long)row * d + j] : 0.0f;
        y[(long long)row * d + j] = product;
    }
}
