/* Runs the loops of a nest, on several threads: an item is a block of lanes (points, columns), one
 * result (rows) or one scan. Items are independent of each other and of who runs them. */
#include "base/wide.h"

#include "spec/nest.h"

#include "base/parallel.h"
#include "spec/contract.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum pass { PASS_ADD, PASS_LOOK, PASS_TIES };

/* One thread's share. */
struct worker {
    const struct nest *n;
    struct machine m;
    struct columns *c;
    const struct contraction *direct;
    struct row r;
    enum pass pass;
    unsigned pending; /* lowest level of what has changed since the body last ran */
    double far[LANES];
    double peak;
};

struct running {
    const struct nest *n;
    const struct content *contents;
    struct contraction direct;
    double peak[PARALLEL_MOST];
    bool failed[PARALLEL_MOST];
};

static void changed(struct worker *w, unsigned level) {
    w->pending = level < w->pending ? level : w->pending;
}

/* Runs the guard and, unless no lane takes part, the body. */
static bool run_term(struct worker *w) {
    const struct program *p = &w->n->p;
    if (p->guard >= 0) {
        const struct reg *g = &w->m.regs[p->guard];
        machine_run(&w->m, 0, p->guard_end, w->pending);
        if (p->guard_uniform && g->v[0] == 0 && !(g->e[0] > 0))
            return false;
    }
    machine_run(&w->m, p->guard_end, p->n, w->pending);
    w->pending = p->inner;
    return true;
}

/* A pad reads beyond an edge, or only data say where it reads. As deep as the tree. */
static bool pads_beyond(struct scalar *at, const struct expr *e) {
    const struct expr *read = e->kind == EXPR_PAD ? e->args[0] : NULL;
    for (size_t k = 0; read && k < read->nargs; k++) {
        const struct expr *index = read->args[k];
        double v = pattern_is_pure(index) ? scalar_eval(at, index) : -1;
        if (!(v >= 0 && v < (double)at->in->tensors[read->ref].extent[k]))
            return true;
    }
    for (size_t k = 0; k < e->nargs && e->kind != EXPR_REDUCE; k++)
        if (pads_beyond(at, e->args[k]))
            return true;
    return false;
}

/* What lies beyond an edge counts for 0: one kernel multiplies it with a NaN, another skips it. */
static void doubt_padded(struct worker *w, struct reg *term) {
    const struct nest *n = w->n;
    bool columns = n->mode == NEST_COLUMNS;
    if (!n->pads)
        return;
    struct scalar at = {.in = n->in};
    memcpy(at.var, w->m.at, sizeof w->m.at);
    for (size_t l = 0; l < w->m.n; l++) {
        unsigned seen = columns ? w->c->seen[l] : (unsigned)w->r.c.seen;
        if (!isnan(term->v[l]) || seen & SEEN_NAN)
            continue;
        if (n->p.lane >= 0)
            at.var[n->p.lane] = w->m.at[n->p.lane] + (int64_t)l;
        if (pads_beyond(&at, n->body))
            term->e[l] = INFINITY;
    }
}

static const struct reg *guard_of(const struct worker *w) {
    return w->n->p.guard < 0 ? NULL : &w->m.regs[w->n->p.guard];
}

static int64_t place_of(const struct worker *w, size_t lane) {
    const struct target *t = &w->n->target;
    int64_t at = 0;
    BUG_IF(!affine_at(&t->place, w->m.at, &at));
    return w->n->p.lane < 0 ? at : at + (int64_t)lane * t->place.coef[w->n->p.lane];
}

static void store(const struct nest *n, int64_t at, struct value d, double peak) {
    const struct target *t = &n->target;
    if (t->finish) {
        finish_results(t->finish, &d.v, &d.e, 1, &t->value[at], &t->error[at]);
    } else {
        t->value[at] = d.v;
        t->error[at] = d.e;
    }
    if (t->peak)
        t->peak[at] = peak;
}

static void store_apart(const struct target *t, int64_t at, int64_t step, const double *v,
                        const double *e, size_t n) {
    double value[LANES], error[LANES];
    if (t->finish) {
        finish_results(t->finish, v, e, n, value, error);
        v = value;
        e = error;
    }
    for (size_t l = 0; l < n; l++) {
        t->value[at + (int64_t)l * step] = v[l];
        t->error[at + (int64_t)l * step] = e[l];
    }
}

static void store_together(const struct target *t, int64_t at, const double *v, const double *e,
                           size_t n) {
    if (t->finish) {
        finish_results(t->finish, v, e, n, t->value + at, t->error + at);
        return;
    }
    memcpy(t->value + at, v, n * sizeof *v);
    memcpy(t->error + at, e, n * sizeof *e);
}

/* Results of lanes [0, n), with the peaks of their making. */
static void store_lanes(struct worker *w, const double *v, const double *e) {
    const struct target *t = &w->n->target;
    int64_t at = place_of(w, 0), step = w->m.n > 1 ? place_of(w, 1) - at : 1;
    if (step == 1)
        store_together(t, at, v, e, w->m.n);
    else
        store_apart(t, at, step, v, e, w->m.n);
    for (size_t l = 0; l < w->m.n && w->n->p.track_peak; l++) {
        if (t->peak)
            t->peak[at + (int64_t)l * step] = w->m.peak[l];
        w->peak = w->m.peak[l] > w->peak ? w->m.peak[l] : w->peak;
    }
}

/* An index that is as good as the one chosen: a bit in the table, or a distance. */
static double note_tie(struct worker *w, int64_t place, double chosen, double at, double far) {
    const struct target *t = &w->n->target;
    if (at == chosen)
        return far;
    if (!t->ties)
        return fabs(at - chosen) > far ? fabs(at - chosen) : far;
    uint64_t k = (uint64_t)((int64_t)at - t->tie_lo);
    if (k < t->tie_words * 64)
        t->ties[(size_t)place * t->tie_words + k / 64] |= UINT64_C(1) << k % 64;
    return far;
}

static void columns_ties(struct worker *w, const struct reg *term, const struct reg *guard,
                         double at) {
    const struct columns *c = w->c;
    for (size_t l = 0; l < w->m.n; l++) {
        bool out = guard && guard->v[l] == 0 && !(guard->e[l] > 0);
        if (!out && fold_ties(c->f->worst, value_of(c->sum[l], c->variance[l]), lane_of(term, l)))
            w->far[l] = note_tie(w, place_of(w, l), c->at[l], at, w->far[l]);
    }
}

static void columns_term(struct worker *w) {
    struct reg *term = &w->m.regs[w->n->p.result];
    const struct reg *guard = guard_of(w);
    double at = (double)w->m.at[w->n->loops[0].var];
    if (!run_term(w))
        return;
    if (w->pass == PASS_ADD && w->n->p.product != SIZE_MAX) {
        const struct instr *i = &w->n->p.code[w->n->p.product];
        columns_add_product(w->c, &w->m.regs[i->src[0]], i->lone[0], &w->m.regs[i->src[1]],
                            i->lone[1], w->m.n);
    } else if (w->pass == PASS_ADD)
        columns_add(w->c, term, guard, w->m.n, at);
    else if (w->pass == PASS_LOOK) {
        doubt_padded(w, term);
        columns_look(w->c, term, guard, w->m.n);
    } else
        columns_ties(w, term, guard, at);
}

static void row_ties(struct worker *w, const struct reg *term, const struct reg *guard, double at) {
    for (size_t l = 0; l < w->m.n; l++) {
        bool out = guard && guard->v[l] == 0 && !(guard->e[l] > 0);
        if (!out &&
            fold_ties(w->r.f->worst, value_of(w->r.c.sum, w->r.c.variance), lane_of(term, l)))
            w->far[0] = note_tie(w, place_of(w, 0), w->r.c.at, at + (double)l, w->far[0]);
    }
}

/* The product that the sum makes itself; what is not ordinary about it is settled first. */
static void row_product(struct worker *w, struct reg *term) {
    const struct program *p = &w->n->p;
    const struct instr *i = &p->code[p->product];
    const double *x = w->m.regs[i->src[0]].v, *y = w->m.regs[i->src[1]].v;
    if (i->lone[0])
        for (size_t l = 0; l < w->m.n; l++)
            term->v[l] = x[0] * y[l];
    else
        for (size_t l = 0; l < w->m.n; l++)
            term->v[l] = x[l] * y[i->lone[1] ? 0 : l];
    if (vector_ordinary(term, false, w->n->fold.most, w->m.n))
        return;
    w->m.careful = true;
    machine_run(&w->m, p->product, p->product + 1, 0);
    w->m.careful = false;
}

/* The innermost loop, in lanes. */
static void row_terms(struct worker *w, size_t var, int64_t lo, int64_t hi) {
    struct reg *term = &w->m.regs[w->n->p.result];
    for (int64_t at = lo; at < hi; at += LANES) {
        w->m.at[var] = at;
        w->m.n = hi - at < LANES ? (size_t)(hi - at) : LANES;
        changed(w, w->n->p.inner);
        if (!run_term(w))
            continue;
        if (w->n->p.product != SIZE_MAX)
            row_product(w, term);
        doubt_padded(w, term);
        if (w->pass == PASS_TIES)
            row_ties(w, term, guard_of(w), (double)at);
        else
            row_add_all(&w->r, term, guard_of(w), w->m.n, (double)at);
    }
}

/* The union of a bound over the lanes. */
static int64_t bound_over_lanes(struct worker *w, const struct bound *b, bool most) {
    int lane = w->n->p.lane;
    int64_t best = bound_at(w->n, b, w->m.at);
    if (w->n->mode != NEST_COLUMNS || lane < 0 || !(b->vars >> lane & 1))
        return best;
    int64_t first = w->m.at[lane];
    for (size_t l = 1; l < w->m.n; l++) {
        w->m.at[lane] = first + (int64_t)l;
        int64_t v = bound_at(w->n, b, w->m.at);
        best = (most ? v > best : v < best) ? v : best;
    }
    w->m.at[lane] = first;
    return best;
}

/* The innermost loop without its program. False: it must run. */
static bool direct_terms(struct worker *w, size_t var, int64_t lo, int64_t hi) {
    struct products p;
    if (!w->direct->x || w->pass == PASS_TIES || hi <= lo)
        return false;
    w->m.at[var] = lo;
    if (!contract_at(w->direct, w->n, w->m.contents, w->m.at, hi - lo, w->m.n, &p))
        return false;
    if (w->pass == PASS_LOOK) {
        products_look(w->c, &p, w->m.n);
        return true;
    }
    products_add(w->c, &p, w->m.n);
    if (w->n->p.track_peak)
        products_reach(w->c, &p, w->m.n, w->m.peak);
    return true;
}

/* As deep as the reduction has variables. */
static void run_loops(struct worker *w, size_t k) {
    const struct nest *n = w->n;
    if (k == n->nloops) {
        columns_term(w);
        return;
    }
    const struct loop *l = &n->loops[k];
    int64_t lo = bound_over_lanes(w, &l->lo, false), hi = bound_over_lanes(w, &l->hi, true);
    if (n->mode == NEST_ROWS && k + 1 == n->nloops) {
        row_terms(w, l->var, lo, hi);
        return;
    }
    if (k + 1 == n->nloops && direct_terms(w, l->var, lo, hi))
        return;
    for (int64_t v = lo; v < hi; v++) {
        w->m.at[l->var] = v;
        changed(w, 2 + (unsigned)k);
        run_loops(w, k + 1);
    }
}

static bool wants_ties(const struct nest *n) {
    return !n->fold.exact && (n->fold.op == REDUCTION_ARGMAX || n->fold.op == REDUCTION_ARGMIN);
}

static void again(struct worker *w, enum pass pass) {
    w->pass = pass;
    w->pending = 1;
    run_loops(w, 0);
    w->pass = PASS_ADD;
}

static void run_columns(struct worker *w) {
    double v[LANES], e[LANES];
    size_t n = w->m.n;
    columns_start(w->c, &w->n->fold);
    run_loops(w, 0);
    if (!columns_close(w->c, n)) {
        w->m.careful = true;
        again(w, PASS_LOOK);
        w->m.careful = false;
    }
    columns_result(w->c, v, e, n);
    memset(w->far, 0, sizeof w->far);
    if (wants_ties(w->n)) {
        again(w, PASS_TIES);
        for (size_t l = 0; l < n; l++)
            e[l] += w->far[l] * w->far[l];
    }
    for (size_t l = 0; l < n && w->n->p.track_peak; l++)
        machine_note_peak(&w->m, l, w->c->peak[l]);
    store_lanes(w, v, e);
}

static double most_of(const double *v, size_t n) {
    double most = 0;
    for (size_t l = 0; l < n; l++)
        most = v[l] > most ? v[l] : most;
    return most;
}

static void run_row(struct worker *w) {
    row_start(&w->r, &w->n->fold);
    run_loops(w, 0);
    struct value d = row_result(&w->r);
    w->far[0] = 0;
    if (wants_ties(w->n)) {
        again(w, PASS_TIES);
        d.e += w->far[0] * w->far[0];
    }
    double peak = w->n->p.track_peak ? fmax(w->r.peak, most_of(w->m.peak, LANES)) : 0;
    w->peak = peak > w->peak ? peak : w->peak;
    store(w->n, place_of(w, 0), d, peak);
}

/* A scan in progress: results come out when the term at their bound has been taken in. */
struct scan {
    struct worker *w;
    size_t axis_var;
    int64_t first, last; /* of the axis */
    int64_t offset;      /* the bound is axis + offset */
    double peak;
};

static void scan_store(struct scan *s, int64_t axis) {
    struct worker *w = s->w;
    if (axis < s->first || axis > s->last)
        return;
    struct value d = row_result(&w->r);
    s->peak = w->n->p.track_peak && w->r.peak > s->peak ? w->r.peak : s->peak;
    w->peak = s->peak > w->peak ? s->peak : w->peak;
    w->m.at[s->axis_var] = axis;
    store(w->n, place_of(w, 0), d, s->peak);
}

/* Lanes of one block, forwards or backwards, each followed by the result that ends there. */
static void scan_block(struct scan *s, int64_t at, bool taken) {
    struct worker *w = s->w;
    struct reg *term = &w->m.regs[w->n->p.result];
    bool back = w->n->backwards;
    if (taken)
        doubt_padded(w, term);
    for (size_t k = 0; k < w->m.n; k++) {
        size_t l = back ? w->m.n - 1 - k : k;
        int64_t v = at + (int64_t)l;
        s->peak = w->m.peak[l] > s->peak ? w->m.peak[l] : s->peak;
        if (taken)
            row_add(&w->r, term, guard_of(w), l, (double)v);
        /* Forwards the bound lies past the last term, backwards it is the last term. */
        scan_store(s, (back ? v : v + 1) - s->offset);
    }
    memset(w->m.peak, 0, sizeof w->m.peak);
}

static void scan_terms(struct scan *s, int64_t lo, int64_t hi) {
    struct worker *w = s->w;
    const struct nest *n = w->n;
    int64_t blocks = hi > lo ? (hi - lo + LANES - 1) / LANES : 0;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t at = lo + LANES * (n->backwards ? blocks - 1 - b : b);
        w->m.at[n->loops[0].var] = at;
        w->m.n = hi - at < LANES ? (size_t)(hi - at) : LANES;
        changed(w, n->p.inner);
        scan_block(s, at, run_term(w));
    }
}

static void run_scan(struct worker *w) {
    const struct nest *n = w->n;
    const struct axis *axis = &n->axes[n->lane_axis];
    const struct loop *l = &n->loops[0];
    const struct bound *moving = n->backwards ? &l->lo : &l->hi;
    struct scan s = {
        .w = w, .axis_var = axis->var, .first = axis->lo, .last = axis->lo + axis->n - 1};
    w->m.at[axis->var] = 0;
    s.offset = bound_at(n, moving, w->m.at);
    int64_t fixed = bound_at(n, n->backwards ? &l->hi : &l->lo, w->m.at);
    row_start(&w->r, &n->fold);
    /* Results of no term: those whose bound does not reach the fixed one. */
    if (n->backwards)
        for (int64_t a = s.last; a >= s.first && a + s.offset >= fixed; a--)
            scan_store(&s, a);
    else
        for (int64_t a = s.first; a <= s.last && a + s.offset <= fixed; a++)
            scan_store(&s, a);
    if (n->backwards)
        scan_terms(&s, s.first + s.offset, fixed);
    else
        scan_terms(&s, fixed, s.last + s.offset);
}

static void run_points(struct worker *w) {
    const struct reg *result = &w->m.regs[w->n->p.result];
    run_term(w);
    store_lanes(w, result->v, result->e);
}

static int64_t chunks_of(const struct nest *n) {
    if (n->lane_axis < 0 || n->mode == NEST_SCAN)
        return 1;
    return (n->axes[n->lane_axis].n + n->chunk - 1) / n->chunk;
}

/* Puts the axes at item i: chunks of the lane axis vary fastest, then the other axes in order. */
static void set_item(struct worker *w, int64_t i) {
    const struct nest *n = w->n;
    int64_t chunks = chunks_of(n), chunk = i % chunks;
    i /= chunks;
    w->m.n = 1;
    for (size_t k = n->naxes; k-- > 0;) {
        const struct axis *a = &n->axes[k];
        if ((int)k == n->lane_axis)
            continue;
        w->m.at[a->var] = a->lo + i % a->n;
        i /= a->n;
    }
    if (n->lane_axis >= 0 && n->mode != NEST_SCAN) {
        const struct axis *a = &n->axes[n->lane_axis];
        int64_t first = chunk * n->chunk, rest = a->n - first;
        w->m.at[a->var] = a->lo + first;
        w->m.n = (size_t)(rest < n->chunk ? rest : n->chunk);
    }
    w->pending = 1;
}

static void run_item(struct worker *w, int64_t i) {
    set_item(w, i);
    if (w->n->p.track_peak)
        memset(w->m.peak, 0, sizeof w->m.peak);
    switch (w->n->mode) {
    case NEST_POINTS:
        run_points(w);
        return;
    case NEST_COLUMNS:
        run_columns(w);
        return;
    case NEST_ROWS:
        run_row(w);
        return;
    case NEST_SCAN:
        run_scan(w);
        return;
    }
}

static void run_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    struct running *r = ctx;
    struct worker *w = mem_try_resize(NULL, sizeof *w);
    r->failed[part] = true;
    if (!w)
        return;
    *w = (struct worker){.n = r->n, .direct = &r->direct};
    if (r->n->mode == NEST_COLUMNS)
        w->c = mem_try_resize(NULL, sizeof *w->c);
    if (machine_init(&w->m, &r->n->p, r->contents) && (w->c || r->n->mode != NEST_COLUMNS)) {
        r->failed[part] = false;
        for (int64_t i = first; i < last; i++)
            run_item(w, i);
    }
    r->peak[part] = w->peak;
    machine_release(&w->m);
    mem_free(w->c);
    mem_free(w);
}

bool nest_run(const struct nest *n, const struct content *contents, unsigned threads,
              double *peak) {
    struct running r = {.n = n, .contents = contents};
    int64_t items = chunks_of(n);
    bool ok = true;
    for (size_t k = 0; k < n->naxes; k++)
        items *= (int)k == n->lane_axis ? 1 : n->axes[k].n;
    for (size_t k = 0; k < n->naxes; k++)
        if (n->axes[k].n <= 0)
            return true;
    contract_init(&r.direct, n, contents);
    unsigned parts = parallel_for(threads, items, run_piece, &r);
    contract_release(&r.direct);
    for (unsigned i = 0; i < parts; i++) {
        ok &= !r.failed[i];
        *peak = r.peak[i] > *peak ? r.peak[i] : *peak;
    }
    return ok;
}
