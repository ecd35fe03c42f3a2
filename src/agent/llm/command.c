/* A program that answers: the prompt on its stdin, the answer from its stdout, one run a call.
 *
 * The command is given to sh -c, in a process group of its own that is killed as a whole when the
 * time is up, the call is cancelled, or the program has ended and left others behind. It inherits
 * the user's environment, since its keys, if any, are its own affair. Exit code 0 is an answer; 75
 * (EX_TEMPFAIL) says that the model is away; 126 and 127 that there is no such program. */
#include "agent/llm/backend.h"
#include "agent/llm/dialect.h"

#include "base/child.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    NOISE_BYTES = 4096, /* of stderr, the last ones */
    LINGER_MS = 1000,   /* for output that is still in the pipe, or held by what it started */
    NOT_EXECUTABLE = 126,
    NOT_FOUND = 127,
};

struct command {
    struct loop *loop;
    struct arena *arena;
    const char *line, *model;
    bool as_json;
    double temperature;
    uint64_t timeout_ms;
};

struct run {
    struct command *command;
    uint64_t timer;
    pid_t pid;
    int in, out, noise_fd; /* our ends; -1: closed */
    bool ended, late;
    int status;
    struct buf sent, got, noise;
    size_t written;
    attempt_fn *done;
    void *ctx;
};

/* ---- the prompt ---- */

static void write_json(const struct command *c, const struct llm_request *q, struct buf *out) {
    json *j = json_object();
    json_set_str(j, "role", str_view(q->role));
    json_set_i64(j, "ordinal", (int64_t)q->ordinal);
    if (q->candidate != UINT64_MAX)
        json_set_i64(j, "candidate", (int64_t)q->candidate);
    json_set_str(j, "model", str_view(c->model));
    json_set_i64(j, "max_tokens", (int64_t)q->max_tokens);
    if (!isnan(c->temperature))
        json_set_f64(j, "temperature", c->temperature);
    json_set_str(j, "system", q->system);
    json_set_str(j, "user", q->user);
    json_write(j, out);
    buf_putc(out, '\n');
    json_free(j);
}

static void write_text(const struct llm_request *q, struct buf *out) {
    buf_puts(out, q->system);
    if (q->system.n)
        buf_puts(out, S("\n\n"));
    buf_puts(out, q->user);
    buf_putc(out, '\n');
}

/* ---- the end ---- */

static void close_end(struct loop *l, int *fd) {
    if (*fd < 0)
        return;
    loop_unwatch(l, *fd);
    close(*fd);
    *fd = -1;
}

static void run_free(struct run *r) {
    struct command *c = r->command;
    close_end(c->loop, &r->in);
    close_end(c->loop, &r->out);
    close_end(c->loop, &r->noise_fd);
    loop_timer_cancel(c->loop, r->timer);
    if (r->pid && r->ended)
        child_kill_rest(r->pid);
    if (r->pid && !r->ended) {
        struct child child = {r->pid, -1};
        loop_unwatch_pid(c->loop, r->pid);
        child_kill(r->pid);
        child_wait(&child);
    }
    buf_release(&r->sent);
    buf_release(&r->got);
    buf_release(&r->noise);
    mem_free(r);
}

/* Bytes that are not UTF-8 become U+FFFD, so that a recording holds what was seen. */
static void put_clean(str s, struct buf *out) {
    while (s.n) {
        size_t n = str_utf8(s);
        buf_puts(out, n ? str_cut(s, 0, n) : S("\xef\xbf\xbd"));
        s = str_from(s, n ? n : 1);
    }
}

static void on_noise(void *ctx, int fd, unsigned events) {
    struct run *r = ctx;
    char bytes[NOISE_BYTES];
    (void)events;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0) {
        size_t over = r->noise.n + (size_t)n;
        if (over > NOISE_BYTES)
            buf_drop(&r->noise, over - NOISE_BYTES < r->noise.n ? over - NOISE_BYTES : r->noise.n);
        buf_put(&r->noise, bytes, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_end(r->command->loop, &r->noise_fd);
    }
}

/* What it said last may still be in the pipe when its end is known. */
static void drain_noise(struct run *r) {
    for (int i = 0; i < 64 && r->noise_fd >= 0; i++)
        on_noise(r, r->noise_fd, 0);
}

static void judge_exit(const struct run *r, struct attempt *a, char *why, size_t n) {
    char space[64], noise[512];
    int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
    str status = child_status_text(r->status, space, sizeof space);
    line_of(buf_str(&r->noise), noise, sizeof noise);
    snprintf(why, n, "the command ended with %.*s%s%s", STR_ARG(status), *noise ? ": " : "", noise);
    if (code == 0 && str_trim(buf_str(&r->got)).n) {
        a->end = ATTEMPT_ANSWERED;
    } else if (code == 0) {
        snprintf(why, n, "the command answered nothing%s%s", *noise ? ": " : "", noise);
    } else if (code == EX_TEMPFAIL) {
        a->end = ATTEMPT_AWAY;
        a->used = false;
    } else if (code == NOT_FOUND || code == NOT_EXECUTABLE) {
        a->end = ATTEMPT_REFUSED;
        a->kind = ERR_INPUT;
        a->used = false;
    }
}

static void run_end(struct run *r) {
    struct attempt a = {.end = ATTEMPT_BAD, .used = true};
    char why[768];
    struct buf text;
    attempt_fn *done = r->done;
    void *ctx = r->ctx;
    buf_init(&text, 4 * ANSWER_MAX_TEXT);
    drain_noise(r);
    if (r->late)
        snprintf(why, sizeof why, "the command took longer than %" PRIu64 " s and was killed",
                 r->command->timeout_ms / 1000);
    else if (r->got.failed)
        snprintf(why, sizeof why, "the command's answer is over %d MiB", ANSWER_MAX_TEXT >> 20);
    else
        judge_exit(r, &a, why, sizeof why);
    put_clean(buf_str(&r->got), &text);
    a.text = buf_str(&text);
    a.why = why;
    run_free(r);
    done(ctx, &a);
    buf_release(&text);
}

static void on_linger(void *ctx) {
    struct run *r = ctx;
    r->timer = 0;
    run_end(r);
}

/* Both its end and the end of its output: whichever comes last. */
static void run_check(struct run *r) {
    struct loop *l = r->command->loop;
    if (r->late || r->got.failed || (r->ended && r->out < 0)) {
        run_end(r);
    } else if (r->ended) {
        loop_timer_cancel(l, r->timer);
        r->timer = loop_timer(l, LINGER_MS, on_linger, r);
    }
}

static void on_late(void *ctx) {
    struct run *r = ctx;
    r->timer = 0;
    r->late = true;
    run_check(r);
}

static void on_exit_of(void *ctx, pid_t pid, int status) {
    struct run *r = ctx;
    (void)pid;
    r->ended = true;
    r->status = status;
    run_check(r);
}

/* ---- the pipes ---- */

static void on_in(void *ctx, int fd, unsigned events) {
    struct run *r = ctx;
    (void)events;
    ssize_t n = write(fd, r->sent.p + r->written, r->sent.n - r->written);
    if (n > 0)
        r->written += (size_t)n;
    /* A program that does not read to the end may still answer. */
    if (r->written == r->sent.n || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_end(r->command->loop, &r->in);
}

static void on_out(void *ctx, int fd, unsigned events) {
    struct run *r = ctx;
    char bytes[65536];
    (void)events;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0)
        buf_put(&r->got, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_end(r->command->loop, &r->out);
    if (r->out < 0 || r->got.failed)
        run_check(r);
}

/* ---- the start ---- */

static bool start_child(struct run *r, int in, int out, int noise, struct err *err) {
    const char *argv[] = {"sh", "-c", r->command->line, NULL};
    struct child_fd fds[] = {{in, 0}, {out, 1}, {noise, 2}};
    struct child_spec spec = {
        .argv = argv, .env = (const char *const *)environ, .fds = fds, .nfds = 3};
    struct child child;
    if (!child_start(&spec, &child, err))
        return false;
    r->pid = child.pid;
    return loop_watch_pid(r->command->loop, child.pid, child.pidfd, on_exit_of, r, err);
}

static bool watch_pipes(struct run *r, struct err *err) {
    struct loop *l = r->command->loop;
    int fds[] = {r->in, r->out, r->noise_fd};
    for (size_t i = 0; i < 3; i++)
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) != 0)
            return err_errno(err, ERR_ENV, "pipe");
    return loop_watch(l, r->in, LOOP_WRITE, on_in, r, err) &&
           loop_watch(l, r->out, LOOP_READ, on_out, r, err) &&
           loop_watch(l, r->noise_fd, LOOP_READ, on_noise, r, err);
}

static bool run_start(struct run *r, struct err *err) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, noise[2] = {-1, -1};
    bool ok = pipe_pair(in, err) && pipe_pair(out, err) && pipe_pair(noise, err) &&
              start_child(r, in[0], out[1], noise[1], err);
    r->in = in[1];
    r->out = out[0];
    r->noise_fd = noise[0];
    int theirs[] = {in[0], out[1], noise[1]};
    for (size_t i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    return ok && watch_pipes(r, err);
}

static void *command_start(void *self, const struct llm_request *q, attempt_fn *done, void *ctx,
                           struct err *err) {
    struct command *c = self;
    struct run *r = mem_alloc(sizeof *r);
    *r = (struct run){.command = c, .done = done, .ctx = ctx};
    r->in = r->out = r->noise_fd = -1;
    buf_init(&r->sent, SIZE_MAX / 2);
    buf_init(&r->got, ANSWER_MAX_TEXT);
    buf_init(&r->noise, 2 * NOISE_BYTES);
    if (c->as_json)
        write_json(c, q, &r->sent);
    else
        write_text(q, &r->sent);
    if (!run_start(r, err)) {
        run_free(r);
        return NULL;
    }
    r->timer = loop_timer(c->loop, c->timeout_ms, on_late, r);
    return r;
}

static void command_abort(void *attempt) {
    run_free(attempt);
}

static void command_release(void *self) {
    arena_free(((struct command *)self)->arena);
}

bool command_open(struct loop *l, const struct provider_options *o, struct backend *out,
                  struct err *err) {
    if (!o->command || !*o->command)
        return err_set(err, ERR_INPUT, "command: name the program with --command");
    struct arena *a = arena_new(1 << 20);
    struct command *c = arena_new_of(a, struct command);
    *c = (struct command){.loop = l, .arena = a, .line = o->command, .model = o->model};
    c->as_json = o->command_json;
    c->temperature = o->temperature;
    c->timeout_ms = o->timeout_ms;
    *out = (struct backend){c, command_start, command_abort, command_release};
    return true;
}
