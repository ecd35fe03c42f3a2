/* Drives the core of evolve.h: agents propose and write, the archive or the evaluator answers.
 *
 * 1. A generation is submitted as a whole; outcomes arrive in any order, are archived as they come
 *    and consumed in order of submission. What the core sees is therefore the same in every replay.
 * 2. The clock decides nothing but the end: when time is up, the search stops in front of the first
 *    outcome that is missing, and notes there how far it came, so that the same command run again
 *    comes to the same end.
 * 3. The evaluator is started by the first candidate that the archive has no answer for. */
#include "search/search.h"
#include "search/evolve.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define POPULATION     12
#define PLATEAU        3
#define STOP_SHARE     0.98
#define CODE_TRIES     16 /* strategies tried for a slot when the coder refuses them */
#define POLL_MS        50 /* how late a signal or the end of the time may be noticed */
#define MEMORY_MAX     (256u << 20)
#define NOTE_ELAPSED   "elapsed_ms"
#define NOTE_TIME_ENDS "time_ended_after" /* candidates consumed */
#define NOTE_CONFIRMED "confirmed"        /* by ordinal: the record of the second verification */
#define NOTE_WATCHED   "watched"          /* … and of the simulator's */

/* A candidate of the present generation. Texts live in the generation's arena. */
struct pending {
    size_t trial;
    str strategy, reason, source;
    char hash[65];
    struct outcome *outcome; /* NULL: not known */
    bool replayed;
};

/* An accepted candidate: what the result needs of it, should it be the best. Heap. */
struct kept {
    size_t trial;
    bool unwatched; /* right on the GPU, and the simulator cannot run it */
    char *source;
    json *record;
};

/* An agent's answer. */
struct answer {
    bool done, ok;
    struct strategy *strategies;
    size_t n;
    str reason, source;
    struct err err;
    struct arena *mem;
};

struct search {
    struct loop *loop;
    const struct search_options *o;
    struct evolve e;
    struct strategy fallback;
    struct evaluator_options eo;
    struct evaluator *evaluator; /* NULL: not needed so far */
    struct arena *mem;           /* of the generation */
    struct pending *pending;
    size_t npending, consumed; /* of the generation */
    struct strategy *plan;
    size_t nplan;
    str plan_reason;
    struct kept *kept; /* in order of consumption */
    size_t nkept, cap_kept;
    struct search_best *best;
    uint64_t start_ms, before_ms; /* before: spent by earlier commands on this run */
    uint64_t time_ends;           /* candidates after which an earlier command ran out of time */
    const char *stopped;          /* from outside the core */
    bool failed;
    struct err err, code_err;
};

static bool fail(struct search *s, const struct err *why) {
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
    return s->o->interrupted && *(const volatile bool *)s->o->interrupted;
}

static bool read_number(struct search *s, const char *key, uint64_t absent, uint64_t *out) {
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

static bool write_number(struct search *s, const char *key, uint64_t value) {
    char text[24];
    size_t n = 0;
    do
        text[sizeof text - ++n] = (char)('0' + value % 10);
    while (value /= 10);
    struct err err;
    if (!s->o->archive || archive_note(s->o->archive, key, (str){text + sizeof text - n, n}, &err))
        return true;
    return fail(s, &err);
}

/* ---- events ---- */

static void emit(const struct search *s, struct event *e) {
    e->generation = s->e.generation;
    e->done = s->e.settled;
    e->submitted = s->e.submitted;
    e->budget = s->o->budget.candidates;
    e->elapsed_s = (double)elapsed_ms(s) / 1000;
    e->best_s = s->e.best_s;
    e->limit_s = s->e.o.limit_s;
    e->naive_s = s->best->naive_s;
    if (s->o->emit)
        s->o->emit(s->o->emit_ctx, e);
}

static void emit_text(const struct search *s, enum event_kind kind, str strategy, str text) {
    struct event e = {.kind = kind, .time_s = INFINITY, .strategy = strategy, .text = text};
    emit(s, &e);
}

static void emit_pending(const struct search *s, enum event_kind kind, const struct pending *p) {
    const struct outcome *o = p->outcome;
    bool accepted = o->verdict == VERDICT_ACCEPTED;
    struct event e = {.kind = kind,
                      .ordinal = s->e.trials[p->trial].ordinal,
                      .strategy = p->strategy,
                      .text = accepted ? p->reason : str_view(o->why),
                      .verdict = o->verdict,
                      .time_s = o->time_s,
                      .estimated = o->estimated,
                      .replayed = p->replayed};
    emit(s, &e);
}

static str text_of(const struct search *s, const struct strategy *strategy) {
    struct buf b;
    buf_init(&b, 8192);
    strategy_text(s->o->briefing->catalogue, strategy, &b);
    str text = arena_str(s->mem, buf_str(&b));
    buf_release(&b);
    return text;
}

/* ---- agents ---- */

static bool await(struct search *s, const struct answer *a) {
    while (!a->done)
        if (!loop_step(s->loop, POLL_MS, &s->err))
            return fail(s, &s->err);
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
    s->o->agent->plan(s->o->agent->self, s->o->briefing, n, r, on_plan, &a);
    if (!await(s, &a))
        return false;
    if (!a.ok)
        return fail(s, &a.err);
    s->plan = a.strategies;
    s->nplan = a.n;
    s->plan_reason = a.reason;
    return true;
}

/* The proposal for a slot: of the plan, of two parents, or of chance while nothing was accepted. */
static bool propose(struct search *s, uint64_t slot, struct strategy *out, str *reason) {
    struct parent x, y;
    if (s->e.generation == 0 && slot < s->nplan) {
        *out = s->plan[slot];
        *reason = s->plan_reason;
        return true;
    }
    if (!evolve_parents(&s->e, slot, &x, &y)) {
        evolve_random(&s->e, slot, out);
        *reason = S("at random: nothing was accepted so far");
        return true;
    }
    struct answer a = {.mem = s->mem};
    s->o->agent->cross(s->o->agent->self, s->o->briefing, &x, &y, evolve_stream(&s->e, slot),
                       on_plan, &a);
    if (!await(s, &a))
        return false;
    if (!a.ok || a.n == 0)
        return fail(s, &a.err);
    *out = a.strategies[0];
    *reason = a.reason;
    return true;
}

/* ---- outcomes ---- */

static bool keep(struct search *s, const struct pending *p) {
    if (!s->o->archive)
        return true;
    const struct evolve_trial *t = &s->e.trials[p->trial];
    struct archive_candidate c = {.ordinal = t->ordinal,
                                  .generation = t->generation,
                                  .slot = t->slot,
                                  .strategy = p->strategy,
                                  .reason = p->reason,
                                  .source = p->source};
    memcpy(c.source_hash, p->hash, sizeof c.source_hash);
    struct err err;
    if (!archive_add(s->o->archive, &c, p->outcome->record, &err))
        return fail(s, &err);
    return write_number(s, NOTE_ELAPSED, elapsed_ms(s));
}

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct search *s = ctx;
    uint64_t at = id - s->e.first;
    BUG_IF(at >= s->npending || s->pending[at].outcome);
    s->pending[at].outcome = o;
    keep(s, &s->pending[at]);
}

static void on_broken(void *ctx, const struct err *why) {
    fail(ctx, why);
}

/* 1: the archive knew it. 0: it did not. -1: failed. */
static int recall(struct search *s, struct pending *p, uint64_t ordinal) {
    json *record = NULL;
    struct err err;
    int found = s->o->archive ? archive_lookup(s->o->archive, ordinal, p->hash, &record, &err) : 0;
    if (found == 1) {
        p->outcome = outcome_from_record(record, &err);
        p->replayed = true;
        found = p->outcome ? 1 : -1;
    }
    if (found < 0)
        fail(s, &err);
    return found;
}

static bool evaluate(struct search *s, const struct pending *p, uint64_t ordinal) {
    if (!s->evaluator)
        s->evaluator = evaluator_new(s->loop, &s->eo, on_outcome, on_broken, s, &s->err);
    if (!s->evaluator)
        return fail(s, &s->err);
    evaluator_submit(s->evaluator, ordinal, S("kernel.cu"), p->source);
    return true;
}

static void keep_accepted(struct search *s, const struct pending *p) {
    s->kept = mem_grow(s->kept, &s->cap_kept, s->nkept + 1, sizeof *s->kept);
    struct kept *k = &s->kept[s->nkept++];
    k->trial = p->trial;
    k->record = json_copy(p->outcome->record);
    k->source = mem_alloc(p->source.n + 1);
    memcpy(k->source, p->source.p, p->source.n);
}

/* What an accepted candidate really is, before it becomes a parent. */
static bool align(struct search *s, const struct pending *p) {
    struct answer a = {.mem = s->mem};
    const struct strategy *strategy = &s->e.trials[p->trial].strategy;
    s->o->agent->align(s->o->agent->self, s->o->briefing, strategy, p->outcome->record, on_plan,
                       &a);
    if (!await(s, &a))
        return false;
    if (!a.ok || a.n == 0)
        return fail(s, &a.err);
    evolve_align(&s->e, p->trial, &a.strategies[0]);
    return true;
}

static void consume(struct search *s, struct pending *p) {
    const struct outcome *o = p->outcome;
    double time_s = o->verdict == VERDICT_ACCEPTED ? o->time_s : INFINITY;
    if (isfinite(time_s) && !align(s, p))
        return;
    bool is_best = evolve_settle(&s->e, p->trial, time_s);
    const struct strategy *strategy = &s->e.trials[p->trial].strategy;
    if (strategy_equal(s->o->briefing->catalogue, strategy, &s->fallback))
        s->best->naive_s = time_s;
    s->best->evaluated++;
    s->best->replayed += p->replayed;
    s->consumed++;
    emit_pending(s, EVENT_CANDIDATE, p);
    if (isfinite(time_s))
        keep_accepted(s, p);
    if (is_best)
        emit_pending(s, EVENT_BEST, p);
}

/* ---- a generation ---- */

/* Writes a trial's source. False with `refused` for a strategy that cannot be written. */
static bool write_source(struct search *s, struct pending *p, bool *refused) {
    struct answer a = {.mem = s->mem};
    const struct strategy *strategy = &s->e.trials[p->trial].strategy;
    s->o->agent->code(s->o->agent->self, s->o->briefing, strategy, on_code, &a);
    if (!await(s, &a))
        return false;
    p->strategy = text_of(s, strategy);
    *refused = !a.ok;
    if (a.ok) {
        p->source = a.source;
        digest_hex(sha256_of(p->source), p->hash);
        return true;
    }
    s->code_err = a.err;
    emit_text(s, EVENT_NOTE, p->strategy, str_view(a.err.text));
    return false;
}

/* Time that is up keeps a candidate from the evaluator, not from the archive. */
static bool submit(struct search *s, const struct pending *written) {
    struct pending *p = &s->pending[s->npending++];
    *p = *written;
    evolve_submit(&s->e, p->trial);
    uint64_t ordinal = s->e.trials[p->trial].ordinal;
    int known = recall(s, p, ordinal);
    if (known != 0 || time_is_up(s))
        return known >= 0;
    return evaluate(s, p, ordinal);
}

static bool fill_slot(struct search *s, uint64_t slot) {
    struct strategy proposal;
    struct pending p = {0};
    if (!propose(s, slot, &proposal, &p.reason))
        return false;
    for (uint64_t attempt = 0; attempt < CODE_TRIES; attempt++) {
        bool refused = false;
        if (!evolve_claim(&s->e, slot, attempt, &proposal, &p.trial))
            return true;
        if (write_source(s, &p, &refused))
            return submit(s, &p);
        if (!refused)
            return false;
    }
    return true;
}

/* Consumes in order; stops in front of an outcome that will not be waited for. */
static bool settle_generation(struct search *s) {
    while (s->consumed < s->npending && !s->failed) {
        struct pending *next = &s->pending[s->consumed];
        if (interrupted(s)) {
            s->stopped = "interrupted";
            return true;
        }
        if (s->e.settled == s->time_ends || (!next->outcome && time_is_up(s))) {
            s->stopped = "budget";
            return write_number(s, NOTE_TIME_ENDS, s->e.settled);
        }
        if (next->outcome)
            consume(s, next);
        else if (!loop_step(s->loop, POLL_MS, &s->err))
            return fail(s, &s->err);
    }
    return !s->failed;
}

static void forget_generation(struct search *s) {
    for (size_t i = 0; i < s->npending; i++)
        outcome_free(s->pending[i].outcome);
    s->npending = s->consumed = 0;
}

static bool run_generation(struct search *s, size_t slots) {
    arena_reset(s->mem);
    s->pending = arena_array(s->mem, struct pending, slots);
    if (s->e.generation == 0 && !ask_plan(s, slots))
        return false;
    emit_text(s, EVENT_GENERATION, S(""),
              s->e.generation == 0 ? s->plan_reason
                                   : arena_printf(s->mem, "%zu children of the best", slots));
    for (size_t slot = 0; slot < slots && !evolve_stopped(&s->e); slot++)
        if (!fill_slot(s, slot))
            return false;
    return settle_generation(s);
}

/* ---- the run ---- */

static void set_up(struct search *s) {
    const struct search_options *o = s->o;
    const struct briefing *b = o->briefing;
    struct evolve_options eo = {
        .catalogue = b->catalogue,
        .ground = b->ground,
        .seed = o->seed,
        .population = o->population ? o->population : POPULATION,
        .plateau = o->plateau ? o->plateau : PLATEAU,
        .candidates = o->budget.candidates,
        .limit_s = b->roofline.limit_s,
        .stop_share = o->stop_share > 0 ? o->stop_share : STOP_SHARE,
    };
    evolve_init(&s->e, &eo);
    strategy_fallback(b->catalogue, &eo.ground, &s->fallback);
    *s->best = (struct search_best){.time_s = INFINITY, .naive_s = INFINITY};
    s->start_ms = clock_ms();
}

static bool run(struct search *s) {
    size_t slots;
    if (!read_number(s, NOTE_ELAPSED, 0, &s->before_ms) ||
        !read_number(s, NOTE_TIME_ENDS, UINT64_MAX, &s->time_ends))
        return false;
    uint64_t space = strategy_space(s->e.o.catalogue, &s->e.o.ground);
    emit_text(
        s, EVENT_START, S(""),
        arena_printf(s->mem, "%s, %llu strategies", s->o->agent->name, (unsigned long long)space));
    while (!s->stopped && (slots = evolve_begin(&s->e)) > 0) {
        bool ok = run_generation(s, slots);
        forget_generation(s);
        if (!ok)
            return false;
    }
    if (!s->stopped)
        s->stopped = evolve_stopped(&s->e);
    if (s->e.submitted == 0 && s->code_err.kind != ERR_NONE)
        return fail(s, &s->code_err);
    return true;
}

/* ---- the winner ---- */

static bool ranks_before(const struct search *s, const struct kept *a, const struct kept *b) {
    if (a->unwatched != b->unwatched)
        return b->unwatched;
    return s->e.trials[a->trial].time_s < s->e.trials[b->trial].time_s;
}

/* The fastest that has not been refused since; ties go to the earlier one. */
static struct kept *fastest(const struct search *s) {
    struct kept *best = NULL;
    for (size_t i = 0; i < s->nkept; i++) {
        struct kept *k = &s->kept[i];
        if (k->record && (!best || ranks_before(s, k, best)))
            best = k;
    }
    return best;
}

static bool earlier_confirmation(struct search *s, const char *key, struct outcome **out) {
    str text = {0};
    *out = NULL;
    if (s->o->archive && !archive_get_note(s->o->archive, key, s->mem, &text, &s->err))
        return fail(s, &s->err);
    json *record = text.n ? json_parse(text, &s->err) : NULL;
    if (record)
        *out = outcome_from_record(record, &s->err);
    return !text.n || *out || fail(s, &s->err);
}

static bool note_confirmation(struct search *s, const char *key, const struct outcome *o) {
    struct buf b;
    buf_init(&b, MEMORY_MAX);
    json_write(o->record, &b);
    bool ok = !s->o->archive || archive_note(s->o->archive, key, buf_str(&b), &s->err);
    buf_release(&b);
    return ok || fail(s, &s->err);
}

/* Verified once more under other options, or found in the archive where that was done before. */
static bool verify_again(struct search *s, const struct kept *k, const char *note,
                         const struct evaluator_options *eo, struct outcome **out) {
    char key[64];
    snprintf(key, sizeof key, "%s_%llu", note, (unsigned long long)s->e.trials[k->trial].ordinal);
    if (!earlier_confirmation(s, key, out))
        return false;
    if (*out)
        return true;
    if (!evaluate_once(eo, S("kernel.cu"), str_view(k->source), out, &s->err))
        return fail(s, &s->err);
    return note_confirmation(s, key, *out);
}

/* On a seed it has not met. */
static bool confirm(struct search *s, const struct kept *k, struct outcome **out) {
    struct evaluator_options eo = s->eo;
    eo.verify_only = true;
    eo.workers = eo.compilers = 1;
    eo.seed += eo.seed_given; /* a given seed is a test's; drawn afresh otherwise */
    return verify_again(s, k, NOTE_CONFIRMED, &eo, out);
}

/* What was measured on a GPU, under the simulator's checkers. */
static bool watch(struct search *s, const struct kept *k, struct outcome **out) {
    struct evaluator_options eo = s->eo;
    eo.verify_only = true;
    eo.workers = eo.compilers = 1;
    eo.worker_command = NULL;
    eo.duel = false;
    return (device_name_parse("sim", s->mem, &eo.device, &s->err) || fail(s, &s->err)) &&
           verify_again(s, k, NOTE_WATCHED, &eo, out);
}

static void set_best(struct search *s, struct kept *k, struct arena *a) {
    const struct evolve_trial *t = &s->e.trials[k->trial];
    struct search_best *best = s->best;
    best->found = true;
    best->ordinal = t->ordinal;
    best->strategy = t->strategy;
    best->time_s = t->time_s;
    best->source = arena_str(a, str_view(k->source));
    best->record = k->record;
    k->record = NULL;
}

/* A candidate that does not hold is no winner, and is said. */
static void refuse(struct search *s, struct kept *k, const struct outcome *o, const char *where) {
    emit_text(s, EVENT_NOTE, S(""),
              arena_printf(s->mem, "candidate %llu did not hold %s: %s: %s",
                           (unsigned long long)s->e.trials[k->trial].ordinal, where,
                           verdict_name(o->verdict), o->why));
    json_free(k->record);
    k->record = NULL;
}

/* Whether k may win after what the simulator's checkers say; one that the simulator cannot run
 * ranks below those that it watched, and is labelled. */
static bool settle_watched(struct search *s, struct kept *k, bool *wins) {
    struct outcome *o;
    *wins = true;
    if (s->eo.device.kind == DEVICE_SIM || k->unwatched)
        return true;
    if (!watch(s, k, &o))
        return false;
    *wins = o->verdict == VERDICT_ACCEPTED;
    k->unwatched = o->verdict == VERDICT_UNSUPPORTED;
    json_set_bool(k->record, "watched", *wins);
    if (!*wins && !k->unwatched)
        refuse(s, k, o, "under the simulator's checkers");
    outcome_free(o);
    return true;
}

/* The fastest candidate that holds a second time. */
static bool choose_best(struct search *s, struct arena *a) {
    struct kept *k;
    while (!s->best->found && (k = fastest(s))) {
        struct outcome *o;
        bool wins = false;
        if (!confirm(s, k, &o))
            return false;
        if (o->verdict == VERDICT_ACCEPTED) {
            json_set(k->record, "confirmed", json_copy(o->record));
            if (!settle_watched(s, k, &wins)) {
                outcome_free(o);
                return false;
            }
        } else {
            refuse(s, k, o, "on a new seed");
        }
        if (wins)
            set_best(s, k, a);
        outcome_free(o);
    }
    return true;
}

static void report_end(struct search *s) {
    struct buf text;
    buf_init(&text, 8192);
    evolve_credit(&s->e, &text);
    str credit = buf_str(&text);
    emit_text(s, EVENT_END, S(""),
              arena_printf(s->mem, "%s%s%.*s", s->stopped, credit.n ? "; " : "", STR_ARG(credit)));
    buf_release(&text);
}

static void release(struct search *s) {
    if (s->evaluator)
        evaluator_free(s->evaluator);
    for (size_t i = 0; i < s->nkept; i++) {
        mem_free(s->kept[i].source);
        json_free(s->kept[i].record);
    }
    mem_free(s->kept);
    evolve_release(&s->e);
    arena_free(s->mem);
}

bool search_evolve(struct loop *l, const struct search_options *o,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct search s = {.loop = l, .o = o, .eo = *eo, .best = out, .mem = arena_new(MEMORY_MAX)};
    set_up(&s);
    bool ok = run(&s) && choose_best(&s, a);
    out->stopped = s.stopped;
    if (ok)
        report_end(&s);
    else
        *err = s.err;
    release(&s);
    return ok;
}
