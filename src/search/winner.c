/* The winner of a run, chosen among the accepted candidates (driver.h). */
#include "search/driver.h"

#include <stdio.h>

#define NOTE_CONFIRMED "confirmed" /* by ordinal: the record of the second verification */
#define NOTE_WATCHED   "watched"   /* … and of the simulator's */
#define RECORD_MAX     (64u << 20)
#define UNCOVERED_MOST                                                                             \
    4 /* finalists that are passed over because not all of what they do was judged */

static bool ranks_before(const struct search_candidate *a, const struct search_candidate *b) {
    if (a->unwatched != b->unwatched)
        return b->unwatched;
    if (a->uncovered != b->uncovered)
        return b->uncovered;
    return a->time_s < b->time_s || (a->time_s == b->time_s && a->ordinal < b->ordinal);
}

static bool is_finalist(const struct search_candidate *c) {
    return c->taken && candidate_accepted(c) && !c->refused;
}

static struct search_candidate *fastest(const struct driver *d) {
    struct search_candidate *best = NULL;
    for (size_t i = 0; i < d->n; i++)
        if (is_finalist(d->candidates[i]) && (!best || ranks_before(d->candidates[i], best)))
            best = d->candidates[i];
    return best;
}

static bool earlier(struct driver *d, const char *key, struct outcome **out) {
    str text = {0};
    struct err damage = {0};
    *out = NULL;
    if (!driver_read_note(d, key, &text))
        return false;
    struct record *record = text.n ? record_parse(text, &damage) : NULL;
    if (record)
        *out = outcome_of(record);
    if (text.n && !*out)
        driver_say(d, EVENT_NOTE,
                   arena_printf(d->mem,
                                "run.db: the row '%s' of the table meta is damaged; the "
                                "candidate is verified again",
                                key));
    return true;
}

static bool keep(struct driver *d, const char *key, const struct outcome *outcome) {
    struct buf b;
    buf_init(&b, RECORD_MAX);
    record_write(outcome->record, &b);
    bool ok = driver_write_note(d, key, buf_str(&b));
    buf_release(&b);
    return ok;
}

/* Verified once more under other options, or found in the archive where that was done before. */
static bool verify_again(const struct search_candidate *f, const char *note,
                         const struct evaluator_options *eo, struct outcome **out) {
    struct driver *d = f->driver;
    char key[64];
    snprintf(key, sizeof key, "%s_%llu", note, (unsigned long long)f->ordinal);
    if (!earlier(d, key, out))
        return false;
    if (*out)
        return true;
    return (evaluate_once(eo, S("kernel.cu"), f->source, out, &d->err) ||
            driver_fail(d, &d->err)) &&
           keep(d, key, *out);
}

/* On a seed it has not met. */
static bool confirm(const struct search_candidate *f, struct outcome **out) {
    struct evaluator_options eo = f->driver->eo;
    eo.verify_only = eo.thorough = true;
    eo.workers = eo.compilers = 1;
    eo.seed += eo.seed_given; /* a given seed is a test's; drawn afresh otherwise */
    return verify_again(f, NOTE_CONFIRMED, &eo, out);
}

/* What was measured on a GPU, under the simulator's checkers. */
static bool watch(const struct search_candidate *f, struct outcome **out) {
    struct driver *d = f->driver;
    struct evaluator_options eo;
    if (!evaluator_options_watching(&d->eo, d->mem, &eo, &d->err))
        return driver_fail(d, &d->err);
    eo.candidates = 1;
    return verify_again(f, NOTE_WATCHED, &eo, out);
}

/* A candidate that does not hold is no winner, and is said. */
static void refuse(struct search_candidate *f, const struct outcome *why, const char *where) {
    f->refused = true;
    driver_say(f->driver, EVENT_NOTE,
               arena_printf(f->mem, "candidate %llu did not hold %s: %s: %s",
                            (unsigned long long)f->ordinal, where, verdict_name(why->verdict),
                            why->why));
}

/* By the simulator's record of it: whether everything that it does at the task's own shape was
 * judged. One of which it was not has its turn after those of which it was. */
static bool settle_covered(struct search_candidate *f, const struct outcome *seen) {
    struct record *r = f->outcome->record;
    bool known = f->uncovered;
    f->uncovered = !seen->covered;
    fields_set(r, covered, seen->covered);
    if (seen->record->scope.p)
        r->simulated_scope = arena_str(r->mem, seen->record->scope);
    return seen->covered || known;
}

/* Whether f may win after what the simulator's checkers say. */
static bool settle_watched(struct search_candidate *f, bool *wins) {
    struct outcome *seen;
    *wins = true;
    if (f->unwatched)
        return true;
    if (!watch(f, &seen))
        return false;
    *wins = seen->verdict == VERDICT_ACCEPTED;
    f->unwatched = seen->verdict == VERDICT_UNSUPPORTED;
    fields_set(f->outcome->record, watched, *wins);
    if (*wins)
        *wins = settle_covered(f, seen);
    else if (!f->unwatched)
        refuse(f, seen, "under the simulator's checkers");
    outcome_free(seen);
    return true;
}

static void confirm_record(struct record *r, const struct record *again) {
    r->confirmed = arena_new_of(r->mem, struct record);
    fields_copy(&record_fields, again, r->mem, r->confirmed);
}

static bool try_one(struct search_candidate *f, bool *wins) {
    struct outcome *again;
    *wins = false;
    if (!confirm(f, &again))
        return false;
    bool ok = true;
    if (again->verdict == VERDICT_ACCEPTED) {
        confirm_record(f->outcome->record, again->record);
        if (f->driver->eo.device.kind == DEVICE_SIM)
            *wins = settle_covered(f, again);
        else
            ok = settle_watched(f, wins);
    } else {
        refuse(f, again, "on a new seed");
    }
    outcome_free(again);
    return ok;
}

static void take_as_result(struct search_candidate *f, struct arena *a, struct search_best *best) {
    best->found = true;
    best->ordinal = f->ordinal;
    best->strategy = f->aligned;
    best->time_s = f->time_s;
    best->source = arena_str(a, f->source);
    best->record = f->outcome->record;
    f->outcome->record = NULL;
}

bool winner_choose(struct driver *d, struct arena *a, struct search_candidate **winner) {
    bool wins = false;
    size_t passed_over = 0;
    while (!wins && (*winner = fastest(d))) {
        struct search_candidate *f = *winner;
        if (!try_one(f, &wins))
            return false;
        passed_over += f->uncovered && !wins;
        for (size_t i = 0; passed_over == UNCOVERED_MOST && i < d->n; i++)
            d->candidates[i]->uncovered = true; /* enough looking: the fastest of all */
        passed_over += passed_over == UNCOVERED_MOST;
    }
    if (*winner)
        take_as_result(*winner, a, d->best);
    return true;
}
