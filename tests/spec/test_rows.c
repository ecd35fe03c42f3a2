/* Kinds of data whose rows differ among themselves: how many are of which sort, and what is in
 * them.
 */
#include "kinds.h"

/* Rows that are whole numbers from -64 to 64, many of them of few different ones, and in others an
 * element in four; where such numbers would not fit, only those that do. */
static void literals_are_whole_in_some_rows(void) {
    struct fixture f;
    double v[MOST];
    size_t rows = 0, few = 0, some = 0, beyond = 0;
    if (!fixture_text(&f, INPUTS))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        load(&f, "x", DATA_LITERALS, seed, v);
        for (size_t r = 0; r < 9; r++) {
            size_t whole = 0, above = 0;
            for (size_t i = r * 257; i < (r + 1) * 257; i++) {
                whole += v[i] == rint(v[i]) && v[i] != 0;
                above += v[i] == rint(v[i]) && fabs(v[i]) > 2;
                beyond += fabs(v[i]) > 64;
            }
            rows += whole == 257;
            few += whole == 257 && above == 0;
            some += whole < 257 && above > 40 && above < 100;
        }
    }
    CHECKF(rows > 25 && rows < 70 && rows + some == 180 && beyond == 0, "%zu, %zu", rows, some);
    CHECKF(few > 5 && few < rows - 5, "%zu", few);
    fixture_end(&f);
    if (fixture_text(&f, "task t \"T\"\nin x[9,257] : f32 ~ normal(0,1)\nout y[9] : f32\n"
                         "y[i] = prod(j) exp(exp(x[i,j] / 8))\n") &&
        data_scale_find(f.in, 11, &f.scale, &f.err)) {
        load(&f, "x", DATA_LITERALS, 3, v);
        CHECK(f.scale.factor[DATA_LITERALS] < 1 && shape_of(v, MOST, 257).most < 32);
    }
    CHECKF(!f.err.text[0], "%s", f.err.text);
    fixture_end(&f);
}

/* Where products may round their operands there is zero, and nothing next to it that they would
 * lose. */
static void literals_of_a_lower_class(void) {
    struct fixture f;
    double v[MOST];
    size_t zero = 0, tiny = 0;
    if (!fixture_text(&f, "task t \"T\"\nin x[9,257] : f32 ~ normal(0,1)\nin w[257] : f32 ~ "
                          "ones\nout y[9] : f32\ny[i] = maximum(sum(j) x[i,j] * w[j], 0)\n"
                          "accuracy tf32\n"))
        return fixture_end(&f);
    size_t n = load(&f, "x", DATA_LITERALS, 3, v);
    for (size_t i = 0; i < n; i++) {
        zero += v[i] == 0;
        tiny += v[i] != 0 && fabs(v[i]) < 1e-20;
    }
    CHECKF(zero > 10 && tiny == 0, "%zu, %zu", zero, tiny);
    CHECK(count_of(v, n, 1) > 10 && count_of(v, n, 0x1.000002p+0) > 10);
    fixture_end(&f);
}

/* Half of the rows ascend, the others do so in two pieces, of which the second is below the first.
 */
static void sorted_rows_begin_anywhere(void) {
    struct fixture f;
    double v[MOST];
    size_t once = 0, twice = 0, late = 0;
    if (!fixture_text(&f, INPUTS))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        load(&f, "x", DATA_SORTED, seed, v);
        for (size_t r = 0; r < 9; r++) {
            const double *row = v + r * 257;
            size_t falls = 0, at = 0;
            for (size_t i = 1; i < 257; i++)
                if (row[i] < row[i - 1]) {
                    falls++;
                    at = i;
                }
            once += falls == 0;
            twice += falls == 1 && row[256] < row[0];
            late += at > 128;
        }
    }
    CHECKF(once + twice == 180 && once > 60 && twice > 60, "%zu and %zu", once, twice);
    CHECKF(late > 20 && late < twice - 20, "%zu", late);
    fixture_end(&f);
}

/* Some rows of a spiked tensor have a single element of 10 to 14 times the magnitude. */
static void spikes_or_a_peak(void) {
    struct fixture f;
    double v[MOST];
    size_t peaks = 0;
    if (!fixture_text(&f, INPUTS))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        load(&f, "x", DATA_SPIKES, seed, v);
        for (size_t r = 0; r < 9; r++) {
            size_t high = 0, other = 0;
            for (size_t i = r * 257; i < (r + 1) * 257; i++) {
                high += v[i] >= 10 && v[i] <= 14;
                other += fabs(v[i]) > 14;
            }
            peaks += high == 1 && other == 0;
        }
    }
    CHECKF(peaks > 20 && peaks < 80, "%zu", peaks);
    fixture_end(&f);
}

/* Eight neighbours at a multiple of eight, and whole rows. */
static void nan_fills_runs_and_rows(void) {
    struct fixture f;
    double v[MOST];
    size_t runs = 0, rows = 0, all = 0;
    if (!fixture_text(&f, INPUTS))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        size_t n = load(&f, "x", DATA_NONFINITE, seed, v), run = 0, row = 0;
        for (size_t i = 0; i < n; i++) {
            run = i % 8 == 0 ? 0 : run;
            row = i % 257 == 0 ? 0 : row;
            run += isnan(v[i]) != 0;
            row += isnan(v[i]) != 0;
            all += isnan(v[i]) != 0;
            runs += run == 8;
            rows += i % 257 == 256 && row > 250;
        }
    }
    CHECKF(rows > 3 && rows < 30, "%zu rows", rows);
    CHECKF(runs > 32 * rows + 20 && runs < 32 * rows + 120, "%zu runs, %zu rows", runs, rows);
    CHECKF(all < (size_t)20 * MOST / 5, "%zu", all);
    fixture_end(&f);
}

/* Rows with one special element, anywhere along them. */
static void some_rows_have_one_special_element(void) {
    struct fixture f;
    double v[MOST];
    size_t lone = 0, late = 0;
    if (!fixture_text(&f, INPUTS))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        load(&f, "x", DATA_NONFINITE, seed, v);
        for (size_t r = 0; r < 9; r++) {
            size_t odd = 0, at = 0;
            for (size_t i = 0; i < 257; i++)
                if (!isfinite(v[r * 257 + i])) {
                    odd++;
                    at = i;
                }
            lone += odd == 1;
            late += odd == 1 && at > 128;
        }
    }
    CHECKF(lone > 40 && lone < 120 && late > lone / 4 && late < lone * 3 / 4, "%zu, %zu", lone,
           late);
    fixture_end(&f);
}

#define SEVERAL                                                                                    \
    "task t \"T\"\nin x[9,257] : f32 ~ normal(0,1)\nin y[9,257] : f32 ~ normal(0,1)\n"             \
    "in w[257] : f32 ~ normal(0,1)\nin p : f32 ~ normal(0,1)\nout z[9,257] : f32\n"                \
    "z[i,j] = x[i,j] * y[i,j] * w[j] + p\n"

/* Zeros and subnormal numbers meet ordinary ones. */
static void some_tensors_alone_are_zero(void) {
    static const enum data_kind kinds[] = {DATA_ZEROS, DATA_SUBNORMAL};
    struct fixture f;
    double x[MOST], y[MOST], w[MOST];
    for (int k = 0; k < 2; k++) {
        size_t all = 0, none = 0, some = 0;
        if (!fixture_text(&f, SEVERAL))
            return fixture_end(&f);
        for (uint64_t seed = 0; seed < 40; seed++) {
            load(&f, "x", kinds[k], seed, x);
            load(&f, "y", kinds[k], seed, y);
            load(&f, "w", kinds[k], seed, w);
            int small = (fabs(x[1]) < 1e-37) + (fabs(y[1]) < 1e-37) + (fabs(w[1]) < 1e-37);
            all += small == 3;
            none += small == 0;
            some += small > 0 && small < 3;
        }
        CHECKF(all > 8 && some > 8 && none < 10, "%zu, %zu, %zu", all, some, none);
        fixture_end(&f);
    }
}

/* What tensor cores multiply is not made that small in one tensor alone. */
static void factors_of_sums_are_all_subnormal(void) {
    struct fixture f;
    double x[MOST], w[MOST];
    if (!fixture_text(&f, "task t \"T\"\nin x[9,257] : f32 ~ normal(0,1)\nin w[257] : f32 ~ "
                          "normal(0,1)\nout y[9] : f32\ny[i] = sum(j) x[i,j] * w[j]\n"))
        return fixture_end(&f);
    for (uint64_t seed = 0; seed < 20; seed++) {
        load(&f, "x", DATA_SUBNORMAL, seed, x);
        load(&f, "w", DATA_SUBNORMAL, seed, w);
        CHECK(fabs(x[1]) < 1e-37 && fabs(w[1]) < 1e-37);
    }
    fixture_end(&f);
}

/* Tensors of one shape are equal but for a tile; a tensor of one element is often a number for
 * which a kernel may have a way of its own. */
static void tensors_are_equal_and_scalars_are_special(void) {
    static const enum data_kind kinds[] = {DATA_TILE, DATA_SORTED, DATA_CONSTANT, DATA_ONEHOT,
                                           DATA_LITERALS};
    struct fixture f;
    double x[MOST], y[MOST], p[MOST];
    size_t same = 0, zero = 0, three = 0, minus = 0;
    if (!fixture_text(&f, SEVERAL))
        return fixture_end(&f);
    size_t n = load(&f, "x", DATA_TILE, 3, x);
    load(&f, "y", DATA_TILE, 3, y);
    for (size_t i = 0; i < n; i++)
        same += x[i] == y[i];
    CHECKF(same > n * 9 / 10 && same < n, "%zu of %zu", same, n);
    for (uint64_t seed = 0; seed < 20; seed++)
        for (int k = 0; k < 5; k++) {
            load(&f, "p", kinds[k], seed, p);
            zero += p[0] == 0;
            three += p[0] == 3;
            minus += p[0] == -1;
        }
    CHECKF(zero > 3 && three > 3 && minus > 3, "%zu, %zu, %zu", zero, three, minus);
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"literals: small whole numbers, some rows of nothing else", literals_are_whole_in_some_rows},
    {"literals: neither zero nor anything next to it in a lower class", literals_of_a_lower_class},
    {"sorted: half of the rows begin in the middle", sorted_rows_begin_anywhere},
    {"spikes: or a single peak in a row", spikes_or_a_peak},
    {"nonfinite: runs and rows of NaN", nan_fills_runs_and_rows},
    {"nonfinite: rows with one special element", some_rows_have_one_special_element},
    {"zeros and subnormal: some tensors alone", some_tensors_alone_are_zero},
    {"subnormal: all factors of sums", factors_of_sums_are_all_subnormal},
    {"tile: equal tensors; scalars: special numbers", tensors_are_equal_and_scalars_are_special},
};
TAP_CASES(cases)
