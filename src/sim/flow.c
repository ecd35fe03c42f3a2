/* What the code says before it runs: which registers an instruction reads and writes, which
 * instructions wait for memory, whether blocks can see each other, where it goes straight on. */
#include "sim/program.h"

#include <string.h>

#define UNIT (4u * SIM_LANES) /* bytes of the register file that one bit stands for */

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
