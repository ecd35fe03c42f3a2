/* Strategies as values, and the catalogue they are made from. */
#include "base/file.h"
#include "strategy/reader.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct catalogue *c;
static struct err err;
static const struct ground pointwise = {.workload = {[WORKLOAD_POINTWISE] = true}};
#define W &pointwise

static const char *text_of(const struct strategy *s) {
    struct buf b;
    buf_init(&b, 8192);
    strategy_text(c, s, &b);
    const char *text = arena_cstr(mem, buf_str(&b));
    buf_release(&b);
    return text;
}

static void test_catalogue(void) {
    static const char *const names[] = {"block", "cache-hint", "items", "persistent",
                                        "vector-width"};
    size_t known = 0;
    for (size_t i = 0; i < c->n; i++) {
        CHECKF(c->decisions[i].prose.n > 200, "%.*s", STR_ARG(c->decisions[i].name));
        for (size_t k = 0; k < 5; k++)
            known += str_is(c->decisions[i].name, names[k]) &&
                     c->decisions[i].workload[WORKLOAD_POINTWISE];
    }
    CHECK(known == 5);
}

static void test_override(void) {
    char *dir = mkdtemp(arena_cstr(mem, S("/tmp/strategies-XXXXXX")));
    str sub = arena_printf(mem, "%s/strategies", dir);
    const char *head = "values 1 2\ndefault 2\nworkloads pointwise\nregimes memory\n\nProse.\n";
    struct catalogue *other = NULL;
    CHECK(dir_make(sub.p, &err));
    CHECK(file_replace(arena_printf(mem, "%s/items.decision", sub.p).p, str_view(head), &err));
    CHECK(file_replace(arena_printf(mem, "%s/zeal.decision", sub.p).p, str_view(head), &err));
    CHECK(file_replace(arena_printf(mem, "%s/README", sub.p).p, S("no decision"), &err));
    CHECKF(catalogue_load(dir, mem, &other, &err), "%s", err.text);
    CHECK(other && other->n == c->n + 1 && str_is(other->decisions[c->n].name, "zeal"));
    for (size_t i = 0; other && i < other->n; i++)
        if (str_is(other->decisions[i].name, "items"))
            CHECK(other->decisions[i].nvalues == 2 && other->decisions[i].fallback == 2);
    CHECK(file_replace(arena_printf(mem, "%s/bad.decision", sub.p).p, S("values x\n"), &err));
    CHECK(!catalogue_load(dir, mem, &other, &err) && strstr(err.text, "bad.decision:1:8"));
    CHECK(dir_remove_tree(dir, &err));
}

static void test_decision_files(void) {
#define TAIL "workloads pointwise\nregimes memory latency\n\nProse.\n"
    static const struct {
        const char *text, *why; /* NULL: fine */
    } cases[] = {
        {"values 1 2\ndefault 1\n" TAIL, NULL},
        {"# note\nvalues -3 7\ndefault 7\n" TAIL, NULL},
        {"values 1 2\ndefault 3\n" TAIL, "not one of the values"},
        {"values 2 1\ndefault 1\n" TAIL, "must ascend"},
        {"values 1 1\ndefault 1\n" TAIL, "must ascend"},
        {"values 1 x\ndefault 1\n" TAIL, "expected an integer"},
        {"values 99999999999999999999\ndefault 1\n" TAIL, "expected an integer"},
        {"values\ndefault 1\n" TAIL, "needs a value"},
        {"default 1\n" TAIL, "no line `values`"},
        {"values 1\ndefault 1 2\n" TAIL, "one default only"},
        {"values 1\nvalues 2\ndefault 1\n" TAIL, "stated twice"},
        {"values 1\ndefault 1\nworkloads gemm\n", "unknown name"},
        {"values 1 2\nnames one two\ndefault 1\n" TAIL, NULL},
        {"values 1 2\nnames one\ndefault 1\n" TAIL, "1 names for 2 values"},
        {"values 1\nnames one two\ndefault 1\n" TAIL, "not a name of a value"},
        {"names one\nvalues 1\ndefault 1\n" TAIL, "not a name of a value"},
        {"values 1\nnames 1\ndefault 1\n" TAIL, "not a name of a value"},
        {"values 1\ndefault 1\nasked arch\n" TAIL, NULL},
        {"values 1\ndefault 1\nasked weather\n" TAIL, "no such fact"},
        {"values 1\ndefault 1\nasked arch\nasked arch\n" TAIL, "stated twice"},
        {"value 1\n", "unknown key"},
        {"values 1\ndefault 1\nworkloads pointwise\nregimes memory\n", "no prose"},
        {"", "no line `values`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct decision d;
        bool ok = decision_parse(S("f"), S("d"), str_view(cases[i].text), mem, &d, &err);
        CHECKF(ok == !cases[i].why, "case %zu: %s", i, ok ? "accepted" : err.text);
        CHECKF(ok || strstr(err.text, cases[i].why), "case %zu: %s", i, err.text);
    }
    struct decision d;
    CHECK(!decision_parse(S("f"), S("Bad Name"), S(""), mem, &d, &err));
    CHECK(!decision_parse(S("f"), S(""), S(""), mem, &d, &err));
}

static void test_text(void) {
    struct strategy s, back;
    strategy_fallback(c, W, &s);
    CHECK(!strcmp(text_of(&s),
                  "block=256 cache-hint=0 dialect=cuda fast-math=0 items=1 persistent=0 "
                  "vector-width=1"));
    for (uint64_t i = 0; i < 100; i++) {
        strategy_random(c, W, rng_sub(rng_stream(1, S("t")), i), &s);
        CHECK(strategy_parse(c, str_view(text_of(&s)), &back, &err));
        digest a = strategy_hash(c, &s), b = strategy_hash(c, &back);
        CHECK(strategy_equal(c, &s, &back) && memcmp(&a, &b, sizeof a) == 0);
    }
    CHECK(strategy_parse(c, S(" items=2  block=64 "), &s, &err));
    CHECK(!strcmp(text_of(&s), "block=64 items=2"));
    CHECK(strategy_get(c, &s, "items") == 2);
    CHECK(strategy_get(c, &s, "persistent") == STRATEGY_UNSET);
    CHECK(strategy_get(c, &s, "absent") == STRATEGY_UNSET);
    CHECK(strategy_parse(c, S(""), &s, &err) && !strcmp(text_of(&s), ""));
    static const struct {
        const char *text, *why;
    } bad[] = {{"items", "name=value"},         {"=2", "no decision is called ``"},
               {"tile=2", "no decision"},       {"items=3", "its values are 1 2 4 8"},
               {"items=", "cannot be ``"},      {"items=2 items=2", "twice"},
               {"items=2x", "cannot be `2x`"},  {"items = 2", "name=value"},
               {"items=02 block=", "cannot be"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECKF(!strategy_parse(c, str_view(bad[i].text), &s, &err), "%s", bad[i].text);
        CHECKF(strstr(err.text, bad[i].why), "%s: %s", bad[i].text, err.text);
    }
}

static void test_put(void) {
    struct strategy s;
    strategy_fallback(c, W, &s);
    CHECK(strategy_put(c, &s, "items", 8) && strategy_get(c, &s, "items") == 8);
    CHECK(!strategy_put(c, &s, "items", 3) && strategy_get(c, &s, "items") == 8);
    CHECK(!strategy_put(c, &s, "absent", 1));
}

static void test_distance(void) {
    struct strategy a, b, none;
    CHECK(strategy_parse(c, S("block=64 cache-hint=0 items=1 persistent=0 vector-width=1"), &a,
                         &err));
    CHECK(strategy_parse(c, S("block=1024 cache-hint=1 items=8 persistent=1 vector-width=8"), &b,
                         &err));
    CHECK(strategy_parse(c, S(""), &none, &err));
    CHECK(strategy_distance(c, &a, &a) == 0);
    CHECK(strategy_distance(c, &a, &b) == 1 && strategy_distance(c, &b, &a) == 1);
    CHECK(strategy_distance(c, &a, &none) == 1 && strategy_distance(c, &none, &none) == 0);
    b = a;
    CHECK(strategy_put(c, &b, "block", 128));
    CHECK(fabs(strategy_distance(c, &a, &b) - 0.25 / 5) < 1e-12);
}

static void test_random(void) {
    struct strategy a, b, m, x;
    size_t seen = 0, moved_one = 0;
    for (uint64_t i = 0; i < 300; i++) {
        struct rng r = rng_sub(rng_stream(9, S("r")), i);
        strategy_random(c, W, r, &a);
        strategy_random(c, W, r, &b);
        CHECK(strategy_equal(c, &a, &b));
        strategy_mutate(c, W, &a, r, &m);
        CHECK(!strategy_equal(c, &a, &m));
        struct strategy said = a;
        said.remark = 1; /* another one, with the same text */
        CHECK(!strategy_equal(c, &a, &said) && !strcmp(text_of(&a), text_of(&said)));
        digest d = strategy_hash(c, &a), e = strategy_hash(c, &said);
        CHECK(memcmp(&d, &e, sizeof d) != 0 && strategy_order(&a, &said) < 0);
        strategy_mutate(c, W, &a, r, &x);
        CHECK(strategy_equal(c, &m, &x));
        size_t changed = 0;
        for (size_t k = 0; k < c->n; k++)
            changed += m.value[k] != a.value[k];
        moved_one += changed == 1;
        seen += strategy_get(c, &a, "block") == 1024;
        x = a;
        strategy_mutate(c, W, &x, r, &x); /* in place */
        CHECK(strategy_equal(c, &m, &x));
        strategy_random(c, W, rng_sub(r, 1), &b);
        strategy_cross(c, W, &a, &b, r, &x);
        for (size_t k = 0; k < c->n; k++)
            CHECK(x.value[k] == a.value[k] || x.value[k] == b.value[k]);
    }
    CHECK(seen > 30 && seen < 120);
    CHECK(moved_one > 150 && moved_one < 280);

    struct strategy half;
    CHECK(strategy_parse(c, S("items=2"), &half, &err));
    strategy_cross(c, W, &half, &a, rng_stream(1, S("x")), &x);
    CHECK(strategy_get(c, &x, "block") == strategy_get(c, &a, "block"));
}

/* A decision that is asked for: every strategy has the fact's value, and only who names another
 * changes it. */
static void test_asked(void) {
    struct ground g = pointwise;
    struct strategy s, m, named;
    for (int64_t cute = 0; cute < 2; cute++) {
        g.fact[FACT_ASKED_DIALECT] = cute;
        strategy_fallback(c, &g, &s);
        CHECK(strategy_get(c, &s, "dialect") == cute);
        for (uint64_t i = 0; i < 200; i++) {
            struct rng r = rng_sub(rng_stream(11, S("r")), i);
            strategy_random(c, &g, r, &s);
            strategy_mutate(c, &g, &s, r, &m);
            CHECK(strategy_get(c, &s, "dialect") == cute && strategy_get(c, &m, "dialect") == cute);
            CHECK(!cute || strategy_get(c, &m, "cache-hint") == 0);
            strategy_at(c, &g, i, &s);
            CHECK(strategy_get(c, &s, "dialect") == cute);
        }
    }
    CHECK(strategy_parse(c, S("dialect=cuda items=2"), &named, &err));
    strategy_repair(c, &g, &named);
    CHECK(strategy_get(c, &named, "dialect") == 0);
    CHECK(strstr(text_of(&named), "dialect=cuda"));
    CHECK(strategy_parse(c, S("cache-hint=1 dialect=cute"), &named, &err));
    strategy_repair(c, W, &named);
    CHECK(strategy_get(c, &named, "dialect") == 1 && strategy_get(c, &named, "cache-hint") == 0);
    CHECK(strategy_parse(c, S("dialect=1"), &s, &err) && strategy_get(c, &s, "dialect") == 1);
    CHECK(!strategy_parse(c, S("dialect=ptx"), &s, &err) &&
          strstr(err.text, "its values are cuda cute"));
}

/* ---- rules ---- */

static struct decision rule_decision(const char *name, const char *text) {
    struct decision d = {0};
    CHECKF(decision_parse(S("f"), str_view(name), str_view(text), mem, &d, &err), "%s", err.text);
    return d;
}
#define RULED "workloads contraction\nregimes compute\n"

static struct catalogue *ruled(void) {
    static struct decision list[4];
    static struct catalogue r = {.decisions = list, .n = 4};
    list[0] =
        rule_decision("cluster", "values 1 2 4\ndefault 1\n" RULED "needs path == 2\n\nProse.\n");
    list[1] =
        rule_decision("path", "values 0 1 2\ndefault 0\n" RULED "needs 2: arch >= 90\n\nProse.\n");
    list[2] =
        rule_decision("split", "values 1 4\ndefault 1\n" RULED "conflicts cluster > 1\n\nProse.\n");
    list[3] = rule_decision("stages", "values 1 2 3\ndefault 1\n" RULED
                                      "needs 3: path >= 1 && bytes <= 4\n\nProse.\n");
    CHECKF(catalogue_settle(&r, &err), "%s", err.text);
    return &r;
}

static struct ground contraction_on(int64_t arch, int64_t bytes) {
    struct ground g = {.workload = {[WORKLOAD_CONTRACTION] = true}};
    g.fact[FACT_ARCH] = arch;
    g.fact[FACT_BYTES] = bytes;
    return g;
}

static void test_repair(void) {
    static const struct {
        const char *given, *want;
        int64_t arch, bytes;
    } rows[] = {
        {"", "path=0 split=1 stages=1", 90, 4},
        {"path=2", "cluster=1 path=2 split=1 stages=1", 90, 4},
        {"path=2", "path=0 split=1 stages=1", 80, 4},
        {"cluster=4 path=2 split=4", "cluster=4 path=2 split=1 stages=1", 90, 4},
        {"cluster=4 path=1 split=4", "path=1 split=4 stages=1", 90, 4},
        {"path=1 stages=3", "path=1 split=1 stages=3", 80, 4},
        {"path=1 stages=3", "path=1 split=1 stages=1", 80, 8},
        {"path=0 stages=3", "path=0 split=1 stages=1", 80, 4},
        {"path=0 stages=2", "path=0 split=1 stages=2", 80, 4},
    };
    struct catalogue *r = ruled(), *before = c;
    c = r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ground g = contraction_on(rows[i].arch, rows[i].bytes);
        struct strategy s;
        CHECKF(strategy_parse(r, str_view(rows[i].given), &s, &err), "%s", err.text);
        strategy_repair(r, &g, &s);
        CHECKF(!strcmp(text_of(&s), rows[i].want), "%s: %s", rows[i].given, text_of(&s));
    }
    c = before;
}

static void test_legal(void) {
    struct catalogue *r = ruled();
    struct ground g = contraction_on(90, 4);
    size_t clusters = 0, different = 0;
    for (uint64_t i = 0; i < 400; i++) {
        struct rng stream = rng_sub(rng_stream(3, S("legal")), i);
        struct strategy s, m, x, again;
        strategy_random(r, &g, stream, &s);
        strategy_mutate(r, &g, &s, stream, &m);
        strategy_cross(r, &g, &s, &m, stream, &x);
        CHECK(!strategy_equal(r, &s, &m));
        const struct strategy *made[] = {&s, &m, &x};
        for (size_t k = 0; k < 3; k++) {
            again = *made[k];
            strategy_repair(r, &g, &again);
            CHECK(strategy_equal(r, &again, made[k]));
        }
        clusters += strategy_get(r, &s, "cluster") == 4;
    }
    CHECKF(clusters > 20, "%zu", clusters);
    for (uint64_t i = 0; i < strategy_space(r, &g); i++) {
        struct strategy s, o;
        bool seen = false;
        strategy_at(r, &g, i, &s);
        for (uint64_t k = 0; k < i && !seen; k++) {
            strategy_at(r, &g, k, &o);
            seen = strategy_equal(r, &s, &o);
        }
        different += !seen;
    }
    /* path 0: 2 splits, 2 stages; path 1: 2, 3; path 2: clusters 1 with 2 splits, 2 and 4 with 1 */
    CHECKF(different == 4 + 6 + 12, "%zu", different);
}

/* What a person names is there, or the reason why it is not. */
static void test_impose(void) {
    static const struct {
        bool contraction; /* on pointwise ground otherwise */
        const char *named, *why;
    } rows[] = {
        {false, "items=4 block=64", NULL},
        {false, "stages=3", "stages does not apply to this task; what does is block"},
        {true, "tensor-path=1 swizzle=1", NULL},
        {true, "tensor-path=2 swizzle=1", "swizzle=1 cannot be chosen with tensor-path=2"},
        {true, "tensor-path=0 pack=1", "pack=1 cannot be chosen with tensor-path=0"},
    };
    struct ground product = {.workload = {[WORKLOAD_CONTRACTION] = true}};
    product.fact[FACT_MMA] = product.fact[FACT_WGMMA] = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ground *g = rows[i].contraction ? &product : W;
        struct strategy named, s;
        strategy_fallback(c, g, &s);
        CHECK(strategy_parse(c, str_view(rows[i].named), &named, &err));
        bool ok = strategy_impose(c, g, &named, &s, &err);
        CHECKF(ok == !rows[i].why, "%s", rows[i].named);
        CHECKF(ok || strstr(err.text, rows[i].why), "%s: %s", rows[i].named, err.text);
        for (size_t k = 0; ok && k < c->n; k++)
            CHECK(named.value[k] == STRATEGY_UNSET || s.value[k] == named.value[k]);
    }
}

static void test_rule_errors(void) {
#define HEAD "values 1 2\ndefault 1\n" RULED
    static const struct {
        const char *text, *why;
    } bad[] = {
        {HEAD "needs\n\nProse.\n", "needs a value"},
        {HEAD "needs arch\n\nProse.\n", "expected a name"},
        {HEAD "needs arch => 90\n\nProse.\n", "expected one of"},
        {HEAD "needs arch >= x\n\nProse.\n", "expected an integer"},
        {HEAD "needs arch >= 9 || arch < 3\n\nProse.\n", "expected &&"},
        {HEAD "needs 3: arch >= 9\n\nProse.\n", "none of the values"},
        {HEAD "needs 1: arch >= 9\n\nProse.\n", "the default"},
        {HEAD "matters\n\nProse.\n", "needs a value"},
        {HEAD "matters 2: arch >= 9\n\nProse.\n", "expected one of"},
        {HEAD "needs a > 1 && a > 2 && a > 3 && a > 4 && a > 5 && a > 6 && a > 7 && a > 8 && "
              "a > 9\n\nProse.\n",
         "more than 8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct decision d;
        CHECKF(!decision_parse(S("f"), S("d"), str_view(bad[i].text), mem, &d, &err), "%s",
               bad[i].text);
        CHECKF(strstr(err.text, bad[i].why), "%s: %s", bad[i].text, err.text);
    }
    struct decision two[2] = {rule_decision("a", HEAD "needs b > 1\n\nProse.\n"),
                              rule_decision("b", HEAD "needs a > 1\n\nProse.\n")};
    struct catalogue circle = {.decisions = two, .n = 2};
    CHECK(!catalogue_settle(&circle, &err) && strstr(err.text, "circle"));
    struct decision lone = rule_decision("a", HEAD "needs nobody > 1\n\nProse.\n");
    struct catalogue unknown = {.decisions = &lone, .n = 1};
    CHECK(!catalogue_settle(&unknown, &err) && strstr(err.text, "neither a decision nor a fact"));
    lone = rule_decision("a", HEAD "matters nobody > 1\n\nProse.\n");
    CHECK(!catalogue_settle(&unknown, &err) && strstr(err.text, "neither a decision nor a fact"));
}

/* Of several lines one must hold; without a strategy facts alone decide. They may ask in a circle,
 * and change nothing about what is legal. */
static void test_matters(void) {
    struct decision two[2] = {
        rule_decision("a", HEAD "matters bytes > 4 && b > 1\nmatters arch >= 90\n\nProse.\n"),
        rule_decision("b", HEAD "matters a > 1\n\nProse.\n")};
    struct catalogue pair = {.decisions = two, .n = 2};
    CHECKF(catalogue_settle(&pair, &err), "%s", err.text);
    static const struct {
        const char *strategy; /* NULL: none */
        int64_t arch, bytes;
        bool a, b;
    } rows[] = {
        {NULL, 80, 4, false, true},      {NULL, 80, 8, true, true},
        {NULL, 90, 4, true, true},       {"a=1 b=1", 80, 8, false, false},
        {"a=1 b=2", 80, 8, true, false}, {"a=2 b=2", 80, 4, false, true},
        {"a=1 b=1", 90, 4, true, false}, {"b=2", 80, 8, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ground g = contraction_on(rows[i].arch, rows[i].bytes);
        struct strategy s, *given = rows[i].strategy ? &s : NULL;
        CHECK(!given || strategy_parse(&pair, str_view(rows[i].strategy), &s, &err));
        CHECKF(strategy_matters(&pair, &g, given, 0) == rows[i].a, "row %zu", i);
        CHECKF(strategy_matters(&pair, &g, given, 1) == rows[i].b, "row %zu", i);
        CHECK(strategy_space(&pair, &g) == 4);
    }
}

/* ---- steps with values of their own ---- */

/* A product between two maps. */
static struct ground three_steps(void) {
    struct ground g = {.workload = {[WORKLOAD_POINTWISE] = true, [WORKLOAD_CONTRACTION] = true},
                       .step = {WORKLOAD_POINTWISE, WORKLOAD_CONTRACTION, WORKLOAD_POINTWISE},
                       .nsteps = 3};
    g.fact[FACT_MMA] = g.fact[FACT_WGMMA] = 1;
    return g;
}

static size_t decision_of(const char *name) {
    size_t i = 0;
    while (i < c->n && !str_is(c->decisions[i].name, name))
        i++;
    return i;
}

/* What is in a text is there after it was read, in order of step and name; what is not a step's
 * own value is an error. */
static void test_own_text(void) {
    struct strategy s, back;
    static const struct {
        const char *text, *why;
    } bad[] = {{"0:items=2", "number of a step from 1"},
               {"65:items=2", "number of a step from 1"},
               {"x:items=2", "number of a step from 1"},
               {":items=2", "number of a step from 1"},
               {"2:items=3", "its values are 1 2 4 8"},
               {"2:tile=2", "no decision"},
               {"2:items", "name=value"},
               {"2:items=2 2:items=4", "twice"}};
    CHECK(strategy_parse(c, S("3:items=4 items=2 1:items=8 1:block=64"), &s, &err));
    CHECKF(!strcmp(text_of(&s), "items=2 1:block=64 1:items=8 3:items=4"), "%s", text_of(&s));
    CHECK(strategy_parse(c, str_view(text_of(&s)), &back, &err) && strategy_equal(c, &s, &back));
    CHECK(strategy_parse(c, S("items=2 1:block=64 1:items=8 3:items=8"), &back, &err));
    digest a = strategy_hash(c, &s), b = strategy_hash(c, &back);
    CHECK(!strategy_equal(c, &s, &back) && memcmp(&a, &b, sizeof a) != 0);
    CHECK(strategy_order(&s, &back) == -strategy_order(&back, &s) && strategy_order(&s, &back));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECKF(!strategy_parse(c, str_view(bad[i].text), &s, &err), "%s", bad[i].text);
        CHECKF(strstr(err.text, bad[i].why), "%s: %s", bad[i].text, err.text);
    }
    struct buf many;
    buf_init(&many, 1u << 16);
    for (int step = 1; step <= STRATEGY_MAX_STEPS; step++)
        buf_printf(&many, "%d:items=4 ", step);
    CHECK(!strategy_parse(c, buf_str(&many), &s, &err) && strstr(err.text, "more than 48"));
    buf_release(&many);
}

/* What a step goes by: its own values, the shared ones, and what its own ones rule out. */
static void test_own_values(void) {
    struct ground g = three_steps();
    struct strategy s, step;
    size_t items = decision_of("items"), tile = decision_of("tile-m");
    strategy_fallback(c, &g, &s);
    CHECK(strategy_put_own(c, &g, &s, 3, items, 4) && s.nown == 1);
    CHECK(strategy_value_in(&s, 3, items) == 4 && strategy_value_in(&s, 1, items) == 1);
    strategy_of_step(c, &g, &s, 3, &step);
    CHECK(strategy_get(c, &step, "items") == 4 && step.nown == 0);
    strategy_of_step(c, &g, &s, 1, &step);
    CHECK(strategy_get(c, &step, "items") == 1);
    CHECK(!strategy_put_own(c, &g, &s, 1, tile, 64) && s.nown == 1); /* no decision of a map */
    CHECK(!strategy_put_own(c, &g, &s, 2, items, 4) && s.nown == 1); /* nor of a product */
    CHECK(!strategy_put_own(c, &g, &s, 4, items, 4));                /* no such step */
    CHECK(!strategy_put_own(c, &g, &s, 3, items, 3));                /* no such value */
    CHECK(strategy_is_shared(c, &s, "block") && !strategy_is_shared(c, &s, "items"));
    CHECK(strategy_put(c, &s, "items", 4));
    strategy_repair(c, &g, &s); /* all steps have it now */
    CHECK(s.nown == 0);
}

static void test_own_asked(void) {
    static const struct {
        const char *named, *why;
    } rows[] = {
        {"items=4 1:items=2", NULL},
        {"items=4", NULL},
        {"2:tile-m=64 2:tensor-path=1", NULL},
        {"4:items=2", "4:items: the task has 3 steps"},
        {"2:items=2", "step 2 does not go by items"},
        {"2:tensor-path=2 2:swizzle=1", "swizzle=1 cannot be chosen with tensor-path=2"},
    };
    struct ground g = three_steps();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strategy named, s;
        strategy_fallback(c, &g, &s);
        CHECK(strategy_put_own(c, &g, &s, 3, decision_of("items"), 8));
        CHECK(strategy_parse(c, str_view(rows[i].named), &named, &err));
        bool ok = strategy_impose(c, &g, &named, &s, &err);
        CHECKF(ok == !rows[i].why, "%s: %s", rows[i].named, ok ? "" : err.text);
        if (ok && strategy_get(c, &named, "items") == 4) /* of all steps that are not named */
            CHECK(strategy_value_in(&s, 3, decision_of("items")) == 4);
        CHECKF(ok || strstr(err.text, rows[i].why), "%s: %s", rows[i].named, err.text);
        for (size_t k = 0; ok && k < named.nown; k++)
            CHECK(strategy_value_in(&s, named.own[k].step, named.own[k].decision) ==
                  named.own[k].value);
    }
}

/* Mutated and crossed strategies are legal, some have values of single steps, and a child has those
 * of a step from one parent. */
static void test_own_made(void) {
    struct ground g = three_steps();
    size_t with_own = 0, inherited = 0;
    for (uint64_t i = 0; i < 400; i++) {
        struct rng r = rng_sub(rng_stream(5, S("own")), i);
        struct strategy a, b, x, again;
        strategy_random(c, &g, r, &a);
        CHECK(a.nown == 0);
        b = a;
        for (uint64_t k = 0; k < 6; k++) {
            strategy_mutate(c, &g, &a, rng_sub(r, 2 * k), &a);
            strategy_mutate(c, &g, &b, rng_sub(r, 2 * k + 1), &b);
        }
        strategy_cross(c, &g, &a, &b, r, &x);
        const struct strategy *made[] = {&a, &b, &x};
        for (size_t k = 0; k < 3; k++) {
            again = *made[k];
            strategy_repair(c, &g, &again);
            CHECKF(strategy_equal(c, &again, made[k]), "%s", text_of(made[k]));
            for (size_t o = 0; o < made[k]->nown; o++)
                CHECK(strategy_step_has(c, &g, made[k]->own[o].step, made[k]->own[o].decision));
        }
        with_own += a.nown > 0;
        for (size_t o = 0; o < x.nown; o++) {
            const struct own_value *v = &x.own[o];
            CHECKF(strategy_value_in(&a, v->step, v->decision) == v->value ||
                       strategy_value_in(&b, v->step, v->decision) == v->value,
                   "%s", text_of(&x));
            inherited++;
        }
        strategy_random_in_steps(c, &g, r, &a);
        again = a;
        strategy_repair(c, &g, &again);
        CHECKF(strategy_equal(c, &again, &a) && a.nown > 0, "%s", text_of(&a));
    }
    CHECKF(with_own > 100 && inherited > 50, "%zu, %zu", with_own, inherited);
}

static void test_own_compared(void) {
    struct strategy a, b;
    struct strategy_change all[STRATEGY_MAX_CHANGES];
    CHECK(strategy_parse(c, S("block=64 items=1 vector-width=1 2:items=2 3:items=4"), &a, &err));
    CHECK(strategy_parse(c, S("block=64 items=1 vector-width=2 1:items=8 3:items=2"), &b, &err));
    size_t n = strategy_changes(c, &a, &b, all);
    struct buf said;
    buf_init(&said, 4096);
    for (size_t i = 0; i < n; i++)
        buf_printf(&said, "%.*s %d %d, ", STR_ARG(strategy_change_name(c, &all[i], mem)),
                   (int)all[i].from, (int)all[i].to);
    CHECKF(str_is(buf_str(&said), "vector-width 1 2, 2:items 2 1, 3:items 4 2, 1:items 1 8, "),
           "%.*s", STR_ARG(buf_str(&said)));
    buf_release(&said);
    CHECK(strategy_changes(c, &a, &a, all) == 0 && strategy_distance(c, &a, &a) == 0);
    double one = strategy_distance(c, &a, &b);
    CHECK(one > 0 && one < 1 && fabs(one - strategy_distance(c, &b, &a)) < 1e-12);
    CHECK(strategy_parse(c, S("block=64 items=1 vector-width=1 2:items=2 3:items=2"), &b, &err));
    CHECK(strategy_distance(c, &a, &b) < one);
}

static const struct tap_case cases[] = {
    {"the catalogue", test_catalogue},
    {"a folder overrides and adds", test_override},
    {"decision files", test_decision_files},
    {"text and back", test_text},
    {"putting values", test_put},
    {"distance", test_distance},
    {"random, mutated, crossed", test_random},
    {"asked for", test_asked},
    {"rules repaired", test_repair},
    {"named decisions are there or refused", test_impose},
    {"everything made is legal", test_legal},
    {"rules that make no sense", test_rule_errors},
    {"what makes a difference", test_matters},
    {"values of single steps as text", test_own_text},
    {"values of single steps", test_own_values},
    {"values of single steps that are asked for", test_own_asked},
    {"values of single steps, mutated and crossed", test_own_made},
    {"values of single steps compared", test_own_compared},
};

int main(void) {
    mem = arena_new(64u << 20);
    if (!catalogue_load(NULL, mem, &c, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
