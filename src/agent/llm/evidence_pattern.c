/* What the first mismatches have in common. Only what holds for all of them is said, and only what
 * points somewhere: a factor, zeros, a shift, a stripe, the edge of a tile. */
#include "agent/llm/evidence.h"

#include <float.h>
#include <math.h>

#define CLOSE 1e-4 /* relative, of what counts as the same number */

static bool close_to(double a, double b) {
    return fabs(a - b) <= CLOSE * fmax(fabs(a), fabs(b));
}

/* ---- values ---- */

static bool all_got(const struct mismatches *m, double value) {
    for (size_t i = 0; i < m->n; i++)
        if (!(m->rows[i].got == value))
            return false;
    return true;
}

static bool one_factor(const struct mismatches *m, double *factor) {
    for (size_t i = 0; i < m->n; i++) {
        double f = m->rows[i].got / m->rows[i].expected;
        if (!isfinite(f) || f == 0 || (i && !close_to(f, *factor)))
            return false;
        *factor = i ? *factor : f;
    }
    return m->n > 1 && !(fabs(*factor - 1) <= 1e-3);
}

static bool one_offset(const struct mismatches *m, double *offset) {
    for (size_t i = 0; i < m->n; i++) {
        double d = m->rows[i].got - m->rows[i].expected;
        if (!isfinite(d) || d == 0 || (i && !close_to(d, *offset)))
            return false;
        *offset = i ? *offset : d;
    }
    return m->n > 1;
}

/* got[i] is what was expected `shift` rows of the list further on, throughout. */
static bool one_shift(const struct mismatches *m, int shift) {
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        size_t j = i + (size_t)shift;
        if (shift < 0 ? i < (size_t)-shift : j >= m->n)
            continue;
        if (!close_to(m->rows[i].got, m->rows[j].expected))
            return false;
        n++;
    }
    return n >= 3;
}

static bool all_nan(const struct mismatches *m) {
    for (size_t i = 0; i < m->n; i++)
        if (!isnan(m->rows[i].got))
            return false;
    return true;
}

static bool all_subnormal(const struct mismatches *m) {
    for (size_t i = 0; i < m->n; i++)
        if (!(m->rows[i].expected != 0 && fabs(m->rows[i].expected) < FLT_MIN))
            return false;
    return true;
}

static void say_values(const struct mismatches *m, struct buf *out) {
    double x = 0;
    if (all_subnormal(m))
        buf_puts(out, S("The expected values are subnormal: an intermediate product vanished, or "
                        "was flushed to zero. "));
    else if (all_got(m, 0))
        buf_puts(out, S("All of these are zero: the value is never computed, or an accumulator "
                        "that was cleared is what gets stored. "));
    else if (m->n > 1 && all_got(m, m->rows[0].got))
        buf_printf(out, "All of these got the same value, %g. ", m->rows[0].got);
    else if (all_nan(m))
        buf_puts(out, S("All of these are NaN: infinity minus infinity, 0/0, or memory that "
                        "nothing wrote. "));
    else if (one_factor(m, &x))
        buf_printf(out, "A constant factor: got = %.6g * expected. ", x);
    else if (one_offset(m, &x))
        buf_printf(out, "A constant offset: got = expected %+.6g. ", x);
    else if (one_shift(m, 1) || one_shift(m, -1))
        buf_puts(out, S("Shifted by one: an element gets the value that its neighbour should "
                        "have. "));
}

/* ---- places ---- */

/* All mismatches at one distance from each other in the last dimension, in one row. */
static int64_t stripe_of(const struct mismatches *m) {
    size_t last = m->rank - 1;
    int64_t step = 0;
    for (size_t i = 1; i < m->n; i++) {
        int64_t d = m->rows[i].index[last] - m->rows[i - 1].index[last];
        for (size_t k = 0; k < last; k++)
            if (m->rows[i].index[k] != m->rows[0].index[k])
                return 0;
        if (i > 1 && d != step)
            return 0;
        step = d;
    }
    return m->n > 2 ? step : 0;
}

/* The smallest index in a dimension. */
static int64_t least_in(const struct mismatches *m, size_t d, int64_t *most) {
    int64_t least = INT64_MAX;
    *most = 0;
    for (size_t i = 0; i < m->n; i++) {
        int64_t v = m->rows[i].index[d];
        least = v < least ? v : least;
        *most = v > *most ? v : *most;
    }
    return least;
}

static int64_t power_dividing(int64_t v) {
    int64_t p = 1;
    while (p < 256 && v % (2 * p) == 0)
        p *= 2;
    return p;
}

/* Everything before a multiple of a power of two is right, in dimension d. */
static bool say_edge(const struct mismatches *m, size_t d, struct buf *out) {
    int64_t most, least = least_in(m, d, &most);
    if (least < 8 || power_dividing(least) < 8)
        return false;
    buf_printf(out,
               "Dimension %zu is right below %lld, a multiple of %lld: looks like the edge of a "
               "tile or of what one block, warp or vector covers. ",
               d, (long long)least, (long long)power_dividing(least));
    return true;
}

static bool say_last(const struct mismatches *m, size_t d, struct buf *out) {
    int64_t most, least = least_in(m, d, &most), extent = m->extent[d];
    if (extent < 2 || m->wrong > m->count / 2 || least < extent - extent % 32 || least == 0)
        return false;
    buf_printf(out,
               "Only the end of dimension %zu is off (from %lld of %lld): what is left over after "
               "whole tiles. ",
               d, (long long)least, (long long)extent);
    return true;
}

static void say_places(const struct mismatches *m, struct buf *out) {
    bool all = m->wrong && m->wrong == m->count;
    if (all) {
        buf_puts(out, S("Every element is off. "));
        return;
    }
    bool said = false;
    for (size_t d = 0; d < m->rank && m->n > 1; d++)
        said |= say_last(m, d, out) || say_edge(m, d, out);
    int64_t step = m->rank ? stripe_of(m) : 0;
    if (step > 1)
        buf_printf(out, "A stripe: one element in %lld of a row. ", (long long)step);
    else if (step == 1 && !said)
        buf_puts(out, S("A run of consecutive elements. "));
}

void evidence_pattern(const struct mismatches *m, struct buf *out) {
    if (!m->n)
        return;
    say_places(m, out);
    say_values(m, out);
}
