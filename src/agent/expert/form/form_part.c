/* A part of a form as a task of its own. */
#include "agent/expert/form/form.h"
#include <string.h>

struct use {
    bool read, written; /* in the part */
    bool outside;       /* read elsewhere */
};

static void note_reads(const struct expr *e, struct use *uses, bool inside) {
    if (e->kind == EXPR_READ) {
        uses[e->ref].read |= inside;
        uses[e->ref].outside |= !inside;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        note_reads(expr_part(e, i), uses, inside);
}

/* What has no part in it is out of sight: no kernel is passed it. */
static enum tensor_role role_in_part(const struct tensor *x, const struct use *u) {
    if (!u->read && !u->written)
        return TENSOR_RAND;
    if (x->role == TENSOR_LET)
        return !u->written ? TENSOR_IN : u->outside ? TENSOR_OUT : TENSOR_LET;
    if (x->role == TENSOR_INOUT)
        return u->written ? TENSOR_INOUT : TENSOR_IN;
    return x->role;
}

bool form_defined_by(const struct task *t, const bool *set, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor && !set[i])
            return false;
    return true;
}

struct inst *form_part(const struct form *f, const bool *take, struct arena *a) {
    struct use uses[TASK_MAX_TENSORS] = {{0}};
    struct task *t = arena_new_of(a, struct task);
    *t = *f->task;
    t->statements = arena_array(a, struct statement, f->task->nstatements);
    t->nstatements = t->ndefinitions = 0;
    for (size_t i = 0; i < f->task->nstatements; i++) {
        const struct statement *s = &f->task->statements[i];
        note_reads(s->body, uses, take[i]);
        if (!take[i])
            continue;
        uses[s->tensor].written = true;
        t->statements[t->nstatements++] = *s;
    }
    t->tensors = arena_array(a, struct tensor, t->ntensors);
    memcpy(t->tensors, f->task->tensors, t->ntensors * sizeof *t->tensors);
    for (size_t i = 0; i < t->ntensors; i++)
        t->tensors[i].role = role_in_part(&f->task->tensors[i], &uses[i]);
    struct inst *in = arena_new_of(a, struct inst);
    *in = *f->inst;
    in->task = t;
    return in;
}
