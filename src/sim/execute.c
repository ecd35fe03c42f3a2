/* Executing: one instruction after the other for the lanes that run, until the warp waits, has had
 * its share, or is done. Those that are furthest behind run, the others wait. */
#include "sim/check.h"
#include "sim/machine.h"
#include "sim/timing.h"
#include <fenv.h>
#include <string.h>

/* ---- the lanes of a warp ----
 *
 * Lanes that took different ways form groups. The group of the lowest rank runs; where it reaches
 * another group's place they go on together. Ranks are such (flow.c) that lanes meet again at the
 * post-dominator of the branch at which they parted. */

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

/* At a barrier for whole warps: lanes that waited while these ran ahead may still come. True: the
 * group waits. */
static bool warp_awaits_lanes(struct warp *wp) {
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

/* Another group's turn, if there is one. The running group waits for memory, perhaps for lanes of
 * its own warp: the one of the next rank runs, until it ends, waits or meets another one. */
static void warp_rotate(struct warp *wp) {
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

/* The running group goes on to `pc`, behind where it was, unless another one has to go first or
 * waits there. */
static void warp_go(struct warp *wp, uint32_t pc) {
    go(wp, pc - 1, pc);
}

/* Of the two sides of a branch the later one goes first, as far as where they meet: drawn. */
static bool far_first(const struct warp *wp, const struct instr *in, uint32_t late) {
    struct gang *g = wp->cta->gang;
    bool can = g->drawn && !wp->rotated && !late && in->join != UINT32_MAX &&
               in->target != in->join && wp->code[in->target].rank > wp->code[wp->run.pc + 1].rank;
    return can && draw_below(g, 2);
}

static void warp_branch(struct worker *w, struct warp *wp, const struct instr *in, uint32_t taken) {
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

static bool warp_branch_table(struct worker *w, struct warp *wp, const struct instr *in,
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

/* Exited lanes are gone; the rest of the group goes on behind the instruction. False: nothing is
 * left to run. */
static bool warp_leave(struct warp *wp, uint32_t mask) {
    wp->live &= ~mask;
    wp->run.mask &= ~mask;
    if (!wp->run.mask)
        return warp_pick(wp);
    warp_go(wp, wp->run.pc + 1);
    return true;
}

/* Lanes that an instruction with .sync names have to be there first. True: go on. */
static bool warp_gathered(struct warp *wp, const struct instr *in, uint32_t at) {
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
static void warp_wait_here(struct warp *wp, uint32_t mask, enum wait wait) {
    uint32_t rest = wp->run.mask & ~mask;
    warp_park(wp, (struct group){.pc = wp->run.pc, .mask = mask, .wait = (uint8_t)wait});
    if (rest) /* lanes that the guard leaves out go on */
        warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = rest});
    wp->run.mask = 0;
}

/* ---- instructions in which a lane sees the others: shuffles, votes, matches, elections, sums ----
 */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

typedef int32_t i32x4 __attribute__((vector_size(16), may_alias, aligned(4)));

/* Where four lanes read, and whether that is inside their segment: c holds the segment mask in bits
 * 8–12 and the clamp in bits 0–4. */
static inline i32x4 sources_of(enum shuffle_mode mode, i32x4 lane, i32x4 b, i32x4 c,
                               i32x4 *inside) {
    i32x4 segment = c >> 8 & 31, clamp = c & 31, delta = b & 31;
    i32x4 lowest = lane & segment, highest = lowest | (clamp & ~segment);
    i32x4 j = mode == SHUFFLE_UP     ? lane - delta
              : mode == SHUFFLE_DOWN ? lane + delta
              : mode == SHUFFLE_BFLY ? lane ^ delta
                                     : lowest | (delta & ~segment);
    i32x4 is = mode == SHUFFLE_UP ? j >= highest : j <= highest;
    *inside = is;
    return (j & 31 & is) | (lane & ~is);
}

static inline void find_sources(enum shuffle_mode mode, const u32_lane *b, const u32_lane *c,
                                uint32_t from[SIM_LANES], uint32_t inside[SIM_LANES]) {
    i32x4 lane = {0, 1, 2, 3};
    for (int i = 0; i < SIM_LANES; i += 4, lane += 4)
        *(i32x4 *)&from[i] = sources_of(mode, lane, *(const i32x4 *)&b[i], *(const i32x4 *)&c[i],
                                        (i32x4 *)&inside[i]);
}

/* From a lane that the mask does not name, or that is elsewhere, anything may come; where lanes are
 * drawn it is the lane's own value, since lanes with other masks need not be there. */
static void keep_own(const struct worker *w, const struct instr *in, uint32_t mask,
                     const uint32_t *from, uint32_t *value) {
    const u32_lane *a = (const u32_lane *)(w->warp->regs + in->a),
                   *members = (const u32_lane *)(w->warp->regs + in->e);
    i32x4 all = {(int32_t)mask, (int32_t)mask, (int32_t)mask, (int32_t)mask};
    for (unsigned i = 0; i < SIM_LANES; i += 4)
        all &= *(const i32x4 *)&members[i];
    if ((all[0] & all[1] & all[2] & all[3]) == -1)
        return;
    for (unsigned i = 0; i < SIM_LANES; i++)
        value[i] = (members[i] & mask) >> from[i] & 1 ? value[i] : a[i];
}

static void shuffle(struct worker *w, const struct instr *in, uint32_t mask) {
    uint8_t *regs = w->warp->regs;
    const u32_lane *a = (const u32_lane *)(regs + in->a), *b = (const u32_lane *)(regs + in->b),
                   *c = (const u32_lane *)(regs + in->c);
    uint32_t value[SIM_LANES], inside[SIM_LANES], from[SIM_LANES];
    switch ((enum shuffle_mode)in->mode) {
    case SHUFFLE_UP:
        find_sources(SHUFFLE_UP, b, c, from, inside);
        break;
    case SHUFFLE_DOWN:
        find_sources(SHUFFLE_DOWN, b, c, from, inside);
        break;
    case SHUFFLE_BFLY:
        find_sources(SHUFFLE_BFLY, b, c, from, inside);
        break;
    case SHUFFLE_IDX:
        find_sources(SHUFFLE_IDX, b, c, from, inside);
        break;
    }
    for (unsigned i = 0; i < SIM_LANES; i++)
        value[i] = a[from[i]];
    if (w->la->l->lanes)
        keep_own(w, in, mask, from, value);
    for (unsigned i = 0; i < SIM_LANES && w->la->check; i++)
        if (mask >> i & 1)
            order_check_source(w, in, mask, i, from[i]);
    lanes_blend(regs + in->d, (const uint8_t *)value, mask, 4);
    if (in->d2)
        lanes_blend(regs + in->d2, (const uint8_t *)inside, mask, 4);
}

static uint32_t vote(const struct instr *in, uint32_t p, uint32_t mask) {
    uint32_t yes = (in->negate ? ~p : p) & mask;
    switch ((enum vote_mode)in->mode) {
    case VOTE_ALL:
        return yes == mask ? ~0u : 0;
    case VOTE_ANY:
        return yes ? ~0u : 0;
    case VOTE_UNI:
        return yes == mask || yes == 0 ? ~0u : 0;
    case VOTE_BALLOT:
        break;
    }
    return yes;
}

static uint32_t combine(uint8_t mode, uint32_t x, uint32_t y) {
    switch ((enum redux_mode)mode) {
    case REDUX_ADD:
        return x + y;
    case REDUX_MIN_S:
        return (int32_t)x < (int32_t)y ? x : y;
    case REDUX_MAX_S:
        return (int32_t)x > (int32_t)y ? x : y;
    case REDUX_MIN_U:
        return x < y ? x : y;
    case REDUX_MAX_U:
        return x > y ? x : y;
    case REDUX_AND:
        return x & y;
    case REDUX_OR:
        return x | y;
    case REDUX_XOR:
        break;
    }
    return x ^ y;
}

static uint32_t redux(const struct instr *in, const u32_lane *a, uint32_t mask) {
    uint32_t r = a[__builtin_ctz(mask)];
    for (uint32_t m = mask & (mask - 1); m; m &= m - 1)
        r = combine(in->mode, r, a[__builtin_ctz(m)]);
    return r;
}

static uint64_t match_value(const struct instr *in, const uint8_t *regs, unsigned lane) {
    return in->wide ? ((const u64_lane *)(regs + in->a))[lane]
                    : ((const u32_lane *)(regs + in->a))[lane];
}

/* The lanes that have this lane's value; match.all: all of them or none. */
static void match(struct worker *w, const struct instr *in, uint32_t mask) {
    uint8_t *regs = w->warp->regs;
    uint32_t same[SIM_LANES] = {0}, all[SIM_LANES] = {0};
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        uint64_t v = match_value(in, regs, i);
        for (uint32_t k = mask; k; k &= k - 1)
            same[i] |= (uint32_t)(match_value(in, regs, (unsigned)__builtin_ctz(k)) == v)
                       << __builtin_ctz(k);
        all[i] = same[i] == mask ? ~0u : 0;
        if (in->mode == MATCH_ALL)
            same[i] &= all[i];
    }
    lanes_blend(regs + in->d, (const uint8_t *)same, mask, 4);
    if (in->d2)
        lanes_blend(regs + in->d2, (const uint8_t *)all, mask, 4);
}

/* The lowest lane leads. */
static void elect(struct worker *w, const struct instr *in, uint32_t mask) {
    uint32_t leader[SIM_LANES], is[SIM_LANES] = {0};
    for (unsigned i = 0; i < SIM_LANES; i++)
        leader[i] = (uint32_t)__builtin_ctz(mask);
    is[__builtin_ctz(mask)] = ~0u;
    lanes_blend(w->warp->regs + in->d, (const uint8_t *)leader, mask, 4);
    lanes_blend(w->warp->regs + in->d2, (const uint8_t *)is, mask, 4);
}

/* Lanes that name each other. */
static void run_members(struct worker *w, const struct instr *in, uint32_t mask) {
    uint8_t *regs = w->warp->regs;
    if (in->kind == KIND_MATCH) {
        match(w, in, mask);
        return;
    }
    if (in->kind == KIND_ELECT) {
        elect(w, in, mask);
        return;
    }
    uint32_t r = in->kind == KIND_VOTE    ? vote(in, lanes_mask(regs + in->a), mask)
                 : in->kind == KIND_REDUX ? redux(in, (const u32_lane *)(regs + in->a), mask)
                                          : mask;
    uint32_t all[SIM_LANES];
    for (unsigned i = 0; i < SIM_LANES; i++)
        all[i] = r;
    lanes_blend(regs + in->d, (const uint8_t *)all, mask, 4);
}

/* Groups of a warp may execute one instruction at the same time, each with a mask of its own. */
static void collective_run(struct worker *w, const struct instr *in, uint32_t mask) {
    const u32_lane *members = (const u32_lane *)(w->warp->regs + in->e);
    if (!mask)
        return;
    if (w->la->check && in->kind != KIND_ACTIVE)
        order_check_members(w, in, mask);
    if (in->kind == KIND_SHUFFLE) {
        shuffle(w, in, mask);
        return;
    }
    if (in->kind == KIND_ACTIVE) {
        run_members(w, in, mask);
        return;
    }
    while (mask) {
        uint32_t named = members[__builtin_ctz(mask)], part = 0;
        for (uint32_t m = mask; m; m &= m - 1)
            part |= (uint32_t)(members[__builtin_ctz(m)] == named) << __builtin_ctz(m);
        run_members(w, in, part);
        mask &= ~part;
    }
}

/* ---- matrices, mma and wmma: the whole warp, at once ---- */

typedef uint32_t u32_lane __attribute__((may_alias));

#define MAX_REGS 32u

static void pointers(const struct worker *w, const uint32_t *at, unsigned n, void **out) {
    for (unsigned i = 0; i < n; i++)
        out[i] = w->warp->regs + at[i];
}

static bool run_matrix(struct worker *w, const struct instr *in) {
    const struct tile_matrix *f = &in->tile->matrix;
    void *data[4];
    uint64_t address[SIM_LANES];
    uint8_t *row[SIM_LANES];
    uint32_t global;
    if (in->mode == MATRIX_MOVE) {
        tile_matrix_move((uint32_t *)(void *)(w->warp->regs + in->writes[0]),
                         (const uint32_t *)(void *)(w->warp->regs + in->reads[0]));
        return true;
    }
    bool load = in->mode == MATRIX_LOAD;
    uint32_t lanes = f->count == 4 ? FULL : (1u << 8 * f->count) - 1;
    memory_where(w, in, &in->tile->at, address);
    if (!memory_resolve(w, in->tile->at.space, lanes, address, TILE_MATRIX_ROW_BYTES,
                        TILE_MATRIX_ROW_BYTES, load ? USE_READ : USE_WRITE, row, &global))
        return false;
    pointers(w, load ? in->writes : in->reads + 1, f->count, data);
    if (load)
        tile_matrix_load(f, (const uint8_t *const *)row, (uint32_t *const *)data);
    else
        tile_matrix_store(f, row, (const uint32_t *const *)data);
    return true;
}

static void run_mma(struct worker *w, const struct instr *in) {
    const struct tile_mma *f = &in->tile->mma;
    void *d[MAX_REGS], *abc[MAX_REGS];
    pointers(w, in->writes, in->nwrites, d);
    pointers(w, in->reads, in->nreads, abc);
    const void *const *from = (const void *const *)abc;
    tile_mma_run(f, worker_tiles(w), d, from, from + f->na, from + f->na + f->nb);
}

/* One piece of one register, in every lane. */
static bool move_piece(struct worker *w, const struct instr *in, const uint64_t *base,
                       uint32_t stride, unsigned reg, unsigned piece) {
    const struct tile_fragment *f = &in->tile->fragment;
    int64_t offset[SIM_LANES];
    uint64_t address[SIM_LANES];
    uint8_t *at[SIM_LANES];
    uint32_t global, first = in->tile->has_stride ? 2 : 1;
    bool store = in->tile->store;
    tile_fragment_offsets(f, reg, piece, stride, offset);
    for (unsigned i = 0; i < SIM_LANES; i++)
        address[i] = base[i] + (uint64_t)offset[i];
    if (!memory_resolve(w, in->tile->at.space, FULL, address, f->piece_bytes, f->piece_bytes,
                        store ? USE_WRITE : USE_READ, at, &global))
        return false;
    uint8_t *r = w->warp->regs + (store ? in->reads[first + reg] : in->writes[reg]);
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint8_t *lane = r + (size_t)i * f->reg_bytes + (size_t)piece * f->piece_bytes;
        memcpy(store ? at[i] : lane, store ? lane : at[i], f->piece_bytes);
    }
    return true;
}

static bool run_fragment(struct worker *w, const struct instr *in) {
    const struct tile_fragment *f = &in->tile->fragment;
    uint64_t base[SIM_LANES];
    uint32_t stride = in->tile->has_stride ? *(const u32_lane *)(w->warp->regs + in->reads[1]) : 0;
    memory_where(w, in, &in->tile->at, base);
    for (unsigned r = 0; r < f->distinct; r++)
        for (unsigned p = 0; p < f->pieces; p++)
            if (!move_piece(w, in, base, stride, r, p))
                return false;
    for (unsigned r = f->distinct; !in->tile->store && r < f->nregs; r++)
        memcpy(w->warp->regs + in->writes[r], w->warp->regs + in->writes[r % f->distinct],
               (size_t)f->reg_bytes * SIM_LANES);
    return true;
}

static bool tensor_run(struct worker *w, const struct instr *in) {
    if (in->kind == KIND_MATRIX)
        return run_matrix(w, in);
    if (in->kind == KIND_FRAGMENT)
        return run_fragment(w, in);
    run_mma(w, in);
    return true;
}

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

/* Others may come between an atomic and whatever follows it: what tries again, and gives up at some
 * time, is seen to. */
static void draw_end_of_turn(struct worker *w) {
    if (!w->gang->drawn || w->fuel < 2 || draw_below(w->gang, 8) == 0)
        return;
    w->allowed -= w->fuel - 1;
    w->fuel = 1;
    w->gang->gives_way = draw_below(w->gang, 2);
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
        if (in->kind == KIND_ATOMIC)
            draw_end_of_turn(w);
        if (w->gang->time && timing_turn_over(w))
            return WARP_PAUSED;
    }
}
