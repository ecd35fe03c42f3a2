/* The worker: the supervisor on the machine with the device. It never loads CUDA and never sees an
 * expected value; it starts device and judge, walks each job through them (worker_job.c), holds the
 * clock, and replaces whichever of the two dies.
 *
 * Signals do not cross ssh or srun: end of file on stdin is what ends a worker. */
#include "device/worker.h"

#include "base/child.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/say.h"
#include "device/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_STARTS 3 /* in a row without a hello */

static void stop(struct worker *w, int code) {
    if (w->exit_code < 0)
        w->exit_code = code;
}

/* ---- roles: start, hello, death ---- */

static void role_frame(void *ctx, struct frame *f);
static void role_closed(void *ctx, const struct err *why);
static void role_ended(void *ctx, pid_t pid, int status);

static void role_is_slow(void *ctx) {
    struct role *r = ctx;
    r->slow = 0;
    complain("cutepilot worker: the %s has not said hello in %llu ms and is replaced\n", r->name,
             (unsigned long long)r->w->start_ms);
    role_dismiss(r);
}

static void role_heard(struct role *r) {
    loop_timer_cancel(r->w->loop, r->slow);
    r->slow = 0;
}

static bool role_start(struct role *r, struct err *err) {
    struct worker *w = r->w;
    int pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_errno(err, ERR_ENV, "open /dev/null");
    if (!socket_pair(pair, err)) {
        close(null);
        return false;
    }
    const char *argv[] = {w->program, r->name, w->name->text, w->threads, NULL};
    struct child_fd fds[] = {{null, 0}, {null, 1}, {2, 2}, {pair[1], ROLE_FD}};
    struct child_spec spec = {.argv = argv, .fds = fds, .nfds = 4};
    struct child child;
    bool ok = child_start(&spec, &child, err);
    close(pair[1]);
    close(null);
    if (!ok) {
        close(pair[0]);
        return err_wrap(err, "start %s", r->name);
    }
    w->generation += r == &w->device;
    r->pid = child.pid;
    r->ready = false;
    r->slow = loop_timer(w->loop, w->start_ms, role_is_slow, r);
    r->conn = conn_new(w->loop, pair[0], pair[0], 0, role_frame, role_closed, r, err);
    if (!r->conn) {
        close(child.pidfd);
        return false;
    }
    return loop_watch_pid(w->loop, child.pid, child.pidfd, role_ended, r, err);
}

static void role_restart(struct role *r) {
    struct err err = {0};
    if (++r->fails > MAX_STARTS) {
        complain("cutepilot worker: the %s does not start\n", r->name);
        stop(r->w, 3);
    } else if (!role_start(r, &err)) {
        complain("cutepilot worker: %s\n", err.text);
        stop(r->w, 3);
    }
}

/* Slurm's name of the node is not always the machine's. */
static str node_name(char *space, size_t n) {
    const char *slurm = getenv("SLURMD_NODENAME");
    if (slurm && *slurm)
        return str_view(slurm);
    space[0] = space[n - 1] = 0;
    return gethostname(space, n - 1) == 0 ? str_view(space) : S("");
}

static void announce(struct worker *w) {
    json *hello = json_object(), *sandbox = json_object();
    char host[256];
    json_set_str(hello, "role", S("worker"));
    json_set_i64(hello, "protocol", WIRE_VERSION);
    json_set_str(hello, "build", S(CUTEPILOT_VERSION));
    json_set_i64(hello, "pid", getpid());
    json_set_str(hello, "device", str_view(w->name->text));
    json_set_str(hello, "node", node_name(host, sizeof host));
    if (w->device.facts)
        json_set(hello, "facts", json_copy(w->device.facts));
    json_set(sandbox, "device", json_copy(w->device.sandbox));
    json_set(sandbox, "judge", json_copy(w->judge.sandbox));
    json_set(hello, "sandbox", sandbox);
    conn_send(w->up, WIRE_HELLO, hello, (str){0}, NULL, 0);
    json_free(hello);
    w->announced = true;
}

static void keep_once(json **where, const json *from) {
    if (!*where && from)
        *where = json_copy(from);
}

static void send_task(struct role *r) {
    const struct frame *t = &r->w->task;
    if (r->ready && t->type)
        conn_send(r->conn, t->type, t->head, t->blob, NULL, 0);
}

static void role_said_hello(struct role *r, const struct frame *f) {
    struct worker *w = r->w;
    struct err err = {0};
    if (!role_check_hello(f->head, r->name, &err)) {
        complain("cutepilot worker: %s\n", err.text);
        stop(w, 3);
        return;
    }
    role_heard(r);
    r->ready = true;
    r->fails = 0;
    keep_once(&r->sandbox, json_get(f->head, "sandbox"));
    keep_once(&r->facts, json_get(f->head, "device"));
    send_task(r);
    if (w->device.ready && w->judge.ready) {
        if (!w->announced)
            announce(w);
        if (w->step == STEP_WAIT_ROLES)
            job_next(w);
    }
}

static void role_ended(void *ctx, pid_t pid, int status) {
    struct role *r = ctx;
    struct worker *w = r->w;
    child_kill_rest(pid);
    role_heard(r);
    r->pid = 0;
    r->ready = false;
    conn_free(r->conn);
    r->conn = NULL;
    if (r == &w->device)
        job_device_died(w, status);
    else
        job_judge_died(w, status);
    role_restart(r);
}

static void role_closed(void *ctx, const struct err *why) {
    struct role *r = ctx;
    if (why->kind)
        complain("cutepilot worker: %s: %s\n", r->name, why->text);
    if (r->pid)
        child_kill(r->pid); /* role_ended follows */
}

void role_dismiss(struct role *r) {
    r->ready = false;
    if (r->pid)
        child_kill(r->pid); /* role_ended follows */
}

/* A device that ends with its context says so in its answer. Nothing more is asked of it, or its
 * end would count against the next candidate; and its own end may take long. */
static void role_leaves(struct role *r, const json *answer) {
    bool leaving = false;
    if (json_get_bool(answer, "leaving", &leaving) && leaving)
        role_dismiss(r);
}

static void role_frame(void *ctx, struct frame *f) {
    struct role *r = ctx;
    role_leaves(r, f->head);
    if (f->type == WIRE_HELLO)
        role_said_hello(r, f);
    else
        job_answer(r->w, r, f);
    frame_release(f);
}

/* ---- the coordinator's side ---- */

static void up_frame(void *ctx, struct frame *f) {
    struct worker *w = ctx;
    bool job = f->type == WIRE_JOB || f->type == WIRE_CEILINGS;
    if (f->type == WIRE_TASK) {
        frame_release(&w->task);
        w->task = *f;
        send_task(&w->device);
        send_task(&w->judge);
    } else if (job && w->step == STEP_IDLE) {
        job_start(w, f);
    } else if (job && !w->next.type) {
        w->next = *f;
        w->next_us = clock_us();
    } else {
        complain("cutepilot worker: unexpected message %u\n", f->type);
        frame_release(f);
        stop(w, 3);
    }
}

static void up_closed(void *ctx, const struct err *why) {
    struct worker *w = ctx;
    if (why->kind)
        complain("cutepilot worker: %s\n", why->text);
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

/* A role's sandbox lies within its worker's. Each role writes to its own /proc/self, which only
 * the whole of /proc covers. */
static const char *const *writable_paths(struct arena *a, bool gpu) {
    size_t n = 0;
    while (role_gpu_paths[n])
        n++;
    const char **paths = arena_array(a, const char *, n + 2);
    paths[0] = gpu ? "/proc" : "/dev/null";
    for (size_t i = 0; gpu && i < n; i++)
        paths[i + 1] = role_gpu_paths[i];
    return paths;
}

static bool enter(struct worker *w, struct arena *a, struct err *err) {
    static const char *const all[] = {"/", NULL};
    bool gpu = w->name->kind == DEVICE_CUDA;
    struct sandbox_policy policy = {.read_only = all,
                                    .read_write = writable_paths(a, gpu),
                                    .exec = true,
                                    .unix_sockets = true,
                                    .devices = gpu};
    struct sandbox_report report;
    int in, out;
    w->program = arena_cstr(a, self_path(a));
    if (!rng_secret(&w->random))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    return move_descriptors(&in, &out, err) && sandbox_enter(&policy, &report, err) &&
           (w->loop = loop_new(err)) &&
           (w->up = conn_new(w->loop, in, out, 0, up_frame, up_closed, w, err)) &&
           role_start(&w->device, err) && role_start(&w->judge, err);
}

int worker_main(const struct device_name *d, unsigned threads, unsigned start_ms) {
    struct worker w = {.name = d, .start_ms = start_ms, .exit_code = -1};
    struct arena *a = arena_new(1 << 20);
    struct err err = {0};
    w.device = (struct role){.w = &w, .name = "device"};
    w.judge = (struct role){.w = &w, .name = "judge"};
    snprintf(w.threads, sizeof w.threads, "%u", threads);
    bool ok = enter(&w, a, &err);
    while (ok && w.exit_code < 0)
        ok = loop_step(w.loop, -1, &err);
    if (!ok) {
        complain("cutepilot worker: %s\n", err.text);
        w.exit_code = 3;
    }
    if (w.device.pid)
        child_kill(w.device.pid);
    if (w.judge.pid)
        child_kill(w.judge.pid);
    _exit(w.exit_code); /* the kernel takes the rest; nothing is left to flush */
}
