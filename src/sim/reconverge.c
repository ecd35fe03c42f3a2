/* Where lanes that took different ways meet again: at the immediate post-dominator of the branch,
 * as a GPU's compiler places it, wherever the text has the code between.
 *
 * Every instruction gets a rank, and of a warp's groups of lanes the one of the lowest rank runs.
 * Ranks follow the flow, not the text: a block comes behind all that lead to it, a loop is one
 * stretch, and what it leaves to comes behind it (a weak topological order, after Bourdoncle). So
 * whatever lies between a branch and its post-dominator comes before the post-dominator, and lanes
 * wait there for the others. Text that is in such an order already keeps it.
 *
 * The one post-dominator that ranks below its branch is a loop's head, which lanes come back to
 * from several places. They would run ahead into the next round; there, `late` is the rank, behind
 * the loop's body, at which lanes that go back wait for those that have not. */
#include "sim/program.h"

#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define MAX_DEPTH 64u /* of loops; what lies deeper keeps the text's order */

struct frame {
    uint32_t block, edge;
};

struct graph {
    struct sim_program *p;
    uint32_t n;        /* blocks */
    uint32_t *starts;  /* their first instructions, then ncode */
    uint32_t *of;      /* block of an instruction that starts one */
    uint32_t *edge_at; /* of a block's successors in `edges`, then their number */
    uint32_t *edges;
    uint32_t *from_at, *from; /* predecessors; of node n, the end: blocks that leave */
    uint32_t *pdom;     /* immediate post-dominators; n: the end; NONE: the end is out of reach */
    uint32_t *loop_end; /* rank behind the loop that a block heads; 0: it heads none */
    uint32_t rank;      /* the next one */
    /* While components are looked for: */
    uint32_t *region, regions; /* the one that a block is in, and how many there were */
    uint32_t *index, *low, *stack, nstack, visits;
    struct frame *frames;
};

static bool goes_on(const struct instr *i) {
    bool leaves = i->kind == KIND_BRANCH || i->kind == KIND_BRANCH_TABLE || i->kind == KIND_EXIT ||
                  i->kind == KIND_TRAP;
    return !leaves || i->guard >= 0;
}

static void find_blocks(struct graph *g) {
    const struct sim_program *p = g->p;
    g->of[0] = 1;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        bool ends = i->kind == KIND_BRANCH || i->kind == KIND_BRANCH_TABLE ||
                    i->kind == KIND_EXIT || i->kind == KIND_TRAP;
        if (ends)
            g->of[k + 1] = 1;
        if (i->kind == KIND_BRANCH)
            g->of[i->target] = 1;
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            g->of[i->targets[t]] = 1;
    }
    for (size_t k = 0; k < p->ncode; k++)
        if (g->of[k]) {
            g->starts[g->n] = (uint32_t)k;
            g->of[k] = g->n++;
        }
    g->starts[g->n] = (uint32_t)p->ncode;
}

static uint32_t last_of(const struct graph *g, uint32_t b) {
    return g->starts[b + 1] - 1;
}

static void add_edge(struct graph *g, uint32_t *n, uint32_t code) {
    if (g->edges && code < g->p->ncode)
        g->edges[*n] = g->of[code];
    *n += code < g->p->ncode;
}

/* The successors; without `edges`, only how many there are. */
static uint32_t find_edges(struct graph *g) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < g->n; b++) {
        const struct instr *i = &g->p->code[last_of(g, b)];
        g->edge_at[b] = n;
        if (goes_on(i))
            add_edge(g, &n, g->starts[b + 1]);
        if (i->kind == KIND_BRANCH)
            add_edge(g, &n, i->target);
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            add_edge(g, &n, i->targets[t]);
    }
    g->edge_at[g->n] = n;
    return n;
}

/* ---- post-dominators, after Cooper, Harvey and Kennedy ---- */

struct backward {
    uint32_t *number; /* in the order a walk from the end left them; NONE: never met */
    uint32_t *order, met;
};

static bool leaves(const struct graph *g, uint32_t b) {
    const struct instr *i = &g->p->code[last_of(g, b)];
    return i->kind == KIND_EXIT || i->kind == KIND_TRAP || g->edge_at[b] == g->edge_at[b + 1];
}

static void turn_edges(struct graph *g) {
    for (uint32_t b = 0; b < g->n; b++) {
        for (uint32_t e = g->edge_at[b]; e < g->edge_at[b + 1]; e++)
            g->from_at[g->edges[e] + 1]++;
        g->from_at[g->n + 1] += leaves(g, b);
    }
    for (uint32_t b = 0; b <= g->n; b++)
        g->from_at[b + 1] += g->from_at[b];
    uint32_t *fill = mem_alloc((g->n + 1) * sizeof *fill);
    for (uint32_t b = 0; b < g->n; b++) {
        for (uint32_t e = g->edge_at[b]; e < g->edge_at[b + 1]; e++) {
            uint32_t to = g->edges[e];
            g->from[g->from_at[to] + fill[to]++] = b;
        }
        if (leaves(g, b))
            g->from[g->from_at[g->n] + fill[g->n]++] = b;
    }
    mem_free(fill);
}

static void walk_back(const struct graph *g, struct backward *r) {
    uint32_t depth = 0;
    bool *met = mem_alloc(g->n + 1);
    g->frames[depth++] = (struct frame){g->n, g->from_at[g->n]};
    met[g->n] = true;
    while (depth) {
        struct frame *f = &g->frames[depth - 1];
        if (f->edge == g->from_at[f->block + 1]) {
            r->number[f->block] = r->met;
            r->order[r->met++] = f->block;
            depth--;
            continue;
        }
        uint32_t next = g->from[f->edge++];
        if (!met[next]) {
            met[next] = true;
            g->frames[depth++] = (struct frame){next, g->from_at[next]};
        }
    }
    mem_free(met);
}

static uint32_t nearest(const struct graph *g, const struct backward *r, uint32_t a, uint32_t b) {
    while (a != b) {
        while (r->number[a] < r->number[b])
            a = g->pdom[a];
        while (r->number[b] < r->number[a])
            b = g->pdom[b];
    }
    return a;
}

static bool improve(struct graph *g, const struct backward *r, uint32_t b) {
    uint32_t best = leaves(g, b) ? g->n : NONE;
    for (uint32_t e = g->edge_at[b]; e < g->edge_at[b + 1]; e++) {
        uint32_t to = g->edges[e];
        if (r->number[to] == NONE || g->pdom[to] == NONE)
            continue;
        best = best == NONE ? to : nearest(g, r, to, best);
    }
    bool changed = best != g->pdom[b];
    g->pdom[b] = best;
    return changed;
}

static void find_post_dominators(struct graph *g) {
    struct backward r = {.number = mem_alloc((g->n + 1) * sizeof *r.number),
                         .order = mem_alloc((g->n + 1) * sizeof *r.order)};
    memset(r.number, 0xff, (g->n + 1) * sizeof *r.number);
    memset(g->pdom, 0xff, (g->n + 1) * sizeof *g->pdom);
    walk_back(g, &r);
    g->pdom[g->n] = g->n;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = r.met - 1; k-- > 0;) /* the end was left last */
            changed |= improve(g, &r, r.order[k]);
    }
    mem_free(r.number);
    mem_free(r.order);
}

/* ---- ranks ---- */

struct parts { /* strongly connected components, those that others lead to first */
    uint32_t *blocks, *ends;
    uint32_t nblocks, n;
};

static void enter(struct graph *g, uint32_t b, uint32_t *depth) {
    g->index[b] = g->low[b] = ++g->visits;
    g->stack[g->nstack++] = b;
    g->frames[(*depth)++] = (struct frame){b, g->edge_at[b + 1]};
}

static void leave(struct graph *g, uint32_t b, struct parts *out) {
    if (g->low[b] != g->index[b])
        return;
    uint32_t top;
    do {
        top = g->stack[--g->nstack];
        g->low[top] = NONE; /* it is in a component */
        out->blocks[out->nblocks++] = top;
    } while (top != b);
    out->ends[out->n++] = out->nblocks;
}

/* Tarjan's walk from one block, within its region. Successors are taken from the text's last to its
 * first, so that the first one comes out last and ranks first. */
static void walk(struct graph *g, uint32_t root, struct parts *out) {
    uint32_t depth = 0, region = g->region[root];
    enter(g, root, &depth);
    while (depth) {
        struct frame *f = &g->frames[depth - 1];
        uint32_t b = f->block;
        if (f->edge == g->edge_at[b]) {
            uint32_t above = --depth ? g->frames[depth - 1].block : NONE, low = g->low[b];
            leave(g, b, out);
            if (above != NONE && low < g->low[above])
                g->low[above] = low;
            continue;
        }
        uint32_t to = g->edges[--f->edge];
        if (g->region[to] != region)
            continue;
        if (!g->index[to])
            enter(g, to, &depth);
        else if (g->low[to] != NONE && g->index[to] < g->low[b])
            g->low[b] = g->index[to];
    }
}

static int by_text(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static void give_rank(struct graph *g, uint32_t b) {
    for (uint32_t k = g->starts[b]; k < g->starts[b + 1]; k++)
        g->p->code[k].rank = g->rank++;
}

/* The first one, in the text, that lanes come to from outside the region. */
static uint32_t head_of(const struct graph *g, const uint32_t *blocks, uint32_t n) {
    uint32_t region = g->region[blocks[0]];
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = blocks[k];
        for (uint32_t e = g->from_at[b]; e < g->from_at[b + 1]; e++)
            if (g->region[g->from[e]] != region)
                return b;
    }
    return blocks[0];
}

static void rank_region(struct graph *g, const uint32_t *blocks, uint32_t n, unsigned depth);

static bool repeats(const struct graph *g, uint32_t b) {
    for (uint32_t e = g->edge_at[b]; e < g->edge_at[b + 1]; e++)
        if (g->edges[e] == b)
            return true;
    return false;
}

/* What ranks lower may lead here; within a loop, so does all of it. */
static void note_reach(struct graph *g, const uint32_t *blocks, uint32_t n) {
    bool loop = n > 1 || repeats(g, blocks[0]);
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = g->starts[blocks[b]]; k < g->starts[blocks[b] + 1]; k++)
            g->p->code[k].reach = loop ? g->rank : g->p->code[k].rank;
}

/* A component: a block, or a loop, whose head comes first and whose rest is a region of its own. */
static void rank_part(struct graph *g, uint32_t *blocks, uint32_t n, unsigned depth) {
    if (n == 1) {
        give_rank(g, blocks[0]);
        return;
    }
    qsort(blocks, n, sizeof *blocks, by_text);
    g->regions++;
    for (uint32_t k = 0; k < n; k++) {
        g->region[blocks[k]] = g->regions;
        g->index[blocks[k]] = 0;
    }
    uint32_t head = head_of(g, blocks, n), rest = 0;
    for (uint32_t k = 0; k < n; k++)
        if (blocks[k] != head)
            blocks[rest++] = blocks[k];
    blocks[rest] = head;
    g->region[head] = ++g->regions;
    give_rank(g, head);
    rank_region(g, blocks, rest, depth + 1);
    g->loop_end[head] = g->rank++;
}

/* Blocks in the text's order. */
static void rank_region(struct graph *g, const uint32_t *blocks, uint32_t n, unsigned depth) {
    if (depth == MAX_DEPTH) {
        for (uint32_t k = 0; k < n; k++)
            give_rank(g, blocks[k]);
        return;
    }
    struct parts parts = {.blocks = mem_alloc((n + 1) * sizeof *parts.blocks),
                          .ends = mem_alloc((n + 1) * sizeof *parts.ends)};
    for (uint32_t k = n; k-- > 0;)
        if (!g->index[blocks[k]])
            walk(g, blocks[k], &parts);
    for (uint32_t k = parts.n; k-- > 0;) {
        uint32_t first = k ? parts.ends[k - 1] : 0;
        uint32_t size = parts.ends[k] - first;
        rank_part(g, parts.blocks + first, size, depth);
        if (depth == 0)
            note_reach(g, parts.blocks + first, size);
    }
    mem_free(parts.blocks);
    mem_free(parts.ends);
}

/* ---- lanes that come back to a loop's head from several places ---- */

static uint32_t rank_of(const struct graph *g, uint32_t b) {
    return g->p->code[g->starts[b]].rank;
}

/* From the branches that have `head` as their post-dominator, to wherever lanes go back to it. */
static void mark_late(struct graph *g, uint32_t head, uint32_t branch) {
    uint32_t n = 0, now = ++g->regions;
    g->stack[n++] = branch;
    g->region[branch] = g->region[head] = now;
    while (n) {
        uint32_t b = g->stack[--n];
        for (uint32_t e = g->edge_at[b]; e < g->edge_at[b + 1]; e++) {
            uint32_t to = g->edges[e];
            if (to == head)
                g->p->code[last_of(g, b)].late = g->loop_end[head];
            if (g->region[to] == now)
                continue;
            g->region[to] = now;
            g->stack[n++] = to;
        }
    }
}

static void find_late(struct graph *g) {
    uint32_t *marked = mem_alloc((g->n + 1) * sizeof *marked); /* by head, how many floods */
    for (uint32_t b = 0; b < g->n; b++) {
        uint32_t join = g->pdom[b];
        bool several = g->edge_at[b + 1] - g->edge_at[b] > 1;
        if (join >= g->n || !several || !g->loop_end[join] || rank_of(g, join) > rank_of(g, b))
            continue;
        if (marked[join]++ < MAX_DEPTH)
            mark_late(g, join, b);
    }
    mem_free(marked);
}

static void note_joins(struct graph *g) {
    for (uint32_t b = 0; b < g->n; b++)
        g->p->code[last_of(g, b)].join = g->pdom[b] < g->n ? g->starts[g->pdom[b]] : NONE;
}

void reconverge_find(struct sim_program *p) {
    size_t n = p->ncode + 2;
    struct graph g = {.p = p,
                      .starts = mem_alloc(n * sizeof *g.starts),
                      .of = mem_alloc(n * sizeof *g.of),
                      .edge_at = mem_alloc(n * sizeof *g.edge_at)};
    find_blocks(&g);
    uint32_t edges = find_edges(&g), blocks = g.n + 2;
    uint32_t *work = mem_alloc((7 * (size_t)blocks + 2 * (size_t)edges + g.n) * sizeof *work);
    uint32_t **parts[] = {&g.pdom, &g.loop_end, &g.region, &g.index, &g.low, &g.stack, &g.from_at};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        *parts[k] = work + k * blocks;
    g.edges = work + 7 * (size_t)blocks;
    g.from = g.edges + edges;
    g.frames = mem_alloc(blocks * sizeof *g.frames);
    find_edges(&g);
    turn_edges(&g);
    find_post_dominators(&g);
    uint32_t *all = mem_alloc(blocks * sizeof *all);
    for (uint32_t b = 0; b < g.n; b++)
        all[b] = b;
    rank_region(&g, all, g.n, 0);
    find_late(&g);
    note_joins(&g);
    mem_free(all);
    mem_free(g.frames);
    mem_free(work);
    mem_free(g.starts);
    mem_free(g.of);
    mem_free(g.edge_at);
}
