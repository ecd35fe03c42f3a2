#include "eval/links.h"

#include "base/child.h"
#include "base/file.h"
#include "base/say.h"
#include "device/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_STARTS 3     /* in a row without a hello: then only now and then */
#define RETRY_MS   15000 /* "now and then" */
#define MAX_PREFIX 64    /* words of a worker's command */
#define MAX_JOBS   2     /* in a worker's hands: the one in work, and the next */
#define TAIL_BYTES 1024  /* of stderr, for messages */
#define SHOWN_MOST 16384 /* bytes of a worker's stderr that are passed on */
#define DRAIN_MS   100   /* between looks at the stderr of one that prints without end */
#define CHUNK      16384
#define DRAINS     16   /* chunks of stderr that are read at once */
#define END_MS     1000 /* for killed processes to end */

/* Apart from a link, so that looking through many links for a free one touches little memory. */
struct words {
    struct err why;                           /* it is being killed; none: it ended by itself */
    char said[sizeof((struct err *)0)->text]; /* about it, last */
    char tail[TAIL_BYTES];                    /* of its stderr */
    size_t ntail;
};

struct link {
    struct links *s;
    size_t number; /* from 1, for messages */
    const struct worker_place *place;
    const char **argv;
    pid_t pid; /* 0: not running */
    struct conn *conn;
    bool ready, leaves; /* leaves: it is being killed, or has closed its output */
    bool dismissed;     /* by us, for nothing that it did */
    bool out;           /* left out: of another version, or on another GPU */
    unsigned fails;
    struct words *words;
    int errors; /* our end of its stderr; -1: closed */
    size_t shown;
    str node, gpu; /* by its hello; in the arena */
    void *job[MAX_JOBS];
    int64_t serial[MAX_JOBS]; /* of the jobs, to tell their answers */
    unsigned jobs;
    uint64_t limit; /* timer: of the hello, of silence, or until it is started again */
    uint64_t drain; /* timer: until its stderr is looked at again */
};

struct links {
    struct loop *loop;
    struct links_events ev;
    struct arena *arena;
    struct link *link;
    unsigned n, hello_ms;
    int64_t serial;
    bool broken;
    json *task; /* NULL: not set yet */
    str task_blob;
};

static void link_frame(void *ctx, struct frame *f);
static void link_closed(void *ctx, const struct err *why);
static void link_ended(void *ctx, pid_t pid, int status);
static void link_retry(void *ctx);

static void give_up(struct links *s, const struct err *why) {
    if (s->broken)
        return;
    s->broken = true;
    s->ev.broken(s->ev.ctx, why);
}

/* ---- words ---- */

static bool is_srun(const struct link *k) {
    const char *const *c = k->place->command;
    return c && (str_is(str_view(c[0]), "srun") || str_ends(str_view(c[0]), S("/srun")));
}

static bool has_word(const struct link *k, const char *word) {
    for (size_t i = 0; k->argv[i]; i++)
        if (str_is(str_view(k->argv[i]), word))
            return true;
    return false;
}

/* "worker 2 ('ssh a cutepilot', cuda:0)" */
static void put_name(const struct link *k, struct buf *out) {
    buf_printf(out, "worker %zu (", k->number);
    for (size_t i = 0; k->place->command && k->place->command[i]; i++)
        buf_printf(out, "%s%s", i ? " " : "'", k->place->command[i]);
    buf_printf(out, "%s%s)", k->place->command ? "', " : "", k->place->device.text);
}

/* What to do about what a login or a launcher prints, by a part of it. */
static const struct {
    const char *printed, *hint;
} hints[] = {
    {"execve()", "the program must be at that path on every node: put dist/cutepilot (make "
                 "portable) into a folder that they share, and start it from there"},
    {"command not found", "name the program's whole path there: 'ssh HOST /PATH/cutepilot'"},
    {"Host key verification failed", "log in once by hand, so that the host's key is known"},
    {"Permission denied (",
     "a login must not ask for anything: 'ssh-copy-id HOST' puts a key there"},
    {"GLIBC_", "dist/cutepilot (make portable) needs no newer C library than that machine has"},
};

static void put_hint(str printed, struct buf *out) {
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (str_find(printed, str_view(hints[i].printed)) < printed.n) {
            buf_printf(out, "\nhint: %s", hints[i].hint);
            return;
        }
}

/* What the command printed: on stdout instead of frames, and the end of its stderr. */
static void put_printed(const struct link *k, struct buf *out) {
    str said = k->conn ? conn_said(k->conn) : S(""),
        tail = str_trim((str){k->words->tail, k->words->ntail});
    if (said.n)
        buf_printf(out, "; its command said: %.*s", STR_ARG(str_trim(said)));
    if (tail.n)
        buf_printf(out, "; its command printed: %.*s", STR_ARG(tail));
    else if (!said.n)
        buf_puts(out, S("; its command printed nothing"));
    put_hint(tail, out);
    if (is_srun(k) && !has_word(k, "-u") && !has_word(k, "--unbuffered"))
        buf_puts(out, S("\nhint: srun keeps output back until it has whole lines, which frames are "
                        "not: use 'srun -u'"));
}

/* The whole message, by who it is about; `what` is why->text. */
static void name_failure(const struct link *k, struct err *why, bool printed) {
    struct buf b;
    buf_init(&b, sizeof why->text);
    put_name(k, &b);
    buf_printf(&b, ": %s", why->text);
    if (printed)
        put_printed(k, &b);
    err_set(why, ERR_ENV, "%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
}

/* ---- stderr ---- */

static void link_errors(void *ctx, int fd, unsigned events);

static void link_drain(void *ctx) {
    struct link *k = ctx;
    struct err ignored;
    k->drain = 0;
    loop_watch(k->s->loop, k->errors, LOOP_READ, link_errors, k, &ignored);
}

static void keep_tail(struct link *k, str s) {
    s = str_from(s, s.n > TAIL_BYTES ? s.n - TAIL_BYTES : 0);
    size_t kept = k->words->ntail < TAIL_BYTES - s.n ? k->words->ntail : TAIL_BYTES - s.n;
    memmove(k->words->tail, k->words->tail + k->words->ntail - kept, kept);
    memcpy(k->words->tail + kept, s.p, s.n);
    k->words->ntail = kept + s.n;
}

/* After the hello it is passed on: the worker has something to say. */
static void take_errors(struct link *k, str s) {
    bool more = k->shown < SHOWN_MOST;
    if (k->ready && more) {
        k->shown += s.n;
        complain("%.*s", STR_ARG(s));
        if (k->shown >= SHOWN_MOST)
            complain("\ncutepilot: worker %zu prints without end; the rest is left out\n",
                     k->number);
    }
    if (!k->ready)
        keep_tail(k, s);
}

static void close_errors(struct link *k) {
    if (k->errors < 0)
        return;
    loop_timer_cancel(k->s->loop, k->drain);
    loop_unwatch(k->s->loop, k->errors);
    close(k->errors);
    k->drain = 0;
    k->errors = -1;
}

/* One reading call; false: nothing is there now. */
static bool read_errors(struct link *k) {
    char bytes[CHUNK];
    ssize_t n = k->errors < 0 ? 0 : read(k->errors, bytes, sizeof bytes);
    if (n > 0)
        take_errors(k, (str){bytes, (size_t)n});
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_errors(k);
    return n > 0;
}

static void drain_errors(struct link *k) {
    for (int i = 0; i < DRAINS && read_errors(k); i++)
        ;
}

static void link_errors(void *ctx, int fd, unsigned events) {
    struct link *k = ctx;
    (void)fd, (void)events;
    if (!read_errors(k) || k->shown < SHOWN_MOST)
        return;
    loop_unwatch(k->s->loop, k->errors); /* it may go on for ever: a little at a time */
    k->drain = loop_timer(k->s->loop, DRAIN_MS, link_drain, k);
}

/* ---- start and end ---- */

/* It is killed for this reason; link_ended follows. */
static void link_kill(struct link *k, const struct err *why) {
    if (!k->pid)
        return;
    if (!k->words->why.kind)
        k->words->why = *why;
    k->leaves = true;
    loop_timer_cancel(k->s->loop, k->limit);
    k->limit = 0;
    child_kill(k->pid);
}

static void link_is_late(void *ctx) {
    struct link *k = ctx;
    struct err why = {0};
    k->limit = 0;
    err_set(&why, ERR_ENV, "no hello within %g s", k->s->hello_ms / 1000.0);
    link_kill(k, &why);
}

struct ends {
    int in[2], out[2], errors[2]; /* the worker's stdin, stdout and stderr */
};

static bool open_ends(struct ends *e, struct err *err) {
    if (!pipe_pair(e->in, err))
        return false;
    if (pipe_pair(e->out, err)) {
        if (pipe_pair(e->errors, err) && fcntl(e->errors[0], F_SETFL, O_NONBLOCK) == 0)
            return true;
        close(e->out[0]);
        close(e->out[1]);
    }
    close(e->in[0]);
    close(e->in[1]);
    return false;
}

static bool link_start(struct link *k, struct err *err) {
    struct links *s = k->s;
    struct ends e;
    if (!open_ends(&e, err))
        return false;
    struct child_fd fds[] = {{e.in[0], 0}, {e.out[1], 1}, {e.errors[1], 2}};
    struct child_spec spec = {.argv = k->argv, .fds = fds, .nfds = 3};
    struct child child;
    bool ok = child_start(&spec, &child, err);
    close(e.in[0]);
    close(e.out[1]);
    close(e.errors[1]);
    if (!ok) {
        close(e.in[1]);
        close(e.out[0]);
        close(e.errors[0]);
        return err_wrap(err, "start a worker");
    }
    k->pid = child.pid;
    k->ready = false;
    k->dismissed = k->leaves = false;
    k->words->why = (struct err){0};
    k->errors = e.errors[0];
    k->words->ntail = k->shown = 0;
    k->limit = loop_timer(s->loop, s->hello_ms, link_is_late, k);
    k->conn = conn_new(s->loop, e.out[0], e.in[1], WIRE_NOISE, link_frame, link_closed, k, err);
    if (!k->conn) {
        close(child.pidfd);
        return false;
    }
    return loop_watch(s->loop, k->errors, LOOP_READ, link_errors, k, err) &&
           loop_watch_pid(s->loop, child.pid, child.pidfd, link_ended, k, err);
}

static void link_silent(void *ctx) {
    struct link *k = ctx;
    struct err why = {0};
    k->limit = 0;
    err_set(&why, ERR_ENV, "silent for %d s", WIRE_DEAD_MS / 1000);
    link_kill(k, &why);
}

static void link_heard(struct link *k) {
    loop_timer_cancel(k->s->loop, k->limit);
    k->limit = k->jobs ? loop_timer(k->s->loop, WIRE_DEAD_MS, link_silent, k) : 0;
}

/* Whether another one works, or may still come to. */
static bool has_others(const struct links *s) {
    for (unsigned i = 0; i < s->n; i++)
        if (!s->link[i].out && s->link[i].fails < MAX_STARTS)
            return true;
    return false;
}

/* The same is said once. */
static void link_complain(struct link *k, const struct err *why) {
    if (k->dismissed)
        return;
    if (strcmp(k->words->said, why->text) != 0)
        complain("cutepilot: %s%s\n", why->text, k->out ? "\nIt is left out." : "");
    snprintf(k->words->said, sizeof k->words->said, "%s", why->text);
    if (!k->out && k->fails == MAX_STARTS)
        complain("cutepilot: worker %zu failed %d times; it is tried again every %d s\n", k->number,
                 MAX_STARTS, RETRY_MS / 1000);
}

/* The others were left out, or wait for another try that does not come any more. */
static void last_failed(struct links *s, const struct err *why) {
    struct err last = *why;
    err_set(&last, why->kind,
            "no worker is left, so the run ends; the same command goes on with it: %s", why->text);
    give_up(s, &last);
}

/* It failed, as `why` says, and is started again at once, later or not at all. */
static void link_failed(struct link *k, const struct err *why) {
    struct links *s = k->s;
    struct err err = {0};
    if (s->broken)
        return;
    if (!has_others(s)) {
        last_failed(s, why);
        return;
    }
    link_complain(k, why);
    if (!k->out && k->fails >= MAX_STARTS)
        k->limit = loop_timer(s->loop, RETRY_MS, link_retry, k);
    else if (!k->out && !link_start(k, &err))
        give_up(s, &err);
}

static void link_retry(void *ctx) {
    struct link *k = ctx;
    struct err err = {0};
    k->limit = 0;
    if (!k->s->broken && !link_start(k, &err))
        give_up(k->s, &err);
}

static void link_release(struct link *k) {
    loop_timer_cancel(k->s->loop, k->limit);
    k->limit = 0;
    close_errors(k);
    conn_free(k->conn);
    k->conn = NULL;
    k->pid = 0;
    k->jobs = 0;
    k->ready = false;
}

/* Why it ended, by whoever killed it or by its own status. */
static void find_reason(struct link *k, int status, struct err *why) {
    char space[64];
    str how = child_status_text(status, space, sizeof space);
    *why = k->words->why;
    if (!why->kind)
        err_set(why, ERR_ENV, k->ready ? "it ended (%.*s)" : "it does not start (%.*s)",
                STR_ARG(how));
    name_failure(k, why, !k->ready);
}

static void link_ended(void *ctx, pid_t pid, int status) {
    struct link *k = ctx;
    struct links *s = k->s;
    struct err why;
    void *lost[MAX_JOBS];
    unsigned jobs = k->jobs;
    memcpy(lost, k->job, sizeof lost);
    child_kill_rest(pid);
    drain_errors(k);
    find_reason(k, status, &why);
    k->fails = k->ready ? 0 : k->fails + 1;
    link_release(k);
    link_failed(k, &why);
    while (jobs > 1)
        s->ev.not_started(s->ev.ctx, lost[--jobs]);
    if (jobs)
        s->ev.lost(s->ev.ctx, lost[0], S("the worker process died"));
}

static void link_lingers(void *ctx) {
    struct link *k = ctx;
    struct err why = {0};
    k->limit = 0;
    err_set(&why, ERR_ENV, "it closed its output and did not end");
    link_kill(k, &why);
}

/* It gets a moment to end by itself, so that its status and last words are known. */
static void link_closed(void *ctx, const struct err *why) {
    struct link *k = ctx;
    if (!k->pid)
        return;
    if (!k->words->why.kind)
        k->words->why = *why;
    k->leaves = true;
    loop_timer_cancel(k->s->loop, k->limit);
    k->limit = loop_timer(k->s->loop, END_MS, link_lingers, k);
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

static str text_of(struct link *k, const json *head, const char *key) {
    str s = S("");
    json_get_str(head, key, &s);
    return arena_str(k->s->arena, s);
}

/* Once a place: a worker that is started again is where it was. */
static void keep_where(struct link *k, const json *hello) {
    const json *facts = json_get(hello, "facts");
    if (!k->node.n)
        k->node = text_of(k, hello, "node");
    if (!k->gpu.n && facts)
        k->gpu = arena_printf(k->s->arena, "%.*s %.*s", STR_ARG(text_of(k, facts, "name")),
                              STR_ARG(text_of(k, facts, "uuid")));
}

static void link_hello(struct link *k, const struct frame *f) {
    struct links *s = k->s;
    struct err why = {0};
    if (k->ready || k->leaves)
        return;
    if (!role_check_hello(f->head, "worker", &why) ||
        (s->ev.fits && !s->ev.fits(s->ev.ctx, f->head, &why))) {
        k->out = true;
        link_kill(k, &why);
        return;
    }
    if (k->fails >= MAX_STARTS)
        complain("cutepilot: worker %zu is back\n", k->number);
    k->fails = 0;
    drain_errors(k); /* what was printed before it is not the worker's */
    k->ready = true;
    keep_where(k, f->head);
    link_heard(k);
    send_task(k);
    s->ev.idle(s->ev.ctx);
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
        s->ev.result(s->ev.ctx, job, &(struct worker_where){k->node, k->gpu}, f->head);
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

void links_abandon(struct links *s) {
    struct err why = {0};
    err_set(&why, ERR_ENV, "its job was given up");
    for (unsigned i = 0; i < s->n; i++)
        if (s->link[i].jobs) {
            s->link[i].jobs = 0;
            s->link[i].dismissed = true;
            link_kill(&s->link[i], &why);
        }
}

/* Whoever is to have the next job is known beforehand only where there is but one. */
static bool takes_one(const struct link *k) {
    return k->ready && !k->leaves && k->s->task && k->jobs < (k->s->n == 1 ? MAX_JOBS : 1);
}

bool links_idle(const struct links *s) {
    for (unsigned i = 0; i < s->n; i++)
        if (takes_one(&s->link[i]))
            return true;
    return false;
}

int64_t links_next(const struct links *s) {
    return s->serial + 1;
}

bool links_send(struct links *s, uint32_t type, void *job, str head, str blob) {
    for (unsigned i = 0; i < s->n; i++) {
        struct link *k = &s->link[i];
        if (!takes_one(k))
            continue;
        k->job[k->jobs] = job;
        k->serial[k->jobs++] = ++s->serial;
        conn_send_text(k->conn, type, head, blob, NULL, 0);
        link_heard(k);
        return true;
    }
    return false;
}

static void set_command(struct link *k, unsigned threads) {
    struct arena *a = k->s->arena;
    const char *const *command = k->place->command;
    size_t n = 0;
    k->argv = arena_array(a, const char *, MAX_PREFIX + 4);
    if (command)
        for (; n < MAX_PREFIX && command[n]; n++)
            k->argv[n] = command[n];
    else
        k->argv[n++] = arena_cstr(a, self_path(a));
    k->argv[n++] = "worker";
    k->argv[n++] = k->place->device.text;
    k->argv[n++] = arena_printf(a, "%u", threads).p;
    k->argv[n] = NULL;
}

struct links *links_new(struct loop *l, const struct links_options *o,
                        const struct links_events *ev, struct err *err) {
    struct links *s = mem_alloc(sizeof *s);
    s->loop = l;
    s->ev = *ev;
    s->arena = arena_new(64u << 20);
    s->hello_ms = o->hello_ms ? o->hello_ms : LINKS_HELLO_MS;
    s->n = o->workers;
    s->link = mem_alloc(s->n * sizeof *s->link);
    for (unsigned i = 0; i < s->n; i++)
        s->link[i].errors = -1;
    for (unsigned i = 0; i < s->n; i++) {
        struct link *k = &s->link[i];
        k->s = s;
        k->number = i + 1;
        k->place = &o->places[i % o->nplaces];
        k->words = arena_new_of(s->arena, struct words);
        set_command(k, o->threads);
        if (!link_start(k, err)) {
            links_free(s);
            return NULL;
        }
    }
    return s;
}

/* All are killed before any is waited for, and one that cannot die (a driver that hangs) is not. */
void links_free(struct links *s) {
    if (!s)
        return;
    for (unsigned i = 0; i < s->n; i++)
        if (s->link[i].pid) {
            loop_unwatch_pid(s->loop, s->link[i].pid);
            child_kill(s->link[i].pid);
        }
    uint64_t until = clock_ms() + END_MS;
    for (unsigned i = 0; i < s->n; i++) {
        if (s->link[i].pid)
            child_wait_until(s->link[i].pid, until);
        if (s->link[i].s)
            link_release(&s->link[i]);
    }
    mem_free(s->link);
    json_free(s->task);
    arena_free(s->arena);
    mem_free(s);
}
