/* Every decision of the catalogue is honoured: for each of them a task, and a fact of the compiled
 * kernel or of its plan that changes with the decision's value.
 *
 * A row of the table names what is measured and what each value must give. The facts are those of
 * the PTX (the instruction census, or words of its text) and of the plan as it is bound for the
 * task (blocks, threads, shared memory); none is of the expert's own words. A value that no row
 * sets fails the test, so that a decision is not added without its evidence. */
#include "compiling.h"

#include "strategy/reader.h"

/* ---- tasks ---- */

#define MAP(type, n)                                                                               \
    "dim N = " n "\nin x[N] : " type " ~ normal(0,1)\nout y[N] : " type "\ny[i] = x[i] * 2 + 1\n"
#define SIGMOID                                                                                    \
    "dim N = 65536\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\ny[i] = 1 / (1 + exp(0 - x[i]))\n"
#define MATRIX(b, d) "dim B = " b ", D = " d "\nin x[B,D] : f32 ~ normal(0,1)\n"
#define SOFTMAX(b, d)                                                                              \
    MATRIX(b, d)                                                                                   \
    "out y[B,D] : f32\nlet m[i] = max(j) x[i,j]\nlet s[i] = sum(j) exp(x[i,j] - m[i])\n"           \
    "y[i,j] = exp(x[i,j] - m[i]) / s[i]\n"
#define SUMS(type, b, d)                                                                           \
    "dim B = " b ", D = " d "\nin x[B,D] : " type " ~ normal(0,1)\nout y[B] : f32\n"               \
    "y[i] = sum(j) x[i,j]\n"
#define BY_INDEX                                                                                   \
    "dim T = 65536, K = 256\nin e[T] : i32 ~ randint(0, K)\nin x[T] : f32 ~ normal(0,1)\n"         \
    "out y[K] : f32\ny[k] = sum(t | e[t] == k) x[t]\n"
#define TOTAL "dim N = 1048576\nin x[N] : f32 ~ normal(0,1)\nout y : f32\ny = sum(i) x[i]\n"
#define SCAN(type, b, d)                                                                           \
    "dim B = " b ", D = " d "\nin x[B,D] : " type " ~ normal(0,1)\nout y[B,D] : " type "\n"        \
    "y[i,j] = sum(k <= j) x[i,k]\n"
#define POOL                                                                                       \
    "dim N = 64, H = 256, W = 256\nin x[N,H,W] : f32 ~ normal(0,1)\nout y[N,H,W] : f32\n"          \
    "y[n,p,q] = max(r < 3, s < 3) pad(x[n,p+r-1,q+s-1], -inf)\n"
#define PRODUCT(m, n, k)                                                                           \
    "dim M = " m ", N = " n ", K = " k "\nin a[M,K] : f32 ~ normal(0,1)\n"                         \
    "in b[K,N] : f32 ~ normal(0,1)\nout c[M,N] : f32\nc[i,j] = sum(k) a[i,k]*b[k,j]\n"
#define TF32(m, n, k) PRODUCT(m, n, k) "accuracy tf32\n"
#define TRIANGLE                                                                                   \
    "dim N = 1024\nin a[N,N] : f32 ~ normal(0,1)\nin b[N,N] : f32 ~ normal(0,1)\n"                 \
    "out c[N,N] : f32\nc[i,j] = sum(i <= k <= j) a[i,k]*b[k,j]\naccuracy tf32\n"
#define GAPS                                                                                       \
    "dim N = 4, C = 16, O = 32, L = 512, R = 3\ndim P = 2*(L - 1) + R - 2\n"                       \
    "in x[N,C,L] : f32 ~ normal(0,1)\nparam w[C,O,R] : f32 ~ normal(0,1)\nout y[N,O,P] : f32\n"    \
    "y[n,o,p] = sum(c,r | (p+1-r) % 2 == 0) pad(x[n,c,(p+1-r)//2], 0) * w[c,o,r]\n"                \
    "accuracy tf32\n"
#define ATTENTION                                                                                  \
    "dim H = 16, T = 1024, E = 64\nin q[H,T,E] : bf16 ~ normal(0,1)\n"                             \
    "in k[H,T,E] : bf16 ~ normal(0,1)\nin v[H,T,E] : bf16 ~ normal(0,1)\nout o[H,T,E] : bf16\n"    \
    "let s[h,i,j] = 0.125 * sum(e) q[h,i,e]*k[h,j,e]\nlet m[h,i] = max(j) s[h,i,j]\n"              \
    "let p[h,i,j] = exp(s[h,i,j] - m[h,i])\nlet z[h,i] = sum(j) p[h,i,j]\n"                        \
    "o[h,i,e] = (sum(j) p[h,i,j]*v[h,j,e]) / z[h,i]\naccuracy bf16\n"
#define BROADCAST                                                                                  \
    "dim R = 96, C = 1000\nin x[R,C] : f32 ~ normal(0,1)\nparam b[C] : f32 ~ normal(0,1)\n"        \
    "in s[R] : f32 ~ normal(0,1)\nout y[R,C] : f32\ny[i,j] = (x[i,j] + b[j]) * s[i]\n"
#define MIDDLE                                                                                     \
    "dim B = 64, C = 512, N = 1024\nin x[B,C,N] : f32 ~ normal(0,1)\nout y[B,N] : f32\n"           \
    "y[b,n] = max(c) x[b,c,n]\n"
#define COLUMNS                                                                                    \
    "dim L = 4096, D = 1024\nin x[L,D] : f32 ~ normal(0,1)\nout y[L,D] : f32\n"                    \
    "y[i,j] = sum(k <= i) x[k,j]\n"
#define DEPTHWISE                                                                                  \
    "dim C = 64, H = 128, W = 128\nin x[C,H,W] : f32 ~ normal(0,1)\n"                              \
    "param w[C,3,3] : f32 ~ normal(0,1)\nout y[C,H,W] : f32\n"                                     \
    "y[c,p,q] = sum(r,s) pad(x[c,p+r-1,q+s-1], 0) * w[c,r,s]\n"
#define CONV                                                                                       \
    "dim N = 8, C = 16, O = 64, H = 64, W = 64\nin x[N,C,H,W] : f32 ~ normal(0,1)\n"               \
    "param w[O,C,3,3] : f32 ~ normal(0,1)\nout y[N,O,H,W] : f32\n"                                 \
    "y[n,o,p,q] = sum(c,r,s) pad(x[n,c,p+r-1,q+s-1], 0) * w[o,c,r,s]\naccuracy tf32\n"
#define NESTED(n, m)                                                                               \
    "dim N = " n ", M = " m "\nin x[N,M] : f32 ~ normal(0,1)\nout y[N] : f32\n"                    \
    "y[i] = sum(j | x[i,j] > (min(k) x[i,k]) * 0.5) x[i,j] * x[i,(j*7+3) % M]\n"
/* Three products, of 16 columns, of thousands, and over 16 terms. */
#define LOW_RANK                                                                                   \
    "dim M = 2048, K = 2048, N = 2048, R = 16\nin x[M,K] : bf16 ~ normal(0,1)\n"                   \
    "in w[K,N] : bf16 ~ normal(0,1)\nin a[K,R] : bf16 ~ normal(0,1)\n"                             \
    "in b[R,N] : bf16 ~ normal(0,1)\nout y[M,N] : bf16\n"                                          \
    "let low[m,r] : bf16 = sum(k) x[m,k]*a[k,r]\n"                                                 \
    "y[m,n] = (sum(k) x[m,k]*w[k,n]) + sum(r) low[m,r]*b[r,n]\naccuracy bf16\n"

/* ---- the table ---- */

/* What is measured:
 *     blocks threads all-threads shared cluster    of the largest launch: with the most
 *                                                  shared memory, then threads
 *     launches memsets maps workspace              of the plan; workspace in bytes
 *     count FORM, bits FORM                        of the census: how many, the widest access;
 *                                                  `*` in a form stands for anything
 *     ptx WORDS, number WORDS                      of the PTX's text: how often, and the largest
 *                                                  number behind them
 *     operand OPCODE                               the number at the end of the first of them
 *     in-flight                                    loads before what they bring is used
 * What is wanted for the values in ascending order: numbers, with + for any above zero; `xN`, N
 * times the value; `rises` or `falls`, from each value to the next. */
struct row {
    const char *decision, *task, *strategy, *fact, *want;
    const char *values; /* NULL: all */
};
static const struct row rows[] = {
    /* pointwise */
    {"block", MAP("f32", "1048576"), "", "threads", "x1", NULL},
    {"vector-width", MAP("f16", "1048576"), "", "bits ld.global*", "x16", NULL},
    {"vector-width", MAP("f16", "1048576"), "", "bits st.global*", "x16", NULL},
    {"items", MAP("f32", "1048576"), "vector-width=4", "count ld.global*.128", "rises", NULL},
    {"items", MAP("f32", "1048576"), "block=256", "all-threads", "1048576 524288 262144 131072",
     NULL},
    {"cache-hint", MAP("f32", "1048576"), "", "count ld.global.cs*", "0 +", NULL},
    {"cache-hint", MAP("f32", "1048576"), "", "count st.global.cs*", "0 +", NULL},
    {"persistent", MAP("f32", "1048576000"), "", "blocks", "falls", NULL},
    {"fast-math", SIGMOID, "", "count div.full.f32", "0 +", NULL},
    {"fast-math", SIGMOID, "", "ptx rcp.rn.f32", "+ 0", NULL},
    /* rows */
    {"row-threads", SUMS("f32", "4096", "1024"), "block=64 vector-width=1", "all-threads", "x4096",
     NULL},
    {"row-threads", SOFTMAX("4096", "65536"), "block=256", "threads", "x1", "256 512 1024"},
    {"row-threads", SUMS("f32", "4096", "1024"), "block=64", "ptx shfl", "rises", "1 2 4 8 16 32"},
    {"block", SUMS("f32", "4096", "1024"), "row-threads=8", "threads", "x1", NULL},
    {"vector-width", SUMS("f16", "4096", "1024"), "row-threads=8", "bits ld.global*", "x16", NULL},
    {"items", SUMS("f32", "4096", "65536"), "row-threads=128 vector-width=4", "in-flight", "x1",
     NULL},
    {"cache-hint", SOFTMAX("4096", "1024"), "row-threads=32 row-cache=1", "count ld.global.cs*",
     "0 +", NULL},
    {"reduce-kind", SUMS("f32", "4096", "4096"), "row-threads=256", "ptx shfl", "0 +", NULL},
    {"reduce-kind", SUMS("f32", "4096", "4096"), "row-threads=256", "count bar*", "falls", NULL},
    {"row-cache", SOFTMAX("4096", "4096"), "row-threads=256", "shared", "0 0 16384", NULL},
    {"row-cache", SOFTMAX("4096", "4096"), "row-threads=256 row-online=0 vector-width=4",
     "count ld.global*", "falls", "0 2"},
    {"row-cluster", SOFTMAX("512", "65536"), "row-threads=256", "cluster", "x1", NULL},
    {"row-cluster", SOFTMAX("512", "65536"), "row-threads=256", "count barrier.cluster*", "0 + + +",
     NULL},
    {"row-ahead", SOFTMAX("4096", "65536"), "row-threads=512 row-cache=2 row-cluster=4", "blocks",
     "falls", NULL},
    {"row-ahead", SOFTMAX("4096", "65536"), "row-threads=512 row-cache=2 row-cluster=4",
     "count cp.async.bulk.prefetch*", "0 +", NULL},
    {"row-online", SOFTMAX("4096", "4096"), "row-threads=256 row-cache=0", "count ld.global*",
     "falls", NULL},
    {"row-split", TOTAL, "row-threads=256 vector-width=1", "blocks", "x1", NULL},
    {"fast-math", SOFTMAX("4096", "1024"), "row-threads=32", "ptx div.rn.f32", "+ 0", NULL},
    /* scans */
    {"block", SCAN("f32", "64", "65536"), "", "threads", "x1", NULL},
    {"vector-width", SCAN("f16", "64", "65536"), "", "bits ld.global*", "x16", NULL},
    {"items", SCAN("f32", "64", "65536"), "vector-width=2", "count ld.global*.64", "rises", NULL},
    {"cache-hint", SCAN("f32", "64", "65536"), "", "count ld.global.cs*", "0 +", NULL},
    {"prefetch", SCAN("f32", "64", "65536"), "items=4", "count ld.global*", "rises", NULL},
    {"scan-lookback", SCAN("f32", "4", "1048576"), "", "memsets", "0 +", NULL},
    {"scan-lookback", SCAN("f32", "4", "1048576"), "", "count atom*", "0 +", NULL},
    {"scan-split", SCAN("f32", "4", "1048576"), "", "blocks", "x4", NULL},
    {"scan-split", SCAN("f32", "4", "1048576"), "", "launches", "1 2 2 2", NULL},
    {"scan-warp", SCAN("f32", "4096", "1024"), "", "count bar*", "+ 0", NULL},
    {"scan-warp", SCAN("f32", "4096", "1024"), "block=128", "blocks", "4096 1024", NULL},
    /* windows */
    {"block", POOL, "", "threads", "x1", NULL},
    {"items", POOL, "halo=0", "count st.global*", "rises", NULL},
    {"vector-width", POOL, "halo=1", "ptx cp.async.cg.shared.global", "0 0 + +", NULL},
    {"cache-hint", POOL, "", "count st.global.cs*", "0 +", NULL},
    {"halo", POOL, "", "shared", "0 +", NULL},
    {"halo", POOL, "", "count cp.async*", "0 +", NULL},
    {"separable", POOL, "items=4 halo=0", "ptx setp.gt.f32", "falls", NULL},
    {"tile-w", POOL, "halo=1 block=256", "shared", "rises", NULL},
    /* contractions */
    {"tensor-path", TF32("1024", "1024", "1024"), "", "count mma*", "0 + 0", NULL},
    {"tensor-path", TF32("1024", "1024", "1024"), "", "count wgmma*", "0 0 +", NULL},
    {"tensor-path", TF32("1024", "1024", "1024"), "", "maps", "0 0 2", NULL},
    {"tile-m", TF32("1024", "1024", "1024"), "tile-n=32 tensor-path=1", "blocks",
     "1024 512 256 128", NULL},
    {"tile-n", TF32("1024", "1024", "1024"), "tile-m=32 tensor-path=1", "blocks",
     "1024 512 256 128", NULL},
    {"tile-k", TF32("1024", "1024", "1024"), "tensor-path=1", "count mma*", "rises", NULL},
    {"tile-k", TF32("1024", "1024", "1024"), "tensor-path=1", "shared", "rises", NULL},
    {"warps", TF32("1024", "1024", "1024"), "tensor-path=1", "threads", "x32", NULL},
    {"stages", TF32("1024", "1024", "1024"), "tensor-path=1", "shared", "rises", NULL},
    {"stages", TF32("1024", "1024", "1024"), "tensor-path=1", "number cp.async.wait_group ",
     "0 1 2 3", NULL},
    {"stages", TF32("1024", "1024", "1024"), "tensor-path=2", "shared", "rises", NULL},
    {"swizzle", TF32("1024", "1024", "1024"), "tensor-path=1", "shared", "falls", NULL},
    {"swizzle", TF32("1024", "1024", "1024"), "tensor-path=1", "ptx xor.b", "0 +", NULL},
    {"raster", TF32("1024", "1024", "1024"), "tensor-path=1", "operand min.s32", "x1", NULL},
    {"split-k", TF32("64", "64", "65536"), "tensor-path=1 tile-m=64 tile-n=64", "blocks", "x1",
     NULL},
    {"split-k", TF32("64", "64", "65536"), "tensor-path=1 tile-m=64 tile-n=64", "workspace",
     "0 32768 65536 131072 262144 524288 1048576", NULL},
    {"split-parts", PRODUCT("1024", "1024", "1024"), "tensor-path=2", "launches", "5 3", NULL},
    {"split-parts", PRODUCT("1024", "1024", "1024"), "tensor-path=2", "count wgmma*.f16.f16", "+ 0",
     NULL},
    {"pack", TF32("1023", "1023", "1023"), "tensor-path=1", "launches", "rises", NULL},
    {"pack", TF32("1023", "1023", "1023"), "tensor-path=1", "workspace", "0 +", NULL},
    {"skip", TRIANGLE, "tensor-path=1", "ptx min.s32", "rises", NULL},
    {"skip", GAPS, "tensor-path=1", "ptx vote.sync.ballot", "0 +", NULL},
    /* attention */
    {"query-tile", ATTENTION, "", "threads", "x2", NULL},
    {"query-tile", ATTENTION, "", "blocks", "256 128", NULL},
    {"key-tile", ATTENTION, "", "count mma*", "rises", NULL},
    {"stages", ATTENTION, "", "shared", "rises", NULL},
    /* the rest */
    {"block", NESTED("65536", "64"), "", "threads", "x1", NULL},
    {"generic-lanes", NESTED("1048576", "64"), "", "ptx shfl", "0 0 +", NULL},
    {"generic-lanes", NESTED("64", "65536"), "", "ptx shfl", "+ 0 +", NULL},
    {"buckets", BY_INDEX, "", "ptx match.any", "0 0 +", NULL},
    {"buckets", BY_INDEX, "", "launches", "2 2 9", NULL},
    {"buckets", BY_INDEX, "", "count atom.shared*", "0 + +", NULL},
    {"fast-math", ATTENTION, "", "ptx div.rn.f32", "+ 0", NULL},
};
enum { NROWS = sizeof rows / sizeof *rows };

/* ---- kernels ---- */

/* The kernel of a row for one value, with everything else as the row has it; NULL: the rules do not
 * allow it, or it cannot be written. */
static struct variant *variant_of(struct build_pool *pool, const struct row *r, int64_t value) {
    struct briefing b;
    struct strategy s;
    if (!brief(r->task, &b) || !strategy_parse(catalogue, str_view(r->strategy), &s, &err))
        return NULL;
    strategy_put(catalogue, &s, r->decision, value);
    strategy_repair(catalogue, &b.ground, &s);
    CHECKF(strategy_get(catalogue, &s, r->decision) == value, "%s=%d is not allowed with [%s]",
           r->decision, (int)value, r->strategy);
    str source = write_with(&b, &s);
    for (size_t i = 0; i < nvariants; i++)
        if (str_eq(variants[i].source, source))
            return &variants[i];
    if (!source.n || nvariants == MAX_VARIANTS)
        return NULL;
    struct variant *v = &variants[nvariants++];
    *v = (struct variant){.brief = b, .strategy = s, .source = source};
    return start_build(pool, v) ? v : NULL;
}

/* ---- rows ---- */

struct sample { /* a row's kernel for one value */
    int64_t value;
    const struct variant *variant;
};
static struct sample samples[NROWS][DECISION_MAX_VALUES];
static size_t nsamples[NROWS];

static const struct decision *decision_named(const char *name) {
    for (size_t i = 0; i < catalogue->n; i++)
        if (str_is(catalogue->decisions[i].name, name))
            return &catalogue->decisions[i];
    return NULL;
}

static bool is_listed(const char *values, int64_t value) {
    str rest = str_view(values ? values : ""), word;
    int64_t n;
    while (str_word(&rest, ' ', &word))
        if (str_to_i64(word, &n) && n == value)
            return true;
    return !values;
}

static void collect(struct build_pool *pool, size_t i) {
    const struct decision *d = decision_named(rows[i].decision);
    CHECKF(d, "%s", rows[i].decision);
    for (size_t k = 0; d && k < d->nvalues; k++) {
        if (!is_listed(rows[i].values, d->values[k]))
            continue;
        const struct variant *v = variant_of(pool, &rows[i], d->values[k]);
        CHECKF(v, "%s=%d: %s", rows[i].decision, (int)d->values[k], err.text);
        if (v)
            samples[i][nsamples[i]++] = (struct sample){d->values[k], v};
    }
}

static bool is_wanted(str want, int64_t value, int64_t got) {
    int64_t n;
    if (str_is(want, "+"))
        return got > 0;
    if (str_starts(want, S("x")))
        return str_to_i64(str_from(want, 1), &n) && got == n * value;
    return str_to_i64(want, &n) && got == n;
}

static void check_row(size_t i) {
    const struct row *r = &rows[i];
    str rest = str_view(r->want), word = S("");
    bool rises = str_is(rest, "rises"), falls = str_is(rest, "falls"), each = rest.p[0] == 'x';
    int64_t before = 0;
    for (size_t k = 0; k < nsamples[i]; k++) {
        const struct sample *s = &samples[i][k];
        if (!s->variant->built)
            continue;
        int64_t got = measure(s->variant, r->fact);
        bool ok = rises ? k == 0 || got > before : falls ? k == 0 || got < before : true;
        if (!rises && !falls) {
            if (each)
                word = str_view(r->want);
            else
                CHECKF(str_word(&rest, ' ', &word), "%s: fewer wanted than values", r->decision);
            ok = is_wanted(word, s->value, got);
        }
        CHECKF(ok, "%s=%d with [%s]: %s is %lld, wanted %s", r->decision, (int)s->value,
               r->strategy, r->fact, (long long)got, r->want);
        before = got;
    }
    CHECKF(rises || falls || each || !rest.n, "%s: more wanted than values", r->decision);
}

static void test_rows(void) {
    struct nvrtc_root root;
    if (!nvrtc_find(&root, &err) || !nvrtc_probe(&root, &err))
        SKIP("no NVRTC");
    struct loop *loop = loop_new(&err);
    struct build_pool_options o = {.jobs = 2};
    struct build_pool *pool = build_pool_new(loop, &root, &o, &err);
    CHECKF(pool, "%s", err.text);
    for (size_t i = 0; pool && i < NROWS; i++)
        collect(pool, i);
    while (open_builds && loop_step(loop, 1000, &err))
        continue;
    for (size_t i = 0; i < NROWS; i++)
        check_row(i);
    printf("# %zu kernels compiled\n", nvariants);
    build_pool_free(pool);
    loop_free(loop);
}

/* A row whose fact were the same for all values would prove nothing. */
static void test_rows_tell_values_apart(void) {
    for (size_t i = 0; i < NROWS; i++) {
        str rest = str_view(rows[i].want), first, word;
        bool differ = str_is(rest, "rises") || str_is(rest, "falls") || rest.p[0] == 'x';
        str_word(&rest, ' ', &first);
        while (str_word(&rest, ' ', &word))
            differ |= !str_eq(first, word);
        CHECKF(differ, "%s: %s", rows[i].decision, rows[i].want);
    }
}

/* But for what is asked for: a dialect shows in the headers of the source, and the golden case
 * input/dialect and the test expert-cute look there; its kernels need CUTLASS to be compiled. */
static void test_every_value_has_a_row(void) {
    for (size_t d = 0; d < catalogue->n; d++)
        for (size_t k = 0; !catalogue->decisions[d].asked && k < catalogue->decisions[d].nvalues;
             k++) {
            int64_t value = catalogue->decisions[d].values[k];
            size_t found = 0;
            for (size_t i = 0; i < NROWS; i++)
                found += str_is(catalogue->decisions[d].name, rows[i].decision) &&
                         is_listed(rows[i].values, value);
            CHECKF(found, "%.*s=%d", STR_ARG(catalogue->decisions[d].name), (int)value);
        }
}

/* ---- the aligner ---- */

static void take_aligned(void *ctx, const struct strategy *s, size_t n, str reason,
                         const struct err *e) {
    (void)reason;
    if (n && !e)
        *(struct strategy *)ctx = *s;
}

/* What stands between the strategy and the plan. */
static str head_of(str source) {
    str head = str_cut(source, 0, str_find(source, S("//!")));
    str line;
    head = str_from(head, str_find(head, S("// Strategy:")));
    str_line(&head, &line);
    return head;
}

/* The head gives a decision this value, or one that no strategy can have. */
static bool is_decided(str head, const struct decision *d, int64_t value) {
    str words = arena_printf(mem, " %.*s=", STR_ARG(d->name));
    size_t at = str_find(head, words);
    if (at == head.n)
        return false;
    int64_t decided = strtoll(head.p + at + words.n, NULL, 10);
    for (size_t i = 0; i < d->nvalues; i++)
        if (d->values[i] == decided)
            return decided == value;
    return true;
}

/* What the aligner reads off the compiled code is what the head says of it: it takes nothing back
 * that is there, and what it corrects the expert had to do otherwise. */
static void check_aligned(const struct variant *v) {
    struct record *record = record_of(v);
    struct strategy aligned = v->strategy;
    struct written w = {0};
    expert.code(expert.self, &v->brief, &v->strategy, on_code, &w);
    expert.align(expert.self, &v->brief, &v->strategy, &w.strategy, record, take_aligned, &aligned);
    for (size_t d = 0; d < catalogue->n; d++) {
        str name = catalogue->decisions[d].name;
        str head = head_of(v->source);
        bool same = aligned.value[d] == v->strategy.value[d];
        CHECKF(same || is_decided(head, &catalogue->decisions[d], aligned.value[d]),
               "%.*s=%d aligned to %d in\n%.*s", STR_ARG(name), (int)v->strategy.value[d],
               (int)aligned.value[d], STR_ARG(v->source));
    }
    record_free(record);
}

static void test_aligned(void) {
    if (!nvariants)
        SKIP("no kernels");
    for (size_t i = 0; i < nvariants; i++)
        if (variants[i].built)
            check_aligned(&variants[i]);
}

/* ---- nothing in silence ---- */

/* Two texts that differ in their line `// Strategy: …` alone. */
static bool is_same_code(str a, str b) {
    str x, y;
    bool more = true;
    while (more) {
        more = str_word(&a, '\n', &x);
        if (more != str_word(&b, '\n', &y))
            return false;
        if (more && !str_eq(x, y) && !str_starts(x, S("// Strategy:")))
            return false;
    }
    return true;
}

static const char *const grounds[] = {
    MAP("f32", "1048576"),
    MAP("bf16", "1000003"),
    SIGMOID,
    BROADCAST,
    SOFTMAX("4096", "1024"),
    SOFTMAX("512", "65536"),
    SOFTMAX("33", "257"),
    SUMS("f32", "4096", "1024"),
    SUMS("f16", "4096", "65536"),
    MIDDLE,
    TOTAL,
    SCAN("f32", "64", "65536"),
    SCAN("f16", "4", "1048576"),
    SCAN("f32", "4096", "1024"),
    SCAN("f32", "5", "333"),
    COLUMNS,
    POOL,
    DEPTHWISE,
    TF32("1024", "1024", "1024"),
    PRODUCT("1024", "1024", "1024"),
    TF32("1023", "1023", "1023"),
    PRODUCT("33", "65", "127"),
    TRIANGLE,
    GAPS,
    CONV,
    ATTENTION,
    NESTED("1048576", "64"),
    NESTED("64", "65536"),
    LOW_RANK,
};

/* `decision=` in the head, below the strategy itself. */
static bool says(str text, str decision) {
    str line, words = arena_printf(mem, " %.*s=", STR_ARG(decision));
    while (str_word(&text, '\n', &line) && str_starts(line, S("//")))
        if (!str_starts(line, S("// Strategy:")) && str_find(line, words) < line.n)
            return true;
    return false;
}

/* With all else as it is, another value is another kernel, or its head says what became of it. */
static void check_neighbours(const struct briefing *b, const struct strategy *s, int task) {
    str text = write_with(b, s);
    CHECKF(text.n, "task %d: %s", task, err.text);
    for (size_t d = 0; d < catalogue->n; d++)
        for (size_t k = 0; k < catalogue->decisions[d].nvalues; k++) {
            struct strategy other = *s;
            int64_t value = catalogue->decisions[d].values[k];
            other.value[d] = value;
            strategy_repair(catalogue, &b->ground, &other);
            if (s->value[d] == STRATEGY_UNSET || value == s->value[d] || other.value[d] != value)
                continue;
            str changed = write_with(b, &other);
            bool ok = !is_same_code(text, changed) || says(changed, catalogue->decisions[d].name) ||
                      says(text, catalogue->decisions[d].name);
            CHECKF(ok, "%s\n# %.*s=%d is as %d", grounds[task],
                   STR_ARG(catalogue->decisions[d].name), (int)value, (int)s->value[d]);
        }
}

/* The same of values that one of several steps has for itself. */
static void check_own_neighbours(const struct briefing *b, const struct strategy *s, int task) {
    str text = write_with(b, s);
    for (size_t step = 1; b->ground.nsteps > 1 && step <= b->ground.nsteps; step++)
        for (size_t d = 0; d < catalogue->n; d++)
            for (size_t k = 0; k < catalogue->decisions[d].nvalues; k++) {
                struct strategy other = *s;
                int64_t value = catalogue->decisions[d].values[k];
                if (strategy_value_in(s, step, d) == value ||
                    !strategy_put_own(catalogue, &b->ground, &other, step, d, value))
                    continue;
                str changed = write_with(b, &other);
                bool ok = !is_same_code(text, changed) ||
                          says(changed, catalogue->decisions[d].name) ||
                          says(text, catalogue->decisions[d].name);
                CHECKF(ok, "%s\n# %zu:%.*s=%d is as %d", grounds[task], step,
                       STR_ARG(catalogue->decisions[d].name), (int)value,
                       (int)strategy_value_in(s, step, d));
            }
}

static void take_first(void *ctx, const struct strategy *s, size_t n, str reason,
                       const struct err *e) {
    (void)reason;
    if (n && !e)
        *(struct strategy *)ctx = s[0];
}

static void test_nothing_in_silence(void) {
    for (size_t i = 0; i < sizeof grounds / sizeof *grounds; i++) {
        struct briefing b;
        struct strategy s;
        bool ok = brief(grounds[i], &b);
        CHECKF(ok, "task %d: %s", (int)i, err.text);
        if (!ok)
            continue;
        expert.plan(expert.self, &b, 2, rng_stream(1, S("plan")), take_first, &s);
        check_neighbours(&b, &s, (int)i);
        check_own_neighbours(&b, &s, (int)i);
        strategy_fallback(catalogue, &b.ground, &s);
        check_neighbours(&b, &s, (int)i);
    }
}

/* ---- what counts ---- */

/* Texts that are one candidate to a compiler. */
static bool is_twin(str a, str b) {
    str x, y;
    bool more_x = true, more_y = true;
    while (more_x && more_y) {
        while ((more_x = str_word(&a, '\n', &x)) && str_starts(x, S("// ")))
            continue;
        while ((more_y = str_word(&b, '\n', &y)) && str_starts(y, S("// ")))
            continue;
        if (more_x != more_y || (more_x && !str_eq(x, y)))
            return false;
    }
    return true;
}

/* What was written is the code of the aligned strategy, too, which has what the head decides where
 * there is one step; of several, each says what it did. */
static void check_written(const struct briefing *b, const struct strategy *s, int task) {
    struct record *nothing = record_new(VERDICT_ACCEPTED, S(""));
    struct strategy aligned = *s;
    struct written w = {0};
    expert.code(expert.self, b, s, on_code, &w);
    expert.align(expert.self, b, s, &w.strategy, nothing, take_aligned, &aligned);
    str asked = write_with(b, s), again = write_with(b, &aligned);
    CHECKF(is_twin(asked, again), "task %d:\n%.*s\nis not\n%.*s", task, STR_ARG(asked),
           STR_ARG(again));
    for (size_t d = 0; d < catalogue->n; d++) {
        const struct decision *decision = &catalogue->decisions[d];
        CHECKF(b->ground.nsteps > 1 || !says(head_of(asked), decision->name) ||
                   is_decided(head_of(asked), decision, aligned.value[d]),
               "%.*s=%d but\n%.*s", STR_ARG(decision->name), (int)aligned.value[d], STR_ARG(asked));
    }
    record_free(nothing);
}

static void test_aligned_is_the_same_code(void) {
    for (size_t i = 0; i < sizeof grounds / sizeof *grounds; i++) {
        struct briefing b;
        struct strategy s;
        bool ok = brief(grounds[i], &b);
        CHECKF(ok, "task %d: %s", (int)i, err.text);
        expert.plan(expert.self, &b, 2, rng_stream(1, S("plan")), take_first, &s);
        check_written(&b, &s, (int)i);
        for (uint64_t draw = 0; ok && draw < 8; draw++) {
            strategy_random(catalogue, &b.ground, rng_sub(rng_stream(2, S("draws")), draw), &s);
            check_written(&b, &s, (int)i);
            for (uint64_t more = 1; b.ground.nsteps > 1 && more <= 8; more++)
                strategy_mutate(catalogue, &b.ground, &s,
                                rng_sub(rng_stream(3, S("values of steps")), draw + 8 * more), &s);
            check_written(&b, &s, (int)i);
        }
    }
}

static const struct tap_case cases[] = {
    {"every value of every decision has a row", test_every_value_has_a_row},
    {"rows tell values apart", test_rows_tell_values_apart},
    {"decisions in the compiled code", test_rows},
    {"what the aligner reads off the code is what is there", test_aligned},
    {"no value is ignored in silence", test_nothing_in_silence},
    {"an aligned strategy is written as the same code", test_aligned_is_the_same_code},
};

/* The build pool starts this program again as its compiler. */
int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    return writing_main(cases, sizeof cases / sizeof *cases);
}
