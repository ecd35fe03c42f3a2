/* suite DIR: every task below a folder, and one table: one after the other, or (fleet.h) each as a
 * process of its own, `suite DIR --only TASK`, over several GPUs. Tasks share nothing but the
 * options; one that fails is a row like the others. Resuming is resuming each task's run. */
#include "base/file.h"
#include "base/parallel.h"
#include "base/say.h"
#include "export/order.h"
#include "ui/fleet.h"
#include "ui/optimize_run.h"
#include "ui/screen.h"
#include "ui/terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
    const char *path;
    str name, strategy, error; /* error: why there is no kernel, or what ended the run early */
    size_t refused;            /* check shapes that its kernel refuses */
    str unconfirmed;           /* why its kernel was not verified a second time; empty: it was */
    enum workload workload;
    bool found, estimated, known; /* known: the task could be read */
    bool calibrated;              /* the model behind an estimate, on hardware */
    str gpu, type;                /* gpu: its name; type: of the places that the fleet chose */
    size_t job;                   /* of the fleet */
    str module;                   /* the folder of the imported module it is a part of; or empty */
    size_t uses;                  /* … and how often that uses it */
    double runs;                  /* … and runs it, with the steps of recurrences */
    size_t evaluated;
    double time_s, limit_s, naive_s, baseline_s; /* 0: not known */
};

struct suite {
    struct ui *ui;
    const char *folder, *out;
    struct row *rows;
    size_t n;
    bool interrupted;
    struct progress_suite at;
};

/* ---- one task ---- */

/* runs/suite/kernelbench/level1/001_x for DIR/kernelbench/level1/001_x.task */
static const char *run_folder(const struct suite *s, const char *path, struct arena *a) {
    str below = str_from(str_view(path), strlen(s->folder));
    while (below.n && below.p[0] == '/')
        below = str_from(below, 1);
    return arena_printf(a, "%s/%.*s", s->out, STR_ARG(str_cut(below, 0, below.n - 5))).p;
}

/* How often an imported module uses the task, where it is one of such. */
static void note_module(const struct suite *s, struct row *row) {
    struct arena *a = s->ui->arena;
    struct order order;
    struct err err = {0};
    str path = str_view(row->path);
    size_t slash = path.n;
    while (slash && path.p[slash - 1] != '/')
        slash--;
    const char *folder = slash ? arena_cstr(a, str_cut(path, 0, slash - 1)) : ".";
    if (!order_exists(folder))
        return;
    if (!order_read(folder, a, &order, &err)) {
        complain("cutepilot: %s\n", err.text);
        return;
    }
    str name = str_from(path, slash);
    const struct order_task *t = order_find(&order, str_cut(name, 0, name.n - 5));
    if (!t)
        return;
    row->module = str_view(folder);
    row->uses = t->uses;
    row->runs = t->runs;
}

/* The winner against PyTorch, blocks of both alternating. */
static void measure_baseline(struct optimize *r, struct row *row) {
    optimize_baseline(r, option_text(r->ui->options, "baseline"));
    row->baseline_s = r->baseline_s;
    row->time_s = r->baseline_s > 0 ? r->against_s : row->time_s;
    if (r->no_baseline.n)
        complain("cutepilot: %.*s: %.*s\n", STR_ARG(row->name), STR_ARG(r->no_baseline));
}

static void fill(const struct suite *s, const struct optimize *r, bool ok, const struct err *err,
                 struct row *row) {
    struct arena *a = s->ui->arena;
    row->known = r->inst != NULL;
    row->name = arena_str(a, r->task ? r->task->name : str_view(row->path));
    row->workload = r->briefing.features.workload;
    row->evaluated = r->best.evaluated;
    row->limit_s = r->briefing.roofline.limit_s;
    if (!ok)
        row->error = arena_str(a, str_view(err->text));
    else if (!r->best.found)
        row->error = arena_str(a, optimize_nothing(r));
    else
        row->found = true;
    if (r->best.failure.n)
        row->error = arena_str(a, r->best.failure);
    if (!row->found)
        return;
    row->strategy = arena_str(a, optimize_strategy(r));
    row->estimated = r->eo.device.kind == DEVICE_SIM;
    row->calibrated = r->eo.device.gpu->calibrated;
    row->gpu = arena_str(a, str_view(r->eo.device.gpu->title));
    row->time_s = r->best.time_s;
    if (isfinite(r->best.naive_s) && agents_expert_first(r->ui))
        row->naive_s = r->best.naive_s;
}

/* The exit code, as optimize has it. */
static int run_task(const struct suite *s, struct row *row) {
    struct ui local = *s->ui;
    struct err err = {0};
    local.arena = arena_new((size_t)2 << 30);
    struct optimize r = {.ui = &local, .path = row->path, .suite = &s->at};
    r.dir = run_folder(s, row->path, local.arena);
    bool ok = dir_make(r.dir, &err) && optimize_run(&r, &err);
    fill(s, &r, ok, &err, row);
    if (row->found && !optimize_interrupted())
        measure_baseline(&r, row);
    if (row->found)
        row->unconfirmed = arena_str(s->ui->arena, r.best.record->unconfirmed_why);
    if (row->found)
        row->refused = r.best.record->nskipped;
    int code = ok ? optimize_code(&r) : (int)err.kind;
    optimize_release(&r);
    arena_free(local.arena);
    return code;
}

/* ---- words ---- */

static double share(const struct row *r) {
    return r->found && r->limit_s > 0 ? r->limit_s / r->time_s : 0;
}

static bool has_table(const struct suite *s) {
    return !s->ui->as_json && !option_bool(s->ui->options, "quiet");
}

/* Columns of a table that fits: on a terminal the names take what is left, and workloads are left
 * out where that is not much; the summary has them. */
struct table {
    size_t name;
    bool workload;
};

enum { NUMBERS = 41, WORKLOAD = 14, NAME_USUAL = 40, NAME_MOST = 60 };

static struct table table_of(void) {
    struct table t = {.name = NAME_USUAL, .workload = true};
    if (!isatty(STDOUT_FILENO))
        return t;
    size_t columns = (size_t)terminal_columns(STDOUT_FILENO) - 1;
    t.workload = columns >= NUMBERS + WORKLOAD + NAME_USUAL;
    size_t others = NUMBERS + (t.workload ? WORKLOAD : 0);
    t.name = columns > others + 8 ? columns - others : 8;
    t.name = t.name > NAME_MOST ? NAME_MOST : t.name;
    return t;
}

static void print_name(const struct table *t, str name, const char *workload) {
    struct buf b;
    buf_init(&b, 1 << 20);
    text_fit(name, t->name, &b);
    for (size_t at = text_columns(buf_str(&b)); at < t->name; at++)
        buf_putc(&b, ' ');
    say("%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
    if (t->workload)
        say(" %-13s", workload);
}

static void print_head(void) {
    struct table t = table_of();
    print_name(&t, S("task"), "workload");
    say(" %10s %8s %7s %7s %5s\n", "time", "of limit", "naive", "torch", "tried");
}

static void print_ratio(double above, double below) {
    if (above > 0)
        say(" %6.2fx", above / below);
    else
        say(" %7s", "-");
}

/* Why there is no kernel takes the place of the numbers. */
static void print_error(const struct table *t, const struct row *r) {
    struct buf b;
    str line = {0}, rest = r->error;
    size_t used = t->name + 1 + (t->workload ? WORKLOAD : 0);
    size_t columns = isatty(STDOUT_FILENO) ? (size_t)terminal_columns(STDOUT_FILENO) - 1 : SIZE_MAX;
    str_line(&rest, &line);
    buf_init(&b, 1 << 20);
    text_fit(line, columns - used, &b);
    say(" %.*s\n", STR_ARG(buf_str(&b)));
    buf_release(&b);
}

static void print_row(const struct suite *s, const struct row *r) {
    struct table t = table_of();
    str name = r->runs > 1
                   ? arena_printf(s->ui->arena, "%.*s, %.0f times", STR_ARG(r->name), r->runs)
                   : r->name;
    print_name(&t, name, r->known ? workload_name(r->workload) : "-");
    if (!r->found) {
        print_error(&t, r);
        fflush(stdout);
        return;
    }
    say(" %10.*s %7.0f%%", STR_ARG(ui_time(s->ui->arena, r->time_s)), 100 * share(r));
    print_ratio(r->naive_s, r->time_s);
    print_ratio(r->baseline_s, r->time_s);
    say(" %5zu%s\n", r->evaluated, r->unconfirmed.n ? " *" : "");
    fflush(stdout);
    if (r->error.n)
        complain("cutepilot: %.*s: the run ended early: %.*s\n", STR_ARG(r->name),
                 STR_ARG(r->error));
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Tasks with a kernel, the median fraction of the limit, the geometric mean against PyTorch. */
static void print_workload(const struct suite *s, enum workload w, double *shares) {
    size_t n = 0, found = 0, measured = 0;
    double logs = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct row *r = &s->rows[i];
        if (!r->known || r->workload != w)
            continue;
        n++;
        if (!r->found)
            continue;
        shares[found++] = share(r);
        measured += r->baseline_s > 0;
        logs += r->baseline_s > 0 ? log(r->baseline_s / r->time_s) : 0;
    }
    if (!n)
        return;
    say("  %-14s %zu of %zu", workload_name(w), found, n);
    qsort(shares, found, sizeof *shares, ascending);
    if (found)
        say(", %.0f%% of the limit at the median",
            50 * (shares[(found - 1) / 2] + shares[found / 2]));
    if (measured)
        say(", %.2fx PyTorch (geometric mean of %zu)", exp(logs / (double)measured), measured);
    putchar('\n');
}

/* An imported module as one thing: all runs of its tasks, one after the other. */
static void print_module(const struct suite *s, size_t first) {
    str module = s->rows[first].module;
    size_t tasks = 0, missing = 0;
    double runs = 0, time_s = 0, limit_s = 0;
    for (size_t i = first; i < s->n; i++) {
        const struct row *r = &s->rows[i];
        if (!str_eq(r->module, module))
            continue;
        tasks++;
        missing += !r->found;
        runs += r->runs;
        time_s += r->found ? r->runs * r->time_s : 0;
        limit_s += r->runs * r->limit_s;
    }
    if (missing)
        say("%.*s: %zu of its %zu tasks have no kernel\n", STR_ARG(module), missing, tasks);
    else
        say("%.*s: %.*s in all, %.0f%% of the limit; %zu task%s, run %.0f times\n", STR_ARG(module),
            STR_ARG(ui_time(s->ui->arena, time_s)), 100 * limit_s / time_s, tasks,
            tasks == 1 ? "" : "s", runs);
}

static void print_modules(const struct suite *s) {
    for (size_t i = 0; i < s->n; i++) {
        bool first = s->rows[i].module.n > 0;
        for (size_t k = 0; k < i && first; k++)
            first = !str_eq(s->rows[k].module, s->rows[i].module);
        if (first)
            print_module(s, i);
    }
}

static size_t count_unconfirmed(const struct suite *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->rows[i].unconfirmed.n > 0;
    return n;
}

static void print_unconfirmed(const struct suite *s) {
    struct arena *a = s->ui->arena;
    str first = {0}, line;
    for (size_t i = 0; i < s->n && !first.n; i++)
        first = s->rows[i].unconfirmed;
    if (str_line(&first, &line))
        screen_paragraph(2, arena_printf(a,
                                         "* not verified a second time: %zu of the kernels "
                                         "(%.*s); run the same command again",
                                         count_unconfirmed(s), STR_ARG(line)));
}

/* How sure it is: of the times, and of the kernels. */
static void print_confidence(const struct suite *s) {
    struct arena *a = s->ui->arena;
    size_t found = 0, estimated = 0, refusing = 0, unconfirmed = count_unconfirmed(s);
    bool calibrated = true;
    str example = S("");
    for (size_t i = 0; i < s->n; i++) {
        const struct row *r = &s->rows[i];
        found += r->found;
        estimated += r->estimated;
        calibrated &= !r->estimated || r->calibrated;
        refusing += r->refused > 0;
        example = r->refused && !example.n ? r->name : example;
    }
    if (!found)
        return;
    screen_heading("How sure that is");
    screen_paragraph(0, !estimated ? S("Times are medians of measured runs.")
                        : !calibrated
                            ? S("Times are the simulator's estimates from a model not yet "
                                "calibrated on hardware, not measurements.")
                            : S("Times are the simulator's estimates, not measurements."));
    screen_paragraph(0, arena_printf(a,
                                     "Every kernel was verified on check shapes, shapes made at "
                                     "random and many kinds of data%s.",
                                     unconfirmed ? "" : ", and a second time on a new seed"));
    print_unconfirmed(s);
    if (refusing)
        screen_paragraph(0,
                         arena_printf(a,
                                      "%zu of %zu kernels refuse%s check shapes of their task "
                                      "(%.*s is one): the reports name them, and --must-admit "
                                      "asks for kernels that serve all.",
                                      refusing, found, refusing == 1 ? "s" : "", STR_ARG(example)));
}

/* The one with the least share of the limit. */
static const struct row *worst_row(const struct suite *s) {
    const struct row *worst = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].found && (!worst || share(&s->rows[i]) < share(worst)))
            worst = &s->rows[i];
    return worst;
}

static void print_next(const struct suite *s) {
    struct arena *a = s->ui->arena;
    const struct row *worst = worst_row(s);
    screen_heading("Files");
    screen_line("the table", arena_printf(a, "%s/suite.csv, suite.json", s->out));
    if (!worst)
        return;
    const char *run = run_folder(s, worst->path, a);
    screen_line("a folder for each task, such as", str_view(run));
    screen_heading("Next");
    screen_line("see all of it as web pages", ui_command(s->ui, "report", s->out));
    screen_line(arena_printf(a, "the furthest from its limit, %.0f%%", 100 * share(worst)).p,
                ui_command(s->ui, "log", run));
    if (order_exists(s->folder))
        screen_line("use the module from PyTorch", ui_command(s->ui, "export", s->out));
    else
        screen_line("use a kernel from PyTorch", ui_command(s->ui, "export", run));
    screen_line(s->interrupted ? "go on where it stopped" : "search longer, from here on",
                s->interrupted ? S("the same command")
                               : S("the same command, with a larger --budget"));
}

static void print_summary(const struct suite *s) {
    double *shares = mem_alloc((s->n + 1) * sizeof *shares);
    screen_heading("Result");
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        print_workload(s, (enum workload)w, shares);
    print_modules(s);
    print_confidence(s);
    print_next(s);
    mem_free(shares);
}

/* ---- files ---- */

/* In one word or two, what became of the task. */
static const char *status(const struct row *r) {
    return !r->found          ? "no kernel"
           : r->error.n       ? "ended early"
           : r->unconfirmed.n ? "not confirmed"
                              : "done";
}

static json *row_json(const struct row *r) {
    json *j = json_object();
    json_set_str(j, "file", str_view(r->path));
    json_set_str(j, "task", r->name);
    if (r->known)
        json_set_str(j, "workload", str_view(workload_name(r->workload)));
    json_set_str(j, "status", str_view(status(r)));
    json_set_bool(j, "found", r->found);
    json_set_i64(j, "evaluated", (int64_t)r->evaluated);
    if (r->error.n)
        json_set_str(j, "error", r->error);
    if (r->module.n) {
        json_set_str(j, "module", r->module);
        json_set_i64(j, "uses", (int64_t)r->uses);
        json_set_f64(j, "runs", r->runs);
    }
    if (r->type.n)
        json_set_str(j, "type", r->type);
    if (!r->found)
        return j;
    if (r->unconfirmed.n)
        json_set_str(j, "unconfirmed", r->unconfirmed);
    if (r->refused)
        json_set_i64(j, "refused", (int64_t)r->refused);
    json_set_str(j, "strategy", r->strategy);
    json_set_str(j, "gpu", r->gpu);
    json_set_bool(j, "estimated", r->estimated);
    if (r->estimated)
        json_set_bool(j, "calibrated", r->calibrated);
    json_set_f64(j, "time_s", r->time_s);
    json_set_f64(j, "limit_s", r->limit_s);
    json_set_f64(j, "fraction", share(r));
    if (r->naive_s > 0)
        json_set_f64(j, "naive_s", r->naive_s);
    if (r->baseline_s > 0)
        json_set_f64(j, "baseline_s", r->baseline_s);
    return j;
}

static json *suite_json(const struct suite *s) {
    json *array = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_push(array, row_json(&s->rows[i]));
    return array;
}

static void put_number(double v, struct buf *out) {
    buf_puts(out, S(","));
    if (v > 0)
        buf_printf(out, "%.9g", v);
}

/* Names of tasks are identifiers; where a task cannot be read its file stands for it, of any name.
 */
static void put_quoted(str s, struct buf *out) {
    buf_putc(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            buf_putc(out, '"');
        buf_putc(out, s.p[i]);
    }
    buf_putc(out, '"');
}

/* Strategies have neither commas nor quotes. */
static void put_csv(const struct suite *s, struct buf *out) {
    buf_puts(out, S("task,workload,found,estimated,evaluated,time_s,limit_s,fraction,naive_s,"
                    "baseline_s,strategy,unconfirmed,status\n"));
    for (size_t i = 0; i < s->n; i++) {
        const struct row *r = &s->rows[i];
        if (r->known)
            buf_puts(out, r->name);
        else
            put_quoted(r->name, out);
        buf_printf(out, ",%s,%d,%d,%zu", r->known ? workload_name(r->workload) : "", r->found,
                   r->estimated, r->evaluated);
        put_number(r->time_s, out);
        put_number(r->limit_s, out);
        put_number(share(r), out);
        put_number(r->naive_s, out);
        put_number(r->baseline_s, out);
        buf_printf(out, ",%.*s,", STR_ARG(r->strategy));
        if (r->unconfirmed.n)
            put_quoted(r->unconfirmed, out);
        buf_printf(out, ",%s\n", status(r));
    }
}

static bool write_files(const struct suite *s, struct err *err) {
    struct buf b;
    json *j = suite_json(s);
    buf_init(&b, 64u << 20);
    json_write_pretty(j, &b);
    buf_putc(&b, '\n');
    bool ok = file_replace(arena_printf(s->ui->arena, "%s/suite.json", s->out).p, buf_str(&b), err);
    buf_clear(&b);
    put_csv(s, &b);
    ok = ok && file_replace(arena_printf(s->ui->arena, "%s/suite.csv", s->out).p, buf_str(&b), err);
    buf_release(&b);
    json_free(j);
    return ok;
}

/* ---- over several GPUs ---- */

static str text_of(const json *j, const char *key, struct arena *a) {
    str s = S("");
    json_get_str(j, key, &s);
    return arena_str(a, s);
}

/* The row that a task's own process printed. */
static bool read_row(str said, struct arena *a, struct row *r) {
    struct err ignored;
    json *list = json_parse(said, &ignored);
    const json *j = json_at(list, 0);
    int64_t evaluated = 0, refused = 0;
    str workload = text_of(j, "workload", a);
    bool ok = j && json_get_bool(j, "found", &r->found);
    r->name = text_of(j, "task", a);
    r->strategy = text_of(j, "strategy", a);
    r->error = text_of(j, "error", a);
    r->unconfirmed = text_of(j, "unconfirmed", a);
    r->gpu = text_of(j, "gpu", a);
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        if (str_is(workload, workload_name((enum workload)w))) {
            r->workload = (enum workload)w;
            r->known = true;
        }
    json_get_i64(j, "evaluated", &evaluated);
    json_get_i64(j, "refused", &refused);
    json_get_bool(j, "estimated", &r->estimated);
    json_get_bool(j, "calibrated", &r->calibrated);
    json_get_f64(j, "time_s", &r->time_s);
    json_get_f64(j, "limit_s", &r->limit_s);
    json_get_f64(j, "naive_s", &r->naive_s);
    json_get_f64(j, "baseline_s", &r->baseline_s);
    r->evaluated = (size_t)evaluated;
    r->refused = (size_t)refused;
    json_free(list);
    return ok;
}

struct spread {
    struct suite *s;
    const char **paths;
    struct fleet_job *jobs;
    size_t n;
    str types; /* the file of them, as it was written last */
    struct err err;
};

/* In order of tasks, whichever ended first. */
static struct row *insert_row(struct suite *s, const struct row *r) {
    size_t at = s->n++;
    while (at && s->rows[at - 1].job > r->job)
        at--;
    memmove(&s->rows[at + 1], &s->rows[at], (s->n - 1 - at) * sizeof *s->rows);
    s->rows[at] = *r;
    return &s->rows[at];
}

static void on_task(void *ctx, size_t job, int code, str said) {
    struct spread *sp = ctx;
    struct suite *s = sp->s;
    struct row r = {.path = sp->paths[job], .job = job, .type = sp->jobs[job].type};
    if (!read_row(said, s->ui->arena, &r)) {
        r.name = str_view(r.path);
        r.error = arena_printf(s->ui->arena, "its process ended with exit code %d", code);
    }
    note_module(s, &r);
    const struct row *row = insert_row(s, &r);
    if (has_table(s))
        print_row(s, row);
    if (!sp->err.kind)
        write_files(s, &sp->err);
}

/* A task that was begun on one type of GPU goes on there. Which that is, is known before the task
 * has a row in the table: a file of its own says it. */
static const char *types_path(const struct suite *s) {
    return arena_printf(s->ui->arena, "%s/types.json", s->out).p;
}

static void keep_types(void *ctx) {
    struct spread *sp = ctx;
    struct buf b;
    json *types = json_object();
    for (size_t i = 0; i < sp->n; i++)
        if (sp->jobs[i].type.n)
            json_set_str(types, sp->paths[i], sp->jobs[i].type);
    buf_init(&b, 64u << 20);
    json_write_pretty(types, &b);
    buf_putc(&b, '\n');
    if (!str_eq(buf_str(&b), sp->types)) {
        sp->types = arena_str(sp->s->ui->arena, buf_str(&b));
        if (!sp->err.kind)
            file_replace(types_path(sp->s), sp->types, &sp->err);
    }
    buf_release(&b);
    json_free(types);
}

/* A run that was begun goes on at its own type of GPU alone. */
static bool may_change_type(void *ctx, size_t job, struct err *err) {
    const struct spread *sp = ctx;
    struct arena *a = sp->s->ui->arena;
    const char *dir = run_folder(sp->s, sp->paths[job], a);
    if (option_bool(sp->s->ui->options, "fresh") ||
        !file_exists(arena_printf(a, "%s/run.db", dir).p))
        return true;
    return err_set(err, ERR_INPUT,
                   "run folder %s is of another run: its device was %.*s, which is not among those "
                   "that are named; use --fresh to start anew or another --out",
                   dir, STR_ARG(sp->jobs[job].type));
}

static void recall_types(const struct suite *s, const char **paths, struct fleet_job *jobs,
                         size_t n) {
    struct arena *a = s->ui->arena;
    struct err ignored;
    str text;
    if (!file_exists(types_path(s)) || !file_read(types_path(s), 64u << 20, a, &text, &ignored))
        return;
    json *types = json_parse(text, &ignored);
    for (size_t i = 0; i < n; i++)
        jobs[i].type = text_of(types, paths[i], a);
    json_free(types);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The window depends on what was asked for, not on which workers there are by and by: so the course
 * of a run does not either. */
static void make_jobs(const struct suite *s, const char **paths, size_t n, size_t places,
                      struct fleet_job *jobs) {
    static const char *const without[] = {"only", "json", "out", "window", "compile-jobs", NULL};
    struct arena *a = s->ui->arena;
    const struct options *o = s->ui->options;
    size_t population = (size_t)option_int(o, "population"),
           window = (size_t)option_int(o, "window");
    size_t compilers = (size_t)option_int(o, "compile-jobs");
    size_t cores = cores_usable();
    size_t at_a_time = least(places, n), each = least(places / at_a_time, population);
    if (!window)
        window = search_window(population, each);
    if (!compilers)
        compilers = cores > at_a_time ? cores / at_a_time : 1;
    for (size_t i = 0; i < n; i++) {
        const char *more[] = {arena_printf(a, "--only=%s", paths[i]).p,
                              arena_printf(a, "--out=%s", s->out).p,
                              arena_printf(a, "--window=%zu", window).p,
                              arena_printf(a, "--compile-jobs=%zu", compilers).p,
                              "--json",
                              option_given(o, "progress") ? NULL : "--progress=none",
                              NULL};
        jobs[i] = (struct fleet_job){
            .words = fleet_words(s->ui, "suite", s->folder, without, more, a), .most = population};
    }
    recall_types(s, paths, jobs, n);
}

static bool run_spread(struct suite *s, const char **paths, size_t n, size_t places,
                       struct err *err) {
    struct arena *a = s->ui->arena;
    struct fleet_job *jobs = arena_array(a, struct fleet_job, n);
    struct spread sp = {.s = s, .paths = paths, .jobs = jobs, .n = n};
    struct fleet f = {.ui = s->ui,
                      .jobs = jobs,
                      .n = n,
                      .captured = true,
                      .begun = keep_types,
                      .may_change = may_change_type,
                      .done = on_task,
                      .ctx = &sp};
    s->rows = arena_array(a, struct row, n + 1);
    make_jobs(s, paths, n, places, jobs);
    if (has_table(s))
        print_head();
    if (!fleet_run(&f, err))
        return false;
    s->interrupted = f.interrupted;
    if (sp.err.kind)
        *err = sp.err;
    return !sp.err.kind;
}

/* ---- the command ---- */

static bool run_all(struct suite *s, const char **paths, size_t n, struct err *err) {
    bool table = has_table(s);
    s->rows = arena_array(s->ui->arena, struct row, n);
    s->at = (struct progress_suite){.tasks = n, .start_ms = clock_ms()};
    if (table)
        print_head();
    for (size_t i = 0; i < n && !optimize_interrupted(); i++) {
        s->rows[s->n] = (struct row){.path = paths[i]};
        note_module(s, &s->rows[s->n]);
        s->at.task = i + 1;
        s->at.before_s = (double)(clock_ms() - s->at.start_ms) / 1000;
        run_task(s, &s->rows[s->n]);
        if (table)
            print_row(s, &s->rows[s->n]);
        s->n++;
        if (!write_files(s, err)) /* after each: what is done survives */
            return false;
    }
    s->interrupted = optimize_interrupted();
    return true;
}

/* Before anything starts: a folder of another run is refused, and the table of that stays. */
static bool check_folders(const struct suite *s, const char **paths, size_t n, struct err *err) {
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct ui local = *s->ui;
        local.arena = arena_new((size_t)2 << 30);
        struct optimize r = {.ui = &local, .path = paths[i]};
        r.dir = run_folder(s, paths[i], local.arena);
        ok = optimize_may_use(&r, err);
        optimize_release(&r);
        arena_free(local.arena);
    }
    return ok;
}

/* One task; the table is left alone, or several of these would write it. */
static int run_only(struct suite *s, const char *path) {
    s->rows = arena_new_of(s->ui->arena, struct row);
    s->rows->path = path;
    note_module(s, s->rows);
    s->n = 1;
    int code = run_task(s, s->rows);
    if (s->ui->as_json)
        return ui_print_json(suite_json(s)) ? code : 3;
    print_head();
    print_row(s, s->rows);
    return code;
}

static bool find_only(const struct suite *s, const char *only, const char **paths, size_t n,
                      struct err *err) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(paths[i], only))
            return true;
    return err_set(err, ERR_INPUT, "--only %s: it is not among the %zu tasks below %s", only, n,
                   s->folder);
}

/* An imported module stays beside its runs, so that export knows how they hang together. */
static bool keep_module(const struct suite *s, const char **paths, size_t n, struct err *err) {
    struct arena *a = s->ui->arena;
    struct order order;
    str text;
    if (!order_exists(s->folder))
        return true;
    if (!order_read(s->folder, a, &order, err) ||
        !file_replace(arena_printf(a, "%s/" ORDER_FILE, s->out).p, order.text, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *to = arena_printf(a, "%s.task", run_folder(s, paths[i], a)).p;
        if (!file_read(paths[i], TASK_MAX_BYTES, a, &text, err) || !file_replace(to, text, err))
            return false;
    }
    return true;
}

/* runs/NAME of an imported module, runs/suite of a folder of tasks. */
static const char *default_out(const char *folder, struct arena *a) {
    str name = str_view(folder);
    while (name.n > 1 && name.p[name.n - 1] == '/')
        name.n--;
    size_t slash = name.n;
    while (slash && name.p[slash - 1] != '/')
        slash--;
    return order_exists(folder) ? arena_printf(a, "runs/%.*s", STR_ARG(str_from(name, slash))).p
                                : "runs/suite";
}

int cmd_suite(struct ui *ui) {
    char *const *args;
    const char **paths, *out = option_text(ui->options, "out");
    const char *only = option_text(ui->options, "only");
    size_t n, missing = 0, places = 0;
    struct err err = {0};
    options_args(ui->options, &args);
    struct suite s = {
        .ui = ui, .folder = args[0], .out = out ? out : default_out(args[0], ui->arena)};
    if (!ui_find_tasks(s.folder, ui->arena, &paths, &n, &err) || !dir_make(s.out, &err) ||
        (only && !find_only(&s, only, paths, n, &err)))
        return ui_fail(ui, &err);
    if (only)
        return run_only(&s, only);
    if (!dir_remove_temporaries(s.out, false, &err) || !fleet_asked_for(ui, true, &places, &err) ||
        !((places && n) || check_folders(&s, paths, n, &err)) || !keep_module(&s, paths, n, &err) ||
        !(places && n ? run_spread(&s, paths, n, places, &err) : run_all(&s, paths, n, &err)))
        return ui_fail(ui, &err);
    for (size_t i = 0; i < s.n; i++)
        missing += !s.rows[i].found;
    size_t unconfirmed = count_unconfirmed(&s);
    int code = s.interrupted ? 4 : missing + unconfirmed > 0;
    if (ui->as_json)
        return ui_print_json(suite_json(&s)) ? code : 3;
    if (option_bool(ui->options, "quiet"))
        say("%zu of %zu tasks have a kernel%s: %s/suite.csv\n", s.n - missing, n,
            unconfirmed ? arena_printf(ui->arena, ", %zu not verified a second time", unconfirmed).p
                        : "",
            s.out);
    else
        print_summary(&s);
    return code;
}
