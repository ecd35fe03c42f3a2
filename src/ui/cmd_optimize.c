/* optimize TASK: the search on one task, and its one-screen summary. */
#include "ui/optimize_run.h"

#include "base/say.h"

#include <math.h>
#include <stdio.h>

static bool is_estimate(const struct optimize *r) {
    return r->eo.device.kind == DEVICE_SIM;
}

static json *result_json(const struct optimize *r) {
    const struct search_best *b = &r->best;
    json *j = json_object();
    json_set_str(j, "task", r->task->name);
    json_set_str(j, "device", str_view(r->eo.device.text));
    json_set_bool(j, "found", b->found);
    json_set_i64(j, "evaluated", (int64_t)b->evaluated);
    json_set_i64(j, "replayed", (int64_t)b->replayed);
    json_set_str(j, "stopped", str_view(b->stopped));
    json_set_str(j, "folder", str_view(r->dir));
    if (r->account)
        json_set(j, "model", json_copy(r->account));
    if (!b->found)
        return j;
    json_set_str(j, "strategy", optimize_strategy(r));
    json_set_f64(j, "time_s", b->time_s);
    json_set_bool(j, "estimated", is_estimate(r));
    json_set_f64(j, agents_expert_first(r->ui) ? "naive_s" : "default_s", b->naive_s);
    json_set_f64(j, "limit_s", r->briefing.roofline.limit_s);
    json_set_str(j, "worth", b->worth);
    json_set_i64(j, "history_runs", (int64_t)b->precedents);
    if (r->baseline_s > 0) {
        json_set_f64(j, "baseline_s", r->baseline_s);
        json_set_f64(j, "speedup", r->baseline_s / r->against_s);
    }
    json_set_str(j, "kernel", arena_printf(r->ui->arena, "%s/kernel.cu", r->dir));
    json_set(j, "outcome", record_to_json(b->record));
    return j;
}

static void print_times(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    const struct search_best *b = &r->best;
    double limit = r->briefing.roofline.limit_s;
    bool expert = agents_expert_first(r->ui);
    str time = ui_time(a, b->time_s), naive = ui_time(a, b->naive_s), lim = ui_time(a, limit);
    say("  %s  %.*s on %s, %.*s-bound\n", is_estimate(r) ? "estimated" : "measured ", STR_ARG(time),
        r->eo.device.gpu->title, STR_ARG(b->record->bound));
    if (isfinite(b->naive_s))
        say("  %s    %.*s%s%s: %.2fx\n", expert ? "naive  " : "default", STR_ARG(naive),
            is_estimate(r) ? " estimated" : "",
            expert ? "" : ", the model's with every decision at its default",
            b->naive_s / b->time_s);
    say("  limit      %.*s: %.0f%% of it reached\n", STR_ARG(lim), 100 * limit / b->time_s);
    if (r->baseline_s > 0)
        say("  PyTorch    %.*s, the better of eager and compiled: %.2fx\n",
            STR_ARG(ui_time(a, r->baseline_s)), r->baseline_s / r->against_s);
    else if (r->no_baseline.n)
        say("  PyTorch    not timed: %.*s\n", STR_ARG(r->no_baseline));
    say("  strategy   %.*s\n", STR_ARG(optimize_strategy(r)));
    if (b->worth.n)
        say("  worth      %.*s; a pair: two tried kernels, one with the decision at its default, "
            "alike in all others\n",
            STR_ARG(b->worth));
    say("  verified   %.*s\n", STR_ARG(b->record->scope));
    if (is_estimate(r))
        say("Times are the simulator's estimates%s, not measurements.\n",
            r->eo.device.gpu->calibrated ? "" : " from a model not yet calibrated on hardware");
}

static void print_account(const struct optimize *r) {
    int64_t calls = 0, in = 0, out = 0, replayed = 0;
    double cost;
    str model = {0};
    if (!r->account)
        return;
    json_get_str(r->account, "model", &model);
    json_get_i64(r->account, "calls", &calls);
    json_get_i64(r->account, "replayed", &replayed);
    json_get_i64(r->account, "tokens_in", &in);
    json_get_i64(r->account, "tokens_out", &out);
    say("  model      %.*s: %lld calls (%lld more from the archive), %lld tokens in, %lld out",
        STR_ARG(model), (long long)calls, (long long)replayed, (long long)in, (long long)out);
    if (calls && json_get_f64(r->account, "cost", &cost))
        say(", $%.4f", cost);
    say("\n");
}

static void print_summary(const struct optimize *r) {
    const struct search_best *b = &r->best;
    say("%.*s: %zu candidate%s (%zu from the archive), stopped: %s\n", STR_ARG(r->task->name),
        b->evaluated, b->evaluated == 1 ? "" : "s", b->replayed, b->stopped);
    print_account(r);
    if (b->precedents)
        say("  history    began with %zu run%s on similar tasks\n", b->precedents,
            b->precedents == 1 ? "" : "s");
    if (!b->found) {
        say("%s\n", optimize_nothing(r).p);
        return;
    }
    say("  kernel     %s/kernel.cu\n  evidence   %s/outcome.json\n", r->dir, r->dir);
    print_times(r);
}

static int finish(struct optimize *r) {
    int code = r->best.found ? 0 : 1;
    optimize_baseline(r, "torch");
    if (r->ui->as_json)
        return ui_print_json(result_json(r)) ? code : 3;
    print_summary(r);
    return code;
}

int cmd_optimize(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    options_args(ui->options, &args);
    struct optimize r = {.ui = ui, .path = args[0], .dir = option_text(ui->options, "out")};
    int code = optimize_run(&r, &err) ? finish(&r) : ui_fail(ui, &err);
    optimize_release(&r);
    return code;
}
