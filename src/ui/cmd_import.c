/* import: an nn.Module becomes a task. */
#include "base/file.h"
#include "base/parallel.h"
#include "base/say.h"
#include "export/order.h"
#include "import/import.h"
#include "ui/ui.h"

#include <unistd.h>

/* DIR/NAME.json, where --graph says so. */
static bool write_graph(struct ui *ui, struct arena *a, const struct imported *made,
                        struct err *err) {
    const char *dir = option_text(ui->options, "graph");
    if (!dir)
        return true;
    const char *path = arena_printf(a, "%s/%.*s.json", dir, STR_ARG(made->name)).p;
    if (file_exists(path))
        return err_set(err, ERR_INPUT, "%s exists", path);
    struct buf text;
    json *graph = json_copy(made->graph);
    if (made->compared.shapes && !made->compared.line)
        json_set(graph, "torch", NULL); /* as the task, it has no line that was found wrong */
    buf_init(&text, 64u << 20);
    json_write(graph, &text);
    json_free(graph);
    buf_putc(&text, '\n');
    bool ok = !text.failed || err_set(err, ERR_NO, "the graph is too long for a file");
    ok = ok && dir_make(dir, err) && file_replace(path, buf_str(&text), err);
    buf_release(&text);
    return ok;
}

/* Several tasks, or one that repeats, are a folder. */
static bool is_folder(const struct imported *made) {
    return made->chain.nuses > 1 || made->chain.uses[0].repeats;
}

/* What confines the files: the last that was said. */
struct confined {
    const struct ui *ui;
    json *sandbox; /* NULL: nothing was run */
};

/* Once for each process that runs files, before it does. */
static void on_confined(void *ctx, const json *sandbox) {
    struct confined *c = ctx;
    str missing = {0};
    json_free(c->sandbox);
    c->sandbox = sandbox ? json_copy(sandbox) : NULL;
    if (!json_get_str(sandbox, "missing", &missing))
        missing = S("it does not say what is in force");
    if (missing.n)
        complain("cutepilot: the module's process is not fully confined: %.*s; import only files "
                 "that you trust, or see %.*s\n",
                 STR_ARG(missing), STR_ARG(ui_command(c->ui, "doctor")));
}

static json *made_json(const char *file, const char *path, const struct imported *made,
                       const struct confined *confined) {
    json *j = json_object();
    json_set_str(j, "file", str_view(file));
    json_set_str(j, is_folder(made) ? "folder" : "task", str_view(path));
    json_set_i64(j, "tasks", (int64_t)made->chain.nparts);
    json_set_i64(j, "uses", (int64_t)made->chain.nuses);
    json_set_str(j, "pytorch", made->pytorch);
    json_set_i64(j, "shapes", (int64_t)made->compared.shapes);
    json_set_i64(j, "seeds", (int64_t)made->compared.seeds);
    json_set_f64(j, "largest_error", made->compared.error);
    if (confined->sandbox && made->compared.shapes)
        json_set(j, "sandbox", json_copy(confined->sandbox));
    return j;
}

/* Parts that PyTorch cannot compute where there is no kernel for them. */
static str without_lines(const struct imported *made, struct arena *a) {
    str names = {0};
    for (size_t i = 0; i < made->chain.nparts; i++) {
        const struct part *p = &made->chain.parts[i];
        if (!p->line.n || p->wrong_line)
            names = arena_printf(a, "%.*s%s%.*s", STR_ARG(names), names.n ? ", " : "",
                                 STR_ARG(p->name));
    }
    return names;
}

static bool report(struct ui *ui, const char *file, const char *path, const struct imported *made,
                   const struct confined *confined) {
    const struct compared *c = &made->compared;
    if (ui->as_json)
        return ui_print_json(made_json(file, path, made, confined));
    if (is_folder(made))
        say("%s: %zu task%s, used %zu times in order\n", path, made->chain.nparts,
            made->chain.nparts == 1 ? "" : "s", made->chain.nuses);
    if (c->shapes)
        say("%s: equal to the module at %zu shape%s with %zu seeds, largest relative error %.1e in "
            "float64 (PyTorch %.*s)\n",
            path, c->shapes, c->shapes == 1 ? "" : "s", c->seeds, c->error, STR_ARG(made->pytorch));
    else
        say("%s: from a recorded graph, not compared with the module\n", path);
    str without = without_lines(made, ui->arena);
    if (is_folder(made) && without.n)
        say("%s: without a torch line, so that an export needs kernels for them: %.*s\n", path,
            STR_ARG(without));
    return true;
}

/* The tasks, then the order, which makes the folder a module. */
static bool write_folder(const char *path, struct arena *a, const struct imported *made,
                         struct err *err) {
    struct buf order;
    bool ok = dir_make(path, err);
    for (size_t i = 0; i < made->chain.nparts && ok; i++) {
        const struct part *p = &made->chain.parts[i];
        ok = file_replace(arena_printf(a, "%s/%.*s.task", path, STR_ARG(p->name)).p, p->text, err);
    }
    buf_init(&order, 64u << 20);
    chain_write(&made->chain, &order);
    ok = ok && (!order.failed || err_set(err, ERR_NO, "the order is too long for a file")) &&
         file_replace(arena_printf(a, "%s/" ORDER_FILE, path).p, buf_str(&order), err);
    buf_release(&order);
    return ok;
}

static bool import_one(struct ui *ui, struct importer *i, const char *file,
                       const struct confined *confined, struct err *err) {
    struct imported made = {0};
    const char *dir = option_text(ui->options, "out"), *into = dir ? dir : ".";
    struct arena *a = arena_new((size_t)4 << 30);
    if (!importer_run(i, file, option_text(ui->options, "class"), a, &made, err)) {
        arena_free(a);
        return false;
    }
    bool folder = is_folder(&made);
    const char *path =
        arena_printf(a, "%s/%.*s%s", into, STR_ARG(made.name), folder ? "" : ".task").p;
    bool ok =
        !file_exists(path) ||
        err_set(err, ERR_INPUT, "%s exists; remove it, or choose another folder with --out", path);
    ok = ok && write_graph(ui, a, &made, err) && dir_make(into, err) &&
         (folder ? write_folder(path, a, &made, err)
                 : file_replace(path, made.chain.parts[0].text, err));
    if (ok && !report(ui, file, path, &made, confined))
        ok = err_set(err, ERR_ENV, "cannot write to stdout");
    imported_release(&made);
    arena_free(a);
    return ok;
}

/* Of several files each is tried; the exit code is that of the last that failed. */
int cmd_import(struct ui *ui) {
    char *const *args;
    size_t n = options_args(ui->options, &args);
    struct confined confined = {.ui = ui};
    struct import_options o = {.on_confined = on_confined,
                               .ctx = &confined,
                               .python = option_text(ui->options, "python"),
                               .assets = option_text(ui->options, "assets"),
                               .threads = cores_usable(),
                               .limit_s = (unsigned)option_int(ui->options, "import-limit")};
    struct importer *i = importer_new(&o);
    int code = 0;
    for (size_t k = 0; k < n; k++) {
        struct err err = {0};
        if (!import_one(ui, i, args[k], &confined, &err))
            code = ui_fail(ui, &err);
    }
    importer_free(i);
    json_free(confined.sandbox);
    return code;
}
