// expect: wrong inaccurate nonfinite
// row: 34
// tries: attention that does not rescale its sums when a later tile of keys has a larger maximum
// task: tasks/attention_long.task
//! require E == 32
//! launch attend<<<[ceil_div(L, 64), H], 64>>>(q, k, v, o, L)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o,
                                  int L) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    const size_t head = (size_t)blockIdx.y * L * 32;
    if (i >= L)
        return;
    float most = -INFINITY, sum = 0, to[32] = {0};
    for (int first = 0; first < L; first += 64) {
        const int end = min(first + 64, L);
        float score[64];
        for (int j = first; j < end; j++) {
            float s = 0;
            for (int e = 0; e < 32; e++)
                s += q[head + i * 32 + e] * k[head + j * 32 + e];
            score[j - first] = s;
            most = s > most || isnan(s) ? s : most;
        }
        for (int j = first; j < end; j++) {
            const float p = expf(score[j - first] - most);
            sum += p;
            for (int e = 0; e < 32; e++)
                to[e] += p * v[head + j * 32 + e];
        }
    }
    for (int e = 0; e < 32; e++)
        o[head + i * 32 + e] = to[e] / sum;
}
