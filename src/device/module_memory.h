/* Memory of a module that a kernel may read: its constants, and the tables of the compiler's own
 * mathematics. Nothing may change it. What a cubin says of its initial content is compared with
 * what the GPU holds after a batch, so that a store that no inspection saw is seen by what it did.
 */
#ifndef DEVICE_MODULE_MEMORY_H
#define DEVICE_MODULE_MEMORY_H

#include "base/arena.h"
#include "device/cuda.h"

/* ACCEPTED: all of it is as the cubin has it; FORBIDDEN: why names the variable that is not. Any
 * other failure is our own: *code is the driver's, and why says what was tried. */
bool module_memory_same(const struct cuda *c, cu_module m, str cubin, struct arena *a,
                        enum verdict *verdict, int *code, struct err *why);

#endif
