/* One kernel: its parameters, the conversions between memory and values, and expressions in its
 * terms.
 *
 * Integers are int where that is proved for every shape the plan admits, since tensors of a kernel
 * that is not wide have at most 2^30 elements: sums of variables and sizes with small factors, and
 * indices that only grow on the way to a value that is inside its tensor. All other arithmetic on
 * integers is 64 bits wide. */
#include "agent/expert/sheet/sheet.h"
#include "kernel/emit.h"
#include <math.h>

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
    return expr_is_number(v->lo, 0) && !expr_vars(v->hi) ? v->hi : NULL;
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

/* Bits of two numbers come to less than twice the larger; shifts to the left are powers of two. */
static struct magnitude magnitude_call(const struct text *x, const struct expr *e) {
    struct magnitude most = magnitude_max(x, e->args, e->nargs);
    const struct expr *by = e->args[e->nargs - 1];
    switch (function_info(e->function)->result) {
    case RESULT_BITS:
        return (struct magnitude){most.known, 2 * most.sizes, 2 * most.rest};
    case RESULT_SHIFTED:
        if (e->function == FUNCTION_SHR)
            return most;
        most.known &= by->kind == EXPR_NUMBER && by->integer <= 30;
        return magnitude_product(
            most, (struct magnitude){most.known, 0, most.known ? ldexp(1, (int)by->integer) : 0});
    default:
        return most;
    }
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
        return magnitude_call(x, e);
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
        sheet_require_for(x->k->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(plan),
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
static void put_offset(struct scope *k, const struct expr *read, struct buf *out);
static str scope_free_name(struct scope *k, str base);

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

/* What `e` is a variable plus: a number, leaving out multiples of `size`. */
struct neighbour {
    const struct expr *size, *variable;
    int64_t apart;
};
static bool find_neighbour(struct neighbour *n, const struct expr *e, int sign) {
    if (expr_same(e, n->size))
        return true;
    switch (e->kind) {
    case EXPR_NUMBER:
        n->apart += sign * e->integer;
        return e->integral && e->integer >= -1 && e->integer <= 1;
    case EXPR_INDEX:
        if (n->variable || sign < 0)
            return false;
        n->variable = e;
        return true;
    case EXPR_ADD:
    case EXPR_SUB:
        return find_neighbour(n, e->args[0], sign) &&
               find_neighbour(n, e->args[1], e->kind == EXPR_SUB ? -sign : sign);
    default:
        return false;
    }
}

/* (i + 1) % N and (i - 1 + N) % N, the neighbours on a ring, without a division; empty: something
 * else. */
static str ring_neighbour(struct scope *k, const struct expr *e) {
    struct neighbour n = {.size = e->args[1]};
    if (e->kind != EXPR_MOD || !find_neighbour(&n, e->args[0], 1) || !n.variable ||
        (n.apart != 1 && n.apart != -1))
        return S("");
    const struct expr *extent = scope_extent(k, n.variable->ref);
    if (!extent || !expr_same(extent, n.size))
        return S("");
    str at = scope_text(k, n.variable), size = scope_text(k, n.size);
    return n.apart > 0 ? TEXT(k->sh, "($ + 1 == $ ? 0 : $ + 1)", at, size, at)
                       : TEXT(k->sh, "($ == 0 ? $ - 1 : $ - 1)", at, size, at);
}

static str held(void *ctx, const struct expr *e) {
    struct text *x = ctx;
    str ring = e->kind == EXPR_MOD ? ring_neighbour(x->k, e) : S("");
    if (ring.n)
        return ring;
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
    str kept = x->k->elsewhere ? x->k->elsewhere(x->k->elsewhere_ctx, e) : S("");
    if (kept.n) {
        buf_puts(out, kept);
        return;
    }
    buf_init(&b, out->max);
    buf_puts(&b, scope_pointer(x->k, e->ref, false));
    buf_putc(&b, '[');
    put_offset(x->k, e, &b);
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

str scope_text(struct scope *k, const struct expr *e) {
    struct text x = {.k = k};
    struct buf b;
    buf_init(&b, 256u << 10);
    put_text(&x, e, &b);
    str text = sheet_keep(k->sh, &b);
    return sheet_failed(k->sh) ? S("") : text;
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

void scope_put_run(struct scope *k, const struct scope_run *run) {
    size_t i = 0;
    while (i < k->nruns && k->runs[i].var[0] != run->var[0])
        i++;
    if (i == sizeof k->runs / sizeof *k->runs)
        return; /* each variable has its own text as well */
    k->runs[i] = *run;
    k->nruns += i == k->nruns;
}

/* The run whose variables index the dimensions from `d` on, and nothing else does. What is before
 * the first of these dimensions is multiplied by its extent, unless there is nothing. */
static const struct scope_run *run_at(const struct scope *k, const struct expr *read, size_t d,
                                      bool is_first) {
    const struct tensor *t = &k->step->inst->task->tensors[read->ref];
    for (size_t r = 0; r < k->nruns; r++) {
        const struct scope_run *run = &k->runs[r];
        bool fits = d + run->n <= t->rank;
        for (size_t i = 0; i < run->n && fits; i++)
            fits = expr_is_variable(read->args[d + i], run->var[i]) && k->var[run->var[i]].n &&
                   ((i == 0 && is_first) || expr_same(t->extent[d + i], run->extent[i]));
        if (fits)
            return run;
    }
    return NULL;
}

/* By Horner's rule: (i * J + j) * K + k, from the first index that is not 0. */
static void put_offset(struct scope *k, const struct expr *read, struct buf *out) {
    const struct tensor *t = &k->step->inst->task->tensors[read->ref];
    struct expr *const *index = read->args;
    size_t first = 0, terms = 0;
    while (first < t->rank && expr_is_number(index[first], 0))
        first++;
    if (first == t->rank) {
        buf_putc(out, '0');
        return;
    }
    const struct scope_run *runs[TASK_MAX_RANK] = {NULL};
    for (size_t i = first; i < t->rank; i += runs[i] ? runs[i]->n : 1, terms++)
        runs[i] = run_at(k, read, i, i == first);
    for (size_t i = 2; i < terms; i++)
        buf_putc(out, '(');
    for (size_t i = first, term = 0; i < t->rank; i += runs[i] ? runs[i]->n : 1, term++) {
        if (term > 0) {
            str size = scope_int(k, runs[i] ? runs[i]->total : t->extent[i]);
            buf_printf(out, " * %.*s", STR_ARG(size));
        }
        bool zero = expr_is_number(index[i], 0);
        buf_puts(out, term > 0 && !zero ? S(" + ") : S(""));
        if (runs[i])
            buf_puts(out, runs[i]->text);
        else if (!zero)
            put_index(k, index[i], terms == 1, out);
        buf_puts(out, term > 0 && term + 1 < terms ? S(")") : S(""));
    }
}

str scope_offset_text(struct scope *k, const struct expr *read) {
    struct buf b;
    buf_init(&b, 64u << 10);
    put_offset(k, read, &b);
    return sheet_keep(k->sh, &b);
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

/* ---- life ---- */

/* Some tensor of the step, those in `far` aside, has more elements than an int counts. */
static bool is_wide(const struct step *st, uint64_t far) {
    const struct task *t = st->inst->task;
    uint64_t used = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        used |= UINT64_C(1) << t->statements[i].tensor | expr_tensors(t->statements[i].body);
    for (size_t i = 0; i < t->ntensors; i++)
        if (((used & ~far) >> i & 1) && st->inst->tensors[i].count > SCOPE_INT_MAX)
            return true;
    return false;
}

bool scope_init(struct scope *k, struct sheet *sh, const struct step *st, const char *name) {
    *k = (struct scope){.sh = sh, .step = st, .wide = is_wide(st, 0)};
    sh->nlocal = 0;
    k->name = sheet_name(sh, str_view(name));
    return !sheet_failed(sh);
}

void scope_set_far(struct scope *k, uint64_t tensors) {
    k->far = tensors;
    k->wide = is_wide(k->step, tensors);
}

str scope_name(struct scope *k, const char *base) {
    str name = str_view(base);
    for (int i = 2; sheet_has_name(k->sh, name); i++) /* cp_x2 is no more free than cp_x is */
        name = sheet_printf(k->sh, i < 100 ? "%s%d" : "the_%s%d_", base, i);
    if (k->sh->nlocal < SCOPE_LOCALS)
        k->sh->local[k->sh->nlocal++] = name;
    else if (!sheet_failed(k->sh))
        err_set(k->sh->err, ERR_INPUT, "more than %d variables in one kernel", SCOPE_LOCALS);
    return name;
}

/* Where templates compose names, whatever begins or ends like them is reserved: adding to one end
 * alone may never get out of that. */
static str scope_free_name(struct scope *k, str base) {
    str name = base;
    for (int i = 0; sheet_is_reserved(k->sh, name); i++)
        name = i == 0   ? TEXT(k->sh, "$_", base)
               : i == 1 ? TEXT(k->sh, "the_$", base)
               : i == 2 ? TEXT(k->sh, "the_$_", base)
                        : sheet_printf(k->sh, "own_%d", i);
    return scope_name(k, name.p);
}

const char *scope_index_type(const struct scope *k) {
    return k->wide ? "long long" : "int";
}

/* ---- pointers ---- */

/* The tensor's name in a kernel: that of the plan, where CUDA allows it. */
str scope_pointer_name(struct scope *k, size_t tensor) {
    struct sheet *sh = k->sh;
    if (sh->stored >> tensor & 1)
        tensor = sh->output[tensor];
    str name = sheet_kept(sh, k->step, tensor);
    if (sheet_is_workspace(sh, tensor) || !sheet_is_reserved(k->sh, name))
        return name;
    if (sh->workspace[tensor].n == 0)
        sh->workspace[tensor] = sheet_name(sh, name);
    return sh->workspace[tensor];
}

str scope_pointer(struct scope *k, size_t tensor, bool write) {
    enum dtype t = sheet_dtype(k->sh, k->step, tensor);
    k->tensors |= UINT64_C(1) << tensor;
    k->written |= write ? UINT64_C(1) << tensor : 0;
    k->sh->half |= t == DTYPE_F16;
    k->sh->bfloat |= t == DTYPE_BF16;
    str name = scope_pointer_name(k, tensor);
    size_t place = sheet_place(k->sh, tensor);
    if (place == 0)
        return name;
    str size = scope_int_plan(k, "place_size", sheet_place_size(k->sh, k->step, tensor));
    return TEXT(k->sh, "($ + $LL * $)", name, sheet_number(k->sh, (int64_t)place), size);
}

/* ---- integers ---- */

static str add_int(struct scope *k, str name, str plan, bool size) {
    if (k->nints == SCOPE_INTS) {
        if (!sheet_failed(k->sh))
            err_set(k->sh->err, ERR_INPUT, "more than %d sizes in one kernel", SCOPE_INTS);
        return S("");
    }
    k->ints[k->nints].name = name;
    k->ints[k->nints].size = size;
    k->ints[k->nints++].plan = plan;
    return name;
}

static bool find_int(const struct scope *k, str plan, str *name) {
    for (size_t i = 0; i < k->nints; i++)
        if (str_eq(k->ints[i].plan, plan)) {
            *name = k->ints[i].name;
            return true;
        }
    return false;
}

/* CRS for C*R*S; nothing for what is no product of dimensions, or has a long name. */
static str product_name(struct scope *k, const struct expr *e) {
    enum { LONGEST = 12 };
    if (e->kind == EXPR_DIM)
        return k->step->inst->task->dims[e->ref].name;
    if (e->kind != EXPR_MUL)
        return S("");
    str a = product_name(k, e->args[0]), b = product_name(k, e->args[1]);
    return a.n && b.n && a.n + b.n <= LONGEST ? TEXT(k->sh, "$$", a, b) : S("");
}

static str size_name(struct scope *k, const struct expr *e) {
    str name = product_name(k, e);
    return scope_free_name(k, name.n ? arena_str(k->sh->mem, name) : S("size"));
}

str scope_int(struct scope *k, const struct expr *e) {
    int64_t v;
    str name, plan;
    if (!expr_has(e, EXPR_DIM) && expr_eval_dims(e, k->step->inst->dims, &v))
        return sheet_printf(k->sh, v < 0 ? "(%lld)" : "%lld", (long long)v);
    plan = sheet_plan(k->sh, e);
    if (plan.n == 0 || find_int(k, plan, &name))
        return plan.n ? name : S("");
    bool own = e->kind == EXPR_DIM && !sheet_is_reserved(k->sh, plan);
    name = own                   ? plan
           : e->kind == EXPR_DIM ? scope_free_name(k, TEXT(k->sh, "the_$", plan))
                                 : size_name(k, e);
    return add_int(k, name, plan, true);
}

str scope_int_plan(struct scope *k, const char *name, str plan) {
    str known;
    if (find_int(k, plan, &known))
        return known;
    return add_int(k, scope_name(k, name), plan, false);
}

/* ---- parameters ---- */

static void put_comma(struct buf *out) {
    if (out->n)
        buf_puts(out, S(", "));
}

static void put_pointers(struct scope *k, bool written, bool types, struct buf *out) {
    for (size_t i = 0; i < k->step->inst->task->ntensors; i++) {
        if (!(k->tensors >> i & 1) || (k->written >> i & 1) != written)
            continue;
        put_comma(out);
        str name = types ? scope_pointer_name(k, i) : sheet_argument(k->sh, k->step, i);
        if (types)
            buf_printf(out, "%s%s *__restrict__ ", written ? "" : "const ",
                       dtype_info(sheet_dtype(k->sh, k->step, i))->cuda);
        buf_puts(out, name);
    }
}

/* Names with their types, or what the plan calls them. */
static str list_arguments(struct scope *k, bool types) {
    struct buf b;
    buf_init(&b, 64u << 10);
    buf_puts(&b, types ? k->own_param : k->own_arg);
    put_pointers(k, false, types, &b);
    put_pointers(k, true, types, &b);
    for (size_t i = 0; i < k->nints; i++) {
        put_comma(&b);
        if (types)
            buf_printf(&b, "%s ", scope_index_type(k));
        buf_puts(&b, types ? k->ints[i].name : k->ints[i].plan);
    }
    return sheet_keep(k->sh, &b);
}

str scope_params(struct scope *k) {
    return list_arguments(k, true);
}

/* ---- what int indices require ---- */

static bool has_extent(struct scope *k, size_t tensor, str plan) {
    const struct tensor *t = &k->step->inst->task->tensors[tensor];
    for (size_t i = 0; i < t->rank; i++)
        if (str_eq(sheet_plan(k->sh, t->extent[i]), plan))
            return true;
    return false;
}

/* The pointer is an argument, and int indices move along it. */
static bool is_near(const struct scope *k, size_t tensor) {
    return (k->tensors & ~k->far) >> tensor & 1;
}

/* An extent is no larger than the tensor it belongs to. */
static bool is_extent(struct scope *k, str plan) {
    for (size_t i = 0; i < k->step->inst->task->ntensors; i++)
        if (is_near(k, i) && has_extent(k, i, plan))
            return true;
    return false;
}

/* Are the extents of `a` among those of `b`? Then it has no more elements. */
static bool is_part_of(const struct tensor *a, const struct tensor *b) {
    bool used[TASK_MAX_RANK] = {false};
    for (size_t i = 0; i < a->rank; i++) {
        size_t k = 0;
        while (k < b->rank && (used[k] || !expr_same(a->extent[i], b->extent[k])))
            k++;
        if (k == b->rank)
            return false;
        used[k] = true;
    }
    return true;
}

/* Another tensor of the kernel bounds this one's size, or its size is a number. */
static bool is_bounded(const struct scope *k, size_t tensor) {
    const struct tensor *all = k->step->inst->task->tensors, *t = &all[tensor];
    bool number = true;
    for (size_t i = 0; i < t->rank; i++)
        number &= !expr_has(t->extent[i], EXPR_DIM);
    for (size_t i = 0; i < k->step->inst->task->ntensors && !number; i++) {
        if (i == tensor || !is_near(k, i) || !is_part_of(t, &all[i]))
            continue;
        if (i < tensor || !is_part_of(&all[i], t))
            return true;
    }
    return number;
}

/* Indices are int: no tensor of the kernel, and no size it is given, may exceed them. */
static void require_int(struct scope *k) {
    const struct inst *in = k->step->inst;
    for (size_t i = 0; i < in->task->ntensors; i++) {
        if (!is_near(k, i) || is_bounded(k, i))
            continue;
        str count = sheet_plan_count(k->sh, in, i);
        sheet_require_for(k->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(count),
                          (long long)SCOPE_INT_MAX);
    }
    for (size_t i = 0; i < k->nints; i++)
        if (k->ints[i].size && !is_extent(k, k->ints[i].plan))
            sheet_require_for(k->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(k->ints[i].plan),
                              (long long)SCOPE_INT_MAX);
}

str scope_args(struct scope *k) {
    if (!k->wide)
        require_int(k);
    return list_arguments(k, false);
}

void scope_launch(struct scope *k, str grid, str block) {
    str line = TEXT(k->sh, "launch $<<<$, $>>>($)", k->name, grid, block, scope_args(k));
    sheet_step(k->sh, "%.*s", STR_ARG(line));
}

/* ---- elements ---- */

uint32_t scope_variables(const struct scope *k) {
    return (UINT32_C(1) << k->statement->nindex) - 1;
}

str scope_plan_elements(struct scope *k, uint32_t over) {
    str all = S("");
    for (size_t i = 0; i < k->statement->nindex; i++)
        if (over >> i & 1)
            all = sheet_join(k->sh, all, "*", sheet_plan(k->sh, scope_extent(k, i)));
    return all.n ? all : S("1");
}

str scope_coordinates(struct scope *k, str flat, uint32_t over, uint32_t vars) {
    str all = S(""), type = str_view(scope_index_type(k));
    for (size_t i = 0; i < k->statement->nindex; i++) {
        if (!((over & vars) >> i & 1))
            continue;
        str digit = flat;
        for (size_t m = k->statement->nindex; m-- > i + 1;)
            if (over >> m & 1)
                digit = TEXT(k->sh, "$ / $", digit, scope_int(k, scope_extent(k, m)));
        if (over & ((UINT32_C(1) << i) - 1))
            digit = TEXT(k->sh, "$ % $", digit, scope_int(k, scope_extent(k, i)));
        k->var[i] = scope_variable(k, i);
        all = sheet_join(k->sh, all, "\n", TEXT(k->sh, "const $ $ = $;", type, k->var[i], digit));
    }
    return all;
}

/* ---- conversions ---- */

static long long most_integer(enum dtype t) {
    unsigned bits = 8 * (unsigned)dtype_info(t)->bytes - (dtype_info(t)->kind == 'i');
    return (long long)((1ull << bits) - 1);
}
static long long least_integer(enum dtype t) {
    return dtype_info(t)->kind == 'i' ? -most_integer(t) - 1 : 0;
}

/* Conversions of the hardware saturate; bytes have none of their own. */
static str packed_integer(struct scope *k, enum dtype t, enum value_kind kind, str v) {
    bool real = kind == VALUE_REAL;
    if (t == DTYPE_I64)
        return TEXT(k->sh, real ? "__float2ll_rz($)" : "$", v);
    if (t == DTYPE_I32 && real)
        return TEXT(k->sh, "__float2int_rz($)", v);
    if (real)
        return sheet_printf(k->sh, "(%s)min(max(__float2int_rz(%.*s), %lld), %lld)",
                            dtype_info(t)->cuda, STR_ARG(v), least_integer(t), most_integer(t));
    return sheet_printf(k->sh, "(%s)min(max((long long)(%.*s), %lldLL), %lldLL)",
                        dtype_info(t)->cuda, STR_ARG(v), least_integer(t), most_integer(t));
}

str scope_packed(struct scope *k, size_t tensor, enum value_kind kind, str value) {
    enum dtype t = sheet_dtype(k->sh, k->step, tensor);
    char type = dtype_info(t)->kind;
    k->sh->half |= t == DTYPE_F16; /* also of a value that no memory has */
    k->sh->bfloat |= t == DTYPE_BF16;
    if (t == DTYPE_F16)
        return TEXT(k->sh, "__float2half_rn($)", value);
    if (t == DTYPE_BF16)
        return TEXT(k->sh, "__float2bfloat16_rn($)", value);
    return type == 'i' || type == 'u' ? packed_integer(k, t, kind, value) : value;
}

str scope_unpacked(struct scope *k, size_t tensor, str element) {
    switch (sheet_dtype(k->sh, k->step, tensor)) {
    case DTYPE_F64:
        return TEXT(k->sh, "float($)", element);
    case DTYPE_F16:
        return TEXT(k->sh, "__half2float($)", element);
    case DTYPE_BF16:
        return TEXT(k->sh, "__bfloat162float($)", element);
    default:
        return element;
    }
}

str value_type(enum value_kind k) {
    return k == VALUE_REAL ? S("float") : k == VALUE_INT ? S("long long") : S("bool");
}

/* ---- folds ---- */

const char *fold_identity(enum reduction r, bool real) {
    static const struct {
        const char *real, *whole;
    } identities[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = {"0.0f", "0LL"},
        [REDUCTION_PROD] = {"1.0f", "1LL"},
        [REDUCTION_MAX] = {"-INFINITY", "LLONG_MIN"},
        [REDUCTION_MIN] = {"INFINITY", "LLONG_MAX"},
        [REDUCTION_MEAN] = {"0.0f", "0LL"},
        [REDUCTION_ARGMAX] = {"-INFINITY", "LLONG_MIN"},
        [REDUCTION_ARGMIN] = {"INFINITY", "LLONG_MAX"},
    };
    return real ? identities[r].real : identities[r].whole;
}

str fold_combine(struct sheet *sh, enum reduction r, str into, str term) {
    if (r == REDUCTION_MAX || r == REDUCTION_MIN) {
        const char *name = r == REDUCTION_MAX ? "maximum" : "minimum";
        sheet_helper(sh, name);
        return sheet_printf(sh, "cp_%s(%.*s, %.*s)", name, STR_ARG(into), STR_ARG(term));
    }
    BUG_IF(r == REDUCTION_ARGMAX || r == REDUCTION_ARGMIN);
    return TEXT(sh, r == REDUCTION_PROD ? "$ * $" : "$ + $", into, term);
}
