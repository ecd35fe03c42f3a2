/* A candidate on its way: submitted → parsed and planned → compiling → inspected → queued → at a
 * worker → outcome. Each stage either hands it on or ends it with a verdict. Whatever a worker
 * lost goes back to the front of the queue, a few times. */
#include "eval/eval.h"

#include "base/rng.h"
#include "base/spread.h"
#include "eval/dump.h"
#include "eval/fit.h"
#include "eval/job.h"
#include "eval/links.h"
#include "eval/record.h"
#include "eval/support.h"
#include "eval/trials.h"
#include "kernel/inspect.h"
#include "spec/cost.h"

#include <stdio.h>
#include <unistd.h>

#define MAX_LOSSES 4
#define WORK_ARENA (1ull << 30)
#define NEAR_BEST  1.03 /* times the fastest so far: worth a duel with it */

struct work {
    struct evaluator *e;
    struct work *next;          /* in the queue for workers */
    struct work *older, *newer; /* among all that are under way */
    uint64_t timer;
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
    unsigned losses;
    enum verdict early; /* reached before compilation */
    struct err why;
    struct result *result; /* of the worker, in the arena; while the duel is on */
    struct record_phases phases;
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
    struct work *incumbent; /* the fastest so far, where candidates duel with it */
    uint64_t reigns;        /* how many have been that */
    struct support support; /* for judge and device, CUDA only */
};

static void duel_start(struct evaluator *e, const struct duel *d);

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
    if (w->e->incumbent == w)
        w->e->incumbent = NULL;
    mem_free(w->duel);
    arena_free(w->arena);
    mem_free(w);
}

static bool on_gpu(const struct evaluator *e) {
    return e->o.device.kind == DEVICE_CUDA;
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
        .module = w->ptx,
        .seed = w->seed,
        .queue_ms = (double)(w->sent_us - w->queued_us) / 1000,
        .wall_ms = (double)(clock_us() - w->started_us) / 1000,
        .phases = w->phases,
    };
}

static void deliver(struct work *w, struct record *record) {
    struct evaluator *e = w->e;
    uint64_t id = w->id;
    if (!w->kept)
        work_free(w);
    e->done(e->ctx, id, outcome_of(record));
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

static void duel_job(const struct work *w, struct arena *a, struct buf *blob, struct job *out) {
    struct job_module m[EVALUATOR_MAX_DUEL];
    for (size_t i = 0; i < w->duel->n; i++) {
        const struct work *k = w->duel->of[i] ? w->duel->of[i] : w->e->incumbent;
        m[i] = (struct job_module){&k->trials.task_plan, k->module.n};
        buf_puts(blob, k->module);
    }
    job_of_duel(&w->e->o, w->e->seed, m, w->duel->n, a, out);
}

static bool send_job(struct evaluator *e, struct work *w) {
    struct arena *a = arena_new(WORK_ARENA);
    struct buf blob;
    struct job job;
    buf_init(&blob, 256u << 20);
    if (w->duel) {
        duel_job(w, a, &blob, &job);
    } else {
        buf_puts(&blob, w->module);
        job_of_trials(&e->o, &w->trials, w->seed, w->module.n, a, &job);
    }
    json *head = fields_to_json(&job_fields, &job);
    bool sent = links_send(e->links, WIRE_JOB, w, head, buf_str(&blob));
    json_free(head);
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

static void enqueue(struct evaluator *e, struct work *w) {
    w->queued_us = w->sent_us = clock_us();
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
    w->kept = record->accepted && w->e->o.keep;
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
    else if (w->e->o.duel && on_gpu(w->e))
        finish_timed(w, r);
    else
        finish(w, r);
}

static void worker_lost(void *ctx, void *job, str why);

static void worker_result(void *ctx, void *job, const json *head) {
    struct arena *a = arena_new(WORK_ARENA);
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

static void put_back(struct evaluator *e, struct work *w) {
    w->next = e->head;
    e->head = w;
    if (!e->tail)
        e->tail = w;
    feed(e);
}

static void worker_unbegun(void *ctx, void *job) {
    put_back(ctx, job);
}

static void worker_lost(void *ctx, void *job, str why) {
    struct evaluator *e = ctx;
    struct work *w = job;
    struct err err = {0};
    if (++w->losses < MAX_LOSSES) {
        put_back(e, w);
        return;
    }
    if (w->duel) {
        end_duel(w, NULL, why);
        return;
    }
    err_set(&err, ERR_ENV, "a worker failed %u times on one candidate: %.*s", w->losses,
            STR_ARG(why));
    give_up(w, &err);
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

static enum verdict launches_fit(const struct work *w, struct err *why) {
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
    end_with(w, w->early, str_view(w->why.text));
}

static bool plan_work(struct work *w, struct buf *unit) {
    struct evaluator *e = w->e;
    bool launch = false;
    w->early = VERDICT_BAD_PLAN;
    if (!candidate_parse(w->file, w->source, e->o.task, w->arena, &w->candidate, &w->why))
        return false;
    w->candidate->assets = e->o.assets;
    struct trials_options to = {.secret = w->seed,
                                .thorough = e->o.thorough || e->o.verify_only,
                                .measure = !e->o.verify_only,
                                .observe = e->o.observe_only,
                                .small_only = e->o.small_only,
                                .check_own = e->o.check_own,
                                .watch = e->o.watch,
                                .order = e->o.order,
                                .gpu = on_gpu(e),
                                .one_by_one = e->o.dump != NULL,
                                .memory = e->o.memory_bytes};
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
    w->seed = e->seed;
    if (e->o.fresh_seeds && !e->o.seed_given)
        rng_secret(&w->seed); /* or else the run's own, which is as secret */
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

/* ---- life ---- */

static unsigned cores(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

unsigned evaluator_workers(const struct evaluator_options *o) {
    unsigned commands = 0;
    while (o->worker_commands && o->worker_commands[commands])
        commands++;
    if (o->workers)
        return o->workers;
    if (commands > 1 || o->device.kind == DEVICE_CUDA)
        return commands > 1 ? commands : 1;
    return o->candidates && o->candidates < cores() ? (unsigned)o->candidates : cores();
}

static void find_limit(struct evaluator *e) {
    struct cost c;
    cost_of(e->o.inst, &c);
    e->floor_s = on_gpu(e) ? task_floor(e->o.device.gpu, e->o.inst)
                           : c.compulsory_bytes / e->o.device.gpu->dram_bytes_s;
    e->limit = task_limit(e->o.device.gpu, e->o.inst);
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

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err) {
    struct evaluator *e = mem_alloc(sizeof *e);
    e->loop = l;
    e->o = *o;
    e->done = done;
    e->broken = broken;
    e->ctx = ctx;
    const char *const *const one[] = {o->worker_command, NULL};
    const char *const *const *commands = o->worker_commands ? o->worker_commands : one;
    e->workers = evaluator_workers(o);
    unsigned threads = cores() / e->workers ? cores() / e->workers : 1;
    struct links_events ev = {e,           worker_idle,    worker_result,     worker_dumped,
                              worker_lost, worker_unbegun, environment_broken};
    struct support_events se = {e, set_task, environment_broken};
    struct build_pool_options po = {.jobs = o->compilers ? o->compilers : cores(),
                                    .cache = o->cache,
                                    .limit_ms = o->compile_limit_ms};
    find_limit(e);
    e->seed = o->seed;
    if ((!o->seed_given && !rng_secret(&e->seed) &&
         !err_set(err, ERR_ENV, "no random numbers from the operating system")) ||
        !(e->pool = build_pool_new(l, &o->nvrtc, &po, err)) ||
        !(e->links = links_new(l, &e->o.device, e->workers, threads, commands, &ev, err)) ||
        (on_gpu(e) &&
         !support_build(&e->support, e->pool, o->task, o->device.gpu->arch, &se, err))) {
        evaluator_free(e);
        return NULL;
    }
    if (!on_gpu(e))
        set_task(e);
    return e;
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
