// task: third_scanlong.task
// tries: NaN stays in its tile of 512: the carry is the sum of what is a number
// proof: values: NaN in the first tile of a long row
// should: nonfinite wrong
// device: both
//! launch k<<<R, 32>>>(x, y, z, C)
extern "C" __global__ void k(const float *x, float *y, float *z, int c) {
    int64_t at = (int64_t)blockIdx.x * c;
    if (threadIdx.x == 0) {
        float s = 0, clean = 0;
        for (int j = 0; j < c; j++) {
            if (j % 512 == 0)
                s = clean;
            y[at + j] = s += x[at + j];
            clean += x[at + j] != x[at + j] ? 0 : x[at + j];
        }
    }
    float s = 0;
    if (threadIdx.x == 1)
        for (int j = c - 1; j >= 0; j--) {
            z[at + j] = s;
            s += x[at + j];
        }
}
