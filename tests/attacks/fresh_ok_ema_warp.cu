// task: fresh_ema.task
// tries: honest: a scan of the recurrence with weights by shuffles, 32 at a time
// proof: none; it is right
// should: accepted
// device: both
//! launch ema<<<R, 32>>>(x, y, C)
extern "C" __global__ void ema(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    int lane = threadIdx.x;
    float carry = 0, own = 1;
    for (int k = 0; k <= lane; k++)
        own *= 0.9f;
    for (int t = 0; t < c; t += 32) {
        float s = t + lane < c ? row[t + lane] : 0.0f, w = 0.9f;
        for (int k = 1; k < 32; k *= 2, w *= w) {
            float o = __shfl_up_sync(~0u, s, k);
            if (lane >= k)
                s = fmaf(w, o, s);
        }
        s = fmaf(own, carry, s);
        if (t + lane < c)
            y[(int64_t)blockIdx.x * c + t + lane] = s;
        carry = __shfl_sync(~0u, s, 31);
    }
}
