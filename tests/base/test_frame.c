#include "base/arena.h"
#include "base/child.h"
#include "base/frame.h"
#include "tap.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;

static int pair_new(int p[2], bool is_socket) {
    CHECK(is_socket ? socket_pair(p, &err) : pipe_pair(p, &err));
    return p[0];
}

static void pair_close(int p[2]) {
    close(p[0]);
    close(p[1]);
}

static json *head_new(int64_t v) {
    json *j = json_object();
    json_set_i64(j, "v", v);
    return j;
}

static void round_trip_on(bool is_socket) {
    int p[2];
    struct frame f;
    int64_t v = 0;
    json *head = head_new(42);
    pair_new(p, is_socket);
    CHECK(frame_write(p[1], 7, head, S("blob\0bytes"), NULL, 0, &err));
    CHECK(frame_write(p[1], 8, NULL, (str){NULL, 0}, NULL, 0, &err));
    CHECK(frame_read(p[0], 0, &f, &err) == 1);
    CHECK(f.type == 7 && json_get_i64(f.head, "v", &v) && v == 42);
    CHECK(str_eq(f.blob, S("blob\0bytes")) && f.nfds == 0);
    frame_release(&f);
    CHECK(frame_read(p[0], 0, &f, &err) == 1);
    CHECK(f.type == 8 && json_is_object(f.head) && json_len(f.head) == 0 && f.blob.n == 0);
    frame_release(&f);
    frame_release(&f);
    close(p[1]);
    CHECK(frame_read(p[0], 0, &f, &err) == 0);
    frame_release(&f);
    close(p[0]);
    json_free(head);
}

static void round_trip(void) {
    round_trip_on(true);
    round_trip_on(false);
}

static size_t raw(unsigned char *out, uint32_t type, uint32_t json_bytes, uint32_t nfds,
                  uint64_t blob_bytes) {
    memcpy(out, "CPF1", 4);
    for (int i = 0; i < 4; i++) {
        out[4 + i] = (unsigned char)(type >> 8 * i);
        out[8 + i] = (unsigned char)(json_bytes >> 8 * i);
        out[12 + i] = (unsigned char)(nfds >> 8 * i);
    }
    for (int i = 0; i < 8; i++)
        out[16 + i] = (unsigned char)(blob_bytes >> 8 * i);
    return 24;
}

static void layout_is_fixed(void) {
    int p[2];
    unsigned char want[64], got[64];
    size_t n = raw(want, 0x01020304, 8, 0, 3);
    memcpy(want + n, "{\"v\":42}abc", 11);
    n += 11;
    json *head = head_new(42);
    pair_new(p, false);
    CHECK(frame_write(p[1], 0x01020304, head, S("abc"), NULL, 0, &err));
    CHECK(read(p[0], got, sizeof got) == (ssize_t)n && memcmp(got, want, n) == 0);
    json_free(head);
    pair_close(p);
}

static void send_raw(int fd, const void *bytes, size_t n) {
    CHECK(write(fd, bytes, n) == (ssize_t)n);
}

static void noise_is_skipped(void) {
    static const struct {
        const char *noise;
        size_t allowed;
        int want;
        const char *message;
    } rows[] = {
        {"", 0, 1, NULL},
        {"Welcome to node 7\n", 64, 1, NULL},
        {"CPCPFCPF", 8, 1, NULL}, /* looks like the magic and is not */
        {"CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", 32, 1, NULL},
        {"x", 0, -1, "does not speak this protocol"},
        {"Welcome to node 7\n", 10, -1, "does not speak this protocol"},
        {"a line of more than twenty-four bytes, then some", 30, -1, "it said: a line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int is_socket = 0; is_socket < 2; is_socket++) {
            int p[2];
            struct frame f;
            pair_new(p, is_socket);
            send_raw(p[1], rows[i].noise, strlen(rows[i].noise));
            CHECK(frame_write(p[1], 5, NULL, S("b"), NULL, 0, &err));
            CHECK(frame_write(p[1], 6, NULL, S(""), NULL, 0, &err));
            int got = frame_read(p[0], rows[i].allowed, &f, &err);
            CHECKF(got == rows[i].want, "row %zu: %s", i, err.text);
            if (got == 1) {
                CHECK(f.type == 5 && str_is(f.blob, "b"));
                frame_release(&f);
                CHECK(frame_read(p[0], 0, &f, &err) == 1 && f.type == 6);
                frame_release(&f);
            } else {
                CHECKF(strstr(err.text, rows[i].message), "row %zu: %s", i, err.text);
            }
            pair_close(p);
        }
}

static void end_before_the_first_frame_quotes(void) {
    int p[2];
    struct frame f;
    pair_new(p, false);
    send_raw(p[1], "ssh: no route to host\n", 22);
    close(p[1]);
    CHECK(frame_read(p[0], 4096, &f, &err) == -1);
    CHECKF(strstr(err.text, "it said: ssh: no route to host"), "%s", err.text);
    close(p[0]);
}

/* One byte at a time, from another process; the blob is larger than the first step of memory. */
static void split_in_bytes(void) {
    int p[2], bytes[2];
    struct frame f;
    pair_new(p, true);
    pair_new(bytes, false);
    json *head = head_new(-1);
    CHECK(frame_write(bytes[1], 9, head, S("0123456789"), NULL, 0, &err));
    close(bytes[1]);
    if (fork() == 0) {
        char c;
        while (read(bytes[0], &c, 1) == 1)
            if (write(p[1], &c, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(p[1]);
    CHECK(frame_read(p[0], 0, &f, &err) == 1);
    CHECK(f.type == 9 && str_is(f.blob, "0123456789"));
    frame_release(&f);
    CHECK(frame_read(p[0], 0, &f, &err) == 0);
    wait(NULL);
    json_free(head);
    close(p[0]);
    close(bytes[0]);
}

static void large_blob(void) {
    int p[2];
    struct frame f;
    size_t n = 5u << 20;
    char *big = mem_alloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 31 >> 3);
    pair_new(p, true);
    pid_t pid = fork();
    if (pid == 0) {
        fcntl(p[1], F_SETFL, O_NONBLOCK); /* the writer waits by itself */
        _exit(!frame_write(p[1], 1, NULL, (str){big, n}, NULL, 0, &err));
    }
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    CHECK(frame_read(p[0], 0, &f, &err) == 1);
    CHECK(f.blob.n == n && memcmp(f.blob.p, big, n) == 0);
    frame_release(&f);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    mem_free(big);
    pair_close(p);
}

static void hostile_headers(void) {
    static const struct {
        uint32_t json_bytes, nfds;
        uint64_t blob_bytes;
        const char *message;
    } rows[] = {
        {(16u << 20) + 1, 0, 0, "bytes of JSON, over the limit"},
        {0xffffffff, 0, 0, "bytes of JSON, over the limit"},
        {0, 0, (256u << 20) + 1, "over the limit"},
        {0, 0, UINT64_MAX, "over the limit"},
        {0, 65, 0, "65 descriptors, over the limit"},
        {0, 1, 0, "0 descriptors came where 1 were announced"},
        {0, 0, 256u << 20, "peer ended inside a frame"}, /* promised, never sent */
        {16u << 20, 0, 0, "peer ended inside a frame"},
        {3, 0, 0, "peer ended inside a frame"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int p[2];
        struct frame f;
        unsigned char h[24];
        pair_new(p, true);
        send_raw(p[1], h, raw(h, 1, rows[i].json_bytes, rows[i].nfds, rows[i].blob_bytes));
        close(p[1]);
        CHECK(frame_read(p[0], 0, &f, &err) == -1);
        CHECKF(err.kind == ERR_ENV && strstr(err.text, rows[i].message), "row %zu: %s", i,
               err.text);
        close(p[0]);
    }
}

static void truncated_anywhere(void) {
    unsigned char bytes[64];
    size_t n = raw(bytes, 1, 8, 0, 5);
    memcpy(bytes + n, "{\"v\":42}12345", 13);
    n += 13;
    for (size_t cut = 0; cut <= n; cut++) {
        int p[2];
        struct frame f;
        pair_new(p, cut % 2);
        send_raw(p[1], bytes, cut);
        close(p[1]);
        int got = frame_read(p[0], 0, &f, &err);
        CHECKF(got == (cut == 0 ? 0 : cut == n ? 1 : -1), "cut at %zu: %d", cut, got);
        if (got == -1)
            CHECKF(strcmp(err.text, "peer ended inside a frame") == 0, "%s", err.text);
        frame_release(&f);
        close(p[0]);
    }
}

static void bad_json(void) {
    static const char *const heads[] = {"{\"v\":", "[1]", "42", "{} x", "\xff\xff"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        int p[2];
        struct frame f;
        unsigned char h[24];
        pair_new(p, false);
        send_raw(p[1], h, raw(h, 1, (uint32_t)strlen(heads[i]), 0, 0));
        send_raw(p[1], heads[i], strlen(heads[i]));
        CHECK(frame_read(p[0], 0, &f, &err) == -1);
        CHECKF(strstr(err.text, "broken peer"), "%s", err.text);
        pair_close(p);
    }
}

static size_t open_count(void) {
    size_t n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void descriptors_travel(void) {
    int p[2], q[2], many[64];
    struct frame f;
    char c = 0;
    size_t before = open_count();
    pair_new(p, true);
    pair_new(q, false);
    for (int i = 0; i < 64; i++)
        many[i] = q[1];
    CHECK(frame_write(p[1], 1, NULL, S("x"), &q[1], 1, &err));
    CHECK(frame_write(p[1], 2, NULL, S(""), NULL, 0, &err));
    CHECK(frame_write(p[1], 3, NULL, S("y"), many, 64, &err));
    CHECK(!frame_write(p[1], 4, NULL, S(""), many, 65, &err));
    CHECK(frame_read(p[0], 0, &f, &err) == 1 && f.type == 1 && f.nfds == 1);
    CHECK(fcntl(f.fds[0], F_GETFD) == FD_CLOEXEC);
    CHECK(write(f.fds[0], "!", 1) == 1 && read(q[0], &c, 1) == 1 && c == '!');
    frame_release(&f);
    CHECK(frame_read(p[0], 0, &f, &err) == 1 && f.type == 2 && f.nfds == 0);
    frame_release(&f);
    CHECK(frame_read(p[0], 0, &f, &err) == 1 && f.type == 3 && f.nfds == 64);
    frame_release(&f);
    CHECK(!frame_write(q[1], 4, NULL, S(""), many, 1, &err)); /* a pipe carries none */
    pair_close(p);
    pair_close(q);
    CHECK(open_count() == before);
}

static void send_with_fds(int fd, const void *bytes, size_t n, int send, size_t nfds) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(200 * sizeof(int))];
    } control = {0};
    struct iovec iov = {(void *)bytes, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE(nfds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
    for (size_t i = 0; i < nfds; i++)
        memcpy(CMSG_DATA(c) + i * sizeof send, &send, sizeof send);
    CHECK(sendmsg(fd, &m, 0) == (ssize_t)n);
}

/* Whatever descriptors a broken peer sent are closed. */
static void wrong_descriptors(void) {
    static const struct {
        uint32_t announced;
        size_t sent;
        bool late; /* with the blob instead of the header */
    } rows[] = {{0, 1, false},   {2, 1, false}, {1, 3, false}, {64, 150, false},
                {1, 150, false}, {0, 1, true},  {2, 2, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int p[2];
        struct frame f;
        unsigned char h[24];
        size_t before = open_count();
        pair_new(p, true);
        raw(h, 1, 0, rows[i].announced, 4);
        if (rows[i].late) {
            send_raw(p[1], h, 24);
            send_with_fds(p[1], "blob", 4, p[1], rows[i].sent);
        } else {
            send_with_fds(p[1], h, 24, p[1], rows[i].sent);
            send_raw(p[1], "blob", 4);
        }
        CHECKF(frame_read(p[0], 0, &f, &err) == -1, "row %zu", i);
        CHECKF(strstr(err.text, "descriptors"), "row %zu: %s", i, err.text);
        pair_close(p);
        CHECKF(open_count() == before, "row %zu leaks", i);
    }
}

static void peer_gone_while_writing(void) {
    signal(SIGPIPE, SIG_DFL); /* which would end us */
    for (int is_socket = 0; is_socket < 2; is_socket++) {
        int p[2];
        pair_new(p, is_socket);
        close(p[0]);
        CHECK(!frame_write(p[1], 1, NULL, S("x"), NULL, 0, &err));
        CHECKF(err.kind == ERR_ENV && strstr(err.text, "Broken pipe"), "%s", err.text);
        close(p[1]);
    }
    sigset_t pending, blocked;
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    CHECK(!sigismember(&pending, SIGPIPE) && !sigismember(&blocked, SIGPIPE));
}

static void over_the_limit_is_not_sent(void) {
    int p[2];
    struct frame f;
    pair_new(p, true);
    CHECK(!frame_write(p[1], 1, NULL, (str){"", ((size_t)256 << 20) + 1}, NULL, 0, &err));
    close(p[1]);
    CHECK(frame_read(p[0], 0, &f, &err) == 0); /* not a byte of it */
    close(p[0]);
}

static const struct tap_case cases[] = {
    {"round trip on sockets and pipes", round_trip},
    {"the layout is fixed", layout_is_fixed},
    {"noise is skipped, within its bound", noise_is_skipped},
    {"an end before the first frame quotes the noise", end_before_the_first_frame_quotes},
    {"a frame in one-byte writes", split_in_bytes},
    {"a large blob, non-blocking descriptors", large_blob},
    {"hostile headers", hostile_headers},
    {"truncated anywhere", truncated_anywhere},
    {"heads that are not JSON objects", bad_json},
    {"descriptors travel", descriptors_travel},
    {"the wrong number of descriptors", wrong_descriptors},
    {"the peer is gone while writing", peer_gone_while_writing},
    {"over the limit is not sent", over_the_limit_is_not_sent},
};
TAP_CASES(cases)
