// expect: race
// expect-cuda: skip a race that a GPU may not show
// row: 11
// why: no barrier orders them
// tries: a loop over tiles in shared memory with one barrier a round instead of two
//! launch relu<<<1, 256>>>(x, y, R*C)
static __device__ float relu_of(float v) {
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ float s[256];
    for (int base = 0; base < n; base += 256) {
        int i = base + threadIdx.x, other = base + 255 - threadIdx.x;
        s[threadIdx.x] = i < n ? x[i] : 0.0f;
        __syncthreads();
        if (other < n)
            y[other] = relu_of(s[255 - threadIdx.x]);
    }
}
