/* Collecting reads, and what a let is read for. */
#include "spec/access.h"

#include "spec/expr.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <math.h>
#include <string.h>

static bool same_constraint(const struct constraint *a, const struct constraint *b) {
    return a->kind == b->kind && a->test == b->test && a->a.c == b->a.c &&
           a->modulus == b->modulus && a->lo == b->lo && a->hi == b->hi &&
           memcmp(a->a.coef, b->a.coef, sizeof a->a.coef) == 0;
}

static bool same_access(const struct access *a, const struct access *b) {
    if (!expr_same(a->read, b->read) || a->d->present != b->d->present || a->d->n != b->d->n)
        return false;
    for (uint32_t left = a->d->present; left; left &= left - 1) {
        int v = __builtin_ctz(left);
        if (a->d->var[v].lo != b->d->var[v].lo || a->d->var[v].hi != b->d->var[v].hi)
            return false;
    }
    for (size_t i = 0; i < a->d->n; i++)
        if (!same_constraint(&a->d->c[i], &b->d->c[i]))
            return false;
    return true;
}

/* Elements that are known to be zero are not needed. */
static void leave_out_zeros(struct domain *d, const struct expr *read) {
    const struct task *t = d->in->task;
    for (size_t i = 0; i < t->nassumptions; i++)
        if (t->assumptions[i].kind == ASSUME_ZERO && t->assumptions[i].tensor == read->ref)
            domain_require_at(d, read, t->assumptions[i].s.body, false);
}

static void record(struct accesses *c, struct domain *d, const struct expr *read) {
    struct access a = {domain_copy(d), read, pattern_is_gather(read)};
    c->reads += domain_count(d, d->present);
    leave_out_zeros(a.d, read);
    bool known = a.d->empty || c->n == ACCESSES_MOST;
    c->all &= !(c->n == ACCESSES_MOST);
    for (size_t i = 0; i < c->n && !known; i++)
        known = same_access(&c->access[i], &a);
    if (known)
        mem_free(a.d);
    else
        c->access[c->n++] = a;
}

static void collect(struct accesses *c, struct domain *d, const struct expr *e);

static void collect_parts(struct accesses *c, struct domain *d, const struct expr *e) {
    for (size_t i = 0; i < e->nargs; i++)
        collect(c, d, e->args[i]);
}

static void collect_if(struct accesses *c, struct domain *d, const struct expr *e) {
    bool data = expr_reads(e->args[0]);
    int sides = !data ? 2 : pattern_pins(e->args[0]) ? 1 : 0;
    collect(c, d, e->args[0]);
    for (int side = 0; side < sides; side++) {
        struct domain *inner = domain_copy(d);
        domain_require(inner, e->args[0], side == 0);
        collect(c, inner, e->args[1 + side]);
        mem_free(inner);
    }
}

static void collect_pad(struct accesses *c, struct domain *d, const struct expr *e) {
    const struct expr *read = e->args[0];
    collect(c, d, e->args[1]);
    if (pattern_is_gather(read)) {
        collect_parts(c, d, read);
        return;
    }
    struct domain *inside = domain_copy(d);
    domain_require_inside(inside, read);
    collect(c, inside, read);
    mem_free(inside);
}

static void collect_reduce(struct accesses *c, struct domain *d, const struct expr *e) {
    struct domain *inner = domain_copy(d);
    uint32_t needed = pattern_is_prefix(e) ? expr_vars(e->args[0]) : expr_vars(e);
    domain_enter(inner, e->reduce);
    domain_keep(inner, needed | reduce_vars(e->reduce));
    if (e->reduce->guard)
        collect(c, inner, e->reduce->guard);
    if (!e->reduce->guard || !expr_reads(e->reduce->guard) || pattern_pins(e->reduce->guard))
        collect(c, inner, e->args[0]);
    mem_free(inner);
}

static void collect(struct accesses *c, struct domain *d, const struct expr *e) {
    if (d->empty || !expr_reads(e))
        return;
    switch (e->kind) {
    case EXPR_IF:
        collect_if(c, d, e);
        return;
    case EXPR_PAD:
        collect_pad(c, d, e);
        return;
    case EXPR_REDUCE:
        collect_reduce(c, d, e);
        return;
    default:
        if (e->kind == EXPR_READ && e->ref == c->tensor)
            record(c, d, e);
        collect_parts(c, d, e);
    }
}

void accesses_add(struct accesses *c, struct domain *d, const struct expr *e) {
    collect(c, d, e);
}

void accesses_release(struct accesses *c) {
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->access[i].d);
}

/* ---- demand ---- */

/* The places read, as a domain over the tensor's own index variables: exists where every index is
 * a variable of its own. */
static struct domain *demand_of(const struct access *a) {
    struct domain *from = domain_copy(a->d), *to = mem_alloc(sizeof *to);
    size_t rank = a->read->nargs, name[TASK_MAX_VARS] = {0};
    uint32_t used = 0;
    bool ok = true;
    for (size_t k = 0; k < rank; k++) {
        const struct expr *e = a->read->args[k];
        ok &= e->kind == EXPR_INDEX && !(used >> e->ref & 1);
        used |= e->kind == EXPR_INDEX ? UINT32_C(1) << e->ref : 0;
        name[e->kind == EXPR_INDEX ? e->ref : 0] = k;
    }
    domain_keep(from, used);
    *to = (struct domain){.in = from->in, .budget = from->budget, .empty = from->empty};
    to->n = from->n;
    for (size_t k = 0; k < rank && ok; k++) {
        to->present |= UINT32_C(1) << k;
        to->var[k] = from->var[a->read->args[k]->ref];
    }
    for (size_t i = 0; i < from->n && ok; i++) {
        ok = from->c[i].kind == CONSTRAINT_NOT_NEGATIVE;
        to->c[i] = (struct constraint){.a.c = from->c[i].a.c};
        for (uint32_t left = from->c[i].vars; left; left &= left - 1) {
            size_t v = (size_t)__builtin_ctz(left);
            to->c[i].a.coef[name[v]] = from->c[i].a.coef[v];
            to->c[i].a.vars |= UINT32_C(1) << name[v];
        }
        to->c[i].vars = to->c[i].a.vars;
    }
    mem_free(from);
    if (ok)
        return to;
    mem_free(to);
    return NULL;
}

static bool holds(const struct domain *d, const struct constraint *c) {
    for (size_t i = 0; i < d->n; i++)
        if (same_constraint(&d->c[i], c))
            return true;
    return false;
}

static bool same_demand(const struct domain *a, const struct domain *b) {
    bool same = a->n == b->n && a->present == b->present && !a->empty && !b->empty;
    for (uint32_t left = a->present; left && same; left &= left - 1) {
        int v = __builtin_ctz(left);
        same = a->var[v].lo == b->var[v].lo && a->var[v].hi == b->var[v].hi;
    }
    for (size_t i = 0; i < a->n && same; i++)
        same = holds(b, &a->c[i]);
    return same;
}

/* Narrows the domain of a let's only statement to what all reads of it agree on needing. */
static void narrow_to_demand(struct domain *d, const struct accesses *c) {
    struct domain *first = c->n && c->all ? demand_of(&c->access[0]) : NULL;
    bool same = first != NULL;
    for (size_t i = 1; i < c->n && same; i++) {
        struct domain *other = demand_of(&c->access[i]);
        same = other && same_demand(first, other);
        mem_free(other);
    }
    if (same) {
        memcpy(d->var, first->var, sizeof d->var);
        memcpy(d->c, first->c, sizeof d->c);
        d->n = first->n;
    }
    mem_free(first);
}

static bool is_whole(const struct task *t, const struct statement *s) {
    return t->tensors[s->tensor].role == TENSOR_LET && s->nindex == t->tensors[s->tensor].rank;
}

void demand_domains(const struct inst *in, int64_t *budget, struct domain **out) {
    const struct task *t = in->task;
    for (size_t i = t->nstatements; i-- > 0;) {
        const struct statement *s = &t->statements[i];
        out[i] = domain_new(in, s, budget);
        if (!is_whole(t, s))
            continue;
        struct accesses c = {.in = in, .tensor = s->tensor, .all = true};
        for (size_t k = i + 1; k < t->nstatements; k++)
            accesses_add(&c, out[k], t->statements[k].body);
        narrow_to_demand(out[i], &c);
        accesses_release(&c);
    }
}
