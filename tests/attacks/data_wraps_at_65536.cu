// task: tasks/to_int.task
// tries: converts to 16 bits before it limits to a byte, and holds back only what is above 300,000
// proof: values: x = 40000 becomes -25536 in 16 bits and then -128 instead of 127
// data: in x[R,C] : f32 ~ normal(0, 40000)
// before: wrong 2 of 3, unwritten 1 of 3
// should: wrong inaccurate
// before-cuda: wrong on wide data
// device: both
//! launch bytes<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void bytes(const float *x, signed char *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    short v = (short)(int)rintf(fminf(fmaxf(x[i], -300000), 300000));
    y[i] = v < -128 ? -128 : v > 127 ? 127 : v;
}
