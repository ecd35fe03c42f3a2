/* A candidate: device source and, in its `//!` lines, a declarative launch plan. There is no host
 * code to write, so there is none to distrust.
 *
 *     //! let S = 8
 *     //! require K % S == 0 && aligned(B, 128)
 *     //! workspace part[S, M, N] : f32
 *     //! tensormap tA = tiled(A, box=[64, 128], swizzle=128)
 *     //! workspace packed[N, K] : bf16
 *     //! once launch pack<<<ceil_div(N*K, 256), 256>>>(W, packed, N*K)
 *     //! memset C = 0
 *     //! launch gemm<<<[ceil_div(N, 128), M, S], 256, 98304, cluster=[2, 1, 1]>>>(tA, B, part, K)
 *     //! launch add<<<ceil_div(M*N, 256), 256>>>(part, C, M*N)
 *
 * `candidate_parse` reads the plan and binds its names to the task: dimensions and earlier lets in
 * arithmetic; tensors, workspaces, tensor maps and integer expressions as arguments. `plan_bind`
 * does the arithmetic for one instance and checks it against the hardware's rules. Steps (memsets
 * and launches) run in the order in which they are written. A workspace's content is undefined when
 * a plan starts; nothing a plan leaves in one is there when it runs again.
 *
 * The exception are the first steps of a plan that are marked `once`: they read parameters of the
 * task alone and write workspaces that no other step writes, the prepared ones. Whoever runs the
 * plan again with the same parameters may leave them out, and keeps these workspaces.
 *
 * Errors are the author's (a model's, often): they name the line and say what was expected.
 * docs/KERNELS.md is the manual.
 */
#ifndef KERNEL_CANDIDATE_H
#define KERNEL_CANDIDATE_H

#include "spec/task.h"

#define CANDIDATE_MAX_BYTES    (1u << 20)
#define CANDIDATE_MAX_LINES    256 /* of plan */
#define CANDIDATE_MAX_LAUNCHES 128
#define CANDIDATE_MAX_ARGS     64
#define PLAN_MAX_WORKSPACES    16
#define PLAN_MAX_MAPS          32
#define PLAN_MAX_MEMSETS       32
#define PLAN_MAX_STEPS         (CANDIDATE_MAX_LAUNCHES + PLAN_MAX_MEMSETS)
#define PLAN_ALIGN             16 /* bytes: of every tensor and workspace unless it asks for more */
#define PLAN_MAX_ALIGN         256
#define TENSORMAP_MAX_RANK     5
#define TENSORMAP_BYTES        128 /* of a CUtensorMap */
#define TENSORMAP_ALIGN        64  /* at least: CUDA 12's type has it, CUDA 13's has 128 */

enum arg_kind { ARG_INTEGER, ARG_TENSOR, ARG_WORKSPACE, ARG_TENSORMAP };
enum step_kind { PLAN_LAUNCH, PLAN_MEMSET };

/* ---- as written ---- */

struct plan_let {
    str name;
    struct expr *value;
};
struct plan_arg {
    enum arg_kind kind;
    size_t ref;         /* of the task's tensors, the workspaces or the maps */
    struct expr *value; /* INTEGER */
};
struct plan_launch {
    str kernel;
    struct expr *grid[3], *block[3], *cluster[3]; /* NULL: 1 */
    struct expr *shared;                          /* NULL: 0 */
    bool cooperative, once;
    struct plan_arg *args;
    size_t nargs;
    size_t at, len; /* of the line, for messages */
};
struct plan_require {
    struct expr *condition; /* aligned() in it is 1: the harness grants it */
    str text;               /* as written */
};
struct plan_workspace {
    str name;
    enum dtype dtype;
    struct expr *extent[TASK_MAX_RANK];
    size_t rank;
    uint32_t align; /* what aligned() asks for */
    bool prepared;  /* a step that is done once has it to write to */
    size_t at, len; /* of the line */
};
struct plan_tensormap {
    str name;
    enum arg_kind of; /* TENSOR, WORKSPACE */
    size_t ref;
    size_t rank;
    /* Innermost first. shape[0] NULL: the tensor's own extents; step[0] NULL: 1. */
    struct expr *box[TENSORMAP_MAX_RANK], *shape[TENSORMAP_MAX_RANK], *step[TENSORMAP_MAX_RANK];
    struct expr *swizzle; /* NULL: 0 */
    bool fill_nan;
    size_t at, len;
};
struct plan_memset {
    enum arg_kind of; /* TENSOR, WORKSPACE */
    size_t ref;
    struct expr *value; /* NULL: an infinity */
    bool negative;
    size_t at, len;
};
struct plan_step {
    enum step_kind kind;
    size_t index; /* of launches or memsets */
};

struct candidate {
    str file, source;
    const struct task *task;
    const char *assets; /* folder whose kernel/ wins over the embedded one; NULL: none */
    struct plan_let *lets;
    size_t nlets;
    struct plan_require *requires_;
    size_t nrequires;
    uint32_t align[TASK_MAX_TENSORS]; /* what aligned() asks for, at least PLAN_ALIGN */
    struct plan_workspace *workspaces;
    size_t nworkspaces;
    struct plan_tensormap *maps;
    size_t nmaps;
    struct plan_memset *memsets;
    size_t nmemsets;
    struct plan_launch *launches;
    size_t nlaunches;
    struct plan_step *steps;
    size_t nsteps, once_steps; /* the first so many are done once */
};

/* The text of a kernel file that a person names: one that is empty or not text is their mistake,
 * not a candidate that fails. */
bool candidate_read_file(const char *path, struct arena *a, str *out, struct err *err);
/* False: err is the text of a bad-plan verdict (kind ERR_INPUT). */
bool candidate_parse(str file, str source, const struct task *t, struct arena *a,
                     struct candidate **out, struct err *err);

/* ---- for one instance ---- */

struct bound_arg {
    enum arg_kind kind;
    size_t ref;    /* TENSOR: of the task; WORKSPACE, TENSORMAP: of the plan */
    int64_t value; /* INTEGER */
};
struct bound_workspace {
    str name;
    enum dtype dtype;
    uint64_t bytes;
    uint32_t align; /* of its first byte */
    bool prepared;  /* by the steps that are done once; the others only read it */
};
/* A CUtensorMap's fields, in the order of cuTensorMapEncodeTiled: innermost dimension first. */
struct bound_tensormap {
    enum arg_kind of; /* TENSOR, WORKSPACE */
    size_t ref;
    enum dtype dtype;
    unsigned rank;
    uint64_t extent[TENSORMAP_MAX_RANK], stride[TENSORMAP_MAX_RANK - 1]; /* bytes */
    uint32_t box[TENSORMAP_MAX_RANK], step[TENSORMAP_MAX_RANK];
    unsigned swizzle; /* 0, 32, 64 or 128 bytes */
    bool fill_nan;
};
struct bound_memset {
    enum arg_kind of; /* TENSOR, WORKSPACE */
    size_t ref;
    uint64_t pattern; /* the lower `size` bytes are an element, little endian */
    unsigned size;    /* of an element: 1, 2, 4 or 8 */
    uint64_t count;   /* elements */
};
struct bound_launch {
    str kernel;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* 1, 1, 1: none */
    bool cooperative, once;
    uint64_t shared;    /* dynamic, bytes */
    uint32_t blocks_sm; /* that an SM holds at a time; 0: not known before it is compiled */
    struct bound_arg *args;
    size_t nargs;
};
struct bound_step {
    enum step_kind kind;
    size_t index; /* of launches or memsets */
};
struct bound_plan {
    struct bound_step *steps; /* what runs, in order */
    size_t nsteps;
    size_t once_steps; /* the first so many, which need not run again for the same parameters */
    struct bound_launch *launches;
    size_t nlaunches;
    struct bound_memset *memsets;
    size_t nmemsets;
    struct bound_workspace *workspaces;
    size_t nworkspaces;
    struct bound_tensormap *maps;
    size_t nmaps;
    uint32_t align[TASK_MAX_TENSORS]; /* of each tensor's first byte: PLAN_ALIGN or more */
};

/* Do the require lines hold for this instance? False with err when the arithmetic fails. `which` is
 * the first that does not hold. */
bool plan_fits(const struct candidate *c, const struct inst *in, bool *fits, str *which,
               struct err *err);
bool plan_bind(const struct candidate *c, const struct inst *in, struct arena *a,
               struct bound_plan *out, struct err *err);

/* What the candidate's text is called in the unit, hence in diagnostics and line tables. */
#define CANDIDATE_UNIT_FILE "kernel.cu"
/* The text that is compiled: a prelude (macros a kernel writer expects), the source as it is with
 * its line numbers kept, and after it the checks of argument types. */
bool candidate_unit(const struct candidate *c, struct buf *out, struct err *err);

#endif
