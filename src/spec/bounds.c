/* The proof that no read leaves its tensor, no index divides by zero, and nothing is so large that
 * it cannot be counted. */
#include "spec/bounds.h"

#include "base/checked.h"

#define TERMS_MOST ((int64_t)1 << 60)

struct checker {
    const struct inst *in;
    const struct statement *s;
    struct arena *a;
    struct err *err;
    int64_t terms; /* of the reductions around, for all elements of the statement */
};

static bool leaves(const struct checker *c, const struct expr *read, size_t k, struct range got) {
    const struct task *t = c->in->task;
    const struct expr *e = read->args[k];
    int64_t extent = c->in->tensors[read->ref].extent[k];
    bool let = t->tensors[c->s->tensor].role == TENSOR_LET;
    str label = inst_label(c->in, c->a);
    return err_at(
        c->err, t->file, t->text, e->at, e->len,
        expr_reads(e) ? "state what the tensor holds, ~ randint(0, N), or guard or pad the "
                        "read: pad(x[t[i]], 0)"
        : let ? "guard the read, if(i + 1 < N, x[i+1], 0), pad it, pad(x[i+1], 0), or state "
                "the range of the let's index, let v[i < N-1]"
              : "guard the read, if(i + 1 < N, x[i+1], 0), or pad it, pad(x[i+1], 0)",
        "the read can leave '%.*s': this index goes from %lld to %lld, the dimension has "
        "%lld element%s (with %.*s)",
        STR_ARG(t->tensors[read->ref].name), (long long)got.lo, (long long)got.hi,
        (long long)extent, extent == 1 ? "" : "s", STR_ARG(label));
}

static bool unproved(const struct checker *c, const struct expr *e, enum range_result why) {
    const struct task *t = c->in->task;
    str label = inst_label(c->in, c->a);
    if (why == RANGE_ZERO)
        return err_at(c->err, t->file, t->text, e->at, e->len, "guard it with if(…)",
                      "an integer division by zero is possible (with %.*s)", STR_ARG(label));
    if (why == RANGE_UNKNOWN)
        return err_at(
            c->err, t->file, t->text, e->at, e->len,
            "pad the read, pad(x[t[i]], 0), keep the index inside, clamp(t[i], 0, N-1), or "
            "guard it: if(t[i] >= 0 && t[i] < N, x[t[i]], 0)",
            "nothing is known about where this index lies");
    return err_at(c->err, t->file, t->text, e->at, e->len, NULL,
                  "this does not fit 64 bits (with %.*s)", STR_ARG(label));
}

static bool check_expr(const struct checker *c, const struct ranges *r, const struct expr *e);

/* `padded`: the read may leave its tensor. */
static bool check_read(const struct checker *c, const struct ranges *r, const struct expr *e,
                       bool padded) {
    for (size_t k = 0; k < e->nargs; k++) {
        struct range got;
        enum range_result why = range_of(r, e->args[k], &got);
        if (!check_expr(c, r, e->args[k]))
            return false;
        if (why != RANGE_OK && !(padded && why == RANGE_UNKNOWN))
            return unproved(c, e->args[k], why);
        if (!padded && (got.lo < 0 || got.hi >= c->in->tensors[e->ref].extent[k]))
            return leaves(c, e, k, got);
    }
    return true;
}

/* Data may divide by zero, which leaves the element undefined; index arithmetic may not. */
static bool check_divisor(const struct checker *c, const struct ranges *r, const struct expr *e) {
    struct range by;
    if ((e->kind != EXPR_FLOORDIV && e->kind != EXPR_MOD) || expr_reads(e->args[1]))
        return true;
    bool zero = range_of(r, e->args[1], &by) == RANGE_OK && by.lo <= 0 && by.hi >= 0;
    return !zero || unproved(c, e, RANGE_ZERO);
}

/* A variable whose range was inferred indexes dimensions of one extent only. */
static bool check_inferred(const struct checker *c, const struct reduce_var *v,
                           const struct expr *e, int64_t extent) {
    const struct task *t = c->in->task;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        if (!check_inferred(c, v, part, extent))
            return false;
        if (e->kind != EXPR_READ || part->kind != EXPR_INDEX || part->ref != v->var ||
            c->in->tensors[e->ref].extent[i] == extent)
            continue;
        return err_at(c->err, t->file, t->text, part->at, part->len, "state the range: sum(k < N)",
                      "'%.*s' runs over %lld elements elsewhere, here over %lld (with %.*s)",
                      STR_ARG(v->name), (long long)extent,
                      (long long)c->in->tensors[e->ref].extent[i],
                      STR_ARG(inst_label(c->in, c->a)));
    }
    return true;
}

static bool check_variable(struct checker *c, struct ranges *r, const struct expr *e, size_t i,
                           bool *some) {
    const struct reduce_var *v = &e->reduce->vars[i];
    const struct task *t = c->in->task;
    if (!check_expr(c, r, v->lo) || !check_expr(c, r, v->hi))
        return false;
    enum range_result why = ranges_enter_var(r, v, some);
    if (why != RANGE_OK)
        return unproved(c, v->hi, why);
    int64_t n = 1;
    if (*some && !sub_i64(r->index[v->var].hi, r->index[v->var].lo, &n))
        n = TERMS_MOST;
    else if (*some)
        n++;
    if (v->inferred && !check_inferred(c, v, e, n))
        return false;
    if (!mul_i64(c->terms, n, &c->terms) || c->terms > TERMS_MOST)
        return err_at(c->err, t->file, t->text, e->at, e->len, "make dimensions smaller",
                      "a reduction of more than 2^60 terms in all (with %.*s)",
                      STR_ARG(inst_label(c->in, c->a)));
    return true;
}

static bool check_reduce(const struct checker *outer, const struct ranges *r,
                         const struct expr *e) {
    struct checker c = *outer;
    struct ranges inner = *r;
    for (size_t i = 0; i < e->reduce->nvars; i++) {
        bool some;
        if (!check_variable(&c, &inner, e, i, &some))
            return false;
        if (!some)
            return true;
    }
    const struct expr *guard = e->reduce->guard;
    if (guard && !check_expr(&c, &inner, guard))
        return false;
    return (guard && !ranges_narrow(&inner, guard, true)) || check_expr(&c, &inner, e->args[0]);
}

static bool check_if(const struct checker *c, const struct ranges *r, const struct expr *e) {
    struct ranges yes = *r, no = *r;
    return check_expr(c, r, e->args[0]) &&
           (!ranges_narrow(&yes, e->args[0], true) || check_expr(c, &yes, e->args[1])) &&
           (!ranges_narrow(&no, e->args[0], false) || check_expr(c, &no, e->args[2]));
}

static bool check_expr(const struct checker *c, const struct ranges *r, const struct expr *e) {
    if (e->kind == EXPR_READ)
        return check_read(c, r, e, false);
    if (e->kind == EXPR_PAD)
        return check_read(c, r, e->args[0], true) && check_expr(c, r, e->args[1]);
    if (e->kind == EXPR_IF)
        return check_if(c, r, e);
    if (e->kind == EXPR_REDUCE)
        return check_reduce(c, r, e);
    for (size_t i = 0; i < e->nargs; i++)
        if (!check_expr(c, r, e->args[i]))
            return false;
    return check_divisor(c, r, e);
}

bool bounds_check(const struct inst *in, const struct statement *s, struct arena *a,
                  struct err *err) {
    struct checker c = {in, s, a, err, 1};
    struct ranges r = ranges_of(in, s);
    for (size_t i = 0; i < s->nindex; i++)
        if (!mul_i64(c.terms, r.index[i].hi + 1, &c.terms))
            c.terms = TERMS_MOST;
    return check_expr(&c, &r, s->body);
}

static bool check_constants(const struct inst *in, const struct statement *s, int64_t *at,
                            struct err *err) {
    const struct task *t = in->task;
    for (size_t k = 0; k < t->tensors[s->tensor].rank; k++) {
        const struct expr *e = s->constant[k];
        int64_t extent = in->tensors[s->tensor].extent[k];
        if (s->position[k] >= 0)
            continue;
        if (!expr_eval_dims(e, in->dims, &at[k]))
            return err_at(err, t->file, t->text, e->at, e->len, NULL,
                          "the index divides by zero or does not fit 64 bits");
        if (at[k] < 0 || at[k] >= extent)
            return err_at(err, t->file, t->text, e->at, e->len, NULL,
                          "the index is %lld, the dimension has %lld element%s", (long long)at[k],
                          (long long)extent, extent == 1 ? "" : "s");
    }
    return true;
}

static bool meet(const struct statement *a, const int64_t *at, const struct statement *b,
                 const int64_t *bt, size_t rank) {
    for (size_t k = 0; k < rank; k++)
        if (a->position[k] < 0 && b->position[k] < 0 && at[k] != bt[k])
            return false;
    return true;
}

/* Elements that the statement defines. */
static int64_t defined_by(const struct inst *in, const struct statement *s) {
    int64_t n = 1;
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++)
        n *= s->position[k] < 0 ? 1 : in->tensors[s->tensor].extent[k];
    return n;
}

static bool check_output(const struct inst *in, size_t tensor, int64_t (*at)[TASK_MAX_RANK],
                         struct arena *a, struct err *err) {
    const struct task *t = in->task;
    const struct tensor *x = &t->tensors[tensor];
    int64_t left = in->tensors[tensor].count;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (s->tensor != tensor)
            continue;
        if (!check_constants(in, s, at[i], err))
            return false;
        for (size_t k = 0; k < i; k++)
            if (t->statements[k].tensor == tensor &&
                meet(s, at[i], &t->statements[k], at[k], x->rank))
                return err_at(err, t->file, t->text, s->at, x->name.n, NULL,
                              "some elements of '%.*s' are defined twice (with %.*s)",
                              STR_ARG(x->name), STR_ARG(inst_label(in, a)));
        left -= defined_by(in, s);
    }
    return left == 0 ||
           err_at(err, t->file, t->text, x->at, x->len, "an index variable covers its dimension",
                  "%lld of the %lld elements of '%.*s' are not defined (with %.*s)",
                  (long long)left, (long long)in->tensors[tensor].count, STR_ARG(x->name),
                  STR_ARG(inst_label(in, a)));
}

bool coverage_check(const struct inst *in, struct arena *a, struct err *err) {
    const struct task *t = in->task;
    int64_t(*at)[TASK_MAX_RANK] = arena_alloc(a, (t->nstatements + 1) * sizeof *at, 8);
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_output(&t->tensors[i]) && !check_output(in, i, at, a, err))
            return false;
    return true;
}
