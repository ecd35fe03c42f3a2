#include "search/replay.h"
#include "search/recall.h"
#include "search/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS 64 /* strategies tried for a turn: those refused or written before cost nothing */

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
static size_t row_of_source(const struct player *p, uint64_t source) {
    for (uint64_t i = 0; i < p->e.submitted; i++)
        if (p->o->table->rows[p->row[i]].source == source)
            return p->trial[i];
    return p->e.n;
}

static void fill(struct player *p, const struct proposal *from) {
    struct strategy proposal;
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
        size_t twin = row_of_source(p, row->source);
        evolve_align(&p->e, trial, &row->aligned);
        if (twin < p->e.n) {
            evolve_same_source(&p->e, trial, twin);
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

static str text_of(const struct table *t, const struct strategy *s, struct arena *a) {
    struct buf b;
    buf_init(&b, 1 << 16);
    strategy_text(&t->catalogue, s, &b);
    str text = arena_str(a, buf_str(&b));
    buf_release(&b);
    return text;
}

void replay_history(const struct replay *r, const struct table *t, struct arena *a,
                    struct history_run *out) {
    history_describe(&t->briefing, arena_cstr(a, t->device), t->estimated, a, out);
    out->n = r->n;
    out->trials = arena_array(a, struct history_trial, r->n + 1);
    out->best_s = r->n ? r->trials[r->n - 1].best_s : INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        out->trials[i].strategy = text_of(t, &t->rows[r->trials[i].row].aligned, a);
        out->trials[i].ratio = r->trials[i].time_s / out->best_s;
    }
}
