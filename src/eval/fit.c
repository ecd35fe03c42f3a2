/* Registers and shared memory are known once a kernel is compiled: does a block fit an SM? */
#include "eval/fit.h"

static const struct kernel_facts *facts_of(const struct build *b, str kernel) {
    for (size_t i = 0; i < b->nkernels; i++)
        if (str_eq(b->kernels[i].name, kernel))
            return &b->kernels[i];
    return NULL;
}

static bool launch_fits(const struct gpu *g, const struct kernel_facts *f,
                        const struct bound_launch *l, struct err *why) {
    size_t shared = (f ? f->shared_static : 0) + l->shared;
    int threads = (int)(l->block[0] * l->block[1] * l->block[2]);
    int registers = f ? f->registers : 0;
    struct occupancy o = gpu_occupancy(g, threads, registers, shared);
    if (o.blocks_sm >= 1 && shared <= g->shared_block)
        return true;
    return err_set(why, ERR_NO,
                   "kernel %.*s: a block of %d threads with %d registers each and %zu bytes "
                   "of shared memory does not fit an SM of the %s",
                   STR_ARG(l->kernel), threads, registers, shared, g->title);
}

bool blocks_fit(const struct gpu *g, const struct build *b, const struct bound_plan *p,
                struct err *why) {
    for (size_t i = 0; i < p->nlaunches; i++)
        if (!launch_fits(g, facts_of(b, p->launches[i].kernel), &p->launches[i], why))
            return false;
    return true;
}
