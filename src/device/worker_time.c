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

/* ---- the order ---- */

static uint64_t draw(struct worker *w, uint64_t n) {
    return rng_below(rng_stream(w->random, S("order")), w->drawn++, n);
}

/* The first run after modules were loaded fetches their instructions: a content that is met for the
 * first time is not to pay for that. */
static void start_with_known(struct worker *w, size_t *place, size_t n) {
    size_t known[WORKER_MAX_CASES], nknown = 0;
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
json *order_make(struct worker *w, size_t ncases, bool timed) {
    json *order = json_array();
    size_t place[WORKER_MAX_CASES], first = w->job.round;
    ncases = ncases < WORKER_MAX_CASES ? ncases : WORKER_MAX_CASES;
    for (size_t i = 0; i < ncases; i++)
        place[i] = i;
    for (size_t i = ncases; timed && i > 1; i--) {
        size_t k = draw(w, i), t = place[k];
        place[k] = place[i - 1];
        place[i - 1] = t;
    }
    if (timed)
        start_with_known(w, place, ncases);
    for (size_t i = 0; i < ncases; i++) {
        json *run = json_array();
        json_push_i64(run, (int64_t)place[i]);
        json_push_i64(run, timed ? (int64_t)((place[i] + first) % modules_on_device(&w->job)) : 0);
        json_push(order, run);
    }
    return order;
}

static size_t order_part(const struct job *j, size_t run, size_t part) {
    int64_t v = 0;
    json_to_i64(json_at(json_at(j->order, run), part), &v);
    return v < 0 ? 0 : (size_t)v;
}

size_t order_case(const struct job *j, size_t run) {
    return order_part(j, run, 0);
}

size_t order_module(const struct job *j, size_t run) {
    return module_at(j, order_part(j, run, 1));
}

size_t order_module_of(const struct job *j, size_t at) {
    for (size_t i = 0; i < json_len(j->order); i++)
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

void times_keep(struct job *j) {
    const json *s = json_get(j->ran, "times_s"), *host = json_get(j->ran, "host_s");
    for (size_t i = 0; i < json_len(s); i++) {
        double t, h = NAN;
        json_to_f64(json_at(host, i), &h);
        if (json_to_f64(json_at(s, i), &t))
            timed_add(&j->timed[order_module(j, i)], t, h);
    }
    if (json_get(j->ran, "clocks")) {
        json_free(j->clocks);
        j->clocks = json_copy(json_get(j->ran, "clocks"));
    }
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

bool times_suffice(const struct job *j) {
    const json *time = json_get(j->frame.head, "time");
    const json *batches = json_get(j->frame.head, "batches");
    int64_t samples = 16, budget_ms = 2000, timed = 0;
    json_get_i64(time, "samples", &samples);
    json_get_i64(time, "budget_ms", &budget_ms);
    /* Several timed batches share both. */
    for (size_t i = j->batch; i < json_len(batches); i++) {
        bool set = false;
        json_get_bool(json_at(batches, i), "timed", &set);
        timed += set;
    }
    timed = timed < 1 ? 1 : timed;
    if (j->round < 2)
        return false; /* right once and then wrong is what a second round shows */
    for (size_t i = 0; i < j->nlive; i++)
        if (!j->timed[j->live[i]].n)
            return false; /* of many modules and few cases some have not had their turn */
    if ((double)j->timing_us / 1000 * (double)timed > (double)budget_ms)
        return true;
    for (size_t i = 0; i < j->nlive; i++)
        if (!known_well(&j->timed[j->live[i]], (size_t)(samples / timed)))
            return false;
    return true;
}

static json *timed_json(const struct timed *t) {
    json *o = json_object(), *s = json_array(), *host = json_array();
    for (size_t i = 0; i < t->n; i++) {
        json_push_f64(s, t->s[i]);
        json_push_f64(host, t->host_s[i]);
    }
    json_set(o, "samples_s", s);
    json_set(o, "host_s", host);
    return o;
}

json *times_json(const struct job *j) {
    json *all = json_array();
    for (size_t i = 0; i < j->nmodules; i++)
        json_push(all, timed_json(&j->timed[i]));
    return all;
}

void times_release(struct job *j) {
    for (size_t i = 0; i < WORKER_MAX_MODULES; i++) {
        mem_free(j->timed[i].s);
        mem_free(j->timed[i].host_s);
    }
}
