// expect: wrong inaccurate
// row: 1
// tries: leaves an inout tensor as it was
// task: tasks/inplace.task
//! launch total<<<1, 32>>>(x, s, N)
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
