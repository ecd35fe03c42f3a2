/* The device process on the simulator: loads a candidate's PTX, runs its launches over memory that
 * the judge made, and counts. It sees inputs and its own outputs, nothing else: no files, no
 * network, no expected values, no seeds of verification. Synchronous: one request, one answer; the
 * worker holds the clock. */
#include "base/frame.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/buffers.h"
#include "device/job.h"
#include "device/role.h"
#include "device/wire.h"
#include "kernel/inspect.h"
#include "kernel/verdict.h"
#include "sim/model.h"
#include "spec/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MODULE_ARENA  (2ull << 30)
#define TASK_ARENA    (64u << 20)
#define WORKSPACE_MAX (4ull << 30) /* bytes, of a plan's workspaces together */
/* Warp instructions before a launch counts as one without end: seconds of spinning at small shapes,
 * and more than a single warp needs to walk through all the memory there is. */
#define BUDGET_LAUNCH (UINT64_C(16) << 20)
#define BUDGET_WARP   (UINT64_C(1) << 18)
#define BUDGET_BYTE   2

#define RARE_BLOCKS 8

struct server {
    const struct gpu *gpu; /* whose limits hold */
    unsigned threads;
    struct sim_machine *machine;
    struct arena *task_arena;
    struct task *task;
    struct arena *module_arena; /* of the loaded candidate */
    struct ptx_module *module;
    struct sim_program **programs; /* by entry; NULL until first launched */
    /* By entry, sim_places bytes each: what became of choices at the task's own shape, and in runs
     * that are judged. `covering` is the one that is added to; NULL: neither. */
    uint8_t **own, **judged, **covering;
    struct rare {
        uint64_t gangs[RARE_BLOCKS];
        size_t n;
    } * rare; /* by entry: blocks of the task's own shape in which rare comparisons will be met */
    bool seeks_rare;
    uint64_t bytes;  /* of the buffers at hand */
    unsigned checks; /* of enum sim_check */
    uint32_t order;  /* of the run, for programs that have several */
    bool repeats;    /* counts have to: nothing is drawn from the secret */
    struct rng secret;
    uint64_t drawn; /* from it, so far */
    uint64_t grids; /* launched so far, and before that */
    struct sim_findings findings;
    struct buffers buffers;
};

struct answer {
    enum verdict verdict;
    struct err why;
    json *counters; /* array, or NULL */
    json *lines;    /* array, or NULL: not wanted */
    json *findings; /* of the checkers, or NULL */
    json *more;     /* further members, or NULL */
    struct buf *blob;
    size_t at;      /* the run it is about */
    uint32_t order; /* in which it went; 0: the first, or it has no other */
};

static bool refuse(struct answer *out, enum verdict v) {
    out->verdict = v;
    return false;
}

static bool take_task(struct server *s, const struct frame *f, struct err *err) {
    str task, file;
    if (!json_get_str(f->head, "task", &task) || !json_get_str(f->head, "file", &file))
        return err_set(err, ERR_ENV, "bad message: task");
    if (!task.n)
        return true;
    arena_free(s->task_arena);
    s->task_arena = arena_new(TASK_ARENA);
    s->task = NULL;
    return task_parse(arena_str(s->task_arena, file), arena_str(s->task_arena, task), s->task_arena,
                      &s->task, err);
}

static bool load_module(struct server *s, const struct frame *f, struct answer *out) {
    arena_free(s->module_arena);
    s->module_arena = arena_new(MODULE_ARENA);
    s->module = NULL;
    if (!s->task || json_len(json_get(f->head, "modules")) != 1)
        return err_set(&out->why, ERR_ENV, "bad message: load");
    if (!ptx_parse(arena_str(s->module_arena, f->blob), s->module_arena, &s->module, &out->why))
        return refuse(out, VERDICT_UNSUPPORTED);
    s->programs = arena_array(s->module_arena, struct sim_program *, s->module->nentries);
    s->own = arena_array(s->module_arena, uint8_t *, s->module->nentries);
    s->judged = arena_array(s->module_arena, uint8_t *, s->module->nentries);
    s->rare = arena_array(s->module_arena, struct rare, s->module->nentries);
    s->covering = NULL;
    return true;
}

/* ---- coverage ---- */

#define MISSING_KEPT 12

static bool lists(const json *list, str text) {
    str is;
    for (size_t i = 0; i < json_len(list); i++)
        if (json_to_str(json_at(list, i), &is) && str_eq(is, text))
            return true;
    return false;
}

/* Outcomes of the task's own shape that no judged run has had: {"uncovered": how many, "missing":
 * the first of them in words}. */
static json *coverage_json(const struct server *s) {
    json *out = json_object(), *missing = json_array();
    int64_t n = 0;
    char text[160];
    for (size_t i = 0; i < s->module->nentries; i++)
        for (size_t k = 0; s->programs[i] && k < sim_places(s->programs[i]); k++)
            for (uint8_t left = s->own[i][k] & (uint8_t)~s->judged[i][k]; left; left &= left - 1) {
                sim_place_text(s->programs[i], k, left & (uint8_t)-left, text, sizeof text);
                n++;
                if (json_len(missing) < MISSING_KEPT && !lists(missing, str_view(text)))
                    json_push(missing, json_string(str_view(text)));
            }
    json_set_i64(out, "uncovered", n);
    json_set(out, "missing", missing);
    return out;
}

static void answer_coverage(const struct server *s, struct answer *out) {
    if (!out->more)
        out->more = json_object();
    json_set(out->more, "coverage", coverage_json(s));
}

/* ---- launches ---- */

static const struct sim_program *find_program(struct server *s, const struct ptx_entry *e,
                                              struct answer *out) {
    size_t i = (size_t)(e - s->module->entries);
    if (s->programs[i])
        return s->programs[i];
    if (!sim_load(s->module, e, s->module_arena, &s->programs[i], &out->why)) {
        s->programs[i] = NULL;
        out->verdict = VERDICT_UNSUPPORTED;
        return NULL;
    }
    s->own[i] = arena_array(s->module_arena, uint8_t, sim_places(s->programs[i]));
    s->judged[i] = arena_array(s->module_arena, uint8_t, sim_places(s->programs[i]));
    return s->programs[i];
}

static enum verdict verdict_of(enum sim_status s) {
    switch (s) {
    case SIM_OK:
        return VERDICT_ACCEPTED;
    case SIM_OUT_OF_BOUNDS:
        return VERDICT_OUT_OF_BOUNDS;
    case SIM_WROTE_INPUT:
        return VERDICT_MODIFIED_INPUT;
    case SIM_MISALIGNED:
    case SIM_TRAP:
        return VERDICT_CRASH;
    case SIM_BUDGET:
    case SIM_NO_PROGRESS:
        return VERDICT_NO_PROGRESS;
    case SIM_BAD_LAUNCH:
        return VERDICT_LAUNCH_ERROR;
    case SIM_UNSUPPORTED:
        return VERDICT_UNSUPPORTED;
    }
    return VERDICT_CRASH;
}

static uint64_t budget_of(const struct server *s, const struct bound_launch *l) {
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t warps = (threads + 31) / 32 * blocks;
    return BUDGET_LAUNCH + BUDGET_WARP * (warps < (1u << 30) ? warps : 1u << 30) +
           BUDGET_BYTE * s->bytes;
}

static enum verdict finding_verdict(enum sim_check check) {
    return check == SIM_CHECK_RACE            ? VERDICT_RACE
           : check == SIM_CHECK_UNINITIALISED ? VERDICT_UNINITIALISED
                                              : VERDICT_NO_PROGRESS;
}

/* Blocks that the GPU holds at a time, by their threads and dynamic shared memory: what waits for
 * more of them waits for ever. */
static uint64_t resident_ctas(const struct gpu *g, const struct bound_launch *l) {
    int threads = (int)(l->block[0] * l->block[1] * l->block[2]);
    struct occupancy o = gpu_occupancy(g, threads, 1, l->shared);
    return (uint64_t)g->sms * (uint64_t)(o.blocks_sm > 0 ? o.blocks_sm : 1);
}

/* It was the simulator's limit, not the kernel's fault. */
static void forgive(struct answer *out) {
    json_free(out->findings);
    out->findings = NULL;
    out->verdict = VERDICT_ACCEPTED;
    out->why = (struct err){0};
}

/* How much of a launch is run. */
struct extent {
    uint64_t ctas; /* about so many blocks; 0: all */
    uint64_t key;  /* that they are drawn by; 0: spread evenly */
    enum sim_draw draw;
    uint64_t budget; /* of warp instructions; 0: what no kernel with an end needs */
    uint64_t
        patience_ms; /* after which it is given up, which says nothing of the kernel; 0: never */
};
static uint64_t draw(struct server *s) {
    return rng_u64(s->secret, s->drawn++);
}

static uint64_t now_ns(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Where memory lies in this run. Counts do not depend on the first address, but on the gaps. */
static void move_memory(struct server *s) {
    sim_machine_move(s->machine, s->repeats ? rng_u64(s->secret, UINT64_MAX) : draw(s),
                     !s->repeats);
}

static bool run_launch(struct server *s, const struct bound_launch *l,
                       const struct launch_memory *memory, const struct extent *extent,
                       struct sim_result *result, struct answer *out) {
    const struct ptx_entry *e = ptx_find_entry(s->module, l->kernel);
    if (!e) {
        err_set(&out->why, ERR_NO, "kernel '%.*s' is not in the module", STR_ARG(l->kernel));
        return refuse(out, VERDICT_BAD_PLAN);
    }
    const struct sim_program *program = find_program(s, e, out);
    uint8_t params[PARAMS_MAX];
    size_t size;
    if (!program)
        return false;
    if (!launch_params(l, e, memory, params, &size, &out->why))
        return refuse(out, VERDICT_LAUNCH_ERROR);
    struct sim_clocks clocks =
        sim_clocks_of(s->gpu, l->block[0] * l->block[1] * l->block[2], l->shared);
    struct sim_launch launch = {.program = program,
                                .params = params,
                                .params_size = size,
                                .dynamic_shared = l->shared,
                                .threads = s->threads,
                                .sample_ctas = extent->ctas,
                                .sample_key = extent->key,
                                .sample_draw = extent->draw,
                                .cooperative = l->cooperative,
                                .resident_ctas = resident_ctas(s->gpu, l),
                                .checks = s->checks,
                                .findings = &s->findings,
                                .lines = out->lines ? s->module_arena : NULL,
                                .clocks = out->counters ? &clocks : NULL,
                                .noise = s->repeats ? 0 : draw(s),
                                .order = sim_has_choices(program) ? s->order : 0,
                                .lanes = s->order,
                                .number = s->grids++,
                                .time_ns = s->repeats ? 0 : now_ns(),
                                .sms = (uint32_t)s->gpu->sms,
                                .covered = s->covering ? s->covering[e - s->module->entries] : NULL,
                                .patience_us = 1000 * extent->patience_ms,
                                .max_warp_instrs =
                                    extent->budget ? extent->budget : budget_of(s, l)};
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1)
        memcpy(launch.cluster, l->cluster, sizeof launch.cluster);
    struct rare *rare = &s->rare[e - s->module->entries];
    if (s->seeks_rare)
        launch.misses = arena_array(s->module_arena, struct sim_miss, sim_places(program));
    launch.sample_also = rare->gangs;
    launch.nalso = extent->draw == SIM_DRAW_PAIRS ? rare->n : 0;
    s->findings.n = 0;
    sim_run(s->machine, &launch, result);
    out->order = launch.order || result->drawn ? s->order : out->order;
    if (launch.misses)
        rare->n =
            sim_rare_gangs(launch.misses, sim_places(program), l->grid, rare->gangs, RARE_BLOCKS);
    if (result->status != SIM_OK) {
        err_set(&out->why, ERR_NO, "%s", result->fault.text);
        return refuse(out, verdict_of(result->status));
    }
    if (s->checks && s->findings.n) {
        err_set(&out->why, ERR_NO, "%s", s->findings.list[0].text);
        out->findings = findings_to_json(&s->findings);
        return refuse(out, finding_verdict(s->findings.list[0].check));
    }
    if (out->counters)
        json_push(out->counters, counters_to_json(&result->counters));
    if (out->lines)
        json_push(out->lines, lines_to_json(result));
    return true;
}

/* Where the plan's memory is: tensors by the case, workspaces made here for each run. */
struct places {
    uint64_t tensors[TASK_MAX_TENSORS], workspaces[PLAN_MAX_WORKSPACES];
    char *workspace_host[PLAN_MAX_WORKSPACES];
    struct rng noise[PLAN_MAX_WORKSPACES];
};

static bool run_memset(struct server *s, const struct bound_memset *m, const struct places *at,
                       struct answer *out) {
    uint64_t to = m->of == ARG_TENSOR ? at->tensors[m->ref] : at->workspaces[m->ref];
    return sim_machine_fill(s->machine, to, &m->pattern, m->size, m->count) ||
           err_set(&out->why, ERR_ENV, "bad message: memset");
}

static enum tile_map_type map_type(enum dtype t) {
    switch (t) {
    case DTYPE_F64:
        return TILE_MAP_F64;
    case DTYPE_F32:
        return TILE_MAP_F32;
    case DTYPE_F16:
        return TILE_MAP_F16;
    case DTYPE_BF16:
        return TILE_MAP_BF16;
    case DTYPE_I32:
        return TILE_MAP_S32;
    case DTYPE_I64:
        return TILE_MAP_S64;
    default:
        return TILE_MAP_U8;
    }
}

/* The plan's tensor maps, for this case's addresses. */
static bool encode_maps(const struct bound_plan *p, const struct places *at,
                        uint8_t (*maps)[TENSORMAP_BYTES], struct answer *out) {
    for (size_t i = 0; i < p->nmaps; i++) {
        const struct bound_tensormap *b = &p->maps[i];
        struct tile_map m = {.rank = b->rank,
                             .type = map_type(b->dtype),
                             .swizzle = b->swizzle,
                             .fill_nan = b->fill_nan};
        m.global = b->of == ARG_TENSOR ? at->tensors[b->ref] : at->workspaces[b->ref];
        m.stride[0] = dtype_info(b->dtype)->bytes;
        for (unsigned k = 0; k < b->rank; k++) {
            m.extent[k] = b->extent[k];
            m.box[k] = b->box[k];
            m.step[k] = b->step[k];
            if (k)
                m.stride[k] = b->stride[k - 1];
        }
        if (!sim_tensormap(&m, maps[i], &out->why))
            return refuse(out, VERDICT_LAUNCH_ERROR);
    }
    return true;
}

/* After each launch of a plan; NULL: nothing is to be done. */
typedef void launch_done_fn(void *ctx, const struct sim_result *result);

static bool run_plan(struct server *s, const struct bound_plan *p, const struct places *at,
                     const struct extent *extent, struct sim_result *last, launch_done_fn *done,
                     void *ctx, struct answer *out) {
    _Alignas(128) uint8_t maps[PLAN_MAX_MAPS][TENSORMAP_BYTES];
    struct launch_memory memory = {at->tensors, at->workspaces,
                                   (const uint8_t(*)[TENSORMAP_BYTES])maps};
    if (!encode_maps(p, at, maps, out))
        return false;
    for (size_t i = 0; i < p->nsteps; i++) {
        size_t k = p->steps[i].index;
        bool launch = p->steps[i].kind == PLAN_LAUNCH;
        if (launch ? !run_launch(s, &p->launches[k], &memory, extent, last, out)
                   : !run_memset(s, &p->memsets[k], at, out))
            return false;
        if (launch && done)
            done(ctx, last);
    }
    return true;
}

static void touch_noise(void *ctx, size_t offset, size_t n, void *dst) {
    const struct rng *r = ctx;
    uint64_t last = rng_u64(*r, (offset + n) / 8);
    rng_u64_many(*r, offset / 8, n / 8, dst);
    memcpy((char *)dst + n / 8 * 8, &last, n % 8);
}

static void touch_zeros(void *ctx, size_t offset, size_t n, void *dst) {
    (void)ctx, (void)offset, (void)n, (void)dst; /* as the system gives it */
}

static bool room_for_workspaces(const struct bound_plan *p, struct answer *out) {
    uint64_t left = WORKSPACE_MAX;
    for (size_t i = 0; i < p->nworkspaces; i++) {
        uint64_t bytes = p->workspaces[i].bytes;
        if (bytes > left) {
            err_set(&out->why, ERR_NO,
                    "workspace %.*s of %" PRIu64 " bytes: of the %llu that the simulator has for "
                    "all workspaces of a plan %" PRIu64 " are left",
                    STR_ARG(p->workspaces[i].name), bytes, WORKSPACE_MAX, left);
            return refuse(out, VERDICT_OUT_OF_MEMORY);
        }
        left -= bytes;
    }
    return true;
}

/* Filled with what nobody expects, a page when it is touched: there is no memory behind it before.
 */
static bool add_workspaces(struct server *s, const struct bound_plan *p, struct places *at,
                           bool noise, struct answer *out) {
    size_t order[PLAN_MAX_WORKSPACES];
    uint64_t key = 0;
    if (!s->repeats)
        rng_secret(&key);
    struct rng r = rng_stream(key, S("workspace"));
    if (!room_for_workspaces(p, out))
        return false;
    rng_order(rng_stream(key, S("order")), p->nworkspaces, order);
    for (size_t k = 0; k < p->nworkspaces; k++) {
        size_t i = order[k], bytes = p->workspaces[i].bytes;
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            return err_errno(&out->why, ERR_ENV, "reserve %zu bytes of workspace", bytes);
        at->workspace_host[i] = map;
        at->noise[i] = rng_sub(r, i);
        s->bytes += bytes;
        struct sim_buffer b = {.name = p->workspaces[i].name,
                               .host = map,
                               .size = bytes,
                               .undefined = true,
                               .touch = noise ? touch_noise : touch_zeros,
                               .touch_ctx = &at->noise[i]};
        at->workspaces[i] = sim_machine_add(s->machine, &b);
    }
    return true;
}

static void free_workspaces(const struct bound_plan *p, struct places *at) {
    for (size_t i = 0; i < p->nworkspaces; i++)
        if (at->workspace_host[i])
            munmap(at->workspace_host[i], p->workspaces[i].bytes);
}

static bool add_tensor(struct server *s, const json *t, size_t i, uint32_t align, struct places *at,
                       struct err *err) {
    int64_t id, offset, bytes;
    bool writable = false;
    json_get_bool(t, "writable", &writable);
    if (!json_get_i64(t, "buffer", &id) || !json_get_i64(t, "offset", &offset) ||
        !json_get_i64(t, "bytes", &bytes) || offset < 0 || bytes < 0)
        return err_set(err, ERR_ENV, "bad message: tensor %zu", i);
    const struct buffer *b = buffers_find(&s->buffers, id);
    if (!b || (uint64_t)offset > b->size || (uint64_t)bytes > b->size - (uint64_t)offset)
        return err_set(err, ERR_ENV, "bad message: tensor %zu lies in no buffer", i);
    s->bytes += (uint64_t)bytes;
    at->tensors[i] = sim_machine_add(
        s->machine, &(struct sim_buffer){.name = s->task->tensors[i].name,
                                         .host = b->map + offset,
                                         .size = (size_t)bytes,
                                         .read_only = !writable,
                                         .align = s->repeats ? 0 : align,
                                         .undefined = s->task->tensors[i].role == TENSOR_OUT});
    return true;
}

/* The tensors of the message, as buffers over the judge's memory, in an order that nobody knows: no
 * tensor is found from the address of another. */
static bool add_case(struct server *s, const json *tensors, const struct bound_plan *plan,
                     struct places *at, struct err *err) {
    size_t order[TASK_MAX_TENSORS];
    uint64_t key = 0;
    if (json_len(tensors) != s->task->ntensors)
        return err_set(err, ERR_ENV, "bad message: tensors");
    if (!s->repeats && !rng_secret(&key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    rng_order(rng_stream(key, S("tensors")), s->task->ntensors, order);
    for (size_t i = 0; i < s->task->ntensors; i++)
        if (json_is_object(json_at(tensors, order[i])) && /* a let has no memory */
            !add_tensor(s, json_at(tensors, order[i]), order[i], plan->align[order[i]], at, err))
            return false;
    return true;
}

static bool run_case(struct server *s, const json *tensors, const struct bound_plan *plan,
                     const struct extent *extent, bool *late, struct answer *out) {
    struct places at = {0};
    struct sim_result last = {0};
    s->bytes = 0;
    move_memory(s);
    bool ok = add_case(s, tensors, plan, &at, &out->why) &&
              add_workspaces(s, plan, &at, true, out) &&
              run_plan(s, plan, &at, extent, &last, NULL, NULL, out);
    *late = !ok && extent->patience_ms && last.status == SIM_BUDGET;
    sim_machine_clear(s->machine);
    free_workspaces(plan, &at);
    return ok;
}

/* Whether some program of the plan has several orders: then all of them are watched, since each
 * reads what those before it wrote. */
static bool has_choices(struct server *s, const struct bound_plan *p, struct answer *out) {
    bool any = false;
    for (size_t i = 0; i < p->nlaunches; i++) {
        const struct ptx_entry *e = ptx_find_entry(s->module, p->launches[i].kernel);
        const struct sim_program *program = e ? find_program(s, e, out) : NULL;
        any |= program && sim_has_choices(program);
    }
    return any;
}

static bool run_batch(struct server *s, const struct frame *f, struct arena *a,
                      struct answer *out) {
    const json *cases = json_get(f->head, "cases"), *runs = json_get(f->head, "runs");
    const json *plans = json_get(f->head, "plans");
    struct bound_plan plan;
    bool counted = false, checked = false, covers = false, late = false, drawn = false, ok = true;
    int64_t patience_ms = 0;
    int64_t order = 0;
    if (!s->task || !s->module || json_len(plans) != 1)
        return err_set(&out->why, ERR_ENV, "bad message: run");
    if (!plan_from_json(json_at(plans, 0), a, &plan, &out->why))
        return false;
    json_get_bool(f->head, "counted", &counted);
    s->repeats = counted;
    if (counted)
        out->counters = json_array();
    json_get_bool(f->head, "checked", &checked);
    json_get_bool(f->head, "covers", &covers);
    json_get_i64(f->head, "patience_ms", &patience_ms);
    json_get_bool(f->head, "checked_drawn", &drawn);
    s->checks = checked || (drawn && has_choices(s, &plan, out)) ? SIM_CHECK_ALL : 0;
    if (out->verdict != VERDICT_ACCEPTED)
        return false;
    s->covering = covers ? s->judged : NULL;
    struct extent extent = {.patience_ms = (uint64_t)patience_ms};
    json_get_i64(f->head, "order", &order);
    s->order = order > 0 && order <= UINT32_MAX ? (uint32_t)order : 0;
    for (size_t i = 0; ok && i < json_len(runs); i++) {
        int64_t at = -1;
        json_to_i64(json_at(json_at(runs, i), 0), &at);
        const json *tensors = at < 0 ? NULL : json_get(json_at(cases, (size_t)at), "tensors");
        out->at = i;
        ok = run_case(s, tensors, &plan, &extent, &late, out);
    }
    if (late) {
        forgive(out);
        out->more = json_object();
        json_set_bool(out->more, "late", true);
        ok = true;
    }
    if (covers)
        answer_coverage(s, out);
    return ok;
}

/* ---- the task's own shape, of which a part is run ---- */

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
        b.touch = z->noisy ? touch_noise : touch_zeros;
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
    move_memory(s);
    for (size_t i = 0; i < z->inst->task->ntensors; i++)
        if (tensor_has_memory(&z->inst->task->tensors[i]) && !lazy_tensor(s, z, i, a, &out->why))
            return false;
    return add_workspaces(s, &z->plan, &z->at, z->noisy, out);
}

static void lazy_free(struct server *s, struct lazy *z) {
    sim_machine_clear(s->machine);
    free_workspaces(&z->plan, &z->at);
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
    return refuse(out, VERDICT_UNWRITTEN);
}

static bool measure(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
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
              run_plan(s, &plan, &z.at, &(struct extent){.ctas = (uint64_t)sample}, &last,
                       add_stores, &stores, out) &&
              (!covers || stores_enough(&z, &stores, out));
    s->seeks_rare = false;
    lazy_free(s, &z);
    if (covers)
        answer_coverage(s, out);
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
    bool ok = run_launch(s, l, memory, &extent, &result, out), lacks = false;
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
        forgive(out);
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
    *known = run_launch(p->s, l, memory, &extent, r, out);
    if (*known)
        return true;
    if (!r->late)
        return false;
    forgive(out);
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
        return refuse(out, VERDICT_UNWRITTEN);
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
    bool ok = encode_maps(plan, &p->z.at, maps, out);
    for (size_t i = 0; ok && i < plan->nsteps && !json_len(p->unjudged); i++) {
        size_t k = plan->steps[i].index;
        bool launch = plan->steps[i].kind == PLAN_LAUNCH;
        launches += launch;
        ok = launch
                 ? sample_launch(p, &plan->launches[k], launches == plan->nlaunches, &memory, out)
                 : run_memset(p->s, &plan->memsets[k], &p->z.at, out);
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
        answer_coverage(p->s, out);
}

static bool get_u64(const json *head, const char *key, uint64_t *out) {
    str text;
    return json_get_str(head, key, &text) && str_to_u64(text, out);
}

static bool sample(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
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

static bool reply(int fd, uint32_t type, struct answer *ans, bool ok, struct err *err) {
    json *head = ans->more ? ans->more : json_object();
    /* A failure without a verdict is our own trouble, never the candidate's. */
    bool trouble = !ok && ans->verdict == VERDICT_ACCEPTED;
    json_set_str(head, "verdict", str_view(verdict_name(ans->verdict)));
    json_set_str(head, "why", ok ? (str){0} : str_view(ans->why.text));
    json_set_i64(head, "at", (int64_t)ans->at);
    if (ans->order)
        json_set_i64(head, "order", ans->order);
    if (!ok) {
        json_free(ans->counters);
        json_free(ans->lines);
        ans->counters = ans->lines = NULL;
    }
    if (ans->counters)
        json_set(head, "counters", ans->counters);
    if (ans->lines)
        json_set(head, "lines", ans->lines);
    if (ans->findings)
        json_set(head, "findings", ans->findings);
    str blob = ok && ans->blob ? buf_str(ans->blob) : (str){0};
    bool sent = frame_write(fd, trouble ? WIRE_ERROR : type, head, blob, NULL, 0, err);
    json_free(head);
    return sent;
}

static bool serve_sample(struct server *s, int fd, const struct frame *f, struct arena *a,
                         struct err *err) {
    struct buf blob;
    buf_init(&blob, 64u << 20);
    struct answer ans = {.verdict = VERDICT_ACCEPTED, .blob = &blob};
    bool ok = sample(s, f, a, &ans), sent = reply(fd, WIRE_SAMPLED, &ans, ok, err);
    buf_release(&blob);
    return sent;
}

static bool serve(struct server *s, int fd, const struct frame *f, struct err *err) {
    struct answer ans = {.verdict = VERDICT_ACCEPTED};
    struct arena *a = arena_new(256u << 20);
    bool ok, sent = true;
    switch (f->type) {
    case WIRE_TASK:
        sent = take_task(s, f, err);
        break;
    case WIRE_BUFFERS:
        sent = buffers_take(&s->buffers, f, err);
        break;
    case WIRE_LOAD:
        ok = load_module(s, f, &ans);
        sent = reply(fd, WIRE_LOADED, &ans, ok, err);
        break;
    case WIRE_RUN:
        ok = run_batch(s, f, a, &ans);
        sent = reply(fd, WIRE_RAN, &ans, ok, err);
        break;
    case WIRE_MEASURE:
        ok = measure(s, f, a, &ans);
        sent = reply(fd, WIRE_MEASURED, &ans, ok, err);
        break;
    case WIRE_SAMPLE:
        sent = serve_sample(s, fd, f, a, err);
        break;
    default:
        sent = err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
    arena_free(a);
    return sent;
}

int sim_device_main(const struct gpu *g, unsigned threads) {
    struct server s = {.gpu = g, .threads = threads};
    struct err err = {0};
    int got = -1;
    if (role_enter(ROLE_FD, "device", &err)) {
        uint64_t secret = 0;
        rng_secret(&secret); /* without one the addresses are merely known */
        s.machine = sim_machine_new(secret);
        s.secret = rng_stream(secret, S("launch"));
        s.grids = rng_below(s.secret, UINT64_MAX - 1, 4096);
        struct frame f = {0};
        while ((got = frame_read(ROLE_FD, 0, &f, &err)) > 0) {
            bool ok = serve(&s, ROLE_FD, &f, &err);
            frame_release(&f);
            if (!ok) {
                got = -1;
                break;
            }
        }
        arena_free(s.module_arena);
        arena_free(s.task_arena);
        sim_machine_free(s.machine);
    }
    if (got < 0)
        complain("cutepilot device: %s\n", err.text);
    _exit(got < 0 ? 3 : 0); /* without exit handlers, which the sandbox may not allow their work */
}
