/* One tensor under one kind of data, before definitions (data.c), and what is assumed of it. For
 * this room and the oracle (kernel/oracle.h), which hands both to the device. */
#ifndef SPEC_SOURCE_H
#define SPEC_SOURCE_H

#include "spec/source_value.h"

struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
                        enum data_kind asked, uint64_t seed);
/* source_value of elements first, first + 1, …, and source_stored of many. */
enum { SOURCE_MANY = 256 };
void source_value_many(const struct source *s, int64_t first, size_t n, double *out);
void source_stored_many(const struct source *s, char type, double *v, size_t n);

struct promise promise_of(const struct inst *in, size_t tensor);

#endif
