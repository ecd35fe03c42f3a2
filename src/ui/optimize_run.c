/* The search on one task, with its folder. */
#include "ui/optimize_run.h"
#include "archive/history.h"
#include "base/file.h"
#include "base/hash.h"
#include "search/archived.h"
#include "search/search.h"
#include "ui/bench_run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SCREEN_MS 250 /* of timing, until a candidate comes near the fastest */

/* The signal handler's only word; the search looks at it between events. */
static volatile sig_atomic_t interrupted;

static void on_signal(int sig) {
    (void)sig;
    interrupted = 1;
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
        !agents_read(&r->agents, r->ui, err))
        return false;
    r->eo.assets = assets;
    r->eo.duel = true;
    r->eo.screen_ms = SCREEN_MS < r->eo.time_ms ? SCREEN_MS : r->eo.time_ms;
    if (!briefing_make(r->inst, r->catalogue, r->eo.device.gpu, &r->briefing, err))
        return false;
    ui_ask_dialect(r->ui, &r->briefing.ground);
    agents_ask_dialect(r->ui, &r->eo, &r->briefing);
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
    json_set_str(j, "name", r->task->name);
    json_set_str(j, "task", str_view(hex));
    json_set_str(j, "shape", inst_label(r->inst, r->ui->arena));
    json_set_str(j, "device", str_view(r->eo.device.text));
    json_set_str(j, "nvrtc", str_view(nvrtc));
    json_set_str(j, "dialect", str_view(option_text(o, "dialect")));
    agents_fingerprint(&r->agents, r->ui, &r->eo, j);
    json_set_i64(j, "seed", option_int(o, "seed"));
    json_set_i64(j, "population", option_int(o, "population"));
    json_set_str(j, "search", str_view(option_text(o, "search")));
    json_set_str(j, "roofline", str_view(option_text(o, "roofline")));
    json_set_str(j, "history", str_view(option_text(o, "history")));
    return j;
}

static bool open_folder(struct optimize *r, struct err *err) {
    json *print = fingerprint(r);
    if (!r->dir)
        r->dir = arena_printf(r->ui->arena, "runs/%.*s", STR_ARG(r->task->name)).p;
    bool ok = archive_open(r->dir, print, option_bool(r->ui->options, "fresh"), &r->archive, err);
    json_free(print);
    return ok && archive_note(r->archive, "task", r->task->text, err);
}

static enum search_method method_of(const char *name) {
    return !strcmp(name, "random") ? SEARCH_RANDOM
           : !strcmp(name, "once") ? SEARCH_ONCE
                                   : SEARCH_EVOLVE;
}

/* NULL: no history. */
static const char *pool_of(const struct optimize *r) {
    const char *given = option_text(r->ui->options, "pool");
    if (!strcmp(option_text(r->ui->options, "history"), "off"))
        return NULL;
    if (given)
        return given;
    str usual = history_path(r->ui->arena);
    return usual.n ? usual.p : NULL;
}

static bool search_with(struct optimize *r, struct loop *l, struct err *err) {
    const struct options *o = r->ui->options;
    bool to_the_end = !strcmp(option_text(o, "stop"), "budget");
    struct search_options so = {
        .briefing = &r->briefing,
        .agent = r->agents.chosen,
        .archive = r->archive,
        .budget = option_budget(o, "budget"),
        .seed = (uint64_t)option_int(o, "seed"),
        .method = method_of(option_text(o, "search")),
        .blind = !strcmp(option_text(o, "roofline"), "off"),
        .facts = r->agents.refine_options.profiling != PROFILING_NEVER,
        .pool = pool_of(r),
        .assets = option_text(o, "assets"),
        .population = (size_t)option_int(o, "population"),
        .plateau = to_the_end ? SIZE_MAX : 0,
        .stop_share = to_the_end ? INFINITY : 0,
        .interrupted = &interrupted,
        .emit = progress_event,
        .emit_ctx = &r->progress,
    };
    if (r->agents.refine)
        return search_refine(l, &so, &r->agents.refine_options, &r->eo, r->ui->arena, &r->best,
                             err);
    if (r->agents.chosen->debug)
        return search_generations(l, &so, &r->eo, r->ui->arena, &r->best, err);
    return search_evolve(l, &so, &r->eo, r->ui->arena, &r->best, err);
}

/* What a provider has to say comes between the events of the search. */
static void on_notice(void *ctx, str text) {
    struct event e = {.kind = EVENT_NOTE,
                      .time_s = INFINITY,
                      .best_s = INFINITY,
                      .limit_s = INFINITY,
                      .naive_s = INFINITY,
                      .text = text};
    progress_event(ctx, &e);
}

/* The account is of this command; a run may have had others before it. */
static void add_spent(struct optimize *r) {
    struct err ignored;
    json *run = r->account ? archived_spent(r->archive, &ignored) : NULL;
    if (run)
        json_set(r->account, "run", run);
}

static bool search_in_folder(struct optimize *r, struct loop *l, struct err *err) {
    if (!open_folder(r, err))
        return false;
    catch_signals();
    progress_log_to(&r->progress, arena_printf(r->ui->arena, "%s/events.jsonl", r->dir).p);
    struct agents_ground g = {&r->briefing, &r->eo, r->archive};
    bool ok = agents_open(&r->agents, r->ui, &g, err) && search_with(r, l, err);
    r->account = agents_account(&r->agents);
    add_spent(r);
    return ok;
}

/* Agents live on the loop, so they go before it. A provider may have something to say before there
 * is a folder to log it in. */
static bool search(struct optimize *r, struct err *err) {
    struct loop *l = loop_new(err);
    progress_init(&r->progress, option_text(r->ui->options, "progress"));
    bool ok = l && agents_connect(&r->agents, r->ui, l, on_notice, &r->progress, err) &&
              search_in_folder(r, l, err);
    agents_release(&r->agents);
    loop_free(l);
    progress_release(&r->progress);
    return ok;
}

static bool write_results(struct optimize *r, struct err *err) {
    struct buf b;
    if (!r->best.found)
        return true;
    buf_init(&b, 64u << 20);
    json *j = record_to_json(r->best.record);
    json_write_pretty(j, &b);
    json_free(j);
    buf_putc(&b, '\n');
    bool ok =
        file_replace(arena_printf(r->ui->arena, "%s/kernel.cu", r->dir).p, r->best.source, err) &&
        file_replace(arena_printf(r->ui->arena, "%s/outcome.json", r->dir).p, buf_str(&b), err);
    buf_release(&b);
    if (!ok)
        err->kind = ERR_ENV; /* the folder was there: it went away meanwhile */
    return ok;
}

str optimize_nothing(const struct optimize *r) {
    if (!r->best.evaluated)
        return arena_printf(r->ui->arena, "no kernel was evaluated by then");
    return arena_printf(r->ui->arena, "no kernel was accepted; 'cutepilot log %s' says why",
                        r->dir);
}

str optimize_strategy(const struct optimize *r) {
    return strategy_as_text(r->catalogue, &r->best.strategy, r->ui->arena);
}

void optimize_baseline(struct optimize *r, const char *usual) {
    const struct options *o = r->ui->options;
    bool asked = option_given(o, "baseline") || r->eo.device.kind == DEVICE_SIM;
    struct bench_kernel kernel = {.file = S("kernel.cu"), .source = r->best.source};
    struct bench b = {.eo = r->eo,
                      .kernels = &kernel,
                      .nkernels = 1,
                      .baseline = bench_baseline_of(asked ? option_text(o, "baseline") : usual),
                      .python = option_text(o, "python"),
                      .assets = option_text(o, "assets")};
    struct err err = {0};
    if (b.baseline < BASELINE_TORCH || !r->best.found || interrupted)
        return;
    if (bench_run(&b, r->ui->arena, &err) && b.baseline_s > 0) {
        r->baseline_s = b.baseline_s;
        r->against_s = kernel.verdict == VERDICT_ACCEPTED ? kernel.time_s : r->best.time_s;
    } else {
        r->no_baseline =
            arena_str(r->ui->arena, str_view(err.kind ? err.text : b.no_baseline.text));
    }
    bench_release(&b);
}

bool optimize_interrupted(void) {
    return interrupted;
}

bool optimize_run(struct optimize *r, struct err *err) {
    return ui_load_task_file(r->ui, r->path, &r->task, &r->inst, err) &&
           ui_evaluator_options(r->ui, r->task, r->inst, &r->eo, err) && describe(r, err) &&
           search(r, err) && write_results(r, err);
}

void optimize_release(struct optimize *r) {
    record_free(r->best.record);
    json_free(r->account);
    archive_close(r->archive);
}
