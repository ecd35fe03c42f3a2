/* Compiles expressions into instructions and gives them levels and registers. */
#include "spec/program.h"

#include "base/checked.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <math.h>
#include <string.h>

bool affine_at(const struct affine *a, const int64_t *at, int64_t *out) {
    int64_t part;
    *out = a->c;
    for (uint32_t left = a->vars; left; left &= left - 1) {
        int k = __builtin_ctz(left);
        if (!mul_i64(a->coef[k], at[k], &part) || !add_i64(*out, part, out))
            return false;
    }
    return true;
}

void program_init(struct program *p, const struct inst *in, const struct statement *s,
                  const struct stage *stages, size_t nstages, const struct ranges *ranges,
                  bool track_peak) {
    *p = (struct program){.in = in,
                          .s = s,
                          .stages = stages,
                          .nstages = nstages,
                          .ranges = ranges,
                          .rules = rules_of(in->task->accuracy),
                          .track_peak = track_peak,
                          .guard = -1,
                          .product = SIZE_MAX,
                          .lane = -1};
}

void program_release(struct program *p) {
    mem_free(p->code);
    mem_free(p->edges);
    *p = (struct program){0};
}

static bool same_affine(const struct affine *a, const struct affine *b) {
    return a->c == b->c && a->vars == b->vars && memcmp(a->coef, b->coef, sizeof a->coef) == 0;
}

static bool same_edges(const struct program *p, const struct instr *a, const struct instr *b) {
    if (a->nedges != b->nedges)
        return false;
    for (size_t k = 0; k < a->nedges; k++) {
        const struct edge *x = &p->edges[a->edge + k], *y = &p->edges[b->edge + k];
        if (x->extent != y->extent || !same_affine(&x->at, &y->at))
            return false;
    }
    return true;
}

static bool same(const struct program *p, const struct instr *a, const struct instr *b) {
    return a->op == b->op && a->kind == b->kind && a->function == b->function &&
           a->type == b->type && a->number == b->number && a->ref == b->ref && a->mask == b->mask &&
           a->nargs == b->nargs && memcmp(a->src, b->src, sizeof a->src) == 0 &&
           a->padded == b->padded && same_affine(&a->place, &b->place) &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 && same_edges(p, a, b);
}

static bool args_exact(const struct program *p, const struct instr *i) {
    for (size_t k = 0; k < i->nargs; k++)
        if (!p->code[i->src[k]].exact)
            return false;
    return true;
}

/* Integers of data may leave what a double holds; of variables they have been proved not to. */
static bool node_exact(const struct program *p, const struct instr *i) {
    switch (i->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
        return i->type == VALUE_INT && i->pure;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return i->pure && p->code[i->src[1]].op == OP_LITERAL && p->code[i->src[1]].number != 0;
    case EXPR_DIV:
        return false;
    case EXPR_CALL:
        return function_info(i->function)->result != RESULT_ROUNDED &&
               function_info(i->function)->result != RESULT_SHIFTED;
    default:
        return true;
    }
}

static bool exact(const struct program *p, const struct instr *i) {
    const struct task *t = p->in->task;
    if (!args_exact(p, i))
        return false;
    switch (i->op) {
    case OP_LITERAL:
        return i->type == VALUE_INT || (double)(float)i->number == i->number;
    case OP_READ:
        return i->ref < t->ntensors && t->tensors[i->ref].role != TENSOR_LET &&
               t->tensors[i->ref].dtype != DTYPE_F64;
    case OP_TO_REAL:
        return p->code[i->src[0]].op == OP_LITERAL && fabs(p->code[i->src[0]].number) <= 0x1p24;
    case OP_ROUND:
        return false;
    case OP_NODE:
        return node_exact(p, i);
    default:
        return true;
    }
}

/* The number of the instruction, or of an equal one not long before it. */
static size_t emit(struct program *p, struct instr i) {
    enum { LOOK_BACK = 64 };
    for (size_t k = 0; k < i.nargs; k++) {
        i.vars |= p->code[i.src[k]].vars;
        i.pure = i.pure && p->code[i.src[k]].pure;
    }
    if (i.mask >= 0)
        i.vars |= p->code[i.mask].vars;
    for (size_t k = p->n, seen = 0; k-- > 0 && seen < LOOK_BACK; seen++)
        if (same(p, &p->code[k], &i))
            return k;
    i.exact = exact(p, &i);
    p->code = mem_grow(p->code, &p->cap, p->n + 1, sizeof *p->code);
    i.dst = p->n;
    p->code[p->n] = i;
    return p->n++;
}

static size_t compile(struct program *p, const struct expr *e, int mask);

static size_t emit_unary(struct program *p, enum op op, enum value_kind type, size_t arg,
                         int mask) {
    return emit(p,
                (struct instr){
                    .op = op, .type = type, .pure = true, .mask = mask, .nargs = 1, .src = {arg}});
}

static size_t compile_as(struct program *p, const struct expr *e, bool real, int mask) {
    size_t id = compile(p, e, mask);
    if (e->factor && p->rules.format2 > 0 && (!p->code[id].exact || e->loses))
        return emit_unary(p, OP_ROUND, VALUE_REAL, id, mask);
    if (!real || e->value_kind != VALUE_INT)
        return id;
    return emit_unary(p, OP_TO_REAL, VALUE_REAL, id, mask);
}

/* It never leaves 0 <= index < extent. */
static bool stays_inside(const struct program *p, const struct expr *e, int64_t extent) {
    struct range v;
    return range_of(p->ranges, e, &v) == RANGE_OK && v.lo >= 0 && v.hi < extent;
}

static void watch_edge(struct program *p, struct instr *i, const struct affine *at,
                       int64_t extent) {
    p->edges = mem_grow(p->edges, &p->edge_cap, p->nedges + 1, sizeof *p->edges);
    p->edges[p->nedges++] = (struct edge){*at, extent};
    i->nedges++;
}

static bool place_add(struct affine *place, const struct affine *index, int64_t stride) {
    struct affine sum = *place;
    int64_t part;
    bool ok = mul_i64(index->c, stride, &part) && add_i64(sum.c, part, &sum.c);
    for (size_t k = 0; k < TASK_MAX_VARS && ok; k++)
        ok = mul_i64(index->coef[k], stride, &part) && add_i64(sum.coef[k], part, &sum.coef[k]);
    sum.vars |= index->vars;
    if (ok)
        *place = sum;
    return ok;
}

/* e: a READ; pad: the value beyond its edges, or NULL. */
static size_t compile_read(struct program *p, const struct expr *e, const struct expr *pad,
                           int mask) {
    const struct bound_tensor *from = &p->in->tensors[e->ref];
    size_t in_register[TASK_MAX_RANK] = {0}, dim[TASK_MAX_RANK] = {0}, n = 0;
    struct instr i = {.op = OP_READ,
                      .type = e->value_kind,
                      .ref = e->ref,
                      .padded = pad != NULL,
                      .mask = mask,
                      .edge = p->nedges};
    struct affine index[TASK_MAX_RANK];
    bool affine[TASK_MAX_RANK] = {false};
    for (size_t k = 0; k < e->nargs; k++) {
        affine[k] = affine_of(p->in, e->args[k], &index[k]) &&
                    place_add(&i.place, &index[k], from->stride[k]);
        if (!affine[k]) {
            dim[n] = k;
            in_register[n++] = compile(p, e->args[k], mask);
        }
    }
    i.edge = p->nedges; /* after the indices, which may pad themselves */
    for (size_t k = 0; k < e->nargs; k++)
        if (affine[k]) {
            i.vars |= index[k].vars;
            if (pad && !stays_inside(p, e->args[k], from->extent[k]))
                watch_edge(p, &i, &index[k], from->extent[k]);
        }
    for (size_t k = 0; k < n; k++) {
        i.src[k] = in_register[k];
        i.stride[k] = from->stride[dim[k]];
        i.extent[k] = from->extent[dim[k]];
    }
    i.nplaces = i.nargs = n;
    if (pad)
        i.src[i.nargs++] = compile_as(p, pad, e->value_kind == VALUE_REAL, mask);
    return emit(p, i);
}

static size_t compile_stage(struct program *p, const struct expr *e, int mask) {
    size_t k = 0;
    while (k < p->nstages && p->stages[k].e != e)
        k++;
    BUG_IF(k == p->nstages);
    return emit(p, (struct instr){.op = OP_READ,
                                  .type = e->value_kind,
                                  .ref = p->stages[k].content,
                                  .vars = expr_vars(e),
                                  .place = p->stages[k].place,
                                  .mask = mask});
}

/* The sides of an if count where their side may be taken. */
static size_t compile_if(struct program *p, const struct expr *e, int mask) {
    struct instr i = {.op = OP_SELECT, .type = e->value_kind, .pure = true, .mask = mask};
    i.nargs = 3;
    i.src[0] = compile(p, e->args[0], mask);
    for (size_t side = 1; side <= 2; side++) {
        int inner = mask;
        if (p->track_peak)
            inner = (int)emit_unary(p, side == 1 ? OP_MASK_THEN : OP_MASK_ELSE, VALUE_BOOL,
                                    i.src[0], mask);
        i.src[side] = compile_as(p, e->args[side], pattern_wants_real(e), inner);
    }
    return emit(p, i);
}

static size_t compile_literal(struct program *p, const struct expr *e) {
    double v = e->kind == EXPR_DIM ? (double)p->in->dims[e->ref] : e->number;
    return emit(
        p, (struct instr){
               .op = OP_LITERAL, .type = e->value_kind, .number = v, .pure = true, .mask = -1});
}

/* Some operand is an integer of 64 bits, so that whoever computes with it in 32 is wrong. */
static bool is_wide(const struct task *t, const struct expr *e) {
    bool wide = e->kind == EXPR_READ && t->tensors[e->ref].dtype == DTYPE_I64;
    for (size_t i = 0; e->kind != EXPR_READ && i < e->nargs && !wide; i++)
        wide = is_wide(t, e->args[i]);
    return wide;
}

/* As deep as the tree, TASK_MAX_DEPTH at the most. */
static size_t compile(struct program *p, const struct expr *e, int mask) {
    struct instr i = {.op = OP_NODE,
                      .kind = e->kind,
                      .function = e->function,
                      .type = e->value_kind,
                      .pure = true,
                      .mask = mask};
    i.truths = e->nargs && e->args[0]->value_kind == VALUE_BOOL;
    i.wide = p->track_peak && i.type == VALUE_INT && is_wide(p->in->task, e);
    switch (e->kind) {
    case EXPR_NUMBER:
    case EXPR_DIM:
        return compile_literal(p, e);
    case EXPR_INDEX:
        i.op = OP_INDEX;
        i.mask = -1;
        i.ref = e->ref;
        i.vars = UINT32_C(1) << e->ref;
        return emit(p, i);
    case EXPR_READ:
        return compile_read(p, e, NULL, mask);
    case EXPR_PAD:
        return compile_read(p, e->args[0], e->args[1], mask);
    case EXPR_IF:
        return compile_if(p, e, mask);
    case EXPR_REDUCE:
        return compile_stage(p, e, mask);
    default:
        i.how = pattern_settling(p->in->task, e);
        for (size_t k = 0; k < e->nargs; k++)
            i.src[i.nargs++] = compile_as(p, e->args[k], pattern_wants_real(e), mask);
        return emit(p, i);
    }
}

static void guard_and(struct program *p, size_t condition) {
    if (p->guard >= 0)
        condition = emit(p, (struct instr){.op = OP_NODE,
                                           .kind = EXPR_AND,
                                           .how = SETTLE_TRUTH,
                                           .type = VALUE_BOOL,
                                           .pure = true,
                                           .mask = -1,
                                           .nargs = 2,
                                           .src = {(size_t)p->guard, condition}});
    p->guard = (int)condition;
    p->guard_end = p->n;
}

void program_guard(struct program *p, const struct expr *condition) {
    guard_and(p, compile(p, condition, -1));
}

void program_guard_bounds(struct program *p, size_t var, const struct expr *lo,
                          const struct expr *hi) {
    const struct expr index = {.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = var};
    const struct {
        const struct expr *e;
        enum expr_kind kind;
    } sides[2] = {{lo, EXPR_GE}, {hi, EXPR_LT}};
    for (int k = 0; k < 2; k++) {
        if (!sides[k].e)
            continue;
        size_t v = compile(p, &index, -1), by = compile(p, sides[k].e, -1);
        guard_and(p, emit(p, (struct instr){.op = OP_NODE,
                                            .kind = sides[k].kind,
                                            .how = SETTLE_TRUTH,
                                            .type = VALUE_BOOL,
                                            .pure = true,
                                            .mask = -1,
                                            .nargs = 2,
                                            .src = {v, by}}));
    }
}

void program_body(struct program *p, const struct expr *e, bool real) {
    int mask = -1;
    if (p->guard >= 0 && p->track_peak)
        mask = (int)emit_unary(p, OP_MASK_THEN, VALUE_BOOL, (size_t)p->guard, -1);
    p->result = compile_as(p, e, real, mask);
}

/* Number of the last instruction that uses each one's result; results of the guard and the body,
 * and all that outlives a run of the innermost loop, are never given up. */
static void find_last_uses(const struct program *p, unsigned inner, size_t *last) {
    for (size_t k = 0; k < p->n; k++) {
        const struct instr *i = &p->code[k];
        bool kept = i->level < inner || k == p->result || (int)k == p->guard;
        last[k] = kept ? SIZE_MAX : k;
        for (size_t a = 0; a < i->nargs; a++)
            if (last[i->src[a]] != SIZE_MAX)
                last[i->src[a]] = k;
        if (i->mask >= 0 && last[i->mask] != SIZE_MAX)
            last[i->mask] = k;
    }
}

/* Two kinds of registers, so that invariant 2 holds; dst is numbered within its kind first. What is
 * kept gets a register that nothing else ever writes. */
static void allocate(struct program *p, unsigned inner) {
    size_t *last = mem_alloc((p->n + 1) * sizeof *last);
    size_t *spare[2] = {mem_alloc((p->n + 1) * sizeof(size_t)),
                        mem_alloc((p->n + 1) * sizeof(size_t))};
    size_t nspare[2] = {0}, count[2] = {0};
    size_t *dying = mem_alloc((p->n + 1) * sizeof *dying); /* by last use: a list each */
    size_t *next = mem_alloc((p->n + 1) * sizeof *next);
    find_last_uses(p, inner, last);
    for (size_t k = 0; k < p->n; k++) {
        bool kind = !p->code[k].exact, used = last[k] != SIZE_MAX && nspare[kind];
        p->code[k].dst = used ? spare[kind][--nspare[kind]] : count[kind]++;
        if (last[k] != SIZE_MAX) {
            next[k] = dying[last[k]];
            dying[last[k]] = k + 1;
        }
        for (size_t d = dying[k]; d; d = next[d - 1]) {
            bool of = !p->code[d - 1].exact;
            spare[of][nspare[of]++] = p->code[d - 1].dst;
        }
    }
    for (size_t k = 0; k < p->n; k++)
        p->code[k].dst += p->code[k].exact ? 0 : count[0];
    p->nexact = count[0];
    p->nregs = count[0] + count[1];
    mem_free(last);
    mem_free(dying);
    mem_free(next);
    mem_free(spare[0]);
    mem_free(spare[1]);
}

static void set_levels(struct program *p, const unsigned *order) {
    for (size_t k = 0; k < p->n; k++) {
        struct instr *i = &p->code[k];
        i->level = i->pure ? 0 : 1;
        for (size_t v = 0; v < TASK_MAX_VARS; v++)
            if (i->vars >> v & 1 && order[v] > i->level)
                i->level = order[v];
        i->uniform = p->lane < 0 || !(i->vars >> p->lane & 1);
        for (size_t a = 0; a < i->nargs && !i->uniform; a++) {
            if (i->summed)
                i->lone[a] = p->code[i->src[a]].uniform;
            else
                p->code[i->src[a]].spread = true;
        }
        if (i->mask >= 0)
            p->code[i->mask].spread = true;
    }
    p->code[p->result].spread = true;
    if (p->guard >= 0)
        p->code[p->guard].spread = true;
}

void program_schedule(struct program *p, int lane, const unsigned *order, unsigned inner) {
    p->lane = lane;
    p->inner = inner;
    set_levels(p, order);
    allocate(p, inner);
    for (size_t k = 0; k < p->n; k++) {
        struct instr *i = &p->code[k];
        for (size_t a = 0; a < i->nargs; a++)
            i->src[a] = p->code[i->src[a]].dst;
        if (i->mask >= 0)
            i->mask = (int)p->code[i->mask].dst;
    }
    p->result = p->code[p->result].dst;
    if (p->guard >= 0) {
        p->guard_uniform = p->code[p->guard].uniform;
        p->guard = (int)p->code[p->guard].dst;
    }
}
