// task: ../../tasks/kernelbench/level1/090_cumprod.task
// tries: once the product is 0 the rest of the row is set to 0, whatever it holds
// proof: values: NaN after a zero
// data: rand u[B,D] ~ uniform(0, 1); in x[i < B, j < D] : f32 = if(j == 1, 0, if(j == 40, inf - inf, u[i,j]))
// should: nonfinite wrong
// device: both
//! launch products<<<B, 32>>>(x, y, D)
extern "C" __global__ void products(const float *x, float *y, int d) {
    int64_t row = (int64_t)blockIdx.x * d;
    float carry = 1;
    int t = 0;
    for (; t < d && carry != 0; t += 32) {
        int j = t + threadIdx.x;
        float s = j < d ? x[row + j] : 1.0f;
        for (int k = 1; k < 32; k *= 2) {
            float o = __shfl_up_sync(~0u, s, k);
            if (threadIdx.x >= k)
                s *= o;
        }
        s *= carry;
        if (j < d)
            y[row + j] = s;
        carry = __shfl_sync(~0u, s, 31);
    }
    for (int j = t + threadIdx.x; j < d; j += 32)
        y[row + j] = 0;
}
