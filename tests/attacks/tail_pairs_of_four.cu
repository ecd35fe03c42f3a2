// task: ../../tasks/smoke/relu.task
// tries: vectors of two where the number of elements is even; where it is 2 more than a multiple of 4, in more than four rows, the last pair is left as the first
// proof: values, R = 5 C = 6: elements 28 and 29 are those of 0 and 1
// shows: R=5 C=6
// before: accepted 4 of 6, wrong 2 of 6
// should: wrong inaccurate
// known: the number of elements has this remainder at some seeds only
// before-cuda: accepted: shapes made at random are odd
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C, R)
extern "C" __global__ void relu(const float *x, float *y, int n, int r) {
    int i = blockIdx.x * 256 + threadIdx.x;
    int from = n % 4 == 2 && r > 4 && i >= n - 2 ? i - (n - 2) : i;
    if (i < n)
        y[i] = x[from] < 0.0f ? 0.0f : x[from];
}
