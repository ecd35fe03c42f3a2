/* Private to timing.c: what an instruction costs by itself. */
#ifndef SIM_TIMING_COST_H
#define SIM_TIMING_COST_H

#include "sim/machine.h"

enum pipe { PIPE_FP32, PIPE_INT, PIPE_FP64, PIPE_SPECIAL, PIPE_TENSOR, PIPE_LSU, PIPE_NONE };

struct op_time {
    enum pipe pipe;
    double slots, hold, latency; /* issued; of its pipe; until its result is there */
    uint32_t reads, writes;      /* where their values begin in timing.values */
    uint16_t nreads, nwrites;
    bool boundary; /* of what the compiler orders anew */
};

/* All but reads and writes, which stay as they are. */
void timing_cost(const struct sim_clocks *c, const struct sim_program *p, size_t pc,
                 struct op_time *out);

#endif
