// task: tasks/kernelbench/level1/063_conv2d_3x3_square_input.task
// set: N=2 C=16 O=32 H=32 W=32
// what: a thread an output, the filter in shared memory
//! require R == 3 && S == 3 && C <= 1024
//! launch conv<<<[ceil_div(P*Q, 128), N*O], 128, 36*C>>>(x, w, y, C, O, H, W, P, Q)
//! require N*O <= 65535
extern "C" __global__ void conv(const float *x, const float *w, float *y, int channels, int outs,
                                int height, int width, int p, int q) {
    extern __shared__ float filter[];
    int o = blockIdx.y % outs, n = blockIdx.y / outs, i = blockIdx.x * 128 + threadIdx.x;
    for (int k = threadIdx.x; k < 9 * channels; k += 128)
        filter[k] = w[(long long)o * 9 * channels + k];
    __syncthreads();
    if (i >= p * q)
        return;
    int row = i / q, col = i % q;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        const float *plane = x + ((long long)n * channels + c) * height * width;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                sum += plane[(row + r) * width + col + s] * filter[(c * 3 + r) * 3 + s];
    }
    y[(long long)blockIdx.y * p * q + i] = sum;
}
