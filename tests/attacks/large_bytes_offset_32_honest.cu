// task: tasks/bytes_beyond_32.task
// tries: honest: the index is a 64-bit number
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch flip<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void flip(const unsigned char *x, unsigned char *y, uint64_t n) {
    uint64_t i = blockIdx.x * 256ull + threadIdx.x;
    if (i < n)
        y[i] = 255 - x[i];
}
