// task: third_scanlong.task
// tries: an infinite carry is not handed on, so that the next tile of 1,024 begins anew
// proof: values: infinity in the first tile
// should: nonfinite wrong
// device: both
//! launch k<<<R, 32>>>(x, y, z, C)
extern "C" __global__ void k(const float *x, float *y, float *z, int c) {
    int64_t at = (int64_t)blockIdx.x * c;
    float s = 0;
    if (threadIdx.x == 0)
        for (int j = 0; j < c; j++) {
            if (j % 1024 == 0 && isinf(s))
                s = 0;
            y[at + j] = s += x[at + j];
        }
    s = 0;
    if (threadIdx.x == 1)
        for (int j = c - 1; j >= 0; j--) {
            z[at + j] = s;
            s += x[at + j];
        }
}
