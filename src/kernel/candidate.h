/* A candidate: device source and, in its `//!` lines, a declarative launch plan. There is no host
 * code to write, so there is none to distrust.
 *
 *     //! let V = 4
 *     //! require N % V == 0
 *     //! launch relu<<<ceil_div(N, 256*V), 256>>>(x, y, N)
 *
 * `candidate_parse` reads the plan and binds its names to the task: dimensions and earlier lets in
 * arithmetic, tensors and integer expressions as arguments. `plan_bind` does the arithmetic for one
 * instance. Errors are the author's (a model's, often): they name the line and say what was
 * expected. docs/KERNELS.md is the manual. */
#ifndef KERNEL_CANDIDATE_H
#define KERNEL_CANDIDATE_H

#include "spec/task.h"

#define CANDIDATE_MAX_BYTES    (1u << 20)
#define CANDIDATE_MAX_LINES    256 /* of plan */
#define CANDIDATE_MAX_LAUNCHES 32
#define CANDIDATE_MAX_ARGS     64

struct plan_expr; /* private: plan.c */

struct plan_let {
    str name;
    struct plan_expr *value;
};
struct plan_arg {
    int tensor; /* index in the task, or -1: an integer */
    struct plan_expr *value;
};
struct plan_launch {
    str kernel;
    struct plan_expr *grid[3], *block[3]; /* NULL: 1 */
    struct plan_expr *shared;             /* NULL: 0 */
    struct plan_arg *args;
    size_t nargs;
    size_t at, len; /* of the line, for messages */
};
struct plan_require {
    struct plan_expr *condition;
    str text; /* as written */
};

struct candidate {
    str file, source;
    const struct task *task;
    struct plan_let *lets;
    size_t nlets;
    struct plan_require *requires_;
    size_t nrequires;
    struct plan_launch *launches;
    size_t nlaunches;
};

/* False: err is the text of a bad-plan verdict (kind ERR_INPUT). */
bool candidate_parse(str file, str source, const struct task *t, struct arena *a,
                     struct candidate **out, struct err *err);

struct bound_arg {
    int tensor; /* or -1 */
    int64_t value;
};
struct bound_launch {
    str kernel;
    uint32_t grid[3], block[3];
    uint64_t shared;
    struct bound_arg *args;
    size_t nargs;
};
struct bound_plan {
    struct bound_launch *launches;
    size_t nlaunches;
};

/* Do the require lines hold for this instance? False with err when the arithmetic fails. `which` is
 * the first that does not hold. */
bool plan_fits(const struct candidate *c, const struct inst *in, bool *fits, str *which,
               struct err *err);
bool plan_bind(const struct candidate *c, const struct inst *in, struct arena *a,
               struct bound_plan *out, struct err *err);

/* The text that is compiled: a prelude (macros a kernel writer expects), the source as it is with
 * its line numbers kept, and after it the checks of argument types. */
bool candidate_unit(const struct candidate *c, struct buf *out, struct err *err);

#endif
