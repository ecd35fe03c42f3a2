/* task show, task eval, task cost. */
#include "base/file.h"
#include "base/npy.h"
#include "spec/cost.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "ui/ui.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVAL_MAX_BYTES (8ull << 30)

int cmd_task_show(struct ui *ui) {
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    struct buf b;
    if (!ui_load_task(ui, 0, &task, &inst, &err))
        return ui_fail(ui, &err);
    buf_init(&b, 16u << 20);
    task_show(inst, &b);
    bool ok;
    if (ui->as_json) {
        json *j = json_object();
        json_set_str(j, "name", task->name);
        json_set_str(j, "title", task->title);
        json_set_str(j, "accuracy", str_view(accuracy_name(task->accuracy)));
        json_set_str(j, "text", buf_str(&b));
        ok = ui_print_json(j);
    } else {
        ok = ui_flush(b.p, b.n);
    }
    buf_release(&b);
    return ok ? 0 : 3;
}

int cmd_task_cost(struct ui *ui) {
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    struct cost c;
    struct features f;
    if (!ui_load_task(ui, 0, &task, &inst, &err))
        return ui_fail(ui, &err);
    cost_of(inst, &c);
    features_of(inst, &f);
    if (!ui->as_json) {
        printf("%-18s %s\n", "workload", workload_name(f.workload));
        printf("%-18s %.0f (%.0f read, %.0f written)\n", "compulsory bytes", c.compulsory_bytes,
               c.read_bytes, c.write_bytes);
        printf("%-18s %.0f (%.0f add/mul, %.0f special)\n", "flops", c.flops, c.flops_add_mul,
               c.flops_special);
        printf("%-18s %.0f\n", "contractions", c.flops_contraction);
        printf("%-18s %.3f flops a byte\n", "intensity", c.intensity);
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "workload", str_view(workload_name(f.workload)));
    json_set_f64(j, "compulsory_bytes", c.compulsory_bytes);
    json_set_f64(j, "read_bytes", c.read_bytes);
    json_set_f64(j, "write_bytes", c.write_bytes);
    json_set_f64(j, "flops", c.flops);
    json_set_f64(j, "flops_add_mul", c.flops_add_mul);
    json_set_f64(j, "flops_special", c.flops_special);
    json_set_f64(j, "flops_contraction", c.flops_contraction);
    json_set_f64(j, "intensity", c.intensity);
    return ui_print_json(j) ? 0 : 3;
}

/* ---- eval ---- */

struct evaluation {
    const struct inst *in;
    const char *from, *to;
    void *data[TASK_MAX_TENSORS]; /* inputs */
    struct reference *refs;
    size_t nrefs;
};

static const char *tensor_path(struct ui *ui, const char *dir, const struct tensor *t) {
    return arena_printf(ui->arena, "%s/%.*s.npy", dir, STR_ARG(t->name)).p;
}

/* An inout tensor has two contents: NAME.npy is the one before, as --in reads it. */
static const char *result_path(struct ui *ui, const char *dir, const struct tensor *t) {
    if (t->role != TENSOR_INOUT)
        return tensor_path(ui, dir, t);
    return arena_printf(ui->arena, "%s/%.*s.out.npy", dir, STR_ARG(t->name)).p;
}

static bool read_input(struct ui *ui, struct evaluation *e, size_t i, struct err *err) {
    const struct tensor *t = &e->in->task->tensors[i];
    const struct bound_tensor *b = &e->in->tensors[i];
    const char *path = tensor_path(ui, e->from, t);
    struct npy npy;
    if (!npy_read(path, EVAL_MAX_BYTES, ui->arena, &npy, err))
        return false;
    bool same = npy.rank == t->rank && !strcmp(npy.descr, dtype_info(t->dtype)->npy);
    for (size_t d = 0; same && d < t->rank; d++)
        same = npy.shape[d] == b->extent[d];
    if (!same)
        return err_set(err, ERR_INPUT, "%s: not the task's shape and type (%s)", path,
                       dtype_info(t->dtype)->npy);
    memcpy(e->data[i], npy.data, b->bytes);
    return true;
}

static bool make_inputs(struct ui *ui, struct evaluation *e, struct err *err) {
    const char *name = option_text(ui->options, "data");
    uint64_t seed = (uint64_t)option_int(ui->options, "seed");
    struct data_scale scale;
    enum data_kind kind;
    size_t total = 0;
    if (!data_find(str_view(name), &kind))
        return err_set(err, ERR_INPUT, "--data %s: no such kind of data; see docs/TASKS.md", name);
    for (size_t i = 0; i < e->in->task->ntensors; i++)
        total += (size_t)e->in->tensors[i].count * 16 + e->in->tensors[i].bytes;
    if (total > EVAL_MAX_BYTES)
        return err_set(err, ERR_INPUT,
                       "this shape needs %zu bytes to evaluate; choose a smaller one with --set",
                       total);
    if (!data_scale_find(e->in, seed, &scale, err))
        return false;
    for (size_t i = 0; i < e->in->task->ntensors; i++) {
        if (!tensor_is_input(&e->in->task->tensors[i]))
            continue;
        e->data[i] = mem_alloc(e->in->tensors[i].bytes + 1);
        if (e->from) {
            if (!read_input(ui, e, i, err))
                return false;
        } else {
            data_fill(e->in, &scale, i, kind, seed, 0, e->in->tensors[i].count, e->data[i]);
        }
    }
    return true;
}

static bool write_tensor(const char *path, const struct evaluation *e, size_t i, const char *descr,
                         size_t item, const void *data, struct err *err) {
    const struct tensor *t = &e->in->task->tensors[i];
    struct npy npy = {.item = item,
                      .rank = t->rank,
                      .data = data,
                      .bytes = (size_t)e->in->tensors[i].count * item};
    snprintf(npy.descr, sizeof npy.descr, "%s", descr);
    memcpy(npy.shape, e->in->tensors[i].extent, sizeof *npy.shape * t->rank);
    return npy_write(path, &npy, err);
}

/* Inputs in their own types, outputs as the fp64 reference. */
static bool write_all(struct ui *ui, const struct evaluation *e, struct err *err) {
    if (!dir_make(e->to, err))
        return false;
    for (size_t i = 0; i < e->in->task->ntensors; i++) {
        const struct tensor *t = &e->in->task->tensors[i];
        const struct dtype_info *d = dtype_info(t->dtype);
        if (e->data[i] &&
            !write_tensor(tensor_path(ui, e->to, t), e, i, d->npy, d->bytes, e->data[i], err))
            return false;
    }
    for (size_t r = 0; r < e->nrefs; r++) {
        const struct tensor *t = &e->in->task->tensors[e->refs[r].tensor];
        if (!write_tensor(result_path(ui, e->to, t), e, e->refs[r].tensor, "<f8", 8,
                          e->refs[r].value, err))
            return false;
    }
    return true;
}

static json *summary(const struct evaluation *e) {
    json *j = json_object(), *outputs = json_array();
    for (size_t r = 0; r < e->nrefs; r++) {
        const struct reference *ref = &e->refs[r];
        double sum = 0;
        for (size_t i = 0; i < ref->count; i++)
            sum += ref->value[i];
        json *o = json_object();
        json_set_str(o, "name", e->in->task->tensors[ref->tensor].name);
        json_set_i64(o, "elements", (int64_t)ref->count);
        json_set_f64(o, "first", ref->value[0]);
        json_set_f64(o, "last", ref->value[ref->count - 1]);
        json_set_f64(o, "mean", sum / (double)ref->count);
        json_push(outputs, o);
    }
    json_set(j, "outputs", outputs);
    return j;
}

static void print_summary(const json *j) {
    const json *outputs = json_get(j, "outputs");
    for (size_t i = 0; i < json_len(outputs); i++) {
        double first = 0, last = 0, mean = 0;
        str name = {0};
        const json *o = json_at(outputs, i);
        json_get_str(o, "name", &name);
        json_get_f64(o, "first", &first);
        json_get_f64(o, "last", &last);
        json_get_f64(o, "mean", &mean);
        printf("%.*s: first %.17g, last %.17g, mean %.17g\n", STR_ARG(name), first, last, mean);
    }
}

static bool evaluate(struct ui *ui, struct evaluation *e, struct err *err) {
    unsigned threads = (unsigned)option_int(ui->options, "threads");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return make_inputs(ui, e, err) &&
           reference_eval(e->in, (const void *const *)e->data,
                          threads     ? threads
                          : cores > 0 ? (unsigned)cores
                                      : 1,
                          &e->refs, &e->nrefs, NULL, err) &&
           (!e->to || write_all(ui, e, err));
}

int cmd_task_eval(struct ui *ui) {
    struct evaluation e = {.from = option_text(ui->options, "in"),
                           .to = option_text(ui->options, "out")};
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    if (!ui_load_task(ui, 0, &task, &inst, &err))
        return ui_fail(ui, &err);
    e.in = inst;
    bool ok = evaluate(ui, &e, &err);
    int code = ok ? 0 : ui_fail(ui, &err);
    if (ok) {
        json *j = summary(&e);
        if (ui->as_json) {
            code = ui_print_json(j) ? 0 : 3;
        } else {
            print_summary(j);
            json_free(j);
        }
    }
    for (size_t i = 0; i < task->ntensors; i++)
        mem_free(e.data[i]);
    reference_release(e.refs, e.nrefs);
    return code;
}
