/* Any PTX: parse, load, run small launches with a small budget, plain, with every check, as
 * clusters, cooperative. Nothing may crash, hang or touch memory that is not a buffer's. Seeds: the
 * fixtures in tests/sim/ptx. */
#include "sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
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
