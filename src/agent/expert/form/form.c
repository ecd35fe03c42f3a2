/* Tasks into normal form: lets inlined, reductions taken out, statement by statement in order, so
 * that what a statement reads is in its final shape already. */
#include "agent/expert/form/form.h"
#include "agent/expert/form/guards.h"
#include "base/checked.h"
#include "spec/bind.h"
#include "spec/bounds.h"
#include "spec/pattern.h"
#include <math.h>
#include <string.h>

bool form_is_fold(const struct statement *s) {
    return s->body->kind == EXPR_REDUCE && !expr_has(s->body->args[0], EXPR_REDUCE);
}
bool form_is_map(const struct statement *s) {
    return !expr_has(s->body, EXPR_REDUCE);
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

/* Its nodes. */
static size_t expr_size(const struct expr *e) {
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

bool expr_is_variable(const struct expr *e, size_t var) {
    return e->kind == EXPR_INDEX && e->ref == var;
}

enum { SWAPS_MOST = 16 };

/* The node with places of its own for its arguments. */
static struct expr *copy_node(struct arena *a, const struct expr *e) {
    struct expr *to = arena_new_of(a, struct expr);
    *to = *e;
    to->args = arena_array(a, struct expr *, e->nargs ? e->nargs : 1);
    return to;
}

/* How to copy a tree. */
struct copier {
    struct arena *a;
    struct expr *map[TASK_MAX_VARS]; /* what stands for a variable; NULL: itself */
    bool renumber;                   /* variables of reductions: from `next` on, as they appear */
    size_t next;
    struct {
        const struct expr *from;
        struct expr *to;
    } swaps[SWAPS_MOST]; /* nodes to replace, by address */
    size_t nswaps;
};
static struct expr *copier_copy(struct copier *c, const struct expr *e);

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

static struct expr *copier_copy(struct copier *c, const struct expr *e) {
    for (size_t i = 0; i < c->nswaps; i++)
        if (c->swaps[i].from == e)
            return c->swaps[i].to;
    if (e->kind == EXPR_INDEX && c->map[e->ref])
        return c->map[e->ref];
    struct expr *to = copy_node(c->a, e);
    if (e->kind == EXPR_REDUCE) /* its variables before the body that uses them */
        to->reduce = copy_reduce(c, e->reduce);
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

/* A part of a form as a task of its own. */

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

size_t form_definitions(const struct task *t, size_t tensor) {
    size_t n = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        n += t->statements[i].tensor == tensor;
    return n;
}

const struct statement *form_definition_in(const struct task *t, const bool *set, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (set[i] && t->statements[i].tensor == tensor)
            return &t->statements[i];
    return NULL;
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

/* Tasks into normal form: lets inlined, reductions taken out, statement by statement in order, so
 * that what a statement reads is in its final shape already. */

#define INLINE_MOST 256 /* nodes of a let that is written out where it is read */

struct maker {
    struct arena *a;
    struct task *t;  /* with room for TASK_MAX_TENSORS and TASK_MAX_STATEMENTS */
    struct inst *in; /* of it */
    const struct task *original;
    size_t given; /* tensors of the task itself */
    const struct statement *inlined[TASK_MAX_TENSORS];
    bool padded[TASK_MAX_TENSORS]; /* some pad reads it */
    /* While statements of a recurrence are made: where the first of them stands. What is taken out
     * of them goes before it, so that they stay together. */
    size_t before;
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
    struct expr *to = copy_node(m->a, e);
    if (e->kind == EXPR_REDUCE)
        to->reduce = inline_reduce(m, e->reduce);
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
    return statement_extent(t, p->s, var);
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

/* All values that the body of a let may have; of a sum of integers as many terms as there can be.
 */
static bool range_of_body(struct maker *m, const struct statement *s, struct range *v) {
    struct ranges r = ranges_of(m->in, s);
    const struct reduce *over = s->body->reduce;
    if (s->body->value_kind != VALUE_INT)
        return false;
    if (s->body->kind != EXPR_REDUCE || over->op != REDUCTION_SUM)
        return range_of(&r, s->body, v) == RANGE_OK;
    if (!ranges_enter(&r, over) || range_of(&r, s->body->args[0], v) != RANGE_OK)
        return false;
    bool ok = true;
    for (size_t i = 0; i < over->nvars && ok; i++) {
        struct range n = r.index[over->vars[i].var];
        int64_t terms;
        ok = sub_i64(n.hi, n.lo, &terms) && add_i64(terms, 1, &terms) &&
             mul_i64(v->lo, terms, &v->lo) && mul_i64(v->hi, terms, &v->hi);
    }
    v->lo = v->lo < 0 ? v->lo : 0;
    v->hi = v->hi > 0 ? v->hi : 0;
    return ok;
}

static bool fits(const struct range *v, int64_t lo, int64_t hi) {
    return v->lo >= lo && v->hi <= hi;
}

/* The smallest type that holds every value of the let exactly. A factor of a product is kept in the
 * format of the task's class where that has its range: bf16 has that of every real, and the product
 * would round to it anyway. `known`: the range of an integer. */
static enum dtype memory_type(const struct task *t, const struct statement *s, bool factor,
                              const struct range *known) {
    enum dtype format = t->accuracy == ACCURACY_BF16  ? DTYPE_BF16
                        : t->accuracy == ACCURACY_F16 ? DTYPE_F16
                                                      : DTYPE_F32;
    if (s->body->value_kind == VALUE_REAL)
        return factor && format == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
    if (s->body->value_kind == VALUE_BOOL)
        return DTYPE_BOOL;
    if (!known)
        return DTYPE_I64;
    int64_t exact = format == DTYPE_BF16 ? 1 << 8 : format == DTYPE_F16 ? 1 << 11 : 1 << 24;
    return factor && fits(known, -exact, exact) ? format
           : fits(known, INT8_MIN, INT8_MAX)    ? DTYPE_I8
           : fits(known, 0, UINT8_MAX)          ? DTYPE_U8
           : fits(known, INT32_MIN, INT32_MAX)  ? DTYPE_I32
                                                : DTYPE_I64;
}

/* A let of the task without a type of its own. */
static bool is_untyped(const struct maker *m, size_t tensor) {
    const struct tensor *x = &m->original->tensors[tensor];
    return x->role == TENSOR_LET && x->dtype == DTYPE_F64;
}

/* The let, made here or the task's own, that has been given this body already. The task's own is
 * kept as f32. */
static const struct statement *find_equal(const struct maker *m, const struct tensor *x,
                                          const struct statement *s) {
    for (size_t i = 0; i < m->t->nstatements; i++) {
        const struct statement *o = &m->t->statements[i];
        const struct tensor *y = &m->t->tensors[o->tensor];
        bool made = o->tensor >= m->given;
        if ((made || (s->body->value_kind == VALUE_REAL && is_untyped(m, o->tensor) &&
                      statement_is_whole(m->t, o))) &&
            extents_same(x, y) && expr_same(o->body, s->body))
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
    *x = (struct tensor){.role = TENSOR_LET, .dtype = DTYPE_I64};
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

/* The new tensor's type, and what its elements can be. */
static void settle_new(struct maker *m, const struct statement *s, bool factor) {
    struct range v;
    struct tensor *x = &m->t->tensors[s->tensor];
    struct bound_tensor *b = &m->in->tensors[s->tensor];
    bool known = range_of_body(m, s, &v);
    x->dtype = memory_type(m->t, s, factor, known ? &v : NULL);
    b->bytes = (size_t)b->count * dtype_info(x->dtype)->bytes;
    if (known) {
        b->lo = v.lo;
        b->hi = v.hi;
    }
}

static void add_statement(struct place *p, const struct statement *s) {
    struct task *t = p->m->t;
    size_t at = p->s->recurs.number ? p->m->before++ : t->nstatements;
    memmove(&t->statements[at + 1], &t->statements[at],
            (t->nstatements++ - at) * sizeof *t->statements);
    t->statements[at] = *s;
}

/* A read of a new let that has the value of `e`; NULL where it cannot have one. `factor`: of a
 * product alone. */
static struct expr *take_out(struct place *p, const struct expr *e, bool factor) {
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
        settle_new(m, &s, factor);
        add_statement(p, &s);
    }
    enum dtype type = t->tensors[known ? known->tensor : s.tensor].dtype;
    struct expr *read =
        copy_node(m->a, &(struct expr){.kind = EXPR_READ,
                                       .value_kind = dtype_info(type)->kind == 'f' ? VALUE_REAL
                                                                                   : e->value_kind,
                                       .at = e->at,
                                       .len = e->len,
                                       .ref = known ? known->tensor : s.tensor,
                                       .nargs = x.rank});
    size_t n = 0;
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        if (expr_vars(e) >> v & 1)
            read->args[n++] = expr_variable(m->a, v);
    return read;
}

/* ---- reductions ---- */

static struct expr *split(struct place *p, const struct expr *e, bool root);

/* It reads what a step of the statement's own recurrence makes. */
static bool reads_steps(const struct place *p, const struct expr *e) {
    const struct task *t = p->m->original;
    for (size_t i = 0; i < t->nstatements && p->s->recurs.number; i++)
        if (t->statements[i].recurs.number == p->s->recurs.number &&
            expr_reads_tensor(e, t->statements[i].tensor))
            return true;
    return false;
}

/* The range and guard of a reduction may hold reductions as well: those are left alone. */
static struct expr *split_reduce(struct place *p, const struct expr *e, bool root) {
    struct expr *to = copy_node(p->m->a, e);
    for (size_t i = 0; i < e->reduce->nvars; i++)
        p->var[e->reduce->vars[i].var] = &e->reduce->vars[i];
    to->args[0] = split(p, e->args[0], false);
    struct expr *read = root || reads_steps(p, to) ? NULL : take_out(p, to, false);
    return read ? read : to;
}

/* A sum over the only variable's whole range, divided by that size, is a mean. Not of a product:
 * its divisor is a scale. */
static const struct expr *as_mean(const struct place *p, const struct expr *e) {
    const struct expr *sum = e->args[0];
    if (sum->kind != EXPR_REDUCE || sum->reduce->op != REDUCTION_SUM || sum->reduce->guard ||
        sum->reduce->nvars != 1 || sum->value_kind != VALUE_REAL || pattern_is_contraction(sum))
        return e;
    const struct reduce_var *v = &sum->reduce->vars[0];
    if (!expr_is_number(v->lo, 0) || !over_sizes(v->hi) || !expr_same(v->hi, e->args[1]))
        return e;
    struct expr *mean = copy_node(p->m->a, sum);
    struct reduce *r = arena_new_of(p->m->a, struct reduce);
    *r = *sum->reduce;
    r->op = REDUCTION_MEAN;
    mean->args[0] = sum->args[0];
    mean->reduce = r;
    return mean;
}

static struct expr *split(struct place *p, const struct expr *e, bool root) {
    if (e->kind == EXPR_DIV)
        e = as_mean(p, e);
    if (e->kind == EXPR_REDUCE)
        return split_reduce(p, e, root);
    struct expr *to = copy_node(p->m->a, e);
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

/* More than two factors change with what is summed: `x * (w * scale)`, `silu(x) * w`. Then each
 * side of the product in which they meet is an operand as a whole, since products are not
 * regrouped: others might overflow. NULL: two do, or they meet otherwise. */
static const struct expr *meeting_point(const struct expr *e, uint32_t reduced) {
    struct factors f;
    size_t changing = 0;
    pattern_factors(e, &f);
    for (size_t i = 0; i < f.n; i++)
        changing += (expr_vars(f.e[i]) & reduced) != 0;
    while (changing > 2 && (e->kind == EXPR_NEG || e->kind == EXPR_MUL || e->kind == EXPR_DIV)) {
        bool first = expr_vars(e->args[0]) & reduced;
        bool second = e->nargs > 1 && (expr_vars(e->args[1]) & reduced);
        if (first && second) {
            uint32_t a = expr_vars(e->args[0]), b = expr_vars(e->args[1]);
            bool product = (a & ~b & ~reduced) && (b & ~a & ~reduced) && (a & b & reduced);
            return e->kind == EXPR_MUL && product ? e : NULL;
        }
        e = e->args[first ? 0 : 1];
    }
    return NULL;
}

static void take_operands(struct place *p, struct statement *s) {
    struct factors f;
    uint32_t reduced = reduce_vars(s->body->reduce);
    struct copier c = {.a = p->m->a};
    for (size_t i = 0; i < s->body->reduce->nvars; i++)
        p->var[s->body->reduce->vars[i].var] = &s->body->reduce->vars[i];
    const struct expr *meeting = meeting_point(s->body->args[0], reduced);
    pattern_factors(s->body->args[0], &f);
    if (meeting)
        f = (struct factors){.n = 2, .e = {meeting->args[0], meeting->args[1]}};
    for (size_t i = 0; i < f.n; i++) {
        bool wanted =
            !is_plain(f.e[i]) && expr_reads(f.e[i]) && !f.below[i] && (expr_vars(f.e[i]) & reduced);
        struct expr *read = wanted ? take_out(p, f.e[i], true) : NULL;
        if (read) {
            c.swaps[c.nswaps].from = f.e[i];
            c.swaps[c.nswaps++].to = read;
        }
    }
    s->body = copier_copy(&c, s->body);
}

enum { FILTER_MOST = 1024 }; /* terms */

/* A sum over a small range of sizes, in which no guard is left. */
static bool is_filter(const struct inst *in, const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    int64_t terms = 1, n;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        if (!expr_is_number(v->lo, 0) || !over_sizes(v->hi) ||
            !expr_eval_dims(v->hi, in->dims, &n) || n > FILTER_MOST)
            return false;
        terms *= n;
    }
    return !r->guard && terms <= FILTER_MOST;
}

/* A product, or a filter, whose terms are left out in whatever way, as far as its reads stay
 * inside. */
static void leave_out(struct maker *m, struct statement *s) {
    struct err ignored = {0};
    struct statement padded = *s;
    padded.body = form_tapped(s->body, m->a);
    if (padded.body != s->body && form_is_product(&padded) &&
        bounds_check(m->in, &padded, m->a, &ignored))
        *s = padded;
    padded.body = form_padded(m->in, s->body, m->a);
    if (padded.body != s->body && form_is_fold(&padded) &&
        (form_is_product(&padded) || is_filter(m->in, &padded)) &&
        bounds_check(m->in, &padded, m->a, &ignored))
        *s = padded;
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
        if (!list[i].recurs.number)
            leave_out(m, &list[i]);
        if (form_is_product(&list[i]) && !list[i].recurs.number)
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
    const struct statement *last = t->nstatements ? &t->statements[t->nstatements - 1] : NULL;
    if (s.recurs.number && !(last && last->recurs.number == s.recurs.number))
        m->before = t->nstatements;
    s.body = split(&p, inline_lets(m, given->body), true);
    s.body = copier_copy(&c, s.body);
    s.nvars = c.next;
    bool untyped = x->role == TENSOR_LET && x->dtype == DTYPE_F64;
    const struct statement *same = untyped && !s.recurs.number && form_is_fold(&s) &&
                                           s.body->value_kind == VALUE_REAL &&
                                           !m->padded[s.tensor] && statement_is_whole(t, &s)
                                       ? find_equal(m, x, &s)
                                       : NULL;
    if (same) { /* its reads become reads of that one */
        s.body = expr_own(t, same, m->a);
        s.body->value_kind = VALUE_REAL;
    }
    if (untyped && !s.recurs.number && form_is_map(&s) && !m->padded[s.tensor] &&
        whole_left_side(t, &s) && form_definitions(m->original, s.tensor) == 1 &&
        expr_size(s.body) <= INLINE_MOST) {
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

bool form_is_read(const struct task *t, size_t from, size_t tensor) {
    for (size_t i = from; i < t->nstatements; i++)
        if (expr_reads_tensor(t->statements[i].body, tensor))
            return true;
    return false;
}

/* Lets that nobody reads any more. From the end: a reader goes before what it read. */
static void drop_unread(struct task *t) {
    for (size_t i = t->nstatements; i-- > 0;) {
        size_t tensor = t->statements[i].tensor;
        if (t->tensors[tensor].role != TENSOR_LET || form_is_read(t, 0, tensor))
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
    m->in->also = in->also;
    m->in->nalso = in->nalso;
    m->in->tensors = arena_array(m->a, struct bound_tensor, TASK_MAX_TENSORS);
    memcpy(m->in->tensors, in->tensors, t->ntensors * sizeof *in->tensors);
    for (size_t i = 0; i < in->task->nstatements; i++)
        find_padded(m, in->task->statements[i].body);
}

/* Every reduction's terms by ranges, as far as that is proved to stay inside the tensors. */
static void make_ranges(struct maker *m) {
    for (size_t i = 0; i < m->t->nstatements; i++) {
        struct err ignored = {0};
        struct statement s = m->t->statements[i];
        s.body = form_ranged(m->in, &s, m->a);
        if (bounds_check(m->in, &s, m->a, &ignored))
            m->t->statements[i] = s;
    }
}

bool form_make(const struct inst *in, bool operands, struct arena *a, struct form *out,
               struct err *err) {
    struct maker m = {.a = a};
    prepare(&m, in);
    for (size_t i = 0; i < in->task->nstatements; i++)
        if (!make_statement(&m, &in->task->statements[i], err))
            return false;
    if (operands && !take_all_operands(&m, err))
        return false;
    make_ranges(&m);
    drop_unread(m.t);
    *out = (struct form){.original = in, .task = m.t, .inst = m.in};
    return true;
}
