// expect: bad-plan
// row: 41
// task: tasks/scaled.task
// why: x is no parameter of the task
// tries: prepares an input once, through a tensor map
//! require C % 32 == 0
//! workspace kept[R, C] : f32
//! tensormap tx = tiled(x, box=[32, 1])
//! once launch early<<<1, 32>>>(tx, kept)
//! launch copy<<<ceil_div(R*C, 256), 256>>>(kept, y, R*C)
extern "C" __global__ void early(const __grid_constant__ CUtensorMap tx, float *kept) {
}
extern "C" __global__ void copy(const float *kept, float *y, int n) {
}
