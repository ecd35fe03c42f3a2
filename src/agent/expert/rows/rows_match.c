/* Which statements make a group of rows.
 *
 * A fold belongs to the group of the first one when its kept and reduced variables run over the
 * same ranges and it reads results of the group only at its own row. A map of a row has the kept
 * variables of the group. A map of rows and columns has a variable for each of them: which is which
 * follows from where it reads the group's results, y[n,c,h,w] at mu[c]; where it reads them at
 * c//K, for K the extent of a reduced variable k, its c is g*K + k. */
#include "agent/expert/form/guards.h"
#include "agent/expert/rows/rows.h"
#include "spec/bounds.h"
#include "spec/pattern.h"
#include <string.h>

enum { SHIFTS_MOST = 64, COLUMNS_PER_SHIFT = 2 };

/* ---- expressions ---- */

static uint32_t kept_bits(const struct rows_group *g) {
    return (UINT32_C(1) << g->nkept) - 1;
}

/* g*K + k, for k < K. */
static bool is_grouped(const struct rows_group *g, const struct expr *e) {
    if (e->kind != EXPR_ADD || e->args[0]->kind != EXPR_MUL || e->args[1]->kind != EXPR_INDEX)
        return false;
    const struct expr *of = e->args[0]->args[0], *by = e->args[0]->args[1];
    size_t col = e->args[1]->ref;
    return of->kind == EXPR_INDEX && of->ref < g->nkept && col >= g->nkept &&
           expr_same(by, g->extent[col]) && expr_is_number(g->lo[col], 0);
}

/* How many values the variables take together; 0: not known. */
static int64_t values_of(const struct rows_group *g, uint32_t vars) {
    int64_t all = 1, n;
    for (size_t v = 0; v < g->nkept + g->ncols; v++) {
        if (!(vars >> v & 1))
            continue;
        if (!g->extent[v] || !expr_eval_dims(g->extent[v], g->in->dims, &n) || n < 1)
            return 0;
        all = all > INT32_MAX / n ? INT32_MAX : all * n;
    }
    return all;
}

/* Long sums that are moved by a few places, as the gradient of a filter's weights: a row for each
 * place of the filter. */
static bool is_shifted(const struct rows_group *g, const struct expr *e) {
    int64_t rows = values_of(g, expr_vars(e) & kept_bits(g)),
            columns = values_of(g, expr_vars(e) & ~kept_bits(g));
    return rows > 0 && rows <= SHIFTS_MOST && columns / rows >= COLUMNS_PER_SHIFT;
}

/* An index of both a row and a column, as in a window: neighbouring rows share their terms. */
static bool has_window(const struct rows_group *g, const struct expr *e) {
    for (size_t i = 0; e->kind == EXPR_READ && i < e->nargs; i++) {
        uint32_t uses = expr_vars(e->args[i]);
        if ((uses & kept_bits(g)) && (uses & ~kept_bits(g)) && !expr_reads(e->args[i]) &&
            !is_grouped(g, e->args[i]) && !is_shifted(g, e->args[i]))
            return true;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (has_window(g, expr_part(e, i)))
            return true;
    return false;
}

/* ---- spaces ---- */

static bool is_bound(const struct rows_group *g, const struct expr *e) {
    return !(expr_vars(e) & ~kept_bits(g)) && !expr_has(e, EXPR_REDUCE);
}

/* Columns that end where the row says, as in j <= i, of a tensor whose rows all have as many:
 * all of these are the columns, and a guard selects the terms. So packs are whole, and maps of all
 * columns belong to the group. */
static bool is_capped(const struct rows_group *g, const struct reduce *r) {
    const struct reduce_var *v = &r->vars[0];
    return r->nvars == 1 && expr_is_number(v->lo, 0) && (expr_vars(v->hi) || expr_reads(v->hi)) &&
           is_bound(g, v->hi);
}

static struct expr *capped_extent(const struct rows_group *g, const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    const struct expr *e = NULL;
    if (is_capped(g, r))
        e = form_own_extent(g->in->task, s->body->args[0], r->vars[0].var);
    return e && !expr_vars(e) ? (struct expr *)e : r->vars[0].hi;
}

/* Of minimum(E, n) what there is beside the extent E. */
static const struct expr *beside_extent(const struct expr *hi, const struct expr *extent) {
    bool least = hi->kind == EXPR_CALL && hi->function == FUNCTION_MINIMUM;
    return least && expr_same(hi->args[0], extent) ? hi->args[1] : hi;
}

/* It reads only what is there before the kernel begins. */
static bool reads_inputs(const struct task *t, const struct expr *e) {
    bool all = e->kind != EXPR_READ || tensor_is_input(&t->tensors[e->ref]);
    for (size_t i = 0; i < e->nargs && all; i++)
        all = reads_inputs(t, e->args[i]);
    return all;
}

/* The first column from which on a row has no term, by what its guard says: j < n[i], j < i + 1.
 * NULL: all columns may be. */
static struct expr *until_of(const struct rows_group *g, const struct expr *guard) {
    enum { ENDS = 4 };
    const struct expr *ends[ENDS];
    struct expr *all = NULL;
    size_t n = guard && g->ncols == 1 ? form_ends(guard, g->nkept, true, ends, ENDS) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_bound(g, ends[i]) || !reads_inputs(g->in->task, ends[i]))
            continue;
        struct expr *e = (struct expr *)ends[i];
        if (all) {
            e = expr_pair(g->mem, EXPR_CALL, all, e);
            e->function = FUNCTION_MINIMUM;
        }
        all = e;
    }
    return all;
}

/* The space of the first fold becomes that of the group. */
static bool start_space(struct rows_group *g, const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    g->nkept = s->nindex;
    g->ncols = r->nvars;
    for (size_t i = 0; i < g->nkept; i++)
        if (!(g->extent[i] = statement_extent(g->in->task, s, i)))
            return false;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        if (v->var != g->nkept + i || !is_bound(g, v->lo) || !is_bound(g, v->hi))
            return false;
        const struct expr *extent = i ? v->hi : capped_extent(g, s);
        g->extent[v->var] = (struct expr *)extent;
        g->lo[v->var] = v->lo;
        g->ragged |= !expr_is_number(v->lo, 0) || expr_vars(extent) || expr_reads(extent);
    }
    return !g->ragged || g->ncols == 1;
}

static bool same_space(const struct rows_group *g, const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    if (s->nindex != g->nkept || r->nvars != g->ncols)
        return false;
    for (size_t i = 0; i < g->nkept; i++) {
        const struct expr *e = statement_extent(g->in->task, s, i);
        if (!e || !expr_same(e, g->extent[i]))
            return false;
    }
    for (size_t i = 0; i < r->nvars; i++) {
        size_t v = r->vars[i].var;
        const struct expr *extent = i || g->ragged ? r->vars[i].hi : capped_extent(g, s);
        if (v != g->nkept + i || !expr_same(r->vars[i].lo, g->lo[v]) ||
            !expr_same(extent, g->extent[v]))
            return false;
    }
    return true;
}

/* Which columns are terms; NULL: all. */
static const struct expr *guard_of(const struct rows_group *g, const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    const struct reduce_var *v = &r->vars[0];
    if (expr_same(v->hi, g->extent[v->var]))
        return r->guard;
    const struct expr *until = beside_extent(v->hi, g->extent[v->var]);
    const struct expr *below = expr_pair(g->mem, EXPR_LT, expr_variable(g->mem, v->var), until);
    return r->guard ? expr_pair(g->mem, EXPR_AND, below, r->guard) : below;
}

static bool is_fold_of_rows(const struct statement *s) {
    const struct reduce *r = s->body->reduce;
    bool prefix = form_is_fold(s) && pattern_is_prefix(s->body) && r->op < REDUCTION_ARGMAX;
    return form_is_fold(s) && !form_is_product(s) && !prefix &&
           !(r->guard && expr_has(r->guard, EXPR_REDUCE));
}

/* ---- reads of the group's results ---- */

const struct rows_fold *rows_fold_of(const struct rows_group *g, size_t tensor) {
    for (size_t i = 0; i < g->nfolds; i++)
        if (g->folds[i].s->tensor == tensor)
            return &g->folds[i];
    return NULL;
}

/* The result of the very row: m[i], C[i,0]. */
static bool is_own_row(const struct rows_fold *f, const struct expr *read) {
    for (size_t i = 0; i < read->nargs; i++) {
        int v = f->s->position[i];
        if (v < 0 ? !expr_same(read->args[i], f->s->constant[i])
                  : read->args[i]->kind != EXPR_INDEX || read->args[i]->ref != (size_t)v)
            return false;
    }
    return true;
}

struct reads {
    const struct rows_group *g;
    const bool *pending; /* tensors that are not there yet */
    bool own;            /* all reads of results are at the own row */
    bool any;            /* there are some */
    size_t level;        /* above all of them */
};

/* False: it reads what the group cannot give it. */
static bool look_at_reads(struct reads *r, const struct expr *e) {
    const struct rows_fold *f = e->kind == EXPR_READ ? rows_fold_of(r->g, e->ref) : NULL;
    if (f) {
        r->any = true;
        r->own &= is_own_row(f, e);
        r->level = f->level + 1 > r->level ? f->level + 1 : r->level;
    } else if (e->kind == EXPR_READ && r->pending[e->ref]) {
        return false;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!look_at_reads(r, expr_part(e, i)))
            return false;
    return true;
}

/* ---- folds and maps of rows ---- */

static bool take_fold(struct rows_group *g, const struct statement *s, const bool *pending) {
    struct reads r = {.g = g, .pending = pending, .own = true};
    if (g->nfolds == ROWS_FOLDS || !is_fold_of_rows(s) || has_window(g, s->body) ||
        !look_at_reads(&r, s->body) || !r.own)
        return false;
    g->folds[g->nfolds++] = (struct rows_fold){
        .s = s, .term = s->body->args[0], .guard = guard_of(g, s), .level = r.level};
    struct expr *until = g->ragged ? NULL : until_of(g, g->folds[g->nfolds - 1].guard);
    bool same = g->nfolds == 1 || (until && g->until && expr_same(g->until, until));
    g->until = same ? until : NULL;
    return true;
}

static void add_map(struct rows_group *g, const struct statement *s, struct expr *const *map,
                    bool whole) {
    struct rows_map *m = &g->maps[g->nmaps++];
    *m = (struct rows_map){.s = s, .whole = whole};
    m->body = expr_replace(s->body, map, g->mem);
    m->place = expr_replace(expr_own(g->in->task, s, g->mem), map, g->mem);
    g->any_whole |= whole;
}

static bool take_row_map(struct rows_group *g, const struct statement *s, const bool *pending) {
    struct reads r = {.g = g, .pending = pending, .own = true};
    struct expr *map[TASK_MAX_VARS] = {NULL};
    if (g->nmaps == ROWS_MAPS || !form_is_map(s) || s->nindex != g->nkept ||
        !look_at_reads(&r, s->body) || !r.own || !r.any)
        return false;
    for (size_t i = 0; i < g->nkept; i++) {
        const struct expr *e = statement_extent(g->in->task, s, i);
        if (!e || !expr_same(e, g->extent[i]))
            return false;
        map[i] = expr_variable(g->mem, i);
    }
    add_map(g, s, map, false);
    return true;
}

/* ---- maps of rows and columns ---- */

struct matching {
    struct rows_group *g;
    const struct statement *s;
    struct expr *map[TASK_MAX_VARS]; /* of the statement's variables; NULL: not known yet */
    uint32_t columns;                /* that have one */
    uint32_t kept;
};

static bool settle(struct matching *m, size_t var, struct expr *e) {
    if (!m->map[var]) {
        m->map[var] = e;
        return true;
    }
    return expr_same(m->map[var], e);
}

/* A result is read at c//K: c is g*K + k. */
static bool match_grouped(struct matching *m, size_t kept, const struct expr *arg) {
    struct rows_group *g = m->g;
    if (arg->kind != EXPR_FLOORDIV || arg->args[0]->kind != EXPR_INDEX)
        return false;
    size_t col = g->nkept, var = arg->args[0]->ref;
    while (col < g->nkept + g->ncols && !expr_same(g->extent[col], arg->args[1]))
        col++;
    if (col == g->nkept + g->ncols || ((m->columns >> col & 1) && !m->map[var]))
        return false;
    struct expr *high = expr_pair(g->mem, EXPR_MUL, expr_variable(g->mem, kept), g->extent[col]);
    m->columns |= UINT32_C(1) << col;
    m->kept |= UINT32_C(1) << kept;
    g->groups[0] = expr_pair(g->mem, EXPR_MUL, g->extent[kept], g->extent[col]);
    g->groups[1] = statement_extent(g->in->task, m->s, var);
    return g->groups[1] &&
           settle(m, var, expr_pair(g->mem, EXPR_ADD, high, expr_variable(g->mem, col)));
}

static bool match_read(struct matching *m, const struct rows_fold *f, const struct expr *read) {
    for (size_t i = 0; i < read->nargs; i++) {
        int v = f->s->position[i];
        const struct expr *arg = read->args[i];
        if (v < 0 && !expr_same(arg, f->s->constant[i]))
            return false;
        if (v < 0 || match_grouped(m, (size_t)v, arg))
            continue;
        const struct expr *e =
            arg->kind == EXPR_INDEX ? statement_extent(m->g->in->task, m->s, arg->ref) : NULL;
        if (!e || !expr_same(e, m->g->extent[v]) ||
            !settle(m, arg->ref, expr_variable(m->g->mem, (size_t)v)))
            return false;
        m->kept |= UINT32_C(1) << v;
    }
    return true;
}

static bool match_reads(struct matching *m, const struct expr *e) {
    const struct rows_fold *f = e->kind == EXPR_READ ? rows_fold_of(m->g, e->ref) : NULL;
    if (f && !match_read(m, f, e))
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!match_reads(m, e->args[i]))
            return false;
    return true;
}

/* What is left over, in order: a variable for each column. */
static bool match_rest(struct matching *m) {
    const struct rows_group *g = m->g;
    size_t col = g->nkept, end = g->nkept + g->ncols;
    for (size_t i = 0; i < m->s->nindex; i++) {
        if (m->map[i])
            continue;
        while (col < end && (m->columns >> col & 1))
            col++;
        const struct expr *e = statement_extent(g->in->task, m->s, i);
        if (col == end || !e || !expr_same(e, g->extent[col]))
            return false;
        m->columns |= UINT32_C(1) << col;
        m->map[i] = expr_variable(g->mem, col);
    }
    uint32_t all = (UINT32_C(1) << end) - 1;
    return (m->columns | m->kept) == all;
}

static bool take_whole_map(struct rows_group *g, const struct statement *s, const bool *pending) {
    struct reads r = {.g = g, .pending = pending, .own = true};
    struct matching m = {.g = g, .s = s};
    struct expr *before[2] = {g->groups[0], g->groups[1]};
    if (g->ragged || g->nmaps == ROWS_MAPS || !form_is_map(s) || !look_at_reads(&r, s->body) ||
        !r.any)
        return false;
    if (!match_reads(&m, s->body) || !match_rest(&m)) {
        memcpy(g->groups, before, sizeof before);
        return false;
    }
    add_map(g, s, m.map, true);
    return true;
}

/* A map that reads no result but has the variables of one that does: h beside y in
 * h[i,j] = a[i,j], y[i,j] = a[i,j] * g[i]. */
static bool take_beside(struct rows_group *g, const struct statement *s, const bool *pending) {
    struct reads r = {.g = g, .pending = pending, .own = true};
    struct expr *map[TASK_MAX_VARS] = {NULL};
    const struct rows_map *like = NULL;
    for (size_t i = 0; i < g->nmaps; i++)
        if (g->maps[i].whole)
            like = &g->maps[i];
    if (!like || g->groups[0] || g->nmaps == ROWS_MAPS || !form_is_map(s) ||
        s->nindex != like->s->nindex || !look_at_reads(&r, s->body) || r.any)
        return false;
    for (size_t i = 0; i < s->nindex; i++) {
        const struct expr *a = statement_extent(g->in->task, s, i),
                          *b = statement_extent(g->in->task, like->s, i);
        if (!a || !b || !expr_same(a, b))
            return false;
        for (size_t d = 0; d < like->place->nargs; d++)
            if (like->s->position[d] == (int)i)
                map[i] = like->place->args[d];
    }
    add_map(g, s, map, true);
    return true;
}

/* ---- tensors that are read and written ---- */

static bool reads_elsewhere(const struct expr *e, const struct expr *place) {
    if (e->kind == EXPR_READ && e->ref == place->ref && !expr_same(e, place))
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (reads_elsewhere(expr_part(e, i), place))
            return true;
    return false;
}

/* The body of a fold, or, after those, of a map. */
static const struct expr *body_of(const struct rows_group *g, size_t i) {
    return i < g->nfolds ? g->folds[i].s->body : g->maps[i - g->nfolds].body;
}

static bool is_inout(const struct rows_group *g, const struct statement *s) {
    return g->in->task->tensors[s->tensor].role == TENSOR_INOUT;
}

/* An inout tensor is read as it was: only at the element that is written, and by whoever writes
 * it. */
static bool keeps_inouts(const struct rows_group *g) {
    for (size_t k = 0; k < g->nfolds + g->nmaps; k++) {
        const struct expr *e = body_of(g, k);
        for (size_t i = 0; i < g->nfolds; i++)
            if (is_inout(g, g->folds[i].s) && expr_reads_tensor(e, g->folds[i].s->tensor))
                return false;
        for (size_t i = 0; i < g->nmaps; i++) {
            const struct rows_map *m = &g->maps[i];
            bool other = k != g->nfolds + i;
            if (is_inout(g, m->s) && (reads_elsewhere(e, m->place) ||
                                      (!m->whole && other && expr_reads_tensor(e, m->s->tensor))))
                return false;
        }
    }
    return true;
}

/* ---- groups ---- */

static void find_pending(const struct task *t, const bool *allowed, bool *pending) {
    for (size_t i = 0; i < t->nstatements; i++) {
        size_t tensor = t->statements[i].tensor;
        pending[tensor] |= allowed[i] && t->tensors[tensor].role != TENSOR_INOUT;
    }
}

static int count_bits(uint32_t v) {
    int n = 0;
    for (; v; v &= v - 1)
        n++;
    return n;
}

/* The read of most variables. */
static void find_main(const struct rows_group *g, const struct expr *e, const struct expr **best) {
    if (e->kind == EXPR_READ && !rows_fold_of(g, e->ref) &&
        (!*best || count_bits(expr_vars(e)) > count_bits(expr_vars(*best))))
        *best = e;
    for (size_t i = 0; i < expr_nparts(e); i++)
        find_main(g, expr_part(e, i), best);
}

/* Of the read of most variables the last index is a row's: columns lie apart in memory. */
static bool is_across(const struct rows_group *g, const struct statement *s) {
    const struct expr *e = NULL;
    find_main(g, s->body, &e);
    const struct expr *last = e && e->nargs ? e->args[e->nargs - 1] : NULL;
    return last && last->kind == EXPR_INDEX && last->ref < g->nkept;
}

bool rows_match(const struct inst *in, size_t first, const bool *done, bool whole,
                struct arena *mem, struct rows_group *g, bool *take) {
    const struct task *t = in->task;
    bool pending[TASK_MAX_TENSORS] = {false}, allowed[TASK_MAX_STATEMENTS];
    for (size_t i = 0; i < t->nstatements; i++)
        allowed[i] = !done || !done[i];
    while (!done && first + 1 < t->nstatements && !form_is_fold(&t->statements[first]))
        first++; /* of a step the first fold: maps beside it may stand before */
    const struct statement *s = &t->statements[first];
    *g = (struct rows_group){.in = in, .mem = mem};
    find_pending(t, allowed, pending);
    memset(take, 0, t->nstatements * sizeof *take);
    if (!form_is_fold(s) || s->nindex + s->body->reduce->nvars >= TASK_MAX_VARS ||
        !start_space(g, s) || !take_fold(g, s, pending))
        return false;
    take[first] = true;
    for (size_t i = first + 1; i < t->nstatements; i++)
        if (allowed[i] && form_is_fold(&t->statements[i]) && same_space(g, &t->statements[i]) &&
            is_across(g, &t->statements[i]) == is_across(g, s))
            take[i] = take_fold(g, &t->statements[i], pending);
    for (size_t i = first + 1; i < t->nstatements; i++)
        if (allowed[i] && !take[i])
            take[i] = take_row_map(g, &t->statements[i], pending) ||
                      (whole && take_whole_map(g, &t->statements[i], pending));
    for (size_t i = 0; i < t->nstatements; i++)
        if (whole && allowed[i] && !take[i])
            take[i] = take_beside(g, &t->statements[i], pending);
    return keeps_inouts(g);
}

/* ---- sizes ---- */

int64_t rows_extent(const struct rows_group *g, size_t var) {
    int64_t n = 1;
    const struct expr *e = g->extent[var];
    if (!expr_vars(e) && !expr_reads(e) && expr_eval_dims(e, g->in->dims, &n))
        return n;
    struct ranges r = ranges_of(g->in, g->folds[0].s);
    struct range v;
    return range_of(&r, e, &v) == RANGE_OK ? v.hi : 1;
}

static int64_t product(const struct rows_group *g, size_t from, size_t to) {
    int64_t n = 1;
    for (size_t i = from; i < to; i++) {
        int64_t e = rows_extent(g, i);
        n = e > 0 && n > INT64_MAX / e ? INT64_MAX : n * e;
    }
    return n;
}

int64_t rows_count(const struct rows_group *g) {
    return product(g, 0, g->nkept);
}
int64_t rows_columns(const struct rows_group *g) {
    return product(g, g->nkept, g->nkept + g->ncols);
}

static const struct expr *main_read(const struct rows_group *g) {
    const struct expr *best = NULL;
    for (size_t i = 0; i < g->nfolds; i++)
        find_main(g, g->folds[i].s->body, &best);
    return best;
}

int rows_lane_var(const struct rows_group *g) {
    const struct expr *e = main_read(g);
    const struct expr *last = e && e->nargs ? e->args[e->nargs - 1] : NULL;
    return last && last->kind == EXPR_INDEX && last->ref < g->nkept ? (int)last->ref : -1;
}

static void add_bytes(const struct rows_group *g, const struct expr *e, uint64_t *seen,
                      int64_t *bytes) {
    uint32_t all = (UINT32_C(1) << (g->nkept + g->ncols)) - 1;
    if (e->kind == EXPR_READ && expr_vars(e) == all && !(*seen >> e->ref & 1)) {
        *seen |= UINT64_C(1) << e->ref;
        *bytes += (int64_t)dtype_info(g->in->task->tensors[e->ref].dtype)->bytes;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        add_bytes(g, expr_part(e, i), seen, bytes);
}

int64_t rows_column_bytes(const struct rows_group *g) {
    int64_t bytes = 0;
    uint64_t seen = 0;
    for (size_t i = 0; i < g->nfolds; i++)
        add_bytes(g, g->folds[i].s->body, &seen, &bytes);
    return bytes ? bytes : 4;
}
