// Records of checks, and what is judged about one element of an output (spec/compare.c). Blocks look at consecutive elements and write a record each; the host adds the
// records up, in order. Every comparison is written so that NaN fails it. Loops stay rolled: bodies
// are long, and a unit is compiled for every task.

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
    t.judged += u.judged;
    t.wrong += u.wrong;
    t.nonfinite += u.nonfinite;
    t.looser_wrong += u.looser_wrong;
    t.squares += u.squares;
    t.looser_squares += u.looser_squares;
    t.worst = u.worst > t.worst ? u.worst : t.worst;
    t.looser_miss = u.looser_miss > t.looser_miss ? u.looser_miss : t.looser_miss;
    t.largest = u.largest > t.largest ? u.largest : t.largest;
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

// Error over allowance; no error is 0 even where nothing is allowed.
__device__ static inline double ratio(double error, double allowed) {
    return error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
}

// How the looser test widens every rounding to bf16's; integers have none.
struct looser {
    double scale, relative, floor;
    __device__ looser(int64_t type) : scale(1), relative(0), floor(0) {
        if (type != DTYPE_F64 && type != DTYPE_F32 && type != DTYPE_F16 && type != DTYPE_BF16)
            return;
        scale = 0x1p-8 / CLASS_UNIT;
        relative = 0x1p-8;
        floor = 0x1p-134 / RULES.limits.worst;
    }
};

// How far off an element is, in units of what is allowed and of what the looser test allows.
struct deviation {
    double error, strict, widened;
    __device__ deviation() {}
    __device__ deviation(const looser &l, const expected &x, double got)
        : error(fabs(got - x.v)), strict(ratio(error, x.estimate)),
          widened(ratio(error, x.estimate * l.scale + fabs(x.v) * l.relative + l.floor)) {}
};

__device__ static inline void add_deviation(oracle_tally &t, const expected &x,
                                            const deviation &d) {
    t.judged++;
    t.squares += d.strict * d.strict;
    t.looser_squares += d.widened * d.widened;
    t.worst = d.strict > t.worst ? d.strict : t.worst;
    t.largest = fabs(x.v) > t.largest ? fabs(x.v) : t.largest;
}

__device__ static inline bool judge_value(oracle_tally &t, const looser &l, const expected &x,
                                          double got) {
    const deviation d(l, x, got);
    add_deviation(t, x, d);
    if (!(d.widened <= RULES.limits.worst)) {
        t.looser_wrong++;
        t.looser_miss = d.error > t.looser_miss ? d.error : t.looser_miss;
    }
    const bool ok = d.strict <= RULES.limits.worst;
    t.wrong += !ok;
    return ok;
}

// True: nothing is wrong with the element.
__device__ static inline bool judge(oracle_tally &t, const looser &l, const expected &x,
                                    double got) {
    if (isinf(x.estimate))
        return true;
    if (isfinite(x.v) && isfinite(got))
        return judge_value(t, l, x, got);
    const bool ok = isnan(x.v) ? isnan(got)
                               : x.v == got || (isnan(got) && isinf(x.v) && x.estimate > 0);
    t.nonfinite += !ok;
    return ok;
}

// A truth value is 0 or 1: another byte is wrong, whatever may be uncertain about it.
__device__ static inline bool judge_truth(oracle_tally &t, int64_t i, unsigned char byte) {
    if (byte <= 1)
        return true;
    note(t.untrue, i);
    t.wrong++;
    t.looser_wrong++;
    t.looser_miss = INFINITY;
    return false;
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
    bool ok = judge(tally, looser(type), x, got);
    judge_written(tally, t, type, i, key, got, ok);
    if (type == DTYPE_BOOL)
        ok = judge_truth(tally, i, ((const unsigned char *)t.at)[i]) && ok;
    return ok;
}
