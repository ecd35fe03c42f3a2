// task: tasks/clip.task
// tries: the upper limit is the number after 3
// proof: values: any element above 3 gives 3.0000002 instead of 3
// before: inaccurate
// should: wrong inaccurate
// before-cuda: wrong: no rounding is allowed there
// device: both
//! launch clip<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void clip(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    y[i] = v > 3 ? 3.0000002f : v < -3 ? -3.0f : v;
}
