/* The phases of a generation: strategies (planned, or of two parents), sources, outcomes, repairs
 * and their outcomes, alignment. Selection and what counts as tried are the core's (evolve.h);
 * budgets count evaluations, repairs among them. */
#include "search/generations.h"
#include "search/evolve.h"
#include "search/finalist.h"
#include "search/journal.h"
#include "search/recall.h"
#include <math.h>
#include <string.h>

#define PLATEAU    3
#define STOP_SHARE 0.98
#define REPAIRS    2 /* of a candidate */
#define GAIN       0.005
#define EMPTY_MOST 2
#define MEMORY_MAX ((size_t)1 << 30)
#define CLAIMS     64 /* of a generation at most, for streams of their own */

/* A place in the generation. */
struct member {
    struct generations *g;
    bool alive;  /* it has a candidate, or may still get one */
    bool open;   /* a question about it is in flight */
    bool waits;  /* its candidate is under evaluation */
    bool unable; /* the last question had no usable answer */
    size_t trial;
    struct parent x, y;
    struct strategy strategy, aligned;
    struct entry entry;
    str repaired, idea; /* the debugger's answer */
};

struct generations {
    struct loop *loop;
    const struct search_options *o;
    struct evaluator_options eo;
    struct evaluator *evaluator;
    struct arena *mem;
    struct briefing briefing;
    struct history history;
    struct recalled recalled;
    struct journal j;
    struct evolve e;
    struct strategy fallback;
    struct member *members;
    size_t n, population; /* n: of the generation */
    struct strategy *plan;
    size_t nplan;
    str plan_reason;
    bool plan_open;
    bool gone;          /* the agent cannot answer any more */
    uint64_t evaluated; /* and so the next ordinal */
    char (*hashes)[65]; /* of every source so far */
    size_t nhashes, cap_hashes;
    struct finalist *finalists;
    struct strategy *strategies; /* of the finalists */
    size_t nfinalists, cap_finalists, cap_strategies;
    size_t stale, plateau, empty; /* empty: generations without a candidate, in a row */
    double gain_from_s;
    struct search_best *out;
    struct err unwritten;
};

/* ---- questions ---- */

/* True: there is an answer that can be used. */
static bool usable(struct generations *g, const struct err *err) {
    if (!err)
        return true;
    g->unwritten = *err;
    journal_say(&g->j, EVENT_NOTE, arena_str(g->mem, str_view(err->text)));
    g->gone |= err->kind == ERR_NO;
    return false;
}

static size_t open_questions(const struct generations *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->members[i].open;
    return n;
}

/* Also where one had no answer and the run will end: the others are paid for, and are recorded. */
static bool await_answers(struct generations *g) {
    while (open_questions(g) || g->plan_open)
        if (!journal_wait(&g->j, g->loop))
            return false;
    return g->gone ? journal_stop(&g->j, "no answer") : journal_goes_on(&g->j);
}

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *err) {
    struct generations *g = ctx;
    g->plan_open = false;
    if (!usable(g, err))
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
    m->unable = !usable(m->g, err) || n == 0;
    if (m->unable)
        return;
    m->strategy = list[0];
    m->entry.reason = arena_str(m->g->mem, reason);
}

static void on_code(void *ctx, str source, const struct err *err) {
    struct member *m = ctx;
    m->open = false;
    m->alive = usable(m->g, err);
    if (m->alive)
        entry_set_source(&m->entry, arena_str(m->g->mem, source));
}

static void on_repair(void *ctx, str source, str idea, const struct err *err) {
    struct member *m = ctx;
    m->open = false;
    m->unable = !usable(m->g, err);
    if (m->unable)
        return;
    m->repaired = arena_str(m->g->mem, source);
    m->idea = arena_str(m->g->mem, idea);
}

static void on_aligned(void *ctx, const struct strategy *list, size_t n, str reason,
                       const struct err *err) {
    struct member *m = ctx;
    (void)reason;
    m->open = false;
    if (usable(m->g, err) && n)
        m->aligned = list[0];
}

/* ---- strategies ---- */

static struct rng slot_stream(const struct generations *g, size_t slot) {
    struct rng r = rng_stream(g->o->seed, S("generations"));
    return rng_sub(rng_sub(r, g->j.generation), slot);
}

static bool plan(struct generations *g) {
    struct agent *a = g->o->agent;
    g->plan_open = true;
    a->plan(a->self, &g->briefing, g->n, rng_stream(g->o->seed, S("plan")), on_plan, g);
    if (!await_answers(g))
        return false;
    for (size_t i = 0; i < g->n; i++) {
        g->members[i].unable = i >= g->nplan;
        g->members[i].strategy = i < g->nplan ? g->plan[i] : g->fallback;
        g->members[i].entry.reason = i < g->nplan ? g->plan_reason : S("");
    }
    return true;
}

static bool cross(struct generations *g) {
    struct agent *a = g->o->agent;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        m->unable = !evolve_parents(&g->e, rng_sub(slot_stream(g, i), 0), &m->x, &m->y);
        if (m->unable)
            continue;
        m->open = true;
        a->cross(a->self, &g->briefing, &m->x, &m->y, rng_sub(slot_stream(g, i), 1), on_child, m);
    }
    return await_answers(g);
}

/* Where nobody proposed anything: a child by chance, or a stranger while nothing was right. */
static void draw(const struct generations *g, size_t slot, struct member *m) {
    struct rng r = rng_sub(slot_stream(g, slot), 2);
    if (isfinite(g->e.best_s) && isfinite(m->x.time_s))
        strategy_cross(g->briefing.catalogue, &g->briefing.ground, &m->x.strategy, &m->y.strategy,
                       r, &m->strategy);
    else
        strategy_random(g->briefing.catalogue, &g->briefing.ground, r, &m->strategy);
    m->entry.reason = S("drawn");
}

/* In order of slots: no strategy is tried twice. */
static void claim(struct generations *g) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        struct strategy proposal;
        if (m->unable)
            draw(g, i, m);
        proposal = m->strategy;
        m->alive = evolve_claim(&g->e, g->j.generation * CLAIMS + i, &proposal, &m->trial);
        if (!m->alive)
            continue;
        m->strategy = m->aligned = g->e.trials[m->trial].strategy;
        m->entry.strategy = m->strategy;
    }
}

/* ---- sources ---- */

static bool code(struct generations *g) {
    struct agent *a = g->o->agent;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->alive)
            continue;
        m->open = true;
        a->code(a->self, &g->briefing, &m->strategy, on_code, m);
    }
    return await_answers(g);
}

static bool is_new(struct generations *g, const char *hash) {
    for (size_t i = 0; i < g->nhashes; i++)
        if (strcmp(g->hashes[i], hash) == 0)
            return false;
    g->hashes = mem_grow(g->hashes, &g->cap_hashes, g->nhashes + 1, sizeof *g->hashes);
    memcpy(g->hashes[g->nhashes++], hash, sizeof *g->hashes);
    return true;
}

/* ---- outcomes ---- */

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct generations *g = ctx;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->waits || m->entry.ordinal != id)
            continue;
        m->waits = false;
        m->entry.outcome = o;
        journal_keep(&g->j, &m->entry);
        return;
    }
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct generations *g = ctx;
    journal_fail(&g->j, why);
}

static uint64_t budget_left(const struct generations *g) {
    uint64_t most = g->o->budget.candidates;
    return most ? most - g->evaluated : UINT64_MAX;
}

/* The member's source as the next candidate: from the archive, or to the evaluator. */
static bool submit(struct generations *g, struct member *m, uint64_t slot) {
    BUG_IF(!budget_left(g) || m->entry.outcome);
    m->entry.ordinal = g->evaluated++;
    m->entry.generation = g->j.generation;
    m->entry.slot = slot;
    m->entry.replayed = false;
    if (!journal_recall(&g->j, &m->entry))
        return false;
    if (m->entry.outcome)
        return true;
    if (!g->evaluator)
        g->evaluator = evaluator_new(g->loop, &g->eo, on_outcome, on_broken, g, &g->j.err);
    if (!g->evaluator)
        return journal_fail(&g->j, &g->j.err);
    m->waits = true;
    evaluator_submit(g->evaluator, m->entry.ordinal, S("kernel.cu"), m->entry.source);
    return true;
}

static bool any_waits(const struct generations *g) {
    for (size_t i = 0; i < g->n; i++)
        if (g->members[i].waits)
            return true;
    return false;
}

static bool await_outcomes(struct generations *g) {
    while (any_waits(g))
        if (!journal_wait(&g->j, g->loop))
            return false;
    return true;
}

static bool accepted(const struct member *m) {
    return m->alive && m->entry.outcome && m->entry.outcome->verdict == VERDICT_ACCEPTED;
}

static void add_finalist(struct generations *g, const struct member *m) {
    size_t n = g->nfinalists + 1;
    g->finalists = mem_grow(g->finalists, &g->cap_finalists, n, sizeof *g->finalists);
    g->strategies = mem_grow(g->strategies, &g->cap_strategies, n, sizeof *g->strategies);
    g->finalists[n - 1] = (struct finalist){.ordinal = m->entry.ordinal,
                                            .time_s = m->entry.outcome->time_s,
                                            .source = m->entry.source,
                                            .record = json_copy(m->entry.outcome->record)};
    g->strategies[n - 1] = m->strategy;
    g->nfinalists = n;
}

/* What came in is shown in order; `fresh` says which members have something new. */
static void show(struct generations *g, const bool *fresh) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!fresh[i] || !m->entry.outcome)
            continue;
        g->out->evaluated++;
        g->out->replayed += m->entry.replayed;
        g->j.done++;
        journal_show(&g->j, EVENT_CANDIDATE, &m->entry);
        if (!accepted(m))
            continue;
        add_finalist(g, m);
        if (m->entry.outcome->time_s < g->j.best_s) {
            g->j.best_s = m->entry.outcome->time_s;
            journal_show(&g->j, EVENT_BEST, &m->entry);
        }
    }
}

static bool evaluate(struct generations *g, const bool *fresh, uint64_t round) {
    bool ok = true;
    for (size_t i = 0; ok && i < g->n; i++)
        if (fresh[i])
            ok = submit(g, &g->members[i], i + round * g->population);
    ok = ok && await_outcomes(g);
    show(g, fresh);
    return ok && journal_goes_on(&g->j);
}

static bool evaluate_first(struct generations *g) {
    bool *fresh = arena_array(g->mem, bool, g->n + 1);
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        m->alive = m->alive && is_new(g, m->entry.hash);
        fresh[i] = m->alive;
    }
    return evaluate(g, fresh, 0);
}

/* ---- repairs ---- */

static bool ask_repairs(struct generations *g, bool *asked) {
    struct agent *a = g->o->agent;
    uint64_t left = budget_left(g);
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        asked[i] = m->alive && !accepted(m) && !m->unable && left > 0;
        if (!asked[i])
            continue;
        left--; /* what could not be tried is not paid for */
        struct attempt at = {&m->strategy, m->entry.source, m->entry.outcome};
        m->open = true;
        a->debug(a->self, &g->briefing, &at, S(""), on_repair, m);
    }
    return await_answers(g);
}

/* A repair takes its candidate's place, unless it is a source that was tried before. */
static void take_repairs(struct generations *g, bool *fresh) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        fresh[i] = fresh[i] && !m->unable;
        if (!fresh[i])
            continue;
        struct entry next = {.strategy = m->entry.strategy, .reason = m->idea};
        entry_set_source(&next, m->repaired);
        fresh[i] = is_new(g, next.hash);
        m->unable = !fresh[i];
        if (!fresh[i])
            continue;
        outcome_free(m->entry.outcome);
        m->entry = next;
    }
}

static bool repair(struct generations *g) {
    bool *fresh = arena_array(g->mem, bool, g->n + 1);
    for (size_t i = 0; i < g->n; i++)
        g->members[i].unable = false;
    for (uint64_t round = 1; round <= REPAIRS; round++) {
        if (!ask_repairs(g, fresh))
            return false;
        take_repairs(g, fresh);
        if (!evaluate(g, fresh, round))
            return false;
    }
    return true;
}

/* ---- the end of a generation ---- */

/* Only parents need it. */
static bool align(struct generations *g) {
    struct agent *a = g->o->agent;
    if (!budget_left(g))
        return true;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!accepted(m))
            continue;
        m->open = true;
        a->align(a->self, &g->briefing, &m->strategy, m->entry.outcome->record, on_aligned, m);
    }
    return await_answers(g);
}

static void settle(struct generations *g) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->alive || !m->entry.outcome)
            continue;
        double time_s = accepted(m) ? m->entry.outcome->time_s : INFINITY;
        evolve_align(&g->e, m->trial, &m->aligned);
        evolve_submit(&g->e, m->trial);
        evolve_settle(&g->e, m->trial, time_s);
        if (strategy_equal(g->briefing.catalogue, &m->strategy, &g->fallback))
            g->out->naive_s = time_s;
    }
}

static void look_for_end(struct generations *g) {
    double limit = g->briefing.roofline.limit_s;
    double share = g->o->stop_share > 0 ? g->o->stop_share : STOP_SHARE;
    bool gained = !(g->j.best_s >= g->gain_from_s * (1 - GAIN));
    if (limit / g->j.best_s >= share)
        journal_stop(&g->j, "limit");
    if (isfinite(g->j.best_s))
        g->stale = gained ? 0 : g->stale + 1;
    if (gained)
        g->gain_from_s = g->j.best_s;
    if (g->stale >= g->plateau)
        journal_stop(&g->j, "plateau");
    if (!budget_left(g))
        journal_stop(&g->j, "budget");
}

static bool one_is_alive(const struct generations *g) {
    for (size_t i = 0; i < g->n; i++)
        if (g->members[i].alive)
            return true;
    return false;
}

static void forget(struct generations *g) {
    for (size_t i = 0; i < g->n; i++)
        outcome_free(g->members[i].entry.outcome);
    g->n = 0;
}

static void new_members(struct generations *g) {
    uint64_t left = budget_left(g);
    g->n = left < g->population ? (size_t)left : g->population;
    for (size_t i = 0; i < g->n; i++)
        g->members[i] = (struct member){.g = g, .x = {.time_s = INFINITY}};
}

static bool run_generation(struct generations *g) {
    new_members(g);
    journal_say(&g->j, EVENT_GENERATION,
                g->j.generation ? S("children of the best") : S("planned"));
    if (!(g->j.generation ? cross(g) : plan(g)))
        return false;
    claim(g);
    if (!code(g))
        return false;
    g->empty = one_is_alive(g) ? 0 : g->empty + 1;
    if (g->empty == EMPTY_MOST)
        return journal_stop(&g->j, "nothing was written");
    if (!evaluate_first(g) || !repair(g) || !align(g))
        return false;
    settle(g);
    look_for_end(g);
    return journal_goes_on(&g->j);
}

/* ---- the run ---- */

static void set_up(struct generations *g) {
    const struct search_options *o = g->o;
    const struct briefing *b = &g->briefing;
    g->population = o->population ? o->population : SEARCH_POPULATION;
    g->population = g->population < CLAIMS ? g->population : CLAIMS;
    g->plateau = o->plateau ? o->plateau : PLATEAU;
    g->gain_from_s = INFINITY;
    g->members = arena_array(g->mem, struct member, g->population);
    struct evolve_options eo = {.catalogue = b->catalogue,
                                .ground = b->ground,
                                .seed = o->seed,
                                .regime = o->blind ? REGIME_COUNT : briefing_regime(b),
                                .population = g->population,
                                .plateau = g->plateau,
                                .window = g->population,
                                .stop_share = 1}; /* of no limit: the end is this file's to see */
    evolve_init(&g->e, &eo);
    strategy_fallback(b->catalogue, &b->ground, &g->fallback);
}

static bool run(struct generations *g) {
    journal_say(&g->j, EVENT_START,
                arena_printf(g->mem, "%s, a population of %zu strategies, %zu runs of history",
                             g->o->agent->name, g->population, g->history.n));
    g->out->precedents = g->history.n;
    while (run_generation(g)) {
        forget(g);
        g->j.generation++;
    }
    forget(g);
    if (g->j.failed)
        return false;
    if (g->evaluated == 0 && g->unwritten.kind != ERR_NONE) {
        g->unwritten.kind = ERR_ENV;
        return journal_fail(&g->j, &g->unwritten);
    }
    return true;
}

static bool choose(struct generations *g, struct arena *a) {
    struct finalist_options fo = {&g->eo, g->o->archive, g->mem, journal_refused, &g->j};
    size_t which;
    if (!finalist_choose(&fo, g->finalists, g->nfinalists, &which, &g->j.err))
        return false;
    if (which < g->nfinalists)
        finalist_take(&g->finalists[which], &g->strategies[which], a, g->out);
    return true;
}

static void release(struct generations *g) {
    if (g->evaluator)
        evaluator_free(g->evaluator);
    for (size_t i = 0; i < g->nfinalists; i++)
        json_free(g->finalists[i].record);
    mem_free(g->finalists);
    mem_free(g->strategies);
    mem_free(g->hashes);
    evolve_release(&g->e);
    history_release(&g->history);
    arena_free(g->mem);
}

bool search_generations(struct loop *l, const struct search_options *o,
                        const struct evaluator_options *eo, struct arena *a,
                        struct search_best *out, struct err *err) {
    struct generations g = {.loop = l,
                            .o = o,
                            .eo = *eo,
                            .out = out,
                            .briefing = *o->briefing,
                            .mem = arena_new(MEMORY_MAX)};
    BUG_IF(!o->agent->debug);
    history_init(&g.history);
    g.eo.thorough = true; /* few candidates, each the ground of the next: none is half right */
    bool ok = journal_open(&g.j, o, g.mem, out) &&
              (recall_brief(o, &g.eo, g.mem, &g.briefing, &g.history, &g.recalled, &g.j.err) ||
               journal_fail(&g.j, &g.j.err));
    set_up(&g);
    ok = ok && run(&g) && choose(&g, a);
    out->stopped = g.j.stopped;
    if (ok)
        journal_say(&g.j, EVENT_END, str_view(g.j.stopped));
    else
        *err = g.j.err;
    release(&g);
    return ok;
}
