#include "search/ablate.h"
#include "search/recall.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the cold replays that the pool is made of: none of the others'. */
#define POOL_SEED  0x706f6f6c
#define CONFIDENCE 0.95
/* A cold run that gains less than this has no way to be halfway on: measured twice, a kernel's
 * times differ by as much. */
#define SAME_ENOUGH 0.005

#define CLAIMS 64 /* strategies tried for a turn: those refused or written before cost nothing */

/* ---- one search against a measured space ---- */

struct player {
    const struct replay_options *o;
    struct briefing briefing;
    struct recalled recalled;
    struct evolve e;
    struct arena *a;
    struct replay *out;
    struct strategy *plan;
    size_t nplan;
    size_t *row;   /* by ordinal */
    size_t *trial; /* by ordinal */
    struct strategy *only;
};

struct taken {
    struct strategy *at;
    size_t n, room;
};
static void take(void *ctx, const struct strategy *s, size_t n, str reason, const struct err *err) {
    (void)reason;
    struct taken *t = ctx;
    for (size_t i = 0; !err && i < n && t->n < t->room; i++)
        t->at[t->n++] = s[i];
}

static void ask_plan(struct player *p, size_t n) {
    struct agent *agent = p->o->agent;
    struct taken t = {arena_array(p->a, struct strategy, n), 0, n};
    agent->plan(agent->self, &p->briefing, n, rng_stream(p->o->seed, S("plan")), take, &t);
    p->plan = t.at;
    p->nplan = p->out->nplan = t.n;
}

static void strategy_of(struct player *p, const struct proposal *from, struct strategy *out) {
    struct agent *agent = p->o->agent;
    struct taken t = {out, 0, 1};
    if (from->from == FROM_PLAN)
        *out = p->plan[from->plan];
    else if (from->from == FROM_PARENTS)
        agent->cross(agent->self, &p->briefing, &from->x, &from->y, evolve_stream(&p->e), take, &t);
    else
        *out = from->strategy;
}

/* The trial with the same source, or n. */
static size_t trial_with_source(const struct player *p, uint64_t source) {
    for (uint64_t i = 0; i < p->e.submitted; i++)
        if (p->o->table->rows[p->row[i]].source == source)
            return p->trial[i];
    return p->e.n;
}

static void fill(struct player *p, const struct proposal *from) {
    struct strategy proposal = {0};
    size_t trial;
    strategy_of(p, from, &proposal);
    for (uint64_t attempt = 0; attempt < CLAIMS; attempt++) {
        if (!evolve_claim(&p->e, attempt, &proposal, &trial))
            return;
        size_t at = table_find(p->o->table, &p->e.trials[trial].strategy);
        const struct table_row *row = &p->o->table->rows[at];
        BUG_IF(at == p->o->table->n);
        if (!row->written)
            continue;
        size_t same_as = trial_with_source(p, row->source);
        evolve_align(&p->e, trial, &row->aligned);
        if (same_as < p->e.n) {
            evolve_same_source(&p->e, trial, same_as);
            continue;
        }
        p->row[p->e.submitted] = at;
        p->trial[p->e.submitted] = trial;
        evolve_submit(&p->e, trial);
        return;
    }
    evolve_pass(&p->e);
}

static void settle(struct player *p) {
    struct replay *r = p->out;
    uint64_t ordinal = p->e.settled;
    double time_s = p->o->table->rows[p->row[ordinal]].time_s;
    evolve_settle(&p->e, p->trial[ordinal], time_s);
    r->trials[r->n++] = (struct replay_trial){p->row[ordinal], time_s, p->e.best_s};
}

static void set_up(struct player *p) {
    const struct replay_options *o = p->o;
    const struct table *t = o->table;
    size_t population = o->population ? o->population : SEARCH_POPULATION;
    p->briefing = t->briefing;
    p->briefing.blind = !o->roofline;
    if (o->history)
        recall_make(o->history, &p->briefing, p->a, &p->recalled);
    p->briefing.history = p->recalled.seeds;
    p->briefing.nhistory = p->recalled.nseeds;
    p->only = arena_array(p->a, struct strategy, t->n);
    for (size_t i = 0; i < t->n; i++)
        p->only[i] = t->rows[i].strategy;
    struct evolve_options eo = {.catalogue = &t->catalogue,
                                .ground = t->briefing.ground,
                                .seed = o->seed,
                                .method = o->method,
                                .uncredited = o->uncredited,
                                .regime =
                                    o->roofline ? briefing_regime(&t->briefing) : REGIME_COUNT,
                                .population = population,
                                .window = search_window(population, 1),
                                .plateau = SIZE_MAX,
                                .candidates = o->candidates,
                                .limit_s = 0,
                                .stop_share = 1,
                                .precedents = p->recalled.precedents,
                                .nprecedents = p->recalled.nprecedents,
                                .only = p->only,
                                .nonly = t->n};
    evolve_init(&p->e, &eo);
    p->row = arena_array(p->a, size_t, o->candidates);
    p->trial = arena_array(p->a, size_t, o->candidates);
    p->out->trials = arena_array(p->a, struct replay_trial, o->candidates);
    if (o->method != SEARCH_RANDOM && !o->unplanned)
        ask_plan(p, o->method == SEARCH_ONCE ? o->candidates : search_plan(population));
}

void replay_run(const struct replay_options *o, struct arena *a, struct replay *out) {
    struct player p = {.o = o, .a = a, .out = out};
    *out = (struct replay){0};
    set_up(&p);
    while (evolve_open(&p.e) || p.e.settled < p.e.submitted) {
        struct proposal from;
        if (!evolve_open(&p.e))
            settle(&p);
        else if (evolve_propose(&p.e, p.nplan, &from))
            fill(&p, &from);
    }
    evolve_release(&p.e);
}

size_t replay_need(const struct replay *r, const struct table *t, double share, size_t otherwise) {
    for (size_t i = 0; i < r->n; i++)
        if (r->trials[i].best_s <= t->best_s * (1 + share))
            return i + 1;
    return otherwise;
}

void replay_history(const struct replay *r, const struct table *t, struct arena *a,
                    struct history_run *out) {
    history_describe(&t->briefing, arena_cstr(a, t->device), t->estimated, a, out);
    out->n = r->n;
    out->trials = arena_array(a, struct history_trial, r->n + 1);
    out->best_s = r->n ? r->trials[r->n - 1].best_s : INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        out->trials[i].strategy =
            strategy_as_text(&t->catalogue, &t->rows[r->trials[i].row].aligned, a);
        out->trials[i].ratio = r->trials[i].time_s / out->best_s;
    }
}

/* ---- variants ---- */

enum { ROOFLINE = 1, PLAN = 2, CREDIT = 4, HISTORY = 8 };
static const struct {
    const char *name, *what;
    enum search_method method;
    unsigned has;
} variants[VARIANT_COUNT] = {
#define VARIANT(id, name, method, mechanisms, what)                                                \
    [VARIANT_##id] = {name, what, method, mechanisms},
#include "search/variant.def"
#undef VARIANT
};

const char *variant_name(enum variant v) {
    return variants[v].name;
}

const char *variant_meaning(enum variant v) {
    return variants[v].what;
}

struct ablation {
    const struct ablate_options *o;
    struct arena *a;
    struct ablate *out;
    struct history pool;
};

static struct replay_options options(const struct ablation *x, const struct table *t,
                                     enum variant v, uint64_t seed) {
    return (struct replay_options){.table = t,
                                   .agent = x->o->agent,
                                   .seed = seed,
                                   .method = variants[v].method,
                                   .roofline = variants[v].has & ROOFLINE,
                                   .unplanned = !(variants[v].has & PLAN),
                                   .uncredited = !(variants[v].has & CREDIT),
                                   .population = x->o->population,
                                   .candidates = x->o->candidates};
}

static void make_pool(struct ablation *x) {
    for (size_t i = 0; i < x->o->n; i++) {
        struct arena *a = arena_new((size_t)1 << 30);
        struct replay_options o = options(x, &x->o->tables[i], VARIANT_EVOLVE, POOL_SEED);
        struct replay r;
        struct history_run run;
        replay_run(&o, a, &r);
        replay_history(&r, &x->o->tables[i], a, &run);
        if (isfinite(run.best_s))
            history_add(&x->pool, &run);
        x->out->searches++;
        arena_free(a);
    }
}

static double best_after(const struct replay *r, size_t n) {
    n = n < r->n ? n : r->n;
    return n ? r->trials[n - 1].best_s : INFINITY;
}

static void fill_cell(struct ablation *x, const struct table *t, enum variant v,
                      const struct history *history, struct ablate_cell *cell) {
    size_t population = x->o->population ? x->o->population : SEARCH_POPULATION;
    cell->need = arena_array(x->a, double, x->o->seeds);
    cell->first_s = arena_array(x->a, double, x->o->seeds);
    cell->last_s = arena_array(x->a, double, x->o->seeds);
    struct arena *a = arena_new((size_t)1 << 30);
    for (size_t i = 0; i < x->o->seeds; i++) {
        struct replay_options o = options(x, t, v, i + 1);
        struct replay r;
        o.history = variants[v].has & HISTORY ? history : NULL;
        arena_reset(a);
        replay_run(&o, a, &r);
        cell->need[i] = (double)replay_need(&r, t, x->o->near, x->o->candidates + 1);
        cell->first_s[i] = best_after(&r, population);
        cell->last_s[i] = best_after(&r, x->o->candidates);
        x->out->searches++;
    }
    arena_free(a);
}

/* ---- statistics ---- */

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Sorts. */
static double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, by_number);
    return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

static double median_of(const double *v, size_t n) {
    double *copy = mem_alloc((n + 1) * sizeof *copy);
    memcpy(copy, v, n * sizeof *copy);
    double m = median(copy, n);
    mem_free(copy);
    return m;
}

/* The median of a sample with replacement. */
static double drawn_median(const double *v, size_t n, struct rng r, double *space) {
    for (size_t i = 0; i < n; i++)
        space[i] = v[rng_below(r, i, n)];
    return median(space, n);
}

static struct interval interval_of(double value, double *draws, size_t n) {
    qsort(draws, n, sizeof *draws, by_number);
    size_t cut = (size_t)((1 - CONFIDENCE) / 2 * (double)n);
    return (struct interval){value, draws[cut], draws[n - 1 - cut]};
}

static struct rng draw_stream(const char *what, size_t draw, size_t row) {
    return rng_sub(rng_sub(rng_stream(0, str_view(what)), draw), row);
}

static struct interval bootstrap_median(const double *v, size_t n, size_t row) {
    double draws[ABLATE_DRAWS], *space = mem_alloc((n + 1) * sizeof *space);
    for (size_t d = 0; d < ABLATE_DRAWS; d++)
        draws[d] = drawn_median(v, n, draw_stream("median", d, row), space);
    mem_free(space);
    return interval_of(median_of(v, n), draws, ABLATE_DRAWS);
}

/* Geometric mean of the need relative to random search's over hard or other tasks; draw SIZE_MAX:
 * of the seeds as they are. */
static double relative_need(const struct ablate *x, size_t seeds, enum variant v, bool hard,
                            size_t draw, double *space) {
    double logs = 0;
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        const struct ablate_cell *own = &x->rows[i].cell[v],
                                 *random = &x->rows[i].cell[VARIANT_RANDOM];
        if (x->rows[i].hard != hard)
            continue;
        double need = own->median.value, base = random->median.value;
        if (draw != SIZE_MAX) {
            need = drawn_median(own->need, seeds, draw_stream("own", draw, i), space);
            base = drawn_median(random->need, seeds, draw_stream("random", draw, i), space);
        }
        logs += log(need / base);
        n++;
    }
    return n ? exp(logs / (double)n) : NAN;
}

static struct interval bootstrap_relative(const struct ablate *x, size_t seeds, enum variant v,
                                          bool hard) {
    double draws[ABLATE_DRAWS], *space = mem_alloc((seeds + 1) * sizeof *space);
    double value = relative_need(x, seeds, v, hard, SIZE_MAX, space);
    for (size_t d = 0; d < ABLATE_DRAWS; d++)
        draws[d] = relative_need(x, seeds, v, hard, d, space);
    mem_free(space);
    return isfinite(value) ? interval_of(value, draws, ABLATE_DRAWS)
                           : (struct interval){NAN, NAN, NAN};
}

/* ---- a row ---- */

static void count_sources(const struct table *t, double near, struct ablate_row *row) {
    for (size_t i = 0; i < t->n; i++) {
        bool first = table_is_first(t, i);
        row->sources += first;
        row->near += first && t->rows[i].time_s <= t->best_s * (1 + near);
    }
}

/* The mean logarithm of times over times. */
static double mean_gap(const double *over, const double *under, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += log(over[i] / under[i]) / (double)n;
    return sum;
}

static void find_halfway(struct ablate_row *row, size_t seeds) {
    const struct ablate_cell *cold = &row->cell[VARIANT_EVOLVE],
                             *warm = &row->cell[VARIANT_HISTORY];
    row->cold_gap = mean_gap(cold->first_s, cold->last_s, seeds);
    row->warm_gap = mean_gap(warm->first_s, cold->last_s, seeds);
    row->halfway =
        row->recalled && row->cold_gap >= SAME_ENOUGH ? 1 - row->warm_gap / row->cold_gap : NAN;
}

static double find_overall(const struct ablate *x) {
    double cold = 0, warm = 0;
    for (size_t i = 0; i < x->n; i++)
        if (isfinite(x->rows[i].halfway)) {
            cold += x->rows[i].cold_gap;
            warm += x->rows[i].warm_gap;
        }
    return cold > 0 ? 1 - warm / cold : NAN;
}

static void fill_row(struct ablation *x, size_t i) {
    const struct table *t = &x->o->tables[i];
    struct ablate_row *row = &x->out->rows[i];
    struct history near;
    struct history_run own;
    struct recalled recalled;
    row->table = t;
    count_sources(t, x->o->near, row);
    history_init(&near);
    history_describe(&t->briefing, arena_cstr(x->a, t->device), t->estimated, x->a, &own);
    history_retrieve(&x->pool, &own, false, RECALL_RUNS, &near);
    recall_make(&near, &t->briefing, x->a, &recalled);
    row->recalled = recalled.nruns;
    for (int v = 0; v < VARIANT_COUNT; v++) {
        struct ablate_cell *c = &row->cell[v];
        fill_cell(x, t, (enum variant)v, &near, c);
        c->median = bootstrap_median(c->need, x->o->seeds, i);
        c->first = median_of(c->first_s, x->o->seeds) / t->best_s;
        c->last = median_of(c->last_s, x->o->seeds) / t->best_s;
    }
    row->hard = row->cell[VARIANT_RANDOM].median.value >= ABLATE_LONG;
    find_halfway(row, x->o->seeds);
    history_release(&near);
}

void ablate_run(const struct ablate_options *o, struct arena *a, struct ablate *out) {
    struct ablation x = {.o = o, .a = a, .out = out};
    *out = (struct ablate){.rows = arena_array(a, struct ablate_row, o->n), .n = o->n};
    history_init(&x.pool);
    make_pool(&x);
    for (size_t i = 0; i < o->n; i++) {
        fill_row(&x, i);
        out->nhard += out->rows[i].hard;
    }
    out->halfway = find_overall(out);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        out->hard[v] = bootstrap_relative(out, o->seeds, (enum variant)v, true);
        out->easy[v] = bootstrap_relative(out, o->seeds, (enum variant)v, false);
    }
    history_release(&x.pool);
}
