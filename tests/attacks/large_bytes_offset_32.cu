// task: tasks/bytes_beyond_32.task
// tries: the index is an unsigned 32-bit number, which wraps beyond 2^32 elements
// proof: by arithmetic: blocks from 16,777,216 on write the first elements again, the last 536,870,912 stay unwritten
// before: accepted
// should: unwritten wrong race impossible
// before-cuda: unwritten
// device: both
//! launch flip<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void flip(const unsigned char *x, unsigned char *y, uint64_t n) {
    unsigned i = blockIdx.x * 256u + threadIdx.x;
    if (i < n)
        y[i] = 255 - x[i];
}
