/* What the GPU is doing, from NVIDIA's management library (libnvidia-ml.so.1, opened at run time):
 * clocks, power, temperature and the reasons it runs slower than it could. Read only; no setting is
 * ever changed. Where the library is missing or does not answer, readings say so and evaluation
 * goes on without. */
#ifndef DEVICE_NVML_H
#define DEVICE_NVML_H

#include "base/arena.h"

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
size_t nvml_free_bytes(const struct nvml *n); /* of its memory; 0: not readable */
/* The reasons in words, "power cap" and the like; in the arena. */
str *nvml_slowed(uint64_t mask, struct arena *a, size_t *n);

#endif
