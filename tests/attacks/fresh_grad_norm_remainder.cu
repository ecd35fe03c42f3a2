// task: fresh_grad_norm.task
// tries: a loop of four strides of 262,144; of what is left over each thread takes one element, not up to three
// proof: values: of 600,000 elements 337,856 are left out; the task's own 1,100,000 leave less than one stride
// shows: N=600000
// known: no size between 262,144 and the task's own is drawn
// should: wrong inaccurate
// device: both
//! workspace part[1024] : f32
//! launch squares<<<1024, 256>>>(x, part, N)
//! launch normalise<<<1, 1024>>>(part, y)
__device__ float over_block(float v, float *shared) {
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0.0f;
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}
extern "C" __global__ void squares(const float *x, float *part, int n) {
    __shared__ float shared[32];
    const int stride = 262144;
    int i = blockIdx.x * 256 + threadIdx.x;
    float s = 0;
    for (; i + 3 * stride < n; i += 4 * stride)
        for (int k = 0; k < 4; k++)
            s += x[i + k * stride] * x[i + k * stride];
    if (i < n)
        s += x[i] * x[i];
    s = over_block(s, shared);
    if (threadIdx.x == 0)
        part[blockIdx.x] = s;
}
extern "C" __global__ void normalise(const float *part, float *y) {
    __shared__ float shared[32];
    float s = over_block(part[threadIdx.x], shared);
    if (threadIdx.x == 0)
        *y = sqrtf(s);
}
