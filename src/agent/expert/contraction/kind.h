/* What a matrix product is like, for whoever plans: the cases of the comment at the head of
 * contraction.c. Needs nothing but the step; writes nothing. */
#ifndef AGENT_EXPERT_CONTRACTION_KIND_H
#define AGENT_EXPERT_CONTRACTION_KIND_H

#include "agent/expert/sheet/sheet.h"

enum contraction_kind {
    CONTRACTION_NONE,
    CONTRACTION_WIDE,       /* dense, large, of a type that warp groups multiply */
    CONTRACTION_PAIR,       /* the same with two folds: half the tile each */
    CONTRACTION_EXACT,      /* large, f32 operands in class fp32 */
    CONTRACTION_TRIANGLE,   /* the range of k depends on the result */
    CONTRACTION_GAPS_THIN,  /* a transposed convolution with a stride, one side of at most 32 */
    CONTRACTION_GAPS,       /* … larger */
    CONTRACTION_FEW,        /* dense, of a type that warp groups multiply, but tiles for few SMs */
    CONTRACTION_FEW_SHORT,  /* … and sums that are not long */
    CONTRACTION_FEW_SMALL,  /* … and few tiles even when they are small */
    CONTRACTION_SPLIT,      /* few tiles, long sums, for warps: several blocks share each */
    CONTRACTION_SPLIT_THIN, /* … one side of at most 64 */
    CONTRACTION_THIN,       /* one side of at most 32 */
    CONTRACTION_HALF,       /* … of at most 64 */
    CONTRACTION_LARGE,      /* tiles of 128 x 128 for all SMs */
    CONTRACTION_SMALL,      /* not so many */
};
enum contraction_kind contraction_kind_of(const struct briefing *b, const struct step *st);

/* A value that the opening leaves to the shape: of tile-m and tile-n the least that covers the
 * side, at most 128; of tile-k rows of 128 bytes; of split-k the parts that give every SM its
 * blocks, unless sums become too short, for the path and the tiles that the strategy has already.
 */
int64_t contraction_fitting(const struct briefing *b, const struct step *st,
                            const struct strategy *s, const char *decision);

#endif
