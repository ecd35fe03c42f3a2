/* The phases of a generation: strategies (planned, or of two parents), sources and their outcomes,
 * repairs and theirs, alignment. Selection and what counts as tried are the core's (evolve.h);
 * budgets count evaluations, repairs among them. */
#include "search/generations.h"
#include "agent/llm/evidence.h"
#include "search/generations_private.h"
#include <math.h>
#include <string.h>

#define PLATEAU    3
#define STOP_SHARE 0.98
#define REPAIRS    2 /* of a candidate */
#define GAIN       0.005
#define EMPTY_MOST 2
#define WHERE_MAX  4096
#define MEMORY_MAX ((size_t)1 << 30)

/* ---- questions ---- */

bool generations_usable(struct generations *g, const struct err *err) {
    if (!err)
        return true;
    g->unwritten = *err;
    journal_say(&g->j, EVENT_NOTE, arena_str(g->mem, str_view(err->text)));
    g->gone |= err->kind == ERR_NO;
    return false;
}

static bool under_way(const struct generations *g) {
    for (size_t i = 0; i < g->n; i++)
        if (g->members[i].open || g->members[i].waits)
            return true;
    return false;
}

/* Also where one had no answer and the run will end: the others are paid for, and are recorded. */
bool generations_await(struct generations *g) {
    while (under_way(g) || g->plan_open)
        if (!journal_wait(&g->j, g->loop))
            return false;
    return g->gone ? journal_stop(&g->j, "no answer") : journal_goes_on(&g->j);
}

struct briefing generations_brief(const struct generations *g, uint64_t candidate) {
    struct briefing b = g->briefing;
    b.candidate = candidate;
    b.outlook = (struct outlook){journal_left(&g->j, g->evaluated), g->plateau - g->stale};
    return b;
}

static void on_aligned(void *ctx, const struct strategy *list, size_t n, str reason,
                       const struct err *err) {
    struct member *m = ctx;
    (void)reason;
    m->open = false;
    m->is_aligned = generations_usable(m->g, err) && n;
    if (m->is_aligned)
        m->aligned = list[0];
}

/* ---- candidates ---- */

static uint64_t budget_left(const struct generations *g) {
    uint64_t most = g->o->budget.candidates;
    return most ? most - g->evaluated : UINT64_MAX;
}

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

/* From the archive, or to the evaluator. */
static void submit(struct generations *g, struct member *m) {
    BUG_IF(!budget_left(g));
    g->evaluated++;
    if (!journal_recall(&g->j, &m->entry) || m->entry.outcome)
        return;
    if (!g->evaluator)
        g->evaluator = evaluator_new(g->loop, &g->eo, on_outcome, on_broken, g, &g->j.err);
    if (!g->evaluator) {
        journal_fail(&g->j, &g->j.err);
        return;
    }
    m->waits = true;
    evaluator_submit(g->evaluator, m->entry.ordinal, S("kernel.cu"), m->entry.source);
}

/* Of earlier rounds: what came in during this one depends on who was first. */
static bool is_known(const struct generations *g, const char *hash) {
    for (size_t i = 0; i < g->nhashes; i++)
        if (strcmp(g->hashes[i], hash) == 0)
            return true;
    return false;
}

/* A source that has come in takes the member's place and is evaluated at once, while others are
 * still being written. */
static void take_source(struct member *m, str source, str reason) {
    struct generations *g = m->g;
    struct entry next = {.ordinal = m->reserved,
                         .generation = g->j.generation,
                         .slot = m->slot,
                         .strategy = m->strategy,
                         .reason = reason,
                         .origin = m->origin};
    if (m->entry.outcome) /* it is repaired */
        next.origin = (struct origin){.step = "repair",
                                      .parents = {m->entry.ordinal},
                                      .nparents = 1,
                                      .structure = reason,
                                      .proposed = m->asked};
    entry_set_source(&next, arena_str(g->mem, source));
    m->unable = is_known(g, next.hash);
    if (m->unable)
        return;
    outcome_free(m->entry.outcome);
    m->entry = next;
    m->fresh = true;
    submit(g, m);
}

static void on_code(void *ctx, str source, const struct err *err) {
    struct member *m = ctx;
    m->open = false;
    m->alive = generations_usable(m->g, err);
    if (m->alive)
        take_source(m, source, m->entry.reason);
    m->alive = m->alive && m->fresh;
}

static void on_repair(void *ctx, str source, str idea, const struct err *err) {
    struct member *m = ctx;
    m->open = false;
    m->unable = !generations_usable(m->g, err);
    if (!m->unable)
        take_source(m, source, arena_str(m->g->mem, idea));
}

/* Before a source is asked for; the first of a member has its ordinal since the member began, so
 * that what it took to propose it can be told. Ordinals go by the order of questions, not of
 * answers. */
static void reserve(struct generations *g, size_t i, uint64_t round) {
    struct member *m = &g->members[i];
    m->open = true;
    m->asked = phase_now();
    if (round)
        m->reserved = g->ordinal++;
    m->slot = i + round * g->population;
}

static bool accepted(const struct member *m) {
    return m->alive && m->entry.outcome && m->entry.outcome->verdict == VERDICT_ACCEPTED;
}

/* ---- rounds ---- */

static void add_finalist(struct generations *g, const struct member *m) {
    size_t n = g->nfinalists + 1;
    g->finalists = mem_grow(g->finalists, &g->cap_finalists, n, sizeof *g->finalists);
    g->finalists[n - 1] = (struct finalist){.ordinal = m->entry.ordinal,
                                            .strategy = m->strategy,
                                            .time_s = m->entry.outcome->time_s,
                                            .source = m->entry.source,
                                            .record = record_copy(m->entry.outcome->record)};
    g->nfinalists = n;
}

static void note_hash(struct generations *g, const char *hash) {
    g->hashes = mem_grow(g->hashes, &g->cap_hashes, g->nhashes + 1, sizeof *g->hashes);
    memcpy(g->hashes[g->nhashes++], hash, sizeof *g->hashes);
}

static void show_one(struct generations *g, const struct member *m) {
    g->out->evaluated++;
    g->out->replayed += m->entry.replayed;
    g->j.done++;
    journal_show(&g->j, EVENT_CANDIDATE, &m->entry);
    if (!accepted(m))
        return;
    add_finalist(g, m);
    g->estimated = m->entry.outcome->estimated;
    if (m->entry.outcome->time_s < g->j.best_s) {
        g->j.best_s = m->entry.outcome->time_s;
        journal_show(&g->j, EVENT_BEST, &m->entry);
    }
}

/* What was asked comes in, and is shown in order. */
static bool end_round(struct generations *g) {
    bool ok = generations_await(g);
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (m->fresh)
            note_hash(g, m->entry.hash);
        if (m->fresh && m->entry.outcome)
            show_one(g, m);
        m->fresh = false;
    }
    return ok && journal_goes_on(&g->j);
}

static bool code(struct generations *g) {
    struct agent *a = g->o->agent;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->alive)
            continue;
        reserve(g, i, 0);
        struct briefing b = generations_brief(g, m->reserved);
        a->code(a->self, &b, &m->strategy, on_code, m);
    }
    return end_round(g);
}

static bool repair_round(struct generations *g, uint64_t round) {
    struct agent *a = g->o->agent;
    uint64_t left = budget_left(g);
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->alive || accepted(m) || m->unable || !left)
            continue;
        left--; /* what could not be tried is not paid for */
        reserve(g, i, round);
        struct attempt at = {&m->strategy, m->entry.source, m->entry.outcome, REPAIRS - round};
        struct briefing b = generations_brief(g, m->reserved);
        a->debug(a->self, &b, &at, S(""), on_repair, m);
    }
    return end_round(g);
}

static bool repair(struct generations *g) {
    for (size_t i = 0; i < g->n; i++)
        g->members[i].unable = false;
    for (uint64_t round = 1; round <= REPAIRS; round++)
        if (!repair_round(g, round))
            return false;
    return true;
}

/* ---- the end of a generation ---- */

static bool align(struct generations *g) {
    struct agent *a = g->o->agent;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!accepted(m))
            continue;
        m->open = true;
        struct briefing b = generations_brief(g, m->entry.ordinal);
        a->align(a->self, &b, &m->strategy, m->entry.outcome->record, on_aligned, m);
    }
    return generations_await(g);
}

/* Its strategy as its code has it, should it win. */
static void align_finalist(struct generations *g, const struct member *m) {
    for (size_t i = 0; i < g->nfinalists; i++)
        if (g->finalists[i].ordinal == m->entry.ordinal)
            g->finalists[i].strategy = m->aligned;
}

/* For those who will be asked for children, and for history. */
static void remember(struct generations *g, const struct member *m, double time_s) {
    struct buf where;
    buf_init(&where, WHERE_MAX);
    if (g->o->facts && accepted(m))
        facts_summarise(m->entry.outcome, &where);
    g->tried = mem_grow(g->tried, &g->cap_tried, g->ntried + 1, sizeof *g->tried);
    struct strategy *asked = arena_new_of(g->mem, struct strategy);
    struct tried *t = &g->tried[g->ntried++];
    *asked = m->strategy;
    *t = (struct tried){m->aligned, time_s, arena_str(g->mem, buf_str(&where)), NULL};
    if (!strategy_equal(g->briefing.catalogue, &m->aligned, &m->strategy))
        t->asked = asked;
    buf_release(&where);
}

static void settle(struct generations *g) {
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        if (!m->alive || !m->entry.outcome || m->settled)
            continue;
        double time_s = accepted(m) ? m->entry.outcome->time_s : INFINITY;
        m->settled = true;
        if (accepted(m) && !m->is_aligned) /* by rule, where nobody was asked or answered */
            journal_align(&g->j, &m->entry, &m->aligned);
        align_finalist(g, m);
        remember(g, m, time_s);
        evolve_align(&g->e, m->trial, &m->aligned);
        evolve_submit(&g->e, m->trial);
        g->e.trials[m->trial].candidate = m->entry.ordinal;
        evolve_settle(&g->e, m->trial, time_s);
        if (strategy_equal(g->briefing.catalogue, &m->strategy, &g->fallback))
            g->out->naive_s = time_s;
    }
}

static void look_for_end(struct generations *g) {
    double least = briefing_floor(&g->briefing, g->estimated);
    double share = g->o->stop_share > 0 ? g->o->stop_share : STOP_SHARE;
    bool gained = !(g->j.best_s >= g->gain_from_s * (1 - GAIN));
    if (least / g->j.best_s >= share)
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
        g->members[i] =
            (struct member){.g = g, .x = {.time_s = INFINITY}, .reserved = g->ordinal++};
}

static bool run_generation(struct generations *g) {
    new_members(g);
    journal_say(&g->j, EVENT_GENERATION,
                g->j.generation ? S("children of the best") : S("planned"));
    if (!(g->j.generation ? generations_cross(g) : generations_plan(g)))
        return false;
    generations_claim(g);
    if (!code(g))
        return false;
    g->empty = one_is_alive(g) ? 0 : g->empty + 1;
    if (g->empty == EMPTY_MOST)
        return journal_stop(&g->j, "nothing was written");
    if (!repair(g) || !align(g))
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
    g->population = g->population < GENERATIONS_MOST ? g->population : GENERATIONS_MOST;
    g->plateau = o->plateau ? o->plateau : PLATEAU;
    g->gain_from_s = INFINITY;
    g->members = arena_array(g->mem, struct member, g->population);
    g->siblings = arena_array(g->mem, struct sibling, g->population);
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
    settle(g); /* what an early end left */
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
        finalist_take(&g->finalists[which], a, g->out);
    return true;
}

static void release(struct generations *g) {
    if (g->evaluator)
        evaluator_free(g->evaluator);
    for (size_t i = 0; i < g->nfinalists; i++)
        record_free(g->finalists[i].record);
    mem_free(g->finalists);
    mem_free(g->hashes);
    mem_free(g->tried);
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
    if (ok) {
        journal_leave(&g.j, &g.eo, g.tried, g.ntried);
        journal_say(&g.j, EVENT_END, str_view(g.j.stopped));
    } else {
        *err = g.j.err;
    }
    release(&g);
    return ok;
}
