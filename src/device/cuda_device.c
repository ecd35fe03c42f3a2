/* The device process on a GPU: loads a candidate's cubin (and its rivals'), runs their plans over
 * memory that the judge made and shared, and times them. It sees inputs and its own outputs,
 * nothing else: no network, no expected values, no seeds of verification. Synchronous: one request,
 * one answer (TASK and BUFFERS have none); the worker holds the clock.
 *
 * A kernel that faults takes the context with it. The process then answers with the verdict, says
 * that it is leaving, and ends; the worker starts another. */
#include "base/arena.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/ceilings.h"
#include "device/cuda.h"
#include "device/cuda_plan.h"
#include "device/harness.h"
#include "device/probe.h"
#include "device/role.h"
#include "device/vmm.h"
#include "device/wire.h"
#include "kernel/cubin.h"
#include "kernel/inspect.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- memory of a module that a kernel may read ----
 *
 * Its constants, and the tables of the compiler's own mathematics. Nothing may change it. What a
 * cubin says of its initial content is compared with what the GPU holds after a batch, so that a
 * store that no inspection saw is seen by what it did. */

/* Others are not read: inspect_cubin lets them pass because nothing refers to them. */
static bool is_read(const struct cubin_variable *v) {
    return v->name.n > 0 && v->size > 0 &&
           (!v->writable || library_table(v->name, v->init, v->size));
}

static bool is_initial(const struct cubin_variable *v, const uint8_t *now) {
    if (v->init)
        return memcmp(now, v->init, v->size) == 0;
    for (size_t i = 0; i < v->size; i++)
        if (now[i])
            return false;
    return true;
}

/* NULL: *code is the driver's, for what was asked. */
static const uint8_t *content(const struct cuda *c, cu_module m, const struct cubin_variable *v,
                              struct arena *a, int *code) {
    cu_address at = 0;
    size_t bytes = 0;
    uint8_t *now = arena_alloc(a, v->size, 16);
    *code = c->module_variable(&at, &bytes, m, arena_cstr(a, v->name));
    if (*code == CU_OK && bytes < v->size)
        *code = CU_INVALID_VALUE;
    if (*code == CU_OK)
        *code = c->copy_to_host(now, at, v->size, c->stream);
    if (*code == CU_OK)
        *code = c->stream_sync(c->stream);
    return *code == CU_OK ? now : NULL;
}

/* ACCEPTED: all of it is as the cubin has it; FORBIDDEN: why names the variable that is not. Any
 * other failure is our own: *code is the driver's, and why says what was tried. */
static bool module_memory_same(const struct cuda *c, cu_module m, str cubin, struct arena *a,
                               enum verdict *verdict, int *code, struct err *why) {
    struct cubin_variable *vars;
    size_t n;
    *verdict = VERDICT_ACCEPTED;
    if (!cubin_variables(cubin, a, &vars, &n, why))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_read(&vars[i]))
            continue;
        str name = str_cut(vars[i].name, 0, 200);
        const uint8_t *now = content(c, m, &vars[i], a, code);
        if (!now)
            return cuda_fail(c, why, *code, "look at '%.*s' after the runs", STR_ARG(name));
        if (!is_initial(&vars[i], now)) {
            *verdict = VERDICT_FORBIDDEN;
            return err_set(why, ERR_INPUT,
                           "'%.*s' has other content after the runs than before: constants and "
                           "tables may only be read",
                           STR_ARG(name));
        }
    }
    return true;
}

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
    cu_module modules[WIRE_MAX_MODULES];
    str images[WIRE_MAX_MODULES]; /* their cubins */
    size_t nmodules;
    bool fresh; /* nothing was launched from them since they were loaded */
    struct shared_buffer *buffers;
    size_t nbuffers, room;
};

struct answer {
    struct wire_answer
        say; /* verdict ACCEPTED in a failure: our own trouble, not the candidate's */
    struct err why;
    struct arena *mem; /* of what is said */
    json *ceilings;    /* NULL: none were asked for */
    int code;          /* the driver's, where it has one */
};

static bool bad_message(struct err *err, const char *what) {
    return err_set(err, ERR_ENV, "bad message: %s", what);
}

/* ---- the task and its memory ---- */

static bool take_task(struct server *s, const struct frame *f, struct arena *a, struct err *err) {
    struct wire_task m;
    if (!wire_read(&wire_task_fields, f->head, a, &m, err))
        return false;
    if (!m.harness || m.oracle > f->blob.n || m.harness > f->blob.n - m.oracle)
        return bad_message(err, "task");
    if (s->ready)
        return true; /* one task a worker's life; its harness is the same */
    s->ready = harness_load(&s->cuda, str_cut(f->blob, m.oracle, m.harness), &s->harness, err);
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

static bool add_buffer(struct server *s, const struct wire_buffer *one, int fd, struct err *err) {
    if (!one->bytes || s->nbuffers >= MAX_BUFFERS)
        return bad_message(err, "buffers");
    struct shared_buffer *before = find_buffer(s, one->id);
    if (before) /* sent to the process before this one, and again */
        drop_buffer(s, before);
    struct shared_buffer b = {.id = one->id};
    if (!vmm_import(&s->cuda, fd, one->bytes, false, &b.memory, err))
        return false;
    s->buffers = mem_grow(s->buffers, &s->room, s->nbuffers + 1, sizeof *s->buffers);
    s->buffers[s->nbuffers++] = b;
    return true;
}

static bool take_buffers(struct server *s, const struct frame *f, struct arena *a,
                         struct err *err) {
    struct wire_buffers m;
    if (!wire_read(&wire_buffers_fields, f->head, a, &m, err))
        return false;
    while (m.reset && s->nbuffers)
        drop_buffer(s, &s->buffers[s->nbuffers - 1]);
    for (size_t i = 0; i < m.ndrop; i++)
        if (find_buffer(s, m.drop[i]))
            drop_buffer(s, find_buffer(s, m.drop[i]));
    if (m.nbuffers != f->nfds)
        return bad_message(err, "a descriptor for every buffer");
    for (size_t i = 0; i < f->nfds; i++)
        if (!add_buffer(s, &m.buffers[i], f->fds[i], err))
            return false;
    return true;
}

/* ---- modules ---- */

static bool blame(struct server *s, struct answer *out, int code, const char *what) {
    out->code = code;
    out->say.verdict = cuda_verdict(code);
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
        out->say.at = s->nmodules;
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
    struct wire_load m;
    str rest = f->blob;
    drop_modules(s);
    s->fresh = true;
    if (!s->ready)
        return bad_message(&out->why, "load before the task");
    if (!wire_read(&wire_load_fields, f->head, out->mem, &m, &out->why))
        return false;
    for (size_t i = 0; i < m.nmodules; i++) {
        if (!m.modules[i] || m.modules[i] > rest.n)
            return bad_message(&out->why, "modules");
        if (!load_module(s, str_cut(rest, 0, m.modules[i]), out))
            return false;
        rest = str_from(rest, m.modules[i]);
    }
    return m.nmodules || bad_message(&out->why, "modules");
}

/* ---- runs: what the message says ---- */

struct batch {
    struct wire_run asked;
    struct cuda_memory *cases;
    struct ready_plan *ready; /* by case and module; plan NULL: not yet */
    double *device_s, *host_s;
};

static bool find_span(struct server *s, const struct wire_span *span, struct cuda_span *out) {
    const struct shared_buffer *b = find_buffer(s, span->buffer);
    if (!b || span->offset > b->memory.mapped || span->bytes > b->memory.mapped - span->offset)
        return false;
    *out = (struct cuda_span){b->memory.address + span->offset, span->bytes};
    return true;
}

static bool find_memory(struct server *s, const struct wire_memory *m, const struct wire_run *run,
                        struct cuda_memory *out) {
    for (size_t i = 0; i < m->ntensors; i++)
        if (m->tensors[i].bytes && /* a let has no memory */
            !find_span(s, &m->tensors[i], &out->tensors[i]))
            return false;
    for (size_t i = 0; i < run->nworkspaces; i++)
        if (!find_span(s, &run->workspaces[i], &out->workspaces[i]))
            return false;
    return true;
}

static bool read_batch(struct server *s, const struct frame *f, struct arena *a, struct batch *b,
                       struct err *err) {
    const struct wire_run *m = &b->asked;
    if (!wire_read(&wire_run_fields, f->head, a, &b->asked, err))
        return false;
    if (!m->nplans || m->nplans > s->nmodules || !m->ncases)
        return bad_message(err, "run");
    b->cases = arena_array(a, struct cuda_memory, m->ncases);
    b->ready = arena_array(a, struct ready_plan, m->ncases * m->nplans);
    for (size_t i = 0; i < m->nplans; i++)
        if (!plan_check(&m->plans[i], err))
            return false;
    for (size_t i = 0; i < m->ncases; i++)
        if (!find_memory(s, &m->cases[i], m, &b->cases[i]))
            return bad_message(err, "cases");
    for (size_t i = 0; i < m->nruns; i++)
        if (m->runs[i].at >= m->ncases || m->runs[i].module >= m->nplans)
            return bad_message(err, "runs");
    b->device_s = arena_array(a, double, m->nruns);
    b->host_s = arena_array(a, double, m->nruns);
    return m->nruns || bad_message(err, "runs");
}

/* ---- runs: doing it ---- */

static struct ready_plan *ready_of(const struct batch *b, size_t run) {
    const struct wire_order *r = &b->asked.runs[run];
    return &b->ready[r->at * b->asked.nplans + r->module];
}

static bool make_ready(struct server *s, struct batch *b, struct arena *a, struct answer *out) {
    for (size_t i = 0; i < b->asked.nruns; i++) {
        struct ready_plan *r = ready_of(b, i);
        size_t at = b->asked.runs[i].at, module = b->asked.runs[i].module;
        if (r->plan)
            continue;
        if (!ready_plan_make(&s->cuda, s->modules[module], &b->asked.plans[module], &b->cases[at],
                             a, r, &out->say.verdict, &out->why)) {
            out->say.at = i;
            return false;
        }
    }
    return true;
}

/* As much local memory as the kernel of the batch that has most, whoever's it is: all runs of a
 * batch begin alike. */
static bool cover_local(struct server *s, const struct batch *b, struct answer *out) {
    size_t most = 0, at = 0;
    for (size_t i = 0; i < b->asked.nruns; i++)
        if (ready_of(b, i)->local_bytes > most) {
            most = ready_of(b, i)->local_bytes;
            at = i;
        }
    int code = harness_cover_local(&s->cuda, &s->harness, most);
    if (code == CU_OK)
        return true;
    out->say.at = at;
    out->code = code;
    out->say.verdict = most ? cuda_verdict(code) : VERDICT_ACCEPTED;
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
static bool clean_up(struct server *s, const struct ready_plan *r, bool keeps, bool waits,
                     struct answer *out) {
    int code = ready_plan_poison(&s->cuda, &s->harness, r, keeps);
    if (code == CU_OK)
        code = harness_scrub(&s->cuda, &s->harness);
    if (code == CU_OK && waits)
        code = s->cuda.stream_sync(s->cuda.stream);
    if (code == CU_OK)
        return true;
    out->code = code;
    return cuda_fail(&s->cuda, &out->why, code, "clean up before a run");
}

static bool run_steps(struct server *s, const struct ready_plan *r, size_t first, size_t end,
                      struct answer *out) {
    size_t step;
    int code = ready_plan_queue(&s->cuda, &s->harness, r, first, end, true, &step);
    return code == CU_OK || blame_step(s, r, step, code, out);
}

/* The steps from `first` on. */
static bool run_timed(struct server *s, const struct ready_plan *r, size_t first, double *device_s,
                      double *host_s, struct answer *out) {
    size_t step;
    int code = cuda_timer_start(&s->cuda, &s->harness, &s->timer, r->nsteps - first);
    if (code != CU_OK) {
        out->code = code;
        return cuda_fail(&s->cuda, &out->why, code, "before a timed run");
    }
    code = ready_plan_queue(&s->cuda, &s->harness, r, first, r->nsteps, false, &step);
    if (code == CU_OK)
        code = cuda_timer_stop(&s->cuda, &s->timer, device_s, host_s);
    if (code == CU_OK)
        code = s->cuda.stream_sync(s->cuda.stream);
    return code == CU_OK || blame_step(s, r, step, code, out);
}

static struct wire_clocks *read_clocks(struct server *s, const struct nvml_reading *before,
                                       struct arena *a) {
    struct wire_clocks *c = arena_new_of(a, struct wire_clocks);
    struct nvml_reading after;
    double mhz = 0;
    nvml_read(&s->nvml, &after);
    if (harness_clock_mhz(&s->cuda, &s->harness, &mhz) == CU_OK && mhz > 0)
        fields_set(c, sm_mhz, mhz);
    if (!before->known || !after.known) {
        c->unreadable = str_view(s->nvml.why);
        return c;
    }
    fields_set(c, sm_mhz_before, before->sm_mhz);
    fields_set(c, sm_mhz_after, after.sm_mhz);
    fields_set(c, memory_mhz, after.memory_mhz);
    fields_set(c, power_w, after.power_mw / 1000.0);
    fields_set(c, celsius, after.celsius);
    c->slowed = nvml_slowed(before->slowed | after.slowed, a, &c->nslowed);
    return c;
}

/* ---- what steps that are done once have prepared ---- */

/* As it is now, on the host: one workspace after the other. NULL: our own trouble. */
static uint8_t *fetch_prepared(struct server *s, const struct ready_plan *r, struct answer *out) {
    size_t bytes = 0, at = 0;
    int code = CU_OK;
    for (size_t i = 0; i < r->plan->nworkspaces; i++)
        bytes += r->plan->workspaces[i].prepared ? r->workspaces[i].bytes : 0;
    uint8_t *now = mem_alloc(bytes + 1);
    for (size_t i = 0; i < r->plan->nworkspaces && code == CU_OK; i++) {
        if (!r->plan->workspaces[i].prepared)
            continue;
        code = s->cuda.copy_to_host(now + at, r->workspaces[i].at, r->workspaces[i].bytes,
                                    s->cuda.stream);
        at += r->workspaces[i].bytes;
    }
    if (code == CU_OK)
        code = s->cuda.stream_sync(s->cuda.stream);
    if (code == CU_OK)
        return now;
    mem_free(now);
    out->code = code;
    cuda_fail(&s->cuda, &out->why, code, "look at what was prepared");
    return NULL;
}

/* Nothing that is prepared may change afterwards: the next run relies on it. */
static bool is_as_prepared(struct server *s, const struct ready_plan *r, const uint8_t *before,
                           struct answer *out) {
    uint8_t *now = fetch_prepared(s, r, out);
    bool same = now != NULL;
    size_t at = 0;
    for (size_t i = 0; same && i < r->plan->nworkspaces; i++) {
        const struct bound_workspace *w = &r->plan->workspaces[i];
        if (!w->prepared)
            continue;
        same = memcmp(now + at, before + at, w->bytes) == 0;
        at += w->bytes;
        if (same)
            continue;
        out->say.verdict = VERDICT_MODIFIED_INPUT;
        err_set(&out->why, ERR_INPUT,
                "changed workspace %.*s, which was prepared by steps that are done once and may "
                "not be changed",
                STR_ARG(w->name));
    }
    mem_free(now);
    return same;
}

/* One run after another on what the first has prepared; *prepared is that, from then on. */
static bool run_keeping(struct server *s, const struct ready_plan *r, uint8_t **prepared,
                        struct answer *out) {
    size_t once = r->plan->once_steps;
    if (!clean_up(s, r, *prepared != NULL, true, out) ||
        (!*prepared &&
         (!run_steps(s, r, 0, once, out) || !(*prepared = fetch_prepared(s, r, out)))))
        return false;
    return run_steps(s, r, once, r->nsteps, out) && is_as_prepared(s, r, *prepared, out);
}

/* The clock starts when what is done once is done, with as little left of it as of a run before. */
static bool run_prepared(struct server *s, const struct ready_plan *r, double *device_s,
                         double *host_s, struct answer *out) {
    size_t once = r->plan->once_steps;
    int code;
    if (!run_steps(s, r, 0, once, out))
        return false;
    code = harness_scrub(&s->cuda, &s->harness);
    if (code != CU_OK) {
        out->code = code;
        return cuda_fail(&s->cuda, &out->why, code, "clean up before a run");
    }
    return run_timed(s, r, once, device_s, host_s, out);
}

static bool run_one(struct server *s, struct batch *b, size_t i, uint8_t **prepared,
                    struct answer *out) {
    const struct ready_plan *r = ready_of(b, i);
    if (b->asked.keeps)
        return run_keeping(s, r, prepared, out);
    if (!clean_up(s, r, false, !b->asked.timed, out))
        return false;
    if (!b->asked.timed)
        return run_steps(s, r, 0, r->nsteps, out);
    return b->asked.prepared ? run_prepared(s, r, &b->device_s[i], &b->host_s[i], out)
                             : run_timed(s, r, 0, &b->device_s[i], &b->host_s[i], out);
}

static bool run_all(struct server *s, struct batch *b, struct answer *out) {
    uint8_t *prepared = NULL;
    bool ok = true;
    for (size_t i = 0; ok && i < b->asked.nruns; i++) {
        out->say.at = i;
        ok = run_one(s, b, i, &prepared, out);
    }
    if (ok)
        out->say.at = 0;
    mem_free(prepared);
    return ok;
}

/* Of the modules that were run; the first run of the one that changed something is to blame. */
static bool modules_kept(struct server *s, const struct batch *b, struct arena *a,
                         struct answer *out) {
    for (size_t m = 0; m < b->asked.nplans; m++) {
        size_t run = 0;
        while (run < b->asked.nruns && b->asked.runs[run].module != m)
            run++;
        if (run == b->asked.nruns || module_memory_same(&s->cuda, s->modules[m], s->images[m], a,
                                                        &out->say.verdict, &out->code, &out->why))
            continue;
        out->say.at = run;
        return false;
    }
    return true;
}

static bool run_batch(struct server *s, const struct frame *f, struct answer *out) {
    struct nvml_reading before = {0};
    struct batch b = {0};
    if (!s->ready)
        return bad_message(&out->why, "run before the task");
    if (!read_batch(s, f, out->mem, &b, &out->why) || (b.asked.fresh && !refresh_modules(s, out)) ||
        !make_ready(s, &b, out->mem, out) || !cover_local(s, &b, out))
        return false;
    bool timed = b.asked.timed;
    if (timed && !s->nvml_tried)
        nvml_open(&s->nvml, s->cuda.facts.uuid);
    s->nvml_tried |= timed;
    if (timed)
        nvml_read(&s->nvml, &before);
    s->fresh = false;
    if (!run_all(s, &b, out) || !modules_kept(s, &b, out->mem, out))
        return false;
    if (!timed)
        return true;
    out->say.times_s = b.device_s;
    out->say.host_s = b.host_s;
    out->say.ntimes_s = out->say.nhost_s = b.asked.nruns;
    out->say.clocks = read_clocks(s, &before, out->mem);
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
    out->ceilings = ceilings_to_json(&m);
    return true;
}

/* ---- serving ---- */

static bool reply(int fd, uint32_t type, struct answer *ans, bool ok, struct err *err) {
    bool trouble = !ok && ans->say.verdict == VERDICT_ACCEPTED;
    ans->say.leaving = cuda_sticky(ans->code);
    ans->say.why = ok ? (str){0} : str_view(ans->why.text);
    json *head = ans->ceilings ? ans->ceilings : fields_to_json(&wire_answer_fields, &ans->say);
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
    struct arena *a = arena_new(256u << 20);
    struct answer ans = {.say.verdict = VERDICT_ACCEPTED, .mem = a};
    bool ok = false, sent = true;
    switch (f->type) {
    case WIRE_TASK:
        take_task(s, f, a, &s->trouble);
        break;
    case WIRE_BUFFERS:
        take_buffers(s, f, a, &s->trouble);
        break;
    case WIRE_LOAD:
        ok = no_trouble(s, &ans) && load_modules(s, f, &ans);
        sent = reply(fd, WIRE_LOADED, &ans, ok, err);
        break;
    case WIRE_RUN:
        ok = no_trouble(s, &ans) && run_batch(s, f, &ans);
        sent = reply(fd, WIRE_RAN, &ans, ok, err);
        break;
    case WIRE_CEILINGS:
        ok = no_trouble(s, &ans) && measure_ceilings(s, &ans);
        sent = reply(fd, WIRE_CEILED, &ans, ok, err);
        break;
    default:
        sent = err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
    *leaving = ans.say.leaving;
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
    return role_hello(ROLE_FD, "device", &report,
                      fields_to_json(&cuda_facts_fields, &s->cuda.facts), err);
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
