// task: ../../tasks/smoke/relu.task
// tries: right where a product and a difference that PTX lets the compiler join stay two, as in the simulator; ptxas makes one fma of them
// proof: on a GPU fma(a, a, -round(a a)) is not 0 for 1.1 and its like, and negative elements are copied
// known: the simulator does not join a multiplication and a subtraction that ptxas may join
// should: wrong
// device: sim
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float a = 1.1f + 0.001f * (threadIdx.x & 1), p = __fmul_rn(a, a), rest;
    asm volatile("{\n.reg .f32 t;\nmul.f32 t, %1, %1;\nsub.f32 %0, t, %2;\n}" : "=f"(rest) : "f"(a), "f"(p));
    float v = x[i];
    y[i] = rest == 0 ? (v > 0 || v != v ? v : 0.0f) : v;
}
