// expect: compile-limit
// row: 24
// tries: a few lines that become gigabytes
// options: --compile-limit 3
#define A(x) x x x x x x x x x x x x x x x x
#define B(x) A(A(A(A(A(x)))))
//! launch relu<<<1, 256>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) { B(B(y[threadIdx.x] += x[0];)) }
