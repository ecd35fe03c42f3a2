/* Compilation: NVRTC in warm, sandboxed processes of their own, and the cache of what they made.
 *
 * The coordinator owns a pool on its loop; the pool keeps one compiler a job slot, restarts those
 * that die, and holds the clock on each compile. A build is the same bytes for the same key, so the
 * cache is content-addressed and safe with several writers: a file appears complete or not at all,
 * and one that fails its checksum is made again. Compile errors are cached; time-outs, crashes and
 * memory limits never. */
#ifndef KERNEL_BUILD_H
#define KERNEL_BUILD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/loop.h"
#include "kernel/candidate.h"
#include "kernel/verdict.h"
#include "target/gpu.h"

/* Where NVRTC was found: library, builtins and headers from one root. */
struct nvrtc_root {
    char library[512], include[512], cutlass[512]; /* cutlass may be empty: then what
                                                       includes it is a compile error */
    int major, minor;
    char origin[64]; /* "CUTEPILOT_CUDA", ".deps/cuda", "CUDA_HOME", … */
};
#define NVRTC_MIN_MAJOR 13
#define NVRTC_MIN_MINOR 0
/* Looks, in order, at $CUTEPILOT_CUDA (alone when set), .deps/cuda beside the program's folder,
 * $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. Does not load anything: the version is read off a
 * throw-away compiler process by nvrtc_probe. err says what was looked at and what to do. */
bool nvrtc_find(struct nvrtc_root *out, struct err *err);
/* Starts a compiler, asks it for its version, ends it. Fills major and minor; refuses old ones. */
bool nvrtc_probe(struct nvrtc_root *root, struct err *err);

struct build_request {
    str unit;         /* the whole text */
    const char *arch; /* "sm_90a"; "compute_90a": PTX alone, no cubin and no facts of kernels */
    bool fmad;        /* contraction, stated, never left to the default */
    bool cute;        /* CUTLASS headers and -default-device */
};

/* Facts of one kernel: what the cubin says, and of spills what ptxas said while it made it. */
struct kernel_facts {
    str name;
    int registers;
    int max_threads;                             /* a block, by its launch bounds; 0: not stated */
    size_t shared_static, local_bytes;           /* local: the whole stack frame, per thread */
    int64_t spill_store_bytes, spill_load_bytes; /* per thread, static; -1: not known */
};
/* How many blocks of a launch fit an SM; f NULL: as if it took no registers. */
struct occupancy launch_occupancy(const struct gpu *g, const struct kernel_facts *f,
                                  const struct bound_launch *l);

struct build {
    enum verdict verdict; /* ACCEPTED (it compiled), COMPILE_ERROR, COMPILE_LIMIT, FORBIDDEN */
    bool no_compiler;     /* none could be started: the environment's failure; see log */
    str log;              /* for people and models: bounded, our own paths folded */
    str ptx, cubin;
    struct kernel_facts *kernels;
    size_t nkernels;
    digest key;
    bool cached;
    double wall_ms; /* of the compile that made it, also when it came from the cache */
};

struct build_pool;
typedef void build_done_fn(void *ctx, const struct build *b); /* valid during the call */

struct build_pool_options {
    unsigned jobs;
    const char *cache;   /* folder; NULL: no cache */
    unsigned limit_ms;   /* of one compile; 0: 30 s */
    size_t memory_bytes; /* of one compiler; 0: 4 GiB */
    const char *program; /* to start as `program compiler`; NULL: ourselves */
};
struct build_pool *build_pool_new(struct loop *l, const struct nvrtc_root *root,
                                  const struct build_pool_options *o, struct err *err);
void build_pool_free(struct build_pool *p); /* kills; callbacks of open builds are not called */
/* Calls done from the loop, never from inside. False only when no compiler can be started at all.
 */
bool build_submit(struct build_pool *p, const struct build_request *r, build_done_fn *done,
                  void *ctx, struct err *err);
/* One build, start to end, on a loop of its own; its texts in the arena. False where no compiler
 * can be started; a source that does not compile is a build with that verdict. */
bool build_once(const struct nvrtc_root *root, const struct build_pool_options *o,
                const struct build_request *r, struct arena *a, struct build *out, struct err *err);
const struct nvrtc_root *build_pool_root(const struct build_pool *p);

/* The role: `cutepilot compiler LIBRARY INCLUDE CUTLASS`, frames on descriptor 3. argv holds the
 * three words after `compiler`; CUTLASS may be empty. */
int compiler_main(int argc, char **argv);

#endif
