// task: second_dropout.task
// tries: an element is kept where u > p; the task keeps it where they are equal, too
// proof: values: u == p; p = 0 with u = 0 is what a layer without dropout has
// data: in p : f32 ~ zeros; in u[R,C] : f32 ~ zeros
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, u, p, y, R*C)
extern "C" __global__ void k(const float *x, const float *u, const float *p, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = u[i] > *p ? x[i] / (1 - *p) : 0;
}
