/* log RUN: what happened in a run, in order: what models were asked, what they answered, what
 * became of the candidates. The run may still be going on. */
#include "archive/calls.h"
#include "base/say.h"
#include "eval/outcome.h"
#include "search/archived.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>

#define LOG_MAX   ((size_t)2 << 30)
#define WHY_BYTES 2000 /* templates write pages; --json has all of it */

struct transcript {
    struct ui *ui;
    struct arena *mem;
    bool prompts; /* whole */
    struct archive_call *calls;
    size_t n, cap, next; /* next: to be printed */
    double best_s;
    json *list;  /* with --json */
    json *spent; /* on models */
    json *run;   /* what it is a run of, and its options: the fingerprint */
};

static void collect(void *ctx, const struct archive_call *c) {
    struct transcript *t = ctx;
    t->calls = mem_grow(t->calls, &t->cap, t->n + 1, sizeof *t->calls);
    struct archive_call *k = &t->calls[t->n++];
    *k = *c;
    str *texts[] = {&k->role, &k->model, &k->system, &k->user, &k->reply};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_str(t->mem, *texts[i]);
}

/* ---- calls ---- */

static json *call_json(const struct archive_call *c) {
    json *j = json_object();
    json_set_str(j, "event", S("call"));
    json_set_str(j, "role", c->role);
    json_set_i64(j, "ordinal", (int64_t)c->ordinal);
    if (c->candidate != UINT64_MAX)
        json_set_i64(j, "candidate", (int64_t)c->candidate);
    json_set_str(j, "model", c->model);
    json_set_str(j, "prompt_sha256", str_view(c->prompt_hash));
    json_set_str(j, "system", c->system);
    json_set_str(j, "user", c->user);
    json_set_str(j, "reply", c->reply);
    json_set_i64(j, "tokens_in", (int64_t)c->tokens_in);
    json_set_i64(j, "tokens_out", (int64_t)c->tokens_out);
    json_set_f64(j, "cost", c->cost);
    json_set_f64(j, "seconds", c->seconds);
    return j;
}

static void print_text(const char *head, str text) {
    str line;
    say("  %s\n", head);
    while (str_line(&text, &line))
        say("  | %.*s\n", STR_ARG(line));
}

static void print_call(const struct transcript *t, const struct archive_call *c) {
    say("%.*s %llu", STR_ARG(c->role), (unsigned long long)c->ordinal);
    if (c->candidate != UINT64_MAX)
        say(" for candidate %llu", (unsigned long long)c->candidate);
    say(": %.*s, %.1f KB asked (%llu tokens), %llu tokens answered, %.1f s", STR_ARG(c->model),
        (double)(c->system.n + c->user.n) / 1e3, (unsigned long long)c->tokens_in,
        (unsigned long long)c->tokens_out, c->seconds);
    if (isfinite(c->cost))
        say(", $%.4f", c->cost);
    say("%s\n", c->cut ? ", cut off" : "");
    if (t->prompts) {
        print_text("system", c->system);
        print_text("prompt", c->user);
    }
    print_text("reply", c->reply);
}

/* Those that were answered before so many outcomes were known. */
static void calls_before(struct transcript *t, uint64_t candidates) {
    for (; t->next < t->n && t->calls[t->next].candidates <= candidates; t->next++) {
        if (t->list)
            json_push(t->list, call_json(&t->calls[t->next]));
        else
            print_call(t, &t->calls[t->next]);
    }
}

/* ---- candidates ---- */

static json *candidate_json(const struct archive_candidate *c, const struct outcome *o) {
    const struct record *r = o->record;
    json *j = json_object(), *parents = json_array();
    json_set_str(j, "event", S("candidate"));
    json_set_i64(j, "ordinal", (int64_t)c->ordinal);
    json_set_i64(j, "generation", (int64_t)c->generation);
    json_set_i64(j, "slot", (int64_t)c->slot);
    json_set_str(j, "strategy", c->strategy);
    json_set_str(j, "reason", c->reason);
    for (size_t i = 0; i < r->nparents; i++)
        json_push_i64(parents, r->parents[i]);
    json_set(j, "parents", parents);
    json_set_str(j, "step", r->step);
    json_set_str(j, "structure", r->structure);
    json_set_str(j, "source", c->source);
    json_set_str(j, "verdict", str_view(verdict_name(o->verdict)));
    json_set_str(j, "why", str_view(o->why));
    if (isfinite(o->time_s))
        json_set_f64(j, "time_s", o->time_s);
    return j;
}

static void print_candidate(struct transcript *t, const struct archive_candidate *c,
                            const struct outcome *o) {
    say("candidate %llu (%llu.%llu): %s", (unsigned long long)c->ordinal,
        (unsigned long long)c->generation, (unsigned long long)c->slot, verdict_name(o->verdict));
    if (isfinite(o->time_s))
        say(", %.*s%s", STR_ARG(ui_time(t->mem, o->time_s)), o->estimated ? " estimated" : "");
    if (isfinite(o->time_s) && isfinite(t->best_s))
        say(", %.2fx the best before", t->best_s / o->time_s);
    say("\n  %.*s\n", STR_ARG(c->reason));
    if (o->verdict != VERDICT_ACCEPTED)
        print_text("why", str_cut(str_view(o->why), 0, WHY_BYTES));
}

static void each_candidate(void *ctx, const struct archive_candidate *c, struct record *record,
                           const struct err *why) {
    struct transcript *t = ctx;
    struct outcome *o = record ? outcome_of(record) : NULL;
    calls_before(t, c->ordinal);
    if (!o) {
        complain(
            "cutepilot: run.db: the row of candidate %llu is damaged: %s; the run's own command "
            "evaluates it again\n",
            (unsigned long long)c->ordinal, why->text);
        return;
    }
    if (t->list)
        json_push(t->list, candidate_json(c, o));
    else
        print_candidate(t, c, o);
    t->best_s = fmin(t->best_s, o->time_s);
    outcome_free(o);
}

/* ---- what was spent ---- */

struct ledger {
    const char *of; /* "candidate ", before each name */
};

static void print_spent(void *ctx, const char *name, const json *row) {
    const struct ledger *l = ctx;
    char label[48];
    int64_t calls = 0, in = 0, out = 0;
    double cost = 0;
    snprintf(label, sizeof label, "%s%s", l->of, name);
    json_get_i64(row, "calls", &calls);
    json_get_i64(row, "tokens_in", &in);
    json_get_i64(row, "tokens_out", &out);
    say("  %-14s %6lld %10lld %10lld", label, (long long)calls, (long long)in, (long long)out);
    if (json_get_f64(row, "cost", &cost) && isfinite(cost))
        say(" %9.4f", cost);
    say("\n");
}

/* Nothing for a run that asked no model. */
static void print_account(const json *spent) {
    struct ledger roles = {""}, candidates = {"candidate "};
    int64_t calls = 0;
    if (!json_get_i64(spent, "calls", &calls) || !calls)
        return;
    say("spent           calls  tokens in tokens out   dollars\n");
    json_each(json_get(spent, "roles"), print_spent, &roles);
    json_each(json_get(spent, "candidates"), print_spent, &candidates);
    print_spent(&roles, "the run", spent);
}

/* ---- the command ---- */

static bool read_fingerprint(struct transcript *t, struct archive *a, struct err *err) {
    str text;
    if (!archive_get_note(a, "fingerprint", t->mem, &text, err))
        return false;
    t->run = text.n ? json_parse(text, err) : json_object();
    return t->run || err_wrap(err, "fingerprint");
}

static bool print_run(struct transcript *t, const char *dir, struct err *err) {
    struct archive *a;
    if (!archive_open_read(dir, &a, err))
        return false;
    bool ok = read_fingerprint(t, a, err) && archive_each_call(a, collect, t, err) &&
              archive_each_candidate(a, each_candidate, t, err);
    t->spent = ok ? archived_spent(a, err) : NULL;
    archive_close(a);
    if (!t->spent)
        return false;
    calls_before(t, UINT64_MAX);
    if (!t->list)
        print_account(t->spent);
    return true;
}

int cmd_log(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    struct transcript t = {.ui = ui,
                           .mem = arena_new(LOG_MAX),
                           .prompts = option_bool(ui->options, "prompts"),
                           .best_s = INFINITY,
                           .list = ui->as_json ? json_array() : NULL};
    options_args(ui->options, &args);
    int code = print_run(&t, args[0], &err) ? 0 : ui_fail(ui, &err);
    if (code == 0 && t.list) {
        json *j = json_object();
        json_set_str(j, "folder", str_view(args[0]));
        json_set(j, "run", json_copy(t.run));
        json_set(j, "events", t.list);
        json_set(j, "spent", json_copy(t.spent));
        code = ui_print_json(j) ? 0 : 3;
    } else {
        json_free(t.list);
    }
    json_free(t.spent);
    json_free(t.run);
    mem_free(t.calls);
    arena_free(t.mem);
    return code;
}
