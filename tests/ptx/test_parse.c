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
    CHECK(in[0].ops[0].label == in[2].ops[0].label && in[0].ops[0].label != in[1].ops[0].label);
    CHECK(parse(S(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                       ".const .align 8 .f32 t[2][2] = {{1.5, 0f40000000}, {3.0}};")));
    CHECK(module->nexterns == 1 && str_is(module->externs[0], "vprintf"));
    float t[4];
    memcpy(t, module->vars[0].init, 16);
    CHECK(t[0] == 1.5f && t[1] == 2.0f && t[2] == 3.0f && t[3] == 0.0f);
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
    {"broken text, with the line", test_broken},
    {"truncated text", test_truncated},
};

int main(void) {
    arena = arena_new(64u << 20);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return rc;
}
