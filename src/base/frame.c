/* Frames, blocking: for roles that serve one request after the other. Descriptors may be sockets,
 * pipes or files, blocking or not: where one would block, poll waits. */
#include "base/frame_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

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
