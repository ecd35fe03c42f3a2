/* An event loop over descriptors, processes and timers (epoll, pidfds). One thread. A callback may
 * add and remove anything, itself included; nothing that was removed is called again. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include "base/err.h"
#include <sys/types.h>

struct loop;
typedef void loop_fd_fn(void *ctx, int fd, unsigned events); /* LOOP_READ | LOOP_WRITE | LOOP_HUP */
typedef void loop_pid_fn(void *ctx, pid_t pid, int status);  /* status as of waitpid; reaped */
typedef void loop_timer_fn(void *ctx);

enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_HUP = 4 };

struct loop *loop_new(struct err *err);
void loop_free(struct loop *l); /* closes nothing of the caller's, kills nothing */

bool loop_watch(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx,
                struct err *err);          /* again on the same fd changes events and callback */
void loop_unwatch(struct loop *l, int fd); /* before closing it; unknown fds are fine */
/* Takes the pidfd over and closes it. */
bool loop_watch_pid(struct loop *l, pid_t pid, int pidfd, loop_pid_fn *fn, void *ctx,
                    struct err *err);
void loop_unwatch_pid(struct loop *l, pid_t pid); /* does not reap */
uint64_t loop_timer(struct loop *l, uint64_t after_ms, loop_timer_fn *fn, void *ctx); /* one shot */
void loop_timer_cancel(struct loop *l, uint64_t id); /* 0 and fired ids are fine */

/* Waits for at least one event (or timeout_ms, -1 = for ever) and runs its callbacks. False only on
 * an error of the operating system. */
bool loop_step(struct loop *l, int timeout_ms, struct err *err);

uint64_t clock_ms(void); /* monotonic */
uint64_t clock_us(void);

#endif
