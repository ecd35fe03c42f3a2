/* The search on one task, with its folder. */
#include "ui/optimize_run.h"
#include "base/file.h"
#include "base/hash.h"

#include <signal.h>
#include <stdio.h>

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

static bool describe(struct optimize *r, struct err *err) {
    const char *assets = option_text(r->ui->options, "assets");
    if (!catalogue_load(assets, r->ui->arena, &r->catalogue, err) ||
        !expert_new(assets, &r->agent, err))
        return false;
    r->eo.assets = assets;
    r->eo.duel = true;
    if (!briefing_make(r->inst, r->catalogue, r->eo.device.gpu, &r->briefing, err))
        return false;
    ui_ask_dialect(r->ui, &r->briefing.ground);
    return true;
}

/* What makes two runs the same one. */
static json *fingerprint(const struct optimize *r) {
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
    json_set_str(j, "dialect", str_view(option_text(o, "dialect")));
    json_set_i64(j, "seed", option_int(o, "seed"));
    json_set_i64(j, "population", option_int(o, "population"));
    return j;
}

static bool open_folder(struct optimize *r, struct err *err) {
    json *print = fingerprint(r);
    if (!r->dir)
        r->dir = arena_printf(r->ui->arena, "runs/%.*s", STR_ARG(r->task->name)).p;
    bool ok = archive_open(r->dir, print, option_bool(r->ui->options, "fresh"), &r->archive, err);
    json_free(print);
    return ok;
}

static bool search(struct optimize *r, struct err *err) {
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

static bool write_results(struct optimize *r, struct err *err) {
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

str optimize_strategy(const struct optimize *r) {
    struct buf b;
    buf_init(&b, 1 << 16);
    strategy_text(r->catalogue, &r->best.strategy, &b);
    str s = arena_str(r->ui->arena, buf_str(&b));
    buf_release(&b);
    return s;
}

bool optimize_interrupted(void) {
    return interrupted;
}

bool optimize_run(struct optimize *r, struct err *err) {
    return ui_load_task_file(r->ui, r->path, &r->task, &r->inst, err) &&
           ui_evaluator_options(r->ui, r->task, r->inst, &r->eo, err) && describe(r, err) &&
           open_folder(r, err) && search(r, err) && write_results(r, err);
}

void optimize_release(struct optimize *r) {
    json_free(r->best.record);
    archive_close(r->archive);
    if (r->agent.release)
        r->agent.release(r->agent.self);
}
