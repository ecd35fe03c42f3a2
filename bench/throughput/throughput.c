/* How many candidates a minute: source in, verified and timed outcome out, through the evaluator
 * that `optimize` uses, with as many under way as it takes.
 *
 *     throughput --device cuda --size smoke --seconds 60
 *     throughput --device cuda --size full
 *     throughput --device sim --size tiny --seconds 5
 *
 * Each task gets its share of the time. Its clock starts when the first candidate has come back
 * (compilers, workers and contexts are up; that start is stated apart) and stops with the last
 * outcome. Builds are not cached. Every candidate is honest: one that is not accepted is a failure
 * of this program or of the evaluator, named, and exit code 1. The evaluator starts this very file
 * as its compilers and workers, so any other first word is handed to the command line. */
#include "base/loop.h"
#include "candidates.h"
#include "eval/eval.h"
#include "ui/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_MAX (1u << 20)

extern char **environ;

/* Settable dimensions by size; full is the task's own. */
static const struct work_row {
    const char *file, *tiny, *smoke;
} works[] = {
    {"tasks/kernelbench/level1/019_relu.task", "B=16 D=257", "B=1024 D=4096"},
    {"tasks/kernelbench/level1/026_gelu.task", "B=16 D=257", "B=1024 D=4096"},
    {"tasks/kernelbench/level1/047_sum_reduction.task", "B=4 M=64 N=63", "B=16 M=256 N=1024"},
    {"tasks/kernelbench/level1/049_max_reduction.task", "B=4 M=64 N=63", "B=16 M=256 N=1024"},
};
enum { WORKS = sizeof works / sizeof *works };

static const struct option_def defs[] = {
    {"device", 'd', OPTION_TEXT, "NAME", "auto", NULL, 0, 0, "As for cutepilot verify.", 1},
    {"size", 's', OPTION_CHOICE, "SIZE", "smoke", "tiny|smoke|full", 0, 0,
     "Shapes: tiny for the simulator, smoke, or the tasks' own.", 1},
    {"seconds", 0, OPTION_INT, "N", "60", NULL, 1, 3600, "Time for all tasks together.", 1},
    {"tasks", 0, OPTION_PATH, "DIR", ".", NULL, 0, 0, "The folder that holds tasks/.", 1},
    {"workers", 'w', OPTION_INT, "N", "0", NULL, 0, 256, "As for cutepilot.", 1},
    {"compile-jobs", 0, OPTION_INT, "N", "0", NULL, 0, 256, "As for cutepilot.", 1},
    {"compile-limit", 0, OPTION_INT, "SECONDS", "30", NULL, 1, 3600, "As for cutepilot.", 1},
    {"run-limit", 0, OPTION_INT, "SECONDS", "20", NULL, 1, 3600, "As for cutepilot.", 1},
    {"time-limit", 0, OPTION_INT, "MS", "2000", NULL, 1, 600000, "As for cutepilot.", 1},
    {"cache", 0, OPTION_PATH, "DIR", NULL, NULL, 0, 0, "Of ceilings; builds are not cached.", 1},
    {"verify-seed", 0, OPTION_TEXT, "N", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"worker-command", 0, OPTION_LIST, "COMMAND", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"place", 0, OPTION_LIST, "DEVICE[=COMMAND]", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"hello-limit", 0, OPTION_INT, "SECONDS", "120", NULL, 1, 86400, "As for cutepilot.", 1},
    {"must-admit", 0, OPTION_BOOL, NULL, "no", NULL, 0, 0, "As for cutepilot.", 1},
    {"json", 0, OPTION_BOOL, NULL, "no", NULL, 0, 0, "Print one JSON object on stdout.", 1},
};
static const struct option_command commands[] = {{"", "", "count candidates a minute", NULL, 0, 0}};
static const struct option_set set = {
    .program = "throughput",
    .version = CUTEPILOT_VERSION,
    .tagline = "candidates a minute, from source to verified and timed outcome",
    .defs = defs,
    .ndefs = sizeof defs / sizeof *defs,
    .commands = commands,
    .ncommands = 1,
};

/* ---- one task ---- */

static const char *const stages[] = {"build_ms", "queue_ms", "verify_ms", "time_ms"};
enum { STAGES = sizeof stages / sizeof *stages };

struct tally {
    uint64_t submitted, done, accepted;
    double start_s, seconds;
    double sum_ms[STAGES];
    bool known[STAGES];
    char wrong[1024]; /* the first that was not accepted */
};

struct run {
    struct ui *ui;
    const struct work_row *work;
    struct candidates candidates;
    struct evaluator *evaluator;
    struct tally t;
    struct err broken;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct run *r = ctx;
    const struct record *k = o->record;
    const struct {
        bool known;
        double ms;
    } took[STAGES] = {{k->has_build_ms, k->build_ms},
                      {k->has_queue_ms, k->queue_ms},
                      {k->has_verify_ms, k->verify_ms},
                      {k->has_time_ms, k->time_ms}};
    r->t.done++;
    for (size_t i = 0; i < STAGES; i++) {
        r->t.sum_ms[i] += took[i].ms;
        r->t.known[i] |= took[i].known;
    }
    if (o->verdict == VERDICT_ACCEPTED)
        r->t.accepted++;
    else if (!*r->t.wrong)
        snprintf(r->t.wrong, sizeof r->t.wrong, "candidate %llu is %s: %s", (unsigned long long)id,
                 verdict_name(o->verdict), o->why);
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct run *r = ctx;
    r->broken = *why;
}

static bool submit_next(struct run *r, struct err *err) {
    struct buf source;
    buf_init(&source, SOURCE_MAX);
    uint64_t n = r->t.submitted++;
    bool ok = candidates_write(&r->candidates, n, &source, err);
    if (ok)
        evaluator_submit(r->evaluator, n, S("candidate.cu"), buf_str(&source));
    buf_release(&source);
    return ok;
}

static bool step(struct run *r, struct loop *l, struct err *err) {
    if (!loop_step(l, -1, err))
        return false;
    if (r->broken.kind)
        *err = r->broken;
    return !r->broken.kind;
}

static bool drive(struct run *r, struct loop *l, double seconds, struct err *err) {
    uint64_t begin = clock_us();
    bool ok = submit_next(r, err);
    while (ok && r->t.done < 1)
        ok = step(r, l, err);
    r->t.start_s = (double)(clock_us() - begin) / 1e6;
    r->t = (struct tally){
        .start_s = r->t.start_s, .submitted = 1, .done = 1, .accepted = r->t.accepted};
    begin = clock_us();
    uint64_t end = begin + (uint64_t)(seconds * 1e6);
    while (ok && (clock_us() < end || r->t.done < r->t.submitted)) {
        while (ok && clock_us() < end &&
               r->t.submitted - r->t.done < evaluator_capacity(r->evaluator))
            ok = submit_next(r, err);
        if (ok && r->t.done < r->t.submitted)
            ok = step(r, l, err);
    }
    r->t.seconds = (double)(clock_us() - begin) / 1e6;
    return ok;
}

/* "B=16 D=257" */
static struct binding *bindings_of(struct arena *a, const char *text, size_t *n) {
    struct binding *b = arena_array(a, struct binding, 16);
    str rest = str_view(text), word;
    *n = 0;
    while (*n < 16 && str_word(&rest, ' ', &word)) {
        size_t eq = str_find(word, S("="));
        b[*n].name = str_cut(word, 0, eq);
        if (str_to_i64(str_from(word, eq + 1), &b[*n].value))
            ++*n;
    }
    return b;
}

static bool run_task(struct run *r, double seconds, struct err *err) {
    struct arena *a = r->ui->arena;
    const char *size = option_text(r->ui->options, "size");
    const char *dims = !strcmp(size, "tiny")    ? r->work->tiny
                       : !strcmp(size, "smoke") ? r->work->smoke
                                                : "";
    const char *path =
        arena_printf(a, "%s/%s", option_text(r->ui->options, "tasks"), r->work->file).p;
    struct evaluator_options eo;
    struct task *task;
    struct inst *inst;
    size_t n;
    struct binding *b = bindings_of(a, dims, &n);
    if (!task_load(path, a, &task, err) || !task_bind(task, b, n, a, &inst, err) ||
        !ui_evaluator_options(r->ui, task, inst, &eo, err) ||
        !candidates_open(&r->candidates, inst, eo.device.gpu, a, err))
        return false;
    eo.cache = NULL;
    struct loop *l = loop_new(err);
    r->evaluator = l ? evaluator_new(l, &eo, on_done, on_broken, r, err) : NULL;
    bool ok = r->evaluator && drive(r, l, seconds, err);
    evaluator_free(r->evaluator);
    loop_free(l);
    candidates_close(&r->candidates);
    return ok;
}

/* ---- what is said of it ---- */

/* The candidate that started everything up is not counted. */
static double per_minute(const struct tally *t) {
    return t->seconds > 0 ? 60 * (double)(t->done - 1) / t->seconds : 0;
}

static double mean_ms(const struct tally *t, size_t stage) {
    return t->done > 1 ? t->sum_ms[stage] / (double)(t->done - 1) : 0;
}

static json *task_json(const struct run *r) {
    json *j = json_object();
    json_set_str(j, "task", str_view(r->work->file));
    json_set_i64(j, "candidates", (int64_t)r->t.done);
    json_set_i64(j, "accepted", (int64_t)r->t.accepted);
    json_set_f64(j, "per_minute", per_minute(&r->t));
    json_set_f64(j, "start_s", r->t.start_s);
    json_set_f64(j, "seconds", r->t.seconds);
    for (size_t i = 0; i < STAGES; i++)
        if (r->t.known[i])
            json_set_f64(j, stages[i], mean_ms(&r->t, i));
    if (*r->t.wrong)
        json_set_str(j, "wrong", str_view(r->t.wrong));
    return j;
}

static void print_task(const struct run *r) {
    str name = str_view(strrchr(r->work->file, '/') + 1);
    printf("%-28.*s %8llu %8llu %9.0f %8.2f", STR_ARG(name), (unsigned long long)r->t.done,
           (unsigned long long)r->t.accepted, per_minute(&r->t), r->t.start_s);
    for (size_t i = 0; i < STAGES; i++)
        if (r->t.known[i])
            printf(" %9.1f", mean_ms(&r->t, i));
        else
            printf(" %9s", "-");
    printf("\n");
    if (*r->t.wrong)
        printf("  %s\n", r->t.wrong);
    fflush(stdout);
}

static void print_head(const struct ui *ui) {
    printf("device %s, size %s; mean milliseconds of a candidate in each stage, which overlap\n",
           option_text(ui->options, "device"), option_text(ui->options, "size"));
    printf("%-28s %8s %8s %9s %8s", "task", "done", "accepted", "a minute", "start s");
    for (size_t i = 0; i < STAGES; i++)
        printf(" %9s", stages[i]);
    printf("\n");
}

static int run_all(struct ui *ui) {
    double each = (double)option_int(ui->options, "seconds") / WORKS, seconds = 0, done = 0;
    json *tasks = json_array();
    bool right = true;
    if (!ui->as_json)
        print_head(ui);
    for (size_t i = 0; i < WORKS; i++) {
        struct run r = {.ui = ui, .work = &works[i]};
        struct err err = {0};
        if (!run_task(&r, each, &err)) {
            json_free(tasks);
            return ui_fail(ui, &err);
        }
        right &= r.t.accepted == r.t.done;
        seconds += r.t.seconds;
        done += (double)(r.t.done - 1);
        json_push(tasks, task_json(&r));
        if (!ui->as_json)
            print_task(&r);
    }
    json *j = json_object();
    json_set_str(j, "device", str_view(option_text(ui->options, "device")));
    json_set_str(j, "size", str_view(option_text(ui->options, "size")));
    json_set(j, "tasks", tasks);
    json_set_f64(j, "per_minute", seconds > 0 ? 60 * done / seconds : 0);
    if (ui->as_json)
        return ui_print_json(j) && right ? 0 : 1;
    printf("all: %.0f a minute\n", seconds > 0 ? 60 * done / seconds : 0);
    json_free(j);
    return right ? 0 : 1;
}

static int bench_main(int argc, char **argv) {
    struct ui ui = {.set = &set, .arena = arena_new(1u << 30)};
    struct options *options;
    struct err err = {0};
    int code;
    if (!options_parse(&set, 0, argc - 1, argv + 1, environ, NULL, ui.arena, &options, &err)) {
        code = ui_fail(&ui, &err);
    } else if (options_help_asked(options)) {
        struct buf b;
        buf_init(&b, 1 << 20);
        options_help(&set, 0, &b);
        code = ui_flush(b.p, b.n) ? 0 : 3;
        buf_release(&b);
    } else {
        ui.options = options;
        ui.as_json = option_bool(options, "json");
        code = run_all(&ui);
    }
    arena_free(ui.arena);
    return code;
}

int main(int argc, char **argv) {
    if (argc > 1 && argv[1][0] != '-')
        return ui_main(argc, argv, environ);
    return bench_main(argc, argv);
}
