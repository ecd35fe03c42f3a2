// task: tasks/kernelbench/level1/004_matrix_vector_multiplication.task
// set: M=64 K=16384
// what: a block a row in float4
//! require K % 4 == 0
//! launch matvec<<<M, 256>>>(A, B, C, K // 4)
extern "C" __global__ void matvec(const float4 *a, const float4 *b, float *c, int quads) {
    __shared__ float warps[8];
    const float4 *row = a + (long long)blockIdx.x * quads;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < quads; k += 256) {
        float4 u = row[k], v = __ldg(b + k);
        sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++)
            sum += warps[w];
        c[blockIdx.x] = sum;
    }
}
