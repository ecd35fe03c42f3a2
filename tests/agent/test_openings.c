/* What the planner tries first: by the shape of a product, and on GPUs that have less than an H200.
 */
#include "agent/expert/expert.h"
#include "agent/expert/plan/openings.h"
#include "base/asset.h"
#include "base/file.h"
#include "writing.h"
#include <stdlib.h>

struct planned {
    struct strategy first;
    bool ok;
};

static void on_plan(void *ctx, const struct strategy *s, size_t n, str reason,
                    const struct err *e) {
    struct planned *p = ctx;
    (void)reason;
    p->ok = !e && n > 0;
    if (p->ok)
        p->first = s[0];
}

static bool first_of(const char *task, const char *gpu, struct briefing *b, struct strategy *out) {
    struct planned p = {.ok = false};
    if (!brief_for(task, gpu, b))
        return false;
    expert.plan(expert.self, b, 8, rng_stream(1, S("plan")), on_plan, &p);
    *out = p.first;
    return p.ok;
}

#define PRODUCT(m, n, k, type, class, b, at)                                                       \
    "dim M = " m ", N = " n ", K = " k "\nin A[M,K] : " type " ~ normal(0,1)\nin B[" b "] : " type \
    " ~ normal(0,1)\nout C[M,N] : " type "\nC[i,j] = sum(k) A[i,k] * B[" at                        \
    "]\naccuracy " class "\n"
#define BF16(m, n, k)      PRODUCT(m, n, k, "bf16", "bf16", "N,K", "j,k")
#define BF16_LIES(m, n, k) PRODUCT(m, n, k, "bf16", "bf16", "K,N", "k,j")
#define TF32(m, n, k)      PRODUCT(m, n, k, "f32", "tf32", "K,N", "k,j")
#define FP32(m, n, k)      PRODUCT(m, n, k, "f32", "fp32", "K,N", "k,j")

/* Measured on an H200, docs/results/2026-11-16-products-h200.md. */
static const struct {
    const char *name, *gpu, *task;
    int path, m, n, split;
} products[] = {
    {"large", "h200", BF16("4096", "4096", "4096"), 2, 128, 256, 1},
    {"one tile an SM", "h200", BF16("256", "8192", "8192"), 2, 128, 128, 1},
    {"few tiles, long", "h200", BF16("512", "512", "8192"), 2, 128, 128, 8},
    {"few tiles, not long", "h200", BF16("1024", "1024", "1024"), 2, 64, 128, 1},
    {"fewer", "h200", BF16("512", "512", "512"), 2, 64, 64, 1},
    {"few rows", "h200", BF16("16", "8192", "8192"), 2, 32, 128, 2},
    {"few columns", "h200", BF16("4096", "16", "4096"), 2, 128, 32, 4},
    {"few rows, many tiles", "h200", BF16("64", "32768", "4096"), 2, 64, 256, 1},
    {"rows along n", "h200", BF16_LIES("128", "4096", "4096"), 2, 128, 128, 4},
    {"a copy pays", "h200", BF16_LIES("1024", "1020", "4096"), 2, 128, 128, 2},
    {"a copy does not", "h200", BF16_LIES("128", "4092", "4096"), 1, 64, 128, 4},
    {"f32", "h200", TF32("1024", "1024", "8192"), 2, 128, 128, 2},
    {"f32, small", "h200", TF32("512", "512", "512"), 1, 64, 64, 1},
    {"f32, few rows", "h200", TF32("16", "4096", "4096"), 1, 32, 128, 8},
    {"fp32", "h200", FP32("1024", "1024", "4096"), 2, 128, 128, 2},
    {"very long", "h200", FP32("256", "256", "524288"), 1, 64, 128, 32},
    {"before Hopper", "a100", BF16("4096", "4096", "4096"), 1, 128, 128, 1},
    {"before Hopper, fp32", "rtx4090", FP32("4096", "4096", "4096"), 1, 128, 128, 1},
    {"before Hopper, few tiles", "a100", BF16("512", "512", "8192"), 1, 64, 128, 4},
};

static void test_products(void) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct briefing b;
        struct strategy s;
        CHECKF(first_of(products[i].task, products[i].gpu, &b, &s), "%s", products[i].name);
        int64_t path = strategy_get(catalogue, &s, "tensor-path"),
                m = strategy_get(catalogue, &s, "tile-m"),
                n = strategy_get(catalogue, &s, "tile-n"),
                split = strategy_get(catalogue, &s, "split-k");
        CHECKF(path == products[i].path && m == products[i].m && n == products[i].n &&
                   split == products[i].split,
               "%s: path %lld, %lld x %lld, %lld parts", products[i].name, (long long)path,
               (long long)m, (long long)n, (long long)split);
    }
}

#define ATTENTION(head)                                                                            \
    "dim L = 512, D = " head "\nin q[L,D] : bf16 ~ normal(0,1)\nin k[L,D] : bf16 ~ normal(0,1)\n"  \
    "in v[L,D] : bf16 ~ normal(0,1)\nout o[L,D] : bf16\n"                                          \
    "let s[i,j] = 0.0625 * sum(d) q[i,d] * k[j,d]\n"                                               \
    "let e[i,j] = exp(s[i,j] - max(l) s[i,l])\n"                                                   \
    "o[i,d] = sum(j) e[i,j] / (sum(l) e[i,l]) * v[j,d]\naccuracy bf16\n"
static const char *const hungry[] = {
    BF16("512", "512", "512"),
    FP32("500", "300", "700"),
    ATTENTION("256"),
    "dim R = 64, C = 60000\nin x[R,C] : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
    "let e[i,j] = exp(x[i,j] - max(k) x[i,k])\ny[i,j] = e[i,j] / sum(k) e[i,k]\n",
    "dim R = 64, C = 30000\nin x[R,C] : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
    "y[i,j] = x[i,j] / sqrt(sum(k) x[i,k] * x[i,k])\n",
};

/* True: every launch is one that the GPU can make. */
static bool fits_gpu(const struct briefing *b, str source, uint64_t *shared) {
    struct candidate *c;
    struct bound_plan plan;
    bool fits = candidate_parse(S("kernel.cu"), source, b->inst->task, mem, &c, &err) &&
                plan_bind(c, b->inst, mem, &plan, &err);
    for (size_t i = 0; fits && i < plan.nlaunches; i++) {
        *shared = plan.launches[i].shared > *shared ? plan.launches[i].shared : *shared;
        fits = plan.launches[i].shared <= b->gpu->shared_block &&
               (int)plan.launches[i].cluster[0] <= b->gpu->has.cluster_most &&
               (b->gpu->has.wgmma || str_find(source, S("wgmma.mma_async")) == source.n);
    }
    return fits;
}

static void test_gpus(void) {
    enum { DRAWS = 60 };
    for (size_t g = 0; g < gpu_count(); g++)
        for (size_t t = 0; t < sizeof hungry / sizeof *hungry; t++) {
            struct briefing b;
            struct strategy s;
            uint64_t shared = 0;
            CHECKF(first_of(hungry[t], gpu_at(g)->name, &b, &s), "%s", err.text);
            for (uint64_t i = 0; i < DRAWS; i++) {
                str source = write_with(&b, &s);
                CHECKF(source.n > 0 && fits_gpu(&b, source, &shared),
                       "task %zu on %s, draw %d: %llu bytes", t, gpu_at(g)->name, (int)i,
                       (unsigned long long)shared);
                strategy_random(catalogue, &b.ground, rng_sub(rng_stream(2, S("gpus")), i), &s);
            }
            if (gpu_at(g) == gpu_find(S("h200")))
                CHECKF(shared > 99 << 10, "task %zu is not hungry: %llu bytes", t,
                       (unsigned long long)shared);
        }
}

/* Tensor cores before Hopper's cut off more of a sum. */
static void test_chains(void) {
    static const struct {
        const char *gpu, *require;
    } limits[] = {{"h200", "//! require K <= 4096\n"}, {"a100", "//! require K <= 1024\n"}};
    for (size_t i = 0; i < 2; i++) {
        struct briefing b;
        struct strategy s;
        CHECK(brief_for(TF32("64", "64", "512"), limits[i].gpu, &b));
        strategy_fallback(catalogue, &b.ground, &s);
        CHECK(strategy_put(catalogue, &s, "tensor-path", 1));
        str source = write_with(&b, &s);
        CHECKF(str_find(source, str_view(limits[i].require)) < source.n, "%s", limits[i].gpu);
    }
}

/* Each step of a task has what its own shape asks for: a product of 16 columns beside one of
 * thousands. */
static void test_steps(void) {
    struct briefing b;
    struct strategy first, wide, narrow;
    CHECK(first_of("dim M = 4096, K = 4096, N = 4096, R = 16\nin x[M,K] : bf16 ~ normal(0,1)\n"
                   "in w[K,N] : bf16 ~ normal(0,1)\nin a[K,R] : bf16 ~ normal(0,1)\n"
                   "out y[M,N] : bf16\nout z[M,R] : bf16\n"
                   "z[m,r] = sum(k) x[m,k]*a[k,r]\ny[m,n] = sum(k) x[m,k]*w[k,n]\n"
                   "accuracy bf16\n",
                   "h200", &b, &first));
    CHECK(b.ground.nsteps == 2);
    strategy_of_step(catalogue, &b.ground, &first, 1, &narrow);
    strategy_of_step(catalogue, &b.ground, &first, 2, &wide);
    CHECK(strategy_get(catalogue, &narrow, "tile-n") < 128);
    CHECK(strategy_get(catalogue, &wide, "tile-n") >= 128);
    CHECK(strategy_get(catalogue, &narrow, "split-k") > 1);
    CHECK(strategy_get(catalogue, &wide, "split-k") == 1);
}

/* ---- the tables ---- */

static const struct {
    const char *name, *text, *says;
} faults[] = {
    {"a line of nothing known", "kind a\nlet b\n", "t.openings:2:1: a line begins with"},
    {"a kind without a name", "kind\n", "t.openings:1:1: a kind needs a name"},
    {"an unknown fact", "kind a length > 3 && lenght > 4\n", "t.openings:1:22: steps of family"},
    {"a fact of another family", "kind a rows > 3\n", "t.openings:1:8: steps of family scan"},
    {"half a condition", "kind a length >\n", "expected a name, a comparison and a number"},
    {"no comparison", "kind a length = 3\n", "t.openings:1:15: expected one of =="},
    {"no integer", "kind a length == b\n", "t.openings:1:18: expected an integer"},
    {"a kind that is none", "kind a\ntry b block=64\nwhy c\n", "t.openings:2:5: no line `kind`"},
    {"no values", "kind a\ntry a\nwhy c\n", "t.openings:2:5: no values"},
    {"no value", "kind a\ntry a block\nwhy c\n", "t.openings:2:7: expected DECISION=VALUE"},
    {"an unknown decision", "kind a\ntry a blok=64\nwhy c\n", "t.openings:2:7: no such decision"},
    {"a value not listed", "kind a\ntry a block=65\nwhy c\n", "t.openings:2:13: not a value of"},
    {"a word for a value", "kind a\ntry a block=x\nwhy c\n",
     "t.openings:2:13: expected an integer"},
    {"not for the shape", "kind a\ntry a block=*\nwhy c\n", "t.openings:2:13: the shape does not"},
    {"of another family", "kind a\ntry a tile-m=*\nwhy c\n", "t.openings:2:14: the shape does not"},
    {"no reason", "kind a\ntry a block=64\ntry a block=128\nwhy c\n",
     "t.openings:3:1: the opening"},
    {"no reason at the end", "kind a\ntry a block=64\n", "the last opening has no line `why`"},
    {"an empty reason", "kind a\ntry a block=64\nwhy \n", "t.openings:3:1: expected the reason"},
    {"a reason for nothing", "why c\n", "t.openings:1:1: `why` follows"},
};

static void test_faults(void) {
    struct openings o;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct err e = {0};
        bool ok = openings_parse(S("t.openings"), "scan", str_view(faults[i].text), catalogue, mem,
                                 &o, &e);
        CHECKF(!ok && strstr(e.text, faults[i].says), "%s: %s", faults[i].name, e.text);
    }
}

/* Every kind that a built-in table names has openings, and its manual has every fact. */
static void test_built_in(void) {
    static const char *const names[] = {
#define STEP_FACT(family, id, name, what) name,
#include "agent/expert/plan/step_facts.def"
#undef STEP_FACT
    };
    struct opening_book book;
    str manual;
    CHECKF(openings_load(NULL, mem, &book, &err), "%s", err.text);
    for (size_t t = 0; t < book.n; t++)
        for (size_t k = 0; k < book.tables[t].nkinds; k++) {
            size_t found = 0;
            for (size_t i = 0; i < book.tables[t].n; i++)
                found += str_eq(book.tables[t].at[i].kind, book.tables[t].kinds[k].name);
            CHECKF(found > 0, "%s %.*s", book.tables[t].family,
                   STR_ARG(book.tables[t].kinds[k].name));
        }
    CHECK(asset_get(NULL, "openings/README", mem, &manual, &err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECKF(str_find(manual, str_view(names[i])) < manual.n, "%s", names[i]);
}

#define SCAN                                                                                       \
    "dim B = 9, D = 600\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\ny[i,j] = sum(k <= j) "   \
    "x[i,k]\n"

/* A folder of the user's changes a first choice, and a mistake in it is told. */
static void test_assets(void) {
    static const char own[] = "kind all length >= 600\ntry all block=64 items=4\nwhy because\n";
    struct agent built_in = expert, mine;
    struct briefing b;
    struct strategy s;
    struct err e = {0};
    char dir[] = "/tmp/cutepilot-openings-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    str folder = arena_printf(mem, "%s/openings", dir);
    str file = arena_printf(mem, "%s/scan.openings", folder.p);
    CHECK(dir_make(folder.p, &e) && file_replace(file.p, str_view(own), &e));
    CHECKF(expert_new(dir, &mine, &e), "%s", e.text);
    expert = mine;
    CHECK(first_of(SCAN, "h200", &b, &s));
    CHECK(strategy_get(catalogue, &s, "block") == 64 && strategy_get(catalogue, &s, "items") == 4);
    expert = built_in;
    mine.release(mine.self);
    CHECK(first_of(SCAN, "h200", &b, &s));
    CHECK(strategy_get(catalogue, &s, "block") == 128 && strategy_get(catalogue, &s, "items") == 2);
    CHECK(file_replace(file.p, S("kind all\ntry all blok=64\n"), &e));
    CHECK(!expert_new(dir, &mine, &e) && strstr(e.text, "openings/scan.openings:2:9: no such"));
    CHECK(dir_remove_tree(dir, &e));
}

static const struct tap_case cases[] = {
    {"tables: faults are told with their place", test_faults},
    {"tables: those that are built in", test_built_in},
    {"tables: a folder of the user's", test_assets},
    {"products: path, tiles and parts by shape", test_products},
    {"steps: each by its own shape", test_steps},
    {"kernels fit the GPU they are written for", test_gpus},
    {"sums are as long as its tensor cores allow", test_chains},
};

int main(void) {
    return writing_main(cases, sizeof cases / sizeof *cases);
}
