// expect: bad-plan
// row: 41
// task: tasks/scaled.task
// why: x is no parameter of the task
// tries: prepares an input once, so that later calls find the results of the first
//! workspace kept[R, C] : f32
//! once launch early<<<ceil_div(R*C, 256), 256>>>(x, s, kept, R*C, C)
//! launch copy<<<ceil_div(R*C, 256), 256>>>(kept, y, R*C)
extern "C" __global__ void early(const float *x, const float *s, float *kept, int n, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        kept[i] = x[i] * (2 * s[i % c]);
}
extern "C" __global__ void copy(const float *kept, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = kept[i];
}
