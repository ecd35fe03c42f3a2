/* The statements of an instance over boxes of its tensors. Private to the room: reference.h
 * evaluates all of them, part.h what a part of an output needs. */
#ifndef SPEC_EVALUATE_H
#define SPEC_EVALUATE_H

#include "spec/bounds.h"
#include "spec/reference.h"

/* The elements of a tensor that are kept, in row-major order of the box. Element i has the place
 * Σ i[k]·stride[k] - first. */
struct window {
    int64_t lo[TASK_MAX_RANK], n[TASK_MAX_RANK];
    int64_t stride[TASK_MAX_RANK];
    int64_t first;
    int64_t count; /* 0: none is needed */
};

/* Of every tensor: what is read of an input or a let, and what is made of a let or an output. Both
 * are the same of a let; an `inout` tensor is read as it was before, so they differ. */
struct windows {
    struct window read[TASK_MAX_TENSORS], made[TASK_MAX_TENSORS];
};

/* Sets stride, first and count of a window from its lo and n; count 0: some n is. False: it has
 * more elements than can be counted. */
bool window_close(struct window *w, size_t rank);

/* The variables of the left side of a statement, where it defines elements that are made. False:
 * it defines none. */
bool window_ranges(const struct inst *in, const struct statement *s, const struct window *made,
                   struct ranges *out);

/* The reference of `tensor` over its window. inputs[i]: the elements of input tensor i that are
 * read, NULL where none is. *out is heap memory. */
bool evaluate_part(const struct inst *in, const struct windows *windows, const void *const *inputs,
                   size_t tensor, unsigned threads, struct reference *out, struct err *err);
/* Elements and terms that this visits; INFINITY where it would refuse. */
double evaluate_cost(const struct inst *in, const struct windows *windows);

#endif
