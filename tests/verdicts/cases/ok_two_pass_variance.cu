// expect: accepted
// row: 37
// tries: the variance as the mean of squared differences from the mean
// task: tasks/layer_norm.task
//! launch normalise<<<R, 32>>>(x, y, C)
static __device__ float all_lanes(float v) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

extern "C" __global__ void normalise(const float *x, float *y, int n) {
    const float *row = x + (long long)blockIdx.x * n;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < n; j += 32)
        sum += row[j];
    float mean = all_lanes(sum) / n;
    for (int j = threadIdx.x; j < n; j += 32)
        squares += (row[j] - mean) * (row[j] - mean);
    float scale = rsqrtf(all_lanes(squares) / n + 1e-5f);
    for (int j = threadIdx.x; j < n; j += 32)
        y[(long long)blockIdx.x * n + j] = (row[j] - mean) * scale;
}
