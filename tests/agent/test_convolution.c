/* The family of convolutions: what it takes, what it reads off an index of the input, and what
 * becomes of decisions. What the kernels compute is verified by tests/expert. */
#include "family.h"

#include "agent/expert/convolution/convolution.h"

#define SIZES                                                                                      \
    "dim N = 8, C = 64, O = 96, H = 64, W = 80\nin x[N,C,H,W] : f32 ~ ones\nparam w[O,C,3,5] : "   \
    "f32 ~ ones\n"
#define FORWARD                                                                                    \
    SIZES "out y[N,O,H,W] : f32\ny[n,o,p,q] = sum(c,r,s) pad(x[n,c,p+r-1,q+s-2], 0) * "            \
          "w[o,c,r,s]\naccuracy tf32\n"
#define TURNED                                                                                     \
    SIZES "out y[N,O,H+4,W+12] : f32\ny[n,o,p,q] = sum(c,r,s) pad(x[n,c,p-2*r,q-3*s], 0) * "       \
          "w[o,c,r,s]\naccuracy tf32\n"
#define STRIDED                                                                                    \
    SIZES "out y[N,O,31,26] : f32\ny[n,o,p,q] = sum(c,r,s) pad(x[n,c,2*p+r,3*q+2*s-4], 0) * "      \
          "w[o,c,r,s]\naccuracy tf32\n"
#define SPREAD                                                                                     \
    SIZES "out y[N,O,2*H-1,3*W] : f32\ny[n,o,p,q] = sum(c,r,s | (p+1-r) % 2 == 0 && (q+2-s) % 3 "  \
          "== 0) pad(x[n,c,(p+1-r)//2,(q+2-s)//3], 0) * w[o,c,r,s]\naccuracy tf32\n"
#define GROUPS                                                                                     \
    "dim N = 4, C = 32, O = 64, H = 100\ndim I = C//4, J = O//4\nin x[N,C,H] : f32 ~ ones\n"       \
    "param w[O,I,3] : f32 ~ ones\nout y[N,O,H-2] : f32\n"                                          \
    "y[n,o,p] = sum(c,r) x[n,(o//J)*I+c,p+r] * w[o,c,r]\naccuracy tf32\n"
#define VOLUME                                                                                     \
    "dim N = 2, C = 16, O = 32, D = 9, H = 10, W = 11\nin x[N,C,D,H,W] : f16 ~ ones\n"             \
    "param w[O,C,3,3,3] : f16 ~ ones\nout y[N,O,D-2,H-2,W-2] : f16\n"                              \
    "y[n,o,z,p,q] = sum(c,t,r,s) x[n,c,z+t,p+r,q+s] * w[o,c,t,r,s]\naccuracy f16\n"

/* ---- claims ---- */

static const struct claim_case claims[] = {
    {"two axes", FORWARD, "x"},
    {"transposed", TURNED, "x"},
    {"groups", GROUPS, "x"},
    {"three axes", VOLUME, "x"},
    {"with what finishes it",
     SIZES "param b[O] : f32 ~ ones\nout y[N,O,H-2,W-4] : f32\ny[n,o,p,q] = maximum(b[o] + "
           "sum(c,r,s) x[n,c,p+r,q+s] * w[o,c,r,s], 0)\naccuracy tf32\n",
     "xx"},
    {"channels innermost in the input",
     "dim N = 8, C = 64, O = 96, L = 64\nin x[N,L,C] : f32 ~ ones\nparam w[3,C,O] : f32 ~ ones\n"
     "out y[N,O,L-2] : f32\ny[n,o,p] = sum(c,r) x[n,p+r,c] * w[r,c,o]\naccuracy tf32\n",
     "x"},
    {"not with channels innermost in the result",
     "dim N = 8, C = 64, O = 96, L = 64\nin x[N,L,C] : f32 ~ ones\nparam w[3,C,O] : f32 ~ ones\n"
     "out y[N,L-2,O] : f32\ny[n,p,o] = sum(c,r) x[n,p+r,c] * w[r,c,o]\naccuracy tf32\n",
     ""},
    {"strides", STRIDED, "x"},
    {"transposed with strides", SPREAD, "x"},
    {"not neighbours that are repeated",
     SIZES "out y[N,O,H-2,2*W-8] : f32\ny[n,o,p,q] = sum(c,r,s) x[n,c,p+r,(q+s)//2] * w[o,c,r,s]\n"
           "accuracy tf32\n",
     ""},
    {"not a stride that depends on a size",
     "dim N = 8, C = 64, O = 96, L = 64, T = 2\nin x[N,C,L] : f32 ~ ones\nparam w[O,C,3] : f32 ~ "
     "ones\nout y[N,O,(L-3)//T+1] : f32\ny[n,o,p] = sum(c,r) x[n,c,T*p+r] * w[o,c,r]\n"
     "accuracy tf32\n",
     ""},
    {"not a guard",
     SIZES "out y[N,O,H-2,W-4] : f32\ny[n,o,p,q] = sum(c,r,s | p + r < 20) x[n,c,p+r,q+s] * "
           "w[o,c,r,s]\naccuracy tf32\n",
     ""},
    {"not a pixel by itself",
     "dim N = 8, C = 64, O = 96, H = 64\nin x[N,C,H] : f32 ~ ones\nparam w[O,C] : f32 ~ ones\n"
     "out y[N,O,H] : f32\ny[n,o,p] = sum(c) x[n,c,p] * w[o,c]\naccuracy tf32\n",
     ""},
    {"not without channels",
     "dim N = 8, O = 96, H = 64\nin x[N,H] : f32 ~ ones\nparam w[O,3] : f32 ~ ones\n"
     "out y[N,O,H-2] : f32\ny[n,o,p] = sum(r) x[n,p+r] * w[o,r]\naccuracy tf32\n",
     ""},
};

static void test_claims(void) {
    check_claims(&family_convolution, claims, sizeof claims / sizeof *claims);
}

static void test_other_gpus(void) {
    struct form f;
    struct inst *in = bind(FORWARD);
    bool formed = in && form_make(in, true, mem, &f, &err);
    CHECKF(formed, "%s", err.text);
    for (int i = 0; formed && i < 2; i++) {
        struct briefing b = {.inst = in, .gpu = gpu_find(i ? S("h200") : S("rtx4090"))};
        bool done[TASK_MAX_STATEMENTS] = {false}, take[TASK_MAX_STATEMENTS] = {false};
        CHECKF(family_convolution.claim(&b, &f, done, 0, take) == (i == 1), "gpu %d", i);
    }
}

/* ---- the model ---- */

static const struct {
    const char *name, *text;
    size_t images, channels;
    int64_t steps[CONV_AXES], padded[CONV_AXES]; /* 0: no such axis */
} models[] = {
    {"two axes", FORWARD, 1, 1, {1, 1}, {66, 84}},
    {"transposed", TURNED, 1, 1, {-2, -3}, {72, 104}},
    {"groups", GROUPS, 1, 1, {1}, {100}},
    {"three axes", VOLUME, 1, 1, {1, 1, 1}, {9, 10, 11}},
    {"strides", STRIDED, 1, 1, {1, 2}, {32, 28}},
    {"transposed with strides", SPREAD, 1, 1, {-1, -1}, {65, 81}},
};

static void test_models(void) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct inst *in = bind(models[i].text);
        struct form f;
        struct contraction c;
        struct convolution v;
        bool ok = in && form_make(in, true, mem, &f, &err) && con_match_all(f.inst, mem, &c) &&
                  conv_match(&c, &v);
        CHECKF(ok, "%s: %s", models[i].name, err.text);
        if (!ok)
            continue;
        CHECKF(v.images.n == models[i].images && v.channels.n == models[i].channels, "%s",
               models[i].name);
        for (size_t a = 0; a < CONV_AXES; a++) {
            bool there = a < v.naxes;
            CHECKF((there ? v.axes[a].step : 0) == models[i].steps[a], "%s: axis %d",
                   models[i].name, (int)a);
            CHECKF((there ? con_value(f.inst, v.axes[a].padded) : 0) == models[i].padded[a],
                   "%s: axis %d", models[i].name, (int)a);
        }
    }
}

/* ---- text ---- */

#define DEEP                                                                                       \
    "dim N = 8, C = 1024, O = 96, L = 64\nin x[N,C,L] : f32 ~ ones\nparam w[O,C,5] : f32 ~ ones\n" \
    "out y[N,O,L-4] : f32\ny[n,o,p] = sum(c,r) x[n,c,p+r] * w[o,c,r]\naccuracy tf32\n"
#define EXACT                                                                                      \
    "dim N = 8, C = 64, O = 96, L = 64\nin x[N,C,L] : f32 ~ ones\nparam w[O,C,5] : f32 ~ ones\n"   \
    "out y[N,O,L-4] : f32\ny[n,o,p] = sum(c,r) x[n,c,p+r] * w[o,c,r]\n"
#define FAR                                                                                        \
    "dim N = 8, C = 64, O = 96, L = 64\nin x[N,C,L] : f32 ~ ones\nparam w[O,C,5] : f32 ~ ones\n"   \
    "out y[N,O,L+800] : f32\ny[n,o,p] = sum(c,r) pad(x[n,c,p-200*r], 0) * w[o,c,r]\n"              \
    "accuracy tf32\n"
#define GROUPS_OF_WARPS "tensor-path=2 tile-m=128 tile-n=256 stages=2"

static const struct text_case texts[] = {
    {"a segment for a line", FORWARD, GROUPS_OF_WARPS, "LINES = 3, TAPS = 5;", NULL},
    {"the filter once", FORWARD, GROUPS_OF_WARPS, "//! once launch pack_w<<<", NULL},
    {"reversed taps", TURNED, GROUPS_OF_WARPS, "(4 - tap) * 3", NULL},
    {"taps that share nothing", FAR, GROUPS_OF_WARPS, "LINES = 5, TAPS = 1;", NULL},
    {"long sums", DEEP, GROUPS_OF_WARPS, "float total[ROWS]", NULL},
    {"short sums", FORWARD, GROUPS_OF_WARPS, "//! require C <= 273", "float total[ROWS]"},
    {"few channels", GROUPS, GROUPS_OF_WARPS, "<= 8\n", NULL},
    {"two blocks an SM", FORWARD, "tensor-path=2 tile-m=64 tile-n=256 stages=2",
     "__launch_bounds__(160, 2)", NULL},
    {"a plane for each part", STRIDED, GROUPS_OF_WARPS, "(int)slab * 6 + plane_of(line)", "PHASES"},
    {"all phases of a line", SPREAD, GROUPS_OF_WARPS, "PHASES = 3;", "PARTS"},
    {"a phase of the others", SPREAD, GROUPS_OF_WARPS, "phase_p", NULL},
    {"16-bit operands", VOLUME, GROUPS_OF_WARPS, "wgmma_f16_256", "gemm_tf32"},
    {"another path", FORWARD, "tensor-path=1", "gathered: the strategy has no warp groups",
     "wgmma.mma_async"},
    {"class fp32", EXACT, GROUPS_OF_WARPS, "neither the accuracy class nor", "y_convolution"},
    {"CuTe", FORWARD, GROUPS_OF_WARPS " dialect=cute", "no writer of CuTe", "y_convolution"},
};

static void test_texts(void) {
    check_texts(texts, sizeof texts / sizeof *texts);
}

static const char *const drawn[] = {FORWARD, TURNED, STRIDED, SPREAD, GROUPS,
                                    VOLUME,  DEEP,   EXACT,   FAR};

static void test_draws(void) {
    check_draws(drawn, sizeof drawn / sizeof *drawn, 40, S("convolution"));
}

static const struct tap_case cases[] = {
    {"what the family takes", test_claims},
    {"GPUs without warp groups", test_other_gpus},
    {"axes of a convolution", test_models},
    {"what decisions become", test_texts},
    {"drawn strategies give plans that bind", test_draws},
};
FAMILY_CASES(cases)
