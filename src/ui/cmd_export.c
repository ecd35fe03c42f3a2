/* export RUN…: the kernels of runs as a package that other programs use. */
#include "base/file.h"
#include "base/say.h"
#include "export/export.h"
#include "export/graph.h"
#include "export/run.h"
#include "ui/ui.h"

#include <string.h>

/* The command again, as it can be typed. */
static str command_words(struct ui *ui, char *const *runs, size_t n, str name) {
    struct buf b;
    buf_init(&b, 1u << 20);
    buf_puts(&b, S("cutepilot export"));
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, " %s", runs[i]);
    if (option_text(ui->options, "backward"))
        buf_printf(&b, " --backward %s", option_text(ui->options, "backward"));
    buf_printf(&b, " --to %s --name %.*s", option_text(ui->options, "to"), STR_ARG(name));
    if (option_bool(ui->options, "sampled"))
        buf_puts(&b, S(" --sampled"));
    if (option_given(ui->options, "layout"))
        buf_printf(&b, " --layout %s", option_text(ui->options, "layout"));
    str s = arena_str(ui->arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static bool load_runs(struct ui *ui, char *const *runs, size_t n, const char *label,
                      struct export_kernel *kernels, struct err *err) {
    const char *cache = ui_cache(ui);
    struct nvrtc_root nvrtc;
    if (!nvrtc_find(&nvrtc, err) || !nvrtc_probe(&nvrtc, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (file_exists(arena_printf(ui->arena, "%s/suite.json", runs[i]).p))
            return err_set(
                err, ERR_INPUT,
                "%s is the folder of a suite: name the runs in it\nhint: where it is of an "
                "imported module, the same 'cutepilot suite' again makes it one that can "
                "be exported as a whole",
                runs[i]);
        if (!export_run_load(runs[i], option_text(ui->options, "task"),
                             option_bool(ui->options, "sampled"), &nvrtc, cache, ui->arena,
                             &kernels[i], err) ||
            !export_same_operation(kernels[0].task, kernels[i].task, err))
            return false;
        kernels[i].label = arena_printf(ui->arena, "%s%zu", label, i);
    }
    return true;
}

/* Folders of a module's runs; each must be one. */
static bool load_graph(struct ui *ui, char *const *folders, size_t n, struct export_package *p,
                       struct err *err) {
    struct export_graph *g = arena_new_of(ui->arena, struct export_graph);
    static const char *const refused[] = {"backward", "task", "layout"};
    struct nvrtc_root nvrtc;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (option_given(ui->options, refused[i]))
            return err_set(err, ERR_INPUT,
                           "--%s goes with one task; %s is a module of several tasks", refused[i],
                           folders[0]);
    for (size_t i = 0; i < n; i++)
        if (!export_is_graph(folders[i]))
            return err_set(
                err, ERR_INPUT,
                "%s is no module of several tasks, and %s is: they cannot be one package",
                folders[i], folders[0]);
    if (!nvrtc_find(&nvrtc, err) || !nvrtc_probe(&nvrtc, err) ||
        !export_graph_load(folders, n, option_bool(ui->options, "sampled"), &nvrtc, ui_cache(ui),
                           ui->arena, g, err))
        return false;
    export_graph_kernels(g, ui->arena, p);
    return true;
}

/* One operation, or a module of several tasks. */
static bool load_all(struct ui *ui, char *const *runs, size_t n, struct export_package *p,
                     struct err *err) {
    bool graph = false;
    for (size_t i = 0; i < n && !graph; i++)
        graph = export_is_graph(runs[i]);
    if (!graph)
        return load_runs(ui, runs, n, "", p->kernels, err);
    if (export_is_graph(runs[0]))
        return load_graph(ui, runs, n, p, err);
    return err_set(
        err, ERR_INPUT,
        "%s is the run of one task, and others are of a module of several: they cannot be "
        "one package",
        runs[0]);
}

/* The run of --backward, beside the others. */
static bool load_backward(struct ui *ui, struct export_package *p, struct err *err) {
    const char *run = option_text(ui->options, "backward");
    if (!run)
        return true;
    if (strcmp(option_text(ui->options, "to"), "torch") != 0)
        return err_set(err, ERR_INPUT, "--backward goes with --to torch");
    p->backward = arena_new_of(ui->arena, struct export_kernel);
    p->nbackward = 1;
    return load_runs(ui, (char *const[]){(char *)run}, 1, "backward_", p->backward, err);
}

/* --layout, which is about PyTorch packages. */
static bool take_layout(struct ui *ui, struct export_package *p, struct err *err) {
    p->torch = !strcmp(option_text(ui->options, "to"), "torch");
    p->hub = !strcmp(option_text(ui->options, "layout"), "kernel-builder");
    if (p->hub && strcmp(option_text(ui->options, "to"), "torch") != 0)
        return err_set(err, ERR_INPUT, "--layout kernel-builder goes with --to torch");
    return !p->hub || export_hub_name_ok(p->name) ||
           err_set(
               err, ERR_INPUT,
               "%.*s: kernel-builder takes names of two or more characters, lower case, that begin "
               "with a letter and do not end in _: give one by --name",
               STR_ARG(p->name));
}

/* Which tasks of a module are kernels, and which are not. */
static void say_parts(const struct export_package *p) {
    const struct order *o = &p->graph->order;
    say("%s: %.*s, %zu task%s in %zu use%s", p->folder, STR_ARG(p->name), o->ntasks,
        o->ntasks == 1 ? "" : "s", o->nuses, o->nuses == 1 ? "" : "s");
    say(p->graph->without ? ", %zu by kernels" : ", all by kernels", o->ntasks - p->graph->without);
    for (size_t i = 0, said = 0; i < o->ntasks; i++)
        if (!p->graph->parts[i].n)
            say("%s%.*s",
                said++ ? ", " : "; by PyTorch, for want of a kernel: ", STR_ARG(o->tasks[i].name));
    say("; README.md there says more\n");
}

static json *parts_json(const struct ui *ui, const struct export_graph *g) {
    json *parts = json_object();
    for (size_t i = 0; i < g->order.ntasks; i++)
        json_set_i64(parts, arena_cstr(ui->arena, g->order.tasks[i].name), (int64_t)g->parts[i].n);
    return parts;
}

static int finish(const struct ui *ui, const struct export_package *p) {
    if (!ui->as_json && p->graph) {
        say_parts(p);
        return 0;
    }
    if (!ui->as_json) {
        say("%s: %.*s, %zu kernel%s, for %s; README.md there says more\n", p->folder,
            STR_ARG(p->name), p->n, p->n == 1 ? "" : "s", option_text(ui->options, "to"));
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "folder", str_view(p->folder));
    json_set_str(j, "name", p->name);
    json_set_i64(j, "kernels", (int64_t)p->n);
    if (p->graph)
        json_set(j, "parts", parts_json(ui, p->graph));
    return ui_print_json(j) ? 0 : 3;
}

static bool write_package(const struct export_package *p, const char *to, struct err *err) {
    if (!strcmp(to, "c"))
        return p->graph ? export_graph_c(p, err) : export_c(p, err);
    if (!strcmp(to, "torch"))
        return p->graph ? export_graph_torch(p, err) : export_torch(p, err);
    return export_cubin(p, err);
}

int cmd_export(struct ui *ui) {
    char *const *runs;
    struct err err = {0};
    size_t n = options_args(ui->options, &runs);
    const char *to = option_text(ui->options, "to"), *named = option_text(ui->options, "name"),
               *out = option_text(ui->options, "out");
    struct export_package p = {.assets = option_text(ui->options, "assets"),
                               .kernels = arena_array(ui->arena, struct export_kernel, n),
                               .n = n,
                               .mem = ui->arena};
    bool ok = (!named || export_name_ok(str_view(named)) ||
               err_set(&err, ERR_INPUT,
                       "--name %s: a letter, then letters, digits and _, no keyword of C or "
                       "Python, and no module or header that a package needs itself",
                       named)) &&
              load_all(ui, runs, n, &p, &err) && load_backward(ui, &p, &err);
    if (ok) {
        p.name = named     ? str_view(named)
                 : p.graph ? p.graph->order.module
                           : p.kernels[0].task->name;
        p.folder = out ? out : arena_cstr(ui->arena, p.name);
        p.command = command_words(ui, runs, n, p.name);
        ok = export_name_ok(p.name) ||
             err_set(&err, ERR_INPUT, "the name %.*s cannot be a package's: give one by --name",
                     STR_ARG(p.name));
        ok = ok && take_layout(ui, &p, &err);
    }
    ok = ok && write_package(&p, to, &err);
    return ok ? finish(ui, &p) : ui_fail(ui, &err);
}
