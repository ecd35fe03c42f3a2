/* Any PTX: parse, load, run small launches with a small budget, plain, with every check, as
 * clusters, cooperative. Nothing may crash, hang or touch memory that is not a buffer's. Seeds: the
 * fixtures in tests/sim/ptx. */
#include "sim/sim.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

static bool in_word(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '%' ||
           c == '_' || c == '$' || c == ':';
}

/* The word, or with `line` the line, around a place. */
static str around(const uint8_t *data, size_t n, size_t at, bool line) {
    size_t from = at, to = at;
    while (from > 0 && (line ? data[from - 1] != '\n' : in_word(data[from - 1])))
        from--;
    while (to < n && (line ? data[to] != '\n' : in_word(data[to])))
        to++;
    return (str){(const char *)data + from, to - from};
}

/* Bytes changed at random are rarely PTX: mostly, a word or a line takes the place of another. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    static uint8_t copy[1 << 16];
    if (seed % 4 == 0 || n < 16 || n > sizeof copy)
        return LLVMFuzzerMutate(data, n, max);
    bool line = seed % 4 == 1;
    uint64_t r = seed * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(copy, data, n);
    str old = around(copy, n, (size_t)(r >> 20) % n, line);
    str new = around(copy, n, (size_t)(r >> 40) % n, line);
    size_t at = (size_t)((const uint8_t *)old.p - copy), left = n - at - old.n;
    if (n - old.n + new.n > max)
        return n;
    memcpy(data + at, new.p, new.n);
    memcpy(data + at + new.n, copy + at + old.n, left);
    return n - old.n + new.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n > 64u << 10)
        return 0;
    struct arena *a = arena_new((size_t)1 << 30);
    struct sim_machine *m = sim_machine_new(0);
    struct ptx_module *module;
    struct err err;
    uint32_t x[256] = {1, 2, 3}, y[256] = {0};
    struct sim_buffer bx = {.name = S("x"), .host = x, .size = sizeof x, .read_only = true};
    struct sim_buffer by = {.name = S("y"), .host = y, .size = sizeof y};
    _Alignas(128) uint64_t params[64] = {sim_machine_add(m, &bx), sim_machine_add(m, &by), 64};
    for (size_t i = 3; i < 64; i++)
        params[i] = i % 2 ? params[1] : 5;
    struct tile_map map = {.global = params[1],
                           .rank = 2,
                           .type = TILE_MAP_F32,
                           .extent = {16, 16},
                           .stride = {4, 64},
                           .box = {8, 8},
                           .step = {1, 1}};
    if (n % 4 == 0) { /* some kernels take tensor maps */
        sim_tensormap(&map, params, &err);
        sim_tensormap(&map, params + 16, &err);
    }
    if (ptx_parse((str){(const char *)data, n}, a, &module, &err))
        for (size_t i = 0; i < module->nentries && i < 8; i++) {
            const struct ptx_entry *e = &module->entries[i];
            struct sim_program *p;
            struct sim_result r;
            if (!sim_load(module, e, a, &p, &err))
                continue;
            for (int kind = 0; kind < 3; kind++) {
                struct sim_findings findings;
                struct sim_launch l = {.program = p,
                                       .grid = {4, 1, 1},
                                       .block = {kind ? 128 : 40, 1, 1},
                                       .cluster = {kind == 2 ? 2 : 0, kind == 2, kind == 2},
                                       .dynamic_shared = 8192,
                                       .params = params,
                                       .threads = 1,
                                       .checks = kind ? SIM_CHECK_ALL : 0,
                                       .findings = &findings,
                                       .cooperative = kind == 2,
                                       .lines = a,
                                       .max_warp_instrs = 20000};
                for (l.params_size = 0; l.params_size <= sizeof params; l.params_size += 4) {
                    sim_run(m, &l, &r);
                    if (r.status != SIM_BAD_LAUNCH)
                        break;
                }
            }
        }
    sim_machine_free(m);
    arena_free(a);
    return 0;
}
