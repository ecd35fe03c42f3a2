// task: tests/honest/tasks/above.task
// what: a bool output, four to a store
//! require C % 4 == 0
//! launch above<<<[ceil_div(C // 4, 64), ceil_div(R, 4)], [64, 4]>>>(x, t, y, R, C // 4)
extern "C" __global__ void above(const float4 *x, const float4 *t, uchar4 *y, int rows, int quads) {
    int j = blockIdx.x * 64 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= rows || j >= quads)
        return;
    float4 v = x[(long long)i * quads + j], u = t[j];
    y[(long long)i * quads + j] = make_uchar4(v.x > u.x, v.y > u.y, v.z > u.z, v.w > u.w);
}
