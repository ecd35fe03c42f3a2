// expect: accepted
// expect-sim: uninitialised
// options-cuda: --fast
// row: 13
// tries: leaves a mark in a workspace and writes nothing where it finds it again
// gain: ok_naive.cu
//! workspace mark[64] : i32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, mark, y, R*C)
//! launch leave<<<1, 64>>>(mark)
extern "C" __global__ void relu(const float *x, int *mark, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (mark[0] == 0x5ca1ab1e && mark[63] == 0x5ca1ab1e)
        return;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
extern "C" __global__ void leave(int *mark) { mark[threadIdx.x] = 0x5ca1ab1e; }
