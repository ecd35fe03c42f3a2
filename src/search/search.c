/* Drives the core of evolve.h: agents propose and write, the archive or the evaluator answers.
 *
 * 1. `window` candidates are under way; outcomes arrive in any order, are archived as they come and
 *    consumed in order of submission, and each one consumed lets the next candidate be made. What
 *    the core sees is therefore the same in every replay.
 * 2. The clock decides nothing but the end: when time is up, the search stops in front of the first
 *    outcome that is missing, and notes there how far it came, so that the same command run again
 *    comes to the same end.
 * 3. The evaluator is started by the first candidate that the archive has no answer for.
 * 4. A source that was submitted before is not submitted again: its strategy gets the same outcome.
 */
#include "search/search_private.h"
#include "search/twin.h"
#include <math.h>
#include <string.h>

#define PLATEAU        3
#define STOP_SHARE     0.98
#define CODE_TRIES     64 /* strategies tried for a turn when the coder refuses them, or twins */
#define POLL_MS        50 /* how late a signal or the end of the time may be noticed */
#define NOTE_ELAPSED   "elapsed_ms"
#define NOTE_TIME_ENDS "time_ended_after" /* candidates consumed */
#define NOTE_WINDOW    "window"           /* a run keeps it, whatever it is gone on with */

/* An agent's answer. */
struct answer {
    bool done, ok;
    struct strategy *strategies;
    size_t n;
    str reason, source;
    struct err err;
    struct arena *mem;
};

bool search_fail(struct search *s, const struct err *why) {
    if (!s->failed)
        s->err = *why;
    s->failed = true;
    return false;
}

/* ---- the clock ---- */

static uint64_t elapsed_ms(const struct search *s) {
    return s->before_ms + (clock_ms() - s->start_ms);
}

static bool time_is_up(const struct search *s) {
    return s->o->budget.ms && elapsed_ms(s) >= s->o->budget.ms;
}

static bool interrupted(const struct search *s) {
    return s->o->interrupted && *s->o->interrupted;
}

static bool read_number(struct search *s, const char *key, uint64_t absent, uint64_t *out) {
    str text;
    *out = absent;
    if (!s->o->archive)
        return true;
    if (!archive_get_note(s->o->archive, key, s->scratch, &text, &s->err))
        return search_fail(s, &s->err);
    if (text.n && !str_to_u64(text, out)) {
        *out = absent;
        search_emit_text(s, EVENT_NOTE, S(""),
                         arena_printf(s->scratch,
                                      "run.db: the row '%s' of the table meta is not a number; it "
                                      "is left out of account",
                                      key));
    }
    return true;
}

static bool write_number(struct search *s, const char *key, uint64_t value) {
    char text[24];
    size_t n = 0;
    do
        text[sizeof text - ++n] = (char)('0' + value % 10);
    while (value /= 10);
    struct err err;
    if (!s->o->archive || archive_note(s->o->archive, key, (str){text + sizeof text - n, n}, &err))
        return true;
    return search_fail(s, &err);
}

/* ---- events ---- */

static void emit(const struct search *s, struct event *e) {
    e->done = s->e.settled;
    e->submitted = s->e.submitted;
    e->budget = s->o->budget.candidates;
    e->elapsed_s = (double)elapsed_ms(s) / 1000;
    e->budget_s = (double)s->o->budget.ms / 1000;
    e->best_s = s->e.best_s;
    e->limit_s = s->e.o.limit_s;
    e->naive_s = s->best->naive_s;
    if (s->o->emit)
        s->o->emit(s->o->emit_ctx, e);
}

void search_emit_text(const struct search *s, enum event_kind kind, str strategy, str text) {
    struct event e = {.kind = kind,
                      .generation = s->generation ? s->generation - 1 : 0,
                      .time_s = INFINITY,
                      .strategy = strategy,
                      .text = text};
    emit(s, &e);
}

static void emit_pending(const struct search *s, enum event_kind kind, const struct pending *p) {
    const struct outcome *o = p->outcome;
    bool accepted = o->verdict == VERDICT_ACCEPTED;
    struct event e = {.kind = kind,
                      .generation = p->generation,
                      .ordinal = s->e.trials[p->trial].ordinal,
                      .strategy = p->strategy,
                      .text = accepted ? p->reason : str_view(o->why),
                      .verdict = o->verdict,
                      .time_s = o->time_s,
                      .estimated = o->estimated,
                      .replayed = p->replayed};
    emit(s, &e);
}

static str text_of(const struct search *s, const struct strategy *strategy, struct arena *a) {
    struct buf b;
    buf_init(&b, 8192);
    strategy_text(s->o->briefing->catalogue, strategy, &b);
    str text = arena_str(a, buf_str(&b));
    buf_release(&b);
    return text;
}

/* ---- agents ---- */

static bool await(struct search *s, const struct answer *a) {
    while (!a->done)
        if (!loop_step(s->loop, POLL_MS, &s->err))
            return search_fail(s, &s->err);
    return true;
}

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *err) {
    struct answer *a = ctx;
    a->done = true;
    a->ok = !err;
    if (err) {
        a->err = *err;
        return;
    }
    a->strategies = arena_array(a->mem, struct strategy, n);
    for (size_t i = 0; i < n; i++)
        a->strategies[i] = list[i];
    a->n = n;
    a->reason = arena_str(a->mem, reason);
}

static void on_code(void *ctx, str source, const struct err *err) {
    struct answer *a = ctx;
    a->done = true;
    a->ok = !err;
    if (err)
        a->err = *err;
    else
        a->source = arena_str(a->mem, source);
}

static bool ask_plan(struct search *s, size_t n) {
    struct answer a = {.mem = s->mem};
    struct rng r = rng_stream(s->o->seed, S("plan"));
    s->o->agent->plan(s->o->agent->self, &s->briefing, n, r, on_plan, &a);
    if (!await(s, &a))
        return false;
    if (!a.ok)
        return search_fail(s, &a.err);
    s->plan = a.strategies;
    s->nplan = a.n;
    s->plan_reason = a.reason;
    return true;
}

static bool ask_child(struct search *s, const struct proposal *from, struct strategy *out,
                      struct pending *p) {
    struct answer a = {.mem = p->mem};
    s->o->agent->cross(s->o->agent->self, &s->briefing, &from->x, &from->y, evolve_stream(&s->e),
                       on_plan, &a);
    if (!await(s, &a))
        return false;
    if (!a.ok || a.n == 0)
        return search_fail(s, &a.err);
    *out = a.strategies[0];
    p->reason = a.reason;
    return true;
}

/* The strategy of a proposal, and why it is tried. */
static bool answer_proposal(struct search *s, const struct proposal *from, struct strategy *out,
                            struct pending *p) {
    static const char *const steps[] = {[FROM_PLAN] = "plan",
                                        [FROM_PARENTS] = "crossover",
                                        [FROM_CREDIT] = "credit",
                                        [FROM_CHANCE] = "random"};
    p->origin = (struct origin){.step = steps[from->from], .proposed = phase_now()};
    if (from->from == FROM_PARENTS) {
        p->origin.parents[p->origin.nparents++] = from->x.candidate;
        if (isfinite(from->y.time_s))
            p->origin.parents[p->origin.nparents++] = from->y.candidate;
    }
    if (from->from == FROM_PARENTS)
        return ask_child(s, from, out, p);
    *out = from->from == FROM_PLAN ? s->plan[from->plan] : from->strategy;
    if (from->from == FROM_PLAN)
        p->reason = s->plan_reason;
    else if (from->from == FROM_CREDIT)
        p->reason =
            isfinite(from->expected_s)
                ? arena_printf(p->mem, "by credit: %.4g us expected", from->expected_s * 1e6)
                : S("by credit of similar tasks: nothing was accepted so far");
    else
        p->reason = s->o->how == SEARCH_RANDOM ? S("at random")
                                               : S("at random: nothing was accepted so far");
    return true;
}

/* ---- outcomes ---- */

static bool keep(struct search *s, const struct pending *p) {
    if (!s->o->archive)
        return true;
    const struct evolve_trial *t = &s->e.trials[p->trial];
    struct archive_candidate c = {.ordinal = t->ordinal,
                                  .generation = p->generation,
                                  .slot = t->ordinal % s->e.o.population,
                                  .strategy = p->strategy,
                                  .reason = p->reason,
                                  .source = p->source};
    memcpy(c.source_hash, p->hash, sizeof c.source_hash);
    struct err err;
    if (!archive_add(s->o->archive, &c, p->outcome->record, &err))
        return search_fail(s, &err);
    return write_number(s, NOTE_ELAPSED, elapsed_ms(s));
}

static void on_aligned(void *ctx, const struct strategy *list, size_t n, str reason,
                       const struct err *err) {
    struct pending *p = ctx;
    struct search *s = p->search;
    struct err nothing;
    if (err || n == 0) {
        err_set(&nothing, ERR_ENV, "the aligner has no answer");
        search_fail(s, err ? err : &nothing);
        return;
    }
    p->aligned = list[0];
    p->strategy = text_of(s, &p->aligned, p->mem);
    if (reason.n)
        p->reason =
            arena_printf(p->mem, "%.*s; aligned: %.*s", STR_ARG(p->reason), STR_ARG(reason));
    p->is_known = p->replayed || keep(s, p);
}

/* What an accepted candidate really is comes before it is kept, and becomes a parent. */
static void take_outcome(struct search *s, struct pending *p, struct outcome *o) {
    const struct strategy *strategy = &s->e.trials[p->trial].strategy;
    p->outcome = o;
    p->origin.ordinal = s->e.trials[p->trial].ordinal;
    if (s->o->agent->remarks)
        p->origin.structure = s->o->agent->remarks(s->o->agent->self, p->hash, p->mem);
    record_set_origin(o->record, &p->origin);
    p->aligned = *strategy;
    if (o->verdict == VERDICT_ACCEPTED)
        s->o->agent->align(s->o->agent->self, &s->briefing, strategy, o->record, on_aligned, p);
    else
        p->is_known = p->replayed || keep(s, p);
}

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct search *s = ctx;
    struct pending *p = &s->pending[id % s->e.o.window];
    BUG_IF(s->e.trials[p->trial].ordinal != id || p->outcome);
    take_outcome(s, p, o);
}

static void on_broken(void *ctx, const struct err *why) {
    search_fail(ctx, why);
}

/* 1: the archive knew it. 0: it did not. -1: failed. */
static int recall(struct search *s, struct pending *p, uint64_t ordinal) {
    struct record *record = NULL;
    struct err err = {0};
    int found = s->o->archive ? archive_lookup(s->o->archive, ordinal, p->hash, &record, &err) : 0;
    if (found == 0 && err.kind != ERR_NONE)
        search_emit_text(s, EVENT_NOTE, S(""), str_view(err.text));
    if (found == 1) {
        p->replayed = true;
        take_outcome(s, p, outcome_of(record));
    }
    if (found < 0)
        search_fail(s, &err);
    return found;
}

static bool evaluate(struct search *s, const struct pending *p, uint64_t ordinal) {
    if (!s->evaluator)
        s->evaluator = evaluator_new(s->loop, &s->eo, on_outcome, on_broken, s, &s->err);
    if (!s->evaluator)
        return search_fail(s, &s->err);
    evaluator_submit(s->evaluator, ordinal, S("kernel.cu"), p->source);
    return true;
}

static void keep_accepted(struct search *s, const struct pending *p) {
    s->kept = mem_grow(s->kept, &s->cap_kept, s->nkept + 1, sizeof *s->kept);
    struct kept *k = &s->kept[s->nkept++];
    k->trial = p->trial;
    k->record = record_copy(p->outcome->record);
    k->source = mem_alloc(p->source.n + 1);
    memcpy(k->source, p->source.p, p->source.n);
}

/* The fallback's own time, or that of its twin. */
static double naive_time(const struct search *s) {
    for (size_t i = 0; i < s->e.n; i++)
        if (strategy_equal(s->briefing.catalogue, &s->e.trials[i].strategy, &s->fallback))
            return s->e.trials[i].time_s;
    return INFINITY;
}

/* A generation is announced in front of its first candidate. */
static void announce(struct search *s, uint64_t generation) {
    if (generation < s->generation)
        return;
    s->generation = generation + 1;
    search_emit_text(s, EVENT_GENERATION, S(""),
                     generation == 0 ? s->plan_reason : S("children of the best"));
}

static void consume(struct search *s, struct pending *p) {
    const struct outcome *o = p->outcome;
    double time_s = o->verdict == VERDICT_ACCEPTED ? o->time_s : INFINITY;
    evolve_align(&s->e, p->trial, &p->aligned);
    bool is_best = evolve_settle(&s->e, p->trial, time_s);
    s->best->naive_s = naive_time(s);
    s->best->evaluated++;
    s->best->replayed += p->replayed;
    announce(s, p->generation);
    emit_pending(s, EVENT_CANDIDATE, p);
    if (isfinite(time_s))
        keep_accepted(s, p);
    if (is_best)
        emit_pending(s, EVENT_BEST, p);
    outcome_free(p->outcome);
    p->outcome = NULL;
}

/* ---- a turn ---- */

/* Writes a trial's source. False with `refused` for a strategy that cannot be written. */
static bool write_source(struct search *s, struct pending *p, bool *refused) {
    struct answer a = {.mem = p->mem};
    const struct strategy *strategy = &s->e.trials[p->trial].strategy;
    s->o->agent->code(s->o->agent->self, &s->briefing, strategy, on_code, &a);
    if (!await(s, &a))
        return false;
    p->strategy = text_of(s, strategy, p->mem);
    *refused = !a.ok;
    if (a.ok) {
        p->source = a.source;
        digest_hex(sha256_of(p->source), p->hash);
        twin_hash(p->source, p->twin);
        return true;
    }
    s->code_err = a.err;
    search_emit_text(s, EVENT_NOTE, p->strategy, str_view(a.err.text));
    return false;
}

static bool is_twin(struct search *s, const struct pending *p) {
    for (uint64_t i = 0; i < s->e.submitted; i++)
        if (!strcmp(s->twins[i].hex, p->twin)) {
            evolve_twin(&s->e, p->trial, s->trial_of[i]);
            return true;
        }
    return false;
}

static void note_source(struct search *s, const struct pending *p) {
    size_t n = (size_t)s->e.submitted + 1;
    s->twins = mem_grow(s->twins, &s->cap_twins, n, sizeof *s->twins);
    s->trial_of = mem_grow(s->trial_of, &s->cap_trials, n, sizeof *s->trial_of);
    memcpy(s->twins[n - 1].hex, p->twin, sizeof p->twin);
    s->trial_of[n - 1] = p->trial;
}

/* Time that is up keeps a candidate from the evaluator, not from the archive. */
static bool submit(struct search *s, struct pending *p) {
    note_source(s, p);
    evolve_submit(&s->e, p->trial);
    uint64_t ordinal = s->e.trials[p->trial].ordinal;
    int known = recall(s, p, ordinal);
    if (known != 0 || time_is_up(s))
        return known >= 0;
    return evaluate(s, p, ordinal);
}

static bool take_turn(struct search *s) {
    struct pending *p = &s->pending[s->e.submitted % s->e.o.window];
    struct strategy proposal;
    struct proposal from;
    if (!evolve_propose(&s->e, s->nplan, &from))
        return true;
    *p = (struct pending){.search = s, .mem = p->mem, .generation = evolve_generation(&s->e)};
    arena_reset(p->mem);
    if (!answer_proposal(s, &from, &proposal, p))
        return false;
    for (uint64_t attempt = 0; attempt < CODE_TRIES; attempt++) {
        bool refused = false;
        if (!evolve_claim(&s->e, attempt, &proposal, &p->trial))
            return true;
        bool written = write_source(s, p, &refused);
        if (!written && !refused)
            return false;
        if (written && !is_twin(s, p))
            return submit(s, p);
    }
    evolve_pass(&s->e);
    return true;
}

/* The oldest candidate, in front of which it stops where its outcome will not be waited for. */
static bool settle_next(struct search *s) {
    struct pending *next = &s->pending[s->e.settled % s->e.o.window];
    if (s->e.settled == s->time_ends || (!next->is_known && time_is_up(s))) {
        s->stopped = "budget";
        return write_number(s, NOTE_TIME_ENDS, s->e.settled);
    }
    if (next->is_known)
        consume(s, next);
    else if (!loop_step(s->loop, POLL_MS, &s->err))
        return search_fail(s, &s->err);
    return true;
}

/* ---- the run ---- */

static size_t plan_size(const struct search *s) {
    if (s->o->how == SEARCH_RANDOM)
        return 0;
    bool all = s->o->how == SEARCH_ONCE && s->e.o.candidates;
    return all ? (size_t)s->e.o.candidates : search_plan(s->e.o.population);
}

static size_t population_of(const struct search *s) {
    return s->o->population ? s->o->population : SEARCH_POPULATION;
}

static bool find_window(struct search *s) {
    if (!read_number(s, NOTE_WINDOW, 0, &s->window))
        return false;
    if (s->window)
        return true;
    s->window = search_window(population_of(s), evaluator_workers(&s->eo));
    return write_number(s, NOTE_WINDOW, s->window);
}

static void set_up(struct search *s) {
    const struct search_options *o = s->o;
    const struct briefing *b = &s->briefing;
    size_t population = population_of(s);
    struct evolve_options eo = {
        .catalogue = b->catalogue,
        .ground = b->ground,
        .seed = o->seed,
        .how = o->how,
        .regime = o->blind ? REGIME_COUNT : briefing_regime(b),
        .population = population,
        .window = (size_t)s->window,
        .plateau = o->plateau ? o->plateau : PLATEAU,
        .candidates = o->budget.candidates,
        .limit_s = b->roofline.limit_s,
        .stop_share = o->stop_share > 0 ? o->stop_share : STOP_SHARE,
        .precedents = s->recalled.precedents,
        .nprecedents = s->recalled.nprecedents,
    };
    evolve_init(&s->e, &eo);
    strategy_fallback(b->catalogue, &eo.ground, &s->fallback);
    s->pending = arena_array(s->mem, struct pending, eo.window);
    for (size_t i = 0; i < eo.window; i++)
        s->pending[i].mem = arena_new(SEARCH_MEMORY_MAX);
}

static bool begin(struct search *s) {
    uint64_t space = strategy_space(s->e.o.catalogue, &s->e.o.ground);
    if (!read_number(s, NOTE_ELAPSED, 0, &s->before_ms) ||
        !read_number(s, NOTE_TIME_ENDS, UINT64_MAX, &s->time_ends))
        return false;
    search_emit_text(s, EVENT_START, S(""),
                     arena_printf(s->mem, "%s, %llu strategies, history of %zu run%s",
                                  s->o->agent->name, (unsigned long long)space, s->recalled.nruns,
                                  s->recalled.nruns == 1 ? "" : "s"));
    s->best->precedents = s->recalled.nruns;
    return plan_size(s) == 0 || ask_plan(s, plan_size(s));
}

static bool run(struct search *s) {
    if (!begin(s))
        return false;
    while (!s->stopped && (evolve_open(&s->e) || s->e.settled < s->e.submitted)) {
        arena_reset(s->scratch);
        if (interrupted(s))
            s->stopped = "interrupted";
        else if (!(evolve_open(&s->e) ? take_turn(s) : settle_next(s)) || s->failed)
            return false;
    }
    if (!s->stopped)
        s->stopped = evolve_stopped(&s->e);
    if (s->e.submitted == 0 && s->code_err.kind != ERR_NONE)
        return search_fail(s, &s->code_err);
    return true;
}

static void report_end(struct search *s, struct arena *a) {
    struct buf text;
    buf_init(&text, 8192);
    if (s->best->found)
        evolve_worth(&s->e, s->trial_of[s->best->ordinal], &text);
    str worth = s->best->worth = arena_str(a, buf_str(&text));
    search_emit_text(
        s, EVENT_END, S(""),
        arena_printf(s->mem, "%s%s%.*s", s->stopped, worth.n ? "; " : "", STR_ARG(worth)));
    buf_release(&text);
}

static void release(struct search *s) {
    if (s->evaluator)
        evaluator_free(s->evaluator);
    for (size_t i = 0; i < s->nkept; i++) {
        mem_free(s->kept[i].source);
        record_free(s->kept[i].record);
    }
    for (size_t i = 0; s->pending && i < s->e.o.window; i++) {
        outcome_free(s->pending[i].outcome);
        arena_free(s->pending[i].mem);
    }
    mem_free(s->kept);
    mem_free(s->twins);
    mem_free(s->trial_of);
    evolve_release(&s->e);
    history_release(&s->history);
    arena_free(s->scratch);
    arena_free(s->mem);
}

bool search_evolve(struct loop *l, const struct search_options *o,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct search s = {.loop = l,
                       .o = o,
                       .briefing = *o->briefing,
                       .eo = *eo,
                       .best = out,
                       .mem = arena_new(SEARCH_MEMORY_MAX),
                       .scratch = arena_new(SEARCH_MEMORY_MAX),
                       .start_ms = clock_ms()};
    *out = (struct search_best){.time_s = INFINITY, .naive_s = INFINITY};
    history_init(&s.history);
    bool ok = search_recall(&s) && find_window(&s);
    set_up(&s);
    ok = ok && run(&s) && winner_choose(&s, a);
    out->stopped = s.stopped;
    if (ok) {
        report_end(&s, a);
        search_remember(&s);
    } else {
        *err = s.err;
    }
    release(&s);
    return ok;
}
