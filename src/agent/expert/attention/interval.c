/* Conditions on keys as an interval of them: what causal masks, windows, blocks and lengths have in
 * common. */
#include "agent/expert/attention/attention.h"
#include "spec/scalar.h"
#include <string.h>

/* ---- sums ---- */

bool terms_of(const struct expr *e, bool minus, struct terms *out) {
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB)
        return terms_of(e->args[0], minus, out) &&
               terms_of(e->args[1], minus != (e->kind == EXPR_SUB), out);
    if (e->kind == EXPR_NEG)
        return terms_of(e->args[0], !minus, out);
    if (out->n == TERMS_MOST)
        return false;
    out->e[out->n] = e;
    out->minus[out->n++] = minus;
    return true;
}

static struct expr *pair_of(struct arena *a, enum expr_kind kind, const struct expr *x,
                            const struct expr *y) {
    struct expr *e = expr_pair(a, kind, x, y);
    if (x->value_kind == VALUE_REAL || y->value_kind == VALUE_REAL)
        e->value_kind = VALUE_REAL;
    return e;
}

/* Numbers together, the first term that is added in front. */
struct expr *terms_sum(const struct terms *t, struct arena *a) {
    struct expr *sum = NULL;
    int64_t number = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < t->n; i++) {
            if (t->e[i]->kind == EXPR_NUMBER && t->e[i]->integral) {
                number += pass ? 0 : t->minus[i] ? -t->e[i]->integer : t->e[i]->integer;
                continue;
            }
            if (t->minus[i] != (pass == 1))
                continue;
            if (!sum)
                sum = pass ? pair_of(a, EXPR_SUB, expr_number(a, 0), t->e[i])
                           : (struct expr *)t->e[i];
            else
                sum = pair_of(a, pass ? EXPR_SUB : EXPR_ADD, sum, t->e[i]);
        }
    if (!sum)
        return expr_number(a, number);
    if (number)
        sum = pair_of(a, number < 0 ? EXPR_SUB : EXPR_ADD, sum,
                      expr_number(a, number < 0 ? -number : number));
    return sum;
}

/* ---- bounds ---- */

bool interval_add_low(struct keys *v, const struct expr *e) {
    if (e->kind == EXPR_CALL && e->function == FUNCTION_MAXIMUM)
        return interval_add_low(v, e->args[0]) && interval_add_low(v, e->args[1]);
    for (size_t i = 0; i < v->nlow; i++)
        if (expr_same(v->low[i], e))
            return true;
    if (expr_is_number(e, 0))
        return true;
    if (v->nlow == ATTENTION_BOUNDS)
        return false;
    v->low[v->nlow++] = e;
    return true;
}

bool interval_add_high(struct keys *v, const struct expr *e) {
    if (e->kind == EXPR_CALL && e->function == FUNCTION_MINIMUM)
        return interval_add_high(v, e->args[0]) && interval_add_high(v, e->args[1]);
    for (size_t i = 0; i < v->nhigh; i++)
        if (expr_same(v->high[i], e))
            return true;
    if (v->nhigh == ATTENTION_BOUNDS)
        return false;
    v->high[v->nhigh++] = e;
    return true;
}

static bool contains(const struct expr *const *list, size_t n, const struct expr *e) {
    for (size_t i = 0; i < n; i++)
        if (expr_same(list[i], e))
            return true;
    return false;
}

bool interval_same(const struct keys *a, const struct keys *b) {
    if (a->nlow != b->nlow || a->nhigh != b->nhigh || !a->guard != !b->guard ||
        (a->guard && !expr_same(a->guard, b->guard)))
        return false;
    for (size_t i = 0; i < a->nlow; i++)
        if (!contains(b->low, b->nlow, a->low[i]))
            return false;
    for (size_t i = 0; i < a->nhigh; i++)
        if (!contains(b->high, b->nhigh, a->high[i]))
            return false;
    return true;
}

/* ---- conditions ---- */

struct mask {
    struct keys *to;
    size_t key;
    struct arena *a;
};

static bool has_key(const struct mask *c, const struct expr *e) {
    return expr_vars(e) >> c->key & 1;
}

static enum expr_kind opposite(enum expr_kind op) {
    switch (op) {
    case EXPR_LT:
        return EXPR_GE;
    case EXPR_LE:
        return EXPR_GT;
    case EXPR_GT:
        return EXPR_LE;
    default:
        return EXPR_LT;
    }
}

static enum expr_kind mirrored(enum expr_kind op) {
    switch (op) {
    case EXPR_LT:
        return EXPR_GT;
    case EXPR_LE:
        return EXPR_GE;
    case EXPR_GT:
        return EXPR_LT;
    case EXPR_GE:
        return EXPR_LE;
    default:
        return op;
    }
}

static struct expr *plus(const struct mask *c, const struct expr *e, int64_t n) {
    struct terms t = {0};
    if (!terms_of(e, false, &t) || t.n == TERMS_MOST)
        return pair_of(c->a, EXPR_ADD, e, expr_number(c->a, n));
    t.minus[t.n] = false;
    t.e[t.n++] = expr_number(c->a, n);
    return terms_sum(&t, c->a);
}

/* key // by OP rest, or key OP rest where `by` is NULL. */
static bool bound(const struct mask *c, enum expr_kind op, const struct expr *rest,
                  const struct expr *by) {
    struct expr *at = (struct expr *)rest, *next = plus(c, rest, 1);
    if (by) {
        at = expr_times(c->a, at, (struct expr *)by);
        next = expr_times(c->a, next, (struct expr *)by);
    }
    switch (op) {
    case EXPR_LT:
        return interval_add_high(c->to, at);
    case EXPR_LE:
        return interval_add_high(c->to, next);
    case EXPR_GT:
        return interval_add_low(c->to, next);
    case EXPR_GE:
        return interval_add_low(c->to, at);
    default:
        return interval_add_low(c->to, at) && interval_add_high(c->to, next);
    }
}

enum found { FOUND, NOT_FOUND, NO_ROOM };

/* left - right OP 0, where one term of the difference is the key, or the key by a size. */
static enum found add_linear(const struct mask *c, enum expr_kind op, const struct expr *left,
                             const struct expr *right) {
    struct terms t = {0}, rest = {0};
    const struct expr *by = NULL;
    bool minus = false, seen = false;
    if (!terms_of(left, false, &t) || !terms_of(right, true, &t))
        return NOT_FOUND;
    for (size_t i = 0; i < t.n; i++) {
        const struct expr *e = t.e[i];
        if (!has_key(c, e)) {
            rest.e[rest.n] = e;
            rest.minus[rest.n++] = !t.minus[i];
            continue;
        }
        bool divided = e->kind == EXPR_FLOORDIV && expr_is_variable(e->args[0], c->key) &&
                       (e->args[1]->kind == EXPR_DIM ||
                        (e->args[1]->kind == EXPR_NUMBER && e->args[1]->integer > 0));
        if (seen || !(expr_is_variable(e, c->key) || divided))
            return NOT_FOUND;
        seen = true;
        minus = t.minus[i];
        by = divided ? e->args[1] : NULL;
    }
    if (!seen)
        return NOT_FOUND;
    for (size_t i = 0; minus && i < rest.n; i++)
        rest.minus[i] = !rest.minus[i];
    return bound(c, minus ? mirrored(op) : op, terms_sum(&rest, c->a), by) ? FOUND : NO_ROOM;
}

static bool is_abs(const struct expr *e) {
    return e->kind == EXPR_CALL && e->function == FUNCTION_ABS &&
           e->args[0]->value_kind == VALUE_INT;
}

/* abs(x) < y as x < y and -y < x. */
static enum found add_abs(const struct mask *c, enum expr_kind op, const struct expr *x,
                          const struct expr *y) {
    struct keys kept = *c->to;
    struct terms t = {0};
    if ((op != EXPR_LT && op != EXPR_LE) || has_key(c, y) || !terms_of(y, true, &t))
        return NOT_FOUND;
    enum found one = add_linear(c, op, x->args[0], y);
    enum found two = one == FOUND ? add_linear(c, op, terms_sum(&t, c->a), x->args[0]) : one;
    if (two == NOT_FOUND)
        *c->to = kept;
    return two;
}

static bool add_guard(const struct mask *c, const struct expr *e, bool truth) {
    struct expr *guard = (struct expr *)e;
    if (!truth) {
        guard = arena_new_of(c->a, struct expr);
        *guard = (struct expr){.kind = EXPR_NOT, .value_kind = VALUE_BOOL, .nargs = 1};
        guard->args = arena_array(c->a, struct expr *, 1);
        guard->args[0] = (struct expr *)e;
    }
    c->to->guard = c->to->guard ? expr_pair(c->a, EXPR_AND, c->to->guard, guard) : guard;
    return true;
}

bool interval_add(struct keys *v, const struct expr *e, bool truth, size_t key, struct arena *a) {
    struct mask c = {v, key, a};
    if (e->kind == EXPR_NOT)
        return interval_add(v, e->args[0], !truth, key, a);
    if (e->kind == (truth ? EXPR_AND : EXPR_OR))
        return interval_add(v, e->args[0], truth, key, a) &&
               interval_add(v, e->args[1], truth, key, a);
    bool compares = (e->kind >= EXPR_LT && e->kind <= EXPR_GE) || (e->kind == EXPR_EQ && truth);
    if (compares && e->args[0]->value_kind == VALUE_INT && e->args[1]->value_kind == VALUE_INT) {
        enum expr_kind op = truth ? e->kind : opposite(e->kind);
        const struct expr *left = e->args[0], *right = e->args[1];
        enum found f = is_abs(left)    ? add_abs(&c, op, left, right)
                       : is_abs(right) ? add_abs(&c, mirrored(op), right, left)
                                       : add_linear(&c, op, left, right);
        if (f != NOT_FOUND)
            return f == FOUND;
    }
    return add_guard(&c, e, truth);
}
