/* Is there a GPU, and what is it? Asked of the driver in a throw-away process, so that the one that
 * asks never loads CUDA and a hanging driver costs a time-out. No context is made: that is quick,
 * and works beside whatever else uses the GPU. */
#ifndef DEVICE_PROBE_H
#define DEVICE_PROBE_H

#include "device/cuda.h"
#include "target/gpu.h"

/* False: there is none with this number, and err says why. */
bool gpu_probe(int ordinal, struct cuda_facts *out, struct err *err);

/* The row of the table where the GPU is in it; otherwise one made of what the driver says, rates
 * estimated from clocks and units until ceilings are measured. `title` borrows f->name. False: we
 * cannot compile for it. */
bool gpu_from_facts(const struct cuda_facts *f, struct gpu *out, struct err *err);

#endif
