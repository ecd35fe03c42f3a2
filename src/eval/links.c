#include "eval/links.h"

#include "base/child.h"
#include "base/file.h"
#include "base/say.h"
#include "device/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_STARTS 3  /* in a row without a hello */
#define MAX_PREFIX 64 /* words of a worker's command */
#define MAX_JOBS   2  /* in a worker's hands: the one in work, and the next */

struct link {
    struct links *s;
    const char *argv[MAX_PREFIX + 4];
    pid_t pid;
    struct conn *conn;
    bool ready;
    unsigned fails;
    void *job[MAX_JOBS];
    int64_t serial[MAX_JOBS]; /* of the jobs, to tell their answers */
    unsigned jobs;
    uint64_t silence; /* timer: gives the worker up */
};

struct links {
    struct loop *loop;
    struct links_events ev;
    struct arena *arena;
    struct link *link;
    unsigned n;
    int64_t serial;
    bool broken;
    json *task; /* NULL: not set yet */
    str task_blob;
};

static void link_frame(void *ctx, struct frame *f);
static void link_closed(void *ctx, const struct err *why);
static void link_ended(void *ctx, pid_t pid, int status);

static void give_up(struct links *s, const struct err *why) {
    if (s->broken)
        return;
    s->broken = true;
    s->ev.broken(s->ev.ctx, why);
}

static bool link_start(struct link *k, struct err *err) {
    struct links *s = k->s;
    int in[2], out[2]; /* the worker's stdin and stdout */
    if (!pipe_pair(in, err))
        return false;
    if (!pipe_pair(out, err)) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = k->argv, .fds = fds, .nfds = 3};
    struct child child;
    bool ok = child_start(&spec, &child, err);
    close(in[0]);
    close(out[1]);
    if (!ok) {
        close(in[1]);
        close(out[0]);
        return err_wrap(err, "start a worker");
    }
    k->pid = child.pid;
    k->ready = false;
    k->conn = conn_new(s->loop, out[0], in[1], WIRE_NOISE, link_frame, link_closed, k, err);
    if (!k->conn) {
        close(child.pidfd);
        return false;
    }
    return loop_watch_pid(s->loop, child.pid, child.pidfd, link_ended, k, err);
}

static void link_silent(void *ctx) {
    struct link *k = ctx;
    k->silence = 0;
    complain("cutepilot: a worker was silent for %d s and is replaced\n", WIRE_DEAD_MS / 1000);
    child_kill(k->pid); /* link_ended follows */
}

static void link_heard(struct link *k) {
    loop_timer_cancel(k->s->loop, k->silence);
    k->silence = k->jobs ? loop_timer(k->s->loop, WIRE_DEAD_MS, link_silent, k) : 0;
}

static void link_ended(void *ctx, pid_t pid, int status) {
    struct link *k = ctx;
    struct links *s = k->s;
    loop_timer_cancel(s->loop, k->silence);
    k->silence = 0;
    struct err err = {0};
    char space[64];
    void *lost[MAX_JOBS];
    unsigned jobs = k->jobs;
    memcpy(lost, k->job, sizeof lost);
    child_kill_rest(pid);
    conn_free(k->conn);
    k->conn = NULL;
    k->pid = 0;
    k->jobs = 0;
    k->fails = k->ready ? 0 : k->fails + 1;
    k->ready = false;
    str how = child_status_text(status, space, sizeof space);
    if (k->fails >= MAX_STARTS) {
        err_set(&err, ERR_ENV, "the worker '%s' does not start: %.*s", k->argv[0], STR_ARG(how));
        give_up(s, &err);
    } else if (!s->broken && !link_start(k, &err)) {
        give_up(s, &err);
    }
    while (jobs > 1)
        s->ev.unbegun(s->ev.ctx, lost[--jobs]);
    if (jobs)
        s->ev.lost(s->ev.ctx, lost[0], S("the worker process died"));
}

static void link_closed(void *ctx, const struct err *why) {
    struct link *k = ctx;
    if (why->kind)
        complain("cutepilot: worker: %s\n", why->text);
    if (k->pid)
        child_kill(k->pid); /* link_ended follows */
}

static void send_task(struct link *k) {
    struct links *s = k->s;
    if (k->ready && s->task)
        conn_send(k->conn, WIRE_TASK, s->task, s->task_blob, NULL, 0);
}

void links_set_task(struct links *s, json *head, str blob) {
    json_free(s->task);
    s->task = head;
    s->task_blob = arena_str(s->arena, blob);
    for (unsigned i = 0; i < s->n; i++)
        send_task(&s->link[i]);
    s->ev.idle(s->ev.ctx);
}

static void link_hello(struct link *k, const struct frame *f) {
    struct err err = {0};
    if (!role_check_hello(f->head, "worker", &err)) {
        give_up(k->s, &err);
        return;
    }
    k->ready = true;
    send_task(k);
    k->s->ev.idle(k->s->ev.ctx);
}

static void link_answer(struct link *k, const struct frame *f) {
    struct links *s = k->s;
    int64_t serial = -1;
    str why = S("no reason given");
    json_get_i64(f->head, "job", &serial);
    if (!k->jobs || serial != k->serial[0])
        return;
    void *job = k->job[0];
    k->jobs--;
    for (unsigned i = 0; i < k->jobs; i++) {
        k->job[i] = k->job[i + 1];
        k->serial[i] = k->serial[i + 1];
    }
    link_heard(k);
    if (f->type == WIRE_FAILED) {
        json_get_str(f->head, "why", &why);
        s->ev.lost(s->ev.ctx, job, why);
        s->ev.idle(s->ev.ctx);
    } else {
        s->ev.idle(s->ev.ctx); /* first, so that it works while the result is dealt with */
        s->ev.result(s->ev.ctx, job, f->head);
    }
}

static void link_frame(void *ctx, struct frame *f) {
    struct link *k = ctx;
    if (f->type == WIRE_HELLO)
        link_hello(k, f);
    else if (f->type == WIRE_RESULT || f->type == WIRE_FAILED || f->type == WIRE_CEILED)
        link_answer(k, f);
    else if (f->type == WIRE_DUMPED && k->jobs && k->s->ev.dumped)
        k->s->ev.dumped(k->s->ev.ctx, k->job[0], f);
    else if (f->type == WIRE_ALIVE)
        link_heard(k);
    frame_release(f);
}

/* Whoever is to have the next job is known beforehand only where there is but one. */
static bool takes_one(const struct link *k) {
    return k->ready && k->s->task && k->jobs < (k->s->n == 1 ? MAX_JOBS : 1);
}

bool links_idle(const struct links *s) {
    for (unsigned i = 0; i < s->n; i++)
        if (takes_one(&s->link[i]))
            return true;
    return false;
}

bool links_send(struct links *s, uint32_t type, void *job, json *head, str blob) {
    for (unsigned i = 0; i < s->n; i++) {
        struct link *k = &s->link[i];
        if (!takes_one(k))
            continue;
        k->job[k->jobs] = job;
        k->serial[k->jobs++] = ++s->serial;
        json_set_i64(head, "job", s->serial);
        conn_send(k->conn, type, head, blob, NULL, 0);
        link_heard(k);
        return true;
    }
    return false;
}

static void set_command(struct link *k, const struct device_name *d, unsigned threads,
                        const char *const *command) {
    struct arena *a = k->s->arena;
    size_t n = 0;
    if (command)
        for (; n < MAX_PREFIX && command[n]; n++)
            k->argv[n] = command[n];
    else
        k->argv[n++] = arena_cstr(a, self_path(a));
    k->argv[n++] = "worker";
    k->argv[n++] = d->text;
    k->argv[n++] = arena_printf(a, "%u", threads).p;
    k->argv[n] = NULL;
}

struct links *links_new(struct loop *l, const struct device_name *d, unsigned n, unsigned threads,
                        const char *const *const *commands, const struct links_events *ev,
                        struct err *err) {
    struct links *s = mem_alloc(sizeof *s);
    unsigned ncommands = 0;
    while (commands && commands[ncommands])
        ncommands++;
    s->loop = l;
    s->ev = *ev;
    s->arena = arena_new(64u << 20);
    s->n = n;
    s->link = mem_alloc(n * sizeof *s->link);
    for (unsigned i = 0; i < n; i++) {
        s->link[i].s = s;
        set_command(&s->link[i], d, threads, ncommands ? commands[i % ncommands] : NULL);
        if (!link_start(&s->link[i], err)) {
            links_free(s);
            return NULL;
        }
    }
    return s;
}

void links_free(struct links *s) {
    if (!s)
        return;
    for (unsigned i = 0; i < s->n; i++) {
        struct link *k = &s->link[i];
        loop_timer_cancel(s->loop, k->silence);
        if (k->pid) {
            loop_unwatch_pid(s->loop, k->pid);
            child_kill(k->pid);
            child_wait(&(struct child){k->pid, -1});
        }
        conn_free(k->conn);
    }
    mem_free(s->link);
    json_free(s->task);
    arena_free(s->arena);
    mem_free(s);
}
