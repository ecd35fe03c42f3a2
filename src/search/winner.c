/* The winner of a run, chosen among the accepted candidates (driver.h). */
#include "search/driver.h"

#include <stdio.h>

#define NOTE_CONFIRMED "confirmed" /* by ordinal: the record of the second verification */
#define NOTE_WATCHED   "watched"   /* … and of the simulator's */
#define RECORD_MAX     (64u << 20)
#define UNCOVERED_MOST                                                                             \
    4 /* finalists that are passed over because not all of what they do was judged */
#define PASSED_BY_MOST 3 /* … because they could not be verified a second time */

static bool ranks_before(const struct search_candidate *a, const struct search_candidate *b) {
    if (a->unwatched != b->unwatched)
        return b->unwatched;
    if (a->uncovered != b->uncovered)
        return b->uncovered;
    return a->time_s < b->time_s || (a->time_s == b->time_s && a->ordinal < b->ordinal);
}

static bool is_finalist(const struct search_candidate *c) {
    return c->state == CANDIDATE_DONE && candidate_accepted(c) && !c->refused && !c->passed_by;
}

static struct search_candidate *fastest(const struct driver *d) {
    struct search_candidate *best = NULL;
    for (size_t i = 0; i < d->n; i++)
        if (is_finalist(d->candidates[i]) && (!best || ranks_before(d->candidates[i], best)))
            best = d->candidates[i];
    return best;
}

bool winner_exists(const struct driver *d) {
    return fastest(d) != NULL;
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

/* The time that is left, in eo. */
static bool limit_time(struct driver *d, struct evaluator_options *eo) {
    uint64_t now = clock_ms();
    eo->hurry = d->o.hurry;
    if (d->hand_over_by && now >= d->hand_over_by)
        return err_set(&d->err, ERR_ENV, "the time was over");
    eo->give_up_ms = d->hand_over_by ? (unsigned)(d->hand_over_by - now) : 0;
    return true;
}

/* By the run's own workers, on a seed that f has not met: where workers are steps on the nodes of a
 * cluster no other could be had. Where time is short, what they are at is given up. */
static bool evaluate_by_own(struct driver *d, const struct search_candidate *f,
                            const struct evaluator_options *eo, struct outcome **out) {
    struct evaluator *e = driver_evaluator(d);
    if (e && evaluator_broken(e)) {
        evaluator_free(e);
        d->evaluator = NULL;
        e = driver_evaluator(d);
    }
    if (e && eo->give_up_ms)
        evaluator_abandon(e);
    return e && evaluate_again(e, d->loop, eo, S("kernel.cu"), f->source, out, &d->err);
}

/* The evaluation failed, or this machine has not the memory that it had when the candidate was
 * accepted: that says nothing of the candidate, and another time may come to something else. */
static bool says_nothing(const struct outcome *o) {
    return o->verdict == VERDICT_UNJUDGED || o->verdict == VERDICT_OUT_OF_MEMORY;
}

static void drop(struct outcome **o) {
    outcome_free(*o);
    *o = NULL;
}

/* Verified once more (by the run's own workers, or under these options) or found in the archive
 * where that was done before. What cannot be archived, on a disk that is full, is known all the
 * same. */
static bool verify_again(const struct search_candidate *f, const char *note, bool own,
                         struct evaluator_options *eo, struct outcome **out) {
    struct driver *d = f->driver;
    char key[64];
    snprintf(key, sizeof key, "%s_%llu", note, (unsigned long long)f->ordinal);
    if (!earlier(d, key, out))
        return false;
    if (*out && says_nothing(*out))
        drop(out);
    if (*out)
        return true;
    eo->tick = driver_tick;
    eo->tick_ctx = d;
    driver_say(d, EVENT_VERIFY,
               arena_printf(d->mem, "candidate %llu is verified once more",
                            (unsigned long long)f->ordinal));
    if (!limit_time(d, eo) || !(own ? evaluate_by_own(d, f, eo, out)
                                    : evaluate_once(eo, S("kernel.cu"), f->source, out, &d->err)))
        return false;
    if (!says_nothing(*out) && !keep(d, key, *out))
        driver_note_failure(d);
    return true;
}

/* On a seed it has not met. */
static bool confirm(const struct search_candidate *f, struct outcome **out) {
    struct evaluator_options eo = f->driver->eo;
    return verify_again(f, NOTE_CONFIRMED, true, &eo, out);
}

/* What was measured on a GPU, under the simulator's checkers. */
static bool watch(const struct search_candidate *f, struct outcome **out) {
    struct driver *d = f->driver;
    struct evaluator_options eo;
    if (!evaluator_options_watching(&d->eo, d->mem, &eo, &d->err))
        return false;
    eo.candidates = 1;
    eo.lines = true;
    return verify_again(f, NOTE_WATCHED, false, &eo, out);
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
    f->unwatched = seen->verdict == VERDICT_UNSUPPORTED || says_nothing(seen);
    fields_set(f->outcome->record, watched, *wins);
    if (*wins)
        *wins = settle_covered(f, seen);
    else if (f->unwatched)
        f->outcome->record->unwatched_why = arena_str(f->outcome->record->mem, str_view(seen->why));
    else
        refuse(f, seen, "under the simulator's checkers");
    outcome_free(seen);
    return true;
}

static void confirm_record(struct record *r, const struct record *again) {
    r->confirmed = arena_new_of(r->mem, struct record);
    fields_copy(&record_fields, again, r->mem, r->confirmed);
}

/* The next fastest has its turn. */
static void pass_by(struct search_candidate *f, const struct outcome *why) {
    f->passed_by = true;
    f->passed_why = why->verdict == VERDICT_UNJUDGED
                        ? arena_str(f->mem, str_view(why->why))
                        : arena_printf(f->mem, "%s: %s", verdict_name(why->verdict), why->why);
    driver_say(f->driver, EVENT_NOTE,
               arena_printf(f->mem, "candidate %llu could not be verified a second time: %.*s",
                            (unsigned long long)f->ordinal, STR_ARG(f->passed_why)));
}

static bool try_one(struct search_candidate *f, bool *wins) {
    struct outcome *again;
    *wins = false;
    if (!confirm(f, &again))
        return false;
    bool ok = true;
    if (says_nothing(again)) {
        pass_by(f, again);
    } else if (again->verdict == VERDICT_ACCEPTED) {
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

/* Nobody could say whether f holds a second time, or under the simulator's checkers. It is the
 * result, and its record says so; what is more than want of time is the run's failure. */
static void label_unconfirmed(struct search_candidate *f) {
    struct driver *d = f->driver;
    struct record *r = f->outcome->record;
    bool in_time =
        !(d->hand_over_by && clock_ms() >= d->hand_over_by) && !(d->o.hurry && *d->o.hurry);
    str why = arena_str(r->mem, str_view(d->err.text));
    if (r->confirmed)
        r->unwatched_why = why;
    else
        r->unconfirmed_why = why;
    if (in_time)
        driver_note_failure(d);
    driver_say(
        d, EVENT_NOTE,
        arena_printf(d->mem, "candidate %llu was not %s: %s", (unsigned long long)f->ordinal,
                     r->confirmed ? "run under the simulator's checkers" : "verified a second time",
                     d->err.text));
}

bool search_refuse(struct archive *a, uint64_t ordinal, const struct record *why, struct err *err) {
    struct buf b;
    char key[64];
    buf_init(&b, RECORD_MAX);
    record_write(why, &b);
    snprintf(key, sizeof key, "%s_%llu", NOTE_CONFIRMED, (unsigned long long)ordinal);
    bool ok = archive_note(a, key, buf_str(&b), err);
    buf_release(&b);
    return ok;
}

/* Nobody verified any of them: the fastest after all, with the reason. */
static struct search_candidate *fastest_of_all(struct driver *d) {
    for (size_t i = 0; i < d->n; i++)
        d->candidates[i]->passed_by = false;
    struct search_candidate *f = fastest(d);
    if (f && f->passed_why.n)
        err_set(&d->err, ERR_ENV, "%.*s", STR_ARG(f->passed_why));
    return f;
}

struct search_candidate *winner_choose(struct driver *d, struct arena *a) {
    struct search_candidate *f = NULL;
    bool wins = false, knows = true;
    size_t passed_over = 0, passed_by = 0;
    while (!wins && knows && passed_by < PASSED_BY_MOST && (f = fastest(d))) {
        knows = try_one(f, &wins);
        passed_by += f->passed_by;
        passed_over += f->uncovered && !wins;
        for (size_t i = 0; passed_over == UNCOVERED_MOST && i < d->n; i++)
            d->candidates[i]->uncovered = true; /* enough looking: the fastest of all */
        passed_over += passed_over == UNCOVERED_MOST;
    }
    if ((!knows || (passed_by && !wins)) && (f = fastest_of_all(d)))
        label_unconfirmed(f);
    if (f)
        take_as_result(f, a, d->best);
    return f;
}
