// task: third_sortlike.task
// tries: honest: a pair of best places a lane, merged by shuffles
// should: accepted
// device: both
//! launch k<<<R, 32>>>(x, y, p, C)
__device__ bool before(float v, int i, float w, int j) {
    bool n = v != v, m = w != w;
    return j < 0 || (i >= 0 && (n != m ? n : !n && v != w ? v > w : i < j));
}
extern "C" __global__ void k(const float *x, float *y, int *p, int c) {
    const float *q = x + (int64_t)blockIdx.x * c;
    float v = 0, w = 0;
    int a = -1, b = -1;
    for (int j = threadIdx.x; j < c; j += 32)
        if (before(q[j], j, v, a))
            w = v, b = a, v = q[j], a = j;
        else if (before(q[j], j, w, b))
            w = q[j], b = j;
    for (int d = 16; d; d /= 2) {
        float v2 = __shfl_xor_sync(~0u, v, d), w2 = __shfl_xor_sync(~0u, w, d);
        int a2 = __shfl_xor_sync(~0u, a, d), b2 = __shfl_xor_sync(~0u, b, d);
        if (a2 >= 0 && before(v2, a2, v, a)) {
            bool old = before(v, a, w2, b2);
            w = old ? v : w2, b = old ? a : b2, v = v2, a = a2;
        } else if (a2 >= 0 && before(v2, a2, w, b)) {
            w = v2, b = a2;
        }
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = w, p[blockIdx.x] = b;
}
