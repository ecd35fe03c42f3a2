// expect: accepted
// row: -
// tries: honest: an inout tensor
// task: tasks/inplace.task
//! launch total<<<1, 32>>>(x, s, N)
//! launch reverse<<<ceil_div(N, 256), 256>>>(x, N)
extern "C" __global__ void total(const float *x, float *s, int n) {
    float sum = 0.0f, lost = 0.0f;
    if (threadIdx.x != 0)
        return;
    for (int i = 0; i < n; i++) {
        float with = sum + x[i];
        lost += fabsf(sum) >= fabsf(x[i]) ? (sum - with) + x[i] : (x[i] - with) + sum;
        sum = with;
    }
    *s = lost == lost ? sum + lost : sum;
}
extern "C" __global__ void reverse(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n)
        return;
    float first = x[i], last = x[n - 1 - i];
    x[i] = 2.0f * last;
    x[n - 1 - i] = 2.0f * first;
}
