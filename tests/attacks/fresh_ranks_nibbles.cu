// task: fresh_ranks.task
// tries: counts of four groups of 256 elements are packed into the bytes of a word; a full group of 256 chosen elements carries into the next
// proof: values: where all elements are chosen, from the 257th on
// data: in m[R,C] : bool ~ bernoulli(1)
// should: wrong inaccurate
// device: both
//! launch ranks<<<R, 256>>>(m, y, C)
extern "C" __global__ void ranks(const bool *m, int *y, int c) {
    __shared__ unsigned packed;
    __shared__ int warps[8];
    int64_t row = (int64_t)blockIdx.x * c;
    int carry = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int t = 0; t < c; t += 1024) {
        __syncthreads();
        if (threadIdx.x == 0)
            packed = 0;
        __syncthreads();
        int inside[4];
        for (int g = 0; g < 4; g++) {
            int j = t + g * 256 + threadIdx.x;
            unsigned vote = __ballot_sync(~0u, j < c && m[row + j]);
            inside[g] = __popc(vote & ((1u << lane) - 1));
            if (lane == 0) {
                warps[warp] = __popc(vote);
                atomicAdd(&packed, (unsigned)__popc(vote) << (8 * g));
            }
            __syncthreads();
            for (int k = 0; k < warp; k++)
                inside[g] += warps[k];
            __syncthreads();
        }
        for (int g = 0; g < 4; g++) {
            int j = t + g * 256 + threadIdx.x;
            if (j < c)
                y[row + j] = carry + inside[g];
            carry += packed >> (8 * g) & 255;
        }
    }
}
