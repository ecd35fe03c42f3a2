/* The device process on the simulator: loads a candidate's PTX, runs its launches over memory that
 * the judge made, and counts. It sees inputs and its own outputs, nothing else: no files, no
 * network, no expected values, no seeds of verification. Synchronous: one request, one answer; the
 * worker holds the clock. */
#include "device/sim_device.h"

#include "base/say.h"
#include "device/role.h"

#include <inttypes.h>
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

bool simdev_refuse(struct answer *out, enum verdict v) {
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

#define MISSING_KEPT 12

static bool lists(const struct wire_coverage *c, str text) {
    for (size_t i = 0; i < c->nmissing; i++)
        if (str_eq(c->missing[i], text))
            return true;
    return false;
}

/* Outcomes of the task's own shape that no judged run has had. */
void simdev_answer_coverage(const struct server *s, struct answer *out) {
    struct wire_coverage *c = arena_new_of(out->mem, struct wire_coverage);
    char text[160];
    c->missing = arena_array(out->mem, str, MISSING_KEPT);
    for (size_t i = 0; i < s->module->nentries; i++)
        for (size_t k = 0; s->programs[i] && k < sim_places(s->programs[i]); k++)
            for (uint8_t left = s->own[i][k] & (uint8_t)~s->judged[i][k]; left; left &= left - 1) {
                sim_place_text(s->programs[i], k, left & (uint8_t)-left, text, sizeof text);
                c->uncovered++;
                if (c->nmissing < MISSING_KEPT && !lists(c, str_view(text)))
                    c->missing[c->nmissing++] = arena_str(out->mem, str_view(text));
            }
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

/* Blocks that the GPU holds at a time, by their threads and dynamic shared memory: what waits for
 * more of them waits for ever. */
static uint64_t resident_ctas(const struct gpu *g, const struct bound_launch *l) {
    int threads = (int)(l->block[0] * l->block[1] * l->block[2]);
    struct occupancy o = gpu_occupancy(g, threads, 1, l->shared);
    return (uint64_t)g->sms * (uint64_t)(o.blocks_sm > 0 ? o.blocks_sm : 1);
}

/* It was the simulator's limit, not the kernel's fault. */
void simdev_forgive(struct answer *out) {
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

/* Where memory lies in this run. Counts do not depend on the first address, but on the gaps. */
void simdev_move_memory(struct server *s) {
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

bool simdev_run_launch(struct server *s, const struct bound_launch *l,
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
    launch.nalso = extent->draw == SIM_DRAW_PAIRS ? rare->n : 0;
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

bool simdev_run_memset(struct server *s, const struct bound_memset *m, const struct places *at,
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
bool simdev_encode_maps(const struct bound_plan *p, const struct places *at,
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

bool simdev_run_plan(struct server *s, const struct bound_plan *p, const struct places *at,
                     const struct extent *extent, struct sim_result *last, launch_done_fn *done,
                     void *ctx, struct answer *out) {
    _Alignas(128) uint8_t maps[PLAN_MAX_MAPS][TENSORMAP_BYTES];
    struct launch_memory memory = {at->tensors, at->workspaces,
                                   (const uint8_t(*)[TENSORMAP_BYTES])maps};
    if (!simdev_encode_maps(p, at, maps, out))
        return false;
    for (size_t i = 0; i < p->nsteps; i++) {
        size_t k = p->steps[i].index;
        bool launch = p->steps[i].kind == PLAN_LAUNCH;
        if (launch ? !simdev_run_launch(s, &p->launches[k], &memory, extent, last, out)
                   : !simdev_run_memset(s, &p->memsets[k], at, out))
            return false;
        if (launch && done)
            done(ctx, last);
    }
    return true;
}

void simdev_touch_noise(void *ctx, size_t offset, size_t n, void *dst) {
    const struct rng *r = ctx;
    uint64_t last = rng_u64(*r, (offset + n) / 8);
    rng_u64_many(*r, offset / 8, n / 8, dst);
    memcpy((char *)dst + n / 8 * 8, &last, n % 8);
}

void simdev_touch_zeros(void *ctx, size_t offset, size_t n, void *dst) {
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
bool simdev_add_workspaces(struct server *s, const struct bound_plan *p, struct places *at,
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
                               .touch = noise ? simdev_touch_noise : simdev_touch_zeros,
                               .touch_ctx = &at->noise[i]};
        at->workspaces[i] = sim_machine_add(s->machine, &b);
    }
    return true;
}

void simdev_free_workspaces(const struct bound_plan *p, struct places *at) {
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

static bool run_case(struct server *s, const struct wire_memory *memory,
                     const struct bound_plan *plan, const struct extent *extent,
                     struct answer *out) {
    struct places at = {0};
    struct sim_result last = {0};
    s->bytes = 0;
    simdev_move_memory(s);
    bool ok = add_case(s, memory, plan, &at, &out->why) &&
              simdev_add_workspaces(s, plan, &at, true, out) &&
              simdev_run_plan(s, plan, &at, extent, &last, NULL, NULL, out);
    out->say.late = !ok && extent->patience_ms && last.status == SIM_BUDGET;
    sim_machine_clear(s->machine);
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
                 ? run_case(s, &m->cases[m->runs[i].at], &m->plans[0], &extent, out)
                 : err_set(&out->why, ERR_ENV, "bad message: a run of no case");
    }
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
