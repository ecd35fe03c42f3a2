/* The parts of the expert. Private to the room. */
#ifndef AGENT_EXPERT_EXPERT_H
#define AGENT_EXPERT_EXPERT_H

#include "agent/agent.h"

#define EXPERT_SOURCE_MAX (512u << 10)

/* n strategies for a first generation into out (room for n), and why. Fewer when the space has
 * fewer. */
struct opening_book;
size_t planner_plan(const struct opening_book *book, const struct briefing *b, size_t n,
                    struct rng r, struct strategy *out, struct buf *reason);
void planner_cross(const struct briefing *b, const struct parent *x, const struct parent *y,
                   struct rng r, struct strategy *out, struct buf *reason);

/* The families, in the order in which they are asked (sheet.h). */
struct family;
const struct family *const *expert_families(size_t *n);
/* Which family writes what; kept in the arena. NULL: err says why. */
struct partition *expert_steps(const struct briefing *b, struct arena *a, struct err *err);
/* The workloads of the steps of a task: whose decisions apply, and where. */
bool expert_workloads(const struct briefing *b, struct ground *out, struct err *err);

#endif
