// task: second_satadd.task
// tries: honest: words of four bytes by __vaddss4, the last bytes one by one
// should: accepted
// device: both
//! launch k<<<ceil_div(N, 1024), 256>>>(a, b, y, N)
extern "C" __global__ void k(const char4 *a, const char4 *b, char4 *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (4 * i + 3 < n)
        ((unsigned *)y)[i] = __vaddss4(((const unsigned *)a)[i], ((const unsigned *)b)[i]);
    else
        for (int e = 4 * i; e < n; e++)
            ((signed char *)y)[e] = max(-128, min(127, ((const signed char *)a)[e] + ((const signed char *)b)[e]));
}
