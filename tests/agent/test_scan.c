/* The scan family: which folds it takes, and that every decision of it is found in the text. What
 * the kernels compute is verified by tests/expert. */
#include "family.h"

/* ---- claims ---- */

#define MATRIX "dim B = 64, D = 1024\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\n"

static const struct claim_case claims[] = {
    {"up to here", MATRIX "y[i,j] = sum(k <= j) x[i,k]\n", "x"},
    {"before here", MATRIX "y[i,j] = max(k < j) x[i,k]\n", "x"},
    {"from here", MATRIX "y[i,j] = prod(j <= k < D) x[i,k]\n", "x"},
    {"behind here", MATRIX "y[i,j] = min(j < k < D) x[i,k]\n", "x"},
    {"down the columns", MATRIX "y[i,j] = mean(k <= i) x[k,j]\n", "x"},
    {"by a guard", MATRIX "y[i,j] = sum(k < D | k >= j) x[i,k]\n", "x"},
    {"with a guard on the data", MATRIX "y[i,j] = sum(k <= j | x[i,k] > 0) x[i,k]\n", "x"},
    {"not a mean of what data select", MATRIX "y[i,j] = mean(k <= j | x[i,k] > 0) x[i,k]\n", ""},
    {"not with a shift", MATRIX "y[i,j] = sum(k < j - 2) x[i,k]\n", ""},
    {"not from another place on", MATRIX "y[i,j] = sum(1 <= k < j) x[i,k]\n", ""},
    {"not up to another row's end", MATRIX "y[i,j] = sum(k <= i) x[i,k]\n", ""},
    {"not the whole row", MATRIX "y[i,j] = sum(k < D) x[i,k]\n", ""},
    {"places", "dim D = 8\nin x[D] : f32 ~ ones\nout y[D] : i32\ny[j] = argmax(k <= j) x[k]\n",
     "x"},
    {"a recurrence", MATRIX "y[i,j] = sum(s <= j) x[i,s] * prod(s < r <= j) sigmoid(x[i,r])\n",
     "x"},
    {"a recurrence from the end, down the columns",
     MATRIX "y[i,j] = sum(i <= s < B) 2 * (prod(i <= r < s) x[r,j]) * x[s,j]\n", "x"},
    {"not a recurrence whose decay stops elsewhere",
     MATRIX "y[i,j] = sum(s <= j) x[i,s] * prod(s < r < j) x[i,r]\n", ""},
    {"the same decay everywhere", MATRIX "y[i,j] = sum(s <= j) x[i,s] * pow(0.9, j - s)\n", "x"},
    {"not a decay of another distance", MATRIX "y[i,j] = sum(s <= j) x[i,s] * pow(0.9, 2*j - s)\n",
     ""},
    {"not a growth", MATRIX "y[i,j] = sum(s <= j) x[i,s] * pow(0.9, s - j)\n", ""},
    {"a running log-sum-exp, with its maximum",
     MATRIX "let m[i, j < D] = max(k <= j) x[i,k]\n"
            "y[i,j] = m[i,j] + log(sum(k <= j) exp(x[i,k] - m[i,j]))\n",
     "xxx"},
    {"not a sum of exponentials of pairs", MATRIX "y[i,j] = sum(k <= j) exp(x[i,k] * x[i,j])\n",
     ""},
    {"not where nobody says that segments are in order",
     MATRIX "in g[B,D] : i32 ~ randint(0, D)\ny[i,j] = sum(k <= j | k >= g[i,j]) x[i,k]\n", ""},
    {"not where segments begin at data beside their place",
     MATRIX "in g[B,D] : i32 ~ randint(0, D)\nlet s[i, j < D] : i32 = max(k <= j) g[i,k]\n"
            "y[i,j] = sum(k <= j | k >= s[i,j]) x[i,k]\n",
     "x-"},
    {"not in place", "dim D = 8\ninout x[D] : f32 ~ ones\nx[j] = sum(k <= j) x[k]\n", ""},
    {"maps of the result", MATRIX "y[i,j] = sqrt(1 + sum(k <= j) x[i,k]) * x[i,j]\n", "xx"},
    {"not maps of other places",
     MATRIX "let s[i, j < D] = sum(k <= j) x[i,k]\ny[i,j] = s[i,j] - s[i,D-1]\n", "x-"},
};

static void test_claims(void) {
    check_claims(&family_scan, claims, sizeof claims / sizeof *claims);
}

/* ---- text ---- */

#define ROWS(columns)                                                                              \
    "dim B = 64, D = " columns "\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : f32\n"               \
    "y[i,j] = sum(k <= j) x[i,k]\n"
#define REVERSED MATRIX "y[i,j] = sum(j <= k < D) x[i,k]\n"
#define COLUMNS  MATRIX "y[i,j] = max(k <= i) x[k,j]\n"
#define PRODUCTS MATRIX "y[i,j] = prod(k <= j) x[i,k]\n"
#define STEPS    MATRIX "y[i,j] = sum(s <= j) x[i,s] * prod(s < r <= j) x[i,r]\n"
#define PLACES                                                                                     \
    "dim B = 64, D = 1024\nin x[B,D] : f32 ~ normal(0,1)\nout y[B,D] : i32\n"                      \
    "y[i,j] = argmax(k <= j) x[i,k]\n"
#define COUNTS                                                                                     \
    "dim B = 64, D = 1024\nin x[B,D] : i32 ~ randint(0,9)\nout y[B,D] : i64\n"                     \
    "y[i,j] = sum(k < j) x[i,k]\n"

static const struct text_case texts[] = {
    {"a block a row", ROWS("1024"), "block=128", "<<<B, 128>>>", "parts"},
    {"a warp a row", ROWS("1024"), "block=128 scan-warp=1", "<<<ceil_div(B, 4), 128>>>",
     "__syncthreads"},
    {"width", ROWS("1024"), "vector-width=4", "x_now[item] = cp_load<4>(x", NULL},
    {"width needs rows of vectors", ROWS("1024"), "vector-width=4", "//! require D % 4 == 0", NULL},
    {"rows of no vectors", ROWS("1023"), "vector-width=4", "cp_load<1>", "% 4 == 0"},
    {"items", ROWS("1024"), "items=4 vector-width=2 block=64", "chunk += 512", NULL},
    {"vectors fit registers", ROWS("1024"), "items=8 vector-width=8 block=64", "chunk += 1024",
     NULL},
    {"prefetch", ROWS("1024"), "prefetch=1", "x_next[item] = cp_load", NULL},
    {"no prefetch", ROWS("1024"), "prefetch=0", "x_now[item] = cp_load", "x_next"},
    {"parts", ROWS("1024"), "scan-split=16 block=64", "<<<B*16, 64>>>(x, y", "atomicAdd"},
    {"totals of parts", ROWS("1024"), "scan-split=16 block=64", "scan_y_totals<<<B*16, 64>>>",
     NULL},
    {"look-back", ROWS("1024"), "scan-lookback=1", "cp_observe(", "parts"},
    {"look-back starts from zero", ROWS("1024"), "scan-lookback=1", "//! memset progress = 0",
     NULL},
    {"integers do not look back", COUNTS, "scan-lookback=1", "long long carry = 0LL", "cp_observe"},
    {"streaming", ROWS("1024"), "cache-hint=1", "__ldcs(", NULL},
    {"no streaming", ROWS("1024"), "cache-hint=0", "from[w]", "__ldcs("},
    {"from the end", REVERSED, "vector-width=4", "x + i * D + (D - 4 - position)", NULL},
    {"products in double", PRODUCTS, "", "double carry = 1.0", NULL},
    {"decays in double", STEPS, "", "double decay;", NULL},
    {"states look back", STEPS, "scan-lookback=1", "observe_state(", "parts"},
    {"states of several words", STEPS, "scan-lookback=1", ", 3] : i64", NULL},
    {"totals of steps are in order", STEPS, "scan-split=16 block=64",
     "totals_of_parts[blockIdx.x] = carry", NULL},
    {"totals of places in any order", PLACES, "scan-split=16 block=64",
     "totals_of_parts[blockIdx.x] = total", NULL},
    {"columns", COLUMNS, "block=64 vector-width=4", "<<<ceil_div(D, 256), 64>>>", "__shfl"},
    {"columns in parts", COLUMNS, "scan-split=4 block=64", "<<<[ceil_div(D, 64), 4], 64>>>", NULL},
    {"columns know no warps", COLUMNS, "scan-warp=1", "In stretches of 1024", "warp_scan"},
};

static void test_texts(void) {
    check_texts(texts, sizeof texts / sizeof *texts);
}

/* ---- any strategy ---- */

static const char *const tasks[] = {ROWS("1000"), ROWS("300000"), REVERSED, COLUMNS,
                                    PRODUCTS,     COUNTS,         STEPS,    PLACES};

static void test_any_strategy(void) {
    check_draws(tasks, sizeof tasks / sizeof *tasks, 100, S("scan"));
}

static const struct tap_case cases[] = {
    {"claims", test_claims},
    {"decisions in the text", test_texts},
    {"any strategy", test_any_strategy},
};
FAMILY_CASES(cases)
