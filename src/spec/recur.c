/* Which axis orders lets that stand in a circle. The axis of one of them settles those of the
 * others, read by read, so every dimension of the first is tried; of those that fail, the message
 * is about the one along which most reads are at another step. */
#include "spec/recur.h"

#include "base/checked.h"

enum fault {
    FAULT_NONE,
    FAULT_CIRCLE, /* within a step */
    FAULT_PLACE,  /* not the index plus or minus a number */
    FAULT_BOTH,   /* some reads are at earlier steps, some at later ones */
};

struct attempt {
    struct circle c;
    enum fault fault;
    const struct expr *read; /* that is in the way */
    size_t reader;
    size_t steps; /* reads at other steps */
    int64_t sign; /* of the first of them */
};

/* `e` is variable `var` plus a number. */
static bool offset_from(const struct expr *e, size_t var, int64_t *offset) {
    int64_t inner;
    if (e->kind == EXPR_INDEX && e->ref == var) {
        *offset = 0;
        return true;
    }
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB)
        return false;
    if (e->args[1]->kind == EXPR_NUMBER && offset_from(e->args[0], var, &inner))
        return e->kind == EXPR_ADD ? add_i64(inner, e->args[1]->integer, offset)
                                   : sub_i64(inner, e->args[1]->integer, offset);
    return e->kind == EXPR_ADD && e->args[0]->kind == EXPR_NUMBER &&
           offset_from(e->args[1], var, &inner) && add_i64(inner, e->args[0]->integer, offset);
}

static bool fail_read(struct attempt *a, enum fault fault, size_t reader, const struct expr *read) {
    a->fault = fault;
    a->reader = reader;
    a->read = read;
    return false;
}

/* Settles the axis of the let that is read, or holds it to the one it has. */
static bool note_read(struct attempt *a, size_t reader, const struct expr *read) {
    int64_t offset = 0;
    size_t var = (size_t)a->c.axis[reader];
    int *axis = &a->c.axis[read->ref];
    for (size_t k = 0; k < read->nargs && *axis < 0; k++)
        if (offset_from(read->args[k], var, &offset))
            *axis = (int)k;
    if (*axis < 0 || !offset_from(read->args[*axis], var, &offset))
        return fail_read(a, FAULT_PLACE, reader, read);
    if (offset == 0)
        return true;
    a->steps++;
    if (a->sign == 0)
        a->sign = offset;
    if ((a->sign < 0) != (offset < 0))
        return fail_read(a, FAULT_BOTH, reader, read);
    return true;
}

static bool note_reads(struct attempt *a, size_t reader, const struct expr *e) {
    if (e->kind == EXPR_READ && a->c.lets >> e->ref & 1 && !note_read(a, reader, e))
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_part(e, i) && !note_reads(a, reader, expr_part(e, i)))
            return false;
    return true;
}

/* A read of the same step that is of a let not made yet. */
static const struct expr *pending_read(const struct attempt *a, size_t reader, const struct expr *e,
                                       uint64_t made) {
    int64_t offset;
    if (e->kind == EXPR_READ && (a->c.lets & ~made) >> e->ref & 1 &&
        offset_from(e->args[a->c.axis[e->ref]], (size_t)a->c.axis[reader], &offset) && offset == 0)
        return e;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        const struct expr *found = part ? pending_read(a, reader, part, made) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static bool order_step(struct attempt *a) {
    uint64_t made = 0;
    for (size_t before = SIZE_MAX; a->c.n != before;) {
        before = a->c.n;
        for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
            if ((a->c.lets & ~made) >> i & 1 && !pending_read(a, i, a->c.of[i]->body, made)) {
                made |= UINT64_C(1) << i;
                a->c.order[a->c.n++] = i;
            }
    }
    if (made == a->c.lets)
        return true;
    size_t left = (size_t)__builtin_ctzll(a->c.lets & ~made);
    return fail_read(a, FAULT_CIRCLE, left, pending_read(a, left, a->c.of[left]->body, made));
}

static bool try_axis(struct attempt *a, size_t first, int axis) {
    uint64_t seen = 0;
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        a->c.axis[i] = -1;
    a->c.axis[first] = axis;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
            if (!((a->c.lets & ~seen) >> i & 1) || a->c.axis[i] < 0)
                continue;
            if (!note_reads(a, i, a->c.of[i]->body))
                return false;
            seen |= UINT64_C(1) << i;
            more = true;
        }
    }
    if (!order_step(a))
        return false;
    a->c.backwards = a->sign > 0;
    return true;
}

/* Some index of the read is not the reader's own. */
static bool is_elsewhere(const struct expr *read) {
    for (size_t i = 0; i < read->nargs; i++)
        if (read->args[i]->kind != EXPR_INDEX || read->args[i]->ref != i)
            return true;
    return false;
}

static bool complain(struct parser *p, const struct attempt *a) {
    static const char form[] =
        "a let may read itself at an earlier step along one axis: let h[t] = if(t == 0, x[0], "
        "a[t]*h[t-1] + x[t])";
    const struct tensor *t = &p->task->tensors[a->read->ref];
    const struct statement *s = a->c.of[a->reader];
    str name = t->name, index = s->nindex ? s->index[a->c.axis[a->reader]] : (str){0};
    size_t at = a->read->at, len = a->read->len;
    if (a->fault == FAULT_CIRCLE && a->steps && is_elsewhere(a->read))
        return parse_fail(p, at, len,
                          "a recurrence goes along one axis, and what a step reads of its own let "
                          "lies at earlier steps: make every such read at the step before",
                          "'%.*s' follows from its own step along '%.*s' here, and from another "
                          "step elsewhere: no single axis orders it",
                          STR_ARG(name), STR_ARG(index));
    if (a->fault == FAULT_CIRCLE)
        return parse_fail(p, at, len, form, "the let '%.*s' is defined by itself", STR_ARG(name));
    if (a->fault == FAULT_BOTH)
        return parse_fail(p, at, len,
                          "make two lets of it, one that goes forwards and one that goes backwards",
                          "'%.*s' is read at earlier and at later steps along '%.*s'",
                          STR_ARG(name), STR_ARG(index));
    return parse_fail(
        p, at, len,
        "a let reads itself at its own index less a number, h[t-1] or h[t-2] (or h[t+1], where it "
        "goes backwards); the first step is set by if(t == 0, x[0], …) or pad(h[t-1], 0)",
        "the let '%.*s' is defined by itself, and here at no fixed number of steps before",
        STR_ARG(name));
}

static const struct expr *find_read(const struct expr *e, uint64_t lets) {
    if (e->kind == EXPR_READ && lets >> e->ref & 1)
        return e;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *found = expr_part(e, i) ? find_read(expr_part(e, i), lets) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

bool recurrence_settle(struct parser *p, struct circle *c) {
    struct attempt worst = {.fault = FAULT_NONE};
    size_t first = (size_t)__builtin_ctzll(c->lets), rank = p->task->tensors[first].rank;
    for (size_t k = 0; k < rank; k++) {
        struct attempt a = {.c = *c};
        if (try_axis(&a, first, (int)k)) {
            *c = a.c;
            return true;
        }
        if (worst.fault == FAULT_NONE || a.steps > worst.steps)
            worst = a;
    }
    if (worst.fault != FAULT_NONE)
        return complain(p, &worst);
    struct attempt none = {.c = *c, .fault = FAULT_CIRCLE, .reader = first};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        none.c.axis[i] = -1;
    none.read = find_read(c->of[first]->body, c->lets);
    return complain(p, &none);
}

bool recurrence_check_extents(struct parser *p) {
    const struct task *t = p->task;
    for (size_t i = 1; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i], *o = &t->statements[i - 1];
        if (!s->recurs.number || s->recurs.number != o->recurs.number)
            continue;
        const struct tensor *x = &t->tensors[s->tensor], *y = &t->tensors[o->tensor];
        if (!expr_same(x->extent[s->recurs.axis], y->extent[o->recurs.axis]))
            return parse_fail(p, s->at, x->len, "state it in both: let h[b,t < T] = …",
                              "'%.*s' and '%.*s' follow from each other, but have not the same "
                              "number of steps",
                              STR_ARG(x->name), STR_ARG(y->name));
    }
    return true;
}

const struct statement *recurrence_let(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor && t->statements[i].recurs.number)
            return &t->statements[i];
    return NULL;
}

bool recurrence_lag(const struct task *t, const struct statement *s, const struct expr *read,
                    int64_t *lag) {
    const struct statement *of = s->recurs.number ? recurrence_let(t, read->ref) : NULL;
    if (read->kind != EXPR_READ || !of || of->recurs.number != s->recurs.number)
        return false;
    BUG_IF(!offset_from(read->args[of->recurs.axis], s->recurs.axis, lag));
    *lag = s->recurs.backwards ? *lag : -*lag;
    return true;
}

bool recurrence_is_own_line(const struct task *t, const struct statement *s,
                            const struct expr *read) {
    const struct statement *of = recurrence_let(t, read->ref);
    if (!extents_same(&t->tensors[s->tensor], &t->tensors[read->ref]) ||
        of->recurs.axis != s->recurs.axis)
        return false;
    for (size_t i = 0; i < read->nargs; i++)
        if (i != s->recurs.axis && (read->args[i]->kind != EXPR_INDEX || read->args[i]->ref != i))
            return false;
    return true;
}

size_t recurrence_length(const struct task *t, size_t first) {
    size_t n = 0;
    while (t->statements[first].recurs.number && first + n < t->nstatements &&
           t->statements[first + n].recurs.number == t->statements[first].recurs.number)
        n++;
    return n;
}
