#include "search/driver.h"
#include "agent/llm/evidence.h"
#include "archive/calls.h"
#include "base/hash.h"
#include "search/evolve.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLATEAU        3
#define STOP_SHARE     0.98
#define MEMORY_MAX     ((size_t)1 << 30)
#define TICK_MS        1000  /* how often who watches is told that time passes */
#define POLL_MS        50    /* how late a signal or the end of the time may be noticed */
#define FIRST_MS       60000 /* for the first outcome, at least */
#define OVERTIME_MS    10000 /* for verifying the winner, at least */
#define OVERTIME_TIMES 4     /* … or so many times what evaluating the first candidate took */
#define LAST_CHECK_MS  3000  /* for verifying the winner of a run that was interrupted */
#define UNJUDGED_MOST  8     /* candidates in a row: then it is not the candidates */
#define TEXT_MAX       8192
#define NOTE_ELAPSED   "elapsed_ms"
#define NOTE_TIME_ENDS "time_ended_after"     /* candidates taken */
#define NOTE_TIME_HAD  "time_ended_budget_ms" /* … under this budget */
#define NOTE_BUDGETS   "budgets" /* numbers of candidates with blanks between; 0: no end */

bool driver_fail(struct driver *d, const struct err *why) {
    if (!d->failed)
        d->err = *why;
    d->failed = true;
    return false;
}

static uint64_t elapsed_ms(const struct driver *d) {
    return d->before_ms + (clock_ms() - d->start_ms);
}

bool driver_stop(struct driver *d, const char *why) {
    if (!d->stopped) {
        d->stopped = why;
        d->best->had_s = (double)elapsed_ms(d) / 1000;
    }
    return false;
}

void driver_note_failure(struct driver *d) {
    if (!d->best->failure.n)
        d->best->failure = arena_str(d->best_mem, str_view(d->err.text));
}

const char *search_why_ended(str stopped) {
    static const struct {
        const char *stopped, *words;
    } why[] = {
        {"budget", "the budget is used up"},
        {"limit", "the best kernel is as near to the limit as --stop early asks for"},
        {"plateau", "the last candidates gained nothing"},
        {"space", "no further strategy is left to try"},
        {"plan", "every proposal of the planner was tried"},
        {"interrupted", "it was interrupted"},
        {"failed", "the environment failed"},
        {"no answer", "the model gave no answer"},
        {"no usable reply", "the model gave no usable reply"},
        {"no candidate was right", "no candidate was right"},
    };
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        if (str_is(stopped, why[i].stopped))
            return why[i].words;
    return "the reason was not recorded";
}

bool driver_goes_on(const struct driver *d) {
    return !d->failed && !d->stopped;
}

/* ---- events ---- */

const char *event_name(enum event_kind k) {
    static const char *const names[EVENT_COUNT] = {
#define EVENT(id, name) name,
#include "search/event.def"
#undef EVENT
    };
    return k < EVENT_COUNT ? names[k] : "unknown";
}

static void emit(const struct driver *d, struct event *e) {
    e->done = d->best->evaluated;
    e->budget = d->o.budget.candidates;
    e->elapsed_s = (double)elapsed_ms(d) / 1000;
    e->budget_s = (double)d->o.budget.ms / 1000;
    e->planning = d->nknown == 0;
    e->best_s = d->best_s;
    e->best_low_s = d->best_low_s;
    e->best_high_s = d->best_high_s;
    e->limit_s = d->briefing.roofline.limit_s;
    e->naive_s = d->best->naive_s;
    if (d->o.emit)
        d->o.emit(d->o.emit_ctx, e);
}

void driver_say(const struct driver *d, enum event_kind kind, str text) {
    struct event e = {.kind = kind, .generation = d->generation, .time_s = INFINITY, .text = text};
    if (kind == EVENT_START) {
        struct strategy plain;
        strategy_fallback(d->briefing.catalogue, &d->briefing.ground, &plain);
        e.strategy = strategy_as_text(d->briefing.catalogue, &plain, d->mem);
    }
    emit(d, &e);
}

void driver_tick(void *driver) {
    struct driver *d = driver;
    uint64_t now = clock_ms();
    if (now - d->ticked_ms < TICK_MS)
        return;
    d->ticked_ms = now;
    driver_say(d, EVENT_TICK, S(""));
}

/* The strategy, where that is known when the outcome is as the code has it. */
static str strategy_of(const struct search_candidate *c) {
    const struct driver *d = c->driver;
    return strategy_as_text(d->briefing.catalogue, d->policy->window ? &c->aligned : &c->strategy,
                            c->mem);
}

/* Code of a model is known by the idea behind it. */
static void show(const struct search_candidate *c, enum event_kind kind) {
    const struct outcome *o = c->outcome;
    struct event e = {.kind = kind,
                      .generation = c->generation,
                      .ordinal = c->ordinal,
                      .strategy = c->driver->policy->window ? strategy_of(c) : c->reason,
                      .text = candidate_accepted(c) ? c->reason : str_view(o->why),
                      .verdict = o->verdict,
                      .time_s = o->time_s,
                      .estimated = o->estimated,
                      .replayed = c->replayed};
    emit(c->driver, &e);
}

/* ---- notes in the archive ---- */

bool driver_read_note(struct driver *d, const char *key, str *out) {
    *out = S("");
    return !d->o.archive || archive_get_note(d->o.archive, key, d->mem, out, &d->err) ||
           driver_fail(d, &d->err);
}

bool driver_write_note(struct driver *d, const char *key, str value) {
    struct err err;
    return !d->o.archive || archive_note(d->o.archive, key, value, &err) || driver_fail(d, &err);
}

static void say_damaged(struct driver *d, const char *key, const char *is_not) {
    driver_say(d, EVENT_NOTE,
               arena_printf(d->mem,
                            "run.db: the row '%s' of the table meta is not %s; it is left out of "
                            "account",
                            key, is_not));
}

bool driver_read_number(struct driver *d, const char *key, uint64_t absent, uint64_t *out) {
    str text;
    *out = absent;
    if (!driver_read_note(d, key, &text))
        return false;
    if (text.n && !str_to_u64(text, out)) {
        *out = absent;
        say_damaged(d, key, "a number");
    }
    return true;
}

bool driver_write_number(struct driver *d, const char *key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return driver_write_note(d, key, str_view(text));
}

/* ---- budgets, the clock, stop requests ---- */

uint64_t driver_left(const struct driver *d) {
    uint64_t most = d->o.budget.candidates;
    return most ? most - d->nknown : UINT64_MAX;
}

uint64_t driver_left_told(const struct driver *d) {
    str rest = d->budgets, word;
    uint64_t budget;
    while (str_word(&rest, ' ', &word))
        if (str_to_u64(word, &budget) && (!budget || budget > d->nknown))
            return budget ? budget - d->nknown : NO_BUDGET;
    return 0;
}

static bool note_budget(struct driver *d) {
    str text, word, rest;
    uint64_t last = UINT64_MAX, now = d->o.budget.candidates;
    if (!driver_read_note(d, NOTE_BUDGETS, &text))
        return false;
    for (rest = text; str_word(&rest, ' ', &word);)
        if (!str_to_u64(word, &last)) {
            say_damaged(d, NOTE_BUDGETS, "of numbers");
            text = S("");
            break;
        }
    d->budgets = text;
    if (text.n && last == now)
        return true;
    d->budgets = arena_printf(d->mem, "%.*s%s%llu", STR_ARG(text), text.n ? " " : "",
                              (unsigned long long)now);
    return driver_write_note(d, NOTE_BUDGETS, d->budgets);
}

static bool time_is_up(const struct driver *d) {
    return d->o.budget.ms && elapsed_ms(d) >= d->o.budget.ms;
}

static bool is_evaluating(const struct driver *d) {
    for (size_t i = d->first; i < d->n; i++)
        if (d->candidates[i]->state == CANDIDATE_EVALUATING && d->candidates[i]->submitted_ms)
            return true;
    return false;
}

static uint64_t at_least(uint64_t ms, uint64_t least) {
    return ms > least ? ms : least;
}

/* Without any outcome a run has come to nothing: the first is waited for longer than a user may
 * have asked for who does not know how long one takes. */
static uint64_t first_ms(const struct driver *d) {
    return at_least(d->o.budget.ms, FIRST_MS);
}

static uint64_t overtime_ms(const struct driver *d) {
    uint64_t several = (uint64_t)(OVERTIME_TIMES * 1000 * d->best->first_s);
    return at_least(at_least(d->o.budget.ms, several), OVERTIME_MS);
}

/* Time that is up is not over while there is nothing to hand over and something may come. */
static bool time_is_over(struct driver *d) {
    if (!time_is_up(d))
        return false;
    if (isfinite(d->kept_s) || !is_evaluating(d) || elapsed_ms(d) >= d->o.budget.ms + first_ms(d))
        return true;
    if (!d->overtime)
        driver_say(d, EVENT_NOTE,
                   arena_printf(d->mem,
                                "the time is up and no kernel is known to be right so far; the "
                                "first one is waited for, %.0f s at the most",
                                (double)first_ms(d) / 1000));
    d->overtime = true;
    return false;
}

static bool heed_interruption(struct driver *d) {
    return !(d->o.interrupted && *d->o.interrupted) || driver_stop(d, "interrupted");
}

static bool step_loop(struct driver *d) {
    driver_tick(d);
    return (loop_step(d->loop, POLL_MS, &d->err) || driver_fail(d, &d->err)) && !d->failed;
}

/* False where waiting has come to its end: the run failed or stopped. */
static bool wait_for_models(struct driver *d) {
    if (!driver_goes_on(d) || !heed_interruption(d))
        return false;
    /* The note says that it was up, whatever the clock says next time. */
    if (time_is_over(d))
        return driver_write_number(d, NOTE_ELAPSED, d->o.budget.ms) && driver_stop(d, "budget");
    return step_loop(d);
}

/* ---- candidates ---- */

bool candidate_accepted(const struct search_candidate *c) {
    return c->state != CANDIDATE_SET_ASIDE && isfinite(c->time_s);
}

str candidate_where(const struct search_candidate *c) {
    struct buf b;
    buf_init(&b, 4096);
    facts_summarise(c->outcome, &b);
    str text = arena_str(c->mem, buf_str(&b));
    buf_release(&b);
    return text;
}

struct search_candidate *driver_add(struct driver *d) {
    struct search_candidate *c = mem_alloc(sizeof *c);
    d->candidates = mem_grow(d->candidates, &d->cap, d->n + 1, sizeof *d->candidates);
    d->candidates[d->n++] = c;
    *c = (struct search_candidate){.state = CANDIDATE_PROPOSED,
                                   .driver = d,
                                   .generation = d->generation,
                                   .time_s = INFINITY,
                                   .origin = {.proposed = phase_now()},
                                   .mem = arena_new(MEMORY_MAX)};
    return c;
}

/* What it came to stays; its texts and its record go. */
static void forget(struct search_candidate *c) {
    outcome_free(c->outcome);
    arena_free(c->mem);
    c->outcome = NULL;
    c->mem = NULL;
    c->source = c->reason = S("");
}

void driver_drop_last(struct driver *d) {
    struct search_candidate *c = d->candidates[--d->n];
    forget(c);
    mem_free(c);
}

static bool archive(struct search_candidate *c) {
    struct driver *d = c->driver;
    struct err err;
    if (!d->o.archive || c->replayed)
        return true;
    struct archive_candidate row = {.ordinal = c->ordinal,
                                    .generation = c->generation,
                                    .slot = c->slot,
                                    .strategy = strategy_of(c),
                                    .reason = c->reason,
                                    .source = c->source};
    memcpy(row.source_hash, c->hash, sizeof row.source_hash);
    return (archive_add(d->o.archive, &row, c->outcome->record, &err) || driver_fail(d, &err)) &&
           driver_write_number(d, NOTE_ELAPSED, elapsed_ms(d));
}

/* Where it comes from becomes part of its record. */
static void note_origin(struct search_candidate *c) {
    const struct agent *a = c->driver->o.agent;
    struct origin from = c->origin;
    str remarks = a->remarks ? a->remarks(a->self, c->hash, c->mem) : S("");
    from.ordinal = c->ordinal;
    if (remarks.n)
        from.structure = remarks;
    record_set_origin(c->outcome->record, &from);
}

/* What is replayed the caller was given when it was new. */
static void keep_best(struct search_candidate *c) {
    struct driver *d = c->driver;
    if (c->outcome->verdict != VERDICT_ACCEPTED || !(c->outcome->time_s < d->kept_s))
        return;
    d->kept_s = c->outcome->time_s;
    if (d->o.keep_best && !c->replayed)
        d->o.keep_best(d->o.keep_ctx, c->source, c->outcome->record);
}

static void complete(struct search_candidate *c, struct outcome *o) {
    c->outcome = o;
    note_origin(c);
    keep_best(c);
    c->state = CANDIDATE_DONE;
    c->time_s = o->time_s;
    c->unjudged = o->verdict == VERDICT_UNJUDGED;
    if (c->driver->policy->window && o->verdict == VERDICT_ACCEPTED)
        driver_ask_alignment(c, &c->driver->briefing);
    else
        archive(c);
}

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct driver *d = ctx;
    for (size_t i = d->first; i < d->n; i++) {
        struct search_candidate *c = d->candidates[i];
        if (c->state != CANDIDATE_EVALUATING || c->ordinal != id)
            continue;
        if (d->best->first_s <= 0)
            d->best->first_s = (double)(clock_ms() - c->submitted_ms) / 1000;
        complete(c, o);
        return;
    }
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    driver_fail(ctx, why);
}

/* The outcome recorded for it, if there is one. A candidate whose evaluation failed has none, as
 * long as there is time to evaluate it again. */
static int find_outcome(const struct search_candidate *c, struct record **out, struct err *err) {
    const struct driver *d = c->driver;
    int found = d->o.archive ? archive_lookup(d->o.archive, c->ordinal, c->hash, out, err) : 0;
    if (found != 1 || (*out)->verdict != VERDICT_UNJUDGED || time_is_up(d))
        return found;
    str why = arena_str(c->mem, (*out)->why);
    record_free(*out);
    if (!archive_forget(d->o.archive, c->ordinal, err))
        return -1;
    err_set(err, ERR_NO, "candidate %llu could not be judged before (%.*s); it is evaluated again",
            (unsigned long long)c->ordinal, STR_ARG(why));
    return 0;
}

static bool replay(struct search_candidate *c) {
    struct driver *d = c->driver;
    struct record *record = NULL;
    struct err err = {0};
    int found = find_outcome(c, &record, &err);
    if (found == 0 && err.kind != ERR_NONE)
        driver_say(d, EVENT_NOTE, str_view(err.text));
    c->replayed = found == 1;
    if (c->replayed)
        complete(c, outcome_of(record));
    return found >= 0 || driver_fail(d, &err);
}

struct evaluator *driver_evaluator(struct driver *d) {
    if (!d->evaluator)
        d->evaluator = evaluator_new(d->loop, &d->eo, on_outcome, on_broken, d, &d->err);
    return d->evaluator;
}

/* From the archive, or to the evaluator; time that is up keeps all but the first from the latter.
 */
static void submit(struct search_candidate *c) {
    struct driver *d = c->driver;
    c->state = CANDIDATE_EVALUATING;
    if (!replay(c) || c->replayed || (time_is_up(d) && d->nknown > 1))
        return;
    if (!driver_evaluator(d)) {
        driver_fail(d, &d->err);
        return;
    }
    c->submitted_ms = clock_ms();
    evaluator_submit(d->evaluator, c->ordinal, S("kernel.cu"), c->source);
}

/* ---- sources ---- */

static bool is_comment(str line) {
    line = str_trim(line);
    return str_starts(line, S("//")) && !str_starts(line, S("//!"));
}

void search_code_hash(str source, char hex[65]) {
    struct sha256 h;
    str line;
    sha256_init(&h);
    while (str_line(&source, &line))
        if (!is_comment(line))
            sha256_put_str(&h, line);
    digest_hex(sha256_end(&h), hex);
}

/* Of earlier rounds: which came first of those of this round depends on who answers first. */
static const struct search_candidate *find_known(const struct driver *d, const char *hash) {
    for (size_t i = 0; i < d->nknown && d->known[i].round < d->round; i++)
        if (strcmp(d->known[i].hash, hash) == 0)
            return d->known[i].candidate;
    return NULL;
}

static void add_known(const struct search_candidate *c, const char *hash) {
    struct driver *d = c->driver;
    d->known = mem_grow(d->known, &d->cap_known, d->nknown + 1, sizeof *d->known);
    struct known_source *k = &d->known[d->nknown++];
    *k = (struct known_source){.round = d->round, .candidate = c};
    memcpy(k->hash, hash, sizeof k->hash);
}

/* A source that has come in becomes the candidate's present version and is evaluated at once, while
 * others are still being written. One that is no new source leaves the version that there was. */
static void take_source(struct search_candidate *c, str source, str reason) {
    struct driver *d = c->driver;
    bool repair = c->state == CANDIDATE_BEING_REPAIRED;
    char hash[65], code[65];
    digest_hex(sha256_of(source), hash);
    search_code_hash(source, code);
    const char *known_by = d->policy->window ? code : hash;
    c->state = repair ? CANDIDATE_DONE : CANDIDATE_SET_ASIDE;
    c->declined = source.n == 0;
    c->repeats = find_known(d, known_by);
    if (!repair || !c->repeats)
        c->reason = reason;
    if (c->declined || c->repeats)
        return;
    BUG_IF(!driver_left(d));
    outcome_free(c->outcome);
    c->outcome = NULL;
    c->taken = false;
    c->rejected += repair;
    if (repair)
        c->origin = (struct origin){.step = "repair",
                                    .parents = {c->ordinal},
                                    .nparents = 1,
                                    .structure = reason,
                                    .proposed = c->asked_at};
    else if (c->origin.step && !strcmp(c->origin.step, "improve"))
        c->origin.structure = reason;
    c->source = arena_str(c->mem, source);
    memcpy(c->hash, hash, sizeof c->hash);
    c->ordinal = c->next_ordinal;
    add_known(c, known_by);
    submit(c);
}

/* ---- questions ---- */

/* True: there is an answer that can be used. */
static bool usable(struct driver *d, const struct err *err) {
    if (!err)
        return true;
    d->unwritten = *err;
    driver_say(d, EVENT_NOTE, str_view(err->text));
    d->gone |= err->kind == ERR_NO;
    return false;
}

static void begin_question(struct search_candidate *c, enum candidate_state state) {
    c->state = state;
    c->asked_at = phase_now();
    c->unanswered = c->declined = false;
    c->repeats = NULL;
}

static bool end_question(struct search_candidate *c, const struct err *err) {
    c->unanswered = !usable(c->driver, err);
    return !c->unanswered;
}

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *err) {
    struct driver *d = ctx;
    d->plan_asked = false;
    if (!usable(d, err))
        return;
    d->plan = arena_array(d->mem, struct strategy, n + 1);
    memcpy(d->plan, list, n * sizeof *list);
    d->nplan = n;
    d->plan_reason = arena_str(d->mem, reason);
}

static void on_child(void *ctx, const struct strategy *list, size_t n, str reason,
                     const struct err *err) {
    struct search_candidate *c = ctx;
    c->state = CANDIDATE_PROPOSED;
    c->unanswered = !end_question(c, err) || n == 0;
    if (c->unanswered)
        return;
    c->strategy = list[0];
    c->reason = arena_str(c->mem, reason);
}

static void on_code(void *ctx, str source, const struct strategy *written, const struct err *err) {
    struct search_candidate *c = ctx;
    c->aligned = c->strategy;
    c->state = CANDIDATE_SET_ASIDE;
    if (!end_question(c, err))
        return;
    c->written = *written;
    take_source(c, source, c->reason);
}

static void on_edit(void *ctx, str source, str idea, const struct err *err) {
    struct search_candidate *c = ctx;
    if (end_question(c, err))
        take_source(c, source, arena_str(c->mem, idea));
    else
        c->state = c->outcome ? CANDIDATE_DONE : CANDIDATE_SET_ASIDE;
}

static void on_aligned(void *ctx, const struct strategy *list, size_t n, str reason,
                       const struct err *err) {
    struct search_candidate *c = ctx;
    c->state = CANDIDATE_DONE;
    c->is_aligned = end_question(c, err) && n;
    if (c->is_aligned)
        c->aligned = list[0];
    if (c->is_aligned && reason.n)
        c->reason =
            arena_printf(c->mem, "%.*s; aligned: %.*s", STR_ARG(c->reason), STR_ARG(reason));
    if (c->driver->policy->window)
        archive(c);
}

void driver_ask_plan(struct driver *d, const struct briefing *b, size_t n) {
    struct agent *a = d->o.agent;
    d->plan_asked = true;
    a->plan(a->self, b, n, rng_stream(d->o.seed, S("plan")), on_plan, d);
}

void candidate_set_parents(struct search_candidate *c, const struct parent *x,
                           const struct parent *y) {
    c->origin.step = "crossover";
    c->origin.parents[0] = x->candidate;
    c->origin.parents[1] = y->candidate;
    c->origin.nparents = isfinite(y->time_s) ? 2 : 1;
}

void driver_ask_child(struct search_candidate *c, const struct briefing *b, const struct parent *x,
                      const struct parent *y, struct rng r) {
    struct agent *a = c->driver->o.agent;
    candidate_set_parents(c, x, y);
    begin_question(c, CANDIDATE_BEING_PROPOSED);
    a->cross(a->self, b, x, y, r, on_child, c);
}

void driver_ask_source(struct search_candidate *c, const struct briefing *b) {
    struct agent *a = c->driver->o.agent;
    begin_question(c, CANDIDATE_BEING_WRITTEN);
    a->code(a->self, b, &c->strategy, on_code, c);
}

void driver_ask_repair(struct search_candidate *c, const struct briefing *b, size_t more,
                       str earlier) {
    struct agent *a = c->driver->o.agent;
    struct attempt at = {&c->strategy, c->source, c->outcome, more};
    begin_question(c, CANDIDATE_BEING_REPAIRED);
    a->debug(a->self, b, &at, earlier, on_edit, c);
}

void driver_ask_change(struct search_candidate *c, const struct briefing *b,
                       const struct search_candidate *of, const struct guidance *g) {
    struct agent *a = c->driver->o.agent;
    struct attempt at = {&of->strategy, of->source, of->outcome, 0};
    c->strategy = c->aligned = of->strategy;
    c->written = of->written;
    c->origin.step = "improve";
    c->origin.parents[0] = of->ordinal;
    c->origin.nparents = 1;
    begin_question(c, CANDIDATE_BEING_WRITTEN);
    a->improve(a->self, b, &at, g, on_edit, c);
}

void driver_ask_alignment(struct search_candidate *c, const struct briefing *b) {
    struct agent *a = c->driver->o.agent;
    begin_question(c, CANDIDATE_BEING_ALIGNED);
    a->align(a->self, b, &c->strategy, &c->written, c->outcome->record, on_aligned, c);
}

void driver_align_by_rule(struct search_candidate *c) {
    struct buf ignored;
    buf_init(&ignored, TEXT_MAX);
    aligner_align(c->driver->o.briefing, &c->strategy, c->outcome->record, &c->aligned, &ignored);
    buf_release(&ignored);
    c->is_aligned = true;
}

/* Whether the plan is asked for, or a candidate is in a state up to this one. */
static bool under_way(const struct driver *d, enum candidate_state last) {
    bool found = d->plan_asked;
    for (size_t i = d->first; i < d->n && !found; i++)
        found = d->candidates[i]->state <= last;
    return found;
}

bool driver_await_answers(struct driver *d) {
    while (under_way(d, CANDIDATE_BEING_ALIGNED))
        if (!wait_for_models(d))
            return false;
    return driver_goes_on(d);
}

struct briefing driver_brief(const struct driver *d, uint64_t candidate, size_t stale) {
    struct briefing b = d->briefing;
    b.candidate = candidate;
    b.outlook = (struct outlook){driver_left_told(d), stale};
    return b;
}

/* ---- the run ---- */

/* One that could not be judged says nothing of the next; many in a row do. What an earlier process
 * met says nothing of the workers that there are now. */
static void count_unjudged(struct driver *d, const struct search_candidate *c) {
    const struct outcome *o = c->outcome;
    struct err err = {0};
    d->unjudged = o->verdict == VERDICT_UNJUDGED && !c->replayed ? d->unjudged + 1 : 0;
    if (d->unjudged < UNJUDGED_MOST)
        return;
    err_set(&err, ERR_ENV, "%zu candidates in a row could not be judged: %s", d->unjudged, o->why);
    driver_fail(d, &err);
}

static void count_evaluated(struct search_candidate *c) {
    struct search_best *b = c->driver->best;
    b->evaluated++;
    b->replayed += c->replayed;
}

static void note_interval(const struct search_candidate *c) {
    const struct record *r = c->outcome->record;
    bool known = r->has_ci_low_s && r->has_ci_high_s;
    c->driver->best_low_s = known ? r->ci_low_s : 0;
    c->driver->best_high_s = known ? r->ci_high_s : 0;
}

/* What a window's policy has learnt of it is in its events; what models' policies have is not. */
static void take(struct search_candidate *c) {
    struct driver *d = c->driver;
    c->taken = true;
    count_evaluated(c);
    count_unjudged(d, c);
    if (!d->policy->window)
        show(c, EVENT_CANDIDATE);
    bool is_best = d->policy->take(d->policy->self, c);
    if (d->policy->window)
        show(c, EVENT_CANDIDATE);
    if (is_best)
        note_interval(c);
    if (is_best)
        show(c, EVENT_BEST);
    if (d->policy->window && !candidate_accepted(c))
        forget(c);
}

/* The oldest candidate, in front of which it stops where its outcome will not be waited for. */
static void take_oldest(struct driver *d) {
    struct search_candidate *c = d->candidates[d->first];
    bool known = c->state == CANDIDATE_DONE;
    if (d->first == d->time_ends || (!known && time_is_over(d))) {
        driver_stop(d, "budget");
        if (driver_write_number(d, NOTE_TIME_ENDS, d->first))
            driver_write_number(d, NOTE_TIME_HAD, d->o.budget.ms);
    } else if (known) {
        d->first++;
        take(c);
    } else {
        step_loop(d);
    }
}

/* Also where one question had no answer and the run will end: the others are paid for, and what
 * they came to is recorded. */
static void take_round(struct driver *d) {
    while (under_way(d, CANDIDATE_EVALUATING) && wait_for_models(d))
        ;
    for (size_t i = d->first; i < d->n; i++)
        if (d->candidates[i]->outcome && !d->candidates[i]->taken)
            take(d->candidates[i]);
    if (d->gone)
        driver_stop(d, "no answer");
}

static void run(struct driver *d) {
    const struct policy *p = d->policy;
    while (driver_goes_on(d) && heed_interruption(d)) {
        d->round++;
        bool begun = p->next(p->self);
        if (!p->window)
            take_round(d);
        else if (!begun && d->first < d->n)
            take_oldest(d);
        else if (!begun)
            break;
    }
    if (p->end)
        p->end(p->self);
    if (d->nknown == 0 && d->unwritten.kind != ERR_NONE) {
        if (!p->window)
            d->unwritten.kind = ERR_ENV;
        driver_fail(d, &d->unwritten);
    }
}

/* ---- the end ---- */

/* Adds to the n there are; of a chain's strategies, of which code changes and decisions do not, the
 * fastest candidate counts. */
static size_t add_tried(const struct driver *d, const struct strategy *s, double time_s,
                        struct tried *list, size_t n) {
    for (size_t i = 0; d->policy->chain && i < n; i++)
        if (strategy_equal(d->briefing.catalogue, &list[i].strategy, s)) {
            list[i].time_s = fmin(list[i].time_s, time_s);
            return n;
        }
    list[n] = (struct tried){.strategy = *s, .time_s = time_s};
    return n + 1;
}

/* Leaves the run to history. */
static void remember(const struct driver *d) {
    struct tried *list = arena_array(d->mem, struct tried, 2 * d->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct search_candidate *c = d->candidates[i];
        if (d->policy->chain && c->rejected)
            n = add_tried(d, &c->strategy, INFINITY, list, n);
        if (c->taken && !c->unjudged)
            n = add_tried(d, &c->aligned, c->time_s, list, n);
    }
    recall_add(d, list, n);
}

static void report_end(struct driver *d, struct arena *a, const struct search_candidate *winner) {
    struct buf text;
    struct search_best *b = d->best;
    buf_init(&text, TEXT_MAX);
    if (winner && winner->taken && d->policy->worth)
        b->nworths = d->policy->worth(d->policy->self, winner, b->worths);
    if (b->nworths)
        evolve_put_worth(d->briefing.catalogue, &winner->aligned, b->worths, b->nworths, &text);
    str worth = b->worth = arena_str(a, buf_str(&text));
    buf_release(&text);
    driver_say(d, EVENT_END,
               arena_printf(d->mem, "%s%s%.*s", d->stopped, worth.n ? "; " : "", STR_ARG(worth)));
}

/* Where an earlier command was out of time, unless this one has more of it. */
static bool read_time_end(struct driver *d) {
    uint64_t had;
    if (!driver_read_number(d, NOTE_TIME_ENDS, UINT64_MAX, &d->time_ends) ||
        !driver_read_number(d, NOTE_TIME_HAD, UINT64_MAX, &had))
        return false;
    if (!d->o.budget.ms || d->o.budget.ms > had)
        d->time_ends = UINT64_MAX;
    return true;
}

static bool begin(struct driver *d) {
    return driver_read_number(d, NOTE_ELAPSED, 0, &d->before_ms) &&
           (d->policy->window ? read_time_end(d) : note_budget(d)) && recall_brief(d) &&
           d->policy->begin(d->policy->self);
}

static void init(struct driver *d, const struct policy *p, struct loop *l,
                 const struct search_options *o, const struct evaluator_options *eo,
                 struct arena *best_mem, struct search_best *best) {
    *best = (struct search_best){.time_s = INFINITY, .naive_s = INFINITY};
    *d = (struct driver){.policy = p,
                         .loop = l,
                         .o = *o,
                         .eo = *eo,
                         .briefing = *o->briefing,
                         .mem = arena_new(MEMORY_MAX),
                         .best = best,
                         .best_mem = best_mem,
                         .best_s = INFINITY,
                         .kept_s = INFINITY,
                         .start_ms = clock_ms()};
    d->o.population = o->population ? o->population : SEARCH_POPULATION;
    d->o.plateau = o->plateau ? o->plateau : PLATEAU;
    d->o.stop_share = o->stop_share > 0 ? o->stop_share : STOP_SHARE;
    d->eo.thorough |= !p->window; /* few, each the ground of the next: none is half right */
    history_init(&d->history);
}

static void release(struct driver *d) {
    if (d->evaluator)
        evaluator_free(d->evaluator);
    while (d->n)
        driver_drop_last(d);
    mem_free(d->candidates);
    mem_free(d->known);
    history_release(&d->history);
    arena_free(d->mem);
}

/* Outcomes that arrived before the policy could be given them, and what was still waited for. */
static void count_rest(struct driver *d) {
    for (size_t i = d->first; i < d->n; i++) {
        struct search_candidate *c = d->candidates[i];
        if (c->state == CANDIDATE_DONE && c->outcome && !c->taken)
            count_evaluated(c);
        if (c->state == CANDIDATE_EVALUATING && c->submitted_ms && d->best->waited_s <= 0)
            d->best->waited_s = (double)(clock_ms() - c->submitted_ms) / 1000;
    }
}

/* ---- what the archive has and this command did not come to ---- */

static bool has_outcome_of(const struct driver *d, uint64_t ordinal) {
    for (size_t i = 0; i < d->n; i++)
        if (d->candidates[i]->ordinal == ordinal &&
            (d->candidates[i]->outcome || d->candidates[i]->taken))
            return true;
    return false;
}

static void add_archived(void *ctx, const struct archive_candidate *kept, struct record *record,
                         const struct err *why) {
    struct driver *d = ctx;
    struct err ignored = {0};
    (void)why;
    if (!record || record->verdict != VERDICT_ACCEPTED || has_outcome_of(d, kept->ordinal)) {
        record_free(record);
        return;
    }
    struct search_candidate *c = driver_add(d);
    c->generation = kept->generation;
    c->slot = kept->slot;
    c->ordinal = kept->ordinal;
    c->source = arena_str(c->mem, kept->source);
    c->reason = arena_str(c->mem, kept->reason);
    memcpy(c->hash, kept->source_hash, sizeof c->hash);
    if (!strategy_parse(d->briefing.catalogue, kept->strategy, &c->strategy, &ignored))
        strategy_fallback(d->briefing.catalogue, &d->briefing.ground, &c->strategy);
    c->written = c->aligned = c->strategy;
    c->is_aligned = c->replayed = true;
    c->outcome = outcome_of(record);
    c->time_s = c->outcome->time_s;
    c->state = CANDIDATE_DONE;
}

/* Whether the run ended before it could come to everything that the archive has. */
static bool ended_early(const struct driver *d) {
    static const char *const early[] = {"interrupted", "no answer", "no usable reply"};
    bool found = d->failed || !d->stopped || time_is_up(d);
    for (size_t i = 0; !found && i < sizeof early / sizeof *early; i++)
        found = !strcmp(d->stopped, early[i]);
    return found;
}

/* What cannot be read is as if it were not there: this is the last resort. */
static void take_archived(struct driver *d) {
    struct err ignored = {0};
    if (d->o.archive && ended_early(d))
        archive_each_candidate(d->o.archive, add_archived, d, &ignored);
}

/* How long the winner may be verified: as long as it takes where nobody waits for the end. */
static void set_hand_over(struct driver *d, bool failed) {
    bool interrupted = d->stopped && !strcmp(d->stopped, "interrupted");
    uint64_t ms = interrupted ? LAST_CHECK_MS : failed || d->o.budget.ms ? overtime_ms(d) : 0;
    d->hand_over_by = ms ? clock_ms() + ms : 0;
}

/* The run is over; so is what failed in it, where there is something to hand over all the same. */
static bool hand_over(struct driver *d, struct arena *a) {
    bool failed = d->failed;
    take_archived(d);
    count_rest(d);
    if (failed && !winner_exists(d)) {
        driver_say(d, EVENT_END, S("failed"));
        return false;
    }
    set_hand_over(d, failed);
    if (failed) {
        driver_note_failure(d);
        d->stopped = "failed";
        d->failed = false;
    }
    struct search_candidate *winner = winner_choose(d, a);
    if (!failed)
        remember(d);
    report_end(d, a, winner);
    return true;
}

bool driver_run(struct driver *d, const struct policy *p, struct loop *l,
                const struct search_options *o, const struct evaluator_options *eo, struct arena *a,
                struct search_best *out, struct err *err) {
    init(d, p, l, o, eo, a, out);
    if (begin(d))
        run(d);
    else
        driver_fail(d, &d->err);
    bool ok = hand_over(d, a);
    d->best->stopped = d->stopped;
    if (!ok)
        *err = d->err;
    release(d);
    return ok;
}
