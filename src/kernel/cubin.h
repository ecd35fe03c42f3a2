/* The facts of each kernel in a cubin: an ELF file whose .nv.info sections say what ptxas -v says.
 * Everything in it is bounds-checked, because it also comes out of a cache. */
#ifndef KERNEL_CUBIN_H
#define KERNEL_CUBIN_H

#include "base/arena.h"
#include "base/err.h"
#include "kernel/build.h"

/* Names are copied into the arena; kernels come in the order of the symbol table. */
bool cubin_facts(str cubin, struct arena *a, struct kernel_facts **out, size_t *n, struct err *err);

#endif
