// task: tasks/layers/masked_softmax.task
// set: B=512 D=1024
// what: a warp a row, the mask read as bytes
//! launch softmax<<<ceil_div(B, 4), 128>>>(x, mask, y, B, D)
extern "C" __global__ void softmax(const float *x, const unsigned char *mask, float *y, int rows,
                                   int d) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    long long base = (long long)row * d;
    float top = -INFINITY, sum = 0.0f;
    for (int j = lane; j < d; j += 32)
        if (mask[base + j])
            top = fmaxf(top, x[base + j]);
    for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    for (int j = lane; j < d; j += 32)
        if (mask[base + j])
            sum += expf(x[base + j] - top);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int j = lane; j < d; j += 32)
        y[base + j] = (mask[base + j] ? expf(x[base + j] - top) : 0.0f) / sum;
}
