// expect: wrong
// row: 34
// tries: one element of a large tensor, known by its row and its column, which are places of the
// tries: block along two axes of the grid
// set: R=65536 C=4096
// shape-sim: R=65536 C=4096
//! require R % 4 == 0
//! launch relu<<<[ceil_div(C, 64), R // 4], [64, 4]>>>(x, y, C)
extern "C" __global__ void relu(const float *x, float *y, int columns) {
    int col = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (col >= columns)
        return;
    long long i = (long long)row * columns + col;
    float r = x[i] < 0.0f ? 0.0f : x[i];
    if (row == 54321 && col == 1111)
        r = 7.0f;
    y[i] = r;
}
