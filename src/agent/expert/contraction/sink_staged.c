/* Sums go through shared memory, where the ring of tiles was, and are taken from there row by row:
 * finished by the folds' own text and the maps after them, or stored as parts of k (sink_parts.c).
 */
#include "agent/expert/contraction/contraction.h"

/* ---- values ---- */

str con_fold_number(struct con_writer *w, size_t fold) {
    return w->c->nfolds == 1 ? S("") : sheet_number(w->sh, (int64_t)fold);
}

static str fold_value(struct con_writer *w, size_t fold) {
    const struct con_fold *f = &w->c->folds[fold];
    str sum = TEXT(w->sh, "sum$", con_fold_number(w, fold)), value = sum;
    if (f->rest) { /* the product's own text, with the sum in place of what was summed */
        struct scope kept = w->k;
        w->k.statement = f->statement;
        scope_hold(&w->k, w->c->operands[f->operand[0]].factor, sum);
        scope_hold(&w->k, w->c->operands[f->operand[1]].factor, S("1.0f"));
        value = scope_text(&w->k, f->statement->body->args[0]);
        for (size_t i = 0; i < w->k.nints; i++)
            kept.ints[i] = w->k.ints[i];
        kept.nints = w->k.nints;
        kept.tensors = w->k.tensors;
        w->k = kept;
    }
    return f->statement->body->reduce->op == REDUCTION_MEAN
               ? TEXT(w->sh, "($) / (float)$", value, w->total[CON_K])
               : value;
}

/* The element a statement defines: a local, and memory where somebody else reads it. */
static void put_value(struct con_writer *w, const struct statement *s, str value,
                      struct slots *row) {
    const struct tensor *t = &w->c->in->task->tensors[s->tensor];
    const struct expr *read = expr_own(w->c->in->task, s, w->sh->mem);
    bool rounds = t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16, let = t->role == TENSOR_LET;
    if (rounds && let)
        value = scope_unpacked(&w->k, s->tensor,
                               scope_packed(&w->k, s->tensor, s->body->value_kind, value));
    str name = TEXT(w->sh, "value_$", t->name);
    slots_put(row, "type", value_type(s->body->value_kind));
    slots_put(row, "tensor", t->name);
    slots_put(row, "value", value);
    slots_put(row, "place", S(""));
    if (!let) {
        w->k.statement = s;
        str element = scope_packed(&w->k, s->tensor, s->body->value_kind, name);
        slots_put(row, "pointer", scope_pointer(&w->k, s->tensor, true));
        slots_put(row, "element", element);
        slots_put(row, "place", scope_offset_text(&w->k, read));
        name = rounds ? scope_unpacked(&w->k, s->tensor, element) : name;
    }
    scope_hold(&w->k, read, name);
}

str con_epilogue(struct con_writer *w) {
    const struct task *t = w->step->inst->task;
    struct slots all = {.mem = w->sh->mem};
    size_t fold = 0;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        w->k.statement = s;
        str value = form_is_fold(s) ? fold_value(w, fold++) : scope_text(&w->k, s->body);
        put_value(w, s, value, slots_row(&all, "values"));
    }
    return sheet_lines(w->sh, "contraction/epilogue.cu", &all);
}

/* ---- through shared memory ---- */

size_t con_staged_bytes(const struct con_config *g) {
    return g->c->nfolds * (size_t)g->tile_m * (size_t)(g->tile_n + 8) * sizeof(float);
}

/* part[split][fold][batch][m][n] */
static str part_text(struct con_writer *w, size_t fold) {
    str slot = S("(long long)blockIdx.y");
    if (w->c->nfolds > 1)
        slot = sheet_printf(w->sh, "((long long)blockIdx.y * %zu + %zu)", w->c->nfolds, fold);
    return w->c->group[CON_BATCH].n
               ? TEXT(w->sh, "($ * $ + (blockIdx.x / tiles))", slot, w->total[CON_BATCH])
               : slot;
}

bool con_write_staged(struct con_writer *w, struct slots *kernel) {
    struct slots s = con_slots(w);
    int across = w->g.threads < w->g.tile_n ? w->g.threads : w->g.tile_n;
    str flat_m, flat_n;
    slots_number(&s, "across", across);
    slots_number(&s, "down", w->g.threads / across);
    w->k.statement = w->c->folds[0].statement;
    slots_put(&s, "decode_n", con_decode(w, CON_N, S("first_n + col"), &flat_n));
    slots_put(&s, "decode_m", con_decode(w, CON_M, S("first_m + row"), &flat_m));
    slots_put(&s, "flat_n", flat_n);
    slots_put(&s, "flat_m", flat_m);
    for (size_t f = 0; f < w->c->nfolds; f++) {
        struct slots *row = slots_row(&s, "folds");
        slots_put(row, "fold", con_fold_number(w, f));
        slots_put(row, "sum_row", f ? sheet_printf(w->sh, "(%zu * Tiles::BM + row)", f) : S("row"));
        slots_put(row, "part", w->part.n ? part_text(w, f) : S(""));
    }
    str inside = con_inside(w); /* of what was taken apart */
    slots_put(&s, "inside", w->part.n ? S("") : inside);
    slots_put(&s, "epilogue", w->part.n ? S("") : con_epilogue(w));
    slots_put(kernel, "sink", S("gemm_stage<Tiles>{smem}"));
    slots_put(kernel, "results", sheet_lines(w->sh, "contraction/staged.cu", &s));
    return sheet_function(w->sh, "contraction/stage.cu", &s);
}

const struct con_sink con_sink_staged = {
    .rank = 20, .shared = con_staged_bytes, .write = con_write_staged};
