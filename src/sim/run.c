/* sim_run: checks the launch, starts threads, runs gangs, adds up what was counted.
 *
 * A gang is the blocks of one cluster, or one block. Its warps run in turn, each until it exits,
 * waits, or has had its share. A program whose warps never meet runs them one after the other on
 * one register file.
 *
 * The fault that is reported is the one of the lowest gang, whichever thread met it first: after a
 * fault only gangs below it still run. */
#include "base/rng.h"
#include "sim/check.h"
#include "sim/machine.h"
#include "sim/timing.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t grid_resident(const struct launch *la);

/* ---- orders other than the first ----
 *
 * At every place where a GPU has a choice, one of those that it has: which warp runs next and for
 * how long; warps that lag behind others for a while; which side of a branch goes first
 * (execute.c); in which order blocks start and which of them runs; when copies and products are
 * done, early, late and in any order among themselves; whether a store has read its source long
 * before it writes; whether a thread learns at once that a phase has ended; which lane's value
 * stays where several store to one place with one instruction, and whose atomic comes first. */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

#define MAX_SHUFFLED (1u << 20)
#define LONG_EVENTS  64u /* copies that are done in a row, now and then */

uint64_t draw_below(struct gang *g, uint64_t n) {
    uint64_t z = g->draw += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint64_t)((unsigned __int128)(z ^ z >> 31) * n >> 64);
}

static void draw_start(const struct launch *la, struct gang *g) {
    g->drawn = la->l->order != 0;
    uint64_t seed = g->drawn ? la->l->order : la->l->lanes;
    if (seed)
        g->draw = rng_u64(rng_stream(seed, S("order")), g->ordinal);
}

/* NULL: gangs keep their order. Blocks that wait for each other may rely on it that those before
 * them have started, where not all of them can be there at a time: hardware starts them in order.
 */
static uint32_t *draw_shuffle(const struct launch *la) {
    uint64_t n = la->gangs;
    bool room = !la->p->ordered || n <= grid_resident(la);
    if (!la->l->order || n < 2 || n > MAX_SHUFFLED || n != la->gangs_total || !room)
        return NULL;
    struct rng r = rng_stream(la->l->order, S("blocks"));
    uint32_t *list = mem_alloc(n * sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    for (uint32_t i = (uint32_t)n; i-- > 1;) {
        uint32_t k = (uint32_t)rng_below(r, i, i + 1), other = list[k];
        list[k] = list[i];
        list[i] = other;
    }
    return list;
}

/* Instructions that a warp may run. */
static uint64_t draw_turn(struct gang *g) {
    static const uint64_t most[] = {8, 64, 64, 512};
    return 1 + draw_below(g, most[draw_below(g, 4)]);
}

static bool copies(struct worker *w, struct gang *g) {
    struct cta *c = &g->ctas[draw_below(g, g->n)];
    struct warp *wp = &c->warps[draw_below(g, w->la->nwarps)];
    if (!wp->ncopies)
        return true;
    uint32_t lanes = draw_below(g, 2) ? FULL : (uint32_t)draw_below(g, UINT64_C(1) << 32);
    return copy_early(w, wp, (size_t)draw_below(g, wp->ncopies), lanes);
}

static bool products(struct worker *w, struct gang *g) {
    struct cta *c = &g->ctas[draw_below(g, g->n)];
    uint32_t fours = w->la->nwarps / 4;
    return !fours || warpgroup_early(w, c, (uint32_t)draw_below(g, fours));
}

/* Some of what is under way: mostly one thing or none, now and then all of it. False: a fault. */
static bool draw_events(struct worker *w, struct gang *g) {
    static const uint64_t most[] = {0, 0, 1, 1, 1, 2, 4, LONG_EVENTS};
    bool ok = true;
    if (!w->p->uses_copies && !w->p->uses_wgmma && !g->nbulks)
        return true;
    for (uint64_t n = most[draw_below(g, 8)]; ok && n; n--) {
        if (w->p->uses_copies)
            ok = copies(w, g);
        if (ok && w->p->uses_wgmma)
            ok = products(w, g);
        if (ok && g->nbulks)
            ok = bulk_early(w, g, (size_t)draw_below(g, g->nbulks), draw_below(g, 3) == 0);
    }
    return ok;
}

static bool ascends(const uint64_t *address) {
    bool not = false;
    for (unsigned i = 1; i < SIM_LANES; i++)
        not |= address[i] <= address[i - 1];
    return !not ;
}

/* Lanes whose places differ in their lowest bits already: most of the patterns that do not ascend,
 * such as swizzles of a tile. */
static bool differ_in_low_bits(uint32_t mask, const uint64_t *address, unsigned bytes) {
    enum { PLACES = 1024 };
    uint64_t seen[PLACES / 64] = {0};
    unsigned shift = (unsigned)__builtin_ctz(bytes);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint64_t at = address[__builtin_ctz(m)] >> shift & (PLACES - 1);
        uint64_t bit = UINT64_C(1) << at % 64;
        if (seen[at / 64] & bit)
            return false;
        seen[at / 64] |= bit;
    }
    return true;
}

/* The lanes of the mask that have lane i's address. */
static uint32_t sharing(uint32_t mask, const uint64_t *address, unsigned i) {
    uint32_t same = 0;
    for (unsigned k = 0; k < SIM_LANES; k++)
        same |= (uint32_t)(address[k] == address[i]) << k;
    return same & mask;
}

static bool same_value(const struct worker *w, const struct access *a, unsigned i, unsigned k) {
    uint64_t bits = a->width >= 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * a->width) - 1, off = 0;
    for (unsigned n = 0; n < a->count; n++) {
        const uint8_t *reg = w->warp->regs + a->reg[n];
        off |= a->reg_bytes == 8 ? ((const u64_lane *)reg)[i] ^ ((const u64_lane *)reg)[k]
                                 : ((const u32_lane *)reg)[i] ^ ((const u32_lane *)reg)[k];
    }
    return !(off & bits);
}

/* Lanes that store other values than another of theirs to the same place. */
static bool values_differ(const struct worker *w, const struct access *a, uint32_t mask,
                          const uint64_t *address) {
    for (uint32_t left = mask, same; left; left &= ~same) {
        unsigned i = (unsigned)__builtin_ctz(left);
        same = sharing(left, address, i);
        for (uint32_t m = same & (same - 1); m; m &= m - 1)
            if (!same_value(w, a, i, (unsigned)__builtin_ctz(m)))
                return true;
    }
    return false;
}

uint32_t draw_late_lanes(struct worker *w, const struct access *a, uint32_t mask,
                         const uint64_t *address) {
    if (!(mask & (mask - 1)) || ascends(address) || differ_in_low_bits(mask, address, a->bytes) ||
        !values_differ(w, a, mask, address))
        return 0;
    w->drawn = true;
    return mask & ((1u << draw_below(w->gang, SIM_LANES)) - 1);
}

static bool collide(uint32_t mask, const uint64_t *address, unsigned bytes) {
    if (ascends(address) || differ_in_low_bits(mask, address, bytes))
        return false;
    for (uint32_t left = mask, same; left; left &= ~same) {
        same = sharing(left, address, (unsigned)__builtin_ctz(left));
        if (same & (same - 1))
            return true;
    }
    return false;
}

void draw_lane_order(struct worker *w, const struct access *a, uint32_t mask,
                     const uint64_t *address, uint8_t *order) {
    if (!collide(mask, address, a->bytes))
        return;
    w->drawn = true;
    for (unsigned i = (unsigned)__builtin_popcount(mask); i-- > 1;) {
        unsigned k = (unsigned)draw_below(w->gang, i + 1);
        uint8_t other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

/* ---- what memory and registers hold that nothing wrote: bits from the launch's key ----
 *
 * No kernel can foresee them. Half of them are any bits at all: huge and tiny numbers, indices far
 * outside, now and then a NaN. Of the others most are numbers as data has them, for a sum or a
 * maximum that would hide the rest, and some are all ones: NaN, -1. None is zero, for that is what
 * a kernel hopes for. A block begins somewhere in one stretch of it, so that starting a block costs
 * a copy. */

#define PIECE 4u /* words of one kind */

static uint32_t word(uint64_t kind, uint64_t bits) {
    uint32_t v = (uint32_t)bits;
    if (kind < 8)
        return v | (v == 0);
    if (kind < 14) /* a float of either sign between 1/8 and 8 */
        return (v & 0x807fffff) | (124u + (uint32_t)(bits >> 32) % 6) << 23;
    return UINT32_MAX;
}

static uint8_t *noise_new(uint64_t key) {
    const struct rng bits = rng_stream(key, S("unwritten")), kinds = rng_sub(bits, 1);
    uint64_t random[NOISE_BYTES / 4];
    uint8_t *noise = mem_alloc(NOISE_BYTES);
    rng_u64_many(bits, 0, NOISE_BYTES / 4, random);
    for (size_t i = 0; i < NOISE_BYTES / 4; i++) {
        uint32_t v = word(rng_below(kinds, i / PIECE, 16), random[i]);
        memcpy(noise + 4 * i, &v, 4);
    }
    return noise;
}

static void noise_fill(const struct launch *la, void *to, size_t bytes, uint64_t salt) {
    size_t at = (size_t)((salt + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 4 % NOISE_BYTES;
    uint8_t *p = to;
    while (bytes) {
        size_t n = NOISE_BYTES - at < bytes ? NOISE_BYTES - at : bytes;
        memcpy(p, la->noise + at, n);
        p += n;
        bytes -= n;
        at = 0;
    }
}

/* ---- nothing can go on any more: which threads wait where, and for what ---- */

#define MAX_NAMED_WAITERS 4u

static void say_line(const struct worker *w, struct text *t, uint32_t pc) {
    const struct ptx_instr *src = w->p->code[pc].src;
    if (src->src_line)
        text_say(t, "line %u", src->src_line);
    else
        text_say(t, "PTX line %u", src->line);
}

static const char *what_for(const struct group *g) {
    return g->wait == WAIT_BARRIER   ? "wait elsewhere or are gone; a barrier must be reached by "
                                       "all threads that it counts"
           : g->wait == WAIT_CLUSTER ? "have not arrived at the cluster's barrier"
           : g->wait == WAIT_WGMMA   ? "of its warpgroup have not issued the same wgmma"
                                     : "of its warp wait elsewhere";
}

/* "; threads 32-63 wait at line 12" for the groups after the first. */
static void say_others(const struct worker *w, const struct gang *g, struct text *t,
                       const struct group *first) {
    unsigned said = 0;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            const struct warp *wp = &g->ctas[c].warps[i];
            for (unsigned k = 0; k < wp->nparked && said < MAX_NAMED_WAITERS; k++) {
                const struct group *o = &wp->parked[k];
                if (o == first || (o->pc == first->pc && o->wait == first->wait))
                    continue;
                uint32_t low = (uint32_t)__builtin_ctz(o->mask),
                         high = 31u - (uint32_t)__builtin_clz(o->mask);
                text_say(t, "; threads %u-%u", i * SIM_LANES + low, i * SIM_LANES + high);
                if (g->n > 1)
                    text_say(t, " of block %u of the cluster", c);
                text_say(t, " wait at ");
                say_line(w, t, o->pc);
                said++;
            }
        }
}

static bool stuck_at(struct worker *w, struct gang *g, struct warp *wp, const struct group *p) {
    const struct instr *in = &w->p->code[p->pc];
    w->cta = wp->cta;
    w->warp = wp;
    w->in = in;
    struct text t = fault_begin(w, SIM_NO_PROGRESS, (unsigned)__builtin_ctz(p->mask));
    text_say(&t, "waits for ever at '%.*s': ", STR_ARG(str_cut(in->src->text, 0, 120)));
    if (in->kind == KIND_SHUFFLE)
        text_say(&t, "a shuffle from absent lanes, which its mask names: ");
    text_say(&t, "other threads that it waits for %s", what_for(p));
    say_others(w, g, &t, p);
    return false;
}

static bool stuck_gang(struct worker *w, struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++)
            if (g->ctas[c].warps[i].nparked)
                return stuck_at(w, g, &g->ctas[c].warps[i], &g->ctas[c].warps[i].parked[0]);
    return true;
}

/* One that waits for memory now, or did when it last ran, or at least one that is still there. */
static struct warp *polling_warp(const struct worker *w, const struct gang *g) {
    struct warp *best = NULL;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            if (!wp->live)
                continue;
            if (wp->polling)
                return wp;
            if (!best || (!best->poll.address && wp->poll.address))
                best = wp;
        }
    return best;
}

static void say_memory(const struct worker *w, struct text *t, const struct warp *wp) {
    text_say(t, "waits for ever for memory to change");
    if (wp->poll.address) {
        text_say(t, " at ");
        fault_place(w, t, wp->poll.address);
    }
    text_say(t, ": nobody writes there any more");
}

/* What is missing until the phase of an mbarrier ends; false: it waits for something else. */
static bool say_phase(const struct worker *w, struct text *t, const struct warp *wp) {
    uint64_t at = wp->poll.address - w->la->m->windows, rank = at >> RANK_SHIFT, word;
    if (w->p->code[wp->poll.pc].kind != KIND_MBARRIER || rank > w->gang->n ||
        (at & RANK_OFFSETS) + 8 > w->la->shared_bytes)
        return false;
    const struct cta *c = rank ? &w->gang->ctas[rank - 1] : wp->cta;
    memcpy(&word, c->shared + (at & RANK_OFFSETS), 8);
    int32_t bytes = tile_mbarrier_tx(word);
    text_say(t,
             "waits for ever for the mbarrier at shared memory + %" PRIu64
             ": of this phase %u of %u arrivals are missing",
             at & RANK_OFFSETS, tile_mbarrier_pending(word), tile_mbarrier_expected(word));
    if (bytes > 0)
        text_say(t, " and %" PRIi32 " bytes of copies", bytes);
    if (bytes < 0)
        text_say(t, ", and copies brought %" PRIi32 " bytes more than it was told to expect",
                 -bytes);
    return true;
}

/* The gang cannot go on; says who waits for what, returns false */
static bool stuck_grid(struct worker *w, struct gang *first) {
    struct warp *wp = polling_warp(w, first);
    BUG_IF(!wp);
    uint64_t gangs = 0;
    for (const struct gang *g = first; g; g = g->next)
        gangs++;
    w->gang = first;
    w->cta = wp->cta;
    w->warp = wp;
    w->in = &w->p->code[wp->poll.pc];
    struct text t = fault_begin(w, SIM_NO_PROGRESS, wp->poll.lane);
    w->fault.address = wp->poll.address;
    if (!say_phase(w, &t, wp))
        say_memory(w, &t, wp);
    text_say(&t, "; %" PRIu64 " blocks wait like this", gangs * w->la->gang_ctas);
    uint64_t waiting = atomic_load(&w->la->next);
    if (waiting < w->la->gangs)
        text_say(&t,
                 ", %" PRIu64 " have not started because no block ends; do not wait for blocks "
                 "that may start later",
                 (w->la->gangs - waiting) * w->la->gang_ctas);
    return false;
}

#define SLICE    (1u << 16) /* instructions of a gang before others get their turn */
#define SM_WARPS 64u        /* that an SM has room for */
#define SM_UNIT  128u       /* bytes of shared memory that a block gets at a time */
#define SM_OWN   1024u      /* bytes of it that the system keeps */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

static uint32_t fixed_value(const struct launch *la, enum special s, unsigned lane) {
    const struct sim_launch *l = la->l;
    uint32_t bit = 1u << lane;
    switch (s) {
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
        return l->block[s - SPECIAL_NTID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
        return l->grid[s - SPECIAL_NCTAID_X];
    case SPECIAL_NCLUSTERID_X:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z:
        return l->grid[s - SPECIAL_NCLUSTERID_X] / la->cluster[s - SPECIAL_NCLUSTERID_X];
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z:
        return la->cluster[s - SPECIAL_CLUSTER_NCTAID_X];
    case SPECIAL_CLUSTER_NCTARANK:
        return la->gang_ctas;
    case SPECIAL_EXPLICIT_CLUSTER:
        return la->gang_ctas > 1 || l->cluster[0] ? ~0u : 0;
    case SPECIAL_WORKSPACE_HIGH:
        return (uint32_t)(la->workspace >> 32);
    case SPECIAL_WORKSPACE_LOW:
        return (uint32_t)la->workspace;
    case SPECIAL_NSMID:
        return l->sms ? l->sms : DEFAULT_SMS;
    case SPECIAL_GRIDID:
        return (uint32_t)l->number;
    case SPECIAL_LANEID:
        return lane;
    case SPECIAL_NWARPID:
        return SM_WARPS;
    case SPECIAL_LANEMASK_EQ:
        return bit;
    case SPECIAL_LANEMASK_LT:
        return bit - 1;
    case SPECIAL_LANEMASK_LE:
        return bit | (bit - 1);
    case SPECIAL_LANEMASK_GT:
        return ~(bit | (bit - 1));
    case SPECIAL_LANEMASK_GE:
        return ~(bit - 1);
    case SPECIAL_DYNAMIC_SHARED:
        return (uint32_t)l->dynamic_shared;
    case SPECIAL_TOTAL_SHARED:
        return (uint32_t)((la->shared_bytes + SM_UNIT - 1) / SM_UNIT * SM_UNIT);
    case SPECIAL_AGGREGATE_SHARED:
        return (uint32_t)((la->shared_bytes + SM_UNIT - 1) / SM_UNIT * SM_UNIT) + SM_OWN;
    default:
        return 0; /* the block's and the warp's own: fill_special */
    }
}

static void fill_lanes(uint8_t *at, uint64_t bits, size_t bytes) {
    for (unsigned k = 0; k < SIM_LANES; k++)
        memcpy(at + k * bytes, &bits, bytes);
}

static uint64_t param_bits(const struct launch *la, const struct param_use *u) {
    uint64_t v = 0;
    memcpy(&v, (const uint8_t *)la->l->params + u->offset, u->width);
    if (u->sign && v >> (8 * u->width - 1) & 1)
        v |= u->width < 8 ? ~UINT64_C(0) << 8 * u->width : 0;
    return u->reg_bytes == 2 ? v & 0xffff : v;
}

/* What no instruction writes: constants, parameters, special registers of the launch. */
static void fill_file(const struct launch *la, uint8_t *regs) {
    const struct sim_program *p = la->p;
    for (size_t i = 0; i < p->nconstants; i++) {
        const struct constant *c = &p->constants[i];
        uint64_t window = c->window ? la->m->windows + c->bits : c->bits;
        fill_lanes(regs + c->at, c->window < 0 ? 0 - window : window, c->bytes);
    }
    for (size_t i = 0; i < p->nparams; i++)
        fill_lanes(regs + p->params[i].at, param_bits(la, &p->params[i]),
                   p->params[i].reg_bytes == 8 ? 8 : 4);
    for (size_t i = 0; i < p->nspecials; i++)
        for (unsigned k = 0; k < SIM_LANES; k++)
            if (p->specials[i].wide)
                ((u64_lane *)(regs + p->specials[i].at))[k] =
                    fixed_value(la, p->specials[i].what, k);
            else
                ((u32_lane *)(regs + p->specials[i].at))[k] =
                    fixed_value(la, p->specials[i].what, k);
}

static void cta_init(const struct launch *la, struct gang *g, struct cta *c, uint32_t rank) {
    size_t files = la->together ? la->nwarps : 1;
    c->gang = g;
    c->rank = rank;
    c->regs = mem_alloc(files * la->p->register_bytes);
    c->shared = mem_alloc(la->shared_bytes + 1);
    c->local = mem_alloc(la->p->local_bytes * SIM_LANES * files + 1);
    c->warps = mem_alloc(la->nwarps * sizeof *c->warps);
    c->warpgroups = mem_alloc((la->nwarps / 4 + 1) * sizeof *c->warpgroups);
    for (uint32_t k = 0; la->l->covered && k < la->nwarps; k++)
        c->warps[k].passes = mem_alloc((la->p->nloops + 1) * sizeof *c->warps[k].passes);
    for (size_t f = 0; f < files; f++)
        fill_file(la, c->regs + f * la->p->register_bytes);
}

/* About what one takes. */
static uint64_t gang_bytes(const struct launch *la) {
    uint64_t files = la->together ? la->nwarps : 1, slots = la->gang_ctas * la->slots;
    uint64_t cta = files * (la->p->register_bytes + SIM_LANES * la->p->local_bytes) +
                   la->shared_bytes + la->nwarps * sizeof(struct warp);
    if (la->l->checks) /* clocks, and about what the cells of shared memory take at 4 bytes each */
        cta += 12 * la->shared_bytes + files * SIM_LANES * la->p->local_bytes;
    return la->gang_ctas * cta + (la->l->checks ? 4 * slots * slots : 0);
}

static struct gang *gang_new(struct worker *w) {
    const struct launch *la = w->la;
    struct gang *g = mem_alloc(sizeof *g);
    g->n = la->gang_ctas;
    g->ctas = mem_alloc(g->n * sizeof *g->ctas);
    for (uint32_t i = 0; i < g->n; i++)
        cta_init(la, g, &g->ctas[i], i);
    if (la->check)
        g->check = check_gang_new(la, g->n);
    return g;
}

static void gang_free(const struct launch *la, struct gang *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        struct cta *c = &g->ctas[i];
        for (uint32_t k = 0; k < la->nwarps; k++) {
            mem_free(c->warps[k].copies);
            mem_free(c->warps[k].passes);
        }
        for (uint32_t k = 0; k < la->nwarps / 4 + 1; k++)
            warpgroup_release(&c->warpgroups[k]);
        mem_free(c->regs);
        mem_free(c->shared);
        mem_free(c->local);
        mem_free(c->warps);
        mem_free(c->warpgroups);
    }
    check_gang_free(la, g->check, g->n);
    timing_drop(g); /* of one that a fault ended */
    bulk_clear(g);
    mem_free(g->bulks);
    mem_free(g->ctas);
    mem_free(g);
}

/* That the block runs on. */
static uint32_t gang_sm(const struct launch *la, const struct cta *c) {
    uint64_t sms = la->l->sms ? la->l->sms : DEFAULT_SMS;
    uint64_t number = c->gang->ordinal * la->gang_ctas + c->rank;
    return (uint32_t)((la->sm_first + number % sms * la->sm_step) % sms);
}

/* The slot of an SM that a warp has: the block's first ones, or wherever others left room. */
static uint32_t warp_slot(const struct launch *la, const struct warp *wp) {
    uint32_t room = (SM_WARPS - la->nwarps) / 4 + 1;
    uint64_t number = wp->cta->gang->ordinal * la->gang_ctas + wp->cta->rank;
    uint64_t drawn = (number + la->l->noise) * UINT64_C(0x9e3779b97f4a7c15) >> 33;
    return wp->index + (la->l->noise ? 4 * (uint32_t)(drawn % room) : 0);
}

static uint32_t cta_value(const struct launch *la, const struct cta *c, enum special s) {
    uint32_t in[3] = {c->rank % la->cluster[0], c->rank / la->cluster[0] % la->cluster[1],
                      c->rank / la->cluster[0] / la->cluster[1]};
    if (s >= SPECIAL_CTAID_X && s <= SPECIAL_CTAID_Z)
        return c->id[s - SPECIAL_CTAID_X];
    if (s >= SPECIAL_CLUSTERID_X && s <= SPECIAL_CLUSTERID_Z)
        return (uint32_t)c->gang->clusters[s - SPECIAL_CLUSTERID_X];
    if (s >= SPECIAL_CLUSTER_CTAID_X && s <= SPECIAL_CLUSTER_CTAID_Z)
        return in[s - SPECIAL_CLUSTER_CTAID_X];
    if (s == SPECIAL_CLUSTER_CTARANK)
        return c->rank;
    return gang_sm(la, c);
}

static bool is_cta_value(enum special s) {
    return (s >= SPECIAL_CTAID_X && s <= SPECIAL_CTAID_Z) ||
           (s >= SPECIAL_CLUSTERID_X && s <= SPECIAL_CLUSTERID_Z) ||
           (s >= SPECIAL_CLUSTER_CTAID_X && s <= SPECIAL_CLUSTER_CTAID_Z) ||
           s == SPECIAL_CLUSTER_CTARANK || s == SPECIAL_SMID;
}

static void fill_special(const struct launch *la, const struct warp *wp, struct special_use u) {
    u32_lane *to = (u32_lane *)(wp->regs + u.at);
    if (u.what <= SPECIAL_TID_Z)
        memcpy(to, la->tid[u.what - SPECIAL_TID_X] + wp->index * SIM_LANES, 4 * SIM_LANES);
    else if (is_cta_value(u.what) || u.what == SPECIAL_WARPID)
        fill_lanes((uint8_t *)to,
                   u.what == SPECIAL_WARPID ? warp_slot(la, wp) : cta_value(la, wp->cta, u.what),
                   4);
}

/* A register that nothing wrote, with bits that one of its kind can hold. */
static void fill_unset(const struct launch *la, uint8_t *reg, char shape, uint64_t salt) {
    u32_lane *lane = (u32_lane *)reg;
    noise_fill(la, reg, 4 * SIM_LANES, salt);
    for (unsigned i = 0; i < SIM_LANES && (shape == 'p' || shape == 'h'); i++)
        lane[i] = shape == 'h' ? lane[i] & 0xffff : 0 - (lane[i] >> 7 & 1);
}

static uint64_t cta_number(const struct launch *la, const struct cta *c) {
    return c->gang->ordinal * la->gang_ctas + c->rank;
}

static void warp_start(const struct launch *la, struct cta *c, uint32_t index) {
    const struct sim_program *p = la->p;
    uint32_t left = la->threads - index * SIM_LANES;
    uint32_t lanes = left >= SIM_LANES ? FULL : (1u << left) - 1;
    uint32_t file = la->together ? index : 0;
    struct warp *wp = &c->warps[index];
    wp->regs = c->regs + (size_t)file * p->register_bytes;
    wp->local = c->local + file * p->local_bytes * SIM_LANES;
    wp->cta = c;
    wp->code = p->code;
    wp->index = index;
    wp->live = lanes;
    wp->behind = wp->parted = 0;
    wp->run = (struct group){.mask = lanes};
    wp->nparked = 0;
    wp->meet = wp->until = UINT32_MAX;
    wp->pass = wp->rotated = wp->polling = false;
    wp->slices = 0;
    wp->cluster_arrived = wp->cluster_passed = 0;
    wp->poll = (struct poll){0};
    wp->ncopies = 0;
    wp->give_up = false;
    wp->came_back = 0;
    wp->lag = 0;
    wp->waited = 0;
    memset(wp->copy_commits, 0, sizeof wp->copy_commits);
    memset(wp->bulk_commits, 0, sizeof wp->bulk_commits);
    uint64_t salt = (cta_number(la, c) * la->nwarps + index)
                    << 24; /* what nothing wrote is noise */
    noise_fill(la, wp->local, p->local_bytes * SIM_LANES, salt);
    for (size_t i = 0; i < p->nunset; i++)
        fill_unset(la, wp->regs + p->unset[i].at, p->unset[i].shape, salt + i + 1);
    for (size_t i = 0; i < p->nspecials; i++)
        fill_special(la, wp, p->specials[i]);
}

static void cta_start(const struct launch *la, struct cta *c) {
    const struct gang *g = c->gang;
    const uint32_t *n = la->cluster;
    const uint32_t in[3] = {c->rank % n[0], c->rank / n[0] % n[1], c->rank / n[0] / n[1]};
    for (int i = 0; i < 3; i++)
        c->id[i] = (uint32_t)g->clusters[i] * n[i] + in[i];
    memset(c->bars, 0, sizeof c->bars);
    warpgroup_start(la, c);
    noise_fill(la, c->shared, la->shared_bytes, ~cta_number(la, c));
    for (uint32_t i = 0; la->together && i < la->nwarps; i++)
        warp_start(la, c, i);
}

/* A gang's memory and warps */
static void gang_start(struct worker *w, struct gang *g, uint64_t ordinal, uint64_t index) {
    const struct launch *la = w->la;
    const uint64_t x = la->l->grid[0] / la->cluster[0], y = la->l->grid[1] / la->cluster[1];
    g->ordinal = ordinal;
    g->used = g->sectors = 0;
    bulk_clear(g);
    g->clusters[0] = index % x;
    g->clusters[1] = index / x % y;
    g->clusters[2] = index / x / y;
    g->time = timing_begin(la, g);
    draw_start(la, g);
    for (uint32_t i = 0; i < g->n; i++)
        cta_start(la, &g->ctas[i]);
    if (la->check)
        check_gang_start(w, g);
}

static enum gang_end run_apart(struct worker *w, struct cta *c) {
    w->cta = c;
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        enum warp_end end;
        warp_start(w->la, c, i);
        do
            end = warp_run(w, &c->warps[i]);
        while (end == WARP_PAUSED || end == WARP_POLLS);
        if (end == WARP_FAILED || (end == WARP_BLOCKED && !stuck_gang(w, c->gang)))
            return GANG_FAILED;
    }
    return GANG_DONE;
}

struct turn { /* what a round over the warps came to */
    bool ran, moved, failed;
};

static void run_warp(struct worker *w, struct warp *wp, struct turn *t) {
    if (!wp->run.mask && !warp_pick(wp))
        return;
    t->ran = true;
    enum warp_end end = warp_run(w, wp);
    wp->polling = end == WARP_POLLS;
    t->failed = end == WARP_FAILED;
    /* A turn that ends in the midst of a loop that waits is one of waiting. */
    bool waits = w->gang->drawn && end != WARP_DONE && wp->waited == w->progress + 1;
    if (wp->polling)
        wp->waited = w->progress + 1;
    t->moved |= !wp->polling && !waits;
    if (end == WARP_DONE || end == WARP_BLOCKED)
        wp->run.mask = 0;
}

static struct turn run_round(struct worker *w, struct gang *g) {
    struct turn t = {0};
    for (uint32_t c = 0; c < g->n; c++) {
        w->cta = &g->ctas[c];
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            run_warp(w, &w->cta->warps[i], &t);
            if (t.failed)
                return t;
        }
    }
    return t;
}

/* The same in an order that is drawn, with turns that are. Warps lag behind others for a while,
 * unless `all` have to have their turn. */
static struct turn run_drawn(struct worker *w, struct gang *g, bool all) {
    struct turn t = {0};
    uint32_t n = g->n * w->la->nwarps, first = (uint32_t)draw_below(g, n);
    bool down = draw_below(g, 2), quiet = draw_below(g, 4) == 0;
    for (uint32_t k = 0; k < n && !t.failed; k++) {
        uint32_t at = (first + (down ? n - k : k)) % n;
        w->cta = &g->ctas[at / w->la->nwarps];
        w->warp = &w->cta->warps[at % w->la->nwarps];
        if (!draw_below(g, 16))
            w->warp->lag = (uint8_t)(draw_below(g, 4) * draw_below(g, 8));
        if (!all && w->warp->lag && draw_below(g, w->warp->lag))
            continue;
        if (!worker_settle(w) && !warp_over_budget(w)) {
            t.failed = true;
            return t;
        }
        w->fuel = w->allowed = draw_turn(g);
        run_warp(w, w->warp, &t);
        t.failed = t.failed || (!quiet && !draw_events(w, g));
    }
    return t;
}

static bool all_done(const struct launch *la, const struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < la->nwarps; i++)
            if (g->ctas[c].warps[i].live)
                return false;
    return true;
}

/* What is under way ends when the gang can do nothing else: as late as can be. */
static bool advance(struct worker *w, struct gang *g) {
    bool any = w->p->uses_async && (copy_advance(w, g) || bulk_advance(w, g));
    w->progress += any;
    return any;
}

static bool release(struct worker *w, struct gang *g, bool some) {
    bool any = barrier_release(w, g);
    any |= phase_release(w, g, some);
    w->progress += any;
    return any;
}

static enum gang_end finish(struct worker *w, struct gang *g) {
    if (w->la->check)
        check_gang_end(w, g);
    while (w->status == SIM_OK && advance(w, g))
        continue;
    if (w->la->check && w->status == SIM_OK)
        check_gang_gone(w, g);
    return w->status == SIM_OK ? GANG_DONE : GANG_FAILED;
}

enum gang_end gang_step(struct worker *w, struct gang *g) {
    w->gang = g;
    if (!w->la->together)
        return run_apart(w, &g->ctas[0]);
    uint64_t start = grid_clock(w), slice = g->drawn ? draw_below(g, SLICE / 16) : SLICE;
    for (bool all = false;;) {
        struct turn t = g->drawn ? run_drawn(w, g, all) : run_round(w, g);
        if (t.failed)
            return GANG_FAILED;
        if (release(w, g, !all))
            continue;
        if (all_done(w->la, g))
            return finish(w, g);
        if (g->drawn && !t.moved && !all) { /* was there nothing to do, or nobody asked? */
            all = true;
            continue;
        }
        all = all && !t.moved;
        if (!t.moved && advance(w, g))
            continue;
        if (w->status != SIM_OK)
            return GANG_FAILED;
        if (!t.moved && phase_give_up(w, g))
            return GANG_POLLS;
        if (!t.ran)
            return stuck_gang(w, g) ? GANG_DONE : GANG_FAILED;
        if (!t.moved)
            return GANG_POLLS;
        if (grid_clock(w) - start > slice || g->gives_way) {
            g->gives_way = false;
            return GANG_BUSY;
        }
    }
}

/* ---- which gang runs when ----
 *
 * Blocks that know nothing of each other run to their end, one after the other, on any number of
 * threads. Blocks that see each other's work (atomics, fences, flags) run on one thread, so that
 * results do not depend on how many there are: each until it waits for memory to change or has had
 * its share, then the next one starts; rounds over those that have started, until they end. A
 * cooperative launch is this with room for all blocks.
 *
 * Nobody progresses when for many rounds every block that started waits for memory and none has
 * written any. */

#define DEFAULT_RESIDENT 2048u
#define IDLE_ROUNDS      16u
#define IDLE_DRAWN       1024u /* where the order is drawn */
#define IDLE_INSTRS      (UINT64_C(1) << 20)
#define NEAREST          UINT64_C(16) /* power of two between gangs of a sample, of so many: */
#define POWERS           13

uint64_t grid_clock(const struct worker *w) {
    return w->gang->used + (w->allowed - w->fuel);
}

/* ---- which gangs run, of more than there is time for ---- */

/* The k-th: spread evenly, the last one among them, or drawn from a part of the grid each. */
static uint64_t sample_apart(const struct launch *la, uint64_t k) {
    uint64_t at = (uint64_t)((unsigned __int128)k * (la->gangs_total - 1) / (la->gangs - 1));
    if (!la->l->sample_key || k == 0 || k == la->gangs - 1)
        return at;
    /* Up to where the next one lies. */
    uint64_t room = (la->gangs_total - 1) / (la->gangs - 1);
    return at + rng_below(rng_stream(la->l->sample_key, S("sample")), k, room);
}

/* What blocks share they share with the next one, or with one that is a round number further on:
 * a row, a place in a ring, a flag. */
static uint64_t neighbour(const struct launch *la, uint64_t k, uint64_t of) {
    struct rng r = rng_stream(la->l->sample_key, S("neighbours"));
    uint64_t far = NEAREST << rng_below(r, k, POWERS), left = la->gangs_total - 1 - of;
    while (far > left)
        far /= 2;
    return of + (k / 2 % 2 && far ? far : left > 0);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* No block may run twice: what it works on in place would be worked on again. */
static uint64_t keep_distinct(uint64_t *list, uint64_t n) {
    uint64_t kept = 0;
    qsort(list, n, sizeof *list, by_number);
    for (uint64_t i = 0; i < n; i++)
        if (!i || list[i] != list[i - 1])
            list[kept++] = list[i];
    return kept;
}

static uint64_t in_stretches(const struct launch *la, uint64_t k) {
    uint64_t part = la->gangs_total / (la->gangs / SIM_STRETCH), i = k / SIM_STRETCH;
    struct rng r = rng_stream(la->l->sample_key, S("stretches"));
    return i * part + rng_below(r, i, part - SIM_STRETCH + 1) + k % SIM_STRETCH;
}

/* Those that are asked for by their numbers, beside the ones that are on the list. */
static void add_named(struct launch *la) {
    for (size_t i = 0; i < la->l->nalso; i++)
        if (la->l->sample_also[i] < la->gangs_total)
            la->sampled[la->gangs++] = la->l->sample_also[i];
    la->gangs = keep_distinct(la->sampled, la->gangs);
}

/* The first and the last one are never named, so some are left. */
static void leave_named_out(struct launch *la) {
    uint64_t kept = 0;
    for (uint64_t k = 0; k < la->gangs; k++) {
        bool named = false;
        for (size_t i = 0; i < la->l->nalso && !named; i++)
            named = la->sampled[k] == la->l->sample_also[i];
        if (!named)
            la->sampled[kept++] = la->sampled[k];
    }
    la->gangs = kept;
}

/* Chooses the gangs that run. */
static void grid_sample(struct launch *la) {
    bool stretches = la->l->sample_draw == SIM_DRAW_STRETCHES;
    if (la->l->sample_draw == SIM_DRAW_NAMED && la->l->nalso && !la->p->ordered &&
        la->gang_ctas == 1 && la->gangs < la->gangs_total) {
        la->gangs = 0;
        la->sampled = mem_alloc(la->l->nalso * sizeof *la->sampled);
        add_named(la);
        return;
    }
    if (la->gangs == la->gangs_total || !la->l->sample_key || la->p->ordered ||
        la->l->sample_draw == SIM_DRAW_APART || la->gangs < (stretches ? SIM_STRETCH : 2))
        return;
    if (stretches)
        la->gangs -= la->gangs % SIM_STRETCH;
    uint64_t *list = mem_alloc((la->gangs + la->l->nalso) * sizeof *list);
    for (uint64_t k = 0; k < la->gangs; k++)
        list[k] = stretches                          ? in_stretches(la, k)
                  : k % 2 == 0 || k + 1 == la->gangs ? sample_apart(la, k)
                                                     : neighbour(la, k, list[k - 1]);
    la->sampled = list;
    la->gangs = keep_distinct(list, la->gangs);
    if (la->l->sample_without && la->gang_ctas == 1)
        leave_named_out(la);
    else if (!stretches && la->gang_ctas == 1)
        add_named(la);
}

/* The linear index of the k-th gang that runs. */
static uint64_t gang_index(const struct launch *la, uint64_t k) {
    if (la->shuffled)
        return la->shuffled[k];
    if (la->sampled)
        return la->sampled[k];
    if (la->gangs == la->gangs_total || la->gangs == 1 || la->p->ordered)
        return k;
    return sample_apart(la, k);
}

void grid_cta_id(const struct launch *la, uint64_t gang, uint32_t rank, uint32_t id[3]) {
    const uint32_t *n = la->cluster;
    const uint64_t index = gang_index(la, gang), x = la->l->grid[0] / n[0],
                   y = la->l->grid[1] / n[1];
    id[0] = (uint32_t)(index % x) * n[0] + rank % n[0];
    id[1] = (uint32_t)(index / x % y) * n[1] + rank / n[0] % n[1];
    id[2] = (uint32_t)(index / x / y) * n[2] + rank / n[0] / n[1];
}

static void stop_from(struct launch *la, uint64_t ordinal) {
    uint64_t old = atomic_load(&la->stop_at);
    while (ordinal < old && !atomic_compare_exchange_weak(&la->stop_at, &old, ordinal))
        continue;
}

static struct gang *take(struct worker *w, uint64_t ordinal) {
    struct gang *g = w->spare;
    if (g)
        w->spare = g->next;
    else
        g = gang_new(w);
    g->next = NULL;
    gang_start(w, g, ordinal, gang_index(w->la, ordinal));
    return g;
}

static void put_back(struct worker *w, struct gang *g) {
    g->next = w->spare;
    w->spare = g;
}

/* One thread runs all gangs of a stretch. */
static bool stretch_goes_on(const struct launch *la, uint64_t ordinal) {
    return la->sampled && la->l->sample_draw == SIM_DRAW_STRETCHES &&
           (ordinal + 1) % SIM_STRETCH != 0;
}

static uint64_t sectors_so_far(const struct worker *w) {
    return w->c.load_sectors + w->c.store_sectors;
}

static void count_gang(struct worker *w, const struct gang *g) {
    uint64_t kib = (g->sectors * SECTOR + 1023) / 1024;
    w->c.gangs++;
    w->c.gang_kib += kib;
    w->c.gang_kib_squares += kib * kib;
}

/* What it ran is accounted for where it ran: a gang's clock is its own. */
static enum gang_end step(struct worker *w, struct gang *g) {
    uint64_t before = sectors_so_far(w);
    w->gang = g;
    enum gang_end end = gang_step(w, g);
    g->sectors += sectors_so_far(w) - before;
    bool over = end != GANG_FAILED && !worker_settle(w);
    if (over && !warp_over_budget(w))
        return GANG_FAILED;
    if (end == GANG_DONE) {
        w->c.ctas += g->n;
        w->c.warps += (uint64_t)g->n * w->la->nwarps;
        count_gang(w, g);
        w->progress++;
        if (g->time)
            timing_end(w, g);
        if (w->stores && !stretch_goes_on(w->la, g->ordinal))
            stores_gang_done(w);
    }
    return end;
}

struct rounds {
    struct gang *first, **last; /* resident, in the order they started */
    uint64_t resident, most;
    uint64_t progress;    /* when last looked at */
    uint64_t idle, since; /* rounds without any; instructions at the first of them */
};

static bool progresses(struct worker *w, struct rounds *r, bool busy, uint64_t used) {
    if (busy || w->progress != r->progress) {
        r->progress = w->progress;
        r->idle = 0;
        r->since = used;
        return true;
    }
    if (w->la->l->order) /* rounds are long there, and every warp had its turn in them */
        return ++r->idle < IDLE_DRAWN;
    return ++r->idle < IDLE_ROUNDS || used - r->since < IDLE_INSTRS;
}

/* Nobody but the gang itself can change what it waits for. */
static enum gang_end run_alone(struct worker *w, struct gang *g) {
    struct rounds r = {.first = g, .progress = w->progress, .since = g->used};
    for (;;) {
        enum gang_end e = step(w, g);
        if (e != GANG_POLLS && e != GANG_BUSY)
            return e;
        if (!progresses(w, &r, e == GANG_BUSY, g->used)) {
            stuck_grid(w, g);
            return GANG_FAILED;
        }
    }
}

static void work_apart(struct worker *w) {
    struct launch *la = w->la;
    for (;;) {
        uint64_t first = atomic_fetch_add(&la->next, la->chunk);
        if (first >= la->gangs)
            return;
        uint64_t end = first + la->chunk < la->gangs ? first + la->chunk : la->gangs;
        for (uint64_t k = first; k < end && k < atomic_load(&la->stop_at); k++) {
            struct gang *g = take(w, k);
            enum gang_end e = run_alone(w, g);
            put_back(w, g);
            if (e == GANG_FAILED) {
                stop_from(la, k);
                return;
            }
        }
    }
}

/* One gang's turn. `*at` is the link to it, moved on to the next one. False: a fault. */
static bool take_turn(struct worker *w, struct rounds *r, struct gang ***at, bool *busy) {
    struct gang *g = **at;
    enum gang_end e = step(w, g);
    if (e == GANG_FAILED)
        return false;
    *busy |= e == GANG_BUSY;
    if (e != GANG_DONE) {
        *at = &g->next;
        return true;
    }
    **at = g->next;
    if (r->last == &g->next)
        r->last = *at;
    r->resident--;
    put_back(w, g);
    return true;
}

/* Earlier gangs wait perhaps for those that have not started: a few more start each round, the more
 * wait already. One that ends at once makes room for the next without a round. */
static bool admit(struct worker *w, struct rounds *r) {
    struct launch *la = w->la;
    uint64_t new = 1 + r->resident / 8, started = 0;
    while (r->resident < r->most && started < new &&atomic_load(&la->next) < la->gangs) {
        struct gang *g = take(w, atomic_fetch_add(&la->next, 1)), **at = r->last;
        uint64_t before = r->resident;
        bool busy = false;
        *r->last = g;
        r->last = &g->next;
        r->resident++;
        if (!take_turn(w, r, &at, &busy))
            return false;
        started += r->resident > before;
    }
    return true;
}

/* Gangs that can wait for each other. */
static uint64_t grid_resident(const struct launch *la) {
    uint64_t asked = la->l->resident_ctas ? la->l->resident_ctas : DEFAULT_RESIDENT;
    uint64_t room = MAX_RESIDENT_BYTES / gang_bytes(la), n = asked / la->gang_ctas;
    if (la->l->cooperative)
        return la->gangs; /* sim_run has looked at the room */
    n = n < room ? n : room;
    return n ? n : 1;
}

static void work_in_turns(struct worker *w) {
    struct launch *la = w->la;
    struct rounds r = {.last = &r.first, .most = grid_resident(la)};
    bool ok = true;
    do {
        bool busy = false;
        uint64_t before = atomic_load(&la->next);
        ok = admit(w, &r);
        for (struct gang **at = &r.first; ok && *at;)
            if ((*at)->drawn && (*at)->next && draw_below(*at, 2))
                at = &(*at)->next;
            else
                ok = take_turn(w, &r, &at, &busy);
        busy |= atomic_load(&la->next) != before;
        if (ok && r.first && !progresses(w, &r, busy, atomic_load(&la->used)))
            ok = stuck_grid(w, r.first);
    } while (ok && (r.first || atomic_load(&la->next) < la->gangs));
    while (r.first) {
        struct gang *g = r.first;
        r.first = g->next;
        put_back(w, g);
    }
}

/* Processor time of the calling thread. */
static uint64_t thread_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void *grid_work(void *worker) {
    struct worker *w = worker;
    w->begun_us = thread_us();
    if (w->p->ordered || w->la->l->cooperative)
        work_in_turns(w);
    else
        work_apart(w);
    return NULL;
}

/* ---- what every instruction counted, by line of the source ---- */

struct source { /* of an instruction */
    uint32_t file, line, pc;
};

static int compare(const void *x, const void *y) {
    const struct source *a = x, *b = y;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->pc > b->pc) - (a->pc < b->pc);
}

static void add(struct sim_line *to, const struct worker *w, size_t pc) {
    const struct instr *in = &w->p->code[pc];
    const struct traffic *t = &w->traffic[pc];
    if (in->counted) {
        to->warp_instrs += w->warp_counts[pc];
        to->lane_instrs += w->lane_counts[pc];
    }
    *(in->class == CLASS_TENSOR ? &to->tensor_flops : &to->flops) += w->lane_counts[pc] * in->flops;
    to->divergent_branches += t->divergent;
    to->requests += t->requests;
    to->sectors += t->sectors;
    to->bytes += t->bytes;
    to->shared_requests += t->shared_requests;
    to->shared_wavefronts += t->shared_wavefronts;
    to->shared_conflicts += t->shared_conflicts;
}

double sim_line_clocks(const struct sim_line *l) {
    return (double)l->warp_instrs / 4 + (double)l->shared_wavefronts + (double)l->sectors / 2 +
           (double)l->tensor_flops / 2048;
}

static void lines_collect(const struct launch *la, struct worker *const *workers, unsigned n,
                          struct sim_result *out) {
    const struct sim_program *p = la->p;
    struct source *order = mem_alloc((p->ncode + 1) * sizeof *order);
    struct sim_line *lines = arena_array(la->l->lines, struct sim_line, p->ncode + 1);
    for (size_t k = 0; k < p->ncode; k++) {
        const struct ptx_instr *src = p->code[k].src;
        order[k] = (struct source){src->src_line ? src->src_file : 0, src->src_line, (uint32_t)k};
    }
    qsort(order, p->ncode, sizeof *order, compare);
    out->nlines = 0;
    for (size_t k = 0; k < p->ncode; k++) {
        bool new =
            k == 0 || order[k].file != order[k - 1].file || order[k].line != order[k - 1].line;
        if (new) {
            str file = program_file(p->module, p->code[order[k].pc].src);
            lines[out->nlines++] =
                (struct sim_line){.file = order[k].line ? arena_str(la->l->lines, file) : S(""),
                                  .line = order[k].line};
        }
        for (unsigned i = 0; i < n; i++)
            add(&lines[out->nlines - 1], workers[i], order[k].pc);
    }
    out->lines = lines;
    mem_free(order);
}

#define MAX_THREADS     64u
#define MAX_GRID_X      INT32_MAX
#define MAX_GRID_YZ     65535u
#define MAX_BLOCK       1024u
#define MAX_BLOCK_Z     64u
#define MAX_COOPERATIVE 16384u /* more than any GPU holds: its own limit is eval/trials.h's */

static bool bad_launch(struct sim_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool bad_launch(struct sim_result *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->fault.text, sizeof r->fault.text, fmt, ap);
    va_end(ap);
    r->status = SIM_BAD_LAUNCH;
    return false;
}

static bool check_shape(const struct sim_launch *l, struct sim_result *r) {
    const uint32_t *g = l->grid, *b = l->block;
    if (!g[0] || !g[1] || !g[2] || !b[0] || !b[1] || !b[2])
        return bad_launch(r, "grid (%u,%u,%u) or block (%u,%u,%u) has a zero", g[0], g[1], g[2],
                          b[0], b[1], b[2]);
    if (g[0] > MAX_GRID_X || g[1] > MAX_GRID_YZ || g[2] > MAX_GRID_YZ)
        return bad_launch(r, "grid (%u,%u,%u) is over the limits of 2147483647, 65535, 65535", g[0],
                          g[1], g[2]);
    uint64_t threads =
        (uint64_t)b[0] * b[1] > MAX_BLOCK ? UINT64_MAX : (uint64_t)b[0] * b[1] * b[2];
    if (b[0] > MAX_BLOCK || b[1] > MAX_BLOCK || b[2] > MAX_BLOCK_Z || threads > MAX_BLOCK)
        return bad_launch(r, "block (%u,%u,%u) is over the limit of %u threads (z: %u)", b[0], b[1],
                          b[2], MAX_BLOCK, MAX_BLOCK_Z);
    return true;
}

static bool check_entry(const struct sim_launch *l, struct sim_result *r) {
    const struct sim_program *p = l->program;
    const struct ptx_entry *e = p->entry;
    const uint32_t *b = l->block;
    uint64_t most = (uint64_t)e->maxntid[0] * e->maxntid[1] * e->maxntid[2];
    if (most && (uint64_t)b[0] * b[1] * b[2] > most)
        return bad_launch(r,
                          "block (%u,%u,%u) has more threads than kernel %.*s allows (%" PRIu64
                          ", from __launch_bounds__)",
                          b[0], b[1], b[2], STR_ARG(e->name), most);
    if (e->reqntid[0] && (b[0] != e->reqntid[0] || b[1] != e->reqntid[1] || b[2] != e->reqntid[2]))
        return bad_launch(r, "block (%u,%u,%u) is not the (%u,%u,%u) kernel %.*s requires", b[0],
                          b[1], b[2], e->reqntid[0], e->reqntid[1], e->reqntid[2],
                          STR_ARG(e->name));
    if (l->dynamic_shared > SIM_MAX_SHARED || p->static_shared > SIM_MAX_SHARED - l->dynamic_shared)
        return bad_launch(r, "%zu + %zu bytes of shared memory are over the limit of %u",
                          p->static_shared, l->dynamic_shared, SIM_MAX_SHARED);
    if (l->params_size != p->params_bytes)
        return bad_launch(r, "%zu bytes of parameters were given, kernel %.*s takes %zu",
                          l->params_size, STR_ARG(e->name), p->params_bytes);
    return true;
}

/* The blocks of a cluster, by the launch, by the kernel, or one. */
static void cluster_of(const struct sim_launch *l, uint32_t out[3]) {
    const uint32_t *given = l->cluster[0] ? l->cluster : l->program->entry->cluster;
    for (int i = 0; i < 3; i++)
        out[i] = given[i] ? given[i] : 1;
}

static bool check_cluster(const struct sim_launch *l, struct sim_result *r) {
    const uint32_t *fixed = l->program->entry->cluster;
    uint32_t c[3];
    cluster_of(l, c);
    for (int i = 0; i < 3; i++) {
        if (fixed[i] && c[i] != fixed[i])
            return bad_launch(r,
                              "a cluster of (%u,%u,%u) blocks is not the (%u,%u,%u) kernel %.*s "
                              "requires",
                              c[0], c[1], c[2], fixed[0], fixed[1], fixed[2],
                              STR_ARG(l->program->entry->name));
        if (c[i] > MAX_CLUSTER || l->grid[i] % c[i] != 0)
            return bad_launch(r,
                              "a grid of (%u,%u,%u) blocks cannot be divided into clusters of "
                              "(%u,%u,%u)",
                              l->grid[0], l->grid[1], l->grid[2], c[0], c[1], c[2]);
    }
    if (c[0] * c[1] * c[2] > MAX_CLUSTER)
        return bad_launch(r, "a cluster of (%u,%u,%u) has more than %u blocks", c[0], c[1], c[2],
                          MAX_CLUSTER);
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (l->cooperative && blocks > MAX_COOPERATIVE)
        return bad_launch(r,
                          "%" PRIu64 " blocks of a cooperative launch cannot all run at the same "
                          "time; the simulator has room for %u",
                          blocks, MAX_COOPERATIVE);
    return true;
}

/* When the launch is over its budget in some gang, lower ones still run, for they may find a fault
 * that comes first; each of them is then held to the whole budget alone. */
bool worker_settle(struct worker *w) {
    struct launch *la = w->la;
    uint64_t ran = w->allowed - w->fuel;
    uint64_t used = atomic_fetch_add(&la->used, ran) + ran;
    w->gang->used += ran;
    w->fuel = w->allowed = WORKER_FUEL;
    if (la->l->patience_us && thread_us() - w->begun_us > la->l->patience_us) {
        atomic_store(&la->late, true);
        return false;
    }
    if (used <= la->budget)
        return true;
    uint64_t stop = atomic_load(&la->stop_at);
    return stop != UINT64_MAX && w->gang->ordinal < stop && w->gang->used <= la->budget;
}

/* Aligned as its declaration asks. */
struct tile_scratch *worker_tiles(struct worker *w) {
    const uintptr_t align = _Alignof(struct tile_scratch);
    if (!w->tiles)
        w->tiles = mem_alloc(sizeof(struct tile_scratch) + align);
    return (struct tile_scratch *)(((uintptr_t)w->tiles + align - 1) & ~(align - 1));
}

static struct worker *worker_new(struct launch *la) {
    const struct sim_program *p = la->p;
    struct worker *w = mem_alloc(sizeof *w);
    *w = (struct worker){
        .la = la, .p = p, .fault_ordinal = UINT64_MAX, .fuel = WORKER_FUEL, .allowed = WORKER_FUEL};
    w->scratch = mem_alloc(16 * SIM_LANES);
    w->warp_counts = mem_alloc(p->ncode * sizeof *w->warp_counts);
    w->lane_counts = mem_alloc(p->ncode * sizeof *w->lane_counts);
    w->straight = mem_alloc((p->ncode + 1) * sizeof *w->straight);
    w->traffic = mem_alloc(p->ncode * sizeof *w->traffic);
    w->memos = mem_alloc(p->ncode * sizeof *w->memos);
    w->covered = la->l->covered ? mem_alloc(p->ncode) : NULL;
    w->misses =
        la->l->misses && la->gang_ctas == 1 ? mem_alloc(p->ncode * sizeof *w->misses) : NULL;
    if (!p->ordered && !la->l->cooperative)
        w->stores = stores_new(la);
    return w;
}

static void worker_free(struct worker *w) {
    while (w->spare) {
        struct gang *g = w->spare;
        w->spare = g->next;
        gang_free(w->la, g);
    }
    mem_free(w->scratch);
    mem_free(w->tiles);
    mem_free(w->warp_counts);
    mem_free(w->lane_counts);
    mem_free(w->straight);
    mem_free(w->traffic);
    for (size_t k = 0; k < w->p->ncode; k++)
        mem_free(w->memos[k]);
    mem_free(w->memos);
    mem_free(w->covered);
    mem_free(w->misses);
    stores_free(w->la, w->stores);
    mem_free(w);
}

/* Straight lines become counts of their instructions. */
static void unroll(struct worker *w) {
    int64_t warps = 0;
    for (size_t k = 0; k < w->p->ncode; k++) {
        warps += w->straight[k];
        w->warp_counts[k] += (uint64_t)warps;
        w->lane_counts[k] += (uint64_t)warps * SIM_LANES;
    }
}

static void add_counts(const struct worker *w, struct sim_counters *c) {
    for (size_t k = 0; k < w->p->ncode; k++) {
        uint64_t warps = w->warp_counts[k], lanes = w->lane_counts[k];
        /* Of a long program most does not run in a small launch: its code need not be read. */
        if (!warps && !w->memos[k])
            continue;
        const struct instr *in = &w->p->code[k];
        *(in->class == CLASS_TENSOR ? &c->tensor_flops : &c->flops) += lanes * in->flops;
        c->warp_waits += in->waits ? warps : 0;
        c->shared_requests += w->traffic[k].shared_requests;
        c->shared_wavefronts += w->traffic[k].shared_wavefronts;
        c->shared_conflicts += w->traffic[k].shared_conflicts;
        if (!in->counted)
            continue;
        c->warp_instrs += warps;
        c->lane_instrs += lanes;
        uint64_t *class = in->class == CLASS_FP32      ? &c->warp_fp32
                          : in->class == CLASS_FP64    ? &c->warp_fp64
                          : in->class == CLASS_INT     ? &c->warp_int
                          : in->class == CLASS_SPECIAL ? &c->warp_special
                          : in->class == CLASS_MEMORY  ? &c->warp_memory
                          : in->class == CLASS_TENSOR  ? &c->warp_tensor
                                                       : &c->warp_control;
        *class += warps;
    }
}

static void sim_counters_add(struct sim_counters *s, const struct sim_counters *c) {
    uint32_t load = c->widest_load > s->widest_load ? c->widest_load : s->widest_load;
    uint32_t store = c->widest_store > s->widest_store ? c->widest_store : s->widest_store;
#define COUNTER(type, name) s->name += c->name;
#include "sim/counters.def"
#undef COUNTER
    s->widest_load = load;
    s->widest_store = store;
}

static bool untouched(const struct mapped *b, size_t page) {
    return b->pages &&
           atomic_load_explicit(&b->pages[page], memory_order_relaxed) == PAGE_UNTOUCHED;
}

/* Of pages that nobody touched not even the bits are: of a large workspace they are many. */
static uint64_t count_bits(const _Atomic uint64_t *map, const struct mapped *b) {
    const size_t words = SIM_PAGE / SECTOR / 64, all = b->b.size / SECTOR / 64 + 1;
    uint64_t n = 0;
    for (size_t i = 0; i < all; i++) {
        if (untouched(b, i / words))
            continue;
        n += (uint64_t)__builtin_popcountll(atomic_load_explicit(&map[i], memory_order_relaxed));
    }
    return n;
}

/* Sixteenth parts of a buffer without a single one. */
static unsigned untouched_parts(const _Atomic uint64_t *map, size_t bytes) {
    const size_t parts = 16, words = bytes / SECTOR / 64;
    unsigned n = 0;
    for (size_t p = 0; p < parts; p++) {
        size_t i = words * p / parts, end = words * (p + 1) / parts;
        while (i < end && !atomic_load_explicit(&map[i], memory_order_relaxed))
            i++;
        n += i == end && end > words * p / parts;
    }
    return n;
}

static void touched_new(struct launch *la) {
    la->touched = mem_alloc((la->m->n + 1) * sizeof *la->touched);
    for (size_t i = 0; i < la->m->n; i++) {
        size_t bytes = (la->m->maps[i].b.size / SECTOR / 64 + 1) * sizeof(uint64_t);
        la->touched[i].loads = mem_alloc(bytes);
        la->touched[i].stores = mem_alloc(bytes);
    }
}

/* What the whole launch would touch: what the sample did, in proportion, but never more than there
 * is. Of blocks that share what they read this is too much until all of it is read. */
static uint64_t scaled(const struct sim_counters *c, uint64_t sectors, size_t bytes) {
    uint64_t all = bytes / SECTOR + 1;
    double whole = c->ctas ? (double)sectors * (double)c->ctas_total / (double)c->ctas : 0;
    return whole < (double)all ? (uint64_t)whole : all;
}

static void touched_free(struct launch *la, struct sim_counters *c, struct sim_stores *results) {
    for (size_t i = 0; i < la->m->n; i++) {
        size_t size = la->m->maps[i].b.size;
        uint64_t loads = count_bits(la->touched[i].loads, &la->m->maps[i]);
        uint64_t stores = count_bits(la->touched[i].stores, &la->m->maps[i]);
        if (la->m->maps[i].b.result) {
            results->distinct += (double)stores;
            results->untouched += untouched_parts(la->touched[i].stores, size);
        }
        c->touched_load_sectors += loads;
        c->touched_store_sectors += stores;
        c->footprint_load_sectors += scaled(c, loads, size);
        c->footprint_store_sectors += scaled(c, stores, size);
        mem_free((void *)la->touched[i].loads);
        mem_free((void *)la->touched[i].stores);
    }
    mem_free(la->touched);
}

static void add_up(struct worker **workers, unsigned n, struct sim_result *out) {
    uint64_t lowest = UINT64_MAX;
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = workers[i];
        unroll(w);
        out->drawn |= w->drawn;
        add_counts(w, &w->c);
        sim_counters_add(&out->counters, &w->c);
        for (size_t k = 0; w->covered && k < w->p->ncode; k++)
            w->la->l->covered[k] |= w->covered[k];
        if (w->misses)
            coverage_merge_misses(w->la->l->misses, w->misses, w->p->ncode);
        if (w->stores) {
            out->stores.gangs += w->stores->gangs;
            out->stores.storing += w->stores->storing;
            out->stores.sum += w->stores->sum;
            out->stores.squares += w->stores->squares;
        }
        if (w->status != SIM_OK && w->fault_ordinal < lowest) {
            lowest = w->fault_ordinal;
            out->status = w->status;
            out->fault = w->fault;
        }
    }
}

static uint64_t divisor(uint64_t a, uint64_t b) {
    return b ? divisor(b, a % b) : a;
}

/* What a GPU shows of itself: which SM has which block, and how long it has run. */
static void deal(struct launch *la) {
    struct rng r = rng_stream(la->l->noise, S("machine"));
    uint32_t sms = la->l->sms ? la->l->sms : DEFAULT_SMS;
    la->sm_step = 1;
    la->clock = 4000;
    if (!la->l->noise)
        return;
    la->sm_first = (uint32_t)rng_below(r, 0, sms);
    la->sm_step = 1 + (uint32_t)rng_below(r, 1, sms);
    while (divisor(la->sm_step, sms) != 1)
        la->sm_step++;
    la->clock = (UINT64_C(1) << 40) + rng_below(r, 2, UINT64_C(1) << 48);
}

static void launch_init(struct launch *la, struct sim_machine *m, const struct sim_launch *l) {
    *la = (struct launch){.l = l, .p = l->program, .m = m};
    cluster_of(l, la->cluster);
    la->gang_ctas = la->cluster[0] * la->cluster[1] * la->cluster[2];
    la->gangs_total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / la->gang_ctas;
    uint64_t sample = (l->sample_ctas + la->gang_ctas - 1) / la->gang_ctas;
    la->gangs = sample && sample < la->gangs_total && !l->cooperative ? sample : la->gangs_total;
    grid_sample(la);
    la->together = l->program->meets || la->gang_ctas > 1 || l->cooperative || l->checks ||
                   l->clocks || l->order;
    la->threads = l->block[0] * l->block[1] * l->block[2];
    la->nwarps = (la->threads + SIM_LANES - 1) / SIM_LANES;
    la->slots = la->nwarps + 1 + (l->program->uses_wgmma ? (la->nwarps + 3) / 4 : 0);
    la->shared_bytes = l->program->static_shared + l->dynamic_shared;
    for (int d = 0; d < 3; d++)
        la->tid[d] = mem_alloc(la->nwarps * SIM_LANES * sizeof *la->tid[d]);
    for (uint32_t t = 0; t < la->nwarps * SIM_LANES; t++) {
        la->tid[0][t] = t % l->block[0];
        la->tid[1][t] = t / l->block[0] % l->block[1];
        la->tid[2][t] = t / l->block[0] / l->block[1];
    }
    uint64_t ctas = la->gangs * la->gang_ctas;
    uint64_t warps = ctas > UINT32_MAX ? UINT32_MAX : ctas * la->nwarps;
    la->budget = l->max_warp_instrs ? l->max_warp_instrs : (UINT64_C(1) << 28) + (warps << 20);
    la->noise = noise_new(l->noise);
    deal(la);
    atomic_init(&la->used, 0);
    atomic_init(&la->late, false);
    atomic_init(&la->stop_at, UINT64_MAX);
    atomic_init(&la->next, 0);
}

static void launch_release(struct launch *la) {
    mem_free(la->noise);
    mem_free(la->shuffled);
    mem_free(la->sampled);
    for (int d = 0; d < 3; d++)
        mem_free(la->tid[d]);
}

/* The driver gives a cooperative grid some memory, in which its threads find their barrier. Here it
 * is the machine's last buffer while the launch runs. */
static void workspace_add(struct launch *la) {
    const struct sim_buffer b = {
        .name = S("the grid's barrier"), .host = la->counts, .size = sizeof la->counts};
    if (la->l->cooperative)
        la->workspace = sim_machine_add(la->m, &b);
}

static void workspace_remove(struct launch *la) {
    if (!la->workspace)
        return;
    la->m->n--;
    la->m->next = la->workspace;
}

static unsigned thread_count(const struct launch *la) {
    const struct sim_launch *l = la->l;
    if (l->program->ordered || l->cooperative || l->checks)
        return 1;
    unsigned n = l->threads < 1 ? 1 : l->threads > MAX_THREADS ? MAX_THREADS : l->threads;
    return n > la->gangs ? (unsigned)la->gangs : n;
}

void sim_run(struct sim_machine *m, const struct sim_launch *l, struct sim_result *out) {
    *out = (struct sim_result){.status = SIM_OK};
    if (!check_shape(l, out) || !check_entry(l, out) || !check_cluster(l, out))
        return;
    struct launch la;
    launch_init(&la, m, l);
    if (l->cooperative && la.gangs > MAX_RESIDENT_BYTES / gang_bytes(&la)) {
        bad_launch(out,
                   "%" PRIu64 " blocks of a cooperative launch need more memory than the "
                   "simulator gives them",
                   la.gangs * la.gang_ctas);
        launch_release(&la);
        return;
    }
    unsigned n = thread_count(&la);
    la.shuffled = n == 1 ? draw_shuffle(&la) : NULL;
    la.chunk = la.sampled ? SIM_STRETCH : la.gangs / n / 16 + 1;
    la.alone = n == 1;
    workspace_add(&la);
    touched_new(&la);
    la.timing = timing_new(&la);
    if (l->checks) {
        la.check = check_new(&la);
        if (l->findings)
            *l->findings = (struct sim_findings){0};
    }
    struct worker *workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    for (unsigned i = 0; i < n; i++)
        workers[i] = worker_new(&la);
    for (unsigned i = 1; i < n; i++) /* where no thread can be had, the others do its work */
        started[i] = pthread_create(&threads[i], NULL, grid_work, workers[i]) == 0;
    grid_work(workers[0]);
    for (unsigned i = 1; i < n; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
    add_up(workers, n, out);
    if (l->lines)
        lines_collect(&la, workers, n, out);
    for (unsigned i = 0; i < n; i++)
        worker_free(workers[i]);
    out->counters.ctas_total = la.gangs_total * la.gang_ctas;
    out->late = out->status == SIM_BUDGET && atomic_load(&la.late);
    out->stores.gangs_total = la.gangs_total;
    touched_free(&la, &out->counters, &out->stores);
    check_free(&la, la.check);
    timing_free(la.timing);
    workspace_remove(&la);
    launch_release(&la);
}
