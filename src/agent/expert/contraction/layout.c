/* How operands lie in memory: which are dense, and what of a side's index becomes batch so that
 * they are. */
#include "agent/expert/contraction/contraction.h"
#include "spec/bounds.h"
#include <string.h>

enum {
    SIDE_LEAST = 48,    /* results of a side in one matrix, for it to be worth a batch of its own */
    SIDE_GATHERED = 128 /* the same where every element's place is computed anyway */
};

/* The index expression is this part of a variable, and nothing else that the side runs through: a
 * remainder may stand with its quotient, which is the batch's. */
static bool is_index(const struct expr *e, const struct con_index *x) {
    if (x->part == CON_REMAINDER && e->kind == EXPR_INDEX)
        return e->ref == x->var;
    if (x->part == CON_REMAINDER)
        return e->kind == EXPR_MOD && e->args[0]->kind == EXPR_INDEX && e->args[0]->ref == x->var &&
               expr_same(e->args[1], x->divisor);
    return x->part == CON_WHOLE && e->kind == EXPR_INDEX && e->ref == x->var;
}

static int position_of(const struct con_operand *o, const struct con_index *x) {
    for (size_t d = 0; d < o->read->nargs; d++)
        if (is_index(o->read->args[d], x))
            return (int)d;
    return -1;
}

/* The variables from `from` on stand beside each other, in order, over whole dimensions. */
static bool group_lies(const struct contraction *c, const struct con_operand *o,
                       const struct con_group *g, size_t from, int *first, int *last) {
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    for (size_t i = from; i < g->n; i++) {
        int d = position_of(o, &g->at[i]);
        if (d < 0 || (i > from && (d != *last + 1 || !expr_same(t->extent[d], g->at[i].extent))))
            return false;
        if (i == from)
            *first = d;
        *last = d;
    }
    return from < g->n;
}

/* No place but those found depends on the variables. */
static bool nowhere_else(const struct con_operand *o, uint32_t vars) {
    for (int d = 0; d < (int)o->read->nargs; d++) {
        bool found = (d >= o->first && d <= o->last) || (d >= o->k_first && d <= o->k_last);
        if (!found && expr_vars(o->read->args[d]) & vars)
            return false;
    }
    return true;
}

struct expr *con_stride(const struct contraction *c, const struct con_operand *o, int d) {
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    struct expr *stride = expr_number(c->mem, 1);
    for (int k = d + 1; k < (int)t->rank; k++)
        stride = expr_times(c->mem, stride, t->extent[k]);
    return stride;
}

static bool lies_dense(struct contraction *c, struct con_operand *o, size_t from) {
    struct con_group *side = &c->group[o->side], *k = &c->group[CON_K];
    uint32_t vars = con_vars(side, from) | con_vars(k, 0);
    for (size_t i = 0; i < side->n; i++) /* a quotient in the batch may be used anywhere */
        if (side->at[i].part == CON_REMAINDER && position_of(o, &side->at[i]) >= 0)
            vars &= ~(UINT32_C(1) << side->at[i].var);
    if (o->factor->kind == EXPR_PAD || o->nconditions ||
        !group_lies(c, o, side, from, &o->first, &o->last) ||
        !group_lies(c, o, k, 0, &o->k_first, &o->k_last) || !nowhere_else(o, vars))
        return false;
    o->whole = expr_same(con_stride(c, o, o->k_first - 1), k->total);
    o->side_stride = con_stride(c, o, o->last);
    o->k_stride = con_stride(c, o, o->k_last);
    o->side_contiguous = expr_is_number(o->side_stride, 1);
    o->k_contiguous = !o->side_contiguous && expr_is_number(o->k_stride, 1);
    o->row = con_stride(c, o, (o->k_contiguous ? o->k_first : o->first) - 1);
    return true;
}

/* All operands of the side are dense when the first `from` variables of it are batch. */
static bool side_dense(struct contraction *c, enum con_axis side, size_t from) {
    for (size_t i = 0; i < c->noperands; i++)
        if (c->operands[i].side == side && !lies_dense(c, &c->operands[i], from))
            return false;
    return true;
}

/* The variable indexes a dimension by itself, and nothing else, in every operand of the side. */
static bool stands_alone(const struct contraction *c, enum con_axis side,
                         const struct con_index *x) {
    for (size_t i = 0; i < c->noperands; i++) {
        const struct con_operand *o = &c->operands[i];
        if (o->side != side)
            continue;
        for (size_t d = 0; d < o->read->nargs; d++)
            if (expr_vars(o->read->args[d]) >> x->var & 1 && !is_index(o->read->args[d], x))
                return false;
        for (size_t k = 0; k < o->nconditions; k++)
            if (expr_vars(o->conditions[k]) >> x->var & 1)
                return false;
    }
    return x->part == CON_WHOLE;
}

/* In the order of the result's variables. */
static void move_to_batch(struct contraction *c, struct con_group *g, size_t n) {
    struct con_group *batch = &c->group[CON_BATCH];
    for (size_t i = 0; i < n; i++) {
        size_t at = batch->n++;
        for (; at > 0 && batch->at[at - 1].var > g->at[i].var; at--)
            batch->at[at] = batch->at[at - 1];
        batch->at[at] = g->at[i];
    }
    memmove(g->at, g->at + n, (g->n - n) * sizeof *g->at);
    g->n -= n;
    con_total(c, g);
    con_total(c, batch);
}

static void settle_side(struct contraction *c, enum con_axis side) {
    struct con_group *g = &c->group[side];
    bool dense = false;
    size_t from = 0;
    for (; from < g->n &&
           (from == 0 || con_value(c->in, con_extents(c, g, from, g->n)) >= SIDE_LEAST);
         from++)
        if (side_dense(c, side, from)) {
            dense = true;
            break;
        }
    if (!dense)
        for (from = 0; from + 1 < g->n && stands_alone(c, side, &g->at[from]) &&
                       con_value(c->in, con_extents(c, g, from + 1, g->n)) >= SIDE_GATHERED;)
            from++;
    move_to_batch(c, g, from);
    for (size_t i = 0; i < c->noperands; i++) /* strides, with the side as it is now */
        if (c->operands[i].side == side)
            c->operands[i].dense = lies_dense(c, &c->operands[i], 0) || dense;
}

enum dtype con_type(const struct contraction *c, const struct con_operand *o) {
    enum dtype t = c->in->task->tensors[o->read->ref].dtype;
    return t == DTYPE_F64 ? DTYPE_F32 : t; /* a let in memory */
}

/* A gathered operand runs along what its innermost index runs along. */
bool con_along_k(const struct contraction *c, const struct con_operand *o) {
    if (o->dense)
        return o->k_contiguous;
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    size_t last = o->read->nargs;
    while (last > 0 && expr_is_number(t->extent[last - 1], 1))
        last--;
    const struct con_group *side = &c->group[o->side];
    uint32_t uses = last ? expr_vars(o->read->args[last - 1]) : 0;
    return !(uses >> side->at[side->n - 1].var & 1);
}

size_t con_side(const struct contraction *c, enum con_axis side) {
    size_t n = 0;
    for (size_t i = 0; i < c->noperands; i++)
        n += c->operands[i].side == side;
    return n;
}

size_t con_number(const struct contraction *c, size_t operand) {
    size_t n = 0;
    for (size_t i = 0; i < operand; i++)
        n += c->operands[i].side == c->operands[operand].side;
    return n;
}

const struct con_tile *con_side_tile(const struct con_config *g, enum con_axis side) {
    size_t i = 0;
    while (g->c->operands[i].side != side)
        i++;
    return &g->tile[i];
}

/* 16-bit numbers in rows that begin at multiples of 16 bytes. */
static bool has_even_rows(const struct contraction *c, const struct con_operand *o) {
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    bool half = t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16;
    for (size_t i = 0; i < c->group[o->side].n; i++)
        half &= c->group[o->side].at[i].part == CON_WHOLE;
    return half && o->dense && inst_divides(c->in, o->row, 8);
}

bool con_is_direct(const struct contraction *c, const struct con_operand *o) {
    return has_even_rows(c, o) && o->k_contiguous && o->whole && o->last + 1 == o->k_first;
}

bool con_is_direct_across(const struct contraction *c, const struct con_operand *o) {
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    if (!has_even_rows(c, o) || !o->side_contiguous || o->k_last + 1 != o->first)
        return false;
    struct expr *rows = expr_number(c->mem, 1); /* that there are: k runs through all of them */
    for (int d = o->k_first; d <= o->k_last; d++)
        rows = expr_times(c->mem, rows, t->extent[d]);
    return expr_same(rows, c->group[CON_K].total);
}

void con_batch(const struct contraction *c, const struct con_operand *o, struct con_group *out) {
    const struct con_group *batch = &c->group[CON_BATCH];
    uint32_t uses = expr_vars(o->factor);
    for (size_t i = 0; i < o->nconditions; i++)
        uses |= expr_vars(o->conditions[i]);
    *out = (struct con_group){.n = 0};
    for (size_t i = 0; i < batch->n; i++)
        if (uses >> batch->at[i].var & 1)
            out->at[out->n++] = batch->at[i];
    con_total(c, out);
}

void con_lay_out(struct contraction *c) {
    settle_side(c, CON_N);
    settle_side(c, CON_M);
}
