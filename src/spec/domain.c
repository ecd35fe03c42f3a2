/* Domains: building them, from expressions to constraints; counting their points. */
#include "spec/domain.h"

#include "spec/pattern.h"
#include "spec/scalar.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond this a coefficient or a value is not calculated with, so that no sum overflows. */
#define VALUE_MOST ((int64_t)1 << 45)

static bool affine_scale(struct affine *a, int64_t by) {
    for (uint32_t left = a->vars; left; left &= left - 1)
        if (llabs(a->coef[__builtin_ctz(left)]) > VALUE_MOST / (llabs(by) + 1))
            return false;
    if (llabs(a->c) > VALUE_MOST / (llabs(by) + 1))
        return false;
    a->c *= by;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        a->coef[v] *= by;
    a->vars = by ? a->vars : 0;
    return true;
}

/* a + b·by */
static bool affine_add(struct affine *a, const struct affine *b, int64_t by) {
    struct affine s = *b;
    if (!affine_scale(&s, by))
        return false;
    a->c += s.c;
    a->vars = 0;
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        a->coef[v] += s.coef[v];
        if (llabs(a->coef[v]) > VALUE_MOST)
            return false;
        a->vars |= a->coef[v] ? UINT32_C(1) << v : 0;
    }
    return llabs(a->c) <= VALUE_MOST;
}

static bool affine_product(struct affine *a, const struct affine *b) {
    if (!b->vars)
        return affine_scale(a, b->c);
    int64_t by = a->c;
    if (a->vars)
        return false;
    *a = *b;
    return affine_scale(a, by);
}

static struct affine affine_term(size_t var, int64_t coef, int64_t c) {
    struct affine a = {.c = c, .vars = UINT32_C(1) << var};
    a.coef[var] = coef;
    return a;
}

bool affine_of(const struct inst *in, const struct expr *e, struct affine *out) {
    struct affine b;
    int64_t c;
    *out = (struct affine){0};
    if (e->value_kind != VALUE_INT)
        return false;
    switch (e->kind) {
    case EXPR_NUMBER:
        out->c = e->integer;
        return e->integral && e->integer >= -VALUE_MOST && e->integer <= VALUE_MOST;
    case EXPR_DIM:
        out->c = in->dims[e->ref];
        return out->c <= VALUE_MOST;
    case EXPR_INDEX:
        out->coef[e->ref] = 1;
        out->vars = UINT32_C(1) << e->ref;
        return true;
    case EXPR_NEG:
        return affine_of(in, e->args[0], out) && affine_scale(out, -1);
    case EXPR_ADD:
    case EXPR_SUB:
        return affine_of(in, e->args[0], out) && affine_of(in, e->args[1], &b) &&
               affine_add(out, &b, e->kind == EXPR_ADD ? 1 : -1);
    case EXPR_MUL:
        return affine_of(in, e->args[0], out) && affine_of(in, e->args[1], &b) &&
               affine_product(out, &b);
    default:
        if (expr_vars(e) || expr_reads(e) || !expr_eval_dims(e, in->dims, &c) ||
            llabs(c) > VALUE_MOST)
            return false;
        out->c = c;
        return true;
    }
}

struct domain *domain_new(const struct inst *in, const struct statement *s, int64_t *budget) {
    struct domain *d = mem_alloc(sizeof *d);
    d->in = in;
    d->budget = budget;
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++)
        if (s->position[k] >= 0) {
            d->present |= UINT32_C(1) << s->position[k];
            d->var[s->position[k]] = (struct range){0, in->tensors[s->tensor].extent[k] - 1};
        }
    return d;
}

struct domain *domain_copy(const struct domain *d) {
    struct domain *copy = mem_alloc(sizeof *copy);
    memcpy(copy, d, sizeof *copy);
    copy->nknown = 0;
    return copy;
}

static void add(struct domain *d, const struct constraint *c) {
    d->nknown = 0;
    if (d->n < DOMAIN_CONSTRAINTS)
        d->c[d->n++] = *c;
}

static void add_not_negative(struct domain *d, const struct affine *a) {
    struct constraint c = {.kind = CONSTRAINT_NOT_NEGATIVE, .a = *a, .vars = a->vars};
    if (!a->vars)
        d->empty |= a->c < 0;
    else
        add(d, &c);
}

/* Affine, or an affine number divided down by a positive one. */
struct quotient {
    struct affine a;
    int64_t by;
};

static bool quotient_of(const struct inst *in, const struct expr *e, struct quotient *out) {
    struct affine by;
    out->by = 1;
    if (affine_of(in, e, &out->a))
        return true;
    if (e->kind != EXPR_FLOORDIV || !affine_of(in, e->args[0], &out->a) ||
        !affine_of(in, e->args[1], &by) || by.vars || by.c < 1)
        return false;
    out->by = by.c;
    return true;
}

/* x >= y + least, or x <= y + least. With q = a // m: q >= y is a >= m·y, and q <= y is
 * a <= m·y + m - 1. */
static bool add_order(struct domain *d, const struct quotient *x, bool at_least,
                      const struct affine *y, int64_t least) {
    struct affine a = x->a, edge = *y;
    edge.c += least;
    if (!affine_scale(&edge, x->by))
        return false;
    edge.c += at_least ? 0 : x->by - 1;
    if (!affine_add(&a, &edge, -1) || (!at_least && !affine_scale(&a, -1)))
        return false;
    add_not_negative(d, &a);
    return true;
}

static enum expr_kind opposite(enum expr_kind k) {
    return k == EXPR_LT   ? EXPR_GE
           : k == EXPR_GE ? EXPR_LT
           : k == EXPR_GT ? EXPR_LE
           : k == EXPR_LE ? EXPR_GT
           : k == EXPR_EQ ? EXPR_NE
                          : EXPR_EQ;
}

static bool add_ordered(struct domain *d, const struct quotient *x, enum expr_kind kind,
                        const struct affine *y) {
    switch (kind) {
    case EXPR_GE:
        return add_order(d, x, true, y, 0);
    case EXPR_GT:
        return add_order(d, x, true, y, 1);
    case EXPR_LE:
        return add_order(d, x, false, y, 0);
    case EXPR_LT:
        return add_order(d, x, false, y, -1);
    case EXPR_EQ:
        return add_order(d, x, true, y, 0) && add_order(d, x, false, y, 0);
    default:
        return false;
    }
}

/* a % m == r */
static bool add_divisible(struct domain *d, const struct expr *x, const struct expr *y) {
    struct affine m, r;
    struct constraint c = {.kind = CONSTRAINT_DIVISIBLE};
    if (x->kind != EXPR_MOD || !affine_of(d->in, x->args[0], &c.a) ||
        !affine_of(d->in, x->args[1], &m) || !affine_of(d->in, y, &r) || m.vars || r.vars ||
        m.c < 1 || !affine_add(&c.a, &r, -1))
        return false;
    d->empty |= r.c < 0 || r.c >= m.c;
    c.modulus = m.c;
    c.vars = c.a.vars;
    if (c.vars)
        add(d, &c);
    else
        d->empty |= c.a.c % m.c != 0;
    return true;
}

static enum expr_kind mirror(enum expr_kind k) {
    return k == EXPR_LT   ? EXPR_GT
           : k == EXPR_GT ? EXPR_LT
           : k == EXPR_LE ? EXPR_GE
           : k == EXPR_GE ? EXPR_LE
                          : k;
}

static bool add_comparison(struct domain *d, const struct expr *e, bool truth) {
    struct quotient x, y;
    enum expr_kind kind = truth ? e->kind : opposite(e->kind);
    if (kind == EXPR_EQ &&
        (add_divisible(d, e->args[0], e->args[1]) || add_divisible(d, e->args[1], e->args[0])))
        return true;
    if (!quotient_of(d->in, e->args[0], &x) || !quotient_of(d->in, e->args[1], &y))
        return false;
    return y.by == 1   ? add_ordered(d, &x, kind, &y.a)
           : x.by == 1 ? add_ordered(d, &y, mirror(kind), &x.a)
                       : false;
}

static void add_test(struct domain *d, const struct expr *e, const struct affine *a, int64_t lo,
                     int64_t hi) {
    struct constraint c = {.kind = CONSTRAINT_TEST, .test = e, .a = *a, .lo = lo, .hi = hi};
    c.vars = a->vars | expr_vars(e);
    if (c.vars) {
        add(d, &c);
        return;
    }
    struct scalar s = {.in = d->in};
    double v = scalar_eval(&s, e) + (double)a->c;
    d->empty |= !(v >= (double)lo && v <= (double)hi);
}

void domain_require(struct domain *d, const struct expr *e, bool truth) {
    static const struct affine nothing;
    if (e->kind == EXPR_NOT) {
        domain_require(d, e->args[0], !truth);
        return;
    }
    if ((e->kind == EXPR_AND && truth) || (e->kind == EXPR_OR && !truth)) {
        domain_require(d, e->args[0], truth);
        domain_require(d, e->args[1], truth);
        return;
    }
    if (truth && pattern_pins(e)) {
        size_t v = e->args[e->args[0]->kind == EXPR_INDEX ? 0 : 1]->ref;
        d->var[v].hi = d->var[v].lo;
        d->nknown = 0;
    }
    if (expr_reads(e) || (e->kind >= EXPR_EQ && e->kind <= EXPR_GE && add_comparison(d, e, truth)))
        return;
    add_test(d, e, &nothing, truth, truth);
}

void domain_require_inside(struct domain *d, const struct expr *read) {
    static const struct affine zero;
    for (size_t k = 0; k < read->nargs; k++) {
        int64_t last = d->in->tensors[read->ref].extent[k] - 1;
        struct affine most = {.c = last};
        struct quotient x;
        if (expr_reads(read->args[k]))
            continue;
        if (!quotient_of(d->in, read->args[k], &x) || !add_order(d, &x, true, &zero, 0) ||
            !add_order(d, &x, false, &most, 0))
            add_test(d, read->args[k], &zero, 0, last);
    }
}

/* The same number with the indices of `read` in place of its tensor's index variables. */
static bool substituted(const struct domain *d, const struct expr *read, const struct affine *a,
                        struct affine *out) {
    *out = (struct affine){.c = a->c};
    for (uint32_t left = a->vars; left; left &= left - 1) {
        size_t v = (size_t)__builtin_ctz(left);
        struct affine index;
        if (v >= read->nargs || !affine_of(d->in, read->args[v], &index) ||
            !affine_add(out, &index, a->coef[v]))
            return false;
    }
    return true;
}

void domain_require_at(struct domain *d, const struct expr *read, const struct expr *condition,
                       bool truth) {
    struct domain *own = mem_alloc(sizeof *own);
    own->in = d->in;
    domain_require(own, condition, truth);
    for (size_t i = 0; i < own->n; i++) {
        struct affine a;
        if (own->c[i].kind == CONSTRAINT_NOT_NEGATIVE && substituted(d, read, &own->c[i].a, &a))
            add_not_negative(d, &a);
    }
    mem_free(own);
}

/* v >= bound, or v < bound; of maximum(…) below and minimum(…) above, both hold. */
static void add_bound(struct domain *d, size_t v, const struct expr *bound, bool lower) {
    struct affine var = affine_term(v, 1, 0);
    struct quotient q;
    if (bound->kind == EXPR_CALL &&
        bound->function == (lower ? FUNCTION_MAXIMUM : FUNCTION_MINIMUM)) {
        add_bound(d, v, bound->args[0], lower);
        add_bound(d, v, bound->args[1], lower);
        return;
    }
    if (quotient_of(d->in, bound, &q) && add_order(d, &q, !lower, &var, lower ? 0 : 1))
        return;
    var.coef[v] = -1;
    if (lower)
        add_test(d, bound, &var, -VALUE_MOST, 0);
    else
        add_test(d, bound, &var, 1, VALUE_MOST);
}

void domain_enter(struct domain *d, const struct reduce *r) {
    struct ranges ranges = {.in = d->in};
    memcpy(ranges.index, d->var, sizeof d->var);
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        struct range lo, hi;
        bool known =
            range_of(&ranges, v->lo, &lo) == RANGE_OK && range_of(&ranges, v->hi, &hi) == RANGE_OK;
        d->present |= UINT32_C(1) << v->var;
        d->var[v->var] = known ? (struct range){lo.lo, hi.hi - 1} : (struct range){0, -1};
        d->empty |= d->var[v->var].lo > d->var[v->var].hi;
        ranges.index[v->var] = d->var[v->var];
        if (known && lo.lo != lo.hi)
            add_bound(d, v->var, v->lo, true);
        if (known && hi.lo != hi.hi)
            add_bound(d, v->var, v->hi, false);
    }
    if (r->guard)
        domain_require(d, r->guard, true);
}

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

static int64_t divide_down(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* What c + Σ coef·variable, over the variables `some`, reaches at the most. Values that are known
 * stand in `value`; `open` are those that run over their ranges. */
static double most_of(const struct domain *d, const struct affine *a, const int64_t *value,
                      uint32_t open, uint32_t some) {
    double sum = (double)a->c;
    for (uint32_t left = a->vars & some; left; left &= left - 1) {
        int v = __builtin_ctz(left);
        double coef = (double)a->coef[v];
        sum += open >> v & 1 ? fmax(coef * (double)d->var[v].lo, coef * (double)d->var[v].hi)
                             : coef * (double)value[v];
    }
    return sum;
}

/* The values of v that the inequalities leave. */
static struct range interval(const struct domain *d, const int64_t *value, uint32_t open,
                             size_t v) {
    struct range r = d->var[v];
    for (size_t i = 0; i < d->n && r.lo <= r.hi; i++) {
        const struct constraint *c = &d->c[i];
        if (c->kind != CONSTRAINT_NOT_NEGATIVE || !(c->vars >> v & 1))
            continue;
        double most = most_of(d, &c->a, value, open, ~(UINT32_C(1) << v));
        if (!(fabs(most) < 0x1p53))
            continue;
        int64_t rest = (int64_t)most, coef = c->a.coef[v];
        if (coef > 0 && divide_up(-rest, coef) > r.lo)
            r.lo = divide_up(-rest, coef);
        if (coef < 0 && divide_down(rest, -coef) < r.hi)
            r.hi = divide_down(rest, -coef);
    }
    return r;
}

/* Makes the ranges of the variables as small as inequalities allow, as far as a few rounds go. */
static void tighten(struct domain *d) {
    enum { ROUNDS = 8 };
    static const int64_t none[TASK_MAX_VARS];
    bool changed = true;
    for (int round = 0; round < ROUNDS && changed && !d->empty; round++) {
        changed = false;
        for (uint32_t left = d->present; left; left &= left - 1) {
            size_t v = (size_t)__builtin_ctz(left);
            struct range r = interval(d, none, d->present, v);
            changed |= r.lo != d->var[v].lo || r.hi != d->var[v].hi;
            d->var[v] = r;
            d->empty |= r.lo > r.hi;
        }
    }
}

static void drop(struct domain *d, size_t i) {
    d->c[i] = d->c[--d->n];
}

static bool always(const struct domain *d, const struct affine *a) {
    double least = (double)a->c;
    for (uint32_t left = a->vars; left; left &= left - 1) {
        int v = __builtin_ctz(left);
        double coef = (double)a->coef[v];
        least += fmin(coef * (double)d->var[v].lo, coef * (double)d->var[v].hi);
    }
    return least >= 0;
}

/* The sum of p and q (q may be NULL) says at least as much as r. */
static bool implies(const struct affine *p, const struct affine *q, const struct affine *r) {
    if (p->c + (q ? q->c : 0) > r->c)
        return false;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if (p->coef[v] + (q ? q->coef[v] : 0) != r->coef[v])
            return false;
    return true;
}

static bool redundant(const struct domain *d, size_t i) {
    const struct affine *r = &d->c[i].a;
    if (d->c[i].kind != CONSTRAINT_NOT_NEGATIVE)
        return false;
    if (always(d, r))
        return true;
    for (size_t p = 0; p < d->n; p++) {
        if (p == i || d->c[p].kind != CONSTRAINT_NOT_NEGATIVE)
            continue;
        if (implies(&d->c[p].a, NULL, r))
            return true;
        for (size_t q = p + 1; q < d->n; q++)
            if (q != i && d->c[q].kind == CONSTRAINT_NOT_NEGATIVE &&
                implies(&d->c[p].a, &d->c[q].a, r))
                return true;
    }
    return false;
}

/* What others imply would only tie variables together: i <= j beside i <= k <= j. */
static void simplify(struct domain *d) {
    tighten(d);
    for (size_t i = d->n; i-- > 0;)
        if (redundant(d, i))
            drop(d, i);
}

/* low·|coef of up| + up·|coef of low|: v cancels. */
static void combine(struct domain *d, const struct affine *low, const struct affine *up, size_t v) {
    int64_t a = low->coef[v], b = -up->coef[v];
    struct constraint c = {.kind = CONSTRAINT_NOT_NEGATIVE};
    double most = 0;
    for (size_t u = 0; u < TASK_MAX_VARS; u++)
        most = fmax(most,
                    fabs((double)low->coef[u]) * (double)b + fabs((double)up->coef[u]) * (double)a);
    most = fmax(most, fabs((double)low->c) * (double)b + fabs((double)up->c) * (double)a);
    if (most > 0x1p50)
        return;
    c.a.c = low->c * b + up->c * a;
    for (size_t u = 0; u < TASK_MAX_VARS; u++) {
        c.a.coef[u] = low->coef[u] * b + up->coef[u] * a;
        c.a.vars |= c.a.coef[u] ? UINT32_C(1) << u : 0;
    }
    c.vars = c.a.vars;
    if (!c.vars)
        d->empty |= c.a.c < 0;
    else if (!always(d, &c.a) && d->n < DOMAIN_CONSTRAINTS)
        d->c[d->n++] = c;
}

/* The shadow of the domain without v (Fourier and Motzkin): exact where v has coefficients of one,
 * as index ranges have. What is not an inequality and concerns v is given up. */
static void eliminate(struct domain *d, size_t v) {
    struct affine bound[DOMAIN_CONSTRAINTS + 2];
    size_t n = 0;
    bound[n++] = affine_term(v, 1, -d->var[v].lo);
    bound[n++] = affine_term(v, -1, d->var[v].hi);
    for (size_t i = d->n; i-- > 0;)
        if (d->c[i].vars >> v & 1) {
            if (d->c[i].kind == CONSTRAINT_NOT_NEGATIVE)
                bound[n++] = d->c[i].a;
            drop(d, i);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (bound[i].coef[v] > 0 && bound[k].coef[v] < 0)
                combine(d, &bound[i], &bound[k], v);
    d->present &= ~(UINT32_C(1) << v);
}

/* ---- counting ---- */

struct counter {
    const struct domain *d;
    struct scalar at; /* the point; for tests */
};

static bool passes(struct counter *k, uint32_t open, size_t v) {
    const struct domain *d = k->d;
    for (size_t i = 0; i < d->n; i++) {
        const struct constraint *c = &d->c[i];
        if (c->kind == CONSTRAINT_NOT_NEGATIVE || !(c->vars >> v & 1) || (c->vars & open))
            continue;
        double a = most_of(d, &c->a, k->at.var, 0, UINT32_MAX);
        if (c->kind == CONSTRAINT_DIVISIBLE) {
            if ((int64_t)a % c->modulus != 0)
                return false;
            continue;
        }
        double got = scalar_eval(&k->at, c->test) + a;
        if (!(got >= (double)c->lo && got <= (double)c->hi))
            return false;
    }
    return true;
}

static uint32_t component(const struct domain *d, uint32_t open, uint32_t seed) {
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < d->n; i++)
            if ((d->c[i].vars & seed) && (d->c[i].vars & open & ~seed)) {
                seed |= d->c[i].vars & open;
                grown = true;
            }
    }
    return seed;
}

uint32_t domain_connected(const struct domain *d, uint32_t vars) {
    return component(d, d->present, vars & d->present);
}

static double width(struct range r) {
    return r.lo > r.hi ? 0 : (double)(r.hi - r.lo) + 1;
}

/* Runs over its values rather than taking the interval. */
static bool has_tests(const struct domain *d, size_t v) {
    for (size_t i = 0; i < d->n; i++)
        if (d->c[i].kind != CONSTRAINT_NOT_NEGATIVE && (d->c[i].vars >> v & 1))
            return true;
    return false;
}

/* Steps of the budget that a value of it takes: evaluating a test is worth several. */
static int64_t steps_of(const struct domain *d, size_t v) {
    enum { STEPS_OF_TEST = 4 };
    for (size_t i = 0; i < d->n; i++)
        if (d->c[i].kind == CONSTRAINT_TEST && (d->c[i].vars >> v & 1))
            return STEPS_OF_TEST;
    return 1;
}

/* The variable that holds the group together: with most neighbours, then with fewest values. */
static size_t pivot(const struct domain *d, uint32_t group) {
    size_t best = (size_t)__builtin_ctz(group);
    int most = -1;
    for (uint32_t left = group; left; left &= left - 1) {
        size_t v = (size_t)__builtin_ctz(left);
        uint32_t near = 0;
        for (size_t i = 0; i < d->n; i++)
            if (d->c[i].vars >> v & 1)
                near |= d->c[i].vars & group;
        int degree = __builtin_popcount(near);
        if (degree > most || (degree == most && width(d->var[v]) < width(d->var[best]))) {
            most = degree;
            best = v;
        }
    }
    return best;
}

static double count_open(struct counter *k, uint32_t open);

static double count_group(struct counter *k, uint32_t group) {
    size_t v = pivot(k->d, group);
    uint32_t rest = group & ~(UINT32_C(1) << v);
    struct range r = interval(k->d, k->at.var, group, v);
    bool tests = has_tests(k->d, v);
    double sum = 0;
    if (r.lo > r.hi || (!rest && !tests))
        return width(r);
    int64_t steps = steps_of(k->d, v);
    if (*k->d->budget / steps < r.hi - r.lo) {
        for (sum = width(r); rest; rest &= rest - 1)
            sum *= width(k->d->var[__builtin_ctz(rest)]);
        return sum;
    }
    *k->d->budget -= (r.hi - r.lo + 1) * steps;
    for (k->at.var[v] = r.lo; k->at.var[v] <= r.hi; k->at.var[v]++)
        if (!tests || passes(k, rest, v))
            sum += count_open(k, rest);
    return sum;
}

static double count_open(struct counter *k, uint32_t open) {
    double product = 1;
    while (open && product > 0) {
        uint32_t group = component(k->d, open, open & -open);
        product *= count_group(k, group);
        open &= ~group;
    }
    return product;
}

void domain_keep(struct domain *d, uint32_t vars) {
    simplify(d);
    for (uint32_t left = d->present & ~vars; left && !d->empty; left &= left - 1)
        eliminate(d, (size_t)__builtin_ctz(left));
    if (!d->empty)
        simplify(d);
    d->nknown = 0;
}

double domain_count(struct domain *d, uint32_t vars) {
    double count = 0;
    vars &= d->present;
    for (size_t i = 0; i < d->nknown; i++)
        if (d->known[i].vars == vars)
            return d->known[i].count;
    struct domain *shadow = domain_copy(d);
    domain_keep(shadow, vars);
    if (!shadow->empty) {
        struct counter k = {.d = shadow, .at = {.in = d->in}};
        count = count_open(&k, vars);
    }
    mem_free(shadow);
    if (d->nknown < DOMAIN_KNOWN) {
        d->known[d->nknown].vars = vars;
        d->known[d->nknown++].count = count;
    }
    return count;
}

/* ---- running over points ---- */

struct walk {
    struct counter k;
    domain_visit *f;
    void *ctx;
    size_t order[TASK_MAX_VARS], n;
};

static bool walk_from(struct walk *w, size_t level, uint32_t open) {
    const struct domain *d = w->k.d;
    size_t v = w->order[level];
    struct range r = interval(d, w->k.at.var, open, v);
    bool last = level + 1 == w->n, tests = has_tests(d, v);
    int64_t steps = steps_of(d, v);
    open &= ~(UINT32_C(1) << v);
    if (last && !tests)
        return r.lo > r.hi || (--*d->budget > 0 && w->f(w->ctx, w->k.at.var, v, r));
    for (int64_t at = r.lo; at <= r.hi; at++) {
        w->k.at.var[v] = at;
        if ((*d->budget -= steps) <= 0)
            return false;
        if (tests && !passes(&w->k, open, v))
            continue;
        if (last ? !w->f(w->ctx, w->k.at.var, v, (struct range){at, at})
                 : !walk_from(w, level + 1, open))
            return false;
    }
    return true;
}

bool domain_each(const struct domain *d, uint32_t vars, domain_visit *f, void *ctx) {
    struct domain *own = domain_copy(d);
    simplify(own);
    struct walk w = {.k = {.d = own, .at = {.in = d->in}}, .f = f, .ctx = ctx};
    bool ok = true;
    for (uint32_t left = vars & own->present; left; left &= left - 1) {
        size_t v = (size_t)__builtin_ctz(left), at = w.n++;
        for (; at > 0 && width(own->var[w.order[at - 1]]) > width(own->var[v]); at--)
            w.order[at] = w.order[at - 1];
        w.order[at] = v;
    }
    if (!own->empty)
        ok = w.n ? walk_from(&w, 0, vars & own->present)
                 : f(ctx, w.k.at.var, 0, (struct range){0, 0});
    mem_free(own);
    return ok;
}
