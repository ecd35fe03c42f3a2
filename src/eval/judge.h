/* The judge: makes inputs, poisons outputs, knows the expected values, compares. A process of its
 * own that no candidate ever shares an address space or a context with.
 *
 * A case is one (shape, data) of the run's task with one seed: memory with the tensors in it, each
 * between canaries, and the references, which stay with the judge. Before each run the outputs get
 * a fresh random poison, after it canaries, inputs, poison and values are looked at, in this order.
 *
 * There are two: beside the simulator one that works on the host (cpu_judge.c), beside CUDA one
 * that works on the GPU in a context of its own (gpu_judge.c). */
#ifndef EVAL_JUDGE_H
#define EVAL_JUDGE_H

#include "device/role.h"

/* Socket on ROLE_FD. */
int judge_main(const struct device_name *d, unsigned threads);

#endif
