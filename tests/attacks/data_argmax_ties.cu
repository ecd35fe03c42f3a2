// task: tasks/row_argmax.task
// tries: threads keep the first largest of their own elements, and of two threads the lower one wins a tie
// proof: values: a row with its largest value at 1 and at 128 only gives 128, which thread 0 has
// data: rand u[R,C] ~ randint(0, 4); in x[R,C] : f32 = u[i,j]
// before: wrong
// should: wrong inaccurate
// before-cuda: accepted: rows with ties are those of one value
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
        bool later = v != v ? w != w && wi < vi : w > v || w != w || vi == INT_MAX;
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
