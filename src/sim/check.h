/* Private to the sim room: what a launch is watched for (sim_launch.checks).
 *
 * Every warp has a vector clock over the warps of its gang and over what works on its own: a place
 * a block for bulk copies, one for each four warps that multiply. Such an agent knows what its
 * threads knew when they asked for the work, however late it is done. Barriers, mbarriers and
 * fences carry clocks from one warp to another. Each granule of shared and global memory remembers
 * its last write and its last reads; an access that conflicts with one of them, and whose clock
 * does not know of it, is a race. Within a warp the lanes that a __syncwarp or a barrier has
 * brought together are ordered, and those that waited at an mbarrier, or took over a release, after
 * those that told them; lanes that execute one instruction together and write one place are not
 * reported, nor is a write that changes nothing.
 *
 * Between gangs, a fence of the grid followed by a strong store or an atomic hands the writer's
 * clock to the place written, and a strong load or an atomic there takes it over (volatile counts).
 * What a gang has taken over is a list that only grows, so that a release can hand it on. Fences of
 * a block or a cluster do the same within the gang, and flags in shared memory too.
 *
 * All of this belongs to one thread: a launch with checks runs on one. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "sim/machine.h"

struct mark { /* who was at a granule last */
    uint32_t gang, clock, pc;
    uint16_t slot;
    uint8_t lane, flags;
};
enum {
    MARK_SET = 1,
    MARK_STRONG = 2,
    MARK_PENDING = 4,
    MARK_SEVERAL = 8,
    MARK_AGENT = 16,   /* a bulk copy */
    MARK_PRODUCT = 32, /* a wgmma */
    MARK_NARROW = 64,  /* strong for threads of its block alone */
    MARK_LEGACY = 128, /* volatile, of shared memory: orders no lanes of a warp */
};

struct cell {
    struct mark write, read, earlier; /* earlier: the last read by another warp than `read`'s */
};

struct warp_check;
/* Who makes the accesses under way. */
struct party {
    struct mark mark;
    bool strong, writes;
    bool cached; /* a load through the read-only path */
    const uint32_t *clock;
    const struct warp_check *warp; /* NULL: an agent */
};

struct snapshot { /* what was known at a release */
    const struct taken *taken;
    uint32_t gang;
    bool near;        /* a fence of the block or cluster: for the gang alone */
    uint32_t clock[]; /* by slot */
};

struct sync_place;
struct taken { /* over from another gang, by warp `slot` at its `clock` */
    const struct taken *next;
    const struct snapshot *what;
    uint32_t slot, clock;
};

struct place_clock { /* of an mbarrier (by address in the gang) */
    uint32_t address;
    uint32_t *pending, *done;
    struct mark init; /* who initialised it; not set: nobody has, or it was invalidated */
};

struct flight { /* a wgmma that the warp has not waited for */
    const struct instr *in;
    uint64_t number;
};

struct warp_check {
    uint32_t synced[SIM_LANES];     /* the warp's clock when each lane last met others */
    uint32_t told[SIM_LANES];       /* and when it last released, or arrived at an mbarrier; */
    uint32_t heard[SIM_LANES];      /* up to which clock it heard of its warp that way */
    const struct snapshot *release; /* made by the last fence of the grid; NULL: none */
    const struct snapshot *near;    /* and by the last of any kind */
    struct flight *flights;
    size_t nflights, flights_cap;
    const struct instr **dirty;     /* by register: who wrote it since the last wgmma.fence */
    bool fenced;                    /* there was one */
    const struct instr *registers;  /* the last setmaxnreg, */
    uint32_t register_changes;      /* of so many */
    const struct sync_place *place; /* taken over from last, */
    const struct taken *newest;     /* up to this release */
};

struct gang_check {
    uint32_t slots;
    uint32_t *clocks; /* slots * slots: of each warp, and of each agent's work under way */
    uint32_t *work;   /* by slot, of agents: pieces of work so far */
    uint32_t *bars;   /* of each block's named barriers */
    uint32_t *cluster_arrived, *cluster_done;
    uint32_t *fenced; /* by slot: writes up to this clock can be seen by the async proxy */
    struct warp_check *warps;
    struct place_clock *places;
    size_t nplaces, places_cap;
    struct mark *guests;       /* by block and slot: the last access from another block */
    struct cell **cells;       /* of each block's shared memory */
    uint8_t **shared_written;  /* a bit a byte */
    uint8_t **local_written;   /* of each block: a byte a byte of each lane of each warp */
    const struct taken *taken; /* newest first */
};

struct check *check_new(const struct launch *la);
void check_free(struct launch *la, struct check *c);
struct gang_check *check_gang_new(const struct launch *la, uint32_t ctas);
void check_gang_free(const struct launch *la, struct gang_check *g, uint32_t ctas);
void check_gang_start(struct worker *w, struct gang *g);
void check_gang_end(struct worker *w, struct gang *g);  /* what nobody waited for */
void check_gang_gone(struct worker *w, struct gang *g); /* blocks that others still used */

/* An access of one lane: `offset` in the owner's shared memory, in the lane's local memory (owner's
 * too), or in buffer `map`. `at` is where the bytes are. */
struct touch {
    enum ptx_space space;
    const struct cta *owner;
    size_t map;
    uint64_t offset;
    uint32_t bytes;
    unsigned lane;
    enum use use;
    const uint8_t *at;
    bool several; /* other lanes read the same bytes with the same instruction */
};
/* The lanes of one instruction: check_begin, then check_touch for each. */
void check_begin(struct worker *w, enum use use);
void check_touch(struct worker *w, const struct touch *t);
void check_filled(struct mapped *b, uint64_t offset, uint64_t bytes); /* by the host */
/* Lanes that have an address of their own among those of the mask; `several` gets those of them
 * that stand for others as well. */
uint32_t check_distinct(uint32_t mask, const uint64_t *address, uint32_t *several);
/* The bytes of a cp.async have arrived, in the block's own shared memory. */
void check_arrived(struct worker *w, const struct instr *in, unsigned lane, const uint8_t *at,
                   uint32_t bytes);

/* Events. Each is called only when there are checks. */
void order_warp_sync(struct worker *w, const struct warp *wp, uint32_t mask);
void order_fence(struct worker *w, const struct warp *wp, uint8_t mode);
void order_barrier_arrive(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask);
void order_barrier_pass(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask);
void order_barrier_opened(struct worker *w, const struct cta *c, uint8_t id);
void order_cluster_arrive(struct worker *w, const struct warp *wp, bool relaxed);
void order_cluster_complete(struct worker *w, struct gang *g);
void order_cluster_pass(struct worker *w, const struct warp *wp, uint32_t mask);
/* A bulk copy: what the running warp knows when it asks for it (the caller frees it), the same when
 * it is done, and the wait for its group. */
uint32_t *order_copy_issue(struct worker *w);
void order_copy_begin(struct worker *w, const uint32_t *clock);
void order_copy_waited(struct worker *w, const struct warp *wp);
/* A wgmma: `clocks` has room for what four warps know. It begins to read what `warp` of the four
 * multiplies alone, or, with 4, what all of them do. */
void order_product_issue(struct worker *w, uint32_t *clocks);
void order_product_begin(struct worker *w, const uint32_t *clocks, unsigned warp);
/* A strong access: releases before it, acquires after it. `where` is a buffer's, or one of shared
 * memory with the block's rank in it. */
void order_strong(struct worker *w, unsigned lane, uint64_t where, bool shared, bool reads,
                  bool writes);
void order_check_barrier(struct worker *w, const struct warp *wp, const struct instr *in,
                         uint32_t mask);
void order_check_count(struct worker *w, const struct warp *wp, const struct instr *in, uint8_t id,
                       uint32_t mask, uint32_t count);
/* Lanes that execute something together have to be among those that their masks name; a shuffle's
 * source too. */
void order_check_members(struct worker *w, const struct instr *in, uint32_t mask);
void order_check_source(struct worker *w, const struct instr *in, uint32_t mask, unsigned lane,
                        unsigned from);

/* mbarriers */
void order_place_init(struct worker *w, unsigned lane, const uint8_t *place);
void order_place_forget(struct worker *w, const uint8_t *place);
/* Does the running warp know that it was initialised? Reports it if not. */
void order_place_use(struct worker *w, unsigned lane, const uint8_t *place);
void order_place_arrive(struct worker *w, unsigned lane, const uint8_t *place, bool agent);
void order_place_complete(struct worker *w, const uint8_t *place);
void order_place_pass(struct worker *w, unsigned lane, const uint8_t *place);

/* Registers of a wgmma between its issue and its wait */
void inflight_issue(struct worker *w, const struct instr *in, uint64_t number);
void inflight_wait(struct worker *w, uint64_t end);
void inflight_fence(struct worker *w);
void inflight_use(struct worker *w, const struct instr *in, uint32_t mask);
void inflight_registers(struct worker *w, const struct instr *in);

struct sync_place { /* a word of global memory that releases went to */
    uint64_t address;
    const struct taken *released; /* newest first; slot and clock are not used */
};

/* A finding's sentence, begun: "race: k.cu:12: thread … ". NULL text: it was reported before, or
 * there is no room. */
struct text finding_begin(struct worker *w, enum sim_check check, const struct instr *in,
                          const struct warp *wp, unsigned lane, const struct instr *other);

#endif
