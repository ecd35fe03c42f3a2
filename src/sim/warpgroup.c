/* wgmma: four warps issue a product, and it is done when one of them waits for its group: until
 * then accumulators keep their old values, and shared memory can still be overwritten under it. A
 * kernel that does not wait computes something else here, every time. */
#include "sim/check.h"

#include <limits.h>
#include <string.h>

#define MAX_UNDER_WAY 4096u

typedef uint64_t u64_lane __attribute__((may_alias));

static struct warpgroup *of(const struct warp *wp) {
    return &wp->cta->warpgroups[wp->index / 4];
}

static void forget(struct warpgroup *g) {
    for (size_t i = 0; i < g->n; i++)
        mem_free(g->ops[i].clock);
    g->n = 0;
}

void warpgroup_release(struct warpgroup *g) {
    forget(g);
    mem_free(g->ops);
}

void warpgroup_start(const struct launch *la, struct cta *c) {
    for (uint32_t i = 0; i < la->nwarps / 4 + 1; i++) {
        struct warpgroup *g = &c->warpgroups[i];
        forget(g);
        *g = (struct warpgroup){.ops = g->ops, .cap = g->cap};
    }
}

static bool same(const struct wgmma *x, const struct wgmma *y) {
    return x->in == y->in && x->desc_a == y->desc_a && x->desc_b == y->desc_b &&
           x->scale_d == y->scale_d;
}

static bool illegal(struct worker *w, const char *what) {
    return fault_plain(w, SIM_TRAP, 0, what);
}

/* A base offset has to be the start's. Without one the hardware swizzles by the address itself, as
 * copies into shared memory do, and any start will do. */
static void check_start(struct worker *w, const struct instr *in, uint64_t bits, char which) {
    struct tile_desc d = tile_desc_decode(bits);
    uint32_t lines = d.swizzle / 16, phase = lines ? d.start >> 7 & (lines - 1) : 0;
    if (!d.base_offset || (lines && phase == d.base_offset) || !(w->la->l->checks & SIM_CHECK_SYNC))
        return;
    struct text t = finding_begin(w, SIM_CHECK_SYNC, in, w->warp, 0, NULL);
    if (t.p)
        text_say(&t,
                 "multiplies %c at shared memory + %u, swizzled by %u bytes: the descriptor's base "
                 "offset is %u, that of the address %u",
                 which, d.start, d.swizzle, d.base_offset, phase);
}

static void watch(struct worker *w, const struct instr *in, struct wgmma *op, uint64_t number) {
    if (!op->clock)
        op->clock = mem_alloc(TILE_WGMMA_WARPS * w->gang->check->slots * sizeof *op->clock);
    order_product_issue(w, op->clock);
    inflight_issue(w, in, number);
    check_start(w, in, op->desc_b, 'B');
    if (!in->tile->wgmma.a_in_registers)
        check_start(w, in, op->desc_a, 'A');
}

bool warpgroup_issue(struct worker *w, const struct instr *in) {
    struct warp *wp = w->warp;
    struct warpgroup *g = of(wp);
    const uint8_t *regs = wp->regs;
    unsigned me = wp->index % 4;
    struct wgmma op = {.in = in, .scale_d = lanes_mask(regs + in->reads[0]) & 1};
    op.desc_b = *(const u64_lane *)(regs + in->reads[1]);
    if (!in->tile->wgmma.a_in_registers)
        op.desc_a = *(const u64_lane *)(regs + in->reads[2]);
    if ((wp->index | 3) >= w->la->nwarps)
        return illegal(w, "executes wgmma in a block whose last warps are not a group of four");
    uint64_t at = g->issued[me]++ - g->done;
    if (at < g->n && !same(&g->ops[at], &op))
        return illegal(w, "executes another wgmma than the other warps of its group of four, or "
                          "with other descriptors");
    if (g->n == MAX_UNDER_WAY)
        return illegal(w, "has 4096 wgmma under way and waits for none of them");
    if (at >= g->n) {
        g->ops = mem_grow(g->ops, &g->cap, g->n + 1, sizeof *g->ops);
        g->ops[g->n++] = op;
    }
    if (w->la->check)
        watch(w, in, &g->ops[at], g->issued[me] - 1);
    return true;
}

bool warpgroup_commit(struct worker *w) {
    struct warpgroup *g = of(w->warp);
    unsigned me = w->warp->index % 4;
    g->ends[g->commits[me]++ % WGMMA_GROUPS] = g->issued[me];
    return true;
}

/* Products that have to be done when the warp has waited. */
static uint64_t due(const struct warp *wp, const struct instr *in) {
    const struct warpgroup *g = of(wp);
    uint64_t groups = g->commits[wp->index % 4];
    return groups > in->target ? g->ends[(groups - in->target - 1) % WGMMA_GROUPS] : 0;
}

bool warpgroup_ready(const struct worker *w, const struct warp *wp, const struct instr *in) {
    const struct warpgroup *g = of(wp);
    uint64_t end = due(wp, in);
    if ((wp->index | 3) >= w->la->nwarps)
        return true; /* there is nothing to wait for */
    for (unsigned i = 0; i < 4; i++)
        if (g->issued[i] < end)
            return false;
    return true;
}

/* Which of the four warps multiplies the i-th piece of A: each has sixteen rows. */
static unsigned warp_of_piece(const struct tile_wgmma *f, size_t i) {
    return (unsigned)(f->trans_a ? i % 8 / 2 : i / 32);
}

/* Every piece of shared memory that the product reads is the block's. */
static bool inside(struct worker *w, const struct wgmma *op, bool b) {
    const struct tile_wgmma *f = &op->in->tile->wgmma;
    uint32_t address[TILE_WGMMA_MAX_PIECES];
    size_t n = tile_wgmma_pieces(f, b, b ? op->desc_b : op->desc_a, address);
    unsigned reader = UINT_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned now = b ? TILE_WGMMA_WARPS : warp_of_piece(f, i);
        if (op->clock && now != reader)
            order_product_begin(w, op->clock, now);
        reader = now;
        if ((w->la->check || address[i] + UINT64_C(16) > w->la->shared_bytes) &&
            !memory_range(w, PTX_SHARED, 0, address[i], 16, 16, USE_READ))
            return false;
    }
    return true;
}

static bool perform(struct worker *w, struct cta *c, uint32_t first, const struct wgmma *op) {
    const struct tile_wgmma *f = &op->in->tile->wgmma;
    void *d[TILE_WGMMA_WARPS * 128];
    const void *a[TILE_WGMMA_WARPS * TILE_WGMMA_A_REGS];
    const struct instr *here = w->in;
    w->in = op->in;
    w->proxy = w->product = true;
    bool ok = inside(w, op, true) && (f->a_in_registers || inside(w, op, false));
    w->proxy = w->product = false;
    if (!ok)
        return false;
    w->in = here;
    for (unsigned i = 0; i < TILE_WGMMA_WARPS; i++) {
        uint8_t *regs = c->warps[first + i].regs;
        for (unsigned r = 0; r < f->nd; r++)
            d[i * f->nd + r] = regs + op->in->writes[r];
        for (unsigned r = 0; f->a_in_registers && r < TILE_WGMMA_A_REGS; r++)
            a[i * TILE_WGMMA_A_REGS + r] = regs + op->in->reads[2 + r];
    }
    tile_wgmma_run(f, worker_tiles(w), c->shared, w->la->shared_bytes, op->desc_a, op->desc_b,
                   f->a_in_registers ? a : NULL, d, op->scale_d);
    return true;
}

static void drop(struct warpgroup *g, size_t n) {
    for (size_t i = 0; i < n; i++)
        mem_free(g->ops[i].clock);
    if (n)
        memmove(g->ops, g->ops + n, (g->n - n) * sizeof *g->ops);
    g->n -= n;
    g->done += n;
}

bool warpgroup_early(struct worker *w, struct cta *c, uint32_t which) {
    struct warpgroup *g = &c->warpgroups[which];
    for (unsigned i = 0; i < TILE_WGMMA_WARPS; i++)
        if (!g->n || g->issued[i] <= g->done)
            return true;
    w->cta = c;
    w->warp = &c->warps[TILE_WGMMA_WARPS * which];
    bool ok = perform(w, c, TILE_WGMMA_WARPS * which, &g->ops[0]);
    drop(g, 1);
    return ok;
}

bool warpgroup_wait(struct worker *w, const struct instr *in) {
    struct warpgroup *g = of(w->warp);
    uint64_t end = due(w->warp, in);
    size_t n = end > g->done ? (size_t)(end - g->done) : 0;
    for (size_t i = 0; i < n; i++)
        if (!perform(w, w->cta, w->warp->index & ~3u, &g->ops[i]))
            return false;
    drop(g, n);
    if (w->la->check)
        inflight_wait(w, end);
    return true;
}
