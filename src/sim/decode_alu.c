/* Arithmetic: operands, the name of the operation, and the instructions that are several steps. */
#include "sim/decode.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum special what;
} special_names[] = {
    {"%tid.x", SPECIAL_TID_X},
    {"%tid.y", SPECIAL_TID_Y},
    {"%tid.z", SPECIAL_TID_Z},
    {"%ntid.x", SPECIAL_NTID_X},
    {"%ntid.y", SPECIAL_NTID_Y},
    {"%ntid.z", SPECIAL_NTID_Z},
    {"%ctaid.x", SPECIAL_CTAID_X},
    {"%ctaid.y", SPECIAL_CTAID_Y},
    {"%ctaid.z", SPECIAL_CTAID_Z},
    {"%nctaid.x", SPECIAL_NCTAID_X},
    {"%nctaid.y", SPECIAL_NCTAID_Y},
    {"%nctaid.z", SPECIAL_NCTAID_Z},
    {"%laneid", SPECIAL_LANEID},
    {"%warpid", SPECIAL_WARPID},
    {"%nwarpid", SPECIAL_NWARPID},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT},
    {"%lanemask_le", SPECIAL_LANEMASK_LE},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED},
    {"%total_smem_size", SPECIAL_TOTAL_SHARED},
    {"%aggr_smem_size", SPECIAL_AGGREGATE_SHARED},
    {"%smid", SPECIAL_SMID},
    {"%nsmid", SPECIAL_NSMID},
    {"%gridid", SPECIAL_GRIDID},
    {"%clusterid.x", SPECIAL_CLUSTERID_X},
    {"%clusterid.y", SPECIAL_CLUSTERID_Y},
    {"%clusterid.z", SPECIAL_CLUSTERID_Z},
    {"%nclusterid.x", SPECIAL_NCLUSTERID_X},
    {"%nclusterid.y", SPECIAL_NCLUSTERID_Y},
    {"%nclusterid.z", SPECIAL_NCLUSTERID_Z},
    {"%cluster_ctaid.x", SPECIAL_CLUSTER_CTAID_X},
    {"%cluster_ctaid.y", SPECIAL_CLUSTER_CTAID_Y},
    {"%cluster_ctaid.z", SPECIAL_CLUSTER_CTAID_Z},
    {"%cluster_nctaid.x", SPECIAL_CLUSTER_NCTAID_X},
    {"%cluster_nctaid.y", SPECIAL_CLUSTER_NCTAID_Y},
    {"%cluster_nctaid.z", SPECIAL_CLUSTER_NCTAID_Z},
    {"%cluster_ctarank", SPECIAL_CLUSTER_CTARANK},
    {"%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SPECIAL_EXPLICIT_CLUSTER},
    {"%envreg1", SPECIAL_WORKSPACE_HIGH},
    {"%envreg2", SPECIAL_WORKSPACE_LOW},
    {"%ctaid.w", SPECIAL_ZERO},
};

enum ptx_type decode_reg_type(const struct decoder *d, uint32_t reg) {
    return d->frame->f->regs[reg];
}

uint8_t decode_reg_bytes(enum ptx_type t) {
    size_t n = ptx_type_bytes(t);
    if (t == PTX_PRED || n > 8)
        return 0;
    return n <= 2 ? 2 : (uint8_t)n;
}

static bool shape_fits(enum ptx_type t, char shape) {
    uint8_t n = decode_reg_bytes(t);
    return shape == 'p' ? t == PTX_PRED : shape == 'h' ? n == 2 : n == (uint8_t)(shape - '0');
}

static uint8_t shape_bytes(char shape) {
    return shape == '8' ? 8 : 4;
}

bool decode_register(struct decoder *d, const struct ptx_operand *op, char shape, uint32_t *at) {
    if (op->kind == PTX_OP_SYMBOL && str_is(op->name, "_")) {
        *at = decode_place(d, 8);
        return true;
    }
    if (op->kind != PTX_OP_REG || op->negated || !shape_fits(decode_reg_type(d, op->reg), shape))
        return decode_refuse(d, "an operand is not a register of the instruction's width");
    uint32_t *slot = &d->frame->reg_at[op->reg];
    if (!*slot) {
        *slot = decode_place(d, shape_bytes(shape));
        d->places[d->nplaces - 1].shape = shape;
    }
    *at = *slot;
    return true;
}

static enum special special_named(str name) {
    for (size_t i = 0; i < sizeof special_names / sizeof *special_names; i++)
        if (str_is(name, special_names[i].name))
            return special_names[i].what;
    /* Of the driver's 32 words those for a grid's barrier are above; the others are zero. */
    uint64_t n = 32;
    bool env = str_starts(name, S("%envreg")) && str_to_u64(str_from(name, 7), &n) && n < 32;
    return env ? SPECIAL_ZERO : SPECIAL_COUNT;
}

static bool decode_special(struct decoder *d, str name, char shape, uint32_t *at) {
    enum special what = special_named(name);
    bool wide = what == SPECIAL_GRIDID && shape == '8';
    if (what == SPECIAL_COUNT || (shape != (what == SPECIAL_EXPLICIT_CLUSTER ? 'p' : '4') && !wide))
        return decode_refuse(d, "the simulator does not have this special register");
    for (size_t k = 0; k < d->nspecials; k++)
        if (d->specials[k].what == what && d->specials[k].wide == wide) {
            *at = d->specials[k].at;
            return true;
        }
    d->specials = mem_grow(d->specials, &d->specials_cap, d->nspecials + 1, sizeof *d->specials);
    *at = decode_place(d, wide ? 8 : 4);
    d->specials[d->nspecials++] = (struct special_use){what, *at, wide};
    return true;
}

static uint64_t immediate_bits(const struct ptx_operand *op, char shape) {
    if (shape == 'p')
        return op->imm ? UINT32_MAX : 0;
    if (shape == 'h')
        return op->imm & 0xffff;
    if (shape == '4' && op->imm_type == PTX_F64) {
        double v;
        memcpy(&v, &op->imm, 8);
        float f = (float)v;
        uint32_t u;
        memcpy(&u, &f, 4);
        return u;
    }
    return shape == '4' ? (uint32_t)op->imm : op->imm;
}

bool decode_source(struct decoder *d, const struct ptx_operand *op, char shape, uint32_t *at) {
    switch (op->kind) {
    case PTX_OP_REG:
        return decode_register(d, op, shape, at);
    case PTX_OP_IMM:
        *at = decode_constant(d, immediate_bits(op, shape), shape_bytes(shape), false);
        return true;
    case PTX_OP_SPECIAL:
        return decode_special(d, op->name, shape, at);
    case PTX_OP_SYMBOL: {
        struct symbol s;
        if (shape != '4' && shape != '8')
            return decode_refuse(d, "an address does not fit the instruction");
        if (str_is(op->name, "WARP_SZ")) {
            *at = decode_constant(d, SIM_LANES, shape_bytes(shape), false);
            return true;
        }
        if (!decode_symbol(d, op, &s))
            return false;
        *at = decode_constant(d, s.at, shape_bytes(shape), s.dynamic);
        return true;
    }
    default:
        return decode_refuse(d, "an operand of this form is not read here");
    }
}

bool decode_shape_ok(const struct decoder *d, const struct ptx_operand *op, char shape) {
    return op->kind == PTX_OP_REG && shape_fits(decode_reg_type(d, op->reg), shape);
}

/* One step of a known operation with places that the caller made. */
bool decode_lanes(struct decoder *d, const char *name, uint32_t to, uint32_t a, uint32_t b) {
    const struct lane_op *op = decode_find(d, name);
    if (!op)
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_LANES, op->class);
    i->fn = op->fn;
    i->flops = op->flops;
    i->dst_bytes = shape_bytes(op->shape[0]);
    i->d = to;
    i->a = a;
    i->b = b;
    return true;
}

struct alu_name {
    char text[96];
    uint8_t round;
    bool sat, ftz;
    str combine; /* setp.lt.and: and */
};

static bool is_float_type(str t) {
    return str_starts(t, S("f")) || str_starts(t, S("bf"));
}

/* The operation's name in the table: without rounding, .sat of floats, .ftz moved before the type.
 */
static bool alu_name(struct decoder *d, struct alu_name *out) {
    const struct ptx_instr *in = d->in;
    struct buf b;
    *out = (struct alu_name){0};
    if (!in->nmods)
        return decode_refuse(d, NULL);
    str type = in->mods[in->nmods - 1];
    bool compare = str_is(in->op, "setp") || str_is(in->op, "set");
    buf_init(&b, sizeof out->text - 1);
    buf_puts(&b, in->op);
    for (size_t i = 0; i + 1 < in->nmods; i++) {
        str m = in->mods[i];
        bool combine = compare && (str_is(m, "and") || str_is(m, "or") || str_is(m, "xor"));
        if (str_is(m, "rz") || str_is(m, "rm") || str_is(m, "rp"))
            out->round = str_is(m, "rz") ? 1 : str_is(m, "rm") ? 2 : 3;
        else if (str_is(m, "sat") && is_float_type(type))
            out->sat = true;
        else if (str_is(m, "ftz"))
            out->ftz = true;
        else if (combine)
            out->combine = m;
        else if (!str_is(m, "rn"))
            buf_printf(&b, ".%.*s", STR_ARG(m));
    }
    buf_printf(&b, "%s.%.*s", out->ftz ? ".ftz" : "", STR_ARG(type));
    bool ok = !b.failed;
    if (ok)
        memcpy(out->text, b.p, b.n + 1);
    buf_release(&b);
    return ok || decode_refuse(d, NULL);
}

static bool decode_operands(struct decoder *d, const struct lane_op *op, struct instr *i) {
    const struct ptx_instr *in = d->in;
    size_t nshape = strlen(op->shape);
    bool carry = op->shape[nshape - 1] == 'c';
    uint32_t *to[4] = {&i->a, &i->b, &i->c, &i->e};
    nshape -= carry;
    if (in->nops != nshape)
        return decode_refuse(d, "it has another number of operands");
    for (size_t k = 1; k < nshape; k++)
        if (!decode_source(d, &in->ops[k], op->shape[k], to[k - 1]))
            return false;
    if (carry) {
        if (!d->prog->carry)
            d->prog->carry = decode_place(d, 4);
        i->e = d->prog->carry;
    }
    return decode_register(d, &in->ops[0], op->shape[0], &i->d);
}

static bool decode_named(struct decoder *d, const struct lane_op *op, uint8_t round, bool sat) {
    struct instr t = {0};
    if (!decode_operands(d, op, &t))
        return false;
    bool carry = op->shape[strlen(op->shape) - 1] == 'c';
    struct instr *i = decode_step(d,
                                  carry   ? KIND_CARRY
                                  : round ? KIND_ROUND
                                          : KIND_LANES,
                                  op->class);
    i->fn = op->fn;
    i->flops = op->flops;
    i->round = round;
    i->dst_bytes = shape_bytes(op->shape[0]);
    i->d = t.d, i->a = t.a, i->b = t.b, i->c = t.c, i->e = t.e;
    if (!sat)
        return true;
    char name[32];
    snprintf(name, sizeof name, "%%sat.%.*s",
             STR_ARG(str_cut(d->in->mods[d->in->nmods - 1], 0, 16)));
    return decode_lanes(d, name, t.d, t.d, 0);
}

/* setp.lt.and.f32 p|q, a, b, c: the comparison into a place between; p is it and c, q its opposite
 * and c. The places between come first: p or q may be c. */
static bool combine_step(struct decoder *d, str combine, uint32_t to, uint32_t t, uint32_t c) {
    const char *name = str_is(combine, "and")  ? "and.pred"
                       : str_is(combine, "or") ? "or.pred"
                                               : "xor.pred";
    return combine.n ? decode_lanes(d, name, to, t, c) : decode_lanes(d, "mov.pred", to, t, 0);
}

static bool decode_setp(struct decoder *d, const struct lane_op *op, str combine) {
    const struct ptx_instr *in = d->in;
    uint32_t a, b, c = 0, p, q = 0, t = decode_temp(d, 0), u = decode_temp(d, 1), v = 0;
    const struct ptx_operand *to = &in->ops[0], *both = NULL;
    if (in->nops != (combine.n ? 4u : 3u))
        return decode_refuse(d, "it has another number of operands");
    if (to->kind == PTX_OP_VECTOR) {
        if (to->nelem != 2)
            return decode_refuse(d, NULL);
        both = &to->elem[1];
        to = &to->elem[0];
    }
    struct ptx_operand with = combine.n ? in->ops[3] : (struct ptx_operand){0};
    with.negated = false;
    if (!decode_source(d, &in->ops[1], op->shape[1], &a) ||
        !decode_source(d, &in->ops[2], op->shape[2], &b) ||
        (combine.n && !decode_source(d, &with, 'p', &c)) || !decode_register(d, to, 'p', &p) ||
        (both && !decode_register(d, both, 'p', &q)) || !decode_lanes(d, op->name, t, a, b))
        return false;
    if (combine.n && in->ops[3].negated) {
        if (!decode_lanes(d, "not.pred", u, c, 0))
            return false;
        c = u;
    }
    if (!both)
        return combine_step(d, combine, p, t, c);
    v = decode_place(d, 4);
    return decode_lanes(d, "not.pred", v, t, 0) && combine_step(d, combine, v, v, c) &&
           combine_step(d, combine, p, t, c) && decode_lanes(d, "mov.pred", q, v, 0);
}

/* set.lt.f16.f16 d, a, b: the comparison, then one or zero in the destination's type. */
static bool decode_set(struct decoder *d, bool *known) {
    static const struct {
        const char *type, *select;
        uint32_t one;
        char shape;
    } results[] = {
        {"u32", "selp.b32", ~0u, '4'},        {"s32", "selp.b32", ~0u, '4'},
        {"f32", "selp.b32", 0x3f800000, '4'}, {"f16", "selp.b16", 0x3c00, 'h'},
        {"bf16", "selp.b16", 0x3f80, 'h'},
    };
    const struct ptx_instr *in = d->in;
    *known = false;
    if (!str_is(in->op, "set") || in->nmods < 3 || in->nops != 3)
        return true;
    size_t r = 0, n = sizeof results / sizeof *results;
    while (r < n && !str_is(in->mods[in->nmods - 2], results[r].type))
        r++;
    char name[64];
    snprintf(name, sizeof name, "setp.%.*s%s.%.*s", STR_ARG(str_cut(in->mods[0], 0, 8)),
             decode_mod(d, "ftz") ? ".ftz" : "", STR_ARG(str_cut(in->mods[in->nmods - 1], 0, 8)));
    const struct lane_op *op = decode_find(d, name);
    if (r == n || !op)
        return true;
    *known = true;
    uint32_t to, a, b, t = decode_temp(d, 0);
    if (!decode_source(d, &in->ops[1], op->shape[1], &a) ||
        !decode_source(d, &in->ops[2], op->shape[2], &b) ||
        !decode_register(d, &in->ops[0], results[r].shape, &to) || !decode_lanes(d, name, t, a, b))
        return false;
    uint32_t one = decode_constant(d, results[r].one, 4, false);
    if (!decode_lanes(d, results[r].select, to, one, decode_constant(d, 0, 4, false)))
        return false;
    d->code[d->ncode - 1].c = t;
    return true;
}

bool decode_alu(struct decoder *d) {
    struct alu_name n;
    bool set;
    if (!alu_name(d, &n))
        return false;
    const struct lane_op *op = decode_find(d, n.text);
    if (!op && (!decode_set(d, &set) || set))
        return set;
    if (!op || op->name[0] == '%')
        return decode_refuse(d, NULL);
    bool pair = d->in->nops && d->in->ops[0].kind == PTX_OP_VECTOR;
    if (str_is(d->in->op, "setp") && (n.combine.n || pair))
        return decode_setp(d, op, n.combine);
    if (n.combine.n)
        return decode_refuse(d, NULL);
    return decode_named(d, op, n.round, n.sat);
}

/* mov d, {a, b} and {a, b, c, d}. */
static bool decode_pack(struct decoder *d, const struct ptx_operand *v) {
    const struct ptx_operand *to = &d->in->ops[0];
    uint32_t at[4], out, t0 = decode_temp(d, 0), t1 = decode_temp(d, 1);
    bool words = v->nelem == 2 && decode_shape_ok(d, to, '8');
    bool halves = v->nelem == 2 && decode_shape_ok(d, to, '4');
    bool quarters = v->nelem == 4 && decode_shape_ok(d, to, '8');
    bool bytes = v->nelem == 2 && decode_shape_ok(d, to, 'h');
    if (!words && !halves && !quarters && !bytes)
        return decode_refuse(d, NULL);
    for (size_t i = 0; i < v->nelem; i++)
        if (!decode_source(d, &v->elem[i], words ? '4' : 'h', &at[i]))
            return false;
    if (!decode_register(d, to, bytes ? 'h' : halves ? '4' : '8', &out))
        return false;
    if (!quarters)
        return decode_lanes(d,
                            bytes   ? "%pack16"
                            : words ? "%pack64"
                                    : "%pack32",
                            out, at[0], at[1]);
    return decode_lanes(d, "%pack32", t0, at[0], at[1]) &&
           decode_lanes(d, "%pack32", t1, at[2], at[3]) && decode_lanes(d, "%pack64", out, t0, t1);
}

/* mov {a, b}, s. */
static bool decode_unpack(struct decoder *d, const struct ptx_operand *v) {
    static const char
        *const words[] = {"%low64", "%high64"},
               *const halves[] = {"%low32", "%high32"}, *const bytes[] = {"%low16", "%high16"},
               *const quarters[] = {"%quarter1", "%quarter2", "%quarter3", "%quarter4"};
    const struct ptx_operand *from = &d->in->ops[1];
    bool wide = decode_mod(d, "b64");
    const char *const *names = v->nelem == 4 && wide                   ? quarters
                               : v->nelem == 2 && wide                 ? words
                               : v->nelem == 2 && decode_mod(d, "b32") ? halves
                               : v->nelem == 2 && decode_mod(d, "b16") ? bytes
                                                                       : NULL;
    uint32_t s, at;
    if (!names)
        return decode_refuse(d, NULL);
    if (!decode_source(d, from, wide ? '8' : names == bytes ? 'h' : '4', &s))
        return false;
    for (size_t i = 0; i < v->nelem; i++)
        if (!decode_register(d, &v->elem[i], names == words ? '4' : 'h', &at) ||
            !decode_lanes(d, names[i], at, s, 0))
            return false;
    return true;
}

/* mov.b128: between a 128-bit register and two of 64 bits, or another one. */
static bool decode_mov_wide(struct decoder *d) {
    uint32_t at[2][2];
    for (int k = 0; k < 2; k++) {
        const struct ptx_operand *op = &d->in->ops[k];
        if (op->kind != PTX_OP_VECTOR) {
            if (!decode_wide(d, op, at[k]))
                return false;
            continue;
        }
        if (op->nelem != 2)
            return decode_refuse(d, NULL);
        for (int i = 0; i < 2; i++)
            if (k == 0 ? !decode_register(d, &op->elem[i], '8', &at[k][i])
                       : !decode_source(d, &op->elem[i], '8', &at[k][i]))
                return false;
    }
    return decode_lanes(d, "mov.b64", at[0][0], at[1][0], 0) &&
           decode_lanes(d, "mov.b64", at[0][1], at[1][1], 0);
}

bool decode_mov(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool clock;
    if (in->nops != 2)
        return decode_refuse(d, "it has another number of operands");
    if (!decode_clock(d, &clock) || clock)
        return clock;
    if (decode_mod(d, "b128"))
        return decode_mov_wide(d);
    if (in->ops[0].kind == PTX_OP_VECTOR)
        return decode_unpack(d, &in->ops[0]);
    if (in->ops[1].kind == PTX_OP_VECTOR)
        return decode_pack(d, &in->ops[1]);
    return decode_alu(d);
}
