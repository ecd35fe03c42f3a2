/* What a GPU can do at most: bandwidth, arithmetic rates and the cost of a launch, measured on the
 * GPU itself with the kernels of the harness. They take the place of the table's (target/gpu.def)
 * when fractions of the limit are stated.
 *
 * The device process measures; the coordinator keeps the result in the cache folder, one file for
 * each GPU and driver, since it takes a second and hardly changes. */
#ifndef DEVICE_CEILINGS_H
#define DEVICE_CEILINGS_H

#include "device/harness.h"
#include "target/gpu.h"

struct ceilings {
    double copy_bytes_s; /* read and written counted */
    double read_bytes_s, write_bytes_s;
    double fp32_flops, tf32_flops, bf16_flops;
    double launch_s; /* one empty kernel, back to back */
};

bool ceilings_measure(const struct cuda *c, struct harness *h, struct ceilings *out,
                      struct err *err);

json *ceilings_to_json(const struct ceilings *m);
bool ceilings_from_json(const json *j, struct ceilings *out); /* every number positive, or false */

/* Of the GPU and driver that `f` describes. Load: false when there are none (err says why when a
 * file is there and cannot be used). */
bool ceilings_load(const char *cache, const struct cuda_facts *f, struct ceilings *out,
                   struct err *err);
bool ceilings_store(const char *cache, const struct cuda_facts *f, const struct ceilings *m,
                    struct err *err);

/* The measured numbers in place of the table's. */
void ceilings_apply(const struct ceilings *m, struct gpu *g);

#endif
