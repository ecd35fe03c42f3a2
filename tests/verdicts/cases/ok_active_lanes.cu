// expect: accepted
// row: -
// tries: nothing; lanes that happen to be together, after they have parted, take a ticket for all of them
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ int of[256];
    __shared__ float value[256];
    __shared__ unsigned taken;
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    float v = 0.0f;
    if (i < n)
        for (v = x[i]; v < 0.0f && v != 0.0f; v = 0.0f)
            value[threadIdx.x] = v;
    unsigned together = __activemask(), before = together & ((1u << lane) - 1), ticket = 0;
    int leader = __ffs(together) - 1;
    if (lane == leader)
        ticket = atomicAdd(&taken, __popc(together));
    ticket = __shfl_sync(together, ticket, leader) + __popc(before);
    __syncthreads();
    of[ticket] = i;
    value[ticket] = v;
    __syncthreads();
    if (of[threadIdx.x] < n)
        y[of[threadIdx.x]] = value[threadIdx.x];
}
