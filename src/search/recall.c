#include "search/driver.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_MOST    16
#define OVERLAP_LEAST 0.75
#define SEEDS_RUN     4

/* Widths are in elements; what carries over to another type is their bytes. */
static int64_t carried(const struct history_run *run, const struct briefing *b, str name,
                       int64_t value) {
    int64_t bytes = value * (int64_t)dtype_info(run->features.dtype)->bytes;
    int64_t own = bytes / (int64_t)dtype_info(b->features.dtype)->bytes;
    return !str_is(name, "vector-width") ? value : own > 0 ? own : 1;
}

/* The nearest value that the catalogue has. */
static void put_nearest(const struct decision *d, int64_t value, int64_t *out) {
    for (size_t i = 0; i < d->nvalues; i++)
        if (i == 0 || llabs(d->values[i] - value) < llabs(*out - value))
            *out = d->values[i];
}

/* Values that single steps have for themselves, which stand behind the others in a text. They mean
 * something here only where the task is the same, and so has the same steps. */
static void adopt_of_steps(const struct history_run *run, const struct briefing *b, str text,
                           struct strategy *out) {
    const struct catalogue *c = b->catalogue;
    str word;
    while (str_word(&text, ' ', &word)) {
        size_t colon = str_find(word, S(":")), eq = str_find(word, S("="));
        uint64_t step;
        int64_t value, nearest = 0;
        if (colon >= eq || !str_to_u64(str_cut(word, 0, colon), &step) ||
            !str_to_i64(str_from(word, eq + 1), &value))
            continue;
        str name = str_cut(word, colon + 1, eq - colon - 1);
        for (size_t i = 0; i < c->n; i++)
            if (str_eq(name, c->decisions[i].name)) {
                put_nearest(&c->decisions[i], carried(run, b, name, value), &nearest);
                strategy_put_own(c, &b->ground, out, step, i, nearest);
            }
    }
}

/* The text's decisions as far as the catalogue has them, made legal here. */
static void adopt(const struct history_run *run, const struct briefing *b, str text,
                  struct strategy *out) {
    const struct catalogue *c = b->catalogue;
    str rest = text, word;
    strategy_fallback(c, &b->ground, out);
    while (str_word(&rest, ' ', &word)) {
        size_t eq = str_find(word, S("="));
        str name = str_cut(word, 0, eq);
        int64_t value;
        for (size_t i = 0; i < c->n && str_to_i64(str_from(word, eq + 1), &value); i++)
            if (str_eq(name, c->decisions[i].name))
                put_nearest(&c->decisions[i], carried(run, b, name, value), &out->value[i]);
    }
    strategy_repair(c, &b->ground, out);
    if (history_is_of(run, b->inst->task))
        adopt_of_steps(run, b, text, out);
}

/* How many of the task's decisions a run's strategies have, as a share. */
static double overlap(const struct history_run *run, const struct briefing *b) {
    struct strategy own;
    size_t here = 0, both = 0;
    strategy_fallback(b->catalogue, &b->ground, &own);
    for (size_t i = 0; i < b->catalogue->n; i++) {
        str text = run->n ? run->trials[0].strategy : S(""), word;
        if (own.value[i] == STRATEGY_UNSET)
            continue;
        here++;
        while (str_word(&text, ' ', &word))
            both +=
                str_eq(str_cut(word, 0, str_find(word, S("="))), b->catalogue->decisions[i].name);
    }
    return here ? (double)both / (double)here : 0;
}

/* ---- seeds ---- */

static bool has_seed(const struct briefing *b, const struct recalled *r, const struct strategy *s) {
    for (size_t i = 0; i < r->nseeds; i++)
        if (strategy_equal(b->catalogue, &r->seeds[i].strategy, s))
            return true;
    return false;
}

/* The trial of a run that comes k-th by time; n: there are not so many accepted ones. */
static size_t kth(const struct history_run *run, size_t k) {
    for (size_t i = 0; i < run->n; i++) {
        size_t before = 0;
        for (size_t j = 0; j < run->n; j++)
            before += run->trials[j].ratio < run->trials[i].ratio ||
                      (j < i && run->trials[j].ratio == run->trials[i].ratio);
        if (before == k && isfinite(run->trials[i].ratio))
            return i;
    }
    return run->n;
}

/* Of which task a seed is: names, and how much there was to gain. */
static str origin(const struct history_run *run, struct arena *a) {
    double slowest = 1;
    for (size_t i = 0; i < run->n; i++)
        if (isfinite(run->trials[i].ratio))
            slowest = fmax(slowest, run->trials[i].ratio);
    return arena_printf(a, "%.*s at %.*s, whose best took %.3g us and the slowest %.3g times that",
                        STR_ARG(run->task), STR_ARG(run->shape), run->best_s * 1e6, slowest);
}

static void add_seeds(const struct history *h, const struct briefing *b, struct arena *a,
                      struct recalled *out) {
    for (size_t k = 0; k < SEEDS_RUN; k++)
        for (size_t i = 0; i < h->n && out->nseeds < SEEDS_MOST; i++) {
            const struct history_run *run = &h->runs[i];
            size_t at = kth(run, k);
            struct tried p = {0};
            if (at == run->n || overlap(run, b) < OVERLAP_LEAST)
                continue;
            adopt(run, b, run->trials[at].strategy, &p.strategy);
            p.time_s = run->trials[at].ratio;
            p.where = origin(run, a);
            if (!has_seed(b, out, &p.strategy))
                out->seeds[out->nseeds++] = p;
        }
}

/* ---- precedents ---- */

static void add_precedents(const struct history_run *run, const struct briefing *b,
                           struct recalled *out) {
    double mean = 0, slowest = 0;
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        if (isfinite(run->trials[i].ratio)) {
            mean += log(run->trials[i].ratio);
            slowest = fmax(slowest, log(run->trials[i].ratio));
            n++;
        }
    mean = n ? mean / (double)n : 0;
    for (size_t i = 0; n && i < run->n; i++) {
        struct precedent *p = &out->precedents[out->nprecedents++];
        double ratio = run->trials[i].ratio;
        adopt(run, b, run->trials[i].strategy, &p->strategy);
        p->log_time = (isfinite(ratio) ? log(ratio) : slowest + CREDIT_REJECTED) - mean;
        p->weight = run->weight;
    }
}

void recall_make(const struct history *h, const struct briefing *b, struct arena *a,
                 struct recalled *out) {
    size_t trials = 0;
    for (size_t i = 0; i < h->n; i++)
        trials += h->runs[i].n;
    *out = (struct recalled){.seeds = arena_array(a, struct tried, SEEDS_MOST),
                             .precedents = arena_array(a, struct precedent, trials + 1)};
    add_seeds(h, b, a, out);
    for (size_t i = 0; i < h->n; i++)
        if (overlap(&h->runs[i], b) >= OVERLAP_LEAST) {
            add_precedents(&h->runs[i], b, out);
            out->nruns++;
        }
}

/* ---- of a run ---- */

#define NOTE_HISTORY  "history" /* what the run began with, as lines of a pool */
#define HISTORY_BYTES (16u << 20)

static bool note_history(struct driver *d) {
    struct buf text;
    buf_init(&text, HISTORY_BYTES);
    history_text(&d->history, &text);
    buf_putc(&text, '\n'); /* a note of nothing is one too */
    bool ok = driver_write_note(d, NOTE_HISTORY, buf_str(&text));
    buf_release(&text);
    return ok;
}

static void describe(const struct driver *d, struct history_run *out) {
    history_describe(d->o.briefing, d->eo.device.text, d->eo.device.kind == DEVICE_SIM, d->mem,
                     out);
}

static bool retrieve(struct driver *d) {
    struct history all;
    struct history_run own;
    struct err warning;
    history_init(&all);
    bool ok = history_load_shipped(&all, d->o.assets, &d->err) || driver_fail(d, &d->err);
    if (ok) {
        history_load_pool(&all, d->o.pool, &warning);
        if (warning.kind != ERR_NONE)
            driver_say(d, EVENT_NOTE, str_view(warning.text));
        describe(d, &own);
        history_retrieve(&all, &own, true, RECALL_RUNS, &d->history);
        ok = note_history(d);
    }
    history_release(&all);
    return ok;
}

bool recall_brief(struct driver *d) {
    struct err err;
    str noted;
    d->briefing.blind = d->o.blind;
    if (!d->o.pool || d->o.method == SEARCH_RANDOM)
        return true;
    if (!driver_read_note(d, NOTE_HISTORY, &noted))
        return false;
    if (noted.n && !history_parse(&d->history, S("run.db: the row 'history' of the table meta"),
                                  noted, &err)) {
        err_set(&d->err, ERR_ENV,
                "%s, so what the run began with is not known\nhint: use --fresh to start anew, or "
                "another --out",
                err.text);
        return driver_fail(d, &d->err);
    }
    if (!noted.n && !retrieve(d))
        return false;
    recall_make(&d->history, &d->briefing, d->mem, &d->recalled);
    d->briefing.history = d->recalled.seeds;
    d->briefing.nhistory = d->recalled.nseeds;
    return true;
}

/* ---- what the run leaves ---- */

void recall_add(const struct driver *d, const struct tried *list, size_t n) {
    struct history one;
    struct history_run run;
    struct err err;
    size_t added;
    if (!d->o.pool || !d->best->found || !strcmp(d->stopped, "interrupted"))
        return;
    describe(d, &run);
    run.best_s = INFINITY;
    for (size_t i = 0; i < n; i++)
        run.best_s = fmin(run.best_s, list[i].time_s);
    run.trials = arena_array(d->mem, struct history_trial, n + 1);
    for (size_t i = 0; i < n; i++)
        run.trials[run.n++] = (struct history_trial){
            strategy_as_text(d->briefing.catalogue, &list[i].strategy, d->mem),
            list[i].time_s / run.best_s};
    history_init(&one);
    history_add(&one, &run);
    if (!history_append(d->o.pool, &one, &added, &err)) {
        d->best->unremembered = arena_printf(d->best_mem, "not added to the history: %s", err.text);
        driver_say(d, EVENT_NOTE, d->best->unremembered);
    }
    history_release(&one);
}
