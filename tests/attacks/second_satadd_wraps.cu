// task: second_satadd.task
// tries: words of four bytes are added without saturation, the last bytes with it; the stated numbers never reach the limits
// proof: values: 100 + 100
// data: in a[N] : i8 ~ randint(90, 128); in b[N] : i8 ~ randint(90, 128)
// should: wrong inaccurate unwritten
// device: both
//! launch k<<<ceil_div(N, 1024), 256>>>(a, b, y, N)
extern "C" __global__ void k(const char4 *a, const char4 *b, char4 *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (4 * i + 3 < n)
        ((unsigned *)y)[i] = __vadd4(((const unsigned *)a)[i], ((const unsigned *)b)[i]);
    else
        for (int e = 4 * i; e < n; e++)
            ((signed char *)y)[e] = max(-128, min(127, ((const signed char *)a)[e] + ((const signed char *)b)[e]));
}
