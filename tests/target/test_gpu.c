/* The GPU table, occupancy against NVIDIA's published examples, and the roofline. */
#include "target/gpu.h"

#include "tap.h"

static void table_is_consistent(void) {
    CHECK(gpu_count() >= 7);
    CHECK(gpu_at(gpu_count()) == NULL);
    for (size_t i = 0; i < gpu_count(); i++) {
        const struct gpu *g = gpu_at(i);
        CHECKF(gpu_find(str_view(g->name)) == g, "%s", g->name);
        CHECKF(strncmp(g->arch, "sm_", 3) == 0, "%s", g->name);
        CHECKF(g->max_threads_sm == g->max_warps_sm * 32, "%s", g->name);
        CHECKF(g->copy_bytes_s < g->dram_bytes_s, "%s: ceilings lie below the datasheet", g->name);
        CHECKF(g->read_bytes_s < g->dram_bytes_s, "%s", g->name);
        CHECKF(g->write_bytes_s < g->dram_bytes_s, "%s", g->name);
        CHECKF(g->shared_block < g->shared_sm, "%s", g->name);
        CHECKF(g->fp32_flops <= 2.0 * g->sms * g->fp32_lanes_clk * g->clock_hz * 1.01, "%s",
               g->name);
        CHECKF(g->calibrated == !strcmp(g->name, "h200"),
               "%s: says so once the time model was held against it", g->name);
        for (size_t k = 0; k < i; k++)
            CHECKF(strcmp(gpu_at(k)->name, g->name) && strcmp(gpu_at(k)->title, g->title), "%s",
                   g->name);
    }
    CHECK(gpu_capability(gpu_find(S("h200"))) == 90 && gpu_capability(gpu_find(S("a100"))) == 80);
    CHECK(gpu_capability(&(struct gpu){.arch = "sm_120a"}) == 120);
    CHECK(gpu_capability(&(struct gpu){.arch = "none"}) == 0);
    CHECK(gpu_find(S("h2")) == NULL);
    CHECK(gpu_find(S("")) == NULL);
}

static void features_table(void) {
    static const struct {
        const char *gpu, *arch;
        struct gpu_features has;
        size_t shared_kib;
    } rows[] = {
#define MMA .cp_async = true, .mma = true
#define OLD .cluster_most = 1, .sum_bits = 24
#define NEW .mma_fp8 = true, .tma = true, .cluster_most = 8, .sum_bits = 25
        {"a100", "sm_80", {MMA, OLD}, 163},
        {"l40s", "sm_89", {MMA, OLD, .mma_fp8 = true}, 99},
        {"rtx4090", "sm_89", {MMA, OLD, .mma_fp8 = true}, 99},
        {"h100", "sm_90a", {MMA, NEW, .wgmma = true}, 227},
        {"h200", "sm_90a", {MMA, NEW, .wgmma = true}, 227},
        {"b200", "sm_100a", {MMA, NEW, .tcgen05 = true}, 227},
        {"rtx5090", "sm_120a", {MMA, NEW}, 99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpu *g = gpu_find(str_view(rows[i].gpu));
        const struct gpu_features *a = &rows[i].has;
        CHECKF(g && !strcmp(g->arch, rows[i].arch), "row %zu", i);
        if (!g)
            continue;
        CHECKF(g->has.cp_async == a->cp_async && g->has.mma == a->mma &&
                   g->has.mma_fp8 == a->mma_fp8 && g->has.tma == a->tma &&
                   g->has.wgmma == a->wgmma && g->has.tcgen05 == a->tcgen05 &&
                   g->has.cluster_most == a->cluster_most && g->has.sum_bits == a->sum_bits,
               "%s", g->name);
        CHECKF(g->shared_block == rows[i].shared_kib << 10, "%s", g->name);
        CHECKF((g->fp8_flops > 0) == g->has.mma_fp8 && g->int8_flops > g->bf16_flops, "%s",
               g->name);
    }
}

static void features_by_name(void) {
    struct gpu_features has;
    CHECK(arch_features(S("sm_90a"), &has) && has.wgmma && has.tma);
    CHECK(arch_features(S("sm_90"), &has) && !has.wgmma && has.tma && has.cluster_most == 8);
    CHECK(arch_features(S("sm_100"), &has) && !has.tcgen05 && !has.wgmma);
    CHECK(arch_features(S("sm_86"), &has) && has.mma && !has.tma);
    CHECK(!arch_features(S("sm_75"), &has) && !arch_features(S("sm_8"), &has));
    CHECK(!arch_features(S("sm_9000a"), &has) && !arch_features(S(""), &has));
    CHECK(arch_of(89)->capability == 89 && arch_of(88)->capability == 87);
    CHECK(arch_of(75) == NULL && arch_of(130) == NULL && arch_of(0) == NULL);
}

static void sources(void) {
    const struct gpu *h = gpu_find(S("h200")), *b = gpu_find(S("b200"));
    CHECK(!strcmp(gpu_source(h, S("bf16_flops")), "measured"));
    CHECK(!strcmp(gpu_source(b, S("bf16_flops")), "public"));
    CHECK(!strcmp(gpu_source(h, S("fp8_flops")), "public"));
    CHECK(!strcmp(gpu_source(b, S("copy_bytes_s")), "estimate"));
    CHECK(!strcmp(gpu_source(h, S("name")), ""));
    for (size_t i = 0; i < gpu_count(); i++)
        CHECKF(gpu_at(i) == h || !gpu_at(i)->measured, "%s", gpu_at(i)->name);
}

static void occupancy_table(void) {
    static const struct {
        const char *gpu;
        int threads, registers;
        size_t shared;
        int blocks, warps;
        const char *limiter;
    } cases[] = {
        {"h200", 256, 32, 0, 8, 64, "threads"},
        {"h200", 256, 33, 0, 6, 48, "registers"}, /* 33 * 32 rounds to 1280: 12 warps a partition */
        {"h200", 1024, 64, 0, 1, 32, "registers"},
        {"h200", 1024, 65, 0, 0, 0, "registers"},
        {"h200", 128, 255, 0, 2, 8, "registers"},
        {"h200", 128, 256, 0, 0, 0, "registers"},
        {"h200", 32, 16, 0, 32, 32, "blocks"},
        {"h200", 128, 32, 227 << 10, 1, 4, "shared memory"},
        {"h200", 128, 32, (227 << 10) + 1, 0, 0, "shared memory"},
        {"h200", 128, 32, 113 << 10, 2, 8, "shared memory"}, /* 113 + 1 KiB each: 228 */
        {"h200", 128, 32, (113 << 10) + 1, 1, 4, "shared memory"},
        {"h200", 1025, 32, 0, 0, 0, "threads"},
        {"h200", 0, 32, 0, 0, 0, "threads"},
        {"h200", 1, 32, 0, 32, 32, "blocks"},
        {"h200", 256, 0, 0, 8, 64, "threads"},
        {"rtx4090", 1024, 32, 0, 1, 32, "threads"},
        {"rtx4090", 256, 40, 0, 6, 48, "threads"},
        {"rtx4090", 32, 32, 0, 24, 24, "blocks"},
        {"a100", 256, 32, 163 << 10, 1, 8, "shared memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu *g = gpu_find(str_view(cases[i].gpu));
        struct occupancy o =
            gpu_occupancy(g, cases[i].threads, cases[i].registers, cases[i].shared);
        CHECKF(o.blocks_sm == cases[i].blocks, "row %zu: %d blocks", i, o.blocks_sm);
        CHECKF(o.warps_sm == cases[i].warps, "row %zu: %d warps", i, o.warps_sm);
        CHECKF(strcmp(o.limiter, cases[i].limiter) == 0, "row %zu: %s", i, o.limiter);
    }
}

static void roofline_mixes_read_and_write(void) {
    const struct gpu *g = gpu_find(S("h200"));
    struct roofline r = gpu_roofline(g, 2.13e12, 2.13e12, 0, g->fp32_flops);
    CHECK(fabs(r.limit_s - 1) < 1e-12 && r.memory_bound);
    r = gpu_roofline(g, 4.47e12, 0, 0, g->fp32_flops);
    CHECK(fabs(r.limit_s - 1) < 1e-12);
    r = gpu_roofline(g, 0, 4.68e12, 0, g->fp32_flops);
    CHECK(fabs(r.limit_s - 1) < 1e-12);
    r = gpu_roofline(g, 1e9, 1e9, 102e12, g->fp32_flops);
    CHECK(!r.memory_bound && fabs(r.limit_s - 2) < 1e-12);
    CHECK(fabs(r.intensity - 51e3) < 1e-6);
    r = gpu_roofline(g, 0, 0, 0, 0);
    CHECK(r.limit_s == 0 && r.intensity == 0);
}

static void limits(void) {
    static const struct {
        double limit_us, time_us;
        size_t launches;
        enum launch_share share;
    } rows[] = {{0.1, 2.8, 1, LAUNCHES_EXPLAIN},      {4.3, 6.6, 1, LAUNCHES_EXPLAIN},
                {4.3, 5.2, 1, LAUNCHES_HARDLY_COUNT}, {4.5, 9, 1, LAUNCHES_HARDLY_COUNT},
                {4.3, NAN, 1, LAUNCHES_HARDLY_COUNT}, {NAN, 5, 1, LAUNCHES_HARDLY_COUNT},
                {1, 7000, 1, LAUNCHES_ARE_LESS},      {1, 9, 1, LAUNCHES_ARE_LESS},
                {1, 9, 3, LAUNCHES_EXPLAIN}};
    const struct gpu *g = gpu_find(S("h200"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(gpu_launch_share(g, rows[i].limit_us * 1e-6, rows[i].time_us * 1e-6,
                                rows[i].launches) == rows[i].share,
               "row %zu", i);
    CHECK(strstr(gpu_limit_source(g, true), "this GPU"));
    CHECK(strstr(gpu_limit_source(g, false), "another GPU"));
    CHECK(strstr(gpu_limit_source(gpu_find(S("a100")), false), "published"));
}

static const struct tap_case cases[] = {
    {"limits: how small, and whose", limits},
    {"the table is consistent", table_is_consistent},
    {"features of the GPUs", features_table},
    {"features by the architecture's name", features_by_name},
    {"where values come from", sources},
    {"occupancy", occupancy_table},
    {"roofline mixes read and write", roofline_mixes_read_and_write},
};
TAP_CASES(cases)
