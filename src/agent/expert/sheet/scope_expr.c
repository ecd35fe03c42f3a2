/* Expressions in a kernel's terms.
 *
 * Integers are int where that is proved for every shape the plan admits, since tensors of a kernel
 * that is not wide have at most 2^30 elements: sums of variables and sizes with small factors, and
 * indices that only grow on the way to a value that is inside its tensor. All other arithmetic on
 * integers is 64 bits wide. */
#include "agent/expert/sheet/sheet_private.h"
#include "kernel/emit.h"

struct text {
    struct scope *k;
    bool index; /* the expression is an index that is inside its tensor */
};

/* ---- variables ---- */

static const struct reduce_var *find_var(const struct expr *e, size_t var) {
    for (size_t i = 0; e->kind == EXPR_REDUCE && i < e->reduce->nvars; i++)
        if (e->reduce->vars[i].var == var)
            return &e->reduce->vars[i];
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct reduce_var *v = find_var(expr_part(e, i), var);
        if (v)
            return v;
    }
    return NULL;
}

static const struct reduce_var *reduce_var_of(const struct scope *k, size_t var) {
    return k->statement && var >= k->statement->nindex ? find_var(k->statement->body, var) : NULL;
}

const struct expr *scope_extent(const struct scope *k, size_t var) {
    const struct reduce_var *v = reduce_var_of(k, var);
    if (!v)
        return k->statement ? statement_extent(k->step->inst->task, k->statement, var) : NULL;
    return expr_is_number(v->lo, 0) && !expr_uses(v->hi) ? v->hi : NULL;
}

/* Never negative, at any shape. */
static bool is_natural(const struct scope *k, const struct expr *e) {
    const struct reduce_var *v;
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->integral && e->integer >= 0;
    case EXPR_DIM:
        return true;
    case EXPR_INDEX:
        v = reduce_var_of(k, e->ref);
        return !v || is_natural(k, v->lo);
    case EXPR_ADD:
    case EXPR_MUL:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return is_natural(k, e->args[0]) && is_natural(k, e->args[1]);
    default:
        return false;
    }
}

static bool is_positive(const struct expr *e) {
    return e->kind == EXPR_DIM || (e->kind == EXPR_NUMBER && e->integral && e->integer > 0);
}

static bool plain_division(void *ctx, const struct expr *e) {
    const struct text *x = ctx;
    return is_natural(x->k, e->args[0]) && is_positive(e->args[1]);
}

/* ---- width ---- */

/* |value| and every step on the way are at most `sizes` times the largest size, plus `rest`. */
struct magnitude {
    bool known;
    double sizes, rest;
};

static struct magnitude magnitude_of(const struct text *x, const struct expr *e);

static struct magnitude magnitude_max(const struct text *x, struct expr *const *args, size_t n) {
    struct magnitude most = {true, 0, 0};
    for (size_t i = 0; i < n; i++) {
        struct magnitude m = magnitude_of(x, args[i]);
        most.known &= m.known;
        most.sizes = m.sizes > most.sizes ? m.sizes : most.sizes;
        most.rest = m.rest > most.rest ? m.rest : most.rest;
    }
    return most;
}

static struct magnitude magnitude_product(struct magnitude a, struct magnitude b) {
    bool known = a.known && b.known && (a.sizes == 0 || b.sizes == 0);
    return (struct magnitude){known, a.sizes * b.rest + b.sizes * a.rest, a.rest * b.rest};
}

static struct magnitude magnitude_of(const struct text *x, const struct expr *e) {
    const struct expr *extent;
    struct magnitude a, b;
    switch (e->kind) {
    case EXPR_NUMBER:
        return (struct magnitude){e->integral, 0,
                                  e->integer < 0 ? -(double)e->integer : (double)e->integer};
    case EXPR_INDEX:
        extent = scope_extent(x->k, e->ref);
        if (extent && extent->kind == EXPR_NUMBER)
            return (struct magnitude){true, 0, (double)extent->integer};
        return (struct magnitude){true, 1, 0};
    case EXPR_DIM:
        return (struct magnitude){true, 1, 0};
    case EXPR_ADD:
    case EXPR_SUB:
        a = magnitude_of(x, e->args[0]);
        b = magnitude_of(x, e->args[1]);
        return (struct magnitude){a.known && b.known, a.sizes + b.sizes, a.rest + b.rest};
    case EXPR_MUL:
        return magnitude_product(magnitude_of(x, e->args[0]), magnitude_of(x, e->args[1]));
    case EXPR_NEG:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return magnitude_max(x, e->args, e->nargs);
    case EXPR_CALL:
        return magnitude_max(x, e->args, e->nargs);
    case EXPR_IF:
        return magnitude_max(x, e->args + 1, 2);
    default:
        return (struct magnitude){0};
    }
}

/* Only grows from its parts to its value. */
static bool is_growing(const struct scope *k, const struct expr *e) {
    if (e->kind == EXPR_ADD || e->kind == EXPR_MUL)
        return is_growing(k, e->args[0]) && is_growing(k, e->args[1]);
    return e->nargs == 0 && is_natural(k, e);
}

/* Two sizes of at most 2^30 and a little more fit; larger multiples need smaller sizes. */
static void require_sizes(struct text *x, const struct expr *e, double times) {
    const struct expr *extent = e->kind == EXPR_INDEX ? scope_extent(x->k, e->ref) : NULL;
    if (e->kind == EXPR_DIM)
        extent = e;
    if (extent && extent->kind != EXPR_NUMBER) {
        str plan = sheet_plan(x->k->sh, extent);
        sheet_require(x->k->sh, "%.*s <= %lld", STR_ARG(plan),
                      (long long)((double)SCOPE_INT_MAX / times));
    }
    for (size_t i = 0; i < e->nargs; i++)
        require_sizes(x, e->args[i], times);
}

static bool narrow(void *ctx, const struct expr *e) {
    struct text *x = ctx;
    if (x->index && is_growing(x->k, e))
        return true;
    struct magnitude m = magnitude_of(x, e);
    if (!m.known || m.rest >= 1 << 20 || m.sizes > 1 << 10)
        return false;
    if (!x->k->wide && m.sizes > 2)
        require_sizes(x, e, m.sizes);
    return true;
}

/* ---- leaves ---- */

static void put_text(struct text *x, const struct expr *e, struct buf *out);

static void put_variable(void *ctx, size_t variable, struct buf *out) {
    struct text *x = ctx;
    str name = x->k->var[variable];
    if (name.n == 0 && !sheet_failed(x->k->sh))
        err_set(x->k->sh->err, ERR_INPUT, "kernel %.*s: a variable has no value here",
                STR_ARG(x->k->name));
    buf_puts(out, name);
}

static void put_dim(void *ctx, size_t dimension, struct buf *out) {
    struct text *x = ctx;
    struct expr e = {.kind = EXPR_DIM, .value_kind = VALUE_INT, .ref = dimension};
    buf_puts(out, scope_int(x->k, &e));
}

static bool is_wrapped(str s) {
    return str_find(s, S(" ")) == s.n || (s.n && s.p[0] == '(' && s.p[s.n - 1] == ')');
}

static str held(void *ctx, const struct expr *e) {
    struct text *x = ctx;
    for (size_t i = 0; i < x->k->nheld; i++) {
        if (!expr_same(x->k->held[i].e, e))
            continue;
        str s = x->k->held[i].text;
        return is_wrapped(s) ? s : TEXT(x->k->sh, "($)", s);
    }
    return S("");
}

static void put_read(void *ctx, const struct expr *e, struct buf *out) {
    struct text *x = ctx;
    struct buf b;
    buf_init(&b, out->max);
    buf_puts(&b, scope_pointer(x->k, e->ref, false));
    buf_putc(&b, '[');
    scope_offset(x->k, e, &b);
    buf_putc(&b, ']');
    buf_puts(out, scope_unpacked(x->k, e->ref, buf_str(&b)));
    buf_release(&b);
}

/* ---- pads ---- */

/* Inside the tensor at every shape, by its form alone. */
static bool is_inside(const struct scope *k, const struct expr *index, const struct expr *extent) {
    if (index->kind == EXPR_INDEX) {
        const struct expr *own = scope_extent(k, index->ref);
        return own && expr_same(own, extent);
    }
    return index->kind == EXPR_NUMBER && index->integer >= 0 && extent->kind == EXPR_NUMBER &&
           index->integer < extent->integer;
}

/* One comparison tests both ends: a negative index is a huge unsigned one. */
static void put_test(struct text *x, const struct expr *index, const struct expr *extent,
                     struct buf *out) {
    struct text inner = {.k = x->k};
    bool wide = x->k->wide || !narrow(&inner, index);
    const char *type = wide ? "unsigned long long" : "unsigned";
    str size = scope_int(x->k, extent);
    buf_printf(out, "(%s)(", type);
    put_text(&inner, index, out);
    buf_printf(out,
               extent->kind == EXPR_NUMBER ? ") < %.*s"
               : wide                      ? ") < (unsigned long long)%.*s"
                                           : ") < (unsigned)%.*s",
               STR_ARG(size));
}

/* The value beyond the edges, a float where the pad is one. */
static void put_outside(struct text *x, const struct expr *pad, struct buf *out) {
    const struct expr *value = pad->args[1];
    if (pad->value_kind == VALUE_REAL && value->kind == EXPR_NUMBER)
        emit_float(value->integral ? (double)value->integer : value->number, out);
    else
        put_text(x, value, out);
}

static void put_pad(void *ctx, const struct expr *e, struct buf *out) {
    struct text *x = ctx, plain = {.k = x->k};
    const struct expr *read = e->args[0];
    const struct tensor *t = &x->k->step->inst->task->tensors[read->ref];
    size_t tests = 0;
    buf_putc(out, '(');
    for (size_t i = 0; i < t->rank; i++) {
        if (is_inside(x->k, read->args[i], t->extent[i]))
            continue;
        buf_puts(out, tests++ ? S(" && ") : S(""));
        put_test(x, read->args[i], t->extent[i], out);
    }
    buf_puts(out, tests ? S(" ? ") : S(""));
    put_text(&plain, read, out);
    if (tests) {
        buf_puts(out, S(" : "));
        put_outside(&plain, e, out);
    }
    buf_putc(out, ')');
}

/* ---- the header's functions ---- */

static void put_text(struct text *x, const struct expr *e, struct buf *out) {
    struct sheet *sh = x->k->sh;
    struct emit_names names = {
        .ctx = x,
        .read = put_read,
        .index = put_variable,
        .dim = put_dim,
        .pad = put_pad,
        .held = held,
        .narrow = narrow,
        .plain_division = plain_division,
        .fast = sh->fast,
        .helpers = &sh->helpers,
    };
    if (!sheet_failed(sh))
        emit_expr(x->k->step->inst->task, e, &names, out, sh->err);
}

bool scope_expr(struct scope *k, const struct expr *e, struct buf *out) {
    struct text x = {.k = k};
    put_text(&x, e, out);
    return !sheet_failed(k->sh);
}

str scope_text(struct scope *k, const struct expr *e) {
    struct buf b;
    buf_init(&b, 256u << 10);
    bool ok = scope_expr(k, e, &b);
    str s = ok ? arena_str(k->sh->mem, buf_str(&b)) : S("");
    buf_release(&b);
    return s;
}

/* Does the text of an index need parentheses beside * and +? */
static bool is_compound(const struct expr *e) {
    return e->nargs > 0 && e->kind != EXPR_CALL && e->kind != EXPR_READ;
}

/* One index. It is inside its tensor, so that where indices are int it is one, whatever it was
 * computed with. */
static void put_index(struct scope *k, const struct expr *e, bool alone, struct buf *out) {
    struct text x = {.k = k, .index = true};
    bool reads = e->kind == EXPR_READ ? sheet_dtype(k->sh, k->step, e->ref) == DTYPE_I64
                                      : e->nargs > 0 && !narrow(&x, e);
    bool cast = reads && !k->wide, parentheses = cast ? e->kind != EXPR_READ : is_compound(e);
    parentheses = parentheses && (cast || !alone);
    buf_puts(out, cast ? S("(int)") : S(""));
    buf_puts(out, parentheses ? S("(") : S(""));
    put_text(&x, e, out);
    buf_puts(out, parentheses ? S(")") : S(""));
}

/* By Horner's rule: (i * J + j) * K + k, from the first index that is not 0. */
bool scope_offset(struct scope *k, const struct expr *read, struct buf *out) {
    const struct tensor *t = &k->step->inst->task->tensors[read->ref];
    struct expr *const *index = read->args;
    size_t first = 0;
    while (first < t->rank && expr_is_number(index[first], 0))
        first++;
    if (first == t->rank) {
        buf_putc(out, '0');
        return !sheet_failed(k->sh);
    }
    for (size_t i = first + 2; i < t->rank; i++)
        buf_putc(out, '(');
    put_index(k, index[first], first + 1 == t->rank, out);
    for (size_t i = first + 1; i < t->rank; i++) {
        str size = scope_int(k, t->extent[i]);
        buf_printf(out, " * %.*s", STR_ARG(size));
        if (!expr_is_number(index[i], 0)) {
            buf_puts(out, S(" + "));
            put_index(k, index[i], false, out);
        }
        buf_puts(out, i + 1 < t->rank ? S(")") : S(""));
    }
    return !sheet_failed(k->sh);
}

str scope_offset_text(struct scope *k, const struct expr *read) {
    struct buf b;
    buf_init(&b, 64u << 10);
    scope_offset(k, read, &b);
    str text = sheet_keep(k->sh, &b);
    buf_release(&b);
    return text;
}

str scope_place_text(struct scope *k) {
    return scope_offset_text(k, expr_own(k->step->inst->task, k->statement, k->sh->mem));
}

void scope_hold(struct scope *k, const struct expr *e, str text) {
    size_t most = sizeof k->held / sizeof *k->held;
    for (size_t i = 0; i < k->nheld; i++)
        if (expr_same(k->held[i].e, e)) {
            k->held[i].text = text;
            return;
        }
    if (k->nheld == most) {
        if (!sheet_failed(k->sh))
            err_set(k->sh->err, ERR_INPUT, "kernel %.*s: more than %zu values in registers",
                    STR_ARG(k->name), most);
        return;
    }
    k->held[k->nheld].e = e;
    k->held[k->nheld++].text = text;
}

/* The name of a variable whose own name is in use; the same one whenever it is asked for. */
static str other_name(struct scope *k, str own) {
    for (size_t i = 0; i < k->nrenamed; i++)
        if (str_eq(k->renamed[i].own, own))
            return k->renamed[i].here;
    str here = scope_free_name(k, TEXT(k->sh, "$_at", own));
    if (k->nrenamed < TASK_MAX_VARS) {
        k->renamed[k->nrenamed].own = own;
        k->renamed[k->nrenamed++].here = here;
    }
    return here;
}

/* A variable may be called like a tensor that is declared after it. */
str scope_variable(struct scope *k, size_t var) {
    const struct task *t = k->sh->briefing->inst->task;
    const struct reduce_var *v = reduce_var_of(k, var);
    str name = v ? v->name : k->statement->index[var];
    bool clash = sheet_is_reserved(k->sh, name) || tensor_find(t, name) >= 0;
    for (size_t i = 0; i < t->ndims; i++)
        clash |= str_eq(t->dims[i].name, name);
    return clash ? other_name(k, name) : name;
}
