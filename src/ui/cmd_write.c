/* write TASK: the expert's kernel for a strategy, on stdout. Nothing is compiled or run. */
#include "agent/agent.h"
#include "ui/ui.h"

#include <stdio.h>

struct written {
    struct ui *ui;
    int code;
};

static void print_source(void *ctx, str source, const struct err *err) {
    struct written *w = ctx;
    if (err)
        w->code = ui_fail(w->ui, err);
    else if (!w->ui->as_json)
        w->code = ui_flush(source.p, source.n) ? 0 : 3;
    else {
        json *j = json_object();
        json_set_str(j, "source", source);
        w->code = ui_print_json(j) ? 0 : 3;
    }
}

/* The planner's first choice. */
static void take_first(void *ctx, const struct strategy *s, size_t n, str reason,
                       const struct err *err) {
    (void)reason;
    if (n && !err)
        *(struct strategy *)ctx = s[0];
}

/* Decisions named on the command line on top of the planner's; "default" is the plain kernel, and
 * "random:N" the N-th of the strategies drawn at random. */
static bool choose(struct ui *ui, const struct agent *agent, const struct briefing *b,
                   struct strategy *out, struct err *err) {
    str text = str_view(option_text(ui->options, "strategy")), number = str_from(text, 7);
    struct strategy named;
    uint64_t n;
    strategy_fallback(b->catalogue, &b->ground, out);
    if (str_is(text, "default"))
        return true;
    if (str_starts(text, S("random:"))) {
        if (!str_to_u64(number, &n))
            return err_set(err, ERR_INPUT, "--strategy random:N wants a number");
        strategy_random(b->catalogue, &b->ground, rng_sub((struct rng){0}, n), out);
        return true;
    }
    agent->plan(agent->self, b, 2, (struct rng){0}, take_first, out);
    if (text.n == 0)
        return true;
    if (!strategy_parse(b->catalogue, text, &named, err))
        return err_wrap(err, "--strategy");
    for (size_t i = 0; i < b->catalogue->n; i++)
        if (named.value[i] != STRATEGY_UNSET)
            out->value[i] = named.value[i];
    strategy_repair(b->catalogue, &b->ground, out);
    return true;
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
    if (ok)
        ui_ask_dialect(ui, &brief.ground);
    ok = ok && choose(ui, &agent, &brief, &strategy, &err);
    if (ok)
        agent.code(agent.self, &brief, &strategy, print_source, &w);
    else
        w.code = ui_fail(ui, &err);
    if (agent.release)
        agent.release(agent.self);
    return w.code;
}
