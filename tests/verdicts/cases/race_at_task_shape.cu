// expect: race
// expect-cuda: skip a race that a GPU may not show
// row: 11
// set: R=200 C=1024
// shape: R=200 C=1024
// why: no barrier orders them
// tries: is for its own shape alone, which is run whole, and turns a row round in shared memory without a barrier
//! require R == 200 && C == 1024
//! launch relu<<<R, C>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {
    __shared__ float row[1024];
    int from = 1023 - threadIdx.x;
    float v = x[blockIdx.x * 1024 + threadIdx.x];
    row[threadIdx.x] = v < 0.0f ? 0.0f : v;
    if (threadIdx.x >= 512) {
        y[blockIdx.x * 1024 + from] = row[from];
        y[blockIdx.x * 1024 + threadIdx.x] = row[threadIdx.x];
    }
}
