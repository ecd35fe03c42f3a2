// task: fresh_icumsum.task
// tries: what atomicAdd to a shared sum returned is taken for the sum of the lower lanes
// proof: by PTX: atomics of one instruction happen in any order of its lanes; the simulator's go by lane
// should: wrong race inaccurate
// device: sim
//! launch offsets<<<R, 32>>>(x, y, C)
extern "C" __global__ void offsets(const int *x, int *y, int c) {
    __shared__ int total;
    const int *row = x + (int64_t)blockIdx.x * c;
    if (threadIdx.x == 0)
        total = 0;
    __syncwarp();
    for (int j = threadIdx.x; j - (int)threadIdx.x < c; j += 32) {
        if (j < c)
            y[(int64_t)blockIdx.x * c + j] = atomicAdd(&total, row[j]);
        __syncwarp();
    }
}
