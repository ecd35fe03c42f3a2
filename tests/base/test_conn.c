#include "base/arena.h"
#include "base/child.h"
#include "base/frame.h"
#include "tap.h"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static struct err err;

struct side {
    struct conn *c;
    int frames, closed;
    uint32_t types[64];
    size_t blob_bytes;
    int fd; /* the first that came; -1 */
    struct err why;
    bool free_on_frame, free_on_closed, answer;
};

static void on_frame(void *ctx, struct frame *f) {
    struct side *s = ctx;
    if (s->frames < 64)
        s->types[s->frames] = f->type;
    s->frames++;
    s->blob_bytes += f->blob.n;
    if (f->nfds) {
        s->fd = f->fds[0];
        f->fds[0] = -1;
    }
    frame_release(f);
    if (s->answer)
        conn_send(s->c, 1000, NULL, S("answer"), NULL, 0);
    if (s->free_on_frame) {
        conn_free(s->c);
        s->c = NULL;
    }
}

static void on_closed(void *ctx, const struct err *why) {
    struct side *s = ctx;
    s->closed++;
    s->why = *why;
    if (s->free_on_closed) {
        conn_free(s->c);
        s->c = NULL;
    }
}

static struct side side_new(void) {
    return (struct side){.fd = -1};
}

static void side_open(struct side *s, struct loop *l, int rfd, int wfd) {
    s->c = conn_new(l, rfd, wfd, 0, on_frame, on_closed, s, &err);
    CHECK(s->c);
}

static void steps(struct loop *l, int n) {
    while (n--)
        CHECK(loop_step(l, 20, &err));
}

static void talks_both_ways_on(bool is_socket) {
    struct loop *l = loop_new(&err);
    struct side a = side_new(), b = side_new();
    int p[2], q[2];
    b.answer = true;
    if (is_socket) {
        CHECK(socket_pair(p, &err));
        side_open(&a, l, p[0], p[0]);
        side_open(&b, l, p[1], p[1]);
    } else {
        CHECK(pipe_pair(p, &err) && pipe_pair(q, &err));
        side_open(&a, l, p[0], q[1]);
        side_open(&b, l, q[0], p[1]);
    }
    conn_send(a.c, 1, NULL, S("one"), NULL, 0);
    conn_send(a.c, 2, NULL, S("two"), NULL, 0);
    steps(l, 8);
    CHECK(b.frames == 2 && b.types[0] == 1 && b.types[1] == 2 && b.blob_bytes == 6);
    CHECK(a.frames == 2 && a.types[0] == 1000 && !a.closed && conn_pending(a.c) == 0);
    conn_free(b.c);
    steps(l, 3);
    CHECK(a.closed == 1 && a.why.kind == ERR_NONE);
    conn_send(a.c, 3, NULL, S("into the void"), NULL, 0);
    CHECK(conn_pending(a.c) == 0);
    steps(l, 2);
    CHECK(a.closed == 1);
    conn_free(a.c);
    loop_free(l);
}

static void talks_both_ways(void) {
    talks_both_ways_on(true);
    talks_both_ways_on(false);
}

static void queue_drains(bool is_socket) {
    struct loop *l = loop_new(&err);
    struct side a = side_new(), b = side_new();
    int p[2], q[2] = {-1, -1};
    size_t n = 3u << 20;
    char *big = mem_alloc(n);
    if (is_socket) {
        CHECK(socket_pair(p, &err));
        side_open(&a, l, p[0], p[0]);
        side_open(&b, l, p[1], p[1]);
    } else {
        CHECK(pipe_pair(p, &err) && pipe_pair(q, &err));
        side_open(&a, l, p[0], q[1]);
        side_open(&b, l, q[0], p[1]);
    }
    for (uint32_t i = 0; i < 4; i++)
        conn_send(a.c, i, NULL, (str){big, n}, NULL, 0);
    CHECK(conn_pending(a.c) > n);
    for (int i = 0; i < 20000 && b.frames < 4; i++)
        CHECK(loop_step(l, 100, &err));
    CHECK(b.frames == 4 && b.blob_bytes == 4 * n && conn_pending(a.c) == 0);
    CHECK(b.types[0] == 0 && b.types[3] == 3);
    uint64_t start = clock_ms();
    CHECK(loop_step(l, 30, &err)); /* an empty queue does not keep the loop awake */
    CHECK(clock_ms() - start >= 25);
    conn_free(a.c);
    conn_free(b.c);
    loop_free(l);
    mem_free(big);
}

static void queues_what_the_peer_does_not_take(void) {
    queue_drains(true);
    queue_drains(false);
}

static void descriptors_are_duplicated(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new(), b = side_new();
    int p[2], q[2];
    char c = 0, *big = mem_alloc(1u << 20);
    CHECK(socket_pair(p, &err) && pipe_pair(q, &err));
    side_open(&a, l, p[0], p[0]);
    side_open(&b, l, p[1], p[1]);
    conn_send(a.c, 1, NULL, (str){big, 1u << 20}, NULL, 0); /* makes the next one wait */
    conn_send(a.c, 2, NULL, S("with"), &q[1], 1);
    close(q[1]);
    for (int i = 0; i < 1000 && b.frames < 2; i++)
        CHECK(loop_step(l, 100, &err));
    CHECK(b.frames == 2 && b.fd >= 0);
    CHECK(write(b.fd, "!", 1) == 1 && read(q[0], &c, 1) == 1 && c == '!');
    close(b.fd);
    CHECK(read(q[0], &c, 1) == 0); /* no copy is left anywhere */
    close(q[0]);
    conn_free(a.c);
    conn_free(b.c);
    loop_free(l);
    mem_free(big);
}

static void free_from_callbacks(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new(), b = side_new();
    int p[2];
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    side_open(&b, l, p[1], p[1]);
    b.free_on_frame = true;
    a.free_on_closed = true;
    conn_send(a.c, 1, NULL, S(""), NULL, 0);
    conn_send(a.c, 2, NULL, S(""), NULL, 0);
    steps(l, 6);
    CHECK(b.frames == 1 && b.closed == 0 && !b.c);
    CHECK(a.closed == 1 && !a.c);
    loop_free(l);
}

static void broken_peer_closes_once(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2];
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    CHECK(write(p[1], "this is no frame at all, is it?", 31) == 31);
    steps(l, 4);
    CHECK(a.closed == 1 && a.frames == 0 && a.why.kind == ERR_ENV);
    conn_free(a.c);
    close(p[1]);
    loop_free(l);
}

static void end_inside_a_frame(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2];
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    CHECK(write(p[1], "CPF1\1\0", 6) == 6);
    steps(l, 1);
    close(p[1]);
    steps(l, 2);
    CHECK(a.closed == 1 && strstr(a.why.text, "inside a frame"));
    conn_free(a.c);
    loop_free(l);
}

/* A role that dies says why first: its last frame arrives although our write to it fails. */
static void last_words_arrive(void) {
    signal(SIGPIPE, SIG_DFL);
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2];
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    CHECK(frame_write(p[1], 99, NULL, S("out of memory"), NULL, 0, &err));
    close(p[1]);
    conn_send(a.c, 1, NULL, S("next request"), NULL, 0);
    CHECK(a.closed == 0 && conn_pending(a.c) == 0); /* never from inside conn_send */
    steps(l, 4);
    CHECK(a.frames == 1 && a.types[0] == 99 && a.closed == 1);
    conn_free(a.c);
    loop_free(l);
}

static void failed_write_is_told(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2], q[2];
    CHECK(pipe_pair(p, &err) && pipe_pair(q, &err));
    side_open(&a, l, p[0], q[1]);
    close(q[0]); /* only what we write to is gone */
    conn_send(a.c, 1, NULL, S("x"), NULL, 0);
    conn_send(a.c, 1, NULL, S("x"), NULL, 0);
    CHECK(a.closed == 0);
    steps(l, 3);
    CHECK(a.closed == 1 && strstr(a.why.text, "Broken pipe"));
    conn_free(a.c);
    close(p[1]);
    loop_free(l);
}

static void impossible_frames_close(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2], bad = 9999;
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    conn_send(a.c, 1, NULL, S(""), &bad, 1);
    steps(l, 2);
    CHECK(a.closed == 1 && strstr(a.why.text, "Bad file descriptor"));
    conn_free(a.c);
    close(p[1]);
    loop_free(l);
}

static void heads_over_the_limit_close(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2];
    size_t n = (size_t)17 << 20;
    char *many = mem_alloc(n);
    json *head = json_object();
    memset(many, 'x', n);
    json_set_str(head, "text", (str){many, n});
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    conn_send(a.c, 1, head, S(""), NULL, 0);
    steps(l, 2);
    CHECKF(a.closed == 1 && strstr(a.why.text, "over the limit"), "%s", a.why.text);
    conn_free(a.c);
    close(p[1]);
    loop_free(l);
    json_free(head);
    mem_free(many);
}

static void freed_before_the_failure_is_told(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int p[2];
    CHECK(socket_pair(p, &err));
    side_open(&a, l, p[0], p[0]);
    close(p[1]);
    conn_send(a.c, 1, NULL, S("x"), NULL, 0);
    conn_free(a.c);
    steps(l, 2);
    CHECK(a.closed == 0);
    loop_free(l);
}

static void unwatchable_descriptor(void) {
    struct loop *l = loop_new(&err);
    struct side a = side_new();
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    CHECK(!conn_new(l, fd, fd, 0, on_frame, on_closed, &a, &err));
    CHECK(err.kind == ERR_ENV && fcntl(fd, F_GETFD) < 0);
    loop_free(l);
}

static const struct tap_case cases[] = {
    {"talks both ways, on sockets and pipes", talks_both_ways},
    {"queues what the peer does not take", queues_what_the_peer_does_not_take},
    {"descriptors are duplicated", descriptors_are_duplicated},
    {"free from callbacks", free_from_callbacks},
    {"a broken peer closes once", broken_peer_closes_once},
    {"an end inside a frame", end_inside_a_frame},
    {"last words arrive", last_words_arrive},
    {"a failed write is told from the loop", failed_write_is_told},
    {"a frame that cannot be sent closes", impossible_frames_close},
    {"a head over the limit closes", heads_over_the_limit_close},
    {"freed before the failure is told", freed_before_the_failure_is_told},
    {"a descriptor that cannot be watched", unwatchable_descriptor},
};
TAP_CASES(cases)
