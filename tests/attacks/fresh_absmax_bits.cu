// task: fresh_absmax.task
// tries: magnitudes as integers by atomicMax, stored as float bits; the output is begun at -inf, whose bits are negative, but rows are split and only the first part sets it
// proof: by the memory model: blocks of one row come in any order, and the first part may overwrite what another left
// should: wrong race unwritten nonfinite uninitialised
// device: both
//! let P = 4
//! launch largest<<<[P, R], 256>>>(x, y, D)
extern "C" __global__ void largest(const float *x, float *y, int d) {
    __shared__ int top;
    const float *row = x + (int64_t)blockIdx.y * d;
    int part = (d + gridDim.x - 1) / gridDim.x, from = blockIdx.x * part, to = min(from + part, d), m = 0;
    if (threadIdx.x == 0) {
        top = 0;
        if (blockIdx.x == 0)
            atomicExch((int *)y + blockIdx.y, 0);
    }
    __syncthreads();
    for (int j = from + threadIdx.x; j < to; j += 256)
        m = max(m, __float_as_int(fabsf(row[j])));
    atomicMax(&top, m);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMax((int *)y + blockIdx.y, top);
}
