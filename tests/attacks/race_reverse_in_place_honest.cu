// task: tasks/reverse.task
// tries: honest: each thread exchanges two elements, which no other thread touches
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch reverse<<<ceil_div(ceil_div(N, 2), 256), 256>>>(x, N)
extern "C" __global__ void reverse(float *x, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x, j = n - 1 - i;
    if (i >= j)
        return;
    float a = x[i], b = x[j];
    x[i] = b;
    x[j] = a;
}
