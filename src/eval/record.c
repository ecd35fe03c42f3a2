#include "eval/record.h"

#include "base/hash.h"
#include "eval/outcome.h"
#include "kernel/includes.h"
#include "sim/model.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RECORD_ARENA ((size_t)256 << 20)

#define FIELDS_AS_TABLES
#include "base/fields_as.h"

BEGIN(census)
RANGE(instructions, 0, INT64_MAX)
MAP(struct census_count, groups, 64, )
MAP(struct census_count, forms, CENSUS_MAX_FORMS, )
END(census)

#include "eval/record.def"

/* ---- records ---- */

static struct record *record_alloc(void) {
    struct arena *mem = arena_new(RECORD_ARENA);
    struct record *r = arena_new_of(mem, struct record);
    r->mem = mem;
    return r;
}

struct record *record_new(enum verdict v, str why) {
    struct record *r = record_alloc();
    fields_set(r, schema, RECORD_SCHEMA);
    record_set_verdict(r, v, why);
    return r;
}

struct record *record_copy(const struct record *r) {
    struct record *copy = record_alloc();
    struct arena *mem = copy->mem;
    fields_copy(&record_fields, r, mem, copy);
    copy->mem = mem;
    return copy;
}

void record_free(struct record *r) {
    if (r)
        arena_free(r->mem);
}

json *record_to_json(const struct record *r) {
    return fields_to_json(&record_fields, r);
}

static struct record *record_from_json(const json *j, struct err *err) {
    struct record *r = record_alloc();
    struct arena *mem = r->mem;
    bool ok = fields_from_json(&record_fields, j, mem, r, err) || err_wrap(err, "record");
    r->mem = mem;
    r->accepted = r->verdict == VERDICT_ACCEPTED;
    if (ok && r->has_schema && r->schema > RECORD_SCHEMA)
        ok = err_set(err, ERR_INPUT,
                     "the record was written by a newer cutepilot (schema %u, this one knows %d)",
                     r->schema, RECORD_SCHEMA);
    if (ok)
        return r;
    record_free(r);
    return NULL;
}

struct record *record_parse(str text, struct err *err) {
    json *j = json_parse(text, err);
    struct record *r = j ? record_from_json(j, err) : NULL;
    json_free(j);
    return r;
}

void record_write(const struct record *r, struct buf *out) {
    fields_write(&record_fields, r, out);
}

void record_set_verdict(struct record *r, enum verdict v, str why) {
    r->verdict = v;
    r->accepted = v == VERDICT_ACCEPTED;
    if (!r->accepted && !str_trim(why).n)
        why = str_view(verdict_meaning(v));
    r->why = arena_str(r->mem, why);
}

/* When a candidate got so far. */
static struct record_phases *phases_of(struct record *r) {
    if (!r->phases)
        r->phases = arena_new_of(r->mem, struct record_phases);
    return r->phases;
}

double phase_now(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    return (double)ms / 1000;
}

void record_set_origin(struct record *r, const struct origin *from) {
    if (r->has_ordinal || !from->step)
        return;
    fields_set(r, ordinal, (int64_t)from->ordinal);
    r->parents = arena_array(r->mem, int64_t, from->nparents);
    for (; r->nparents < from->nparents; r->nparents++)
        r->parents[r->nparents] = (int64_t)from->parents[r->nparents];
    r->step = arena_str(r->mem, str_view(from->step));
    if (from->structure.n)
        r->structure = arena_str(r->mem, from->structure);
    if (from->proposed > 0)
        fields_set(phases_of(r), proposed_at, from->proposed);
}

/* ---- outcomes ---- */

struct outcome *outcome_of(struct record *r) {
    struct outcome *o = mem_alloc(sizeof *o);
    bool accepted = r->verdict == VERDICT_ACCEPTED;
    *o = (struct outcome){.verdict = r->verdict,
                          .time_s = accepted && r->has_time_s ? r->time_s : INFINITY,
                          .estimated = r->estimated,
                          .covered = !r->has_covered || r->covered,
                          .bound = arena_cstr(r->mem, r->bound),
                          .limit_share = accepted ? r->limit_share : 0,
                          .why = arena_cstr(r->mem, r->why),
                          .record = r};
    return o;
}

void outcome_free(struct outcome *o) {
    if (!o)
        return;
    record_free(o->record);
    mem_free(o);
}

#define FLOOR_MARGIN  0.97   /* of the floor: clocks and counters are not that exact */
#define CLOCK_SLACK_S 200e-6 /* of a launch and a synchronisation, as the host sees them … */
#define CLOCK_SLACK   0.2    /* … and in parts of the time */

static struct record *base_record(const struct record_input *in, enum verdict v, str why) {
    const struct evaluator_options *o = in->options;
    struct record *r = record_new(v, why);
    char hex[65];
    digest_hex(sha256_of(in->source), hex);
    r->task = arena_str(r->mem, o->task->name);
    r->device = arena_str(r->mem, str_view(o->device.text));
    r->source_sha256 = arena_str(r->mem, str_view(hex));
    r->cutepilot = S(CUTEPILOT_VERSION);
    r->nvrtc = arena_printf(r->mem, "%d.%d", o->nvrtc.major, o->nvrtc.minor);
    r->arch = arena_str(r->mem, str_view(o->device.gpu->arch));
    fields_set(r, wall_ms, in->wall_ms);
    fields_set(r, queue_ms, in->queue_ms);
    *phases_of(r) = in->phases;
    fields_set(r->phases, decided_at, phase_now());
    return r;
}

static struct census *census_of(const struct ptx_module *m, str kernel, struct arena *a) {
    const struct ptx_entry *e = m ? ptx_find_entry(m, kernel) : NULL;
    struct census *c = e ? arena_new_of(a, struct census) : NULL;
    if (c) {
        census_take(m, e, a, c);
        fields_copy(&census_fields, c, a, c); /* names are the module's so far */
    }
    return c;
}

/* Whether the source is written in CuTe. */
static bool is_cute(str source) {
    struct arena *a = arena_new(16u << 20);
    struct includes inc;
    includes_scan(includes_body(source), a, &inc);
    arena_free(a);
    return inc.cute;
}

static void add_build(struct record *r, const struct record_input *in) {
    if (!in->build)
        return;
    fields_set(r, cute, is_cute(in->source));
    r->kernels = arena_array(r->mem, struct record_kernel, in->nkernels);
    for (; r->nkernels < in->nkernels; r->nkernels++) {
        const struct kernel_facts *f = &in->kernels[r->nkernels];
        struct record_kernel *k = &r->kernels[r->nkernels];
        *k = (struct record_kernel){.name = arena_str(r->mem, f->name),
                                    .registers = f->registers,
                                    .shared_static = (int64_t)f->shared_static,
                                    .local_bytes = (int64_t)f->local_bytes,
                                    .has_spill_bytes = f->spill_store_bytes >= 0,
                                    .spill_bytes = f->spill_store_bytes,
                                    .census = census_of(in->module, f->name, r->mem)};
    }
    fields_set(r, build_cached, in->build->cached);
    fields_set(r, build_ms, in->build->wall_ms);
}

static void add_scope(struct record *r, const struct record_input *in) {
    if (!in->trials)
        return;
    fields_set(r, verify_seed, in->seed);
    r->nskipped = in->trials->nskipped;
    r->skipped = arena_array(r->mem, struct record_skipped, r->nskipped);
    for (size_t i = 0; i < r->nskipped; i++)
        r->skipped[i] =
            (struct record_skipped){.shape = arena_str(r->mem, in->trials->skipped[i].label),
                                    .require = arena_str(r->mem, in->trials->skipped[i].require)};
    if (!r->accepted) /* judging ended at its first failure */
        return;
    r->scope = arena_str(r->mem, in->trials->scope);
    fields_set(r, task_shape_verified, in->trials->task_shape_run && !in->trials->room.sampled);
}

/* ---- what was not judged ---- */

void record_sample_words(const struct result_sample *s, struct buf *out) {
    if (s->blocks > s->blocks_total)
        buf_printf(out, "its %lld blocks were run %lld times in all, on several kinds of data,",
                   (long long)s->blocks_total, (long long)s->blocks);
    else
        buf_printf(out, "%lld of its %lld blocks were run", (long long)s->blocks,
                   (long long)s->blocks_total);
    buf_printf(out, " and %lld of their results judged", (long long)s->elements);
}

static void say_sample(struct buf *b, const struct result_sample *s) {
    buf_puts(b, S("; "));
    record_sample_words(s, b);
    for (size_t i = 0; i < s->nunjudged; i++)
        buf_printf(b, "; %.*s", STR_ARG(s->unjudged[i]));
    if (!s->elements && !s->nunjudged)
        buf_printf(b, ", because %s",
                   s->skipped ? "the reference of one takes too long"
                              : "none is complete before other blocks have run");
}

enum { MISSING_SHOWN = 4 };

static void say_missing(struct buf *b, const struct wire_coverage *c) {
    if (!c || !c->uncovered)
        return;
    buf_printf(
        b, "; what happens there and in no run that was judged (%lld): ", (long long)c->uncovered);
    size_t n = c->nmissing < MISSING_SHOWN ? c->nmissing : MISSING_SHOWN;
    for (size_t i = 0; i < n; i++)
        buf_printf(b, "%s%.*s", i ? ", " : "", STR_ARG(c->missing[i]));
    if ((int64_t)n < c->uncovered)
        buf_printf(b, ", and %lld more (--json has all)", (long long)c->uncovered - (long long)n);
}

/* Where the task's own shape was not run whole: what was judged of it, and what was not. */
static void add_coverage(struct record *r, const struct record_input *in,
                         const struct result *result) {
    const struct result_sample *sample = result->sample;
    const struct wire_coverage *coverage = result->coverage;
    if (!r->accepted || !in->trials || !in->trials->covers || !sample)
        return;
    struct buf scope;
    buf_init(&scope, 16384);
    buf_puts(&scope, in->trials->scope);
    say_sample(&scope, sample);
    say_missing(&scope, coverage);
    r->scope = arena_str(r->mem, buf_str(&scope));
    buf_release(&scope);
    r->sample = result->sample;
    r->coverage = result->coverage;
    fields_set(r, covered,
               (!coverage || coverage->uncovered == 0) && sample->elements > 0 &&
                   !sample->nunjudged);
}

static void add_where(struct record *r, const struct record_input *in) {
    if (in->where.node.n)
        r->node = arena_str(r->mem, in->where.node);
    if (in->where.gpu.n)
        r->gpu = arena_str(r->mem, in->where.gpu);
}

struct record *record_verdict(const struct record_input *in, enum verdict v, str why) {
    struct record *r = base_record(in, v, why);
    add_build(r, in);
    return r;
}

static const struct kernel_facts *facts_of(const struct record_input *in, str kernel) {
    for (size_t i = 0; i < in->nkernels; i++)
        if (str_eq(in->kernels[i].name, kernel))
            return &in->kernels[i];
    return NULL;
}

/* What the plan starts at the task's own shape: the same on every device. */
static void add_launches(struct record *r, const struct record_input *in) {
    const struct bound_plan *plan = in->trials ? &in->trials->task_plan : NULL;
    if (!plan)
        return;
    r->launches = arena_array(r->mem, struct record_launch, plan->nlaunches);
    for (; r->nlaunches < plan->nlaunches; r->nlaunches++) {
        const struct bound_launch *l = &plan->launches[r->nlaunches];
        struct record_launch *to = &r->launches[r->nlaunches];
        *to = (struct record_launch){.kernel = arena_str(r->mem, l->kernel),
                                     .shared_dynamic = (int64_t)l->shared,
                                     .once = l->once};
        memcpy(to->grid, l->grid, sizeof to->grid);
        memcpy(to->block, l->block, sizeof to->block);
        memcpy(to->cluster, l->cluster, sizeof to->cluster);
    }
}

/* ---- estimated ---- */

static struct record_estimate estimate_of(const struct sim_estimate *e,
                                          const struct bound_launch *l,
                                          const struct kernel_facts *f, struct arena *a) {
    struct record_estimate out = {
        .kernel = arena_str(a, l->kernel),
        .shared_bytes = (int64_t)((f ? f->shared_static : 0) + l->shared),
        .registers = f ? f->registers : 0,
        .has_spill_bytes = f && f->spill_store_bytes >= 0,
        .spill_bytes = f ? f->spill_store_bytes : 0,
        .time_s = e->time_s,
        .dram_s = e->dram_s,
        .l2_s = e->l2_s,
        .issue_s = e->issue_s,
        .pipe_s = e->pipe_s,
        .tensor_s = e->tensor_s,
        .lsu_s = e->lsu_s,
        .latency_s = e->latency_s,
        .dispatch_s = e->dispatch_s,
        .launch_s = e->launch_s,
        .bound = str_view(e->bound),
        .blocks_sm = e->occupancy.blocks_sm,
        .warps_sm = e->occupancy.warps_sm,
        .occupancy_limiter = str_view(e->occupancy.limiter),
        .waves = e->waves,
    };
    memcpy(out.grid, l->grid, sizeof out.grid);
    memcpy(out.block, l->block, sizeof out.block);
    return out;
}

struct estimate {
    bool known;
    double time_s, launch_s;
    double once_s;     /* of time_s, the launches that are done once */
    bool sampled;      /* blocks stand for all of a launch */
    double scatter;    /* then: the relative standard error of what they ask memory for, at most */
    const char *bound; /* of the slowest launch */
    struct record_estimate launches[CANDIDATE_MAX_LAUNCHES];
    size_t n;
};

/* The relative standard error of the mean traffic of the blocks that were run. Of a single one
 * nothing is known. */
static double scatter_of(const struct sim_counters *c) {
    double n = (double)c->gangs, mean = (double)c->gang_kib / fmax(n, 1);
    double variance = (double)c->gang_kib_squares / fmax(n, 1) - mean * mean;
    return n > 1 && mean > 0 ? sqrt(fmax(variance, 0) / (n - 1)) / mean : 1;
}

/* The sum over the launches. */
static void estimate(const struct record_input *in, const struct result *result, struct arena *a,
                     struct estimate *out) {
    const struct bound_plan *plan = &in->trials->task_plan;
    double slowest = 0;
    out->bound = "";
    out->known = plan->nlaunches == result->ncounters;
    for (; out->known && out->n < plan->nlaunches; out->n++) {
        const struct bound_launch *l = &plan->launches[out->n];
        const struct kernel_facts *f = facts_of(in, l->kernel);
        struct sim_estimate e;
        sim_model(in->options->device.gpu, &result->counters[out->n],
                  (struct sim_block){.threads = l->block[0] * l->block[1] * l->block[2],
                                     .registers = f ? f->registers : 32,
                                     .spills = f ? f->spill_store_bytes : 0,
                                     .shared = (f ? f->shared_static : 0) + l->shared},
                  &e);
        const struct sim_counters *c = &result->counters[out->n];
        if (c->ctas < c->ctas_total) {
            out->sampled = true;
            out->scatter = fmax(out->scatter, scatter_of(c));
        }
        out->time_s += e.time_s;
        out->launch_s += e.launch_s;
        out->once_s += l->once ? e.time_s : 0;
        if (!(e.time_s <= slowest)) {
            slowest = e.time_s;
            out->bound = e.bound;
        }
        out->launches[out->n] = estimate_of(&e, l, f, a);
    }
}

/* What a few blocks stand for may come out faster than memory allows; it is not. */
static void raise_to_floor(const struct record_input *in, struct estimate *e) {
    if (!e->sampled || e->time_s - e->launch_s >= in->floor_s)
        return;
    e->time_s = in->floor_s + e->launch_s;
    e->bound = "dram";
}

static void add_estimate(struct record *r, const struct record_input *in, struct estimate *e,
                         const struct result *result) {
    raise_to_floor(in, e);
    fields_set(r, time_s, e->time_s);
    if (in->trials->task_plan.once_steps)
        fields_set(r, time_prepared_s, e->time_s - e->once_s);
    fields_set(r, estimated, true);
    fields_set(r, model_calibrated, in->options->device.gpu->calibrated);
    r->bound = str_view(e->bound);
    fields_set(r, limit_s, in->limit->limit_s);
    fields_set(r, limit_share, e->time_s > 0 ? in->limit->limit_s / e->time_s : 0);
    r->estimate = e->launches;
    r->nestimate = e->n;
    r->counters = result->counters;
    r->ncounters = result->ncounters;
}

/* Faster than the memory can be: some of the work was not done, whatever the values say. Launch
 * overhead is no work; the datasheet's bandwidth is above every measured ceiling. Where some blocks
 * stand for all of a launch, their bytes scatter (a tile at an edge has few): the mean is taken to
 * be within two of their standard errors and a tenth. */
static bool impossible(const struct record_input *in, const struct estimate *e) {
    double least = e->sampled ? 0.9 - 2 * e->scatter : 1;
    return e->known && !(e->time_s - e->launch_s >= 0.999 * least * in->floor_s);
}

/* ---- measured ---- */

static struct spread spread_copied(const double *list, size_t n) {
    double *s = mem_alloc((n + 1) * sizeof *s);
    if (n)
        memcpy(s, list, n * sizeof *s);
    struct spread out = spread_of(s, n);
    mem_free(s);
    return out;
}

struct spread record_spread(const struct result_times *t) {
    return spread_copied(t ? t->samples_s : NULL, t ? t->nsamples_s : 0);
}

/* By physics, or by the host's clock, which no kernel reaches: the device's events must agree with
 * it but for the launch. */
static bool too_fast(const struct record_input *in, struct spread s, struct spread host, str *why) {
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

void record_times(struct record *r, const struct record_input *in, const struct result_times *t) {
    struct spread s = record_spread(t), host = spread_copied(t->host_s, t->nhost_s);
    str why;
    fields_set(r, time_s, s.median);
    fields_set(r, ci_low_s, s.low);
    fields_set(r, ci_high_s, s.high);
    fields_set(r, estimated, false);
    fields_set(r, limit_s, in->limit->limit_s);
    fields_set(r, limit_share, s.median > 0 ? in->limit->limit_s / s.median : 0);
    r->bound = in->limit->memory_bound ? S("memory") : S("compute");
    r->samples_s = arena_array(r->mem, double, t->nsamples_s);
    r->nsamples_s = t->nsamples_s;
    if (t->nsamples_s)
        memcpy(r->samples_s, t->samples_s, t->nsamples_s * sizeof *r->samples_s);
    fields_set(r, host_s, host.median);
    if (t->nprepared_s) {
        fields_set(r, time_prepared_s, spread_copied(t->prepared_s, t->nprepared_s).median);
        r->prepared_samples_s = arena_array(r->mem, double, t->nprepared_s);
        r->nprepared_samples_s = t->nprepared_s;
        memcpy(r->prepared_samples_s, t->prepared_s, t->nprepared_s * sizeof(double));
    }
    if (too_fast(in, s, host, &why))
        record_set_verdict(r, VERDICT_IMPOSSIBLE, why);
}

/* What the worker said, as it is. */
static void add_said(struct record *r, const struct result *from) {
    r->shape = from->shape;
    r->data = from->data;
    r->order = from->order;
    r->details = from->details;
    r->runs = from->runs;
    r->nruns = from->nruns;
    r->has_verify_ms = from->has_verify_ms;
    r->verify_ms = from->verify_ms;
    r->lines = from->lines;
    r->nlines = from->nlines;
    r->findings = from->findings;
    r->nfindings = from->nfindings;
    r->has_time_ms = from->has_time_ms;
    r->time_ms = from->time_ms;
    r->steps_ms = from->steps_ms;
    r->clocks = from->clocks;
}

/* The result is borrowed until the record has copies of what it refers to. */
static void own(struct record *r) {
    struct arena *mem = r->mem;
    fields_copy(&record_fields, r, mem, r);
    r->mem = mem;
}

struct record *record_result(const struct record_input *in, const struct result *result) {
    enum verdict verdict = result->verdict;
    str why = result->why;
    struct estimate *e = mem_alloc(sizeof *e);
    struct arena *a = arena_new(16u << 20);
    if (result->ncounters)
        estimate(in, result, a, e);
    if (impossible(in, e)) {
        verdict = VERDICT_IMPOSSIBLE;
        why = S("by what it was counted to do it would be faster than memory allows: part of the "
                "work is missing");
    }
    struct record *r = base_record(in, verdict, why);
    if (result->has_waited_ms)
        r->queue_ms = in->queue_ms + result->waited_ms;
    add_where(r, in);
    add_scope(r, in);
    add_coverage(r, in, result);
    add_launches(r, in);
    if (e->known)
        add_estimate(r, in, e, result);
    add_said(r, result);
    own(r);
    add_build(r, in);
    if (result->verdict == VERDICT_ACCEPTED && result->ntimes)
        record_times(r, in, &result->times[0]);
    arena_free(a);
    mem_free(e);
    return r;
}

struct record *record_duel(const struct record_input *in, const struct result *result,
                           const struct result *duel) {
    if (!duel)
        return record_result(in, result);
    if (duel->verdict != VERDICT_ACCEPTED)
        return record_result(in, duel); /* right alone, and not beside another */
    struct record *r = record_result(in, result);
    if (duel->ntimes < 2 || !duel->times[1].nsamples_s)
        return r;
    struct spread a = record_spread(&duel->times[0]), b = record_spread(&duel->times[1]);
    r->duel = arena_new_of(r->mem, struct record_rival);
    *r->duel = (struct record_rival){
        .ratio = a.median / b.median, .other_s = b.median, .faster = a.high < b.low};
    record_times(r, in, &duel->times[0]);
    return r;
}
