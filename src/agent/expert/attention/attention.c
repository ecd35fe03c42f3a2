/* family_attention: scores, softmax and the mix of values in one kernel, for 16-bit operands.
 *
 * Decisions by regime, for whoever plans: query-tile 128, key-tile 64, stages 2 where a row has
 * 1,024 keys or more and blocks are still twice the SMs; query-tile 64 otherwise; key-tile 32 for
 * heads over 128, 128 for heads of 64 or less. */
#include "agent/expert/attention/attention.h"
#include "agent/expert/sheet/pieces.h"
#include "spec/domain.h"
#include <string.h>

#define HEAD_MOST 256 /* results of 16 queries a warp stay in registers */

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    (void)b, (void)done;
    struct attention m;
    struct arena *a = arena_new((size_t)16 << 20);
    bool ok = attention_match(f->inst, first, a, &m, take);
    if (ok) {
        const struct bound_tensor *t = &f->inst->tensors[m.mixed->tensor];
        ok = t->extent[m.out] <= HEAD_MOST;
    }
    arena_free(a);
    return ok;
}

/* ---- text ---- */

struct writer {
    struct sheet *sh;
    const struct step *step;
    struct attention m;
    struct scope k;
    struct slots slots;
    int rows, keys, stages, dim;
};

static const struct expr *extent_of(const struct writer *w, const struct statement *s, size_t var) {
    return w->m.in->task->tensors[s->tensor].extent[var];
}

/* Elements from one value of the variable to the next. */
static str stride_text(struct writer *w, const struct expr *read, size_t var) {
    const struct tensor *t = &w->m.in->task->tensors[read->ref];
    size_t at = 0;
    while (!(read->args[at]->kind == EXPR_INDEX && read->args[at]->ref == var))
        at++;
    str text = S("1LL");
    for (size_t i = at + 1; i < t->rank; i++)
        text = sheet_printf(w->sh, "%.*s * %.*s", STR_ARG(text),
                            STR_ARG(scope_int(&w->k, t->extent[i])));
    return text;
}

/* The place of a matrix: the read where the variables of its rows and columns are 0. */
static str base_text(struct writer *w, const struct expr *read, size_t row, size_t column) {
    str kept[2] = {w->k.var[row], w->k.var[column]};
    struct buf b;
    buf_init(&b, 1u << 16);
    w->k.var[row] = w->k.var[column] = S("0");
    scope_offset(&w->k, read, &b);
    w->k.var[row] = kept[0];
    w->k.var[column] = kept[1];
    str text = sheet_keep(w->sh, &b);
    buf_release(&b);
    return text;
}

/* A bound of the keys at one row of the block; empty: it does not grow with the row. */
static str bound_text(struct writer *w, const struct expr *e, str row) {
    struct affine f;
    uint32_t bit = UINT32_C(1) << w->m.row;
    if (!affine_of(w->m.in, e, &f) || ((f.vars & bit) && f.coef[w->m.row] < 0))
        return (str){0};
    str kept = w->k.var[w->m.row];
    w->k.var[w->m.row] = row;
    str text = scope_text(&w->k, e);
    w->k.var[w->m.row] = kept;
    return text;
}

/* The tiles that hold a key of some row: from the first row's first to the last row's last. */
static void put_bounds(struct writer *w) {
    str lo = bound_text(w, w->m.lo, slots_get(&w->slots, "first")),
        hi = bound_text(w, w->m.hi, slots_get(&w->slots, "last")),
        keys = slots_get(&w->slots, "nkeys");
    bool from_zero = !lo.n || str_is(lo, "0"), all = !hi.n || str_eq(hi, keys);
    slots_put(&w->slots, "begin",
              from_zero ? S("0")
                        : sheet_printf(w->sh, "max((int)(%.*s), 0) / %.*s", STR_ARG(lo),
                                       STR_ARG(slots_get(&w->slots, "kKeys"))));
    slots_put(&w->slots, "end",
              all ? keys
                  : sheet_printf(w->sh, "min((int)(%.*s), %.*s)", STR_ARG(hi), STR_ARG(keys)));
}

/* Does a score count? */
static str selected_text(struct writer *w) {
    struct sheet *sh = w->sh;
    const struct attention *m = &w->m;
    str key = w->k.var[m->key], lo = scope_text(&w->k, m->lo), hi = scope_text(&w->k, m->hi);
    str text = sheet_printf(sh, "%.*s < %.*s", STR_ARG(key), STR_ARG(hi));
    if (!str_is(lo, "0"))
        text = sheet_printf(sh, "%.*s <= %.*s && %.*s", STR_ARG(lo), STR_ARG(key), STR_ARG(text));
    /* Rows and keys beyond the last are in no tensor. */
    text = sheet_printf(sh, "%.*s < %.*s && %.*s < %.*s && %.*s", STR_ARG(w->k.var[m->row]),
                        STR_ARG(slots_get(&w->slots, "nrows")), STR_ARG(key),
                        STR_ARG(slots_get(&w->slots, "nkeys")), STR_ARG(text));
    if (m->guard)
        text =
            sheet_printf(sh, "%.*s && (%.*s)", STR_ARG(text), STR_ARG(scope_text(&w->k, m->guard)));
    return text;
}

/* Does every key of a tile count, for every row of the warp? */
static str whole_text(struct writer *w) {
    const struct attention *m = &w->m;
    struct sheet *sh = w->sh;
    str tile = slots_get(&w->slots, "tile"), keys = slots_get(&w->slots, "kKeys"),
        nkeys = slots_get(&w->slots, "nkeys");
    str row = sheet_printf(sh, "(%.*s + %.*s * 16)", STR_ARG(slots_get(&w->slots, "first")),
                           STR_ARG(slots_get(&w->slots, "warp")));
    str hi = bound_text(w, m->hi, row),
        lo = bound_text(w, m->lo, sheet_printf(sh, "(%.*s + 15)", STR_ARG(row)));
    if (m->guard || !hi.n || !lo.n)
        return S("false");
    if (!str_eq(hi, nkeys))
        nkeys = sheet_printf(sh, "min((int)(%.*s), %.*s)", STR_ARG(hi), STR_ARG(nkeys));
    str text = sheet_printf(sh, "(%.*s + 1) * %.*s <= %.*s && %.*s + 15 < %.*s", STR_ARG(tile),
                            STR_ARG(keys), STR_ARG(nkeys), STR_ARG(row),
                            STR_ARG(slots_get(&w->slots, "nrows")));
    return str_is(lo, "0") ? text
                           : sheet_printf(sh, "%.*s && (int)(%.*s) <= %.*s * %.*s", STR_ARG(text),
                                          STR_ARG(lo), STR_ARG(tile), STR_ARG(keys));
}

/* What a score becomes. Division by what is the same for all is done once. */
static void put_score(struct writer *w) {
    const struct expr *f = w->m.f;
    bool divides = f->kind == EXPR_DIV && f->args[0]->kind == EXPR_READ && !expr_uses(f->args[1]) &&
                   !expr_has(f->args[1], EXPR_READ);
    slots_put(&w->slots, "scale", S(""));
    if (!divides) {
        slots_put(&w->slots, "f", scope_text(&w->k, f));
        return;
    }
    str inverse = scope_name(&w->k, "inverse"), divisor = scope_text(&w->k, f->args[1]);
    slots_put(&w->slots, "scale",
              sheet_printf(w->sh, "const float %.*s = 1.0f / (%.*s);", STR_ARG(inverse),
                           STR_ARG(divisor)));
    slots_put(
        &w->slots, "f",
        sheet_printf(w->sh, "%.*s * %.*s", STR_ARG(slots_get(&w->slots, "raw")), STR_ARG(inverse)));
}

/* The maps at the end: mixed, norm and top are in registers. */
static bool put_stores(struct writer *w) {
    const struct attention *m = &w->m;
    const struct task *t = w->step->inst->task;
    struct buf b, place;
    buf_init(&b, 1u << 18);
    buf_init(&place, 1u << 16);
    str of[TASK_MAX_VARS];
    memcpy(of, w->k.var, sizeof of);
    for (size_t v = 0; v < m->mixed->nindex; v++)
        w->k.var[v] =
            m->mixed_var[v] == SIZE_MAX ? slots_get(&w->slots, "out") : of[m->mixed_var[v]];
    bool ok = true;
    for (size_t i = 0; ok && i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (!form_is_map(s))
            continue;
        w->k.statement = s;
        str value = scope_text(&w->k, s->body);
        ok = value.n && scope_place(&w->k, &place);
        str to = scope_pointer(&w->k, s->tensor, true),
            packed = scope_packed(&w->k, s->tensor, s->body->value_kind, value);
        str at = sheet_keep(w->sh, &place);
        buf_printf(&b, "%.*s[%.*s] = %.*s;\n", STR_ARG(to), STR_ARG(at), STR_ARG(packed));
    }
    memcpy(w->k.var, of, sizeof of);
    w->k.statement = m->score;
    slots_put(&w->slots, "stores", sheet_keep(w->sh, &b));
    buf_release(&b);
    buf_release(&place);
    return ok;
}

/* Reads of the chain's own tensors stand in registers, whatever statement asks. */
static void hold_reads(struct writer *w, const struct expr *e) {
    const struct attention *m = &w->m;
    str n = slots_get(&w->slots, "n"), part = slots_get(&w->slots, "e");
    str names[] = {
        slots_get(&w->slots, "raw"),
        sheet_printf(w->sh, "%.*s[%.*s / 2]", STR_ARG(slots_get(&w->slots, "top")), STR_ARG(part)),
        sheet_printf(w->sh, "%.*s[%.*s / 2]", STR_ARG(slots_get(&w->slots, "norm")), STR_ARG(part)),
        sheet_printf(w->sh, "%.*s[%.*s][%.*s]", STR_ARG(slots_get(&w->slots, "mixed")), STR_ARG(n),
                     STR_ARG(part)),
    };
    const struct statement *of[] = {m->score, m->top, m->norm, m->mixed};
    for (size_t i = 0; e->kind == EXPR_READ && i < 4; i++)
        if (e->ref == of[i]->tensor)
            scope_hold(&w->k, e, names[i]);
    for (size_t i = 0; i < e->nargs; i++)
        hold_reads(w, e->args[i]);
}

static void hold_all(struct writer *w) {
    const struct task *t = w->step->inst->task;
    hold_reads(w, w->m.f);
    for (size_t i = 0; i < t->nstatements; i++)
        if (form_is_map(&t->statements[i]))
            hold_reads(w, t->statements[i].body);
}

static int64_t shared_bytes(const struct writer *w) {
    return (int64_t)(w->rows + 2 * w->stages * w->keys) * (w->dim + 8) * 2;
}

static void choose(struct writer *w) {
    int64_t most = sheet_shared_most(w->sh);
    int64_t head = w->m.in->tensors[w->m.mixed->tensor].extent[w->m.out];
    w->dim = (int)((head + 15) / 16 * 16);
    w->rows = (int)sheet_decision(w->sh, "query-tile", 64);
    w->keys = (int)sheet_decision(w->sh, "key-tile", 64);
    w->stages = (int)sheet_decision(w->sh, "stages", 2);
    while (w->stages > 2 && shared_bytes(w) > most)
        w->stages--;
    while (w->keys > 32 && shared_bytes(w) > most)
        w->keys /= 2;
    if (shared_bytes(w) > most)
        w->rows = 64;
}

/* Weights are at most 1, and a half has few exponents below: they are carried 2^15 times as large.
 */
static void put_lift(struct writer *w, bool half) {
    slots_put(&w->slots, "lift", half ? S(" + 15.0f") : S(""));
    slots_put(&w->slots, "lower",
              half ? sheet_printf(w->sh,
                                  "// Weights were 2^15 times as large, so that small ones are not "
                                  "lost in a half.\n"
                                  "for (int n = 0; n < %.*s / 8; n++)\n"
                                  "    for (int e = 0; e < 4; e++)\n"
                                  "        %.*s[n][e] *= 0x1p-15f;\n"
                                  "for (int h = 0; h < 2; h++)\n"
                                  "    %.*s[h] *= 0x1p-15f;",
                                  STR_ARG(slots_get(&w->slots, "kDim")),
                                  STR_ARG(slots_get(&w->slots, "mixed")),
                                  STR_ARG(slots_get(&w->slots, "norm")))
                   : S(""));
}

static void put_constants(struct writer *w) {
    static const char *const names[] = {"kRows",     "kKeys",         "kStages",
                                        "kDim",      "kPitch",        "kThreads",
                                        "load_rows", "load_matrices", "load_transposed",
                                        "multiply",  "pack",          "n",
                                        "e",         "raw",           "top",
                                        "norm",      "mixed",         "first",
                                        "last",      "warp",          "lane",
                                        "tile"};
    bool half = w->m.in->task->tensors[w->m.q->ref].dtype == DTYPE_F16;
    *(half ? &w->sh->half : &w->sh->bfloat) = true;
    slots_names(w->sh, &w->slots, names, sizeof names / sizeof *names);
    slots_number(&w->slots, "rows", w->rows);
    slots_number(&w->slots, "keys", w->keys);
    slots_number(&w->slots, "stages", w->stages);
    slots_number(&w->slots, "dim", w->dim);
    slots_put(&w->slots, "type", half ? S("__half") : S("__nv_bfloat16"));
    slots_put(&w->slots, "mma", half ? S("f16") : S("bf16"));
    put_lift(w, half);
    slots_put(&w->slots, "zero",
              half ? S("__float2half_rn(0.0f)") : S("__float2bfloat16_rn(0.0f)"));
    slots_put(&w->slots, "round", half ? S("__float2half_rn") : S("__float2bfloat16_rn"));
}

static uint32_t batch_vars(const struct attention *m) {
    return ((UINT32_C(1) << m->score->nindex) - 1) & ~(UINT32_C(1) << m->row) &
           ~(UINT32_C(1) << m->key);
}

static void put_variables(struct writer *w) {
    const struct attention *m = &w->m;
    const struct statement *s = m->score;
    w->k.statement = s;
    for (size_t v = 0; v < s->nindex; v++)
        w->k.var[v] = scope_variable(&w->k, v);
    slots_put(&w->slots, "row", w->k.var[m->row]);
    slots_put(&w->slots, "key", w->k.var[m->key]);
    slots_put(&w->slots, "out", scope_name(&w->k, "column"));
    slots_put(&w->slots, "nrows", scope_int(&w->k, extent_of(w, s, m->row)));
    slots_put(&w->slots, "nkeys", scope_int(&w->k, extent_of(w, s, m->key)));
    slots_put(&w->slots, "size", scope_int(&w->k, extent_of(w, m->mixed, m->out)));
}

/* A grid has 65,535 blocks in y and z. More batches than that are counted in x, with the tiles of
 * queries, which costs a division a block. */
static bool is_flat(const struct writer *w) {
    const struct inst *in = w->step->inst;
    const struct statement *s = w->m.score;
    double batches = 1;
    for (size_t d = 0; d < in->task->tensors[s->tensor].rank; d++)
        if (s->position[d] >= 0 && batch_vars(&w->m) >> s->position[d] & 1)
            batches *= (double)in->tensors[s->tensor].extent[d];
    return batches > 65535;
}

/* The batch from the block, those of its variables that something uses. */
static void put_coordinates(struct writer *w) {
    static const char *const users[] = {"q_base",   "k_base", "v_base", "begin", "end",
                                        "selected", "whole",  "scale",  "f",     "stores"};
    str used = S("");
    for (size_t i = 0; i < sizeof users / sizeof *users; i++)
        used = sheet_printf(w->sh, "%.*s %.*s", STR_ARG(used),
                            STR_ARG(slots_get(&w->slots, users[i])));
    str rows = slots_get(&w->slots, "nrows"), block = S("blockIdx.x"), batch = S("blockIdx.y");
    if (is_flat(w)) {
        str tiles = sheet_printf(w->sh, "((%.*s + %d) / %d)", STR_ARG(rows), w->rows - 1, w->rows);
        block = sheet_printf(w->sh, "(int)blockIdx.x %% %.*s", STR_ARG(tiles));
        batch = sheet_printf(w->sh, "((int)blockIdx.x / %.*s)", STR_ARG(tiles));
    }
    slots_put(&w->slots, "block", block);
    slots_put(&w->slots, "coordinates",
              place_coordinates(&w->k, w->m.score, batch_vars(&w->m), batch, used));
}

static bool put_kernel(struct writer *w) {
    const struct attention *m = &w->m;
    struct sheet *sh = w->sh;
    str mixed_var[TASK_MAX_VARS];
    memcpy(mixed_var, w->k.var, sizeof mixed_var);
    slots_put(&w->slots, "q", scope_pointer(&w->k, m->q->ref, false));
    slots_put(&w->slots, "k", scope_pointer(&w->k, m->k->ref, false));
    slots_put(&w->slots, "v", scope_pointer(&w->k, m->v->ref, false));
    slots_put(&w->slots, "q_base", base_text(w, m->q, m->row, m->inner));
    slots_put(&w->slots, "k_base", base_text(w, m->k, m->key, m->inner));
    slots_put(&w->slots, "q_stride", stride_text(w, m->q, m->row));
    slots_put(&w->slots, "k_stride", stride_text(w, m->k, m->key));
    slots_put(&w->slots, "v_stride", stride_text(w, m->v, m->key_of_mixed));
    put_bounds(w);
    slots_put(&w->slots, "selected", selected_text(w));
    slots_put(&w->slots, "whole", whole_text(w));
    put_score(w);
    for (size_t v = 0; v < m->mixed->nindex; v++)
        if (m->mixed_var[v] != SIZE_MAX)
            w->k.var[v] = mixed_var[m->mixed_var[v]];
    slots_put(&w->slots, "v_base", base_text(w, m->v, m->key_of_mixed, m->out));
    memcpy(w->k.var, mixed_var, sizeof mixed_var);
    if (sh->err->kind || !put_stores(w))
        return false;
    put_coordinates(w);
    slots_put(&w->slots, "kernel", w->k.name);
    slots_put(&w->slots, "params", scope_params(&w->k));
    return sheet_put(sh, "attention/functions.cu", &w->slots, &sh->functions) &&
           sheet_put(sh, "attention/kernel.cu", &w->slots, &sh->kernels);
}

static void put_plan(struct writer *w) {
    const struct attention *m = &w->m;
    struct sheet *sh = w->sh;
    const struct statement *s = m->score;
    uint32_t batch = batch_vars(m);
    str size = sheet_plan(sh, extent_of(w, m->mixed, m->out)),
        rows = sheet_plan(sh, extent_of(w, s, m->row)),
        batches = batch ? place_count(sh, w->step->inst, s, batch) : S("1");
    sheet_require(sh, "%.*s <= %d", STR_ARG(size), w->dim);
    if (!is_flat(w))
        sheet_require(sh, "%.*s <= 65535", STR_ARG(batches));
    sheet_step(sh, "launch %.*s<<<%sceil_div(%.*s, %d)%s%.*s%s, %d, %d>>>(%.*s)",
               STR_ARG(w->k.name), is_flat(w) ? "" : "[", STR_ARG(rows), w->rows,
               is_flat(w) ? "*(" : ", ", STR_ARG(batches), is_flat(w) ? ")" : "]", 2 * w->rows,
               (int)shared_bytes(w), STR_ARG(scope_args(&w->k)));
    sheet_note(sh, "attention: %d queries a block, %d keys a step, %d steps in flight", w->rows,
               w->keys, w->stages);
    const struct used all[] = {
        {"query-tile", w->rows}, {"key-tile", w->keys}, {"stages", w->stages}};
    sheet_used(sh, all, sizeof all / sizeof *all);
}

static bool write_attention(struct sheet *sh, const struct step *st) {
    struct writer *w = arena_new_of(sh->mem, struct writer);
    bool take[TASK_MAX_STATEMENTS] = {false};
    *w = (struct writer){.sh = sh, .step = st};
    bool matched = attention_match(st->inst, 0, sh->mem, &w->m, take);
    BUG_IF(!matched);
    choose(w);
    if (!scope_init(&w->k, sh, st, "attention"))
        return false;
    put_constants(w);
    put_variables(w);
    hold_all(w);
    if (!put_kernel(w))
        return false;
    put_plan(w);
    return !sh->err->kind;
}

const struct family family_attention = {
    .name = "attention",
    .workload = WORKLOAD_ATTENTION,
    .fuses = true,
    .claim = claim,
    .write = write_attention,
};
