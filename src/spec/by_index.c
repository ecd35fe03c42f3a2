/* Evaluates the numbers of all terms in blocks of lanes along the innermost loop, and sorts the
 * terms by counting. */
#include "spec/by_index.h"

#include "base/arena.h"
#include "base/parallel.h"
#include "spec/nest.h"
#include <math.h>
#include <string.h>

/* Fewer results than this go through all terms: sorting costs as much. */
enum { LISTS_LEAST = 4 };

/* The axis is one that `vars` has. */
static bool is_of(const struct axis *a, uint32_t vars) {
    return vars >> a->var & 1;
}

static int64_t bound_value(const struct nest *n, const struct bound *b) {
    int64_t v = 0;
    bool known = expr_eval_dims(b->e, n->in->dims, &v);
    return known ? v : 0;
}

static int64_t loop_length(const struct nest *n, size_t k) {
    int64_t length = bound_value(n, &n->loops[k].hi) - bound_value(n, &n->loops[k].lo);
    return length > 0 ? length : 0;
}

double by_index_all_terms(const struct nest *n) {
    double terms = 1;
    for (size_t k = 0; k < n->nloops; k++)
        terms *= (double)loop_length(n, k);
    return terms;
}

/* How many values the axes of `vars` have together. */
static double values_of(const struct nest *n, uint32_t vars) {
    double values = 1;
    for (size_t k = 0; k < n->naxes; k++)
        values *= is_of(&n->axes[k], vars) ? (double)n->axes[k].n : 1;
    return values;
}

bool by_index_pays(struct nest *n, const struct expr *reduce) {
    if (!pattern_is_by_index(reduce, &n->by))
        return false;
    uint32_t axes = 0;
    for (size_t k = 0; k < n->naxes; k++)
        axes |= UINT32_C(1) << n->axes[k].var;
    for (size_t k = 0; k < n->nloops; k++)
        if (n->loops[k].lo.vars || n->loops[k].hi.vars)
            return false;
    double all = values_of(n, n->by.pinned | n->by.shared);
    return !((n->by.pinned | n->by.shared) & ~axes) && by_index_all_terms(n) < 0x1p32 &&
           values_of(n, n->by.pinned) >= LISTS_LEAST && all < 0x1p40;
}

/* ---- the numbers of the terms ---- */

static void make_program(struct by_index_lists *l, size_t pin, const struct ranges *r) {
    const struct nest *n = l->n;
    struct program *p = &l->program[l->nprograms++];
    unsigned order[TASK_MAX_VARS] = {0}, inner = 1;
    for (size_t k = 0; k < n->naxes; k++)
        order[n->axes[k].var] = 1;
    for (size_t k = 0; k < n->nloops; k++)
        order[n->loops[k].var] = inner = 2 + (unsigned)k;
    program_init(p, n->in, n->s, n->p.stages, n->p.nstages, r, false);
    program_body(p, n->by.pin[pin].key, false);
    program_schedule(p, (int)n->loops[n->nloops - 1].var, order, inner);
    p->ranges = NULL;
}

/* Of one term, along each equated axis: the results that its number may be, from 0 on. */
struct reach {
    int64_t lo[BY_INDEX_MOST], hi[BY_INDEX_MOST];
};

enum { NO_LIST = -1, SEVERAL = -2 };

/* What is known of the terms while they are sorted. */
struct sorting {
    const struct by_index_lists *l;
    struct term_lists *to;
    struct machine m[BY_INDEX_MOST];
    const struct axis *axis[BY_INDEX_MOST];
    int64_t stride[BY_INDEX_MOST];
    int64_t *list; /* of each term, or NO_LIST, or SEVERAL */
    struct reach *several;
    size_t nseveral, cap;
    int64_t entries;
    bool unbounded; /* some number may be any */
};

/* The whole numbers that x may be, as places on the axis. */
static void reach_of(struct sorting *s, size_t pin, struct value x, struct reach *r) {
    const struct axis *a = s->axis[pin];
    double far = x.e > 0 ? s->l->program[pin].rules.limits.worst * sqrt(x.e) : 0;
    double lo = ceil(x.v - far) - (double)a->lo, hi = floor(x.v + far) - (double)a->lo;
    s->unbounded |= isinf(x.e);
    if (x.e > 0 && !(lo <= hi)) { /* infinite, or no number: who knows */
        lo = 0;
        hi = (double)a->n - 1;
    }
    bool some = lo <= hi && lo < (double)a->n && hi >= 0;
    r->lo[pin] = some ? (int64_t)fmax(lo, 0) : 0;
    r->hi[pin] = some ? (int64_t)fmin(hi, (double)a->n - 1) : -1;
}

static void take_term(struct sorting *s, int64_t term, size_t lane) {
    struct reach r;
    int64_t list = 0, lists = 1;
    for (size_t k = 0; k < s->l->nprograms; k++) {
        reach_of(s, k, lane_of(&s->m[k].regs[s->l->program[k].result], lane), &r);
        list += r.lo[k] * s->stride[k];
        lists *= r.hi[k] - r.lo[k] + 1;
    }
    s->entries += lists;
    s->list[term] = lists == 0 ? NO_LIST : lists == 1 ? list : SEVERAL;
    if (lists > 1) {
        s->several = mem_grow(s->several, &s->cap, s->nseveral + 1, sizeof *s->several);
        s->several[s->nseveral++] = r;
    }
}

/* Terms that may belong to several results are rare. Where they are not, lists save nothing: a term
 * of a list costs as much as many terms that are gone through together. */
static bool too_many(const struct sorting *s) {
    enum { TOGETHER = 32, ENTRIES_MOST = 1 << 26 };
    double pairs = (double)s->l->terms * (double)s->l->results;
    double most = fmin(pairs / TOGETHER, ENTRIES_MOST);
    return (double)s->entries > fmax(most, 4.0 * (double)s->l->terms + 4096);
}

static void take_lanes(struct sorting *s, const int64_t *at, int64_t first, size_t lanes) {
    for (size_t k = 0; k < s->l->nprograms; k++) {
        memcpy(s->m[k].at, at, sizeof s->m[k].at);
        s->m[k].n = lanes;
        machine_run(&s->m[k], 0, s->l->program[k].n, 1);
    }
    for (size_t lane = 0; lane < lanes; lane++)
        take_term(s, first + (int64_t)lane, lane);
}

static void take_terms(struct sorting *s, int64_t *at) {
    const struct nest *n = s->l->n;
    int64_t length = s->l->length[n->nloops - 1];
    size_t var = n->loops[n->nloops - 1].var;
    for (int64_t first = 0; first < s->l->terms && !too_many(s); first += length) {
        by_index_place(s->l, (uint32_t)first, at);
        int64_t lo = at[var];
        for (int64_t k = 0; k < length && !too_many(s); k += LANES) {
            at[var] = lo + k;
            take_lanes(s, at, first + k, length - k < LANES ? (size_t)(length - k) : LANES);
        }
    }
}

/* ---- sorting ---- */

/* Every list that the reach of a term has; `to` has what stands for the term in it. */
static void each_list(const struct sorting *s, const struct reach *r, size_t pin, int64_t list,
                      uint32_t term, bool place) {
    if (pin < BY_INDEX_MOST && pin < s->l->nprograms) {
        for (int64_t k = r->lo[pin]; k <= r->hi[pin]; k++)
            each_list(s, r, pin + 1, list + k * s->stride[pin], term, place);
        return;
    }
    int64_t *start = &s->to->start[list];
    if (place)
        s->to->term[(*start)++] = term;
    else
        start[1]++;
}

static void each_term(const struct sorting *s, bool place) {
    size_t next = 0;
    for (int64_t t = 0; t < s->l->terms; t++) {
        int64_t list = s->list[t];
        if (list == SEVERAL)
            each_list(s, &s->several[next++], 0, 0, (uint32_t)t, place);
        else if (list != NO_LIST && place)
            s->to->term[s->to->start[list]++] = (uint32_t)t;
        else if (list != NO_LIST)
            s->to->start[list + 1]++;
    }
}

/* start[k] is how many terms lie before list k, whose terms are placed from there on; then each
 * start has moved to the next one's. */
static bool sort_terms(struct sorting *s) {
    int64_t lists = s->l->results;
    s->to->start = mem_try_resize(NULL, ((size_t)lists + 1) * sizeof *s->to->start);
    s->to->term = mem_try_resize(NULL, ((size_t)s->entries + 1) * sizeof *s->to->term);
    if (!s->to->start || !s->to->term)
        return false;
    memset(s->to->start, 0, ((size_t)lists + 1) * sizeof *s->to->start);
    each_term(s, false);
    for (int64_t k = 0; k < lists; k++)
        s->to->start[k + 1] += s->to->start[k];
    each_term(s, true);
    memmove(s->to->start + 1, s->to->start, (size_t)lists * sizeof *s->to->start);
    s->to->start[0] = 0;
    return true;
}

/* The lists of item `i` of the shared variables. */
static bool make_lists(struct sorting *s, int64_t i) {
    const struct by_index_lists *l = s->l;
    int64_t at[TASK_MAX_VARS] = {0};
    s->to = &l->of[i];
    s->nseveral = 0;
    s->entries = 0;
    s->unbounded = false;
    for (size_t k = l->n->naxes; k-- > 0;)
        if (is_of(&l->n->axes[k], l->n->by.shared)) {
            at[l->n->axes[k].var] = l->n->axes[k].lo + i % l->n->axes[k].n;
            i /= l->n->axes[k].n;
        }
    take_terms(s, at);
    s->to->everything = too_many(s);
    s->to->unbounded = s->to->everything && s->unbounded;
    return s->to->everything || sort_terms(s);
}

static void make_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct by_index_lists *l = ctx;
    const struct nest *n = l->n;
    struct sorting s = {.l = l};
    int64_t stride = 1;
    (void)part;
    for (size_t k = n->naxes; k-- > 0;)
        for (size_t pin = 0; pin < n->by.npins; pin++)
            if (n->by.pin[pin].var == n->axes[k].var) {
                s.axis[pin] = &n->axes[k];
                s.stride[pin] = stride;
                stride *= n->axes[k].n;
            }
    s.list = mem_try_resize(NULL, ((size_t)l->terms + 1) * sizeof *s.list);
    bool ok = s.list != NULL;
    for (size_t k = 0; k < l->nprograms; k++)
        ok = machine_init(&s.m[k], &l->program[k], l->contents) && ok;
    for (int64_t i = first; i < last; i++)
        l->of[i].failed = !ok || !make_lists(&s, i);
    for (size_t k = 0; k < l->nprograms; k++)
        machine_release(&s.m[k]);
    mem_free(s.list);
    mem_free(s.several);
}

bool by_index_make(struct by_index_lists *l, const struct nest *n, const struct content *contents,
                   unsigned threads) {
    struct ranges r = nest_ranges(n);
    bool ok = true;
    *l = (struct by_index_lists){.n = n, .contents = contents};
    l->terms = (int64_t)by_index_all_terms(n);
    l->results = (int64_t)values_of(n, n->by.pinned);
    l->count = (int64_t)values_of(n, n->by.shared);
    for (size_t k = 0; k < n->nloops; k++) {
        l->lo[k] = bound_value(n, &n->loops[k].lo);
        l->length[k] = loop_length(n, k);
    }
    for (size_t k = 0; k < n->by.npins; k++)
        make_program(l, k, &r);
    l->of = mem_try_resize(NULL, ((size_t)l->count + 1) * sizeof *l->of);
    if (!l->of)
        return false;
    memset(l->of, 0, (size_t)l->count * sizeof *l->of);
    parallel_for(threads, l->count, make_piece, l);
    for (int64_t i = 0; i < l->count; i++)
        ok &= !l->of[i].failed;
    return ok;
}

void by_index_release(struct by_index_lists *l) {
    for (int64_t i = 0; l->of && i < l->count; i++) {
        mem_free(l->of[i].start);
        mem_free(l->of[i].term);
    }
    for (size_t k = 0; k < l->nprograms; k++)
        program_release(&l->program[k]);
    mem_free(l->of);
    *l = (struct by_index_lists){0};
}

/* Which of the values of some variables these are. */
static int64_t number_of(const struct nest *n, uint32_t vars, const int64_t *at) {
    int64_t number = 0;
    for (size_t k = 0; k < n->naxes; k++)
        if (is_of(&n->axes[k], vars))
            number = number * n->axes[k].n + at[n->axes[k].var] - n->axes[k].lo;
    return number;
}

bool by_index_unbounded(const struct by_index_lists *l, const int64_t *at) {
    return l->of[number_of(l->n, l->n->by.shared, at)].unbounded;
}

const uint32_t *by_index_terms(const struct by_index_lists *l, const int64_t *at, int64_t *count) {
    const struct nest *n = l->n;
    int64_t list = number_of(n, n->by.pinned, at);
    const struct term_lists *lists = &l->of[number_of(n, n->by.shared, at)];
    if (lists->everything)
        return NULL;
    *count = lists->start[list + 1] - lists->start[list];
    return lists->term + lists->start[list];
}

void by_index_place(const struct by_index_lists *l, uint32_t term, int64_t *at) {
    const struct nest *n = l->n;
    int64_t rest = term;
    for (size_t k = n->nloops; k-- > 0;) {
        at[n->loops[k].var] = l->lo[k] + (k ? rest % l->length[k] : rest);
        rest = k ? rest / l->length[k] : 0;
    }
}
