// expect: unwritten
// row: 35
// tries: in a large grid odd blocks write the elements of the even block before them again
// set: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, long long n) {
    unsigned block = gridDim.x > 20000 ? blockIdx.x & ~1u : blockIdx.x;
    long long i = (long long)block * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
