/* bench TASK KERNEL.cu…: kernels of one task side by side, fastest first, against a baseline. */
#include "base/file.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/cuda.h"
#include "kernel/candidate.h"
#include "spec/cost.h"
#include "ui/bench_run.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* What is said below the table of rows that carry its number. */
struct marks {
    str *text;
    size_t n;
};

struct table {
    struct ui *ui;
    const struct bench *b;
    struct cost cost;
    double limit_s; /* 0: unknown */
    bool by_bytes;  /* throughput in bytes, not flops */
    struct marks *marks;
};

/* ---- what was asked for ---- */

static bool read_kernels(struct ui *ui, struct bench *b, struct err *err) {
    char *const *args;
    size_t n = options_args(ui->options, &args);
    b->nkernels = n - 1;
    if (!b->nkernels && b->baseline < BASELINE_TORCH)
        return err_set(err, ERR_INPUT, "bench needs a kernel, or --baseline torch");
    b->kernels = arena_array(ui->arena, struct bench_kernel, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        b->kernels[i].file = str_view(args[i + 1]);
        if (!candidate_read_file(args[i + 1], ui->arena, &b->kernels[i].source, err))
            return false;
    }
    return true;
}

/* ---- words ---- */

static str rate_text(const struct table *t, double time_s) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    double rate = (t->by_bytes ? t->cost.compulsory_bytes : t->cost.flops) / time_s;
    size_t p = 0;
    while (rate >= 1000 && p + 1 < sizeof prefix / sizeof *prefix) {
        rate /= 1000;
        p++;
    }
    return arena_printf(t->ui->arena, "%.3g %s%s", rate, prefix[p], t->by_bytes ? "B/s" : "flop/s");
}

static str time_text(const struct table *t, double time_s, double low, double high) {
    str time = ui_time(t->ui->arena, time_s);
    if (!(high > 0))
        return arena_printf(t->ui->arena, "%.*s", STR_ARG(time));
    return arena_printf(t->ui->arena, "%.*s -%.1f%% +%.1f%%", STR_ARG(time),
                        100 * (1 - low / time_s), 100 * (high / time_s - 1));
}

static void print_head(const struct table *t) {
    const struct inst *in = t->b->eo.inst;
    str label = inst_label(in, t->ui->arena), limit = ui_time(t->ui->arena, t->limit_s);
    say("%.*s %.*s, class %s, on %s", STR_ARG(in->task->name), STR_ARG(label),
        accuracy_name(in->task->accuracy), t->b->eo.device.text);
    if (t->b->eo.facts)
        say(" (%s)", t->b->eo.facts->name);
    if (t->limit_s > 0)
        say("; limit %.*s (%s)", STR_ARG(limit), t->by_bytes ? "memory" : "arithmetic");
    say("\n");
}

/* ---- what a row was not judged on ---- */

enum { MARKS_OF_A_ROW = 3 };

/* " [N]", for the row that the mark is of; rows of which the same is to be said share it. */
static str mark(const struct table *t, str text) {
    struct marks *m = t->marks;
    size_t i = 0;
    if (!text.n)
        return text;
    while (i < m->n && !str_eq(m->text[i], text))
        i++;
    if (i == m->n)
        m->text[m->n++] = text;
    return arena_printf(t->ui->arena, " [%zu]", i + 1);
}

static str own_shape_words(struct arena *a, const struct record *r) {
    const struct result_sample *s = r->sample;
    if (!r->has_task_shape_verified || r->task_shape_verified)
        return S("");
    if (!s)
        return S("the task's own shape was not judged whole; verify says what was");
    struct buf b;
    buf_init(&b, 4096);
    buf_puts(&b, S("at the task's own shape "));
    record_sample_words(s, &b);
    str words = arena_str(a, buf_str(&b));
    buf_release(&b);
    return words;
}

static str uncovered_words(struct arena *a, const struct record *r) {
    if (!r->coverage || !r->coverage->uncovered)
        return S("");
    return arena_printf(a,
                        "%lld thing%s happen%s at the task's own shape and in no run that was "
                        "judged; verify says which",
                        (long long)r->coverage->uncovered, r->coverage->uncovered == 1 ? "" : "s",
                        r->coverage->uncovered == 1 ? "s" : "");
}

static str marks_of(const struct table *t, const struct record *r) {
    struct arena *a = t->ui->arena;
    str skipped = ui_skipped(a, r);
    if (skipped.n)
        skipped = arena_printf(a, "check shapes not tried: %.*s", STR_ARG(skipped));
    str one = mark(t, skipped), two = mark(t, own_shape_words(a, r));
    str three = mark(t, uncovered_words(a, r));
    return arena_printf(a, "%.*s%.*s%.*s", STR_ARG(one), STR_ARG(two), STR_ARG(three));
}

static void print_marks(const struct marks *m) {
    for (size_t i = 0; i < m->n; i++)
        say("[%zu] %.*s\n", i + 1, STR_ARG(m->text[i]));
}

/* ---- the table ---- */

static void print_kernel(const struct table *t, const struct bench_kernel *k) {
    str time = time_text(t, k->time_s, k->low_s, k->high_s), rate = rate_text(t, k->time_s);
    say("%-24.*s ", STR_ARG(time));
    if (k->limit_s > 0)
        say("%7.0f%%", 100 * k->limit_s / k->time_s);
    else
        say("%8s", "-");
    say(" %14.*s", STR_ARG(rate));
    if (t->b->baseline_s > 0)
        say(" %8.2fx", t->b->baseline_s / k->time_s);
    str marks = k->record ? marks_of(t, k->record) : S("");
    say("  %.*s%.*s\n", STR_ARG(k->file), STR_ARG(marks));
    if (k->record && k->record->has_time_prepared_s)
        say("  %.*s\n", STR_ARG(ui_prepared(t->ui->arena, k->record)));
}

static void print_rejected(const struct table *t, const struct bench_kernel *k) {
    str why = ui_with_file(t->ui->arena, k->record->why, k->file), line = {0};
    str_line(&why, &line);
    say("%-24s %.*s%s%.*s\n", verdict_name(k->verdict), STR_ARG(k->file), line.n ? ": " : "",
        STR_ARG(line));
}

static void print_kernels(const struct table *t) {
    const struct bench *b = t->b;
    bool estimated = b->eo.device.kind != DEVICE_CUDA;
    say("%-24s %8s %14s%s  kernel\n", estimated ? "estimated" : "time, 95% interval", "of limit",
        t->by_bytes ? "compulsory" : "arithmetic", b->baseline_s > 0 ? "   speedup" : "");
    for (size_t i = 0; i < b->nkernels; i++)
        if (b->kernels[i].verdict == VERDICT_ACCEPTED)
            print_kernel(t, &b->kernels[i]);
    for (size_t i = 0; i < b->nkernels; i++)
        if (b->kernels[i].verdict != VERDICT_ACCEPTED)
            print_rejected(t, &b->kernels[i]);
    print_marks(t->marks);
    if (estimated)
        say("Times are the simulator's estimates%s, not measurements.\n",
            b->eo.device.gpu->calibrated ? "" : " from a model not yet calibrated on hardware");
}

static void print_torch(const struct table *t) {
    const struct bench *b = t->b;
    str version = {0}, missing = {0};
    json_get_str(b->torch, "torch", &version);
    json_get_str(json_get(b->torch, "sandbox"), "missing", &missing);
    say("PyTorch %.*s%s%.*s\n", STR_ARG(version),
        missing.n ? "; its sandbox lacks: " : ", sandboxed", STR_ARG(missing));
    for (size_t i = 0; i < BENCH_WAYS; i++) {
        const struct bench_way *w = &b->ways[i];
        str time = w->ok ? time_text(t, w->spread.median, w->spread.low, w->spread.high)
                         : str_view(w->why.text);
        say("  %-8s in %s numerics: %.*s%s\n", torch_mode_name(w->mode),
            w->numerics == TORCH_CLASS ? "the class's" : "PyTorch's default", STR_ARG(time),
            w->ok && w->numerics == TORCH_CLASS && w->spread.median == b->baseline_s
                ? "  (the baseline)"
                : "");
    }
}

/* ---- JSON ---- */

static json *samples_json(const struct bench_samples *s) {
    json *list = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_push_f64(list, s->s[i]);
    return list;
}

static json *kernel_json(const struct table *t, const struct bench_kernel *k) {
    json *j = json_object();
    json_set_str(j, "file", k->file);
    json_set_str(j, "verdict", str_view(verdict_name(k->verdict)));
    json_set_bool(j, "accepted", k->verdict == VERDICT_ACCEPTED);
    if (k->verdict == VERDICT_ACCEPTED) {
        json_set_f64(j, "time_s", k->time_s);
        json_set_bool(j, "estimated", k->estimated);
        if (k->record->has_time_prepared_s)
            json_set_f64(j, "time_prepared_s", k->record->time_prepared_s);
        if (k->high_s > 0) {
            json_set_f64(j, "ci_low_s", k->low_s);
            json_set_f64(j, "ci_high_s", k->high_s);
            json_set(j, "samples_s", samples_json(&k->samples));
        }
        json_set_f64(j, "limit_share", k->limit_s / k->time_s);
        json_set_f64(j, "compulsory_bytes_s", t->cost.compulsory_bytes / k->time_s);
        json_set_f64(j, "flops_s", t->cost.flops / k->time_s);
        if (t->b->baseline_s > 0)
            json_set_f64(j, "speedup", t->b->baseline_s / k->time_s);
    }
    json_set(j, "record", record_to_json(k->record));
    return j;
}

static json *way_json(const struct bench_way *w) {
    json *j = json_object();
    json_set_str(j, "mode", str_view(torch_mode_name(w->mode)));
    json_set_str(j, "numerics", str_view(torch_numerics_name(w->numerics)));
    if (w->ok) {
        json_set_f64(j, "time_s", w->spread.median);
        json_set_f64(j, "ci_low_s", w->spread.low);
        json_set_f64(j, "ci_high_s", w->spread.high);
        json_set(j, "samples_s", samples_json(&w->samples));
    } else {
        json_set_str(j, "error", str_view(w->why.text));
    }
    return j;
}

static json *baseline_json(const struct table *t) {
    const struct bench *b = t->b;
    json *j = json_object();
    json_set_str(j, "kind", str_view(bench_baseline_name(b->baseline)));
    if (b->baseline_s > 0)
        json_set_f64(j, "time_s", b->baseline_s);
    if (b->no_baseline.kind)
        json_set_str(j, "why_not", str_view(b->no_baseline.text));
    if (b->torch) {
        json *ways = json_array();
        for (size_t i = 0; i < BENCH_WAYS; i++)
            json_push(ways, way_json(&b->ways[i]));
        json_set(j, "torch", json_copy(b->torch));
        json_set(j, "torch_line", json_string(b->eo.task->torch));
        json_set(j, "ways", ways);
    }
    return j;
}

static json *ceilings_json(const struct gpu *g) {
    json *j = json_object();
    json_set_str(j, "gpu", str_view(g->title));
    json_set_bool(j, "calibrated", g->calibrated);
    json_set_f64(j, "copy_bytes_s", g->copy_bytes_s);
    json_set_f64(j, "read_bytes_s", g->read_bytes_s);
    json_set_f64(j, "write_bytes_s", g->write_bytes_s);
    json_set_f64(j, "fp32_flops", g->fp32_flops);
    json_set_f64(j, "tf32_flops", g->tf32_flops);
    json_set_f64(j, "bf16_flops", g->bf16_flops);
    return j;
}

static json *provenance_json(const struct bench *b) {
    json *j = json_object();
    char date[32], nvrtc[32];
    struct utsname host;
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(nvrtc, sizeof nvrtc, "%d.%d", b->eo.nvrtc.major, b->eo.nvrtc.minor);
    json_set_str(j, "date", str_view(date));
    json_set_str(j, "cutepilot", S(CUTEPILOT_VERSION));
    json_set_str(j, "nvrtc", str_view(nvrtc));
    json_set_str(j, "device", str_view(b->eo.device.text));
    if (uname(&host) == 0)
        json_set_str(j, "system", str_view(host.release));
    if (b->eo.device.gpu)
        json_set(j, "ceilings", ceilings_json(b->eo.device.gpu));
    if (b->eo.facts)
        json_set(j, "gpu", fields_to_json(&cuda_facts_fields, b->eo.facts));
    if (b->nkernels && b->kernels[0].record->clocks) /* of the last block */
        json_set(j, "clocks", fields_to_json(&wire_clocks_fields, b->kernels[0].record->clocks));
    return j;
}

static json *bench_json(const struct table *t) {
    const struct bench *b = t->b;
    const struct task *task = b->eo.task;
    json *j = json_object(), *kernels = json_array();
    for (size_t i = 0; i < b->nkernels; i++)
        json_push(kernels, kernel_json(t, &b->kernels[i]));
    json_set_str(j, "task", task->name);
    json_set_str(j, "shape", inst_label(b->eo.inst, t->ui->arena));
    json_set_str(j, "accuracy", str_view(accuracy_name(task->accuracy)));
    json_set_bool(j, "estimated", b->eo.device.kind != DEVICE_CUDA);
    if (t->limit_s > 0)
        json_set_f64(j, "limit_s", t->limit_s);
    json_set_f64(j, "compulsory_bytes", t->cost.compulsory_bytes);
    json_set_f64(j, "flops", t->cost.flops);
    json_set_i64(j, "blocks", (int64_t)b->blocks);
    json_set(j, "kernels", kernels);
    json_set(j, "baseline", baseline_json(t));
    json_set(j, "provenance", provenance_json(b));
    return j;
}

/* ---- the command ---- */

static struct table table_of(struct ui *ui, const struct bench *b) {
    struct table t = {.ui = ui, .b = b, .by_bytes = true};
    t.marks = arena_new_of(ui->arena, struct marks);
    t.marks->text = arena_array(ui->arena, str, MARKS_OF_A_ROW * b->nkernels);
    cost_of(b->eo.inst, &t.cost);
    for (size_t i = 0; i < b->nkernels; i++)
        if (b->kernels[i].limit_s > 0)
            t.limit_s = b->kernels[i].limit_s;
    if (b->eo.device.gpu) {
        struct roofline r = task_limit(b->eo.device.gpu, b->eo.inst);
        t.by_bytes = r.memory_bound;
    }
    return t;
}

static int all_accepted(const struct bench *b) {
    for (size_t i = 0; i < b->nkernels; i++)
        if (b->kernels[i].verdict != VERDICT_ACCEPTED && !bench_is_naive(&b->kernels[i]))
            return ERR_NO;
    return 0;
}

/* What was to be measured alone, and was not, is the answer. */
static bool nothing_measured(const struct bench *b) {
    bool any = b->nkernels > 0;
    for (size_t i = 0; i < BENCH_WAYS; i++)
        any |= b->ways[i].ok;
    return !any && b->no_baseline.kind;
}

static int report(struct ui *ui, const struct bench *b) {
    struct table t = table_of(ui, b);
    if (nothing_measured(b))
        return ui_fail(ui, &b->no_baseline);
    if (b->no_baseline.kind)
        complain("cutepilot: %s\n", b->no_baseline.text);
    if (ui->as_json)
        return ui_print_json(bench_json(&t)) ? all_accepted(b) : ERR_ENV;
    print_head(&t);
    if (b->nkernels)
        print_kernels(&t);
    if (b->torch)
        print_torch(&t);
    return all_accepted(b);
}

/* --keep: PyTorch's part as files, and nothing measured; no GPU is needed. */
static int keep_torch(struct ui *ui, const struct bench *b, const struct inst *inst) {
    const char *dir = option_text(ui->options, "keep");
    struct torch_options o = {.inst = inst, .device = "cuda:0", .assets = b->assets};
    struct err err = {0};
    if (b->baseline < BASELINE_TORCH)
        err_set(&err, ERR_INPUT, "bench --keep writes what PyTorch is given: add --baseline torch");
    rng_secret(&o.seed);
    bool ok = !err.kind && dir_make(dir, &err) && torch_write(&o, dir, &err);
    return ok ? 0 : ui_fail(ui, &err);
}

/* Before anything is run: what was asked for cannot be had there. */
static bool torch_is_possible(const struct bench *b, struct err *err) {
    return b->baseline < BASELINE_TORCH || b->eo.device.kind == DEVICE_CUDA ||
           err_set(err, ERR_INPUT,
                   "no PyTorch baseline: PyTorch's times are measured on a GPU and the simulator's "
                   "are estimates: use --device cuda");
}

int cmd_bench(struct ui *ui) {
    struct bench b = {.baseline = bench_baseline_of(option_text(ui->options, "baseline")),
                      .python = option_text(ui->options, "python"),
                      .assets = option_text(ui->options, "assets")};
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    bool ok = ui_load_task(ui, 0, &task, &inst, &err);
    if (ok && option_text(ui->options, "keep"))
        return keep_torch(ui, &b, inst);
    ok = ok && read_kernels(ui, &b, &err) && ui_evaluator_options(ui, task, inst, &b.eo, &err) &&
         torch_is_possible(&b, &err) && bench_run(&b, ui->arena, &err);
    int code = ok ? report(ui, &b) : ui_fail(ui, &err);
    bench_release(&b);
    return code;
}
