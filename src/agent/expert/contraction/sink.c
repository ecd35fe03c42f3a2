/* What becomes of the sums. They go through shared memory, where the ring of tiles was, and are
 * taken from there row by row: finished by the folds' own text and the maps after them, or stored
 * as parts of k, which another kernel adds up and finishes. */
#include "agent/expert/contraction/contraction.h"

/* ---- values ---- */

/* sum, or sum0, sum1, … where there are several folds. */
static str fold_number(struct con_writer *w, size_t fold) {
    return w->c->nfolds == 1 ? S("") : sheet_number(w->sh, (int64_t)fold);
}

static str fold_value(struct con_writer *w, size_t fold) {
    const struct con_fold *f = &w->c->folds[fold];
    str sum = TEXT(w->sh, "sum$", fold_number(w, fold)), value = sum;
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
    static const char *const types[] = {
        [VALUE_INT] = "long long", [VALUE_REAL] = "float", [VALUE_BOOL] = "bool"};
    struct expr *read = arena_new_of(w->sh->mem, struct expr);
    *read = (struct expr){.kind = EXPR_READ, .value_kind = s->body->value_kind, .ref = s->tensor};
    read->nargs = t->rank;
    read->args = arena_array(w->sh->mem, struct expr *, t->rank + 1);
    for (size_t i = 0; i < t->rank; i++)
        read->args[i] = con_variable(w->sh->mem, i);
    bool rounds = t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16, let = t->role == TENSOR_LET;
    if (rounds && let)
        value = scope_unpacked(&w->k, s->tensor,
                               scope_packed(&w->k, s->tensor, s->body->value_kind, value));
    str name = TEXT(w->sh, "value_$", t->name);
    slots_put(row, "type", str_view(types[s->body->value_kind]));
    slots_put(row, "tensor", t->name);
    slots_put(row, "value", value);
    slots_put(row, "place", S(""));
    if (!let) {
        w->k.statement = s;
        str element = scope_packed(&w->k, s->tensor, s->body->value_kind, name);
        slots_put(row, "pointer", scope_pointer(&w->k, s->tensor, true));
        slots_put(row, "element", element);
        slots_put(row, "place", con_offset(w, read));
        name = rounds ? scope_unpacked(&w->k, s->tensor, element) : name;
    }
    scope_hold(&w->k, read, name);
}

static str epilogue(struct con_writer *w) {
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

static size_t shared_staged(const struct con_config *g) {
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

static bool write_staged(struct con_writer *w, struct slots *kernel) {
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
        slots_put(row, "fold", fold_number(w, f));
        slots_put(row, "sum_row", f ? sheet_printf(w->sh, "(%zu * Tiles::BM + row)", f) : S("row"));
        slots_put(row, "part", w->part.n ? part_text(w, f) : S(""));
    }
    str inside = con_inside(w); /* of what was taken apart */
    slots_put(&s, "inside", w->part.n ? S("") : inside);
    slots_put(&s, "epilogue", w->part.n ? S("") : epilogue(w));
    slots_put(kernel, "sink", S("gemm_stage<Tiles>{smem}"));
    slots_put(kernel, "results", sheet_lines(w->sh, "contraction/staged.cu", &s));
    return sheet_function(w->sh, "contraction/stage.cu", &s);
}

const struct con_sink con_sink_staged = {.shared = shared_staged, .write = write_staged};

/* ---- parts of k ---- */

static bool fits_parts(const struct con_config *g) {
    return g->split > 1;
}

static str count_plan(struct con_writer *w) {
    const struct con_group *g = w->c->group;
    return TEXT(w->sh, "$*$*$", sheet_plan(w->sh, g[CON_BATCH].total),
                sheet_plan(w->sh, g[CON_M].total), sheet_plan(w->sh, g[CON_N].total));
}

static void prepare_parts(struct con_writer *w) {
    str count = count_plan(w);
    w->part = sheet_name(w->sh, S("part"));
    sheet_memory(w->sh, "workspace %.*s[%d, %.*s] : f32", STR_ARG(w->part),
                 w->g.split * (int)w->c->nfolds, STR_ARG(count));
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
    lines =
        con_join(w->sh, lines, "\n", con_decode(w, CON_M, TEXT(w->sh, "at / $ % $", n, m), &flat));
    return con_join(w->sh, lines, "\n", con_decode(w, CON_N, TEXT(w->sh, "at % $", n), &flat));
}

static bool finish_parts(struct con_writer *w) {
    if (!con_begin(w, S("finish"), 1 << CON_M | 1 << CON_N | (has_mean(w) ? 1 << CON_K : 0)))
        return false;
    struct slots s = con_slots(w);
    str plan = count_plan(w), count = scope_int_plan(&w->k, "count", plan);
    slots_put(&s, "decode", decode_result(w));
    slots_put(&s, "inside", con_inside(w));
    slots_put(&s, "epilogue", epilogue(w));
    slots_put(&s, "count", count);
    for (size_t f = 0; f < w->c->nfolds; f++) {
        struct slots *row = slots_row(&s, "folds");
        slots_put(row, "fold", fold_number(w, f));
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

const struct con_sink con_sink_parts = {.fits = fits_parts,
                                        .shared = shared_staged,
                                        .prepare = prepare_parts,
                                        .write = write_staged,
                                        .finish = finish_parts};
