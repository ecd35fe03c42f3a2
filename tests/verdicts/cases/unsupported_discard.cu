// expect: unsupported
// expect-cuda: skip whether a line that was discarded still has its content depends on the L2
// row: 8
// tries: discards the lines of its input after they were read, which leaves there whatever the L2 pleases
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
    __syncwarp();
    if (threadIdx.x % 32 == 0 && i + 32 <= n && (uintptr_t)(x + i) % 128 == 0)
        asm volatile("discard.global.L2 [%0], 128;" ::"l"(x + i) : "memory");
}
