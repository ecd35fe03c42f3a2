// expect: unwritten
// row: 1
// tries: leaves the tail of odd sizes unwritten
//! require R*C >= 128
//! launch relu<<<R*C // 128, 128>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
