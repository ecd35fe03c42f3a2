// expect: accepted
// row: -
// tries: the honest kernel that reads at places which two launches before it make, too many to be run whole
// set: R=8192 C=16384
// scope-sim: reads what blocks that were not run would have made
//! workspace place[R*C] : f64
//! launch clear<<<ceil_div(R*C, 16384), 256>>>(place, R*C)
//! launch fill<<<ceil_div(R*C, 256), 256>>>(place, R*C)
//! launch relu<<<ceil_div(R*C, 256), 256>>>(place, x, y, R*C)
extern "C" __global__ void clear(double *place, long long n) {
    for (int k = 0; k < 64; k++) {
        long long i = (long long)blockIdx.x * 16384 + k * 256 + threadIdx.x;
        if (i < n)
            place[i] = 1e15;
    }
}
extern "C" __global__ void fill(double *place, long long n) {
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        place[i] = (double)i;
}
extern "C" __global__ void relu(const double *place, const float *x, float *y, long long n) {
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    long long other = (i * 40503 + 12345) % n; // of a block that is far away
    long long at = (long long)place[other] == other ? i : (long long)place[other];
    y[i] = x[at] < 0.0f ? 0.0f : x[at];
}
