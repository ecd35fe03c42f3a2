/* Loads, stores and addresses. */
#include "sim/decode.h"

#include <string.h>

bool decode_space(str m, enum ptx_space *out) {
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
        {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
        {"local", PTX_LOCAL},        {"const", PTX_CONST},
        {"param", PTX_PARAM},        {"param::entry", PTX_PARAM},
        {"param::func", PTX_PARAM},
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (str_is(m, spaces[i].name)) {
            *out = spaces[i].space;
            return true;
        }
    return false;
}

/* What an access means to others: a strong one can be waited with, releases and acquires order the
 * accesses around them; of the scopes a block's own alone is less than the others. */
bool decode_ordering(str m, struct access *a) {
    static const struct {
        const char *name;
        bool strong, acquire, release;
    } words[] = {
        {"weak", false, false, false},    {"volatile", true, false, false},
        {"relaxed", true, false, false},  {"acquire", true, true, false},
        {"release", true, false, true},   {"acq_rel", true, true, true},
        {"mmio", true, false, false},     {"cta", false, false, false},
        {"cluster", false, false, false}, {"gpu", false, false, false},
        {"sys", false, false, false},     {"ca", false, false, false},
        {"cg", false, false, false},      {"cs", false, false, false},
        {"lu", false, false, false},      {"cv", true, false, false},
        {"wb", false, false, false},      {"wt", false, false, false},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(m, words[i].name)) {
            a->strong |= words[i].strong;
            a->acquire |= words[i].acquire;
            a->release |= words[i].release;
            a->narrow |= str_is(m, "cta");
            a->unordered |= str_is(m, "volatile");
            return true;
        }
    a->fixed_content |= str_is(m, "nc");
    return str_is(m, "nc") || str_starts(m, S("L1::")) || str_starts(m, S("L2::"));
}

static bool access_type(str m, struct access *a) {
    static const struct {
        const char *name;
        uint8_t width;
        bool sign;
    } types[] = {
        {"b8", 1, false},    {"u8", 1, false},     {"s8", 1, true},     {"b16", 2, false},
        {"u16", 2, false},   {"s16", 2, true},     {"f16", 2, false},   {"bf16", 2, false},
        {"b32", 4, false},   {"u32", 4, false},    {"s32", 4, true},    {"f32", 4, false},
        {"b64", 8, false},   {"u64", 8, false},    {"s64", 8, true},    {"f64", 8, false},
        {"f16x2", 4, false}, {"bf16x2", 4, false}, {"b128", 16, false},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(m, types[i].name)) {
            a->width = types[i].width;
            a->sign = types[i].sign;
            return true;
        }
    return false;
}

static bool access_mods(struct decoder *d, struct access *a) {
    const struct ptx_instr *in = d->in;
    a->space = PTX_GENERIC;
    a->count = 1;
    for (size_t i = 0; i < in->nmods; i++) {
        str m = in->mods[i];
        if (str_is(m, "v2") || str_is(m, "v4") || str_is(m, "v8"))
            a->count = (uint8_t)(m.p[1] - '0');
        else if (!decode_space(m, &a->space) && !decode_ordering(m, a) && !access_type(m, a))
            return decode_refuse(d, NULL);
    }
    if (!a->width || a->count * a->width > 32)
        return decode_refuse(d, NULL);
    if (a->width == 16) { /* in 8-byte halves */
        a->width = 8;
        a->count = (uint8_t)(a->count * 2);
    }
    a->bytes = (uint8_t)(a->count * a->width);
    return true;
}

static bool access_register(struct decoder *d, const struct ptx_operand *op, bool store,
                            struct access *a, uint32_t *at) {
    uint8_t bytes = a->reg_bytes;
    if (op->kind == PTX_OP_REG)
        bytes = decode_reg_bytes(decode_reg_type(d, op->reg));
    else if (store && op->kind == PTX_OP_IMM)
        bytes = a->width <= 2 ? 2 : a->width;
    else if (!bytes)
        bytes = a->width <= 2 ? 2 : a->width;
    if (bytes < a->width || (a->reg_bytes && a->reg_bytes != bytes))
        return decode_refuse(d, "its registers do not have one fitting width");
    a->reg_bytes = bytes;
    char shape = bytes == 2 ? 'h' : bytes == 4 ? '4' : '8';
    return store ? decode_source(d, op, shape, at) : decode_register(d, op, shape, at);
}

/* A 128-bit register is two places, lower half first. */
bool decode_wide(struct decoder *d, const struct ptx_operand *op, uint32_t at[2]) {
    if (op->kind != PTX_OP_REG || decode_reg_type(d, op->reg) != PTX_B128)
        return decode_refuse(d, "an operand is not a register of 128 bits");
    uint32_t *slot = &d->frame->reg_at[op->reg];
    if (!*slot) {
        *slot = decode_place(d, 8);
        decode_place(d, 8);
    }
    at[0] = *slot;
    at[1] = *slot + 8 * SIM_LANES;
    return true;
}

static bool access_registers(struct decoder *d, const struct ptx_operand *op, bool store,
                             struct access *a) {
    if (decode_mod(d, "b128")) {
        const struct ptx_operand *one = op->kind == PTX_OP_VECTOR ? op->elem : op;
        size_t many = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
        a->reg_bytes = 8;
        if (many * 2 != a->count)
            return decode_refuse(d, "it names another number of registers");
        for (size_t i = 0; i < many; i++)
            if (!decode_wide(d, &one[i], &a->reg[2 * i]))
                return false;
        return true;
    }
    const struct ptx_operand *elem = op->kind == PTX_OP_VECTOR ? op->elem : op;
    size_t n = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
    if (n != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!access_register(d, &elem[i], store, a, &a->reg[i]))
            return false;
    return true;
}

/* The base's place; a symbol's address is a constant, and says which space it is in. */
bool decode_base(struct decoder *d, const struct ptx_operand *op, struct access *a, uint32_t *at) {
    if (op->kind != PTX_OP_ADDRESS || op->nelem)
        return decode_refuse(d, "its address is not of the form [base + offset]");
    a->offset = op->offset;
    a->base_wide = true;
    if (op->base_is_reg) {
        struct ptx_operand reg = {.kind = PTX_OP_REG, .reg = op->reg};
        a->base_wide = decode_shape_ok(d, &reg, '8');
        return decode_register(d, &reg, a->base_wide ? '8' : '4', at);
    }
    if (op->symbol == PTX_SYM_NONE) {
        *at = decode_constant(d, 0, 8, false);
        return true;
    }
    struct symbol s;
    if (!decode_symbol(d, op, &s))
        return false;
    if (a->space != s.space && !(a->space == PTX_PARAM && s.space == PTX_LOCAL))
        return decode_refuse(d, "the variable is in another state space");
    a->space = s.space;
    *at = decode_constant(d, s.at, 8, s.dynamic);
    return true;
}

static uint32_t param_place(struct decoder *d, struct param_use u) {
    for (size_t i = 0; i < d->nparams; i++) {
        const struct param_use *o = &d->params[i];
        if (o->offset == u.offset && o->width == u.width && o->reg_bytes == u.reg_bytes &&
            o->sign == u.sign)
            return o->at;
    }
    u.at = decode_place(d, u.reg_bytes == 8 ? 8 : 4);
    d->params = mem_grow(d->params, &d->params_cap, d->nparams + 1, sizeof *d->params);
    d->params[d->nparams++] = u;
    return u.at;
}

/* A parameter at a known place does not change during a launch. */
static bool decode_param(struct decoder *d, const struct access *a, uint64_t at) {
    uint64_t from = at + (uint64_t)a->offset;
    if (from > d->prog->params_bytes || d->prog->params_bytes - from < a->bytes ||
        from % a->bytes != 0)
        return decode_refuse(d, "it reads beside the kernel's parameters");
    for (unsigned k = 0; k < a->count; k++) {
        struct param_use u = {.offset = (uint32_t)(from + k * a->width),
                              .width = a->width,
                              .reg_bytes = a->reg_bytes,
                              .sign = a->sign};
        if (!decode_lanes(d, a->reg_bytes == 8 ? "mov.b64" : "mov.b32", a->reg[k],
                          param_place(d, u), 0))
            return false;
        d->code[d->ncode - 1].class = CLASS_MEMORY;
    }
    return true;
}

bool decode_access(struct decoder *d, bool store) {
    const struct ptx_instr *in = d->in;
    struct access *a = arena_new_of(d->arena, struct access);
    uint32_t base;
    if (!access_mods(d, a))
        return false;
    bool policy = decode_mod(d, "L2::cache_hint"); /* its operand is a hint, nothing more */
    if (in->nops != 2u + policy)
        return decode_refuse(d, "it has another number of operands");
    if (!decode_base(d, &in->ops[store ? 0 : 1], a, &base) ||
        !access_registers(d, &in->ops[store ? 1 : 0], store, a))
        return false;
    if (store && (a->space == PTX_CONST || a->space == PTX_PARAM))
        return decode_refuse(d, "constants and parameters cannot be written");
    const struct ptx_operand *address = &in->ops[store ? 0 : 1];
    struct symbol s;
    if (a->space == PTX_PARAM && !address->base_is_reg && address->symbol != PTX_SYM_NONE)
        return decode_symbol(d, address, &s) && decode_param(d, a, s.at);
    a->result = !store;
    struct instr *i = decode_step(d, store ? KIND_STORE : KIND_LOAD, CLASS_MEMORY);
    i->mem = a;
    i->a = base;
    return true;
}

static bool has_window(enum ptx_space s) {
    return s == PTX_SHARED || s == PTX_LOCAL || s == PTX_CONST || s == PTX_PARAM;
}

static uint64_t window_of(enum ptx_space s) {
    return s == PTX_LOCAL   ? WINDOW_LOCAL
           : s == PTX_CONST ? WINDOW_CONST
           : s == PTX_PARAM ? WINDOW_PARAM
                            : WINDOW_SHARED;
}

/* cvta.shared.u64 d, a adds the window's base, cvta.to.shared.u64 takes it away. */
bool decode_cvta(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_space s = PTX_SPACE_NONE;
    uint32_t to, a;
    bool back = decode_mod(d, "to");
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &s);
    if (s == PTX_SPACE_NONE || in->nops != 2 || !(decode_mod(d, "u64") || decode_mod(d, "s64")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], '8', &to) || !decode_source(d, &in->ops[1], '8', &a))
        return false;
    uint32_t base = has_window(s) ? decode_window(d, window_of(s), back ? -1 : 1)
                                  : decode_constant(d, 0, 8, false);
    return decode_lanes(d, "%add_base", to, a, base);
}

bool decode_isspacep(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_space s;
    uint32_t p, a;
    if (in->nmods != 1 || in->nops != 2 || !decode_space(in->mods[0], &s))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], 'p', &p) || !decode_source(d, &in->ops[1], '8', &a))
        return false;
    if (str_is(in->mods[0], "shared::cta")) /* not another block's of the cluster */
        return decode_lanes(d, "%in_window", p, a, decode_window(d, WINDOW_SHARED, 1)) &&
               (d->code[d->ncode - 1].c = decode_constant(d, UINT64_C(1) << 24, 8, false), true);
    bool global = s == PTX_GLOBAL; /* whatever is in no other window */
    uint64_t size = global ? WINDOWS_BYTES : WINDOW_BYTES;
    uint32_t from = decode_window(d, window_of(s), 1), n = decode_constant(d, size, 8, false);
    if (!decode_lanes(d, global ? "%not_in_window" : "%in_window", p, a, from))
        return false;
    d->code[d->ncode - 1].c = n;
    return true;
}
