// task: tasks/count.task
// tries: rows of 4k elements by words, but of 16k + 4, 20 and more, one word is left out
// proof: values, R = 3 C = 20: four truth values of each row are not counted
// shows: R=3 C=20
// before: accepted
// should: wrong inaccurate
// known-sim: the tail is drawn at some seeds only
// before-cuda: accepted
// device: both
//! launch count<<<R, 32>>>(m, y, C)
extern "C" __global__ void count(const unsigned char *m, int *y, int c) {
    const unsigned char *row = m + (int64_t)blockIdx.x * c;
    int n = 0, end = c % 16 == 4 && c > 4 ? c - 4 : c;
    for (int j = threadIdx.x; j < end; j += 32)
        n += row[j];
    n = __reduce_add_sync(~0u, n);
    if (threadIdx.x == 0)
        y[blockIdx.x] = n;
}
