/* log RUN: what happened in a run, in order: each candidate with the idea behind it, what it
 * changes against the best so far, what became of it and what it gained; each call of a model in a
 * line; then a summary. Prompts, replies and sources only where they are asked for. The run may
 * still be going on. */
#include "archive/calls.h"
#include "base/file.h"
#include "base/say.h"
#include "eval/outcome.h"
#include "search/archived.h"
#include "ui/terminal.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_MAX ((size_t)2 << 30)
#define WHY_BYTES                                                                                  \
    300               /* of the reason for a verdict; with --sources more: templates write pages   \
                       */
#define WHY_MOST 2000 /* --json has all of it */

/* A candidate that was the best when it came. */
struct milestone {
    uint64_t ordinal;
    double time_s;
    str what; /* the idea, or the decisions that changed */
};

struct transcript {
    struct ui *ui;
    struct arena *mem;
    bool prompts, replies, sources; /* whole */
    size_t width;
    str base; /* the best's strategy */
    str last_reason;
    size_t of_verdict[VERDICT_COUNT], candidates;
    struct milestone *milestones;
    size_t nmilestones, cap_milestones;
    bool estimated;
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

/* A line that is broken at the terminal's width; what follows the first line is indented. */
static void print_line(const struct transcript *t, size_t indent, str text) {
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < indent; i++)
        buf_putc(&b, ' ');
    text_wrap(text, t->width, indent + 2, indent, &b);
    say_text(buf_str(&b));
    buf_release(&b);
}

static void print_call(const struct transcript *t, const struct archive_call *c) {
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_printf(&b, "%.*s %llu", STR_ARG(c->role), (unsigned long long)c->ordinal);
    if (c->candidate != UINT64_MAX)
        buf_printf(&b, " for candidate %llu", (unsigned long long)c->candidate);
    buf_printf(&b, ": %.*s, %llu tokens in, %llu out, %.1f s", STR_ARG(c->model),
               (unsigned long long)c->tokens_in, (unsigned long long)c->tokens_out, c->seconds);
    if (isfinite(c->cost))
        buf_printf(&b, ", $%.4f", c->cost);
    if (c->cut)
        buf_puts(&b, S(", cut off"));
    print_line(t, 0, buf_str(&b));
    buf_release(&b);
    if (t->prompts) {
        print_text("system", c->system);
        print_text("prompt", c->user);
    }
    if (t->prompts || t->replies)
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

/* A strategy of fifteen decisions in brackets says nothing to a reader: "[…]". */
static str without_strategies(struct arena *a, str text) {
    struct buf b;
    buf_init(&b, 1 << 20);
    while (text.n) {
        size_t open = str_find(text, S("[")), close = open;
        buf_puts(&b, str_cut(text, 0, open));
        text = str_from(text, open);
        close = str_find(text, S("]"));
        str inside = str_cut(text, 0, close + 1);
        bool strategy = close < text.n && str_find(inside, S("=")) < inside.n;
        buf_puts(&b, strategy ? S("[…]") : inside);
        text = str_from(text, inside.n);
    }
    str out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return out;
}

/* "a child of candidates 3 and 5" */
static str origin_text(struct arena *a, const struct record *r) {
    static const char *const steps[][2] = {
        {"plan", "planned"},     {"crossover", "a child"},       {"credit", "chosen by credit"},
        {"random", "at random"}, {"first", "the first version"}, {"improve", "a change"},
        {"repair", "a repair"},
    };
    str text = r->step;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (str_is(r->step, steps[i][0]))
            text = str_view(steps[i][1]);
    for (size_t i = 0; i < r->nparents; i++)
        text = arena_printf(a, "%.*s%s%lld", STR_ARG(text),
                            i                 ? " and "
                            : r->nparents > 1 ? " of candidates "
                                              : " of candidate ",
                            (long long)r->parents[i]);
    return text;
}

static str changes_text(const struct transcript *t, str strategy) {
    struct buf b;
    buf_init(&b, 1 << 20);
    text_changes(t->base, strategy, 4 * t->width, &b);
    str out = arena_str(t->mem, buf_str(&b));
    buf_release(&b);
    return out;
}

static void add_milestone(struct transcript *t, const struct archive_candidate *c,
                          const struct outcome *o, str what) {
    t->milestones =
        mem_grow(t->milestones, &t->cap_milestones, t->nmilestones + 1, sizeof *t->milestones);
    t->milestones[t->nmilestones++] = (struct milestone){c->ordinal, o->time_s, what};
}

static void print_verdict(struct transcript *t, const struct archive_candidate *c,
                          const struct outcome *o) {
    char against[24];
    str origin = origin_text(t->mem, o->record);
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_printf(&b, "candidate %llu", (unsigned long long)c->ordinal);
    if (origin.n)
        buf_printf(&b, ", %.*s", STR_ARG(origin));
    buf_printf(&b, ": %s", verdict_name(o->verdict));
    if (isfinite(o->time_s))
        buf_printf(&b, ", %.*s%s", STR_ARG(ui_time(t->mem, o->time_s)),
                   o->estimated ? " estimated" : "");
    text_against(o->time_s, t->best_s, against);
    if (*against)
        buf_printf(&b, ", %s %s the best before", against,
                   str_is(str_view(against), "as fast") ? "as" : "than");
    print_line(t, 0, buf_str(&b));
    buf_release(&b);
}

/* The idea behind a candidate; what the code made of it is seen from what changed. */
static str idea_text(const struct transcript *t, str reason) {
    reason = str_cut(reason, 0, str_find(reason, S("; aligned: ")));
    return without_strategies(t->mem, reason);
}

static void print_candidate(struct transcript *t, const struct archive_candidate *c,
                            const struct outcome *o) {
    str changes = c->strategy.n ? changes_text(t, c->strategy) : S("");
    str reason = idea_text(t, c->reason);
    bool changed = changes.n && t->base.n && !str_is(changes, "the same decisions");
    bool planned = str_is(o->record->step, "plan"); /* then the reason is that of the whole plan */
    print_verdict(t, c, o);
    if (reason.n && !str_eq(reason, t->last_reason))
        print_line(t, 2,
                   arena_printf(t->mem, "%s: %.*s", planned ? "plan" : "idea", STR_ARG(reason)));
    t->last_reason = reason;
    if (changed)
        print_line(t, 2, arena_printf(t->mem, "changed: %.*s", STR_ARG(changes)));
    if (o->verdict != VERDICT_ACCEPTED)
        print_text("why", str_cut(str_view(o->why), 0, t->sources ? WHY_MOST : WHY_BYTES));
    if (t->sources)
        print_text("source", c->source);
    if (o->time_s < t->best_s) {
        add_milestone(t, c, o, changed ? changes : planned ? S("from the plan") : reason);
        t->base = arena_str(t->mem, c->strategy);
    }
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
    t->candidates++;
    t->of_verdict[o->verdict]++;
    t->estimated |= o->estimated;
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

/* ---- the summary ---- */

static void print_head(const struct transcript *t) {
    str name = {0}, shape = {0}, device = {0}, agents = {0}, workflow = {0};
    json_get_str(t->run, "name", &name);
    json_get_str(t->run, "shape", &shape);
    json_get_str(t->run, "device", &device);
    json_get_str(t->run, "agents", &agents);
    json_get_str(t->run, "workflow", &workflow);
    if (!name.n)
        return;
    say("%.*s at %.*s on %.*s", STR_ARG(name), STR_ARG(shape), STR_ARG(device));
    if (agents.n)
        say(", written by: %.*s", STR_ARG(agents));
    if (workflow.n)
        say(" (%.*s)", STR_ARG(workflow));
    say("\n\n");
}

static void print_steps(const struct transcript *t) {
    for (size_t i = 0; i < t->nmilestones; i++) {
        const struct milestone *m = &t->milestones[i];
        char gain[32] = "";
        if (i)
            snprintf(gain, sizeof gain, "%.2fx the one before",
                     t->milestones[i - 1].time_s / m->time_s);
        print_line(t, 2,
                   arena_printf(t->mem, "candidate %llu, %.*s%s%s: %.*s",
                                (unsigned long long)m->ordinal, STR_ARG(ui_time(t->mem, m->time_s)),
                                i ? ", " : "", gain, STR_ARG(m->what)));
    }
}

static void print_summary(const struct transcript *t) {
    say("\n%zu candidate%s", t->candidates, t->candidates == 1 ? "" : "s");
    const char *gap = ": ";
    for (size_t v = 0; v < VERDICT_COUNT; v++) {
        if (!t->of_verdict[v])
            continue;
        say("%s%zu %s", gap, t->of_verdict[v], verdict_name((enum verdict)v));
        gap = ", ";
    }
    say("\n");
    if (!t->nmilestones)
        return;
    const struct milestone *first = &t->milestones[0], *best = &t->milestones[t->nmilestones - 1];
    str text = arena_printf(
        t->mem, "the fastest: candidate %llu, %.*s%s", (unsigned long long)best->ordinal,
        STR_ARG(ui_time(t->mem, best->time_s)), t->estimated ? " estimated" : "");
    if (best != first)
        text = arena_printf(t->mem,
                            "%.*s, %.2fx as fast as the first that was accepted; step by step:",
                            STR_ARG(text), first->time_s / best->time_s);
    print_line(t, 0, text);
    if (best != first)
        print_steps(t);
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
    bool ok = read_fingerprint(t, a, err) && archive_each_call(a, collect, t, err);
    if (ok && !t->list)
        print_head(t);
    ok = ok && archive_each_candidate(a, each_candidate, t, err);
    t->spent = ok ? archived_spent(a, err) : NULL;
    archive_close(a);
    if (!t->spent)
        return false;
    calls_before(t, UINT64_MAX);
    if (!t->list) {
        print_summary(t);
        print_account(t->spent);
    }
    return true;
}

/* The folder of a suite has a run for each of its tasks below it. */
static bool check_is_run(struct ui *ui, const char *dir, struct err *err) {
    struct arena *a = ui->arena;
    if (file_exists(arena_printf(a, "%s/run.db", dir).p) ||
        !file_exists(arena_printf(a, "%s/suite.json", dir).p))
        return true;
    str each = arena_printf(a, "%s/TASK", dir);
    return err_set(err, ERR_INPUT,
                   "%s is the folder of a suite\nhint: '%.*s' is about one of its tasks", dir,
                   STR_ARG(ui_command(ui, "log", each.p)));
}

int cmd_log(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    struct transcript t = {.ui = ui,
                           .mem = arena_new(LOG_MAX),
                           .prompts = option_bool(ui->options, "prompts"),
                           .replies = option_bool(ui->options, "replies"),
                           .sources = option_bool(ui->options, "sources"),
                           .width = isatty(STDOUT_FILENO)
                                        ? (size_t)terminal_columns(STDOUT_FILENO) - 1
                                        : TERMINAL_USUAL,
                           .best_s = INFINITY,
                           .list = ui->as_json ? json_array() : NULL};
    options_args(ui->options, &args);
    bool ok = check_is_run(ui, args[0], &err) && print_run(&t, args[0], &err);
    int code = ok ? 0 : ui_fail(ui, &err);
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
    mem_free(t.milestones);
    arena_free(t.mem);
    return code;
}
