/* Workspaces, memsets, tensor maps and alignments: what they mean for a shape, and how their errors
 * read. */
#include "tap.h"

#include "fixture.h"

#define MATRIX_TASK                                                                                \
    "task gemm \"A product\"\n"                                                                    \
    "dim N = 96, M = 64, K = 256\n"                                                                \
    "in A[M,K] : bf16 ~ uniform(0,1)\n"                                                            \
    "in B[K,N] : f32 ~ uniform(0,1)\n"                                                             \
    "in q[M,N] : i8 ~ randint(0,9)\n"                                                              \
    "out C[M,N] : f32\n"                                                                           \
    "out f[M] : f16\n"                                                                             \
    "out h[M] : bf16\n"                                                                            \
    "out d[M] : f64\n"                                                                             \
    "out z : f32\n"                                                                                \
    "let t[i,j] = sum(k) A[i,k] * B[k,j]\n"                                                        \
    "C[i,j] = t[i,j] + q[i,j]\n"                                                                   \
    "f[i] = 1\nh[i] = 1\nd[i] = 1\nz = 1\n"

#define ALL    "A, B, C, f, h, d, z"
#define LAUNCH "//! launch k<<<1, 32>>>(" ALL ")\n"

static struct arena *arena;
static const struct task *task;

static bool bind(const char *plan, int64_t n, struct bound_plan *p, struct err *err) {
    char source[2048];
    snprintf(source, sizeof source, "%s" LAUNCH, plan);
    struct candidate *c = fixture_candidate(task, source, arena, err);
    return c && plan_bind(c, fixture_inst(task, n, arena), arena, p, err);
}

static size_t tensor(const char *name) {
    return (size_t)tensor_find(task, str_view(name));
}

static void example(void) {
    struct err err = {0};
    struct bound_plan p;
    struct candidate *c = fixture_candidate(
        task,
        "//! let S = 8\n"
        "//! workspace part[S, M, N] : f32\n"
        "//! workspace flags[M] : i32\n"
        "//! require K % (S*32) == 0 && aligned(B, 128) && aligned(part, 64)\n"
        "//! require aligned(A, 8)\n"
        "//! tensormap tA = tiled(A, box=[64, 32], swizzle=128)\n"
        "//! tensormap tP = tiled(part, shape=[N*M, S], box=[32, 1], step=[1, 2], fill=nan)\n"
        "//! memset flags = -1\n"
        "//! launch one<<<[2, 4, S], 256, 98304, cluster=[2,1,1], cooperative>>>(tA, B, part, M)\n"
        "//! memset C = 0\n"
        "//! launch two<<<4, 256, cluster=4>>>(tP, flags, " ALL ", N)\n",
        arena, &err);
    CHECKF(c != NULL, "%s", err.text);
    CHECKF(c && plan_bind(c, fixture_inst(task, 96, arena), arena, &p, &err), "%s", err.text);
    if (!c)
        return;
    CHECK(p.nworkspaces == 2 && p.nmaps == 2 && p.nmemsets == 2 && p.nlaunches == 2);
    CHECK(str_is(p.workspaces[0].name, "part") && p.workspaces[0].bytes == 8u * 64 * 96 * 4);
    CHECK(p.workspaces[0].align == 64 && p.workspaces[1].align == 16);
    CHECK(p.workspaces[1].dtype == DTYPE_I32 && p.workspaces[1].bytes == 256);
    CHECK(p.align[tensor("B")] == 128 && p.align[tensor("A")] == 16 && p.align[tensor("C")] == 16);
    static const enum step_kind order[] = {PLAN_MEMSET, PLAN_LAUNCH, PLAN_MEMSET, PLAN_LAUNCH};
    CHECK(p.nsteps == 4);
    for (size_t i = 0; i < 4 && p.nsteps == 4; i++)
        CHECK(p.steps[i].kind == order[i] && p.steps[i].index == i / 2);
    const struct bound_launch *l = p.launches;
    CHECK(l[0].cluster[0] == 2 && l[0].cluster[1] == 1 && l[0].cooperative && l[0].shared == 98304);
    CHECK(l[1].cluster[0] == 4 && l[1].cluster[2] == 1 && !l[1].cooperative && l[1].shared == 0);
    CHECK(l[0].args[0].kind == ARG_TENSORMAP && l[0].args[0].ref == 0);
    CHECK(l[0].args[1].kind == ARG_TENSOR && l[0].args[1].ref == tensor("B"));
    CHECK(l[0].args[2].kind == ARG_WORKSPACE && l[0].args[2].ref == 0);
    CHECK(l[1].args[0].ref == 1 && l[1].args[1].kind == ARG_WORKSPACE && l[1].args[1].ref == 1);
    const struct bound_tensormap *m = p.maps;
    CHECK(m[0].of == ARG_TENSOR && m[0].ref == tensor("A") && m[0].dtype == DTYPE_BF16);
    CHECK(m[0].rank == 2 && m[0].extent[0] == 256 && m[0].extent[1] == 64 && m[0].stride[0] == 512);
    CHECK(m[0].box[0] == 64 && m[0].box[1] == 32 && m[0].step[0] == 1 && m[0].step[1] == 1);
    CHECK(m[0].swizzle == 128 && !m[0].fill_nan);
    CHECK(m[1].of == ARG_WORKSPACE && m[1].ref == 0 && m[1].extent[0] == 64 * 96);
    CHECK(m[1].extent[1] == 8 && m[1].stride[0] == 64 * 96 * 4 && m[1].step[1] == 2);
    CHECK(m[1].swizzle == 0 && m[1].fill_nan);
    CHECK(p.memsets[0].of == ARG_WORKSPACE && p.memsets[0].ref == 1 && p.memsets[0].size == 4);
    CHECK(p.memsets[0].pattern == 0xffffffff && p.memsets[0].count == 64);
    CHECK(p.memsets[1].of == ARG_TENSOR && p.memsets[1].ref == tensor("C"));
    CHECK(p.memsets[1].pattern == 0 && p.memsets[1].count == 64 * 96);
}

#define ONCE_TASK                                                                                  \
    "task scaled \"Scaled\"\ndim N = 96\nin x[N] : f32 ~ uniform(0,1)\nparam s[N] : f32 ~ "        \
    "uniform(0,1)\nout y[N] : f32\ny[i] = x[i] * s[i]\n"

/* What is done once comes first, reads parameters, and prepares workspaces. */
static void once(void) {
    static const struct {
        const char *plan, *says;
    } rows[] = {
        {"//! once launch p<<<1, 1>>>(s, w)\n//! launch k<<<1, 1>>>(x, w, y)\n", NULL},
        {"//! once memset w = 0\n//! once launch p<<<1, 1>>>(ts, w, N)\n"
         "//! memset v = 0\n//! launch k<<<1, 1>>>(x, tw, v, y)\n",
         NULL},
        {"//! once launch p<<<1, 1>>>(x, w)\n", "x is no parameter of the task"},
        {"//! once launch p<<<1, 1>>>(s, w, y)\n", "y is no parameter of the task"},
        {"//! once launch p<<<1, 1>>>(tx, w)\n", "x is no parameter of the task"},
        {"//! once launch p<<<1, 1>>>(s, N)\n", "is given no workspace to write to"},
        {"//! once memset y = 0\n", "writes workspaces alone"},
        {"//! once memset s = 0\n", "writes workspaces alone"},
        {"//! once launch p<<<1, 1>>>(s, w)\n//! memset w = 0\n",
         "workspace w is written by a step that is done once"},
        {"//! memset v = 0\n//! once launch p<<<1, 1>>>(s, w)\n", "stands before all others"},
        {"//! launch k<<<1, 1>>>(x, y)\n//! once memset w = 0\n", "stands before all others"},
        {"//! once workspace u[4] : f32\n", "expected launch or memset after once"},
        {"//! once\n", "expected launch or memset after once"},
        {"//! once once launch p<<<1, 1>>>(s, w)\n", "expected launch or memset after once"},
    };
    const struct task *scaled = fixture_task(ONCE_TASK, arena);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char source[1024];
        struct err err = {0};
        struct bound_plan p;
        snprintf(source, sizeof source,
                 "//! workspace w[N] : f32\n//! workspace v[N] : f32\n"
                 "//! tensormap ts = tiled(s, box=[32])\n//! tensormap tx = tiled(x, box=[32])\n"
                 "//! tensormap tw = tiled(w, box=[32])\n%s",
                 rows[i].plan);
        struct candidate *c = fixture_candidate(scaled, source, arena, &err);
        CHECKF((c != NULL) == !rows[i].says, "%s: %s", rows[i].plan, err.text);
        CHECKF(!rows[i].says || strstr(err.text, rows[i].says), "%s: %s", rows[i].plan, err.text);
        if (!c || !plan_bind(c, fixture_inst(scaled, 96, arena), arena, &p, &err))
            continue;
        CHECK(p.once_steps == i + 1 && p.launches[0].once && !p.launches[1].once);
        CHECK(p.workspaces[0].prepared && !p.workspaces[1].prepared);
    }
}

/* An output that only a map reaches is passed. */
static void outputs_through_maps(void) {
    struct err err = {0};
    CHECKF(fixture_candidate(task,
                             "//! tensormap tC = tiled(C, box=[32, 8])\n"
                             "//! launch k<<<1, 32>>>(tC, f, h, d, z)\n",
                             arena, &err) != NULL,
           "%s", err.text);
    CHECK(!fixture_candidate(task,
                             "//! memset C = 0\n//! tensormap tC = tiled(C, box=[32, 8])\n"
                             "//! launch k<<<1, 32>>>(f, h, d, z)\n",
                             arena, &err));
    CHECKF(strstr(err.text, "output C is never passed to a launch"), "%s", err.text);
}

static void patterns(void) {
    static const struct {
        const char *plan;
        uint64_t pattern;
        unsigned size;
    } rows[] = {
        {"//! memset C = 1\n", 0x3f800000, 4},
        {"//! memset C = -inf\n", 0xff800000, 4},
        {"//! memset C = inf\n", 0x7f800000, 4},
        {"//! memset C = 16777216\n", 0x4b800000, 4},
        {"//! memset d = 0 - N\n", 0xc058000000000000, 8},
        {"//! memset d = inf\n", 0x7ff0000000000000, 8},
        {"//! memset f = -1\n", 0xbc00, 2},
        {"//! memset f = 65504\n", 0x7bff, 2},
        {"//! memset f = 0\n", 0, 2},
        {"//! memset f = 3\n", 0x4200, 2},
        {"//! memset f = -inf\n", 0xfc00, 2},
        {"//! memset h = 3\n", 0x4040, 2},
        {"//! memset h = inf\n", 0x7f80, 2},
        {"//! memset h = -256\n", 0xc380, 2},
        {"//! memset z = -0\n", 0, 4},
        {"//! workspace w[4] : i8\n//! memset w = -128\n", 0x80, 1},
        {"//! workspace w[4] : u8\n//! memset w = 255\n", 0xff, 1},
        {"//! workspace w[4] : i32\n//! memset w = -(1 - 3)\n", 2, 4},
        {"//! workspace w[4] : i64\n//! memset w = -1\n", UINT64_MAX, 8},
        {"//! workspace w[4] : bool\n//! memset w = 1\n", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        struct bound_plan p;
        bool ok = bind(rows[i].plan, 96, &p, &err);
        CHECKF(ok, "%s: %s", rows[i].plan, err.text);
        CHECKF(!ok ||
                   (p.memsets[0].pattern == rows[i].pattern && p.memsets[0].size == rows[i].size),
               "%s: %llx", rows[i].plan, (unsigned long long)p.memsets[0].pattern);
    }
}

struct bad {
    const char *plan, *says;
};

static void bad_lines(void) {
    static const struct bad rows[] = {
        {"//! workspace\n", "expected a name after workspace"},
        {"//! workspace 4[4] : f32\n", "expected a name after workspace"},
        {"//! workspace A[4] : f32\n", "'A' is a tensor of the task"},
        {"//! workspace t[4] : f32\n", "'t' is a tensor of the task"},
        {"//! workspace N[4] : f32\n", "'N' is a dimension of the task"},
        {"//! workspace max[4] : f32\n", "'max' is a function of plans"},
        {"//! let w = 4\n//! workspace w[4] : f32\n", "'w' is already a let"},
        {"//! workspace w[4] : f32\n//! workspace w[4] : f32\n", "'w' is already a workspace"},
        {"//! workspace w[4] : f32\n//! let w = 4\n", "'w' is already a workspace"},
        {"//! tensormap w = tiled(A, box=[8,8])\n//! workspace w[4] : f32\n",
         "'w' is already a tensormap"},
        {"//! workspace w : f32\n", "expected '[' after the workspace's name"},
        {"//! workspace w[] : f32\n", "expected a number"},
        {"//! workspace w[4,] : f32\n", "expected a number"},
        {"//! workspace w[1,1,1,1,1,1,1,1,1] : f32\n", "more than 8 numbers"},
        {"//! workspace w[4]\n", "expected ':' after the extents"},
        {"//! workspace w[4] : float\n", "types are f64 f32 f16"},
        {"//! workspace w[4] :\n", "expected the type of the elements"},
        {"//! workspace w[4] : f32 = 0\n", "unexpected '=' after the type"},
        {"//! workspace w[A] : f32\n", "'A' is a tensor, not a number"},
        {"//! workspace w[4] : f32\n//! let v = w\n", "'w' is a workspace, not a number"},
        {"//! workspace w[4] : f32\n//! launch g<<<1, 1>>>(w + 4)\n", "pass it whole"},
        {"//! memset\n", "memset needs the name of a tensor or a workspace"},
        {"//! memset w = 0\n", "'w' is neither a tensor nor a workspace"},
        {"//! memset w = 0\n//! workspace w[4] : f32\n", "declared above"},
        {"//! memset A = 0\n", "'A' is an input of the task"},
        {"//! memset t = 0\n", "it has no memory"},
        {"//! tensormap m = tiled(A, box=[8,8])\n//! memset m = 0\n", "'m' is a tensormap"},
        {"//! memset C 0\n", "expected '=' after the name"},
        {"//! memset C =\n", "expected a number"},
        {"//! memset C = 0.5\n", "unexpected character"},
        {"//! memset C = nan\n", "unknown name 'nan'"},
        {"//! memset C = - nan\n", "unknown name 'nan'"},
        {"//! memset C = inf + 1\n", "unexpected '+' after the value"},
        {"//! memset C = 0 0\n", "unexpected '0' after the value"},
        {"//! workspace w[4] : i32\n//! memset w = inf\n", "i32 has no infinity"},
        {"//! workspace w[4] : bool\n//! memset w = -inf\n", "bool has no infinity"},
        {"//! tensormap = tiled(A)\n", "expected a name after tensormap"},
        {"//! tensormap m tiled(A)\n", "expected '=' after the name"},
        {"//! tensormap m = A\n", "expected tiled(…) after '='"},
        {"//! tensormap m = im2col(A)\n", "expected tiled(…) after '='"},
        {"//! tensormap m = tiled(A)\n", "a tensormap needs a box"},
        {"//! tensormap m = tiled(4, box=[8])\n", "tiled() needs the name"},
        {"//! tensormap m = tiled(t, box=[8,8])\n", "it has no memory"},
        {"//! tensormap m = tiled(none, box=[8,8])\n", "neither a tensor nor a workspace"},
        {"//! tensormap m = tiled(A, [8,8])\n", "expected an option of the tensormap"},
        {"//! tensormap m = tiled(A, box=8)\n", "expected '[' after '='"},
        {"//! tensormap m = tiled(A, box=[8,8], box=[8,8])\n", "box is given twice"},
        {"//! tensormap m = tiled(A, box=[8,8], swizzle=0, swizzle=0)\n", "swizzle is given twice"},
        {"//! tensormap m = tiled(A, box=[8,8], fill=zero, fill=nan)\n", "fill is given twice"},
        {"//! tensormap m = tiled(A, box=[8,8], l2=128)\n", "a tensormap has no 'l2'"},
        {"//! tensormap m = tiled(A, box=[8,8], fill=one)\n", "fill is zero or nan"},
        {"//! tensormap m = tiled(q, box=[16,8], fill=nan)\n", "integers have no nan"},
        {"//! tensormap m = tiled(A, box=[8,8]\n", "expected ')' after the options"},
        {"//! tensormap m = tiled(A, box=[8])\n", "the box has 1 dimensions, the tensor 2"},
        {"//! tensormap m = tiled(z, box=[8])\n", "the box has 1 dimensions, the tensor 0"},
        {"//! tensormap m = tiled(A, box=[8,8], shape=[64])\n", "2 dimensions, the shape 1"},
        {"//! tensormap m = tiled(A, box=[8,8], step=[1])\n", "2 dimensions, step has 1"},
        {"//! tensormap m = tiled(A, box=[8,1,1,1,1,1])\n", "more than 5 numbers"},
        {"//! tensormap m = tiled(A, box=[8,8])\n//! tensormap m = tiled(A, box=[8,8])\n",
         "'m' is already a tensormap"},
        {"//! require aligned(A, 24)\n", "a power of two from 1 to 256"},
        {"//! require aligned(A, 512)\n", "a power of two from 1 to 256"},
        {"//! require aligned(A, 0)\n", "a power of two from 1 to 256"},
        {"//! require aligned(A, N)\n", "as a number"},
        {"//! require aligned(A)\n", "expected ',' after the name"},
        {"//! require aligned A\n", "expected '(' after aligned"},
        {"//! require aligned(t, 16)\n", "it has no memory"},
        {"//! require aligned(N, 16)\n", "neither a tensor nor a workspace"},
        {"//! require aligned(A, 16) || N > 4\n", "joined with && at the top"},
        {"//! require !aligned(A, 16)\n", "joined with && at the top"},
        {"//! require (N > 4 || aligned(A, 16)) && M > 1\n", "joined with && at the top"},
        {"//! require aligned(A, 16) == 1\n", "joined with && at the top"},
        {"//! let v = aligned(A, 16)\n", "aligned() can only stand in a require line"},
        {"//! launch g<<<1, aligned(A, 16)>>>()\n", "aligned() can only stand in a require line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        char source[1024];
        snprintf(source, sizeof source, "%s" LAUNCH, rows[i].plan);
        CHECKF(!fixture_candidate(task, source, arena, &err), "%s parsed", rows[i].plan);
        CHECKF(strstr(err.text, rows[i].says) && strstr(err.text, "k.cu:") && err.kind == ERR_INPUT,
               "%s: %s", rows[i].plan, err.text);
    }
}

static void bad_shapes(void) {
    static const struct bad rows[] = {
        {"//! workspace w[N - 96] : f32\n", "an extent of workspace w is 0"},
        {"//! workspace w[4, 0 - N] : f32\n", "an extent of workspace w is -96"},
        {"//! workspace w[1 << 3] : f32\n", "expected"},
        {"//! workspace w[2147483648, 4294967296] : f32\n", "do not fit 64 bits"},
        {"//! workspace w[4611686018427387904] : f64\n", "do not fit 64 bits"},
        {"//! workspace w[1 / (N - 96)] : f32\n", "division by zero"},
        {"//! memset C = 16777217\n", "16777217 is not a value of f32"},
        {"//! memset f = 65505\n", "65505 is not a value of f16"},
        {"//! memset f = 2049\n", "2049 is not a value of f16"},
        {"//! memset f = 65536\n", "65536 is not a value of f16"},
        {"//! memset h = 257\n", "257 is not a value of bf16"},
        {"//! memset d = 9007199254740993\n", "is not a value of f64"},
        {"//! memset d = 9223372036854775807\n", "is not a value of f64"},
        {"//! workspace w[4] : u8\n//! memset w = 256\n", "256 is not a value of u8"},
        {"//! workspace w[4] : u8\n//! memset w = -1\n", "-1 is not a value of u8"},
        {"//! workspace w[4] : i8\n//! memset w = 128\n", "128 is not a value of i8"},
        {"//! workspace w[4] : i32\n//! memset w = 2147483648\n", "is not a value of i32"},
        {"//! workspace w[4] : bool\n//! memset w = 2\n", "2 is not a value of bool"},
        {"//! tensormap m = tiled(A, box=[0, 8])\n", "the box of a tensormap is 0"},
        {"//! tensormap m = tiled(A, box=[8, 257])\n", "it must be from 1 to 256"},
        {"//! tensormap m = tiled(A, box=[4, 8])\n",
         "has 8 bytes (4 elements of bf16), it must be a multiple of 16"},
        {"//! tensormap m = tiled(A, box=[72, 8], swizzle=128)\n",
         "has 144 bytes, more than the 128 that are swizzled"},
        {"//! tensormap m = tiled(A, box=[24, 8], swizzle=32)\n", "more than the 32"},
        {"//! tensormap m = tiled(A, box=[8, 8], swizzle=16)\n", "must be 0, 32, 64 or 128"},
        {"//! tensormap m = tiled(A, box=[256, 256, 4], shape=[256, 8, 8])\n",
         "does not fit shared memory"},
        {"//! tensormap m = tiled(A, box=[8, 8], step=[1, 9])\n", "a step of a tensormap is 9"},
        {"//! tensormap m = tiled(A, box=[8, 8], step=[1, 0])\n", "a step of a tensormap is 0"},
        {"//! tensormap m = tiled(A, box=[8, 8], step=[2, 1])\n", "innermost step"},
        {"//! tensormap m = tiled(A, box=[8, 8], shape=[256, 65])\n",
         "does not have the 16384 elements"},
        {"//! tensormap m = tiled(A, box=[8, 8], shape=[0, 64])\n", "it must be from 1 to 2^32-1"},
        {"//! tensormap m = tiled(A, box=[8, 8], shape=[4, 4096])\n",
         "dimension 1 has a stride of 8 bytes, it must be a multiple of 16"},
        {"//! workspace w[4, 4294967296] : u8\n//! tensormap m = tiled(w, box=[16, 1])\n",
         "extent 0 of tensormap m is 4294967296"},
        {"//! workspace w[4, 1099511627776] : u8\n"
         "//! tensormap m = tiled(w, box=[16, 1, 1], shape=[1048576, 1048576, 4])\n",
         "dimension 2 has a stride of 1099511627776 bytes, it must be less than 2^40"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        struct bound_plan p;
        CHECKF(!bind(rows[i].plan, 96, &p, &err), "%s bound", rows[i].plan);
        CHECKF(strstr(err.text, rows[i].says) && strstr(err.text, "k.cu:"), "%s: %s", rows[i].plan,
               err.text);
    }
    struct err err = {0};
    struct bound_plan p; /* a shape may be what is wrong: 4 * 97 is no multiple of 16 */
    CHECK(bind("//! tensormap m = tiled(B, box=[8, 8])\n", 96, &p, &err));
    CHECK(!bind("//! tensormap m = tiled(B, box=[8, 8])\n", 97, &p, &err) &&
          strstr(err.text, "add a require line"));
}

static void limits(void) {
    static const struct {
        const char *line;
        int most;
        const char *says;
    } rows[] = {
        {"//! workspace w%d[4] : f32\n", PLAN_MAX_WORKSPACES, "more than 16 workspaces"},
        {"//! tensormap m%d = tiled(A, box=[8,8])\n", PLAN_MAX_MAPS, "more than 32 tensormaps"},
        {"//! memset C = %d\n", PLAN_MAX_MEMSETS, "more than 32 memsets"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int more = 0; more < 2; more++) {
            struct err err = {0};
            struct buf b;
            buf_init(&b, 1u << 20);
            for (int k = 0; k < rows[i].most + more; k++) {
                char line[80];
                str form = str_view(rows[i].line), number = arena_printf(arena, "%d", k);
                size_t at = str_find(form, S("%d"));
                snprintf(line, sizeof line, "%.*s%.*s%s", (int)at, form.p, STR_ARG(number),
                         form.p + at + 2);
                buf_puts(&b, str_view(line));
            }
            buf_puts(&b, S(LAUNCH));
            bool ok = fixture_candidate(task, b.p, arena, &err) != NULL;
            CHECKF(ok == !more, "%s %d: %s", rows[i].line, more, err.text);
            CHECKF(ok || strstr(err.text, rows[i].says), "%s: %s", rows[i].line, err.text);
            buf_release(&b);
        }
    struct buf b;
    struct err err = {0};
    buf_init(&b, 1u << 20);
    buf_puts(&b, S("//! require 1"));
    for (int k = 0; k < 17; k++)
        buf_puts(&b, S(" && aligned(A, 16)"));
    buf_puts(&b, S("\n" LAUNCH));
    CHECK(!fixture_candidate(task, b.p, arena, &err) && strstr(err.text, "too many aligned()"));
    buf_release(&b);
}

static const struct tap_case cases[] = {
    {"an example", example},           {"outputs through maps", outputs_through_maps},
    {"patterns of memsets", patterns}, {"bad lines", bad_lines},
    {"bad shapes", bad_shapes},        {"limits", limits},
    {"what is done once", once},
};

int main(void) {
    arena = arena_new(256u << 20);
    task = fixture_task(MATRIX_TASK, arena);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
