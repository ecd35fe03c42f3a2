/* Recognition: statement by statement, each brought into canonical variables and registers, until
 * nothing reads the scores that is not part of the chain. */
#include "agent/expert/attention/attention.h"
#include "spec/pattern.h"
#include <math.h>
#include <string.h>

enum kind { NOTHING, SCORE, ROWS, MIXED }; /* what a tensor of the chain is counted by */

struct matcher {
    struct attention *m;
    struct arena *a;
    const struct task *t;
    enum kind kind[TASK_MAX_TENSORS];
    struct expr *value[TASK_MAX_TENSORS];        /* in registers */
    size_t var[TASK_MAX_TENSORS][TASK_MAX_RANK]; /* canonical variables of its dimensions */
    struct expr *weight;                         /* the exponent of the first weight */
    const struct expr *scaled;                   /* the factor behind the maximum, or NULL */
    bool divides;                                /* it divides */
    bool unshifted;                              /* weights of the task are exp(F) */
    bool has_top, has_norm, has_mixed;
    struct keys top_keys;
    const bool *done; /* statements of other steps that are; NULL: all are */
    /* A variable c of a left side that stands for two, read as c // by and c % by: heads side by
     * side in a row of features. In the statement's body c is the first of them from then on, and
     * `inner` the second. SIZE_MAX: the statement has none. */
    struct merged {
        size_t var, inner;
        const struct expr *by;
    } merged, merged_of[TASK_MAX_TENSORS];
};

/* ---- expressions ---- */

static struct expr *real_pair(struct arena *a, enum expr_kind kind, const struct expr *x,
                              const struct expr *y) {
    struct expr *e = expr_pair(a, kind, x, y);
    e->value_kind = VALUE_REAL;
    return e;
}

static struct expr *call_of(struct arena *a, enum function f, const struct expr *x) {
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){.kind = EXPR_CALL, .value_kind = VALUE_REAL, .function = f, .nargs = 1};
    e->args = arena_array(a, struct expr *, 1);
    e->args[0] = (struct expr *)x;
    return e;
}

/* No element of any tensor: it has a negative place. */
static struct expr *register_of(struct arena *a, const struct statement *score, int number) {
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){
        .kind = EXPR_READ, .value_kind = VALUE_REAL, .ref = score->tensor, .nargs = 1};
    e->args = arena_array(a, struct expr *, 1);
    e->args[0] = expr_number(a, -1 - number);
    return e;
}

static bool is_call(const struct expr *e, enum function f) {
    return e->kind == EXPR_CALL && e->function == f;
}

static bool is_minus_infinity(const struct expr *e) {
    if (e->kind == EXPR_NEG)
        return e->args[0]->kind == EXPR_NUMBER && isinf(e->args[0]->number) &&
               e->args[0]->number > 0;
    return e->kind == EXPR_NUMBER && isinf(e->number) && e->number < 0;
}

static bool is_literal(const struct expr *e, double v) {
    return e->kind == EXPR_NUMBER && e->number == v;
}

static bool holds(const struct expr *e, const struct expr *part) {
    if (expr_same(e, part))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (holds(e->args[i], part))
            return true;
    return false;
}

static bool has_sign(const struct expr *e) {
    if (e->kind == EXPR_NEG)
        return true;
    return (e->kind == EXPR_MUL || e->kind == EXPR_DIV) &&
           (has_sign(e->args[0]) || has_sign(e->args[1]));
}

/* The factors of a product without a sign, where all of them fit. */
static bool factors_of(const struct expr *e, struct factors *out) {
    pattern_factors(e, out);
    return !has_sign(e) && out->n + 2 <= FACTORS_MOST;
}

static struct expr *times_factor(struct arena *a, struct expr *e, const struct expr *by,
                                 bool below) {
    if (!below && e->kind == EXPR_NUMBER && e->integral && e->integer == 1)
        return (struct expr *)by;
    return real_pair(a, below ? EXPR_DIV : EXPR_MUL, e, by);
}

/* Greater than 0, whatever the sizes. */
static bool is_positive(const struct expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->number > 0;
    case EXPR_DIM:
        return true;
    case EXPR_CALL:
        return e->function == FUNCTION_EXP ||
               ((e->function == FUNCTION_SQRT || e->function == FUNCTION_RSQRT ||
                 e->function == FUNCTION_POW) &&
                is_positive(e->args[0]));
    case EXPR_MUL:
    case EXPR_DIV:
    case EXPR_ADD:
        return is_positive(e->args[0]) && is_positive(e->args[1]);
    default:
        return false;
    }
}

/* ---- the scores ---- */

static bool is_half(const struct matcher *x, const struct expr *read) {
    enum dtype t = x->t->tensors[read->ref].dtype;
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

/* sum(d) of two reads of one 16-bit type and of factors that are the same for every d. */
struct product {
    const struct expr *a, *b;
    size_t d;
    struct factors rest;
};

static bool product_of(const struct matcher *x, const struct statement *s, struct product *out) {
    struct factors f;
    *out = (struct product){0};
    if (!form_is_fold(s) || s->body->reduce->op != REDUCTION_SUM || s->body->reduce->nvars != 1 ||
        s->body->reduce->guard || !expr_is_number(s->body->reduce->vars[0].lo, 0) ||
        expr_vars(s->body->reduce->vars[0].hi) || expr_reads(s->body->reduce->vars[0].hi) ||
        x->t->tensors[s->tensor].role != TENSOR_LET ||
        x->t->tensors[s->tensor].dtype != DTYPE_F32 || !statement_is_whole(x->t, s) ||
        !factors_of(s->body->args[0], &f))
        return false;
    out->d = s->body->reduce->vars[0].var;
    for (size_t i = 0; i < f.n; i++) {
        const struct expr *e = f.e[i];
        if (!(expr_vars(e) >> out->d & 1)) {
            out->rest.e[out->rest.n] = e;
            out->rest.below[out->rest.n++] = f.below[i];
        } else if (f.below[i] || e->kind != EXPR_READ || !is_half(x, e) || out->b) {
            return false;
        } else if (!out->a) {
            out->a = e;
        } else {
            out->b = e;
        }
    }
    return out->a && out->b && x->t->tensors[out->a->ref].dtype == x->t->tensors[out->b->ref].dtype;
}

static struct expr *replaced(const struct matcher *x, const struct expr *e, const size_t *map) {
    struct expr *to[TASK_MAX_VARS] = {NULL};
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if (map[v] != SIZE_MAX)
            to[v] = expr_variable(x->a, map[v]);
    return expr_replace(e, to, x->a);
}

static bool match_score(struct matcher *x) {
    struct product p;
    struct attention *m = x->m;
    const struct statement *s = m->score;
    size_t map[TASK_MAX_VARS];
    if (!product_of(x, s, &p))
        return false;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        map[v] = SIZE_MAX;
    m->rank = s->nindex;
    m->d = s->nindex;
    m->e = s->nindex + 1;
    map[p.d] = m->d;
    m->q = replaced(x, p.a, map);
    m->k = replaced(x, p.b, map);
    m->size = s->body->reduce->vars[0].hi;
    m->raw = register_of(x->a, s, 0);
    m->top = register_of(x->a, s, 1);
    m->norm = register_of(x->a, s, 2);
    m->mixed = register_of(x->a, s, 3);
    m->key = m->row = m->member = SIZE_MAX;
    x->kind[s->tensor] = SCORE;
    x->value[s->tensor] = m->raw;
    for (size_t i = 0; i < p.rest.n; i++)
        x->value[s->tensor] = times_factor(x->a, x->value[s->tensor], p.rest.e[i], p.rest.below[i]);
    for (size_t i = 0; i < s->nindex; i++)
        x->var[s->tensor][i] = i;
    return true;
}

/* Makes `e` into `pattern` by giving its variables canonical ones. */
static bool unify(const struct expr *pattern, const struct expr *e, size_t *map) {
    if (pattern->kind != e->kind)
        return false;
    if (e->kind == EXPR_INDEX) {
        if (map[e->ref] == SIZE_MAX)
            map[e->ref] = pattern->ref;
        return map[e->ref] == pattern->ref;
    }
    if (e->nargs != pattern->nargs || e->ref != pattern->ref || e->function != pattern->function ||
        e->kind == EXPR_REDUCE || (e->kind == EXPR_NUMBER && !expr_same(pattern, e)))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!unify(pattern->args[i], e->args[i], map))
            return false;
    return true;
}

static const struct expr *extent_of(const struct matcher *x, size_t var) {
    return x->m->score->position[var] >= 0 ? x->t->tensors[x->m->score->tensor].extent[var] : NULL;
}

static int64_t size_at(const struct matcher *x, const struct expr *e) {
    int64_t v;
    return expr_eval_dims(e, x->m->in->dims, &v) ? v : 1;
}

static const struct expr *canonical_extent(const struct matcher *x, size_t var) {
    return var == x->m->e ? x->m->out_size : var < x->m->rank ? extent_of(x, var) : NULL;
}

static size_t count_left(const struct matcher *x, const struct statement *s) {
    return s->nindex + (x->merged.var != SIZE_MAX);
}

/* The left side's variables are canonical ones with their extents, each once. */
static bool note_left(struct matcher *x, const struct statement *s, const size_t *map) {
    uint32_t seen = 0;
    const struct merged *both = &x->merged;
    if (!statement_is_whole(x->t, s))
        return false;
    for (size_t v = 0; v < s->nindex; v++) {
        const struct expr *want = canonical_extent(x, map[v]);
        const struct expr *extent = statement_extent(x->t, s, v);
        if (!want || (seen >> map[v] & 1))
            return false;
        if (v == both->var) {
            const struct expr *inner = canonical_extent(x, map[both->inner]);
            if (map[both->inner] != x->m->e || !inner || !expr_same(inner, both->by) ||
                size_at(x, extent) != size_at(x, want) * size_at(x, inner))
                return false;
            seen |= UINT32_C(1) << x->m->e;
        } else if (!expr_same(want, extent)) {
            return false;
        }
        seen |= UINT32_C(1) << map[v];
        x->var[s->tensor][v] = map[v];
    }
    x->merged_of[s->tensor] = *both;
    return true;
}

/* The same product once more, with its indices in another order. */
static bool match_again(struct matcher *x, const struct statement *s) {
    struct product p;
    if (!product_of(x, s, &p) || s->nindex != x->m->rank)
        return false;
    for (int swap = 0; swap < 2; swap++) {
        size_t map[TASK_MAX_VARS];
        for (size_t v = 0; v < TASK_MAX_VARS; v++)
            map[v] = SIZE_MAX;
        if (!unify(x->m->q, swap ? p.b : p.a, map) || !unify(x->m->k, swap ? p.a : p.b, map) ||
            !note_left(x, s, map))
            continue;
        struct expr *value = x->m->raw;
        for (size_t i = 0; i < p.rest.n; i++)
            value = times_factor(x->a, value, replaced(x, p.rest.e[i], map), p.rest.below[i]);
        x->kind[s->tensor] = SCORE;
        x->value[s->tensor] = value;
        return true;
    }
    return false;
}

/* ---- canonical form ---- */

/* Which canonical variable each variable of a statement is, from how it reads the chain. */
static bool map_variables(const struct matcher *x, const struct expr *e, size_t *map) {
    if (e->kind == EXPR_READ && x->kind[e->ref] != NOTHING) {
        for (size_t i = 0; i < e->nargs; i++) {
            if (e->args[i]->kind != EXPR_INDEX)
                return false;
            size_t *to = &map[e->args[i]->ref], v = x->var[e->ref][i];
            if (*to != SIZE_MAX && *to != v)
                return false;
            *to = v;
        }
        return true;
    }
    if (e->kind == EXPR_PAD && e->args[0]->kind == EXPR_READ && x->kind[e->args[0]->ref] != NOTHING)
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!map_variables(x, expr_part(e, i), map))
            return false;
    return true;
}

static struct expr *with_values(const struct matcher *x, const struct expr *e) {
    if (e->kind == EXPR_READ && x->kind[e->ref] != NOTHING)
        return x->value[e->ref];
    struct expr *to = arena_new_of(x->a, struct expr);
    *to = *e;
    to->args = arena_array(x->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = with_values(x, e->args[i]);
    return to;
}

/* In canonical variables, all of which must be known; registers for what the chain computes. Values
 * hold canonical variables already, so that those of the expression are renamed first. */
static struct expr *in_canonical(const struct matcher *x, const struct expr *e, const size_t *map) {
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if ((expr_vars(e) >> v & 1) && map[v] == SIZE_MAX)
            return NULL;
    return with_values(x, replaced(x, e, map));
}

static bool reads_chain(const struct matcher *x, const struct expr *e) {
    if (e->kind == EXPR_READ && x->kind[e->ref] != NOTHING)
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (reads_chain(x, expr_part(e, i)))
            return true;
    return false;
}

/* ---- masks ---- */

/* The terms of a sum, without what says that a score does not count: `if(c, x, -inf)` is x where c.
 * A score that is left out and one of minus infinity are the same to a softmax. A term
 * `if(c, 0, -inf)` is added to the score like any other: it leaves a score that is NaN one. */
static bool bare_terms(const struct matcher *x, const struct expr *e, bool minus, struct keys *keys,
                       struct terms *out) {
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB)
        return bare_terms(x, e->args[0], minus, keys, out) &&
               bare_terms(x, e->args[1], minus != (e->kind == EXPR_SUB), keys, out);
    if (e->kind == EXPR_NEG && !is_minus_infinity(e))
        return bare_terms(x, e->args[0], !minus, keys, out);
    bool counts = e->kind == EXPR_IF && !minus;
    for (int side = 0; counts && side < 2; side++)
        if (is_minus_infinity(e->args[2 - side]) && holds(e->args[1 + side], x->m->raw))
            return interval_add(keys, e->args[0], side == 0, x->m->key, x->a) &&
                   bare_terms(x, e->args[1 + side], false, keys, out);
    if (is_literal(e, 0))
        return true;
    if (out->n == TERMS_MOST)
        return false;
    out->e[out->n] = e;
    out->minus[out->n++] = minus;
    return true;
}

/* Takes `what` out of the terms; false: it is not among them. */
static bool take_term(struct terms *t, const struct expr *what, bool minus) {
    for (size_t i = 0; i < t->n; i++)
        if (t->minus[i] == minus && expr_same(t->e[i], what)) {
            t->n--;
            memmove(&t->e[i], &t->e[i + 1], (t->n - i) * sizeof *t->e);
            memmove(&t->minus[i], &t->minus[i + 1], (t->n - i) * sizeof *t->minus);
            return true;
        }
    return false;
}

/* The range of a fold over keys; bounds that are the tensor's own ends are none. */
static bool keys_of(const struct matcher *x, const struct reduce *r, const size_t *map,
                    struct keys *out) {
    struct expr *lo = in_canonical(x, r->vars[0].lo, map),
                *hi = in_canonical(x, r->vars[0].hi, map);
    struct expr *guard = r->guard ? in_canonical(x, r->guard, map) : NULL;
    *out = (struct keys){0};
    if (!lo || !hi || (r->guard && !guard) || reads_chain(x, lo) || reads_chain(x, hi) ||
        (guard && reads_chain(x, guard)))
        return false;
    return interval_add_low(out, lo) &&
           (expr_same(hi, extent_of(x, x->m->key)) || interval_add_high(out, hi)) &&
           (!guard || interval_add(out, guard, true, x->m->key, x->a));
}

/* ---- folds over keys ---- */

struct fold {
    const struct statement *s;
    const struct reduce *r;
    size_t map[TASK_MAX_VARS];
    struct expr *body;
    struct keys keys;
};

/* The first fold over a variable of the scores says which one the keys are. */
static bool fold_of(struct matcher *x, const struct statement *s, struct fold *f) {
    f->s = s;
    f->r = s->body->reduce;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        f->map[v] = SIZE_MAX;
    if (f->r->nvars != 1 || !map_variables(x, s->body, f->map))
        return false;
    size_t over = f->map[f->r->vars[0].var];
    if (over >= x->m->rank || (x->m->key != SIZE_MAX && over != x->m->key))
        return false;
    x->m->key = over;
    return true;
}

static bool bind_fold(struct matcher *x, struct fold *f) {
    f->body = in_canonical(x, f->s->body->args[0], f->map);
    return f->body && keys_of(x, f->r, f->map, &f->keys);
}

static bool has_other_registers(const struct matcher *x, const struct expr *e) {
    return holds(e, x->m->top) || holds(e, x->m->norm) || holds(e, x->m->mixed);
}

static bool match_top(struct matcher *x, const struct statement *s) {
    struct fold f;
    struct terms t = {0};
    if (x->has_top || x->has_norm || x->has_mixed || !fold_of(x, s, &f) || !bind_fold(x, &f) ||
        !bare_terms(x, f.body, false, &f.keys, &t) || !note_left(x, s, f.map) ||
        count_left(x, s) != x->m->rank - 1)
        return false;
    x->m->f = terms_sum(&t, x->a);
    if (has_other_registers(x, x->m->f) || !holds(x->m->f, x->m->raw))
        return false;
    x->top_keys = f.keys;
    x->has_top = true;
    x->kind[s->tensor] = ROWS;
    x->value[s->tensor] = x->m->top;
    return true;
}

/* The weight exp(A) is exp(F - top) times a factor of the row. */
enum weight { NO_WEIGHT, PLAIN, UNSHIFTED, DIVIDED };

/* (F - top) * c with a positive c: the scores are scaled behind their maximum. */
static bool rescale(struct matcher *x, const struct expr *e) {
    struct attention *m = x->m;
    struct terms t = {0}, own = {0};
    bool below = e->kind == EXPR_DIV;
    if ((e->kind != EXPR_MUL && !below) || !x->has_top || x->has_norm || x->has_mixed)
        return false;
    for (int side = 0; side < (below ? 1 : 2); side++) {
        const struct expr *sum = e->args[side], *c = e->args[1 - side];
        struct keys ignored = {0};
        t.n = own.n = 0;
        if (!pattern_is_constant(c) || holds(c, m->raw) ||
            !(sum->kind == EXPR_SUB || sum->kind == EXPR_ADD) ||
            !bare_terms(x, sum, false, &ignored, &t) || !terms_of(m->f, false, &own) ||
            !take_term(&t, m->top, true) || t.n != own.n)
            continue;
        for (size_t i = 0; i < own.n; i++)
            if (!take_term(&t, own.e[i], own.minus[i]))
                return false;
        if (!is_positive(c))
            return false;
        m->f = real_pair(x->a, below ? EXPR_DIV : EXPR_MUL, m->f, c);
        x->scaled = c;
        x->divides = below;
        return true;
    }
    return false;
}

static enum weight weight_of(struct matcher *x, struct expr *exponent, struct keys *keys) {
    struct attention *m = x->m;
    struct terms t = {0}, own = {0};
    if (x->weight && expr_same(exponent, x->weight)) {
        /* Of norm: what it says of keys counts here too. */
        return bare_terms(x, exponent, false, keys, &t) ? x->unshifted ? UNSHIFTED : PLAIN
                                                        : NO_WEIGHT;
    }
    if (rescale(x, exponent)) {
        struct terms ignored = {0};
        bool ok = bare_terms(
            x, exponent->args[exponent->kind == EXPR_MUL && pattern_is_constant(exponent->args[0])],
            false, keys, &ignored);
        return ok ? PLAIN : NO_WEIGHT;
    }
    if (!bare_terms(x, exponent, false, keys, &t))
        return NO_WEIGHT;
    if (!m->f) { /* nothing is subtracted: the kernel subtracts the maximum all the same */
        m->f = terms_sum(&t, x->a);
        return has_other_registers(x, m->f) || !holds(m->f, m->raw) ? NO_WEIGHT : UNSHIFTED;
    }
    if (!terms_of(m->f, false, &own))
        return NO_WEIGHT;
    for (size_t i = 0; i < own.n; i++)
        if (!take_term(&t, own.e[i], own.minus[i]))
            return NO_WEIGHT;
    struct expr *top =
        x->scaled ? real_pair(x->a, x->divides ? EXPR_DIV : EXPR_MUL, m->top, x->scaled) : m->top;
    bool shifted = take_term(&t, top, true);
    bool divided = take_term(&t, call_of(x->a, FUNCTION_LOG, m->norm), true);
    if (t.n || (divided && !shifted))
        return NO_WEIGHT;
    return divided ? DIVIDED : shifted ? PLAIN : UNSHIFTED;
}

/* exp(top) where the task's own weights lack it. */
static struct expr *unshifted(const struct matcher *x, struct expr *e) {
    return real_pair(x->a, EXPR_MUL, e, call_of(x->a, FUNCTION_EXP, x->m->top));
}

/* The factors of a term: the weight, and the others. `if(c, weight, 0)` says which keys count. */
static struct expr *find_weight(struct matcher *x, struct fold *f, struct factors *rest) {
    struct factors all;
    struct expr *exponent = NULL;
    struct expr *body = f->body;
    while (body->kind == EXPR_IF &&
           (is_literal(body->args[2], 0) || is_literal(body->args[1], 0))) {
        bool first = is_literal(body->args[2], 0);
        if (!interval_add(&f->keys, body->args[0], first, x->m->key, x->a))
            return NULL;
        body = body->args[first ? 1 : 2];
    }
    if (!factors_of(body, &all))
        return NULL;
    rest->n = 0;
    for (size_t i = 0; i < all.n; i++) {
        const struct expr *e = all.e[i];
        while (!all.below[i] && e->kind == EXPR_IF &&
               (is_literal(e->args[2], 0) || is_literal(e->args[1], 0))) {
            bool first = is_literal(e->args[2], 0);
            if (!interval_add(&f->keys, e->args[0], first, x->m->key, x->a))
                return NULL;
            e = e->args[first ? 1 : 2];
        }
        if (!all.below[i] && !exponent && is_call(e, FUNCTION_EXP) &&
            (expr_vars(e) >> x->m->key & 1 || holds(e, x->m->raw))) {
            exponent = e->args[0];
        } else if (!is_literal(e, 1)) {
            rest->e[rest->n] = e;
            rest->below[rest->n++] = all.below[i];
        }
    }
    return exponent;
}

/* The keys of norm and of mixed are one interval. */
static bool note_keys(struct matcher *x, const struct keys *keys) {
    if (x->has_norm || x->has_mixed)
        return interval_same(&x->m->keys, keys);
    x->m->keys = *keys;
    return true;
}

static bool match_norm(struct matcher *x, const struct statement *s) {
    struct fold f;
    struct factors rest;
    struct expr *exponent;
    if (!fold_of(x, s, &f) || count_left(x, s) != x->m->rank - 1 || !bind_fold(x, &f) ||
        !(exponent = find_weight(x, &f, &rest)) || rest.n || !note_left(x, s, f.map))
        return false;
    enum weight w = weight_of(x, exponent, &f.keys);
    if ((w != PLAIN && w != UNSHIFTED) || !note_keys(x, &f.keys))
        return false;
    if (!x->weight) {
        x->weight = exponent;
        x->unshifted = w == UNSHIFTED;
    }
    x->has_norm = true;
    x->kind[s->tensor] = ROWS;
    x->value[s->tensor] = w == PLAIN ? x->m->norm : unshifted(x, x->m->norm);
    return true;
}

static bool match_mixed(struct matcher *x, const struct statement *s) {
    struct fold f;
    struct factors rest;
    struct attention *m = x->m;
    struct expr *exponent;
    size_t loose = SIZE_MAX;
    if (x->has_mixed || !fold_of(x, s, &f) || count_left(x, s) != m->rank)
        return false;
    for (size_t n = 0; n < count_left(x, s); n++) {
        size_t v = n < s->nindex ? n : x->merged.inner;
        if (f.map[v] == SIZE_MAX) {
            if (loose != SIZE_MAX)
                return false;
            loose = v;
        }
    }
    if (loose == SIZE_MAX)
        return false;
    f.map[loose] = m->e;
    m->out_size = loose == x->merged.inner ? x->merged.by : statement_extent(x->t, s, loose);
    if (!bind_fold(x, &f) || !(exponent = find_weight(x, &f, &rest)) || !note_left(x, s, f.map))
        return false;
    enum weight w = weight_of(x, exponent, &f.keys);
    if (w == NO_WEIGHT || !note_keys(x, &f.keys))
        return false;
    if (w != DIVIDED && !x->weight) {
        x->weight = exponent;
        x->unshifted = w == UNSHIFTED;
    }
    struct expr *value = w == UNSHIFTED ? unshifted(x, m->mixed) : m->mixed;
    if (w == DIVIDED)
        value = real_pair(x->a, EXPR_DIV, value, m->norm);
    for (size_t i = 0; i < rest.n; i++) {
        const struct expr *e = rest.e[i];
        bool varies = expr_vars(e) >> m->key & 1;
        if (!varies && !holds(e, m->raw) && !holds(e, m->mixed) && !(expr_vars(e) >> m->e & 1)) {
            value = times_factor(x->a, value, e, rest.below[i]);
            continue;
        }
        if (m->v || rest.below[i] || e->kind != EXPR_READ || reads_chain(x, e) ||
            x->t->tensors[e->ref].dtype != x->t->tensors[m->q->ref].dtype)
            return false;
        m->v = e;
    }
    x->has_mixed = m->v != NULL;
    x->kind[s->tensor] = MIXED;
    x->value[s->tensor] = value;
    return x->has_mixed;
}

/* ---- what is stored ---- */

static struct expr *simple_product(const struct matcher *x, struct expr *e) {
    struct factors f;
    bool gone[FACTORS_MOST] = {false}, any = false;
    const struct expr *shift = call_of(x->a, FUNCTION_EXP, x->m->top);
    if (!holds(e, shift) || !factors_of(e, &f))
        return e;
    for (size_t i = 0; i < f.n; i++)
        for (size_t k = 0; k < i && !gone[i]; k++)
            if (!gone[k] && f.below[i] != f.below[k] && expr_same(f.e[i], shift) &&
                expr_same(f.e[k], shift))
                gone[i] = gone[k] = any = true;
    if (!any)
        return e;
    struct expr *out = expr_number(x->a, 1);
    for (int below = 0; below < 2; below++)
        for (size_t i = 0; i < f.n; i++)
            if (!gone[i] && f.below[i] == (below == 1))
                out = times_factor(x->a, out, f.e[i], below == 1);
    return out;
}

/* exp(top) cancels in quotients, and comes out of logarithms. */
static struct expr *simple(const struct matcher *x, const struct expr *given) {
    struct expr *e = arena_new_of(x->a, struct expr);
    *e = *given;
    e->args = arena_array(x->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        e->args[i] = simple(x, given->args[i]);
    if (e->kind == EXPR_MUL || e->kind == EXPR_DIV)
        return simple_product(x, e);
    if (is_call(e, FUNCTION_LOG) && expr_same(e->args[0], unshifted(x, x->m->norm)))
        return real_pair(x->a, EXPR_ADD, x->m->top, call_of(x->a, FUNCTION_LOG, x->m->norm));
    return e;
}

/* What it reads besides the chain is there. */
static bool is_ready(const struct matcher *x, const struct expr *e) {
    if (e->kind == EXPR_READ && x->done && x->t->tensors[e->ref].role == TENSOR_LET &&
        x->kind[e->ref] == NOTHING && !form_defined_by(x->t, x->done, e->ref))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!is_ready(x, e->args[i]))
            return false;
    return true;
}

/* The part stands somewhere else than in an exponential. */
static bool holds_outside_exp(const struct expr *e, const struct expr *part) {
    if (is_call(e, FUNCTION_EXP))
        return false;
    if (expr_same(e, part))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (holds_outside_exp(e->args[i], part))
            return true;
    return false;
}

/* The task may round weights to the operands' type, as the kernel does: the class that allows the
 * one allows the other. It may not round scores, whose errors exponentials make larger. */
static bool may_round(const struct matcher *x, const struct tensor *to, const struct expr *value) {
    return to->dtype == DTYPE_F32 ||
           (to->dtype == x->t->tensors[x->m->q->ref].dtype && !holds_outside_exp(value, x->m->raw));
}

/* A map of what the chain computes, in f32 or stored. */
static bool match_map(struct matcher *x, const struct statement *s) {
    size_t map[TASK_MAX_VARS];
    const struct tensor *to = &x->t->tensors[s->tensor];
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        map[v] = SIZE_MAX;
    if (!form_is_map(s) || to->role == TENSOR_INOUT || form_definitions(x->t, s->tensor) != 1 ||
        !map_variables(x, s->body, map) || !note_left(x, s, map) || !is_ready(x, s->body))
        return false;
    struct expr *value = in_canonical(x, s->body, map);
    if (!value)
        return false;
    bool scores = holds(value, x->m->raw), mixed = holds(value, x->m->mixed);
    if ((scores && (mixed || to->role != TENSOR_LET || !may_round(x, to, value))) ||
        (!scores && count_left(x, s) != x->m->rank - !mixed))
        return false;
    value = simple(x, value);
    x->kind[s->tensor] = scores ? SCORE : mixed ? MIXED : ROWS;
    x->value[s->tensor] = value;
    if (to->dtype != DTYPE_F32 && !scores) /* rounded: whoever reads it reads memory */
        x->kind[s->tensor] = NOTHING;
    return true;
}

/* Where the scores are scaled behind their maximum, the task's is that of the unscaled ones. */
static struct expr *own_top(const struct matcher *x, struct expr *e) {
    if (!x->scaled)
        return e;
    if (expr_same(e, x->m->top))
        return real_pair(x->a, x->divides ? EXPR_MUL : EXPR_DIV, e, x->scaled);
    for (size_t i = 0; i < e->nargs; i++) /* `simple` has made a copy */
        e->args[i] = own_top(x, e->args[i]);
    return e;
}

static bool add_store(struct matcher *x, const struct statement *s, struct expr *value) {
    struct attention *m = x->m;
    if (m->nstores == ATTENTION_STORES)
        return false;
    m->stores[m->nstores].s = s;
    m->stores[m->nstores].value = value;
    memcpy(m->stores[m->nstores].var, x->var[s->tensor], sizeof x->var[s->tensor]);
    m->stores[m->nstores].of_row = true;
    m->stores[m->nstores].merged = x->merged_of[s->tensor].var;
    m->stores[m->nstores].by = x->merged_of[s->tensor].by;
    for (size_t i = 0; i < s->nindex; i++)
        if (x->var[s->tensor][i] == m->e || i == m->stores[m->nstores].merged)
            m->stores[m->nstores].of_row = false;
    m->nstores++;
    return true;
}

/* exp(top) that the kernel has brought in may be left nowhere, and a maximum over other keys than
 * the kernel's may be seen by nobody. */
static bool is_sound(const struct matcher *x, const struct expr *value) {
    const struct expr *shift = call_of(x->a, FUNCTION_EXP, x->m->top);
    return !holds(value, shift) &&
           (!x->has_top || interval_same(&x->top_keys, &x->m->keys) || !holds(value, x->m->top));
}

/* ---- operands ---- */

static bool is_size(const struct expr *e) {
    return !expr_vars(e) && !expr_reads(e);
}

struct expr *attention_stride(const struct attention *m, const struct expr *read, size_t var,
                              struct arena *a) {
    const struct tensor *x = &m->in->task->tensors[read->ref];
    struct expr *stride = NULL;
    for (size_t i = 0; i < read->nargs; i++) {
        struct terms t = {0};
        if (!(expr_vars(read->args[i]) >> var & 1))
            continue;
        if (stride || !terms_of(read->args[i], false, &t))
            return NULL;
        for (size_t k = 0; k < t.n; k++) {
            const struct expr *e = t.e[k];
            if (!(expr_vars(e) >> var & 1))
                continue;
            bool product = e->kind == EXPR_MUL;
            bool second = product && expr_is_variable(e->args[1], var);
            if (stride || t.minus[k] ||
                !(expr_is_variable(e, var) ||
                  (product && expr_is_variable(e->args[second], var) && is_size(e->args[!second]))))
                return NULL;
            stride = product ? e->args[!second] : expr_number(a, 1);
        }
        for (size_t k = i + 1; stride && k < x->rank; k++)
            stride = expr_times(a, stride, x->extent[k]);
    }
    return stride;
}

/* Of the variables that neither keys nor values have, the one with most values counts queries. */
static void choose_row(struct matcher *x) {
    struct attention *m = x->m;
    uint32_t shared = expr_vars(m->k) | expr_vars(m->v);
    int64_t most = 0;
    for (size_t v = 0; v < m->rank; v++) {
        int64_t extent = size_at(x, extent_of(x, v));
        if (v == m->key || (shared >> v & 1))
            continue;
        if (extent >= most) {
            if (m->row != SIZE_MAX)
                m->member = m->row;
            most = extent;
            m->row = v;
        } else {
            m->member = v;
        }
    }
    if (m->row != SIZE_MAX)
        m->nrows = extent_of(x, m->row);
    if (m->member != SIZE_MAX)
        m->group = extent_of(x, m->member);
}

/* The variable is read only as var // by; `by` is found on the way. */
static bool only_divided(const struct expr *e, size_t var, const struct expr **by) {
    if (e->kind == EXPR_FLOORDIV && expr_is_variable(e->args[0], var) && is_size(e->args[1])) {
        if (*by && !expr_same(*by, e->args[1]))
            return false;
        *by = e->args[1];
        return true;
    }
    if (expr_is_variable(e, var))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!only_divided(e->args[i], var, by))
            return false;
    return true;
}

static void find_group(struct matcher *x) {
    struct attention *m = x->m;
    for (size_t v = 0; v < m->rank && m->member == SIZE_MAX; v++) {
        const struct expr *by = NULL;
        if (v == m->key || v == m->row || !only_divided(m->k, v, &by) ||
            !only_divided(m->v, v, &by) || !by)
            continue;
        m->member = v;
        m->group = by;
        m->member_divides = true;
    }
}

static bool match_operands(struct matcher *x) {
    struct attention *m = x->m;
    if (!(expr_vars(m->k) >> m->key & 1)) {
        const struct expr *other = m->k;
        m->k = m->q;
        m->q = other;
    }
    if ((expr_vars(m->q) >> m->key & 1) || (expr_vars(m->v) >> m->d & 1))
        return false;
    m->nkeys = extent_of(x, m->key);
    choose_row(x);
    find_group(x);
    return attention_stride(m, m->q, m->d, x->a) && attention_stride(m, m->k, m->d, x->a) &&
           attention_stride(m, m->k, m->key, x->a) && attention_stride(m, m->v, m->e, x->a) &&
           attention_stride(m, m->v, m->key, x->a);
}

/* Weights are rounded to the operands' type, which the class has to allow. Below 2^-24 weights in
 * f16 vanish, and what they multiply may be all that there is: TF32 and bf16 keep them. */
static bool allows_rounding(const struct matcher *x) {
    bool half = x->t->tensors[x->m->q->ref].dtype == DTYPE_F16;
    return x->t->accuracy == (half ? ACCURACY_F16 : ACCURACY_BF16);
}

/* ---- the chain ---- */

/* Whether the chain is read at c // by or c % by, with c of the left side. */
static void find_merged(const struct matcher *x, const struct statement *s, const struct expr *e,
                        struct merged *out) {
    for (size_t i = 0; e->kind == EXPR_READ && x->kind[e->ref] != NOTHING && i < e->nargs; i++) {
        const struct expr *a = e->args[i];
        if ((a->kind == EXPR_FLOORDIV || a->kind == EXPR_MOD) && a->args[0]->kind == EXPR_INDEX &&
            a->args[0]->ref < s->nindex && out->var == SIZE_MAX && !expr_vars(a->args[1]) &&
            !expr_reads(a->args[1]))
            *out = (struct merged){a->args[0]->ref, s->nvars, a->args[1]};
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        find_merged(x, s, expr_part(e, i), out);
}

static struct expr *split_merged(const struct matcher *x, const struct expr *e) {
    const struct merged *both = &x->merged;
    bool halves = e->kind == EXPR_FLOORDIV || e->kind == EXPR_MOD;
    if (halves && expr_is_variable(e->args[0], both->var) && expr_same(e->args[1], both->by))
        return expr_variable(x->a, e->kind == EXPR_MOD ? both->inner : both->var);
    if (expr_is_variable(e, both->var))
        return expr_pair(x->a, EXPR_ADD,
                         expr_times(x->a, expr_variable(x->a, both->var), (struct expr *)both->by),
                         expr_variable(x->a, both->inner));
    struct expr *to = arena_new_of(x->a, struct expr);
    *to = *e;
    to->args = arena_array(x->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = split_merged(x, e->args[i]);
    return to;
}

static bool match_whole_statement(struct matcher *x, const struct statement *s);

/* With a merged variable as the two that it stands for. Whoever reads the result reads memory. */
static bool match_statement(struct matcher *x, const struct statement *s) {
    x->merged = (struct merged){SIZE_MAX, SIZE_MAX, NULL};
    find_merged(x, s, s->body, &x->merged);
    if (x->merged.var == SIZE_MAX)
        return match_whole_statement(x, s);
    const struct reduce *r = s->body->kind == EXPR_REDUCE ? s->body->reduce : NULL;
    struct statement both = *s;
    if (s->nvars >= TASK_MAX_VARS || (r && r->guard))
        return false;
    for (size_t i = 0; r && i < r->nvars; i++)
        if ((expr_vars(r->vars[i].lo) | expr_vars(r->vars[i].hi)) >> x->merged.var & 1)
            return false;
    both.body = split_merged(x, s->body);
    bool ok = match_whole_statement(x, &both);
    x->kind[s->tensor] = NOTHING;
    return ok;
}

static bool match_whole_statement(struct matcher *x, const struct statement *s) {
    if (!reads_chain(x, s->body))
        return match_again(x, s);
    if (!form_is_fold(s))
        return match_map(x, s);
    if (x->t->tensors[s->tensor].role == TENSOR_INOUT || form_definitions(x->t, s->tensor) != 1)
        return false;
    if (s->body->reduce->op == REDUCTION_MAX)
        return match_top(x, s);
    if (s->body->reduce->op != REDUCTION_SUM)
        return false;
    return match_norm(x, s) || match_mixed(x, s);
}

static bool collect(struct matcher *x, size_t first, bool *take) {
    for (size_t i = first + 1; i < x->t->nstatements; i++) {
        const struct statement *s = &x->t->statements[i];
        struct attention kept = *x->m;
        take[i] = match_statement(x, s);
        if (!take[i]) { /* what was set on the way */
            *x->m = kept;
            x->kind[s->tensor] = NOTHING;
        }
    }
    return x->has_mixed;
}

/* Scores are in registers alone: nothing else may read them. */
static bool is_closed(const struct matcher *x, const bool *take) {
    for (size_t i = 0; i < x->t->nstatements; i++) {
        uint64_t reads = expr_tensors(x->t->statements[i].body);
        for (size_t k = 0; !take[i] && k < x->t->ntensors; k++)
            if ((reads >> k & 1) && x->kind[k] == SCORE)
                return false;
    }
    return true;
}

/* Outputs, of the task or of this part of it. What somebody else reads becomes one. */
static bool find_stores(struct matcher *x, const bool *take) {
    const struct task *t = x->t;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        bool stored = t->tensors[s->tensor].role == TENSOR_OUT;
        for (size_t k = 0; take[i] && !stored && k < t->nstatements; k++)
            stored = !take[k] && expr_reads_tensor(t->statements[k].body, s->tensor);
        if (!take[i] || !stored)
            continue;
        struct expr *value = own_top(x, simple(x, x->value[s->tensor]));
        if (!is_sound(x, value) || !add_store(x, s, value))
            return false;
    }
    return x->m->nstores > 0;
}

bool attention_match(const struct inst *in, size_t first, const bool *done, struct arena *a,
                     struct attention *out, bool *take) {
    struct matcher *x = arena_new_of(a, struct matcher);
    *out = (struct attention){.in = in, .score = &in->task->statements[first]};
    *x = (struct matcher){.m = out, .a = a, .t = in->task, .done = done};
    x->merged.var = SIZE_MAX;
    if (!match_score(x) || !allows_rounding(x) || !collect(x, first, take))
        return false;
    take[first] = true;
    return match_operands(x) && is_closed(x, take) && find_stores(x, take);
}

/* ---- F ---- */

struct expr *attention_scale(const struct attention *m, struct arena *a) {
    struct factors f;
    struct expr *scale = expr_number(a, 1);
    bool seen = false;
    if (!factors_of(m->f, &f))
        return NULL;
    for (int below = 0; below < 2; below++)
        for (size_t i = 0; i < f.n; i++) {
            if (f.below[i] != (below == 1))
                continue;
            if (expr_same(f.e[i], m->raw) && !below && !seen)
                seen = true;
            else if (pattern_is_constant(f.e[i]) && is_positive(f.e[i]))
                scale = times_factor(a, scale, f.e[i], below == 1);
            else
                return NULL;
        }
    return seen ? scale : NULL;
}
