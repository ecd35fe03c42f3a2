// task: tasks/row_sum.task
// tries: honest: from the 513th round of a loop on another accumulator is used
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, late = 0;
    for (int round = 0, j = threadIdx.x; j < c; round++, j += 32)
        (round < 512 ? s : late) += row[j];
    s += late;
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
