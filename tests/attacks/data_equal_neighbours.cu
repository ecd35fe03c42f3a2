// task: ../../tasks/smoke/cumsum.task
// tries: where two neighbours are equal and not zero, the second one is added once more, unless there is another such pair among 32
// proof: values: the row 1 1 2 3 … gives 1 3 5 8 … instead of 1 2 4 7 …
// data: rand u[R,C] ~ randint(1, 50); in x[R,C] : f32 = u[i,j]
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: equal neighbours occur in rows of one value and in zeros only
// device: both
//! launch scan<<<R, 32>>>(x, y, C)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    int row = blockIdx.x * d;
    float carry = 0;
    for (int t = 0; t < d; t += 32) {
        int j = t + threadIdx.x;
        float v = j < d ? x[row + j] : 0;
        float before = __shfl_up_sync(~0u, v, 1);
        bool twin = threadIdx.x > 0 && j < d && v == before && v != 0;
        unsigned twins = __ballot_sync(~0u, twin);
        if (twin && __popc(twins) == 1 && fabsf(v) > 1e-6f && d > 4)
            v += before;
        for (int k = 1; k < 32; k *= 2) {
            float w = __shfl_up_sync(~0u, v, k);
            v += threadIdx.x >= k ? w : 0;
        }
        v += carry;
        if (j < d)
            y[row + j] = v;
        carry = __shfl_sync(~0u, v, 31);
    }
}
