#include "base/child.h"
#include "base/loop.h"
#include "tap.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;

struct seen {
    struct loop *l;
    int calls, fd, other;
    unsigned events;
    int status;
    uint64_t timer;
    char order[16];
};

static void on_fd(void *ctx, int fd, unsigned events) {
    struct seen *s = ctx;
    char c;
    s->calls++;
    s->events = events;
    if ((events & LOOP_READ) && read(fd, &c, 1) == 0)
        loop_unwatch(s->l, fd);
}

static void reads_and_hangs_up(void) {
    struct seen s = {.l = loop_new(&err)};
    int p[2];
    CHECK(s.l && pipe_pair(p, &err));
    CHECK(loop_watch(s.l, p[0], LOOP_READ, on_fd, &s, &err));
    CHECK(loop_step(s.l, 0, &err) && s.calls == 0);
    CHECK(write(p[1], "x", 1) == 1);
    CHECK(loop_step(s.l, 1000, &err) && s.calls == 1 && s.events == LOOP_READ);
    close(p[1]);
    CHECK(loop_step(s.l, 1000, &err) && s.calls == 2 && (s.events & LOOP_HUP));
    CHECK(s.events & LOOP_READ); /* a hang-up is readable, so that one path handles it */
    CHECK(loop_step(s.l, 0, &err) && s.calls == 2);
    close(p[0]);
    loop_free(s.l);
}

static void watching_again_changes(void) {
    struct seen a = {.l = loop_new(&err)}, b = {.l = a.l};
    int p[2];
    CHECK(socket_pair(p, &err));
    CHECK(loop_watch(a.l, p[0], LOOP_READ, on_fd, &a, &err));
    CHECK(loop_watch(a.l, p[0], LOOP_WRITE, on_fd, &b, &err));
    CHECK(loop_step(a.l, 1000, &err) && a.calls == 0 && b.calls == 1 && b.events == LOOP_WRITE);
    /* Closed without unwatching, and the number used again. */
    close(p[0]);
    CHECK(dup2(p[1], p[0]) == p[0]);
    CHECK(loop_watch(a.l, p[0], LOOP_WRITE, on_fd, &a, &err));
    CHECK(loop_step(a.l, 1000, &err) && a.calls == 1);
    loop_unwatch(a.l, p[0]);
    loop_unwatch(a.l, p[0]);
    loop_unwatch(a.l, 9999);
    close(p[0]);
    close(p[1]);
    loop_free(a.l);
}

/* Whichever of the two is called first removes both. */
static void on_fd_remove_both(void *ctx, int fd, unsigned events) {
    (void)fd, (void)events;
    struct seen *s = ctx;
    s->calls++;
    loop_unwatch(s->l, s->fd);
    loop_unwatch(s->l, s->other);
}

static void removed_is_not_called(void) {
    struct seen s = {.l = loop_new(&err)};
    int p[2], q[2];
    CHECK(pipe_pair(p, &err) && pipe_pair(q, &err));
    s.fd = p[0];
    s.other = q[0];
    CHECK(write(p[1], "x", 1) == 1 && write(q[1], "x", 1) == 1);
    CHECK(loop_watch(s.l, p[0], LOOP_READ, on_fd_remove_both, &s, &err));
    CHECK(loop_watch(s.l, q[0], LOOP_READ, on_fd_remove_both, &s, &err));
    CHECK(loop_step(s.l, 1000, &err) && s.calls == 1);
    CHECK(loop_step(s.l, 0, &err) && s.calls == 1);
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
    loop_free(s.l);
}

static void on_fd_step_again(void *ctx, int fd, unsigned events) {
    (void)events;
    struct seen *s = ctx;
    s->calls++;
    loop_unwatch(s->l, fd);
    CHECK(loop_step(s->l, 0, &err));
}

static void callback_may_step(void) {
    struct seen s = {.l = loop_new(&err)};
    int p[2];
    CHECK(pipe_pair(p, &err));
    CHECK(loop_watch(s.l, p[1], LOOP_WRITE, on_fd_step_again, &s, &err));
    CHECK(loop_step(s.l, 1000, &err) && s.calls == 1);
    close(p[0]);
    close(p[1]);
    loop_free(s.l);
}

static void bad_descriptor_is_an_error(void) {
    struct seen s = {.l = loop_new(&err)};
    CHECK(!loop_watch(s.l, 9999, LOOP_READ, on_fd, &s, &err));
    CHECK(err.kind == ERR_ENV && strstr(err.text, "9999"));
    CHECK(loop_step(s.l, 0, &err));
    loop_free(s.l);
}

static struct seen *order_of;
static void put_order(char c) {
    order_of->order[order_of->calls++] = c;
}
static void timer_a(void *ctx) {
    put_order(*(char *)ctx);
}
static void timer_cancels(void *ctx) {
    (void)ctx;
    put_order('!');
    loop_timer_cancel(order_of->l, order_of->timer);
}

static void timers_fire_in_order(void) {
    struct seen s = {.l = loop_new(&err)};
    order_of = &s;
    uint64_t gone = loop_timer(s.l, 1, timer_a, "x");
    loop_timer(s.l, 30, timer_a, "c");
    loop_timer(s.l, 1, timer_a, "a");
    loop_timer(s.l, 15, timer_a, "b");
    loop_timer(s.l, 30, timer_a, "d");
    loop_timer_cancel(s.l, gone);
    loop_timer_cancel(s.l, gone);
    loop_timer_cancel(s.l, 0);
    uint64_t start = clock_ms();
    while (s.calls < 4)
        CHECK(loop_step(s.l, -1, &err));
    CHECKF(strcmp(s.order, "abcd") == 0, "%s", s.order);
    CHECK(clock_ms() - start >= 29);
    loop_free(s.l);
}

static void timer_cancels_another_that_is_due(void) {
    struct seen s = {.l = loop_new(&err)};
    order_of = &s;
    loop_timer(s.l, 0, timer_cancels, NULL);
    s.timer = loop_timer(s.l, 0, timer_a, "x");
    CHECK(loop_step(s.l, 100, &err));
    CHECK(loop_step(s.l, 0, &err));
    CHECKF(strcmp(s.order, "!") == 0, "%s", s.order);
    loop_free(s.l);
}

static void timer_again(void *ctx) {
    struct seen *s = ctx;
    s->calls++;
    loop_timer(s->l, 0, timer_again, s);
}

static void timers_do_not_starve(void) {
    struct seen s = {.l = loop_new(&err)};
    loop_timer(s.l, 0, timer_again, &s);
    CHECK(loop_step(s.l, 100, &err) && s.calls == 1);
    CHECK(loop_step(s.l, 100, &err) && s.calls == 2);
    loop_free(s.l);
}

static void many_timers_keep_the_heap(void) {
    struct seen s = {.l = loop_new(&err)};
    uint64_t ids[200];
    order_of = &s;
    for (size_t i = 0; i < 200; i++)
        ids[i] = loop_timer(s.l, (i * 7919) % 1000 + 100000, timer_a, "x");
    uint64_t soon = loop_timer(s.l, 0, timer_a, "s");
    for (size_t i = 0; i < 200; i += 3)
        loop_timer_cancel(s.l, ids[i]);
    CHECK(soon && loop_step(s.l, 1000, &err));
    CHECK(strcmp(s.order, "s") == 0);
    loop_free(s.l);
}

static void timeout_returns(void) {
    struct loop *l = loop_new(&err);
    uint64_t start = clock_us();
    CHECK(loop_step(l, 20, &err));
    CHECK(clock_us() - start >= 19000);
    loop_free(l);
}

static void on_pid(void *ctx, pid_t pid, int status) {
    struct seen *s = ctx;
    s->calls++;
    s->fd = (int)pid;
    s->status = status;
}

static void processes_are_reaped(void) {
    struct seen s = {.l = loop_new(&err)};
    struct child c;
    const char *argv[] = {"sh", "-c", "exit 7", NULL};
    CHECK(child_start(&(struct child_spec){.argv = argv}, &c, &err));
    CHECK(loop_watch_pid(s.l, c.pid, c.pidfd, on_pid, &s, &err));
    while (!s.calls)
        CHECK(loop_step(s.l, -1, &err));
    CHECK(s.fd == c.pid && WIFEXITED(s.status) && WEXITSTATUS(s.status) == 7);
    CHECK(waitpid(c.pid, NULL, WNOHANG) < 0 && errno == ECHILD);
    loop_unwatch_pid(s.l, c.pid);
    loop_free(s.l);
}

static void unwatched_process_is_left(void) {
    struct seen s = {.l = loop_new(&err)};
    struct child c;
    const char *argv[] = {"sh", "-c", "exit 3", NULL};
    CHECK(child_start(&(struct child_spec){.argv = argv}, &c, &err));
    CHECK(loop_watch_pid(s.l, c.pid, c.pidfd, on_pid, &s, &err));
    loop_unwatch_pid(s.l, c.pid);
    c.pidfd = -1;
    CHECK(WEXITSTATUS(child_wait(&c)) == 3);
    CHECK(loop_step(s.l, 0, &err) && s.calls == 0);
    loop_free(s.l);
}

static const struct tap_case cases[] = {
    {"reads, then hangs up", reads_and_hangs_up},
    {"watching again changes events and callback", watching_again_changes},
    {"what was removed is not called", removed_is_not_called},
    {"a callback may step the loop", callback_may_step},
    {"a bad descriptor is an error", bad_descriptor_is_an_error},
    {"timers fire in order", timers_fire_in_order},
    {"a timer cancels another that is due", timer_cancels_another_that_is_due},
    {"timers do not starve the rest", timers_do_not_starve},
    {"many timers keep the heap", many_timers_keep_the_heap},
    {"a step times out", timeout_returns},
    {"processes are reaped", processes_are_reaped},
    {"an unwatched process is left alone", unwatched_process_is_left},
};
TAP_CASES(cases)
