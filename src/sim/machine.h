/* Private to the sim room: buffers, the state of a launch, and what its files call each other for.
 *
 * A launch is shared by its threads and changed only through atomics; a worker belongs to one
 * thread. What runs is a gang: the blocks of one cluster, or one block. All of a gang's state is in
 * its structs, none on a host stack, so that a worker can leave it after any instruction and go on
 * with another one. Blocks of a kernel that write the same bytes race in here as they do on a GPU:
 * that is the kernel's, not ours. Counts are kept per instruction and worker, and added up at the
 * end. */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "sim/program.h"
#include "sim/tile_mbarrier.h"

#include <stdatomic.h>

#define SECTOR       32u
#define FULL         UINT32_MAX
#define NAMED        16u /* barriers of a block */
#define MAX_CLUSTER  16u
#define RANK_SHIFT   24 /* a shared::cluster address: rank + 1 above this, 0: one's own block's */
#define RANK_OFFSETS ((1u << RANK_SHIFT) - 1)

struct mapped {
    struct sim_buffer b;
    uint64_t base, end;
    _Atomic uint8_t *pages; /* PAGE_…; NULL: nothing is lazy */
    uint8_t pattern[8];     /* what a page that is made holds, repeated; */
    size_t pattern_bytes;   /* 0: what b.touch says */
    uint8_t *written;       /* of an undefined buffer, a bit a byte; NULL: never looked at */
    uint8_t *stored;        /* if followed, by the last launch with checks, a bit a byte; or NULL */
    bool changed;           /* … something was */
    bool unsettled;         /* … blocks that did not run may change that */
};
enum { PAGE_UNTOUCHED, PAGE_FILLING, PAGE_READY };

struct sim_machine {
    struct mapped *maps; /* by address */
    size_t n, cap;
    uint64_t secret;
    bool spread;            /* the gaps between buffers are drawn */
    uint64_t windows, next; /* addresses: of the windows, of the next buffer */
};

struct touched { /* of one buffer, a bit a sector */
    _Atomic uint64_t *loads, *stores;
};

struct check;
struct gang_check;
struct timing;
struct gang_time;

struct launch {
    const struct sim_launch *l;
    const struct sim_program *p;
    struct sim_machine *m;
    struct touched *touched;
    uint64_t gangs, gangs_total, chunk;
    uint32_t cluster[3], gang_ctas;
    struct check *check;      /* NULL: nothing is checked */
    struct timing *timing;    /* NULL: nothing is timed */
    bool alone;               /* one thread */
    bool together;            /* warps of a block take turns; otherwise one after the other */
    _Atomic uint64_t next;    /* ordinal of the next chunk's first gang */
    _Atomic uint64_t stop_at; /* gangs from this ordinal on are not needed any more */
    _Atomic uint64_t used;    /* warp instructions */
    _Atomic bool late;        /* patience is over */
    uint64_t budget;
    size_t shared_bytes;
    uint32_t *shuffled; /* the gangs in the order they run; NULL: their own */
    uint64_t *sampled;  /* the gangs that run, ascending; NULL: all, or as run.c has it */
    uint64_t workspace; /* address, of a cooperative grid's own: */
    uint64_t counts[8]; /* who has arrived at its barrier */
    uint32_t threads, nwarps;
    uint32_t slots;   /* clocks of a block: its warps', its copies', its groups' of four */
    uint32_t *tid[3]; /* of every thread of a block, in order */
    uint8_t *noise;   /* NOISE_BYTES of it */
    uint32_t sm_first, sm_step; /* blocks are dealt to SMs from there, by such steps */
    uint64_t clock;             /* of the SMs when the launch begins */
};

enum wait {
    WAIT_NOT,
    WAIT_WARP,
    WAIT_LANES, /* at a barrier for whole warps: lanes of its own are on their way there */
    WAIT_BARRIER,
    WAIT_CLUSTER,
    WAIT_PHASE,
    WAIT_WGMMA,
};

struct group { /* lanes at one place */
    uint32_t pc, mask;
    uint32_t late; /* its rank, at a loop's head that it came back to; 0: that of its place */
    uint8_t wait;
    uint8_t barrier;  /* its number */
    bool any_place;   /* bar.warp.sync: the others may wait at another one */
    bool spins;       /* it was set aside because it waits by asking again */
    uint32_t members; /* lanes that a WAIT_WARP waits for */
};

/* What a warp read last at a place where kernels wait for others: read again with the same result,
 * it is waiting. */
struct poll {
    uint32_t pc, repeats;
    uint64_t seen;    /* hash of addresses and values */
    uint64_t address; /* of the first lane, for messages */
    uint32_t lane;
};

/* cp.async of a warp, under way; or the arrival that follows those before it. */
struct copy {
    const struct instr *in;
    uint32_t mask;             /* lanes for which it has not been done yet */
    uint32_t group[SIM_LANES]; /* of each lane */
    uint8_t *to[SIM_LANES];    /* of an arrival: the mbarrier */
    const uint8_t *from[SIM_LANES];
    uint8_t source[SIM_LANES]; /* bytes that are copied; the rest is zero */
};

/* A bulk copy of one thread, under way. */
struct bulk {
    const struct instr *in;
    struct warp *warp;
    unsigned lane;
    uint32_t group;
    uint64_t to, from, bar;
    uint32_t bytes;
    uint16_t ctas; /* multicast; 0: one's own or the one the address names */
    int32_t coordinate[TILE_MAX_RANK];
    struct tile_map map;
    uint64_t value[4];
    uint32_t *clock; /* what its thread knew when it asked for it; NULL: nothing is checked */
    uint8_t *data;   /* of a store whose source has been read, and that has not written yet */
};

struct wgmma { /* under way */
    const struct instr *in;
    uint64_t desc_a, desc_b;
    bool scale_d;
    uint32_t *clock; /* what each of the four warps knew when it issued it; NULL: not checked */
};
#define WGMMA_GROUPS 64u /* that can be told apart */

/* Four warps that multiply together. Products are numbered from 0 in the order of issue. */
struct warpgroup {
    struct wgmma *ops; /* those not done yet */
    size_t n, cap;
    uint64_t done;                  /* number of the first of them */
    uint64_t issued[4], commits[4]; /* by each warp */
    uint64_t ends[WGMMA_GROUPS];    /* products before the end of each group, modulo */
};

/* Of a loop: lanes that have gone back to its head once, and more often, since they entered it. */
struct loop_passes {
    uint32_t once, more;
};

struct warp {
    uint8_t *regs, *local;
    struct group run; /* mask 0: none */
    struct group parked[SIM_LANES];
    unsigned nparked;
    const struct instr *code;
    uint32_t meet;   /* lowest rank of the parked groups that can join the running one */
    uint32_t live;   /* lanes that have not exited */
    uint32_t behind; /* lanes in a loop that others have begun another round of, until they meet */
    uint32_t
        parted;     /* those that took the last branch that parted lanes, until a .sync of theirs */
    uint32_t index; /* in the CTA */
    uint32_t slices; /* settlements it met */
    bool pass;       /* run's WAIT_WARP is satisfied */
    bool rotated;    /* the running group is not the lowest one: the lowest waits for it, */
    uint32_t until;  /* at most until it comes to this place */
    bool polling;    /* it was last seen waiting for memory to change */
    uint32_t cluster_arrived, cluster_passed; /* lanes, at barrier.cluster */
    struct poll poll;
    struct cta *cta;
    struct copy *copies;
    size_t ncopies, copies_cap;
    uint32_t copy_commits[SIM_LANES], bulk_commits[SIM_LANES]; /* groups of each lane */
    bool give_up;               /* the next try_wait returns false rather than wait */
    uint8_t lag;                /* where it is drawn: it has one turn in so many */
    uint64_t waited;            /* the worker's progress when it last polled, + 1; 0: never */
    struct loop_passes *passes; /* by loop; NULL: coverage is not recorded */
    uint32_t came_back;         /* lanes on their way back to the head of a loop */
};

struct named_barrier {
    uint32_t arrived;          /* threads, by bar.arrive */
    uint32_t expected;         /* as they gave it */
    const struct instr *first; /* checks: who came first, with this many threads */
    uint32_t given;
};

struct cta {
    struct gang *gang;
    uint8_t *regs; /* one file, or one a warp */
    uint8_t *shared, *local;
    struct warp *warps;
    uint32_t id[3], rank;
    struct named_barrier bars[NAMED];
    struct warpgroup *warpgroups;
};

struct gang {
    struct cta *ctas;
    uint32_t n;
    uint64_t ordinal;
    uint64_t used;            /* settled by it */
    uint64_t sectors;         /* of global memory that it has asked for */
    uint64_t clusters[3];     /* its cluster's place in the grid of clusters */
    struct gang_check *check; /* NULL: nothing is checked */
    struct gang_time *time;   /* NULL: it is not timed */
    struct bulk *bulks;       /* in the order of issue */
    size_t nbulks, bulks_cap;
    struct gang *next; /* of the resident ones, or of those to be used again */
    bool gives_way;    /* other gangs have their turn after this round, as was drawn */
    bool drawn;        /* what comes next is, from this: */
    uint64_t draw;     /* and so is which lane's store wins (sim_launch.lanes) */
};

/* What an instruction did to memory. */
struct traffic {
    uint64_t requests, sectors, bytes;
    uint64_t shared_requests, shared_wavefronts, shared_conflicts;
    uint64_t divergent;
};

/* The last pattern of addresses that an instruction showed to shared memory, and what it cost. */
struct bank_memo {
    uint32_t offset[SIM_LANES]; /* from the first lane's */
    uint32_t mask, place;       /* of the first lane, modulo 128 */
    uint16_t wavefronts, conflicts;
};

/* Sectors of a bulk copy, which is one request however many pieces it is made in. */
struct bulk_count {
    uint64_t last; /* sector met last, + 1; 0: none */
    uint64_t sectors, bytes;
    bool store;
};

/* The sectors that the running gang has stored to results, and sums over the gangs before it. */
struct gang_stores {
    uint64_t **bits; /* by buffer, a bit a sector; NULL: no result */
    struct stored_word {
        size_t buffer, word;
    } * words; /* that are not 0 */
    size_t nwords, cap;
    uint64_t sectors, gangs, storing;
    double sum, squares;
};

struct worker {
    struct launch *la;
    const struct sim_program *p;
    uint8_t *scratch;
    struct tile_scratch *tiles;          /* NULL until one is needed */
    struct gang *spare;                  /* gangs that were used and can be used again */
    uint64_t *warp_counts, *lane_counts; /* by instruction */
    int64_t *straight;                   /* whole warps in straight lines: +1 where one begins, -1
                                            behind its end */
    struct traffic *traffic;             /* by instruction */
    struct bank_memo **memos;
    struct sim_miss *misses;    /* by instruction; NULL: not recorded */
    uint8_t *covered;           /* by instruction, of enum sim_covered; NULL: not recorded */
    struct gang_stores *stores; /* NULL: not recorded */
    struct sim_counters c;
    uint64_t begun_us; /* of thread_us */
    uint64_t fuel;     /* instructions until the next worker_settle, */
    uint64_t allowed;  /* of so many */
    uint64_t progress; /* grows whenever something happened that others may wait for */
    size_t last;       /* buffer found last */
    struct gang *gang; /* running, */
    struct cta *cta;
    struct warp *warp;
    const struct instr *in;
    bool drawn;   /* which lane's value stays was drawn, and the values differed; or whose atomic
                     comes first */
    bool agent;   /* the access under way is a bulk copy's, */
    bool product; /* or a wgmma's; */
    bool proxy;   /* through the async proxy */
    struct bulk_count bulk;
    uint32_t bytes; /* of the access under way, for messages */
    enum sim_status status;
    uint64_t fault_ordinal;
    struct sim_fault fault;
};

#define MAX_RESIDENT_BYTES (UINT64_C(2) << 30) /* of all gangs that have started */

#define WORKER_FUEL 4096u /* instructions between two settlements */

/* run.c: orders other than the first. What is drawn depends on the order's number, the gang and
 * what was drawn before, on nothing else. */
uint64_t draw_below(struct gang *g, uint64_t n);
/* Lanes of a store that come after its others, so that theirs stay; 0: all places are distinct. */
uint32_t draw_late_lanes(struct worker *w, const struct access *a, uint32_t mask,
                         const uint64_t *address);

/* Shuffles the lanes of an atomic, unless all places are distinct. */
void draw_lane_order(struct worker *w, const struct access *a, uint32_t mask,
                     const uint64_t *address, uint8_t *order);

/* run.c */
struct tile_scratch *worker_tiles(struct worker *w);
bool worker_settle(struct worker *w); /* adds what was run to the launch's; false: over budget */

/* run.c: which gang runs when */
void grid_cta_id(const struct launch *la, uint64_t gang, uint32_t rank, uint32_t id[3]);
uint64_t grid_clock(const struct worker *w); /* of the running gang, in instructions */

/* What memory holds that nothing wrote. */
#define NOISE_BYTES 16384u

#define DEFAULT_SMS 132u
enum gang_end { GANG_DONE, GANG_POLLS, GANG_BUSY, GANG_FAILED };
enum gang_end gang_step(struct worker *w, struct gang *g);

/* barrier.c */
void barrier_reach(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask);
bool barrier_release(struct worker *w, struct gang *g); /* anything released? */

/* warpgroup.c */
bool warpgroup_issue(struct worker *w, const struct instr *in);
bool warpgroup_commit(struct worker *w);
/* Does the oldest product of these four warps if all have issued it; false: a fault. */
bool warpgroup_early(struct worker *w, struct cta *c, uint32_t which);
bool warpgroup_ready(const struct worker *w, const struct warp *wp, const struct instr *in);
bool warpgroup_wait(struct worker *w, const struct instr *in); /* when it is ready */
void warpgroup_start(const struct launch *la, struct cta *c);
void warpgroup_release(struct warpgroup *g);

/* copy.c: cp.async */
bool copy_issue(struct worker *w, const struct instr *in, uint32_t mask);
void copy_commit(struct worker *w, uint32_t mask);
bool copy_wait(struct worker *w, uint32_t groups, uint32_t mask);
bool copy_arrive(struct worker *w, const struct instr *in, uint32_t mask);
bool copy_early(struct worker *w, struct warp *wp, size_t which, uint32_t lanes);
bool copy_advance(struct worker *w, struct gang *g); /* does the oldest one that others wait for */

/* copy.c: bulk copies */
bool bulk_issue(struct worker *w, const struct instr *in, uint32_t mask);
bool bulk_wait(struct worker *w, const struct instr *in, uint32_t mask);
/* Does the oldest one that somebody waits for, or the oldest; false: none, or fault. */
bool bulk_advance(struct worker *w, struct gang *g);
/* Does one of them, or reads the source of a store; false: a fault. */
bool bulk_early(struct worker *w, struct gang *g, size_t which, bool source);
void bulk_clear(struct gang *g); /* forgets those under way */
bool bulk_replace(struct worker *w, const struct instr *in, uint32_t mask);

/* barrier.c: mbarriers */
bool mbarrier_run(struct worker *w, const struct instr *in, uint32_t mask);
bool mbarrier_any_passed(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask,
                         bool *any);
bool mbarrier_arrive(struct worker *w, unsigned lane, uint8_t *at);
bool mbarrier_complete(struct worker *w, unsigned lane, uint64_t address, uint32_t bytes);
/* The mbarriers that threads of the gang wait for, as addresses of the cluster; how many there are
 * of at most `max`. */
size_t phase_waited(struct worker *w, struct gang *g, uint64_t *address, size_t max);
/* try_wait, wgmma waits: anything released? `some`: where it is drawn, others stay. */
bool phase_release(struct worker *w, struct gang *g, bool some);
bool phase_give_up(struct worker *w, struct gang *g); /* lets every try_wait return false */

/* execute.c */
enum warp_end { WARP_DONE, WARP_BLOCKED, WARP_FAILED, WARP_PAUSED, WARP_POLLS };
enum warp_end warp_run(struct worker *w, struct warp *wp);
bool warp_over_budget(struct worker *w); /* the fault; returns false */

/* coverage.c: what became of choices; only where the worker records it. `mask`: the lanes whose
 * guard is true. */
void coverage_before(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask);
void coverage_merge_misses(struct sim_miss *to, const struct sim_miss *from, size_t n);
void coverage_after(struct worker *w, const struct warp *wp, const struct instr *in, uint32_t mask);

/* execute.c: groups of lanes */
bool warp_pick(struct warp *wp); /* something to run? */
void warp_park(struct warp *wp, struct group g);
uint32_t lanes_mask(const uint8_t *pred); /* the lanes of a predicate that are true */
void lanes_blend(uint8_t *to, const uint8_t *from, uint32_t mask, unsigned bytes);
/* The same with a hash of what was seen. */
bool warp_saw(struct worker *w, uint64_t seen, uint64_t address, unsigned lane);
/* Notes what the lanes saw; true: they saw the same thing as before and should let others run. */
bool warp_polls(struct worker *w, const struct access *a, uint32_t mask, const uint64_t *address);

/* memory.c */
enum use { USE_READ, USE_WRITE, USE_ATOMIC, USE_BARRIER }; /* the last: an mbarrier's word */
bool memory_access(struct worker *w, const struct instr *in, uint32_t mask, bool store);
void memory_where(const struct worker *w, const struct instr *in, const struct where *at,
                  uint64_t *address);
/* One lane's bytes. NULL: a fault. */
uint8_t *memory_range(struct worker *w, enum ptx_space s, unsigned lane, uint64_t address,
                      uint32_t bytes, uint32_t align, enum use use);
/* Where the lanes' bytes are; false: a fault. Addresses of PTX_GENERIC may be in several spaces;
 * `global` gets the lanes whose bytes are in a buffer. */
bool memory_resolve(struct worker *w, enum ptx_space s, uint32_t mask, const uint64_t *address,
                    uint32_t bytes, uint32_t align, enum use use, uint8_t **at, uint32_t *global);
struct mapped *memory_find(const struct sim_machine *m, uint64_t address);

/* What gangs store to results */
struct gang_stores *stores_new(const struct launch *la);          /* NULL: there are no results */
void stores_free(const struct launch *la, struct gang_stores *s); /* NULL is fine */
void stores_gang_done(struct worker *w);

/* A piece of a bulk copy; NULL: it is not that simple, memory_range knows more. */
uint8_t *global_bulk(struct worker *w, uint64_t address, uint32_t bytes, bool store);
void global_bulk_done(struct worker *w); /* counts the copy */

/* Atomics. */
bool atomic_run(struct worker *w, const struct instr *in, uint32_t mask);

/* fault.c: they set w->status and the sentence, and return false */
struct text {
    char *p;
    size_t n, cap;
};
void text_say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct text fault_begin(struct worker *w, enum sim_status status, unsigned lane);
void fault_place(const struct worker *w, struct text *t, uint64_t address);
bool fault_bounds(struct worker *w, unsigned lane, uint64_t address, bool store);
bool fault_aligned(struct worker *w, unsigned lane, uint64_t address, uint32_t align, bool store);
bool fault_read_only(struct worker *w, unsigned lane, uint64_t address, str what);
bool fault_window(struct worker *w, unsigned lane, uint64_t at, size_t size, const char *what,
                  bool store);
bool fault_plain(struct worker *w, enum sim_status status, unsigned lane, const char *what);

#endif
