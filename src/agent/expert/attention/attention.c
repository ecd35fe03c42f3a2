/* family_attention: scores, softmax and the mix of values in one kernel, for 16-bit operands, in
 * whatever way the task writes them (match.c) and whichever keys each query has (interval.c).
 *
 * A tile of rows is a tile of queries. Where there are few of them, rows are also the heads that
 * share their keys and values, and what one query has to read is split over blocks, whose parts a
 * second kernel combines, in a fixed order. */
#include "agent/expert/attention/attention.h"
#include "agent/expert/plan/step_facts.h"
#include "spec/scalar.h"
#include <string.h>

#define HEAD_MOST 256 /* results of 16 queries a warp stay in registers */
#define FEW_ROWS  16  /* one tile of mma.sync */

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    (void)b;
    struct attention m;
    struct arena *a = arena_new((size_t)64 << 20);
    bool ok = attention_match(f->inst, first, done, a, &m, take);
    int64_t size = 0, out = 0;
    ok = ok && expr_eval_dims(m.size, f->inst->dims, &size) &&
         expr_eval_dims(m.out_size, f->inst->dims, &out) && size <= HEAD_MOST && out <= HEAD_MOST;
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
    str own[TASK_MAX_VARS]; /* names of the canonical variables */
    str group;              /* the name of the group of queries that share keys */
    const struct expr *scale;
    bool packed;  /* rows are heads of a group as well */
    bool flat;    /* batches are counted in x */
    bool bounded; /* queries differ in which keys they have, or have not all */
    bool groups;  /* warp groups multiply, from tiles that the copy engine brings */
    int rows, keys, stages, dim, out, steps, key_warps, splits, threads;
};

static int64_t size_of(const struct writer *w, const struct expr *e) {
    int64_t v = 1;
    return e && expr_eval_dims(e, w->m.in->dims, &v) ? v : 1;
}

static const struct expr *extent_of(const struct writer *w, size_t var) {
    const struct attention *m = &w->m;
    return var == m->e ? m->out_size : m->in->task->tensors[m->score->tensor].extent[var];
}

/* Few queries: heads that share their keys are rows of the same tile. */
static bool packs(const struct writer *w) {
    return w->m.member != SIZE_MAX && size_of(w, w->m.nrows) <= FEW_ROWS;
}

/* How many rows tiles are made of: queries, times the heads that share their keys. */
static struct expr *row_count(const struct writer *w) {
    struct arena *a = w->sh->mem;
    struct expr *rows = w->m.nrows ? (struct expr *)w->m.nrows : expr_number(a, 1);
    return w->packed ? expr_times(a, rows, (struct expr *)w->m.group) : rows;
}

static bool is_batch(const struct writer *w, size_t var) {
    const struct attention *m = &w->m;
    return var < m->rank && var != m->row && var != m->key &&
           (var != m->member || !w->packed || m->member_divides);
}

static bool is_grouped(const struct writer *w, size_t var) {
    return w->packed && w->m.member_divides && var == w->m.member;
}

/* Batches in plan syntax, and at this shape. */
static str batches_plan(struct writer *w) {
    str all = S("");
    for (size_t v = 0; v < w->m.rank; v++) {
        if (!is_batch(w, v))
            continue;
        str n = sheet_plan(w->sh, extent_of(w, v));
        if (is_grouped(w, v))
            n = TEXT(w->sh, "($ // $)", n, sheet_plan(w->sh, w->m.group));
        all = sheet_join(w->sh, all, "*", n);
    }
    return all.n ? all : S("1");
}

static double batches_here(const struct writer *w) {
    double all = 1;
    for (size_t v = 0; v < w->m.rank; v++)
        if (is_batch(w, v))
            all *= (double)size_of(w, extent_of(w, v)) /
                   (is_grouped(w, v) ? (double)size_of(w, w->m.group) : 1);
    return all;
}

/* ---- places ---- */

/* `e` with some variables standing for other texts. */
static str offset_at(struct writer *w, const struct expr *read, size_t v0, size_t v1) {
    struct scope *k = &w->k;
    str kept0 = k->var[v0], kept1 = k->var[v1];
    k->var[v0] = k->var[v1] = S("0");
    str text = scope_offset_text(k, read);
    k->var[v0] = kept0;
    k->var[v1] = kept1;
    return text;
}

/* Where keys or values begin: of a group, where its first head does. */
static str base_text(struct writer *w, const struct expr *read, size_t key, size_t column) {
    struct scope *k = &w->k;
    size_t member = w->m.member;
    if (!w->packed || !w->m.member_divides)
        return offset_at(w, read, key, column);
    str kept = k->var[member];
    k->var[member] = TEXT(w->sh, "($ * $)", w->group, scope_int(k, w->m.group));
    str text = offset_at(w, read, key, column);
    k->var[member] = kept;
    return text;
}

static str stride_text(struct writer *w, const struct expr *read, size_t var) {
    struct expr *stride = attention_stride(&w->m, read, var, w->sh->mem);
    return stride->kind == EXPR_NUMBER ? sheet_number(w->sh, stride->integer)
                                       : scope_int(&w->k, stride);
}

/* Declarations of what the row `tile_row` is, as far as `used` mentions it. */
static str row_coordinates(struct writer *w, str used) {
    struct sheet *sh = w->sh;
    struct attention *m = &w->m;
    str type = str_view(scope_index_type(&w->k)), all = S("");
    str group = w->packed ? scope_int(&w->k, m->group) : S("1");
    if (m->row != SIZE_MAX && text_has_word(used, w->own[m->row]))
        all = TEXT(sh, "const $ $ = tile_row$;", type, w->own[m->row],
                   w->packed ? TEXT(sh, " / $", group) : S(""));
    if (w->packed && text_has_word(used, w->own[m->member])) {
        str line = m->member_divides
                       ? TEXT(sh, "const $ $ = $ * $ + tile_row % $;", type, w->own[m->member],
                              w->group, group, group)
                       : TEXT(sh, "const $ $ = tile_row % $;", type, w->own[m->member], group);
        all = sheet_join(sh, all, "\n", line);
    }
    return all;
}

/* Declarations of the variables of a batch from its number, those that `used` mentions. */
static str batch_coordinates(struct writer *w, str used) {
    struct sheet *sh = w->sh;
    str all = S(""), below = S(""), type = str_view(scope_index_type(&w->k));
    size_t first = 0;
    while (first < w->m.rank && !is_batch(w, first))
        first++;
    for (size_t v = w->m.rank; v-- > first;) {
        if (!is_batch(w, v))
            continue;
        str name = is_grouped(w, v) ? w->group : w->own[v];
        str count = v == first ? S("") : scope_int(&w->k, extent_of(w, v));
        if (v != first && is_grouped(w, v))
            count = TEXT(sh, "($ / $)", count, scope_int(&w->k, w->m.group));
        if (text_has_word(used, name))
            all = sheet_join(sh, all, "\n",
                             v == first
                                 ? TEXT(sh, "const $ $ = batch$;", type, name, below)
                                 : TEXT(sh, "const $ $ = batch$ % $;", type, name, below, count));
        below = TEXT(sh, "$ / $", below, count);
    }
    return all;
}

/* ---- parts of the kernels ---- */

static void put_bounds(struct writer *w) {
    struct attention *m = &w->m;
    str used = S("");
    slots_list(&w->slots, "lows");
    slots_list(&w->slots, "highs");
    for (size_t i = 0; i < m->keys.nlow; i++) {
        str text = scope_text(&w->k, m->keys.low[i]);
        slots_put(slots_row(&w->slots, "lows"), "low", text);
        used = sheet_join(w->sh, used, "\n", text);
    }
    for (size_t i = 0; i < m->keys.nhigh; i++) {
        str text = scope_text(&w->k, m->keys.high[i]);
        slots_put(slots_row(&w->slots, "highs"), "high", text);
        used = sheet_join(w->sh, used, "\n", text);
    }
    w->bounded = m->keys.nlow || m->keys.nhigh;
    slots_flag(&w->slots, "bounded", w->bounded);
    slots_put(&w->slots, "bound_coordinates", row_coordinates(w, used));
}

/* What a score becomes. A positive factor is part of the exponent. */
static void put_score(struct writer *w) {
    struct attention *m = &w->m;
    w->scale = attention_scale(m, w->sh->mem);
    str f = w->scale ? S("raw") : scope_text(&w->k, m->f);
    str guard = m->keys.guard ? scope_text(&w->k, m->keys.guard) : S("");
    slots_put(&w->slots, "guard", guard);
    slots_put(&w->slots, "scale", w->scale ? scope_text(&w->k, w->scale) : S(""));
    slots_put(&w->slots, "f", f);
    slots_flag(&w->slots, "linear", w->scale != NULL);
    slots_put(&w->slots, "f_coordinates", row_coordinates(w, f));
    slots_put(&w->slots, "guard_coordinates", row_coordinates(w, guard));
    slots_put(&w->slots, "either_coordinates", row_coordinates(w, TEXT(w->sh, "$ $", f, guard)));
}

/* 16-bit neighbours of a row lie side by side in memory. */
static bool is_paired(const struct writer *w, size_t store) {
    const struct statement *s = w->m.stores[store].s;
    const struct tensor *t = &w->m.in->task->tensors[s->tensor];
    return t->rank && dtype_info(sheet_dtype(w->sh, w->step, s->tensor))->bytes == 2 &&
           (w->m.stores[store].var[t->rank - 1] == w->m.e ||
            w->m.stores[store].merged == t->rank - 1);
}

/* What is stored, of an element (`sum`) and of a row (`total`, `largest`). */
static void put_stores(struct writer *w, struct scope *k, struct slots *slots) {
    struct attention *m = &w->m;
    str used = S("");
    const struct statement *score = k->statement;
    scope_hold(k, m->top, S("largest"));
    scope_hold(k, m->norm, S("total"));
    scope_hold(k, m->mixed, S("sum"));
    slots_list(slots, "stores");
    slots_list(slots, "pairs");
    slots_list(slots, "row_stores");
    for (size_t i = 0; i < m->nstores && !sheet_failed(w->sh); i++) {
        const struct statement *s = m->stores[i].s;
        bool pair = !m->stores[i].of_row && is_paired(w, i);
        struct slots *row = slots_row(slots, m->stores[i].of_row ? "row_stores"
                                             : pair              ? "pairs"
                                                                 : "stores");
        str kept[TASK_MAX_VARS], value = scope_text(k, m->stores[i].value);
        memcpy(kept, k->var, sizeof kept);
        k->statement = s;
        for (size_t v = 0; v < s->nindex; v++)
            k->var[v] = v == m->stores[i].merged
                            ? TEXT(w->sh, "($ * $ + column)", kept[m->stores[i].var[v]],
                                   scope_int(k, m->stores[i].by))
                            : kept[m->stores[i].var[v]];
        str place = scope_place_text(k);
        slots_put(row, "place", place);
        slots_put(row, "to", scope_pointer(k, s->tensor, true));
        str packed = scope_packed(k, s->tensor, m->stores[i].value->value_kind, value);
        slots_put(row, "packed", packed);
        if (pair) {
            enum dtype t = sheet_dtype(w->sh, w->step, s->tensor);
            slots_put(row, "element", t == DTYPE_F16 ? S("__half") : S("__nv_bfloat16"));
        }
        memcpy(k->var, kept, sizeof kept);
        k->statement = score;
        used = TEXT(w->sh, "$\n$\n$", used, place, packed);
    }
    slots_put(slots, "store_coordinates", row_coordinates(w, used));
}

static bool stores_top(const struct writer *w) {
    struct scope k = w->k;
    for (size_t i = 0; i < w->m.nstores; i++) {
        str text = scope_text(&k, w->m.stores[i].value);
        if (text_has_word(text, S("largest")))
            return true;
    }
    return false;
}

static void put_constants(struct writer *w, struct slots *t) {
    bool half = w->m.in->task->tensors[w->m.q->ref].dtype == DTYPE_F16;
    *(half ? &w->sh->half : &w->sh->bfloat) = true;
    slots_number(t, "rows", w->rows);
    slots_number(t, "keys", w->keys);
    slots_number(t, "stages", w->stages);
    slots_number(t, "dim", w->dim);
    slots_number(t, "out", w->out);
    slots_number(t, "key_warps", w->key_warps);
    slots_number(t, "threads", w->threads);
    slots_flag(t, "half", half);
    slots_flag(t, "parts", w->splits * w->key_warps > 1);
    slots_flag(t, "splits", w->splits > 1);
    slots_put(t, "type", half ? S("__half") : S("__nv_bfloat16"));
    slots_put(t, "mma", half ? S("f16") : S("bf16"));
}

/* The names of variables, and the sizes that every kernel takes. */
static void put_variables(struct writer *w, struct scope *k, struct slots *slots) {
    const struct attention *m = &w->m;
    k->statement = m->score;
    for (size_t v = 0; v < m->rank; v++)
        k->var[v] = w->own[v] = scope_variable(k, v);
    k->var[m->d] = S("0");
    k->var[m->e] = S("column");
    w->group = scope_name(k, "group_of_heads");
    slots_put(slots, "key", w->own[m->key]);
    slots_put(slots, "row_count", m->nrows || w->packed ? scope_int(k, row_count(w)) : S("1"));
    slots_put(slots, "nkeys", scope_int(k, m->nkeys));
    slots_put(slots, "size", scope_int(k, m->size));
    slots_put(slots, "out_size", scope_int(k, m->out_size));
}

static void put_operands(struct writer *w) {
    const struct attention *m = &w->m;
    struct scope *k = &w->k;
    struct slots *s = &w->slots;
    str base = scope_offset_text(k, m->q);
    slots_put(s, "q", scope_pointer(k, m->q->ref, false));
    slots_put(s, "q_base", base);
    slots_put(s, "q_coordinates", row_coordinates(w, base));
    slots_put(s, "q_step", stride_text(w, m->q, m->d));
    if (w->groups) /* the copy engine reads the others */
        return;
    slots_put(s, "k", scope_pointer(k, m->k->ref, false));
    slots_put(s, "v", scope_pointer(k, m->v->ref, false));
    slots_put(s, "k_base", base_text(w, m->k, m->key, m->d));
    slots_put(s, "k_stride", stride_text(w, m->k, m->key));
    slots_put(s, "k_step", stride_text(w, m->k, m->d));
    slots_put(s, "v_base", base_text(w, m->v, m->key, m->e));
    slots_put(s, "v_stride", stride_text(w, m->v, m->key));
    slots_put(s, "v_step", stride_text(w, m->v, m->e));
}

/* Which tile of queries and which batch a block has. Later queries have more keys under a causal
 * mask: they come first. */
static void put_schedule(struct writer *w) {
    struct sheet *sh = w->sh;
    struct slots *s = &w->slots;
    bool grows = false;
    for (size_t i = 0; i < w->m.keys.nhigh; i++)
        grows |= w->m.row != SIZE_MAX && (expr_vars(w->m.keys.high[i]) >> w->m.row & 1);
    str tiles = TEXT(sh, "(($ + $) / $)", slots_get(s, "row_count"), sheet_number(sh, w->rows - 1),
                     sheet_number(sh, w->rows));
    str tile = S("(int)blockIdx.x");
    if (w->flat)
        tile = TEXT(sh, "(int)blockIdx.x % $", tiles);
    if (grows)
        tile = w->flat ? TEXT(sh, "$ - 1 - $", tiles, tile)
                       : S("(int)gridDim.x - 1 - (int)blockIdx.x");
    slots_put(s, "tile", tile);
    slots_put(s, "batches", w->flat ? TEXT(sh, "((int)gridDim.x / $)", tiles) : S("gridDim.y"));
    slots_put(s, "batch", w->flat ? TEXT(sh, "(int)blockIdx.x / $", tiles) : S("(int)blockIdx.y"));
}

/* ---- the second kernel ---- */

static bool write_combine(struct writer *w, str parts, str rows) {
    struct sheet *sh = w->sh;
    struct scope first = w->k;
    struct slots *s = sheet_slots(sh);
    if (!scope_init(&w->k, sh, w->step, "attention_combine"))
        return false;
    w->k.own_param = S("const float *__restrict__ parts, const float *__restrict__ part_rows");
    w->k.own_arg = TEXT(sh, "$, $", parts, rows);
    put_variables(w, &w->k, s);
    put_stores(w, &w->k, s);
    slots_number(s, "parts", w->splits * w->key_warps);
    slots_number(s, "threads", (w->out + 31) / 32 * 32);
    slots_put(s, "larger", slots_get(&w->slots, "larger"));
    slots_put(s, "coordinates", batch_coordinates(w, slots_texts(sh, s)));
    slots_put(s, "kernel", w->k.name);
    slots_put(s, "params", scope_params(&w->k));
    bool ok = sheet_put(sh, "attention/combine.cu", s, &sh->kernels);
    sheet_step(sh, "launch %.*s<<<%.*s*%.*s, %d>>>(%.*s)", STR_ARG(w->k.name),
               STR_ARG(batches_plan(w)), STR_ARG(sheet_plan(sh, row_count(w))),
               (w->out + 31) / 32 * 32, STR_ARG(scope_args(&w->k)));
    w->k = first;
    return ok && !sh->err->kind;
}

/* ---- the first kernel ---- */

static int64_t shared_bytes(const struct writer *w) {
    return ((int64_t)w->rows * (w->dim + 8) +
            (int64_t)w->stages * w->keys * (w->dim + 8 + w->out + 8)) *
           2;
}

/* Few rows cannot fill the GPU: what they read is split until every SM has two blocks. */
static void choose_splits(struct writer *w) {
    int64_t rows = size_of(w, row_count(w)), keys = size_of(w, w->m.nkeys);
    int64_t tiles = (rows + w->rows - 1) / w->rows;
    double blocks = batches_here(w) * (double)tiles;
    int64_t most = keys / (2 * w->keys), want = (int64_t)(2 * w->sh->briefing->gpu->sms / blocks);
    w->splits = (int)(want < most ? want : most);
    if (w->splits < 2 || (w->key_warps == 1 && w->splits < 3))
        w->splits = 1;
}

static void choose(struct writer *w) {
    int64_t most = sheet_shared_most(w->sh);
    w->packed = packs(w);
    w->dim = (int)((size_of(w, w->m.size) + 15) / 16 * 16);
    w->out = (int)((size_of(w, w->m.out_size) + 15) / 16 * 16);
    w->rows = (int)sheet_decision(w->sh, "query-tile", 64);
    w->keys = (int)sheet_decision(w->sh, "key-tile", 64);
    w->stages = (int)sheet_decision(w->sh, "stages", 2);
    w->key_warps = 1;
    if (size_of(w, row_count(w)) <= FEW_ROWS) {
        w->rows = 16;
        w->key_warps = size_of(w, w->m.nkeys) < 256 ? 1 : 4;
        w->keys = w->keys < 64 ? 64 : w->keys;
    }
    while (w->stages > 2 && shared_bytes(w) > most)
        w->stages--;
    while (w->keys > 16 * w->key_warps && w->keys > 32 && shared_bytes(w) > most)
        w->keys /= 2;
    if (shared_bytes(w) > most && w->rows > 64)
        w->rows = 64;
    w->threads = 2 * w->rows * w->key_warps;
    w->flat = batches_here(w) > 65535;
    choose_splits(w);
}

/* ---- by warp groups ---- */

/* How the copy engine sees keys or values: boxes of 64 elements of the innermost axis. */
struct boxes {
    bool fits, turned; /* turned: keys are the innermost axis */
    size_t key, inner; /* axes of the tensor */
    bool whole;        /* heads are an axis of their own */
};

static size_t axis_of(const struct expr *read, size_t var) {
    for (size_t i = 0; i < read->nargs; i++)
        if (expr_is_variable(read->args[i], var))
            return i;
    return SIZE_MAX;
}

static struct boxes boxes_of(const struct writer *w, const struct expr *read, size_t inner,
                             const struct expr *size) {
    const struct inst *in = w->m.in;
    const struct tensor *t = &in->task->tensors[read->ref];
    struct boxes b = {.key = axis_of(read, w->m.key), .inner = axis_of(read, inner)};
    size_t last = t->rank - 1;
    b.whole = b.inner != SIZE_MAX && expr_same(t->extent[b.inner], size);
    b.turned = b.key == last;
    if (b.key == SIZE_MAX)
        return b;
    if (b.turned) {
        b.fits = b.whole;
    } else {
        struct expr *step = attention_stride(&w->m, read, inner, w->sh->mem);
        b.inner = last;
        b.whole = b.whole && expr_is_variable(read->args[last], inner);
        b.fits = expr_is_number(step, 1) && (expr_vars(read->args[last]) >> inner & 1) &&
                 (b.whole || inst_divides(in, size, 64));
    }
    b.fits = b.fits && inst_divides(in, t->extent[last], 8);
    return b;
}

/* The axes from `first` up to `end` as one: its size in plan syntax, and the place along it. */
static str axes_plan(struct writer *w, const struct tensor *t, size_t first, size_t end) {
    str all = S("");
    for (size_t i = first; i < end; i++)
        all = sheet_join(w->sh, all, "*", sheet_plan(w->sh, t->extent[i]));
    return all.n ? all : S("1");
}

static str axes_text(struct writer *w, const struct expr *read, size_t first, size_t end) {
    const struct tensor *t = &w->m.in->task->tensors[read->ref];
    str at = S("");
    for (size_t i = first; i < end; i++) {
        str index = scope_text(&w->k, read->args[i]);
        at = at.n ? TEXT(w->sh, "(($) * $ + ($))", at, scope_int(&w->k, t->extent[i]), index)
                  : index;
    }
    return at.n ? TEXT(w->sh, "(int)($)", at) : S("0");
}

static str put_boxes(struct writer *w, const struct expr *read, size_t inner,
                     const struct expr *size, const char *const names[4], int rows, str base) {
    struct sheet *sh = w->sh;
    const struct tensor *t = &w->m.in->task->tensors[read->ref];
    struct boxes b = boxes_of(w, read, inner, size);
    size_t low = b.turned ? b.inner : b.key, last = t->rank - 1;
    str kept = w->k.var[inner];
    w->k.var[inner] = S("0");
    slots_flag(&w->slots, names[0], b.turned);
    slots_put(&w->slots, names[1], b.whole ? S("0") : axes_text(w, read, last, last + 1));
    slots_put(&w->slots, names[2], axes_text(w, read, low + 1, last));
    slots_put(&w->slots, names[3], axes_text(w, read, 0, low));
    w->k.var[inner] = kept;
    sheet_require(sh, "%.*s %% 8 == 0", STR_ARG(sheet_plan(sh, t->extent[last])));
    if (!b.whole)
        sheet_require(sh, "%.*s %% 64 == 0", STR_ARG(sheet_plan(sh, size)));
    str text = sheet_printf(
        sh, "tiled(%.*s, box=[64, 1, %d, 1], shape=[%.*s, %.*s, %.*s, %.*s], swizzle=128)",
        STR_ARG(sheet_tensor(sh, w->step, read->ref)), rows,
        STR_ARG(sheet_plan(sh, t->extent[last])), STR_ARG(axes_plan(w, t, low + 1, last)),
        STR_ARG(sheet_plan(sh, t->extent[low])), STR_ARG(axes_plan(w, t, 0, low)));
    str map = sheet_shared_name(sh, text, base.p);
    sheet_memory(sh, "tensormap %.*s = %.*s", STR_ARG(map), STR_ARG(text));
    return map;
}

/* The product's instruction: its accumulators as "%0, %1, …" and "+f"(d[0]), …. */
static bool put_product(struct writer *w, const char *slot, int columns, bool registers_a,
                        bool transposed) {
    struct sheet *sh = w->sh;
    struct slots *s = sheet_slots(sh);
    str list = S("$\""), outputs = S("");
    int n = columns / 2;
    for (int i = 0; i < n; i++) {
        list = sheet_printf(sh,
                            i % 8 ? "%.*s, %%%d"
                            : i   ? "%.*s, \"\n\"%%%d"
                                  : "%.*s%%%d",
                            STR_ARG(list), i);
        outputs = sheet_printf(sh, i ? "%.*s,%s\"+f\"(d[%d])" : "%.*s%s\"+f\"(d[%d])",
                               STR_ARG(outputs), i && i % 5 == 0 ? "\n" : " ", i);
    }
    list = sheet_printf(sh, "%.*s\"", STR_ARG(str_from(list, 1)));
    str type = slots_get(&w->slots, "mma");
    str name = sheet_printf(sh, "cp_wgmma_%.*s_%d%s%s", STR_ARG(type), columns,
                            registers_a ? "_registers" : "", transposed ? "_transposed" : "");
    slots_put(s, "wgmma", name);
    slots_put(s, "mma", type);
    slots_put(s, "list", list);
    slots_put(s, "outputs", outputs);
    slots_number(s, "columns", columns);
    slots_number(s, "registers", n);
    slots_flag(s, "registers_a", registers_a);
    slots_number(s, "a1", n + 1);
    slots_number(s, "a2", n + 2);
    slots_number(s, "a3", n + 3);
    slots_number(s, "b", registers_a ? n + 4 : n + 1);
    slots_number(s, "add", registers_a ? n + 5 : n + 2);
    slots_number(s, "transposed", transposed);
    slots_put(&w->slots, slot, name);
    return sheet_function(sh, "attention/wgmma.cu", s);
}

static int64_t group_bytes(const struct writer *w) {
    return ((int64_t)w->rows * w->dim + (int64_t)w->stages * w->keys * (w->dim + w->out)) * 2 +
           1024;
}

/* Many queries, keys and values that the copy engine can bring. */
static void choose_groups(struct writer *w) {
    const struct attention *m = &w->m;
    const struct gpu *gpu = w->sh->briefing->gpu;
    struct writer kept = *w;
    if (sheet_decision(w->sh, "tensor-path", 0) != 2 || !gpu->has.wgmma || !gpu->has.tma ||
        w->rows < 64 || w->splits > 1 || w->packed || !boxes_of(w, m->k, m->d, m->size).fits ||
        !boxes_of(w, m->v, m->e, m->out_size).fits)
        return;
    w->steps = w->dim / 16;
    w->dim = (w->dim + 63) / 64 * 64;
    w->out = (w->out + 63) / 64 * 64;
    w->rows = 128;
    w->threads = 384;
    w->stages = (int)sheet_decision(w->sh, "stages", 2);
    w->keys = (int)sheet_decision(w->sh, "key-tile", 64);
    w->keys = w->keys < 128 || w->dim > 128 || w->out > 128 ? 64 : 128;
    while (w->stages > 2 && group_bytes(w) > sheet_shared_most(w->sh))
        w->stages--;
    w->groups = group_bytes(w) <= sheet_shared_most(w->sh);
    if (!w->groups)
        *w = kept;
}

static bool put_groups(struct writer *w) {
    static const char *const of_keys[] = {"k_turned", "k_inner", "k_middle", "k_slab"};
    static const char *const of_values[] = {"v_turned", "v_inner", "v_middle", "v_slab"};
    const struct attention *m = &w->m;
    struct slots *s = &w->slots;
    bool k_turned = boxes_of(w, m->k, m->d, m->size).turned;
    bool v_turned = boxes_of(w, m->v, m->e, m->out_size).turned;
    str keys = put_boxes(w, m->k, m->d, m->size, of_keys, k_turned ? w->dim : w->keys, S("keys"));
    str values =
        put_boxes(w, m->v, m->e, m->out_size, of_values, v_turned ? w->out : w->keys, S("values"));
    w->k.own_param = S("const __grid_constant__ CUtensorMap key_map, "
                       "const __grid_constant__ CUtensorMap value_map");
    w->k.own_arg = TEXT(w->sh, "$, $", keys, values);
    slots_number(s, "steps", w->steps);
    slots_flag(s, "masks", !w->scale || m->keys.guard);
    return put_product(w, "multiply_scores", w->keys, false, k_turned) &&
           put_product(w, "multiply_values", w->out, true, !v_turned);
}

/* ---- all of it ---- */

static void put_plan(struct writer *w, str args) {
    struct attention *m = &w->m;
    struct sheet *sh = w->sh;
    str rows = sheet_plan(sh, row_count(w)), batches = batches_plan(w);
    sheet_require(sh, "%.*s <= %d", STR_ARG(sheet_plan(sh, m->size)),
                  w->groups ? w->steps * 16 : w->dim);
    sheet_require(sh, "%.*s <= %d", STR_ARG(sheet_plan(sh, m->out_size)), w->out);
    if (w->packed && m->member_divides)
        sheet_require(sh, "%.*s %% %.*s == 0", STR_ARG(sheet_plan(sh, extent_of(w, m->member))),
                      STR_ARG(sheet_plan(sh, m->group)));
    for (size_t i = 0; i < m->nstores; i++) {
        size_t v = m->stores[i].merged;
        if (v == SIZE_MAX)
            continue;
        const struct expr *all = m->in->task->tensors[m->stores[i].s->tensor].extent[v];
        struct expr *product = expr_times(sh->mem, (struct expr *)extent_of(w, m->stores[i].var[v]),
                                          (struct expr *)m->stores[i].by);
        if (!expr_same(all, product))
            sheet_require(sh, "%.*s == %.*s", STR_ARG(sheet_plan(sh, all)),
                          STR_ARG(sheet_plan(sh, product)));
    }
    if (!w->flat)
        sheet_require(sh, "%.*s <= 65535", STR_ARG(batches));
    str tiles = sheet_printf(sh, "ceil_div(%.*s, %d)", STR_ARG(rows), w->rows);
    str grid = w->flat ? TEXT(sh, "$*($)", tiles, batches) : TEXT(sh, "$, $", tiles, batches);
    if (w->splits > 1)
        grid = sheet_printf(sh, w->flat ? "%.*s, 1, %d" : "%.*s, %d", STR_ARG(grid), w->splits);
    sheet_step(sh,
               w->flat && w->splits == 1 ? "launch %.*s<<<%.*s, %d, %d>>>(%.*s)"
                                         : "launch %.*s<<<[%.*s], %d, %d>>>(%.*s)",
               STR_ARG(w->k.name), STR_ARG(grid), w->threads,
               (int)(w->groups ? group_bytes(w) : shared_bytes(w)), STR_ARG(args));
    sheet_note(sh, "attention%s: %d queries a block, %d keys a step, %d steps in flight",
               w->groups ? " by warp groups" : "", w->rows, w->keys, w->stages);
    if (w->splits * w->key_warps > 1)
        sheet_note(sh, "few queries: %d parts of the keys, combined by a second kernel",
                   w->splits * w->key_warps);
    const struct used all[] = {{"query-tile", w->rows < 64 ? 64 : w->rows},
                               {"key-tile", w->keys},
                               {"stages", w->stages},
                               {"tensor-path", w->groups ? 2 : 1}};
    sheet_used(sh, all, sizeof all / sizeof *all);
}

static bool write_kernels(struct writer *w) {
    struct sheet *sh = w->sh;
    struct slots *s = &w->slots;
    bool parts = w->splits * w->key_warps > 1;
    str of_parts = S(""), of_rows = S("");
    if (parts) {
        str rows = TEXT(sh, "$*$", batches_plan(w), sheet_plan(sh, row_count(w)));
        str out = sheet_plan(sh, w->m.out_size),
            n = sheet_number(sh, (int64_t)w->splits * w->key_warps);
        of_parts =
            sheet_scratch(sh, S("attention_parts"), TEXT(sh, "[$, $*$] : f32", n, rows, out));
        of_rows = sheet_scratch(sh, S("attention_rows"), TEXT(sh, "[$, $*2] : f32", n, rows));
        w->k.own_param = S("float *__restrict__ parts, float *__restrict__ part_rows");
        w->k.own_arg = TEXT(sh, "$, $", of_parts, of_rows);
        slots_list(s, "stores");
        slots_list(s, "pairs");
        slots_list(s, "row_stores");
        slots_put(s, "store_coordinates", S(""));
    }
    put_operands(w);
    put_bounds(w);
    put_score(w);
    if (!parts)
        put_stores(w, &w->k, s);
    scope_hold(&w->k, w->m.top, S("largest"));
    scope_hold(&w->k, w->m.norm, S("total"));
    scope_hold(&w->k, w->m.mixed, S("sum"));
    bool kept = stores_top(w);
    slots_flag(s, "kept", kept || parts);
    slots_put(s, "larger", kept ? S("cp_maximum") : S("fmaxf"));
    if (kept)
        sheet_helper(sh, "maximum");
    put_schedule(w);
    if (sh->err->kind || (w->groups && !put_groups(w)))
        return false;
    slots_put(s, "coordinates", batch_coordinates(w, slots_texts(sh, s)));
    slots_put(s, "kernel", w->k.name);
    slots_put(s, "params", scope_params(&w->k));
    if (!sheet_put(sh, w->groups ? "attention/warpgroup.cu" : "attention/kernel.cu", s,
                   &sh->kernels))
        return false;
    put_plan(w, scope_args(&w->k));
    return !parts || write_combine(w, of_parts, of_rows);
}

static bool write_attention(struct sheet *sh, const struct step *st) {
    struct writer *w = arena_new_of(sh->mem, struct writer);
    bool take[TASK_MAX_STATEMENTS] = {false};
    *w = (struct writer){.sh = sh, .step = st};
    bool matched = attention_match(st->inst, 0, NULL, sh->mem, &w->m, take);
    BUG_IF(!matched);
    choose(w);
    choose_groups(w);
    if (!scope_init(&w->k, sh, st, "attention"))
        return false;
    slots_init(&w->slots, sh->mem);
    put_constants(w, &w->slots);
    put_variables(w, &w->k, &w->slots);
    scope_hold(&w->k, w->m.raw, S("raw"));
    return write_kernels(w) && !sh->err->kind;
}

/* ---- for planners ---- */

static bool attention_facts(const struct briefing *b, const struct step *st,
                            struct step_facts *out) {
    struct attention m;
    bool take[TASK_MAX_STATEMENTS] = {false};
    struct arena *a = arena_new((size_t)64 << 20);
    int64_t size = 1;
    (void)b;
    bool ok = attention_match(st->inst, 0, NULL, a, &m, take) &&
              expr_eval_dims(m.out_size, st->inst->dims, &size);
    struct writer w = {.m = m, .step = st};
    w.packed = ok && packs(&w);
    out->value[STEP_HEAD] = size;
    out->value[STEP_QUERIES] = !ok || !m.nrows ? 1 : size_of(&w, m.nrows);
    if (w.packed)
        out->value[STEP_QUERIES] *= size_of(&w, m.group);
    arena_free(a);
    return ok;
}

const struct family family_attention = {
    .name = "attention",
    .workload = WORKLOAD_ATTENTION,
    .fuses = true,
    .facts = attention_facts,
    .claim = claim,
    .write = write_attention,
};
