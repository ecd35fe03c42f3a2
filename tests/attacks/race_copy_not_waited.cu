// task: tasks/row_sum.task
// tries: cp.async ahead; from the 40th tile on one group too few is waited for
// proof: by PTX: the newest copy may be under way when its place is read
// shows: R=4 C=8192
// before: accepted
// should: race wrong nonfinite inaccurate uninitialised
// before-cuda: wrong
// device: both
//! require C % 4 == 0
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ alignas(16) float tile[2][128];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    int tiles = (c + 127) / 128;
    for (int t = 0; t <= tiles; t++) {
        int j = t * 128 + threadIdx.x * 4;
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[t % 2][threadIdx.x * 4]);
        if (t < tiles) {
            int bytes = j < c ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                         "l"(row + (j < c ? j : 0)), "r"(bytes) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (t == 0)
            continue;
        if (t < 40)
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        else
            asm volatile("cp.async.wait_group 2;" ::: "memory");
        const float *own = &tile[(t - 1) % 2][threadIdx.x * 4];
        s += own[0] + own[1] + own[2] + own[3];
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
