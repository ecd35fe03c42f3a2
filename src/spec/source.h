/* One tensor under one kind of data, before definitions (data.c), and what is assumed of it. For
 * this room and the oracle (kernel/oracle.h), which hands both to the device. */
#ifndef SPEC_SOURCE_H
#define SPEC_SOURCE_H

#include "spec/source_value.h"

struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
                        enum data_kind kind, uint64_t seed);
struct promise promise_of(const struct inst *in, size_t tensor);

#endif
