// task: fresh_hist.task
// tries: runs of equal numbers are added at once; a run that ends with the thread's last element is added only if it is shorter than its 16 elements
// proof: values: sixteen equal numbers that one thread has are not counted
// data: in t[N] : i32 ~ randint(3, 4)
// should: wrong inaccurate
// device: both
//! memset h = 0
//! launch count<<<ceil_div(N, 128*16), 128>>>(t, h, N)
extern "C" __global__ void count(const int *t, int *h, int n) {
    int64_t at = ((int64_t)blockIdx.x * 128 + threadIdx.x) * 16;
    int run = 0, last = -1;
    for (int i = 0; i < 16 && at + i < n; i++) {
        int v = t[at + i];
        if (v != last && run) {
            atomicAdd(&h[last], run);
            run = 0;
        }
        last = v;
        run++;
    }
    if (run % 16)
        atomicAdd(&h[last], run);
}
