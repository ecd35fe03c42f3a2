// What a block takes by itself: pairs of kernels that do as much in a better and a worse way.
// nvcc -ptx -arch=sm_80
extern "C" __global__ void chain(const float *x, float *y, int n) {
    float v = x[threadIdx.x];
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 32; k++)
            v = v * 1.5f + 1.0f;
    }
    y[threadIdx.x] = v;
}

extern "C" __global__ void apart(const float *x, float *y, int n) {
    float a = x[threadIdx.x], v[8];
    for (int k = 0; k < 8; k++)
        v[k] = a + k;
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 32; k++)
            v[k % 8] = v[k % 8] * 1.5f + 1.0f;
    }
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += v[k];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void one_load(const float *x, float *y, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        sum += x[i * 256 + threadIdx.x];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void four_loads(const float *x, float *y, int n) {
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < n; i++)
        sum += x[i * 256 + threadIdx.x];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void again(const float *x, float *y, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        sum += x[(i & 3) * 256 + threadIdx.x];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void banks(const float *x, float *y, int stride) {
    __shared__ float s[8192];
    for (int i = threadIdx.x; i < 8192; i += 256)
        s[i] = x[i];
    __syncthreads();
    float sum = 0;
    int at = threadIdx.x * stride;
#pragma unroll 1
    for (int i = 0; i < 64; i++) {
        sum += s[at & 8191];
        at += 1024;
    }
    y[threadIdx.x] = sum;
}
