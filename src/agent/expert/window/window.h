/* Windows: folds over a small range beside an index, `x[2*p + r - 1]`: pooling of any rank, with
 * stride, dilation and padding, and depthwise convolution, where the terms have weights.
 *
 * An axis of a window is a result's index and the reduced variable that runs beside it. A tap is a
 * read at such places: it is loaded once and held in a register for all results of a thread that
 * share it. Sizes of windows, strides and dilations are numbers in the text; sizes that they are
 * made from are required by the plan. Private to the family. */
#ifndef AGENT_EXPERT_WINDOW_H
#define AGENT_EXPERT_WINDOW_H

#include "agent/expert/sheet/pieces.h"

enum { WINDOW_AXES = 4, WINDOW_TAPS = 4, WINDOW_WEIGHTS = 4 };

struct window_axis {
    size_t out, reduced; /* variables */
    int64_t stride, dilation, size;
};
struct window_tap {
    const struct expr *node; /* the pad, or the read itself */
    const struct expr *read;
    bool sure;                   /* under no condition: inside wherever the results are */
    int position[WINDOW_AXES];   /* which index of the read belongs to the axis; -1: none */
    int64_t offset[WINDOW_AXES]; /* index = stride·out + dilation·reduced + offset */
};
struct window_shape {
    struct window_axis axes[WINDOW_AXES]; /* in order of their index variables */
    size_t naxes;
    struct window_tap taps[WINDOW_TAPS];
    size_t ntaps;
    uint64_t fixed;  /* dimensions that the text has as numbers, bits */
    bool separable;  /* terms are made of taps alone */
    uint32_t beside; /* index variables that reads in a term use which are no taps */
};
bool window_recognise(const struct inst *in, const struct statement *s, struct window_shape *out);

/* A step on its way into a sheet. */
struct window {
    struct sheet *sh;
    const struct step *st;
    const struct inst *in;
    const struct statement *fold;
    struct window_shape shape;
    size_t last; /* innermost variable: lanes run along it */
    /* Axes by number, -1: none. `down`: where a thread's results follow each other; `across`: along
     * the lanes. Without `down` a thread's results lie along the lanes, a block apart. */
    int down, across;
    /* decisions, as far as the shape allows them */
    int64_t block, items, lanes, width;
    bool halo, separable, hint;
    const char *type;
    str identity;
    struct slots names;
    struct scope k;
    struct { /* reads that are the same for all results of a block: its weights */
        const struct expr *read;
        str name;
    } weights[WINDOW_WEIGHTS];
    size_t nweights;
};

/* Input rows between the first and the last that `results` of them need along an axis, both
 * included. */
int64_t window_reach(const struct window_axis *x, int64_t results);
/* Results of a thread that slide over shared rows. */
bool window_slides(const struct window *w);

/* The shared tile of a block, for the only tap: its size, how it is filled, and the place in it of
 * the tap that the loops are at. */
struct window_tile {
    int64_t depth[WINDOW_AXES]; /* by axis: places of the tile along it */
    int64_t shift;              /* columns before the first that is needed, for aligned vectors */
    int64_t columns;            /* of a row, those included */
    int64_t bytes;
};
bool window_tile_of(const struct window *w, struct window_tile *out);
str window_tile_fill(struct window *w, const struct window_tile *t);
str window_tile_tap(struct window *w, const struct window_tile *t);

/* Expressions of the generator's own making. */
struct expr *window_number(struct sheet *sh, int64_t v);
struct expr *window_variable(struct sheet *sh, size_t v);
struct expr *window_binary(struct sheet *sh, enum expr_kind k, struct expr *a, struct expr *b);
/* The read with some of its indices replaced (NULL: kept). */
struct expr *window_read_at(struct sheet *sh, const struct expr *read, struct expr *const *index);

/* Comparisons for the indices of `read`, a tap of this window, that may lie outside: those that are
 * set in `moved`, and where the tap is not sure all others that are more than a variable. */
str window_inside(struct window *w, const struct window_tap *tap, const struct expr *read,
                  struct expr *const *moved);

bool window_write_kernel(struct window *w);

#endif
