/* The judge beside the simulator: memory is the host's, the reference spec/reference.h's.
 *
 * Cases are kept and used for every candidate, within a ceiling. Where only one will come, a case
 * is made in the memory of the one before it of its shape: fresh pages cost more than data. */
#include "base/parallel.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/role.h"
#include "eval/judge_private.h"
#include "eval/poison.h"
#include "eval/tiles.h"
#include "spec/data.h"
#include "spec/part.h"
#include "spec/reference.h"
#include "spec/value.h"
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void ruling_init(struct ruling *r, struct arena *mem) {
    *r = (struct ruling){.say = {.verdict = VERDICT_ACCEPTED,
                                 .worst = arena_array(mem, double, RULING_MOST),
                                 .rms = arena_array(mem, double, RULING_MOST)},
                         .mem = mem};
}

static void close_case(struct ruling *r) {
    if (!r->cases || r->say.nworst == RULING_MOST)
        return;
    r->say.worst[r->say.nworst++] = r->worst;
    r->say.rms[r->say.nrms++] = r->rms;
}

void ruling_next(struct ruling *r) {
    close_case(r);
    r->worst = r->rms = 0;
    r->cases++;
}

void ruling_forgive(struct ruling *r) {
    r->say.verdict = VERDICT_ACCEPTED;
    r->say.nmismatches = 0;
    r->why[0] = 0;
}

static void ruling_end(struct ruling *r) {
    close_case(r);
    r->say.why = str_view(r->why);
    r->say.at = r->cases ? r->cases - 1 : 0;
}

bool rule(struct ruling *r, enum verdict v, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, args);
    va_end(args);
    r->say.verdict = v;
    return false;
}

bool rule_unwritten(struct ruling *r, const struct inst *in, size_t tensor, uint64_t n,
                    int64_t first) {
    str name = element_name(in, tensor, first, r->mem);
    return rule(r, VERDICT_UNWRITTEN, "%llu of %lld elements were never written, %.*s the first",
                (unsigned long long)n, (long long)in->tensors[tensor].count, STR_ARG(name));
}

bool rule_no_bool(struct ruling *r, const struct inst *in, size_t tensor, int64_t at,
                  unsigned byte) {
    str name = element_name(in, tensor, at, r->mem);
    return rule(r, VERDICT_WRONG, "%.*s is the byte %u, a bool is 0 or 1", STR_ARG(name), byte);
}

static void list_mismatches(struct ruling *r, const struct inst *in, size_t tensor,
                            const struct comparison *cmp) {
    r->say.mismatches = arena_array(r->mem, struct wire_mismatch, cmp->nfirst);
    r->say.nmismatches = cmp->nfirst;
    for (size_t i = 0; i < cmp->nfirst; i++)
        r->say.mismatches[i] =
            (struct wire_mismatch){element_name(in, tensor, cmp->first[i].index, r->mem),
                                   cmp->first[i].expected, cmp->first[i].got};
}

static str allowance(const struct comparison *cmp, struct arena *a) {
    if (isinf(cmp->worst))
        return S("no rounding is allowed there");
    return arena_printf(a, "the worst error is %.3g times what the accuracy class allows",
                        cmp->worst / cmp->worst_limit);
}

/* The element that stands for the others: one of the kind that the verdict is about, if such a one
 * was kept. */
static const struct mismatch *example(const struct comparison *cmp, enum verdict v) {
    for (size_t i = 0; v == VERDICT_NONFINITE && i < cmp->nfirst; i++)
        if (!isfinite(cmp->first[i].got) || !isfinite(cmp->first[i].expected))
            return &cmp->first[i];
    return &cmp->first[0];
}

/* Which of the two it is, for the element that is shown; empty where that one is finite on both
 * sides, as none of the others was kept. */
static const char *what_differs(const struct mismatch *m) {
    if (isnan(m->got))
        return isinf(m->expected) ? ": NaN where infinity is expected"
                                  : ": NaN where a number is expected";
    if (isnan(m->expected))
        return isinf(m->got) ? ": infinity where NaN is expected"
                             : ": a number where NaN is expected";
    if (isinf(m->got))
        return isinf(m->expected) ? ": infinity of the wrong sign"
                                  : ": infinity where a number is expected";
    return isinf(m->expected) ? ": a number where infinity is expected" : "";
}

/* A sign of NaN means nothing. */
static double without_sign(double v) {
    return isnan(v) ? NAN : v;
}

static void describe(struct ruling *r, const struct inst *in, size_t tensor,
                     const struct comparison *cmp) {
    struct arena *a = r->mem;
    enum verdict v = r->say.verdict;
    const struct mismatch *shown = example(cmp, v);
    long long count = (long long)in->tensors[tensor].count;
    str name = cmp->nfirst ? element_name(in, tensor, shown->index, a) : S("?");
    int digits = dtype_digits(in->task->tensors[tensor].dtype);
    if (v == VERDICT_NONFINITE)
        rule(r, v,
             "%llu of %lld elements are NaN or infinite where they should not be, or the "
             "reverse; %.*s is %g, expected %g%s",
             (unsigned long long)cmp->nonfinite, count, STR_ARG(name), without_sign(shown->got),
             without_sign(shown->expected), what_differs(shown));
    else if (cmp->wrong)
        rule(r, v, "%llu of %lld elements are off; %.*s is %.*g, expected %.*g; %.*s",
             (unsigned long long)cmp->wrong, count, STR_ARG(name), digits, without_sign(shown->got),
             digits, without_sign(shown->expected), STR_ARG(allowance(cmp, a)));
    else
        rule(r, v,
             "no element is far off, but all together are: the RMS error is %.3g times what the "
             "accuracy class allows",
             cmp->rms / cmp->rms_limit);
}

bool rule_values(struct ruling *r, const struct inst *in, size_t tensor,
                 const struct comparison *cmp) {
    r->worst = cmp->worst > r->worst ? cmp->worst : r->worst;
    r->rms = cmp->rms > r->rms ? cmp->rms : r->rms;
    if (cmp->pass)
        return true;
    r->say.verdict = cmp->nonfinite     ? VERDICT_NONFINITE
                     : cmp->pass_looser ? VERDICT_INACCURATE
                                        : VERDICT_WRONG;
    list_mismatches(r, in, tensor, cmp);
    describe(r, in, tensor, cmp);
    return false;
}

#define CANARY    4096u
#define MAX_CASES 512
#define MAX_BYTES (6ull << 30) /* of all cases together; the oldest go */

/* One (shape, data): the tensors lie in one piece of shared memory,
 *     canary | tensor, padded with canary to a page | canary | tensor | … */
struct test_case {
    struct arena *arena;
    struct inst *inst;
    enum data_kind data;
    bool spoilt;           /* its data could not be made */
    uint64_t seed, params; /* params: the seed of parameters */
    uint64_t used;         /* clock of the last use */
    int64_t id;            /* of its memory, for the device */
    int64_t sent;          /* to which device process; 0: none */
    uint64_t key;          /* of the current poison and canaries: secret, new for every run */
    int fd;
    char *map; /* shared with the device */
    size_t size;
    char *inputs; /* private copy of the map's inputs, same offsets */
    size_t offset[TASK_MAX_TENSORS];
    struct reference *refs; /* none where tiles of its outputs are compared */
    size_t nrefs, bytes;
    bool sampled; /* tiles are */
    struct data_scale scale;
};

struct judge {
    unsigned threads;
    struct arena *task_arena;
    struct task *task;
    bool once; /* a single candidate comes */
    struct test_case *cases[MAX_CASES];
    size_t ncases;
    size_t bytes;
    uint64_t clock;
    int64_t next_id;
    bool reset_sent;
    int64_t *dropped; /* ids of memory that is no more, for the next message to the device */
    size_t ndropped, room_dropped;
    struct test_case *batch[JUDGE_MAX_BATCH];
    size_t nbatch; /* 0: none prepared */
};

static void case_free(struct test_case *c) {
    if (!c)
        return;
    reference_release(c->refs, c->nrefs);
    if (c->map)
        munmap(c->map, c->size);
    if (c->inputs)
        munmap(c->inputs, c->size);
    if (c->fd >= 0)
        close(c->fd);
    arena_free(c->arena);
    mem_free(c);
}

static void drop_cases(struct judge *j) {
    for (size_t i = 0; i < j->ncases; i++)
        case_free(j->cases[i]);
    j->ncases = j->bytes = 0;
    j->nbatch = 0;
}

static void drop_oldest(struct judge *j) {
    size_t old = 0;
    for (size_t i = 1; i < j->ncases; i++)
        if (j->cases[i]->used < j->cases[old]->used)
            old = i;
    j->dropped = mem_grow(j->dropped, &j->room_dropped, j->ndropped + 1, sizeof *j->dropped);
    j->dropped[j->ndropped++] = j->cases[old]->id;
    j->bytes -= j->cases[old]->bytes;
    case_free(j->cases[old]);
    j->cases[old] = j->cases[--j->ncases];
}

static size_t pages(size_t bytes) {
    return (bytes + CANARY - 1) / CANARY * CANARY;
}

/* In an order that nobody knows. */
static bool map_case(struct test_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    size_t at = CANARY, order[TASK_MAX_TENSORS];
    uint64_t key;
    if (!rng_secret(&key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    rng_order(rng_stream(key, S("tensors")), t->ntensors, order);
    for (size_t k = 0; k < t->ntensors; k++) {
        size_t i = order[k];
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        c->offset[i] = at;
        at += pages(c->inst->tensors[i].bytes) + CANARY;
    }
    c->size = at;
    c->fd = memfd_create("case", MFD_CLOEXEC);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)at) < 0)
        return err_errno(err, ERR_ENV, "memory for a case of %zu bytes", at);
    c->map = mmap(NULL, at, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    c->inputs =
        mmap(NULL, at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->map == MAP_FAILED || c->inputs == MAP_FAILED) {
        c->map = c->map == MAP_FAILED ? NULL : c->map;
        c->inputs = c->inputs == MAP_FAILED ? NULL : c->inputs;
        return err_errno(err, ERR_ENV, "map a case of %zu bytes", at);
    }
    return true;
}

static bool fill_case(struct judge *j, struct test_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    const void *inputs[TASK_MAX_TENSORS] = {0};
    /* By the seed of the parameters: two cases that have it in common have the same ones. */
    if (!data_scale_find_for(c->inst, c->data, c->params, j->threads, &c->scale, err))
        return false;
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        uint64_t seed = t->tensors[i].role == TENSOR_PARAM ? c->params : c->seed;
        data_fill_all(c->inst, &c->scale, i, c->data, seed, j->threads, c->inputs + c->offset[i]);
        parallel_copy(j->threads, c->map + c->offset[i], c->inputs + c->offset[i],
                      c->inst->tensors[i].bytes);
        inputs[i] = c->inputs + c->offset[i];
    }
    if (!c->sampled && !reference_eval_again(c->inst, inputs, j->threads, &c->refs, &c->nrefs, err))
        return false;
    c->bytes = 2 * c->size;
    for (size_t i = 0; i < c->nrefs; i++)
        c->bytes += 16 * c->refs[i].count;
    return true;
}

static struct test_case *case_new(struct judge *j, const struct wire_prepare *m,
                                  const struct job_case *like, struct err *err) {
    struct test_case *c = mem_alloc(sizeof *c);
    c->fd = -1;
    c->id = ++j->next_id;
    c->arena = arena_new(64u << 20);
    c->data = like->data;
    c->seed = like->seed;
    c->params = judge_params(like);
    c->sampled = m->sampled;
    if (task_bind(j->task, m->set, m->nset, c->arena, &c->inst, err) && map_case(c, err) &&
        fill_case(j, c, err))
        return c;
    case_free(c);
    return NULL;
}

/* A case of the same shape that nobody needs any more: none of this batch. */
static struct test_case *find_spent(struct judge *j, const struct wire_prepare *m) {
    for (size_t i = 0; i < j->ncases && j->once && !j->nbatch; i++)
        if (j->cases[i]->sampled == m->sampled && set_is(m->set, m->nset, j->cases[i]->inst))
            return j->cases[i];
    return NULL;
}

/* False: its data are as they may be, and it is never found again. */
static bool remake_case(struct judge *j, struct test_case *c, const struct job_case *like,
                        struct err *err) {
    c->data = like->data;
    c->seed = like->seed;
    c->params = judge_params(like);
    bool made = fill_case(j, c, err);
    c->spoilt = !made;
    return made;
}

static struct test_case *find_case(struct judge *j, const struct wire_prepare *m,
                                   const struct job_case *like, struct err *err) {
    for (size_t i = 0; i < j->ncases; i++) {
        struct test_case *c = j->cases[i];
        if (c->data == like->data && c->seed == like->seed && c->params == judge_params(like) &&
            !c->spoilt && c->sampled == m->sampled && set_is(m->set, m->nset, c->inst))
            return c;
    }
    struct test_case *c = find_spent(j, m);
    if (c)
        return remake_case(j, c, like, err) ? c : NULL;
    c = case_new(j, m, like, err);
    if (!c)
        return NULL;
    while (j->ncases > j->nbatch && (j->ncases == MAX_CASES || j->bytes + c->bytes > MAX_BYTES))
        drop_oldest(j); /* never one of this batch: those were used last */
    j->cases[j->ncases++] = c;
    j->bytes += c->bytes;
    return c;
}

/* Canaries before the first tensor and from each tensor's end to the next one's start. */
static size_t canary_end(const struct test_case *c, size_t tensor) {
    const struct bound_tensor *b = &c->inst->tensors[tensor];
    return c->offset[tensor] + pages(b->bytes) + CANARY;
}

static size_t canary_start(const struct test_case *c, size_t tensor) {
    return c->offset[tensor] + c->inst->tensors[tensor].bytes;
}

static bool poison_case(const struct judge *j, struct test_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    if (!rng_secret(&c->key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    canary_fill(c->key, c->map, CANARY);
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        size_t start = canary_start(c, i);
        canary_fill(c->key + 1 + i, c->map + start, canary_end(c, i) - start);
        if (t->tensors[i].role == TENSOR_OUT)
            poison_fill(t->tensors[i].dtype, c->key, (size_t)c->inst->tensors[i].count, j->threads,
                        c->map + c->offset[i]);
        else if (tensor_is_output(&t->tensors[i])) /* as it was before the run before */
            memcpy(c->map + c->offset[i], c->inputs + c->offset[i], c->inst->tensors[i].bytes);
    }
    return true;
}

static bool take_task(void *ctx, const struct wire_task *m, str cubins, struct err *err) {
    struct judge *j = ctx;
    (void)cubins;
    if (!m->task.n)
        return true; /* nothing is to be judged */
    j->once = m->once;
    if (j->task && str_eq(j->task->text, m->task))
        return true;
    drop_cases(j);
    arena_free(j->task_arena);
    j->task_arena = arena_new(64u << 20);
    j->task = NULL;
    return task_parse(arena_str(j->task_arena, m->file), arena_str(j->task_arena, m->task),
                      j->task_arena, &j->task, err);
}

static struct wire_memory memory_of(const struct test_case *c, struct arena *a) {
    size_t n = c->inst->task->ntensors;
    struct wire_memory m = {arena_array(a, struct wire_span, n), n};
    for (size_t i = 0; i < n; i++) {
        const struct tensor *t = &c->inst->task->tensors[i];
        if (tensor_has_memory(t))
            m.tensors[i] = (struct wire_span){c->id, c->offset[i], c->inst->tensors[i].bytes,
                                              tensor_is_output(t)};
    }
    return m;
}

/* What the device process has not got yet. */
static bool send_buffers(struct judge *j, int64_t device, struct err *err) {
    struct wire_buffer buffers[JUDGE_MAX_BATCH];
    struct wire_buffers m = {.reset = !j->reset_sent, /* of one before this nothing is left */
                             .buffers = buffers,
                             .drop = j->dropped,
                             .ndrop = j->ndropped};
    int fds[JUDGE_MAX_BATCH];
    for (size_t i = 0; i < j->nbatch; i++) {
        struct test_case *c = j->batch[i];
        if (c->sent == device)
            continue;
        buffers[m.nbuffers] = (struct wire_buffer){c->id, c->size};
        fds[m.nbuffers++] = c->fd;
        c->sent = device;
    }
    if (!m.nbuffers && !m.ndrop)
        return true;
    json *head = fields_to_json(&wire_buffers_fields, &m);
    bool ok = frame_write(ROLE_FD, WIRE_BUFFERS, head, (str){0}, fds, m.nbuffers, err);
    json_free(head);
    j->reset_sent = true;
    j->ndropped = 0;
    return ok;
}

static bool prepare_case(struct judge *j, const struct wire_prepare *m, const struct job_case *like,
                         struct err *err) {
    struct test_case *c = find_case(j, m, like, err);
    if (!c || !poison_case(j, c, err))
        return false;
    c->used = ++j->clock;
    j->batch[j->nbatch++] = c;
    return true;
}

static bool prepare(void *ctx, const struct wire_prepare *m, struct arena *a,
                    struct wire_cases *out, struct err *err) {
    struct judge *j = ctx;
    j->nbatch = 0;
    if (!j->task || !m->ncases || m->ncases > JUDGE_MAX_BATCH)
        return err_set(err, ERR_ENV, "bad message: prepare");
    for (size_t i = 0; i < m->ncases; i++)
        if (!prepare_case(j, m, &m->cases[i], err))
            return false;
    if (!send_buffers(j, m->device, err))
        return false;
    out->cases = arena_array(a, struct wire_memory, j->nbatch);
    for (; out->ncases < j->nbatch; out->ncases++)
        out->cases[out->ncases] = memory_of(j->batch[out->ncases], a);
    return true;
}

/* ---- after a run ---- */

static bool check_canaries(const struct test_case *c, struct ruling *r) {
    const struct task *t = c->inst->task;
    size_t first;
    if (!canary_holds(c->key, c->map, CANARY, &first))
        return rule(r, VERDICT_OUT_OF_BOUNDS, "wrote before its first buffer");
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t start = tensor_has_memory(&t->tensors[i]) ? canary_start(c, i) : 0;
        if (start &&
            !canary_holds(c->key + 1 + i, c->map + start, canary_end(c, i) - start, &first))
            return rule(r, VERDICT_OUT_OF_BOUNDS, "wrote %zu bytes past the end of %.*s", first,
                        STR_ARG(t->tensors[i].name));
    }
    return true;
}

/* All of them, so that the next candidate finds them as they were; the first is named. */
static bool check_inputs(const struct judge *j, const struct test_case *c, struct ruling *r) {
    const struct task *t = c->inst->task;
    bool ok = true;
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t bytes = c->inst->tensors[i].bytes;
        if (!tensor_is_input(&t->tensors[i]) || tensor_is_output(&t->tensors[i]) ||
            parallel_equal(j->threads, c->map + c->offset[i], c->inputs + c->offset[i], bytes))
            continue;
        memcpy(c->map + c->offset[i], c->inputs + c->offset[i], bytes);
        ok = ok &&
             rule(r, VERDICT_MODIFIED_INPUT, "changed its input %.*s", STR_ARG(t->tensors[i].name));
    }
    return ok;
}

static bool check_written(const struct judge *j, const struct test_case *c,
                          const struct reference *ref, struct ruling *r) {
    size_t first = 0;
    if (c->inst->task->tensors[ref->tensor].role != TENSOR_OUT)
        return true; /* written in place: it never held poison */
    uint64_t n = poison_count(c->inst->task->tensors[ref->tensor].dtype, c->key,
                              c->map + c->offset[ref->tensor], ref->value, ref->estimate,
                              accuracy_limits(c->inst->task->accuracy).worst, ref->count,
                              j->threads, &first);
    return !n || rule_unwritten(r, c->inst, ref->tensor, n, (int64_t)first);
}

/* A byte that is neither 0 nor 1 is no truth value, though C would take it for one. */
static bool check_bools(const struct test_case *c, const struct reference *ref, struct ruling *r) {
    const uint8_t *got = (const uint8_t *)c->map + c->offset[ref->tensor];
    if (c->inst->task->tensors[ref->tensor].dtype != DTYPE_BOOL)
        return true;
    for (size_t i = 0; i < ref->count; i++)
        if (got[i] > 1)
            return rule_no_bool(r, c->inst, ref->tensor, (int64_t)i, got[i]);
    return true;
}

static bool check_values(const struct judge *j, const struct test_case *c,
                         const struct reference *ref, struct ruling *r) {
    struct comparison cmp;
    reference_compare(c->inst, ref, c->map + c->offset[ref->tensor], j->threads, &cmp);
    return rule_values(r, c->inst, ref->tensor, &cmp);
}

static void rule_on(const struct judge *j, const struct test_case *c, struct ruling *r) {
    bool ok = check_canaries(c, r) && check_inputs(j, c, r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_written(j, c, &c->refs[i], r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_bools(c, &c->refs[i], r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_values(j, c, &c->refs[i], r);
}

static bool fetch(void *ctx, size_t tensor, int64_t first, size_t count, void *dst,
                  struct err *err) {
    const struct test_case *c = ctx;
    size_t bytes = dtype_info(c->inst->task->tensors[tensor].dtype)->bytes;
    (void)err;
    memcpy(dst, c->map + c->offset[tensor] + (size_t)first * bytes, count * bytes);
    return true;
}

static bool rule_on_tiles(const struct judge *j, struct test_case *c, struct ruling *r,
                          struct err *err) {
    struct tiles_case t = {.in = c->inst,
                           .scale = &c->scale,
                           .data = c->data,
                           .seed = c->seed,
                           .poison = c->key,
                           .threads = j->threads};
    if (!rng_secret(&t.draw))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    return r->say.verdict != VERDICT_ACCEPTED || tiles_judge(&t, fetch, c, r, err);
}

static bool compare(void *ctx, struct ruling *r, struct err *err) {
    struct judge *j = ctx;
    for (size_t i = 0; i < j->nbatch && r->say.verdict == VERDICT_ACCEPTED; i++) {
        ruling_next(r);
        rule_on(j, j->batch[i], r);
        if (j->batch[i]->sampled && !rule_on_tiles(j, j->batch[i], r, err))
            return false;
    }
    bool any = j->nbatch;
    j->nbatch = 0;
    return any || err_set(err, ERR_ENV, "bad message: compare before prepare");
}

/* Tensors of the last batch as they are, one after the other. */
static bool dump(void *ctx, struct buf *blob, struct err *err) {
    struct judge *j = ctx;
    (void)err;
    for (size_t i = 0; i < j->nbatch; i++) {
        const struct test_case *c = j->batch[i];
        for (size_t k = 0; k < c->inst->task->ntensors; k++)
            if (tensor_has_memory(&c->inst->task->tensors[k]))
                buf_puts(blob, (str){c->map + c->offset[k], c->inst->tensors[k].bytes});
    }
    return true;
}

/* ---- parts of a shape that is not run whole ---- */

static bool part_of(const struct inst *in, const struct wire_part *m, struct part *out) {
    *out = (struct part){.tensor = m->tensor};
    if (m->tensor >= in->task->ntensors)
        return false;
    const struct tensor *t = &in->task->tensors[m->tensor];
    if (!tensor_is_output(t) || m->nfrom != t->rank || m->ncount != t->rank)
        return false;
    for (size_t k = 0; k < t->rank; k++) {
        out->lo[k] = m->from[k];
        out->n[k] = m->count[k];
        if (out->n[k] < 1 || out->n[k] > in->tensors[m->tensor].extent[k] - out->lo[k])
            return false;
    }
    return true;
}

static size_t part_elements(const struct inst *in, const struct part *p) {
    size_t n = 1;
    for (size_t k = 0; k < in->task->tensors[p->tensor].rank; k++)
        n *= (size_t)p->n[k];
    return n;
}

struct judging {
    struct judge *j;
    const struct wire_parts *asked;
    const struct inst *in;
    str rest; /* contents of the parts to come */
    struct ruling *ruling;
};

static bool judge_part(struct judging *g, const struct wire_part *part, struct err *err) {
    struct data_scale scale = data_scale_stated(); /* as the device has it */
    struct wire_judged *say = &g->ruling->say;
    enum data_kind data = g->asked->data;
    struct reference ref;
    struct comparison cmp;
    struct part p;
    if (!part_of(g->in, part, &p))
        return err_set(err, ERR_ENV, "bad message: a part");
    size_t n = part_elements(g->in, &p);
    size_t bytes = n * dtype_info(g->in->task->tensors[p.tensor].dtype)->bytes;
    if (bytes > g->rest.n)
        return err_set(err, ERR_ENV, "bad message: the contents of a part");
    const char *got = g->rest.p;
    g->rest = str_from(g->rest, bytes);
    if (!(part_cost(g->in, &p) <= g->asked->most)) {
        say->skipped++;
        return true;
    }
    if (!part_reference(g->in, &scale, data, g->asked->seed, &p, g->j->threads, &ref, err))
        return false;
    part_compare(g->in, &p, &ref, got, &cmp);
    say->judged += (int64_t)n;
    ruling_next(g->ruling);
    rule_values(g->ruling, g->in, p.tensor, &cmp);
    /* In long sums of equal terms rounding errors all go one way; what a class allows is reckoned
     * for errors that go either way. */
    if (data == DATA_MIXED && say->verdict == VERDICT_INACCURATE)
        ruling_forgive(g->ruling);
    part_release(&ref);
    return true;
}

static bool judge_parts(void *ctx, const struct wire_parts *m, str contents, struct ruling *r,
                        struct err *err) {
    struct judging g = {.j = ctx, .asked = m, .rest = contents, .ruling = r};
    struct inst *in = NULL;
    r->say.has_judged = r->say.has_skipped = true;
    if (!g.j->task)
        return err_set(err, ERR_ENV, "bad message: parts");
    bool ok = task_bind(g.j->task, m->set, m->nset, r->mem, &in, err);
    g.in = in;
    for (size_t i = 0; ok && i < m->nparts && r->say.verdict == VERDICT_ACCEPTED; i++)
        ok = judge_part(&g, &m->parts[i], err);
    return ok;
}

static bool cpu_judge_start(unsigned threads, struct judge_ops *out, struct err *err) {
    struct judge *j = mem_alloc(sizeof *j);
    j->threads = threads;
    mem_keep_freed();
    *out = (struct judge_ops){j, take_task, prepare, compare, dump, judge_parts};
    return role_enter(ROLE_FD, "judge", err);
}

/* Each of these reads the message, has it answered and sends the answer; false: not answered. */

static bool serve_prepare(const struct judge_ops *j, const struct frame *f, struct arena *a,
                          struct err *err) {
    struct wire_prepare m;
    struct wire_cases out = {0};
    return wire_read(&wire_prepare_fields, f->head, a, &m, err) &&
           j->prepare(j->ctx, &m, a, &out, err) &&
           wire_write(ROLE_FD, WIRE_CASE, &wire_cases_fields, &out, (str){0}, err);
}

static bool serve_ruling(const struct judge_ops *j, const struct frame *f, struct arena *a,
                         struct err *err) {
    struct wire_parts m;
    struct ruling r;
    bool parts = f->type == WIRE_PARTS;
    ruling_init(&r, a);
    if (parts && !j->parts)
        return err_set(err, ERR_ENV, "bad message: parts");
    if (parts ? !wire_read(&wire_parts_fields, f->head, a, &m, err) ||
                    !j->parts(j->ctx, &m, f->blob, &r, err)
              : !j->compare(j->ctx, &r, err))
        return false;
    ruling_end(&r);
    return wire_write(ROLE_FD, WIRE_JUDGED, &wire_judged_fields, &r.say, (str){0}, err);
}

static bool serve_dump(const struct judge_ops *j, struct err *err) {
    struct buf blob;
    buf_init(&blob, 256u << 20);
    bool ok = j->dump(j->ctx, &blob, err) &&
              (!blob.failed || err_set(err, ERR_ENV, "a batch too large to dump")) &&
              frame_write(ROLE_FD, WIRE_DUMPED, NULL, buf_str(&blob), NULL, 0, err);
    buf_release(&blob);
    return ok;
}

static bool answer(const struct judge_ops *j, const struct frame *f, struct arena *a,
                   struct err *err) {
    switch (f->type) {
    case WIRE_PREPARE:
        return serve_prepare(j, f, a, err);
    case WIRE_COMPARE:
    case WIRE_PARTS:
        return serve_ruling(j, f, a, err);
    case WIRE_DUMP:
        return serve_dump(j, err);
    default:
        return err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
}

static bool complain_up(const struct err *why, struct err *err) {
    json *head = json_object();
    json_set_str(head, "why", str_view(why->text));
    bool sent = frame_write(ROLE_FD, WIRE_ERROR, head, (str){0}, NULL, 0, err);
    json_free(head);
    return sent;
}

static bool serve(const struct judge_ops *j, const struct frame *f, struct err *err) {
    struct arena *a = arena_new(256u << 20);
    struct wire_task task;
    struct err why = {0};
    bool ok = f->type == WIRE_TASK ? wire_read(&wire_task_fields, f->head, a, &task, err) &&
                                         j->task(j->ctx, &task, f->blob, err)
                                   : answer(j, f, a, &why) || complain_up(&why, err);
    arena_free(a);
    return ok;
}

/* Who started the judge has ended: an answer under way is no fault then. */
static bool is_alone(void) {
    struct pollfd p = {.fd = ROLE_FD, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

int judge_main(const struct device_name *d, unsigned threads) {
    struct judge_ops ops;
    struct err err = {0};
    struct frame f = {0};
    int got = -1;
    bool ok = d->kind == DEVICE_CUDA ? gpu_judge_start(d->ordinal, threads, &ops, &err)
                                     : cpu_judge_start(threads, &ops, &err);
    while (ok && (got = frame_read(ROLE_FD, 0, &f, &err)) > 0) {
        ok = serve(&ops, &f, &err);
        frame_release(&f);
        got = ok ? got : -1;
    }
    if (got < 0 && !is_alone())
        complain("cutepilot judge: %s\n", err.text);
    _exit(got < 0 ? 3 : 0); /* without exit handlers, which the sandbox may not allow their work */
}
