/* ablate TASK|TABLE…: variants of the search replayed against measured spaces, and one table of
 * what each mechanism is worth. Tasks are measured first, as `space` does it. */
#include "base/say.h"
#include "search/ablate.h"
#include "ui/space_run.h"

#include <math.h>
#include <stdio.h>

/* ---- the table ---- */

static void print_interval(struct interval x, const char *format) {
    char text[64];
    if (!isfinite(x.value)) {
        say(" %18s", "-");
        return;
    }
    snprintf(text, sizeof text, format, x.value, x.low, x.high);
    say(" %18s", text);
}

static void print_names(const char *first) {
    say("%-24s", first);
    for (int v = 0; v < VARIANT_COUNT; v++)
        say(" %18s", variant_name((enum variant)v));
    putchar('\n');
}

static void print_needs(const struct ablate *x, const struct ablate_options *o) {
    say("Candidates until within %.0f%% of the best of the space: median over seeds [95%% "
        "interval]; %zu: not within the budget\n",
        100 * o->near, o->candidates + 1);
    print_names("task");
    for (size_t i = 0; i < x->n; i++) {
        const struct ablate_row *r = &x->rows[i];
        say("%-23.*s%s", STR_ARG(r->table->task->name), r->hard ? "*" : " ");
        for (int v = 0; v < VARIANT_COUNT; v++)
            print_interval(r->cell[v].median, "%.4g [%.4g, %.4g]");
        putchar('\n');
    }
    say("%-24s", "* relative to random");
    for (int v = 0; v < VARIANT_COUNT; v++)
        print_interval(x->hard[v], "%.2f [%.2f, %.2f]");
    say("\n%-24s", "others");
    for (int v = 0; v < VARIANT_COUNT; v++)
        print_interval(x->easy[v], "%.2f [%.2f, %.2f]");
    say("\n* random search needs %d or more (%zu of %zu tasks); geometric means\n\n", ABLATE_LONG,
        x->nhard, x->n);
}

static void print_ends(const struct ablate *x) {
    say("Best time relative to the best of the space: median after the first generation, and at "
        "the end\n");
    print_names("task");
    for (size_t i = 0; i < x->n; i++) {
        const struct ablate_row *r = &x->rows[i];
        say("%-24.*s", STR_ARG(r->table->task->name));
        for (int v = 0; v < VARIANT_COUNT; v++)
            say("      %5.3f, %5.3f", r->cell[v].first, r->cell[v].last);
        putchar('\n');
    }
    putchar('\n');
}

static void print_spaces(const struct ablate *x, double near) {
    say("%-24s %6s %8s %6s %8s %8s\n", "space", "rows", "sources", "near", "history", "halfway");
    for (size_t i = 0; i < x->n; i++) {
        const struct ablate_row *r = &x->rows[i];
        say("%-24.*s %6zu %8zu %6zu %8zu ", STR_ARG(r->table->task->name), r->table->n, r->sources,
            r->near, r->recalled);
        if (isfinite(r->halfway))
            say("%8.2f", r->halfway);
        else
            say("%8s", "-");
        say("%s\n", r->table->n < r->table->planned ? "  (not measured whole)" : "");
    }
    say("near: sources within %.0f%% of the best. history: runs of other tasks. halfway: where "
        "history's first\ngeneration lies between a cold run's first (0) and last (1), in "
        "geometric means over the seeds;\n-: no history, or the two are within 0.5%%.",
        100 * near);
    if (isfinite(x->halfway))
        say(" All gaps together: %.2f.", x->halfway);
    putchar('\n');
}

static void print_all(const struct ablate *x, const struct ablate_options *o) {
    bool estimated = false;
    print_spaces(x, o->near);
    putchar('\n');
    print_needs(x, o);
    print_ends(x);
    for (int v = 0; v < VARIANT_COUNT; v++)
        say("%-14s %s\n", variant_name((enum variant)v), variant_meaning((enum variant)v));
    for (size_t i = 0; i < x->n; i++)
        estimated |= x->rows[i].table->estimated;
    if (estimated)
        say("Times are the simulator's estimates, not measurements.\n");
}

/* ---- JSON ---- */

static json *interval_json(struct interval x) {
    json *j = json_array();
    json_push_f64(j, x.value);
    json_push_f64(j, x.low);
    json_push_f64(j, x.high);
    return j;
}

static json *numbers_json(const double *v, size_t n) {
    json *j = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_f64(j, v[i]);
    return j;
}

static json *row_json(const struct ablate_row *r, size_t seeds) {
    json *j = json_object(), *cells = json_object();
    json_set_str(j, "task", r->table->task->name);
    json_set_str(j, "device", r->table->device);
    json_set_bool(j, "estimated", r->table->estimated);
    json_set_i64(j, "rows", (int64_t)r->table->n);
    json_set_i64(j, "planned", (int64_t)r->table->planned);
    json_set_i64(j, "sources", (int64_t)r->sources);
    json_set_i64(j, "near", (int64_t)r->near);
    json_set_f64(j, "best_s", r->table->best_s);
    json_set_i64(j, "history_runs", (int64_t)r->recalled);
    json_set_bool(j, "hard", r->hard);
    json_set_f64(j, "halfway", r->halfway);
    json_set_f64(j, "cold_gap", r->cold_gap);
    json_set_f64(j, "warm_gap", r->warm_gap);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        const struct ablate_cell *c = &r->cell[v];
        json *cell = json_object();
        json_set(cell, "need_median", interval_json(c->median));
        json_set_f64(cell, "first", c->first);
        json_set_f64(cell, "last", c->last);
        json_set(cell, "need", numbers_json(c->need, seeds));
        json_set(cells, variant_name((enum variant)v), cell);
    }
    json_set(j, "variants", cells);
    return j;
}

static json *result_json(const struct ablate *x, const struct ablate_options *o) {
    json *j = json_object(), *rows = json_array(), *hard = json_object(), *easy = json_object();
    for (size_t i = 0; i < x->n; i++)
        json_push(rows, row_json(&x->rows[i], o->seeds));
    for (int v = 0; v < VARIANT_COUNT; v++) {
        json_set(hard, variant_name((enum variant)v), interval_json(x->hard[v]));
        json_set(easy, variant_name((enum variant)v), interval_json(x->easy[v]));
    }
    json_set_i64(j, "seeds", (int64_t)o->seeds);
    json_set_i64(j, "candidates", (int64_t)o->candidates);
    json_set_f64(j, "near", o->near);
    json_set_i64(j, "hard_tasks", (int64_t)x->nhard);
    json_set_f64(j, "halfway", x->halfway);
    json_set(j, "hard_relative_to_random", hard);
    json_set(j, "others_relative_to_random", easy);
    json_set(j, "tasks", rows);
    return j;
}

/* ---- the command ---- */

/* A task's table, measured now as far as it is not there. */
static bool measured(struct ui *ui, const char *task, const char **path, struct err *err) {
    struct space s = {.ui = ui, .task_path = task};
    bool ok = space_run(&s, err);
    *path = s.path;
    space_release(&s);
    return ok;
}

static bool load(struct ui *ui, const char *arg, struct table *out, struct err *err) {
    const char *path = arg;
    if (str_ends(str_view(arg), S(".task")) && !measured(ui, arg, &path, err))
        return false;
    if (!table_load(path, option_text(ui->options, "assets"), ui->arena, out, err))
        return false;
    return isfinite(out->best_s) ||
           err_set(err, ERR_NO, "%s: the table has no accepted kernel, so there is nothing to find",
                   path);
}

int cmd_ablate(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    size_t n = options_args(ui->options, &args);
    struct budget budget = option_budget(ui->options, "budget");
    struct table *tables = arena_array(ui->arena, struct table, n);
    struct agent agent = {0};
    struct ablate result;
    bool ok = budget.candidates && !budget.ms
                  ? expert_new(option_text(ui->options, "assets"), &agent, &err)
                  : err_set(&err, ERR_INPUT, "--budget: a replay is limited by candidates: 64c");
    for (size_t i = 0; ok && i < n; i++)
        ok = load(ui, args[i], &tables[i], &err);
    int code = 0;
    if (ok) {
        struct ablate_options o = {.tables = tables,
                                   .n = n,
                                   .agent = &agent,
                                   .seeds = (size_t)option_int(ui->options, "seeds"),
                                   .candidates = (size_t)budget.candidates,
                                   .near = (double)option_int(ui->options, "near") / 100,
                                   .population = (size_t)option_int(ui->options, "population")};
        ablate_run(&o, ui->arena, &result);
        if (ui->as_json)
            code = ui_print_json(result_json(&result, &o)) ? 0 : 3;
        else
            print_all(&result, &o);
    } else {
        code = ui_fail(ui, &err);
    }
    if (agent.release)
        agent.release(agent.self);
    return code;
}
