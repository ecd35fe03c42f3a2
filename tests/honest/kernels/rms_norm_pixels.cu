// task: tasks/kernelbench/level1/036_rms_norm.task
// set: N=8 C=32 H=64 W=64
// what: a thread a pixel, its channels a plane apart
//! launch normalise<<<ceil_div(N*H*W, 128), 128>>>(x, y, C, H*W, N*H*W)
extern "C" __global__ void normalise(const float *x, float *y, int channels, int pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long base = (long long)(i / pixels) * channels * pixels + i % pixels;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        float v = x[base + (long long)c * pixels];
        sum += v * v;
    }
    float rms = sqrtf(sum / channels + 1e-5f);
    for (int c = 0; c < channels; c++)
        y[base + (long long)c * pixels] = x[base + (long long)c * pixels] / rms;
}
