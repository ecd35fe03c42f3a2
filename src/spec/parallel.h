/* A range split over threads: static, contiguous, in order. Private to the room. What a piece does
 * may depend on its range only, so results do not depend on the number of threads. */
#ifndef SPEC_PARALLEL_H
#define SPEC_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

enum { PARALLEL_MOST = 64 };

/* Piece `part` of the work: items [first, last). */
typedef void parallel_fn(void *ctx, unsigned part, int64_t first, int64_t last);

/* Returns the number of pieces, at most PARALLEL_MOST and at least 1. A thread that cannot be
 * started costs time, not correctness: its piece runs here. */
unsigned parallel_for(unsigned threads, int64_t items, parallel_fn *fn, void *ctx);

#endif
