// expect: bad-plan
// row: 41
// task: tasks/scaled.task
// why: stands before all others
// tries: does a step once that reads what a step of every call wrote
//! workspace kept[R, C] : f32
//! launch early<<<ceil_div(R*C, 256), 256>>>(x, kept, R*C)
//! once launch late<<<ceil_div(R*C, 256), 256>>>(s, kept, R*C, C)
//! launch copy<<<ceil_div(R*C, 256), 256>>>(kept, y, R*C)
extern "C" __global__ void early(const float *x, float *kept, int n) {
}
extern "C" __global__ void late(const float *s, float *kept, int n, int c) {
}
extern "C" __global__ void copy(const float *kept, float *y, int n) {
}
