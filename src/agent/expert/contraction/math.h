/* What the main loops share among themselves. */
#ifndef AGENT_EXPERT_CONTRACTION_MATH_H
#define AGENT_EXPERT_CONTRACTION_MATH_H

#include "agent/expert/contraction/contraction.h"

/* A main loop over a ring of tiles that cp.async fills (loop.cu): its template, with slots of its
 * own and name, type, rounds, splits; the slots of the kernel and of the struct of tiles. */
bool contraction_ring(struct con_writer *w, const char *template, struct slots *loop,
                      struct slots *kernel, struct slots *tiles);

/* Threads for fp32 multiply-adds, each with tm x tn results. */
void contraction_shape_threads(struct con_config *g, int warps);
void contraction_thread_tile(const struct con_config *g, int *tm, int *tn);
/* Warps side by side for mma.sync. */
void contraction_shape_warps(struct con_config *g, int warps);

#endif
