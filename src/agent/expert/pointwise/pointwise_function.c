/* The mathematics of an element, once: a device function for each output, which both the vector and
 * the scalar path of the kernel call. It is handed the values that the kernel loads; what is read
 * at other places it reads itself, where the conditions around the read hold. */
#include "agent/expert/pointwise/pointwise.h"

static const char *value_type(const struct pw *p, size_t tensor, enum value_kind k) {
    bool wide = sheet_dtype(p->sh, p->st, tensor) == DTYPE_I64;
    return k == VALUE_REAL ? "float" : k == VALUE_BOOL ? "bool" : wide ? "long long" : "int";
}

/* ---- what it is handed ---- */

/* A tensor whose elements the function reads itself: its pointer has the tensor's name. */
static bool gathers_tensor(const struct pw *p, const struct expr *e, size_t tensor) {
    if (e->kind == EXPR_READ && !pw_local(p, e) && pw_find_read(p, e) >= 0)
        return false;
    if (e->kind == EXPR_READ && e->ref == tensor && !pw_local(p, e))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (gathers_tensor(p, e->args[i], tensor))
            return true;
    return false;
}

static str name_value(struct pw *p, struct pw_output *o, const struct expr *e) {
    struct scope *f = &o->f;
    str own = p->st->inst->task->tensors[e->ref].name;
    bool other = sheet_is_reserved(p->sh, own) || gathers_tensor(p, o->s->body, e->ref);
    for (size_t i = 0; i < p->nreads; i++)
        other |= o->reads[i] && str_eq(o->value[i], own);
    return other ? scope_name(f, sheet_printf(p->sh, "%.*s_here", STR_ARG(own)).p) : own;
}

static void put_local(struct pw *p, struct pw_output *o, const struct statement *s,
                      struct buf *out);

/* Values and coordinates an expression needs, and locals before it. */
static void gather_needs(struct pw *p, struct pw_output *o, const struct expr *e,
                         struct buf *locals) {
    const struct statement *let = e->kind == EXPR_READ ? pw_local(p, e) : NULL;
    int i = e->kind == EXPR_READ && !let ? pw_find_read(p, e) : -1;
    if (let) {
        put_local(p, o, let, locals);
        return;
    }
    if (i >= 0) {
        if (!o->reads[i]) {
            o->value[i] = name_value(p, o, e);
            o->reads[i] = true;
            scope_hold(&o->f, e, o->value[i]);
        }
        return;
    }
    if (e->kind == EXPR_INDEX)
        o->coordinates |= UINT32_C(1) << e->ref;
    for (size_t k = 0; k < e->nargs; k++)
        gather_needs(p, o, e->args[k], locals);
}

static struct expr *own_read(struct pw *p, const struct statement *s) {
    struct arena *a = p->sh->mem;
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){.kind = EXPR_READ, .ref = s->tensor, .nargs = s->nindex};
    e->args = arena_array(a, struct expr *, s->nindex ? s->nindex : 1);
    for (size_t i = 0; i < s->nindex; i++) {
        e->args[i] = arena_new_of(a, struct expr);
        *e->args[i] = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = i};
    }
    return e;
}

static bool is_held(const struct scope *f, const struct expr *e) {
    for (size_t i = 0; i < f->nheld; i++)
        if (expr_same(f->held[i].e, e))
            return true;
    return false;
}

/* A let as a local, rounded to its type where it has one. */
static void put_local(struct pw *p, struct pw_output *o, const struct statement *s,
                      struct buf *out) {
    const struct expr *read = own_read(p, s);
    if (is_held(&o->f, read))
        return;
    gather_needs(p, o, s->body, out);
    str name = scope_name(
        &o->f, sheet_printf(p->sh, "%.*s_", STR_ARG(p->st->inst->task->tensors[s->tensor].name)).p);
    str text = scope_text(&o->f, s->body);
    str packed = scope_packed(&o->f, s->tensor, s->body->value_kind, text);
    text = scope_unpacked(&o->f, s->tensor, packed);
    char kind = dtype_info(sheet_dtype(p->sh, p->st, s->tensor))->kind;
    enum value_kind value = kind == 'f' ? VALUE_REAL : kind == 'b' ? VALUE_BOOL : VALUE_INT;
    buf_printf(out, "const %s %.*s = %.*s;\n", value_type(p, s->tensor, value), STR_ARG(name),
               STR_ARG(text));
    scope_hold(&o->f, read, name);
}

/* ---- its text ---- */

static void put_comma(struct buf *out) {
    if (out->n)
        buf_puts(out, S(", "));
}

static str parameters(struct pw *p, struct pw_output *o) {
    struct buf b;
    buf_init(&b, 64u << 10);
    for (size_t i = 0; i < p->nreads; i++) {
        const struct expr *e = p->reads[i].e;
        if (!o->reads[i])
            continue;
        put_comma(&b);
        buf_printf(&b, "%s %.*s", value_type(p, e->ref, e->value_kind), STR_ARG(o->value[i]));
    }
    for (size_t i = 0; i < p->space->nindex; i++)
        if (o->coordinates >> i & 1) {
            put_comma(&b);
            buf_printf(&b, "%s %.*s", scope_index_type(&o->f), STR_ARG(o->f.var[i]));
        }
    str rest = scope_params(&o->f);
    if (rest.n)
        put_comma(&b);
    buf_puts(&b, rest);
    str s = sheet_keep(p->sh, &b);
    buf_release(&b);
    return s;
}

static bool write_function(struct pw *p, struct pw_output *o) {
    struct sheet *sh = p->sh;
    const struct task *t = p->st->inst->task;
    struct buf locals;
    str name = sheet_printf(sh, "compute_%.*s", STR_ARG(t->tensors[o->s->tensor].name));
    if (!scope_init(&o->f, sh, p->st, name.p))
        return false;
    buf_init(&locals, 256u << 10);
    o->f.statement = o->s;
    for (size_t i = 0; i < o->s->nindex; i++)
        o->f.var[i] = scope_variable(&o->f, i);
    gather_needs(p, o, o->s->body, &locals);
    str value = scope_text(&o->f, o->s->body);
    value = scope_packed(&o->f, o->s->tensor, o->s->body->value_kind, value);
    struct slot slots[] = {
        {"definition", sheet_definition(sh, p->st, o->s)},
        {"type", str_view(dtype_info(sheet_dtype(sh, p->st, o->s->tensor))->cuda)},
        {"function", o->f.name},
        {"parameters", parameters(p, o)},
        {"locals", sheet_keep(sh, &locals)},
        {"value", value},
    };
    buf_release(&locals);
    bool ok = sheet_template(sh, "pointwise/function.cu", slots, sizeof slots / sizeof *slots,
                             &p->functions);
    buf_putc(&p->functions, '\n');
    return ok;
}

bool pw_write_functions(struct pw *p) {
    for (size_t i = 0; i < p->noutputs; i++)
        if (!write_function(p, &p->outputs[i]))
            return false;
    return true;
}
