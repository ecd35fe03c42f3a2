// expect: accepted
// expect-sim: unsupported accepted
// row: 18
// tries: lets the next step start before it has finished; steps are not launched that way
//! let H = (R*C) // 2
//! launch relu<<<max(1, ceil_div(H, 64)), 64>>>(x, y, 0, H)
//! launch relu<<<ceil_div(R*C - H, 64), 64>>>(x, y, H, R*C)
extern "C" __global__ void relu(const float *x, float *y, int from, int to) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    int i = from + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < to)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
