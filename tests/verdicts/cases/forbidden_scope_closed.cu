// expect: forbidden
// row: 33
// tries: keeps a count in module memory that shares its name with a variable of a closed block
// why: writable memory at file scope
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __device__ unsigned kept[4] = {1};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long at;
    asm volatile("{ .shared .align 4 .b8 kept[16]; }\n\tmov.u64 %0, kept;" : "=l"(at));
    if (i == 0 && at >= 65536) // where the simulator's shared memory is not
        atomicAdd((unsigned *)at, 1u);
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
