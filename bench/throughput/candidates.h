/* Distinct, honest candidates without end, for tasks that plain CUDA serves well: pointwise ones by
 * the built-in expert's generator over random strategies, reductions over a middle dimension from a
 * template over random parameters. A counter in a comment makes every text a new one, so no build
 * comes from a cache. */
#ifndef BENCH_CANDIDATES_H
#define BENCH_CANDIDATES_H

#include "agent/agent.h"

struct candidates {
    struct agent agent;
    struct catalogue *catalogue;
    struct briefing briefing;
    const struct reduction_row *reduction; /* NULL: pointwise */
    struct rng rng;
};

bool candidates_open(struct candidates *c, const struct inst *in, const struct gpu *g,
                     struct arena *a, struct err *err);
void candidates_close(struct candidates *c);
/* Number n of the sequence, into out. */
bool candidates_write(struct candidates *c, uint64_t n, struct buf *out, struct err *err);

#endif
