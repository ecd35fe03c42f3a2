/* Copies that end later.
 *
 * cp.async: each lane's copies are done when it waits for their group, or when somebody waits for
 * the mbarrier that follows them. Until then the destination keeps what it held.
 *
 * Bulk copies: cp.async.bulk of rows and tensors, reductions, stores into other blocks. A copy is
 * done when its group is waited for, or when nothing else of the gang can run, one that somebody
 * waits for before others; then it completes bytes on its mbarrier, in every block it went to. A
 * store whose group is waited for with .read has read its source, no more: what it writes is kept,
 * and comes later. */
#include "sim/check.h"
#include "sim/timing.h"
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

/* ---- bulk copies ---- */

#define MAX_KEPT   64u  /* stores that have been read and not written */
#define MAX_WAITED 256u /* mbarriers that are looked at to find out what is waited for */

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

bool sim_tensormap(const struct tile_map *m, void *out, struct err *err) {
    return tile_map_encode(m, out, err);
}

static uint64_t reg(const struct worker *w, const struct instr *in, unsigned index, unsigned lane,
                    bool wide) {
    const uint8_t *at = w->warp->regs + in->reads[index];
    return wide ? ((const u64_lane *)at)[lane] : ((const u32_lane *)at)[lane];
}

static uint64_t address_of(const struct worker *w, const struct instr *in, const struct where *at,
                           unsigned lane) {
    uint64_t base = reg(w, in, at->base, lane, at->wide) + (uint64_t)at->offset;
    return at->wide ? base : (uint32_t)base;
}

static bool illegal(struct worker *w, unsigned lane, const char *why) {
    struct text t = fault_begin(w, SIM_TRAP, lane);
    text_say(&t, "executes '%.*s': %s", STR_ARG(str_cut(w->in->src->text, 0, 100)), why);
    return false;
}

static bool read_map(struct worker *w, struct bulk *b, uint64_t address) {
    const uint8_t *at =
        memory_range(w, PTX_GENERIC, b->lane, address, TILE_MAP_BYTES, 64, USE_READ);
    if (!at)
        return false;
    if (!tile_map_decode(at, &b->map))
        return illegal(w, b->lane, "there is no tensor map at the address it names");
    if (b->map.rank != b->in->async->rank)
        return illegal(w, b->lane, "the tensor map is of another rank");
    for (unsigned i = 0; i < b->map.rank; i++)
        b->coordinate[i] = (int32_t)reg(w, b->in, b->in->async->coordinate + i, b->lane, false);
    b->bytes = tile_map_box_bytes(&b->map);
    return true;
}

/* The rules that an instruction breaks at once, whatever happens later. */
static bool check_rules(struct worker *w, const struct bulk *b) {
    const struct async_op *a = b->in->async;
    bool load = b->in->mode == BULK_LOAD;
    const char *why = NULL;
    if (a->rank)
        why = tile_tensor_check(&b->map, b->coordinate,
                                (uint32_t)((load ? b->to : b->from) & RANK_OFFSETS), !load);
    else if (b->in->mode != BULK_WRITE)
        why = tile_bulk_check(b->to, b->from, b->bytes);
    if (!why && a->reduces && !tile_reduce_exists(a->op, a->rank ? b->map.type : a->type))
        why = "there is no such reduction of this type";
    return !why || illegal(w, b->lane, why);
}

/* The mbarriers that the copy will complete bytes on have to be there when it is asked for. */
static void use_barriers(struct worker *w, const struct bulk *b) {
    uint64_t offset = b->bar & RANK_OFFSETS, rank = b->bar >> RANK_SHIFT;
    if (b->in->async->grouped || offset + 8 > w->la->shared_bytes || rank > w->gang->n)
        return; /* whose fault that is shows when the copy is done */
    uint32_t ctas = b->ctas ? b->ctas : 1u << (rank ? rank - 1 : w->cta->rank);
    for (uint32_t m = ctas; m; m &= m - 1)
        if ((uint32_t)__builtin_ctz(m) < w->gang->n)
            order_place_use(w, b->lane, w->gang->ctas[__builtin_ctz(m)].shared + offset);
}

/* Of timed gangs: when the copy will be there, for whoever waits for it. */
static void note_arrival(struct worker *w, const struct bulk *b) {
    const struct gang *g = w->gang;
    uint64_t offset = b->bar & RANK_OFFSETS, rank = b->bar >> RANK_SHIFT;
    for (uint32_t k = 0; k < g->n; k++) {
        bool there = b->ctas ? b->ctas >> k & 1
                             : &g->ctas[k] == (rank && rank <= g->n ? &g->ctas[rank - 1] : w->cta);
        if (there)
            timing_copy(w, g->ctas[k].shared + offset);
    }
}

static bool bulk_add(struct worker *w, const struct instr *in, unsigned lane) {
    const struct async_op *a = in->async;
    struct gang *g = w->gang;
    struct bulk b = {.in = in, .warp = w->warp, .lane = lane};
    b.group = w->warp->bulk_commits[lane];
    b.to = address_of(w, in, &a->to, lane);
    if (in->mode != BULK_WRITE)
        b.from = address_of(w, in, &a->from, lane);
    if (!a->grouped)
        b.bar = address_of(w, in, &a->bar, lane);
    if (a->multicast)
        b.ctas = (uint16_t)reg(w, in, a->multicast, lane, false);
    if (a->rank && !read_map(w, &b, in->mode == BULK_LOAD ? b.from : b.to))
        return false;
    if (in->mode == BULK_WRITE)
        b.bytes = (uint32_t)a->nvalues * a->nbytes;
    else if (!a->rank)
        b.bytes = (uint32_t)reg(w, in, a->size, lane, false);
    for (unsigned k = 0; k < a->nvalues; k++)
        b.value[k] = reg(w, in, a->value + k, lane, a->nbytes == 8);
    if (!check_rules(w, &b))
        return false;
    if (g->nbulks == MAX_UNDER_WAY)
        return illegal(w, lane, "65536 copies are under way and nobody waits for them");
    if (w->la->check) {
        use_barriers(w, &b);
        b.clock = order_copy_issue(w);
    }
    g->bulks = mem_grow(g->bulks, &g->bulks_cap, g->nbulks + 1, sizeof *g->bulks);
    g->bulks[g->nbulks++] = b;
    w->c.async_bytes += b.bytes;
    if (g->time && !a->grouped)
        note_arrival(w, &b);
    return true;
}

bool bulk_issue(struct worker *w, const struct instr *in, uint32_t mask) {
    for (uint32_t m = mask; m; m &= m - 1)
        if (!bulk_add(w, in, (unsigned)__builtin_ctz(m)))
            return false;
    return true;
}

/* An address of another block: the same offset there. */
static uint64_t in_cta(uint64_t address, uint32_t rank) {
    return (address & RANK_OFFSETS) | (uint64_t)(rank + 1) << RANK_SHIFT;
}

/* A piece's bytes on either side: the short way where nothing can be wrong with them. */
static uint8_t *shared_piece(struct worker *w, const struct bulk *b, uint64_t address,
                             uint32_t bytes, enum use use) {
    uint64_t offset = address & RANK_OFFSETS, rank = address >> RANK_SHIFT;
    if (w->la->check || offset + bytes > w->la->shared_bytes || rank > w->gang->n)
        return memory_range(w, PTX_SHARED, b->lane, address, bytes, 1, use);
    return (rank ? w->gang->ctas[rank - 1].shared : w->cta->shared) + offset;
}

static uint8_t *global_piece(struct worker *w, const struct bulk *b, uint64_t address,
                             uint32_t bytes, enum use use) {
    uint8_t *at = global_bulk(w, address, bytes, use != USE_READ);
    return at ? at : memory_range(w, PTX_GLOBAL, b->lane, address, bytes, 1, use);
}

static bool load_tensor(struct worker *w, const struct bulk *b, uint64_t to) {
    struct tile_walk walk;
    struct tile_piece p;
    tile_walk_start(&walk, &b->map, b->coordinate, (uint32_t)(to & RANK_OFFSETS), false);
    while (tile_walk_next(&walk, &p)) {
        uint8_t *dst =
            shared_piece(w, b, p.shared | (to & ~(uint64_t)RANK_OFFSETS), p.bytes, USE_WRITE);
        if (!dst)
            return false;
        if (!p.inside) {
            tile_map_fill(&b->map, dst, p.bytes);
            continue;
        }
        const uint8_t *src = global_piece(w, b, p.global, p.bytes, USE_READ);
        if (!src)
            return false;
        tile_map_convert(&b->map, dst, src, p.bytes);
    }
    return true;
}

static void combine(const struct async_op *a, enum tile_map_type t, uint8_t *dst,
                    const uint8_t *src, size_t n) {
    if (a->reduces)
        tile_reduce(a->op, t, dst, src, n);
    else
        memcpy(dst, src, n);
}

static bool store_tensor(struct worker *w, const struct bulk *b) {
    struct tile_walk walk;
    struct tile_piece p;
    size_t done = 0;
    enum use use = b->in->async->reduces ? USE_ATOMIC : USE_WRITE;
    tile_walk_start(&walk, &b->map, b->coordinate, (uint32_t)b->from, true);
    for (; tile_walk_next(&walk, &p); done += p.bytes) {
        const uint8_t *src =
            b->data ? b->data + done : shared_piece(w, b, p.shared, p.bytes, USE_READ);
        if (!src)
            return false;
        if (!p.inside)
            continue;
        uint8_t *dst = global_piece(w, b, p.global, p.bytes, use);
        if (!dst)
            return false;
        combine(b->in->async, b->map.type, dst, src, p.bytes);
    }
    return true;
}

/* The source of a store, into `data`. */
static bool read_source(struct worker *w, struct bulk *b, uint8_t *data) {
    struct tile_walk walk;
    struct tile_piece p;
    size_t done = 0;
    if (!b->in->async->rank) {
        const uint8_t *src = memory_range(w, PTX_SHARED, b->lane, b->from, b->bytes, 16, USE_READ);
        if (src)
            memcpy(data, src, b->bytes);
        return src != NULL;
    }
    tile_walk_start(&walk, &b->map, b->coordinate, (uint32_t)b->from, true);
    for (; tile_walk_next(&walk, &p); done += p.bytes) {
        const uint8_t *src = shared_piece(w, b, p.shared, p.bytes, USE_READ);
        if (!src)
            return false;
        memcpy(data + done, src, p.bytes);
    }
    return true;
}

static bool copy_rows(struct worker *w, const struct bulk *b, uint64_t to) {
    const struct async_op *a = b->in->async;
    bool load = b->in->mode == BULK_LOAD, store = b->in->mode == BULK_STORE;
    if (!b->bytes)
        return true;
    const uint8_t *src = b->data ? b->data
                                 : memory_range(w, load ? PTX_GLOBAL : PTX_SHARED, b->lane, b->from,
                                                b->bytes, 16, USE_READ);
    uint8_t *dst = src ? memory_range(w, store ? PTX_GLOBAL : PTX_SHARED, b->lane, to, b->bytes, 16,
                                      a->reduces ? USE_ATOMIC : USE_WRITE)
                       : NULL;
    if (dst)
        combine(a, a->type, dst, src, b->bytes);
    return dst != NULL;
}

static bool write_values(struct worker *w, const struct bulk *b) {
    const struct async_op *a = b->in->async;
    uint8_t *dst = memory_range(w, PTX_SHARED, b->lane, b->to, b->bytes, b->bytes,
                                a->reduces ? USE_ATOMIC : USE_WRITE);
    for (unsigned k = 0; dst && k < a->nvalues; k++)
        combine(a, a->type, dst + (size_t)k * a->nbytes, (const uint8_t *)&b->value[k], a->nbytes);
    return dst != NULL;
}

static bool copy_into(struct worker *w, const struct bulk *b, uint64_t to, uint64_t bar) {
    bool tensor = b->in->async->rank != 0;
    bool ok = b->in->mode == BULK_WRITE  ? write_values(w, b)
              : !tensor                  ? copy_rows(w, b, to)
              : b->in->mode == BULK_LOAD ? load_tensor(w, b, to)
                                         : store_tensor(w, b);
    return ok && (b->in->async->grouped || mbarrier_complete(w, b->lane, bar, b->bytes));
}

static bool copy_everywhere(struct worker *w, const struct bulk *b) {
    bool ok = b->ctas || copy_into(w, b, b->to, b->bar);
    for (uint32_t m = b->ctas; ok && m; m &= m - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(m);
        ok = rank < w->gang->n
                 ? copy_into(w, b, in_cta(b->to, rank), in_cta(b->bar, rank))
                 : illegal(w, b->lane, "its mask names a block that the cluster does not have");
    }
    if (ok)
        global_bulk_done(w);
    return ok;
}

/* All of it, or its source alone. */
static bool bulk_perform(struct worker *w, struct bulk *b, bool source) {
    struct warp *here = w->warp;
    const struct instr *at = w->in;
    w->warp = b->warp;
    w->cta = b->warp->cta;
    w->in = b->in;
    w->agent = w->proxy = true;
    if (b->clock)
        order_copy_begin(w, b->clock);
    uint8_t *data = source ? mem_alloc(b->bytes + 1) : NULL;
    bool ok = source ? read_source(w, b, data) : copy_everywhere(w, b);
    w->agent = w->proxy = false;
    if (source)
        b->data = data;
    if (!ok)
        return false;
    w->warp = here;
    w->cta = here->cta;
    w->in = at;
    return true;
}

static void bulk_release(struct bulk *b) {
    mem_free(b->clock);
    mem_free(b->data);
}

void bulk_clear(struct gang *g) {
    for (size_t k = 0; k < g->nbulks; k++)
        bulk_release(&g->bulks[k]);
    g->nbulks = 0;
}

/* Takes it off the list and does what is left of it. */
static bool complete(struct worker *w, struct gang *g, size_t at) {
    struct bulk b = g->bulks[at];
    g->nbulks--;
    memmove(g->bulks + at, g->bulks + at + 1, (g->nbulks - at) * sizeof *g->bulks);
    bool ok = bulk_perform(w, &b, false);
    bulk_release(&b);
    return ok;
}

static bool is_due(const struct worker *w, const struct bulk *b, const struct instr *in,
                   uint32_t mask) {
    return b->warp == w->warp && mask >> b->lane & 1 && b->in->async->grouped &&
           (uint64_t)b->group + in->target < w->warp->bulk_commits[b->lane];
}

static bool limit_kept(struct worker *w, struct gang *g) {
    size_t kept = 0;
    for (size_t k = 0; k < g->nbulks; k++)
        kept += g->bulks[k].data != NULL;
    for (size_t k = 0; kept > MAX_KEPT && k < g->nbulks;) {
        if (!g->bulks[k].data) {
            k++;
            continue;
        }
        kept--;
        if (!complete(w, g, k))
            return false;
    }
    return true;
}

bool bulk_wait(struct worker *w, const struct instr *in, uint32_t mask) {
    struct gang *g = w->gang;
    bool ok = true;
    for (size_t k = 0; ok && k < g->nbulks;) {
        struct bulk *b = &g->bulks[k];
        bool keep = in->async->read_only && b->in->mode == BULK_STORE && b->bytes;
        if (!is_due(w, b, in, mask)) {
            k++;
        } else if (keep) {
            ok = b->data || bulk_perform(w, b, true);
            k++;
        } else {
            ok = complete(w, g, k);
        }
    }
    if (ok && w->la->check)
        order_copy_waited(w, w->warp);
    return ok && limit_kept(w, g);
}

static bool ends_on(const struct bulk *b, const uint64_t *waited, size_t n) {
    uint64_t own = b->bar >> RANK_SHIFT ? b->bar : in_cta(b->bar, b->warp->cta->rank);
    for (size_t i = 0; i < n; i++) {
        uint64_t rank = (waited[i] >> RANK_SHIFT) - 1;
        bool cast =
            rank < MAX_CLUSTER && b->ctas >> rank & 1 && ((waited[i] ^ own) & RANK_OFFSETS) == 0;
        if (cast || (!b->ctas && waited[i] == own))
            return true;
    }
    return false;
}

bool bulk_advance(struct worker *w, struct gang *g) {
    uint64_t waited[MAX_WAITED];
    size_t n, at = 0;
    if (!g->nbulks)
        return false;
    n = phase_waited(w, g, waited, MAX_WAITED);
    while (at < g->nbulks &&
           (g->bulks[at].in->async->grouped || !ends_on(&g->bulks[at], waited, n)))
        at++;
    at = at < g->nbulks ? at : 0;
    w->warp = g->bulks[at].warp;
    w->cta = w->warp->cta;
    return complete(w, g, at);
}

bool bulk_early(struct worker *w, struct gang *g, size_t which, bool source) {
    struct bulk *b = &g->bulks[which];
    w->warp = b->warp;
    w->cta = w->warp->cta;
    if (source && b->in->mode == BULK_STORE && b->bytes)
        return b->data || bulk_perform(w, b, true);
    return complete(w, g, which);
}

bool bulk_replace(struct worker *w, const struct instr *in, uint32_t mask) {
    const struct async_op *a = in->async;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        struct err err = {0};
        uint8_t *at = memory_range(w, a->to.space, i, address_of(w, in, &a->to, i), TILE_MAP_BYTES,
                                   64, USE_WRITE);
        if (!at)
            return false;
        if (!tile_map_replace(at, a->field, a->ord, reg(w, in, a->value, i, a->nbytes == 8), &err))
            return illegal(w, i, err.text);
    }
    return true;
}
