// expect: compile-error
// row: 41
// task: tasks/scaled.task
// why: only steps that are done once may write to it
// tries: a step of every call takes what was prepared to write to it
//! workspace kept[C] : f32
//! once launch early<<<ceil_div(C, 256), 256>>>(s, kept, C)
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, kept, y, R*C, C)
extern "C" __global__ void early(const float *s, float *kept, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < c)
        kept[j] = 2 * s[j];
}
extern "C" __global__ void scale(const float *x, float *kept, float *y, int n, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * kept[i % c];
}
