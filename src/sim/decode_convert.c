/* cvt, as steps: source widened, rounded or saturated in the widest type, narrowed. */
#include "sim/decode.h"

#include <stdio.h>

enum domain { DOMAIN_SIGNED, DOMAIN_UNSIGNED, DOMAIN_FLOAT, DOMAIN_NONE };

static enum domain domain_of(enum ptx_type t) {
    switch (t) {
    case PTX_S8:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64:
        return DOMAIN_SIGNED;
    case PTX_U8:
    case PTX_U16:
    case PTX_U32:
    case PTX_U64:
        return DOMAIN_UNSIGNED;
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_F64:
        return DOMAIN_FLOAT;
    default:
        return DOMAIN_NONE;
    }
}

static const char *name_of(enum ptx_type t) {
    static const char *const names[] = {
        [PTX_U8] = "u8",   [PTX_U16] = "u16", [PTX_U32] = "u32",   [PTX_U64] = "u64",
        [PTX_S8] = "s8",   [PTX_S16] = "s16", [PTX_S32] = "s32",   [PTX_S64] = "s64",
        [PTX_F16] = "f16", [PTX_F32] = "f32", [PTX_BF16] = "bf16", [PTX_F64] = "f64",
    };
    return names[t];
}

static bool type_named(str s, enum ptx_type *out) {
    for (enum ptx_type t = PTX_U8; t <= PTX_F64; t++)
        if (domain_of(t) != DOMAIN_NONE && str_is(s, name_of(t))) {
            *out = t;
            return true;
        }
    return false;
}

struct conversion {
    enum ptx_type to, from;
    enum domain to_domain, from_domain;
    uint8_t round;        /* as in struct instr */
    const char *integral; /* "rni", …; NULL: none */
    bool ftz, sat, relu;
};

static bool step2(struct decoder *d, const char *prefix, const char *a, const char *b, uint32_t to,
                  uint32_t from) {
    char name[32];
    snprintf(name, sizeof name, "%s%s.%s", prefix, a, b);
    return decode_lanes(d, name, to, from, 0);
}

static void last_rounds(struct decoder *d, uint8_t round) {
    if (!round)
        return;
    d->code[d->ncode - 1].kind = KIND_ROUND;
    d->code[d->ncode - 1].round = round;
}

/* The source's value as a 64-bit integer in temp 0. Its register may be wider than its type. */
static bool widen(struct decoder *d, enum ptx_type t, uint32_t from, uint8_t reg_bytes) {
    uint32_t w = decode_temp(d, 0);
    if (ptx_type_bytes(t) == 8)
        return decode_lanes(d, "mov.b64", w, from, 0);
    return step2(d, reg_bytes == 8 ? "%cut" : "%widen", "", name_of(t), w, from);
}

/* Temp 0 into the destination register, whose width may exceed the type's. */
static bool narrow(struct decoder *d, enum ptx_type t, const struct ptx_operand *to) {
    uint32_t w = decode_temp(d, 0), at;
    uint8_t bytes = to->kind == PTX_OP_REG ? decode_reg_bytes(decode_reg_type(d, to->reg)) : 0;
    if (bytes < ptx_type_bytes(t))
        return decode_refuse(d, "the destination is too narrow");
    if (!decode_register(d, to, bytes == 2 ? 'h' : bytes == 4 ? '4' : '8', &at))
        return false;
    if (ptx_type_bytes(t) < bytes && !step2(d, "%cut", "", name_of(t), w, w))
        return false;
    return decode_lanes(d, bytes == 2 ? "%store2" : bytes == 4 ? "%store4" : "mov.b64", at, w, 0);
}

static bool source_bytes(struct decoder *d, enum ptx_type t, uint8_t *bytes) {
    const struct ptx_operand *from = &d->in->ops[1];
    *bytes = decode_reg_bytes(t);
    if (from->kind == PTX_OP_REG)
        *bytes = decode_reg_bytes(decode_reg_type(d, from->reg));
    if (*bytes < ptx_type_bytes(t))
        return decode_refuse(d, "the source is too narrow");
    return true;
}

static bool int_to_int(struct decoder *d, const struct conversion *c, uint32_t from,
                       uint8_t reg_bytes) {
    uint32_t w = decode_temp(d, 0);
    if (!widen(d, c->from, from, reg_bytes))
        return false;
    const char *sat = c->from_domain == DOMAIN_SIGNED ? "%sat_s" : "%sat_u";
    if (c->sat && !step2(d, sat, "", name_of(c->to), w, w))
        return false;
    return narrow(d, c->to, &d->in->ops[0]);
}

static bool float_place(struct decoder *d, enum ptx_type t, const struct ptx_operand *op,
                        uint32_t *at) {
    size_t n = ptx_type_bytes(t);
    return decode_register(d, op, n == 2 ? 'h' : n == 4 ? '4' : '8', at);
}

/* From a double, a single, or what was rounded to one in a way that no later rounding can tell. */
static bool towards(struct decoder *d, const struct conversion *c, uint32_t to, uint32_t from) {
    static const char *const singles[] = {"rn", "rz", "rm", "rp"};
    static const char *const doubles[] = {"f64", "f64.rz", "f64.rm", "f64.rp"};
    return step2(d, "%", name_of(c->to), (c->from == PTX_F64 ? doubles : singles)[c->round], to,
                 from);
}

static bool int_to_float(struct decoder *d, const struct conversion *c, uint32_t from,
                         uint8_t reg_bytes) {
    uint32_t to, w = decode_temp(d, 0);
    if (!float_place(d, c->to, &d->in->ops[0], &to))
        return false;
    bool half = ptx_type_bytes(c->to) == 2;
    if (c->from == PTX_S32 && reg_bytes == 4 && !half) {
        if (!step2(d, "%", name_of(c->to), "s32", to, from))
            return false;
        last_rounds(d, c->round);
        return true;
    }
    if (!widen(d, c->from, from, reg_bytes))
        return false;
    const char *wide = c->from_domain == DOMAIN_SIGNED ? "s64" : "u64";
    if (half && c->round)
        return step2(d, "%odd", "", wide, decode_temp(d, 1), w) &&
               towards(d, c, to, decode_temp(d, 1));
    if (!step2(d, "%", name_of(c->to), wide, to, w))
        return false;
    last_rounds(d, c->round);
    return true;
}

static bool flushed(struct decoder *d, const struct conversion *c, uint32_t *from) {
    if (!c->ftz || c->from != PTX_F32)
        return true;
    uint32_t t = decode_temp(d, 1);
    bool ok = decode_lanes(d, "%ftz.source", t, *from, 0);
    *from = t;
    return ok;
}

static bool float_to_int(struct decoder *d, const struct conversion *c, uint32_t from) {
    uint32_t w = decode_temp(d, 0);
    if (!c->integral)
        return decode_refuse(d, "it needs a rounding to integers");
    const char *kind = c->from == PTX_F64 ? "double" : "float";
    return flushed(d, c, &from) && step2(d, "%f64", "", name_of(c->from), w, from) &&
           step2(d, "%", c->integral, "f64", w, w) && step2(d, "%", name_of(c->to), kind, w, w) &&
           narrow(d, c->to, &d->in->ops[0]);
}

static bool float_finish(struct decoder *d, const struct conversion *c, uint32_t to) {
    if (c->to == PTX_F32 && c->ftz && !decode_lanes(d, "%ftz", to, to, 0))
        return false;
    if (!c->sat)
        return true;
    return step2(d, "%sat", "", name_of(c->to), to, to);
}

static bool float_to_float(struct decoder *d, const struct conversion *c, uint32_t from) {
    uint32_t to, t = decode_temp(d, 1);
    if (!float_place(d, c->to, &d->in->ops[0], &to) || !flushed(d, c, &from))
        return false;
    bool half_to = ptx_type_bytes(c->to) == 2, half_from = ptx_type_bytes(c->from) == 2;
    if (half_to && half_from) { /* through float, which holds both */
        if (c->relu)
            return decode_refuse(d, NULL);
        if (!step2(d, "%f32", "", name_of(c->from), t, from))
            return false;
        if (c->integral && !step2(d, "%", c->integral, "f32", t, t))
            return false;
        if (c->round ? !towards(d, c, to, t) : !step2(d, "%", name_of(c->to), "f32", to, t))
            return false;
        return float_finish(d, c, to);
    }
    if (c->integral && c->to != c->from)
        return decode_refuse(d, NULL);
    if (c->integral)
        return step2(d, "%", c->integral, name_of(c->to), to, from) && float_finish(d, c, to);
    if (half_to && c->round) {
        if (c->relu)
            return decode_refuse(d, NULL);
        return towards(d, c, to, from) && float_finish(d, c, to);
    }
    if (c->relu) {
        if (c->from != PTX_F32 || !decode_lanes(d, "%relu.f32", t, from, 0))
            return decode_refuse(d, NULL);
        from = t;
    }
    if (!step2(d, "%", name_of(c->to), name_of(c->from), to, from))
        return false;
    last_rounds(d, c->round);
    return float_finish(d, c, to);
}

/* Pairs: cvt.rn.f16x2.f32 d, a, b; cvt.rn.satfinite.e4m3x2.f32 d, a, b; cvt.rn.f16x2.e4m3x2 d, a.
 */
static bool pair_form(struct decoder *d, str to, str from) {
    const struct ptx_instr *in = d->in;
    bool two = str_is(from, "f32"), eight_to = str_starts(to, S("e")),
         eight_from = str_starts(from, S("e")), relu = decode_mod(d, "relu"),
         rz = decode_mod(d, "rz");
    uint32_t at, a, b = 0;
    char name[40];
    if (in->nops != (two ? 3u : 2u) || !(decode_mod(d, "rn") || rz) || (rz && (!two || eight_to)) ||
        (eight_to && !decode_mod(d, "satfinite")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], eight_to ? 'h' : '4', &at) ||
        !decode_source(d, &in->ops[1], eight_from ? 'h' : '4', &a) ||
        (two && !decode_source(d, &in->ops[2], '4', &b)))
        return false;
    if (relu && eight_to) { /* negative numbers are zero before they are rounded */
        uint32_t t0 = decode_temp(d, 0), t1 = decode_temp(d, 1);
        const char *step = two ? "%relu.f32" : "%relu.f16x2";
        if (!decode_lanes(d, step, t0, a, 0) || (two && !decode_lanes(d, step, t1, b, 0)))
            return false;
        a = t0;
        b = t1;
    }
    snprintf(name, sizeof name, "%%%.*s.%.*s", STR_ARG(to), STR_ARG(rz ? S("rz") : from));
    if (!decode_lanes(d, name, at, a, b))
        return false;
    if (!relu || eight_to)
        return true;
    return decode_lanes(d, str_is(to, "f16x2") ? "%relu.f16x2" : "%relu.bf16x2", at, at, 0);
}

/* cvt.pack.sat.{s8,u8}.s32.b32 d, a, b, c and cvt.pack.sat.{s16,u16}.s32 d, a, b. */
static bool pack_form(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_type t = PTX_U32;
    uint32_t at, a, b, c, both = decode_temp(d, 0);
    char name[32];
    bool named = in->nmods >= 4 && str_is(in->mods[0], "pack") && str_is(in->mods[1], "sat") &&
                 type_named(in->mods[2], &t) && str_is(in->mods[3], "s32");
    bool third = in->nmods == 5 && str_is(in->mods[4], "b32");
    if (!named || ptx_type_bytes(t) != (third ? 1 : 2) || in->nmods != (third ? 5 : 4) ||
        in->nops != (third ? 4 : 3))
        return decode_refuse(d, NULL);
    snprintf(name, sizeof name, "%%pack_sat.%s", name_of(t));
    if (!decode_register(d, &in->ops[0], '4', &at) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &b))
        return false;
    if (!third)
        return decode_lanes(d, name, at, a, b);
    return decode_source(d, &in->ops[3], '4', &c) && decode_lanes(d, name, both, a, b) &&
           decode_lanes(d, "%above", at, c, both);
}

/* Pairs, packs, and cvt.rna.tf32.f32. */
static bool special_form(struct decoder *d, bool *known) {
    const struct ptx_instr *in = d->in;
    static const char *const pairs[] = {"f16x2", "bf16x2", "e4m3x2", "e5m2x2"};
    uint32_t at, a;
    *known = decode_mod(d, "pack");
    if (*known)
        return pack_form(d);
    *known = false;
    if (in->nmods < 2)
        return true;
    str to = in->mods[in->nmods - 2], from = in->mods[in->nmods - 1];
    for (size_t i = 0; i < 4; i++)
        *known |= str_is(to, pairs[i]);
    if (*known)
        return pair_form(d, to, from);
    *known = str_is(to, "tf32");
    if (!*known)
        return true;
    bool nearest = decode_mod(d, "rn"), away = decode_mod(d, "rna");
    if (in->nops != 2 || !str_is(from, "f32") || !(nearest || away) || in->nmods != 3)
        return decode_refuse(d, NULL);
    return decode_register(d, &in->ops[0], '4', &at) && decode_source(d, &in->ops[1], '4', &a) &&
           decode_lanes(d, away ? "%tf32.rna" : "%tf32.rn", at, a, 0);
}

static bool read_mods(struct decoder *d, struct conversion *c) {
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi"};
    static const char *const rounds[] = {"rn", "rz", "rm", "rp"};
    const struct ptx_instr *in = d->in;
    if (in->nmods < 2 || in->nops != 2 || !type_named(in->mods[in->nmods - 2], &c->to) ||
        !type_named(in->mods[in->nmods - 1], &c->from))
        return decode_refuse(d, NULL);
    c->to_domain = domain_of(c->to);
    c->from_domain = domain_of(c->from);
    for (size_t i = 0; i + 2 < in->nmods; i++) {
        bool known = false;
        for (uint8_t k = 0; k < 4; k++) {
            if (str_is(in->mods[i], integral[k]))
                c->integral = integral[k], known = true;
            if (str_is(in->mods[i], rounds[k]))
                c->round = k, known = true;
        }
        c->ftz |= str_is(in->mods[i], "ftz");
        c->sat |= str_is(in->mods[i], "sat");
        c->relu |= str_is(in->mods[i], "relu");
        if (!known && !str_is(in->mods[i], "ftz") && !str_is(in->mods[i], "sat") &&
            !str_is(in->mods[i], "relu"))
            return decode_refuse(d, NULL);
    }
    return true;
}

bool decode_cvt(struct decoder *d) {
    struct conversion c = {0};
    bool known;
    uint8_t bytes;
    uint32_t from;
    if (!special_form(d, &known))
        return false;
    if (known)
        return true;
    if (!read_mods(d, &c) || !source_bytes(d, c.from, &bytes))
        return false;
    if (c.from_domain == DOMAIN_FLOAT)
        bytes = decode_reg_bytes(c.from);
    if (!decode_source(d, &d->in->ops[1], bytes == 2 ? 'h' : bytes == 4 ? '4' : '8', &from))
        return false;
    if (c.from_domain == DOMAIN_FLOAT)
        return c.to_domain == DOMAIN_FLOAT ? float_to_float(d, &c, from)
                                           : float_to_int(d, &c, from);
    return c.to_domain == DOMAIN_FLOAT ? int_to_float(d, &c, from, bytes)
                                       : int_to_int(d, &c, from, bytes);
}
