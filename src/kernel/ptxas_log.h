/* What ptxas says of the kernels it assembles (option -v), out of the compiler's log.
 *
 * It is the one place where spills are told apart from the rest of a stack frame. The lines are
 * statistics and differ between runs, so they are taken out of the log that people and models read;
 * warnings and advice of ptxas stay. */
#ifndef KERNEL_PTXAS_LOG_H
#define KERNEL_PTXAS_LOG_H

#include "kernel/build.h"

/* Fills the spills of the kernels it names; returns the rest of the log, in the arena. */
str ptxas_log_take(str log, struct arena *a, struct kernel_facts *kernels, size_t n);

#endif
