/* The row family: which statements it takes together, and that every decision of it is found in the
 * text. What the kernels compute is verified by tests/expert. */
#include "family.h"

/* ---- claims ---- */

#define MATRIX "dim B = 4096, D = 1024\nin x[B,D] : f32 ~ normal(0,1)\n"

static const struct claim_case claims[] = {
    {"softmax",
     MATRIX "out y[B,D] : f32\nlet m[i] = max(j) x[i,j]\n"
            "let s[i] = sum(j) exp(x[i,j] - m[i])\ny[i,j] = exp(x[i,j] - m[i]) / s[i]\n",
     "xxx"},
    {"a map of a row", MATRIX "out y[B] : f32\ny[i] = sqrt(sum(j) x[i,j])\n", "xx"},
    {"folds side by side",
     MATRIX "out a[B] : f32\nout b[B] : i64\na[i] = sum(j) x[i,j]\nb[i] = argmax(j) x[i,j]\n",
     "xx"},
    {"not over another axis",
     MATRIX "out a[B] : f32\nout b[D] : f32\na[i] = sum(j) x[i,j]\nb[j] = sum(i) x[i,j]\n", "x-"},
    {"not of another row",
     MATRIX "out y[B,D] : f32\nlet m[i] = max(j) x[i,j]\ny[i,j] = x[i,j] - m[B-1-i]\n", "x-"},
    {"a map beside one that reads a result",
     MATRIX "out h[B,D] : f32\nout y[B,D] : f32\nlet m[i] = max(j) x[i,j]\nh[i,j] = x[i,j] + 1\n"
            "y[i,j] = x[i,j] - m[i]\n",
     "xxx"},
    {"groups of channels",
     "dim N = 512, C = 64, W = 100, K = C//8\nin x[N,C,W] : f32 ~ ones\n"
     "out y[N,C,W] : f32\nlet m[n, g < 8] = mean(k < K, w) x[n,g*K+k,w]\n"
     "y[n,c,w] = x[n,c,w] - m[n,c//K]\n",
     "xx"},
    {"a few long rows leave their map to others",
     "dim B = 4, D = 10000000\nin x[B,D] : f32 ~ ones\nout y[B,D] : f32\n"
     "let m[i] = max(j) x[i,j]\ny[i,j] = x[i,j] - m[i]\n",
     "x-"},
    {"a loss of rows: two spaces",
     MATRIX "out l : f32\nlet s[i] = sum(j) x[i,j]*x[i,j]\nl = mean(i) sqrt(s[i])\n", "x-"},
    {"a matrix times a vector",
     MATRIX "in w[D] : f32 ~ ones\nout y[B] : f32\ny[i] = sum(j) x[i,j] * w[j]\n", "x"},
    {"not a product of matrices",
     MATRIX "in w[D,B] : f32 ~ ones\nout y[B,B] : f32\ny[i,k] = sum(j) x[i,j] * w[j,k]\n", ""},
    {"not a scan", MATRIX "out y[B,D] : f32\ny[i,j] = sum(k <= j) x[i,k]\n", ""},
    {"not a window",
     "dim N = 100\nin x[2*N] : f32 ~ ones\nout y[N] : f32\n"
     "y[i] = max(r < 2) x[2*i + r]\n",
     ""},
    {"rows that end where they say",
     "dim N = 64\nin x[N,N] : f32 ~ ones\nout y[N] : f32\n"
     "y[i] = sum(j <= i) x[i,j]*x[i,j]\n",
     "x"},
    {"in place",
     "dim B = 4096, D = 64\ninout x[B,D] : f32 ~ ones\nlet s[i] = sum(j) x[i,j]\n"
     "x[i,j] = x[i,j] - s[i]\n",
     "xx"},
};

static void test_claims(void) {
    check_claims(&family_rows, claims, sizeof claims / sizeof *claims);
}

/* ---- text ---- */

#define SOFTMAX(columns)                                                                           \
    "dim B = 2048, D = " columns "\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\n"             \
    "let m[i] = max(j) x[i,j]\nlet s[i] = sum(j) exp(x[i,j] - m[i])\n"                             \
    "y[i,j] = exp(x[i,j] - m[i]) / s[i]\n"
#define MIDDLE                                                                                     \
    "dim B = 64, M = 200, N = 300\nin x[B,M,N] : f32 ~ normal(0,1)\nout y[B,N] : f32\n"            \
    "y[b,n] = sum(m) x[b,m,n]\n"
#define LOSS "dim N = 1000000\nin x[N] : f32 ~ normal(0,1)\nout y : f32\ny = mean(i) x[i]*x[i]\n"

static const struct text_case texts[] = {
    {"lanes of a warp", SOFTMAX("1024"), "row-threads=8 block=128", "kTeam = 8", "__syncthreads"},
    {"rows of a block of warps", SOFTMAX("1024"), "row-threads=8 block=128",
     "<<<ceil_div(B, 16), 128>>>", NULL},
    {"a block", SOFTMAX("1024"), "row-threads=512", "<<<B, 512>>>", "kCluster"},
    {"a cluster", SOFTMAX("1024"), "row-threads=128 row-cluster=4", "<<<B*4, 128, cluster=4>>>",
     NULL},
    {"width", SOFTMAX("1024"), "vector-width=4", "cp_load<kVec>(x_row + col)", "cp_load_edge"},
    {"width needs rows of packs", SOFTMAX("1024"), "vector-width=4", "//! require D % 4 == 0",
     NULL},
    {"width of rows that begin anywhere", SOFTMAX("1023"), "vector-width=4", "cp_load_edge<kVec>",
     "% 4 == 0"},
    {"single elements", SOFTMAX("1024"), "vector-width=1", "x_row[col]", "cp_load"},
    {"items", SOFTMAX("1024"), "items=8", "kItems = 8", NULL},
    {"nothing kept", SOFTMAX("1024"), "row-cache=0 row-threads=128", "at += kTeam", "kept"},
    {"registers", SOFTMAX("1024"), "row-cache=1 row-threads=128", "//! require D <= 1024",
     "at += kTeam"},
    {"shared memory", SOFTMAX("1024"), "row-cache=2 row-threads=128", "cp_row_memory", NULL},
    {"rows too long for a block take a cluster", SOFTMAX("393216"), "row-cache=2 row-threads=512",
     "cluster=8", NULL},
    {"rows too long for registers take shared memory", SOFTMAX("40000"),
     "row-cache=1 row-threads=512", "cp_row_memory", NULL},
    {"online", SOFTMAX("1024"), "row-online=1", "m_sum * expf(m - base)", "part2"},
    {"two passes", SOFTMAX("1024"), "row-online=0", "t_part2", "m_sum"},
    {"shuffles", SOFTMAX("1024"), "row-threads=128 reduce-kind=1", "cp_merge_block", "merge_tree"},
    {"a tree", SOFTMAX("1024"), "row-threads=128 reduce-kind=0", "cp_merge_tree", "merge_block"},
    {"streaming", SOFTMAX("1024"), "cache-hint=1 vector-width=4 row-cache=1", "__ldcs(",
     "cp_reload"},
    {"read again", SOFTMAX("1024"), "cache-hint=1 vector-width=4 row-cache=0", "cp_reload<kVec>(x",
     "__ldcs("},
    {"no streaming", SOFTMAX("1024"), "cache-hint=0 vector-width=4", "uint4", "__ldcs("},
    {"split", LOSS, "row-split=64 row-threads=256", "_parts<<<[1, 64], 256>>>", NULL},
    {"not split", LOSS, "row-split=1 row-threads=256", "<<<1, 256>>>", "_parts"},
    {"chains stay short", "dim N = 500000000\nin x[N] : f32 ~ ones\nout y : f32\ny = sum(i) x[i]\n",
     "row-split=1 row-threads=32 vector-width=1", "_parts<<<", NULL},
    {"columns far apart", MIDDLE, "row-threads=4 block=256", "kLanes = 64", NULL},
    {"columns far apart, width", MIDDLE, "row-threads=4 vector-width=4", "//! require N % 4 == 0",
     NULL},
    {"columns far apart, split", MIDDLE, "row-split=4", "_parts<<<", "atomicAdd"},
};

static void test_texts(void) {
    check_texts(texts, sizeof texts / sizeof *texts);
}

/* ---- any strategy ---- */

static const char *const tasks[] = {
    SOFTMAX("1000"),
    SOFTMAX("300000"),
    MIDDLE,
    LOSS,
    "dim N = 16, C = 24, H = 9, W = 12\nin x[N,C,H,W] : bf16 ~ normal(0,1)\nout y[N,C,H,W] : bf16\n"
    "let u[c] = mean(n,h,w) x[n,c,h,w]\nlet v[c] = mean(n,h,w) pow(x[n,c,h,w] - u[c], 2)\n"
    "y[n,c,h,w] = (x[n,c,h,w] - u[c]) * rsqrt(v[c] + 1e-5)\n",
    "dim B = 70, D = 333\nin x[B,D] : i32 ~ randint(0,9)\nin k[B,D] : bool ~ bernoulli(0.5)\n"
    "out a[B] : i64\nout c[B] : f32\na[i] = argmin(j | k[i,j]) x[i,j]\nc[i] = mean(j | k[i,j]) "
    "x[i,j]\n",
};

static void test_any_strategy(void) {
    check_draws(tasks, sizeof tasks / sizeof *tasks, 100, S("rows"));
}

static const struct tap_case cases[] = {
    {"claims", test_claims},
    {"decisions in the text", test_texts},
    {"any strategy", test_any_strategy},
};
FAMILY_CASES(cases)
