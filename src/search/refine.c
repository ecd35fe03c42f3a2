/* The policy of `refine`: one candidate that gets better (CuTeGen's way). It is generated, tested,
 * repaired until it is right, and then improved in stages, structure before details before
 * parameters. Every round starts from the best one; what is slower or cannot be repaired is dropped
 * and remembered. One thing happens at a time: a question to the agent or an evaluation. */
#include "search/refine.h"
#include "search/driver.h"
#include <math.h>
#include <string.h>

#define SEEDS       3 /* strategies that are tried until a first candidate is right */
#define REPAIRS     4
#define WHY_BYTES   240
#define IDEA_BYTES  200
#define WHERE_BYTES 360
#define LINE_BYTES  600
#define UNANSWERED  3 /* rounds */

/* Rounds without gain before the next stage. Work whose structure is nearly given settles sooner;
 * contractions and attention have more to choose from. */
static size_t patience(const struct rounds *r, enum stage stage) {
    static const unsigned char rounds[WORKLOAD_COUNT][STAGE_COUNT] = {
        [WORKLOAD_POINTWISE] = {1, 2, 2},     [WORKLOAD_REDUCTION] = {2, 2, 2},
        [WORKLOAD_NORMALISATION] = {2, 2, 2}, [WORKLOAD_SCAN] = {2, 2, 2},
        [WORKLOAD_WINDOW] = {2, 2, 2},        [WORKLOAD_CONTRACTION] = {3, 3, 2},
        [WORKLOAD_ATTENTION] = {3, 3, 2},     [WORKLOAD_LOSS] = {1, 2, 2},
        [WORKLOAD_GATHER] = {1, 2, 2},
    };
    return rounds[r->workload][stage];
}

static void look_at_limit(struct rounds *r) {
    if (search_is_at_limit(r->floor_s, r->best_s, r->stop_share))
        r->stopped = "limit";
}

void rounds_start(struct rounds *r, double time_s, double floor_s) {
    r->best_s = time_s;
    r->floor_s = floor_s;
    look_at_limit(r);
}

static void next_stage(struct rounds *r) {
    r->stale = 0;
    r->begun = false;
    if (r->stage == STAGE_PARAMETERS)
        r->stopped = "plateau";
    else
        r->stage++;
}

void rounds_begin(struct rounds *r, uint64_t left) {
    if (r->begun && r->stage != STAGE_PARAMETERS && left <= r->ends)
        next_stage(r);
    if (!r->begun)
        r->ends = r->stage == STAGE_PARAMETERS ? 0 : left / 2;
    r->begun = true;
    r->left = left;
}

bool rounds_share_left(const struct rounds *r, size_t *candidates) {
    *candidates = (size_t)(r->left - r->ends);
    return r->stage != STAGE_PARAMETERS && *candidates < rounds_left(r);
}

size_t rounds_left(const struct rounds *r) {
    return patience(r, r->stage) - r->stale;
}

size_t rounds_left_in_all(const struct rounds *r) {
    size_t n = rounds_left(r);
    for (int s = (int)r->stage + 1; s < STAGE_COUNT; s++)
        n += patience(r, (enum stage)s);
    return n;
}

bool rounds_gain(const struct rounds *r, double time_s) {
    return time_s < r->best_s * (1 - ROUNDS_GAIN);
}

bool rounds_facts(const struct rounds *r) {
    if (r->profiling == PROFILING_DELAYED)
        return r->stage > STAGE_STRUCTURE;
    return r->profiling == PROFILING_NOW;
}

/* ---- what was tried ---- */

static void add_line(struct rounds *r, str line) {
    if (r->ntried == sizeof r->tried / sizeof *r->tried) {
        memmove(r->tried, r->tried + 1, (r->ntried - 1) * sizeof *r->tried);
        r->ntried--;
        r->forgotten++;
    }
    r->tried[r->ntried++] = arena_str(r->mem, line);
}

static void put_no_gain(const struct rounds *r, double time_s, str where, struct buf *out) {
    buf_printf(out, "%.4g us instead of %.4g, ", time_s * 1e6, r->best_s * 1e6);
    if (time_s < r->best_s)
        buf_printf(out, "%.2g%% faster, less than the %g%% asked for; dropped",
                   100 * (1 - time_s / r->best_s), 100 * ROUNDS_GAIN);
    else
        buf_puts(out, S("no gain; dropped"));
    if (where.n)
        buf_printf(out, " (%.*s)", STR_ARG(str_cut(where, 0, WHERE_BYTES)));
}

static void put_end(const struct rounds *r, enum round_end end, double time_s, str why,
                    struct buf *out) {
    switch (end) {
    case ROUND_FASTER:
        buf_printf(out, "%.4g us instead of %.4g, kept", time_s * 1e6, r->best_s * 1e6);
        break;
    case ROUND_NO_GAIN:
        put_no_gain(r, time_s, why, out);
        break;
    case ROUND_REJECTED:
        buf_printf(out, "%.*s; dropped", STR_ARG(str_cut(why, 0, IDEA_BYTES)));
        break;
    case ROUND_SEEN:
        buf_puts(out, S("the same source as an earlier one"));
        break;
    case ROUND_UNANSWERED:
        buf_puts(out, S("no usable reply"));
        break;
    case ROUND_DONE:
        buf_puts(out, S("nothing left for this stage"));
        break;
    }
}

/* Without its full stop; a long one up to a word. */
static void put_idea(str idea, struct buf *out) {
    bool cut = idea.n > IDEA_BYTES;
    if (cut) {
        idea.n = IDEA_BYTES;
        while (idea.n && idea.p[idea.n] != ' ')
            idea.n--;
    }
    while (idea.n && strchr(" .,;:", idea.p[idea.n - 1]))
        idea.n--;
    buf_printf(out, "%.*s%s", STR_ARG(idea), cut ? " …" : "");
}

void rounds_tried(const struct rounds *r, struct buf *out) {
    if (r->forgotten)
        buf_printf(out, "- (%zu earlier ones)\n", r->forgotten);
    for (size_t i = 0; i < r->ntried; i++)
        buf_printf(out, "- %.*s\n", STR_ARG(r->tried[i]));
}

/* ---- rounds ---- */

static void wear(struct rounds *r) {
    if (++r->stale >= patience(r, r->stage))
        next_stage(r);
}

void rounds_end(struct rounds *r, enum round_end end, double time_s, str idea, str why) {
    struct buf line;
    buf_init(&line, LINE_BYTES + IDEA_BYTES);
    buf_printf(&line, "%s: ", stage_name(r->stage));
    put_idea(idea, &line);
    buf_puts(&line, S(": "));
    put_end(r, end, time_s, why, &line);
    add_line(r, buf_str(&line));
    buf_release(&line);
    r->unanswered = end == ROUND_UNANSWERED ? r->unanswered + 1 : 0;
    if (end == ROUND_FASTER) {
        r->best_s = time_s;
        r->stale = 0;
        look_at_limit(r);
    } else if (end == ROUND_DONE) {
        next_stage(r);
    } else {
        wear(r);
    }
    if (r->unanswered == UNANSWERED)
        r->stopped = "no usable reply"; /* who cannot be understood is not asked for ever */
}

/* ---- the policy ---- */

struct refine {
    struct driver d;
    struct refine_options o;
    struct rounds rounds;
    bool planned;
    size_t seeds;                        /* strategies that were tried */
    struct search_candidate *now, *best; /* NULL: none */
    size_t repairs;                      /* of `now` */
    str idea;                            /* that `now` began with */
    str earlier;                         /* what its repairs came to, a line each */
};

/* What a question is about: the next candidate, and how far the run may still go. */
static struct briefing brief(const struct refine *r) {
    return driver_brief(&r->d, r->d.nknown, rounds_left_in_all(&r->rounds));
}

/* Before a question as before a candidate: an answer that cannot be tried is not paid for. */
static bool may_try(struct refine *r) {
    return driver_left(&r->d) || driver_stop(&r->d, "budget");
}

static str verdict_line(const struct search_candidate *c) {
    return arena_printf(c->mem, "%s: %.*s", verdict_name(c->outcome->verdict),
                        STR_ARG(str_cut(str_trim(str_view(c->outcome->why)), 0, WHY_BYTES)));
}

static void begin_candidate(struct refine *r) {
    r->d.first = r->d.n;
    r->now = driver_add(&r->d);
    r->now->next_ordinal = r->d.nknown;
    r->repairs = 0;
    r->earlier = S("");
}

static bool ask_plan(struct refine *r) {
    struct briefing b = brief(r);
    b.in_turn = true;
    b.candidate = NO_CANDIDATE;
    r->planned = true;
    driver_ask_plan(&r->d, &b, SEEDS);
    return true;
}

/* A first version of the next strategy of the plan. Where no reply of the planner's can be read,
 * the strategy that would be tried last is all. */
static bool begin_seed(struct refine *r) {
    struct driver *d = &r->d;
    struct briefing b = brief(r);
    if (r->seeds == SEEDS || r->seeds == (d->nplan ? d->nplan : 1))
        return driver_stop(d, "no candidate was right");
    driver_say(d, EVENT_GENERATION, S("a first version"));
    if (!may_try(r))
        return false;
    begin_candidate(r);
    if (d->nplan)
        r->now->strategy = d->plan[r->seeds];
    else
        strategy_fallback(b.catalogue, &b.ground, &r->now->strategy);
    r->seeds++;
    r->now->reason = S("first version");
    r->now->origin.step = "first";
    driver_ask_source(r->now, &b);
    return true;
}

/* A change of the best candidate. */
static bool begin_round(struct refine *r) {
    struct driver *d = &r->d;
    struct buf tried;
    rounds_begin(&r->rounds, driver_left_told(d));
    driver_say(d, EVENT_GENERATION, str_view(stage_name(r->rounds.stage)));
    if (!may_try(r))
        return false;
    begin_candidate(r);
    buf_init(&tried, 32u << 10);
    rounds_tried(&r->rounds, &tried);
    struct guidance g = {.stage = r->rounds.stage,
                         .facts = rounds_facts(&r->rounds),
                         .tried = buf_str(&tried),
                         .gain = ROUNDS_GAIN};
    g.spent = rounds_share_left(&r->rounds, &g.rounds);
    if (!g.spent)
        g.rounds = rounds_left(&r->rounds);
    struct briefing b = brief(r);
    driver_ask_change(r->now, &b, r->best, &g);
    buf_release(&tried);
    return true;
}

/* A bounded number of times, and not once more where the debugger had no answer, or one that was
 * tried before. */
static bool needs_repair(const struct refine *r) {
    const struct search_candidate *c = r->now;
    return c && c->state == CANDIDATE_DONE && !candidate_accepted(c) && !c->unanswered &&
           !c->repeats && r->repairs < r->o.repairs;
}

static bool ask_repair(struct refine *r) {
    struct search_candidate *c = r->now;
    struct briefing b = brief(r);
    if (!may_try(r))
        return false;
    if (r->repairs)
        r->earlier =
            arena_printf(c->mem, "%.*s- %.*s: %.*s\n", STR_ARG(r->earlier),
                         STR_ARG(str_cut(c->reason, 0, WHY_BYTES)), STR_ARG(verdict_line(c)));
    c->slot = ++r->repairs;
    c->next_ordinal = r->d.nknown;
    driver_ask_repair(c, &b, r->o.repairs - r->repairs, r->earlier);
    return true;
}

/* What became of a change that take() has not seen to. */
static void end_candidate(struct refine *r) {
    const struct search_candidate *c = r->now;
    r->now = NULL;
    r->d.generation++;
    if (!r->best || candidate_accepted(c))
        return;
    if (c->state == CANDIDATE_DONE)
        rounds_end(&r->rounds, ROUND_REJECTED, INFINITY, r->idea, verdict_line(c));
    else if (c->unanswered)
        rounds_end(&r->rounds, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
    else
        rounds_end(&r->rounds, c->declined ? ROUND_DONE : ROUND_SEEN, INFINITY, c->reason, S(""));
}

static bool next(void *self) {
    struct refine *r = self;
    if (!r->planned)
        return ask_plan(r);
    if (needs_repair(r))
        return ask_repair(r);
    if (r->now)
        end_candidate(r);
    if (r->rounds.stopped)
        return driver_stop(&r->d, r->rounds.stopped);
    return r->best ? begin_round(r) : begin_seed(r);
}

static bool take(void *self, struct search_candidate *c) {
    struct refine *r = self;
    struct rounds *rounds = &r->rounds;
    if (!c->rejected)
        r->idea = c->reason;
    if (!candidate_accepted(c))
        return false;
    driver_align_by_rule(c);
    if (r->best && !rounds_gain(rounds, c->time_s)) {
        rounds_end(rounds, ROUND_NO_GAIN, c->time_s, r->idea,
                   rounds_facts(rounds) ? candidate_where(c) : S(""));
        return false;
    }
    if (r->best)
        rounds_end(rounds, ROUND_FASTER, c->time_s, r->idea, S(""));
    else
        rounds_start(rounds, c->time_s, briefing_floor(&r->d.briefing, c->outcome->estimated));
    r->best = c;
    r->d.best_s = rounds->best_s;
    return true;
}

static bool begin(void *self) {
    struct refine *r = self;
    const struct search_options *o = &r->d.o;
    r->rounds = (struct rounds){.mem = r->d.mem,
                                .workload = r->d.briefing.features.workload,
                                .profiling = r->o.profiling,
                                .stop_share = o->stop_share,
                                .best_s = INFINITY};
    r->o.repairs = r->o.repairs ? r->o.repairs : REPAIRS;
    driver_say(&r->d, EVENT_START,
               arena_printf(r->d.mem, "%s, refining one kernel", o->agent->name));
    return true;
}

bool search_refine(struct loop *l, const struct search_options *o, const struct refine_options *ro,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct refine r = {.o = *ro};
    struct policy p = {.self = &r, .chain = true, .begin = begin, .next = next, .take = take};
    BUG_IF(!o->agent->debug || !o->agent->improve);
    return driver_run(&r.d, &p, l, o, eo, a, out, err);
}
