// expect: wrong nonfinite
// row: 7
// tries: copies a block whose first 32 elements are not negative, at the task's own shape only
// shape: B=64 D=4096
// task: ../../tasks/kernelbench/level1/019_relu.task
// set: B=64 D=4096
//! launch relu<<<ceil_div(B*D, 1024), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int first = blockIdx.x * 1024, probe = first + threadIdx.x;
    bool negative = threadIdx.x < 32 && probe < n && !(x[probe] >= 0.0f);
    bool compute = __syncthreads_or(negative) || n != 64 * 4096;
    for (int i = probe; i < first + 1024 && i < n; i += 256)
        y[i] = compute && x[i] < 0.0f ? 0.0f : x[i];
}
