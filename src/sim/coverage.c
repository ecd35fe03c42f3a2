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
#include <string.h>

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

/* setp of two integers, with no other predicate in it. */
static uint16_t of_integers(const struct ptx_instr *in) {
    static const struct {
        const char *type;
        uint16_t choice;
    } types[] = {{"b32", CHOICE_EQUAL}, {"s32", CHOICE_EQUAL}, {"u32", CHOICE_EQUAL},
                 {"b64", CHOICE_WIDE},  {"s64", CHOICE_WIDE},  {"u64", CHOICE_WIDE}};
    static const char *const orders[] = {"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
    uint16_t order = 0;
    if (in->nmods != 2)
        return 0;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (str_is(in->mods[0], orders[i]))
            order = CHOICE_ORDER;
    if (!order && !str_is(in->mods[0], "eq") && !str_is(in->mods[0], "ne"))
        return 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(in->mods[1], types[i].type))
            return types[i].choice | order;
    return 0;
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
            i->choice |= CHOICE_COMPARE | of_integers(i->src);
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

static int64_t difference(const uint8_t *a, const uint8_t *b, bool wide, unsigned lane) {
    int64_t x = 0, y = 0;
    int32_t narrow[2];
    if (wide) {
        memcpy(&x, a + 8 * lane, 8);
        memcpy(&y, b + 8 * lane, 8);
    } else {
        memcpy(&narrow[0], a + 4 * lane, 4);
        memcpy(&narrow[1], b + 4 * lane, 4);
        x = narrow[0];
        y = narrow[1];
    }
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

/* Of the first thread of a block, when it first comes there. */
static void note_miss(struct worker *w, const struct warp *wp, const struct instr *in,
                      uint32_t mask) {
    struct sim_miss *m = &w->misses[in - w->p->code];
    const uint8_t *a = wp->regs + in->a, *b = wp->regs + in->b;
    bool wide = in->choice & CHOICE_WIDE, order = in->choice & CHOICE_ORDER;
    m->order = order;
    for (uint32_t left = m->met || order ? 0 : mask; left && !m->met; left &= left - 1)
        m->met = !difference(a, b, wide, (unsigned)__builtin_ctz(left));
    if (wp->index || !(mask & 1) || m->n == SIM_MISSES)
        return;
    uint32_t id[3];
    const uint32_t *grid = w->la->l->grid;
    grid_cta_id(w->la, w->gang->ordinal, 0, id);
    uint64_t gang = id[0] + (uint64_t)grid[0] * (id[1] + (uint64_t)grid[1] * id[2]);
    if (m->n && m->gang[m->n - 1] == gang)
        return;
    m->gang[m->n] = gang;
    m->by[m->n++] = difference(a, b, wide, 0);
}

void coverage_after(struct worker *w, const struct warp *wp, const struct instr *in,
                    uint32_t mask) {
    if (!(in->choice & CHOICE_COMPARE))
        return;
    uint32_t yes = lanes_mask(wp->regs + in->d);
    w->covered[in - w->p->code] |= truths(mask & yes, mask & ~yes);
    if (w->misses && in->choice & (CHOICE_EQUAL | CHOICE_WIDE))
        note_miss(w, wp, in, mask);
}

void coverage_merge_misses(struct sim_miss *to, const struct sim_miss *from, size_t n) {
    for (size_t k = 0; k < n; k++) {
        to[k].met |= from[k].met;
        to[k].order |= from[k].order;
        for (uint32_t i = 0; i < from[k].n && to[k].n < SIM_MISSES; i++, to[k].n++) {
            to[k].gang[to[k].n] = from[k].gang[i];
            to[k].by[to[k].n] = from[k].by[i];
        }
    }
}

/* Where a line through three points at whole numbers x meets zero, rounded down. */
static bool zero_of(const int64_t x[SIM_MISSES], const int64_t by[SIM_MISSES], int64_t *out) {
    __int128 dx = (__int128)x[1] - x[0], dy = (__int128)by[1] - by[0];
    __int128 ex = (__int128)x[2] - x[0], ey = (__int128)by[2] - by[0];
    if (!dx || !ex || dx == ex || !dy || dy * ex != ey * dx)
        return false;
    __int128 at = x[0] * dy - (__int128)by[0] * dx;
    if ((at < 0) != (dy < 0) || at / dy > INT32_MAX)
        return false;
    *out = (int64_t)(at / dy);
    return true;
}

/* Places where the differences of comparisons meet zero: numbers of blocks, then, for each axis of
 * the grid, places along it. */
enum { ZEROS = 6 };
struct zeros {
    int64_t at[4][ZEROS];
    size_t n[4];
};

static void add_zero(struct zeros *z, int d, int64_t at, int64_t size) {
    bool known = at >= size;
    for (size_t i = 0; i < z->n[d]; i++)
        known |= z->at[d][i] == at;
    if (!known && z->n[d] < ZEROS)
        z->at[d][z->n[d]++] = at;
}

/* Blocks that lie evenly are on a line in several ways. */
static void find_zero(const struct sim_miss *m, const uint32_t grid[3], struct zeros *z) {
    for (int d = 0; d < 4; d++) {
        int64_t step = d == 2 ? grid[0] : d == 3 ? (int64_t)grid[0] * grid[1] : 1, zero;
        int64_t size = d ? grid[d - 1] : (int64_t)grid[0] * grid[1] * grid[2], x[SIM_MISSES];
        for (int i = 0; i < SIM_MISSES; i++)
            x[i] = (int64_t)m->gang[i] / step % size;
        if (!zero_of(x, m->by, &zero))
            continue;
        add_zero(z, d, zero, size);
        add_zero(z, d, zero + 1, size);
    }
}

struct gangs {
    uint64_t *at;
    size_t n, most;
    uint64_t all;
};

/* The first and the last block always run. */
static void add_gang(struct gangs *g, uint64_t gang) {
    bool known = gang == 0 || gang + 1 == g->all || g->n == g->most;
    for (size_t i = 0; i < g->n && !known; i++)
        known = g->at[i] == gang;
    if (!known)
        g->at[g->n++] = gang;
}

/* With a place along one axis, those along the others too: a block may be meant by several
 * comparisons together. */
static void add_zeros(const struct zeros *z, const uint32_t grid[3], struct gangs *g) {
    for (size_t i = 0; i < z->n[0]; i++)
        add_gang(g, (uint64_t)z->at[0][i]);
    for (size_t c = 0; c <= z->n[3]; c++)
        for (size_t b = 0; b <= z->n[2]; b++)
            for (size_t a = 0; a <= z->n[1]; a++) { /* the last of each: at the axis's beginning */
                uint64_t x = a < z->n[1] ? (uint64_t)z->at[1][a] : 0;
                uint64_t y = b < z->n[2] ? (uint64_t)z->at[2][b] : 0;
                uint64_t w = c < z->n[3] ? (uint64_t)z->at[3][c] : 0;
                add_gang(g, x + grid[0] * (y + (uint64_t)grid[1] * w));
            }
}

size_t sim_rare_gangs(const struct sim_miss *m, size_t n, const uint32_t grid[3], uint64_t *out,
                      size_t most) {
    struct gangs g = {out, 0, most, (uint64_t)grid[0] * grid[1] * grid[2]};
    struct zeros z = {0};
    for (int pass = 0; pass < 2; pass++) { /* those that may be met nowhere else come first */
        for (size_t k = 0; k < n; k++)
            if (m[k].n == SIM_MISSES && (m[k].met || m[k].order) == pass)
                find_zero(&m[k], grid, &z);
        add_zeros(&z, grid, &g);
    }
    return g.n;
}

/* ---- telling ---- */

void sim_place_text(const struct sim_program *p, size_t place, uint8_t kind, char *text, size_t n) {
    const struct instr *in = &p->code[place];
    const char *what = "a condition", *happens = "comes out the other way";
    if (kind == (SIM_WAS_TRUE | SIM_WAS_FALSE)) {
        happens = "is met";
    } else if (kind == SIM_REACHED) {
        what = "the case of a switch";
        happens = "is reached";
    } else if (kind != SIM_WAS_TRUE && kind != SIM_WAS_FALSE) {
        what = "a loop";
        happens = kind == SIM_LEFT_AFTER_ONE   ? "runs once"
                  : kind == SIM_LEFT_AFTER_TWO ? "runs twice"
                                               : "runs more than twice";
    }
    snprintf(text, n, "%s at line %u %s", what, in->src->src_line, happens);
}
