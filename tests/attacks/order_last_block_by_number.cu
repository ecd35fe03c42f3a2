// task: ../../tasks/smoke/softmax.task
// set: R=4 C=512
// tries: the block with the highest number adds what the others left, as if it were the last to end
// proof: by the launch: blocks run in any order; the highest may read parts that are not written yet
// before: race
// should: race uninitialised wrong nonfinite
// before-cuda: wrong or unstable
// device: both
//! workspace part[R, 4] : f32
//! launch sums<<<4*R, 32>>>(x, y, part, C)
extern "C" __global__ void sums(const float *x, float *y, float *part, int c) {
    int r = blockIdx.x / 4, q = blockIdx.x % 4;
    const float *row = x + (int64_t)r * c;
    float m = -INFINITY, s = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    m = __any_sync(~0u, nan) ? NAN : m;
    for (int j = 32 * q + threadIdx.x; j < c; j += 128)
        s += expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        part[blockIdx.x] = s;
    __threadfence();
    if (q != 3)
        return;
    s = 0;
    for (int k = 0; k < 4; k++)
        s += ((volatile float *)part)[4 * r + k];
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)r * c + j] = expf(row[j] - m) / s;
}
