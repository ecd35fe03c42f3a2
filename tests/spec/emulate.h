/* Kernels that never were: a task evaluated in fp32 the way a kernel might, with a choice of
 * summation order, fused multiplication, and rounding of what goes into products. */
#ifndef TESTS_SPEC_EMULATE_H
#define TESTS_SPEC_EMULATE_H

#include "fixture.h"
#include "spec/convert_value.h"
#include "spec/scalar.h"
#include "spec/value.h"

enum order {
    ORDER_SEQUENTIAL,
    ORDER_BACKWARDS,
    ORDER_FUSED,    /* sequential, fused multiply-add */
    ORDER_BLOCKED,  /* 32 partial sums, as the lanes of a warp keep them */
    ORDER_PAIRWISE, /* a tree */
    ORDER_KAHAN,
    ORDER_TRUNCATED, /* the accumulator is cut off after every eight terms, towards zero */
    ORDER_COUNT
};
enum operand {
    OPERAND_FP32,
    OPERAND_TF32,
    OPERAND_TF32_CUT, /* truncated instead of rounded */
    OPERAND_BF16,
    OPERAND_COUNT
};

struct kernel {
    enum order order;
    enum operand operand;
    double share; /* of the terms of a sum that are read; the result is scaled up. 1: all */
};

static inline double fp32(double v) {
    return (double)(float)v;
}

static inline double cut(double v, int bits) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    b &= ~((UINT64_C(1) << (53 - bits)) - 1);
    memcpy(&v, &b, sizeof b);
    return v;
}

static inline double round_bits(double v, int bits) {
    double step = v == 0 || !isfinite(v) ? 0 : ldexp(1, ilogb(v) - bits + 1);
    return step == 0 ? v : rint(v / step) * step;
}

static inline double round_operand(enum operand o, double v) {
    switch (o) {
    case OPERAND_TF32:
        return round_bits(v, 11);
    case OPERAND_TF32_CUT:
        return isfinite(v) ? cut(v, 11) : v;
    case OPERAND_BF16:
        return round_bits(v, 8);
    default:
        return v;
    }
}

/* fp32, with bits beyond 24 cut off instead of rounded. */
static inline double fp32_cut(double v) {
    double r = fp32(v);
    return fabs(r) > fabs(v) ? (double)nextafterf((float)r, 0) : r;
}

struct term {
    double a, b; /* the term is a·b; b is 1 where there is no product */
};

static inline double term_value(struct term t) {
    return fp32(t.a * t.b);
}

static inline double sum_tree(const struct term *t, size_t n) {
    if (n == 0)
        return 0;
    if (n == 1)
        return term_value(t[0]);
    return fp32(sum_tree(t, n / 2) + sum_tree(t + n / 2, n - n / 2));
}

static inline double sum_kahan(const struct term *t, size_t n) {
    double s = 0, c = 0;
    for (size_t i = 0; i < n; i++) {
        double y = fp32(term_value(t[i]) - c), next = fp32(s + y);
        c = fp32(fp32(next - s) - y);
        s = next;
    }
    return s;
}

static inline double sum_blocked(const struct term *t, size_t n) {
    struct term lanes[32];
    for (size_t l = 0; l < 32; l++) {
        double s = 0;
        for (size_t i = l; i < n; i += 32)
            s = fp32(s + term_value(t[i]));
        lanes[l] = (struct term){s, 1};
    }
    return sum_tree(lanes, 32);
}

static inline double sum_truncated(const struct term *t, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i += 8) {
        double part = 0;
        for (size_t k = i; k < n && k < i + 8; k++)
            part += t[k].a * t[k].b;
        s = fp32_cut(s + part);
    }
    return s;
}

static inline double sum_terms(enum order order, const struct term *t, size_t n) {
    double s = 0;
    switch (order) {
    case ORDER_PAIRWISE:
        return sum_tree(t, n);
    case ORDER_KAHAN:
        return sum_kahan(t, n);
    case ORDER_BLOCKED:
        return sum_blocked(t, n);
    case ORDER_TRUNCATED:
        return sum_truncated(t, n);
    case ORDER_BACKWARDS:
        for (size_t i = n; i-- > 0;)
            s = fp32(s + term_value(t[i]));
        return s;
    case ORDER_FUSED:
        for (size_t i = 0; i < n; i++)
            s = fp32(s + t[i].a * t[i].b);
        return s;
    default:
        for (size_t i = 0; i < n; i++)
            s = fp32(s + term_value(t[i]));
        return s;
    }
}

static inline const char *order_name(enum order o) {
    static const char *const names[ORDER_COUNT] = {
        "sequential", "backwards", "FMA", "blocked", "pairwise", "Kahan", "truncating accumulator"};
    return names[o];
}

static inline const char *operand_name(enum operand o) {
    static const char *const names[OPERAND_COUNT] = {"fp32", "TF32", "TF32 cut off", "bf16"};
    return names[o];
}

/* One evaluation of a task. */
enum { EMULATE_MEMOS = 16 };
struct emulation {
    const struct fixture *f;
    struct kernel k;
    int64_t var[TASK_MAX_VARS];
    double *value[TASK_MAX_TENSORS]; /* of lets and outputs */
    struct {
        const struct expr *e;
        uint32_t vars;
        int64_t at[TASK_MAX_VARS];
        double value;
    } memo[EMULATE_MEMOS];
    size_t nmemos;
};

static inline double emulate_expr(struct emulation *m, const struct expr *e);

/* Of functions that fp32 has in a library, that library's; of any other what function.def says,
 * which the caller rounds. */
static inline double emulate_call(enum function f, const double *a) {
    float s = (float)a[0];
    double x = a[0], y = a[1], z = a[2];
    switch (f) {
    case FUNCTION_EXP:
        return expf(s);
    case FUNCTION_LOG:
        return logf(s);
    case FUNCTION_SQRT:
        return sqrtf(s);
    case FUNCTION_RSQRT:
        return 1 / sqrtf(s);
    case FUNCTION_TANH:
        return tanhf(s);
    case FUNCTION_ERF:
        return erff(s);
    case FUNCTION_SIGMOID:
        return 1 / (1 + expf(-s));
    case FUNCTION_SIN:
        return sinf(s);
    case FUNCTION_COS:
        return cosf(s);
    case FUNCTION_EXPM1:
        return expm1f(s);
    case FUNCTION_LOG1P:
        return log1pf(s);
    case FUNCTION_POW:
        return powf(s, (float)y);
    default:
        break;
    }
    switch (f) {
#define FUNCTION(id, name, arguments, formula, ...)                                                \
    case FUNCTION_##id:                                                                            \
        return formula;
#include "spec/function.def"
#undef FUNCTION
    case FUNCTION_COUNT:
        break;
    }
    return NAN;
}

static inline double emulate_node(const struct expr *e, const double *a) {
    int64_t q = 0;
    switch (e->kind) {
    case EXPR_NEG:
        return -a[0];
    case EXPR_NOT:
        return a[0] == 0;
    case EXPR_ADD:
        return a[0] + a[1];
    case EXPR_SUB:
        return a[0] - a[1];
    case EXPR_MUL:
        return a[0] * a[1];
    case EXPR_DIV:
        return a[0] / a[1];
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        q = (int64_t)floor(a[0] / a[1]);
        return e->kind == EXPR_MOD ? a[0] - (double)q * a[1] : (double)q;
    case EXPR_EQ:
        return a[0] == a[1];
    case EXPR_NE:
        return a[0] != a[1];
    case EXPR_LT:
        return a[0] < a[1];
    case EXPR_LE:
        return a[0] <= a[1];
    case EXPR_GT:
        return a[0] > a[1];
    case EXPR_GE:
        return a[0] >= a[1];
    default:
        return emulate_call(e->function, a);
    }
}

static inline double emulate_read(struct emulation *m, const struct expr *e,
                                  const struct expr *pad) {
    const struct tensor *t = &m->f->task->tensors[e->ref];
    const struct bound_tensor *b = &m->f->in->tensors[e->ref];
    int64_t linear = 0;
    double v;
    for (size_t k = 0; k < e->nargs; k++) {
        double at = emulate_expr(m, e->args[k]);
        if (!(at >= 0 && at < (double)b->extent[k]))
            return pad ? emulate_expr(m, pad) : NAN;
        linear += (int64_t)at * b->stride[k];
    }
    if (t->role == TENSOR_LET)
        return m->value[e->ref][linear];
    size_t size = dtype_info(t->dtype)->bytes;
    data_load(t->dtype, (const char *)m->f->inputs[e->ref] + (size_t)linear * size, 1, &v);
    return v;
}

struct collecting {
    const struct expr *e;
    uint32_t over;
    struct term *terms;
    size_t n, cap;
    double value, best;
    size_t seen;
};

/* Factors that vary in the sum are what goes through a tensor core. */
static inline double emulate_factor(struct emulation *m, const struct expr *e, uint32_t over) {
    if (e->kind == EXPR_MUL && e->value_kind == VALUE_REAL)
        return fp32(emulate_factor(m, e->args[0], over) * emulate_factor(m, e->args[1], over));
    double v = emulate_expr(m, e);
    return expr_vars(e) & over ? round_operand(m->k.operand, v) : v;
}

static inline void collect_sum(struct emulation *m, struct collecting *c) {
    const struct expr *body = c->e->args[0];
    bool product = body->kind == EXPR_MUL && body->value_kind == VALUE_REAL;
    struct term t = {0, 1};
    if (product && expr_vars(body->args[0]) & c->over && expr_vars(body->args[1]) & c->over) {
        t.a = emulate_factor(m, body->args[0], c->over);
        t.b = emulate_factor(m, body->args[1], c->over);
    } else
        t.a = emulate_expr(m, body);
    c->terms = mem_grow(c->terms, &c->cap, c->n + 1, sizeof *c->terms);
    c->terms[c->n++] = t;
}

static inline void collect(struct emulation *m, struct collecting *c) {
    const struct reduce *r = c->e->reduce;
    if (r->guard && emulate_expr(m, r->guard) == 0)
        return;
    if (r->op == REDUCTION_SUM || r->op == REDUCTION_MEAN) {
        collect_sum(m, c);
        return;
    }
    double v = emulate_expr(m, c->e->args[0]);
    bool more = r->op == REDUCTION_MAX || r->op == REDUCTION_ARGMAX;
    bool better = !c->seen++ || (isnan(v) && !isnan(c->best)) || (more ? v > c->best : v < c->best);
    if (r->op == REDUCTION_PROD)
        c->value = fp32(c->value * v);
    else if (better) {
        c->best = v;
        c->value = r->op >= REDUCTION_ARGMAX ? (double)m->var[r->vars[0].var] : v;
    }
}

static inline void collect_over(struct emulation *m, struct collecting *c, size_t level) {
    const struct reduce *r = c->e->reduce;
    if (level == r->nvars) {
        collect(m, c);
        return;
    }
    const struct reduce_var *v = &r->vars[level];
    int64_t lo = (int64_t)emulate_expr(m, v->lo), hi = (int64_t)emulate_expr(m, v->hi);
    for (int64_t at = lo; at < hi; at++) {
        m->var[v->var] = at;
        collect_over(m, c, level + 1);
    }
}

static inline double emulate_sum(struct emulation *m, const struct collecting *c) {
    size_t n = c->n, read = (size_t)ceil((double)n * m->k.share);
    double s = sum_terms(m->k.order, c->terms, read);
    if (read < n)
        s = fp32(s * (double)n / (double)read);
    return c->e->reduce->op == REDUCTION_MEAN ? fp32(s / (double)n) : s;
}

static inline double emulate_reduce(struct emulation *m, const struct expr *e) {
    static const double empty[REDUCTION_COUNT] = {
        [REDUCTION_PROD] = 1, [REDUCTION_MAX] = -INFINITY, [REDUCTION_MIN] = INFINITY};
    struct collecting c = {.e = e, .value = empty[e->reduce->op]};
    uint32_t vars = expr_vars(e);
    size_t slot = 0;
    while (slot < m->nmemos && m->memo[slot].e != e)
        slot++;
    bool same = slot < m->nmemos;
    for (size_t v = 0; v < TASK_MAX_VARS && same; v++)
        same = !(vars >> v & 1) || m->memo[slot].at[v] == m->var[v];
    if (same)
        return m->memo[slot].value;
    int64_t at[TASK_MAX_VARS];
    memcpy(at, m->var, sizeof at);
    for (size_t k = 0; k < e->reduce->nvars; k++)
        c.over |= UINT32_C(1) << e->reduce->vars[k].var;
    collect_over(m, &c, 0);
    if (e->reduce->op == REDUCTION_SUM || e->reduce->op == REDUCTION_MEAN)
        c.value = emulate_sum(m, &c);
    mem_free(c.terms);
    if (slot == m->nmemos && m->nmemos < EMULATE_MEMOS)
        m->nmemos++;
    if (slot < m->nmemos) {
        m->memo[slot].e = e;
        m->memo[slot].value = c.value;
        memcpy(m->memo[slot].at, at, sizeof at);
    }
    return c.value;
}

static inline double emulate_any(struct emulation *m, const struct expr *e) {
    double a[3] = {0};
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->integral ? (double)e->integer : e->number;
    case EXPR_DIM:
        return (double)m->f->in->dims[e->ref];
    case EXPR_INDEX:
        return (double)m->var[e->ref];
    case EXPR_READ:
        return emulate_read(m, e, NULL);
    case EXPR_PAD:
        return emulate_read(m, e->args[0], e->args[1]);
    case EXPR_AND:
        return emulate_expr(m, e->args[0]) != 0 && emulate_expr(m, e->args[1]) != 0;
    case EXPR_OR:
        return emulate_expr(m, e->args[0]) != 0 || emulate_expr(m, e->args[1]) != 0;
    case EXPR_IF:
        return emulate_expr(m, e->args[emulate_expr(m, e->args[0]) != 0 ? 1 : 2]);
    case EXPR_REDUCE:
        return emulate_reduce(m, e);
    default:
        for (size_t i = 0; i < e->nargs && i < 3; i++) {
            a[i] = emulate_expr(m, e->args[i]);
            a[i] = e->value_kind == VALUE_REAL ? fp32(a[i]) : a[i];
        }
        return emulate_node(e, a);
    }
}

static inline double emulate_expr(struct emulation *m, const struct expr *e) {
    double v = emulate_any(m, e);
    return e->value_kind == VALUE_REAL ? fp32(v) : v;
}

static inline void emulate_statement(struct emulation *m, const struct statement *s) {
    const struct inst *in = m->f->in;
    const struct tensor *t = &in->task->tensors[s->tensor];
    const struct bound_tensor *b = &in->tensors[s->tensor];
    m->nmemos = 0;
    if (!m->value[s->tensor])
        m->value[s->tensor] = mem_alloc((size_t)b->count * sizeof(double));
    for (int64_t i = 0; i < b->count; i++) {
        bool ours = true;
        for (size_t k = 0; k < t->rank; k++) {
            int64_t at = i / b->stride[k] % b->extent[k], constant = 0;
            if (s->position[k] >= 0)
                m->var[s->position[k]] = at;
            else
                ours =
                    ours && expr_eval_dims(s->constant[k], in->dims, &constant) && constant == at;
        }
        if (!ours)
            continue;
        double v = emulate_expr(m, s->body);
        bool rounds = t->role == TENSOR_LET && dtype_info(t->dtype)->kind == 'f';
        m->value[s->tensor][i] = rounds ? round_to(t->dtype, v) : v;
    }
}

/* out[r]: reference r's tensor as the kernel would leave it, in its dtype. mem_free each. */
static inline void emulate(const struct fixture *f, struct kernel k, void **out) {
    struct emulation *m = mem_alloc(sizeof *m);
    m->f = f;
    m->k = k;
    for (size_t i = 0; i < f->task->nstatements; i++)
        emulate_statement(m, &f->task->statements[i]);
    for (size_t r = 0; r < f->nrefs; r++) {
        size_t t = f->refs[r].tensor;
        out[r] = mem_alloc(f->in->tensors[t].bytes);
        data_store(f->task->tensors[t].dtype, m->value[t], f->refs[r].count, out[r]);
    }
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(m->value[i]);
    mem_free(m);
}

/* The worst of the outputs: all must pass. */
static inline struct comparison judge_all(const struct fixture *f, void *const *out) {
    struct comparison all = {.pass = true, .pass_looser = true}, c;
    for (size_t r = 0; r < f->nrefs; r++) {
        reference_compare(f->in, &f->refs[r], out[r], 1, &c);
        if (r == 0 || (!c.pass && all.pass))
            all = c;
        all.worst = c.worst > all.worst ? c.worst : all.worst;
        all.rms = c.rms > all.rms ? c.rms : all.rms;
    }
    return all;
}

/* A line for tests/spec/calibration.py: subject, operands and order of the kernel, class, data,
 * whether it passed, and the shares of the two limits. */
static inline void note_result(const char *subject, struct kernel k, enum accuracy class,
                               const char *data, const struct comparison *c) {
    printf("#:\t%s\t%s, %s\t%s\t%s\t%d\t%.4g\t%.4g\n", subject, operand_name(k.operand),
           order_name(k.order), accuracy_name(class), data, c->pass, c->rms / c->rms_limit,
           c->worst / c->worst_limit);
}

static inline struct comparison run_kernel(const struct fixture *f, struct kernel k) {
    void *out[TASK_MAX_TENSORS] = {0};
    emulate(f, k, out);
    struct comparison c = judge_all(f, out);
    for (size_t r = 0; r < f->nrefs; r++)
        mem_free(out[r]);
    return c;
}

#endif
