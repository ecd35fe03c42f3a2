/* Nothing can go on any more: which threads wait where, and for what. */
#include "sim/machine.h"

#include <inttypes.h>
#include <string.h>

#define MAX_NAMED_WAITERS 4u

static void say_line(const struct worker *w, struct text *t, uint32_t pc) {
    const struct ptx_instr *src = w->p->code[pc].src;
    if (src->src_line)
        text_say(t, "line %u", src->src_line);
    else
        text_say(t, "PTX line %u", src->line);
}

static const char *what_for(const struct group *g) {
    return g->wait == WAIT_BARRIER   ? "wait elsewhere or are gone; a barrier must be reached by "
                                       "all threads that it counts"
           : g->wait == WAIT_CLUSTER ? "have not arrived at the cluster's barrier"
           : g->wait == WAIT_WGMMA   ? "of its warpgroup have not issued the same wgmma"
                                     : "of its warp wait elsewhere";
}

/* "; threads 32-63 wait at line 12" for the groups after the first. */
static void say_others(const struct worker *w, const struct gang *g, struct text *t,
                       const struct group *first) {
    unsigned said = 0;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            const struct warp *wp = &g->ctas[c].warps[i];
            for (unsigned k = 0; k < wp->nparked && said < MAX_NAMED_WAITERS; k++) {
                const struct group *o = &wp->parked[k];
                if (o == first || (o->pc == first->pc && o->wait == first->wait))
                    continue;
                uint32_t low = (uint32_t)__builtin_ctz(o->mask),
                         high = 31u - (uint32_t)__builtin_clz(o->mask);
                text_say(t, "; threads %u-%u", i * SIM_LANES + low, i * SIM_LANES + high);
                if (g->n > 1)
                    text_say(t, " of block %u of the cluster", c);
                text_say(t, " wait at ");
                say_line(w, t, o->pc);
                said++;
            }
        }
}

static bool stuck_at(struct worker *w, struct gang *g, struct warp *wp, const struct group *p) {
    const struct instr *in = &w->p->code[p->pc];
    w->cta = wp->cta;
    w->warp = wp;
    w->in = in;
    struct text t = fault_begin(w, SIM_NO_PROGRESS, (unsigned)__builtin_ctz(p->mask));
    text_say(&t, "waits for ever at '%.*s': ", STR_ARG(str_cut(in->src->text, 0, 120)));
    if (in->kind == KIND_SHUFFLE)
        text_say(&t, "a shuffle from absent lanes, which its mask names: ");
    text_say(&t, "other threads that it waits for %s", what_for(p));
    say_others(w, g, &t, p);
    return false;
}

bool stuck_gang(struct worker *w, struct gang *g) {
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++)
            if (g->ctas[c].warps[i].nparked)
                return stuck_at(w, g, &g->ctas[c].warps[i], &g->ctas[c].warps[i].parked[0]);
    return true;
}

/* One that waits for memory now, or did when it last ran, or at least one that is still there. */
static struct warp *polling_warp(const struct worker *w, const struct gang *g) {
    struct warp *best = NULL;
    for (uint32_t c = 0; c < g->n; c++)
        for (uint32_t i = 0; i < w->la->nwarps; i++) {
            struct warp *wp = &g->ctas[c].warps[i];
            if (!wp->live)
                continue;
            if (wp->polling)
                return wp;
            if (!best || (!best->poll.address && wp->poll.address))
                best = wp;
        }
    return best;
}

static void say_memory(const struct worker *w, struct text *t, const struct warp *wp) {
    text_say(t, "waits for ever for memory to change");
    if (wp->poll.address) {
        text_say(t, " at ");
        fault_place(w, t, wp->poll.address);
    }
    text_say(t, ": nobody writes there any more");
}

/* What is missing until the phase of an mbarrier ends; false: it waits for something else. */
static bool say_phase(const struct worker *w, struct text *t, const struct warp *wp) {
    uint64_t at = wp->poll.address - w->la->m->windows, rank = at >> RANK_SHIFT, word;
    if (w->p->code[wp->poll.pc].kind != KIND_MBARRIER || rank > w->gang->n ||
        (at & RANK_OFFSETS) + 8 > w->la->shared_bytes)
        return false;
    const struct cta *c = rank ? &w->gang->ctas[rank - 1] : wp->cta;
    memcpy(&word, c->shared + (at & RANK_OFFSETS), 8);
    int32_t bytes = tile_mbarrier_tx(word);
    text_say(t,
             "waits for ever for the mbarrier at shared memory + %" PRIu64
             ": of this phase %u of %u arrivals are missing",
             at & RANK_OFFSETS, tile_mbarrier_pending(word), tile_mbarrier_expected(word));
    if (bytes > 0)
        text_say(t, " and %" PRIi32 " bytes of copies", bytes);
    if (bytes < 0)
        text_say(t, ", and copies brought %" PRIi32 " bytes more than it was told to expect",
                 -bytes);
    return true;
}

bool stuck_grid(struct worker *w, struct gang *first) {
    struct warp *wp = polling_warp(w, first);
    BUG_IF(!wp);
    uint64_t gangs = 0;
    for (const struct gang *g = first; g; g = g->next)
        gangs++;
    w->gang = first;
    w->cta = wp->cta;
    w->warp = wp;
    w->in = &w->p->code[wp->poll.pc];
    struct text t = fault_begin(w, SIM_NO_PROGRESS, wp->poll.lane);
    w->fault.address = wp->poll.address;
    if (!say_phase(w, &t, wp))
        say_memory(w, &t, wp);
    text_say(&t, "; %" PRIu64 " blocks wait like this", gangs * w->la->gang_ctas);
    uint64_t waiting = atomic_load(&w->la->next);
    if (waiting < w->la->gangs)
        text_say(&t,
                 ", %" PRIu64 " have not started because no block ends; do not wait for blocks "
                 "that may start later",
                 (w->la->gangs - waiting) * w->la->gang_ctas);
    return false;
}
