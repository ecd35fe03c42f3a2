/* One tensor under one kind of data, element by element, before definitions and assumptions
 * (data.c). Private to the room. */
#ifndef SPEC_SOURCE_H
#define SPEC_SOURCE_H

#include "base/rng.h"
#include "spec/data.h"

/* Streams: `value` for the main draw of an element, `choice` for signs and whether, `place` for
 * draws that concern a row or the whole tensor. */
struct source {
    enum data_kind kind;
    enum dtype dtype;
    char type; /* of dtype_info */
    struct dist dist;
    double a, b;      /* of the distribution */
    double magnitude; /* typical, never 0 */
    double factor;    /* of data_scale */
    bool held;        /* in lo … hi under every kind */
    int64_t lo, hi;
    int64_t count, row;
    struct rng value, choice, place;
    int64_t spot; /* one element that is always special */
    int64_t tile_row, tile_col, tile_rows, tile_cols;
};

/* Of a tensor that states a distribution. */
struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
                        enum data_kind kind, uint64_t seed);
double source_value(const struct source *s, int64_t i);
/* A finite value around those stated, for places where the kind's own is not allowed. */
double source_usual(const struct source *s, int64_t i);

#endif
