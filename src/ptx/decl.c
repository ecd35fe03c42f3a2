/* Declarations: types, variables with their initialisers, parameters. */
#include "ptx/parser.h"

#include "base/checked.h"

#include <string.h>

static const struct {
    const char *name;
    enum ptx_type type;
    size_t bytes;
} types[] = {
    {"pred", PTX_PRED, 1},   {"b8", PTX_B8, 1},     {"b16", PTX_B16, 2},
    {"b32", PTX_B32, 4},     {"b64", PTX_B64, 8},   {"b128", PTX_B128, 16},
    {"u8", PTX_U8, 1},       {"u16", PTX_U16, 2},   {"u32", PTX_U32, 4},
    {"u64", PTX_U64, 8},     {"s8", PTX_S8, 1},     {"s16", PTX_S16, 2},
    {"s32", PTX_S32, 4},     {"s64", PTX_S64, 8},   {"f16", PTX_F16, 2},
    {"f16x2", PTX_F16X2, 4}, {"bf16", PTX_BF16, 2}, {"bf16x2", PTX_BF16X2, 4},
    {"tf32", PTX_TF32, 4},   {"f32", PTX_F32, 4},   {"f64", PTX_F64, 8},
};

size_t ptx_type_bytes(enum ptx_type t) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == t)
            return types[i].bytes;
    return 0;
}

bool ptx_type_named(str name, enum ptx_type *out) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(name, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    return false;
}

bool parse_type(struct parser *p, enum ptx_type *out) {
    lex_blank(&p->lex);
    struct lexer before = p->lex;
    if (ptx_type_named(lex_dotted(&p->lex), out))
        return true;
    p->lex = before;
    return lex_fail(&p->lex, "expected a type");
}

static bool parse_align(struct parser *p, size_t *align) {
    uint64_t a;
    if (!lex_u64(&p->lex, 1u << 20, &a))
        return false;
    if (a == 0 || (a & (a - 1)))
        return lex_fail(&p->lex, "an alignment must be a power of two");
    *align = a;
    return true;
}

/* `[24]`, `[2][3]`, `[]`; counts elements. An empty bracket gives 0. */
static bool parse_extents(struct parser *p, size_t *count) {
    while (lex_take(&p->lex, '[')) {
        uint64_t n = 0;
        if (lex_peek(&p->lex) != ']' && !lex_u64(&p->lex, PTX_MAX_VAR_BYTES, &n))
            return false;
        if (!mul_size(*count, n, count) || *count > PTX_MAX_VAR_BYTES)
            return lex_fail(&p->lex, "the array is too large");
        if (!lex_need(&p->lex, ']'))
            return false;
    }
    return true;
}

static bool put_number(struct parser *p, enum ptx_type t, uint8_t *at) {
    struct lex_number n;
    char first = lex_peek(&p->lex), letter = (char)(first | 0x20);
    if ((letter >= 'a' && letter <= 'z') || first == '_' || first == '$')
        return lex_fail(&p->lex, "tables of addresses (virtual functions, arrays of pointers to "
                                 "functions) are not read; choose by a switch");
    if (!lex_number(&p->lex, &n))
        return false;
    if (t == PTX_F32 && n.type == PTX_F64) {
        double d;
        memcpy(&d, &n.bits, 8);
        float f = (float)d;
        memcpy(at, &f, 4);
        return true;
    }
    uint64_t wide[2] = {n.bits, 0};
    memcpy(at, wide, ptx_type_bytes(t));
    return true;
}

/* Braces only group: what counts is the order of the numbers. */
static bool parse_initialiser(struct parser *p, enum ptx_type t, struct ptx_var *v) {
    size_t elem = ptx_type_bytes(t), at = 0, depth = 0;
    uint8_t *bytes = arena_alloc(p->arena, v->size ? v->size : 1, 16);
    do {
        while (lex_take(&p->lex, '{'))
            depth++;
        char c = lex_peek(&p->lex);
        if (c != '}') {
            if (at + elem > v->size)
                return lex_fail(&p->lex, "more initial values than the variable holds");
            if (!put_number(p, t, bytes + at))
                return false;
            at += elem;
        }
        while (depth > 0 && lex_take(&p->lex, '}'))
            depth--;
    } while (lex_take(&p->lex, ','));
    if (depth)
        return lex_need(&p->lex, '}');
    v->init = bytes;
    return true;
}

static bool parse_variable_mods(struct parser *p, size_t *align, size_t *vector) {
    for (;;) {
        if (lex_dotted_is(&p->lex, "align")) {
            if (!parse_align(p, align))
                return false;
        } else if (lex_dotted_is(&p->lex, "v2")) {
            *vector = 2;
        } else if (lex_dotted_is(&p->lex, "v4")) {
            *vector = 4;
        } else if (lex_dotted_is(&p->lex, "attribute")) {
            if (!lex_need(&p->lex, '('))
                return false;
            while (!lex_take(&p->lex, ')')) {
                if (p->lex.at >= p->lex.text.n)
                    return lex_fail(&p->lex, "an attribute is not closed");
                p->lex.at++;
            }
        } else {
            return true;
        }
    }
}

bool parse_variable(struct parser *p, enum ptx_space space, bool external, struct ptx_var *out) {
    *out = (struct ptx_var){.space = space, .external = external};
    enum ptx_type t;
    size_t align = 0, count = 1;
    if (!parse_variable_mods(p, &align, &count) || !parse_type(p, &t))
        return false;
    str name = lex_name(&p->lex);
    if (!name.n)
        return lex_fail(&p->lex, "expected a variable's name");
    out->name = arena_str(p->arena, name);
    size_t natural = ptx_type_bytes(t) * count;
    if (!parse_extents(p, &count))
        return false;
    out->size = count * ptx_type_bytes(t);
    out->align = align ? align : natural;
    if (out->size > PTX_MAX_VAR_BYTES)
        return lex_fail(&p->lex, "the variable is too large");
    if (lex_take(&p->lex, '='))
        return parse_initialiser(p, t, out);
    return true;
}

static bool parse_param(struct parser *p, struct ptx_param *out) {
    *out = (struct ptx_param){0};
    bool in_reg = lex_dotted_is(&p->lex, "reg");
    if (!in_reg && !lex_dotted_is(&p->lex, "param"))
        return lex_fail(&p->lex, "expected .param");
    size_t align = 0, count = 1;
    if (!parse_variable_mods(p, &align, &count) || !parse_type(p, &out->type))
        return false;
    size_t pointee = 0; /* .ptr's alignment is of what it points to */
    if (lex_dotted_is(&p->lex, "ptr")) {
        out->grid_constant_pointer = true;
        while (lex_dotted_is(&p->lex, "global") || lex_dotted_is(&p->lex, "const") ||
               lex_dotted_is(&p->lex, "shared") || lex_dotted_is(&p->lex, "local"))
            continue;
        if (!parse_variable_mods(p, &pointee, &count))
            return false;
    }
    str name = lex_name(&p->lex);
    if (!name.n)
        return lex_fail(&p->lex, "expected a parameter's name");
    out->name = arena_str(p->arena, name);
    if (!parse_extents(p, &count))
        return false;
    out->size = count * ptx_type_bytes(out->type);
    out->align = align ? align : ptx_type_bytes(out->type);
    return true;
}

bool parse_params(struct parser *p, struct ptx_param **out, size_t *n) {
    struct list l = {0};
    bool ok = lex_need(&p->lex, '(');
    if (ok && !lex_take(&p->lex, ')')) {
        do {
            ok = l.n < 4096 ? parse_param(p, list_add(&l, sizeof(struct ptx_param)))
                            : lex_fail(&p->lex, "too many parameters");
        } while (ok && lex_take(&p->lex, ','));
        ok = ok && lex_need(&p->lex, ')');
    }
    *out = list_finish(&l, sizeof(struct ptx_param), p->arena, n);
    return ok;
}
