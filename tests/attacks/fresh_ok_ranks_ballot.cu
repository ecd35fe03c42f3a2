// task: fresh_ranks.task
// tries: honest: votes and population counts, lanes below by %lanemask_lt
// proof: none; it is right
// should: accepted
// device: both
//! launch ranks<<<ceil_div(R, 4), [32, 4]>>>(m, y, R, C)
extern "C" __global__ void ranks(const bool *m, int *y, int r, int c) {
    int row = blockIdx.x * 4 + threadIdx.y, carry = 0;
    unsigned below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    for (int j = threadIdx.x; row < r && j - (int)threadIdx.x < c; j += 32) {
        unsigned vote = __ballot_sync(~0u, j < c && m[(int64_t)row * c + j]);
        if (j < c)
            y[(int64_t)row * c + j] = carry + __popc(vote & below);
        carry += __popc(vote);
    }
}
