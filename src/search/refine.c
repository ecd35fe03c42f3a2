/* Drives the core of course.h.
 *
 * 1. One thing happens at a time: a question to the agent or an evaluation.
 * 2. The clock decides nothing but the end, and where it ended is noted, so that the same command
 *    run again comes to the same end.
 * 3. An agent that cannot answer any more (a cap, nobody there) ends the run with the best so far;
 *    the same command goes on from there. */
#include "search/refine.h"
#include "search/finalist.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEEDS          3 /* strategies that are tried until a first candidate is right */
#define REPAIRS        4
#define STOP_SHARE     0.98
#define POLL_MS        50
#define MEMORY_MAX     ((size_t)1 << 30)
#define NOTE_ELAPSED   "elapsed_ms"
#define NOTE_TIME_ENDS "time_ended_after" /* candidates settled */
#define WHY_BYTES      240

/* A candidate that was evaluated. Texts and outcome live as long as the run. */
struct trial {
    uint64_t ordinal, round, slot;
    struct strategy strategy;
    str source, idea;
    char hash[65];
    struct outcome *outcome;
    bool replayed;
};

/* An agent's answer. */
struct answer {
    struct arena *mem;
    bool done, ok;
    struct strategy strategies[SEEDS];
    size_t n;
    str source, idea;
    struct err err;
};

struct refine {
    struct loop *loop;
    const struct search_options *o;
    struct refine_options ro;
    struct evaluator_options eo;
    struct evaluator *evaluator; /* NULL: not needed so far */
    struct arena *mem;
    struct course course;
    struct trial *trials;
    size_t n, cap, settled;
    size_t best; /* trial */
    struct outcome *arrived;
    struct search_best *out;
    uint64_t start_ms, before_ms, time_ends;
    uint64_t round, slot;
    const char *stopped;
    bool failed;
    struct err err, unwritten; /* unwritten: why the last one could not be */
};

static bool fail(struct refine *s, const struct err *why) {
    if (!s->failed)
        s->err = *why;
    s->failed = true;
    return false;
}

/* Stops the run for a reason from outside the core; false, for the caller to return. */
static bool stop(struct refine *s, const char *why) {
    if (!s->stopped)
        s->stopped = why;
    return false;
}

/* ---- the clock ---- */

static uint64_t elapsed_ms(const struct refine *s) {
    return s->before_ms + (clock_ms() - s->start_ms);
}

static bool read_number(struct refine *s, const char *key, uint64_t absent, uint64_t *out) {
    str text;
    *out = absent;
    if (!s->o->archive)
        return true;
    if (!archive_get_note(s->o->archive, key, s->mem, &text, &s->err))
        return fail(s, &s->err);
    if (text.n && !str_to_u64(text, out)) {
        err_set(&s->err, ERR_ENV, "run archive: the note %s is not a number", key);
        return fail(s, &s->err);
    }
    return true;
}

static bool write_number(struct refine *s, const char *key, uint64_t value) {
    struct err err;
    str text = arena_printf(s->mem, "%llu", (unsigned long long)value);
    if (!s->o->archive || archive_note(s->o->archive, key, text, &err))
        return true;
    return fail(s, &err);
}

/* Whether to go on waiting; false also says why not. */
static bool may_wait(struct refine *s) {
    if (s->o->interrupted && *(const volatile bool *)s->o->interrupted)
        return stop(s, "interrupted");
    if (s->o->budget.ms && elapsed_ms(s) >= s->o->budget.ms)
        return write_number(s, NOTE_TIME_ENDS, s->settled) && stop(s, "budget");
    if (!loop_step(s->loop, POLL_MS, &s->err))
        return fail(s, &s->err);
    return !s->failed;
}

/* ---- events ---- */

static void emit(const struct refine *s, struct event *e) {
    e->generation = s->round;
    e->done = e->submitted = s->n;
    e->budget = s->o->budget.candidates;
    e->elapsed_s = (double)elapsed_ms(s) / 1000;
    e->best_s = s->course.best_s;
    e->limit_s = s->course.o.limit_s;
    e->naive_s = s->out->naive_s;
    if (s->o->emit)
        s->o->emit(s->o->emit_ctx, e);
}

static void emit_text(const struct refine *s, enum event_kind kind, str text) {
    struct event e = {.kind = kind, .time_s = INFINITY, .text = text};
    emit(s, &e);
}

static void emit_trial(const struct refine *s, enum event_kind kind, const struct trial *t) {
    const struct outcome *o = t->outcome;
    struct event e = {.kind = kind,
                      .ordinal = t->ordinal,
                      .strategy = t->idea,
                      .text = o->verdict == VERDICT_ACCEPTED ? t->idea : str_view(o->why),
                      .verdict = o->verdict,
                      .time_s = o->time_s,
                      .estimated = o->estimated,
                      .replayed = t->replayed};
    emit(s, &e);
}

/* ---- the agent ---- */

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *err) {
    struct answer *a = ctx;
    (void)reason;
    a->done = true;
    a->ok = !err;
    if (err)
        a->err = *err;
    for (size_t i = 0; i < n && i < SEEDS; i++)
        a->strategies[a->n++] = list[i];
}

static void on_edit(void *ctx, str source, str idea, const struct err *err) {
    struct answer *a = ctx;
    a->done = true;
    a->ok = !err;
    if (err)
        a->err = *err;
    a->source = arena_str(a->mem, source);
    a->idea = arena_str(a->mem, idea);
}

static void on_code(void *ctx, str source, const struct err *err) {
    on_edit(ctx, source, S(""), err);
}

/* False where there is no answer that can be used: the run stopped or failed, or only this one
 * could not be written. After a stop the answer may still be open; nothing steps the loop then, and
 * the agent drops it when it is released. */
static bool await(struct refine *s, const struct answer *a) {
    while (!a->done)
        if (!may_wait(s))
            return false;
    if (a->ok)
        return true;
    s->unwritten = a->err;
    emit_text(s, EVENT_NOTE, arena_str(s->mem, str_view(a->err.text)));
    return a->err.kind == ERR_NO ? stop(s, "no answer") : false;
}

/* Before a question as before a candidate: an answer that cannot be tried is not paid for. */
static bool may_try(struct refine *s) {
    if (s->n == s->time_ends || (s->o->budget.candidates && s->n >= s->o->budget.candidates))
        return stop(s, "budget");
    return true;
}

static bool goes_on(const struct refine *s) {
    return !s->failed && !s->stopped;
}

/* ---- evaluation ---- */

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct refine *s = ctx;
    BUG_IF(id != s->n - 1 || s->arrived);
    s->arrived = o;
}

static void on_broken(void *ctx, const struct err *why) {
    fail(ctx, why);
}

static bool recall(struct refine *s, struct trial *t) {
    json *record = NULL;
    struct err err;
    if (!s->o->archive)
        return true;
    int found = archive_lookup(s->o->archive, t->ordinal, t->hash, &record, &err);
    if (found < 0)
        return fail(s, &err);
    if (found == 0)
        return true;
    t->outcome = outcome_from_record(record, &err);
    t->replayed = true;
    return t->outcome || fail(s, &err);
}

static bool keep(struct refine *s, const struct trial *t) {
    struct err err;
    struct buf text;
    if (!s->o->archive)
        return true;
    buf_init(&text, 8192);
    strategy_text(s->o->briefing->catalogue, &t->strategy, &text);
    struct archive_candidate c = {.ordinal = t->ordinal,
                                  .generation = t->round,
                                  .slot = t->slot,
                                  .strategy = buf_str(&text),
                                  .reason = t->idea,
                                  .source = t->source};
    memcpy(c.source_hash, t->hash, sizeof c.source_hash);
    bool ok = archive_add(s->o->archive, &c, t->outcome->record, &err) || fail(s, &err);
    buf_release(&text);
    return ok && write_number(s, NOTE_ELAPSED, elapsed_ms(s));
}

static bool run_trial(struct refine *s, struct trial *t) {
    if (!s->evaluator)
        s->evaluator = evaluator_new(s->loop, &s->eo, on_outcome, on_broken, s, &s->err);
    if (!s->evaluator)
        return fail(s, &s->err);
    evaluator_submit(s->evaluator, t->ordinal, S("kernel.cu"), t->source);
    while (!s->arrived)
        if (!may_wait(s))
            return false;
    t->outcome = s->arrived;
    s->arrived = NULL;
    return keep(s, t);
}

static const struct trial *seen(const struct refine *s, const char *hash) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->trials[i].hash, hash) == 0)
            return &s->trials[i];
    return NULL;
}

/* Evaluates a source as the next candidate. NULL: stopped or failed. */
static struct trial *try_source(struct refine *s, const struct strategy *strategy, str source,
                                str idea) {
    if (!may_try(s))
        return NULL;
    s->trials = mem_grow(s->trials, &s->cap, s->n + 1, sizeof *s->trials);
    struct trial *t = &s->trials[s->n];
    *t = (struct trial){.ordinal = s->n,
                        .round = s->round,
                        .slot = s->slot++,
                        .strategy = *strategy,
                        .source = source,
                        .idea = idea};
    digest_hex(sha256_of(source), t->hash);
    s->n++;
    if (!recall(s, t) || (!t->outcome && !run_trial(s, t))) {
        outcome_free(t->outcome);
        s->n--; /* it never was */
        return NULL;
    }
    s->settled = s->n;
    s->out->evaluated++;
    s->out->replayed += t->replayed;
    emit_trial(s, EVENT_CANDIDATE, t);
    return t;
}

/* ---- repairs ---- */

static bool accepted(const struct trial *t) {
    return t->outcome->verdict == VERDICT_ACCEPTED;
}

static str line_of(const struct refine *s, const struct trial *t) {
    return arena_printf(s->mem, "%s: %.*s", verdict_name(t->outcome->verdict),
                        STR_ARG(str_cut(str_trim(str_view(t->outcome->why)), 0, WHY_BYTES)));
}

/* The debugger's turn at trial t. *next: the repaired one, evaluated; NULL: it had no answer, or
 * one that was tried before. */
static bool repair_once(struct refine *s, size_t t, str earlier, struct trial **next) {
    struct answer a = {.mem = s->mem};
    const struct trial *from = &s->trials[t];
    struct strategy strategy = from->strategy;
    struct attempt at = {&strategy, from->source, from->outcome};
    char hash[65];
    *next = NULL;
    if (!may_try(s))
        return false;
    s->o->agent->debug(s->o->agent->self, s->o->briefing, &at, earlier, on_edit, &a);
    if (!await(s, &a))
        return goes_on(s);
    digest_hex(sha256_of(a.source), hash);
    if (seen(s, hash))
        return true;
    *next = try_source(s, &strategy, a.source, a.idea);
    return *next != NULL;
}

/* Repairs trial t, a bounded number of times. *end: the last one there is. */
static bool repair(struct refine *s, size_t t, size_t *end) {
    struct buf earlier;
    buf_init(&earlier, 16u << 10);
    *end = t;
    bool ok = true;
    for (size_t i = 0; ok && i < s->ro.repairs && !accepted(&s->trials[*end]); i++) {
        struct trial *next;
        ok = repair_once(s, *end, buf_str(&earlier), &next);
        if (!ok || !next)
            break;
        buf_printf(&earlier, "- %.*s: %.*s\n", STR_ARG(str_cut(next->idea, 0, WHY_BYTES)),
                   STR_ARG(line_of(s, next)));
        *end = (size_t)(next - s->trials);
    }
    buf_release(&earlier);
    return ok;
}

/* ---- rounds ---- */

static void set_best(struct refine *s, size_t t) {
    s->best = t;
    emit_trial(s, EVENT_BEST, &s->trials[t]);
}

/* The first candidate that is right, from one strategy. */
static bool seed(struct refine *s, const struct strategy *strategy) {
    struct answer a = {.mem = s->mem};
    size_t end;
    s->slot = 0;
    if (!may_try(s))
        return false;
    s->o->agent->code(s->o->agent->self, s->o->briefing, strategy, on_code, &a);
    if (!await(s, &a))
        return goes_on(s);
    struct trial *t = try_source(s, strategy, a.source, S("first version"));
    if (!t || !repair(s, (size_t)(t - s->trials), &end))
        return false;
    if (!accepted(&s->trials[end]))
        return true;
    course_start(&s->course, s->trials[end].outcome->time_s);
    set_best(s, end);
    return true;
}

static bool seeds(struct refine *s) {
    struct answer a = {.mem = s->mem};
    struct rng r = rng_stream(s->o->seed, S("plan"));
    s->o->agent->plan(s->o->agent->self, s->o->briefing, SEEDS, r, on_plan, &a);
    if (!await(s, &a)) {
        if (goes_on(s))
            fail(s, &a.err);
        return false;
    }
    for (size_t i = 0; i < a.n && !isfinite(s->course.best_s); i++, s->round++) {
        emit_text(s, EVENT_GENERATION, S("a first version"));
        if (!seed(s, &a.strategies[i]))
            return false;
    }
    if (!isfinite(s->course.best_s))
        stop(s, "no candidate was right");
    return true;
}

/* What became of a proposal that was evaluated and, where need be, repaired. */
static void end_round(struct refine *s, size_t end, str idea) {
    const struct trial *t = &s->trials[end];
    double time_s = t->outcome->time_s;
    if (!accepted(t)) {
        course_end_round(&s->course, ROUND_REJECTED, INFINITY, idea, line_of(s, t));
    } else if (course_gains(&s->course, time_s)) {
        course_end_round(&s->course, ROUND_FASTER, time_s, idea, S(""));
        set_best(s, end);
    } else {
        course_end_round(&s->course, ROUND_NO_GAIN, time_s, idea, S(""));
    }
}

static bool propose(struct refine *s, struct answer *a) {
    const struct trial *best = &s->trials[s->best];
    struct strategy strategy = best->strategy;
    struct attempt at = {&strategy, best->source, best->outcome};
    struct buf tried;
    if (!may_try(s))
        return false;
    buf_init(&tried, 32u << 10);
    course_tried(&s->course, &tried);
    struct guidance g = {s->course.stage, course_facts(&s->course), buf_str(&tried)};
    s->o->agent->improve(s->o->agent->self, s->o->briefing, &at, &g, on_edit, a);
    buf_release(&tried);
    return await(s, a);
}

static bool improve(struct refine *s) {
    struct answer a = {.mem = s->mem};
    struct strategy strategy = s->trials[s->best].strategy;
    char hash[65];
    size_t end;
    s->slot = 0;
    emit_text(s, EVENT_GENERATION, str_view(stage_name(s->course.stage)));
    if (!propose(s, &a)) {
        if (goes_on(s))
            course_end_round(&s->course, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
        return goes_on(s);
    }
    digest_hex(sha256_of(a.source), hash);
    if (seen(s, hash)) {
        course_end_round(&s->course, ROUND_SEEN, INFINITY, a.idea, S(""));
        return true;
    }
    struct trial *t = try_source(s, &strategy, a.source, a.idea);
    if (!t || !repair(s, (size_t)(t - s->trials), &end))
        return false;
    end_round(s, end, a.idea);
    return true;
}

/* ---- the run ---- */

static void set_up(struct refine *s) {
    const struct briefing *b = s->o->briefing;
    struct course_options co = {
        .workload = b->features.workload,
        .profiling = s->ro.profiling,
        .limit_s = b->roofline.limit_s,
        .stop_share = s->o->stop_share > 0 ? s->o->stop_share : STOP_SHARE,
    };
    course_init(&s->course, &co);
    s->ro.repairs = s->ro.repairs ? s->ro.repairs : REPAIRS;
    *s->out = (struct search_best){.time_s = INFINITY, .naive_s = INFINITY};
    s->start_ms = clock_ms();
}

static bool run(struct refine *s) {
    if (!read_number(s, NOTE_ELAPSED, 0, &s->before_ms) ||
        !read_number(s, NOTE_TIME_ENDS, UINT64_MAX, &s->time_ends))
        return false;
    emit_text(s, EVENT_START, arena_printf(s->mem, "%s, refining one kernel", s->o->agent->name));
    if (seeds(s))
        while (goes_on(s) && !s->course.stopped && improve(s))
            s->round++;
    if (s->failed)
        return false;
    if (!s->stopped)
        s->stopped = s->course.stopped;
    if (s->n == 0 && s->unwritten.kind != ERR_NONE) {
        s->unwritten.kind = ERR_ENV;
        return fail(s, &s->unwritten);
    }
    return true;
}

static void on_refused(void *ctx, str text) {
    emit_text(ctx, EVENT_NOTE, text);
}

static void take_winner(struct refine *s, struct finalist *f, const struct trial *t,
                        struct arena *a) {
    struct search_best *best = s->out;
    best->found = true;
    best->ordinal = f->ordinal;
    best->strategy = t->strategy;
    best->time_s = f->time_s;
    best->source = arena_str(a, f->source);
    best->record = f->record;
    f->record = NULL;
}

static bool choose(struct refine *s, struct arena *a) {
    struct finalist_options wo = {&s->eo, s->o->archive, s->mem, on_refused, s};
    struct finalist *list = mem_alloc((s->n + 1) * sizeof *list);
    size_t *of = mem_alloc((s->n + 1) * sizeof *of), n = 0, which;
    for (size_t i = 0; i < s->n; i++) {
        const struct trial *t = &s->trials[i];
        if (!accepted(t))
            continue;
        of[n] = i;
        list[n++] = (struct finalist){.ordinal = t->ordinal,
                                      .time_s = t->outcome->time_s,
                                      .source = t->source,
                                      .record = json_copy(t->outcome->record)};
    }
    bool ok = finalist_choose(&wo, list, n, &which, &s->err);
    if (ok && which < n)
        take_winner(s, &list[which], &s->trials[of[which]], a);
    for (size_t i = 0; i < n; i++)
        json_free(list[i].record);
    mem_free(list);
    mem_free(of);
    return ok;
}

static void release(struct refine *s) {
    if (s->evaluator)
        evaluator_free(s->evaluator);
    for (size_t i = 0; i < s->n; i++)
        outcome_free(s->trials[i].outcome);
    outcome_free(s->arrived);
    mem_free(s->trials);
    course_release(&s->course);
    arena_free(s->mem);
}

bool search_refine(struct loop *l, const struct search_options *o, const struct refine_options *ro,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct refine s = {
        .loop = l, .o = o, .ro = *ro, .eo = *eo, .out = out, .mem = arena_new(MEMORY_MAX)};
    BUG_IF(!o->agent->debug || !o->agent->improve);
    set_up(&s);
    bool ok = run(&s) && choose(&s, a);
    out->stopped = s.stopped;
    if (ok)
        emit_text(&s, EVENT_END, str_view(s.stopped));
    else
        *err = s.err;
    release(&s);
    return ok;
}
