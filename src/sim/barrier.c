/* Barriers of a block, sixteen with numbers, and the cluster's. A barrier opens when as many
 * threads have arrived as it was given, or all that have not exited. */
#include "sim/check.h"
#include "sim/timing.h"

typedef uint32_t u32_lane __attribute__((may_alias));

static uint32_t lane_value(const struct warp *wp, uint32_t at, uint32_t mask) {
    return ((const u32_lane *)(wp->regs + at))[__builtin_ctz(mask)];
}

/* A barrier counts whole warps: a block's last one as well, although some of its lanes are none. */
static uint32_t threads_of(const struct warp *wp, uint32_t mask) {
    return mask == wp->live ? SIM_LANES : (uint32_t)__builtin_popcount(mask);
}

static void skip(struct warp *wp, uint32_t mask) {
    warp_park(wp, (struct group){.pc = wp->run.pc + 1, .mask = mask});
}

struct gathering { /* at one named barrier */
    uint32_t waiting, threads, yes, expected;
};

static struct gathering gather(const struct worker *w, const struct cta *c, uint8_t id) {
    struct gathering s = {.threads = c->bars[id].arrived, .expected = c->bars[id].expected};
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        const struct warp *wp = &c->warps[i];
        uint32_t here = 0;
        for (unsigned k = 0; k < wp->nparked; k++) {
            const struct group *g = &wp->parked[k];
            if (g->wait != WAIT_BARRIER || g->barrier != id)
                continue;
            const struct instr *in = &w->p->code[g->pc];
            uint32_t count = lane_value(wp, in->b, g->mask);
            s.expected = count > s.expected ? count : s.expected;
            s.yes += (uint32_t)__builtin_popcount(g->mask & lanes_mask(wp->regs + in->c));
            s.waiting += (uint32_t)__builtin_popcount(g->mask);
            here |= g->mask;
        }
        s.threads += here ? threads_of(wp, here) : 0;
    }
    return s;
}

/* Of the block's threads those that have not exited, in whole warps. */
static uint32_t live_threads(const struct worker *w, const struct cta *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        n += c->warps[i].live ? SIM_LANES : 0;
    return n;
}

static void give_result(struct warp *wp, const struct group *g, const struct instr *in,
                        const struct gathering *s) {
    if (in->mode == BARRIER_SYNC)
        return;
    uint32_t v = in->mode == BARRIER_POPC  ? s->yes
                 : in->mode == BARRIER_AND ? (s->yes == s->waiting ? ~0u : 0)
                                           : (s->yes ? ~0u : 0);
    for (uint32_t m = g->mask; m; m &= m - 1)
        ((u32_lane *)(wp->regs + in->d))[__builtin_ctz(m)] = v;
}

static void open_named(struct worker *w, struct cta *c, uint8_t id, const struct gathering *s) {
    if (w->gang->time)
        timing_barrier(w, c, id);
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        struct warp *wp = &c->warps[i];
        for (unsigned k = 0; k < wp->nparked; k++) {
            struct group *g = &wp->parked[k];
            if (g->wait != WAIT_BARRIER || g->barrier != id)
                continue;
            give_result(wp, g, &w->p->code[g->pc], s);
            if (w->la->check)
                order_barrier_pass(w, wp, id, g->mask);
            g->wait = WAIT_NOT;
            g->pc++;
        }
    }
    c->bars[id] = (struct named_barrier){0};
    if (w->la->check)
        order_barrier_opened(w, c, id);
}

static bool release_one(struct worker *w, struct cta *c, uint8_t id) {
    struct gathering s = gather(w, c, id);
    if (s.threads < (s.expected ? s.expected : live_threads(w, c)))
        return false;
    open_named(w, c, id, &s);
    return true;
}

static void reach_named(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask) {
    uint8_t id = (uint8_t)(lane_value(wp, in->a, mask) % NAMED);
    struct named_barrier *b = &wp->cta->bars[id];
    if (w->la->check) {
        order_check_barrier(w, wp, in, mask);
        order_check_count(w, wp, in, id, mask, in->b ? lane_value(wp, in->b, mask) : 0);
        order_barrier_arrive(w, wp, id, mask);
    }
    if (in->mode == BARRIER_ARRIVE) {
        uint32_t expected = lane_value(wp, in->b, mask);
        b->arrived += threads_of(wp, mask);
        b->expected = expected > b->expected ? expected : b->expected;
        skip(wp, mask);
        return;
    }
    warp_park(wp,
              (struct group){.pc = wp->run.pc, .mask = mask, .wait = WAIT_BARRIER, .barrier = id});
    if (in->b && release_one(w, wp->cta, id)) /* as soon as its count is full */
        w->progress++;
}

static void reach_cluster(struct worker *w, struct warp *wp, const struct instr *in,
                          uint32_t mask) {
    if (in->mode == CLUSTER_ARRIVE) {
        wp->cluster_arrived |= mask;
        if (w->la->check)
            order_cluster_arrive(w, wp, in->negate);
        skip(wp, mask);
        return;
    }
    warp_park(wp, (struct group){.pc = wp->run.pc, .mask = mask, .wait = WAIT_CLUSTER});
}

void barrier_reach(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask) {
    uint32_t rest = wp->run.mask & ~mask;
    if (in->kind == KIND_BARRIER)
        reach_named(w, wp, in, mask);
    else
        reach_cluster(w, wp, in, mask);
    if (rest)
        skip(wp, rest);
    wp->run.mask = 0;
}

static uint32_t waiting_ids(const struct worker *w, const struct cta *c) {
    uint32_t ids = 0;
    for (uint32_t i = 0; i < w->la->nwarps; i++)
        for (unsigned k = 0; k < c->warps[i].nparked; k++)
            if (c->warps[i].parked[k].wait == WAIT_BARRIER)
                ids |= 1u << c->warps[i].parked[k].barrier;
    return ids;
}

static bool release_named(struct worker *w, struct cta *c) {
    bool any = false;
    for (uint32_t ids = waiting_ids(w, c); ids; ids &= ids - 1)
        any |= release_one(w, c, (uint8_t)__builtin_ctz(ids));
    return any;
}

static bool cluster_complete(const struct worker *w, const struct gang *g) {
    bool any = false;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            const struct warp *wp = &g->ctas[c].warps[i];
            any |= wp->cluster_arrived != 0;
            if (wp->live & ~wp->cluster_arrived)
                return false;
        }
    return any;
}

/* Lanes that arrived in the round that is complete may pass their wait, whenever they reach it. */
static bool release_cluster(struct worker *w, struct gang *g) {
    bool any = false, complete = cluster_complete(w, g);
    if (complete && w->la->check)
        order_cluster_complete(w, g);
    if (complete && g->time)
        timing_cluster(w, g);
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            if (complete) {
                wp->cluster_passed |= wp->cluster_arrived;
                wp->cluster_arrived = 0;
            }
            for (unsigned k = 0; k < wp->nparked; k++) {
                struct group *p = &wp->parked[k];
                if (p->wait != WAIT_CLUSTER || p->mask & ~wp->cluster_passed)
                    continue;
                wp->cluster_passed &= ~p->mask;
                if (w->la->check)
                    order_cluster_pass(w, wp, p->mask);
                p->wait = WAIT_NOT;
                p->pc++;
                any = true;
            }
        }
    return any;
}

bool barrier_release(struct worker *w, struct gang *g) {
    bool any = false;
    for (uint32_t c = 0; c < g->n; c++)
        any |= release_named(w, &g->ctas[c]);
    return (w->p->uses_cluster && release_cluster(w, g)) || any;
}
