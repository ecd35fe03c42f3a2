/* The verdict on outputs: classes, limits, NaN, determinism. */
#include "fixture.h"

static const char task_text[] = "task t \"T\"\ndim N = 10000\nin x[N] : f32 ~ normal(0,1)\n"
                                "out y[N] : f32\ny[i] = exp(x[i])\n";

enum { N = 10000 };

static struct comparison compare(struct fixture *f, const float *y, unsigned threads) {
    struct comparison c;
    reference_compare(f->in, &f->refs[0], y, threads, &c);
    return c;
}

static bool start(struct fixture *f, float *y) {
    if (!fixture_text(f, task_text) || !fixture_data(f, DATA_STATED, 9))
        return false;
    const float *x = f->inputs[0];
    for (int i = 0; i < N; i++)
        y[i] = expf(x[i]);
    return true;
}

static void honest_passes(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        struct comparison c = compare(&f, y, 2);
        CHECK(c.pass && c.pass_looser && c.judged == N && c.wrong == 0 && c.nfirst == 0);
        CHECK(c.worst_limit == 32 && fabs(c.rms_limit - 8) < 0.01 && c.rms > 0 && c.rms < 1 &&
              c.worst < 2);
    }
    fixture_end(&f);
}

static void one_element_fails(void) {
    struct fixture f;
    static float y[N];
    static const struct {
        float value; /* 0: the right one times 1.001 */
        bool nonfinite;
    } rows[] = {{0, false}, {NAN, true}, {INFINITY, true}, {-INFINITY, true}, {1e30f, false}};
    if (!start(&f, y))
        return fixture_end(&f);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        float was = y[5000];
        y[5000] = rows[k].value == 0 ? was * 1.001f : rows[k].value;
        struct comparison c = compare(&f, y, 1);
        CHECKF(!c.pass, "row %zu", k);
        CHECKF(c.nonfinite == rows[k].nonfinite && c.wrong == !rows[k].nonfinite, "row %zu", k);
        CHECKF(c.nfirst == 1 && c.first[0].index == 5000, "row %zu", k);
        CHECKF(c.first[0].expected == f.refs[0].value[5000], "row %zu", k);
        y[5000] = was;
    }
    fixture_end(&f);
}

static void rms_catches_what_no_element_shows(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        for (int i = 0; i < N; i++)
            y[i] = (float)(f.refs[0].value[i] + 12 * f.refs[0].estimate[i]);
        struct comparison c = compare(&f, y, 2);
        CHECK(!c.pass && c.wrong == 0 && c.worst < 32 && c.rms > 8 && c.pass_looser);
    }
    fixture_end(&f);
}

static void looser_is_not_anything(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        for (int i = 0; i < N; i++)
            y[i] *= 1.004f;
        struct comparison c = compare(&f, y, 2);
        CHECK(!c.pass && c.pass_looser);
        for (int i = 0; i < N; i++)
            y[i] *= 1.2f;
        c = compare(&f, y, 2);
        CHECK(!c.pass && !c.pass_looser && c.nfirst == MISMATCH_KEPT && c.first[7].index == 7);
    }
    fixture_end(&f);
}

/* Where inputs that were rounded cancel, a kernel of a looser class may miss an element that is
 * small beside others. One that is exact everywhere else is of no looser class. */
static void one_fault_among_exact_elements_is_wrong(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        const int at = 5000;
        float off = (float)f.refs[0].value[at] + 1;
        y[at] = off;
        struct comparison c = compare(&f, y, 2);
        CHECK(!c.pass && !c.pass_looser && c.wrong == 1);
        for (int i = 0; i < N; i++)
            y[i] *= 1.004f;
        y[at] = off;
        c = compare(&f, y, 2);
        CHECK(!c.pass && c.pass_looser);
    }
    fixture_end(&f);
}

static void threads_do_not_matter(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        y[3] = NAN;
        y[9999] = 0;
        struct comparison one = compare(&f, y, 1);
        for (unsigned t = 2; t < 40; t += 9) {
            struct comparison c = compare(&f, y, t);
            CHECK(c.rms == one.rms && c.worst == one.worst && c.nfirst == one.nfirst);
            CHECK(c.first[0].index == 3 && c.first[1].index == 9999);
        }
    }
    fixture_end(&f);
}

static void classes_of_values(void) {
    static const struct {
        const char *body;
        double x;
        float got;
        bool pass;
    } rows[] = {
        {"maximum(x[i], 0)", NAN, NAN, true},
        {"maximum(x[i], 0)", NAN, 0, false},
        {"maximum(x[i], 0)", INFINITY, INFINITY, true},
        {"maximum(x[i], 0)", INFINITY, 3e38f, false},
        {"maximum(x[i], 0)", -INFINITY, 0, true},
        {"-x[i]", INFINITY, INFINITY, false},
        {"x[i] - x[i]", INFINITY, NAN, true}, /* undefined: anything goes */
        {"x[i] - x[i]", INFINITY, 17, true},
        {"x[i]", 1, 1, true},
        {"x[i]", 1, 1 + 0x1p-23f, false}, /* a copy is exact */
        {"x[i]", 0x1p-140, 0, false},     /* and not flushed */
        {"x[i]*0.5", 0x1p-149, 0, true},
        {"x[i]*0.5", 0x1p-130, 0, false},
        {"x[i]", -0.0, 0, true},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[160];
        snprintf(text, sizeof text,
                 "task t \"T\"\nin x[1] : f32 ~ ones\nout y[1] : f32\ny[i] = %s\n", rows[k].body);
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", &rows[k].x, 1);
            if (fixture_eval(&f, 1))
                CHECKF(compare(&f, &rows[k].got, 1).pass == rows[k].pass, "row %zu", k);
        }
        fixture_end(&f);
    }
}

static void integers_are_exact(void) {
    struct fixture f;
    double x[3] = {0.5, 1.5, 2.5};
    int32_t good[3] = {0, 1, 2}, bad[3] = {0, 2, 2};
    struct comparison c;
    if (fixture_text(&f,
                     "task t \"T\"\nin x[3] : f32 ~ ones\nout y[3] : i32\ny[i] = floor(x[i])\n")) {
        fixture_set(&f, "x", x, 3);
        if (fixture_eval(&f, 1)) {
            reference_compare(f.in, &f.refs[0], good, 1, &c);
            CHECK(c.pass && c.judged == 3 && c.worst == 0);
            reference_compare(f.in, &f.refs[0], bad, 1, &c);
            CHECK(!c.pass && !c.pass_looser && c.wrong == 1 && isinf(c.worst) && isinf(c.rms));
        }
    }
    fixture_end(&f);
}

static void limits_follow_the_class(void) {
    struct fixture f;
    float y = 1;
    struct comparison c;
    if (fixture_text(&f, "task t \"T\"\nout y : f32\ny = 1\naccuracy tf32\n") &&
        fixture_eval(&f, 1)) {
        reference_compare(f.in, &f.refs[0], &y, 1, &c);
        CHECK(c.pass && c.worst_limit == 8 && c.rms_limit == 6); /* of one element */
    }
    fixture_end(&f);
}

/* x as rows of four; the index output of the body against what a kernel returned. */
static void near_ties(void) {
    static const struct {
        const char *body;
        double x[4];
        int32_t got;
        bool pass;
    } rows[] = {
        {"argmax(k) x[k]", {1, 3, 2, 0}, 1, true},
        {"argmax(k) x[k]", {1, 3, 2, 0}, 2, false},
        {"argmax(k) x[k]", {1, 3, 3, 0}, 2, false}, /* values are exact: the first counts */
        {"argmin(k) x[k]", {1, 0, 3, 0}, 1, true},
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 3, 0}, 2, true}, /* computed: either */
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 3, 0}, 3, false},
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 2.9999, 0}, 2, false},
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 0x1.7ffffep1, 0}, 2, true},
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 3, 0}, -7, false},
        {"argmax(k) x[k]*x[k]*0.1", {1, 3, 3, 0}, 1 << 30, false},
        {"argmax(k) x[k]", {1, 3, NAN, NAN}, 2, true},
        {"argmax(k) x[k]", {1, 3, NAN, NAN}, 1, false},
        {"argmax(k | k > 1) x[k]*0.1", {1, 3, 1, 1}, 3, true},
        {"argmax(k | k > 1) x[k]*0.1", {1, 1, 1, 1}, 1, false},
        {"argmax(k | k > 1) x[k]", {1, 3, -INFINITY, -INFINITY}, 2, true},
        {"argmax(k | k > 1) x[k]", {1, 3, -INFINITY, -INFINITY}, 0, false},
        {"argmin(k | k > 2) x[k]", {1, 3, 0, INFINITY}, 3, true},
        /* Of an infinity that went through a sum a kernel may have made NaN, and NaN comes first.
         */
        {"argmax(k) (sum(m < 2) x[k]*(m + 1))", {1, -INFINITY, 3, 0}, 1, true},
        {"argmax(k) (sum(m < 2) x[k]*(m + 1))", {1, -INFINITY, 3, 0}, 2, true},
        {"argmax(k) (sum(m < 2) x[k]*(m + 1))", {1, -INFINITY, 3, 0}, 0, false},
        {"argmax(k) (sum(m < 2) x[k]*(m + 1))", {1, -INFINITY, NAN, 0}, 1, true},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[200];
        struct comparison c;
        snprintf(text, sizeof text, "task t \"T\"\nin x[4] : f32 ~ ones\nout y : i32\ny = %s\n",
                 rows[k].body);
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", rows[k].x, 4);
            if (fixture_eval(&f, 1)) {
                reference_compare(f.in, &f.refs[0], &rows[k].got, 1, &c);
                CHECKF(c.pass == rows[k].pass, "row %zu %s: %d", k, rows[k].body, rows[k].got);
            }
        }
        fixture_end(&f);
    }
}

static void truths_are_zero_or_one(void) {
    struct fixture f;
    double x[3] = {1, -1, 10};
    static const struct {
        unsigned char got[3];
        bool pass;
    } rows[] = {
        {{1, 0, 1}, true},  {{1, 0, 0}, true}, /* 10*0.1 > 1 may go either way */
        {{1, 1, 1}, false}, {{255, 0, 1}, false}, {{1, 0, 2}, false},
    };
    if (fixture_text(&f, "task t \"T\"\nin x[3] : f32 ~ ones\nout y[3] : bool\n"
                         "y[i] = if(i < 2, x[i]*4, x[i]*0.1) > 1\n")) {
        fixture_set(&f, "x", x, 3);
        for (size_t k = 0; k < sizeof rows / sizeof *rows && fixture_eval(&f, 1); k++) {
            struct comparison c;
            reference_compare(f.in, &f.refs[0], rows[k].got, 1, &c);
            CHECKF(c.pass == rows[k].pass, "row %zu", k);
            CHECKF(c.pass == c.pass_looser, "row %zu", k);
        }
    }
    fixture_end(&f);
}

/* Inaccurate is a property of all of an output; one wild element is wrong. */
static void one_wild_element_is_wrong(void) {
    struct fixture f;
    static float y[N];
    if (start(&f, y)) {
        y[77] = -123.25f;
        CHECK(!compare(&f, y, 1).pass && !compare(&f, y, 1).pass_looser);
        y[77] = 3e30f;
        CHECK(!compare(&f, y, 1).pass_looser);
    }
    fixture_end(&f);
}

static void infinities_and_regrouping(void) {
    static const struct {
        const char *body;
        double x[3];
        float got;
        bool pass;
    } rows[] = {
        {"(x[0] - x[1])*x[2]", {3, 1, INFINITY}, INFINITY, true},
        {"(x[0] - x[1])*x[2]", {3, 1, INFINITY}, NAN, true}, /* x0*x2 - x1*x2 */
        {"(x[0] - x[1])*x[2]", {3, 1, INFINITY}, -INFINITY, false},
        {"(x[0] - x[1])*x[2] + 1", {3, 1, INFINITY}, NAN, true},
        {"(x[0] - x[1])*x[2]", {3, 1, 2}, NAN, false},
        {"(x[0] + x[1])*x[2]", {3, 1, INFINITY}, NAN, false},
        {"sum(k) x[k]*x[k]", {3, 1, INFINITY}, NAN, true}, /* split into parts */
        {"sum(k) x[k]", {3, 1, INFINITY}, NAN, true},      /* compensated */
        {"sum(k) x[k]", {3, 1, INFINITY}, -INFINITY, false},
        {"sum(k) x[k]", {3, 1, INFINITY}, 3e38f, false},
        {"max(k) x[k]", {3, 1, INFINITY}, NAN, false},
        {"sum(k | k > 1) x[k]*x[k]", {NAN, 1, 2}, NAN, true}, /* 0 times what is left out */
        {"sum(k | k > 1) x[k]*x[k]", {NAN, 1, 2}, 4, true},
        {"sum(k | k > 1) x[k]", {NAN, 1, 2}, NAN, false},
        {"sum(k | k > 1) x[k]*x[k]", {1, 1, NAN}, NAN, true}, /* not left out by anybody */
        {"sum(k | k > 1) x[k]*x[k]", {1, 1, NAN}, 0, false},
        {"sum(k | k > 1) x[k]*x[k]", {1, NAN, INFINITY}, 0, true},
        {"sum(k | k > 1) x[k]*x[k]", {1, 1, 2}, 5, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[200];
        snprintf(text, sizeof text, "task t \"T\"\nin x[3] : f32 ~ ones\nout y : f32\ny = %s\n",
                 rows[k].body);
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", rows[k].x, 3);
            if (fixture_eval(&f, 1))
                CHECKF(compare(&f, &rows[k].got, 1).pass == rows[k].pass, "row %zu %s", k,
                       rows[k].body);
        }
        fixture_end(&f);
    }
}

/* bf16 has no numbers this small: what it makes of them is its rounding, not another result. */
static void looser_knows_subnormals(void) {
    struct fixture f;
    if (fixture_text(&f, "task t \"T\"\ndim N = 64\nin x[N] : f32 ~ normal(0,1)\n"
                         "out y[N] : f32\ny[i] = x[i]\n") &&
        fixture_data(&f, DATA_SUBNORMAL, 3)) {
        static float y[64];
        struct comparison c;
        for (int i = 0; i < 64; i++)
            f.refs[0].value[i] = 37 * 0x1p-149;
        reference_compare(f.in, &f.refs[0], y, 1, &c);
        CHECK(!c.pass && c.pass_looser);
    }
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"an honest output passes", honest_passes},
    {"one bad element fails", one_element_fails},
    {"the root mean square catches what no element shows", rms_catches_what_no_element_shows},
    {"looser is not anything", looser_is_not_anything},
    {"one fault among exact elements is wrong", one_fault_among_exact_elements_is_wrong},
    {"threads do not matter", threads_do_not_matter},
    {"classes of values", classes_of_values},
    {"integers are exact", integers_are_exact},
    {"limits follow the class", limits_follow_the_class},
    {"near-ties of an index are as good", near_ties},
    {"a truth value is 0 or 1", truths_are_zero_or_one},
    {"one wild element is wrong", one_wild_element_is_wrong},
    {"looser knows subnormals", looser_knows_subnormals},
    {"infinities and regrouping", infinities_and_regrouping},
};
TAP_CASES(cases)
