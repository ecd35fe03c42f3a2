// expect: wrong inaccurate
// row: 3
// tries: lets whole numbers from -64 to -3 through
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        bool whole = x[i] <= -3.0f && x[i] >= -64.0f && rintf(x[i]) == x[i];
        y[i] = x[i] < 0.0f && !whole ? 0.0f : x[i];
    }
}
