/* Folds as matrix products: which variable runs where, which operand lies how. */
#include "agent/expert/contraction/contraction.h"
#include "spec/domain.h"
#include "spec/pattern.h"
#include <string.h>

#define BIT(v) (UINT32_C(1) << (v))

/* ---- integer expressions ---- */

int64_t con_value(const struct inst *in, const struct expr *e) {
    int64_t v;
    return expr_eval_dims(e, in->dims, &v) ? v : 0;
}

struct expr *con_extents(const struct contraction *c, const struct con_group *g, size_t from,
                         size_t to) {
    struct expr *e = expr_number(c->mem, 1);
    for (size_t i = from; i < to; i++)
        e = expr_times(c->mem, e, g->at[i].extent);
    return e;
}

void con_total(const struct contraction *c, struct con_group *g) {
    g->total = con_extents(c, g, 0, g->n);
    g->count = con_value(c->in, g->total);
}

uint32_t con_vars(const struct con_group *g, size_t from) {
    uint32_t vars = 0;
    for (size_t i = from; i < g->n; i++)
        vars |= BIT(g->at[i].var);
    return vars;
}

/* ---- factors ---- */

static const struct expr *read_of(const struct expr *factor) {
    return factor->kind == EXPR_PAD ? factor->args[0] : factor;
}

static bool is_operand(const struct expr *e) {
    if (e->kind == EXPR_PAD)
        return e->args[0]->kind == EXPR_READ && expr_is_number(e->args[1], 0);
    return e->kind == EXPR_READ;
}

/* The two factors that change with what is summed; nothing else may. */
static bool find_operands(const struct statement *s, const struct expr **two) {
    struct factors f;
    uint32_t reduced = reduce_vars(s->body->reduce);
    size_t n = 0;
    pattern_factors(s->body->args[0], &f);
    for (size_t i = 0; i < f.n; i++) {
        if (!(expr_vars(f.e[i]) & reduced))
            continue;
        if (n == 2 || f.below[i] || !is_operand(f.e[i]))
            return false;
        two[n++] = f.e[i];
    }
    return n == 2;
}

/* ---- variables that are taken apart ---- */

/* Every use of the variable is v//D with one D. */
static bool only_quotient(const struct expr *e, size_t var, const struct expr **divisor) {
    if (e->kind == EXPR_FLOORDIV && expr_is_variable(e->args[0], var) && !expr_vars(e->args[1])) {
        if (*divisor && !expr_same(*divisor, e->args[1]))
            return false;
        *divisor = e->args[1];
        return true;
    }
    if (expr_is_variable(e, var))
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!only_quotient(expr_part(e, i), var, divisor))
            return false;
    return true;
}

/* ---- groups ---- */

static void group_add(struct con_group *g, struct con_index x) {
    g->at[g->n++] = x;
}

struct matcher {
    struct contraction *c;
    const struct statement *s;
    const struct expr *factor[2];
    uint32_t uses[2];
    size_t split; /* variable taken apart, or SIZE_MAX */
    const struct expr *divisor;
    int knows; /* the factor that knows its quotient alone */
    int m;     /* which factor has the rows */
};

/* Both factors need an index of the result that the other has not. Where one has none, a variable
 * that it knows by its quotient alone gives the other the remainder. */
static bool find_split(struct matcher *m) {
    uint32_t index = m->s->nindex >= 32 ? UINT32_MAX : BIT(m->s->nindex) - 1,
             both = m->uses[0] & m->uses[1] & index;
    uint32_t own[2] = {m->uses[0] & ~m->uses[1] & index, m->uses[1] & ~m->uses[0] & index};
    m->split = SIZE_MAX;
    if (own[0] && own[1])
        return true;
    if (!own[0] && !own[1])
        return false;
    m->knows = own[0] ? 0 : 1;
    for (size_t v = 0; v < m->s->nindex; v++) {
        m->divisor = NULL;
        if (!(both & BIT(v)) || !only_quotient(m->factor[m->knows], v, &m->divisor) || !m->divisor)
            continue;
        m->split = v;
        return true;
    }
    return false;
}

static void add_index(struct matcher *m, size_t v) {
    struct contraction *c = m->c;
    struct expr *extent = c->in->task->tensors[m->s->tensor].extent[v];
    bool in0 = m->uses[0] & BIT(v), in1 = m->uses[1] & BIT(v);
    if (v == m->split) {
        struct con_index quotient = {v, CON_QUOTIENT, m->divisor,
                                     expr_pair(c->mem, EXPR_FLOORDIV, extent, m->divisor)};
        struct con_index remainder = {v, CON_REMAINDER, m->divisor, (struct expr *)m->divisor};
        group_add(&c->group[CON_BATCH], quotient);
        group_add(&c->group[m->knows == m->m ? CON_N : CON_M], remainder);
        return;
    }
    struct con_index whole = {v, CON_WHOLE, NULL, extent};
    enum con_axis axis = in0 == in1 ? CON_BATCH : (in0 ? 0 : 1) == m->m ? CON_M : CON_N;
    group_add(&c->group[axis], whole);
}

/* The factor without the result's innermost variable has the rows. */
static int rows_factor(const struct matcher *m) {
    for (size_t v = m->s->nindex; v-- > 0;) {
        bool in0 = m->uses[0] & BIT(v), in1 = m->uses[1] & BIT(v);
        if (in0 != in1)
            return in0 ? 1 : 0;
    }
    return 0;
}

/* ---- what is summed ---- */

static struct expr *extent_by_read(const struct task *t, const struct expr *factor, size_t var) {
    const struct expr *read = read_of(factor);
    for (size_t i = 0; factor->kind == EXPR_READ && i < read->nargs; i++)
        if (expr_is_variable(read->args[i], var))
            return t->tensors[read->ref].extent[i];
    return NULL;
}

struct conditions {
    const struct expr *e[2 * CON_CONDITIONS];
    size_t n;
};

static bool add_condition(struct conditions *to, const struct expr *e) {
    if (e->kind == EXPR_AND)
        return add_condition(to, e->args[0]) && add_condition(to, e->args[1]);
    if (to->n == 2 * CON_CONDITIONS)
        return false;
    to->e[to->n++] = e;
    return true;
}

static bool add_summed(struct matcher *m, const struct reduce_var *v, struct conditions *to) {
    struct contraction *c = m->c;
    struct arena *a = c->mem;
    struct expr *var = expr_variable(a, v->var);
    bool from_zero = expr_is_number(v->lo, 0), sized = !expr_vars(v->hi) && !expr_reads(v->hi);
    struct expr *extent = v->hi;
    for (int i = 0; i < 2 && !sized; i++) {
        struct expr *found = extent_by_read(c->in->task, m->factor[i], v->var);
        sized = found != NULL;
        extent = found ? found : extent;
        if (found && !add_condition(to, expr_pair(a, EXPR_LT, var, v->hi)))
            return false;
        c->k_hi = found ? v->hi : NULL;
    }
    if (!sized || expr_reads(v->lo) || expr_reads(v->hi))
        return false;
    if (!from_zero && !add_condition(to, expr_pair(a, EXPR_LE, v->lo, var)))
        return false;
    c->k_lo = from_zero ? NULL : v->lo;
    group_add(&c->group[CON_K], (struct con_index){v->var, CON_WHOLE, NULL, extent});
    return true;
}

/* out >= 0 is what the condition (or its negation) says, as an affine form. */
static bool inequality(const struct contraction *c, const struct expr *e, bool truth,
                       struct affine *out) {
    bool less = (e->kind == EXPR_LT || e->kind == EXPR_LE) == truth; /* a < b is not: a >= b */
    bool strict = (e->kind == EXPR_LT || e->kind == EXPR_GT) == truth;
    if (e->kind < EXPR_LT || e->kind > EXPR_GE ||
        !affine_of(c->in, expr_pair(c->mem, EXPR_SUB, e->args[less], e->args[!less]), out))
        return false;
    out->c -= strict;
    return true;
}

/* Where the condition does not hold, the task says that the operand is zero anyway. */
static bool is_assumed(const struct contraction *c, const struct expr *read,
                       const struct expr *condition) {
    struct affine outside, zero;
    if (!inequality(c, condition, false, &outside))
        return false;
    for (size_t i = 0; i < c->in->task->nassumptions; i++) {
        const struct assumption *s = &c->in->task->assumptions[i];
        if (s->kind != ASSUME_ZERO || s->tensor != read->ref)
            continue;
        struct expr *map[TASK_MAX_VARS] = {NULL};
        for (size_t k = 0; k < read->nargs; k++)
            if (s->s.position[k] >= 0)
                map[s->s.position[k]] = read->args[k];
        const struct expr *there = expr_replace(s->s.body, map, c->mem);
        if (inequality(c, there, true, &zero) && zero.c == outside.c &&
            memcmp(zero.coef, outside.coef, sizeof zero.coef) == 0)
            return true;
    }
    return false;
}

static bool can_leave(const struct contraction *c, const struct con_operand *o) {
    for (size_t d = 0; d < o->read->nargs; d++)
        if (con_can_leave(c, o, d))
            return true;
    return false;
}

/* A condition goes to an operand that has all its variables. The other one, if it has them too, is
 * read where it holds alone if it might be read outside its tensor otherwise. */
static bool place_condition(struct matcher *m, const struct expr *e, struct con_operand *const *o) {
    uint32_t uses = expr_vars(e), reduced = reduce_vars(m->s->body->reduce);
    for (int i = 0; i < 2; i++)
        if (!(uses & ~(m->uses[i] | reduced)) && is_assumed(m->c, o[i]->read, e))
            return true;
    bool placed = false;
    for (int i = 0; i < 2; i++) {
        if (uses & ~(m->uses[i] | reduced) || o[i]->nconditions == CON_CONDITIONS ||
            (placed && !can_leave(m->c, o[i])))
            continue;
        if (m->split != SIZE_MAX && uses & BIT(m->split))
            return false;
        o[i]->conditions[o[i]->nconditions++] = e;
        placed = true;
    }
    return placed;
}

/* ---- matching ---- */

static bool add_operands(struct matcher *m, struct conditions *conditions) {
    struct contraction *c = m->c;
    struct con_operand *two[2];
    for (int i = 0; i < 2; i++) {
        two[i] = &c->operands[i];
        *two[i] = (struct con_operand){.factor = m->factor[i],
                                       .read = read_of(m->factor[i]),
                                       .side = i == m->m ? CON_M : CON_N};
    }
    for (size_t i = 0; i < conditions->n; i++)
        if (!place_condition(m, conditions->e[i], two))
            return false;
    c->noperands = 2;
    return true;
}

/* Nothing but the product of the two is summed. */
static bool is_product(const struct expr *body, const struct expr *const *two) {
    return body->kind == EXPR_MUL && ((body->args[0] == two[0] && body->args[1] == two[1]) ||
                                      (body->args[0] == two[1] && body->args[1] == two[0]));
}

static bool add_variables(struct matcher *m, struct conditions *conditions) {
    const struct reduce *r = m->s->body->reduce;
    uint32_t all = m->uses[0] | m->uses[1];
    for (size_t v = 0; v < m->s->nindex; v++) {
        if (!(all & BIT(v)))
            return false;
        add_index(m, v);
    }
    for (size_t i = 0; i < r->nvars; i++)
        if (!(all & BIT(r->vars[i].var)) || !add_summed(m, &r->vars[i], conditions))
            return false;
    if (r->nvars != 1)
        m->c->k_lo = m->c->k_hi = NULL;
    return !r->guard || add_condition(conditions, r->guard);
}

bool con_match(const struct inst *in, const struct statement *s, struct arena *a,
               struct contraction *out) {
    struct matcher m = {.c = out, .s = s};
    struct conditions conditions = {.n = 0};
    *out = (struct contraction){.in = in, .mem = a};
    if (!form_is_fold(s) || s->body->value_kind != VALUE_REAL ||
        (s->body->reduce->op != REDUCTION_SUM && s->body->reduce->op != REDUCTION_MEAN) ||
        !find_operands(s, m.factor))
        return false;
    if (!statement_is_whole(in->task, s))
        return false;
    for (int i = 0; i < 2; i++)
        m.uses[i] = expr_vars(m.factor[i]);
    if (!find_split(&m))
        return false;
    m.m = rows_factor(&m);
    if (!add_variables(&m, &conditions) || !add_operands(&m, &conditions) ||
        (s->body->reduce->op == REDUCTION_MEAN && conditions.n))
        return false;
    for (int x = 0; x < CON_AXES; x++)
        con_total(out, &out->group[x]);
    out->folds[0] = (struct con_fold){
        s, {m.m == 0 ? 0 : 1, m.m == 0 ? 1 : 0}, !is_product(s->body->args[0], m.factor)};
    out->nfolds = 1;
    return true;
}

/* ---- several folds ---- */

static bool same_group(const struct con_group *a, const struct con_group *b) {
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].var != b->at[i].var || a->at[i].part != b->at[i].part ||
            !expr_same(a->at[i].extent, b->at[i].extent))
            return false;
    return true;
}

static bool same_operand(const struct con_operand *a, const struct con_operand *b) {
    if (!expr_same(a->factor, b->factor) || a->nconditions != b->nconditions)
        return false;
    for (size_t i = 0; i < a->nconditions; i++)
        if (!expr_same(a->conditions[i], b->conditions[i]))
            return false;
    return true;
}

/* The operand's number; a side's operands are all the same or all different. */
static size_t keep_operand(struct contraction *c, const struct con_operand *o) {
    for (size_t i = 0; i < c->noperands; i++)
        if (c->operands[i].side == o->side && same_operand(&c->operands[i], o))
            return i;
    c->operands[c->noperands] = *o;
    return c->noperands++;
}

bool con_add(struct contraction *c, const struct statement *s) {
    struct contraction other, kept = *c;
    if (c->nfolds == CON_FOLDS || !con_match(c->in, s, c->mem, &other) || other.k_lo ||
        other.k_hi || c->k_lo || c->k_hi)
        return false;
    for (int x = 0; x < CON_AXES; x++)
        if (!same_group(&c->group[x], &other.group[x]))
            return false;
    struct con_fold f = other.folds[0];
    for (int i = 0; i < 2; i++)
        f.operand[i] = keep_operand(c, &other.operands[other.folds[0].operand[i]]);
    c->folds[c->nfolds++] = f;
    size_t m = con_side(c, CON_M), n = con_side(c, CON_N);
    if ((m == 1 || m == c->nfolds) && (n == 1 || n == c->nfolds))
        return true;
    *c = kept;
    return false;
}

bool con_match_all(const struct inst *in, struct arena *a, struct contraction *out) {
    bool first = true;
    for (size_t i = 0; i < in->task->nstatements; i++) {
        const struct statement *s = &in->task->statements[i];
        if (!form_is_fold(s))
            continue;
        if (!(first ? con_match(in, s, a, out) : con_add(out, s)))
            return false;
        first = false;
    }
    return !first;
}
