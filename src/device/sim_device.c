/* The device process on the simulator: loads a candidate's PTX, runs its launches over memory that
 * the judge made, and counts. It sees inputs and its own outputs, nothing else: no files, no
 * network, no expected values, no seeds of verification. Synchronous: one request, one answer; the
 * worker holds the clock.
 *
 * Each buffer of the judge comes once as a descriptor, is mapped, and stays until the judge drops
 * it. The mappings are owned here; the descriptors belong to the frame that brought them. */
#include "base/frame.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/role.h"
#include "device/wire.h"
#include "kernel/inspect.h"
#include "sim/model.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS_MAX = 1024 };

struct buffer {
    int64_t id; /* the judge's */
    char *map;
    size_t size;
};

struct buffers {
    struct buffer list[BUFFERS_MAX];
    size_t n;
};

#define RARE_BLOCKS 24

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
    struct wire_answer say; /* what it refers to is in `mem` */
    struct err why;
    struct arena *mem;
    bool counts, lines; /* are wanted */
    struct buf *blob;   /* NULL: none */
};

/* How much of a launch is run. */
struct extent {
    uint64_t ctas; /* about so many blocks; 0: all */
    uint64_t key;  /* that they are drawn by; 0: spread evenly */
    enum sim_draw draw;
    bool named_apart;     /* blocks that comparisons name are run by themselves, after it */
    bool places_whole;    /* launches that make integers for others are run whole, within reason */
    uint64_t budget;      /* of warp instructions; 0: what no kernel with an end needs */
    uint64_t patience_ms; /* of processor time, after which it is given up; 0: never */
};

/* Where the plan's memory is: tensors by the case, workspaces made here for each run. */
struct places {
    uint64_t tensors[TASK_MAX_TENSORS], workspaces[PLAN_MAX_WORKSPACES];
    char *workspace_host[PLAN_MAX_WORKSPACES];
    struct rng noise[PLAN_MAX_WORKSPACES];
};

/* What the steps that are done once have prepared, from one run to the next. */
struct prepared {
    char *host[PLAN_MAX_WORKSPACES]; /* NULL: no prepared workspace, or not yet */
    bool known;
};

/* After each launch of a plan; NULL: nothing is to be done. */
typedef void launch_done_fn(void *ctx, const struct sim_result *result);

static bool simdev_measure(struct server *s, const struct job_measure *m, struct answer *out);
static bool simdev_sample(struct server *s, const struct job_sample *m, struct answer *out);

/* ---- buffers: the list is short and ids are few, so it is searched from the front ---- */

/* NULL: none. */
static const struct buffer *buffers_find(const struct buffers *b, int64_t id) {
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].id == id)
            return &b->list[i];
    return NULL;
}

static void drop(struct buffers *b, int64_t id) {
    const struct buffer *gone = buffers_find(b, id);
    if (!gone)
        return;
    munmap(gone->map, gone->size);
    b->list[gone - b->list] = b->list[b->n - 1];
    b->n--;
}

static bool add(struct buffers *b, int64_t id, int fd, struct err *err) {
    struct stat st;
    drop(b, id);
    if (b->n == BUFFERS_MAX || fstat(fd, &st) < 0)
        return err_set(err, ERR_ENV, "bad message: buffer");
    size_t size = (size_t)st.st_size;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_errno(err, ERR_ENV, "map %zu bytes of a case", size);
    b->list[b->n++] = (struct buffer){id, map, size};
    return true;
}

/* A WIRE_BUFFERS message: what is new, what goes, or everything goes first. */
static bool buffers_take(struct buffers *b, const struct frame *f, struct err *err) {
    struct arena *a = arena_new(16u << 20);
    struct wire_buffers m;
    bool ok = wire_read(&wire_buffers_fields, f->head, a, &m, err) &&
              (m.nbuffers == f->nfds || err_set(err, ERR_ENV, "bad message: buffers"));
    while (ok && m.reset && b->n)
        drop(b, b->list[0].id);
    for (size_t i = 0; ok && i < m.ndrop; i++)
        drop(b, m.drop[i]);
    for (size_t i = 0; ok && i < m.nbuffers; i++)
        ok = add(b, m.buffers[i].id, f->fds[i], err);
    arena_free(a);
    return ok;
}

#define MODULE_ARENA  (2ull << 30)
#define TASK_ARENA    (64u << 20)
#define WORKSPACE_MAX (4ull << 30) /* bytes, of a plan's workspaces together */
/* Warp instructions before a launch counts as one without end: seconds of spinning at small shapes,
 * and more than a single warp needs to walk through all the memory there is. */
#define BUDGET_LAUNCH (UINT64_C(16) << 20)
#define BUDGET_WARP   (UINT64_C(1) << 18)
#define BUDGET_BYTE   2
/* Of a launch that is run whole when blocks are counted, since others go by what it makes. */
#define PLACES_INSTRS (UINT64_C(32) << 20)
#define PLACES_BYTES  (1ull << 30) /* of all buffers; of more no launch is run whole */

/* Sets the verdict; returns false. */
static bool simdev_refuse(struct answer *out, enum verdict v) {
    out->say.verdict = v;
    return false;
}

static bool take_task(struct server *s, const struct frame *f, struct err *err) {
    struct arena *a = arena_new(TASK_ARENA);
    struct wire_task m;
    bool ok = wire_read(&wire_task_fields, f->head, a, &m, err);
    if (!ok || !m.task.n) {
        arena_free(a);
        return ok;
    }
    arena_free(s->task_arena);
    s->task_arena = a;
    s->task = NULL;
    return task_parse(m.file, m.task, a, &s->task, err);
}

static bool load_module(struct server *s, const struct frame *f, struct answer *out) {
    arena_free(s->module_arena);
    s->module_arena = arena_new(MODULE_ARENA);
    s->module = NULL;
    struct wire_load m;
    if (!wire_read(&wire_load_fields, f->head, out->mem, &m, &out->why))
        return false;
    if (!s->task || m.nmodules != 1)
        return err_set(&out->why, ERR_ENV, "bad message: load");
    if (!ptx_parse(arena_str(s->module_arena, f->blob), s->module_arena, &s->module, &out->why))
        return simdev_refuse(out, VERDICT_UNSUPPORTED);
    s->programs = arena_array(s->module_arena, struct sim_program *, s->module->nentries);
    s->own = arena_array(s->module_arena, uint8_t *, s->module->nentries);
    s->judged = arena_array(s->module_arena, uint8_t *, s->module->nentries);
    s->rare = arena_array(s->module_arena, struct rare, s->module->nentries);
    s->covering = NULL;
    return true;
}

/* ---- coverage ---- */

#define MISSING_KEPT 1024 /* as the message holds */

static bool lists(const struct wire_coverage *c, str text) {
    for (size_t i = 0; i < c->nmissing; i++)
        if (str_eq(c->missing[i], text))
            return true;
    return false;
}

static void add_missing(struct wire_coverage *c, struct arena *mem, str text) {
    if (lists(c, text))
        return;
    c->uncovered++;
    if (c->nmissing < MISSING_KEPT)
        c->missing[c->nmissing++] = arena_str(mem, text);
}

/* What is left of the outcomes of one place. */
static void add_left(struct wire_coverage *c, struct arena *mem, const struct sim_program *p,
                     size_t place, uint8_t left) {
    const uint8_t both = SIM_WAS_TRUE | SIM_WAS_FALSE;
    char text[160];
    while (left) {
        uint8_t kind = (left & both) == both ? both : (uint8_t)(left & -left);
        sim_place_text(p, place, kind, text, sizeof text);
        add_missing(c, mem, str_view(text));
        left &= (uint8_t)~kind;
    }
}

/* Adds to the answer what happens at the task's own shape and in no judged run, each line of the
 * source and thing that happens there once: one condition can be several instructions. */
static void simdev_answer_coverage(const struct server *s, struct answer *out) {
    struct wire_coverage *c = arena_new_of(out->mem, struct wire_coverage);
    c->missing = arena_array(out->mem, str, MISSING_KEPT);
    for (size_t i = 0; i < s->module->nentries; i++)
        for (size_t k = 0; s->programs[i] && k < sim_places(s->programs[i]); k++)
            add_left(c, out->mem, s->programs[i], k, s->own[i][k] & (uint8_t)~s->judged[i][k]);
    out->say.coverage = c;
}

/* ---- launches ---- */

static const struct sim_program *find_program(struct server *s, const struct ptx_entry *e,
                                              struct answer *out) {
    size_t i = (size_t)(e - s->module->entries);
    if (s->programs[i])
        return s->programs[i];
    if (!sim_load(s->module, e, s->module_arena, &s->programs[i], &out->why)) {
        s->programs[i] = NULL;
        out->say.verdict = VERDICT_UNSUPPORTED;
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

/* Blocks that the GPU holds at a time, by what the compiler says of their kernel: what waits for
 * more of them waits for ever. */
static uint64_t resident_ctas(const struct gpu *g, const struct bound_launch *l) {
    int threads = (int)(l->block[0] * l->block[1] * l->block[2]);
    int blocks = (int)l->blocks_sm;
    if (!blocks)
        blocks = gpu_occupancy(g, threads, 1, l->shared).blocks_sm;
    return (uint64_t)g->sms * (uint64_t)(blocks > 0 ? blocks : 1);
}

/* Takes it back: it was the simulator's limit, not the kernel's fault. */
static void simdev_forgive(struct answer *out) {
    out->say.nfindings = 0;
    out->say.verdict = VERDICT_ACCEPTED;
    out->why = (struct err){0};
}

static uint64_t draw(struct server *s) {
    return rng_u64(s->secret, s->drawn++);
}

static uint64_t now_ns(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Forgets all buffers, and moves where the next ones lie. Counts do not depend on the first
 * address, but on the gaps. */
static void simdev_move_memory(struct server *s) {
    sim_machine_move(s->machine, s->repeats ? rng_u64(s->secret, UINT64_MAX) : draw(s),
                     !s->repeats);
}

/* ---- what is said of a launch ---- */

static void answer_findings(const struct sim_findings *f, struct answer *out) {
    struct wire_finding *list = arena_array(out->mem, struct wire_finding, f->n);
    for (size_t i = 0; i < f->n; i++)
        list[i] = (struct wire_finding){.check = f->list[i].check == SIM_CHECK_RACE ? S("race")
                                                 : f->list[i].check == SIM_CHECK_UNINITIALISED
                                                     ? S("uninitialised")
                                                     : S("sync"),
                                        .line = f->list[i].src_line,
                                        .other_line = f->list[i].other_line,
                                        .text = arena_str(out->mem, str_view(f->list[i].text))};
    out->say.findings = list;
    out->say.nfindings = f->n;
}

static void answer_counts(const struct sim_result *r, struct answer *out) {
    struct wire_answer *say = &out->say;
    if (!out->counts || say->ncounters == CANDIDATE_MAX_LAUNCHES)
        return;
    if (!say->counters) {
        say->counters = arena_array(out->mem, struct sim_counters, CANDIDATE_MAX_LAUNCHES);
        say->lines = arena_array(out->mem, struct wire_lines, CANDIDATE_MAX_LAUNCHES);
    }
    say->counters[say->ncounters++] = r->counters;
    if (out->lines)
        say->lines[say->nlines++] = (struct wire_lines){(struct sim_line *)r->lines, r->nlines};
}

static bool simdev_run_launch(struct server *s, const struct bound_launch *l,
                              const struct launch_memory *memory, const struct extent *extent,
                              struct sim_result *result, struct answer *out) {
    const struct ptx_entry *e = ptx_find_entry(s->module, l->kernel);
    if (!e) {
        err_set(&out->why, ERR_NO, "kernel '%.*s' is not in the module", STR_ARG(l->kernel));
        return simdev_refuse(out, VERDICT_BAD_PLAN);
    }
    const struct sim_program *program = find_program(s, e, out);
    uint8_t params[PARAMS_MAX];
    size_t size;
    if (!program)
        return false;
    if (!launch_params(l, e, memory, params, &size, &out->why))
        return simdev_refuse(out, VERDICT_LAUNCH_ERROR);
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
                                .clocks = out->counts ? &clocks : NULL,
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
    bool besides = extent->draw == SIM_DRAW_PAIRS || extent->draw == SIM_DRAW_NAMED;
    launch.nalso = besides ? rare->n : 0;
    launch.sample_without = extent->named_apart;
    s->findings.n = 0;
    sim_run(s->machine, &launch, result);
    out->say.order = launch.order || result->drawn ? s->order : out->say.order;
    if (launch.misses)
        rare->n =
            sim_rare_gangs(launch.misses, sim_places(program), l->grid, rare->gangs, RARE_BLOCKS);
    if (result->status != SIM_OK) {
        err_set(&out->why, ERR_NO, "%s", result->fault.text);
        return simdev_refuse(out, verdict_of(result->status));
    }
    if (s->checks && s->findings.n) {
        err_set(&out->why, ERR_NO, "%s", s->findings.list[0].text);
        answer_findings(&s->findings, out);
        return simdev_refuse(out, finding_verdict(s->findings.list[0].check));
    }
    answer_counts(result, out);
    return true;
}

static bool simdev_run_memset(struct server *s, const struct bound_memset *m,
                              const struct places *at, struct answer *out) {
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
static bool simdev_encode_maps(const struct bound_plan *p, const struct places *at,
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
            return simdev_refuse(out, VERDICT_LAUNCH_ERROR);
    }
    return true;
}

/* Once the steps that prepare them are done, no step may write to these workspaces. */
static void simdev_protect(struct server *s, const struct bound_plan *p, const struct places *at) {
    for (size_t i = 0; i < p->nworkspaces; i++)
        if (p->workspaces[i].prepared)
            sim_machine_protect(s->machine, at->workspaces[i]);
}

/* Integers between launches say where others read and write, or how often. */
static bool is_of_places(const struct bound_plan *p, enum arg_kind of, size_t ref) {
    enum dtype t = of == ARG_WORKSPACE ? p->workspaces[ref].dtype : DTYPE_F32;
    return t == DTYPE_I32 || t == DTYPE_I64;
}

static bool makes_places(const struct bound_plan *p, const struct bound_launch *l) {
    for (size_t i = 0; i < l->nargs; i++)
        if (is_of_places(p, l->args[i].kind, l->args[i].ref))
            return true;
    return false;
}

/* A launch of which some blocks are run. What others make of the places that those leave out is not
 * what they do, nor as long: it is run whole where that is not too much. */
static bool run_measured(struct server *s, const struct bound_plan *p, const struct bound_launch *l,
                         bool final, const struct launch_memory *memory,
                         const struct extent *extent, struct sim_result *result,
                         struct answer *out) {
    struct extent whole = *extent;
    whole.ctas = 0;
    whole.budget = PLACES_INSTRS;
    if (!extent->places_whole || final || s->bytes > PLACES_BYTES || !makes_places(p, l))
        return simdev_run_launch(s, l, memory, extent, result, out);
    if (simdev_run_launch(s, l, memory, &whole, result, out))
        return true;
    if (result->status != SIM_BUDGET)
        return false;
    simdev_forgive(out);
    return simdev_run_launch(s, l, memory, extent, result, out);
}

/* Buffers that may hold something else than they would if all blocks were run. */
struct doubt {
    bool workspaces[PLAN_MAX_WORKSPACES], tensors[TASK_MAX_TENSORS];
};

static bool *doubt_of(struct server *s, const struct bound_plan *p, const struct bound_arg *a,
                      struct doubt *d) {
    bool map = a->kind == ARG_TENSORMAP;
    enum arg_kind kind = map ? p->maps[a->ref].of : a->kind;
    size_t ref = map ? p->maps[a->ref].ref : a->ref;
    if (kind == ARG_WORKSPACE)
        return &d->workspaces[ref];
    return kind == ARG_TENSOR && tensor_is_output(&s->task->tensors[ref]) ? &d->tensors[ref] : NULL;
}

static bool is_doubtful(struct server *s, const struct bound_plan *p, const struct bound_launch *l,
                        struct doubt *d) {
    for (size_t i = 0; i < l->nargs; i++) {
        const bool *in = doubt_of(s, p, &l->args[i], d);
        if (in && *in)
            return true;
    }
    return false;
}

/* After a launch: of what is in doubt, or of which blocks were left out. */
static void spread_doubt(struct server *s, const struct bound_plan *p, const struct bound_launch *l,
                         const struct sim_result *r, struct doubt *d) {
    if (r->counters.ctas >= r->counters.ctas_total && !is_doubtful(s, p, l, d))
        return;
    for (size_t i = 0; i < l->nargs; i++) {
        bool *in = doubt_of(s, p, &l->args[i], d);
        if (in)
            *in = true;
    }
}

/* What follows from wrong places, numbers or counts that a launch was given. */
static bool may_follow_from_data(enum sim_status status) {
    return status != SIM_OK && status != SIM_BAD_LAUNCH && status != SIM_UNSUPPORTED;
}

/* The steps from `first` on: 0, or those that are not done once. Where a launch fails that was
 * given what blocks that were not run would have made, that says nothing about it: the run ends
 * without counts and without a verdict, and last->status says that it did. */
static bool simdev_run_plan(struct server *s, const struct bound_plan *p, size_t first,
                            const struct places *at, const struct extent *extent,
                            struct sim_result *last, launch_done_fn *done, void *ctx,
                            struct answer *out) {
    _Alignas(128) uint8_t maps[PLAN_MAX_MAPS][TENSORMAP_BYTES];
    struct launch_memory memory = {at->tensors, at->workspaces,
                                   (const uint8_t(*)[TENSORMAP_BYTES])maps};
    if (!simdev_encode_maps(p, at, maps, out))
        return false;
    struct doubt doubt = {0};
    for (size_t i = first; i < p->nsteps; i++) {
        size_t k = p->steps[i].index;
        bool launch = p->steps[i].kind == PLAN_LAUNCH, final = k + 1 == p->nlaunches;
        if (i == p->once_steps)
            simdev_protect(s, p, at);
        bool ok = launch ? run_measured(s, p, &p->launches[k], final, &memory, extent, last, out)
                         : simdev_run_memset(s, &p->memsets[k], at, out);
        if (!ok && launch && extent->ctas && may_follow_from_data(last->status) &&
            is_doubtful(s, p, &p->launches[k], &doubt)) {
            simdev_forgive(out);
            out->say.ncounters = out->say.nlines = 0;
            return true;
        }
        if (!ok)
            return false;
        if (launch && extent->ctas)
            spread_doubt(s, p, &p->launches[k], last, &doubt);
        if (launch && done)
            done(ctx, last);
    }
    return true;
}

/* For sim_buffer.touch; the context of noise is a struct rng. */
static void simdev_touch_noise(void *ctx, size_t offset, size_t n, void *dst) {
    const struct rng *r = ctx;
    uint64_t last = rng_u64(*r, (offset + n) / 8);
    rng_u64_many(*r, offset / 8, n / 8, dst);
    memcpy((char *)dst + n / 8 * 8, &last, n % 8);
}

static void simdev_touch_zeros(void *ctx, size_t offset, size_t n, void *dst) {
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
            return simdev_refuse(out, VERDICT_OUT_OF_MEMORY);
        }
        left -= bytes;
    }
    return true;
}

/* Filled with what nobody expects, a page when it is touched: there is no memory behind it before.
 */
static bool simdev_add_workspaces(struct server *s, const struct bound_plan *p,
                                  const struct prepared *kept, struct places *at, bool noise,
                                  struct answer *out) {
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
        if (kept && kept->host[i]) { /* as it was left, elsewhere */
            s->bytes += bytes;
            at->workspaces[i] =
                sim_machine_add(s->machine, &(struct sim_buffer){.name = p->workspaces[i].name,
                                                                 .host = kept->host[i],
                                                                 .size = bytes,
                                                                 .read_only = true,
                                                                 .prepared = true});
            continue;
        }
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
                               .between = noise,
                               .touch = noise ? simdev_touch_noise : simdev_touch_zeros,
                               .touch_ctx = &at->noise[i]};
        at->workspaces[i] = sim_machine_add(s->machine, &b);
    }
    return true;
}

static void simdev_free_workspaces(const struct bound_plan *p, struct places *at) {
    for (size_t i = 0; i < p->nworkspaces; i++)
        if (at->workspace_host[i])
            munmap(at->workspace_host[i], p->workspaces[i].bytes);
}

static bool add_tensor(struct server *s, const struct wire_span *t, size_t i, uint32_t align,
                       struct places *at, struct err *err) {
    const struct buffer *b = buffers_find(&s->buffers, t->buffer);
    if (!b || t->offset > b->size || t->bytes > b->size - t->offset)
        return err_set(err, ERR_ENV, "bad message: tensor %zu lies in no buffer", i);
    s->bytes += t->bytes;
    at->tensors[i] = sim_machine_add(
        s->machine, &(struct sim_buffer){.name = s->task->tensors[i].name,
                                         .host = b->map + t->offset,
                                         .size = t->bytes,
                                         .read_only = !t->writable,
                                         .align = s->repeats ? 0 : align,
                                         .undefined = s->task->tensors[i].role == TENSOR_OUT});
    return true;
}

/* The tensors of the message, as buffers over the judge's memory, in an order that nobody knows: no
 * tensor is found from the address of another. */
static bool add_case(struct server *s, const struct wire_memory *m, const struct bound_plan *plan,
                     struct places *at, struct err *err) {
    size_t order[TASK_MAX_TENSORS];
    uint64_t key = 0;
    if (m->ntensors != s->task->ntensors)
        return err_set(err, ERR_ENV, "bad message: tensors");
    if (!s->repeats && !rng_secret(&key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    rng_order(rng_stream(key, S("tensors")), s->task->ntensors, order);
    for (size_t i = 0; i < s->task->ntensors; i++)
        if (m->tensors[order[i]].bytes && /* a let has no memory */
            !add_tensor(s, &m->tensors[order[i]], order[i], plan->align[order[i]], at, err))
            return false;
    return true;
}

/* Hands over what the run has prepared; the rest of its workspaces is freed by the caller. */
static void keep_prepared(const struct bound_plan *p, struct places *at, struct prepared *kept) {
    for (size_t i = 0; i < p->nworkspaces; i++)
        if (p->workspaces[i].prepared && at->workspace_host[i]) {
            kept->host[i] = at->workspace_host[i];
            at->workspace_host[i] = NULL;
        }
    kept->known = true;
}

static void free_prepared(const struct bound_plan *p, struct prepared *kept) {
    for (size_t i = 0; i < p->nworkspaces; i++)
        if (kept->host[i])
            munmap(kept->host[i], p->workspaces[i].bytes);
}

/* kept: what an earlier run has prepared, or will be after this one; NULL: nothing is kept. */
static bool run_case(struct server *s, const struct wire_memory *memory,
                     const struct bound_plan *plan, const struct extent *extent,
                     struct prepared *kept, struct answer *out) {
    struct places at = {0};
    struct sim_result last = {0};
    size_t first = kept && kept->known ? plan->once_steps : 0;
    s->bytes = 0;
    simdev_move_memory(s);
    bool ok = add_case(s, memory, plan, &at, &out->why) &&
              simdev_add_workspaces(s, plan, kept, &at, true, out) &&
              simdev_run_plan(s, plan, first, &at, extent, &last, NULL, NULL, out);
    out->say.late = !ok && extent->patience_ms && last.status == SIM_BUDGET;
    sim_machine_clear(s->machine);
    if (ok && kept)
        keep_prepared(plan, &at, kept);
    simdev_free_workspaces(plan, &at);
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

static bool run_batch(struct server *s, const struct wire_run *m, struct answer *out) {
    struct prepared kept = {0};
    bool ok = true;
    if (!s->task || !s->module || m->nplans != 1)
        return err_set(&out->why, ERR_ENV, "bad message: run");
    if (!plan_check(&m->plans[0], &out->why))
        return false;
    s->repeats = out->counts = m->counted;
    s->checks =
        m->checked || (m->checked_drawn && has_choices(s, &m->plans[0], out)) ? SIM_CHECK_ALL : 0;
    if (out->say.verdict != VERDICT_ACCEPTED)
        return false;
    s->covering = m->covers ? s->judged : NULL;
    s->order = m->order;
    struct extent extent = {.patience_ms = (uint64_t)m->patience_ms};
    for (size_t i = 0; ok && i < m->nruns; i++) {
        out->say.at = i;
        ok = m->runs[i].at < m->ncases
                 ? run_case(s, &m->cases[m->runs[i].at], &m->plans[0], &extent,
                            m->keeps ? &kept : NULL, out)
                 : err_set(&out->why, ERR_ENV, "bad message: a run of no case");
    }
    free_prepared(&m->plans[0], &kept);
    if (out->say.late) {
        simdev_forgive(out);
        ok = true;
    }
    if (m->covers)
        simdev_answer_coverage(s, out);
    return ok;
}

static bool reply(int fd, enum wire type, struct answer *ans, bool ok, struct err *err) {
    /* A failure without a verdict is our own trouble, never the candidate's. */
    bool trouble = !ok && ans->say.verdict == VERDICT_ACCEPTED;
    ans->say.why = ok ? (str){0} : str_view(ans->why.text);
    if (!ok)
        ans->say.ncounters = ans->say.nlines = 0;
    return wire_write(fd, trouble ? WIRE_ERROR : type, &wire_answer_fields, &ans->say,
                      ok && ans->blob ? buf_str(ans->blob) : (str){0}, err);
}

static bool serve_run(struct server *s, const struct frame *f, struct answer *ans) {
    struct wire_run m;
    return wire_read(&wire_run_fields, f->head, ans->mem, &m, &ans->why) && run_batch(s, &m, ans);
}

static bool serve_measure(struct server *s, const struct frame *f, struct answer *ans) {
    struct job_measure m;
    return wire_read(&job_measure_fields, f->head, ans->mem, &m, &ans->why) &&
           simdev_measure(s, &m, ans);
}

static bool serve_sample(struct server *s, const struct frame *f, struct answer *ans) {
    struct job_sample m;
    return wire_read(&job_sample_fields, f->head, ans->mem, &m, &ans->why) &&
           simdev_sample(s, &m, ans);
}

static bool serve(struct server *s, int fd, const struct frame *f, struct err *err) {
    struct buf blob;
    struct answer ans = {
        .say.verdict = VERDICT_ACCEPTED, .mem = arena_new(256u << 20), .blob = &blob};
    bool sent;
    buf_init(&blob, 64u << 20);
    switch (f->type) {
    case WIRE_TASK:
        sent = take_task(s, f, err);
        break;
    case WIRE_BUFFERS:
        sent = buffers_take(&s->buffers, f, err);
        break;
    case WIRE_LOAD:
        sent = reply(fd, WIRE_LOADED, &ans, load_module(s, f, &ans), err);
        break;
    case WIRE_RUN:
        sent = reply(fd, WIRE_RAN, &ans, serve_run(s, f, &ans), err);
        break;
    case WIRE_MEASURE:
        sent = reply(fd, WIRE_MEASURED, &ans, serve_measure(s, f, &ans), err);
        break;
    case WIRE_SAMPLE:
        sent = reply(fd, WIRE_SAMPLED, &ans, serve_sample(s, f, &ans), err);
        break;
    default:
        sent = err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
    buf_release(&blob);
    arena_free(ans.mem);
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

/* ---- a part of a shape that is too large to run whole ----
 *
 * It is counted, held against what the outputs need, and judged by value and under the checkers
 * (docs/EVAL.md). */

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
    return simdev_add_workspaces(s, &z->plan, NULL, &z->at, z->noisy, out);
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

static bool simdev_measure(struct server *s, const struct job_measure *m, struct answer *out) {
    struct lazy z = {.kind = DATA_STATED};
    struct extent extent = {.ctas = (uint64_t)m->sample_ctas, .places_whole = m->sample_ctas > 0};
    struct storing stores = {.known = true};
    struct sim_result last = {0};
    if (!lazy_bind(s, &m->plan, m->set, m->nset, out->mem, &z, &out->why))
        return false;
    struct bound_plan plan = z.plan;
    if (m->sample_ctas) { /* of a part of the blocks nothing else would be right either */
        plan.memsets = arena_array(out->mem, struct bound_memset, plan.nmemsets);
        for (size_t i = 0; i < plan.nmemsets; i++) {
            plan.memsets[i] = z.plan.memsets[i];
            if (!is_of_places(&plan, plan.memsets[i].of, plan.memsets[i].ref))
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
              simdev_run_plan(s, &plan, 0, &z.at, &extent, &last, add_stores, &stores, out) &&
              (!m->covers || last.status != SIM_OK || stores_enough(&z, &stores, out));
    s->seeks_rare = false;
    lazy_free(s, &z);
    if (m->covers)
        simdev_answer_coverage(s, out);
    return ok;
}

/* ---- judging a part ---- */

#define MOST_ORDER     9999         /* a number that is easily typed */
#define MOST_PARTS     64           /* of a tensor */
#define NAMED_PARTS    128          /* … of what the blocks stored that its comparisons name */
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

static struct stretches stretches_of(const struct sampling *p, size_t tensor) {
    return (struct stretches){p, tensor, dtype_info(p->z.inst->task->tensors[tensor].dtype)->bytes,
                              0, 0,      0};
}

/* Parts of what the last launch stored to a tensor. What an earlier launch stored there was not the
 * end of it. */
static void take_parts(struct sampling *p, size_t tensor) {
    struct stretches t = stretches_of(p, tensor);
    int64_t elements = 0, before = 0, i = 0;
    while (stretch_next(&t))
        elements += t.count;
    if (!elements)
        return;
    int64_t most = p->asked->parts < MOST_PARTS ? p->asked->parts : MOST_PARTS;
    p->parts[tensor] = arena_array(p->mem, struct wire_part, MOST_PARTS + NAMED_PARTS);
    p->nparts[tensor] = 0;
    buf_clear(&p->contents[tensor]);
    for (t.end = 0; i < most && stretch_next(&t); before += t.count)
        for (; i < most && part_place(p, tensor, i, elements) < before + t.count; i++)
            add_part(p, &t, t.first + part_place(p, tensor, i, elements) - before);
}

/* All of what the launch stored to a tensor, or, of more than there is room for, equally many parts
 * from each stretch of it. */
static void take_all_parts(struct sampling *p, size_t tensor) {
    struct stretches t = stretches_of(p, tensor);
    size_t pieces = 0, piece = 0, taken = 0, before = p->nparts[tensor];
    for (; stretch_next(&t); pieces += (size_t)((t.count + PART_ELEMENTS - 1) / PART_ELEMENTS))
        continue;
    if (!p->parts[tensor])
        p->parts[tensor] = arena_array(p->mem, struct wire_part, MOST_PARTS + NAMED_PARTS);
    for (t.end = 0; taken < NAMED_PARTS && stretch_next(&t);)
        for (int64_t at = 0; at < t.count && taken < NAMED_PARTS; at += PART_ELEMENTS, piece++)
            if (pieces <= NAMED_PARTS || piece * NAMED_PARTS / pieces >= taken) {
                add_part(p, &t, t.first + at);
                taken++;
            }
    BUG_IF(p->nparts[tensor] - before > NAMED_PARTS);
}

/* How far a launch came that may have been given up. */
enum sampled { SAMPLED_REFUSED, SAMPLED_NOT, SAMPLED_RUN };

static enum sampled run_sampled(struct sampling *p, const struct bound_launch *l,
                                const struct launch_memory *memory, const struct extent *extent,
                                struct sim_result *result, struct answer *out) {
    const char *why = NULL;
    if (simdev_run_launch(p->s, l, memory, extent, result, out))
        return SAMPLED_RUN;
    for (size_t i = 0; p->incomplete && i < p->s->findings.n; i++)
        if (p->s->findings.list[i].of_buffer)
            why = "reads what blocks that were not run would have made";
    if (!why && result->status == SIM_BUDGET)
        why = "even a few of its blocks take too long here";
    if (!why && result->status == SIM_NO_PROGRESS && !p->asked->parts)
        why = "waits for blocks that were not run";
    if (!why)
        return SAMPLED_REFUSED;
    set_unjudged(p, l, why);
    simdev_forgive(out);
    return SAMPLED_NOT;
}

/* Blocks that comparisons of the launch name by their numbers, and that can run after others. */
static bool has_named(const struct sampling *p, const struct bound_launch *l) {
    const struct ptx_entry *e = ptx_find_entry(p->s->module, l->kernel);
    size_t k = e ? (size_t)(e - p->s->module->entries) : 0;
    return e && p->s->rare[k].n && p->asked->parts && p->extent.draw == SIM_DRAW_PAIRS &&
           p->s->programs[k] && !sim_is_ordered(p->s->programs[k]);
}

static void take_from_all(struct sampling *p, void (*take)(struct sampling *, size_t)) {
    for (size_t i = 0; i < p->z.inst->task->ntensors; i++)
        if (p->z.maps[i] && tensor_is_output(&p->z.inst->task->tensors[i]))
            take(p, i);
}

/* They are run after the others, as the same launch goes on, and all that they store is judged:
 * what a kernel does in one of a million blocks because of its number. False: it is refused. */
static bool sample_named(struct sampling *p, const struct bound_launch *l,
                         const struct launch_memory *memory, struct answer *out) {
    struct extent extent = p->extent;
    struct sim_result result;
    extent.draw = SIM_DRAW_NAMED;
    enum sampled how = run_sampled(p, l, memory, &extent, &result, out);
    if (how == SAMPLED_RUN) {
        p->ctas += result.counters.ctas;
        take_from_all(p, take_all_parts);
    }
    return how != SAMPLED_REFUSED;
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
    extent.named_apart = final && has_named(p, l);
    struct sim_result result;
    s->checks = whole || p->asked->values ? SIM_CHECK_UNINITIALISED : SIM_CHECK_ALL;
    enum sampled how = run_sampled(p, l, memory, &extent, &result, out);
    if (how != SAMPLED_RUN)
        return how == SAMPLED_NOT;
    p->ctas += result.counters.ctas;
    p->ctas_total += result.counters.ctas_total;
    p->incomplete |= result.counters.ctas < result.counters.ctas_total;
    take_from_all(p, take_parts);
    if (!final && result.counters.ctas < result.counters.ctas_total)
        sim_machine_forget(s->machine);
    return !extent.named_apart || !p->incomplete || sample_named(p, l, memory, out);
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
        if (i == plan->once_steps)
            simdev_protect(p->s, plan, &p->z.at);
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
    say->parts =
        arena_array(out->mem, struct wire_part, TASK_MAX_TENSORS * (MOST_PARTS + NAMED_PARTS));
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

static bool simdev_sample(struct server *s, const struct job_sample *m, struct answer *out) {
    struct sampling p = {.s = s,
                         .asked = m,
                         .z = {.noisy = true, .kind = m->data, .seed = m->seed},
                         .extent = {.ctas = (uint64_t)(m->sample_ctas < 1 ? 1 : m->sample_ctas),
                                    .key = m->counted ? 0 : m->key,
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
