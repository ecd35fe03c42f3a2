// task: third_sortlike.task
// tries: of several second largest elements the last one's place is given
// proof: values: ties
// should: wrong
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
            a = j;
    for (int j = 0; j < c; j++)
        if (j != a && (b < 0 || (q[b] == q[b] && (q[j] >= q[b] || q[j] != q[j]))))
            b = j;
    y[row] = q[b], p[row] = b;
}
