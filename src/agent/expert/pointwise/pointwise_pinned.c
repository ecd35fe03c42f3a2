/* A tensor written in place of which only one place along an index changes:
 * c[b,s,d] = if(s == t[b], new[b,d], c[b,s,d]). One thread for each of the other indices; the rest
 * of the tensor is neither read nor written. */
#include "agent/expert/pointwise/pointwise.h"

static bool is_pin(const struct expr *v, const struct expr *at, struct pin *out) {
    if (v->kind != EXPR_INDEX || at->value_kind != VALUE_INT || (expr_uses(at) >> v->ref & 1))
        return false;
    *out = (struct pin){.var = v->ref, .at = at};
    return true;
}

bool pw_find_pin(const struct pw *p, struct pin *out) {
    const struct task *t = p->st->inst->task;
    const struct expr *e = p->space->body, *is;
    if (t->nstatements != 1 || t->tensors[p->space->tensor].role != TENSOR_INOUT ||
        !p->outputs[0].flat || e->kind != EXPR_IF || e->args[0]->kind != EXPR_EQ ||
        e->args[2]->kind != EXPR_READ || e->args[2]->ref != p->space->tensor ||
        !expr_is_own(p->space, e->args[2]) || expr_reads_tensor(e->args[1], p->space->tensor))
        return false;
    is = e->args[0];
    if (!is_pin(is->args[0], is->args[1], out) && !is_pin(is->args[1], is->args[0], out))
        return false;
    out->value = e->args[1];
    return !expr_reads_tensor(out->at, p->space->tensor);
}

/* Coordinates and number of elements of the space without the pinned variable. */
static str coordinates(struct pw *p, const struct pin *pin, str *count) {
    struct scope *k = &p->k;
    struct buf b;
    buf_init(&b, 64u << 10);
    *count = S("");
    for (size_t i = 0; i < p->space->nindex; i++) {
        k->var[i] = scope_variable(k, i);
        if (i == pin->var)
            continue;
        buf_printf(&b, "const %s %.*s = %.*s", scope_index_type(k), STR_ARG(k->var[i]),
                   STR_ARG(p->e));
        for (size_t m = p->space->nindex; m-- > i + 1;)
            if (m != pin->var)
                buf_printf(&b, " / %.*s", STR_ARG(scope_int(k, scope_extent(k, m))));
        if (count->n)
            buf_printf(&b, " %% %.*s", STR_ARG(scope_int(k, scope_extent(k, i))));
        buf_puts(&b, S(";\n"));
        str size = sheet_plan(p->sh, scope_extent(k, i));
        *count =
            sheet_printf(p->sh, "%.*s%s%.*s", STR_ARG(*count), count->n ? "*" : "", STR_ARG(size));
    }
    *count = count->n ? *count : S("1");
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

static str store_text(struct pw *p, const struct pin *pin) {
    struct scope *k = &p->k;
    struct buf b;
    size_t tensor = p->space->tensor;
    buf_init(&b, 64u << 10);
    str name = scope_pointer(k, tensor, true), value = scope_text(k, pin->value);
    buf_printf(&b, "%.*s[", STR_ARG(name));
    scope_place(k, &b);
    value = scope_packed(k, tensor, pin->value->value_kind, value);
    buf_printf(&b, "] = %.*s;", STR_ARG(value));
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

bool pw_write_pinned(struct pw *p, const struct pin *pin) {
    struct sheet *sh = p->sh;
    str count, places = coordinates(p, pin, &count), value = scope_text(&p->k, pin->at);
    str size = scope_int(&p->k, scope_extent(&p->k, pin->var)), name = p->k.var[pin->var];
    str inside =
        sheet_printf(sh, "%.*s >= 0 && %.*s < %.*s", STR_ARG(name), STR_ARG(name), STR_ARG(size));
    str store = store_text(p, pin);
    p->total = scope_int_plan(&p->k, "total", count);
    struct slot slots[] = {{"definition", sheet_definition(sh, p->st, p->space)},
                           {"block", sheet_printf(sh, "%lld", (long long)p->block)},
                           {"kernel", p->k.name},
                           {"parameters", scope_params(&p->k)},
                           {"index", str_view(scope_index_type(&p->k))},
                           {"e", p->e},
                           {"total", p->total},
                           {"coordinates", places},
                           {"type", S("long long")},
                           {"pin", name},
                           {"value", value},
                           {"inside", inside},
                           {"store", store}};
    str args = scope_args(&p->k);
    sheet_step(sh, "launch %.*s<<<ceil_div(%.*s, %lld), %lld>>>(%.*s)", STR_ARG(p->k.name),
               STR_ARG(count), (long long)p->block, (long long)p->block, STR_ARG(args));
    sheet_note(sh,
               "pointwise: %.*s%s: %lld threads a block, one element each, at one place along "
               "%.*s.",
               STR_ARG(p->k.name), p->cute ? ", in CUDA (nothing to tile)" : "",
               (long long)p->block, STR_ARG(name));
    const struct used all[] = {
        {"block", p->block}, {"vector-width", 1}, {"items", 1}, {"persistent", 0}};
    sheet_used(sh, all, sizeof all / sizeof *all);
    bool ok = sheet_template(sh, "pointwise/pinned.cu", slots, sizeof slots / sizeof *slots,
                             &sh->kernels);
    buf_putc(&sh->kernels, '\n');
    return ok;
}
