/* The parent's side of a compiler's birth: starting one, and what its first words mean. */
#include "kernel/compile.h"

#include "base/file.h"
#include "base/frame.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROBE_MS 30000

/* The sanitizers' shadow memory takes far more address space than any limit allows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A compiler is given nothing of our environment but the seams that test it. */
static void compiler_environment(struct arena *a, const char *env[8]) {
    static const char *const kept[] = {"CUTEPILOT_FAULT", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                       "TSAN_OPTIONS"};
    size_t n = 0;
    env[n++] = "LC_ALL=C";
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = getenv(kept[i]);
        if (value)
            env[n++] = arena_printf(a, "%s=%s", kept[i], value).p;
    }
    env[n] = NULL;
}

bool compiler_start(const struct nvrtc_root *root, const char *program, size_t memory_bytes,
                    struct child *child, int *fd, struct err *err) {
    int pair[2];
    if (!socket_pair(pair, err))
        return err_wrap(err, "start a compiler");
    struct arena *a = arena_new(1u << 20);
    const char *env[8];
    compiler_environment(a, env);
    const char *argv[] = {program ? program : arena_cstr(a, self_path(a)),
                          "compiler",
                          root->library,
                          root->include,
                          root->cutlass,
                          NULL};
    /* stdin and stdout are /dev/null; stderr stays, for crashes of our own. */
    struct child_fd fds[] = {{pair[1], 3}, {2, 2}};
    struct child_spec spec = {.argv = argv, .env = env, .fds = fds, .nfds = 2};
    spec.limits.address_bytes = SANITIZED ? 0 : memory_bytes;
    bool ok = child_start(&spec, child, err);
    close(pair[1]);
    if (ok)
        *fd = pair[0];
    else
        close(pair[0]);
    arena_free(a);
    return ok || err_wrap(err, "compiler");
}

bool compiler_hello(const json *hello, struct nvrtc_root *root, struct err *err) {
    str text;
    int64_t major = 0, minor = 0;
    if (json_get_str(hello, "error", &text))
        return err_set(err, ERR_ENV, "%.*s", STR_ARG(text));
    if (!json_get_i64(hello, "major", &major) || !json_get_i64(hello, "minor", &minor))
        return err_set(err, ERR_ENV, "compiler: its greeting has no version");
    root->major = (int)major;
    root->minor = (int)minor;
    if (nvrtc_new_enough(root->major, root->minor))
        return true;
    return err_set(err, ERR_ENV,
                   "NVRTC %d.%d at %s is older than %d.%d\nhint: run tools/setup build, or set "
                   "CUTEPILOT_CUDA to a CUDA 13 toolkit",
                   root->major, root->minor, root->library, NVRTC_MIN_MAJOR, NVRTC_MIN_MINOR);
}

static bool probe_hello(int fd, struct nvrtc_root *root, bool *died, struct err *err) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct frame f = {0};
    if (poll(&p, 1, PROBE_MS) <= 0)
        return err_set(err, ERR_ENV, "compiler: no greeting within %d s", PROBE_MS / 1000);
    int got = frame_read(fd, 0, &f, err);
    bool ok = false;
    *died = got <= 0;
    if (got == 0)
        err_set(err, ERR_ENV, "compiler: ended without a greeting");
    else if (got > 0 && f.type != FRAME_HELLO)
        err_set(err, ERR_ENV, "compiler: its first frame is no greeting");
    else if (got > 0)
        ok = compiler_hello(f.head, root, err);
    frame_release(&f);
    return ok;
}

static bool probe_once(struct nvrtc_root *root, bool *died, struct err *err) {
    struct child child;
    int fd;
    *died = false;
    if (!compiler_start(root, NULL, 0, &child, &fd, err))
        return false;
    bool ok = probe_hello(fd, root, died, err);
    close(fd);
    child_kill(child.pid);
    child_wait(&child);
    return ok;
}

/* One that dies before it spoke may have been killed from outside: a second chance. */
bool nvrtc_probe(struct nvrtc_root *root, struct err *err) {
    bool died;
    return probe_once(root, &died, err) || (died && probe_once(root, &died, err));
}
