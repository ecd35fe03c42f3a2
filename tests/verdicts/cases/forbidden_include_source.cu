// expect: forbidden
// row: 24
// tries: includes the file it was read from, or one beside it
#include "ok_naive.cu"
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
