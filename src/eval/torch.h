/* PyTorch: a task's `torch` line in a Python process of its own, timed as a baseline or evaluated
 * to be held against the task.
 *
 * The line is host code that came with a task, so it is never run here. `torch_open` starts
 * `cutepilot torch PYTHON DIR`, which confines itself and becomes Python (python.h); the helper
 * (assets/torch/helper.py) answers one request at a time over pipes and sleeps in between, so that
 * blocks of its samples and of our kernels' can alternate on one GPU. What it is confined by is
 * part of its facts. Inputs are values of our own generator, handed over in files of a folder that
 * is removed in the end.
 *
 * A baseline's numbers are the word of code that nobody verified: they serve to state a speedup and
 * nothing else, and verification never needs them. Failures (no Python, no PyTorch, no GPU, a line
 * that raises) are errors with a text for people; the caller goes on without. */
#ifndef EVAL_TORCH_H
#define EVAL_TORCH_H

#include "base/json.h"
#include "spec/task.h"

enum torch_mode { TORCH_EAGER, TORCH_COMPILED };
enum torch_numerics {
    TORCH_CLASS,   /* the task's accuracy class: fp32 without TF32, the others with */
    TORCH_DEFAULT, /* as PyTorch is imported */
};

struct torch_options {
    const struct inst *inst;
    const char *python;  /* "python3", looked up in PATH */
    const char *device;  /* "cuda:0"; "cpu" exercises the protocol alone */
    const char *assets;  /* as in asset_get */
    uint64_t seed;       /* of the inputs */
    const char *program; /* to start as `program torch …`; NULL: ourselves */
    unsigned limit_ms;   /* of every request; 0: minutes, by its kind */
};

struct torch_helper;

/* NULL and err. */
struct torch_helper *torch_open(const struct torch_options *o, struct err *err);
void torch_close(struct torch_helper *t); /* NULL is fine; kills it, removes its folder */
/* {torch, python, cuda, gpu, l2_bytes, sets, sandbox: {…}}; borrowed. */
const json *torch_facts(const struct torch_helper *t);

/* The first calls, outside of all timing; a compiled function is compiled here. */
bool torch_warm(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, struct err *err);
/* `count` samples in seconds, on the device, into samples. */
bool torch_time(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, size_t count,
                double *samples, struct err *err);

/* Without a task, for torch_values alone: python and assets are read of the options. */
struct torch_helper *torch_open_values(const struct torch_options *o, struct err *err);
/* The task's torch line on these inputs (one a tensor, NULL where it is none), widened to float64:
 * values[i] is the i-th output's, in order of declaration, room for its elements. False with
 * ERR_NO: the line is not what a torch line must be (docs/TASKS.md). ERR_ENV: there is no PyTorch,
 * or
 * `*lacks` and it does not have what the line calls. */
bool torch_values(struct torch_helper *t, const struct inst *in, const void *const *inputs,
                  double *const *values, bool *lacks, struct err *err);

/* Writes what a helper would be given, into a folder that exists: helper.py, the inputs and the
 * first request, request.json. For who runs helpers of his own (bench/expert/run: many tasks a
 * Python). */
bool torch_write(const struct torch_options *o, const char *dir, struct err *err);

const char *torch_mode_name(enum torch_mode m);         /* "eager", "compiled" */
const char *torch_numerics_name(enum torch_numerics n); /* "class", "default" */

#endif
