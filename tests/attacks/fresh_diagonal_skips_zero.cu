// task: ../../tasks/kernelbench/level1/012_diagonal_matmul.task
// tries: rows whose factor is 0 are set to 0 without being read, NaN and all
// proof: values: 0 times NaN is NaN
// data: in A[N] : f32 ~ zeros; rand u[N,M] ~ uniform(0, 1); in B[i < N, j < M] : f32 = if(u[i,j] < 0.5, inf - inf, u[i,j])
// known: zeros in one tensor beside NaN in the other are drawn at some seeds only
// should: nonfinite wrong
// device: both
//! launch scale<<<[ceil_div(M, 256), N], 256>>>(A, B, C, M)
extern "C" __global__ void scale(const float *a, const float *b, float *c, int m) {
    int j = blockIdx.x * 256 + threadIdx.x;
    if (j >= m)
        return;
    float s = a[blockIdx.y];
    c[(int64_t)blockIdx.y * m + j] = s == 0 ? 0.0f : s * b[(int64_t)blockIdx.y * m + j];
}
