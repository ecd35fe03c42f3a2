/* Scans: folds over everything up to (or from) an index, which share their terms along it.
 *
 * Recognised once, by claim and by write alike. Positions count in the order of the scan: position
 * p is index p of the axis, or, backwards, index D-1-p. All kernels work in positions and turn them
 * into indices where they touch memory. Private to the family. */
#ifndef AGENT_EXPERT_SCAN_H
#define AGENT_EXPERT_SCAN_H

#include "agent/expert/sheet/pieces.h"

struct scan_shape {
    size_t axis;             /* the index variable along which is scanned */
    bool reverse, exclusive; /* from the end; without the element itself */
    struct expr *term;       /* with the reduced variable replaced by the axis */
    struct expr *guard;      /* NULL: all terms; likewise */
};
bool scan_recognise(const struct inst *in, const struct statement *s, struct arena *a,
                    struct scan_shape *out);

enum { SCAN_STREAMS = 12 };
/* A step on its way into a sheet. */
struct scan {
    struct sheet *sh;
    const struct step *st;
    const struct inst *in;
    const struct statement *fold;
    struct scan_shape shape;
    size_t last; /* the innermost variable: neighbours lie along it */
    bool inner;  /* it is the axis */
    /* decisions, as far as the shape allows them */
    int64_t block, items, width, split;
    bool warp, lookback, prefetch, hint;
    bool totals; /* of the kernel being written: it only folds */
    /* Of the running value, of a result, and of the running value in a workspace. Products run in
     * double: what a part of a row multiplies to may leave fp32's range where no result does. */
    const char *type, *value, *memory;
    str identity;
    struct slots names; /* local variables and functions, the same in all kernels of the step */
    struct scope k;     /* of the kernel being written */
    struct {            /* reads that come as vectors */
        const struct expr *read;
        str pack, next;
        bool late; /* only what follows the fold reads it */
    } streams[SCAN_STREAMS];
    size_t nstreams;
};

/* ---- pieces of kernels ---- */
/* `${pack}[m] = cp_load<…>(…);` for all streams, under `condition`; into what is prefetched or what
 * is used now. */
str scan_loads(struct scan *s, bool next, str condition);
/* Declarations of the packs. */
str scan_declare(struct scan *s);
str scan_rotate(struct scan *s); /* what was prefetched becomes what is used */
/* The term at position `position` of element e, as a value; the identity where `valid` does not
 * hold. */
str scan_term(struct scan *s, str position, str valid);
/* The results of one vector whose running values are `value`: declarations of packs, the lines of
 * an element, the stores. */
struct scan_results {
    str packs, element, stores;
};
bool scan_write_results(struct scan *s, str value, struct scan_results *out);
/* A kernel named after the fold. */
void scan_begin(struct scan *s, const char *suffix);
void scan_note_used(struct scan *s); /* decisions that came out otherwise */

bool scan_write_rows(struct scan *s);
bool scan_write_columns(struct scan *s);

#endif
