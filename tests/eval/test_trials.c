#include "eval/trials.h"

#include "tap.h"

#define TASK                                                                                       \
    "task t \"t\"\n"                                                                               \
    "dim R = 512, C = 1024\n"                                                                      \
    "in x[R,C] : f32 ~ normal(0,1)\n"                                                              \
    "out y[R,C] : f32\n"                                                                           \
    "y[i,j] = maximum(x[i,j], 0)\n"                                                                \
    "check R = 3, C = 5\n"                                                                         \
    "check R = 7, C = 256\n"
#define BODY "extern \"C\" __global__ void k(const float *x, float *y, int n) {}\n"

struct made {
    struct arena *a;
    struct trials t;
    bool ok, launch;
    struct err err;
};

static struct made make_with(const char *plan, int64_t rows, const struct trials_options *o) {
    struct made m = {.a = arena_new(256u << 20)};
    struct binding set = {S("R"), rows};
    struct candidate *c;
    struct task *task;
    struct inst *in;
    str source = arena_printf(m.a, "%s%s", plan, BODY);
    bool parsed = task_parse(S("t.task"), S(TASK), m.a, &task, &m.err) &&
                  task_bind(task, &set, 1, m.a, &in, &m.err) &&
                  candidate_parse(S("k.cu"), source, task, m.a, &c, &m.err);
    CHECKF(parsed, "%s", m.err.text);
    m.ok = parsed && trials_make(c, in, o, m.a, &m.t, &m.launch, &m.err);
    return m;
}

static struct made make(const char *plan, int64_t rows) {
    struct trials_options o = {.secret = 7, .measure = true};
    return make_with(plan, rows, &o);
}

/* Cases of a shape with this kind of data, and whether they are counted. */
static size_t cases_of(const struct trials *t, size_t shape, enum data_kind kind, bool counted) {
    size_t n = 0;
    for (size_t i = 0; i < t->nbatches; i++)
        for (size_t k = 0; k < t->batches[i].ncases; k++)
            n += t->batches[i].shape == shape && t->batches[i].cases[k].data == kind &&
                 t->batches[i].counted == counted;
    return n;
}

enum {
    CHECKS = 2,
    MADE = 3,
    TAILS = 5,
    STRETCHED = 2,
    PLAIN = CHECKS + MADE,                  /* the own shape's place in a search, */
    OWN = CHECKS + MADE + TAILS + STRETCHED /* and where it is thorough */
};                                          /* where the made shapes and the own one begin */
#define PLAN "//! launch k<<<ceil_div(R*C,256), 256>>>(x, y, R*C)\n"

/* Cases of all small shapes with this kind of data: one on each at the most. */
static size_t small_cases(const struct trials *t, enum data_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < PLAIN; i++) {
        CHECK(cases_of(t, i, kind, false) <= 1);
        n += cases_of(t, i, kind, false);
    }
    return n;
}

static bool takes_turns(enum data_kind k) {
    return k == DATA_OFFSET || k == DATA_LITERALS || k == DATA_FAR || k == DATA_INFINITE;
}

/* Each of the four on two shapes at the least, two on every shape, by the secret; on all shapes
 * where there are few. */
static void some_kinds_take_turns(void) {
    bool drawn = false;
    size_t before = 0;
    for (uint64_t secret = 0; secret < 20; secret++) {
        struct trials_options o = {.secret = secret};
        struct made m = make_with(PLAN, 512, &o);
        struct made few = make_with("//! require R == 7 && C == 256 || R == 512\n" PLAN, 512, &o);
        size_t all = 0;
        for (int k = 0; m.ok && k < DATA_COUNT; k++) {
            size_t n = small_cases(&m.t, (enum data_kind)k);
            CHECK(!takes_turns((enum data_kind)k) || (n >= 2 && n < PLAIN));
            all += takes_turns((enum data_kind)k) ? n : 0;
            for (size_t i = 0; few.ok && i + 1 < few.t.n && few.t.n < 5; i++)
                CHECK(cases_of(&few.t, i, (enum data_kind)k, false) == (k != DATA_MIXED));
        }
        CHECK(m.ok && few.ok && all == 2 * (CHECKS + MADE));
        size_t first = cases_of(&m.t, 0, DATA_OFFSET, false);
        drawn |= secret && first != before;
        before = first;
        arena_free(m.a);
        arena_free(few.a);
    }
    CHECK(drawn);
}

static void all_check_shapes_and_the_own_one(void) {
    struct made m = make(PLAN, 512);
    /* two check shapes, three made, two stretched ones, and the own one */
    CHECK(m.ok && m.t.n == PLAIN + 1 && m.t.task_shape_run && !m.t.watches);
    for (size_t k = 0; m.ok && k < DATA_COUNT; k++)
        CHECKF(small_cases(&m.t, (enum data_kind)k) == (k == DATA_MIXED ? 0 : PLAIN) ||
                   takes_turns((enum data_kind)k),
               "%s", data_name((enum data_kind)k));
    CHECK(cases_of(&m.t, PLAIN, DATA_STATED, true) == 1);
    CHECK(cases_of(&m.t, PLAIN, DATA_STATED, false) == 0);
    CHECK(cases_of(&m.t, PLAIN, DATA_NONFINITE, false) == 0);
    CHECK(cases_of(&m.t, PLAIN, DATA_SIGNED, false) == 1 &&
          cases_of(&m.t, PLAIN, DATA_SPIKES, false) == 1);
    for (size_t i = 0; i < m.t.nbatches; i++)
        CHECK(m.t.batches[i].ncases == 1 && !m.t.batches[i].timed);
    CHECK(m.t.shapes[PLAIN].plan.launches[0].grid[0] == 512 * 1024 / 256);
    arena_free(m.a);
}

static void thorough_means_more_data_at_the_own_shape(void) {
    struct trials_options o = {.secret = 7, .thorough = true};
    struct made m = make_with(PLAN, 512, &o);
    CHECK(m.ok && m.t.n == OWN + 1 && cases_of(&m.t, OWN, DATA_STATED, true) == 0);
    CHECK(cases_of(&m.t, OWN, DATA_NONFINITE, false) == 1 &&
          cases_of(&m.t, OWN, DATA_WIDE, false) == 1);
    CHECK(cases_of(&m.t, OWN, DATA_MIXED, false) == 1 &&
          cases_of(&m.t, OWN, DATA_SORTED, false) == 0);
    CHECK(m.t.watches && !m.t.covers); /* a few blocks of it, under the checkers */
    arena_free(m.a);
    m = make_with(PLAN, 64, &o); /* half a megabyte */
    for (int k = DATA_STATED + 1; m.ok && k < DATA_COUNT; k++)
        CHECKF(cases_of(&m.t, OWN, (enum data_kind)k, false) == (k != DATA_MIXED), "%s",
               data_name((enum data_kind)k));
    arena_free(m.a);
}

static size_t kinds_at_own_shape(const struct trials *t) {
    size_t n = 0;
    for (int k = 0; k < DATA_COUNT; k++)
        n += cases_of(t, OWN, (enum data_kind)k, false);
    return n;
}

/* All of them where the own shape is within a GiB; four that the secret draws above. */
static void a_gpu_meets_more_kinds_at_the_own_shape(void) {
    struct trials_options o = {
        .secret = 7, .thorough = true, .gpu = true, .memory = (size_t)1 << 36};
    struct made m = make_with(PLAN, 512, &o);
    CHECK(m.ok && kinds_at_own_shape(&m.t) == DATA_COUNT - 2);
    arena_free(m.a);
    bool seen[DATA_COUNT] = {false};
    for (o.secret = 0; o.secret < 40; o.secret++) {
        m = make_with(PLAN, (int64_t)1 << 18, &o);
        CHECK(m.ok && kinds_at_own_shape(&m.t) == 6 + 1 + 4);
        for (int k = 0; k < DATA_COUNT; k++)
            seen[k] |= cases_of(&m.t, OWN, (enum data_kind)k, false) > 0;
        arena_free(m.a);
    }
    for (int k = DATA_STATED + 1; k < DATA_COUNT; k++)
        CHECKF(seen[k], "%s", data_name((enum data_kind)k));
}

static void on_a_gpu_a_shape_is_a_batch_and_the_own_one_is_timed(void) {
    struct trials_options o = {
        .secret = 7, .measure = true, .gpu = true, .memory = (size_t)1 << 30};
    struct made m = make_with(PLAN, 512, &o);
    CHECK(m.ok && m.t.n == PLAIN + 1 && m.t.nbatches == PLAIN + 1);
    for (size_t i = 0; m.ok && i < PLAIN; i++)
        CHECK(m.t.batches[i].ncases == DATA_COUNT - 5 && !m.t.batches[i].timed);
    const struct job_batch *own = &m.t.batches[PLAIN];
    CHECK(own->timed && own->ncases == 8 && own->shape == PLAIN);
    CHECK(own->cases[0].seed == 7 && own->cases[3].seed == 8 && own->cases[1].data == DATA_SIGNED);
    arena_free(m.a);
}

/* Batches of the own shape, each of which must have one case. */
static size_t single_own(const struct trials *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->nbatches; i++)
        if (t->batches[i].shape == t->n - 1) {
            CHECK(t->batches[i].ncases == 1);
            n++;
        }
    return n;
}

static void where_memory_is_short_contents_come_one_by_one(void) {
    struct trials_options o = {
        .secret = 7, .measure = true, .gpu = true, .memory = (size_t)5 << 20};
    struct made m = make_with(PLAN, 512, &o);
    CHECK(m.ok && m.t.task_shape_run && single_own(&m.t) == 3);
    CHECK(m.t.batches[m.t.nbatches - 1].timed && m.t.batches[m.t.nbatches - 3].timed);
    arena_free(m.a);
    o.thorough = true;
    m = make_with(PLAN, 512, &o);
    CHECK(m.ok && single_own(&m.t) == 4 + 9 + 3);
    arena_free(m.a);
    o.memory = (size_t)1 << 20;
    m = make_with(PLAN, 512, &o);
    CHECK(m.ok && !m.t.task_shape_run && m.t.n == OWN);
    arena_free(m.a);
}

static bool says(const struct trials *t, const char *what) {
    return str_find(t->scope, str_view(what)) < t->scope.n;
}

/* What the task's own shape takes is known: fewer contents, nothing kept, tiles, not at all. */
static void what_memory_does_not_hold_is_left_out_and_said(void) {
    const size_t gib = (size_t)1 << 30;
    const struct {
        struct memory_need need;
        size_t contents;
        bool remade, sampled;
        const char *said;
    } rows[] = {
        {{gib, 0, 0, 0}, 8, false, false, "and the task's own shape"},
        {{3 * gib, gib, 0, 0},
         3,
         false,
         false,
         "timed on 3 contents, as the GPU's memory does not"},
        {{9 * gib, 9 * gib, 9 * gib, gib}, 3, true, false, "and those one after the other"},
        {{4 * gib, 0, 99 * gib, 99 * gib}, 3, false, true, "tiles alone are compared"},
        {{40 * gib, 0, 0, 0}, 0, false, false, "does not fit the GPU's memory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trials_options o = {
            .secret = 7, .measure = true, .gpu = true, .memory = 16 * gib, .need = &rows[i].need};
        struct made m = make_with(PLAN, 512, &o);
        const struct job_batch *last = &m.t.batches[m.t.nbatches - 1];
        bool own = rows[i].contents > 0;
        CHECKF(m.ok && m.t.task_shape_run == own && m.t.contents == rows[i].contents,
               "row %zu: %zu", i, m.t.contents);
        CHECKF(says(&m.t, rows[i].said), "row %zu: %.*s", i, STR_ARG(m.t.scope));
        CHECK(last->timed == own && last->remade == rows[i].remade &&
              last->sampled == rows[i].sampled);
        arena_free(m.a);
    }
}

static void another_secret_makes_another_shape(void) {
    struct trials_options o = {.secret = 1}, p = {.secret = 2};
    const char *plan = PLAN;
    struct made m = make_with(plan, 512, &o), n = make_with(plan, 512, &p);
    struct made again = make_with(plan, 512, &o);
    CHECK(m.ok && n.ok && !str_eq(m.t.shapes[2].label, n.t.shapes[2].label));
    CHECK(str_eq(m.t.shapes[2].label, again.t.shapes[2].label));
    arena_free(m.a);
    arena_free(n.a);
    arena_free(again.a);
}

static void one_shape_is_odd_and_every_dimension_short_once(void) {
    for (uint64_t secret = 0; secret < 50; secret++) {
        struct trials_options o = {.secret = secret};
        struct made m = make_with(PLAN, 512, &o);
        const int64_t *odd = m.t.shapes[CHECKS].inst->dims;
        CHECK(m.ok && odd[0] % 2 && odd[1] % 2 && odd[0] > 4 && odd[1] > 4);
        for (size_t d = 0; m.ok && d < 2; d++)
            CHECK(m.t.shapes[CHECKS + 1].inst->dims[d] <= 4 ||
                  m.t.shapes[CHECKS + 2].inst->dims[d] <= 4);
        for (size_t i = CHECKS + 1; m.ok && i <= CHECKS + 2; i++)
            CHECK(m.t.shapes[i].inst->dims[1] <= 4 || m.t.shapes[i].inst->dims[1] % 8 == 0);
        arena_free(m.a);
    }
}

/* Each dimension is once twice, once four times, once eight times and once 16 or 32 times something
 * odd, and once 3 more than a multiple of four. */
static void every_dimension_has_every_tail(void) {
    for (uint64_t secret = 0; secret < 50; secret++) {
        struct trials_options o = {.secret = secret, .thorough = true};
        struct made m = make_with(PLAN, 512, &o);
        for (size_t d = 0; m.ok && d < 2; d++) {
            int64_t seen = 0;
            for (size_t i = CHECKS + MADE; i < OWN - STRETCHED; i++)
                seen |= m.t.shapes[i].inst->dims[d] & -m.t.shapes[i].inst->dims[d];
            CHECK(seen == (1 | 2 | 4 | 8 | 16) || seen == (1 | 2 | 4 | 8 | 32));
            CHECK(m.t.shapes[OWN - STRETCHED - 1].inst->dims[d] % 4 == 3);
        }
        const int64_t *square = m.t.shapes[CHECKS + MADE].inst->dims;
        CHECK(m.ok && square[0] == square[1]);
        arena_free(m.a);
    }
}

/* Each dimension once longer than any other that is tried, and longer than the task's own: once of
 * another parity than the short one, which is odd or even by the secret, once much longer. */
static void every_dimension_is_stretched_once(void) {
    size_t odd = 0, far = 0;
    for (uint64_t secret = 0; secret < 50; secret++) {
        struct trials_options o = {.secret = secret, .thorough = true};
        struct made m = make_with(PLAN, 512, &o);
        const struct trial_shape *s = &m.t.shapes[OWN - STRETCHED];
        CHECK(m.ok && m.t.n == OWN + 1);
        for (size_t d = 0; m.ok && d < 2; d++) {
            size_t which = s[0].inst->dims[d] > 1024 ? 0 : 1;
            int64_t most = s[which].inst->dims[d], other = s[which].inst->dims[1 - d];
            CHECKF(which ? most >= 4999 && most <= 80000 && (other == 1 || other == 5 || other == 6)
                         : most > 1024 && most < 5002 && other > 4 && other < 25,
                   "%zu: %zu, %zu", which, (size_t)most, (size_t)other);
            CHECK(other == 1 || most % 2 != other % 2);
            for (size_t i = 0; i < OWN - STRETCHED; i++)
                CHECK(m.t.shapes[i].inst->dims[d] <= 1024);
            odd += !which && most % 2 != 0;
            far += which && most > 65536;
        }
        arena_free(m.a);
    }
    CHECKF(odd > 10 && odd < 40 && far > 3 && far < 20, "%zu, %zu", odd, far);
}

/* A kernel with a row of blocks for each row is not refused for rows that no grid holds. */
static void the_far_shape_can_be_launched(void) {
    for (uint64_t secret = 0; secret < 50; secret++) {
        struct trials_options o = {.secret = secret, .thorough = true};
        struct made m = make_with("//! launch k<<<[1, R], 256>>>(x, y, R*C)\n", 512, &o);
        CHECKF(m.ok, "%s", m.err.text);
        for (size_t i = 0; m.ok && i < m.t.n; i++)
            CHECK(m.t.shapes[i].inst->dims[0] <= 65535);
        arena_free(m.a);
    }
}

static void on_the_simulator_planes_are_few(void) {
    static const char text[] = "task t \"t\"\n"
                               "dim N = 4, C = 64, H = 32, W = 32\n"
                               "in x[N,C,H,W] : f32 ~ normal(0,1)\n"
                               "out y[N,C,H,W] : f32\n"
                               "y[n,c,i,j] = maximum(x[n,c,i,j], 0)\n";
    size_t many = 0;
    for (uint64_t secret = 0; secret < 100; secret++) {
        struct trials_options o = {.secret = secret, .gpu = secret % 2, .memory = (size_t)1 << 30};
        struct made m = {.a = arena_new(256u << 20)};
        struct candidate *c;
        struct task *task;
        struct inst *in;
        m.ok = task_parse(S("t.task"), str_view(text), m.a, &task, &m.err) &&
               task_bind(task, NULL, 0, m.a, &in, &m.err) &&
               candidate_parse(S("k.cu"), S("//! launch k<<<N*C, 256>>>(x, y, H*W)\n" BODY), task,
                               m.a, &c, &m.err) &&
               trials_make(c, in, &o, m.a, &m.t, &m.launch, &m.err);
        CHECKF(m.ok && m.t.n == MADE + 1, "%s", m.err.text);
        for (size_t i = 0; m.ok && i < MADE; i++) {
            const int64_t *dims = m.t.shapes[i].inst->dims;
            CHECK(o.gpu || dims[0] * dims[1] <= 1024);
            many += dims[0] * dims[1] > 1024;
        }
        arena_free(m.a);
    }
    CHECKF(many > 0, "the bound never mattered");
}

static void shapes_are_made_for_a_require_that_admits_none(void) {
    struct made m = make("//! require C % 128 == 0 && R % 2 == 0\n"
                         "//! launch k<<<R*C // 128, 128>>>(x, y, R*C)\n",
                         512);
    CHECKF(m.ok && m.t.n == MADE + 1, "%zu shapes", m.t.n);
    for (size_t i = 0; m.ok && i < m.t.n; i++) {
        CHECK(m.t.shapes[i].inst->dims[1] % 128 == 0);
        CHECK(m.t.shapes[i].inst->dims[0] % 2 == 0);
    }
    CHECK(str_starts(m.t.scope, S("0 of 2 check shapes, 3 made")));
    arena_free(m.a);
}

static void a_require_for_one_shape_alone_is_labelled(void) {
    struct made m = make("//! require C == 1024 && R == 512\n"
                         "//! launch k<<<R*C // 128, 128>>>(x, y, R*C)\n",
                         512);
    CHECK(m.ok && m.t.n == 1);
    CHECK(str_starts(m.t.scope, S("0 of 2 check shapes, 0 made")));
    CHECK(cases_of(&m.t, 0, DATA_NONFINITE, false) == 1); /* all there is: thorough */
    arena_free(m.a);
}

#define EVEN "//! require C % 2 == 0\n//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C)\n"

static void refused_checks_are_listed(void) {
    struct made m = make(EVEN, 512);
    CHECKF(m.ok && m.t.nskipped == 1, "%zu", m.t.nskipped);
    CHECK(str_is(m.t.skipped[0].label, "R=3 C=5") && str_is(m.t.skipped[0].require, "C % 2 == 0"));
    CHECKF(str_starts(m.t.scope, S("1 of 2 check shapes, 3 made")), "%.*s", STR_ARG(m.t.scope));
    arena_free(m.a);
}

static void a_refused_check_may_be_a_fault(void) {
    struct trials_options o = {.secret = 7, .measure = true, .must_admit = true};
    struct made m = make_with(EVEN, 512, &o);
    CHECK(!m.ok && !m.launch && strstr(m.err.text, "R=3 C=5") && strstr(m.err.text, "C % 2 == 0"));
    arena_free(m.a);
    m = make_with(PLAN, 512, &o);
    CHECK(m.ok && m.t.nskipped == 0 && str_starts(m.t.scope, S("2 check shapes, ")));
    arena_free(m.a);
}

static void the_own_shape_must_fit(void) {
    struct made m = make("//! require C % 1000 == 0\n//! launch k<<<1, 128>>>(x, y, R*C)\n", 512);
    CHECK(!m.ok && !m.launch && strstr(m.err.text, "C % 1000 == 0"));
    arena_free(m.a);
}

static void a_limit_broken_at_a_check_shape_is_a_launch_error(void) {
    struct made m = make("//! launch k<<<R*C // 256, 256>>>(x, y, R*C)\n", 512);
    CHECK(!m.ok && m.launch && strstr(m.err.text, "R=3 C=5"));
    arena_free(m.a);
}

static void a_large_own_shape_is_not_run_whole(void) {
    struct made m = make("//! launch k<<<ceil_div(R*C,256), 256>>>(x, y, R*C)\n", (int64_t)1 << 20);
    CHECK(m.ok && m.t.covers && !m.t.task_shape_run);
    CHECK(str_find(m.t.scope, S("too large")) < m.t.scope.n);
    CHECK(m.t.task_plan.launches[0].grid[0] == 1u << 22);
    arena_free(m.a);
}

/* The first resembles the task's own shape most and is always run; others only for coverage. */
static void long_shapes_stand_in_for_a_large_one(void) {
    for (uint64_t secret = 0; secret < 20; secret++) {
        struct trials_options o = {.secret = secret, .thorough = true};
        struct made m = make_with(PLAN, (int64_t)1 << 20, &o);
        CHECK(m.ok && m.t.n > OWN + 2);
        CHECK(m.t.shapes[OWN].inst->dims[0] == 1 << 20 && m.t.shapes[OWN].inst->dims[1] < 8);
        CHECK(m.t.shapes[OWN + 1].inst->dims[1] == 1024);
        for (size_t i = 0; i < m.t.nbatches; i++)
            CHECK(m.t.batches[i].extra == (m.t.batches[i].shape > OWN));
        CHECK(cases_of(&m.t, OWN, DATA_SIGNED, false) == 1);
        CHECK(cases_of(&m.t, OWN, DATA_SUBNORMAL, false) == 1 &&
              cases_of(&m.t, OWN, DATA_NONFINITE, false) == 1 &&
              cases_of(&m.t, OWN, DATA_INFINITE, false) == 1);
        CHECK(cases_of(&m.t, OWN + 1, DATA_SUBNORMAL, false) == 0);
        arena_free(m.a);
    }
}

static void small_dimensions_stay_as_a_require_wants_them(void) {
    static const char text[] = "task t \"t\"\n"
                               "dim N = 40, W = 1000, K = 11, S = 3\n"
                               "in x[N,W] : f32 ~ normal(0,1)\n"
                               "in w[K,S] : f32 ~ normal(0,1)\n"
                               "out y[N,W] : f32\n"
                               "y[n,i] = x[n,i] * sum(k,s) w[k,s]\n";
    struct trials_options o = {.secret = 3};
    struct made m = {.a = arena_new(256u << 20)};
    struct candidate *c;
    struct task *task;
    struct inst *in;
    m.ok = task_parse(S("t.task"), str_view(text), m.a, &task, &m.err) &&
           task_bind(task, NULL, 0, m.a, &in, &m.err) &&
           candidate_parse(S("k.cu"),
                           S("//! require K == 11\n//! require S == 3\n"
                             "//! launch k<<<N, 256>>>(x, y, W)\n" BODY),
                           task, m.a, &c, &m.err) &&
           trials_make(c, in, &o, m.a, &m.t, &m.launch, &m.err);
    CHECKF(m.ok && m.t.n == MADE + 1, "%zu shapes: %s", m.t.n, m.err.text);
    arena_free(m.a);
}

static void one_large_shape_alone_is_run_in_part(void) {
    struct made m = make("//! require R == 1048576 && C == 1024\n"
                         "//! launch k<<<ceil_div(R*C,256), 256>>>(x, y, R*C)\n",
                         (int64_t)1 << 20);
    CHECK(m.ok && m.t.n == 0 && m.t.covers); /* blocks of it are */
    arena_free(m.a);
}

/* On the simulator: stated data is watched in order 0 on every small shape, two further kinds on
 * one of them each; all kinds but the stated one have an order of their own, by the secret. */
static void orders_and_checks_are_drawn(void) {
    unsigned kinds = 0, orders = 0;
    for (uint64_t secret = 1; secret <= 16; secret++) {
        struct trials_options o = {.secret = secret};
        struct made m = make_with(PLAN, 512, &o);
        size_t second = 0, watched = 0;
        uint32_t last = 0;
        for (size_t i = 0; m.ok && i < m.t.nbatches; i++) {
            const struct job_batch *b = &m.t.batches[i];
            bool stated = b->cases[0].data == DATA_STATED, small = b->shape < PLAIN;
            CHECK(!stated || b->checked == small);
            CHECK((b->order != 0) == (small && !stated));
            CHECK(!b->checked_drawn || (small && b->cases[0].data == DATA_SIGNED));
            watched += b->checked_drawn;
            second += b->checked && !stated;
            kinds |= b->checked && !stated ? 1u << b->cases[0].data : 0;
            orders += b->order && b->order != last;
            last = b->order;
        }
        CHECKF(m.ok && second == 2, "%zu", second);
        CHECK(watched == 1 || watched == 2);
        arena_free(m.a);
    }
    CHECKF(__builtin_popcount(kinds) > 3 && kinds >> DATA_CONSTANT & 1, "%#x", kinds);
    CHECKF(orders > 16 * 40, "%u", orders);
    struct trials_options one = {.secret = 7, .order = 17};
    struct made m = make_with(PLAN, 512, &one);
    for (size_t i = 0; m.ok && i < m.t.nbatches; i++)
        CHECK(m.t.batches[i].order == 17);
    arena_free(m.a);
}

#define ONCE_TASK                                                                                  \
    "task t \"t\"\ndim R = 512, C = 1024\nin x[R,C] : f32 ~ normal(0,1)\nparam s[C] : f32 ~ "      \
    "normal(0,1)\nout y[R,C] : f32\ny[i,j] = x[i,j] * s[j]\ncheck R = 3, C = 5\n"
#define ONCE_PLAN                                                                                  \
    "//! workspace w[C] : f32\n//! once launch p<<<1, 256>>>(s, w, C)\n"                           \
    "//! launch k<<<ceil_div(R*C,256), 256>>>(x, w, y, R*C, C)\n"

/* Pairs of cases with the same parameters and other inputs, where something is done once. */
static void what_is_done_once_meets_other_inputs(void) {
    static const struct {
        struct trials_options o;
        size_t small, own;
    } rows[] = {
        {{.secret = 7, .measure = true}, 2, 0},
        {{.secret = 7, .measure = true, .thorough = true}, 2, 1},
        {{.secret = 7, .measure = true, .gpu = true, .memory = 1ull << 40}, 2, 1},
        {{.secret = 7, .gpu = true, .memory = 17ull << 20}, 2, 1},
        {{.secret = 7, .gpu = true, .memory = 9ull << 20}, 2, 0},
        {{.secret = 7, .gpu = true, .memory = 1ull << 40, .small_only = true}, 2, 0},
        {{.secret = 7, .gpu = true, .memory = 1ull << 40, .one_by_one = true}, 0, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct arena *a = arena_new(256u << 20);
        struct trials *t = arena_new_of(a, struct trials);
        struct candidate *c;
        struct task *task;
        struct inst *in;
        struct err err = {0};
        bool launch;
        size_t small = 0, own = 0;
        bool ok = task_parse(S("t.task"), S(ONCE_TASK), a, &task, &err) &&
                  task_bind(task, NULL, 0, a, &in, &err) &&
                  candidate_parse(S("k.cu"), S(ONCE_PLAN BODY), task, a, &c, &err) &&
                  trials_make(c, in, &rows[r].o, a, t, &launch, &err);
        CHECKF(ok, "row %zu: %s", r, err.text);
        for (size_t i = 0; ok && i < t->nbatches; i++) {
            const struct job_batch *b = &t->batches[i];
            const struct job_case *one = b->cases, *other = b->cases + 1;
            CHECK(!one->has_params);
            if (!b->keeps)
                continue;
            CHECK(b->ncases == 2 && !b->timed && !b->counted);
            CHECK(one->data == other->data && one->seed != other->seed);
            CHECK(other->has_params && other->params == one->seed);
            *(t->shapes[b->shape].inst == in ? &own : &small) += 1;
        }
        CHECKF(small == rows[r].small && own == rows[r].own, "row %zu: %zu, %zu", r, small, own);
        arena_free(a);
    }
    struct made none = make(PLAN, 512);
    for (size_t i = 0; none.ok && i < none.t.nbatches; i++)
        CHECK(!none.t.batches[i].keeps);
    arena_free(none.a);
}

static const struct tap_case cases[] = {
    {"orders and second kinds under the checkers are drawn", orders_and_checks_are_drawn},
    {"all check shapes and the task's own", all_check_shapes_and_the_own_one},
    {"what is done once meets other inputs", what_is_done_once_meets_other_inputs},
    {"thorough means more data at the own shape", thorough_means_more_data_at_the_own_shape},
    {"some kinds take turns on small shapes", some_kinds_take_turns},
    {"a GPU meets more kinds at the own shape", a_gpu_meets_more_kinds_at_the_own_shape},
    {"on a GPU a shape is a batch", on_a_gpu_a_shape_is_a_batch_and_the_own_one_is_timed},
    {"what the memory does not hold is left out, and said",
     what_memory_does_not_hold_is_left_out_and_said},
    {"where memory is short contents come one by one",
     where_memory_is_short_contents_come_one_by_one},
    {"another secret makes another shape", another_secret_makes_another_shape},
    {"one shape is odd, every dimension short once",
     one_shape_is_odd_and_every_dimension_short_once},
    {"every dimension has every tail", every_dimension_has_every_tail},
    {"every dimension is stretched once", every_dimension_is_stretched_once},
    {"the far shape can be launched", the_far_shape_can_be_launched},
    {"long shapes stand in for a large one", long_shapes_stand_in_for_a_large_one},
    {"small dimensions stay as a require wants them",
     small_dimensions_stay_as_a_require_wants_them},
    {"on the simulator planes are few", on_the_simulator_planes_are_few},
    {"shapes are made to satisfy require lines", shapes_are_made_for_a_require_that_admits_none},
    {"a require for one shape alone is labelled", a_require_for_one_shape_alone_is_labelled},
    {"check shapes that are refused are listed", refused_checks_are_listed},
    {"a check shape that is refused may be a fault", a_refused_check_may_be_a_fault},
    {"the task's own shape must fit", the_own_shape_must_fit},
    {"a limit broken at a check shape is a launch error",
     a_limit_broken_at_a_check_shape_is_a_launch_error},
    {"a large shape is not run whole", a_large_own_shape_is_not_run_whole},
    {"one large shape alone is run in part", one_large_shape_alone_is_run_in_part},
};
TAP_CASES(cases)
