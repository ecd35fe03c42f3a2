/* An engine for the oracle on the simulator: its kernels, compiled by NVRTC, from one module, its
 * memory here. */
#ifndef TESTS_EVAL_ORACLE_BENCH_H
#define TESTS_EVAL_ORACLE_BENCH_H

#include "tap.h"

#include "eval/oracle_run.h"
#include "kernel/build.h"
#include "kernel/oracle.h"
#include "ptx/ptx.h"
#include "sim/sim.h"
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 4096, KERNELS = 128 };

struct bench {
    struct sim_machine *machine;
    struct arena *a;
    struct ptx_module *module;
    struct {
        const struct ptx_entry *entry;
        struct sim_program *program;
    } kernels[KERNELS];
    size_t nkernels;
    struct {
        uint64_t at;
        char *host;
        size_t size;
    } buffers[BUFFERS];
    size_t nbuffers;
    size_t launches, fail_at; /* fail_at: the launch that fails; 0: none */
    size_t block_launches;    /* of kernels whose threads make several results */
    size_t sort_launches;     /* of those that sort the terms of reductions by index */
};

static inline bool bench_alloc(void *ctx, size_t bytes, uint64_t *address, struct err *err) {
    struct bench *b = ctx;
    if (b->nbuffers == BUFFERS)
        return err_set(err, ERR_ENV, "too many buffers");
    char *host = mem_alloc(bytes + 1);
    struct sim_buffer buffer = {.name = S("oracle"), .host = host, .size = bytes};
    *address = sim_machine_add(b->machine, &buffer);
    b->buffers[b->nbuffers].at = *address;
    b->buffers[b->nbuffers].host = host;
    b->buffers[b->nbuffers++].size = bytes;
    return true;
}

/* The simulator forgets buffers all at once. */
static inline void bench_free(void *ctx, uint64_t address) {
    (void)ctx;
    (void)address;
}

static inline char *bench_host(struct bench *b, uint64_t address, size_t bytes) {
    for (size_t i = 0; i < b->nbuffers; i++)
        if (address >= b->buffers[i].at && address - b->buffers[i].at <= b->buffers[i].size &&
            bytes <= b->buffers[i].size - (address - b->buffers[i].at))
            return b->buffers[i].host + (address - b->buffers[i].at);
    return NULL;
}

static inline struct sim_program *bench_program(struct bench *b, const char *kernel,
                                                struct err *err) {
    const struct ptx_entry *e = ptx_find_entry(b->module, str_view(kernel));
    if (!e || b->nkernels == KERNELS) {
        err_set(err, ERR_ENV, "no kernel %s", kernel);
        return NULL;
    }
    for (size_t i = 0; i < b->nkernels; i++)
        if (b->kernels[i].entry == e)
            return b->kernels[i].program;
    b->kernels[b->nkernels].entry = e;
    if (!sim_load(b->module, e, b->a, &b->kernels[b->nkernels].program, err))
        return NULL;
    return b->kernels[b->nkernels++].program;
}

static inline bool bench_launch(void *ctx, const char *kernel, const uint32_t grid[3],
                                uint32_t block, const void *params, size_t bytes, struct err *err) {
    struct bench *b = ctx;
    struct sim_program *program = bench_program(b, kernel, err);
    struct sim_result result;
    b->block_launches += strncmp(kernel, "oracle_block", 12) == 0;
    b->sort_launches += strncmp(kernel, "oracle_sort", 11) == 0;
    if (++b->launches == b->fail_at)
        return err_set(err, ERR_ENV, "the engine fails");
    if (!program)
        return false;
    struct sim_launch launch = {.program = program,
                                .grid = {grid[0], grid[1], grid[2]},
                                .block = {block, 1, 1},
                                .params = params,
                                .params_size = bytes,
                                .threads = 2,
                                .max_warp_instrs = UINT64_C(1) << 40};
    sim_run(b->machine, &launch, &result);
    return result.status == SIM_OK || err_set(err, ERR_ENV, "%s", result.fault.text);
}

static inline bool bench_fetch(void *ctx, void *dst, uint64_t src, size_t bytes, struct err *err) {
    char *host = bench_host(ctx, src, bytes);
    if (!host)
        return err_set(err, ERR_ENV, "fetch from nowhere");
    memcpy(dst, host, bytes);
    return true;
}

static inline bool bench_send(void *ctx, uint64_t dst, const void *src, size_t bytes,
                              struct err *err) {
    char *host = bench_host(ctx, dst, bytes);
    if (!host)
        return err_set(err, ERR_ENV, "send to nowhere");
    memcpy(host, src, bytes);
    return true;
}

static inline bool bench_zero(void *ctx, uint64_t dst, size_t bytes, struct err *err) {
    char *host = bench_host(ctx, dst, bytes);
    if (!host)
        return err_set(err, ERR_ENV, "zero nowhere");
    memset(host, 0, bytes);
    return true;
}

static inline struct engine engine_of(struct bench *b) {
    return (struct engine){
        b, bench_alloc, bench_free, bench_launch, bench_fetch, bench_send, bench_zero, 1 << 17, 1};
}

static inline void bench_forget(struct bench *b) {
    sim_machine_clear(b->machine);
    for (size_t i = 0; i < b->nbuffers; i++)
        mem_free(b->buffers[i].host);
    b->nbuffers = 0;
}

static inline void bench_free_all(struct bench *b) {
    bench_forget(b);
    sim_machine_free(b->machine);
    arena_free(b->a);
    mem_free(b);
}

/* ---- compiling ---- */

static struct loop *loop;
static struct build_pool *pool;
static const char *missing; /* why there is no NVRTC here */
static char why_missing[512];

struct built {
    struct arena *a;
    bool done, ok;
    str ptx, log;
    double ms;
};

static inline void build_done(void *ctx, const struct build *b) {
    struct built *out = ctx;
    out->done = true;
    out->ok = b->verdict == VERDICT_ACCEPTED;
    out->ptx = arena_str(out->a, b->ptx);
    out->log = arena_str(out->a, b->log);
    out->ms = b->wall_ms;
}

static inline struct bench *bench_new(const struct task *t) {
    struct bench *b = mem_alloc(sizeof *b);
    struct err err = {0};
    struct buf unit;
    b->machine = sim_machine_new(7);
    b->a = arena_new((size_t)1 << 30);
    buf_init(&unit, ORACLE_MAX_UNIT);
    struct built built = {.a = b->a};
    bool ok = oracle_unit(t, &unit, &err);
    CHECKF(ok, "%s", err.text);
    struct build_request r = {.unit = buf_str(&unit), .arch = "compute_90a"};
    ok = ok && build_submit(pool, &r, build_done, &built, &err);
    while (ok && !built.done)
        ok = loop_step(loop, 1000, &err);
    CHECKF(built.ok, "%.*s: %s%.*s", STR_ARG(t->name), err.text, STR_ARG(built.log));
    ok = built.ok && ptx_parse(built.ptx, b->a, &b->module, &err);
    CHECKF(ok || !built.ok, "%s", err.text);
    if (getenv("CUTEPILOT_TEST_TIMES"))
        printf("# %.*s: %zu bytes of PTX in %.0f ms\n", STR_ARG(t->name), built.ptx.n, built.ms);
    buf_release(&unit);
    if (ok)
        return b;
    bench_free_all(b);
    return NULL;
}

static inline void compiling_start(void) {
    static struct nvrtc_root found;
    struct err err = {0};
    struct build_pool_options o = {.jobs = 1, .limit_ms = 180000}; /* instrumented, or busy */
    loop = loop_new(&err);
    if (!nvrtc_find(&found, &err) || !nvrtc_probe(&found, &err)) {
        snprintf(why_missing, sizeof why_missing, "%.400s", err.text);
        for (char *p = why_missing; *p; p++)
            *p = *p == '\n' ? ' ' : *p;
        missing = why_missing;
        return;
    }
    pool = build_pool_new(loop, &found, &o, &err);
    if (!pool)
        missing = "no compiler can be started";
}

static inline void compiling_end(void) {
    if (pool)
        build_pool_free(pool);
    loop_free(loop);
}

#endif
