/* What a window is: axes and taps of a fold over a small range beside an index. Private to the
 * family.
 *
 * An axis of a window is a result's index and the reduced variable that runs beside it. A tap is a
 * read at such places. */
#ifndef AGENT_EXPERT_WINDOW_H
#define AGENT_EXPERT_WINDOW_H

#include "agent/expert/sheet/pieces.h"

enum {
    WINDOW_AXES = 4,
    WINDOW_TAPS = 4,
    WINDOW_LINE = 1024 /* places of a window along the innermost axis alone */
};

struct window_axis {
    size_t out, reduced; /* variables */
    int64_t stride, dilation, size;
};
struct window_tap {
    const struct expr *node; /* the pad, or the read itself */
    const struct expr *read;
    bool sure; /* under no condition: inside wherever the results are */
    struct window_place {
        int index;      /* which of the read's belongs to the axis; -1: none */
        int64_t offset; /* index = stride·out + dilation·reduced + offset */
    } along[WINDOW_AXES];
};
struct window_shape {
    struct window_axis axes[WINDOW_AXES]; /* in order of their index variables */
    size_t naxes;
    struct window_tap taps[WINDOW_TAPS];
    size_t ntaps;
    uint64_t fixed;  /* dimensions that the text has as numbers, bits */
    bool separable;  /* terms are made of taps alone */
    bool line;       /* line.c can write it */
    uint32_t beside; /* index variables that reads in a term use which are no taps */
};
bool window_match(const struct inst *in, const struct statement *s, struct window_shape *out);

/* Windows along the innermost axis alone, of any length (line.c). `shape` is complete but for
 * `line`. */
bool window_is_line(const struct statement *s, const struct window_shape *shape);
bool window_write_line(struct sheet *sh, const struct step *st, const struct statement *fold,
                       const struct window_shape *shape);

#endif
