/* Guards of reductions as ranges. Bounds are compared as linear forms over anything that is no sum
 * itself, so that what is found holds at every size and not at one shape alone. */
#include "agent/expert/form/guards.h"
#include "agent/expert/form/form.h"
#include "base/checked.h"
#include "spec/scalar.h"
#include <stdlib.h>
#include <string.h>

enum {
    LINEAR_TERMS = 8,
    LINEAR_MOST = 1 << 30, /* of a coefficient */
    BOUNDS_MOST = 6,       /* of one end of a range */
    PARTS_MOST = 16,       /* of a guard */
    WINDOW_MOST = 64,      /* places of a window */
};

/* ---- linear forms ---- */

struct linear_term {
    int64_t coef;
    const struct expr *e; /* no number and no sum */
};
/* c + Σ coef·e */
struct linear {
    int64_t c;
    struct linear_term term[LINEAR_TERMS];
    size_t n;
};

static bool is_small(int64_t v) {
    return v >= -LINEAR_MOST && v <= LINEAR_MOST;
}

static bool add_term(struct linear *to, const struct expr *e, int64_t coef) {
    for (size_t i = 0; i < to->n; i++) {
        struct linear_term *t = &to->term[i];
        if (!expr_same(t->e, e))
            continue;
        t->coef += coef;
        if (t->coef == 0)
            *t = to->term[--to->n];
        return i == to->n || is_small(t->coef);
    }
    if (to->n == LINEAR_TERMS)
        return false;
    to->term[to->n++] = (struct linear_term){coef, e};
    return true;
}

static bool add_linear(struct linear *to, const struct expr *e, int64_t by) {
    if (!is_small(by))
        return false;
    switch (e->kind) {
    case EXPR_NUMBER:
        to->c += is_small(e->integer) ? by * e->integer : 0;
        return e->integral && is_small(e->integer) && llabs(to->c) < (int64_t)1 << 61;
    case EXPR_NEG:
        return add_linear(to, e->args[0], -by);
    case EXPR_ADD:
    case EXPR_SUB:
        return add_linear(to, e->args[0], by) &&
               add_linear(to, e->args[1], e->kind == EXPR_ADD ? by : -by);
    case EXPR_MUL:
        for (int k = 0; k < 2; k++)
            if (e->args[k]->kind == EXPR_NUMBER && e->args[k]->integral &&
                is_small(e->args[k]->integer))
                return e->args[k]->integer == 0 ||
                       add_linear(to, e->args[1 - k], by * e->args[k]->integer);
        return add_term(to, e, by);
    default:
        return add_term(to, e, by);
    }
}

static bool linear_of(const struct expr *e, struct linear *out) {
    *out = (struct linear){0};
    return e->value_kind == VALUE_INT && add_linear(out, e, 1);
}

static bool linear_add(struct linear *to, const struct linear *x, int64_t by) {
    bool ok = is_small(by);
    for (size_t i = 0; i < x->n && ok; i++)
        ok = is_small(by * x->term[i].coef) && add_term(to, x->term[i].e, by * x->term[i].coef);
    return ok && mul_i64(by, x->c, &by) && add_i64(to->c, by, &to->c);
}

/* Takes the term of the variable out. False: there is none, or the variable is elsewhere, too. */
static bool take_variable(struct linear *x, size_t var, int64_t *coef) {
    *coef = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (!expr_is_variable(x->term[i].e, var)) {
            if (expr_vars(x->term[i].e) >> var & 1)
                return false;
            continue;
        }
        *coef = x->term[i].coef;
        x->term[i--] = x->term[--x->n];
    }
    return *coef != 0;
}

static int rank_of(const struct expr *e) {
    return e->kind == EXPR_INDEX ? 0 : e->kind == EXPR_DIM ? 1 : 2;
}

static bool comes_before(const struct linear_term *a, const struct linear_term *b) {
    int x = rank_of(a->e), y = rank_of(b->e);
    return (a->coef > 0) != (b->coef > 0) ? a->coef > 0
           : x != y                       ? x < y
                                          : x < 2 && a->e->ref < b->e->ref;
}

/* The one way in which a linear form is written: variables, sizes, what else there is, a number. */
static struct expr *expr_of(struct linear x, struct arena *a) {
    struct expr *e = NULL;
    for (size_t i = 1; i < x.n; i++)
        for (size_t k = i; k > 0 && comes_before(&x.term[k], &x.term[k - 1]); k--) {
            struct linear_term t = x.term[k];
            x.term[k] = x.term[k - 1];
            x.term[k - 1] = t;
        }
    if (x.n == 0 || x.term[0].coef < 0)
        e = expr_number(a, x.c);
    for (size_t i = 0; i < x.n; i++) {
        int64_t coef = x.term[i].coef;
        struct expr *t = expr_times(a, expr_number(a, llabs(coef)), (struct expr *)x.term[i].e);
        e = e ? expr_pair(a, coef < 0 ? EXPR_SUB : EXPR_ADD, e, t) : t;
    }
    if (x.n && x.term[0].coef > 0 && x.c)
        e = expr_pair(a, x.c < 0 ? EXPR_SUB : EXPR_ADD, e, expr_number(a, llabs(x.c)));
    return e;
}

/* ---- what is known of variables, at every size ---- */

struct ranger {
    const struct inst *in;
    const struct statement *s;
    struct arena *a;
    const struct reduce_var *var[TASK_MAX_VARS]; /* of the reductions around */
};

/* The size is an extent, or one that a user sets: at least 1. */
static bool is_extent(const struct task *t, size_t dim) {
    if (!t->dims[dim].derived)
        return true;
    for (size_t i = 0; i < t->ntensors; i++)
        for (size_t k = 0; k < t->tensors[i].rank; k++)
            if (t->tensors[i].extent[k]->kind == EXPR_DIM && t->tensors[i].extent[k]->ref == dim)
                return true;
    return false;
}

/* The smallest (largest) value of the variable, over sizes and variables further out. */
static bool end_of(const struct ranger *r, size_t var, bool least, struct linear *out) {
    const struct reduce_var *v = r->var[var];
    const struct expr *e = v       ? (least ? v->lo : v->hi)
                           : least ? expr_number(r->a, 0)
                                   : statement_extent(r->in->task, r->s, var);
    if (!e || !linear_of(e, out) || expr_vars(e) >> var)
        return false;
    out->c -= !least;
    return true;
}

/* The form is never negative, whatever the sizes are. */
static bool is_natural(const struct ranger *r, struct linear x) {
    for (size_t var = TASK_MAX_VARS; var-- > 0;) {
        struct linear end;
        int64_t coef;
        struct linear without = x;
        if (!take_variable(&without, var, &coef))
            continue;
        if (!end_of(r, var, coef > 0, &end) || !linear_add(&without, &end, coef))
            return false;
        x = without;
    }
    int64_t least = x.c;
    for (size_t i = 0; i < x.n; i++) {
        const struct linear_term *t = &x.term[i];
        if (t->e->kind != EXPR_DIM || t->coef < 0 || !is_extent(r->in->task, t->e->ref))
            return false;
        least += t->coef;
    }
    return least >= 0;
}

/* a <= b, at every size. */
static bool at_most(const struct ranger *r, const struct expr *a, const struct expr *b) {
    struct linear x, y;
    return linear_of(a, &x) && linear_of(b, &y) && linear_add(&y, &x, -1) && is_natural(r, y);
}

/* ---- the ends of a range ---- */

/* All of lo[i] <= v < hi[k]. */
struct ends {
    const struct expr *lo[BOUNDS_MOST], *hi[BOUNDS_MOST];
    size_t nlo, nhi;
};

static struct expr *in_order(const struct expr *e, struct arena *a) {
    struct linear x;
    return expr_vars(e) && linear_of(e, &x) ? expr_of(x, a) : (struct expr *)e;
}

/* Adds a bound to one end; what others imply is left out. */
static bool add_end(const struct ranger *r, const struct expr **ends, size_t *n,
                    const struct expr *e, bool lower) {
    if (e->kind == EXPR_CALL && e->function == (lower ? FUNCTION_MAXIMUM : FUNCTION_MINIMUM))
        return add_end(r, ends, n, e->args[0], lower) && add_end(r, ends, n, e->args[1], lower);
    for (size_t i = 0; i < *n; i++)
        if (lower ? at_most(r, e, ends[i]) : at_most(r, ends[i], e))
            return true;
    for (size_t i = *n; i-- > 0;)
        if (lower ? at_most(r, ends[i], e) : at_most(r, e, ends[i])) {
            memmove(&ends[i], &ends[i + 1], (*n - i - 1) * sizeof *ends);
            --*n;
        }
    if (*n == BOUNDS_MOST)
        return false;
    ends[(*n)++] = in_order(e, r->a);
    return true;
}

/* Sizes first, then what depends on indices: in which order they were found says nothing. */
static int end_rank(const struct expr *e) {
    return expr_vars(e) != 0;
}

static struct expr *joined(const struct ranger *r, const struct expr *const *ends, size_t n,
                           bool lower) {
    struct expr *all = NULL;
    for (int rank = 0; rank < 2; rank++)
        for (size_t i = 0; i < n; i++) {
            if (end_rank(ends[i]) != rank)
                continue;
            struct expr *e = (struct expr *)ends[i];
            if (all) {
                struct expr *two = expr_pair(r->a, EXPR_CALL, all, e);
                two->function = lower ? FUNCTION_MAXIMUM : FUNCTION_MINIMUM;
                e = two;
            }
            all = e;
        }
    return all;
}

/* ---- guards ---- */

struct parts {
    const struct expr *e[PARTS_MOST];
    size_t n;
};

static enum expr_kind opposite(enum expr_kind k) {
    return k == EXPR_LT   ? EXPR_GE
           : k == EXPR_GE ? EXPR_LT
           : k == EXPR_GT ? EXPR_LE
           : k == EXPR_LE ? EXPR_GT
           : k == EXPR_EQ ? EXPR_NE
                          : EXPR_EQ;
}

static bool compares_integers(const struct expr *e) {
    return e->kind >= EXPR_EQ && e->kind <= EXPR_GE && e->args[0]->value_kind == VALUE_INT &&
           e->args[1]->value_kind == VALUE_INT;
}

static struct expr *negation(const struct expr *e, struct arena *a) {
    if (compares_integers(e))
        return expr_pair(a, opposite(e->kind), e->args[0], e->args[1]);
    struct expr *no = expr_pair(a, EXPR_NOT, e, e);
    no->nargs = 1;
    no->value_kind = VALUE_BOOL;
    return no;
}

/* What must all hold for the condition to be `truth`. */
static bool add_parts(struct parts *to, const struct expr *e, bool truth, struct arena *a) {
    if (e->kind == EXPR_NOT)
        return add_parts(to, e->args[0], !truth, a);
    if (e->kind == (truth ? EXPR_AND : EXPR_OR))
        return add_parts(to, e->args[0], truth, a) && add_parts(to, e->args[1], truth, a);
    if (to->n == PARTS_MOST)
        return false;
    to->e[to->n++] = truth ? e : negation(e, a);
    return true;
}

static struct expr *all_of(const struct parts *p, struct arena *a) {
    struct expr *all = NULL;
    for (size_t i = 0; i < p->n; i++)
        all = all ? expr_pair(a, EXPR_AND, all, p->e[i]) : (struct expr *)p->e[i];
    return all;
}

static const struct expr *divided(struct linear x, int64_t by, struct arena *a) {
    struct expr *e = expr_of(x, a);
    return by == 1 ? e : expr_pair(a, EXPR_FLOORDIV, e, expr_number(a, by));
}

/* The part says v < out, or out <= v; `*lower`: which. */
static bool bound_of(const struct ranger *r, const struct expr *part, size_t var,
                     const struct expr **out, bool *lower) {
    struct linear x, y;
    int64_t coef;
    if (part->kind < EXPR_LT || part->kind > EXPR_GE || !compares_integers(part) ||
        expr_has(part, EXPR_REDUCE))
        return false;
    /* As x >= 0. */
    bool less = part->kind == EXPR_LT || part->kind == EXPR_LE;
    if (!linear_of(part->args[less ? 1 : 0], &x) || !linear_of(part->args[less ? 0 : 1], &y) ||
        !linear_add(&x, &y, -1))
        return false;
    x.c -= part->kind == EXPR_LT || part->kind == EXPR_GT;
    if (!take_variable(&x, var, &coef))
        return false;
    *lower = coef > 0;
    if (coef > 0) { /* coef·v + x >= 0: v >= -x over coef, rounded up */
        struct linear minus = {0};
        if (!linear_add(&minus, &x, -1))
            return false;
        minus.c += coef - 1;
        *out = divided(minus, coef, r->a);
    } else { /* x >= -coef·v: v < x // -coef + 1 */
        struct linear one = x;
        one.c += -coef; /* (x + m) // m is x // m + 1 */
        *out = divided(one, -coef, r->a);
    }
    return true;
}

/* ---- what a variable is used for ---- */

/* Does it index a tensor by itself (`alone`), or beside other variables? */
static bool indexes(const struct expr *e, size_t var, bool alone) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        uint32_t vars = expr_vars(e->args[k]);
        if ((vars >> var & 1) && (expr_is_variable(e->args[k], var) == alone))
            return true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (indexes(expr_part(e, i), var, alone))
            return true;
    return false;
}

static bool is_place_in_window(const struct expr *body, size_t var) {
    return indexes(body, var, false) && !indexes(body, var, true);
}

/* Some tensor of a product's results is read. */
static bool reads_products(const struct task *t, const struct expr *e) {
    if (e->kind == EXPR_READ)
        for (size_t i = 0; i < t->nstatements; i++)
            if (t->statements[i].tensor == e->ref && form_is_product(&t->statements[i]))
                return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (reads_products(t, expr_part(e, i)))
            return true;
    return false;
}

/* ---- reductions ---- */

static void add_guard(struct parts *to, struct arena *a, enum expr_kind kind, const struct expr *x,
                      const struct expr *y) {
    BUG_IF(to->n == PARTS_MOST);
    to->e[to->n++] = expr_pair(a, kind, x, y);
}

/* The ends that depend on indices become guards, where a size stays on either side. */
static void ends_to_guards(const struct ranger *r, struct ends *e, size_t var, struct parts *p) {
    size_t sizes[2] = {0};
    for (size_t i = 0; i < e->nlo; i++)
        sizes[0] += end_rank(e->lo[i]) == 0;
    for (size_t i = 0; i < e->nhi; i++)
        sizes[1] += end_rank(e->hi[i]) == 0;
    if (!sizes[0] || !sizes[1] || p->n + e->nlo + e->nhi > PARTS_MOST)
        return;
    for (int upper = 0; upper < 2; upper++) {
        const struct expr **ends = upper ? e->hi : e->lo;
        size_t *n = upper ? &e->nhi : &e->nlo, kept = 0;
        for (size_t i = 0; i < *n; i++)
            if (end_rank(ends[i]) == 0)
                ends[kept++] = ends[i];
            else if (upper)
                add_guard(p, r->a, EXPR_LT, expr_variable(r->a, var), ends[i]);
            else
                add_guard(p, r->a, EXPR_GE, expr_variable(r->a, var), ends[i]);
        *n = kept;
    }
}

/* The parts of the guard that are bounds of the variable move to the ends. */
static void guards_to_ends(const struct ranger *r, struct parts *p, size_t var, struct ends *e) {
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct expr *bound;
        bool lower;
        bool bounds = bound_of(r, p->e[i], var, &bound, &lower);
        if (bounds && expr_reads(bound))
            p->e[kept++] =
                expr_pair(r->a, lower ? EXPR_GE : EXPR_LT, expr_variable(r->a, var), bound);
        else if (!bounds ||
                 !add_end(r, lower ? e->lo : e->hi, lower ? &e->nlo : &e->nhi, bound, lower))
            p->e[kept++] = p->e[i];
    }
    p->n = kept;
}

/* Two ends that are a fixed small number of places apart and move along with an index. */
static bool find_window(const struct ranger *r, const struct ends *e, const struct expr **from,
                        const struct expr **size) {
    for (size_t i = 0; i < e->nlo; i++)
        for (size_t k = 0; k < e->nhi; k++) {
            struct linear lo, hi;
            int64_t n;
            if (end_rank(e->lo[i]) != 1 || end_rank(e->hi[k]) != 1 || !linear_of(e->lo[i], &lo) ||
                !linear_of(e->hi[k], &hi) || !linear_add(&hi, &lo, -1))
                continue;
            *from = e->lo[i];
            *size = expr_of(hi, r->a);
            if (!expr_vars(*size) && expr_eval_dims(*size, r->in->dims, &n) && n >= 1 &&
                n <= WINDOW_MOST)
                return true;
        }
    return false;
}

/* Only sums, differences and products with numbers of indices: such a place can be moved. */
static bool is_shiftable(const struct expr *e, size_t var) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        struct linear x;
        int64_t coef;
        if ((expr_vars(e->args[k]) >> var & 1) &&
            (!linear_of(e->args[k], &x) || !take_variable(&x, var, &coef) || coef != 1 || x.n))
            return false;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!is_shiftable(expr_part(e, i), var))
            return false;
    return true;
}

/* Index expressions in their one order, after a variable was replaced. */
static void order_indices(struct expr *e, struct arena *a) {
    for (size_t i = 0; i < e->nargs; i++)
        if (e->kind == EXPR_READ)
            e->args[i] = in_order(e->args[i], a);
        else
            order_indices(e->args[i], a);
}

static struct expr *moved(const struct expr *e, size_t var, const struct expr *to,
                          struct arena *a) {
    struct expr *map[TASK_MAX_VARS] = {NULL};
    map[var] = (struct expr *)to;
    struct expr *out = expr_replace(e, map, a);
    order_indices(out, a);
    return out;
}

/* An index of a tensor is made of the variable and others. */
static bool stands_beside(const struct expr *e, size_t var) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        uint32_t vars = expr_vars(e->args[k]);
        if ((vars >> var & 1) && vars != UINT32_C(1) << var)
            return true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (stands_beside(expr_part(e, i), var))
            return true;
    return false;
}

/* A place in a window, x[p + r] with -3 <= r <= 3, is counted from 0 on where its range begins at
 * a number or a size. */
static void begin_at_zero(const struct ranger *r, struct reduce *to, size_t i, struct parts *p,
                          struct expr **body) {
    struct reduce_var *v = &to->vars[i];
    struct linear lo, length;
    if (expr_is_number(v->lo, 0) || expr_vars(v->lo) || expr_reads(v->lo) || expr_vars(v->hi) ||
        expr_reads(v->hi) || to->op >= REDUCTION_ARGMAX || expr_has(*body, EXPR_REDUCE) ||
        !stands_beside(*body, v->var) || !linear_of(v->lo, &lo) || !linear_of(v->hi, &length) ||
        !linear_add(&length, &lo, -1) || !add_term(&lo, expr_variable(r->a, v->var), 1))
        return;
    for (size_t k = 0; k < p->n; k++)
        if (expr_has(p->e[k], EXPR_REDUCE))
            return;
    const struct expr *at = expr_of(lo, r->a);
    for (size_t k = 0; k < p->n; k++)
        p->e[k] = moved(p->e[k], v->var, at, r->a);
    for (size_t k = i + 1; k < to->nvars; k++) {
        to->vars[k].lo = moved(to->vars[k].lo, v->var, at, r->a);
        to->vars[k].hi = moved(to->vars[k].hi, v->var, at, r->a);
    }
    v->lo = expr_number(r->a, 0);
    v->hi = expr_of(length, r->a);
    v->inferred = false;
    *body = moved(*body, v->var, at, r->a);
}

/* Whether all indices that hold the variable beside others count down with it, some do. */
static bool runs_backward(const struct expr *e, size_t var, bool *any) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        uint32_t vars = expr_vars(e->args[k]);
        struct linear x;
        int64_t coef;
        if (!(vars >> var & 1) || vars == UINT32_C(1) << var)
            continue;
        if (!linear_of(e->args[k], &x) || !take_variable(&x, var, &coef) || coef > 0)
            return false;
        *any = true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!runs_backward(expr_part(e, i), var, any))
            return false;
    return true;
}

/* A filter h[k]*x[t - k] over r < K is counted from its other end on, h[K-1-r]*x[t + r - (K-1)], so
 * that it is a window like any other. A product of matrices stays as it is. */
static void turn_forward(const struct ranger *r, struct reduce *to, size_t i, struct parts *p,
                         struct expr **body) {
    struct reduce_var *v = &to->vars[i];
    struct linear last;
    bool any = false;
    if (!expr_is_number(v->lo, 0) || expr_vars(v->hi) || expr_reads(v->hi) || p->n ||
        to->op >= REDUCTION_ARGMAX || expr_has(*body, EXPR_REDUCE) || form_is_product(r->s) ||
        !runs_backward(*body, v->var, &any) || !any || !linear_of(v->hi, &last) ||
        !add_term(&last, expr_variable(r->a, v->var), -1))
        return;
    for (size_t k = i + 1; k < to->nvars; k++)
        if ((expr_vars(to->vars[k].lo) | expr_vars(to->vars[k].hi)) >> v->var & 1)
            return;
    last.c -= 1;
    *body = moved(*body, v->var, expr_of(last, r->a), r->a);
    v->inferred = false;
}

/* lo[…] <= k < hi[…] as a window from `from` on: r < size, and guards for what cuts it. */
static void make_window(const struct ranger *r, struct ends *e, const struct expr *from,
                        const struct expr *size, size_t var, struct parts *p, struct expr **body) {
    struct linear x;
    if (p->n + e->nlo + e->nhi > PARTS_MOST || !linear_of(from, &x) ||
        !add_term(&x, expr_variable(r->a, var), 1))
        return;
    const struct expr *at = expr_of(x, r->a);
    for (size_t i = 0; i < p->n; i++)
        p->e[i] = moved(p->e[i], var, at, r->a);
    struct linear length;
    for (size_t i = 0; i < e->nlo; i++)
        if (e->lo[i] != from)
            add_guard(p, r->a, EXPR_GE, at, e->lo[i]);
    for (size_t i = 0; i < e->nhi; i++) {
        struct linear hi;
        bool same = linear_of(e->hi[i], &hi) && linear_of(from, &length) &&
                    linear_add(&hi, &length, -1) && expr_same(expr_of(hi, r->a), size);
        if (!same)
            add_guard(p, r->a, EXPR_LT, at, e->hi[i]);
    }
    e->lo[0] = expr_number(r->a, 0);
    e->hi[0] = size;
    e->nlo = e->nhi = 1;
    *body = moved(*body, var, at, r->a);
}

static struct expr *ranged(struct ranger *r, const struct expr *e);

size_t form_ends(const struct expr *guard, size_t var, bool upper, const struct expr **out,
                 size_t most) {
    if (guard->kind == EXPR_AND) {
        size_t n = form_ends(guard->args[0], var, upper, out, most);
        return n + form_ends(guard->args[1], var, upper, out + n, most - n);
    }
    if (most == 0 || guard->kind != (upper ? EXPR_LT : EXPR_GE) ||
        !expr_is_variable(guard->args[0], var) || expr_vars(guard->args[1]) >> var & 1)
        return 0;
    *out = guard->args[1];
    return 1;
}

const struct expr *form_own_extent(const struct task *t, const struct expr *e, size_t var) {
    const struct expr *found = NULL;
    if (e->kind == EXPR_PAD || e->kind == EXPR_IF || e->kind == EXPR_REDUCE)
        return NULL;
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++)
        if (expr_is_variable(e->args[k], var))
            return t->tensors[e->ref].extent[k];
    for (size_t i = 0; i < e->nargs && !found; i++)
        found = form_own_extent(t, e->args[i], var);
    return found;
}

/* One of several variables: its range becomes that of the tensor that it indexes. Terms are where
 * the tensor is, so none is lost. */
static void widen(const struct ranger *r, struct reduce_var *v, const struct expr *body,
                  struct parts *p) {
    struct ends e = {.nlo = 0};
    const struct expr *extent = form_own_extent(r->in->task, body, v->var);
    if (!(expr_vars(v->lo) || expr_vars(v->hi)) || !extent ||
        !add_end(r, e.lo, &e.nlo, v->lo, true) || !add_end(r, e.hi, &e.nhi, v->hi, false) ||
        p->n + e.nlo + e.nhi > PARTS_MOST)
        return;
    for (size_t i = 0; i < e.nlo; i++)
        if (!expr_is_number(e.lo[i], 0))
            add_guard(p, r->a, EXPR_GE, expr_variable(r->a, v->var), e.lo[i]);
    for (size_t i = 0; i < e.nhi; i++)
        if (!expr_same(e.hi[i], extent))
            add_guard(p, r->a, EXPR_LT, expr_variable(r->a, v->var), e.hi[i]);
    v->lo = expr_number(r->a, 0);
    v->hi = (struct expr *)extent;
    v->inferred = false;
}

/* Of a tensor that is read at `var` another index moves with what moves the window: each result has
 * a row of its own there, and windows of neighbours share nothing. */
static bool reads_band(const struct expr *e, size_t var, uint32_t moving) {
    bool at_var = false, beside = false;
    for (size_t i = 0; e->kind == EXPR_READ && i < e->nargs; i++) {
        bool here = expr_vars(e->args[i]) >> var & 1;
        at_var |= here;
        beside |= !here && (expr_vars(e->args[i]) & moving);
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (reads_band(expr_part(e, i), var, moving))
            return true;
    return at_var && beside;
}

/* The only variable. */
static void change_range(const struct ranger *r, struct reduce *to, struct parts *p,
                         struct expr **body) {
    struct reduce_var *v = &to->vars[0];
    const struct expr *from, *size;
    struct ends e = {.nlo = 0};
    if (!add_end(r, e.lo, &e.nlo, v->lo, true) || !add_end(r, e.hi, &e.nhi, v->hi, false))
        return;
    if (is_place_in_window(*body, v->var)) {
        ends_to_guards(r, &e, v->var, p);
    } else {
        guards_to_ends(r, p, v->var, &e);
        if (to->op < REDUCTION_ARGMAX && find_window(r, &e, &from, &size) &&
            is_shiftable(*body, v->var) && !expr_has(*body, EXPR_REDUCE) &&
            !reads_band(*body, v->var, expr_vars(from)) && !reads_products(r->in->task, *body))
            make_window(r, &e, from, size, v->var, p, body);
    }
    v->lo = joined(r, e.lo, e.nlo, true);
    v->hi = joined(r, e.hi, e.nhi, false);
    v->inferred = false;
}

static struct expr *ranged_reduce(struct ranger *r, const struct expr *e) {
    struct arena *a = r->a;
    struct reduce *to = arena_new_of(a, struct reduce);
    struct expr *out = arena_new_of(a, struct expr);
    struct parts parts = {.n = 0};
    *to = *e->reduce;
    *out = *e;
    to->vars = arena_array(a, struct reduce_var, to->nvars);
    memcpy(to->vars, e->reduce->vars, to->nvars * sizeof *to->vars);
    struct expr *body = e->args[0];
    bool known = !to->guard || add_parts(&parts, to->guard, true, a);
    for (size_t i = 0; i < to->nvars && known; i++) {
        begin_at_zero(r, to, i, &parts, &body);
        turn_forward(r, to, i, &parts, &body);
    }
    if (known && to->nvars == 1)
        change_range(r, to, &parts, &body);
    for (size_t i = 0; i < to->nvars; i++) {
        if (known && to->nvars > 1)
            widen(r, &to->vars[i], body, &parts);
        r->var[to->vars[i].var] = &to->vars[i];
    }
    if (known)
        to->guard = all_of(&parts, a);
    out->reduce = to;
    out->args = arena_array(a, struct expr *, 1);
    out->args[0] = ranged(r, body);
    return out;
}

static struct expr *ranged(struct ranger *r, const struct expr *e) {
    if (!expr_has(e, EXPR_REDUCE))
        return (struct expr *)e;
    if (e->kind == EXPR_REDUCE)
        return ranged_reduce(r, e);
    struct expr *to = arena_new_of(r->a, struct expr);
    *to = *e;
    to->args = arena_array(r->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = ranged(r, e->args[i]);
    return to;
}

struct expr *form_ranged(const struct inst *in, const struct statement *s, struct arena *a) {
    struct ranger r = {.in = in, .s = s, .a = a};
    return ranged(&r, s->body);
}

/* ---- terms that a sum leaves out ---- */

static bool is_zero(const struct expr *e) {
    return e->kind == EXPR_NUMBER && e->number == 0;
}

/* The factor without the conditions under which it is not 0, which become parts of the guard. */
static struct expr *bare_factor(const struct expr *e, struct parts *p, struct arena *a) {
    while (e->kind == EXPR_IF && (is_zero(e->args[2]) || is_zero(e->args[1]))) {
        bool then = is_zero(e->args[2]);
        struct parts more = *p;
        if (expr_has(e->args[0], EXPR_REDUCE) || !add_parts(&more, e->args[0], then, a))
            break;
        *p = more;
        e = e->args[then ? 1 : 2];
    }
    if (e->kind != EXPR_MUL)
        return (struct expr *)e;
    struct expr *to = arena_new_of(a, struct expr);
    *to = *e;
    to->args = arena_array(a, struct expr *, 2);
    for (int i = 0; i < 2; i++)
        to->args[i] = bare_factor(e->args[i], p, a);
    return to;
}

/* The part says that x is at least 0: x as a linear form. */
static bool natural_of(const struct expr *part, struct linear *x) {
    struct linear y;
    bool less = part->kind == EXPR_LT || part->kind == EXPR_LE;
    if (!less && part->kind != EXPR_GT && part->kind != EXPR_GE)
        return false;
    if (!linear_of(part->args[less], x) || !linear_of(part->args[!less], &y) ||
        !linear_add(x, &y, -1))
        return false;
    x->c -= part->kind == EXPR_LT || part->kind == EXPR_GT;
    return true;
}

static bool is_nothing(const struct linear *x) {
    return x->n == 0 && x->c == 0;
}

/* The part keeps an index of the read inside its tensor. */
static bool keeps_inside(const struct task *t, const struct expr *read, const struct expr *part) {
    for (size_t d = 0; d < read->nargs; d++) {
        struct linear says, index, extent;
        if (read->args[d]->kind == EXPR_INDEX || !natural_of(part, &says) ||
            !linear_of(read->args[d], &index) ||
            !linear_of(t->tensors[read->ref].extent[d], &extent))
            continue;
        struct linear low = says, high = says;
        if (linear_add(&low, &index, -1) && is_nothing(&low))
            return true;
        extent.c -= 1;
        if (linear_add(&high, &extent, -1) && linear_add(&high, &index, 1) && is_nothing(&high))
            return true;
    }
    return false;
}

/* Reads among the factors become pads where parts of the guard keep them inside; `used`: those. */
static struct expr *padded_factor(const struct task *t, struct expr *e, const struct parts *p,
                                  bool *used, struct arena *a) {
    if (e->kind == EXPR_MUL)
        for (int i = 0; i < 2; i++)
            e->args[i] = padded_factor(t, e->args[i], p, used, a);
    bool pads = false;
    for (size_t i = 0; e->kind == EXPR_READ && e->value_kind == VALUE_REAL && i < p->n; i++) {
        bool keeps = keeps_inside(t, e, p->e[i]);
        used[i] |= keeps;
        pads |= keeps;
    }
    if (!pads)
        return e;
    struct expr *to = arena_new_of(a, struct expr);
    *to = *e;
    to->kind = EXPR_PAD;
    to->nargs = 2;
    to->args = arena_array(a, struct expr *, 2);
    to->args[0] = e;
    to->args[1] = arena_new_of(a, struct expr);
    *to->args[1] = (struct expr){.kind = EXPR_NUMBER, .value_kind = VALUE_REAL, .integral = true};
    return to;
}

static struct expr *padded_sum(const struct inst *in, const struct expr *e, struct arena *a) {
    struct parts p = {.n = 0}, rest = {.n = 0};
    bool used[PARTS_MOST] = {false};
    struct reduce *to = arena_new_of(a, struct reduce);
    struct expr *out = arena_new_of(a, struct expr);
    *to = *e->reduce;
    *out = *e;
    if (to->guard && !add_parts(&p, to->guard, true, a))
        return out;
    struct expr *body = bare_factor(e->args[0], &p, a);
    if (body->kind != EXPR_MUL)
        return out;
    body = padded_factor(in->task, body, &p, used, a);
    for (size_t i = 0; i < p.n; i++)
        if (!used[i])
            rest.e[rest.n++] = p.e[i];
    to->guard = all_of(&rest, a);
    out->reduce = to;
    out->args = arena_array(a, struct expr *, 1);
    out->args[0] = body;
    return out;
}

struct expr *form_padded(const struct inst *in, const struct expr *e, struct arena *a) {
    bool sum = e->kind == EXPR_REDUCE && e->reduce->op == REDUCTION_SUM &&
               e->value_kind == VALUE_REAL && !expr_has(e->args[0], EXPR_REDUCE);
    return sum ? padded_sum(in, e, a) : (struct expr *)e;
}

/* ---- a transposed convolution that is written phase by phase ---- */

/* The index is (e % stride) + stride·j: e and the stride. */
static bool is_phase(const struct expr *index, size_t var, const struct expr **e, int64_t *stride) {
    struct linear x;
    int64_t coef;
    if (!linear_of(index, &x) || !take_variable(&x, var, &coef) || x.c || x.n != 1 ||
        x.term[0].coef != 1 || x.term[0].e->kind != EXPR_MOD ||
        !expr_is_number(x.term[0].e->args[1], coef) || coef < 2)
        return false;
    *e = x.term[0].e->args[0];
    *stride = coef;
    return true;
}

/* The index is e // stride - j. */
static bool is_place_of_phase(const struct expr *index, size_t var, const struct expr *e,
                              int64_t stride) {
    struct linear x;
    int64_t coef;
    return linear_of(index, &x) && take_variable(&x, var, &coef) && coef == -1 && !x.c &&
           x.n == 1 && x.term[0].coef == 1 && x.term[0].e->kind == EXPR_FLOORDIV &&
           expr_same(x.term[0].e->args[0], e) && expr_is_number(x.term[0].e->args[1], stride);
}

static bool find_phase(const struct expr *body, size_t var, const struct expr **e,
                       int64_t *stride) {
    for (size_t k = 0; body->kind == EXPR_READ && k < body->nargs; k++)
        if (is_phase(body->args[k], var, e, stride))
            return true;
    for (size_t i = 0; i < body->nargs; i++)
        if (find_phase(body->args[i], var, e, stride))
            return true;
    return false;
}

/* A copy in which the two kinds of indices are of tap `var`; `*other`: the variable is elsewhere.
 */
static struct expr *by_taps(const struct expr *body, size_t var, const struct expr *e,
                            int64_t stride, bool *other, struct arena *a) {
    struct expr *to = arena_new_of(a, struct expr);
    *to = *body;
    *other |= expr_is_variable(body, var);
    to->args = arena_array(a, struct expr *, body->nargs ? body->nargs : 1);
    for (size_t i = 0; i < body->nargs; i++) {
        const struct expr *same;
        int64_t by;
        bool read = body->kind == EXPR_READ;
        if (read && is_phase(body->args[i], var, &same, &by) && by == stride && expr_same(same, e))
            to->args[i] = expr_variable(a, var);
        else if (read && is_place_of_phase(body->args[i], var, e, stride))
            to->args[i] =
                expr_pair(a, EXPR_FLOORDIV, expr_pair(a, EXPR_SUB, e, expr_variable(a, var)),
                          expr_number(a, stride));
        else
            to->args[i] = by_taps(body->args[i], var, e, stride, other, a);
    }
    return to;
}

struct expr *form_tapped(const struct expr *e, struct arena *a) {
    const struct reduce *r = e->kind == EXPR_REDUCE ? e->reduce : NULL;
    if (!r || r->op != REDUCTION_SUM || expr_has(e->args[0], EXPR_REDUCE) || r->guard)
        return (struct expr *)e;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct expr *of;
        int64_t stride;
        bool other = false;
        const struct reduce_var *v = &r->vars[i];
        if (!expr_is_number(v->lo, 0) || v->hi->kind != EXPR_NUMBER ||
            !find_phase(e->args[0], v->var, &of, &stride) || expr_vars(of) >> v->var & 1)
            continue;
        struct expr *body = by_taps(e->args[0], v->var, of, stride, &other, a);
        if (other)
            continue;
        struct reduce *to = arena_new_of(a, struct reduce);
        struct expr *out = arena_new_of(a, struct expr);
        *to = *r;
        *out = *e;
        to->vars = arena_array(a, struct reduce_var, r->nvars);
        memcpy(to->vars, r->vars, r->nvars * sizeof *r->vars);
        to->vars[i].hi = expr_number(a, v->hi->integer * stride);
        to->vars[i].inferred = false;
        struct expr *beyond = expr_pair(a, EXPR_SUB, of, expr_variable(a, v->var));
        to->guard = expr_pair(a, EXPR_EQ, expr_pair(a, EXPR_MOD, beyond, expr_number(a, stride)),
                              expr_number(a, 0));
        out->reduce = to;
        out->args = arena_array(a, struct expr *, 1);
        out->args[0] = body;
        return out;
    }
    return (struct expr *)e;
}
