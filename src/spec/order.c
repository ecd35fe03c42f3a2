/* Puts statements into an order in which every let is defined before it is read, and gives the
 * index variables of lets their ranges. */
#include "spec/parse.h"

struct sorter {
    struct parser *p;
    const struct statement *of[TASK_MAX_TENSORS]; /* the statement that defines a tensor */
    enum { UNSEEN, OPEN, DONE } state[TASK_MAX_TENSORS];
    struct statement sorted[TASK_MAX_TENSORS];
    size_t n;
};

static bool visit(struct sorter *s, size_t tensor);

static bool visit_reads(struct sorter *s, const struct expr *e) {
    if (e->kind == EXPR_READ && s->p->task->tensors[e->ref].role == TENSOR_LET) {
        str name = s->p->task->tensors[e->ref].name;
        if (s->state[e->ref] == OPEN)
            return parse_fail(s->p, e->at, e->len, NULL, "the let '%.*s' is defined by itself",
                              STR_ARG(name));
        if (!visit(s, e->ref))
            return false;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (!visit_reads(s, e->args[i]))
            return false;
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

/* The extent of the first dimension that variable `v` indexes all by itself, in reading order. */
static struct expr *plain_extent(const struct task *t, const struct expr *e, size_t v) {
    for (size_t i = 0; i < e->nargs; i++) {
        const struct expr *arg = e->args[i];
        if (e->kind == EXPR_READ && arg->kind == EXPR_INDEX && arg->ref == v)
            return t->tensors[e->ref].extent[i];
        struct expr *found = plain_extent(t, arg, v);
        if (found)
            return found;
    }
    return NULL;
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

bool task_order(struct parser *p) {
    struct task *t = p->task;
    struct sorter *s = arena_new_of(p->arena, struct sorter);
    s->p = p;
    for (size_t i = 0; i < t->nstatements; i++)
        s->of[t->statements[i].tensor] = &t->statements[i];
    for (size_t i = 0; i < t->ntensors; i++)
        if (s->of[i] && !visit(s, i))
            return false;
    for (size_t i = 0; i < s->n; i++)
        t->statements[i] = s->sorted[i];
    for (size_t i = 0; i < t->nstatements; i++)
        if (!infer_extents(p, &t->statements[i]))
            return false;
    return true;
}
