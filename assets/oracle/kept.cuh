
// What is expected of every element of an output, kept by a case and read at memory speed.

__device__ static inline void keep(const oracle_tensor &t, int64_t i, const expected &x) {
    ((double2 *)t.expected)[i] = make_double2(x.v, x.estimate);
}

// Outputs with ties are not kept: nobody asks for `best`.
__device__ static inline expected kept(const double *expects, int64_t i) {
    const double2 x = __ldg((const double2 *)expects + i);
    expected r;
    r.v = x.x;
    r.estimate = x.y;
    r.best = 0.0;
    return r;
}

// Elements of this thread from i to `last`, one by one (kernels.cuh).
__device__ __noinline__ static void compare_each(const oracle_op &op, int64_t i, int64_t last,
                                                 oracle_tally &tally);

// Finite, defined and, if it is an integer, right: it is no poison, and its error is all there is to
// judge. Truth values are looked at one by one.
template <dtype T> __device__ static inline bool is_plain(const expected &x, double got) {
    const bool real = T == DTYPE_F64 || T == DTYPE_F32 || T == DTYPE_F16 || T == DTYPE_BF16;
    const double error = fabs(got - x.v);
    return (error <= DOUBLE_MOST) & (x.estimate <= DOUBLE_MOST) &
           (real | ((T != DTYPE_BOOL) & (error == 0)));
}

// N elements from i on, all of them on their way before the first is judged. False: one is not
// plain, and nothing was judged.
template <dtype T, int N>
__device__ static inline bool compare_plain(const double *expects, const void *at, int64_t i,
                                            oracle_tally &tally) {
    expected x[N];
    double got[N];
    bool plain = true;
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = kept(expects, i + k * ORACLE_BLOCK);
        got[k] = load<T>(at, i + k * ORACLE_BLOCK);
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        plain &= is_plain<T>(x[k], got[k]);
    if (!plain)
        return false;
#pragma unroll
    for (int k = 0; k < N; k++)
        if (!judge_value(tally, looser(T), x[k], got[k]))
            note(tally.bad, i + k * ORACLE_BLOCK);
    return true;
}

// All elements of this thread, in the order of compare_each, so that sums are the same to the last
// bit. The tally is in registers: only a copy is given away.
template <dtype T>
__device__ static inline oracle_tally compare_kept(const oracle_op &op, const share &mine) {
    enum { SOME = 4, STEP = SOME * ORACLE_BLOCK };
    const oracle_tensor &t = op.world->tensor[blockIdx.y];
    const double *const expects = t.expected;
    const void *const at = t.at;
    oracle_tally tally = empty_tally();
#pragma unroll 1
    for (int64_t i = mine.first + threadIdx.x; i < mine.last; i += STEP) {
        if (i + STEP - ORACLE_BLOCK < mine.last && compare_plain<T, SOME>(expects, at, i, tally))
            continue;
        oracle_tally copy = tally;
        compare_each(op, i, smaller(i + STEP, mine.last), copy);
        tally = copy;
    }
    return tally;
}
