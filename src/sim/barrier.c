/* Barriers of a block, sixteen with numbers, and the cluster's; mbarriers, words of shared memory
 * that count, and threads that wait for their phases. A barrier opens when as many threads have
 * arrived as it was given, or all that have not exited. */
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

/* ---- mbarriers ---- */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

static uint64_t operand(const struct warp *wp, const struct instr *in, unsigned lane, bool wide) {
    const uint8_t *at = wp->regs + in->reads[in->async->value];
    return wide ? ((const u64_lane *)at)[lane] : ((const u32_lane *)at)[lane];
}

static bool check(struct worker *w, unsigned lane, enum tile_mbarrier_status s) {
    w->progress += s == MBARRIER_COMPLETED;
    if (s <= MBARRIER_COMPLETED)
        return true;
    struct text t = fault_begin(w, SIM_TRAP, lane);
    text_say(&t, "executes '%.*s': %s", STR_ARG(str_cut(w->in->src->text, 0, 100)),
             tile_mbarrier_words(s));
    return false;
}

static uint64_t *word_at(struct worker *w, const struct instr *in, unsigned lane,
                         const uint64_t *address) {
    return (uint64_t *)(void *)memory_range(w, in->async->bar.space, lane, address[lane], 8, 8,
                                            USE_BARRIER);
}

/* The clocks that go with a change of the barrier. */
static bool follow(struct worker *w, unsigned lane, const uint64_t *word,
                   enum tile_mbarrier_status s, bool arrives) {
    if (w->la->check && s <= MBARRIER_COMPLETED) {
        if (arrives && !w->agent)
            order_place_use(w, lane, (const uint8_t *)word);
        if (arrives)
            order_place_arrive(w, lane, (const uint8_t *)word, w->agent);
        if (s == MBARRIER_COMPLETED)
            order_place_complete(w, (const uint8_t *)word);
    }
    if (w->gang->time && arrives && !w->agent)
        timing_arrive(w, word);
    return check(w, lane, s);
}

bool mbarrier_arrive(struct worker *w, unsigned lane, uint8_t *at) {
    uint64_t *word = (uint64_t *)(void *)at;
    return follow(w, lane, word, tile_mbarrier_arrive(word, 1, NULL), true);
}

bool mbarrier_complete(struct worker *w, unsigned lane, uint64_t address, uint32_t bytes) {
    uint8_t *at = memory_range(w, PTX_SHARED, lane, address, 8, 8, USE_BARRIER);
    uint64_t *word = (uint64_t *)(void *)at;
    return at && follow(w, lane, word, tile_mbarrier_complete_tx(word, bytes), true);
}

static enum tile_mbarrier_status update(const struct warp *wp, const struct instr *in,
                                        unsigned lane, uint64_t *word, uint64_t *token) {
    const struct async_op *a = in->async;
    uint32_t n = a->counted ? (uint32_t)operand(wp, in, lane, false) : 1;
    switch ((enum mbarrier_mode)in->mode) {
    case MBARRIER_INIT:
        return tile_mbarrier_init(word, n);
    case MBARRIER_INVALIDATE:
        *word = ~UINT64_C(0);
        return MBARRIER_OK;
    case MBARRIER_ARRIVE:
        return tile_mbarrier_arrive(word, n, token);
    case MBARRIER_DROP:
        return tile_mbarrier_drop(word, n, token);
    case MBARRIER_EXPECT_TX:
        return tile_mbarrier_expect_tx(word, n);
    case MBARRIER_ARRIVE_EXPECT_TX:
        return tile_mbarrier_arrive_expect_tx(word, 1, n, token);
    case MBARRIER_DROP_EXPECT_TX: {
        enum tile_mbarrier_status s = tile_mbarrier_expect_tx(word, n);
        return s > MBARRIER_COMPLETED ? s : tile_mbarrier_drop(word, 1, token);
    }
    case MBARRIER_COMPLETE_TX:
        return tile_mbarrier_complete_tx(word, n);
    default:
        return MBARRIER_OK;
    }
}

static bool passed(const struct warp *wp, const struct instr *in, unsigned lane, uint64_t word) {
    return in->async->parity
               ? tile_mbarrier_passed_parity(word, (uint32_t)operand(wp, in, lane, false))
               : tile_mbarrier_passed(word, operand(wp, in, lane, true));
}

bool mbarrier_any_passed(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask,
                         bool *any) {
    uint64_t address[SIM_LANES];
    w->warp = wp;
    w->cta = wp->cta;
    w->in = in;
    memory_where(w, in, &in->async->bar, address);
    *any = false;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        const uint64_t *word = word_at(w, in, i, address);
        if (!word)
            return false;
        if (!tile_mbarrier_valid(*word))
            return check(w, i, MBARRIER_NONE_HERE);
        *any |= passed(wp, in, i, *word);
    }
    return true;
}

static bool run_wait(struct worker *w, const struct instr *in, uint32_t mask,
                     const uint64_t *address) {
    uint32_t yes[SIM_LANES] = {0};
    uint64_t seen = 0;
    bool any = false;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        const uint64_t *word = word_at(w, in, i, address);
        if (!word)
            return false;
        if (!tile_mbarrier_valid(*word))
            return check(w, i, MBARRIER_NONE_HERE);
        bool done = passed(w->warp, in, i, *word);
        yes[i] = done ? ~0u : 0;
        any |= done;
        if (done && w->gang->time)
            timing_pass(w, word);
        if (w->la->check)
            order_place_use(w, i, (const uint8_t *)word);
        if (done && w->la->check)
            order_place_pass(w, i, (const uint8_t *)word);
        seen = (seen ^ *word ^ address[i] << 40) * UINT64_C(0x9e3779b97f4a7c15);
    }
    if (in->async->result)
        lanes_blend(w->warp->regs + in->writes[0], (const uint8_t *)yes, mask, 4);
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint64_t window = in->async->bar.space == PTX_SHARED ? w->la->m->windows : 0;
    if (!any && (in->mode == MBARRIER_TRY || warp_saw(w, seen, 0, first)))
        w->warp->polling = true;
    w->warp->poll.address = address[first] + window;
    if (in->mode == MBARRIER_TRY)
        w->warp->poll.pc = (uint32_t)(in - w->p->code);
    return true;
}

static void give(struct worker *w, const struct instr *in, unsigned lane, uint64_t v) {
    uint8_t *to = w->warp->regs + in->writes[0];
    if (in->mode == MBARRIER_PENDING)
        ((u32_lane *)to)[lane] = (uint32_t)v;
    else
        ((u64_lane *)to)[lane] = v;
}

bool mbarrier_run(struct worker *w, const struct instr *in, uint32_t mask) {
    uint64_t address[SIM_LANES];
    bool pending = in->mode == MBARRIER_PENDING;
    if (!pending)
        memory_where(w, in, &in->async->bar, address);
    if (in->mode == MBARRIER_TEST || in->mode == MBARRIER_TRY)
        return run_wait(w, in, mask, address);
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        uint64_t token = 0, *word = pending ? NULL : word_at(w, in, i, address);
        bool arrives = in->mode != MBARRIER_INIT && in->mode != MBARRIER_INVALIDATE;
        if (!pending &&
            (!word || !follow(w, i, word, update(w->warp, in, i, word, &token), arrives)))
            return false;
        if (w->la->check && in->mode == MBARRIER_INIT)
            order_place_init(w, i, (const uint8_t *)word);
        if (w->la->check && in->mode == MBARRIER_INVALIDATE)
            order_place_forget(w, (const uint8_t *)word);
        if (pending)
            token = tile_mbarrier_pending(operand(w->warp, in, i, true));
        if (in->async->result)
            give(w, in, i, token);
    }
    w->progress++;
    return true;
}

static bool can_go_on(struct worker *w, struct warp *wp, const struct group *p) {
    const struct instr *in = &w->p->code[p->pc];
    bool any = true;
    if (p->wait == WAIT_WGMMA)
        return warpgroup_ready(w, wp, in);
    return !mbarrier_any_passed(w, wp, in, p->mask, &any) || any;
}

/* An address of shared memory with the block's rank in it, whoever named it. */
static uint64_t in_cluster(const struct worker *w, const struct warp *wp, enum ptx_space space,
                           uint64_t address) {
    uint64_t at = space == PTX_SHARED ? address : address - w->la->m->windows;
    return at >> RANK_SHIFT ? at : at | (uint64_t)(wp->cta->rank + 1) << RANK_SHIFT;
}

static size_t group_waited(struct worker *w, struct warp *wp, const struct group *p, uint64_t *out,
                           size_t n, size_t max) {
    const struct instr *in = &w->p->code[p->pc];
    uint64_t address[SIM_LANES];
    w->warp = wp;
    memory_where(w, in, &in->async->bar, address);
    for (uint32_t m = p->mask; m && n < max; m &= m - 1) {
        out[n] = in_cluster(w, wp, in->async->bar.space, address[__builtin_ctz(m)]);
        n += n == 0 || out[n - 1] != out[n];
    }
    return n;
}

size_t phase_waited(struct worker *w, struct gang *g, uint64_t *address, size_t max) {
    struct warp *here = w->warp;
    size_t n = 0;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            for (unsigned k = 0; k < wp->nparked; k++)
                if (wp->parked[k].wait == WAIT_PHASE)
                    n = group_waited(w, wp, &wp->parked[k], address, n, max);
        }
    w->warp = here;
    return n;
}

bool phase_release(struct worker *w, struct gang *g, bool some) {
    bool any = false;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            for (unsigned k = 0; k < wp->nparked; k++) {
                struct group *p = &wp->parked[k];
                if (some && g->drawn && draw_below(g, 2))
                    continue;
                if ((p->wait != WAIT_PHASE && p->wait != WAIT_WGMMA) || !can_go_on(w, wp, p))
                    continue;
                p->wait = WAIT_NOT;
                any = true;
            }
        }
    return any;
}

bool phase_give_up(struct worker *w, struct gang *g) {
    bool any = false;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            for (unsigned k = 0; k < wp->nparked; k++) {
                if (wp->parked[k].wait != WAIT_PHASE)
                    continue;
                wp->parked[k].wait = WAIT_NOT;
                wp->give_up = true;
                any = true;
            }
        }
    return any;
}
