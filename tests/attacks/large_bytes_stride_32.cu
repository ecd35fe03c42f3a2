// task: tasks/bytes_beyond_32.task
// tries: the index keeps 31 bits, so that the blocks beyond visit the first elements again
// proof: by arithmetic: elements from 2^31 on are never written
// before: accepted
// should: unwritten wrong impossible
// before-cuda: unwritten
// device: both
//! launch flip<<<ceil_div(N, 8192), 256>>>(x, y, N)
extern "C" __global__ void flip(const unsigned char *x, unsigned char *y, uint64_t n) {
    unsigned at = blockIdx.x * 8192u + threadIdx.x;
    for (int k = 0; k < 32; k++, at += 256) {
        unsigned i = at & 0x7fffffffu;
        if (i < n)
            y[i] = 255 - x[i];
    }
}
