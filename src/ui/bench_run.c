#include "ui/bench_run.h"

#include "agent/agent.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TORCH_BLOCKS = 3,   /* of kernels, and of PyTorch between and after them */
    TORCH_SAMPLES = 20, /* of a way in a block */
    SAMPLES = 40,       /* of a kernel in a block, at least, where its time allows */
};
static const char naive_file[] = "(naive)";

bool bench_is_naive(const struct bench_kernel *k) {
    return k->file.p == naive_file;
}

static void samples_add(struct bench_samples *to, const double *s, size_t n) {
    to->s = mem_grow(to->s, &to->cap, to->n + n, sizeof *s);
    for (size_t i = 0; i < n; i++)
        to->s[to->n++] = s[i];
}

/* ---- the naive kernel ---- */

struct written {
    struct arena *arena;
    str source;
    struct err err;
};

static void take_source(void *ctx, str source, const struct strategy *written,
                        const struct err *err) {
    struct written *w = ctx;
    (void)written;
    if (err)
        w->err = *err;
    else
        w->source = arena_str(w->arena, source);
}

/* The expert's kernel for the strategy in which every decision is left alone. */
static bool write_naive(const struct bench *b, struct arena *a, str *source, struct err *err) {
    struct written w = {.arena = a};
    struct catalogue *catalogue;
    struct strategy fallback;
    struct agent agent;
    struct briefing brief;
    if (!catalogue_load(b->assets, a, &catalogue, err) ||
        !briefing_make(b->eo.inst, catalogue, b->eo.device.gpu, &brief, err) ||
        !expert_new(b->assets, &agent, err))
        return false;
    strategy_fallback(catalogue, &brief.ground, &fallback);
    agent.code(agent.self, &brief, &fallback, take_source, &w);
    agent.release(agent.self);
    if (w.err.kind)
        *err = w.err;
    *source = w.source;
    return !w.err.kind;
}

static void add_naive(struct bench *b, struct arena *a) {
    struct err err = {0};
    str source;
    if (!write_naive(b, a, &source, &err)) {
        b->no_baseline = err;
        err_wrap(&b->no_baseline, "no naive kernel: the built-in expert cannot write this task");
        return;
    }
    struct bench_kernel *more = arena_array(a, struct bench_kernel, b->nkernels + 1);
    memcpy(more, b->kernels, b->nkernels * sizeof *more);
    more[b->nkernels] = (struct bench_kernel){.file = str_view(naive_file), .source = source};
    b->kernels = more;
    b->nkernels++;
}

/* ---- blocks of kernels ---- */

static void take_record(struct bench_kernel *k, struct record *r) {
    record_free(k->record);
    k->record = r;
    k->verdict = r->verdict;
    k->limit_s = r->limit_s;
    k->estimated = r->estimated;
    samples_add(&k->samples, r->samples_s, r->nsamples_s);
}

/* All kernels that are still in. */
static bool time_kernels(struct bench *b, bool first, struct arena *a, struct err *err) {
    struct bench_kernel **in = arena_array(a, struct bench_kernel *, b->nkernels);
    struct source_file *files = arena_array(a, struct source_file, b->nkernels);
    struct record **records = arena_array(a, struct record *, b->nkernels);
    size_t n = 0;
    for (size_t i = 0; i < b->nkernels; i++) {
        struct bench_kernel *k = &b->kernels[i];
        if (!first && k->verdict != VERDICT_ACCEPTED)
            continue;
        files[n] = (struct source_file){k->file, k->source};
        in[n++] = k;
    }
    if (!n)
        return true;
    struct evaluator_options eo = b->eo;
    eo.thorough = first;
    eo.samples = SAMPLES;
    if (!evaluate_duel(&eo, files, n, records, err))
        return false;
    for (size_t i = 0; i < n; i++)
        take_record(in[i], records[i]);
    return true;
}

/* ---- blocks of PyTorch ---- */

static struct torch_helper *torch_start(struct bench *b) {
    struct err err = {0};
    struct torch_options o = {
        .inst = b->eo.inst, .python = b->python, .device = b->eo.device.text, .assets = b->assets};
    if (b->eo.device.kind != DEVICE_CUDA) {
        err_set(&err, ERR_INPUT,
                "PyTorch's times are measured on a GPU and the simulator's are estimates: use "
                "--device cuda");
    } else {
        rng_secret(&o.seed);
        struct torch_helper *t = torch_open(&o, &err);
        if (t)
            return t;
    }
    b->no_baseline = err;
    err_wrap(&b->no_baseline, "no PyTorch baseline");
    return NULL;
}

static void torch_warm_all(struct bench *b, struct torch_helper *t) {
    for (size_t i = 0; i < BENCH_WAYS; i++) {
        struct bench_way *w = &b->ways[i];
        w->mode = i % 2 ? TORCH_COMPILED : TORCH_EAGER;
        w->numerics = i < 2 ? TORCH_CLASS : TORCH_DEFAULT;
        if (w->mode == TORCH_COMPILED && b->baseline == BASELINE_TORCH_EAGER)
            err_set(&w->why, ERR_NO, "not asked for");
        else
            w->ok = torch_warm(t, w->mode, w->numerics, &w->why);
    }
}

static void torch_time_all(struct bench *b, struct torch_helper *t) {
    for (size_t i = 0; i < BENCH_WAYS; i++) {
        struct bench_way *w = &b->ways[i];
        double samples[TORCH_SAMPLES];
        if (!w->ok)
            continue;
        w->ok = torch_time(t, w->mode, w->numerics, TORCH_SAMPLES, samples, &w->why);
        if (w->ok)
            samples_add(&w->samples, samples, TORCH_SAMPLES);
    }
}

/* ---- conclusions ---- */

/* Samples keep the order they were taken in: a drift should be seen. */
static struct spread spread_in_order(const struct bench_samples *s) {
    double *copy = mem_alloc(s->n * sizeof *copy + 1);
    for (size_t i = 0; i < s->n; i++)
        copy[i] = s->s[i];
    struct spread spread = spread_of(copy, s->n);
    mem_free(copy);
    return spread;
}

static void conclude_kernel(struct bench_kernel *k) {
    k->time_s = INFINITY;
    if (k->verdict != VERDICT_ACCEPTED)
        return;
    if (k->samples.n) {
        struct spread s = spread_in_order(&k->samples);
        k->time_s = s.median;
        k->low_s = s.low;
        k->high_s = s.high;
    } else if (k->record->has_time_s) {
        k->time_s = k->record->time_s;
    }
}

/* The better of eager and compiled, in the numerics that the kernels are held to. */
static void conclude_torch(struct bench *b) {
    struct err why = {0};
    for (size_t i = 0; i < BENCH_WAYS; i++) {
        struct bench_way *w = &b->ways[i];
        w->spread = spread_in_order(&w->samples);
        if (w->numerics == TORCH_CLASS && w->ok && w->samples.n &&
            (!(b->baseline_s > 0) || w->spread.median < b->baseline_s))
            b->baseline_s = w->spread.median;
        if (w->numerics == TORCH_CLASS && w->mode == TORCH_EAGER && !w->ok)
            why = w->why;
    }
    if (!(b->baseline_s > 0)) {
        b->no_baseline = why;
        err_wrap(&b->no_baseline, "no PyTorch baseline");
    }
}

static int by_time(const void *x, const void *y) {
    const struct bench_kernel *a = x, *b = y;
    return (a->time_s > b->time_s) - (a->time_s < b->time_s);
}

static void conclude(struct bench *b) {
    for (size_t i = 0; i < b->nkernels; i++) {
        struct bench_kernel *k = &b->kernels[i];
        conclude_kernel(k);
        if (bench_is_naive(k) && k->verdict == VERDICT_ACCEPTED)
            b->baseline_s = k->time_s;
        else if (bench_is_naive(k))
            err_set(&b->no_baseline, ERR_NO, "the naive kernel is not accepted: %s",
                    verdict_name(k->verdict));
    }
    if (b->nkernels)
        qsort(b->kernels, b->nkernels, sizeof *b->kernels, by_time);
}

static const char *const baseline_names[] = {"none", "naive", "torch", "torch-eager"};

enum bench_baseline bench_baseline_of(const char *name) {
    for (int i = 0; i < (int)(sizeof baseline_names / sizeof *baseline_names); i++)
        if (!strcmp(name, baseline_names[i]))
            return (enum bench_baseline)i;
    return BASELINE_NONE;
}
const char *bench_baseline_name(enum bench_baseline b) {
    return baseline_names[b];
}

bool bench_run(struct bench *b, struct arena *a, struct err *err) {
    bool ok = true;
    if (b->baseline == BASELINE_NAIVE)
        add_naive(b, a);
    struct torch_helper *t = b->baseline >= BASELINE_TORCH ? torch_start(b) : NULL;
    size_t blocks = t ? TORCH_BLOCKS : 1;
    if (t)
        torch_warm_all(b, t);
    for (; b->blocks < blocks && ok; b->blocks++) {
        ok = time_kernels(b, b->blocks == 0, a, err);
        if (ok && t)
            torch_time_all(b, t);
    }
    if (t) {
        b->torch = json_copy(torch_facts(t));
        conclude_torch(b);
        torch_close(t);
    }
    if (ok)
        conclude(b);
    return ok;
}

void bench_release(struct bench *b) {
    for (size_t i = 0; i < b->nkernels; i++) {
        mem_free(b->kernels[i].samples.s);
        record_free(b->kernels[i].record);
    }
    for (size_t i = 0; i < BENCH_WAYS; i++)
        mem_free(b->ways[i].samples.s);
    json_free(b->torch);
}
