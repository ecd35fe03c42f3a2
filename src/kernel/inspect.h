/* Static checks on the PTX, where macros and inline assembly cannot hide: the kernels of the plan
 * exist with the planned arguments, no writable globals, no device malloc, printf or launch. */
#ifndef KERNEL_INSPECT_H
#define KERNEL_INSPECT_H

#include "kernel/candidate.h"
#include "kernel/verdict.h"
#include "ptx/ptx.h"

/* ACCEPTED, BAD_PLAN or FORBIDDEN; why says it for the author. */
enum verdict ptx_inspect(const struct candidate *c, const struct ptx_module *m, struct err *why);

/* The part of it that is about memory at module scope, on its own. ACCEPTED or FORBIDDEN. */
enum verdict inspect_memory(const struct candidate *c, const struct ptx_module *m, struct err *why);

/* The same of the compiled code, by the cubin's own account of its memory: whatever the PTX was
 * taken to say, a variable that outlives a launch is a library's table or has no user. ptx is the
 * text that the cubin was made from. ACCEPTED, FORBIDDEN, or UNSUPPORTED for a file that cannot be
 * read. */
enum verdict inspect_cubin(str cubin, str ptx, struct arena *a, struct err *why);

/* One of the tables that the compiler's own mathematics brings along: by name, size and content. */
bool library_table(str name, const uint8_t *init, size_t size);

/* Where a launch's arguments are on the device; arrays by the plan's references, NULL where it has
 * none. A map is the CUtensorMap that the driver encoded. */
struct launch_memory {
    const uint64_t *tensors, *workspaces;
    const uint8_t (*maps)[TENSORMAP_BYTES];
};

/* Lays out a launch's arguments as the entry's parameters. Fails when an integer does not fit its
 * parameter. params has room for PARAMS_MAX bytes. */
#define PARAMS_MAX 4096
bool launch_params(const struct bound_launch *l, const struct ptx_entry *e,
                   const struct launch_memory *m, uint8_t *params, size_t *size, struct err *err);

#endif
