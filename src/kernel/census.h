/* The instruction census: what a kernel's code is made of, counted on the PTX.
 *
 * Static: an instruction in a loop counts once. It is reported with a kernel so that a reader sees
 * what the numbers rest on: that an fp32 kernel goes through tf32 tensor cores, that exp is an
 * approximation, that loads are 128 bits wide. It decides nothing. The functions a kernel calls
 * count with it, once each. */
#ifndef KERNEL_CENSUS_H
#define KERNEL_CENSUS_H

#include "base/json.h"
#include "ptx/ptx.h"

enum census_group {
#define CENSUS(id, name, named) CENSUS_##id,
#include "kernel/census.def"
#undef CENSUS
    CENSUS_COUNT
};

/* How often a form occurs: "ld.global.128", "st.global.cs.64" (streaming), "ex2.approx.ftz.f32",
 * "cp.async.wait_group 1" (how many groups may be on their way). */
struct census_form {
    enum census_group group;
    str name;
    uint64_t count;
};
#define CENSUS_MAX_FORMS 128 /* more are counted in their groups only */

struct census {
    uint64_t instructions, groups[CENSUS_COUNT];
    struct census_form *forms; /* in the order in which they first occur */
    size_t nforms;
};

const char *census_group_name(enum census_group g);
/* Borrows names from the module. */
void census_take(const struct ptx_module *m, const struct ptx_entry *kernel, struct arena *a,
                 struct census *out);
/* {"instructions": n, "groups": {"fma": n, …}, "forms": {"ld.global.128": n, …}}, zeros left out.
 */
json *census_to_json(const struct census *c);

#endif
