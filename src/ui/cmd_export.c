/* export RUN…: the kernels of runs as a package that other programs use. */
#include "base/file.h"
#include "base/say.h"
#include "export/export.h"
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

static bool load_runs(struct ui *ui, char *const *runs, size_t n, struct export_kernel *kernels,
                      struct err *err) {
    const char *cache = ui_cache(ui);
    struct nvrtc_root nvrtc;
    if (!nvrtc_find(&nvrtc, err) || !nvrtc_probe(&nvrtc, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!export_run_load(runs[i], option_text(ui->options, "task"),
                             option_bool(ui->options, "sampled"), &nvrtc, cache, ui->arena,
                             &kernels[i], err) ||
            !export_same_operation(kernels[0].task, kernels[i].task, err))
            return false;
    return true;
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
    return load_runs(ui, (char *const[]){(char *)run}, 1, p->backward, err);
}

/* --layout, which is about PyTorch packages. */
static bool take_layout(struct ui *ui, struct export_package *p, struct err *err) {
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

static int finish(const struct ui *ui, const struct export_package *p) {
    if (!ui->as_json) {
        say("%s: %.*s, %zu kernel%s, for %s; README.md there says more\n", p->folder,
            STR_ARG(p->name), p->n, p->n == 1 ? "" : "s", option_text(ui->options, "to"));
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "folder", str_view(p->folder));
    json_set_str(j, "name", p->name);
    json_set_i64(j, "kernels", (int64_t)p->n);
    return ui_print_json(j) ? 0 : 3;
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
              load_runs(ui, runs, n, p.kernels, &err) && load_backward(ui, &p, &err);
    if (ok) {
        p.name = named ? str_view(named) : p.kernels[0].task->name;
        p.folder = out ? out : arena_cstr(ui->arena, p.name);
        p.command = command_words(ui, runs, n, p.name);
        ok = export_name_ok(p.name) ||
             err_set(&err, ERR_INPUT,
                     "the task's name, %.*s, cannot be a package's: give one by "
                     "--name",
                     STR_ARG(p.name));
        ok = ok && take_layout(ui, &p, &err);
    }
    ok = ok && (!strcmp(to, "c")       ? export_c(&p, &err)
                : !strcmp(to, "torch") ? export_torch(&p, &err)
                                       : export_cubin(&p, &err));
    return ok ? finish(ui, &p) : ui_fail(ui, &err);
}
