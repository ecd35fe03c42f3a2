/* The strategies of a generation: asked of the planner, or of the crossover role with two parents
 * each and everything that was tried; where nobody proposes anything, drawn. No strategy is tried
 * twice. */
#include "search/generations_private.h"

#include <math.h>
#include <string.h>

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *err) {
    struct generations *g = ctx;
    g->plan_open = false;
    if (!generations_usable(g, err))
        return;
    g->plan = arena_array(g->mem, struct strategy, n + 1);
    memcpy(g->plan, list, n * sizeof *list);
    g->nplan = n;
    g->plan_reason = arena_str(g->mem, reason);
}

static void on_child(void *ctx, const struct strategy *list, size_t n, str reason,
                     const struct err *err) {
    struct member *m = ctx;
    m->open = false;
    m->unable = !generations_usable(m->g, err) || n == 0;
    if (m->unable)
        return;
    m->strategy = list[0];
    m->entry.reason = arena_str(m->g->mem, reason);
}

/* ---- strategies ---- */

static struct rng slot_stream(const struct generations *g, size_t slot) {
    struct rng r = rng_stream(g->o->seed, S("generations"));
    return rng_sub(rng_sub(r, g->j.generation), slot);
}

bool generations_plan(struct generations *g) {
    struct agent *a = g->o->agent;
    struct briefing b = generations_brief(g, NO_CANDIDATE);
    g->plan_open = true;
    a->plan(a->self, &b, g->n, rng_stream(g->o->seed, S("plan")), on_plan, g);
    if (!generations_await(g))
        return false;
    for (size_t i = 0; i < g->n; i++) {
        g->members[i].unable = i >= g->nplan;
        g->members[i].strategy = i < g->nplan ? g->plan[i] : g->fallback;
        g->members[i].origin = (struct origin){.step = "plan", .proposed = phase_now()};
        g->members[i].entry.reason = i < g->nplan ? g->plan_reason : S("");
    }
    return true;
}

static void choose_parents(struct generations *g) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        m->unable = !evolve_unlike_parents(&g->e, rng_sub(slot_stream(g, i), 0), &m->x, &m->y);
        g->siblings[i] = (struct sibling){m->x, m->y};
        m->origin = (struct origin){.step = "crossover",
                                    .parents = {m->x.candidate, m->y.candidate},
                                    .nparents = isfinite(m->y.time_s) ? 2 : 1,
                                    .proposed = phase_now()};
    }
}

bool generations_cross(struct generations *g) {
    struct agent *a = g->o->agent;
    choose_parents(g);
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        struct briefing b = generations_brief(g, m->reserved);
        b.tried = g->tried;
        b.ntried = g->ntried;
        b.siblings = g->siblings;
        b.nsiblings = g->n;
        b.place = i;
        if (m->unable)
            continue;
        m->open = true;
        a->cross(a->self, &b, &m->x, &m->y, rng_sub(slot_stream(g, i), 1), on_child, m);
    }
    return generations_await(g);
}

/* Where nobody proposed anything: a child by chance, or a stranger while nothing was right. */
static void draw(const struct generations *g, size_t slot, struct member *m) {
    struct rng r = rng_sub(slot_stream(g, slot), 2);
    if (isfinite(g->e.best_s) && isfinite(m->x.time_s))
        strategy_cross(g->briefing.catalogue, &g->briefing.ground, &m->x.strategy, &m->y.strategy,
                       r, &m->strategy);
    else {
        strategy_random(g->briefing.catalogue, &g->briefing.ground, r, &m->strategy);
        m->origin = (struct origin){.step = "random", .proposed = phase_now()};
    }
    m->entry.reason = S("drawn");
}

/* In order of slots: no strategy is tried twice. */
void generations_claim(struct generations *g) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        struct strategy proposal;
        if (m->unable)
            draw(g, i, m);
        proposal = m->strategy;
        m->alive =
            evolve_claim(&g->e, g->j.generation * GENERATIONS_MOST + i, &proposal, &m->trial);
        if (!m->alive)
            continue;
        m->strategy = m->aligned = g->e.trials[m->trial].strategy;
        m->entry.strategy = m->strategy;
    }
}
