/* Values of a source, many at a time: what source_value makes one by one, with the same bits. Draws
 * that every element needs are made in arrays, what concerns a row once a row; elements that are
 * special go one by one through source_value, and so do integers. */
#include "base/wide.h"

#include "spec/source.h"

/* Elements first … first + n - 1, and their draws. */
struct many {
    const struct source *s;
    int64_t first;
    size_t n;
    double *v;
    uint64_t choice[SOURCE_MANY];
    double draw[SOURCE_MANY];
};

static void one(const struct many *m, size_t i) {
    m->v[i] = source_value(m->s, m->first + (int64_t)i);
}

static void one_by_one(const struct many *m) {
    for (size_t i = 0; i < m->n; i++)
        one(m, i);
}

static void choose(struct many *m) {
    rng_u64_many(m->s->choice, (uint64_t)m->first, m->n, m->choice);
}

/* from + by·v, and by·(from + v). */
WIDE static void stretch(double *v, size_t n, double from, double by) {
    for (size_t i = 0; i < n; i++)
        v[i] = from + by * v[i];
}

WIDE static void shift(double *v, size_t n, double from, double by) {
    for (size_t i = 0; i < n; i++)
        v[i] = by * (from + v[i]);
}

WIDE static void give_signs(const uint64_t *choice, size_t n, double *v) {
    for (size_t i = 0; i < n; i++)
        v[i] = (choice[i] >> 63 ? -1.0 : 1.0) * v[i];
}

/* ---- as stated, or about so ---- */

static bool is_constant(const struct source *s) {
    return s->dist == DIST_ONES || s->dist == DIST_ZEROS ||
           (s->dist == DIST_UNIFORM && s->a == s->b) || (s->dist == DIST_NORMAL && s->b == 0);
}

/* source_usual; of what is not constant source_stated too. */
static void usual(const struct many *m) {
    const struct source *s = m->s;
    uint64_t first = (uint64_t)m->first;
    if (is_constant(s)) {
        rng_unit_many(s->value, first, m->n, m->v);
        shift(m->v, m->n, 0.5, s->magnitude);
    } else if (s->dist == DIST_NORMAL) {
        rng_normal_many(s->value, first, m->n, m->v);
        stretch(m->v, m->n, s->a, s->b);
    } else if (s->dist == DIST_UNIFORM) {
        rng_unit_many(s->value, first, m->n, m->v);
        stretch(m->v, m->n, s->a, s->b - s->a);
    } else {
        for (size_t i = 0; i < m->n; i++)
            m->v[i] = source_usual(s, m->first + (int64_t)i);
    }
}

/* r is a multiple of 1009 exactly where r times the inverse of 1009 modulo 2^64 is at most
 * (2^64 - 1) / 1009 (Granlund and Montgomery, 1994): no division for each element. */
static bool is_rare(uint64_t r) {
    const uint64_t inverse = UINT64_C(0x60AA7F5D9F148D11);
    return r * inverse <= UINT64_MAX / 1009;
}

/* What of one row lies here: elements [from, to), the first of them in column col. */
struct part {
    size_t from, to;
    int64_t row, col;
};

static bool next_part(const struct many *m, struct part *p) {
    bool begin = p->to == 0;
    p->row = begin ? m->first / m->s->row : p->row + 1;
    p->col = begin ? m->first % m->s->row : 0;
    p->from = p->to;
    int64_t rest = m->s->row - p->col, left = (int64_t)(m->n - p->from);
    p->to = p->from + (size_t)(rest < left ? rest : left);
    return p->from < m->n;
}

static void spiked(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t spot = s->spot - m->first;
    usual(m);
    choose(m);
    while (next_part(m, &p)) {
        bool peak = source_peak_row(s, p.row);
        for (size_t i = p.from; i < p.to && !peak; i++)
            if (is_rare(m->choice[i]))
                one(m, i);
        int64_t at = (int64_t)p.from + source_peak_place(s, p.row) - p.col;
        if (peak && at >= (int64_t)p.from && at < (int64_t)p.to)
            one(m, (size_t)at);
    }
    if (spot >= 0 && spot < (int64_t)m->n)
        one(m, (size_t)spot);
}

/* Runs and rows of nothing but NaN. */
static void only_nan(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t last = m->first + (int64_t)m->n - 1;
    for (int64_t run = m->first / NAN_RUN; run <= last / NAN_RUN; run++) {
        int64_t from = run * NAN_RUN - m->first, to = from + NAN_RUN;
        for (int64_t i = from < 0 ? 0 : from; i < to && i < (int64_t)m->n && source_nan_run(s, run);
             i++)
            one(m, (size_t)i);
    }
    while (next_part(m, &p))
        for (size_t i = p.from; i < p.to && source_nan_row(s, p.row); i++)
            one(m, i);
}

/* Rows with a single special element: the others are as usual again. */
static void lone(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        int64_t place = source_lone_place(m->s, p.row), at = (int64_t)p.from + place - p.col;
        for (size_t i = p.from; i < p.to && place >= 0; i++)
            if (!isfinite(m->v[i]))
                one(m, i);
        if (place >= p.col && at < (int64_t)p.to)
            one(m, (size_t)at);
    }
}

static void nonfinite(struct many *m) {
    const struct source *s = m->s;
    int64_t third = s->count / 3;
    if (!third) {
        one_by_one(m);
        return;
    }
    usual(m);
    choose(m);
    for (size_t i = 0; i < m->n; i++)
        if (m->choice[i] % 64 == 0)
            one(m, i);
    only_nan(m);
    lone(m);
    for (int k = 0; k < 3; k++) {
        int64_t at = (s->spot + k * third) % s->count - m->first;
        if (at >= 0 && at < (int64_t)m->n)
            one(m, (size_t)at);
    }
}

/* ---- by rows ---- */

static void tiled(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    usual(m);
    for (size_t i = 0; i < m->n; i++)
        m->v[i] = fabs(m->v[i]);
    while (next_part(m, &p)) {
        if (p.row < s->tile_row || p.row >= s->tile_row + s->tile_rows)
            continue;
        for (size_t i = p.from; i < p.to; i++) {
            int64_t col = p.col + (int64_t)(i - p.from);
            if (col >= s->tile_col && col < s->tile_col + s->tile_cols)
                one(m, i);
        }
    }
}

/* A row that is not all infinite has rare infinities, a stretch of them, or none. */
static void infinite(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t spot = s->spot - m->first;
    usual(m);
    choose(m);
    while (next_part(m, &p)) {
        int row = source_infinite_row(s, p.row);
        uint64_t draw = source_row_draw(s, p.row);
        bool all = row == INFINITE_ALL, some = row == INFINITE_STRETCH;
        for (size_t i = p.from; i < p.to && row != INFINITE_NONE; i++)
            if (all || (some && source_in_stretch(s, draw, p.col + (int64_t)(i - p.from))))
                m->v[i] = source_row_infinity(draw);
            else if (m->choice[i] % 64 == 0)
                one(m, i);
    }
    if (spot >= 0 && spot < (int64_t)m->n)
        one(m, (size_t)spot);
}

static void offset(struct many *m) {
    double ratio = power_of_two(-m->s->offset_bits);
    struct part p = {0};
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    while (next_part(m, &p)) {
        double mean = source_offset_mean(m->s, p.row);
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = mean + mean * ((2 * m->v[i] - 1) * ratio);
    }
}

static void one_hot(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        uint64_t hot = rng_below(m->s->choice, (uint64_t)p.row, (uint64_t)m->s->row);
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = (uint64_t)p.col + (i - p.from) == hot ? 1 : 0;
    }
}

static void constant_rows(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        int64_t odd = (int64_t)p.from + source_odd_place(m->s, p.row) - p.col;
        double v = source_eighths(rng_u64(m->s->value, (uint64_t)p.row));
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = v;
        if (source_odd_place(m->s, p.row) >= p.col && odd < (int64_t)p.to)
            one(m, (size_t)odd);
    }
}

static void sorted(struct many *m) {
    struct part p = {0};
    int64_t row = m->s->row;
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    while (next_part(m, &p)) {
        int64_t place = (p.col + source_sorted_start(m->s, p.row)) % row;
        for (size_t i = p.from; i < p.to; i++) {
            double at = ((double)place + m->v[i]) / (double)row;
            m->v[i] = m->s->magnitude * (2 * at - 1);
            place = place + 1 < row ? place + 1 : 0;
        }
    }
}

/* ---- far from the stated ---- */

/* v holds one draw, which becomes the exponent; `draw` the significand. */
WIDE static void spread(const struct source *s, double span, const double *restrict draw, size_t n,
                        double *restrict v) {
    double magnitude = s->magnitude, most = source_float_most(s->dtype);
    for (size_t i = 0; i < n; i++) {
        int64_t k = (int)floor((2 * v[i] - 1) * span + 0.5);
        double x = magnitude * ((1 + draw[i]) * double_of_bits((uint64_t)(k + 1023) << 52));
        v[i] = x < most ? x : most;
    }
}

static void wide(struct many *m) {
    const struct source *s = m->s;
    rng_unit_many(s->value, (uint64_t)m->first, m->n, m->v);
    rng_unit_many(s->place, (uint64_t)m->first + 16, m->n, m->draw);
    spread(s, source_wide_exponent(s->dtype) * s->factor, m->draw, m->n, m->v);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void far(struct many *m) {
    const struct source *s = m->s;
    double most = source_float_most(s->dtype), power = 0;
    int64_t group = source_far_group(s), last = -1;
    rng_unit_many(s->value, (uint64_t)m->first, m->n, m->v);
    for (size_t i = 0; i < m->n; i++) {
        int64_t at = (m->first + (int64_t)i) / group;
        power = at == last ? power : source_far_power(s, at);
        last = at;
        m->v[i] = fmin(s->magnitude * (1 + m->v[i]) * power, most);
    }
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static uint64_t below(uint64_t draw, uint64_t n) {
    return (uint64_t)((unsigned __int128)draw * n >> 64);
}

static void literals(struct many *m) {
    const struct source *s = m->s;
    uint64_t draws[SOURCE_MANY];
    struct part p = {0};
    if (s->scalar) {
        one_by_one(m);
        return;
    }
    usual(m);
    choose(m);
    give_signs(m->choice, m->n, m->v);
    rng_u64_many(s->value, (uint64_t)m->first, m->n, draws);
    while (next_part(m, &p)) {
        bool all = source_counts_row(s, p.row);
        uint64_t most = source_counts_most(s, p.row);
        for (size_t i = p.from; i < p.to; i++)
            if (all || (m->choice[i] & 5) == 4)
                m->v[i] = (m->choice[i] >> 63 ? -1.0 : 1.0) * (double)(1 + below(draws[i], most));
            else if (m->choice[i] & 1)
                m->v[i] = s->literal[below(draws[i], (uint64_t)s->nliterals)];
            else if (m->choice[i] & 2)
                m->v[i] = s->between * (2 * ((double)(draws[i] >> 11) * 0x1p-53) - 1);
    }
}

static void large(struct many *m) {
    double top = source_large_top(m->s);
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    stretch(m->v, m->n, 0.5, 0.5);
    shift(m->v, m->n, 0, top);
    choose(m);
    give_signs(m->choice, m->n, m->v);
    for (size_t i = 0; i < m->n && m->s->largest; i++)
        if (is_rare(m->choice[i]))
            one(m, i);
    for (int64_t k = 0; k < 2 && m->s->largest; k++) {
        int64_t at = (m->s->spot + k) % m->s->count - m->first;
        if (at >= 0 && at < (int64_t)m->n)
            one(m, (size_t)at);
    }
}

/* x % bits of an x below 2^24 is x - bits·(x·⌈2^40/bits⌉ / 2^40): the error of the inverse, less
 * than `bits`, times x stays below 2^40. */
WIDE static void shorten(const uint64_t *restrict r, size_t n, unsigned bits, double step,
                         double *restrict v) {
    uint64_t inverse = ((UINT64_C(1) << 40) + bits - 1) / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = r[i] >> 40, zeros = x - bits * (x * inverse >> 40);
        v[i] = (double)(int32_t)((r[i] & mask) >> zeros) * step;
    }
}

static void subnormal(struct many *m) {
    uint64_t draws[SOURCE_MANY];
    enum dtype t = m->s->dtype;
    rng_u64_many(m->s->value, (uint64_t)m->first, m->n, draws);
    shorten(draws, m->n, source_subnormal_bits(t), source_subnormal_step(t), m->v);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void zeros(struct many *m) {
    choose(m);
    for (size_t i = 0; i < m->n; i++)
        m->v[i] = (m->choice[i] >> 63 ? -1 : 1) * 0.0;
}

static void reals(struct many *m);

/* Each row by the kind of its group. */
static void mixed(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        struct many row;
        struct source s = *m->s;
        s.kind = source_kind_at(m->s, m->first + (int64_t)p.from);
        row.s = &s;
        row.first = m->first + (int64_t)p.from;
        row.n = p.to - p.from;
        row.v = m->v + p.from;
        reals(&row);
    }
}

static void with_signs(struct many *m) {
    usual(m);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void stated(struct many *m) {
    if (is_constant(m->s))
        one_by_one(m);
    else
        usual(m);
}

static void reals(struct many *m) {
    static void (*const of_kind[DATA_COUNT])(struct many * m) = {[DATA_STATED] = stated,
                                                                 [DATA_SIGNED] = with_signs,
                                                                 [DATA_WIDE] = wide,
                                                                 [DATA_ZEROS] = zeros,
                                                                 [DATA_SUBNORMAL] = subnormal,
                                                                 [DATA_LARGE] = large,
                                                                 [DATA_ONEHOT] = one_hot,
                                                                 [DATA_SORTED] = sorted,
                                                                 [DATA_CONSTANT] = constant_rows,
                                                                 [DATA_TILE] = tiled,
                                                                 [DATA_SPIKES] = spiked,
                                                                 [DATA_OFFSET] = offset,
                                                                 [DATA_LITERALS] = literals,
                                                                 [DATA_FAR] = far,
                                                                 [DATA_MIXED] = mixed,
                                                                 [DATA_INFINITE] = infinite,
                                                                 [DATA_NONFINITE] = nonfinite};
    of_kind[m->s->kind](m);
}

void source_value_many(const struct source *s, int64_t first, size_t n, double *out) {
    struct many m;
    BUG_IF(n > SOURCE_MANY);
    m.s = s;
    m.first = first;
    m.n = n;
    m.v = out;
    if (s->type == 'f' && !s->held)
        reals(&m);
    else
        one_by_one(&m);
}

WIDE static void store_f32(double *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] != v[i] ? v[i] : (double)(float)v[i];
}

void source_stored_many(const struct source *s, char type, double *v, size_t n) {
    if (type == 'f' && s->dtype == DTYPE_F32)
        store_f32(v, n);
    else
        for (size_t i = 0; i < n; i++)
            v[i] = source_stored(s, type, v[i]);
}
