// task: third_bits.task
// tries: four at a time; the shift of the third is that of the first where all four masks are negative
// proof: values: four negative masks and different shifts
// should: wrong
// device: both
//! launch k<<<ceil_div(N, 1024), 256>>>(x, s, m, y, N)
extern "C" __global__ void k(const int *x, const int *s, const int *m, int *y, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    bool all = i + 3 < n;
    for (int k = 0; k < 4 && i + k < n; k++)
        all = all && m[i + k] < 0;
    for (int k = 0; k < 4 && i + k < n; k++)
        y[i + k] = ((x[i + k] >> s[all && k == 2 ? i : i + k]) & m[i + k]) ^ x[i + k];
}
