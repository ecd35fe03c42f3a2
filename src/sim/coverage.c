/* Coverage: what became of a program's choices.
 *
 * A choice is a guard (of a branch or of any other instruction), a comparison, a selection, a
 * branch by a table, or how often a loop runs. Each is recorded at the instruction that makes it,
 * as the set of its outcomes over all lanes of all warps. Recording costs a look at every such
 * instruction and ends the straight lines before it, so it is done only where it is asked for.
 *
 * A loop is a place that a branch further down goes back to. How often lanes go through it is
 * counted for each entry into it: lanes that arrive at its head and do not come back from its end
 * have just entered it. */
#include "sim/machine.h"

#include <stdio.h>

size_t sim_places(const struct sim_program *p) {
    return p->ncode;
}

/* ---- finding the choices ---- */

static void find_loop(struct sim_program *p, struct instr *branch) {
    struct instr *head = &p->code[branch->target];
    if (!(head->choice & CHOICE_HEAD)) {
        if (p->nloops == UINT16_MAX)
            return;
        head->choice |= CHOICE_HEAD;
        head->loop = (uint16_t)p->nloops++;
    }
    /* A branch that is the head of its own loop keeps that loop's number. */
    branch->choice |= CHOICE_BACK;
}

void coverage_find_choices(struct sim_program *p) {
    for (size_t k = 0; k < p->ncode; k++) {
        struct instr *i = &p->code[k];
        bool lanes = i->kind == KIND_LANES;
        if (i->guard >= 0)
            i->choice |= CHOICE_GUARD;
        if (lanes && str_is(i->src->op, "selp"))
            i->choice |= CHOICE_SELECT;
        if (lanes && str_is(i->src->op, "setp"))
            i->choice |= CHOICE_COMPARE;
        if (i->kind == KIND_BRANCH && i->target <= k)
            find_loop(p, i);
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            p->code[i->targets[t]].choice |= CHOICE_TABLE;
    }
}

/* ---- recording ---- */

static uint8_t truths(uint32_t yes, uint32_t no) {
    return (uint8_t)((yes ? SIM_WAS_TRUE : 0) | (no ? SIM_WAS_FALSE : 0));
}

/* Of the lanes at a loop's end, `again` go back to its head and `leave` go on. */
static uint8_t count_pass(struct loop_passes *p, uint32_t again, uint32_t leave) {
    uint8_t seen = 0;
    if (leave & ~(p->once | p->more))
        seen |= SIM_LEFT_AFTER_ONE;
    if (leave & p->once)
        seen |= SIM_LEFT_AFTER_TWO;
    if (again & (p->once | p->more))
        seen |= SIM_RAN_ON;
    p->more = (p->more | (again & p->once)) & ~leave;
    p->once = (p->once | (again & ~p->more)) & ~leave & ~p->more;
    return seen;
}

void coverage_before(struct worker *w, struct warp *wp, const struct instr *in, uint32_t mask) {
    uint8_t *seen = &w->covered[in - w->p->code];
    if (in->choice & CHOICE_HEAD) {
        struct loop_passes *p = &wp->passes[in->loop];
        uint32_t entered = wp->run.mask & ~wp->came_back;
        p->once &= ~entered;
        p->more &= ~entered;
        wp->came_back &= ~wp->run.mask;
    }
    if (in->choice & CHOICE_GUARD)
        *seen |= truths(mask, wp->run.mask & ~mask);
    if (in->choice & CHOICE_SELECT) {
        uint32_t yes = lanes_mask(wp->regs + in->c);
        *seen |= truths(mask & yes, mask & ~yes);
    }
    if (in->choice & CHOICE_TABLE)
        *seen |= SIM_REACHED;
    if (in->choice & CHOICE_BACK) {
        *seen |= count_pass(&wp->passes[w->p->code[in->target].loop], mask, wp->run.mask & ~mask);
        wp->came_back |= mask;
    }
}

void coverage_after(struct worker *w, const struct warp *wp, const struct instr *in,
                    uint32_t mask) {
    if (!(in->choice & CHOICE_COMPARE))
        return;
    uint32_t yes = lanes_mask(wp->regs + in->d);
    w->covered[in - w->p->code] |= truths(mask & yes, mask & ~yes);
}

/* ---- telling ---- */

void sim_place_text(const struct sim_program *p, size_t place, uint8_t kind, char *text, size_t n) {
    const struct instr *in = &p->code[place];
    bool branch = in->kind == KIND_BRANCH;
    const char *what =
        kind == SIM_WAS_TRUE         ? branch ? "the branch is taken" : "the condition is true"
        : kind == SIM_WAS_FALSE      ? branch ? "the branch is not taken" : "the condition is false"
        : kind == SIM_LEFT_AFTER_ONE ? "the loop runs once"
        : kind == SIM_LEFT_AFTER_TWO ? "the loop runs twice"
        : kind == SIM_RAN_ON         ? "the loop runs more than twice"
                                     : "the case of a switch is reached";
    snprintf(text, n, "line %u: %s", in->src->src_line, what);
}
