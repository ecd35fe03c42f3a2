/* Windows with gaps: a transposed convolution with a stride.
 *
 * A term counts only where (p + a - b*r) % s == 0. All results with the same p % s take the same
 * places r of the window, so p is taken apart: p // s runs along the side, p % s is batch, and what
 * of the window counts is the same for a whole block. The places that decide become the outer part
 * of k; a block lists those that count and runs through them alone, 1/s of all for each stride. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"
#include "spec/domain.h"

#define TAPS_MOST 256

static uint32_t axis_vars(const struct contraction *c, int axis) {
    uint32_t vars = 0;
    for (size_t i = 0; i < c->group[axis].n; i++)
        vars |= UINT32_C(1) << c->group[axis].at[i].var;
    return vars;
}

/* A condition (…) % s == 0 over one variable of the side and some of k. */
struct gap {
    size_t var;
    uint32_t of_k;
    int64_t stride;
};

static bool find_gap(const struct contraction *c, const struct con_operand *o, const struct expr *e,
                     struct gap *out) {
    struct affine f;
    if (e->kind != EXPR_EQ || !expr_is_number(e->args[1], 0) || e->args[0]->kind != EXPR_MOD ||
        e->args[0]->args[1]->kind != EXPR_NUMBER || expr_has(e, EXPR_DIM) ||
        !affine_of(c->in, e->args[0]->args[0], &f))
        return false;
    uint32_t side = f.vars & axis_vars(c, o->side);
    out->of_k = f.vars & axis_vars(c, CON_K);
    out->stride = e->args[0]->args[1]->integer;
    if (__builtin_popcount(side) != 1 || !out->of_k || f.vars & ~(side | out->of_k))
        return false;
    out->var = (size_t)__builtin_ctz(side);
    return out->stride > 1;
}

static size_t find_index(const struct con_group *g, size_t var) {
    size_t i = 0;
    while (i < g->n && g->at[i].var != var)
        i++;
    return i;
}

/* p of P: p // s of the side, p % s of the batch; those with p >= P are nobody's. */
static void take_apart(struct contraction *c, struct con_operand *o, const struct gap *gap) {
    struct con_group *side = &c->group[o->side], *batch = &c->group[CON_BATCH];
    struct con_index *x = &side->at[find_index(side, gap->var)];
    struct expr *s = expr_number(c->mem, gap->stride), *extent = x->extent;
    struct expr *more = expr_pair(c->mem, EXPR_ADD, extent, expr_number(c->mem, gap->stride - 1));
    struct expr *var = arena_new_of(c->mem, struct expr);
    *var = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = gap->var};
    struct expr *inside = expr_pair(c->mem, EXPR_LT, var, extent);
    inside->value_kind = VALUE_BOOL;
    c->inside[c->ninside++] = inside;
    *x = (struct con_index){gap->var, CON_QUOTIENT, s, expr_pair(c->mem, EXPR_FLOORDIV, more, s)};
    batch->at[batch->n++] = (struct con_index){gap->var, CON_REMAINDER, s, s};
}

/* The variables that decide first. */
static void reorder_k(struct contraction *c, uint32_t taps) {
    struct con_group *k = &c->group[CON_K], sorted = *k;
    sorted.n = 0;
    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; i < k->n; i++)
            if ((int)(taps >> k->at[i].var & 1) == first)
                sorted.at[sorted.n++] = k->at[i];
    *k = sorted;
    c->taps = (size_t)__builtin_popcount(taps);
}

static void total_of(struct contraction *c, struct con_group *g) {
    g->total = expr_number(c->mem, 1);
    for (size_t i = 0; i < g->n; i++)
        g->total = expr_times(c->mem, g->total, g->at[i].extent);
    g->count = con_value(c->in, g->total);
}

static int64_t taps_count(const struct contraction *c, uint32_t taps) {
    int64_t n = 1;
    for (size_t i = 0; i < c->group[CON_K].n; i++)
        if (taps >> c->group[CON_K].at[i].var & 1)
            n *= con_value(c->in, c->group[CON_K].at[i].extent);
    return n;
}

void contraction_phase(struct contraction *c) {
    for (size_t i = 0; c->nfolds == 1 && i < c->noperands; i++) {
        struct con_operand *o = &c->operands[i];
        struct gap gaps[CON_CONDITIONS];
        const struct expr *kept[CON_CONDITIONS];
        size_t ngaps = 0, nkept = 0;
        uint32_t taps = 0, vars = 0;
        for (size_t k = 0; k < o->nonly; k++) {
            struct gap g;
            bool fits = find_gap(c, o, o->only[k], &g) && !(vars >> g.var & 1);
            if (!fits) {
                kept[nkept++] = o->only[k];
                continue;
            }
            gaps[ngaps] = g;
            c->hits[ngaps++] = o->only[k];
            taps |= g.of_k;
            vars |= UINT32_C(1) << g.var;
        }
        if (!ngaps || taps == axis_vars(c, CON_K) || taps_count(c, taps) > TAPS_MOST)
            continue;
        for (size_t k = 0; k < ngaps; k++)
            take_apart(c, o, &gaps[k]);
        for (size_t k = 0; k < nkept; k++)
            o->only[k] = kept[k];
        o->nonly = nkept;
        for (size_t k = 0; k < c->ninside && o->nonly < CON_CONDITIONS; k++)
            o->only[o->nonly++] = c->inside[k];
        c->nhits = ngaps;
        reorder_k(c, taps);
        for (int x = 0; x < CON_AXES; x++)
            total_of(c, &c->group[x]);
        return;
    }
}

/* ---- text ---- */

static struct expr *product_of(struct con_writer *w, size_t from, size_t to) {
    struct expr *e = expr_number(w->sh->mem, 1);
    for (size_t i = from; i < to; i++)
        e = expr_times(w->sh->mem, e, w->c->group[CON_K].at[i].extent);
    return e;
}

static int64_t taps_of(struct con_writer *w) {
    return con_value(w->c->in, product_of(w, 0, w->c->taps));
}

str contraction_depth(struct con_writer *w) {
    int piece = 16 / w->g.element;
    str plan = sheet_plan(w->sh, product_of(w, w->c->taps, w->c->group[CON_K].n));
    return scope_int_plan(
        &w->k, "depth", sheet_printf(w->sh, "ceil_div(%.*s, %d)*%d", STR_ARG(plan), piece, piece));
}

str contraction_depth_plan(struct con_writer *w) {
    int piece = 16 / w->g.element;
    str plan = sheet_plan(w->sh, product_of(w, w->c->taps, w->c->group[CON_K].n));
    return sheet_printf(w->sh, "%lld*ceil_div(%.*s, %d)*%d", (long long)taps_of(w), STR_ARG(plan),
                        piece, piece);
}

/* x / B % A over a run of k's variables. */
static void declare_run(struct con_writer *w, size_t from, size_t to, str flat, struct buf *out) {
    const struct con_group *g = &w->c->group[CON_K];
    for (size_t i = from; i < to; i++) {
        str s = flat, name = scope_variable(&w->k, g->at[i].var);
        struct expr *inner = product_of(w, i + 1, to);
        if (!expr_is_number(inner, 1)) {
            str size = scope_int(&w->k, inner);
            s = sheet_printf(w->sh, "%.*s / %.*s", STR_ARG(s), STR_ARG(size));
        }
        if (i > from) {
            str size = scope_int(&w->k, g->at[i].extent);
            s = sheet_printf(w->sh, "%.*s %% %.*s", STR_ARG(s), STR_ARG(size));
        }
        buf_printf(out, "const int %.*s = %.*s;\n", STR_ARG(name), STR_ARG(s));
        w->k.var[g->at[i].var] = name;
    }
}

str contraction_decode_taps(struct con_writer *w, str value, struct buf *out) {
    str flat = contraction_local(w, "flat_k"), tap = contraction_local(w, "tap");
    str rest = contraction_local(w, "rest_k"), depth = contraction_depth(w);
    buf_printf(out, "const int %.*s = %.*s, %.*s = %.*s %% %.*s;\n", STR_ARG(flat), STR_ARG(value),
               STR_ARG(rest), STR_ARG(flat), STR_ARG(depth));
    if (w->listed)
        buf_printf(out, "const int %.*s = %.*s[%.*s / %.*s];\n", STR_ARG(tap),
                   STR_ARG(contraction_local(w, "taps")), STR_ARG(flat), STR_ARG(depth));
    else
        buf_printf(out, "const int %.*s = %.*s / %.*s;\n", STR_ARG(tap), STR_ARG(flat),
                   STR_ARG(depth));
    declare_run(w, 0, w->c->taps, tap, out);
    declare_run(w, w->c->taps, w->c->group[CON_K].n, rest, out);
    return flat;
}

str contraction_rest(struct con_writer *w) {
    str rest = contraction_local(w, "rest_k");
    str size = scope_int(&w->k, product_of(w, w->c->taps, w->c->group[CON_K].n));
    return sheet_printf(w->sh, " && %.*s < %.*s", STR_ARG(rest), STR_ARG(size));
}

str contraction_taps(struct con_writer *w) {
    int taps = (int)taps_of(w), size = taps + w->g.tile_k / (16 / w->g.element) + 1;
    str i = contraction_local(w, "i"), test = S("");
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    w->k.statement = w->c->folds[0].statement;
    declare_run(w, 0, w->c->taps, i, &b);
    for (size_t k = 0; k < w->c->nhits; k++) {
        str one = scope_text(&w->k, w->c->hits[k]);
        test = sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(test), k ? " && " : "", STR_ARG(one));
    }
    struct slot slots[] = {
        {"taps", sheet_printf(w->sh, "%d", taps)},
        {"list", contraction_local(w, "taps")},
        {"size", sheet_printf(w->sh, "%d", size)},
        {"i", i},
        {"tid", contraction_local(w, "tid")},
        {"threads", sheet_printf(w->sh, "%d", w->g.threads)},
        {"count", contraction_local(w, "count")},
        {"rounded", sheet_printf(w->sh, "%d", (taps + 31) / 32 * 32)},
        {"decode", sheet_keep(w->sh, &b)},
        {"exists", contraction_local(w, "exists")},
        {"test", test},
        {"all", contraction_local(w, "all")},
        {"last", sheet_printf(w->sh, "%d", size - 1)},
    };
    sheet_template(w->sh, "contraction/taps.cu", slots, sizeof slots / sizeof *slots, &b);
    str text = sheet_keep(w->sh, &b);
    buf_release(&b);
    w->taps_at = size - 1;
    return text;
}

str contraction_inside(struct con_writer *w) {
    str s = S("");
    for (size_t i = 0; i < w->c->ninside; i++) {
        str one = scope_text(&w->k, w->c->inside[i]);
        s = sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(s), i ? " && " : "", STR_ARG(one));
    }
    return s;
}
