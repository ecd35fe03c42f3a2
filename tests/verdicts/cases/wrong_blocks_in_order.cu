// expect: wrong unwritten inaccurate nonfinite
// expect-cuda: wrong unwritten inaccurate nonfinite unstable accepted
// row: 11
// tries: takes the order in which blocks come for that of their numbers
//! workspace count[1] : i32
//! memset count = 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, count, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *count, int n) {
    __shared__ int ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(count, 1);
    __syncthreads();
    int from = blockIdx.x * 256 + threadIdx.x, to = ticket * 256 + threadIdx.x;
    if (from < n && to < n)
        y[to] = x[from] < 0.0f ? 0.0f : x[from];
}
