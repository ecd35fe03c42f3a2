/* A task as text for people (and models): sizes filled in, the mathematics written anew from the
 * tree, with no more brackets than it needs. */
#include "spec/language.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEVEL_PREFIX = LEVEL_PRODUCT + 1, LEVEL_LEAF };

struct writer {
    const struct task *t;
    str names[TASK_MAX_VARS]; /* of the variables in sight */
    struct buf *out;
};

static int level_of(const struct expr *e) {
    const struct binary *op = binary_of(e->kind);
    if (e->kind == EXPR_NEG || e->kind == EXPR_NOT)
        return LEVEL_PREFIX;
    if (e->kind == EXPR_REDUCE)
        return LEVEL_PRODUCT;
    return op ? op->level : LEVEL_LEAF;
}

/* Factors stand close together. */
static void show_operator(struct buf *out, enum expr_kind kind) {
    const struct binary *op = binary_of(kind);
    bool close = op->level == LEVEL_PRODUCT && kind != EXPR_MOD;
    buf_printf(out, close ? "%s" : " %s ", op->symbol);
}

static void show_expr(struct writer *w, const struct expr *e, int level);

static void show_args(struct writer *w, const struct expr *e, char open, char close) {
    buf_putc(w->out, open);
    for (size_t i = 0; i < e->nargs; i++) {
        if (i)
            buf_puts(w->out, open == '[' ? S(",") : S(", "));
        show_expr(w, e->args[i], 0);
    }
    buf_putc(w->out, close);
}

/* The fewest digits that read back the same. */
static void show_number(struct buf *out, const struct expr *e) {
    char text[40];
    double back;
    if (e->integral || isinf(e->number)) {
        if (e->integral)
            buf_printf(out, "%lld", (long long)e->integer);
        else
            buf_puts(out, S("inf"));
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, e->number);
        if (str_to_f64(str_view(text), &back) && back == e->number)
            break;
    }
    buf_puts(out, str_view(text));
    if (!strpbrk(text, ".e"))
        buf_puts(out, S(".0"));
}

static void show_leaf(struct writer *w, const struct expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER:
        show_number(w->out, e);
        return;
    case EXPR_DIM:
        buf_puts(w->out, w->t->dims[e->ref].name);
        return;
    case EXPR_INDEX:
        buf_puts(w->out, w->names[e->ref]);
        return;
    case EXPR_READ:
        buf_puts(w->out, w->t->tensors[e->ref].name);
        if (e->nargs)
            show_args(w, e, '[', ']');
        return;
    default:
        buf_puts(w->out, e->kind == EXPR_IF    ? S("if")
                         : e->kind == EXPR_PAD ? S("pad")
                                               : str_view(function_info(e->function)->name));
        show_args(w, e, '(', ')');
    }
}

/* k < N, k <= j, j <= k < N */
static void show_range(struct writer *w, const struct reduce_var *v) {
    bool with = v->hi->kind == EXPR_ADD && expr_is_number(v->hi->args[1], 1);
    if (!expr_is_number(v->lo, 0)) {
        show_expr(w, v->lo, LEVEL_SUM);
        buf_puts(w->out, S(" <= "));
    }
    w->names[v->var] = v->name;
    buf_puts(w->out, v->name);
    buf_puts(w->out, with ? S(" <= ") : S(" < "));
    show_expr(w, with ? v->hi->args[0] : v->hi, LEVEL_SUM);
}

static void show_reduce(struct writer *w, const struct expr *e) {
    const struct reduce *r = e->reduce;
    buf_printf(w->out, "%s(", reduction_name(r->op));
    for (size_t i = 0; i < r->nvars; i++) {
        if (i)
            buf_puts(w->out, S(", "));
        show_range(w, &r->vars[i]);
    }
    if (r->guard) {
        buf_puts(w->out, S(" | "));
        show_expr(w, r->guard, 0);
    }
    buf_puts(w->out, S(") "));
    show_expr(w, e->args[0], LEVEL_PRODUCT);
}

/* A reduction takes every factor that follows it, so it is bracketed where it is one. */
static void show_operand(struct writer *w, const struct expr *e, int level, bool factor) {
    show_expr(w, e, factor && e->kind == EXPR_REDUCE ? LEVEL_LEAF : level);
}

/* `level`: what stands around binds so tightly. */
static void show_expr(struct writer *w, const struct expr *e, int level) {
    int own = level_of(e);
    if (own < level)
        buf_putc(w->out, '(');
    if (binary_of(e->kind)) {
        bool factors = own == LEVEL_PRODUCT;
        show_operand(w, e->args[0], own == LEVEL_COMPARE ? own + 1 : own, factors);
        show_operator(w->out, e->kind);
        show_operand(w, e->args[1], own + 1, factors);
    } else if (own == LEVEL_PREFIX) {
        buf_putc(w->out, e->kind == EXPR_NEG ? '-' : '!');
        show_expr(w, e->args[0], LEVEL_PREFIX);
    } else if (e->kind == EXPR_REDUCE) {
        show_reduce(w, e);
    } else {
        show_leaf(w, e);
    }
    if (own < level)
        buf_putc(w->out, ')');
}

static void show_bytes(struct buf *out, size_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t u = 0;
    for (; v >= 1024 && u + 1 < sizeof units / sizeof *units; u++)
        v /= 1024;
    buf_printf(out, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void show_dist(struct writer *w, const struct dist *d) {
    static const char *const names[] = {
        [DIST_UNIFORM] = "uniform",     [DIST_NORMAL] = "normal", [DIST_RANDINT] = "randint",
        [DIST_BERNOULLI] = "bernoulli", [DIST_ONES] = "ones",     [DIST_ZEROS] = "zeros"};
    buf_printf(w->out, " ~ %s", names[d->kind]);
    if (d->a) {
        buf_putc(w->out, '(');
        show_expr(w, d->a, 0);
        if (d->b) {
            buf_puts(w->out, S(", "));
            show_expr(w, d->b, 0);
        }
        buf_putc(w->out, ')');
    }
}

static void show_body(struct writer *w, const struct statement *s) {
    for (size_t i = 0; i < s->nindex; i++)
        w->names[i] = s->index[i];
    buf_puts(w->out, S(" = "));
    show_expr(w, s->body, 0);
}

static void show_content(struct writer *w, size_t i) {
    const struct task *t = w->t;
    if (t->tensors[i].dist.kind != DIST_DEFINED)
        show_dist(w, &t->tensors[i].dist);
    for (size_t k = 0; k < t->ndefinitions; k++)
        if (t->definitions[k].tensor == i)
            show_body(w, &t->definitions[k]);
}

static void show_tensor(struct writer *w, const struct inst *in, size_t i) {
    static const char *const roles[] = {[TENSOR_IN] = "in   ",
                                        [TENSOR_PARAM] = "param",
                                        [TENSOR_OUT] = "out  ",
                                        [TENSOR_RAND] = "rand ",
                                        [TENSOR_INOUT] = "inout"};
    const struct tensor *t = &w->t->tensors[i];
    buf_printf(w->out, "  %s %.*s", roles[t->role], STR_ARG(t->name));
    for (size_t k = 0; k < t->rank; k++)
        buf_printf(w->out, "%c%lld", k ? ',' : '[', (long long)in->tensors[i].extent[k]);
    buf_printf(w->out, "%s : %s", t->rank ? "]" : "", dtype_info(t->dtype)->name);
    if (t->role != TENSOR_OUT)
        show_content(w, i);
    buf_puts(w->out, S("  ("));
    show_bytes(w->out, in->tensors[i].bytes);
    buf_puts(w->out, S(")\n"));
}

/* name[i,0,j], with the ranges of a let. */
static void show_left(struct writer *w, const struct statement *s) {
    const struct tensor *t = &w->t->tensors[s->tensor];
    buf_puts(w->out, t->name);
    for (size_t k = 0; k < t->rank; k++) {
        buf_puts(w->out, k == 0 ? S("[") : t->role == TENSOR_LET ? S(", ") : S(","));
        if (s->position[k] >= 0)
            buf_puts(w->out, s->index[s->position[k]]);
        else
            show_expr(w, s->constant[k], 0);
        if (t->role == TENSOR_LET) {
            buf_puts(w->out, S(" < "));
            show_expr(w, t->extent[k], 0);
        }
    }
    if (t->rank)
        buf_putc(w->out, ']');
}

static void show_statement(struct writer *w, const struct statement *s) {
    const struct tensor *t = &w->t->tensors[s->tensor];
    bool let = t->role == TENSOR_LET;
    buf_puts(w->out, let ? S("  let ") : S("  "));
    show_left(w, s);
    if (let && t->dtype != DTYPE_F64)
        buf_printf(w->out, " : %s", dtype_info(t->dtype)->name);
    show_body(w, s);
    buf_putc(w->out, '\n');
}

static void show_assumption(struct writer *w, const struct assumption *x) {
    buf_puts(w->out, S("  assume "));
    if (x->kind == ASSUME_SYMMETRIC) {
        buf_printf(w->out, "symmetric(%.*s)\n", STR_ARG(w->t->tensors[x->tensor].name));
        return;
    }
    for (size_t i = 0; i < x->s.nindex; i++)
        w->names[i] = x->s.index[i];
    show_left(w, &x->s);
    show_operator(w->out, x->kind == ASSUME_ZERO ? EXPR_EQ : x->op);
    show_expr(w, x->number, LEVEL_SUM);
    if (x->kind == ASSUME_ZERO) {
        buf_puts(w->out, S(" | "));
        show_expr(w, x->s.body, 0);
    }
    buf_putc(w->out, '\n');
}

static void show_checks(const struct task *t, struct buf *out) {
    for (size_t i = 0; i < t->nchecks; i++) {
        buf_puts(out, i ? S("; ") : S("  checked at "));
        for (size_t k = 0; k < t->checks[i].n; k++)
            buf_printf(out, "%s%.*s=%lld", k ? " " : "", STR_ARG(t->checks[i].set[k].name),
                       (long long)t->checks[i].set[k].value);
    }
    if (t->nchecks)
        buf_putc(out, '\n');
}

void task_show(const struct inst *in, struct buf *out) {
    const struct task *t = in->task;
    struct writer w = {.t = t, .out = out};
    buf_printf(out, "%.*s: %.*s\n", STR_ARG(t->name), STR_ARG(t->title));
    for (size_t i = 0; i < t->ndims; i++) {
        buf_printf(out, "%s%.*s = %lld", i ? ", " : "  ", STR_ARG(t->dims[i].name),
                   (long long)in->dims[i]);
    }
    if (t->ndims)
        buf_putc(out, '\n');
    for (size_t i = 0; i < t->ntensors; i++)
        if (t->tensors[i].role != TENSOR_LET)
            show_tensor(&w, in, i);
    for (size_t i = 0; i < t->nassumptions; i++)
        show_assumption(&w, &t->assumptions[i]);
    for (size_t i = 0; i < t->nstatements; i++)
        show_statement(&w, &t->statements[i]);
    buf_printf(out, "  accuracy %s\n", accuracy_name(t->accuracy));
    show_checks(t, out);
    if (t->torch.n)
        buf_printf(out, "  PyTorch: %.*s\n", STR_ARG(t->torch));
}
