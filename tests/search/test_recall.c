/* What a run of another task says here: widths in bytes, values that are not here, where the
 * planner puts it, and runs that have too little in common. */
#include "search/recall.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *c;
static struct err err;
static struct agent expert;

static struct briefing brief(const char *type) {
    struct task *t;
    struct inst *in;
    struct briefing b = {0};
    str text = arena_printf(mem,
                            "task t \"t\"\ndim N = 16777216\nin x[N] : %s ~ normal(0,1)\n"
                            "out y[N] : %s\ny[i] = x[i] + 1\n",
                            type, type);
    CHECKF(task_parse(S("t"), text, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err) &&
               briefing_make(in, c, gpu_at(0), &b, &err),
           "%s", err.text);
    return b;
}

static digest hash_of_run; /* of its task's text */

/* History of one run with these strategies, the first the fastest. */
static void recall_one(const struct briefing *b, enum dtype type, const char *const *texts,
                       size_t n, struct recalled *out) {
    struct history h;
    char hex[65];
    digest_hex(hash_of_run, hex);
    struct history_run run = {.task = S("other"),
                              .shape = S("N=4"),
                              .device = S("cuda:0"),
                              .text_hash = str_view(hex),
                              .arch = 90,
                              .features = {.workload = WORKLOAD_POINTWISE, .dtype = type},
                              .best_s = 1e-5,
                              .n = n};
    run.trials = arena_array(mem, struct history_trial, n);
    for (size_t i = 0; i < n; i++)
        run.trials[i] = (struct history_trial){str_view(texts[i]), 1 + 0.1 * (double)i};
    history_init(&h);
    history_add(&h, &run);
    recall_make(&h, b, mem, out);
    history_release(&h);
}

#define REST "cache-hint=0 dialect=cuda fast-math=0 items=2 persistent=0 "

static void test_widths(void) {
    static const struct {
        const char *here;
        enum dtype there;
        const char *text;
        int64_t width;
    } rows[] = {
        {"f32", DTYPE_F32, REST "block=256 vector-width=4", 4},
        {"f16", DTYPE_F32, REST "block=256 vector-width=4", 8},
        {"f32", DTYPE_F16, REST "block=256 vector-width=8", 4},
        {"f32", DTYPE_F16, REST "block=256 vector-width=1", 1},
        {"f64", DTYPE_F16, REST "block=256 vector-width=8", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct briefing b = brief(rows[i].here);
        struct recalled r;
        recall_one(&b, rows[i].there, &rows[i].text, 1, &r);
        CHECK(r.nruns == 1 && r.nseeds == 1);
        CHECKF(strategy_get(c, &r.seeds[0].strategy, "vector-width") == rows[i].width, "row %zu",
               i);
        CHECK(strategy_get(c, &r.seeds[0].strategy, "items") == 2);
    }
}

static void test_nearest(void) {
    const char *text = REST "block=200 vector-width=4";
    struct briefing b = brief("f32");
    struct recalled r;
    recall_one(&b, DTYPE_F32, &text, 1, &r);
    CHECK(strategy_get(c, &r.seeds[0].strategy, "block") == 256);
}

static void test_overlap(void) {
    const char *text = "tile-m=64 tile-n=64 block=256";
    struct briefing b = brief("f32");
    struct recalled r;
    recall_one(&b, DTYPE_F32, &text, 1, &r);
    CHECK(r.nruns == 0 && r.nseeds == 0 && r.nprecedents == 0);
}

/* Values of single steps are those of the very same task. */
static void test_steps(void) {
    const char *text = REST "block=256 vector-width=4 1:items=4 9:items=4";
    struct briefing b = brief("f32");
    struct recalled r;
    b.ground.step[0] = b.ground.step[1] = WORKLOAD_POINTWISE;
    b.ground.nsteps = 2;
    recall_one(&b, DTYPE_F32, &text, 1, &r);
    CHECK(r.seeds[0].strategy.nown == 0);
    hash_of_run = sha256_of(b.inst->task->text);
    recall_one(&b, DTYPE_F32, &text, 1, &r);
    str adopted = strategy_as_text(c, &r.seeds[0].strategy, mem);
    CHECKF(str_find(adopted, S(" 1:items=4")) + 10 == adopted.n, "%.*s", STR_ARG(adopted));
    CHECK(strategy_equal(c, &r.precedents[0].strategy, &r.seeds[0].strategy));
    hash_of_run = (digest){0};
}

struct plan {
    struct strategy at[8];
    size_t n;
};
static void take(void *ctx, const struct strategy *s, size_t n, str reason, const struct err *e) {
    struct plan *p = ctx;
    (void)reason;
    for (size_t i = 0; !e && i < n && p->n < 8; i++)
        p->at[p->n++] = s[i];
}

/* An opening stays first; history takes the places of strangers, not those of openings. */
static void test_places(void) {
    static const char *const texts[] = {REST "block=64 vector-width=1",
                                        REST "block=128 vector-width=1"};
    struct briefing b = brief("f32");
    struct recalled r;
    struct plan cold = {.n = 0}, warm = {.n = 0};
    struct rng stream = rng_stream(1, S("plan"));
    recall_one(&b, DTYPE_F32, texts, 2, &r);
    expert.plan(expert.self, &b, 8, stream, take, &cold);
    b.history = r.seeds;
    b.nhistory = r.nseeds;
    expert.plan(expert.self, &b, 8, stream, take, &warm);
    CHECK(cold.n == 8 && warm.n == 8 && r.nseeds == 2);
    for (size_t i = 0; i < 8; i++) {
        bool seed = i == 1 || i == 2;
        const struct strategy *want = seed ? &r.seeds[i - 1].strategy : &cold.at[i];
        CHECKF(strategy_equal(c, &warm.at[i], want), "place %zu", i);
    }
}

static const struct tap_case cases[] = {
    {"widths carry over as bytes", test_widths}, {"values that are not here", test_nearest},
    {"too little in common", test_overlap},      {"values of single steps", test_steps},
    {"places in the plan", test_places},
};

int main(void) {
    mem = arena_new((size_t)256 << 20);
    if (!catalogue_load(NULL, mem, &c, &err) || !expert_new(NULL, &expert, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
