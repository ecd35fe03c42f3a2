/* Export: verified kernels as something that other programs use.
 *
 * A package is one operation: kernels of the same task (for several shapes or GPUs), each the
 * winner of a run, with the launch plan as host code in the language of whoever uses it, the
 * machine code, the source, and the evidence that the run left. Nothing is judged here: a run whose
 * winner was not accepted is refused before a package exists. The host code is written from the
 * plan (kernel/plan.h), so that it launches exactly what was verified. An imported module of
 * several tasks is one package too, in which each task is such an operation.
 *
 * The caller owns everything that a package points to; writers only read it. A writer makes its
 * folder, which must not exist, and removes it again when it fails. */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/json.h"
#include "kernel/build.h"
#include "kernel/candidate.h"

struct export_kernel {
    const char *run; /* the folder that it comes from */
    str label;       /* what it is called in the package: "0", or "lstm_0" for a part of a module */
    const struct task *task;
    const struct inst *inst; /* the shape that was searched for */
    const struct candidate *candidate;
    str source, record; /* kernel.cu and outcome.json as the run left them */
    str device;         /* "sim:h200", "cuda" */
    str time;           /* "3.9 us, estimated on NVIDIA H200"; for people */
    str arch;           /* "sm_90a" */
    str unit;           /* the whole text that is compiled */
    str cubin;
    char source_hash[65];
    /* Bytes of each parameter, by launch and argument: an integer of 4 must fit them. */
    const size_t *const *parameter_bytes;
};

struct export_package {
    str name;    /* an identifier: of files, functions, the Python package */
    str command; /* that made it, for its documents */
    const char *folder;
    const char *assets;            /* folder that wins over the embedded assets; NULL: none */
    struct export_kernel *kernels; /* of one operation: export_same_operation */
    size_t n;
    /* PyTorch: kernels that compute the gradients, or none. Their task reads tensors of the
     * operation, by name, and gradients of its results (dy or grad_y, of y), and writes gradients
     * of what it reads. */
    struct export_kernel *backward;
    size_t nbackward;
    bool torch; /* a package for PyTorch */
    bool hub;   /* PyTorch: the layout that Hugging Face's kernel-builder takes, not pip's */
    /* An imported module of several tasks (graph.h): `kernels` are then those of all its parts.
     * NULL: one operation. */
    const struct export_graph *graph;
    struct arena *mem;
};

/* Whether a name can be one of C's, Python's and of files: a letter, then letters, digits and _,
 * no keyword of either, and not the name of something that a package needs itself. */
bool export_name_ok(str name);
/* Whether two tasks are the same but for sizes, types, accuracy and data: kernels for them can be
 * one operation. */
bool export_same_operation(const struct task *a, const struct task *b, struct err *err);

/* Whether a name can also be one of kernel-builder's: lower case, two letters or more, no _ at the
 * ends. */
bool export_hub_name_ok(str name);

/* NAME.h and NAME.c, which need libcuda alone. */
bool export_c(const struct export_package *p, struct err *err);
/* A Python package: a PyTorch operator over the kernels, with the task's torch line as fallback. */
bool export_torch(const struct export_package *p, struct err *err);
/* The cubins, and the plan of each at its own shape as JSON; of a module the order too. */
bool export_cubin(const struct export_package *p, struct err *err);

/* The same for a module of several tasks: one entry, NAME_forward, which runs them in their order.
 */
bool export_graph_c(const struct export_package *p, struct err *err);
bool export_graph_torch(const struct export_package *p, struct err *err);

#endif
