/* The device process on the simulator: loads a candidate's PTX, runs its launches over memory that
 * the judge made, and counts. It sees inputs and its own outputs, nothing else: no files, no
 * network, no expected values, no seeds of verification. Synchronous: one request, one answer; the
 * worker holds the clock. */
#include "base/frame.h"
#include "base/rng.h"
#include "device/job.h"
#include "device/role.h"
#include "device/wire.h"
#include "kernel/inspect.h"
#include "kernel/verdict.h"
#include "sim/sim.h"
#include "spec/data.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE_ARENA (2ull << 30)
/* Warp instructions before a launch counts as one without end: seconds of spinning at small shapes,
 * and more than a single warp needs to walk through all the memory there is. */
#define BUDGET_LAUNCH (UINT64_C(16) << 20)
#define BUDGET_WARP   (UINT64_C(1) << 18)
#define BUDGET_BYTE   2

struct server {
    unsigned threads;
    struct sim_machine *machine;
    struct arena *module_arena; /* of the loaded candidate */
    struct task *task;
    struct ptx_module *module;
    struct sim_program **programs; /* by entry; NULL until first launched */
    uint64_t bytes;                /* of the buffers at hand */
};

struct answer {
    enum verdict verdict;
    struct err why;
    json *counters; /* array, or NULL */
};

static bool refuse(struct answer *out, enum verdict v) {
    out->verdict = v;
    return false;
}

static bool load_module(struct server *s, const struct frame *f, struct answer *out) {
    str task, file;
    arena_free(s->module_arena);
    s->module_arena = arena_new(MODULE_ARENA);
    s->module = NULL;
    s->task = NULL;
    if (!json_get_str(f->head, "task", &task) || !json_get_str(f->head, "file", &file))
        return err_set(&out->why, ERR_ENV, "bad message: load");
    if (!task_parse(arena_str(s->module_arena, file), arena_str(s->module_arena, task),
                    s->module_arena, &s->task, &out->why))
        return false;
    if (!ptx_parse(f->blob, s->module_arena, &s->module, &out->why))
        return refuse(out, VERDICT_UNSUPPORTED);
    s->programs = arena_array(s->module_arena, struct sim_program *, s->module->nentries);
    return true;
}

static const struct sim_program *find_program(struct server *s, const struct ptx_entry *e,
                                              struct answer *out) {
    size_t i = (size_t)(e - s->module->entries);
    if (!s->programs[i] && !sim_load(s->module, e, s->module_arena, &s->programs[i], &out->why)) {
        s->programs[i] = NULL;
        out->verdict = VERDICT_UNSUPPORTED;
    }
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

static bool run_launch(struct server *s, const struct bound_launch *l, const uint64_t *addresses,
                       uint64_t sample, struct answer *out) {
    const struct ptx_entry *e = ptx_find_entry(s->module, l->kernel);
    if (!e) {
        err_set(&out->why, ERR_NO, "kernel '%.*s' is not in the module", STR_ARG(l->kernel));
        return refuse(out, VERDICT_BAD_PLAN);
    }
    const struct sim_program *program = find_program(s, e, out);
    uint8_t params[4096];
    size_t size;
    if (!program)
        return false;
    if (!launch_params(l, e, addresses, params, &size, &out->why))
        return refuse(out, VERDICT_LAUNCH_ERROR);
    struct sim_launch launch = {.program = program,
                                .params = params,
                                .params_size = size,
                                .dynamic_shared = l->shared,
                                .threads = s->threads,
                                .sample_ctas = sample,
                                .max_warp_instrs = budget_of(s, l)};
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    struct sim_result result;
    sim_run(s->machine, &launch, &result);
    if (result.status != SIM_OK) {
        err_set(&out->why, ERR_NO, "%s", result.fault.text);
        return refuse(out, verdict_of(result.status));
    }
    if (out->counters)
        json_push(out->counters, counters_to_json(&result.counters));
    return true;
}

static bool run_plan(struct server *s, const struct bound_plan *p, const uint64_t *addresses,
                     uint64_t sample, struct answer *out) {
    for (size_t i = 0; i < p->nlaunches; i++)
        if (!run_launch(s, &p->launches[i], addresses, sample, out))
            return false;
    return true;
}

/* The tensors of the message, as buffers over the judge's memory. */
static bool add_case(struct server *s, const json *tensors, char *map, size_t size,
                     uint64_t *addresses, struct err *err) {
    if (json_len(tensors) != s->task->ntensors)
        return err_set(err, ERR_ENV, "bad message: tensors");
    for (size_t i = 0; i < s->task->ntensors; i++) {
        int64_t offset, bytes;
        bool writable = false;
        const json *t = json_at(tensors, i);
        if (!json_is_object(t))
            continue; /* a let has no memory */
        json_get_bool(t, "writable", &writable);
        if (!json_get_i64(t, "offset", &offset) || !json_get_i64(t, "bytes", &bytes) ||
            offset < 0 || bytes < 0 || (uint64_t)offset > size ||
            (uint64_t)bytes > size - (uint64_t)offset)
            return err_set(err, ERR_ENV, "bad message: tensor %zu", i);
        struct sim_buffer b = {.name = s->task->tensors[i].name,
                               .host = map + offset,
                               .size = (size_t)bytes,
                               .read_only = !writable};
        addresses[i] = sim_machine_add(s->machine, &b);
    }
    return true;
}

static bool run_case(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
    uint64_t addresses[TASK_MAX_TENSORS] = {0};
    struct bound_plan plan;
    struct stat st;
    if (!s->module || f->nfds != 1 || fstat(f->fds[0], &st) < 0)
        return err_set(&out->why, ERR_ENV, "bad message: run");
    if (!launches_from_json(json_get(f->head, "launches"), a, &plan, &out->why))
        return false;
    size_t size = (size_t)st.st_size;
    bool counted = false;
    json_get_bool(f->head, "counted", &counted);
    if (counted)
        out->counters = json_array();
    s->bytes = size;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fds[0], 0);
    if (map == MAP_FAILED)
        return err_errno(&out->why, ERR_ENV, "map %zu bytes of a case", size);
    sim_machine_clear(s->machine);
    bool ok = add_case(s, json_get(f->head, "tensors"), map, size, addresses, &out->why) &&
              run_plan(s, &plan, addresses, 0, out);
    sim_machine_clear(s->machine);
    munmap(map, size);
    return ok;
}

struct lazy_input {
    const struct inst *inst;
    const struct data_scale *scale;
    size_t tensor;
};

static void touch_input(void *ctx, size_t offset, size_t n, void *dst) {
    const struct lazy_input *in = ctx;
    size_t item = dtype_info(in->inst->task->tensors[in->tensor].dtype)->bytes;
    data_fill(in->inst, in->scale, in->tensor, DATA_STATED, 0, (int64_t)(offset / item),
              (int64_t)(n / item), dst);
}

/* Address space without memory behind it until it is touched: a 12 GB tensor of which a few CTAs
 * see a few pages costs those pages. */
static bool add_lazy(struct server *s, const struct inst *in, const struct data_scale *scale,
                     struct arena *a, void **maps, uint64_t *addresses, struct err *err) {
    for (size_t i = 0; i < in->task->ntensors; i++) {
        const struct tensor *t = &in->task->tensors[i];
        size_t bytes = in->tensors[i].bytes;
        if (!tensor_has_memory(t))
            continue;
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return err_errno(err, ERR_ENV, "reserve %zu bytes for %.*s", bytes, STR_ARG(t->name));
        maps[i] = p;
        s->bytes += bytes;
        struct sim_buffer b = {.name = t->name, .host = p, .size = bytes};
        if (tensor_is_input(t)) {
            struct lazy_input *lazy = arena_new_of(a, struct lazy_input);
            *lazy = (struct lazy_input){in, scale, i};
            b.read_only = !tensor_is_output(t);
            b.touch = touch_input;
            b.touch_ctx = lazy;
        }
        addresses[i] = sim_machine_add(s->machine, &b);
    }
    return true;
}

static bool measure(struct server *s, const struct frame *f, struct arena *a, struct answer *out) {
    uint64_t addresses[TASK_MAX_TENSORS] = {0};
    void *maps[TASK_MAX_TENSORS] = {0};
    struct data_scale scale;
    struct bound_plan plan;
    struct binding *set;
    struct inst *in;
    size_t nset;
    int64_t sample = 0;
    json_get_i64(f->head, "sample_ctas", &sample);
    if (!s->module)
        return err_set(&out->why, ERR_ENV, "bad message: measure");
    if (!launches_from_json(json_get(f->head, "launches"), a, &plan, &out->why) ||
        !set_from_json(json_get(f->head, "set"), a, &set, &nset, &out->why) ||
        !task_bind(s->task, set, nset, a, &in, &out->why))
        return false;
    for (size_t i = 0; i < DATA_COUNT; i++)
        scale.factor[i] = 1;
    out->counters = json_array();
    s->bytes = 0;
    sim_machine_clear(s->machine);
    bool ok = add_lazy(s, in, &scale, a, maps, addresses, &out->why) &&
              run_plan(s, &plan, addresses, (uint64_t)sample, out);
    sim_machine_clear(s->machine);
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (maps[i])
            munmap(maps[i], in->tensors[i].bytes);
    return ok;
}

static bool reply(int fd, uint32_t type, struct answer *ans, bool ok, struct err *err) {
    json *head = json_object();
    /* A failure without a verdict is our own trouble, never the candidate's. */
    bool trouble = !ok && ans->verdict == VERDICT_ACCEPTED;
    json_set_str(head, "verdict", str_view(verdict_name(ans->verdict)));
    json_set_str(head, "why", ok ? (str){0} : str_view(ans->why.text));
    if (ok && ans->counters)
        json_set(head, "counters", ans->counters);
    else
        json_free(ans->counters);
    ans->counters = NULL;
    bool sent = frame_write(fd, trouble ? WIRE_ERROR : type, head, (str){0}, NULL, 0, err);
    json_free(head);
    return sent;
}

static bool serve(struct server *s, int fd, const struct frame *f, struct err *err) {
    struct answer ans = {.verdict = VERDICT_ACCEPTED};
    struct arena *a = arena_new(256u << 20);
    bool ok, sent;
    switch (f->type) {
    case WIRE_LOAD:
        ok = load_module(s, f, &ans);
        sent = reply(fd, WIRE_LOADED, &ans, ok, err);
        break;
    case WIRE_RUN:
        ok = run_case(s, f, a, &ans);
        sent = reply(fd, WIRE_RAN, &ans, ok, err);
        break;
    case WIRE_MEASURE:
        ok = measure(s, f, a, &ans);
        sent = reply(fd, WIRE_MEASURED, &ans, ok, err);
        break;
    default:
        sent = err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
    arena_free(a);
    return sent;
}

int device_main(const struct device_name *d, unsigned threads) {
    struct server s = {.threads = threads};
    struct err err = {0};
    int got = -1;
    (void)d; /* the simulator runs every architecture's PTX alike; the model is the coordinator's */
    if (role_enter(ROLE_FD, "device", &err)) {
        uint64_t secret = 0;
        rng_secret(&secret); /* without one the addresses are merely known */
        s.machine = sim_machine_new(secret);
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
        sim_machine_free(s.machine);
    }
    if (got < 0)
        fprintf(stderr, "cutepilot device: %s\n", err.text);
    _exit(got < 0 ? 3 : 0); /* without exit handlers, which the sandbox may not allow their work */
}
