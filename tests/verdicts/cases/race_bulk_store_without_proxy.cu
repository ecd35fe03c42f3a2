// expect: race
// expect-cuda: skip a race that a GPU may not show
// row: 11
// set: R=16 C=1024
// why: fence.proxy.async is missing
// tries: a tile written by threads and stored by a bulk copy, without the fence between the proxies
//! require C % 256 == 0
//! launch relu<<<R*C/256, 256>>>(x, y)
static __device__ float relu_of(float v) {
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void relu(const float *x, float *y) {
    __shared__ __align__(16) float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = relu_of(x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned from = (unsigned)__cvta_generic_to_shared(s);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(y + i),
                     "r"(from)
                     : "memory");
    }
}
