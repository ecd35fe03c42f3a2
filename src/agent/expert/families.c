/* The families in the order in which they are asked, and what a task's parts belong to. */
#include "agent/expert/expert.h"
#include "agent/expert/form/partition.h"

static const struct family *const families[] = {
#define FAMILY(name) &family_##name,
#include "agent/expert/families.def"
#undef FAMILY
};

const struct family *const *expert_families(size_t *n) {
    *n = sizeof families / sizeof *families;
    return families;
}

bool expert_workloads(const struct briefing *b, bool *workload, struct err *err) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct partition *p = arena_new_of(a, struct partition);
    size_t n;
    const struct family *const *list = expert_families(&n);
    bool ok = partition_make(b, list, n, a, p, err);
    for (size_t i = 0; ok && i < p->n; i++)
        workload[p->family[i]->workload] = true;
    arena_free(a);
    return ok;
}
