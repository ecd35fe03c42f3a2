// expect: forbidden
// row: 33
// tries: keeps a count in module memory that shares its name with a label further down
// why: writable memory at file scope
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __device__ unsigned kept[4] = {1};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < 0) { // never here, where the simulator would stop at the label
        unsigned long long at;
        asm volatile("{ mov.u64 %0, kept;\n\tkept: }" : "=l"(at));
        atomicAdd((unsigned *)at, 1u);
    }
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
