/* The simulator's speed: products per second of three matrix kernels, with counters and with all
 * checks, and how long a kernel that waits for ever takes to be told. Results are compared with a
 * plain product first; a number without a right result is not printed.
 *
 *     bench-sim [threads [kernel [counted|checked]]]   (default: 2, all), from the root
 *     of the repository
 *
 * The speed on so many cores is that of the CPU time all threads took, best of the runs: it is what
 * the clock shows where nobody else runs, and does not change where others do. Beside it stand the
 * clock's own figure and the goal. A launch with checks runs on one core. */
#include "base/file.h"
#include "sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 256 };

static double read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint16_t half_of(int v) { /* -7 to 7 */
    if (!v)
        return 0;
    int m = abs(v), e = 31 - __builtin_clz((unsigned)m);
    return (uint16_t)((v < 0) << 15 | (e + 15) << 10 | (m << (10 - e) & 0x3ff));
}

static int value(int i, int salt) {
    return (int)(((uint32_t)i * 2654435761u + (uint32_t)salt) >> 13) % 8 - 3;
}

struct bench {
    struct arena *arena;
    struct ptx_module *module;
    struct sim_machine *machine;
    float *a, *b, *c;
    uint16_t *ha, *hb, *ht; /* ht: B transposed */
    uint64_t at_a, at_b, at_c, at_ha, at_hb, at_ht;
    unsigned threads;
};

static uint64_t add(struct bench *b, const char *name, void *p, size_t bytes, bool input) {
    struct sim_buffer buffer = {
        .name = str_view(name), .host = p, .size = bytes, .read_only = input};
    return sim_machine_add(b->machine, &buffer);
}

static void fill(struct bench *b) {
    size_t n = (size_t)SIZE * SIZE;
    b->a = arena_array(b->arena, float, n);
    b->b = arena_array(b->arena, float, n);
    b->c = arena_array(b->arena, float, n);
    b->ha = arena_array(b->arena, uint16_t, n);
    b->hb = arena_array(b->arena, uint16_t, n);
    b->ht = arena_array(b->arena, uint16_t, n);
    for (int i = 0; i < SIZE * SIZE; i++) {
        b->a[i] = (float)value(i, 1);
        b->b[i] = (float)value(i, 77);
        b->ha[i] = half_of(value(i, 1));
        b->hb[i] = half_of(value(i, 77));
        b->ht[i % SIZE * SIZE + i / SIZE] = b->hb[i];
    }
    b->at_a = add(b, "a", b->a, 4 * n, true);
    b->at_b = add(b, "b", b->b, 4 * n, true);
    b->at_c = add(b, "c", b->c, 4 * n, false);
    b->at_ha = add(b, "a", b->ha, 2 * n, true);
    b->at_hb = add(b, "b", b->hb, 2 * n, true);
    b->at_ht = add(b, "b", b->ht, 2 * n, true);
}

static bool right(const struct bench *b) {
    for (int i = 0; i < SIZE; i += 7)
        for (int j = 0; j < SIZE; j += 5) {
            double sum = 0;
            for (int k = 0; k < SIZE; k++)
                sum += (double)b->a[i * SIZE + k] * (double)b->b[k * SIZE + j];
            if (!(fabs(sum - (double)b->c[i * SIZE + j]) <= 1e-3)) {
                printf("  wrong at %d %d: %g, not %g\n", i, j, (double)b->c[i * SIZE + j], sum);
                return false;
            }
        }
    return true;
}

struct kernel {
    const char *name;
    uint32_t grid[3], block;
    void (*params)(const struct bench *, uint8_t *, size_t *);
    double goal; /* GFMA/s on two cores, with counters */
};
#define CHECKED_GOAL 0.4 /* with all checks */

static void put(uint8_t *to, size_t *n, const void *from, size_t bytes) {
    memcpy(to + *n, from, bytes);
    *n += bytes;
}

static void sizes(uint8_t *to, size_t *n) {
    const int32_t v[3] = {SIZE, SIZE, SIZE};
    put(to, n, v, sizeof v);
}

static void plain_params(const struct bench *b, uint8_t *to, size_t *n) {
    const uint64_t p[3] = {b->at_a, b->at_b, b->at_c};
    put(to, n, p, sizeof p);
    sizes(to, n);
}

static void half_params(const struct bench *b, uint8_t *to, size_t *n) {
    const uint64_t p[3] = {b->at_ha, b->at_hb, b->at_c};
    put(to, n, p, sizeof p);
    sizes(to, n);
}

static void map(uint64_t at, uint32_t rows, uint8_t *to) {
    struct tile_map m = {.global = at,
                         .rank = 2,
                         .type = TILE_MAP_F16,
                         .extent = {SIZE, SIZE},
                         .stride = {2, 2 * SIZE},
                         .box = {64, rows},
                         .step = {1, 1},
                         .swizzle = 128};
    struct err err;
    if (!sim_tensormap(&m, to, &err))
        printf("  %s\n", err.text);
}

static void tensor_params(const struct bench *b, uint8_t *to, size_t *n) {
    map(b->at_ha, 64, to);
    map(b->at_ht, 128, to + TILE_MAP_BYTES);
    *n = (size_t)2 * TILE_MAP_BYTES;
    put(to, n, &b->at_c, 8);
    sizes(to, n);
}

static const struct kernel kernels[] = {
    {"sgemm", {SIZE / 64, SIZE / 64, 1}, 128, plain_params, 3},
    {"hgemm", {SIZE / 64, SIZE / 64, 1}, 128, half_params, 4},
    {"tgemm", {SIZE / 128, SIZE / 64, 1}, 160, tensor_params, 4},
};

static struct sim_program *load(struct bench *b, const char *name) {
    struct sim_program *p = NULL;
    struct err err;
    const struct ptx_entry *e = ptx_find_entry(b->module, str_view(name));
    if (!e || !sim_load(b->module, e, b->arena, &p, &err))
        printf("%s: %s\n", name, e ? err.text : "not in kernels.ptx");
    return p;
}

static void run_kernel(struct bench *b, const struct kernel *k, unsigned checks) {
    static struct sim_findings findings;
    _Alignas(64) uint8_t params[512];
    size_t n = 0;
    struct sim_program *p = load(b, k->name);
    if (!p)
        return;
    k->params(b, params, &n);
    struct sim_launch l = {.program = p,
                           .block = {k->block, 1, 1},
                           .params = params,
                           .params_size = n,
                           .threads = b->threads,
                           .checks = checks,
                           .findings = &findings};
    memcpy(l.grid, k->grid, sizeof l.grid);
    double best = 1e30, best_cpu = 1e30;
    struct sim_result r = {.status = SIM_OK};
    for (int i = 0; i < 12 && r.status == SIM_OK; i++) {
        memset(b->c, 0xff, sizeof(float) * SIZE * SIZE);
        double t = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        sim_run(b->machine, &l, &r);
        t = read_clock(CLOCK_MONOTONIC) - t;
        cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        best = t < best ? t : best;
        best_cpu = cpu < best_cpu ? cpu : best_cpu;
    }
    if (r.status != SIM_OK || !right(b)) {
        printf("%-6s failed: %s\n", k->name, r.fault.text);
        return;
    }
    double products = (double)SIZE * SIZE * SIZE * 1e-9;
    unsigned cores = checks ? 1 : b->threads;
    double speed = products / best_cpu * cores;
    double goal = checks ? CHECKED_GOAL : k->goal * (double)b->threads / 2;
    printf("%-6s %-8s %5.2f GFMA/s on %u core%s (goal %.1f%s), %5.2f by the clock, %.1f ms; "
           "%llu warp instructions, %zu findings\n",
           k->name, checks ? "checked" : "counted", speed, cores, cores > 1 ? "s" : "", goal,
           speed >= goal ? "" : ", not reached", products / best, best * 1e3,
           (unsigned long long)r.counters.warp_instrs, checks ? findings.n : 0);
}

static void run_spin(struct bench *b) {
    struct sim_program *p = load(b, "spin");
    uint64_t at = b->at_c;
    if (!p)
        return;
    memset(b->c, 0, 4);
    struct sim_launch l = {.program = p,
                           .grid = {1024, 1, 1},
                           .block = {256, 1, 1},
                           .params = &at,
                           .params_size = 8,
                           .threads = b->threads};
    struct sim_result r;
    double t = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    sim_run(b->machine, &l, &r);
    printf("spin   verdict after %.2f s (%.2f of a core): %s\n", read_clock(CLOCK_MONOTONIC) - t,
           read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu, r.fault.text);
}

int main(int argc, char **argv) {
    struct bench b = {.threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2};
    const char *root = getenv("SOURCE_ROOT");
    struct err err;
    str text;
    b.arena = arena_new((size_t)1 << 30);
    b.machine = sim_machine_new(0);
    str path = arena_printf(b.arena, "%s/bench/sim/kernels.ptx", root ? root : ".");
    if (!file_read(path.p, 16u << 20, b.arena, &text, &err) ||
        !ptx_parse(text, b.arena, &b.module, &err)) {
        fprintf(stderr, "bench-sim: %s\n", err.text);
        return 3;
    }
    fill(&b);
    const char *only = argc > 2 ? argv[2] : NULL;
    for (int checks = 0; checks < 2; checks++)
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
            if ((!only || !strcmp(only, kernels[i].name)) &&
                (argc < 4 || !strcmp(argv[3], checks ? "checked" : "counted")))
                run_kernel(&b, &kernels[i], checks ? SIM_CHECK_ALL : 0);
    if (!only || !strcmp(only, "spin"))
        run_spin(&b);
    sim_machine_free(b.machine);
    arena_free(b.arena);
    return 0;
}
