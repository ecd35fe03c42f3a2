/* Reads: one element, a run of them, elements a stride apart, or each lane at a place of its own.
 * Lanes beyond a pad's edge take the pad's value; lanes beyond the tensor, which only occur where
 * the result is never used, are undefined (program.h, invariant 3). */
#include "base/wide.h"

#include "spec/program.h"

#include "base/checked.h"
#include "spec/data.h"
#include <math.h>
#include <string.h>

/* Lanes [from, to) of a block. */
struct span {
    size_t from, to;
};

static int64_t div_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

/* Where 0 <= first + step·lane < extent. */
static struct span span_inside(int64_t first, int64_t step, int64_t extent, size_t n) {
    int64_t from = 0, to = (int64_t)n, over;
    if (step == 0) {
        bool inside = first >= 0 && first < extent;
        return (struct span){0, inside ? n : 0};
    }
    if (!sub_i64(extent, first, &over) || first == INT64_MIN)
        return (struct span){0, 0};
    if (step > 0) {
        from = first >= 0 ? 0 : div_up(-first, step);
        to = over <= 0 ? 0 : div_up(over, step);
    } else {
        from = over > 0 ? 0 : div_up(1 - over, -step);
        to = first < 0 ? 0 : first / -step + 1;
    }
    from = from > (int64_t)n ? (int64_t)n : from;
    to = to > (int64_t)n ? (int64_t)n : to;
    return (struct span){(size_t)from, to > from ? (size_t)to : (size_t)from};
}

static int64_t step_of(const struct machine *m, const struct affine *a) {
    return m->p->lane < 0 ? 0 : a->coef[m->p->lane];
}

static struct span span_meet(struct span a, struct span b) {
    struct span s = {a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
    s.to = s.to > s.from ? s.to : s.from;
    return s;
}

/* The lanes within all edges of a pad. */
static struct span span_of(const struct machine *m, const struct instr *i, size_t n) {
    struct span s = {0, n};
    for (size_t k = 0; k < i->nedges; k++) {
        const struct edge *e = &m->p->edges[i->edge + k];
        int64_t first;
        if (!affine_at(&e->at, m->at, &first))
            return (struct span){0, 0};
        s = span_meet(s, span_inside(first, step_of(m, &e->at), e->extent, n));
    }
    return s;
}

static void load_floats(const float *from, int64_t step, size_t n, double *to) {
    if (step == 1)
        for (size_t l = 0; l < n; l++)
            to[l] = (double)from[l];
    else
        for (size_t l = 0; l < n; l++)
            to[l] = (double)from[(int64_t)l * step];
}

static void load_doubles(const double *from, int64_t step, size_t n, double *to) {
    if (step == 1)
        memcpy(to, from, n * sizeof *to);
    else
        for (size_t l = 0; l < n; l++)
            to[l] = from[(int64_t)l * step];
}

static void load_strided(enum dtype t, const void *from, int64_t step, size_t n, double *to) {
    size_t size = dtype_info(t)->bytes;
    uint64_t raw[LANES];
    if (t == DTYPE_F32)
        load_floats(from, step, n, to);
    else if (t == DTYPE_F64)
        load_doubles(from, step, n, to);
    else if (step == 1)
        data_load(t, from, n, to);
    else {
        for (size_t l = 0; l < n; l++)
            memcpy((char *)raw + l * size, (const char *)from + (int64_t)l * step * (int64_t)size,
                   size);
        data_load(t, raw, n, to);
    }
}

static void note_stage_peaks(struct machine *m, const struct instr *i, int64_t first, int64_t step,
                             struct span s) {
    const double *peak = m->contents[i->ref].peak;
    const struct reg *mask = i->mask < 0 ? NULL : &m->regs[i->mask];
    if (!peak || !m->p->track_peak)
        return;
    size_t to = i->uniform && s.to > s.from ? m->n : s.to;
    for (size_t l = s.from; l < to; l++)
        if (!mask || mask->v[l] != 0)
            machine_note_peak(m, l, peak[first + (i->uniform ? 0 : (int64_t)l * step)]);
}

/* Lanes of s; all of them lie inside. */
static void load_span(struct machine *m, const struct instr *i, struct reg *d, int64_t first,
                      int64_t step, struct span s) {
    const struct content *from = &m->contents[i->ref];
    size_t size = dtype_info(from->dtype)->bytes, n = s.to - s.from;
    int64_t at = first + step * (int64_t)s.from;
    if (n == 0)
        return;
    load_strided(from->dtype, (const char *)from->value + (size_t)at * size, step, n,
                 d->v + s.from);
    if (from->variance)
        load_doubles(from->variance + at, step, n, d->e + s.from);
    else if (!i->exact)
        for (size_t l = s.from; l < s.to; l++)
            d->e[l] = from->dtype == DTYPE_F64 ? input_variance(m->p->rules, d->v[l]) : 0;
    note_stage_peaks(m, i, first, step, s);
}

static void fill_outside(const struct instr *i, struct reg *d, const struct reg *pad, struct span s,
                         size_t n) {
    for (size_t l = 0; l < n; l++) {
        if (l == s.from)
            l = s.to;
        if (l >= n)
            return;
        d->v[l] = pad ? pad->v[l] : 0;
        if (!i->exact)
            d->e[l] = pad ? pad->e[l] : INFINITY;
    }
}

static void read_affine(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    const struct reg *pad = i->padded ? &m->regs[i->src[i->nplaces]] : NULL;
    int64_t first, step = step_of(m, &i->place);
    struct span s = span_of(m, i, n);
    if (!affine_at(&i->place, m->at, &first) || !sub_i64(first, m->contents[i->ref].first, &first))
        s = (struct span){0, 0};
    else
        s = span_meet(s, span_inside(first, step, m->contents[i->ref].count, n));
    if (s.from > 0 || s.to < n)
        fill_outside(i, d, pad, s, n);
    load_span(m, i, d, first, step, s);
}

/* The place of lane l; false: beyond an edge. */
static bool place_of(const struct machine *m, const struct instr *i, int64_t first, size_t l,
                     int64_t *place) {
    int64_t part;
    if (!mul_i64(step_of(m, &i->place), (int64_t)l, &part) || !add_i64(first, part, place))
        return false;
    for (size_t k = 0; k < i->nplaces; k++) {
        double at = m->regs[i->src[k]].v[l];
        bool inside = at >= 0 && at < (double)i->extent[k];
        if (!inside || !mul_i64((int64_t)at, i->stride[k], &part) || !add_i64(*place, part, place))
            return false;
    }
    return sub_i64(*place, m->contents[i->ref].first, place) && *place >= 0 &&
           *place < m->contents[i->ref].count;
}

/* Nothing is known of an element whose place is uncertain. */
static bool place_uncertain(const struct machine *m, const struct instr *i, size_t l) {
    for (size_t k = 0; k < i->nplaces; k++)
        if (m->regs[i->src[k]].e[l] > 0)
            return true;
    return false;
}

static void read_lane(struct machine *m, const struct instr *i, struct reg *d, int64_t place,
                      size_t l) {
    const struct content *from = &m->contents[i->ref];
    size_t size = dtype_info(from->dtype)->bytes;
    data_load(from->dtype, (const char *)from->value + (size_t)place * size, 1, &d->v[l]);
    if (i->exact)
        return;
    d->e[l] = from->variance             ? from->variance[place]
              : from->dtype == DTYPE_F64 ? input_variance(m->p->rules, d->v[l])
                                         : 0;
    if (place_uncertain(m, i, l))
        d->e[l] = INFINITY;
}

static void read_scattered(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    const struct reg *pad = i->padded ? &m->regs[i->src[i->nplaces]] : NULL;
    struct span s = span_of(m, i, n);
    int64_t first, place;
    if (!affine_at(&i->place, m->at, &first))
        s = (struct span){0, 0};
    fill_outside(i, d, pad, s, n);
    for (size_t l = s.from; l < s.to; l++) {
        if (place_of(m, i, first, l, &place))
            read_lane(m, i, d, place, l);
        else
            fill_outside(i, d, pad, (struct span){0, l}, l + 1);
    }
}

void machine_read(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    if (i->nplaces == 0)
        read_affine(m, i, d, n);
    else
        read_scattered(m, i, d, n);
}
