/* Parts of k (split-k): a block's sums go to a workspace, and another kernel adds the parts up and
 * finishes the results. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g) {
    return g->split > 1;
}

static str count_plan(struct con_writer *w) {
    const struct con_group *g = w->c->group;
    return TEXT(w->sh, "$*$*$", sheet_plan(w->sh, g[CON_BATCH].total),
                sheet_plan(w->sh, g[CON_M].total), sheet_plan(w->sh, g[CON_N].total));
}

static void prepare_parts(struct con_writer *w) {
    str parts = sheet_number(w->sh, w->g.split * (int)w->c->nfolds);
    w->part = sheet_scratch(w->sh, S("part"), TEXT(w->sh, "[$, $] : f32", parts, count_plan(w)));
}

static bool has_mean(const struct con_writer *w) {
    for (size_t f = 0; f < w->c->nfolds; f++)
        if (w->c->folds[f].statement->body->reduce->op == REDUCTION_MEAN)
            return true;
    return false;
}

static str decode_result(struct con_writer *w) {
    str m = w->total[CON_M], n = w->total[CON_N], flat, lines;
    lines = con_decode(w, CON_BATCH, TEXT(w->sh, "at / $ / $", n, m), &flat);
    lines = sheet_join(w->sh, lines, "\n",
                       con_decode(w, CON_M, TEXT(w->sh, "at / $ % $", n, m), &flat));
    return sheet_join(w->sh, lines, "\n", con_decode(w, CON_N, TEXT(w->sh, "at % $", n), &flat));
}

static bool finish_parts(struct con_writer *w) {
    if (!con_begin(w, S("finish"), 1 << CON_M | 1 << CON_N | (has_mean(w) ? 1 << CON_K : 0)))
        return false;
    struct slots s = con_slots(w);
    str plan = count_plan(w), count = scope_int_plan(&w->k, "count", plan);
    slots_put(&s, "decode", decode_result(w));
    slots_put(&s, "inside", con_inside(w));
    slots_put(&s, "epilogue", con_epilogue(w));
    slots_put(&s, "count", count);
    for (size_t f = 0; f < w->c->nfolds; f++) {
        struct slots *row = slots_row(&s, "folds");
        slots_put(row, "fold", con_fold_number(w, f));
        slots_put(row, "slot",
                  w->c->nfolds == 1 ? S("turn")
                                    : sheet_printf(w->sh, "(turn * %zu + %zu)", w->c->nfolds, f));
    }
    slots_put(&s, "parameters", scope_params(&w->k));
    str args = scope_args(&w->k);
    sheet_step(w->sh, "launch %.*s<<<ceil_div(%.*s, 256), 256>>>(%.*s, %.*s)", STR_ARG(w->k.name),
               STR_ARG(plan), STR_ARG(args), STR_ARG(w->part));
    return sheet_put(w->sh, "contraction/finish.cu", &s, &w->sh->kernels);
}

const struct con_sink con_sink_parts = {.rank = 10,
                                        .fits = fits,
                                        .shared = con_staged_bytes,
                                        .prepare = prepare_parts,
                                        .write = con_write_staged,
                                        .finish = finish_parts};
