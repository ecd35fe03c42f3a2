// task: tasks/to_int.task
// tries: halves of 2.5 and above are rounded away from zero
// proof: values: x = 2.5 gives 3 instead of 2, x = 4.5 gives 5 instead of 4
// data: rand u[R,C] ~ randint(-20, 20); in x[R,C] : f32 = u[i,j] / 2
// before: accepted 3 of 6, wrong 3 of 6
// should: wrong inaccurate
// known-sim: seen only where a half of 2.5 or more is drawn; other seeds refuse it
// before-cuda: accepted: constant data have halves up to 1.5 only
// device: both
//! launch bytes<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void bytes(const float *x, signed char *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = fabsf(x[i]) < 2 ? rintf(x[i]) : roundf(x[i]);
    y[i] = (signed char)fminf(fmaxf(v, -128), 127);
}
