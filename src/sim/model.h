/* A first estimate of the time of a launch on a named GPU, from counters: the slowest of memory,
 * L2, issue and the arithmetic pipes, with what occupancy and the last wave leave idle. It ranks
 * candidates; it is not a measurement, and everything that shows it says so. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "sim/sim.h"
#include "target/gpu.h"

struct sim_estimate {
    double time_s;
    double dram_s, l2_s, issue_s, pipe_s, latency_s, launch_s;
    const char *bound; /* which of them */
    struct occupancy occupancy;
    double waves;
    double dispatch_s; /* handing blocks to SMs */
};
void sim_model(const struct gpu *g, const struct sim_counters *c, uint32_t threads_block,
               int registers_thread, size_t shared_block, struct sim_estimate *out);

#endif
