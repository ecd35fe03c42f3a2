/* optimize TASK: the search on one task, and its one-screen summary. */
#include "ui/optimize_run.h"

#include "base/say.h"
#include "export/order.h"
#include "ui/fleet.h"
#include "ui/screen.h"
#include "ui/terminal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_estimate(const struct optimize *r) {
    return r->eo.device.kind == DEVICE_SIM;
}

/* The folder that has the kernel and its evidence. */
static const char *result_folder(const struct optimize *r) {
    return r->rescued ? r->rescued : r->dir;
}

static json *result_json(const struct optimize *r) {
    const struct search_best *b = &r->best;
    json *j = json_object();
    json_set_str(j, "task", r->task->name);
    json_set_str(j, "shape", inst_label(r->inst, r->ui->arena));
    json_set_str(j, "device", str_view(r->eo.device.text));
    json_set_bool(j, "found", b->found);
    json_set_i64(j, "evaluated", (int64_t)b->evaluated);
    json_set_i64(j, "replayed", (int64_t)b->replayed);
    json_set_str(j, "stopped", str_view(b->stopped));
    if (b->failure.n)
        json_set_str(j, "failure", b->failure);
    json_set_str(j, "folder", str_view(r->dir));
    if (r->account)
        json_set(j, "model", json_copy(r->account));
    if (b->unremembered.n)
        json_set_str(j, "unremembered", b->unremembered);
    if (!b->found)
        return j;
    json_set_str(j, "strategy", optimize_strategy(r));
    json_set_f64(j, "time_s", b->time_s);
    if (b->record->has_time_prepared_s)
        json_set_f64(j, "time_prepared_s", b->record->time_prepared_s);
    json_set_bool(j, "estimated", is_estimate(r));
    json_set_f64(j, agents_expert_first(r->ui) ? "naive_s" : "default_s", b->naive_s);
    json_set_f64(j, "limit_s", r->briefing.roofline.limit_s);
    json_set_str(j, "worth", b->worth);
    json_set_i64(j, "history_runs", (int64_t)b->precedents);
    if (r->baseline_s > 0) {
        json_set_f64(j, "baseline_s", r->baseline_s);
        json_set_f64(j, "speedup", r->baseline_s / r->against_s);
    }
    json_set_str(j, "kernel", arena_printf(r->ui->arena, "%s/kernel.cu", result_folder(r)));
    json_set(j, "outcome", record_to_json(b->record));
    return j;
}

/* ---- one screen at the end ---- */

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

static void print_result(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    const struct search_best *b = &r->best;
    const struct record *rec = b->record;
    double limit = r->briefing.roofline.limit_s;
    str time = ui_time(a, b->time_s);
    screen_heading("Result");
    if (!is_estimate(r) && rec->has_ci_low_s && rec->has_ci_high_s)
        time =
            arena_printf(a, "%.*s (%.*s to %.*s)", STR_ARG(time),
                         STR_ARG(ui_time(a, rec->ci_low_s)), STR_ARG(ui_time(a, rec->ci_high_s)));
    screen_paragraph(0, arena_printf(a, "%.*s %s on %s: %.0f%% of the limit of %.*s, %.*s-bound",
                                     STR_ARG(time), is_estimate(r) ? "estimated" : "measured",
                                     r->eo.device.gpu->title, 100 * limit / b->time_s,
                                     STR_ARG(ui_time(a, limit)), STR_ARG(rec->bound)));
    str launch = ui_launch_bound(a, r->eo.device.gpu, limit, b->time_s, rec->nlaunches);
    if (launch.n)
        screen_paragraph(0, launch);
    if (rec->has_time_prepared_s)
        screen_paragraph(0, ui_prepared(a, rec));
    if (isfinite(b->naive_s))
        screen_paragraph(
            0, arena_printf(a, "%.2fx as fast as %s (%.*s%s)", b->naive_s / b->time_s,
                            agents_expert_first(r->ui)
                                ? "the naive kernel"
                                : "the model's kernel with every decision at its default",
                            STR_ARG(ui_time(a, b->naive_s)), is_estimate(r) ? " estimated" : ""));
    if (r->baseline_s > 0)
        screen_paragraph(
            0, arena_printf(a, "%.2fx as fast as PyTorch (%.*s, the better of eager and compiled)",
                            r->baseline_s / r->against_s, STR_ARG(ui_time(a, r->baseline_s))));
    else if (r->no_baseline.n)
        screen_paragraph(0,
                         arena_printf(a, "PyTorch was not timed: %.*s", STR_ARG(r->no_baseline)));
}

static bool refuses_shapes(const struct record *r) {
    bool any = false;
    for (size_t i = 0; i < r->nskipped; i++)
        any |= r->skipped[i].require.n > 0;
    return any;
}

static void print_confidence(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    const struct record *rec = r->best.record;
    screen_heading("How sure that is");
    if (is_estimate(r))
        screen_paragraph(
            0, arena_printf(a, "The time is the simulator's estimate%s, not a measurement.",
                            r->eo.device.gpu->calibrated
                                ? ""
                                : " from a model not yet calibrated on hardware"));
    else
        screen_paragraph(0,
                         arena_printf(a,
                                      "The time is the median of %zu measured runs, with its 95%% "
                                      "interval.",
                                      rec->nsamples_s));
    screen_paragraph(0, arena_printf(a, "The limit is made of %s.",
                                     gpu_limit_source(r->eo.device.gpu, !is_estimate(r))));
    screen_paragraph(0, arena_printf(a, "Verified on %.*s: %.*s.", STR_ARG(rec->scope),
                                     STR_ARG(ui_runs(a, rec))));
    if (rec->nskipped)
        screen_paragraph(0, arena_printf(a, "Not tried: %.*s.%s", STR_ARG(ui_skipped(a, rec)),
                                         refuses_shapes(rec) ? " With --must-admit no kernel may "
                                                               "refuse a check shape."
                                                             : ""));
    if (rec->unconfirmed_why.n)
        screen_paragraph(
            0, arena_printf(a, "Not verified a second time: %.*s", STR_ARG(rec->unconfirmed_why)));
    else if (rec->confirmed)
        screen_paragraph(0, arena_printf(a, "Verified a second time on a new seed, on %.*s: %.*s.",
                                         STR_ARG(rec->confirmed->scope),
                                         STR_ARG(ui_runs(a, rec->confirmed))));
    if (rec->unwatched_why.n)
        screen_paragraph(0, arena_printf(a, "Not run under the simulator's checkers: %.*s",
                                         STR_ARG(rec->unwatched_why)));
    if (rec->simulated_scope.n && !is_estimate(r))
        screen_paragraph(0, arena_printf(a, "Under the simulator's checkers: %.*s.",
                                         STR_ARG(rec->simulated_scope)));
}

/* ---- what made it fast ---- */

/* Up to the end of the first sentence, without it, to stand within another one. */
static str first_sentence(struct arena *a, str text) {
    size_t n = 0;
    while (n < text.n && !((text.p[n] == '.' || text.p[n] == ';') &&
                           (n + 1 == text.n || text.p[n + 1] == ' ' || text.p[n + 1] == '\n')))
        n++;
    char *sentence = arena_cstr(a, str_trim(str_cut(text, 0, n)));
    if (sentence[0] >= 'A' && sentence[0] <= 'Z' && sentence[1] >= 'a' && sentence[1] <= 'z')
        sentence[0] = (char)(sentence[0] - 'A' + 'a');
    return str_view(sentence);
}

static str value_text(const struct decision *d, int64_t value, struct arena *a) {
    for (size_t i = 0; d->names && i < d->nvalues; i++)
        if (d->values[i] == value)
            return d->names[i];
    return arena_printf(a, "%lld", (long long)value);
}

static str decision_words(const struct decision *d, int64_t value, struct arena *a) {
    str general, chosen;
    decision_describe(d, value, &general, &chosen);
    general = first_sentence(a, general);
    chosen = first_sentence(a, chosen);
    bool both = general.n && chosen.n;
    return arena_printf(a, "%.*s%s%.*s", STR_ARG(general), both ? ": " : "", STR_ARG(chosen));
}

/* "1.20x (1.10x to 1.31x in 3 pairs)"; empty where no pair of candidates tells. */
static str gain_text(const struct search_best *b, size_t decision, struct arena *a) {
    for (size_t i = 0; i < b->nworths; i++) {
        const struct search_worth *w = &b->worths[i];
        if (w->decision != decision)
            continue;
        /* The winner is the fastest of all: what lost was tried in others. */
        const char *where = w->times < 1 ? " in other kernels than this one" : "";
        if (w->pairs == 1)
            return arena_printf(a, ", worth %.2fx%s", w->times, where);
        return arena_printf(a, ", worth %.2fx%s (%.2fx to %.2fx in %zu pairs)", w->times, where,
                            w->least, w->most, w->pairs);
    }
    return S("");
}

static bool has_gain(const struct search_best *b, size_t decision) {
    for (size_t i = 0; i < b->nworths; i++)
        if (b->worths[i].decision == decision)
            return true;
    return false;
}

static bool is_changed(const struct optimize *r, size_t decision) {
    const struct decision *d = &r->catalogue->decisions[decision];
    int64_t value = r->best.strategy.value[decision];
    return value != STRATEGY_UNSET && value != d->fallback &&
           strategy_matters(r->catalogue, &r->briefing.ground, &r->best.strategy, decision);
}

/* What one step has for itself. */
static void print_own(const struct optimize *r, const struct own_value *o) {
    struct arena *a = r->ui->arena;
    const struct decision *d = &r->catalogue->decisions[o->decision];
    screen_paragraph(2, arena_printf(a, "%.*s in step %u %s %.*s", STR_ARG(d->name), o->step,
                                     terminal_arrow(), STR_ARG(value_text(d, o->value, a))));
}

static void print_decision(const struct optimize *r, size_t decision) {
    struct arena *a = r->ui->arena;
    const struct decision *d = &r->catalogue->decisions[decision];
    int64_t value = r->best.strategy.value[decision];
    screen_paragraph(2, arena_printf(a, "%.*s %.*s %s %.*s%.*s: %.*s", STR_ARG(d->name),
                                     STR_ARG(value_text(d, d->fallback, a)), terminal_arrow(),
                                     STR_ARG(value_text(d, value, a)),
                                     STR_ARG(gain_text(&r->best, decision, a)),
                                     STR_ARG(decision_words(d, value, a))));
}

/* The decisions that differ from the naive kernel's: those whose gain is known first, the greatest
 * first. A chain of changes to code has ideas, and decisions that its code has left behind. */
static void print_decisions(const struct optimize *r) {
    const struct search_best *b = &r->best;
    size_t changed = 0;
    if (r->agents.refine && b->record->structure.n) {
        screen_heading("The idea that made it what it is");
        screen_paragraph(0, b->record->structure);
        return;
    }
    if (r->agents.refine)
        return;
    for (size_t i = 0; i < r->catalogue->n; i++)
        changed += is_changed(r, i);
    if (!changed && !b->strategy.nown)
        return;
    screen_heading(agents_expert_first(r->ui) ? "What it does that the naive kernel does not"
                                              : "Decisions that are not at their defaults");
    for (size_t i = 0; i < b->nworths; i++)
        if (is_changed(r, b->worths[i].decision))
            print_decision(r, b->worths[i].decision);
    for (size_t i = 0; i < r->catalogue->n; i++)
        if (is_changed(r, i) && !has_gain(b, i))
            print_decision(r, i);
    for (size_t i = 0; i < b->strategy.nown; i++)
        print_own(r, &b->strategy.own[i]);
    if (b->nworths)
        screen_paragraph(
            0, S("Worth: how many times as fast, between two tried kernels that differ in "
                 "this decision alone."));
}

/* ---- where to go from here ---- */

static void print_files(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    screen_heading("Files");
    screen_line("the kernel and its launch plan",
                arena_printf(a, "%s/kernel.cu", result_folder(r)));
    screen_line("the evidence", arena_printf(a, "%s/outcome.json", result_folder(r)));
    screen_line("all that was tried", arena_printf(a, "%s/run.db, events.jsonl", r->dir));
}

/* With --sampled where export would otherwise refuse: of the own shape only samples were judged. */
static str export_command(const struct optimize *r) {
    const struct record *best = r->best.record;
    if (best->has_task_shape_verified && !best->task_shape_verified)
        return ui_command(r->ui, "export", r->dir, "--sampled");
    return ui_command(r->ui, "export", r->dir);
}

static void print_next(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    const struct search_best *b = &r->best;
    const char *kernel = arena_printf(a, "%s/kernel.cu", result_folder(r)).p;
    screen_heading("Next");
    if (!strcmp(b->stopped, "budget"))
        screen_line("go on where this run stopped", S("the same command, with a larger --budget"));
    if (!strcmp(b->stopped, "interrupted") || !strcmp(b->stopped, "failed"))
        screen_line("go on where this run stopped", S("the same command"));
    if (!b->record->unconfirmed_why.n && !r->rescued)
        screen_line("use it from PyTorch (--to c: C)", export_command(r));
    if (is_estimate(r))
        screen_line("see where its time goes", ui_command(r->ui, "sim", kernel, "--task", r->path));
    else
        screen_line("see where its time goes", ui_command(r->ui, "profile", r->path, kernel));
    screen_line("read what was tried", ui_command(r->ui, "log", r->dir));
    screen_line("see it as a web page", ui_command(r->ui, "report", r->dir));
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
    str text = arena_printf(r->ui->arena,
                            "Model %.*s: %lld calls (%lld more from the archive), %lld tokens in, "
                            "%lld out",
                            STR_ARG(model), (long long)calls, (long long)replayed, (long long)in,
                            (long long)out);
    if (calls && json_get_f64(r->account, "cost", &cost))
        text = arena_printf(r->ui->arena, "%.*s, $%.4f", STR_ARG(text), cost);
    screen_paragraph(0, text);
}

static void print_summary(const struct optimize *r) {
    const struct search_best *b = &r->best;
    struct arena *a = r->ui->arena;
    str archived = b->replayed ? arena_printf(a, " (%zu from the archive)", b->replayed) : S("");
    say("%.*s: %zu candidate%s%.*s; %s\n", STR_ARG(r->task->name), b->evaluated,
        plural(b->evaluated), STR_ARG(archived), search_why_ended(str_view(b->stopped)));
    print_account(r);
    if (b->precedents)
        say("  Began with %zu run%s on similar tasks\n", b->precedents, plural(b->precedents));
    if (!b->found) {
        say("%s\n", optimize_nothing(r).p);
        return;
    }
    if (optimize_short(r).n)
        screen_paragraph(0, optimize_short(r));
    print_result(r);
    print_confidence(r);
    print_decisions(r);
    print_files(r);
    print_next(r);
}

/* --quiet */
static void print_one_line(const struct optimize *r) {
    const struct search_best *b = &r->best;
    str why = b->found ? b->record->unconfirmed_why : S(""), line = S("");
    str_line(&why, &line);
    if (!b->found)
        say("%.*s: %s\n", STR_ARG(r->task->name), optimize_nothing(r).p);
    else
        say("%.*s: %.*s%s, %.0f%% of the limit: %s/kernel.cu%s%.*s\n", STR_ARG(r->task->name),
            STR_ARG(ui_time(r->ui->arena, b->time_s)), is_estimate(r) ? " estimated" : "",
            100 * r->briefing.roofline.limit_s / b->time_s, result_folder(r),
            line.n ? ", not verified a second time: " : "", STR_ARG(line));
}

static int finish(struct optimize *r) {
    optimize_baseline(r, "torch");
    int code = optimize_code(r);
    ui_warn_task(r->inst);
    if (r->best.found && agents_expert_first(r->ui))
        ui_warn_generic(r->best.source);
    if (r->ui->as_json)
        return ui_print_json(result_json(r)) ? code : 3;
    if (option_bool(r->ui->options, "quiet"))
        print_one_line(r);
    else
        print_summary(r);
    if (r->best.failure.n)
        complain("cutepilot: the run ended early: %.*s\n", STR_ARG(r->best.failure));
    return code;
}

int cmd_optimize(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    size_t places;
    options_args(ui->options, &args);
    if (order_exists(args[0])) /* an imported module: each of its tasks */
        return cmd_suite(ui);
    if (!fleet_asked_for(ui, false, &places, &err))
        return ui_fail(ui, &err);
    if (places)
        return fleet_run_command(ui, "optimize", (size_t)option_int(ui->options, "population"));
    struct optimize r = {.ui = ui, .path = args[0], .dir = option_text(ui->options, "out")};
    int code = optimize_run(&r, &err) ? finish(&r) : ui_fail(ui, &err);
    optimize_release(&r);
    return code;
}
