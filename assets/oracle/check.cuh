// Records of checks, and what is judged about one element of an output. Blocks look at consecutive
// elements and write a record each; the host adds the records up, in order. Loops stay rolled:
// bodies are long, and a unit is compiled for every task.

#define NONE 0x7fffffffffffffffll

// The share of this block: consecutive elements of `count`, whole warps' worth.
struct share {
    int64_t first, last;
    __device__ share(int64_t count) {
        const int64_t each = (count + gridDim.x - 1) / gridDim.x, piece = (each + 31) / 32 * 32;
        first = piece * blockIdx.x;
        first = first < count ? first : count;
        last = first + piece < count ? first + piece : count;
    }
};

__device__ static inline void note(oracle_found &f, int64_t i) {
    f.first = f.count++ ? f.first : i;
}

__device__ static inline void merge(oracle_found &f, const oracle_found &g) {
    f.count += g.count;
    f.first = g.first < f.first ? g.first : f.first;
}

__device__ static inline void merge(oracle_tally &t, const oracle_tally &u) {
    merge(t.unwritten, u.unwritten);
    merge(t.untrue, u.untrue);
    merge(t.bad, u.bad);
    compared_join(&t.all, &u.all);
}

__device__ static inline oracle_found nothing() {
    oracle_found f = {0, NONE};
    return f;
}

__device__ static inline oracle_tally empty_tally() {
    oracle_tally t = {};
    t.unwritten = t.untrue = t.bad = nothing();
    return t;
}

// The records of all threads of the block, as one.
template <class T> __device__ __noinline__ static void write_merged(const T &mine, T *out) {
    __shared__ T all[ORACLE_BLOCK];
    all[threadIdx.x] = mine;
#pragma unroll 1
    for (int half = ORACLE_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            merge(all[threadIdx.x], all[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        *out = all[0];
}

// ---- outputs ----

__device__ static inline allowance allowed(int64_t type) {
    const bool real =
        type == DTYPE_F64 || type == DTYPE_F32 || type == DTYPE_F16 || type == DTYPE_BF16;
    return allowance_of(real, CLASS_UNIT, RULES.limits.worst);
}

// Bits that are still the poison, which is NaN or, of an integer, may be a right value by chance.
__device__ static inline void judge_written(oracle_tally &tally, const oracle_tensor &t, dtype type,
                                            int64_t i, uint64_t key, double got, bool right) {
    const bool possible = t.whole ? !right : type == DTYPE_BOOL || isnan(got);
    if (t.poisoned && possible &&
        holds_bits(t.item, t.at, i, poison_pattern(type, key, (uint64_t)i)))
        note(tally.unwritten, i);
}

// One element against what is expected of it.
__device__ static inline bool compare_value(const oracle_tensor &t, dtype type, uint64_t key,
                                            int64_t i, const expected &x, double got,
                                            oracle_tally &tally) {
    const allowance a = allowed(type);
    bool ok = compare_one(&tally.all, &a, x.v, x.estimate, got);
    judge_written(tally, t, type, i, key, got, ok);
    if (type == DTYPE_BOOL && !compare_truth(&tally.all, ((const unsigned char *)t.at)[i])) {
        note(tally.untrue, i);
        ok = false;
    }
    return ok;
}
