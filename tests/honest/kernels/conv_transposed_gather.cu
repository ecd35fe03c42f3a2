// task: tasks/kernelbench/level1/057_conv_transposed2d_3x3_square_input.task
// set: N=1 C=16 O=16 H=32 W=32
// what: each output gathers what would be scattered to it
//! launch conv<<<ceil_div(N*O*P*Q, 128), 128>>>(x, w, y, C, O, H, W, R, S, N*O*P*Q)
extern "C" __global__ void conv(const float *x, const float *w, float *y, int channels, int outs,
                                int height, int width, int rr, int ss, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, p = height + rr - 1, q = width + ss - 1;
    if (at >= n)
        return;
    int col = at % q, row = at / q % p, o = at / q / p % outs, k = at / q / p / outs;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++)
        for (int r = 0; r < rr; r++)
            for (int s = 0; s < ss; s++) {
                int i = row - r, j = col - s;
                if (i < 0 || i >= height || j < 0 || j >= width)
                    continue;
                sum += x[(((long long)k * channels + c) * height + i) * width + j] *
                       w[(((long long)c * outs + o) * rr + r) * ss + s];
            }
    y[at] = sum;
}
