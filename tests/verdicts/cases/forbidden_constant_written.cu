// expect: forbidden
// row: 13
// tries: writes a __constant__ table through its generic address
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        int *t; // the compiler would see through a cast
        asm volatile("mov.u64 %0, %1;" : "=l"(t) : "l"(&table[n % 4]));
        *t = n;
    }
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
