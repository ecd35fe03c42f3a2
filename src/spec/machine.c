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
        d->e[0] = value_literal(*r, i->number).e;
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

static struct value operand_of(const struct instr *i, const struct reg *const *a, size_t k,
                               size_t l) {
    return k < i->nargs ? lane_of(a[k], l) : value_of(0, 0);
}

/* Looks at results again where one is out of the ordinary, or an operand is an open infinity. */
static void settle(struct machine *m, const struct instr *i, struct reg *d,
                   const struct reg *const *a, size_t n) {
    bool look = i->type != VALUE_BOOL && !vector_ordinary(d, true, settle_most(i->how), n);
    for (size_t k = 0; k < i->nargs && m->odd && !look; k++)
        look = vector_any_open(a[k], n);
    for (size_t l = 0; l < n && look; l++) {
        struct value x = settle_of(m->p->rules, i->how, lane_of(d, l), operand_of(i, a, 0, l),
                                   operand_of(i, a, 1, l), operand_of(i, a, 2, l));
        d->e[l] = x.e;
        m->odd |= is_open(x);
    }
}

/* Infinite by itself, not because it overflowed. */
static bool is_pole(const struct instr *i, const struct reg *const *a, size_t l) {
    return at_pole(i->how, operand_of(i, a, 0, l).v, operand_of(i, a, 1, l).v);
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
        return operands_finite && i->op == OP_NODE && !is_pole(i, a, l) ? v : 0;
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
    case OP_MASK_THEN:
    case OP_MASK_ELSE:
        run_mask(m, i, d, a[0], n);
        return;
    case OP_TO_REAL:
    case OP_ROUND:
    case OP_SELECT:
        vector_run(i, r, d, a, n);
        return;
    case OP_NODE:
        vector_run(i, r, d, a, n);
        if (!i->exact)
            settle(m, i, d, a, n);
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
