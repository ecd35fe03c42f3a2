// task: second_parity.task
// tries: rows of whole words are added as words, four counts in bytes: right up to 255 words a lane
// proof: values: a row of 40,000 set elements
// shows: R=1 C=40000
// data: in m[R,C] : bool ~ bernoulli(1)
// known: so many elements in one row, all of them set, are drawn at few seeds
// should: wrong inaccurate
// device: both
//! launch k<<<R, 32>>>(m, odd, n, C)
extern "C" __global__ void k(const unsigned char *m, unsigned char *odd, int *n, int c) {
    m += (int64_t)blockIdx.x * c;
    unsigned w = 0;
    int s = 0;
    if (c % 4 == 0) {
        for (int j = threadIdx.x; j < c / 4; j += 32)
            w += ((const unsigned *)m)[j];
        s = (w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24);
    } else
        for (int j = threadIdx.x; j < c; j += 32)
            s += m[j];
    s = __reduce_add_sync(~0u, s);
    if (threadIdx.x == 0)
        n[blockIdx.x] = s, odd[blockIdx.x] = s & 1;
}
