// expect: unwritten
// row: 35
// tries: writes nothing where there is more than the simulator runs whole
// set: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && n < 100000000)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
