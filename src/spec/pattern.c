/* Recognition by structure alone; sizes do not matter here. */
#include "spec/pattern.h"

#include "spec/bounds.h"
#include "spec/scalar.h"
#include "spec/value.h"
#include <math.h>
#include <stdlib.h>

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

/* ---- recurrences ---- */

static uint32_t bit(size_t var) {
    return UINT32_C(1) << var;
}

/* The axis and the direction: 0 <= j < i + by, or i + by <= j < N. */
static bool range_of_terms(const struct reduce_var *v, struct recurrence *out) {
    int64_t by;
    out->var = v->var;
    if (expr_is_number(v->lo, 0) && is_shifted(v->hi, &out->axis, &by)) {
        out->exclusive = by == 0;
        return by == 0 || by == 1;
    }
    out->backwards = true;
    if (!is_shifted(v->lo, &out->axis, &by) || expr_vars(v->hi))
        return false;
    out->exclusive = by == 1;
    return by == 0 || by == 1;
}

/* The factor that has the axis is the weight, the others are those of the term. */
static const struct expr *split_weight(const struct expr *e, struct recurrence *out) {
    uint32_t axis = bit(out->axis);
    while (e->kind == EXPR_MUL || e->kind == EXPR_DIV || e->kind == EXPR_NEG) {
        if (e->kind == EXPR_NEG) {
            out->negated = !out->negated;
            e = e->args[0];
            continue;
        }
        int side = e->kind == EXPR_MUL && (expr_vars(e->args[1]) & axis);
        const struct expr *other = e->args[!side];
        if (out->nfactors == RECURRENCE_FACTORS || (expr_vars(other) & axis))
            return NULL;
        out->factor[out->nfactors] = other;
        out->below[out->nfactors++] = e->kind == EXPR_DIV;
        e = e->args[side];
    }
    return e;
}

/* Over all places from the term's to the result's: one end is left out, or none, or both. */
static bool is_between(const struct expr *e, struct recurrence *out) {
    const struct reduce_var *k = &e->reduce->vars[0];
    const struct expr *near = out->backwards ? k->lo : k->hi, *far = out->backwards ? k->hi : k->lo;
    size_t end, start;
    int64_t by, from;
    if (!is_shifted(near, &end, &by) || !is_shifted(far, &start, &from) || end != out->axis ||
        start != out->var || by != (out->backwards ? out->exclusive : !out->exclusive) ||
        from < 0 || from > 1)
        return false;
    out->with_own = out->backwards ? from == 1 : from == 0;
    out->over = e->reduce;
    out->decay = e->args[0];
    out->decay_var = k->var;
    uint32_t vars = expr_vars(out->decay);
    return !(vars & (bit(out->axis) | bit(out->var))) && (vars & bit(out->decay_var));
}

/* coef[0]·axis + coef[1]·var + c */
static bool add_linear(const struct expr *e, const struct recurrence *r, int64_t sign,
                       int64_t *coef, int64_t *c) {
    bool sum = e->kind == EXPR_ADD || e->kind == EXPR_SUB;
    if (sum)
        return add_linear(e->args[0], r, sign, coef, c) &&
               add_linear(e->args[1], r, e->kind == EXPR_ADD ? sign : -sign, coef, c);
    if (e->kind == EXPR_NUMBER && e->integral && e->integer >= -1 && e->integer <= 1) {
        *c += sign * e->integer;
        return true;
    }
    if (e->kind != EXPR_INDEX || (e->ref != r->axis && e->ref != r->var))
        return false;
    coef[e->ref == r->var] += sign;
    return true;
}

/* How far the term is from the result, and a number: finds whether a term decays by the factor of
 * its own place, and where the distance is one. `positive`: not the distance's negative. */
static bool is_distance(const struct expr *e, bool positive, struct recurrence *out) {
    int64_t coef[2] = {0, 0}, c = 0;
    if (!add_linear(e, out, 1, coef, &c) || coef[0] != -coef[1] || llabs(coef[0]) != 1)
        return false;
    int64_t sign = coef[out->backwards];
    int64_t more = sign * c + out->exclusive; /* than the steps from the one place to the other */
    if ((positive && sign < 0) || more < 0 || more > 1)
        return false;
    out->with_own = more == 1;
    out->at_axis = out->backwards ? 0 : 1 - sign * c;
    out->at_var = out->backwards ? 1 - sign * c : 0;
    return true;
}

/* A multiple of the distance. */
static bool is_multiple(const struct expr *e, struct recurrence *out) {
    uint32_t both = bit(out->axis) | bit(out->var);
    while (e->kind == EXPR_NEG || e->kind == EXPR_MUL || e->kind == EXPR_DIV) {
        int side = e->kind == EXPR_MUL && (expr_vars(e->args[1]) & both);
        if (e->kind != EXPR_NEG && (expr_vars(e->args[!side]) & both))
            return false;
        e = e->args[side];
    }
    return is_distance(e, false, out);
}

/* A sum over the places between, its negative, or a multiple of the distance. */
static bool is_exponent(const struct expr *e, struct recurrence *out) {
    bool negative = e->kind == EXPR_NEG;
    const struct expr *sum = negative ? e->args[0] : e;
    if (is_plain_reduction(sum, REDUCTION_SUM)) {
        out->opposite = negative;
        return is_between(sum, out);
    }
    out->opposite = false;
    out->decay = e;
    return e->value_kind == VALUE_REAL && is_multiple(e, out);
}

static bool is_decay(const struct expr *e, struct recurrence *out) {
    if (is_plain_reduction(e, REDUCTION_PROD))
        return is_between(e, out);
    if (e->kind != EXPR_CALL || (e->function != FUNCTION_EXP && e->function != FUNCTION_POW))
        return false;
    if (e->function == FUNCTION_POW) {
        out->decay = e->args[0];
        return !(expr_vars(out->decay) & (bit(out->axis) | bit(out->var))) &&
               is_distance(e->args[1], true, out);
    }
    const struct expr *power = e->args[0];
    out->exponential = true;
    if (is_exponent(power, out))
        return true;
    if (power->kind != EXPR_ADD && power->kind != EXPR_SUB)
        return false;
    int side = (expr_vars(power->args[1]) & bit(out->axis)) != 0;
    bool less = power->kind == EXPR_SUB;
    out->gain = power->args[!side];
    out->loss = less && side == 0;
    if ((expr_vars(out->gain) & bit(out->axis)) || !is_exponent(power->args[side], out))
        return false;
    out->opposite = out->opposite != (less && side == 1);
    return true;
}

bool pattern_is_recurrence(const struct expr *e, struct recurrence *out) {
    *out = (struct recurrence){.nfactors = 0};
    if (!is_plain_reduction(e, REDUCTION_SUM) || !range_of_terms(&e->reduce->vars[0], out))
        return false;
    const struct expr *weight = split_weight(e->args[0], out);
    bool real = weight && weight->value_kind == VALUE_REAL;
    return real && (expr_vars(weight) & bit(out->axis)) && is_decay(weight, out);
}

/* A sum of parts of which each has the axis, or the variable, or none. */
static bool is_apart(const struct expr *e, uint32_t axis, uint32_t var) {
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB)
        return is_apart(e->args[0], axis, var) && is_apart(e->args[1], axis, var);
    if (e->kind == EXPR_NEG)
        return is_apart(e->args[0], axis, var);
    return !(expr_vars(e) & axis) || !(expr_vars(e) & var);
}

bool pattern_is_exponentials(const struct expr *e, struct exponentials *out) {
    struct recurrence *terms = &out->terms;
    *out = (struct exponentials){.power = NULL};
    if (!is_plain_reduction(e, REDUCTION_SUM) || !range_of_terms(&e->reduce->vars[0], terms))
        return false;
    const struct expr *power = out->power = split_weight(e->args[0], terms);
    uint32_t axis = bit(terms->axis), var = bit(terms->var);
    return power && power->kind == EXPR_CALL && power->function == FUNCTION_EXP &&
           (expr_vars(power) & axis) && (expr_vars(power) & var) && !expr_has(power, EXPR_REDUCE) &&
           is_apart(power->args[0], axis, var);
}

/* ---- segments ---- */

/* k >= start[j], or k <= stop[j], on either side. */
static const struct expr *segment_bound(const struct expr *g, size_t var, bool backwards) {
    if (g->kind < EXPR_LT || g->kind > EXPR_GE)
        return NULL;
    bool flipped = g->args[1]->kind == EXPR_INDEX && g->args[1]->ref == var;
    const struct expr *k = g->args[flipped], *bound = g->args[!flipped];
    bool above = (g->kind == EXPR_GE || g->kind == EXPR_GT) != flipped;
    if (k->kind != EXPR_INDEX || k->ref != var || above == backwards)
        return NULL;
    if (g->kind == EXPR_LT || g->kind == EXPR_GT) { /* k < stop[j] + 1 */
        if (!backwards || bound->kind != EXPR_ADD || !expr_is_number(bound->args[1], 1))
            return NULL;
        bound = bound->args[0];
    }
    return bound->kind == EXPR_READ ? bound : NULL;
}

/* The place of the term itself, or none: a number that no place is smaller than, or, from the end,
 * one that no place is larger than. */
static bool is_place_or_none(const struct expr *e, const struct reduce_var *v, bool backwards) {
    if (e->kind != EXPR_IF)
        return false;
    int side = e->args[2]->kind == EXPR_INDEX ? 2 : 1;
    const struct expr *place = e->args[side], *none = e->args[3 - side];
    if (place->kind != EXPR_INDEX || place->ref != v->var)
        return false;
    if (!backwards)
        return expr_is_number(none, 0) || expr_is_number(none, -1) ||
               (none->kind == EXPR_NEG && none->args[0]->kind == EXPR_NUMBER);
    bool last = none->kind == EXPR_SUB && expr_same(none->args[0], v->hi) &&
                expr_is_number(none->args[1], 1);
    return last || expr_same(none, v->hi);
}

/* The element for the axis of a tensor of places where segments begin so far. */
static bool is_running_place(const struct task *t, const struct expr *read, size_t axis,
                             bool backwards) {
    const struct statement *s = NULL;
    size_t definitions = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == read->ref) {
            s = &t->statements[i];
            definitions++;
        }
    struct recurrence range = {.nfactors = 0};
    if (definitions != 1 || s->body->kind != EXPR_REDUCE || s->body->reduce->nvars != 1 ||
        s->body->reduce->guard || !range_of_terms(&s->body->reduce->vars[0], &range) ||
        range.exclusive || range.backwards != backwards ||
        s->body->reduce->op != (backwards ? REDUCTION_MIN : REDUCTION_MAX))
        return false;
    for (size_t i = 0; i < read->nargs; i++) {
        const struct expr *at = read->args[i];
        bool along = s->position[i] == (int)range.axis;
        bool own = at->kind == EXPR_INDEX && at->ref == axis;
        if (s->position[i] < 0 || (along ? !own : (expr_vars(at) & bit(axis)) != 0))
            return false;
    }
    return is_place_or_none(s->body->args[0], &s->body->reduce->vars[0], backwards);
}

/* One part of the guard is the bound, the others do not have the axis. */
static bool find_bound(const struct expr *g, const struct recurrence *range,
                       const struct expr **bound) {
    if (g->kind == EXPR_AND)
        return find_bound(g->args[0], range, bound) && find_bound(g->args[1], range, bound);
    const struct expr *found = *bound ? NULL : segment_bound(g, range->var, range->backwards);
    if (found)
        *bound = found;
    return found || !(expr_vars(g) & bit(range->axis));
}

bool pattern_is_segments(const struct task *t, const struct expr *e, struct segments *out) {
    const struct reduce *r = e->reduce;
    struct recurrence range = {.nfactors = 0};
    *out = (struct segments){.bound = NULL};
    if (e->kind != EXPR_REDUCE || r->nvars != 1 || !r->guard || r->op >= REDUCTION_MEAN ||
        e->value_kind == VALUE_BOOL || !range_of_terms(&r->vars[0], &range) ||
        (expr_vars(e->args[0]) & bit(range.axis)) || expr_has(r->guard, EXPR_REDUCE) ||
        !find_bound(r->guard, &range, &out->bound) || !out->bound)
        return false;
    out->axis = range.axis;
    out->var = range.var;
    out->backwards = range.backwards;
    out->exclusive = range.exclusive;
    return !(expr_vars(out->bound) & bit(range.var)) &&
           (!t || is_running_place(t, out->bound, range.axis, range.backwards));
}

bool pattern_is_contraction(const struct expr *e) {
    struct factors f;
    struct recurrence ignored;
    struct exponentials scaled;
    uint32_t all = 0, reduced = reduce_vars(e->reduce);
    size_t reading = 0;
    bool reused = false;
    if ((e->reduce->op != REDUCTION_SUM && e->reduce->op != REDUCTION_MEAN) ||
        pattern_is_prefix(e) || pattern_is_recurrence(e, &ignored) ||
        pattern_is_exponentials(e, &scaled))
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

/* ---- reductions by index ---- */

/* Whole by construction, also where it is computed with reals: floor(x[t]*K). As deep as the tree.
 */
static bool is_whole(const struct expr *e) {
    bool call = e->kind == EXPR_CALL, whole = true;
    if (e->value_kind != VALUE_REAL)
        return e->value_kind == VALUE_INT;
    if (call && function_info(e->function)->result == RESULT_WHOLE)
        return true;
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB && e->kind != EXPR_MUL && e->kind != EXPR_NEG &&
        !(call && function_info(e->function)->result == RESULT_KEPT))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        whole = whole && is_whole(e->args[i]);
    return whole;
}

/* A whole number from the data of the terms, which does not depend on the index that it equals. */
static bool is_key(const struct expr *key, size_t var, uint32_t reduced) {
    return is_whole(key) && expr_reads(key) && (expr_vars(key) & reduced) &&
           !(expr_vars(key) >> var & 1);
}

static bool is_result_index(const struct expr *e, uint32_t reduced) {
    return e->kind == EXPR_INDEX && !(reduced >> e->ref & 1);
}

static void add_pin(struct by_index *by, size_t var, const struct expr *key) {
    if (by->npins == BY_INDEX_MOST || by->pinned >> var & 1)
        return;
    by->pin[by->npins].var = var;
    by->pin[by->npins++].key = key;
    by->pinned |= UINT32_C(1) << var;
}

/* As deep as the tree. */
static void find_pins(struct by_index *by, const struct expr *condition) {
    if (condition->kind == EXPR_AND) {
        find_pins(by, condition->args[0]);
        find_pins(by, condition->args[1]);
    }
    if (condition->kind != EXPR_EQ)
        return;
    for (int side = 0; side < 2; side++) {
        const struct expr *index = condition->args[side], *key = condition->args[!side];
        if (is_result_index(index, by->reduced) && is_key(key, index->ref, by->reduced)) {
            add_pin(by, index->ref, key);
            return;
        }
    }
}

/* An index whose number depends on another one that is equated is a condition like any other. */
static void drop_dependent(struct by_index *by) {
    for (size_t i = by->npins; i-- > 0;) {
        if (!(expr_vars(by->pin[i].key) & by->pinned))
            continue;
        by->pinned &= ~(UINT32_C(1) << by->pin[i].var);
        by->pin[i] = by->pin[--by->npins];
    }
    for (size_t i = 0; i < by->npins; i++)
        by->shared |= expr_vars(by->pin[i].key) & ~by->reduced;
}

/* What a term that is left out would be. */
static bool is_neutral(const struct expr *e, enum reduction op) {
    bool below = e->kind == EXPR_NEG;
    const struct expr *number = below ? e->args[0] : e;
    if (number->kind != EXPR_NUMBER)
        return false;
    switch (op) {
    case REDUCTION_SUM:
        return number->number == 0;
    case REDUCTION_PROD:
        return !below && number->number == 1;
    case REDUCTION_MAX:
        return below && isinf(number->number);
    case REDUCTION_MIN:
        return !below && isinf(number->number);
    default:
        return false;
    }
}

bool pattern_is_by_index(const struct expr *e, struct by_index *out) {
    if (e->kind != EXPR_REDUCE || pattern_bounds_vary(e->reduce))
        return false;
    const struct expr *body = e->args[0];
    *out = (struct by_index){
        .guard = e->reduce->guard, .term = body, .reduced = reduce_vars(e->reduce)};
    if (out->guard)
        find_pins(out, out->guard);
    if (body->kind == EXPR_IF && is_neutral(body->args[2], e->reduce->op)) {
        out->chosen = body->args[0];
        out->term = body->args[1];
        find_pins(out, out->chosen);
    }
    drop_dependent(out);
    return out->npins > 0;
}

bool pattern_equates(const struct by_index *by, const struct expr *condition) {
    struct by_index alone = {.reduced = by->reduced};
    if (condition->kind != EXPR_EQ)
        return false;
    find_pins(&alone, condition);
    for (size_t i = 0; i < by->npins && alone.npins; i++)
        if (by->pin[i].var == alone.pin[0].var && by->pin[i].key == alone.pin[0].key)
            return true;
    return false;
}
