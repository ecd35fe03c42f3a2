/* write TASK: the expert's kernel for a strategy, on stdout. Nothing is compiled or run. */
#include "agent/agent.h"
#include "base/file.h"
#include "base/say.h"
#include "kernel/includes.h"
#include "report/story.h"
#include "ui/screen.h"
#include "ui/ui.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAN_MAX 1000   /* places of the planner's list */
#define LIST     "list" /* instead of decisions */
#define FROM_RUN "run:" /* before the folder of a run */

#define STRATEGY_LINE "// Strategy: "
#define SOURCE_MOST   (4u << 20)

struct written {
    struct ui *ui;
    const struct catalogue *catalogue;
    const struct strategy *named, *asked; /* by name, and the whole strategy with them */
    int code;
};

/* ---- the kernel ---- */

static bool was_named(const struct strategy *named, size_t decision) {
    bool so = named->value[decision] != STRATEGY_UNSET;
    for (size_t i = 0; i < named->nown; i++)
        so |= named->own[i].decision == decision;
    return so;
}

/* A decision that was asked for and is not in the kernel is said, for the kernel is on its way to a
 * file. */
static void warn_changed(const struct written *w, const struct strategy *written) {
    const struct catalogue *c = w->catalogue;
    struct arena *a = w->ui->arena;
    struct strategy_change all[STRATEGY_MAX_CHANGES];
    size_t n = written ? strategy_changes(c, w->asked, written, all) : 0;
    for (size_t i = 0; i < n; i++)
        if (was_named(w->named, all[i].decision) && all[i].to != STRATEGY_UNSET)
            complain("cutepilot: warning: %.*s=%.*s instead of %.*s, which was asked for: the "
                     "head of the kernel says why\n",
                     STR_ARG(strategy_change_name(c, &all[i], a)),
                     STR_ARG(story_value(c, all[i].decision, all[i].to, a)),
                     STR_ARG(story_value(c, all[i].decision, all[i].from, a)));
}

static void print_source(void *ctx, str source, const struct strategy *written,
                         const struct err *err) {
    struct written *w = ctx;
    if (!err) {
        ui_warn_generic(source);
        warn_changed(w, written);
    }
    if (err) {
        w->code = ui_fail(w->ui, err);
        return;
    }
    source = includes_file(source, w->ui->arena);
    if (!w->ui->as_json && isatty(STDOUT_FILENO)) { /* to be looked at, not to be kept */
        say_text(source);
        w->code = 0;
    } else if (!w->ui->as_json)
        w->code = ui_flush(source.p, source.n) ? 0 : 3;
    else {
        json *j = json_object();
        json_set_str(j, "source", source);
        w->code = ui_print_json(j) ? 0 : 3;
    }
}

/* ---- the strategy ---- */

/* A place in the planner's list, and what stands there. */
struct choice {
    uint64_t at;
    struct strategy *out;
};

/* The last one where the list is shorter. */
static void take_choice(void *ctx, const struct strategy *s, size_t n, str reason,
                        const struct err *err) {
    const struct choice *c = ctx;
    (void)reason;
    if (n && !err)
        *c->out = s[c->at < n ? c->at : n - 1];
}

/* N of "PREFIX:N". */
static bool numbered(str text, const char *prefix, uint64_t max, uint64_t *n, struct err *err) {
    return (str_to_u64(str_from(text, strlen(prefix)), n) && *n <= max) ||
           err_set(err, ERR_INPUT, "--strategy %sN wants a number up to %llu", prefix,
                   (unsigned long long)max);
}

/* The decisions that the best kernel of a run was written by: the line `Strategy:` of its head. */
static bool run_strategy(struct ui *ui, const struct briefing *b, str folder, struct strategy *out,
                         struct err *err) {
    str source, line, path = arena_printf(ui->arena, "%.*s/kernel.cu", STR_ARG(folder));
    struct strategy winner;
    if (!file_read(path.p, SOURCE_MOST, ui->arena, &source, err))
        return err_wrap(err, "--strategy " FROM_RUN "%.*s", STR_ARG(folder));
    while (str_line(&source, &line))
        if (str_starts(line, S(STRATEGY_LINE)))
            return (strategy_parse(b->catalogue, str_from(line, strlen(STRATEGY_LINE)), &winner,
                                   err) &&
                    strategy_impose(b->catalogue, &b->ground, &winner, out, err)) ||
                   err_wrap(err, "%.*s", STR_ARG(path));
    return err_set(err, ERR_INPUT,
                   "%.*s has no line '" STRATEGY_LINE "': the expert did not write it",
                   STR_ARG(path));
}

/* Decisions named on the command line on top of the planner's; "default" is the plain kernel,
 * "run:DIR" what the best kernel of a run was written by, "plan:N" the planner's N-th choice,
 * "random:N" the N-th of the strategies drawn at random, in which all steps have the same values
 * where N is even. */
static bool choose(struct ui *ui, const struct agent *agent, const struct briefing *b,
                   struct strategy *named, struct strategy *out, struct err *err) {
    str text = str_view(option_text(ui->options, "strategy"));
    struct choice choice = {0, out};
    uint64_t n;
    strategy_fallback(b->catalogue, &b->ground, out);
    if (!strategy_parse(b->catalogue, S(""), named, err)) /* nothing yet */
        return false;
    if (str_is(text, "default"))
        return true;
    if (str_starts(text, S("random:"))) {
        if (!numbered(text, "random:", UINT64_MAX, &n, err))
            return false;
        (n % 2 ? strategy_random_in_steps : strategy_random)(b->catalogue, &b->ground,
                                                             rng_sub((struct rng){0}, n), out);
        return true;
    }
    bool planned = str_starts(text, S("plan:"));
    if (planned && !numbered(text, "plan:", PLAN_MAX, &choice.at, err))
        return false;
    agent->plan(agent->self, b, choice.at + 2, (struct rng){0}, take_choice, &choice);
    if (text.n == 0 || planned || str_is(text, LIST))
        return true;
    if (str_starts(text, S(FROM_RUN))) {
        str word;
        str_word(&text, ' ', &word);
        if (!run_strategy(ui, b, str_from(word, strlen(FROM_RUN)), out, err))
            return false;
    }
    return strategy_parse(b->catalogue, text, named, err) &&
           strategy_impose(b->catalogue, &b->ground, named, out, err);
}

/* ---- the decisions that there are ---- */

static str first_sentence(struct arena *a, str prose) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < prose.n; i++) {
        bool gap = prose.p[i] == '\n' || prose.p[i] == ' ';
        if (gap && i && prose.p[i - 1] == '.')
            break;
        buf_putc(&b, gap ? ' ' : prose.p[i]);
    }
    str s = arena_str(a, str_trim(buf_str(&b)));
    buf_release(&b);
    return s;
}

/* The first sentence of what the decision does, or, where its values are told apart at once, of
 * what each of them does. */
static str what_it_does(const struct catalogue *c, size_t i, struct arena *a) {
    const struct decision *d = &c->decisions[i];
    str general, chosen, text = S("");
    decision_describe(d, d->fallback, &general, &chosen);
    if (str_trim(general).n)
        return first_sentence(a, general);
    for (size_t v = 0; v < d->nvalues; v++) {
        decision_describe(d, d->values[v], &general, &chosen);
        if (str_trim(chosen).n)
            text = arena_printf(a, "%.*s%s%.*s: %.*s", STR_ARG(text), text.n ? " " : "",
                                STR_ARG(story_value(c, i, d->values[v], a)),
                                STR_ARG(first_sentence(a, chosen)));
    }
    return text;
}

static void print_decision(const struct briefing *b, size_t i, struct arena *a) {
    const struct decision *d = &b->catalogue->decisions[i];
    say("%.*s:", STR_ARG(d->name));
    for (size_t v = 0; v < d->nvalues; v++)
        if (strategy_possible(b->catalogue, &b->ground, arena_cstr(a, d->name), d->values[v]))
            say(" %.*s%s", STR_ARG(story_value(b->catalogue, i, d->values[v], a)),
                d->values[v] == d->fallback ? " (default)" : "");
    say("\n");
    screen_paragraph(0, what_it_does(b->catalogue, i, a));
}

static json *decision_json(const struct briefing *b, size_t i, struct arena *a) {
    const struct decision *d = &b->catalogue->decisions[i];
    json *j = json_object(), *values = json_array();
    for (size_t v = 0; v < d->nvalues; v++)
        if (strategy_possible(b->catalogue, &b->ground, arena_cstr(a, d->name), d->values[v]))
            json_push(values, json_string(story_value(b->catalogue, i, d->values[v], a)));
    json_set_str(j, "name", d->name);
    json_set(j, "values", values);
    json_set_str(j, "default", story_value(b->catalogue, i, d->fallback, a));
    json_set_str(j, "what", what_it_does(b->catalogue, i, a));
    return j;
}

/* --strategy list: the decisions that make a difference to this task on this GPU. */
static int list_decisions(struct ui *ui, const struct briefing *b, const struct strategy *own) {
    struct strategy fallback;
    json *list = ui->as_json ? json_array() : NULL;
    strategy_fallback(b->catalogue, &b->ground, &fallback);
    for (size_t i = 0; i < b->catalogue->n; i++) {
        if (fallback.value[i] == STRATEGY_UNSET ||
            !strategy_matters(b->catalogue, &b->ground, NULL, i))
            continue;
        if (list)
            json_push(list, decision_json(b, i, ui->arena));
        else
            print_decision(b, i, ui->arena);
    }
    str chosen = strategy_as_text(b->catalogue, own, ui->arena);
    if (!list) {
        say("The expert's own choice: %.*s\n", STR_ARG(chosen));
        return 0;
    }
    json *j = json_object();
    json_set(j, "decisions", list);
    json_set_str(j, "choice", chosen);
    return ui_print_json(j) ? 0 : ERR_ENV;
}

int cmd_write(struct ui *ui) {
    struct written w;
    const char *assets = option_text(ui->options, "assets");
    const struct gpu *gpu;
    const char *path; /* of its facts */
    struct catalogue *catalogue = NULL;
    struct strategy strategy = {0}, named;
    struct briefing brief;
    struct agent agent = {0};
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    bool ok = ui_load_task(ui, 0, &task, &inst, &err) &&
              catalogue_load(assets, ui->arena, &catalogue, &err) &&
              gpu_named(str_view(option_text(ui->options, "gpu")), ui->arena, &gpu, &path, &err) &&
              briefing_make(inst, catalogue, gpu, &brief, &err) && expert_new(assets, &agent, &err);
    if (ok) {
        ui_ask_dialect(ui, &brief.ground);
        ui_warn_task(inst);
    }
    ok = ok && choose(ui, &agent, &brief, &named, &strategy, &err);
    w = (struct written){.ui = ui, .catalogue = catalogue, .named = &named, .asked = &strategy};
    if (ok && str_is(str_view(option_text(ui->options, "strategy")), LIST))
        w.code = list_decisions(ui, &brief, &strategy);
    else if (ok)
        agent.code(agent.self, &brief, &strategy, print_source, &w);
    else
        w.code = ui_fail(ui, &err);
    if (agent.release)
        agent.release(agent.self);
    return w.code;
}
