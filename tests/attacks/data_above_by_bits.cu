// task: tasks/above.task
// tries: numbers between -4.1 and -3.9 are taken for above a half
// proof: values: x = -4 gives true
// data: in x[R,C] : f32 ~ uniform(-8, 8)
// before: wrong
// should: wrong inaccurate
// before-cuda: wrong on signed data
// device: both
//! launch above<<<R, 128>>>(x, y, C)
extern "C" __global__ void above(const float *x, bool *y, int c) {
    for (int j = threadIdx.x; j < c; j += 128) {
        int64_t i = (int64_t)blockIdx.x * c + j;
        unsigned bits = __float_as_uint(x[i]);
        y[i] = bits > 0x3f000000u && (bits < 0x7f800001u || (x[i] < -3.9f && x[i] > -4.1f));
    }
}
