/* The worker: the supervisor on the machine with the device. It never loads CUDA and never sees an
 * expected value; it starts device and judge, walks each job through them, holds the clock, and
 * replaces whichever of the two dies.
 *
 * A job's steps are LOAD, then for each (shape, data) PREPARE → RUN → COMPARE, then MEASURE. One
 * request is in flight at a time, so the state is the step. A role that dies in mid-step is started
 * again and the step's trial is done again from PREPARE, which poisons afresh; a device that dies
 * twice in the same trial is the candidate's doing, a judge that keeps dying is our own trouble.
 *
 * Signals do not cross ssh or srun: end of file on stdin is what ends a worker. */
#include "base/child.h"
#include "base/file.h"
#include "base/frame.h"
#include "device/role.h"
#include "device/wire.h"
#include "kernel/verdict.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JUDGE_LIMIT_MS 120000
#define MAX_TRIES      2 /* of a trial on the device */
#define MAX_JUDGES     4 /* in one job */
#define MAX_STARTS     3 /* in a row without a hello */

enum step {
    STEP_IDLE,
    STEP_WAIT_ROLES, /* a role is starting; next_step follows its hello */
    STEP_LOAD,
    STEP_PREPARE,
    STEP_RUN,
    STEP_COMPARE,
    STEP_MEASURE,
};

struct worker;

struct role {
    struct worker *w;
    const char *name;
    pid_t pid;
    struct conn *conn;
    bool ready;     /* said hello */
    unsigned fails; /* starts in a row that ended before a hello */
    json *sandbox;  /* from its hello */
};

struct worker {
    struct loop *loop;
    const char *program;
    const struct device_name *name;
    char threads[16];
    struct conn *up;
    struct role device, judge;
    bool announced;
    int exit_code; /* -1: running */

    struct frame job; /* type 0: none */
    int64_t id, limit_ms;
    enum step step;
    size_t shape, data;
    bool loaded, case_valid, timed_out;
    unsigned tries, judges;
    uint64_t timer;
    json *runs;     /* evidence so far */
    json *counters; /* of the counted run, once it was judged right; NULL: none */
    json *counted;  /* … of the run being judged */
    uint64_t alive; /* timer */
};

static void next_step(struct worker *w);

static void stop(struct worker *w, int code) {
    if (w->exit_code < 0)
        w->exit_code = code;
}

/* ---- the job's end ---- */

static void forget_counters(struct worker *w) {
    json_free(w->counters);
    json_free(w->counted);
    w->counters = w->counted = NULL;
}

static void end_job(struct worker *w, uint32_t type, json *head) {
    loop_timer_cancel(w->loop, w->timer);
    loop_timer_cancel(w->loop, w->alive);
    w->timer = w->alive = 0;
    forget_counters(w);
    json_set_i64(head, "job", w->id);
    if (w->runs)
        json_set(head, "runs", w->runs);
    w->runs = NULL;
    conn_send(w->up, type, head, (str){0}, NULL, 0);
    json_free(head);
    frame_release(&w->job);
    memset(&w->job, 0, sizeof w->job);
    w->step = STEP_IDLE;
}

/* Where in the job it happened, for every verdict but acceptance. */
static void set_place(struct worker *w, json *head) {
    const json *shape = json_at(json_get(w->job.head, "shapes"), w->shape);
    str label, data;
    if (!shape || w->step == STEP_LOAD)
        return;
    if (json_get_str(shape, "label", &label))
        json_set_str(head, "shape", label);
    if (json_to_str(json_at(json_get(shape, "data"), w->data), &data))
        json_set_str(head, "data", data);
}

static void finish(struct worker *w, str verdict, str why, const json *details) {
    json *head = json_object();
    json_set_str(head, "verdict", verdict);
    json_set_str(head, "why", why);
    set_place(w, head);
    if (details)
        json_set(head, "details", json_copy(details));
    end_job(w, WIRE_RESULT, head);
}

static void finish_accepted(struct worker *w, const json *counters) {
    json *head = json_object();
    json_set_str(head, "verdict", str_view(verdict_name(VERDICT_ACCEPTED)));
    json_set_str(head, "why", (str){0});
    if (counters)
        json_set(head, "counters", json_copy(counters));
    end_job(w, WIRE_RESULT, head);
}

static void finish_as(struct worker *w, enum verdict v, const char *why) {
    finish(w, str_view(verdict_name(v)), str_view(why), NULL);
}

static void fail(struct worker *w, str why) {
    json *head = json_object();
    json_set_str(head, "why", why);
    end_job(w, WIRE_FAILED, head);
}

/* ---- roles: start, hello, death ---- */

static void role_frame(void *ctx, struct frame *f);
static void role_closed(void *ctx, const struct err *why);
static void role_ended(void *ctx, pid_t pid, int status);

static bool role_start(struct role *r, struct err *err) {
    struct worker *w = r->w;
    int pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_errno(err, ERR_ENV, "open /dev/null");
    if (!socket_pair(pair, err)) {
        close(null);
        return false;
    }
    const char *device[] = {w->program, "device", w->name->text, w->threads, NULL};
    const char *judge[] = {w->program, "judge", w->threads, NULL};
    struct child_fd fds[] = {{null, 0}, {null, 1}, {2, 2}, {pair[1], ROLE_FD}};
    struct child_spec spec = {.argv = r == &w->device ? device : judge, .fds = fds, .nfds = 4};
    struct child child;
    bool ok = child_start(&spec, &child, err);
    close(pair[1]);
    close(null);
    if (!ok) {
        close(pair[0]);
        return err_wrap(err, "start %s", r->name);
    }
    r->pid = child.pid;
    r->ready = false;
    r->conn = conn_new(w->loop, pair[0], pair[0], 0, role_frame, role_closed, r, err);
    return r->conn && loop_watch_pid(w->loop, child.pid, child.pidfd, role_ended, r, err);
}

static void role_restart(struct role *r) {
    struct err err = {0};
    if (++r->fails > MAX_STARTS) {
        fprintf(stderr, "cutepilot worker: the %s does not start\n", r->name);
        stop(r->w, 3);
    } else if (!role_start(r, &err)) {
        fprintf(stderr, "cutepilot worker: %s\n", err.text);
        stop(r->w, 3);
    }
}

static void announce(struct worker *w) {
    json *hello = json_object(), *sandbox = json_object();
    json_set_str(hello, "role", S("worker"));
    json_set_i64(hello, "protocol", WIRE_VERSION);
    json_set_str(hello, "build", S(CUTEPILOT_VERSION));
    json_set_i64(hello, "pid", getpid());
    json_set_str(hello, "device", str_view(w->name->text));
    json_set(sandbox, "device", json_copy(w->device.sandbox));
    json_set(sandbox, "judge", json_copy(w->judge.sandbox));
    json_set(hello, "sandbox", sandbox);
    conn_send(w->up, WIRE_HELLO, hello, (str){0}, NULL, 0);
    json_free(hello);
    w->announced = true;
}

static void role_hello(struct role *r, const struct frame *f) {
    struct worker *w = r->w;
    struct err err = {0};
    if (!role_check_hello(f->head, r->name, &err)) {
        fprintf(stderr, "cutepilot worker: %s\n", err.text);
        stop(w, 3);
        return;
    }
    r->ready = true;
    r->fails = 0;
    if (!r->sandbox && json_get(f->head, "sandbox"))
        r->sandbox = json_copy(json_get(f->head, "sandbox"));
    if (w->device.ready && w->judge.ready) {
        if (!w->announced)
            announce(w);
        if (w->step == STEP_WAIT_ROLES)
            next_step(w);
    }
}

static bool step_is_device(enum step s) {
    return s == STEP_LOAD || s == STEP_RUN || s == STEP_MEASURE;
}

static bool step_is_judge(enum step s) {
    return s == STEP_PREPARE || s == STEP_COMPARE;
}

static void device_died(struct worker *w, int status) {
    char space[64], why[160];
    w->loaded = false;
    if (!step_is_device(w->step))
        return; /* loaded again before the next run */
    if (w->timed_out) {
        snprintf(why, sizeof why, "still running after %lld ms", (long long)w->limit_ms);
        finish_as(w, VERDICT_TIMEOUT, why);
        return;
    }
    if (++w->tries < MAX_TRIES) {
        w->step = STEP_WAIT_ROLES;
        return;
    }
    str how = child_status_text(status, space, sizeof space);
    bool memory = (WIFEXITED(status) && WEXITSTATUS(status) == 3) ||
                  (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    snprintf(why, sizeof why, "the device process ended %d times: %.*s", MAX_TRIES, STR_ARG(how));
    finish_as(w, memory ? VERDICT_OUT_OF_MEMORY : VERDICT_CRASH, why);
}

static void judge_died(struct worker *w, int status) {
    char space[64], why[128];
    w->case_valid = false;
    if (w->step == STEP_IDLE)
        return;
    if (++w->judges >= MAX_JUDGES) {
        str how = child_status_text(status, space, sizeof space);
        snprintf(why, sizeof why, "the judge process ended %u times: %.*s", w->judges,
                 STR_ARG(how));
        fail(w, str_view(why));
    } else if (step_is_judge(w->step)) {
        w->step = STEP_WAIT_ROLES;
    }
}

static void role_ended(void *ctx, pid_t pid, int status) {
    struct role *r = ctx;
    struct worker *w = r->w;
    child_kill(pid); /* what is left of its group */
    r->pid = 0;
    r->ready = false;
    conn_free(r->conn);
    r->conn = NULL;
    if (r == &w->device)
        device_died(w, status);
    else
        judge_died(w, status);
    w->timed_out = false;
    role_restart(r);
}

static void role_closed(void *ctx, const struct err *why) {
    struct role *r = ctx;
    if (why->kind)
        fprintf(stderr, "cutepilot worker: %s: %s\n", r->name, why->text);
    if (r->pid)
        child_kill(r->pid); /* role_ended follows */
}

/* ---- the steps ---- */

static void clock_ran_out(void *ctx) {
    struct worker *w = ctx;
    struct role *r = step_is_device(w->step) ? &w->device : &w->judge;
    w->timer = 0;
    w->timed_out = r == &w->device;
    if (r->pid)
        child_kill(r->pid);
}

static void ask(struct worker *w, enum step step, struct role *r, uint32_t type, const json *head,
                str blob, const int *fds, size_t nfds) {
    loop_timer_cancel(w->loop, w->timer);
    w->timer = loop_timer(w->loop, r == &w->device ? (uint64_t)w->limit_ms : JUDGE_LIMIT_MS,
                          clock_ran_out, w);
    w->step = step;
    conn_send(r->conn, type, head, blob, fds, nfds);
}

static void ask_load(struct worker *w) {
    json *head = json_object();
    json_set(head, "task", json_copy(json_get(w->job.head, "task")));
    json_set(head, "file", json_copy(json_get(w->job.head, "file")));
    ask(w, STEP_LOAD, &w->device, WIRE_LOAD, head, w->job.blob, NULL, 0);
    json_free(head);
}

static bool counted_shape(const json *shape) {
    bool counted = false;
    json_get_bool(shape, "counted", &counted);
    return counted;
}

static void ask_prepare(struct worker *w, const json *shape) {
    json *head = json_object();
    json_set(head, "task", json_copy(json_get(w->job.head, "task")));
    json_set(head, "file", json_copy(json_get(w->job.head, "file")));
    json_set(head, "seed",
             counted_shape(shape) ? json_string(S(COUNTER_SEED))
                                  : json_copy(json_get(w->job.head, "seed")));
    json_set(head, "set", json_copy(json_get(shape, "set")));
    json_set(head, "data", json_copy(json_at(json_get(shape, "data"), w->data)));
    w->case_valid = true;
    ask(w, STEP_PREPARE, &w->judge, WIRE_PREPARE, head, (str){0}, NULL, 0);
    json_free(head);
}

/* From whatever is known: the next thing to ask for. */
static void next_step(struct worker *w) {
    const json *shapes = json_get(w->job.head, "shapes");
    const json *measure = json_get(w->job.head, "measure");
    while (w->shape < json_len(shapes) &&
           w->data >= json_len(json_get(json_at(shapes, w->shape), "data"))) {
        w->shape++;
        w->data = 0;
    }
    if (!w->device.ready || !w->judge.ready)
        w->step = STEP_WAIT_ROLES;
    else if (!w->loaded)
        ask_load(w);
    else if (w->shape < json_len(shapes))
        ask_prepare(w, json_at(shapes, w->shape));
    else if (json_is_object(measure))
        ask(w, STEP_MEASURE, &w->device, WIRE_MEASURE, measure, (str){0}, NULL, 0);
    else
        finish_accepted(w, w->counters);
}

static void got_case(struct worker *w, struct frame *f) {
    const json *shape = json_at(json_get(w->job.head, "shapes"), w->shape);
    json *head = json_object();
    json_set(head, "launches", json_copy(json_get(shape, "launches")));
    json_set(head, "tensors", json_copy(json_get(f->head, "tensors")));
    json_set_bool(head, "counted", counted_shape(shape));
    ask(w, STEP_RUN, &w->device, WIRE_RUN, head, (str){0}, f->fds, f->nfds);
    json_free(head);
}

static bool accepted(const struct frame *f, str *verdict, str *why) {
    *verdict = S("crash");
    *why = S("");
    json_get_str(f->head, "verdict", verdict);
    json_get_str(f->head, "why", why);
    return str_is(*verdict, verdict_name(VERDICT_ACCEPTED));
}

static void got_judged(struct worker *w, const struct frame *f) {
    const json *shape = json_at(json_get(w->job.head, "shapes"), w->shape);
    str verdict, why;
    if (!accepted(f, &verdict, &why)) {
        finish(w, verdict, why, f->head);
        return;
    }
    json *run = json_object();
    json_set(run, "shape", json_copy(json_get(shape, "label")));
    json_set(run, "data", json_copy(json_at(json_get(shape, "data"), w->data)));
    json_set(run, "worst", json_copy(json_get(f->head, "worst")));
    json_set(run, "rms", json_copy(json_get(f->head, "rms")));
    json_push(w->runs, run);
    if (w->counted) {
        json_free(w->counters);
        w->counters = w->counted;
        w->counted = NULL;
    }
    w->data++;
    w->tries = 0;
    next_step(w);
}

static void got_ran(struct worker *w, const struct frame *f) {
    const json *counters = json_get(f->head, "counters");
    json_free(w->counted);
    w->counted = counters ? json_copy(counters) : NULL;
    if (w->case_valid && w->judge.ready)
        ask(w, STEP_COMPARE, &w->judge, WIRE_COMPARE, NULL, (str){0}, NULL, 0);
    else
        next_step(w); /* the judge that knew the answer is gone */
}

/* An answer is expected from one role at a time; anything else is stale or broken. */
static void role_answer(struct worker *w, struct role *r, struct frame *f) {
    str verdict, why = S("no reason given");
    if (f->type == WIRE_ERROR) {
        json_get_str(f->head, "why", &why);
        fail(w, why);
    } else if (f->type == WIRE_CASE && w->step == STEP_PREPARE) {
        if (w->device.ready && w->loaded)
            got_case(w, f);
        else
            next_step(w);
    } else if (f->type == WIRE_JUDGED && w->step == STEP_COMPARE) {
        got_judged(w, f);
    } else if (f->type == WIRE_LOADED && w->step == STEP_LOAD) {
        w->loaded = accepted(f, &verdict, &why);
        if (w->loaded)
            next_step(w);
        else
            finish(w, verdict, why, NULL);
    } else if (f->type == WIRE_RAN && w->step == STEP_RUN) {
        if (!accepted(f, &verdict, &why))
            finish(w, verdict, why, NULL);
        else
            got_ran(w, f);
    } else if (f->type == WIRE_MEASURED && w->step == STEP_MEASURE) {
        if (accepted(f, &verdict, &why))
            finish_accepted(w, json_get(f->head, "counters"));
        else
            finish(w, verdict, why, NULL);
    } else {
        fprintf(stderr, "cutepilot worker: unexpected message %u from the %s\n", f->type, r->name);
        child_kill(r->pid);
    }
}

static void role_frame(void *ctx, struct frame *f) {
    struct role *r = ctx;
    if (f->type == WIRE_HELLO)
        role_hello(r, f);
    else
        role_answer(r->w, r, f);
    frame_release(f);
}

/* ---- the coordinator's side ---- */

/* Silence for long means a worker that is stopped or a connection that is gone. */
static void say_alive(void *ctx) {
    struct worker *w = ctx;
    conn_send(w->up, WIRE_ALIVE, NULL, (str){0}, NULL, 0);
    w->alive = loop_timer(w->loop, WIRE_ALIVE_MS, say_alive, w);
}

static void got_job(struct worker *w, struct frame *f) {
    w->job = *f;
    w->id = -1;
    w->limit_ms = 20000;
    json_get_i64(f->head, "job", &w->id);
    json_get_i64(f->head, "limit_ms", &w->limit_ms);
    w->shape = w->data = 0;
    w->tries = w->judges = 0;
    w->loaded = w->timed_out = false;
    w->runs = json_array();
    w->alive = loop_timer(w->loop, WIRE_ALIVE_MS, say_alive, w);
    next_step(w);
}

static void up_frame(void *ctx, struct frame *f) {
    struct worker *w = ctx;
    if (f->type == WIRE_JOB && w->step == STEP_IDLE) {
        got_job(w, f);
        return;
    }
    fprintf(stderr, "cutepilot worker: unexpected message %u\n", f->type);
    frame_release(f);
    stop(w, 3);
}

static void up_closed(void *ctx, const struct err *why) {
    struct worker *w = ctx;
    if (why->kind)
        fprintf(stderr, "cutepilot worker: %s\n", why->text);
    stop(w, why->kind ? 3 : 0);
}

/* The protocol's descriptors leave 0 and 1, so that nothing that prints can speak it. */
static bool move_descriptors(int *in, int *out, struct err *err) {
    *in = fcntl(0, F_DUPFD_CLOEXEC, 10);
    *out = fcntl(1, F_DUPFD_CLOEXEC, 10);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (*in < 0 || *out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
        return err_errno(err, ERR_ENV, "move stdin and stdout");
    close(null);
    return true;
}

static bool enter(struct worker *w, struct arena *a, struct err *err) {
    static const char *const all[] = {"/", NULL};
    static const char *const writable[] = {"/dev/null", NULL};
    struct sandbox_policy policy = {
        .read_only = all, .read_write = writable, .exec = true, .unix_sockets = true};
    struct sandbox_report report;
    int in, out;
    w->program = arena_cstr(a, self_path(a));
    return move_descriptors(&in, &out, err) && sandbox_enter(&policy, &report, err) &&
           (w->loop = loop_new(err)) &&
           (w->up = conn_new(w->loop, in, out, 0, up_frame, up_closed, w, err)) &&
           role_start(&w->device, err) && role_start(&w->judge, err);
}

int worker_main(const struct device_name *d, unsigned threads) {
    struct worker w = {.name = d, .exit_code = -1};
    struct arena *a = arena_new(1 << 20);
    struct err err = {0};
    w.device = (struct role){.w = &w, .name = "device"};
    w.judge = (struct role){.w = &w, .name = "judge"};
    snprintf(w.threads, sizeof w.threads, "%u", threads);
    bool ok = enter(&w, a, &err);
    while (ok && w.exit_code < 0)
        ok = loop_step(w.loop, -1, &err);
    if (!ok) {
        fprintf(stderr, "cutepilot worker: %s\n", err.text);
        w.exit_code = 3;
    }
    if (w.device.pid)
        child_kill(w.device.pid);
    if (w.judge.pid)
        child_kill(w.judge.pid);
    _exit(w.exit_code); /* the kernel takes the rest; nothing is left to flush */
}
