/* The judge beside a GPU: a context of its own, in which the oracle's kernels (oracle_run.h) make
 * inputs, poison, references and comparisons. What a candidate may touch is memory that is exported
 * by descriptor; everything else stays here.
 *
 * Judge and device share a buffer for each tensor and workspace, its content at the end, so that an
 * access behind it faults, and canaries in the rest.
 *
 *     [ canary … | content | canary, less than the alignment ] nothing mapped
 *
 * Making a buffer and telling another process of it takes as long as judging many cases, so buffers
 * that a case has left wait for another.
 *
 * A kernel may rely on 16 bytes of alignment unless it asks for more: every other kind of data lies
 * at an odd multiple of 16, so that one which relies on more does not pass. */
#include "base/rng.h"
#include "device/role.h"
#include "device/vmm.h"
#include "device/wire.h"
#include "eval/judge_private.h"
#include "eval/memory.h"
#include "eval/oracle_run.h"
#include "eval/tiles.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct shared {
    struct vmm_buffer memory;
    size_t offset, bytes; /* of the content */
    int64_t id, sent;     /* sent: to which device process; 0: none */
};

#define SPARE_MOST 1024

struct gpu_memory {
    const struct cuda *cuda;
    size_t granule; /* of mapped memory */
    struct shared spare[SPARE_MOST];
    size_t nspare;
    int64_t next_id;
    int64_t *dropped; /* ids the device has not been told of */
    size_t ndropped, room_dropped;
    bool reset_sent;
    int64_t device; /* the process that buffers are sent to */
    /* Asked when the GPU is full: gives something up, or false. */
    bool (*make_room)(void *ctx);
    void *ctx;
};

/* What must not change around a content: before it, and behind it. */
enum { SIDES = 2 };

/* Telling a device process of buffers it has not got yet. */
struct sending {
    struct gpu_memory *m;
    struct wire_buffer buffers[FRAME_MAX_FDS];
    int fds[FRAME_MAX_FDS];
    size_t n;
};

#define SPARE_BYTES (64u << 20) /* larger ones do not wait */
#define LET_GO_MS   5
#define LET_GO_MOST 100 /* times that, for the device to let go of memory */

static void release(struct gpu_memory *m, struct shared *s) {
    m->dropped = mem_grow(m->dropped, &m->room_dropped, m->ndropped + 1, sizeof *m->dropped);
    m->dropped[m->ndropped++] = s->id;
    vmm_release(m->cuda, &s->memory);
}

static void shared_free(struct gpu_memory *m, struct shared *s) {
    if (s->memory.address && m->nspare < SPARE_MOST && s->memory.mapped <= SPARE_BYTES)
        m->spare[m->nspare++] = *s;
    else if (s->memory.address)
        release(m, s);
    *s = (struct shared){0};
}

/* One that waits, of the size that `bytes` would be given. */
static bool take_spare(struct gpu_memory *m, size_t bytes, struct shared *out) {
    for (size_t i = 0; i < m->nspare; i++) {
        size_t mapped = m->spare[i].memory.mapped;
        if (mapped < bytes || mapped - bytes >= m->granule)
            continue;
        *out = m->spare[i];
        m->spare[i] = m->spare[--m->nspare];
        return true;
    }
    return false;
}

static bool give_up_something(struct gpu_memory *m) {
    if (!m->nspare)
        return m->make_room(m->ctx);
    while (m->nspare)
        release(m, &m->spare[--m->nspare]);
    return true;
}

/* ---- telling the device ---- */

/* To m->device. */
static void sending_start(struct sending *s, struct gpu_memory *m) {
    *s = (struct sending){.m = m};
}

static void sending_clear(struct sending *s) {
    for (size_t i = 0; i < s->n; i++)
        close(s->fds[i]);
    s->n = 0;
}

static bool send_now(struct sending *s, struct err *err) {
    struct gpu_memory *m = s->m;
    struct wire_buffers said = {.reset = !m->reset_sent, /* nothing is left of a judge before */
                                .buffers = s->buffers,
                                .nbuffers = s->n,
                                .drop = m->dropped,
                                .ndrop = m->ndropped};
    json *head = fields_to_json(&wire_buffers_fields, &said);
    bool ok = frame_write(ROLE_FD, WIRE_BUFFERS, head, (str){0}, s->fds, s->n, err);
    json_free(head);
    m->reset_sent = true;
    m->ndropped = 0;
    sending_clear(s);
    return ok;
}

static bool sending_add(struct sending *s, struct shared *b, struct err *err) {
    if (!b->memory.address || b->sent == s->m->device)
        return true;
    if ((s->n == FRAME_MAX_FDS && !send_now(s, err)) ||
        !vmm_export(s->m->cuda, &b->memory, &s->fds[s->n], err))
        return false;
    s->buffers[s->n++] = (struct wire_buffer){b->id, b->memory.mapped};
    b->sent = s->m->device;
    return true;
}

/* Ok false: nothing is sent. */
static bool sending_end(struct sending *s, bool ok, struct err *err) {
    if (ok && (s->n || s->m->ndropped))
        ok = send_now(s, err);
    sending_clear(s);
    return ok;
}

/* Gives something up and waits until the device has let go of it as well, which is when its memory
 * is free. False: there is nothing left to give up. */
static bool gpu_memory_make_room(struct gpu_memory *m) {
    size_t before = cuda_free_bytes(m->cuda);
    struct sending s;
    struct err ignored = {0};
    if (!give_up_something(m))
        return false;
    if (!m->ndropped)
        return true; /* what was given up waits for another case, and goes next */
    sending_start(&s, m);
    sending_end(&s, true, &ignored); /* a device that is gone holds nothing */
    for (int i = 0; i < LET_GO_MOST && cuda_free_bytes(m->cuda) <= before; i++)
        poll(NULL, 0, LET_GO_MS);
    return true;
}

static bool create(struct gpu_memory *m, size_t bytes, struct shared *out, bool *full,
                   struct err *err) {
    *out = (struct shared){.id = ++m->next_id};
    *full = bytes > m->cuda->facts.memory_bytes;
    if (*full)
        return err_set(err, ERR_ENV, "%zu bytes are more than the GPU has", bytes);
    while (!vmm_create(m->cuda, bytes, &out->memory, full, err)) {
        if (!*full || !gpu_memory_make_room(m))
            return false;
        *err = (struct err){0};
    }
    return true;
}

static bool shared_make(struct gpu_memory *m, size_t bytes, uint32_t align, bool odd,
                        struct shared *out, bool *full, struct err *err) {
    size_t most = bytes + 2 * (size_t)PLAN_MAX_ALIGN; /* room for canaries on both sides */
    *full = false;
    if (!take_spare(m, most, out) && !create(m, most, out, full, err)) {
        *out = (struct shared){0};
        return false;
    }
    out->bytes = bytes;
    out->offset = (out->memory.mapped - bytes) / align * align;
    if (odd && out->offset % (2 * align) == 0)
        out->offset -= align;
    return true;
}

static uint64_t shared_content(const struct shared *s) {
    return s->memory.address + s->offset;
}

/* Fails with *full set where the GPU does not have that much. `odd`: at an odd multiple of the
 * alignment, so that nothing can rely on more. */
static struct wire_span shared_span(const struct shared *s) {
    return (struct wire_span){.buffer = s->id, .offset = s->offset, .bytes = s->bytes};
}

static size_t shared_regions(const struct shared *s, uint64_t key,
                             struct oracle_region out[SIDES]) {
    size_t end = s->offset + s->bytes;
    out[0] = (struct oracle_region){s->memory.address, (int64_t)s->offset, key};
    out[1] =
        (struct oracle_region){s->memory.address + end, (int64_t)(s->memory.mapped - end), key + 1};
    return SIDES;
}

#define MAX_CASES 192

struct gpu_case {
    struct arena *arena;
    struct inst *inst;
    enum data_kind data;
    uint64_t seed, params, used, key; /* params: the seed of parameters */
    uint32_t align[TASK_MAX_TENSORS];
    struct shared tensor[TASK_MAX_TENSORS];
    struct oracle_case *oracle;
    uint64_t digest_key, digest[TASK_MAX_TENSORS]; /* of inputs that nobody may write */
    size_t bytes;
    bool lent;     /* to a device, and not found whole since */
    bool expected; /* what is expected of it was made */
    struct data_scale scale;
};

struct gpu_judge {
    struct cuda cuda;
    struct gpu_memory memory;
    struct engine engine;
    cu_module module;
    struct arena *task_arena;
    struct task *task;
    struct oracle *oracle;
    struct gpu_case *cases[MAX_CASES];
    size_t ncases, bytes, kept, room; /* kept: of references */
    uint64_t clock;
    struct shared workspace[PLAN_MAX_WORKSPACES];
    size_t nworkspaces; /* of this batch; others are kept */
    uint64_t workspace_key;
    struct gpu_case *batch[JUDGE_MAX_BATCH];
    size_t nbatch;
    /* How large data may be: found by evaluating, the same for all kinds of a shape and seed. */
    struct data_scale scale;
    int64_t *scaled_dims; /* of the shape it is of; NULL: none yet */
    uint64_t scaled_seed;
    bool full;            /* there is no memory for a workspace */
    bool short_of_memory; /* the last allocation of the judge's own failed for want of it */
    bool sampled;         /* … nor what it takes to make them: tiles are compared */
    bool remade; /* the memory does not hold references beside the contents of this batch */
};

/* ---- the engine ---- */

static bool engine_alloc(void *ctx, size_t bytes, uint64_t *address, struct err *err) {
    struct gpu_judge *j = ctx;
    int code;
    do
        code = j->cuda.memory_alloc(address, bytes);
    while (code == CU_OUT_OF_MEMORY && gpu_memory_make_room(&j->memory));
    j->short_of_memory = code == CU_OUT_OF_MEMORY;
    return cuda_try(&j->cuda, code, err, "memory for the judge");
}

static void engine_free(void *ctx, uint64_t address) {
    struct gpu_judge *j = ctx;
    j->cuda.memory_free(address);
}

static bool engine_launch(void *ctx, const char *kernel, const uint32_t grid[3], uint32_t block,
                          const void *params, size_t bytes, struct err *err) {
    struct gpu_judge *j = ctx;
    cu_function f;
    (void)bytes;
    if (!cuda_try(&j->cuda, j->cuda.module_function(&f, j->module, kernel), err, kernel))
        return false;
    void *args[] = {(void *)params};
    struct cuda_launch l = {
        .function = f, .grid = {grid[0], grid[1], grid[2]}, .block = {block, 1, 1}, .params = args};
    return cuda_try(&j->cuda, cuda_launch(&j->cuda, &l), err, kernel);
}

static bool engine_fetch(void *ctx, void *dst, uint64_t src, size_t bytes, struct err *err) {
    struct gpu_judge *j = ctx;
    return cuda_try(&j->cuda, j->cuda.copy_to_host(dst, src, bytes, j->cuda.stream), err,
                    "copy from the GPU") &&
           cuda_try(&j->cuda, j->cuda.stream_sync(j->cuda.stream), err, "wait for the judge");
}

static bool engine_send(void *ctx, uint64_t dst, const void *src, size_t bytes, struct err *err) {
    struct gpu_judge *j = ctx;
    return cuda_try(&j->cuda, j->cuda.copy_to_device(dst, src, bytes, j->cuda.stream), err,
                    "copy to the GPU");
}

static bool engine_zero(void *ctx, uint64_t dst, size_t bytes, struct err *err) {
    struct gpu_judge *j = ctx;
    return cuda_try(&j->cuda, j->cuda.set_d8(dst, 0, bytes, j->cuda.stream), err, "clear memory");
}

static bool wait_done(struct gpu_judge *j, struct err *err) {
    return cuda_try(&j->cuda, j->cuda.stream_sync(j->cuda.stream), err, "wait for the judge");
}

/* ---- cases ---- */

static void case_free(struct gpu_judge *j, struct gpu_case *c) {
    if (!c)
        return;
    oracle_case_free(c->oracle);
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        shared_free(&j->memory, &c->tensor[i]);
    arena_free(c->arena);
    mem_free(c);
}

static void drop_case(struct gpu_judge *j, size_t i) {
    j->bytes -= j->cases[i]->bytes;
    j->kept -= oracle_case_bytes(j->cases[i]->oracle);
    case_free(j, j->cases[i]);
    j->cases[i] = j->cases[--j->ncases];
}

static bool is_busy(const struct gpu_judge *j, const struct gpu_case *c) {
    for (size_t k = 0; k < j->nbatch; k++)
        if (j->batch[k] == c)
            return true;
    return false;
}

/* A workspace that an earlier candidate asked for and this one does not. False: there is none. */
static bool drop_workspace(struct gpu_judge *j) {
    for (size_t i = j->nworkspaces; i < PLAN_MAX_WORKSPACES; i++)
        if (j->workspace[i].memory.address) {
            shared_free(&j->memory, &j->workspace[i]);
            return true;
        }
    return false;
}

/* The largest of those not under way, of equals the one not used for longest: a shape that fills
 * the GPU would else drive out all small ones and still lack room. False: there is none. */
static bool drop_largest(struct gpu_judge *j) {
    const struct gpu_case *worst = NULL;
    size_t at = 0;
    for (size_t i = 0; i < j->ncases; i++) {
        const struct gpu_case *c = j->cases[i];
        if (is_busy(j, c) || (worst && (c->bytes < worst->bytes ||
                                        (c->bytes == worst->bytes && c->used > worst->used))))
            continue;
        worst = c;
        at = i;
    }
    if (worst)
        drop_case(j, at);
    return worst;
}

static bool make_room(void *ctx) {
    struct gpu_judge *j = ctx;
    return drop_workspace(j) || drop_largest(j);
}

/* In an order that nobody knows: a driver's addresses follow it. */
static bool make_tensors(struct gpu_judge *j, struct gpu_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    size_t order[TASK_MAX_TENSORS];
    uint64_t key;
    if (!rng_secret(&key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    rng_order(rng_stream(key, S("tensors")), t->ntensors, order);
    for (size_t k = 0; k < t->ntensors; k++) {
        size_t i = order[k];
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        bool full, odd = c->align[i] == PLAN_ALIGN && c->data % 2;
        if (!shared_make(&j->memory, c->inst->tensors[i].bytes, c->align[i], odd, &c->tensor[i],
                         &full, err))
            return err_wrap(err, "memory for %.*s", STR_ARG(t->tensors[i].name));
        c->bytes += c->tensor[i].memory.mapped;
    }
    return true;
}

static bool find_scale(struct gpu_judge *j, const struct gpu_case *c, struct err *err) {
    size_t bytes = c->inst->task->ndims * sizeof *j->scaled_dims;
    if (j->scaled_dims && j->scaled_seed == c->params &&
        memcmp(j->scaled_dims, c->inst->dims, bytes) == 0)
        return true;
    if (!data_scale_find(c->inst, c->params, &j->scale, err))
        return false;
    j->scaled_dims = mem_resize(j->scaled_dims, bytes + 1);
    memcpy(j->scaled_dims, c->inst->dims, bytes);
    j->scaled_seed = c->params;
    return true;
}

/* Contents of inputs that are not outputs as well. */
static size_t input_regions(const struct gpu_case *c, struct oracle_region *out) {
    const struct task *t = c->inst->task;
    size_t n = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_input(&t->tensors[i]) && !tensor_is_output(&t->tensors[i]))
            out[n++] = (struct oracle_region){shared_content(&c->tensor[i]),
                                              (int64_t)c->tensor[i].bytes, c->digest_key + i};
    return n;
}

static bool take_digest(struct gpu_judge *j, struct gpu_case *c, struct err *err) {
    struct oracle_region regions[TASK_MAX_TENSORS];
    struct oracle_result seen = {0};
    if (!rng_secret(&c->digest_key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    if (!oracle_queue_digests(j->oracle, regions, input_regions(c, regions), 0, err) ||
        !oracle_collect(j->oracle, &seen, 1, err))
        return false;
    memcpy(c->digest, seen.digest, sizeof c->digest);
    return true;
}

/* For a sample of tiles it is made after the run. */
static bool expect(const struct gpu_judge *j, struct gpu_case *c, struct err *err) {
    if (j->sampled || c->expected)
        return true;
    c->expected = oracle_expect(c->oracle, err);
    return c->expected;
}

static struct oracle_case *make_oracle(struct gpu_judge *j, const struct gpu_case *c,
                                       const uint64_t *address, size_t keep, struct err *err) {
    j->short_of_memory = false;
    return oracle_case_new(j->oracle, c->inst, &j->scale, c->data, c->seed, c->params, address,
                           keep, err);
}

static bool make_contents(struct gpu_judge *j, struct gpu_case *c, struct err *err) {
    uint64_t address[TASK_MAX_TENSORS] = {0};
    for (size_t i = 0; i < c->inst->task->ntensors; i++)
        if (c->tensor[i].memory.address)
            address[i] = shared_content(&c->tensor[i]);
    if (!find_scale(j, c, err))
        return false;
    size_t keep = j->remade ? 0 : memory_keep_bytes(j->room, j->kept);
    c->oracle = make_oracle(j, c, address, keep, err);
    if (!c->oracle && keep && j->short_of_memory) { /* others use the GPU too */
        *err = (struct err){0};
        c->oracle = make_oracle(j, c, address, 0, err);
    }
    if (c->oracle)
        c->bytes += oracle_case_bytes(c->oracle);
    c->scale = j->scale;
    return c->oracle && oracle_fill(c->oracle, err) && expect(j, c, err) && take_digest(j, c, err);
}

static struct gpu_case *case_new(struct gpu_judge *j, const struct gpu_case *like,
                                 const struct wire_prepare *m, struct err *err) {
    struct gpu_case *c = mem_alloc(sizeof *c);
    c->arena = arena_new(64u << 20);
    c->data = like->data;
    c->seed = like->seed;
    c->params = like->params;
    memcpy(c->align, like->align, sizeof c->align);
    if (task_bind(j->task, m->set, m->nset, c->arena, &c->inst, err) && make_tensors(j, c, err) &&
        make_contents(j, c, err))
        return c;
    case_free(j, c);
    return NULL;
}

static struct gpu_case *find_case(struct gpu_judge *j, const struct gpu_case *like,
                                  const struct wire_prepare *m, struct err *err) {
    for (size_t i = 0; i < j->ncases; i++) {
        struct gpu_case *c = j->cases[i];
        if (c->data == like->data && c->seed == like->seed && c->params == like->params &&
            memcmp(c->align, like->align, sizeof c->align) == 0 && set_is(m->set, m->nset, c->inst))
            return c;
    }
    struct gpu_case *c = case_new(j, like, m, err);
    if (!c)
        return NULL;
    while ((j->ncases == MAX_CASES || j->bytes + c->bytes > j->room) && drop_largest(j))
        ;
    if (j->ncases == MAX_CASES) {
        case_free(j, c);
        err_set(err, ERR_ENV, "too many cases in one batch");
        return NULL;
    }
    j->cases[j->ncases++] = c;
    j->bytes += c->bytes;
    j->kept += oracle_case_bytes(c->oracle);
    return c;
}

/* ---- before a run ---- */

static size_t case_regions(const struct gpu_case *c, struct oracle_region *out) {
    size_t n = 0;
    for (size_t i = 0; i < c->inst->task->ntensors; i++)
        if (c->tensor[i].memory.address)
            n += shared_regions(&c->tensor[i], c->key + SIDES * i, out + n);
    return n;
}

static size_t workspace_regions(const struct gpu_judge *j, struct oracle_region *out) {
    size_t n = 0;
    for (size_t i = 0; i < j->nworkspaces; i++)
        n += shared_regions(&j->workspace[i], j->workspace_key + SIDES * i, out + n);
    return n;
}

static bool poison_case(struct gpu_judge *j, struct gpu_case *c, struct err *err) {
    struct oracle_region regions[SIDES * TASK_MAX_TENSORS];
    if (!rng_secret(&c->key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    size_t n = case_regions(c, regions);
    if (n > ORACLE_REGIONS)
        return err_set(err, ERR_ENV, "a task of more than %d tensors cannot be judged on a GPU",
                       ORACLE_REGIONS / SIDES);
    if ((c->lent && !oracle_fill(c->oracle, err)) /* nobody has looked at its inputs since */
        || !expect(j, c, err))
        return false;
    c->lent = true;
    return oracle_canary_fill(j->oracle, regions, n, err) && oracle_poison(c->oracle, c->key, err);
}

static bool make_workspaces(struct gpu_judge *j, const struct wire_prepare *m, struct err *err) {
    struct oracle_region regions[SIDES * PLAN_MAX_WORKSPACES];
    size_t n = m->nworkspaces;
    if (!rng_secret(&j->workspace_key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    for (size_t i = 0; i < n; i++) {
        struct shared *s = &j->workspace[i];
        j->nworkspaces = i; /* of the others it may take the memory */
        size_t bytes = (size_t)m->workspaces[i];
        if (!bytes)
            return err_set(err, ERR_ENV, "bad message: workspaces");
        if (s->bytes != bytes) {
            shared_free(&j->memory, s);
            if (!shared_make(&j->memory, bytes, PLAN_MAX_ALIGN, false, s, &j->full, err))
                return err_wrap(err, "memory for a workspace");
        }
    }
    j->nworkspaces = n;
    return !n || oracle_canary_fill(j->oracle, regions, workspace_regions(j, regions), err);
}

/* ---- telling the device ---- */

/* In an order that nobody knows: the device maps them as they come. */
static bool send_buffers(struct gpu_judge *j, struct err *err) {
    size_t tensors = j->task->ntensors, all = j->nbatch * tensors + j->nworkspaces;
    size_t *order = mem_alloc(all * sizeof *order);
    struct sending s;
    uint64_t key;
    bool ok =
        rng_secret(&key) || err_set(err, ERR_ENV, "no random numbers from the operating system");
    if (ok)
        rng_order(rng_stream(key, S("buffers")), all, order);
    sending_start(&s, &j->memory);
    for (size_t i = 0; ok && i < all; i++) {
        size_t k = order[i], workspace = k - j->nbatch * tensors;
        ok = sending_add(&s,
                         k < j->nbatch * tensors ? &j->batch[k / tensors]->tensor[k % tensors]
                                                 : &j->workspace[workspace],
                         err);
    }
    mem_free(order);
    return sending_end(&s, ok, err);
}

static struct wire_memory memory_of(const struct gpu_case *c, struct arena *a) {
    size_t n = c->inst->task->ntensors;
    struct wire_memory m = {arena_array(a, struct wire_span, n), n};
    for (size_t i = 0; i < n; i++) {
        if (!c->tensor[i].memory.address)
            continue;
        m.tensors[i] = shared_span(&c->tensor[i]);
        m.tensors[i].writable = tensor_is_output(&c->inst->task->tensors[i]);
    }
    return m;
}

/* ---- messages ---- */

static void forget_task(struct gpu_judge *j) {
    j->nbatch = 0;
    while (j->ncases)
        drop_case(j, j->ncases - 1);
    oracle_free(j->oracle);
    j->oracle = NULL;
    if (j->module)
        j->cuda.module_unload(j->module);
    j->module = NULL;
    arena_free(j->task_arena);
    j->task_arena = NULL;
    j->task = NULL;
    mem_free(j->scaled_dims);
    j->scaled_dims = NULL;
}

static bool take_task(void *ctx, const struct wire_task *m, str cubins, struct err *err) {
    struct gpu_judge *j = ctx;
    if (!m->task.n)
        return true; /* nothing is to be judged */
    if (!m->oracle || m->oracle > cubins.n)
        return err_set(err, ERR_ENV, "bad message: task without a reference");
    if (j->task && str_eq(j->task->text, m->task))
        return true;
    forget_task(j);
    j->task_arena = arena_new(64u << 20);
    return task_parse(arena_str(j->task_arena, m->file), arena_str(j->task_arena, m->task),
                      j->task_arena, &j->task, err) &&
           cuda_try(&j->cuda, cuda_module_load(&j->cuda, str_cut(cubins, 0, m->oracle), &j->module),
                    err, "load the reference") &&
           (j->oracle = oracle_new(j->task, &j->engine, err));
}

static bool prepare_case(struct gpu_judge *j, const struct wire_prepare *m,
                         const struct job_case *one, struct err *err) {
    struct gpu_case like = {.data = one->data, .seed = one->seed, .params = judge_params(one)};
    for (size_t i = 0; i < j->task->ntensors; i++) {
        uint32_t a = i < m->nalign ? m->align[i] : PLAN_ALIGN;
        like.align[i] = a >= PLAN_ALIGN && a <= PLAN_MAX_ALIGN ? a : PLAN_ALIGN;
    }
    struct gpu_case *c = find_case(j, &like, m, err);
    if (!c)
        return false;
    c->used = ++j->clock;
    j->batch[j->nbatch++] = c; /* from here on it is not dropped for want of memory */
    return poison_case(j, c, err);
}

static bool prepare(void *ctx, const struct wire_prepare *m, struct arena *a,
                    struct wire_cases *out, struct err *err) {
    struct gpu_judge *j = ctx;
    j->memory.device = m->device;
    j->nbatch = j->nworkspaces = 0;
    j->full = false;
    j->remade = m->remade || m->sampled;
    j->sampled = m->sampled;
    if (!j->oracle || !m->ncases || m->ncases > JUDGE_MAX_BATCH)
        return err_set(err, ERR_ENV, "bad message: prepare");
    for (size_t i = 0; i < m->ncases; i++)
        if (!prepare_case(j, m, &m->cases[i], err))
            return false;
    if (!make_workspaces(j, m, err)) {
        if (!j->full)
            return false;
        fields_set(out, verdict, VERDICT_OUT_OF_MEMORY); /* its asking for it is the candidate's */
        out->why = arena_str(a, str_view(err->text));
        return true;
    }
    if (!wait_done(j, err) || !send_buffers(j, err))
        return false;
    out->cases = arena_array(a, struct wire_memory, j->nbatch);
    for (; out->ncases < j->nbatch; out->ncases++)
        out->cases[out->ncases] = memory_of(j->batch[out->ncases], a);
    out->workspaces = arena_array(a, struct wire_span, j->nworkspaces);
    for (; out->nworkspaces < j->nworkspaces; out->nworkspaces++)
        out->workspaces[out->nworkspaces] = shared_span(&j->workspace[out->nworkspaces]);
    return true;
}

/* ---- after a run ---- */

static bool rule_canary(struct ruling *r, str name, size_t region, int64_t first) {
    if (region % SIDES)
        return rule(r, VERDICT_OUT_OF_BOUNDS, "wrote %lld bytes past the end of %.*s",
                    (long long)first, STR_ARG(name));
    return rule(r, VERDICT_OUT_OF_BOUNDS, "wrote before the start of %.*s", STR_ARG(name));
}

/* The tensor that a region of case_regions belongs to. */
static str region_tensor(const struct gpu_case *c, size_t region) {
    size_t n = 0;
    for (size_t i = 0; i < c->inst->task->ntensors; i++)
        if (c->tensor[i].memory.address && n++ == region / SIDES)
            return c->inst->task->tensors[i].name;
    return S("?");
}

static bool rule_output(const struct gpu_case *c, const struct oracle_output *o, struct ruling *r) {
    if (o->unwritten.count &&
        !rule_unwritten(r, c->inst, o->tensor, o->unwritten.count, o->unwritten.first))
        return false;
    return !o->untrue.count || rule_no_bool(r, c->inst, o->tensor, o->untrue.first, o->untrue_byte);
}

static bool rule_case(struct gpu_case *c, const struct oracle_result *seen, struct ruling *r) {
    const struct task *t = c->inst->task;
    if (seen->canary.count)
        return rule_canary(r, region_tensor(c, seen->canary.where), seen->canary.where,
                           seen->canary.first);
    if (seen->input.count)
        return rule(r, VERDICT_MODIFIED_INPUT, "changed its input %.*s",
                    STR_ARG(t->tensors[seen->input.where].name));
    if (memcmp(c->digest, seen->digest, sizeof c->digest) != 0)
        return rule(r, VERDICT_MODIFIED_INPUT, "changed an input");
    c->lent = false;
    for (size_t i = 0; i < seen->noutputs; i++)
        if (!rule_output(c, &seen->outputs[i], r))
            return false;
    for (size_t i = 0; i < seen->noutputs; i++)
        if (!rule_values(r, c->inst, seen->outputs[i].tensor, &seen->outputs[i].comparison))
            return false;
    return true;
}

static bool look(struct gpu_judge *j, struct oracle_result *seen, struct err *err) {
    struct oracle_region regions[SIDES * TASK_MAX_TENSORS];
    for (size_t i = 0; i < j->nbatch; i++) {
        struct gpu_case *c = j->batch[i];
        if (!oracle_queue_canaries(j->oracle, regions, case_regions(c, regions), i, err) ||
            !oracle_queue_digests(j->oracle, regions, input_regions(c, regions), i, err) ||
            (!j->sampled && !oracle_queue_compare(c->oracle, c->key, i, err)))
            return false;
    }
    return (!j->nworkspaces ||
            oracle_queue_canaries(j->oracle, regions, workspace_regions(j, regions), j->nbatch,
                                  err)) &&
           oracle_collect(j->oracle, seen, j->nbatch + 1, err);
}

/* Which input it was, by making all of them again. */
static bool look_closer(struct gpu_judge *j, struct gpu_case *c, struct oracle_result *seen,
                        struct err *err) {
    struct oracle_result again = {0};
    if (memcmp(c->digest, seen->digest, sizeof c->digest) == 0)
        return true;
    if (!oracle_queue_inputs(c->oracle, 0, err) || !oracle_collect(j->oracle, &again, 1, err))
        return false;
    seen->input = again.input;
    return true;
}

struct fetched {
    struct gpu_judge *j;
    const struct gpu_case *c;
};

static bool fetch(void *ctx, size_t tensor, int64_t first, size_t count, void *dst,
                  struct err *err) {
    const struct fetched *f = ctx;
    size_t bytes = dtype_info(f->c->inst->task->tensors[tensor].dtype)->bytes;
    return engine_fetch(f->j, dst, shared_content(&f->c->tensor[tensor]) + (uint64_t)first * bytes,
                        count * bytes, err);
}

static bool rule_tiles(struct gpu_judge *j, const struct gpu_case *c, struct ruling *r,
                       struct err *err) {
    struct fetched f = {j, c};
    struct tiles_case t = {.in = c->inst,
                           .scale = &c->scale,
                           .data = c->data,
                           .seed = c->seed,
                           .poison = c->key,
                           .threads = 1};
    if (!j->sampled || r->say.verdict != VERDICT_ACCEPTED)
        return true;
    if (!rng_secret(&t.draw))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    return tiles_judge(&t, fetch, &f, r, err);
}

static bool compare(void *ctx, struct ruling *r, struct err *err) {
    struct gpu_judge *j = ctx;
    struct oracle_result seen[JUDGE_MAX_BATCH + 1] = {0};
    if (!j->nbatch)
        return err_set(err, ERR_ENV, "bad message: compare before prepare");
    if (!look(j, seen, err))
        return false;
    for (size_t i = 0; i < j->nbatch && r->say.verdict == VERDICT_ACCEPTED; i++) {
        ruling_next(r);
        if (!rule_case(j->batch[i], &seen[i], r) && r->say.verdict == VERDICT_MODIFIED_INPUT) {
            if (!look_closer(j, j->batch[i], &seen[i], err))
                return false;
            rule_case(j->batch[i], &seen[i], r);
        }
        if (!rule_tiles(j, j->batch[i], r, err))
            return false;
    }
    const struct oracle_seen *w = &seen[j->nbatch].canary;
    if (r->say.verdict == VERDICT_ACCEPTED && w->count)
        rule_canary(r, S("a workspace"), w->where, w->first);
    j->nbatch = 0;
    return true;
}

/* Tensors of the last batch as they are, one after the other. */
static bool dump(void *ctx, struct buf *blob, struct err *err) {
    struct gpu_judge *j = ctx;
    bool ok = true;
    for (size_t i = 0; ok && i < j->nbatch; i++) {
        const struct gpu_case *c = j->batch[i];
        for (size_t k = 0; ok && k < c->inst->task->ntensors; k++) {
            size_t bytes = c->tensor[k].memory.address ? c->tensor[k].bytes : 0;
            char *copy = mem_alloc(bytes + 1);
            ok = !bytes || engine_fetch(j, copy, shared_content(&c->tensor[k]), bytes, err);
            buf_puts(blob, (str){copy, bytes});
            mem_free(copy);
        }
    }
    return ok;
}

bool gpu_judge_start(int ordinal, unsigned threads, struct judge_ops *out, struct err *err) {
    struct gpu_judge *j = mem_alloc(sizeof *j);
    struct sandbox_report report;
    *out = (struct judge_ops){j, take_task, prepare, compare, dump, NULL};
    j->engine = (struct engine){
        j,           engine_alloc, engine_free,    engine_launch,        engine_fetch,
        engine_send, engine_zero,  MEMORY_THREADS, threads ? threads : 1};
    if (!role_sandbox(true, &report, err) || !cuda_open(&j->cuda, ordinal, err) ||
        !vmm_granularity(&j->cuda, &j->memory.granule, err))
        return err_wrap(err, "judge");
    j->memory.cuda = &j->cuda;
    j->memory.make_room = make_room;
    j->memory.ctx = j;
    j->room = (size_t)(MEMORY_SHARE * (double)cuda_free_bytes(&j->cuda));
    return role_hello(ROLE_FD, "judge", &report, NULL, err);
}
