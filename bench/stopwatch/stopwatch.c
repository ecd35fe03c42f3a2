/* Times kernels of one task on a GPU without judging them: to compare variants while one works on a
 * kernel, in about a second each. What it says is no result: a figure that is published comes from
 * `cutepilot bench`, which verifies every launch that it times.
 *
 *     stopwatch [--set DIM=N]… [--runs N] [--cache DIR] [--compile] TASK KERNEL.cu…
 *
 * Every kernel gets the same inputs, of the task's stated distribution (large tensors repeat a
 * piece of them), a cold L2 and its turn in every round. What it leaves in the outputs is held
 * against the first kernel's: `differs` is the root mean square of the difference over that of the
 * values, in the first part of each output. --compile fills the cache and times nothing. */
#include "base/asset.h"
#include "device/cuda_plan.h"
#include "device/harness.h"
#include "kernel/build.h"
#include "spec/data.h"
#include "target/gpu.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { MOST_KERNELS = 64, MOST_RUNS = 200, WARM_UPS = 2 };
#define PIECE ((size_t)64 << 20) /* bytes of a large tensor that are made, and looked at */

struct watch {
    struct arena *a;
    struct task *task;
    struct inst *inst;
    struct nvrtc_root nvrtc;
    struct build_pool_options pool;
    struct cuda cuda;
    struct harness harness;
    struct cuda_timer timer;
    struct cuda_memory memory;
    double *first[TASK_MAX_TENSORS]; /* what the first kernel left in its outputs */
    int runs;
};

struct entry {
    const char *path, *why; /* why: it is not timed */
    struct candidate *candidate;
    struct bound_plan plan;
    struct build build;
    struct ready_plan ready;
    double ms[MOST_RUNS], differs;
    int n;
};

static const char *refusal(struct watch *w, const char *what, const char *text) {
    return arena_cstr(w->a, arena_printf(w->a, "%s: %s", what, text));
}

static bool compile(struct watch *w, str unit, struct build *out, struct err *err) {
    struct build_request r = {.unit = unit, .arch = gpu_find(S("h200"))->arch, .fmad = true};
    return build_once(&w->nvrtc, &w->pool, &r, w->a, out, err);
}

static void read_kernel(struct watch *w, struct entry *e) {
    struct err err = {0};
    struct buf unit;
    str source;
    bool fits = true;
    str which;
    buf_init(&unit, 4u << 20);
    bool ok = candidate_read_file(e->path, w->a, &source, &err) &&
              candidate_parse(str_view(e->path), source, w->task, w->a, &e->candidate, &err) &&
              plan_fits(e->candidate, w->inst, &fits, &which, &err) &&
              (fits || err_set(&err, ERR_NO, "requires %.*s", STR_ARG(which))) &&
              plan_bind(e->candidate, w->inst, w->a, &e->plan, &err) &&
              candidate_unit(e->candidate, &unit, &err) &&
              compile(w, buf_str(&unit), &e->build, &err);
    buf_release(&unit);
    if (!ok)
        e->why = refusal(w, "not read", err.text);
    else if (e->build.verdict != VERDICT_ACCEPTED)
        e->why = refusal(w, "not compiled", arena_cstr(w->a, e->build.log));
}

/* ---- memory ---- */

static bool allocate(struct watch *w, struct cuda_span *s, uint64_t bytes, struct err *err) {
    if (s->bytes >= bytes)
        return true;
    if (s->at)
        w->cuda.memory_free(s->at);
    *s = (struct cuda_span){.bytes = bytes};
    return cuda_try(&w->cuda, w->cuda.memory_alloc(&s->at, bytes), err, "allocate");
}

/* A piece of the tensor, again and again. */
static bool send_input(struct watch *w, size_t t, struct err *err) {
    const struct bound_tensor *in = &w->inst->tensors[t];
    struct cuda_span to = w->memory.tensors[t];
    struct data_scale scale = data_scale_stated();
    size_t item = in->bytes / (size_t)in->count,
           piece = in->bytes < PIECE ? in->bytes : PIECE / item * item;
    char *host = mem_alloc(piece + 1);
    data_fill(w->inst, &scale, t, DATA_STATED, 7, 0, (int64_t)(piece / item), host);
    bool ok = true;
    for (size_t at = 0; ok && at < in->bytes; at += piece) {
        size_t n = in->bytes - at < piece ? in->bytes - at : piece;
        ok = cuda_try(&w->cuda, w->cuda.copy_to_device(to.at + at, host, n, w->cuda.stream), err,
                      "copy");
    }
    ok = ok && cuda_try(&w->cuda, w->cuda.stream_sync(w->cuda.stream), err, "copy");
    mem_free(host);
    return ok;
}

static bool make_tensors(struct watch *w, struct err *err) {
    for (size_t t = 0; t < w->task->ntensors; t++) {
        const struct tensor *x = &w->task->tensors[t];
        if (!tensor_has_memory(x))
            continue;
        if (!allocate(w, &w->memory.tensors[t], w->inst->tensors[t].bytes, err) ||
            (tensor_is_input(x) && !send_input(w, t, err)))
            return false;
    }
    return true;
}

static bool make_workspaces(struct watch *w, const struct entry *e, struct err *err) {
    for (size_t i = 0; i < e->plan.nworkspaces; i++)
        if (!allocate(w, &w->memory.workspaces[i], e->plan.workspaces[i].bytes + PLAN_ALIGN, err))
            return false;
    return true;
}

static void make_ready(struct watch *w, struct entry *e) {
    struct err err = {0};
    enum verdict v = VERDICT_ACCEPTED;
    cu_module module;
    bool ok =
        cuda_try(&w->cuda, cuda_module_load(&w->cuda, e->build.cubin, &module), &err, "load") &&
        ready_plan_make(&w->cuda, module, &e->plan, &w->memory, w->a, &e->ready, &v, &err);
    if (!ok)
        e->why = refusal(w, "not loaded", err.text);
}

/* ---- runs ---- */

static bool run_once(struct watch *w, struct entry *e, double *ms, struct err *err) {
    struct cuda *c = &w->cuda;
    double device_s = 0, host_s = 0;
    size_t at = 0;
    return cuda_try(c, cuda_timer_start(c, &w->harness, &w->timer, e->ready.nsteps), err,
                    "start") &&
           cuda_try(c, ready_plan_queue(c, &w->harness, &e->ready, 0, e->ready.nsteps, false, &at),
                    err, "launch") &&
           cuda_try(c, cuda_timer_stop(c, &w->timer, &device_s, &host_s), err, "run") &&
           (*ms = device_s * 1e3, true);
}

/* The first part of an output as doubles; the caller frees. */
static double *fetch(struct watch *w, size_t t, size_t *count, struct err *err) {
    const struct bound_tensor *in = &w->inst->tensors[t];
    size_t item = in->bytes / (size_t)in->count,
           bytes = in->bytes < PIECE ? in->bytes : PIECE / item * item;
    char *host = mem_alloc(bytes + 1);
    double *v = mem_alloc((bytes / item) * sizeof *v);
    *count = bytes / item;
    if (cuda_try(&w->cuda,
                 w->cuda.copy_to_host(host, w->memory.tensors[t].at, bytes, w->cuda.stream), err,
                 "copy") &&
        cuda_try(&w->cuda, w->cuda.stream_sync(w->cuda.stream), err, "copy"))
        data_load(w->task->tensors[t].dtype, host, *count, v);
    mem_free(host);
    return v;
}

static bool look(struct watch *w, struct entry *e, struct err *err) {
    double off = 0, all = 0;
    for (size_t t = 0; t < w->task->ntensors; t++) {
        if (!tensor_is_output(&w->task->tensors[t]))
            continue;
        size_t n;
        double *v = fetch(w, t, &n, err);
        bool is_first = !w->first[t];
        if (is_first)
            w->first[t] = v;
        for (size_t i = 0; i < n; i++) {
            double d = v[i] - w->first[t][i];
            off += isnan(d) && !(isnan(v[i]) && isnan(w->first[t][i])) ? INFINITY
                   : isnan(d)                                          ? 0
                                                                       : d * d;
            all += isfinite(v[i]) ? w->first[t][i] * w->first[t][i] : 0;
        }
        if (!is_first)
            mem_free(v);
    }
    e->differs = all > 0 ? sqrt(off / all) : off;
    return !err->kind;
}

/* Outputs hold nothing of the kernel before. */
static bool warm_up(struct watch *w, struct entry *e, struct err *err) {
    double ms;
    for (size_t t = 0; t < w->task->ntensors; t++)
        if (w->task->tensors[t].role == TENSOR_OUT &&
            !cuda_try(&w->cuda,
                      w->cuda.set_d8(w->memory.tensors[t].at, 0xff, w->inst->tensors[t].bytes,
                                     w->cuda.stream),
                      err, "fill"))
            return false;
    for (int i = 0; i < WARM_UPS; i++)
        if (!run_once(w, e, &ms, err))
            return false;
    return look(w, e, err);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(struct entry *e) {
    if (e->why) {
        printf("%-40s %.300s\n", e->path, e->why);
        return;
    }
    qsort(e->ms, (size_t)e->n, sizeof *e->ms, by_value);
    int registers = 0;
    for (size_t i = 0; i < e->build.nkernels; i++)
        registers =
            e->build.kernels[i].registers > registers ? e->build.kernels[i].registers : registers;
    printf("%-40s %10.2f us  least %10.2f  differs %.2e  %d registers\n", e->path,
           e->ms[e->n / 2] * 1e3, e->ms[0] * 1e3, e->differs, registers);
}

static bool measure(struct watch *w, struct entry *e, size_t n, struct err *err) {
    struct build tools;
    str text;
    if (!cuda_open(&w->cuda, 0, err) || !asset_get(NULL, HARNESS_ASSET, w->a, &text, err) ||
        !compile(w, text, &tools, err) || !harness_load(&w->cuda, tools.cubin, &w->harness, err) ||
        !cuda_timer_init(&w->cuda, &w->timer, err) || !make_tensors(w, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!e[i].why && !make_workspaces(w, &e[i], err))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!e[i].why)
            make_ready(w, &e[i]);
    for (size_t i = 0; i < n; i++)
        if (!e[i].why && !warm_up(w, &e[i], err))
            return err_wrap(err, "%s", e[i].path);
    for (int run = 0; run < w->runs; run++)
        for (size_t i = 0; i < n; i++)
            if (!e[i].why && !run_once(w, &e[i], &e[i].ms[e[i].n++], err))
                return err_wrap(err, "%s", e[i].path);
    for (size_t i = 0; i < n; i++)
        show(&e[i]);
    return true;
}

static int usage(void) {
    fprintf(stderr, "usage: stopwatch [--set DIM=N]... [--runs N] [--cache DIR] [--compile] TASK "
                    "KERNEL.cu...\n");
    return 2;
}

static int bench_main(int argc, char **argv) {
    static struct watch w;
    static struct entry entries[MOST_KERNELS];
    struct binding set[TASK_MAX_DIMS];
    struct err err = {0};
    size_t nset = 0, n = 0;
    const char *task = NULL;
    bool compile_only = false;
    w.a = arena_new((size_t)1 << 30);
    w.runs = 15;
    w.pool = (struct build_pool_options){.jobs = 1, .limit_ms = 120000};
    for (int i = 1; i < argc; i++) {
        char *sign;
        if (!strcmp(argv[i], "--set") && i + 1 < argc && (sign = strchr(argv[i + 1], '=')) &&
            nset < TASK_MAX_DIMS) {
            i++;
            set[nset++] =
                (struct binding){{argv[i], (size_t)(sign - argv[i])}, strtoll(sign + 1, NULL, 10)};
        } else if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
            w.runs = (int)strtol(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--cache") && i + 1 < argc) {
            w.pool.cache = argv[++i];
        } else if (!strcmp(argv[i], "--compile")) {
            compile_only = true;
        } else if (argv[i][0] == '-' || (task && n == MOST_KERNELS)) {
            return usage();
        } else if (!task) {
            task = argv[i];
        } else {
            entries[n++].path = argv[i];
        }
    }
    if (!n || w.runs < 1 || w.runs > MOST_RUNS)
        return usage();
    bool ok = nvrtc_find(&w.nvrtc, &err) && nvrtc_probe(&w.nvrtc, &err) &&
              task_load(task, w.a, &w.task, &err) &&
              task_bind(w.task, set, nset, w.a, &w.inst, &err);
    for (size_t i = 0; ok && i < n; i++)
        read_kernel(&w, &entries[i]);
    if (ok && !compile_only)
        ok = measure(&w, entries, n, &err);
    if (!ok)
        fprintf(stderr, "stopwatch: %s: %s\n", task, err.text);
    return ok ? 0 : 3;
}

/* This very file is started as its compiler. */
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "compiler"))
        return ui_main(argc, argv, environ);
    return bench_main(argc, argv);
}
