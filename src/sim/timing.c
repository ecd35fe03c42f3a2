#include "sim/timing.h"

#include "sim/timing_cost.h"

#include <string.h>

#define TIMED_GANGS  4u
#define UNIT         (4u * SIM_LANES) /* bytes of the register file of one value */
#define GROUPS       16u              /* of asynchronous copies or products that are told apart */
#define PLACES       64u              /* mbarriers */
#define PAGES        8192             /* numbered; a power of two */
#define PAGE_SECTORS (4096 / SECTOR)
#define MOST_SECTORS (1u << 22) /* of a block that are told apart */
#define WAYS         16u        /* of the cache */
#define LEAST_L1     (4u << 10)
#define TURN         32u /* instructions */
#define BARRIER_CLK  12.0
#define BRANCH_CLK   6.0   /* from a branch to the instruction after it */
#define WGMMA_CLK    20.0  /* from the last product to the use of its sums */
#define COPY_CLK     100.0 /* more than a load that a bulk copy takes to begin */

struct span { /* a time, with memory far away and near */
    double far, near;
};

static struct span later(struct span a, struct span b) {
    return (struct span){a.far > b.far ? a.far : b.far, a.near > b.near ? a.near : b.near};
}

static struct span after(struct span a, double clocks) {
    return (struct span){a.far + clocks, a.near + clocks};
}

struct timing {
    const struct sim_clocks *clocks;
    struct op_time *ops;
    uint32_t *values;
    size_t nvalues, cap, file; /* file: values of a warp */
};

struct ring { /* groups of something asynchronous, by when they are done */
    struct span open, done[GROUPS];
    uint64_t committed;
};

/* Since `clock` the warp has run straight on: what was issued and held since then, when the last of
 * it started, and the last stores, which loads do not overtake. */
struct warp_time {
    uint32_t steps;
    struct span clock, last, stored, shared_stored;
    double slots, held[PIPE_NONE + 1];
    struct span *ready;
    struct ring copies, bulks, products;
};

/* A page of the host's memory that was met, and as the how-manieth. */
struct page_number {
    uint64_t page, number; /* page + 1; 0: free */
};

struct gang_time {
    const struct timing *t;
    struct warp_time *warps;
    struct span *ready;
    double held[PIPE_NONE + 1], slots;
    uint64_t *tags, *seen; /* L1; sectors met, + 1 */
    size_t ntags, nseen, seen_cap;
    struct page_number *pages; /* [PAGES] */
    size_t npages;
    uint64_t load_sectors, missed, unique;
    uint64_t sectors, lines, missed_now, wavefronts; /* of the access under way */
    struct {
        const void *place;
        struct span at;
    } bars[PLACES];
};

/* ---- a launch ---- */

static uint32_t keep(struct timing *t, const uint32_t *reg, unsigned n) {
    uint32_t at = (uint32_t)t->nvalues;
    t->values = mem_grow(t->values, &t->cap, t->nvalues + n + 1, sizeof *t->values);
    for (unsigned k = 0; k < n; k++)
        t->values[t->nvalues++] = reg[k] / UNIT;
    return at;
}

struct timing *timing_new(const struct launch *la) {
    const struct sim_program *p = la->p;
    uint32_t reg[FLOW_MAX_OPERANDS];
    if (!la->l->clocks || la->l->checks)
        return NULL;
    struct timing *t = mem_alloc(sizeof *t);
    t->clocks = la->l->clocks;
    t->file = p->register_bytes / UNIT + 2;
    t->ops = mem_alloc(p->ncode * sizeof *t->ops);
    for (size_t k = 0; k < p->ncode; k++) {
        struct op_time *o = &t->ops[k];
        timing_cost(t->clocks, p, k, o);
        o->nreads = (uint16_t)flow_reads(&p->code[k], reg);
        o->reads = keep(t, reg, o->nreads);
        o->nwrites = (uint16_t)flow_writes(&p->code[k], reg);
        o->writes = keep(t, reg, o->nwrites);
    }
    return t;
}

void timing_free(struct timing *t) {
    if (!t)
        return;
    mem_free(t->ops);
    mem_free(t->values);
    mem_free(t);
}

/* A few, spread over those that run. */
static bool is_timed(const struct launch *la, uint64_t ordinal) {
    if (la->gangs <= TIMED_GANGS)
        return true;
    for (uint64_t i = 0; i < TIMED_GANGS; i++)
        if (ordinal == (2 * i + 1) * la->gangs / (2 * TIMED_GANGS))
            return true;
    return false;
}

struct gang_time *timing_begin(const struct launch *la, const struct gang *g) {
    const struct timing *t = la->timing;
    if (!t || !is_timed(la, g->ordinal))
        return NULL;
    size_t warps = (size_t)g->n * la->nwarps, bytes = t->clocks->l1_bytes;
    struct gang_time *time = mem_alloc(sizeof *time);
    time->t = t;
    time->warps = mem_alloc(warps * sizeof *time->warps);
    time->ready = mem_alloc(warps * t->file * sizeof *time->ready);
    for (size_t i = 0; i < warps; i++)
        time->warps[i].ready = time->ready + i * t->file;
    for (time->ntags = 1; time->ntags * 2 * SECTOR <= (bytes > LEAST_L1 ? bytes : LEAST_L1);)
        time->ntags *= 2;
    time->tags = mem_alloc(time->ntags * sizeof *time->tags);
    time->pages = mem_alloc(PAGES * sizeof *time->pages);
    time->seen_cap = 1024;
    time->seen = mem_alloc(time->seen_cap * sizeof *time->seen);
    return time;
}

void timing_drop(struct gang *g) {
    struct gang_time *t = g->time;
    if (!t)
        return;
    mem_free(t->warps);
    mem_free(t->ready);
    mem_free(t->tags);
    mem_free(t->seen);
    mem_free(t->pages);
    mem_free(t);
    g->time = NULL;
}

static void settle(struct warp_time *wt);

static struct warp_time *time_of(const struct worker *w, const struct warp *wp) {
    return &w->gang->time->warps[wp->cta->rank * w->la->nwarps + wp->index];
}

/* A cluster's blocks take as long as the slowest of them. */
void timing_end(struct worker *w, struct gang *g) {
    struct gang_time *t = g->time;
    struct span end = {0};
    for (size_t i = 0; i < (size_t)g->n * w->la->nwarps; i++) {
        settle(&t->warps[i]);
        end = later(end, t->warps[i].clock);
    }
    w->c.timed_ctas += g->n;
    w->c.timed_clocks += g->n * (uint64_t)end.far;
    w->c.timed_clocks_near += g->n * (uint64_t)end.near;
    w->c.timed_slots += (uint64_t)t->slots;
    w->c.timed_fp32 += (uint64_t)t->held[PIPE_FP32];
    w->c.timed_int += (uint64_t)t->held[PIPE_INT];
    w->c.timed_fp64 += (uint64_t)t->held[PIPE_FP64];
    w->c.timed_special += (uint64_t)t->held[PIPE_SPECIAL];
    w->c.timed_tensor += (uint64_t)t->held[PIPE_TENSOR];
    w->c.timed_lsu += (uint64_t)t->held[PIPE_LSU];
    w->c.timed_load_sectors += t->load_sectors;
    w->c.timed_l2_sectors += t->missed;
    w->c.timed_unique_sectors += t->unique;
    timing_drop(g);
}

/* ---- memory ---- */

static uint64_t mix(uint64_t v) {
    v *= UINT64_C(0x9e3779b97f4a7c15);
    return v ^ v >> 29;
}

static void grow_seen(struct gang_time *t) {
    size_t old = t->seen_cap;
    uint64_t *from = t->seen;
    t->seen_cap *= 2;
    t->seen = mem_alloc(t->seen_cap * sizeof *t->seen);
    for (size_t i = 0; i < old; i++) {
        size_t at = mix(from[i]) & (t->seen_cap - 1);
        while (from[i] && t->seen[at])
            at = (at + 1) & (t->seen_cap - 1);
        if (from[i])
            t->seen[at] = from[i];
    }
    mem_free(from);
}

static bool is_new(struct gang_time *t, uint64_t sector) {
    size_t at = mix(sector + 1) & (t->seen_cap - 1);
    while (t->seen[at] && t->seen[at] != sector + 1)
        at = (at + 1) & (t->seen_cap - 1);
    if (t->seen[at])
        return false;
    if (t->nseen >= MOST_SECTORS)
        return true;
    t->seen[at] = sector + 1;
    if (++t->nseen * 2 > t->seen_cap)
        grow_seen(t);
    return true;
}

/* Where buffers lie differs from process to process, and would decide which sectors share a set of
 * L1: pages are numbered as they are met instead. */
static uint64_t numbered(struct gang_time *t, uint64_t sector) {
    uint64_t page = sector / PAGE_SECTORS + 1;
    size_t at = mix(page) & (PAGES - 1);
    while (t->pages[at].page && t->pages[at].page != page)
        at = (at + 1) & (PAGES - 1);
    if (!t->pages[at].page) {
        if (t->npages == PAGES / 2)
            return sector;
        t->pages[at] = (struct page_number){page, t->npages++};
    }
    return t->pages[at].number * PAGE_SECTORS + sector % PAGE_SECTORS;
}

/* Is it in L1? It is afterwards, the last of its set to go. */
static bool in_l1(struct gang_time *t, uint64_t sector) {
    uint64_t *set = &t->tags[(mix(sector) & (t->ntags / WAYS - 1)) * WAYS];
    size_t k = 0;
    while (k < WAYS - 1 && set[k] != sector + 1)
        k++;
    bool found = set[k] == sector + 1;
    memmove(set + 1, set, k * sizeof *set);
    set[0] = sector + 1;
    return found;
}

void timing_load(struct worker *w, uint64_t address, size_t bytes) {
    struct gang_time *t = w->gang->time;
    for (uint64_t s = address / SECTOR; s <= (address + bytes - 1) / SECTOR; s++) {
        uint64_t sector = numbered(t, s);
        if (!w->agent && in_l1(t, sector))
            continue;
        t->missed++;
        t->missed_now++;
        t->unique += is_new(t, sector);
    }
}

void timing_request(struct worker *w, uint64_t sectors, uint64_t lines) {
    w->gang->time->sectors += sectors;
    w->gang->time->lines += lines;
}

void timing_shared(struct worker *w, unsigned wavefronts) {
    w->gang->time->wavefronts += wavefronts;
}

/* ---- an instruction ---- */

static void ring_commit(struct ring *r) {
    r->done[r->committed++ % GROUPS] = r->open;
}

/* When all but the last `left` groups are done; UINT32_MAX: and what is not committed. */
static struct span ring_wait(const struct ring *r, uint32_t left) {
    struct span t = {0};
    if (left == UINT32_MAX)
        return r->open;
    uint64_t n = r->committed > left ? r->committed - left : 0;
    for (uint64_t k = n > GROUPS ? n - GROUPS : 0; k < n; k++)
        if (k + GROUPS >= r->committed)
            t = later(t, r->done[k % GROUPS]);
    return t;
}

/* Loads, and copies, which end as loads do. */
static struct span memory_done(const struct gang_time *t, struct span at) {
    const struct sim_clocks *c = t->t->clocks;
    double queue = (double)t->lines + (double)t->missed_now / 2;
    if (t->wavefronts && !t->sectors)
        return after(at, c->shared + (double)t->wavefronts - 1);
    if (!t->missed_now)
        return after(at, c->l1 + queue);
    return (struct span){at.far + c->dram + queue, at.near + c->l2 + queue};
}

/* Of a bulk copy that is issued now. */
static struct span copied(const struct sim_clocks *c, struct span at) {
    return (struct span){at.far + c->dram + COPY_CLK, at.near + c->l2 + COPY_CLK};
}

static struct span result_at(struct worker *w, struct warp_time *wt, const struct instr *i,
                             const struct op_time *o, struct span at) {
    const struct gang_time *t = w->gang->time;
    const struct sim_clocks *c = t->t->clocks;
    switch ((enum op_kind)i->kind) {
    case KIND_LOAD:
    case KIND_FRAGMENT:
        return t->sectors || t->wavefronts ? memory_done(t, at) : after(at, c->l1);
    case KIND_MATRIX:
        return after(at, c->shared + (double)t->wavefronts);
    case KIND_ATOMIC:
        return after(at, t->sectors ? c->l2 : 2 * c->shared + (double)t->wavefronts);
    case KIND_COPY:
        wt->copies.open = later(wt->copies.open, memory_done(t, at));
        return at;
    case KIND_BULK:
        wt->bulks.open = later(wt->bulks.open, copied(c, at));
        return at;
    case KIND_WGMMA:
        wt->products.open = after(later(wt->products.open, at), o->hold);
        return at;
    default:
        return after(at, o->latency);
    }
}

/* The end of a straight run: everything has started, in the slots and on the pipes there are. */
static void settle(struct warp_time *wt) {
    double busy = wt->slots;
    for (int p = 0; p < PIPE_NONE; p++)
        busy = wt->held[p] > busy ? wt->held[p] : busy;
    wt->clock = later(after(wt->clock, busy), wt->last);
    wt->slots = 0;
    memset(wt->held, 0, sizeof wt->held);
}

/* What waits, or ends a group. */
static void synchronise(struct warp_time *wt, const struct instr *i) {
    bool bulk = i->async && i->async->grouped;
    switch ((enum op_kind)i->kind) {
    case KIND_COPY_COMMIT:
        ring_commit(bulk ? &wt->bulks : &wt->copies);
        return;
    case KIND_COPY_WAIT:
        wt->clock = later(wt->clock, ring_wait(bulk ? &wt->bulks : &wt->copies, i->target));
        return;
    case KIND_WGMMA_COMMIT:
        ring_commit(&wt->products);
        return;
    case KIND_WGMMA_WAIT:
        wt->clock = after(later(wt->clock, ring_wait(&wt->products, i->target)), WGMMA_CLK);
        return;
    case KIND_BRANCH:
    case KIND_BRANCH_TABLE:
        wt->clock = after(wt->clock, BRANCH_CLK);
        return;
    default:
        return;
    }
}

/* Stores keep their place among loads that may read what they write. */
static struct span ordered(struct warp_time *wt, const struct instr *i, struct span at,
                           bool shared) {
    struct span *stored = shared ? &wt->shared_stored : &wt->stored;
    if (i->kind == KIND_LOAD && !i->mem->fixed_content)
        return later(at, *stored);
    if (i->kind == KIND_STORE)
        *stored = later(*stored, at);
    return at;
}

void timing_step(struct worker *w, uint32_t pc, uint32_t mask) {
    struct gang_time *t = w->gang->time;
    const struct op_time *o = &t->t->ops[pc];
    const struct instr *i = &w->p->code[pc];
    struct warp_time *wt = time_of(w, w->warp);
    double hold = o->hold;
    wt->steps++;
    if (o->boundary)
        settle(wt);
    if (o->pipe == PIPE_LSU && t->sectors + t->wavefronts > 0) /* copies pass L1 by */
        hold = (double)(t->wavefronts + (i->kind == KIND_COPY ? 0 : t->lines));
    struct span at = after(wt->clock, wt->held[o->pipe]);
    for (unsigned k = 0; k < o->nreads; k++)
        at = later(at, wt->ready[t->t->values[o->reads + k]]);
    at = ordered(wt, i, at, t->wavefronts > 0);
    wt->held[o->pipe] += hold;
    wt->slots += o->slots;
    wt->last = later(wt->last, at);
    t->held[o->pipe] += hold;
    t->slots += o->slots;
    struct span done = mask ? result_at(w, wt, i, o, at) : after(at, o->latency);
    for (unsigned k = 0; k < o->nwrites; k++)
        wt->ready[t->t->values[o->writes + k]] = done;
    if (o->boundary) {
        settle(wt);
        synchronise(wt, i);
    }
    t->load_sectors += i->kind == KIND_LOAD || i->kind == KIND_COPY ? t->sectors : 0;
    t->sectors = t->lines = t->missed_now = t->wavefronts = 0;
}

void timing_straight(struct worker *w, uint32_t pc, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        timing_step(w, pc + k, FULL);
}

bool timing_turn_over(struct worker *w) {
    struct warp_time *wt = time_of(w, w->warp);
    if (wt->steps < TURN)
        return false;
    wt->steps = 0;
    return true;
}

/* ---- others ---- */

static bool waits_at(const struct warp *wp, uint8_t id) {
    for (unsigned k = 0; k < wp->nparked; k++)
        if (wp->parked[k].wait == WAIT_BARRIER && wp->parked[k].barrier == id)
            return true;
    return false;
}

void timing_barrier(struct worker *w, struct cta *c, uint8_t id) {
    struct span last = {0};
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        if (waits_at(&c->warps[i], id))
            last = later(last, time_of(w, &c->warps[i])->clock);
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        if (waits_at(&c->warps[i], id))
            time_of(w, &c->warps[i])->clock = after(last, BARRIER_CLK);
}

void timing_cluster(struct worker *w, struct gang *g) {
    struct span last = {0};
    size_t n = (size_t)g->n * w->la->nwarps;
    for (size_t i = 0; i < n; i++)
        last = later(last, g->time->warps[i].clock);
    for (size_t i = 0; i < n; i++)
        g->time->warps[i].clock = after(last, 8 * BARRIER_CLK);
}

static struct span *bar_at(struct gang_time *t, const void *place) {
    size_t at = mix((uint64_t)(uintptr_t)place) % PLACES;
    for (size_t k = 0; k < PLACES; k++, at = (at + 1) % PLACES)
        if (!t->bars[at].place || t->bars[at].place == place)
            break;
    t->bars[at].place = place;
    return &t->bars[at].at;
}

void timing_arrive(struct worker *w, const void *place) {
    struct span *bar = bar_at(w->gang->time, place);
    *bar = later(*bar, time_of(w, w->warp)->clock);
}

void timing_copy(struct worker *w, const void *place) {
    struct span *bar = bar_at(w->gang->time, place);
    *bar = later(*bar, copied(w->gang->time->t->clocks, time_of(w, w->warp)->clock));
}

void timing_pass(struct worker *w, const void *place) {
    struct warp_time *wt = time_of(w, w->warp);
    wt->clock = later(wt->clock, *bar_at(w->gang->time, place));
}
