/* Frames, blocking: for roles that serve one request after the other. Descriptors may be sockets,
 * pipes or files, blocking or not: where one would block, poll waits. */
#include "base/arena.h"
#include "base/frame_private.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

bool fd_is_socket(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void wait_for(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    poll(&p, 1, -1); /* interrupted or not, the caller tries again */
}

/* ---- reading ---- */

int frame_read(int fd, size_t noise, struct frame *out, struct err *err) {
    bool is_socket = fd_is_socket(fd);
    struct frame_reader r;
    *out = (struct frame){0};
    frame_reader_init(&r, noise);
    enum frame_step s;
    do {
        s = frame_reader_step(&r, fd, is_socket, out, err);
        if (s == STEP_WAIT)
            wait_for(fd, POLLIN);
    } while (s == STEP_MORE || s == STEP_WAIT);
    frame_reader_release(&r);
    return s == STEP_FRAME ? 1 : s == STEP_END ? 0 : -1;
}

/* ---- writing ---- */

/* On a pipe nothing can be told to do without SIGPIPE: it is held for this thread, and one that we
 * caused is taken back. */
static ssize_t write_without_sigpipe(int fd, const struct iovec *iov, int niov) {
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    sigpending(&pending);
    ssize_t n = writev(fd, iov, niov);
    int error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&broken, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

ssize_t frame_send_some(int fd, bool is_socket, struct iovec *iov, size_t niov, const int *fds,
                        size_t nfds) {
    if (!is_socket) {
        if (nfds == 0)
            return write_without_sigpipe(fd, iov, (int)niov);
        errno = ENOTSOCK;
        return -1;
    }
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FRAME_MAX_FDS * sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = niov};
    if (nfds) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static void iov_advance(struct iovec **iov, size_t *niov, size_t n) {
    while (*niov && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        ++*iov;
        --*niov;
    }
    if (*niov) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

static bool send_all(int fd, struct iovec *iov, size_t niov, const int *fds, size_t nfds,
                     struct err *err) {
    bool is_socket = fd_is_socket(fd);
    while (niov) {
        ssize_t n = frame_send_some(fd, is_socket, iov, niov, fds, nfds);
        if (n >= 0) {
            iov_advance(&iov, &niov, (size_t)n);
            nfds = n > 0 ? 0 : nfds;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for(fd, POLLOUT);
        } else if (errno != EINTR) {
            return err_errno(err, ERR_ENV, "write to the peer");
        }
    }
    return true;
}

bool frame_write(int fd, uint32_t type, const json *head, str blob, const int *fds, size_t nfds,
                 struct err *err) {
    struct buf text;
    unsigned char header[FRAME_HEADER_BYTES];
    buf_init(&text, FRAME_MAX_JSON);
    if (head)
        json_write(head, &text);
    bool ok = text.failed ? err_set(err, ERR_ENV, "a frame with more than %zu bytes of JSON",
                                    FRAME_MAX_JSON)
                          : frame_limits_check(text.n, blob.n, nfds, err);
    if (ok) {
        frame_header_put(header, type, text.n, nfds, blob.n);
        struct iovec iov[] = {{header, sizeof header}, {text.p, text.n}, {(char *)blob.p, blob.n}};
        ok = send_all(fd, iov, sizeof iov / sizeof *iov, fds, nfds, err);
    }
    buf_release(&text);
    return ok;
}

/* ---- taking in a frame ----
 *
 * The peer may be a candidate's process gone wrong or another program's output altogether: sizes
 * are checked before anything is allocated, descriptors are counted, and whatever does not fit is a
 * broken peer, with every descriptor that came closed again. */

static const char magic[4] = {'C', 'P', 'F', '1'};

static void put_le(unsigned char *p, uint64_t v, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *p, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void frame_header_put(unsigned char header[FRAME_HEADER_BYTES], uint32_t type, size_t json_bytes,
                      size_t nfds, size_t blob_bytes) {
    memcpy(header, magic, sizeof magic);
    put_le(header + 4, type, 4);
    put_le(header + 8, json_bytes, 4);
    put_le(header + 12, nfds, 4);
    put_le(header + 16, blob_bytes, 8);
}

bool frame_limits_check(size_t json_bytes, size_t blob_bytes, size_t nfds, struct err *err) {
    if (json_bytes > FRAME_MAX_JSON)
        return err_set(err, ERR_ENV, "a frame with %zu bytes of JSON, over the limit of %zu",
                       json_bytes, FRAME_MAX_JSON);
    if (blob_bytes > FRAME_MAX_BLOB)
        return err_set(err, ERR_ENV, "a frame with a blob of %zu bytes, over the limit of %zu",
                       blob_bytes, FRAME_MAX_BLOB);
    if (nfds > FRAME_MAX_FDS)
        return err_set(err, ERR_ENV, "a frame with %zu descriptors, over the limit of %d", nfds,
                       FRAME_MAX_FDS);
    return true;
}

void frame_release(struct frame *f) {
    json_free(f->head);
    mem_free((char *)f->blob.p);
    for (size_t i = 0; i < f->nfds; i++)
        if (f->fds[i] >= 0)
            close(f->fds[i]);
    *f = (struct frame){0};
}

void frame_reader_init(struct frame_reader *r, size_t noise) {
    *r = (struct frame_reader){.noise = noise};
}

void frame_reader_release(struct frame_reader *r) {
    frame_release(&r->frame);
    mem_free(r->bytes);
    frame_reader_init(r, 0);
}

/* ---- receiving ---- */

/* Descriptors join the frame that is being read. False: more than a frame can have. */
static bool take_fds(struct frame *f, struct msghdr *m) {
    bool ok = !(m->msg_flags & MSG_CTRUNC);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (f->nfds < FRAME_MAX_FDS) {
                f->fds[f->nfds++] = fd;
            } else {
                close(fd);
                ok = false;
            }
        }
    }
    return ok;
}

/* As read, and -2 with err where the descriptors are wrong. */
static ssize_t receive_socket(int fd, void *p, size_t n, struct frame *f, struct err *err) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FRAME_MAX_FDS * sizeof(int))];
    } control;
    struct iovec iov = {p, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return -1;
    if (take_fds(f, &m))
        return got;
    err_set(err, ERR_ENV, "broken peer: more descriptors than a frame can have");
    return -2;
}

/* Where the next bytes go, and how many at most. */
static size_t next_space(struct frame_reader *r, void **p) {
    if (r->part == PART_HEADER) {
        *p = r->header + r->have;
        return FRAME_HEADER_BYTES - r->have;
    }
    size_t total = r->part == PART_JSON ? r->json_bytes : r->blob_bytes;
    size_t want = total - r->have, step = r->have > 1u << 20 ? r->have : 1u << 20;
    want = want < step ? want : step;
    r->bytes = mem_grow(r->bytes, &r->cap, r->have + want + 1, 1);
    *p = r->bytes + r->have;
    return want;
}

/* ---- the header ---- */

static void noise_drop(struct frame_reader *r, size_t n) {
    for (size_t i = 0; i < n && r->nsaid + 1 < sizeof r->said; i++) {
        unsigned char c = r->header[i];
        r->said[r->nsaid++] = c == '\n' ? ' ' : c < 32 || c > 126 ? '?' : (char)c;
    }
    memmove(r->header, r->header + n, r->have - n);
    r->have -= n;
    r->noise -= n;
    r->skipped = true;
}

static bool starts_with_magic(const unsigned char *p, size_t n) {
    return memcmp(p, magic, n < sizeof magic ? n : sizeof magic) == 0;
}

/* Leaves the header empty or beginning with (a part of) the magic. */
static bool header_align(struct frame_reader *r, struct err *err) {
    size_t skip = 0;
    while (skip < r->have && !starts_with_magic(r->header + skip, r->have - skip))
        skip++;
    if (skip > r->noise)
        return err_set(err, ERR_ENV, "the peer does not speak this protocol%s%.*s",
                       r->nsaid ? "; it said: " : "", (int)r->nsaid, r->said);
    if (skip)
        noise_drop(r, skip);
    return true;
}

static bool header_read(struct frame_reader *r, struct err *err) {
    const unsigned char *h = r->header;
    uint64_t blob = get_le(h + 16, 8);
    r->json_bytes = (size_t)get_le(h + 8, 4);
    r->promised_fds = (size_t)get_le(h + 12, 4);
    r->blob_bytes = blob > SIZE_MAX ? SIZE_MAX : (size_t)blob;
    r->frame.type = (uint32_t)get_le(h + 4, 4);
    if (!frame_limits_check(r->json_bytes, r->blob_bytes, r->promised_fds, err))
        return err_wrap(err, "broken peer");
    if (r->frame.nfds != r->promised_fds)
        return err_set(err, ERR_ENV, "broken peer: %zu descriptors came where %zu were announced",
                       r->frame.nfds, r->promised_fds);
    return true;
}

/* ---- the parts, one after the other ---- */

static bool json_done(struct frame_reader *r, struct err *err) {
    if (r->json_bytes == 0) {
        r->frame.head = json_object();
        return true;
    }
    r->frame.head = json_parse((str){r->bytes, r->json_bytes}, err);
    if (!r->frame.head)
        return err_wrap(err, "broken peer");
    if (!json_is_object(r->frame.head))
        return err_set(err, ERR_ENV, "broken peer: the head of a frame is not an object");
    return true;
}

static void blob_done(struct frame_reader *r, struct frame *out) {
    r->bytes = mem_grow(r->bytes, &r->cap, r->blob_bytes + 1, 1);
    r->bytes[r->blob_bytes] = 0; /* not counted: a courtesy to those who print it */
    r->frame.blob = (str){r->bytes, r->blob_bytes};
    *out = r->frame;
    frame_reader_init(r, 0);
}

static enum frame_step parts_advance(struct frame_reader *r, struct frame *out, struct err *err) {
    if (r->part == PART_HEADER) {
        if (!header_align(r, err))
            return STEP_BROKEN;
        if (r->have < FRAME_HEADER_BYTES)
            return STEP_MORE;
        if (!header_read(r, err))
            return STEP_BROKEN;
        r->part = PART_JSON;
        r->have = 0;
    }
    if (r->frame.nfds != r->promised_fds) {
        err_set(err, ERR_ENV, "broken peer: descriptors came in the middle of a frame");
        return STEP_BROKEN;
    }
    if (r->part == PART_JSON && r->have == r->json_bytes) {
        if (!json_done(r, err))
            return STEP_BROKEN;
        r->part = PART_BLOB;
        r->have = 0;
    }
    if (r->part == PART_BLOB && r->have == r->blob_bytes) {
        blob_done(r, out);
        return STEP_FRAME;
    }
    return STEP_MORE;
}

static enum frame_step at_end(const struct frame_reader *r, struct err *err) {
    bool inside = r->part != PART_HEADER || r->have > 0;
    if (!inside && !r->skipped)
        return STEP_END;
    if (inside)
        err_set(err, ERR_ENV, "peer ended inside a frame");
    else
        err_set(err, ERR_ENV, "peer ended before its first frame; it said: %.*s", (int)r->nsaid,
                r->said);
    return STEP_BROKEN;
}

enum frame_step frame_reader_step(struct frame_reader *r, int fd, bool is_socket, struct frame *out,
                                  struct err *err) {
    void *p;
    size_t room = next_space(r, &p);
    ssize_t n = is_socket ? receive_socket(fd, p, room, &r->frame, err) : read(fd, p, room);
    if (n > 0) {
        r->have += (size_t)n;
        return parts_advance(r, out, err);
    }
    if (n == -2)
        return STEP_BROKEN;
    /* A reset is how a socket ends whose peer left something unread. */
    if (n == 0 || errno == ECONNRESET)
        return at_end(r, err);
    if (errno == EINTR)
        return STEP_MORE;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return STEP_WAIT;
    err_errno(err, ERR_ENV, "read from the peer");
    return STEP_BROKEN;
}
