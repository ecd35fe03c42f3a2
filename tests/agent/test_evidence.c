/* What the debugger is told about each kind of failure. */
#include "tap.h"

#include "agent/llm/evidence.h"

static struct arena *mem;

static const char source[] = "//! launch k<<<1, 32>>>(x, y)\n"
                             "extern \"C\" __global__ void k(const float *x, float *y) {\n"
                             "    int i = threadIdx.x;\n"
                             "    y[i] = x[i] }\n"
                             "\n";

static const char task_text[] = "task t \"T\"\ndim M = 64, N = 64\nin x[M,N] : f32 ~ normal(0,1)\n"
                                "out y[M,N] : f32\ny[i,j] = x[i,j]\n";

/* ---- patterns ---- */

struct pattern_row {
    const char *what;
    uint64_t wrong, count;
    int64_t extent[2];
    struct mismatch_row rows[8];
    const char *want, *never; /* never: NULL, anything else is fine */
};

static const struct pattern_row patterns[] = {
    {"all of it",
     64,
     64,
     {8, 8},
     {{{0, 0}, 1, 5}, {{0, 1}, 2, 3}, {{0, 2}, 3, 11}},
     "Every element is off",
     "factor"},
    {"a factor", 9, 64, {8, 8}, {{{0, 1}, 1, 2}, {{1, 0}, -3, -6}}, "got = 2 * expected", NULL},
    {"an offset", 9, 64, {8, 8}, {{{0, 1}, 1, 2}, {{1, 0}, 3, 4}}, "got = expected +1", NULL},
    {"subnormal",
     9,
     64,
     {8, 8},
     {{{0, 1}, 1e-40, 0}, {{1, 0}, 3e-41, 0}},
     "are subnormal",
     "zero:"},
    {"zeros", 9, 64, {8, 8}, {{{0, 1}, 1, 0}, {{1, 0}, 3, 0}}, "All of these are zero", NULL},
    {"one value", 9, 64, {8, 8}, {{{0, 1}, 1, 7}, {{1, 0}, 3, 7}}, "same value, 7", NULL},
    {"NaN", 9, 64, {8, 8}, {{{0, 1}, 1, NAN}, {{1, 0}, 3, NAN}}, "NaN", "factor"},
    {"a stripe",
     16,
     64,
     {8, 8},
     {{{0, 1}, 1, 9}, {{0, 3}, 2, 7}, {{0, 5}, 3, 2}},
     "one element in 2 of a row",
     NULL},
    {"a tile's edge",
     64,
     4096,
     {64, 64},
     {{{3, 32}, 1, 9}, {{3, 33}, 2, 7}, {{3, 34}, 3, 2}},
     "Dimension 1 is right below 32, a multiple of 32",
     NULL},
    {"what is left over",
     64,
     4160,
     {64, 65},
     {{{0, 64}, 1, 9}, {{1, 64}, 2, 7}, {{2, 64}, 3, 2}},
     "Only the end of dimension 1 is off (from 64 of 65)",
     NULL},
    {"shifted",
     9,
     64,
     {8, 8},
     {{{0, 1}, 1, 2}, {{0, 2}, 2, 4}, {{0, 3}, 4, 3}, {{0, 4}, 3, 8}},
     "Shifted by one",
     "factor"},
    {"nothing to see", 9, 64, {8, 8}, {{{0, 1}, 1, 2.5}, {{5, 2}, 2, 4.4}}, NULL, "factor"},
};

static void test_patterns(void) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const struct pattern_row *p = &patterns[i];
        struct mismatch_row rows[8];
        struct mismatches m = {
            .rank = 2, .rows = rows, .wrong = p->wrong, .count = p->count, .extent = {0}};
        struct buf b;
        memcpy(rows, p->rows, sizeof rows);
        memcpy(m.extent, p->extent, sizeof p->extent);
        while (m.n < 8 && (rows[m.n].expected != 0 || rows[m.n].got != 0))
            m.n++;
        buf_init(&b, 4096);
        evidence_pattern(&m, &b);
        if (p->want)
            CHECKF(str_find(buf_str(&b), str_view(p->want)) < b.n, "%s: %.*s", p->what,
                   STR_ARG(buf_str(&b)));
        if (p->never)
            CHECKF(str_find(buf_str(&b), str_view(p->never)) == b.n, "%s: %.*s", p->what,
                   STR_ARG(buf_str(&b)));
        buf_release(&b);
    }
}

/* ---- the compiler ---- */

static const char templates[] =
    "<cutlass>/cute/layout.hpp(1572): error: static assertion failed with \"Too many modes.\"\n"
    "      static_assert(x);\n"
    "      ^\n"
    "          detected during:\n"
    "            instantiation of \"auto cute::logical_divide(const cute::Layout<LShape> &)\" at "
    "line 1613\n"
    "            instantiation of \"auto cute::zipped_divide()\" at line 941 of "
    "<cutlass>/cute/tensor_impl.hpp\n"
    "            instantiation of \"auto cute::local_tile()\" at line 3 of kernel.cu\n"
    "\n"
    "<cutlass>/cute/layout.hpp(337): error: static assertion failed\n"
    "          detected during:\n"
    "            instantiation of \"auto cute::local_tile()\" at line 3 of kernel.cu\n"
    "\n"
    "kernel.cu(4): error: expected a \";\"\n"
    "      y[i] = x[i] }\n"
    "                  ^\n"
    "\n"
    "3 errors detected in the compilation of \"kernel.cu\".\n";

static bool has(const struct buf *b, const char *text) {
    return str_find(buf_str(b), str_view(text)) < b->n;
}

static void test_compiler(void) {
    struct buf b;
    buf_init(&b, 65536);
    evidence_compiler(str_view(templates), str_view(source), &b);
    CHECKF(has(&b, "kernel.cu:3: static assertion failed with \"Too many modes.\""), "%s", b.p);
    CHECKF(has(&b, "in <cutlass>/cute/layout.hpp:1572, frames of templates folded"), "%s", b.p);
    CHECKF(has(&b, ">    3 |     int i = threadIdx.x;"), "%s", b.p);
    CHECKF(has(&b, "kernel.cu:4: expected a \";\""), "%s", b.p);
    CHECKF(has(&b, "1 further message from the same lines"), "%s", b.p);
    CHECKF(!has(&b, "zipped_divide") && !has(&b, "tensor_impl"), "%s", b.p);
    buf_clear(&b);
    evidence_compiler(S("what nobody expected"), str_view(source), &b);
    CHECKF(has(&b, "what nobody expected"), "%s", b.p);
    buf_release(&b);
}

/* A log of any length gives a text of bounded length. */
static void test_flood(void) {
    struct buf log, b;
    buf_init(&log, 32u << 20);
    buf_init(&b, 1u << 20);
    for (int i = 0; i < 20000; i++)
        buf_printf(&log, "kernel.cu(%d): error: identifier \"%0400d\" is undefined\n\n", i + 1, i);
    evidence_compiler(buf_str(&log), str_view(source), &b);
    CHECKF(b.n < 8192 && has(&b, "messages from other lines are left out"), "%zu bytes", b.n);
    buf_release(&log);
    buf_release(&b);
}

/* ---- outcomes ---- */

static struct outcome *outcome(const char *record) {
    struct err err = {0};
    struct record *r = record_parse(str_view(record), &err);
    CHECKF(r, "%s", err.text);
    return r ? outcome_of(r) : NULL;
}

static const struct {
    const char *record, *want[5];
} outcomes[] = {
    {"{\"verdict\": \"wrong\", \"why\": \"64 of 4096 elements are off; y[0,63] is 2, expected 1\","
     "\"shape\": \"M=64 N=64\", \"data\": \"signed\", \"verify_seed\": \"12345\","
     "\"details\": {\"verdict\": \"wrong\", \"mismatches\": [{\"element\": \"y[0,63]\", "
     "\"expected\": 1, \"got\": 2},"
     "{\"element\": \"y[1,63]\", \"expected\": 3, \"got\": 6}]}}",
     {"Verdict: wrong, computes something else", "At shape M=64 N=64 on signed data",
      "y[1,63]: 3, 6", "got = 2 * expected", "64 of 4096"}},
    {"{\"verdict\": \"race\", \"why\": \"kernel.cu:4: a race\", \"findings\": ["
     "{\"check\": \"race\", \"line\": 4, \"text\": \"kernel.cu:4: threads race\"},"
     "{\"check\": \"race\", \"line\": 4, \"text\": \"kernel.cu:4: threads race too\"}]}",
     {"Verdict: race", "kernel.cu:4: threads race\n", ">    4 |     y[i] = x[i] }",
      "1 further finding"}},
    {"{\"verdict\": \"bad-plan\", \"why\": \"kernel.cu:1:5: no such name\"}",
     {"Verdict: bad-plan", "no such name", ">    1 | //! launch"}},
    {"{\"verdict\": \"inaccurate\", \"why\": \"off\"}", {"keep operands, partial sums"}},
    {"{\"verdict\": \"compile-error\", \"why\": \"kernel.cu(4): error: expected a ;\\n\"}",
     {"kernel.cu:4: expected a ;", ">    4 |"}},
};

static void test_outcomes(void) {
    struct err err = {0};
    struct task *t;
    CHECK(task_parse(S("t.task"), str_view(task_text), mem, &t, &err));
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        struct outcome *o = outcome(outcomes[i].record);
        struct buf b;
        buf_init(&b, 65536);
        evidence_write(o, t, str_view(source), &b);
        for (size_t k = 0; k < 5 && outcomes[i].want[k]; k++)
            CHECKF(has(&b, outcomes[i].want[k]), "%s in:\n%s", outcomes[i].want[k], b.p);
        CHECKF(!has(&b, "12345"), "the seed stays secret");
        buf_release(&b);
        outcome_free(o);
    }
}

static void test_facts(void) {
    struct outcome *o = outcome(
        "{\"verdict\": \"accepted\", \"time_s\": 4e-6, \"estimated\": true, \"limit_share\": 0.25,"
        "\"estimate\": [{\"kernel\": \"k\", \"grid\": [128,1,1], \"block\": [64,1,1], \"bound\": "
        "\"dram\", \"time_s\": 4e-6, \"dram_s\": 3e-6, \"l2_s\": 1e-9, \"registers\": 40, "
        "\"occupancy_limiter\": \"registers\"}],"
        "\"counters\": [{\"ctas\": 1, \"ctas_total\": 2, \"warp_instrs\": 100, \"warp_fp32\": 50,"
        "\"load_requests\": 10, \"load_sectors\": 160, \"load_bytes\": 5000000, \"widest_load\": "
        "16}]}");
    struct buf b;
    buf_init(&b, 65536);
    facts_summarise(o, &b);
    CHECKF(strstr(b.p, "-bound (each alone: ") && strstr(b.p, "), grid ") && !strchr(b.p, '\n'),
           "%s", b.p);
    buf_clear(&b);
    facts_write(o, &b);
    CHECKF(has(&b, "kernel k: 4 us, bound by dram; grid 128x1x1, block 64x1x1"), "%s", b.p);
    CHECKF(has(&b, "40 registers") && has(&b, "DRAM 3 us") && !has(&b, "L2 "), "%s", b.p);
    CHECKF(has(&b, "loads 10 MB") && has(&b, "16.0 sectors") && has(&b, "fp32 50%"), "%s", b.p);
    buf_clear(&b);
    outcome_free(o);
    o = outcome("{\"verdict\": \"accepted\", \"time_s\": 1e-5, \"kernels\": [{\"name\": \"k\", "
                "\"registers\": 32, \"spill_bytes\": 8}]}");
    facts_write(o, &b);
    CHECKF(has(&b, "kernel k: 32 registers") && has(&b, "8 bytes spilled"), "%s", b.p);
    outcome_free(o);
    buf_release(&b);
}

static const struct tap_case cases[] = {
    {"patterns of mismatches", test_patterns},
    {"compiler messages, templates folded", test_compiler},
    {"a flood of messages", test_flood},
    {"every kind of rejection", test_outcomes},
    {"profile facts", test_facts},
};

int main(void) {
    mem = arena_new((size_t)64 << 20);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
