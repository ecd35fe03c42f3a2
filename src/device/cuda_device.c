/* The device process on a GPU: loads a candidate's cubin (and its rivals'), runs their plans over
 * memory that the judge made and shared, and times them. It sees inputs and its own outputs,
 * nothing else: no network, no expected values, no seeds of verification. Synchronous: one request,
 * one answer (TASK and BUFFERS have none); the worker holds the clock.
 *
 * A kernel that faults takes the context with it. The process then answers with the verdict, says
 * that it is leaving, and ends; the worker starts another. */
#include "base/frame.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/ceilings.h"
#include "device/cuda_plan.h"
#include "device/cuda_time.h"
#include "device/job.h"
#include "device/module_memory.h"
#include "device/nvml.h"
#include "device/role.h"
#include "device/vmm.h"
#include "device/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_MODULES 16
#define MAX_CASES   256
#define MAX_RUNS    4096
#define MAX_BUFFERS 4096
#define STACK_BYTES 256

struct shared_buffer {
    int64_t id;
    struct vmm_buffer memory;
};

struct server {
    struct cuda cuda;
    struct nvml nvml; /* opened with the first timed batch: it takes longer than loading a kernel */
    bool nvml_tried;
    struct harness harness;
    struct cuda_timer timer;
    bool ready;         /* the harness is loaded */
    struct err trouble; /* of a message that has no answer; told with the next one */
    cu_module modules[MAX_MODULES];
    str images[MAX_MODULES]; /* their cubins */
    size_t nmodules;
    bool fresh; /* nothing was launched from them since they were loaded */
    struct shared_buffer *buffers;
    size_t nbuffers, room;
};

struct answer {
    enum verdict verdict; /* ACCEPTED in a failure: our own trouble, never the candidate's */
    struct err why;
    json *more;   /* further members, or NULL */
    int code;     /* the driver's, where it has one */
    bool leaving; /* the context is gone */
};

static bool bad_message(struct err *err, const char *what) {
    return err_set(err, ERR_ENV, "bad message: %s", what);
}

/* ---- the task and its memory ---- */

static bool take_task(struct server *s, const struct frame *f, struct err *err) {
    int64_t oracle, harness;
    if (!json_get_i64(f->head, "oracle", &oracle) || !json_get_i64(f->head, "harness", &harness) ||
        oracle < 0 || harness <= 0 || (uint64_t)oracle > f->blob.n ||
        (uint64_t)harness > f->blob.n - (uint64_t)oracle)
        return bad_message(err, "task");
    if (s->ready)
        return true; /* one task a worker's life; its harness is the same */
    str cubin = str_cut(f->blob, (size_t)oracle, (size_t)harness);
    s->ready = harness_load(&s->cuda, cubin, &s->harness, err);
    uint64_t secret;
    if (s->ready && rng_secret(&secret))
        s->harness.pattern = (uint32_t)secret;
    return s->ready;
}

static struct shared_buffer *find_buffer(struct server *s, int64_t id) {
    for (size_t i = 0; i < s->nbuffers; i++)
        if (s->buffers[i].id == id)
            return &s->buffers[i];
    return NULL;
}

static void drop_buffer(struct server *s, struct shared_buffer *b) {
    vmm_release(&s->cuda, &b->memory);
    *b = s->buffers[--s->nbuffers];
}

static bool add_buffer(struct server *s, const json *j, int fd, struct err *err) {
    int64_t id, bytes;
    if (!json_get_i64(j, "id", &id) || !json_get_i64(j, "bytes", &bytes) || bytes <= 0 ||
        s->nbuffers >= MAX_BUFFERS)
        return bad_message(err, "buffers");
    struct shared_buffer *before = find_buffer(s, id);
    if (before) /* sent to the process before this one, and again */
        drop_buffer(s, before);
    struct shared_buffer b = {.id = id};
    if (!vmm_import(&s->cuda, fd, (size_t)bytes, false, &b.memory, err))
        return false;
    s->buffers = mem_grow(s->buffers, &s->room, s->nbuffers + 1, sizeof *s->buffers);
    s->buffers[s->nbuffers++] = b;
    return true;
}

static bool take_buffers(struct server *s, const struct frame *f, struct err *err) {
    const json *buffers = json_get(f->head, "buffers"), *drop = json_get(f->head, "drop");
    bool reset = false;
    json_get_bool(f->head, "reset", &reset);
    while (reset && s->nbuffers)
        drop_buffer(s, &s->buffers[s->nbuffers - 1]);
    for (size_t i = 0; i < json_len(drop); i++) {
        int64_t id;
        struct shared_buffer *b = json_to_i64(json_at(drop, i), &id) ? find_buffer(s, id) : NULL;
        if (b)
            drop_buffer(s, b);
    }
    if (json_len(buffers) != f->nfds)
        return bad_message(err, "a descriptor for every buffer");
    for (size_t i = 0; i < f->nfds; i++)
        if (!add_buffer(s, json_at(buffers, i), f->fds[i], err))
            return false;
    return true;
}

/* ---- modules ---- */

static json *function_json(const struct cuda *c, cu_function f, size_t module) {
    static const struct {
        const char *key;
        enum cu_function_attribute attribute;
    } facts[] = {{"registers", CU_FN_REGISTERS},
                 {"shared_static", CU_FN_SHARED_STATIC},
                 {"local_bytes", CU_FN_LOCAL_BYTES},
                 {"max_threads", CU_FN_MAX_THREADS}};
    json *j = json_object();
    const char *name = NULL;
    c->function_load(f); /* what it is limited to is known then */
    json_set_i64(j, "module", (int64_t)module);
    json_set_str(j, "name", c->function_name(&name, f) == CU_OK ? str_view(name) : S("?"));
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        int v = 0;
        if (c->function_get(&v, facts[i].attribute, f) == CU_OK)
            json_set_i64(j, facts[i].key, v);
    }
    return j;
}

static void list_functions(const struct cuda *c, cu_module m, size_t module, json *list) {
    cu_function functions[CANDIDATE_MAX_LAUNCHES];
    unsigned n = 0;
    if (c->module_function_count(&n, m) != CU_OK)
        return;
    n = n < CANDIDATE_MAX_LAUNCHES ? n : CANDIDATE_MAX_LAUNCHES;
    if (c->module_functions(functions, n, m) == CU_OK)
        for (unsigned i = 0; i < n; i++)
            json_push(list, function_json(c, functions[i], module));
}

static bool blame(struct server *s, struct answer *out, int code, const char *what) {
    out->code = code;
    out->verdict = cuda_verdict(code);
    return cuda_fail(&s->cuda, &out->why, code, "%s", what);
}

static void drop_modules(struct server *s) {
    while (s->nmodules) {
        s->cuda.module_unload(s->modules[--s->nmodules]);
        mem_free((void *)s->images[s->nmodules].p);
    }
}

static bool load_module(struct server *s, str cubin, struct answer *out) {
    int code = cuda_module_load(&s->cuda, cubin, &s->modules[s->nmodules]);
    if (code != CU_OK) {
        json_set_i64(out->more, "at", (int64_t)s->nmodules);
        return blame(s, out, code, "load the kernel");
    }
    char *image = mem_alloc(cubin.n);
    memcpy(image, cubin.p, cubin.n);
    s->images[s->nmodules++] = (str){image, cubin.n};
    return true;
}

/* Whatever a launch may have left in the memory of its module ends with the batch: the next one has
 * modules that nothing ran from. It takes about 0.1 ms. */
static bool refresh_modules(struct server *s, struct answer *out) {
    for (size_t i = 0; i < s->nmodules && !s->fresh; i++) {
        cu_module old = s->modules[i];
        int code = cuda_module_load(&s->cuda, s->images[i], &s->modules[i]);
        if (code != CU_OK) { /* it was loaded before: no doing of the candidate's */
            s->modules[i] = old;
            out->code = code;
            return cuda_fail(&s->cuda, &out->why, code, "load the kernel again");
        }
        s->cuda.module_unload(old);
    }
    s->fresh = true;
    return true;
}

static bool load_modules(struct server *s, const struct frame *f, struct answer *out) {
    const json *sizes = json_get(f->head, "modules");
    str rest = f->blob;
    drop_modules(s);
    s->fresh = true;
    if (!s->ready)
        return bad_message(&out->why, "load before the task");
    if (!json_len(sizes) || json_len(sizes) > MAX_MODULES)
        return bad_message(&out->why, "modules");
    out->more = json_object();
    json *functions = json_array();
    json_set(out->more, "functions", functions);
    for (size_t i = 0; i < json_len(sizes); i++) {
        int64_t bytes;
        if (!json_to_i64(json_at(sizes, i), &bytes) || bytes <= 0 || (uint64_t)bytes > rest.n)
            return bad_message(&out->why, "modules");
        if (!load_module(s, str_cut(rest, 0, (size_t)bytes), out))
            return false;
        list_functions(&s->cuda, s->modules[i], i, functions);
        rest = str_from(rest, (size_t)bytes);
    }
    return true;
}

/* ---- runs: what the message says ---- */

struct batch {
    struct bound_plan *plans; /* one a module */
    size_t nplans;
    struct cuda_memory *cases;
    size_t ncases;
    struct ready_plan *ready; /* by case and module; plan NULL: not yet */
    size_t (*runs)[2];        /* case, module */
    size_t nruns;
    bool timed;
    double *device_s, *host_s;
};

static bool read_span(struct server *s, const json *j, struct cuda_span *out) {
    int64_t id, offset, bytes;
    if (!json_get_i64(j, "buffer", &id) || !json_get_i64(j, "offset", &offset) ||
        !json_get_i64(j, "bytes", &bytes) || offset < 0 || bytes < 0)
        return false;
    const struct shared_buffer *b = find_buffer(s, id);
    if (!b || (uint64_t)offset > b->memory.mapped ||
        (uint64_t)bytes > b->memory.mapped - (uint64_t)offset)
        return false;
    *out = (struct cuda_span){b->memory.address + (uint64_t)offset, (uint64_t)bytes};
    return true;
}

static bool read_case(struct server *s, const json *tensors, const json *workspaces,
                      struct cuda_memory *out) {
    if (json_len(tensors) > TASK_MAX_TENSORS || json_len(workspaces) > PLAN_MAX_WORKSPACES)
        return false;
    for (size_t i = 0; i < json_len(tensors); i++)
        if (json_is_object(json_at(tensors, i)) && /* a let has no memory */
            !read_span(s, json_at(tensors, i), &out->tensors[i]))
            return false;
    for (size_t i = 0; i < json_len(workspaces); i++)
        if (!read_span(s, json_at(workspaces, i), &out->workspaces[i]))
            return false;
    return true;
}

static bool read_runs(const json *runs, struct arena *a, struct batch *b) {
    b->nruns = json_len(runs);
    if (!b->nruns || b->nruns > MAX_RUNS)
        return false;
    b->runs = arena_array_bytes(a, b->nruns, sizeof *b->runs, _Alignof(size_t));
    for (size_t i = 0; i < b->nruns; i++) {
        int64_t at, module;
        if (!json_to_i64(json_at(json_at(runs, i), 0), &at) ||
            !json_to_i64(json_at(json_at(runs, i), 1), &module) || at < 0 || module < 0 ||
            (size_t)at >= b->ncases || (size_t)module >= b->nplans)
            return false;
        b->runs[i][0] = (size_t)at;
        b->runs[i][1] = (size_t)module;
    }
    return true;
}

static bool read_batch(struct server *s, const struct frame *f, struct arena *a, struct batch *b,
                       struct err *err) {
    const json *plans = json_get(f->head, "plans"), *cases = json_get(f->head, "cases");
    b->nplans = json_len(plans);
    b->ncases = json_len(cases);
    if (!b->nplans || b->nplans > s->nmodules || !b->ncases || b->ncases > MAX_CASES)
        return bad_message(err, "run");
    json_get_bool(f->head, "timed", &b->timed);
    b->plans = arena_array(a, struct bound_plan, b->nplans);
    b->cases = arena_array(a, struct cuda_memory, b->ncases);
    b->ready = arena_array(a, struct ready_plan, b->ncases * b->nplans);
    for (size_t i = 0; i < b->nplans; i++)
        if (!plan_from_json(json_at(plans, i), a, &b->plans[i], err))
            return false;
    for (size_t i = 0; i < b->ncases; i++)
        if (!read_case(s, json_get(json_at(cases, i), "tensors"), json_get(f->head, "workspaces"),
                       &b->cases[i]))
            return bad_message(err, "cases");
    if (!read_runs(json_get(f->head, "runs"), a, b))
        return bad_message(err, "runs");
    b->device_s = arena_array(a, double, b->nruns);
    b->host_s = arena_array(a, double, b->nruns);
    return true;
}

/* ---- runs: doing it ---- */

static struct ready_plan *ready_of(const struct batch *b, size_t run) {
    return &b->ready[b->runs[run][0] * b->nplans + b->runs[run][1]];
}

static void set_at(struct answer *out, size_t run) {
    if (!out->more)
        out->more = json_object();
    json_set_i64(out->more, "at", (int64_t)run);
}

static bool make_ready(struct server *s, struct batch *b, struct arena *a, struct answer *out) {
    for (size_t i = 0; i < b->nruns; i++) {
        struct ready_plan *r = ready_of(b, i);
        size_t at = b->runs[i][0], module = b->runs[i][1];
        if (r->plan)
            continue;
        if (!ready_plan_make(&s->cuda, s->modules[module], &b->plans[module], &b->cases[at], a, r,
                             &out->verdict, &out->why)) {
            set_at(out, i);
            return false;
        }
    }
    return true;
}

/* As much local memory as the kernel of the batch that has most, whoever's it is: all runs of a
 * batch begin alike. */
static bool cover_local(struct server *s, const struct batch *b, struct answer *out) {
    size_t most = 0, at = 0;
    for (size_t i = 0; i < b->nruns; i++)
        if (ready_of(b, i)->local_bytes > most) {
            most = ready_of(b, i)->local_bytes;
            at = i;
        }
    int code = harness_cover_local(&s->cuda, &s->harness, most);
    if (code == CU_OK)
        return true;
    if (most)
        set_at(out, at);
    out->code = code;
    out->verdict = most ? cuda_verdict(code) : VERDICT_ACCEPTED;
    return cuda_fail(&s->cuda, &out->why, code,
                     "local memory of %zu bytes a thread, for every thread that the GPU can hold",
                     most);
}

static bool blame_step(struct server *s, const struct ready_plan *r, size_t step, int code,
                       struct answer *out) {
    struct buf name;
    buf_init(&name, 512);
    ready_plan_name(r, step, &name);
    blame(s, out, code, name.p ? name.p : "");
    buf_release(&name);
    return false;
}

/* Before every run. An error here is none of the candidate's: its last run has been waited for. */
static bool clean_up(struct server *s, const struct ready_plan *r, bool waits, struct answer *out) {
    int code = ready_plan_poison(&s->cuda, &s->harness, r);
    if (code == CU_OK)
        code = harness_scrub(&s->cuda, &s->harness);
    if (code == CU_OK && waits)
        code = s->cuda.stream_sync(s->cuda.stream);
    if (code == CU_OK)
        return true;
    out->code = code;
    return cuda_fail(&s->cuda, &out->why, code, "clean up before a run");
}

static bool run_plain(struct server *s, const struct ready_plan *r, struct answer *out) {
    size_t step;
    int code = ready_plan_queue(&s->cuda, &s->harness, r, true, &step);
    return code == CU_OK || blame_step(s, r, step, code, out);
}

static bool run_timed(struct server *s, const struct ready_plan *r, double *device_s,
                      double *host_s, struct answer *out) {
    size_t step;
    int code = cuda_timer_start(&s->cuda, &s->harness, &s->timer, r->nsteps);
    if (code != CU_OK) {
        out->code = code;
        return cuda_fail(&s->cuda, &out->why, code, "before a timed run");
    }
    code = ready_plan_queue(&s->cuda, &s->harness, r, false, &step);
    if (code == CU_OK)
        code = cuda_timer_stop(&s->cuda, &s->timer, device_s, host_s);
    if (code == CU_OK)
        code = s->cuda.stream_sync(s->cuda.stream);
    return code == CU_OK || blame_step(s, r, step, code, out);
}

static json *seconds_json(const double *s, size_t n) {
    json *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_f64(list, s[i]);
    return list;
}

static json *clocks_json(struct server *s, const struct nvml_reading *before) {
    json *j = json_object();
    struct nvml_reading after;
    double mhz = 0;
    nvml_read(&s->nvml, &after);
    if (harness_clock_mhz(&s->cuda, &s->harness, &mhz) == CU_OK && mhz > 0)
        json_set_f64(j, "sm_mhz", mhz);
    if (!before->known || !after.known) {
        json_set_str(j, "unreadable", str_view(s->nvml.why));
        return j;
    }
    json_set_i64(j, "sm_mhz_before", before->sm_mhz);
    json_set_i64(j, "sm_mhz_after", after.sm_mhz);
    json_set_i64(j, "memory_mhz", after.memory_mhz);
    json_set_f64(j, "power_w", after.power_mw / 1000.0);
    json_set_i64(j, "celsius", after.celsius);
    json_set(j, "slowed", nvml_slowed_to_json(before->slowed | after.slowed));
    return j;
}

static bool run_all(struct server *s, struct batch *b, struct answer *out) {
    for (size_t i = 0; i < b->nruns; i++) {
        const struct ready_plan *r = ready_of(b, i);
        bool ok = clean_up(s, r, !b->timed, out) &&
                  (b->timed ? run_timed(s, r, &b->device_s[i], &b->host_s[i], out)
                            : run_plain(s, r, out));
        if (!ok) {
            set_at(out, i);
            return false;
        }
    }
    return true;
}

/* Of the modules that were run; the first run of the one that changed something is to blame. */
static bool modules_kept(struct server *s, const struct batch *b, struct arena *a,
                         struct answer *out) {
    for (size_t m = 0; m < b->nplans; m++) {
        size_t run = 0;
        while (run < b->nruns && b->runs[run][1] != m)
            run++;
        if (run == b->nruns || module_memory_same(&s->cuda, s->modules[m], s->images[m], a,
                                                  &out->verdict, &out->code, &out->why))
            continue;
        set_at(out, run);
        return false;
    }
    return true;
}

static bool run_batch(struct server *s, const struct frame *f, struct arena *a,
                      struct answer *out) {
    struct nvml_reading before = {0};
    struct batch b = {0};
    bool fresh = true;
    if (!s->ready)
        return bad_message(&out->why, "run before the task");
    json_get_bool(f->head, "fresh", &fresh);
    if (!read_batch(s, f, a, &b, &out->why) || (fresh && !refresh_modules(s, out)) ||
        !make_ready(s, &b, a, out) || !cover_local(s, &b, out))
        return false;
    if (b.timed && !s->nvml_tried)
        nvml_open(&s->nvml, s->cuda.facts.uuid);
    s->nvml_tried |= b.timed;
    if (b.timed)
        nvml_read(&s->nvml, &before);
    s->fresh = false;
    if (!run_all(s, &b, out) || !modules_kept(s, &b, a, out))
        return false;
    if (!b.timed)
        return true;
    out->more = json_object();
    json_set(out->more, "times_s", seconds_json(b.device_s, b.nruns));
    json_set(out->more, "host_s", seconds_json(b.host_s, b.nruns));
    json_set(out->more, "clocks", clocks_json(s, &before));
    return true;
}

static bool measure_ceilings(struct server *s, struct answer *out) {
    struct ceilings m;
    if (!s->ready)
        return bad_message(&out->why, "ceilings before the task");
    double mhz;
    if (!ceilings_measure(&s->cuda, &s->harness, &m, &out->why))
        return false;
    harness_clock_mhz(&s->cuda, &s->harness, &mhz); /* what was held here is not a run's */
    out->more = ceilings_to_json(&m);
    return true;
}

/* ---- serving ---- */

static bool reply(int fd, uint32_t type, struct answer *ans, bool ok, struct err *err) {
    json *head = ans->more ? ans->more : json_object();
    bool trouble = !ok && ans->verdict == VERDICT_ACCEPTED;
    ans->leaving = cuda_sticky(ans->code);
    json_set_str(head, "verdict", str_view(verdict_name(ans->verdict)));
    json_set_str(head, "why", ok ? (str){0} : str_view(ans->why.text));
    if (ans->leaving)
        json_set_bool(head, "leaving", true);
    bool sent = frame_write(fd, trouble ? WIRE_ERROR : type, head, (str){0}, NULL, 0, err);
    json_free(head);
    return sent;
}

/* What went wrong in a message without an answer is told with the next answer. */
static bool no_trouble(struct server *s, struct answer *ans) {
    if (!s->trouble.kind)
        return true;
    ans->why = s->trouble;
    s->trouble = (struct err){0};
    return false;
}

static bool serve(struct server *s, int fd, const struct frame *f, bool *leaving, struct err *err) {
    struct answer ans = {.verdict = VERDICT_ACCEPTED};
    struct arena *a = arena_new(256u << 20);
    bool ok = false, sent = true;
    switch (f->type) {
    case WIRE_TASK:
        take_task(s, f, &s->trouble);
        break;
    case WIRE_BUFFERS:
        take_buffers(s, f, &s->trouble);
        break;
    case WIRE_LOAD:
        ok = no_trouble(s, &ans) && load_modules(s, f, &ans);
        sent = reply(fd, WIRE_LOADED, &ans, ok, err);
        break;
    case WIRE_RUN:
        ok = no_trouble(s, &ans) && run_batch(s, f, a, &ans);
        sent = reply(fd, WIRE_RAN, &ans, ok, err);
        break;
    case WIRE_CEILINGS:
        ok = no_trouble(s, &ans) && measure_ceilings(s, &ans);
        sent = reply(fd, WIRE_CEILED, &ans, ok, err);
        break;
    default:
        sent = err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
    *leaving = ans.leaving;
    arena_free(a);
    return sent;
}

/* Nothing of what a candidate may not use is given room, and not much stack beyond what a kernel is
 * known to need: it is scrubbed before every run, used or not. The driver has minima of its own and
 * rounds up, so what it answers does not matter. */
static void set_limits(const struct cuda *c) {
    c->context_limit(CU_LIMIT_STACK, STACK_BYTES);
    c->context_limit(CU_LIMIT_PRINTF_FIFO, 1024);
    c->context_limit(CU_LIMIT_MALLOC_HEAP, 1024);
    c->context_limit(CU_LIMIT_PERSISTING_L2, 0);
}

static bool enter(struct server *s, int ordinal, struct err *err) {
    struct sandbox_report report;
    if (!role_sandbox(true, &report, err) || !cuda_open(&s->cuda, ordinal, err) ||
        !cuda_timer_init(&s->cuda, &s->timer, err))
        return false;
    set_limits(&s->cuda);
    return role_hello(ROLE_FD, "device", &report, cuda_facts_to_json(&s->cuda.facts), err);
}

int cuda_device_main(int ordinal) {
    struct server s = {0};
    struct err err = {0};
    struct frame f = {0};
    bool leaving = false;
    int got = -1;
    if (enter(&s, ordinal, &err))
        while (!leaving && (got = frame_read(ROLE_FD, 0, &f, &err)) > 0) {
            bool ok = serve(&s, ROLE_FD, &f, &leaving, &err);
            frame_release(&f);
            if (!ok) {
                got = -1;
                break;
            }
        }
    if (got < 0)
        complain("cutepilot device: %s\n", err.text);
    /* Without exit handlers: the driver's would wait for a context that is gone. */
    _exit(got < 0 ? 3 : 0);
}
