// task: tasks/layers/causal_conv1d.task
// set: B=2 C=64 L=1024
// what: a sequence a block, its past in shared memory
//! require R <= 64
//! launch conv<<<B*C, 256>>>(x, w, b, y, C, L, R)
extern "C" __global__ void conv(const float *x, const float *w, const float *b, float *y,
                                int channels, int length, int taps) {
    __shared__ float past[256 + 63], filter[64];
    int c = blockIdx.x % channels;
    const float *row = x + (long long)blockIdx.x * length;
    if (threadIdx.x < taps)
        filter[threadIdx.x] = w[c * taps + threadIdx.x];
    for (int tile = 0; tile < length; tile += 256) {
        __syncthreads();
        for (int e = threadIdx.x; e < 256 + taps - 1; e += 256) {
            int t = tile + e - (taps - 1);
            past[e] = t >= 0 && t < length ? row[t] : 0.0f;
        }
        __syncthreads();
        float sum = b[c];
        for (int r = 0; r < taps; r++)
            sum += past[threadIdx.x + r] * filter[r];
        if (tile + threadIdx.x < length)
            y[(long long)blockIdx.x * length + tile + threadIdx.x] = sum;
    }
}
