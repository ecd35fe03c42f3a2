/* The list of what the simulator runs: the table of operations, and, in PTX's own words, the
 * instructions that are decoded by hand. docs/SIM.md is this list; a test holds it to that. */
#ifndef TESTS_SIM_SUPPORTED_H
#define TESTS_SIM_SUPPORTED_H

#include "sim/lanes.h"
#include "sim/sim.h"

#include <string.h>

static const struct {
    const char *title, *text;
} others[] = {
    {"conversions",
     "cvt between integers of 8 to 64 bits, f16, bf16, f32, f64: .rn .rz .rm .rp .rni .rzi .rmi "
     ".rpi .ftz .sat .relu\n"
     "cvt.{rn,rz}{.relu}.{f16x2,bf16x2}.f32, cvt.{rn,rna}.tf32.f32\n"
     "cvt.pack.sat.{s8,u8}.s32.b32, cvt.pack.sat.{s16,u16}.s32\n"
     "cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.{f32,f16x2}, cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}\n"},
    {"memory",
     "ld, ldu, st: .global .shared .shared::cluster .local .const .param and generic; .b8 to "
     ".b128; "
     ".v2 .v4 .v8; .weak .volatile .relaxed .acquire .release .mmio; cache hints and policies\n"
     "atom, red: .add .min .max .and .or .xor .exch .cas .inc .dec of .u32 .s32 .u64 .s64 .b16 "
     ".b32 "
     ".b64 .b128 .f32 .f64 .f16 .f16x2 .bf16 .bf16x2 as PTX has them; .v2 .v4 .v8; global, shared, "
     "shared::cluster, generic\n"
     "cvta, isspacep, mapa, getctarank, prefetch, prefetchu, applypriority, "
     "createpolicy\n"},
    {"asynchronous copies",
     "cp.async.{ca,cg} with zero fill, commit_group, wait_group, wait_all, "
     "mbarrier.arrive{.noinc}\n"
     "cp.async.bulk, cp.reduce.async.bulk: global to shared, shared to global, shared to "
     "shared::cluster; .multicast::cluster; commit_group, wait_group{.read}; prefetch\n"
     "cp.async.bulk.tensor, cp.reduce.async.bulk.tensor: 1d to 5d, tiles, every swizzle; not "
     "im2col\n"
     "st.async, red.async, tensormap.replace, fence.proxy\n"
     "mbarrier: init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait "
     "pending_count\n"},
    {"tensor cores",
     "mma.sync, wmma.load, wmma.mma, wmma.store, ldmatrix, stmatrix, movmatrix: f16, bf16, tf32, "
     "e4m3, e5m2, f64, s8, u8, s4, u4, b1\n"
     "wgmma: fence, mma_async from shared memory and registers, commit_group, wait_group\n"},
    {"warps, blocks, clusters, grids",
     "bar, barrier: sync, arrive, red, with numbers and counts; bar.warp.sync; barrier.cluster\n"
     "shfl.sync, vote.sync, match.sync, elect.sync, redux.sync, activemask\n"
     "membar, fence, griddepcontrol, setmaxnreg, nanosleep, pmevent\n"},
    {"control", "bra, brx.idx, call of functions of the module, ret, exit, trap, assert\n"},
    {"special registers",
     "%tid %ntid %ctaid %nctaid %laneid %warpid %nwarpid %smid %nsmid %gridid %lanemask_* "
     "%clusterid %nclusterid %cluster_ctaid %cluster_nctaid %cluster_ctarank %cluster_nctarank "
     "%is_explicit_cluster %dynamic_smem_size %total_smem_size %aggr_smem_size %clock %clock_hi "
     "%clock64 %globaltimer %envreg1 %envreg2\n"},
};

static size_t stem(const char *name) {
    return strcspn(name, ".");
}

/* Operations of one name on a line: "add: .u16 .s16 …". */
static void put_operations(struct buf *out) {
    size_t n;
    const struct lane_op *table = lanes_table(&n);
    for (size_t i = 0; i < n; i++) {
        size_t len = stem(table[i].name);
        bool first = table[i].name[0] != '%';
        for (size_t k = 0; k < i && first; k++)
            first = stem(table[k].name) != len || memcmp(table[k].name, table[i].name, len) != 0;
        if (!first)
            continue;
        buf_printf(out, "- %.*s:", (int)len, table[i].name);
        for (size_t k = i; k < n; k++)
            if (stem(table[k].name) == len && !memcmp(table[k].name, table[i].name, len))
                buf_printf(out, " %s", table[k].name + len);
        buf_puts(out, S("\n"));
    }
}

static void put_supported(struct buf *out) {
    buf_puts(out, S("## arithmetic, with .rn .rz .rm .rp and .sat where PTX has them\n\n"));
    put_operations(out);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        buf_printf(out, "\n## %s\n\n", others[i].title);
        for (str left = str_view(others[i].text); left.n;) {
            size_t end = str_find(left, S("\n"));
            buf_printf(out, "- %.*s\n", STR_ARG(str_cut(left, 0, end)));
            left = str_from(left, end + 1);
        }
    }
}

#endif
