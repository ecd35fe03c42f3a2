/* The census of a kernel: on PTX that is written here, so that every count is known. */
#include "tap.h"

#include "kernel/census.h"

static const char text[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".func (.param .b32 r) helper(.param .b32 a)\n{\n"
    "    .reg .f32 %f<3>;\n"
    "    ld.param.f32 %f1, [a];\n"
    "    tanh.approx.f32 %f2, %f1;\n"
    "    st.param.f32 [r], %f2;\n    ret;\n}\n"
    ".func unused()\n{\n    trap;\n    ret;\n}\n"
    ".visible .entry k(.param .u64 k_param_0)\n{\n"
    "    .reg .pred %p<3>;\n    .reg .f32 %f<20>;\n    .reg .f64 %fd<4>;\n"
    "    .reg .b32 %r<40>;\n    .reg .b64 %rd<10>;\n"
    "    ld.param.u64 %rd1, [k_param_0];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];\n"
    "    ld.global.v2.u64 {%rd3, %rd4}, [%rd2+16];\n"
    "    ld.shared.f32 %f5, [%r1];\n"
    "    ld.f32 %f6, [%rd1];\n"
    "    fma.rn.f32 %f7, %f1, %f2, %f3;\n"
    "    fma.rn.f64 %fd1, %fd2, %fd2, %fd3;\n"
    "    add.f32 %f8, %f7, %f1;\n"
    "    ex2.approx.ftz.f32 %f9, %f8;\n"
    "    ex2.approx.ftz.f32 %f10, %f9;\n"
    "    div.approx.f32 %f11, %f9, %f8;\n"
    "    div.rn.f32 %f11, %f9, %f8;\n"
    "    add.s32 %r2, %r3, 1;\n"
    "    setp.lt.s32 %p1, %r2, 7;\n"
    "    cvt.rna.tf32.f32 %r4, %f11;\n"
    "    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
    "%r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};\n"
    "    cp.async.cg.shared.global [%r1], [%rd2], 16;\n"
    "    cp.async.wait_group 3;\n"
    "    cp.async.bulk.commit_group;\n"
    "    bar.sync 0;\n"
    "    atom.global.add.f32 %f12, [%rd2], %f11;\n"
    "    red.global.add.f32 [%rd2], %f11;\n"
    "    shfl.sync.bfly.b32 %r7, %r1, 16, 31, -1;\n"
    "    st.global.cs.v2.f32 [%rd2], {%f1, %f2};\n"
    "    ld.global.L1::evict_last.u32 %r8, [%rd2];\n"
    "    div.full.f32 %f11, %f9, %f8;\n"
    "    @%p1 st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};\n"
    "    ret;\n}\n";

static void counts(void) {
    struct arena *a = arena_new(16u << 20);
    struct err err = {0};
    struct ptx_module *m;
    struct census c;
    bool ok = ptx_parse(str_view(text), a, &m, &err);
    CHECKF(ok, "%s", err.text);
    if (!ok)
        return;
    census_take(m, ptx_find_entry(m, S("k")), a, &c);
    static const struct {
        const char *group;
        int64_t n;
    } groups[] = {
        {"fma", 1},     {"fp32", 2},     {"fp64", 1},  {"integer", 2}, {"convert", 1},
        {"special", 4}, {"load", 6},     {"store", 2}, {"atomic", 2},  {"mma", 1},
        {"wgmma", 0},   {"cp_async", 2}, {"tma", 1},   {"barrier", 1}, {"shuffle", 1},
        {"control", 1}, {"move", 1},     {"other", 0}, {"half", 0},
    };
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        CHECKF(census_group_count(&c, str_view(groups[i].group)) == groups[i].n, "%s: %lld",
               groups[i].group, (long long)census_group_count(&c, str_view(groups[i].group)));
        sum += groups[i].n;
    }
    CHECK(sizeof groups / sizeof *groups == CENSUS_COUNT && c.instructions == sum);
    static const struct {
        const char *name;
        int64_t n;
    } forms[] = {
        {"ld.global.128", 1},
        {"ld.global.nc.128", 1},
        {"st.global.cs.64", 1},
        {"ld.global.L1::evict_last.32", 1},
        {"cp.async.wait_group 3", 1},
        {"ld.shared.32", 1},
        {"div.full.f32", 1},
        {"ld.generic.32", 1},
        {"ex2.approx.ftz.f32", 2},
        {"div.approx.f32", 1},
        {"st.global.128", 1},
        {"bar.sync", 1},
        {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 1},
        {"cvt.rna.tf32.f32", 1},
        {"cp.async.cg.shared.global", 1},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int64_t n = 0;
        for (size_t k = 0; k < c.nforms; k++)
            if (str_is(c.forms[k].name, forms[i].name))
                n = c.forms[k].count;
        CHECKF(n == forms[i].n, "%s: %lld", forms[i].name, (long long)n);
    }
    for (size_t i = 0; i < c.ngroups; i++)
        CHECK(c.groups[i].count > 0); /* what there is none of is left out */
    arena_free(a);
}

/* What a kernel calls counts with it, once however often it is called; the rest does not. */
static void calls(void) {
    struct arena *a = arena_new(16u << 20);
    struct err err = {0};
    struct ptx_module *m;
    struct census c;
    str with = arena_printf(
        a,
        "%s.visible .entry calls()\n{\n    .param .b32 p0;\n    .param .b32 r0;\n"
        "    call.uni (r0), helper, (p0);\n    call.uni (r0), helper, (p0);\n    ret;\n}\n",
        text);
    bool ok = ptx_parse(with, a, &m, &err);
    CHECKF(ok, "%s", err.text);
    if (ok) {
        census_take(m, ptx_find_entry(m, S("calls")), a, &c);
        CHECK(c.instructions == 3 + 4 && census_group_count(&c, S("special")) == 1);
        CHECK(c.nforms == 1 && str_is(c.forms[0].name, "tanh.approx.f32"));
    }
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"counts", counts},
    {"functions that are called", calls},
};
TAP_CASES(cases)
