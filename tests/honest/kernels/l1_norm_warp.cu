// task: tasks/kernelbench/level1/038_l1_norm.task
// set: B=512 D=2047
// what: a warp a row, sums through shuffles
//! launch normalise<<<ceil_div(B, 4), 128>>>(x, y, B, D)
extern "C" __global__ void normalise(const float *x, float *y, int rows, int d) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    const float *p = x + (long long)row * d;
    float sum = 0.0f;
    for (int j = lane; j < d; j += 32)
        sum += fabsf(p[j]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    float mean = sum / d;
    for (int j = lane; j < d; j += 32)
        y[(long long)row * d + j] = p[j] / mean;
}
