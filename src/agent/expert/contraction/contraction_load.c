/* The text that brings operands to shared memory.
 *
 * A loader is a lambda load_<n>(stage, k) for the tile of k that begins there. Dense operands with
 * aligned rows are copied by 16 bytes. All others go element by element, each thread along what
 * runs in memory: its place, and whether it exists, stand as text of the operand's own index
 * expressions. Elements of 4 bytes that need no conversion are copied in the background; others
 * are held in registers until the tile in use has been multiplied, and stored by keep_<n>. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"

/* ---- names ---- */

static bool is_task_name(const struct task *t, str name) {
    for (size_t i = 0; i < t->ndims; i++)
        if (str_eq(t->dims[i].name, name))
            return true;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        for (size_t k = 0; k < s->nindex; k++)
            if (str_eq(s->index[k], name))
                return true;
        const struct reduce *r = s->body->kind == EXPR_REDUCE ? s->body->reduce : NULL;
        for (size_t k = 0; r && k < r->nvars; k++)
            if (str_eq(r->vars[k].name, name))
                return true;
    }
    return tensor_find(t, name) >= 0;
}

str contraction_local(struct con_writer *w, const char *name) {
    str s = str_view(name);
    bool known = false;
    while (is_task_name(w->step->inst->task, s))
        s = sheet_printf(w->sh, "%.*s_", STR_ARG(s));
    for (size_t i = 0; i < w->sh->ntaken && !known; i++)
        known = str_eq(w->sh->taken[i], s);
    if (!known)
        sheet_name(w->sh, s);
    return s;
}

/* ---- variables ---- */

/* x / (B*C) % A: the part of a flat index that is variable i of the group. */
static str part_of(struct con_writer *w, const struct con_group *g, size_t i, str flat) {
    struct expr *inner = NULL;
    bool outermost = i == 0;
    for (size_t k = i + 1; k < g->n; k++)
        inner = inner ? expr_times(w->sh->mem, inner, g->at[k].extent) : g->at[k].extent;
    str s = flat;
    if (inner) {
        str size = scope_int(&w->k, inner);
        s = sheet_printf(w->sh, "%.*s / %.*s", STR_ARG(s), STR_ARG(size));
    }
    if (!outermost) {
        str size = scope_int(&w->k, g->at[i].extent);
        s = sheet_printf(w->sh, "%.*s %% %.*s", STR_ARG(s), STR_ARG(size));
    }
    return s;
}

static void declare(const char *type, str name, str value, struct buf *out) {
    buf_printf(out, "const %s %.*s = %.*s;\n", type, STR_ARG(name), STR_ARG(value));
}

str contraction_part(struct con_writer *w, const struct con_index *x) {
    str name = scope_variable(&w->k, x->var);
    str part = sheet_printf(w->sh, "%.*s_%s", STR_ARG(name),
                            x->part == CON_QUOTIENT ? "quotient" : "remainder");
    return contraction_local(w, part.p);
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
    str part = contraction_part(w, x), by = scope_int(&w->k, x->divisor);
    return x->part == CON_REMAINDER
               ? part
               : sheet_printf(w->sh, "(%.*s * %.*s)", STR_ARG(part), STR_ARG(by));
}

/* v//D and v%D in the task's own text are then what was declared. */
static void hold_part(struct con_writer *w, const struct con_index *x) {
    struct expr *var = arena_new_of(w->sh->mem, struct expr);
    struct expr *e = arena_new_of(w->sh->mem, struct expr);
    *var = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = x->var};
    *e = (struct expr){.kind = x->part == CON_QUOTIENT ? EXPR_FLOORDIV : EXPR_MOD,
                       .value_kind = VALUE_INT,
                       .nargs = 2};
    e->args = arena_array(w->sh->mem, struct expr *, 2);
    e->args[0] = var;
    e->args[1] = (struct expr *)x->divisor;
    scope_hold(&w->k, e, contraction_part(w, x));
}

/* One variable of the group, or a part of one: the batch's part comes first, the side's then makes
 * it whole. */
static void declare_index(struct con_writer *w, enum con_axis axis, const char *type,
                          const struct con_index *x, str value, struct buf *out) {
    str name = scope_variable(&w->k, x->var);
    if (x->part == CON_WHOLE) {
        declare(type, name, value, out);
        w->k.var[x->var] = name;
        return;
    }
    declare(type, contraction_part(w, x), value, out);
    hold_part(w, x);
    w->k.var[x->var] = stand_in(w, x);
    if (axis == CON_BATCH)
        return;
    const struct con_index *y = other_part(w, x), *q = x->part == CON_QUOTIENT ? x : y;
    str by = scope_int(&w->k, x->divisor), quotient = contraction_part(w, q),
        remainder = contraction_part(w, q == x ? y : x);
    declare(type, name,
            sheet_printf(w->sh, "%.*s * %.*s + %.*s", STR_ARG(quotient), STR_ARG(by),
                         STR_ARG(remainder)),
            out);
    w->k.var[x->var] = name;
}

str contraction_decode(struct con_writer *w, enum con_axis axis, str value, struct buf *out) {
    static const char *const flat_names[CON_AXES] = {"batch", "flat_m", "flat_n", "flat_k"};
    const struct con_group *g = &w->c->group[axis];
    const char *type = axis == CON_K ? "int" : w->index; /* the plan keeps k below 2^30 */
    str flat = value;
    if (g->n == 0)
        return flat;
    if (axis == CON_K && w->c->taps)
        return contraction_decode_taps(w, value, out);
    if (g->n > 1) {
        flat = contraction_local(w, flat_names[axis]);
        if (!str_eq(flat, value))
            declare(type, flat, value, out);
    }
    for (size_t i = 0; i < g->n; i++)
        declare_index(w, axis, type, &g->at[i], g->n > 1 ? part_of(w, g, i, flat) : value, out);
    if (g->n > 1)
        return flat;
    return g->at[0].part == CON_WHOLE ? w->k.var[g->at[0].var] : contraction_part(w, &g->at[0]);
}

/* ---- places ---- */

static void put_and(struct buf *out) {
    if (out->n)
        buf_puts(out, S(" && "));
}

bool contraction_can_leave(const struct contraction *c, const struct con_operand *o, size_t d) {
    const struct expr *e = o->read->args[d];
    const struct expr *extent = c->in->task->tensors[o->read->ref].extent[d];
    for (int x = 0; x < CON_AXES; x++)
        for (size_t i = 0; i < c->group[x].n && e->kind == EXPR_INDEX; i++)
            if (c->group[x].at[i].var == e->ref && c->group[x].at[i].part == CON_WHOLE &&
                expr_same(c->group[x].at[i].extent, extent))
                return false;
    return !expr_is_number(e, 0);
}

/* `x && y`: the element is one that counts. */
void contraction_exists(struct con_writer *w, const struct con_operand *o, struct buf *out) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    for (size_t i = 0; i < o->nonly; i++) {
        put_and(out);
        str s = scope_text(&w->k, o->only[i]);
        buf_printf(out, "(%.*s)", STR_ARG(s));
    }
    for (size_t d = 0; o->factor->kind == EXPR_PAD && d < o->read->nargs; d++) {
        if (!contraction_can_leave(w->c, o, d))
            continue;
        put_and(out);
        str at = scope_text(&w->k, o->read->args[d]), size = scope_int(&w->k, t->extent[d]);
        const char *wide = w->k.wide ? " long long" : "";
        buf_printf(out, "(unsigned%s)(%.*s) < (unsigned%s)%.*s", wide, STR_ARG(at), wide,
                   STR_ARG(size));
    }
}

static str offset_text(struct con_writer *w, const struct con_operand *o) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    scope_offset(&w->k, o->read, &b);
    str s = sheet_keep(w->sh, &b);
    buf_release(&b);
    return s;
}

static int tile_offset(const struct con_writer *w, size_t operand) {
    const struct contraction *c = w->c;
    size_t at = 0;
    for (size_t i = 0; i < c->noperands; i++) {
        bool before = c->operands[i].side == CON_M
                          ? c->operands[operand].side == CON_N || i < operand
                          : c->operands[operand].side == CON_N && i < operand;
        at += before ? w->g.tile[i].bytes : 0;
    }
    return (int)at;
}

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}

static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}

str contraction_loader_name(struct con_writer *w, const char *what, size_t operand) {
    str tensor = w->c->in->task->tensors[w->c->operands[operand].read->ref].name;
    str s = sheet_printf(w->sh, "%s_%.*s", what, STR_ARG(tensor));
    for (size_t i = 0; i < operand; i++) /* a matrix times itself */
        if (w->c->operands[i].read->ref == w->c->operands[operand].read->ref)
            s = sheet_printf(w->sh, "%.*s_%zu", STR_ARG(s), operand);
    return contraction_local(w, s.p);
}

/* ---- rows by 16 bytes ---- */

/* Sum of place times stride over the dimensions that the side and k do not run through. */
static str batch_offset(struct con_writer *w, const struct con_operand *o) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str sum = S("");
    uint32_t mine = 0;
    for (int x = CON_M; x < CON_AXES; x++)
        for (size_t i = 0; (x == CON_K || x == (int)o->side) && i < w->c->group[x].n; i++)
            if (w->c->group[x].at[i].part == CON_WHOLE)
                mine |= UINT32_C(1) << w->c->group[x].at[i].var;
    for (size_t d = 0; d < t->rank; d++) {
        const struct expr *e = o->read->args[d];
        bool rest = e->kind == EXPR_MOD && o->dense && expr_uses(e);
        if (expr_uses(e) & mine || expr_is_number(e, 0) || rest)
            continue;
        struct expr *stride = NULL;
        for (size_t k = d + 1; k < t->rank; k++)
            stride = stride ? expr_times(w->sh->mem, stride, t->extent[k]) : t->extent[k];
        str at = scope_text(&w->k, e), by = stride ? scope_int(&w->k, stride) : S("1");
        const char *plus = sum.n ? " + " : "";
        sum = e->nargs ? sheet_printf(w->sh, "%.*s%s(%.*s) * %.*s", STR_ARG(sum), plus, STR_ARG(at),
                                      STR_ARG(by))
                       : sheet_printf(w->sh, "%.*s%s%.*s * %.*s", STR_ARG(sum), plus, STR_ARG(at),
                                      STR_ARG(by));
    }
    return sum;
}

static str source_text(struct con_writer *w, const struct con_operand *o, str side, str k) {
    str by = scope_int(&w->k, o->k_runs ? o->side_stride : o->k_stride);
    str slow = o->k_runs ? side : k, fast = o->k_runs ? k : side;
    return sheet_printf(w->sh, "(%s)(%.*s) * %.*s + %.*s", w->index, STR_ARG(slow), STR_ARG(by),
                        STR_ARG(fast));
}

/* The plan promises rows of whole pieces. */
static void require_pieces(struct con_writer *w, const struct con_operand *o, int piece) {
    str row = sheet_plan(w->sh, o->row),
        run = sheet_plan(w->sh, w->c->group[o->k_runs ? CON_K : o->side].total);
    sheet_require(w->sh, "%.*s %% %d == 0", STR_ARG(row), piece);
    if (!str_eq(row, run))
        sheet_require(w->sh, "%.*s %% %d == 0", STR_ARG(run), piece);
}

/* Where rows come from: a pointer, what of it is the batch's, and a piece's place behind that. */
struct rows {
    str pointer, offset, source;
    str pitch; /* from one row to the next */
};

static struct rows dense_rows(struct con_writer *w, const struct con_operand *o, str side, str k) {
    require_pieces(w, o, 16 / w->g.element);
    return (struct rows){scope_pointer(&w->k, o->read->ref, false), batch_offset(w, o),
                         source_text(w, o, side, k),
                         scope_int(&w->k, o->k_runs ? o->side_stride : o->k_stride)};
}

static struct rows packed_rows(struct con_writer *w, size_t operand, str side, str k) {
    const struct con_operand *o = &w->c->operands[operand];
    str pitch = scope_int_plan(&w->k, "pitch", contraction_pitch(w));
    struct rows r = {w->packed[operand], contraction_slab(w, operand), S(""), pitch};
    if (r.offset.n)
        r.offset = sheet_printf(w->sh, "%.*s * %.*s * %.*s", STR_ARG(r.offset),
                                STR_ARG(w->total[o->side]), STR_ARG(pitch));
    if (w->listed) { /* a place in the list, to one in the copy */
        str taps = local(w, "taps"), depth = contraction_depth(w);
        k = sheet_printf(w->sh, "%.*s[(%.*s) / %.*s] * %.*s + (%.*s) %% %.*s", STR_ARG(taps),
                         STR_ARG(k), STR_ARG(depth), STR_ARG(depth), STR_ARG(k), STR_ARG(depth));
    }
    r.source = sheet_printf(w->sh, "(%s)(%.*s) * %.*s + %.*s", w->index, STR_ARG(side),
                            STR_ARG(pitch), STR_ARG(k));
    return r;
}

/* The batch's own pointer, where the batch is part of the place. */
static str rows_base(struct con_writer *w, size_t operand, struct rows *r) {
    if (!r->offset.n)
        return S("");
    str name = contraction_loader_name(w, "from", operand);
    str base = sheet_printf(w->sh, "\nconst %s *const %.*s = %.*s + (%s)(%.*s);",
                            dtype_info(w->g.tile[operand].type)->cuda, STR_ARG(name),
                            STR_ARG(r->pointer), w->index, STR_ARG(r->offset));
    r->pointer = name;
    return base;
}

static bool load_rows(struct con_writer *w, size_t operand, struct buf *out) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct con_tile *t = &w->g.tile[operand];
    int piece = 16 / w->g.element, pieces = t->row / piece, all = t->rows * pieces;
    str row = local(w, "row"), col = local(w, "col"), k0 = local(w, "k0"), at = local(w, "at");
    str first = local(w, o->side == CON_M ? "first_m" : "first_n"), k_end = local(w, "k_end");
    str side = sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(first), STR_ARG(t->k_runs ? row : col));
    str k = sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(k0), STR_ARG(t->k_runs ? col : row));
    struct rows r = t->packed ? packed_rows(w, operand, side, k) : dense_rows(w, o, side, k);
    str base = rows_base(w, operand, &r);
    struct con_rows plain = {r.pointer, base, r.pitch};
    if (w->g.cute && !(t->packed && w->listed))
        return contraction_cute_rows(w, operand, &plain, out);
    struct slot slots[] = {
        {"tensor", w->c->in->task->tensors[o->read->ref].name},
        {"rows", number(w, t->rows)},
        {"row", number(w, t->row)},
        {"base", base},
        {"load", contraction_loader_name(w, "load", operand)},
        {"stage", local(w, "stage")},
        {"k0", k0},
        {"target", contraction_tile(w, operand)},
        {"to", local(w, "to")},
        {"i", local(w, "i")},
        {"count", number(w, (all + w->g.threads - 1) / w->g.threads)},
        {"at", at},
        {"threads", number(w, w->g.threads)},
        {"tid", local(w, "tid")},
        {"row_", row},
        {"pieces", number(w, pieces)},
        {"col", col},
        {"piece", number(w, piece)},
        {"exists", local(w, "exists")},
        {"test", sheet_printf(w->sh, "%.*s < %.*s && %.*s < %.*s", STR_ARG(side),
                              STR_ARG(w->total[o->side]), STR_ARG(k), STR_ARG(k_end))},
        {"guard", all % w->g.threads == 0
                      ? S("")
                      : sheet_printf(w->sh, "if (%.*s < %d)\n            ", STR_ARG(at), all)},
        {"tiles", local(w, "Tiles")},
        {"place", o->side == CON_M ? S("a_at") : S("b_at")},
        {"pointer", r.pointer},
        {"source", r.source},
    };
    return sheet_template(w->sh, "contraction/load_rows.cu", slots, sizeof slots / sizeof *slots,
                          out);
}

/* ---- element by element ---- */

/* What the lambda and its keeping counterpart have in common. */
struct ones {
    const struct con_operand *o;
    const struct con_tile *t;
    bool k_fast; /* threads run along k */
    int fast, count, step;
    str row, col; /* of the tile, as text */
};

static struct ones ones_of(struct con_writer *w, size_t operand) {
    struct ones x = {.o = &w->c->operands[operand], .t = &w->g.tile[operand]};
    int side = x.o->side == CON_M ? w->g.tile_m : w->g.tile_n;
    bool runs_k = x.o->k_runs;
    if (!x.o->dense)
        runs_k = x.t->k_runs;
    x.k_fast = runs_k;
    if (!x.o->dense && w->g.path == CON_SIMT) {
        const struct con_group *g = &w->c->group[x.o->side];
        const struct expr *last = x.o->read->args[x.o->read->nargs - 1];
        x.k_fast = !(expr_uses(last) >> g->at[g->n - 1].var & 1);
    }
    x.fast = x.k_fast ? w->g.tile_k : side;
    x.step = w->g.threads / x.fast;
    x.count = (x.k_fast ? side : w->g.tile_k) / x.step;
    str fast = sheet_printf(w->sh, "%.*s %% %d", STR_ARG(local(w, "tid")), x.fast);
    str slow = sheet_printf(w->sh, "%.*s * %d + %.*s / %d", STR_ARG(local(w, "i")), x.step,
                            STR_ARG(local(w, "tid")), x.fast);
    x.row = x.t->k_runs == x.k_fast ? slow : fast;
    x.col = x.t->k_runs == x.k_fast ? fast : slow;
    return x;
}

/* The element at the operand's place, in the tile's type. */
str contraction_value(struct con_writer *w, const struct con_operand *o, enum dtype to) {
    enum dtype from = w->c->in->task->tensors[o->read->ref].dtype;
    str pointer = scope_pointer(&w->k, o->read->ref, false), offset = offset_text(w, o);
    str element = sheet_printf(w->sh, "%.*s[%.*s]", STR_ARG(pointer), STR_ARG(offset));
    if (from == to || (from == DTYPE_F64 && to == DTYPE_F32))
        return element;
    str value = scope_unpacked(&w->k, o->read->ref, element);
    if (dtype_info(from)->kind != 'f')
        value = sheet_printf(w->sh, "(float)%.*s", STR_ARG(value));
    return to == DTYPE_F32
               ? value
               : sheet_printf(
                     w->sh, to == DTYPE_F16 ? "__float2half_rn(%.*s)" : "__float2bfloat16_rn(%.*s)",
                     STR_ARG(value));
}

const char *contraction_zero(enum dtype t) {
    return t == DTYPE_F16 ? "__half(0.0f)" : t == DTYPE_BF16 ? "__nv_bfloat16(0.0f)" : "0.0f";
}

str contraction_tile(struct con_writer *w, size_t operand) {
    const char *type = dtype_info(w->g.tile[operand].type)->cuda;
    return sheet_printf(w->sh, "%s *const %.*s = (%s *)(%.*s + %.*s * %.*s::STAGE + %d);", type,
                        STR_ARG(local(w, "to")), type, STR_ARG(local(w, "smem")),
                        STR_ARG(local(w, "stage")), STR_ARG(local(w, "Tiles")),
                        tile_offset(w, operand));
}

static str move_text(struct con_writer *w, size_t operand, const struct ones *x) {
    str exists = local(w, "exists"), to = local(w, "to"), i = local(w, "i");
    str pointer = scope_pointer(&w->k, x->o->read->ref, false), offset = offset_text(w, x->o);
    if (x->t->async)
        return sheet_printf(w->sh,
                            "gemm_copy4(%.*s + %.*s::%s(%.*s, %.*s),\n"
                            "           %.*s + (%.*s ? %.*s : 0), %.*s);",
                            STR_ARG(to), STR_ARG(local(w, "Tiles")),
                            x->o->side == CON_M ? "a_at" : "b_at", STR_ARG(x->row), STR_ARG(x->col),
                            STR_ARG(pointer), STR_ARG(exists), STR_ARG(offset), STR_ARG(exists));
    str kept = contraction_loader_name(w, "kept", operand);
    str value = contraction_value(w, x->o, x->t->type);
    return sheet_printf(w->sh, "%.*s[%.*s] = %.*s ? %.*s : %s;", STR_ARG(kept), STR_ARG(i),
                        STR_ARG(exists), STR_ARG(value), contraction_zero(x->t->type));
}

static str keep_text(struct con_writer *w, size_t operand, const struct ones *x) {
    if (x->t->async)
        return S("");
    str kept = contraction_loader_name(w, "kept", operand), i = local(w, "i"), to = local(w, "to");
    str keep = contraction_loader_name(w, "keep", operand), pointer = contraction_tile(w, operand);
    return sheet_printf(w->sh,
                        "auto %.*s = [&](int %.*s) {\n    %.*s\n#pragma unroll\n"
                        "    for (int %.*s = 0; %.*s < %d; %.*s++)\n"
                        "        %.*s[%.*s::%s(%.*s, %.*s)] = %.*s[%.*s];\n};",
                        STR_ARG(keep), STR_ARG(local(w, "stage")), STR_ARG(pointer), STR_ARG(i),
                        STR_ARG(i), x->count, STR_ARG(i), STR_ARG(to), STR_ARG(local(w, "Tiles")),
                        x->o->side == CON_M ? "a_at" : "b_at", STR_ARG(x->row), STR_ARG(x->col),
                        STR_ARG(kept), STR_ARG(i));
}

/* Variables of the side and of k, each where it changes. */
struct ones_text {
    str before, once, each, test;
};

static void decode_ones(struct con_writer *w, const struct ones *x, struct ones_text *to) {
    struct buf side, k, test;
    buf_init(&side, EXPERT_SOURCE_MAX);
    buf_init(&k, EXPERT_SOURCE_MAX);
    buf_init(&test, EXPERT_SOURCE_MAX);
    str first = local(w, x->o->side == CON_M ? "first_m" : "first_n"), k0 = local(w, "k0");
    str along_side = x->t->k_runs ? x->row : x->col, along_k = x->t->k_runs ? x->col : x->row;
    str n = contraction_decode(
        w, x->o->side, sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(first), STR_ARG(along_side)),
        &side);
    str at_k = contraction_decode(
        w, CON_K, sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(k0), STR_ARG(along_k)), &k);
    buf_printf(&test, "%.*s < %.*s && %.*s < %.*s", STR_ARG(n), STR_ARG(w->total[x->o->side]),
               STR_ARG(at_k), STR_ARG(local(w, "k_end")));
    if (w->c->taps)
        buf_puts(&test, contraction_rest(w));
    contraction_exists(w, x->o, &test);
    to->test = sheet_keep(w->sh, &test);
    str sides = sheet_keep(w->sh, &side), ks = sheet_keep(w->sh, &k);
    to->before = x->k_fast || w->decoded[x->o->side] ? S("") : sides;
    to->once = x->k_fast ? ks : S("");
    to->each = x->k_fast ? sides : ks;
    w->decoded[x->o->side] |= !x->k_fast;
    buf_release(&side);
    buf_release(&k);
    buf_release(&test);
}

static bool load_ones(struct con_writer *w, size_t operand, struct buf *out) {
    struct ones x = ones_of(w, operand);
    struct ones_text text;
    const struct con_tile *t = x.t;
    decode_ones(w, &x, &text);
    str before = text.before, kept = contraction_loader_name(w, "kept", operand);
    if (!t->async)
        before = sheet_printf(w->sh, "%.*s%s%s %.*s[%d];", STR_ARG(before), before.n ? "\n" : "",
                              dtype_info(t->type)->cuda, STR_ARG(kept), x.count);
    struct slot slots[] = {
        {"tensor", w->c->in->task->tensors[x.o->read->ref].name},
        {"rows", number(w, t->rows)},
        {"row", number(w, t->row)},
        {"why", !x.o->dense ? S("its places are computed")
                : t->async  ? S("its rows are not aligned")
                            : S("it is converted or not aligned")},
        {"before", before},
        {"load", contraction_loader_name(w, "load", operand)},
        {"stage", local(w, "stage")},
        {"k0", local(w, "k0")},
        {"target", t->async ? contraction_tile(w, operand) : S("")},
        {"once", text.once},
        {"unroll", t->async ? S("#pragma unroll 8") : S("#pragma unroll")},
        {"i", local(w, "i")},
        {"count", number(w, x.count)},
        {"each", text.each},
        {"exists", local(w, "exists")},
        {"test", text.test},
        {"move", move_text(w, operand, &x)},
        {"keep", keep_text(w, operand, &x)},
    };
    return sheet_template(w->sh, "contraction/load_ones.cu", slots, sizeof slots / sizeof *slots,
                          out);
}

/* Variables of the other side have no text; of those taken apart, the batch's part stands for all.
 */
static void forget(struct con_writer *w, const struct con_group *g, bool own) {
    for (size_t i = 0; i < g->n; i++) {
        const struct con_index *x = &g->at[i];
        if (x->part != CON_WHOLE)
            w->k.var[x->var] = stand_in(w, other_part(w, x));
        else if (!own)
            w->k.var[x->var] = S("");
    }
}

bool contraction_loader(struct con_writer *w, size_t operand, struct buf *out) {
    /* Only what this operand's side knows may stand in its text, and that where it is declared. */
    for (int axis = CON_M; axis <= CON_N; axis++)
        forget(w, &w->c->group[axis], axis == (int)w->c->operands[operand].side);
    w->k.statement = w->c->folds[0].statement;
    if (w->g.warpgroup)
        return contraction_map(w, operand).n > 0;
    if (w->g.tile[operand].window)
        return contraction_load_window(w, operand, out);
    return w->g.tile[operand].vector ? load_rows(w, operand, out) : load_ones(w, operand, out);
}
