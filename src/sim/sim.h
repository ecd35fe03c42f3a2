/* The simulator: runs PTX, a warp as 32-lane vectors, checks every access, counts what happens.
 *
 * A program is one PTX entry, decoded: unknown instructions are refused here, at load, with the
 * PTX line and the instruction. A machine holds the global buffers; addresses are synthetic, with
 * unmapped space between buffers, so that no access can touch anything but a buffer. Results do not
 * depend on the number of host threads. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/arena.h"
#include "base/err.h"
#include "ptx/ptx.h"
#include "sim/tile_tma.h"

struct sim_program;
struct sim_machine;

/* The program borrows the entry and lives in the arena. False: an instruction is not supported. */
bool sim_load(const struct ptx_module *m, const struct ptx_entry *e, struct arena *a,
              struct sim_program **out, struct err *err);

/* `secret` moves the buffers: a kernel must not know the simulator by its addresses. */
struct sim_machine *sim_machine_new(uint64_t secret);
void sim_machine_free(struct sim_machine *m);

struct sim_buffer {
    str name;   /* for messages: "x" */
    void *host; /* size bytes, the caller's */
    size_t size;
    bool read_only; /* a store is a fault of kind SIM_WROTE_INPUT */
    bool prepared;  /* if so, because steps that are done once have written it: for messages */
    bool undefined; /* a workspace or an output: it is an error to read what no kernel wrote */
    bool result;    /* an output: what kernels store there is followed (sim_machine_stored) */
    bool between;   /* a workspace that is followed too, for sim_machine_forget */
    uint32_t align; /* at the end of its pages, aligned to no more than this; 0: at their start */
    /* Filled on first touch, in pages of SIM_PAGE bytes: what no CTA touches costs nothing. NULL:
     * the memory holds its content already. Called with disjoint ranges, from several threads. */
    void (*touch)(void *ctx, size_t offset, size_t n, void *dst);
    void *touch_ctx;
};
#define SIM_PAGE 4096

/* Returns the buffer's device address: of a page, or aligned as it asks. */
uint64_t sim_machine_add(struct sim_machine *m, const struct sim_buffer *b);
void sim_machine_clear(struct sim_machine *m); /* forgets all buffers */
/* And begins at other addresses; `spread`: with gaps that are drawn too. */
void sim_machine_move(struct sim_machine *m, uint64_t secret, bool spread);
/* From now on the buffer is read only, for it is prepared. */
void sim_machine_protect(struct sim_machine *m, uint64_t address);
/* The host writes there: `size` bytes of the pattern, `count` times. Of an undefined buffer these
 * bytes may be read afterwards. False, and nothing is written: they are not all in one buffer, or
 * in one that is read only. */
bool sim_machine_fill(struct sim_machine *m, uint64_t address, const void *pattern, size_t size,
                      uint64_t count);

/* The next bytes of a `result` buffer that the last launch stored, which ran under checks, from
 * `*end` on: [*first, *end). False: there are none, or blocks that did not run may change what was
 * stored (atomics, blocks that take turns on the same memory). */
bool sim_machine_stored(const struct sim_machine *m, uint64_t buffer, uint64_t *first,
                        uint64_t *end);

/* After a launch under checks of which not all blocks were run: where it stores to a buffer, those
 * left out may do so too. Of such a buffer no more is written from now on than what this launch has
 * stored; what was there before, or was added to by atomics, may not be what it would be. */
void sim_machine_forget(struct sim_machine *m);
/* Whether these bytes of a buffer may be read: all of them are written, as far as is known. */
bool sim_machine_written(const struct sim_machine *m, uint64_t buffer, uint64_t offset,
                         uint32_t bytes);

/* What a launch can be watched for. A finding does not end the launch: the results are those of the
 * order in which the simulator ran the threads, the finding says that another order may differ. */
enum sim_check {
    SIM_CHECK_UNINITIALISED = 1, /* reads of shared, local and undefined memory nobody wrote */
    SIM_CHECK_RACE = 2,          /* accesses that nothing orders, in shared and global memory */
    SIM_CHECK_SYNC = 4,          /* barriers reached by part of a warp; copies and mbarriers that
                                    nobody waited for */
    SIM_CHECK_ALL = 7,
};
#define SIM_MAX_FINDINGS 16
struct sim_finding {
    enum sim_check check;
    bool of_buffer; /* what nobody wrote is in a buffer, not in shared or local memory */
    uint32_t src_line, other_line; /* of the .cu; 0: unknown, or there is no other party */
    uint32_t cta[3], thread[3];
    char text[512];
};
struct sim_findings { /* the first of each kind and pair of lines, in the order they were met */
    size_t n;
    bool more; /* there were more than fit */
    struct sim_finding list[SIM_MAX_FINDINGS];
};

/* What became of the program's choices while it ran, a byte for each of its places: the truth
 * values that guards, comparisons and selections had in some lane, and how often loops ran. A
 * compiler turns a condition into a branch, a selection or a guard as it pleases; all three count.
 */
enum sim_covered {
    SIM_WAS_TRUE = 1, /* of a branch: it was taken */
    SIM_WAS_FALSE = 2,
    SIM_LEFT_AFTER_ONE = 4, /* a loop was left at its end after one pass, */
    SIM_LEFT_AFTER_TWO = 8, /* after two passes; */
    SIM_RAN_ON = 16,        /* it began a third one */
    SIM_REACHED = 32,       /* a branch by a table came here */
};
#define SIM_COVERED_KINDS 6
size_t sim_places(const struct sim_program *p);
/* "a condition at line 31 comes out the other way"; `kind` is one of enum sim_covered, or
 * SIM_WAS_TRUE | SIM_WAS_FALSE where a condition is met that no other run has met. A side is not
 * named: the compiler may have turned what the source asks into its opposite. */
void sim_place_text(const struct sim_program *p, size_t place, uint8_t kind, char *text, size_t n);

/* A tensor map for a kernel's parameter: TILE_MAP_BYTES bytes, in the simulator's own layout, for
 * the driver's is not documented. The map's `global` is what sim_machine_add returned. */
bool sim_tensormap(const struct tile_map *m, void *out, struct err *err);

/* A GPU as one block sees it, in clocks of an SM; rates are of a quarter of it, to which a warp
 * belongs. Made by sim_clocks_of (model.h). */
struct sim_clocks {
    double alu, special, fp64, mma, shared, l1, l2, dram; /* until a result is there */
    double fp32_hold, int_hold, special_hold, fp64_hold;  /* of a pipe by a warp's instruction */
    double mma_flops, wgmma_flops, mma_f64_flops;         /* 16-bit operands; a clock */
    size_t l1_bytes;                                      /* that a block has for itself */
};

/* A comparison of integers: whether they were ever equal, where it asks for that, and by how much
 * they differed in the first thread of the first blocks that came to it. */
#define SIM_MISSES 3
struct sim_miss {
    bool met, order; /* order: it asks which of them is the larger */
    uint32_t n;
    uint64_t gang[SIM_MISSES];
    int64_t by[SIM_MISSES];
};
/* Blocks in which comparisons for equality that were not met will be, and those in which others
 * change their outcome, where the difference is linear in the block's number or in one of its
 * places in the grid. n: sim_places. Gives how many are in out. */
size_t sim_rare_gangs(const struct sim_miss *m, size_t n, const uint32_t grid[3], uint64_t *out,
                      size_t most);

#define SIM_STRETCH 8
enum sim_draw {
    SIM_DRAW_APART, /* each from its part of the grid, the first and the last block among them */
    SIM_DRAW_PAIRS, /* … and every second one is a neighbour of the one before it: by turns the
                       next block and one that is a power of two further on; some fewer where
                       two of them are the same */
    SIM_DRAW_STRETCHES, /* SIM_STRETCH that follow each other, from each part of the grid */
    SIM_DRAW_NAMED,     /* those of sample_also alone, of which there are some */
};

struct sim_launch {
    const struct sim_program *program;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* blocks of a cluster; 0: as the kernel was compiled, or none */
    bool cooperative;    /* all blocks run at the same time, or the launch is refused */
    size_t dynamic_shared;
    const void *params; /* laid out as the entry's parameters */
    size_t params_size;
    unsigned threads;         /* of the host */
    uint64_t patience_us;     /* of a thread's processor time, after which it is given up as over
                                 budget; 0: none */
    uint64_t max_warp_instrs; /* of the whole launch; 0: a generous default by grid size */
    uint64_t sample_ctas;     /* 0: all; otherwise about so many, spread evenly over the grid; of a
                                 kernel whose blocks wait for each other, the first so many */
    uint64_t sample_key;      /* 0: evenly; otherwise drawn by it, as sample_draw says */
    enum sim_draw sample_draw;
    const uint64_t *sample_also; /* SIM_DRAW_PAIRS, SIM_DRAW_NAMED: blocks that run besides, */
    size_t nalso;
    bool sample_without;     /* SIM_DRAW_PAIRS: they do not run, since another launch has them */
    struct sim_miss *misses; /* sim_places of them, added to; needs covered; NULL: not wanted */
    struct arena *lines;     /* where counters by line go; NULL: they are not wanted */
    unsigned checks;         /* of enum sim_check; with any of them one thread runs */
    struct sim_findings *findings;   /* filled when there are checks */
    uint64_t resident_ctas;          /* that can wait for each other at a time; 0: 2,048 */
    uint8_t *covered;                /* sim_places bytes that are added to; NULL: not wanted */
    const struct sim_clocks *clocks; /* a few blocks are timed by them; NULL, or checks: none */
    uint32_t order;   /* 0: warps and blocks in turn, what is asynchronous as late as is legal; any
                         other number draws what runs next and what completes when */
    uint32_t lanes;   /* 0: of lanes that store to one place with one instruction the highest wins,
                         and their atomics go by lane; any other number draws it, and whether
                         lanes that have parted are in one activemask */
    uint64_t noise;   /* key of what memory and registers hold that nothing wrote, and of what a GPU
                           shows of itself: SMs, warp slots, clocks; 0: these begin at nothing */
    uint64_t number;  /* of the launch: %gridid */
    uint64_t time_ns; /* when it begins: %globaltimer */
    uint32_t sms;     /* of the GPU; 0: 132 */
};

enum sim_status {
    SIM_OK,
    SIM_OUT_OF_BOUNDS, /* no buffer there */
    SIM_MISALIGNED,
    SIM_WROTE_INPUT,
    SIM_TRAP,
    SIM_BUDGET,      /* instruction budget used up */
    SIM_NO_PROGRESS, /* nothing can run any more */
    SIM_BAD_LAUNCH,  /* limits of the entry or of the machine */
    SIM_UNSUPPORTED, /* met while running */
};

struct sim_fault { /* of the first faulting thread in CTA and lane order */
    uint64_t address;
    uint32_t bytes;
    bool store;
    uint32_t cta[3], thread[3];
    uint32_t src_line; /* of the .cu; 0: unknown */
    char text[512]; /* one sentence for people and models, line, thread and nearest buffer in it */
};

/* Exact counts of what ran. Of a sampled launch, `ctas` of `ctas_total` ran: scale by the ratio. */
struct sim_counters {
    uint64_t ctas, ctas_total, warps;
    uint64_t warp_instrs, lane_instrs;
    uint64_t warp_fp32, warp_fp64, warp_int, warp_special, warp_memory, warp_control;
    uint64_t flops;                                   /* lanes; an fma counts two */
    uint64_t load_requests, load_sectors, load_bytes; /* global; bytes as asked by lanes */
    uint64_t store_requests, store_sectors, store_bytes;
    uint64_t store_rest_bytes; /* of the sectors that threads' requests store to, what the same
                                  request leaves alone */
    uint64_t touched_load_sectors, touched_store_sectors; /* distinct 32-byte sectors */
    uint64_t divergent_branches;
    uint32_t widest_load, widest_store;          /* bytes a lane in one instruction */
    uint64_t warp_tensor, tensor_flops;          /* mma, wmma, wgmma; not in `flops` */
    uint64_t shared_requests, shared_wavefronts; /* as modelled: 128 bytes a wavefront */
    uint64_t shared_conflicts;                   /* wavefronts more than there need be */
    uint64_t atomic_requests;                    /* global */
    uint64_t async_bytes;                        /* cp.async and bulk copies, either way */
    uint64_t warp_waits; /* times a warp met the first use of a value it had loaded from global
                            memory: round trips, however many loads were under way */
    /* Clusters, or blocks without one, and how their traffic scatters: the KiB of global memory
     * that each asks for, added up and squared and added up. */
    uint64_t gangs, gang_kib, gang_kib_squares;
    /* Distinct sectors of the whole launch: of a sampled one scaled, by buffer, to its size at
     * most. */
    uint64_t footprint_load_sectors, footprint_store_sectors;
    /* Of the blocks that were timed, added up: how long each takes alone, with global memory in
     * DRAM and (near) in L2; issue slots; clocks that pipes of an SM's quarters, and the load/store
     * unit, are held; sectors asked for, missed in L1, and distinct within the block; and of those
     * that are missed again, how many others were missed in between, added up. */
    uint64_t timed_ctas, timed_clocks, timed_clocks_near, timed_slots;
    uint64_t timed_fp32, timed_int, timed_fp64, timed_special, timed_tensor, timed_lsu;
    uint64_t timed_load_sectors, timed_l2_sectors, timed_unique_sectors, timed_apart_sectors;
};

/* The same by line of the .cu, of what ran: sectors per request, bank conflicts, where the time
 * goes. */
struct sim_line {
    str file;      /* without its folders */
    uint32_t line; /* 0: instructions that belong to none */
    uint64_t warp_instrs, lane_instrs, flops, tensor_flops, divergent_branches;
    uint64_t requests, sectors, bytes; /* global */
    uint64_t shared_requests, shared_wavefronts, shared_conflicts;
};
/* Clocks of an SM that a line takes up at least: it issues four instructions a clock, moves a
 * wavefront of shared memory and two sectors, and does some 1,024 tensor operations. Good enough to
 * say where to look. */
double sim_line_clocks(const struct sim_line *l);

/* Of what the blocks that ran stored to `result` buffers: 32-byte sectors of each block added up,
 * their squares, and distinct ones of all blocks. Nothing is known (gangs 0) of blocks that take
 * turns. A gang is a block or a cluster of them, or a drawn stretch of those. */
struct sim_stores {
    uint64_t gangs, gangs_total;
    uint64_t storing; /* of the gangs that ran: those that stored anything */
    double sum, squares, distinct;
    unsigned untouched; /* sixteenth parts of the results that nobody stored to */
};

struct sim_result {
    enum sim_status status;
    bool late;  /* SIM_BUDGET for want of patience */
    bool drawn; /* by sim_launch.lanes: lanes stored different values to one place, or had atomics
                   there that tell their order, or were in an activemask apart */
    struct sim_fault fault;
    struct sim_counters counters;
    struct sim_stores stores;
    const struct sim_line *lines; /* by file and line, in the launch's arena; NULL: not wanted */
    size_t nlines;
};
void sim_run(struct sim_machine *m, const struct sim_launch *l, struct sim_result *out);
/* Can a launch of it go differently in another order, beyond what the checks find in any? */
bool sim_has_choices(const struct sim_program *p);
/* Whether blocks see each other's work while they run: a part of them runs from the first on. */
bool sim_is_ordered(const struct sim_program *p);

#endif
