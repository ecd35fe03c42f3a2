// expect: crash
// row: 23
// tries: a vector store at an address that is no multiple of 16
//! require R*C >= 8
//! launch relu<<<1, 32>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {
    if (threadIdx.x == 0)
        *(float4 *)(y + 1) = make_float4(0, 0, 0, 0);
}
