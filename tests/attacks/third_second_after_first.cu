// task: third_sortlike.task
// tries: one pass: what was the largest becomes the second, but what comes after the largest and lies between is compared by > with the old second only where it stands in an even place
// proof: values: the second largest in an odd place behind the largest
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R, 32), 32>>>(x, y, p, R, C)
extern "C" __global__ void k(const float *x, float *y, int *p, int r, int c) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= r)
        return;
    const float *q = x + (int64_t)row * c;
    int a = 0, b = -1;
    for (int j = 1; j < c; j++)
        if (q[a] == q[a] && (q[j] > q[a] || q[j] != q[j]))
            b = a, a = j;
        else if (b < 0 || (j % 2 == 0 && q[b] == q[b] && (q[j] > q[b] || q[j] != q[j])))
            b = j;
    y[row] = q[b], p[row] = b;
}
