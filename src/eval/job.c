#include "eval/job.h"

#include "base/rng.h"
#include "spec/cost.h"

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
        .lines = o->observe_only,
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

void job_of_trials(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                   size_t bytes, struct arena *a, struct job *out) {
    struct job j = new_job(o, t, o->duel && o->screen_ms ? o->screen_ms : o->time_ms, a);
    bool covers = t->covers && !o->dump;
    j.shapes = arena_array(a, struct job_shape, t->n);
    j.modules = arena_array(a, size_t, 1);
    j.samples = arena_array(a, struct job_sample, 3);
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
    }
    if (o->device.kind == DEVICE_SIM && (o->observe_only || covers))
        j.measure = make_measure(o, t, covers, a);
    *out = j;
}

void job_of_duel(const struct evaluator_options *o, uint64_t secret, const struct job_module *m,
                 size_t n, struct arena *a, struct job *out) {
    struct trials_options to = {
        .secret = secret, .gpu = true, .measure = true, .memory = o->memory_bytes};
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
