/* atom and red: every operation and type that PTX has for sm_80 to sm_90a. */
#include "sim/decode.h"

static const struct {
    const char *name;
    enum atomic_mode mode;
} modes[] = {
    {"add", ATOMIC_ADD},   {"min", ATOMIC_MIN}, {"max", ATOMIC_MAX}, {"and", ATOMIC_AND},
    {"or", ATOMIC_OR},     {"xor", ATOMIC_XOR}, {"inc", ATOMIC_INC}, {"dec", ATOMIC_DEC},
    {"exch", ATOMIC_EXCH}, {"cas", ATOMIC_CAS},
};

static const struct {
    const char *name;
    enum ptx_type type;
} types[] = {
    {"u32", PTX_U32},   {"s32", PTX_S32},       {"u64", PTX_U64}, {"s64", PTX_S64},
    {"b32", PTX_B32},   {"b64", PTX_B64},       {"b16", PTX_B16}, {"b128", PTX_B128},
    {"f32", PTX_F32},   {"f64", PTX_F64},       {"f16", PTX_F16}, {"f16x2", PTX_F16X2},
    {"bf16", PTX_BF16}, {"bf16x2", PTX_BF16X2},
};

static bool mode_named(str m, uint8_t *out) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (str_is(m, modes[i].name)) {
            *out = (uint8_t)modes[i].mode;
            return true;
        }
    return false;
}

static bool type_named(str m, enum ptx_type *out) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(m, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static bool read_mods(struct decoder *d, struct access *a, uint8_t *mode) {
    bool has_mode = false, has_type = false;
    a->space = PTX_GENERIC;
    a->count = 1;
    a->strong = true;
    for (size_t i = 0; i < d->in->nmods; i++) {
        str m = d->in->mods[i];
        if (str_is(m, "v2") || str_is(m, "v4") || str_is(m, "v8"))
            a->count = (uint8_t)(m.p[1] - '0');
        else if (mode_named(m, mode))
            has_mode = true;
        else if (type_named(m, &a->type))
            has_type = true;
        else if (!decode_space(m, &a->space) && !decode_ordering(m, a) && !str_is(m, "noftz"))
            return decode_refuse(d, NULL);
    }
    return (has_mode && has_type) || decode_refuse(d, NULL);
}

static bool is_float(enum ptx_type t) {
    return t >= PTX_F16 && t != PTX_TF32;
}

/* Which operation goes with which type. */
static bool fits(const struct access *a, uint8_t mode) {
    enum ptx_type t = a->type;
    bool bits = t == PTX_B32 || t == PTX_B64, half = is_float(t) && t < PTX_TF32;
    bool integer = t == PTX_U32 || t == PTX_S32 || t == PTX_U64 || t == PTX_S64;
    if (a->count > 1 && (a->space == PTX_SHARED || !(half || t == PTX_F32)))
        return false;
    switch ((enum atomic_mode)mode) {
    case ATOMIC_ADD:
        return is_float(t) || integer;
    case ATOMIC_MIN:
    case ATOMIC_MAX:
        return integer || (half && a->count > 1);
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
        return bits;
    case ATOMIC_INC:
    case ATOMIC_DEC:
        return t == PTX_U32;
    case ATOMIC_EXCH:
        return bits || t == PTX_B128;
    case ATOMIC_CAS:
        return bits || t == PTX_B16 || t == PTX_B128;
    }
    return false;
}

static bool sources(struct decoder *d, const struct ptx_operand *op, const struct access *a,
                    uint32_t *at) {
    if (a->type == PTX_B128)
        return decode_wide(d, op, at);
    char shape = a->reg_bytes == 2 ? 'h' : a->reg_bytes == 4 ? '4' : '8';
    bool vector = op->kind == PTX_OP_VECTOR;
    if ((vector ? op->nelem : 1) != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < a->count; i++)
        if (!decode_source(d, vector ? &op->elem[i] : op, shape, &at[i]))
            return false;
    return true;
}

static bool results(struct decoder *d, const struct ptx_operand *op, struct access *a) {
    if (op->kind == PTX_OP_SYMBOL && str_is(op->name, "_"))
        return true;
    a->result = true;
    if (a->type == PTX_B128)
        return decode_wide(d, op, a->reg);
    char shape = a->reg_bytes == 2 ? 'h' : a->reg_bytes == 4 ? '4' : '8';
    bool vector = op->kind == PTX_OP_VECTOR;
    if ((vector ? op->nelem : 1) != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < a->count; i++)
        if (!decode_register(d, vector ? &op->elem[i] : op, shape, &a->reg[i]))
            return false;
    return true;
}

bool decode_atomic(struct decoder *d, bool result) {
    const struct ptx_instr *in = d->in;
    struct access *a = arena_new_of(d->arena, struct access);
    uint8_t mode = 0;
    uint32_t base;
    if (!read_mods(d, a, &mode))
        return false;
    a->width = (uint8_t)ptx_type_bytes(a->type);
    a->bytes = (uint8_t)(a->width * a->count);
    a->reg_bytes = a->width == 16 ? 8 : a->width;
    size_t at = result ? 1 : 0, n = at + (mode == ATOMIC_CAS ? 3u : 2u);
    bool policy = decode_mod(d, "L2::cache_hint");
    bool space = a->space == PTX_GENERIC || a->space == PTX_GLOBAL || a->space == PTX_SHARED;
    if (!fits(a, mode) || !space || a->bytes > 16 || in->nops != n + policy)
        return decode_refuse(d, NULL);
    if (!decode_base(d, &in->ops[at], a, &base) || !sources(d, &in->ops[at + 1], a, a->from) ||
        (mode == ATOMIC_CAS && !sources(d, &in->ops[at + 2], a, a->other)) ||
        (result && !results(d, &in->ops[0], a)))
        return false;
    if (a->type == PTX_B128)
        a->count = 2;
    struct instr *i = decode_step(d, KIND_ATOMIC, CLASS_MEMORY);
    i->mode = mode;
    i->mem = a;
    i->a = base;
    i->flops = is_float(a->type) && mode == ATOMIC_ADD
                   ? (uint8_t)(a->count * (a->type == PTX_F16X2 || a->type == PTX_BF16X2 ? 2 : 1))
                   : 0;
    return true;
}
