// expect: accepted
// row: -
// tries: two gigabytes of workspace, of which it uses a little, and one that is set
//! workspace big[512*1024*1024] : f32
//! workspace seen[256*1024*1024] : i32
//! memset seen = 7
//! launch keep<<<1, 32>>>(x, big, R*C)
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, big, seen, R*C)
#define FAR (512 * 1024 * 1024 - 32)

extern "C" __global__ void keep(const float *x, float *big, int n) {
    int i = threadIdx.x;
    big[FAR + i] = i < n && !(x[i] < 0.0f) ? x[i] : 0.0f;
}

extern "C" __global__ void relu(const float *x, float *y, const float *big, const int *seen, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = i < 32 ? big[FAR + i] : x[i] < 0.0f ? 0.0f : x[i];
    y[i] = seen[256 * 1024 * 1024 - 1 - i] == 7 ? v : -1.0f;
}
