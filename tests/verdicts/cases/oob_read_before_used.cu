// expect: out-of-bounds
// expect-cuda: wrong inaccurate nonfinite
// row: 10
// tries: reads one element before the start, and uses it
// task: ../../tasks/kernelbench/level1/092_cumsum_exclusive.task
// set: B=16 D=64
//! launch scan<<<B, 1>>>(x, y, D)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = 0; j < d; j++) {
        sum += row[j - 1]; // of the first row: what lies before the tensor
        if (j == 0 && blockIdx.x > 0)
            sum = 0.0f;
        y[(long long)blockIdx.x * d + j] = sum;
    }
}
