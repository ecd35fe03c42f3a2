/* Tensor cores: matrices, mma, wmma, wgmma. What their suffixes mean is known in tile_*.c; here
 * their operands get places. */
#include "sim/decode.h"

static struct tile_op *tile_new(struct decoder *d) {
    return arena_new_of(d->arena, struct tile_op);
}

static struct instr *tile_step(struct decoder *d, uint8_t kind, uint8_t class, struct tile_op *t,
                               const struct operand_list *reads,
                               const struct operand_list *writes) {
    uint32_t all = decode_constant(d, UINT32_MAX, 4, false);
    struct instr *i = decode_step(d, kind, class);
    i->tile = t;
    i->e = all; /* all lanes have to be there */
    list_attach(d, i, reads, writes);
    return i;
}

/* ldmatrix {d…}, [a]; stmatrix [a], {s…}; movmatrix d, s. */
static bool decode_matrix(struct decoder *d, uint8_t mode) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    const char *why = NULL;
    if (!tile_matrix_parse(in->mods, in->nmods, &t->matrix, &why) || in->nops != 2)
        return decode_refuse(d, why);
    const struct ptx_operand *data = &in->ops[mode == MATRIX_LOAD ? 0 : 1];
    if (mode == MATRIX_MOVE) {
        if (!list_sources(d, &reads, data, 1, '4') ||
            !list_registers(d, &writes, &in->ops[0], 1, '4'))
            return false;
    } else if (!list_where(d, &reads, &in->ops[mode == MATRIX_LOAD ? 1 : 0],
                           decode_mod(d, "shared") || decode_mod(d, "shared::cta") ? PTX_SHARED
                                                                                   : PTX_GENERIC,
                           &t->at) ||
               !(mode == MATRIX_LOAD ? list_registers(d, &writes, data, t->matrix.count, '4')
                                     : list_sources(d, &reads, data, t->matrix.count, '4'))) {
        return false;
    }
    tile_step(d, KIND_MATRIX, CLASS_MEMORY, t, &reads, &writes)->mode = mode;
    return true;
}

static bool decode_mma(struct decoder *d, bool wmma) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    struct tile_mma *f = &t->mma;
    const char *why = NULL;
    bool ok = wmma ? tile_wmma_parse(in->mods, in->nmods, d->prog->sm, f, &why)
                   : tile_mma_parse(in->mods, in->nmods, d->prog->sm, f, &why);
    if (!ok || in->nops != 4)
        return decode_refuse(d, why);
    char ab = f->a == TILE_F64 ? '8' : '4', cd = f->d == TILE_F64 ? '8' : '4';
    if (!list_sources(d, &reads, &in->ops[1], f->na, ab) ||
        !list_sources(d, &reads, &in->ops[2], f->nb, ab) ||
        !list_sources(d, &reads, &in->ops[3], f->nc, cd) ||
        !list_registers(d, &writes, &in->ops[0], f->nd, cd))
        return false;
    tile_step(d, KIND_MMA, CLASS_TENSOR, t, &reads, &writes)->flops =
        2u * f->m * f->n * f->k * (f->quads ? 4u : 1u) / SIM_LANES;
    return true;
}

/* wmma.load.a… {d…}, [p], stride; wmma.store.d… [p], {s…}, stride. */
static bool decode_fragment(struct decoder *d, bool store) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    const char *why = NULL;
    uint8_t stride;
    enum ptx_space space = PTX_GENERIC;
    if (!tile_fragment_parse(in->mods, in->nmods, &t->fragment, &why) || in->nops < 2 ||
        in->nops > 3)
        return decode_refuse(d, why);
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &space);
    t->store = store;
    t->has_stride = t->fragment.has_stride = in->nops == 3;
    char shape = t->fragment.reg_bytes == 8 ? '8' : '4';
    const struct ptx_operand *data = &in->ops[store ? 1 : 0];
    if (!list_where(d, &reads, &in->ops[store ? 0 : 1], space, &t->at) ||
        (t->has_stride && !list_source(d, &reads, &in->ops[2], '4', &stride)) ||
        !(store ? list_sources(d, &reads, data, t->fragment.nregs, shape)
                : list_registers(d, &writes, data, t->fragment.nregs, shape)))
        return false;
    tile_step(d, KIND_FRAGMENT, CLASS_MEMORY, t, &reads, &writes);
    return true;
}

static bool immediate(struct decoder *d, const struct ptx_operand *op, int64_t *out) {
    if (op->kind != PTX_OP_IMM)
        return decode_refuse(d, "an operand has to be a number");
    *out = (int64_t)op->imm;
    return true;
}

/* After D, A, B: scale-d, then scales of A and B, then whether they are transposed. */
static bool wgmma_immediates(struct decoder *d, struct tile_wgmma *f, size_t at) {
    const struct ptx_instr *in = d->in;
    int64_t v[4] = {1, 1, 0, 0};
    size_t n = in->nops - at;
    if (n > 4 || (n != 0 && n != 2 && n != 3 && n != 4))
        return decode_refuse(d, "it has another number of operands");
    for (size_t i = 0; i < n; i++)
        if (!immediate(d, &in->ops[at + i], &v[i]))
            return false;
    if ((v[0] != 1 && v[0] != -1) || (v[1] != 1 && v[1] != -1) || v[2] < 0 || v[2] > 1 ||
        v[3] < 0 || v[3] > 1)
        return decode_refuse(d, "scales are 1 or -1, transpositions 0 or 1");
    f->negate_a = v[0] < 0;
    f->negate_b = v[1] < 0;
    if (n == 3) { /* A is in registers: B's alone */
        f->trans_b = v[2];
        return true;
    }
    f->trans_a = v[2];
    f->trans_b = v[3];
    return true;
}

static bool decode_wgmma_mma(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    struct tile_wgmma *f = &t->wgmma;
    const char *why = NULL;
    uint8_t ignored;
    if (!tile_wgmma_parse(in->mods, in->nmods, f, &why) || in->nops < 4)
        return decode_refuse(d, why);
    f->a_in_registers = in->ops[1].kind == PTX_OP_VECTOR;
    if (!wgmma_immediates(d, f, 4) || (why = tile_wgmma_check(f)))
        return why ? decode_refuse(d, why) : false;
    if (!list_source(d, &reads, &in->ops[3], 'p', &ignored) ||
        !list_source(d, &reads, &in->ops[2], '8', &ignored) ||
        !(f->a_in_registers ? list_sources(d, &reads, &in->ops[1], TILE_WGMMA_A_REGS, '4')
                            : list_source(d, &reads, &in->ops[1], '8', &ignored)) ||
        !list_registers(d, &writes, &in->ops[0], f->nd, '4'))
        return false;
    struct instr *i = tile_step(d, KIND_WGMMA, CLASS_TENSOR, t, &reads, &writes);
    i->flops = 2u * 64u * f->n * f->k / (SIM_LANES * TILE_WGMMA_WARPS);
    i->pinned = true;
    return true;
}

static bool decode_wgmma(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    d->prog->uses_wgmma = true;
    if (decode_mod(d, "mma_async"))
        return decode_wgmma_mma(d);
    if (decode_mod(d, "fence") && !in->nops) {
        tile_step(d, KIND_WGMMA_FENCE, CLASS_CONTROL, NULL, NULL, NULL);
        return true;
    }
    if (decode_mod(d, "commit_group") && !in->nops) {
        tile_step(d, KIND_WGMMA_COMMIT, CLASS_CONTROL, NULL, NULL, NULL);
        return true;
    }
    int64_t n = 0;
    if (!decode_mod(d, "wait_group") || in->nops != 1)
        return decode_refuse(d, NULL);
    if (!immediate(d, &in->ops[0], &n))
        return false;
    if (n < 0 || n > 7)
        return decode_refuse(d, "it waits for 0 to 7 groups");
    tile_step(d, KIND_WGMMA_WAIT, CLASS_CONTROL, NULL, NULL, NULL)->target = (uint32_t)n;
    return true;
}

bool decode_tensor(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "mma"))
        return decode_mma(d, false);
    if (str_is(op, "wgmma"))
        return decode_wgmma(d);
    if (str_is(op, "ldmatrix"))
        return decode_matrix(d, MATRIX_LOAD);
    if (str_is(op, "stmatrix"))
        return decode_matrix(d, MATRIX_STORE);
    if (str_is(op, "movmatrix"))
        return decode_matrix(d, MATRIX_MOVE);
    if (str_is(op, "wmma") && decode_mod(d, "mma"))
        return decode_mma(d, true);
    if (str_is(op, "wmma"))
        return decode_fragment(d, decode_mod(d, "store"));
    *known = false;
    return true;
}
