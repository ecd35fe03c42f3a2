/* What becomes of the sums: values of the folds, the maps after them, parts of k and their end. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"

#define SLOTS(array) (array), sizeof(array) / sizeof *(array)

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}
static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}

/* ---- values ---- */

static str fold_value(struct con_writer *w, const struct con_fold *f, str acc) {
    const struct expr *body = f->statement->body->args[0];
    const struct contraction *c = w->c;
    str value = acc;
    if (f->rest) { /* the product's own text, with the sum in place of what was summed */
        struct scope kept = w->k;
        w->k.statement = f->statement;
        scope_hold(&w->k, c->operands[f->operand[0]].factor, acc);
        scope_hold(&w->k, c->operands[f->operand[1]].factor, S("1.0f"));
        value = scope_text(&w->k, body);
        for (size_t i = 0; i < w->k.nints; i++)
            kept.ints[i] = w->k.ints[i];
        kept.nints = w->k.nints;
        kept.tensors = w->k.tensors;
        w->k = kept;
    }
    if (f->statement->body->reduce->op == REDUCTION_MEAN)
        value =
            sheet_printf(w->sh, "(%.*s) / (float)%.*s", STR_ARG(value), STR_ARG(w->total[CON_K]));
    return value;
}

/* The element a statement defines: a local, and memory where somebody else reads it. */
static void put_value(struct con_writer *w, const struct statement *s, str name, str value,
                      struct buf *out) {
    const struct tensor *t = &w->c->in->task->tensors[s->tensor];
    static const char *const types[] = {
        [VALUE_INT] = "long long", [VALUE_REAL] = "float", [VALUE_BOOL] = "bool"};
    struct expr *read = arena_new_of(w->sh->mem, struct expr);
    *read = (struct expr){.kind = EXPR_READ, .value_kind = s->body->value_kind, .ref = s->tensor};
    read->nargs = t->rank;
    read->args = arena_array(w->sh->mem, struct expr *, t->rank + 1);
    for (size_t i = 0; i < t->rank; i++) {
        read->args[i] = arena_new_of(w->sh->mem, struct expr);
        *read->args[i] = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = i};
    }
    bool rounds = t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16;
    if (rounds && t->role == TENSOR_LET)
        value = scope_unpacked(&w->k, s->tensor,
                               scope_packed(&w->k, s->tensor, s->body->value_kind, value));
    buf_printf(out, "const %s %.*s = %.*s;\n", types[s->body->value_kind], STR_ARG(name),
               STR_ARG(value));
    if (t->role == TENSOR_LET) {
        scope_hold(&w->k, read, name);
        return;
    }
    w->k.statement = s;
    str pointer = scope_pointer(&w->k, s->tensor, true);
    str packed = scope_packed(&w->k, s->tensor, s->body->value_kind, name);
    buf_printf(out, "%.*s[", STR_ARG(pointer));
    scope_place(&w->k, out);
    buf_printf(out, "] = %.*s;\n", STR_ARG(packed));
    scope_hold(&w->k, read, rounds ? scope_unpacked(&w->k, s->tensor, packed) : name);
}

bool contraction_epilogue(struct con_writer *w, const str *acc, struct buf *out) {
    const struct task *t = w->step->inst->task;
    size_t fold = 0;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        str tensor = sheet_printf(w->sh, "value_%.*s", STR_ARG(t->tensors[s->tensor].name));
        str name = contraction_local(w, tensor.p);
        w->k.statement = s;
        bool folds = form_is_fold(s);
        str value =
            folds ? fold_value(w, &w->c->folds[fold], acc[fold]) : scope_text(&w->k, s->body);
        fold += folds;
        put_value(w, s, name, value, out);
    }
    return true;
}

/* ---- sums ---- */

str contraction_sum(struct con_writer *w, size_t fold) {
    if (w->c->nfolds == 1)
        return local(w, "sum");
    return local(w, sheet_printf(w->sh, "sum%zu", fold).p);
}

str contraction_sums(struct con_writer *w) {
    str s = S(""), tiles = local(w, "Tiles"), results = local(w, "results"), row = local(w, "row"),
        col = local(w, "col");
    for (size_t f = 0; f < w->c->nfolds; f++) {
        str at = f ? sheet_printf(w->sh, "(%zu * %.*s::BM + %.*s)", f, STR_ARG(tiles), STR_ARG(row))
                   : row;
        s = sheet_printf(w->sh, "%.*s%sconst float %.*s = %.*s[%.*s * %.*s::CN + %.*s];",
                         STR_ARG(s), f ? "\n" : "", STR_ARG(contraction_sum(w, f)),
                         STR_ARG(results), STR_ARG(at), STR_ARG(tiles), STR_ARG(col));
    }
    return s;
}

static str batch_name(struct con_writer *w) {
    return w->c->group[CON_BATCH].n
               ? sheet_printf(w->sh, "blockIdx.x / %.*s", STR_ARG(local(w, "tiles")))
               : S("0");
}

/* part[split][fold][batch][m][n] */
void contraction_parts(struct con_writer *w, str m, str n, struct buf *out) {
    bool batched = w->c->group[CON_BATCH].n > 0;
    for (size_t f = 0; f < w->c->nfolds; f++) {
        str slot = w->c->nfolds == 1 ? S("(long long)blockIdx.y")
                                     : sheet_printf(w->sh, "((long long)blockIdx.y * %zu + %zu)",
                                                    w->c->nfolds, f);
        if (batched)
            slot = sheet_printf(w->sh, "(%.*s * %.*s + (%.*s))", STR_ARG(slot),
                                STR_ARG(w->total[CON_BATCH]), STR_ARG(batch_name(w)));
        buf_printf(out, "%.*s[(%.*s * %.*s + %.*s) * %.*s + %.*s] = %.*s;\n",
                   STR_ARG(local(w, "part")), STR_ARG(slot), STR_ARG(w->total[CON_M]), STR_ARG(m),
                   STR_ARG(w->total[CON_N]), STR_ARG(n), STR_ARG(contraction_sum(w, f)));
    }
}

/* ---- parts of k ---- */

static bool has_mean(const struct con_writer *w) {
    for (size_t f = 0; f < w->c->nfolds; f++)
        if (w->c->folds[f].statement->body->reduce->op == REDUCTION_MEAN)
            return true;
    return false;
}

static str sums_text(struct con_writer *w, str at, str count) {
    str s = S("");
    for (size_t f = 0; f < w->c->nfolds; f++) {
        str sum = contraction_sum(w, f), i = local(w, "i");
        str slot = w->c->nfolds == 1
                       ? i
                       : sheet_printf(w->sh, "(%.*s * %zu + %zu)", STR_ARG(i), w->c->nfolds, f);
        s = sheet_printf(w->sh,
                         "%.*s%sfloat %.*s = 0.0f;\n#pragma unroll 8\n"
                         "for (int %.*s = 0; %.*s < %d; %.*s++)\n"
                         "    %.*s += %.*s[%.*s * (long long)%.*s + %.*s];",
                         STR_ARG(s), f ? "\n" : "", STR_ARG(sum), STR_ARG(i), STR_ARG(i),
                         w->g.split, STR_ARG(i), STR_ARG(sum), STR_ARG(local(w, "part")),
                         STR_ARG(slot), STR_ARG(count), STR_ARG(at));
    }
    return s;
}

bool contraction_finish(struct con_writer *w, str part, str count_plan) {
    struct buf b;
    str sums[CON_FOLDS];
    buf_init(&b, EXPERT_SOURCE_MAX);
    if (!scope_init(&w->k, w->sh, w->step, "finish"))
        return false;
    contraction_totals(w, 1 << CON_M | 1 << CON_N | (has_mean(w) ? 1 << CON_K : 0));
    str at = local(w, "at"), count = scope_int_plan(&w->k, "count", count_plan);
    str m = w->total[CON_M], n = w->total[CON_N];
    if (w->c->group[CON_BATCH].n)
        contraction_decode(
            w, CON_BATCH,
            sheet_printf(w->sh, "%.*s / %.*s / %.*s", STR_ARG(at), STR_ARG(n), STR_ARG(m)), &b);
    contraction_decode(
        w, CON_M, sheet_printf(w->sh, "%.*s / %.*s %% %.*s", STR_ARG(at), STR_ARG(n), STR_ARG(m)),
        &b);
    contraction_decode(w, CON_N, sheet_printf(w->sh, "%.*s %% %.*s", STR_ARG(at), STR_ARG(n)), &b);
    str decode = sheet_keep(w->sh, &b);
    for (size_t f = 0; f < w->c->nfolds; f++)
        sums[f] = contraction_sum(w, f);
    str inside = contraction_inside(w);
    if (inside.n)
        decode = sheet_printf(w->sh, "%.*s\nif (!(%.*s))\n    return;", STR_ARG(decode),
                              STR_ARG(inside));
    bool ok = contraction_epilogue(w, sums, &b);
    str finish = sheet_keep(w->sh, &b);
    buf_release(&b);
    str parameters = scope_params(&w->k), args = scope_args(&w->k);
    struct slot slots[] = {
        {"split", number(w, w->g.split)},
        {"kernel", w->k.name},
        {"parameters", sheet_printf(w->sh, "%.*s, const float *__restrict__ %.*s",
                                    STR_ARG(parameters), STR_ARG(local(w, "part")))},
        {"index", str_view(w->index)},
        {"at", at},
        {"count", count},
        {"decode", decode},
        {"sums", sums_text(w, at, count)},
        {"finish", finish},
    };
    sheet_step(w->sh, "launch %.*s<<<ceil_div(%.*s, 256), 256>>>(%.*s, %.*s)", STR_ARG(w->k.name),
               STR_ARG(count_plan), STR_ARG(args), STR_ARG(part));
    return ok && sheet_template(w->sh, "contraction/finish.cu", SLOTS(slots), &w->sh->kernels);
}
