/* From source to verdict with a real compiler: the unit's type checks, and the checks on the PTX.
 * And the layout of arguments, which needs no compiler. */
#include "tap.h"

#include "fixture.h"
#include "kernel/inspect.h"

static struct arena *arena;
static struct loop *loop;
static struct build_pool *pool;
static const char *missing;

#define TYPES_TASK                                                                                 \
    "task types \"One tensor of each type\"\n"                                                     \
    "dim N = 64\n"                                                                                 \
    "in a[N] : f64 ~ uniform(0,1)\n"                                                               \
    "in h[N] : f16 ~ uniform(0,1)\n"                                                               \
    "in b[N] : bf16 ~ uniform(0,1)\n"                                                              \
    "in i[N] : i32 ~ randint(0,9)\n"                                                               \
    "in l[N] : i64 ~ randint(0,9)\n"                                                               \
    "in c[N] : i8 ~ randint(0,9)\n"                                                                \
    "in u[N] : u8 ~ randint(0,9)\n"                                                                \
    "in f[N] : f32 ~ uniform(0,1)\n"                                                               \
    "out y[N] : f32\n"                                                                             \
    "y[k] = f[k]\n"

#define K "//! launch k<<<1, 32>>>(x, y, N)\nextern \"C\" __global__ void k"

struct row {
    const char *source;
    enum verdict is;
    const char *says;
};

static bool compile(const struct task *t, const char *source, struct candidate **c,
                    struct fixture_build *f) {
    struct err err = {0};
    struct buf unit;
    *c = fixture_candidate(t, source, arena, &err);
    CHECKF(*c != NULL, "%s", err.text);
    if (!*c)
        return false;
    buf_init(&unit, 2u << 20);
    CHECK(candidate_unit(*c, &unit, &err));
    *f = (struct fixture_build){.a = arena};
    CHECK(fixture_compile(loop, pool, buf_str(&unit), false, f));
    buf_release(&unit);
    return true;
}

/* Unit, build, parse, inspect; the text is whatever explains the verdict. */
static enum verdict judge(const struct task *t, const char *source, str *text) {
    struct err err = {0};
    struct candidate *c;
    struct fixture_build f;
    if (!compile(t, source, &c, &f))
        return VERDICT_COUNT;
    *text = f.b.log;
    if (f.b.verdict != VERDICT_ACCEPTED)
        return f.b.verdict;
    struct ptx_module *m;
    bool parsed = ptx_parse(f.b.ptx, arena, &m, &err);
    CHECKF(parsed, "%s", err.text);
    if (!parsed)
        return VERDICT_COUNT;
    enum verdict v = ptx_inspect(c, m, &err);
    if (v == VERDICT_ACCEPTED)
        v = inspect_cubin(f.b.cubin, f.b.ptx, arena, &err);
    *text = arena_str(arena, str_view(err.text));
    return v;
}

/* What the compiled code alone tells. */
static enum verdict judge_code(const struct task *t, const char *source, str *text) {
    struct err err = {0};
    struct candidate *c;
    struct fixture_build f;
    if (!compile(t, source, &c, &f))
        return VERDICT_COUNT;
    *text = f.b.log;
    if (f.b.verdict != VERDICT_ACCEPTED)
        return f.b.verdict;
    enum verdict v = inspect_cubin(f.b.cubin, f.b.ptx, arena, &err);
    *text = arena_str(arena, str_view(err.text));
    return v;
}

typedef enum verdict judge_fn(const struct task *t, const char *source, str *text);

static void judge_rows_by(judge_fn *by, const char *task, const struct row *rows, size_t n) {
    if (missing)
        SKIP(missing);
    const struct task *t = fixture_task(task, arena);
    for (size_t i = 0; i < n; i++) {
        str text = S("");
        enum verdict v = by(t, rows[i].source, &text);
        CHECKF(v == rows[i].is, "%s\n# got %s: %.*s", rows[i].source,
               v < VERDICT_COUNT ? verdict_name(v) : "nothing", STR_ARG(text));
        CHECKF(str_find(text, str_view(rows[i].says)) < text.n || !*rows[i].says, "%s\n# says %.*s",
               rows[i].source, STR_ARG(text));
    }
}

static void judge_rows(const char *task, const struct row *rows, size_t n) {
    judge_rows_by(judge, task, rows, n);
}

#define CALLED(name)                                                                               \
    "//! launch " name "<<<1, 32>>>(x, y, N)\nextern \"C\" __global__ void " name                  \
    "(const float4 *x, float4 *y, int n) { y[0] = x[0]; }"

static void type_checks(void) {
    static const struct row rows[] = {
        {K "(const float *x, float *y, int n) { y[0] = x[0]; }", VERDICT_ACCEPTED, ""},
        {K "(float *x, float *y, long n) { y[0] = x[0]; }", VERDICT_ACCEPTED, ""},
        {K "(const float *__restrict__ x, float *__restrict__ y, const int n) { y[0] = x[0]; }",
         VERDICT_ACCEPTED, ""},
        {K "(const float4 *x, float2 *y, size_t n) { y[0].x = x[0].x; }", VERDICT_ACCEPTED, ""},
        {K "(const void *x, void *y, unsigned n) { *(int *)y = 0; }", VERDICT_ACCEPTED, ""},
        {K "(const float *x, float *y, int64_t n) { y[0] = INFINITY; }", VERDICT_ACCEPTED, ""},
        {K "(const volatile float *x, volatile float *y, int n) { y[0] = x[0]; }", VERDICT_ACCEPTED,
         ""},
        {K "(volatile float *x, volatile void *y, int n) { *(float *)y = x[0]; }", VERDICT_ACCEPTED,
         ""},
        {K "(const float *x, const volatile float *y, int n) {}", VERDICT_COMPILE_ERROR,
         "kernel k, argument 2 (y): expected a non-const pointer to float"},
        {K "(const volatile double *x, float *y, int n) {}", VERDICT_COMPILE_ERROR,
         "kernel k, argument 1 (x): expected a pointer to float"},
        {K "(const float *x, float *y, int n) { y[0] = x[0]; }\n#define volatile nothing\n",
         VERDICT_ACCEPTED, ""},
        {K "(const float *x, float *y, short n) {}", VERDICT_COMPILE_ERROR,
         "kernel.cu(1): error: static assertion failed with \"kernel k, argument 3 (N): expected "
         "an "
         "integer type of 4 or 8 bytes\""},
        {K "(const float *x, float *y, float n) {}", VERDICT_COMPILE_ERROR, "argument 3 (N)"},
        {K "(const float *x, float *y, int *n) {}", VERDICT_COMPILE_ERROR, "argument 3 (N)"},
        {K "(const float *x, const float *y, int n) {}", VERDICT_COMPILE_ERROR,
         "kernel k, argument 2 (y): expected a non-const pointer to float"},
        {K "(const double *x, float *y, int n) {}", VERDICT_COMPILE_ERROR,
         "kernel k, argument 1 (x): expected a pointer to float, a vector of it, or void"},
        {K "(float x, float *y, int n) {}", VERDICT_COMPILE_ERROR, "argument 1 (x)"},
        {K "(const float *x, float *y) {}", VERDICT_COMPILE_ERROR,
         "kernel k: the plan passes 3 arguments, the kernel takes another number"},
        /* A kernel that is missing is said to be, and nothing about its arguments. */
        {"//! launch k<<<1, 32>>>(x, y, N)\n", VERDICT_COMPILE_ERROR,
         "kernel.cu(1): error: the global scope has no \"k\""},
        {"//! launch k<<<1, 32>>>(x, y, N)\n", VERDICT_COMPILE_ERROR, "1 error detected"},
        {"//! launch z<<<1, 32>>>()\n" K "(const float *x, float *y, int n) {}",
         VERDICT_COMPILE_ERROR, "1 error detected"},
        {"//! launch k<<<1, 32>>>(x, y, N)\n__global__ void k(float *x);\n"
         "__global__ void k(float *x, float *y);\n",
         VERDICT_COMPILE_ERROR, "several functions have this name"},
        /* A step may read what an earlier one wrote. */
        {"//! launch k<<<1, 32>>>(y)\n//! launch r<<<1, 32>>>(y, N)\n"
         "extern \"C\" __global__ void k(float *y) { *y = 1; }\n"
         "extern \"C\" __global__ void r(const float *y, int n) {}",
         VERDICT_ACCEPTED, ""},
        /* Names of the checks themselves. */
        {CALLED("element"), VERDICT_ACCEPTED, ""},
        {CALLED("f32"), VERDICT_ACCEPTED, ""},
        {CALLED("integer"), VERDICT_ACCEPTED, ""},
        {CALLED("reads"), VERDICT_ACCEPTED, ""},
        {CALLED("argument"), VERDICT_ACCEPTED, ""},
        {CALLED("mismatch"), VERDICT_ACCEPTED, ""},
        {CALLED("matches"), VERDICT_ACCEPTED, ""},
        {CALLED("pick_0"), VERDICT_ACCEPTED, ""},
        {CALLED("of_0"), VERDICT_ACCEPTED, ""},
        /* Macros and overloads of the same name. */
        {"__device__ float k(float x) { return x; }\n" K
         "(const float *x, float *y, int n) { y[0] = k(x[0]); }\n#define k(x) nonsense\n"
         "#define static_assert(...)\n#define T double\n#define F (\n#define matches\n",
         VERDICT_ACCEPTED, ""},
        {K "(const float *x, float *y, short n) {}\n#define static_assert(...)\n"
           "#define argument nothing\n",
         VERDICT_COMPILE_ERROR, ""},
    };
    judge_rows(FIXTURE_TASK, rows, sizeof rows / sizeof *rows);
}

static void element_types(void) {
#define ALL "//! launch k<<<1, 32>>>(a, h, b, i, l, c, u, f, y)\nextern \"C\" __global__ void k"
    static const struct row rows[] = {
        {"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" ALL
         "(const double *a, const __half *h, const __nv_bfloat16 *b, const int *i, const long long "
         "*l, const signed char *c, const unsigned char *u, const float *f, float *y) { y[0] = 1; "
         "}",
         VERDICT_ACCEPTED, ""},
        {"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" ALL
         "(const double2 *a, const half2 *h, const __nv_bfloat162 *b, const int4 *i, const int64_t "
         "*l, const char4 *c, const uchar4 *u, const float4 *f, float3 *y) { y[0].x = 1; }",
         VERDICT_ACCEPTED, ""},
        {ALL "(void *a, void *h, void *b, void *i, void *l, void *c, void *u, void *f, void *y) {}",
         VERDICT_ACCEPTED, ""},
        {"#include <cuda_fp16.h>\n" ALL "(void *a, void *h, const __half *b, void *i, void *l, "
         "void *c, void *u, void *f, void *y) {}",
         VERDICT_COMPILE_ERROR, "argument 3 (b): expected a pointer to __nv_bfloat16"},
        {ALL "(void *a, float *h, void *b, float *i, int *l, int *c, int *u, void *f, void *y) {}",
         VERDICT_COMPILE_ERROR, "argument 2 (h): expected a pointer to __half"},
    };
    judge_rows(TYPES_TASK, rows, sizeof rows / sizeof *rows);
}

static void prelude(void) {
    static const struct row rows[] = {
        {"#include <cuda/std/cmath>\n#include <cuda/std/cstdint>\n#include <cuda/std/limits>\n"
         "#include <cooperative_groups.h>\n" K
         "(const float *x, float *y, int n) { y[0] = INFINITY + NAN + FLT_MAX + INT_MAX + M_PI; }",
         VERDICT_ACCEPTED, ""},
        {K "(const float *x, float *y, int n) { constexpr float lowest = -INFINITY; constexpr "
           "uint64_t most = UINT64_MAX; y[0] = lowest + NAN + FLT_MIN + FLT_EPSILON + INT_MIN + "
           "(most > SIZE_MAX) + (float)M_SQRT1_2 + UINT32_MAX + INT64_MIN; }",
         VERDICT_ACCEPTED, ""},
    };
    judge_rows(FIXTURE_TASK, rows, sizeof rows / sizeof *rows);
}

#define BODY "(const float *x, float *y, int n) "
/* libdevice's own table, to the bit. */
#define TABLE                                                                                      \
    "__device__ unsigned __cudart_i2opi_f[6] = {0x3c439041u, 0xdb629599u, 0xf534ddc0u, "           \
    "0xfc2757d1u, 0x4e441529u, 0xa2f9836eu};\n"

static void ptx_checks(void) {
    static const struct row rows[] = {
        {"//! launch k<<<1, 32>>>(x, y, N)\n__global__ void k" BODY "{ *y = 1; }", VERDICT_BAD_PLAN,
         "kernel 'k' not found in the PTX under this name: it has C++ linkage"},
        {"//! launch k<<<1, 32>>>(x, y, N)\n#define k other\nextern \"C\" __global__ void k" BODY
         "{ *y = 1; }",
         VERDICT_BAD_PLAN, "declare it extern \"C\" __global__"},
        {"__device__ int calls;\n" K BODY "{ if (++calls == 1) *y = 1; }", VERDICT_FORBIDDEN,
         "'calls'"},
        {"__device__ float kept[64];\n" K BODY "{ kept[n] = *x; }", VERDICT_FORBIDDEN, "'kept'"},
        {"__device__ float kept[64];\n" K BODY
         "{ asm volatile(\"st.global.f32 [kept], 0f00000000;\""
         "); *y = kept[3]; }",
         VERDICT_FORBIDDEN, "'kept'"},
        {K BODY "{ static int calls; if (++calls == 1) *y = 1; }", VERDICT_FORBIDDEN,
         "__constant__"},
        {"__constant__ float table[4] = {1, 2, 3, 4};\n" K BODY "{ *y = table[n & 3]; }",
         VERDICT_ACCEPTED, ""},
        {"__device__ const float one = 1;\n" K BODY "{ *y = one; }", VERDICT_ACCEPTED, ""},
        /* Tables that the library's functions index, and what only has their names. */
        {K BODY "{ *y = sinf(*x) + cosf(*x) + tanf(*x); }", VERDICT_ACCEPTED, ""},
        {K BODY "{ double d = *x; *y = sin(d) + cos(d) + tan(d); }", VERDICT_ACCEPTED, ""},
        {"__device__ int __cudart_x[6] = {1};\n" K BODY "{ __cudart_x[n] = *x; }",
         VERDICT_FORBIDDEN, "'__cudart_x'"},
        {"__device__ int __cudart_i2opi_f[6];\n" K BODY "{ __cudart_i2opi_f[n] = *x; }",
         VERDICT_FORBIDDEN, "'__cudart_i2opi_f'"},
        {"__device__ int __cudart_i2opi_f[7] = {1};\n" K BODY "{ __cudart_i2opi_f[n] = *x; }",
         VERDICT_FORBIDDEN, "'__cudart_i2opi_f'"},
        {"__device__ int __cudart_i2opi_f[6] = {1, 2};\n" K BODY "{ __cudart_i2opi_f[n] = *x; }",
         VERDICT_FORBIDDEN, "file scope: '__cudart_i2opi_f'"},
        {"__device__ int __cudart_i2opi_f[6] = {1, 2};\n" K BODY "{ *y = __cudart_i2opi_f[n]; }",
         VERDICT_FORBIDDEN, "file scope: '__cudart_i2opi_f'"},
        {"__device__ float scale = 2;\n" K BODY "{ *y = scale; }", VERDICT_FORBIDDEN, "'scale'"},
        {TABLE K BODY "{ __cudart_i2opi_f[n] = *x; }", VERDICT_FORBIDDEN,
         "may only be read: '__cudart_i2opi_f'"},
        {TABLE K BODY "{ atomicAdd(&__cudart_i2opi_f[n], 1); *y = 1; }", VERDICT_FORBIDDEN,
         "may only be read"},
        {TABLE K BODY "{ *(unsigned **)y = __cudart_i2opi_f; }", VERDICT_FORBIDDEN,
         "may only be read"},
        {TABLE K BODY "{ asm volatile(\"st.global.u32 [__cudart_i2opi_f+4], 7;\"); *y = 1; }",
         VERDICT_FORBIDDEN, "may only be read"},
        {TABLE K BODY
         "{ unsigned long long p; asm volatile(\"mov.u64 %0, __cudart_i2opi_f; and.b64 %0, %0, "
         "-8;\" : \"=l\"(p)); *(int *)p = n; }",
         VERDICT_FORBIDDEN, "may only be read"},
        {"__device__ __noinline__ void put(unsigned *p, int v) { *p = v; }\n" TABLE K BODY
         "{ put(&__cudart_i2opi_f[n], 3); *y = 1; }",
         VERDICT_FORBIDDEN, "may only be read"},
        {TABLE K BODY "{ *y = __cudart_i2opi_f[n]; }", VERDICT_ACCEPTED, ""},
        /* Constants have an address too. */
        {"__constant__ float table[4] = {1, 2, 3, 4};\n" K BODY
         "{ asm volatile(\"{ .reg .u64 p; mov.u64 p, table; cvta.const.u64 p, p; st.u32 [p+4], 7; "
         "}\"); *y = table[n]; }",
         VERDICT_FORBIDDEN, "may only be read"},
        {"__constant__ float table[64] = {1, 2, 3, 4};\n__constant__ float other[64] = {1};\n" K
             BODY "{ const float *p = n > 4 ? table : other; float s = 0;\n"
         "for (int i = 0; i < n; i++) s += p[i] * table[i & 63]; *y = s; }",
         VERDICT_ACCEPTED, ""},
        {"__constant__ float table[64] = {1};\n" K BODY
         "{ float s = 0; for (const float *p = table; p != table + n; p++) s = s * 2 + *p; *y = s; "
         "}",
         VERDICT_ACCEPTED, ""},
        {K BODY "{ printf(\"%d\", n); }", VERDICT_FORBIDDEN, "printf"},
        {K BODY "{ float *p = (float *)malloc(n); *y = (long)p; }", VERDICT_FORBIDDEN, "malloc"},
        {K BODY "{ extern __shared__ float s[]; s[threadIdx.x] = *x; __syncthreads(); *y = s[n]; }",
         VERDICT_ACCEPTED, ""},
        {"extern \"C\" __device__ float elsewhere(float);\n" K BODY "{ *y = elsewhere(*x); }",
         VERDICT_COMPILE_ERROR, ""},
    };
    judge_rows(FIXTURE_TASK, rows, sizeof rows / sizeof *rows);
}

/* Whatever the PTX is taken to say. */
static void code_checks(void) {
#define ASM(text)                                                                                  \
    K BODY "{ unsigned long long p; asm volatile(" text " : \"=l\"(p)); *(int *)p = n; }"
    static const struct row rows[] = {
        {K BODY "{ *y = *x; }", VERDICT_ACCEPTED, ""},
        {"extern \"C\" __device__ int kept[4] = {1};\n" K BODY "{ kept[n] = *x; }",
         VERDICT_FORBIDDEN, "'kept', 16 bytes"},
        {"extern \"C\" __device__ int kept;\n" K BODY "{ kept++; }", VERDICT_FORBIDDEN, "'kept'"},
        {"extern \"C\" __device__ int kept[4];\n" K BODY "{ *y = kept[n]; }", VERDICT_FORBIDDEN,
         "'kept'"},
        {K BODY "{ static int calls; if (++calls == 1) *y = 1; }", VERDICT_FORBIDDEN, "calls"},
        {"extern \"C\" __device__ int kept[4];\n" ASM(
             "\"{ .shared .b32 kept; } mov.u64 %0, kept;\""),
         VERDICT_FORBIDDEN, "'kept'"},
        {"extern \"C\" __device__ int kept[4];\n" ASM("\"{ mov.u64 %0, kept; kept: }\""),
         VERDICT_FORBIDDEN, "'kept'"},
        {ASM("\"{ .global .b32 kept[4]; mov.u64 %0, kept; }\""), VERDICT_FORBIDDEN, "kept"},
        {ASM("\"{ .global .b32 kept[4] = {1}; cvta.global.u64 %0, kept; }\""), VERDICT_FORBIDDEN,
         "kept"},
        {"__managed__ int kept;\n" K BODY "{ kept++; }", VERDICT_FORBIDDEN, "kept"},
        /* Without a user; constants; the mathematics' own tables, and what only has their name. */
        {"extern \"C\" __device__ int unused[4] = {1};\n" K BODY "{ *y = *x; }", VERDICT_ACCEPTED,
         ""},
        {"__constant__ float table[4] = {1, 2, 3, 4};\n" K BODY "{ *y = table[n & 3]; }",
         VERDICT_ACCEPTED, ""},
        {K BODY "{ double d = *x; *y = sin(d) + tan(d) + cosf(*x); }", VERDICT_ACCEPTED, ""},
        {TABLE K BODY "{ *y = __cudart_i2opi_f[n]; }", VERDICT_ACCEPTED, ""},
        {"__device__ int __cudart_i2opi_f[6] = {1};\n" K BODY "{ *y = __cudart_i2opi_f[n]; }",
         VERDICT_FORBIDDEN, "'__cudart_i2opi_f', 24 bytes"},
        {"__device__ int __cudart_i2opi_f[6];\n" K BODY "{ *y = __cudart_i2opi_f[n]; }",
         VERDICT_FORBIDDEN, "'__cudart_i2opi_f'"},
    };
    judge_rows_by(judge_code, FIXTURE_TASK, rows, sizeof rows / sizeof *rows);
    struct err err = {0};
    CHECK(inspect_cubin(S("no ELF"), S(""), arena, &err) == VERDICT_UNSUPPORTED);
}

/* CuTe brings constants at file scope that nothing refers to; they are no offence. */
static void cute(void) {
    static const struct row rows[] = {
        {"//! launch k<<<1, 32>>>(h, y, N)\n#include <cute/tensor.hpp>\n"
         "extern \"C\" __global__ void k(const cutlass::half_t *h, float *y, int n) {\n"
         "    using namespace cute;\n"
         "    auto t = make_tensor(make_gmem_ptr(h), make_layout(make_shape(n, Int<2>{})));\n"
         "    auto row = t(_, 1);\n"
         "    if (threadIdx.x < n) y[threadIdx.x] = float(row(threadIdx.x));\n"
         "}\n",
         VERDICT_ACCEPTED, ""},
    };
    if (!missing && !build_pool_root(pool)->cutlass[0])
        SKIP("no CUTLASS headers: run tools/setup build");
    judge_rows("task cute \"c\"\ndim N = 64\nin h[N] : f16 ~ uniform(0,1)\nout y[N] : f32\n"
               "y[k] = h[k]\n",
               rows, 1);
}

static void params(void) {
    struct ptx_param p[] = {{.type = PTX_U64, .size = 8, .align = 8},
                            {.type = PTX_U32, .size = 4, .align = 4},
                            {.type = PTX_U64, .size = 8, .align = 8},
                            {.type = PTX_U32, .size = 4, .align = 4}};
    struct ptx_entry e = {.name = S("k"), .is_kernel = true, .params = p, .nparams = 4};
    struct bound_arg args[] = {{.kind = ARG_TENSOR, .ref = 1},
                               {.kind = ARG_INTEGER, .value = -2},
                               {.kind = ARG_WORKSPACE, .ref = 1},
                               {.kind = ARG_INTEGER, .value = 2147483647}};
    struct bound_launch l = {.kernel = S("k"), .args = args, .nargs = 4};
    const uint64_t tensors[] = {0, 0xaabbccddeeff0011}, spaces[] = {0, 0x1122334455667788};
    const struct launch_memory memory = {tensors, spaces, NULL};
    static const uint8_t expected[] = {0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0xfe, 0xff,
                                       0xff, 0xff, 0,    0,    0,    0,    0x88, 0x77, 0x66, 0x55,
                                       0x44, 0x33, 0x22, 0x11, 0xff, 0xff, 0xff, 0x7f};
    uint8_t bytes[4096];
    size_t size = 0;
    struct err err = {0};
    CHECK(launch_params(&l, &e, &memory, bytes, &size, &err));
    CHECK(size == sizeof expected && memcmp(bytes, expected, sizeof expected) == 0);
    args[3].value = 2147483648; /* an unsigned would hold it, an int would be negative */
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err));
    CHECKF(strstr(err.text, "argument 4: 2147483648 does not fit") &&
               strstr(err.text, "make the parameter 64 bits"),
           "%s", err.text);
    args[3].value = -2147483649;
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err));
    args[3].value = 1;
    p[0].size = 4;
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err)); /* a pointer of 4 bytes */
    p[0].size = 8;
    e.nparams = 3;
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err) && strstr(err.text, "takes 3"));
}

/* A map goes by value at its own alignment. */
static void map_params(void) {
    struct ptx_param p[] = {{.type = PTX_U32, .size = 4, .align = 4},
                            {.type = PTX_B8, .size = 128, .align = 64},
                            {.type = PTX_U32, .size = 4, .align = 4}};
    struct ptx_entry e = {.name = S("k"), .is_kernel = true, .params = p, .nparams = 3};
    struct bound_arg args[] = {{.kind = ARG_INTEGER, .value = 1},
                               {.kind = ARG_TENSORMAP, .ref = 1},
                               {.kind = ARG_INTEGER, .value = 2}};
    struct bound_launch l = {.kernel = S("k"), .args = args, .nargs = 3};
    static uint8_t maps[2][TENSORMAP_BYTES], bytes[PARAMS_MAX];
    const struct launch_memory memory = {.maps = (const uint8_t(*)[TENSORMAP_BYTES])maps};
    struct err err = {0};
    size_t size = 0;
    memset(maps[1], 0xab, sizeof maps[1]);
    CHECK(launch_params(&l, &e, &memory, bytes, &size, &err) && size == 64 + 128 + 4);
    CHECK(bytes[0] == 1 && bytes[63] == 0 && bytes[64] == 0xab && bytes[191] == 0xab);
    CHECK(bytes[192] == 2);
    p[1].align = 8;
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err) && strstr(err.text, "CUtensorMap"));
    p[1] = (struct ptx_param){.type = PTX_U64, .size = 8, .align = 8};
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err) && strstr(err.text, "CUtensorMap"));
    p[1] = (struct ptx_param){.type = PTX_B8, .size = 128, .align = 4096};
    CHECK(!launch_params(&l, &e, &memory, bytes, &size, &err) && strstr(err.text, "more than"));
}

#define MAPPED                                                                                     \
    "//! require N % 4 == 0\n//! workspace part[2, N] : f32\n"                                     \
    "//! tensormap tx = tiled(x, box=[32])\n//! tensormap tp = tiled(part, box=[32, 1])\n"
#define KM MAPPED "//! launch k<<<1, 32>>>(tx, tp, part, y, N)\nextern \"C\" __global__ void k"

static void memory_checks(void) {
    static const struct row rows[] = {
        {KM "(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tp, "
            "float *part, float *y, int n) { *y = (float)(unsigned long long)&tx; }",
         VERDICT_ACCEPTED, ""},
        /* A map of a workspace can write it: a later argument may be const. */
        {KM "(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tp, "
            "const float *part, float *y, int n) { *y = *part; }",
         VERDICT_ACCEPTED, ""},
        {KM "(const CUtensorMap *tx, CUtensorMap tp, float *part, float *y, int n) {}",
         VERDICT_COMPILE_ERROR,
         "argument 1 (tx): expected const __grid_constant__ CUtensorMap, by value"},
        {KM "(float tx, CUtensorMap tp, float *part, float *y, int n) {}\n#define sizeof(x) 128\n"
            "#define alignof(x) 64\n#define __is_class(x) true\n",
         VERDICT_COMPILE_ERROR, "argument 1 (tx)"},
        {"struct own { float f[32]; };\n" KM
         "(own tx, CUtensorMap tp, float *part, float *y, int n) {}",
         VERDICT_COMPILE_ERROR, "argument 1 (tx)"},
        {"//! workspace part[N] : i32\n//! launch k<<<1, 32>>>(part, y)\n"
         "extern \"C\" __global__ void k(const int *part, float *y) { *y = *part; }",
         VERDICT_COMPILE_ERROR, "argument 1 (part): expected a non-const pointer to int"},
        {"//! workspace part[N] : i32\n//! memset part = 1\n//! launch k<<<1, 32>>>(part, y)\n"
         "extern \"C\" __global__ void k(const int *part, float *y) { *y = *part; }",
         VERDICT_ACCEPTED, ""},
        {"//! workspace part[N] : i32\n//! launch k<<<1, 32>>>(part, y)\n"
         "extern \"C\" __global__ void k(float *part, float *y) { *y = *part; }",
         VERDICT_COMPILE_ERROR, "argument 1 (part): expected a non-const pointer to int"},
    };
    judge_rows(FIXTURE_TASK, rows, sizeof rows / sizeof *rows);
}

static const struct tap_case cases[] = {
    {"argument types", type_checks},
    {"workspaces and maps as arguments", memory_checks},
    {"a map as bytes", map_params},
    {"element types", element_types},
    {"the prelude", prelude},
    {"what the PTX shows", ptx_checks},
    {"memory of the module, by the compiled code alone", code_checks},
    {"arguments as bytes", params},
    {"CuTe", cute},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    struct err err = {0};
    struct nvrtc_root root;
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
