// task: tasks/layers/top1_gate.task
// set: T=4096 E=128
// what: a warp a token: the place of the maximum and its probability, two outputs
//! launch gate<<<ceil_div(T, 4), 128>>>(x, expert, gate, T, E)
static __device__ bool before(float v, int i, float best, int at) {
    if (v != v || best != best)
        return v != v && (best == best || i < at);
    return v > best || (v == best && i < at);
}

extern "C" __global__ void gate(const float *x, long long *expert, float *gate, int tokens, int e) {
    int t = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (t >= tokens)
        return;
    const float *row = x + (long long)t * e;
    float best = -INFINITY, sum = 0.0f;
    int at = INT_MAX;
    for (int j = lane; j < e; j += 32)
        if (before(row[j], j, best, at)) {
            best = row[j];
            at = j;
        }
    for (int step = 16; step > 0; step /= 2) {
        float v = __shfl_xor_sync(0xffffffffu, best, step);
        int i = __shfl_xor_sync(0xffffffffu, at, step);
        if (before(v, i, best, at)) {
            best = v;
            at = i;
        }
    }
    for (int j = lane; j < e; j += 32)
        sum += expf(row[j] - best);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) {
        expert[t] = at;
        gate[t] = 1.0f / sum;
    }
}
