/* What tasks and launch plans have in common about expressions. Parsers have bounded the depth. */
#include "spec/expr.h"

#include "base/checked.h"
#include "spec/language.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t expr_nparts(const struct expr *e) {
    const struct reduce *r = e->reduce;
    return e->nargs + (r ? (r->guard != NULL) + 2 * r->nvars : 0);
}

const struct expr *expr_part(const struct expr *e, size_t i) {
    const struct reduce *r = e->reduce;
    if (i < e->nargs)
        return e->args[i];
    i -= e->nargs;
    if (r->guard && i == 0)
        return r->guard;
    i -= r->guard != NULL;
    return i % 2 ? r->vars[i / 2].hi : r->vars[i / 2].lo;
}

bool err_at_expr(struct err *err, const struct task *t, const struct expr *e, const char *hint,
                 const char *fmt, ...) {
    const struct calling *c = e->calling;
    char text[512];
    size_t line, col;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!c)
        return err_at(err, t->file, t->text, e->at, e->len, hint, "%s", text);
    if (c->library)
        return err_at(err, t->file, t->text, e->at, e->len, hint, "%s, in the function '%.*s'",
                      text, STR_ARG(c->name));
    text_position(t->text, c->at, &line, &col);
    return err_at(err, t->file, t->text, e->at, e->len, hint,
                  "%s, in the function '%.*s' called at %zu:%zu", text, STR_ARG(c->name), line,
                  col);
}

const struct expr *expr_find(const struct expr *e, enum expr_kind kind) {
    if (e->kind == kind)
        return e;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        const struct expr *found = part ? expr_find(part, kind) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

bool expr_has(const struct expr *e, enum expr_kind kind) {
    return expr_find(e, kind) != NULL;
}

bool expr_reads(const struct expr *e) {
    return expr_has(e, EXPR_READ);
}

bool expr_is_number(const struct expr *e, int64_t v) {
    return e->kind == EXPR_NUMBER && e->integral && e->integer == v;
}

/* ---- equality ---- */

static bool same_reduce(const struct reduce *a, const struct reduce *b) {
    if (a == b)
        return true;
    if (!a || !b || a->op != b->op || a->nvars != b->nvars || !a->guard != !b->guard)
        return false;
    for (size_t i = 0; i < a->nvars; i++)
        if (a->vars[i].var != b->vars[i].var || !expr_same(a->vars[i].lo, b->vars[i].lo) ||
            !expr_same(a->vars[i].hi, b->vars[i].hi))
            return false;
    return !a->guard || expr_same(a->guard, b->guard);
}

static bool same_number(const struct expr *a, const struct expr *b) {
    return a->integral == b->integral &&
           (a->integral ? a->integer == b->integer
                        : a->number == b->number && signbit(a->number) == signbit(b->number));
}

bool expr_same(const struct expr *a, const struct expr *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->nargs != b->nargs)
        return false;
    bool refers = a->kind == EXPR_DIM || a->kind == EXPR_INDEX || a->kind == EXPR_READ;
    if ((refers && a->ref != b->ref) || (a->kind == EXPR_NUMBER && !same_number(a, b)) ||
        (a->kind == EXPR_CALL && a->function != b->function) ||
        (a->kind == EXPR_REDUCE && !same_reduce(a->reduce, b->reduce)))
        return false;
    for (size_t i = 0; i < a->nargs; i++)
        if (!expr_same(a->args[i], b->args[i]))
            return false;
    return true;
}

bool extents_same(const struct tensor *a, const struct tensor *b) {
    bool same = a->rank == b->rank;
    for (size_t i = 0; same && i < a->rank; i++)
        same = expr_same(a->extent[i], b->extent[i]);
    return same;
}

/* ---- values ---- */

struct evaluation {
    const int64_t *dims, *vars;
    struct expr_fault *fault;
};

static bool no_value(const struct evaluation *ev, const struct expr *e, const char *why) {
    *ev->fault = (struct expr_fault){e, why};
    return false;
}

static int64_t largest(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t smallest(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Functions that keep integers integers. */
static bool call(const struct evaluation *ev, const struct expr *e, const int64_t *v,
                 int64_t *out) {
    switch (e->function) {
    case FUNCTION_ABS:
        *out = v[0];
        return v[0] >= 0 || sub_i64(0, v[0], out) || no_value(ev, e, "does not fit 64 bits");
    case FUNCTION_MAXIMUM:
        *out = largest(v[0], v[1]);
        return true;
    case FUNCTION_MINIMUM:
        *out = smallest(v[0], v[1]);
        return true;
    case FUNCTION_CLAMP:
        *out = smallest(largest(v[0], v[1]), v[2]);
        return true;
    case FUNCTION_BIT_AND:
        *out = v[0] & v[1];
        return true;
    case FUNCTION_BIT_OR:
        *out = v[0] | v[1];
        return true;
    case FUNCTION_BIT_XOR:
        *out = v[0] ^ v[1];
        return true;
    case FUNCTION_SHL:
        return shl_i64(v[0], v[1], out) || no_value(ev, e, "does not fit 64 bits");
    case FUNCTION_SHR:
        return shr_i64(v[0], v[1], out) || no_value(ev, e, "shifts by other than 0 to 62 places");
    default:
        return no_value(ev, e, "is not an integer");
    }
}

static bool arithmetic(const struct evaluation *ev, const struct expr *e, const int64_t *v,
                       int64_t *out) {
    int64_t a = v[0], b = v[1];
    bool fits = true;
    switch (e->kind) {
    case EXPR_NEG:
        fits = sub_i64(0, a, out);
        break;
    case EXPR_NOT:
        *out = !a;
        break;
    case EXPR_ADD:
        fits = add_i64(a, b, out);
        break;
    case EXPR_SUB:
        fits = sub_i64(a, b, out);
        break;
    case EXPR_MUL:
        fits = mul_i64(a, b, out);
        break;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        if (b == 0)
            return no_value(ev, e, "division by zero");
        fits = e->kind == EXPR_MOD ? floormod_i64(a, b, out) : floordiv_i64(a, b, out);
        break;
    case EXPR_EQ:
        *out = a == b;
        break;
    case EXPR_NE:
        *out = a != b;
        break;
    case EXPR_LT:
        *out = a < b;
        break;
    case EXPR_LE:
        *out = a <= b;
        break;
    case EXPR_GT:
        *out = a > b;
        break;
    case EXPR_GE:
        *out = a >= b;
        break;
    default:
        return no_value(ev, e, "is not an integer");
    }
    return fits || no_value(ev, e, "does not fit 64 bits");
}

static bool eval(const struct evaluation *ev, const struct expr *e, int64_t *out) {
    int64_t v[3] = {0};
    switch (e->kind) {
    case EXPR_NUMBER:
        *out = e->integer;
        return e->integral || no_value(ev, e, "is not an integer");
    case EXPR_DIM:
        *out = ev->dims[e->ref];
        return true;
    case EXPR_INDEX:
        *out = ev->vars ? ev->vars[e->ref] : 0;
        return ev->vars || no_value(ev, e, "is not a number");
    case EXPR_AND:
    case EXPR_OR:
        if (!eval(ev, e->args[0], &v[0]))
            return false;
        *out = v[0] != 0;
        if ((v[0] != 0) == (e->kind == EXPR_OR))
            return true;
        if (!eval(ev, e->args[1], &v[1]))
            return false;
        *out = v[1] != 0;
        return true;
    case EXPR_IF:
        return eval(ev, e->args[0], &v[0]) && eval(ev, e->args[v[0] ? 1 : 2], out);
    case EXPR_READ:
    case EXPR_PAD:
    case EXPR_REDUCE:
        return no_value(ev, e, "is not a number");
    default:
        for (size_t i = 0; i < e->nargs && i < 3; i++)
            if (!eval(ev, e->args[i], &v[i]))
                return false;
        return e->kind == EXPR_CALL ? call(ev, e, v, out) : arithmetic(ev, e, v, out);
    }
}

bool expr_eval_integer(const struct expr *e, const int64_t *dims, const int64_t *vars, int64_t *out,
                       struct expr_fault *fault) {
    struct evaluation ev = {dims, vars, fault};
    return eval(&ev, e, out);
}

bool expr_eval_dims(const struct expr *e, const int64_t *dims, int64_t *out) {
    struct expr_fault ignored;
    return expr_eval_integer(e, dims, NULL, out, &ignored);
}

/* ---- as text for people (and models) ----
 *
 * Sizes are filled in, the mathematics is written anew from the tree, with no more brackets than it
 * needs. */

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

/* After the last let of a recurrence. */
static void show_recurrence(const struct task *t, size_t i, struct buf *out) {
    const struct statement *s = &t->statements[i];
    size_t first = i;
    if (!s->recurs.number ||
        (i + 1 < t->nstatements && t->statements[i + 1].recurs.number == s->recurs.number))
        return;
    while (first > 0 && t->statements[first - 1].recurs.number == s->recurs.number)
        first--;
    buf_printf(
        out, "  step by step along %.*s, from the %s to the %s:", STR_ARG(s->index[s->recurs.axis]),
        s->recurs.backwards ? "last" : "first", s->recurs.backwards ? "first" : "last");
    for (size_t k = first; k <= i; k++)
        buf_printf(out, "%s %.*s", k > first ? "," : "",
                   STR_ARG(t->tensors[t->statements[k].tensor].name));
    buf_putc(out, '\n');
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
    for (size_t i = 0; i < t->nstatements; i++) {
        show_statement(&w, &t->statements[i]);
        show_recurrence(t, i, out);
    }
    buf_printf(out, "  accuracy %s\n", accuracy_name(t->accuracy));
    show_checks(t, out);
    if (t->torch.n)
        buf_printf(out, "  PyTorch: %.*s\n", STR_ARG(t->torch));
}
