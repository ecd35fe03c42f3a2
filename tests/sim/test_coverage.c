/* What became of a program's choices, which blocks of a large grid run, and what they store. */
#include "tap.h"

#include "harness.h"

struct params {
    uint64_t y;
    uint32_t n, m;
};

static uint32_t out[32 * 4096];

struct covered {
    uint8_t of[256];
    size_t n;
};

/* The outcomes of one launch of `choices`, by instruction. */
static struct covered run_choices(uint32_t n, uint32_t m) {
    struct covered c = {0};
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    if (harness_load(&h, "coverage.ptx", "choices")) {
        struct params p = {harness_buffer(&h, "y", out, sizeof out, false), n, m};
        struct sim_launch l = {.program = h.program,
                               .grid = {1, 1, 1},
                               .block = {32, 1, 1},
                               .params = &p,
                               .params_size = sizeof p,
                               .threads = 1,
                               .covered = c.of};
        c.n = sim_places(h.program);
        CHECK(c.n <= sizeof c.of);
        sim_run(h.machine, &l, &r);
    }
    CHECK(r.status == SIM_OK);
    harness_free(&h);
    return c;
}

/* Outcomes that only the second has. */
static size_t missing(const struct covered *judged, const struct covered *own) {
    size_t n = 0;
    for (size_t i = 0; i < own->n; i++)
        n += (size_t)__builtin_popcount(own->of[i] & ~judged->of[i]);
    return n;
}

static uint8_t all_of(const struct covered *c) {
    uint8_t all = 0;
    for (size_t i = 0; i < c->n; i++)
        all |= c->of[i];
    return all;
}

static void test_loops(void) {
    struct covered one = run_choices(1, 32), two = run_choices(2, 32), three = run_choices(3, 32),
                   many = run_choices(50, 32);
    const uint8_t loops = SIM_LEFT_AFTER_ONE | SIM_LEFT_AFTER_TWO | SIM_RAN_ON;
    CHECK((all_of(&one) & loops) == SIM_LEFT_AFTER_ONE);
    CHECK((all_of(&two) & loops) == SIM_LEFT_AFTER_TWO);
    CHECK((all_of(&three) & loops) == SIM_RAN_ON);
    CHECK(missing(&three, &many) == 0 && missing(&many, &three) == 0);
    CHECK(missing(&two, &many) == 1);
    CHECK(missing(&one, &two) == 3); /* the branch, what it goes by, and the second pass */
}

static void test_selections_and_guards(void) {
    struct covered few = run_choices(50, 32), many = run_choices(200, 32);
    CHECK(missing(&few, &many) == 2); /* the comparison with 100, and the selection by it */
    struct covered all = run_choices(50, 32), some = run_choices(50, 7), none = run_choices(50, 0);
    CHECK(missing(&all, &some) == 2 && missing(&some, &all) == 0 && missing(&some, &none) == 0);
    CHECK(missing(&none, &some) == 2); /* the comparison and the guard, true */
}

static void test_words(void) {
    struct harness h;
    char text[160] = "";
    CHECK(harness_load(&h, "coverage.ptx", "choices"));
    struct covered one = run_choices(1, 32), many = run_choices(50, 32);
    for (size_t i = 0; i < many.n; i++)
        if (many.of[i] & ~one.of[i] & SIM_RAN_ON)
            sim_place_text(h.program, i, SIM_RAN_ON, text, sizeof text);
    CHECKF(strstr(text, "a loop at line") && strstr(text, "runs more than twice"), "%s", text);
    sim_place_text(h.program, 0, SIM_WAS_FALSE, text, sizeof text);
    CHECKF(strstr(text, "a condition at line") && strstr(text, "the other way"), "%s", text);
    sim_place_text(h.program, 0, SIM_WAS_TRUE | SIM_WAS_FALSE, text, sizeof text);
    CHECKF(strstr(text, "is met"), "%s", text);
    harness_free(&h);
}

static struct sim_result run_stores(uint32_t m, uint32_t blocks, uint64_t sample, uint64_t key,
                                    enum sim_draw draw, unsigned checks, uint64_t *first,
                                    uint64_t *last) {
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    struct sim_findings findings = {0};
    memset(out, 0xff, sizeof out);
    if (harness_load(&h, "coverage.ptx", "stores")) {
        struct sim_buffer b = {
            .name = S("y"), .host = out, .size = sizeof out, .undefined = true, .result = true};
        struct params p = {sim_machine_add(h.machine, &b), m, 0};
        struct sim_launch l = {.program = h.program,
                               .grid = {blocks, 1, 1},
                               .block = {32, 1, 1},
                               .params = &p,
                               .params_size = sizeof p,
                               .threads = 1,
                               .checks = checks,
                               .findings = &findings,
                               .sample_ctas = sample,
                               .sample_key = key,
                               .sample_draw = draw};
        sim_run(h.machine, &l, &r);
        uint64_t end = 0;
        *last = *first = 0;
        for (uint64_t from = 0; sim_machine_stored(h.machine, p.y, &from, &end); *last = end)
            *first = *last ? *first : from + 1;
    }
    CHECK(r.status == SIM_OK);
    harness_free(&h);
    return r;
}

/* Blocks are drawn by the key, the first and the last among them. */
static void test_drawn_blocks(void) {
    uint64_t first, last;
    uint32_t seen[2] = {0, 0};
    for (uint64_t key = 1; key < 20; key++) {
        run_stores(32 * 4096, 4096, 8, key, SIM_DRAW_APART, SIM_CHECK_ALL, &first, &last);
        CHECK(first == 1 && last == sizeof out);
        uint32_t ran = 0, sum = 0;
        for (uint32_t i = 0; i < 4096; i++)
            if (out[32 * i] == 32 * i) {
                ran++;
                sum += i;
            }
        CHECK(ran == 8 && sum != seen[0]);
        seen[0] = sum;
    }
}

static size_t blocks_run(uint32_t *list, size_t most) {
    size_t n = 0;
    for (uint32_t i = 0; i < 4096; i++)
        if (out[32 * i] == 32 * i && n < most)
            list[n++] = i;
    return n;
}

/* Next to each other, and a power of two apart; some are drawn twice and run once. */
static void test_pairs(void) {
    uint64_t first, last;
    size_t next = 0, apart = 0, other = 0, all = 0;
    for (uint64_t key = 1; key < 40; key++) {
        uint32_t ran[16];
        struct sim_result r =
            run_stores(32 * 4096, 4096, 12, key, SIM_DRAW_PAIRS, SIM_CHECK_ALL, &first, &last);
        size_t n = blocks_run(ran, 16);
        CHECK(first == 1 && last == sizeof out);
        CHECK(n == r.counters.ctas && n > 9 && n <= 12);
        for (size_t i = 0; i < n; i++)
            for (size_t k = i + 1; k < n; k++) {
                uint32_t far = ran[k] - ran[i];
                next += far == 1;
                apart += far >= 16 && (far & (far - 1)) == 0;
                other += far > 1 && far < 16;
            }
        all += n;
    }
    CHECKF(next >= 39 * 3 && next < 39 * 4, "%zu", next);
    CHECKF(apart >= 39 * 2, "%zu", apart);
    CHECKF(other < 10 && all > 39 * 11, "%zu %zu", other, all);
    run_stores(32 * 16, 16, 12, 3, SIM_DRAW_PAIRS, SIM_CHECK_ALL, &first, &last); /* few blocks */
}

/* What blocks store, each by itself and all together, tells those that store the same again. */
static void test_stores(void) {
    uint64_t first, last;
    struct sim_stores apart =
        run_stores(32 * 4096, 4096, 64, 0, SIM_DRAW_APART, 0, &first, &last).stores;
    CHECK(apart.gangs == 64 && apart.gangs_total == 4096);
    CHECK(apart.sum == 64 * 4 && apart.distinct == 64 * 4 && apart.squares == 64 * 16);
    struct sim_stores same = run_stores(32, 4096, 64, 0, SIM_DRAW_APART, 0, &first, &last).stores;
    CHECK(same.sum == 64 * 4 && same.distinct == 4);
    CHECK(first == 0 && last == 0); /* bytes are followed under checks alone */
}

/* Of a stretch of blocks what they store together counts, once. */
static void test_stretches(void) {
    uint64_t first, last;
    uint32_t ran[64];
    struct sim_stores apart =
        run_stores(32 * 4096, 4096, 64, 5, SIM_DRAW_STRETCHES, 0, &first, &last).stores;
    CHECK(blocks_run(ran, 64) == 64);
    for (size_t i = 0; i < 64; i++)
        CHECK(i % SIM_STRETCH == 0 ? ran[i] / 512 == i / SIM_STRETCH : ran[i] == ran[i - 1] + 1);
    CHECK(apart.gangs == 8 && apart.gangs_total == 4096 && apart.storing == 8);
    CHECK(apart.sum == 64 * 4 && apart.squares == 8 * 32 * 32 && apart.distinct == 64 * 4);
    struct sim_stores same =
        run_stores(32, 4096, 64, 5, SIM_DRAW_STRETCHES, 0, &first, &last).stores;
    CHECK(same.gangs == 8 && same.sum == 8 * 4 && same.distinct == 4);
}

static size_t rare(const struct sim_miss *m, uint32_t x, uint32_t y, uint64_t found[4]) {
    const uint32_t grid[3] = {x, y, 1};
    memset(found, 0, 4 * sizeof *found);
    return sim_rare_gangs(m, 1, grid, found, 4);
}

/* Where a comparison of the block's number, or of its place in the grid, will be met. */
static void test_rare_blocks(void) {
    uint64_t out_at[4];
    struct sim_miss m = {.n = 3, .gang = {0, 4, 8}, .by = {-777, -773, -769}};
    CHECK(rare(&m, 4096, 1, out_at) == 2 && out_at[0] == 777 && out_at[1] == 778);
    CHECK(rare(&m, 700, 1, out_at) == 0); /* there is no such block */
    m.met = true;                         /* it may be met elsewhere for another reason */
    CHECK(rare(&m, 4096, 1, out_at) == 2 && out_at[0] == 777);
    struct sim_miss between = {.n = 3, .gang = {0, 1, 2}, .by = {-9, -7, -5}};
    CHECK(rare(&between, 4096, 1, out_at) == 2 && out_at[0] == 4 && out_at[1] == 5);
    struct sim_miss bent = {.n = 3, .gang = {0, 4, 8}, .by = {-777, -773, -768}};
    CHECK(rare(&bent, 4096, 1, out_at) == 0);
    struct sim_miss flat = {.n = 3, .gang = {0, 4, 8}, .by = {5, 5, 5}};
    CHECK(rare(&flat, 4096, 1, out_at) == 0);
    struct sim_miss row = {.n = 3, .gang = {3, 107, 201}, .by = {-50, -49, -48}};
    CHECK(rare(&row, 100, 4096, out_at) == 2 && out_at[0] == 50 * 100);
    struct sim_miss order = {.n = 3, .order = true, .gang = {0, 4, 8}, .by = {-9, -5, -1}};
    CHECK(rare(&order, 4096, 1, out_at) == 2 && out_at[0] == 9 && out_at[1] == 10);
    struct sim_miss few = {.n = 2, .gang = {0, 4}, .by = {-8, -4}};
    CHECK(rare(&few, 4096, 1, out_at) == 0);
}

/* A row and a column together name one block; unmet comparisons come before others. */
static void test_rare_places(void) {
    const uint32_t grid[3] = {64, 4096, 1};
    struct sim_miss two[2] = {{.n = 3, .gang = {3, 107, 201}, .by = {-50, -49, -47}},
                              {.n = 3, .met = true, .gang = {3, 107, 201}, .by = {-14, 26, -8}}};
    uint64_t found[32] = {0};
    bool both = false;
    size_t n = sim_rare_gangs(two, 2, grid, found, 32);
    CHECK(n >= 4 && found[0] == 50 * 64); /* the row alone, before it is known with the column */
    for (size_t i = 0; i < n; i++)
        both |= found[i] == 50 * 64 + 17;
    CHECK(both);
    CHECK(sim_rare_gangs(two, 2, grid, found, 3) == 3);
}

/* All blocks store to y; then a part of them, or all, do so again, and y is forgotten. What is
 * filled afterwards is written. */
static void test_forgetting(void) {
    for (int part = 0; part < 2; part++) {
        struct harness h;
        struct sim_findings found = {0};
        struct sim_result r = {0};
        if (harness_load(&h, "coverage.ptx", "stores")) {
            struct sim_buffer b = {.name = S("y"),
                                   .host = out,
                                   .size = sizeof out,
                                   .undefined = true,
                                   .between = true};
            struct params p = {sim_machine_add(h.machine, &b), 32 * 4096, 0};
            struct sim_launch l = {.program = h.program,
                                   .grid = {4096, 1, 1},
                                   .block = {32, 1, 1},
                                   .params = &p,
                                   .params_size = sizeof p,
                                   .threads = 1,
                                   .checks = SIM_CHECK_UNINITIALISED,
                                   .findings = &found};
            uint64_t first, end = 0;
            sim_run(h.machine, &l, &r);
            l.sample_ctas = part ? 8 : 0;
            sim_run(h.machine, &l, &r);
            CHECK(r.status == SIM_OK && r.counters.ctas == (part ? 8 : 4096));
            CHECK(sim_machine_stored(h.machine, p.y, &first, &end) && first == 0);
            CHECKF(part ? end == 128 : end == sizeof out, "%llu bytes", (unsigned long long)end);
            CHECKF(sim_machine_written(h.machine, p.y, sizeof out - 256, 4), "part %d", part);
            sim_machine_forget(h.machine);
            CHECKF(sim_machine_written(h.machine, p.y, 0, 128), "part %d", part);
            CHECKF(sim_machine_written(h.machine, p.y, sizeof out - 256, 4) == !part, "part %d",
                   part);
            CHECK(sim_machine_fill(h.machine, p.y, &(uint32_t){7}, 4, 32 * 4096));
            CHECKF(sim_machine_written(h.machine, p.y, sizeof out - 256, 4), "part %d", part);
        }
        harness_free(&h);
    }
}

static const struct tap_case cases[] = {
    {"a loop that runs once, twice, more often", test_loops},
    {"selections, comparisons and guards", test_selections_and_guards},
    {"an outcome in words", test_words},
    {"blocks are drawn by a key", test_drawn_blocks},
    {"every second drawn block is a neighbour", test_pairs},
    {"what blocks store", test_stores},
    {"what a launch in part leaves in doubt", test_forgetting},
    {"what stretches of blocks store", test_stretches},
    {"the block that a comparison names", test_rare_blocks},
    {"the block that two comparisons name together", test_rare_places},
};
TAP_CASES(cases)
