/* The family of matrix products: what it takes, how operands are recognised, and that every
 * decision of it is found in the text. What the kernels compute is verified by tests/expert. */
#include "family.h"

#include "agent/expert/contraction/contraction.h"

#define PRODUCT                                                                                    \
    "dim M = 256, N = 512, K = 1024\nin a[M,K] : f32 ~ normal(0,1)\nin b[K,N] : f32 ~ "            \
    "normal(0,1)\nout c[M,N] : f32\n"
#define CONV                                                                                       \
    "dim N = 8, C = 16, O = 64, H = 64, W = 64, R = 3, S = 3\ndim P = H + 2 - R + 1, Q = W + 2 "   \
    "- S + 1\nin x[N,C,H,W] : f32 ~ ones\nparam w[O,C,R,S] : f32 ~ ones\nout y[N,O,P,Q] : f32\n"   \
    "y[n,o,p,q] = sum(c,r,s) pad(x[n,c,p+r-1,q+s-1], 0) * w[o,c,r,s]\naccuracy tf32\n"
#define GROUPED                                                                                    \
    "dim N = 4, C = 32, O = 64, H = 32, R = 3\ndim I = C//4, J = O//4, P = H - R + 1\n"            \
    "in x[N,C,H] : f32 ~ ones\nparam w[O,I,R] : f32 ~ ones\nout y[N,O,P] : f32\n"                  \
    "y[n,o,p] = sum(c,r) x[n,(o//J)*I+c,p+r] * w[o,c,r]\naccuracy tf32\n"
#define GAPS                                                                                       \
    "dim N = 4, C = 16, O = 32, L = 512, R = 3\ndim P = 2*(L - 1) + R - 2\nin x[N,C,L] : f32 ~ "   \
    "ones\nparam w[C,O,R] : f32 ~ ones\nout y[N,O,P] : f32\ny[n,o,p] = sum(c,r | (p+1-r) % 2 "     \
    "== 0) pad(x[n,c,(p+1-r)//2], 0) * w[c,o,r]\naccuracy tf32\n"
#define HALVES                                                                                     \
    "dim M = 512, N = 512, K = 1024\nin x[M,K] : bf16 ~ normal(0,1)\nparam w[N,K] : bf16 ~ "       \
    "normal(0,1)\nparam v[N,K] : bf16 ~ normal(0,1)\nout y[M,N] : bf16\n"
#define GATED                                                                                      \
    HALVES "let g[i,j] = sum(k) x[i,k]*w[j,k]\nlet u[i,j] = sum(k) x[i,k]*v[j,k]\n"                \
           "y[i,j] = g[i,j]*sigmoid(g[i,j])*u[i,j]\naccuracy bf16\n"

/* ---- claims ---- */

static const struct claim_case claims[] = {
    {"a product", PRODUCT "c[i,j] = sum(k) a[i,k]*b[k,j]\n", "x"},
    {"with what finishes it", PRODUCT "c[i,j] = maximum(2*(sum(k) a[i,k]*b[k,j]) + 1, 0)\n", "xx"},
    {"two products and their gate", GATED, "xxx"},
    {"a window", CONV, "x"},
    {"groups", GROUPED, "x"},
    {"a triangle", PRODUCT "c[i,j] = sum(i <= k <= j) a[i,k]*b[k,j]\n", "x"},
    {"a mean", PRODUCT "c[i,j] = mean(k) a[i,k]*b[k,j]\n", "x"},
    {"not a map that reads another place",
     "dim N = 64\nin a[N,N] : f32 ~ ones\nout y[N,N] : f32\nlet t[i,j] = sum(k) a[i,k]*a[k,j]\n"
     "y[i,j] = t[j,i]\n",
     "x-"},
    {"not into what is read",
     "dim N = 64\ninout a[N,N] : f32 ~ ones\nin b[N,N] : f32 ~ ones\na[i,j] = a[i,j] + sum(k) "
     "a[i,k]*b[k,j]\n",
     "x-"},
    {"not a row times a vector",
     "dim N = 64, K = 64\nin a[N,K] : f32 ~ ones\nin b[K] : f32 ~ ones\nout y[N] : f32\n"
     "y[i] = sum(k) a[i,k]*b[k]\n",
     ""},
    {"not channels by themselves",
     "dim C = 64, H = 64\nin x[C,H] : f32 ~ ones\nparam w[C,3] : f32 ~ ones\nout y[C,H-2] : f32\n"
     "y[c,p] = sum(r) x[c,p+r]*w[c,r]\n",
     ""},
    {"not a condition that neither operand knows",
     PRODUCT "c[i,j] = sum(k | i + j < k) a[i,k]*b[k,j]\n", ""},
    {"not integers",
     "dim N = 64\nin a[N,N] : i8 ~ randint(0,9)\nin b[N,N] : i8 ~ randint(0,9)\nout y[N,N] : i32\n"
     "y[i,j] = sum(k) a[i,k]*b[k,j]\n",
     ""},
    {"not a maximum", PRODUCT "c[i,j] = max(k) a[i,k]*b[k,j]\n", ""},
    {"not doubles",
     "dim N = 64\nin a[N,N] : f64 ~ ones\nin b[N,N] : f32 ~ ones\nout y[N,N] : f32\n"
     "y[i,j] = sum(k) a[i,k]*b[k,j]\n",
     ""},
};

static void test_claims(void) {
    check_claims(&family_contraction, claims, sizeof claims / sizeof *claims);
}

/* ---- the model ---- */

struct model_case {
    const char *name, *text;
    size_t batch, m, n, k; /* variables of each group */
    bool m_dense, n_dense;
};
static const struct model_case models[] = {
    {"rows and columns", PRODUCT "c[i,j] = sum(k) a[i,k]*b[k,j]\n", 0, 1, 1, 1, true, true},
    {"rows of two indices",
     "dim A = 8, B = 9, K = 64, N = 32\nin a[A,B,K] : f32 ~ ones\nin b[K,N] : f32 ~ ones\n"
     "out c[A,B,N] : f32\nc[x,y,j] = sum(k) a[x,y,k]*b[k,j]\n",
     0, 2, 1, 1, true, true},
    {"batched",
     "dim B = 4, N = 64\nin a[B,N,N] : f32 ~ ones\nin b[B,N,N] : f32 ~ ones\n"
     "out c[B,N,N] : f32\nc[h,i,j] = sum(k) a[h,i,k]*b[h,k,j]\n",
     1, 1, 1, 1, true, true},
    {"two summed",
     "dim A = 8, B = 9, N = 64\nin a[N,A,B] : f32 ~ ones\nin b[N,A,B] : f32 ~ ones\n"
     "out c[N,N] : f32\nc[i,j] = sum(x,y) a[i,x,y]*b[j,x,y]\n",
     0, 1, 1, 2, true, true},
    {"images are a batch", CONV, 1, 1, 2, 3, true, false},
    {"groups are a batch", GROUPED, 1, 1, 2, 2, true, false},
};

static void test_models(void) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model_case *c = &models[i];
        struct contraction x;
        struct inst *in = bind(c->text);
        bool ok = in && con_match(in, &in->task->statements[0], mem, &x);
        CHECKF(ok, "%s", c->name);
        if (!ok)
            continue;
        con_lay_out(&x);
        CHECKF(x.group[CON_BATCH].n == c->batch, "%s: batch", c->name);
        CHECKF(x.group[CON_M].n == c->m, "%s: m", c->name);
        CHECKF(x.group[CON_N].n == c->n, "%s: n", c->name);
        CHECKF(x.group[CON_K].n == c->k, "%s: k", c->name);
        const struct con_operand *m = &x.operands[x.folds[0].operand[0]];
        const struct con_operand *n = &x.operands[x.folds[0].operand[1]];
        CHECKF(m->dense == c->m_dense && n->dense == c->n_dense, "%s: dense", c->name);
    }
}

static void test_assumed_zeros(void) {
    struct contraction x;
    struct inst *in = bind("dim N = 64\nin a[N,N] : f32 ~ ones\nin b[N,N] : f32 ~ ones\n"
                           "out c[N,N] : f32\nassume a[i,j] == 0 | i > j\n"
                           "c[i,j] = sum(i <= k <= j) a[i,k]*b[k,j]\n");
    CHECK(in && con_match(in, &in->task->statements[0], mem, &x));
    CHECK(x.k_lo && x.k_hi);
    CHECK(x.operands[x.folds[0].operand[0]].nconditions == 0); /* k < i: a is zero */
    CHECK(x.operands[x.folds[0].operand[1]].nconditions == 1);
}

/* An operand that would be read outside its tensor has the condition too. */
static void test_conditions(void) {
    struct contraction x;
    struct inst *in = bind("dim H = 8, L = 64, E = 16\nin p[H,L,L] : f32 ~ ones\n"
                           "in v[L,E] : f32 ~ ones\nout y[H,L,E] : f32\n"
                           "y[h,i,e] = sum(r < 8 | i + r - 7 >= 0) p[h,i,i+r-7]*v[i+r-7,e]\n");
    CHECK(in && con_match(in, &in->task->statements[0], mem, &x));
    CHECK(x.operands[0].nconditions == 1 && x.operands[1].nconditions == 1);
}

/* ---- text ---- */

#define C      PRODUCT "c[i,j] = sum(k) a[i,k]*b[k,j]\n"
#define C_TF32 C "accuracy tf32\n"
#define LINEAR HALVES "y[i,j] = sum(k) x[i,k]*w[j,k] + sum(k) x[i,k]*v[j,k]\naccuracy bf16\n"
#define ODD                                                                                        \
    "dim M = 33, N = 65, K = 127\nin a[M,K] : f32 ~ ones\nin b[K,N] : f32 ~ ones\n"                \
    "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k]*b[k,j]\n"
#define WEIGHTS                                                                                    \
    "dim M = 33, N = 65, K = 127\nin a[M,K] : f32 ~ ones\nparam b[K,N] : f32 ~ ones\n"             \
    "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k]*b[k,j]\n"
#define LONG                                                                                       \
    "dim M = 64, N = 64, K = 65536\nin a[M,K] : bf16 ~ ones\nin b[N,K] : bf16 ~ ones\n"            \
    "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k]*b[j,k]\naccuracy bf16\n"

#define TWINS                                                                                      \
    "dim M = 256, N = 256, O = 128, K = 256\nin a[M,K] : f32 ~ ones\nin b[K,N] : f32 ~ ones\n"     \
    "in d[K,O] : f32 ~ ones\nout c[M,N] : f32\nout e[M,O] : f32\n"                                 \
    "c[i,j] = sum(k) a[i,k]*b[k,j]\ne[i,j] = sum(k) a[i,k]*d[k,j]\n"

#define MIXED                                                                                      \
    "dim M = 256, N = 128, K = 64\nin a[M,K] : f32 ~ ones\nin b[N,K] : f16 ~ ones\n"               \
    "out c[M,N] : f32\nc[i,j] = sum(k) a[i,k]*b[j,k]\naccuracy tf32\n"
#define AVERAGE(of)                                                                                \
    "dim M = 256, N = 128, K = 64\nin a[M,K] : f32 ~ ones\nin b[N,K] : f32 ~ ones\n"               \
    "out c[N] : f32\nlet s[i,j] = sum(k) a[i,k]*b[j,k]\nc[j] = " of "\naccuracy tf32\n"

static const struct text_case texts[] = {
    {"wgmma copies what has another type", MIXED, "tensor-path=2", "pack_b<<<", "tiled(b"},
    {"what is only averaged is not rounded", AVERAGE("mean(i) silu(s[i,j])"), "tensor-path=1",
     "gemm_3xtf32<Tiles>", NULL},
    {"what is compared as well is", AVERAGE("(mean(i) s[i,j]) - (max(i) s[i,j])"), "tensor-path=1",
     "cvt.rna.tf32", "gemm_3xtf32"},
    {"fp32 multiply-adds", C, "tensor-path=0", "fmaf(", "mma."},
    {"class fp32 splits", C, "tensor-path=1", "gemm_3xtf32<Tiles>", NULL},
    {"class fp32 promotes", C, "tensor-path=1 tile-k=32", "PROMOTE = 1;", NULL},
    {"class fp32 by wgmma, in three parts", C, "tensor-path=2", "k16.f32.bf16.bf16", "mma.sync"},
    {"class fp32 by wgmma, in two f16 parts", C, "tensor-path=2 split-parts=2", "k16.f32.f16.f16",
     "tf32"},
    {"and in three where f16 does not hold a tile", C, "tensor-path=2 split-parts=2",
     "//! launch widen_b<<<", NULL},
    {"f16 parts of a parameter are made once", WEIGHTS, "tensor-path=2 split-parts=2",
     "//! once launch pack_b<<<", "//! once launch widen_"},
    {"class tf32 rounds", C_TF32, "tensor-path=1", "cvt.rna.tf32", "gemm_3xtf32"},
    {"class tf32 by wgmma", C_TF32, "tensor-path=2", "m64n64k8.f32.tf32.tf32", "mma.sync"},
    {"wgmma reads rounded rows", C_TF32, "tensor-path=2", "pack_b<<<", NULL},
    {"bf16", LINEAR, "tensor-path=1", "m16n8k16.row.col.f32.bf16", "tf32"},
    {"bf16 by wgmma", LINEAR, "tensor-path=2", "tiled(x, box=[64, 64, 1]", "pack_"},
    {"one loader beside the rest", LINEAR, "tensor-path=2 tile-m=128 warps=8", "setmaxnreg.dec",
     NULL},
    {"tile-m and tile-n", C, "tensor-path=1 tile-m=32 tile-n=128", "BM = 32, BN = 128", NULL},
    {"tile-k", C, "tensor-path=1 tile-k=16", "BK = 16", NULL},
    {"stages", C, "tensor-path=1 stages=4", "STAGES = 4", NULL},
    {"warps", C, "tensor-path=1 tile-m=64 tile-n=64 warps=4", ", 128, ", NULL},
    {"padding", C, "tensor-path=1 swizzle=0 tile-k=32", "row * 36 + col", " ^ "},
    {"swizzle", C, "tensor-path=1 swizzle=1 tile-k=32", "(col / 4 ^ row % 8)", NULL},
    {"raster", C, "tensor-path=1 raster=8", "/ (8 * tiles_n) * 8", NULL},
    {"parts of k", C, "split-k=8", "//! workspace part[8, ", NULL},
    {"parts are added in order", C, "split-k=8", "//! launch finish<<<", "atomic"},
    {"pieces of 16 bytes", C, "tensor-path=1", "//! require K % 4 == 0", "gemm_copy4"},
    {"rows of odd length", ODD, "tensor-path=1 pack=0", "gemm_copy4", "% 4 == 0"},
    {"a parameter is copied once", WEIGHTS, "tensor-path=1 pack=1", "//! once launch pack_b<<<",
     "//! once launch pack_a"},
    {"an input each time", WEIGHTS, "tensor-path=1 pack=1", "//! launch pack_a<<<",
     "//! launch pack_b"},
    {"rows of odd length, copied", ODD, "tensor-path=1 pack=1", "pack_a<<<", "gemm_copy4"},
    {"short sums say so", C_TF32, "tensor-path=1", "//! require K <= 4096", NULL},
    {"long sums", LONG, "tensor-path=1 tile-k=64", "PROMOTE = 32;", NULL},
    {"two sums share a tile", GATED, "tensor-path=1", "FOLDS = 2, NA = 1, NB = 2", NULL},
    {"a filter stands in the text", CONV, "tensor-path=1", "//! require R == 3", NULL},
    {"a window's part of k", CONV, "tensor-path=1", "__shfl_sync(", NULL},
    {"groups divide", GROUPED, "tensor-path=1", "//! require O % J == 0", NULL},
    {"tiles of k that hold nothing", PRODUCT "c[i,j] = sum(i <= k <= j) a[i,k]*b[k,j]\n",
     "tensor-path=1 skip=1", "are skipped", NULL},
    {"gaps", GAPS, "tensor-path=1 skip=1", "__ballot_sync(", NULL},
    {"gaps that are multiplied by zero", GAPS, "tensor-path=1 skip=0", "cp_floormod(",
     "__ballot_sync("},
};

static void test_texts(void) {
    check_texts(texts, sizeof texts / sizeof *texts);
}

/* A function that several products of a source call is defined once; their maps are several. */
static void test_defined_once(void) {
    static const struct {
        const char *strategy, *definition;
    } rows[] = {
        {"tensor-path=0", "gemm_simt(unsigned char *smem"},
        {"tensor-path=1", "gemm_3xtf32(unsigned char *smem"},
        {"tensor-path=2 tile-n=64 warps=8",
         "(unsigned char *smem, int k_begin, int k_end, Load load, Sink sink) {"},
        {"tensor-path=2 tile-n=64 warps=8", "//! tensormap map_a ="},
        {"tensor-path=2 split-parts=2 tile-n=64", "constexpr int GEMM_WIDE ="},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct briefing b;
        struct strategy s;
        str text = S("");
        if (brief(TWINS, &b) && strategy_parse(catalogue, str_view(rows[i].strategy), &s, &err)) {
            strategy_repair(catalogue, &b.ground, &s);
            text = write_with(&b, &s);
        }
        size_t first = str_find(text, str_view(rows[i].definition));
        CHECKF(first < text.n, "%s: not there: %s", rows[i].strategy, err.text);
        text = str_cut(text, first + 1, text.n);
        CHECKF(str_find(text, str_view(rows[i].definition)) == text.n, "%s", rows[i].strategy);
    }
}

/* Any strategy gives a plan that binds, and one that fits the hardware. */
static void test_any_strategy(void) {
    static const char *const tasks[] = {C,   C_TF32, LINEAR, GATED,   TWINS,
                                        ODD, LONG,   CONV,   GROUPED, GAPS};
    check_draws(tasks, sizeof tasks / sizeof *tasks, 40, S("contraction"));
}

static const struct tap_case cases[] = {
    {"conditions of operands", test_conditions},
    {"claims", test_claims},
    {"the model", test_models},
    {"assumed zeros", test_assumed_zeros},
    {"decisions in the text", test_texts},
    {"functions are defined once", test_defined_once},
    {"any strategy", test_any_strategy},
};
FAMILY_CASES(cases)
