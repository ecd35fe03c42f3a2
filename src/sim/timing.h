/* Private to the sim room: what a block takes by itself, in clocks of a named GPU.
 *
 * Of a launch a few blocks are timed while they run: each of their warps has a clock, every value
 * in the register file the clock at which it is there. An instruction starts when its operands are
 * there and its pipe is free. Between branches, barriers and other waits its place in the PTX does
 * not matter, for the compiler orders instructions anew there, but loads stay behind stores that
 * they may depend on; the warp leaves such a run when all of it has started and was issued.
 * Barriers bring clocks together. What warps do to each other on one SM is not here: the model
 * (sim/model.h) sets a block's time against what its pipes are held. Every time is kept twice, with
 * global memory in DRAM and with all of it in L2.
 *
 * Only timed blocks see a cache: of as much as is a block's share of L1, by sectors. */
#ifndef SIM_TIMING_H
#define SIM_TIMING_H

#include "sim/machine.h"

/* NULL where the launch is not to be timed. */
struct timing *timing_new(const struct launch *la);
void timing_free(struct timing *t);

/* A gang begins: NULL, or its clocks, when it is one of those that are timed. */
struct gang_time *timing_begin(const struct launch *la, const struct gang *g);
void timing_end(struct worker *w, struct gang *g); /* counts, and frees them */
void timing_drop(struct gang *g);                  /* frees them */

/* The running warp executed an instruction, or a straight line of them. */
void timing_step(struct worker *w, uint32_t pc, uint32_t mask);
void timing_straight(struct worker *w, uint32_t pc, uint32_t n);
/* Warps of a timed block go on side by side, as they do on an SM: so they find in L1 what the
 * others have brought there. True: the running one has had its turn. */
bool timing_turn_over(struct worker *w);
/* Its access, before timing_step: sectors from an address on; lines of 128 bytes in all. */
void timing_load(struct worker *w, uint64_t address, size_t bytes);
void timing_request(struct worker *w, uint64_t sectors, uint64_t lines);
void timing_shared(struct worker *w, unsigned wavefronts);
/* The warps that wait at a named barrier pass it together; all warps of a cluster theirs. */
void timing_barrier(struct worker *w, struct cta *c, uint8_t id);
void timing_cluster(struct worker *w, struct gang *g);
/* mbarriers, by their place: what arrives, at a warp's clock or as a copy that it issues now; a
 * warp that saw its phase end. */
void timing_arrive(struct worker *w, const void *place);
void timing_copy(struct worker *w, const void *place);
void timing_pass(struct worker *w, const void *place);

#endif
