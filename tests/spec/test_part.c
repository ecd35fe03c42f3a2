/* Parts of outputs: the reference of a box is that of the whole tensor, on every task of the
 * repository at its check lines and on what the language can say beyond them. At the tasks' own
 * sizes, where there is no whole, elements are held against a plain tree walk. */
#include "base/file.h"
#include "base/rng.h"
#include "fixture.h"
#include "spec/convert_value.h"
#include "spec/cost.h"
#include "spec/part.h"
#include "spec/scalar.h"

#include <math.h>
#include <string.h>

/* What boxes of one run had in common with the whole. */
struct tally {
    size_t boxes, elements, same; /* same: bits of value and estimate */
    double off;                   /* how far estimates may be apart */
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

/* fp64 sums cut into lanes differently differ by roundings, far below any estimate; `off` is what
 * estimates may differ by. Whether infinities meet a sum is decided by what the part reads: the
 * whole may hold some elsewhere, and is not judged then. */
static bool near(const struct reference *a, size_t i, const struct reference *b, size_t j,
                 double off) {
    double v = a->value[i], w = b->value[j], e = a->estimate[i], f = b->estimate[j];
    if (isinf(f))
        return true;
    if (isnan(v) || isinf(v))
        return isnan(v) ? isnan(w) : v == w;
    return fabs(v - w) <= 1e-6 * f + 1e-15 * fabs(w) && fabs(e - f) <= off * f;
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
        if (!(same || near(&ref, i, whole, at, t->off)) || !same_ties(&ref, i, whole, at))
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
    const char *root = getenv("SOURCE_ROOT");
    struct fixture f = {.a = arena_new((size_t)256 << 20)};
    const char *path = arena_printf(f.a, "%s/tasks/%s", root ? root : ".", folder).p;
    str *names;
    size_t n = 0;
    CHECKF(dir_list(path, f.a, &names, &n, &f.err), "%s", f.err.text);
    tap_share();
    for (size_t i = 0; i < n; i++) {
        if (!tap_takes(i))
            continue;
        struct fixture g = {.a = arena_new((size_t)256 << 20)};
        const char *file = arena_printf(g.a, "%s/%.*s", path, STR_ARG(names[i])).p;
        visit(&g, file, t);
        fixture_end(&g);
    }
    fixture_end(&f);
}

static void check_folder(const char *folder) {
    struct tally t = {.off = 1e-12};
    each_task(folder, check_task, &t);
    printf("# %s: %zu boxes, %zu elements, %zu the same bits\n", folder, t.boxes, t.elements,
           t.same);
    CHECKF((double)t.same >= 0.999 * (double)t.elements && t.boxes >= tap_least(500),
           "%s: %zu boxes", folder, t.boxes);
}

static void smoke(void) {
    check_folder("smoke");
}

static void layers(void) {
    check_folder("layers");
}

static void level1(void) {
    check_folder("kernelbench/level1");
}

static void language(void) {
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"rank 0", "dim N = 700\nin x[N] : f32 ~ normal(0,1)\nout s : f32\nout y[N] : f32\n"
                   "let m = mean(i) x[i]\ns = sum(i) (x[i] - m)*(x[i] - m)\ny[i] = x[i] - m"},
        {"pieces", "dim N = 90\nin x[N,3] : f32 ~ normal(0,1)\nout y[N,3] : f32\n"
                   "y[i,0] = x[i,2]\ny[i,1] = sum(k <= i) x[k,1]\ny[i,2] = max(k) x[i,k]"},
        {"pieces of a let", "dim N = 40\nin x[N] : f32 ~ normal(0,1)\nout y[N,2] : f32\n"
                            "let a[i] = exp(x[i])\ny[i,0] = a[N-1-i]\ny[i,1] = a[i//2]"},
        {"a guard that admits nothing",
         "dim N = 60\nin x[N,N] : f32 ~ normal(0,1)\nout y[N] : f32\nout z[N] : f32\n"
         "y[i] = sum(k | k > i + 50) x[i,k]*x[k,i]\nz[i] = max(k | x[i,k] > 100) x[i,k]"},
        {"empty ranges", "dim N = 50\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                         "out z[N] : f32\nout w[N] : f32\n"
                         "y[i] = sum(i + 20 <= k < N) x[k]\nz[i] = prod(k < i - 30) x[k]\n"
                         "w[i] = mean(k | k < i - 40) x[k]"},
        {"ties", "dim N = 20, K = 150\nin x[N,K] : f32 ~ randint(0,3)\nout y[N] : i64\n"
                 "out z[N] : i32\ny[i] = argmax(k) exp(x[i,k])*0.1\n"
                 "z[i] = argmin(10 < k < K) x[i,k]*x[i,k]/3"},
        {"triangles", "dim N = 70\nin a[N,N] : f32 ~ normal(0,1)\nin b[N,N] : f32 ~ normal(0,1)\n"
                      "out y[N,N] : f32\nout z[N,N] : f32\n"
                      "y[i,j] = sum(k <= j) a[i,k]*b[k,j]\n"
                      "z[i,j] = if(i <= j, sum(i <= k <= j) a[i,k]*b[k,j], 0)"},
        {"strides and padding",
         "dim N = 40, M = 61\nin x[N,M] : f32 ~ normal(0,1)\nin w[3,5] : f32 ~ normal(0,1)\n"
         "out y[N,M] : f32\nout z[N//2,M//3] : f32\n"
         "y[i,j] = sum(r,s) pad(x[i+2*r-2,j+s-2], 0.5)*w[r,s]\n"
         "z[i,j] = max(r < 2, s < 3) pad(x[2*i-r,3*j+4*s-1], -inf)"},
        {"transposed strides",
         "dim N = 31, M = 2*N\nin x[N,N] : f32 ~ normal(0,1)\nin w[3,3] : f32 ~ normal(0,1)\n"
         "out y[M,M] : f32\ny[p,q] = sum(r < 3, s < 3 | (p+1-r) % 2 == 0 && (q+1-s) % 2 == 0) "
         "pad(x[(p+1-r)//2,(q+1-s)//2], 0)*w[r,s]"},
        {"typed lets", "dim N = 30, K = 64\nin x[N,K] : bf16 ~ normal(0,1)\nout y[N,K] : bf16\n"
                       "let a[i,k] : bf16 = exp(x[i,k])\nlet s[i] : f16 = sum(k) a[i,k]\n"
                       "y[i,k] = a[i,k]/s[i]\naccuracy bf16"},
        {"integers", "dim N = 200\nin n[N] : i32 ~ randint(-9,10)\nin u[N] : u8 ~ randint(0,200)\n"
                     "out y[N] : i64\nout z[N] : i8\n"
                     "y[i] = sum(k <= i) n[k]*u[N-1-k]\nz[i] = clamp(n[i]//2 + u[i] % 3, -5, 5)"},
        {"truths", "dim N = 90\nin x[N] : f32 ~ normal(0,1)\nin m[N] : bool ~ bernoulli(0.5)\n"
                   "out y[N] : bool\ny[i] = m[N-1-i] && exp(x[i]) > 1 || x[i//3] < -1"},
        {"inout", "dim N = 50, M = 30\ninout c[N,M] : f32 ~ normal(0,1)\n"
                  "inout d[N] : f32 ~ normal(0,1)\n"
                  "c[i,j] = if(j + 1 < M, c[i,j+1], d[i])\nd[i] = sum(j) c[(i+7)%N,j]"},
        {"gather",
         "dim N = 40, V = 33\nin t[N] : i32 ~ randint(0,V)\nin e[V,9] : f32 ~ normal(0,1)\n"
         "in g[N] : i32 ~ randint(-50,50)\nout y[N,9] : f32\nout z[N] : f32\n"
         "y[i,j] = e[t[i],j]*2\n"
         "z[i] = if(g[i] >= 0 && g[i] < V, e[g[i],3], pad(e[g[i]+20,1], 0))"},
        {"nested", "dim N = 24, M = 20\nin x[N,M] : f32 ~ normal(0,1)\nout y[N] : f32\n"
                   "y[i] = sum(j | j > i // 2) (x[i,j]*(max(k <= j) x[i,k])) + "
                   "log(sum(k) exp(x[i,k] - (max(j) x[i,j])))"},
        {"minus infinity", "dim N = 40\nin x[N,N] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
                           "let s[i,j] = if(j <= i, x[i,j], -inf)\nlet m[i] = max(j) s[i,j]\n"
                           "y[i,j] = sum(k < N) exp(s[i,k] - m[i])*x[k,j]"},
        {"backward scan", "dim N = 30, M = 600\nin x[N,M] : f32 ~ normal(0,1)\nout y[N,M] : f32\n"
                          "out z[N,M] : f32\n"
                          "y[i,j] = sum(j <= k < M | x[i,k] > 0) x[i,k]\n"
                          "z[i,j] = prod(k < j) x[i,k]"},
        {"defined and assumed",
         "dim N = 36\nrand r[N,N] ~ uniform(0.1,1)\nin a[i < N, j < N] : f32 = r[i,j]/(sum(k) "
         "r[i,k])\n"
         "in b[N,N] : f32 ~ normal(0,1)\nin u[N,N] : f32 ~ normal(0,1)\nassume symmetric(b)\n"
         "assume u[i,j] == 0 | i > j\nout y[N,N] : f32\n"
         "y[i,j] = sum(k) a[i,k]*b[k,j] + u[i,j]"},
        {"fp64", "dim N = 80\nin x[N,N] : f64 ~ normal(0,1)\nout y[N] : f64\n"
                 "y[i] = sum(k,l) x[i,k]*x[l,(k+l)%N]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        struct tally t = {.off = 1e-12};
        struct arena *a = arena_new(1 << 16);
        if (fixture_text(&f, arena_printf(a, "task t \"T\"\n%s\n", rows[i].text).p))
            check_boxes(&f, rows[i].name, 24, &t);
        CHECKF(t.same >= t.elements / 2 && t.elements > 0, "%s: %zu of %zu", rows[i].name, t.same,
               t.elements);
        fixture_end(&f);
        arena_free(a);
    }
}

/* One lane of a long sum in columns is summed in a row, whose chains are added up a little
 * differently: estimates are a tenth apart. */
static void another_way(void) {
    struct fixture f;
    struct tally t = {.off = 0.15};
    if (fixture_text(&f, "task t \"T\"\ndim K = 300000, N = 24\nin x[K,N] : f32 ~ normal(0,1)\n"
                         "out y[N] : f32\nout z[N] : f32\n"
                         "y[j] = sum(k) exp(x[k,j])\nz[j] = sum(k) abs(x[k,j])\n") &&
        fixture_data(&f, DATA_STATED, 5))
        for (size_t o = 0; o < f.nrefs; o++)
            for (int64_t j = 0; j < 24; j += 5) {
                struct part one = {.tensor = f.refs[o].tensor, .lo = {j}, .n = {1}};
                check_box(&f, DATA_STATED, &f.refs[o], &one, "one column", &t);
            }
    CHECK(t.elements == 10 && t.same < 10);
    fixture_end(&f);
}

/* The elements that are wrong, by their index in the whole tensor; where ties are as good. */
static void compares(void) {
    struct fixture f;
    struct reference ref;
    struct comparison c;
    struct part p = {.lo = {2, 3}, .n = {2, 4}};
    float got[8];
    if (!fixture_text(&f, "task t \"T\"\nin x[5,9] : f32 ~ normal(0,1)\nout y[5,9] : f32\n"
                          "y[i,j] = 3*x[i,j]\n"))
        return;
    p.tensor = (size_t)tensor_find(f.task, S("y"));
    CHECKF(part_reference(f.in, &f.scale, DATA_STATED, 5, &p, 1, &ref, &f.err), "%s", f.err.text);
    for (size_t i = 0; i < 8; i++)
        got[i] = (float)ref.value[i];
    part_compare(f.in, &p, &ref, got, &c);
    CHECK(c.pass && c.judged == 8);
    got[1] += 1;
    got[6] = NAN;
    part_compare(f.in, &p, &ref, got, &c);
    CHECK(!c.pass && c.wrong == 1 && c.nonfinite == 1 && c.nfirst == 2);
    CHECK(c.first[0].index == 2 * 9 + 4 && c.first[1].index == 3 * 9 + 5);
    part_release(&ref);
    fixture_end(&f);
}

static void costs(void) {
    static const struct {
        const char *text;
        double least, most;
    } rows[] = {
        /* Columns of one matrix, and a row of the other. */
        {"dim N = 4096\nin a[N,N] : f32 ~ ones\nin b[N,N] : f32 ~ ones\nout y[N,N] : f32\n"
         "y[i,j] = sum(k) a[i,k]*b[k,j]",
         2 * 64 * 4096, 8 * 64 * 4096},
        {"dim N = 1000000\nin x[N,N] : f32 ~ ones\nout y[N,N] : f32\ny[i,j] = 2*x[j,i]", 128, 2e4},
        /* A prefix is gone through once. */
        {"dim N = 1000000\nin x[N,N] : f32 ~ ones\nout y[N,N] : f32\n"
         "y[i,j] = sum(k <= j) x[i,k]",
         64, 3e6},
        {"dim N = 20000\nin x[N,N] : f32 ~ ones\nout y[2,N] : f32\n"
         "y[i,j] = j*(sum(k,l) x[k,l])",
         4e8, 4e9},
        {"dim N = 100000000\nin x[N] : f32 ~ ones\nout y[64] : f32\n"
         "y[i] = sum(k,l) (x[k] + i)*x[l]",
         INFINITY, INFINITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        struct part p = {.n = {1, 64}};
        struct arena *a = arena_new(1 << 16);
        if (fixture_text(&f, arena_printf(a, "task t \"T\"\n%s\n", rows[i].text).p)) {
            p.tensor = (size_t)tensor_find(f.task, S("y"));
            if (f.task->tensors[p.tensor].rank == 1)
                p.n[0] = 64;
            double cost = part_cost(f.in, &p);
            CHECKF(cost >= rows[i].least && cost <= rows[i].most, "%zu: %g", i, cost);
        }
        fixture_end(&f);
        arena_free(a);
    }
}

/* The tree walk of one element, with inputs made one by one. */
struct plain {
    const struct inst *in;
    const struct data_scale *scale;
    size_t reads;
    /* The element of a let that was read last. */
    int64_t at[TASK_MAX_TENSORS];
    double value[TASK_MAX_TENSORS];
};
enum { READS_MOST = 20000 };

static double plain_element(struct plain *p, size_t tensor, int64_t linear);

static double plain_read(void *ctx, size_t tensor, int64_t linear) {
    struct plain *p = ctx;
    const struct tensor *t = &p->in->task->tensors[tensor];
    uint64_t raw;
    double v;
    if (++p->reads > READS_MOST)
        return 0;
    if (!tensor_is_input(t) && p->at[tensor] != linear + 1) {
        p->value[tensor] = plain_element(p, tensor, linear);
        p->at[tensor] = linear + 1;
    }
    if (!tensor_is_input(t))
        return p->value[tensor];
    data_fill(p->in, p->scale, tensor, DATA_STATED, 5, linear, 1, &raw);
    data_load(t->dtype, &raw, 1, &v);
    return v;
}

static bool plain_place(const struct inst *in, const struct statement *s, int64_t i, int64_t *var) {
    const struct bound_tensor *b = &in->tensors[s->tensor];
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++) {
        int64_t at = i / b->stride[k] % b->extent[k], c;
        if (s->position[k] >= 0)
            var[s->position[k]] = at;
        else if (!expr_eval_dims(s->constant[k], in->dims, &c) || c != at)
            return false;
    }
    return true;
}

static double plain_element(struct plain *p, size_t tensor, int64_t linear) {
    const struct task *t = p->in->task;
    struct scalar *s = mem_alloc(sizeof *s);
    double v = NAN;
    s->in = p->in;
    s->read = plain_read;
    s->ctx = p;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor &&
            plain_place(p->in, &t->statements[i], linear, s->var))
            v = scalar_eval(s, t->statements[i].body);
    mem_free(s);
    return t->tensors[tensor].role == TENSOR_LET && t->tensors[tensor].dtype != DTYPE_F64
               ? round_to(t->tensors[tensor].dtype, v)
               : v;
}

/* 64 elements along the last dimension, of which one is walked. */
static void own_output(struct fixture *f, size_t tensor, struct tally *t) {
    struct part p = {.tensor = tensor};
    struct reference ref;
    size_t rank = f->task->tensors[tensor].rank;
    for (size_t k = 0; k < rank; k++) {
        int64_t extent = f->in->tensors[tensor].extent[k], want = k + 1 == rank ? 64 : 1;
        p.n[k] = want < extent ? want : extent;
        p.lo[k] = (extent - p.n[k]) * 2 / 3;
    }
    double cost = part_cost(f->in, &p);
    CHECKF(isfinite(cost), "%.*s", STR_ARG(f->task->name));
    t->boxes++;
    if (!(cost <= 3e6))
        return;
    CHECKF(part_reference(f->in, &f->scale, DATA_STATED, 5, &p, 2, &ref, &f->err), "%.*s: %s",
           STR_ARG(f->task->name), f->err.text);
    struct plain plain = {.in = f->in, .scale = &f->scale};
    size_t i = ref.count / 2;
    double v = cost <= 1e6 ? plain_element(&plain, tensor, whole_index(f->in, &p, (int64_t)i)) : 0;
    bool walked = plain.reads > 0 && plain.reads <= READS_MOST;
    double off = fabs(v - ref.value[i]), may = 1e-9 * fabs(v) + 1e-3 * ref.estimate[i];
    CHECKF(!walked || v == ref.value[i] || off <= may, "%.*s: %g, walked %g",
           STR_ARG(f->task->name), ref.value[i], v);
    t->elements += ref.count;
    t->same += walked;
    part_release(&ref);
}

static void own_task(struct fixture *f, const char *path, struct tally *t) {
    for (int i = 0; i < DATA_COUNT; i++)
        f->scale.factor[i] = 1;
    bool ok = task_load(path, f->a, &f->task, &f->err) &&
              task_bind(f->task, NULL, 0, f->a, &f->in, &f->err);
    CHECKF(ok, "%s", f->err.text);
    for (size_t i = 0; ok && i < f->task->ntensors; i++)
        if (tensor_is_output(&f->task->tensors[i]))
            own_output(f, i, t);
}

static void own_sizes(void) {
    struct tally t = {0};
    each_task("smoke", own_task, &t);
    each_task("layers", own_task, &t);
    each_task("kernelbench/level1", own_task, &t);
    printf("# %zu outputs, %zu elements, %zu walked\n", t.boxes, t.elements, t.same);
    CHECK(t.boxes > tap_least(130) && t.same > tap_least(80));
}

static const struct tap_case cases[] = {
    {"smoke", smoke},
    {"layers", layers},
    {"kernelbench level 1", level1},
    {"what the language can say", language},
    {"a long sum in another way", another_way},
    {"comparison", compares},
    {"cost", costs},
    {"own sizes", own_sizes},
};
TAP_CASES(cases)
