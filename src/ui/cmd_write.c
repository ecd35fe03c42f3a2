/* write TASK: the expert's kernel for a strategy, on stdout. Nothing is compiled or run. */
#include "agent/agent.h"
#include "base/say.h"
#include "kernel/includes.h"
#include "ui/ui.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAN_MAX 1000 /* places of the planner's list */

struct written {
    struct ui *ui;
    int code;
};

static void print_source(void *ctx, str source, const struct strategy *written,
                         const struct err *err) {
    struct written *w = ctx;
    (void)written;
    if (!err)
        ui_warn_generic(source);
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

/* Decisions named on the command line on top of the planner's; "default" is the plain kernel,
 * "plan:N" the planner's N-th choice, "random:N" the N-th of the strategies drawn at random, in
 * which all steps have the same values where N is even. */
static bool choose(struct ui *ui, const struct agent *agent, const struct briefing *b,
                   struct strategy *out, struct err *err) {
    str text = str_view(option_text(ui->options, "strategy"));
    struct choice choice = {0, out};
    struct strategy named;
    uint64_t n;
    strategy_fallback(b->catalogue, &b->ground, out);
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
    if (text.n == 0 || planned)
        return true;
    return strategy_parse(b->catalogue, text, &named, err) &&
           strategy_impose(b->catalogue, &b->ground, &named, out, err);
}

int cmd_write(struct ui *ui) {
    struct written w = {.ui = ui};
    const char *assets = option_text(ui->options, "assets");
    const struct gpu *gpu;
    const char *path; /* of its facts */
    struct catalogue *catalogue;
    struct strategy strategy;
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
    ok = ok && choose(ui, &agent, &brief, &strategy, &err);
    if (ok)
        agent.code(agent.self, &brief, &strategy, print_source, &w);
    else
        w.code = ui_fail(ui, &err);
    if (agent.release)
        agent.release(agent.self);
    return w.code;
}
