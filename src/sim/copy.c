/* cp.async: each lane's copies are done when it waits for their group, or when somebody waits for
 * the mbarrier that follows them. Until then the destination keeps what it held. */
#include "sim/check.h"

#include <string.h>

#define MAX_UNDER_WAY 65536u

typedef uint32_t u32_lane __attribute__((may_alias));

static struct copy *add(struct worker *w, const struct instr *in, uint32_t mask) {
    struct warp *wp = w->warp;
    if (wp->ncopies == MAX_UNDER_WAY) {
        fault_plain(w, SIM_TRAP, (unsigned)__builtin_ctz(mask),
                    "has 65536 cp.async under way and waits for none of them");
        return NULL;
    }
    wp->copies = mem_grow(wp->copies, &wp->copies_cap, wp->ncopies + 1, sizeof *wp->copies);
    struct copy *c = &wp->copies[wp->ncopies++];
    c->in = in;
    c->mask = mask;
    memcpy(c->group, wp->copy_commits, sizeof c->group);
    return c;
}

static uint32_t source_bytes(const struct worker *w, const struct instr *in, unsigned lane) {
    const struct async_op *a = in->async;
    if (!a->source_size)
        return a->nbytes;
    uint32_t v = ((const u32_lane *)(w->warp->regs + in->reads[a->source_size]))[lane];
    if (a->ignorable)
        return v ? 0 : a->nbytes;
    return v < a->nbytes ? v : a->nbytes;
}

bool copy_issue(struct worker *w, const struct instr *in, uint32_t mask) {
    const struct async_op *a = in->async;
    uint64_t to[SIM_LANES], from[SIM_LANES];
    uint8_t *dst[SIM_LANES], *src[SIM_LANES];
    uint32_t global, reads = 0;
    struct copy *c = add(w, in, mask);
    if (!c)
        return false;
    memory_where(w, in, &a->to, to);
    memory_where(w, in, &a->from, from);
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        c->source[i] = (uint8_t)source_bytes(w, in, i);
        reads |= (uint32_t)(c->source[i] > 0) << i; /* with none the address is not looked at */
    }
    if (!memory_resolve(w, a->to.space, mask, to, a->nbytes, a->nbytes, USE_WRITE, dst, &global) ||
        (reads && !memory_resolve(w, a->from.space, reads, from, a->nbytes, a->nbytes, USE_READ,
                                  src, &global)))
        return false;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        c->to[i] = dst[i];
        c->from[i] = reads >> i & 1 ? src[i] : NULL;
    }
    w->c.async_bytes += (uint64_t)a->nbytes * (unsigned)__builtin_popcount(reads);
    return true;
}

void copy_commit(struct worker *w, uint32_t mask) {
    for (uint32_t m = mask; m; m &= m - 1)
        w->warp->copy_commits[__builtin_ctz(m)]++;
}

bool copy_arrive(struct worker *w, const struct instr *in, uint32_t mask) {
    uint64_t address[SIM_LANES];
    struct copy *c = add(w, in, mask);
    if (!c)
        return false;
    memory_where(w, in, &in->async->bar, address);
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        c->to[i] = memory_range(w, in->async->bar.space, i, address[i], 8, 8, USE_BARRIER);
        if (!c->to[i])
            return false;
        if (!in->async->no_increase &&
            tile_mbarrier_expect_arrival((uint64_t *)(void *)c->to[i]) > MBARRIER_COMPLETED)
            return fault_plain(w, SIM_TRAP, i, "arrives at an mbarrier that was not initialised");
    }
    return true;
}

static bool perform(struct worker *w, struct copy *c, uint32_t lanes) {
    c->mask &= ~lanes;
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m), n = c->in->async->nbytes;
        if (c->in->kind == KIND_COPY_ARRIVE) {
            const struct instr *here = w->in;
            w->in = c->in;
            if (!mbarrier_arrive(w, i, c->to[i]))
                return false;
            w->in = here;
            continue;
        }
        if (c->source[i] == 16) { /* the common case, as one move */
            memcpy(c->to[i], c->from[i], 16);
        } else {
            memset(c->to[i], 0, n);
            if (c->source[i])
                memcpy(c->to[i], c->from[i], c->source[i]);
        }
        if (w->la->check)
            check_arrived(w, c->in, i, c->to[i], n);
    }
    return true;
}

static void forget_done(struct warp *wp) {
    size_t n = 0;
    while (n < wp->ncopies && !wp->copies[n].mask)
        n++;
    if (n)
        memmove(wp->copies, wp->copies + n, (wp->ncopies - n) * sizeof *wp->copies);
    wp->ncopies -= n;
}

/* One that may be done at any time; an arrival only where the lane's copies before it are. */
bool copy_early(struct worker *w, struct warp *wp, size_t which, uint32_t lanes) {
    struct copy *c = &wp->copies[which];
    lanes &= c->mask;
    for (size_t k = 0; c->in->kind == KIND_COPY_ARRIVE && k < which; k++)
        lanes &= ~wp->copies[k].mask;
    w->cta = wp->cta;
    w->warp = wp;
    bool ok = !lanes || perform(w, c, lanes);
    forget_done(wp);
    return ok;
}

/* All but the last `groups` groups of each lane; UINT32_MAX: everything, committed or not. */
bool copy_wait(struct worker *w, uint32_t groups, uint32_t mask) {
    struct warp *wp = w->warp;
    for (size_t k = 0; k < wp->ncopies; k++) {
        struct copy *c = &wp->copies[k];
        uint32_t lanes = 0;
        for (uint32_t m = c->mask & mask; m; m &= m - 1) {
            unsigned i = (unsigned)__builtin_ctz(m);
            bool due = groups == UINT32_MAX || (uint64_t)c->group[i] + groups < wp->copy_commits[i];
            lanes |= (uint32_t)due << i;
        }
        if (lanes && !perform(w, c, lanes))
            return false;
    }
    forget_done(wp);
    return true;
}

static bool has_arrival(const struct warp *wp, size_t *at) {
    for (*at = 0; *at < wp->ncopies; ++*at)
        if (wp->copies[*at].in->kind == KIND_COPY_ARRIVE)
            return true;
    return false;
}

bool copy_advance(struct worker *w, struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            size_t last;
            if (!has_arrival(wp, &last))
                continue;
            w->cta = &g->ctas[c];
            w->warp = wp;
            for (size_t k = 0; k <= last; k++)
                if (!perform(w, &wp->copies[k], wp->copies[k].mask))
                    return false;
            forget_done(wp);
            return true;
        }
    return false;
}
