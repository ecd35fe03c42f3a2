/* Convolutions on warp groups, from a copy of the input with its channels innermost; those with few
 * channels of results by multiply-adds, from the input as it lies (direct.c).
 *
 * The model is a product's (contraction.h) with more said about its index of pixels and its sum:
 *
 * - images: the variables of the result that only say which image (n, and a group's number);
 *
 * - axes, one to three, in the order of the result: along each, an index of the input is
 *   `out + step * tap + constant`, where `out` is a variable of the result and `tap` one that is
 *   summed. step is the dilation, negative in a transposed convolution;
 *
 *   Variables of the result further in which are an index of the input by themselves are axes of
 *   one tap;
 *
 * - channels: what else is summed.
 *
 * The copy has, for every image, a plane of positions: along each axis as many as windows reach,
 * zero where that is beyond the input. A tile is a run of neighbouring positions of the plane,
 * those included at which no window begins (they are computed and not stored), so that the input of
 * one tap is the same run further on. All taps of the innermost axis, a *line* of the filter, read
 * from one segment in shared memory. */
#ifndef AGENT_EXPERT_CONVOLUTION_H
#define AGENT_EXPERT_CONVOLUTION_H

#include "agent/expert/contraction/contraction.h"
#include "agent/expert/sheet/pieces.h"

#define CONV_AXES  3
#define CONV_PLAIN SIZE_MAX /* in place of the variable of an axis' taps: it has one, at 0 */

struct conv_axis {
    struct con_index out, tap;
    size_t dim; /* of the input */
    int64_t stride, spread, step, taps;
    /* Part and position of a tap: (step * tap + ahead) % stride and its quotient; of a phase of
     * results: (phase + step * tap + ahead) / spread. Both are 0 for whatever lies first. */
    int64_t ahead, first; /* first: the input's index at position 0 of part 0 */
    int64_t reach;        /* the largest position of a tap */
    struct expr *count;   /* positions at which windows begin */
    struct expr *padded;  /* positions of the copy along the axis */
};
/* The position of a tap and its part, or -1: it meets no result of the phase. */
int64_t conv_tap_at(const struct conv_axis *a, int64_t tap, int64_t phase, int64_t *part);

struct convolution {
    struct contraction *c;
    const struct con_operand *input, *filter;
    struct con_group images, channels, taps, lines; /* lines: taps of all axes but the last */
    struct conv_axis axes[CONV_AXES];
    size_t naxes;
    int64_t planes; /* of an image in the copy */
    int64_t phases; /* of results, of all axes but the innermost */
};
/* The innermost axis. */
const struct conv_axis *conv_last(const struct convolution *v);

/* Whether a product is a convolution that this family can write. `c` as con_match leaves it. */
bool conv_match(struct contraction *c, struct convolution *out);

/* Decisions, within what the shape and an SM allow. */
struct conv_config {
    enum con_format format;
    enum dtype type;     /* of a packed element */
    int element, chunk;  /* its bytes; channels of a row of 128 bytes */
    int tile_m, tile_n;  /* channels and positions of a tile */
    int warpgroups;      /* that multiply */
    int threads;         /* these, and a warp that loads */
    int stages, filters; /* segments and filter tiles on their way */
    int lines, taps;     /* of the filter; taps of a line */
    int spread;          /* phases of a tile */
    bool apart;          /* a tap a line: segments would be longer than what they save */
    int boxes, box;      /* copies that a segment takes, and positions of each */
    int steps;           /* instructions that a chunk of channels takes; fewer than 4: few */
    int promote;         /* taps after which sums are added up in fp32; 0: never */
    int blocks;          /* of an SM */
    size_t shared;
};
/* False: it cannot be written so, and `why` says what prevents it. */
bool conv_configure(const struct sheet *sh, const struct convolution *v, struct conv_config *out,
                    const char **why);

struct conv_writer {
    struct con_writer w;
    struct convolution *v;
    struct conv_config g;
    str input, filter; /* plan names of the copies */
};
/* The kernels that make the copies. */
bool conv_pack_input(struct conv_writer *x);
bool conv_pack_filter(struct conv_writer *x);
/* The kernel that multiplies. */
bool conv_multiply(struct conv_writer *x);

/* Multiply-adds by threads that have all channels of their results, where these are few. */
struct conv_direct {
    int rows;  /* cells of a thread (direct.c) */
    int chunk; /* channels whose weights are in shared memory at a time */
};
/* Within these cells of a warp and channels at a time; false: it cannot be written so. */
bool conv_direct(const struct convolution *v, int tile_n, int tile_k, struct conv_direct *out);
bool conv_write_direct(struct conv_writer *x, const struct conv_direct *g);

/* The input at a place whose indices along axes are the variables of the result. */
struct con_operand conv_by_place(const struct convolution *v);
/* The step's statements, for the comment of a kernel. */
str conv_definitions(struct conv_writer *x);
/* Channels in the copies, in plan syntax: pieces of 16 bytes. */
str conv_pitch(struct conv_writer *x);
/* Positions of a plane. */
struct expr *conv_plane(const struct convolution *v);
/* Those up to the last at which a window begins. */
struct expr *conv_used(const struct convolution *v);
/* Positions of axes from `from` on: what one step along the axis before is in the plane. */
struct expr *conv_inner(const struct convolution *v, size_t from);

#endif
