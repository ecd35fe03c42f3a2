// expect: forbidden
// row: 25
// tries: the message of a failing assertion
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __assertfail("accepted", "kernel.cu", 1, "relu", 1);
}
