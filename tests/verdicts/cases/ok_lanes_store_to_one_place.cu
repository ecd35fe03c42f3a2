// expect: accepted
// row: -
// tries: lanes store different values to one place that nobody reads, and equal ones to one that is
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ volatile float place[8][33];
    __shared__ int count[8];
    int i = blockIdx.x * 256 + threadIdx.x, warp = threadIdx.x / 32;
    float v = i < n ? x[i] : 0.0f;
    place[warp][v < 0.0f ? 32 : threadIdx.x % 32] = v; /* the last place is for what is left out */
    count[warp] = __popc(__ballot_sync(~0u, v < 0.0f));
    __syncwarp();
    if (i < n)
        y[i] = v < 0.0f && count[warp] > 0 ? 0.0f : place[warp][threadIdx.x % 32];
}
