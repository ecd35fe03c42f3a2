/* Windows: operands whose indices are sums of the side's variables and of k's, with numbers as
 * factors, as a convolution's are. A place is then a part of the side plus a part of k. Threads run
 * along the side, so that a warp is at one k at a time; each of its lanes computes k's part for one
 * k of the tile, and the others get it by a shuffle. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"
#include "spec/domain.h"

#define SHIFT_BITS 10 /* of a tested index's part of k: three fit an int */
#define SHIFT_MOST ((1 << (SHIFT_BITS - 1)) - 1)
#define SHIFTS     3

static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}

static uint32_t axis_vars(const struct contraction *c, enum con_axis axis) {
    uint32_t vars = 0;
    for (size_t i = 0; i < c->group[axis].n; i++)
        vars |= UINT32_C(1) << c->group[axis].at[i].var;
    return vars;
}

static bool is_literal(const struct expr *e) {
    return !expr_has(e, EXPR_DIM) && !expr_has(e, EXPR_READ);
}

/* A dimension that only the batch runs through. */
static bool is_batch(const struct contraction *c, const struct con_operand *o, size_t d) {
    return !(expr_uses(o->read->args[d]) & (axis_vars(c, o->side) | axis_vars(c, CON_K)));
}

static bool can_leave(const struct contraction *c, const struct con_operand *o, size_t d) {
    return o->factor->kind == EXPR_PAD && contraction_can_leave(c, o, d);
}

/* How far k's part of an index goes, either way. */
static int64_t k_reach(const struct contraction *c, const struct affine *f) {
    int64_t reach = 0;
    for (size_t i = 0; i < c->group[CON_K].n; i++) {
        const struct con_index *x = &c->group[CON_K].at[i];
        int64_t by = f->coef[x->var] < 0 ? -f->coef[x->var] : f->coef[x->var];
        reach += by * (con_value(c->in, x->extent) - 1);
    }
    return reach;
}

/* Tested parts of k must not grow with the shape: their extents stand in the text. */
static bool is_fixed(const struct contraction *c, const struct affine *f) {
    for (size_t i = 0; i < c->group[CON_K].n; i++) {
        const struct con_index *x = &c->group[CON_K].at[i];
        if (f->coef[x->var] && x->extent->kind != EXPR_NUMBER)
            return false;
    }
    return k_reach(c, f) <= SHIFT_MOST;
}

bool contraction_is_window(const struct contraction *c, const struct con_operand *o) {
    size_t tested = 0;
    if (o->dense || o->nonly)
        return false;
    for (size_t d = 0; d < o->read->nargs; d++) {
        const struct expr *e = o->read->args[d];
        struct affine f;
        if (is_batch(c, o, d) && !can_leave(c, o, d))
            continue;
        if (!is_literal(e) || !affine_of(c->in, e, &f) ||
            (can_leave(c, o, d) && (++tested > SHIFTS || !is_fixed(c, &f))))
            return false;
    }
    return true;
}

/* "4 * p - 2": the terms of some variables, the number with them if asked for. */
static str terms(struct con_writer *w, const struct affine *f, uint32_t vars, bool number) {
    str s = S("");
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        int64_t by = f->coef[v], size = by < 0 ? -by : by;
        if (!(vars >> v & 1) || by == 0)
            continue;
        const char *sign = by < 0 ? (s.n ? " - " : "-") : s.n ? " + " : "";
        s = size == 1 ? sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(s), sign, STR_ARG(w->k.var[v]))
                      : sheet_printf(w->sh, "%.*s%s%lld * %.*s", STR_ARG(s), sign, (long long)size,
                                     STR_ARG(w->k.var[v]));
    }
    if (number && f->c)
        s = sheet_printf(w->sh, "%.*s%s%lld", STR_ARG(s),
                         !s.n       ? ""
                         : f->c < 0 ? " - "
                                    : " + ",
                         (long long)(s.n && f->c < 0 ? -f->c : f->c));
    return s;
}

static struct expr *stride_of(struct con_writer *w, const struct con_operand *o, size_t d) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    struct expr *stride = NULL;
    for (size_t k = d + 1; k < t->rank; k++)
        stride = stride ? expr_times(w->sh->mem, stride, t->extent[k]) : t->extent[k];
    return stride;
}

static str add_term(struct con_writer *w, str sum, str at, const struct expr *stride) {
    bool sign = str_find(at, S(" ")) < at.n || (at.n && at.p[0] == '-');
    if (!at.n)
        return sum;
    str by = stride ? scope_int(&w->k, stride) : S("1");
    str term = str_is(by, "1") ? at
               : sign          ? sheet_printf(w->sh, "(%.*s) * %.*s", STR_ARG(at), STR_ARG(by))
                               : sheet_printf(w->sh, "%.*s * %.*s", STR_ARG(at), STR_ARG(by));
    return sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(sum), sum.n ? " + " : "", STR_ARG(term));
}

struct window {
    const struct con_operand *o;
    str flat, flat_k, decode_k; /* the side's index; k's, and its variables */
    str from, base, place;      /* pointer of the batch; the side's part; k's part */
    str own[SHIFTS], size[SHIFTS];
    str shift; /* k's parts of what is tested, packed */
    size_t tested;
    struct buf before;
};

static void put_batch(struct con_writer *w, size_t operand, struct window *x) {
    const struct con_operand *o = x->o;
    str pointer = scope_pointer(&w->k, o->read->ref, false), sum = S("");
    for (size_t d = 0; d < o->read->nargs; d++) {
        if (!is_batch(w->c, o, d) || expr_is_number(o->read->args[d], 0))
            continue;
        str at = scope_text(&w->k, o->read->args[d]);
        if (w->k.wide)
            at = sheet_printf(w->sh, "(long long)(%.*s)", STR_ARG(at));
        sum = add_term(w, sum, at, stride_of(w, o, d));
    }
    x->from = sum.n ? contraction_loader_name(w, "from", operand) : pointer;
    if (sum.n)
        buf_printf(&x->before, "const float *const %.*s = %.*s + (%.*s);\n", STR_ARG(x->from),
                   STR_ARG(pointer), STR_ARG(sum));
}

/* One dimension: its part of the side and of k, and the test of both together. */
static void put_dimension(struct con_writer *w, size_t operand, struct window *x, size_t d) {
    const struct con_operand *o = x->o;
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    struct affine f;
    if (!affine_of(w->c->in, o->read->args[d], &f))
        return;
    str own = terms(w, &f, axis_vars(w->c, o->side), true);
    str of_k = terms(w, &f, axis_vars(w->c, CON_K), false);
    if (can_leave(w->c, o, d)) {
        str name = contraction_loader_name(w, sheet_printf(w->sh, "at%zu", x->tested).p, operand);
        buf_printf(&x->before, "const int %.*s = %.*s;\n", STR_ARG(name),
                   STR_ARG(own.n ? own : S("0")));
        x->own[x->tested] = own = name;
        x->size[x->tested] = scope_int(&w->k, t->extent[d]);
        if (of_k.n)
            x->shift = sheet_printf(w->sh, "%.*s%s((%.*s) & %d)%s", STR_ARG(x->shift),
                                    x->shift.n ? " | " : "", STR_ARG(of_k), (1 << SHIFT_BITS) - 1,
                                    x->tested == 0   ? ""
                                    : x->tested == 1 ? " << 10"
                                                     : " << 20");
        x->tested++;
    }
    x->base = add_term(w, x->base, own, stride_of(w, o, d));
    x->place = add_term(w, x->place, of_k, stride_of(w, o, d));
}

static str test_text(struct con_writer *w, const struct window *x, str flat, str by_k,
                     str by_shift) {
    str s = sheet_printf(w->sh, "%.*s < %.*s && %.*s != INT_MIN", STR_ARG(flat),
                         STR_ARG(w->total[x->o->side]), STR_ARG(by_k));
    for (size_t i = 0; i < x->tested; i++)
        s = x->shift.n
                ? sheet_printf(w->sh,
                               "%.*s && (unsigned)(%.*s + (%.*s << %zu >> 22)) < (unsigned)%.*s",
                               STR_ARG(s), STR_ARG(x->own[i]), STR_ARG(by_shift), 22 - 10 * i,
                               STR_ARG(x->size[i]))
                : sheet_printf(w->sh, "%.*s && (unsigned)%.*s < (unsigned)%.*s", STR_ARG(s),
                               STR_ARG(x->own[i]), STR_ARG(x->size[i]));
    return s;
}

/* The part of the tensor that one batch sees is indexed by int. */
static void require_small(struct con_writer *w, const struct con_operand *o) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    struct expr *count = NULL;
    for (size_t d = 0; d < t->rank; d++)
        if (!is_batch(w->c, o, d))
            count = count ? expr_times(w->sh->mem, count, t->extent[d]) : t->extent[d];
    str plan = count ? sheet_plan(w->sh, count) : S("1");
    if (w->k.wide)
        sheet_require(w->sh, "%.*s <= 1073741824", STR_ARG(plan));
}

static void put_window(struct con_writer *w, struct window *x) {
    int side = x->o->side == CON_M ? w->g.tile_m : w->g.tile_n;
    str first = local(w, x->o->side == CON_M ? "first_m" : "first_n"), tid = local(w, "tid");
    struct buf sides;
    buf_init(&sides, EXPERT_SOURCE_MAX);
    buf_init(&x->before, EXPERT_SOURCE_MAX);
    x->flat = contraction_decode(
        w, x->o->side, sheet_printf(w->sh, "%.*s + %.*s %% %d", STR_ARG(first), STR_ARG(tid), side),
        &sides);
    if (!w->decoded[x->o->side])
        buf_puts(&x->before, buf_str(&sides));
    w->decoded[x->o->side] = true;
    buf_release(&sides);
}

/* This lane's part of k, and then every k's in turn. */
struct exchange {
    str declare, place, exchange, by_k, by_shift;
};

static void put_exchange(struct con_writer *w, const struct window *x, int side,
                         struct exchange *to) {
    int step = w->g.threads / side, parts = (w->g.tile_k + 31) / 32;
    str i = local(w, "i"), tid = local(w, "tid");
    str places = local(w, "places"), shifts = local(w, "shifts");
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    to->by_k = local(w, "by_k");
    to->by_shift = local(w, "shift_k");
    to->declare = sheet_printf(w->sh, "int %.*s[%d];", STR_ARG(places), parts);
    buf_printf(&b, "%.*s[%.*s] = %.*s < %.*s ? (int)(%.*s) : INT_MIN;\n", STR_ARG(places),
               STR_ARG(i), STR_ARG(x->flat_k), STR_ARG(local(w, "k_end")),
               STR_ARG(x->place.n ? x->place : S("0")));
    if (x->shift.n) {
        to->declare = sheet_printf(w->sh, "int %.*s[%d], %.*s[%d];", STR_ARG(places), parts,
                                   STR_ARG(shifts), parts);
        buf_printf(&b, "%.*s[%.*s] = %.*s;\n", STR_ARG(shifts), STR_ARG(i), STR_ARG(x->shift));
    }
    to->place = sheet_keep(w->sh, &b);
    for (int k = 0; k < (x->shift.n ? 2 : 1); k++)
        buf_printf(&b,
                   "const int %.*s = __shfl_sync(0xffffffff, %.*s[%.*s * %d / 32], %.*s * %d %% 32 "
                   "+ %.*s / %d);\n",
                   STR_ARG(k ? to->by_shift : to->by_k), STR_ARG(k ? shifts : places), STR_ARG(i),
                   step, STR_ARG(i), step, STR_ARG(tid), side);
    to->exchange = sheet_keep(w->sh, &b);
    buf_release(&b);
}

/* All that is known of the window: the side's part before the loop, k's in it. */
static void put_parts(struct con_writer *w, size_t operand, struct window *x) {
    str i = local(w, "i"), tid = local(w, "tid"), k0 = local(w, "k0");
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    require_small(w, x->o);
    put_window(w, x);
    x->flat_k = contraction_decode(
        w, CON_K,
        sheet_printf(w->sh, "%.*s + %.*s * 32 + %.*s %% 32", STR_ARG(k0), STR_ARG(i), STR_ARG(tid)),
        &b);
    x->decode_k = sheet_keep(w->sh, &b);
    put_batch(w, operand, x);
    for (size_t d = 0; d < x->o->read->nargs; d++)
        if (!is_batch(w->c, x->o, d) || can_leave(w->c, x->o, d))
            put_dimension(w, operand, x, d);
    buf_printf(&x->before, "const int %.*s = %.*s;",
               STR_ARG(contraction_loader_name(w, "base", operand)),
               STR_ARG(x->base.n ? x->base : S("0")));
    buf_release(&b);
}

bool contraction_load_window(struct con_writer *w, size_t operand, struct buf *out) {
    struct window x = {.o = &w->c->operands[operand]};
    struct exchange e;
    const struct con_tile *t = &w->g.tile[operand];
    int side = x.o->side == CON_M ? w->g.tile_m : w->g.tile_n, step = w->g.threads / side;
    str i = local(w, "i"), tid = local(w, "tid");
    put_parts(w, operand, &x);
    put_exchange(w, &x, side, &e);
    str k_at = sheet_printf(w->sh, "%.*s * %d + %.*s / %d", STR_ARG(i), step, STR_ARG(tid), side);
    str s_at = sheet_printf(w->sh, "%.*s %% %d", STR_ARG(tid), side);
    struct slot slots[] = {
        {"tensor", w->c->in->task->tensors[x.o->read->ref].name},
        {"rows", sheet_printf(w->sh, "%d", t->rows)},
        {"row", sheet_printf(w->sh, "%d", t->row)},
        {"before", sheet_keep(w->sh, &x.before)},
        {"load", contraction_loader_name(w, "load", operand)},
        {"stage", local(w, "stage")},
        {"k0", local(w, "k0")},
        {"target", contraction_tile(w, operand)},
        {"declare", e.declare},
        {"i", i},
        {"parts", sheet_printf(w->sh, "%d", (w->g.tile_k + 31) / 32)},
        {"decode_k", x.decode_k},
        {"place", e.place},
        {"count", sheet_printf(w->sh, "%d", w->g.tile_k / step)},
        {"exchange", e.exchange},
        {"exists", local(w, "exists")},
        {"test", test_text(w, &x, x.flat, e.by_k, e.by_shift)},
        {"to", local(w, "to")},
        {"tiles", local(w, "Tiles")},
        {"at", x.o->side == CON_M ? S("a_at") : S("b_at")},
        {"tile_row", t->k_runs ? s_at : k_at},
        {"tile_col", t->k_runs ? k_at : s_at},
        {"from", x.from},
        {"base", contraction_loader_name(w, "base", operand)},
        {"by_k", e.by_k},
    };
    buf_release(&x.before);
    return sheet_template(w->sh, "contraction/load_window.cu", slots, sizeof slots / sizeof *slots,
                          out);
}
