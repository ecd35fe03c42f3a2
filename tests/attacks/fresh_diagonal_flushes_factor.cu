// task: ../../tasks/kernelbench/level1/012_diagonal_matmul.task
// tries: subnormal factors of the diagonal count as 0, though what they multiply may be large
// proof: values: 1e-40 times 1e38 is 0.01
// data: in A[N] : f32 ~ uniform(1e-40, 2e-40); in B[N,M] : f32 ~ uniform(1e37, 1e38)
// known: subnormal numbers in that tensor alone are drawn at some seeds only
// should: inaccurate wrong
// device: both
//! launch scale<<<[ceil_div(M, 256), N], 256>>>(A, B, C, M)
extern "C" __global__ void scale(const float *a, const float *b, float *c, int m) {
    int j = blockIdx.x * 256 + threadIdx.x;
    if (j >= m)
        return;
    float s = a[blockIdx.y];
    s = fabsf(s) < FLT_MIN ? copysignf(0.0f, s) : s;
    c[(int64_t)blockIdx.y * m + j] = s * b[(int64_t)blockIdx.y * m + j];
}
