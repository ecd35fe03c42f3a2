/* Writes forms.ptx and forms.def: kernels in which every operation of the simulator's table is done
 * once, and every conversion, in each rounding that PTX has for it. What the simulator claims to
 * run is thereby what the corpus asks a GPU.
 *
 * A kernel is an operation (`add`) or, where results may be approximate, an operation and a type.
 * It takes three words a thread, as integers, floats, halves or, in pairs, as 64 bits, and writes a
 * plane of CORPUS_N words for each form in the order they stand in the file, two of 64-bit results:
 * plane k of a comparison that fails is the form with the comment `// k`. */
#ifndef CORPUS_FORMS_H
#define CORPUS_FORMS_H

#include "base/str.h"
#include "fill.h"
#include "sim/lanes.h"

#include <stdio.h>
#include <string.h>

struct forms {
    struct buf *ptx, *def;
    unsigned planes;
    char kernel[32];
};

static inline bool forms_has(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}
static inline bool forms_ends(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static inline void forms_begin(struct forms *f, const char *kernel) {
    f->planes = 0;
    snprintf(f->kernel, sizeof f->kernel, "%s", kernel);
    buf_printf(f->ptx,
               "\n.visible .entry op_%s(.param .u64 in, .param .u64 out)\n{\n"
               ".reg .b16 %%ha, %%hb, %%hc, %%hd, %%hi;\n.reg .b32 %%a, %%b, %%c, %%d, %%e, %%i, "
               "%%m, %%n;\n.reg .b64 %%o, %%wa, %%wb, %%wc, %%wd, %%wi, %%p;\n"
               ".reg .pred %%pa, %%pb, %%pd;\n"
               "mov.u32 %%i, %%ctaid.x;\nmov.u32 %%d, %%tid.x;\nmad.lo.u32 %%i, %%i, 128, %%d;\n"
               "ld.param.u64 %%o, [in];\nmad.wide.u32 %%p, %%i, 4, %%o;\n"
               "ld.global.b32 %%a, [%%p];\nld.global.b32 %%b, [%%p+%u];\n"
               "ld.global.b32 %%c, [%%p+%u];\n"
               "cvt.u16.u32 %%ha, %%a;\ncvt.u16.u32 %%hb, %%b;\ncvt.u16.u32 %%hc, %%c;\n"
               "mov.b64 %%wa, {%%b, %%a};\nmov.b64 %%wb, {%%c, %%b};\nmov.b64 %%wc, {%%a, %%c};\n"
               "setp.lt.s32 %%pa, %%a, 0;\nsetp.lt.s32 %%pb, %%b, 0;\n"
               "and.b32 %%m, %%b, 79;\nand.b32 %%n, %%c, 79;\n"
               "ld.param.u64 %%o, [out];\n"
               "mad.wide.u32 %%p, %%i, 4, %%o;\nmad.wide.u32 %%o, %%i, 8, %%o;\n",
               kernel, CORPUS_N * 4, CORPUS_N * 8);
}

static inline void forms_end(struct forms *f, const char *compare) {
    buf_puts(f->ptx, S("ret;\n}\n"));
    /* Beyond a few turns sin and cos are whatever they are. */
    bool angles = !strncmp(f->kernel, "sin_", 4) || !strncmp(f->kernel, "cos_", 4);
    buf_printf(f->def, "FORM(%s, %u, %s, %s)\n", f->kernel, f->planes, compare,
               angles ? "ANGLES" : "CORNERS");
}

/* The result, by the width of %d, %hd, %wd or %pd. */
static inline void forms_store(struct forms *f, char shape) {
    unsigned at = f->planes * CORPUS_N * 4;
    if (shape == '8') {
        buf_printf(f->ptx, "st.global.b64 [%%o+%u], %%wd;\n", at);
        f->planes += 2;
        return;
    }
    if (shape == 'p')
        buf_puts(f->ptx, S("selp.b32 %d, 1, 0, %pd;\n"));
    else if (shape == 'h')
        buf_puts(f->ptx, S("cvt.u32.u16 %d, %hd;\n"));
    buf_printf(f->ptx, "st.global.b32 [%%p+%u], %%d;\n", at);
    f->planes++;
}

static inline const char *forms_register(char shape, unsigned i) {
    static const char *const h[] = {"%hd", "%ha", "%hb", "%hc"};
    static const char *const w[] = {"%d", "%a", "%b", "%c", "%a"};
    static const char *const d[] = {"%wd", "%wa", "%wb", "%wc"};
    static const char *const p[] = {"%pd", "%pa", "%pb", "%pa"};
    return shape == 'h' ? h[i] : shape == '8' ? d[i] : shape == 'p' ? p[i] : w[i];
}

/* Operands of which only small values say anything: amounts of shifts, places of fields. */
static inline const char *forms_operand(const char *name, const char *shape, unsigned i) {
    static const char *const shifts[] = {"shl.", "shr.", "bmsk.", "szext."};
    for (size_t k = 0; k < sizeof shifts / sizeof *shifts; k++)
        if (!strncmp(name, shifts[k], strlen(shifts[k])) && i == 2)
            return "%m";
    if (!strncmp(name, "shf.", 4) && i == 3)
        return "%m";
    if (!strncmp(name, "bfe.", 4) && i >= 2)
        return i == 2 ? "%m" : "%n";
    if (!strncmp(name, "bfi.", 4) && i >= 3)
        return i == 3 ? "%m" : "%n";
    if (!strncmp(name, "lop3.", 5) && i == 4)
        return "0x6a";
    return forms_register(shape[i], i);
}

/* Divisors are odd, for dividing by zero gives whatever a machine likes; so does fns from a bit
 * that is not there. */
static inline void forms_tame(struct forms *f, const char *name, char shape) {
    if (!strncmp(name, "fns.", 4))
        buf_puts(f->ptx, S("and.b32 %b, %b, 31;\n"));
    if ((strncmp(name, "div.", 4) && strncmp(name, "rem.", 4)) || forms_has(name, ".f"))
        return;
    buf_printf(f->ptx, shape == 'h'   ? "or.b16 %%hb, %%hb, 1;\n"
                       : shape == '8' ? "or.b64 %%wb, %%wb, 1;\n"
                                      : "or.b32 %%b, %%b, 1;\n");
}

/* `text` is the instruction as PTX has it, `op` its row in the table. */
static inline void forms_instruction(struct forms *f, const char *text, const struct lane_op *op) {
    size_t n = strcspn(op->shape, "c");
    bool carries = op->shape[n] == 'c';
    bool in = carries && text[strcspn(text, ".") - 1] == 'c';
    char shape = op->shape[0];
    forms_tame(f, text, op->shape[n - 1]);
    if (in) /* a carry to take in */
        buf_printf(f->ptx,
                   shape == '8' ? "add.cc.u64 %%wd, %%wb, %%wc;\n" : "add.cc.u32 %%d, %%b, %%c;\n");
    buf_printf(f->ptx, "%s %s", text, forms_register(shape, 0));
    for (unsigned i = 1; i < n; i++)
        buf_printf(f->ptx, ", %s", forms_operand(text, op->shape, i));
    buf_printf(f->ptx, "; // %u\n", f->planes);
    forms_store(f, shape);
    if (!carries || !forms_has(text, ".cc"))
        return;
    buf_printf(f->ptx,
               shape == '8' ? "addc.u64 %%wd, 0, 0; // %u\n" : "addc.u32 %%d, 0, 0; // %u\n",
               f->planes);
    forms_store(f, shape);
}

/* "fma.relu.f16" with ".rn" is "fma.rn.relu.f16"; with ".sat", "fma.rn.sat.f16". */
static inline void forms_variant(struct forms *f, const struct lane_op *op, const char *round,
                                 const char *last) {
    char text[64];
    size_t stem = strcspn(op->name, "."), type = strlen(op->name);
    while (op->name[--type] != '.') {
    }
    snprintf(text, sizeof text, "%.*s%s%.*s%s%s", (int)stem, op->name, round, (int)(type - stem),
             op->name + stem, last, op->name + type);
    forms_instruction(f, text, op);
}

/* Names of the table that the compiler does not take; they stand for one that it does. */
static inline bool forms_alias(const char *name) {
    static const char *const rows[] = {"min.s16x2.relu",     "min.s32.relu", "max.s16x2.relu",
                                       "max.s32.relu",       "selp.f16",     "mov.f16",
                                       "tanh.approx.ftz.f32"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name, rows[i]))
            return true;
    return !strncmp(name, "setp.", 5) && forms_has(name, ".b") && !forms_has(name, ".bf16") &&
           !forms_has(name, "eq.b") && !forms_has(name, "ne.b");
}

static inline void forms_operation(struct forms *f, const struct lane_op *op) {
    static const char *const stems[] = {"add.", "sub.", "mul.", "fma.",
                                        "mad.", "div.", "rcp.", "sqrt."};
    static const char *const rounds[] = {".rn", ".rz", ".rm", ".rp"};
    const char *name = op->name;
    bool single = forms_ends(name, ".f32"), wide = forms_ends(name, ".f64"),
         half = forms_has(name, ".f16"), rounded = false;
    size_t k = 0;
    for (; k < sizeof stems / sizeof *stems && !rounded; k++)
        rounded = !strncmp(name, stems[k], strlen(stems[k]));
    rounded = rounded && !forms_has(name, ".approx") && !forms_has(name, ".full");
    if (forms_alias(name))
        return;
    if (!rounded || !(single || wide || half || forms_has(name, ".bf16"))) {
        forms_instruction(f, name, op);
        return;
    }
    unsigned directions = single || wide ? 4 : 1;
    for (unsigned r = 0; r < directions; r++)
        forms_variant(f, op, rounds[r], "");
    if (k > 5 || !(single || half) || forms_has(name, ".relu"))
        return;
    forms_variant(f, op, ".rn", ".sat");
}

/* Results that PTX leaves to the machine are compared by a unit of their own. */
static inline void forms_group(const char *name, char *kernel, size_t room) {
    size_t stem = strcspn(name, ".");
    const char *type = strrchr(name, '.') + 1;
    bool near = forms_has(name, ".approx") || forms_has(name, ".full");
    bool pair = forms_ends(type, "x2");
    size_t bare = strlen(type) - (pair ? 2 : 0);
    if (near)
        snprintf(kernel, room, "%.*s_%.*s", (int)stem, name, (int)bare, type);
    else
        snprintf(kernel, room, "%.*s", (int)stem, name);
}

/* What PTX promises: relative errors, or absolute ones (NEAR). */
static inline const char *forms_compare(const char *kernel) {
    static const struct {
        const char *kernel, *compare;
    } rows[] = {
        {"div_f32", "ULPS_F32(2)"},    {"rcp_f32", "ULPS_F32(1)"},   {"sqrt_f32", "ULPS_F32(2)"},
        {"rsqrt_f32", "ULPS_F32(2)"},  {"ex2_f32", "ULPS_F32(2)"},   {"lg2_f32", "NEAR_F32(4)"},
        {"sin_f32", "NEAR_F32(8)"},    {"cos_f32", "NEAR_F32(8)"},   {"tanh_f32", "ULPS_F32(4096)"},
        {"ex2_f16", "ULPS_F16(2)"},    {"ex2_bf16", "ULPS_BF16(2)"}, {"tanh_f16", "NEAR_F16(1)"},
        {"tanh_bf16", "ULPS_BF16(1)"}, {"rcp_f64", "UPPER_F64(1)"},  {"rsqrt_f64", "UPPER_F64(1)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(kernel, rows[i].kernel))
            return rows[i].compare;
    return "SAME";
}

static inline void forms_operations(struct forms *f) {
    size_t n;
    const struct lane_op *table = lanes_table(&n);
    for (size_t i = 0; i < n; i++) {
        char kernel[32], other[32];
        bool first = table[i].name[0] != '%';
        if (first)
            forms_group(table[i].name, kernel, sizeof kernel);
        for (size_t k = 0; k < i && first; k++) {
            if (table[k].name[0] == '%')
                continue;
            forms_group(table[k].name, other, sizeof other);
            first = strcmp(kernel, other) != 0;
        }
        if (!first)
            continue;
        forms_begin(f, kernel);
        for (size_t k = i; k < n; k++) {
            if (table[k].name[0] == '%')
                continue;
            forms_group(table[k].name, other, sizeof other);
            if (!strcmp(kernel, other))
                forms_operation(f, &table[k]);
        }
        forms_end(f, forms_compare(kernel));
    }
}

/* Conversions. */
struct forms_type {
    const char *name;
    unsigned bytes;
    bool floating;
};
static const struct forms_type forms_types[] = {
    {"u8", 1, false},  {"s8", 1, false},  {"u16", 2, false}, {"s16", 2, false},
    {"u32", 4, false}, {"s32", 4, false}, {"u64", 8, false}, {"s64", 8, false},
    {"f16", 2, true},  {"bf16", 2, true}, {"f32", 4, true},  {"f64", 8, true},
};
#define FORMS_TYPES (sizeof forms_types / sizeof *forms_types)

static inline char forms_shape(const struct forms_type *t) {
    return t->bytes == 8 ? '8' : t->bytes == 4 ? '4' : 'h';
}
static inline void forms_convert(struct forms *f, const char *mods, const struct forms_type *to,
                                 const struct forms_type *from) {
    buf_printf(f->ptx, "cvt%s.%s.%s %s, %s; // %u\n", mods, to->name, from->name,
               forms_register(forms_shape(to), 0), forms_register(forms_shape(from), 1), f->planes);
    forms_store(f, forms_shape(to));
}

static inline void forms_between_floats(struct forms *f, const struct forms_type *to,
                                        const struct forms_type *from) {
    static const char *const integral[] = {".rni", ".rzi", ".rmi", ".rpi"};
    static const char *const rounds[] = {".rn", ".rz", ".rm", ".rp"};
    bool same = to == from, narrower = to->bytes < from->bytes;
    bool bf16 = to->name[0] == 'b' || from->name[0] == 'b';
    bool from_single = !strcmp(from->name, "f32"), single = !strcmp(to->name, "f32");
    for (size_t i = 0; i < 4 && same && !bf16; i++)
        forms_convert(f, integral[i], to, from);
    if (same && single)
        forms_convert(f, ".rzi.ftz", to, from);
    for (size_t i = 0; i < 4 && !same && (narrower || (bf16 && to->bytes == 2)); i++)
        forms_convert(f, rounds[i], to, from);
    if (!same && to->bytes > from->bytes)
        forms_convert(f, "", to, from);
    if (to->bytes == 2 && from_single)
        forms_convert(f, ".rn.relu", to, from);
    if (single && from->bytes == 8)
        forms_convert(f, ".rn.ftz", to, from);
    if (from_single && to->bytes == 8)
        forms_convert(f, ".ftz", to, from);
    if (!bf16)
        forms_convert(f, narrower ? ".rn.sat" : ".sat", to, from);
}

/* Integers of `from` all fit: PTX then has no .sat. */
static inline bool forms_contains(const struct forms_type *to, const struct forms_type *from) {
    bool to_signed = to->name[0] == 's', from_signed = from->name[0] == 's';
    return to_signed == from_signed ? to->bytes >= from->bytes
                                    : to_signed && to->bytes > from->bytes;
}

static inline void forms_conversion(struct forms *f, const struct forms_type *to,
                                    const struct forms_type *from) {
    static const char *const integral[] = {".rni", ".rzi", ".rmi", ".rpi"};
    static const char *const rounds[] = {".rn", ".rz", ".rm", ".rp"};
    bool bf16 = to->name[0] == 'b' || from->name[0] == 'b';
    if (bf16 && (to->bytes == 1 || from->bytes == 1))
        return; /* PTX has none */
    if (to->floating && from->floating) {
        forms_between_floats(f, to, from);
    } else if (to->floating) {
        for (size_t i = 0; i < 4; i++)
            forms_convert(f, rounds[i], to, from);
    } else if (from->floating) {
        for (size_t i = 0; i < 4; i++)
            forms_convert(f, integral[i], to, from);
        if (from->bytes == 4)
            forms_convert(f, ".rni.ftz", to, from);
    } else {
        forms_convert(f, "", to, from);
        if (!forms_contains(to, from))
            forms_convert(f, ".sat", to, from);
    }
}

/* Two numbers into one register, and back. */
static inline void forms_pairs(struct forms *f) {
    static const struct {
        const char *text;
        char to, from;
        bool two;
    } rows[] = {
        {"cvt.rn.f16x2.f32", '4', '4', true},
        {"cvt.rz.f16x2.f32", '4', '4', true},
        {"cvt.rn.relu.f16x2.f32", '4', '4', true},
        {"cvt.rz.relu.f16x2.f32", '4', '4', true},
        {"cvt.rn.bf16x2.f32", '4', '4', true},
        {"cvt.rz.bf16x2.f32", '4', '4', true},
        {"cvt.rn.relu.bf16x2.f32", '4', '4', true},
        {"cvt.rz.relu.bf16x2.f32", '4', '4', true},
        {"cvt.rna.tf32.f32", '4', '4', false},
        {"cvt.rn.tf32.f32", '4', '4', false},
        {"cvt.rn.satfinite.e4m3x2.f32", 'h', '4', true},
        {"cvt.rn.satfinite.e5m2x2.f32", 'h', '4', true},
        {"cvt.rn.satfinite.relu.e4m3x2.f32", 'h', '4', true},
        {"cvt.rn.satfinite.relu.e5m2x2.f32", 'h', '4', true},
        {"cvt.rn.satfinite.e4m3x2.f16x2", 'h', '4', false},
        {"cvt.rn.satfinite.e5m2x2.f16x2", 'h', '4', false},
        {"cvt.rn.satfinite.relu.e4m3x2.f16x2", 'h', '4', false},
        {"cvt.rn.satfinite.relu.e5m2x2.f16x2", 'h', '4', false},
        {"cvt.rn.f16x2.e4m3x2", '4', 'h', false},
        {"cvt.rn.f16x2.e5m2x2", '4', 'h', false},
        {"cvt.rn.relu.f16x2.e4m3x2", '4', 'h', false},
        {"cvt.rn.relu.f16x2.e5m2x2", '4', 'h', false},
    };
    forms_begin(f, "cvt_pairs");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_printf(f->ptx, "%s %s, %s%s; // %u\n", rows[i].text, forms_register(rows[i].to, 0),
                   forms_register(rows[i].from, 1), rows[i].two ? ", %b" : "", f->planes);
        forms_store(f, rows[i].to);
    }
    forms_end(f, "SAME");
}

/* Which of several NaNs comes out: two of three operands are some. PTX does not say, and an fma
 * whose factors are exchanged is the same instruction to the compiler. So the second row, which an
 * H200 answered with its factors exchanged, is the first one again: the machine code is equal. */
static inline void forms_nans(struct forms *f) {
    static const char *const rows[] = {
        "fma.rn.f64 %wd, %wa, %wb, %wc", "fma.rn.f64 %wd, %wa, %wb, %wc",
        "fma.rn.f64 %wd, %wb, %wc, %wa", "add.rn.f64 %wd, %wb, %wc", "mul.rn.f64 %wd, %wb, %wc"};
    forms_begin(f, "nans");
    buf_puts(f->ptx, S("or.b64 %wb, %wb, 0x7ff8000000000000;\n"
                       "or.b64 %wc, %wc, 0x7ff8000000000000;\n"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_printf(f->ptx, "%s; // %u\n", rows[i], f->planes);
        forms_store(f, '8');
    }
    forms_end(f, "SAME");
}

static inline void forms_conversions(struct forms *f) {
    for (size_t t = 0; t < FORMS_TYPES; t++) {
        char kernel[32];
        snprintf(kernel, sizeof kernel, "cvt_%s", forms_types[t].name);
        forms_begin(f, kernel);
        for (size_t s = 0; s < FORMS_TYPES; s++)
            forms_conversion(f, &forms_types[t], &forms_types[s]);
        forms_end(f, "SAME");
    }
    forms_pairs(f);
}

static inline void forms_write(struct buf *ptx, struct buf *def) {
    struct forms f = {.ptx = ptx, .def = def};
    buf_puts(ptx, S("// Written by corpus-forms from the simulator's table of operations.\n"
                    ".version 8.0\n.target sm_90a\n.address_size 64\n"));
    buf_puts(def, S("/* Written by corpus-forms: FORM(kernel of forms.ptx, planes, comparison, "
                    "inputs) */\n"));
    forms_operations(&f);
    forms_nans(&f);
    forms_conversions(&f);
}

#endif
