/* What a cubin says of itself. It is an ELF file: .nv.info sections have the facts of each kernel
 * that ptxas -v prints, and sections that are loaded and writable have the memory of the module.
 * Everything in it is bounds-checked, because it also comes out of a cache. */
#ifndef KERNEL_CUBIN_H
#define KERNEL_CUBIN_H

#include "base/arena.h"
#include "base/err.h"
#include "kernel/build.h"

/* Names are copied into the arena; kernels come in the order of the symbol table. */
bool cubin_facts(str cubin, struct arena *a, struct kernel_facts **out, size_t *n, struct err *err);

/* A variable that outlives a launch, whatever the source called it. */
struct cubin_variable {
    str name; /* empty: bytes that no symbol claims */
    size_t size;
    const uint8_t *init; /* size bytes of the cubin; NULL: zeros */
    bool writable;       /* by any store; otherwise it is in a bank of constants */
    bool used_by_code;   /* a relocation of a code section refers to it */
};
/* Names and initial values are the cubin's own bytes. Shared and local memory are not among them.
 */
bool cubin_variables(str cubin, struct arena *a, struct cubin_variable **out, size_t *n,
                     struct err *err);

#endif
