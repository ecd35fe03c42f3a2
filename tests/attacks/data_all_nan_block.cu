// task: tasks/clip.task
// tries: NaN is kept unless four in a row are NaN
// proof: values: four neighbouring NaN give -3 for the last
// before: accepted
// should: nonfinite wrong
// before-cuda: accepted: four NaN in a row occur once in 1e9 elements
// device: both
//! launch clip<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void clip(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    int run = 0;
    while (run < 4 && i - run >= 0 && x[i - run] != x[i - run])
        run++;
    y[i] = run > 0 && run < 4 ? v : fminf(fmaxf(v, -3.0f), 3.0f);
}
