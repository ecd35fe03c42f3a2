/* Static checks on the PTX, where macros and inline assembly cannot hide: the kernels of the plan
 * exist with the planned arguments, no writable globals, no device malloc, printf or launch. */
#ifndef KERNEL_INSPECT_H
#define KERNEL_INSPECT_H

#include "kernel/candidate.h"
#include "kernel/verdict.h"
#include "ptx/ptx.h"

/* ACCEPTED, BAD_PLAN or FORBIDDEN; why says it for the author. */
enum verdict ptx_inspect(const struct candidate *c, const struct ptx_module *m, struct err *why);

/* Lays out a launch's arguments as the entry's parameters: addresses[i] is the device address of
 * tensor i. Fails when an integer does not fit its parameter. params has room for 4096 bytes. */
bool launch_params(const struct bound_launch *l, const struct ptx_entry *e,
                   const uint64_t *addresses, uint8_t *params, size_t *size, struct err *err);

#endif
