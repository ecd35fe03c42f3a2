// expect: launch-error
// row: 10
// tries: a tensor map with more rows than the tensor has
//! tensormap tx = tiled(x, box=[32, 32], shape=[C, R + 64])
//! launch relu<<<ceil_div(R*C, 256), 256>>>(tx, y, R*C)
extern "C" __global__ void relu(const __grid_constant__ CUtensorMap tx, float *y, int n) {}
