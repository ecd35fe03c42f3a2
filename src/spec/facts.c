/* Facts: comparisons that hold where an expression is evaluated.
 *
 * A fact bounds a linear form, a - b. An expression that differs from that form by something whose
 * interval is known is bounded with it: from k < j follows j - 1 - k >= 0. Forms are linear in
 * variables and in what is not linear itself (`(p + 1 - r)//2`, an element of a tensor), which is
 * the same wherever it is written the same. */
#include "base/checked.h"
#include "spec/bounds.h"

/* Longer expressions have no form: what a proof costs stays proportional to the text. */
enum { TERMS_MOST = 8, NODES_MOST = 64 };

struct term {
    int64_t by;
    size_t var;              /* where atom is NULL */
    const struct expr *atom; /* not linear */
};

struct linear {
    int64_t constant;
    struct term terms[TERMS_MOST];
    size_t n;
    size_t nodes; /* seen */
};

static bool same(const struct expr *a, const struct expr *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->kind == EXPR_REDUCE || a->nargs != b->nargs || a->ref != b->ref ||
        a->function != b->function || a->value_kind != b->value_kind)
        return false;
    if (a->kind == EXPR_NUMBER && (a->integral != b->integral || a->number != b->number ||
                                   (a->integral && a->integer != b->integer)))
        return false;
    for (size_t i = 0; i < a->nargs; i++)
        if (!same(a->args[i], b->args[i]))
            return false;
    return true;
}

static bool add_term(struct linear *l, int64_t by, size_t var, const struct expr *atom) {
    for (size_t i = 0; i < l->n; i++) {
        struct term *t = &l->terms[i];
        if (atom ? !t->atom || !same(t->atom, atom) : t->atom || t->var != var)
            continue;
        if (!add_i64(t->by, by, &t->by))
            return false;
        if (t->by == 0)
            *t = l->terms[--l->n];
        return true;
    }
    if (l->n == TERMS_MOST)
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

void facts_add(struct ranges *r, struct fact f) {
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

void facts_apply(const struct ranges *r, const struct expr *e, struct range *v) {
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
