/* Expanded expressions as text, and the conversions at both ends of them. */
#include "agent/expert/write.h"
#include "base/asset.h"
#include "kernel/emit.h"

static enum dtype read_dtype(const struct writer *w, const struct expr *e) {
    return w->p.task->tensors[e->ref].dtype;
}

/* ---- pieces of text ---- */

const char *write_unpack(enum dtype t) {
    return t == DTYPE_F16 ? "__half2float(" : t == DTYPE_BF16 ? "__bfloat162float(" : "";
}
const char *write_unpack_end(enum dtype t) {
    return t == DTYPE_F16 || t == DTYPE_BF16 ? ")" : "";
}

static bool is_integer(enum dtype t) {
    return dtype_info(t)->kind == 'i' || dtype_info(t)->kind == 'u';
}

static long long most_integer(enum dtype t) {
    unsigned bits = 8 * (unsigned)dtype_info(t)->bytes - (dtype_info(t)->kind == 'i');
    return (long long)((1ull << bits) - 1);
}
static long long least_integer(enum dtype t) {
    return dtype_info(t)->kind == 'i' ? -most_integer(t) - 1 : 0;
}

void write_packed(enum dtype t, enum value_kind kind, str value, struct buf *out) {
    if (t == DTYPE_F16)
        buf_printf(out, "__float2half_rn(%.*s)", STR_ARG(value));
    else if (t == DTYPE_BF16)
        buf_printf(out, "__float2bfloat16_rn(%.*s)", STR_ARG(value));
    else if (t == DTYPE_I64)
        buf_printf(out, kind == VALUE_INT ? "%.*s" : "(long long)(%.*s)", STR_ARG(value));
    else if (is_integer(t))
        buf_printf(out, "(%s)min(max((long long)(%.*s), %lldLL), %lldLL)", dtype_info(t)->cuda,
                   STR_ARG(value), least_integer(t), most_integer(t));
    else
        buf_puts(out, value);
}

bool write_template(struct writer *w, const char *name, const struct slot *slots, size_t n,
                    struct buf *out) {
    str text;
    return asset_get(w->assets, name, w->p.mem, &text, w->p.err) &&
           template_render(str_view(name), text, slots, n, out, w->p.err);
}
str write_keep(struct writer *w, struct buf *b) {
    str s = buf_str(b);
    while (s.n && s.p[s.n - 1] == '\n')
        s.n--;
    s = arena_str(w->p.mem, s);
    buf_clear(b);
    return s;
}

str write_number(struct writer *w, int64_t v) {
    return arena_printf(w->p.mem, "%lld", (long long)v);
}

/* ---- expressions ---- */

static void put_coordinate(void *ctx, size_t variable, struct buf *out) {
    struct place *at = ctx;
    if (at->o)
        at->o->coordinates[variable] = true;
    else if (!at->g->wide)
        buf_puts(out, S("(long long)"));
    buf_puts(out, at->g->coordinate[variable]);
}

bool write_integer(struct place *at, const struct expr *e, struct buf *out) {
    str name;
    if (!pw_integer(&at->w->p, at->g, e, &name))
        return false;
    for (size_t i = 0; at->o && i < at->g->nparams; i++)
        at->o->params[i] |= str_eq(at->g->params[i].name, name);
    buf_puts(out, name);
    return true;
}

static void put_dim(void *ctx, size_t dimension, struct buf *out) {
    struct place *at = ctx;
    struct expr e = {.kind = EXPR_DIM, .value_kind = VALUE_INT, .ref = dimension};
    if (!at->o && !at->g->wide)
        buf_puts(out, S("(long long)"));
    at->failed |= !write_integer(at, &e, out);
}

/* One index of a read. A bare variable needs no widening: it stays below the tensor's count. */
static bool put_index(struct place *at, const struct expr *e, struct buf *out) {
    if (e->kind != EXPR_INDEX)
        return write_expr(at, e, out);
    if (at->o)
        at->o->coordinates[e->ref] = true;
    buf_puts(out, at->g->coordinate[e->ref]);
    return true;
}

static bool is_zero(const struct expr *e) {
    return e->kind == EXPR_NUMBER && e->integer == 0;
}

/* Does the text of an index need parentheses beside * and +? */
static bool is_compound(const struct expr *e) {
    return e->nargs > 0 && e->kind != EXPR_CALL && e->kind != EXPR_FLOORDIV && e->kind != EXPR_MOD;
}

/* One term of an offset. */
static bool put_term(struct place *at, const struct expr *e, bool alone, struct buf *out) {
    bool parentheses = !alone && is_compound(e);
    buf_puts(out, parentheses ? S("(") : S(""));
    bool ok = put_index(at, e, out);
    buf_puts(out, parentheses ? S(")") : S(""));
    return ok;
}

/* The element's offset in its tensor, by Horner's rule: (i * J + j) * K + k. */
bool write_offset(struct place *at, const struct expr *e, struct buf *out) {
    const struct tensor *t = &at->w->p.task->tensors[e->ref];
    size_t first = 0;
    while (first < t->rank && is_zero(e->args[first]))
        first++;
    if (first == t->rank) {
        buf_putc(out, '0');
        return true;
    }
    for (size_t i = first + 2; i < t->rank; i++)
        buf_putc(out, '(');
    if (!put_term(at, e->args[first], first + 1 == t->rank, out))
        return false;
    for (size_t i = first + 1; i < t->rank; i++) {
        buf_puts(out, S(" * "));
        if (!write_integer(at, t->extent[i], out))
            return false;
        buf_puts(out, S(" + "));
        if (!put_term(at, e->args[i], false, out))
            return false;
        buf_puts(out, i + 1 < t->rank ? S(")") : S(""));
    }
    return true;
}

/* Integers are widened, since all arithmetic on them is 64 bits wide. */
static bool put_gather(struct place *at, const struct expr *e, struct buf *out) {
    enum dtype t = read_dtype(at->w, e);
    bool widen = is_integer(t) && t != DTYPE_I64;
    at->o->gathers[e->ref] = true;
    buf_printf(out, "%s%s%.*s[", widen ? "((long long)" : "", write_unpack(t),
               STR_ARG(at->w->p.gather_name[e->ref]));
    if (!write_offset(at, e, out))
        return false;
    buf_printf(out, "]%s%s", write_unpack_end(t), widen ? ")" : "");
    return true;
}

/* A let's value, rounded to its type where it has one that rounds. */
bool write_let(struct place *at, enum dtype t, const struct expr *body, struct buf *out) {
    struct buf text;
    buf_init(&text, EXPERT_SOURCE_MAX);
    bool ok = write_expr(at, body, &text);
    buf_printf(out, "%s", write_unpack(t));
    write_packed(t, body->value_kind, buf_str(&text), out);
    buf_printf(out, "%s", write_unpack_end(t));
    buf_release(&text);
    return ok;
}

static void put_read(void *ctx, const struct expr *e, struct buf *out) {
    struct place *at = ctx;
    const struct tensor *t = &at->w->p.task->tensors[e->ref];
    if (t->role == TENSOR_LET && e->nargs == 0) {
        buf_puts(out, at->w->p.tensor_name[e->ref]);
    } else if (t->role == TENSOR_LET) {
        bool same = e->args[0]->value_kind == e->value_kind, rounds = *write_unpack(t->dtype);
        const char *cast = e->value_kind == VALUE_INT ? "(long long)" : same ? "" : "float";
        if (!rounds)
            buf_printf(out, "%s(", cast);
        at->failed |= !write_let(at, t->dtype, e->args[0], out);
        buf_puts(out, rounds ? S("") : S(")"));
    } else {
        int i = pw_find_read(at->g, e);
        if (i < 0) {
            at->failed |= !put_gather(at, e, out);
            return;
        }
        at->o->reads[i] = true;
        buf_puts(out, at->g->reads[i].name);
    }
}

bool write_expr(struct place *at, const struct expr *e, struct buf *out) {
    struct emit_names names = {at, put_read, put_coordinate, put_dim};
    bool ok = emit_expr(at->w->p.task, e, &names, out, at->w->p.err) && !at->failed;
    if (out->failed)
        return err_set(at->w->p.err, ERR_INPUT, "task %.*s: too large to inline",
                       STR_ARG(at->w->p.task->name));
    return ok;
}
