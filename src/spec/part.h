/* The reference of a part of an output that is too large to be evaluated whole.
 *
 * What a box of an output needs is found by interval arithmetic, from the last statement back to
 * the first: of every let and input a box that holds all that is read. Those boxes alone are made
 * and evaluated, by what evaluates whole instances (reference.c), so there is one error model.
 *
 * Values and estimates are those that reference_eval has for the same elements, to the bit where
 * the part is evaluated in the same way, which it is unless that would be noticeably and several
 * times slower than another (nest.h). Then terms still come in the same order, but sums may be cut
 * into lanes differently: values differ by roundings of fp64, estimates by about a tenth where sums
 * are long.
 * Whether NaN or infinities may meet a sum (nest_meet) is decided by what the part reads. */
#ifndef SPEC_PART_H
#define SPEC_PART_H

#include "spec/data.h"
#include "spec/reference.h"

/* A box of an output tensor: elements lo[k] … lo[k]+n[k]-1 along each of its dimensions, of which
 * there is at least one. */
struct part {
    size_t tensor;
    int64_t lo[TASK_MAX_RANK], n[TASK_MAX_RANK];
};

/* About how much there is to compute for it: elements of lets and outputs, terms of reductions,
 * input elements to be made (more where their making takes longer). INFINITY where that does not
 * fit a double's exactness. */
double part_cost(const struct inst *in, const struct part *p);

/* Value and estimate of its elements, in row-major order of the box, for data of this kind and seed
 * (of all kinds but `nonfinite`). An `inout` output reads its old content from the data. Heap
 * memory: part_release. False: there is no memory, or the task has too many reductions; *out is
 * empty. */
bool part_reference(const struct inst *in, const struct data_scale *scale, enum data_kind kind,
                    uint64_t seed, const struct part *p, unsigned threads, struct reference *out,
                    struct err *err);
void part_release(struct reference *ref);

/* Compares the box's elements, in the tensor's dtype and row-major order of the box, like
 * reference_compare; mismatches carry the linear index in the whole tensor. */
void part_compare(const struct inst *in, const struct part *p, const struct reference *ref,
                  const void *got, struct comparison *out);

#endif
