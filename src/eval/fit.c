/* Registers and shared memory are known once a kernel is compiled: does a block fit an SM, and a
 * grid whose blocks wait for each other the GPU?
 *
 * A cluster lies within a group of SMs, of whose sizes the driver says nothing; of cooperative
 * grids in clusters this lets through what fits if there were one group, and the driver has the
 * last word where there is one. */
#include "eval/fit.h"

#include <inttypes.h>
#include <stdio.h>

struct fitting {
    const struct gpu *g;
    const struct build *b;
    const struct ptx_module *m;
    struct err *why;
};

#define REFUSE(f, v, ...) (err_set((f)->why, ERR_NO, __VA_ARGS__), (v))

static const struct kernel_facts *facts_of(const struct build *b, str kernel) {
    for (size_t i = 0; i < b->nkernels; i++)
        if (str_eq(b->kernels[i].name, kernel))
            return &b->kernels[i];
    return NULL;
}

static uint32_t volume(const uint32_t n[3]) {
    return (n[0] ? n[0] : 1) * (n[1] ? n[1] : 1) * (n[2] ? n[2] : 1);
}

/* The blocks of a cluster: by the launch or else by the kernel. */
static uint32_t cluster_of(const struct fitting *f, const struct bound_launch *l) {
    const struct ptx_entry *e = ptx_find_entry(f->m, l->kernel);
    uint32_t blocks = volume(l->cluster);
    return blocks == 1 && e ? volume(e->cluster) : blocks;
}

static enum verdict grid_fits(const struct fitting *f, const struct bound_launch *l,
                              uint32_t cluster, const struct occupancy *o) {
    const struct gpu *g = f->g;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t room = (uint64_t)g->sms * (uint64_t)o->blocks_sm / cluster * cluster;
    char clusters[48] = "";
    if (!l->cooperative || blocks <= room)
        return VERDICT_ACCEPTED;
    if (cluster > 1)
        snprintf(clusters, sizeof clusters, ", in whole clusters of %" PRIu32, cluster);
    return REFUSE(f, VERDICT_LAUNCH_ERROR,
                  "kernel %.*s: a cooperative grid of %" PRIu64 " blocks, of which the %s holds "
                  "%" PRIu64 " at a time (%d on each of %d SMs%s; more are stopped by: %s)\n"
                  "hint: launch at most that many and let each do more",
                  STR_ARG(l->kernel), blocks, g->title, room, o->blocks_sm, g->sms, clusters,
                  o->limiter);
}

static enum verdict launch_fits(const struct fitting *f, const struct bound_launch *l) {
    const struct gpu *g = f->g;
    const struct kernel_facts *k = facts_of(f->b, l->kernel);
    struct occupancy o = launch_occupancy(g, k, l);
    uint32_t cluster = cluster_of(f, l);
    size_t shared = (k ? k->shared_static : 0) + l->shared;
    if (cluster > 1 && g->has.cluster_most == 1)
        return REFUSE(f, VERDICT_UNSUPPORTED, "this GPU has no clusters (compute capability 9.0)");
    if (o.blocks_sm < 1 || shared > g->shared_block)
        return REFUSE(f, VERDICT_LAUNCH_ERROR,
                      "kernel %.*s: a block of %" PRIu32 " threads with %d registers each and %zu "
                      "bytes of shared memory does not fit an SM of the %s",
                      STR_ARG(l->kernel), volume(l->block), k ? k->registers : 0, shared, g->title);
    return grid_fits(f, l, cluster, &o);
}

enum verdict plan_fits_gpu(const struct gpu *g, const struct build *b, const struct ptx_module *m,
                           const struct bound_plan *p, struct err *why) {
    struct fitting f = {g, b, m, why};
    enum verdict v = VERDICT_ACCEPTED;
    if (p->nmaps && !g->has.tma)
        return REFUSE(&f, VERDICT_UNSUPPORTED,
                      "this GPU has no tensor maps (compute capability 9.0)");
    for (size_t i = 0; v == VERDICT_ACCEPTED && i < p->nlaunches; i++)
        v = launch_fits(&f, &p->launches[i]);
    return v;
}
