/* Orders other than the first: at every place where a GPU has a choice, one of those that it has.
 *
 * Which warp runs next and for how long; warps that lag behind others for a while; which side of a
 * branch goes first (warp.c); in which order blocks start and which of them runs; when copies and
 * products are done, early, late and in any order among themselves; whether a store has read its
 * source long before it writes; whether a thread learns at once that a phase has ended; which
 * lane's value stays where several store to one place with one instruction, and whose atomic comes
 * first. */
#include "sim/machine.h"

#include "base/rng.h"

#include <string.h>

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

void draw_start(const struct launch *la, struct gang *g) {
    g->drawn = la->l->order != 0;
    uint64_t seed = g->drawn ? la->l->order : la->l->lanes;
    if (seed)
        g->draw = rng_u64(rng_stream(seed, S("order")), g->ordinal);
}

/* Blocks that wait for each other may rely on it that those before them have started, where not all
 * of them can be there at a time: hardware starts them in order. */
uint32_t *draw_shuffle(const struct launch *la) {
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

uint64_t draw_turn(struct gang *g) {
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

/* Mostly one thing or none; now and then all that is under way. */
bool draw_events(struct worker *w, struct gang *g) {
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
