/* What can be settled when the whole file is read: an order in which everything is defined before
 * it is read, the ranges of lets' indices and of reductions, and which tensors compute places. */
#include "spec/parse.h"

struct sorter {
    struct parser *p;
    const struct statement *of[TASK_MAX_TENSORS]; /* the statement that defines such a tensor */
    enum { UNSEEN, OPEN, DONE } state[TASK_MAX_TENSORS];
    struct statement sorted[TASK_MAX_STATEMENTS];
    size_t n;
};

static bool visit(struct sorter *s, size_t tensor);

static bool visit_reads(struct sorter *s, const struct expr *e) {
    if (e->kind == EXPR_READ && s->of[e->ref]) {
        const struct tensor *t = &s->p->task->tensors[e->ref];
        if (s->state[e->ref] == OPEN)
            return parse_fail(s->p, e->at, e->len, NULL, "the %s '%.*s' is defined by itself",
                              t->role == TENSOR_LET ? "let" : "input", STR_ARG(t->name));
        if (!visit(s, e->ref))
            return false;
    }
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        if (part && !visit_reads(s, part))
            return false;
    }
    return true;
}

/* As deep as there are lets, TASK_MAX_TENSORS at the most. */
static bool visit(struct sorter *s, size_t tensor) {
    if (s->state[tensor] == DONE)
        return true;
    s->state[tensor] = OPEN;
    if (!visit_reads(s, s->of[tensor]->body))
        return false;
    s->state[tensor] = DONE;
    s->sorted[s->n++] = *s->of[tensor];
    return true;
}

/* Lets and defined inputs have one statement each and go before what reads them; outputs are read
 * by nothing and follow in the order of the file. */
static bool sort(struct parser *p, struct statement *list, size_t n) {
    const struct task *t = p->task;
    struct sorter *s = arena_new_of(p->arena, struct sorter);
    s->p = p;
    for (size_t i = 0; i < n; i++)
        if (list != t->statements || t->tensors[list[i].tensor].role == TENSOR_LET)
            s->of[list[i].tensor] = &list[i];
    for (size_t i = 0; i < t->ntensors; i++)
        if (s->of[i] && !visit(s, i))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!s->of[list[i].tensor])
            s->sorted[s->n++] = list[i];
    for (size_t i = 0; i < n; i++)
        list[i] = s->sorted[i];
    return true;
}

/* The extent of the first dimension that variable `v` indexes all by itself, in reading order. */
static struct expr *plain_extent(const struct task *t, const struct expr *e, size_t v) {
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        if (!part)
            continue;
        if (e->kind == EXPR_READ && part->kind == EXPR_INDEX && part->ref == v)
            return t->tensors[e->ref].extent[i];
        struct expr *found = plain_extent(t, part, v);
        if (found)
            return found;
    }
    return NULL;
}

static bool infer_reductions(struct parser *p, const struct expr *e) {
    const struct reduce *r = e->reduce;
    for (size_t i = 0; r && i < r->nvars; i++) {
        struct reduce_var *v = &r->vars[i];
        if (v->inferred)
            v->hi = plain_extent(p->task, e, v->var);
        if (!v->hi)
            return parse_fail(p, v->lo->at, v->lo->len, "state it: sum(k < N)",
                              "the range of '%.*s' does not follow from what it indexes",
                              STR_ARG(v->name));
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!infer_reductions(p, expr_part(e, i)))
            return false;
    return true;
}

static bool infer_extents(struct parser *p, const struct statement *s) {
    struct tensor *t = &p->task->tensors[s->tensor];
    for (size_t i = 0; i < s->nindex && t->role == TENSOR_LET; i++) {
        if (!t->extent[i])
            t->extent[i] = plain_extent(p->task, s->body, i);
        if (!t->extent[i])
            return parse_fail(p, s->at, t->len, "state it: let v[i < N] = …",
                              "the range of '%.*s' does not follow from what it indexes",
                              STR_ARG(s->index[i]));
    }
    return true;
}

static bool infer(struct parser *p, const struct statement *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!infer_reductions(p, list[i].body) || !infer_extents(p, &list[i]))
            return false;
    return true;
}

/* `place`: this expression is part of an index. */
static void mark_places(struct task *t, const struct expr *e, bool place) {
    if (e->kind == EXPR_READ && place)
        t->tensors[e->ref].indexes = true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        mark_places(t, expr_part(e, i), place || e->kind == EXPR_READ);
}

/* Backwards, so that what a let is made of is marked after the let itself. */
static void mark_all(struct task *t, const struct statement *list, size_t n) {
    for (size_t i = n; i-- > 0;)
        mark_places(t, list[i].body, t->tensors[list[i].tensor].indexes);
}

bool task_order(struct parser *p) {
    struct task *t = p->task;
    if (!sort(p, t->definitions, t->ndefinitions) || !sort(p, t->statements, t->nstatements) ||
        !infer(p, t->definitions, t->ndefinitions) || !infer(p, t->statements, t->nstatements))
        return false;
    mark_all(t, t->statements, t->nstatements);
    mark_all(t, t->definitions, t->ndefinitions);
    return true;
}
