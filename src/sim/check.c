/* The checks: clocks and what carries them, races, mbarriers, the registers of products under way,
 * and what was read though nothing wrote it. Last stands what they keep: findings, shadows of
 * buffers, what gangs know. */
#include "sim/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t check_granule(const struct worker *w);
static void *check_alloc(struct worker *w, size_t bytes);
static struct cell *check_page(struct worker *w, size_t map, size_t page);
static struct sync_place *check_place(struct worker *w, uint64_t address, bool make);
static void finding_line(const struct worker *w, struct text *t, const struct instr *in);
static void finding_thread(const struct worker *w, struct text *t, const struct mark *m);
static void check_guest(struct worker *w, const struct cta *owner, unsigned lane);

/* ---- what orders accesses: clocks, and the events that carry them from one party to another ----
 */

typedef uint32_t u32_lane __attribute__((may_alias));

#define MAX_DEPTH  3u     /* of releases that hand on what they took over */
#define MAX_SEARCH 65536u /* nodes looked at for one question; then the answer is "ordered" */

static uint32_t order_warp_slot(const struct launch *la, const struct warp *wp) {
    return wp->cta->rank * la->slots + wp->index;
}

static uint32_t order_agent_slot(const struct launch *la, const struct cta *c) {
    return c->rank * la->slots + la->nwarps;
}

/* Of the four warps that multiply together. */
static uint32_t product_slot(const struct launch *la, const struct warp *wp) {
    return wp->cta->rank * la->slots + la->nwarps + 1 + wp->index / 4;
}

/* Of the running warp or copy. */
static uint32_t order_slot(const struct worker *w) {
    return w->agent     ? order_agent_slot(w->la, w->warp->cta)
           : w->product ? product_slot(w->la, w->warp)
                        : order_warp_slot(w->la, w->warp);
}

static uint32_t *order_clock(const struct worker *w, uint32_t slot) {
    return w->gang->check->clocks + (size_t)slot * w->gang->check->slots;
}

static void order_join(uint32_t *to, const uint32_t *from, uint32_t n) {
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

static void order_product_waited(struct worker *w, const struct warp *wp) {
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

/* Does the running party know of what `m` did? */
static bool order_knows(const struct worker *w, const struct mark *m) {
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

/* ---- races: what the granules of memory remember, and whether an access knows of it ---- */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

static struct party race_party(const struct worker *w, enum use use) {
    const struct instr *in = w->in;
    uint32_t slot = order_slot(w);
    struct party p = {.writes = use != USE_READ, .clock = order_clock(w, slot)};
    p.strong = use == USE_ATOMIC || (in->mem && (in->mem->strong || in->mem->guess));
    p.cached = !p.writes && in->mem && in->mem->fixed_content;
    bool agent = w->agent || w->product, narrow = p.strong && in->mem && in->mem->narrow;
    p.warp = agent ? NULL : &w->gang->check->warps[slot];
    p.mark = (struct mark){
        .gang = (uint32_t)w->gang->ordinal,
        .clock = agent ? w->gang->check->work[slot] : p.clock[slot],
        .pc = (uint32_t)(in - w->p->code),
        .slot = (uint16_t)slot,
        .flags = (uint8_t)(MARK_SET | (p.strong ? MARK_STRONG : 0) | (w->agent ? MARK_AGENT : 0) |
                           (w->product ? MARK_PRODUCT : 0) | (narrow ? MARK_NARROW : 0))};
    if (in->mem && in->mem->unordered && in->mem->space == PTX_SHARED)
        p.mark.flags |= MARK_LEGACY;
    if (in->kind == KIND_COPY && p.writes)
        p.mark.flags |= MARK_PENDING;
    return p;
}

/* Strong accesses do not race, unless one of them is so for its own block alone. */
static bool in_scope(const struct worker *w, const struct mark *a, const struct mark *b) {
    uint32_t slots = w->la->slots;
    bool same = a->gang == b->gang && a->slot / slots == b->slot / slots;
    return same || !((a->flags | b->flags) & MARK_NARROW);
}

/* Lanes of one warp that exchange values through volatile memory, as before they had counters of
 * their own: each sees the others' values, but which? */
static bool warp_synchronous(const struct party *p, const struct mark *m) {
    return p->mark.flags & m->flags & MARK_LEGACY && p->warp && m->gang == p->mark.gang &&
           m->slot == p->mark.slot;
}

static bool ordered(const struct worker *w, const struct party *p, const struct mark *m) {
    const struct mark *me = &p->mark;
    if (m->flags & MARK_PENDING)
        return false;
    if (p->strong && m->flags & MARK_STRONG && in_scope(w, me, m) && !warp_synchronous(p, m))
        return true;
    if (m->gang != me->gang)
        return order_knows(w, m);
    if (m->slot != me->slot)
        return p->clock[m->slot] >= m->clock;
    if (!p->warp) /* pieces of one copy, or an earlier one that somebody waited for */
        return m->clock == me->clock || p->clock[m->slot] >= m->clock;
    if (m->lane == me->lane && !(m->flags & MARK_SEVERAL))
        return true;
    if (m->pc == me->pc && m->clock == me->clock)
        return true;
    bool several = m->flags & MARK_SEVERAL;
    if (p->warp->heard[me->lane] >= m->clock && (several || p->warp->told[m->lane] >= m->clock))
        return true;
    return p->warp->synced[me->lane] > m->clock && (several || p->warp->synced[m->lane] > m->clock);
}

/* A store of what is there already. */
static bool changes_nothing(const struct worker *w, const struct touch *t) {
    const struct access *a = w->in->mem;
    if (w->in->kind != KIND_STORE || w->agent)
        return false;
    for (unsigned k = 0; k < a->count; k++) {
        const uint8_t *reg = w->warp->regs + a->reg[k];
        uint64_t v =
            a->reg_bytes == 8 ? ((const u64_lane *)reg)[t->lane] : ((const u32_lane *)reg)[t->lane];
        if (memcmp(&v, t->at + (size_t)k * a->width, a->width) != 0)
            return false;
    }
    return true;
}

static void say_place(const struct worker *w, struct text *out, const struct touch *t) {
    if (t->space == PTX_GLOBAL)
        fault_place(w, out, w->la->m->maps[t->map].base + t->offset);
    else
        text_say(out, "shared memory + %" PRIu64, t->offset);
}

static const char *remedy(const struct worker *w, const struct party *p, const struct mark *m) {
    if (m->flags & MARK_PENDING)
        return "; that copy has not been waited for (cp.async.wait_group)";
    if ((m->flags | p->mark.flags) & MARK_NARROW && m->flags & MARK_STRONG)
        return "; one of them is atomic for the threads of its own block alone";
    if (m->gang != p->mark.gang)
        return "; nothing orders blocks of a grid but fences with atomics or flags";
    if (m->flags & MARK_PRODUCT)
        return "; that product has not been waited for (wgmma.wait_group)";
    if (p->mark.flags & MARK_PRODUCT)
        return "; nothing orders them before the wgmma is issued, or after it is waited for";
    if (p->mark.flags & MARK_AGENT)
        return "; nothing orders them before the copy is asked for, or after it is waited for";
    if (m->slot == p->mark.slot && w->la->nwarps == 1)
        return "; lanes of a warp need __syncwarp() between them";
    if (m->slot == p->mark.slot)
        return "; no barrier orders them: __syncthreads(), or __syncwarp() where only lanes of one "
               "warp meet";
    if (m->flags & MARK_AGENT)
        return "; nobody waited for that copy's mbarrier or group in between";
    return "; no barrier orders them";
}

static void report(struct worker *w, const struct touch *t, const struct party *p,
                   const struct mark *m, bool wrote) {
    const struct instr *other = &w->p->code[m->pc];
    struct text out = finding_begin(w, SIM_CHECK_RACE, w->in, w->warp, t->lane, other);
    if (!out.p)
        return;
    text_say(&out, "%s %u bytes at ", p->writes ? "writes" : "reads", t->bytes);
    say_place(w, &out, t);
    text_say(&out, ", which ");
    bool several = m->flags & MARK_SEVERAL && m->slot % w->la->slots < w->la->nwarps;
    bool itself = m->gang == p->mark.gang && m->slot == p->mark.slot && m->lane == t->lane;
    if (several && itself) {
        text_say(&out, "others of its warp");
    } else {
        finding_thread(w, &out, m);
        text_say(&out, "%s", several ? " and others of its warp" : "");
    }
    text_say(&out, " %s at ", wrote ? "wrote" : "read");
    finding_line(w, &out, other);
    text_say(&out, "%s", remedy(w, p, m));
}

static void report_proxy(struct worker *w, const struct touch *t, const struct mark *m) {
    const struct instr *other = &w->p->code[m->pc];
    struct text out = finding_begin(w, SIM_CHECK_RACE, w->in, w->warp, t->lane, other);
    if (!out.p)
        return;
    text_say(&out, "reads shared memory + %" PRIu64 " through the async proxy, which ", t->offset);
    finding_thread(w, &out, m);
    text_say(&out, " wrote at ");
    finding_line(w, &out, other);
    text_say(&out, "; fence.proxy.async is missing between them");
}

/* Loads through the read-only path may see what was there before the kernel wrote it. */
static void report_stale(struct worker *w, const struct touch *t, const struct mark *m) {
    const struct instr *other = &w->p->code[m->pc];
    struct text out = finding_begin(w, SIM_CHECK_RACE, w->in, w->warp, t->lane, other);
    if (!out.p)
        return;
    text_say(&out, "reads %u bytes at ", t->bytes);
    say_place(w, &out, t);
    text_say(&out, " through the read-only path (ld.global.nc, __ldg), which ");
    finding_thread(w, &out, m);
    text_say(&out, " wrote at ");
    finding_line(w, &out, other);
    text_say(&out, " of the same kernel");
}

static bool is_set(const struct mark *m) {
    return m->flags & MARK_SET;
}

static void remember_read(struct cell *c, const struct party *p, bool shared_by) {
    struct mark *r = &c->read;
    bool same = is_set(r) && r->gang == p->mark.gang && r->slot == p->mark.slot;
    bool several = shared_by;
    if (same)
        several |=
            r->clock == p->mark.clock && (r->lane != p->mark.lane || r->flags & MARK_SEVERAL);
    else if (is_set(r))
        c->earlier = *r;
    *r = p->mark;
    r->flags |= several ? MARK_SEVERAL : 0;
}

/* A reader that nothing orders before a write, one of another warp where two are known; NULL: none.
 */
static const struct mark *unordered_reader(struct worker *w, const struct party *p,
                                           const struct cell *c) {
    bool read = is_set(&c->read) && !ordered(w, p, &c->read);
    if (read && (c->read.gang != p->mark.gang || c->read.slot != p->mark.slot))
        return &c->read;
    bool earlier = is_set(&c->earlier) && !ordered(w, p, &c->earlier);
    return earlier ? &c->earlier : read ? &c->read : NULL;
}

static void granule(struct worker *w, const struct touch *t, const struct party *p,
                    struct cell *c) {
    const struct gang_check *g = w->gang->check;
    if (is_set(&c->write) && !ordered(w, p, &c->write)) {
        if (!p->writes || !changes_nothing(w, t))
            report(w, t, p, &c->write, true);
    } else if (w->proxy && !p->writes && t->space == PTX_SHARED && is_set(&c->write) &&
               !(c->write.flags & MARK_AGENT) && c->write.clock > g->fenced[c->write.slot]) {
        report_proxy(w, t, &c->write);
    } else if (p->cached && is_set(&c->write)) {
        report_stale(w, t, &c->write);
    }
    if (!p->writes) {
        remember_read(c, p, t->several);
        return;
    }
    const struct mark *reader = unordered_reader(w, p, c);
    if (reader && !changes_nothing(w, t))
        report(w, t, p, reader, false);
    c->write = p->mark;
    c->read.flags = c->earlier.flags = 0;
}

/* `n` granules from `index` on; those of a buffer may lie in two pages. */
static void granules(struct worker *w, const struct touch *t, struct party *p, uint64_t index,
                     uint64_t n) {
    uint64_t each = SIM_PAGE / check_granule(w);
    struct cell *c = NULL;
    if (t->space == PTX_SHARED)
        c = &w->gang->check->cells[t->owner->rank][index];
    for (uint64_t i = 0; i < n; i++, c++) {
        if (t->space != PTX_SHARED && (i == 0 || (index + i) % each == 0)) {
            c = check_page(w, t->map, (index + i) / each);
            if (!c)
                return;
            c += (index + i) % each;
        }
        granule(w, t, p, c);
    }
}

static void race_touch(struct worker *w, struct party *p, const struct touch *t) {
    uint32_t size = check_granule(w);
    uint64_t first = t->offset / size, last = (t->offset + t->bytes - 1) / size;
    /* Memory that no kernel may write cannot be raced for. */
    if (t->space == PTX_GLOBAL && w->la->m->maps[t->map].b.read_only)
        return;
    p->mark.lane = (uint8_t)t->lane;
    granules(w, t, p, first, last - first + 1);
}

static void race_arrived(struct worker *w, const struct touch *t) {
    uint32_t size = check_granule(w);
    struct party p = race_party(w, t->use);
    struct cell *cells = w->gang->check->cells[t->owner->rank];
    p.mark.flags &= (uint8_t)~MARK_PENDING;
    p.mark.lane = (uint8_t)t->lane;
    for (uint64_t i = t->offset / size; i <= (t->offset + t->bytes - 1) / size; i++)
        if (cells[i].write.pc == p.mark.pc) /* nobody has written over it */
            cells[i].write = p.mark;
}

/* ---- mbarriers: who initialised one, what those who arrived knew ----
 *
 * A place is an mbarrier's word, by the block that has it and its offset there. */

static uint32_t address_of(const struct worker *w, const uint8_t *at) {
    uint32_t address = 0;
    for (uint32_t c = 0; c < w->gang->n; c++) {
        const uint8_t *shared = w->gang->ctas[c].shared;
        if (at >= shared && at < shared + w->la->shared_bytes)
            address = c << RANK_SHIFT | (uint32_t)(at - shared);
    }
    return address;
}

static struct place_clock *place_of(struct worker *w, const uint8_t *at) {
    struct gang_check *g = w->gang->check;
    uint32_t address = address_of(w, at);
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

static void order_places_drop(struct gang_check *g) {
    for (size_t i = 0; i < g->nplaces; i++) {
        mem_free(g->places[i].pending);
        mem_free(g->places[i].done);
    }
    g->nplaces = 0;
}

/* "the mbarrier at shared memory + 64, which thread (0,0,0) initialised at line 12" */
static void say_barrier(const struct worker *w, struct text *t, const struct place_clock *p) {
    text_say(t, "the mbarrier at shared memory + %u, which ", p->address & RANK_OFFSETS);
    finding_thread(w, t, &p->init);
    text_say(t, " initialised at ");
    finding_line(w, t, &w->p->code[p->init.pc]);
}

void order_place_init(struct worker *w, unsigned lane, const uint8_t *place) {
    struct place_clock *p = place_of(w, place);
    if (p->init.flags & MARK_SET && w->la->l->checks & SIM_CHECK_SYNC) {
        struct text t =
            finding_begin(w, SIM_CHECK_SYNC, w->in, w->warp, lane, &w->p->code[p->init.pc]);
        if (t.p) {
            text_say(&t, "initialises again ");
            say_barrier(w, &t, p);
            text_say(&t, "; mbarrier.inval has to come between");
        }
    }
    p->init = race_party(w, USE_WRITE).mark;
    p->init.lane = (uint8_t)lane;
    memset(p->pending, 0, w->gang->check->slots * sizeof *p->pending);
    memset(p->done, 0, w->gang->check->slots * sizeof *p->done);
}

void order_place_forget(struct worker *w, const uint8_t *place) {
    place_of(w, place)->init.flags = 0;
}

void order_place_use(struct worker *w, unsigned lane, const uint8_t *place) {
    struct place_clock *p = place_of(w, place);
    const struct cta *owner = &w->gang->ctas[p->address >> RANK_SHIFT];
    uint32_t slot = order_slot(w);
    if (owner != w->warp->cta)
        check_guest(w, owner, lane);
    if (!(p->init.flags & MARK_SET) || p->init.slot == slot ||
        order_clock(w, slot)[p->init.slot] >= p->init.clock || !(w->la->l->checks & SIM_CHECK_RACE))
        return;
    struct text t = finding_begin(w, SIM_CHECK_RACE, w->in, w->warp, lane, &w->p->code[p->init.pc]);
    if (!t.p)
        return;
    text_say(&t, "uses ");
    say_barrier(w, &t, p);
    text_say(&t, "; no barrier orders them");
}

void order_place_arrive(struct worker *w, unsigned lane, const uint8_t *place, bool agent) {
    const struct gang_check *g = w->gang->check;
    struct place_clock *p = place_of(w, place);
    uint32_t slot = agent ? order_agent_slot(w->la, w->warp->cta) : order_warp_slot(w->la, w->warp);
    uint32_t *clock = order_clock(w, slot);
    order_join(p->pending, clock, g->slots);
    if (!agent) {
        g->warps[slot].told[lane] = clock[slot];
        clock[slot]++; /* what it does from now on is later */
    } else if (g->work[slot] > p->pending[slot])
        p->pending[slot] = g->work[slot];
}

void order_place_complete(struct worker *w, const uint8_t *place) {
    struct place_clock *p = place_of(w, place);
    order_join(p->done, p->pending, w->gang->check->slots);
    memset(p->pending, 0, w->gang->check->slots * sizeof *p->pending);
}

void order_place_pass(struct worker *w, unsigned lane, const uint8_t *place) {
    const uint32_t *done = place_of(w, place)->done;
    uint32_t slot = order_warp_slot(w->la, w->warp);
    uint32_t *heard = &w->gang->check->warps[slot].heard[lane];
    order_join(order_clock(w, slot), done, w->gang->check->slots);
    *heard = done[slot] > *heard ? done[slot] : *heard;
}

/* A store over it? */
static void order_place_touch(struct worker *w, const struct touch *t) {
    const struct gang_check *g = w->gang->check;
    for (size_t i = 0; i < g->nplaces; i++) {
        const struct place_clock *p = &g->places[i];
        uint32_t at = p->address & RANK_OFFSETS;
        if (!(p->init.flags & MARK_SET) || p->address >> RANK_SHIFT != t->owner->rank ||
            t->offset >= at + 8 || t->offset + t->bytes <= at)
            continue;
        struct text out =
            finding_begin(w, SIM_CHECK_SYNC, w->in, w->warp, t->lane, &w->p->code[p->init.pc]);
        if (!out.p)
            return;
        text_say(&out, "writes %u bytes over ", t->bytes);
        say_barrier(w, &out, p);
        return;
    }
}

/* ---- registers of a wgmma between its issue and its wait, and setmaxnreg ----
 *
 * A warp may not read or write the accumulators of a product under way, nor write what it
 * multiplies from registers; what other instructions wrote there has to lie before a wgmma.fence.
 * Moves are left out of the latter: compilers place copies of values right before the wgmma that
 * takes them, whatever the source says, and the assembler knows them. */

#define UNIT      (4u * SIM_LANES)
#define REGISTERS 65536u /* of an SM */

static struct warp_check *of(struct worker *w, const struct warp *wp) {
    return &w->gang->check->warps[order_warp_slot(w->la, wp)];
}

static bool has(const uint32_t *reg, unsigned n, uint32_t r) {
    for (unsigned i = 0; i < n; i++)
        if (reg[i] == r)
            return true;
    return false;
}

static bool multiplies(const struct instr *in, uint32_t r) {
    return in->tile->wgmma.a_in_registers && has(in->reads + 2, TILE_WGMMA_A_REGS, r);
}

static void report_unfenced(struct worker *w, const struct instr *in, const struct instr *wrote) {
    struct text t = finding_begin(w, SIM_CHECK_RACE, in, w->warp, 0, wrote);
    if (!t.p)
        return;
    if (!wrote) {
        text_say(&t, "multiplies before any wgmma.fence");
        return;
    }
    text_say(&t, "multiplies with a register that it wrote at ");
    finding_line(w, &t, wrote);
    text_say(&t, "; wgmma.fence is missing between them");
}

static const struct instr *unfenced(const struct warp_check *wc, const struct instr *in) {
    const struct instr *wrote = NULL;
    for (unsigned k = 0; wc->dirty && !wrote && k < in->nwrites; k++)
        wrote = wc->dirty[in->writes[k] / UNIT];
    for (unsigned k = 0; wc->dirty && !wrote && k < TILE_WGMMA_A_REGS; k++)
        wrote = in->tile->wgmma.a_in_registers ? wc->dirty[in->reads[2 + k] / UNIT] : NULL;
    return wrote;
}

void inflight_issue(struct worker *w, const struct instr *in, uint64_t number) {
    struct warp_check *wc = of(w, w->warp);
    const struct instr *wrote = unfenced(wc, in);
    if ((wrote || !wc->fenced) && w->la->l->checks & SIM_CHECK_RACE)
        report_unfenced(w, in, wrote);
    wc->flights = mem_grow(wc->flights, &wc->flights_cap, wc->nflights + 1, sizeof *wc->flights);
    wc->flights[wc->nflights++] = (struct flight){in, number};
}

void inflight_wait(struct worker *w, uint64_t end) {
    struct warp_check *wc = of(w, w->warp);
    size_t n = 0;
    while (n < wc->nflights && wc->flights[n].number < end)
        n++;
    if (n)
        memmove(wc->flights, wc->flights + n, (wc->nflights - n) * sizeof *wc->flights);
    wc->nflights -= n;
    order_product_waited(w, w->warp);
}

void inflight_fence(struct worker *w) {
    struct warp_check *wc = of(w, w->warp);
    wc->fenced = true;
    if (wc->dirty)
        memset(wc->dirty, 0, w->p->register_bytes / UNIT * sizeof *wc->dirty);
}

static void report_use(struct worker *w, const struct instr *in, uint32_t mask,
                       const struct instr *product, bool writes) {
    struct text t =
        finding_begin(w, SIM_CHECK_RACE, in, w->warp, (unsigned)__builtin_ctz(mask), product);
    if (!t.p)
        return;
    text_say(&t, "%s a register of the wgmma at ", writes ? "writes" : "reads");
    finding_line(w, &t, product);
    text_say(&t, ", which it has not waited for (wgmma.commit_group, wgmma.wait_group)");
}

static void note_write(struct worker *w, struct warp_check *wc, const struct instr *in,
                       uint32_t r) {
    if (str_is(in->src->op, "mov"))
        return;
    if (!wc->dirty)
        wc->dirty = mem_alloc(w->p->register_bytes / UNIT * sizeof *wc->dirty);
    wc->dirty[r / UNIT] = in;
}

void inflight_use(struct worker *w, const struct instr *in, uint32_t mask) {
    struct warp_check *wc = of(w, w->warp);
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (unsigned k = 0, n = flow_reads(in, reg); wc->nflights && k < n; k++)
        for (size_t f = 0; f < wc->nflights; f++) {
            const struct instr *product = wc->flights[f].in;
            if (has(product->writes, product->nwrites, reg[k]))
                report_use(w, in, mask, product, false);
        }
    for (unsigned k = 0, n = flow_writes(in, reg); k < n; k++) {
        note_write(w, wc, in, reg[k]);
        for (size_t f = 0; f < wc->nflights; f++) {
            const struct instr *product = wc->flights[f].in;
            if (has(product->writes, product->nwrites, reg[k]) || multiplies(product, reg[k]))
                report_use(w, in, mask, product, true);
        }
    }
}

void inflight_registers(struct worker *w, const struct instr *in) {
    struct warp_check *wc = of(w, w->warp);
    wc->registers = in;
    wc->register_changes++;
}

static void report_registers(struct worker *w, const struct warp *wp, const struct warp *other) {
    const struct warp_check *wc = of(w, wp);
    struct text t = finding_begin(w, SIM_CHECK_SYNC, wc->registers, wp, 0, NULL);
    if (t.p)
        text_say(&t, "executes '%.*s', warp %u of its group of four does not: all four have to",
                 STR_ARG(str_cut(wc->registers->src->text, 0, 60)), other->index);
}

/* The warps of each group of four changed their registers alike, and together they fit. */
static void end_registers(struct worker *w, const struct cta *c) {
    uint64_t asked = 0;
    const struct warp *last = NULL;
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        const struct warp *wp = &c->warps[i], *first = &c->warps[i & ~3u];
        const struct warp_check *wc = of(w, wp), *fc = of(w, first);
        if (wc->register_changes != fc->register_changes)
            report_registers(w, wc->register_changes > fc->register_changes ? wp : first,
                             wc->register_changes > fc->register_changes ? first : wp);
        asked += wc->registers ? (uint64_t)wc->registers->target * SIM_LANES : 0;
        last = wc->registers && (!last || wc->registers->target > of(w, last)->registers->target)
                   ? wp
                   : last;
    }
    if (asked <= REGISTERS)
        return;
    struct text t = finding_begin(w, SIM_CHECK_SYNC, of(w, last)->registers, last, 0, NULL);
    if (t.p)
        text_say(&t,
                 "asks for %u registers a thread; the block's warps then have %" PRIu64
                 ", an SM has %u: one of them waits for ever",
                 of(w, last)->registers->target, asked, REGISTERS);
}

static void inflight_end(struct worker *w, struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++) {
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            const struct warp *wp = &g->ctas[c].warps[i];
            const struct warp_check *wc = of(w, wp);
            struct text t = {0};
            if (wc->nflights)
                t = finding_begin(w, SIM_CHECK_SYNC, wc->flights[0].in, wp, 0, NULL);
            if (t.p)
                text_say(&t, "ends before it has waited for its wgmma (wgmma.wait_group)");
        }
        end_registers(w, &g->ctas[c]);
    }
}

#define MAX_BYTES                                                                                  \
    (UINT64_C(1) << 30) /* of shadows and clocks; beyond it races are not looked for */

struct check {
    struct cell ***pages; /* by buffer and page */
    uint32_t granule;     /* bytes: the narrowest access of the program, at most 4 */
    uint64_t used;
    struct arena *arena;
    struct sync_place **table; /* by hash; a power of two */
    size_t nplaces, table_size;
    const struct instr *seen[SIM_MAX_FINDINGS][2];
    struct party party; /* of the instruction under way */
};

static uint32_t narrowest(const struct sim_program *p) {
    uint32_t n = 4;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *in = &p->code[k];
        bool memory = in->kind == KIND_LOAD || in->kind == KIND_STORE || in->kind == KIND_ATOMIC;
        if (memory && in->mem->width < n && in->mem->space != PTX_PARAM &&
            in->mem->space != PTX_LOCAL)
            n = in->mem->width;
        if (in->kind == KIND_FRAGMENT && in->tile->fragment.piece_bytes < n)
            n = in->tile->fragment.piece_bytes;
    }
    return n;
}

struct check *check_new(const struct launch *la) {
    struct check *c = mem_alloc(sizeof *c);
    c->granule = narrowest(la->p);
    c->arena = arena_new((size_t)MAX_BYTES + (64u << 20));
    c->pages = mem_alloc((la->m->n + 1) * sizeof *c->pages);
    for (size_t i = 0; i < la->m->n; i++) {
        struct mapped *b = &la->m->maps[i];
        c->pages[i] = mem_alloc((b->b.size / SIM_PAGE + 1) * sizeof **c->pages);
        if (b->b.undefined && !b->written)
            b->written = mem_alloc(b->b.size / 8 + 1);
        if (b->b.result || b->b.between) {
            mem_free(b->stored);
            b->stored = mem_alloc(b->b.size / 8 + 1);
            b->changed = b->unsettled = false;
        }
    }
    c->table_size = 1024;
    c->table = mem_alloc(c->table_size * sizeof *c->table);
    return c;
}

void check_free(struct launch *la, struct check *c) {
    if (!c)
        return;
    for (size_t i = 0; i < la->m->n; i++) {
        for (size_t p = 0; p < la->m->maps[i].b.size / SIM_PAGE + 1; p++)
            mem_free(c->pages[i][p]);
        mem_free(c->pages[i]);
    }
    mem_free(c->pages);
    mem_free(c->table);
    arena_free(c->arena);
    mem_free(c);
}

static uint32_t check_granule(const struct worker *w) {
    return w->la->check->granule;
}

static bool reserve(struct check *c, size_t bytes) {
    if (c->used + bytes > MAX_BYTES)
        return false;
    c->used += bytes;
    return true;
}

/* Memory of the launch's. */
static void *check_alloc(struct worker *w, size_t bytes) {
    struct check *c = w->la->check;
    return reserve(c, bytes) ? arena_alloc(c->arena, bytes, 8) : NULL;
}

/* The granules of a buffer's page; NULL: there is no memory. */
static struct cell *check_page(struct worker *w, size_t map, size_t page) {
    struct check *c = w->la->check;
    struct cell **at = &c->pages[map][page];
    size_t bytes = SIM_PAGE / c->granule * sizeof **at;
    if (!*at && reserve(c, bytes))
        *at = mem_alloc(bytes);
    return *at;
}

static size_t slot_of(const struct check *c, uint64_t address) {
    size_t i = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (c->table_size - 1);
    while (c->table[i] && c->table[i]->address != address)
        i = (i + 1) & (c->table_size - 1);
    return i;
}

static void grow_table(struct check *c) {
    struct sync_place **old = c->table;
    size_t n = c->table_size;
    c->table_size = 2 * n;
    c->table = mem_alloc(c->table_size * sizeof *c->table);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            c->table[slot_of(c, old[i]->address)] = old[i];
    mem_free(old);
}

/* The place's releases; NULL: there are none, or, with `make`, there is no memory. */
static struct sync_place *check_place(struct worker *w, uint64_t address, bool make) {
    struct check *c = w->la->check;
    size_t i = slot_of(c, address);
    if (c->table[i] || !make)
        return c->table[i];
    struct sync_place *p = check_alloc(w, sizeof *p);
    if (!p)
        return NULL;
    p->address = address;
    c->table[i] = p;
    if (2 * ++c->nplaces > c->table_size)
        grow_table(c);
    return p;
}

struct gang_check *check_gang_new(const struct launch *la, uint32_t ctas) {
    struct gang_check *g = mem_alloc(sizeof *g);
    uint32_t n = g->slots = ctas * la->slots;
    size_t lanes = (size_t)la->nwarps * SIM_LANES;
    g->clocks = mem_alloc((size_t)n * n * sizeof *g->clocks);
    g->work = mem_alloc(n * sizeof *g->work);
    g->guests = mem_alloc((size_t)ctas * n * sizeof *g->guests);
    g->bars = mem_alloc((size_t)ctas * NAMED * n * sizeof *g->bars);
    g->cluster_arrived = mem_alloc(n * sizeof *g->cluster_arrived);
    g->cluster_done = mem_alloc(n * sizeof *g->cluster_done);
    g->fenced = mem_alloc(n * sizeof *g->fenced);
    g->warps = mem_alloc(n * sizeof *g->warps);
    g->cells = mem_alloc(ctas * sizeof *g->cells);
    g->shared_written = mem_alloc(ctas * sizeof *g->shared_written);
    g->local_written = mem_alloc(ctas * sizeof *g->local_written);
    for (uint32_t i = 0; i < ctas; i++) {
        g->cells[i] = mem_alloc((la->shared_bytes / la->check->granule + 1) * sizeof **g->cells);
        g->shared_written[i] = mem_alloc(la->shared_bytes / 8 + 1);
        g->local_written[i] = mem_alloc(lanes * la->p->local_bytes + 1);
    }
    return g;
}

/* What the warps have under way; their arrays stay. */
static void warps_start(const struct launch *la, struct gang_check *g) {
    for (uint32_t i = 0; i < g->slots; i++) {
        struct warp_check *wc = &g->warps[i], old = *wc;
        *wc = (struct warp_check){
            .flights = old.flights, .flights_cap = old.flights_cap, .dirty = old.dirty};
        if (wc->dirty)
            memset(wc->dirty, 0, la->p->register_bytes / (4 * SIM_LANES) * sizeof *wc->dirty);
    }
}

void check_gang_free(const struct launch *la, struct gang_check *g, uint32_t ctas) {
    (void)la;
    if (!g)
        return;
    for (uint32_t i = 0; i < ctas; i++) {
        mem_free(g->cells[i]);
        mem_free(g->shared_written[i]);
        mem_free(g->local_written[i]);
    }
    for (uint32_t i = 0; i < g->slots; i++) {
        mem_free(g->warps[i].flights);
        mem_free(g->warps[i].dirty);
    }
    order_places_drop(g);
    void *const all[] = {g->clocks,         g->work,          g->guests,
                         g->bars,           g->fenced,        g->cluster_arrived,
                         g->cluster_done,   g->warps,         g->cells,
                         g->shared_written, g->local_written, g->places};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mem_free(all[i]);
    mem_free(g);
}

void check_gang_start(struct worker *w, struct gang *gang) {
    const struct launch *la = w->la;
    struct gang_check *g = gang->check;
    size_t n = g->slots, lanes = (size_t)la->nwarps * SIM_LANES;
    memset(g->clocks, 0, n * n * sizeof *g->clocks);
    for (size_t i = 0; i < n; i++)
        g->clocks[i * n + i] = 1;
    memset(g->work, 0, n * sizeof *g->work);
    memset(g->guests, 0, gang->n * n * sizeof *g->guests);
    memset(g->bars, 0, (size_t)gang->n * NAMED * n * sizeof *g->bars);
    memset(g->cluster_arrived, 0, n * sizeof *g->cluster_arrived);
    memset(g->cluster_done, 0, n * sizeof *g->cluster_done);
    memset(g->fenced, 0, n * sizeof *g->fenced);
    warps_start(la, g);
    order_places_drop(g);
    g->taken = NULL;
    for (uint32_t i = 0; i < gang->n; i++) {
        memset(g->cells[i], 0, (la->shared_bytes / la->check->granule + 1) * sizeof **g->cells);
        memset(g->shared_written[i], 0, la->shared_bytes / 8 + 1);
        memset(g->local_written[i], 0, lanes * la->p->local_bytes + 1);
    }
}

/* Findings. */
static void say_file_line(const struct worker *w, struct text *t, const struct instr *in) {
    if (in->src->src_line)
        text_say(t, "%.*s:%u", STR_ARG(str_cut(program_file(w->p->module, in->src), 0, 80)),
                 in->src->src_line);
    else
        text_say(t, "PTX line %u", in->src->line);
}

static void finding_line(const struct worker *w, struct text *t, const struct instr *in) {
    if (in->src->src_line)
        text_say(t, "line %u", in->src->src_line);
    else
        say_file_line(w, t, in);
}

static void thread_of(const struct launch *la, uint32_t warp, unsigned lane, uint32_t out[3]) {
    uint32_t t = warp * SIM_LANES + lane;
    const uint32_t *block = la->l->block;
    out[0] = t % block[0];
    out[1] = t / block[0] % block[1];
    out[2] = t / block[0] / block[1];
}

static void finding_thread(const struct worker *w, struct text *t, const struct mark *m) {
    const struct launch *la = w->la;
    uint32_t warp = m->slot % la->slots, rank = m->slot / la->slots, id[3], th[3];
    grid_cta_id(la, m->gang, rank, id);
    thread_of(la, warp < la->nwarps ? warp : 0, m->lane, th);
    const uint32_t *here = w->warp->cta->id;
    if (warp == la->nwarps)
        text_say(t, "a bulk copy");
    else if (warp > la->nwarps)
        text_say(t, "a wgmma of warps %u-%u", 4 * (warp - la->nwarps - 1),
                 4 * (warp - la->nwarps - 1) + 3);
    else
        text_say(t, "thread (%u,%u,%u)", th[0], th[1], th[2]);
    if (memcmp(here, id, sizeof id) != 0)
        text_say(t, " of block (%u,%u,%u)", id[0], id[1], id[2]);
}

static bool seen_before(struct check *c, const struct sim_findings *f, enum sim_check check,
                        const struct instr *in, const struct instr *other) {
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].check == check && c->seen[i][0] == in && c->seen[i][1] == other)
            return true;
    return false;
}

struct text finding_begin(struct worker *w, enum sim_check check, const struct instr *in,
                          const struct warp *wp, unsigned lane, const struct instr *other) {
    struct sim_findings *f = w->la->l->findings;
    struct check *c = w->la->check;
    if (!f || seen_before(c, f, check, in, other))
        return (struct text){0};
    if (f->n == SIM_MAX_FINDINGS) {
        f->more = true;
        return (struct text){0};
    }
    struct sim_finding *new = &f->list[f->n];
    c->seen[f->n][0] = in;
    c->seen[f->n++][1] = other;
    *new = (struct sim_finding){.check = check, .src_line = in->src->src_line};
    new->other_line = other ? other->src->src_line : 0;
    memcpy(new->cta, wp->cta->id, sizeof new->cta);
    thread_of(w->la, wp->index, lane, new->thread);
    struct text t = {new->text, 0, sizeof new->text};
    say_file_line(w, &t, in);
    text_say(&t, ": thread (%u,%u,%u) of block (%u,%u,%u) ", new->thread[0], new->thread[1],
             new->thread[2], new->cta[0], new->cta[1], new->cta[2]);
    return t;
}

/* What was never written. */
static void say_where(const struct worker *w, struct text *t, const struct touch *to) {
    if (to->space == PTX_GLOBAL)
        fault_place(w, t, w->la->m->maps[to->map].base + to->offset);
    else
        text_say(t, "%s memory + %" PRIu64, to->space == PTX_LOCAL ? "local" : "shared",
                 to->offset);
}

static void report_unwritten(struct worker *w, const struct touch *t) {
    struct text out = finding_begin(w, SIM_CHECK_UNINITIALISED, w->in, w->warp, t->lane, NULL);
    if (!out.p)
        return;
    text_say(&out, "reads %u bytes at ", t->bytes);
    struct sim_findings *all = w->la->l->findings;
    all->list[all->n - 1].of_buffer = t->space == PTX_GLOBAL;
    say_where(w, &out, t);
    text_say(&out, ", which nothing has written before");
}

static bool bits_set(const uint8_t *bits, uint64_t at, uint32_t n) {
    for (uint64_t i = at; i < at + n; i++)
        if (!(bits[i / 8] >> i % 8 & 1))
            return false;
    return true;
}

static bool words_set(const uint8_t *bits, uint64_t at, uint32_t n) {
    if (at % 4 == 0 && n == 4)
        return (bits[at / 8] >> at % 8 & 0xf) == 0xf;
    if (at % 8 == 0 && n % 8 == 0) {
        uint8_t all = 0xff;
        for (uint32_t i = 0; i < n / 8; i++)
            all &= bits[at / 8 + i];
        return all == 0xff;
    }
    return bits_set(bits, at, n);
}

static void set_bits(uint8_t *bits, uint64_t at, uint64_t n) {
    uint64_t end = at + n;
    for (; at < end && at % 8; at++)
        bits[at / 8] |= (uint8_t)(1u << at % 8);
    memset(bits + at / 8, 0xff, (end - at) / 8);
    for (at += (end - at) / 8 * 8; at < end; at++)
        bits[at / 8] |= (uint8_t)(1u << at % 8);
}

/* From a byte of eight that nothing was stored to, up to the next page if nobody touched this one.
 */
static uint64_t untouched_bytes(const struct mapped *b, uint64_t at) {
    bool page = b->pages && at % SIM_PAGE == 0 &&
                atomic_load_explicit(&b->pages[at / SIM_PAGE], memory_order_relaxed) != PAGE_READY;
    return page ? SIM_PAGE : 8;
}

bool sim_machine_stored(const struct sim_machine *m, uint64_t buffer, uint64_t *first,
                        uint64_t *end) {
    const struct mapped *b = memory_find(m, buffer);
    uint64_t at = *end, size = b ? b->b.size : 0;
    if (!b || !b->stored || b->unsettled)
        return false;
    while (at < size && !(b->stored[at / 8] >> at % 8 & 1))
        at += b->stored[at / 8] || at % 8 ? 1 : untouched_bytes(b, at);
    *first = at;
    while (at < size && b->stored[at / 8] >> at % 8 & 1)
        at += b->stored[at / 8] == 0xff && at % 8 == 0 ? 8 : 1;
    *end = at < size ? at : size;
    return *first < size;
}

bool sim_machine_written(const struct sim_machine *m, uint64_t buffer, uint64_t offset,
                         uint32_t bytes) {
    const struct mapped *b = memory_find(m, buffer);
    return b && (!b->b.undefined || (b->written && words_set(b->written, offset, bytes)));
}

void sim_machine_forget(struct sim_machine *m) {
    for (size_t i = 0; i < m->n; i++) {
        struct mapped *b = &m->maps[i];
        if (!b->stored || !b->changed)
            continue;
        mem_free(b->written);
        b->written = b->unsettled ? mem_alloc(b->b.size / 8 + 1) : b->stored;
        if (b->unsettled)
            mem_free(b->stored);
        b->stored = NULL;
        b->b.undefined = true;
        b->changed = b->unsettled = false;
    }
}

void check_filled(struct mapped *b, uint64_t offset, uint64_t bytes) {
    if (!b->b.undefined)
        return;
    if (!b->written)
        b->written = mem_alloc(b->b.size / 8 + 1);
    set_bits(b->written, offset, bytes);
}

static void local_touch(struct worker *w, const struct touch *t) {
    size_t lane = (size_t)w->warp->index * SIM_LANES + t->lane, each = w->p->local_bytes;
    uint8_t *written = w->gang->check->local_written[w->warp->cta->rank] + lane * each + t->offset;
    if (t->use != USE_READ)
        memset(written, 1, t->bytes);
    else if (memchr(written, 0, t->bytes))
        report_unwritten(w, t);
}

static void written_touch(struct worker *w, const struct touch *t) {
    if (t->space == PTX_LOCAL) {
        local_touch(w, t);
        return;
    }
    uint8_t *bits = t->space == PTX_SHARED ? w->gang->check->shared_written[t->owner->rank]
                                           : w->la->m->maps[t->map].written;
    if (!bits)
        return;
    bool reads = t->use == USE_READ || t->use == USE_ATOMIC;
    if (reads && !words_set(bits, t->offset, t->bytes))
        report_unwritten(w, t);
    if (t->use != USE_READ && w->in->kind != KIND_COPY)
        set_bits(bits, t->offset, t->bytes);
}

/* What blocks that take turns read again, and what atomics add to, others may still change. */
static void result_touch(const struct worker *w, struct mapped *b, const struct touch *t) {
    b->changed |= t->use != USE_READ;
    if (t->use == USE_WRITE)
        set_bits(b->stored, t->offset, t->bytes);
    else
        b->unsettled |= t->use == USE_ATOMIC || w->p->ordered;
}

void check_touch(struct worker *w, const struct touch *t) {
    unsigned checks = w->la->l->checks;
    if (t->space == PTX_GLOBAL && w->la->m->maps[t->map].stored)
        result_touch(w, &w->la->m->maps[t->map], t);
    if (checks & SIM_CHECK_UNINITIALISED)
        written_touch(w, t);
    if (checks & SIM_CHECK_RACE && t->space != PTX_LOCAL && t->use != USE_BARRIER)
        race_touch(w, &w->la->check->party, t);
    if (!(checks & SIM_CHECK_SYNC) || t->space != PTX_SHARED)
        return;
    if (t->owner != w->warp->cta)
        check_guest(w, t->owner, t->lane);
    if (w->gang->check->nplaces && (t->use == USE_WRITE || t->use == USE_ATOMIC))
        order_place_touch(w, t);
}

static void check_guest(struct worker *w, const struct cta *owner, unsigned lane) {
    const struct gang_check *g = w->gang->check;
    struct mark m = race_party(w, USE_READ).mark;
    m.lane = (uint8_t)lane;
    g->guests[owner->rank * g->slots + m.slot] = m;
}

void check_begin(struct worker *w, enum use use) {
    w->la->check->party = race_party(w, use);
}

uint32_t check_distinct(uint32_t mask, const uint64_t *address, uint32_t *several) {
    uint8_t first[SIM_LANES];
    uint32_t own = 0;
    *several = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m), same = i;
        for (unsigned d = 1; d < SIM_LANES && same == i; d *= 2) /* neighbours, or as in a tile */
            if (i >= d && mask >> (i - d) & 1 && address[i - d] == address[i])
                same = first[i - d];
        first[i] = (uint8_t)same;
        if (same == i)
            own |= 1u << i;
        else
            *several |= 1u << same;
    }
    return own;
}

void check_arrived(struct worker *w, const struct instr *in, unsigned lane, const uint8_t *at,
                   uint32_t bytes) {
    struct touch t = {.space = PTX_SHARED,
                      .owner = w->warp->cta,
                      .offset = (uint64_t)(at - w->warp->cta->shared),
                      .bytes = bytes,
                      .lane = lane,
                      .use = USE_WRITE,
                      .at = at};
    const struct instr *here = w->in;
    if (w->la->l->checks & SIM_CHECK_UNINITIALISED)
        set_bits(w->gang->check->shared_written[t.owner->rank], t.offset, bytes);
    w->in = in;
    if (w->la->l->checks & SIM_CHECK_RACE)
        race_arrived(w, &t);
    w->in = here;
}

static void report_left(struct worker *w, const struct warp *wp, unsigned lane,
                        const struct instr *in, const char *what) {
    struct text t = finding_begin(w, SIM_CHECK_SYNC, in, wp, lane, NULL);
    if (t.p)
        text_say(&t, "%s", what);
}

static void report_bytes_left(struct worker *w, struct gang *g) {
    const struct gang_check *c = g->check;
    for (size_t i = 0; i < c->nplaces; i++) {
        const struct cta *cta = &g->ctas[c->places[i].address >> RANK_SHIFT];
        uint32_t at = c->places[i].address & RANK_OFFSETS;
        uint64_t word;
        memcpy(&word, cta->shared + at, 8);
        if (!tile_mbarrier_valid(word) || tile_mbarrier_tx(word) == 0)
            continue;
        const struct mark *m = &c->places[i].init;
        const struct instr *made = m->flags & MARK_SET ? &w->p->code[m->pc] : w->in;
        struct text t = finding_begin(w, SIM_CHECK_SYNC, made, &cta->warps[0], m->lane, NULL);
        if (t.p)
            text_say(
                &t,
                "initialised the mbarrier at shared memory + %u; the block ends while it still "
                "expects %" PRIi32 " bytes of copies",
                at, tile_mbarrier_tx(word));
    }
}

void check_gang_end(struct worker *w, struct gang *g) {
    if (!(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            const struct warp *wp = &g->ctas[c].warps[i];
            for (size_t k = 0; k < wp->ncopies; k++)
                if (wp->copies[k].in->kind == KIND_COPY)
                    report_left(w, wp, (unsigned)__builtin_ctz(wp->copies[k].mask),
                                wp->copies[k].in,
                                "ends before anybody has waited for its cp.async");
        }
    for (size_t k = 0; k < g->nbulks; k++)
        if (g->bulks[k].in->async->grouped && !g->bulks[k].data)
            report_left(w, g->bulks[k].warp, g->bulks[k].lane, g->bulks[k].in,
                        "ends before it has waited for its bulk copy out of shared memory "
                        "(cp.async.bulk.wait_group)");
    report_bytes_left(w, g);
    inflight_end(w, g);
}

static void report_gone(struct worker *w, const struct cta *owner, const struct mark *m) {
    const struct launch *la = w->la;
    uint32_t warp = m->slot % la->slots;
    const struct cta *from = &w->gang->ctas[m->slot / la->slots];
    struct text t = finding_begin(w, SIM_CHECK_SYNC, &w->p->code[m->pc],
                                  &from->warps[warp < la->nwarps ? warp : 0], m->lane, NULL);
    if (t.p)
        text_say(&t,
                 "uses shared memory of block (%u,%u,%u), which may have ended: nothing makes that "
                 "block wait for it (a cluster barrier at the end)",
                 owner->id[0], owner->id[1], owner->id[2]);
}

void check_gang_gone(struct worker *w, struct gang *gang) {
    const struct gang_check *g = gang->check;
    if (!(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    for (uint32_t c = 0; c < gang->n; c++)
        for (uint32_t s = 0; s < g->slots; s++) {
            const struct mark *m = &g->guests[c * g->slots + s];
            bool known = !(m->flags & MARK_SET);
            for (uint32_t i = 0; i < w->la->nwarps; i++)
                known |= order_clock(w, c * w->la->slots + i)[s] >= m->clock;
            if (!known)
                report_gone(w, &gang->ctas[c], m);
        }
}
