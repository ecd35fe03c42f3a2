/* Sums of products straight from memory are, bit for bit, what the general way makes of them. The
 * same product with one factor stored backwards takes the general way: its lanes step by -1. */
#include "fixture.h"

static const char text[] = "task t \"T\"\ndim M = %d, N = %d, K = %d, L = %d\n"
                           "in a[M,K,L] : %s ~ normal(0, 1)\nin b[L,K,N] : %s ~ normal(0, 1)\n"
                           "out c[M,N] : f32\n"
                           "c[i,j] = %s(l,k) a[i,k,l]*b[l,k,%s]\naccuracy %s\n";

static const struct row {
    int m, n, k, l;
    const char *dtype, *op, *class;
} rows[] = {
    {1, 1, 1, 1, "f32", "sum", "fp32"},     {3, 7, 5, 1, "f32", "sum", "tf32"},
    {2, 8, 33, 2, "f32", "sum", "fp32"},    {5, 9, 1023, 1, "f32", "sum", "tf32"},
    {2, 17, 1024, 1, "f32", "sum", "fp32"}, {2, 31, 700, 5, "f32", "sum", "tf32"},
    {3, 256, 20, 1, "f32", "mean", "fp32"}, {2, 300, 61, 3, "f32", "sum", "tf32"},
    {4, 40, 50, 1, "f16", "sum", "f16"},    {4, 40, 50, 1, "bf16", "mean", "bf16"},
};

static bool open_row(struct fixture *f, const struct row *r, bool backwards) {
    char task[512];
    snprintf(task, sizeof task, text, r->m, r->n, r->k, r->l, r->dtype, r->dtype, r->op,
             backwards ? "N-1-j" : "j", r->class);
    return fixture_text(f, task);
}

/* The inputs of `from`, each line of b the other way round. */
static void mirror(struct fixture *to, const struct fixture *from) {
    size_t line = (size_t)from->in->tensors[1].extent[2], all = (size_t)from->in->tensors[1].count;
    size_t size = from->in->tensors[1].bytes / all;
    fixture_forget(to);
    to->inputs[0] = mem_alloc(to->in->tensors[0].bytes);
    to->inputs[1] = mem_alloc(to->in->tensors[1].bytes);
    memcpy(to->inputs[0], from->inputs[0], to->in->tensors[0].bytes);
    for (size_t i = 0; i < all; i++)
        memcpy((char *)to->inputs[1] + (i - i % line + (line - 1 - i % line)) * size,
               (const char *)from->inputs[1] + i * size, size);
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void compare(const struct fixture *direct, const struct fixture *general, size_t row,
                    const char *kind) {
    const struct reference *d = direct->refs, *g = general->refs;
    size_t off = 0;
    for (size_t i = 0; i < d->count; i++)
        off += !same(d->value[i], g->value[i]) || !same(d->estimate[i], g->estimate[i]);
    CHECKF(off == 0, "row %zu on %s: %zu of %zu elements differ", row, kind, off, d->count);
}

/* Where magnitudes are tracked. */
static void compare_peaks(const struct fixture *direct, const struct fixture *general, size_t row,
                          const char *kind) {
    const struct fixture *each[2] = {direct, general};
    double peak[2] = {0};
    for (size_t k = 0; k < 2; k++) {
        struct reference *refs = NULL;
        size_t n = 0;
        CHECK(reference_eval(each[k]->in, (const void *const *)each[k]->inputs, 2, &refs, &n,
                             &peak[k], NULL));
        reference_release(refs, n);
    }
    CHECKF(peak[0] == peak[1], "row %zu on %s: peaks %g, %g", row, kind, peak[0], peak[1]);
}

static void both_ways(void) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture direct, general;
        if (!open_row(&direct, &rows[k], false) || !open_row(&general, &rows[k], true))
            return;
        for (int kind = 0; kind < DATA_COUNT; kind++) {
            fixture_data(&direct, (enum data_kind)kind, 7 + k);
            mirror(&general, &direct);
            fixture_eval(&general, 1);
            compare(&direct, &general, k, data_name((enum data_kind)kind));
            compare_peaks(&direct, &general, k, data_name((enum data_kind)kind));
        }
        fixture_end(&direct);
        fixture_end(&general);
    }
}

/* What a single product out of the ordinary makes of its sum. */
static void odd_terms(void) {
    static const struct {
        const char *name;
        double a, b, value, estimate; /* estimate -1: some */
    } odd[] = {
        {"NaN that was put in", NAN, 1, NAN, 0},
        {"NaN in the other factor", 0, NAN, NAN, 0},
        {"0 times infinity", 0, INFINITY, NAN, INFINITY},
        {"infinity", -INFINITY, 2, -INFINITY, 1},
        {"beyond fp32", 1e30, 1e30, 1e60, INFINITY},
        {"nothing of the kind", 2, 3, 6, -1},
    };
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        struct row r = {2, 11, 19, 1, "f32", "sum", "fp32"};
        double a[2 * 19] = {0}, b[19 * 11] = {0};
        struct fixture f;
        if (!open_row(&f, &r, false))
            return;
        a[19 + 4] = odd[k].a;
        b[4 * 11 + 10] = odd[k].b;
        fixture_set(&f, "a", a, 2 * 19);
        fixture_set(&f, "b", b, 19 * 11);
        fixture_eval(&f, 1);
        const struct reference *ref = f.refs;
        double e = ref->estimate[21];
        CHECKF(same(ref->value[21], odd[k].value) || fabs(ref->value[21] / odd[k].value - 1) < 1e-6,
               "%s: %g", odd[k].name, ref->value[21]);
        CHECKF(e == odd[k].estimate || (odd[k].estimate < 0 && e > 0 && e < 1), "%s: %g",
               odd[k].name, e);
        fixture_end(&f);
    }
}

static const struct tap_case cases[] = {
    {"products from memory are those of the general way", both_ways},
    {"a product out of the ordinary", odd_terms},
};
TAP_CASES(cases)
