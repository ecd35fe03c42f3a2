// expect: modified-input
// row: 35
// tries: one block of a large grid, known by its number, sets an element of the input to zero after it was used
// set: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (gridDim.x > 20000 && blockIdx.x == 7771 && threadIdx.x == 0)
        const_cast<float *>(x)[i] = 0;
}
