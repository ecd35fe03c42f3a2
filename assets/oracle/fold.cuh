// Terms folded into one result, with the error of an honest evaluation order: the rows of
// spec/fold.c, chains of CHAIN terms whose results are added in pairs like carries. A result may be
// made in segments of 2^k chains, by as many threads: each is a node of the same tree.
//
// Beside the CPU's rows: chains count the terms that are selected, as there, but where a reduction
// is cut into segments also those left out. Terms come in the order the reduction names its
// variables, which the CPU may change. A contraction of exact operands, all terms of which count
// (products_add), does not look for terms that are equal or lost, as the CPU's columns do not.

enum { CHAIN = 1024, CHAIN_LEVELS = 40 };

// What was seen among the terms.
enum {
    SEEN_NAN = 1,       // that was put in
    SEEN_UNDEFINED = 2, // a variance without end
    SEEN_INFINITE = 4,
    SEEN_OVERFLOW = 8, // a partial result beyond `most`
    SEEN_UNJUDGED = 16, // by the fold of a segment, which whoever joins them is not told of
};

// The chain: sum, variance of the terms, squares of partial sums (equal terms together), sum of
// partial sums, squares of terms; the last term, partial sums since it first came; terms too small
// for their sum. Then what concerns all terms.
struct chain {
    double s, e, q, a, w;
    double last, run, lost;
    double count, doubt, doubts, at;
    int length, seen;
};

// Up to 2^LEVELS - 1 chains.
template <int LEVELS> struct row_of {
    chain c;
    double base_s, base_e; // the chains before
    double before, bias;   // sum of the chains before; of all partial sums
    int64_t full;          // levels in use; number of chains before
    double level_s[LEVELS], level_e[LEVELS];
};
typedef row_of<CHAIN_LEVELS> row;

__device__ static inline bool is_extreme(const oracle_fold &f) {
    return f.op == REDUCTION_MAX || f.op == REDUCTION_MIN || f.op == REDUCTION_ARGMAX ||
           f.op == REDUCTION_ARGMIN;
}

__device__ static inline double wanted(const oracle_fold &f) {
    return f.op == REDUCTION_MAX || f.op == REDUCTION_ARGMAX ? 1 : -1;
}

template <int LEVELS>
__device__ static inline void row_start(row_of<LEVELS> &r, const oracle_fold &f) {
    r.c = chain{};
    r.c.s = is_extreme(f) ? -INFINITY * wanted(f) : f.op == REDUCTION_PROD ? 1 : 0;
    r.base_s = r.base_e = r.before = r.bias = 0;
    r.full = 0;
}

// A term that may be the largest as well as the one that was chosen.
__device__ static inline bool ties(double worst, value best, value term) {
    if (isinf(term.e) || isinf(best.e) || is_open(term))
        return true;
    return !isnan(best.v) && value_within(best.v - term.v, best.e + term.e, worst);
}

// The better of (s, e) and a term becomes (s, e). True: the term is.
__device__ static inline bool take_extreme(const oracle_fold &f, double &s, double &e, value t,
                                           bool doubtful) {
    const double want = wanted(f);
    const bool better = want * t.v > want * s || (isnan(t.v) && !isnan(s));
    const double other = better ? e : t.e;
    double chosen = better ? t.e : e;
    if (doubtful) { // with it or without it?
        e = better ? INFINITY : e;
        return false;
    }
    if (is_open(t))
        chosen = f.op == REDUCTION_MAX || f.op == REDUCTION_MIN ? INFINITY : chosen;
    else if (other > chosen && ties(f.worst, value(s, e), t))
        chosen = other;
    e = chosen;
    s = better ? t.v : s;
    return better;
}

__device__ static inline int see(const oracle_fold &f, value t) {
    if (fabs(t.v) <= f.most && t.e <= DOUBLE_MOST)
        return 0;
    if (isinf(t.e))
        return SEEN_UNDEFINED;
    return isnan(t.v) ? SEEN_NAN : isinf(t.v) ? SEEN_INFINITE : SEEN_OVERFLOW;
}

// The same of a term that a guard has selected, or may have. Where that is doubtful, a NaN or an infinity
// shows in one kernel and not in another.
__device__ static inline int see_guarded(const oracle_fold &f, value t, value guard) {
    if (guard.e > 0 && !isfinite(t.v))
        return SEEN_UNDEFINED;
    return guard.v != 0 ? see(f, t) : 0;
}

// A term with a pad that reads beyond an edge. That counts for 0: one kernel multiplies it with a NaN,
// another skips it.
__device__ static inline value padded_term(const oracle_fold &f, value t, bool beyond) {
    return f.unjudged && beyond && isnan(t.v) ? value(t.v, INFINITY) : t;
}

__device__ static inline void note_partial(chain &c, const oracle_fold &f, double s) {
    if (fabs(s) > f.most && !c.seen)
        c.seen |= SEEN_OVERFLOW;
}

// The variance of a chain's own additions.
__device__ static inline double chain_variance(const oracle_fold &f, const chain &c) {
    return f.unit2 * (c.q + c.length * (c.s * c.s / 3 + c.w / 6));
}

// A closed chain, or a segment of them, joins those before it like a carry.
template <int LEVELS>
__device__ __noinline__ static void row_join(row_of<LEVELS> &r, const oracle_fold &f, double s,
                                             double e) {
    int k = 0;
    for (; r.full >> k & 1; k++) {
        s += r.level_s[k];
        e += r.level_e[k] + f.unit2 * s * s;
    }
    r.level_s[k] = s;
    r.level_e[k] = e;
    r.full++;
    for (k++; k < LEVELS; k++)
        if (r.full >> k & 1) {
            s += r.level_s[k];
            e += r.level_e[k] + f.unit2 * s * s;
        }
    r.base_s = s;
    r.base_e = e;
    note_partial(r.c, f, s);
}

template <int LEVELS>
__device__ __noinline__ static void row_close(row_of<LEVELS> &r, const oracle_fold &f) {
    const chain &c = r.c;
    r.bias += c.length * r.before + c.a;
    r.before += c.s;
    row_join(r, f, c.s, c.e + chain_variance(f, c));
}

// The chain is as long as it may be. c stays in registers: nobody is given its address.
template <int LEVELS>
__device__ static inline void row_carry(row_of<LEVELS> &r, chain &c, const oracle_fold &f) {
    const oracle_fold own = f;
    r.c = c;
    row_close(r, own);
    c.seen = r.c.seen;
    c.s = c.e = c.q = c.a = c.w = c.run = 0;
    c.length = 0;
}

__device__ static inline void chain_sum(chain &c, const oracle_fold &f, value t) {
    const double s = c.s + t.v, d = t.v - c.last;
    const double run = fabs(d) <= 0x1p-24 * fabs(s) ? c.run : 0; // it rounds like the one before
    const bool lost = fabs(t.v) <= 0x1p-22 * fabs(s);
    c.s = s;
    c.e += t.e + f.relative2 * t.v * t.v;
    c.q += lost ? 0 : s * s + 2 * s * run;
    c.run = lost ? run : run + s;
    c.lost += lost ? t.v : 0;
    c.last = t.v;
    c.a += s;
    c.w += t.v * t.v;
    note_partial(c, f, s);
    c.length++;
}

__device__ static inline void chain_product(chain &c, const oracle_fold &f, value t) {
    const double s = c.s * t.v;
    c.e = t.v * t.v * c.e + c.s * c.s * t.e + f.unit2 * s * s + (s == 0 ? 0 : f.least2);
    c.s = s;
    note_partial(c, f, s);
}

// A term that a guard has selected, or may have; at: its place, for argmax. c is the chain of r,
// held by the caller.
template <int LEVELS>
__device__ static inline void row_add(row_of<LEVELS> &r, chain &c, const oracle_fold &f, value t,
                                      value guard, int64_t at) {
    const bool doubtful = guard.e > 0;
    if (is_extreme(f)) {
        if (take_extreme(f, c.s, c.e, t, doubtful) || c.count == 0)
            c.at = (double)at; // the first is the best so far, be it the least there is
        c.count += 1;
        return;
    }
    if (doubtful) {
        c.doubt += t.v * t.v;
        c.doubts += 1;
    }
    c.seen |= see_guarded(f, t, guard);
    if (guard.v == 0)
        return;
    c.count += 1;
    if (f.op == REDUCTION_PROD) {
        chain_product(c, f, t);
        return;
    }
    chain_sum(c, f, t);
    if (c.length == CHAIN)
        row_carry(r, c, f);
}

__device__ static inline value product(double x, double y) {
    return settle(value_mul(RULES, x, y), SETTLE_FACTORS, x, y);
}

// The term x*y of exact operands, whose rounding is in relative2.
__device__ static inline value summed_product(double x, double y) {
    const double v = x * y;
    return fabs(v) <= FLOAT_MOST ? value(v) : product(x, y);
}

// The same in a contraction, up to a chain of them: nothing but sums, so that a thread can make
// several results at once. What is out of the ordinary is found at the end; then the terms of that
// result are gone through once more, to look.
struct products {
    double s, q, a, w;
};

// A double holds the product of two operands, so that it need not be rounded by itself.
__device__ static inline void products_add(products &c, const oracle_fold &f, double x, double y) {
    c.s = fma(x, y, c.s);
    if (x != 0 && y != 0)
        c.q = fma(c.s, c.s, c.q);
    if (f.truncation > 0)
        c.a += c.s;
    c.w = fma(x * x, y * y, c.w);
}

__device__ static inline bool products_are_odd(const products &c, const oracle_fold &f) {
    return !(c.q <= f.most * f.most) || !(fabs(c.s) <= f.most);
}

// s: the partial sum before the term x*y.
__device__ static inline void look_at_product(int &seen, double &s, const oracle_fold &f, double x,
                                              double y, bool beyond) {
    seen |= see(f, padded_term(f, product(x, y), beyond));
    s += x * y;
    if (fabs(s) > f.most && !seen)
        seen |= SEEN_OVERFLOW;
}

// A chain that is not full is the last; e: the variances of its terms.
template <int LEVELS>
__device__ __noinline__ static void row_take_products(row_of<LEVELS> &r, const oracle_fold &f,
                                                      products p, double e, int length) {
    chain &c = r.c;
    c.s = p.s;
    c.e = e + f.relative2 * p.w;
    c.q = p.q;
    c.a = p.a;
    c.w = p.w;
    c.length = length;
    c.count += length;
    if (length < CHAIN)
        return;
    row_close(r, f);
    c.s = c.e = c.q = c.a = c.w = c.run = 0;
    c.length = 0;
}

// ---- contractions of factors that carry errors ----

// What row_add does, for ordinary terms of a chain that are products: the parts of their variances
// that go with their squares are added at the end. A chain that comes to something odd is left to
// row_add.
struct sums {
    double s, e, q, a, w, last, run, lost;
};

__device__ static inline double number_of(double x) {
    return x;
}
__device__ static inline double number_of(value x) {
    return x.v;
}

// The variance of a product, beside its own rounding, and more: as mul says.
__device__ static inline double through_product(const oracle_fold &, value x, double y, double more) {
    return fma(y * y, x.e, more);
}
__device__ static inline double through_product(const oracle_fold &, double x, value y, double more) {
    return fma(x * x, y.e, more);
}
__device__ static inline double through_product(const oracle_fold &f, value x, value y, double more) {
    return fma(x.v * x.v, y.e, fma(y.v * y.v, x.e, fma(f.worst * f.worst * x.e, y.e, more)));
}

template <class X, class Y>
__device__ static inline void sums_add(sums &c, const oracle_fold &f, X x, Y y) {
    const double v = number_of(x) * number_of(y), s = c.s + v, bit = 0x1p-24 * fabs(s);
    const double run = fabs(v - c.last) <= bit ? c.run : 0; // it rounds like the one before
    c.s = s;
    c.e = through_product(f, x, y, c.e);
    if (v != 0)
        c.e += RULES.least2;
    c.run = run;
    if (fabs(v) <= 4 * bit) {
        c.lost += v;
    } else {
        c.q = fma(s, fma(2, run, s), c.q);
        c.run += s;
    }
    c.last = v;
    if (f.truncation > 0)
        c.a += s;
    c.w = fma(v, v, c.w);
}

__device__ static inline bool sums_are_odd(const sums &c, const oracle_fold &f) {
    const double most2 = f.most * f.most;
    return !(c.q <= most2) || !(c.w <= most2) || !(fabs(c.s) <= f.most) || !(c.e <= DOUBLE_MOST);
}

template <int LEVELS>
__device__ __noinline__ static void row_take_sums(row_of<LEVELS> &r, const oracle_fold &f, sums p,
                                                  int length) {
    chain &c = r.c;
    c.lost = p.lost;
    c.last = p.last;
    c.run = p.run;
    row_take_products(r, f, products{p.s, p.q, p.a, p.w}, p.e + RULES.unit2 * p.w, length);
}

// What the terms seen make of a result. Of an infinite term honest kernels may make NaN: by
// compensation, by splitting the operands of products, or times a product that underflowed.
__device__ static inline value settle_result(int seen, value d) {
    if (seen & SEEN_NAN)
        return value(NAN, 0);
    if (seen & SEEN_UNDEFINED || isnan(d.v))
        return value(d.v, INFINITY);
    if (seen & SEEN_INFINITE)
        return value(d.v, 1);
    return value(d.v, seen & SEEN_OVERFLOW ? INFINITY : d.e);
}

__device__ static inline value finish(const oracle_fold &f, const chain &c, value d) {
    if (f.op == REDUCTION_ARGMAX || f.op == REDUCTION_ARGMIN)
        return value(c.at, c.count > 0 ? 0 : INFINITY);
    if (is_extreme(f))
        return d;
    if (f.op == REDUCTION_PROD && c.doubts > 0)
        d.e = INFINITY;
    if (f.op == REDUCTION_MEAN) {
        d.v /= c.count;
        d.e = (d.e + c.doubts * d.v * d.v) / (c.count * c.count) + f.unit2 * d.v * d.v;
        d.e = c.count == 0 ? INFINITY : d.e;
    }
    // Terms near the smallest numbers may all round the same way.
    if (d.e > 0 && d.e <= DOUBLE_MOST && f.unit2 > 0)
        d.e += f.least2 * (f.op == REDUCTION_MEAN ? 1 : c.count * c.count);
    d = settle_result(c.seen, d);
    if (c.seen & SEEN_NAN)
        return d;
    return f.unjudged || c.seen & SEEN_UNJUDGED ? value(d.v, INFINITY) : d;
}

// The result of the terms so far.
template <int LEVELS>
__device__ static inline value row_result(const row_of<LEVELS> &r, const chain &c,
                                          const oracle_fold &f) {
    value d(c.s, c.e);
    if (f.op == REDUCTION_SUM || f.op == REDUCTION_MEAN) {
        const double bias = f.truncation * (r.bias + c.length * r.before + c.a);
        d.e += chain_variance(f, c);
        if (r.full) {
            d.v += r.base_s;
            d.e += r.base_e + (c.length ? f.unit2 * d.v * d.v : 0);
        }
        d.e += bias * bias + c.doubt + f.unit2 * 0x1p48 * c.lost * c.lost;
    }
    return finish(f, c, d);
}

__device__ static inline value element_at(const oracle_array &a, int64_t i) {
    return value(a.value[i], a.variance[i]);
}

// What was made becomes element i.
__device__ static inline void put_result(const oracle_array &a, int64_t *odd, int64_t i, value d,
                                         value best) {
    a.value[i] = d.v;
    a.variance[i] = d.e;
    if (a.best) {
        a.best[i] = best.v;
        a.best[a.count + i] = best.e;
    }
    if (!isfinite(d.v))
        *odd = 1;
}

// ---- results in segments ----

// All segments but the last are the same power of two of chains, so that adding segments in pairs
// is adding their chains in pairs.
template <int LEVELS>
__device__ static inline void put_part(oracle_part *out, const row_of<LEVELS> &r,
                                       const oracle_fold &f) {
    const chain &c = r.c;
    oracle_part p = {c.s, c.e, c.s, c.a, c.lost, c.count, c.doubt, c.doubts, c.at, c.seen};
    p.seen |= f.unjudged ? SEEN_UNJUDGED : 0;
    if (!is_extreme(f)) {
        p.e += chain_variance(f, c);
        p.before = r.before + c.s;
        p.bias = r.bias + c.length * r.before + c.a;
        if (r.full) {
            p.s += r.base_s;
            p.e += r.base_e + (c.length ? f.unit2 * p.s * p.s : 0);
        }
    }
    *out = p;
}

// ---- several results a thread ----

// The first row and column of results of thread n, and what is left of n. A warp's lie side by side
// along the axes that do in memory: the rows or, if not ROWS_RUN, the columns.
struct block_place {
    int64_t row, column, rest;
};
template <bool ROWS_RUN>
__device__ static inline block_place place_block(const oracle_tile &t, int64_t n) {
    const int64_t lane = n % 32, tile = n / 32;
    const int64_t down = (t.row_step + t.lane_rows - 1) / t.lane_rows;
    const int64_t across = (t.column_step + t.lane_columns - 1) / t.lane_columns;
    const int64_t row = ROWS_RUN ? tile % down : tile / across % down;
    const int64_t column = ROWS_RUN ? tile / down % across : tile % across;
    return {row * t.lane_rows + (ROWS_RUN ? lane % t.lane_rows : lane / t.lane_columns),
            column * t.lane_columns + (ROWS_RUN ? lane / t.lane_rows : lane % t.lane_columns),
            tile / (down * across)};
}

// One of them; segment: which of its segments.
template <int LEVELS>
__device__ __noinline__ static void put_block_result(const oracle_op &op, const oracle_array &a,
                                                     int64_t *odd, const row_of<LEVELS> &r,
                                                     const oracle_fold &f, int64_t i,
                                                     int64_t segment) {
    if (op.segments > 1)
        put_part((oracle_part *)op.out + i * op.segments + segment, r, f);
    else
        put_result(a, odd, i, row_result(r, r.c, f), 0.0);
}
