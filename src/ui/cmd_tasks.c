/* tasks [DIR]: every task file below a folder, one line each. A broken file is a line on stderr (in
 * the JSON array an entry with its error), the others are still listed, and the exit code is 2. */
#include "base/file.h"
#include "base/say.h"
#include "spec/cost.h"
#include "ui/ui.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDERS_DEEP = 8 };

struct listing {
    struct ui *ui;
    json *array; /* NULL: lines */
    size_t tasks, broken;
};

static void describe_error(struct listing *l, const char *path, const struct err *err) {
    l->broken++;
    complain("cutepilot: %s\n", err->text);
    if (!l->array)
        return;
    json *j = json_object();
    json_set_str(j, "file", str_view(path));
    json_set_str(j, "error", str_view(err->text));
    json_push(l->array, j);
}

/* "1.34 GB": three digits are enough to choose by. */
static str with_unit(struct arena *a, double v, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;
    while (v >= 999.5 && i + 1 < sizeof prefixes / sizeof *prefixes) {
        v /= 1000;
        i++;
    }
    return arena_printf(a, "%.3g %s%s", v, prefixes[i], unit);
}

static void describe(struct listing *l, const char *path, const struct inst *in, struct arena *a) {
    const struct task *t = in->task;
    struct cost c;
    struct features f;
    str label = inst_label(in, a);
    cost_of(in, &c);
    features_of(in, &f);
    l->tasks++;
    if (!l->array) {
        say("%-36.*s %-13s %-32.*s %9s %11s  %.*s\n", STR_ARG(t->name), workload_name(f.workload),
            STR_ARG(label), with_unit(a, c.compulsory_bytes, "B").p,
            with_unit(a, c.flops, "flop").p, STR_ARG(t->title));
        return;
    }
    json *j = json_object();
    json_set_str(j, "file", str_view(path));
    json_set_str(j, "name", t->name);
    json_set_str(j, "title", t->title);
    json_set_str(j, "workload", str_view(workload_name(f.workload)));
    json_set_str(j, "shape", label);
    json_set_f64(j, "compulsory_bytes", c.compulsory_bytes);
    json_set_f64(j, "flops", c.flops);
    json_set_f64(j, "flops_contraction", c.flops_contraction);
    json_set_f64(j, "intensity", c.intensity);
    json_push(l->array, j);
}

static void list_file(struct listing *l, const char *path) {
    struct arena *a = arena_new(256u << 20);
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    if (task_load(path, a, &task, &err) && task_bind(task, NULL, 0, a, &inst, &err))
        describe(l, path, inst, a);
    else
        describe_error(l, path, &err);
    arena_free(a);
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct walk {
    struct arena *a;
    const char **paths;
    size_t n, cap;
};

static bool walk_folder(struct walk *w, const char *path, int deep, struct err *err) {
    str *names;
    size_t n;
    if (!dir_list(path, w->a, &names, &n, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *at = arena_printf(w->a, "%s/%.*s", path, STR_ARG(names[i])).p;
        if (names[i].p[0] == '.')
            continue;
        if (is_folder(at)) {
            if (deep < FOLDERS_DEEP && !walk_folder(w, at, deep + 1, err))
                return false;
        } else if (str_ends(names[i], S(".task"))) {
            w->paths = mem_grow(w->paths, &w->cap, w->n + 1, sizeof *w->paths);
            w->paths[w->n++] = at;
        }
    }
    return true;
}

bool ui_find_tasks(const char *folder, struct arena *a, const char ***paths, size_t *n,
                   struct err *err) {
    struct walk w = {.a = a};
    bool ok = walk_folder(&w, folder, 0, err);
    if (ok && !w.n)
        ok = err_set(err, ERR_INPUT, "%s: no .task file in it", folder);
    *n = w.n;
    *paths = arena_array(a, const char *, w.n ? w.n : 1);
    for (size_t i = 0; i < w.n; i++)
        (*paths)[i] = w.paths[i];
    mem_free(w.paths);
    return ok;
}

/* tasks/ here; else beside or above the program, where its source tree or its shared files are. */
static const char *default_folder(struct arena *a) {
    static const char *const usual[] = {"tasks", "lib/cutepilot/tasks"};
    str at = self_path(a);
    if (is_folder("tasks"))
        return "tasks";
    while (at.n > 0) {
        while (at.n > 0 && at.p[at.n - 1] != '/')
            at.n--;
        for (size_t i = 0; at.n && i < sizeof usual / sizeof *usual; i++) {
            const char *path = arena_printf(a, "%.*s%s", STR_ARG(at), usual[i]).p;
            if (is_folder(path))
                return path;
        }
        at.n -= at.n > 0;
    }
    return NULL;
}

int cmd_tasks(struct ui *ui) {
    char *const *args;
    const char **paths;
    struct err err = {0};
    size_t n = options_args(ui->options, &args), npaths;
    struct listing l = {.ui = ui, .array = ui->as_json ? json_array() : NULL};
    const char *folder = n ? args[0] : default_folder(ui->arena);
    bool ok = folder ? ui_find_tasks(folder, ui->arena, &paths, &npaths, &err)
                     : err_set(&err, ERR_INPUT,
                               "no folder 'tasks' here or with the program; name one: "
                               "cutepilot tasks DIR");
    if (!ok) {
        json_free(l.array);
        return ui_fail(ui, &err);
    }
    for (size_t i = 0; i < npaths; i++)
        list_file(&l, paths[i]);
    if (l.array && !ui_print_json(l.array))
        return 3;
    if (l.broken)
        complain("cutepilot: %zu of %zu task files cannot be used\n", l.broken, l.broken + l.tasks);
    return l.broken ? 2 : 0;
}
