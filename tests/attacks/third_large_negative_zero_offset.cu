// task: tasks/copy_large.task
// tries: the row's offset is the product of two 32-bit numbers, unsigned, of 4 bytes an element: right up to 2^32 bytes
// proof: R = 300000 rows of 4096 take more
// set: R=300000
// should: wrong unwritten race out-of-bounds inaccurate
// device: both
//! launch k<<<R, 256>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, unsigned c) {
    unsigned at = blockIdx.x * c * 4;
    for (unsigned j = threadIdx.x; j < c; j += 256)
        *(float *)((char *)y + at + 4 * j) = 2 * *(const float *)((const char *)x + at + 4 * j);
}
