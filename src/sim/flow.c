/* What the code says before it runs: registers that need a value at the start, and instructions
 * that wait for memory.
 *
 * Liveness answers one question: which registers can be read before they were written? Those are
 * set to zero when a warp starts, so that a program that reads one gives the same result on every
 * run and on any number of threads; clearing the whole file would cost more than many kernels run.
 *
 * Lanes are followed one at a time, so divergence does not matter: a guarded write keeps the old
 * value alive. Past a size the answer is "all of them", which is right as well. */
#include "sim/program.h"

#include <string.h>

#define UNIT           (4u * SIM_LANES) /* bytes of the register file that one bit stands for */
#define FLOW_MAX_WORDS (1u << 22)

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

static bool visit(struct flow *f, size_t b) {
    const struct instr *last = &f->p->code[f->starts[b + 1] - 1];
    memset(f->now, 0, f->words * sizeof *f->now);
    bool leaves = last->kind == KIND_BRANCH || last->kind == KIND_EXIT || last->kind == KIND_TRAP;
    if (!leaves || last->guard >= 0)
        merge(f, f->starts[b + 1]);
    if (last->kind == KIND_BRANCH)
        merge(f, last->target);
    for (uint32_t t = 0; last->kind == KIND_BRANCH_TABLE && t < last->ntargets; t++)
        merge(f, last->targets[t]);
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

static void mark_fixed(const struct sim_program *p, uint64_t *fixed) {
    for (size_t i = 0; i < p->nconstants; i++)
        for (uint32_t at = p->constants[i].at;
             at < p->constants[i].at + 32u * p->constants[i].bytes; at += UNIT)
            fixed[at / UNIT / 64] |= UINT64_C(1) << (at / UNIT % 64);
    for (size_t i = 0; i < p->nparams; i++)
        for (uint32_t at = p->params[i].at;
             at < p->params[i].at + (p->params[i].reg_bytes == 8 ? 2 : 1) * UNIT; at += UNIT)
            fixed[at / UNIT / 64] |= UINT64_C(1) << (at / UNIT % 64);
    for (size_t i = 0; i < p->nspecials; i++)
        fixed[p->specials[i].at / UNIT / 64] |= UINT64_C(1) << (p->specials[i].at / UNIT % 64);
}

/* A 64-bit register is named by its first unit; what follows a live unit is cleared with it unless
 * it belongs to a constant, a parameter or a special register, which are never in a register's
 * second half. */
static void collect(struct sim_program *p, struct arena *a, const uint64_t *live, size_t units) {
    uint64_t *fixed = arena_array(a, uint64_t, units / 64 + 1);
    mark_fixed(p, fixed);
    p->unset = arena_array(a, uint32_t, units);
    for (size_t u = REGISTERS_START / UNIT; u < units; u++) {
        bool here = !live || live[u / 64] >> (u % 64) & 1;
        bool before = live && live[(u - 1) / 64] >> ((u - 1) % 64) & 1;
        if ((here || before) && !(fixed[u / 64] >> (u % 64) & 1))
            p->unset[p->nunset++] = (uint32_t)(u * UNIT);
    }
}

void flow_find_unset(struct sim_program *p, struct arena *a) {
    struct flow f = {.p = p};
    size_t units = p->register_bytes / UNIT;
    f.words = units / 64 + 1;
    f.block_of = mem_alloc((p->ncode + 1) * sizeof *f.block_of);
    f.starts = mem_alloc((p->ncode + 1) * sizeof *f.starts);
    find_blocks(&f);
    bool small = f.nblocks * f.words <= FLOW_MAX_WORDS;
    if (small) {
        f.live = mem_alloc(f.nblocks * f.words * sizeof *f.live);
        f.now = mem_alloc(f.words * sizeof *f.now);
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t b = f.nblocks; b-- > 0;)
                changed |= visit(&f, b);
        }
    }
    collect(p, a, f.live, units);
    mem_free(f.block_of);
    mem_free(f.starts);
    mem_free(f.live);
    mem_free(f.now);
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

void flow_find_order(struct sim_program *p) {
    int reduction = -1;
    drop_results(p);
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        p->ordered |= tells_order(i, &reduction);
        p->meets |= i->kind == KIND_BARRIER || (i->kind >= KIND_WGMMA && i->kind < KIND_NOTHING) ||
                    i->kind == KIND_CLUSTER_BARRIER || (i->mem && i->mem->strong) ||
                    (i->kind == KIND_ATOMIC && i->mem->result);
    }
    p->meets |= p->ordered;
    for (size_t k = 0; k < p->ncode; k++) {
        const struct instr *i = &p->code[k];
        bool far = i->mem && (i->mem->space == PTX_GLOBAL || i->mem->space == PTX_GENERIC);
        if (i->kind == KIND_LOAD && !i->mem->fixed_content)
            i->mem->polled = i->mem->strong || (far && p->ordered);
    }
}

void flow_find_straight(struct sim_program *p, struct arena *a) {
    p->steps = arena_array(a, struct lane_step, p->ncode + 1);
    for (size_t k = p->ncode; k-- > 0;) {
        const struct instr *i = &p->code[k];
        if (i->kind == KIND_LANES && i->guard < 0)
            p->steps[k] = (struct lane_step){
                i->fn, i->d, i->a, i->b, i->c, i->e, p->steps[k + 1].straight + 1};
    }
}
