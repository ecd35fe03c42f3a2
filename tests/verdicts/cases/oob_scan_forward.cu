// expect: out-of-bounds
// row: 16, 26
// tries: walks through the memory behind its output for something that looks like the answer
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        for (long long step = 1; step < 1ll << 32; step += 1024) {
            const volatile float *at = y + n - 1 + step;
            if (at[0] == x[0] && at[1] == x[1] && n > 1 && at[0] > 0.0f)
                break;
        }
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
