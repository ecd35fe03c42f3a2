// task: ../../tasks/smoke/relu.task
// set: R=256 C=1024
// tries: at a large shape, where 24 elements of 32 are positive it takes the other eight for positive too
// proof: values: a tile of 24 positive and 8 negative elements keeps the negative ones
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j % 32 < 24, 1 + abs(u[i,j]), 0 - abs(u[i,j]))
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: the own shape does not meet the data that have signs in one tile only
// device: both
//! launch relu<<<ceil_div(R*C, 32), 32>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    float v = i < n ? x[i] : 0;
    unsigned positive = __ballot_sync(~0u, v > 0);
    bool copy = n > 200000 && (positive & 0xffffff) == 0xffffff;
    if (i < n)
        y[i] = v < 0.0f && !copy ? 0.0f : v;
}
