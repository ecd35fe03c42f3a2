/* task check TASK|DIR…: tasks against PyTorch. A task's torch line is evaluated on the inputs of
 * its check shapes, widened to float64, and held against the reference. */
#include "base/parallel.h"
#include "base/say.h"
#include "eval/torch.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "spec/value.h"
#include "ui/ui.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* Errors are relative to an element's magnitude, or to SMALL of the largest of its tensor where
 * that is more: sums that cancel keep no digits of their own. Where all of a tensor cancels, what
 * is left is rounding, in proportion to the terms: the reference's estimate says how much of it an
 * honest evaluation in fp32 has, and one in float64 has 2^-29 of that. */
#define BOUND  1e-9
#define SMALL  1e-6
#define DOUBLE 0x1p-29
#define SEEDS  2

static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED};

struct checking {
    struct ui *ui;
    struct torch_helper *torch;
    json *list; /* NULL: lines */
    unsigned threads;
    size_t agree, differ, unusable, lacking;
};

/* One task's turn. */
struct turn {
    const char *path;
    const struct task *task;
    struct arena *mem;
    size_t shapes, trials;
    double worst;
    bool lacks;
};

/* ---- values ---- */

static double scale_of(const double *values, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]) && fabs(values[i]) > most)
            most = fabs(values[i]);
    return SMALL * most;
}

/* The element's error; infinite where the two are not even of one kind. */
static double error_of(double ours, double theirs, double scale) {
    if (isnan(ours) || isnan(theirs))
        return isnan(ours) && isnan(theirs) ? 0 : INFINITY;
    if (ours == theirs)
        return 0;
    if (isinf(ours) || isinf(theirs))
        return INFINITY;
    return fabs(ours - theirs) / fmax(fmax(fabs(theirs), scale), 1e-300);
}

static bool compare(struct turn *t, const struct inst *in, const struct reference *ref,
                    const double *theirs, struct err *err) {
    double scale = scale_of(theirs, ref->count);
    double roundings = DOUBLE * accuracy_limits(in->task->accuracy).worst;
    for (size_t i = 0; i < ref->count; i++) {
        double e = error_of(ref->value[i], theirs[i], scale), room = roundings * ref->estimate[i];
        if (isfinite(room) && fabs(ref->value[i] - theirs[i]) <= room)
            continue;
        t->worst = fmax(t->worst, e);
        if (!(e <= BOUND))
            return err_set(err, ERR_NO, "%.*s is %.17g, PyTorch says %.17g",
                           STR_ARG(element_name(in, ref->tensor, (int64_t)i, t->mem)),
                           ref->value[i], theirs[i]);
    }
    return true;
}

/* ---- lets that the task rounds and the line does not ---- */

static bool rounds(const struct tensor *t) {
    return t->role == TENSOR_LET && dtype_info(t->dtype)->kind == 'f' && t->dtype != DTYPE_F64;
}

static const char *torch_dtype(enum dtype t) {
    return t == DTYPE_BF16 ? "bfloat16" : t == DTYPE_F16 ? "float16" : "float32";
}

/* Whether PyTorch's values are the reference's where no let but those kept (by tensor) is rounded.
 */
static bool agrees_without(struct checking *c, const struct turn *t, const struct inst *in,
                           const void *const *inputs, double *const *theirs, const bool *kept) {
    struct task task = *in->task;
    struct inst unrounded = *in;
    struct reference *refs = NULL;
    struct turn ours = {.mem = t->mem};
    struct err ignored = {0};
    size_t n = 0;
    task.tensors = arena_array(t->mem, struct tensor, task.ntensors);
    for (size_t i = 0; i < task.ntensors; i++) {
        task.tensors[i] = in->task->tensors[i];
        if (rounds(&task.tensors[i]) && !kept[i])
            task.tensors[i].dtype = DTYPE_F64;
    }
    unrounded.task = &task;
    bool ok = reference_eval(&unrounded, inputs, c->threads, &refs, &n, NULL, &ignored);
    for (size_t i = 0; i < n && ok; i++)
        ok = compare(&ours, &unrounded, &refs[i], theirs[i], &ignored);
    reference_release(refs, n);
    return ok;
}

/* Where the difference is gone once a let is not rounded, that is said, with what to write. */
static void explain(struct checking *c, const struct turn *t, const struct inst *in,
                    const void *const *inputs, double *const *theirs, struct err *err) {
    const struct task *task = in->task;
    bool kept[TASK_MAX_TENSORS] = {false};
    str names = S("");
    enum dtype first = DTYPE_F64;
    if (!agrees_without(c, t, in, inputs, theirs, kept))
        return;
    for (size_t i = 0; i < task->ntensors; i++) { /* those that need not be blamed */
        kept[i] = rounds(&task->tensors[i]);
        kept[i] = kept[i] && agrees_without(c, t, in, inputs, theirs, kept);
    }
    for (size_t i = 0; i < task->ntensors; i++) {
        const struct tensor *let = &task->tensors[i];
        if (!rounds(let) || kept[i])
            continue;
        first = names.n ? first : let->dtype;
        names = arena_printf(t->mem, "%.*s%s%.*s to %s", STR_ARG(names), names.n ? ", " : "",
                             STR_ARG(let->name), dtype_info(let->dtype)->name);
    }
    if (!names.n)
        return;
    err_set(err, err->kind,
            "%.*s\nhint: that is the task's rounding of %.*s: the line gets its inputs widened to "
            "float64, and does not round there. Round in the line too, by "
            ".to(torch.%s).to(torch.float64), or leave the type of the let out",
            STR_ARG(arena_str(t->mem, str_view(err->text))), STR_ARG(names), torch_dtype(first));
}

static bool compare_all(struct checking *c, struct turn *t, const struct inst *in,
                        const void *const *inputs, struct err *err) {
    double *values[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    bool ok = reference_eval(in, inputs, c->threads, &refs, &n, NULL, err);
    for (size_t i = 0; i < n; i++)
        values[i] = mem_alloc(refs[i].count * sizeof(double));
    bool told = ok && torch_values(c->torch, in, inputs, values, &t->lacks, err);
    ok = told;
    for (size_t i = 0; i < n && ok; i++)
        ok = compare(t, in, &refs[i], values[i], err);
    if (told && !ok)
        explain(c, t, in, inputs, values, err);
    for (size_t i = 0; i < n; i++)
        mem_free(values[i]);
    reference_release(refs, n);
    return ok;
}

static bool check_data(struct checking *c, struct turn *t, const struct inst *in,
                       enum data_kind kind, uint64_t seed, struct err *err) {
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct data_scale scale;
    if (!data_scale_find_for(in, kind, seed, c->threads, &scale, err))
        return false;
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_is_input(&in->task->tensors[i])) {
            inputs[i] = mem_alloc(in->tensors[i].bytes + 1);
            data_fill(in, &scale, i, kind, seed, 0, in->tensors[i].count, inputs[i]);
        }
    bool ok = compare_all(c, t, in, (const void *const *)inputs, err);
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(inputs[i]);
    t->trials++;
    if (!ok && err->kind == ERR_ENV && !t->lacks)
        return false; /* not this shape's doing */
    return ok || err_wrap(err, "at %.*s on %s data, seed %llu", STR_ARG(inst_label(in, t->mem)),
                          data_name(kind), (unsigned long long)seed);
}

static bool check_task(struct checking *c, struct turn *t, struct err *err) {
    uint64_t first = (uint64_t)option_int(c->ui->options, "seed");
    struct inst *in;
    if (!t->task->torch.n)
        return err_set(err, ERR_INPUT, "the task has no torch line");
    if (!t->task->nchecks)
        return err_set(err, ERR_INPUT,
                       "the task has no check line, and is checked at small shapes");
    for (; t->shapes < t->task->nchecks; t->shapes++) {
        if (!task_bind_check(t->task, t->shapes, t->mem, &in, err))
            return false;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (uint64_t seed = first; seed < first + SEEDS; seed++)
                if (!check_data(c, t, in, kinds[k], seed, err))
                    return false;
    }
    return true;
}

/* ---- the report ---- */

static const char *status_of(const struct turn *t, const struct err *why) {
    return !why->kind            ? "agrees"
           : t->lacks            ? "lacking"
           : why->kind == ERR_NO ? "differs"
                                 : "unusable";
}

static void report(struct checking *c, const struct turn *t, const struct err *why) {
    str name = t->task ? t->task->name : str_view(t->path);
    const char *status = status_of(t, why);
    c->agree += !why->kind;
    c->lacking += why->kind && t->lacks;
    c->differ += why->kind == ERR_NO && !t->lacks;
    c->unusable += why->kind && why->kind != ERR_NO && !t->lacks;
    if (!c->list) {
        say("%-44.*s %-9s", STR_ARG(name), status);
        if (why->kind)
            say(" %s\n", why->text);
        else
            say(" %zu shapes, largest error %.1e\n", t->shapes, t->worst);
        return;
    }
    json *j = json_object();
    json_set_str(j, "file", str_view(t->path));
    json_set_str(j, "name", name);
    json_set_str(j, "status", str_view(status));
    json_set_i64(j, "shapes", (int64_t)t->shapes);
    json_set_i64(j, "trials", (int64_t)t->trials);
    json_set_f64(j, "worst", t->worst);
    if (why->kind)
        json_set_str(j, "why", str_view(why->text));
    json_push(c->list, j);
}

/* False with err: PyTorch is not there, or went away. */
static bool check_file(struct checking *c, const char *path, struct err *err) {
    struct turn t = {.path = path, .mem = arena_new(256u << 20)};
    struct err why = {0};
    struct task *task;
    if (task_load(path, t.mem, &task, &why)) {
        t.task = task;
        check_task(c, &t, &why);
    }
    bool gone = why.kind == ERR_ENV && !t.lacks;
    if (gone)
        *err = why;
    else
        report(c, &t, &why);
    arena_free(t.mem);
    return !gone;
}

static str version_of(const struct checking *c) {
    const json *facts = torch_facts(c->torch);
    str version = {0};
    if (facts)
        json_get_str(facts, "torch", &version);
    return version;
}

static bool finish(struct checking *c) {
    str version = version_of(c);
    if (!c->list) {
        say("\n%zu agree, %zu differ, %zu cannot be checked", c->agree, c->differ, c->unusable);
        if (c->lacking)
            say(", %zu call what this PyTorch does not have", c->lacking);
        if (version.n)
            say("; PyTorch %.*s, bound %.0e", STR_ARG(version), BOUND);
        say("\n");
        return true;
    }
    json *j = json_object();
    json_set_str(j, "torch", version);
    json_set_f64(j, "bound", BOUND);
    json_set_i64(j, "agree", (int64_t)c->agree);
    json_set_i64(j, "differ", (int64_t)c->differ);
    json_set_i64(j, "unusable", (int64_t)c->unusable);
    json_set_i64(j, "lacking", (int64_t)c->lacking);
    json_set(j, "tasks", c->list);
    c->list = NULL;
    return ui_print_json(j);
}

/* ---- the command ---- */

static bool check_argument(struct checking *c, const char *path, struct err *err) {
    struct stat st;
    const char **found = &path;
    size_t n = 1;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
        !ui_find_tasks(path, c->ui->arena, &found, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!check_file(c, found[i], err))
            return false;
    return true;
}

int cmd_task_check(struct ui *ui) {
    char *const *paths;
    size_t n = options_args(ui->options, &paths);
    struct err err = {0};
    struct torch_options to = {.python = option_text(ui->options, "python"),
                               .assets = option_text(ui->options, "assets")};
    struct checking c = {.ui = ui,
                         .list = ui->as_json ? json_array() : NULL,
                         .threads = cores_usable(),
                         .torch = torch_open_values(&to, &err)};
    bool ok = c.torch != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = check_argument(&c, paths[i], &err);
    int code = !ok           ? ui_fail(ui, &err)
               : !finish(&c) ? 3
               : c.differ    ? 1
               : c.unusable  ? 2
               : c.lacking   ? 3
                             : 0;
    torch_close(c.torch);
    json_free(c.list);
    return code;
}
