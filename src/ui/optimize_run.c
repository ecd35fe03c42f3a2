/* The search on one task, with its folder. */
#include "ui/optimize_run.h"
#include "archive/history.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/say.h"
#include "kernel/includes.h"
#include "search/archived.h"
#include "search/search.h"
#include "ui/bench_run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCREEN_MS 250 /* of timing, until a candidate comes near the fastest */

/* The signal handler's only words; the search looks at them between events. The first signal ends
 * the search, a second one the verification of what it found. */
static volatile sig_atomic_t interrupted, hurry;

static void on_signal(int sig) {
    (void)sig;
    hurry = interrupted;
    interrupted = 1;
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
    /* A GPU's type, not its number: the run may go on at another one of that type. */
    bool sim = r->eo.device.kind == DEVICE_SIM;
    json_set_str(j, "device", str_view(sim ? r->eo.device.text : r->eo.device.gpu->title));
    json_set_str(j, "nvrtc", str_view(nvrtc));
    json_set_str(j, "dialect", str_view(option_text(o, "dialect")));
    agents_fingerprint(&r->agents, r->ui, &r->eo, j);
    json_set_i64(j, "seed", option_int(o, "seed"));
    json_set_i64(j, "population", option_int(o, "population"));
    json_set_str(j, "search", str_view(option_text(o, "search")));
    json_set_str(j, "roofline", str_view(option_text(o, "roofline")));
    json_set_str(j, "history", str_view(option_text(o, "history")));
    if (r->eo.must_admit) /* runs from before there was such an option go on */
        json_set_bool(j, "must_admit", true);
    return j;
}

/* The facts of the GPU as they were then: whoever reads the run has its limits. */
static bool note_gpu(const struct optimize *r, struct err *err) {
    struct buf text;
    buf_init(&text, GPU_FILE_BYTES);
    gpu_text(r->eo.device.gpu, &text);
    bool ok = archive_note(r->archive, "gpu", buf_str(&text), err);
    buf_release(&text);
    return ok;
}

static bool open_folder(struct optimize *r, struct err *err) {
    json *print = fingerprint(r);
    if (!r->dir)
        r->dir = arena_printf(r->ui->arena, "runs/%.*s", STR_ARG(r->task->name)).p;
    bool ok = archive_open(r->dir, print, option_bool(r->ui->options, "fresh"), &r->archive, err);
    json_free(print);
    const char *seed = option_text(r->ui->options, "verify-seed");
    return ok && archive_note(r->archive, "task", r->task->text, err) && note_gpu(r, err) &&
           archive_note(r->archive, "verify-seed", str_view(seed ? seed : ""), err);
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

/* The evidence is of the file: the source, and above it the lines for nvcc, which are no part of
 * what was compiled. */
static void put_hash(json *record, str file) {
    char hex[65];
    digest_hex(sha256_of(file), hex);
    json_set_str(record, "source_sha256", str_view(hex));
    if (!json_get(record, "confirmed"))
        return;
    json *confirmed = json_copy(json_get(record, "confirmed"));
    json_set_str(confirmed, "source_sha256", str_view(hex));
    json_set(record, "confirmed", confirmed);
}

/* kernel.cu, then the evidence, which names its hash. */
static bool write_kernel(const struct optimize *r, const char *dir, str source, json *record,
                         struct err *err) {
    struct arena *a = r->ui->arena;
    struct buf b;
    source = includes_file(source, a);
    put_hash(record, source);
    buf_init(&b, 64u << 20);
    json_write_pretty(record, &b);
    buf_putc(&b, '\n');
    bool ok = file_replace(arena_printf(a, "%s/kernel.cu", dir).p, source, err) &&
              file_replace(arena_printf(a, "%s/outcome.json", dir).p, buf_str(&b), err);
    buf_release(&b);
    if (!ok)
        err->kind = ERR_ENV; /* the folder was there: it went away meanwhile */
    return ok;
}

/* The best so far is in the folder, whatever becomes of this process. What fails here fails again
 * at the end, and is told then. */
static void keep_best(void *ctx, str source, const struct record *record) {
    const struct optimize *r = ctx;
    struct err ignored;
    json *j = record_to_json(record);
    json_set_str(j, "unconfirmed_why", S("the run has not come to its end"));
    write_kernel(r, r->dir, source, j, &ignored);
    json_free(j);
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
        .window = (size_t)option_int(o, "window"),
        .plateau = to_the_end ? SIZE_MAX : 0,
        .stop_share = to_the_end ? INFINITY : 0,
        .interrupted = &interrupted,
        .hurry = &hurry,
        .keep_best = keep_best,
        .keep_ctx = r,
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
    ui_catch_signals(on_signal);
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
    bool quiet = option_bool(r->ui->options, "quiet");
    progress_init(&r->progress, quiet ? "none" : option_text(r->ui->options, "progress"));
    r->progress.suite = r->suite;
    r->progress.estimated = r->eo.device.kind == DEVICE_SIM;
    snprintf(r->progress.title, sizeof r->progress.title, "%.*s on %s%s", STR_ARG(r->task->name),
             r->eo.device.gpu->title, r->eo.device.kind == DEVICE_SIM ? ", simulated" : "");
    bool ok = l && agents_connect(&r->agents, r->ui, l, on_notice, &r->progress, err) &&
              search_in_folder(r, l, err);
    agents_release(&r->agents);
    loop_free(l);
    progress_release(&r->progress);
    return ok;
}

/* What a run that was killed left: an accepted kernel that is faster than the winner and that the
 * archive knows nothing of, because it was killed between the two. The same command comes to it
 * when it goes on; one that was stopped before that does not take it away. */
static bool left_faster(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    struct err ignored = {0};
    str text, source, known = S("");
    char key[64], hex[65];
    if (strcmp(r->best.stopped, "interrupted") != 0 && strcmp(r->best.stopped, "failed") != 0)
        return false;
    if (!file_read(arena_printf(a, "%s/outcome.json", r->dir).p, 64u << 20, a, &text, &ignored) ||
        !file_read(arena_printf(a, "%s/kernel.cu", r->dir).p, 64u << 20, a, &source, &ignored))
        return false;
    struct record *left = record_parse(text, &ignored);
    digest_hex(sha256_of(source), hex);
    snprintf(key, sizeof key, "confirmed_%llu", (unsigned long long)(left ? left->ordinal : 0));
    bool faster = left && left->accepted && left->has_time_s && str_is(left->source_sha256, hex) &&
                  (!r->best.found || left->time_s < r->best.time_s) &&
                  archive_get_note(r->archive, key, a, &known, &ignored) && !known.n &&
                  !archive_has(r->archive, left->ordinal);
    record_free(left);
    return faster;
}

/* Where the folder cannot be written any more (a disk that is full, a folder that is gone): a fresh
 * one for temporary files. */
static void rescue(struct optimize *r, json *record) {
    struct arena *a = r->ui->arena;
    struct err ignored = {0};
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_cstr(a, arena_printf(a, "%s/cutepilot-%.*s-XXXXXX",
                                           tmp && *tmp ? tmp : "/tmp", STR_ARG(r->task->name)));
    if (mkdtemp(dir) && write_kernel(r, dir, r->best.source, record, &ignored))
        r->rescued = dir;
}

/* The run's failure, whatever else failed: its folder lacks the result. */
static void note_unwritten(struct optimize *r, const struct err *why) {
    r->best.failure = r->rescued
                          ? arena_printf(r->ui->arena, "%s; the kernel and its evidence are in %s",
                                         why->text, r->rescued)
                          : arena_printf(r->ui->arena, "%s; the kernel is nowhere but in %s/run.db",
                                         why->text, r->dir);
}

/* Without a winner nothing stays: what was kept on the way did not hold in the end. */
static void write_results(struct optimize *r) {
    struct arena *a = r->ui->arena;
    struct err err = {0};
    if (left_faster(r)) {
        complain("cutepilot: %s/kernel.cu stays: the command that was killed before had found it, "
                 "and this one ended before it came to it\n",
                 r->dir);
        return;
    }
    if (!r->best.found) {
        unlink(arena_printf(a, "%s/kernel.cu", r->dir).p);
        unlink(arena_printf(a, "%s/outcome.json", r->dir).p);
        return;
    }
    json *j = record_to_json(r->best.record);
    if (!write_kernel(r, r->dir, r->best.source, j, &err)) {
        rescue(r, j);
        note_unwritten(r, &err);
    }
    json_free(j);
}

/* A budget with room for several candidates that take this long, in round numbers. */
static unsigned long enough_s(double one_s) {
    unsigned long s = 10;
    while ((double)s < 4 * one_s)
        s *= 2;
    return s;
}

/* "one candidate of this task takes about 12 s here, and the budget was 5 s" */
static str one_takes(const struct optimize *r, const char *about, double one_s) {
    double budget_s = (double)option_budget(r->ui->options, "budget").ms / 1000;
    return arena_printf(r->ui->arena,
                        "one candidate of this task takes %s %.*f s here, and the budget was %g s; "
                        "try --budget %lus",
                        about, one_s < 10, one_s, budget_s, enough_s(one_s));
}

/* A budget that would go on where this one was used up at once. */
static str used_up(const struct optimize *r) {
    double budget_s = (double)option_budget(r->ui->options, "budget").ms / 1000;
    double had_s = fmax(r->best.had_s, budget_s);
    unsigned long more = enough_s(had_s / 2); /* twice as much, in round numbers */
    return arena_printf(r->ui->arena,
                        "%g s are used up: this run has had %.*f s so far; --budget %lus goes on",
                        budget_s, had_s < 10, had_s, more);
}

str optimize_short(const struct optimize *r) {
    const struct search_best *b = &r->best;
    uint64_t budget_ms = option_budget(r->ui->options, "budget").ms;
    bool out_of_time = budget_ms && !strcmp(b->stopped, "budget");
    if (out_of_time && !b->evaluated && b->waited_s > 0)
        return one_takes(r, "more than", b->waited_s);
    if (out_of_time && b->first_s * 1000 > (double)budget_ms)
        return one_takes(r, "about", b->first_s);
    if (out_of_time && b->evaluated && b->evaluated == b->replayed)
        return used_up(r);
    return S("");
}

str optimize_nothing(const struct optimize *r) {
    struct arena *a = r->ui->arena;
    str brief = optimize_short(r), log = ui_command(r->ui, "log", r->dir);
    if (!r->best.evaluated)
        return arena_printf(a, "no kernel was evaluated%s%.*s", brief.n ? ": " : " by then",
                            STR_ARG(brief));
    return arena_printf(a, "no kernel was accepted; '%.*s' says why%s%.*s", STR_ARG(log),
                        brief.n ? "; " : "", STR_ARG(brief));
}

int optimize_code(const struct optimize *r) {
    if (r->best.failure.n)
        return 3;
    if (interrupted)
        return 4;
    return r->best.found && !r->rejected ? 0 : 1;
}

str optimize_strategy(const struct optimize *r) {
    return strategy_as_text(r->catalogue, &r->best.strategy, r->ui->arena);
}

/* For whoever reads the run; the command has it anyway, so failing to write it stops nothing. */
static void note_baseline(const struct optimize *r) {
    struct err ignored;
    str text = arena_printf(r->ui->arena, "{\"baseline_s\":%.9g,\"time_s\":%.9g}", r->baseline_s,
                            r->against_s);
    archive_note(r->archive, "baseline", text, &ignored);
}

/* What is timed against PyTorch is verified once more. A kernel that is rejected then is labelled
 * in the run's folder, and the same command again takes the next one. */
static void take_rejection(struct optimize *r, const struct bench_kernel *k) {
    struct record *own = r->best.record;
    struct err err = {0};
    r->rejected = k->verdict != VERDICT_UNJUDGED;
    r->no_baseline = arena_printf(r->ui->arena, "the kernel was verified once more and is %s: %.*s",
                                  verdict_name(k->verdict), STR_ARG(k->record->why));
    if (!r->rejected)
        return;
    own->unconfirmed_why = arena_str(own->mem, r->no_baseline);
    if (!search_refuse(r->archive, r->best.ordinal, k->record, &err))
        complain("cutepilot: %s\n", err.text);
    write_results(r);
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
    bool ran = bench_run(&b, r->ui->arena, &err);
    if (ran && kernel.record && kernel.verdict != VERDICT_ACCEPTED) {
        take_rejection(r, &kernel);
    } else if (ran && b.baseline_s > 0) {
        r->baseline_s = b.baseline_s;
        r->against_s = isfinite(kernel.time_s) ? kernel.time_s : r->best.time_s;
        note_baseline(r);
    } else {
        r->no_baseline =
            arena_str(r->ui->arena, str_view(err.kind ? err.text : b.no_baseline.text));
    }
    bench_release(&b);
}

bool optimize_interrupted(void) {
    return interrupted;
}

/* The note is an event, which somebody who asked for no progress has not seen. */
static void say_unremembered(struct optimize *r) {
    const struct options *o = r->ui->options;
    bool seen = r->best.unremembered.n > 0 && !option_bool(o, "quiet") &&
                strcmp(option_text(o, "progress"), "none") != 0;
    if (r->best.found && !pool_of(r) && strcmp(option_text(o, "history"), "off") != 0)
        r->best.unremembered = S("not added to the history: neither HOME nor XDG_DATA_HOME says "
                                 "where it is; --pool names a file");
    if (r->best.unremembered.n && !seen)
        complain("cutepilot: %.*s\n", STR_ARG(r->best.unremembered));
}

bool optimize_run(struct optimize *r, struct err *err) {
    return ui_load_task_file(r->ui, r->path, &r->task, &r->inst, err) &&
           ui_evaluator_options(r->ui, r->task, r->inst, &r->eo, err) && describe(r, err) &&
           search(r, err) && (write_results(r), say_unremembered(r), true);
}

bool optimize_may_use(struct optimize *r, struct err *err) {
    struct err ignored;
    if (option_bool(r->ui->options, "fresh") ||
        !file_exists(arena_printf(r->ui->arena, "%s/run.db", r->dir).p) ||
        !ui_load_task_file(r->ui, r->path, &r->task, &r->inst, &ignored) ||
        !ui_evaluator_options(r->ui, r->task, r->inst, &r->eo, &ignored) ||
        !agents_read(&r->agents, r->ui, &ignored))
        return true;
    json *print = fingerprint(r);
    bool same = archive_matches(r->dir, print, err);
    json_free(print);
    return same;
}

void optimize_release(struct optimize *r) {
    record_free(r->best.record);
    json_free(r->account);
    archive_close(r->archive);
}
