/* Executing: one instruction after the other for the lanes that run, until the warp waits, has had
 * its share, or is done. What an instruction does is in the file of its kind. */
#include "sim/check.h"
#include "sim/timing.h"

#include <fenv.h>
#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

#define POLL_REPEATS 3u     /* the same result so many times in a row: it waits */
#define WARP_SLICES  16u    /* settlements before other warps get their turn */
#define CLOCKS_INSTR 5u     /* of an SM, about so many an instruction of a block, … */
#define CLOCKS_WAVE  20000u /* … and between blocks that have an SM after each other */
#define CLOCKS_NS    2u
#define TIMER_NS     32u /* %globaltimer moves by so much */

static const int rounding_modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

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
    uint32_t n = w->la->check ? s->quiet : s->straight, left = (uint32_t)w->fuel;
    uint8_t *regs = wp->regs;
    n = w->covered && s->plain < n ? s->plain : n;
    uint32_t free = wp->meet - w->p->code[pc].rank;
    n = n < free ? n : free;
    n = n < left ? n : left;
    w->fuel -= n - 1;
    w->straight[pc]++;
    w->straight[pc + n]--;
    for (const struct lane_step *end = s + n; s < end; s++)
        s->fn(regs + s->d, regs + s->a, regs + s->b, regs + s->c, regs + s->e);
    if (w->gang->time)
        timing_straight(w, pc, n);
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
                    address[lane] + (a->space == PTX_SHARED ? w->la->m->windows : 0), lane);
}

static void read_clock(struct worker *w, const struct instr *in, uint8_t *regs, uint32_t mask) {
    uint64_t n = grid_clock(w), wave = w->gang->ordinal / DEFAULT_SMS;
    uint64_t t = wave * CLOCKS_WAVE + n * CLOCKS_INSTR + (n * UINT64_C(0x9e3779b97f4a7c15) >> 62);
    bool ns = in->mode == CLOCK_NANOSECONDS || in->mode == CLOCK_NANOSECONDS_HIGH;
    t = ns ? (w->la->l->time_ns + t / CLOCKS_NS) & ~(uint64_t)(TIMER_NS - 1) : w->la->clock + t;
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
        uint64_t window = in->negate ? w->la->m->windows : 0, at = a - window;
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
        return in->async->grouped ? bulk_wait(w, in, mask) : copy_wait(w, in->target, mask);
    case KIND_COPY_ARRIVE:
        return copy_arrive(w, in, mask);
    case KIND_MAP_REPLACE:
        return bulk_replace(w, in, mask);
    default:
        return bulk_issue(w, in, mask);
    }
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
    return *ok && !any && !give_up && !(w->gang->drawn && draw_below(w->gang, 4) == 0);
}

static void account(struct worker *w, size_t pc, uint32_t mask) {
    w->warp_counts[pc]++;
    w->lane_counts[pc] += mask == FULL ? SIM_LANES : (unsigned)__builtin_popcount(mask);
    if (w->gang->time)
        timing_step(w, (uint32_t)pc, mask);
}

bool warp_over_budget(struct worker *w) {
    uint32_t mask = w->warp->run.mask;
    return fault_plain(w, SIM_BUDGET, mask ? (unsigned)__builtin_ctz(mask) : 0,
                       "was running when the launch had used up its instructions; does a loop "
                       "never end?");
}

/* What follows an instruction. */
enum step {
    STEP_NEXT,  /* the one behind it */
    STEP_WENT,  /* it has chosen where to go on */
    STEP_WAITS, /* the warp's groups wait, or there are none left */
    STEP_POLLS,
    STEP_FAILED,
};

static enum step passed(bool ok) {
    return ok ? STEP_NEXT : STEP_FAILED;
}

/* The running group was parked: another one, or none. */
static enum step another(struct warp *wp) {
    return warp_pick(wp) ? STEP_WENT : STEP_WAITS;
}

static enum step run_flow(struct worker *w, struct warp *wp, const struct instr *in,
                          uint32_t mask) {
    account(w, wp->run.pc, mask);
    if (in->kind == KIND_BRANCH) {
        warp_branch(w, wp, in, mask);
        return STEP_WENT;
    }
    if (in->kind == KIND_BRANCH_TABLE)
        return warp_branch_table(w, wp, in, mask) ? STEP_WENT : STEP_FAILED;
    return warp_leave(wp, mask) ? STEP_WENT : STEP_WAITS;
}

static enum step run_barrier(struct worker *w, struct warp *wp, const struct instr *in,
                             uint32_t mask) {
    bool whole = in->kind == KIND_BARRIER && in->wide;
    if (whole && warp_awaits_lanes(wp))
        return another(wp);
    if (wp->rotated && in->wide && mask != wp->live) {
        /* It ran ahead of lanes that wait for memory: here it waits for them. */
        warp_park(wp, wp->run);
        warp_pick(wp);
        return STEP_POLLS;
    }
    account(w, wp->run.pc, mask);
    if (whole)
        wp->parted &= ~mask;
    barrier_reach(w, wp, in, mask);
    return another(wp);
}

/* Lanes that have parted need not have met again: CUDA promises it after a .sync that names them
 * alone. Where lanes are drawn, those that took the branch may come by themselves. */
static enum step run_active(struct worker *w, struct warp *wp, const struct instr *in,
                            uint32_t mask) {
    uint32_t first = mask & wp->parted, pc = wp->run.pc;
    bool can = w->la->l->lanes && mask == wp->run.mask && first && first != mask;
    if (!can || draw_below(w->gang, 2)) {
        collective_run(w, in, mask);
        return STEP_NEXT;
    }
    w->drawn = true;
    warp_park(wp, (struct group){.pc = pc, .mask = mask & ~first});
    wp->run.mask = first;
    collective_run(w, in, first);
    account(w, pc, first);
    warp_go(wp, pc + 1);
    return STEP_WENT;
}

static enum step run_together(struct worker *w, struct warp *wp, const struct instr *in,
                              uint32_t mask) {
    if (!warp_gathered(wp, in, in->kind == KIND_WARP_SYNC ? in->a : in->e))
        return another(wp);
    if (in->kind >= KIND_MATRIX)
        return passed(run_tensor(w, in, mask));
    if (in->kind != KIND_WARP_SYNC)
        collective_run(w, in, mask);
    else if (w->la->check) {
        order_check_members(w, in, mask);
        order_warp_sync(w, wp, mask);
    }
    return STEP_NEXT;
}

static enum step run_wait(struct worker *w, struct warp *wp, const struct instr *in,
                          uint32_t mask) {
    bool ok, barrier = in->kind == KIND_MBARRIER;
    if (should_wait(w, wp, in, mask, &ok)) {
        warp_wait_here(wp, mask, barrier ? WAIT_PHASE : WAIT_WGMMA);
        return another(wp);
    }
    return passed(ok && (barrier ? mbarrier_run(w, in, mask) : warpgroup_wait(w, in)));
}

static enum step run_trap(struct worker *w, const struct instr *in, uint32_t mask) {
    return passed(fault_plain(w, SIM_TRAP, (unsigned)__builtin_ctz(mask),
                              in->mode == TRAP_ASSERT ? "failed an assertion" : "executed trap"));
}

/* Instructions that arithmetic on lanes is not. Those that lanes have to reach together, and
 * branches, are looked at whatever their guards say; of the others somebody executes them. */
static enum step execute(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask) {
    switch ((enum op_kind)in->kind) {
    case KIND_BRANCH:
    case KIND_BRANCH_TABLE:
    case KIND_EXIT:
        return run_flow(w, wp, in, mask);
    case KIND_WARP_SYNC:
    case KIND_SHUFFLE:
    case KIND_VOTE:
    case KIND_REDUX:
    case KIND_MATCH:
    case KIND_ELECT:
    case KIND_MATRIX:
    case KIND_MMA:
    case KIND_FRAGMENT:
    case KIND_WGMMA:
    case KIND_WGMMA_COMMIT:
        return run_together(w, wp, in, mask);
    default:
        break;
    }
    if (!mask)
        return STEP_NEXT;
    switch ((enum op_kind)in->kind) {
    case KIND_CARRY:
        run_carry(w, in, wp->regs, mask);
        return STEP_NEXT;
    case KIND_ROUND:
        run_rounded(w, in, wp->regs, mask);
        return STEP_NEXT;
    case KIND_LOAD:
    case KIND_STORE:
        return passed(memory_access(w, in, mask, in->kind == KIND_STORE));
    case KIND_ATOMIC:
        return passed(atomic_run(w, in, mask));
    case KIND_TRAP:
        return run_trap(w, in, mask);
    case KIND_BARRIER:
    case KIND_CLUSTER_BARRIER:
        return run_barrier(w, wp, in, mask);
    case KIND_ACTIVE:
        return run_active(w, wp, in, mask);
    case KIND_CLOCK:
        read_clock(w, in, wp->regs, mask);
        return STEP_NEXT;
    case KIND_MAPA:
        map_rank(w, in, wp->regs, mask);
        return STEP_NEXT;
    case KIND_PAUSE:
        wp->polling = true;
        return STEP_NEXT;
    case KIND_WGMMA_WAIT:
    case KIND_MBARRIER:
        return run_wait(w, wp, in, mask);
    case KIND_COPY:
    case KIND_COPY_COMMIT:
    case KIND_COPY_WAIT:
    case KIND_COPY_ARRIVE:
    case KIND_BULK:
    case KIND_MAP_REPLACE:
        return passed(run_async(w, in, mask));
    case KIND_FENCE:
        if (w->la->check)
            order_fence(w, wp, in->mode);
        return STEP_NEXT;
    case KIND_WGMMA_FENCE:
        if (w->la->check)
            inflight_fence(w);
        return STEP_NEXT;
    case KIND_REGISTERS:
        if (w->la->check)
            inflight_registers(w, in);
        return STEP_NEXT;
    default:
        return STEP_NEXT; /* prefetches, hints */
    }
}

/* Every so often: the budget, and whether others should have their turn. False: go on. */
static bool settle(struct worker *w, struct warp *wp, enum warp_end *end) {
    *end = WARP_FAILED;
    if (!worker_settle(w) && !warp_over_budget(w))
        return true;
    bool drawn = w->gang->drawn;
    if ((!drawn && ++wp->slices % WARP_SLICES != 0) || wp->pass)
        return false;
    if (!drawn)
        warp_rotate(wp); /* before this instruction: it is run later */
    *end = WARP_PAUSED;
    return true;
}

enum warp_end warp_run(struct worker *w, struct warp *wp) {
    const struct instr *code = w->p->code;
    enum warp_end end;
    w->warp = wp;
    wp->polling = false;
    for (;;) {
        uint32_t pc = wp->run.pc, mask = wp->run.mask;
        const struct instr *in = &code[pc];
        enum step step = STEP_NEXT;
        w->in = in;
        if (in->guard >= 0) {
            uint32_t p = lanes_mask(wp->regs + in->guard);
            mask &= in->guard_negated ? ~p : p;
        }
        if (--w->fuel == 0 && settle(w, wp, &end))
            return end;
        if (in->watched && w->la->check && mask)
            inflight_use(w, in, mask);
        bool recorded = in->choice && w->covered;
        if (recorded)
            coverage_before(w, wp, in, mask);
        if (in->kind != KIND_LANES) {
            step = execute(w, wp, in, mask);
        } else if (mask == FULL && w->p->steps[pc].straight > 1 && in->rank < wp->meet &&
                   !(in->watched && w->la->check) && !recorded) {
            warp_go(wp, run_straight(w, wp, pc));
            continue;
        } else {
            run_lanes(w, in, wp->regs, mask);
            if (recorded)
                coverage_after(w, wp, in, mask);
        }
        if (step == STEP_WENT)
            continue;
        if (step == STEP_WAITS)
            return wp->nparked ? WARP_BLOCKED : WARP_DONE;
        if (step != STEP_NEXT)
            return step == STEP_POLLS ? WARP_POLLS : WARP_FAILED;
        account(w, pc, mask);
        warp_go(wp, pc + 1);
        if (wp->polling) {
            warp_rotate(wp);
            return WARP_POLLS;
        }
        if (w->gang->time && timing_turn_over(w))
            return WARP_PAUSED;
    }
}
