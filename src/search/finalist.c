#include "search/finalist.h"

#include <stdio.h>

#define NOTE_CONFIRMED "confirmed" /* by ordinal: the record of the second verification */
#define NOTE_WATCHED   "watched"   /* … and of the simulator's */
#define RECORD_MAX     (64u << 20)
#define UNCOVERED_MOST                                                                             \
    4 /* finalists that are passed over because not all of what they do was judged */

static bool ranks_before(const struct finalist *a, const struct finalist *b) {
    if (a->unwatched != b->unwatched)
        return b->unwatched;
    if (a->uncovered != b->uncovered)
        return b->uncovered;
    return a->time_s < b->time_s;
}

/* The fastest that has not been refused since; ties go to the earlier one. */
static size_t fastest(const struct finalist *list, size_t n) {
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (list[i].record && (best == n || ranks_before(&list[i], &list[best])))
            best = i;
    return best;
}

static bool earlier(const struct finalist_options *o, const char *key, struct outcome **out,
                    struct err *err) {
    str text = {0};
    *out = NULL;
    if (o->archive && !archive_get_note(o->archive, key, o->mem, &text, err))
        return false;
    struct err damage = {0};
    struct record *record = text.n ? record_parse(text, &damage) : NULL;
    if (record)
        *out = outcome_of(record);
    if (text.n && !*out)
        o->note(o->ctx, arena_printf(o->mem,
                                     "run.db: the row '%s' of the table meta is damaged; the "
                                     "candidate is verified again",
                                     key));
    return true;
}

static bool keep(const struct finalist_options *o, const char *key, const struct outcome *outcome,
                 struct err *err) {
    struct buf b;
    if (!o->archive)
        return true;
    buf_init(&b, RECORD_MAX);
    record_write(outcome->record, &b);
    bool ok = archive_note(o->archive, key, buf_str(&b), err);
    buf_release(&b);
    return ok;
}

/* Verified once more under other options, or found in the archive where that was done before. */
static bool verify_again(const struct finalist_options *o, const struct finalist *f,
                         const char *note, const struct evaluator_options *eo, struct outcome **out,
                         struct err *err) {
    char key[64];
    snprintf(key, sizeof key, "%s_%llu", note, (unsigned long long)f->ordinal);
    if (!earlier(o, key, out, err))
        return false;
    if (*out)
        return true;
    return evaluate_once(eo, S("kernel.cu"), f->source, out, err) && keep(o, key, *out, err);
}

/* On a seed it has not met. */
static bool confirm(const struct finalist_options *o, const struct finalist *f,
                    struct outcome **out, struct err *err) {
    struct evaluator_options eo = *o->eo;
    eo.verify_only = eo.thorough = true;
    eo.workers = eo.compilers = 1;
    eo.seed += eo.seed_given; /* a given seed is a test's; drawn afresh otherwise */
    return verify_again(o, f, NOTE_CONFIRMED, &eo, out, err);
}

/* What was measured on a GPU, under the simulator's checkers. */
static bool watch(const struct finalist_options *o, const struct finalist *f, struct outcome **out,
                  struct err *err) {
    struct evaluator_options eo;
    if (!evaluator_options_watching(o->eo, o->mem, &eo, err))
        return false;
    eo.candidates = 1;
    return verify_again(o, f, NOTE_WATCHED, &eo, out, err);
}

/* A candidate that does not hold is no winner, and is said. */
static void refuse(const struct finalist_options *o, struct finalist *f, const struct outcome *why,
                   const char *where) {
    o->note(o->ctx, arena_printf(o->mem, "candidate %llu did not hold %s: %s: %s",
                                 (unsigned long long)f->ordinal, where, verdict_name(why->verdict),
                                 why->why));
    record_free(f->record);
    f->record = NULL;
}

/* By the simulator's record of it: whether everything that it does at the task's own shape was
 * judged. One of which it was not has its turn after those of which it was. */
static bool settle_covered(struct finalist *f, const struct outcome *seen) {
    bool known = f->uncovered;
    f->uncovered = !seen->covered;
    fields_set(f->record, covered, seen->covered);
    if (seen->record->scope.p)
        f->record->simulated_scope = arena_str(f->record->mem, seen->record->scope);
    return seen->covered || known;
}

/* Whether f may win after what the simulator's checkers say. */
static bool settle_watched(const struct finalist_options *o, struct finalist *f, bool *wins,
                           struct err *err) {
    struct outcome *seen;
    *wins = true;
    if (f->unwatched)
        return true;
    if (!watch(o, f, &seen, err))
        return false;
    *wins = seen->verdict == VERDICT_ACCEPTED;
    f->unwatched = seen->verdict == VERDICT_UNSUPPORTED;
    fields_set(f->record, watched, *wins);
    if (*wins)
        *wins = settle_covered(f, seen);
    else if (!f->unwatched)
        refuse(o, f, seen, "under the simulator's checkers");
    outcome_free(seen);
    return true;
}

static void confirm_record(struct record *r, const struct record *again) {
    r->confirmed = arena_new_of(r->mem, struct record);
    fields_copy(&record_fields, again, r->mem, r->confirmed);
}

static bool try_one(const struct finalist_options *o, struct finalist *f, bool *wins,
                    struct err *err) {
    struct outcome *again;
    *wins = false;
    if (!confirm(o, f, &again, err))
        return false;
    bool ok = true;
    if (again->verdict == VERDICT_ACCEPTED) {
        confirm_record(f->record, again->record);
        if (o->eo->device.kind == DEVICE_SIM)
            *wins = settle_covered(f, again);
        else
            ok = settle_watched(o, f, wins, err);
    } else {
        refuse(o, f, again, "on a new seed");
    }
    outcome_free(again);
    return ok;
}

bool finalist_choose(const struct finalist_options *o, struct finalist *list, size_t n,
                     size_t *which, struct err *err) {
    bool wins = false;
    size_t passed_over = 0;
    while (!wins && (*which = fastest(list, n)) < n) {
        struct finalist *f = &list[*which];
        if (!try_one(o, f, &wins, err))
            return false;
        passed_over += f->uncovered && !wins;
        for (size_t i = 0; passed_over == UNCOVERED_MOST && i < n; i++)
            list[i].uncovered = true; /* that is enough looking: the fastest of all */
        passed_over += passed_over == UNCOVERED_MOST;
    }
    return true;
}

void finalist_take(struct finalist *f, struct arena *a, struct search_best *best) {
    best->found = true;
    best->ordinal = f->ordinal;
    best->strategy = f->strategy;
    best->time_s = f->time_s;
    best->source = arena_str(a, f->source);
    best->record = f->record;
    f->record = NULL;
}
