/* What prompts say about the run at large: which shape counts, how far it may still go, what else
 * is being asked for, which hints a kernel follows already. */
#include "tap.h"

#include "agent/llm/evidence.h"
#include "agent/llm/prompt.h"
#include <math.h>
#include <string.h>

static const char product[] = "task product \"P\"\ndim M = 64, N = 64, K = 64\n"
                              "in a[M,K] : f32 ~ normal(0,1)\nin b[K,N] : f32 ~ normal(0,1)\n"
                              "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k] * b[k,j]\n"
                              "check M = 4, N = 4, K = 4\naccuracy tf32\n";

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;
static const struct prompt_options options;

static struct briefing brief_on(const char *text, const struct binding *set, size_t n) {
    struct task *t;
    struct inst *in;
    struct briefing b = {0};
    bool ok = task_parse(S("t.task"), str_view(text), mem, &t, &err) &&
              task_bind(t, set, n, mem, &in, &err) &&
              briefing_make(in, catalogue, gpu_find(S("h200")), &b, &err);
    CHECKF(ok, "%s", err.text);
    return b;
}

static struct briefing brief(const struct binding *set, size_t n) {
    return brief_on(product, set, n);
}

static bool says(str text, const char *what) {
    return str_find(text, str_view(what)) < text.n;
}

static void test_shape(void) {
    const struct binding set = {.name = S("K"), .value = 256};
    struct briefing stated = brief(NULL, 0), other = brief(&set, 1);
    struct prompter p = {&options, &stated, mem}, q = {&options, &other, mem};
    struct prompt out;
    CHECK(prompt_planner(&p, 1, false, &out, &err));
    CHECK(says(out.user, "At the shape to be fast at: M=64 N=64 K=64."));
    CHECK(!says(out.user, "set for this run"));
    CHECK(prompt_planner(&q, 1, false, &out, &err));
    CHECK(says(out.user, "The shape to be fast at is M=64 N=64 K=256: set for this run"));
}

static void test_outlook(void) {
    static const struct {
        const char *name;
        struct outlook outlook;
        const char *unit, *text;
    } rows[] = {
        {"nothing is known", {NO_BUDGET, 0}, "round", ""},
        {"not of interest", {NO_BUDGET, 2}, "", ""},
        {"rounds", {NO_BUDGET, 2}, "round", "The run ends after 2 rounds without gain in a row. "},
        {"a budget",
         {1, 0},
         "round",
         "The run ends after 1 more candidate, repairs among them. No "
         "repair will follow. "},
        {"both",
         {9, 1},
         "generation",
         "The run ends after 1 generation without gain in a row, or 9 more candidates, repairs "
         "among them. "},
        {"rounds that the budget does not reach",
         {3, 8},
         "round",
         "The run ends after 3 more candidates, repairs among them. "},
        {"the last",
         {1, 0},
         "",
         "The run ends after 1 more candidate, repairs among them. No "
         "repair will follow. "},
    };
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.outlook = rows[i].outlook;
        str text = prompt_outlook(&p, rows[i].unit, 1);
        CHECKF(str_is(text, rows[i].text), "%s: %.*s", rows[i].name, STR_ARG(text));
    }
}

static void test_siblings(void) {
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct parent x = {.time_s = 3e-6}, y = {.time_s = 4e-6}, none = {.time_s = INFINITY};
    const struct sibling all[] = {{x, x}, {x, y}, {none, none}};
    struct prompt out;
    strategy_fallback(catalogue, &b.ground, &x.strategy);
    y.strategy = x.strategy;
    CHECK(prompt_crossover(&p, &x, &y, &out, &err));
    CHECK(!says(out.user, "same moment") && !says(out.user, "The run ends"));
    b.siblings = all;
    b.nsiblings = 3;
    b.outlook = (struct outlook){6, 2};
    CHECK(prompt_crossover(&p, &x, &y, &out, &err));
    CHECK(says(out.user, "# Asked for at the same moment"));
    CHECK(says(out.user, "- of the parents at 3 and 4 us: Start from the faster parent"));
    CHECK(!says(out.user, "at 3 and 3 us") && !says(out.user, "inf") && !says(out.user, "by rule"));
    CHECK(says(out.user, "6 more candidates, repairs among them. Propose one child."));
    b.place = 1;
    b.by_rule = true;
    CHECK(prompt_crossover(&p, &x, &y, &out, &err));
    CHECK(says(out.user, "- of the parents at 3 and 3 us: Take from each parent"));
    CHECK(says(out.user, "made by rule instead"));
}

/* Every value that was chosen has a word on what it is, those that mean nothing beside the others
 * apart. */
static void test_chosen_values(void) {
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct strategy s;
    strategy_fallback(catalogue, &b.ground, &s);
    CHECK(!says(prompt_strategy(&p, &s), "- pack=")); /* there is only 0 without tensor cores */
    strategy_put(catalogue, &s, "tensor-path", 1);
    strategy_repair(catalogue, &b.ground, &s);
    str text = prompt_strategy(&p, &s);
    for (size_t i = 0; i < catalogue->n; i++) {
        const struct decision *d = &catalogue->decisions[i];
        str line = arena_printf(mem, "- %.*s=%lld: ", STR_ARG(d->name), (long long)s.value[i]);
        bool choice = false;
        for (size_t v = 0; v < d->nvalues; v++)
            choice |= d->values[v] != s.value[i] &&
                      strategy_allows(catalogue, &b.ground, &s, i, d->values[v]);
        bool silent =
            s.value[i] == STRATEGY_UNSET || d->asked || str_is(d->name, "fast-math") || !choice;
        CHECKF(silent || says(text, line.p), "%s", line.p);
    }
    text = prompt_strategy(&p, &s);
    CHECK(
        says(text, "- pack=0: operands are loaded as they lie.\n")); /* and nothing of the other */
    CHECK(says(text, "- split-k=1: none between blocks") && !says(text, "Parts of k"));
    strategy_put(catalogue, &s, "split-k", 4);
    text = prompt_strategy(&p, &s);
    CHECK(says(text, "- split-k=4: Parts of k") && !says(text, "none between"));
}

/* What makes no difference to the task is neither described nor, at its default, in a line. */
static void test_what_matters(void) {
#define ROWS(d, out, rest)                                                                         \
    "task rows \"R\"\ndim B = 64, D = " d "\nin x[B,D] : f32 ~ normal(0,1)\nout y[" out            \
    "] : f32\nlet m[i] = max(j) x[i,j]\n" rest "check B = 2, D = 8\n"
    static const struct {
        const char *task, *untold, *told; /* decisions, with blanks around them */
    } rows[] = {
        {product, " fast-math ", " tile-m split-k "},
        {ROWS("4096", "B,D", "y[i,j] = exp(x[i,j] - m[i])\n"), " row-online ",
         " fast-math row-cache reduce-kind row-split row-cluster "},
        {ROWS("4096", "B", "y[i] = m[i]\n"), " row-online row-cache fast-math ",
         " reduce-kind row-split row-cluster "},
        {ROWS("32", "B", "let s[i] = sum(j) exp(x[i,j] - m[i])\ny[i] = m[i] + log(s[i])\n"),
         " reduce-kind row-split row-cluster ", " row-online row-cache fast-math "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct briefing b = brief_on(rows[i].task, NULL, 0);
        struct prompter p = {&options, &b, mem};
        struct prompt planner, crossover;
        struct parent x = {.time_s = 3e-6};
        strategy_fallback(catalogue, &b.ground, &x.strategy);
        CHECK(prompt_planner(&p, 1, false, &planner, &err));
        CHECK(prompt_crossover(&p, &x, &x, &crossover, &err));
        for (size_t k = 0; k < catalogue->n; k++) {
            str name = catalogue->decisions[k].name;
            const char *word = arena_printf(mem, " %.*s ", STR_ARG(name)).p;
            bool in = says(planner.user, arena_printf(mem, "\n- %.*s (", STR_ARG(name)).p);
            bool line = says(crossover.user, arena_printf(mem, "%.*s=", STR_ARG(name)).p);
            CHECKF(!in || !strstr(rows[i].untold, word), "%zu describes%s", i, word);
            CHECKF(!line || !strstr(rows[i].untold, word), "%zu has%s", i, word);
            CHECKF((in && line) || !strstr(rows[i].told, word), "%zu has no%s", i, word);
        }
    }
}

/* A writer knows what else was chosen; a value that is not the default stays in the line. */
static void test_matters_beside(void) {
    struct briefing b = brief_on(ROWS("4096", "B", "y[i] = m[i]\n"), NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct strategy s;
    strategy_fallback(catalogue, &b.ground, &s);
    CHECK(!says(prompt_strategy(&p, &s), "- reduce-kind=")); /* row-threads=32: within a warp */
    CHECK(says(prompt_strategy(&p, &s), " reduce-kind=0"));
    CHECK(strategy_put(catalogue, &s, "row-split", 4));
    CHECK(says(prompt_strategy(&p, &s), "- reduce-kind=0: "));
    CHECK(strategy_put(catalogue, &s, "row-split", 1));
    CHECK(strategy_put(catalogue, &s, "row-threads", 64));
    CHECK(says(prompt_strategy(&p, &s), "- reduce-kind=0: "));
    CHECK(strategy_put(catalogue, &s, "fast-math", 1));
    CHECK(says(prompt_strategy(&p, &s), " fast-math=1 "));
    CHECK(!says(prompt_strategy(&p, &s), "- fast-math="));
}

/* ---- hints ---- */

#define KERNEL(forms, groups) "{\"census\": {\"forms\": {" forms "}, \"groups\": {" groups "}}}"
#define RECORD(kernels, launches)                                                                  \
    "{\"verdict\": \"accepted\", \"time_s\": 4e-6, \"estimated\": true, \"kernels\": [" kernels    \
    "], \"launches\": [" launches "]}"

static struct outcome *outcome(const char *record) {
    struct record *r = record_parse(str_view(record), &err);
    CHECKF(r, "%s", err.text);
    return r ? outcome_of(r) : NULL;
}

#define WIDE   KERNEL("\"ld.global.nc.128\": 2, \"st.global.cs.32\": 1", "")
#define NARROW KERNEL("\"ld.global.32\": 2, \"st.global.128\": 1", "\"shuffle\": 5, \"mma\": 0")
#define BOTH   RECORD(WIDE ", " NARROW, "{}, {}")

static void test_facts(void) {
    static const struct {
        const char *name, *record, *fact;
        bool holds;
    } rows[] = {
        {"wide loads", RECORD(WIDE, "{}"), "wide", true},
        {"one kernel of two is narrow", BOTH, "wide", false},
        {"no record of kernels", RECORD("", "{}"), "wide", false},
        {"a kernel without a census", RECORD("{}", "{}"), "wide", false},
        {"streaming stores", RECORD(WIDE, "{}"), "streaming", true},
        {"no streaming", RECORD(NARROW, "{}"), "streaming", false},
        {"one launch", RECORD(WIDE, "{}"), "one-launch", true},
        {"two launches", BOTH, "one-launch", false},
        {"shuffles in the second", BOTH, "shuffle", true},
        {"no shuffles", RECORD(WIDE, "{}"), "shuffle", false},
        {"a count of nothing", BOTH, "mma", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome *o = outcome(rows[i].record);
        CHECKF(facts_hold(o, str_view(rows[i].fact)) == rows[i].holds, "%s", rows[i].name);
        outcome_free(o);
    }
}

static void test_hints(void) {
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct strategy s;
    struct outcome *o = outcome(RECORD(KERNEL("\"ld.global.128\": 1", "\"mma\": 3"), "{}"));
    struct attempt a = {&s, S("copy();"), o, 0};
    str lines = S("- ?@wide wide\n- ?@shuffle shuffle\n- ?copy copied\n- ?words words\n- plain\n");
    str text = prompt_menu(&p, lines, &a);
    CHECKF(str_is(text, "- shuffle\n- words\n- plain\n"), "%.*s", STR_ARG(text));
    CHECK(says(prompt_menu(&p, S("- ?@wide wide\n"), &a), "go by what binds"));
    outcome_free(o);
}

/* ---- terms ---- */

static void test_bar(void) {
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct strategy s;
    struct outcome *o = outcome(RECORD("", "{}"));
    struct guidance g = {.stage = STAGE_STRUCTURE, .rounds = 2, .gain = 0.005};
    struct attempt a = {&s, S("void k() {}"), o, 0};
    struct prompt out;
    strategy_fallback(catalogue, &b.ground, &s);
    b.outlook = (struct outlook){5, 7};
    CHECK(prompt_optimizer(&p, &a, &g, &out, &err));
    CHECK(says(out.user, "falls by 0.02 us;"));
    CHECK(says(out.user, "After 2 more rounds without gain the next stage begins. The run ends "
                         "after 5 more candidates"));
    g.spent = true;
    CHECK(prompt_optimizer(&p, &a, &g, &out, &err));
    CHECK(says(out.user, "After 2 more candidates the next stage begins."));
    o->estimated = g.spent = false;
    g.stage = STAGE_PARAMETERS;
    CHECK(prompt_optimizer(&p, &a, &g, &out, &err));
    CHECK(!says(out.user, "7 rounds"));
    CHECK(says(out.user, "After 2 more rounds without gain the run ends."));
    b.outlook.candidates = 2; /* which is not reached before */
    CHECK(prompt_optimizer(&p, &a, &g, &out, &err));
    CHECK(!says(out.user, "without gain the run ends") && says(out.user, "after 2 more cand"));
    outcome_free(o);
}

static void test_repairs(void) {
    struct briefing b = brief(NULL, 0);
    struct prompter p = {&options, &b, mem};
    struct strategy s;
    struct outcome *o = outcome("{\"verdict\": \"wrong\", \"why\": \"off\"}");
    struct prompt out;
    for (size_t more = 0; more < 3; more++) {
        struct attempt a = {&s, S("void k() {}"), o, more};
        CHECK(prompt_debugger(&p, &a, S(""), &out, &err));
        CHECK(says(out.user, "This is the last repair") == (more == 0));
        CHECK(says(out.user, "At most 1 more repair may follow") == (more == 1));
        CHECK(says(out.user, "At most 2 more repairs may follow") == (more == 2));
    }
    b.outlook.candidates = 1; /* the budget ends before */
    struct attempt last = {&s, S("void k() {}"), o, 2};
    CHECK(prompt_debugger(&p, &last, S(""), &out, &err));
    CHECK(says(out.user, "This is the last repair"));
    CHECK(says(out.system, "select, do not multiply by 0"));
    CHECK(says(out.system, "everything up to sm_90a: clusters"));
    outcome_free(o);
}

static const struct tap_case cases[] = {
    {"which shape counts", test_shape},
    {"how far the run may go", test_outlook},
    {"children that are asked for together", test_siblings},
    {"every chosen value is explained", test_chosen_values},
    {"what makes no difference is left out", test_what_matters},
    {"what makes one beside the others", test_matters_beside},
    {"what the compiled code does", test_facts},
    {"hints that are followed are dropped", test_hints},
    {"what counts, and when the stage ends", test_bar},
    {"how many repairs are left", test_repairs},
};

int main(void) {
    mem = arena_new((size_t)256 << 20);
    if (!catalogue_load(NULL, mem, &catalogue, &err))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
