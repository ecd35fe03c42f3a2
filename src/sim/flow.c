/* What the code says before it runs: where lanes that parted meet again, where registers lie, which
 * registers an instruction reads and writes, which instructions wait for memory, whether blocks can
 * see each other, where it goes straight on. */
#include "sim/program.h"
#include <stdlib.h>
#include <string.h>

/* ---- where lanes that took different ways meet again ----
 *
 * At the immediate post-dominator of the branch, as a GPU's compiler places it, wherever the text
 * has the code between.
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

/* Marks where blocks start and numbers them; `starts` gets their first instructions, then ncode.
 * Both have room for one more than there are instructions. Returns how many there are. */
static uint32_t find_blocks(const struct sim_program *p, uint32_t *of, uint32_t *starts) {
    uint32_t n = 0;
    of[0] = 1;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        bool ends = i->kind == KIND_BRANCH || i->kind == KIND_BRANCH_TABLE ||
                    i->kind == KIND_EXIT || i->kind == KIND_TRAP;
        if (ends)
            of[k + 1] = 1;
        if (i->kind == KIND_BRANCH)
            of[i->target] = 1;
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            of[i->targets[t]] = 1;
    }
    for (size_t k = 0; k < p->ncode; k++)
        if (of[k]) {
            starts[n] = (uint32_t)k;
            of[k] = n++;
        }
    starts[n] = (uint32_t)p->ncode;
    return n;
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
    g.n = find_blocks(p, g.of, g.starts);
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

/* ---- registers' places in the file: which need a value at the start, and which can share one ----
 *
 * Liveness answers both. A register that can be read before it was written gets noise when a warp
 * starts, so that a program that reads one shows it. Registers that are never alive at the same
 * time share a place: compilers write PTX with a fresh register for every value, and a file that
 * fits the first-level cache is worth the trouble.
 *
 * Lanes are followed one at a time, so divergence does not matter: a guarded write keeps the old
 * value alive, and a write touches only the lanes that execute it. A value's life is taken as one
 * stretch of the code from its first to its last place, loops included. Past a size everything
 * keeps the place it has. */

#define UNIT           (4u * SIM_LANES) /* bytes of the register file that one bit stands for */
#define FLOW_MAX_WORDS (1u << 22)

struct flow {
    const struct sim_program *p;
    uint32_t *block_of; /* of the instruction that starts one; UINT32_MAX otherwise */
    uint32_t *starts;   /* of the blocks, then ncode */
    size_t nblocks, words;
    uint64_t *live; /* at the start of each block */
    uint64_t *now;
};

static void use(struct flow *f, uint32_t at) {
    f->now[at / UNIT / 64] |= UINT64_C(1) << (at / UNIT % 64);
}

static void define(struct flow *f, const struct instr *i, uint32_t at) {
    if (i->guard < 0)
        f->now[at / UNIT / 64] &= ~(UINT64_C(1) << (at / UNIT % 64));
}

static void step_back(struct flow *f, const struct instr *i) {
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (unsigned k = 0, n = flow_writes(i, reg); k < n; k++)
        define(f, i, reg[k]);
    for (unsigned k = 0, n = flow_reads(i, reg); k < n; k++)
        use(f, reg[k]);
}

static void merge(struct flow *f, size_t code) {
    if (code >= f->p->ncode)
        return;
    const uint64_t *from = f->live + f->block_of[code] * f->words;
    for (size_t w = 0; w < f->words; w++)
        f->now[w] |= from[w];
}

/* What is alive where block b ends. */
static void live_out(struct flow *f, size_t b) {
    const struct instr *last = &f->p->code[f->starts[b + 1] - 1];
    memset(f->now, 0, f->words * sizeof *f->now);
    bool leaves = last->kind == KIND_BRANCH || last->kind == KIND_EXIT || last->kind == KIND_TRAP;
    if (!leaves || last->guard >= 0)
        merge(f, f->starts[b + 1]);
    if (last->kind == KIND_BRANCH)
        merge(f, last->target);
    for (uint32_t t = 0; last->kind == KIND_BRANCH_TABLE && t < last->ntargets; t++)
        merge(f, last->targets[t]);
}

static bool visit(struct flow *f, size_t b) {
    live_out(f, b);
    for (size_t k = f->starts[b + 1]; k-- > f->starts[b];)
        step_back(f, &f->p->code[k]);
    uint64_t *live = f->live + b * f->words;
    bool changed = memcmp(live, f->now, f->words * sizeof *live) != 0;
    memcpy(live, f->now, f->words * sizeof *live);
    return changed;
}

static void flow_init(struct flow *f, const struct sim_program *p) {
    *f = (struct flow){.p = p, .words = p->register_bytes / UNIT / 64 + 1};
    f->block_of = mem_alloc((p->ncode + 1) * sizeof *f->block_of);
    f->starts = mem_alloc((p->ncode + 1) * sizeof *f->starts);
    f->nblocks = find_blocks(p, f->block_of, f->starts);
    if (f->nblocks * f->words > FLOW_MAX_WORDS)
        return;
    f->live = mem_alloc(f->nblocks * f->words * sizeof *f->live);
    f->now = mem_alloc(f->words * sizeof *f->now);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = f->nblocks; b-- > 0;)
            changed |= visit(f, b);
    }
}

static void flow_release(struct flow *f) {
    mem_free(f->block_of);
    mem_free(f->starts);
    mem_free(f->live);
    mem_free(f->now);
}

/* A place while places are given out anew. */
struct life {
    uint32_t old, new, units;
    uint32_t from, to; /* instructions; from > to: never */
    bool fixed;        /* keeps a place of its own */
    bool unset;        /* alive at the start */
    char shape;        /* as a place's */
};

struct slots {
    struct sim_program *p;
    struct life *lives; /* by old place */
    size_t n;
    uint32_t *life_of; /* by old unit */
};

static struct life *life_at(const struct slots *s, uint32_t at) {
    return &s->lives[s->life_of[at / UNIT]];
}

static void lives(struct life *l, uint32_t pc) {
    l->from = pc < l->from ? pc : l->from;
    l->to = pc > l->to ? pc : l->to;
}

static void collect(struct slots *s, const struct place *places, size_t n) {
    s->n = n + 1;
    s->lives = mem_alloc(s->n * sizeof *s->lives);
    s->life_of = mem_alloc((s->p->register_bytes / UNIT + 1) * sizeof *s->life_of);
    s->lives[0] = (struct life){.units = REGISTERS_START / UNIT, .fixed = true};
    for (size_t i = 0; i < n; i++) {
        struct life *l = &s->lives[i + 1];
        *l = (struct life){.old = places[i].at,
                           .units = places[i].bytes / 4,
                           .from = UINT32_MAX,
                           .shape = places[i].shape};
        for (uint32_t u = 0; u < l->units; u++)
            s->life_of[l->old / UNIT + u] = (uint32_t)(i + 1);
    }
}

static void fix(const struct slots *s) {
    const struct sim_program *p = s->p;
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (size_t i = 0; i < p->nconstants; i++)
        life_at(s, p->constants[i].at)->fixed = true;
    for (size_t i = 0; i < p->nparams; i++)
        life_at(s, p->params[i].at)->fixed = true;
    for (size_t i = 0; i < p->nspecials; i++)
        life_at(s, p->specials[i].at)->fixed = true;
    for (size_t k = 0; k < p->ncode; k++) {
        if (!p->code[k].pinned)
            continue;
        for (unsigned j = 0, n = flow_writes(&p->code[k], reg); j < n; j++)
            life_at(s, reg[j])->fixed = true;
        for (unsigned j = 0, n = flow_reads(&p->code[k], reg); j < n; j++)
            life_at(s, reg[j])->fixed = true;
    }
}

static void mark_live(const struct slots *s, const uint64_t *live, size_t words, uint32_t pc,
                      bool at_start) {
    for (size_t w = 0; w < words; w++)
        for (uint64_t m = live[w]; m; m &= m - 1) {
            uint32_t unit = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(m);
            struct life *l = &s->lives[s->life_of[unit]];
            lives(l, pc);
            l->unset |= at_start;
        }
}

static void measure(const struct slots *s, struct flow *f) {
    const struct sim_program *p = s->p;
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (size_t k = 0; k < p->ncode; k++) {
        for (unsigned j = 0, n = flow_writes(&p->code[k], reg); j < n; j++)
            lives(life_at(s, reg[j]), (uint32_t)k);
        for (unsigned j = 0, n = flow_reads(&p->code[k], reg); j < n; j++)
            lives(life_at(s, reg[j]), (uint32_t)k);
    }
    for (size_t b = 0; b < f->nblocks; b++) {
        mark_live(s, f->live + b * f->words, f->words, f->starts[b], b == 0);
        live_out(f, b);
        mark_live(s, f->now, f->words, f->starts[b + 1] - 1, false);
    }
}

static int by_start(const void *x, const void *y) {
    const struct life *a = *(struct life *const *)x, *b = *(struct life *const *)y;
    if (a->fixed != b->fixed)
        return a->fixed ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->old > b->old) - (a->old < b->old);
}

struct spare { /* a place that is free again after `to` */
    uint32_t at, to;
};
struct spares {
    struct spare *list;
    size_t n, cap;
};

/* Linear: the lives are met in the order of their beginnings. The place freed last is taken first:
 * it is likely still in the cache. */
static bool take(struct spares *s, uint32_t from, uint32_t *at) {
    for (size_t i = s->n; i-- > 0;)
        if (s->list[i].to < from) {
            *at = s->list[i].at;
            memmove(&s->list[i], &s->list[i + 1], (--s->n - i) * sizeof *s->list);
            return true;
        }
    return false;
}

static void assign(const struct slots *s) {
    struct life **order = mem_alloc(s->n * sizeof *order);
    struct spares spares[2] = {{0}};
    uint32_t end = 0;
    for (size_t i = 0; i < s->n; i++)
        order[i] = &s->lives[i];
    qsort(order, s->n, sizeof(struct life *), by_start);
    for (size_t i = 0; i < s->n; i++) {
        struct life *l = order[i];
        struct spares *of = &spares[l->units > 1];
        bool never = !l->fixed && l->from > l->to;
        if (never)
            continue;
        if (l->fixed || !take(of, l->from, &l->new)) {
            l->new = end;
            end += l->units * UNIT;
        }
        if (l->fixed)
            continue;
        of->list = mem_grow(of->list, &of->cap, of->n + 1, sizeof *of->list);
        of->list[of->n++] = (struct spare){l->new, l->to};
    }
    s->p->register_bytes = end;
    mem_free(spares[0].list);
    mem_free(spares[1].list);
    mem_free(order);
}

static void move(const struct slots *s, uint32_t *at) {
    *at = life_at(s, *at)->new;
}

static void rename_instr(const struct slots *s, struct instr *i) {
    uint32_t guard = (uint32_t)i->guard;
    move(s, &i->d);
    move(s, &i->a);
    move(s, &i->b);
    move(s, &i->c);
    move(s, &i->e);
    if (i->d2)
        move(s, &i->d2);
    if (i->guard >= 0) {
        move(s, &guard);
        i->guard = (int32_t)guard;
    }
    for (unsigned k = 0; i->mem && k < SIM_MAX_VECTOR; k++) {
        move(s, &i->mem->reg[k]);
        move(s, &i->mem->from[k]);
    }
    for (unsigned k = 0; i->mem && k < 2; k++)
        move(s, &i->mem->other[k]);
    for (unsigned k = 0; k < i->nreads; k++)
        move(s, &i->reads[k]);
    for (unsigned k = 0; k < i->nwrites; k++)
        move(s, &i->writes[k]);
}

static void rename_all(const struct slots *s) {
    struct sim_program *p = s->p;
    for (size_t k = 0; k < p->ncode; k++)
        rename_instr(s, &p->code[k]);
    for (size_t i = 0; i < p->nconstants; i++)
        move(s, &p->constants[i].at);
    for (size_t i = 0; i < p->nparams; i++)
        move(s, &p->params[i].at);
    for (size_t i = 0; i < p->nspecials; i++)
        move(s, &p->specials[i].at);
}

/* Places that a warp sets when it starts. */
static void list_unset(const struct slots *s, struct arena *a, bool all) {
    struct sim_program *p = s->p;
    p->unset = arena_array(a, struct unset_use, p->register_bytes / UNIT + s->n + 1);
    for (size_t i = 1; i < s->n; i++) {
        const struct life *l = &s->lives[i];
        for (uint32_t u = 0; (l->unset || (all && !l->fixed)) && u < l->units; u++)
            p->unset[p->nunset++] =
                (struct unset_use){(all ? l->old : l->new) + u * UNIT, l->shape};
    }
}

static void unfix_written(const struct slots *s) {
    /* A constant's place is never written; a pinned register's may be read before it is. */
    const struct sim_program *p = s->p;
    for (size_t i = 0; i < p->nconstants; i++)
        life_at(s, p->constants[i].at)->unset = false;
    for (size_t i = 0; i < p->nparams; i++)
        life_at(s, p->params[i].at)->unset = false;
    for (size_t i = 0; i < p->nspecials; i++)
        life_at(s, p->specials[i].at)->unset = false;
}

void slots_assign(struct sim_program *p, struct arena *a, const struct place *places, size_t n) {
    struct slots s = {.p = p};
    struct flow f;
    flow_init(&f, p);
    collect(&s, places, n);
    fix(&s);
    if (f.live) {
        measure(&s, &f);
        unfix_written(&s);
        assign(&s);
        rename_all(&s);
    }
    list_unset(&s, a, !f.live);
    flow_release(&f);
    mem_free(s.lives);
    mem_free(s.life_of);
}

/* Registers that an instruction writes, and those it reads. */
unsigned flow_writes(const struct instr *i, uint32_t *reg) {
    unsigned n = 0;
    bool loads = i->kind == KIND_LOAD || (i->kind == KIND_ATOMIC && i->mem->result);
    for (unsigned k = 0; loads && k < i->mem->count; k++)
        reg[n++] = i->mem->reg[k];
    if (i->dst_bytes)
        reg[n++] = i->d;
    if (i->d2)
        reg[n++] = i->d2;
    for (unsigned k = 0; k < i->nwrites; k++)
        reg[n++] = i->writes[k];
    return n;
}

unsigned flow_reads(const struct instr *i, uint32_t *reg) {
    unsigned n = 0;
    for (unsigned k = 0; i->kind == KIND_STORE && k < i->mem->count; k++)
        reg[n++] = i->mem->reg[k];
    for (unsigned k = 0; i->kind == KIND_ATOMIC && k < i->mem->count; k++)
        reg[n++] = i->mem->from[k];
    for (unsigned k = 0; i->kind == KIND_ATOMIC && i->mode == ATOMIC_CAS && k < i->mem->count; k++)
        reg[n++] = i->mem->other[k];
    reg[n++] = i->a;
    reg[n++] = i->b;
    reg[n++] = i->c;
    reg[n++] = i->e;
    if (i->guard >= 0)
        reg[n++] = (uint32_t)i->guard;
    for (unsigned k = 0; k < i->nreads; k++)
        reg[n++] = i->reads[k];
    return n;
}

static bool reads(const struct instr *i, const uint64_t *pending) {
    uint32_t from[FLOW_MAX_OPERANDS];
    for (unsigned k = 0, n = flow_reads(i, from); k < n; k++)
        if (pending[from[k] / UNIT / 64] >> (from[k] / UNIT % 64) & 1)
            return true;
    return false;
}

/* In program order: the first use of a loaded value waits for it and for every load before it. */
void flow_mark_waits(struct sim_program *p) {
    size_t words = p->register_bytes / UNIT / 64 + 1;
    uint64_t *pending = mem_alloc(words * sizeof *pending);
    for (size_t k = 0; k < p->ncode; k++) {
        struct instr *i = &p->code[k];
        i->waits = reads(i, pending);
        if (i->waits)
            memset(pending, 0, words * sizeof *pending);
        bool far = (i->kind == KIND_LOAD || (i->kind == KIND_ATOMIC && i->mem->result)) &&
                   (i->mem->space == PTX_GLOBAL || i->mem->space == PTX_GENERIC);
        for (unsigned r = 0; far && r < i->mem->count; r++)
            pending[i->mem->reg[r] / UNIT / 64] |= UINT64_C(1) << (i->mem->reg[r] / UNIT % 64);
    }
    mem_free(pending);
}

/* An atomic whose result no instruction reads is a reduction. */
static void drop_results(struct sim_program *p) {
    size_t words = p->register_bytes / UNIT / 64 + 1;
    uint64_t *used = mem_alloc(words * sizeof *used);
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (size_t k = 0; k < p->ncode; k++)
        for (unsigned j = 0, n = flow_reads(&p->code[k], reg); j < n; j++)
            used[reg[j] / UNIT / 64] |= UINT64_C(1) << (reg[j] / UNIT % 64);
    for (size_t k = 0; k < p->ncode; k++) {
        struct access *a = p->code[k].mem;
        if (p->code[k].kind != KIND_ATOMIC || !a->result)
            continue;
        bool any = false;
        for (unsigned j = 0; j < a->count; j++)
            any |= used[a->reg[j] / UNIT / 64] >> (a->reg[j] / UNIT % 64) & 1;
        a->result = any;
    }
    mem_free(used);
}

/* Blocks can tell in which order they came, or see each other's flags. Integer reductions of one
 * kind, without a result, cannot be told apart by their order. */
static bool tells_order(const struct instr *i, int *reduction) {
    const struct access *a = i->mem;
    if (i->kind == KIND_FENCE)
        return i->mode == FENCE_GPU;
    if (i->kind != KIND_LOAD && i->kind != KIND_STORE && i->kind != KIND_ATOMIC)
        return false;
    if (a->space != PTX_GLOBAL && a->space != PTX_GENERIC)
        return false;
    if (i->kind != KIND_ATOMIC)
        return a->strong;
    bool integer = a->type < PTX_F16 && (a->width == 4 || a->width == 8);
    if (a->result || !integer || i->mode > ATOMIC_XOR)
        return true;
    bool other = *reduction >= 0 && *reduction != i->mode;
    *reduction = i->mode;
    return other;
}

/* The registers that a compare-and-swap's expected value is moved through. */
enum { MAX_MOVES = 8 };
struct moves {
    uint32_t reg[MAX_MOVES];
    size_t n;
};

static bool is_moved(const struct moves *m, const struct ptx_operand *op) {
    bool found = false;
    for (size_t k = 0; op->kind == PTX_OP_REG && k < m->n; k++)
        found |= m->reg[k] == op->reg;
    return found;
}

static void add_move(struct moves *m, const struct ptx_operand *op) {
    if (op->kind == PTX_OP_REG && m->n < MAX_MOVES && !is_moved(m, op))
        m->reg[m->n++] = op->reg;
}

static void mark_guess(struct sim_program *p, const struct instr *cas) {
    struct moves m = {.n = 0};
    add_move(&m, &cas->src->ops[2]);
    for (size_t before = 0; before < m.n;) {
        before = m.n;
        for (size_t k = 0; k < p->ncode; k++) {
            const struct ptx_instr *s = p->code[k].src;
            if (s && str_is(s->op, "mov") && s->nops == 2 && is_moved(&m, &s->ops[0]))
                add_move(&m, &s->ops[1]);
        }
    }
    for (size_t k = 0; k < p->ncode; k++) {
        struct access *a = p->code[k].mem;
        if (p->code[k].kind == KIND_LOAD && a->count == 1 && a->width == cas->mem->width)
            a->guess |= is_moved(&m, &p->code[k].src->ops[0]);
    }
}

/* `old = *p; do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (old !=
 * assumed)`: that the first load races is no matter, because a wrong guess is tried again. */
static void find_guesses(struct sim_program *p) {
    for (size_t k = 0; k < p->ncode; k++)
        if (p->code[k].kind == KIND_ATOMIC && p->code[k].mode == ATOMIC_CAS &&
            p->code[k].src->nops == 4)
            mark_guess(p, &p->code[k]);
}

bool sim_is_ordered(const struct sim_program *p) {
    return p->ordered;
}

bool sim_has_choices(const struct sim_program *p) {
    return p->ordered || p->uses_copies || p->uses_async || p->uses_wgmma || p->uses_cluster;
}

void flow_find_order(struct sim_program *p) {
    int reduction = -1;
    drop_results(p);
    find_guesses(p);
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        p->ordered |= tells_order(i, &reduction);
        p->meets |= i->kind == KIND_BARRIER || (i->kind >= KIND_WGMMA && i->kind < KIND_NOTHING) ||
                    i->kind == KIND_CLUSTER_BARRIER || (i->mem && i->mem->strong) ||
                    (i->kind == KIND_ATOMIC && i->mem->result);
    }
    for (size_t k = 0; k < p->ncode; k++)
        p->uses_copies |= p->code[k].kind == KIND_COPY || p->code[k].kind == KIND_COPY_ARRIVE;
    p->meets |= p->ordered;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        bool far = i->mem && (i->mem->space == PTX_GLOBAL || i->mem->space == PTX_GENERIC);
        if (i->kind == KIND_LOAD && !i->mem->fixed_content)
            i->mem->polled = i->mem->strong || (far && p->ordered);
    }
}

static bool any_of(const uint64_t *set, const uint32_t *reg, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        if (set[reg[k] / UNIT / 64] >> (reg[k] / UNIT % 64) & 1)
            return true;
    return false;
}

static void put_registers(uint64_t *set, const uint32_t *reg, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        set[reg[k] / UNIT / 64] |= UINT64_C(1) << (reg[k] / UNIT % 64);
}

void flow_find_watched(struct sim_program *p) {
    if (!p->uses_wgmma)
        return;
    uint64_t *set = mem_alloc((p->register_bytes / UNIT / 64 + 1) * sizeof *set);
    uint32_t reg[FLOW_MAX_OPERANDS];
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        if (i->kind != KIND_WGMMA)
            continue;
        put_registers(set, i->writes, i->nwrites);
        if (i->tile->wgmma.a_in_registers)
            put_registers(set, i->reads + 2, TILE_WGMMA_A_REGS);
    }
    for (size_t k = 0; k < p->ncode; k++) {
        struct instr *i = &p->code[k];
        i->watched = i->kind != KIND_WGMMA && (any_of(set, reg, flow_reads(i, reg)) ||
                                               any_of(set, reg, flow_writes(i, reg)));
    }
    mem_free(set);
}

void flow_find_straight(struct sim_program *p, struct arena *a) {
    p->steps = arena_array(a, struct lane_step, p->ncode + 1);
    for (size_t k = p->ncode; k-- > 0;) {
        const struct instr *i = &p->code[k];
        if (i->kind != KIND_LANES || i->guard >= 0)
            continue;
        bool next = k + 1 < p->ncode && p->code[k + 1].rank == i->rank + 1;
        uint16_t on = next ? p->steps[k + 1].straight : 0;
        uint16_t quiet = next ? p->steps[k + 1].quiet : 0;
        p->steps[k] = (struct lane_step){.fn = i->fn, i->d, i->a, i->b, i->c, i->e};
        p->steps[k].straight = on < UINT16_MAX ? on + 1 : on;
        p->steps[k].quiet = i->watched ? 0 : quiet < UINT16_MAX ? quiet + 1 : quiet;
        uint16_t plain = p->steps[k + 1].plain;
        p->steps[k].plain = i->choice ? 0 : plain < UINT16_MAX ? plain + 1 : plain;
    }
}
