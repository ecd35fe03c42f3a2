/* Recognition of attention, statement by statement. */
#include "agent/expert/attention/attention.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <string.h>

static bool is_variable(const struct expr *e, size_t var) {
    return e->kind == EXPR_INDEX && e->ref == var;
}

/* The variable stands alone in exactly one index of the read. */
static bool indexes_once(const struct expr *read, size_t var) {
    size_t alone = 0;
    for (size_t i = 0; i < read->nargs; i++)
        if (is_variable(read->args[i], var))
            alone++;
        else if (expr_vars(read->args[i]) >> var & 1)
            return false;
    return alone == 1;
}

/* The innermost index is the variable, over all of its extent. */
static bool runs_along(const struct inst *in, const struct expr *read, size_t var,
                       const struct expr *extent) {
    return read->nargs && is_variable(read->args[read->nargs - 1], var) &&
           expr_same(in->task->tensors[read->ref].extent[read->nargs - 1], extent);
}

static bool has_range_of_one(const struct statement *s, enum reduction op) {
    return form_is_fold(s) && s->body->reduce->op == op && s->body->reduce->nvars == 1;
}

static bool is_half(const struct inst *in, const struct expr *read) {
    enum dtype t = in->task->tensors[read->ref].dtype;
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

/* score: two plain reads of one 16-bit type. */
static bool match_score(struct attention *m) {
    struct factors f;
    const struct statement *s = m->score;
    if (!form_is_product(s) || !has_range_of_one(s, REDUCTION_SUM) || s->body->reduce->guard ||
        !expr_is_number(s->body->reduce->vars[0].lo, 0) ||
        m->in->task->tensors[s->tensor].role != TENSOR_LET)
        return false;
    pattern_factors(s->body->args[0], &f);
    m->inner = s->body->reduce->vars[0].var;
    if (f.n != 2 || s->body->args[0]->kind != EXPR_MUL || f.e[0]->kind != EXPR_READ ||
        f.e[1]->kind != EXPR_READ || !is_half(m->in, f.e[0]) ||
        m->in->task->tensors[f.e[0]->ref].dtype != m->in->task->tensors[f.e[1]->ref].dtype)
        return false;
    m->q = f.e[0];
    m->k = f.e[1];
    return true;
}

/* Which variable of `score` each variable of `s` is, from its one way of reading the scores. */
static bool map_variables(const struct attention *m, const struct expr *e, size_t *map) {
    if (e->kind == EXPR_READ && e->ref == m->score->tensor) {
        for (size_t i = 0; i < e->nargs; i++) {
            if (e->args[i]->kind != EXPR_INDEX)
                return false;
            size_t *to = &map[e->args[i]->ref];
            if (*to != SIZE_MAX && *to != i)
                return false;
            *to = i;
        }
        return true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!map_variables(m, expr_part(e, i), map))
            return false;
    return true;
}

/* In variables of `score`; those it does not have are numbered behind its own. */
static struct expr *in_scores(const struct attention *m, const struct expr *e, const size_t *map) {
    struct expr *to[TASK_MAX_VARS] = {NULL};
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        to[v] = arena_new_of(m->mem, struct expr);
        *to[v] = (struct expr){.kind = EXPR_INDEX,
                               .value_kind = VALUE_INT,
                               .ref = map[v] != SIZE_MAX ? map[v] : TASK_MAX_VARS - 1};
    }
    return expr_replace(e, to, m->mem);
}

static bool map_fold(const struct attention *m, const struct statement *s, size_t *map) {
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        map[v] = SIZE_MAX;
    return map_variables(m, s->body, map) && map[s->body->reduce->vars[0].var] != SIZE_MAX;
}

/* The range of the keys, the same in all folds over them. */
static bool same_range(const struct attention *m, const struct reduce *r, const size_t *map) {
    return expr_same(in_scores(m, r->vars[0].lo, map), m->lo) &&
           expr_same(in_scores(m, r->vars[0].hi, map), m->hi) && !r->guard == !m->guard &&
           (!r->guard || expr_same(in_scores(m, r->guard, map), m->guard));
}

static bool match_top(struct attention *m) {
    size_t map[TASK_MAX_VARS];
    const struct statement *s = m->top;
    if (!map_fold(m, s, map))
        return false;
    const struct reduce *r = s->body->reduce;
    m->key = map[r->vars[0].var];
    m->lo = in_scores(m, r->vars[0].lo, map);
    m->hi = in_scores(m, r->vars[0].hi, map);
    m->guard = r->guard ? in_scores(m, r->guard, map) : NULL;
    m->f = in_scores(m, s->body->args[0], map);
    if (expr_vars(m->k) >> m->key & 1) {
        /* as it is */
    } else {
        const struct expr *other = m->k;
        m->k = m->q;
        m->q = other;
    }
    uint32_t rows = expr_vars(m->q) & ~expr_vars(m->k);
    if (__builtin_popcount(rows) != 1 || (expr_vars(m->q) >> m->key & 1))
        return false;
    m->row = (size_t)__builtin_ctz(rows);
    return s->nindex == m->score->nindex - 1 && m->row != m->key &&
           !(expr_vars(m->f) >> (TASK_MAX_VARS - 1) & 1);
}

/* exp(F - top), in variables of `score`. */
static bool is_weight(const struct attention *m, const struct expr *e, const size_t *map) {
    const struct expr *x = e->kind == EXPR_CALL && e->function == FUNCTION_EXP ? e->args[0] : NULL;
    if (!x || x->kind != EXPR_SUB || x->args[1]->kind != EXPR_READ ||
        x->args[1]->ref != m->top->tensor || !expr_same(in_scores(m, x->args[0], map), m->f))
        return false;
    size_t top_map[TASK_MAX_VARS];
    if (!map_fold(m, m->top, top_map))
        return false;
    for (size_t i = 0; i < x->args[1]->nargs; i++)
        if (x->args[1]->args[i]->kind != EXPR_INDEX || map[x->args[1]->args[i]->ref] != top_map[i])
            return false;
    return true;
}

static bool match_norm(const struct attention *m) {
    size_t map[TASK_MAX_VARS];
    const struct statement *s = m->norm;
    return map_fold(m, s, map) && map[s->body->reduce->vars[0].var] == m->key &&
           same_range(m, s->body->reduce, map) && is_weight(m, s->body->args[0], map) &&
           s->nindex == m->top->nindex;
}

static bool match_mixed(struct attention *m) {
    struct factors f;
    size_t *map = m->mixed_var;
    const struct statement *s = m->mixed;
    if (!map_fold(m, s, map) || map[s->body->reduce->vars[0].var] != m->key ||
        !same_range(m, s->body->reduce, map) || s->body->args[0]->kind != EXPR_MUL)
        return false;
    pattern_factors(s->body->args[0], &f);
    bool first = f.n == 2 && is_weight(m, f.e[0], map);
    m->v = f.n == 2 ? f.e[first] : NULL;
    if (!m->v || m->v->kind != EXPR_READ || (!first && !is_weight(m, f.e[1], map)) ||
        m->in->task->tensors[m->v->ref].dtype != m->in->task->tensors[m->q->ref].dtype)
        return false;
    m->key_of_mixed = s->body->reduce->vars[0].var;
    size_t loose = 0;
    for (size_t v = 0; v < s->nindex; v++)
        if (map[v] == SIZE_MAX) {
            m->out = v;
            loose++;
        }
    return loose == 1 && s->nindex == m->score->nindex && indexes_once(m->v, m->key_of_mixed) &&
           indexes_once(m->v, m->out) && !(expr_vars(m->v) >> m->row & 1 && map[m->row] == m->row);
}

/* Rows of q and k run along d, rows of v along e. */
static bool lies_well(const struct attention *m) {
    const struct expr *d = m->score->body->reduce->vars[0].hi;
    const struct task *t = m->in->task;
    const struct expr *e = t->tensors[m->mixed->tensor].extent[m->out];
    for (size_t v = 0; v < m->mixed->nindex; v++)
        if (m->mixed_var[v] == m->row && (expr_vars(m->v) >> v & 1))
            return false;
    return runs_along(m->in, m->q, m->inner, d) && runs_along(m->in, m->k, m->inner, d) &&
           runs_along(m->in, m->v, m->out, e) && indexes_once(m->q, m->row) &&
           indexes_once(m->k, m->key) && expr_same(d, e);
}

/* The maps that read `mixed` at their own element; norm and top where the row says. */
static bool take_maps(const struct attention *m, bool *take) {
    const struct task *t = m->in->task;
    bool any = false;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (!expr_reads_tensor(s->body, m->mixed->tensor) || s == m->mixed)
            continue;
        if (!form_is_map(s) || s->nindex != m->mixed->nindex ||
            t->tensors[s->tensor].rank != s->nindex)
            return false;
        take[i] = any = true;
    }
    return any;
}

static const struct statement *find_fold(const struct attention *m, size_t from, enum reduction op,
                                         size_t *at) {
    const struct task *t = m->in->task;
    for (size_t i = from; i < t->nstatements; i++)
        if (has_range_of_one(&t->statements[i], op) &&
            expr_reads_tensor(t->statements[i].body, m->score->tensor)) {
            *at = i;
            return &t->statements[i];
        }
    return NULL;
}

/* Nothing but the chain reads what the chain does not store. */
static bool is_closed(const struct attention *m, const bool *take) {
    const struct task *t = m->in->task;
    const struct statement *inside[] = {m->score, m->top, m->norm, m->mixed};
    for (size_t i = 0; i < t->nstatements; i++)
        for (size_t k = 0; !take[i] && k < 4; k++)
            if (expr_reads_tensor(t->statements[i].body, inside[k]->tensor))
                return false;
    return true;
}

bool attention_match(const struct inst *in, size_t first, struct arena *a, struct attention *out,
                     bool *take) {
    const struct task *t = in->task;
    size_t top, norm, mixed;
    *out = (struct attention){.in = in, .mem = a, .score = &t->statements[first]};
    if (!match_score(out) || !(out->top = find_fold(out, first + 1, REDUCTION_MAX, &top)) ||
        !match_top(out) || !(out->norm = find_fold(out, top + 1, REDUCTION_SUM, &norm)))
        return false;
    /* The two sums come in either order. */
    out->mixed = find_fold(out, norm + 1, REDUCTION_SUM, &mixed);
    if (!out->mixed)
        return false;
    if (!match_norm(out)) {
        const struct statement *other = out->norm;
        out->norm = out->mixed;
        out->mixed = other;
        if (!match_norm(out))
            return false;
    }
    take[first] = take[top] = take[norm] = take[mixed] = true;
    return match_mixed(out) && lies_well(out) && take_maps(out, take) && is_closed(out, take);
}
