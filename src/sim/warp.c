/* A warp: runs instructions for the lanes that are at the lowest place, lets the others wait.
 *
 * Lanes that took different ways form groups. The group at the lowest instruction runs; where it
 * reaches another group's place they go on together. Code is laid out so that what a branch skips
 * lies below its target, so lanes meet again where the source's blocks end. */
#include "sim/check.h"

#include <fenv.h>
#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

#define POLL_REPEATS 3u  /* the same result so many times in a row: it waits */
#define WARP_SLICES  16u /* settlements before other warps get their turn */

static const int rounding_modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

uint32_t lanes_mask(const uint8_t *pred) {
    const u32_lane *p = (const u32_lane *)pred;
    uint32_t m = 0;
    for (unsigned i = 0; i < SIM_LANES; i++)
        m |= p[i] & 1u << i;
    return m;
}

void lanes_blend(uint8_t *to, const uint8_t *from, uint32_t mask, unsigned bytes) {
    if (bytes == 8) {
        for (unsigned i = 0; i < SIM_LANES; i++)
            if (mask >> i & 1)
                ((u64_lane *)to)[i] = ((const u64_lane *)from)[i];
        return;
    }
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint32_t keep = 0 - (mask >> i & 1);
        u32_lane *t = &((u32_lane *)to)[i];
        *t = (*t & ~keep) | (((const u32_lane *)from)[i] & keep);
    }
}

static bool can_join(const struct group *g) {
    return g->wait == WAIT_NOT || g->wait == WAIT_WARP;
}

static void find_meeting(struct warp *wp) {
    wp->meet = UINT32_MAX;
    for (unsigned i = 0; i < wp->nparked; i++)
        if (can_join(&wp->parked[i]) && wp->parked[i].pc < wp->meet)
            wp->meet = wp->parked[i].pc;
}

void warp_park(struct warp *wp, struct group g) {
    for (unsigned i = 0; i < wp->nparked; i++) {
        struct group *o = &wp->parked[i];
        if (o->pc == g.pc && o->wait == g.wait && o->barrier == g.barrier) {
            o->mask |= g.mask;
            o->members |= g.members;
            return;
        }
    }
    wp->parked[wp->nparked++] = g;
    find_meeting(wp);
}

/* Lanes that wait at some bar.warp.sync; it may be another one for each of them. */
static uint32_t waiting_anywhere(const struct warp *wp) {
    uint32_t m = 0;
    for (unsigned i = 0; i < wp->nparked; i++)
        if (wp->parked[i].wait == WAIT_WARP && wp->parked[i].any_place)
            m |= wp->parked[i].mask;
    return m;
}

static bool can_run(const struct warp *wp, const struct group *g) {
    if (g->wait == WAIT_NOT)
        return true;
    uint32_t there = g->any_place ? waiting_anywhere(wp) : g->mask;
    return g->wait == WAIT_WARP && !(g->members & wp->live & ~there);
}

static void run_group(struct warp *wp, const struct group *best) {
    wp->pass = best->wait == WAIT_WARP;
    wp->run = (struct group){.pc = best->pc};
    unsigned n = 0;
    for (unsigned i = 0; i < wp->nparked; i++) {
        struct group g = wp->parked[i];
        if (g.pc == wp->run.pc && can_join(&g)) {
            wp->pass &= g.wait == WAIT_WARP;
            wp->run.mask |= g.mask;
        } else {
            wp->parked[n++] = g;
        }
    }
    wp->nparked = n;
    find_meeting(wp);
}

bool warp_pick(struct warp *wp) {
    const struct group *best = NULL;
    for (unsigned i = 0; i < wp->nparked; i++)
        if (can_run(wp, &wp->parked[i]) && (!best || wp->parked[i].pc < best->pc))
            best = &wp->parked[i];
    wp->rotated = false;
    if (!best)
        return false;
    run_group(wp, best);
    return true;
}

/* The running group waits for memory, perhaps for lanes of its own warp: the next one further down
 * runs, until it ends, waits or meets another one. */
static void rotate(struct warp *wp) {
    const struct group *next = NULL, *lowest = NULL;
    uint32_t pc = wp->run.pc;
    warp_park(wp, (struct group){.pc = pc, .mask = wp->run.mask});
    for (unsigned i = 0; i < wp->nparked; i++) {
        const struct group *g = &wp->parked[i];
        if (!can_run(wp, g))
            continue;
        if (!lowest || g->pc < lowest->pc)
            lowest = g;
        if (g->pc > pc && (!next || g->pc < next->pc))
            next = g;
    }
    wp->rotated = next != NULL;
    run_group(wp, next ? next : lowest);
}

static bool joins(const struct warp *wp, uint32_t pc) {
    for (unsigned i = 0; i < wp->nparked; i++)
        if (can_join(&wp->parked[i]) && wp->parked[i].pc == pc)
            return true;
    return false;
}

/* The running group goes to `pc`, unless another one has to go first or waits there. */
static void go(struct warp *wp, uint32_t pc) {
    wp->run.pc = pc;
    if (pc < wp->meet || (wp->rotated && !joins(wp, pc)))
        return;
    warp_park(wp, (struct group){.pc = pc, .mask = wp->run.mask});
    BUG_IF(!warp_pick(wp)); /* the group just parked can run */
}

static void branch(struct worker *w, struct warp *wp, const struct instr *in, uint32_t taken) {
    uint32_t rest = wp->run.mask & ~taken, next = wp->run.pc + 1;
    if (!rest) {
        go(wp, in->target);
        return;
    }
    if (taken) {
        w->c.divergent_branches++;
        w->traffic[w->in - w->p->code].divergent++;
        wp->run.mask = rest;
        warp_park(wp, (struct group){.pc = in->target, .mask = taken});
    }
    go(wp, next);
}

static bool branch_table(struct worker *w, struct warp *wp, const struct instr *in,
                         uint32_t taken) {
    const u32_lane *index = (const u32_lane *)(wp->regs + in->a);
    uint32_t rest = wp->run.mask & ~taken, groups = rest != 0;
    for (uint32_t m = taken; m; groups++) {
        uint32_t which = index[__builtin_ctz(m)], here = 0;
        if (which >= in->ntargets)
            return fault_plain(w, SIM_TRAP, (unsigned)__builtin_ctz(m),
                               "branches past the end of its table");
        for (uint32_t k = m; k; k &= k - 1)
            here |= (uint32_t)(index[__builtin_ctz(k)] == which) << __builtin_ctz(k);
        warp_park(wp, (struct group){.pc = in->targets[which], .mask = here});
        m &= ~here;
    }
    if (rest)
        warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = rest});
    w->c.divergent_branches += groups > 1;
    w->traffic[w->in - w->p->code].divergent += groups > 1;
    return warp_pick(wp); /* there is one: what was just parked */
}

/* Exited lanes are gone; the rest of the group goes on behind the instruction. */
static bool leave(struct warp *wp, uint32_t mask) {
    wp->live &= ~mask;
    wp->run.mask &= ~mask;
    if (!wp->run.mask)
        return warp_pick(wp);
    go(wp, wp->run.pc + 1);
    return true;
}

static void run_lanes(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    if (mask == FULL) {
        in->fn(regs + in->d, regs + in->a, regs + in->b, regs + in->c, regs + in->e);
        return;
    }
    in->fn(w->scratch, regs + in->a, regs + in->b, regs + in->c, regs + in->e);
    lanes_blend(regs + in->d, w->scratch, mask, in->dst_bytes);
}

/* A straight line for all lanes, up to where another group waits. Returns where it ends. */
static uint32_t run_straight(struct worker *w, const struct warp *wp, uint32_t pc) {
    const struct lane_step *s = &w->p->steps[pc];
    uint32_t n = s->straight, left = (uint32_t)w->fuel;
    uint8_t *regs = wp->regs;
    n = n < wp->meet - pc ? n : wp->meet - pc;
    n = n < left ? n : left;
    w->fuel -= n - 1;
    w->straight[pc]++;
    w->straight[pc + n]--;
    for (const struct lane_step *end = s + n; s < end; s++)
        s->fn(regs + s->d, regs + s->a, regs + s->b, regs + s->c, regs + s->e);
    return pc + n;
}

static void run_carry(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    uint8_t *carry = w->scratch + 8 * SIM_LANES;
    memcpy(carry, regs + in->e, 4 * SIM_LANES);
    in->fn(w->scratch, regs + in->a, regs + in->b, regs + in->c, carry);
    lanes_blend(regs + in->d, w->scratch, mask, in->dst_bytes);
    lanes_blend(regs + in->e, carry, mask, 4);
}

static void run_rounded(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    fesetround(rounding_modes[in->round]);
    run_lanes(w, in, regs, mask);
    fesetround(FE_TONEAREST);
}

/* Lanes that an instruction with .sync names have to be there first. True: go on. */
static bool gathered(struct warp *wp, const struct instr *in, uint32_t at) {
    uint32_t members = ((const u32_lane *)(wp->regs + at))[__builtin_ctz(wp->run.mask)];
    if (wp->pass || !(members & wp->live & ~wp->run.mask)) {
        wp->pass = false;
        return true;
    }
    struct group g = wp->run;
    g.wait = WAIT_WARP;
    g.members = members;
    g.any_place = in->kind == KIND_WARP_SYNC;
    wp->run.mask = 0;
    warp_park(wp, g);
    return false;
}

static enum warp_end blocked(const struct warp *wp) {
    return wp->nparked ? WARP_BLOCKED : WARP_DONE;
}

static void account(struct worker *w, size_t pc, uint32_t mask) {
    w->warp_counts[pc]++;
    w->lane_counts[pc] += mask == FULL ? SIM_LANES : (unsigned)__builtin_popcount(mask);
}

bool warp_over_budget(struct worker *w) {
    uint32_t mask = w->warp->run.mask;
    return fault_plain(w, SIM_BUDGET, mask ? (unsigned)__builtin_ctz(mask) : 0,
                       "was running when the launch had used up its instructions; does a loop "
                       "never end?");
}

static uint64_t poll_hash(const uint8_t *regs, const struct access *a, uint32_t mask,
                          const uint64_t *address) {
    uint64_t h = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        h = (h ^ address[i]) * UINT64_C(0x9e3779b97f4a7c15);
        for (unsigned k = 0; k < a->count; k++) {
            uint64_t v = a->reg_bytes == 8 ? ((const u64_lane *)(regs + a->reg[k]))[i]
                                           : ((const u32_lane *)(regs + a->reg[k]))[i];
            h = (h ^ v ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);
        }
    }
    return h;
}

bool warp_saw(struct worker *w, uint64_t seen, uint64_t address, unsigned lane) {
    struct poll *p = &w->warp->poll;
    uint32_t pc = (uint32_t)(w->in - w->p->code);
    bool again = p->pc == pc && p->seen == seen;
    *p = (struct poll){pc, again ? p->repeats + 1 : 0, seen, address, lane};
    return p->repeats >= POLL_REPEATS;
}

bool warp_polls(struct worker *w, const struct access *a, uint32_t mask, const uint64_t *address) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    return warp_saw(w, poll_hash(w->warp->regs, a, mask, address),
                    address[lane] + (a->space == PTX_SHARED ? WINDOW_SHARED : 0), lane);
}

static void read_clock(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    uint64_t t = (grid_clock(w) + 1000) * 4;
    uint64_t v = in->mode == CLOCK_HIGH || in->mode == CLOCK_NANOSECONDS_HIGH ? t >> 32 : t;
    for (unsigned i = 0; i < SIM_LANES; i++)
        memcpy(w->scratch + (size_t)i * in->dst_bytes, &v, in->dst_bytes);
    lanes_blend(regs + in->d, w->scratch, mask, in->dst_bytes);
}

/* mapa: the same place in another block's shared memory; getctarank: whose it is. */
static void map_rank(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint64_t a = in->wide ? ((const u64_lane *)(regs + in->a))[i]
                              : ((const u32_lane *)(regs + in->a))[i];
        uint64_t window = in->negate ? WINDOW_SHARED : 0, at = a - window;
        uint32_t rank = in->mode == MAPA_MAP ? ((const u32_lane *)(regs + in->b))[i] : 0;
        uint64_t mapped = window + ((at & RANK_OFFSETS) | (uint64_t)(rank + 1) << RANK_SHIFT);
        uint32_t owner = at >> RANK_SHIFT ? (uint32_t)(at >> RANK_SHIFT) - 1 : w->cta->rank;
        uint64_t v = in->mode == MAPA_MAP ? mapped : owner;
        memcpy(w->scratch + (size_t)i * in->dst_bytes, &v, in->dst_bytes);
    }
    lanes_blend(regs + in->d, w->scratch, mask, in->dst_bytes);
}

/* Instructions that all lanes of a warp execute together. */
static bool whole_warp(struct worker *w, const struct instr *in, uint32_t mask) {
    if (mask == FULL)
        return true;
    struct text t = fault_begin(w, SIM_TRAP, (unsigned)__builtin_ctz(mask));
    text_say(&t, "executes '%.*s' with %d of its warp's 32 lanes; all of them have to",
             STR_ARG(str_cut(in->src->text, 0, 100)), __builtin_popcount(mask));
    return false;
}

static bool run_tensor(struct worker *w, const struct instr *in, uint32_t mask) {
    if (!mask)
        return true;
    if (!whole_warp(w, in, mask))
        return false;
    return in->kind == KIND_WGMMA          ? warpgroup_issue(w, in)
           : in->kind == KIND_WGMMA_COMMIT ? warpgroup_commit(w)
                                           : tensor_run(w, in);
}

static bool run_async(struct worker *w, const struct instr *in, uint32_t mask) {
    switch (in->kind) {
    case KIND_COPY:
        return copy_issue(w, in, mask);
    case KIND_COPY_COMMIT:
        for (uint32_t m = mask; m && in->async->grouped; m &= m - 1)
            w->warp->bulk_commits[__builtin_ctz(m)]++;
        if (!in->async->grouped)
            copy_commit(w, mask);
        return true;
    case KIND_COPY_WAIT:
        return in->async->grouped ? bulk_wait(w, in->target, mask) : copy_wait(w, in->target, mask);
    case KIND_COPY_ARRIVE:
        return copy_arrive(w, in, mask);
    case KIND_MAP_REPLACE:
        return bulk_replace(w, in, mask);
    default:
        return bulk_issue(w, in, mask);
    }
}

/* The group waits at the instruction it is at, and executes it when others let it. */
static void wait_here(struct warp *wp, uint32_t mask, enum wait wait) {
    uint32_t rest = wp->run.mask & ~mask;
    warp_park(wp, (struct group){.pc = wp->run.pc, .mask = mask, .wait = (uint8_t)wait});
    if (rest) /* lanes that the guard leaves out go on */
        warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = rest});
    wp->run.mask = 0;
}

/* try_wait waits until the phase ends; only where nothing else can run it comes back with false. */
static bool should_wait(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask,
                        bool *ok) {
    bool any = true;
    *ok = true;
    if (in->kind == KIND_WGMMA_WAIT)
        return !warpgroup_ready(w, wp, in);
    if (in->mode != MBARRIER_TRY)
        return false;
    *ok = mbarrier_any_passed(w, wp, in, mask, &any);
    bool give_up = wp->give_up;
    wp->give_up = false;
    return *ok && !any && !give_up;
}

enum warp_end warp_run(struct worker *w, struct warp *wp) {
    const struct instr *code = w->p->code;
    uint8_t *regs = wp->regs;
    w->warp = wp;
    wp->polling = false;
    for (;;) {
        uint32_t pc = wp->run.pc, mask = wp->run.mask;
        const struct instr *in = &code[pc];
        w->in = in;
        if (in->guard >= 0) {
            uint32_t p = lanes_mask(regs + in->guard);
            mask &= in->guard_negated ? ~p : p;
        }
        if (--w->fuel == 0) {
            if (!worker_settle(w) && !warp_over_budget(w))
                return WARP_FAILED;
            if (++wp->slices % WARP_SLICES == 0 && !wp->pass) {
                rotate(wp); /* before this instruction: it is run later */
                return WARP_PAUSED;
            }
        }
        switch ((enum op_kind)in->kind) {
        case KIND_LANES:
            if (mask == FULL && w->p->steps[pc].straight > 1 && pc < wp->meet) {
                go(wp, run_straight(w, wp, pc));
                continue;
            }
            run_lanes(w, in, regs, mask);
            break;
        case KIND_CARRY:
            run_carry(w, in, regs, mask);
            break;
        case KIND_ROUND:
            run_rounded(w, in, regs, mask);
            break;
        case KIND_LOAD:
        case KIND_STORE:
            if (mask && !memory_access(w, in, mask, in->kind == KIND_STORE))
                return WARP_FAILED;
            break;
        case KIND_ATOMIC:
            if (mask && !atomic_run(w, in, mask))
                return WARP_FAILED;
            break;
        case KIND_BRANCH:
            account(w, pc, mask);
            branch(w, wp, in, mask);
            continue;
        case KIND_BRANCH_TABLE:
            account(w, pc, mask);
            if (!branch_table(w, wp, in, mask))
                return WARP_FAILED;
            continue;
        case KIND_EXIT:
            account(w, pc, mask);
            if (!leave(wp, mask))
                return blocked(wp);
            continue;
        case KIND_TRAP:
            if (mask) {
                fault_plain(w, SIM_TRAP, (unsigned)__builtin_ctz(mask),
                            in->mode == TRAP_ASSERT ? "failed an assertion" : "executed trap");
                return WARP_FAILED;
            }
            break;
        case KIND_BARRIER:
        case KIND_CLUSTER_BARRIER:
            if (!mask)
                break;
            if (wp->rotated && in->wide && mask != wp->live) {
                /* It ran ahead of lanes that wait for memory: here it waits for them. */
                warp_park(wp, wp->run);
                warp_pick(wp);
                return WARP_POLLS;
            }
            account(w, pc, mask);
            barrier_reach(w, wp, in, mask);
            if (!warp_pick(wp))
                return WARP_BLOCKED;
            continue;
        case KIND_WARP_SYNC:
        case KIND_SHUFFLE:
        case KIND_VOTE:
        case KIND_REDUX:
        case KIND_MATCH:
        case KIND_ELECT:
            if (!gathered(wp, in, in->kind == KIND_WARP_SYNC ? in->a : in->e)) {
                if (!warp_pick(wp))
                    return WARP_BLOCKED;
                continue;
            }
            if (in->kind != KIND_WARP_SYNC)
                collective_run(w, in, mask);
            else if (w->la->check)
                order_warp_sync(w, wp, mask);
            break;
        case KIND_ACTIVE:
            collective_run(w, in, mask);
            break;
        case KIND_CLOCK:
            read_clock(w, in, regs, mask);
            break;
        case KIND_MAPA:
            map_rank(w, in, regs, mask);
            break;
        case KIND_PAUSE:
            wp->polling = mask != 0;
            break;
        case KIND_MATRIX:
        case KIND_MMA:
        case KIND_FRAGMENT:
        case KIND_WGMMA:
        case KIND_WGMMA_COMMIT:
            if (!gathered(wp, in, in->e)) {
                if (!warp_pick(wp))
                    return WARP_BLOCKED;
                continue;
            }
            if (!run_tensor(w, in, mask))
                return WARP_FAILED;
            break;
        case KIND_WGMMA_WAIT:
        case KIND_MBARRIER: {
            bool ok = true;
            if (mask && should_wait(w, wp, in, mask, &ok)) {
                wait_here(wp, mask, in->kind == KIND_MBARRIER ? WAIT_PHASE : WAIT_WGMMA);
                if (!warp_pick(wp))
                    return WARP_BLOCKED;
                continue;
            }
            if (!ok || (mask && !(in->kind == KIND_MBARRIER ? mbarrier_run(w, in, mask)
                                                            : warpgroup_wait(w, in))))
                return WARP_FAILED;
            break;
        }
        case KIND_COPY:
        case KIND_COPY_COMMIT:
        case KIND_COPY_WAIT:
        case KIND_COPY_ARRIVE:
        case KIND_BULK:
        case KIND_MAP_REPLACE:
            if (mask && !run_async(w, in, mask))
                return WARP_FAILED;
            break;
        case KIND_FENCE:
            if (w->la->check && mask)
                order_fence(w, wp, in->mode);
            break;
        case KIND_NOTHING:
            break;
        }
        account(w, pc, mask);
        go(wp, pc + 1);
        if (wp->polling) {
            rotate(wp);
            return WARP_POLLS;
        }
    }
}
