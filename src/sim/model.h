/* An estimate of the time of a launch on a named GPU, from counters: what its blocks take one by
 * one, set against what memory, L2 and the pipes of the SMs can do, with what occupancy and the
 * last wave leave idle. It ranks candidates; it is not a measurement, and everything that shows it
 * says so. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "sim/sim.h"
#include "target/gpu.h"

/* What a block takes of an SM, by the compiler. */
struct sim_block {
    uint32_t threads;
    int registers;  /* of a thread */
    int64_t spills; /* bytes that a thread stores because its registers do not suffice */
    size_t shared;
};

struct sim_estimate {
    double time_s;
    double dram_s, l2_s, latency_s, launch_s;
    double issue_s, pipe_s, tensor_s, lsu_s; /* of the busiest SM: issue slots; the busiest of fp32,
                                                integer, special and fp64; loads, stores, shared */
    double dispatch_s;                       /* handing blocks to SMs */
    const char *bound;                       /* which of them */
    struct occupancy occupancy;
    double waves;
};
void sim_model(const struct gpu *g, const struct sim_counters *c, struct sim_block b,
               struct sim_estimate *out);

/* For sim_launch.clocks: the GPU as a block of so many threads sees it. */
struct sim_clocks sim_clocks_of(const struct gpu *g, uint32_t threads_block, size_t shared_block);

#endif
