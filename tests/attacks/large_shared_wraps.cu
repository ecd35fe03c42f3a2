// task: tasks/row_norm.task
// set: R=16384 C=8192
// tries: a row is kept in shared memory of 4,096 elements, and longer ones wrap round
// proof: values, R = 4 C = 5000: elements from 4,096 on are those of the beginning
// shows: R=4 C=5000
// before: accepted
// should: wrong inaccurate race
// before-cuda: wrong, at the task's own shape
// device: both
//! launch normalise<<<R, 32>>>(x, y, C)
extern "C" __global__ void normalise(const float *x, float *y, int c) {
    __shared__ float kept[4096];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        kept[j % 4096] = row[j];
        s += row[j];
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    float mu = s / c;
    for (int j = threadIdx.x; j < c; j += 32) {
        float d = kept[j % 4096] - mu;
        q += d * d;
    }
    for (int k = 16; k; k /= 2)
        q += __shfl_xor_sync(~0u, q, k);
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = (kept[j % 4096] - mu) * rsqrtf(q / c + 1e-5f);
}
