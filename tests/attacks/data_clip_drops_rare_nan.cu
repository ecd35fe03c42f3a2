// task: tasks/clip.task
// tries: NaN is kept unless its neighbour is NaN too
// proof: values: two neighbouring NaN give -3 for the second
// before: nonfinite
// should: nonfinite wrong
// before-cuda: nonfinite: one in 64 elements is not finite, and some are neighbours
// device: both
//! launch clip<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void clip(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], before = i ? x[i - 1] : 0;
    bool keep = v != v && before == before;
    y[i] = keep ? v : fminf(fmaxf(v, -3.0f), 3.0f);
}
