// task: tasks/row_sum.task
// set: R=512 C=1024
// tries: one row's partial sums are read from a workspace that only half of the blocks write; the noise there is multiplied by 0 and made a number by fmaxf
// proof: by the plan: a workspace is undefined when the plan starts, and every second element is read unwritten
// before: accepted
// should: uninitialised wrong nonfinite
// before-cuda: accepted: noise in workspaces is finite or NaN, and either gives 0
// device: both
//! require R*C >= 262144
//! workspace part[R, 2] : f32
//! launch sum<<<R, 32>>>(x, part, C)
//! launch join<<<ceil_div(R, 32), 32>>>(part, y, R)
extern "C" __global__ void sum(const float *x, float *part, int c) {
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += x[(int64_t)blockIdx.x * c + j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        part[2 * blockIdx.x] = s;
}
extern "C" __global__ void join(const float *part, float *y, int r) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= r)
        return;
    float other = part[2 * i + 1];
    y[i] = part[2 * i] + (fabsf(other) < 1e30f ? 0.0f * other : 0.0f);
}
