/* A candidate on its way: submitted → parsed and planned → compiling → inspected → queued → at a
 * worker → outcome. Each stage either hands it on or ends it with a verdict. Whatever a worker
 * lost goes back to the front of the queue, a few times. */
#include "eval/eval.h"

#include "base/rng.h"
#include "device/job.h"
#include "device/wire.h"
#include "eval/links.h"
#include "eval/record.h"
#include "eval/trials.h"
#include "kernel/inspect.h"
#include "spec/cost.h"

#include <stdio.h>
#include <unistd.h>

#define MAX_LOSSES       4
#define SAMPLED_CTAS     256       /* at most, and … */
#define SAMPLED_ELEMENTS (1 << 21) /* … about so much of the largest tensor */
#define WORK_ARENA       (1ull << 30)

struct work {
    struct evaluator *e;
    struct work *next;          /* in the queue for workers */
    struct work *older, *newer; /* among all that are under way */
    uint64_t timer;
    uint64_t id, started_us;
    struct arena *arena;
    str file, source, ptx;
    struct candidate *candidate;
    struct trials trials;
    bool planned;
    struct build build; /* facts; strings in the arena */
    bool built;
    unsigned losses;
    enum verdict early; /* reached before compilation */
    struct err why;
};

struct evaluator {
    struct loop *loop;
    struct evaluator_options o;
    evaluator_done_fn *done;
    evaluator_broken_fn *broken;
    void *ctx;
    struct build_pool *pool;
    struct links *links;
    struct work *head, *tail; /* the queue for workers */
    struct work *newest;      /* all under way */
    struct roofline limit;
    double floor_s;
    uint64_t seed;
    unsigned workers;
    bool dead;
};

static struct work *work_new(struct evaluator *e, uint64_t id) {
    struct work *w = mem_alloc(sizeof *w);
    w->e = e;
    w->id = id;
    w->started_us = clock_us();
    w->arena = arena_new(WORK_ARENA);
    w->older = e->newest;
    if (e->newest)
        e->newest->newer = w;
    e->newest = w;
    return w;
}

static void work_free(struct work *w) {
    loop_timer_cancel(w->e->loop, w->timer);
    if (w->newer)
        w->newer->older = w->older;
    else
        w->e->newest = w->older;
    if (w->older)
        w->older->newer = w->newer;
    arena_free(w->arena);
    mem_free(w);
}

static struct record_input record_input(const struct work *w) {
    return (struct record_input){
        .options = &w->e->o,
        .limit = &w->e->limit,
        .floor_s = w->e->floor_s,
        .source = w->source,
        .trials = w->planned ? &w->trials : NULL,
        .kernels = w->build.kernels,
        .nkernels = w->build.nkernels,
        .build = w->built ? &w->build : NULL,
        .seed = w->e->seed,
        .wall_ms = (double)(clock_us() - w->started_us) / 1000,
    };
}

static void deliver(struct work *w, json *record) {
    struct evaluator *e = w->e;
    struct err err = {0};
    uint64_t id = w->id;
    struct outcome *o = outcome_from_record(record, &err);
    work_free(w);
    if (o)
        e->done(e->ctx, id, o);
    else
        e->broken(e->ctx, &err);
}

static void end_with(struct work *w, enum verdict v, str why) {
    struct record_input in = record_input(w);
    deliver(w, record_verdict(&in, v, why));
}

/* The environment failed this candidate, and will fail the next: no verdict, the end. */
static void give_up(struct work *w, const struct err *why) {
    struct evaluator *e = w->e;
    work_free(w);
    e->dead = true;
    e->broken(e->ctx, why);
}

/* ---- at the workers ---- */

static json *shape_json(const struct trial_shape *s) {
    json *j = json_object(), *data = json_array();
    for (size_t k = 0; k < DATA_COUNT; k++)
        if (s->kinds[k])
            json_push_str(data, str_view(data_name((enum data_kind)k)));
    json_set_str(j, "label", s->label);
    json_set(j, "set", set_to_json(s->inst));
    json_set(j, "data", data);
    if (s->counted)
        json_set_bool(j, "counted", true);
    json_set(j, "launches", launches_to_json(&s->plan));
    return j;
}

/* A block of a persistent grid may walk through millions of elements: few of those will do. */
static int64_t sampled_ctas(const struct work *w) {
    const struct inst *in = w->e->o.inst;
    int64_t largest = 1, sample = SAMPLED_CTAS;
    for (size_t i = 0; i < in->task->ntensors; i++)
        largest = in->tensors[i].count > largest ? in->tensors[i].count : largest;
    for (size_t i = 0; i < w->trials.task_plan.nlaunches; i++) {
        const uint32_t *grid = w->trials.task_plan.launches[i].grid;
        int64_t each = largest / ((int64_t)grid[0] * grid[1] * grid[2]) + 1;
        sample = SAMPLED_ELEMENTS / each < sample ? SAMPLED_ELEMENTS / each : sample;
    }
    return sample < 2 ? 2 : sample;
}

static json *job_json(const struct work *w) {
    const struct evaluator *e = w->e;
    char seed[32];
    json *j = json_object(), *shapes = json_array();
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)e->seed);
    json_set_str(j, "task", e->o.task->text);
    json_set_str(j, "file", e->o.task->file);
    json_set_str(j, "seed", str_view(seed));
    json_set_i64(j, "limit_ms", e->o.run_limit_ms ? e->o.run_limit_ms : 20000);
    for (size_t i = 0; i < w->trials.n; i++)
        json_push(shapes, shape_json(&w->trials.shapes[i]));
    json_set(j, "shapes", shapes);
    if (!e->o.verify_only && !w->trials.task_shape_run) {
        json *m = json_object();
        json_set(m, "set", set_to_json(e->o.inst));
        json_set(m, "launches", launches_to_json(&w->trials.task_plan));
        json_set_i64(m, "sample_ctas", sampled_ctas(w));
        json_set(j, "measure", m);
    }
    return j;
}

static void feed(struct evaluator *e) {
    while (e->head && !e->dead) {
        struct work *w = e->head;
        json *job = job_json(w);
        bool sent = links_send(e->links, w, job, w->ptx);
        json_free(job);
        if (!sent)
            return;
        e->head = w->next;
        if (!e->head)
            e->tail = NULL;
        w->next = NULL;
    }
}

static void enqueue(struct evaluator *e, struct work *w) {
    if (e->tail)
        e->tail->next = w;
    else
        e->head = w;
    e->tail = w;
    feed(e);
}

static void worker_idle(void *ctx) {
    feed(ctx);
}

static void worker_result(void *ctx, void *job, const json *head) {
    struct work *w = job;
    (void)ctx;
    struct record_input in = record_input(w);
    deliver(w, record_result(&in, head));
}

static void worker_lost(void *ctx, void *job, str why) {
    struct evaluator *e = ctx;
    struct work *w = job;
    struct err err = {0};
    if (++w->losses < MAX_LOSSES) {
        w->next = e->head;
        e->head = w;
        if (!e->tail)
            e->tail = w;
        feed(e);
        return;
    }
    err_set(&err, ERR_ENV, "a worker failed %u times on one candidate: %.*s", w->losses,
            STR_ARG(why));
    give_up(w, &err);
}

static void worker_broken(void *ctx, const struct err *why) {
    struct evaluator *e = ctx;
    e->dead = true;
    e->broken(e->ctx, why);
}

/* ---- compilation ---- */

static void keep_build(struct work *w, const struct build *b) {
    w->build = *b;
    w->ptx = w->build.ptx = arena_str(w->arena, b->ptx);
    w->build.cubin = w->build.log = (str){0};
    w->build.kernels = arena_array(w->arena, struct kernel_facts, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        w->build.kernels[i] = b->kernels[i];
        w->build.kernels[i].name = arena_str(w->arena, b->kernels[i].name);
    }
    w->built = true;
}

/* Registers and shared memory are known now: does a block fit an SM at all? */
static bool launches_fit(const struct work *w, const struct bound_plan *p, struct err *why) {
    const struct gpu *g = w->e->o.device.gpu;
    for (size_t i = 0; i < p->nlaunches; i++) {
        const struct bound_launch *l = &p->launches[i];
        const struct kernel_facts *f = NULL;
        for (size_t k = 0; k < w->build.nkernels; k++)
            if (str_eq(w->build.kernels[k].name, l->kernel))
                f = &w->build.kernels[k];
        size_t shared = (f ? f->shared_static : 0) + l->shared;
        int threads = (int)(l->block[0] * l->block[1] * l->block[2]),
            registers = f ? f->registers : 0;
        struct occupancy o = gpu_occupancy(g, threads, registers, shared);
        if (o.blocks_sm < 1 || shared > g->shared_block)
            return err_set(
                why, ERR_NO,
                "kernel %.*s: a block of %d threads with %d registers each and %zu bytes "
                "of shared memory does not fit an SM of the %s",
                STR_ARG(l->kernel), threads, registers, shared, g->title);
    }
    return true;
}

static void built(void *ctx, const struct build *b) {
    struct work *w = ctx;
    struct ptx_module *m;
    struct err why = {0};
    if (b->no_compiler) {
        err_set(&why, ERR_ENV, "%.*s", STR_ARG(b->log));
        give_up(w, &why);
        return;
    }
    keep_build(w, b);
    if (b->verdict != VERDICT_ACCEPTED) {
        str log = arena_str(w->arena, b->log);
        end_with(w, b->verdict, log);
        return;
    }
    if (!ptx_parse(w->ptx, w->arena, &m, &why)) {
        end_with(w, VERDICT_UNSUPPORTED, str_view(why.text));
        return;
    }
    enum verdict v = ptx_inspect(w->candidate, m, &why);
    bool fits = v == VERDICT_ACCEPTED && launches_fit(w, &w->trials.task_plan, &why);
    for (size_t i = 0; fits && i < w->trials.n; i++)
        fits = launches_fit(w, &w->trials.shapes[i].plan, &why);
    if (fits)
        enqueue(w->e, w);
    else
        end_with(w, v == VERDICT_ACCEPTED ? VERDICT_LAUNCH_ERROR : v, str_view(why.text));
}

static void end_early(void *ctx) {
    struct work *w = ctx;
    w->timer = 0;
    end_with(w, w->early, str_view(w->why.text));
}

static bool plan_work(struct work *w, struct buf *unit) {
    struct evaluator *e = w->e;
    bool launch = false;
    w->early = VERDICT_BAD_PLAN;
    if (!candidate_parse(w->file, w->source, e->o.task, w->arena, &w->candidate, &w->why))
        return false;
    struct trials_options to = {e->seed, !e->o.verify_only, e->o.thorough || e->o.verify_only};
    if (!trials_make(w->candidate, e->o.inst, &to, w->arena, &w->trials, &launch, &w->why)) {
        w->early = launch ? VERDICT_LAUNCH_ERROR : VERDICT_BAD_PLAN;
        return false;
    }
    w->planned = true;
    return candidate_unit(w->candidate, unit, &w->why);
}

void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source) {
    struct work *w = work_new(e, id);
    struct buf unit;
    struct err err = {0};
    w->file = arena_str(w->arena, file);
    w->source = arena_str(w->arena, source);
    buf_init(&unit, 4u << 20);
    if (!plan_work(w, &unit)) {
        w->timer = loop_timer(e->loop, 0, end_early, w);
    } else {
        struct build_request r = {
            .unit = buf_str(&unit), .arch = e->o.device.gpu->arch, .fmad = true};
        if (!build_submit(e->pool, &r, built, w, &err)) {
            give_up(w, &err);
        }
    }
    buf_release(&unit);
}

/* ---- life ---- */

static unsigned cores(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

static double contraction_rate(const struct gpu *g, enum accuracy a) {
    switch (a) {
    case ACCURACY_TF32:
        return g->tf32_flops;
    case ACCURACY_F16:
    case ACCURACY_BF16:
        return g->bf16_flops;
    default:
        return g->fp32_tensor_flops;
    }
}

struct roofline task_limit(const struct gpu *g, const struct inst *in) {
    struct cost c;
    cost_of(in, &c);
    double rate = contraction_rate(g, in->task->accuracy), rest = c.flops - c.flops_contraction;
    double seconds = c.flops_contraction / rate + rest / g->fp32_flops;
    double mixed = seconds > 0 ? c.flops / seconds : g->fp32_flops;
    return gpu_roofline(g, c.read_bytes, c.write_bytes, c.flops, mixed);
}

static void find_limit(struct evaluator *e) {
    struct cost c;
    cost_of(e->o.inst, &c);
    e->floor_s = c.compulsory_bytes / e->o.device.gpu->dram_bytes_s;
    e->limit = task_limit(e->o.device.gpu, e->o.inst);
}

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err) {
    struct evaluator *e = mem_alloc(sizeof *e);
    e->loop = l;
    e->o = *o;
    e->done = done;
    e->broken = broken;
    e->ctx = ctx;
    e->workers = o->workers ? o->workers : cores();
    unsigned threads = cores() / e->workers ? cores() / e->workers : 1;
    struct links_events ev = {e, worker_idle, worker_result, worker_lost, worker_broken};
    struct build_pool_options po = {.jobs = o->compilers ? o->compilers : cores(),
                                    .cache = o->cache,
                                    .limit_ms = o->compile_limit_ms};
    find_limit(e);
    e->seed = o->seed;
    if ((!o->seed_given && !rng_secret(&e->seed) &&
         !err_set(err, ERR_ENV, "no random numbers from the operating system")) ||
        !(e->pool = build_pool_new(l, &o->nvrtc, &po, err)) ||
        !(e->links =
              links_new(l, &e->o.device, e->workers, threads, o->worker_command, &ev, err))) {
        evaluator_free(e);
        return NULL;
    }
    return e;
}

void evaluator_free(struct evaluator *e) {
    if (!e)
        return;
    links_free(e->links);
    build_pool_free(e->pool);
    while (e->newest)
        work_free(e->newest);
    mem_free(e);
}

size_t evaluator_capacity(const struct evaluator *e) {
    return 2 * (size_t)e->workers;
}

const struct roofline *evaluator_limit(const struct evaluator *e) {
    return &e->limit;
}
