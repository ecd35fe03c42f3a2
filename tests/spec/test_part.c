/* Parts of outputs: the reference of a box is that of the whole tensor, on every task of the
 * repository, and at its own size it is quick. */
#include "base/file.h"
#include "fixture.h"
#include "spec/cost.h"
#include "spec/part.h"

#include "base/rng.h"
#include <math.h>
#include <string.h>

/* What boxes of one run had in common with the whole. */
struct tally {
    size_t boxes, elements, same; /* same: bits of value and estimate */
};

static struct part random_part(const struct inst *in, size_t tensor, struct rng r, uint64_t which) {
    struct part p = {.tensor = tensor};
    for (size_t k = 0; k < in->task->tensors[tensor].rank; k++) {
        uint64_t extent = (uint64_t)in->tensors[tensor].extent[k];
        uint64_t most = which % 3 == 0 ? 4 : which % 3 == 1 ? 70 : extent;
        p.n[k] = 1 + (int64_t)rng_below(r, which * 32 + k, most < extent ? most : extent);
        p.lo[k] = (int64_t)rng_below(r, which * 32 + 16 + k, extent - (uint64_t)p.n[k] + 1);
    }
    return p;
}

static int64_t whole_index(const struct inst *in, const struct part *p, int64_t i) {
    int64_t at = 0;
    for (size_t k = in->task->tensors[p->tensor].rank; k-- > 0; i /= p->n[k])
        at += (p->lo[k] + i % p->n[k]) * in->tensors[p->tensor].stride[k];
    return at;
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Sums cut into lanes differently differ by roundings of fp64, far below any estimate, and their
 * estimates by what depends on the way: terms that are lost in a sum, or round alike, are counted
 * one by one or, where they are rare, not at all. */
static bool near(const struct reference *a, size_t i, const struct reference *b, size_t j) {
    double v = a->value[i], w = b->value[j], e = a->estimate[i], f = b->estimate[j];
    if (isinf(f)) /* judged by what the part reads: the whole may hold infinities elsewhere */
        return true;
    if (isnan(v) || isinf(v))
        return isnan(v) ? isnan(w) : v == w;
    return fabs(v - w) <= 1e-6 * f + 1e-15 * fabs(w) && fabs(e - f) <= 0.05 * f;
}

static bool same_ties(const struct reference *a, size_t i, const struct reference *b, size_t j) {
    if (!a->ties || !b->ties)
        return !a->ties && !b->ties;
    return a->tie_lo == b->tie_lo && a->tie_words == b->tie_words &&
           memcmp(a->ties + i * a->tie_words, b->ties + j * b->tie_words,
                  a->tie_words * sizeof *a->ties) == 0;
}

static bool check_box(struct fixture *f, enum data_kind kind, const struct reference *whole,
                      const struct part *p, const char *what, struct tally *t) {
    struct reference ref;
    size_t wrong = 0, first = 0;
    bool ok = part_reference(f->in, &f->scale, kind, 5, p, 2, &ref, &f->err);
    CHECKF(ok, "%s: %s", what, f->err.text);
    for (size_t i = 0; ok && i < ref.count; i++) {
        size_t at = (size_t)whole_index(f->in, p, (int64_t)i);
        bool same = same_bits(ref.value[i], whole->value[at]) &&
                    same_bits(ref.estimate[i], whole->estimate[at]);
        t->same += same;
        t->elements++;
        if (!(same || near(&ref, i, whole, at)) || !same_ties(&ref, i, whole, at))
            first = wrong++ ? first : i;
    }
    t->boxes++;
    size_t at = ok ? (size_t)whole_index(f->in, p, (int64_t)first) : 0;
    CHECKF(!wrong, "%s: %zu of %zu differ, element %zu: %.17g ± %.17g, in the whole %.17g ± %.17g",
           what, wrong, ref.count, at, ref.value[first], ref.estimate[first], whole->value[at],
           whole->estimate[at]);
    CHECKF(part_cost(f->in, p) >= (double)ref.count, "%s", what);
    part_release(&ref);
    return wrong == 0;
}

static void check_boxes(struct fixture *f, const char *name, size_t boxes, struct tally *t) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_SPIKES};
    struct rng r = rng_stream(7, str_view(name));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!fixture_data(f, kinds[k], 5))
            return;
        for (size_t o = 0; o < f->nrefs; o++)
            for (uint64_t i = 0; i < boxes; i++) {
                struct part p = random_part(f->in, f->refs[o].tensor, r, i + 64 * o);
                const char *what =
                    arena_printf(f->a, "%s %s %.*s box %d", name, data_name(kinds[k]),
                                 STR_ARG(f->task->tensors[p.tensor].name), (int)i)
                        .p;
                if (!check_box(f, kinds[k], &f->refs[o], &p, what, t))
                    return;
            }
    }
}

static void check_task(struct fixture *f, const char *path, struct tally *t) {
    CHECKF(task_load(path, f->a, &f->task, &f->err), "%s", f->err.text);
    for (size_t c = 0; f->task && c < f->task->nchecks; c++) {
        struct cost cost;
        if (!task_bind_check(f->task, c, f->a, &f->in, &f->err))
            continue;
        cost_of(f->in, &cost);
        if (cost.flops < 2e7 && data_scale_find(f->in, 5, &f->scale, &f->err))
            check_boxes(f, arena_printf(f->a, "%.*s/%zu", STR_ARG(f->task->name), c).p, 6, t);
    }
}

typedef void on_task(struct fixture *f, const char *path, struct tally *t);

static void each_task(const char *folder, on_task *visit, struct tally *t) {
    const char *root = getenv("SOURCE_ROOT"), *only = getenv("ONLY");
    struct fixture f = {.a = arena_new((size_t)256 << 20)};
    const char *path = arena_printf(f.a, "%s/tasks/%s", root ? root : ".", folder).p;
    str *names;
    size_t n = 0;
    CHECKF(dir_list(path, f.a, &names, &n, &f.err), "%s", f.err.text);
    for (size_t i = 0; i < n; i++) {
        struct fixture g = {.a = arena_new((size_t)256 << 20)};
        const char *file = arena_printf(g.a, "%s/%.*s", path, STR_ARG(names[i])).p;
        if (!only || strstr(file, only))
            visit(&g, file, t);
        fixture_end(&g);
    }
    fixture_end(&f);
}

static void test_tasks(const char *folder) {
    struct tally t = {0};
    each_task(folder, check_task, &t);
    printf("# %s: %zu boxes, %zu elements, %.3f%% the same bits\n", folder, t.boxes, t.elements,
           100.0 * (double)t.same / (double)t.elements);
    CHECK(t.boxes > 0);
}

static void test_smoke(void) {
    test_tasks("smoke");
}

static void test_layers(void) {
    test_tasks("layers");
}

static void test_level1(void) {
    test_tasks("kernelbench/level1");
}

static const struct tap_case cases[] = {
    {"smoke", test_smoke},
    {"layers", test_layers},
    {"kernelbench level 1", test_level1},
};
TAP_CASES(cases)
