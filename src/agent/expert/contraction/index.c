/* Text of indices: the variables of a group from its flat index, and an operand's element: where it
 * is, whether it counts, what it is. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"

/* ---- names ---- */

bool con_begin(struct con_writer *w, str name, unsigned axes) {
    if (!scope_init(&w->k, w->sh, w->step, arena_cstr(w->sh->mem, name)))
        return false;
    w->nnames = 0;
    for (int x = 0; x < CON_AXES; x++) {
        w->total[x] = axes >> x & 1 ? scope_int(&w->k, w->c->group[x].total) : S("");
        w->decoded[x] = false;
    }
    w->index = scope_index_type(&w->k);
    w->k.statement = w->c->folds[0].statement;
    return true;
}

str con_name(struct con_writer *w, str base) {
    for (size_t i = 0; i < w->nnames; i++)
        if (str_eq(w->names[i].base, base))
            return w->names[i].name;
    BUG_IF(w->nnames == CON_NAMES);
    w->names[w->nnames].base = base;
    return w->names[w->nnames++].name = scope_name(&w->k, arena_cstr(w->sh->mem, base));
}

/* ---- variables ---- */

static str declare(struct con_writer *w, const char *type, str name, str value) {
    return TEXT(w->sh, "const $ $ = $;", str_view(type), name, value);
}

str con_part(struct con_writer *w, const struct con_index *x) {
    return con_name(w, TEXT(w->sh, "$_$", scope_variable(&w->k, x->var),
                            x->part == CON_QUOTIENT ? S("quotient") : S("remainder")));
}

/* The other part of a variable, in another group. */
static const struct con_index *other_part(const struct con_writer *w, const struct con_index *x) {
    for (int axis = 0; axis < CON_AXES; axis++)
        for (size_t i = 0; i < w->c->group[axis].n; i++) {
            const struct con_index *y = &w->c->group[axis].at[i];
            if (y->var == x->var && y->part != x->part)
                return y;
        }
    return x;
}

/* What a part alone says of its variable: any with the same quotient, or the first remainder. */
static str stand_in(struct con_writer *w, const struct con_index *x) {
    str part = con_part(w, x), by = scope_int(&w->k, x->divisor);
    return x->part == CON_REMAINDER ? part : TEXT(w->sh, "($ * $)", part, by);
}

/* v//D and v%D in the task's own text are then what was declared. */
static void hold_part(struct con_writer *w, const struct con_index *x) {
    enum expr_kind kind = x->part == CON_QUOTIENT ? EXPR_FLOORDIV : EXPR_MOD;
    scope_hold(&w->k, expr_pair(w->sh->mem, kind, expr_variable(w->sh->mem, x->var), x->divisor),
               con_part(w, x));
}

/* One variable of the group, or a part of one: the batch's part comes first, the side's then makes
 * it whole. */
static str declare_index(struct con_writer *w, bool batch, const char *type,
                         const struct con_index *x, str value) {
    str name = scope_variable(&w->k, x->var), *text = &w->k.var[x->var];
    if (x->part == CON_WHOLE)
        return declare(w, type, *text = name, value);
    str line = declare(w, type, con_part(w, x), value);
    hold_part(w, x);
    *text = stand_in(w, x);
    if (batch)
        return line;
    const struct con_index *y = other_part(w, x), *q = x->part == CON_QUOTIENT ? x : y;
    str by = scope_int(&w->k, x->divisor), quotient = con_part(w, q);
    str whole = TEXT(w->sh, "$ * $ + $", quotient, by, con_part(w, q == x ? y : x));
    return sheet_join(w->sh, line, "\n", declare(w, type, *text = name, whole));
}

/* Each is flat / (B*C) % A. */
str con_decode_run(struct con_writer *w, const struct con_group *g, size_t from, size_t to,
                   const char *type, str flat) {
    str lines = S("");
    for (size_t i = from; i < to; i++) {
        struct expr *inner = con_extents(w->c, g, i + 1, to);
        str value = flat;
        if (!expr_is_number(inner, 1))
            value = TEXT(w->sh, "$ / $", value, scope_int(&w->k, inner));
        if (i > from)
            value = TEXT(w->sh, "$ % $", value, scope_int(&w->k, g->at[i].extent));
        bool batch = g == &w->c->group[CON_BATCH];
        lines = sheet_join(w->sh, lines, "\n", declare_index(w, batch, type, &g->at[i], value));
    }
    return lines;
}

/* Where all variables of a group index neighbouring dimensions, its index says where. */
static void put_run(struct con_writer *w, const struct con_group *g, str flat) {
    struct scope_run run = {.n = g->n, .total = g->total, .text = flat};
    for (size_t i = 0; i < g->n; i++) {
        if (g->at[i].part != CON_WHOLE)
            return;
        run.var[i] = g->at[i].var;
        run.extent[i] = g->at[i].extent;
    }
    scope_put_run(&w->k, &run);
}

str con_decode(struct con_writer *w, enum con_axis axis, str value, str *flat) {
    static const char *const names[CON_AXES] = {"flat_batch", "flat_m", "flat_n", "flat_k"};
    const struct con_group *g = &w->c->group[axis];
    const char *type = axis == CON_K ? "int" : w->index; /* the plan keeps k below 2^30 */
    *flat = value;
    if (g->n == 0)
        return S("");
    if (axis == CON_K && w->c->taps)
        return con_decode_taps(w, value, flat);
    if (g->n > 1)
        *flat = con_name(w, str_view(names[axis]));
    str lines = con_decode_run(w, g, 0, g->n, type, *flat);
    if (g->n > 1) {
        put_run(w, g, *flat);
        return sheet_join(w->sh, declare(w, type, *flat, value), "\n", lines);
    }
    *flat = g->at[0].part == CON_WHOLE ? w->k.var[g->at[0].var] : con_part(w, &g->at[0]);
    return lines;
}

/* Of variables that are taken apart, the batch's part stands for all. */
void con_forget(struct con_writer *w, size_t operand) {
    for (int axis = CON_M; axis <= CON_N; axis++)
        for (size_t i = 0; i < w->c->group[axis].n; i++) {
            const struct con_index *x = &w->c->group[axis].at[i];
            if (x->part != CON_WHOLE)
                w->k.var[x->var] = stand_in(w, other_part(w, x));
            else if (axis != (int)w->c->operands[operand].side)
                w->k.var[x->var] = S("");
        }
    w->k.statement = w->c->folds[0].statement;
}

/* ---- an operand's element ---- */

bool con_can_leave(const struct contraction *c, const struct con_operand *o, size_t d) {
    const struct expr *e = o->read->args[d];
    const struct expr *extent = c->in->task->tensors[o->read->ref].extent[d];
    for (int x = 0; x < CON_AXES; x++)
        for (size_t i = 0; i < c->group[x].n && e->kind == EXPR_INDEX; i++)
            if (c->group[x].at[i].var == e->ref && c->group[x].at[i].part == CON_WHOLE &&
                expr_same(c->group[x].at[i].extent, extent))
                return false;
    return !expr_is_number(e, 0);
}

str con_exists(struct con_writer *w, const struct con_operand *o, str side, str k, str end) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str s = TEXT(w->sh, "$ < $ && $ < $", side, w->total[o->side], k, end);
    if (w->c->taps)
        s = sheet_join(w->sh, s, " && ", con_rest(w));
    for (size_t i = 0; i < o->nconditions; i++)
        s = TEXT(w->sh, "$ && ($)", s, scope_text(&w->k, o->conditions[i]));
    for (size_t d = 0; o->factor->kind == EXPR_PAD && d < o->read->nargs; d++) {
        if (!con_can_leave(w->c, o, d))
            continue;
        str at = scope_text(&w->k, o->read->args[d]), size = scope_int(&w->k, t->extent[d]);
        str type = w->k.wide ? S("unsigned long long") : S("unsigned");
        s = TEXT(w->sh, "$ && ($)($) < ($)$", s, type, at, type, size);
    }
    return s;
}

str con_element(struct con_writer *w, const struct con_operand *o, enum dtype to) {
    enum dtype from = w->c->in->task->tensors[o->read->ref].dtype;
    str pointer = scope_pointer(&w->k, o->read->ref, false);
    str element = TEXT(w->sh, "$[$]", pointer, scope_offset_text(&w->k, o->read));
    if (from == to || (from == DTYPE_F64 && to == DTYPE_F32))
        return element;
    str value = scope_unpacked(&w->k, o->read->ref, element);
    if (dtype_info(from)->kind != 'f')
        value = TEXT(w->sh, "(float)$", value);
    return to == DTYPE_F32   ? value
           : to == DTYPE_F16 ? TEXT(w->sh, "__float2half_rn($)", value)
                             : TEXT(w->sh, "__float2bfloat16_rn($)", value);
}

const char *con_zero(enum dtype t) {
    return t == DTYPE_F16 ? "__half(0.0f)" : t == DTYPE_BF16 ? "__nv_bfloat16(0.0f)" : "0.0f";
}

/* Sum of place times stride over the dimensions that the side and k do not run through. */
str con_batch_offset(struct con_writer *w, const struct con_operand *o) {
    str sum = S("");
    uint32_t mine = 0;
    for (int x = CON_M; x < CON_AXES; x++)
        for (size_t i = 0; (x == CON_K || x == (int)o->side) && i < w->c->group[x].n; i++)
            if (w->c->group[x].at[i].part == CON_WHOLE)
                mine |= UINT32_C(1) << w->c->group[x].at[i].var;
    for (size_t d = 0; d < o->read->nargs; d++) {
        const struct expr *e = o->read->args[d];
        bool rest = e->kind == EXPR_MOD && o->dense && expr_vars(e);
        if (expr_vars(e) & mine || expr_is_number(e, 0) || rest)
            continue;
        str at = scope_text(&w->k, e), by = scope_int(&w->k, con_stride(w->c, o, (int)d));
        sum = sheet_join(w->sh, sum, " + ", TEXT(w->sh, e->nargs ? "($) * $" : "$ * $", at, by));
    }
    return sum;
}

/* ---- which copy of an operand, or which of its leading dimensions ---- */

static str horner(struct con_writer *w, str sum, str at, const struct expr *extent) {
    return sum.n ? TEXT(w->sh, "($ * $ + $)", sum, scope_int(&w->k, extent), at) : at;
}

str con_slab(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str s = S("");
    if (w->g.tile[operand].packed) {
        struct con_group batch;
        con_batch(w->c, o, &batch);
        for (size_t i = 0; i < batch.n; i++) {
            const struct con_index *x = &batch.at[i];
            s = horner(w, s, x->part == CON_WHOLE ? w->k.var[x->var] : con_part(w, x), x->extent);
        }
        return s;
    }
    for (int d = 0; d < o->first && d < o->k_first; d++) {
        str at = scope_text(&w->k, o->read->args[d]);
        s = horner(w, s, o->read->args[d]->nargs ? TEXT(w->sh, "($)", at) : at, t->extent[d]);
    }
    return s;
}
