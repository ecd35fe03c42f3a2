/* mbarriers as the checks see them: who initialised one, what those who arrived knew. A place is an
 * mbarrier's word, by the block that has it and its offset there. */
#include "sim/check.h"

#include <string.h>

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

void order_places_drop(struct gang_check *g) {
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

void order_place_touch(struct worker *w, const struct touch *t) {
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
