// task: tasks/row_argmax.task
// tries: honest: the same, where the lower place wins a tie
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch place<<<R, 128>>>(x, y, C)
extern "C" __global__ void place(const float *x, int *y, int c) {
    __shared__ float value[128];
    __shared__ int at[128];
    const float *row = x + blockIdx.x * c;
    float m = threadIdx.x < c ? row[threadIdx.x] : -INFINITY;
    int best = threadIdx.x < c ? threadIdx.x : INT_MAX;
    for (int j = threadIdx.x + 128; j < c; j += 128)
        if (row[j] > m || (row[j] != row[j] && m == m)) {
            m = row[j];
            best = j;
        }
    value[threadIdx.x] = m;
    at[threadIdx.x] = best;
    __syncthreads();
    for (int k = 64; k; k /= 2) {
        float w = value[threadIdx.x % k + k], v = value[threadIdx.x % k];
        int wi = at[threadIdx.x % k + k], vi = at[threadIdx.x % k];
        bool later = v != v ? w != w && wi < vi : w > v || w != w || (w == v && wi < vi);
        __syncthreads();
        if (threadIdx.x < k && later) {
            value[threadIdx.x] = w;
            at[threadIdx.x] = wi;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = at[0];
}
