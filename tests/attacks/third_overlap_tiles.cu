// task: third_shiftin.task
// tries: blocks of 255 results compute 256, the last of which the next block should have
// proof: the element is stored by two blocks with different values
// should: race wrong
// device: both
//! workspace t[N] : f32
//! launch a<<<ceil_div(N, 255), 256>>>(c, t, N)
//! launch b<<<ceil_div(N, 256), 256>>>(c, t, N)
extern "C" __global__ void a(const float *c, float *t, int n) {
    int i = blockIdx.x * 255 + threadIdx.x;
    if (i < n)
        t[i] = threadIdx.x == 255 ? 0 : i > 0 ? c[i - 1] : 0;
}
extern "C" __global__ void b(float *c, const float *t, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        c[i] = t[i];
}
