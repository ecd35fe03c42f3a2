/* A part of a shape that is too large to run whole, in the device process on the simulator:
 * counted, held against what the outputs need, and judged by value and under the checkers
 * (docs/EVAL.md). */
#include "device/sim_device.h"

#include "base/frame.h"
#include "device/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct lazy_input {
    const struct inst *inst;
    const struct data_scale *scale;
    enum data_kind kind;
    uint64_t seed;
    size_t tensor;
};

static void touch_input(void *ctx, size_t offset, size_t n, void *dst) {
    const struct lazy_input *in = ctx;
    size_t item = dtype_info(in->inst->task->tensors[in->tensor].dtype)->bytes;
    data_fill(in->inst, in->scale, in->tensor, in->kind, in->seed, (int64_t)(offset / item),
              (int64_t)(n / item), dst);
}

/* An instance in address space that has no memory behind it until it is touched: of a 12 GB tensor
 * of which a few blocks see a few pages there are those pages. */
struct lazy {
    struct inst *inst;
    struct bound_plan plan;
    struct data_scale scale;
    enum data_kind kind;
    uint64_t seed;
    void *maps[TASK_MAX_TENSORS];
    struct places at;
    bool noisy; /* what nobody has written holds noise; otherwise zeros, so that counts repeat and
                   blocks whose predecessors were not run stay in bounds */
    struct rng noise;
};

static bool lazy_read(struct server *s, const struct frame *f, struct arena *a, struct lazy *z,
                      struct err *err) {
    struct binding *set;
    size_t nset;
    if (!s->task || !s->module)
        return err_set(err, ERR_ENV, "bad message: measure or sample");
    z->scale = data_scale_stated();
    return plan_from_json(json_get(f->head, "plan"), a, &z->plan, err) &&
           set_from_json(json_get(f->head, "set"), a, &set, &nset, err) &&
           task_bind(s->task, set, nset, a, &z->inst, err);
}

static bool lazy_tensor(struct server *s, struct lazy *z, size_t i, struct arena *a,
                        struct err *err) {
    const struct tensor *t = &z->inst->task->tensors[i];
    size_t bytes = z->inst->tensors[i].bytes;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return err_errno(err, ERR_ENV, "reserve %zu bytes for %.*s", bytes, STR_ARG(t->name));
    z->maps[i] = p;
    s->bytes += bytes;
    struct sim_buffer b = {.name = t->name,
                           .host = p,
                           .size = bytes,
                           .result = tensor_is_output(t),
                           .undefined = t->role == TENSOR_OUT};
    if (tensor_is_input(t)) {
        struct lazy_input *lazy = arena_new_of(a, struct lazy_input);
        *lazy = (struct lazy_input){z->inst, &z->scale, z->kind, z->seed, i};
        b.read_only = !tensor_is_output(t);
        b.touch = touch_input;
        b.touch_ctx = lazy;
    } else {
        b.touch = z->noisy ? simdev_touch_noise : simdev_touch_zeros;
        b.touch_ctx = &z->noise;
    }
    z->at.tensors[i] = sim_machine_add(s->machine, &b);
    return true;
}

static bool lazy_add(struct server *s, struct lazy *z, struct arena *a, struct answer *out) {
    uint64_t key = 0;
    rng_secret(&key);
    z->noise = rng_stream(key, S("outputs"));
    s->bytes = 0;
    simdev_move_memory(s);
    for (size_t i = 0; i < z->inst->task->ntensors; i++)
        if (tensor_has_memory(&z->inst->task->tensors[i]) && !lazy_tensor(s, z, i, a, &out->why))
            return false;
    return simdev_add_workspaces(s, &z->plan, &z->at, z->noisy, out);
}

static void lazy_free(struct server *s, struct lazy *z) {
    sim_machine_clear(s->machine);
    simdev_free_workspaces(&z->plan, &z->at);
    for (size_t i = 0; z->inst && i < z->inst->task->ntensors; i++)
        if (z->maps[i])
            munmap(z->maps[i], z->inst->tensors[i].bytes);
}

/* ---- counting, and how much is stored ---- */

/* How many distinct sectors all blocks together store to the outputs, and the standard error of
 * that, from what some of them stored. Where those stored the same ones, so do others: if each
 * sector is stored by k blocks of all, a share f of the blocks finds 1-(1-f)^k of them, which is
 * 1-(1-f)^k over k·f of what it stores. */
static void stored_by_all(const struct sim_stores *s, double *sectors, double *error) {
    double f = (double)s->gangs / (double)s->gangs_total, mean = s->sum / (double)s->gangs;
    double spread = s->squares / (double)s->gangs - mean * mean, all = (double)s->gangs_total;
    double low = 1, high = 1e9, share = s->sum > 0 ? s->distinct / s->sum : 1;
    for (int i = 0; i < 100 && f < 1; i++) {
        double k = sqrt(low * high);
        *(-expm1(k * log1p(-f)) / (k * f) > share ? &low : &high) = k;
    }
    *sectors = f < 1 ? mean * all / low : s->distinct;
    *error = f < 1 ? all * sqrt(fmax(spread, 0) / (double)s->gangs) / low : 0;
}

struct storing {
    double sectors, variance;
    bool known; /* of all launches */
};

static void add_stores(void *ctx, const struct sim_result *r) {
    struct storing *all = ctx;
    double sectors, error;
    if (!r->stores.gangs) {
        all->known = false;
        return;
    }
    stored_by_all(&r->stores, &sectors, &error);
    all->sectors += sectors;
    all->variance += error * error;
}

/* Clearly less than the outputs need: something is left unwritten. */
static bool stores_enough(const struct lazy *z, const struct storing *got, struct answer *out) {
    const double sector = 32, enough = 0.9, errors = 4;
    double needed = 0;
    for (size_t i = 0; i < z->inst->task->ntensors; i++)
        if (z->inst->task->tensors[i].role == TENSOR_OUT)
            needed += (double)z->inst->tensors[i].bytes / sector;
    bool filled = false;
    for (size_t i = 0; i < z->plan.nmemsets; i++)
        filled |= z->plan.memsets[i].of == ARG_TENSOR;
    if (!got->known || filled || got->sectors + errors * sqrt(got->variance) >= enough * needed)
        return true;
    err_set(&out->why, ERR_NO,
            "at the task's own shape the blocks that were run store %.3g%% of what the outputs "
            "need: elements are left unwritten, or some are written again and again",
            100 * got->sectors / needed);
    return simdev_refuse(out, VERDICT_UNWRITTEN);
}

bool simdev_measure(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
    struct lazy z = {.kind = DATA_STATED};
    struct storing stores = {.known = true};
    struct sim_result last = {0};
    int64_t sample = 0;
    bool lines = false, covers = false;
    json_get_i64(f->head, "sample_ctas", &sample);
    json_get_bool(f->head, "lines", &lines);
    json_get_bool(f->head, "covers", &covers);
    if (!lazy_read(s, f, a, &z, &out->why))
        return false;
    struct bound_plan plan = z.plan;
    if (sample) { /* of a part of the blocks nothing else would be right either */
        plan.memsets = arena_array(a, struct bound_memset, plan.nmemsets);
        for (size_t i = 0; i < plan.nmemsets; i++) {
            plan.memsets[i] = z.plan.memsets[i];
            plan.memsets[i].count = 0;
        }
    }
    out->counters = json_array();
    out->lines = lines ? json_array() : NULL;
    s->checks = 0;
    s->repeats = true;
    s->order = 0;
    s->covering = covers ? s->own : NULL;
    s->seeks_rare = covers && sample;
    bool ok = lazy_add(s, &z, a, out) &&
              simdev_run_plan(s, &plan, &z.at, &(struct extent){.ctas = (uint64_t)sample}, &last,
                              add_stores, &stores, out) &&
              (!covers || stores_enough(&z, &stores, out));
    s->seeks_rare = false;
    lazy_free(s, &z);
    if (covers)
        simdev_answer_coverage(s, out);
    return ok;
}

/* ---- judging a part ---- */

#define MOST_ORDER     9999         /* a number that is easily typed */
#define PART_ELEMENTS  64           /* of a part, at most, along the last dimension */
#define PRODUCER_BYTES (1ull << 30) /* of all tensors: beyond, no launch is run whole */

/* Blocks of the task's own shape, drawn by a key, under the checkers, on data that the judge can
 * make as well; parts of what they store are handed on to it. Launches before the last one make
 * what it reads, so they are run whole where that is not too much. */
struct sampling {
    struct server *s;
    struct lazy z;
    struct extent extent;
    uint64_t producer_budget;
    uint64_t survey; /* blocks of the last launch that are run once more, to see what they store */
    int64_t nparts;  /* of a tensor, at most; 0: the shape is run whole elsewhere, and judged */
    bool values;     /* are all that matters: of the checkers, only what they need is on */
    bool incomplete; /* a launch before this one was run in part */
    json *parts[TASK_MAX_TENSORS];
    struct buf contents[TASK_MAX_TENSORS];
    json *unjudged;
    uint64_t ctas, ctas_total;
    struct rng draw;
};

static void set_unjudged(struct sampling *p, const struct bound_launch *l, const char *why) {
    char text[256];
    snprintf(text, sizeof text, "kernel %.*s: %s", STR_ARG(l->kernel), why);
    json_push(p->unjudged, json_string(str_view(text)));
}

/* Elements of a tensor, as stretches of its memory that were stored. */
struct stretches {
    const struct sampling *p;
    size_t tensor, item;
    uint64_t end;
    int64_t first, count; /* of the stretch at hand, in elements */
};

static bool stretch_next(struct stretches *t) {
    uint64_t first;
    do {
        if (!sim_machine_stored(t->p->s->machine, t->p->z.at.tensors[t->tensor], &first, &t->end))
            return false;
        t->first = (int64_t)((first + t->item - 1) / t->item);
        t->count = (int64_t)(t->end / t->item) - t->first;
    } while (t->count <= 0);
    return true;
}

static void add_part(struct sampling *p, const struct stretches *t, int64_t from) {
    const struct inst *in = p->z.inst;
    const struct tensor *tensor = &in->task->tensors[t->tensor];
    const struct bound_tensor *b = &in->tensors[t->tensor];
    json *part = json_object(), *lo = json_array(), *n = json_array();
    int64_t row = tensor->rank ? b->extent[tensor->rank - 1] : 1;
    int64_t count = t->first + t->count - from, rest = row - from % row;
    count = count < rest ? count : rest;
    count = count < PART_ELEMENTS ? count : PART_ELEMENTS;
    for (size_t d = 0; d < tensor->rank; d++) {
        json_push_i64(lo, from / b->stride[d] % b->extent[d]);
        json_push_i64(n, d + 1 == tensor->rank ? count : 1);
    }
    json_set_i64(part, "tensor", (int64_t)t->tensor);
    json_set(part, "lo", lo);
    json_set(part, "n", n);
    json_push(p->parts[t->tensor], part);
    buf_puts(&p->contents[t->tensor],
             (str){(char *)p->z.maps[t->tensor] + (size_t)from * t->item, (size_t)count * t->item});
}

/* The place of part i among so many elements: the first, then one drawn from each stretch of equal
 * length. */
static int64_t part_place(const struct sampling *p, size_t tensor, int64_t i, int64_t elements) {
    int64_t low = elements / p->nparts * i, room = elements / p->nparts;
    if (!room)
        return i;
    return low +
           (i ? (int64_t)rng_below(rng_sub(p->draw, tensor), (uint64_t)i, (uint64_t)room) : 0);
}

/* Parts of what the last launch stored to a tensor. What an earlier launch stored there was not the
 * end of it. */
static void take_parts(struct sampling *p, size_t tensor) {
    const struct inst *in = p->z.inst;
    struct stretches t = {p, tensor, dtype_info(in->task->tensors[tensor].dtype)->bytes, 0, 0, 0};
    int64_t elements = 0, before = 0, i = 0;
    while (stretch_next(&t))
        elements += t.count;
    if (!elements)
        return;
    json_free(p->parts[tensor]);
    p->parts[tensor] = json_array();
    buf_clear(&p->contents[tensor]);
    for (t.end = 0; i < p->nparts && stretch_next(&t); before += t.count)
        for (; i < p->nparts && part_place(p, tensor, i, elements) < before + t.count; i++)
            add_part(p, &t, t.first + part_place(p, tensor, i, elements) - before);
}

/* False: it is refused. */
static bool sample_launch(struct sampling *p, const struct bound_launch *l, bool final,
                          const struct launch_memory *memory, struct answer *out) {
    struct server *s = p->s;
    bool whole = !final && s->bytes <= PRODUCER_BYTES;
    struct extent extent = p->extent;
    if (whole)
        extent =
            (struct extent){.budget = p->producer_budget, .patience_ms = 2 * p->extent.patience_ms};
    struct sim_result result;
    s->checks = whole || p->values ? SIM_CHECK_UNINITIALISED : SIM_CHECK_ALL;
    bool ok = simdev_run_launch(s, l, memory, &extent, &result, out), lacks = false;
    for (size_t i = 0; p->incomplete && i < s->findings.n; i++)
        lacks |= s->findings.list[i].of_buffer;
    if (lacks)
        set_unjudged(p, l, "reads what blocks that were not run would have made");
    else if (!ok && result.status == SIM_BUDGET)
        set_unjudged(p, l, "even a few of its blocks take too long here");
    else if (!ok && result.status == SIM_NO_PROGRESS && !p->nparts)
        set_unjudged(p, l, "waits for blocks that were not run");
    else if (!ok)
        return false;
    if (!ok) {
        simdev_forgive(out);
        return true;
    }
    p->ctas += result.counters.ctas;
    p->ctas_total += result.counters.ctas_total;
    p->incomplete |= result.counters.ctas < result.counters.ctas_total;
    for (size_t i = 0; i < p->z.inst->task->ntensors; i++)
        if (p->z.maps[i] && tensor_is_output(&p->z.inst->task->tensors[i]))
            take_parts(p, i);
    return true;
}

/* ---- what is left unwritten ---- */

/* Of blocks drawn at random the chance that so many leave a sixteenth of the output untouched is
 * below one in ten thousand where all blocks together write all of it. */
#define SURVEY_STORING   192
#define SURVEY_STRETCHES 12 /* at least; fewer say too little */

/* One launch makes the only output, so that what its blocks do not store nobody does. */
static bool makes_all(const struct lazy *z) {
    size_t results = 0;
    for (size_t i = 0; i < z->inst->task->ntensors; i++)
        results += tensor_is_output(&z->inst->task->tensors[i]) ? 1 : 0;
    return results == 1 && z->plan.nlaunches == 1 && !z->plan.nmemsets;
}

/* Blocks, without checks, of which many more can be run. *known: they were. */
static bool survey_run(struct sampling *p, const struct bound_launch *l,
                       const struct launch_memory *memory, enum sim_draw draw, bool *known,
                       struct sim_result *r, struct answer *out) {
    struct extent extent = {.ctas = p->survey,
                            .key = p->extent.key + 1 + draw,
                            .draw = draw,
                            .patience_ms = p->extent.patience_ms};
    *known = simdev_run_launch(p->s, l, memory, &extent, r, out);
    if (*known)
        return true;
    if (!r->late)
        return false;
    simdev_forgive(out);
    return true;
}

/* Neighbours that store the same: all blocks together store no more than all stretches of the grid,
 * each by itself, which are as many as drawn ones on the average. Where blocks differ much, those
 * few may all be such as store little. */
static bool stretches_suffice(const struct lazy *z, const struct sim_stores *each,
                              const struct sim_stores *s, struct answer *out) {
    double mean = each->sum / (double)each->gangs, n = (double)s->gangs;
    struct storing got = {.known = each->squares <= 2 * mean * mean * (double)each->gangs};
    if (s->gangs < SURVEY_STRETCHES || s->storing < s->gangs)
        return true;
    double stretches = (double)s->gangs_total / SIM_STRETCH, one = s->sum / n;
    got.sectors = stretches * one;
    got.variance = stretches * stretches * fmax(s->squares / n - one * one, 0) / (n - 1);
    return stores_enough(z, &got, out);
}

/* Elements are left unwritten, or some are written again and again. */
static bool survey(struct sampling *p, const struct bound_launch *l,
                   const struct launch_memory *memory, struct answer *out) {
    struct sim_result apart, near;
    bool known;
    p->s->checks = 0;
    p->s->order = 0;
    if (!makes_all(&p->z) || !p->survey)
        return true;
    if (!survey_run(p, l, memory, SIM_DRAW_APART, &known, &apart, out))
        return false;
    if (!known)
        return true;
    if (apart.stores.storing >= SURVEY_STORING && apart.stores.untouched) {
        err_set(&out->why, ERR_NO,
                "at the task's own shape none of %llu blocks drawn from the grid stores to %u of "
                "16 parts of the output",
                (unsigned long long)apart.stores.storing, apart.stores.untouched);
        return simdev_refuse(out, VERDICT_UNWRITTEN);
    }
    if (!apart.stores.gangs || apart.counters.ctas == apart.counters.ctas_total)
        return true;
    return survey_run(p, l, memory, SIM_DRAW_STRETCHES, &known, &near, out) &&
           (!known || stretches_suffice(&p->z, &apart.stores, &near.stores, out));
}

static bool sample_plan(struct sampling *p, struct answer *out) {
    const struct bound_plan *plan = &p->z.plan;
    _Alignas(128) uint8_t maps[PLAN_MAX_MAPS][TENSORMAP_BYTES];
    struct launch_memory memory = {p->z.at.tensors, p->z.at.workspaces,
                                   (const uint8_t(*)[TENSORMAP_BYTES])maps};
    size_t launches = 0;
    bool ok = simdev_encode_maps(plan, &p->z.at, maps, out);
    for (size_t i = 0; ok && i < plan->nsteps && !json_len(p->unjudged); i++) {
        size_t k = plan->steps[i].index;
        bool launch = plan->steps[i].kind == PLAN_LAUNCH;
        launches += launch;
        ok = launch
                 ? sample_launch(p, &plan->launches[k], launches == plan->nlaunches, &memory, out)
                 : simdev_run_memset(p->s, &plan->memsets[k], &p->z.at, out);
    }
    if (ok && !json_len(p->unjudged))
        ok = survey(p, &plan->launches[plan->nlaunches - 1], &memory, out);
    return ok;
}

static void answer_parts(struct sampling *p, struct answer *out) {
    json *parts = json_array();
    bool judged = !json_len(p->unjudged);
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
        for (size_t k = 0; judged && k < json_len(p->parts[i]); k++)
            json_push(parts, json_copy(json_at(p->parts[i], k)));
        if (judged && p->parts[i])
            buf_puts(out->blob, buf_str(&p->contents[i]));
        json_free(p->parts[i]);
        buf_release(&p->contents[i]);
    }
    out->more = json_object();
    json_set(out->more, "parts", parts);
    json_set(out->more, "unjudged", p->unjudged);
    json_set_i64(out->more, "blocks", (int64_t)p->ctas);
    json_set_i64(out->more, "blocks_total", (int64_t)p->ctas_total);
    if (p->s->covering)
        simdev_answer_coverage(p->s, out);
}

static bool get_u64(const json *head, const char *key, uint64_t *out) {
    str text;
    return json_get_str(head, key, &text) && str_to_u64(text, out);
}

bool simdev_sample(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
    struct sampling p = {.s = s, .z = {.noisy = true}, .unjudged = json_array()};
    str data;
    int64_t ctas = 2;
    bool covers = false;
    json_get_bool(f->head, "covers", &covers);
    json_get_i64(f->head, "sample_ctas", &ctas);
    json_get_i64(f->head, "parts", &p.nparts);
    json_get_bool(f->head, "values", &p.values);
    bool ok = (json_get_str(f->head, "data", &data) && data_find(data, &p.z.kind) &&
               get_u64(f->head, "seed", &p.z.seed) && get_u64(f->head, "key", &p.extent.key) &&
               get_u64(f->head, "budget", &p.extent.budget) &&
               get_u64(f->head, "producer_budget", &p.producer_budget) &&
               get_u64(f->head, "survey", &p.survey) &&
               get_u64(f->head, "patience_ms", &p.extent.patience_ms)) ||
              err_set(&out->why, ERR_ENV, "bad message: sample");
    p.extent.ctas = (uint64_t)(ctas < 1 ? 1 : ctas);
    p.extent.draw = p.values ? SIM_DRAW_APART : SIM_DRAW_PAIRS;
    p.draw = rng_stream(p.extent.key, S("parts"));
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        buf_init(&p.contents[i], 1u << 20);
    ok = ok && lazy_read(s, f, a, &p.z, &out->why);
    s->covering = covers ? s->own : NULL;
    s->repeats = false;
    s->order = 1 + (uint32_t)rng_below(p.draw, 0, MOST_ORDER);
    ok = ok && lazy_add(s, &p.z, a, out) && sample_plan(&p, out);
    answer_parts(&p, out);
    lazy_free(s, &p.z);
    return ok;
}
