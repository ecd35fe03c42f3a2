/* Tree-walking evaluation. The parser has bounded the depth of the tree. */
#include "spec/scalar.h"

#include "spec/chain.h"
#include <math.h>

uint32_t expr_vars(const struct expr *e) {
    uint32_t vars = e->kind == EXPR_INDEX ? UINT32_C(1) << e->ref : 0;
    for (size_t i = 0; i < expr_nparts(e); i++)
        vars |= expr_vars(expr_part(e, i));
    if (e->kind == EXPR_REDUCE)
        for (size_t i = 0; i < e->reduce->nvars; i++)
            vars &= ~(UINT32_C(1) << e->reduce->vars[i].var);
    return vars;
}

static double call(enum function f, const double *a) {
    double x = a[0], y = a[1], z = a[2];
    switch (f) {
#define FUNCTION(id, name, args, formula, ...)                                                     \
    case FUNCTION_##id:                                                                            \
        return formula;
#include "spec/function.def"
#undef FUNCTION
    default:
        return NAN;
    }
}

static double node(const struct expr *e, const double *a) {
    switch (e->kind) {
    case EXPR_NEG:
        return -a[0];
    case EXPR_NOT:
        return !(a[0] != 0);
    case EXPR_ADD:
        return a[0] + a[1];
    case EXPR_SUB:
        return a[0] - a[1];
    case EXPR_MUL:
        return a[0] * a[1];
    case EXPR_DIV:
        return a[0] / a[1];
    case EXPR_FLOORDIV:
        return floor_quotient(a[0], a[1]);
    case EXPR_MOD:
        return floor_remainder(a[0], a[1]);
    case EXPR_EQ:
        return a[0] == a[1];
    case EXPR_NE:
        return a[0] != a[1];
    case EXPR_LT:
        return a[0] < a[1];
    case EXPR_LE:
        return a[0] <= a[1];
    case EXPR_GT:
        return a[0] > a[1];
    case EXPR_GE:
        return a[0] >= a[1];
    case EXPR_CALL:
        return call(e->function, a);
    default:
        return NAN;
    }
}

/* False: an index leaves the tensor. */
static bool place_of(struct scalar *s, const struct expr *e, int64_t *linear) {
    const struct bound_tensor *b = &s->in->tensors[e->ref];
    *linear = 0;
    for (size_t k = 0; k < e->nargs; k++) {
        double at = scalar_eval(s, e->args[k]);
        if (!(at >= 0 && at < (double)b->extent[k]))
            return false;
        *linear += (int64_t)at * b->stride[k];
    }
    return true;
}

static double read_at(struct scalar *s, const struct expr *read, const struct expr *otherwise) {
    int64_t linear;
    if (place_of(s, read, &linear))
        return s->read(s->ctx, read->ref, linear);
    return otherwise ? scalar_eval(s, otherwise) : NAN;
}

struct folding {
    const struct expr *e;
    struct plain_fold f;
};

static void fold(struct scalar *s, struct folding *f) {
    const struct reduce *r = f->e->reduce;
    if (r->guard && !(scalar_eval(s, r->guard) != 0))
        return;
    double at = (double)s->var[r->vars[0].var];
    plain_add(&f->f, (int64_t)r->op, scalar_eval(s, f->e->args[0]), at);
}

static void fold_over(struct scalar *s, struct folding *f, size_t level) {
    const struct reduce *r = f->e->reduce;
    if (level == r->nvars) {
        fold(s, f);
        return;
    }
    const struct reduce_var *v = &r->vars[level];
    int64_t lo = (int64_t)scalar_eval(s, v->lo), hi = (int64_t)scalar_eval(s, v->hi);
    for (int64_t at = lo; at < hi; at++) {
        s->var[v->var] = at;
        fold_over(s, f, level + 1);
    }
}

static bool same_point(const struct scalar_memo *m, const struct scalar *s) {
    for (uint32_t left = m->vars; left; left &= left - 1) {
        int v = __builtin_ctz(left);
        if (m->at[v] != s->var[v])
            return false;
    }
    return true;
}

static double reduce(struct scalar *s, const struct expr *e) {
    struct folding f = {.e = e, .f = plain_start((int64_t)e->reduce->op)};
    struct scalar_memo *memo = NULL;
    for (size_t i = 0; i < s->nmemos; i++)
        if (s->memo[i].e == e)
            memo = &s->memo[i];
    if (memo && same_point(memo, s))
        return memo->value;
    int64_t at[TASK_MAX_VARS];
    for (size_t i = 0; i < TASK_MAX_VARS; i++)
        at[i] = s->var[i];
    fold_over(s, &f, 0);
    double value = plain_result(&f.f, (int64_t)e->reduce->op);
    if (!memo && s->nmemos < SCALAR_MEMOS)
        memo = &s->memo[s->nmemos++];
    if (memo) {
        *memo = (struct scalar_memo){.e = e, .vars = expr_vars(e), .value = value};
        for (size_t i = 0; i < TASK_MAX_VARS; i++)
            memo->at[i] = at[i];
    }
    return value;
}

double scalar_eval(struct scalar *s, const struct expr *e) {
    double a[3] = {0};
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->integral ? (double)e->integer : e->number;
    case EXPR_DIM:
        return (double)s->in->dims[e->ref];
    case EXPR_INDEX:
        return (double)s->var[e->ref];
    case EXPR_READ:
        return read_at(s, e, NULL);
    case EXPR_PAD:
        return read_at(s, e->args[0], e->args[1]);
    case EXPR_AND:
        return scalar_eval(s, e->args[0]) != 0 && scalar_eval(s, e->args[1]) != 0;
    case EXPR_OR:
        return scalar_eval(s, e->args[0]) != 0 || scalar_eval(s, e->args[1]) != 0;
    case EXPR_IF:
        return scalar_eval(s, e->args[scalar_eval(s, e->args[0]) != 0 ? 1 : 2]);
    case EXPR_REDUCE:
        return reduce(s, e);
    default:
        for (size_t i = 0; i < e->nargs && i < 3; i++)
            a[i] = scalar_eval(s, e->args[i]);
        return node(e, a);
    }
}
