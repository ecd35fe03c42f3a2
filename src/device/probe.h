/* Is there a GPU? Asked of the driver in a throw-away process, so that the one that asks never
 * loads CUDA and a hanging driver costs a time-out. */
#ifndef DEVICE_PROBE_H
#define DEVICE_PROBE_H

#include "base/err.h"

struct gpu_found {
    char name[128];
    int cc_major, cc_minor; /* compute capability */
    int driver;             /* CUDA version the driver serves: 13000 is 13.0 */
    uint64_t memory_bytes;
    int count;
};
/* False: there is none, and err says why. */
bool gpu_probe(struct gpu_found *out, struct err *err);

#endif
