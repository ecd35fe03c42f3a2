/* A gang: the blocks of one cluster, or one block. Their warps run in turn, each until it exits,
 * waits, or has had its share. A program whose warps never meet runs them one after the other on
 * one register file. */
#include "sim/check.h"
#include "sim/timing.h"

#include <string.h>

#define SLICE    (1u << 16) /* instructions of a gang before others get their turn */
#define SM_WARPS 64u        /* that an SM has room for */
#define SM_UNIT  128u       /* bytes of shared memory that a block gets at a time */
#define SM_OWN   1024u      /* bytes of it that the system keeps */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

static uint32_t fixed_value(const struct launch *la, enum special s, unsigned lane) {
    const struct sim_launch *l = la->l;
    uint32_t bit = 1u << lane;
    switch (s) {
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
        return l->block[s - SPECIAL_NTID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
        return l->grid[s - SPECIAL_NCTAID_X];
    case SPECIAL_NCLUSTERID_X:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z:
        return l->grid[s - SPECIAL_NCLUSTERID_X] / la->cluster[s - SPECIAL_NCLUSTERID_X];
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z:
        return la->cluster[s - SPECIAL_CLUSTER_NCTAID_X];
    case SPECIAL_CLUSTER_NCTARANK:
        return la->gang_ctas;
    case SPECIAL_EXPLICIT_CLUSTER:
        return la->gang_ctas > 1 || l->cluster[0] ? ~0u : 0;
    case SPECIAL_WORKSPACE_HIGH:
        return (uint32_t)(la->workspace >> 32);
    case SPECIAL_WORKSPACE_LOW:
        return (uint32_t)la->workspace;
    case SPECIAL_NSMID:
        return l->sms ? l->sms : DEFAULT_SMS;
    case SPECIAL_GRIDID:
        return (uint32_t)l->number;
    case SPECIAL_LANEID:
        return lane;
    case SPECIAL_NWARPID:
        return SM_WARPS;
    case SPECIAL_LANEMASK_EQ:
        return bit;
    case SPECIAL_LANEMASK_LT:
        return bit - 1;
    case SPECIAL_LANEMASK_LE:
        return bit | (bit - 1);
    case SPECIAL_LANEMASK_GT:
        return ~(bit | (bit - 1));
    case SPECIAL_LANEMASK_GE:
        return ~(bit - 1);
    case SPECIAL_DYNAMIC_SHARED:
        return (uint32_t)l->dynamic_shared;
    case SPECIAL_TOTAL_SHARED:
        return (uint32_t)((la->shared_bytes + SM_UNIT - 1) / SM_UNIT * SM_UNIT);
    case SPECIAL_AGGREGATE_SHARED:
        return (uint32_t)((la->shared_bytes + SM_UNIT - 1) / SM_UNIT * SM_UNIT) + SM_OWN;
    default:
        return 0; /* the block's and the warp's own: fill_special */
    }
}

static void fill_lanes(uint8_t *at, uint64_t bits, size_t bytes) {
    for (unsigned k = 0; k < SIM_LANES; k++)
        memcpy(at + k * bytes, &bits, bytes);
}

static uint64_t param_bits(const struct launch *la, const struct param_use *u) {
    uint64_t v = 0;
    memcpy(&v, (const uint8_t *)la->l->params + u->offset, u->width);
    if (u->sign && v >> (8 * u->width - 1) & 1)
        v |= u->width < 8 ? ~UINT64_C(0) << 8 * u->width : 0;
    return u->reg_bytes == 2 ? v & 0xffff : v;
}

/* What no instruction writes: constants, parameters, special registers of the launch. */
static void fill_file(const struct launch *la, uint8_t *regs) {
    const struct sim_program *p = la->p;
    for (size_t i = 0; i < p->nconstants; i++) {
        const struct constant *c = &p->constants[i];
        uint64_t window = c->window ? la->m->windows + c->bits : c->bits;
        fill_lanes(regs + c->at, c->window < 0 ? 0 - window : window, c->bytes);
    }
    for (size_t i = 0; i < p->nparams; i++)
        fill_lanes(regs + p->params[i].at, param_bits(la, &p->params[i]),
                   p->params[i].reg_bytes == 8 ? 8 : 4);
    for (size_t i = 0; i < p->nspecials; i++)
        for (unsigned k = 0; k < SIM_LANES; k++)
            if (p->specials[i].wide)
                ((u64_lane *)(regs + p->specials[i].at))[k] =
                    fixed_value(la, p->specials[i].what, k);
            else
                ((u32_lane *)(regs + p->specials[i].at))[k] =
                    fixed_value(la, p->specials[i].what, k);
}

static void cta_init(const struct launch *la, struct gang *g, struct cta *c, uint32_t rank) {
    size_t files = la->together ? la->nwarps : 1;
    c->gang = g;
    c->rank = rank;
    c->regs = mem_alloc(files * la->p->register_bytes);
    c->shared = mem_alloc(la->shared_bytes + 1);
    c->local = mem_alloc(la->p->local_bytes * SIM_LANES * files + 1);
    c->warps = mem_alloc(la->nwarps * sizeof *c->warps);
    c->warpgroups = mem_alloc((la->nwarps / 4 + 1) * sizeof *c->warpgroups);
    for (uint32_t k = 0; la->l->covered && k < la->nwarps; k++)
        c->warps[k].passes = mem_alloc((la->p->nloops + 1) * sizeof *c->warps[k].passes);
    for (size_t f = 0; f < files; f++)
        fill_file(la, c->regs + f * la->p->register_bytes);
}

uint64_t gang_bytes(const struct launch *la) {
    uint64_t files = la->together ? la->nwarps : 1, slots = la->gang_ctas * la->slots;
    uint64_t cta = files * (la->p->register_bytes + SIM_LANES * la->p->local_bytes) +
                   la->shared_bytes + la->nwarps * sizeof(struct warp);
    if (la->l->checks) /* clocks, and about what the cells of shared memory take at 4 bytes each */
        cta += 12 * la->shared_bytes + files * SIM_LANES * la->p->local_bytes;
    return la->gang_ctas * cta + (la->l->checks ? 4 * slots * slots : 0);
}

struct gang *gang_new(struct worker *w) {
    const struct launch *la = w->la;
    struct gang *g = mem_alloc(sizeof *g);
    g->n = la->gang_ctas;
    g->ctas = mem_alloc(g->n * sizeof *g->ctas);
    for (uint32_t i = 0; i < g->n; i++)
        cta_init(la, g, &g->ctas[i], i);
    if (la->check)
        g->check = check_gang_new(la, g->n);
    return g;
}

void gang_free(const struct launch *la, struct gang *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        struct cta *c = &g->ctas[i];
        for (uint32_t k = 0; k < la->nwarps; k++) {
            mem_free(c->warps[k].copies);
            mem_free(c->warps[k].passes);
        }
        for (uint32_t k = 0; k < la->nwarps / 4 + 1; k++)
            warpgroup_release(&c->warpgroups[k]);
        mem_free(c->regs);
        mem_free(c->shared);
        mem_free(c->local);
        mem_free(c->warps);
        mem_free(c->warpgroups);
    }
    check_gang_free(la, g->check, g->n);
    timing_drop(g); /* of one that a fault ended */
    bulk_clear(g);
    mem_free(g->bulks);
    mem_free(g->ctas);
    mem_free(g);
}

uint32_t gang_sm(const struct launch *la, const struct cta *c) {
    uint64_t sms = la->l->sms ? la->l->sms : DEFAULT_SMS;
    uint64_t number = c->gang->ordinal * la->gang_ctas + c->rank;
    return (uint32_t)((la->sm_first + number % sms * la->sm_step) % sms);
}

/* The slot of an SM that a warp has: the block's first ones, or wherever others left room. */
static uint32_t warp_slot(const struct launch *la, const struct warp *wp) {
    uint32_t room = (SM_WARPS - la->nwarps) / 4 + 1;
    uint64_t number = wp->cta->gang->ordinal * la->gang_ctas + wp->cta->rank;
    uint64_t drawn = (number + la->l->noise) * UINT64_C(0x9e3779b97f4a7c15) >> 33;
    return wp->index + (la->l->noise ? 4 * (uint32_t)(drawn % room) : 0);
}

static uint32_t cta_value(const struct launch *la, const struct cta *c, enum special s) {
    uint32_t in[3] = {c->rank % la->cluster[0], c->rank / la->cluster[0] % la->cluster[1],
                      c->rank / la->cluster[0] / la->cluster[1]};
    if (s >= SPECIAL_CTAID_X && s <= SPECIAL_CTAID_Z)
        return c->id[s - SPECIAL_CTAID_X];
    if (s >= SPECIAL_CLUSTERID_X && s <= SPECIAL_CLUSTERID_Z)
        return (uint32_t)c->gang->clusters[s - SPECIAL_CLUSTERID_X];
    if (s >= SPECIAL_CLUSTER_CTAID_X && s <= SPECIAL_CLUSTER_CTAID_Z)
        return in[s - SPECIAL_CLUSTER_CTAID_X];
    if (s == SPECIAL_CLUSTER_CTARANK)
        return c->rank;
    return gang_sm(la, c);
}

static bool is_cta_value(enum special s) {
    return (s >= SPECIAL_CTAID_X && s <= SPECIAL_CTAID_Z) ||
           (s >= SPECIAL_CLUSTERID_X && s <= SPECIAL_CLUSTERID_Z) ||
           (s >= SPECIAL_CLUSTER_CTAID_X && s <= SPECIAL_CLUSTER_CTAID_Z) ||
           s == SPECIAL_CLUSTER_CTARANK || s == SPECIAL_SMID;
}

static void fill_special(const struct launch *la, const struct warp *wp, struct special_use u) {
    u32_lane *to = (u32_lane *)(wp->regs + u.at);
    if (u.what <= SPECIAL_TID_Z)
        memcpy(to, la->tid[u.what - SPECIAL_TID_X] + wp->index * SIM_LANES, 4 * SIM_LANES);
    else if (is_cta_value(u.what) || u.what == SPECIAL_WARPID)
        fill_lanes((uint8_t *)to,
                   u.what == SPECIAL_WARPID ? warp_slot(la, wp) : cta_value(la, wp->cta, u.what),
                   4);
}

/* A register that nothing wrote, with bits that one of its kind can hold. */
static void fill_unset(const struct launch *la, uint8_t *reg, char shape, uint64_t salt) {
    u32_lane *lane = (u32_lane *)reg;
    noise_fill(la, reg, 4 * SIM_LANES, salt);
    for (unsigned i = 0; i < SIM_LANES && (shape == 'p' || shape == 'h'); i++)
        lane[i] = shape == 'h' ? lane[i] & 0xffff : 0 - (lane[i] >> 7 & 1);
}

static uint64_t cta_number(const struct launch *la, const struct cta *c) {
    return c->gang->ordinal * la->gang_ctas + c->rank;
}

static void warp_start(const struct launch *la, struct cta *c, uint32_t index) {
    const struct sim_program *p = la->p;
    uint32_t left = la->threads - index * SIM_LANES;
    uint32_t lanes = left >= SIM_LANES ? FULL : (1u << left) - 1;
    uint32_t file = la->together ? index : 0;
    struct warp *wp = &c->warps[index];
    wp->regs = c->regs + (size_t)file * p->register_bytes;
    wp->local = c->local + file * p->local_bytes * SIM_LANES;
    wp->cta = c;
    wp->code = p->code;
    wp->index = index;
    wp->live = lanes;
    wp->behind = wp->parted = 0;
    wp->run = (struct group){.mask = lanes};
    wp->nparked = 0;
    wp->meet = wp->until = UINT32_MAX;
    wp->pass = wp->rotated = wp->polling = false;
    wp->slices = 0;
    wp->cluster_arrived = wp->cluster_passed = 0;
    wp->poll = (struct poll){0};
    wp->ncopies = 0;
    wp->give_up = false;
    wp->came_back = 0;
    wp->lag = 0;
    wp->waited = 0;
    memset(wp->copy_commits, 0, sizeof wp->copy_commits);
    memset(wp->bulk_commits, 0, sizeof wp->bulk_commits);
    uint64_t salt = (cta_number(la, c) * la->nwarps + index)
                    << 24; /* what nothing wrote is noise */
    noise_fill(la, wp->local, p->local_bytes * SIM_LANES, salt);
    for (size_t i = 0; i < p->nunset; i++)
        fill_unset(la, wp->regs + p->unset[i].at, p->unset[i].shape, salt + i + 1);
    for (size_t i = 0; i < p->nspecials; i++)
        fill_special(la, wp, p->specials[i]);
}

static void cta_start(const struct launch *la, struct cta *c) {
    const struct gang *g = c->gang;
    const uint32_t *n = la->cluster;
    const uint32_t in[3] = {c->rank % n[0], c->rank / n[0] % n[1], c->rank / n[0] / n[1]};
    for (int i = 0; i < 3; i++)
        c->id[i] = (uint32_t)g->clusters[i] * n[i] + in[i];
    memset(c->bars, 0, sizeof c->bars);
    warpgroup_start(la, c);
    noise_fill(la, c->shared, la->shared_bytes, ~cta_number(la, c));
    for (uint32_t i = 0; la->together && i < la->nwarps; i++)
        warp_start(la, c, i);
}

void gang_start(struct worker *w, struct gang *g, uint64_t ordinal, uint64_t index) {
    const struct launch *la = w->la;
    const uint64_t x = la->l->grid[0] / la->cluster[0], y = la->l->grid[1] / la->cluster[1];
    g->ordinal = ordinal;
    g->used = 0;
    bulk_clear(g);
    g->clusters[0] = index % x;
    g->clusters[1] = index / x % y;
    g->clusters[2] = index / x / y;
    g->time = timing_begin(la, g);
    draw_start(la, g);
    for (uint32_t i = 0; i < g->n; i++)
        cta_start(la, &g->ctas[i]);
    if (la->check)
        check_gang_start(w, g);
}

static enum gang_end run_apart(struct worker *w, struct cta *c) {
    w->cta = c;
    for (uint32_t i = 0; i < w->la->nwarps; i++) {
        enum warp_end end;
        warp_start(w->la, c, i);
        do
            end = warp_run(w, &c->warps[i]);
        while (end == WARP_PAUSED || end == WARP_POLLS);
        if (end == WARP_FAILED || (end == WARP_BLOCKED && !stuck_gang(w, c->gang)))
            return GANG_FAILED;
    }
    return GANG_DONE;
}

struct turn { /* what a round over the warps came to */
    bool ran, moved, failed;
};

static void run_warp(struct worker *w, struct warp *wp, struct turn *t) {
    if (!wp->run.mask && !warp_pick(wp))
        return;
    t->ran = true;
    enum warp_end end = warp_run(w, wp);
    wp->polling = end == WARP_POLLS;
    t->failed = end == WARP_FAILED;
    /* A turn that ends in the midst of a loop that waits is one of waiting. */
    bool waits = w->gang->drawn && end != WARP_DONE && wp->waited == w->progress + 1;
    if (wp->polling)
        wp->waited = w->progress + 1;
    t->moved |= !wp->polling && !waits;
    if (end == WARP_DONE || end == WARP_BLOCKED)
        wp->run.mask = 0;
}

static struct turn run_round(struct worker *w, struct gang *g) {
    struct turn t = {0};
    for (uint32_t c = 0; c < g->n; c++) {
        w->cta = &g->ctas[c];
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            run_warp(w, &w->cta->warps[i], &t);
            if (t.failed)
                return t;
        }
    }
    return t;
}

/* The same in an order that is drawn, with turns that are. Warps lag behind others for a while,
 * unless `all` have to have their turn. */
static struct turn run_drawn(struct worker *w, struct gang *g, bool all) {
    struct turn t = {0};
    uint32_t n = g->n * w->la->nwarps, first = (uint32_t)draw_below(g, n);
    bool down = draw_below(g, 2), quiet = draw_below(g, 4) == 0;
    for (uint32_t k = 0; k < n && !t.failed; k++) {
        uint32_t at = (first + (down ? n - k : k)) % n;
        w->cta = &g->ctas[at / w->la->nwarps];
        w->warp = &w->cta->warps[at % w->la->nwarps];
        if (!draw_below(g, 16))
            w->warp->lag = (uint8_t)(draw_below(g, 4) * draw_below(g, 8));
        if (!all && w->warp->lag && draw_below(g, w->warp->lag))
            continue;
        if (!worker_settle(w) && !warp_over_budget(w)) {
            t.failed = true;
            return t;
        }
        w->fuel = w->allowed = draw_turn(g);
        run_warp(w, w->warp, &t);
        t.failed = t.failed || (!quiet && !draw_events(w, g));
    }
    return t;
}

static bool all_done(const struct launch *la, const struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < la->nwarps; i++)
            if (g->ctas[c].warps[i].live)
                return false;
    return true;
}

/* What is under way ends when the gang can do nothing else: as late as can be. */
static bool advance(struct worker *w, struct gang *g) {
    bool any = w->p->uses_async && (copy_advance(w, g) || bulk_advance(w, g));
    w->progress += any;
    return any;
}

static bool release(struct worker *w, struct gang *g, bool some) {
    bool any = barrier_release(w, g);
    any |= phase_release(w, g, some);
    w->progress += any;
    return any;
}

static enum gang_end finish(struct worker *w, struct gang *g) {
    if (w->la->check)
        check_gang_end(w, g);
    while (w->status == SIM_OK && advance(w, g))
        continue;
    if (w->la->check && w->status == SIM_OK)
        check_gang_gone(w, g);
    return w->status == SIM_OK ? GANG_DONE : GANG_FAILED;
}

enum gang_end gang_step(struct worker *w, struct gang *g) {
    w->gang = g;
    if (!w->la->together)
        return run_apart(w, &g->ctas[0]);
    uint64_t start = grid_clock(w), slice = g->drawn ? draw_below(g, SLICE / 16) : SLICE;
    for (bool all = false;;) {
        struct turn t = g->drawn ? run_drawn(w, g, all) : run_round(w, g);
        if (t.failed)
            return GANG_FAILED;
        if (release(w, g, !all))
            continue;
        if (all_done(w->la, g))
            return finish(w, g);
        if (g->drawn && !t.moved && !all) { /* was there nothing to do, or nobody asked? */
            all = true;
            continue;
        }
        all = all && !t.moved;
        if (!t.moved && advance(w, g))
            continue;
        if (w->status != SIM_OK)
            return GANG_FAILED;
        if (!t.moved && phase_give_up(w, g))
            return GANG_POLLS;
        if (!t.ran)
            return stuck_gang(w, g) ? GANG_DONE : GANG_FAILED;
        if (!t.moved)
            return GANG_POLLS;
        if (grid_clock(w) - start > slice)
            return GANG_BUSY;
    }
}
