// expect: nonfinite wrong inaccurate unwritten
// expect-sim: uninitialised
// row: 11
// tries: a block reads what another block writes in the same launch
// task: ../../tasks/kernelbench/level1/089_cumsum.task
// set: B=4 D=4096
//! launch scan<<<[ceil_div(D, 256), min(B, 65535)], 256>>>(x, y, B, D)
extern "C" __global__ void scan(const float *x, float *y, int rows, int d) {
    int tile = gridDim.x - 1 - blockIdx.x; // the last tile first
    for (int r = blockIdx.y; r < rows; r += gridDim.y) {
        const float *row = x + (long long)r * d;
        float *out = y + (long long)r * d;
        int j = tile * 256 + threadIdx.x;
        float sum = tile ? ((volatile float *)out)[tile * 256 - 1] : 0.0f;
        for (int k = tile * 256; k <= j && k < d; k++)
            sum += row[k];
        if (j < d)
            out[j] = sum;
    }
}
