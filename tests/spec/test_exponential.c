/* The exponential and its kin against the C library's in long double. */
#include "base/rng.h"
#include "spec/exponential.h"
#include "spec/value.h"

#include "tap.h"

static long double sigmoid_long(long double x) {
    return 1 / (1 + expl(-x));
}

static double sigmoid_by(double x) {
    return sigmoid_of(x, exponential(-fabs(x)));
}

static const struct {
    const char *name;
    double (*ours)(double);
    long double (*theirs)(long double);
    double units; /* in the last place */
} functions[] = {
    {"exponential", exponential, expl, 1},
    {"sigmoid", sigmoid_by, sigmoid_long, 3},
    {"tangent", exp_tangent, tanhl, 3},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static double units_off(size_t f, double x) {
    long double right = functions[f].theirs(x);
    double near = (double)right;
    double unit = nextafter(fabs(near), INFINITY) - fabs(near);
    return (double)(fabsl(functions[f].ours(x) - right) / unit);
}

static void note(size_t f, double x, double *worst) {
    double off = units_off(f, x);
    *worst = !(off <= *worst) ? off : *worst;
}

/* Evenly near zero, over all exponents, and where results leave normal numbers. */
static void precise(void) {
    struct rng r = rng_stream(1, S("exponential"));
    for (size_t f = 0; f < FUNCTIONS; f++) {
        double worst = 0;
        for (uint64_t i = 0; i < 100000; i++) {
            double u = 2 * rng_unit(r, i) - 1;
            note(f, u, &worst);
            note(f, 40 * u, &worst);
            note(f, 709 * u, &worst);
            note(f, ldexp(u, (int)(i % 300) - 290), &worst);
            note(f, -708 - 38 * fabs(u), &worst);
        }
        CHECKF(worst <= functions[f].units, "%s is off by %g units", functions[f].name, worst);
        printf("# %s: %.2f units\n", functions[f].name, worst);
    }
}

static void ends(void) {
    static const struct {
        double x, exponential, sigmoid, tangent;
    } rows[] = {
        {0, 1, 0.5, 0},          {INFINITY, INFINITY, 1, 1}, {-INFINITY, 0, 0, -1},
        {NAN, NAN, NAN, NAN},    {710, INFINITY, 1, 1},      {-746, 0, 0, -1},
        {1e300, INFINITY, 1, 1}, {-1e300, 0, 0, -1},         {0x1p-1074, 1, 0.5, 0x1p-1074},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double want[3] = {rows[k].exponential, rows[k].sigmoid, rows[k].tangent};
        for (size_t f = 0; f < FUNCTIONS; f++) {
            double got = functions[f].ours(rows[k].x);
            CHECKF(isnan(want[f]) ? isnan(got) : got == want[f], "%s of %g is %g",
                   functions[f].name, rows[k].x, got);
        }
    }
    CHECK(signbit(exp_tangent(-0.0)));
}

static const struct tap_case cases[] = {
    {"to the last place", precise},
    {"at the ends", ends},
};
TAP_CASES(cases)
