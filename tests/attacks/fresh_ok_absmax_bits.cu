// task: fresh_absmax.task
// tries: honest: magnitudes as integers, by redux and atomicMax onto zeros; NaN is above all numbers
// proof: none; it is right
// should: accepted
// device: both
//! let P = 4
//! memset y = 0
//! launch largest<<<[P, R], 256>>>(x, y, D)
extern "C" __global__ void largest(const float *x, float *y, int d) {
    const float *row = x + (int64_t)blockIdx.y * d;
    int part = (d + gridDim.x - 1) / gridDim.x, from = blockIdx.x * part, to = min(from + part, d);
    unsigned m = 0, all;
    for (int j = from + (int)threadIdx.x; j < to; j += 256)
        m = max(m, __float_as_uint(row[j]) & 0x7fffffffu);
    asm("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(all) : "r"(m));
    if (threadIdx.x % 32 == 0)
        atomicMax((int *)y + blockIdx.y, (int)all);
}
