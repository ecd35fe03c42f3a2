// expect: unsupported
// expect-cuda: skip the clusters of another GPU
// row: -
// tries: clusters, on a GPU that has none
// options: --device sim:a100
// why: this GPU has no clusters (compute capability 9.0)
//! launch relu<<<40, 256, cluster=2>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
