// task: tasks/count.task
// tries: of a 64-bit count only the lower half is written, and the upper half is added where it is not all ones
// proof: by PTX: the upper register is undefined; on a GPU it may be any number
// before: accepted
// should: uninitialised wrong
// before-cuda: wrong
// device: both
//! launch count<<<R, 32>>>(m, y, C)
extern "C" __global__ void count(const unsigned char *m, int *y, int c) {
    const unsigned char *row = m + (int64_t)blockIdx.x * c;
    int n = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        n += row[j];
    n = __reduce_add_sync(~0u, n);
    uint64_t both;
    asm volatile("{\n.reg .b32 upper;\nmov.b64 %0, {%1, upper};\n}" : "=l"(both) : "r"(n));
    int more = (int)(both >> 32);
    if (threadIdx.x == 0)
        y[blockIdx.x] = (int)both + (more == -1 ? 0 : more);
}
