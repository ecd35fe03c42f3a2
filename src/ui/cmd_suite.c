/* suite DIR: every task below a folder, one after the other, and one table. Tasks share nothing but
 * the options; one that fails is a row like the others. Resuming is resuming each task's run. */
#include "base/file.h"
#include "base/say.h"
#include "ui/optimize_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *path;
    str name, strategy, error; /* error: why there is no kernel */
    enum workload workload;
    bool found, estimated, known; /* known: the task could be read */
    bool calibrated;              /* the model behind an estimate, on hardware */
    size_t evaluated;
    double time_s, limit_s, naive_s, baseline_s; /* 0: not known */
};

struct suite {
    struct ui *ui;
    const char *folder, *out;
    struct row *rows;
    size_t n;
};

/* ---- one task ---- */

/* runs/suite/kernelbench/level1/001_x for DIR/kernelbench/level1/001_x.task */
static const char *run_folder(const struct suite *s, const char *path, struct arena *a) {
    str below = str_from(str_view(path), strlen(s->folder));
    while (below.n && below.p[0] == '/')
        below = str_from(below, 1);
    return arena_printf(a, "%s/%.*s", s->out, STR_ARG(str_cut(below, 0, below.n - 5))).p;
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
    if (!row->found)
        return;
    row->strategy = arena_str(a, optimize_strategy(r));
    row->estimated = r->eo.device.kind == DEVICE_SIM;
    row->calibrated = r->eo.device.gpu->calibrated;
    row->time_s = r->best.time_s;
    if (isfinite(r->best.naive_s) && agents_expert_first(r->ui))
        row->naive_s = r->best.naive_s;
}

static void run_task(const struct suite *s, struct row *row) {
    struct ui local = *s->ui;
    struct err err = {0};
    local.arena = arena_new((size_t)2 << 30);
    struct optimize r = {.ui = &local, .path = row->path};
    r.dir = run_folder(s, row->path, local.arena);
    bool ok = dir_make(r.dir, &err) && optimize_run(&r, &err);
    fill(s, &r, ok, &err, row);
    if (row->found && !optimize_interrupted())
        measure_baseline(&r, row);
    optimize_release(&r);
    arena_free(local.arena);
}

/* ---- words ---- */

static double share(const struct row *r) {
    return r->found && r->limit_s > 0 ? r->limit_s / r->time_s : 0;
}

static void print_head(void) {
    say("%-40s %-13s %12s %9s %8s %8s %6s\n", "task", "workload", "time", "of limit", "naive",
        "torch", "tried");
}

static void print_ratio(double above, double below) {
    if (above > 0)
        say(" %7.2fx", above / below);
    else
        say(" %8s", "-");
}

static void print_row(const struct suite *s, const struct row *r) {
    say("%-40.*s %-13s ", STR_ARG(r->name), r->known ? workload_name(r->workload) : "-");
    if (!r->found) {
        str line, rest = r->error;
        str_line(&rest, &line);
        say("%.*s\n", STR_ARG(line));
        fflush(stdout);
        return;
    }
    say("%12.*s %8.0f%%", STR_ARG(ui_time(s->ui->arena, r->time_s)), 100 * share(r));
    print_ratio(r->naive_s, r->time_s);
    print_ratio(r->baseline_s, r->time_s);
    say(" %6zu\n", r->evaluated);
    fflush(stdout);
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

static void print_summary(const struct suite *s) {
    double *shares = mem_alloc((s->n + 1) * sizeof *shares);
    bool estimated = false, calibrated = true;
    say("\n");
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        print_workload(s, (enum workload)w, shares);
    for (size_t i = 0; i < s->n; i++) {
        estimated |= s->rows[i].estimated;
        calibrated &= !s->rows[i].estimated || s->rows[i].calibrated;
    }
    if (estimated)
        say("Times are the simulator's estimates%s, not measurements.\n",
            calibrated ? "" : " from a model not yet calibrated on hardware");
    say("  %s/suite.csv, suite.json\n", s->out);
    mem_free(shares);
}

/* ---- files ---- */

static json *row_json(const struct row *r) {
    json *j = json_object();
    json_set_str(j, "file", str_view(r->path));
    json_set_str(j, "task", r->name);
    if (r->known)
        json_set_str(j, "workload", str_view(workload_name(r->workload)));
    json_set_bool(j, "found", r->found);
    json_set_i64(j, "evaluated", (int64_t)r->evaluated);
    if (!r->found) {
        json_set_str(j, "error", r->error);
        return j;
    }
    json_set_str(j, "strategy", r->strategy);
    json_set_bool(j, "estimated", r->estimated);
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
                    "baseline_s,strategy\n"));
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
        buf_printf(out, ",%.*s\n", STR_ARG(r->strategy));
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

/* ---- the command ---- */

static bool run_all(struct suite *s, const char **paths, size_t n, struct err *err) {
    s->rows = arena_array(s->ui->arena, struct row, n);
    if (!s->ui->as_json)
        print_head();
    for (size_t i = 0; i < n && !optimize_interrupted(); i++) {
        s->rows[s->n] = (struct row){.path = paths[i]};
        run_task(s, &s->rows[s->n]);
        if (!s->ui->as_json)
            print_row(s, &s->rows[s->n]);
        s->n++;
        if (!write_files(s, err)) /* after each: what is done survives */
            return false;
    }
    return true;
}

int cmd_suite(struct ui *ui) {
    char *const *args;
    const char **paths, *out = option_text(ui->options, "out");
    size_t n, missing = 0;
    struct err err = {0};
    options_args(ui->options, &args);
    struct suite s = {.ui = ui, .folder = args[0], .out = out ? out : "runs/suite"};
    if (!ui_find_tasks(s.folder, ui->arena, &paths, &n, &err) || !dir_make(s.out, &err) ||
        !run_all(&s, paths, n, &err))
        return ui_fail(ui, &err);
    for (size_t i = 0; i < s.n; i++)
        missing += !s.rows[i].found;
    if (ui->as_json)
        return ui_print_json(suite_json(&s)) ? missing || s.n < n : 3;
    print_summary(&s);
    return missing || s.n < n;
}
