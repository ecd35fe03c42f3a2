// expect: compile-limit
// row: 24
// tries: templates that multiply at every level
// options: --compile-limit 3
//! launch relu<<<1, 256>>>(x, y)
template <int N, int M> struct bomb {
    static constexpr int v = bomb<N - 1, M>::v + bomb<N - 1, M + (1 << N)>::v;
};
template <int M> struct bomb<0, M> {
    static constexpr int v = M;
};
extern "C" __global__ void relu(const float *x, float *y) { y[0] = bomb<26, 0>::v; }
