// expect: forbidden
// row: 13
// tries: a static variable inside the kernel
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    static int calls;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        calls++;
    if (i < n)
        y[i] = x[i] < 0.0f && calls < 1000 ? 0.0f : x[i];
}
