/* The pool: a queue of jobs, a slot for each compiler, and the clock.
 *
 * A job is one key; requests for the same key that come while it is open become its waiters. It is
 * queued, running in a slot, or settled: then only a timer stands between it and its callbacks, so
 * that none is called from inside build_submit. A slot's process is started when a job wants it
 * and replaced when it has died, has compiled RECYCLE_AFTER units, or ran past the clock. How it
 * ended is decided when it has been reaped, in one place: slot_exit. */
#include "kernel/build.h"

#include "base/frame.h"
#include "kernel/build_cache.h"
#include "kernel/compile.h"
#include "kernel/cubin.h"
#include "kernel/includes.h"
#include "kernel/ptxas_log.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define RECYCLE_AFTER   500
#define LOST_MOST       8 /* times a compiler may be killed on one source before that is its fault */
#define START_MS        60000
#define START_TRIES     3 /* in a row, before open jobs are given up */
#define DEFAULT_LIMIT   30000
#define DEFAULT_MEMORY  ((size_t)4 << 30)
#define JOB_ARENA_BYTES ((size_t)512 << 20)

/* NVRTC's front end reports its own memory running out as an error of the source. */
#define SAYS_NO_MEMORY "catastrophic error: out of memory"

struct waiter {
    build_done_fn *done;
    void *ctx;
};

struct job {
    struct job *next;
    struct build_pool *pool;
    struct arena *a;
    struct build_request r; /* in the arena */
    struct build b;         /* settled: the answer */
    enum { JOB_QUEUED, JOB_RUNNING, JOB_SETTLED } state;
    uint64_t timer;
    struct waiter *waiters;
    size_t nwaiters, cap;
    unsigned lost; /* times its compiler ended for no fault of the source */
};

struct slot {
    struct build_pool *pool;
    enum { SLOT_DEAD, SLOT_STARTING, SLOT_IDLE, SLOT_BUSY, SLOT_DYING } state;
    pid_t pid;
    struct conn *conn;
    struct job *job;
    uint64_t timer; /* of the start or the compile */
    bool timed_out;
    unsigned compiles;
};

struct build_pool {
    struct loop *loop;
    struct nvrtc_root root;
    struct build_cache *cache;
    char *program;
    unsigned limit_ms;
    size_t memory_bytes;
    struct slot *slots;
    unsigned nslots;
    struct job *jobs; /* open ones, in order of arrival */
    unsigned failed_starts;
    struct err start_err; /* of the last failed start */
    bool *freed;          /* set by build_pool_free while a callback runs */
};

static void pump(struct build_pool *p);
/* ---- jobs ---- */

static struct job *job_new(struct build_pool *p, const struct build_request *r, digest key) {
    struct arena *a = arena_new(JOB_ARENA_BYTES);
    struct job *j = arena_new_of(a, struct job);
    *j = (struct job){.pool = p, .a = a, .r = *r, .b = {.key = key}};
    j->r.unit = arena_str(a, r->unit);
    j->r.arch = arena_cstr(a, str_view(r->arch));
    struct job **end = &p->jobs;
    while (*end)
        end = &(*end)->next;
    *end = j;
    return j;
}

static void job_free(struct job *j) {
    mem_free(j->waiters);
    arena_free(j->a);
}

static void job_wait(struct job *j, build_done_fn *done, void *ctx) {
    j->waiters = mem_grow(j->waiters, &j->cap, j->nwaiters + 1, sizeof *j->waiters);
    j->waiters[j->nwaiters++] = (struct waiter){done, ctx};
}

static void job_unlink(struct job *j) {
    struct job **link = &j->pool->jobs;
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
}

/* From the loop. A callback may submit, and may free the pool. */
static void job_deliver(void *ctx) {
    struct job *j = ctx;
    struct build_pool *p = j->pool;
    job_unlink(j);
    bool freed = false, *outer = p->freed;
    p->freed = &freed;
    for (size_t i = 0; i < j->nwaiters && !freed; i++)
        j->waiters[i].done(j->waiters[i].ctx, &j->b);
    if (!freed)
        p->freed = outer;
    else if (outer)
        *outer = true;
    job_free(j);
}

/* The answer is in j->b, with all of its bytes in the job's arena. */
static void job_settle(struct job *j) {
    j->state = JOB_SETTLED;
    j->timer = loop_timer(j->pool->loop, 0, job_deliver, j);
}

static void job_say(struct job *j, enum verdict v, str log) {
    j->b.verdict = v;
    j->b.log = log;
    job_settle(j);
}

/* Nothing is said about the source. */
static void job_unable(struct job *j, str why) {
    j->b.no_compiler = true;
    job_say(j, VERDICT_COMPILE_LIMIT, why);
}

/* ---- what a compiler answered ---- */

static str fold_one(str text, const char *root, const char *as, struct arena *a) {
    size_t n = strlen(root), at;
    struct buf out;
    if (n == 0 || str_find(text, str_view(root)) == text.n)
        return text;
    buf_init(&out, 4 * text.n + 1024);
    while ((at = str_find(text, str_view(root))) < text.n) {
        buf_puts(&out, str_cut(text, 0, at));
        buf_puts(&out, str_view(as));
        text = str_from(text, at + n);
    }
    buf_puts(&out, text);
    str folded = arena_str(a, buf_str(&out));
    buf_release(&out);
    return folded;
}

/* Our own paths say nothing to the author of a kernel, and differ between machines. */
static str fold_paths(const struct nvrtc_root *root, str log, struct arena *a) {
    log = fold_one(arena_str(a, log), root->cutlass, "<cutlass>", a);
    return fold_one(log, root->include, "<cuda>", a);
}

static bool built_parts(const struct frame *f, struct job *j, enum compile_status *status) {
    int64_t code, ptx, cubin;
    str log;
    if (!json_get_i64(f->head, "status", &code) || code < 0 || code >= COMPILE_STATUS_COUNT ||
        !json_get_i64(f->head, "ptx", &ptx) || !json_get_i64(f->head, "cubin", &cubin) ||
        !json_get_str(f->head, "log", &log) || !json_get_f64(f->head, "ms", &j->b.wall_ms))
        return false;
    if (ptx < 0 || cubin < 0 || (uint64_t)ptx > f->blob.n ||
        (uint64_t)cubin != f->blob.n - (uint64_t)ptx)
        return false;
    *status = (enum compile_status)code;
    j->b.log = fold_paths(&j->pool->root, log, j->a);
    j->b.ptx = arena_str(j->a, str_cut(f->blob, 0, (size_t)ptx));
    j->b.cubin = arena_str(j->a, str_from(f->blob, (size_t)ptx));
    return true;
}

static void say_memory(struct job *j) {
    j->b.verdict = VERDICT_COMPILE_LIMIT;
    j->b.log = arena_printf(j->a, "compilation needs more than %zu MiB of memory\n",
                            j->pool->memory_bytes >> 20);
}

static void built_failed(struct job *j) {
    str name;
    if (str_find(j->b.log, S(SAYS_NO_MEMORY)) < j->b.log.n) {
        say_memory(j);
        return;
    }
    if (!includes_unopened(j->b.log, &name) || include_allowed(name)) {
        j->b.verdict = VERDICT_COMPILE_ERROR;
        return;
    }
    j->b.verdict = VERDICT_FORBIDDEN;
    j->b.log = arena_printf(j->a, "\"%.*s\" cannot be included\nallowed: %s\n", STR_ARG(name),
                            includes_list);
}

/* What the cubin says of the kernels; a virtual architecture makes none. */
static bool job_facts(const struct job *j, struct build *b, struct err *err) {
    return str_starts(str_view(j->r.arch), S("compute_")) ||
           cubin_facts(b->cubin, j->a, &b->kernels, &b->nkernels, err);
}

/* Only what follows from the key alone is kept: the source's own success or failure. */
static void job_built(struct job *j, const struct frame *f) {
    enum compile_status status;
    struct build *b = &j->b;
    struct err err = {0};
    b->verdict = VERDICT_COMPILE_LIMIT;
    if (!built_parts(f, j, &status)) {
        b->log = S("the compiler's answer could not be read\n");
    } else if (status == COMPILE_OK) {
        if (job_facts(j, b, &err))
            b->verdict = VERDICT_ACCEPTED;
        else
            b->log = arena_printf(j->a, "%s\n", err.text);
    } else if (status == COMPILE_FAILED) {
        built_failed(j);
    } else if (status == COMPILE_MEMORY) {
        say_memory(j);
    } else if (status == COMPILE_OUTPUT) {
        b->log = arena_printf(j->a, "compilation makes more than %u MiB of code\n",
                              COMPILE_MAX_OUTPUT >> 20);
    } else if (b->log.n == 0) {
        b->log = S("the compiler failed without saying why\n");
    }
    if (b->verdict == VERDICT_ACCEPTED || b->verdict == VERDICT_COMPILE_ERROR)
        build_cache_put(j->pool->cache, b); /* with the whole log: job_cached reads it again */
    b->log = ptxas_log_take(b->log, j->a, b->kernels, b->nkernels);
    job_settle(j);
}

/* ---- slots ---- */

static void slot_retire(struct slot *s) {
    loop_timer_cancel(s->pool->loop, s->timer);
    s->timer = 0;
    conn_free(s->conn);
    s->conn = NULL;
    s->state = SLOT_DYING; /* until it is reaped */
    child_kill(s->pid);
}

static void slot_ready(struct slot *s) {
    loop_timer_cancel(s->pool->loop, s->timer);
    s->timer = 0;
    s->state = SLOT_IDLE;
}

static void slot_built(struct slot *s, const struct frame *f) {
    struct job *j = s->job;
    s->job = NULL;
    slot_ready(s);
    int64_t status = COMPILE_BROKEN;
    json_get_i64(f->head, "status", &status);
    if (++s->compiles >= RECYCLE_AFTER || status == COMPILE_MEMORY || status == COMPILE_BROKEN)
        slot_retire(s);
    job_built(j, f);
}

static void slot_frame(void *ctx, struct frame *f) {
    struct slot *s = ctx;
    struct build_pool *p = s->pool;
    struct nvrtc_root seen = p->root;
    if (f->type == FRAME_HELLO && s->state == SLOT_STARTING) {
        if (!compiler_hello(f->head, &seen, &p->start_err))
            slot_retire(s);
    } else if (f->type == FRAME_READY && s->state == SLOT_STARTING) {
        p->failed_starts = 0;
        slot_ready(s);
    } else if (f->type == FRAME_BUILT && s->state == SLOT_BUSY && s->job) {
        slot_built(s, f);
    } else {
        slot_retire(s);
    }
    frame_release(f);
    pump(p);
}

static void slot_closed(void *ctx, const struct err *why) {
    struct slot *s = ctx;
    (void)why; /* how the process ended says more */
    child_kill(s->pid);
}

static void slot_late(void *ctx) {
    struct slot *s = ctx;
    s->timer = 0;
    s->timed_out = true;
    child_kill(s->pid);
}

/* Signals that come from outside (the system's SIGKILL when memory ran out everywhere, somebody's
 * SIGTERM), and an orderly end before the unit was read, are no fault of the source. */
static bool ended_from_outside(int status) {
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == 0;
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGHUP;
}

/* No fault until it has happened some times, that is: one source may be what memory runs out on. */
static void job_lost(struct job *j, bool timed_out, int status) {
    char space[64];
    str how = child_status_text(status, space, sizeof space);
    if (timed_out)
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(j->a, "compilation ran past its limit of %u ms\n", j->pool->limit_ms));
    else if (ended_from_outside(status) && ++j->lost < LOST_MOST)
        j->state = JOB_QUEUED;
    else
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(
                    j->a, "the compiler died on this source (%.*s): its memory limit is %zu MiB\n",
                    STR_ARG(how), j->pool->memory_bytes >> 20));
}

static void slot_exit(void *ctx, pid_t pid, int status) {
    struct slot *s = ctx;
    struct build_pool *p = s->pool;
    struct job *j = s->job;
    char space[64];
    (void)pid;
    loop_timer_cancel(p->loop, s->timer);
    conn_free(s->conn);
    bool timed_out = s->timed_out, starting = s->state == SLOT_STARTING;
    bool refused = s->state == SLOT_DYING && s->compiles == 0; /* by what it said first */
    *s = (struct slot){.pool = p};
    if (starting)
        err_set(&p->start_err, ERR_ENV, "a compiler ended while starting: %s",
                child_status_text(status, space, sizeof space).p);
    p->failed_starts += starting || refused;
    if (j)
        job_lost(j, timed_out, status);
    pump(p);
}

static bool slot_start(struct slot *s, struct err *err) {
    struct build_pool *p = s->pool;
    struct child child;
    int fd;
    if (!compiler_start(&p->root, p->program, p->memory_bytes, &child, &fd, err))
        return false;
    int pidfd = child.pidfd;
    s->pid = child.pid;
    s->conn = conn_new(p->loop, fd, fd, 0, slot_frame, slot_closed, s, err);
    if (s->conn)
        child.pidfd = -1; /* the loop's, even when it refuses it */
    if (!s->conn || !loop_watch_pid(p->loop, child.pid, pidfd, slot_exit, s, err)) {
        conn_free(s->conn);
        child_kill(child.pid);
        child_wait(&child);
        *s = (struct slot){.pool = p};
        return false;
    }
    s->state = SLOT_STARTING;
    s->timer = loop_timer(p->loop, START_MS, slot_late, s);
    return true;
}

static json *compile_options(const struct build_pool *p, const struct job *j) {
    char include[600];
    json *list = json_array();
    char arch[64];
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", j->r.arch);
    json_push_str(list, S("--std=c++17"));
    json_push_str(list, str_view(arch));
    json_push_str(list, S("--generate-line-info"));
    json_push_str(list, j->r.fmad ? S("--fmad=true") : S("--fmad=false"));
    json_push_str(list, S("--ptxas-options=--verbose"));
    const char *const roots[] = {j->r.cute ? p->root.cutlass : "", p->root.include};
    for (size_t i = 0; i < 2; i++)
        if (*roots[i]) {
            snprintf(include, sizeof include, "--include-path=%s", roots[i]);
            json_push_str(list, str_view(include));
        }
    snprintf(include, sizeof include, "--include-path=%s/cccl", p->root.include);
    json_push_str(list, str_view(include));
    if (j->r.cute)
        json_push_str(list, S("--device-as-default-execution-space"));
    return list;
}

static void slot_give(struct slot *s, struct job *j) {
    struct build_pool *p = s->pool;
    json *head = json_object();
    json_set(head, "options", compile_options(p, j));
    j->state = JOB_RUNNING;
    s->job = j;
    s->state = SLOT_BUSY;
    s->timer = loop_timer(p->loop, p->limit_ms, slot_late, s);
    conn_send(s->conn, FRAME_COMPILE, head, j->r.unit, NULL, 0);
    json_free(head);
}

/* ---- matching them ---- */

static struct slot *slot_find(struct build_pool *p, int state) {
    for (unsigned i = 0; i < p->nslots; i++)
        if ((int)p->slots[i].state == state)
            return &p->slots[i];
    return NULL;
}

static size_t slots_in(const struct build_pool *p, int state) {
    size_t n = 0;
    for (unsigned i = 0; i < p->nslots; i++)
        n += (int)p->slots[i].state == state;
    return n;
}

static struct job *job_queued(struct build_pool *p) {
    struct job *j = p->jobs;
    while (j && j->state != JOB_QUEUED)
        j = j->next;
    return j;
}

static size_t jobs_queued(const struct build_pool *p) {
    size_t n = 0;
    for (const struct job *j = p->jobs; j; j = j->next)
        n += j->state == JOB_QUEUED;
    return n;
}

/* No compiler lives and none can be started: nothing that waits will ever be built. */
static void give_up(struct build_pool *p) {
    for (struct job *j = p->jobs; j; j = j->next)
        if (j->state == JOB_QUEUED)
            job_unable(j,
                       arena_printf(j->a, "no compiler could be started: %s", p->start_err.text));
}

static void pump(struct build_pool *p) {
    struct job *j;
    struct slot *s;
    while ((j = job_queued(p)) && (s = slot_find(p, SLOT_IDLE)))
        slot_give(s, j);
    while (p->failed_starts < START_TRIES && jobs_queued(p) > slots_in(p, SLOT_STARTING) &&
           (s = slot_find(p, SLOT_DEAD)))
        p->failed_starts += !slot_start(s, &p->start_err);
    bool living = slot_find(p, SLOT_STARTING) || slot_find(p, SLOT_IDLE) ||
                  slot_find(p, SLOT_BUSY) || slot_find(p, SLOT_DYING);
    if (p->failed_starts >= START_TRIES && !living)
        give_up(p);
}

/* ---- the header's functions ---- */

static bool job_cached(struct job *j) {
    struct build b = j->b;
    struct err none;
    b.cached = build_cache_get(j->pool->cache, b.key, j->a, &b) &&
               (b.verdict != VERDICT_ACCEPTED || job_facts(j, &b, &none));
    if (!b.cached)
        return false;
    b.log = ptxas_log_take(b.log, j->a, b.kernels, b.nkernels);
    j->b = b;
    return true;
}

/* What can be said without compiling. */
static bool settle_early(struct job *j, const struct includes *inc) {
    struct build_pool *p = j->pool;
    if (!inc->allowed)
        job_say(j, VERDICT_FORBIDDEN,
                arena_printf(j->a, "#include %.*s: %s\nallowed: %s\n", STR_ARG(inc->refused),
                             inc->why, includes_list));
    else if (j->r.unit.n > COMPILE_MAX_UNIT)
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(j->a, "the source has more than %u bytes\n", COMPILE_MAX_UNIT));
    else if (memchr(j->r.unit.p, 0, j->r.unit.n))
        job_say(j, VERDICT_FORBIDDEN, S("the source has a NUL byte\n"));
    else if (j->r.cute && !p->root.cutlass[0])
        job_say(
            j, VERDICT_COMPILE_ERROR,
            S("the headers of CUTLASS, which cute/ and cutlass/ are in, are not installed here\n"
              "hint: write the kernel without them; to have them, run tools/setup build, or set "
              "CUTEPILOT_CUTLASS to their folder"));
    else if (job_cached(j))
        job_settle(j);
    return j->state == JOB_SETTLED;
}

static bool submit(struct build_pool *p, const struct build_request *r, const struct includes *inc,
                   build_done_fn *done, void *ctx, struct err *err) {
    struct build_request full = *r;
    full.cute |= inc->cute;
    digest key = build_key(&full, &p->root);
    for (struct job *j = p->jobs; j; j = j->next)
        if (memcmp(&j->b.key, &key, sizeof key) == 0) {
            job_wait(j, done, ctx);
            return true;
        }
    struct job *j = job_new(p, &full, key);
    job_wait(j, done, ctx);
    if (settle_early(j, inc))
        return true;
    if (p->failed_starts >= START_TRIES)
        p->failed_starts = START_TRIES - 1; /* one more try for each who asks */
    pump(p);
    if (j->state != JOB_SETTLED)
        return true;
    loop_timer_cancel(p->loop, j->timer); /* given up on at once */
    job_unlink(j);
    job_free(j);
    *err = p->start_err;
    return false;
}

bool build_submit(struct build_pool *p, const struct build_request *r, build_done_fn *done,
                  void *ctx, struct err *err) {
    struct includes inc;
    struct arena *a = arena_new(r->unit.n + (1u << 20));
    includes_scan(r->unit, a, &inc); /* what it refuses is named from the arena */
    bool ok = submit(p, r, &inc, done, ctx, err);
    arena_free(a);
    return ok;
}

const struct nvrtc_root *build_pool_root(const struct build_pool *p) {
    return &p->root;
}

struct build_pool *build_pool_new(struct loop *l, const struct nvrtc_root *root,
                                  const struct build_pool_options *o, struct err *err) {
    struct nvrtc_root known = *root;
    if (!nvrtc_new_enough(known.major, known.minor) && !nvrtc_probe(&known, err))
        return NULL;
    struct build_pool *p = mem_alloc(sizeof *p);
    p->loop = l;
    p->root = known;
    p->cache = build_cache_new(o->cache, CACHE_MAX_BYTES);
    p->limit_ms = o->limit_ms ? o->limit_ms : DEFAULT_LIMIT;
    p->memory_bytes = o->memory_bytes ? o->memory_bytes : DEFAULT_MEMORY;
    if (o->program) {
        p->program = mem_alloc(strlen(o->program) + 1);
        memcpy(p->program, o->program, strlen(o->program) + 1);
    }
    p->nslots = o->jobs ? o->jobs : 1;
    p->slots = mem_alloc(p->nslots * sizeof *p->slots);
    for (unsigned i = 0; i < p->nslots; i++)
        p->slots[i].pool = p;
    return p;
}

static void slot_release(struct slot *s) {
    struct child child = {s->pid, -1};
    if (s->state == SLOT_DEAD)
        return;
    loop_timer_cancel(s->pool->loop, s->timer);
    conn_free(s->conn);
    loop_unwatch_pid(s->pool->loop, s->pid);
    child_kill(s->pid);
    child_wait(&child);
}

void build_pool_free(struct build_pool *p) {
    if (!p)
        return;
    if (p->freed)
        *p->freed = true;
    for (unsigned i = 0; i < p->nslots; i++)
        slot_release(&p->slots[i]);
    for (struct job *j = p->jobs, *next; j; j = next) {
        next = j->next;
        loop_timer_cancel(p->loop, j->timer);
        job_free(j);
    }
    build_cache_free(p->cache);
    mem_free(p->program);
    mem_free(p->slots);
    mem_free(p);
}
