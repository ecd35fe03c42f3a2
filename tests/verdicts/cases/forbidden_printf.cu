// expect: forbidden
// row: 25
// tries: printf
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __device__ int printf(const char *, ...);
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        printf("hello");
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
