/* The oracle's text: what is kept in memory, names that CUDA knows as well, and limits. What the
 * kernels compute is tests/eval/test_oracle.c. */
#include "tap.h"

#include "fixture.h"
#include "kernel/oracle.h"
#include "kernel/oracle_plan.h"
#include <dirent.h>
#include <sys/stat.h>

static struct arena *arena;

#define HEAD                                                                                       \
    "task o \"o\"\n"                                                                               \
    "dim N = 8, M = 9, K = 10\n"                                                                   \
    "in a[N,K] : f32 ~ uniform(0,1)\n"                                                             \
    "in b[K,M] : f32 ~ uniform(0,1)\n"                                                             \
    "in t[N] : i32 ~ randint(0,M)\n"

static bool has(str s, const char *what) {
    return str_find(s, str_view(what)) < s.n;
}

static bool unit_of(const struct task *t, str *out, struct err *err) {
    struct buf unit;
    buf_init(&unit, ORACLE_MAX_UNIT);
    bool ok = oracle_unit(t, &unit, err);
    *out = arena_str(arena, buf_str(&unit));
    buf_release(&unit);
    return ok;
}

/* Each row: a task, and its steps as letters. L a let; R a reduction, O one that may go without
 * memory, S a scan, D of a definition; behind it f fixed bounds, p a contraction of exact operands,
 * e exact terms, n needed by a comparison. */
static void plans(void) {
    static const struct {
        const char *text, *steps;
    } rows[] = {
        {"out y[N] : f32\ny[i] = a[i,0] + 1\n", ""},
        {"out y[N,M] : f32\ny[i,j] = sum(k) a[i,k] * b[k,j]\n", "Ofpn "},
        {"out y[N] : f32\ny[i] = sum(k) a[i,k] * a[i,k]\n", "Ofn "},
        {"out y[N,K] : f32\ny[i,k] = a[i,k] / (sum(l) a[i,l])\n", "Rfen "},
        {"out y[N,K] : f32\ny[i,k] = sum(l <= k) a[i,l]\n", "Sen "},
        {"out y[N,K] : f32\nlet m[i] = max(k) a[i,k]\ny[i,k] = a[i,k] - m[i]\n", "Ofe Ln "},
        {"out y[N,K] : f32\nlet c[i,k] = a[i,k] + 1\ny[i,k] = c[i,k] * 2\n", ""},
        {"out y[N,K] : f32\nlet c[i,k] = exp(a[i,k])\ny[i,k] = c[i,k] * 2\n", "Ln "},
        {"out y : f32\ny = sum(i) exp(sum(k) a[i,k])\n", "Rfe Ofn "},
        {"out y[N] : f32\ny[i] = sum(k | a[i,k] > 0.5) a[i,k]\n", "Ofen "},
        {"rand r[N,K] ~ uniform(0,1)\nin q[N,K] : f32 = r[i,j] / (sum(l) r[i,l])\n"
         "out y[N] : f32\ny[i] = q[i,0]\n",
         "Df "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024], got[256] = "";
        struct oracle_plan p;
        struct err err = {0};
        snprintf(text, sizeof text, HEAD "%s", rows[i].text);
        CHECK(oracle_plan_make(fixture_task(text, arena), arena, &p, &err));
        for (size_t k = 0; k < p.nsteps; k++) {
            const struct oracle_step *s = &p.steps[k];
            char kind = s->kind == ORACLE_LET      ? 'L'
                        : s->kind == ORACLE_DEFINE ? 'D'
                        : s->scanned >= 0          ? 'S'
                        : s->always                ? 'R'
                                                   : 'O';
            size_t n = strlen(got);
            snprintf(got + n, sizeof got - n, "%c%s%s%s%s ", kind, s->fixed ? "f" : "",
                     s->product ? "p" : "", s->exact && !s->product ? "e" : "",
                     s->needed ? "n" : "");
        }
        CHECKF(strcmp(got, rows[i].steps) == 0, "%s#  is: %s\n# not: %s", rows[i].text, got,
               rows[i].steps);
    }
}

/* Each row: a statement, and the rows and columns of results that a thread may make of it. */
static void blocks(void) {
    static const struct {
        const char *statement;
        int rows, columns;
        uint32_t row_axes, column_axes;
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = sum(k) a[i,k] * b[k,j]\n", 4, 2, 1, 2},
        {"out y[M,N] : f32\ny[j,i] = sum(k) a[i,k] * b[k,j]\n", 4, 2, 2, 1},
        {"out y[N,M] : f32\ny[i,j] = sum(k) pad(a[i-1,k], 0) * b[k,j]\n", 2, 4, 1, 2},
        {"out y[N] : f32\ny[i] = sum(k) a[i,k] * b[k,0]\n", 4, 1, 1, 0},
        {"out y[N,M] : f32\ny[i,j] = sum(k) exp(a[i,k]) * b[k,j]\n", 2, 2, 1, 2},
        {"out y[N,M] : f32\ny[i,j] = sum(k | a[i,k] > 0) a[i,k] * b[k,j]\n", 1, 1, 0, 0},
        {"out y[N] : f32\ny[i] = sum(k) a[i,k]\n", 1, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        struct oracle_plan p;
        struct err err = {0};
        snprintf(text, sizeof text, HEAD "%s", rows[i].statement);
        CHECK(oracle_plan_make(fixture_task(text, arena), arena, &p, &err) && p.nsteps == 1);
        const struct oracle_step *s = &p.steps[0];
        CHECKF(s->rows == rows[i].rows && s->columns == rows[i].columns &&
                   s->row_axes == rows[i].row_axes && s->column_axes == rows[i].column_axes,
               "%s# %d by %d, axes %x and %x", rows[i].statement, s->rows, s->columns,
               (unsigned)s->row_axes, (unsigned)s->column_axes);
    }
}

/* Indices, tensors and sizes may be called what CUDA, or the oracle, calls something else. */
static const char odd_names[] = "task int \"odd names\"\n"
                                "dim NAN = 3, WORST = 4, o = 5\n"
                                "in of[NAN,WORST] : f32 ~ uniform(0,1)\n"
                                "in at[WORST] : f64 ~ normal(0,1)\n"
                                "rand rest[NAN] : i32 ~ randint(0,2)\n"
                                "in chain[NAN] : i32 = 2 * rest[char]\n"
                                "out value[NAN] : f32\n"
                                "out double[NAN,WORST] : bool\n"
                                "let pole[i, r < o] = of[i,0] * r\n"
                                "value[for] = (sum(int) of[for,int] * at[int]) + chain[for] + "
                                "(sum(first, left) pole[first, left])\n"
                                "double[c,f] = of[c,f] > at[f]\n";

static void names(void) {
    struct err err = {0};
    struct nvrtc_root root;
    struct loop *loop = loop_new(&err);
    str unit;
    CHECKF(unit_of(fixture_task(odd_names, arena), &unit, &err), "%s", err.text);
    CHECK(has(unit, "int64_t int_") && has(unit, "read_of(") && !has(unit, "#include"));
    const char *missing = fixture_nvrtc(&root);
    if (missing) {
        loop_free(loop);
        SKIP(missing);
    }
    struct build_pool_options o = {.jobs = 1};
    struct build_pool *p = build_pool_new(loop, &root, &o, &err);
    struct fixture_build f = {.a = arena};
    CHECK(fixture_compile(loop, p, unit, false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED, "%.*s", STR_ARG(f.b.log));
    CHECK(has(f.b.ptx, ".visible .entry oracle_compare(") &&
          has(f.b.ptx, ".visible .entry oracle_inputs("));
    build_pool_free(p);
    loop_free(loop);
}

static size_t units;

static void unit_of_file(const char *path) {
    struct err err = {0};
    struct arena *a = arena_new((size_t)64 << 20);
    struct task *t;
    struct buf unit;
    buf_init(&unit, ORACLE_MAX_UNIT);
    bool ok = task_load(path, a, &t, &err) && oracle_unit(t, &unit, &err);
    CHECKF(ok && !has(buf_str(&unit), "#include"), "%s: %s", path, err.text);
    buf_release(&unit);
    arena_free(a);
    units++;
}

static void walk(const char *folder) {
    char path[1024];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            walk(path);
        else if (str_ends(str_view(path), S(".task")))
            unit_of_file(path);
    }
    if (d)
        closedir(d);
}

static void shipped_tasks(void) {
    char path[1024];
    const char *root = getenv("SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tasks", root ? root : ".");
    walk(path);
    CHECKF(units >= 100, "%zu units", units);
}

static void limits(void) {
    static const char wide[] = "task w \"w\"\n"
                               "dim N = 2\n"
                               "in x[N,N,N,N,N,N,N,N] : f32 ~ uniform(0,1)\n"
                               "out y : f32\n"
                               "y = sum(a < 2,b,c,d,e,f,g,h) (sum(i) x[i,b,c,d,e,f,g,h] * a)\n";
    struct err err = {0};
    struct buf small;
    str unit;
    CHECKF(unit_of(fixture_task(wide, arena), &unit, &err), "%s", err.text);
    char text[512];
    snprintf(text, sizeof text, "%.*s%s", (int)(strstr(wide, "y = ") - wide), wide,
             "y = sum(a < 2,b,c,d,e,f,g,h,j < 2) (sum(i) x[i,b,c,d,e,f,g,h] * a * j)\n");
    CHECK(!unit_of(fixture_task(text, arena), &unit, &err) &&
          strstr(err.text, "depends on more than 8 indices"));
    buf_init(&small, 1000);
    CHECK(!oracle_unit(fixture_task(HEAD "out y[N] : f32\ny[i] = a[i,0]\n", arena), &small, &err) &&
          strstr(err.text, "too long"));
    buf_release(&small);
}

static const struct tap_case cases[] = {
    {"plans", plans},   {"blocks", blocks}, {"names", names}, {"shipped tasks", shipped_tasks},
    {"limits", limits},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    arena = arena_new(512u << 20);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
