/* Frames on a loop. A connection owns its descriptors and what is queued. Sending tries at once and
 * queues what the peer does not take; failing is remembered and told from the loop, after what the
 * peer had still said was read: a role that dies with a reason writes it, then closes.
 *
 * A callback may free the connection: `busy` counts the callbacks that are running, and the memory
 * goes when the last has returned. */
#include "base/frame_private.h"

#include "base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct parcel { /* one frame on its way out */
    struct parcel *next;
    size_t n, sent, nfds;
    int fds[FRAME_MAX_FDS];
    char bytes[];
};

struct conn {
    struct loop *loop;
    int rfd, wfd; /* equal for a socket; -1 once closed */
    bool rsocket, wsocket;
    struct frame_reader reader;
    conn_frame_fn *frame;
    conn_closed_fn *closed;
    void *ctx;
    struct parcel *first, *last;
    size_t pending;
    bool waiting;          /* for the peer to take more */
    uint64_t failed_timer; /* not 0: writing failed, for the reason below */
    struct err failed;
    bool over; /* closed was called, or conn_free */
    bool freed;
    unsigned busy;
};

enum { STEPS_A_TURN = 256 }; /* receiving calls before the others on the loop get their turn */

static loop_fd_fn conn_readable, conn_writable, conn_socket_ready;

/* ---- the queue ---- */

static void parcel_free(struct parcel *p) {
    for (size_t i = 0; i < p->nfds; i++)
        close(p->fds[i]);
    mem_free(p);
}

static void queue_drop(struct conn *c) {
    while (c->first) {
        struct parcel *p = c->first;
        c->first = p->next;
        parcel_free(p);
    }
    c->last = NULL;
    c->pending = 0;
}

static bool conn_watch(struct conn *c, struct err *err) {
    if (c->rfd == c->wfd)
        return loop_watch(c->loop, c->rfd, LOOP_READ | (c->waiting ? LOOP_WRITE : 0),
                          conn_socket_ready, c, err);
    if (!c->waiting)
        loop_unwatch(c->loop, c->wfd);
    else if (!loop_watch(c->loop, c->wfd, LOOP_WRITE, conn_writable, c, err))
        return false;
    return loop_watch(c->loop, c->rfd, LOOP_READ, conn_readable, c, err);
}

/* ---- the end ---- */

static void conn_close(struct conn *c) {
    if (c->over)
        return;
    c->over = true;
    loop_timer_cancel(c->loop, c->failed_timer);
    loop_unwatch(c->loop, c->rfd);
    close(c->rfd);
    if (c->wfd != c->rfd) {
        loop_unwatch(c->loop, c->wfd);
        close(c->wfd);
    }
    c->rfd = c->wfd = -1;
    queue_drop(c);
    frame_reader_release(&c->reader);
}

static void conn_leave(struct conn *c) {
    if (--c->busy == 0 && c->freed)
        mem_free(c);
}

void conn_free(struct conn *c) {
    if (!c || c->freed)
        return;
    conn_close(c);
    c->freed = true;
    c->busy++;
    conn_leave(c);
}

static void conn_end(struct conn *c, const struct err *why) {
    conn_close(c);
    c->closed(c->ctx, why);
}

/* ---- reading ---- */

static void conn_receive(struct conn *c, unsigned steps) {
    struct err err = {0};
    while (!c->over && steps--) {
        struct frame f = {0};
        switch (frame_reader_step(&c->reader, c->rfd, c->rsocket, &f, &err)) {
        case STEP_FRAME:
            c->frame(c->ctx, &f);
            break;
        case STEP_MORE:
            break;
        case STEP_WAIT:
            return;
        case STEP_END:
            conn_end(c, &(struct err){0});
            return;
        case STEP_BROKEN:
            conn_end(c, &err);
            return;
        }
    }
}

static void conn_readable(void *ctx, int fd, unsigned events) {
    (void)fd, (void)events;
    struct conn *c = ctx;
    c->busy++;
    conn_receive(c, STEPS_A_TURN);
    conn_leave(c);
}

/* ---- writing ---- */

/* The peer is gone, so what it had written is bounded by the kernel's buffers; where only its input
 * is closed it may go on writing, and one generous turn is enough. */
static void conn_tell_failure(void *ctx) {
    struct conn *c = ctx;
    c->busy++;
    conn_receive(c, 16 * STEPS_A_TURN);
    if (!c->over)
        conn_end(c, &c->failed);
    conn_leave(c);
}

static void conn_fail(struct conn *c) {
    queue_drop(c);
    c->waiting = false;
    if (!c->failed_timer)
        c->failed_timer = loop_timer(c->loop, 0, conn_tell_failure, c);
}

static bool parcel_send(struct conn *c, struct parcel *p) {
    struct iovec iov = {p->bytes + p->sent, p->n - p->sent};
    ssize_t n = frame_send_some(c->wfd, c->wsocket, &iov, 1, p->fds, p->nfds);
    if (n < 0)
        return false;
    for (size_t i = 0; i < p->nfds; i++)
        close(p->fds[i]); /* they went with the first byte */
    p->nfds = 0;
    p->sent += (size_t)n;
    c->pending -= (size_t)n;
    return true;
}

static void conn_flush(struct conn *c) {
    while (c->first) {
        struct parcel *p = c->first;
        if (parcel_send(c, p)) {
            if (p->sent == p->n) {
                c->first = p->next;
                c->last = c->first ? c->last : NULL;
                parcel_free(p);
            }
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            err_errno(&c->failed, ERR_ENV, "write to the peer");
            conn_fail(c);
        }
    }
    bool waiting = c->first != NULL;
    if (waiting == c->waiting)
        return;
    c->waiting = waiting;
    if (!conn_watch(c, &c->failed))
        conn_fail(c);
}

static void conn_writable(void *ctx, int fd, unsigned events) {
    (void)fd, (void)events;
    struct conn *c = ctx;
    if (!c->over)
        conn_flush(c);
}

static void conn_socket_ready(void *ctx, int fd, unsigned events) {
    struct conn *c = ctx;
    c->busy++;
    if (events & LOOP_WRITE)
        conn_writable(c, fd, events);
    if (events & (LOOP_READ | LOOP_HUP))
        conn_readable(c, fd, events);
    conn_leave(c);
}

static struct parcel *parcel_new(struct conn *c, uint32_t type, str head, str blob, const int *fds,
                                 size_t nfds) {
    size_t n = FRAME_HEADER_BYTES + head.n + blob.n;
    struct parcel *p = mem_alloc(sizeof *p + n);
    p->n = n;
    frame_header_put((unsigned char *)p->bytes, type, head.n, nfds, blob.n);
    if (head.n)
        memcpy(p->bytes + FRAME_HEADER_BYTES, head.p, head.n);
    if (blob.n)
        memcpy(p->bytes + FRAME_HEADER_BYTES + head.n, blob.p, blob.n);
    for (size_t i = 0; i < nfds; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
            err_errno(&c->failed, ERR_ENV, "duplicate a descriptor");
            parcel_free(p);
            return NULL;
        }
        p->fds[p->nfds++] = fd;
    }
    return p;
}

void conn_send(struct conn *c, uint32_t type, const json *head, str blob, const int *fds,
               size_t nfds) {
    struct buf text;
    buf_init(&text, FRAME_MAX_JSON + 1);
    if (head && !c->over)
        json_write(head, &text);
    if (text.failed && !c->failed_timer) { /* it holds nothing then, which is no head to send */
        frame_limits_check(FRAME_MAX_JSON + 1, blob.n, nfds, &c->failed);
        conn_fail(c);
    } else {
        conn_send_text(c, type, buf_str(&text), blob, fds, nfds);
    }
    buf_release(&text);
}

void conn_send_text(struct conn *c, uint32_t type, str head, str blob, const int *fds,
                    size_t nfds) {
    if (c->over || c->failed_timer)
        return; /* closed says it, or has said it */
    struct parcel *p = NULL;
    if (frame_limits_check(head.n, blob.n, nfds, &c->failed))
        p = parcel_new(c, type, head, blob, fds, nfds);
    if (!p) {
        conn_fail(c);
        return;
    }
    if (c->last)
        c->last->next = p;
    else
        c->first = p;
    c->last = p;
    c->pending += p->n;
    if (!c->waiting)
        conn_flush(c);
}

size_t conn_pending(const struct conn *c) {
    return c->pending;
}

str conn_said(const struct conn *c) {
    return (str){c->reader.said, c->reader.nsaid};
}

/* ---- birth ---- */

static bool set_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* The descriptors are taken over in either case. */
struct conn *conn_new(struct loop *l, int rfd, int wfd, size_t noise, conn_frame_fn *frame,
                      conn_closed_fn *closed, void *ctx, struct err *err) {
    struct conn *c = mem_alloc(sizeof *c);
    c->loop = l;
    c->rfd = rfd;
    c->wfd = wfd;
    c->rsocket = fd_is_socket(rfd);
    c->wsocket = fd_is_socket(wfd);
    c->frame = frame;
    c->closed = closed;
    c->ctx = ctx;
    frame_reader_init(&c->reader, noise);
    bool ok = (set_nonblocking(rfd) && set_nonblocking(wfd)) ||
              err_errno(err, ERR_ENV, "a connection's descriptors");
    if (ok && conn_watch(c, err))
        return c;
    conn_free(c);
    return NULL;
}
