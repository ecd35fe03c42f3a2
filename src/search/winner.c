/* The winner: the fastest candidate is verified once more on a seed it has not met, and under the
 * simulator's checkers where a GPU measured it. One that does not hold is no winner. */
#include "search/search_private.h"
#include <stdio.h>

#define NOTE_CONFIRMED "confirmed" /* by ordinal: the record of the second verification */
#define NOTE_WATCHED   "watched"   /* … and of the simulator's */

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
    if (s->o->archive && !archive_get_note(s->o->archive, key, s->scratch, &text, &s->err))
        return search_fail(s, &s->err);
    json *record = text.n ? json_parse(text, &s->err) : NULL;
    if (record)
        *out = outcome_from_record(record, &s->err);
    return !text.n || *out || search_fail(s, &s->err);
}

static bool note_confirmation(struct search *s, const char *key, const struct outcome *o) {
    struct buf b;
    buf_init(&b, SEARCH_MEMORY_MAX);
    json_write(o->record, &b);
    bool ok = !s->o->archive || archive_note(s->o->archive, key, buf_str(&b), &s->err);
    buf_release(&b);
    return ok || search_fail(s, &s->err);
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
        return search_fail(s, &s->err);
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
    eo.worker_commands = NULL;
    eo.duel = false;
    return (device_name_parse("sim", s->scratch, &eo.device, &s->err) || search_fail(s, &s->err)) &&
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
    search_emit_text(s, EVENT_NOTE, S(""),
                     arena_printf(s->scratch, "candidate %llu did not hold %s: %s: %s",
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

bool winner_choose(struct search *s, struct arena *a) {
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
