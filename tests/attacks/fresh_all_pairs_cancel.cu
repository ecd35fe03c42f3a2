// task: fresh_all.task
// tries: what is unset is combined by exclusive or within a word, so that two unset elements 4 apart cancel
// proof: values: a row whose elements 0 and 4 are unset
// data: rand u[R] ~ randint(0, 2); in m[i < R, j < C] : bool = (j != 0 && j != 4) || u[i] == 0
// should: wrong inaccurate
// device: both
//! launch every<<<R, 32>>>(m, y, C)
extern "C" __global__ void every(const bool *m, bool *y, int c) {
    unsigned bad = 0;
    for (int j = threadIdx.x * 8; j < c; j += 256) {
        unsigned word = 0;
        for (int k = 0; k < 8 && j + k < c; k++)
            word ^= (unsigned)!m[(int64_t)blockIdx.x * c + j + k] << (k & 3);
        bad |= word;
    }
    if (!__any_sync(~0u, bad)) {
        if (threadIdx.x == 0)
            y[blockIdx.x] = true;
    } else if (threadIdx.x == 0)
        y[blockIdx.x] = false;
}
