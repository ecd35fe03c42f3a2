/* A candidate on its way: submitted → parsed and planned → compiling → inspected → queued → at a
 * worker → outcome. Each stage either hands it on or ends it with a verdict. Whatever a worker
 * lost goes back to the front of the queue, a few times; then it is set aside as unjudged. */
#include "eval/eval.h"

#include "base/asset.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/npy.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/spread.h"
#include "device/cuda.h"
#include "device/wire.h"
#include "eval/links.h"
#include "eval/record.h"
#include "eval/trials.h"
#include "kernel/build.h"
#include "kernel/inspect.h"
#include "kernel/oracle.h"
#include "spec/cost.h"
#include "spec/task.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What judge and device need on a GPU besides the candidate: the task's reference kernels and the
 * device's harness, compiled once for an evaluator. The pool compiles them; this waits for both
 * and says so. Owns their cubins. */
struct support_events {
    void *ctx;
    void (*ready)(void *ctx); /* both are there; once */
    void (*broken)(void *ctx, const struct err *why);
};

struct support {
    struct support_events events;
    struct arena *arena;
    str oracle, harness; /* cubins; empty until they are built */
    unsigned open;       /* of them, still being built */
};

/* The timed batches of the task's own shape, for several candidates. */
struct job_module {
    const struct bound_plan *plan; /* at the task's own shape */
    size_t bytes;
};

enum { INDEX_MOST = 4 << 20 };

struct dump {
    const char *folder; /* of the case */
    const struct inst *inst;
    struct arena *arena;
};

static bool write_tensor(const struct dump *d, size_t tensor, const char *suffix, const void *data,
                         struct err *err) {
    const struct tensor *t = &d->inst->task->tensors[tensor];
    const struct bound_tensor *b = &d->inst->tensors[tensor];
    const struct dtype_info *type = dtype_info(t->dtype);
    struct npy npy = {.item = type->bytes, .rank = t->rank, .data = data, .bytes = b->bytes};
    snprintf(npy.descr, sizeof npy.descr, "%s", type->npy);
    memcpy(npy.shape, b->extent, t->rank * sizeof *npy.shape);
    str path = arena_printf(d->arena, "%s/%.*s%s.npy", d->folder, STR_ARG(t->name), suffix);
    return npy_write(path.p, &npy, err);
}

/* What was written in place has overwritten its input, which is made again. */
static bool write_before(const struct dump *d, size_t tensor, const struct job_case *c,
                         struct err *err) {
    struct data_scale scale;
    if (!data_scale_find(d->inst, c->seed, &scale, err))
        return false;
    void *data = mem_alloc(d->inst->tensors[tensor].bytes);
    data_fill(d->inst, &scale, tensor, c->data, c->seed, 0, d->inst->tensors[tensor].count, data);
    bool ok = write_tensor(d, tensor, "", data, err);
    mem_free(data);
    return ok;
}

static bool write_case(const struct dump *d, const struct job_case *c, str *bytes,
                       struct err *err) {
    const struct task *t = d->inst->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        bool inout = t->tensors[i].role == TENSOR_INOUT;
        size_t size = d->inst->tensors[i].bytes;
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        if (bytes->n < size)
            return err_set(err, ERR_ENV, "bad message: dump");
        if ((inout && !write_before(d, i, c, err)) ||
            !write_tensor(d, i, inout ? ".out" : "", bytes->p, err))
            return false;
        *bytes = str_from(*bytes, size);
    }
    return true;
}

static bool write_facts(const struct dump *d, const struct job_case *c, struct err *err) {
    struct wire_dump facts = {.data = c->data, .seed = c->seed};
    struct buf text;
    facts.set = set_of(d->inst, d->arena, &facts.nset);
    json *j = fields_to_json(&wire_dump_fields, &facts);
    buf_init(&text, 1 << 20);
    json_write_pretty(j, &text);
    bool ok =
        file_replace(arena_printf(d->arena, "%s/case.json", d->folder).p, buf_str(&text), err);
    buf_release(&text);
    json_free(j);
    return ok;
}

/* A line of the index for each case: its folder, its shape, its data, its seed. */
static bool write_index(const struct dump *d, const char *folder, const struct job_batch *b,
                        size_t number, struct err *err) {
    str path = arena_printf(d->arena, "%s/index.txt", folder), before = {0};
    struct buf text;
    if (number && !file_read(path.p, INDEX_MOST, d->arena, &before, err))
        return false;
    buf_init(&text, INDEX_MOST);
    buf_puts(&text, number ? before : S("folder  shape; data; seed\n"));
    for (size_t i = 0; i < b->ncases; i++)
        buf_printf(&text, "%03zu     %.*s; %s; %llu\n", number + i,
                   STR_ARG(inst_label(d->inst, d->arena)), data_name(b->cases[i].data),
                   (unsigned long long)b->cases[i].seed);
    bool ok = file_replace(path.p, buf_str(&text), err);
    buf_release(&text);
    return ok;
}

/* f: a WIRE_DUMPED. */
static bool dump_write(const char *folder, const struct trials *t, const struct frame *f,
                       struct err *err) {
    int64_t batch = -1;
    json_get_i64(f->head, "batch", &batch);
    if (batch < 0 || (size_t)batch >= t->nbatches)
        return err_set(err, ERR_ENV, "bad message: dump");
    const struct job_batch *b = &t->batches[batch];
    struct dump d = {.inst = t->shapes[b->shape].inst, .arena = arena_new(64u << 20)};
    str bytes = f->blob;
    size_t number = 0;
    bool ok = true;
    for (int64_t i = 0; i < batch; i++)
        number += t->batches[i].ncases;
    for (size_t i = 0; ok && i < b->ncases; i++) {
        d.folder = arena_printf(d.arena, "%s/%03zu", folder, number + i).p;
        ok = dir_make(d.folder, err) && write_facts(&d, &b->cases[i], err) &&
             write_case(&d, &b->cases[i], &bytes, err);
    }
    ok = ok && write_index(&d, folder, b, number, err);
    arena_free(d.arena);
    return ok;
}

/* Our own kernels: where one of them does not compile, the environment is broken, not a candidate
 * wrong. */

static void got(struct support *s, const struct build *b, const char *what, str *out) {
    struct err err = {0};
    if (b->verdict != VERDICT_ACCEPTED) {
        err_set(&err, ERR_ENV, "the %s does not compile: %.*s", what, STR_ARG(b->log));
        s->events.broken(s->events.ctx, &err);
        return;
    }
    *out = arena_str(s->arena, b->cubin);
    if (--s->open == 0)
        s->events.ready(s->events.ctx);
}

static void oracle_built(void *ctx, const struct build *b) {
    struct support *s = ctx;
    got(s, b, "judge's reference", &s->oracle);
}

static void harness_built(void *ctx, const struct build *b) {
    struct support *s = ctx;
    got(s, b, "device's harness", &s->harness);
}

static bool support_build(struct support *s, struct build_pool *pool, const struct task *t,
                          const char *arch, const struct support_events *ev, struct err *err) {
    struct buf unit;
    str harness = {0};
    buf_init(&unit, 8u << 20);
    s->events = *ev;
    s->arena = arena_new(256u << 20);
    s->open = 2;
    struct build_request oracle = {.arch = arch}, tools = {.arch = arch, .fmad = true};
    bool ok =
        oracle_unit(t, &unit, err) && asset_get(NULL, "device/harness.cu", s->arena, &harness, err);
    oracle.unit = buf_str(&unit);
    tools.unit = harness;
    ok = ok && build_submit(pool, &oracle, oracle_built, s, err) &&
         build_submit(pool, &tools, harness_built, s, err);
    buf_release(&unit);
    return ok;
}

/* s is zeroed by the caller and outlives the pool's work. */
static void support_release(struct support *s) {
    arena_free(s->arena);
}

#define SAMPLED_CTAS     256       /* at most, and … */
#define SAMPLED_ELEMENTS (1 << 21) /* … about so much of the largest tensor, */
#define SAMPLED_FLOPS    1e9       /* … and so much of the arithmetic */
/* Of those that are judged, which run under the checkers: */
#define JUDGED_CTAS      12
#define JUDGED_ELEMENTS  (1 << 17)
#define JUDGED_FLOPS     6e7
#define JUDGED_INSTRS    (INT64_C(24) << 20) /* of warps */
#define PRODUCER_INSTRS  (INT64_C(32) << 20) /* … of a launch that is run whole for the next */
#define JUDGED_PARTS     12                  /* of a tensor */
#define JUDGED_PART_COST 5e7                 /* terms of the reference of one */
/* … on other data, where few checkers are on: */
#define VALUES_CTAS      24
#define VALUES_ELEMENTS  (1 << 19)
#define VALUES_PARTS     24
#define VALUES_PART_COST 5e6
#define VALUES_SHARE     16 /* of the instructions; what takes more is left at the first data */
/* … and of blocks that take little, many more, a part of each: */
#define MANY_CTAS      512
#define MANY_ELEMENTS  (1 << 20)
#define COUNTED_INSTRS (INT64_C(128) << 20) /* … on the data that counters are taken on */
/* … and of a shape that is run whole besides, where they are watched and no more: */
#define WATCHED_CTAS     4
#define WATCHED_ELEMENTS (1 << 14)
#define WATCHED_FLOPS    4e6
#define WATCHED_INSTRS   (INT64_C(1) << 17)
#define WATCHED_PRODUCER (INT64_C(1) << 19)
#define COVER_MS         6000
#define SEARCH_SHARE     4 /* in a search a fourth of these, and … */
#define RUN_LIMIT_MS     20000
#define SAMPLES          6
#define TIME_MS          2000

/* What the plans need, the strictest. The task's own shape is aligned as allocators align, for the
 * sake of its times; small shapes no more than the plan asks for. */
static void set_align(struct job_shape *s, const struct inst *in, bool own, struct arena *a) {
    s->nalign = in->task->ntensors;
    s->align = arena_array(a, uint32_t, s->nalign);
    for (size_t i = 0; i < s->nalign; i++) {
        s->align[i] = own ? PLAN_MAX_ALIGN : PLAN_ALIGN;
        for (size_t k = 0; k < s->nplans; k++)
            if (s->plans[k].align[i] > s->align[i])
                s->align[i] = s->plans[k].align[i];
    }
}

static struct job_shape make_shape(const struct inst *in, str label, bool own,
                                   struct bound_plan *plans, size_t n, struct arena *a) {
    struct job_shape s = {.label = label, .plans = plans, .nplans = n};
    s.set = set_of(in, a, &s.nset);
    set_align(&s, in, own, a);
    return s;
}

/* A block of a persistent grid may walk through millions of elements: few of those will do. */
static int64_t sampled_ctas(const struct inst *in, const struct bound_plan *p, int64_t most,
                            int64_t elements, double most_flops) {
    int64_t largest = 1, sample = most;
    struct cost cost;
    cost_of(in, &cost);
    for (size_t i = 0; i < in->task->ntensors; i++)
        largest = in->tensors[i].count > largest ? in->tensors[i].count : largest;
    for (size_t i = 0; i < p->nlaunches; i++) {
        const uint32_t *grid = p->launches[i].grid;
        int64_t blocks = (int64_t)grid[0] * grid[1] * grid[2], each = largest / blocks + 1;
        double flops = most_flops * (double)blocks / (cost.flops + 1); /* may pass 2^63 */
        sample = elements / each < sample ? elements / each : sample;
        sample = flops < (double)sample ? (int64_t)flops : sample;
    }
    return sample < 2 ? 2 : sample;
}

static struct job new_job(const struct evaluator_options *o, const struct trials *t,
                          unsigned time_ms, struct arena *a) {
    struct job j = {.limit_ms = o->run_limit_ms ? o->run_limit_ms : RUN_LIMIT_MS,
                    .time = {.samples = o->samples ? o->samples : SAMPLES,
                             .budget_ms = time_ms ? time_ms : TIME_MS},
                    .fresh = o->thorough || o->verify_only,
                    .dump = o->dump != NULL,
                    .new_device = o->new_device,
                    .batches = arena_array(a, struct job_batch, t->nbatches)};
    for (size_t i = 0; i < t->nbatches; i++)
        if (!o->dump || !t->batches[i].timed)
            j.batches[j.nbatches++] = t->batches[i];
    return j;
}

static struct job_measure *make_measure(const struct evaluator_options *o, const struct trials *t,
                                        bool covers, struct arena *a) {
    struct job_measure *m = arena_new_of(a, struct job_measure);
    *m = (struct job_measure){
        .label = inst_label(o->inst, a),
        .plan = t->task_plan,
        .sample_ctas = t->task_shape_run ? 0
                                         : sampled_ctas(o->inst, &t->task_plan, SAMPLED_CTAS,
                                                        SAMPLED_ELEMENTS, SAMPLED_FLOPS),
        .lines = o->observe_only || o->lines,
        .covers = covers};
    m->set = set_of(o->inst, a, &m->nset);
    return m;
}

/* The device learns the seed of this run's data, which no other case has. */
static struct job_sample drawn(const struct evaluator_options *o, const struct trials *t,
                               uint64_t secret, enum data_kind data, struct arena *a) {
    struct rng r = rng_stream(secret, S("sample"));
    struct job_sample s = {.label = inst_label(o->inst, a),
                           .plan = t->task_plan,
                           .data = data,
                           .seed = rng_u64(r, 2 * data),
                           .key = rng_u64(r, 2 * data + 1) | 1,
                           .patience_ms = TRIALS_PATIENCE_MS};
    s.set = set_of(o->inst, a, &s.nset);
    return s;
}

static struct job_sample judged_blocks(const struct evaluator_options *o, const struct trials *t,
                                       uint64_t secret, struct arena *a) {
    int64_t share = o->thorough ? 1 : SEARCH_SHARE;
    struct job_sample s = drawn(o, t, secret, DATA_SIGNED, a);
    s.sample_ctas = sampled_ctas(o->inst, &t->task_plan, JUDGED_CTAS / share,
                                 JUDGED_ELEMENTS / share, JUDGED_FLOPS / (double)share);
    s.covers = true;
    s.budget = JUDGED_INSTRS / share;
    s.producer_budget = PRODUCER_INSTRS / share;
    s.survey = o->thorough ? sampled_ctas(o->inst, &t->task_plan, SAMPLED_CTAS, SAMPLED_ELEMENTS,
                                          SAMPLED_FLOPS)
                           : 0;
    s.parts = JUDGED_PARTS / share;
    s.most = JUDGED_PART_COST / (double)share;
    return s;
}

/* Once more, for the values of other data, which signed ones do not show: of more blocks, so that
 * rows of several kinds are met. */
static struct job_sample values_of(const struct evaluator_options *o, const struct trials *t,
                                   uint64_t secret, enum data_kind data, struct arena *a) {
    struct job_sample s = drawn(o, t, secret, data, a);
    s.sample_ctas =
        sampled_ctas(o->inst, &t->task_plan, VALUES_CTAS, VALUES_ELEMENTS, JUDGED_FLOPS / 4);
    s.values = true;
    s.budget = JUDGED_INSTRS / VALUES_SHARE;
    s.producer_budget = PRODUCER_INSTRS / VALUES_SHARE;
    s.parts = VALUES_PARTS;
    s.most = VALUES_PART_COST;
    return s;
}

/* What a kernel does in one block of hundreds, by a hash of its number or at random. False: its
 * blocks take so much that no more of them are run than on other data. */
static bool many_of(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                    struct arena *a, struct job_sample *out) {
    *out = values_of(o, t, secret, DATA_SIGNED, a);
    out->key = rng_u64(rng_stream(secret, S("many")), 0) | 1;
    out->sample_ctas =
        sampled_ctas(o->inst, &t->task_plan, MANY_CTAS, MANY_ELEMENTS, JUDGED_FLOPS / 4);
    out->parts = out->sample_ctas;
    return out->sample_ctas > VALUES_CTAS;
}

/* The blocks that counters are taken of, on the data that they are taken on, which is public: a
 * kernel that knows it may do less there, or less in just these blocks. */
static struct job_sample counted_blocks(const struct evaluator_options *o, const struct trials *t,
                                        uint64_t secret, int64_t ctas, struct arena *a) {
    struct job_sample s = drawn(o, t, secret, DATA_STATED, a);
    s.seed = 0;
    s.sample_ctas = ctas;
    s.counted = s.values = true;
    s.budget = COUNTED_INSTRS;
    s.producer_budget = PRODUCER_INSTRS;
    s.parts = VALUES_PARTS;
    s.most = VALUES_PART_COST;
    return s;
}

/* Of a shape that is run whole the values are judged and nothing is left to cover, but no checker
 * sees it: the require lines may admit no shape that one does. */
static struct job_sample watched_blocks(const struct evaluator_options *o, const struct trials *t,
                                        uint64_t secret, struct arena *a) {
    struct job_sample s = drawn(o, t, secret, DATA_SIGNED, a);
    s.sample_ctas =
        sampled_ctas(o->inst, &t->task_plan, WATCHED_CTAS, WATCHED_ELEMENTS, WATCHED_FLOPS);
    s.budget = WATCHED_INSTRS;
    s.producer_budget = WATCHED_PRODUCER;
    return s;
}

/* All trials of one candidate, made from this secret; its module has `bytes`. */
static void job_of_trials(const struct evaluator_options *o, const struct trials *t,
                          uint64_t secret, size_t bytes, struct arena *a, struct job *out) {
    struct job j = new_job(o, t, o->duel && o->screen_ms ? o->screen_ms : o->time_ms, a);
    bool covers = t->covers && !o->dump;
    j.shapes = arena_array(a, struct job_shape, t->n);
    j.modules = arena_array(a, size_t, 1);
    j.samples = arena_array(a, struct job_sample, 6);
    for (; j.nshapes < t->n; j.nshapes++) {
        const struct trial_shape *s = &t->shapes[j.nshapes];
        j.shapes[j.nshapes] =
            make_shape(s->inst, s->label, s->inst == o->inst, (struct bound_plan *)&s->plan, 1, a);
    }
    j.modules[j.nmodules++] = bytes;
    j.covers = covers;
    if (covers) {
        j.cover_ms = o->thorough ? COVER_MS : COVER_MS / SEARCH_SHARE;
        j.samples[j.nsamples++] = judged_blocks(o, t, secret, a);
    } else if (t->watches && !o->dump) {
        j.samples[j.nsamples++] = watched_blocks(o, t, secret, a);
    }
    if (covers && o->thorough && !o->watch) {
        j.samples[j.nsamples++] = values_of(o, t, secret, DATA_MIXED, a);
        j.samples[j.nsamples++] = values_of(o, t, secret, DATA_SUBNORMAL, a);
        j.samples[j.nsamples++] = values_of(o, t, secret, DATA_NONFINITE, a);
        j.nsamples += many_of(o, t, secret, a, &j.samples[j.nsamples]) ? 1 : 0;
    }
    if (o->device.kind == DEVICE_SIM && (o->observe_only || o->lines || covers))
        j.measure = make_measure(o, t, covers, a);
    if (j.measure && j.measure->sample_ctas && covers && o->thorough && !o->watch)
        j.samples[j.nsamples++] = counted_blocks(o, t, secret, j.measure->sample_ctas, a);
    *out = j;
}

static void job_of_duel(const struct evaluator_options *o, const struct memory_need *need,
                        uint64_t secret, const struct job_module *m, size_t n, struct arena *a,
                        struct job *out) {
    struct trials_options to = {
        .secret = secret, .gpu = true, .measure = true, .memory = o->memory_bytes, .need = need};
    for (size_t i = 0; i < n; i++) /* the largest of each number: no more than all of them */
        for (size_t k = 0; k < m[i].plan->nworkspaces; k++)
            to.workspaces += m[i].plan->workspaces[k].bytes;
    struct trials *t = arena_new_of(a, struct trials);
    struct bound_plan *plans = arena_array(a, struct bound_plan, n);
    trials_timed(o->inst, &to, a, t);
    struct job j = new_job(o, t, o->time_ms, a);
    j.modules = arena_array(a, size_t, n);
    for (size_t i = 0; i < n; i++) {
        plans[i] = *m[i].plan;
        j.modules[j.nmodules++] = m[i].bytes;
    }
    j.shapes = arena_new_of(a, struct job_shape);
    j.shapes[j.nshapes++] = make_shape(o->inst, inst_label(o->inst, a), true, plans, n, a);
    *out = j;
}

#define MAX_LOSSES 4
#define WORK_ARENA (1ull << 30)
#define NEAR_BEST  1.03 /* times the fastest so far: worth a duel with it */

struct work {
    struct evaluator *e;
    const struct evaluator_options *o; /* the evaluator's, or those of a second verification */
    struct work *next;                 /* in the queue for workers */
    struct work *older, *newer;        /* among all that are under way */
    uint64_t timer;
    evaluator_done_fn *done; /* the evaluator's, or a second verification's */
    void *ctx;
    uint64_t id, seed;
    uint64_t started_us, queued_us, sent_us;
    struct arena *arena;
    str file, source;
    str module; /* what the device is given: PTX or cubin */
    struct candidate *candidate;
    struct trials trials;
    bool planned;
    struct build build; /* facts; strings in the arena */
    const struct ptx_module *ptx;
    bool built;
    bool abandoned;
    unsigned losses;
    enum verdict early; /* reached before compilation */
    struct err why;
    struct result *result; /* of the worker, in the arena; while the duel is on */
    struct record_phases phases;
    struct worker_where where; /* in the arena */
    double time_s;
    uint64_t met; /* which of the fastest so far its duel is with */
    bool kept;
    struct duel *duel; /* several candidates in one job; this is only its handle */
};

/* Candidates that are timed interleaved. */
struct duel {
    struct work *of[EVALUATOR_MAX_DUEL]; /* NULL: who is the fastest when the job is sent */
    size_t n;
    evaluator_duel_fn *done;
    void *ctx;
};

struct evaluator {
    struct loop *loop;
    struct evaluator_options o, again; /* again: for a second verification */
    evaluator_done_fn *done;
    evaluator_broken_fn *broken;
    void *ctx;
    struct build_pool *pool;
    struct links *links;
    struct worker_place here;
    struct work *head, *tail; /* the queue for workers */
    struct work *newest;      /* all under way */
    struct roofline limit;
    struct memory_need need; /* of the task's own shape, CUDA only */
    bool need_known;
    double floor_s;
    uint64_t seed, again_seed;
    unsigned workers;
    bool dead;
    struct work *incumbent; /* the fastest so far, where candidates duel with it */
    uint64_t reigns;        /* how many have been that */
    struct support support; /* for judge and device, CUDA only */
};

static void duel_start(struct evaluator *e, const struct duel *d);

static struct work *work_new(struct evaluator *e, uint64_t id) {
    struct work *w = mem_alloc(sizeof *w);
    w->e = e;
    w->o = &e->o;
    w->done = e->done;
    w->ctx = e->ctx;
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
    if (w->e->incumbent == w)
        w->e->incumbent = NULL;
    mem_free(w->duel);
    arena_free(w->arena);
    mem_free(w);
}

static bool on_gpu(const struct evaluator *e) {
    return e->o.device.kind == DEVICE_CUDA;
}

/* NULL: what the task's own shape takes is not known. */
static const struct memory_need *memory_need(const struct evaluator *e) {
    return e->need_known ? &e->need : NULL;
}

static struct record_input record_input(const struct work *w) {
    return (struct record_input){
        .options = w->o,
        .where = w->where,
        .limit = &w->e->limit,
        .floor_s = w->e->floor_s,
        .source = w->source,
        .trials = w->planned ? &w->trials : NULL,
        .kernels = w->build.kernels,
        .nkernels = w->build.nkernels,
        .build = w->built ? &w->build : NULL,
        .module = w->ptx,
        .seed = w->seed,
        .queue_ms = (double)(w->sent_us - w->queued_us) / 1000,
        .wall_ms = (double)(clock_us() - w->started_us) / 1000,
        .phases = w->phases,
    };
}

static void deliver(struct work *w, struct record *record) {
    evaluator_done_fn *done = w->done;
    void *ctx = w->ctx;
    uint64_t id = w->id;
    if (!w->kept)
        work_free(w);
    done(ctx, id, outcome_of(record));
}

static void end_with(struct work *w, enum verdict v, str why) {
    struct record_input in = record_input(w);
    deliver(w, record_verdict(&in, v, why));
}

/* The environment fails every candidate: no verdict, the end. */
static void give_up(struct work *w, const struct err *why) {
    struct evaluator *e = w->e;
    work_free(w);
    e->dead = true;
    e->broken(e->ctx, why);
}

/* ---- at the workers ---- */

static void duel_job(const struct work *w, struct arena *a, struct buf *blob, struct job *out) {
    struct job_module m[EVALUATOR_MAX_DUEL];
    for (size_t i = 0; i < w->duel->n; i++) {
        const struct work *k = w->duel->of[i] ? w->duel->of[i] : w->e->incumbent;
        m[i] = (struct job_module){&k->trials.task_plan, k->module.n};
        buf_puts(blob, k->module);
    }
    job_of_duel(&w->e->o, memory_need(w->e), w->e->seed, m, w->duel->n, a, out);
}

static bool send_job(struct evaluator *e, struct work *w) {
    struct arena *a = arena_new(WORK_ARENA);
    struct buf blob, head;
    struct job job;
    buf_init(&blob, 256u << 20);
    if (w->duel) {
        duel_job(w, a, &blob, &job);
    } else {
        buf_puts(&blob, w->module);
        job_of_trials(w->o, &w->trials, w->seed, w->module.n, a, &job);
    }
    job.job = links_next(e->links);
    buf_init(&head, 64u << 20);
    fields_write(&job_fields, &job, &head);
    bool sent = links_send(e->links, WIRE_JOB, w, buf_str(&head), buf_str(&blob));
    buf_release(&head);
    buf_release(&blob);
    arena_free(a);
    return sent;
}

static void feed(struct evaluator *e) {
    while (e->head && !e->dead && links_idle(e->links)) {
        struct work *w = e->head;
        if (!send_job(e, w))
            return;
        w->sent_us = clock_us();
        for (size_t i = 0; w->duel && i < w->duel->n; i++)
            if (w->duel->of[i])
                w->duel->of[i]->met = e->reigns;
        e->head = w->next;
        if (!e->head)
            e->tail = NULL;
        w->next = NULL;
    }
}

static void put_back(struct evaluator *e, struct work *w) {
    w->next = e->head;
    e->head = w;
    if (!e->tail)
        e->tail = w;
    feed(e);
}

static void enqueue(struct evaluator *e, struct work *w) {
    w->queued_us = w->sent_us = clock_us();
    if (w->o == &e->again) {
        put_back(e, w);
        return;
    }
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

static void end_duel(struct work *w, const struct result *result, str why) {
    evaluator_duel_fn *done = w->duel->done;
    void *ctx = w->duel->ctx;
    done(ctx, result, why);
    work_free(w);
}

static void finish(struct work *w, const struct result *result) {
    struct record_input in = record_input(w);
    struct record *record = record_result(&in, result);
    w->time_s = record->time_s;
    w->kept = record->accepted && w->o->keep;
    deliver(w, record);
}

/* ---- against the fastest so far ---- */

static bool is_faster(const struct result *result) {
    if (result->ntimes < 2)
        return false;
    struct spread mine = record_spread(&result->times[0]), other = record_spread(&result->times[1]);
    return mine.n && other.n && mine.high < other.low;
}

static void make_incumbent(struct work *w) {
    struct evaluator *e = w->e;
    if (e->incumbent)
        work_free(e->incumbent);
    e->incumbent = w;
    e->reigns++;
    w->kept = true;
}

static bool is_near(const struct work *w) {
    return w->time_s < NEAR_BEST * w->e->incumbent->time_s;
}

static void challenge(struct work *w);

/* It may have beaten one that lost to another meanwhile, whom it then meets too. That comes to an
 * end: there is a new one to meet only when somebody has won. */
static void challenge_ended(void *ctx, const struct result *result, str why) {
    struct work *w = ctx;
    struct record_input in = record_input(w);
    (void)why; /* a duel that did not take place leaves the first measurement */
    struct record *record = record_duel(&in, w->result, result);
    w->time_s = record->time_s; /* also of what went wrong later */
    bool won = record->accepted && result && is_faster(result), last = w->met == w->e->reigns;
    if (won && !last && is_near(w)) {
        record_free(record);
        challenge(w);
        return;
    }
    if (won && last)
        make_incumbent(w);
    deliver(w, record);
}

static void challenge(struct work *w) {
    struct duel d = {.of = {w, NULL}, .n = 2, .done = challenge_ended, .ctx = w};
    duel_start(w->e, &d);
}

/* Right, and timed: the first of its kind becomes the one to beat, and what comes near it is timed
 * again in turns with it. */
static void finish_timed(struct work *w, const struct result *result) {
    struct evaluator *e = w->e;
    struct record_input in = record_input(w);
    struct record *record = record_result(&in, result);
    w->time_s = record->time_s;
    if (!record->accepted || !record->has_time_s) {
        deliver(w, record);
    } else if (!e->incumbent) {
        make_incumbent(w);
        deliver(w, record);
    } else if (is_near(w)) {
        record_free(record);
        w->result = arena_new_of(w->arena, struct result);
        fields_copy(&result_fields, result, w->arena, w->result);
        challenge(w);
    } else {
        deliver(w, record);
    }
}

static void take_result(struct work *w, const struct result *r) {
    fields_set(&w->phases, evaluated_at, phase_now());
    if (w->duel)
        end_duel(w, r, (str){0});
    else if (w->o->duel && on_gpu(w->e))
        finish_timed(w, r);
    else
        finish(w, r);
}

static void worker_lost(void *ctx, void *job, str why);

static void worker_result(void *ctx, void *job, const struct worker_where *where,
                          const json *head) {
    struct arena *a = arena_new(WORK_ARENA);
    struct work *w = job;
    w->where =
        (struct worker_where){arena_str(w->arena, where->node), arena_str(w->arena, where->gpu)};
    struct result r;
    struct err err = {0};
    if (wire_read(&result_fields, head, a, &r, &err))
        take_result(job, &r);
    else
        worker_lost(ctx, job, str_view(err.text));
    arena_free(a);
}

static void worker_dumped(void *ctx, void *job, const struct frame *f) {
    struct evaluator *e = ctx;
    const struct work *w = job;
    struct err err = {0};
    if (e->o.dump && !w->duel && !dump_write(e->o.dump, &w->trials, f, &err)) {
        e->dead = true;
        e->broken(e->ctx, &err);
    }
}

static void worker_not_started(void *ctx, void *job) {
    put_back(ctx, job);
}

static void worker_lost(void *ctx, void *job, str why) {
    struct evaluator *e = ctx;
    struct work *w = job;
    if (++w->losses < MAX_LOSSES)
        put_back(e, w);
    else if (w->duel)
        end_duel(w, NULL, why);
    else
        end_with(w, VERDICT_UNJUDGED,
                 arena_printf(w->arena, "a worker failed %u times on one candidate: %.*s",
                              w->losses, STR_ARG(why)));
}

static void environment_broken(void *ctx, const struct err *why) {
    struct evaluator *e = ctx;
    e->dead = true;
    e->broken(e->ctx, why);
}

/* ---- compilation ---- */

static void keep_build(struct work *w, const struct build *b) {
    w->build = *b;
    w->build.ptx = arena_str(w->arena, b->ptx);
    w->module = on_gpu(w->e) ? arena_str(w->arena, b->cubin) : w->build.ptx;
    w->build.cubin = w->build.log = (str){0};
    w->build.kernels = arena_array(w->arena, struct kernel_facts, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        w->build.kernels[i] = b->kernels[i];
        w->build.kernels[i].name = arena_str(w->arena, b->kernels[i].name);
    }
    w->built = true;
}

static enum verdict launches_fit(struct work *w, struct err *why) {
    const struct gpu *g = w->e->o.device.gpu;
    enum verdict v = plan_fits_gpu(g, &w->build, w->ptx, &w->trials.task_plan, why);
    for (size_t i = 0; v == VERDICT_ACCEPTED && i < w->trials.n; i++)
        v = plan_fits_gpu(g, &w->build, w->ptx, &w->trials.shapes[i].plan, why);
    return v;
}

/* The PTX as it is read here, then the code that was made of it. What cannot be read may be hiding
 * something: that comes first. */
static enum verdict inspect(struct work *w, str cubin, struct err *why) {
    struct ptx_module *m;
    struct err hidden = {0};
    bool read = ptx_parse(w->build.ptx, w->arena, &m, why);
    enum verdict v = read ? ptx_inspect(w->candidate, m, why) : VERDICT_UNSUPPORTED;
    w->ptx = read ? m : NULL;
    if (read && v != VERDICT_ACCEPTED)
        return v;
    enum verdict code = inspect_cubin(cubin, w->build.ptx, w->arena, &hidden);
    if (code == VERDICT_ACCEPTED)
        return v;
    *why = hidden;
    return code;
}

static void built(void *ctx, const struct build *b) {
    struct work *w = ctx;
    struct err why = {0};
    if (w->abandoned)
        return;
    if (b->no_compiler) {
        err_set(&why, ERR_ENV, "%.*s", STR_ARG(b->log));
        give_up(w, &why);
        return;
    }
    keep_build(w, b);
    fields_set(&w->phases, compiled_at, phase_now());
    if (b->verdict != VERDICT_ACCEPTED) {
        str log = arena_str(w->arena, b->log);
        end_with(w, b->verdict, log);
        return;
    }
    enum verdict v = inspect(w, b->cubin, &why);
    if (v == VERDICT_ACCEPTED)
        v = launches_fit(w, &why);
    if (v == VERDICT_ACCEPTED)
        enqueue(w->e, w);
    else
        end_with(w, v, str_view(why.text));
}

static void end_early(void *ctx) {
    struct work *w = ctx;
    w->timer = 0;
    if (w->abandoned)
        return;
    end_with(w, w->early, str_view(w->why.text));
}

static bool plan_work(struct work *w, struct buf *unit) {
    struct evaluator *e = w->e;
    bool launch = false;
    w->early = VERDICT_BAD_PLAN;
    if (!candidate_parse(w->file, w->source, e->o.task, w->arena, &w->candidate, &w->why))
        return false;
    w->candidate->assets = w->o->assets;
    struct trials_options to = {.secret = w->seed,
                                .thorough = w->o->thorough || w->o->verify_only,
                                .measure = !w->o->verify_only,
                                .observe = w->o->observe_only,
                                .small_only = w->o->small_only,
                                .must_admit = w->o->must_admit,
                                .check_own = w->o->check_own,
                                .watch = w->o->watch,
                                .order = w->o->order,
                                .gpu = on_gpu(e),
                                .one_by_one = e->o.dump != NULL,
                                .memory = e->o.memory_bytes,
                                .need = memory_need(e)};
    if (!trials_make(w->candidate, e->o.inst, &to, w->arena, &w->trials, &launch, &w->why)) {
        w->early = launch ? VERDICT_LAUNCH_ERROR : VERDICT_BAD_PLAN;
        return false;
    }
    w->planned = true;
    return candidate_unit(w->candidate, unit, &w->why);
}

static void submit(struct work *w, str file, str source) {
    struct evaluator *e = w->e;
    struct buf unit;
    struct err err = {0};
    w->file = arena_str(w->arena, file);
    w->source = arena_str(w->arena, source);
    fields_set(&w->phases, written_at, phase_now());
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

void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source) {
    struct work *w = work_new(e, id);
    w->seed = e->seed;
    if (e->o.fresh_seeds && !e->o.seed_given)
        rng_secret(&w->seed); /* or else the run's own, which is as secret */
    submit(w, file, source);
}

void evaluator_submit_again(struct evaluator *e, str file, str source, evaluator_done_fn *done,
                            void *ctx) {
    struct work *w = work_new(e, 0);
    w->done = done;
    w->ctx = ctx;
    w->o = &e->again;
    w->seed = e->again_seed;
    submit(w, file, source);
}

/* ---- life ---- */

static unsigned cores(void) {
    unsigned n = cores_usable();
    return n > 64 ? 64 : n;
}

unsigned evaluator_workers(const struct evaluator_options *o) {
    if (o->workers)
        return o->workers;
    if (o->nplaces > 1 || o->device.kind == DEVICE_CUDA)
        return o->nplaces > 1 ? (unsigned)o->nplaces : 1;
    return o->candidates && o->candidates < cores() ? (unsigned)o->candidates : cores();
}

static void find_limit(struct evaluator *e) {
    struct cost c;
    cost_of(e->o.inst, &c);
    e->floor_s = on_gpu(e) ? task_floor(e->o.device.gpu, e->o.inst)
                           : c.compulsory_bytes / e->o.device.gpu->dram_bytes_s;
    e->limit = task_limit(e->o.device.gpu, e->o.inst);
}

static void find_need(struct evaluator *e) {
    struct err ignored = {0};
    e->need_known = on_gpu(e) && memory_need_of(e->o.inst, e->o.memory_bytes, &e->need, &ignored);
}

static void set_task(void *ctx) {
    struct evaluator *e = ctx;
    struct wire_task m = {.task = e->o.task->text,
                          .file = e->o.task->file,
                          .once = e->o.candidates == 1,
                          .oracle = e->support.oracle.n,
                          .harness = e->support.harness.n};
    struct buf blob;
    buf_init(&blob, 128u << 20);
    buf_puts(&blob, e->support.oracle);
    buf_puts(&blob, e->support.harness);
    links_set_task(e->links, fields_to_json(&wire_task_fields, &m), buf_str(&blob));
    buf_release(&blob);
}

/* A kernel is timed against others on the same type of GPU alone, and a cubin needs a driver of its
 * own major version or a later one. */
static bool worker_fits(void *ctx, const json *hello, struct err *why) {
    const struct evaluator *e = ctx;
    const json *facts = json_get(hello, "facts");
    str name = S("no GPU");
    int64_t driver = 0;
    if (!on_gpu(e) || !e->o.facts)
        return true;
    json_get_str(facts, "name", &name);
    json_get_i64(facts, "driver", &driver);
    if (!str_is(name, e->o.facts->name))
        return err_set(why, ERR_ENV,
                       "it has %.*s, and this run is for %s: times of different GPUs are not "
                       "compared",
                       STR_ARG(name), e->o.facts->name);
    if (driver / 1000 < e->o.nvrtc.major)
        return err_set(why, ERR_ENV,
                       "its driver serves CUDA %lld.%lld, and kernels are compiled by NVRTC %d.%d: "
                       "install a newer driver there, or an older NVRTC here",
                       (long long)driver / 1000, (long long)driver % 1000 / 10, e->o.nvrtc.major,
                       e->o.nvrtc.minor);
    return true;
}

/* What was accepted is verified once more. */
static void set_again(struct evaluator *e) {
    e->again = e->o;
    e->again.verify_only = e->again.thorough = e->again.new_device = e->again.lines = true;
    e->again.duel = e->again.keep = false;
    e->again_seed = e->o.seed + 1; /* a given seed is a test's */
    if (!e->o.seed_given)
        rng_secret(&e->again_seed);
}

static bool start_workers(struct evaluator *e, struct err *err) {
    const struct evaluator_options *o = &e->o;
    e->here = (struct worker_place){.device = o->device};
    struct links_events ev = {e,           worker_idle,        worker_result,      worker_dumped,
                              worker_lost, worker_not_started, environment_broken, worker_fits};
    struct links_options lo = {.places = o->nplaces ? o->places : &e->here,
                               .nplaces = o->nplaces ? o->nplaces : 1,
                               .workers = e->workers,
                               .threads = cores() / e->workers ? cores() / e->workers : 1,
                               .hello_ms = o->hello_ms};
    e->links = links_new(e->loop, &lo, &ev, err);
    return e->links != NULL;
}

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err) {
    mem_keep_freed(); /* every candidate has arenas of the same sizes */
    struct evaluator *e = mem_alloc(sizeof *e);
    e->loop = l;
    e->o = *o;
    e->done = done;
    e->broken = broken;
    e->ctx = ctx;
    e->workers = evaluator_workers(o);
    struct support_events se = {e, set_task, environment_broken};
    struct build_pool_options po = {.jobs = o->compilers ? o->compilers : cores(),
                                    .cache = o->cache,
                                    .limit_ms = o->compile_limit_ms};
    find_limit(e);
    find_need(e);
    set_again(e);
    e->seed = o->seed;
    if ((!o->seed_given && !rng_secret(&e->seed) &&
         !err_set(err, ERR_ENV, "no random numbers from the operating system")) ||
        !(e->pool = build_pool_new(l, &o->nvrtc, &po, err)) || !start_workers(e, err) ||
        (on_gpu(e) &&
         !support_build(&e->support, e->pool, o->task, o->device.gpu->arch, &se, err))) {
        evaluator_free(e);
        return NULL;
    }
    if (!on_gpu(e))
        set_task(e);
    return e;
}

bool evaluator_broken(const struct evaluator *e) {
    return e->dead;
}

/* Their memory goes with the evaluator: compilers may still answer for them. */
void evaluator_abandon(struct evaluator *e) {
    links_abandon(e->links);
    e->head = e->tail = NULL;
    for (struct work *w = e->newest; w; w = w->older)
        w->abandoned = true;
}

void evaluator_free(struct evaluator *e) {
    if (!e)
        return;
    links_free(e->links);
    build_pool_free(e->pool);
    while (e->newest)
        work_free(e->newest);
    support_release(&e->support);
    mem_free(e);
}

static void duel_start(struct evaluator *e, const struct duel *d) {
    struct work *w = work_new(e, 0);
    w->duel = mem_alloc(sizeof *w->duel);
    *w->duel = *d;
    enqueue(e, w);
}

static struct work *find_kept(const struct evaluator *e, uint64_t id) {
    for (struct work *w = e->newest; w; w = w->older)
        if (w->kept && w->id == id)
            return w;
    return NULL;
}

void evaluator_duel(struct evaluator *e, const uint64_t *ids, size_t n, evaluator_duel_fn *done,
                    void *ctx) {
    struct duel d = {.done = done, .ctx = ctx};
    BUG_IF(n > EVALUATOR_MAX_DUEL);
    for (size_t i = 0; i < n; i++) {
        d.of[d.n++] = find_kept(e, ids[i]);
        BUG_IF(!d.of[i]);
    }
    duel_start(e, &d);
}

/* On a GPU the compilers are what must not wait. */
size_t evaluator_capacity(const struct evaluator *e) {
    size_t compilers = e->o.compilers ? e->o.compilers : cores();
    return 2 * (size_t)e->workers + (on_gpu(e) ? 2 * compilers : 0);
}
