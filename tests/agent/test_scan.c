/* The scan family: which folds it takes, and that every decision of it is found in the text. What
 * the kernels compute is verified by tests/expert. */
#include "agent/expert/sheet.h"
#include "kernel/candidate.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *catalogue;
static struct agent expert;
static struct err err;

static struct inst *bind(const char *text) {
    struct task *t;
    struct inst *in = NULL;
    str whole = arena_printf(mem, "task t \"T\"\n%s", text);
    if (!task_parse(S("test.task"), whole, mem, &t, &err) || !task_bind(t, NULL, 0, mem, &in, &err))
        return NULL;
    return in;
}

/* ---- claims ---- */

struct claim_case {
    const char *name, *text;
    const char *want; /* a letter for each statement of the form: x taken, - not; "" no claim */
};

#define MATRIX "dim B = 64, D = 1024\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\n"

static const struct claim_case claims[] = {
    {"up to here", MATRIX "y[i,j] = sum(k <= j) x[i,k]\n", "x"},
    {"before here", MATRIX "y[i,j] = max(k < j) x[i,k]\n", "x"},
    {"from here", MATRIX "y[i,j] = prod(j <= k < D) x[i,k]\n", "x"},
    {"behind here", MATRIX "y[i,j] = min(j < k < D) x[i,k]\n", "x"},
    {"down the columns", MATRIX "y[i,j] = mean(k <= i) x[k,j]\n", "x"},
    {"by a guard", MATRIX "y[i,j] = sum(k < D | k >= j) x[i,k]\n", "x"},
    {"with a guard on the data", MATRIX "y[i,j] = sum(k <= j | x[i,k] > 0) x[i,k]\n", "x"},
    {"not a mean of what data select", MATRIX "y[i,j] = mean(k <= j | x[i,k] > 0) x[i,k]\n", ""},
    {"not with a shift", MATRIX "y[i,j] = sum(k < j - 2) x[i,k]\n", ""},
    {"not from another place on", MATRIX "y[i,j] = sum(1 <= k < j) x[i,k]\n", ""},
    {"not up to another row's end", MATRIX "y[i,j] = sum(k <= i) x[i,k]\n", ""},
    {"not the whole row", MATRIX "y[i,j] = sum(k < D) x[i,k]\n", ""},
    {"not arguments",
     "dim D = 8\nin x[D] : f32 ~ ones\nout y[D] : i32\ny[j] = argmax(k <= j) x[k]\n", ""},
    {"not in place", "dim D = 8\ninout x[D] : f32 ~ ones\nx[j] = sum(k <= j) x[k]\n", ""},
    {"maps of the result", MATRIX "y[i,j] = sqrt(1 + sum(k <= j) x[i,k]) * x[i,j]\n", "xx"},
    {"not maps of other places",
     MATRIX "let s[i, j < D] = sum(k <= j) x[i,k]\ny[i,j] = s[i,j] - s[i,D-1]\n", "x-"},
};

static void test_claims(void) {
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        const struct claim_case *c = &claims[i];
        struct inst *in = bind(c->text);
        struct form_options o = {.operands = true};
        struct form f;
        struct briefing b = {.inst = in, .gpu = gpu_find(S("h200"))};
        bool done[TASK_MAX_STATEMENTS] = {false}, take[TASK_MAX_STATEMENTS] = {false};
        CHECKF(in && form_make(in, &o, mem, &f, &err), "%s: %s", c->name, err.text);
        if (!in)
            continue;
        bool ok = family_scan.claim(&b, &f, done, 0, take);
        CHECKF(ok == (c->want[0] != 0), "%s", c->name);
        for (size_t s = 0; ok && c->want[s]; s++)
            CHECKF(s < f.task->nstatements && take[s] == (c->want[s] == 'x'), "%s: statement %d",
                   c->name, (int)s);
    }
}

/* ---- text ---- */

struct written {
    str source;
    bool ok;
};

static void on_code(void *ctx, str source, const struct err *e) {
    struct written *w = ctx;
    w->ok = !e;
    if (e)
        err = *e;
    else
        w->source = arena_str(mem, source);
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

static str write(const char *task, const char *strategy) {
    struct briefing b;
    struct strategy s;
    struct written w = {0};
    struct inst *in = bind(task);
    if (!in || !briefing_make(in, catalogue, gpu_find(S("h200")), &b, &err) ||
        !strategy_parse(catalogue, str_view(strategy), &s, &err))
        return S("");
    strategy_repair(catalogue, &b.ground, &s);
    expert.code(expert.self, &b, &s, on_code, &w);
    return w.ok && parses(&b, w.source) ? w.source : S("");
}

#define ROWS(columns)                                                                              \
    "dim B = 64, D = " columns "\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\n"               \
    "y[i,j] = sum(k <= j) x[i,k]\n"
#define REVERSED MATRIX "y[i,j] = sum(j <= k < D) x[i,k]\n"
#define COLUMNS  MATRIX "y[i,j] = max(k <= i) x[k,j]\n"
#define PRODUCTS MATRIX "y[i,j] = prod(k <= j) x[i,k]\n"
#define COUNTS                                                                                     \
    "dim B = 64, D = 1024\nin x[B,D] : i32 ~ randint(0,9)\nout y[B,D] : i64\n"                     \
    "y[i,j] = sum(k < j) x[i,k]\n"

struct text_case {
    const char *name, *task, *strategy;
    const char *has, *lacks; /* NULL: nothing */
};
static const struct text_case texts[] = {
    {"a block a row", ROWS("1024"), "block=128", "<<<B, 128>>>", "parts"},
    {"a warp a row", ROWS("1024"), "block=128 scan-warp=1", "<<<ceil_div(B, 4), 128>>>",
     "__syncthreads"},
    {"width", ROWS("1024"), "vector-width=4", "x_now[m] = cp_load<4>(x", NULL},
    {"width needs rows of vectors", ROWS("1024"), "vector-width=4", "//! require D % 4 == 0", NULL},
    {"rows of no vectors", ROWS("1023"), "vector-width=4", "cp_load<1>", "% 4 == 0"},
    {"items", ROWS("1024"), "items=4 vector-width=2 block=64", "chunk += 512", NULL},
    {"vectors fit registers", ROWS("1024"), "items=8 vector-width=8 block=64", "chunk += 1024",
     NULL},
    {"prefetch", ROWS("1024"), "prefetch=1", "x_next[m] = cp_load", NULL},
    {"no prefetch", ROWS("1024"), "prefetch=0", "x_now[m] = cp_load", "x_next"},
    {"parts", ROWS("1024"), "scan-split=16 block=64", "<<<B*16, 64>>>(x, y", "atomicAdd"},
    {"totals of parts", ROWS("1024"), "scan-split=16 block=64", "scan_y_totals<<<B*16, 64>>>",
     NULL},
    {"look-back", ROWS("1024"), "scan-lookback=1", "cp_observe(", "parts"},
    {"look-back starts from zero", ROWS("1024"), "scan-lookback=1", "//! memset progress = 0",
     NULL},
    {"integers do not look back", COUNTS, "scan-lookback=1", "long long carry = 0LL", "cp_observe"},
    {"streaming", ROWS("1024"), "cache-hint=1", "__ldcs(", NULL},
    {"no streaming", ROWS("1024"), "cache-hint=0", "from[w]", "__ldcs("},
    {"from the end", REVERSED, "vector-width=4", "x + i * D + (D - 4 - p)", NULL},
    {"products in double", PRODUCTS, "", "double carry = 1.0", NULL},
    {"columns", COLUMNS, "block=64 vector-width=4", "<<<ceil_div(D, 256), 64>>>", "__shfl"},
    {"columns in parts", COLUMNS, "scan-split=4 block=64", "<<<[ceil_div(D, 64), 4], 64>>>", NULL},
    {"columns know no warps", COLUMNS, "scan-warp=1", "In stretches of 1024", "warp_scan"},
};

static void test_texts(void) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct text_case *c = &texts[i];
        err = (struct err){0};
        str s = write(c->task, c->strategy);
        CHECKF(s.n, "%s: %s", c->name, err.text);
        CHECKF(!c->has || str_find(s, str_view(c->has)) < s.n, "%s: no %s", c->name, c->has);
        CHECKF(!c->lacks || str_find(s, str_view(c->lacks)) == s.n, "%s: %s", c->name, c->lacks);
    }
}

/* ---- any strategy ---- */

static const char *const tasks[] = {ROWS("1000"), ROWS("300000"), REVERSED,
                                    COLUMNS,      PRODUCTS,       COUNTS};

static void test_any_strategy(void) {
    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
        struct briefing b;
        struct inst *in = bind(tasks[t]);
        CHECKF(in && briefing_make(in, catalogue, gpu_find(S("h200")), &b, &err), "%s", err.text);
        for (uint64_t i = 0; in && i < 100; i++) {
            struct strategy s;
            struct written w = {0};
            struct rng r = rng_stream(i, S("scan"));
            strategy_random(catalogue, &b.ground, r, &s);
            expert.code(expert.self, &b, &s, on_code, &w);
            CHECKF(w.ok && parses(&b, w.source), "task %d, strategy %d: %s", (int)t, (int)i,
                   err.text);
        }
    }
}

int main(void) {
    mem = arena_new((size_t)1 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err) || !expert_new(NULL, &expert, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    const struct tap_case cases[] = {
        {"claims", test_claims},
        {"decisions in the text", test_texts},
        {"any strategy", test_any_strategy},
    };
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
