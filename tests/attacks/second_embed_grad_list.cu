// task: second_embed_grad.task
// tries: a block for each token of the vocabulary lists its places in shared memory first, 96 at most
// proof: values: a token that occurs more than 96 times
// data: in t[T] : i32 ~ randint(1, 2)
// should: wrong inaccurate
// device: both
//! launch k<<<V, 64>>>(t, g, w, T, D)
extern "C" __global__ void k(const int *t, const float *g, float *w, int n, int d) {
    __shared__ int list[96], count;
    int v = blockIdx.x;
    if (threadIdx.x == 0) {
        count = 0;
        for (int i = 0; i < n && v; i++)
            if (t[i] == v && count < 96)
                list[count++] = i;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < d; e += 64) {
        float s = 0;
        for (int i = 0; i < count; i++)
            s += g[(int64_t)list[i] * d + e];
        w[(int64_t)v * d + e] = s;
    }
}
