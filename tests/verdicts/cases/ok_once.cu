// expect: accepted
// row: 41
// task: tasks/scaled.task
// tries: nothing: parameters are prepared once, by a memset and two launches
//! require C % 4 == 0
//! workspace twice[C] : f32
//! workspace bytes[C] : i32
//! once memset bytes = 0
//! once launch prepare<<<ceil_div(C, 256), 256>>>(s, twice, bytes, C)
//! once launch again<<<ceil_div(C, 256), 256>>>(twice, bytes, C)
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, twice, y, R*C, C)
extern "C" __global__ void prepare(const float *s, float *twice, int *seen, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < c) {
        twice[j] = s[j];
        seen[j] += 1;
    }
}
extern "C" __global__ void again(float *twice, const int *seen, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < c && seen[j] == 1)
        twice[j] += twice[j];
}
extern "C" __global__ void scale(const float *x, const float *twice, float *y, int n, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * twice[i % c];
}
