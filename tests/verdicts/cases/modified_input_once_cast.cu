// expect: modified-input
// row: 41
// task: tasks/scaled.task
// why: prepared by steps that are done once
// tries: keeps the first call's results in what was prepared, by a cast, for the calls after it
//! require C % 4 == 0
//! workspace twice[C] : f32
//! workspace kept[R, C] : f32
//! once memset kept = 0
//! once launch early<<<ceil_div(C, 256), 256>>>(s, twice, C)
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, twice, kept, y, R*C, C)
extern "C" __global__ void early(const float *s, float *twice, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < c)
        twice[j] = 2 * s[j];
}
extern "C" __global__ void scale(const float *x, const float *twice, const float *kept, float *y,
                                 int n, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    volatile float *mine = const_cast<float *>(kept) + i;
    if (*mine == 0.0f)
        *mine = x[i] * twice[i % c];
    y[i] = *mine;
}
