/* What orders accesses: clocks, and the events that carry them from one party to another. */
#include "sim/check.h"

#include <string.h>

#define MAX_DEPTH  3u     /* of releases that hand on what they took over */
#define MAX_SEARCH 65536u /* nodes looked at for one question; then the answer is "ordered" */

uint32_t order_warp_slot(const struct launch *la, const struct warp *wp) {
    return wp->cta->rank * (la->nwarps + 1) + wp->index;
}

static uint32_t agent_slot(const struct launch *la, const struct cta *c) {
    return c->rank * (la->nwarps + 1) + la->nwarps;
}

uint32_t order_slot(const struct worker *w) {
    return w->agent ? agent_slot(w->la, w->warp->cta) : order_warp_slot(w->la, w->warp);
}

uint32_t *order_clock(const struct worker *w, uint32_t slot) {
    return w->gang->check->clocks + (size_t)slot * w->gang->check->slots;
}

static void join(uint32_t *to, const uint32_t *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

static uint32_t *warp_clock(const struct worker *w, const struct warp *wp) {
    return order_clock(w, order_warp_slot(w->la, wp));
}

/* Whatever the warp does from now on is later than what it has told others. */
static void tick(const struct worker *w, const struct warp *wp) {
    uint32_t slot = order_warp_slot(w->la, wp);
    order_clock(w, slot)[slot]++;
}

static void synced(struct worker *w, const struct warp *wp, uint32_t mask) {
    uint32_t slot = order_warp_slot(w->la, wp), now = order_clock(w, slot)[slot];
    for (uint32_t m = mask; m; m &= m - 1)
        w->gang->check->warps[slot].synced[__builtin_ctz(m)] = now;
}

void order_warp_sync(struct worker *w, const struct warp *wp, uint32_t mask) {
    tick(w, wp);
    synced(w, wp, mask);
}

static struct snapshot *snapshot(struct worker *w, const struct warp *wp) {
    const struct gang_check *g = w->gang->check;
    struct snapshot *s = check_alloc(w, sizeof *s + g->slots * sizeof *s->clock);
    if (!s)
        return NULL;
    s->gang = (uint32_t)w->gang->ordinal;
    s->taken = g->taken;
    memcpy(s->clock, warp_clock(w, wp), g->slots * sizeof *s->clock);
    return s;
}

void order_fence(struct worker *w, const struct warp *wp, uint8_t mode) {
    struct gang_check *g = w->gang->check;
    if (mode == FENCE_PROXY)
        join(g->fenced, warp_clock(w, wp), g->slots);
    else if (mode == FENCE_GPU)
        g->warps[order_warp_slot(w->la, wp)].release = snapshot(w, wp);
    else
        return;
    tick(w, wp);
}

static uint32_t *bar_clock(const struct worker *w, const struct cta *c, uint8_t id) {
    const struct gang_check *g = w->gang->check;
    return g->bars + ((size_t)c->rank * NAMED + id) * g->slots;
}

void order_barrier_arrive(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask) {
    (void)mask;
    join(bar_clock(w, wp->cta, id), warp_clock(w, wp), w->gang->check->slots);
    tick(w, wp);
}

void order_barrier_pass(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask) {
    join(warp_clock(w, wp), bar_clock(w, wp->cta, id), w->gang->check->slots);
    synced(w, wp, mask);
}

void order_barrier_opened(struct worker *w, const struct cta *c, uint8_t id) {
    memset(bar_clock(w, c, id), 0, w->gang->check->slots * sizeof(uint32_t));
}

void order_cluster_arrive(struct worker *w, const struct warp *wp, bool relaxed) {
    struct gang_check *g = w->gang->check;
    if (relaxed)
        return;
    join(g->cluster_arrived, warp_clock(w, wp), g->slots);
    tick(w, wp);
}

void order_cluster_complete(struct worker *w, struct gang *gang) {
    struct gang_check *g = gang->check;
    (void)w;
    join(g->cluster_done, g->cluster_arrived, g->slots);
    memset(g->cluster_arrived, 0, g->slots * sizeof *g->cluster_arrived);
}

void order_cluster_pass(struct worker *w, const struct warp *wp, uint32_t mask) {
    join(warp_clock(w, wp), w->gang->check->cluster_done, w->gang->check->slots);
    synced(w, wp, mask);
}

/* An mbarrier, by the block that has it and its offset there. */
static struct place_clock *place_of(struct worker *w, const uint8_t *at) {
    struct gang_check *g = w->gang->check;
    uint32_t address = 0;
    for (uint32_t c = 0; c < w->gang->n; c++) {
        const uint8_t *shared = w->gang->ctas[c].shared;
        if (at >= shared && at < shared + w->la->shared_bytes)
            address = c << RANK_SHIFT | (uint32_t)(at - shared);
    }
    for (size_t i = 0; i < g->nplaces; i++)
        if (g->places[i].address == address)
            return &g->places[i];
    g->places = mem_grow(g->places, &g->places_cap, g->nplaces + 1, sizeof *g->places);
    struct place_clock *p = &g->places[g->nplaces++];
    *p = (struct place_clock){.address = address};
    p->pending = mem_alloc(g->slots * sizeof *p->pending);
    p->done = mem_alloc(g->slots * sizeof *p->done);
    return p;
}

void order_place_arrive(struct worker *w, const uint8_t *place, bool agent) {
    struct place_clock *p = place_of(w, place);
    uint32_t slot = agent ? agent_slot(w->la, w->warp->cta) : order_warp_slot(w->la, w->warp);
    join(p->pending, order_clock(w, slot), w->gang->check->slots);
    order_clock(w, slot)[slot]++;
}

void order_place_complete(struct worker *w, const uint8_t *place) {
    struct place_clock *p = place_of(w, place);
    join(p->done, p->pending, w->gang->check->slots);
    memset(p->pending, 0, w->gang->check->slots * sizeof *p->pending);
}

void order_place_pass(struct worker *w, const struct warp *wp, const uint8_t *place) {
    join(warp_clock(w, wp), place_of(w, place)->done, w->gang->check->slots);
}

/* The copies of a block know what the warps knew that asked for them. */
void order_copy_issue(struct worker *w) {
    join(order_clock(w, agent_slot(w->la, w->warp->cta)), warp_clock(w, w->warp),
         w->gang->check->slots);
    tick(w, w->warp);
}

void order_copy_waited(struct worker *w, const struct warp *wp) {
    uint32_t slot = agent_slot(w->la, wp->cta);
    join(warp_clock(w, wp), order_clock(w, slot), w->gang->check->slots);
    order_clock(w, slot)[slot]++;
}

static void release_to(struct worker *w, uint64_t address, const struct snapshot *what,
                       bool replaces) {
    struct sync_place *p = what ? check_place(w, address, true) : NULL;
    struct taken *node = p ? check_alloc(w, sizeof *node) : NULL;
    if (!node)
        return;
    *node = (struct taken){.next = replaces ? NULL : p->released, .what = what};
    if (!replaces && p->released && p->released->what == what)
        return; /* it is there already */
    p->released = node;
}

static void take_over(struct worker *w, uint64_t address) {
    struct gang_check *g = w->gang->check;
    uint32_t slot = order_warp_slot(w->la, w->warp);
    struct warp_check *wc = &g->warps[slot];
    const struct sync_place *p = check_place(w, address, false);
    if (!p || (wc->place == p && wc->newest == p->released))
        return;
    const struct taken *until = wc->place == p ? wc->newest : NULL;
    for (const struct taken *t = p->released; t && t != until; t = t->next) {
        struct taken *node =
            t->what->gang == w->gang->ordinal ? NULL : check_alloc(w, sizeof *node);
        if (!node)
            continue;
        *node = (struct taken){g->taken, t->what, slot, order_clock(w, slot)[slot]};
        g->taken = node;
    }
    wc->place = p;
    wc->newest = p->released;
    /* Within the gang it orders as well. */
    for (const struct taken *t = p->released; t && t != until; t = t->next)
        if (t->what->gang == w->gang->ordinal)
            join(order_clock(w, slot), t->what->clock, g->slots);
}

void order_strong(struct worker *w, uint64_t address, bool reads, bool writes) {
    const struct access *a = w->in->mem;
    const struct warp_check *wc = &w->gang->check->warps[order_warp_slot(w->la, w->warp)];
    if (reads)
        take_over(w, address);
    if (!writes)
        return;
    const struct snapshot *what = wc->release;
    if (a && a->release) {
        what = snapshot(w, w->warp);
        tick(w, w->warp);
    }
    release_to(w, address, what, !reads);
}

struct search {
    const struct mark *m;
    unsigned left;
};

static bool handed_on(const struct taken *t, const uint32_t *clock, struct search *s,
                      unsigned depth) {
    for (; t; t = t->next) {
        if (s->left-- == 0) {
            s->left = 1;
            return true;
        }
        if (clock && clock[t->slot] < t->clock)
            continue; /* another warp took it over, and this one does not know */
        if (t->what->gang == s->m->gang && t->what->clock[s->m->slot] >= s->m->clock)
            return true;
        if (depth && handed_on(t->what->taken, NULL, s, depth - 1))
            return true;
    }
    return false;
}

bool order_knows(const struct worker *w, const struct mark *m) {
    const uint32_t *clock = order_clock(w, order_slot(w));
    if (m->gang == w->gang->ordinal)
        return clock[m->slot] >= m->clock;
    struct search s = {m, MAX_SEARCH};
    return handed_on(w->gang->check->taken, clock, &s, MAX_DEPTH);
}

/* A barrier that the whole warp has to reach together. */
void order_check_barrier(struct worker *w, const struct warp *wp, const struct instr *in,
                         uint32_t mask) {
    if (!in->wide || mask == wp->live || !(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    const struct instr *other = NULL;
    uint32_t elsewhere = wp->live & ~mask;
    for (unsigned k = 0; k < wp->nparked; k++)
        if (wp->parked[k].mask & elsewhere)
            other = &w->p->code[wp->parked[k].pc];
    struct text t = finding_begin(w, SIM_CHECK_SYNC, in, wp, (unsigned)__builtin_ctz(mask), other);
    if (!t.p)
        return;
    text_say(&t, "reaches '%.*s' with %d of the %d lanes of its warp",
             STR_ARG(str_cut(in->src->text, 0, 60)), __builtin_popcount(mask),
             __builtin_popcount(wp->live));
    if (other) {
        text_say(&t, "; the others are at ");
        finding_line(w, &t, other);
    }
    text_say(&t, "; a barrier must not be in code that only part of a warp runs");
}
