/* A task as text for people (and models): sizes filled in, the mathematics written anew from the
 * tree, with no more brackets than it needs. */
#include "spec/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum expr_kind kind;
    const char *symbol;
    int level;
} operators[] = {
    {EXPR_OR, " || ", 1}, {EXPR_AND, " && ", 2},    {EXPR_EQ, " == ", 3}, {EXPR_NE, " != ", 3},
    {EXPR_LT, " < ", 3},  {EXPR_LE, " <= ", 3},     {EXPR_GT, " > ", 3},  {EXPR_GE, " >= ", 3},
    {EXPR_ADD, " + ", 4}, {EXPR_SUB, " - ", 4},     {EXPR_MUL, "*", 5},   {EXPR_DIV, "/", 5},
    {EXPR_MOD, " % ", 5}, {EXPR_FLOORDIV, "//", 5},
};
enum { LEVEL_COMPARE = 3, LEVEL_PREFIX = 6, LEVEL_LEAF = 7 };

struct writer {
    const struct task *t;
    const struct statement *s; /* NULL: no index variables */
    struct buf *out;
};

static int operator_of(const struct expr *e) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].kind == e->kind)
            return (int)i;
    return -1;
}

static int level_of(const struct expr *e) {
    int op = operator_of(e);
    if (e->kind == EXPR_NEG || e->kind == EXPR_NOT)
        return LEVEL_PREFIX;
    return op < 0 ? LEVEL_LEAF : operators[op].level;
}

static void show_expr(const struct writer *w, const struct expr *e, int level);

static void show_args(const struct writer *w, const struct expr *e, char open, char close) {
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

static void show_leaf(const struct writer *w, const struct expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER:
        show_number(w->out, e);
        return;
    case EXPR_DIM:
        buf_puts(w->out, w->t->dims[e->ref].name);
        return;
    case EXPR_INDEX:
        buf_puts(w->out, w->s->index[e->ref]);
        return;
    case EXPR_READ:
        buf_puts(w->out, w->t->tensors[e->ref].name);
        if (e->nargs)
            show_args(w, e, '[', ']');
        return;
    default:
        buf_puts(w->out, e->kind == EXPR_IF ? S("if") : str_view(function_name(e->function)));
        show_args(w, e, '(', ')');
    }
}

/* `level`: what stands around binds so tightly. */
static void show_expr(const struct writer *w, const struct expr *e, int level) {
    int own = level_of(e), op = operator_of(e);
    if (own < level)
        buf_putc(w->out, '(');
    if (op >= 0) {
        show_expr(w, e->args[0], own == LEVEL_COMPARE ? own + 1 : own);
        buf_puts(w->out, str_view(operators[op].symbol));
        show_expr(w, e->args[1], own + 1);
    } else if (own == LEVEL_PREFIX) {
        buf_putc(w->out, e->kind == EXPR_NEG ? '-' : '!');
        show_expr(w, e->args[0], LEVEL_PREFIX);
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

static void show_dist(const struct writer *w, const struct dist *d) {
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

static void show_tensor(const struct writer *w, const struct inst *in, size_t i) {
    static const char *const roles[] = {"in   ", "param", "out  "};
    const struct tensor *t = &w->t->tensors[i];
    buf_printf(w->out, "  %s %.*s", roles[t->role], STR_ARG(t->name));
    for (size_t k = 0; k < t->rank; k++)
        buf_printf(w->out, "%c%lld", k ? ',' : '[', (long long)in->tensors[i].extent[k]);
    buf_printf(w->out, "%s : %s", t->rank ? "]" : "", dtype_info(t->dtype)->name);
    if (t->role != TENSOR_OUT)
        show_dist(w, &t->dist);
    buf_puts(w->out, S("  ("));
    show_bytes(w->out, in->tensors[i].bytes);
    buf_puts(w->out, S(")\n"));
}

static void show_statement(const struct writer *w, const struct statement *s) {
    const struct tensor *t = &w->t->tensors[s->tensor];
    bool let = t->role == TENSOR_LET;
    struct writer inner = {w->t, s, w->out};
    buf_printf(w->out, "  %s%.*s", let ? "let " : "", STR_ARG(t->name));
    for (size_t k = 0; k < s->nindex; k++) {
        buf_printf(w->out, "%c%.*s", k ? ',' : '[', STR_ARG(s->index[k]));
        if (let) {
            buf_puts(w->out, S(" < "));
            show_expr(w, t->extent[k], 0);
        }
    }
    if (s->nindex)
        buf_putc(w->out, ']');
    if (let && t->dtype != DTYPE_F64)
        buf_printf(w->out, " : %s", dtype_info(t->dtype)->name);
    buf_puts(w->out, S(" = "));
    show_expr(&inner, s->body, 0);
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
    struct writer w = {t, NULL, out};
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
    for (size_t i = 0; i < t->nstatements; i++)
        show_statement(&w, &t->statements[i]);
    buf_printf(out, "  accuracy %s\n", accuracy_name(t->accuracy));
    show_checks(t, out);
    if (t->torch.n)
        buf_printf(out, "  PyTorch: %.*s\n", STR_ARG(t->torch));
}
