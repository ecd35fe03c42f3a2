// expect: wrong nonfinite
// row: 3, 37
// tries: the largest number as a mark for elements that are not there
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float none = 3.402823466e38f;
    if (i < n)
        y[i] = x[i] == none ? 0.0f : x[i] < 0.0f ? 0.0f : x[i];
}
