// task: second_parity.task
// tries: honest: rows shared by blocks that add their votes to counts set to zero by a memset; a second launch has the parity
// should: accepted
// device: both
//! memset n = 0
//! launch count<<<[ceil_div(C, 1024), min(R, 1024)], 256>>>(m, n, R, C)
//! launch parity<<<ceil_div(R, 128), 128>>>(n, odd, R)
extern "C" __global__ void count(const bool *m, int *n, int r, int c) {
    for (int row = blockIdx.y; row < r; row += gridDim.y) {
        int s = 0;
        for (int j = blockIdx.x * 1024 + threadIdx.x, i = 0; i < 4; i++, j += 256)
            s += __popc(__ballot_sync(~0u, j < c && m[(int64_t)row * c + j]));
        if (threadIdx.x % 32 == 0 && s)
            atomicAdd(n + row, s);
    }
}
extern "C" __global__ void parity(const int *n, bool *odd, int r) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < r)
        odd[i] = n[i] & 1;
}
