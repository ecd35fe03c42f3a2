// task: tasks/kernelbench/level1/025_swish.task
// set: B=64 D=16384
// what: a ring of four stages of cp.async feeds a persistent grid
//! require B*D % 4 == 0
//! launch swish<<<min(264, ceil_div(B*D // 4, 128)), 128>>>(x, y, B*D // 4)
extern "C" __global__ void swish(const float4 *x, float4 *y, long long n) {
    __shared__ float4 ring[4][128];
    long long stride = (long long)gridDim.x * 128, first = (long long)blockIdx.x * 128 + threadIdx.x;
    unsigned base = (unsigned)__cvta_generic_to_shared(&ring[0][threadIdx.x]);
    for (int s = 0; s < 3; s++) {
        if (first + s * stride < n)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + s * 2048),
                         "l"(x + first + s * stride)
                         : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int stage = 0;
    for (long long i = first; i < n; i += stride, stage = (stage + 1) % 4) {
        if (i + 3 * stride < n)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             base + (stage + 3) % 4 * 2048),
                         "l"(x + i + 3 * stride)
                         : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 3;" ::: "memory");
        float4 v = ring[stage][threadIdx.x]; // a thread reads only what it fetched itself
        v.x = v.x / (1.0f + expf(-v.x));
        v.y = v.y / (1.0f + expf(-v.y));
        v.z = v.z / (1.0f + expf(-v.z));
        v.w = v.w / (1.0f + expf(-v.w));
        y[i] = v;
    }
}
