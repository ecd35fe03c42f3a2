/* Inout tensors that cannot be written where they are read from.
 *
 * A tensor is read as it was before the task. In place is right where one statement writes all of
 * it, reads it at no other element than the one it writes, and no other statement of the step reads
 * it. Otherwise the statements write to a tensor made here, and copies come last. */
#include "agent/expert/sheet/sheet_private.h"
#include <string.h>

static bool reads_own_only(const struct statement *s, const struct expr *e) {
    if (e->kind == EXPR_READ && e->ref == s->tensor)
        return expr_is_own(s, e);
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_own_only(s, expr_part(e, i)))
            return false;
    return true;
}

static bool in_place(const struct task *t, size_t tensor) {
    size_t writers = 0, readers = 0;
    bool own = true;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        writers += s->tensor == tensor;
        readers += expr_reads_tensor(s->body, tensor);
        own &= !expr_reads_tensor(s->body, tensor) ||
               (s->tensor == tensor && reads_own_only(s, s->body));
    }
    return writers == 0 || readers == 0 || (writers == 1 && own);
}

static struct expr *index_of(struct arena *a, size_t var) {
    struct expr *e = arena_new_of(a, struct expr);
    *e = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = var};
    return e;
}

/* to[i, j] = from[i, j] */
static struct statement copy_statement(struct arena *a, const struct tensor *t, size_t to,
                                       size_t from) {
    struct statement s = {.tensor = to, .nindex = t->rank, .nvars = t->rank};
    char kind = dtype_info(t->dtype)->kind;
    s.body = arena_new_of(a, struct expr);
    *s.body = (struct expr){.kind = EXPR_READ, .ref = from, .nargs = t->rank};
    s.body->value_kind = kind == 'f' ? VALUE_REAL : kind == 'b' ? VALUE_BOOL : VALUE_INT;
    s.body->args = arena_array(a, struct expr *, t->rank ? t->rank : 1);
    for (size_t i = 0; i < t->rank; i++) {
        s.index[i] = arena_printf(a, "i%zu", i);
        s.position[i] = (int)i;
        s.body->args[i] = index_of(a, i);
    }
    return s;
}

/* The tensor's statements write to a new one, and a copy follows. */
static bool detach(struct sheet *sh, struct task *t, struct inst *in, size_t tensor) {
    size_t made = t->ntensors + sh->made;
    if (made >= TASK_MAX_TENSORS || t->nstatements == TASK_MAX_STATEMENTS)
        return err_set(sh->err, ERR_INPUT, "task %.*s: too many tensors written in place",
                       STR_ARG(t->name));
    t->tensors[made] = t->tensors[tensor];
    t->tensors[made].role = TENSOR_LET;
    in->tensors[made] = in->tensors[tensor];
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            t->statements[i].tensor = made;
    t->statements[t->nstatements++] = copy_statement(sh->mem, &t->tensors[tensor], tensor, made);
    sh->made++;
    return true;
}

bool step_detach(struct sheet *sh, const struct step *st, struct step *out) {
    const struct task *from = st->inst->task;
    struct task *t = arena_new_of(sh->mem, struct task);
    struct inst *in = arena_new_of(sh->mem, struct inst);
    size_t n = from->ntensors;
    *t = *from;
    *in = (struct inst){.task = t, .dims = st->inst->dims};
    t->tensors = arena_array(sh->mem, struct tensor, TASK_MAX_TENSORS);
    memcpy(t->tensors, from->tensors, n * sizeof *t->tensors);
    t->statements = arena_array(sh->mem, struct statement, TASK_MAX_STATEMENTS);
    memcpy(t->statements, from->statements, t->nstatements * sizeof *t->statements);
    in->tensors = arena_array(sh->mem, struct bound_tensor, TASK_MAX_TENSORS);
    memcpy(in->tensors, st->inst->tensors, n * sizeof *in->tensors);
    *out = (struct step){.inst = in, .family = st->family};
    size_t before = sh->made;
    for (size_t i = 0; i < n; i++)
        if (t->tensors[i].role == TENSOR_INOUT && !in_place(from, i) && !detach(sh, t, in, i))
            return false;
    /* Numbers that other steps' tensors have are nothing here. */
    for (size_t i = n; i < n + before; i++)
        t->tensors[i].role = TENSOR_RAND;
    t->ntensors = n + sh->made;
    return true;
}
