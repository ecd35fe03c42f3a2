/* A warp: runs instructions for the lanes that are furthest behind, lets the others wait.
 *
 * Lanes that took different ways form groups. The group of the lowest rank runs; where it reaches
 * another group's place they go on together. Ranks are such (reconverge.c) that lanes meet again at
 * the post-dominator of the branch at which they parted. */
#include "sim/machine.h"
#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));
typedef uint32_t u32x4 __attribute__((vector_size(16), may_alias, aligned(4)));

enum { FOURS = SIM_LANES / 4 };

uint32_t lanes_mask(const uint8_t *pred) {
    const u32x4 *p = (const u32x4 *)pred;
    u32x4 bit = {1, 2, 4, 8}, m = {0};
    for (unsigned i = 0; i < FOURS; i++, bit <<= 4)
        m |= p[i] & bit;
    return m[0] | m[1] | m[2] | m[3];
}

void lanes_blend(uint8_t *to, const uint8_t *from, uint32_t mask, unsigned bytes) {
    if (mask == UINT32_MAX) {
        memcpy(to, from, (size_t)SIM_LANES * bytes);
        return;
    }
    if (bytes == 8) {
        for (uint32_t m = mask; m; m &= m - 1) {
            int i = __builtin_ctz(m);
            ((u64_lane *)to)[i] = ((const u64_lane *)from)[i];
        }
        return;
    }
    u32x4 bit = {1, 2, 4, 8}, all = {mask, mask, mask, mask};
    for (unsigned i = 0; i < FOURS; i++, bit <<= 4) {
        u32x4 keep = (u32x4)((all & bit) == 0), *t = &((u32x4 *)to)[i];
        *t = (*t & keep) | (((const u32x4 *)from)[i] & ~keep);
    }
}

static bool can_join(const struct group *g) {
    return g->wait == WAIT_NOT || g->wait == WAIT_WARP || g->wait == WAIT_LANES;
}

static uint32_t rank_of(const struct warp *wp, const struct group *g) {
    return g->late ? g->late : wp->code[g->pc].rank;
}

/* The rank at which lanes that go back to a loop's head wait for those that have not; 0: they do
 * not. */
static uint32_t late_at(const struct warp *wp, uint32_t from, uint32_t to) {
    return wp->code[to].rank <= wp->code[from].rank ? wp->code[from].late : 0;
}

static void find_meeting(struct warp *wp) {
    wp->meet = UINT32_MAX;
    for (unsigned i = 0; i < wp->nparked; i++) {
        uint32_t rank = rank_of(wp, &wp->parked[i]);
        if (can_join(&wp->parked[i]) && rank < wp->meet)
            wp->meet = rank;
    }
}

void warp_park(struct warp *wp, struct group g) {
    for (unsigned i = 0; i < wp->nparked; i++) {
        struct group *o = &wp->parked[i];
        if (o->pc == g.pc && o->wait == g.wait && o->barrier == g.barrier) {
            o->mask |= g.mask;
            o->members |= g.members;
            o->late = g.late > o->late ? g.late : o->late;
            find_meeting(wp);
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

static bool at_whole_barrier(const struct warp *wp, const struct group *g) {
    const struct instr *in = &wp->code[g->pc];
    return g->wait == WAIT_LANES || (in->kind == KIND_BARRIER && in->wide);
}

/* Lanes that wait for what others do, unlike those that wait for lanes of their warp, who are the
 * ones to look at. */
static bool is_held_up(const struct warp *wp, const struct group *g) {
    return g->wait > WAIT_LANES && !at_whole_barrier(wp, g);
}

/* Lanes may still come to the barrier at `pc` that others of their warp have reached: those that
 * are held up or ask again and again whether they may go on, and those that are a round behind.
 * They would have been there with the others, had those waited where the ways come together. */
static bool lanes_may_come(const struct warp *wp, uint32_t pc) {
    for (unsigned i = 0; i < wp->nparked; i++) {
        const struct group *o = &wp->parked[i];
        if (o->pc == pc || wp->code[o->pc].rank >= wp->code[pc].reach)
            continue;
        if (is_held_up(wp, o) || (o->wait == WAIT_NOT && (o->spins || o->mask & wp->behind)))
            return true;
    }
    return false;
}

bool warp_awaits_lanes(struct warp *wp) {
    if (wp->run.mask == wp->live || !lanes_may_come(wp, wp->run.pc))
        return false;
    struct group g = {.pc = wp->run.pc, .mask = wp->run.mask, .wait = WAIT_LANES};
    wp->run.mask = 0;
    warp_park(wp, g);
    return true;
}

static bool can_run(const struct warp *wp, const struct group *g) {
    if (g->wait == WAIT_NOT)
        return true;
    if (g->wait == WAIT_LANES)
        return !lanes_may_come(wp, g->pc);
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
    if (wp->run.mask & ~wp->behind || wp->run.mask == wp->live)
        wp->behind &= ~wp->run.mask;
}

bool warp_pick(struct warp *wp) {
    const struct group *best = NULL;
    for (unsigned i = 0; i < wp->nparked; i++)
        if (can_run(wp, &wp->parked[i]) &&
            (!best || rank_of(wp, &wp->parked[i]) < rank_of(wp, best)))
            best = &wp->parked[i];
    wp->rotated = false;
    if (!best)
        return false;
    run_group(wp, best);
    return true;
}

/* The running group waits for memory, perhaps for lanes of its own warp: the one of the next rank
 * runs, until it ends, waits or meets another one. */
void warp_rotate(struct warp *wp) {
    const struct group *next = NULL, *lowest = NULL;
    uint32_t rank = wp->code[wp->run.pc].rank;
    warp_park(wp, (struct group){.pc = wp->run.pc, .mask = wp->run.mask, .spins = true});
    for (unsigned i = 0; i < wp->nparked; i++) {
        const struct group *g = &wp->parked[i];
        if (!can_run(wp, g))
            continue;
        uint32_t its = rank_of(wp, g);
        if (!lowest || its < rank_of(wp, lowest))
            lowest = g;
        if (its > rank && (!next || its < rank_of(wp, next)))
            next = g;
    }
    wp->rotated = next != NULL;
    wp->until = UINT32_MAX;
    run_group(wp, next ? next : lowest);
}

/* The running lanes, or some of them, go back to a loop's head and leave others in its body, who
 * wait. */
static void note_behind(struct warp *wp, uint32_t from, uint32_t to) {
    uint32_t first = wp->code[to].rank, last = wp->code[from].rank;
    for (unsigned i = 0; first <= last && i < wp->nparked; i++) {
        const struct group *o = &wp->parked[i];
        uint32_t rank = wp->code[o->pc].rank;
        if (rank > first && rank <= last && !at_whole_barrier(wp, o))
            wp->behind |= o->mask;
    }
}

static bool joins(const struct warp *wp, uint32_t pc) {
    for (unsigned i = 0; i < wp->nparked; i++)
        if (can_join(&wp->parked[i]) && wp->parked[i].pc == pc)
            return true;
    return false;
}

/* The running group goes on at `pc`, unless another one has to go first or waits there. */
static void go(struct warp *wp, uint32_t from, uint32_t pc) {
    struct group g = {.pc = pc, .mask = wp->run.mask, .late = late_at(wp, from, pc)};
    wp->run.pc = pc;
    if (wp->nparked)
        note_behind(wp, from, pc);
    if (rank_of(wp, &g) < wp->meet || (wp->rotated && pc != wp->until && !joins(wp, pc)))
        return;
    warp_park(wp, g);
    BUG_IF(!warp_pick(wp)); /* the group just parked can run */
}

void warp_go(struct warp *wp, uint32_t pc) {
    go(wp, pc - 1, pc);
}

/* Of the two sides of a branch the later one goes first, as far as where they meet: drawn. */
static bool far_first(const struct warp *wp, const struct instr *in, uint32_t late) {
    struct gang *g = wp->cta->gang;
    bool can = g->drawn && !wp->rotated && !late && in->join != UINT32_MAX &&
               in->target != in->join && wp->code[in->target].rank > wp->code[wp->run.pc + 1].rank;
    return can && draw_below(g, 2);
}

void warp_branch(struct worker *w, struct warp *wp, const struct instr *in, uint32_t taken) {
    uint32_t rest = wp->run.mask & ~taken, next = wp->run.pc + 1;
    uint32_t late = late_at(wp, next - 1, in->target);
    if (!rest) {
        go(wp, next - 1, in->target);
        return;
    }
    if (taken) {
        wp->parted = taken;
        w->c.divergent_branches++;
        w->traffic[w->in - w->p->code].divergent++;
        if (far_first(wp, in, late)) {
            warp_park(wp, (struct group){.pc = next, .mask = rest});
            wp->run = (struct group){.pc = in->target, .mask = taken};
            wp->rotated = true;
            wp->until = in->join;
            return;
        }
        wp->run.mask = rest;
        note_behind(wp, next - 1, in->target);
        warp_park(wp, (struct group){.pc = in->target, .mask = taken, .late = late});
    }
    warp_go(wp, next);
}

bool warp_branch_table(struct worker *w, struct warp *wp, const struct instr *in, uint32_t taken) {
    const u32_lane *index = (const u32_lane *)(wp->regs + in->a);
    uint32_t rest = wp->run.mask & ~taken, groups = rest != 0;
    for (uint32_t m = taken; m; groups++) {
        uint32_t which = index[__builtin_ctz(m)], here = 0;
        if (which >= in->ntargets)
            return fault_plain(w, SIM_TRAP, (unsigned)__builtin_ctz(m),
                               "branches past the end of its table");
        for (uint32_t k = m; k; k &= k - 1)
            here |= (uint32_t)(index[__builtin_ctz(k)] == which) << __builtin_ctz(k);
        warp_park(wp, (struct group){.pc = in->targets[which],
                                     .mask = here,
                                     .late = late_at(wp, wp->run.pc, in->targets[which])});
        m &= ~here;
    }
    if (rest)
        warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = rest});
    w->c.divergent_branches += groups > 1;
    w->traffic[w->in - w->p->code].divergent += groups > 1;
    return warp_pick(wp); /* there is one: what was just parked */
}

/* Exited lanes are gone; the rest of the group goes on behind the instruction. */
bool warp_leave(struct warp *wp, uint32_t mask) {
    wp->live &= ~mask;
    wp->run.mask &= ~mask;
    if (!wp->run.mask)
        return warp_pick(wp);
    warp_go(wp, wp->run.pc + 1);
    return true;
}

/* Lanes that an instruction with .sync names have to be there first. True: go on. */
bool warp_gathered(struct warp *wp, const struct instr *in, uint32_t at) {
    uint32_t members = ((const u32_lane *)(wp->regs + at))[__builtin_ctz(wp->run.mask)];
    if (wp->pass || !(members & wp->live & ~wp->run.mask)) {
        wp->pass = false;
        wp->parted &= ~wp->run.mask;
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

/* The group waits at the instruction it is at, and executes it when others let it. */
void warp_wait_here(struct warp *wp, uint32_t mask, enum wait wait) {
    uint32_t rest = wp->run.mask & ~mask;
    warp_park(wp, (struct group){.pc = wp->run.pc, .mask = mask, .wait = (uint8_t)wait});
    if (rest) /* lanes that the guard leaves out go on */
        warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = rest});
    wp->run.mask = 0;
}
