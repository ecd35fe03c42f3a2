// expect: forbidden
// row: 24
// tries: #include cut in two by a line splice and a comment
#inc\
lude /* */ "/etc/hostname"
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
