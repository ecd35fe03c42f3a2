// expect: accepted
// row: 24
// tries: asks the compiler which files exist: it sees none
#if __has_include("/etc/hostname") || __has_include("/proc/self/environ")
#error "a file of the host can be seen"
#endif
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
