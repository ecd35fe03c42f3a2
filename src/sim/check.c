/* The memory of the checks: findings, shadows of buffers, what gangs know; and what was read though
 * nothing wrote it. */
#include "sim/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
        if (b->b.result) {
            mem_free(b->stored);
            b->stored = mem_alloc(b->b.size / 8 + 1);
            b->unsettled = false;
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

uint32_t check_granule(const struct worker *w) {
    return w->la->check->granule;
}

static bool reserve(struct check *c, size_t bytes) {
    if (c->used + bytes > MAX_BYTES)
        return false;
    c->used += bytes;
    return true;
}

void *check_alloc(struct worker *w, size_t bytes) {
    struct check *c = w->la->check;
    return reserve(c, bytes) ? arena_alloc(c->arena, bytes, 8) : NULL;
}

struct cell *check_page(struct worker *w, size_t map, size_t page) {
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

struct sync_place *check_place(struct worker *w, uint64_t address, bool make) {
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

void finding_line(const struct worker *w, struct text *t, const struct instr *in) {
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

void finding_thread(const struct worker *w, struct text *t, const struct mark *m) {
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
    text_say(&out, ", which nothing has written");
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

void check_guest(struct worker *w, const struct cta *owner, unsigned lane) {
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
