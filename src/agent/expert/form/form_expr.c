/* Expressions of a form: comparison, and copies with something replaced. Trees are never changed.
 */
#include "agent/expert/form/form_make.h"
#include "spec/scalar.h"
#include <math.h>

bool form_is_fold(const struct statement *s) {
    return s->body->kind == EXPR_REDUCE && !expr_has(s->body->args[0], EXPR_REDUCE);
}
bool form_is_map(const struct statement *s) {
    return !expr_has(s->body, EXPR_REDUCE);
}

uint32_t expr_uses(const struct expr *e) {
    return expr_vars(e);
}

bool expr_reads_tensor(const struct expr *e, size_t tensor) {
    if (e->kind == EXPR_READ && e->ref == tensor)
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_reads_tensor(expr_part(e, i), tensor))
            return true;
    return false;
}

bool expr_is_own(const struct statement *s, const struct expr *read) {
    if (read->kind != EXPR_READ || read->nargs != s->nindex)
        return false;
    for (size_t i = 0; i < read->nargs; i++)
        if (read->args[i]->kind != EXPR_INDEX || read->args[i]->ref != i)
            return false;
    return true;
}

uint64_t expr_tensors(const struct expr *e) {
    uint64_t tensors = e->kind == EXPR_READ ? UINT64_C(1) << e->ref : 0;
    for (size_t i = 0; i < expr_nparts(e); i++)
        tensors |= expr_tensors(expr_part(e, i));
    return tensors;
}

struct expr *expr_own(const struct task *t, const struct statement *s, struct arena *a) {
    struct expr *read = arena_new_of(a, struct expr);
    size_t rank = t->tensors[s->tensor].rank;
    *read = (struct expr){
        .kind = EXPR_READ, .value_kind = s->body->value_kind, .ref = s->tensor, .nargs = rank};
    read->args = arena_array(a, struct expr *, rank ? rank : 1);
    for (size_t i = 0; i < rank; i++)
        read->args[i] =
            s->position[i] < 0 ? s->constant[i] : expr_variable(a, (size_t)s->position[i]);
    return read;
}

size_t expr_size(const struct expr *e) {
    size_t n = 1;
    for (size_t i = 0; i < expr_nparts(e); i++)
        n += expr_size(expr_part(e, i));
    return n;
}

/* ---- new ones ---- */

struct expr *expr_number(struct arena *a, int64_t v) {
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){.kind = EXPR_NUMBER,
                       .value_kind = VALUE_INT,
                       .number = (double)v,
                       .integer = v,
                       .integral = true};
    return e;
}

struct expr *expr_pair(struct arena *a, enum expr_kind kind, const struct expr *x,
                       const struct expr *y) {
    struct expr *e = arena_new_of(a, struct expr);
    bool compares = kind >= EXPR_EQ && kind <= EXPR_OR;
    *e = (struct expr){.kind = kind, .value_kind = compares ? VALUE_BOOL : VALUE_INT, .nargs = 2};
    e->args = arena_array(a, struct expr *, 2);
    e->args[0] = (struct expr *)x;
    e->args[1] = (struct expr *)y;
    return e;
}

struct expr *expr_times(struct arena *a, struct expr *x, struct expr *y) {
    if (expr_is_number(x, 1))
        return y;
    return expr_is_number(y, 1) ? x : expr_pair(a, EXPR_MUL, x, y);
}

/* ---- copies ---- */

struct expr *expr_variable(struct arena *a, size_t var) {
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = var};
    return e;
}

static struct reduce *copy_reduce(struct copier *c, const struct reduce *r) {
    struct reduce *to = arena_new_of(c->a, struct reduce);
    *to = *r;
    to->vars = arena_array(c->a, struct reduce_var, r->nvars);
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        to->vars[i] = *v;
        to->vars[i].lo = copier_copy(c, v->lo);
        to->vars[i].hi = copier_copy(c, v->hi);
        if (c->renumber) {
            to->vars[i].var = c->next++;
            c->map[v->var] = expr_variable(c->a, to->vars[i].var);
        }
    }
    to->guard = r->guard ? copier_copy(c, r->guard) : NULL;
    return to;
}

struct expr *copier_copy(struct copier *c, const struct expr *e) {
    for (size_t i = 0; i < c->nswaps; i++)
        if (c->swaps[i].from == e)
            return c->swaps[i].to;
    if (e->kind == EXPR_INDEX && c->map[e->ref])
        return c->map[e->ref];
    struct expr *to = arena_new_of(c->a, struct expr);
    *to = *e;
    if (e->kind == EXPR_REDUCE) /* its variables before the body that uses them */
        to->reduce = copy_reduce(c, e->reduce);
    to->args = arena_array(c->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = copier_copy(c, e->args[i]);
    return to;
}

struct expr *expr_replace(const struct expr *e, struct expr *const *map, struct arena *a) {
    struct copier c = {.a = a};
    for (size_t i = 0; i < TASK_MAX_VARS; i++)
        c.map[i] = map[i];
    return copier_copy(&c, e);
}

/* ---- left sides ---- */

struct expr *statement_extent(const struct task *t, const struct statement *s, size_t var) {
    const struct tensor *x = &t->tensors[s->tensor];
    for (size_t i = 0; i < x->rank; i++)
        if (s->position[i] == (int)var)
            return x->extent[i];
    return NULL;
}

bool statement_is_whole(const struct task *t, const struct statement *s) {
    for (size_t i = 0; i < t->tensors[s->tensor].rank; i++)
        if (s->position[i] != (int)i)
            return false;
    return true;
}

bool statement_same_space(const struct task *t, const struct statement *a,
                          const struct statement *b) {
    bool same = a->nindex == b->nindex;
    for (size_t i = 0; same && i < a->nindex; i++)
        same = expr_same(statement_extent(t, a, i), statement_extent(t, b, i));
    return same;
}
