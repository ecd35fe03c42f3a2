/* Runs of products, in columns. The sums of eight lanes stay in registers for a whole run; lanes
 * beyond the last are computed along and never read. */
#include "base/wide.h"

#include "spec/contract.h"

#include <float.h>
#include <math.h>

enum { GROUP = PRODUCTS_GROUP };
typedef double group __attribute__((vector_size(8 * GROUP), aligned(8), may_alias));
typedef int64_t truth __attribute__((vector_size(8 * GROUP), aligned(8), may_alias));

_Static_assert(LANES % GROUP == 0, "no group leaves the columns");

WIDE static void add_group(struct columns *restrict c, const struct products *p, size_t l) {
    const double *x = p->x, *y = p->y + l;
    group s = *(group *)(c->sum + l), q = *(group *)(c->partial_sq + l),
          w = *(group *)(c->term_sq + l);
    group a = *(group *)(c->partial_sum + l);
    for (size_t t = 0; t < p->terms; t++) {
        group v = x[(int64_t)t * p->x_step] * *(const group *)(y + (int64_t)t * p->y_step);
        s += v;
        q += (group)((truth)(s * s) & (v != 0)); /* a term of 0 costs nothing */
        w += v * v;
        a += s;
    }
    *(group *)(c->sum + l) = s;
    *(group *)(c->partial_sq + l) = q;
    *(group *)(c->term_sq + l) = w;
    if (c->f->truncation > 0)
        *(group *)(c->partial_sum + l) = a;
}

void products_add(struct columns *c, const struct products *p, size_t n) {
    struct products part = *p;
    for (size_t done = 0; done < p->terms; done += part.terms) {
        size_t room = CHAIN - c->length, rest = p->terms - done;
        part.x = p->x + (int64_t)done * p->x_step;
        part.y = p->y + (int64_t)done * p->y_step;
        part.terms = rest < room ? rest : room;
        for (size_t l = 0; l < n; l += GROUP)
            add_group(c, &part, l);
        columns_added(c, part.terms, n);
    }
}

/* How many terms of a lane: had a NaN for a factor; came out infinite; were no larger than counts;
 * and left the sum no larger. */
struct tally {
    truth named, endless, inside, held;
};

/* One comparison at a time: a compiler makes scalars of what combines them. */
WIDE static void look_group(const struct products *p, double most, size_t l, double *restrict q,
                            struct tally *restrict out) {
    const truth magnitude = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                             INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const double *x = p->x, *y = p->y + l;
    group sum = *(group *)(q + l);
    truth named = {0}, endless = {0}, inside = {0}, held = {0};
    for (size_t t = 0; t < p->terms; t++) {
        double lone = x[(int64_t)t * p->x_step];
        group many = *(const group *)(y + (int64_t)t * p->y_step), v = lone * many;
        group either = lone != lone ? v : many;
        group size = (group)((truth)v & magnitude);
        sum += v;
        named -= either != either;
        endless -= size > DBL_MAX;
        inside -= size <= most;
        held -= (group)((truth)sum & magnitude) <= most;
    }
    *(group *)(q + l) = sum;
    *out = (struct tally){named, endless, inside, held};
}

/* A product is NaN by a factor, or of 0 and infinity and then undefined; infinite by a factor,
 * since finite ones of fp32's range cannot leave fp64's; or too large, and then undefined as well.
 */
static unsigned seen_of(const struct tally *y, size_t k, int64_t terms) {
    int64_t undefined = terms - y->named[k] - y->endless[k] - y->inside[k];
    return (y->named[k] ? SEEN_NAN : 0) | (undefined ? SEEN_UNDEFINED : 0) |
           (y->endless[k] ? SEEN_INFINITE : 0) | (y->held[k] < terms ? SEEN_OVERFLOW : 0);
}

void products_look(struct columns *c, const struct products *p, size_t n) {
    for (size_t l = 0; l < n; l += GROUP) {
        struct tally y;
        look_group(p, c->f->most, l, c->partial_sq, &y);
        for (size_t k = 0; k < GROUP && l + k < n; k++)
            if (c->odd[l + k])
                c->seen[l + k] |= (unsigned char)seen_of(&y, k, (int64_t)p->terms);
    }
}

WIDE void products_reach(struct columns *c, const struct products *p, size_t n, double *peak) {
    for (size_t t = 0; t < p->terms; t++) {
        double x = fabs(p->x[(int64_t)t * p->x_step]);
        const double *y = p->y + (int64_t)t * p->y_step;
        for (size_t l = 0; l < n; l++) {
            double m = fabs(y[l]), most = m > x ? m : x;
            c->peak[l] += x * m;
            peak[l] = most > peak[l] ? most : peak[l];
        }
    }
}
