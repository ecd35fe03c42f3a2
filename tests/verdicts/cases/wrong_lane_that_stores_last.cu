// expect: wrong
// expect-cuda: skip which lane's value stays is up to the hardware, and it may be the last one's
// row: 11
// why: of events
// tries: is right where, of lanes that store to one place with one instruction, the last one wins
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ int last[8];
    int i = blockIdx.x * 256 + threadIdx.x, warp = threadIdx.x / 32;
    last[warp] = threadIdx.x;
    __syncwarp();
    bool right = last[warp] % 32 == 31;
    if (i < n)
        y[i] = x[i] < 0.0f && right ? 0.0f : x[i];
}
