/* What an instruction costs by itself: PTX's are not the machine's own, so some cost nothing and
 * some are several; and what the compiler, ordering them anew, does not move them across. */
#include "sim/timing_cost.h"

#define PREDICATED  12u /* instructions that a branch may skip so */
#define SHUFFLE_CLK 23.0

static bool has_mod(const struct ptx_instr *in, const char *mod) {
    for (size_t i = 0; i < in->nmods; i++)
        if (str_is(in->mods[i], mod))
            return true;
    return false;
}

/* PTX instructions that are none, or several, in the machine's own code. */
static const struct expansion {
    const char *op, *mod; /* mod NULL: any */
    double slots, latency;
} expansions[] = {
    {"ld", "param", 0, 0},    {"mov", NULL, 0, 0},       {"cvta", NULL, 0, 0},
    {"div", "approx", 2, 30}, {"div", "full", 4, 40},    {"div", "f32", 9, 60},
    {"div", "f64", 20, 200},  {"div", "s64", 70, 280},   {"div", "u64", 70, 280},
    {"div", NULL, 18, 80},    {"rem", "s64", 70, 280},   {"rem", "u64", 70, 280},
    {"rem", NULL, 20, 85},    {"sqrt", "approx", 2, 30}, {"sqrt", "f64", 16, 160},
    {"sqrt", NULL, 8, 60},    {"rcp", "approx", 1, 0},   {"rcp", "f64", 14, 140},
    {"rcp", NULL, 7, 50},     {"mul", "s64", 3, 12},     {"mul", "u64", 3, 12},
    {"mad", "s64", 4, 14},    {"mad", "u64", 4, 14},     {"setp", "s64", 2, 8},
    {"setp", "u64", 2, 8},
};

static const struct expansion *expansion_of(const struct ptx_instr *in) {
    for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
        if (str_is(in->op, expansions[i].op) &&
            (!expansions[i].mod || has_mod(in, expansions[i].mod)))
            return &expansions[i];
    return NULL;
}

static enum pipe pipe_of(const struct instr *i) {
    switch (i->class) {
    case CLASS_FP32:
        return PIPE_FP32;
    case CLASS_FP64:
        return PIPE_FP64;
    case CLASS_SPECIAL:
        return PIPE_SPECIAL;
    case CLASS_MEMORY:
        return PIPE_LSU;
    case CLASS_TENSOR:
        return PIPE_TENSOR;
    case CLASS_INT: /* products run beside fp32's */
        return str_is(i->src->op, "mul") || str_is(i->src->op, "mad") ? PIPE_FP32 : PIPE_INT;
    default:
        return PIPE_NONE;
    }
}

/* Operations of one product and warp: the tensor cores' rate is of 16-bit operands. */
static double tensor_hold(const struct sim_clocks *c, const struct instr *i) {
    bool wgmma = i->kind == KIND_WGMMA;
    enum tile_type a = wgmma ? i->tile->wgmma.a : i->tile->mma.a;
    double flops = (double)i->flops * SIM_LANES, rate = wgmma ? c->wgmma_flops : c->mma_flops;
    if (a == TILE_F64)
        return flops / c->mma_f64_flops;
    unsigned bits = tile_type_bits(a);
    return flops / rate * (bits > 16 ? 2 : bits < 16 ? 0.5 : 1);
}

static double latency_of(const struct sim_clocks *c, const struct instr *i, enum pipe pipe) {
    if (i->kind == KIND_SHUFFLE || i->kind == KIND_VOTE || i->kind == KIND_REDUX)
        return SHUFFLE_CLK;
    switch (pipe) {
    case PIPE_FP64:
        return c->fp64;
    case PIPE_SPECIAL:
        return c->special;
    case PIPE_TENSOR:
        return c->mma;
    case PIPE_LSU:
        return i->kind == KIND_MATRIX ? c->shared + 4 : c->shared;
    default:
        return c->alu;
    }
}

static void cost_of(const struct sim_clocks *c, const struct instr *i, struct op_time *out) {
    const double hold[] = {c->fp32_hold, c->int_hold, c->fp64_hold, c->special_hold, 0, 1, 0};
    const struct expansion *x = expansion_of(i->src);
    out->pipe = pipe_of(i);
    out->slots = i->counted;
    out->hold = i->counted ? hold[out->pipe] : 0;
    out->latency = i->counted ? latency_of(c, i, out->pipe) : 0;
    if (i->class == CLASS_INT && i->counted)
        out->hold = c->int_hold;
    if (i->kind == KIND_MMA || i->kind == KIND_WGMMA)
        out->hold = tensor_hold(c, i);
    if (!x || !i->counted || i->kind == KIND_LOAD)
        return;
    out->slots = x->slots;
    out->hold *= x->slots;
    out->latency = x->slots > 0 && !(x->latency > 0) ? out->latency : x->latency;
}

/* A branch over a few instructions: the compiler predicates those instead. */
static bool is_predicated(const struct sim_program *p, size_t pc) {
    uint32_t target = p->code[pc].target;
    if (target <= pc || target - pc > PREDICATED)
        return false;
    for (size_t k = pc + 1; k < target; k++)
        if (p->code[k].kind == KIND_BARRIER || p->code[k].kind == KIND_BRANCH_TABLE ||
            p->code[k].kind == KIND_EXIT ||
            (p->code[k].kind == KIND_BRANCH && p->code[k].target <= k))
            return false;
    return true;
}

/* The compiler moves nothing across these. */
static bool is_boundary(const struct sim_program *p, size_t pc) {
    const struct instr *i = &p->code[pc];
    switch ((enum op_kind)i->kind) {
    case KIND_BRANCH:
        return !is_predicated(p, pc);
    case KIND_BRANCH_TABLE:
    case KIND_EXIT:
    case KIND_BARRIER:
    case KIND_WARP_SYNC:
    case KIND_CLUSTER_BARRIER:
    case KIND_FENCE:
    case KIND_WGMMA_COMMIT:
    case KIND_WGMMA_WAIT:
    case KIND_MBARRIER:
    case KIND_COPY_COMMIT:
    case KIND_COPY_WAIT:
        return true;
    default:
        return i->mem && i->mem->strong;
    }
}

void timing_cost(const struct sim_clocks *c, const struct sim_program *p, size_t pc,
                 struct op_time *out) {
    cost_of(c, &p->code[pc], out);
    out->boundary = is_boundary(p, pc);
}
