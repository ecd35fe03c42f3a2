/* What kind of rows a step has, for those who choose its strategy (openings.c). Needs nothing but
 * the step; writes nothing. */
#ifndef AGENT_EXPERT_ROWS_KIND_H
#define AGENT_EXPERT_ROWS_KIND_H

#include "agent/expert/sheet/sheet.h"

enum rows_kind {
    ROWS_NONE,      /* the step is no group of rows */
    ROWS_OUTER,     /* columns far apart in memory, neighbouring rows together */
    ROWS_OUTER_FEW, /* the same, too few rows to fill the GPU: blocks share them */
    ROWS_ONE,       /* everything to one result */
    ROWS_FEW,       /* up to 16 results: blocks share a row */
    ROWS_SOME,      /* fewer than two blocks an SM: blocks share a row */
    ROWS_LANES,     /* up to 256 columns: several rows a warp */
    ROWS_WARP,      /* up to 1,024 columns: a warp each */
    ROWS_BLOCK,     /* a block's registers keep a row */
    ROWS_SHARED,    /* a block's shared memory keeps a row, with room for a second block */
    ROWS_CLUSTER,   /* a cluster of four does */
    ROWS_WIDE,      /* a cluster of eight does */
    ROWS_STREAM,    /* longer, or read only once: no need to keep anything */
    ROWS_KINDS
};
enum rows_kind rows_kind_of(const struct briefing *b, const struct step *st);

#endif
