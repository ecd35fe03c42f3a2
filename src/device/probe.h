/* Is there a GPU, and what is it? Asked of the driver in a throw-away process, so that the one that
 * asks never loads CUDA and a hanging driver costs a time-out. No context is made: that is quick,
 * and works beside whatever else uses the GPU. */
#ifndef DEVICE_PROBE_H
#define DEVICE_PROBE_H

#include "base/arena.h"
#include "device/cuda.h"
#include "target/gpu.h"

/* False: there is none with this number, and err says why. */
bool gpu_probe(int ordinal, struct cuda_facts *out, struct err *err);

/* The row of the table where the GPU is in it; otherwise one made of what the driver says, rates
 * estimated from clocks and units until ceilings are measured. `title` borrows f->name. False: we
 * cannot compile for it. */
bool gpu_from_facts(const struct cuda_facts *f, struct gpu *out, struct err *err);

/* What the GPU is doing, from NVIDIA's management library (libnvidia-ml.so.1, opened at run time):
 * clocks, power, temperature and the reasons it runs slower than it could. Read only; no setting is
 * ever changed. Where the library is missing or does not answer, readings say so and evaluation
 * goes on without. */

struct nvml {
    void *device; /* NULL: not readable, `why` says why */
    char why[128];
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*reasons)(void *device, unsigned long long *mask);
    int (*memory)(void *device, unsigned long long total_free_used[3]); /* may be NULL */
};

struct nvml_reading {
    bool known;
    unsigned sm_mhz, memory_mhz, power_mw, celsius; /* 0: not readable */
    uint64_t slowed;                                /* mask of reasons; idle clocks left out */
};

void nvml_open(struct nvml *n, const char *uuid); /* as in struct cuda_facts */
void nvml_read(const struct nvml *n, struct nvml_reading *out);
/* The reasons in words, "power cap" and the like; in the arena. */
str *nvml_slowed(uint64_t mask, struct arena *a, size_t *n);

#endif
