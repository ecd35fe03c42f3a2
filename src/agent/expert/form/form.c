/* Tasks into normal form: lets inlined, reductions taken out, statement by statement in order, so
 * that what a statement reads is in its final shape already. */
#include "agent/expert/form/form_make.h"
#include "base/checked.h"
#include "spec/bind.h"
#include "spec/bounds.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <string.h>

#define INLINE_MOST 256 /* nodes of a let that is written out where it is read */

struct maker {
    struct form_options o;
    struct arena *a;
    struct task *t;  /* with room for TASK_MAX_TENSORS and TASK_MAX_STATEMENTS */
    struct inst *in; /* of it */
    const struct task *original;
    size_t given; /* tensors of the task itself */
    const struct statement *inlined[TASK_MAX_TENSORS];
    bool padded[TASK_MAX_TENSORS]; /* some pad reads it */
};

/* A statement on its way, and the reductions around the place that is looked at. */
struct place {
    struct maker *m;
    const struct statement *s;
    const struct reduce_var *var[TASK_MAX_VARS]; /* NULL: of the left side */
};

/* ---- inlining ---- */

static struct expr *inline_lets(struct maker *m, const struct expr *e);

static const struct reduce *inline_reduce(struct maker *m, const struct reduce *r) {
    struct reduce *to = arena_new_of(m->a, struct reduce);
    *to = *r;
    to->vars = arena_array(m->a, struct reduce_var, r->nvars);
    for (size_t i = 0; i < r->nvars; i++) {
        to->vars[i] = r->vars[i];
        to->vars[i].lo = inline_lets(m, r->vars[i].lo);
        to->vars[i].hi = inline_lets(m, r->vars[i].hi);
    }
    to->guard = r->guard ? inline_lets(m, r->guard) : NULL;
    return to;
}

static struct expr *inline_lets(struct maker *m, const struct expr *e) {
    struct expr *to = arena_new_of(m->a, struct expr);
    *to = *e;
    if (e->kind == EXPR_REDUCE)
        to->reduce = inline_reduce(m, e->reduce);
    to->args = arena_array(m->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = inline_lets(m, e->args[i]);
    const struct statement *let = e->kind == EXPR_READ ? m->inlined[e->ref] : NULL;
    if (!let)
        return to;
    struct expr *map[TASK_MAX_VARS] = {NULL};
    for (size_t i = 0; i < e->nargs; i++)
        map[let->position[i]] = to->args[i];
    return expr_replace(let->body, map, m->a);
}

static void find_padded(struct maker *m, const struct expr *e) {
    if (e->kind == EXPR_PAD)
        m->padded[e->args[0]->ref] = true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        find_padded(m, expr_part(e, i));
}

static bool whole_left_side(const struct task *t, const struct statement *s) {
    for (size_t i = 0; i < t->tensors[s->tensor].rank; i++)
        if (s->position[i] < 0)
            return false;
    return true;
}

static bool defined_once(const struct task *t, size_t tensor) {
    size_t n = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        n += t->statements[i].tensor == tensor;
    return n == 1;
}

/* ---- new tensors ---- */

static bool over_sizes(const struct expr *e) {
    return expr_vars(e) == 0 && !expr_reads(e) && !expr_has(e, EXPR_REDUCE);
}

/* The extent of a tensor that the variable indexes by itself. */
static struct expr *extent_by_read(const struct task *t, const struct expr *e, size_t var) {
    if (e->kind == EXPR_PAD)
        return NULL;
    for (size_t i = 0; e->kind == EXPR_READ && i < e->nargs; i++)
        if (e->args[i]->kind == EXPR_INDEX && e->args[i]->ref == var)
            return t->tensors[e->ref].extent[i];
    for (size_t i = 0; i < expr_nparts(e); i++) {
        struct expr *found = extent_by_read(t, expr_part(e, i), var);
        if (found)
            return found;
    }
    return NULL;
}

/* How many values the variable takes, from 0 on; NULL: not known as a size. */
static struct expr *extent_of(const struct place *p, const struct expr *e, size_t var) {
    const struct task *t = p->m->t;
    const struct reduce_var *v = p->var[var];
    if (v)
        return expr_is_number(v->lo, 0) && over_sizes(v->hi) ? v->hi : extent_by_read(t, e, var);
    for (size_t i = 0; i < t->tensors[p->s->tensor].rank; i++)
        if (p->s->position[i] == (int)var)
            return t->tensors[p->s->tensor].extent[i];
    return NULL;
}

static bool bind_new(struct maker *m, size_t tensor) {
    const struct tensor *x = &m->t->tensors[tensor];
    struct bound_tensor *b = &m->in->tensors[tensor];
    *b = (struct bound_tensor){.count = 1, .lo = INT64_MIN, .hi = INT64_MAX};
    for (size_t k = x->rank; k-- > 0;) {
        b->stride[k] = b->count;
        if (!expr_eval_dims(x->extent[k], m->in->dims, &b->extent[k]) || b->extent[k] < 1 ||
            !mul_i64(b->count, b->extent[k], &b->count))
            return false;
    }
    return mul_size((size_t)b->count, dtype_info(x->dtype)->bytes, &b->bytes);
}

static enum dtype memory_type(enum value_kind k) {
    return k == VALUE_INT ? DTYPE_I64 : k == VALUE_BOOL ? DTYPE_BOOL : DTYPE_F32;
}

static const struct statement *find_equal(const struct maker *m, const struct tensor *x,
                                          const struct statement *s) {
    for (size_t i = 0; i < m->t->nstatements; i++) {
        const struct statement *o = &m->t->statements[i];
        const struct tensor *y = &m->t->tensors[o->tensor];
        if (o->tensor >= m->given && extents_same(x, y) && expr_same(o->body, s->body))
            return o;
    }
    return NULL;
}

static str variable_name(const struct place *p, size_t var) {
    return p->var[var] ? p->var[var]->name : p->s->index[var];
}

static str tensor_name(struct maker *m, const struct place *p, const struct expr *e) {
    const char *what = e->kind == EXPR_REDUCE ? reduction_name(e->reduce->op) : "operand";
    str base = m->t->tensors[p->s->tensor].name;
    str name = arena_printf(m->a, "%.*s_%s", STR_ARG(base), what);
    for (int i = 2; tensor_find(m->t, name) >= 0; i++)
        name = arena_printf(m->a, "%.*s_%s%d", STR_ARG(base), what, i);
    return name;
}

/* The left side of a let of its own for `e`, over the variables it depends on. */
static bool left_side(struct place *p, const struct expr *e, struct tensor *x, struct statement *s,
                      struct copier *c) {
    uint32_t vars = expr_vars(e);
    *x = (struct tensor){.role = TENSOR_LET, .dtype = memory_type(e->value_kind)};
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        if (!(vars >> v & 1))
            continue;
        if (x->rank == TASK_MAX_RANK || !(x->extent[x->rank] = extent_of(p, e, v)))
            return false;
        c->map[v] = expr_variable(p->m->a, x->rank);
        s->index[x->rank] = variable_name(p, v);
        s->position[x->rank] = (int)x->rank;
        x->rank++;
    }
    s->nindex = c->next = x->rank;
    return true;
}

static void range_of_new(struct maker *m, const struct statement *s) {
    struct ranges r = ranges_of(m->in, s);
    struct range v;
    if (s->body->value_kind != VALUE_INT || range_of(&r, s->body, &v) != RANGE_OK)
        return;
    m->in->tensors[s->tensor].lo = v.lo;
    m->in->tensors[s->tensor].hi = v.hi;
}

/* A read of a new let that has the value of `e`; NULL where it cannot have one. */
static struct expr *take_out(struct place *p, const struct expr *e) {
    struct maker *m = p->m;
    struct task *t = m->t;
    struct copier c = {.a = m->a, .renumber = true};
    struct tensor x;
    struct statement s = {.tensor = t->ntensors, .at = e->at, .len = e->len};
    struct err ignored = {0};
    if (t->ntensors == TASK_MAX_TENSORS || t->nstatements == TASK_MAX_STATEMENTS ||
        !left_side(p, e, &x, &s, &c))
        return NULL;
    s.body = copier_copy(&c, e);
    s.nvars = c.next;
    const struct statement *known = find_equal(m, &x, &s);
    if (!known) {
        x.name = tensor_name(m, p, e);
        t->tensors[t->ntensors] = x;
        if (!bind_new(m, s.tensor) || !bounds_check(m->in, &s, m->a, &ignored))
            return NULL;
        t->ntensors++;
        range_of_new(m, &s);
        t->statements[t->nstatements++] = s;
    }
    struct expr *read = arena_new_of(m->a, struct expr);
    *read = (struct expr){.kind = EXPR_READ,
                          .value_kind = e->value_kind,
                          .at = e->at,
                          .len = e->len,
                          .ref = known ? known->tensor : s.tensor,
                          .nargs = x.rank};
    read->args = arena_array(m->a, struct expr *, x.rank ? x.rank : 1);
    size_t n = 0;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if (expr_vars(e) >> v & 1)
            read->args[n++] = expr_variable(m->a, v);
    return read;
}

/* ---- reductions ---- */

static struct expr *split(struct place *p, const struct expr *e, bool root);

/* The range and guard of a reduction may hold reductions as well: those are left alone. */
static struct expr *split_reduce(struct place *p, const struct expr *e, bool root) {
    struct expr *to = arena_new_of(p->m->a, struct expr);
    *to = *e;
    to->args = arena_array(p->m->a, struct expr *, 1);
    for (size_t i = 0; i < e->reduce->nvars; i++)
        p->var[e->reduce->vars[i].var] = &e->reduce->vars[i];
    to->args[0] = split(p, e->args[0], false);
    struct expr *read = root ? NULL : take_out(p, to);
    return read ? read : to;
}

static struct expr *split(struct place *p, const struct expr *e, bool root) {
    if (e->kind == EXPR_REDUCE)
        return split_reduce(p, e, root);
    struct expr *to = arena_new_of(p->m->a, struct expr);
    *to = *e;
    to->args = arena_array(p->m->a, struct expr *, e->nargs ? e->nargs : 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = split(p, e->args[i], false);
    return to;
}

/* ---- operands ---- */

static bool is_plain(const struct expr *e) {
    return (e->kind == EXPR_PAD ? e->args[0] : e)->kind == EXPR_READ;
}

bool form_is_product(const struct statement *s) {
    struct factors f;
    if (!form_is_fold(s) || !pattern_is_contraction(s->body))
        return false;
    uint32_t reduced = reduce_vars(s->body->reduce);
    pattern_factors(s->body->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        for (size_t k = 0; k < i; k++) {
            uint32_t a = expr_vars(f.e[i]), b = expr_vars(f.e[k]);
            if (expr_reads(f.e[i]) && expr_reads(f.e[k]) && (a & ~b & ~reduced) &&
                (b & ~a & ~reduced) && (a & b & reduced))
                return true;
        }
    return false;
}

static void take_operands(struct place *p, struct statement *s) {
    struct factors f;
    uint32_t reduced = reduce_vars(s->body->reduce);
    struct copier c = {.a = p->m->a};
    for (size_t i = 0; i < s->body->reduce->nvars; i++)
        p->var[s->body->reduce->vars[i].var] = &s->body->reduce->vars[i];
    pattern_factors(s->body->args[0], &f);
    for (size_t i = 0; i < f.n; i++) {
        bool wanted =
            !is_plain(f.e[i]) && expr_reads(f.e[i]) && !f.below[i] && (expr_vars(f.e[i]) & reduced);
        struct expr *read = wanted ? take_out(p, f.e[i]) : NULL;
        if (read) {
            c.swaps[c.nswaps].from = f.e[i];
            c.swaps[c.nswaps++].to = read;
        }
    }
    s->body = copier_copy(&c, s->body);
}

/* Of every product, also of those that were taken out of an expression themselves. */
static bool take_all_operands(struct maker *m, struct err *err) {
    struct task *t = m->t;
    size_t n = t->nstatements;
    struct statement *list = arena_array(m->a, struct statement, n ? n : 1);
    memcpy(list, t->statements, n * sizeof *list);
    t->nstatements = 0;
    for (size_t i = 0; i < n; i++) {
        struct place p = {.m = m, .s = &list[i]};
        if (form_is_product(&list[i]))
            take_operands(&p, &list[i]);
        if (t->nstatements == TASK_MAX_STATEMENTS)
            return err_set(err, ERR_INPUT, "task %.*s: more than %d statements in normal form",
                           STR_ARG(t->name), TASK_MAX_STATEMENTS);
        t->statements[t->nstatements++] = list[i];
    }
    return true;
}

/* ---- statements ---- */

static bool make_statement(struct maker *m, const struct statement *given, struct err *err) {
    struct task *t = m->t;
    struct statement s = *given;
    struct tensor *x = &t->tensors[s.tensor];
    struct place p = {.m = m, .s = given};
    struct copier c = {.a = m->a, .renumber = true, .next = s.nindex};
    s.body = split(&p, inline_lets(m, given->body), true);
    s.body = copier_copy(&c, s.body);
    s.nvars = c.next;
    bool untyped = x->role == TENSOR_LET && x->dtype == DTYPE_F64;
    if (untyped && form_is_map(&s) && !m->padded[s.tensor] && whole_left_side(t, &s) &&
        defined_once(m->original, s.tensor) && expr_size(s.body) <= INLINE_MOST) {
        struct statement *kept = arena_new_of(m->a, struct statement);
        *kept = s;
        m->inlined[s.tensor] = kept;
        return true;
    }
    if (untyped) {
        x->dtype = DTYPE_F32; /* its reads are real, whatever the body is */
        m->in->tensors[s.tensor].bytes =
            (size_t)m->in->tensors[s.tensor].count * dtype_info(x->dtype)->bytes;
    }
    if (t->nstatements == TASK_MAX_STATEMENTS)
        return err_set(err, ERR_INPUT, "task %.*s: more than %d statements in normal form",
                       STR_ARG(t->name), TASK_MAX_STATEMENTS);
    t->statements[t->nstatements++] = s;
    return true;
}

static bool is_read(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (expr_reads_tensor(t->statements[i].body, tensor))
            return true;
    return false;
}

/* Lets that nobody reads any more. From the end: a reader goes before what it read. */
static void drop_unread(struct task *t) {
    for (size_t i = t->nstatements; i-- > 0;) {
        size_t tensor = t->statements[i].tensor;
        if (t->tensors[tensor].role != TENSOR_LET || is_read(t, tensor))
            continue;
        memmove(&t->statements[i], &t->statements[i + 1],
                (--t->nstatements - i) * sizeof *t->statements);
    }
}

static void prepare(struct maker *m, const struct inst *in) {
    struct task *t = arena_new_of(m->a, struct task);
    *t = *in->task;
    t->tensors = arena_array(m->a, struct tensor, TASK_MAX_TENSORS);
    memcpy(t->tensors, in->task->tensors, t->ntensors * sizeof *t->tensors);
    t->statements = arena_array(m->a, struct statement, TASK_MAX_STATEMENTS);
    t->nstatements = 0;
    m->t = t;
    m->original = in->task;
    m->given = t->ntensors;
    m->in = arena_new_of(m->a, struct inst);
    m->in->task = t;
    m->in->dims = in->dims;
    m->in->tensors = arena_array(m->a, struct bound_tensor, TASK_MAX_TENSORS);
    memcpy(m->in->tensors, in->tensors, t->ntensors * sizeof *in->tensors);
    for (size_t i = 0; i < in->task->nstatements; i++)
        find_padded(m, in->task->statements[i].body);
}

bool form_make(const struct inst *in, const struct form_options *o, struct arena *a,
               struct form *out, struct err *err) {
    struct maker m = {.o = *o, .a = a};
    prepare(&m, in);
    for (size_t i = 0; i < in->task->nstatements; i++)
        if (!make_statement(&m, &in->task->statements[i], err))
            return false;
    if (o->operands && !take_all_operands(&m, err))
        return false;
    drop_unread(m.t);
    *out = (struct form){.original = in, .task = m.t, .inst = m.in};
    return true;
}
