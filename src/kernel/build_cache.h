/* The cache of builds: one file a key, complete or absent, with a checksum over all of it.
 *
 *     DIR/ab/cdef….build:  "cutepilot-build 2\n", one line of JSON, log, PTX, cubin, SHA-256
 *
 * Several processes may share a folder. A folder that cannot be written is said once on stderr and
 * costs time, nothing else. Beyond CACHE_MAX_BYTES the files longest unused go. */
#ifndef KERNEL_BUILD_CACHE_H
#define KERNEL_BUILD_CACHE_H

#include "kernel/build.h"

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

#endif
