/* The event loop. A watch lives on the heap and its address is what epoll hands back, so a removed
 * watch is only marked dead and put aside until the outermost step ends: events of the same batch
 * that still name it find the mark and are dropped. A new watch on a reused descriptor number is
 * another object and never receives them.
 *
 * The loop owns its epoll descriptor and the pidfds given to loop_watch_pid, nothing else. */
#include "base/loop.h"

#include "base/arena.h"
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct watch {
    int fd;    /* the caller's descriptor, or our pidfd */
    pid_t pid; /* 0: a descriptor */
    bool dead;
    size_t index; /* among the watches */
    unsigned events;
    loop_fd_fn *fd_fn;
    loop_pid_fn *pid_fn;
    void *ctx;
};

struct timer {
    uint64_t at_ms, id;
    loop_timer_fn *fn;
    void *ctx;
};

struct loop {
    int epoll_fd;
    unsigned depth; /* of loop_step: callbacks may step the loop themselves */
    struct watch **watches;
    size_t nwatches, watches_cap;
    struct watch **by_fd; /* those of the caller's descriptors */
    size_t by_fd_cap;
    struct watch **dead;
    size_t ndead, dead_cap;
    struct timer *timers; /* a binary heap, the next one to fire first */
    size_t ntimers, timers_cap;
    uint64_t last_timer_id;
};

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_ms(void) {
    return clock_ns() / 1000000u;
}
uint64_t clock_us(void) {
    return clock_ns() / 1000u;
}

struct loop *loop_new(struct err *err) {
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        err_errno(err, ERR_ENV, "epoll_create");
        return NULL;
    }
    struct loop *l = mem_alloc(sizeof *l);
    l->epoll_fd = fd;
    return l;
}

static void loop_bury(struct loop *l) {
    for (size_t i = 0; i < l->ndead; i++)
        mem_free(l->dead[i]);
    l->ndead = 0;
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    BUG_IF(l->depth);
    for (size_t i = 0; i < l->nwatches; i++) {
        if (l->watches[i]->pid)
            close(l->watches[i]->fd);
        mem_free(l->watches[i]);
    }
    loop_bury(l);
    mem_free(l->watches);
    mem_free(l->by_fd);
    mem_free(l->dead);
    mem_free(l->timers);
    close(l->epoll_fd);
    mem_free(l);
}

/* ---- watches ---- */

static size_t watch_find(const struct loop *l, int fd, pid_t pid) {
    size_t i = 0;
    if (!pid) {
        bool known = fd >= 0 && (size_t)fd < l->by_fd_cap && l->by_fd[fd];
        return known ? l->by_fd[fd]->index : l->nwatches;
    }
    while (i < l->nwatches && l->watches[i]->pid != pid)
        i++;
    return i;
}

static struct watch *watch_add(struct loop *l, int fd) {
    struct watch *w = mem_alloc(sizeof *w);
    w->fd = fd;
    w->index = l->nwatches;
    l->watches = mem_grow(l->watches, &l->watches_cap, l->nwatches + 1, sizeof(struct watch *));
    l->watches[l->nwatches++] = w;
    return w;
}

static void watch_remove(struct loop *l, size_t i) {
    struct watch *w = l->watches[i];
    l->watches[i] = l->watches[--l->nwatches];
    l->watches[i]->index = i;
    if (!w->pid)
        l->by_fd[w->fd] = NULL;
    /* The descriptor may already be closed: then the kernel has forgotten it, too. A pidfd leaves
     * the set before it is closed, or a duplicate in a child would keep reporting it. */
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    if (w->pid)
        close(w->fd);
    w->dead = true;
    l->dead = mem_grow(l->dead, &l->dead_cap, l->ndead + 1, sizeof(struct watch *));
    l->dead[l->ndead++] = w;
    if (!l->depth)
        loop_bury(l);
}

static bool watch_arm(struct loop *l, struct watch *w, bool known) {
    struct epoll_event e = {.data.ptr = w};
    if (w->events & LOOP_READ)
        e.events |= EPOLLIN;
    if (w->events & LOOP_WRITE)
        e.events |= EPOLLOUT;
    if (known && epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, w->fd, &e) == 0)
        return true;
    /* Known to us but not to the kernel: it was closed and its number used again. */
    if (known && errno != ENOENT)
        return false;
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, w->fd, &e) == 0;
}

bool loop_watch(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx,
                struct err *err) {
    size_t i = watch_find(l, fd, 0);
    bool known = i < l->nwatches;
    if (fd < 0) {
        errno = EBADF;
        return err_errno(err, ERR_ENV, "watch descriptor %d", fd);
    }
    struct watch *w = known ? l->watches[i] : watch_add(l, fd);
    l->by_fd = mem_grow(l->by_fd, &l->by_fd_cap, (size_t)fd + 1, sizeof(struct watch *));
    l->by_fd[fd] = w;
    w->events = events;
    w->fd_fn = fn;
    w->ctx = ctx;
    if (watch_arm(l, w, known))
        return true;
    err_errno(err, ERR_ENV, "watch descriptor %d", fd);
    watch_remove(l, i);
    return false;
}

void loop_unwatch(struct loop *l, int fd) {
    size_t i = watch_find(l, fd, 0);
    if (i < l->nwatches)
        watch_remove(l, i);
}

/* The pidfd is taken over in either case. */
bool loop_watch_pid(struct loop *l, pid_t pid, int pidfd, loop_pid_fn *fn, void *ctx,
                    struct err *err) {
    BUG_IF(pid <= 0 || watch_find(l, -1, pid) < l->nwatches);
    struct watch *w = watch_add(l, pidfd);
    w->pid = pid;
    w->events = LOOP_READ;
    w->pid_fn = fn;
    w->ctx = ctx;
    if (watch_arm(l, w, false))
        return true;
    err_errno(err, ERR_ENV, "watch process %ld", (long)pid);
    watch_remove(l, l->nwatches - 1);
    return false;
}

void loop_unwatch_pid(struct loop *l, pid_t pid) {
    size_t i = pid > 0 ? watch_find(l, -1, pid) : l->nwatches;
    if (i < l->nwatches)
        watch_remove(l, i);
}

/* ---- timers ---- */

static bool timer_before(const struct timer *a, const struct timer *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->id < b->id;
}

static void timer_swap(struct timer *a, struct timer *b) {
    struct timer t = *a;
    *a = *b;
    *b = t;
}

static void timer_rise(struct loop *l, size_t i) {
    for (; i > 0 && timer_before(&l->timers[i], &l->timers[(i - 1) / 2]); i = (i - 1) / 2)
        timer_swap(&l->timers[i], &l->timers[(i - 1) / 2]);
}

static void timer_sink(struct loop *l, size_t i) {
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < l->ntimers; child++)
            if (timer_before(&l->timers[child], &l->timers[least]))
                least = child;
        if (least == i)
            return;
        timer_swap(&l->timers[i], &l->timers[least]);
        i = least;
    }
}

static void timer_remove(struct loop *l, size_t i) {
    l->timers[i] = l->timers[--l->ntimers];
    if (i < l->ntimers) {
        timer_rise(l, i);
        timer_sink(l, i);
    }
}

uint64_t loop_timer(struct loop *l, uint64_t after_ms, loop_timer_fn *fn, void *ctx) {
    uint64_t now = clock_ms();
    l->timers = mem_grow(l->timers, &l->timers_cap, l->ntimers + 1, sizeof(struct timer));
    l->timers[l->ntimers] = (struct timer){
        .at_ms = after_ms > UINT64_MAX - now ? UINT64_MAX : now + after_ms,
        .id = ++l->last_timer_id,
        .fn = fn,
        .ctx = ctx,
    };
    timer_rise(l, l->ntimers++);
    return l->last_timer_id;
}

void loop_timer_cancel(struct loop *l, uint64_t id) {
    for (size_t i = 0; i < l->ntimers; i++)
        if (l->timers[i].id == id) {
            timer_remove(l, i);
            return;
        }
}

/* Timers that callbacks start meanwhile wait for the next step, or a timer of 0 ms that starts
 * itself again would starve the descriptors. */
static bool loop_fire(struct loop *l) {
    uint64_t now = clock_ms(), last = l->last_timer_id;
    bool any = false;
    while (l->ntimers && l->timers[0].at_ms <= now && l->timers[0].id <= last) {
        struct timer t = l->timers[0];
        timer_remove(l, 0);
        t.fn(t.ctx);
        any = true;
    }
    return any;
}

/* ---- the step ---- */

static int wait_ms(const struct loop *l, uint64_t until_ms) {
    uint64_t now = clock_ms(), next = until_ms;
    if (l->ntimers && l->timers[0].at_ms < next)
        next = l->timers[0].at_ms;
    if (next == UINT64_MAX)
        return -1;
    if (next <= now)
        return 0;
    return next - now > INT_MAX ? INT_MAX : (int)(next - now);
}

static void watch_reap(struct loop *l, struct watch *w) {
    pid_t pid = w->pid;
    loop_pid_fn *fn = w->pid_fn;
    void *ctx = w->ctx;
    watch_remove(l, watch_find(l, -1, pid));
    int status;
    pid_t got;
    do
        got = waitpid(pid, &status, 0); /* it has ended: this does not block */
    while (got < 0 && errno == EINTR);
    if (got != pid)
        status = W_EXITCODE(255, 0); /* SIGCHLD is ignored here: how it ended is lost */
    fn(ctx, pid, status);
}

static void watch_call(struct loop *l, struct watch *w, unsigned epoll_events) {
    if (w->pid) {
        watch_reap(l, w);
        return;
    }
    unsigned events = 0;
    if (epoll_events & EPOLLIN)
        events |= LOOP_READ;
    if (epoll_events & EPOLLOUT)
        events |= LOOP_WRITE;
    /* After a hang-up a read or write does not block but says what happened. */
    if (epoll_events & (EPOLLHUP | EPOLLERR))
        events |= LOOP_HUP | LOOP_READ | LOOP_WRITE;
    /* The mask may have changed since the kernel filled this batch. */
    events &= w->events | LOOP_HUP;
    if (events)
        w->fd_fn(w->ctx, w->fd, events);
}

/* Ends early, with nothing run, when a signal arrives: who handles signals by flags sees them. */
bool loop_step(struct loop *l, int timeout_ms, struct err *err) {
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    struct epoll_event batch[64];
    bool ran = false, ok = true;
    l->depth++;
    do {
        int n = epoll_wait(l->epoll_fd, batch, sizeof batch / sizeof *batch, wait_ms(l, until));
        if (n < 0) {
            ok = errno == EINTR || err_errno(err, ERR_ENV, "epoll_wait");
            break;
        }
        for (int i = 0; i < n; i++) {
            struct watch *w = batch[i].data.ptr;
            if (!w->dead)
                watch_call(l, w, batch[i].events);
        }
        ran = loop_fire(l) || n > 0;
    } while (!ran && clock_ms() < until);
    if (--l->depth == 0)
        loop_bury(l);
    return ok;
}
