/* What a task costs at the least: elements that must be read and written, and operations, counted
 * where they happen. docs/TASKS.md has the rules.
 *
 * An operation counts once for every combination of values of the variables it depends on, not of
 * those that merely surround it: what does not change is computed once, and a factor that is common
 * to all terms of a sum is applied to the sum. A reduction of n terms counts n operations, one for
 * each result where it is a prefix. Terms that cannot matter (a padded zero in a product that is
 * summed, an element assumed to be zero) are not there.
 *
 * Work on indices is address arithmetic and counts nothing, as does what a compiler folds. Of an
 * `if` over indices each side counts where it is taken; over data, the dearer side. */
#include "spec/cost.h"

#include "spec/bounds.h"
#include "spec/domain.h"
#include "spec/expr.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include "spec/tally.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ACCESSES_MOST = 32 };

struct access {
    struct domain *d;
    const struct expr *read;
    bool gather; /* some index comes from data */
};

struct accesses {
    const struct inst *in;
    size_t tensor;
    struct access access[ACCESSES_MOST]; /* different ones */
    size_t n;
    bool reach;   /* what data can ask for, not what the least demanding ones do */
    bool all;     /* none was left out for want of room; set before adding */
    double reads; /* elements, as often as the mathematics names them */
};

struct touched {
    double elements; /* different ones that every evaluation needs */
    double reads;    /* as often as the mathematics names them */
};

/* ---- the reads of one tensor, each with the domain it happens in ----
 *
 * Left out is what need not happen: reads under a condition on data (unless the reach is asked
 * for), reads outside the tensor that padding answers, elements that are assumed to be zero. A
 * condition that an index equals a number from the data happens once along that index. */

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
    int sides = !data || c->reach ? 2 : pattern_pins(e->args[0]) ? 1 : 0;
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
        if (c->reach)
            collect(c, d, read);
        else
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
    /* Wherever segments begin, an element is in one. */
    struct segments segments;
    bool all = e->reduce->guard && e->reduce->guard->kind != EXPR_AND &&
               pattern_is_segments(d->in->task, e, &segments) && !segments.exclusive;
    if (c->reach || !e->reduce->guard || !expr_reads(e->reduce->guard) || all ||
        pattern_pins(e->reduce->guard))
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

static void accesses_add(struct accesses *c, struct domain *d, const struct expr *e) {
    collect(c, d, e);
}

static void accesses_release(struct accesses *c) {
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

/* Where each statement must be evaluated: outputs everywhere, a let where it is read, as far as all
 * its reads need the same part (the triangle of a causal attention). out[nstatements]: mem_free. */
static void demand_domains(const struct inst *in, int64_t *budget, struct domain **out) {
    const struct task *t = in->task;
    for (size_t i = t->nstatements; i-- > 0;) {
        const struct statement *s = &t->statements[i];
        out[i] = domain_new(in, s, budget);
        if (!is_whole(t, s) || s->recurs.number) /* one step needs those before it */
            continue;
        struct accesses c = {.in = in, .tensor = s->tensor, .all = true};
        for (size_t k = i + 1; k < t->nstatements; k++)
            accesses_add(&c, out[k], t->statements[k].body);
        narrow_to_demand(out[i], &c);
        accesses_release(&c);
    }
}

/* ---- which elements of an input must be read ----
 *
 * Every read of the tensor is a set of places, the image of its domain under its indices. The
 * answer is the size of their union, found without listing places where the structure allows:
 * dimensions that share no variable multiply, and an index that determines its variables counts
 * them. What remains is marked in arrays, one for each group of dimensions. */

enum {
    PLACES_MOST = 1 << 24, /* of an array that places are marked in */
    SIGNATURES_MOST = 1 << 10,
};

/* Dimensions of the tensor whose indices depend on each other. */
struct block {
    uint32_t dims;
    uint32_t vars; /* all that take part, in one access */
};

static uint32_t index_vars(const struct access *a, size_t k) {
    const struct expr *e = a->read->args[k];
    return expr_reads(e) ? 0 : domain_connected(a->d, expr_vars(e));
}

static void merge_dims(const struct access *a, uint32_t group[TASK_MAX_RANK]) {
    size_t rank = a->read->nargs;
    for (size_t i = 0; i < rank; i++)
        for (size_t k = 0; k < rank; k++)
            if (index_vars(a, i) & index_vars(a, k)) {
                uint32_t both = group[i] | group[k];
                for (size_t m = 0; m < rank; m++)
                    if (both >> m & 1)
                        group[m] = both;
            }
}

/* Every dimension's block as a set of dimensions; a block is listed at its first one. */
static void blocks_begin(uint32_t group[TASK_MAX_RANK]) {
    for (size_t k = 0; k < TASK_MAX_RANK; k++)
        group[k] = UINT32_C(1) << k;
}

static bool is_first(uint32_t dims, size_t k) {
    return (size_t)__builtin_ctz(dims) == k;
}

static struct block block_of(const struct access *a, uint32_t dims) {
    struct block b = {.dims = dims};
    for (size_t k = 0; k < a->read->nargs; k++)
        b.vars |= dims >> k & 1 ? index_vars(a, k) : 0;
    return b;
}

/* The indices tell the values of the variables in them. */
static bool injective(const struct access *a, uint32_t dims, uint32_t used) {
    uint32_t told = 0;
    for (size_t round = 0; round < a->read->nargs; round++)
        for (size_t k = 0; k < a->read->nargs; k++) {
            struct affine f;
            if (!(dims >> k & 1) || !affine_of(a->d->in, a->read->args[k], &f))
                continue;
            if (__builtin_popcount(f.vars & ~told) == 1)
                told |= f.vars;
        }
    return (used & ~told) == 0;
}

static bool only_inequalities(const struct domain *d, uint32_t vars) {
    for (size_t i = 0; i < d->n; i++)
        if (d->c[i].kind != CONSTRAINT_NOT_NEGATIVE && (d->c[i].vars & vars))
            return false;
    return true;
}

/* Places of a block, marked with a bit. */
struct marking {
    const struct access *a;
    uint32_t dims;
    uint32_t *place, bit;
    int64_t stride[TASK_MAX_RANK];
    bool affine[TASK_MAX_RANK];
    struct affine index[TASK_MAX_RANK];
    struct scalar at; /* the point */
    double marked;
    int64_t steps; /* that a point takes: an index that is not affine is worth several */
};

static int64_t index_at(struct marking *m, size_t k) {
    if (!m->affine[k])
        return (int64_t)scalar_eval(&m->at, m->a->read->args[k]);
    int64_t at = m->index[k].c;
    for (uint32_t left = m->index[k].vars; left; left &= left - 1)
        at += m->index[k].coef[__builtin_ctz(left)] * m->at.var[__builtin_ctz(left)];
    return at;
}

static bool place_at(struct marking *m, int64_t *place) {
    const struct bound_tensor *b = &m->a->d->in->tensors[m->a->read->ref];
    *place = 0;
    for (size_t k = 0; k < m->a->read->nargs; k++) {
        if (!(m->dims >> k & 1))
            continue;
        int64_t at = index_at(m, k);
        if (at < 0 || at >= b->extent[k])
            return false;
        *place += at * m->stride[k];
    }
    return true;
}

static bool mark(void *ctx, const int64_t *value, size_t inner, struct range r) {
    struct marking *m = ctx;
    int64_t place;
    memcpy(m->at.var, value, sizeof m->at.var);
    *m->a->d->budget -= (r.hi - r.lo) * m->steps;
    for (m->at.var[inner] = r.lo; m->at.var[inner] <= r.hi; m->at.var[inner]++)
        if (place_at(m, &place)) {
            m->marked += !(m->place[place] & m->bit);
            m->place[place] |= m->bit;
        }
    return *m->a->d->budget > 0;
}

/* How large the array for a block is; 0: too large. Clearing it and looking through it is work,
 * too.
 */
static int64_t places_of(const struct access *a, uint32_t dims) {
    enum { CLEARED_A_STEP = 8 };
    double n = 1;
    for (size_t k = 0; k < a->read->nargs; k++)
        n *= dims >> k & 1 ? (double)a->d->in->tensors[a->read->ref].extent[k] : 1;
    if (n > PLACES_MOST || n > (double)*a->d->budget * CLEARED_A_STEP)
        return 0;
    *a->d->budget -= (int64_t)n / CLEARED_A_STEP;
    return (int64_t)n;
}

/* Sets `bit` at the places of the block that the access reaches; negative: too many to run over. */
static double mark_block(const struct access *a, uint32_t dims, uint32_t *place, uint32_t bit) {
    enum { STEPS_OF_TEXT = 8 };
    struct marking m = {
        .a = a, .dims = dims, .place = place, .bit = bit, .at = {.in = a->d->in}, .steps = 1};
    int64_t stride = 1;
    for (size_t k = a->read->nargs; k-- > 0;)
        if (dims >> k & 1) {
            m.stride[k] = stride;
            stride *= a->d->in->tensors[a->read->ref].extent[k];
            m.affine[k] = affine_of(a->d->in, a->read->args[k], &m.index[k]);
            m.steps += m.affine[k] ? 0 : STEPS_OF_TEXT;
        }
    return domain_each(a->d, block_of(a, dims).vars, mark, &m) ? m.marked : -1;
}

static double box_size(const struct access *a, uint32_t dims) {
    struct ranges r = {.in = a->d->in};
    double n = 1;
    memcpy(r.index, a->d->var, sizeof a->d->var);
    for (size_t k = 0; k < a->read->nargs; k++) {
        struct range got;
        if (dims >> k & 1 && range_of(&r, a->read->args[k], &got) == RANGE_OK) {
            double width = (double)(got.hi - got.lo) + 1;
            n *= fmin(width, (double)a->d->in->tensors[a->read->ref].extent[k]);
        }
    }
    return n;
}

static int64_t floor_quotient(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Whether an index takes every value from `lo` to `hi` where its variables run through all of
 * their ranges, by its form: a variable plus a constant, and quotients and remainders of that. */
static bool takes_all(const struct access *a, const struct expr *e, struct range *out) {
    struct affine f, by;
    if (affine_of(a->d->in, e, &f)) {
        if (__builtin_popcount(f.vars) > 1)
            return false;
        size_t v = f.vars ? (size_t)__builtin_ctz(f.vars) : 0;
        int64_t coef = f.vars ? f.coef[v] : 0, lo = coef * a->d->var[v].lo,
                hi = coef * a->d->var[v].hi;
        *out = (struct range){f.c + (lo < hi ? lo : hi), f.c + (lo < hi ? hi : lo)};
        return coef >= -1 && coef <= 1;
    }
    bool quotient = e->kind == EXPR_FLOORDIV;
    if ((!quotient && e->kind != EXPR_MOD) || !affine_of(a->d->in, e->args[1], &by) || by.vars ||
        by.c <= 0 || !takes_all(a, e->args[0], out))
        return false;
    int64_t lo = floor_quotient(out->lo, by.c), hi = floor_quotient(out->hi, by.c);
    if (quotient)
        *out = (struct range){lo, hi};
    else if (lo == hi)
        *out = (struct range){out->lo - lo * by.c, out->hi - lo * by.c};
    else if (out->hi - out->lo + 1 >= by.c)
        *out = (struct range){0, by.c - 1};
    else
        return false;
    return true;
}

/* A single dimension, of variables that nothing else limits. */
static bool is_interval(const struct access *a, const struct block *b, struct range *out) {
    double all = 1;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if (b->vars >> v & 1)
            all *= (double)(a->d->var[v].hi - a->d->var[v].lo + 1);
    return all > 0 && __builtin_popcount(b->dims) == 1 && only_inequalities(a->d, b->vars) &&
           domain_count(a->d, b->vars) == all &&
           takes_all(a, a->read->args[__builtin_ctz(b->dims)], out);
}

/* A digit of a variable in an index, coef * (v // from % (to / from)); `to` 0: all above `from`. */
struct digit {
    size_t var, dim;
    int64_t from, to, coef, size;
};

enum { DIGITS_MOST = 16 };

/* The indices of a block as sums of digits. */
struct digits {
    const struct access *a;
    struct digit at[DIGITS_MOST];
    size_t n;
    int64_t constant[TASK_MAX_RANK];
};

/* A number that no variable has a part in. */
static bool constant_of(const struct access *a, const struct expr *e, int64_t *out) {
    struct affine f;
    if (!affine_of(a->d->in, e, &f) || f.vars)
        return false;
    *out = f.c;
    return true;
}

/* A variable, and quotients and remainders of one by positive numbers. */
static bool digit_of(const struct access *a, const struct expr *e, struct digit *out) {
    int64_t by, from;
    if (e->kind == EXPR_INDEX) {
        *out = (struct digit){.var = e->ref, .from = 1};
        return true;
    }
    if ((e->kind != EXPR_FLOORDIV && e->kind != EXPR_MOD) || !constant_of(a, e->args[1], &by) ||
        by < 1 || !digit_of(a, e->args[0], out) || __builtin_mul_overflow(out->from, by, &from))
        return false;
    if (out->to && out->to % from)
        return false;
    if (e->kind == EXPR_FLOORDIV)
        out->from = from;
    else
        out->to = from;
    return true;
}

static bool add_digits(struct digits *g, size_t dim, const struct expr *e, int64_t coef) {
    int64_t c;
    struct digit one;
    if (constant_of(g->a, e, &c))
        return !__builtin_mul_overflow(c, coef, &c) &&
               !__builtin_add_overflow(g->constant[dim], c, &g->constant[dim]);
    if (e->kind == EXPR_NEG)
        return add_digits(g, dim, e->args[0], -coef);
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB)
        return add_digits(g, dim, e->args[0], coef) &&
               add_digits(g, dim, e->args[1], e->kind == EXPR_ADD ? coef : -coef);
    if (e->kind == EXPR_MUL) {
        size_t number = constant_of(g->a, e->args[0], &c) ? 0 : 1;
        return constant_of(g->a, e->args[number], &c) && !__builtin_mul_overflow(c, coef, &c) &&
               add_digits(g, dim, e->args[1 - number], c);
    }
    if (g->n == DIGITS_MOST || !digit_of(g->a, e, &one))
        return false;
    one.dim = dim;
    one.coef = coef;
    g->at[g->n++] = one;
    return true;
}

/* How many values the digit has where its variable runs from 0 on. */
static bool size_digit(const struct access *a, struct digit *x) {
    struct range r = a->d->var[x->var];
    if (r.lo != 0 || r.hi < 0)
        return false;
    if (x->to - 1 > r.hi)
        x->to = 0;
    x->size = x->to ? x->to / x->from : r.hi / x->from + 1;
    return true;
}

/* Two digits of one variable take all pairs of their values: one lies wholly above the other, and
 * no last part of it is begun and not filled. */
static bool are_free(const struct access *a, const struct digit *x, const struct digit *y) {
    const struct digit *low = x->from < y->from ? x : y, *high = low == x ? y : x;
    if (x->var != y->var)
        return true;
    return low->to && high->from >= low->to && high->from % low->to == 0 &&
           (high->to || (a->d->var[x->var].hi + 1) % high->from == 0);
}

static int by_coefficient(const void *x, const void *y) {
    int64_t a = llabs(((const struct digit *)x)->coef), b = llabs(((const struct digit *)y)->coef);
    return (a > b) - (a < b);
}

/* The values that the index of a dimension takes: all of a range, of which those within the tensor
 * count, or as many as there are combinations. */
static bool values_of_dim(const struct digits *g, size_t dim, double *out) {
    int64_t lo = g->constant[dim], span = 0, more;
    int64_t last = g->a->d->in->tensors[g->a->read->ref].extent[dim] - 1;
    bool range = true;
    *out = 1;
    for (size_t i = 0; i < g->n; i++) { /* in the order of coefficients */
        const struct digit *x = &g->at[i];
        int64_t coef = llabs(x->coef);
        if (x->dim != dim || x->size == 1 || coef == 0)
            continue;
        range = range && coef <= span + 1;
        if (!range && coef <= span)
            return false;
        if (__builtin_mul_overflow(coef, x->size - 1, &more) ||
            __builtin_add_overflow(span, more, &span) ||
            (x->coef < 0 && __builtin_sub_overflow(lo, more, &lo)))
            return false;
        *out = range ? (double)span + 1 : *out * (double)x->size;
    }
    int64_t hi;
    if (__builtin_add_overflow(lo, span, &hi))
        return false;
    if (!range)
        return lo >= 0 && hi <= last;
    lo = lo < 0 ? 0 : lo;
    hi = hi > last ? last : hi;
    *out = hi < lo ? 0 : (double)(hi - lo) + 1;
    return true;
}

/* Says no more than that an index of the block lies within the tensor, or nothing at all. */
static bool only_within(const struct access *a, uint32_t dims, const struct constraint *c) {
    if (c->kind == CONSTRAINT_NOT_NEGATIVE) {
        double least = (double)c->a.c;
        for (uint32_t left = c->a.vars; left; left &= left - 1) {
            size_t v = (size_t)__builtin_ctz(left);
            struct range r = a->d->var[v];
            least += (double)c->a.coef[v] * (double)(c->a.coef[v] > 0 ? r.lo : r.hi);
        }
        return least >= 0;
    }
    if (c->kind != CONSTRAINT_TEST || c->a.vars || c->a.c || c->lo != 0)
        return false;
    for (size_t k = 0; k < a->read->nargs; k++)
        if ((dims >> k & 1) && expr_same(c->test, a->read->args[k]) &&
            c->hi == a->d->in->tensors[a->read->ref].extent[k] - 1)
            return true;
    return false;
}

/* Indices that are sums of quotients and remainders, each of which takes its values whatever the
 * others are: dimensions multiply, and each is counted by itself. */
static bool count_digits(const struct access *a, uint32_t dims, double *out) {
    struct digits g = {.a = a};
    for (size_t k = 0; k < a->read->nargs; k++)
        if ((dims >> k & 1) &&
            (expr_reads(a->read->args[k]) || !add_digits(&g, k, a->read->args[k], 1)))
            return false;
    for (size_t i = 0; i < a->d->n; i++)
        if ((a->d->c[i].vars & block_of(a, dims).vars) && !only_within(a, dims, &a->d->c[i]))
            return false;
    for (size_t i = 0; i < g.n; i++)
        if (!size_digit(a, &g.at[i]))
            return false;
    for (size_t i = 0; i < g.n; i++)
        for (size_t k = 0; k < i; k++)
            if (!are_free(a, &g.at[i], &g.at[k]))
                return false;
    qsort(g.at, g.n, sizeof *g.at, by_coefficient);
    *out = 1;
    for (size_t k = 0; k < a->read->nargs; k++) {
        double n;
        if (!(dims >> k & 1))
            continue;
        if (!values_of_dim(&g, k, &n))
            return false;
        *out *= n;
    }
    return true;
}

static double block_size(const struct access *a, uint32_t dims) {
    struct block b = block_of(a, dims);
    struct range interval;
    uint32_t used = 0;
    for (size_t k = 0; k < a->read->nargs; k++)
        if (dims >> k & 1 && !expr_reads(a->read->args[k]))
            used |= expr_vars(a->read->args[k]);
    if (injective(a, dims, used) && only_inequalities(a->d, b.vars))
        return domain_count(a->d, used);
    if (is_interval(a, &b, &interval))
        return (double)(interval.hi - interval.lo + 1);
    double counted;
    if (!a->d->empty && count_digits(a, dims, &counted))
        return counted;
    int64_t places = places_of(a, dims);
    double marked = -1;
    if (places) {
        uint32_t *place = mem_alloc((size_t)places * sizeof *place);
        marked = mark_block(a, dims, place, 1);
        mem_free(place);
    }
    return marked >= 0 ? marked : fmin(domain_count(a->d, used), box_size(a, dims));
}

/* A dimension whose index is data contributes one place: the least demanding data name the same
 * one everywhere. */
static double image_size(const struct access *a) {
    uint32_t group[TASK_MAX_RANK];
    double n = 1;
    blocks_begin(group);
    merge_dims(a, group);
    for (size_t k = 0; k < a->read->nargs; k++)
        if (is_first(group[k], k) && !expr_reads(a->read->args[k]))
            n *= block_size(a, group[k]);
    return n;
}

/* ---- unions ---- */

/* How many places (so far) exactly these accesses reach. */
struct signature {
    uint32_t bits;
    double count;
};
struct signatures {
    struct signature s[SIGNATURES_MOST];
    size_t n;
};

static bool count_signature(struct signatures *t, uint32_t bits, double count) {
    size_t i = 0;
    if (!bits)
        return true;
    while (i < t->n && t->s[i].bits != bits)
        i++;
    if (i == SIGNATURES_MOST)
        return false;
    if (i == t->n)
        t->s[t->n++] = (struct signature){bits, 0};
    t->s[i].count += count;
    return true;
}

static bool signatures_of_block(const struct accesses *c, size_t n, uint32_t dims,
                                struct signatures *t) {
    int64_t places = places_of(&c->access[0], dims);
    bool ok = places > 0;
    uint32_t *place = ok ? mem_alloc((size_t)places * sizeof *place) : NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = mark_block(&c->access[i], dims, place, UINT32_C(1) << i) >= 0;
    t->n = 0;
    for (int64_t k = 0; k < places && ok; k++)
        ok = count_signature(t, place[k], 1);
    mem_free(place);
    return ok;
}

/* A place is in the union when some access reaches it in every block. */
static bool union_size(const struct accesses *c, size_t n, double *out) {
    uint32_t group[TASK_MAX_RANK];
    size_t rank = c->in->task->tensors[c->tensor].rank;
    struct signatures *t = mem_alloc(3 * sizeof *t), *block = t + 1, *next = t + 2;
    bool ok = true;
    blocks_begin(group);
    for (size_t i = 0; i < n; i++)
        merge_dims(&c->access[i], group);
    t->n = 1;
    t->s[0] = (struct signature){UINT32_MAX, 1};
    for (size_t k = 0; k < rank && ok; k++) {
        if (!is_first(group[k], k))
            continue;
        ok = signatures_of_block(c, n, group[k], block);
        next->n = 0;
        for (size_t i = 0; i < t->n && ok; i++)
            for (size_t m = 0; m < block->n && ok; m++)
                ok = count_signature(next, t->s[i].bits & block->s[m].bits,
                                     t->s[i].count * block->s[m].count);
        memcpy(t, next, sizeof *t);
    }
    *out = 0;
    for (size_t i = 0; i < t->n; i++)
        *out += t->s[i].count;
    mem_free(t);
    return ok;
}

/* Elements that data can name, whose indices they are: every combination of the indices' variables
 * a place of its own, as far as the tensor has so many. */
static double reach_of(const struct access *a) {
    const struct bound_tensor *b = &a->d->in->tensors[a->read->ref];
    double places = 1;
    uint32_t named = 0;
    for (size_t k = 0; k < a->read->nargs; k++)
        if (expr_reads(a->read->args[k])) {
            places *= (double)b->extent[k];
            named |= expr_vars(a->read->args[k]);
        }
    places = fmin(places, domain_count(a->d, named));
    return fmin(image_size(a) * places, domain_count(a->d, expr_vars(a->read)));
}

/* Reads at places from data are not united with others: they may hit the same elements. */
static double distinct(struct accesses *c) {
    double sum = 0, most = 0, gathered = 0, all = (double)c->in->tensors[c->tensor].count;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool reach = c->reach && c->access[i].gather;
        double size = reach ? reach_of(&c->access[i]) : image_size(&c->access[i]);
        if (c->access[i].gather) {
            gathered = fmax(gathered, size);
            continue;
        }
        sum += size;
        most = fmax(most, size);
        struct access swap = c->access[n];
        c->access[n++] = c->access[i];
        c->access[i] = swap;
    }
    double together = most;
    if (n > 1 && most < all && !union_size(c, n, &together))
        together = fmin(sum, all);
    return fmax(together, gathered);
}

/* Of a symmetric matrix that is needed as a whole, one triangle is enough. */
static double without_mirror(const struct inst *in, size_t tensor, double elements) {
    const struct task *t = in->task;
    const struct bound_tensor *b = &in->tensors[tensor];
    for (size_t i = 0; i < t->nassumptions; i++)
        if (t->assumptions[i].kind == ASSUME_SYMMETRIC && t->assumptions[i].tensor == tensor &&
            elements == (double)b->count) {
            double n = (double)b->extent[t->tensors[tensor].rank - 1];
            return elements / n / n * (n * (n + 1) / 2);
        }
    return elements;
}

/* `domains`: where each statement is evaluated (demand_domains). */
static struct touched touched_of(const struct inst *in, size_t tensor,
                                 struct domain *const *domains, bool reach) {
    struct accesses c = {.in = in, .tensor = tensor, .all = true, .reach = reach};
    for (size_t i = 0; i < in->task->nstatements; i++)
        accesses_add(&c, domains[i], in->task->statements[i].body);
    struct touched t = {without_mirror(in, tensor, distinct(&c)), c.reads};
    accesses_release(&c);
    return t;
}

/* ---- writes ---- */

/* The element itself, as it was. */
static bool unchanged(const struct statement *s, const struct expr *e) {
    if (e->kind != EXPR_READ || e->ref != s->tensor)
        return false;
    for (size_t k = 0; k < e->nargs; k++)
        if (s->position[k] < 0 || e->args[k]->kind != EXPR_INDEX ||
            e->args[k]->ref != (size_t)s->position[k])
            return false;
    return true;
}

static double changed(struct domain *d, const struct statement *s, const struct expr *e,
                      bool reach) {
    if (d->empty || unchanged(s, e))
        return 0;
    if (e->kind != EXPR_IF)
        return domain_count(d, d->present);
    struct domain *yes = domain_copy(d), *no = domain_copy(d);
    domain_require(yes, e->args[0], true);
    domain_require(no, e->args[0], false);
    double a = changed(yes, s, e->args[1], reach), b = changed(no, s, e->args[2], reach);
    mem_free(yes);
    mem_free(no);
    if (!expr_reads(e->args[0]))
        return a + b;
    return reach || pattern_pins(e->args[0]) ? fmax(a, b) : fmin(a, b);
}

/* Elements of an output that must be written: all, but of an `inout` only those that change. */
static double written_of(const struct inst *in, size_t tensor, struct domain *const *domains,
                         bool reach) {
    const struct task *t = in->task;
    double n = 0;
    if (t->tensors[tensor].role != TENSOR_INOUT)
        return (double)in->tensors[tensor].count;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            n += changed(domains[i], &t->statements[i], t->statements[i].body, reach);
    return n;
}

/* Steps of counting loops for one instance; about a second at the worst. */
#define BUDGET 10000000

struct ops {
    double plain, special;
};

/* What is exact takes an operation, or one for each further argument; what is rounded is special.
 */
static struct ops call_ops(enum function f) {
    const struct function_info *of = function_info(f);
    if (of->result == RESULT_ROUNDED)
        return (struct ops){0, 1};
    return (struct ops){of->args > 1 ? (double)of->args - 1 : 1, 0};
}

/* Reals, and integers that come from tensors. */
static bool is_data(const struct expr *e) {
    return e->value_kind == VALUE_REAL || expr_reads(e);
}

/* The node's own work. */
static struct ops node_ops(const struct expr *e) {
    switch (e->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return (struct ops){is_data(e), 0};
    case EXPR_CALL:
        return is_data(e) ? call_ops(e->function) : (struct ops){0, 0};
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return (struct ops){is_data(e->args[0]) || is_data(e->args[1]), 0};
    default:
        return (struct ops){0, 0};
    }
}

static void walk(struct tally *t, struct domain *d, const struct expr *e);

static double total(const struct tally *t) {
    return t->plain + t->special;
}

static void add_tally(struct tally *t, const struct tally *more) {
    t->plain += more->plain;
    t->special += more->special;
    t->contraction += more->contraction;
    t->paired += more->paired;
    t->longest = fmax(t->longest, more->longest);
    t->longest_sum = fmax(t->longest_sum, more->longest_sum);
    t->fullest_sum = fmax(t->fullest_sum, more->fullest_sum);
}

static void walk_if(struct tally *t, struct domain *d, const struct expr *e) {
    struct tally side[2] = {{0}, {0}};
    bool data = expr_reads(e->args[0]);
    walk(t, d, e->args[0]);
    for (int k = 0; k < 2; k++) {
        struct domain *inner = domain_copy(d);
        domain_require(inner, e->args[0], k == 0);
        walk(&side[k], inner, e->args[1 + k]);
        mem_free(inner);
    }
    if (data)
        add_tally(t, &side[total(&side[0]) >= total(&side[1]) ? 0 : 1]);
    for (int k = 0; k < 2 && !data; k++)
        add_tally(t, &side[k]);
}

/* ---- reductions ---- */

/* Leaves out the terms in which this factor is `nothing`, the value that does not change the
 * result. */
static void leave_out(struct domain *d, const struct expr *f, double nothing) {
    const struct task *t = d->in->task;
    if (f->kind == EXPR_PAD && pattern_constant_is(d->in, f->args[1], nothing)) {
        domain_require_inside(d, f->args[0]);
        leave_out(d, f->args[0], nothing);
    }
    for (int side = 0; side < 2 && f->kind == EXPR_IF; side++)
        if (pattern_constant_is(d->in, f->args[2 - side], nothing)) {
            domain_require(d, f->args[0], side == 0);
            leave_out(d, f->args[1 + side], nothing);
            return;
        }
    for (size_t i = 0; f->kind == EXPR_READ && nothing == 0 && i < t->nassumptions; i++)
        if (t->assumptions[i].kind == ASSUME_ZERO && t->assumptions[i].tensor == f->ref)
            domain_require_at(d, f, t->assumptions[i].s.body, false);
}

/* Multiplications of a sum's terms, beside what its factors cost themselves. */
struct product_ops {
    double each;   /* for every term */
    double result; /* for every result */
    uint32_t vars; /* of the factors that change from term to term */
};

static struct product_ops product_ops(const struct inst *in, const struct factors *f,
                                      uint32_t reduced) {
    struct product_ops p = {0};
    bool above = false, folded = false;
    size_t varying = 0;
    for (size_t i = 0; i < f->n; i++) {
        uint32_t vars = expr_vars(f->e[i]);
        if (vars & reduced) {
            varying++;
            above |= !f->below[i];
            p.vars |= vars;
        } else if (pattern_is_constant(f->e[i])) {
            folded |= !pattern_constant_is(in, f->e[i], 1);
        } else {
            p.result++;
        }
    }
    p.each = varying ? (double)(varying - above) : 0;
    p.result += folded;
    return p;
}

static double nothing_of(enum reduction op) {
    return op == REDUCTION_MAX || op == REDUCTION_ARGMAX   ? -INFINITY
           : op == REDUCTION_MIN || op == REDUCTION_ARGMIN ? INFINITY
           : op == REDUCTION_PROD                          ? 1
                                                           : 0;
}

struct reduction_domains {
    struct domain *outer, *inner;
    double results, terms;
};

static void walk_sum(struct tally *t, const struct reduction_domains *r, const struct expr *e) {
    struct factors f;
    pattern_factors(e->args[0], &f);
    struct product_ops p = product_ops(r->outer->in, &f, reduce_vars(e->reduce));
    double products = p.each * domain_count(r->inner, p.vars);
    t->plain += products + p.result * r->results;
    if (pattern_is_contraction(e))
        t->contraction += products + r->terms;
    for (size_t i = 0; i < f.n; i++)
        walk(t, r->inner, f.e[i]);
}

static void enter_terms(struct domain *d, const struct expr *e, bool sum) {
    struct factors f = {.n = 1, .e = {e->args[0]}};
    domain_enter(d, e->reduce);
    if (sum)
        pattern_factors(e->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        if (!f.below[i])
            leave_out(d, f.e[i], nothing_of(e->reduce->op));
}

/* The variables of the results that the reads below `e` have beside the reduced ones, as far as a
 * read has one of those: `some` of the first such read, `others` of one that lacks one of `some`.
 */
struct pairing {
    uint32_t reduced, some, others;
};

static void find_pairing(struct pairing *p, const struct expr *e) {
    uint32_t vars = e->kind == EXPR_READ ? expr_vars(e) : 0;
    if (vars & p->reduced) {
        uint32_t own = vars & ~p->reduced;
        if (!p->some)
            p->some = own;
        else if ((own & ~p->some) && (p->some & ~own))
            p->others = own;
    }
    for (size_t i = 0; i < e->nargs; i++)
        find_pairing(p, e->args[i]);
}

/* Each result is of two rows, and no row alone decides anything: a product of matrices, in whatever
 * operations, or distances. */
static bool pairs(const struct expr *e) {
    struct pairing p = {.reduced = reduce_vars(e->reduce)};
    find_pairing(&p, e->args[0]);
    return p.others != 0 || pattern_is_contraction(e);
}

static void note_length(struct tally *t, double length) {
    t->longest = fmax(t->longest, length);
    t->longest_sum = fmax(t->longest_sum, length);
    t->fullest_sum = fmax(t->fullest_sum, length);
}

/* A step of a recurrence is a product and a sum. */
static void walk_recurrence(struct tally *t, struct domain *d, const struct expr *e,
                            const struct recurrence *r) {
    struct domain *outer = domain_copy(d);
    domain_keep(outer, expr_vars(e));
    struct domain *inner = domain_copy(outer);
    domain_enter(inner, e->reduce);
    double results = domain_count(outer, outer->present);
    t->plain += 2 * results;
    note_length(t, domain_count(inner, reduce_vars(e->reduce)));
    for (size_t i = 0; i < r->nfactors; i++) {
        walk(t, inner, r->factor[i]);
        t->plain += i ? domain_count(inner, expr_vars(r->factor[i]) | reduce_vars(e->reduce)) : 0;
    }
    if (r->gain) {
        double gains = domain_count(inner, expr_vars(r->gain));
        walk(t, inner, r->gain);
        t->special += gains;
        t->plain += r->nfactors ? gains : 0;
    }
    uint32_t moving = r->over ? 0 : UINT32_C(1) << r->axis | UINT32_C(1) << r->var;
    if (r->over)
        domain_enter(inner, r->over);
    if (r->over || !r->exponential)
        walk(t, inner, r->decay);
    if (r->exponential)
        t->special += domain_count(inner, expr_vars(r->decay) & ~moving);
    mem_free(inner);
    mem_free(outer);
}

/* Parts that have the axis, or the variable of the terms, and their sums and differences. */
static void walk_parts(struct tally *t, struct domain *d, const struct expr *e, double results) {
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB && e->kind != EXPR_NEG) {
        walk(t, d, e);
        return;
    }
    t->plain += e->kind == EXPR_NEG ? 0 : results;
    for (size_t i = 0; i < e->nargs; i++)
        walk_parts(t, d, e->args[i], results);
}

/* A step: an exponential, which scales the sum or the term, and one for the result. */
static void walk_exponentials(struct tally *t, struct domain *d, const struct expr *e,
                              const struct exponentials *x) {
    struct factors f;
    struct domain *outer = domain_copy(d);
    domain_keep(outer, expr_vars(e));
    struct domain *inner = domain_copy(outer);
    domain_enter(inner, e->reduce);
    double results = domain_count(outer, outer->present);
    t->plain += 3 * results;
    t->special += 2 * results;
    note_length(t, domain_count(inner, reduce_vars(e->reduce)));
    pattern_factors(e->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        if (f.e[i] != x->power)
            walk(t, inner, f.e[i]);
    walk_parts(t, inner, x->power->args[0], results);
    mem_free(inner);
    mem_free(outer);
}

/* A step: whether a segment begins, and the term. */
static void walk_segments(struct tally *t, struct domain *d, const struct expr *e) {
    struct domain *outer = domain_copy(d);
    domain_keep(outer, expr_vars(e));
    struct domain *inner = domain_copy(outer);
    domain_enter(inner, e->reduce);
    double length = domain_count(inner, reduce_vars(e->reduce));
    t->plain += 2 * domain_count(outer, outer->present);
    if (e->reduce->op == REDUCTION_SUM || e->reduce->op == REDUCTION_PROD)
        note_length(t, length);
    t->longest = fmax(t->longest, length);
    walk(t, inner, e->args[0]);
    mem_free(inner);
    mem_free(outer);
}

static void walk_reduce(struct tally *t, struct domain *d, const struct expr *e) {
    struct recurrence step;
    if (pattern_is_recurrence(e, &step)) {
        walk_recurrence(t, d, e, &step);
        return;
    }
    struct exponentials scaled;
    if (pattern_is_exponentials(e, &scaled)) {
        walk_exponentials(t, d, e, &scaled);
        return;
    }
    struct segments segments;
    if (pattern_is_segments(d->in->task, e, &segments)) {
        walk_segments(t, d, e);
        return;
    }
    bool sum = e->reduce->op == REDUCTION_SUM || e->reduce->op == REDUCTION_MEAN;
    bool prefix = pattern_is_prefix(e);
    struct reduction_domains r = {.outer = domain_copy(d)};
    domain_keep(r.outer, expr_vars(e));
    r.inner = domain_copy(r.outer);
    enter_terms(r.inner, e, sum);
    r.results = domain_count(r.outer, r.outer->present);
    r.terms = prefix ? r.results : domain_count(r.inner, r.inner->present);
    t->plain += r.terms + (e->reduce->op == REDUCTION_MEAN ? r.results : 0);
    t->paired += pairs(e) ? r.terms : 0;
    double full = domain_count(r.inner, reduce_vars(e->reduce));
    double length = prefix ? full : r.terms / r.results;
    t->longest = fmax(t->longest, length);
    if (sum || e->reduce->op == REDUCTION_PROD) {
        t->longest_sum = fmax(t->longest_sum, length);
        t->fullest_sum = fmax(t->fullest_sum, full);
    }
    if (e->reduce->guard)
        walk(t, r.inner, e->reduce->guard);
    if (sum)
        walk_sum(t, &r, e);
    else
        walk(t, r.inner, e->args[0]);
    mem_free(r.inner);
    mem_free(r.outer);
}

static void walk(struct tally *t, struct domain *d, const struct expr *e) {
    if (d->empty || e->kind == EXPR_READ || pattern_is_constant(e))
        return;
    if (e->kind == EXPR_IF) {
        walk_if(t, d, e);
        return;
    }
    if (e->kind == EXPR_REDUCE) {
        if (is_data(e))
            walk_reduce(t, d, e);
        return;
    }
    struct ops o = node_ops(e);
    if (o.plain + o.special > 0) {
        double count = domain_count(d, expr_vars(e));
        t->plain += o.plain * count;
        t->special += o.special * count;
    }
    for (size_t i = 0; i < e->nargs; i++)
        walk(t, d, e->args[i]);
}

/* What is read or written depends on data. */
static bool asks_data(const struct expr *e) {
    bool asks = (e->kind == EXPR_IF && expr_reads(e->args[0])) ||
                (e->kind == EXPR_READ && pattern_is_gather(e)) ||
                (e->kind == EXPR_REDUCE && e->reduce->guard && expr_reads(e->reduce->guard));
    for (size_t i = 0; i < expr_nparts(e) && !asks; i++)
        asks = asks_data(expr_part(e, i));
    return asks;
}

static void tally_bytes(const struct inst *in, struct domain *const *domains, struct tally *out) {
    const struct task *t = in->task;
    bool asks = false;
    for (size_t i = 0; i < t->nstatements && !asks; i++)
        asks = asks_data(t->statements[i].body);
    for (size_t i = 0; i < t->ntensors; i++) {
        double bytes = (double)dtype_info(t->tensors[i].dtype)->bytes;
        if (tensor_is_input(&t->tensors[i])) {
            struct touched touched = touched_of(in, i, domains, false), most = touched;
            if (asks)
                most = touched_of(in, i, domains, true);
            out->read_bytes += touched.elements * bytes;
            out->reach_read_bytes += most.elements * bytes;
            out->elements += touched.elements;
            out->reads += touched.reads;
        }
        if (tensor_is_output(&t->tensors[i])) {
            out->write_bytes += written_of(in, i, domains, false) * bytes;
            out->reach_write_bytes += written_of(in, i, domains, asks) * bytes;
        }
    }
}

void tally_of(const struct inst *in, struct tally *out) {
    const struct task *t = in->task;
    struct domain *domains[TASK_MAX_STATEMENTS];
    int64_t budget = BUDGET;
    *out = (struct tally){0};
    demand_domains(in, &budget, domains);
    for (size_t i = 0; i < t->nstatements; i++)
        walk(out, domains[i], t->statements[i].body);
    tally_bytes(in, domains, out);
    for (size_t i = 0; i < t->nstatements; i++)
        mem_free(domains[i]);
}

void tally_statements(const struct inst *in, struct tally *out) {
    struct domain *domains[TASK_MAX_STATEMENTS];
    int64_t budget = BUDGET;
    demand_domains(in, &budget, domains);
    for (size_t i = 0; i < in->task->nstatements; i++) {
        out[i] = (struct tally){0};
        walk(&out[i], domains[i], in->task->statements[i].body);
        mem_free(domains[i]);
    }
}

static void tally_cost(const struct tally *t, struct cost *out) {
    *out = (struct cost){.flops_add_mul = t->plain,
                         .flops_special = t->special,
                         .flops = total(t),
                         .flops_contraction = t->contraction,
                         .read_bytes = t->read_bytes,
                         .write_bytes = t->write_bytes,
                         .compulsory_bytes = t->read_bytes + t->write_bytes,
                         .reach_read_bytes = t->reach_read_bytes,
                         .reach_write_bytes = t->reach_write_bytes};
    if (out->compulsory_bytes > 0)
        out->intensity = out->flops / out->compulsory_bytes;
}

void cost_of(const struct inst *in, struct cost *out) {
    struct tally t;
    tally_of(in, &t);
    tally_cost(&t, out);
}

/* ---- the kind of work a task is, read off its statements ----
 *
 * What a value is made of is followed through lets: which inputs reach it element by element and
 * which through a reduction, whether a contraction lies behind it, and whether a reduction of that
 * (a softmax, say) lies between. The most telling trait names the class. */

const char *workload_name(enum workload w) {
    static const char *const names[WORKLOAD_COUNT] = {
        [WORKLOAD_POINTWISE] = "pointwise",
        [WORKLOAD_REDUCTION] = "reduction",
        [WORKLOAD_NORMALISATION] = "normalisation",
        [WORKLOAD_SCAN] = "scan",
        [WORKLOAD_WINDOW] = "window",
        [WORKLOAD_CONTRACTION] = "contraction",
        [WORKLOAD_ATTENTION] = "attention",
        [WORKLOAD_LOSS] = "loss",
        [WORKLOAD_GATHER] = "gather",
    };
    BUG_IF((unsigned)w >= WORKLOAD_COUNT);
    return names[w];
}

/* What a value is made of. Inputs as bits. */
struct origin {
    uint64_t direct, reduced;
    bool contracted; /* of a contraction */
    bool settled;    /* of a reduction of a contraction's results */
};

struct traits {
    const struct task *task;
    struct origin of[TASK_MAX_TENSORS];
    bool contraction, attention, scan, window, gather, normalisation, division, by_index;
    bool recurs; /* some let reads its own earlier steps */
    size_t reductions;
};

static struct origin united(struct origin a, struct origin b) {
    return (struct origin){a.direct | b.direct, a.reduced | b.reduced, a.contracted || b.contracted,
                           a.settled || b.settled};
}

/* A variable that is reduced over stands beside another one in an index: x[p + r]. */
static bool slides(const struct expr *e, uint32_t reduced) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        uint32_t vars = expr_vars(e->args[k]);
        if ((vars & reduced) && (vars & ~reduced))
            return true;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (slides(e->args[i], reduced))
            return true;
    return false;
}

static struct origin trace(struct traits *t, const struct expr *e);

static struct origin trace_parts(struct traits *t, const struct expr *e) {
    struct origin o = {0};
    for (size_t i = 0; i < expr_nparts(e); i++)
        o = united(o, trace(t, expr_part(e, i)));
    return o;
}

static struct origin trace_reduce(struct traits *t, const struct expr *e) {
    struct origin o = trace_parts(t, e);
    bool contraction = pattern_is_contraction(e);
    struct recurrence step;
    struct by_index by;
    struct exponentials scaled;
    t->reductions++;
    t->by_index |= pattern_is_by_index(e, &by);
    t->contraction |= contraction;
    t->attention |= contraction && o.settled;
    t->scan |= pattern_is_prefix(e) || pattern_is_recurrence(e, &step) ||
               pattern_is_exponentials(e, &scaled);
    t->window |= slides(e->args[0], reduce_vars(e->reduce));
    o.settled |= o.contracted && !contraction;
    o.contracted |= contraction;
    o.reduced |= o.direct;
    o.direct = 0;
    return o;
}

static struct origin trace(struct traits *t, const struct expr *e) {
    if (e->kind == EXPR_REDUCE)
        return trace_reduce(t, e);
    t->division |= e->kind == EXPR_DIV && e->value_kind == VALUE_REAL;
    if (e->kind != EXPR_READ)
        return trace_parts(t, e);
    t->gather |= pattern_is_gather(e);
    if (!tensor_is_input(&t->task->tensors[e->ref]))
        return t->of[e->ref];
    return (struct origin){.direct = UINT64_C(1) << e->ref};
}

static bool one_number(const struct inst *in) {
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_is_output(&in->task->tensors[i]) && in->tensors[i].count > 1)
            return false;
    return true;
}

static struct traits traits_of(const struct inst *in) {
    struct traits t = {.task = in->task};
    for (size_t i = 0; i < in->task->nstatements; i++) {
        const struct statement *s = &in->task->statements[i];
        struct origin o = trace(&t, s->body);
        t.recurs |= s->recurs.number > 0;
        t.of[s->tensor] = united(t.of[s->tensor], o);
        t.normalisation |=
            tensor_is_output(&in->task->tensors[s->tensor]) && (o.direct & o.reduced);
    }
    return t;
}

static enum workload workload_of(const struct inst *in, const struct traits *t) {
    return t->reductions && one_number(in) ? WORKLOAD_LOSS
           : t->attention                  ? WORKLOAD_ATTENTION
           : t->recurs                     ? WORKLOAD_SCAN
           : t->contraction                ? WORKLOAD_CONTRACTION
           : t->scan                       ? WORKLOAD_SCAN
           : t->gather                     ? WORKLOAD_GATHER
           : t->normalisation              ? WORKLOAD_NORMALISATION
           : t->window                     ? WORKLOAD_WINDOW
           : t->reductions                 ? WORKLOAD_REDUCTION
                                           : WORKLOAD_POINTWISE;
}

void features_of(const struct inst *in, struct features *out) {
    const struct task *t = in->task;
    struct tally tally;
    struct cost c;
    int64_t largest = 0;
    tally_of(in, &tally);
    tally_cost(&tally, &c);
    struct traits traits = traits_of(in);
    *out = (struct features){.workload = workload_of(in, &traits),
                             .intensity = c.intensity,
                             .folds = traits.reductions,
                             .rereads = traits.normalisation,
                             .by_index = traits.by_index,
                             .special = traits.division || c.flops_special > 0};
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_output(&t->tensors[i]))
            continue;
        if (out->outputs++ == 0)
            out->dtype = t->tensors[i].dtype;
        if (in->tensors[i].count > largest) {
            largest = in->tensors[i].count;
            out->rank = t->tensors[i].rank;
        }
    }
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_input(&t->tensors[i])) {
            out->inputs++;
            out->broadcast |= in->tensors[i].count < largest;
        }
    out->log2_elements = largest > 0 ? log2((double)largest) : 0;
    out->log2_bytes = log2(c.compulsory_bytes);
    out->special_share = c.flops > 0 ? c.flops_special / c.flops : 0;
    out->log2_reduced = tally.longest > 1 ? log2(tally.longest) : 0;
    out->reuse = tally.elements > 0 ? tally.reads / tally.elements : 0;
}
