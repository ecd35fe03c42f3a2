// expect: wrong out-of-bounds nonfinite inaccurate
// expect-cuda: accepted wrong out-of-bounds nonfinite inaccurate
// row: 41
// task: tasks/scaled.task
// tries: keeps where the parameter lay when it was prepared, and reads from there later
//! require C % 4 == 0
//! workspace where[1] : i64
//! once launch early<<<1, 1>>>(s, where)
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, where, y, R*C, C)
extern "C" __global__ void early(const float *s, long long *where) {
    *where = (long long)s;
}
extern "C" __global__ void scale(const float *x, const long long *where, float *y, int n, int c) {
    const float *s = (const float *)*where;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * (2 * s[i % c]);
}
