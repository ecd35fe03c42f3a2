#include "spec/contract.h"

#include "base/checked.h"
#include "spec/data.h"

#include <string.h>

#define MOST_ELEMENTS ((int64_t)32 << 20) /* of both tensors */

static bool is_plain_read(const struct instr *i) {
    return i->op == OP_READ && i->type == VALUE_REAL && i->exact && i->nplaces == 0 && !i->padded;
}

void contract_find(struct nest *n, int lane) {
    const struct instr *i = &n->p.code[n->p.result];
    bool sum = n->reduce && (n->reduce->op == REDUCTION_SUM || n->reduce->op == REDUCTION_MEAN);
    bool product = i->op == OP_NODE && i->kind == EXPR_MUL && i->type == VALUE_REAL;
    if (!sum || !product || n->mode != NEST_COLUMNS || lane < 0 || n->p.guard >= 0 || !n->nloops)
        return;
    const struct instr *x = &n->p.code[i->src[0]], *y = &n->p.code[i->src[1]];
    if (!is_plain_read(x) || !is_plain_read(y))
        return;
    if (y->place.coef[lane] == 0) {
        const struct instr *swap = x;
        x = y;
        y = swap;
    }
    n->factor[0] = (struct factor){x->ref, x->place};
    n->factor[1] = (struct factor){y->ref, y->place};
    n->contracts = x->place.coef[lane] == 0 && y->place.coef[lane] == 1;
}

/* Roughly, where bounds of loops vary. */
static double terms_of(const struct nest *n) {
    int64_t at[TASK_MAX_VARS] = {0};
    double terms = 1;
    for (size_t k = 0; k < n->naxes; k++) {
        at[n->axes[k].var] = n->axes[k].lo;
        terms *= (double)n->axes[k].n;
    }
    for (size_t k = 0; k < n->nloops; k++)
        terms *= (double)(bound_at(n, &n->loops[k].hi, at) - bound_at(n, &n->loops[k].lo, at));
    return terms;
}

static double *as_doubles(const struct content *from) {
    size_t count = (size_t)from->count;
    double *to = mem_try_resize(NULL, (count + PRODUCTS_GROUP) * sizeof *to);
    if (!to)
        return NULL;
    data_load(from->dtype, from->value, count, to);
    memset(to + count, 0, PRODUCTS_GROUP * sizeof *to);
    return to;
}

void contract_init(struct contraction *c, const struct nest *n, const struct content *contents) {
    *c = (struct contraction){0};
    if (!n->contracts)
        return;
    const struct content *x = &contents[n->factor[0].content], *y = &contents[n->factor[1].content];
    if (x->count > MOST_ELEMENTS || y->count > MOST_ELEMENTS - x->count ||
        (double)(x->count + y->count) > terms_of(n))
        return;
    c->x = as_doubles(x);
    c->y = as_doubles(y);
    if (!c->x || !c->y)
        contract_release(c);
}

void contract_release(struct contraction *c) {
    mem_free(c->x);
    mem_free(c->y);
    *c = (struct contraction){0};
}

/* Where the first term's element is; all terms' lie, with those of the lanes after it, within. */
static bool place_all(const struct factor *f, const int64_t *at, int64_t step, int64_t terms,
                      int64_t lanes, const struct content *from, int64_t *first) {
    int64_t way, last, count = from->count;
    if (!affine_at(&f->place, at, first) || !sub_i64(*first, from->first, first) ||
        !mul_i64(step, terms - 1, &way) || !add_i64(*first, way, &last))
        return false;
    return *first >= 0 && last >= 0 && *first <= count - lanes && last <= count - lanes;
}

bool contract_at(const struct contraction *c, const struct nest *n, const struct content *contents,
                 const int64_t *at, int64_t terms, size_t lanes, struct products *out) {
    const struct factor *x = &n->factor[0], *y = &n->factor[1];
    size_t var = n->loops[n->nloops - 1].var;
    int64_t x_first, y_first, x_step = x->place.coef[var], y_step = y->place.coef[var];
    if (!place_all(x, at, x_step, terms, 1, &contents[x->content], &x_first) ||
        !place_all(y, at, y_step, terms, (int64_t)lanes, &contents[y->content], &y_first))
        return false;
    *out = (struct products){c->x + x_first, c->y + y_first, x_step, y_step, (size_t)terms};
    return true;
}
