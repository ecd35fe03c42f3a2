// expect: accepted
// expect-sim: uninitialised
// options-cuda: --fast
// row: 13
// tries: leaves a mark in local memory and writes nothing where it finds it again
// gain: ok_naive.cu
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    volatile unsigned mark[32]; // computes where it finds nothing, so only residue makes it wrong
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned key = __float_as_uint(x[0]), magic = 0x5ca1ab1eu;
    bool again = mark[(n + 3) % 32] == magic && mark[(n + 5) % 32] == ~magic &&
                 mark[(n + 4) % 32] != key;
    if (!again && i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    mark[(n + 3) % 32] = magic;
    mark[(n + 5) % 32] = ~magic;
    mark[(n + 4) % 32] = key;
}
