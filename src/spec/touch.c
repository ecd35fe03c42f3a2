/* Images of reads, and the union of images. */
#include "spec/touch.h"

#include "spec/access.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <math.h>
#include <string.h>

enum {
    PLACES_MOST = 1 << 24, /* of an array that places are marked in */
    SIGNATURES_MOST = 1 << 10,
};

/* Dimensions of the tensor whose indices depend on each other. */
struct block {
    uint32_t dims;
    uint32_t vars; /* all that take part, in one access */
};

static uint32_t index_vars(const struct access *a, size_t k) {
    const struct expr *e = a->read->args[k];
    return expr_reads(e) ? 0 : domain_connected(a->d, expr_vars(e));
}

static void merge_dims(const struct access *a, uint32_t group[TASK_MAX_RANK]) {
    size_t rank = a->read->nargs;
    for (size_t i = 0; i < rank; i++)
        for (size_t k = 0; k < rank; k++)
            if (index_vars(a, i) & index_vars(a, k)) {
                uint32_t both = group[i] | group[k];
                for (size_t m = 0; m < rank; m++)
                    if (both >> m & 1)
                        group[m] = both;
            }
}

/* Every dimension's block as a set of dimensions; a block is listed at its first one. */
static void blocks_begin(uint32_t group[TASK_MAX_RANK]) {
    for (size_t k = 0; k < TASK_MAX_RANK; k++)
        group[k] = UINT32_C(1) << k;
}

static bool is_first(uint32_t dims, size_t k) {
    return (size_t)__builtin_ctz(dims) == k;
}

static struct block block_of(const struct access *a, uint32_t dims) {
    struct block b = {.dims = dims};
    for (size_t k = 0; k < a->read->nargs; k++)
        b.vars |= dims >> k & 1 ? index_vars(a, k) : 0;
    return b;
}

/* The indices tell the values of the variables in them. */
static bool injective(const struct access *a, uint32_t dims, uint32_t used) {
    uint32_t told = 0;
    for (size_t round = 0; round < a->read->nargs; round++)
        for (size_t k = 0; k < a->read->nargs; k++) {
            struct affine f;
            if (!(dims >> k & 1) || !affine_of(a->d->in, a->read->args[k], &f))
                continue;
            if (__builtin_popcount(f.vars & ~told) == 1)
                told |= f.vars;
        }
    return (used & ~told) == 0;
}

static bool only_inequalities(const struct domain *d, uint32_t vars) {
    for (size_t i = 0; i < d->n; i++)
        if (d->c[i].kind != CONSTRAINT_NOT_NEGATIVE && (d->c[i].vars & vars))
            return false;
    return true;
}

/* Places of a block, marked with a bit. */
struct marking {
    const struct access *a;
    uint32_t dims;
    uint32_t *place, bit;
    int64_t stride[TASK_MAX_RANK];
    bool affine[TASK_MAX_RANK];
    struct affine index[TASK_MAX_RANK];
    struct scalar at; /* the point */
    double marked;
};

static int64_t index_at(struct marking *m, size_t k) {
    if (!m->affine[k])
        return (int64_t)scalar_eval(&m->at, m->a->read->args[k]);
    int64_t at = m->index[k].c;
    for (uint32_t left = m->index[k].vars; left; left &= left - 1)
        at += m->index[k].coef[__builtin_ctz(left)] * m->at.var[__builtin_ctz(left)];
    return at;
}

static bool place_at(struct marking *m, int64_t *place) {
    const struct bound_tensor *b = &m->a->d->in->tensors[m->a->read->ref];
    *place = 0;
    for (size_t k = 0; k < m->a->read->nargs; k++) {
        if (!(m->dims >> k & 1))
            continue;
        int64_t at = index_at(m, k);
        if (at < 0 || at >= b->extent[k])
            return false;
        *place += at * m->stride[k];
    }
    return true;
}

static bool mark(void *ctx, const int64_t *value, size_t inner, struct range r) {
    struct marking *m = ctx;
    int64_t place;
    memcpy(m->at.var, value, sizeof m->at.var);
    *m->a->d->budget -= r.hi - r.lo;
    for (m->at.var[inner] = r.lo; m->at.var[inner] <= r.hi; m->at.var[inner]++)
        if (place_at(m, &place)) {
            m->marked += !(m->place[place] & m->bit);
            m->place[place] |= m->bit;
        }
    return *m->a->d->budget > 0;
}

/* How large the array for a block is; 0: too large. Clearing it and looking through it is work,
 * too.
 */
static int64_t places_of(const struct access *a, uint32_t dims) {
    enum { CLEARED_A_STEP = 8 };
    double n = 1;
    for (size_t k = 0; k < a->read->nargs; k++)
        n *= dims >> k & 1 ? (double)a->d->in->tensors[a->read->ref].extent[k] : 1;
    if (n > PLACES_MOST || n > (double)*a->d->budget * CLEARED_A_STEP)
        return 0;
    *a->d->budget -= (int64_t)n / CLEARED_A_STEP;
    return (int64_t)n;
}

/* Sets `bit` at the places of the block that the access reaches; negative: too many to run over. */
static double mark_block(const struct access *a, uint32_t dims, uint32_t *place, uint32_t bit) {
    struct marking m = {.a = a, .dims = dims, .place = place, .bit = bit, .at = {.in = a->d->in}};
    int64_t stride = 1;
    for (size_t k = a->read->nargs; k-- > 0;)
        if (dims >> k & 1) {
            m.stride[k] = stride;
            stride *= a->d->in->tensors[a->read->ref].extent[k];
            m.affine[k] = affine_of(a->d->in, a->read->args[k], &m.index[k]);
        }
    return domain_each(a->d, block_of(a, dims).vars, mark, &m) ? m.marked : -1;
}

static double box_size(const struct access *a, uint32_t dims) {
    struct ranges r = {.in = a->d->in};
    double n = 1;
    memcpy(r.index, a->d->var, sizeof a->d->var);
    for (size_t k = 0; k < a->read->nargs; k++) {
        struct range got;
        if (dims >> k & 1 && range_of(&r, a->read->args[k], &got) == RANGE_OK) {
            double width = (double)(got.hi - got.lo) + 1;
            n *= fmin(width, (double)a->d->in->tensors[a->read->ref].extent[k]);
        }
    }
    return n;
}

static double block_size(const struct access *a, uint32_t dims) {
    struct block b = block_of(a, dims);
    uint32_t used = 0;
    for (size_t k = 0; k < a->read->nargs; k++)
        if (dims >> k & 1 && !expr_reads(a->read->args[k]))
            used |= expr_vars(a->read->args[k]);
    if (injective(a, dims, used) && only_inequalities(a->d, b.vars))
        return domain_count(a->d, used);
    int64_t places = places_of(a, dims);
    double marked = -1;
    if (places) {
        uint32_t *place = mem_alloc((size_t)places * sizeof *place);
        marked = mark_block(a, dims, place, 1);
        mem_free(place);
    }
    return marked >= 0 ? marked : fmin(domain_count(a->d, used), box_size(a, dims));
}

/* A dimension whose index is data contributes one place: the least demanding data name the same
 * one everywhere. */
static double image_size(const struct access *a) {
    uint32_t group[TASK_MAX_RANK];
    double n = 1;
    blocks_begin(group);
    merge_dims(a, group);
    for (size_t k = 0; k < a->read->nargs; k++)
        if (is_first(group[k], k) && !expr_reads(a->read->args[k]))
            n *= block_size(a, group[k]);
    return n;
}

/* ---- unions ---- */

/* How many places (so far) exactly these accesses reach. */
struct signature {
    uint32_t bits;
    double count;
};
struct signatures {
    struct signature s[SIGNATURES_MOST];
    size_t n;
};

static bool count_signature(struct signatures *t, uint32_t bits, double count) {
    size_t i = 0;
    if (!bits)
        return true;
    while (i < t->n && t->s[i].bits != bits)
        i++;
    if (i == SIGNATURES_MOST)
        return false;
    if (i == t->n)
        t->s[t->n++] = (struct signature){bits, 0};
    t->s[i].count += count;
    return true;
}

static bool signatures_of_block(const struct accesses *c, size_t n, uint32_t dims,
                                struct signatures *t) {
    int64_t places = places_of(&c->access[0], dims);
    bool ok = places > 0;
    uint32_t *place = ok ? mem_alloc((size_t)places * sizeof *place) : NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = mark_block(&c->access[i], dims, place, UINT32_C(1) << i) >= 0;
    t->n = 0;
    for (int64_t k = 0; k < places && ok; k++)
        ok = count_signature(t, place[k], 1);
    mem_free(place);
    return ok;
}

/* A place is in the union when some access reaches it in every block. */
static bool union_size(const struct accesses *c, size_t n, double *out) {
    uint32_t group[TASK_MAX_RANK];
    size_t rank = c->in->task->tensors[c->tensor].rank;
    struct signatures *t = mem_alloc(3 * sizeof *t), *block = t + 1, *next = t + 2;
    bool ok = true;
    blocks_begin(group);
    for (size_t i = 0; i < n; i++)
        merge_dims(&c->access[i], group);
    t->n = 1;
    t->s[0] = (struct signature){UINT32_MAX, 1};
    for (size_t k = 0; k < rank && ok; k++) {
        if (!is_first(group[k], k))
            continue;
        ok = signatures_of_block(c, n, group[k], block);
        next->n = 0;
        for (size_t i = 0; i < t->n && ok; i++)
            for (size_t m = 0; m < block->n && ok; m++)
                ok = count_signature(next, t->s[i].bits & block->s[m].bits,
                                     t->s[i].count * block->s[m].count);
        memcpy(t, next, sizeof *t);
    }
    *out = 0;
    for (size_t i = 0; i < t->n; i++)
        *out += t->s[i].count;
    mem_free(t);
    return ok;
}

/* Reads at places from data are not united with others: they may hit the same elements. */
static double distinct(struct accesses *c) {
    double sum = 0, most = 0, gathered = 0, all = (double)c->in->tensors[c->tensor].count;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        double size = image_size(&c->access[i]);
        if (c->access[i].gather) {
            gathered = fmax(gathered, size);
            continue;
        }
        sum += size;
        most = fmax(most, size);
        struct access swap = c->access[n];
        c->access[n++] = c->access[i];
        c->access[i] = swap;
    }
    double together = most;
    if (n > 1 && most < all && !union_size(c, n, &together))
        together = fmin(sum, all);
    return fmax(together, gathered);
}

/* Of a symmetric matrix that is needed as a whole, one triangle is enough. */
static double without_mirror(const struct inst *in, size_t tensor, double elements) {
    const struct task *t = in->task;
    const struct bound_tensor *b = &in->tensors[tensor];
    for (size_t i = 0; i < t->nassumptions; i++)
        if (t->assumptions[i].kind == ASSUME_SYMMETRIC && t->assumptions[i].tensor == tensor &&
            elements == (double)b->count) {
            double n = (double)b->extent[t->tensors[tensor].rank - 1];
            return elements / n / n * (n * (n + 1) / 2);
        }
    return elements;
}

struct touched touched_of(const struct inst *in, size_t tensor, struct domain *const *domains) {
    struct accesses c = {.in = in, .tensor = tensor, .all = true};
    for (size_t i = 0; i < in->task->nstatements; i++)
        accesses_add(&c, domains[i], in->task->statements[i].body);
    struct touched t = {without_mirror(in, tensor, distinct(&c)), c.reads};
    accesses_release(&c);
    return t;
}

/* ---- writes ---- */

/* The element itself, as it was. */
static bool unchanged(const struct statement *s, const struct expr *e) {
    if (e->kind != EXPR_READ || e->ref != s->tensor)
        return false;
    for (size_t k = 0; k < e->nargs; k++)
        if (s->position[k] < 0 || e->args[k]->kind != EXPR_INDEX ||
            e->args[k]->ref != (size_t)s->position[k])
            return false;
    return true;
}

static double changed(struct domain *d, const struct statement *s, const struct expr *e) {
    if (d->empty || unchanged(s, e))
        return 0;
    if (e->kind != EXPR_IF)
        return domain_count(d, d->present);
    struct domain *yes = domain_copy(d), *no = domain_copy(d);
    domain_require(yes, e->args[0], true);
    domain_require(no, e->args[0], false);
    double a = changed(yes, s, e->args[1]), b = changed(no, s, e->args[2]);
    mem_free(yes);
    mem_free(no);
    if (!expr_reads(e->args[0]))
        return a + b;
    return pattern_pins(e->args[0]) ? fmax(a, b) : fmin(a, b);
}

double written_of(const struct inst *in, size_t tensor, struct domain *const *domains) {
    const struct task *t = in->task;
    double n = 0;
    if (t->tensors[tensor].role != TENSOR_INOUT)
        return (double)in->tensors[tensor].count;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            n += changed(domains[i], &t->statements[i], t->statements[i].body);
    return n;
}
