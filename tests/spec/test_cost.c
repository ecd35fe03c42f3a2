/* Costs counted by hand, by other formulas (level1_costs.txt), and by running over every point. */
#include "spec/cost.h"

#include "base/file.h"
#include "fixture.h"
#include "spec/scalar.h"

#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 8, M = 6\nin x[N,M] : f32 ~ ones\nin b[M] : f32 ~ ones\n"               \
    "in s[N,N] : f32 ~ ones\nin t[N] : i64 ~ randint(0,M)\nin q[N] : bool ~ bernoulli(0.5)\n"

/* A task of these inputs and the rest. */
static bool fixture_rest(struct fixture *f, const char *rest) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s\n", HEAD, rest);
    return fixture_text(f, text);
}

struct row {
    const char *rest;
    double plain, special, read, write; /* totals */
};

static void check_rows(const struct row *rows, size_t n) {
    for (size_t k = 0; k < n; k++) {
        struct fixture f;
        struct cost c;
        if (fixture_rest(&f, rows[k].rest)) {
            cost_of(f.in, &c);
            CHECKF(c.flops_add_mul == rows[k].plain, "%s: %g", rows[k].rest, c.flops_add_mul);
            CHECKF(c.flops_special == rows[k].special, "%s: %g", rows[k].rest, c.flops_special);
            CHECKF(c.read_bytes == rows[k].read, "%s: %g", rows[k].rest, c.read_bytes);
            CHECKF(c.write_bytes == rows[k].write, "%s: %g", rows[k].rest, c.write_bytes);
            CHECKF(c.compulsory_bytes == c.read_bytes + c.write_bytes, "row %zu", k);
            CHECKF(c.flops == c.flops_add_mul + c.flops_special, "row %zu", k);
        }
        fixture_end(&f);
    }
}

static void pointwise(void) {
    static const struct row rows[] = {
        {"out y[N,M] : f32\ny[i,j] = x[i,j]", 0, 0, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = maximum(x[i,j], 0)", 48, 0, 192, 192},
        {"out y[N,M] : f16\ny[i,j] = 0.5*x[i,j]*(1 + erf(x[i,j]*sqrt(0.5)))", 192, 48, 192, 96},
        {"out y[N,M] : f32\ny[i,j] = x[i,j] + b[j]", 48, 0, 192 + 24, 192},
        {"out y[N,M] : f32\nlet t2[i,j] = x[i,j] + b[j]\ny[i,j] = t2[i,j]*t2[i,j]", 96, 0, 216,
         192},
        {"out y[N] : f32\ny[i] = x[i,0]", 0, 0, 32, 32},
        {"out y[N] : f32\ny[i] = x[i,0] + x[i,0]*x[i,5]", 16, 0, 64, 32},
        {"out y[N,M//2] : f32\ny[i,j] = x[i,2*j] - x[i,2*j+1]", 24, 0, 192, 96},
        {"out y[N,M//2] : f32\ny[i,j] = x[i,2*j]", 0, 0, 96, 96},
        {"out y[M] : f32\ny[i] = b[i] + b[(i+1)%M] + b[i//2]", 12, 0, 24, 24},
        {"out y[N] : f32\ny[i] = x[i%2,0] + x[i,i%6]", 8, 0, 36, 32},
        {"out y[N] : f32\ny[i] = b[i//2]", 0, 0, 16, 32},
        {"out y[N] : f32\ny[i] = b[(i+3)//4]", 0, 0, 12, 32},
        {"out y[N] : f32\ny[i] = b[(i+3)%4]", 0, 0, 16, 32},
        {"out y[3] : f32\ny[i] = b[(i+3)%6]", 0, 0, 12, 12},
        {"out y[3] : f32\ny[i] = b[(i+4)%6]", 0, 0, 12, 12},
        {"out y[48] : f32\ny[i] = x[i//6, i%6]", 0, 0, 192, 192},
        {"out y[48] : f32\ny[i] = x[i//6%4, i%6]", 0, 0, 96, 192},
        {"out y[45] : f32\ny[i] = x[i//6, i%6]", 0, 0, 180, 180}, /* the last row is not whole */
        {"out y[48] : f32\ny[i] = x[i%8, i%6]", 0, 0, 96, 192},
        {"out y[8,4] : f32\ny[i,j] = x[i//4*4 + i%2*2 + j%2, j//2]", 0, 0, 64, 128},
        {"out y[3,48] : f32\ny[k,i] = pad(x[i//6 + k - 1, i%6], 0)", 0, 0, 192, 576},
        {"out y[9,48] : f32\ny[k,i] = pad(x[i//6 + k//3 - 1, i%6 + k%3 - 1], 0)", 0, 0, 192, 1728},
        {"out y[9,6] : f32\ny[k,i] = pad(x[i//3 + k//3 + 7, i%3*2 + k%3], 0)", 0, 0, 24, 216},
        {"out y[N] : f32\ny[i] = if(i != 3, b[i//2], 0)", 0, 0, 16, 32},
        {"out y[N] : f32\ny[i] = if(i < 3, b[i//2], 0)", 0, 0, 8, 32},
        /* what does not change is computed once; data decide: neither side need be read */
        {"out y[N] : f32\ny[i] = if(b[0] > 0, x[i,0], 1)", 1, 0, 4, 32},
        {"out y[N,M] : f32\ny[i,j] = x[i,j]*exp(b[j])", 48, 6, 216, 192},
        {"out y[N] : f32\ny[i] = if(i > 3, x[i,0], 1)", 0, 0, 16, 32},
        {"out y[N] : f32\ny[i] = if(i > 3, exp(x[i,0]), x[i,0] + 1)", 4, 4, 32, 32},
        {"out y[N] : f32\ny[i] = if(i % 3 == 1, exp(x[i,0]), 0)", 0, 3, 12, 32},
        {"out y[N] : f32\ny[i] = clamp(i*3 + 2, 0, 5.0)", 16, 0, 0, 32},
        /* a diagonal, a triangle, and a part that two reads share */
        {"out y[N] : f32\ny[i] = s[i,i]", 0, 0, 32, 32},
        {"out y[N,N] : f32\ny[i,j] = if(i <= j, s[i,j], 0)", 0, 0, 36 * 4, 256},
        {"out y[N,N] : f32\ny[i,j] = if(i <= j, s[i,j], s[j,i])", 0, 0, 36 * 4, 256},
        {"out y[N,M] : f32\ny[i,j] = pad(x[i+1,j-1], 0)", 0, 0, 7 * 5 * 4, 192},
        {"out y[N,2] : f32\ny[i,0] = x[i,3]\ny[i,1] = x[i,4]", 0, 0, 64, 64},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void reductions(void) {
    static const struct row rows[] = {
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]", 48, 0, 192, 32},
        {"out y[N] : f32\ny[i] = mean(j) x[i,j]", 56, 0, 192, 32},
        {"out y[N] : i64\ny[i] = argmax(j) x[i,j]", 48, 0, 192, 64},
        {"out y : f32\ny = max(i,j) x[i,j]", 48, 0, 192, 4},
        /* a factor common to all terms is applied to the sum */
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]*b[j]/sqrt(M)", 48 + 48 + 8, 0, 216, 32},
        {"out y[N] : f32\ny[i] = sum(j) b[j]/x[i,j]", 96, 0, 216, 32},
        {"out y[N] : f32\ny[i] = sum(j) 1/x[i,j]", 96, 0, 192, 32},
        /* a reduction that is used by many elements happens once */
        {"out y[N,M] : f32\ny[i,j] = exp(x[i,j]) / (sum(k) exp(x[i,k]))", 48 + 48, 96, 192, 192},
        /* one operation an element */
        {"out y[N,M] : f32\ny[i,j] = sum(k <= j) x[i,k]", 48, 0, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = sum(k < j) x[i,k]", 48, 0, 160, 192},
        {"out y[N,M] : f32\ny[i,j] = sum(j <= k < M) x[i,k]*x[i,k]", 96, 0, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = prod(k <= j) x[i,k]", 48, 0, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = sum(k | k <= j) x[i,k]", 48, 0, 192, 192},
        /* triangular and guarded ranges */
        {"out y[N,N] : f32\ny[i,j] = sum(i <= k <= j) s[i,k]*s[k,j]", 240, 0, 144, 256},
        {"out y[N] : f32\ny[i] = sum(j | (i+j) % 2 == 0) x[i,j]", 24, 0, 96, 32},
        {"out y[N] : f32\ny[i] = sum(j | j != i) s[i,j]", 56, 0, 224, 32},
        {"out y[N] : f32\ny[i] = sum(j) if(j < 2, x[i,j], 0)*b[j]", 32, 0, 64 + 24, 32},
        /* padding that cannot matter is no term */
        {"out y[M] : f32\ny[i] = sum(r < 3) pad(b[i+r-1], 0)", 16, 0, 24, 24},
        {"out y[M] : f32\ny[i] = max(r < 3) pad(b[i+r-1], -inf)", 16, 0, 24, 24},
        {"out y[M] : f32\ny[i] = max(r < 3) pad(b[i+r-1], 0)", 18, 0, 24, 24},
        {"out y[3] : f32\ny[i] = sum(r < 2 | (i+1-r) % 2 == 0) pad(b[(i+1-r)//2], 0)", 3, 0, 8, 12},
        {"out y[2] : f32\ny[i] = sum(r < 2) b[3*i+r]", 4, 0, 16, 8},
        /* data: the least demanding */
        {"out y[N] : f32\ny[i] = x[i,t[i]]", 0, 0, 32 + 64, 32},
        {"out y[N,M] : f32\ny[i,j] = x[t[i],j]", 0, 0, 24 + 64, 192},
        {"out y[N] : f32\ny[i] = sum(j | j == t[i]) x[i,j]", 16, 0, 32 + 64, 32},
        {"out y[N] : f32\ny[i] = sum(j | q[j]) s[i,j]", 64, 0, 8, 32},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void assumptions_and_inout(void) {
    static const struct row rows[] = {
        {"out y[N] : f32\nassume symmetric(s)\ny[i] = sum(j) s[i,j]", 64, 0, 144, 32},
        {"out y[N] : f32\nassume s[i,j] == 0 | i > j\ny[i] = sum(j) s[i,j]", 36, 0, 144, 32},
        {"inout c[N,M] : f32 ~ ones\nc[i,j] = c[i,j] + x[i,j]", 48, 0, 384, 192},
        {"inout c[N,M] : f32 ~ ones\nc[i,j] = if(j < 2, x[i,j], c[i,j])", 0, 0, 64 + 128, 64},
        {"inout c[N,M] : f32 ~ ones\nc[i,j] = if(j == t[i], b[j], c[i,j])", 48, 0, 4 + 64, 32},
        /* of a let only what is read; the triangle alone is computed */
        {"out y[N] : f32\nlet e[i,j] = exp(s[i,j])\ny[i] = sum(j | j <= i) e[i,j]", 36, 36, 144,
         32},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void contractions(void) {
    static const struct {
        const char *rest;
        double contraction;
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = sum(k) s[i,k]*x[k,j]", 2 * 8 * 8 * 6},
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]*b[j]", 96},
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]*x[i,j]", 0},
        {"out y[N] : f32\ny[i] = sum(j) (x[i,j] - 1)*x[i,j]", 0},
        {"out y[N,M] : f32\ny[i,j] = sum(k <= j) x[i,k]*b[k]", 0},
        {"out y[N,M] : f32\ny[i,j] = x[i,j]*b[j]", 0},
        {"out y[N,N] : f32\ny[i,j] = mean(k) exp(x[i,k])*x[j,k]", 2 * 8 * 8 * 6},
        {"out y[N] : f32\ny[i] = max(j) x[i,j]*b[j]", 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        struct cost c;
        if (fixture_rest(&f, rows[k].rest)) {
            cost_of(f.in, &c);
            CHECKF(c.flops_contraction == rows[k].contraction, "%s: %g", rows[k].rest,
                   c.flops_contraction);
        }
        fixture_end(&f);
    }
}

static void workloads(void) {
    static const struct {
        const char *rest;
        enum workload workload;
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = exp(x[i,j]) + b[j]", WORKLOAD_POINTWISE},
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]", WORKLOAD_REDUCTION},
        {"out y[N] : i64\ny[i] = argmin(j) x[i,j]", WORKLOAD_REDUCTION},
        {"out y[N,M] : f32\nlet m[i] = max(j) x[i,j]\ny[i,j] = x[i,j] - m[i]",
         WORKLOAD_NORMALISATION},
        {"out y[N,M] : f32\ny[i,j] = x[i,j] / (sum(k) x[i,k]*x[i,k])", WORKLOAD_NORMALISATION},
        {"out y[N,M] : f32\ny[i,j] = x[i,j] - mean(k) b[k]", WORKLOAD_REDUCTION},
        {"out y[N,M] : f32\ny[i,j] = sum(k <= j) x[i,k]", WORKLOAD_SCAN},
        {"out y[N,2] : f32\ny[i,p] = max(r < 3) x[i,3*p+r]", WORKLOAD_WINDOW},
        {"out y[N,M] : f32\ny[i,j] = sum(k) s[i,k]*x[k,j]", WORKLOAD_CONTRACTION},
        {"out y[M] : f32\ny[i] = sum(r < 3) pad(b[i+r-1], 0)*x[0,r]", WORKLOAD_CONTRACTION},
        {"out y[N,M] : f32\nlet l[i,j] = sum(k) x[i,k]*x[j,k]\nlet z[i] = sum(j) exp(l[i,j])\n"
         "y[i,d] = sum(j) exp(l[i,j])/z[i]*x[j,d]",
         WORKLOAD_ATTENTION},
        {"out y[N,M] : f32\nlet l[i,j] = sum(k) x[i,k]*x[j,k]\ny[i,d] = sum(j) exp(l[i,j])*x[j,d]",
         WORKLOAD_CONTRACTION},
        {"out y : f32\ny = mean(i,j) (x[i,j] - b[j])*(x[i,j] - b[j])", WORKLOAD_LOSS},
        {"out y : f32\ny = mean(i) x[i,t[i]]", WORKLOAD_LOSS},
        {"out y[N,M] : f32\ny[i,j] = x[t[i],j]", WORKLOAD_GATHER},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        struct features v;
        if (fixture_rest(&f, rows[k].rest)) {
            features_of(f.in, &v);
            CHECKF(v.workload == rows[k].workload, "%s: %s", rows[k].rest,
                   workload_name(v.workload));
        }
        fixture_end(&f);
    }
}

static void features(void) {
    struct fixture f;
    struct features v;
    if (fixture_smoke(&f, "bias_gelu", 3)) {
        features_of(f.in, &v);
        CHECK(v.workload == WORKLOAD_POINTWISE && v.inputs == 2 && v.outputs == 1 && v.rank == 2);
        CHECK(v.log2_elements == 14 && v.dtype == DTYPE_F32 && v.broadcast);
        CHECK(v.special_share > 0 && v.special_share < 0.2 && v.intensity > 0.5);
        CHECK(strcmp(workload_name(v.workload), "pointwise") == 0 && v.log2_reduced == 0);
    }
    fixture_end(&f);
    if (fixture_smoke(&f, "relu", 2)) {
        features_of(f.in, &v);
        CHECK(!v.broadcast && v.special_share == 0 && v.intensity == 0.125 && v.reuse == 1);
    }
    fixture_end(&f);
    if (fixture_text(&f, HEAD "out y[N,N] : f32\ny[i,j] = sum(k) s[i,k]*s[k,j]")) {
        features_of(f.in, &v);
        CHECK(v.log2_reduced == 3 && v.reuse == 2 * 512 / 64);
    }
    fixture_end(&f);
}

/* Bytes for data that ask for the most, read and written, beside those that all data ask for. */
static void reach(void) {
    static const struct {
        const char *rest;
        double read, most_read, write, most_write;
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = x[i,j] + b[j]", 216, 216, 192, 192},
        /* a mirror under a mask: each element is read once, from one place or the other */
        {"out y[N,M] : f32\ny[i,j] = x[i, if(q[i], M-1-j, j)]", 32 + 8, 192 + 8, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = if(q[i], x[i,j], b[j])", 8, 192 + 24 + 8, 192, 192},
        {"out y[N] : f32\ny[i] = x[i,t[i]]", 64 + 32, 64 + 32, 32, 32},
        /* rows by number: of 6 elements at most as many as there are numbers */
        {"out y[N,N] : f32\ny[i,j] = b[t[i]] + s[i,j]", 64 + 4 + 256, 64 + 24 + 256, 256, 256},
        {"out y[2] : f32\ny[i] = b[t[i]]", 16 + 4, 16 + 8, 8, 8},
        {"out y[N] : f32\ny[i] = sum(j | x[i,j] > 0) b[j]", 192, 216, 32, 32},
        {"inout c[N] : f32 ~ ones\nc[i] = if(q[i], x[i,0], c[i])", 8, 32 + 32 + 8, 0, 32},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        struct cost c;
        if (fixture_rest(&f, rows[k].rest)) {
            cost_of(f.in, &c);
            CHECKF(c.read_bytes == rows[k].read && c.reach_read_bytes == rows[k].most_read &&
                       c.write_bytes == rows[k].write && c.reach_write_bytes == rows[k].most_write,
                   "%s: %g %g %g %g", rows[k].rest, c.read_bytes, c.reach_read_bytes, c.write_bytes,
                   c.reach_write_bytes);
        }
        fixture_end(&f);
    }
}

static void passes(void) {
    static const struct {
        const char *rest;
        size_t folds;
        bool rereads, special;
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = x[i,j] + b[j]", 0, false, false},
        {"out y[N,M] : f32\ny[i,j] = x[i,j] / b[j]", 0, false, true},
        {"out y[N,M] : f32\ny[i,j] = exp(x[i,j])", 0, false, true},
        {"out y[N] : f32\ny[i] = sum(j) x[i,j]", 1, false, false},
        {"out y[N,M] : f32\nlet m[i] = max(j) x[i,j]\ny[i,j] = x[i,j] - m[i]", 1, true, false},
        {"out y[N] : f32\nlet m[i] = max(j) x[i,j]\ny[i] = sum(j) maximum(x[i,j] - m[i], 0)", 2,
         false, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        struct features v;
        if (fixture_rest(&f, rows[k].rest)) {
            features_of(f.in, &v);
            CHECKF(v.folds == rows[k].folds && v.rereads == rows[k].rereads &&
                       v.special == rows[k].special,
                   "%s: %zu folds, %d %d", rows[k].rest, v.folds, v.rereads, v.special);
        }
        fixture_end(&f);
    }
}

/* ---- the tasks of the repository ---- */

static const char *folder(struct fixture *f, const char *name) {
    const char *root = getenv("SOURCE_ROOT");
    return arena_printf(f->a, "%s/%s", root ? root : ".", name).p;
}

static void level1(void) {
    struct fixture f = {.a = arena_new((size_t)64 << 20)};
    const char *tasks = folder(&f, "tasks/kernelbench/level1");
    str text, line, *names;
    size_t n, checked = 0;
    bool ok = file_read(folder(&f, "tests/spec/level1_costs.txt"), 1 << 20, f.a, &text, &f.err) &&
              dir_list(tasks, f.a, &names, &n, &f.err);
    CHECKF(ok, "%s", f.err.text);
    while (ok && str_line(&text, &line)) {
        double bytes, flops;
        str number, rest = line;
        struct cost c;
        if (!line.n || line.p[0] == '#' || !str_word(&rest, ' ', &number) ||
            sscanf(arena_cstr(f.a, rest), "%lf %lf", &bytes, &flops) != 2)
            continue;
        for (size_t i = 0; i < n; i++) {
            const char *path = arena_printf(f.a, "%s/%.*s", tasks, STR_ARG(names[i])).p;
            if (!str_starts(names[i], number))
                continue;
            if (!task_load(path, f.a, &f.task, &f.err) ||
                !task_bind(f.task, NULL, 0, f.a, &f.in, &f.err)) {
                CHECKF(false, "%s", f.err.text);
                continue;
            }
            cost_of(f.in, &c);
            checked++;
            CHECKF(c.compulsory_bytes == bytes, "%s: %.0f bytes", path, c.compulsory_bytes);
            CHECKF(c.flops_contraction == flops, "%s: %.0f flops", path, c.flops_contraction);
        }
    }
    CHECKF(checked == 100, "%zu tasks", checked);
    arena_free(f.a);
}

/* Marks every element that an evaluation of all statements reads. */
struct brute {
    const struct inst *in;
    struct scalar s;
    unsigned char *mark[TASK_MAX_TENSORS];
    bool data; /* something depends on data: not for us */
};

static void brute_walk(struct brute *b, const struct expr *e);

static void brute_read(struct brute *b, const struct expr *e) {
    const struct bound_tensor *t = &b->in->tensors[e->ref];
    int64_t linear = 0;
    for (size_t k = 0; k < e->nargs; k++) {
        double at = scalar_eval(&b->s, e->args[k]);
        if (!(at >= 0 && at < (double)t->extent[k]))
            return;
        linear += (int64_t)at * t->stride[k];
    }
    b->mark[e->ref][linear] = 1;
}

static void brute_reduce(struct brute *b, const struct expr *e, size_t level) {
    const struct reduce *r = e->reduce;
    if (level == r->nvars) {
        if (!r->guard || scalar_eval(&b->s, r->guard) != 0)
            brute_walk(b, e->args[0]);
        return;
    }
    int64_t lo = (int64_t)scalar_eval(&b->s, r->vars[level].lo);
    int64_t hi = (int64_t)scalar_eval(&b->s, r->vars[level].hi);
    for (int64_t v = lo; v < hi; v++) {
        b->s.var[r->vars[level].var] = v;
        brute_reduce(b, e, level + 1);
    }
}

static void brute_walk(struct brute *b, const struct expr *e) {
    switch (e->kind) {
    case EXPR_READ:
        brute_read(b, e);
        return;
    case EXPR_PAD:
        brute_read(b, e->args[0]);
        return;
    case EXPR_IF:
        brute_walk(b, e->args[scalar_eval(&b->s, e->args[0]) != 0 ? 1 : 2]);
        return;
    case EXPR_REDUCE:
        brute_reduce(b, e, 0);
        return;
    default:
        for (size_t i = 0; i < e->nargs; i++)
            brute_walk(b, e->args[i]);
    }
}

static bool reads(const struct expr *e) {
    bool any = e->kind == EXPR_READ;
    for (size_t i = 0; i < expr_nparts(e); i++)
        any |= reads(expr_part(e, i));
    return any;
}

static bool uses_data(const struct expr *e) {
    bool any = false;
    if (e->kind == EXPR_IF)
        any = reads(e->args[0]);
    if (e->kind == EXPR_REDUCE && e->reduce->guard)
        any = reads(e->reduce->guard);
    for (size_t i = 0; e->kind == EXPR_READ && i < e->nargs; i++)
        any |= reads(e->args[i]);
    for (size_t i = 0; i < expr_nparts(e); i++)
        any |= uses_data(expr_part(e, i));
    return any;
}

static void brute_statement(struct brute *b, const struct statement *s) {
    const struct bound_tensor *t = &b->in->tensors[s->tensor];
    int64_t first = 0, c;
    for (int64_t i = first; i < t->count; i++) {
        bool here = true;
        for (size_t k = 0; k < b->in->task->tensors[s->tensor].rank; k++) {
            int64_t at = i / t->stride[k] % t->extent[k];
            if (s->position[k] >= 0)
                b->s.var[s->position[k]] = at;
            else
                here &= expr_eval_dims(s->constant[k], b->in->dims, &c) && c == at;
        }
        if (here)
            brute_walk(b, s->body);
    }
}

/* What reads must touch, at every check shape of every task that data do not steer. */
static size_t brute_task(const struct task *t, struct arena *a) {
    size_t done = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->nassumptions || uses_data(t->statements[i].body))
            return 0;
    for (size_t k = 0; k < t->nchecks; k++) {
        struct brute b = {0};
        struct inst *in;
        struct cost c;
        double bytes = 0;
        if (!task_bind_check(t, k, a, &in, NULL))
            continue;
        cost_of(in, &c);
        if (c.flops > 5e5)
            continue;
        b.in = b.s.in = in;
        for (size_t i = 0; i < t->ntensors; i++)
            b.mark[i] = mem_alloc((size_t)in->tensors[i].count);
        for (size_t i = 0; i < t->nstatements; i++)
            brute_statement(&b, &t->statements[i]);
        for (size_t i = 0; i < t->ntensors; i++) {
            for (int64_t m = 0; tensor_is_input(&t->tensors[i]) && m < in->tensors[i].count; m++)
                bytes += b.mark[i][m] * (double)dtype_info(t->tensors[i].dtype)->bytes;
            mem_free(b.mark[i]);
        }
        CHECKF(c.read_bytes == bytes, "%.*s check %zu: %.0f counted, %.0f touched",
               STR_ARG(t->name), k, c.read_bytes, bytes);
        done++;
    }
    return done;
}

static void touched_by_brute_force(void) {
    static const char *const folders[] = {"tasks/kernelbench/level1", "tasks/layers",
                                          "tasks/smoke"};
    size_t shapes = 0;
    for (size_t d = 0; d < sizeof folders / sizeof *folders; d++) {
        struct fixture f = {.a = arena_new((size_t)256 << 20)};
        const char *path = folder(&f, folders[d]);
        str *names;
        size_t n = 0;
        CHECKF(dir_list(path, f.a, &names, &n, &f.err), "%s", f.err.text);
        for (size_t i = 0; i < n; i++) {
            const char *file = arena_printf(f.a, "%s/%.*s", path, STR_ARG(names[i])).p;
            if (str_ends(names[i], S(".task")) && task_load(file, f.a, &f.task, &f.err))
                shapes += brute_task(f.task, f.a);
        }
        arena_free(f.a);
    }
    CHECKF(shapes >= 150, "%zu shapes", shapes);
}

/* A guard that no formula fits and whose points are too many: an answer all the same. */
static void budget_ends_loops(void) {
    struct fixture f;
    struct cost c;
    if (fixture_text(&f, "task t \"T\"\ndim N = 100000\nin x[N,N] : f32 ~ ones\nout y[N] : f32\n"
                         "y[i] = sum(j | (i*j) % 7 != 3) x[i,j]\n")) {
        cost_of(f.in, &c);
        CHECKF(c.flops > 0 && c.flops <= 1e10, "%g", c.flops);
        CHECKF(c.read_bytes > 0 && c.read_bytes <= 4e10, "%g", c.read_bytes);
    }
    fixture_end(&f);
    /* Quotients are counted by their ends, not one by one. */
    if (fixture_text(&f,
                     "task t \"T\"\ndim N = 8589934592\nin x[N] : f32 ~ ones\nout y[32*N] : f32\n"
                     "y[i] = x[i//32]\n")) {
        cost_of(f.in, &c);
        CHECKF(c.read_bytes == 4 * 0x1p33, "%g", c.read_bytes);
    }
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"pointwise work", pointwise},
    {"reductions", reductions},
    {"assumptions, inout and demand", assumptions_and_inout},
    {"contractions", contractions},
    {"workloads", workloads},
    {"features", features},
    {"bytes that data may ask for", reach},
    {"folds, and what is read again", passes},
    {"the 100 tasks", level1},
    {"touched elements by brute force", touched_by_brute_force},
    {"the budget ends loops", budget_ends_loops},
};
TAP_CASES(cases)
