/* Instructions in which a lane sees the others: shuffles, votes, matches, elections, reductions,
 * the active mask. */
#include "sim/check.h"

#include <string.h>

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
void collective_run(struct worker *w, const struct instr *in, uint32_t mask) {
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
