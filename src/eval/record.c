#include "eval/record.h"

#include "base/hash.h"
#include "device/job.h"
#include "kernel/census.h"
#include "kernel/includes.h"

#include <stdio.h>

#define FLOOR_MARGIN  0.97   /* of the floor: clocks and counters are not that exact */
#define CLOCK_SLACK_S 200e-6 /* of a launch and a synchronisation, as the host sees them … */
#define CLOCK_SLACK   0.2    /* … and in parts of the time */

/* The one place where a verdict gets its reason. A process that died may have left none; its author
 * is told at least what the verdict means. */
static void set_verdict(json *r, str verdict, str why) {
    enum verdict v;
    bool accepted = str_is(verdict, verdict_name(VERDICT_ACCEPTED));
    if (!accepted && !str_trim(why).n)
        why = verdict_find(verdict, &v) ? str_view(verdict_meaning(v))
                                        : S("it was rejected, and no reason was given");
    json_set_str(r, "verdict", verdict);
    json_set_bool(r, "accepted", accepted);
    json_set_str(r, "why", why);
}

static json *base_record(const struct record_input *in, str verdict, str why) {
    const struct evaluator_options *o = in->options;
    json *r = json_object();
    char hex[65], version[32];
    digest_hex(sha256_of(in->source), hex);
    set_verdict(r, verdict, why);
    json_set_str(r, "task", o->task->name);
    json_set_str(r, "device", str_view(o->device.text));
    json_set_str(r, "source_sha256", str_view(hex));
    json_set_str(r, "cutepilot", S(CUTEPILOT_VERSION));
    snprintf(version, sizeof version, "%d.%d", o->nvrtc.major, o->nvrtc.minor);
    json_set_str(r, "nvrtc", str_view(version));
    json_set_str(r, "arch", str_view(o->device.gpu->arch));
    json_set_f64(r, "wall_ms", in->wall_ms);
    json_set_f64(r, "queue_ms", in->queue_ms);
    return r;
}

static void add_census(json *k, const struct ptx_module *m, str kernel) {
    const struct ptx_entry *e = m ? ptx_find_entry(m, kernel) : NULL;
    if (!e)
        return;
    struct arena *a = arena_new(16u << 20);
    struct census c;
    census_take(m, e, a, &c);
    json_set(k, "census", census_to_json(&c));
    arena_free(a);
}

/* Whether the source is written in CuTe. */
static void add_dialect(json *r, const struct record_input *in) {
    struct arena *a = arena_new(16u << 20);
    struct includes inc;
    includes_scan(in->source, a, &inc);
    json_set_bool(r, "cute", inc.cute);
    arena_free(a);
}

static void add_build(json *r, const struct record_input *in) {
    if (!in->build)
        return;
    add_dialect(r, in);
    json *kernels = json_array();
    for (size_t i = 0; i < in->nkernels; i++) {
        json *k = json_object();
        json_set_str(k, "name", in->kernels[i].name);
        json_set_i64(k, "registers", in->kernels[i].registers);
        json_set_i64(k, "shared_static", (int64_t)in->kernels[i].shared_static);
        json_set_i64(k, "local_bytes", (int64_t)in->kernels[i].local_bytes);
        if (in->kernels[i].spill_store_bytes >= 0)
            json_set_i64(k, "spill_bytes", in->kernels[i].spill_store_bytes);
        add_census(k, in->module, in->kernels[i].name);
        json_push(kernels, k);
    }
    json_set(r, "kernels", kernels);
    json_set_bool(r, "build_cached", in->build->cached);
    json_set_f64(r, "build_ms", in->build->wall_ms);
}

static void add_scope(json *r, const struct record_input *in) {
    char seed[32];
    if (!in->trials)
        return;
    json_set_str(r, "scope", in->trials->scope);
    json_set_bool(r, "task_shape_verified", in->trials->task_shape_run);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)in->seed);
    json_set_str(r, "verify_seed", str_view(seed));
}

/* ---- what was not judged ---- */

static int64_t integer_of(const json *j, const char *key) {
    int64_t v = 0;
    json_get_i64(j, key, &v);
    return v;
}

static void say_sample(struct buf *b, const json *sample) {
    const json *unjudged = json_get(sample, "unjudged");
    int64_t elements = integer_of(sample, "elements");
    buf_printf(b, "; %lld of its %lld blocks were run and %lld of their results judged",
               (long long)integer_of(sample, "blocks"),
               (long long)integer_of(sample, "blocks_total"), (long long)elements);
    for (size_t i = 0; i < json_len(unjudged); i++) {
        str why = {0};
        json_to_str(json_at(unjudged, i), &why);
        buf_printf(b, "; %.*s", STR_ARG(why));
    }
    if (!elements && !json_len(unjudged))
        buf_printf(b, ", because %s",
                   integer_of(sample, "skipped") ? "the reference of one takes too long"
                                                 : "none is complete before other blocks have run");
}

static void say_missing(struct buf *b, const json *coverage) {
    const json *missing = json_get(coverage, "missing");
    int64_t n = integer_of(coverage, "uncovered");
    if (!n)
        return;
    buf_printf(b, "; what happens there and in no run that was judged (%lld): ", (long long)n);
    for (size_t i = 0; i < json_len(missing); i++) {
        str text = {0};
        json_to_str(json_at(missing, i), &text);
        buf_printf(b, "%s%.*s", i ? ", " : "", STR_ARG(text));
    }
    if ((int64_t)json_len(missing) < n)
        buf_printf(b, ", …");
}

/* Where the task's own shape was not run whole: what was judged of it, and what was not. */
static void add_coverage(json *r, const struct record_input *in, const json *result) {
    const json *sample = json_get(result, "sample"), *coverage = json_get(result, "coverage");
    if (!in->trials || !in->trials->covers || !sample)
        return;
    struct buf scope;
    buf_init(&scope, 16384);
    buf_puts(&scope, in->trials->scope);
    say_sample(&scope, sample);
    say_missing(&scope, coverage);
    json_set_str(r, "scope", buf_str(&scope));
    buf_release(&scope);
    json_set(r, "sample", json_copy(sample));
    if (coverage)
        json_set(r, "coverage", json_copy(coverage));
    json_set_bool(r, "covered",
                  integer_of(coverage, "uncovered") == 0 && integer_of(sample, "elements") > 0 &&
                      !json_len(json_get(sample, "unjudged")));
}

json *record_verdict(const struct record_input *in, enum verdict v, str why) {
    json *r = base_record(in, str_view(verdict_name(v)), why);
    add_build(r, in);
    return r;
}

static const struct kernel_facts *facts_of(const struct record_input *in, str kernel) {
    for (size_t i = 0; i < in->nkernels; i++)
        if (str_eq(in->kernels[i].name, kernel))
            return &in->kernels[i];
    return NULL;
}

static json *sizes_json(const uint32_t n[3]) {
    json *list = json_array();
    for (int d = 0; d < 3; d++)
        json_push_i64(list, n[d]);
    return list;
}

/* What the plan starts at the task's own shape: the same on every device. */
static void add_launches(json *r, const struct record_input *in) {
    const struct bound_plan *plan = in->trials ? &in->trials->task_plan : NULL;
    json *list = json_array();
    for (size_t i = 0; plan && i < plan->nlaunches; i++) {
        const struct bound_launch *l = &plan->launches[i];
        json *j = json_object();
        json_set_str(j, "kernel", l->kernel);
        json_set(j, "grid", sizes_json(l->grid));
        json_set(j, "block", sizes_json(l->block));
        json_set(j, "cluster", sizes_json(l->cluster));
        json_set_i64(j, "shared_dynamic", (int64_t)l->shared);
        json_push(list, j);
    }
    json_set(r, "launches", list);
}

static json *estimate_json(const struct sim_estimate *e, const struct bound_launch *l,
                           const struct kernel_facts *f) {
    json *j = json_object();
    json_set_str(j, "kernel", l->kernel);
    json_set(j, "grid", sizes_json(l->grid));
    json_set(j, "block", sizes_json(l->block));
    json_set_i64(j, "shared_bytes", (int64_t)((f ? f->shared_static : 0) + l->shared));
    json_set_i64(j, "registers", f ? f->registers : 0);
    if (f && f->spill_store_bytes >= 0)
        json_set_i64(j, "spill_bytes", f->spill_store_bytes);
    json_set_f64(j, "time_s", e->time_s);
    json_set_f64(j, "dram_s", e->dram_s);
    json_set_f64(j, "l2_s", e->l2_s);
    json_set_f64(j, "issue_s", e->issue_s);
    json_set_f64(j, "pipe_s", e->pipe_s);
    json_set_f64(j, "tensor_s", e->tensor_s);
    json_set_f64(j, "lsu_s", e->lsu_s);
    json_set_f64(j, "latency_s", e->latency_s);
    json_set_f64(j, "dispatch_s", e->dispatch_s);
    json_set_f64(j, "launch_s", e->launch_s);
    json_set_str(j, "bound", str_view(e->bound));
    json_set_i64(j, "blocks_sm", e->occupancy.blocks_sm);
    json_set_i64(j, "warps_sm", e->occupancy.warps_sm);
    json_set_str(j, "occupancy_limiter", str_view(e->occupancy.limiter));
    json_set_f64(j, "waves", e->waves);
    return j;
}

struct estimate {
    bool known;
    double time_s, launch_s;
    const char *bound; /* of the slowest launch */
    json *launches;
};

/* The sum over the launches. */
static void estimate(const struct record_input *in, const json *counters, struct estimate *out) {
    const struct bound_plan *plan = &in->trials->task_plan;
    double slowest = 0;
    *out = (struct estimate){.bound = "", .launches = json_array()};
    out->known = plan->nlaunches == json_len(counters);
    for (size_t i = 0; out->known && i < plan->nlaunches; i++) {
        const struct bound_launch *l = &plan->launches[i];
        const struct kernel_facts *f = facts_of(in, l->kernel);
        struct sim_counters c;
        struct sim_estimate e;
        out->known = counters_from_json(json_at(counters, i), &c);
        if (!out->known)
            break;
        sim_model(in->options->device.gpu, &c, l->block[0] * l->block[1] * l->block[2],
                  f ? f->registers : 32, (f ? f->shared_static : 0) + l->shared, &e);
        out->time_s += e.time_s;
        out->launch_s += e.launch_s;
        if (!(e.time_s <= slowest)) {
            slowest = e.time_s;
            out->bound = e.bound;
        }
        json_push(out->launches, estimate_json(&e, l, f));
    }
}

static void add_estimate(json *r, const struct record_input *in, const struct estimate *e,
                         const json *counters) {
    json_set_f64(r, "time_s", e->time_s);
    json_set_bool(r, "estimated", true);
    json_set_bool(r, "model_calibrated", in->options->device.gpu->calibrated);
    json_set_str(r, "bound", str_view(e->bound));
    json_set_f64(r, "limit_s", in->limit->limit_s);
    json_set_f64(r, "limit_share", e->time_s > 0 ? in->limit->limit_s / e->time_s : 0);
    json_set(r, "estimate", e->launches);
    json_set(r, "counters", json_copy(counters));
}

/* Faster than the memory can be: some of the work was not done, whatever the values say. Launch
 * overhead is no work; the datasheet's bandwidth is above every measured ceiling. */
static bool impossible(const struct record_input *in, const struct estimate *e) {
    return e->known && !(e->time_s - e->launch_s >= 0.999 * in->floor_s);
}

/* ---- measured ---- */

static double *samples_of(const json *list, size_t *n) {
    double *s = mem_alloc((json_len(list) + 1) * sizeof *s);
    *n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        *n += json_to_f64(json_at(list, i), &s[*n]);
    return s;
}

static struct spread spread_json(const json *list) {
    size_t n;
    double *s = samples_of(list, &n);
    struct spread out = spread_of(s, n);
    mem_free(s);
    return out;
}

struct spread record_spread(const json *times) {
    return spread_json(json_get(times, "samples_s"));
}

/* By physics, or by the host's clock, which no kernel reaches: the device's events must agree with
 * it but for the launch. */
static bool too_fast(const struct record_input *in, const json *times, str *why) {
    struct spread s = record_spread(times), host = spread_json(json_get(times, "host_s"));
    if (s.n && !(s.median >= FLOOR_MARGIN * in->floor_s)) {
        *why = S("faster than the memory or the tensor cores can be: part of the work is missing");
        return true;
    }
    if (host.n && !(host.median - s.median <= CLOCK_SLACK_S + CLOCK_SLACK * host.median)) {
        *why = S("the device's clock and the host's do not agree on how long it took");
        return true;
    }
    return false;
}

void record_reject(json *r, str verdict, str why) {
    set_verdict(r, verdict, why);
    json_set_bool(r, "accepted", false);
}

void record_times(json *r, const struct record_input *in, const json *times) {
    struct spread s = record_spread(times);
    str why;
    json_set_f64(r, "time_s", s.median);
    json_set_f64(r, "ci_low_s", s.low);
    json_set_f64(r, "ci_high_s", s.high);
    json_set_bool(r, "estimated", false);
    json_set_f64(r, "limit_s", in->limit->limit_s);
    json_set_f64(r, "limit_share", s.median > 0 ? in->limit->limit_s / s.median : 0);
    json_set_str(r, "bound", in->limit->memory_bound ? S("memory") : S("compute"));
    json_set(r, "samples_s", json_copy(json_get(times, "samples_s")));
    json_set_f64(r, "host_s", spread_json(json_get(times, "host_s")).median);
    if (too_fast(in, times, &why))
        record_reject(r, str_view(verdict_name(VERDICT_IMPOSSIBLE)), why);
}

static const json *own_times(const json *result) {
    return json_at(json_get(result, "times"), 0);
}

static void copy_keys(json *to, const json *from, const char *const *keys) {
    for (; *keys; keys++)
        if (json_get(from, *keys))
            json_set(to, *keys, json_copy(json_get(from, *keys)));
}

json *record_result(const struct record_input *in, const json *result) {
    static const char *const kept[] = {"shape",   "data",      "order",  "details",
                                       "runs",    "verify_ms", "lines",  "findings",
                                       "time_ms", "steps_ms",  "clocks", NULL};
    str verdict = S("crash"), why = S("");
    json_get_str(result, "verdict", &verdict);
    json_get_str(result, "why", &why);
    bool accepted = str_is(verdict, verdict_name(VERDICT_ACCEPTED));
    struct estimate e = {0};
    if (json_get(result, "counters"))
        estimate(in, json_get(result, "counters"), &e);
    if (impossible(in, &e)) {
        verdict = str_view(verdict_name(VERDICT_IMPOSSIBLE));
        why = S("by what it was counted to do it would be faster than memory allows: part of the "
                "work is missing");
    }
    json *r = base_record(in, verdict, why);
    double waited_ms = 0;
    if (json_get_f64(result, "waited_ms", &waited_ms))
        json_set_f64(r, "queue_ms", in->queue_ms + waited_ms);
    add_scope(r, in);
    add_coverage(r, in, result);
    add_build(r, in);
    add_launches(r, in);
    if (e.known)
        add_estimate(r, in, &e, json_get(result, "counters"));
    else
        json_free(e.launches);
    if (accepted && own_times(result))
        record_times(r, in, own_times(result));
    copy_keys(r, result, kept);
    return r;
}

json *record_duel(const struct record_input *in, const json *result, const json *duel) {
    str verdict = {0};
    if (!duel)
        return record_result(in, result);
    json_get_str(duel, "verdict", &verdict);
    if (!str_is(verdict, verdict_name(VERDICT_ACCEPTED)))
        return record_result(in, duel); /* right alone, and not beside another */
    json *r = record_result(in, result);
    const json *mine = own_times(duel), *other = json_at(json_get(duel, "times"), 1);
    if (!mine || !other || !record_spread(other).n)
        return r;
    json *d = json_object();
    struct spread a = record_spread(mine), b = record_spread(other);
    json_set_f64(d, "ratio", a.median / b.median);
    json_set_f64(d, "other_s", b.median);
    json_set_bool(d, "faster", a.high < b.low);
    json_set(r, "duel", d);
    record_times(r, in, mine);
    return r;
}
