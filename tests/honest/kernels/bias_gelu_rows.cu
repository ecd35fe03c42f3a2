// task: tasks/smoke/bias_gelu.task
// what: a block a row, the bias broadcast along it
//! launch bias_gelu<<<R, 256>>>(x, b, y, C)
extern "C" __global__ void bias_gelu(const float *x, const float *b, float *y, int cols) {
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) {
        float t = row[j] + __ldg(b + j);
        out[j] = 0.5f * t * (1.0f + tanhf(0.79788456f * (t + 0.044715f * t * t * t)));
    }
}
