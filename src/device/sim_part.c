/* A part of a shape that is too large to run whole, in the device process on the simulator:
 * counted, held against what the outputs need, and judged by value and under the checkers
 * (docs/EVAL.md). */
#include "device/sim_device.h"

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

static bool lazy_bind(struct server *s, const struct bound_plan *plan, const struct binding *set,
                      size_t nset, struct arena *a, struct lazy *z, struct err *err) {
    if (!s->task || !s->module)
        return err_set(err, ERR_ENV, "bad message: measure or sample");
    z->scale = data_scale_stated();
    z->plan = *plan;
    return plan_check(plan, err) && task_bind(s->task, set, nset, a, &z->inst, err);
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

static bool lazy_add(struct server *s, struct lazy *z, struct answer *out) {
    uint64_t key = 0;
    rng_secret(&key);
    z->noise = rng_stream(key, S("outputs"));
    s->bytes = 0;
    simdev_move_memory(s);
    for (size_t i = 0; i < z->inst->task->ntensors; i++)
        if (tensor_has_memory(&z->inst->task->tensors[i]) &&
            !lazy_tensor(s, z, i, out->mem, &out->why))
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

bool simdev_measure(struct server *s, const struct job_measure *m, struct answer *out) {
    struct lazy z = {.kind = DATA_STATED};
    struct storing stores = {.known = true};
    struct sim_result last = {0};
    if (!lazy_bind(s, &m->plan, m->set, m->nset, out->mem, &z, &out->why))
        return false;
    struct bound_plan plan = z.plan;
    if (m->sample_ctas) { /* of a part of the blocks nothing else would be right either */
        plan.memsets = arena_array(out->mem, struct bound_memset, plan.nmemsets);
        for (size_t i = 0; i < plan.nmemsets; i++) {
            plan.memsets[i] = z.plan.memsets[i];
            plan.memsets[i].count = 0;
        }
    }
    out->counts = true;
    out->lines = m->lines;
    s->checks = 0;
    s->repeats = true;
    s->order = 0;
    s->covering = m->covers ? s->own : NULL;
    s->seeks_rare = m->covers && m->sample_ctas;
    bool ok = lazy_add(s, &z, out) &&
              simdev_run_plan(s, &plan, &z.at, &(struct extent){.ctas = (uint64_t)m->sample_ctas},
                              &last, add_stores, &stores, out) &&
              (!m->covers || stores_enough(&z, &stores, out));
    s->seeks_rare = false;
    lazy_free(s, &z);
    if (m->covers)
        simdev_answer_coverage(s, out);
    return ok;
}

/* ---- judging a part ---- */

#define MOST_ORDER     9999         /* a number that is easily typed */
#define MOST_PARTS     64           /* of a tensor */
#define PART_ELEMENTS  64           /* of a part, at most, along the last dimension */
#define PRODUCER_BYTES (1ull << 30) /* of all tensors: beyond, no launch is run whole */

/* Blocks of the task's own shape, drawn by a key, under the checkers, on data that the judge can
 * make as well; parts of what they store are handed on to it. Launches before the last one make
 * what it reads, so they are run whole where that is not too much. */
struct sampling {
    struct server *s;
    struct lazy z;
    struct extent extent;
    const struct job_sample *asked;
    bool incomplete;                           /* a launch before this one was run in part */
    struct wire_part *parts[TASK_MAX_TENSORS]; /* NULL: the tensor was not stored to */
    size_t nparts[TASK_MAX_TENSORS];
    struct buf contents[TASK_MAX_TENSORS];
    str unjudged; /* why a launch could not be; the first ends it */
    uint64_t ctas, ctas_total;
    struct rng draw;
    struct arena *mem;
};

static void set_unjudged(struct sampling *p, const struct bound_launch *l, const char *why) {
    p->unjudged = arena_printf(p->mem, "kernel %.*s: %s", STR_ARG(l->kernel), why);
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
    struct wire_part *part = &p->parts[t->tensor][p->nparts[t->tensor]++];
    int64_t row = tensor->rank ? b->extent[tensor->rank - 1] : 1;
    int64_t count = t->first + t->count - from, rest = row - from % row;
    count = count < rest ? count : rest;
    count = count < PART_ELEMENTS ? count : PART_ELEMENTS;
    *part = (struct wire_part){.tensor = t->tensor,
                               .from = arena_array(p->mem, int64_t, tensor->rank),
                               .nfrom = tensor->rank,
                               .count = arena_array(p->mem, int64_t, tensor->rank),
                               .ncount = tensor->rank};
    for (size_t d = 0; d < tensor->rank; d++) {
        part->from[d] = from / b->stride[d] % b->extent[d];
        part->count[d] = d + 1 == tensor->rank ? count : 1;
    }
    buf_puts(&p->contents[t->tensor],
             (str){(char *)p->z.maps[t->tensor] + (size_t)from * t->item, (size_t)count * t->item});
}

/* The place of part i among so many elements: the first, then one drawn from each stretch of equal
 * length. */
static int64_t part_place(const struct sampling *p, size_t tensor, int64_t i, int64_t elements) {
    int64_t low = elements / p->asked->parts * i, room = elements / p->asked->parts;
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
    int64_t most = p->asked->parts < MOST_PARTS ? p->asked->parts : MOST_PARTS;
    p->parts[tensor] = arena_array(p->mem, struct wire_part, (size_t)most);
    p->nparts[tensor] = 0;
    buf_clear(&p->contents[tensor]);
    for (t.end = 0; i < most && stretch_next(&t); before += t.count)
        for (; i < most && part_place(p, tensor, i, elements) < before + t.count; i++)
            add_part(p, &t, t.first + part_place(p, tensor, i, elements) - before);
}

/* False: it is refused. */
static bool sample_launch(struct sampling *p, const struct bound_launch *l, bool final,
                          const struct launch_memory *memory, struct answer *out) {
    struct server *s = p->s;
    bool whole = !final && s->bytes <= PRODUCER_BYTES;
    struct extent extent = p->extent;
    if (whole)
        extent = (struct extent){.budget = (uint64_t)p->asked->producer_budget,
                                 .patience_ms = 2 * p->extent.patience_ms};
    struct sim_result result;
    s->checks = whole || p->asked->values ? SIM_CHECK_UNINITIALISED : SIM_CHECK_ALL;
    bool ok = simdev_run_launch(s, l, memory, &extent, &result, out), lacks = false;
    for (size_t i = 0; p->incomplete && i < s->findings.n; i++)
        lacks |= s->findings.list[i].of_buffer;
    if (lacks)
        set_unjudged(p, l, "reads what blocks that were not run would have made");
    else if (!ok && result.status == SIM_BUDGET)
        set_unjudged(p, l, "even a few of its blocks take too long here");
    else if (!ok && result.status == SIM_NO_PROGRESS && !p->asked->parts)
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
    struct extent extent = {.ctas = (uint64_t)p->asked->survey,
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
    if (!makes_all(&p->z) || !p->asked->survey)
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
    for (size_t i = 0; ok && i < plan->nsteps && !p->unjudged.n; i++) {
        size_t k = plan->steps[i].index;
        bool launch = plan->steps[i].kind == PLAN_LAUNCH;
        launches += launch;
        ok = launch
                 ? sample_launch(p, &plan->launches[k], launches == plan->nlaunches, &memory, out)
                 : simdev_run_memset(p->s, &plan->memsets[k], &p->z.at, out);
    }
    if (ok && !p->unjudged.n)
        ok = survey(p, &plan->launches[plan->nlaunches - 1], &memory, out);
    return ok;
}

static void answer_parts(struct sampling *p, struct answer *out) {
    struct wire_answer *say = &out->say;
    say->parts = arena_array(out->mem, struct wire_part, TASK_MAX_TENSORS * MOST_PARTS);
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
        for (size_t k = 0; !p->unjudged.n && k < p->nparts[i]; k++)
            say->parts[say->nparts++] = p->parts[i][k];
        if (!p->unjudged.n && p->parts[i])
            buf_puts(out->blob, buf_str(&p->contents[i]));
        buf_release(&p->contents[i]);
    }
    say->unjudged = arena_array(out->mem, str, 1);
    say->unjudged[0] = p->unjudged;
    say->nunjudged = p->unjudged.n > 0;
    say->blocks = (int64_t)p->ctas;
    say->blocks_total = (int64_t)p->ctas_total;
    if (p->s->covering)
        simdev_answer_coverage(p->s, out);
}

bool simdev_sample(struct server *s, const struct job_sample *m, struct answer *out) {
    struct sampling p = {.s = s,
                         .asked = m,
                         .z = {.noisy = true, .kind = m->data, .seed = m->seed},
                         .extent = {.ctas = (uint64_t)(m->sample_ctas < 1 ? 1 : m->sample_ctas),
                                    .key = m->key,
                                    .draw = m->values ? SIM_DRAW_APART : SIM_DRAW_PAIRS,
                                    .budget = (uint64_t)m->budget,
                                    .patience_ms = (uint64_t)m->patience_ms},
                         .draw = rng_stream(m->key, S("parts")),
                         .mem = out->mem};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        buf_init(&p.contents[i], 1u << 20);
    bool ok = lazy_bind(s, &m->plan, m->set, m->nset, out->mem, &p.z, &out->why);
    s->covering = m->covers ? s->own : NULL;
    s->repeats = false;
    s->order = 1 + (uint32_t)rng_below(p.draw, 0, MOST_ORDER);
    ok = ok && lazy_add(s, &p.z, out) && sample_plan(&p, out);
    answer_parts(&p, out);
    lazy_free(s, &p.z);
    return ok;
}
