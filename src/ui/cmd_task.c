/* task show, task eval, task judge, task cost. */
#include "base/file.h"
#include "base/npy.h"
#include "base/parallel.h"
#include "base/say.h"
#include "kernel/verdict.h"
#include "spec/cost.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVAL_MAX_BYTES (8ull << 30)

/* A check line whose shape does not fit is found when a kernel is verified; better here. */
static bool bind_checks(const struct task *task, struct err *err) {
    struct arena *a = arena_new(256u << 20);
    struct inst *inst;
    bool ok = true;
    for (size_t i = 0; i < task->nchecks && ok; i++)
        ok = task_bind_check(task, i, a, &inst, err);
    arena_free(a);
    return ok;
}

int cmd_task_show(struct ui *ui) {
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    struct buf b;
    if (!ui_load_task(ui, 0, &task, &inst, &err) || !bind_checks(task, &err))
        return ui_fail(ui, &err);
    ui_warn_task(inst);
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
        say_text(buf_str(&b));
        ok = true; /* whether it arrived is checked at the end of the command */
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
        say("%-18s %s\n", "workload", workload_name(f.workload));
        say("%-18s %.0f (%.0f read, %.0f written)\n", "compulsory bytes", c.compulsory_bytes,
            c.read_bytes, c.write_bytes);
        double reach = c.reach_read_bytes + c.reach_write_bytes;
        if (reach > c.compulsory_bytes)
            say("%-18s %.0f (%.0f read, %.0f written)\n", "as data may ask", reach,
                c.reach_read_bytes, c.reach_write_bytes);
        say("%-18s %.0f (%.0f add/mul, %.0f special)\n", "flops", c.flops, c.flops_add_mul,
            c.flops_special);
        say("%-18s %.0f\n", "contractions", c.flops_contraction);
        say("%-18s %.3f flops a byte\n", "intensity", c.intensity);
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "workload", str_view(workload_name(f.workload)));
    json_set_f64(j, "compulsory_bytes", c.compulsory_bytes);
    json_set_f64(j, "read_bytes", c.read_bytes);
    json_set_f64(j, "write_bytes", c.write_bytes);
    json_set_f64(j, "reach_read_bytes", c.reach_read_bytes);
    json_set_f64(j, "reach_write_bytes", c.reach_write_bytes);
    json_set_f64(j, "flops", c.flops);
    json_set_f64(j, "flops_add_mul", c.flops_add_mul);
    json_set_f64(j, "flops_special", c.flops_special);
    json_set_f64(j, "flops_contraction", c.flops_contraction);
    json_set_f64(j, "intensity", c.intensity);
    return ui_print_json(j) ? 0 : 3;
}

/* ---- eval and judge: tensors in files ---- */

struct evaluation {
    const struct inst *in;
    unsigned threads;
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

/* Tensor i from a file, in its type; where `wide`, fp64 will do too and is rounded to it. */
static bool read_tensor(const struct evaluation *e, size_t i, const char *path, bool wide,
                        void *data, struct err *err) {
    const struct tensor *t = &e->in->task->tensors[i];
    const struct bound_tensor *b = &e->in->tensors[i];
    const struct dtype_info *own = dtype_info(t->dtype);
    struct arena *a = arena_new(EVAL_MAX_BYTES);
    struct npy npy;
    bool ok = npy_read(path, EVAL_MAX_BYTES, a, &npy, err);
    if (ok) {
        bool exact = !strcmp(npy.descr, own->npy);
        bool same = npy.rank == t->rank && (exact || (wide && !strcmp(npy.descr, "<f8")));
        for (size_t d = 0; same && d < t->rank; d++)
            same = npy.shape[d] == b->extent[d];
        if (!same)
            ok = err_set(err, ERR_INPUT, "%s: not the task's shape and type (%s%s)", path, own->npy,
                         wide && strcmp(own->npy, "<f8") != 0 ? " or <f8" : "");
        else if (exact)
            memcpy(data, npy.data, b->bytes);
        else
            data_store(t->dtype, npy.data, (size_t)b->count, data);
    }
    arena_free(a);
    return ok;
}

static bool fits(const struct evaluation *e, struct err *err) {
    size_t total = 0;
    for (size_t i = 0; i < e->in->task->ntensors; i++)
        total += (size_t)e->in->tensors[i].count * 16 + e->in->tensors[i].bytes;
    return total <= EVAL_MAX_BYTES ||
           err_set(err, ERR_INPUT,
                   "this shape needs %zu bytes to evaluate; choose a smaller one with --set",
                   total);
}

/* The fastest that a thread evaluates anything is about so many operations a second; what would
 * take longer than an hour even so is not begun, since nothing would be seen of it for days or for
 * ever. */
#define EVAL_RATE    1e9
#define EVAL_SECONDS 3600.0

static bool ends(const struct evaluation *e, struct err *err) {
    struct cost c;
    cost_of(e->in, &c);
    double seconds = c.flops / (EVAL_RATE * e->threads);
    return seconds <= EVAL_SECONDS ||
           err_set(err, ERR_INPUT,
                   "this shape takes %.3g operations to evaluate, at the least %.3g hours with %u "
                   "thread%s\nhint: choose a smaller one with --set, or more --threads",
                   c.flops, seconds / 3600, e->threads, e->threads == 1 ? "" : "s");
}

static bool read_inputs(struct ui *ui, struct evaluation *e, struct err *err) {
    for (size_t i = 0; i < e->in->task->ntensors; i++) {
        const struct tensor *t = &e->in->task->tensors[i];
        if (!tensor_is_input(t))
            continue;
        e->data[i] = mem_alloc(e->in->tensors[i].bytes + 1);
        if (!read_tensor(e, i, tensor_path(ui, e->from, t), false, e->data[i], err))
            return false;
    }
    return true;
}

static bool make_inputs(struct ui *ui, struct evaluation *e, struct err *err) {
    const char *name = option_text(ui->options, "dist");
    uint64_t seed = (uint64_t)option_int(ui->options, "seed");
    struct data_scale scale;
    enum data_kind kind;
    if (!data_find(str_view(name), &kind))
        return err_set(err, ERR_INPUT, "--dist %s: no such distribution; see docs/TASKS.md", name);
    if (!data_scale_find(e->in, seed, &scale, err))
        return false;
    for (size_t i = 0; i < e->in->task->ntensors; i++) {
        if (!tensor_is_input(&e->in->task->tensors[i]))
            continue;
        e->data[i] = mem_alloc(e->in->tensors[i].bytes + 1);
        data_fill(e->in, &scale, i, kind, seed, 0, e->in->tensors[i].count, e->data[i]);
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

static double mean_of(const struct reference *ref) {
    double sum = 0;
    for (size_t i = 0; i < ref->count; i++)
        sum += ref->value[i];
    return sum / (double)ref->count;
}

static json *summary(const struct evaluation *e) {
    json *j = json_object(), *outputs = json_array();
    for (size_t r = 0; r < e->nrefs; r++) {
        const struct reference *ref = &e->refs[r];
        json *o = json_object();
        json_set_str(o, "name", e->in->task->tensors[ref->tensor].name);
        json_set_i64(o, "elements", (int64_t)ref->count);
        json_set_f64(o, "first", ref->value[0]);
        json_set_f64(o, "last", ref->value[ref->count - 1]);
        json_set_f64(o, "mean", mean_of(ref));
        json_push(outputs, o);
    }
    json_set(j, "outputs", outputs);
    return j;
}

static void print_summary(const struct evaluation *e) {
    for (size_t r = 0; r < e->nrefs; r++) {
        const struct reference *ref = &e->refs[r];
        str name = e->in->task->tensors[ref->tensor].name;
        say("%.*s: first %.17g, last %.17g, mean %.17g\n", STR_ARG(name), ref->value[0],
            ref->value[ref->count - 1], mean_of(ref));
    }
}

static bool evaluate(struct ui *ui, struct evaluation *e, struct err *err) {
    e->threads = (unsigned)option_int(ui->options, "threads");
    if (!e->threads)
        e->threads = cores_usable();
    return fits(e, err) && ends(e, err) &&
           (e->from ? read_inputs(ui, e, err) : make_inputs(ui, e, err)) &&
           reference_eval(e->in, (const void *const *)e->data, e->threads, &e->refs, &e->nrefs,
                          NULL, err);
}

static void evaluation_release(struct evaluation *e) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(e->data[i]);
    reference_release(e->refs, e->nrefs);
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
    bool ok = evaluate(ui, &e, &err) && (!e.to || write_all(ui, &e, &err));
    int code = ok ? 0 : ui_fail(ui, &err);
    if (ok && ui->as_json)
        code = ui_print_json(summary(&e)) ? 0 : 3;
    else if (ok)
        print_summary(&e);
    evaluation_release(&e);
    return code;
}

/* ---- judge ---- */

static enum verdict verdict_of(const struct comparison *c) {
    return c->pass          ? VERDICT_ACCEPTED
           : c->nonfinite   ? VERDICT_NONFINITE
           : c->pass_looser ? VERDICT_INACCURATE
                            : VERDICT_WRONG;
}

static json *judged_to_json(struct ui *ui, const struct inst *in, const struct reference *ref,
                            const struct comparison *c) {
    json *o = json_object(), *mismatches = json_array();
    json_set_str(o, "name", in->task->tensors[ref->tensor].name);
    json_set_str(o, "verdict", str_view(verdict_name(verdict_of(c))));
    json_set_f64(o, "worst", c->worst);
    json_set_f64(o, "worst_limit", c->worst_limit);
    json_set_f64(o, "rms", c->rms);
    json_set_f64(o, "rms_limit", c->rms_limit);
    json_set_i64(o, "elements", (int64_t)ref->count);
    json_set_i64(o, "judged", (int64_t)c->judged);
    json_set_i64(o, "wrong", (int64_t)c->wrong);
    json_set_i64(o, "nonfinite", (int64_t)c->nonfinite);
    for (size_t i = 0; i < c->nfirst; i++) {
        const struct mismatch *m = &c->first[i];
        json *x = json_object();
        json_set_str(x, "element", element_name(in, ref->tensor, m->index, ui->arena));
        json_set_f64(x, "expected", m->expected);
        json_set_f64(x, "got", m->got);
        json_push(mismatches, x);
    }
    json_set(o, "mismatches", mismatches);
    return o;
}

/* A sign of NaN means nothing. */
static double without_sign(double v) {
    return isnan(v) ? NAN : v;
}

static void print_judged(struct ui *ui, const struct inst *in, const struct reference *ref,
                         const struct comparison *c) {
    say("%.*s: %s, worst %.4g of %.4g, rms %.4g of %.4g",
        STR_ARG(in->task->tensors[ref->tensor].name), verdict_name(verdict_of(c)), c->worst,
        c->worst_limit, c->rms, c->rms_limit);
    if (c->nfirst) {
        str name = element_name(in, ref->tensor, c->first[0].index, ui->arena);
        int digits = dtype_digits(in->task->tensors[ref->tensor].dtype);
        say("; %llu of %zu elements are off, %.*s is %.*g, expected %.*g",
            (unsigned long long)(c->wrong + c->nonfinite), ref->count, STR_ARG(name), digits,
            without_sign(c->first[0].got), digits, without_sign(c->first[0].expected));
    }
    say("\n");
}

/* All outputs are read before anything is said of one. */
static bool compare_outputs(struct ui *ui, const struct evaluation *e, struct comparison *of,
                            struct err *err) {
    bool ok = true;
    for (size_t r = 0; r < e->nrefs && ok; r++) {
        size_t tensor = e->refs[r].tensor;
        const char *path = result_path(ui, e->from, &e->in->task->tensors[tensor]);
        void *got = mem_alloc(e->in->tensors[tensor].bytes + 1);
        ok = read_tensor(e, tensor, path, true, got, err);
        if (ok)
            reference_compare(e->in, &e->refs[r], got, e->threads, &of[r]);
        mem_free(got);
    }
    return ok;
}

/* The verdict of all is that of the first output that has another than accepted. */
static int report(struct ui *ui, const struct evaluation *e, const struct comparison *of) {
    enum verdict all = VERDICT_ACCEPTED;
    const char *class = accuracy_name(e->in->task->accuracy);
    for (size_t r = 0; r < e->nrefs && all == VERDICT_ACCEPTED; r++)
        all = verdict_of(&of[r]);
    int code = all == VERDICT_ACCEPTED ? 0 : 1;
    if (!ui->as_json) {
        say("%s as %s\n", verdict_name(all), class);
        for (size_t r = 0; r < e->nrefs; r++)
            print_judged(ui, e->in, &e->refs[r], &of[r]);
        return code;
    }
    json *j = json_object(), *outputs = json_array();
    json_set_str(j, "verdict", str_view(verdict_name(all)));
    json_set_bool(j, "accepted", all == VERDICT_ACCEPTED);
    json_set_str(j, "accuracy", str_view(class));
    for (size_t r = 0; r < e->nrefs; r++)
        json_push(outputs, judged_to_json(ui, e->in, &e->refs[r], &of[r]));
    json_set(j, "outputs", outputs);
    return ui_print_json(j) ? code : 3;
}

static void take_accuracy(struct ui *ui, struct task *task) {
    const char *name = option_text(ui->options, "accuracy");
    for (int a = 0; name && a < ACCURACY_COUNT; a++)
        if (!strcmp(name, accuracy_name((enum accuracy)a)))
            task->accuracy = (enum accuracy)a;
}

int cmd_task_judge(struct ui *ui) {
    struct evaluation e = {.from = option_text(ui->options, "in")};
    struct comparison of[TASK_MAX_TENSORS];
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    if (!e.from)
        err_set(&err, ERR_INPUT, "task judge needs --in DIR, the folder of inputs and results");
    if (!e.from || !ui_load_task(ui, 0, &task, &inst, &err))
        return ui_fail(ui, &err);
    take_accuracy(ui, task);
    e.in = inst;
    bool ok = evaluate(ui, &e, &err) && compare_outputs(ui, &e, of, &err);
    int code = ok ? report(ui, &e, of) : ui_fail(ui, &err);
    evaluation_release(&e);
    return code;
}
