/* Kinds of rows, by layout, number and length. */
#include "agent/expert/rows/rows_kind.h"
#include "agent/expert/rows/rows.h"

#define KEPT_SHARE 0.47  /* of an SM's shared memory, for one of two blocks */
#define WIDE_SHARE 0.968 /* of a block's shared memory, for its part of a row in a cluster */

static enum rows_kind kind_by_number(const struct briefing *b, const struct rows_group *g) {
    int64_t rows = rows_count(g);
    if (g->any_whole || rows >= 2 * b->gpu->sms)
        return ROWS_NONE;
    return rows == 1 ? ROWS_ONE : rows <= 16 ? ROWS_FEW : ROWS_SOME;
}

static enum rows_kind kind_of_outer(const struct briefing *b, const struct rows_group *g) {
    int64_t lanes = 128; /* rows of a block: 32 lanes of 16 bytes */
    bool few = !g->any_whole && rows_count(g) < 2 * b->gpu->sms * lanes && rows_columns(g) > 256;
    return few ? ROWS_OUTER_FEW : ROWS_OUTER;
}

static enum rows_kind kind_by_length(const struct gpu *gpu, const struct rows_group *g) {
    double kept = KEPT_SHARE * (double)gpu->shared_sm;
    double columns = (double)rows_columns(g), bytes = columns * (double)rows_column_bytes(g);
    if (columns <= 256)
        return ROWS_LANES;
    if (columns <= 1024)
        return ROWS_WARP;
    if (!g->any_whole)
        return ROWS_STREAM;
    if (bytes <= 64e3)
        return ROWS_BLOCK;
    if (bytes <= kept)
        return ROWS_SHARED;
    if (gpu->has.cluster_most < 8)
        return ROWS_STREAM;
    return bytes <= 4 * kept                                     ? ROWS_CLUSTER
           : bytes <= 8 * WIDE_SHARE * (double)gpu->shared_block ? ROWS_WIDE
                                                                 : ROWS_STREAM;
}

enum rows_kind rows_kind_of(const struct briefing *b, const struct step *st) {
    struct arena *mem = arena_new(16u << 20);
    struct rows_group g;
    bool allowed[TASK_MAX_STATEMENTS], take[TASK_MAX_STATEMENTS];
    enum rows_kind kind = ROWS_NONE;
    for (size_t i = 0; i < st->inst->task->nstatements; i++)
        allowed[i] = true;
    if (rows_match(st->inst, 0, allowed, true, mem, &g, take)) {
        kind = rows_lane_var(&g) >= 0 ? kind_of_outer(b, &g) : kind_by_number(b, &g);
        kind = kind == ROWS_NONE ? kind_by_length(b->gpu, &g) : kind;
    }
    arena_free(mem);
    return kind;
}
