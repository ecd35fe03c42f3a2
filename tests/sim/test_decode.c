/* What is refused, with which words; and small programs that no compiler writes. */
#include "tap.h"

#include "harness.h"
#include "supported.h"

static void test_refused(void) {
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];",
         "PTX line 8: 'tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];' is not supported by "
         "the simulator; read global memory instead"},
        {"wgmma.wait_group.sync.aligned 9;", "it waits for 0 to 7 groups"},
        {"mma.sync.aligned.m16n8k9.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, "
         "{%r3}, {%f1, %f2, %f3, %f4};",
         "is not supported by the simulator"},
        {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "4, 8 or 16 bytes, .cg 16 alone"},
        {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
         "[%r1], "
         "[%rd1, {%r1, %r2, %r3}], [%r4], {%h1};",
         "im2col copies are not simulated"},
        {"mbarrier.banana.shared.b64 [%r1], 1;", "is not supported"},
        {"mov.u32 %r1, %pm3;", "does not have this special register"},
        {"add.s32 %r1, %rd1, 2;", "not a register of the instruction's width"},
        {"add.f32 %f1, %f2;", "another number of operands"},
        {"setp.lt.s32 %r1, %r2, %r3;", "not a register of the instruction's width"},
        {"ld.global.v4.f32 {%f1, %f2}, [%rd1];", "another number of registers"},
        {"ld.global.L2::cache_hint.f32 %f1, [%rd1];", "another number of operands"},
        {"ld.global.u64 %r1, [%rd1];", "one fitting width"},
        {"call __assertfail2;", "names nothing"},
        {"call k;", "not defined in the module"},
        {"call p;", "only direct calls"},
        {"bra nowhere;", "names nothing"},
        {"bra p;", "needs a label"},
        {"L: mov.u64 %rd1, L;", "names neither a variable nor a parameter"},
        {"L: ld.global.u64 %rd1, [L];", "names neither a variable nor a parameter"},
        {"mov.u64 %rd1, nothing;", "names nothing"},
        {"ld.param.u64 %rd2, [p+8];", "beside the kernel's parameters"},
        {"cvt.u8.u64 %p1, %rd1;", "too narrow"},
        {"cvt.pack.sat.s8.s32 %r1, %r2, %r3;", "is not supported"},
        {"%pack64 %rd1, %r1, %r2;", "is not supported"},
        {"mul.lo.banana.s32 %r1, %r2, %r3;", "is not supported"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        bool ok = harness_load_text(&h, harness_kernel(a, rows[i].body), "k");
        CHECKF(!ok && strstr(h.err.text, rows[i].text), "%s: %s", rows[i].body, h.err.text);
        harness_free(&h);
        arena_free(a);
    }
}

static void test_source_line(void) {
    struct harness h;
    struct arena *a = arena_new(8u << 20);
    str text = harness_text(a, "sim/ptx", "pointwise.ptx");
    size_t at = str_find(text, S("atom.global.add.u32"));
    CHECK(at < text.n);
    char *broken = arena_cstr(a, text);
    memcpy(broken + at, "atom.global.add.b32", 19);
    CHECK(!harness_load_text(&h, (str){broken, text.n}, "count_up"));
    CHECKF(strstr(h.err.text, "(pointwise.cu line 49): 'atom.global.add.b32"), "%s", h.err.text);
    harness_free(&h);
    arena_free(a);
}

/* Each leaves one word in the buffer, the same for all lanes. */
static void test_programs(void) {
    static const struct {
        const char *name, *body;
        uint32_t want;
    } rows[] = {
        {"guards",
         "mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 3; @!%p1 mov.u32 %r2, 4;"
         "st.global.u32 [%rd1], %r2;",
         3},
        {"setp with and, negated",
         "setp.eq.u32 %p1, 1, 1; setp.ne.and.u32 %p2, 1, 2, !%p1;"
         "setp.eq.or.s32 %p3, 1, 2, %p1; selp.u32 %r1, 1, 0, %p2;"
         "selp.u32 %r2, 2, 0, %p3; or.b32 %r1, %r1, %r2;"
         "st.global.u32 [%rd1], %r1;",
         2},
        {"carry chain",
         "mov.u32 %r1, -1; add.cc.u32 %r2, %r1, 1; addc.u32 %r3, 5, 6;"
         "st.global.u32 [%rd1], %r3;",
         12},
        {"borrow chain",
         "mov.u32 %r1, 0; sub.cc.u32 %r2, %r1, 1; subc.u32 %r3, 5, 1;"
         "st.global.u32 [%rd1], %r3;",
         3},
        {"decimal literals",
         "add.f32 %f1, 1.5, 0f3F000000; cvt.rzi.u32.f32 %r1, %f1;"
         "st.global.u32 [%rd1], %r1;",
         2},
        {"vectors of halves",
         "mov.b32 {%h1, %h2}, 0x00020001; mov.b32 %r1, {%h2, %h1};"
         "st.global.u32 [%rd1], %r1;",
         0x00010002},
        {"quarters",
         "mov.b64 %rd2, {%h1, 7, 8, 9}; mov.b64 {_, %h2, %h3, _}, %rd2;"
         "mov.b32 %r1, {%h2, %h3}; st.global.u32 [%rd1], %r1;",
         0x00080007},
        {"saturating conversion",
         "mov.u32 %r1, -5; cvt.sat.u8.s32 %r2, %r1; mov.u32 %r3, 300;"
         "cvt.sat.u8.s32 %r4, %r3; shl.b32 %r4, %r4, 8;"
         "or.b32 %r2, %r2, %r4; st.global.u32 [%rd1], %r2;",
         0xff00},
        {"signed bytes", "mov.u32 %r1, 0x1f0; cvt.s32.s8 %r2, %r1; st.global.u32 [%rd1], %r2;",
         0xfffffff0},
        {"a variable of a closed block is not the one of the block around it",
         ".shared .b32 s; mov.u32 %r1, s; st.shared.u32 [%r1], 7;"
         "{ .shared .b32 s; st.shared.u32 [s], 8; } ld.shared.u32 %r2, [s];"
         "st.global.u32 [%rd1], %r2;",
         7},
        {"labels of inner blocks",
         "mov.u32 %r1, 0; { bra L; mov.u32 %r1, 9; L: add.u32 %r1, %r1, 1; }"
         "{ bra L; mov.u32 %r1, 9; L: add.u32 %r1, %r1, 2; }"
         "st.global.u32 [%rd1], %r1;",
         3},
        {"branch table",
         "mov.u32 %r1, 1; T: .branchtargets A, B; brx.idx %r1, T;"
         "A: mov.u32 %r2, 10; bra E; B: mov.u32 %r2, 20; E:"
         "st.global.u32 [%rd1], %r2;",
         20},
        {"rounding modes",
         "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f33000000; add.rp.f32 %f3, %f1,"
         "%f2; add.rm.f32 %f4, %f1, %f2; mov.b32 %r1, %f3; mov.b32 %r2, %f4;"
         "sub.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;",
         1},
        {"8-bit floats, and back",
         "mov.f32 %f1, 0f43E80000; mov.f32 %f2, 0fC0E00000;" /* 464 saturates to 448; -7 */
         "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.f16x2.e4m3x2 %r1, %h1;"
         "st.global.u32 [%rd1], %r1;",
         0x5f00c700},
        {"8-bit floats round to even and keep subnormals",
         "mov.f32 %f1, 0f3F880000; mov.f32 %f2, 0f3B000000;" /* 1.0625 and 2^-9 */
         "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r1, %h1;"
         "st.global.u32 [%rd1], %r1;",
         0x3801},
        {"halves towards zero, down and up",
         "mov.f32 %f1, 0f477FFFFF; cvt.rz.f16.f32 %h1, %f1; mov.f32 %f2, 0f80000001;"
         "cvt.rm.f16.f32 %h2, %f2; mov.b32 %r1, {%h1, %h2}; st.global.u32 [%rd1], %r1;",
         0x80017bff},
        {"relu of a pair",
         "mov.f32 %f1, 0fBF800000; mov.f32 %f2, 0f40000000; cvt.rn.relu.f16x2.f32 %r1, %f1, %f2;"
         "st.global.u32 [%rd1], %r1;",
         0x4000},
        {"a half saturates",
         "mov.b32 {%h1, %h2}, 0x4000C000; add.sat.f16 %h3, %h1, %h1; add.sat.f16 %h2, %h2, %h2;"
         "mov.b32 %r1, {%h2, %h3}; st.global.u32 [%rd1], %r1;",
         0x00003c00},
        {"64-bit integers to halves, rounded once",
         "mov.u64 %rd2, 0x4040000000000001; cvt.rn.bf16.s64 %h1, %rd2; cvt.u32.u16 %r1, %h1;"
         "st.global.u32 [%rd1], %r1;",
         0x5e81},
        {"set gives one in the type it is asked for",
         "mov.b32 {%h1, %h2}, 0x3C004000; set.lt.bf16.bf16 %h3, %h2, %h1;"
         "set.gt.f32.f32 %f1, 0f40000000, 0f3F800000; mov.b32 %r1, %f1; cvt.u32.u16 %r2, %h3;"
         "or.b32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;",
         0x3f803f80},
        {"the third lane of a mask",
         "mov.u32 %r1, 0xF0; mov.u32 %r2, 0; mov.u32 %r3, 3; fns.b32 %r4, %r1, %r2, %r3;"
         "st.global.u32 [%rd1], %r4;",
         6},
        {"dp2a",
         "mov.u32 %r1, 0xFFFF0003; mov.u32 %r2, 0x02050407; dp2a.lo.s32.u32 %r3, %r1, %r2, 100;"
         "st.global.u32 [%rd1], %r3;",
         100 + 3 * 7 - 4},
        {"pack of four bytes",
         "cvt.pack.sat.s8.s32.b32 %r3, 300, -3, 0; cvt.pack.sat.s8.s32.b32 %r3, -200, 5, %r3;"
         "st.global.u32 [%rd1], %r3;",
         0x7ffd8005},
        {"pack of two halves", "cvt.pack.sat.u16.s32 %r3, 70000, -1; st.global.u32 [%rd1], %r3;",
         0xffff0000},
        {"both results of setp",
         "setp.eq.u32 %p3, 1, 1; setp.lt.and.s32 %p1|%p2, 1, 2, %p3; selp.u32 %r1, 1, 0, %p1;"
         "selp.u32 %r2, 2, 0, %p2; setp.gt.s32 %p3|%p1, 1, 2; selp.u32 %r3, 4, 0, %p3;"
         "selp.u32 %r4, 8, 0, %p1; or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;"
         "or.b32 %r1, %r1, %r4; st.global.u32 [%rd1], %r1;",
         9},
        {"set", "set.lt.u32.f32 %r1, 0f3F800000, 0f40000000; st.global.u32 [%rd1], %r1;", ~0u},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        uint32_t out = 0x5a5a5a5a;
        bool ok = harness_load_text(&h, harness_kernel(a, rows[i].body), "k");
        CHECKF(ok, "%s: %s", rows[i].name, h.err.text);
        uint64_t p = harness_buffer(&h, "out", &out, 4, false);
        if (ok) {
            struct sim_result r = harness_run(&h, 1, 48, &p, 8);
            CHECKF(r.status == SIM_OK, "%s: %s", rows[i].name, r.fault.text);
            CHECKF(out == rows[i].want, "%s: %#x", rows[i].name, out);
        }
        harness_free(&h);
        arena_free(a);
    }
}

/* docs/SIM.md ends with the list; UPDATE=1 writes it. */
static void test_list(void) {
    struct arena *a = arena_new(4u << 20);
    struct buf b;
    buf_init(&b, 1u << 20);
    put_supported(&b);
    CHECK(!b.failed && b.n > 1000);
    CHECK(str_find(buf_str(&b), S("\n- fma: .f32 .ftz.f32 ")) < b.n);
    str doc = harness_text(a, "../docs", "SIM.md");
    size_t at = str_find(doc, S("## arithmetic"));
    CHECKF(str_eq(str_from(doc, at), buf_str(&b)),
           "docs/SIM.md is not up to date: run with UPDATE=1");
    if (getenv("UPDATE")) {
        str path = arena_printf(a, "%s/docs/SIM.md", getenv("SOURCE_ROOT"));
        FILE *f = fopen(path.p, "w");
        CHECK(f != NULL);
        if (f) {
            fprintf(f, "%.*s%.*s", STR_ARG(str_cut(doc, 0, at)), STR_ARG(buf_str(&b)));
            fclose(f);
        }
    }
    buf_release(&b);
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"refused at load, with the reason", test_refused},
    {"the .cu line of what is refused", test_source_line},
    {"small programs", test_programs},
    {"the list of what is supported", test_list},
};
TAP_CASES(cases)
