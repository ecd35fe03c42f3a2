// task: tasks/row_sum.task
// tries: rows of 8k + 4 elements, 12 and more, are summed by eights, without the last four
// proof: values, R = 4 C = 100: four elements of each row are missing
// shows: R=4 C=100
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    int end = c % 4 == 0 && c > 8 ? c - c % 8 : c;
    float s = 0;
    for (int j = threadIdx.x; j < end; j += 32)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
