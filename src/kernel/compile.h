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

/* The cache of builds: one file a key, complete or absent. A file names the key it was made for and
 * ends with a checksum over all of it; one that does not fit is made again.
 *
 *     DIR/ab/cdef….build:  "cutepilot-build 3\n", one line of JSON, log, PTX, cubin, SHA-256
 *
 * Several processes of one user may share a folder. What is read there is run as what the compiler
 * made, so a folder that others can write to is not used: DIR and its folders belong to this user
 * or to root, and nobody else may write to them (dir_check_private). A folder that is refused, or
 * that cannot be written, is said once on stderr and costs time, nothing else. Beyond
 * CACHE_MAX_BYTES the files longest unused go. */

#define CACHE_MAX_BYTES (1ull << 30)

/* Everything that the bytes of a build depend on. */
digest build_key(const struct build_request *r, const struct nvrtc_root *root);

struct build_cache;
struct build_cache *build_cache_new(const char *dir,
                                    uint64_t max_bytes); /* dir NULL: caches nothing */
void build_cache_free(struct build_cache *c);
/* Fills verdict, log, PTX, cubin and wall_ms from the arena. False: not there, or not whole. */
bool build_cache_get(struct build_cache *c, digest key, struct arena *a, struct build *out);
void build_cache_put(struct build_cache *c, const struct build *b);
void build_cache_prune(struct build_cache *c);

/* What ptxas says of the kernels it assembles (option -v), out of the compiler's log.
 *
 * It is the one place where spills are told apart from the rest of a stack frame. The lines are
 * statistics and differ between runs, so they are taken out of the log that people and models read;
 * warnings and advice of ptxas stay.
 *
 * Fills the spills of the kernels it names; returns the rest of the log, in the arena. */
str ptxas_log_take(str log, struct arena *a, struct kernel_facts *kernels, size_t n);

#endif
