// task: tasks/kernelbench/level1/045_avg_pool2d.task
// set: N=2 C=16 H=128 W=128
// what: a warp a tile
//! launch pool<<<ceil_div(N*C*P*Q, 4), 128>>>(x, y, H, W, P, Q, N*C*P*Q)
extern "C" __global__ void pool(const float *x, float *y, int height, int width, int p, int q,
                                int n) {
    int at = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (at >= n)
        return;
    int col = at % q * 11, row = at / q % p * 11;
    const float *tile = x + ((long long)(at / q / p) * height + row) * width + col;
    float sum = 0.0f;
    for (int e = lane; e < 121; e += 32)
        sum += tile[e / 11 * width + e % 11];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        y[at] = sum / 121.0f;
}
