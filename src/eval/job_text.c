#include "eval/job_text.h"

#include "base/rng.h"
#include "device/job.h"
#include "spec/cost.h"

#include <stdio.h>

#define SAMPLED_CTAS     256       /* at most, and … */
#define SAMPLED_ELEMENTS (1 << 21) /* … about so much of the largest tensor, */
#define SAMPLED_FLOPS    1e9       /* … and so much of the arithmetic */
/* Of those that are judged, which run under the checkers: */
#define JUDGED_CTAS      12
#define JUDGED_ELEMENTS  (1 << 17)
#define JUDGED_FLOPS     6e7
#define JUDGED_INSTRS    (UINT64_C(24) << 20) /* of warps */
#define PRODUCER_INSTRS  (UINT64_C(32) << 20) /* … of a launch that is run whole for the next */
#define JUDGED_PARTS     12                   /* of a tensor */
#define JUDGED_PART_COST 5e7                  /* terms of the reference of one */
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
#define WATCHED_INSTRS   (UINT64_C(1) << 17)
#define WATCHED_PRODUCER (UINT64_C(1) << 19)
#define PATIENCE_MS      3000 /* for one run that need not be */
#define COVER_MS         6000
#define SEARCH_SHARE     4 /* in a search a fourth of these, and … */
#define RUN_LIMIT_MS     20000
#define SAMPLES          6
#define TIME_MS          2000

static json *number_text(uint64_t v) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    return json_string(str_view(text));
}

/* What the plans need, the strictest. The task's own shape is aligned as allocators align, for the
 * sake of its times; small shapes no more than the plan asks for. */
static json *align_json(const struct inst *in, bool own, const struct bound_plan *const *plans,
                        size_t n) {
    json *align = json_array();
    for (size_t i = 0; i < in->task->ntensors; i++) {
        uint32_t most = own ? PLAN_MAX_ALIGN : PLAN_ALIGN;
        for (size_t k = 0; k < n; k++)
            most = plans[k]->align[i] > most ? plans[k]->align[i] : most;
        json_push_i64(align, most);
    }
    return align;
}

static json *shape_json(const struct inst *in, str label, bool own,
                        const struct bound_plan *const *plans, size_t n) {
    json *j = json_object(), *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(list, plan_to_json(plans[i]));
    json_set_str(j, "label", label);
    json_set(j, "set", set_to_json(in));
    json_set(j, "plans", list);
    json_set(j, "align", align_json(in, own, plans, n));
    return j;
}

static json *batch_json(const struct trial_batch *b) {
    json *j = json_object(), *cases = json_array();
    for (size_t i = 0; i < b->n; i++) {
        json *c = json_object();
        json_set_str(c, "data", str_view(data_name(b->cases[i].data)));
        json_set(c, "seed", number_text(b->cases[i].seed));
        json_push(cases, c);
    }
    json_set_i64(j, "shape", (int64_t)b->shape);
    json_set(j, "cases", cases);
    if (b->counted)
        json_set_bool(j, "counted", true);
    if (b->checked)
        json_set_bool(j, "checked", true);
    if (b->checked_drawn)
        json_set_bool(j, "checked_drawn", true);
    if (b->order)
        json_set_i64(j, "order", b->order);
    if (b->timed)
        json_set_bool(j, "timed", true);
    if (b->patient)
        json_set_i64(j, "patience_ms", PATIENCE_MS);
    if (b->extra)
        json_set_bool(j, "extra", true);
    return j;
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

static json *new_job(const struct evaluator_options *o, const struct trials *t, unsigned time_ms) {
    json *j = json_object(), *batches = json_array(), *time = json_object();
    for (size_t i = 0; i < t->nbatches; i++)
        if (!o->dump || !t->batches[i].timed)
            json_push(batches, batch_json(&t->batches[i]));
    json_set_i64(time, "samples", o->samples ? o->samples : SAMPLES);
    json_set_i64(time, "budget_ms", time_ms ? time_ms : TIME_MS);
    json_set_i64(j, "limit_ms", o->run_limit_ms ? o->run_limit_ms : RUN_LIMIT_MS);
    json_set(j, "batches", batches);
    json_set(j, "time", time);
    if (o->thorough || o->verify_only)
        json_set_bool(j, "fresh", true);
    if (o->dump)
        json_set_bool(j, "dump", true);
    return j;
}

static void set_modules(json *j, const size_t *bytes, size_t n) {
    json *modules = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_i64(modules, (int64_t)bytes[i]);
    json_set(j, "modules", modules);
}

static json *own_json(const struct evaluator_options *o, const struct trials *t, int64_t ctas) {
    json *j = json_object();
    struct arena *a = arena_new(1 << 16);
    json_set_str(j, "label", inst_label(o->inst, a));
    json_set(j, "set", set_to_json(o->inst));
    json_set(j, "plan", plan_to_json(&t->task_plan));
    json_set_i64(j, "sample_ctas", ctas);
    arena_free(a);
    return j;
}

static json *measure_json(const struct evaluator_options *o, const struct trials *t, bool covers) {
    int64_t ctas = t->task_shape_run ? 0
                                     : sampled_ctas(o->inst, &t->task_plan, SAMPLED_CTAS,
                                                    SAMPLED_ELEMENTS, SAMPLED_FLOPS);
    json *m = own_json(o, t, ctas);
    json_set_bool(m, "lines", o->observe_only);
    json_set_bool(m, "covers", covers);
    return m;
}

/* The device learns the seed of this run's data, which no other case has. */
static json *drawn_json(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                        enum data_kind data, int64_t ctas) {
    struct rng r = rng_stream(secret, S("sample"));
    json *s = own_json(o, t, ctas);
    json_set_str(s, "data", str_view(data_name(data)));
    json_set(s, "seed", number_text(rng_u64(r, 2 * data)));
    json_set(s, "key", number_text(rng_u64(r, 2 * data + 1) | 1));
    json_set(s, "patience_ms", number_text(PATIENCE_MS));
    return s;
}

static json *sample_json(const struct evaluator_options *o, const struct trials *t,
                         uint64_t secret) {
    uint64_t share = o->thorough ? 1 : SEARCH_SHARE;
    int64_t ctas = sampled_ctas(o->inst, &t->task_plan, JUDGED_CTAS / (int64_t)share,
                                JUDGED_ELEMENTS / (int64_t)share, JUDGED_FLOPS / (double)share);
    json *s = drawn_json(o, t, secret, DATA_SIGNED, ctas);
    json_set_bool(s, "covers", true);
    json_set(s, "budget", number_text(JUDGED_INSTRS / share));
    json_set(s, "producer_budget", number_text(PRODUCER_INSTRS / share));
    json_set(s, "survey",
             number_text(!o->thorough ? 0
                                      : (uint64_t)sampled_ctas(o->inst, &t->task_plan, SAMPLED_CTAS,
                                                               SAMPLED_ELEMENTS, SAMPLED_FLOPS)));
    json_set_i64(s, "parts", JUDGED_PARTS / (int64_t)share);
    json_set_f64(s, "most", JUDGED_PART_COST / (double)share);
    return s;
}

/* Once more, for the values of other data, which signed ones do not show: of more blocks, so that
 * rows of several kinds are met. */
static json *values_json(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                         enum data_kind data) {
    json *s = drawn_json(
        o, t, secret, data,
        sampled_ctas(o->inst, &t->task_plan, VALUES_CTAS, VALUES_ELEMENTS, JUDGED_FLOPS / 4));
    json_set_bool(s, "values", true);
    json_set(s, "budget", number_text(JUDGED_INSTRS / VALUES_SHARE));
    json_set(s, "producer_budget", number_text(PRODUCER_INSTRS / VALUES_SHARE));
    json_set(s, "survey", number_text(0));
    json_set_i64(s, "parts", VALUES_PARTS);
    json_set_f64(s, "most", VALUES_PART_COST);
    return s;
}

/* Of a shape that is run whole the values are judged and nothing is left to cover, but no checker
 * sees it: the require lines may admit no shape that one does. */
static json *watch_json(const struct evaluator_options *o, const struct trials *t,
                        uint64_t secret) {
    int64_t ctas =
        sampled_ctas(o->inst, &t->task_plan, WATCHED_CTAS, WATCHED_ELEMENTS, WATCHED_FLOPS);
    json *s = drawn_json(o, t, secret, DATA_SIGNED, ctas);
    json_set(s, "budget", number_text(WATCHED_INSTRS));
    json_set(s, "producer_budget", number_text(WATCHED_PRODUCER));
    json_set(s, "survey", number_text(0));
    json_set_i64(s, "parts", 0);
    return s;
}

json *job_of_trials(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                    size_t bytes) {
    unsigned screen_ms = o->duel && o->screen_ms ? o->screen_ms : o->time_ms;
    json *j = new_job(o, t, screen_ms), *shapes = json_array();
    for (size_t i = 0; i < t->n; i++) {
        const struct bound_plan *plan = &t->shapes[i].plan;
        const struct inst *in = t->shapes[i].inst;
        json_push(shapes, shape_json(in, t->shapes[i].label, in == o->inst, &plan, 1));
    }
    json_set(j, "shapes", shapes);
    set_modules(j, &bytes, 1);
    bool covers = t->covers && !o->dump;
    json *samples = json_array();
    if (covers) {
        json_set_bool(j, "covers", true);
        json_set_i64(j, "cover_ms", o->thorough ? COVER_MS : COVER_MS / SEARCH_SHARE);
        json_push(samples, sample_json(o, t, secret));
    } else if (t->watches && !o->dump) {
        json_push(samples, watch_json(o, t, secret));
    }
    if (covers && o->thorough && !o->watch) {
        json_push(samples, values_json(o, t, secret, DATA_MIXED));
        json_push(samples, values_json(o, t, secret, DATA_SUBNORMAL));
    }
    json_set(j, "samples", samples);
    if (o->device.kind == DEVICE_SIM && (o->observe_only || covers))
        json_set(j, "measure", measure_json(o, t, covers));
    return j;
}

json *job_of_duel(const struct evaluator_options *o, uint64_t secret, const struct job_module *m,
                  size_t n) {
    const struct bound_plan *plans[EVALUATOR_MAX_DUEL] = {0};
    size_t bytes[EVALUATOR_MAX_DUEL] = {0};
    struct trials_options to = {
        .secret = secret, .gpu = true, .measure = true, .memory = o->memory_bytes};
    struct trials *t = mem_alloc(sizeof *t);
    struct arena *a = arena_new(1 << 20);
    json *shapes = json_array();
    trials_timed(o->inst, &to, t);
    json *j = new_job(o, t, o->time_ms);
    for (size_t i = 0; i < n; i++) {
        plans[i] = m[i].plan;
        bytes[i] = m[i].bytes;
    }
    json_push(shapes, shape_json(o->inst, inst_label(o->inst, a), true, plans, n));
    json_set(j, "shapes", shapes);
    set_modules(j, bytes, n);
    arena_free(a);
    mem_free(t);
    return j;
}
