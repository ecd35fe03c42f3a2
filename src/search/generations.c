/* The policy of `evolve` with agents that take their time: a population of strategies, generation
 * by generation (cuPilot's way). Planner and crossover reason about strategies, the coder
 * translates them, the debugger repairs what is rejected, the aligner rewrites strategies to what
 * became of them.
 *
 * A generation goes through these roles phase by phase, with a barrier between phases; within one
 * all questions are in flight at once, and what has been written is evaluated while the rest is
 * still being written. Questions are asked and results taken in order of members, so the order of
 * answers does not matter. Selection and what counts as tried are the core's (evolve.h). */
#include "search/driver.h"
#include "search/evolve.h"
#include <math.h>
#include <string.h>

#define REPAIRS     2 /* of a candidate */
#define GAIN        0.005
#define EMPTY_MOST  2
#define MEMBERS_MAX 64 /* for streams of their own */

enum phase { PHASE_STRATEGIES, PHASE_SOURCES, PHASE_REPAIRS, PHASE_ALIGNMENT, PHASE_SELECTION };

struct generations {
    struct driver d; /* the members are its candidates from `first` on */
    struct evolve e;
    enum phase phase;
    size_t repairs; /* rounds of them so far */
    size_t population;
    struct sibling *parents; /* by member, of children; INFINITY: it has none */
    struct tried *tried;     /* of generations before */
    size_t ntried, cap_tried;
    bool estimated;      /* times are the simulator's */
    uint64_t ordinal;    /* the next; one is reserved for every question for a source */
    size_t stale, empty; /* empty: generations without a candidate, in a row */
    double gain_from_s;
};

static size_t members(const struct generations *g) {
    return g->d.n - g->d.first;
}

static struct search_candidate *member(const struct generations *g, size_t i) {
    return g->d.candidates[g->d.first + i];
}

static struct briefing brief(const struct generations *g, uint64_t candidate) {
    return driver_brief(&g->d, candidate, g->d.o.plateau - g->stale);
}

/* ---- strategies ---- */

/* The ordinal of the first version is reserved now, so that what it took to propose it can be told.
 * Ordinals go by the order of questions, not of answers. */
static void add_members(struct generations *g) {
    uint64_t left = driver_left(&g->d);
    for (size_t i = 0; i < g->population && i < left; i++) {
        struct search_candidate *c = driver_add(&g->d);
        c->next_ordinal = g->ordinal++;
        c->slot = i;
    }
}

static struct rng member_stream(const struct generations *g, size_t i) {
    struct rng r = rng_stream(g->d.o.seed, S("generations"));
    return rng_sub(rng_sub(r, g->d.generation), i);
}

static void choose_parents(struct generations *g) {
    for (size_t i = 0; i < members(g); i++) {
        struct sibling *s = &g->parents[i];
        *s = (struct sibling){.x = {.time_s = INFINITY}};
        member(g, i)->unanswered =
            !evolve_unlike_parents(&g->e, rng_sub(member_stream(g, i), 0), &s->x, &s->y);
    }
}

static void ask_children(struct generations *g) {
    for (size_t i = 0; i < members(g); i++) {
        struct search_candidate *c = member(g, i);
        struct briefing b = brief(g, c->next_ordinal);
        b.tried = g->tried;
        b.ntried = g->ntried;
        b.siblings = g->parents;
        b.nsiblings = members(g);
        b.place = i;
        if (!c->unanswered)
            driver_ask_child(c, &b, &g->parents[i].x, &g->parents[i].y,
                             rng_sub(member_stream(g, i), 1));
    }
}

/* Planned in the first generation; later ones are children of two parents each. */
static void ask_strategies(struct generations *g) {
    struct briefing b = brief(g, NO_CANDIDATE);
    add_members(g);
    driver_say(&g->d, EVENT_GENERATION, g->d.generation ? S("children of the best") : S("planned"));
    choose_parents(g);
    if (g->d.generation)
        ask_children(g);
    else
        driver_ask_plan(&g->d, &b, members(g));
}

/* Where nobody proposed anything: a child by chance, or a stranger while nothing was right. */
static void draw(const struct generations *g, size_t i, struct search_candidate *c) {
    const struct briefing *b = &g->d.briefing;
    const struct sibling *s = &g->parents[i];
    struct rng r = rng_sub(member_stream(g, i), 2);
    if (isfinite(g->e.best_s) && isfinite(s->x.time_s)) {
        strategy_cross(b->catalogue, &b->ground, &s->x.strategy, &s->y.strategy, r, &c->strategy);
        candidate_set_parents(c, &s->x, &s->y);
    } else {
        strategy_random(b->catalogue, &b->ground, r, &c->strategy);
        c->origin.step = "random";
        c->origin.nparents = 0;
    }
    c->reason = S("drawn");
}

/* ---- sources ---- */

/* Every member gets a strategy that was not tried, at or near its proposal. */
static void claim(struct generations *g, size_t i) {
    struct search_candidate *c = member(g, i);
    if (g->d.generation == 0 && i < g->d.nplan) {
        c->strategy = g->d.plan[i];
        c->reason = g->d.plan_reason;
        c->origin.step = "plan";
    } else if (g->d.generation == 0 || c->unanswered) {
        draw(g, i, c);
    }
    if (evolve_claim(&g->e, g->d.generation * MEMBERS_MAX + i, &c->strategy, &c->trial))
        c->strategy = g->e.trials[c->trial].strategy;
    else
        c->state = CANDIDATE_SET_ASIDE;
}

static void ask_sources(struct generations *g) {
    for (size_t i = 0; i < members(g); i++)
        claim(g, i);
    for (size_t i = 0; i < members(g); i++) {
        struct briefing b = brief(g, member(g, i)->next_ordinal);
        if (member(g, i)->state != CANDIDATE_SET_ASIDE)
            driver_ask_source(member(g, i), &b);
    }
}

static void ask_repairs(struct generations *g, size_t round) {
    uint64_t left = driver_left(&g->d);
    for (size_t i = 0; i < members(g); i++) {
        struct search_candidate *c = member(g, i);
        if (c->state == CANDIDATE_SET_ASIDE || candidate_accepted(c) || c->unanswered ||
            c->repeats || !left)
            continue;
        left--; /* what could not be tried is not paid for */
        c->next_ordinal = g->ordinal++;
        c->slot = i + round * g->population;
        struct briefing b = brief(g, c->next_ordinal);
        driver_ask_repair(c, &b, REPAIRS - round, S(""));
    }
}

static void ask_alignments(struct generations *g) {
    for (size_t i = 0; i < members(g); i++) {
        struct briefing b = brief(g, member(g, i)->ordinal);
        if (candidate_accepted(member(g, i)))
            driver_ask_alignment(member(g, i), &b);
    }
}

static bool take(void *self, struct search_candidate *c) {
    struct generations *g = self;
    if (!candidate_accepted(c))
        return false;
    g->estimated = c->outcome->estimated;
    if (!(c->time_s < g->d.best_s))
        return false;
    g->d.best_s = c->time_s;
    return true;
}

/* ---- the end of a generation ---- */

/* For those who will be asked for children. */
static void remember(struct generations *g, const struct search_candidate *c) {
    bool told = g->d.o.facts && candidate_accepted(c);
    g->tried = mem_grow(g->tried, &g->cap_tried, g->ntried + 1, sizeof *g->tried);
    struct tried *t = &g->tried[g->ntried++];
    *t = (struct tried){c->aligned, c->time_s, told ? candidate_where(c) : S(""), NULL};
    if (!strategy_equal(g->d.briefing.catalogue, &c->aligned, &c->strategy))
        t->asked = &c->strategy;
}

/* What the members came to; the generation has none after it. Also of what an early end left. */
static void settle(void *self) {
    struct generations *g = self;
    for (; g->d.first < g->d.n; g->d.first++) {
        struct search_candidate *c = g->d.candidates[g->d.first];
        if (!c->taken)
            continue;
        if (candidate_accepted(c) && !c->is_aligned) /* where nobody was asked or answered */
            driver_align_by_rule(c);
        remember(g, c);
        evolve_align(&g->e, c->trial, &c->aligned);
        evolve_submit(&g->e, c->trial);
        g->e.trials[c->trial].candidate = c->ordinal;
        evolve_settle(&g->e, c->trial, c->time_s);
    }
    g->d.best->naive_s = evolve_naive_s(&g->e);
}

static void look_for_end(struct generations *g) {
    struct driver *d = &g->d;
    double least = briefing_floor(&d->briefing, g->estimated);
    bool gained = !(d->best_s >= g->gain_from_s * (1 - GAIN));
    if (search_is_at_limit(least, d->best_s, d->o.stop_share))
        driver_stop(d, "limit");
    if (isfinite(d->best_s))
        g->stale = gained ? 0 : g->stale + 1;
    if (gained)
        g->gain_from_s = d->best_s;
    if (g->stale >= d->o.plateau)
        driver_stop(d, "plateau");
    if (!driver_left(d))
        driver_stop(d, "budget");
}

static void look_for_sources(struct generations *g) {
    bool found = false;
    for (size_t i = 0; i < members(g); i++)
        found |= member(g, i)->state != CANDIDATE_SET_ASIDE;
    g->empty = found ? 0 : g->empty + 1;
    if (g->empty == EMPTY_MOST)
        driver_stop(&g->d, "nothing was written");
}

/* ---- the run ---- */

static bool next(void *self) {
    struct generations *g = self;
    switch (g->phase) {
    case PHASE_STRATEGIES:
        ask_strategies(g);
        break;
    case PHASE_SOURCES:
        ask_sources(g);
        g->repairs = 0;
        break;
    case PHASE_REPAIRS:
        if (g->repairs == 0)
            look_for_sources(g);
        if (driver_goes_on(&g->d))
            ask_repairs(g, ++g->repairs);
        if (g->repairs < REPAIRS)
            return true;
        break;
    case PHASE_ALIGNMENT:
        ask_alignments(g);
        break;
    case PHASE_SELECTION:
        settle(g);
        look_for_end(g);
        g->d.generation += driver_goes_on(&g->d);
        g->phase = PHASE_STRATEGIES;
        return true;
    }
    g->phase++;
    return true;
}

static bool begin(void *self) {
    struct generations *g = self;
    const struct search_options *o = &g->d.o;
    const struct briefing *b = &g->d.briefing;
    g->population = o->population < MEMBERS_MAX ? o->population : MEMBERS_MAX;
    g->gain_from_s = INFINITY;
    g->parents = arena_array(g->d.mem, struct sibling, g->population);
    struct evolve_options eo = {.catalogue = b->catalogue,
                                .ground = b->ground,
                                .seed = o->seed,
                                .regime = o->blind ? REGIME_COUNT : briefing_regime(b),
                                .population = g->population,
                                .plateau = o->plateau,
                                .window = g->population,
                                .stop_share = 1}; /* of no limit: the end is this file's to see */
    evolve_init(&g->e, &eo);
    driver_say(&g->d, EVENT_START,
               arena_printf(g->d.mem, "%s, a population of %zu strategies, %zu runs of history",
                            o->agent->name, g->population, g->d.history.n));
    g->d.best->precedents = g->d.history.n;
    return true;
}

bool search_generations(struct loop *l, const struct search_options *o,
                        const struct evaluator_options *eo, struct arena *a,
                        struct search_best *out, struct err *err) {
    struct generations g = {0};
    struct policy p = {.self = &g, .begin = begin, .next = next, .take = take, .end = settle};
    BUG_IF(!o->agent->debug);
    bool ok = driver_run(&g.d, &p, l, o, eo, a, out, err);
    mem_free(g.tried);
    evolve_release(&g.e);
    return ok;
}
