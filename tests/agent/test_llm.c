/* The roles on a scripted provider: what they are told, how replies are taken, what happens to the
 * ones that cannot be. */
#include "scripted.h"

#include "agent/llm/llm.h"

#define REPLY_SOURCE(text) "IDEA: go\n```cuda\n" text "```\n"
#define KERNEL             "//! launch k<<<1, 32>>>(x, y)\nvoid k() {}\n"

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;

static struct briefing brief(const char *text) {
    struct task *t;
    struct inst *in;
    struct briefing b = {0};
    bool ok = task_parse(S("t.task"), str_view(text), mem, &t, &err) &&
              task_bind(t, NULL, 0, mem, &in, &err) &&
              briefing_make(in, catalogue, gpu_find(S("h200")), &b, &err);
    CHECKF(ok, "%s", err.text);
    return b;
}

static const char pointwise[] = "task gelu \"GELU\"\ndim R = 1024, C = 2048\n"
                                "in x[R,C] : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
                                "y[i,j] = 0.5 * x[i,j] * (1 + erf(x[i,j] * 0.7))\n"
                                "check R = 3, C = 5\n";
static const char product[] = "task product \"P\"\ndim M = 4096, N = 4096, K = 4096\n"
                              "in a[M,K] : bf16 ~ normal(0,1)\nin b[K,N] : bf16 ~ normal(0,1)\n"
                              "out c[M,N] : bf16\nc[i,j] = sum(k) a[i,k] * b[k,j]\n"
                              "check M = 64, N = 64, K = 64\naccuracy bf16\n";

struct answer {
    size_t calls, n;
    struct strategy s[16];
    str text, idea;
    struct err err;
};

static void on_plan(void *ctx, const struct strategy *s, size_t n, str reason,
                    const struct err *e) {
    struct answer *a = ctx;
    a->calls++;
    a->n = n;
    if (e)
        a->err = *e;
    for (size_t i = 0; i < n && i < 16; i++)
        a->s[i] = s[i];
    a->idea = arena_str(mem, reason);
}

static void on_code(void *ctx, str source, const struct strategy *written, const struct err *e) {
    (void)written;
    struct answer *a = ctx;
    a->calls++;
    a->text = arena_str(mem, source);
    if (e)
        a->err = *e;
}

static void on_edit(void *ctx, str source, str idea, const struct err *e) {
    struct answer *a = ctx;
    on_code(ctx, source, NULL, e);
    a->idea = arena_str(mem, idea);
}

static struct strategy fallback(const struct briefing *b) {
    struct strategy s;
    strategy_fallback(b->catalogue, &b->ground, &s);
    return s;
}

/* ---- coder ---- */

static void test_coder(void) {
    static const struct script_entry script[] = {{"coder", REPLY_SOURCE(KERNEL), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 1);
    struct llm_options o = {0};
    struct agent agent;
    struct answer a = {0};
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    llm_new(&p, &o, &agent);
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECKF(a.calls == 1 && a.err.kind == ERR_NONE && str_is(a.text, KERNEL), "%s", a.err.text);
    CHECK(script_told(&s, 0, "task gelu") && script_told(&s, 0, "NVIDIA H200"));
    CHECK(script_told(&s, 0, "R=1024 C=2048") && script_told(&s, 0, "The candidate form"));
    CHECK(script_told(&s, 0, "- vector-width=1: Elements in one access. The hardware"));
    CHECK(script_told(&s, 0, "- dialect=cuda: What the kernel is written in."));
    CHECK(!script_told(&s, 0, "256 is right more often")); /* for who chooses */
    CHECK(!script_told(&s, 0, "# CuTe") && !script_told(&s, 0, "${"));
    CHECK(script_told(&s, 0, "Accuracy class `fp32`") && !script_told(&s, 0, "two TF32 numbers"));
    /* The chosen value's prose, and no other's. */
    CHECK(script_told(&s, 0, "- cache-hint=0: ordinary loads and stores.\n"));
    CHECK(!script_told(&s, 0, "__ldcs"));
    CHECKF(s.bytes < 16 * 1024, "%zu bytes", s.bytes);
    agent.release(agent.self);
}

static void test_coder_cute(void) {
    static const struct script_entry script[] = {{"coder", REPLY_SOURCE(KERNEL), 0},
                                                 {"coder", REPLY_SOURCE(KERNEL), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 2);
    struct llm_options o = {.prompt = {.cute = true}};
    struct agent agent;
    struct answer a = {0};
    struct briefing b = brief(product);
    struct strategy st = fallback(&b);
    llm_new(&p, &o, &agent);
    CHECK(strategy_put(catalogue, &st, "tensor-path", 1));
    CHECK(strategy_put(catalogue, &st, "swizzle", 1));
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(script_told(&s, 0, "## CuTe: TiledMMA") && script_told(&s, 0, "## CuTe: swizzles"));
    CHECK(script_told(&s, 0, "## CuTe: pipelines") && !script_told(&s, 0, "## CuTe: wgmma"));
    CHECKF(s.bytes < 36 * 1024, "%zu bytes", s.bytes);
    CHECK(strategy_put(catalogue, &st, "tensor-path", 2));
    size_t before = s.bytes;
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(script_told(&s, 1, "## CuTe: wgmma") && script_told(&s, 1, "## CuTe: TMA"));
    CHECK(!script_told(&s, 1, "## CuTe: TiledMMA"));
    CHECKF(s.bytes - before < 36 * 1024, "%zu bytes", s.bytes - before);
    agent.release(agent.self);
}

static void test_coder_plain(void) {
    static const struct script_entry script[] = {{"coder", REPLY_SOURCE(KERNEL), 0},
                                                 {"coder", REPLY_SOURCE(KERNEL), 0},
                                                 {"coder", REPLY_SOURCE(KERNEL), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 3);
    struct llm_options o = {0};
    struct agent agent;
    struct answer a = {0};
    struct briefing b = brief(product);
    struct strategy st = fallback(&b);
    llm_new(&p, &o, &agent);
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(script_told(&s, 0, "Accuracy class `bf16`") && !script_told(&s, 0, "# Tensor cores"));
    CHECK(strategy_put(catalogue, &st, "tensor-path", 1));
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(script_told(&s, 1, "# Tensor cores") && script_told(&s, 1, "cp.async.wait_group"));
    CHECK(script_told(&s, 1, "- tensor-path=1: tensor cores through mma.sync"));
    CHECK(!script_told(&s, 1, "tensor cores through wgmma"));
    CHECK(script_told(&s, 1, "- warps=8: "));
    CHECK(strategy_put(catalogue, &st, "tensor-path", 2));
    size_t before = s.bytes;
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(script_told(&s, 2, "64-bit descriptors") && !script_told(&s, 2, "cp.async.wait_group"));
    CHECK(!script_told(&s, 2, "- warps=8: ")); /* without meaning there */
    CHECKF(s.bytes - before < 24 * 1024, "%zu bytes", s.bytes - before);
    agent.release(agent.self);
}

/* A reply that cannot be read is complained about, and the request ends after so many. */
static void test_complaints(void) {
    static const struct script_entry script[] = {
        {"coder", "Certainly! I cannot see the task.", 0},
        {"coder", REPLY_SOURCE(KERNEL), 0},
        {"coder", "no", 0},
        {"coder", "no", 0},
        {"coder", "still no", 0},
        {"coder", NULL, ERR_ENV},
    };
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 6);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    llm_new(&p, &o, &agent);
    struct answer a = {0};
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(a.calls == 1 && str_is(a.text, KERNEL) && s.nasked == 2);
    CHECK(script_told(&s, 1, "there is no fenced source block"));
    CHECK(script_told(&s, 1, "I cannot see the task.") && script_told(&s, 1, "task gelu"));
    CHECK(s.asked[0].ordinal == 0 && s.asked[1].ordinal == 1);
    a = (struct answer){0};
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECKF(a.calls == 1 && a.err.kind == ERR_INPUT && strstr(a.err.text, "no usable reply"), "%s",
           a.err.text);
    CHECK(s.nasked == 5 && s.asked[2].ordinal == LLM_TRIES);
    a = (struct answer){0};
    agent.code(agent.self, &b, &st, on_code, &a);
    CHECK(a.calls == 1 && a.err.kind == ERR_NO); /* nobody answers: the run ends */
    agent.release(agent.self);
}

/* ---- strategists ---- */

static void test_planner(void) {
    static const struct script_entry script[] = {
        {"planner",
         "IDEA: wide\n```strategy\nvector-width=4 items=2 # hold the row\nblock=7\nblock=512\n```",
         0},
        {"coder", REPLY_SOURCE(KERNEL), 0},
        {"planner", "```strategy\nwidth=4\n```", 0},
        {"planner", "```strategy\nvector-width=4\n```", 0},
    };
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 4);
    struct llm_options o = {0};
    struct tried before = {.time_s = 1.25, .where = S("tanh at R=8, whose best took 9 us")};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct answer a = {0}, c = {0};
    struct rng r = rng_stream(1, S("t"));
    before.strategy = fallback(&b);
    strategy_put(catalogue, &before.strategy, "items", 8);
    b.history = &before;
    b.nhistory = 1;
    llm_new(&p, &o, &agent);
    agent.plan(agent.self, &b, 4, r, on_plan, &a);
    CHECKF(a.calls == 1 && a.n == 3 && str_is(a.idea, "wide"), "%zu", a.n);
    CHECK(strategy_get(catalogue, &a.s[0], "vector-width") == 4);
    CHECK(strategy_get(catalogue, &a.s[1], "block") == 512);
    struct strategy f = fallback(&b);
    CHECK(strategy_equal(catalogue, &a.s[2], &f));
    CHECK(script_told(&s, 0, "Propose 3 different strategies for a first generation"));
    CHECK(script_told(&s, 0, "with every decision at its default is tried besides"));
    CHECK(script_told(&s, 0, "memory-bound") &&
          script_told(&s, 0, "- 1.25: `block=256 cache-hint=0 dialect=cuda fast-math=0 items=8"));
    CHECK(script_told(&s, 0, "`: tanh at R=8, whose best took 9 us\n"));
    CHECK(script_told(&s, 0, "- dialect=cuda, given, not to be chosen. What the kernel is"));
    CHECK(!script_told(&s, 0, "//! launch"));
    agent.code(agent.self, &b, &a.s[0], on_code, &c);
    CHECK(script_told(&s, 1, "this counts: hold the row"));
    a = (struct answer){0};
    agent.plan(agent.self, &b, 1, r, on_plan, &a);
    CHECK(a.calls == 1 && a.n == 1 && script_told(&s, 3, "no decision is called `width`"));
    agent.release(agent.self);
}

/* Where strategies are written in turn, only so many are asked for as may be. */
static void test_planner_in_turn(void) {
    static const struct script_entry script[] = {{"planner", "```strategy\nblock=512\n```", 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 1);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct answer a = {0};
    b.in_turn = true;
    llm_new(&p, &o, &agent);
    agent.plan(agent.self, &b, 3, rng_stream(1, S("t")), on_plan, &a);
    CHECK(a.n == 2 && script_told(&s, 0, "Propose 2 strategies for a first version"));
    CHECK(script_told(&s, 0, "block=256 cache-hint=0 fast-math=0  # what no decision says"));
    agent.release(agent.self);
}

/* What was tried is listed, with remarks and times; each of the children that are asked for
 * together gets a direction of its own. Remarks tell a planner's strategies apart, and a child's
 * where it is to leave the structure. */
static void test_children(void) {
    static const struct script_entry script[] = {
        {"planner", "```strategy\nblock=512 # two rows a warp\nblock=512 # the second\n```", 0},
        {"crossover", "```strategy\nblock=64 # for place 0\n```", 0},
        {"crossover", "```strategy\nblock=128\n```", 0},
        {"crossover", "```strategy\nblock=512 # by bulk copies\n```", 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 4);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct answer a = {0};
    llm_new(&p, &o, &agent);
    agent.plan(agent.self, &b, 2, rng_stream(1, S("t")), on_plan, &a);
    CHECK(a.n == 2 && !strategy_equal(catalogue, &a.s[0], &a.s[1]));
    struct strategy second = a.s[1];
    struct parent x = {a.s[0], 2e-5}, y = {fallback(&b), 1e-5};
    struct tried tried[] = {{x.strategy, 9e-5, S("k 88 us, latency-bound")}, /* the same, once */
                            {x.strategy, 2e-5, S("k 18 us, dram-bound")},    /* it is aligned */
                            {y.strategy, 1e-5, S("")},
                            {fallback(&b), INFINITY, S("")},
                            {second, 3e-5, S(""), &y.strategy}};
    strategy_put(catalogue, &tried[3].strategy, "items", 8);
    b.tried = tried;
    b.ntried = 5;
    for (b.place = 0; b.place < 3; b.place++) {
        agent.cross(agent.self, &b, &x, &y, rng_stream(3, S("t")), on_plan, &a);
        CHECK((a.s[0].remark != 0) == (b.place == 2));
    }
    CHECK(!strategy_equal(catalogue, &a.s[0], &x.strategy));
    CHECK(script_told(&s, 3, "Leave the parents' structure") && !script_told(&s, 3, "* Leave"));
    CHECK(script_told(&s, 3, "in its decisions or in what stands behind `#`."));
    CHECK(script_told(&s, 1, "# two rows a warp`, 20 us: k 18 us, dram-bound"));
    CHECK(!script_told(&s, 1, "k 88 us"));
    CHECK(script_told(&s, 1, "  # the second`, asked for as `block=256") &&
          script_told(&s, 1, "whatever stands behind"));
    CHECK(script_told(&s, 1, "# What was tried in this run\n\n- 10 us: `"));
    CHECK(
        script_told(&s, 1, "- rejected: `block=256 cache-hint=0 dialect=cuda fast-math=0 items=8"));
    CHECK(script_told(&s, 1, "Take from each parent") && !script_told(&s, 2, "Take from each"));
    CHECK(script_told(&s, 2, "Start from the faster parent"));
    agent.release(agent.self);
}

static void test_roofline_off(void) {
    static const struct script_entry script[] = {{"planner", "```strategy\nblock=512\n```", 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 1);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct answer a = {0};
    b.blind = true;
    llm_new(&p, &o, &agent);
    agent.plan(agent.self, &b, 1, rng_stream(1, S("t")), on_plan, &a);
    CHECK(!script_told(&s, 0, "memory-bound") && !script_told(&s, 0, "Roofline"));
    CHECK(!script_told(&s, 0, "tasks like this one"));
    agent.release(agent.self);
}

static void test_crossover(void) {
    static const struct script_entry script[] = {
        {"coder", REPLY_SOURCE(KERNEL "// first\n"), 0},
        {"coder", REPLY_SOURCE(KERNEL "// second\n"), 0},
        {"crossover", "IDEA: both\n```strategy\nblock=512 vector-width=4\n```", 0},
        {"coder", REPLY_SOURCE(KERNEL "// third\n"), 0},
    };
    for (int code = 0; code < 2; code++) {
        struct scripted s;
        struct script_entry without[] = {script[0], script[1], script[3]};
        struct provider p = script_provider(&s, mem, code ? without : script, code ? 3 : 4);
        struct llm_options o = {.cross_code = code};
        struct agent agent;
        struct briefing b = brief(pointwise);
        struct answer a = {0}, child = {0};
        struct parent x = {fallback(&b), 2e-5}, y = {fallback(&b), 1e-5};
        strategy_put(catalogue, &y.strategy, "block", 512);
        llm_new(&p, &o, &agent);
        agent.code(agent.self, &b, &x.strategy, on_code, &a);
        agent.code(agent.self, &b, &y.strategy, on_code, &a);
        agent.cross(agent.self, &b, &x, &y, rng_stream(3, S("t")), on_plan, &child);
        CHECK(child.calls == 1 && child.n == 1);
        agent.code(agent.self, &b, &child.s[0], on_code, &a);
        size_t last = s.nasked - 1;
        CHECK(s.nasked == (code ? 3 : 4));
        CHECK(script_told(&s, last, "// first") == (code == 1));
        CHECK(script_told(&s, last, "// second") == (code == 1));
        CHECK(script_told(&s, last, "The second: `block=512") == (code == 1));
        CHECK(script_told(&s, last, "`, 10 us") == (code == 1));
        if (!code)
            CHECK(script_told(&s, 2, "20 us") && script_told(&s, 2, "10 us") &&
                  !script_told(&s, 2, "// first"));
        agent.release(agent.self);
    }
}

static void test_aligner(void) {
    static const struct script_entry script[] = {
        {"coder", REPLY_SOURCE(KERNEL), 0},
        {"aligner", "```strategy\nblock=256 vector-width=1\n```", 0},
        {"coder", "INSTEAD: items=1, registers\n" REPLY_SOURCE(KERNEL), 0},
        {"aligner", "```strategy\nblock=256 items=1 # rows by warps\n```", 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 4);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    struct answer a = {0}, c = {0};
    char hex[65];
    strategy_put(catalogue, &st, "vector-width", 4);
    llm_new(&p, &o, &agent);
    agent.code(agent.self, &b, &st, on_code, &c);
    struct record *record = record_parse(
        S("{\"verdict\": \"accepted\", \"kernels\": [{\"name\": \"k\", \"census\": {\"forms\": "
          "{\"ld.global.32\": 1}}}]}"),
        &err);
    digest_hex(sha256_of(S(KERNEL)), hex);
    record->source_sha256 = str_view(hex);
    struct strategy narrow = fallback(&b); /* nothing contradicts it */
    agent.align(agent.self, &b, &narrow, &narrow, record, on_plan, &a);
    CHECK(a.calls == 1 && s.nasked == 1 && strategy_equal(catalogue, &a.s[0], &narrow));
    a = (struct answer){0};
    agent.align(agent.self, &b, &st, &st, record, on_plan, &a);
    CHECK(a.calls == 1 && a.n == 1 && strategy_get(catalogue, &a.s[0], "vector-width") == 1);
    CHECK(script_told(&s, 1, "void k() {}") && script_told(&s, 1, "vector-width=4"));
    CHECK(script_told(&s, 1, "shows against it: vector-width=1, not 4: the widest access"));
    narrow.remark = 7; /* told apart by what was said of it */
    agent.code(agent.self, &b, &narrow, on_code, &c);
    a = (struct answer){0};
    agent.align(agent.self, &b, &narrow, &narrow, record, on_plan, &a);
    CHECK(s.nasked == 4 && script_told(&s, 3, "did instead: items=1, registers"));
    CHECK(a.n == 1 && a.s[0].remark == 7);
    record->source_sha256 = S("of somebody else");
    a = (struct answer){0};
    agent.align(agent.self, &b, &st, &st, record, on_plan, &a);
    CHECK(a.calls == 1 && s.nasked == 4 && strategy_equal(catalogue, &a.s[0], &st));
    record->source_sha256 = str_view(hex);
    b.outlook.candidates = 0; /* nobody will be its child: by rule */
    a = (struct answer){0};
    agent.align(agent.self, &b, &st, &st, record, on_plan, &a);
    CHECK(a.calls == 1 && s.nasked == 4 && strategy_get(catalogue, &a.s[0], "vector-width") == 1);
    record_free(record);
    agent.release(agent.self);
}

/* ---- debugger and optimizer ---- */

#define EDIT(a, b) "IDEA: mend\n<<<<<<< SEARCH\n" a "\n=======\n" b "\n>>>>>>> REPLACE\n"

static struct outcome *outcome(const char *record) {
    struct record *r = record_parse(str_view(record), &err);
    CHECKF(r, "%s", err.text);
    return r ? outcome_of(r) : NULL;
}

static void test_debugger(void) {
    static const struct script_entry script[] = {
        {"debugger", EDIT("void q() {}", "void k() { }"), 0},
        {"debugger", EDIT("void k() {}", "void k() { }"), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 2);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    struct outcome *w = outcome("{\"verdict\": \"wrong\", \"why\": \"3 of 15 elements are off\"}");
    struct attempt at = {&st, S("\n" KERNEL "\n\n\n// end\n\n"), w};
    struct answer a = {0};
    llm_new(&p, &o, &agent);
    agent.debug(agent.self, &b, &at, S("- a barrier: still wrong\n"), on_edit, &a);
    CHECKF(a.calls == 1 && str_is(a.idea, "mend"), "%s", a.err.text);
    CHECKF(str_is(a.text, "//! launch k<<<1, 32>>>(x, y)\nvoid k() { }\n\n\n\n// end\n"), "%.*s",
           STR_ARG(a.text));
    CHECK(script_told(&s, 0, "{}\n\n\n\n// end\n```") && !script_told(&s, 0, "\n\n\n#"));
    CHECK(script_told(&s, 0, "Verdict: wrong") && script_told(&s, 0, "a barrier: still wrong"));
    CHECK(script_told(&s, 1, "edit 1: its SEARCH lines do not occur"));
    outcome_free(w);
    agent.release(agent.self);
}

static void test_optimizer(void) {
    static const struct script_entry script[] = {
        {"optimizer", EDIT("void k() {}", "void k() { }"), 0},
        {"optimizer", REPLY_SOURCE(KERNEL), 0},
        {"optimizer", EDIT("void k() {}", "void k() { }"), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 3);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    struct outcome *w = outcome("{\"verdict\": \"accepted\", \"why\": \"\", \"time_s\": 2e-5, "
                                "\"kernels\": [{\"name\": \"k\", \"registers\": 77}]}");
    struct attempt at = {&st, S(KERNEL), w};
    struct answer a = {0};
    struct guidance g = {STAGE_STRUCTURE, false, S("- wider loads: no gain\n"), .rounds = 2,
                         .gain = 0.005};
    llm_new(&p, &o, &agent);
    agent.improve(agent.self, &b, &at, &g, on_edit, &a);
    CHECK(a.calls == 1 && a.text.n);
    CHECK(script_told(&s, 0, "20 us") && script_told(&s, 0, "wider loads: no gain"));
    CHECK(script_told(&s, 0, "The stage: structure") && script_told(&s, 0, "One pass"));
    CHECK(!script_told(&s, 0, "16 bytes a lane and access; a scalar path"));
    CHECK(!script_told(&s, 0, "77 registers"));
    g = (struct guidance){STAGE_DETAILS, true, S(""), .rounds = 1, .gain = 0.005};
    a = (struct answer){0};
    agent.improve(agent.self, &b, &at, &g, on_edit, &a); /* what it was shown, sent back */
    CHECK(a.calls == 1 && script_told(&s, 1, "77 registers") && script_told(&s, 1, "Nothing yet"));
    CHECK(script_told(&s, 1, "16 bytes a lane and access; a scalar path"));
    CHECK(script_told(&s, 2, "the source is the one you were shown"));
    outcome_free(w);
    agent.release(agent.self);
}

/* The launch is in the simulator's time and not in the limit; small products have a menu of their
 * own; what a source has is not on the menu. */
static void test_optimizer_terms(void) {
    static const char small[] = "task small \"P\"\ndim M = 64, N = 64, K = 64\n"
                                "in a[M,K] : f32 ~ normal(0,1)\nin b[K,N] : f32 ~ normal(0,1)\n"
                                "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k] * b[k,j]\n"
                                "check M = 4, N = 4, K = 4\naccuracy tf32\n";
    static const struct script_entry script[] = {{"optimizer", "IDEA: none\n", 0},
                                                 {"optimizer", "DONE: all is there\n", 0},
                                                 {"optimizer", "DONE: all is there\n", 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 3);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(small);
    struct strategy st = fallback(&b);
    struct outcome *w = outcome("{\"verdict\": \"accepted\", \"why\": \"\", \"time_s\": 6.2e-6, "
                                "\"estimated\": true, \"estimate\": [{}, {}]}");
    struct attempt at = {&st, S(KERNEL "// mma.sync\n"), w};
    struct answer a = {0};
    struct guidance g = {.stage = STAGE_STRUCTURE, .rounds = 2, .gain = 0.005};
    llm_new(&p, &o, &agent);
    agent.improve(agent.self, &b, &at, &g, on_edit, &a);
    CHECK(a.calls == 1 && !a.text.n && a.err.kind == ERR_NONE);
    CHECK(script_told(&s, 0,
                      "6.2 us by the simulator's estimate, of which 4.4 us are its 2 launches"));
    CHECK(script_told(&s, 0, "the rest, 1.8 us, stands against the limit of"));
    CHECK(script_told(&s, 0, "us and one latency of DRAM, 0.4"));
    CHECK(script_told(&s, 0, "falls by 0.031 us;") &&
          script_told(&s, 0, "After 2 more rounds without gain"));
    CHECK(script_told(&s, 0, "As many blocks as there are SMs") && !script_told(&s, 0, "128x256"));
    CHECK(script_told(&s, 0, "a warp's fragments of `mma.sync`"));
    CHECK(!script_told(&s, 0, "task multiplied")); /* it runs */
    CHECK(!script_told(&s, 0, "Tensor cores by mma.sync where the class allows them; for so"));
    at.source = S(KERNEL);
    agent.improve(agent.self, &b, &at, &g, on_edit, &a);
    CHECK(script_told(&s, 1, "- Tensor cores by mma.sync where the class allows them; for so"));
    b.roofline.limit_s = 1e-3;
    CHECK(briefing_floor(&b, false) == 1e-3 && briefing_floor(&b, true) == 1e-3 + b.gpu->launch_s);
    agent.improve(agent.self, &b, &at, &g, on_edit, &a);
    CHECK(script_told(&s, 2, "128x256") && !script_told(&s, 2, "As many blocks as there"));
    outcome_free(w);
    agent.release(agent.self);
}

/* ---- in flight ---- */

static void test_in_flight(void) {
    static const struct script_entry script[] = {{"coder", REPLY_SOURCE(KERNEL "// 0\n"), 0},
                                                 {"coder", REPLY_SOURCE(KERNEL "// 1\n"), 0},
                                                 {"coder", REPLY_SOURCE(KERNEL "// 2\n"), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 3);
    struct llm_options o = {0};
    struct agent agent;
    struct briefing b = brief(pointwise);
    struct strategy st = fallback(&b);
    struct answer a[3] = {0};
    s.late = loop_new(&err);
    llm_new(&p, &o, &agent);
    agent.code(agent.self, &b, &st, on_code, &a[0]);
    agent.code(agent.self, &b, &st, on_code, &a[1]);
    CHECK(s.most_open == 2 && a[0].calls == 0);
    while (!a[0].calls && loop_step(s.late, 100, &err))
        ;
    CHECK(a[1].calls == 1 && str_is(a[0].text, KERNEL "// 0\n"));
    CHECK(str_is(a[1].text, KERNEL "// 1\n"));
    agent.code(agent.self, &b, &st, on_code, &a[2]);
    agent.release(agent.self); /* with one open */
    CHECK(s.cancelled == 1 && a[2].calls == 0);
    loop_free(s.late);
}

static void test_hybrid(void) {
    static const struct script_entry script[] = {
        {"crossover", "```strategy\nblock=512 vector-width=2\n```", 0},
        {"coder", REPLY_SOURCE(KERNEL), 0}};
    struct scripted s;
    struct provider p = script_provider(&s, mem, script, 2);
    struct llm_options o = {0};
    struct agent expert, llm, agent;
    struct briefing b = brief(pointwise);
    struct answer a = {0};
    CHECK(expert_new(NULL, &expert, &err));
    llm_new(&p, &o, &llm);
    hybrid_new(&expert, &llm, &agent);
    agent.plan(agent.self, &b, 4, rng_stream(1, S("t")), on_plan, &a);
    CHECK(a.n == 4 && s.nasked == 0);
    struct parent x = {a.s[0], 1e-5}, y = {a.s[1], 2e-5};
    agent.code(agent.self, &b, &a.s[0], on_code, &a);
    CHECK(s.nasked == 0 && a.text.n > 200);
    size_t models = 0, experts = 0;
    for (uint64_t i = 0; i < 40 && s.nasked == 0; i++) {
        agent.cross(agent.self, &b, &x, &y, rng_sub(rng_stream(1, S("u")), i), on_plan, &a);
        models = s.nasked;
        experts += !s.nasked;
    }
    CHECK(models == 1 && experts > 0);
    agent.code(agent.self, &b, &a.s[0], on_code, &a);
    CHECK(s.nasked == 2 && str_is(a.text, KERNEL));
    agent.release(agent.self);
    llm.release(llm.self);
    expert.release(expert.self);
}

static const struct tap_case cases[] = {
    {"coder", test_coder},
    {"coder in CuTe: the sheets its strategy asks for", test_coder_cute},
    {"coder of a product in plain CUDA", test_coder_plain},
    {"complaints, a bounded number", test_complaints},
    {"planner", test_planner},
    {"planner: written in turn", test_planner_in_turn},
    {"children: what was tried, directions", test_children},
    {"without roofline and history", test_roofline_off},
    {"crossover of strategies, or of code", test_crossover},
    {"aligner", test_aligner},
    {"debugger", test_debugger},
    {"optimizer: stages, menus, facts", test_optimizer},
    {"optimizer: time, terms, menus by size", test_optimizer_terms},
    {"several in flight, and none left behind", test_in_flight},
    {"hybrid", test_hybrid},
};

int main(void) {
    mem = arena_new((size_t)256 << 20);
    if (!catalogue_load(NULL, mem, &catalogue, &err))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
