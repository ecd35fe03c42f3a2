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
    uint32_t side = f.vars & con_vars(&c->group[o->side], 0);
    out->of_k = f.vars & con_vars(&c->group[CON_K], 0);
    out->stride = e->args[0]->args[1]->integer;
    if (__builtin_popcount(side) != 1 || !out->of_k || f.vars & ~(side | out->of_k))
        return false;
    out->var = (size_t)__builtin_ctz(side);
    return out->stride > 1;
}

/* p of P: p // s of the side, p % s of the batch; those with p >= P are nobody's. */
static void take_apart(struct contraction *c, struct con_operand *o, const struct gap *gap) {
    struct con_group *side = &c->group[o->side], *batch = &c->group[CON_BATCH];
    struct con_index *x = side->at;
    while (x->var != gap->var)
        x++;
    struct expr *s = expr_number(c->mem, gap->stride), *extent = x->extent;
    struct expr *more = expr_pair(c->mem, EXPR_ADD, extent, expr_number(c->mem, gap->stride - 1));
    struct expr *inside = expr_pair(c->mem, EXPR_LT, expr_variable(c->mem, gap->var), extent);
    inside->value_kind = VALUE_BOOL;
    c->inside[c->ninside++] = inside;
    *x = (struct con_index){gap->var, CON_QUOTIENT, s, expr_pair(c->mem, EXPR_FLOORDIV, more, s)};
    batch->at[batch->n++] = (struct con_index){gap->var, CON_REMAINDER, s, s};
}

/* k with the variables that decide first. */
static struct con_group taps_first(const struct contraction *c, uint32_t taps) {
    const struct con_group *k = &c->group[CON_K];
    struct con_group sorted = {.n = 0};
    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; i < k->n; i++)
            if ((int)(taps >> k->at[i].var & 1) == first)
                sorted.at[sorted.n++] = k->at[i];
    return sorted;
}

void con_split_strided(struct contraction *c) {
    for (size_t i = 0; c->nfolds == 1 && i < c->noperands; i++) {
        struct con_operand *o = &c->operands[i];
        struct gap gaps[CON_CONDITIONS];
        const struct expr *kept[CON_CONDITIONS];
        size_t ngaps = 0, nkept = 0;
        uint32_t taps = 0, vars = 0;
        for (size_t k = 0; k < o->nconditions; k++) {
            struct gap g;
            bool fits = find_gap(c, o, o->conditions[k], &g) && !(vars >> g.var & 1);
            if (!fits) {
                kept[nkept++] = o->conditions[k];
                continue;
            }
            gaps[ngaps] = g;
            c->tap_conditions[ngaps++] = o->conditions[k];
            taps |= g.of_k;
            vars |= UINT32_C(1) << g.var;
        }
        struct con_group k_sorted = taps_first(c, taps);
        size_t ntaps = (size_t)__builtin_popcount(taps);
        if (!ngaps || ntaps == k_sorted.n ||
            con_value(c->in, con_extents(c, &k_sorted, 0, ntaps)) > TAPS_MOST)
            continue;
        for (size_t k = 0; k < ngaps; k++)
            take_apart(c, o, &gaps[k]);
        for (size_t k = 0; k < nkept; k++)
            o->conditions[k] = kept[k];
        o->nconditions = nkept;
        for (size_t k = 0; k < c->ninside && o->nconditions < CON_CONDITIONS; k++)
            o->conditions[o->nconditions++] = c->inside[k];
        c->ntap_conditions = ngaps;
        c->group[CON_K] = k_sorted;
        c->taps = ntaps;
        for (int x = 0; x < CON_AXES; x++)
            con_total(c, &c->group[x]);
        return;
    }
}

/* ---- text ---- */

static int64_t taps_of(struct con_writer *w) {
    const struct contraction *c = w->c;
    return con_value(c->in, con_extents(c, &c->group[CON_K], 0, c->taps));
}

/* What of k belongs to one tap. */
static struct expr *rest_of(struct con_writer *w) {
    const struct con_group *k = &w->c->group[CON_K];
    return con_extents(w->c, k, w->c->taps, k->n);
}

/* Rounded up to whole pieces of 16 bytes. */
static str depth_plan(struct con_writer *w) {
    str piece = sheet_number(w->sh, 16 / w->g.element);
    return TEXT(w->sh, "ceil_div($, $)*$", sheet_plan(w->sh, rest_of(w)), piece, piece);
}

str con_depth(struct con_writer *w) {
    return scope_int_plan(&w->k, "depth", depth_plan(w));
}

str con_depth_plan(struct con_writer *w) {
    return TEXT(w->sh, "$*$", sheet_number(w->sh, taps_of(w)), depth_plan(w));
}

str con_decode_taps(struct con_writer *w, str value, str *flat) {
    const struct con_group *k = &w->c->group[CON_K];
    str tap = con_name(w, S("tap_k")), rest = con_name(w, S("rest_k"));
    str depth = con_depth(w), in_list;
    *flat = con_name(w, S("flat_k"));
    in_list = TEXT(w->sh, "$ / $", *flat, depth);
    str lines = TEXT(w->sh, "const int $ = $, $ = $ % $;\nconst int $ = $;", *flat, value, rest,
                     *flat, depth, tap, w->listed ? TEXT(w->sh, "taps[$]", in_list) : in_list);
    lines = sheet_join(w->sh, lines, "\n", con_decode_run(w, k, 0, w->c->taps, "int", tap));
    return sheet_join(w->sh, lines, "\n", con_decode_run(w, k, w->c->taps, k->n, "int", rest));
}

str con_rest(struct con_writer *w) {
    return TEXT(w->sh, "$ < $", con_name(w, S("rest_k")), scope_int(&w->k, rest_of(w)));
}

void con_list_taps(struct con_writer *w, struct slots *to) {
    int taps = (int)taps_of(w), size = taps + w->g.tile_k / (16 / w->g.element) + 1;
    str exists = S("");
    w->k.statement = w->c->folds[0].statement;
    slots_put(to, "decode_tap",
              con_decode_run(w, &w->c->group[CON_K], 0, w->c->taps, "int", S("tap")));
    for (size_t i = 0; i < w->c->ntap_conditions; i++)
        exists = sheet_join(w->sh, exists, " && ", scope_text(&w->k, w->c->tap_conditions[i]));
    slots_put(to, "tap_exists", exists);
    slots_number(to, "taps", taps);
    slots_number(to, "taps_size", size);
    slots_number(to, "taps_rounded", (taps + 31) / 32 * 32);
    slots_put(to, "k_to", TEXT(w->sh, "taps[$] * $", sheet_number(w->sh, size - 1), con_depth(w)));
}

str con_inside(struct con_writer *w) {
    str s = S("");
    for (size_t i = 0; i < w->c->ninside; i++)
        s = sheet_join(w->sh, s, " && ", scope_text(&w->k, w->c->inside[i]));
    return s;
}
