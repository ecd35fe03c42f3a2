/* What pool and compiler say to each other, in frames on a socket. The compiler speaks first:
 *
 *     HELLO   {"major", "minor", "pid", "sandbox", "landlock", "missing"} or {"error": text}: it
 *             has NVRTC loaded and has closed its sandbox, or says why not and ends
 *     READY   {}: one small compile has warmed it up
 *
 * and then answers each request, one after the other, until end of file:
 *
 *     COMPILE {"options": […]}, blob: the unit
 *     BUILT   {"status": name of enum compile_status, "log", "ms", "ptx": bytes, "cubin": bytes},
 *             blob: PTX, then cubin
 */
#ifndef KERNEL_COMPILE_H
#define KERNEL_COMPILE_H

#include "base/child.h"
#include "base/json.h"
#include "kernel/build.h"

enum { FRAME_HELLO = 1, FRAME_READY, FRAME_COMPILE, FRAME_BUILT };

enum compile_status {
    COMPILE_OK,
    COMPILE_FAILED, /* the source's fault: the log says it */
    COMPILE_MEMORY,
    COMPILE_OUTPUT, /* PTX or cubin over COMPILE_MAX_OUTPUT */
    COMPILE_BROKEN, /* NVRTC failed in another way */
    COMPILE_STATUS_COUNT
};

#define COMPILE_MAX_LOG    (64u << 10)
#define COMPILE_MAX_OUTPUT (64u << 20)
#define COMPILE_MAX_UNIT   (4u << 20)

static inline bool nvrtc_new_enough(int major, int minor) {
    return major > NVRTC_MIN_MAJOR || (major == NVRTC_MIN_MAJOR && minor >= NVRTC_MIN_MINOR);
}

/* Starts `program compiler …` with its end of the socket as descriptor 3. program NULL: ourselves.
 * *fd is ours to close. */
bool compiler_start(const struct nvrtc_root *root, const char *program, size_t memory_bytes,
                    struct child *child, int *fd, struct err *err);
/* Reads a HELLO into the root; fails when it carries an error or NVRTC is too old. */
bool compiler_hello(const json *hello, struct nvrtc_root *root, struct err *err);

#endif
