/* Speaking to a device process as a worker does, for tests: start it, send it messages, take its
 * answers. */
#ifndef TESTS_DEVICE_CLIENT_H
#define TESTS_DEVICE_CLIENT_H

#include "base/child.h"
#include "base/frame.h"
#include "device/role.h"
#include "device/wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct client {
    struct child child;
    int sock;
};

/* `program device`, with its log on descriptor 4 where there is one, environment as given. */
static bool client_start(struct client *c, const char *program, int log, const char *const *env) {
    const char *argv[] = {program, "device", NULL};
    struct err err = {0};
    int pair[2];
    if (!socket_pair(pair, &err))
        return false;
    struct child_fd fds[] = {{2, 2}, {pair[1], ROLE_FD}, {log, 4}};
    struct child_spec spec = {.argv = argv, .env = env, .fds = fds, .nfds = log >= 0 ? 3 : 2};
    bool ok = child_start(&spec, &c->child, &err);
    close(pair[1]);
    c->sock = pair[0];
    if (!ok)
        printf("# %s\n", err.text);
    return ok;
}

static int client_end(struct client *c) {
    close(c->sock);
    return child_wait(&c->child);
}

/* The next frame, or type 0 when the process is gone. */
static struct frame client_get(struct client *c) {
    struct frame f = {0};
    struct err err = {0};
    if (frame_read(c->sock, 0, &f, &err) <= 0)
        f.type = 0;
    return f;
}

static bool client_send(struct client *c, enum wire type, json *head, str blob, const int *fds,
                        size_t nfds) {
    struct err err = {0};
    bool ok = frame_write(c->sock, type, head, blob, fds, nfds, &err);
    json_free(head);
    return ok;
}

static void client_task(struct client *c, str harness) {
    json *head = json_object();
    json_set_str(head, "task", S(""));
    json_set_str(head, "file", S("test"));
    json_set_i64(head, "oracle", 0);
    json_set_i64(head, "harness", (int64_t)harness.n);
    client_send(c, WIRE_TASK, head, harness, NULL, 0);
}

static struct frame client_load(struct client *c, str module) {
    json *head = json_object(), *sizes = json_array();
    json_push_i64(sizes, (int64_t)module.n);
    json_set(head, "modules", sizes);
    client_send(c, WIRE_LOAD, head, module, NULL, 0);
    return client_get(c);
}

static void client_buffer(struct client *c, int64_t id, size_t bytes, int fd) {
    json *head = json_object(), *list = json_array(), *b = json_object();
    json_set_i64(b, "id", id);
    json_set_i64(b, "bytes", (int64_t)bytes);
    json_push(list, b);
    json_set(head, "buffers", list);
    client_send(c, WIRE_BUFFERS, head, (str){0}, &fd, 1);
}

static json *span_json(int64_t buffer, int64_t offset, int64_t bytes) {
    json *j = json_object();
    json_set_i64(j, "buffer", buffer);
    json_set_i64(j, "offset", offset);
    json_set_i64(j, "bytes", bytes);
    return j;
}

/* Runs of one module: each case once. Takes tensors (a list a case) and workspaces. */
/* how: a flag of the message; NULL: none. */
static inline struct frame client_run_as(struct client *c, const struct bound_plan *p,
                                         json *tensors, json *workspaces, size_t runs, bool timed,
                                         const char *how) {
    json *head = json_object(), *cases = json_array(), *one = json_object(), *plans = json_array();
    json *order = json_array();
    json_set(one, "tensors", tensors);
    json_push(cases, one);
    json_set(head, "cases", cases);
    json_set(head, "workspaces", workspaces ? workspaces : json_array());
    json_push(plans, fields_to_json(&bound_plan_fields, p));
    json_set(head, "plans", plans);
    for (size_t i = 0; i < runs; i++) {
        json *run = json_array();
        json_push_i64(run, 0);
        json_push_i64(run, 0);
        json_push(order, run);
    }
    json_set(head, "runs", order);
    json_set_bool(head, "timed", timed);
    json_set_bool(head, "fresh", true);
    if (how)
        json_set_bool(head, how, true);
    client_send(c, WIRE_RUN, head, (str){0}, NULL, 0);
    return client_get(c);
}

static inline struct frame client_run(struct client *c, const struct bound_plan *p, json *tensors,
                                      json *workspaces, size_t runs, bool timed) {
    return client_run_as(c, p, tensors, workspaces, runs, timed, NULL);
}

static inline str client_text(const struct frame *f, const char *key) {
    str s = S("");
    if (f->head)
        json_get_str(f->head, key, &s);
    return s;
}

#endif
