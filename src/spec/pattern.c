/* Recognition by structure alone; sizes do not matter here. */
#include "spec/pattern.h"

#include "spec/bounds.h"
#include "spec/scalar.h"
#include "spec/value.h"

uint32_t reduce_vars(const struct reduce *r) {
    uint32_t vars = 0;
    for (size_t i = 0; i < r->nvars; i++)
        vars |= UINT32_C(1) << r->vars[i].var;
    return vars;
}

/* `held`: places kept for right operands of products further out, so that every leaf has room. */
static void collect(const struct expr *e, bool below, size_t held, struct factors *out) {
    bool splits = e->kind == EXPR_NEG || e->kind == EXPR_MUL || e->kind == EXPR_DIV;
    if (!splits || out->n + held + 2 > FACTORS_MOST) {
        out->e[out->n] = e;
        out->below[out->n++] = below;
        return;
    }
    collect(e->args[0], below, held + (e->kind != EXPR_NEG), out);
    if (e->kind != EXPR_NEG)
        collect(e->args[1], below != (e->kind == EXPR_DIV), held, out);
}

void pattern_factors(const struct expr *e, struct factors *out) {
    out->n = 0;
    collect(e, false, 0, out);
}

bool pattern_is_constant(const struct expr *e) {
    if (e->kind == EXPR_READ || e->kind == EXPR_INDEX || e->kind == EXPR_REDUCE)
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!pattern_is_constant(e->args[i]))
            return false;
    return true;
}

bool pattern_constant_is(const struct inst *in, const struct expr *e, double value) {
    struct scalar s = {.in = in};
    return pattern_is_constant(e) && scalar_eval(&s, e) == value;
}

static bool compares_one(const struct expr *guard, uint32_t outer) {
    return guard->kind >= EXPR_LT && guard->kind <= EXPR_GE && !expr_reads(guard) &&
           __builtin_popcount(outer) == 1;
}

bool pattern_is_prefix(const struct expr *e) {
    const struct reduce *r = e->reduce;
    if (r->nvars != 1)
        return false;
    uint32_t shared = expr_vars(e->args[0]) | reduce_vars(r);
    uint32_t lo = expr_vars(r->vars[0].lo) & ~shared, hi = expr_vars(r->vars[0].hi) & ~shared;
    uint32_t guard = r->guard ? expr_vars(r->guard) & ~shared : 0;
    if (guard)
        return !lo && !hi && compares_one(r->guard, guard);
    return (lo == 0) != (hi == 0) && __builtin_popcount(lo | hi) == 1;
}

/* A variable plus a number. */
static bool is_shifted(const struct expr *e, size_t *var, int64_t *by) {
    bool sum = e->kind == EXPR_ADD || e->kind == EXPR_SUB;
    const struct expr *v = sum ? e->args[0] : e;
    if (v->kind != EXPR_INDEX ||
        (sum && !(e->args[1]->kind == EXPR_NUMBER && e->args[1]->integral)))
        return false;
    *var = v->ref;
    *by = !sum ? 0 : e->kind == EXPR_ADD ? e->args[1]->integer : -e->args[1]->integer;
    return true;
}

static bool is_plain_reduction(const struct expr *e, enum reduction op) {
    return e->kind == EXPR_REDUCE && e->reduce->op == op && e->reduce->nvars == 1 &&
           !e->reduce->guard && e->value_kind == VALUE_REAL;
}

bool pattern_is_recurrence(const struct expr *e, struct recurrence *out) {
    const struct expr *body = e->args[0];
    size_t end, start;
    int64_t past, past_decay, from;
    if (!is_plain_reduction(e, REDUCTION_SUM) || body->kind != EXPR_MUL)
        return false;
    int side = is_plain_reduction(body->args[1], REDUCTION_PROD);
    const struct expr *product = body->args[side];
    const struct reduce_var *v = &e->reduce->vars[0];
    if (!is_plain_reduction(product, REDUCTION_PROD) || !expr_is_number(v->lo, 0) ||
        !is_shifted(v->hi, &end, &past) || past < 0 || past > 1)
        return false;
    const struct reduce_var *k = &product->reduce->vars[0];
    *out = (struct recurrence){.term = body->args[!side],
                               .decay = product->args[0],
                               .product = product,
                               .axis = end,
                               .var = v->var,
                               .decay_var = k->var,
                               .exclusive = past == 0};
    if (!is_shifted(k->hi, &end, &past_decay) || end != out->axis || past_decay != past ||
        !is_shifted(k->lo, &start, &from) || start != v->var || from < 0 || from > 1)
        return false;
    out->with_own = from == 0;
    uint32_t axis = UINT32_C(1) << out->axis, var = UINT32_C(1) << v->var,
             decay = UINT32_C(1) << k->var;
    return !(expr_vars(out->term) & axis) && !(expr_vars(out->decay) & (axis | var)) &&
           (expr_vars(out->decay) & decay) && out->term->value_kind == VALUE_REAL;
}

bool pattern_is_contraction(const struct expr *e) {
    struct factors f;
    struct recurrence ignored;
    uint32_t all = 0, reduced = reduce_vars(e->reduce);
    size_t reading = 0;
    bool reused = false;
    if ((e->reduce->op != REDUCTION_SUM && e->reduce->op != REDUCTION_MEAN) ||
        pattern_is_prefix(e) || pattern_is_recurrence(e, &ignored))
        return false;
    pattern_factors(e->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        all |= expr_vars(f.e[i]);
    for (size_t i = 0; i < f.n; i++) {
        uint32_t vars = expr_vars(f.e[i]);
        if (!expr_reads(f.e[i]) || !(vars & reduced) || f.below[i])
            continue;
        reading++;
        reused |= vars != all;
    }
    return reading >= 2 && reused;
}

bool pattern_is_gather(const struct expr *read) {
    for (size_t k = 0; k < read->nargs; k++)
        if (expr_reads(read->args[k]))
            return true;
    return false;
}

static bool pins(const struct expr *index, const struct expr *number) {
    return index->kind == EXPR_INDEX && expr_reads(number) &&
           !(expr_vars(number) >> index->ref & 1);
}

bool pattern_pins(const struct expr *e) {
    return e->kind == EXPR_EQ && (pins(e->args[0], e->args[1]) || pins(e->args[1], e->args[0]));
}

/* The class's format holds every element of what is read. */
static bool fits_format(const struct task *t, const struct expr *e) {
    const struct expr *read = e->kind == EXPR_PAD ? e->args[0] : e;
    if (read->kind != EXPR_READ || t->tensors[read->ref].role == TENSOR_LET)
        return false;
    switch (t->tensors[read->ref].dtype) {
    case DTYPE_F16:
        return t->accuracy != ACCURACY_BF16;
    case DTYPE_BF16:
    case DTYPE_I8:
    case DTYPE_U8:
    case DTYPE_BOOL:
        return true;
    default:
        return false;
    }
}

static bool is_product(const struct expr *e) {
    return e->kind == EXPR_MUL || e->kind == EXPR_NEG || e->kind == EXPR_DIV;
}

/* What a divisor holds is no factor. */
static size_t factor_parts(const struct expr *e) {
    return e->kind == EXPR_MUL ? 2 : 1;
}

void pattern_count_rounded(const struct task *t, const struct expr *e, uint32_t over,
                           size_t *factors, size_t *rounded) {
    for (size_t k = 0; is_product(e) && k < factor_parts(e); k++)
        pattern_count_rounded(t, e->args[k], over, factors, rounded);
    if (is_product(e) || !(expr_vars(e) & over))
        return;
    ++*factors;
    *rounded += !fits_format(t, e);
}

static bool is_computed(const struct task *t, const struct expr *e, uint32_t over) {
    for (size_t k = 0; is_product(e) && k < factor_parts(e); k++)
        if (is_computed(t, e->args[k], over))
            return true;
    const struct expr *read = e->kind == EXPR_PAD ? e->args[0] : e;
    return !is_product(e) && (expr_vars(e) & over) && e->value_kind == VALUE_REAL &&
           (read->kind != EXPR_READ || t->tensors[read->ref].role == TENSOR_LET);
}

/* Near zero a format is coarse, so a small element of an input is off by much of itself. Beside
 * another input, whose numbers are as small then (data.c), the product vanishes either way; a
 * computed factor, a weight of a softmax, is of any magnitude. */
static void mark_product(const struct task *t, struct expr *e, uint32_t over, bool computed) {
    for (size_t k = 0; is_product(e) && k < factor_parts(e); k++)
        mark_product(t, e->args[k], over, computed);
    bool factor = !is_product(e) && expr_vars(e) & over && e->value_kind == VALUE_REAL;
    e->factor |= factor;
    e->loses |= factor && computed && !fits_format(t, e);
}

static void mark_factors(const struct task *t, struct expr *e) {
    size_t factors = 0, rounded = 0;
    for (size_t k = 0; k < e->nargs; k++)
        mark_factors(t, e->args[k]);
    if (e->kind != EXPR_REDUCE ||
        (e->reduce->op != REDUCTION_SUM && e->reduce->op != REDUCTION_MEAN))
        return;
    pattern_count_rounded(t, e->args[0], reduce_vars(e->reduce), &factors, &rounded);
    if (factors >= 2)
        mark_product(t, e->args[0], reduce_vars(e->reduce),
                     is_computed(t, e->args[0], reduce_vars(e->reduce)));
}

void pattern_mark_factors(struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        mark_factors(t, t->statements[i].body);
}

bool pattern_is_pure(const struct expr *e) {
    if (e->kind == EXPR_READ || e->kind == EXPR_PAD || e->kind == EXPR_REDUCE ||
        e->value_kind == VALUE_REAL || (e->kind == EXPR_CALL && e->function == FUNCTION_POW))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!pattern_is_pure(e->args[i]))
            return false;
    return true;
}

bool pattern_wants_real(const struct expr *e) {
    if (e->kind >= EXPR_EQ && e->kind <= EXPR_GE)
        return e->args[0]->value_kind == VALUE_REAL || e->args[1]->value_kind == VALUE_REAL;
    if (e->kind == EXPR_CALL && function_takes_integers(e->function))
        return false;
    return e->value_kind == VALUE_REAL;
}

/* A difference, or what may hide one. */
static bool is_difference(const struct task *t, const struct expr *e) {
    if (e->value_kind != VALUE_REAL)
        return false;
    if (e->kind == EXPR_READ || e->kind == EXPR_PAD)
        return t->tensors[e->kind == EXPR_PAD ? e->args[0]->ref : e->ref].role == TENSOR_LET;
    return e->kind == EXPR_REDUCE || e->kind == EXPR_SUB;
}

int pattern_settling(const struct task *t, const struct expr *e) {
    int how = e->value_kind == VALUE_INT    ? SETTLE_INTEGER
              : e->value_kind == VALUE_BOOL ? SETTLE_TRUTH
                                            : 0;
    switch (e->kind) {
    case EXPR_MUL:
        how |= is_difference(t, e->args[0]) || is_difference(t, e->args[1]) ? SETTLE_REGROUPS : 0;
        return how | SETTLE_FACTORS;
    case EXPR_DIV:
        return how | SETTLE_FACTORS | POLE_DIVISOR;
    case EXPR_CALL:
        return how | function_info(e->function)->pole;
    default:
        return how;
    }
}

bool pattern_holds_pad(const struct expr *e) {
    bool holds = e->kind == EXPR_PAD;
    for (size_t k = 0; k < e->nargs && !holds; k++)
        holds = pattern_holds_pad(e->args[k]);
    return holds;
}

bool pattern_bounds_vary(const struct reduce *r) {
    bool vary = false;
    for (size_t k = 0; k < r->nvars; k++)
        vary |= expr_vars(r->vars[k].lo) || expr_vars(r->vars[k].hi);
    return vary;
}

bool pattern_is_index(const struct task *t, const struct statement *s) {
    return tensor_is_output(&t->tensors[s->tensor]) && s->body->kind == EXPR_REDUCE &&
           (s->body->reduce->op == REDUCTION_ARGMAX || s->body->reduce->op == REDUCTION_ARGMIN);
}
