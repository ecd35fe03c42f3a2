/* Which statements share a kernel, and how each read moves: everything about a pointwise step that
 * does not depend on the strategy. */
#include "agent/expert/pointwise/pointwise.h"

/* ---- claims ---- */

struct claim {
    const struct form *f;
    const bool *done;
    bool *take;
    size_t first;
};

static const struct statement *taken_of(const struct claim *c, size_t tensor) {
    const struct task *t = c->f->task;
    for (size_t i = 0; i < t->nstatements; i++)
        if (c->take[i] && t->statements[i].tensor == tensor)
            return &t->statements[i];
    return NULL;
}

/* Read at the element that is computed, of a tensor that lies in the same order. */
static bool is_own_read(const struct task *t, const struct statement *s, const struct expr *e) {
    const struct tensor *x = &t->tensors[e->ref];
    if (x->rank != s->nindex)
        return false;
    for (size_t i = 0; i < x->rank; i++)
        if (e->args[i]->kind != EXPR_INDEX || e->args[i]->ref != i ||
            !expr_same(x->extent[i], statement_extent(t, s, i)))
            return false;
    return true;
}

/* All of it can be read by a kernel of what is taken: lets are there, or are made at the same
 * element; what is written in place is read at the same element only. */
static bool reads_fit(const struct claim *c, const struct statement *s, const struct expr *e) {
    const struct task *t = c->f->task;
    if (e->kind == EXPR_READ) {
        const struct statement *made = taken_of(c, e->ref);
        bool let = t->tensors[e->ref].role == TENSOR_LET;
        if (made && !(statement_is_whole(t, made) && is_own_read(t, s, e)))
            return false;
        if (let && !made && !form_defined_by(c->f->task, c->done, e->ref))
            return false;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (!reads_fit(c, s, e->args[i]))
            return false;
    return true;
}

static size_t count_tensors(const struct claim *c) {
    const struct task *t = c->f->task;
    uint64_t tensors = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        if (c->take[i])
            tensors |= UINT64_C(1) << t->statements[i].tensor | expr_tensors(t->statements[i].body);
    for (; tensors; tensors &= tensors - 1)
        n++;
    return n;
}

/* With this one too, every statement taken still fits. */
static bool fits(struct claim *c, size_t i) {
    const struct task *t = c->f->task;
    bool ok = true;
    c->take[i] = true;
    for (size_t k = 0; k < t->nstatements && ok; k++)
        ok = !c->take[k] || reads_fit(c, &t->statements[k], t->statements[k].body);
    ok = ok && count_tensors(c) <= PW_TENSORS;
    c->take[i] = ok;
    return ok;
}

bool pw_claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
              bool *take) {
    (void)b;
    struct claim c = {f, done, take, first};
    const struct statement *all = f->task->statements;
    if (!form_is_map(&all[first]) || !fits(&c, first))
        return false;
    for (size_t i = first + 1; i < f->task->nstatements; i++)
        if (!done[i] && form_is_map(&all[i]) && statement_same_space(f->task, &all[first], &all[i]))
            fits(&c, i);
    return true;
}

/* ---- reads ---- */

const struct statement *pw_local(const struct pw *p, const struct expr *read) {
    const struct task *t = p->st->inst->task;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == read->ref && t->tensors[read->ref].role != TENSOR_INOUT)
            return &t->statements[i];
    return NULL;
}

/* In bounds for every element by its form alone, whatever guards it stands behind. */
static bool is_safe_index(const struct task *t, const struct pw *p, const struct expr *a,
                          const struct expr *extent) {
    if (a->kind == EXPR_MOD)
        return expr_same(a->args[1], extent);
    if (a->kind == EXPR_NUMBER)
        return a->integer == 0;
    return a->kind == EXPR_INDEX && expr_same(extent, statement_extent(t, p->space, a->ref));
}

static bool is_safe(const struct pw *p, const struct expr *e) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[e->ref];
    for (size_t i = 0; i < x->rank; i++)
        if (!is_safe_index(t, p, e->args[i], x->extent[i]))
            return false;
    return true;
}

static bool is_size(const struct expr *e) {
    return expr_uses(e) == 0 && !expr_has(e, EXPR_READ);
}

/* A size that the width must divide; none is to be had beyond PW_DIVISORS. */
static bool add_divisor(struct pw_read *r, const struct expr *e) {
    for (size_t i = 0; i < r->ndivisors; i++)
        if (expr_same(r->divisor[i], e))
            return true;
    if (r->ndivisors == PW_DIVISORS)
        return false;
    r->divisor[r->ndivisors++] = e;
    return true;
}

/* Consecutive for consecutive values of the variable within an aligned vector, where the width
 * divides the sizes added to `r`: j, j + E, j % E, (j + E) % D. */
static bool runs_along(const struct expr *e, size_t var, struct pw_read *r) {
    if (e->kind == EXPR_INDEX)
        return e->ref == var;
    bool shifts = e->kind == EXPR_ADD || e->kind == EXPR_SUB || e->kind == EXPR_MOD;
    return shifts && is_size(e->args[1]) && runs_along(e->args[0], var, r) &&
           add_divisor(r, e->args[1]);
}

static bool moves_with(const struct expr *e, size_t var) {
    return expr_uses(e) >> var & 1;
}

static enum pw_access access_of(const struct pw *p, struct pw_read *r, bool guarded) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[r->e->ref];
    size_t n = p->space->nindex, moving = 0;
    if (is_own_read(t, p->space, r->e))
        return PW_FLAT;
    if (guarded && !is_safe(p, r->e))
        return PW_GATHER;
    for (size_t i = 0; i < x->rank && n > 0; i++)
        moving += moves_with(r->e->args[i], n - 1);
    if (moving == 0)
        return PW_SPLAT;
    const struct expr *last = r->e->args[x->rank - 1];
    bool row = moving == 1 && runs_along(last, n - 1, r) && add_divisor(r, x->extent[x->rank - 1]);
    return row ? PW_ROW : PW_GATHER;
}

int pw_find_read(const struct pw *p, const struct expr *e) {
    for (size_t i = 0; i < p->nreads; i++)
        if (expr_same(p->reads[i].e, e))
            return (int)i;
    return -1;
}

static void add_read(struct pw *p, const struct expr *e, bool guarded) {
    struct pw_read r = {.e = e};
    r.access = access_of(p, &r, guarded);
    if (r.access != PW_GATHER && pw_find_read(p, e) < 0 && p->nreads < PW_READS)
        p->reads[p->nreads++] = r;
}

/* Guarded: behind a condition, so that the read's bounds hold only where the condition does. */
static void find_reads(struct pw *p, const struct expr *e, bool guarded) {
    if (e->kind == EXPR_READ) {
        if (!pw_local(p, e))
            add_read(p, e, guarded);
        return;
    }
    bool guards = e->kind == EXPR_IF || e->kind == EXPR_AND || e->kind == EXPR_OR;
    for (size_t i = 0; i < e->nargs; i++)
        find_reads(p, e->args[i], guarded || e->kind == EXPR_PAD || (guards && i > 0));
}

/* ---- the step ---- */

void pw_build(struct pw *p) {
    const struct task *t = p->st->inst->task;
    p->space = &t->statements[0];
    p->outputs = arena_array(p->sh->mem, struct pw_output, t->nstatements);
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        enum tensor_role role = t->tensors[s->tensor].role;
        find_reads(p, s->body, false);
        p->inplace |= role == TENSOR_INOUT;
        if (role == TENSOR_LET)
            continue;
        p->outputs[p->noutputs++] = (struct pw_output){.s = s, .flat = statement_is_whole(t, s)};
    }
}
