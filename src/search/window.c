/* The policy of `evolve` with the expert: a window of candidates over the core of evolve.h.
 *
 * `window` candidates are under way, and each one that is taken lets the next be made. A source
 * that was submitted before is not submitted again: its strategy shares the outcome. */
#include "search/driver.h"
#include "search/evolve.h"
#include <math.h>

#define CODE_TRIES                                                                                 \
    64 /* strategies tried for a turn: those refused or written before cost nothing */
#define NOTE_WINDOW "window" /* a run keeps it, whatever it is gone on with */

struct window {
    struct driver d;
    struct evolve e;
    uint64_t announced; /* generations */
};

/* ---- proposals ---- */

/* The strategy of a proposal, and why it is tried. */
static bool answer_proposal(struct window *w, const struct proposal *from,
                            struct search_candidate *c) {
    static const char *const steps[] = {[FROM_PLAN] = "plan",
                                        [FROM_PARENTS] = "crossover",
                                        [FROM_CREDIT] = "credit",
                                        [FROM_CHANCE] = "random"};
    struct driver *d = &w->d;
    c->origin.step = steps[from->from];
    switch (from->from) {
    case FROM_PARENTS:
        driver_ask_child(c, &d->briefing, &from->x, &from->y, evolve_stream(&w->e));
        return driver_await_answers(d) && (!c->unanswered || driver_fail(d, &d->unwritten));
    case FROM_PLAN:
        c->strategy = d->plan[from->plan];
        c->reason = d->plan_reason;
        return true;
    case FROM_CREDIT:
        c->strategy = from->strategy;
        c->reason =
            isfinite(from->expected_s)
                ? arena_printf(c->mem, "by credit: %.4g us expected", from->expected_s * 1e6)
                : S("by credit of similar tasks: nothing was accepted so far");
        return true;
    case FROM_CHANCE:
        c->strategy = from->strategy;
        c->reason = d->o.method == SEARCH_RANDOM ? S("at random")
                                                 : S("at random: nothing was accepted so far");
    }
    return true;
}

/* Whether an untried strategy at or near the proposal was written and submitted. */
static bool write_near(struct window *w, struct search_candidate *c) {
    struct strategy proposal = c->strategy;
    for (uint64_t attempt = 0; attempt < CODE_TRIES; attempt++) {
        if (!evolve_claim(&w->e, attempt, &proposal, &c->trial))
            return false;
        c->strategy = w->e.trials[c->trial].strategy;
        driver_ask_source(c, &w->d.briefing);
        if (!driver_await_answers(&w->d))
            return false;
        if (c->state != CANDIDATE_SET_ASIDE) {
            evolve_submit(&w->e, c->trial);
            return true;
        }
        if (c->repeats)
            evolve_same_source(&w->e, c->trial, c->repeats->trial);
    }
    evolve_pass(&w->e);
    return false;
}

static bool next(void *self) {
    struct window *w = self;
    struct proposal from;
    if (!evolve_open(&w->e) || !evolve_propose(&w->e, w->d.nplan, &from))
        return false;
    struct search_candidate *c = driver_add(&w->d);
    c->generation = evolve_generation(&w->e);
    c->next_ordinal = w->e.submitted;
    c->slot = c->next_ordinal % w->e.o.population;
    if (!answer_proposal(w, &from, c) || !write_near(w, c))
        driver_drop_last(&w->d);
    return true;
}

/* ---- outcomes ---- */

/* A generation is announced in front of its first candidate. */
static void announce(struct window *w, uint64_t generation) {
    if (generation < w->announced)
        return;
    w->announced = generation + 1;
    w->d.generation = generation;
    driver_say(&w->d, EVENT_GENERATION,
               generation == 0 ? w->d.plan_reason : S("children of the best"));
}

static bool take(void *self, struct search_candidate *c) {
    struct window *w = self;
    evolve_align(&w->e, c->trial, &c->aligned);
    bool is_best = evolve_settle(&w->e, c->trial, c->time_s);
    w->d.best_s = w->e.best_s;
    w->d.best->naive_s = evolve_naive_s(&w->e);
    announce(w, c->generation);
    return is_best;
}

/* ---- the run ---- */

static void end(void *self) {
    struct window *w = self;
    driver_stop(&w->d, w->e.stopped);
}

static size_t worth(void *self, const struct search_candidate *winner,
                    struct search_worth list[STRATEGY_MAX_DECISIONS]) {
    const struct window *w = self;
    return evolve_worth(&w->e, winner->trial, list);
}

static bool find_window(struct window *w, uint64_t *out) {
    if (!driver_read_number(&w->d, NOTE_WINDOW, 0, out))
        return false;
    if (*out)
        return true;
    *out = w->d.o.window ? w->d.o.window
                         : search_window(w->d.o.population, evaluator_workers(&w->d.eo));
    return driver_write_number(&w->d, NOTE_WINDOW, *out);
}

static void set_up(struct window *w, uint64_t window) {
    const struct search_options *o = &w->d.o;
    const struct briefing *b = &w->d.briefing;
    struct evolve_options eo = {
        .catalogue = b->catalogue,
        .ground = b->ground,
        .seed = o->seed,
        .method = o->method,
        .regime = o->blind ? REGIME_COUNT : briefing_regime(b),
        .population = o->population,
        .window = (size_t)window,
        .plateau = o->plateau,
        .candidates = o->budget.candidates,
        .limit_s = b->roofline.limit_s,
        .stop_share = o->stop_share,
        .precedents = w->d.recalled.precedents,
        .nprecedents = w->d.recalled.nprecedents,
    };
    evolve_init(&w->e, &eo);
}

static size_t plan_size(const struct window *w) {
    if (w->d.o.method == SEARCH_RANDOM)
        return 0;
    bool all = w->d.o.method == SEARCH_ONCE && w->e.o.candidates;
    return all ? (size_t)w->e.o.candidates : search_plan(w->e.o.population);
}

static bool begin(void *self) {
    struct window *w = self;
    struct driver *d = &w->d;
    uint64_t window;
    if (!find_window(w, &window))
        return false;
    set_up(w, window);
    uint64_t space = strategy_space(w->e.o.catalogue, &w->e.o.ground);
    size_t runs = d->best->precedents = d->recalled.nruns;
    driver_say(d, EVENT_START,
               arena_printf(d->mem, "%s, %llu strategies, history of %zu run%s", d->o.agent->name,
                            (unsigned long long)space, runs, runs == 1 ? "" : "s"));
    if (plan_size(w) == 0)
        return true;
    driver_ask_plan(d, &d->briefing, plan_size(w));
    return driver_await_answers(d) &&
           (d->unwritten.kind == ERR_NONE || driver_fail(d, &d->unwritten));
}

bool search_evolve(struct loop *l, const struct search_options *o,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err) {
    struct window w = {0};
    struct policy p = {.self = &w,
                       .window = true,
                       .begin = begin,
                       .next = next,
                       .take = take,
                       .end = end,
                       .worth = worth};
    bool ok = driver_run(&w.d, &p, l, o, eo, a, out, err);
    evolve_release(&w.e);
    return ok;
}
