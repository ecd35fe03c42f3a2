/* The kernel of a product: its skeleton (kernel.cu) with what the pieces put into it. */
#include "agent/expert/contraction/contraction.h"

/* ---- what loaders have in common ---- */

/* The tensor's name, with a number where it is an operand before: a matrix times itself. */
static str loader_name(struct con_writer *w, size_t operand) {
    size_t tensor = w->c->operands[operand].read->ref;
    str name = w->c->in->task->tensors[tensor].name;
    for (size_t i = 0; i < operand; i++)
        if (w->c->operands[i].read->ref == tensor)
            return sheet_printf(w->sh, "%.*s_%zu", STR_ARG(name), operand);
    return name;
}

struct slots con_slots(struct con_writer *w) {
    const struct con_config *g = &w->g;
    struct slots s = {.mem = w->sh->mem};
    slots_put(&s, "kernel", w->k.name);
    slots_put(&s, "index", str_view(w->index));
    slots_put(&s, "total_m", w->total[CON_M]);
    slots_put(&s, "total_n", w->total[CON_N]);
    slots_put(&s, "type", str_view(dtype_info(g->type)->cuda));
    slots_flag(&s, "cute", g->cute);
    slots_number(&s, "threads", g->threads);
    slots_flag(&s, "producers", g->producers > 0);
    slots_number(&s, "tile_m", g->tile_m);
    slots_number(&s, "tile_n", g->tile_n);
    slots_number(&s, "tile_k", g->tile_k);
    slots_put(&s, "split", g->split > 1 ? sheet_number(w->sh, g->split) : S(""));
    return s;
}

struct slots con_loader(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    struct slots s = con_slots(w);
    slots_put(&s, "tensor", w->c->in->task->tensors[o->read->ref].name);
    slots_put(&s, "name", loader_name(w, operand));
    slots_number(&s, "rows", w->g.tile[operand].rows);
    slots_number(&s, "row", w->g.tile[operand].row);
    slots_number(&s, "tile_at", (int64_t)w->g.tile[operand].at);
    slots_put(&s, "first", o->side == CON_M ? S("first_m") : S("first_n"));
    slots_put(&s, "total", w->total[o->side]);
    slots_put(&s, "side", o->side == CON_M ? S("A") : S("B"));
    slots_put(&s, "place", o->side == CON_M ? S("a_at") : S("b_at"));
    return s;
}

void con_put_turns(struct con_writer *w, size_t operand, bool k_fast, struct slots *s) {
    int side = w->c->operands[operand].side == CON_M ? w->g.tile_m : w->g.tile_n;
    int along = k_fast ? w->g.tile_k : side, step = w->g.threads / along;
    str fast = sheet_printf(w->sh, "tid %% %d", along),
        slow = sheet_printf(w->sh, "turn * %d + tid / %d", step, along);
    bool row_slow = w->g.tile[operand].k_contiguous == k_fast;
    slots_put(s, "tile_row", row_slow ? slow : fast);
    slots_put(s, "tile_col", row_slow ? fast : slow);
    slots_number(s, "along", along);
    slots_number(s, "step", step);
    slots_number(s, "turns", (k_fast ? side : w->g.tile_k) / step);
}

void con_put_loader(struct con_writer *w, const char *template, struct slots *s,
                    struct slots *row) {
    str name = slots_get(s, "name");
    slots_put(s, "from",
              slots_get(s, "offset").n ? TEXT(w->sh, "from_$", name) : slots_get(s, "pointer"));
    slots_put(row, "loader", sheet_lines(w->sh, template, s));
    slots_put(row, "load", TEXT(w->sh, "load_$(stage, k0);", name));
}

/* ---- the kernel ---- */

/* The definitions this step computes, each once. */
static str definitions(struct con_writer *w) {
    const struct task *t = w->step->inst->task;
    str all = S("");
    for (size_t i = 0; i < t->nstatements; i++) {
        str line = str_cut(sheet_definition(w->sh, w->step, &t->statements[i]), 0, 90);
        if (str_find(all, line) == all.n)
            all = sheet_join(w->sh, all, "\n// ", line);
    }
    return all;
}

static void require_groups(struct con_writer *w) {
    str k = sheet_plan(w->sh, w->c->group[CON_K].total);
    bool fixed = w->c->group[CON_K].total->kind == EXPR_NUMBER;
    if (w->k.wide && !fixed)
        sheet_require_for(w->sh, SCOPE_INT_WHY, "%.*s <= 1073741824", STR_ARG(k));
    if (!w->g.promote && !fixed)
        sheet_require_for(w->sh,
                          "A longer sum in one accumulator would be less accurate than the class "
                          "allows.",
                          "%.*s <= %d", STR_ARG(k), w->g.chain);
    for (size_t i = 0; i < w->c->group[CON_BATCH].n; i++) {
        const struct con_index *v = &w->c->group[CON_BATCH].at[i];
        if (v->part != CON_QUOTIENT)
            continue;
        str all = sheet_plan(w->sh, v->extent->args[0]), by = sheet_plan(w->sh, v->divisor);
        sheet_require(w->sh, "%.*s %% %.*s == 0", STR_ARG(all), STR_ARG(by));
    }
}

/* The struct of tiles that the main loop is given. */
static bool put_tiles(struct con_writer *w, str name, struct slots *s) {
    const struct con_config *g = &w->g;
    slots_put(s, "name", name);
    slots_number(s, "stages", g->stages);
    slots_number(s, "folds", (int64_t)w->c->nfolds);
    slots_number(s, "operands_m", (int64_t)con_side(w->c, CON_M));
    slots_number(s, "operands_n", (int64_t)con_side(w->c, CON_N));
    slots_number(s, "bytes_m", (int64_t)con_side_tile(g, CON_M)->bytes);
    slots_number(s, "bytes_n", (int64_t)con_side_tile(g, CON_N)->bytes);
    slots_number(s, "promote", g->promote);
    w->sh->half |= g->type == DTYPE_F16;
    w->sh->bfloat |= g->type == DTYPE_BF16;
    return sheet_put(w->sh, "contraction/tiles.cu", s, &w->sh->functions);
}

static bool put_pieces(struct con_writer *w, struct slots *kernel, struct slots *tiles, str *grid) {
    slots_flag(kernel, "keeps", false);
    slots_flag(kernel, "shifts", false);
    slots_put(tiles, "a_at", S(""));
    bool ok = w->g.math->write(w, kernel, tiles);
    *grid = w->g.schedule->write(w, kernel);
    struct slots *rows[CON_OPERANDS];
    for (int side = CON_M; side <= CON_N; side++) /* boxes are copied in the order of their tiles */
        for (size_t i = 0; i < w->c->noperands; i++)
            if (side == (w->g.math->boxes ? (int)w->c->operands[i].side : CON_M))
                rows[i] = slots_row(kernel, "operands");
    for (size_t i = 0; i < w->c->noperands && ok; i++) {
        slots_put(rows[i], "loader", S(""));
        slots_put(rows[i], "keep", S(""));
        slots_put(rows[i], "shift", S(""));
        con_forget(w, i);
        ok = w->g.tile[i].source->write(w, i, rows[i]);
    }
    return ok && w->g.sink->write(w, kernel);
}

static bool put_kernel(struct con_writer *w) {
    struct slots kernel = con_slots(w), tiles = kernel;
    int block = w->g.threads + w->g.producers;
    str name = sheet_name(w->sh, TEXT(w->sh, "$_tiles", w->k.name)), grid;
    require_groups(w);
    if (!put_pieces(w, &kernel, &tiles, &grid) || !put_tiles(w, name, &tiles))
        return false;
    str parameters = TEXT(w->sh, "$$", w->params, scope_params(&w->k)),
        args = TEXT(w->sh, "$$", w->args, scope_args(&w->k));
    if (w->part.n) {
        parameters = TEXT(w->sh, "$, float *__restrict__ part", parameters);
        args = TEXT(w->sh, "$, $", args, w->part);
    }
    slots_put(&kernel, "definitions", definitions(w));
    slots_put(&kernel, "how",
              sheet_printf(w->sh, "%s%s", w->g.cute ? "CuTe, " : "", con_formats[w->g.format].how));
    slots_put(&kernel, "parameters", parameters);
    slots_put(&kernel, "tiles", name);
    slots_number(&kernel, "block", block);
    slots_number(&kernel, "blocks", w->g.blocks);
    slots_put(&kernel, "alignment",
              w->g.alignment > 128 ? sheet_number(w->sh, (int64_t)w->g.alignment) : S(""));
    sheet_step(w->sh, "launch %.*s<<<%.*s, %d, %zu>>>(%.*s)", STR_ARG(w->k.name), STR_ARG(grid),
               block, w->g.shared, STR_ARG(args));
    return sheet_put(w->sh, "contraction/kernel.cu", &kernel, &w->sh->kernels);
}

bool con_kernels(struct con_writer *w) {
    const struct task *t = w->step->inst->task;
    str last = t->tensors[t->statements[t->nstatements - 1].tensor].name;
    bool ok = true;
    if (w->g.sink->prepare)
        w->g.sink->prepare(w);
    if (w->g.format == CON_F16X3)
        ok = con_pack_parts(w);
    for (size_t i = 0; i < w->c->noperands && w->g.format != CON_F16X3 && ok; i++)
        ok = !w->g.tile[i].packed || con_pack(w, i);
    for (size_t i = 0; i < w->c->noperands; i++)
        if (w->g.tile[i].packed && !w->g.math->boxes) {
            str type = str_view(dtype_info(w->g.type)->cuda);
            w->params = TEXT(w->sh, "$const $ *__restrict__ $, ", w->params, type, w->packed[i]);
            w->args = TEXT(w->sh, "$$, ", w->args, w->packed[i]);
        }
    w->listed = w->c->taps > 0;
    return ok &&
           con_begin(w, TEXT(w->sh, "$_product", last),
                     (w->g.split > 1 ? 1 << CON_BATCH : 0) | 1 << CON_M | 1 << CON_N |
                         1 << CON_K) &&
           put_kernel(w) && (!w->g.sink->finish || w->g.sink->finish(w));
}
