/* optimize TASK: the search, its folder, and the one-screen summary. */
#include "base/file.h"
#include "base/hash.h"
#include "search/search.h"
#include "ui/progress.h"
#include "ui/ui.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The signal handler's only word; the search looks at it between events. */
static bool interrupted;

static void on_signal(int sig) {
    (void)sig;
    interrupted = true;
}

static void catch_signals(void) {
    struct sigaction act = {.sa_handler = on_signal}, old;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup ignores it */
        sigaction(SIGHUP, &act, NULL);
}

struct run {
    struct ui *ui;
    struct task *task;
    struct inst *inst;
    const char *dir;
    struct catalogue *catalogue;
    struct agent agent;
    struct briefing briefing;
    struct evaluator_options eo;
    struct archive *archive;
    struct progress progress;
    struct search_best best;
};

static bool describe(struct run *r, struct err *err) {
    const char *assets = option_text(r->ui->options, "assets");
    if (!catalogue_load(assets, r->ui->arena, &r->catalogue, err) ||
        !expert_new(assets, &r->agent, err))
        return false;
    r->eo.assets = assets;
    r->eo.duel = true;
    return briefing_make(r->inst, r->catalogue, r->eo.device.gpu, &r->briefing, err);
}

/* What makes two runs the same one. */
static json *fingerprint(const struct run *r) {
    const struct options *o = r->ui->options;
    json *j = json_object();
    char hex[65], nvrtc[32];
    digest_hex(sha256_of(r->task->text), hex);
    snprintf(nvrtc, sizeof nvrtc, "%d.%d", r->eo.nvrtc.major, r->eo.nvrtc.minor);
    json_set_str(j, "cutepilot", S(CUTEPILOT_VERSION));
    json_set_str(j, "task", str_view(hex));
    json_set_str(j, "shape", inst_label(r->inst, r->ui->arena));
    json_set_str(j, "device", str_view(r->eo.device.text));
    json_set_str(j, "nvrtc", str_view(nvrtc));
    json_set_str(j, "agents", str_view(r->agent.name));
    json_set_i64(j, "seed", option_int(o, "seed"));
    json_set_i64(j, "population", option_int(o, "population"));
    return j;
}

static bool open_folder(struct run *r, struct err *err) {
    const char *out = option_text(r->ui->options, "out");
    json *print = fingerprint(r);
    r->dir = out ? out : arena_printf(r->ui->arena, "runs/%.*s", STR_ARG(r->task->name)).p;
    bool ok = archive_open(r->dir, print, option_bool(r->ui->options, "fresh"), &r->archive, err);
    json_free(print);
    return ok;
}

static bool search(struct run *r, struct err *err) {
    const struct options *o = r->ui->options;
    struct search_options so = {
        .briefing = &r->briefing,
        .agent = &r->agent,
        .archive = r->archive,
        .budget = option_budget(o, "budget"),
        .seed = (uint64_t)option_int(o, "seed"),
        .population = (size_t)option_int(o, "population"),
        .interrupted = &interrupted,
        .emit = progress_event,
        .emit_ctx = &r->progress,
    };
    catch_signals();
    progress_init(&r->progress, option_text(o, "progress"),
                  arena_printf(r->ui->arena, "%s/events.jsonl", r->dir).p);
    struct loop *l = loop_new(err);
    bool ok = l && search_evolve(l, &so, &r->eo, r->ui->arena, &r->best, err);
    loop_free(l);
    progress_release(&r->progress);
    return ok;
}

static bool write_results(struct run *r, struct err *err) {
    struct buf b;
    if (!r->best.found)
        return true;
    buf_init(&b, 64u << 20);
    json_write_pretty(r->best.record, &b);
    buf_putc(&b, '\n');
    bool ok =
        file_replace(arena_printf(r->ui->arena, "%s/kernel.cu", r->dir).p, r->best.source, err) &&
        file_replace(arena_printf(r->ui->arena, "%s/outcome.json", r->dir).p, buf_str(&b), err);
    buf_release(&b);
    if (!ok)
        err->kind = ERR_ENV; /* the folder was there: it went away meanwhile */
    return ok;
}

static str strategy_of(const struct run *r) {
    struct buf b;
    buf_init(&b, 1 << 16);
    strategy_text(r->catalogue, &r->best.strategy, &b);
    str s = arena_str(r->ui->arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static bool is_estimate(const struct run *r) {
    return r->eo.device.kind == DEVICE_SIM;
}

static json *result_json(const struct run *r) {
    const struct search_best *b = &r->best;
    json *j = json_object();
    json_set_str(j, "task", r->task->name);
    json_set_str(j, "device", str_view(r->eo.device.text));
    json_set_bool(j, "found", b->found);
    json_set_i64(j, "evaluated", (int64_t)b->evaluated);
    json_set_i64(j, "replayed", (int64_t)b->replayed);
    json_set_str(j, "stopped", str_view(b->stopped));
    json_set_str(j, "folder", str_view(r->dir));
    if (!b->found)
        return j;
    json_set_str(j, "strategy", strategy_of(r));
    json_set_f64(j, "time_s", b->time_s);
    json_set_bool(j, "estimated", is_estimate(r));
    json_set_f64(j, "naive_s", b->naive_s);
    json_set_f64(j, "limit_s", r->briefing.roofline.limit_s);
    json_set_str(j, "kernel", arena_printf(r->ui->arena, "%s/kernel.cu", r->dir));
    json_set(j, "outcome", json_copy(b->record));
    return j;
}

static void print_times(const struct run *r) {
    struct arena *a = r->ui->arena;
    const struct search_best *b = &r->best;
    double limit = r->briefing.roofline.limit_s;
    str time = ui_time(a, b->time_s), naive = ui_time(a, b->naive_s), lim = ui_time(a, limit);
    str bound = {0}, scope = {0};
    json_get_str(b->record, "bound", &bound);
    json_get_str(b->record, "scope", &scope);
    printf("  %s  %.*s on %s, %.*s-bound\n", is_estimate(r) ? "estimated" : "measured ",
           STR_ARG(time), r->eo.device.gpu->title, STR_ARG(bound));
    if (isfinite(b->naive_s))
        printf("  naive      %.*s%s: %.2fx\n", STR_ARG(naive), is_estimate(r) ? " estimated" : "",
               b->naive_s / b->time_s);
    printf("  limit      %.*s: %.0f%% of it reached\n", STR_ARG(lim), 100 * limit / b->time_s);
    printf("  strategy   %.*s\n", STR_ARG(strategy_of(r)));
    printf("  verified   %.*s\n", STR_ARG(scope));
    if (is_estimate(r))
        printf("Times are the simulator's estimates%s, not measurements.\n",
               r->eo.device.gpu->calibrated ? "" : " from a model not yet calibrated on hardware");
}

static void print_summary(const struct run *r) {
    const struct search_best *b = &r->best;
    printf("%.*s: %zu candidates (%zu from the archive), stopped: %s\n", STR_ARG(r->task->name),
           b->evaluated, b->replayed, b->stopped);
    if (!b->found) {
        printf("no kernel was accepted; %s/events.jsonl says why\n", r->dir);
        return;
    }
    printf("  kernel     %s/kernel.cu\n  evidence   %s/outcome.json\n", r->dir, r->dir);
    print_times(r);
}

static int finish(struct run *r, struct err *err) {
    if (!write_results(r, err))
        return ui_fail(r->ui, err);
    int code = r->best.found ? 0 : 1;
    if (r->ui->as_json)
        return ui_print_json(result_json(r)) ? code : 3;
    print_summary(r);
    return code;
}

int cmd_optimize(struct ui *ui) {
    struct run r = {.ui = ui};
    struct err err = {0};
    bool ok = ui_load_task(ui, 0, &r.task, &r.inst, &err) &&
              ui_evaluator_options(ui, r.task, r.inst, &r.eo, &err) && describe(&r, &err) &&
              open_folder(&r, &err) && search(&r, &err);
    int code = ok ? finish(&r, &err) : ui_fail(ui, &err);
    json_free(r.best.record);
    archive_close(r.archive);
    if (r.agent.release)
        r.agent.release(r.agent.self);
    return code;
}
