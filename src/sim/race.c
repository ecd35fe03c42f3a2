/* Races: what the granules of memory remember, and whether an access knows of it. */
#include "sim/check.h"

#include <inttypes.h>
#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

struct party race_party(const struct worker *w, enum use use) {
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

static const char *remedy(const struct party *p, const struct mark *m) {
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
    if (m->slot == p->mark.slot)
        return "; lanes of a warp need __syncwarp() between them";
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
    finding_thread(w, &out, m);
    text_say(&out, " %s at ", wrote ? "wrote" : "read");
    finding_line(w, &out, other);
    text_say(&out, "%s", remedy(p, m));
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
    if (is_set(&c->read) && !ordered(w, p, &c->read) && !changes_nothing(w, t))
        report(w, t, p, &c->read, false);
    else if (is_set(&c->earlier) && !ordered(w, p, &c->earlier) && !changes_nothing(w, t))
        report(w, t, p, &c->earlier, false);
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

void race_touch(struct worker *w, struct party *p, const struct touch *t) {
    uint32_t size = check_granule(w);
    uint64_t first = t->offset / size, last = (t->offset + t->bytes - 1) / size;
    /* Memory that no kernel may write cannot be raced for. */
    if (t->space == PTX_GLOBAL && w->la->m->maps[t->map].b.read_only)
        return;
    p->mark.lane = (uint8_t)t->lane;
    granules(w, t, p, first, last - first + 1);
}

void race_arrived(struct worker *w, const struct touch *t) {
    uint32_t size = check_granule(w);
    struct party p = race_party(w, t->use);
    struct cell *cells = w->gang->check->cells[t->owner->rank];
    p.mark.flags &= (uint8_t)~MARK_PENDING;
    p.mark.lane = (uint8_t)t->lane;
    for (uint64_t i = t->offset / size; i <= (t->offset + t->bytes - 1) / size; i++)
        if (cells[i].write.pc == p.mark.pc) /* nobody has written over it */
            cells[i].write = p.mark;
}
