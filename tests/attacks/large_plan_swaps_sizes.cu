// task: tasks/copy_large.task
// tries: the plan passes the number of elements modulo 2^26 to the kernel
// proof: values, R = 70000 C = 1000: elements from 2,891,136 on are unwritten; at the own shape none is written
// shows: R=70000 C=1000
// before: accepted
// should: unwritten wrong impossible
// known-sim: blocks that see each other are run in order, the first ones; a GPU runs all of it
// before-cuda: unwritten
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C, R*C % 67108864)
extern "C" __global__ void twice(const float *x, float *y, int64_t all, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    float v = i < all ? x[i] : 0, w = all > n && i < all ? __ldcv(x + all - 1 - i) : 0;
    if (i < n || (all > n && v * w == 12345.0f))
        y[i] = 2 * v;
}
