/* What orders accesses: clocks, and the events that carry them from one party to another. */
#include "sim/check.h"

#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));

#define MAX_DEPTH  3u     /* of releases that hand on what they took over */
#define MAX_SEARCH 65536u /* nodes looked at for one question; then the answer is "ordered" */

uint32_t order_warp_slot(const struct launch *la, const struct warp *wp) {
    return wp->cta->rank * la->slots + wp->index;
}

uint32_t order_agent_slot(const struct launch *la, const struct cta *c) {
    return c->rank * la->slots + la->nwarps;
}

/* Of the four warps that multiply together. */
static uint32_t product_slot(const struct launch *la, const struct warp *wp) {
    return wp->cta->rank * la->slots + la->nwarps + 1 + wp->index / 4;
}

uint32_t order_slot(const struct worker *w) {
    return w->agent     ? order_agent_slot(w->la, w->warp->cta)
           : w->product ? product_slot(w->la, w->warp)
                        : order_warp_slot(w->la, w->warp);
}

uint32_t *order_clock(const struct worker *w, uint32_t slot) {
    return w->gang->check->clocks + (size_t)slot * w->gang->check->slots;
}

void order_join(uint32_t *to, const uint32_t *from, uint32_t n) {
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

static struct snapshot *snapshot(struct worker *w, const struct warp *wp, bool near) {
    const struct gang_check *g = w->gang->check;
    struct snapshot *s = check_alloc(w, sizeof *s + g->slots * sizeof *s->clock);
    if (!s)
        return NULL;
    s->gang = (uint32_t)w->gang->ordinal;
    s->taken = g->taken;
    s->near = near;
    memcpy(s->clock, warp_clock(w, wp), g->slots * sizeof *s->clock);
    return s;
}

void order_fence(struct worker *w, const struct warp *wp, uint8_t mode) {
    struct gang_check *g = w->gang->check;
    struct warp_check *wc = &g->warps[order_warp_slot(w->la, wp)];
    if (mode == FENCE_PROXY)
        order_join(g->fenced, warp_clock(w, wp), g->slots);
    else
        wc->near = snapshot(w, wp, mode != FENCE_GPU);
    if (mode == FENCE_GPU)
        wc->release = wc->near;
    tick(w, wp);
}

static uint32_t *bar_clock(const struct worker *w, const struct cta *c, uint8_t id) {
    const struct gang_check *g = w->gang->check;
    return g->bars + ((size_t)c->rank * NAMED + id) * g->slots;
}

void order_barrier_arrive(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask) {
    (void)mask;
    order_join(bar_clock(w, wp->cta, id), warp_clock(w, wp), w->gang->check->slots);
    tick(w, wp);
}

void order_barrier_pass(struct worker *w, const struct warp *wp, uint8_t id, uint32_t mask) {
    order_join(warp_clock(w, wp), bar_clock(w, wp->cta, id), w->gang->check->slots);
    synced(w, wp, mask);
}

void order_barrier_opened(struct worker *w, const struct cta *c, uint8_t id) {
    memset(bar_clock(w, c, id), 0, w->gang->check->slots * sizeof(uint32_t));
}

void order_cluster_arrive(struct worker *w, const struct warp *wp, bool relaxed) {
    struct gang_check *g = w->gang->check;
    const struct snapshot *fenced = g->warps[order_warp_slot(w->la, wp)].near;
    if (!relaxed)
        order_join(g->cluster_arrived, warp_clock(w, wp), g->slots);
    else if (fenced) /* what a fence before it covers is published all the same */
        order_join(g->cluster_arrived, fenced->clock, g->slots);
    tick(w, wp);
}

void order_cluster_complete(struct worker *w, struct gang *gang) {
    struct gang_check *g = gang->check;
    (void)w;
    order_join(g->cluster_done, g->cluster_arrived, g->slots);
    memset(g->cluster_arrived, 0, g->slots * sizeof *g->cluster_arrived);
}

void order_cluster_pass(struct worker *w, const struct warp *wp, uint32_t mask) {
    order_join(warp_clock(w, wp), w->gang->check->cluster_done, w->gang->check->slots);
    synced(w, wp, mask);
}

/* What a thread knows goes with the copy it asks for. */
uint32_t *order_copy_issue(struct worker *w) {
    uint32_t n = w->gang->check->slots, *clock = mem_alloc(n * sizeof *clock);
    memcpy(clock, warp_clock(w, w->warp), n * sizeof *clock);
    tick(w, w->warp);
    return clock;
}

void order_copy_begin(struct worker *w, const uint32_t *clock) {
    struct gang_check *g = w->gang->check;
    uint32_t slot = order_agent_slot(w->la, w->warp->cta);
    memcpy(order_clock(w, slot), clock, g->slots * sizeof *clock);
    g->work[slot]++;
}

static void worked(struct worker *w, const struct warp *wp, uint32_t slot) {
    uint32_t *clock = warp_clock(w, wp), now = w->gang->check->work[slot];
    clock[slot] = now > clock[slot] ? now : clock[slot];
}

void order_copy_waited(struct worker *w, const struct warp *wp) {
    worked(w, wp, order_agent_slot(w->la, wp->cta));
}

void order_product_issue(struct worker *w, uint32_t *clocks) {
    uint32_t n = w->gang->check->slots;
    memcpy(clocks + (w->warp->index % 4) * (size_t)n, warp_clock(w, w->warp), n * sizeof *clocks);
    tick(w, w->warp);
}

void order_product_begin(struct worker *w, const uint32_t *clocks, unsigned warp) {
    struct gang_check *g = w->gang->check;
    uint32_t slot = product_slot(w->la, w->warp), n = g->slots, *to = order_clock(w, slot);
    memcpy(to, clocks + (warp % 4) * (size_t)n, n * sizeof *to);
    for (unsigned i = 1; warp == 4 && i < 4; i++) /* what all of them knew */
        for (uint32_t k = 0; k < n; k++)
            to[k] = clocks[i * n + k] < to[k] ? clocks[i * n + k] : to[k];
    g->work[slot]++;
}

void order_product_waited(struct worker *w, const struct warp *wp) {
    worked(w, wp, product_slot(w->la, wp));
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

/* What lanes of the same warp released there; clocks of a warp only rise, so the last few do. */
static void hear(struct worker *w, unsigned lane, const struct sync_place *p) {
    uint32_t slot = order_warp_slot(w->la, w->warp), left = 2 * SIM_LANES;
    uint32_t *heard = &w->gang->check->warps[slot].heard[lane];
    for (const struct taken *t = p->released; t && left-- > 0; t = t->next)
        if (t->what->gang == w->gang->ordinal && t->what->clock[slot] > *heard)
            *heard = t->what->clock[slot];
}

static void take_over(struct worker *w, unsigned lane, uint64_t address) {
    struct gang_check *g = w->gang->check;
    uint32_t slot = order_warp_slot(w->la, w->warp);
    struct warp_check *wc = &g->warps[slot];
    const struct sync_place *p = check_place(w, address, false);
    if (p)
        hear(w, lane, p);
    if (!p || (wc->place == p && wc->newest == p->released))
        return;
    const struct taken *until = wc->place == p ? wc->newest : NULL;
    for (const struct taken *t = p->released; t && t != until; t = t->next) {
        struct taken *node = t->what->gang == w->gang->ordinal || t->what->near
                                 ? NULL
                                 : check_alloc(w, sizeof *node);
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
            order_join(order_clock(w, slot), t->what->clock, g->slots);
}

/* Shared memory's addresses are a gang's own. */
static uint64_t strong_place(const struct worker *w, uint64_t address, bool shared) {
    uint64_t own = address >> RANK_SHIFT ? 0 : (uint64_t)(w->warp->cta->rank + 1) << RANK_SHIFT;
    return shared ? UINT64_C(1) << 63 | w->gang->ordinal << 32 | own | address : address;
}

void order_strong(struct worker *w, unsigned lane, uint64_t where, bool shared, bool reads,
                  bool writes) {
    const struct access *a = w->in->mem;
    uint32_t slot = order_warp_slot(w->la, w->warp);
    struct warp_check *wc = &w->gang->check->warps[slot];
    uint64_t address = strong_place(w, where, shared);
    if (reads)
        take_over(w, lane, address);
    if (!writes)
        return;
    const struct snapshot *what = wc->release;
    if (a && a->release) {
        what = snapshot(w, w->warp, a->narrow);
        tick(w, w->warp);
    }
    const struct snapshot *last = a && a->release ? what : wc->near;
    if (last && last->clock[slot] > wc->told[lane])
        wc->told[lane] = last->clock[slot];
    release_to(w, address, what, !reads);
    if (wc->near != wc->release)
        release_to(w, address, wc->near, false);
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

static void say_instr(struct text *t, const struct instr *in) {
    text_say(t, "'%.*s'", STR_ARG(str_cut(in->src->text, 0, 60)));
}

/* All who meet at a barrier give it the same number of threads, in whole warps. */
void order_check_count(struct worker *w, const struct warp *wp, const struct instr *in, uint8_t id,
                       uint32_t mask, uint32_t count) {
    struct named_barrier *b = &wp->cta->bars[id];
    uint32_t given = count ? count : w->la->nwarps * SIM_LANES;
    const struct instr *other = b->first && b->given != given ? b->first : NULL;
    if (!b->first) {
        b->first = in;
        b->given = given;
    }
    if ((!other && given % SIM_LANES == 0) || !(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    struct text t = finding_begin(w, SIM_CHECK_SYNC, in, wp, (unsigned)__builtin_ctz(mask), other);
    if (!t.p)
        return;
    text_say(&t, "gives barrier %u a count of %u threads", id, given);
    if (!other) {
        text_say(&t, "; it must be a multiple of 32");
        return;
    }
    text_say(&t, ", others who wait there gave it %u at ", b->given);
    finding_line(w, &t, other);
}

void order_check_members(struct worker *w, const struct instr *in, uint32_t mask) {
    uint32_t at = in->kind == KIND_WARP_SYNC ? in->a : in->e, missing = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        missing |= ~((const u32_lane *)(w->warp->regs + at))[i] & 1u << i;
    }
    if (!missing || !(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    struct text t =
        finding_begin(w, SIM_CHECK_SYNC, in, w->warp, (unsigned)__builtin_ctz(missing), NULL);
    if (!t.p)
        return;
    text_say(&t, "executes ");
    say_instr(&t, in);
    text_say(&t, ", whose mask of lanes does not name it");
}

void order_check_source(struct worker *w, const struct instr *in, uint32_t mask, unsigned lane,
                        unsigned from) {
    uint32_t members = ((const u32_lane *)(w->warp->regs + in->e))[lane];
    /* A block's last warp may have fewer lanes; who asks those that never were does not use it. */
    bool never = w->warp->index * SIM_LANES + from >= w->la->threads;
    if ((members & mask) >> from & 1 || never || !(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    struct text t = finding_begin(w, SIM_CHECK_SYNC, in, w->warp, lane, NULL);
    if (!t.p)
        return;
    text_say(&t, "shuffles from an absent lane: takes the value of lane %u with ", from);
    say_instr(&t, in);
    text_say(&t, ", which that lane does not execute%s: the value is undefined",
             members >> from & 1 ? "" : " and the mask does not name");
}
