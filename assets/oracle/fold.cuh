// The chains of chain.h in the oracle's threads. A result may be made in segments of 2^k chains, by
// as many threads: each is a node of the same tree.
//
// Beside the CPU's rows: chains count the terms that are selected, as there, but where a reduction
// is cut into segments also those left out. Terms come in the order the reduction names its
// variables, which the CPU may change. A contraction of exact operands, all terms of which count
// (products_add), does not look for terms that are equal or lost, as the CPU's columns do not.

// Up to 2^LEVELS - 1 chains before the one at hand.
template <int LEVELS> struct row_of {
    chain c;
    chains before;
    level store[LEVELS];
};
typedef row_of<CHAIN_LEVELS> row;

template <int LEVELS> __device__ static inline void row_start(row_of<LEVELS> &r, const fold &f) {
    r.c = chain_start(&f);
    r.before = chains_start(r.store, LEVELS);
}

// A term with a pad that reads beyond an edge. That counts for 0: one kernel multiplies it with a NaN,
// another skips it.
__device__ static inline value padded_term(const fold &f, value t, bool beyond) {
    return f.unjudged && beyond && isnan(t.v) ? value(t.v, INFINITY) : t;
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
    double sum, partial_sq, partial_sum, term_sq;
};

// A double holds the product of two operands, so that it need not be rounded by itself.
__device__ static inline void products_add(products &c, const fold &f, double x, double y) {
    c.sum = fma(x, y, c.sum);
    if (x != 0 && y != 0)
        c.partial_sq = fma(c.sum, c.sum, c.partial_sq);
    if (f.truncation > 0)
        c.partial_sum += c.sum;
    c.term_sq = fma(x * x, y * y, c.term_sq);
}

__device__ static inline bool products_are_odd(const products &c, const fold &f) {
    return !(c.partial_sq <= f.most * f.most) || !(fabs(c.sum) <= f.most);
}

// s: the partial sum before the term x*y.
__device__ static inline void look_at_product(int &seen, double &s, const fold &f, double x,
                                              double y, bool beyond) {
    seen |= fold_see(&f, padded_term(f, product(x, y), beyond));
    s += x * y;
    if (fabs(s) > f.most && !seen)
        seen |= SEEN_OVERFLOW;
}

// A chain that is not full is the last; variance: of its terms.
__device__ __noinline__ static void take_products(chain &c, chains &before, const fold &f,
                                                  products p, double variance, int length) {
    c.sum = p.sum;
    c.variance = variance + f.relative2 * p.term_sq;
    c.partial_sq = p.partial_sq;
    c.partial_sum = p.partial_sum;
    c.term_sq = p.term_sq;
    c.length = length;
    c.count += length;
    if (length == CHAIN)
        chain_close(&c, &before, &f);
}

// ---- contractions of factors that carry errors ----

// What chain_add does, for ordinary terms of a chain that are products: the parts of their variances
// that go with their squares are added at the end. A chain that comes to something odd is left to
// chain_add.
struct sums {
    double sum, variance, partial_sq, partial_sum, term_sq, last, run, lost;
    alike same;
};

__device__ static inline double number_of(double x) {
    return x;
}
__device__ static inline double number_of(value x) {
    return x.v;
}

// The variance of a product, beside its own rounding, and more: as mul says.
__device__ static inline double through_product(const fold &, value x, double y, double more) {
    return fma(y * y, x.e, more);
}
__device__ static inline double through_product(const fold &, double x, value y, double more) {
    return fma(x * x, y.e, more);
}
__device__ static inline double through_product(const fold &f, value x, value y, double more) {
    return fma(x.v * x.v, y.e, fma(y.v * y.v, x.e, fma(f.worst * f.worst * x.e, y.e, more)));
}

template <class X, class Y>
__device__ static inline void sums_add(sums &c, const fold &f, X x, Y y) {
    const double v = number_of(x) * number_of(y), s = c.sum + v, bit = 0x1p-24 * fabs(s);
    const double run = fabs(v - c.last) <= bit ? c.run : 0; // it rounds like the one before
    const double own = through_product(f, x, y, v != 0 ? RULES.least2 : 0);
    alike_note(&c.same, &f, value(v, own));
    c.sum = s;
    c.variance += own;
    c.run = run;
    if (fabs(v) <= 4 * bit) {
        c.lost += v;
    } else {
        c.partial_sq = fma(s, fma(2, run, s), c.partial_sq);
        c.run += s;
    }
    c.last = v;
    if (f.truncation > 0)
        c.partial_sum += s;
    c.term_sq = fma(v, v, c.term_sq);
}

__device__ static inline bool sums_are_odd(const sums &c, const fold &f) {
    const double most2 = f.most * f.most;
    return !(c.partial_sq <= most2) || !(c.term_sq <= most2) || !(fabs(c.sum) <= f.most) || !(c.variance <= DOUBLE_MOST);
}

__device__ __noinline__ static void take_sums(chain &c, chains &before, const fold &f, sums p,
                                              int length) {
    c.lost = p.lost;
    c.last = p.last;
    c.run = p.run;
    c.alike = p.same;
    take_products(c, before, f, products{p.sum, p.partial_sq, p.partial_sum, p.term_sq},
                  p.variance + RULES.unit2 * p.term_sq, length);
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
__device__ static inline void put_part(oracle_part *out, const chain &c, const chains &before,
                                       const fold &f) {
    const bool extreme = fold_is_extreme(f.op);
    const value d = extreme ? value(c.sum, c.variance) : chains_sum(&c, &before, &f);
    oracle_part p = {d.v, d.e, before.before + c.sum, chains_bias(&c, &before), c.lost, c.count,
                     c.doubt, c.doubts, c.at, c.alike, c.seen};
    p.seen |= f.unjudged ? SEEN_UNJUDGED : 0;
    *out = p;
}

__device__ static inline void join_part(chain &c, chains &before, const fold &f,
                                        const oracle_part &p) {
    const bool first = c.count == 0;
    c.seen |= (int)p.seen;
    c.lost += p.lost;
    c.count += p.count;
    c.doubt += p.doubt;
    c.doubts += p.doubts;
    alike_join(&c.alike, &p.alike);
    if (p.count == 0)
        return;
    if (fold_is_extreme(f.op)) {
        if (fold_extreme(&f, &c.sum, &c.variance, value(p.sum, p.variance), false) || first)
            c.at = p.at;
        return;
    }
    before.bias += p.count * before.before + p.bias;
    before.before += p.before;
    chains_join(&before, &f, p.sum, p.variance);
    chain_note_partial(&c, &f, before.sum);
}

// A result a thread, from its segments in order.
extern "C" __global__ void oracle_join_parts(const __grid_constant__ oracle_join j) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= j.array.count)
        return;
    row r;
    row_start(r, j.how);
    for (int64_t k = 0; k < j.segments; k++)
        join_part(r.c, r.before, j.how, j.part[i * j.segments + k]);
    put_result(j.array, j.odd, i, chain_result(&r.c, &r.before, &j.how),
               value(r.c.sum, r.c.variance));
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
__device__ __noinline__ static void put_block_result(const oracle_op &op, const oracle_array &a,
                                                     int64_t *odd, const chain &c,
                                                     const chains &before, const fold &f,
                                                     int64_t i, int64_t segment) {
    if (op.segments > 1)
        put_part((oracle_part *)op.out + i * op.segments + segment, c, before, f);
    else
        put_result(a, odd, i, chain_result(&c, &before, &f), 0.0);
}
