/* What tasks and launch plans have in common about expressions. Parsers have bounded the depth. */
#include "spec/expr.h"

#include "base/checked.h"
#include <math.h>

size_t expr_nparts(const struct expr *e) {
    const struct reduce *r = e->reduce;
    return e->nargs + (r ? (r->guard != NULL) + 2 * r->nvars : 0);
}

const struct expr *expr_part(const struct expr *e, size_t i) {
    const struct reduce *r = e->reduce;
    if (i < e->nargs)
        return e->args[i];
    i -= e->nargs;
    if (r->guard && i == 0)
        return r->guard;
    i -= r->guard != NULL;
    return i % 2 ? r->vars[i / 2].hi : r->vars[i / 2].lo;
}

const struct expr *expr_find(const struct expr *e, enum expr_kind kind) {
    if (e->kind == kind)
        return e;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        const struct expr *found = part ? expr_find(part, kind) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

bool expr_has(const struct expr *e, enum expr_kind kind) {
    return expr_find(e, kind) != NULL;
}

bool expr_reads(const struct expr *e) {
    return expr_has(e, EXPR_READ);
}

bool expr_is_number(const struct expr *e, int64_t v) {
    return e->kind == EXPR_NUMBER && e->integral && e->integer == v;
}

/* ---- equality ---- */

static bool same_reduce(const struct reduce *a, const struct reduce *b) {
    if (a == b)
        return true;
    if (!a || !b || a->op != b->op || a->nvars != b->nvars || !a->guard != !b->guard)
        return false;
    for (size_t i = 0; i < a->nvars; i++)
        if (a->vars[i].var != b->vars[i].var || !expr_same(a->vars[i].lo, b->vars[i].lo) ||
            !expr_same(a->vars[i].hi, b->vars[i].hi))
            return false;
    return !a->guard || expr_same(a->guard, b->guard);
}

static bool same_number(const struct expr *a, const struct expr *b) {
    return a->integral == b->integral &&
           (a->integral ? a->integer == b->integer
                        : a->number == b->number && signbit(a->number) == signbit(b->number));
}

bool expr_same(const struct expr *a, const struct expr *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->nargs != b->nargs)
        return false;
    bool refers = a->kind == EXPR_DIM || a->kind == EXPR_INDEX || a->kind == EXPR_READ;
    if ((refers && a->ref != b->ref) || (a->kind == EXPR_NUMBER && !same_number(a, b)) ||
        (a->kind == EXPR_CALL && a->function != b->function) ||
        (a->kind == EXPR_REDUCE && !same_reduce(a->reduce, b->reduce)))
        return false;
    for (size_t i = 0; i < a->nargs; i++)
        if (!expr_same(a->args[i], b->args[i]))
            return false;
    return true;
}

bool extents_same(const struct tensor *a, const struct tensor *b) {
    bool same = a->rank == b->rank;
    for (size_t i = 0; same && i < a->rank; i++)
        same = expr_same(a->extent[i], b->extent[i]);
    return same;
}

/* ---- values ---- */

struct evaluation {
    const int64_t *dims, *vars;
    struct expr_fault *fault;
};

static bool no_value(const struct evaluation *ev, const struct expr *e, const char *why) {
    *ev->fault = (struct expr_fault){e, why};
    return false;
}

static int64_t largest(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t smallest(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Functions that keep integers integers. */
static bool call(const struct evaluation *ev, const struct expr *e, const int64_t *v,
                 int64_t *out) {
    switch (e->function) {
    case FUNCTION_ABS:
        *out = v[0];
        return v[0] >= 0 || sub_i64(0, v[0], out) || no_value(ev, e, "does not fit 64 bits");
    case FUNCTION_MAXIMUM:
        *out = largest(v[0], v[1]);
        return true;
    case FUNCTION_MINIMUM:
        *out = smallest(v[0], v[1]);
        return true;
    case FUNCTION_CLAMP:
        *out = smallest(largest(v[0], v[1]), v[2]);
        return true;
    default:
        return no_value(ev, e, "is not an integer");
    }
}

static bool arithmetic(const struct evaluation *ev, const struct expr *e, const int64_t *v,
                       int64_t *out) {
    int64_t a = v[0], b = v[1];
    bool fits = true;
    switch (e->kind) {
    case EXPR_NEG:
        fits = sub_i64(0, a, out);
        break;
    case EXPR_NOT:
        *out = !a;
        break;
    case EXPR_ADD:
        fits = add_i64(a, b, out);
        break;
    case EXPR_SUB:
        fits = sub_i64(a, b, out);
        break;
    case EXPR_MUL:
        fits = mul_i64(a, b, out);
        break;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        if (b == 0)
            return no_value(ev, e, "division by zero");
        fits = e->kind == EXPR_MOD ? floormod_i64(a, b, out) : floordiv_i64(a, b, out);
        break;
    case EXPR_EQ:
        *out = a == b;
        break;
    case EXPR_NE:
        *out = a != b;
        break;
    case EXPR_LT:
        *out = a < b;
        break;
    case EXPR_LE:
        *out = a <= b;
        break;
    case EXPR_GT:
        *out = a > b;
        break;
    case EXPR_GE:
        *out = a >= b;
        break;
    default:
        return no_value(ev, e, "is not an integer");
    }
    return fits || no_value(ev, e, "does not fit 64 bits");
}

static bool eval(const struct evaluation *ev, const struct expr *e, int64_t *out) {
    int64_t v[3] = {0};
    switch (e->kind) {
    case EXPR_NUMBER:
        *out = e->integer;
        return e->integral || no_value(ev, e, "is not an integer");
    case EXPR_DIM:
        *out = ev->dims[e->ref];
        return true;
    case EXPR_INDEX:
        *out = ev->vars ? ev->vars[e->ref] : 0;
        return ev->vars || no_value(ev, e, "is not a number");
    case EXPR_AND:
    case EXPR_OR:
        if (!eval(ev, e->args[0], &v[0]))
            return false;
        *out = v[0] != 0;
        if ((v[0] != 0) == (e->kind == EXPR_OR))
            return true;
        if (!eval(ev, e->args[1], &v[1]))
            return false;
        *out = v[1] != 0;
        return true;
    case EXPR_IF:
        return eval(ev, e->args[0], &v[0]) && eval(ev, e->args[v[0] ? 1 : 2], out);
    case EXPR_READ:
    case EXPR_PAD:
    case EXPR_REDUCE:
        return no_value(ev, e, "is not a number");
    default:
        for (size_t i = 0; i < e->nargs && i < 3; i++)
            if (!eval(ev, e->args[i], &v[i]))
                return false;
        return e->kind == EXPR_CALL ? call(ev, e, v, out) : arithmetic(ev, e, v, out);
    }
}

bool expr_eval_integer(const struct expr *e, const int64_t *dims, const int64_t *vars, int64_t *out,
                       struct expr_fault *fault) {
    struct evaluation ev = {dims, vars, fault};
    return eval(&ev, e, out);
}

bool expr_eval_dims(const struct expr *e, const int64_t *dims, int64_t *out) {
    struct expr_fault ignored;
    return expr_eval_integer(e, dims, NULL, out, &ignored);
}
