// task: tasks/count.task
// tries: the count begins with a register that nothing wrote, plus one; the simulator has -1 there
// proof: by PTX: the content of a register before it is written is undefined
// before: accepted
// should: uninitialised wrong
// before-cuda: wrong
// device: both
//! launch count<<<R, 32>>>(m, y, C)
extern "C" __global__ void count(const unsigned char *m, int *y, int c) {
    const unsigned char *row = m + (int64_t)blockIdx.x * c;
    int n;
    asm volatile("" : "=r"(n));
    n++;
    for (int j = threadIdx.x; j < c; j += 32)
        n += row[j];
    n = __reduce_add_sync(~0u, n);
    if (threadIdx.x == 0)
        y[blockIdx.x] = n;
}
