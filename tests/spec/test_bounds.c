/* The proof of bounds is sound: statements are drawn at random, and whatever is accepted is run
 * over all values of its variables with data at the ends of their ranges. */
#include "base/rng.h"
#include "fixture.h"

enum { STATEMENTS = 6000 };

/* ---- drawing ---- */

struct draw {
    struct rng r;
    uint64_t at;
    struct buf out;
    int vars;   /* of v0 … in sight */
    bool bound; /* of a reduction: no data */
};

static uint64_t pick(struct draw *d, uint64_t n) {
    return rng_below(d->r, d->at++, n);
}

static void integer(struct draw *d, int depth) {
    static const char *const joints[] = {" + ", " - ", " - ", "*", "//", " % "};
    uint64_t kind = pick(d, depth > 0 ? 9 : 4);
    if (kind < 2) {
        buf_printf(&d->out, "v%d", (int)pick(d, (uint64_t)d->vars));
    } else if (kind == 2) {
        buf_printf(&d->out, "%d", (int)pick(d, 5));
    } else if (kind == 3) {
        buf_puts(&d->out, pick(d, 2) ? S("N") : S("M"));
    } else if (kind == 4) {
        buf_puts(&d->out, d->bound ? S("v1") : S("t[v0]"));
    } else if (kind == 5) {
        buf_puts(&d->out, pick(d, 2) ? S("maximum(") : S("minimum("));
        integer(d, depth - 1);
        buf_puts(&d->out, S(", "));
        integer(d, depth - 1);
        buf_putc(&d->out, ')');
    } else {
        buf_putc(&d->out, '(');
        integer(d, depth - 1);
        buf_puts(&d->out, str_view(joints[pick(d, 6)]));
        integer(d, depth - 1);
        buf_putc(&d->out, ')');
    }
}

static void condition(struct draw *d, int depth) {
    static const char *const signs[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    uint64_t kind = pick(d, depth > 0 ? 4 : 1);
    if (kind == 0) {
        integer(d, 2);
        buf_puts(&d->out, str_view(signs[pick(d, 6)]));
        integer(d, 1);
    } else {
        buf_puts(&d->out, kind == 1 ? S("!(") : S("("));
        condition(d, depth - 1);
        buf_puts(&d->out, kind == 3 ? S(" || ") : S(" && "));
        condition(d, depth - 1);
        buf_putc(&d->out, ')');
    }
}

static void term(struct draw *d, int depth) {
    uint64_t kind = depth > 0 ? pick(d, 4) : 0;
    if (kind == 0) {
        buf_puts(&d->out, S("x["));
        integer(d, 2);
        buf_puts(&d->out, S("]"));
    } else if (kind == 1) {
        buf_puts(&d->out, S("if("));
        condition(d, 1);
        buf_puts(&d->out, S(", "));
        term(d, depth - 1);
        buf_puts(&d->out, S(", 0)"));
    } else {
        buf_puts(&d->out, S("(sum("));
        if (pick(d, 2)) {
            integer(d, 0);
            buf_puts(&d->out, pick(d, 2) ? S(" <= ") : S(" < "));
        }
        buf_printf(&d->out, "v%d %s ", d->vars, pick(d, 2) ? "<" : "<=");
        d->bound = true;
        integer(d, 1);
        d->bound = false;
        d->vars++;
        if (pick(d, 2)) {
            buf_puts(&d->out, S(" | "));
            condition(d, 1);
        }
        buf_puts(&d->out, S(") "));
        term(d, depth - 1);
        buf_putc(&d->out, ')');
        d->vars--;
    }
}

/* ---- running ---- */

struct run {
    const struct inst *in;
    int64_t vars[TASK_MAX_VARS];
    bool high;    /* data at the upper end */
    size_t reads; /* made */
    bool left;    /* some read left its tensor */
};

static int64_t value(struct run *r, const struct expr *e);

static int64_t run_read(struct run *r, const struct expr *e) {
    const struct bound_tensor *t = &r->in->tensors[e->ref];
    for (size_t k = 0; k < e->nargs; k++) {
        int64_t at = value(r, e->args[k]);
        r->left |= at < 0 || at >= t->extent[k];
    }
    r->reads++;
    return e->value_kind != VALUE_INT ? 0 : r->high ? t->hi : t->lo;
}

static void run_reduce(struct run *r, const struct expr *e) {
    const struct reduce_var *v = &e->reduce->vars[0];
    int64_t lo = value(r, v->lo), hi = value(r, v->hi);
    for (int64_t k = lo; k < hi && k < lo + 200; k++) {
        r->vars[v->var] = k;
        if (!e->reduce->guard || value(r, e->reduce->guard))
            value(r, e->args[0]);
    }
}

static int64_t binary(enum expr_kind kind, int64_t a, int64_t b) {
    int64_t q = b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
    switch (kind) {
    case EXPR_ADD:
        return a + b;
    case EXPR_SUB:
        return a - b;
    case EXPR_MUL:
        return a * b;
    case EXPR_FLOORDIV:
        return q;
    case EXPR_MOD:
        return a - q * b;
    case EXPR_EQ:
        return a == b;
    case EXPR_NE:
        return a != b;
    case EXPR_LT:
        return a < b;
    case EXPR_LE:
        return a <= b;
    case EXPR_GT:
        return a > b;
    case EXPR_GE:
        return a >= b;
    case EXPR_AND:
        return a && b;
    case EXPR_OR:
        return a || b;
    default:
        return 0;
    }
}

static int64_t value(struct run *r, const struct expr *e) {
    int64_t a, b;
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->integer;
    case EXPR_DIM:
        return r->in->dims[e->ref];
    case EXPR_INDEX:
        return r->vars[e->ref];
    case EXPR_READ:
        return run_read(r, e);
    case EXPR_REDUCE:
        run_reduce(r, e);
        return 0;
    case EXPR_IF:
        return value(r, e->args[0]) ? value(r, e->args[1]) : value(r, e->args[2]);
    case EXPR_NOT:
        return !value(r, e->args[0]);
    case EXPR_CALL:
        a = value(r, e->args[0]);
        b = value(r, e->args[1]);
        return (e->function == FUNCTION_MAXIMUM) == (a > b) ? a : b;
    default:
        a = value(r, e->args[0]);
        b = value(r, e->args[1]);
        return binary(e->kind, a, b);
    }
}

static bool holds(const struct inst *in, size_t *reads) {
    const struct statement *s = &in->task->statements[0];
    for (int high = 0; high < 2; high++)
        for (int64_t i = 0; i < in->tensors[s->tensor].extent[0]; i++)
            for (int64_t j = 0; j < in->tensors[s->tensor].extent[1]; j++) {
                struct run r = {.in = in, .vars = {i, j}, .high = high};
                value(&r, s->body);
                *reads += r.reads;
                if (r.left)
                    return false;
            }
    return true;
}

static void proofs_are_sound(void) {
    struct draw d = {.r = rng_stream(2026, S("bounds"))};
    size_t accepted = 0, reads = 0;
    buf_init(&d.out, 1 << 16);
    for (int i = 0; i < STATEMENTS; i++) {
        struct arena *a = arena_new((size_t)4 << 20);
        struct task *t;
        struct inst *in;
        struct err err = {0};
        buf_clear(&d.out);
        buf_puts(&d.out, S("task t \"T\"\ndim N = 5, M = 3\nin x[7] : f32 ~ ones\n"
                           "in t[N] : i32 ~ randint(-1, 4)\nout y[N,M] : f32\ny[v0,v1] = "));
        d.vars = 2;
        term(&d, 3);
        buf_putc(&d.out, '\n');
        bool ok = task_parse(S("t.task"), buf_str(&d.out), a, &t, &err);
        CHECKF(ok, "%s", err.text);
        if (ok && task_bind(t, NULL, 0, a, &in, &err)) {
            accepted++;
            CHECKF(holds(in, &reads), "%s", d.out.p);
        }
        arena_free(a);
    }
    CHECKF(accepted > STATEMENTS / 20 && reads > 1000, "%zu accepted, %zu reads", accepted, reads);
    buf_release(&d.out);
}

static const struct tap_case cases[] = {{"what is proved holds", proofs_are_sound}};
TAP_CASES(cases)
