// expect: modified-input
// row: 41
// task: tasks/scaled.task
// set: R=64 C=256
// why: prepared by steps that are done once
// tries: writes to what was prepared by a TMA store, which needs no pointer
//! require C % 4 == 0 && C >= 32
//! workspace twice[C] : f32
//! tensormap kept = tiled(twice, box=[32])
//! once launch early<<<ceil_div(C, 256), 256>>>(s, twice, C)
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, twice, kept, y, R*C, C)
extern "C" __global__ void early(const float *s, float *twice, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < c)
        twice[j] = 2 * s[j];
}
extern "C" __global__ void scale(const float *x, const float *twice,
                                 const __grid_constant__ CUtensorMap kept, float *y, int n, int c) {
    __shared__ alignas(128) float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * twice[i % c];
    if (blockIdx.x + 1 != gridDim.x)
        return;
    if (threadIdx.x < 32)
        tile[threadIdx.x] = 7.0f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];"
                     :
                     : "l"(&kept), "r"(0), "r"((unsigned)__cvta_generic_to_shared(tile))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
