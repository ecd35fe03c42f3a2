/* Registers' places in the file: which need a value at the start, and which can share one.
 *
 * Liveness answers both. A register that can be read before it was written gets noise when a
 * warp starts, so that a program that reads one shows it.
 * Registers that are never alive at the same time share a place: compilers write PTX with a fresh
 * register for every value, and a file that fits the first-level cache is worth the trouble.
 *
 * Lanes are followed one at a time, so divergence does not matter: a guarded write keeps the old
 * value alive, and a write touches only the lanes that execute it. A value's life is taken as one
 * stretch of the code from its first to its last place, loops included. Past a size everything
 * keeps the place it has. */
#include "sim/program.h"

#include <stdlib.h>
#include <string.h>

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

static void find_blocks(struct flow *f) {
    const struct sim_program *p = f->p;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        bool ends = i->kind == KIND_BRANCH || i->kind == KIND_BRANCH_TABLE ||
                    i->kind == KIND_EXIT || i->kind == KIND_TRAP;
        if (ends && k + 1 < p->ncode)
            f->block_of[k + 1] = 1;
        if (i->kind == KIND_BRANCH)
            f->block_of[i->target] = 1;
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            f->block_of[i->targets[t]] = 1;
    }
    f->block_of[0] = 1;
    for (size_t k = 0; k < p->ncode; k++)
        if (f->block_of[k]) {
            f->starts[f->nblocks] = (uint32_t)k;
            f->block_of[k] = (uint32_t)f->nblocks++;
        }
    f->starts[f->nblocks] = (uint32_t)p->ncode;
}

static void flow_init(struct flow *f, const struct sim_program *p) {
    *f = (struct flow){.p = p, .words = p->register_bytes / UNIT / 64 + 1};
    f->block_of = mem_alloc((p->ncode + 1) * sizeof *f->block_of);
    f->starts = mem_alloc((p->ncode + 1) * sizeof *f->starts);
    find_blocks(f);
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
