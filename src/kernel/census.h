/* The instruction census: what a kernel's code is made of, counted on the PTX.
 *
 * Static: an instruction in a loop counts once. It is reported with a kernel so that a reader sees
 * what the numbers rest on: that an fp32 kernel goes through tf32 tensor cores, that exp is an
 * approximation, that loads are 128 bits wide. It decides nothing. The functions a kernel calls
 * count with it, once each. */
#ifndef KERNEL_CENSUS_H
#define KERNEL_CENSUS_H

#include "ptx/ptx.h"

enum census_group {
#define CENSUS(id, name, named) CENSUS_##id,
#include "kernel/census.def"
#undef CENSUS
    CENSUS_COUNT
};

struct census_count {
    str name;
    int64_t count;
};
#define CENSUS_MAX_FORMS 128 /* more are counted in their groups only */

struct census {
    int64_t instructions;
    struct census_count *groups; /* by name, without those of which there are none */
    size_t ngroups;
    /* How often a form occurs, in the order in which they first do: "ld.global.128",
     * "st.global.cs.64" (streaming), "ex2.approx.ftz.f32", "cp.async.wait_group 1" (how many groups
     * may be on their way). */
    struct census_count *forms;
    size_t nforms;
};

/* Borrows names from the module. */
void census_take(const struct ptx_module *m, const struct ptx_entry *kernel, struct arena *a,
                 struct census *out);
int64_t census_group_count(const struct census *c, str group); /* 0: none */

#endif
