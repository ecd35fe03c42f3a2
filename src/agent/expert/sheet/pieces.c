/* Slots, vectors, maps on a fold's results, and coordinates. */
#include "agent/expert/sheet/pieces.h"
#include "base/asset.h"
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (256u << 10)

/* ---- slots ---- */

static void put_texts(const struct slots *s, struct buf *out) {
    for (size_t i = 0; i < s->n; i++) {
        buf_puts(out, s->at[i].text);
        buf_putc(out, '\n');
        for (size_t k = 0; k < s->at[i].nrows; k++)
            put_texts(s->at[i].rows[k], out);
    }
}

str slots_texts(struct sheet *sh, const struct slots *s) {
    struct buf b;
    buf_init(&b, 4 * TEXT_MAX);
    put_texts(s, &b);
    return sheet_keep(sh, &b);
}

/* ---- vectors ---- */

int64_t pieces_width(int64_t want, const int64_t *extents, size_t n) {
    for (size_t i = 0; i < n; i++)
        while (extents[i] % want != 0)
            want /= 2;
    return want;
}

/* ---- maps ---- */

bool maps_plain_left(const struct task *t, const struct statement *s) {
    const struct tensor *x = &t->tensors[s->tensor];
    if (x->role == TENSOR_INOUT || x->rank == 0)
        return false;
    return statement_is_whole(t, s);
}

struct claim {
    const struct task *t;
    const bool *done, *take;
    const struct statement *s;
    bool follows; /* reads something taken */
};

/* It has statements, and all of them are in the set. */
static bool is_defined(const struct task *t, const bool *set, size_t tensor) {
    return form_definitions(t, tensor) && form_defined_by(t, set, tensor);
}

static bool may_read(struct claim *c, const struct expr *e, bool padded) {
    if (e->kind == EXPR_READ && is_defined(c->t, c->take, e->ref)) {
        c->follows = true;
        return expr_is_own(c->s, e) && !padded;
    }
    if (e->kind == EXPR_READ && c->t->tensors[e->ref].role == TENSOR_LET &&
        !is_defined(c->t, c->done, e->ref))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!may_read(c, e->args[i], e->kind == EXPR_PAD && i == 0))
            return false;
    return true;
}

void maps_claim(const struct form *f, const bool *done, size_t fold, bool *take) {
    const struct task *t = f->task;
    size_t taken = 1;
    take[fold] = true;
    for (size_t i = fold + 1; i < t->nstatements && taken < MAPS_MOST; i++) {
        const struct statement *s = &t->statements[i];
        struct claim c = {t, done, take, s, false};
        if (done[i] || !form_is_map(s) || !maps_plain_left(t, s) ||
            form_definitions(t, s->tensor) != 1 ||
            !extents_same(&t->tensors[t->statements[fold].tensor], &t->tensors[s->tensor]) ||
            !may_read(&c, s->body, false) || !c.follows)
            continue;
        take[i] = true;
        taken++;
    }
}

static void hold_own(struct scope *k, const struct statement *s, str text) {
    scope_hold(k, expr_own(k->step->inst->task, s, k->sh->mem), text);
}

/* What later statements read is the value as its type holds it. */
static str keep_value(struct scope *k, const struct statement *s, str packed) {
    const struct tensor *x = &k->step->inst->task->tensors[s->tensor];
    str name = sheet_name(k->sh, TEXT(k->sh, "$_value", x->name));
    str value = scope_unpacked(k, s->tensor, packed);
    hold_own(k, s, name);
    return TEXT(k->sh, "const $ $ = $;", value_type(s->body->value_kind), name, value);
}

bool maps_write(struct scope *k, const struct statement *fold, str value, struct slots *slots,
                struct maps *out) {
    const struct task *t = k->step->inst->task;
    str lines = S("");
    out->n = 0;
    for (size_t i = 0; i < t->nstatements && !sheet_failed(k->sh); i++) {
        const struct statement *s = &t->statements[i];
        const struct tensor *x = &t->tensors[s->tensor];
        k->statement = s;
        str v = s == fold ? value : scope_text(k, s->body);
        str packed = scope_packed(k, s->tensor, s->body->value_kind, v);
        if (form_is_read(t, i + 1, s->tensor)) {
            if (s == fold && str_eq(packed, v))
                hold_own(k, s, v);
            else
                lines = sheet_join(k->sh, lines, "\n", keep_value(k, s, packed));
        }
        if (x->role != TENSOR_LET) {
            out->out[out->n].tensor = s->tensor;
            out->out[out->n++].packed = packed;
        }
    }
    k->statement = fold;
    slots_put(slots, "maps", lines);
    return !sheet_failed(k->sh);
}

/* ---- folds ---- */

const struct statement *fold_find(const struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (form_is_fold(&t->statements[i]))
            return &t->statements[i];
    return NULL;
}

static bool is_real(const struct statement *fold) {
    return fold->body->value_kind == VALUE_REAL;
}

const char *fold_type(const struct statement *fold) {
    return is_real(fold) ? "float" : "long long";
}

str fold_start(const struct statement *fold) {
    return str_view(fold_identity(fold->body->reduce->op, is_real(fold)));
}

str fold_step(struct sheet *sh, const struct statement *fold, str into, str term) {
    enum reduction op = fold->body->reduce->op;
    bool least = op == REDUCTION_MIN;
    if (is_real(fold) || (op != REDUCTION_MAX && !least))
        return fold_combine(sh, op, into, term);
    return sheet_printf(sh, "%s(%.*s, (long long)(%.*s))", least ? "min" : "max", STR_ARG(into),
                        STR_ARG(term));
}

/* ---- places ---- */

bool place_is_sure(const struct inst *in, const struct statement *s, const struct expr *read) {
    const struct tensor *x = &in->task->tensors[read->ref];
    const struct tensor *y = &in->task->tensors[s->tensor];
    for (size_t i = 0; i < read->nargs; i++) {
        const struct expr *a = read->args[i];
        bool zero = expr_is_number(a, 0);
        bool bare = a->kind == EXPR_INDEX && a->ref < s->nindex &&
                    expr_same(x->extent[i], y->extent[a->ref]);
        if (!zero && !bare)
            return false;
    }
    return true;
}

str place_coordinates(struct scope *k, const struct statement *s, uint32_t vars, str flat,
                      bool small, str used) {
    const struct tensor *y = &k->step->inst->task->tensors[s->tensor];
    str all = S(""), type = str_view(scope_index_type(k));
    str below = S(""); /* " / J / K" */
    for (size_t v = s->nindex; v-- > 0;) {
        if (!(vars >> v & 1))
            continue;
        bool first = !(vars & ((UINT32_C(1) << v) - 1));
        str extent = first ? S("") : scope_int(k, y->extent[v]);
        if (!first && small && k->wide && y->extent[v]->kind != EXPR_NUMBER)
            extent = TEXT(k->sh, "(int)$", extent);
        if (text_has_word(used, k->var[v]))
            all = sheet_join(k->sh, all, "\n",
                             TEXT(k->sh, first ? "const $ $ = $$$;" : "const $ $ = $$ % $;", type,
                                  k->var[v], flat, below, extent));
        below = TEXT(k->sh, "$ / $", below, extent);
    }
    return all;
}

str place_count(struct sheet *sh, const struct inst *in, const struct statement *s, uint32_t vars) {
    const struct tensor *y = &in->task->tensors[s->tensor];
    str all = S("");
    for (size_t v = 0; v < s->nindex; v++) {
        if (!(vars >> v & 1))
            continue;
        all = sheet_join(sh, all, "*", sheet_plan(sh, y->extent[v]));
    }
    return all.n ? all : S("1");
}
