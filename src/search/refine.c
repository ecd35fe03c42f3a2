/* Drives the core of course.h.
 *
 * 1. One thing happens at a time: a question to the agent or an evaluation.
 * 2. The clock decides nothing but the end (journal.h).
 * 3. An agent that cannot answer any more (a cap, nobody there) ends the run with the best so far;
 *    the same command goes on from there. */
#include "search/refine.h"
#include "agent/llm/evidence.h"
#include "search/finalist.h"
#include "search/journal.h"
#include "search/recall.h"
#include <math.h>
#include <string.h>

#define SEEDS      3 /* strategies that are tried until a first candidate is right */
#define REPAIRS    4
#define STOP_SHARE 0.98
#define MEMORY_MAX ((size_t)1 << 30)
#define WHY_BYTES  240
#define WHERE_MAX  4096

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
    struct briefing briefing; /* the caller's, with history */
    struct history history;
    struct recalled recalled;
    struct journal j;
    struct course course;
    struct entry *trials; /* evaluated, in order */
    size_t n, cap;
    size_t best; /* trial */
    struct outcome *arrived;
    struct search_best *out;
    uint64_t slot;
    double asked;         /* when the last question was, as phase_now */
    struct err unwritten; /* why the last one could not be */
};

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
        if (!journal_wait(&s->j, s->loop))
            return false;
    if (a->ok)
        return true;
    s->unwritten = a->err;
    journal_say(&s->j, EVENT_NOTE, arena_str(s->mem, str_view(a->err.text)));
    return a->err.kind == ERR_NO ? journal_stop(&s->j, "no answer") : false;
}

/* Before a question as before a candidate: an answer that cannot be tried is not paid for. */
static bool may_try(struct refine *s) {
    uint64_t most = s->o->budget.candidates;
    return !most || s->n < most || journal_stop(&s->j, "budget");
}

/* What a question is about: the next candidate, and how far the run may still go. */
static const struct briefing *brief(struct refine *s) {
    s->briefing.candidate = s->n;
    s->asked = phase_now();
    s->briefing.outlook =
        (struct outlook){journal_left(&s->j, s->n), course_rounds_all(&s->course)};
    return &s->briefing;
}

/* ---- evaluation ---- */

static void on_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct refine *s = ctx;
    BUG_IF(id != s->n || s->arrived);
    s->arrived = o;
}

static void on_broken(void *ctx, const struct err *why) {
    struct refine *s = ctx;
    journal_fail(&s->j, why);
}

static bool run_trial(struct refine *s, struct entry *t) {
    if (!s->evaluator)
        s->evaluator = evaluator_new(s->loop, &s->eo, on_outcome, on_broken, s, &s->j.err);
    if (!s->evaluator)
        return journal_fail(&s->j, &s->j.err);
    evaluator_submit(s->evaluator, t->ordinal, S("kernel.cu"), t->source);
    while (!s->arrived)
        if (!journal_wait(&s->j, s->loop))
            return false;
    t->outcome = s->arrived;
    s->arrived = NULL;
    return journal_keep(&s->j, t);
}

static bool seen(const struct refine *s, str source) {
    char hash[65];
    digest_hex(sha256_of(source), hash);
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->trials[i].hash, hash) == 0)
            return true;
    return false;
}

/* Evaluates a source as the next candidate, made of trial `from` (SIZE_MAX: of none) in this step.
 * False: stopped or failed. */
static bool try_source(struct refine *s, const struct strategy *strategy, str source, str idea,
                       const char *step, size_t from, size_t *trial) {
    if (!may_try(s))
        return false;
    s->trials = mem_grow(s->trials, &s->cap, s->n + 1, sizeof *s->trials);
    struct entry *t = &s->trials[s->n];
    *t = (struct entry){.ordinal = s->n,
                        .generation = s->j.generation,
                        .slot = s->slot++,
                        .strategy = *strategy,
                        .reason = idea,
                        .origin = {.step = step,
                                   .parents = {from},
                                   .nparents = from != SIZE_MAX,
                                   .structure = from != SIZE_MAX ? idea : S(""),
                                   .proposed = s->asked}};
    entry_set_source(t, source);
    if (!journal_recall(&s->j, t) || (!t->outcome && !run_trial(s, t))) {
        outcome_free(t->outcome);
        return false;
    }
    *trial = s->n++;
    s->j.done = s->n;
    s->out->evaluated++;
    s->out->replayed += t->replayed;
    journal_show(&s->j, EVENT_CANDIDATE, t);
    return true;
}

/* ---- repairs ---- */

static bool accepted(const struct entry *t) {
    return t->outcome->verdict == VERDICT_ACCEPTED;
}

static str line_of(const struct refine *s, const struct entry *t) {
    return arena_printf(s->mem, "%s: %.*s", verdict_name(t->outcome->verdict),
                        STR_ARG(str_cut(str_trim(str_view(t->outcome->why)), 0, WHY_BYTES)));
}

/* The debugger's turn at trial *at, which becomes the repaired one, evaluated; it stays where the
 * debugger had no answer, or one that was tried before. */
static bool repair_once(struct refine *s, size_t *at, str earlier, size_t more) {
    struct answer a = {.mem = s->mem};
    const struct entry *from = &s->trials[*at];
    struct strategy strategy = from->strategy;
    struct attempt attempt = {&strategy, from->source, from->outcome, more};
    if (!may_try(s))
        return false;
    s->o->agent->debug(s->o->agent->self, brief(s), &attempt, earlier, on_edit, &a);
    if (!await(s, &a))
        return journal_goes_on(&s->j);
    return seen(s, a.source) || try_source(s, &strategy, a.source, a.idea, "repair", *at, at);
}

/* Repairs trial *at, a bounded number of times; it becomes the last one there is. */
static bool repair(struct refine *s, size_t *at) {
    struct buf earlier;
    bool ok = true, changed = true;
    buf_init(&earlier, 16u << 10);
    for (size_t i = 0; ok && changed && i < s->ro.repairs && !accepted(&s->trials[*at]); i++) {
        size_t before = *at;
        ok = repair_once(s, at, buf_str(&earlier), s->ro.repairs - i - 1);
        changed = ok && *at != before;
        if (changed)
            buf_printf(&earlier, "- %.*s: %.*s\n",
                       STR_ARG(str_cut(s->trials[*at].reason, 0, WHY_BYTES)),
                       STR_ARG(line_of(s, &s->trials[*at])));
    }
    buf_release(&earlier);
    return ok;
}

/* ---- rounds ---- */

static void set_best(struct refine *s, size_t t) {
    s->best = t;
    s->j.best_s = s->course.best_s;
    journal_show(&s->j, EVENT_BEST, &s->trials[t]);
}

/* The first candidate that is right, from one strategy. */
static bool seed(struct refine *s, const struct strategy *strategy) {
    struct answer a = {.mem = s->mem};
    size_t t;
    s->slot = 0;
    if (!may_try(s))
        return false;
    s->o->agent->code(s->o->agent->self, brief(s), strategy, on_code, &a);
    if (!await(s, &a))
        return journal_goes_on(&s->j);
    if (seen(s, a.source))
        return true;
    if (!try_source(s, strategy, a.source, S("first version"), "first", SIZE_MAX, &t) ||
        !repair(s, &t))
        return false;
    if (!accepted(&s->trials[t]))
        return true;
    const struct outcome *o = s->trials[t].outcome;
    course_start(&s->course, o->time_s, briefing_floor(&s->briefing, o->estimated));
    set_best(s, t);
    return true;
}

/* Where no reply of the planner's can be read, the strategy that would be tried last is all. */
static bool plan(struct refine *s, struct answer *a) {
    struct rng r = rng_stream(s->o->seed, S("plan"));
    struct briefing b = *brief(s);
    b.in_turn = true;
    b.candidate = NO_CANDIDATE;
    s->o->agent->plan(s->o->agent->self, &b, SEEDS, r, on_plan, a);
    if (await(s, a))
        return true;
    strategy_fallback(b.catalogue, &b.ground, &a->strategies[0]);
    a->n = 1;
    return journal_goes_on(&s->j);
}

static bool seeds(struct refine *s) {
    struct answer a = {.mem = s->mem};
    if (!plan(s, &a))
        return false;
    for (size_t i = 0; i < a.n && !isfinite(s->course.best_s); i++, s->j.generation++) {
        journal_say(&s->j, EVENT_GENERATION, S("a first version"));
        if (!seed(s, &a.strategies[i]))
            return false;
    }
    return isfinite(s->course.best_s) || journal_stop(&s->j, "no candidate was right");
}

/* Where the time of a change goes that is dropped; nothing while facts are withheld. */
static str where_of(const struct refine *s, const struct entry *t) {
    struct buf b;
    buf_init(&b, WHERE_MAX);
    if (course_facts(&s->course))
        facts_summarise(t->outcome, &b);
    str text = arena_str(s->mem, buf_str(&b));
    buf_release(&b);
    return text;
}

/* What became of a proposal that was evaluated and, where need be, repaired. */
static void end_round(struct refine *s, size_t end, str idea) {
    const struct entry *t = &s->trials[end];
    double time_s = t->outcome->time_s;
    if (!accepted(t)) {
        course_end_round(&s->course, ROUND_REJECTED, INFINITY, idea, line_of(s, t));
    } else if (course_gains(&s->course, time_s)) {
        course_end_round(&s->course, ROUND_FASTER, time_s, idea, S(""));
        set_best(s, end);
    } else {
        course_end_round(&s->course, ROUND_NO_GAIN, time_s, idea, where_of(s, t));
    }
}

static bool propose(struct refine *s, struct answer *a) {
    const struct entry *best = &s->trials[s->best];
    struct strategy strategy = best->strategy;
    struct attempt at = {&strategy, best->source, best->outcome, 0};
    struct buf tried;
    if (!may_try(s))
        return false;
    buf_init(&tried, 32u << 10);
    course_tried(&s->course, &tried);
    struct guidance g = {.stage = s->course.stage,
                         .facts = course_facts(&s->course),
                         .tried = buf_str(&tried),
                         .gain = COURSE_GAIN};
    g.spent = course_share_left(&s->course, &g.rounds);
    if (!g.spent)
        g.rounds = course_rounds_left(&s->course);
    s->o->agent->improve(s->o->agent->self, brief(s), &at, &g, on_edit, a);
    buf_release(&tried);
    return await(s, a);
}

static bool improve(struct refine *s) {
    struct answer a = {.mem = s->mem};
    struct strategy strategy = s->trials[s->best].strategy;
    size_t t;
    s->slot = 0;
    course_begin_round(&s->course, journal_left(&s->j, s->n));
    journal_say(&s->j, EVENT_GENERATION, str_view(stage_name(s->course.stage)));
    if (!propose(s, &a)) {
        if (journal_goes_on(&s->j))
            course_end_round(&s->course, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
        return journal_goes_on(&s->j);
    }
    if (!a.source.n || seen(s, a.source)) {
        enum round_end end = a.source.n ? ROUND_SEEN : ROUND_DONE;
        course_end_round(&s->course, end, INFINITY, a.idea, S(""));
        return true;
    }
    if (!try_source(s, &strategy, a.source, a.idea, "improve", s->best, &t) || !repair(s, &t))
        return false;
    end_round(s, t, a.idea);
    return true;
}

/* ---- the run ---- */

static void set_up(struct refine *s) {
    const struct briefing *b = &s->briefing;
    struct course_options co = {
        .workload = b->features.workload,
        .profiling = s->ro.profiling,
        .stop_share = s->o->stop_share > 0 ? s->o->stop_share : STOP_SHARE,
    };
    course_init(&s->course, &co);
    s->ro.repairs = s->ro.repairs ? s->ro.repairs : REPAIRS;
}

static bool run(struct refine *s) {
    if (!journal_open(&s->j, s->o, s->mem, s->out))
        return false;
    if (!recall_brief(s->o, &s->eo, s->mem, &s->briefing, &s->history, &s->recalled, &s->j.err))
        return journal_fail(&s->j, &s->j.err);
    journal_say(&s->j, EVENT_START,
                arena_printf(s->mem, "%s, refining one kernel", s->o->agent->name));
    if (seeds(s))
        while (journal_goes_on(&s->j) && !s->course.stopped && improve(s))
            s->j.generation++;
    if (s->j.failed)
        return false;
    if (!s->j.stopped)
        s->j.stopped = s->course.stopped;
    if (s->n == 0 && s->unwritten.kind != ERR_NONE) {
        s->unwritten.kind = ERR_ENV;
        return journal_fail(&s->j, &s->unwritten);
    }
    return true;
}

static void add_finalist(const struct refine *s, const struct entry *t, struct finalist *out) {
    *out = (struct finalist){.ordinal = t->ordinal,
                             .time_s = t->outcome->time_s,
                             .source = t->source,
                             .record = record_copy(t->outcome->record)};
    journal_align(&s->j, t, &out->strategy);
}

static bool choose(struct refine *s, struct arena *a) {
    struct finalist_options fo = {&s->eo, s->o->archive, s->mem, journal_refused, &s->j};
    struct finalist *list = mem_alloc((s->n + 1) * sizeof *list);
    size_t n = 0, which;
    for (size_t i = 0; i < s->n; i++)
        if (accepted(&s->trials[i]))
            add_finalist(s, &s->trials[i], &list[n++]);
    bool ok = finalist_choose(&fo, list, n, &which, &s->j.err);
    if (ok && which < n)
        finalist_take(&list[which], a, s->out);
    for (size_t i = 0; i < n; i++)
        record_free(list[i].record);
    mem_free(list);
    return ok;
}

/* ---- what the run leaves ---- */

/* Refining changes code, not decisions: of a strategy, as the compiled code shows it, the fastest
 * candidate counts. Adds to the n there are. */
static size_t add_trial(const struct refine *s, const struct entry *t, struct tried *list,
                        size_t n) {
    const struct catalogue *c = s->briefing.catalogue;
    struct tried p = {.strategy = t->strategy,
                      .time_s = accepted(t) ? t->outcome->time_s : INFINITY};
    if (accepted(t))
        journal_align(&s->j, t, &p.strategy);
    for (size_t i = 0; i < n; i++)
        if (strategy_equal(c, &list[i].strategy, &p.strategy)) {
            list[i].time_s = fmin(list[i].time_s, p.time_s);
            return n;
        }
    list[n] = p;
    return n + 1;
}

static void remember(struct refine *s) {
    struct tried *list = arena_array(s->mem, struct tried, s->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n = add_trial(s, &s->trials[i], list, n);
    journal_leave(&s->j, &s->eo, list, n);
}

static void release(struct refine *s) {
    if (s->evaluator)
        evaluator_free(s->evaluator);
    for (size_t i = 0; i < s->n; i++)
        outcome_free(s->trials[i].outcome);
    outcome_free(s->arrived);
    mem_free(s->trials);
    course_release(&s->course);
    history_release(&s->history);
    arena_free(s->mem);
}

bool search_refine(struct loop *l, const struct search_options *o, const struct refine_options *ro,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct refine s = {.loop = l,
                       .o = o,
                       .ro = *ro,
                       .eo = *eo,
                       .out = out,
                       .briefing = *o->briefing,
                       .mem = arena_new(MEMORY_MAX)};
    BUG_IF(!o->agent->debug || !o->agent->improve);
    history_init(&s.history);
    s.eo.thorough = true; /* few candidates, each the ground of the next: none is half right */
    set_up(&s);
    bool ok = run(&s) && choose(&s, a);
    out->stopped = s.j.stopped;
    if (ok) {
        remember(&s);
        journal_say(&s.j, EVENT_END, str_view(s.j.stopped));
    } else {
        *err = s.j.err;
    }
    release(&s);
    return ok;
}
