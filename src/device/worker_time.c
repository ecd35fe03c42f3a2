/* The timed runs of a job: their order, what was measured, and whether it is enough. A timed batch
 * is gone through in rounds until the median is known well enough: every launch that is timed is
 * verified, in an order nobody can know. Rivals take turns on its cases. */
#include "device/worker.h"

#include "base/rng.h"
#include "base/spread.h"

#include <math.h>
#include <string.h>

#define MAX_SAMPLES 1000
#define PRECISION   0.01   /* half the interval of the median … */
#define PRECISION_S 0.2e-6 /* … or as little in seconds */
/* Of the budget: when timing without what is done once ends at the latest. */
#define PREPARED_SHARE 1.5

/* ---- the order ---- */

static uint64_t draw(struct worker *w, uint64_t n) {
    return rng_below(rng_stream(w->random, S("order")), w->drawn++, n);
}

/* The first run after modules were loaded fetches their instructions: a content that is met for the
 * first time is not to pay for that. */
static void start_with_known(struct worker *w, size_t *place, size_t n) {
    size_t known[WIRE_MAX_CASES], nknown = 0;
    for (size_t i = 0; i < n; i++)
        if (!meet_is_first(&w->job, place[i]))
            known[nknown++] = i;
    if (!nknown || !meet_is_first(&w->job, place[0]))
        return;
    size_t k = known[draw(w, nknown)], t = place[k];
    place[k] = place[0];
    place[0] = t;
}

/* Each case once; timed, in an order that nobody knows, candidate and rivals taking turns. */
void order_make(struct worker *w, size_t ncases, bool timed) {
    struct job_walk *j = &w->job;
    size_t place[WIRE_MAX_CASES];
    for (size_t i = 0; i < ncases; i++)
        place[i] = i;
    for (size_t i = ncases; timed && i > 1; i--) {
        size_t k = draw(w, i), t = place[k];
        place[k] = place[i - 1];
        place[i - 1] = t;
    }
    if (timed)
        start_with_known(w, place, ncases);
    for (j->norder = 0; j->norder < ncases; j->norder++) {
        size_t at = place[j->norder];
        j->order[j->norder] =
            (struct wire_order){at, timed ? (at + j->round) % modules_on_device(j) : 0};
    }
}

/* Of a run that a message names: one that there is. */
static const struct wire_order *run_of(const struct job_walk *j, size_t run) {
    return &j->order[run < j->norder ? run : 0];
}

size_t order_case(const struct job_walk *j, size_t run) {
    return run_of(j, run)->at;
}

size_t order_module(const struct job_walk *j, size_t run) {
    return module_at(j, run_of(j, run)->module);
}

size_t order_module_of(const struct job_walk *j, size_t at) {
    for (size_t i = 0; i < j->norder; i++)
        if (order_case(j, i) == at)
            return order_module(j, i);
    return 0;
}

/* ---- the times ---- */

static void timed_add(struct timed *t, double s, double host_s) {
    if (t->n == t->room) {
        size_t room = t->room;
        t->s = mem_grow(t->s, &room, t->n + 1, sizeof *t->s);
        t->host_s = mem_grow(t->host_s, &t->room, t->n + 1, sizeof *t->host_s);
    }
    t->s[t->n] = s;
    t->host_s[t->n++] = host_s;
}

void times_keep(struct job_walk *j) {
    struct timed *to = j->preparing ? j->prepared_times : j->timed;
    for (size_t i = 0; i < j->ran.ntimes_s; i++)
        if (!isnan(j->ran.times_s[i]))
            timed_add(&to[order_module(j, i)], j->ran.times_s[i],
                      i < j->ran.nhost_s ? j->ran.host_s[i] : (double)NAN);
    if (!j->ran.clocks)
        return;
    j->found.clocks = arena_new_of(j->mem, struct wire_clocks);
    fields_copy(&wire_clocks_fields, j->ran.clocks, j->mem, j->found.clocks);
}

static bool known_well(const struct timed *t, size_t samples) {
    double copy[MAX_SAMPLES];
    size_t n = t->n < MAX_SAMPLES ? t->n : MAX_SAMPLES;
    if (t->n < samples)
        return false;
    memcpy(copy, t->s, n * sizeof *copy);
    struct spread s = spread_of(copy, n);
    double half = (s.high - s.low) / 2;
    return half <= PRECISION * s.median || half <= PRECISION_S || t->n >= MAX_SAMPLES;
}

bool times_suffice(const struct job_walk *j) {
    int64_t timed = 0;
    /* Several timed batches share samples and budget. */
    for (size_t i = j->batch; i < j->asked.nbatches; i++)
        timed += j->asked.batches[i].timed;
    timed = timed < 1 ? 1 : timed;
    if (j->round < 2)
        return false; /* right once and then wrong is what a second round shows */
    for (size_t i = 0; i < j->nlive; i++)
        if (!j->timed[j->live[i]].n)
            return false; /* of many modules and few cases some have not had their turn */
    if ((double)j->timing_us / 1000 * (double)timed > (double)j->asked.time.budget_ms)
        return true;
    for (size_t i = 0; i < j->nlive; i++)
        if (!known_well(&j->timed[j->live[i]], (size_t)(j->asked.time.samples / timed)))
            return false;
    return true;
}

/* ---- without the steps that are done once ----
 *
 * Further rounds of a timed batch, after those that count: what is done once is done before the
 * clock starts. They are verified like all others, and shown beside the time of the whole. */

static bool has_once(const struct job_walk *j, size_t module) {
    return j->asked.nshapes && j->asked.shapes[0].plans[module].once_steps > 0;
}

bool times_have_once(const struct job_walk *j) {
    for (size_t i = 0; batch_now(j)->timed && i < j->nlive; i++)
        if (has_once(j, j->live[i]))
            return true;
    return false;
}

bool times_suffice_prepared(const struct job_walk *j) {
    bool late = (double)j->timing_us / 1000 > PREPARED_SHARE * (double)j->asked.time.budget_ms;
    for (size_t i = 0; i < j->nlive; i++) {
        const struct timed *t = &j->prepared_times[j->live[i]];
        if (has_once(j, j->live[i]) &&
            (!t->n || (!late && !known_well(t, (size_t)j->asked.time.samples / 2))))
            return false;
    }
    return true;
}

void times_report(const struct job_walk *j, struct result *out) {
    out->times = arena_array(j->mem, struct result_times, j->nmodules);
    for (; out->ntimes < j->nmodules; out->ntimes++) {
        const struct timed *t = &j->timed[out->ntimes];
        const struct timed *p = &j->prepared_times[out->ntimes];
        bool once = has_once(j, out->ntimes);
        out->times[out->ntimes] =
            (struct result_times){t->s, t->n, t->host_s, t->n, once ? p->s : NULL, once ? p->n : 0};
    }
}

void times_release(struct job_walk *j) {
    for (size_t i = 0; i < WIRE_MAX_MODULES; i++) {
        mem_free(j->timed[i].s);
        mem_free(j->timed[i].host_s);
        mem_free(j->prepared_times[i].s);
        mem_free(j->prepared_times[i].host_s);
    }
}
