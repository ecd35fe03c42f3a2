/* family_attention: scores, softmax and the mix of values in one kernel, for 16-bit operands.
 *
 *     score[batch, i, j] = sum(d) q[…, i, d] * k[…, j, d]
 *     top[batch, i]      = max(j) F(score)
 *     norm[batch, i]     = sum(j) exp(F(score) - top)
 *     mixed[batch, i, e] = sum(j) exp(F(score) - top) * v[…, j, e]
 *     y                  = a map of mixed and norm
 *
 * F is any expression of one score and its indices; the ranges of j are one and may depend on i.
 * Everything is stated in the variables of `score`: batch, i and j; e is kept apart. */
#include "agent/expert/plan/step_facts.h"
#include "agent/expert/sheet/pieces.h"
#include "spec/domain.h"
#include "spec/pattern.h"
#include <string.h>

#define HEAD_MOST 256 /* results of 16 queries a warp stay in registers */

/* ---- recognition ---- */

struct attention {
    const struct inst *in;
    struct arena *mem;
    const struct statement *score, *top, *norm, *mixed;
    size_t row, key, inner;             /* variables of `score`: i, j and d */
    const struct expr *q, *k, *v;       /* reads; v in variables of `mixed` */
    const struct expr *read;            /* of score, in its own variables */
    struct expr *f;                     /* F(score) */
    const struct expr *lo, *hi, *guard; /* of j; guard NULL: none */
    size_t mixed_var[TASK_MAX_VARS];    /* a variable of `mixed` as one of `score`; SIZE_MAX: e */
    size_t out;                         /* e, a variable of `mixed` */
    size_t key_of_mixed;                /* j there */
};

/* The variable stands alone in exactly one index of the read. */
static bool indexes_once(const struct expr *read, size_t var) {
    size_t alone = 0;
    for (size_t i = 0; i < read->nargs; i++)
        if (expr_is_variable(read->args[i], var))
            alone++;
        else if (expr_vars(read->args[i]) >> var & 1)
            return false;
    return alone == 1;
}

/* The innermost index is the variable, over all of its extent. */
static bool runs_along(const struct inst *in, const struct expr *read, size_t var,
                       const struct expr *extent) {
    return read->nargs && expr_is_variable(read->args[read->nargs - 1], var) &&
           expr_same(in->task->tensors[read->ref].extent[read->nargs - 1], extent);
}

static bool has_range_of_one(const struct statement *s, enum reduction op) {
    return form_is_fold(s) && s->body->reduce->op == op && s->body->reduce->nvars == 1;
}

static bool is_half(const struct inst *in, const struct expr *read) {
    enum dtype t = in->task->tensors[read->ref].dtype;
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

/* score: two plain reads of one 16-bit type. */
static bool match_score(struct attention *m) {
    struct factors f;
    const struct statement *s = m->score;
    if (!form_is_product(s) || !has_range_of_one(s, REDUCTION_SUM) || s->body->reduce->guard ||
        !expr_is_number(s->body->reduce->vars[0].lo, 0) ||
        m->in->task->tensors[s->tensor].role != TENSOR_LET)
        return false;
    pattern_factors(s->body->args[0], &f);
    m->inner = s->body->reduce->vars[0].var;
    if (f.n != 2 || s->body->args[0]->kind != EXPR_MUL || f.e[0]->kind != EXPR_READ ||
        f.e[1]->kind != EXPR_READ || !is_half(m->in, f.e[0]) ||
        m->in->task->tensors[f.e[0]->ref].dtype != m->in->task->tensors[f.e[1]->ref].dtype)
        return false;
    m->q = f.e[0];
    m->k = f.e[1];
    return true;
}

/* Which variable of `score` each variable of `s` is, from its one way of reading the scores. */
static bool map_variables(const struct attention *m, const struct expr *e, size_t *map) {
    if (e->kind == EXPR_READ && e->ref == m->score->tensor) {
        for (size_t i = 0; i < e->nargs; i++) {
            if (e->args[i]->kind != EXPR_INDEX)
                return false;
            size_t *to = &map[e->args[i]->ref];
            if (*to != SIZE_MAX && *to != i)
                return false;
            *to = i;
        }
        return true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!map_variables(m, expr_part(e, i), map))
            return false;
    return true;
}

/* In variables of `score`; those it does not have are numbered behind its own. */
static struct expr *in_scores(const struct attention *m, const struct expr *e, const size_t *map) {
    struct expr *to[TASK_MAX_VARS] = {NULL};
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        to[v] = expr_variable(m->mem, map[v] != SIZE_MAX ? map[v] : TASK_MAX_VARS - 1);
    return expr_replace(e, to, m->mem);
}

static bool map_fold(const struct attention *m, const struct statement *s, size_t *map) {
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        map[v] = SIZE_MAX;
    return map_variables(m, s->body, map) && map[s->body->reduce->vars[0].var] != SIZE_MAX;
}

/* The range of the keys, the same in all folds over them. */
static bool same_range(const struct attention *m, const struct reduce *r, const size_t *map) {
    return expr_same(in_scores(m, r->vars[0].lo, map), m->lo) &&
           expr_same(in_scores(m, r->vars[0].hi, map), m->hi) && !r->guard == !m->guard &&
           (!r->guard || expr_same(in_scores(m, r->guard, map), m->guard));
}

static bool match_top(struct attention *m) {
    size_t map[TASK_MAX_VARS];
    const struct statement *s = m->top;
    if (!map_fold(m, s, map))
        return false;
    const struct reduce *r = s->body->reduce;
    m->key = map[r->vars[0].var];
    m->lo = in_scores(m, r->vars[0].lo, map);
    m->hi = in_scores(m, r->vars[0].hi, map);
    m->guard = r->guard ? in_scores(m, r->guard, map) : NULL;
    m->f = in_scores(m, s->body->args[0], map);
    if (!(expr_vars(m->k) >> m->key & 1)) {
        const struct expr *other = m->k;
        m->k = m->q;
        m->q = other;
    }
    uint32_t rows = expr_vars(m->q) & ~expr_vars(m->k);
    if (__builtin_popcount(rows) != 1 || (expr_vars(m->q) >> m->key & 1))
        return false;
    m->row = (size_t)__builtin_ctz(rows);
    return s->nindex == m->score->nindex - 1 && m->row != m->key &&
           !(expr_vars(m->f) >> (TASK_MAX_VARS - 1) & 1);
}

/* exp(F - top), in variables of `score`. */
static bool is_weight(const struct attention *m, const struct expr *e, const size_t *map) {
    const struct expr *x = e->kind == EXPR_CALL && e->function == FUNCTION_EXP ? e->args[0] : NULL;
    if (!x || x->kind != EXPR_SUB || x->args[1]->kind != EXPR_READ ||
        x->args[1]->ref != m->top->tensor || !expr_same(in_scores(m, x->args[0], map), m->f))
        return false;
    size_t top_map[TASK_MAX_VARS];
    if (!map_fold(m, m->top, top_map))
        return false;
    for (size_t i = 0; i < x->args[1]->nargs; i++)
        if (x->args[1]->args[i]->kind != EXPR_INDEX || map[x->args[1]->args[i]->ref] != top_map[i])
            return false;
    return true;
}

static bool match_norm(const struct attention *m) {
    size_t map[TASK_MAX_VARS];
    const struct statement *s = m->norm;
    return map_fold(m, s, map) && map[s->body->reduce->vars[0].var] == m->key &&
           same_range(m, s->body->reduce, map) && is_weight(m, s->body->args[0], map) &&
           s->nindex == m->top->nindex;
}

static bool match_mixed(struct attention *m) {
    struct factors f;
    size_t *map = m->mixed_var;
    const struct statement *s = m->mixed;
    if (!map_fold(m, s, map) || map[s->body->reduce->vars[0].var] != m->key ||
        !same_range(m, s->body->reduce, map) || s->body->args[0]->kind != EXPR_MUL)
        return false;
    pattern_factors(s->body->args[0], &f);
    bool first = f.n == 2 && is_weight(m, f.e[0], map);
    m->v = f.n == 2 ? f.e[first] : NULL;
    if (!m->v || m->v->kind != EXPR_READ || (!first && !is_weight(m, f.e[1], map)) ||
        m->in->task->tensors[m->v->ref].dtype != m->in->task->tensors[m->q->ref].dtype)
        return false;
    m->key_of_mixed = s->body->reduce->vars[0].var;
    size_t loose = 0;
    for (size_t v = 0; v < s->nindex; v++)
        if (map[v] == SIZE_MAX) {
            m->out = v;
            loose++;
        }
    return loose == 1 && s->nindex == m->score->nindex && indexes_once(m->v, m->key_of_mixed) &&
           indexes_once(m->v, m->out) && !(expr_vars(m->v) >> m->row & 1 && map[m->row] == m->row);
}

/* Rows of q and k run along d, rows of v along e. */
static bool lies_well(const struct attention *m) {
    const struct expr *d = m->score->body->reduce->vars[0].hi;
    const struct task *t = m->in->task;
    const struct expr *e = t->tensors[m->mixed->tensor].extent[m->out];
    for (size_t v = 0; v < m->mixed->nindex; v++)
        if (m->mixed_var[v] == m->row && (expr_vars(m->v) >> v & 1))
            return false;
    return runs_along(m->in, m->q, m->inner, d) && runs_along(m->in, m->k, m->inner, d) &&
           runs_along(m->in, m->v, m->out, e) && indexes_once(m->q, m->row) &&
           indexes_once(m->k, m->key) && expr_same(d, e);
}

/* The maps that read `mixed` at their own element; norm and top where the row says. */
static bool take_maps(const struct attention *m, bool *take) {
    const struct task *t = m->in->task;
    bool any = false;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (!expr_reads_tensor(s->body, m->mixed->tensor) || s == m->mixed)
            continue;
        if (!form_is_map(s) || s->nindex != m->mixed->nindex ||
            t->tensors[s->tensor].rank != s->nindex)
            return false;
        take[i] = any = true;
    }
    return any;
}

static const struct statement *find_fold(const struct attention *m, size_t from, enum reduction op,
                                         size_t *at) {
    const struct task *t = m->in->task;
    for (size_t i = from; i < t->nstatements; i++)
        if (has_range_of_one(&t->statements[i], op) &&
            expr_reads_tensor(t->statements[i].body, m->score->tensor)) {
            *at = i;
            return &t->statements[i];
        }
    return NULL;
}

/* Nothing but the chain reads what the chain does not store. */
static bool is_closed(const struct attention *m, const bool *take) {
    const struct task *t = m->in->task;
    const struct statement *inside[] = {m->score, m->top, m->norm, m->mixed};
    for (size_t i = 0; i < t->nstatements; i++)
        for (size_t k = 0; !take[i] && k < 4; k++)
            if (expr_reads_tensor(t->statements[i].body, inside[k]->tensor))
                return false;
    return true;
}

/* Whether statement `first` is the scores of such a chain; with the maps at its end in `take`. */
static bool match_chain(const struct inst *in, size_t first, struct arena *a, struct attention *out,
                        bool *take) {
    const struct task *t = in->task;
    size_t top, norm, mixed;
    *out = (struct attention){.in = in, .mem = a, .score = &t->statements[first]};
    if (!match_score(out) || !(out->top = find_fold(out, first + 1, REDUCTION_MAX, &top)) ||
        !match_top(out) || !(out->norm = find_fold(out, top + 1, REDUCTION_SUM, &norm)))
        return false;
    /* The two sums come in either order. */
    out->mixed = find_fold(out, norm + 1, REDUCTION_SUM, &mixed);
    if (!out->mixed)
        return false;
    if (!match_norm(out)) {
        const struct statement *other = out->norm;
        out->norm = out->mixed;
        out->mixed = other;
        if (!match_norm(out))
            return false;
    }
    take[first] = take[top] = take[norm] = take[mixed] = true;
    return match_mixed(out) && lies_well(out) && take_maps(out, take) && is_closed(out, take);
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    (void)b, (void)done;
    struct attention m;
    struct arena *a = arena_new((size_t)16 << 20);
    bool ok = match_chain(f->inst, first, a, &m, take);
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
    while (!expr_is_variable(read->args[at], var))
        at++;
    str text = S("1LL");
    for (size_t i = at + 1; i < t->rank; i++)
        text = TEXT(w->sh, "$ * $", text, scope_int(&w->k, t->extent[i]));
    return text;
}

/* The place of a matrix: the read where the variables of its rows and columns are 0. */
static str base_text(struct writer *w, const struct expr *read, size_t row, size_t column) {
    str kept[2] = {w->k.var[row], w->k.var[column]};
    w->k.var[row] = w->k.var[column] = S("0");
    str text = scope_offset_text(&w->k, read);
    w->k.var[row] = kept[0];
    w->k.var[column] = kept[1];
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
    struct sheet *sh = w->sh;
    str lo = bound_text(w, w->m.lo, S("first")), hi = bound_text(w, w->m.hi, S("last"));
    str keys = slots_get(&w->slots, "nkeys");
    bool from_zero = !lo.n || str_is(lo, "0"), all = !hi.n || str_eq(hi, keys);
    slots_put(&w->slots, "begin", from_zero ? S("0") : TEXT(sh, "max((int)($), 0) / kKeys", lo));
    slots_put(&w->slots, "end", all ? keys : TEXT(sh, "min((int)($), $)", hi, keys));
}

/* Does a score count? */
static str selected_text(struct writer *w) {
    struct sheet *sh = w->sh;
    const struct attention *m = &w->m;
    str row = w->k.var[m->row], key = w->k.var[m->key], lo = scope_text(&w->k, m->lo);
    str text = TEXT(sh, "$ < $", key, scope_text(&w->k, m->hi));
    if (!str_is(lo, "0"))
        text = TEXT(sh, "$ <= $ && $", lo, key, text);
    /* Rows and keys beyond the last are in no tensor. */
    text = TEXT(sh, "$ < $ && $ < $ && $", row, slots_get(&w->slots, "nrows"), key,
                slots_get(&w->slots, "nkeys"), text);
    return m->guard ? TEXT(sh, "$ && ($)", text, scope_text(&w->k, m->guard)) : text;
}

/* Does every key of a tile count, for every row of the warp? */
static str whole_text(struct writer *w) {
    const struct attention *m = &w->m;
    struct sheet *sh = w->sh;
    str nkeys = slots_get(&w->slots, "nkeys"), nrows = slots_get(&w->slots, "nrows");
    str hi = bound_text(w, m->hi, S("(first + warp * 16)")),
        lo = bound_text(w, m->lo, S("((first + warp * 16) + 15)"));
    if (m->guard || !hi.n || !lo.n)
        return S("false");
    if (!str_eq(hi, nkeys))
        nkeys = TEXT(sh, "min((int)($), $)", hi, nkeys);
    str text = TEXT(sh, "(tile + 1) * kKeys <= $ && (first + warp * 16) + 15 < $", nkeys, nrows);
    return str_is(lo, "0") ? text : TEXT(sh, "$ && (int)($) <= tile * kKeys", text, lo);
}

/* What a score becomes. Division by what is the same for all is done once. */
static void put_score(struct writer *w) {
    const struct expr *f = w->m.f;
    bool divides = f->kind == EXPR_DIV && f->args[0]->kind == EXPR_READ && !expr_vars(f->args[1]) &&
                   !expr_has(f->args[1], EXPR_READ);
    slots_put(&w->slots, "divisor", divides ? scope_text(&w->k, f->args[1]) : S(""));
    slots_put(&w->slots, "f", divides ? S("raw * inverse") : scope_text(&w->k, f));
}

/* The maps at the end: mixed, norm and top are in registers. */
static bool put_stores(struct writer *w) {
    const struct attention *m = &w->m;
    const struct task *t = w->step->inst->task;
    str of[TASK_MAX_VARS];
    memcpy(of, w->k.var, sizeof of);
    for (size_t v = 0; v < m->mixed->nindex; v++)
        w->k.var[v] = m->mixed_var[v] == SIZE_MAX ? S("column") : of[m->mixed_var[v]];
    for (size_t i = 0; i < t->nstatements && !sheet_failed(w->sh); i++) {
        const struct statement *s = &t->statements[i];
        if (!form_is_map(s))
            continue;
        w->k.statement = s;
        struct slots *row = slots_row(&w->slots, "stores");
        str value = scope_text(&w->k, s->body);
        slots_put(row, "place", scope_place_text(&w->k));
        slots_put(row, "to", scope_pointer(&w->k, s->tensor, true));
        slots_put(row, "packed", scope_packed(&w->k, s->tensor, s->body->value_kind, value));
    }
    memcpy(w->k.var, of, sizeof of);
    w->k.statement = m->score;
    return !sheet_failed(w->sh);
}

/* Reads of the chain's own tensors stand in registers, whatever statement asks. */
static void hold_reads(struct writer *w, const struct expr *e) {
    const struct attention *m = &w->m;
    const str names[] = {S("raw"), S("top[elem / 2]"), S("norm[elem / 2]"),
                         S("mixed[group][elem]")};
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

static void put_constants(struct writer *w) {
    struct slots *t = &w->slots;
    bool half = w->m.in->task->tensors[w->m.q->ref].dtype == DTYPE_F16;
    *(half ? &w->sh->half : &w->sh->bfloat) = true;
    slots_init(t, w->sh->mem);
    slots_number(t, "rows", w->rows);
    slots_number(t, "keys", w->keys);
    slots_number(t, "stages", w->stages);
    slots_number(t, "dim", w->dim);
    slots_number(t, "threads", 2 * w->rows);
    slots_flag(t, "half", half);
    slots_put(t, "type", half ? S("__half") : S("__nv_bfloat16"));
    slots_put(t, "mma", half ? S("f16") : S("bf16"));
    slots_put(t, "zero", half ? S("__float2half_rn(0.0f)") : S("__float2bfloat16_rn(0.0f)"));
    slots_put(t, "round", half ? S("__float2half_rn") : S("__float2bfloat16_rn"));
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
    struct sheet *sh = w->sh;
    str used = slots_texts(sh, &w->slots), block = S("blockIdx.x"), batch = S("blockIdx.y");
    if (is_flat(w)) {
        str tiles = TEXT(sh, "(($ + $) / $)", slots_get(&w->slots, "nrows"),
                         sheet_number(sh, w->rows - 1), sheet_number(sh, w->rows));
        block = TEXT(sh, "(int)blockIdx.x % $", tiles);
        batch = TEXT(sh, "((int)blockIdx.x / $)", tiles);
    }
    slots_put(&w->slots, "block", block);
    slots_put(&w->slots, "coordinates",
              place_coordinates(&w->k, w->m.score, batch_vars(&w->m), batch, false, used));
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
    return sheet_function(sh, "attention/functions.cu", &w->slots) &&
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
    bool matched = match_chain(st->inst, 0, sh->mem, &w->m, take);
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

/* ---- for planners ---- */

/* The last extent of what the step stores. */
static bool attention_facts(const struct briefing *b, const struct step *st,
                            struct step_facts *out) {
    const struct task *t = st->inst->task;
    const struct statement *last = &t->statements[t->nstatements - 1];
    size_t rank = t->tensors[last->tensor].rank;
    (void)b;
    out->value[STEP_HEAD] = rank ? st->inst->tensors[last->tensor].extent[rank - 1] : 1;
    return true;
}

const struct family family_attention = {
    .name = "attention",
    .workload = WORKLOAD_ATTENTION,
    .fuses = true,
    .facts = attention_facts,
    .claim = claim,
    .write = write_attention,
};
