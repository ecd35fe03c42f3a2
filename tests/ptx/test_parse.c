/* The parser on what NVRTC and nvcc write, on what only people write, and on what is broken. */
#include "base/file.h"
#include "ptx/ptx.h"
#include "tap.h"

#include <stdlib.h>

static struct arena *arena;
static struct ptx_module *module;
static struct err err;

static bool parse(str text) {
    arena_reset(arena);
    err = (struct err){0};
    return ptx_parse(text, arena, &module, &err);
}

static bool parse_file(struct arena *a, const char *name) {
    const char *root = getenv("SOURCE_ROOT");
    str path = arena_printf(a, "%s/tests/sim/ptx/%s", root ? root : ".", name), text;
    return file_read(path.p, 1u << 20, a, &text, &err) && parse(text);
}

static void test_fixtures(void) {
    static const struct {
        const char *file, *kernel;
        size_t entries, params;
    } rows[] = {
        {"control.ptx", "control", 1, 3},       {"ints.ptx", "ints", 1, 3},
        {"halves.ptx", "halves", 1, 3},         {"functions.ptx", "functions", 1, 3},
        {"dfunctions.ptx", "dfunctions", 3, 3}, {"pointwise.ptx", "strided", 10, 4},
    };
    struct arena *a = arena_new(16u << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(parse_file(a, rows[i].file), "%s: %s", rows[i].file, err.text);
        const struct ptx_entry *e = ptx_find_entry(module, str_view(rows[i].kernel));
        CHECKF(e && e->is_kernel, "%s", rows[i].file);
        CHECKF(module->nentries == rows[i].entries, "%s: %zu", rows[i].file, module->nentries);
        CHECKF(e && e->nparams == rows[i].params, "%s", rows[i].file);
        CHECK(str_is(module->target, "sm_90a") && str_is(module->version, "9.0"));
        CHECK(module->nexterns == 0 && module->nfiles >= 2);
    }
    arena_free(a);
}

static void test_details(void) {
    struct arena *a = arena_new(16u << 20);
    CHECK(parse_file(a, "pointwise.ptx"));
    const struct ptx_entry *e = ptx_find_entry(module, S("relu4"));
    const struct ptx_instr *load = NULL;
    for (size_t i = 0; e && i < e->ninstrs; i++)
        if (str_is(e->instrs[i].op, "ld") && str_is(e->instrs[i].mods[0], "global"))
            load = &e->instrs[i];
    CHECK(load && load->nops == 2 && load->ops[0].kind == PTX_OP_VECTOR);
    CHECK(load && load->ops[0].nelem == 4 && load->ops[1].kind == PTX_OP_ADDRESS);
    CHECK(load && load->src_line == 10 && load->ops[1].base_is_reg);
    CHECK(load && str_is(module->files[load->src_file], "pointwise.cu"));
    e = ptx_find_entry(module, S("bounded"));
    CHECK(e && e->maxntid[0] == 64 && e->maxntid[1] == 1 && e->reqntid[0] == 0);
    CHECK(!ptx_find_entry(module, S("nothing")));
    CHECK(parse_file(a, "control.ptx"));
    e = ptx_find_entry(module, S("control"));
    CHECK(e && e->nvars == 1 && e->vars[0].space == PTX_SHARED && e->vars[0].size == 512);
    CHECK(module->nvars == 1 && module->vars[0].external && module->vars[0].align == 16);
    CHECK(parse_file(a, "functions.ptx"));
    CHECK(module->nvars == 1 && module->vars[0].size == 24 && module->vars[0].init[0] == 65);
    arena_free(a);
}

#define HEAD       ".version 8.0\n.target sm_90, debug\n.address_size 64\n"
#define BODY(text) S(HEAD ".entry k() {\n.reg .b32 %r<5>; .reg .pred p;\n" text "\n}")

static void test_operands(void) {
    CHECK(parse(BODY("@!p shfl.sync.idx.b32 %r1|p, %r2, -3, 0x1FU, 0b11;")));
    const struct ptx_instr *in = &module->entries[0].instrs[0];
    CHECK(in->guard >= 0 && in->guard_negated && in->nmods == 3 && in->nops == 5);
    CHECK(in->ops[0].kind == PTX_OP_VECTOR && in->ops[0].nelem == 2);
    CHECK(in->ops[2].imm == (uint64_t)-3 && in->ops[3].imm == 31 && in->ops[4].imm == 3);
    CHECK(in->line == 6);
    CHECK(parse(BODY("ld.shared::cta.b32 %r1, [%r2+-8]; mov.b32 %r1, %tid.x; // %r9\n"
                     "/* x */ st.global.L1::no_allocate.f32 [%r1-4], 0f3F800000;")));
    in = module->entries[0].instrs;
    CHECK(str_is(in[0].mods[0], "shared::cta") && in[0].ops[1].offset == -8);
    CHECK(in[1].ops[1].kind == PTX_OP_SPECIAL && str_is(in[1].ops[1].name, "%tid.x"));
    CHECK(in[2].ops[0].offset == -4 && in[2].ops[1].imm == 0x3f800000);
    CHECK(in[2].ops[1].imm_type == PTX_F32 && in[2].line == 7);
    CHECK(parse(BODY("{ .reg .b64 %r<2>; mov.b64 %r1, 1; } mov.b32 %r1, 2;")));
    in = module->entries[0].instrs;
    CHECK(in[0].ops[0].reg != in[1].ops[0].reg);
    CHECK(parse(BODY("bra L; { L: bra L; } L: bra.uni L;")));
    in = module->entries[0].instrs;
    CHECK(in[0].ops[0].index == in[2].ops[0].index && in[0].ops[0].index != in[1].ops[0].index);
    CHECK(parse(S(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                       ".const .align 8 .f32 t[2][2] = {{1.5, 0f40000000}, {3.0}};")));
    CHECK(module->nexterns == 1 && str_is(module->externs[0], "vprintf"));
    float t[4];
    memcpy(t, module->vars[0].init, 16);
    CHECK(t[0] == 1.5f && t[1] == 2.0f && t[2] == 3.0f && t[3] == 0.0f);
}

/* Names. Each row is the body of a kernel `k(p0, p1)` in a module that has a variable g, another
 * named `%m`, a function f and a declaration of e; its last `mov`, `ld` or `bra` must name what the
 * row says. What ptxas 13.0 makes of the same text was looked up in the cubin, by the slot of the
 * address and by comparing the code with that of a text whose names are all different. */
#define NAMES                                                                                      \
    HEAD                                                                                           \
        ".global .align 16 .b8 g[16];\n.global .b32 %m;\n.func f() { ret; }\n.extern .func e();\n" \
        ".entry k(.param .u64 p0, .param .u64 p1) {\n.reg .b64 %rd<9>; .reg .pred q;\n"
#define NAMED(text) NAMES text "\n}"

static const struct ptx_operand *last_named(const struct ptx_entry *e) {
    const struct ptx_operand *found = NULL;
    for (size_t i = 0; i < e->ninstrs; i++) {
        const struct ptx_instr *in = &e->instrs[i];
        if (in->nops && (str_is(in->op, "mov") || str_is(in->op, "ld") || str_is(in->op, "bra") ||
                         str_is(in->op, "call")))
            found = &in->ops[in->nops - 1];
    }
    return found;
}

/* What is named, as a word: kind and place in its list. */
static str meaning(const struct ptx_operand *op, struct arena *a) {
    static const char *const kinds[] = {"none",  "word", "reg",    "label",   "var",
                                        "param", "ret",  "module", "function"};
    if (op->kind == PTX_OP_REG)
        return arena_printf(a, "reg %u", op->reg);
    if (op->kind == PTX_OP_SPECIAL)
        return S("special");
    return arena_printf(a, "%s %u", kinds[op->symbol], op->index);
}

static void test_names(void) {
    static const struct {
        const char *text, *is;
    } rows[] = {
        /* scopes end */
        {NAMED("{ .shared .align 4 .b8 g[16]; } mov.u64 %rd1, g;"), "module 0"},
        {NAMED("{ .shared .align 4 .b8 g[16]; mov.u64 %rd1, g; }"), "var 0"},
        {NAMED("{ .local .b32 g; } mov.u64 %rd1, g;"), "module 0"},
        {NAMED("{ .param .b32 g; } mov.u64 %rd1, g;"), "module 0"},
        {NAMED("{ .reg .b64 g; } mov.u64 %rd1, g;"), "module 0"},
        {NAMED("{ .shared .b32 g; } ld.global.u64 %rd1, [g];"), "module 0"},
        {NAMED("{ { .shared .b32 g; } mov.u64 %rd1, g; }"), "module 0"},
        {NAMED("{ .shared .b32 x; } { .shared .b32 x; mov.u64 %rd1, x; }"), "var 1"},
        {NAMED(".shared .b32 x; { .shared .b32 x; } mov.u64 %rd1, x;"), "var 0"},
        {NAMED(".shared .b32 x; { .shared .b32 x; mov.u64 %rd1, x; }"), "var 1"},
        /* variables are declared before they are used */
        {NAMED("{ mov.u64 %rd1, g; .shared .b32 g; }"), "module 0"},
        {NAMED("mov.u64 %rd1, g; .shared .b32 g;"), "module 0"},
        {NAMED("mov.u64 %rd1, g; .reg .b64 g;"), "module 0"},
        /* a label that comes later hides no variable, one that has come does */
        {NAMED("{ mov.u64 %rd1, g; g: }"), "module 0"},
        {NAMED("{ ld.global.u64 %rd1, [g]; g: }"), "module 0"},
        {NAMED("mov.u64 %rd1, g; g:"), "module 0"},
        {NAMED("{ g: } mov.u64 %rd1, g;"), "module 0"},
        {NAMED("{ g: bra g; }"), "label 0"},
        {NAMED(".shared .b32 x; { mov.u64 %rd1, x; x: }"), "var 0"},
        {NAMED("x: { .shared .b32 x; mov.u64 %rd1, x; }"), "var 0"},
        {NAMED("{ ld.param.u64 %rd1, [p1]; p1: }"), "param 1"},
        /* labels, forwards and backwards, the innermost scope first */
        {NAMED("bra L; { L: } L:"), "label 1"},
        {NAMED("L: { bra L; L: }"), "label 1"},
        {NAMED("{ bra L; L: } L:"), "label 0"},
        {NAMED("{ { bra L; } } L:"), "label 0"},
        {NAMED("{ L: } { L: bra L; }"), "label 1"},
        /* registers and their families */
        {NAMED(".reg .b64 g; mov.u64 %rd1, g;"), "reg 10"},
        {NAMED(".reg .b64 g<4>; mov.u64 %rd1, g;"), "module 0"},
        {NAMED(".reg .b64 g<4>; { .shared .b32 g1; mov.u64 %rd1, g1; }"), "var 0"},
        {NAMED(".shared .b32 g1; { .reg .b64 g<4>; mov.u64 %rd1, g1; }"), "reg 11"},
        {NAMED(".reg .b64 g1; { .reg .b64 g<4>; mov.u64 %rd1, g1; }"), "reg 12"},
        {NAMED(".reg .b64 g<4>; { .reg .b64 g1; mov.u64 %rd1, g1; }"), "reg 14"},
        {NAMED(".reg .b64 g<4>; { .reg .b64 g<2>; mov.u64 %rd1, g3; }"), "reg 13"},
        {NAMED(".reg .b64 g<4>; mov.u64 %rd1, g01;"), "reg 11"},
        {NAMED(".reg .b64 %laneid; mov.u64 %rd1, %laneid;"), "reg 10"},
        /* parameters, functions, words, and names that begin with % */
        {NAMED("mov.u64 %rd1, p1;"), "param 1"},
        {NAMED("{ .shared .b32 p1; mov.u64 %rd1, p1; }"), "var 0"},
        {NAMED("mov.u64 %rd1, f;"), "function 0"},
        {NAMED("call e;"), "function 1"},
        {NAMED("mov.u64 %rd1, k;"), "function 2"},
        {NAMED(".shared .b32 f; mov.u64 %rd1, f;"), "var 0"},
        {NAMED("mov.u64 %rd1, %m;"), "module 1"},
        {NAMED("mov.u64 %rd1, %laneid;"), "special"},
        {NAMED(".shared .b32 %laneid; mov.u64 %rd1, %laneid;"), "var 0"},
        {NAMED("mov.u64 %rd1, WARP_SZ;"), "word 0"},
        {NAMED(".shared .b32 G; mov.u64 %rd1, g;"), "module 0"},
    };
    struct arena *a = arena_new(1u << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool ok = parse(str_view(rows[i].text));
        CHECKF(ok, "row %zu: %s", i, err.text);
        if (!ok)
            continue;
        str is = meaning(last_named(ptx_find_entry(module, S("k"))), a);
        CHECKF(str_is(is, rows[i].is), "row %zu: %.*s, not %s", i, STR_ARG(is), rows[i].is);
    }
    CHECK(module->nfunctions == 3 && module->functions[1].entry < 0);
    CHECK(module->functions[2].entry == 1 && module->nexterns == 1);
    arena_free(a);
}

/* What ptxas refuses, and what no compiler writes. */
static void test_refused_names(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {NAMED("mov.u64 %rd1, zz;"), "'zz' names nothing that is declared"},
        {NAMED("mov.u64 %rd1, G;"), "names nothing"},
        {NAMED("bra L; { L: }"), "names nothing"},
        {NAMED("{ .shared .b32 x; } mov.u64 %rd1, x;"), "names nothing"},
        {NAMED("ld.shared.u64 %rd1, [x]; .shared .b32 x;"), "names nothing"},
        {NAMED("mov.u64 %rd1, v; } .global .b32 v; .entry z() {"), "names nothing"},
        {NAMED("call h; } .func h() {"), "names nothing"},
        {NAMED(".shared .b32 x; .shared .b32 x;"), "declared twice"},
        {NAMED(".shared .b32 x; x:"), "declared twice"},
        {NAMED("x: .shared .b32 x;"), "declared twice"},
        {NAMED("x: x:"), "declared twice"},
        {NAMED(".reg .b64 x; .shared .b32 x;"), "declared twice"},
        {NAMED(".reg .b64 x<4>; .reg .b64 x1;"), "declared twice"},
        {NAMED(".reg .b64 x1; .reg .b64 x<4>;"), "declared twice"},
        {NAMED(".reg .b64 x<4>; .reg .b64 x<2>;"), "declared twice"},
        {NAMED(".shared .b32 p1;"), "declared twice"},
        {NAMED("p1:"), "declared twice"},
        {NAMED("} .shared .b32 g; .entry z() {"), "declared twice"},
        {NAMED("} .global .b32 f; .entry z() {"), "declared twice"},
        {NAMED("} .func g() {"), "declared twice"},
        {NAMED("} .func f() {"), "defined twice"},
        {NAMED(".shared .b32 _;"), "a word of PTX"},
        {NAMED("} .global .b32 WARP_SZ; .entry z() {"), "a word of PTX"},
        {NAMED("{ q: @q mov.u64 %rd1, 1; }"), "a guard must be a predicate"},
        {NAMED(".global .b32 x;"), "not read inside a function"},
        {NAMED("mov.u64 %rd1, g+4;"), "expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(!parse(str_view(rows[i].text)), "row %zu was read", i);
        CHECKF(strstr(err.text, rows[i].says), "row %zu: %s", i, err.text);
        CHECKF(strstr(err.text, "PTX line "), "row %zu: %s", i, err.text);
    }
}

static void test_broken(void) {
    static const struct {
        str text;
        const char *says;
    } rows[] = {
        {{"", 0}, "not PTX"},
        {{"hello", 5}, "not a PTX directive"},
        {{".version 8.0\n\0", 14}, "NUL"},
        {BODY("mov.b32 %r1, %r2"), "expected ';'"},
        {BODY("mov.b32 %r1, ;"), "expected an operand"},
        {BODY("mov.b32 %r1, 0xZZ;"), "not a number"},
        {BODY("mov.b32 %r1, 99999999999999999999;"), "not a number"},
        {BODY("@q mov.b32 %r1, 1;"), "a guard must be a predicate"},
        {BODY("@%r1 mov.b32 %r1, 1;"), "a guard must be a predicate"},
        {BODY("ld.b32 %r1, [%r2;"), "expected ']'"},
        {BODY("mov.b32 %r1, {{{{{{1}}}}}};"), "nested too deeply"},
        {BODY(".reg .b32 %x<99999999>;"), "out of range"},
        {BODY(".banana 3;"), "not read inside a function"},
        {BODY("p_0: .callprototype _ ();"), "calls through pointers"},
        {BODY("{"), "not closed"},
        {S(HEAD ".global .align 8 .u64 t[2] = {0, _Z1fv};"), "tables of addresses"},
        {S(HEAD ".entry k() .banana {}"), "not read before"},
        {S(HEAD ".entry k(.param .b99 x) {}"), "expected a type"},
        {S(HEAD ".global .b32 x[2] = {1, 2, 3};"), "more initial values"},
        {S(HEAD ".global .align 3 .b32 x;"), "power of two"},
        {S(HEAD ".global .b32 x[60000000][60000000];"), "too large"},
        {S(".version 8.0\n.address_size 32"), "64-bit"},
        {S(HEAD ".section .debug { .b8 1"), "ends too early"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(!parse(rows[i].text), "row %zu was read", i);
        CHECKF(strstr(err.text, rows[i].says), "row %zu: %s", i, err.text);
        CHECKF(strstr(err.text, "PTX line "), "row %zu: %s", i, err.text);
    }
    CHECK(!parse((str){"x", (size_t)PTX_MAX_BYTES + 1}) && strstr(err.text, "larger than 64 MiB"));
}

/* Any number of names, but a family of registers comes before most of them. */
static void test_many_names(void) {
    struct buf b;
    for (int after = 0; after < 2; after++) {
        buf_init(&b, 1u << 20);
        buf_puts(&b, S(HEAD ".entry k() {\n"));
        for (int i = 0; i < 3000; i++)
            buf_printf(&b, "%s.reg .b32 x%d%s; L%d:\n", after && i == 2999 ? ".reg .b32 y<4>;" : "",
                       i, "z", i);
        buf_puts(&b, S("bra L2999; mov.b32 x7z, x2999z; }"));
        bool ok = parse(buf_str(&b));
        CHECKF(ok == !after, "%s", err.text);
        CHECK(!ok || module->entries[0].instrs[0].ops[0].index == 2999);
        buf_release(&b);
    }
}

/* Cut anywhere, it is an error or a shorter module, never a crash. */
static void test_truncated(void) {
    struct arena *a = arena_new(16u << 20);
    const char *root = getenv("SOURCE_ROOT");
    str path = arena_printf(a, "%s/tests/sim/ptx/%s", root ? root : ".", "halves.ptx"), text = {0};
    CHECK(file_read(path.p, 1u << 20, a, &text, &err));
    for (size_t n = 0; n < text.n; n += 37) {
        char *exact =
            mem_alloc(n + 1); /* a heap block of its own, so that sanitizers see its end */
        memcpy(exact, text.p, n);
        parse((str){exact, n});
        mem_free(exact);
    }
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"modules written by nvcc", test_fixtures},
    {"what they say", test_details},
    {"operands, scopes, initial values", test_operands},
    {"what a name stands for where it is used", test_names},
    {"names that stand for nothing, or for two things", test_refused_names},
    {"many names", test_many_names},
    {"broken text, with the line", test_broken},
    {"truncated text", test_truncated},
};

int main(void) {
    arena = arena_new(64u << 20);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return rc;
}
