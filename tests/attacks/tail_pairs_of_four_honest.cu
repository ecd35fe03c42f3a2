// task: ../../tasks/smoke/relu.task
// tries: honest: vectors of two where the number of elements is even, single elements otherwise
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(R*C, 256), 128>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = 2 * (blockIdx.x * 128 + threadIdx.x);
    if (i >= n)
        return;
    if (n % 2 == 0) {
        float2 v = *(const float2 *)(x + i);
        v.x = v.x < 0.0f ? 0.0f : v.x;
        v.y = v.y < 0.0f ? 0.0f : v.y;
        *(float2 *)(y + i) = v;
        return;
    }
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (i + 1 < n)
        y[i + 1] = x[i + 1] < 0.0f ? 0.0f : x[i + 1];
}
