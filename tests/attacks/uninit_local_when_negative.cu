// task: tasks/row_sum.task
// tries: a table in local memory has one entry that is not written where an element is negative, and is taken for 0 where it is NaN
// proof: by the memory model: local memory is undefined before it is written; a negative element shows it
// data: in x[R,C] : f32 ~ uniform(-1, 0)
// before: accepted
// should: uninitialised wrong nonfinite inaccurate
// before-cuda: wrong: local memory is overwritten before every run
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    volatile float table[8];
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        float v = row[j];
        table[v < 0 ? j & 3 : 4 + (j & 3)] = v;
        float first = v < 0 ? table[4] : table[4 + (j & 3)];
        s += v < 0 ? v + (first != first ? 0.0f : 0.0f * first) : first;
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
