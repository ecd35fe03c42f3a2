/* Jobs as JSON: what the coordinator asks of a worker, and counters on their way back. */
#ifndef DEVICE_JOB_H
#define DEVICE_JOB_H

#include "base/json.h"
#include "kernel/candidate.h"
#include "sim/sim.h"

/* A bound plan: {steps, launches, memsets, workspaces, maps, align}. Read back, every reference
 * lies within its list and every number within the plan's limits; of tensors (are they the task's,
 * does a memset stay within one?) the caller knows more and checks it. */
json *plan_to_json(const struct bound_plan *p);
bool plan_from_json(const json *j, struct arena *a, struct bound_plan *out, struct err *err);

json *set_to_json(const struct inst *in);          /* settable dimensions: {"R": 3, …} */
bool set_is(const json *j, const struct inst *in); /* the dimensions of this instance */
bool set_from_json(const json *j, struct arena *a, struct binding **out, size_t *n,
                   struct err *err);

json *counters_to_json(const struct sim_counters *c);
bool counters_from_json(const json *j, struct sim_counters *out);
json *lines_to_json(const struct sim_result *r);          /* [{file, line, warp_instrs, …}] */
bool line_from_json(const json *j, struct sim_line *out); /* file borrows from the tree */
json *findings_to_json(const struct sim_findings *f);     /* [{check, line, other_line, text}] */

#endif
