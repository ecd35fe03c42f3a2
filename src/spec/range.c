/* Interval arithmetic over variables, and how conditions narrow it. */
#include "spec/bounds.h"

#include "base/checked.h"

struct ranges ranges_of(const struct inst *in, const struct statement *s) {
    struct ranges r = {.in = in};
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++)
        if (s->position[k] >= 0)
            r.index[s->position[k]] = (struct range){0, in->tensors[s->tensor].extent[k] - 1};
    return r;
}

static struct range hull(struct range a, struct range b) {
    return (struct range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

typedef bool fold(int64_t a, int64_t b, int64_t *out);

/* Multiplication and floor division (by one sign) reach their extremes at the corners. */
static enum range_result corners(struct range a, struct range b, fold *f, struct range *out) {
    int64_t v[4];
    if (!f(a.lo, b.lo, &v[0]) || !f(a.lo, b.hi, &v[1]) || !f(a.hi, b.lo, &v[2]) ||
        !f(a.hi, b.hi, &v[3]))
        return RANGE_OVERFLOW;
    *out = (struct range){v[0], v[0]};
    for (int i = 1; i < 4; i++)
        *out = hull(*out, (struct range){v[i], v[i]});
    return RANGE_OK;
}

static enum range_result range_mod(struct range a, struct range b, struct range *out) {
    int64_t below, above;
    if (b.lo == b.hi && floordiv_i64(a.lo, b.lo, &below) && floordiv_i64(a.hi, b.lo, &above) &&
        below == above) {
        return floormod_i64(a.lo, b.lo, &out->lo) && floormod_i64(a.hi, b.lo, &out->hi)
                   ? RANGE_OK
                   : RANGE_OVERFLOW;
    }
    *out = b.lo > 0 ? (struct range){0, b.hi - 1} : (struct range){b.lo + 1, 0};
    return RANGE_OK;
}

static enum range_result range_binary(enum expr_kind kind, struct range a, struct range b,
                                      struct range *out) {
    bool ok;
    switch (kind) {
    case EXPR_ADD:
        ok = add_i64(a.lo, b.lo, &out->lo) && add_i64(a.hi, b.hi, &out->hi);
        return ok ? RANGE_OK : RANGE_OVERFLOW;
    case EXPR_SUB:
        ok = sub_i64(a.lo, b.hi, &out->lo) && sub_i64(a.hi, b.lo, &out->hi);
        return ok ? RANGE_OK : RANGE_OVERFLOW;
    case EXPR_MUL:
        return corners(a, b, mul_i64, out);
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        if (b.lo <= 0 && b.hi >= 0)
            return RANGE_ZERO;
        return kind == EXPR_MOD ? range_mod(a, b, out) : corners(a, b, floordiv_i64, out);
    default:
        return RANGE_UNKNOWN;
    }
}

static struct range range_max(struct range a, struct range b) {
    return (struct range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static struct range range_min(struct range a, struct range b) {
    return (struct range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

static enum range_result range_abs(struct range a, struct range *out) {
    int64_t lo, hi;
    if (!sub_i64(0, a.lo, &hi) || !sub_i64(0, a.hi, &lo))
        return RANGE_OVERFLOW;
    if (a.lo >= 0)
        *out = a;
    else
        *out = (struct range){a.hi <= 0 ? lo : 0, a.hi > hi ? a.hi : hi};
    return RANGE_OK;
}

static enum range_result eval(const struct ranges *r, const struct expr *e, bool facts,
                              struct range *out);

/* For operations whose result is bounded whatever an operand is. */
static enum range_result eval_any(const struct ranges *r, const struct expr *e, bool facts,
                                  struct range *out) {
    enum range_result got = eval(r, e, facts, out);
    if (got != RANGE_UNKNOWN)
        return got;
    *out = (struct range){INT64_MIN, INT64_MAX};
    return RANGE_OK;
}

static enum range_result range_call(const struct ranges *r, const struct expr *e, bool facts,
                                    struct range *out) {
    struct range a[3];
    for (size_t i = 0; i < e->nargs; i++) {
        enum range_result got = e->function == FUNCTION_ABS ? eval(r, e->args[i], facts, &a[i])
                                                            : eval_any(r, e->args[i], facts, &a[i]);
        if (got != RANGE_OK)
            return got;
    }
    switch (e->function) {
    case FUNCTION_ABS:
        return range_abs(a[0], out);
    case FUNCTION_MAXIMUM:
        *out = range_max(a[0], a[1]);
        return RANGE_OK;
    case FUNCTION_MINIMUM:
        *out = range_min(a[0], a[1]);
        return RANGE_OK;
    case FUNCTION_CLAMP:
        *out = range_min(range_max(a[0], a[1]), a[2]);
        return RANGE_OK;
    default:
        return RANGE_UNKNOWN;
    }
}

static enum range_result range_if(const struct ranges *r, const struct expr *e, bool facts,
                                  struct range *out) {
    struct ranges yes = *r, no = *r;
    struct range a, b;
    bool some_yes = ranges_narrow(&yes, e->args[0], true);
    bool some_no = ranges_narrow(&no, e->args[0], false);
    enum range_result got = some_yes ? eval(&yes, e->args[1], facts, &a) : RANGE_OK;
    if (got == RANGE_OK && some_no)
        got = eval(&no, e->args[2], facts, &b);
    if (got == RANGE_OK)
        *out = !some_no ? a : !some_yes ? b : hull(a, b);
    return got;
}

/* Of reductions only those that pick: a place, or one of the values. */
static enum range_result range_reduce(const struct ranges *r, const struct expr *e, bool facts,
                                      struct range *out) {
    struct ranges inner = *r;
    enum reduction op = e->reduce->op;
    if (op == REDUCTION_SUM || op == REDUCTION_PROD || !ranges_enter(&inner, e->reduce))
        return RANGE_UNKNOWN;
    if (op == REDUCTION_MAX || op == REDUCTION_MIN)
        return eval(&inner, e->args[0], facts, out);
    *out = inner.index[e->reduce->vars[0].var];
    return RANGE_OK;
}

/* An integer of which nothing is known but its type. */
static enum range_result range_element(const struct ranges *r, const struct expr *e,
                                       struct range *out) {
    const struct bound_tensor *t = &r->in->tensors[e->ref];
    *out = (struct range){t->lo, t->hi};
    return t->lo == INT64_MIN && t->hi == INT64_MAX ? RANGE_UNKNOWN : RANGE_OK;
}

static enum range_result eval_binary(const struct ranges *r, const struct expr *e, bool facts,
                                     struct range *out) {
    struct range a, b;
    enum range_result got =
        e->kind == EXPR_MOD ? eval_any(r, e->args[0], facts, &a) : eval(r, e->args[0], facts, &a);
    if (got == RANGE_OK)
        got = eval(r, e->args[1], facts, &b);
    return got != RANGE_OK ? got : range_binary(e->kind, a, b, out);
}

static enum range_result eval_node(const struct ranges *r, const struct expr *e, bool facts,
                                   struct range *out) {
    struct range a;
    enum range_result got;
    switch (e->kind) {
    case EXPR_NUMBER:
        *out = (struct range){e->integer, e->integer};
        return RANGE_OK;
    case EXPR_DIM:
        *out = (struct range){r->in->dims[e->ref], r->in->dims[e->ref]};
        return RANGE_OK;
    case EXPR_INDEX:
        *out = r->index[e->ref];
        return RANGE_OK;
    case EXPR_READ:
        return range_element(r, e, out);
    case EXPR_PAD:
        got = eval(r, e->args[0], facts, out);
        if (got == RANGE_OK)
            got = eval(r, e->args[1], facts, &a);
        if (got == RANGE_OK)
            *out = hull(*out, a);
        return got;
    case EXPR_REDUCE:
        return range_reduce(r, e, facts, out);
    case EXPR_NEG:
        got = eval(r, e->args[0], facts, &a);
        return got != RANGE_OK ? got : range_binary(EXPR_SUB, (struct range){0, 0}, a, out);
    case EXPR_CALL:
        return range_call(r, e, facts, out);
    case EXPR_IF:
        return range_if(r, e, facts, out);
    default:
        return eval_binary(r, e, facts, out);
    }
}

static enum range_result eval(const struct ranges *r, const struct expr *e, bool facts,
                              struct range *out) {
    if (e->value_kind != VALUE_INT)
        return RANGE_UNKNOWN;
    enum range_result got = eval_node(r, e, facts, out);
    if (!facts || r->nfacts == 0 || (got != RANGE_OK && got != RANGE_UNKNOWN))
        return got;
    struct range everything = {INT64_MIN, INT64_MAX};
    struct range v = got == RANGE_OK ? *out : everything;
    facts_apply(r, e, &v);
    if (got == RANGE_UNKNOWN && (v.lo == INT64_MIN || v.hi == INT64_MAX))
        return RANGE_UNKNOWN;
    *out = v.lo <= v.hi ? v : *out;
    return RANGE_OK;
}

enum range_result range_of(const struct ranges *r, const struct expr *e, struct range *out) {
    return eval(r, e, true, out);
}

enum range_result range_plain(const struct ranges *r, const struct expr *e, struct range *out) {
    return eval(r, e, false, out);
}

/* e = variable + offset. */
static bool variable_plus(const struct ranges *r, const struct expr *e, size_t *variable,
                          int64_t *offset) {
    struct range c;
    *offset = 0;
    if (e->kind == EXPR_INDEX) {
        *variable = e->ref;
        return true;
    }
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB)
        return false;
    const struct expr *a = e->args[0], *b = e->args[1];
    if (e->kind == EXPR_ADD && a->kind != EXPR_INDEX) {
        const struct expr *swap = a;
        a = b;
        b = swap;
    }
    if (a->kind != EXPR_INDEX || range_of(r, b, &c) != RANGE_OK || c.lo != c.hi)
        return false;
    *variable = a->ref;
    if (e->kind == EXPR_SUB)
        return sub_i64(0, c.lo, offset);
    *offset = c.lo;
    return true;
}

static enum expr_kind negated(enum expr_kind k) {
    static const enum expr_kind table[][2] = {
        {EXPR_EQ, EXPR_NE}, {EXPR_LT, EXPR_GE}, {EXPR_GT, EXPR_LE}};
    for (int i = 0; i < 3; i++) {
        if (table[i][0] == k)
            return table[i][1];
        if (table[i][1] == k)
            return table[i][0];
    }
    return k;
}

static enum expr_kind mirrored(enum expr_kind k) {
    return k == EXPR_LT   ? EXPR_GT
           : k == EXPR_GT ? EXPR_LT
           : k == EXPR_LE ? EXPR_GE
           : k == EXPR_GE ? EXPR_LE
                          : k;
}

/* variable `kind` something in `by`. */
static void narrow_one(struct range *v, enum expr_kind kind, struct range by) {
    bool exact = by.lo == by.hi;
    if (kind == EXPR_LT && by.hi > INT64_MIN && v->hi > by.hi - 1)
        v->hi = by.hi - 1;
    if ((kind == EXPR_LE || kind == EXPR_EQ) && v->hi > by.hi)
        v->hi = by.hi;
    if (kind == EXPR_GT && by.lo < INT64_MAX && v->lo < by.lo + 1)
        v->lo = by.lo + 1;
    if ((kind == EXPR_GE || kind == EXPR_EQ) && v->lo < by.lo)
        v->lo = by.lo;
    if (kind == EXPR_NE && exact && v->lo == by.lo)
        v->lo++;
    else if (kind == EXPR_NE && exact && v->hi == by.hi)
        v->hi--;
}

/* Conditions with conditions or reductions inside are not used for narrowing: evaluating them for
 * both sides of every enclosing `if` would double the work at each level. */
static bool holds_if(const struct expr *e) {
    if (e->kind == EXPR_IF || e->kind == EXPR_REDUCE)
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (holds_if(e->args[i]))
            return true;
    return false;
}

static bool narrow_side(struct ranges *r, const struct expr *side, enum expr_kind kind,
                        const struct expr *other) {
    size_t variable;
    int64_t offset;
    struct range by;
    if (holds_if(side) || holds_if(other) || !variable_plus(r, side, &variable, &offset) ||
        range_of(r, other, &by) != RANGE_OK || !sub_i64(by.lo, offset, &by.lo) ||
        !sub_i64(by.hi, offset, &by.hi))
        return true;
    narrow_one(&r->index[variable], kind, by);
    return r->index[variable].lo <= r->index[variable].hi;
}

/* No pair of values satisfies a `kind` b. */
static bool impossible(enum expr_kind kind, struct range a, struct range b) {
    switch (kind) {
    case EXPR_LT:
        return a.lo >= b.hi;
    case EXPR_LE:
        return a.lo > b.hi;
    case EXPR_GT:
        return a.hi <= b.lo;
    case EXPR_GE:
        return a.hi < b.lo;
    case EXPR_EQ:
        return a.hi < b.lo || a.lo > b.hi;
    default:
        return a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    }
}

static bool decided_against(const struct ranges *r, enum expr_kind kind, const struct expr *x,
                            const struct expr *y) {
    struct range a, b;
    return !holds_if(x) && !holds_if(y) && range_of(r, x, &a) == RANGE_OK &&
           range_of(r, y, &b) == RANGE_OK && impossible(kind, a, b);
}

static void note_fact(struct ranges *r, enum expr_kind kind, const struct expr *x,
                      const struct expr *y) {
    if (kind != EXPR_NE && x->value_kind == VALUE_INT && y->value_kind == VALUE_INT &&
        !holds_if(x) && !holds_if(y))
        facts_add(r, (struct fact){.a = x, .b = y, .kind = kind});
}

bool ranges_narrow(struct ranges *r, const struct expr *c, bool truth) {
    if (c->kind == EXPR_NOT)
        return ranges_narrow(r, c->args[0], !truth);
    if ((c->kind == EXPR_AND && truth) || (c->kind == EXPR_OR && !truth))
        return ranges_narrow(r, c->args[0], truth) && ranges_narrow(r, c->args[1], truth);
    if (c->kind < EXPR_EQ || c->kind > EXPR_GE)
        return true;
    enum expr_kind kind = truth ? c->kind : negated(c->kind);
    if (decided_against(r, kind, c->args[0], c->args[1]))
        return false;
    note_fact(r, kind, c->args[0], c->args[1]);
    return narrow_side(r, c->args[0], kind, c->args[1]) &&
           narrow_side(r, c->args[1], mirrored(kind), c->args[0]);
}

enum range_result ranges_enter_var(struct ranges *r, const struct reduce_var *v, bool *some) {
    struct range lo, hi;
    enum range_result got = range_of(r, v->lo, &lo);
    if (got == RANGE_OK)
        got = range_of(r, v->hi, &hi);
    if (got != RANGE_OK)
        return got;
    *some = lo.lo < hi.hi;
    if (*some)
        r->index[v->var] = (struct range){lo.lo, hi.hi - 1};
    if (lo.lo != lo.hi)
        facts_add(r, (struct fact){.var = v->var, .b = v->lo, .kind = EXPR_GE});
    if (hi.lo != hi.hi)
        facts_add(r, (struct fact){.var = v->var, .b = v->hi, .kind = EXPR_LT});
    return RANGE_OK;
}

bool ranges_enter(struct ranges *r, const struct reduce *over) {
    for (size_t i = 0; i < over->nvars; i++) {
        bool some;
        if (ranges_enter_var(r, &over->vars[i], &some) != RANGE_OK || !some)
            return false;
    }
    return !over->guard || ranges_narrow(r, over->guard, true);
}
