
// What is expected of every element of an output, which a case keeps, and comparisons with it: few
// instructions an element and several loads under way, so that memory is what they wait for.

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

// N real numbers from i on, all of them on their way before the first is looked at. False: one of
// them is not finite, not defined or off by too much, and nothing was judged. The others are right and
// no poison, and how far they are off is all there is to tell; the looser test, which allows no less,
// has nothing against them.
static_assert(CLASS_UNIT <= 0x1p-8, "the looser test is none");
template <dtype T, int N>
__device__ static inline bool compare_right(const double *expects, const void *at, int64_t i,
                                            oracle_tally &tally) {
    const allowance a = allowed(T);
    expected x[N];
    double got[N];
    deviation d[N];
    bool right = true;
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = kept(expects, i + k * ORACLE_BLOCK);
        got[k] = load<T>(at, i + k * ORACLE_BLOCK);
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        d[k] = deviation_of(&a, x[k].v, x[k].estimate, got[k]);
        right &= (d[k].strict <= RULES.limits.worst) & !isinf(x[k].estimate);
    }
#pragma unroll
    for (int k = 0; k < N && right; k++)
        compared_add(&tally.all, x[k].v, d[k]);
    return right;
}

// Elements of this thread from i on, while there are several before `last`; returns where it came to.
// In the order of compare_each, so that sums are the same to the last bit. The tally is in registers:
// only copies are given away.
template <dtype T>
__device__ static inline int64_t compare_kept(const oracle_op &op, int64_t i, int64_t last,
                                              oracle_tally &out) {
    enum { SOME = 4, STEP = SOME * ORACLE_BLOCK };
    const oracle_tensor &t = op.world->tensor[blockIdx.y];
    const double *const expects = t.expected;
    const void *const at = t.at;
    oracle_tally tally = out;
#pragma unroll 1
    for (; i + STEP - ORACLE_BLOCK < last; i += STEP) {
        if (compare_right<T, SOME>(expects, at, i, tally))
            continue;
        oracle_tally copy = tally;
        compare_each(op, i, i + STEP, copy);
        tally = copy;
    }
    out = tally;
    return i;
}
