#include "eval/judge.h"

#include "base/frame.h"
#include "base/rng.h"
#include "device/job.h"
#include "device/role.h"
#include "device/wire.h"
#include "eval/poison.h"
#include "kernel/verdict.h"
#include "spec/data.h"
#include "spec/reference.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CANARY    4096u
#define MAX_CASES 512
#define MAX_BYTES (6ull << 30) /* of all cases together; the oldest go */

/* One (shape, data): the tensors lie in one piece of shared memory,
 *     canary | tensor, padded with canary to a page | canary | tensor | … */
struct test_case {
    struct arena *arena;
    struct inst *inst;
    enum data_kind data;
    uint64_t seed, used; /* used: clock of the last use */
    int fd;
    char *map; /* shared with the device */
    size_t size;
    char *inputs; /* private copy of the map's inputs, same offsets */
    size_t offset[TASK_MAX_TENSORS];
    struct reference *refs;
    size_t nrefs, bytes;
};

struct judge {
    unsigned threads;
    struct arena *task_arena;
    struct task *task;
    struct test_case *cases[MAX_CASES];
    size_t ncases;
    size_t bytes;
    uint64_t clock;
    struct test_case *current;
    uint64_t key; /* of the current poison and canaries: secret, new for every run */
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
    j->current = NULL;
}

static void drop_oldest(struct judge *j) {
    size_t old = 0;
    for (size_t i = 1; i < j->ncases; i++)
        if (j->cases[i]->used < j->cases[old]->used)
            old = i;
    j->bytes -= j->cases[old]->bytes;
    case_free(j->cases[old]);
    j->cases[old] = j->cases[--j->ncases];
}

static size_t pages(size_t bytes) {
    return (bytes + CANARY - 1) / CANARY * CANARY;
}

static bool map_case(struct test_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    size_t at = CANARY;
    for (size_t i = 0; i < t->ntensors; i++) {
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
    struct data_scale scale;
    if (!data_scale_find(c->inst, c->seed, &scale, err))
        return false;
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        data_fill(c->inst, &scale, i, c->data, c->seed, 0, c->inst->tensors[i].count,
                  c->inputs + c->offset[i]);
        memcpy(c->map + c->offset[i], c->inputs + c->offset[i], c->inst->tensors[i].bytes);
        inputs[i] = c->inputs + c->offset[i];
    }
    if (!reference_eval(c->inst, inputs, j->threads, &c->refs, &c->nrefs, NULL, err))
        return false;
    c->bytes = 2 * c->size;
    for (size_t i = 0; i < c->nrefs; i++)
        c->bytes += 16 * c->refs[i].count;
    return true;
}

static struct test_case *case_new(struct judge *j, const json *set, enum data_kind data,
                                  uint64_t seed, struct err *err) {
    struct test_case *c = mem_alloc(sizeof *c);
    struct binding *bindings;
    size_t n;
    c->fd = -1;
    c->arena = arena_new(64u << 20);
    c->data = data;
    c->seed = seed;
    if (set_from_json(set, c->arena, &bindings, &n, err) &&
        task_bind(j->task, bindings, n, c->arena, &c->inst, err) && map_case(c, err) &&
        fill_case(j, c, err))
        return c;
    case_free(c);
    return NULL;
}

static bool same_set(const struct test_case *c, const json *set) {
    json *mine = set_to_json(c->inst);
    struct buf x, y;
    buf_init(&x, 1 << 16);
    buf_init(&y, 1 << 16);
    json_write(mine, &x);
    json_write(set, &y);
    bool same = !x.failed && !y.failed && str_eq(buf_str(&x), buf_str(&y));
    buf_release(&x);
    buf_release(&y);
    json_free(mine);
    return same;
}

static struct test_case *find_case(struct judge *j, const json *set, enum data_kind data,
                                   uint64_t seed, struct err *err) {
    for (size_t i = 0; i < j->ncases; i++) {
        struct test_case *c = j->cases[i];
        if (c->data == data && c->seed == seed && same_set(c, set))
            return c;
    }
    struct test_case *c = case_new(j, set, data, seed, err);
    if (!c)
        return NULL;
    while (j->ncases && (j->ncases == MAX_CASES || j->bytes + c->bytes > MAX_BYTES))
        drop_oldest(j);
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

static bool poison_case(struct judge *j, struct test_case *c, struct err *err) {
    const struct task *t = c->inst->task;
    if (!rng_secret(&j->key))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    canary_fill(j->key, c->map, CANARY);
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        size_t start = canary_start(c, i);
        canary_fill(j->key + 1 + i, c->map + start, canary_end(c, i) - start);
        if (t->tensors[i].role == TENSOR_OUT)
            poison_fill(t->tensors[i].dtype, j->key, (size_t)c->inst->tensors[i].count,
                        c->map + c->offset[i]);
        else if (tensor_is_output(&t->tensors[i])) /* as it was before the run before */
            memcpy(c->map + c->offset[i], c->inputs + c->offset[i], c->inst->tensors[i].bytes);
    }
    return true;
}

static bool load_task(struct judge *j, str file, str text, struct err *err) {
    if (j->task && str_eq(j->task->text, text))
        return true;
    drop_cases(j);
    arena_free(j->task_arena);
    j->task_arena = arena_new(64u << 20);
    j->task = NULL;
    return task_parse(arena_str(j->task_arena, file), arena_str(j->task_arena, text), j->task_arena,
                      &j->task, err);
}

static bool prepare(struct judge *j, const json *head, json *out, struct err *err) {
    str file, text, data_text, seed_text;
    enum data_kind data;
    uint64_t seed;
    if (!json_get_str(head, "task", &text) || !json_get_str(head, "file", &file) ||
        !json_get_str(head, "seed", &seed_text) || !str_to_u64(seed_text, &seed) ||
        !json_get_str(head, "data", &data_text) || !data_find(data_text, &data))
        return err_set(err, ERR_ENV, "bad message: prepare");
    if (!load_task(j, file, text, err))
        return false;
    struct test_case *c = find_case(j, json_get(head, "set"), data, seed, err);
    if (!c || !poison_case(j, c, err))
        return false;
    c->used = ++j->clock;
    j->current = c;
    json *tensors = json_array();
    for (size_t i = 0; i < j->task->ntensors; i++) {
        const struct tensor *t = &j->task->tensors[i];
        if (!tensor_has_memory(t)) {
            json_push_i64(tensors, 0);
            continue;
        }
        json *o = json_object();
        json_set_i64(o, "offset", (int64_t)c->offset[i]);
        json_set_i64(o, "bytes", (int64_t)c->inst->tensors[i].bytes);
        json_set_bool(o, "writable", tensor_is_output(t));
        json_push(tensors, o);
    }
    json_set(out, "tensors", tensors);
    return true;
}

/* ---- after a run ---- */

struct ruling {
    enum verdict verdict;
    char why[1024];
    double worst, rms;
    json *mismatches;
};

static bool check_canaries(struct judge *j, const struct test_case *c, struct ruling *r) {
    const struct task *t = c->inst->task;
    size_t first;
    bool ok = canary_holds(j->key, c->map, CANARY, &first);
    if (!ok)
        snprintf(r->why, sizeof r->why, "wrote before its first buffer");
    for (size_t i = 0; ok && i < t->ntensors; i++) {
        size_t start = tensor_has_memory(&t->tensors[i]) ? canary_start(c, i) : 0;
        if (start &&
            !canary_holds(j->key + 1 + i, c->map + start, canary_end(c, i) - start, &first)) {
            snprintf(r->why, sizeof r->why, "wrote %zu bytes past the end of %.*s", first,
                     STR_ARG(t->tensors[i].name));
            ok = false;
        }
    }
    if (!ok)
        r->verdict = VERDICT_OUT_OF_BOUNDS;
    return ok;
}

static bool check_inputs(const struct test_case *c, struct ruling *r) {
    const struct task *t = c->inst->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t bytes = c->inst->tensors[i].bytes;
        if (!tensor_is_input(&t->tensors[i]) || tensor_is_output(&t->tensors[i]) ||
            memcmp(c->map + c->offset[i], c->inputs + c->offset[i], bytes) == 0)
            continue;
        memcpy(c->map + c->offset[i], c->inputs + c->offset[i], bytes); /* for the next one */
        snprintf(r->why, sizeof r->why, "changed its input %.*s", STR_ARG(t->tensors[i].name));
        r->verdict = VERDICT_MODIFIED_INPUT;
        return false;
    }
    return true;
}

static bool check_written(struct judge *j, const struct test_case *c, const struct reference *ref,
                          struct arena *a, struct ruling *r) {
    size_t first = 0;
    if (c->inst->task->tensors[ref->tensor].role != TENSOR_OUT)
        return true; /* written in place: it never held poison */
    uint64_t n = poison_count(c->inst->task->tensors[ref->tensor].dtype, j->key,
                              c->map + c->offset[ref->tensor], ref->value, ref->count, &first);
    if (!n)
        return true;
    str name = element_name(c->inst, ref->tensor, (int64_t)first, a);
    snprintf(r->why, sizeof r->why, "%llu of %zu elements were never written, %.*s the first",
             (unsigned long long)n, ref->count, STR_ARG(name));
    r->verdict = VERDICT_UNWRITTEN;
    return false;
}

/* A byte that is neither 0 nor 1 is no truth value, though C would take it for one. */
static bool check_bools(const struct test_case *c, const struct reference *ref, struct arena *a,
                        struct ruling *r) {
    const uint8_t *got = (const uint8_t *)c->map + c->offset[ref->tensor];
    if (c->inst->task->tensors[ref->tensor].dtype != DTYPE_BOOL)
        return true;
    for (size_t i = 0; i < ref->count; i++)
        if (got[i] > 1) {
            str name = element_name(c->inst, ref->tensor, (int64_t)i, a);
            snprintf(r->why, sizeof r->why, "%.*s is the byte %u, a bool is 0 or 1", STR_ARG(name),
                     got[i]);
            r->verdict = VERDICT_WRONG;
            return false;
        }
    return true;
}

static void describe(const struct test_case *c, const struct reference *ref,
                     const struct comparison *cmp, struct arena *a, struct ruling *r) {
    str name = cmp->nfirst ? element_name(c->inst, ref->tensor, cmp->first[0].index, a) : S("?");
    r->mismatches = json_array();
    for (size_t i = 0; i < cmp->nfirst; i++) {
        const struct mismatch *m = &cmp->first[i];
        json *o = json_object();
        json_set_str(o, "element", element_name(c->inst, ref->tensor, m->index, a));
        json_set_f64(o, "expected", m->expected);
        json_set_f64(o, "got", m->got);
        json_push(r->mismatches, o);
    }
    if (r->verdict == VERDICT_NONFINITE)
        snprintf(r->why, sizeof r->why,
                 "%llu of %zu elements are NaN or infinite where they should not be, or the "
                 "reverse; %.*s is %g, expected %g",
                 (unsigned long long)cmp->nonfinite, ref->count, STR_ARG(name), cmp->first[0].got,
                 cmp->first[0].expected);
    else if (cmp->wrong)
        snprintf(r->why, sizeof r->why,
                 "%llu of %zu elements are off; %.*s is %.9g, expected %.9g; the worst error is "
                 "%.3g times what the accuracy class allows",
                 (unsigned long long)cmp->wrong, ref->count, STR_ARG(name), cmp->first[0].got,
                 cmp->first[0].expected, cmp->worst / cmp->worst_limit);
    else
        snprintf(r->why, sizeof r->why,
                 "no element is far off, but all together are: the RMS error is %.3g times what "
                 "the accuracy class allows",
                 cmp->rms / cmp->rms_limit);
}

static bool check_values(struct judge *j, const struct test_case *c, const struct reference *ref,
                         struct arena *a, struct ruling *r) {
    struct comparison cmp;
    reference_compare(c->inst, ref, c->map + c->offset[ref->tensor], j->threads, &cmp);
    r->worst = cmp.worst > r->worst ? cmp.worst : r->worst;
    r->rms = cmp.rms > r->rms ? cmp.rms : r->rms;
    if (cmp.pass)
        return true;
    r->verdict = cmp.nonfinite     ? VERDICT_NONFINITE
                 : cmp.pass_looser ? VERDICT_INACCURATE
                                   : VERDICT_WRONG;
    describe(c, ref, &cmp, a, r);
    return false;
}

static bool compare(struct judge *j, json *out, struct err *err) {
    struct test_case *c = j->current;
    struct ruling r = {.verdict = VERDICT_ACCEPTED};
    if (!c)
        return err_set(err, ERR_ENV, "bad message: compare before prepare");
    struct arena *a = arena_new(1 << 20);
    bool ok = check_canaries(j, c, &r) && check_inputs(c, &r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_written(j, c, &c->refs[i], a, &r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_bools(c, &c->refs[i], a, &r);
    for (size_t i = 0; ok && i < c->nrefs; i++)
        ok = check_values(j, c, &c->refs[i], a, &r);
    json_set_str(out, "verdict", str_view(verdict_name(r.verdict)));
    json_set_str(out, "why", str_view(r.why));
    json_set_f64(out, "worst", r.worst);
    json_set_f64(out, "rms", r.rms);
    if (r.mismatches)
        json_set(out, "mismatches", r.mismatches);
    arena_free(a);
    j->current = NULL;
    return true;
}

static bool serve(struct judge *j, const struct frame *f, struct err *err) {
    json *out = json_object();
    struct err why = {0};
    uint32_t type = f->type == WIRE_PREPARE ? WIRE_CASE : WIRE_JUDGED;
    bool ok = false, sent;
    if (f->type == WIRE_PREPARE)
        ok = prepare(j, f->head, out, &why);
    else if (f->type == WIRE_COMPARE)
        ok = compare(j, out, &why);
    else
        err_set(&why, ERR_ENV, "unexpected message %u", f->type);
    if (!ok)
        json_set_str(out, "why", str_view(why.text));
    sent =
        frame_write(ROLE_FD, ok ? type : WIRE_ERROR, out, (str){0},
                    ok && type == WIRE_CASE ? &j->current->fd : NULL, ok && type == WIRE_CASE, err);
    json_free(out);
    return sent;
}

int judge_main(unsigned threads) {
    struct judge j = {.threads = threads};
    struct err err = {0};
    int got = -1;
    if (role_enter(ROLE_FD, "judge", &err)) {
        struct frame f = {0};
        while ((got = frame_read(ROLE_FD, 0, &f, &err)) > 0) {
            bool ok = serve(&j, &f, &err);
            frame_release(&f);
            if (!ok) {
                got = -1;
                break;
            }
        }
        drop_cases(&j);
        arena_free(j.task_arena);
    }
    if (got < 0)
        fprintf(stderr, "cutepilot judge: %s\n", err.text);
    _exit(got < 0 ? 3 : 0); /* without exit handlers, which the sandbox may not allow their work */
}
