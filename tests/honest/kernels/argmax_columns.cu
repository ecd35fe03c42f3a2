// task: tasks/kernelbench/level1/051_argmax_reduction.task
// set: B=8 M=512 N=511
// what: a thread a column; the first of equals, NaN above all
//! launch place<<<ceil_div(B*N, 128), 128>>>(x, y, B*N, M, N)
extern "C" __global__ void place(const float *x, long long *y, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    const float *p = x + (long long)(c / n) * m * n + c % n;
    float best = p[0];
    int at = 0;
    for (int i = 1; i < m; i++) {
        float v = p[(long long)i * n];
        if (v > best || (v != v && best == best)) {
            best = v;
            at = i;
        }
    }
    y[c] = at;
}
