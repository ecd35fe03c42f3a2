/* A block: its warps run in turn, each until it exits or waits at a barrier. A program without
 * barriers runs its warps one after the other on one register file. */
#include "sim/machine.h"

#include <stdio.h>
#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));

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
    case SPECIAL_LANEID:
        return lane;
    case SPECIAL_NWARPID:
        return la->nwarps;
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
        return (uint32_t)la->shared_bytes;
    default:
        return 0; /* the block's and the warp's own: fill_special */
    }
}

void cta_fill_fixed(struct worker *w, uint8_t *regs) {
    for (size_t i = 0; i < w->p->nspecials; i++)
        for (unsigned k = 0; k < SIM_LANES; k++)
            ((u32_lane *)(regs + w->p->specials[i].at))[k] =
                fixed_value(w->la, w->p->specials[i].what, k);
}

static void fill_special(const struct worker *w, const struct warp *wp, struct special_use u) {
    u32_lane *to = (u32_lane *)(wp->regs + u.at);
    if (u.what <= SPECIAL_TID_Z) {
        memcpy(to, w->la->tid[u.what - SPECIAL_TID_X] + wp->index * SIM_LANES, 4 * SIM_LANES);
        return;
    }
    bool cta = u.what >= SPECIAL_CTAID_X && u.what <= SPECIAL_CTAID_Z;
    if (!cta && u.what != SPECIAL_WARPID)
        return;
    uint32_t v = cta ? w->cta[u.what - SPECIAL_CTAID_X] : wp->index;
    for (unsigned k = 0; k < SIM_LANES; k++)
        to[k] = v;
}

static void warp_start(struct worker *w, struct warp *wp, uint32_t index) {
    const struct sim_program *p = w->p;
    uint32_t left = w->la->threads - index * SIM_LANES;
    uint32_t lanes = left >= SIM_LANES ? FULL : (1u << left) - 1;
    uint8_t *regs = p->has_barrier ? w->regs + (size_t)index * p->register_bytes : w->regs;
    wp->regs = regs;
    wp->local = w->local + (p->has_barrier ? index : 0) * p->local_bytes * SIM_LANES;
    wp->index = index;
    wp->live = lanes;
    wp->run = (struct group){.mask = lanes};
    wp->nparked = 0;
    wp->meet = UINT32_MAX;
    wp->pass = false;
    /* What nothing wrote is all ones: NaN, or an index far outside, so that it shows. */
    if (p->local_bytes)
        memset(wp->local, 0xff, p->local_bytes * SIM_LANES);
    for (size_t i = 0; i < p->nunset; i++)
        memset(regs + p->unset[i], 0xff, 4 * SIM_LANES);
    for (size_t i = 0; i < p->nspecials; i++)
        fill_special(w, wp, p->specials[i]);
}

/* How many lanes wait at barrier `id`, and the count it was given (0: the whole block). */
static uint32_t arrived(const struct worker *w, uint8_t id, uint32_t *expected) {
    uint32_t n = 0;
    *expected = 0;
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        for (unsigned k = 0; k < w->warps[i].nparked; k++) {
            const struct group *g = &w->warps[i].parked[k];
            if (g->wait != WAIT_BARRIER || g->barrier != id)
                continue;
            const struct instr *in = &w->p->code[g->pc];
            uint32_t count = ((const u32_lane *)(w->warps[i].regs + in->b))[__builtin_ctz(g->mask)];
            n += (uint32_t)__builtin_popcount(g->mask);
            *expected = count > *expected ? count : *expected;
        }
    return n;
}

static uint32_t live_threads(const struct worker *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        n += (uint32_t)__builtin_popcount(w->warps[i].live);
    return n;
}

/* bar.red: how many of the waiting lanes' predicates are true. */
static uint32_t count_true(const struct worker *w, uint8_t id) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        for (unsigned k = 0; k < w->warps[i].nparked; k++) {
            const struct group *g = &w->warps[i].parked[k];
            if (g->wait == WAIT_BARRIER && g->barrier == id)
                n += (uint32_t)__builtin_popcount(
                    g->mask & lanes_mask(w->warps[i].regs + w->p->code[g->pc].c));
        }
    return n;
}

static void give_result(struct warp *wp, const struct group *g, const struct instr *in,
                        uint32_t yes, uint32_t all) {
    if (in->mode == BARRIER_SYNC)
        return;
    uint32_t v = in->mode == BARRIER_POPC  ? yes
                 : in->mode == BARRIER_AND ? (yes == all ? ~0u : 0)
                                           : (yes ? ~0u : 0);
    for (uint32_t m = g->mask; m; m &= m - 1)
        ((u32_lane *)(wp->regs + in->d))[__builtin_ctz(m)] = v;
}

static void release(struct worker *w, uint8_t id, uint32_t all) {
    uint32_t yes = count_true(w, id);
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        struct warp *wp = &w->warps[i];
        for (unsigned k = 0; k < wp->nparked; k++) {
            struct group *g = &wp->parked[k];
            if (g->wait != WAIT_BARRIER || g->barrier != id)
                continue;
            give_result(wp, g, &w->p->code[g->pc], yes, all);
            g->wait = WAIT_NOT;
            g->pc++;
        }
    }
}

static bool release_barriers(struct worker *w) {
    bool any = false;
    for (uint8_t id = 0; id < 16; id++) {
        uint32_t expected, n = arrived(w, id, &expected);
        if (n && n >= (expected ? expected : live_threads(w))) {
            release(w, id, n);
            any = true;
        }
    }
    return any;
}

/* The first warp from `from` on that still has waiting lanes cannot go on. */
static bool stuck(struct worker *w, uint32_t from) {
    for (uint32_t i = from; i < w->la->nwarps; i++) {
        struct warp *wp = &w->warps[i];
        if (!wp->nparked)
            continue;
        const struct group *g = &wp->parked[0];
        const struct instr *in = &w->p->code[g->pc];
        char what[320];
        snprintf(what, sizeof what, "waits for ever at '%.*s': other threads that it waits for %s",
                 STR_ARG(str_cut(in->src->text, 0, 120)),
                 g->wait == WAIT_BARRIER
                     ? "wait elsewhere; a barrier must be reached by all threads of the block"
                     : "of its warp wait elsewhere");
        w->warp = wp;
        w->in = in;
        return fault_plain(w, SIM_NO_PROGRESS, (unsigned)__builtin_ctz(g->mask), what);
    }
    return true;
}

static bool run_together(struct worker *w) {
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        warp_start(w, &w->warps[i], i);
    for (bool progress = true; progress;) {
        progress = false;
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &w->warps[i];
            if (!wp->run.mask && !warp_pick(wp))
                continue;
            progress = true;
            if (warp_run(w, wp) == WARP_FAILED)
                return false;
            wp->run.mask = 0;
        }
        progress |= release_barriers(w);
    }
    return stuck(w, 0);
}

static bool run_apart(struct worker *w) {
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        warp_start(w, &w->warps[i], i);
        enum warp_end end = warp_run(w, &w->warps[i]);
        if (end == WARP_FAILED || (end == WARP_BLOCKED && !stuck(w, i)))
            return false;
    }
    return true;
}

bool cta_run(struct worker *w) {
    if (w->la->shared_bytes)
        memset(w->shared, 0xff, w->la->shared_bytes);
    w->cta_used = 0;
    if (!(w->p->has_barrier ? run_together(w) : run_apart(w)))
        return false;
    return worker_settle(w) || warp_over_budget(w);
}
