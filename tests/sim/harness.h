/* What the tests of the simulator share: fixtures by name, buffers, a launch in one call.
 * Everything lives in one arena and machine per case. */
#ifndef TESTS_SIM_HARNESS_H
#define TESTS_SIM_HARNESS_H

#include "base/file.h"
#include "sim/sim.h"

#include <stdlib.h>

struct harness {
    struct arena *arena;
    struct sim_machine *machine;
    struct ptx_module *module;
    struct sim_program *program;
    struct err err;
};

static inline str harness_text(struct arena *a, const char *folder, const char *name) {
    const char *root = getenv("SOURCE_ROOT");
    struct err err = {0};
    str path = arena_printf(a, "%s/tests/%s/%s", root ? root : ".", folder, name), text = {0};
    if (!file_read(path.p, 1u << 20, a, &text, &err))
        printf("# %s\n", err.text);
    return text;
}

static inline bool harness_load_text(struct harness *h, str text, const char *kernel) {
    *h = (struct harness){.arena = arena_new(256u << 20), .machine = sim_machine_new(0)};
    if (!ptx_parse(text, h->arena, &h->module, &h->err))
        return false;
    const struct ptx_entry *e = ptx_find_entry(h->module, str_view(kernel));
    return e && sim_load(h->module, e, h->arena, &h->program, &h->err);
}

static inline bool harness_load(struct harness *h, const char *file, const char *kernel) {
    struct arena *a = arena_new(8u << 20);
    bool ok = harness_load_text(h, harness_text(a, "sim/ptx", file), kernel);
    if (!ok)
        printf("# %s: %s\n", file, h->err.text);
    arena_free(a);
    return ok;
}

static inline void harness_free(struct harness *h) {
    sim_machine_free(h->machine);
    arena_free(h->arena);
}

static inline uint64_t harness_buffer(struct harness *h, const char *name, void *host, size_t size,
                                      bool read_only) {
    struct sim_buffer b = {
        .name = str_view(name), .host = host, .size = size, .read_only = read_only};
    return sim_machine_add(h->machine, &b);
}

static inline struct sim_result harness_run(struct harness *h, uint32_t grid, uint32_t block,
                                            const void *params, size_t n) {
    struct sim_launch l = {.program = h->program,
                           .grid = {grid, 1, 1},
                           .block = {block, 1, 1},
                           .params = params,
                           .params_size = n,
                           .threads = 1};
    struct sim_result r;
    sim_run(h->machine, &l, &r);
    return r;
}

/* Of the kernels that take (x, y, int, …). */
struct params_xyn {
    uint64_t x, y;
    int32_t n, m;
};
#define PARAMS_XYN  20
#define PARAMS_XYNM 24

/* A kernel around some PTX, for what no compiler emits; %rd1 is the address of its one buffer. */
static inline str harness_kernel(struct arena *a, const char *body) {
    return arena_printf(a,
                        ".version 8.0\n.target sm_90a\n.address_size 64\n"
                        ".visible .entry k(.param .u64 p) {\n"
                        ".reg .pred %%p<4>; .reg .b16 %%h<4>; .reg .b32 %%r<9>; .reg .f32 %%f<9>;\n"
                        ".reg .b64 %%rd<9>; .reg .f64 %%d<4>;\n"
                        "ld.param.u64 %%rd1, [p];\n%s\nret;\n}\n",
                        body);
}

#endif
