/* Private to the sim room: buffers, the state of a launch, and what its files call each other for.
 *
 * A launch is shared by its threads and changed only through atomics; a worker belongs to one
 * thread. Blocks of a kernel that write the same bytes race in here as they do on a GPU: that is
 * the kernel's, not ours. Counts are kept per instruction and worker, and added up at the end. */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "sim/program.h"

#include <stdatomic.h>

#define SECTOR 32u
#define FULL   UINT32_MAX

struct mapped {
    struct sim_buffer b;
    uint64_t base, end;
    _Atomic uint8_t *pages; /* PAGE_…; NULL: nothing is lazy */
};
enum { PAGE_UNTOUCHED, PAGE_FILLING, PAGE_READY };

struct sim_machine {
    struct mapped *maps; /* by address */
    size_t n, cap;
    uint64_t start, next; /* addresses: of the first buffer, of the next one */
};

struct touched { /* of one buffer, a bit a sector */
    _Atomic uint64_t *loads, *stores;
};

struct launch {
    const struct sim_launch *l;
    const struct sim_program *p;
    struct sim_machine *m;
    struct touched *touched;
    uint64_t ctas, ctas_total, chunk;
    bool alone;               /* one thread */
    _Atomic uint64_t next;    /* ordinal of the next chunk's first CTA */
    _Atomic uint64_t stop_at; /* CTAs from this ordinal on are not needed any more */
    _Atomic uint64_t used;    /* warp instructions */
    uint64_t budget;
    size_t shared_bytes;
    uint32_t threads, nwarps;
    uint32_t *tid[3]; /* of every thread of a block, in order */
};

enum wait { WAIT_NOT, WAIT_WARP, WAIT_BARRIER };

struct group { /* lanes at one place */
    uint32_t pc, mask;
    uint8_t wait;
    uint8_t barrier;  /* its number */
    bool any_place;   /* bar.warp.sync: the others may wait at another one */
    uint32_t members; /* lanes that a WAIT_WARP waits for */
};

struct warp {
    uint8_t *regs, *local;
    struct group run; /* mask 0: none */
    struct group parked[SIM_LANES];
    unsigned nparked;
    uint32_t meet;  /* lowest pc of the parked groups that can join the running one */
    uint32_t live;  /* lanes that have not exited */
    uint32_t index; /* in the CTA */
    bool pass;      /* run's WAIT_WARP is satisfied */
};

struct worker {
    struct launch *la;
    const struct sim_program *p;
    uint8_t *regs; /* one file, or one a warp */
    uint8_t *shared, *local, *scratch;
    struct warp *warps;
    uint64_t *warp_counts, *lane_counts; /* by instruction */
    struct sim_counters c;
    uint64_t fuel;     /* instructions until the next worker_settle */
    uint64_t cta_used; /* settled by this CTA */
    size_t last;       /* buffer found last */
    uint64_t ordinal;
    uint32_t cta[3];
    struct warp *warp; /* running */
    const struct instr *in;
    enum sim_status status;
    uint64_t fault_ordinal;
    struct sim_fault fault;
};

/* run.c */
bool worker_settle(struct worker *w); /* adds what was run to the launch's; false: over budget */

/* cta.c */
void cta_fill_fixed(struct worker *w, uint8_t *regs); /* special registers of the whole launch */
bool cta_run(struct worker *w);                       /* false: w->status */

/* warp.c */
enum warp_end { WARP_DONE, WARP_BLOCKED, WARP_FAILED };
enum warp_end warp_run(struct worker *w, struct warp *wp);
bool warp_over_budget(struct worker *w); /* the fault; returns false */
bool warp_pick(struct warp *wp);         /* something to run? */
void warp_park(struct warp *wp, struct group g);
uint32_t lanes_mask(const uint8_t *pred); /* the lanes of a predicate that are true */

/* collective.c: shuffles, votes and reductions of the active lanes */
void collective_run(struct worker *w, const struct instr *in, uint32_t mask);
void lanes_blend(uint8_t *to, const uint8_t *from, uint32_t mask, unsigned bytes);

/* memory.c */
bool memory_access(struct worker *w, const struct instr *in, uint32_t mask, bool store);
struct mapped *memory_find(struct worker *w, uint64_t address);
/* global.c */
bool global_access(struct worker *w, const struct instr *in, uint32_t mask, const uint64_t *address,
                   bool store);
void memory_move(struct worker *w, const struct access *a, uint32_t mask, uint8_t *const *at,
                 bool store);

/* fault.c: they set w->status and the sentence, and return false */
bool fault_bounds(struct worker *w, unsigned lane, uint64_t address, bool store);
bool fault_aligned(struct worker *w, unsigned lane, uint64_t address, bool store);
bool fault_read_only(struct worker *w, unsigned lane, uint64_t address, str what);
bool fault_window(struct worker *w, unsigned lane, uint64_t at, size_t size, const char *what,
                  bool store);
bool fault_plain(struct worker *w, enum sim_status status, unsigned lane, const char *what);

#endif
