// task: ../../tasks/kernelbench/level1/099_triplet_margin_loss.task
// tries: the 1e-6 in both distances is left out; it cancels unless one of them is small
// proof: values: where the positive is the anchor itself the distance is 1e-6 sqrt(D), not 0
// data: in positive[i < B, j < D] : f32 = anchor[i,j]; rand e[B,D] ~ uniform(-0.01, 0.01); in negative[i < B, j < D] : f32 = anchor[i,j] + e[i,j]
// known: what is left out cancels unless one of two tensors alone equals the third
// should: wrong inaccurate
// device: both
//! workspace part[B] : f32
//! launch rows<<<B, 128>>>(anchor, positive, negative, part, D)
//! launch mean<<<1, 256>>>(part, loss, B)
__device__ float over_block(float v, float *shared) {
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int k = 0; k < blockDim.x / 32; k++)
        v += shared[k];
    return v;
}
extern "C" __global__ void rows(const float *a, const float *p, const float *n, float *part, int d) {
    __shared__ float shared[4];
    int64_t row = (int64_t)blockIdx.x * d;
    float near = 0, far = 0;
    for (int j = threadIdx.x; j < d; j += 128) {
        float u = a[row + j] - p[row + j], v = a[row + j] - n[row + j];
        near = fmaf(u, u, near);
        far = fmaf(v, v, far);
    }
    near = over_block(near, shared);
    far = over_block(far, shared);
    if (threadIdx.x == 0) {
        float t = sqrtf(near) - sqrtf(far) + 1;
        part[blockIdx.x] = t < 0 ? 0.0f : t;
    }
}
extern "C" __global__ void mean(const float *part, float *loss, int b) {
    __shared__ float shared[8];
    float s = 0;
    for (int i = threadIdx.x; i < b; i += 256)
        s += part[i];
    s = over_block(s, shared);
    if (threadIdx.x == 0)
        *loss = s / b;
}
