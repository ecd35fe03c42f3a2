#include "search/journal.h"
#include "search/recall.h"

#include <math.h>
#include <string.h>

#define POLL_MS      50 /* how late a signal or the end of the time may be noticed */
#define NOTE_ELAPSED "elapsed_ms"
#define REASON_MAX   8192
#define NOTE_BUDGETS "budgets" /* numbers of candidates with blanks between; 0: no end */

bool journal_fail(struct journal *j, const struct err *why) {
    if (!j->failed)
        j->err = *why;
    j->failed = true;
    return false;
}

bool journal_stop(struct journal *j, const char *why) {
    if (!j->stopped)
        j->stopped = why;
    return false;
}

bool journal_goes_on(const struct journal *j) {
    return !j->failed && !j->stopped;
}

/* ---- the clock ---- */

static uint64_t elapsed_ms(const struct journal *j) {
    return j->before_ms + (clock_ms() - j->start_ms);
}

static bool note_elapsed(struct journal *j, uint64_t ms) {
    struct err err;
    str text = arena_printf(j->mem, "%llu", (unsigned long long)ms);
    if (!j->o->archive || archive_note(j->o->archive, NOTE_ELAPSED, text, &err))
        return true;
    return journal_fail(j, &err);
}

/* ---- the budget ---- */

static bool note_budget(struct journal *j) {
    str text = {0}, word, rest;
    uint64_t last = UINT64_MAX, now = j->o->budget.candidates;
    if (j->o->archive && !archive_get_note(j->o->archive, NOTE_BUDGETS, j->mem, &text, &j->err))
        return journal_fail(j, &j->err);
    for (rest = text; str_word(&rest, ' ', &word);)
        if (!str_to_u64(word, &last)) {
            journal_say(j, EVENT_NOTE,
                        S("run.db: the row '" NOTE_BUDGETS "' of the table meta is not of numbers; "
                          "it is left out of account"));
            text = S("");
            break;
        }
    j->budgets = text;
    if (text.n && last == now)
        return true;
    j->budgets = arena_printf(j->mem, "%.*s%s%llu", STR_ARG(text), text.n ? " " : "",
                              (unsigned long long)now);
    return !j->o->archive || archive_note(j->o->archive, NOTE_BUDGETS, j->budgets, &j->err) ||
           journal_fail(j, &j->err);
}

uint64_t journal_left(const struct journal *j, uint64_t evaluated) {
    str rest = j->budgets, word;
    uint64_t budget;
    while (str_word(&rest, ' ', &word))
        if (str_to_u64(word, &budget) && (!budget || budget > evaluated))
            return budget ? budget - evaluated : NO_BUDGET;
    return 0;
}

bool journal_open(struct journal *j, const struct search_options *o, struct arena *mem,
                  struct search_best *best) {
    str text = {0};
    *j = (struct journal){
        .o = o, .best = best, .mem = mem, .start_ms = clock_ms(), .best_s = INFINITY};
    *best = (struct search_best){.time_s = INFINITY, .naive_s = INFINITY};
    if (o->archive && !archive_get_note(o->archive, NOTE_ELAPSED, mem, &text, &j->err))
        return journal_fail(j, &j->err);
    if (text.n && !str_to_u64(text, &j->before_ms)) {
        j->before_ms = 0;
        journal_say(j, EVENT_NOTE,
                    S("run.db: the row '" NOTE_ELAPSED "' of the table meta is not a number; it is "
                      "left out of account"));
    }
    return note_budget(j);
}

bool journal_wait(struct journal *j, struct loop *l) {
    uint64_t most = j->o->budget.ms;
    if (!journal_goes_on(j))
        return false;
    if (j->o->interrupted && *j->o->interrupted)
        return journal_stop(j, "interrupted");
    /* The note says that it was up, whatever the clock says next time. */
    if (most && elapsed_ms(j) >= most)
        return note_elapsed(j, most) && journal_stop(j, "budget");
    if (!loop_step(l, POLL_MS, &j->err))
        return journal_fail(j, &j->err);
    return !j->failed;
}

/* ---- the archive ---- */

void entry_set_source(struct entry *e, str source) {
    e->source = source;
    digest_hex(sha256_of(source), e->hash);
}

/* Where it comes from becomes part of its record. */
static void note_origin(const struct journal *j, const struct entry *e) {
    const struct agent *a = j->o->agent;
    struct origin o = e->origin;
    o.ordinal = e->ordinal;
    if (a->remarks)
        o.structure = a->remarks(a->self, e->hash, j->mem);
    if (!o.structure.n)
        o.structure = e->origin.structure;
    record_set_origin(e->outcome->record, &o);
}

bool journal_recall(struct journal *j, struct entry *e) {
    struct record *record = NULL;
    struct err err = {0};
    int found =
        j->o->archive ? archive_lookup(j->o->archive, e->ordinal, e->hash, &record, &err) : 0;
    if (found == 0 && err.kind != ERR_NONE)
        journal_say(j, EVENT_NOTE, str_view(err.text));
    if (found == 1) {
        e->outcome = outcome_of(record);
        e->replayed = true;
        note_origin(j, e);
    }
    return found >= 0 || journal_fail(j, &err);
}

bool journal_keep(struct journal *j, const struct entry *e) {
    struct err err;
    struct buf text;
    note_origin(j, e);
    if (!j->o->archive)
        return true;
    buf_init(&text, 8192);
    strategy_text(j->o->briefing->catalogue, &e->strategy, &text);
    struct archive_candidate c = {.ordinal = e->ordinal,
                                  .generation = e->generation,
                                  .slot = e->slot,
                                  .strategy = buf_str(&text),
                                  .reason = e->reason,
                                  .source = e->source};
    memcpy(c.source_hash, e->hash, sizeof c.source_hash);
    bool ok = archive_add(j->o->archive, &c, e->outcome->record, &err) || journal_fail(j, &err);
    buf_release(&text);
    return ok && note_elapsed(j, elapsed_ms(j));
}

/* ---- history ---- */

void journal_align(const struct journal *j, const struct entry *e, struct strategy *out) {
    struct buf ignored;
    buf_init(&ignored, REASON_MAX);
    aligner_align(j->o->briefing, &e->strategy, e->outcome->record, out, &ignored);
    buf_release(&ignored);
}

void journal_leave(const struct journal *j, const struct evaluator_options *eo,
                   const struct tried *list, size_t n) {
    struct err err = {0};
    if (!recall_add(j->o, eo, j->best, list, n, j->mem, &err))
        journal_say(j, EVENT_NOTE, arena_printf(j->mem, "not added to the history: %s", err.text));
}

/* ---- events ---- */

static void emit(const struct journal *j, struct event *e) {
    e->generation = j->generation;
    e->done = e->submitted = j->done;
    e->budget = j->o->budget.candidates;
    e->elapsed_s = (double)elapsed_ms(j) / 1000;
    e->budget_s = (double)j->o->budget.ms / 1000;
    e->best_s = j->best_s;
    e->limit_s = j->o->briefing->roofline.limit_s;
    e->naive_s = j->best->naive_s;
    if (j->o->emit)
        j->o->emit(j->o->emit_ctx, e);
}

void journal_say(const struct journal *j, enum event_kind kind, str text) {
    struct event e = {.kind = kind, .time_s = INFINITY, .text = text};
    emit(j, &e);
}

void journal_show(const struct journal *j, enum event_kind kind, const struct entry *e) {
    const struct outcome *o = e->outcome;
    struct event event = {.kind = kind,
                          .ordinal = e->ordinal,
                          .strategy = e->reason,
                          .text = o->verdict == VERDICT_ACCEPTED ? e->reason : str_view(o->why),
                          .verdict = o->verdict,
                          .time_s = o->time_s,
                          .estimated = o->estimated,
                          .replayed = e->replayed};
    emit(j, &event);
}

void journal_refused(void *ctx, str text) {
    journal_say(ctx, EVENT_NOTE, text);
}
