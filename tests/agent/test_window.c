/* The window family: which folds it takes, and that every decision of it is found in the text. What
 * the kernels compute is verified by tests/expert. */
#include "family.h"

/* ---- claims ---- */

#define PLANE "dim N = 4, H = 64, W = 64\nin x[N,H,W] : f32 ~ normal(0,1)\n"
#define SAME  PLANE "out y[N,H,W] : f32\n"

static const struct claim_case claims[] = {
    {"largest of 3x3", SAME "y[n,p,q] = max(r < 3, s < 3) pad(x[n,p+r-1,q+s-1], -inf)\n", "x"},
    {"mean of windows side by side",
     PLANE "out y[N,H//4,W//4] : f32\ny[n,p,q] = mean(r < 4, s < 4) x[n,4*p+r,4*q+s]\n", "x"},
    {"one axis, dilated", SAME "y[n,p,q] = min(r < 3) pad(x[n,p,q+2*r-2], inf)\n", "x"},
    {"depthwise",
     SAME "param w[N,3,3] : f32 ~ ones\n"
          "y[n,p,q] = sum(r,s) pad(x[n,p+r-1,q+s-1], 0) * w[n,r,s]\n",
     "x"},
    {"with a guard", SAME "y[n,p,q] = mean(r < 3 | p+r-1 >= 0 && p+r-1 < H) x[n,p+r-1,q]\n", "x"},
    {"not the let that it pads",
     SAME
     "y[n,p,q] = sqrt(sum(r < 3) pad(abs_x[n,p+r-1,q], 0))\nlet abs_x[n,h,w] = abs(x[n,h,w])\n",
     ""},
    {"a map of the result", SAME "y[n,p,q] = exp(sum(r < 3) pad(x[n,p+r-1,q], 0))\n", "xx"},
    {"not a convolution over channels",
     "dim N = 2, C = 8, L = 64\nin x[N,C,L] : f32 ~ ones\nparam w[C,C,3] : f32 ~ ones\n"
     "out y[N,C,L] : f32\ny[n,o,l] = sum(c,r) pad(x[n,c,l+r-1], 0) * w[o,c,r]\n",
     ""},
    {"not a whole row", PLANE "out y[N,H] : f32\ny[n,p] = max(q) x[n,p,q]\n", ""},
    {"a long filter along the innermost axis",
     "dim L = 4096, K = 200\nin x[L] : f32 ~ ones\nparam h[K] : f32 ~ ones\nout y[L] : f32\n"
     "y[l] = sum(k) pad(x[l+k-9], 0)*h[k]\n",
     "x"},
    {"not along another one",
     "dim L = 4096, K = 200, M = 32\nin x[L+K,M] : f32 ~ ones\nout y[L,M] : f32\n"
     "y[l,m] = max(k < K) x[l+k,m]\n",
     ""},
    {"not a longer window",
     "dim L = 4096, K = 3000\nin x[L+K] : f32 ~ ones\nout y[L] : f32\ny[l] = sum(k < K) x[l+k]\n",
     ""},
    {"a window that reads backwards",
     "dim L = 40\nin x[L] : f32 ~ ones\nout y[L] : f32\ny[l] = sum(k < 3) pad(x[l-k], 0)\n", "x"},
    {"not places of extremes",
     "dim L = 40\nin x[L+2] : f32 ~ ones\nout y[L] : i32\ny[l] = argmax(k < 3) x[l+k]\n", ""},
    {"not a band of a matrix",
     "dim L = 40\nin x[L,L+2] : f32 ~ ones\nout y[L] : f32\ny[l] = sum(k < 3) x[l,l+k]\n", ""},
    {"not in place", "dim L = 40\ninout x[L] : f32 ~ ones\nx[l] = max(k < 3) pad(x[l+k], 0)\n", ""},
};

static void test_claims(void) {
    check_claims(&family_window, claims, sizeof claims / sizeof *claims);
}

/* ---- text ---- */

#define BYTES                                                                                      \
    "dim N = 4, H = 20, W = 22\nin x[N,H,W] : u8 ~ randint(0, 200)\nout y[N,H,W] : u8\n"           \
    "y[n,p,q] = max(r < 3, s < 3) pad(x[n,p+r-1,q+s-1], 0)\n"
#define POOL(width)                                                                                \
    "dim N = 4, H = 64, W = " width "\nin x[N,H,W] : f32 ~ normal(0,1)\nout y[N,H,W] : f32\n"      \
    "y[n,p,q] = max(r < 3, s < 3) pad(x[n,p+r-1,q+s-1], -inf)\n"
#define LINE                                                                                       \
    "dim C = 4, L = 4096\nin x[C,L] : f32 ~ normal(0,1)\nout y[C,L] : f32\n"                       \
    "y[c,l] = mean(r < 8) pad(x[c,l+r-4], 0)\n"
#define DEPTHWISE                                                                                  \
    "dim C = 4, H = 64, W = 64, R = 3\nin x[C,H,W] : f32 ~ normal(0,1)\n"                          \
    "param w[C,R,R] : f32 ~ ones\nout y[C,H-R+1,W-R+1] : f32\n"                                    \
    "y[c,p,q] = sum(r,s) x[c,p+r,q+s] * w[c,r,s]\n"
#define LARGE                                                                                      \
    "dim N = 4, H = 640, W = 640\nin x[N,H,W] : f32 ~ normal(0,1)\n"                               \
    "out y[N,H//20,W//20] : f32\ny[n,p,q] = mean(r < 20, s < 20) x[n,20*p+r,20*q+s]\n"

static const struct text_case texts[] = {
    {"one result a thread", POOL("64"), "items=1 tile-w=64 block=256",
     "<<<ceil_div(W, 64)*ceil_div(H, 4)*N, 256>>>", "acc["},
    {"results that share rows", POOL("64"), "items=4 tile-w=64 block=256", "input_row < 6", NULL},
    {"rows folded once", POOL("64"), "items=4 separable=1", "line = cp_maximum(line, x_tap)", NULL},
    {"rows folded for each result", POOL("64"), "items=4 separable=0",
     "acc[result] = cp_maximum(acc[result], x_tap)", "float line"},
    {"weights are not folded once", DEPTHWISE, "items=4 separable=1",
     "acc[result] = acc[result] + x_tap * w_kept[reach][s]", "float line"},
    {"weights are kept", DEPTHWISE, "items=1", "float w_kept[3][3];", NULL},
    {"sizes of windows are fixed", DEPTHWISE, "", "//! require R == 3", NULL},
    {"no tile", POOL("64"), "halo=0", "x_inside", "__shared__"},
    {"a tile", POOL("64"), "halo=1 block=256 tile-w=64", "extern __shared__", "x_inside"},
    {"a tile in vectors", POOL("64"), "halo=1 vector-width=4", "cp_copy_async<16>", NULL},
    {"vectors need aligned rows", POOL("64"), "halo=1 vector-width=4", "//! require W % 4 == 0",
     NULL},
    {"rows of no vectors", POOL("63"), "halo=1 vector-width=4", "cp_copy_async<4>", "% 4 == 0"},
    {"a tile that fits", LARGE, "halo=1 block=1024 tile-w=256 items=8", "__shared__", NULL},
    {"a width that fits the row", POOL("96"), "tile-w=256 block=256 items=1", "% 32;", NULL},
    {"a line of results", LINE, "items=4 block=128", "<<<ceil_div(L, 512)*C, 128>>>", NULL},
    {"a mean divides once", LINE, "", "acc / 8.0f", NULL},
    {"bytes in pairs, into shared memory", BYTES, "halo=1 vector-width=2 cache-hint=1",
     "*reinterpret_cast<const unsigned short *>(x", "cp_store"},
    {"streaming", POOL("64"), "cache-hint=1", "__stcs(y", NULL},
};

static void test_texts(void) {
    check_texts(texts, sizeof texts / sizeof *texts);
}

/* ---- any strategy ---- */

static const char *const tasks[] = {POOL("64"), POOL("61"), LINE, DEPTHWISE, LARGE};

static void test_any_strategy(void) {
    check_draws(tasks, sizeof tasks / sizeof *tasks, 100, S("window"));
}

static const struct tap_case cases[] = {
    {"claims", test_claims},
    {"decisions in the text", test_texts},
    {"any strategy", test_any_strategy},
};
FAMILY_CASES(cases)
