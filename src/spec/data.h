/* Inputs: distributions, generated identically from a seed anywhere.
 *
 * Besides the stated distribution every kernel meets a mandatory set, made to expose kernels that
 * only work on friendly data. Each is a pure function of (seed, tensor name, element index), so
 * any range of a tensor can be made alone. */
#ifndef SPEC_DATA_H
#define SPEC_DATA_H

#include "spec/task.h"

const char *data_name(enum data_kind k);
const char *data_meaning(enum data_kind k); /* what it is for, in words */
bool data_find(str name, enum data_kind *out);

/* Where the values of the kinds with large numbers must be held back so that every intermediate of
 * the fp64 reference fits fp32: the factor is found by evaluating samples, once for an instance. */
struct data_scale {
    double factor[DATA_COUNT];
    bool largest; /* even the largest number of fp32 fits: the large kind has it */
    int end;      /* while it is being found, where rows are drawn: all at one end, or 0 */
};
/* All kinds are held back to the stated size, which fits whatever the instance is. */
struct data_scale data_scale_stated(void);
bool data_scale_find(const struct inst *in, uint64_t seed, struct data_scale *out, struct err *err);
/* The same factor of one kind, which is all that data of this kind need; 1 for the others. */
bool data_scale_find_for(const struct inst *in, enum data_kind kind, uint64_t seed,
                         unsigned threads, struct data_scale *out, struct err *err);

/* Elements [first, first+count) of input tensor `tensor`, in its dtype, into dst. */
void data_fill(const struct inst *in, const struct data_scale *scale, size_t tensor,
               enum data_kind kind, uint64_t seed, int64_t first, int64_t count, void *dst);
/* All of it, on several threads. */
void data_fill_all(const struct inst *in, const struct data_scale *scale, size_t tensor,
                   enum data_kind kind, uint64_t seed, unsigned threads, void *dst);

/* Between stored elements and double. bf16 and f16 round to nearest even. */
void data_load(enum dtype t, const void *src, size_t n, double *dst);
void data_store(enum dtype t, const double *src, size_t n, void *dst);

#endif
