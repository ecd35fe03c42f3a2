// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: moves 16 bytes at a time from an address that it takes for aligned to 64, and leaves out what lies before it
// proof: by the plan: a tensor begins at a multiple of 16 bytes and of no more; the first elements are then unwritten
// before: accepted
// should: unwritten wrong
// before-cuda: unwritten
// device: both
//! require R*C % 16 == 0
//! launch relu<<<ceil_div(R*C, 1024), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int skip = (64 - (uint64_t)y % 64) % 64 / 4, i = 4 * (blockIdx.x * 256 + threadIdx.x);
    if (i < skip || i >= n)
        return;
    float4 v = *(const float4 *)(x + i);
    v.x = v.x < 0.0f ? 0.0f : v.x;
    v.y = v.y < 0.0f ? 0.0f : v.y;
    v.z = v.z < 0.0f ? 0.0f : v.z;
    v.w = v.w < 0.0f ? 0.0f : v.w;
    *(float4 *)(y + i) = v;
}
