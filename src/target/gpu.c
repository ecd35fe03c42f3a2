/* The tables of gpu.def and arch.def, the occupancy rules that all its rows share, and roofline
 * arithmetic.
 *
 * Allocation granularities are those of compute capability 8.0 and later: registers go to warps in
 * units of 256 out of one of four partitions of the register file, shared memory to blocks in units
 * of 128 bytes with 1 KiB taken by the system for each block. */
#include "target/gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32,
    PARTITIONS = 4,
    REGISTER_UNIT = 256,
    REGISTERS_THREAD_MOST = 255,
    SHARED_UNIT = 128,
    SHARED_SYSTEM = 1024,
};

static const struct arch archs[] = {
#define ARCH(id, number, lanes, tf32, bf16, terms, fp8, halves)                                    \
    {.capability = number,                                                                         \
     .name = #id,                                                                                  \
     .has = HAS_##id,                                                                              \
     .fp32_lanes_clk = lanes,                                                                      \
     .tf32_flop_clk = tf32,                                                                        \
     .bf16_flop_clk = bf16,                                                                        \
     .sum_terms = terms,                                                                           \
     .fp8_sum_bits = fp8,                                                                          \
     .fp8_as_halves = halves},
#include "target/arch.def"
#undef ARCH
};

static const struct gpu table[] = {
#define GPU(id, ...) {.arch = #id, .has = HAS_##id, __VA_ARGS__},
#include "target/gpu.def"
#undef GPU
};

size_t gpu_count(void) {
    return sizeof table / sizeof *table;
}

const struct gpu *gpu_at(size_t i) {
    return i < gpu_count() ? &table[i] : NULL;
}

const struct gpu *gpu_find(str name) {
    for (size_t i = 0; i < gpu_count(); i++)
        if (str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

int gpu_capability(const struct gpu *g) {
    const char *digits = strpbrk(g->arch, "0123456789");
    long n = digits ? strtol(digits, NULL, 10) : 0;
    return n > 0 && n < 1000 ? (int)n : 0;
}

const struct arch *arch_of(int capability) {
    const struct arch *found = NULL;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (archs[i].capability / 10 == capability / 10 && archs[i].capability <= capability)
            found = &archs[i];
    return found;
}

bool arch_features(str name, struct gpu_features *out) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        str known = str_view(archs[i].name);
        bool suffix = str_ends(known, S("a")), whole = str_eq(name, known);
        if (!whole && !(suffix && str_eq(name, str_cut(known, 0, known.n - 1))))
            continue;
        *out = archs[i].has;
        out->wgmma &= whole;
        out->tcgen05 &= whole;
        return true;
    }
    return false;
}

static int blocks_by_registers(const struct gpu *g, int warps_block, int registers_thread) {
    if (registers_thread <= 0)
        return g->max_blocks_sm;
    if (registers_thread > REGISTERS_THREAD_MOST)
        return 0;
    int warp = (registers_thread * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    int warps = g->registers_sm / PARTITIONS / warp * PARTITIONS;
    return warps / warps_block;
}

static int blocks_by_shared(const struct gpu *g, size_t shared_block) {
    if (shared_block > g->shared_block)
        return 0;
    size_t block = (shared_block + SHARED_SYSTEM + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    return (int)(g->shared_sm / block);
}

struct occupancy gpu_occupancy(const struct gpu *g, int threads_block, int registers_thread,
                               size_t shared_block) {
    if (threads_block <= 0 || threads_block > g->max_threads_block)
        return (struct occupancy){0, 0, "threads"};
    int warps = (threads_block + WARP - 1) / WARP;
    const struct {
        int blocks;
        const char *name;
    } limits[] = {
        {g->max_warps_sm / warps, "threads"},
        {blocks_by_registers(g, warps, registers_thread), "registers"},
        {blocks_by_shared(g, shared_block), "shared memory"},
        {g->max_blocks_sm, "blocks"},
    };
    size_t least = 0;
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < limits[least].blocks)
            least = i;
    int blocks = limits[least].blocks;
    return (struct occupancy){blocks, blocks * warps, limits[least].name};
}

/* What is both read and written moves at the copy rate, the rest at the rate of its direction. */
static double memory_time(const struct gpu *g, double read_bytes, double write_bytes) {
    double both = read_bytes < write_bytes ? read_bytes : write_bytes;
    return 2 * both / g->copy_bytes_s + (read_bytes - both) / g->read_bytes_s +
           (write_bytes - both) / g->write_bytes_s;
}

struct roofline gpu_roofline(const struct gpu *g, double read_bytes, double write_bytes,
                             double flops, double flops_s) {
    struct roofline r = {0};
    double bytes = read_bytes + write_bytes;
    r.memory_s = memory_time(g, read_bytes, write_bytes);
    r.compute_s = flops > 0 && flops_s > 0 ? flops / flops_s : 0;
    r.memory_bound = r.memory_s >= r.compute_s;
    r.limit_s = r.memory_bound ? r.memory_s : r.compute_s;
    r.intensity = bytes > 0 ? flops / bytes : 0;
    return r;
}
