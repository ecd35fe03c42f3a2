/* history list, export, import, merge: the pool of what strategies came to on which tasks. */
#include "archive/history.h"
#include "archive/table.h"
#include "base/file.h"
#include "base/say.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool pool_path(struct ui *ui, const char **out, struct err *err) {
    const char *given = option_text(ui->options, "pool");
    str usual = given ? str_view(given) : history_path(ui->arena);
    *out = usual.p;
    return usual.n ||
           err_set(err, ERR_ENV,
                   "there is no folder for the history pool: set HOME, or name a file with --pool");
}

/* ---- list ---- */

static json *run_json(const struct history_run *r, const char *pool) {
    json *j = json_object();
    json_set_str(j, "task", r->task);
    json_set_str(j, "shape", r->shape);
    json_set_str(j, "device", r->device);
    json_set_str(j, "workload", str_view(workload_name(r->features.workload)));
    json_set_bool(j, "estimated", r->estimated);
    json_set_i64(j, "trials", (int64_t)r->n);
    json_set_f64(j, "best_s", r->best_s);
    json_set_str(j, "pool", str_view(pool));
    return j;
}

static void print_run(struct ui *ui, const struct history_run *r, const char *pool) {
    say("%-28.*s %-13s %-10.*s %6zu %12.*s%s  %-7s %.*s\n", STR_ARG(r->task),
        workload_name(r->features.workload), STR_ARG(r->device), r->n,
        STR_ARG(ui_time(ui->arena, r->best_s)), r->estimated ? " (est.)" : "       ", pool,
        STR_ARG(r->shape));
}

int cmd_history_list(struct ui *ui) {
    struct history h;
    struct err err = {0}, warning = {0};
    const char *path;
    json *list = ui->as_json ? json_array() : NULL;
    history_init(&h);
    bool ok = pool_path(ui, &path, &err) && history_load_shipped(&h, NULL, &err);
    size_t shipped = h.n;
    if (ok)
        history_load_pool(&h, path, &warning);
    if (warning.kind != ERR_NONE)
        complain("cutepilot: %s\n", warning.text);
    if (ok && !list && h.n)
        say("%-28s %-13s %-10s %6s %12s         %-7s %s\n", "task", "workload", "device", "tried",
            "best", "pool", "shape");
    for (size_t i = 0; ok && i < h.n; i++) {
        const char *pool = i < shipped ? "shipped" : "user";
        if (list)
            json_push(list, run_json(&h.runs[i], pool));
        else
            print_run(ui, &h.runs[i], pool);
    }
    int code = ok ? 0 : ui_fail(ui, &err);
    if (ok && !list)
        say("%zu runs shipped, %zu in %s\n", shipped, h.n - shipped, path);
    if (ok && list)
        code = ui_print_json(list) ? 0 : 3;
    else
        json_free(list);
    history_release(&h);
    return code;
}

/* ---- files ---- */

/* A measured space as a run: its sources are what was tried. */
static bool add_table(struct ui *ui, const char *path, struct history *h, struct err *err) {
    struct table t;
    struct history_run run;
    if (!table_load(path, NULL, ui->arena, &t, err))
        return false;
    if (!isfinite(t.best_s))
        return err_set(err, ERR_NO, "%s: the table has no accepted kernel", path);
    history_describe(&t.briefing, arena_cstr(ui->arena, t.device), t.estimated, ui->arena, &run);
    run.best_s = t.best_s;
    run.trials = arena_array(ui->arena, struct history_trial, t.n + 1);
    for (size_t i = 0; i < t.n; i++) {
        if (!table_is_first(&t, i))
            continue;
        str line = strategy_as_text(&t.catalogue, &t.rows[i].aligned, ui->arena);
        run.trials[run.n++] = (struct history_trial){line, t.rows[i].time_s / t.best_s};
    }
    history_add(h, &run);
    return true;
}

static bool read_all(struct ui *ui, char *const *paths, size_t n, struct history *h,
                     struct err *err) {
    for (size_t i = 0; i < n; i++) {
        bool table = str_ends(str_view(paths[i]), S(".space"));
        if (!table && !file_exists(paths[i]))
            return err_set(err, ERR_INPUT, "%s: no such file", paths[i]);
        if (!(table ? add_table(ui, paths[i], h, err) : history_load(h, paths[i], err)))
            return false;
    }
    return true;
}

static int say_added(struct ui *ui, const char *path, size_t added, size_t offered) {
    if (!ui->as_json) {
        say("%s: %zu of %zu runs added\n", path, added, offered);
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "pool", str_view(path));
    json_set_i64(j, "added", (int64_t)added);
    json_set_i64(j, "offered", (int64_t)offered);
    return ui_print_json(j) ? 0 : 3;
}

/* The files' runs into a pool. */
static int merge_into(struct ui *ui, const char *pool, char *const *paths, size_t n) {
    struct history h;
    struct err err = {0};
    size_t added = 0;
    history_init(&h);
    bool ok = read_all(ui, paths, n, &h, &err) && history_append(pool, &h, &added, &err);
    int code = ok ? say_added(ui, pool, added, h.n) : ui_fail(ui, &err);
    history_release(&h);
    return code;
}

/* The user's own pool may need its folder made; a path that was typed with a slip must not be. */
static bool has_folder(struct ui *ui, const char *path, struct err *err) {
    const char *slash = strrchr(path, '/');
    str folder = slash ? arena_printf(ui->arena, "%.*s/.", (int)(slash - path), path) : S(".");
    return file_exists(folder.p) ||
           err_set(err, ERR_INPUT, "%s: there is no such folder; make it first", path);
}

int cmd_history_import(struct ui *ui) {
    char *const *args;
    size_t n = options_args(ui->options, &args);
    struct err err = {0};
    const char *pool;
    return pool_path(ui, &pool, &err) ? merge_into(ui, pool, args, n) : ui_fail(ui, &err);
}

int cmd_history_merge(struct ui *ui) {
    char *const *args;
    size_t n = options_args(ui->options, &args);
    struct err err = {0};
    if (!has_folder(ui, args[0], &err))
        return ui_fail(ui, &err);
    return merge_into(ui, args[0], args + 1, n - 1);
}

int cmd_history_export(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    const char *pool;
    options_args(ui->options, &args);
    if (!pool_path(ui, &pool, &err) || !has_folder(ui, args[0], &err))
        return ui_fail(ui, &err);
    if (file_exists(args[0])) {
        err_set(&err, ERR_INPUT, "%s exists; history merge adds to a pool", args[0]);
        return ui_fail(ui, &err);
    }
    char *from[] = {arena_cstr(ui->arena, str_view(pool))};
    return merge_into(ui, args[0], from, file_exists(pool) ? 1 : 0);
}
