/* The expert: every strategy of the space becomes a candidate for every kind of pointwise task, and
 * a sample of them compiles. What they compute is verified by the golden tests of `verify`. */
#include "agent/agent.h"
#include "base/file.h"
#include "kernel/build.h"
#include "kernel/candidate.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct catalogue *catalogue;
static struct agent expert;
static struct err err;
static const struct ground pointwise = {.workload = {[WORKLOAD_POINTWISE] = true}};

struct task_case {
    const char *name, *text;
};
static const struct task_case tasks[] = {
    {"one in, one out", "dim N = 1000003\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                        "y[i] = maximum(x[i], 0)\n"},
    {"lets, one used twice", "dim N = 4096\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                             "let t[i] = x[i] * (1 + 0.044715*pow(x[i], 2))\n"
                             "let u[i] = tanh(0.79788456*t[i])\n"
                             "y[i] = 0.5*x[i]*(1 + u[i]) + 0*t[i]\n"},
    {"row and column broadcast", "dim R = 96, C = 1000\nin x[R,C] : f32 ~ normal(0,1)\n"
                                 "param b[C] : f32 ~ normal(0,1)\nin s[R] : f32 ~ normal(0,1)\n"
                                 "in c : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
                                 "y[i,j] = (x[i,j] + b[j]) * s[i] + c\n"},
    {"rank 4 broadcast", "dim N = 3, C = 5, H = 7, W = 16\nin x[N,C,H,W] : f32 ~ normal(0,1)\n"
                         "param g[C] : f32 ~ normal(0,1)\nin m[H,W] : f32 ~ normal(0,1)\n"
                         "out y[N,C,H,W] : f32\n"
                         "y[n,c,h,w] = x[n,c,h,w] * g[c] + m[h,w]\n"},
    {"reversed and computed indices", "dim N = 1024, M = 512\nin x[N] : f32 ~ normal(0,1)\n"
                                      "in z[N,M] : f32 ~ normal(0,1)\nout y[N,2*M] : f32\n"
                                      "y[i,j] = x[N-1-i] + z[(i*7) % N, j//2]\n"},
    {"three outputs, two shapes", "dim N = 640, M = 48\nin x[N,M] : f32 ~ normal(0,1)\n"
                                  "in w[N] : f32 ~ normal(0,1)\nout a[N,M] : f32\n"
                                  "out b[N,M] : bool\nout c[N] : f32\nlet e[i,j] = exp(x[i,j])\n"
                                  "a[i,j] = e[i,j] / (1 + e[i,j])\nb[p,q] = x[p,q] > w[p]\n"
                                  "c[i] = w[i] * i\n"},
    {"rank 0", "in a : f32 ~ normal(0,1)\nin b : f32 ~ normal(0,1)\nout y : f32\n"
               "y = a*b + 1\n"},
    {"guarded neighbours", "dim N = 999\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                           "let d[i < N-1] = x[i+1] - x[i]\n"
                           "y[i] = if(i > 0 && i < N-1, d[i] - d[i-1], 0)\n"},
    {"typed let", "dim N = 2048\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                  "let h[i] : bf16 = x[i] * 3\nlet g[i] : f16 = h[i] + 1\n"
                  "y[i] = x[i] - g[i] + h[N-1-i]\n"},
    {"halves", "dim R = 31, C = 64\nin x[R,C] : f16 ~ normal(0,1)\nin b[C] : bf16 ~ normal(0,1)\n"
               "out y[R,C] : bf16\nout z[R,C] : f16\ny[i,j] = sigmoid(x[i,j]) * b[j]\n"
               "z[i,j] = x[i,j] + b[C-1-j]\n"},
    {"integers", "dim N = 777\nin x[N] : i32 ~ randint(-100,100)\nin t[N] : i8 ~ randint(-9,9)\n"
                 "in u[N] : u8 ~ randint(0,200)\nin f[N] : bool ~ bernoulli(0.5)\n"
                 "out y[N] : i64\nout z[N] : i8\nout g[N] : u8\nout k[N] : bool\n"
                 "let h[i] : i32 = x[i] // 3 + t[i] % 5\n"
                 "y[i] = h[i] * x[i] + h[N-1-i]\nz[i] = t[i] + clamp(x[i], -3, 3)\n"
                 "g[i] = if(f[i], u[i], 0)\nk[i] = !f[i] || x[N-1-i] == 0\n"},
    {"index as value", "dim N = 100, M = 100\nout y[N,M] : f32\n"
                       "y[i,j] = sin(i * 0.5) + cos(j) + (i*M + j) % 3\n"},
    {"names that CUDA keeps for itself",
     "dim N = 64, float_ = 3, M_PI = 4\nin int[N] : f32 ~ normal(0,1)\n"
     "in blockIdx[N, M_PI] : f32 ~ normal(0,1)\nout total[N] : f32\nout e[N,M_PI] : f32\n"
     "total[tile] = int[tile] * float_\ne[k,v] = blockIdx[k,v] + M_PI + int[k]\n"},
    {"more than an int counts", "dim N = 3000000000\nin x[N] : i8 ~ randint(-9,9)\n"
                                "out y[N] : i8\ny[i] = 0 - x[i] + x[N-1-i]\n"},
};
enum { NTASKS = sizeof tasks / sizeof *tasks };

static bool brief(const char *name, const char *text, struct briefing *out) {
    struct task *t;
    struct inst *in;
    str whole = arena_printf(mem, "task t \"%s\"\n%s", name, text);
    if (!task_parse(S("test.task"), whole, mem, &t, &err) || !task_bind(t, NULL, 0, mem, &in, &err))
        return false;
    return briefing_make(in, catalogue, gpu_find(S("h200")), out, &err);
}

struct written {
    str source;
    bool ok;
    int calls;
};

static void on_code(void *ctx, str source, const struct strategy *written, const struct err *e) {
    (void)written;
    struct written *w = ctx;
    w->calls++;
    w->ok = !e;
    if (e)
        err = *e;
    else
        w->source = arena_str(mem, source);
}

static struct written code(const struct briefing *b, const struct strategy *s) {
    struct written w = {0};
    expert.code(expert.self, b, s, on_code, &w);
    CHECK(w.calls == 1);
    return w;
}

static bool parses(const struct briefing *b, str source) {
    struct candidate *c;
    struct bound_plan plan;
    bool fits = false;
    str which;
    return candidate_parse(S("kernel.cu"), source, b->inst->task, mem, &c, &err) &&
           plan_fits(c, b->inst, &fits, &which, &err) && fits &&
           plan_bind(c, b->inst, mem, &plan, &err);
}

static void test_every_strategy(void) {
    uint64_t space = strategy_space(catalogue, &pointwise);
    CHECK(space >= 320);
    for (size_t t = 0; t < NTASKS; t++) {
        struct briefing b;
        bool ok = brief(tasks[t].name, tasks[t].text, &b);
        CHECKF(ok, "%s: %s", tasks[t].name, err.text);
        for (uint64_t i = 0; ok && i < space; i++) {
            struct strategy s;
            strategy_at(catalogue, &b.ground, i, &s);
            struct written w = code(&b, &s);
            bool good = w.ok && parses(&b, w.source);
            CHECKF(good, "%s, strategy %d: %s", tasks[t].name, (int)i, err.text);
            if (!good)
                break;
        }
    }
}

static bool has(str text, const char *what) {
    return str_find(text, str_view(what)) < text.n;
}

static void test_shapes_of_code(void) {
    struct briefing b;
    struct strategy naive, wide;
    CHECK(brief(tasks[0].name, tasks[0].text, &b));
    strategy_fallback(catalogue, &pointwise, &naive);
    str s = code(&b, &naive).source;
    CHECK(has(s, "y[element] = compute_y(x[element]);") && !has(s, "unroll"));
    CHECK(has(s, "//! launch y_kernel<<<ceil_div(N, 256), 256>>>(x, y, N)"));
    CHECK(has(s, "//! require N <= 1073741824"));

    CHECK(strategy_parse(catalogue, S("block=128 cache-hint=1 items=2 persistent=1 vector-width=4"),
                         &wide, &err));
    s = code(&b, &wide).source;
    CHECK(has(s, "__ldcs(") && has(s, "__stcs(") && has(s, "uint4"));
    CHECK(has(s, "<<<min(ceil_div(N, 1024), 2112), 128>>>")); /* 132 SMs of 16 blocks */

    CHECK(brief(tasks[2].name, tasks[2].text, &b));
    s = code(&b, &wide).source;
    CHECK(has(s, "C % kWidth == 0") && has(s, "cp_fetch<kWidth, cp_cached>(b + j)"));
    CHECK(has(s, "cp_fetch<kWidth, cp_streamed>(x + element)"));

    CHECK(brief(tasks[13].name, tasks[13].text, &b));
    s = code(&b, &naive).source;
    CHECK(has(s, "long long element") && !has(s, "require"));

    CHECK(brief(tasks[7].name, tasks[7].text, &b)); /* the guard must stay around the read */
    s = code(&b, &wide).source;
    CHECK(has(s, "? x[i + 1] - x_here - (x[i - 1 + 1] - x[i - 1]) : 0.0f"));
}

static void test_in_place(void) {
    struct briefing b;
    struct strategy s;
    strategy_fallback(catalogue, &pointwise, &s);
    CHECK(brief("place",
                "dim N = 8\ninout x[N] : f32 ~ normal(0,1)\ninout z[N] : f32 ~ normal(0,1)\n"
                "x[i] = 2*x[i] + z[i]\nz[i] = x[i]*z[i]\n",
                &b));
    str text = code(&b, &s).source;
    /* Everyone has read before anything is written. */
    size_t store = str_find(text, S("x[element] = x_new;"));
    CHECK(store < text.n && str_find(text, S("const float z_new = compute_z(")) < store);
    /* At other elements it must not be written under the readers. */
    CHECK(brief("flip", "dim N = 8\ninout x[N] : f32 ~ normal(0,1)\nx[i] = x[N-1-i]\n", &b));
    text = code(&b, &s).source;
    CHECK(has(text, "//! workspace x_kept[N] : f32"));
}

static void test_pieces(void) {
    struct briefing b;
    struct strategy s;
    CHECK(brief("pieces",
                "dim N = 8\nin x[N] : f32 ~ normal(0,1)\nout y[N,2] : f32\n"
                "y[i,0] = x[i]\ny[i,1] = 2*x[i]\n",
                &b));
    CHECK(strategy_parse(catalogue, S("items=2 vector-width=4"), &s, &err));
    str text = code(&b, &s).source;
    CHECK(has(text, "y[(i + slot) * 2 + 1] = compute_y_(x_v[item].at[slot]);"));
    CHECK(has(text, "y[i * 2] = compute_y(x[element]);"));
}

/* Rows that begin elsewhere but stay contiguous within a vector. */
static void test_rotated_rows(void) {
    struct briefing b;
    struct strategy s;
    CHECK(brief("rotated",
                "dim L = 8, E = 16\ndim D = 2*E\nin x[L,D] : f16 ~ normal(0,1)\n"
                "in c[L,E] : f32 ~ normal(0,1)\nout y[L,D] : f16\n"
                "y[l,d] = x[l,d]*c[l,d%E] + if(d < E, -x[l,(d+E)%D], x[l,(d+E)%D])\n",
                &b));
    CHECK(strategy_parse(catalogue, S("vector-width=8"), &s, &err));
    str text = code(&b, &s).source;
    CHECK(has(text, "cp_fetch<kWidth, cp_cached>(x + l * D + ((d + E) % D))") &&
          has(text, "cp_fetch<kWidth, cp_cached>(c + "));
    CHECK(has(text, "D % kWidth == 0") && has(text, "E % kWidth == 0"));
}

struct planned {
    struct strategy s[64];
    size_t n;
    int calls;
    str reason;
};

static void on_plan(void *ctx, const struct strategy *s, size_t n, str reason,
                    const struct err *e) {
    struct planned *p = ctx;
    CHECK(!e && n <= 64);
    p->calls++;
    p->n = n;
    p->reason = arena_str(mem, reason);
    memcpy(p->s, s, n * sizeof *s);
}

static void test_plan(void) {
    struct briefing b;
    struct strategy naive;
    CHECK(brief(tasks[0].name, tasks[0].text, &b));
    b.roofline.limit_s = 1; /* large: not a matter of latency */
    strategy_fallback(catalogue, &pointwise, &naive);
    for (size_t n = 1; n <= 40; n++) {
        struct planned p = {0}, again = {0};
        struct rng r = rng_stream(7, S("plan"));
        expert.plan(expert.self, &b, n, r, on_plan, &p);
        expert.plan(expert.self, &b, n, r, on_plan, &again);
        size_t naives = 0, doubles = 0, differ = 0;
        for (size_t i = 0; i < p.n; i++) {
            naives += strategy_equal(catalogue, &p.s[i], &naive);
            differ += !strategy_equal(catalogue, &p.s[i], &again.s[i]);
            for (size_t k = 0; k < i; k++)
                doubles += strategy_equal(catalogue, &p.s[i], &p.s[k]);
        }
        CHECKF(p.calls == 1 && p.n == n, "%zu of %zu", p.n, n);
        CHECKF(naives == 1 && doubles == 0 && differ == 0, "n %zu: %zu naive, %zu doubles", n,
               naives, doubles);
        CHECK(n < 2 || strategy_get(catalogue, &p.s[0], "vector-width") == 4);
        CHECK(has(p.reason, "memory-bound"));
    }
}

static void test_cross(void) {
    struct briefing b;
    CHECK(brief(tasks[0].name, tasks[0].text, &b));
    struct parent x = {.time_s = 1e-5}, y = {.time_s = INFINITY};
    int mutated = 0;
    for (uint64_t i = 0; i < 200; i++) {
        struct rng r = rng_sub(rng_stream(3, S("cross")), i);
        strategy_random(catalogue, &pointwise, rng_sub(r, 100), &x.strategy);
        strategy_random(catalogue, &pointwise, rng_sub(r, i % 4 ? 101 : 100), &y.strategy);
        struct planned p = {0};
        expert.cross(expert.self, &b, &x, &y, r, on_plan, &p);
        CHECK(p.calls == 1 && p.n == 1 && has(p.reason, "10 us"));
        CHECK(!strategy_equal(catalogue, &p.s[0], &x.strategy));
        CHECK(!strategy_equal(catalogue, &p.s[0], &y.strategy));
        for (size_t k = 0; k < catalogue->n; k++)
            mutated +=
                p.s[0].value[k] != x.strategy.value[k] && p.s[0].value[k] != y.strategy.value[k];
    }
    CHECKF(mutated > 20, "%d", mutated);
}

/* ---- compilation ---- */

struct compiling {
    size_t open, good;
    const char *task;
};

static void on_build(void *ctx, const struct build *b) {
    struct compiling *c = ctx;
    c->open--;
    c->good += b->verdict == VERDICT_ACCEPTED;
    CHECKF(b->verdict == VERDICT_ACCEPTED, "%s: %.*s", verdict_name(b->verdict), STR_ARG(b->log));
}

static void compile(struct build_pool *pool, const struct briefing *b, str source,
                    struct compiling *c) {
    struct candidate *parsed;
    struct buf unit;
    buf_init(&unit, 4u << 20);
    bool ok = candidate_parse(S("kernel.cu"), source, b->inst->task, mem, &parsed, &err) &&
              candidate_unit(parsed, &unit, &err);
    CHECKF(ok, "%s", err.text);
    struct build_request r = {.unit = buf_str(&unit), .arch = b->gpu->arch, .fmad = true};
    if (ok && build_submit(pool, &r, on_build, c, &err))
        c->open++;
    buf_release(&unit);
}

static void test_compiles(void) {
    struct nvrtc_root root;
    if (!nvrtc_find(&root, &err) || !nvrtc_probe(&root, &err))
        SKIP("no NVRTC");
    struct loop *loop = loop_new(&err);
    struct build_pool_options o = {.jobs = 2};
    struct build_pool *pool = build_pool_new(loop, &root, &o, &err);
    CHECKF(pool, "%s", err.text);
    if (!pool)
        return;
    struct compiling c = {0};
    static const char *const sample[] = {
        "block=256 cache-hint=0 items=1 persistent=0 vector-width=1",
        "block=128 cache-hint=1 items=1 persistent=0 vector-width=1",
        "block=512 cache-hint=1 items=2 persistent=1 vector-width=4",
        "block=64 cache-hint=0 items=4 persistent=0 vector-width=8"};
    size_t n = 0;
    for (size_t t = 0; t < NTASKS; t++)
        for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
            struct briefing b;
            struct strategy s;
            CHECK(strategy_parse(catalogue, str_view(sample[i]), &s, &err));
            if (!brief(tasks[t].name, tasks[t].text, &b))
                continue;
            compile(pool, &b, code(&b, &s).source, &c);
            n++;
        }
    while (c.open && loop_step(loop, 1000, &err))
        continue;
    CHECKF(c.good == n, "%zu of %zu compile", c.good, n);
    build_pool_free(pool);
    loop_free(loop);
}

/* ---- the project's own tasks ---- */

static void test_smoke_tasks(void) {
    const char *root = getenv("SOURCE_ROOT");
    str *names, dir = arena_printf(mem, "%s/tasks/smoke", root ? root : ".");
    size_t n;
    if (!file_exists(dir.p) || !dir_list(dir.p, mem, &names, &n, &err) || n == 0)
        SKIP("no tasks/smoke");
    for (size_t i = 0; i < n; i++) {
        if (!str_ends(names[i], S(".task")))
            continue;
        str path = arena_printf(mem, "%s/%.*s", dir.p, STR_ARG(names[i]));
        struct task *t;
        struct inst *in;
        bool ok = task_load(path.p, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err);
        CHECKF(ok, "%s", err.text);
        if (!ok)
            continue;
        struct briefing b;
        CHECK(briefing_make(in, catalogue, gpu_at(0), &b, &err));
        for (uint64_t k = 0; k < 320; k += 7) {
            struct strategy s;
            strategy_at(catalogue, &b.ground, k, &s);
            struct written w = code(&b, &s);
            CHECKF(w.ok && parses(&b, w.source), "%.*s: %s", STR_ARG(names[i]), err.text);
        }
    }
}

static const struct tap_case cases[] = {
    {"every strategy becomes a candidate", test_every_strategy},
    {"decisions show in the text", test_shapes_of_code},
    {"tensors written in place", test_in_place},
    {"outputs in pieces", test_pieces},
    {"rows that begin elsewhere", test_rotated_rows},
    {"plans: distinct, repeatable, with the naive kernel", test_plan},
    {"children are neither parent", test_cross},
    {"a sample compiles", test_compiles},
    {"the smoke tasks", test_smoke_tasks},
};

/* The build pool starts this program again as its compiler. With a number and a strategy it prints
 * the source for that task. */
int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    mem = arena_new((size_t)2 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err) || !expert_new(NULL, &expert, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = 0;
    if (argc == 3) {
        struct briefing b;
        struct strategy s;
        const struct task_case *t = &tasks[strtoul(argv[1], NULL, 10) % NTASKS];
        if (brief(t->name, t->text, &b) && strategy_parse(catalogue, str_view(argv[2]), &s, &err))
            printf("%s", code(&b, &s).source.p);
        else
            rc = printf("%s\n", err.text) > 0;
    } else {
        rc = tap_main(cases, sizeof cases / sizeof *cases);
    }
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
