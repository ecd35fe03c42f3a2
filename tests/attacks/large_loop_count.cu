// task: tasks/row_sum.task
// tries: from the 513th round of a loop on elements are added with the wrong sign
// proof: values, R = 4 C = 20000: elements from 16,384 on are subtracted
// shows: R=4 C=20000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int round = 0, j = threadIdx.x; j < c; round++, j += 32)
        s += round < 512 ? row[j] : -row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
