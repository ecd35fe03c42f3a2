/* Intervals and the proof that no read leaves its tensor. */
#include "spec/bounds.h"

#include "base/checked.h"
#include <stdio.h>

struct ranges ranges_of(const struct inst *in, const struct statement *s) {
    struct ranges r = {.in = in};
    for (size_t i = 0; i < s->nindex; i++)
        r.index[i] = (struct range){0, in->tensors[s->tensor].extent[i] - 1};
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

static enum range_result range_call(const struct ranges *r, const struct expr *e,
                                    struct range *out) {
    struct range a[3];
    for (size_t i = 0; i < e->nargs; i++) {
        enum range_result got = range_of(r, e->args[i], &a[i]);
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

static enum range_result range_if(const struct ranges *r, const struct expr *e, struct range *out) {
    struct ranges yes = *r, no = *r;
    struct range a, b;
    bool some_yes = ranges_narrow(&yes, e->args[0], true);
    bool some_no = ranges_narrow(&no, e->args[0], false);
    enum range_result got = some_yes ? range_of(&yes, e->args[1], &a) : RANGE_OK;
    if (got == RANGE_OK && some_no)
        got = range_of(&no, e->args[2], &b);
    if (got == RANGE_OK)
        *out = !some_no ? a : !some_yes ? b : hull(a, b);
    return got;
}

enum range_result range_of(const struct ranges *r, const struct expr *e, struct range *out) {
    struct range a, b;
    enum range_result got;
    if (e->value_kind != VALUE_INT)
        return RANGE_UNKNOWN;
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
        return RANGE_UNKNOWN;
    case EXPR_NEG:
        got = range_of(r, e->args[0], &a);
        return got != RANGE_OK ? got : range_binary(EXPR_SUB, (struct range){0, 0}, a, out);
    case EXPR_CALL:
        return range_call(r, e, out);
    case EXPR_IF:
        return range_if(r, e, out);
    default:
        got = range_of(r, e->args[0], &a);
        if (got == RANGE_OK)
            got = range_of(r, e->args[1], &b);
        return got != RANGE_OK ? got : range_binary(e->kind, a, b, out);
    }
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

/* Conditions with conditions inside are not used for narrowing: evaluating them for both sides of
 * every enclosing `if` would double the work at each level. */
static bool holds_if(const struct expr *e) {
    if (e->kind == EXPR_IF)
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

bool ranges_narrow(struct ranges *r, const struct expr *c, bool truth) {
    if (c->kind == EXPR_NOT)
        return ranges_narrow(r, c->args[0], !truth);
    if ((c->kind == EXPR_AND && truth) || (c->kind == EXPR_OR && !truth))
        return ranges_narrow(r, c->args[0], truth) && ranges_narrow(r, c->args[1], truth);
    if (c->kind < EXPR_EQ || c->kind > EXPR_GE)
        return true;
    enum expr_kind kind = truth ? c->kind : negated(c->kind);
    return !decided_against(r, kind, c->args[0], c->args[1]) &&
           narrow_side(r, c->args[0], kind, c->args[1]) &&
           narrow_side(r, c->args[1], mirrored(kind), c->args[0]);
}

bool expr_reads(const struct expr *e) {
    if (e->kind == EXPR_READ)
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (expr_reads(e->args[i]))
            return true;
    return false;
}

struct checker {
    const struct inst *in;
    const struct statement *s;
    struct arena *a;
    struct err *err;
};

static bool leaves(const struct checker *c, const struct expr *read, size_t k, struct range got) {
    const struct task *t = c->in->task;
    const struct expr *e = read->args[k];
    int64_t extent = c->in->tensors[read->ref].extent[k];
    bool let = t->tensors[c->s->tensor].role == TENSOR_LET;
    str label = inst_label(c->in, c->a);
    return err_at(c->err, t->file, t->text, e->at, e->len,
                  let ? "guard the read, if(i + 1 < N, x[i+1], 0), or state the range of the let's "
                        "index, let v[i < N-1]"
                      : "guard the read: if(i + 1 < N, x[i+1], 0)",
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
    return err_at(c->err, t->file, t->text, e->at, e->len, NULL,
                  "the index does not fit 64 bits (with %.*s)", STR_ARG(label));
}

static bool check_read(const struct checker *c, const struct ranges *r, const struct expr *e) {
    for (size_t k = 0; k < e->nargs; k++) {
        struct range got;
        enum range_result why = range_of(r, e->args[k], &got);
        if (why != RANGE_OK)
            return unproved(c, e->args[k], why);
        if (got.lo < 0 || got.hi >= c->in->tensors[e->ref].extent[k])
            return leaves(c, e, k, got);
    }
    return true;
}

/* Data may divide by zero, which leaves the element undefined; index arithmetic may not. */
static bool check_divisor(const struct checker *c, const struct ranges *r, const struct expr *e) {
    struct range by;
    if (e->kind != EXPR_FLOORDIV && e->kind != EXPR_MOD)
        return true;
    bool zero = range_of(r, e->args[1], &by) == RANGE_OK && by.lo <= 0 && by.hi >= 0;
    return !zero || unproved(c, e, RANGE_ZERO);
}

static bool check_expr(const struct checker *c, const struct ranges *r, const struct expr *e) {
    if (e->kind == EXPR_READ)
        return check_read(c, r, e);
    if (e->kind == EXPR_IF) {
        struct ranges yes = *r, no = *r;
        return check_expr(c, r, e->args[0]) &&
               (!ranges_narrow(&yes, e->args[0], true) || check_expr(c, &yes, e->args[1])) &&
               (!ranges_narrow(&no, e->args[0], false) || check_expr(c, &no, e->args[2]));
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (!check_expr(c, r, e->args[i]))
            return false;
    return check_divisor(c, r, e);
}

bool bounds_check(const struct inst *in, const struct statement *s, struct arena *a,
                  struct err *err) {
    struct checker c = {in, s, a, err};
    struct ranges r = ranges_of(in, s);
    return check_expr(&c, &r, s->body);
}
