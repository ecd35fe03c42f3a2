/* A range split over threads: static, contiguous, in order. What a piece does may depend on its
 * range only, so results do not depend on the number of threads. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PARALLEL_MOST = 64 };

/* Piece `part` of the work: items [first, last). */
typedef void parallel_fn(void *ctx, unsigned part, int64_t first, int64_t last);

/* Returns the number of pieces, at most PARALLEL_MOST and at least 1. A thread that cannot be
 * started costs time, not correctness: its piece runs here. */
unsigned parallel_for(unsigned threads, int64_t items, parallel_fn *fn, void *ctx);

/* Processors that this process may use: of its affinity, and no more than the quota of its control
 * groups allows (cpu.max of version 2); at least 1. */
unsigned cores_usable(void);
/* The quota of a cpu.max file ("150000 100000") in whole processors, rounded up; 0: none. */
unsigned cores_of_quota(str text);

/* memcpy and memcmp for what is large enough to be worth a thread. */
void parallel_copy(unsigned threads, void *dst, const void *src, size_t bytes);
bool parallel_equal(unsigned threads, const void *a, const void *b, size_t bytes);

#endif
