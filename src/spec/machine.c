/* Runs instructions. What each computes is in vector.c and read.c; here is which of them run, in
 * how many lanes, and what becomes of results that are out of the ordinary. */
#include "base/wide.h"

#include "spec/program.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void fill(double *d, double v, size_t n) {
    for (size_t l = 0; l < n; l++)
        d[l] = v;
}

static void run_literal(const struct rules *r, const struct instr *i, struct reg *d) {
    d->v[0] = i->number;
    if (!i->exact)
        d->e[0] = i->number * i->number * (r->unit2 / 3);
}

static void run_index(const struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    double first = (double)m->at[i->ref], step = (int)i->ref == m->p->lane;
    for (size_t l = 0; l < n; l++)
        d->v[l] = first + step * (double)l;
}

static void run_mask(const struct machine *m, const struct instr *i, struct reg *d,
                     const struct reg *cond, size_t n) {
    const struct reg *outer = i->mask < 0 ? NULL : &m->regs[i->mask];
    bool wanted = i->op == OP_MASK_THEN;
    for (size_t l = 0; l < n; l++)
        d->v[l] = (!outer || outer->v[l] != 0) && ((cond->v[l] != 0) == wanted || cond->e[l] > 0);
}

/* The largest magnitude that counts: beyond it fp32, or an exact integer in a double, ends. */
static double magnitude_most(const struct instr *i) {
    if (i->type == VALUE_INT)
        return 0x1p53;
    return i->root ? DBL_MAX : (double)FLT_MAX;
}

/* An infinity times, or over, what may lie on either side of zero. */
static bool is_either_side(const struct instr *i, const struct rules *r, const struct reg *const *a,
                           size_t l) {
    bool near = false;
    for (size_t k = 0; k < i->nargs; k++)
        near |= vector_within(a[k]->v[l], a[k]->e[l], r->limits.worst);
    return near && i->op == OP_NODE && (i->kind == EXPR_MUL || i->kind == EXPR_DIV);
}

/* What became of lane l, when its value or its variance is out of the ordinary. */
static double settled_error(const struct instr *i, const struct rules *r, const struct reg *d,
                            const struct reg *const *a, size_t l) {
    bool undefined = false, nan = false, infinite = false, open = i->regroups;
    double v = d->v[l];
    for (size_t k = 0; k < i->nargs; k++) {
        undefined |= isinf(a[k]->e[l]);
        nan |= isnan(a[k]->v[l]) && !isinf(a[k]->e[l]);
        infinite |= isinf(a[k]->v[l]);
        open |= isinf(a[k]->v[l]) && a[k]->e[l] > 0;
    }
    if (isnan(v))
        return nan ? 0 : INFINITY;
    if (undefined || (isinf(v) && is_either_side(i, r, a, l)))
        return INFINITY;
    if (isinf(v) && infinite)
        return open;
    if (isinf(v))
        return i->root || vector_is_pole(i, a, l) ? 0 : INFINITY;
    if (infinite && open)
        return INFINITY;
    if (infinite || nan)
        return v * v * 4 * r->unit2;
    return INFINITY;
}

WIDE static bool any_open(const struct reg *a, size_t n) {
    uint64_t open = 0;
    for (size_t l = 0; l < n; l++)
        open += ((fabs(a->v[l]) > DBL_MAX) & (a->e[l] > 0)) ? 1 : 0;
    return open > 0;
}

/* An infinity that a kernel may have as NaN makes NaN of whatever is computed from it, also where
 * the mathematics comes back to a number: x/inf, exp(-inf), a comparison. */
static void settle_open(const struct instr *i, struct reg *d, const struct reg *const *a,
                        size_t n) {
    for (size_t k = 0; k < i->nargs; k++) {
        bool open = any_open(a[k], n);
        for (size_t l = 0; l < n && open; l++)
            if (isinf(a[k]->v[l]) && a[k]->e[l] > 0 && isfinite(d->v[l]))
                d->e[l] = i->type == VALUE_BOOL ? 1 : INFINITY;
    }
}

static void settle(const struct instr *i, const struct rules *r, struct reg *d,
                   const struct reg *const *a, size_t n) {
    double most = magnitude_most(i);
    if (vector_ordinary(d, true, most, n))
        return;
    for (size_t l = 0; l < n; l++)
        if (!(fabs(d->v[l]) <= most) || !(d->e[l] <= DBL_MAX))
            d->e[l] = settled_error(i, r, d, a, l);
}

static double lane_peak(const struct instr *i, const struct reg *d, const struct reg *const *a,
                        size_t l) {
    double v = fabs(d->v[l]);
    bool operands_finite = true;
    for (size_t k = 0; k < i->nargs; k++)
        operands_finite &= isfinite(a[k]->v[l]);
    if (isnan(v))
        return 0;
    if (isinf(v))
        return operands_finite && i->op == OP_NODE && !vector_is_pole(i, a, l) ? v : 0;
    bool computed = i->op == OP_NODE && i->type == VALUE_INT;
    return computed && v > INT32_MAX ? INFINITY : v;
}

void machine_note_peak(struct machine *m, size_t lane, double v) {
    m->peak[lane] = v > m->peak[lane] ? v : m->peak[lane];
}

WIDE static void raise_all(double *restrict peak, const double *restrict v, size_t n) {
    for (size_t l = 0; l < n; l++)
        peak[l] = fabs(v[l]) > peak[l] ? fabs(v[l]) : peak[l];
}

/* Reads of lets were counted where the let was made; reads of reductions bring their peak along
 * (machine_read has noted it). */
static void note_peaks(struct machine *m, const struct instr *i, const struct reg *d,
                       const struct reg *const *a) {
    const struct reg *mask = i->mask < 0 ? NULL : &m->regs[i->mask];
    if (i->type == VALUE_BOOL || (i->op == OP_READ && m->contents[i->ref].variance))
        return;
    if (i->op != OP_READ && i->op != OP_TO_REAL && i->op != OP_NODE)
        return;
    bool plain =
        !mask && !i->uniform && i->type == VALUE_REAL && vector_ordinary(d, false, DBL_MAX, m->n);
    if (plain)
        raise_all(m->peak, d->v, m->n);
    for (size_t l = 0; l < m->n && !plain; l++)
        if (!mask || mask->v[l] != 0)
            machine_note_peak(m, l, lane_peak(i, d, a, i->uniform ? 0 : l));
}

static void compute(struct machine *m, const struct instr *i, struct reg *d,
                    const struct reg *const *a, size_t n) {
    const struct rules *r = &m->p->rules;
    switch (i->op) {
    case OP_LITERAL:
        run_literal(r, i, d);
        return;
    case OP_INDEX:
        run_index(m, i, d, n);
        return;
    case OP_READ:
        machine_read(m, i, d, n);
        return;
    case OP_TO_REAL:
        vector_to_real(i, r, d, a[0], n);
        return;
    case OP_ROUND:
        vector_round(r, d, a[0], n);
        return;
    case OP_MASK_THEN:
    case OP_MASK_ELSE:
        run_mask(m, i, d, a[0], n);
        return;
    case OP_SELECT:
        vector_select(i, d, a, n);
        return;
    case OP_NODE:
        vector_node(i, r, d, a, n);
        if (!i->exact && i->type != VALUE_BOOL)
            settle(i, r, d, a, n);
        if (!i->exact && m->odd)
            settle_open(i, d, a, n);
        return;
    }
}

/* Somebody wants to know after all what became of a product. */
static void compute_product(struct machine *m, const struct instr *i, struct reg *d,
                            const struct reg *const *a) {
    struct instr plain = *i;
    plain.summed = false;
    for (size_t k = 0; k < 2; k++)
        if (i->lone[k])
            fill(m->regs[i->src[k]].v, a[k]->v[0], m->n);
    compute(m, &plain, d, a, i->uniform ? 1 : m->n);
}

static void run_one(struct machine *m, const struct instr *i) {
    struct reg *d = &m->regs[i->dst];
    const struct reg *a[TASK_MAX_RANK + 1];
    for (size_t k = 0; k < i->nargs; k++)
        a[k] = &m->regs[i->src[k]];
    if (i->summed && !m->careful)
        return;
    if (i->summed)
        compute_product(m, i, d, a);
    else
        compute(m, i, d, a, i->uniform ? 1 : m->n);
    if (i->uniform && i->spread) {
        /* What stays may meet longer blocks than this one. */
        size_t n = i->level < m->p->inner ? LANES : m->n;
        fill(d->v, d->v[0], n);
        if (!i->exact)
            fill(d->e, d->e[0], n);
    }
    if (m->p->track_peak)
        note_peaks(m, i, d, a);
}

void machine_run(struct machine *m, size_t first, size_t last, unsigned level) {
    for (size_t k = first; k < last; k++)
        if (m->p->code[k].level >= level)
            run_one(m, &m->p->code[k]);
}

/* What depends on nothing runs here, once. */
bool machine_init(struct machine *m, const struct program *p, const struct content *contents) {
    *m = (struct machine){.p = p, .contents = contents, .n = LANES};
    for (size_t k = 0; k < p->n; k++)
        m->odd |= p->code[k].op == OP_READ && !contents[p->code[k].ref].finite;
    m->regs = mem_try_resize(NULL, (p->nregs + 1) * sizeof *m->regs);
    if (!m->regs)
        return false;
    memset(m->regs, 0, (p->nregs + 1) * sizeof *m->regs);
    for (size_t k = 0; k < p->n; k++)
        if (p->code[k].level == 0)
            run_one(m, &p->code[k]);
    memset(m->peak, 0, sizeof m->peak);
    return true;
}

void machine_release(struct machine *m) {
    mem_free(m->regs);
    m->regs = NULL;
}
