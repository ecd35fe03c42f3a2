/* Which statements are scans, and of what. */
#include "agent/expert/scan/operator.h"
#include "spec/domain.h"
#include <string.h>

/* ---- ranges ---- */

/* The expression is a variable of the left side plus a number that no size changes. */
static bool is_shifted(const struct inst *in, const struct statement *s, const struct expr *e,
                       size_t *var, int64_t *by) {
    struct affine f;
    if (expr_has(e, EXPR_DIM) || !affine_of(in, e, &f) || __builtin_popcount(f.vars) != 1)
        return false;
    *var = (size_t)__builtin_ctz(f.vars);
    *by = f.c;
    return *var < s->nindex && f.coef[*var] == 1;
}

/* k <= j: lo 0, hi j + 1; k < j: hi j; j <= k < D: lo j, hi D; j < k < D: lo j + 1. */
static bool by_range(const struct inst *in, const struct statement *s, const struct reduce_var *v,
                     struct scan_shape *out) {
    int64_t by;
    if (expr_is_number(v->lo, 0) && is_shifted(in, s, v->hi, &out->axis, &by)) {
        out->reverse = false;
        out->exclusive = by == 0;
        return by == 0 || by == 1;
    }
    if (!is_shifted(in, s, v->lo, &out->axis, &by) ||
        !expr_same(v->hi, statement_extent(in->task, s, out->axis)))
        return false;
    out->reverse = true;
    out->exclusive = by == 1;
    return by == 0 || by == 1;
}

/* All k of the axis, of which a guard selects k <= j, k < j, k >= j or k > j. */
static bool by_guard(const struct inst *in, const struct statement *s, const struct reduce *r,
                     struct scan_shape *out) {
    const struct reduce_var *v = &r->vars[0];
    const struct expr *g = r->guard, *l = g->args[0], *h = g->args[1];
    bool flipped = l->kind == EXPR_INDEX && l->ref != v->var;
    if (l->kind != EXPR_INDEX || h->kind != EXPR_INDEX || (flipped ? h : l)->ref != v->var)
        return false;
    out->axis = (flipped ? l : h)->ref;
    if (out->axis >= s->nindex || !expr_is_number(v->lo, 0) ||
        !expr_same(v->hi, statement_extent(in->task, s, out->axis)))
        return false;
    bool less = g->kind == EXPR_LT || g->kind == EXPR_LE;
    out->reverse = less == flipped;
    out->exclusive = g->kind == EXPR_LT || g->kind == EXPR_GT;
    return true;
}

static uint32_t bit(size_t var) {
    return UINT32_C(1) << var;
}

/* With the reduced variable replaced by the axis; NULL stays NULL. */
static struct expr *along(const struct expr *e, size_t var, size_t axis, struct arena *a) {
    struct expr *map[TASK_MAX_VARS] = {NULL};
    map[var] = expr_variable(a, axis);
    return e ? expr_replace(e, map, a) : NULL;
}

/* ---- folds, and places of extremes ---- */

static bool as_fold(const struct inst *in, const struct statement *s, struct arena *a,
                    struct scan_shape *out) {
    if (!form_is_fold(s) || !pattern_is_prefix(s->body))
        return false;
    const struct reduce *r = s->body->reduce;
    bool place = r->op >= REDUCTION_ARGMAX;
    bool bounded = expr_vars(r->vars[0].lo) || expr_vars(r->vars[0].hi);
    if (s->body->args[0]->value_kind == VALUE_BOOL ||
        !(bounded ? by_range(in, s, &r->vars[0], out) : by_guard(in, s, r, out)) ||
        (bounded && r->guard && (r->op == REDUCTION_MEAN || expr_has(r->guard, EXPR_REDUCE))))
        return false;
    out->kind = place ? SCAN_BEST : SCAN_FOLD;
    out->term = along(s->body->args[0], r->vars[0].var, out->axis, a);
    out->guard = along(bounded ? r->guard : NULL, r->vars[0].var, out->axis, a);
    return true;
}

/* ---- segments ---- */

/* The parts of a guard that do not have the variable; NULL: there are none. */
static const struct expr *parts_without(const struct expr *g, size_t var, struct arena *a) {
    if (g->kind != EXPR_AND)
        return expr_vars(g) & bit(var) ? NULL : g;
    const struct expr *l = parts_without(g->args[0], var, a),
                      *r = parts_without(g->args[1], var, a);
    return l && r ? expr_pair(a, EXPR_AND, l, r) : l ? l : r;
}

/* sum(k <= j | k >= start[j]) x[k] starts anew wherever start[j] is j. */
static bool as_segments(const struct inst *in, const struct statement *s, bool trusted,
                        struct arena *a, struct scan_shape *out) {
    struct segments seg;
    if (!form_is_fold(s) || !pattern_is_segments(trusted ? NULL : in->task, s->body, &seg) ||
        !by_range(in, s, &s->body->reduce->vars[0], out) || seg.axis != out->axis)
        return false;
    out->kind = SCAN_SEGMENTS;
    out->term = along(s->body->args[0], seg.var, out->axis, a);
    out->guard = along(parts_without(s->body->reduce->guard, out->axis, a), seg.var, out->axis, a);
    out->restart = expr_pair(a, EXPR_EQ, seg.bound, expr_variable(a, out->axis));
    return true;
}

/* ---- decay ---- */

static struct expr *real_pair(struct arena *a, enum expr_kind kind, const struct expr *x,
                              const struct expr *y) {
    struct expr *e = expr_pair(a, kind, x, y);
    e->value_kind = VALUE_REAL;
    return e;
}

static struct expr *real_negative(struct arena *a, const struct expr *x) {
    struct expr *e = real_pair(a, EXPR_NEG, x, NULL);
    e->nargs = 1;
    return e;
}

/* The factors but one. NULL: none, and no sign. */
static struct expr *product_of(const struct recurrence *r, struct arena *a) {
    struct expr *e = NULL;
    for (size_t i = 0; i < r->nfactors; i++) {
        struct expr *f = (struct expr *)r->factor[i];
        if (r->below[i] && !e) {
            e = expr_number(a, 1);
            e->value_kind = VALUE_REAL;
        }
        e = !e ? f : real_pair(a, r->below[i] ? EXPR_DIV : EXPR_MUL, e, f);
    }
    if (r->negated && !e) {
        e = expr_number(a, 1);
        e->value_kind = VALUE_REAL;
    }
    return r->negated ? real_negative(a, e) : e;
}

static struct expr *exponential_of(struct arena *a, const struct expr *x) {
    struct expr *e = real_negative(a, x);
    e->kind = EXPR_CALL;
    e->function = FUNCTION_EXP;
    return e;
}

static struct expr *term_of(const struct recurrence *r, struct arena *a) {
    struct expr *product = product_of(r, a);
    if (!r->gain)
        return product;
    struct expr *gain = exponential_of(a, r->loss ? real_negative(a, r->gain) : r->gain);
    return product ? real_pair(a, EXPR_MUL, product, gain) : gain;
}

static bool as_decay(const struct inst *in, const struct statement *s, struct arena *a,
                     struct scan_shape *out) {
    struct recurrence *r = &out->steps;
    if (!pattern_is_recurrence(s->body, r) || !by_range(in, s, &s->body->reduce->vars[0], out) ||
        expr_has(r->decay, EXPR_REDUCE) || (r->gain && expr_has(r->gain, EXPR_REDUCE)))
        return false;
    for (size_t i = 0; i < r->nfactors; i++)
        if (expr_has(r->factor[i], EXPR_REDUCE))
            return false;
    out->kind = SCAN_DECAY;
    out->term = along(term_of(r, a), r->var, r->axis, a);
    if (r->over) {
        out->decay = along(r->decay, r->decay_var, r->axis, a);
    } else {
        struct expr *map[TASK_MAX_VARS] = {NULL};
        map[r->axis] = expr_number(a, r->at_axis);
        map[r->var] = expr_number(a, r->at_var);
        out->decay = expr_replace(r->decay, map, a);
    }
    return true;
}

/* ---- exponentials ---- */

/* The parts of a sum that have the variable, or those that have not; NULL: there are none. */
static struct expr *parts_with(const struct expr *e, uint32_t vars, bool with, struct arena *a) {
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB) {
        struct expr *l = parts_with(e->args[0], vars, with, a),
                    *r = parts_with(e->args[1], vars, with, a);
        if (!l && r && e->kind == EXPR_SUB)
            return real_negative(a, r);
        return l && r ? real_pair(a, e->kind, l, r) : l ? l : r;
    }
    if (e->kind == EXPR_NEG) {
        struct expr *x = parts_with(e->args[0], vars, with, a);
        return x ? real_negative(a, x) : NULL;
    }
    return !(expr_vars(e) & vars) != with ? (struct expr *)e : NULL;
}

static const struct statement *definition_of(const struct task *t, size_t tensor) {
    const struct statement *found = NULL;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor) {
            if (found)
                return NULL;
            found = &t->statements[i];
        }
    return found;
}

/* m is the running maximum of x itself: x[k] - m[j], with m[j] = max(k <= j) x[k]. */
static const struct statement *maximum_of(const struct inst *in, const struct statement *s,
                                          const struct exponentials *x) {
    const struct task *t = in->task;
    const struct expr *e = x->power->args[0];
    if (e->kind != EXPR_SUB || e->args[1]->kind != EXPR_READ || !expr_is_own(s, e->args[1]))
        return NULL;
    const struct statement *m = definition_of(t, e->args[1]->ref);
    if (!m || !form_is_fold(m) || m->body->reduce->op != REDUCTION_MAX ||
        m->body->value_kind != VALUE_REAL || m->body->reduce->guard || !maps_plain_left(t, m) ||
        !statement_same_space(t, m, s))
        return NULL;
    const struct reduce *a = m->body->reduce, *b = s->body->reduce;
    bool kept_exactly = t->tensors[m->tensor].dtype == DTYPE_F32;
    bool same = a->nvars == 1 && a->vars[0].var == b->vars[0].var &&
                expr_same(a->vars[0].lo, b->vars[0].lo) && expr_same(a->vars[0].hi, b->vars[0].hi);
    return same && kept_exactly && expr_same(m->body->args[0], e->args[0]) ? m : NULL;
}

static bool as_exponentials(const struct inst *in, const struct statement *s, struct arena *a,
                            struct scan_shape *out) {
    struct exponentials x;
    if (!form_is_fold(s) || !pattern_is_exponentials(s->body, &x) ||
        !by_range(in, s, &s->body->reduce->vars[0], out))
        return false;
    size_t var = x.terms.var, axis = x.terms.axis;
    struct expr *power = parts_with(x.power->args[0], bit(var), true, a);
    struct expr *shift = parts_with(x.power->args[0], bit(var), false, a);
    out->kind = SCAN_EXPONENTIALS;
    out->most = maximum_of(in, s, &x);
    out->term = along(product_of(&x.terms, a), var, axis, a);
    out->power = along(power, var, axis, a);
    out->shift = out->most ? NULL : shift;
    return power && shift && power->value_kind == VALUE_REAL;
}

/* ---- all of them ---- */

bool scan_recognise(const struct inst *in, const struct statement *s, bool trusted, struct arena *a,
                    struct scan_shape *out) {
    *out = (struct scan_shape){.fold = s};
    if (s->body->kind != EXPR_REDUCE || !maps_plain_left(in->task, s))
        return false;
    bool found = as_fold(in, s, a, out);
    if (!found) {
        *out = (struct scan_shape){.fold = s};
        found = as_decay(in, s, a, out);
    }
    if (!found) {
        *out = (struct scan_shape){.fold = s};
        found = as_exponentials(in, s, a, out);
    }
    if (!found) {
        *out = (struct scan_shape){.fold = s};
        found = as_segments(in, s, trusted, a, out);
    }
    return found;
}

bool scan_find(const struct inst *in, struct arena *a, struct scan_shape *out) {
    bool found = false;
    for (size_t i = 0; i < in->task->nstatements; i++) {
        struct scan_shape shape;
        /* Of a running maximum and the exponentials that it scales, the latter have both. */
        if (scan_recognise(in, &in->task->statements[i], true, a, &shape) &&
            (!found || shape.most == out->fold)) {
            *out = shape;
            found = true;
        }
    }
    return found;
}

bool scan_is_ordered(const struct scan_shape *shape) {
    return shape->kind == SCAN_DECAY || shape->kind == SCAN_SEGMENTS;
}

/* ---- states ---- */

struct scan_state scan_state_of(const struct scan_shape *shape) {
    static const struct {
        const char *first, *second, *first_type, *second_type; /* NULL: by what is folded */
    } fields[] = {[SCAN_FOLD] = {NULL, NULL, NULL, NULL},
                  [SCAN_BEST] = {"value", "at", NULL, NULL},
                  [SCAN_DECAY] = {"decay", "sum", "double", "float"},
                  [SCAN_EXPONENTIALS] = {"most", "sum", "float", "float"},
                  [SCAN_SEGMENTS] = {"value", "begins", NULL, NULL}};
    const struct expr *body = shape->fold->body;
    bool best = shape->kind == SCAN_BEST, decay = shape->kind == SCAN_DECAY;
    bool real = (best ? body->args[0] : body)->value_kind == VALUE_REAL;
    bool product = real && body->reduce->op == REDUCTION_PROD, small = real && !product;
    struct scan_state s = {.tuple = shape->kind != SCAN_FOLD};
    s.value = best || !real ? "long long" : "float";
    s.number = !real ? "long long" : product ? "double" : "float";
    s.bytes = (small && !decay ? 4 : 8) * (s.tuple ? 2 : 1);
    s.words = decay ? 3 : small ? s.bytes / 4 : 0;
    /* Beside 64 bits 64 bits: a state that is copied has no gap that nothing has written. */
    const char *second = small ? "int" : "long long";
    s.field[0].name = fields[shape->kind].first;
    s.field[1].name = fields[shape->kind].second;
    s.field[0].type = fields[shape->kind].first_type ? fields[shape->kind].first_type : s.number;
    s.field[1].type = fields[shape->kind].second_type ? fields[shape->kind].second_type : second;
    return s;
}
