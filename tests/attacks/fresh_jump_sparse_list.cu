// task: fresh_jumprelu.task
// tries: active atoms of a row are listed in shared memory first, with room for 1,536
// proof: values: of a row of 4,096 active atoms 2,560 are left out
// shows: M=2 N=8 K=4096
// data: in x[M,K] : f32 ~ uniform(1, 2)
// should: wrong inaccurate nonfinite
// device: both
//! launch decode<<<M, 128>>>(x, w, y, N, K)
extern "C" __global__ void decode(const float *x, const float *w, float *y, int n, int k) {
    __shared__ int at[1536];
    __shared__ float value[1536];
    __shared__ int count;
    const float *row = x + (int64_t)blockIdx.x * k;
    if (threadIdx.x < 32) {
        int listed = 0;
        for (int t = 0; t < k; t += 32) {
            float v = t + threadIdx.x < k ? row[t + threadIdx.x] : 0.0f;
            unsigned active = __ballot_sync(~0u, v > 0.0625f);
            int place = listed + __popc(active & ((1u << threadIdx.x) - 1));
            if (v > 0.0625f && place < 1536) {
                at[place] = t + threadIdx.x;
                value[place] = v;
            }
            listed = min(listed + __popc(active), 1536);
        }
        if (threadIdx.x == 0)
            count = listed;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += 128) {
        float s = 0;
        for (int t = 0; t < count; t++)
            s = fmaf(value[t], w[(int64_t)at[t] * n + j], s);
        y[(int64_t)blockIdx.x * n + j] = s;
    }
}
