/* Who writes what. */
#include "agent/expert/form/partition.h"
#include "spec/pattern.h"
#include <string.h>

struct cut {
    const struct briefing *b;
    const struct family *const *families;
    size_t nfamilies;
    struct form form;
    bool done[TASK_MAX_STATEMENTS];
    struct partition *out;
};

/* Everything the expression reads is there, or is made in the same step. */
static bool reads_ready(const struct cut *c, const bool *set, const struct expr *e) {
    if (e->kind == EXPR_READ && c->form.task->tensors[e->ref].role == TENSOR_LET &&
        !form_defined_by(c->form.task, set, e->ref))
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_ready(c, set, expr_part(e, i)))
            return false;
    return true;
}

/* Of a recurrence all statements or none, and only for a family that makes steps one after the
 * other. A family that makes all steps at once, as a scan can where a step is affine in its state,
 * says so (`recurs`) and is asked before those that come later in families.def. */
static bool keeps_recurrences(const struct cut *c, const struct family *f, const bool *take) {
    const struct task *t = c->form.task;
    for (size_t i = 0; i < t->nstatements; i++)
        for (size_t k = 0; k < t->nstatements && t->statements[i].recurs.number; k++)
            if (t->statements[i].recurs.number == t->statements[k].recurs.number &&
                (take[i] != take[k] || (take[i] && !f->recurs)))
                return false;
    return true;
}

static bool is_legal(const struct cut *c, const struct family *f, const bool *done,
                     const bool *take, size_t first) {
    const struct task *t = c->form.task;
    bool set[TASK_MAX_STATEMENTS];
    for (size_t i = 0; i < t->nstatements; i++)
        set[i] = done[i] || take[i];
    if (!take[first] || !keeps_recurrences(c, f, take))
        return false;
    for (size_t i = 0; i < t->nstatements; i++)
        if (take[i] && (done[i] || !reads_ready(c, set, t->statements[i].body)))
            return false;
    return true;
}

/* A tensor that is read as it was before, by a step after the one that writes it, or by a statement
 * of another step that others of this step write: only one step for all of it keeps that right. */
static bool is_torn(const struct cut *c, const bool *take) {
    const struct task *t = c->form.task;
    for (size_t i = 0; i < t->nstatements; i++) {
        size_t tensor = t->statements[i].tensor;
        if (!take[i] || t->tensors[tensor].role != TENSOR_INOUT)
            continue;
        for (size_t k = 0; k < t->nstatements; k++)
            if (!take[k] && !c->done[k] &&
                (t->statements[k].tensor == tensor ||
                 expr_reads_tensor(t->statements[k].body, tensor)))
                return true;
    }
    return false;
}

/* ---- results that are summed again ---- */

static bool is_sum(const struct expr *e) {
    return e->kind == EXPR_REDUCE &&
           (e->reduce->op == REDUCTION_SUM || e->reduce->op == REDUCTION_MEAN);
}

/* A factor of the product is the tensor as it is. */
static bool multiplies(const struct statement *s, size_t tensor) {
    struct factors f;
    if (!form_is_product(s))
        return false;
    pattern_factors(s->body->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        if (f.e[i]->kind == EXPR_READ && f.e[i]->ref == tensor)
            return true;
    return false;
}

/* All reads of the tensor in the expression run along one of these variables: not in a window,
 * whose few terms matter less than the roundings of each. */
static bool reads_along(const struct expr *e, size_t tensor, uint32_t vars) {
    bool along = false;
    for (size_t i = 0; e->kind == EXPR_READ && e->ref == tensor && i < e->nargs; i++)
        along |= e->args[i]->kind == EXPR_INDEX && (vars >> e->args[i]->ref & 1);
    if (e->kind == EXPR_READ && e->ref == tensor)
        return along;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_along(expr_part(e, i), tensor, vars))
            return false;
    return true;
}

/* Nothing but sums of it, or of maps of it, comes out of the task. */
static bool is_summed_alone(const struct task *t, size_t tensor) {
    if (t->tensors[tensor].role != TENSOR_LET)
        return false;
    bool read = false;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (s->tensor == tensor || !expr_reads_tensor(s->body, tensor))
            continue;
        bool sum = form_is_fold(s) && is_sum(s->body) && !form_is_product(s) &&
                   reads_along(s->body->args[0], tensor, reduce_vars(s->body->reduce));
        if (!sum && !(form_is_map(s) && is_summed_alone(t, s->tensor)))
            return false;
        read = true;
    }
    return read;
}

/* Where an element of an operand is rounded, a whole row of results is off the same way, and a sum
 * over them adds that up; the accuracy classes count such errors as independent. */
static bool is_summed(const struct task *t, const bool *take) {
    for (size_t i = 0; i < t->nstatements; i++) {
        size_t tensor = t->statements[i].tensor;
        if (!take[i] || !form_is_product(&t->statements[i]))
            continue;
        for (size_t k = 0; k < t->nstatements; k++)
            if (multiplies(&t->statements[k], tensor))
                return true;
        if (is_summed_alone(t, tensor))
            return true;
    }
    return false;
}

static bool add_step(struct cut *c, const struct family *f, const bool *take, struct arena *a,
                     struct err *err) {
    struct partition *p = c->out;
    if (p->n == PARTITION_STEPS)
        return err_set(err, ERR_INPUT, "task %.*s: more than %d kernels",
                       STR_ARG(c->form.task->name), PARTITION_STEPS);
    p->steps[p->n] = (struct step){.inst = form_part(&c->form, take, a),
                                   .family = f->name,
                                   .summed = is_summed(c->form.task, take)};
    p->family[p->n++] = f;
    for (size_t i = 0; i < c->form.task->nstatements; i++)
        c->done[i] |= take[i];
    return true;
}

/* The first family that takes it. */
static bool take_first(struct cut *c, size_t first, struct arena *a, struct err *err) {
    for (size_t i = 0; i < c->nfamilies; i++) {
        bool take[TASK_MAX_STATEMENTS] = {false};
        const struct family *f = c->families[i];
        if (f->claim(c->b, &c->form, c->done, first, take) &&
            is_legal(c, f, c->done, take, first) && !is_torn(c, take))
            return add_step(c, f, take, a, err);
    }
    bool rest[TASK_MAX_STATEMENTS];
    for (size_t i = 0; i < c->form.task->nstatements; i++)
        rest[i] = !c->done[i];
    if (!keeps_recurrences(c, c->families[c->nfamilies - 1], rest))
        return err_set(err, ERR_INPUT,
                       "task %.*s: a recurrence together with tensors that are written in place "
                       "and read again cannot be written",
                       STR_ARG(c->form.task->name));
    return add_step(c, c->families[c->nfamilies - 1], rest, a, err);
}

static bool takes_any(const struct cut *c, const struct family *f) {
    bool done[TASK_MAX_STATEMENTS] = {false}; /* all before s */
    for (size_t s = 0; s < c->form.task->nstatements; done[s++] = true) {
        bool take[TASK_MAX_STATEMENTS] = {false};
        if (f->claim(c->b, &c->form, done, s, take) && is_legal(c, f, done, take, s))
            return true;
    }
    return false;
}

/* Does a family that fuses take anything of the form with operands inside their products? */
static bool is_fused(const struct cut *c) {
    for (size_t i = 0; i < c->nfamilies; i++)
        if (c->families[i]->fuses && takes_any(c, c->families[i]))
            return true;
    return false;
}

/* ---- lets that are outputs too ---- */

/* The statement copies a let of the step that other steps read, as it is, into an output. */
static bool is_copy(const struct task *t, const struct statement *s) {
    const struct tensor *to = &t->tensors[s->tensor];
    if (to->role != TENSOR_OUT || !statement_is_whole(t, s) || !expr_is_own(s, s->body) ||
        form_definitions(t, s->tensor) != 1)
        return false;
    const struct tensor *let = &t->tensors[s->body->ref];
    return let->role == TENSOR_OUT && let->dtype == to->dtype && extents_same(let, to) &&
           form_definitions(t, s->body->ref) == 1;
}

/* A let that is kept for other steps and is an output besides is written once, to the output. */
static void store_once(struct cut *c, struct step *st) {
    struct task *t = (struct task *)st->inst->task; /* the step's own copy (form_part) */
    for (size_t i = 0; i < t->nstatements; i++) {
        size_t to = t->statements[i].tensor, let = t->statements[i].body->ref;
        if (!is_copy(t, &t->statements[i]) || c->form.task->tensors[let].role != TENSOR_LET ||
            c->out->stored[let] != SIZE_MAX)
            continue;
        c->out->stored[let] = to;
        t->tensors[to].role = TENSOR_RAND; /* out of sight, as form_part has it */
        memmove(&t->statements[i], &t->statements[i + 1],
                (--t->nstatements - i) * sizeof *t->statements);
        i--;
    }
}

static bool reads_inout(const struct task *t, const struct expr *e) {
    if (e->kind == EXPR_READ && t->tensors[e->ref].role == TENSOR_INOUT)
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (reads_inout(t, expr_part(e, i)))
            return true;
    return false;
}

/* A map into an output that nobody reads: it can be made at any time, by the step of another
 * statement that has what it reads at hand. */
static bool can_wait(const struct task *t, const struct statement *s) {
    bool waits =
        form_is_map(s) && t->tensors[s->tensor].role == TENSOR_OUT && !reads_inout(t, s->body);
    for (size_t i = 0; i < t->nstatements; i++)
        waits &= !expr_reads_tensor(t->statements[i].body, s->tensor);
    return waits;
}

bool partition_make(const struct briefing *b, const struct family *const *families,
                    size_t nfamilies, struct arena *a, struct partition *out, struct err *err) {
    struct cut c = {.b = b, .families = families, .nfamilies = nfamilies, .out = out};
    out->n = 0;
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        out->stored[i] = SIZE_MAX;
    if (!form_make(b->inst, false, a, &c.form, err) ||
        (!is_fused(&c) && !form_make(b->inst, true, a, &c.form, err)))
        return false;
    for (int waiting = 0; waiting < 2; waiting++)
        for (size_t i = 0; i < c.form.task->nstatements; i++)
            if (!c.done[i] && (waiting || !can_wait(c.form.task, &c.form.task->statements[i])) &&
                !take_first(&c, i, a, err))
                return false;
    for (size_t i = 0; i < out->n; i++)
        store_once(&c, &out->steps[i]);
    return true;
}
