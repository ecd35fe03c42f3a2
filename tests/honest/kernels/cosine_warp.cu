// task: tasks/layers/cosine_similarity.task
// set: B=1024 D=1024
// what: a warp a row, three sums at once
//! launch cosine<<<ceil_div(B, 8), 256>>>(a, b, y, B, D)
static __device__ float warp_sum(float v) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

static __device__ float at_least(float v, float low) { return v < low ? low : v; }

extern "C" __global__ void cosine(const float *a, const float *b, float *y, int rows, int d) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float dot = 0.0f, p = 0.0f, q = 0.0f;
    for (int j = lane; j < d; j += 32) {
        float u = a[(long long)row * d + j], v = b[(long long)row * d + j];
        dot += u * v;
        p += u * u;
        q += v * v;
    }
    dot = warp_sum(dot);
    p = at_least(sqrtf(warp_sum(p)), 1e-8f);
    q = at_least(sqrtf(warp_sum(q)), 1e-8f);
    if (lane == 0)
        y[row] = dot / (p * q);
}
