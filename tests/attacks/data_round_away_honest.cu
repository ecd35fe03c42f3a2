// task: tasks/to_int.task
// tries: honest: halves go to the even number
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch bytes<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void bytes(const float *x, signed char *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = (signed char)fminf(fmaxf(rintf(x[i]), -128), 127);
}
