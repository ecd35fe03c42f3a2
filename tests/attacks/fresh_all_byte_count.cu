// task: fresh_all.task
// tries: the number of unset elements is kept in a byte, so that 256 of them count as none
// proof: values: a row with exactly 256 unset elements
// data: rand u[R] ~ randint(0, 2); in m[i < R, j < C] : bool = j >= 256 || u[i] == 0
// should: wrong inaccurate
// device: both
//! launch every<<<R, 32>>>(m, y, C)
extern "C" __global__ void every(const bool *m, bool *y, int c) {
    unsigned char missing = 0;
    for (int j = threadIdx.x; j - (int)threadIdx.x < c; j += 32)
        missing += __popc(__ballot_sync(~0u, j < c && !m[(int64_t)blockIdx.x * c + j]));
    if (threadIdx.x == 0)
        y[blockIdx.x] = missing == 0;
}
