/* Registers of a wgmma between its issue and its wait, and setmaxnreg.
 *
 * A warp may not read or write the accumulators of a product under way, nor write what it
 * multiplies from registers; what other instructions wrote there has to lie before a wgmma.fence.
 * Moves are left out of the latter: compilers place copies of values right before the wgmma that
 * takes them, whatever the source says, and the assembler knows them. */
#include "sim/check.h"

#include <inttypes.h>
#include <string.h>

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

void inflight_end(struct worker *w, struct gang *g) {
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
