/* Decides from the task alone; sizes are the runner's concern. The rules about errors are those of
 * spec/program.c (what is exact) and spec/nest.c (how terms are folded). */
#include "kernel/oracle_plan.h"

#include "spec/pattern.h"
#include "spec/scalar.h"
#include "spec/value.h"

#include <float.h>
#include <math.h>

enum { STEPS_MOST = 256 };

static uint32_t bit(size_t var) {
    return UINT32_C(1) << var;
}

/* ---- what is exact ---- */

static bool read_exact(const struct task *t, const struct expr *e) {
    const struct tensor *x = &t->tensors[e->ref];
    for (size_t i = 0; i < e->nargs; i++)
        if (!oracle_exact(t, e->args[i], false))
            return false;
    return x->role != TENSOR_LET && x->dtype != DTYPE_F64;
}

static bool node_exact(const struct expr *e) {
    switch (e->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
    case EXPR_DIV:
        return false; /* but for integers over indices, which are pure */
    case EXPR_CALL:
        return function_info(e->function)->result != RESULT_ROUNDED &&
               function_info(e->function)->result != RESULT_SHIFTED;
    default:
        return true;
    }
}

static bool plain_exact(const struct task *t, const struct expr *e) {
    if (pattern_is_pure(e))
        return true;
    switch (e->kind) {
    case EXPR_NUMBER:
        return (double)(float)e->number == e->number;
    case EXPR_READ:
        return read_exact(t, e);
    case EXPR_PAD:
        return read_exact(t, e->args[0]) &&
               oracle_exact(t, e->args[1], e->args[0]->value_kind == VALUE_REAL);
    case EXPR_REDUCE:
        return false;
    default:
        for (size_t i = 0; i < e->nargs; i++)
            if (!oracle_exact(t, e->args[i],
                              !(e->kind == EXPR_IF && i == 0) && pattern_wants_real(e)))
                return false;
        return node_exact(e);
    }
}

bool oracle_exact(const struct task *t, const struct expr *e, bool real) {
    if (real && e->value_kind == VALUE_INT)
        return e->kind == EXPR_NUMBER && fabs(e->number) <= 0x1p24;
    return plain_exact(t, e);
}

/* ---- reductions ---- */

static void set_fold(const struct task *t, struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    const struct expr *body = p->e->args[0];
    bool sum = r->op == REDUCTION_SUM || r->op == REDUCTION_MEAN;
    p->fold = fold_of(t, p->e, &p->partial);
    p->exact = oracle_exact(t, body, !p->fold.integer);
    if (!sum || r->guard || pattern_bounds_vary(r) || body->kind != EXPR_MUL ||
        body->value_kind != VALUE_REAL)
        return;
    p->exact_product = oracle_exact(t, body->args[0], true) && oracle_exact(t, body->args[1], true);
    p->product = p->exact_product && pattern_is_contraction(p->e);
    p->uncertain = !p->exact_product && pattern_is_contraction(p->e);
    if (p->exact_product)
        p->fold.relative2 += rules_of(t->accuracy).unit2;
}

/* As many results as registers hold; the side of a factor with pads, which costs more to read, is
 * the short one. */
static void set_block(struct oracle_step *p) {
    enum { SHORT = 2 };
    int many = p->product ? 4 : SHORT;
    p->rows = p->columns = 1;
    if (!p->product && !p->uncertain)
        return;
    struct expr **factor = p->e->args[0]->args;
    uint32_t first = expr_vars(factor[0]), second = expr_vars(factor[1]);
    for (size_t k = 0; k < p->naxes; k++) {
        p->row_axes |= first & ~second & bit(p->axis[k]) ? bit(k) : 0;
        p->column_axes |= second & ~first & bit(p->axis[k]) ? bit(k) : 0;
    }
    bool both = p->row_axes && p->column_axes, narrow = pattern_holds_pad(factor[0]);
    p->rows = !p->row_axes ? 1 : both && narrow ? SHORT : many;
    p->columns = !p->column_axes ? 1 : both && !narrow ? SHORT : many;
}

/* How often a variable occurs in a bound, and whether it is ever more than added. */
static bool is_plus(const struct expr *bound, size_t var) {
    switch (bound->kind) {
    case EXPR_INDEX:
        return bound->ref == var;
    case EXPR_ADD:
        for (int k = 0; k < 2; k++)
            if (!(expr_vars(bound->args[1 - k]) & bit(var)) && is_plus(bound->args[k], var))
                return true;
        return false;
    case EXPR_SUB:
        return !(expr_vars(bound->args[1]) & bit(var)) && is_plus(bound->args[0], var);
    default:
        return false;
    }
}

/* A prefix: one bound of its only variable is an axis that occurs nowhere else, plus something. */
static void set_scan(struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    p->scanned = -1;
    if (r->nvars != 1 || r->op == REDUCTION_ARGMAX || r->op == REDUCTION_ARGMIN)
        return;
    const struct expr *side[2] = {r->vars[0].hi, r->vars[0].lo};
    uint32_t used = expr_vars(p->e->args[0]) | (r->guard ? expr_vars(r->guard) : 0);
    for (int k = 0; k < 2 && p->scanned < 0; k++)
        for (size_t i = 0; i < p->naxes; i++) {
            size_t var = p->axis[i];
            if (is_plus(side[k], var) && !((used | expr_vars(side[1 - k])) & bit(var))) {
                p->scanned = (int)var;
                p->backwards = k == 1;
                break;
            }
        }
}

/* ---- the steps ---- */

struct planning {
    struct oracle_plan *p;
    struct arena *a;
    const struct statement *s;
    bool definition;
    const struct reduce *outer[TASK_MAX_VARS];
    size_t nouter;
    bool checked;
    struct err *err;
};

static struct oracle_step *add_step(struct planning *w, enum oracle_step_kind kind) {
    struct oracle_plan *p = w->p;
    if (p->nsteps == STEPS_MOST) {
        err_set(w->err, ERR_INPUT, "more than %d reductions and lets", STEPS_MOST);
        return NULL;
    }
    struct oracle_step *s = &p->steps[p->nsteps++];
    *s = (struct oracle_step){.kind = kind, .tensor = w->s->tensor, .s = w->s, .scanned = -1};
    return s;
}

static bool set_axes(struct planning *w, struct oracle_step *p, uint32_t vars) {
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        if (!(vars >> v & 1))
            continue;
        if (p->naxes == ORACLE_AXES)
            return err_at(w->err, w->p->t->file, w->p->t->text, p->e->at, p->e->len,
                          "take a part of it into a let",
                          "a reduction depends on more than %d indices", ORACLE_AXES);
        p->axis[p->naxes++] = v;
    }
    return true;
}

/* A definition's reduction that depends on everything around it is evaluated where it is read. */
static bool add_reduce(struct planning *w, const struct expr *e) {
    uint32_t vars = expr_vars(e), all = w->s->nindex ? bit(w->s->nindex) - 1 : 0;
    bool whole = w->nouter == 0 && vars == all;
    if (w->definition && whole)
        return true;
    struct oracle_step *p = add_step(w, w->definition ? ORACLE_DEFINE : ORACLE_REDUCE);
    if (!p)
        return false;
    p->e = e;
    p->output = tensor_is_output(&w->p->t->tensors[w->s->tensor]);
    p->checked = w->checked || w->nouter > 0;
    p->nouter = w->nouter;
    for (size_t i = 0; i < w->nouter; i++)
        p->outer[i] = w->outer[i];
    if (!set_axes(w, p, vars))
        return false;
    p->fixed = !pattern_bounds_vary(e->reduce);
    p->always = w->definition || !whole;
    p->index = !w->definition && e == w->s->body && pattern_is_index(w->p->t, w->s);
    if (w->definition)
        return true;
    set_fold(w->p->t, p);
    set_block(p);
    set_scan(p);
    w->p->ties |= p->index && !p->exact;
    p->listed = p->scanned < 0 && p->fixed && !p->product && !p->exact_product && !p->uncertain &&
                pattern_is_by_index(e, &p->by);
    p->always |= p->scanned >= 0 || (p->listed && !p->index);
    p->listed = p->listed && !p->index;
    return true;
}

/* All reductions of an expression, inner ones first. As deep as the tree. */
static bool add_reduces(struct planning *w, const struct expr *e) {
    bool checked = w->checked;
    if (e->kind == EXPR_REDUCE)
        w->outer[w->nouter++] = e->reduce;
    for (size_t k = 0; k < e->nargs; k++) {
        w->checked = checked || (e->kind == EXPR_IF && k > 0);
        if (!add_reduces(w, e->args[k]))
            return false;
    }
    w->checked = checked;
    if (e->kind != EXPR_REDUCE)
        return true;
    if (e->reduce->guard && !add_reduces(w, e->reduce->guard))
        return false;
    w->nouter--;
    return add_reduce(w, e);
}

static bool is_cheap(const struct expr *e) {
    if (e->kind == EXPR_REDUCE ||
        (e->kind == EXPR_CALL && function_info(e->function)->result == RESULT_ROUNDED))
        return false;
    for (size_t k = 0; k < e->nargs; k++)
        if (!is_cheap(e->args[k]))
            return false;
    return true;
}

/* Read inside a sum of products that may leave it out: whether it is finite must be known. */
static bool in_partial(const struct task *t, const struct expr *e, size_t tensor, bool partial) {
    struct oracle_step p = {.e = e};
    if (e->kind == EXPR_REDUCE) {
        set_fold(t, &p);
        partial |= p.partial;
    }
    if (e->kind == EXPR_READ && e->ref == tensor && partial)
        return true;
    for (size_t k = 0; k < expr_nparts(e); k++)
        if (in_partial(t, expr_part(e, k), tensor, partial))
            return true;
    return false;
}

/* How many lets stand behind one another; what is deep is kept, so that texts stay short. */
static unsigned let_depth(const struct oracle_plan *p, const unsigned *depth,
                          const struct expr *e) {
    unsigned most = 0;
    if (e->kind == EXPR_READ && p->t->tensors[e->ref].role == TENSOR_LET && p->let_step[e->ref] < 0)
        most = depth[e->ref] + 1;
    for (size_t k = 0; k < e->nargs; k++) {
        unsigned d = let_depth(p, depth, e->args[k]);
        most = d > most ? d : most;
    }
    return most;
}

static bool let_kept(const struct oracle_plan *p, size_t tensor, unsigned *depth) {
    enum { DEPTH = 3 };
    const struct task *t = p->t;
    bool kept = false;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        kept |= in_partial(t, s->body, tensor, false);
        if (s->tensor != tensor)
            continue;
        unsigned d = let_depth(p, depth, s->body);
        depth[tensor] = d > depth[tensor] ? d : depth[tensor];
        kept |= !is_cheap(s->body) || d > DEPTH;
    }
    return kept;
}

static bool is_last(const struct task *t, size_t statement) {
    for (size_t i = statement + 1; i < t->nstatements; i++)
        if (t->statements[i].tensor == t->statements[statement].tensor)
            return false;
    return true;
}

static bool plan_statement(struct planning *w, size_t i, unsigned *depth) {
    const struct task *t = w->p->t;
    size_t tensor = t->statements[i].tensor;
    w->s = &t->statements[i];
    if (!add_reduces(w, w->s->body))
        return false;
    if (t->tensors[tensor].role != TENSOR_LET || !is_last(t, i) || !let_kept(w->p, tensor, depth))
        return true;
    struct oracle_step *p = add_step(w, ORACLE_LET);
    if (!p)
        return false;
    p->always = true;
    w->p->let_step[tensor] = (int)w->p->nsteps - 1;
    return true;
}

/* ---- what a comparison reads ---- */

static void need_tensor(struct oracle_plan *p, size_t tensor, bool inlined);

/* inlined: reductions without memory of their own are evaluated again. */
static void need(struct oracle_plan *p, const struct expr *e, bool inlined) {
    if (e->kind == EXPR_READ && p->t->tensors[e->ref].role == TENSOR_LET)
        need_tensor(p, e->ref, inlined);
    if (e->kind == EXPR_REDUCE) {
        struct oracle_step *s = (struct oracle_step *)oracle_plan_find(p, e);
        if (s && (s->always || !inlined)) {
            *(inlined ? &s->needed_inline : &s->needed) = true;
            if (!s->index)
                return;
        }
    }
    for (size_t k = 0; k < expr_nparts(e); k++)
        need(p, expr_part(e, k), inlined);
}

/* Lets do not stand in circles. */
static void need_tensor(struct oracle_plan *p, size_t tensor, bool inlined) {
    if (p->let_step[tensor] >= 0) {
        struct oracle_step *s = &p->steps[p->let_step[tensor]];
        *(inlined ? &s->needed_inline : &s->needed) = true;
        return;
    }
    for (size_t i = 0; i < p->t->nstatements; i++)
        if (p->t->statements[i].tensor == tensor)
            need(p, p->t->statements[i].body, inlined);
}

static bool has_recurrence(const struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].recurs.number)
            return true;
    return false;
}

/* A value of that kind that takes no reading. */
static struct expr *nothing_of(struct arena *a, const struct expr *e) {
    struct expr *zero = arena_new_of(a, struct expr), *same = arena_new_of(a, struct expr);
    *zero = (struct expr){.kind = EXPR_NUMBER, .value_kind = VALUE_INT, .integral = true};
    *same = (struct expr){.kind = EXPR_EQ, .value_kind = VALUE_BOOL, .nargs = 2};
    same->args = arena_array(a, struct expr *, 2);
    same->args[0] = same->args[1] = zero;
    return e->value_kind == VALUE_BOOL ? same : zero;
}

/* The task as the oracle has it where it has recurrences: inputs, and outputs without a body. Steps
 * that follow from each other are no work for a thread an element. */
static const struct task *without_results(const struct task *t, struct arena *a) {
    struct task *to = arena_new_of(a, struct task);
    *to = *t;
    to->statements = arena_array(a, struct statement, t->nstatements);
    to->nstatements = 0;
    for (size_t i = 0; i < t->nstatements; i++) {
        struct statement s = t->statements[i];
        if (!tensor_is_output(&t->tensors[s.tensor]))
            continue;
        s.body = nothing_of(a, s.body);
        to->statements[to->nstatements++] = s;
    }
    return to;
}

bool oracle_plan_make(const struct task *given, struct arena *a, struct oracle_plan *out,
                      struct err *err) {
    struct planning w = {.p = out, .a = a, .err = err, .definition = true};
    unsigned depth[TASK_MAX_TENSORS] = {0};
    bool by_host = has_recurrence(given);
    const struct task *t = by_host ? without_results(given, a) : given;
    *out = (struct oracle_plan){
        .t = t, .by_host = by_host, .steps = arena_array(a, struct oracle_step, STEPS_MOST)};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        out->let_step[i] = -1;
    for (size_t i = 0; i < t->ndefinitions; i++) {
        w.s = &t->definitions[i];
        if (!add_reduces(&w, w.s->body))
            return false;
    }
    w.definition = false;
    for (size_t i = 0; i < t->nstatements; i++)
        if (!plan_statement(&w, i, depth))
            return false;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_output(&t->tensors[i])) {
            need_tensor(out, i, false);
            need_tensor(out, i, true);
        }
    return true;
}

const struct oracle_step *oracle_plan_find(const struct oracle_plan *p, const struct expr *e) {
    for (size_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].e == e)
            return &p->steps[i];
    return NULL;
}
