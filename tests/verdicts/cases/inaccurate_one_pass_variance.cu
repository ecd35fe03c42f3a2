// expect: inaccurate wrong
// row: 37
// tries: the variance as the mean of the squares less the square of the mean
// task: tasks/layer_norm.task
//! launch normalise<<<R, 32>>>(x, y, C)
extern "C" __global__ void normalise(const float *x, float *y, int n) {
    const float *row = x + (long long)blockIdx.x * n;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < n; j += 32) {
        sum += row[j];
        squares += row[j] * row[j];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        squares += __shfl_xor_sync(0xffffffffu, squares, step);
    }
    float mean = sum / n, variance = squares / n - mean * mean;
    float scale = rsqrtf((variance < 0.0f ? 0.0f : variance) + 1e-5f);
    for (int j = threadIdx.x; j < n; j += 32)
        y[(long long)blockIdx.x * n + j] = (row[j] - mean) * scale;
}
