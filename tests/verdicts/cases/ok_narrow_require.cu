// expect: accepted
// row: 6
// tries: a require line for the task's own shape alone: accepted, and said
// scope: 0 of 4 check shapes, 0 made at random and the task's own shape
//! require C == 1024 && R == 256
//! launch relu<<<R*C // 256, 256>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
