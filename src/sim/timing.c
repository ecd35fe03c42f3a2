/* How long a launch takes: what each instruction costs by itself, and what waits for what. */
#include "sim/timing.h"

#include "sim/machine.h"
#include <string.h>

enum pipe { PIPE_FP32, PIPE_INT, PIPE_FP64, PIPE_SPECIAL, PIPE_TENSOR, PIPE_LSU, PIPE_NONE };

struct op_time {
    enum pipe pipe;
    double slots, hold, latency; /* issued; of its pipe; until its result is there */
    uint32_t reads, writes;      /* where their values begin in timing.values */
    uint16_t nreads, nwrites;
    bool boundary; /* of what the compiler orders anew */
};

/* ---- what an instruction costs by itself ----
 *
 * PTX's are not the machine's own, so some cost nothing and some are several; and what the
 * compiler, ordering them anew, does not move them across. */

#define PREDICATED  12u /* instructions that a branch may skip so */
#define SHUFFLE_CLK 23.0

static bool has_mod(const struct ptx_instr *in, const char *mod) {
    for (size_t i = 0; i < in->nmods; i++)
        if (str_is(in->mods[i], mod))
            return true;
    return false;
}

/* PTX instructions that are none, or several, in the machine's own code. */
static const struct expansion {
    const char *op, *mod; /* mod NULL: any */
    double slots, latency;
} expansions[] = {
    {"ld", "param", 0, 0},    {"mov", NULL, 0, 0},       {"cvta", NULL, 0, 0},
    {"div", "approx", 2, 30}, {"div", "full", 4, 40},    {"div", "f32", 9, 60},
    {"div", "f64", 20, 200},  {"div", "s64", 70, 280},   {"div", "u64", 70, 280},
    {"div", NULL, 18, 80},    {"rem", "s64", 70, 280},   {"rem", "u64", 70, 280},
    {"rem", NULL, 20, 85},    {"sqrt", "approx", 2, 30}, {"sqrt", "f64", 16, 160},
    {"sqrt", NULL, 8, 60},    {"rcp", "approx", 1, 0},   {"rcp", "f64", 14, 140},
    {"rcp", NULL, 7, 50},     {"mul", "s64", 3, 12},     {"mul", "u64", 3, 12},
    {"mad", "s64", 4, 14},    {"mad", "u64", 4, 14},     {"setp", "s64", 2, 8},
    {"setp", "u64", 2, 8},
};

static const struct expansion *expansion_of(const struct ptx_instr *in) {
    for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
        if (str_is(in->op, expansions[i].op) &&
            (!expansions[i].mod || has_mod(in, expansions[i].mod)))
            return &expansions[i];
    return NULL;
}

static enum pipe pipe_of(const struct instr *i) {
    switch (i->class) {
    case CLASS_FP32:
        return PIPE_FP32;
    case CLASS_FP64:
        return PIPE_FP64;
    case CLASS_SPECIAL:
        return PIPE_SPECIAL;
    case CLASS_MEMORY:
        return PIPE_LSU;
    case CLASS_TENSOR:
        return PIPE_TENSOR;
    case CLASS_INT: /* products run beside fp32's */
        return str_is(i->src->op, "mul") || str_is(i->src->op, "mad") ? PIPE_FP32 : PIPE_INT;
    default:
        return PIPE_NONE;
    }
}

/* Operations of one product and warp: the tensor cores' rate is of 16-bit operands. */
static double tensor_hold(const struct sim_clocks *c, const struct instr *i) {
    bool wgmma = i->kind == KIND_WGMMA;
    enum tile_type a = wgmma ? i->tile->wgmma.a : i->tile->mma.a;
    double flops = (double)i->flops * SIM_LANES, rate = wgmma ? c->wgmma_flops : c->mma_flops;
    if (a == TILE_F64)
        return flops / c->mma_f64_flops;
    unsigned bits = tile_type_bits(a);
    return flops / rate * (bits > 16 ? 2 : bits < 16 ? 0.5 : 1);
}

static double latency_of(const struct sim_clocks *c, const struct instr *i, enum pipe pipe) {
    if (i->kind == KIND_SHUFFLE || i->kind == KIND_VOTE || i->kind == KIND_REDUX)
        return SHUFFLE_CLK;
    switch (pipe) {
    case PIPE_FP64:
        return c->fp64;
    case PIPE_SPECIAL:
        return c->special;
    case PIPE_TENSOR:
        return c->mma;
    case PIPE_LSU:
        return i->kind == KIND_MATRIX ? c->shared + 4 : c->shared;
    default:
        return c->alu;
    }
}

static void cost_of(const struct sim_clocks *c, const struct instr *i, struct op_time *out) {
    const double hold[] = {c->fp32_hold, c->int_hold, c->fp64_hold, c->special_hold, 0, 1, 0};
    const struct expansion *x = expansion_of(i->src);
    out->pipe = pipe_of(i);
    out->slots = i->counted;
    out->hold = i->counted ? hold[out->pipe] : 0;
    out->latency = i->counted ? latency_of(c, i, out->pipe) : 0;
    if (i->class == CLASS_INT && i->counted)
        out->hold = c->int_hold;
    if (i->kind == KIND_MMA || i->kind == KIND_WGMMA)
        out->hold = tensor_hold(c, i);
    if (!x || !i->counted || i->kind == KIND_LOAD)
        return;
    out->slots = x->slots;
    out->hold *= x->slots;
    out->latency = x->slots > 0 && !(x->latency > 0) ? out->latency : x->latency;
}

/* A branch over a few instructions: the compiler predicates those instead. */
static bool is_predicated(const struct sim_program *p, size_t pc) {
    uint32_t target = p->code[pc].target;
    if (target <= pc || target - pc > PREDICATED)
        return false;
    for (size_t k = pc + 1; k < target; k++)
        if (p->code[k].kind == KIND_BARRIER || p->code[k].kind == KIND_BRANCH_TABLE ||
            p->code[k].kind == KIND_EXIT ||
            (p->code[k].kind == KIND_BRANCH && p->code[k].target <= k))
            return false;
    return true;
}

/* The compiler moves nothing across these. */
static bool is_boundary(const struct sim_program *p, size_t pc) {
    const struct instr *i = &p->code[pc];
    switch ((enum op_kind)i->kind) {
    case KIND_BRANCH:
        return !is_predicated(p, pc);
    case KIND_BRANCH_TABLE:
    case KIND_EXIT:
    case KIND_BARRIER:
    case KIND_WARP_SYNC:
    case KIND_CLUSTER_BARRIER:
    case KIND_FENCE:
    case KIND_WGMMA_COMMIT:
    case KIND_WGMMA_WAIT:
    case KIND_MBARRIER:
    case KIND_COPY_COMMIT:
    case KIND_COPY_WAIT:
        return true;
    default:
        return i->mem && i->mem->strong;
    }
}

/* All but reads and writes, which stay as they are. */
static void timing_cost(const struct sim_clocks *c, const struct sim_program *p, size_t pc,
                        struct op_time *out) {
    cost_of(c, &p->code[pc], out);
    out->boundary = is_boundary(p, pc);
}

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

/* A sector that L1 had not got, and how many had been missed before. */
struct met_sector {
    uint64_t sector, missed; /* sector + 1; 0: free */
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
    uint64_t *tags; /* of L1 */
    struct met_sector *seen;
    size_t ntags, nseen, seen_cap;
    struct page_number *pages; /* [PAGES] */
    size_t npages;
    uint64_t load_sectors, missed, unique;
    uint64_t apart, copied; /* `missed` from one time to the next of sectors that came again, added
                               up; the sector that a copy read last, + 1 */
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
    w->c.timed_apart_sectors += t->apart;
    timing_drop(g);
}

/* ---- memory ---- */

static uint64_t mix(uint64_t v) {
    v *= UINT64_C(0x9e3779b97f4a7c15);
    return v ^ v >> 29;
}

static void grow_seen(struct gang_time *t) {
    size_t old = t->seen_cap;
    struct met_sector *from = t->seen;
    t->seen_cap *= 2;
    t->seen = mem_alloc(t->seen_cap * sizeof *t->seen);
    for (size_t i = 0; i < old; i++) {
        size_t at = mix(from[i].sector) & (t->seen_cap - 1);
        while (from[i].sector && t->seen[at].sector)
            at = (at + 1) & (t->seen_cap - 1);
        if (from[i].sector)
            t->seen[at] = from[i];
    }
    mem_free(from);
}

/* A sector that L1 had not got: is it the block's first read of it? */
static bool is_new(struct gang_time *t, uint64_t sector) {
    size_t at = mix(sector + 1) & (t->seen_cap - 1);
    while (t->seen[at].sector && t->seen[at].sector != sector + 1)
        at = (at + 1) & (t->seen_cap - 1);
    if (t->seen[at].sector) {
        t->apart += t->missed - t->seen[at].missed;
        t->seen[at].missed = t->missed;
        return false;
    }
    if (t->nseen >= MOST_SECTORS)
        return true;
    t->seen[at] = (struct met_sector){sector + 1, t->missed};
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
        if (w->agent ? t->copied == s + 1 : in_l1(t, sector))
            continue; /* a copy takes a sector at once, in however many pieces it lays it down */
        t->copied = w->agent ? s + 1 : 0;
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
