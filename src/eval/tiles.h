/* Comparison on a sample of tiles, drawn in secret after the run: for a case of which everything
 * that is expected would not fit, or would take too long to make. What is expected of a tile is
 * made on the host (spec/part.h), so it takes no memory of a GPU.
 *
 * Of every output the tiles at its first and at its last element are among them. What lies outside
 * the tiles is not looked at: whoever accepts a case like this says so. */
#ifndef EVAL_TILES_H
#define EVAL_TILES_H

#include "eval/judge_private.h"
#include "spec/data.h"
#include "spec/part.h"

#define TILES_MOST 24 /* of an output */

/* Boxes of one output, by this key. */
size_t tiles_draw(const struct inst *in, size_t tensor, uint64_t key, struct part out[TILES_MOST]);

/* Elements [first, first + count) of a tensor, as the candidate left them. */
typedef bool tiles_fetch_fn(void *ctx, size_t tensor, int64_t first, size_t count, void *dst,
                            struct err *err);
struct tiles_case {
    const struct inst *in;
    const struct data_scale *scale;
    enum data_kind data; /* not nonfinite */
    uint64_t seed;       /* of inputs and parameters */
    uint64_t poison;     /* key of what outputs held before */
    uint64_t draw;       /* key of the tiles */
    unsigned threads;
};
/* False with err: the environment failed, or not one tile could be compared. The verdict is in r,
 * where ruling_next was called before. */
bool tiles_judge(const struct tiles_case *c, tiles_fetch_fn *fetch, void *ctx, struct ruling *r,
                 struct err *err);

#endif
