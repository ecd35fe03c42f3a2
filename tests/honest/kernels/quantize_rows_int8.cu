// task: tasks/layers/quantize_rows.task
// set: M=512 K=2048
// what: the row's largest magnitude through shuffles, then int8
//! launch quantize<<<M, 256>>>(x, q, scale, K)
extern "C" __global__ void quantize(const float *x, signed char *q, float *scale, int k) {
    __shared__ float part[8];
    const float *row = x + (long long)blockIdx.x * k;
    float top = 0.0f;
    bool broken = false;
    for (int j = threadIdx.x; j < k; j += 256) {
        float v = fabsf(row[j]);
        broken |= v != v;
        top = fmaxf(top, v);
    }
    for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = top;
    broken = __syncthreads_or(broken);
    for (int w = 0; w < 8; w++)
        top = fmaxf(top, part[w]);
    top = broken ? NAN : fmaxf(top, 1e-10f);
    float inverse = 127.0f / top;
    for (int j = threadIdx.x; j < k; j += 256)
        q[(long long)blockIdx.x * k + j] = (signed char)rintf(row[j] * inverse);
    if (threadIdx.x == 0)
        scale[blockIdx.x] = top / 127.0f;
}
