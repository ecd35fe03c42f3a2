// task: tasks/layers/layer_norm_backward.task
// set: B=512 D=2048
// what: two sums of a row at once, then the gradient
//! launch backward<<<B, 256>>>(dy, x, mu, rstd, weight, dx, D)
extern "C" __global__ void backward(const float *dy, const float *x, const float *mu,
                                    const float *rstd, const float *weight, float *dx, int d) {
    __shared__ float first[8], second[8];
    long long base = (long long)blockIdx.x * d;
    float mean = mu[blockIdx.x], scale = rstd[blockIdx.x], a = 0.0f, c = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256) {
        float g = dy[base + j] * weight[j];
        a += g;
        c += g * ((x[base + j] - mean) * scale);
    }
    for (int step = 16; step > 0; step /= 2) {
        a += __shfl_xor_sync(0xffffffffu, a, step);
        c += __shfl_xor_sync(0xffffffffu, c, step);
    }
    if (threadIdx.x % 32 == 0) {
        first[threadIdx.x / 32] = a;
        second[threadIdx.x / 32] = c;
    }
    __syncthreads();
    a = c = 0.0f;
    for (int w = 0; w < 8; w++) {
        a += first[w];
        c += second[w];
    }
    a /= d;
    c /= d;
    for (int j = threadIdx.x; j < d; j += 256) {
        float n = (x[base + j] - mean) * scale;
        dx[base + j] = scale * (dy[base + j] * weight[j] - a - n * c);
    }
}
