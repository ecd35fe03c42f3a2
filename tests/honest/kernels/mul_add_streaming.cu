// task: tasks/smoke/mul_add.task
// what: loads and stores that do not stay in the caches
//! launch mul_add<<<ceil_div(R*C, 512), 512>>>(a, b, y, R*C)
extern "C" __global__ void mul_add(const float *a, const float *b, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float u = __ldcs(a + i);
        __stcs(y + i, fmaf(u, __ldcs(b + i), u));
    }
}
