// task: tasks/row_sum.task
// tries: lanes that went different ways through their data exchange sums among those that are active, as if all had met again
// proof: by CUDA: after lanes part nothing brings them together but __syncwarp; __activemask may name a part of the warp, whose exchange leaves the others out
// should: wrong race no-progress inaccurate
// device: sim
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, negative = 0;
    int j = threadIdx.x;
    while (j < c) {
        float v = row[j];
        if (v < 0) {
            do {
                negative += v;
                j += 32;
                v = j < c ? row[j] : 1.0f;
            } while (v < 0);
        } else {
            s += v;
            j += 32;
        }
    }
    s += negative;
    unsigned mask = __activemask();
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(mask, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
