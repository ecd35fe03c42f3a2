/* Compiles a statement into instructions and runs them. What each instruction computes is in
 * vector.c; here is everything about where values come from and which lanes count. */
#include "spec/program.h"

#include "base/checked.h"
#include "spec/data.h"
#include <float.h>
#include <math.h>
#include <string.h>

struct limits accuracy_limits(enum accuracy a) {
    return a == ACCURACY_FP32 ? (struct limits){32, 8} : (struct limits){8, 2};
}

static struct instr *emit(struct program *p, enum op op, const struct expr *e, size_t dst,
                          int mask) {
    p->code = mem_grow(p->code, &p->cap, p->n + 1, sizeof *p->code);
    struct instr *i = &p->code[p->n++];
    *i = (struct instr){.op = op, .e = e, .dst = dst, .mask = mask};
    i->limits = accuracy_limits(p->in->task->accuracy);
    if (dst + 1 > p->nregs)
        p->nregs = dst + 1;
    return i;
}

static bool uses_index(const struct expr *e) {
    if (e->kind == EXPR_INDEX)
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (uses_index(e->args[i]))
            return true;
    return false;
}

/* e = base + Σ coef·variable, by structure. */
static bool affine_of(const struct inst *in, const struct expr *e, int64_t *base, int64_t *coef) {
    int64_t b[2], c[2][TASK_MAX_RANK] = {{0}};
    bool constant[2] = {true, true};
    if (!uses_index(e))
        return expr_eval_dims(e, in->dims, base);
    if (e->kind == EXPR_INDEX) {
        *base = 0;
        coef[e->ref] = 1;
        return true;
    }
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB && e->kind != EXPR_MUL)
        return false;
    for (int i = 0; i < 2; i++) {
        if (!affine_of(in, e->args[i], &b[i], c[i]))
            return false;
        for (int k = 0; k < TASK_MAX_RANK; k++)
            constant[i] &= c[i][k] == 0;
    }
    if (e->kind == EXPR_MUL) {
        int by = constant[0] ? 0 : 1, of = 1 - by;
        bool ok = constant[by] && mul_i64(b[0], b[1], base);
        for (int k = 0; k < TASK_MAX_RANK && ok; k++)
            ok = mul_i64(b[by], c[of][k], &coef[k]);
        return ok;
    }
    bool add = e->kind == EXPR_ADD;
    bool ok = add ? add_i64(b[0], b[1], base) : sub_i64(b[0], b[1], base);
    for (int k = 0; k < TASK_MAX_RANK && ok; k++)
        ok = add ? add_i64(c[0][k], c[1][k], &coef[k]) : sub_i64(c[0][k], c[1][k], &coef[k]);
    return ok;
}

/* Offsets fit 64 bits where the reads were proved to stay inside; a read that never happens, in a
 * branch that is never taken, may be anywhere, and then it is left to the registers. */
static struct access access_of(const struct program *p, const struct expr *e) {
    struct access a = {.tensor = e->ref, .affine = true};
    const struct bound_tensor *from = &p->in->tensors[e->ref], *to = &p->in->tensors[p->s->tensor];
    for (size_t k = 0; k < e->nargs && a.affine; k++) {
        int64_t base, part, coef[TASK_MAX_RANK] = {0};
        a.affine = affine_of(p->in, e->args[k], &base, coef) &&
                   mul_i64(base, from->stride[k], &part) && add_i64(a.base, part, &a.base);
        for (size_t v = 0; v < p->s->nindex && a.affine; v++)
            a.affine =
                mul_i64(coef[v], from->stride[k], &part) && add_i64(a.coef[v], part, &a.coef[v]);
    }
    a.contiguous = a.affine && a.base == 0 && from->count >= to->count;
    for (size_t v = 0; v < p->s->nindex; v++)
        a.contiguous = a.contiguous && (to->extent[v] == 1 || a.coef[v] == to->stride[v]);
    return a;
}

static void compile(struct program *p, const struct expr *e, size_t dst, int mask);

static void compile_read(struct program *p, const struct expr *e, size_t dst, int mask) {
    struct access a = access_of(p, e);
    for (size_t k = 0; k < e->nargs && !a.affine; k++)
        compile(p, e->args[k], dst + 1 + k, mask);
    struct instr *i = emit(p, OP_READ, e, dst, mask);
    i->access = a;
    i->nargs = a.affine ? 0 : e->nargs;
    p->needs_index |= !a.contiguous;
}

/* An operand of a real operation that is an integer is converted first: computed one register
 * higher, then brought down. */
static void compile_operand(struct program *p, const struct expr *e, const struct expr *arg,
                            size_t dst, int mask) {
    bool compares = e->kind >= EXPR_EQ && e->kind <= EXPR_GE;
    bool real = compares
                    ? e->args[0]->value_kind == VALUE_REAL || e->args[1]->value_kind == VALUE_REAL
                    : e->value_kind == VALUE_REAL;
    if (!real || arg->value_kind != VALUE_INT) {
        compile(p, arg, dst, mask);
        return;
    }
    compile(p, arg, dst + 1, mask);
    emit(p, OP_TO_REAL, arg, dst, mask)->nargs = 1;
}

/* The sides of an if run under the mask that follows the enclosing one. */
static void compile_if(struct program *p, const struct expr *e, size_t dst, int mask) {
    int inner = mask + 1;
    if ((size_t)inner + 1 > p->nmasks)
        p->nmasks = (size_t)inner + 1;
    compile(p, e->args[0], dst + 1, mask);
    for (size_t side = 1; side <= 2; side++) {
        emit(p, side == 1 ? OP_MASK_THEN : OP_MASK_ELSE, e, dst, mask)->nargs = 1;
        compile_operand(p, e, e->args[side], dst + 1 + side, inner);
    }
    emit(p, OP_SELECT, e, dst, mask)->nargs = 3;
}

/* As deep as the tree, TASK_MAX_DEPTH at the most. */
static void compile(struct program *p, const struct expr *e, size_t dst, int mask) {
    switch (e->kind) {
    case EXPR_NUMBER:
    case EXPR_DIM:
        emit(p, OP_LITERAL, e, dst, mask);
        return;
    case EXPR_INDEX:
        p->needs_index = true;
        emit(p, OP_INDEX, e, dst, mask);
        return;
    case EXPR_READ:
        compile_read(p, e, dst, mask);
        return;
    case EXPR_IF:
        compile_if(p, e, dst, mask);
        return;
    default:
        for (size_t k = 0; k < e->nargs; k++)
            compile_operand(p, e, e->args[k], dst + 1 + k, mask);
        emit(p, OP_NODE, e, dst, mask)->nargs = e->nargs;
    }
}

void program_compile(const struct inst *in, const struct statement *s, struct program *out) {
    *out = (struct program){.in = in, .s = s};
    compile(out, s->body, 0, -1);
    out->nregs += 3; /* operands of the topmost instruction may be named without being used */
    out->code[out->n - 1].root = true;
}

void program_release(struct program *p) {
    mem_free(p->code);
    *p = (struct program){0};
}

bool machine_init(struct machine *m, const struct program *p, const struct memory *mem,
                  bool track_peak) {
    size_t rank = p->s->nindex ? p->s->nindex : 1;
    *m = (struct machine){.p = p, .mem = mem, .track_peak = track_peak};
    m->regs = mem_try_resize(NULL, p->nregs * sizeof *m->regs);
    m->masks = mem_try_resize(NULL, (p->nmasks + 1) * sizeof *m->masks);
    m->index = mem_try_resize(NULL, rank * sizeof *m->index);
    if (!m->regs || !m->masks || !m->index) {
        machine_release(m);
        return false;
    }
    memset(m->regs, 0, p->nregs * sizeof *m->regs);
    memset(m->index, 0, rank * sizeof *m->index);
    return true;
}

void machine_release(struct machine *m) {
    mem_free(m->regs);
    mem_free(m->masks);
    mem_free(m->index);
    *m = (struct machine){0};
}

/* The index variables of every lane, counted up like an odometer. */
static void set_index(struct machine *m, int64_t first, size_t n) {
    const struct bound_tensor *t = &m->p->in->tensors[m->p->s->tensor];
    size_t rank = m->p->s->nindex;
    int64_t at[TASK_MAX_RANK];
    for (size_t k = 0; k < rank; k++)
        at[k] = first / t->stride[k] % t->extent[k];
    for (size_t l = 0; l < n; l++) {
        for (size_t k = 0; k < rank; k++)
            m->index[k][l] = at[k];
        for (size_t k = rank; k-- > 0 && ++at[k] == t->extent[k];)
            at[k] = 0;
    }
}

static void run_literal(const struct program *p, const struct instr *i, struct reg *d) {
    bool dim = i->e->kind == EXPR_DIM;
    double v = dim ? (double)p->in->dims[i->e->ref] : i->e->number;
    bool exact = i->e->value_kind == VALUE_INT || (double)(float)v == v;
    double e = exact ? 0 : v * v * (0x1p-48 / 3);
    for (size_t l = 0; l < LANES; l++) {
        d->v[l] = v;
        d->e[l] = e;
    }
}

/* Offsets of all lanes, -1 for those that do not read. */
static void offsets_of(const struct machine *m, const struct instr *i, const struct reg *args,
                       size_t n, int64_t *offset) {
    const struct bound_tensor *t = &m->p->in->tensors[i->access.tensor];
    const unsigned char *mask = i->mask < 0 ? NULL : m->masks[i->mask];
    for (size_t l = 0; l < n; l++)
        offset[l] = i->access.base;
    for (size_t k = 0; i->access.affine && k < m->p->s->nindex; k++)
        for (size_t l = 0; l < n && i->access.coef[k]; l++)
            offset[l] += i->access.coef[k] * m->index[k][l];
    for (size_t l = 0; l < n && mask; l++)
        if (!mask[l])
            offset[l] = -1;
    for (size_t k = 0; k < i->nargs; k++)
        for (size_t l = 0; l < n; l++)
            if (!mask || mask[l])
                offset[l] += t->stride[k] * (int64_t)args[k].v[l];
}

static void gather(const void *from, size_t size, const int64_t *offset, size_t n, void *to) {
    for (size_t l = 0; l < n; l++) {
        if (offset[l] < 0)
            memset((char *)to + l * size, 0, size);
        else
            memcpy((char *)to + l * size, (const char *)from + (size_t)offset[l] * size, size);
    }
}

/* Lets and fp64 inputs are the reads that are not exact in fp32. */
static void read_error(const struct machine *m, const struct instr *i, const int64_t *offset,
                       int64_t first, size_t n, struct reg *d) {
    const struct tensor *t = &m->p->in->task->tensors[i->access.tensor];
    const double *variance = m->mem->let_variance[i->access.tensor];
    if (t->role == TENSOR_LET && !offset)
        memcpy(d->e, variance + first, n * sizeof *d->e);
    else if (t->role == TENSOR_LET)
        gather(variance, sizeof *variance, offset, n, d->e);
    else
        for (size_t l = 0; l < n; l++) {
            bool exact =
                t->dtype != DTYPE_F64 || !isfinite(d->v[l]) || (double)(float)d->v[l] == d->v[l];
            d->e[l] = exact ? 0 : d->v[l] * d->v[l] * 0x1p-48;
        }
}

static void run_read(const struct machine *m, const struct instr *i, struct reg *d, int64_t first,
                     size_t n) {
    const struct tensor *t = &m->p->in->task->tensors[i->access.tensor];
    bool let = t->role == TENSOR_LET;
    enum dtype type = let ? DTYPE_F64 : t->dtype;
    size_t size = dtype_info(type)->bytes;
    const char *from = let ? (const char *)m->mem->let_value[i->access.tensor]
                           : (const char *)m->mem->inputs[i->access.tensor];
    if (i->access.contiguous) {
        data_load(type, from + (size_t)first * size, n, d->v);
        read_error(m, i, NULL, first, n, d);
        return;
    }
    int64_t offset[LANES];
    uint64_t raw[LANES];
    offsets_of(m, i, d + 1, n, offset);
    gather(from, size, offset, n, raw);
    data_load(type, raw, n, d->v);
    read_error(m, i, offset, first, n, d);
}

static void run_mask(struct machine *m, const struct instr *i, const struct reg *cond, size_t n) {
    const unsigned char *outer = i->mask < 0 ? NULL : m->masks[i->mask];
    unsigned char *inner = m->masks[i->mask + 1];
    bool wanted = i->op == OP_MASK_THEN;
    for (size_t l = 0; l < n; l++)
        inner[l] = (!outer || outer[l]) && ((cond->v[l] != 0) == wanted || cond->e[l] > 0);
}

/* The largest magnitude that counts: beyond it fp32, or an exact integer in a double, ends. */
static double magnitude_most(const struct instr *i) {
    if (i->e->value_kind == VALUE_INT)
        return 0x1p53;
    return i->root ? DBL_MAX : (double)FLT_MAX;
}

/* What became of lane l, when its value or its variance is out of the ordinary. */
static double settled_error(const struct instr *i, const struct reg *d, size_t l) {
    bool undefined = false, nan = false, infinite = false;
    double v = d->v[l];
    for (size_t k = 1; k <= i->nargs; k++) {
        undefined |= isinf(d[k].e[l]);
        nan |= isnan(d[k].v[l]) && !isinf(d[k].e[l]);
        infinite |= isinf(d[k].v[l]);
    }
    if (isnan(v))
        return nan ? 0 : INFINITY;
    if (undefined)
        return INFINITY;
    if (isinf(v))
        return infinite || i->root || vector_is_pole(i, d + 1, l) ? 0 : INFINITY;
    if (infinite || nan)
        return v * v * 0x1p-46;
    return INFINITY;
}

static void settle(const struct instr *i, struct reg *d, size_t n) {
    double most = magnitude_most(i);
    for (size_t l = 0; l < n; l++)
        if (!(fabs(d->v[l]) <= most) || !(d->e[l] <= DBL_MAX))
            d->e[l] = settled_error(i, d, l);
}

static double lane_peak(const struct instr *i, const struct reg *d, size_t l) {
    double v = fabs(d->v[l]);
    bool operands_finite = true;
    for (size_t k = 1; k <= i->nargs; k++)
        operands_finite &= isfinite(d[k].v[l]);
    if (isnan(v))
        return 0;
    if (isinf(v))
        return operands_finite && i->op != OP_LITERAL && !vector_is_pole(i, d + 1, l) ? v : 0;
    bool computed = i->op == OP_NODE && i->e->value_kind == VALUE_INT;
    return computed && v > INT32_MAX ? INFINITY : v;
}

static void note_peak(struct machine *m, const struct instr *i, const struct reg *d, size_t n) {
    const unsigned char *mask = i->mask < 0 ? NULL : m->masks[i->mask];
    for (size_t l = 0; l < n; l++) {
        double v = !mask || mask[l] ? lane_peak(i, d, l) : 0;
        m->peak = v > m->peak ? v : m->peak;
    }
}

static void run_one(struct machine *m, const struct instr *i, int64_t first, size_t n) {
    struct reg *d = &m->regs[i->dst];
    switch (i->op) {
    case OP_LITERAL:
        run_literal(m->p, i, d);
        return;
    case OP_INDEX:
        for (size_t l = 0; l < n; l++) {
            d->v[l] = (double)m->index[i->e->ref][l];
            d->e[l] = 0;
        }
        return;
    case OP_READ:
        run_read(m, i, d, first, n);
        break;
    case OP_TO_REAL:
        vector_to_real(d, d + 1, n);
        break;
    case OP_MASK_THEN:
    case OP_MASK_ELSE:
        run_mask(m, i, d + 1, n);
        return;
    case OP_SELECT:
        vector_select(d, d + 1, n);
        return;
    case OP_NODE:
        vector_node(i, d, d + 1, n);
        if (i->e->value_kind != VALUE_BOOL)
            settle(i, d, n);
        break;
    }
    bool known = i->op == OP_READ && m->p->in->task->tensors[i->e->ref].role == TENSOR_LET;
    if (m->track_peak && !known && i->e->value_kind != VALUE_BOOL)
        note_peak(m, i, d, n);
}

void machine_run(struct machine *m, int64_t first, size_t n) {
    if (m->p->needs_index)
        set_index(m, first, n);
    for (size_t k = 0; k < m->p->n; k++)
        run_one(m, &m->p->code[k], first, n);
}
