// expect: bad-plan
// row: 41
// task: tasks/scaled.task
// why: workspace kept is written by a step that is done once
// tries: clears what was prepared in every call
//! workspace kept[C] : f32
//! once launch early<<<ceil_div(C, 256), 256>>>(s, kept, C)
//! memset kept = 0
//! launch scale<<<ceil_div(R*C, 256), 256>>>(x, kept, y, R*C, C)
extern "C" __global__ void early(const float *s, float *kept, int c) {
}
extern "C" __global__ void scale(const float *x, const float *kept, float *y, int n, int c) {
}
