/* The proof that no read leaves its tensor, no index divides by zero, and nothing is so large that
 * it cannot be counted. */
#include "spec/bounds.h"

#include "base/checked.h"
#include "spec/recur.h"

/* ---- facts: comparisons that hold where an expression is evaluated ----
 *
 * A fact bounds a linear form, a - b. An expression that differs from that form by something whose
 * interval is known is bounded with it: from k < j follows j - 1 - k >= 0. Forms are linear in
 * variables and in what is not linear itself (`(p + 1 - r)//2`, an element of a tensor), which is
 * the same wherever it is written the same. */

/* Longer expressions have no form: what a proof costs stays proportional to the text. */
enum { FACT_TERMS_MOST = 8, NODES_MOST = 64 };

struct term {
    int64_t by;
    size_t var;              /* where atom is NULL */
    const struct expr *atom; /* not linear */
};

struct linear {
    int64_t constant;
    struct term terms[FACT_TERMS_MOST];
    size_t n;
    size_t nodes; /* seen */
};

static bool add_term(struct linear *l, int64_t by, size_t var, const struct expr *atom) {
    for (size_t i = 0; i < l->n; i++) {
        struct term *t = &l->terms[i];
        if (atom ? !t->atom || !expr_same(t->atom, atom) : t->atom || t->var != var)
            continue;
        if (!add_i64(t->by, by, &t->by))
            return false;
        if (t->by == 0)
            *t = l->terms[--l->n];
        return true;
    }
    if (l->n == FACT_TERMS_MOST)
        return false;
    l->terms[l->n++] = (struct term){by, var, atom};
    return true;
}

static bool add_constant(struct linear *l, int64_t by, int64_t v) {
    return mul_i64(by, v, &v) && add_i64(l->constant, v, &l->constant);
}

/* Free of variables and data. */
static bool is_constant(const struct expr *e) {
    if (e->kind == EXPR_INDEX || e->kind == EXPR_READ || e->kind == EXPR_REDUCE)
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!is_constant(e->args[i]))
            return false;
    return true;
}

static bool constant_of(const struct ranges *r, const struct expr *e, int64_t *out) {
    struct range v;
    if (!is_constant(e) || range_plain(r, e, &v) != RANGE_OK || v.lo != v.hi)
        return false;
    *out = v.lo;
    return true;
}

static bool add_expr(const struct ranges *r, struct linear *l, int64_t by, const struct expr *e) {
    int64_t v;
    if (++l->nodes > NODES_MOST)
        return false;
    switch (e->kind) {
    case EXPR_NUMBER:
        return add_constant(l, by, e->integer);
    case EXPR_DIM:
        return add_constant(l, by, r->in->dims[e->ref]);
    case EXPR_INDEX:
        return add_term(l, by, e->ref, NULL);
    case EXPR_NEG:
        return sub_i64(0, by, &v) && add_expr(r, l, v, e->args[0]);
    case EXPR_ADD:
        return add_expr(r, l, by, e->args[0]) && add_expr(r, l, by, e->args[1]);
    case EXPR_SUB:
        return sub_i64(0, by, &v) && add_expr(r, l, by, e->args[0]) &&
               add_expr(r, l, v, e->args[1]);
    case EXPR_MUL:
        if (constant_of(r, e->args[0], &v))
            return mul_i64(by, v, &by) && (by == 0 || add_expr(r, l, by, e->args[1]));
        if (constant_of(r, e->args[1], &v))
            return mul_i64(by, v, &by) && (by == 0 || add_expr(r, l, by, e->args[0]));
        return add_term(l, by, 0, e);
    default:
        return add_term(l, by, 0, e);
    }
}

static bool add_linear(struct linear *l, int64_t by, const struct linear *m) {
    if (!add_constant(l, by, m->constant))
        return false;
    for (size_t i = 0; i < m->n; i++) {
        int64_t v;
        if (!mul_i64(by, m->terms[i].by, &v) || !add_term(l, v, m->terms[i].var, m->terms[i].atom))
            return false;
    }
    return true;
}

/* The interval of a form, from those of its terms. */
static bool span(const struct ranges *r, const struct linear *l, struct range *out) {
    *out = (struct range){l->constant, l->constant};
    for (size_t i = 0; i < l->n; i++) {
        const struct term *t = &l->terms[i];
        struct range v = r->index[t->var];
        int64_t lo, hi;
        if (t->atom && range_plain(r, t->atom, &v) != RANGE_OK)
            return false;
        if (!mul_i64(t->by, t->by < 0 ? v.hi : v.lo, &lo) ||
            !mul_i64(t->by, t->by < 0 ? v.lo : v.hi, &hi) || !add_i64(out->lo, lo, &out->lo) ||
            !add_i64(out->hi, hi, &out->hi))
            return false;
    }
    return true;
}

/* The fact as: form >= 0, and form == 0 where `exact`. */
static bool fact_form(const struct ranges *r, const struct fact *f, struct linear *form,
                      bool *exact) {
    bool less = f->kind == EXPR_LT || f->kind == EXPR_LE;
    int64_t sign = less ? -1 : 1;
    *form = (struct linear){0};
    *exact = f->kind == EXPR_EQ;
    if (f->kind == EXPR_LT || f->kind == EXPR_GT)
        form->constant = -1;
    return (f->a ? add_expr(r, form, sign, f->a) : add_term(form, sign, f->var, NULL)) &&
           add_expr(r, form, -sign, f->b);
}

/* Adds a fact where there is room for it and it can be of use. */
static void facts_add(struct ranges *r, struct fact f) {
    struct linear form;
    bool exact;
    if (r->nfacts < RANGES_FACTS && fact_form(r, &f, &form, &exact) &&
        (form.n > 1 || (form.n == 1 && form.terms[0].atom)))
        r->facts[r->nfacts++] = f;
}

/* e = form + rest, with form >= 0: e >= rest. e = rest - form: e <= rest. */
static void apply(const struct ranges *r, const struct linear *e, const struct linear *form,
                  bool exact, struct range *v) {
    struct linear rest = *e;
    struct range d;
    if (add_linear(&rest, -1, form) && rest.n < e->n + form->n && span(r, &rest, &d)) {
        v->lo = d.lo > v->lo ? d.lo : v->lo;
        if (exact)
            v->hi = d.hi < v->hi ? d.hi : v->hi;
    }
    rest = *e;
    if (add_linear(&rest, 1, form) && rest.n < e->n + form->n && span(r, &rest, &d)) {
        v->hi = d.hi < v->hi ? d.hi : v->hi;
        if (exact)
            v->lo = d.lo > v->lo ? d.lo : v->lo;
    }
}

/* Narrows the range of `e` by the facts. */
static void facts_apply(const struct ranges *r, const struct expr *e, struct range *v) {
    struct linear own = {0};
    if (r->nfacts == 0 || !add_expr(r, &own, 1, e) || own.n == 0)
        return;
    for (size_t i = 0; i < r->nfacts; i++) {
        struct linear form;
        bool exact;
        if (fact_form(r, &r->facts[i], &form, &exact))
            apply(r, &own, &form, exact, v);
    }
}

/* ---- interval arithmetic over variables, and how conditions narrow it ---- */

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

/* The bits that values of both ranges can have: 2^k - 1 or its complement at the most. */
static int64_t bits_most(struct range a, struct range b) {
    uint64_t most = 0;
    int64_t ends[4] = {a.lo, a.hi, b.lo, b.hi};
    for (int i = 0; i < 4; i++) {
        uint64_t bits = (uint64_t)(ends[i] < 0 ? ~ends[i] : ends[i]);
        most = bits > most ? bits : most;
    }
    for (int shift = 1; shift < 64; shift *= 2)
        most |= most >> shift;
    return (int64_t)most;
}

static struct range range_bits(enum function f, struct range a, struct range b) {
    int64_t most = bits_most(a, b);
    if (f == FUNCTION_BIT_AND && a.lo >= 0 && b.lo >= 0)
        return (struct range){0, a.hi < b.hi ? a.hi : b.hi};
    if (f == FUNCTION_BIT_AND && (a.lo >= 0 || b.lo >= 0))
        return (struct range){0, a.lo >= 0 ? a.hi : b.hi};
    return (struct range){a.lo >= 0 && b.lo >= 0 ? 0 : -most - 1, most};
}

static enum range_result range_shift(enum function f, struct range a, struct range by,
                                     struct range *out) {
    if (by.lo < 0 || by.hi > 62 || (f == FUNCTION_SHL && (a.lo == INT64_MIN || a.hi == INT64_MAX)))
        return RANGE_UNKNOWN;
    return corners(a, by, f == FUNCTION_SHL ? shl_i64 : shr_i64, out);
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
    case FUNCTION_BIT_AND:
    case FUNCTION_BIT_OR:
    case FUNCTION_BIT_XOR:
        *out = range_bits(e->function, a[0], a[1]);
        return out->hi == INT64_MAX ? RANGE_UNKNOWN : RANGE_OK;
    case FUNCTION_SHL:
    case FUNCTION_SHR:
        return range_shift(e->function, a[0], a[1], out);
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
    int64_t lag;
    return err_at_expr(
        c->err, t, e,
        recurrence_lag(t, c->s, read, &lag)
            ? "say what the first step is, if(t == 0, h0[b], …h[b,t-1]…), or pad the read, "
              "pad(h[b,t-1], 0)"
        : expr_reads(e) ? "state what the tensor holds, ~ randint(0, N), or guard or pad the "
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
        return err_at_expr(c->err, t, e, "guard it with if(…)",
                           "an integer division by zero is possible (with %.*s)", STR_ARG(label));
    if (why == RANGE_UNKNOWN)
        return err_at_expr(
            c->err, t, e,
            "pad the read, pad(x[t[i]], 0), keep the index inside, clamp(t[i], 0, N-1), or "
            "guard it: if(t[i] >= 0 && t[i] < N, x[t[i]], 0)",
            "nothing is known about where this index lies");
    return err_at_expr(c->err, t, e, NULL, "this does not fit 64 bits (with %.*s)", STR_ARG(label));
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

/* Data may shift too far, which leaves the element undefined; index arithmetic may not. */
static bool check_shift(const struct checker *c, const struct ranges *r, const struct expr *e) {
    struct range by, v;
    if (e->kind != EXPR_CALL || function_info(e->function)->result != RESULT_SHIFTED ||
        expr_reads(e->args[1]))
        return true;
    if (range_of(r, e->args[1], &by) != RANGE_OK || by.lo < 0 || by.hi > 62)
        return err_at_expr(c->err, c->in->task, e->args[1], NULL,
                           "a shift is by 0 to 62 places, this one can be by others (with %.*s)",
                           STR_ARG(inst_label(c->in, c->a)));
    bool fits = expr_reads(e) || (range_of(r, e, &v) == RANGE_OK && v.lo >= -(INT64_C(1) << 53) &&
                                  v.hi <= INT64_C(1) << 53);
    return fits || unproved(c, e, RANGE_OVERFLOW);
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
        return err_at_expr(c->err, t, part, "state the range: sum(k < N)",
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
        return err_at_expr(c->err, t, e, "make dimensions smaller",
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
    return check_divisor(c, r, e) && check_shift(c, r, e);
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
