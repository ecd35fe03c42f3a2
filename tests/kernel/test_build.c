/* Builds with a real NVRTC in real compiler processes: this program is its own compiler. */
#include "tap.h"

#include "base/child.h"
#include "base/file.h"
#include "base/frame.h"
#include "fixture.h"
#include "kernel/compile.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

static struct arena *arena;
static struct loop *loop;
static struct nvrtc_root root;
static const char *missing; /* why there is no NVRTC here */
static char folder[] = "/tmp/test-kernel-build.XXXXXX";

#define GOOD                                                                                       \
    "extern \"C\" __global__ void relu(const float *x, float *y, int n) {\n"                       \
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"                                         \
    "    if (i < n) y[i] = fmaxf(x[i], 0.0f);\n"                                                   \
    "}\n"

/* Exponentially many instantiations: no end in sight. */
#define BOMB                                                                                       \
    "template <int A, int B> struct t { static constexpr int v = t<A - 1, 2 * B>::v + "            \
    "t<A - 1, 2 * B + 1>::v; };\n"                                                                 \
    "template <int B> struct t<0, B> { static constexpr int v = B; };\n"                           \
    "extern \"C\" __global__ void k(int *y) { *y = t<29, 0>::v; }\n"

/* Two seconds of honest work, told apart by a number. */
static str slow_unit(int number) {
    struct buf b;
    buf_init(&b, 1u << 20);
    buf_printf(&b, "extern \"C\" __global__ void k(float *y, float x) { // %d\n", number);
    for (int i = 0; i < 60; i++)
        buf_printf(&b, "if (x > %d.5f) x += sinf(x * %d.25f) * y[%d];\n", i, i + number, i);
    buf_puts(&b, S("*y = x; }\n"));
    str s = arena_str(arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static struct build_pool *pool_with(const char *cache, unsigned jobs, unsigned limit_ms) {
    struct err err = {0};
    struct build_pool_options o = {.jobs = jobs, .cache = cache, .limit_ms = limit_ms};
    struct build_pool *p = build_pool_new(loop, &root, &o, &err);
    CHECKF(p != NULL, "%s", err.text);
    return p;
}

static bool has(str s, const char *what) {
    return str_find(s, str_view(what)) < s.n;
}

static void compiles(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 0);
    struct fixture_build f = {.a = arena};
    CHECK(build_pool_root(p)->major >= 13);
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    CHECK(has(f.b.ptx, ".visible .entry relu(") && has(f.b.ptx, ".target sm_90a"));
    CHECK(f.b.ptx.n && f.b.ptx.p[f.b.ptx.n - 1] != 0);
    CHECK(str_starts(f.b.cubin, S("\177ELF")));
    CHECK(f.b.nkernels == 1 && str_is(f.b.kernels[0].name, "relu"));
    CHECK(f.b.nkernels && f.b.kernels[0].registers > 4 && !f.b.kernels[0].local_bytes);
    CHECK(!f.b.cached && f.b.wall_ms > 0);
    /* And again, on the same compiler. */
    CHECK(fixture_compile(loop, p, S(GOOD "\n"), false, &f) && f.b.verdict == VERDICT_ACCEPTED);
    build_pool_free(p);
}

/* A virtual architecture is not assembled. */
static void ptx_alone(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 0);
    struct fixture_build f = {.a = arena, .arch = "compute_90a"};
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    CHECK(has(f.b.ptx, ".visible .entry relu(") && !f.b.cubin.n && !f.b.nkernels);
    build_pool_free(p);
}

static void compile_errors(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 0);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p,
                          S("#include <cuda_fp16.h>\n\n__global__ void k() { return 1 +; }\n"
                            "__half h = __hadd(1);\n"),
                          false, &f));
    CHECK(f.b.verdict == VERDICT_COMPILE_ERROR);
    CHECKF(has(f.b.log, "kernel.cu(3): error"), "%.*s", STR_ARG(f.b.log));
    CHECKF(!has(f.b.log, root.include), "%.*s", STR_ARG(f.b.log));
    CHECK(f.b.ptx.n == 0 && f.b.cubin.n == 0 && f.b.nkernels == 0);
    /* An allowed name that does not exist is the author's mistake, no more. */
    CHECK(fixture_compile(loop, p, S("#include <cuda/std/nothing>\n"), false, &f));
    CHECKF(f.b.verdict == VERDICT_COMPILE_ERROR, "%.*s", STR_ARG(f.b.log));
    /* A flood of errors is cut. */
    struct buf b;
    buf_init(&b, 4u << 20);
    buf_puts(&b, S("#pragma nv_diag_error 177\n"));
    for (int i = 0; i < 20000; i++)
        buf_printf(&b, "#warning %d abcdefghijklmnopqrstuvwxyz\n", i);
    buf_puts(&b, S("int f( {\n"));
    CHECK(fixture_compile(loop, p, buf_str(&b), false, &f));
    CHECK(f.b.verdict == VERDICT_COMPILE_ERROR && f.b.log.n <= COMPILE_MAX_LOG + 100);
    buf_release(&b);
    build_pool_free(p);
}

static void forbidden(void) {
    static const struct {
        const char *unit, *named;
    } rows[] = {
        {"#include \"/etc/passwd\"\n", "\"/etc/passwd\": "},
        {"#include </etc/passwd>\n", "</etc/passwd>: "},
        {"#define H \"/etc/passwd\"\n#include H\n", "H: "},
        {"#include \"/proc/self/environ\"\n", "\"/proc/self/environ\": "},
        {"#include \"../../../../../../../etc/passwd\"\n", "../../etc/passwd\": "},
        {"#include \"meson.build\"\n", "\"meson.build\": "},
        {"#include <curand_kernel.h>\n", "<curand_kernel.h>: "},
        {"%:include \"/etc/passwd\"\n", "\"/etc/passwd\": "},
    };
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture_build f = {.a = arena};
        CHECK(fixture_compile(loop, p, str_view(rows[i].unit), false, &f));
        CHECKF(f.b.verdict == VERDICT_FORBIDDEN, "%s: %.*s", rows[i].unit, STR_ARG(f.b.log));
        CHECKF(has(f.b.log, rows[i].named), "%s: %.*s", rows[i].named, STR_ARG(f.b.log));
        CHECKF(has(f.b.log, "allowed:") && !has(f.b.log, "root:"), "%.*s", STR_ARG(f.b.log));
    }
    build_pool_free(p);
}

/* Past the textual check: what the sandbox lets a compiler open at all. */
static void sandboxed(void) {
    static const char *const units[] = {
        "#include \"/etc/passwd\"\n",
        "#include \"/proc/self/environ\"\n",
        "#include \"/etc/../etc/hostname\"\n",
    };
    if (missing)
        SKIP(missing);
    struct child child;
    struct err err = {0};
    struct frame f = {0};
    int fd = -1;
    CHECKF(compiler_start(&root, NULL, 0, &child, &fd, &err), "%s", err.text);
    int64_t landlock = 0;
    CHECK(frame_read(fd, 0, &f, &err) == 1 && f.type == FRAME_HELLO);
    json_get_i64(f.head, "landlock", &landlock);
    frame_release(&f);
    f = (struct frame){0};
    CHECK(frame_read(fd, 0, &f, &err) == 1 && f.type == FRAME_READY);
    frame_release(&f);
    for (size_t i = 0; landlock && i < sizeof units / sizeof *units; i++) {
        str log = S("");
        f = (struct frame){0};
        CHECK(frame_write(fd, FRAME_COMPILE, NULL, str_view(units[i]), NULL, 0, &err));
        CHECK(frame_read(fd, 0, &f, &err) == 1 && json_get_str(f.head, "log", &log));
        CHECKF(has(log, "cannot open source file") && !has(log, "root:") && !has(log, "LC_ALL"),
               "%s: %.*s", units[i], STR_ARG(log));
        frame_release(&f);
    }
    close(fd);
    child_kill(child.pid);
    child_wait(&child);
    if (!landlock)
        SKIP("this kernel has no Landlock");
}

static void time_limit(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 700);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p, S(BOMB), false, &f));
    CHECKF(f.b.verdict == VERDICT_COMPILE_LIMIT && has(f.b.log, "700 ms"), "%.*s",
           STR_ARG(f.b.log));
    /* The pool goes on with a new compiler. A busy machine may be late for good units too. */
    for (int i = 0; i < 30 && f.b.verdict == VERDICT_COMPILE_LIMIT; i++)
        CHECK(fixture_compile(loop, p, S(GOOD), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    build_pool_free(p);
}

static void memory_limit(void) {
    if (missing)
        SKIP(missing);
#ifdef UNDER_ASAN
    SKIP("address space cannot be limited under AddressSanitizer");
#endif
    struct err err = {0};
    struct build_pool_options o = {.jobs = 1, .limit_ms = 60000, .memory_bytes = 320u << 20};
    struct build_pool *p = build_pool_new(loop, &root, &o, &err);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    CHECK(fixture_compile(loop, p, S(BOMB), false, &f));
    CHECKF(f.b.verdict == VERDICT_COMPILE_LIMIT && has(f.b.log, "320 MiB"), "%.*s",
           STR_ARG(f.b.log));
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f) && f.b.verdict == VERDICT_ACCEPTED);
    build_pool_free(p);
}

/* Our only child. */
static pid_t compiler_pid(void) {
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static double processor_s(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct killing {
    int left;
    pid_t last;
};

/* A compiler that has worked this long has started, and is at the unit it was given. */
#define AT_WORK_S 0.35

static void kill_it(void *ctx) {
    struct killing *k = ctx;
    pid_t pid = compiler_pid();
    if (pid > 1 && pid != k->last && k->left > 0 && processor_s(pid) > AT_WORK_S) {
        k->left--;
        k->last = pid;
        kill(pid, SIGKILL);
    }
    if (k->left > 0)
        loop_timer(loop, 20, kill_it, k);
}

static void killed(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 1, 60000);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f));
    /* Once, in the middle of a compile: it is done again. */
    struct killing k = {.left = 1};
    loop_timer(loop, 100, kill_it, &k);
    CHECK(fixture_compile(loop, p, slow_unit(1), false, &f));
    CHECKF(k.left == 0 && f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    /* While idle: nobody notices. */
    pid_t idle = compiler_pid();
    CHECK(idle > 1 && kill(idle, SIGKILL) == 0);
    CHECK(fixture_compile(loop, p, S(GOOD "\n\n"), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    /* Eight times: enough. */
    k = (struct killing){.left = 8};
    loop_timer(loop, 100, kill_it, &k);
    CHECK(fixture_compile(loop, p, slow_unit(2), false, &f));
    CHECKF(f.b.verdict == VERDICT_COMPILE_LIMIT && has(f.b.log, "SIGKILL"), "%d %.*s", k.left,
           STR_ARG(f.b.log));
    k.left = 0;
    build_pool_free(p);
}

/* The one file of the cache. */
static str cache_file(const char *dir) {
    for (int i = 0; i < 256; i++) {
        str sub = arena_printf(arena, "%s/%02x", dir, i), *names;
        size_t n = 0;
        struct err none;
        if (file_exists(sub.p) && dir_list(sub.p, arena, &names, &n, &none) && n == 1)
            return arena_printf(arena, "%s/%.*s", sub.p, STR_ARG(names[0]));
    }
    return S("");
}

static void cached(void) {
    if (missing)
        SKIP(missing);
    str dir = arena_printf(arena, "%s/cache", folder);
    struct fixture_build first = {.a = arena}, again = {.a = arena};
    struct build_pool *p = pool_with(dir.p, 1, 0);
    CHECK(fixture_compile(loop, p, S(GOOD), false, &first) && !first.b.cached);
    build_pool_free(p);
    str file = cache_file(dir.p);
    CHECK(file.n > 0);

    p = pool_with(dir.p, 1, 0);
    CHECK(fixture_compile(loop, p, S(GOOD), false, &again) && again.b.cached);
    CHECK(compiler_pid() == 0); /* none was needed */
    CHECK(again.b.verdict == VERDICT_ACCEPTED && str_eq(first.b.ptx, again.b.ptx) &&
          str_eq(first.b.cubin, again.b.cubin) && again.b.nkernels == 1 &&
          str_is(again.b.kernels[0].name, "relu"));
    CHECK(memcmp(&first.b.key, &again.b.key, sizeof first.b.key) == 0);
    build_pool_free(p);

    /* Any byte changed, or the end missing: made again, and whole afterwards. */
    str whole;
    struct err err = {0};
    CHECK(file_read(file.p, 1u << 20, arena, &whole, &err));
    const size_t places[] = {0, 20, 40, whole.n / 2, whole.n - 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *bad = arena_cstr(arena, whole);
        size_t n = places[i] < whole.n ? whole.n : whole.n / 3;
        if (places[i] < whole.n)
            bad[places[i]] ^= 0x20;
        CHECK(file_replace(file.p, (str){bad, n}, &err));
        p = pool_with(dir.p, 1, 0);
        CHECK(fixture_compile(loop, p, S(GOOD), false, &again));
        CHECKF(!again.b.cached && again.b.verdict == VERDICT_ACCEPTED, "byte %zu", places[i]);
        CHECK(fixture_compile(loop, p, S(GOOD), false, &again) && again.b.cached);
        build_pool_free(p);
    }
}

static void cached_failures(void) {
    if (missing)
        SKIP(missing);
    str dir = arena_printf(arena, "%s/failures", folder);
    struct fixture_build f = {.a = arena};
    struct build_pool *p = pool_with(dir.p, 1, 700);
    CHECK(fixture_compile(loop, p, S("int f( {\n"), false, &f) && !f.b.cached);
    str log = f.b.log;
    CHECK(fixture_compile(loop, p, S("int f( {\n"), false, &f) && f.b.cached);
    CHECK(f.b.verdict == VERDICT_COMPILE_ERROR && str_eq(f.b.log, log) && log.n);
    CHECK(fixture_compile(loop, p, S(BOMB), false, &f) && !f.b.cached);
    CHECK(fixture_compile(loop, p, S(BOMB), false, &f) && !f.b.cached);
    CHECK(f.b.verdict == VERDICT_COMPILE_LIMIT);
    build_pool_free(p);
    /* A folder that cannot be made costs nothing but time. */
    p = pool_with("/proc/no/such/folder", 1, 0);
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f) && f.b.verdict == VERDICT_ACCEPTED);
    build_pool_free(p);
}

static void coalesced(void) {
    if (missing)
        SKIP(missing);
    struct build_pool *p = pool_with(NULL, 2, 0);
    struct fixture_build f[6];
    struct err err = {0};
    for (size_t i = 0; i < 6; i++) {
        f[i] = (struct fixture_build){.a = arena};
        struct build_request r = {
            .unit = i < 4 ? S(GOOD "// one") : S(GOOD "// two"), .arch = "sm_90a", .fmad = true};
        CHECK(build_submit(p, &r, fixture_done, &f[i], &err));
        CHECK(f[i].calls == 0); /* never from inside */
    }
    int done = 0;
    while (done < 6 && loop_step(loop, 10000, &err)) {
        done = 0;
        for (size_t i = 0; i < 6; i++)
            done += f[i].calls;
    }
    for (size_t i = 0; i < 6; i++)
        CHECKF(f[i].calls == 1 && f[i].b.verdict == VERDICT_ACCEPTED, "%zu", i);
    /* One compile, so the same bytes in the same place. */
    CHECK(f[0].ptx_seen == f[3].ptx_seen && f[4].ptx_seen == f[5].ptx_seen);
    CHECK(f[0].ptx_seen != f[4].ptx_seen);
    build_pool_free(p);
}

struct freeing {
    struct build_pool *p;
    int calls;
};

static void free_inside(void *ctx, const struct build *b) {
    struct freeing *f = ctx;
    (void)b;
    f->calls++;
    build_pool_free(f->p);
}

static void freed_inside(void) {
    if (missing)
        SKIP(missing);
    struct freeing f = {.p = pool_with(NULL, 1, 0)};
    struct err err = {0};
    struct build_request r = {.unit = S(GOOD), .arch = "sm_90a"};
    CHECK(build_submit(f.p, &r, free_inside, &f, &err));
    CHECK(build_submit(f.p, &r, free_inside, &f, &err));
    while (!f.calls && loop_step(loop, 10000, &err))
        ;
    for (int i = 0; i < 3; i++)
        loop_step(loop, 10, &err);
    CHECK(f.calls == 1);
    /* And with everything open. */
    struct build_pool *p = pool_with(NULL, 1, 0);
    CHECK(build_submit(p, &r, free_inside, &f, &err));
    build_pool_free(p);
    CHECK(compiler_pid() == 0);
}

static void no_compiler(void) {
    struct err err = {0};
    struct nvrtc_root known = {.library = "/nowhere", .include = "/nowhere", .major = 13};
    struct build_pool_options o = {.jobs = 2, .program = "/nonexistent/cutepilot"};
    struct build_pool *p = build_pool_new(loop, &known, &o, &err);
    struct fixture_build f = {.a = arena};
    struct build_request r = {.unit = S(GOOD), .arch = "sm_90a"};
    CHECK(p && !build_submit(p, &r, fixture_done, &f, &err));
    CHECKF(strstr(err.text, "/nonexistent/cutepilot"), "%s", err.text);
    CHECK(!build_submit(p, &r, fixture_done, &f, &err));
    build_pool_free(p);
    /* One that starts and cannot go on. */
    o.program = NULL;
    p = build_pool_new(loop, &known, &o, &err);
    CHECK(p && fixture_compile(loop, p, S(GOOD), false, &f));
    CHECKF(f.b.no_compiler && has(f.b.log, "no compiler could be started"), "%.*s",
           STR_ARG(f.b.log));
    build_pool_free(p);
}

static void not_found(void) {
    struct err err = {0};
    struct nvrtc_root r;
    char *before = getenv("CUTEPILOT_CUDA");
    before = before ? arena_cstr(arena, str_view(before)) : NULL;
    setenv("CUTEPILOT_CUDA", "/nonexistent/cuda", 1);
    CHECK(!nvrtc_find(&r, &err) && err.kind == ERR_ENV);
    CHECKF(strstr(err.text, "/nonexistent/cuda") && strstr(err.text, "tools/setup build"), "%s",
           err.text);
    /* There, but older than what we need. */
    const char *fake = getenv("FAKE_NVRTC");
    str kit = arena_printf(arena, "%s/old", folder);
    if (fake) {
        CHECK(dir_make(arena_printf(arena, "%s/lib64", kit.p).p, &err));
        CHECK(dir_make(arena_printf(arena, "%s/include", kit.p).p, &err));
        CHECK(file_replace(arena_printf(arena, "%s/include/cuda_fp16.h", kit.p).p, S("\n"), &err));
        CHECK(symlink(fake, arena_printf(arena, "%s/lib64/libnvrtc.so.11.2", kit.p).p) == 0);
        setenv("CUTEPILOT_CUDA", kit.p, 1);
        CHECKF(nvrtc_find(&r, &err), "%s", err.text);
        CHECK(strcmp(r.origin, "CUTEPILOT_CUDA") == 0);
        CHECK(!nvrtc_probe(&r, &err));
        CHECKF(strstr(err.text, "NVRTC 11.8 at /tmp/test-kernel-build.") &&
                   strstr(err.text, "older than 13.0"),
               "%s", err.text);
        struct build_pool_options o = {.jobs = 1};
        CHECK(!build_pool_new(loop, &r, &o, &err));
    }
    if (before)
        setenv("CUTEPILOT_CUDA", before, 1);
    else
        unsetenv("CUTEPILOT_CUDA");
    if (!fake)
        SKIP("FAKE_NVRTC is not set");
}

#define CUTE_KERNEL                                                                                \
    "#include <cute/tensor.hpp>\n"                                                                 \
    "extern \"C\" __global__ void k(const cutlass::half_t *x, float *y, int n) {\n"                \
    "    using namespace cute;\n"                                                                  \
    "    auto t = make_tensor(make_gmem_ptr(x), make_layout(make_shape(n)));\n"                    \
    "    if (threadIdx.x < n) y[threadIdx.x] = float(t(threadIdx.x));\n"                           \
    "}\n"

static void cute(void) {
    if (missing)
        SKIP(missing);
    if (!root.cutlass[0])
        SKIP("no CUTLASS headers: run tools/setup build");
    struct build_pool *p = pool_with(NULL, 1, 120000);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p, S(CUTE_KERNEL), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    build_pool_free(p);
    /* Without the headers it is this kernel's failure, others compile; it is said what to do. */
    struct nvrtc_root without = root;
    struct err err = {0};
    struct build_pool_options o = {.jobs = 1};
    without.cutlass[0] = 0;
    p = build_pool_new(loop, &without, &o, &err);
    CHECK(fixture_compile(loop, p, S(CUTE_KERNEL), false, &f));
    CHECKF(!f.b.no_compiler && f.b.verdict == VERDICT_COMPILE_ERROR &&
               has(f.b.log, "tools/setup build"),
           "%.*s", STR_ARG(f.b.log));
    CHECK(fixture_compile(loop, p, S(GOOD), false, &f) && f.b.verdict == VERDICT_ACCEPTED);
    build_pool_free(p);
}

static const struct tap_case cases[] = {
    {"compiles", compiles},
    {"PTX alone", ptx_alone},
    {"compile errors", compile_errors},
    {"forbidden includes", forbidden},
    {"the sandbox opens header roots only", sandboxed},
    {"the clock ends a template bomb", time_limit},
    {"the memory limit ends one too", memory_limit},
    {"a compiler is killed", killed},
    {"the cache answers, whole or not at all", cached},
    {"which failures are cached", cached_failures},
    {"equal requests are one compile", coalesced},
    {"the pool is freed in a callback", freed_inside},
    {"no compiler can be started", no_compiler},
    {"no NVRTC, or an old one", not_found},
    {"CuTe", cute},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    struct err err = {0};
    arena = arena_new((size_t)1 << 30);
    loop = loop_new(&err);
    if (!loop || !mkdtemp(folder)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    missing = fixture_nvrtc(&root);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(folder, &err);
    loop_free(loop);
    arena_free(arena);
    return failed;
}
