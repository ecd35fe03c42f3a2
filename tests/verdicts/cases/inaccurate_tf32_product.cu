// expect: inaccurate
// row: 4
// tries: operands rounded to TF32 in an fp32 task
// task: tasks/matmul.task
//! launch product<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(a, b, t, y, M, K, N)
static __device__ float rounded(float x) { /* to TF32, nearest */
    return __int_as_float((__float_as_int(x) + 0x1000) & ~0x1fff);
}
extern "C" __global__ void product(const float *a, const float *b, const int *t, float *y, int m,
                                   int inner, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < inner; k++)
        sum += rounded(a[i * inner + k]) * rounded(b[t[k] * n + j]);
    y[i * n + j] = sum;
}
