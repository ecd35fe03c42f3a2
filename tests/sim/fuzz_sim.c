/* Any PTX: parse, load, run one small launch with a small budget. Nothing may crash, hang or touch
 * memory that is not a buffer's. Seeds: the fixtures in tests/sim/ptx. */
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
    uint64_t params[64] = {sim_machine_add(m, &bx), sim_machine_add(m, &by), 64};
    for (size_t i = 3; i < 64; i++)
        params[i] = i % 2 ? params[1] : 5;
    if (ptx_parse((str){(const char *)data, n}, a, &module, &err))
        for (size_t i = 0; i < module->nentries && i < 8; i++) {
            const struct ptx_entry *e = &module->entries[i];
            struct sim_program *p;
            struct sim_result r;
            if (!sim_load(module, e, a, &p, &err))
                continue;
            struct sim_launch l = {.program = p,
                                   .grid = {2, 1, 1},
                                   .block = {40, 1, 1},
                                   .dynamic_shared = 512,
                                   .params = params,
                                   .threads = 1,
                                   .max_warp_instrs = 20000};
            for (l.params_size = 0; l.params_size <= sizeof params; l.params_size += 4) {
                sim_run(m, &l, &r);
                if (r.status != SIM_BAD_LAUNCH)
                    break;
            }
        }
    sim_machine_free(m);
    arena_free(a);
    return 0;
}
