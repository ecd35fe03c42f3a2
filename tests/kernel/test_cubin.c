/* The facts of a cubin: against ptxas -v where there is one, and broken files. */
#include "tap.h"

#include "base/file.h"
#include "fixture.h"
#include "kernel/compile.h"
#include "kernel/cubin.h"
#include <unistd.h>

static struct arena *arena;
static struct loop *loop;
static struct build_pool *pool;
static struct nvrtc_root root;
static const char *missing;

#define KERNELS                                                                                    \
    "extern \"C\" __global__ void plain(float *y) { *y = 1; }\n"                                   \
    "extern \"C\" __global__ void shared(const float *x, float *y, int n) {\n"                     \
    "    __shared__ float s[64]; extern __shared__ float d[];\n"                                   \
    "    s[threadIdx.x % 64] = x[n]; d[threadIdx.x] = x[0]; __syncthreads();\n"                    \
    "    y[threadIdx.x] = s[n % 64] + d[n]; }\n"                                                   \
    "extern \"C\" __global__ void dynamic(float *y, int n) {\n"                                    \
    "    extern __shared__ float d[]; d[n] = 1; __syncthreads(); *y = d[0]; }\n"                   \
    "extern \"C\" __global__ void local(const float *x, float *y, int n) {\n"                      \
    "    float l[100]; for (int k = 0; k < 100; k++) l[k] = x[k]; *y = l[n % 100]; }\n"            \
    "extern \"C\" __global__ void __launch_bounds__(1024, 2) tight(const float *x, float *y) {\n"  \
    "    float v[64]; for (int k = 0; k < 64; k++) v[k] = x[threadIdx.x * 64 + k];\n"              \
    "    __syncthreads(); float s = 0; for (int k = 0; k < 64; k++) s = s * v[63 - k] + v[k];\n"   \
    "    y[threadIdx.x] = s; }\n"                                                                  \
    "__device__ __noinline__ float far(float x) { return sinf(x); }\n"                             \
    "extern \"C\" __global__ void calls(float *y) { *y = far(*y); }\n"

static bool build(const char *arch, struct fixture_build *f) {
    struct err err = {0};
    struct build_request r = {.unit = S(KERNELS), .arch = arch, .fmad = true};
    *f = (struct fixture_build){.a = arena};
    if (!build_submit(pool, &r, fixture_done, f, &err))
        return false;
    while (!f->calls && loop_step(loop, 10000, &err))
        ;
    CHECKF(f->b.verdict == VERDICT_ACCEPTED, "%s: %.*s", arch, STR_ARG(f->b.log));
    return f->b.verdict == VERDICT_ACCEPTED;
}

static const struct kernel_facts *find(const struct build *b, str name) {
    for (size_t i = 0; i < b->nkernels; i++)
        if (str_eq(b->kernels[i].name, name))
            return &b->kernels[i];
    return NULL;
}

static void facts(void) {
    if (missing)
        SKIP(missing);
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a"};
    for (size_t i = 0; i < 3; i++) {
        struct fixture_build f;
        if (!build(archs[i], &f))
            continue;
        CHECKF(f.b.nkernels == 6, "%zu kernels", f.b.nkernels);
        const struct kernel_facts *plain = find(&f.b, S("plain")),
                                  *shared = find(&f.b, S("shared"));
        const struct kernel_facts *dynamic = find(&f.b, S("dynamic")),
                                  *local = find(&f.b, S("local"));
        const struct kernel_facts *tight = find(&f.b, S("tight"));
        CHECK(plain && !plain->shared_static && !plain->local_bytes && plain->registers > 0);
        CHECKF(shared && shared->shared_static == 256, "%s: %zu", archs[i],
               shared ? shared->shared_static : 0);
        CHECK(dynamic && dynamic->shared_static == 0);
        CHECK(local && local->local_bytes == 400 && local->shared_static == 0);
        CHECK(tight && tight->registers <= 32 && tight->local_bytes > 0);
        CHECK(tight && tight->max_threads == 1024 && plain && plain->max_threads == 0);
        CHECK(tight && tight->spill_store_bytes > 0 && tight->spill_load_bytes > 0);
        CHECK(local && local->spill_store_bytes == 0 && local->spill_load_bytes == 0);
        CHECKF(f.b.log.n == 0, "%.*s", STR_ARG(f.b.log)); /* statistics are no message */
        CHECK(!find(&f.b, S("far")));
    }
}

/* One kernel's lines of ptxas -v. */
struct said {
    int registers, shared, stack;
};

static bool ptxas_says(str log, str kernel, struct said *out) {
    str mark = arena_printf(arena, "Compiling entry function '%.*s'", STR_ARG(kernel));
    size_t at = str_find(log, mark);
    str part = str_from(log, at + (at < log.n ? mark.n : 0));
    part = str_cut(part, 0, str_find(part, S("Compiling entry")));
    char *text = arena_cstr(arena, part), *p;
    *out = (struct said){0};
    if ((p = strstr(text, "Used ")))
        out->registers = (int)strtol(p + 5, NULL, 10);
    if ((p = strstr(text, " bytes smem"))) {
        while (p[-1] >= '0' && p[-1] <= '9')
            p--;
        out->shared = (int)strtol(p, NULL, 10);
    }
    if ((p = strstr(text, " bytes cumulative stack")) || (p = strstr(text, " bytes stack frame"))) {
        while (p[-1] >= '0' && p[-1] <= '9')
            p--;
        out->stack = (int)strtol(p, NULL, 10);
    }
    return at < log.n && out->registers > 0;
}

static void compare_with_ptxas(const char *ptxas, const char *arch) {
    struct fixture_build f;
    if (!build(arch, &f))
        return;
    char folder[] = "/tmp/test-kernel-cubin.XXXXXX", command[1500], path[64];
    struct err err = {0};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/k.ptx", folder);
    CHECK(file_replace(path, f.b.ptx, &err));
    snprintf(command, sizeof command, "%s -v -arch=%s %s -o %s/k.cubin 2>&1", ptxas, arch, path,
             folder);
    FILE *pipe = popen(command, "r");
    char log[16384] = "";
    size_t n = pipe ? fread(log, 1, sizeof log - 1, pipe) : 0;
    if (pipe)
        pclose(pipe);
    dir_remove_tree(folder, &err);
    for (size_t i = 0; i < f.b.nkernels; i++) {
        const struct kernel_facts *k = &f.b.kernels[i];
        struct said s;
        CHECKF(ptxas_says((str){log, n}, k->name, &s), "%.*s: %s", STR_ARG(k->name), log);
        CHECKF(s.registers == k->registers && (size_t)s.shared == k->shared_static &&
                   (size_t)s.stack == k->local_bytes,
               "%s %.*s: ptxas says %d %d %d, the cubin %d %zu %zu", arch, STR_ARG(k->name),
               s.registers, s.shared, s.stack, k->registers, k->shared_static, k->local_bytes);
    }
}

static void against_ptxas(void) {
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};
    if (missing)
        SKIP(missing);
    char ptxas[600];
    snprintf(ptxas, sizeof ptxas, "%s/../bin/ptxas", root.include);
    if (access(ptxas, X_OK) != 0)
        SKIP("no ptxas beside NVRTC");
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        compare_with_ptxas(ptxas, archs[i]);
}

static void spills_in_a_log(void) {
    struct kernel_facts k[] = {{.name = S("a"), .spill_store_bytes = -1, .spill_load_bytes = -1},
                               {.name = S("b"), .spill_store_bytes = -1, .spill_load_bytes = -1}};
    str left = ptxas_log_take(
        S("kernel.cu(3): warning #177-D: variable was declared but never referenced\n"
          "ptxas info    : 296 bytes gmem, 32 bytes cmem[3]\n"
          "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
          "ptxas info    : Function properties for b\n"
          "ptxas         .     48 bytes stack frame, 52 bytes spill stores, 60 bytes spill loads\n"
          "ptxas info    : Used 32 registers, used 1 barriers, 48 bytes cumulative stack size\n"
          "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions\n"
          "ptxas info    : Function properties for elsewhere\n"
          "ptxas         .     0 bytes stack frame, 7 bytes spill stores, 7 bytes spill loads\n"
          "ptxas info    : Compile time = 9.499 ms"),
        arena, k, 2);
    CHECK(k[0].spill_store_bytes == -1 && k[1].spill_store_bytes == 52);
    CHECK(k[1].spill_load_bytes == 60);
    CHECKF(str_is(left, "kernel.cu(3): warning #177-D: variable was declared but never referenced\n"
                        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
                        "instructions\n"),
           "%.*s", STR_ARG(left));
    CHECK(ptxas_log_take(S(""), arena, k, 2).n == 0);
    left = ptxas_log_take(S("ptxas         .     1 bytes stack frame, 2 bytes spill stores\n"),
                          arena, k, 2); /* of nobody */
    CHECK(left.n > 0 && k[1].spill_store_bytes == 52);
}

static void occupancies(void) {
    const struct gpu *g = gpu_find(S("h200"));
    struct bound_launch l = {.block = {256, 1, 1}, .shared = 100 << 10};
    struct kernel_facts k = {.registers = 64, .shared_static = 1024};
    struct occupancy o = launch_occupancy(g, &k, &l);
    CHECKF(o.blocks_sm == 2 && o.warps_sm == 16 && !strcmp(o.limiter, "shared memory"), "%d %s",
           o.blocks_sm, o.limiter);
    l.shared = 0;
    o = launch_occupancy(g, &k, &l);
    CHECKF(o.blocks_sm == 4 && !strcmp(o.limiter, "registers"), "%d %s", o.blocks_sm, o.limiter);
    CHECK(launch_occupancy(g, NULL, &l).blocks_sm == 8);
}

/* The sine's table is the only variable there. */
static void variables(void) {
    if (missing)
        SKIP(missing);
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};
    for (size_t i = 0; i < 4; i++) {
        struct fixture_build f;
        struct cubin_variable *v;
        size_t n = 0;
        struct err err = {0};
        if (!build(archs[i], &f))
            continue;
        CHECKF(cubin_variables(f.b.cubin, arena, &v, &n, &err), "%s", err.text);
        CHECKF(n == 1 && str_is(v[0].name, "__cudart_i2opi_f") && v[0].size == 24, "%zu", n);
        CHECK(n == 1 && v[0].init && v[0].init[0] == 0x41 && v[0].writable && !v[0].used_by_code);
    }
}

static void broken(void) {
    struct kernel_facts *facts_out;
    struct cubin_variable *vars;
    size_t n;
    struct err err = {0};
    CHECK(!cubin_facts(S(""), arena, &facts_out, &n, &err) && strstr(err.text, "ELF header"));
    char zeros[64] = "";
    CHECK(!cubin_facts((str){zeros, 64}, arena, &facts_out, &n, &err));
    if (missing)
        SKIP(missing);
    struct fixture_build f;
    if (!build("sm_90a", &f))
        return;
    /* Cut anywhere, and with any byte of the headers changed: an answer or an error, no more. */
    size_t failed = 0;
    for (size_t cut = 0; cut < f.b.cubin.n; cut += 97) {
        char *copy = mem_alloc(cut + 1);
        memcpy(copy, f.b.cubin.p, cut);
        failed += !cubin_facts((str){copy, cut}, arena, &facts_out, &n, &err);
        cubin_variables((str){copy, cut}, arena, &vars, &n, &err);
        mem_free(copy);
    }
    CHECK(failed > 0);
    char *copy = arena_cstr(arena, f.b.cubin);
    for (size_t i = 0; i < f.b.cubin.n; i += i < 2048 ? 1 : 13)
        for (int bit = 0; bit < 8; bit += 7) {
            copy[i] ^= (char)(1 << bit);
            cubin_facts((str){copy, f.b.cubin.n}, arena, &facts_out, &n, &err);
            cubin_variables((str){copy, f.b.cubin.n}, arena, &vars, &n, &err);
            copy[i] ^= (char)(1 << bit);
        }
    CHECK(cubin_facts((str){copy, f.b.cubin.n}, arena, &facts_out, &n, &err) && n == 6);
}

static const struct tap_case cases[] = {
    {"registers, shared and local memory", facts}, {"the same as ptxas says", against_ptxas},
    {"spills in a log", spills_in_a_log},          {"occupancy of a launch", occupancies},
    {"variables of the module", variables},        {"broken files", broken},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    struct err err = {0};
    struct build_pool_options o = {.jobs = 1};
    arena = arena_new((size_t)1 << 30);
    loop = loop_new(&err);
    missing = fixture_nvrtc(&root);
    if (!missing)
        pool = build_pool_new(loop, &root, &o, &err);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    build_pool_free(pool);
    loop_free(loop);
    arena_free(arena);
    return failed;
}
