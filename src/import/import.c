#include "import/import.h"

#include "base/file.h"
#include "import/compare.h"
#include "import/cut.h"
#include "import/refused.h"
#include "import/write.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    START_MS = 180000, /* importing PyTorch from a cold disk */
    GRACE_MS = 60000,  /* the helper itself gives up earlier, and says where */
    GRAPH_BYTES = 64 << 20,
};

#define HELPER_ADDRESS_BYTES ((size_t)16 << 30) /* address space; PyTorch itself takes 3 GiB */
#define HELPER_FILE_BYTES    ((size_t)2 << 30)
#define HELPER_CPU_S         1800u

struct importer {
    struct import_options o;
    struct python *python; /* NULL: not started, or lost */
};

/* ---- the module ---- */

static json *first_request(const struct import_options *o, const char *class, const char *path) {
    json *request = json_object(), *keep = json_array();
    json_set_str(request, "file", str_view(path));
    if (class)
        json_set_str(request, "class", str_view(class));
    for (size_t i = 0; i < op_count(); i++)
        json_push_str(keep, str_view(op_at(i)->name));
    json_set(request, "keep", keep);
    json_set_i64(request, "seconds", o->limit_s);
    return request;
}

/* The file's name, as the user knows it, for the name of the task. */
static str stem_of(const char *file, struct arena *a) {
    const char *name = strrchr(file, '/');
    str stem = str_view(name ? name + 1 : file);
    const char *dot = memchr(stem.p, '.', stem.n);
    return arena_str(a, dot && dot > stem.p ? str_cut(stem, 0, (size_t)(dot - stem.p)) : stem);
}

/* The graph as one task. False without an error: it is too large for one. */
static bool make_task(struct graph *g, const char *file, struct arena *a, struct imported *out,
                      struct err *err) {
    struct buf text;
    struct task *task;
    bool too_large = false;
    buf_init(&text, TASK_MAX_BYTES);
    bool ok = write_task(g, file, a, &text, &too_large, err);
    if (ok) {
        str made = arena_str(a, buf_str(&text));
        str name = arena_printf(a, "%.*s.task", STR_ARG(out->name));
        ok = task_parse(name, made, a, &task, err);
        if (ok)
            cut_none(g, out->name, made, task, a, &out->chain);
        else
            task_refused(err, file, made);
    }
    if (too_large)
        *err = (struct err){0};
    buf_release(&text);
    return ok;
}

/* … or as several, where it must be. */
static bool make_chain(const char *file, struct arena *a, struct imported *out, struct err *err) {
    struct graph *g = arena_new_of(a, struct graph), again;
    if (!graph_read(out->graph, a, g, err) || !graph_read(out->graph, a, &again, err))
        return err_wrap(err, "%s", file);
    out->pytorch = arena_str(a, g->pytorch);
    if (!cut_needed(g) && make_task(&again, file, a, out, err)) {
        out->chain.graph = g;
        return true;
    }
    return !err->kind && cut_graph(out->graph, g, file, a, &out->chain, err);
}

/* Without its torch line. */
static str without_line(str text) {
    size_t at = str_find(text, S("\ntorch \""));
    return at < text.n ? str_cut(text, 0, at + 1) : text;
}

/* Of parts the other way round: theirs is added where it is right. */
static void put_lines(struct chain *c, struct arena *a) {
    for (size_t i = 0; i < c->nparts; i++) {
        struct part *p = &c->parts[i];
        if (p->line.n && !p->wrong_line)
            p->text = arena_printf(a, "%.*storch \"%.*s\"\n", STR_ARG(p->text), STR_ARG(p->line));
    }
}

static bool start(struct importer *i, struct err *err) {
    struct python_options how = {
        .what = "the module's process",
        .role = "module",
        .script = "import/helper.py",
        .python = i->o.python,
        .assets = i->o.assets,
        .program = i->o.program,
        .limits = {HELPER_ADDRESS_BYTES, HELPER_FILE_BYTES, HELPER_CPU_S, 0}};
    if (i->python)
        return true;
    json *hello = NULL;
    i->python = python_open(&how, err);
    bool ok = i->python && python_start(i->python, START_MS, &hello, err);
    if (ok && i->o.on_confined)
        i->o.on_confined(i->o.ctx, json_get(hello, "sandbox"));
    json_free(hello);
    return ok;
}

/* A helper that does not say that the file is closed is not used again. */
static void close_file(struct importer *i) {
    struct err ignored = {0};
    json *request = json_object();
    json_set_bool(request, "close", true);
    json *answer = i->python ? python_ask(i->python, request, START_MS, &ignored) : NULL;
    if (!answer) {
        python_close(i->python);
        i->python = NULL;
    }
    json_free(request);
    json_free(answer);
}

static bool import_live(struct importer *i, const char *file, const char *class, struct arena *a,
                        struct imported *out, struct err *err) {
    char path[PATH_MAX];
    if (!realpath(file, path))
        return err_errno(err, ERR_INPUT, "open %s", file);
    json *request = first_request(&i->o, class, path);
    out->graph =
        start(i, err) ? python_ask(i->python, request, i->o.limit_s * 1000 + GRACE_MS, err) : NULL;
    bool ok = out->graph && make_chain(file, a, out, err);
    if (ok) {
        struct comparison_options o = {
            .file = file, .python = i->python, .threads = i->o.threads, .limit_s = i->o.limit_s};
        ok = compare_chain(&o, &out->chain, a, &out->compared, err);
        if (!out->compared.line)
            out->chain.parts[0].text = without_line(out->chain.parts[0].text);
        put_lines(&out->chain, a);
    }
    json_free(request);
    close_file(i);
    return ok;
}

static bool import_recorded(const char *file, struct arena *a, struct imported *out,
                            struct err *err) {
    str text;
    if (!file_read(file, GRAPH_BYTES, a, &text, err))
        return false;
    out->graph = json_parse(text, err);
    if (!out->graph)
        return err_wrap(err, "%s", file);
    bool ok = make_chain(file, a, out, err);
    put_lines(&out->chain, a);
    for (size_t i = 0; i < out->chain.nparts && ok; i++) {
        struct task *task;
        struct inst *in;
        const struct part *p = &out->chain.parts[i];
        ok = (task_parse(p->name, p->text, a, &task, err) &&
              task_bind(task, NULL, 0, a, &in, err)) ||
             task_refused(err, file, p->text);
    }
    return ok;
}

struct importer *importer_new(const struct import_options *o) {
    struct importer *i = mem_alloc(sizeof *i);
    i->o = *o;
    return i;
}

void importer_free(struct importer *i) {
    if (!i)
        return;
    python_close(i->python);
    mem_free(i);
}

bool importer_run(struct importer *i, const char *file, const char *class, struct arena *a,
                  struct imported *out, struct err *err) {
    memset(out, 0, sizeof *out);
    out->name = stem_of(file, a);
    bool ok = str_ends(str_view(file), S(".json")) ? import_recorded(file, a, out, err)
                                                   : import_live(i, file, class, a, out, err);
    if (!ok)
        imported_release(out);
    return ok;
}

void imported_release(struct imported *made) {
    json_free(made->graph);
    chain_release(&made->chain);
    made->graph = NULL;
}
