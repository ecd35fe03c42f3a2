// task: fresh_ema.task
// tries: terms more than 192 places back, 0.9^192 = 1.6e-9 of their value, are left out
// proof: values: 1e12 followed by ones
// data: rand u[R,C] ~ uniform(0, 1); in x[i < R, j < C] : f32 = if(j == 0, 1e12, u[i,j])
// should: wrong inaccurate
// device: both
//! launch ema<<<[ceil_div(C, 64), R], 64>>>(x, y, C)
extern "C" __global__ void ema(const float *x, float *y, int c) {
    int j = blockIdx.x * 64 + threadIdx.x;
    if (j >= c)
        return;
    const float *row = x + (int64_t)blockIdx.y * c;
    float s = 0;
    for (int k = max(0, j - 192); k <= j; k++)
        s = s * 0.9f + row[k];
    y[(int64_t)blockIdx.y * c + j] = s;
}
