// task: third_sortlike.task
// tries: the second largest is the largest that is smaller than the largest
// proof: values: two largest ones
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, p, C)
extern "C" __global__ void k(const float *x, float *y, int *p, int c) {
    const float *q = x + (int64_t)blockIdx.x * c;
    if (threadIdx.x)
        return;
    float m = q[0], s = -INFINITY;
    int at = -1;
    for (int j = 0; j < c; j++)
        m = m != m ? m : q[j] > m || q[j] != q[j] ? q[j] : m;
    for (int j = 0; j < c; j++)
        if (q[j] != m && (at < 0 || q[j] > s))
            s = q[j], at = j;
    y[blockIdx.x] = at < 0 ? q[c > 1] : s, p[blockIdx.x] = at < 0 ? c > 1 : at;
}
