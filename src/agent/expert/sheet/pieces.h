/* What scans and windows are written with alike: the texts of slots, vectors of elements, the
 * maps that a kernel computes on its fold's results, and where an element lies. */
#ifndef AGENT_EXPERT_PIECES_H
#define AGENT_EXPERT_PIECES_H

#include "agent/expert/sheet/sheet.h"

/* ---- slots ---- */
/* All texts of the slots and of their lists, one after the other: what a kernel may mention. */
str slots_texts(struct sheet *sh, const struct slots *s);

/* ---- vectors ---- */
/* The number of elements, at most `want` and a power of two, that divides all extents at the actual
 * sizes. */
int64_t pieces_width(int64_t want, const int64_t *extents, size_t n);

/* ---- maps on results ---- */
/* Takes the maps that follow fold `fold` element by element: same index space, the fold and each
 * other read at their own element only, everything else ready. */
void maps_claim(const struct form *f, const bool *done, size_t fold, bool *take);
/* Every position of the left side is a variable, and the tensor's memory is not read before. */
bool maps_plain_left(const struct task *t, const struct statement *s);

/* An element that is stored: the tensor and its packed value. */
enum { MAPS_MOST = 16 };
struct maps {
    struct {
        size_t tensor;
        str packed;
    } out[MAPS_MOST];
    size_t n;
};
/* All statements of the step at the element whose fold is `value`; lines that come before the
 * stores are slot `maps`. */
bool maps_write(struct scope *k, const struct statement *fold, str value, struct slots *s,
                struct maps *out);

/* ---- folds ---- */
const struct statement *fold_find(const struct task *t); /* the first; NULL: none */
/* The type of a running value and what it begins with, of real and of whole numbers. */
const char *fold_type(const struct statement *fold);
str fold_start(const struct statement *fold);
/* `into` and `term` combined, as an expression. */
str fold_step(struct sheet *sh, const struct statement *fold, str into, str term);

/* ---- where elements lie ---- */
/* The read is inside its tensor at every shape, by its form: bare variables over their extents. */
bool place_is_sure(const struct inst *in, const struct statement *s, const struct expr *read);
/* Declarations of the index variables in `vars`, from a flat number over their extents, those that
 * `used` mentions. `small`: the number is an int whatever indices are, without 64-bit divisions. */
str place_coordinates(struct scope *k, const struct statement *s, uint32_t vars, str flat,
                      bool small, str used);
/* The product of the extents of `vars`, in plan syntax. */
str place_count(struct sheet *sh, const struct inst *in, const struct statement *s, uint32_t vars);

#endif
