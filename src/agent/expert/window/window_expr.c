/* Expressions that the generator of windows makes itself, and the tests of indices. */
#include "agent/expert/window/window.h"

struct expr *window_number(struct sheet *sh, int64_t v) {
    struct expr *e = arena_new_of(sh->mem, struct expr);
    *e = (struct expr){.kind = EXPR_NUMBER,
                       .value_kind = VALUE_INT,
                       .number = (double)v,
                       .integer = v,
                       .integral = true};
    return e;
}

struct expr *window_variable(struct sheet *sh, size_t v) {
    struct expr *e = arena_new_of(sh->mem, struct expr);
    *e = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = v};
    return e;
}

struct expr *window_binary(struct sheet *sh, enum expr_kind k, struct expr *a, struct expr *b) {
    struct expr *e = arena_new_of(sh->mem, struct expr);
    *e = (struct expr){.kind = k, .value_kind = VALUE_INT, .nargs = 2};
    e->args = arena_array(sh->mem, struct expr *, 2);
    e->args[0] = a;
    e->args[1] = b;
    return e;
}

struct expr *window_read_at(struct sheet *sh, const struct expr *read, struct expr *const *index) {
    struct expr *e = arena_new_of(sh->mem, struct expr);
    *e = *read;
    e->args = arena_array(sh->mem, struct expr *, read->nargs ? read->nargs : 1);
    for (size_t i = 0; i < read->nargs; i++)
        e->args[i] = index[i] ? index[i] : read->args[i];
    return e;
}

str window_inside(struct window *w, const struct window_tap *tap, const struct expr *read,
                  struct expr *const *moved) {
    const struct tensor *x = &w->in->task->tensors[read->ref];
    const struct tensor *y = &w->in->task->tensors[w->fold->tensor];
    const char *type = w->k.wide ? "unsigned long long" : "unsigned";
    str all = S("");
    for (size_t i = 0; i < read->nargs; i++) {
        const struct expr *e = tap->read->args[i];
        bool bare = e->kind == EXPR_INDEX && e->ref < w->fold->nindex &&
                    expr_same(x->extent[i], y->extent[e->ref]);
        if (!moved[i] && (bare || tap->sure))
            continue;
        str at = scope_text(&w->k, read->args[i]), extent = scope_int(&w->k, x->extent[i]);
        bool plain = str_find(at, S(" ")) == at.n;
        all = sheet_printf(
            w->sh, plain ? "%.*s%s(%s)%.*s < (%s)%.*s" : "%.*s%s(%s)(%.*s) < (%s)%.*s",
            STR_ARG(all), all.n ? " && " : "", type, STR_ARG(at), type, STR_ARG(extent));
    }
    return all;
}
