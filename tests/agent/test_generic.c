/* The generic family: anything at all becomes kernels that compile, an element a thread or a warp.
 * What they compute is verified by tests/expert on the simulator. */
#include "agent/expert/form/partition.h"
#include "kernel/build.h"
#include "kernel/candidate.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;

struct task_case {
    const char *name, *text;
};
static const struct task_case tasks[] = {
    {"on one side of an if",
     "dim N = 9, M = 300\nin x[N,M] : f32 ~ normal(0,1)\nout y[N] : f32\n"
     "y[i] = if(i > 0, sum(j) x[i-1,j], if(x[i,0] > 0, 1 + max(j) x[(i+1) % N,j], 2))\n"},
    {"inside a guard and a term",
     "dim N = 9, M = 30\nin x[N,M] : f32 ~ normal(0,1)\nout y[N] : f32\n"
     "y[i] = sum(k | x[i,k] > min(l <= k) x[i,l]) 2 * (max(l <= k) x[i,l])\n"},
    {"bounds that depend on others",
     "dim N = 9\nin x[N,N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
     "y[i] = mean(j <= i, j <= k < N | (j + k) % 2 == 0) x[j,k] * x[k,i]\n"},
    {"empty ranges", "dim N = 9\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                     "y[i] = (max(i < k < N) x[k]) + (prod(i < k < N) x[k])\n"},
    {"places of extremes",
     "dim N = 9, M = 70\nin x[N,M] : f32 ~ normal(0,1)\nin n[N,M] : i32 ~ randint(0,50)\n"
     "out y[N] : f32\nout k[N] : i64\n"
     "y[i] = x[i, argmax(j) x[i,j]] * (argmin(j | j > 3) n[i,j])\nk[i] = argmin(j) n[i,j]\n"},
    {"integers", "dim N = 9, M = 70\nin n[N,M] : i32 ~ randint(-50,50)\n"
                 "in m[N,M] : bool ~ bernoulli(0.5)\nout s[N] : i64\nout t[N] : i32\nout u : u8\n"
                 "s[i] = sum(j | m[i,j]) n[i,j] * n[i,j]\n"
                 "t[i] = (max(j) n[i,j]) - (min(j) n[i,j])\nu = prod(i < 2, j < 3) 1\n"},
    {"in place, read elsewhere",
     "dim N = 9\ninout c[N] : f32 ~ normal(0,1)\ninout d[N] : bf16 ~ normal(0,1)\n"
     "c[i] = c[N-1-i] + mean(j) d[j]\nd[i] = d[i] * c[i]\n"},
    {"pieces and rank 0", "dim N = 9, M = 70\nin x[N,M] : f16 ~ normal(0,1)\nout y[2,N] : f64\n"
                          "out z : f32\ny[1,i] = sum(j) x[i,j]\ny[0,i] = min(j) x[i,j]\n"
                          "z = sum(i < N, j < M) pad(x[i-1,j+1], 1)\n"},
    {"more than an int counts",
     "dim N = 3000000000\nin x[N] : i8 ~ randint(-9,9)\nout y : i64\nout z[N] : i8\n"
     "y = sum(i) x[i]\nz[i] = x[(i+1) % N]\n"},
    {"names that the kernel uses itself",
     "dim lane = 9, total = 30\nin element[lane,total] : f32 ~ normal(0,1)\nout part[lane] : f32\n"
     "part[count] = (mean(best) element[count,best]) + element[count, argmax(e) "
     "element[count,e]]\n"},
};
enum { NTASKS = sizeof tasks / sizeof *tasks };

static bool brief(const struct task_case *c, struct briefing *out) {
    struct task *t;
    struct inst *in;
    err = (struct err){0};
    str whole = arena_printf(mem, "task t \"%s\"\n%s", c->name, c->text);
    return task_parse(S("t.task"), whole, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err) &&
           briefing_make(in, catalogue, gpu_find(S("h200")), out, &err);
}

/* The task by the generic family alone. */
static bool write(const struct briefing *b, const struct strategy *s, str *out) {
    const struct family *only[] = {&family_generic};
    struct partition *p = arena_new_of(mem, struct partition);
    struct sheet sh;
    struct buf text;
    err = (struct err){0};
    if (!partition_make(b, only, 1, mem, p, &err))
        return false;
    buf_init(&text, 1u << 20);
    sheet_init(&sh, b, s, NULL, &err);
    bool ok = true;
    for (size_t i = 0; i < p->n && ok; i++)
        ok = sheet_begin_step(&sh, p->family[i]->name) && p->family[i]->write(&sh, &p->steps[i]);
    ok = ok && sheet_finish(&sh, &text);
    *out = arena_str(mem, buf_str(&text));
    sheet_release(&sh);
    buf_release(&text);
    return ok;
}

static struct strategy lanes(int64_t n) {
    struct strategy s = {0};
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        s.value[i] = STRATEGY_UNSET;
    strategy_put(catalogue, &s, "generic-lanes", n);
    strategy_put(catalogue, &s, "block", 128);
    return s;
}

static bool has(str text, const char *what) {
    return str_find(text, str_view(what)) < text.n;
}

static str text_of(size_t task, int64_t n) {
    struct briefing b;
    struct strategy s = lanes(n);
    str text = S("");
    bool ok = brief(&tasks[task], &b) && write(&b, &s, &text);
    CHECKF(ok, "%s: %s", tasks[task].name, err.text);
    return text;
}

static void test_claims(void) {
    struct briefing b;
    for (size_t i = 0; i < NTASKS; i++) {
        struct form f;
        bool ok = brief(&tasks[i], &b) && form_make(b.inst, false, mem, &f, &err);
        CHECKF(ok, "%s: %s", tasks[i].name, err.text);
        bool done[TASK_MAX_STATEMENTS] = {false}, take[TASK_MAX_STATEMENTS] = {false};
        CHECK(!ok || (family_generic.claim(&b, &f, done, 0, take) && take[0] && !take[1]));
    }
}

static void test_facts(void) {
    str s = text_of(0, 32);
    CHECK(has(s, "one warp an element") && has(s, "j += 32") && has(s, "__launch_bounds__(128)"));
    CHECK(has(s, "if (i > 0) {") && has(s, "sum = cp_warp_sum(part.value());"));
    s = text_of(0, 1);
    CHECK(has(s, "one thread an element") && !has(s, "lane ==") && has(s, "part.add(x["));
    s = text_of(0, 0);
    CHECK(has(s, "one warp an element")); /* 9 elements of 300 terms */
    s = text_of(1, 32);
    CHECK(has(s, "for (int l = 0; l < k + 1; l++)")); /* each lane's own */
    s = text_of(2, 1);
    CHECK(has(s, "j < cp_smaller(N, i + 1); j++)") && has(s, "for (int k = j; k < N; k++)") &&
          has(s, "count++;"));
    s = text_of(4, 32);
    CHECK(has(s, "cp_best<float, true>") && has(s, "cp_best<long long, false>") &&
          has(s, ".join_warp();"));
    s = text_of(6, 1);
    CHECK(has(s, "//! workspace c_kept[N] : f32") && !has(s, "d_kept")); /* d only at its own */
    CHECK(has(s, "c_kept[element] = c[N - 1 - i]") && has(s, "c[element] = c_kept[i0];"));
    CHECK(str_find(s, S("launch d_kernel")) < str_find(s, S("launch c_copy")));
    s = text_of(8, 1);
    CHECK(has(s, "for (long long element = ") && !has(s, "//! require"));
}

/* ---- compilation ---- */

struct compiling {
    size_t open, good;
};

static void on_build(void *ctx, const struct build *b) {
    struct compiling *c = ctx;
    c->open--;
    c->good += b->verdict == VERDICT_ACCEPTED;
    CHECKF(b->verdict == VERDICT_ACCEPTED, "%s: %.*s", verdict_name(b->verdict), STR_ARG(b->log));
}

static bool compile(struct build_pool *pool, const struct briefing *b, str source,
                    struct compiling *c) {
    struct candidate *parsed;
    struct bound_plan plan;
    struct buf unit;
    buf_init(&unit, 4u << 20);
    bool ok = candidate_parse(S("kernel.cu"), source, b->inst->task, mem, &parsed, &err) &&
              plan_bind(parsed, b->inst, mem, &plan, &err) && candidate_unit(parsed, &unit, &err);
    struct build_request r = {.unit = buf_str(&unit), .arch = b->gpu->arch, .fmad = true};
    if (ok && build_submit(pool, &r, on_build, c, &err))
        c->open++;
    buf_release(&unit);
    return ok;
}

static void test_compiles(void) {
    struct nvrtc_root root;
    if (!nvrtc_find(&root, &err) || !nvrtc_probe(&root, &err))
        SKIP("no NVRTC");
    struct loop *loop = loop_new(&err);
    struct build_pool_options o = {.jobs = 1};
    struct build_pool *pool = build_pool_new(loop, &root, &o, &err);
    CHECKF(pool, "%s", err.text);
    if (!pool)
        return;
    struct compiling c = {0};
    size_t n = 0;
    for (size_t i = 0; i < NTASKS; i++)
        for (int64_t k = 1; k <= 32; k += 31, n++) {
            struct briefing b;
            CHECK(brief(&tasks[i], &b));
            CHECKF(compile(pool, &b, text_of(i, k), &c), "%s: %s", tasks[i].name, err.text);
        }
    while (c.open && loop_step(loop, 1000, &err))
        continue;
    CHECKF(c.good == n, "%zu of %zu compile", c.good, n);
    build_pool_free(pool);
    loop_free(loop);
}

static const struct tap_case cases[] = {
    {"it takes one statement, any", test_claims},
    {"decisions and loops show in the text", test_facts},
    {"all of it compiles", test_compiles},
};

/* The build pool starts this program again as its compiler. */
int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    mem = arena_new((size_t)1 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
