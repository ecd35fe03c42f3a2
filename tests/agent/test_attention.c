/* Attention is recognised however it is written, and keys that a mask leaves out are not touched.
 * What the kernels compute is verified by tests/expert. */
#include "agent/expert/expert.h"
#include "agent/expert/form/partition.h"
#include "writing.h"

#define SIZES "dim B = 2, H = 4, L = 96, D = 64\n"
#define HEADS                                                                                      \
    SIZES "in q[B,H,L,D] : bf16 ~ normal(0,1)\nin k[B,H,L,D] : bf16 ~ normal(0,1)\n"               \
          "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H,L,D] : bf16\naccuracy bf16\n"
#define SCORE "let s[b,h,i,j] = (sum(d) q[b,h,i,d]*k[b,h,j,d])/sqrt(D)\n"
#define TOP   "let m[b,h,i] = max(j) s[b,h,i,j]\n"

/* All of them are the same attention, but for where tensors lie and what is stored beside y. */
static const struct {
    const char *name, *text;
} phrasings[] = {
    {"division outside the sum",
     HEADS SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
                     "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"division inside the sum, weights as a let",
     HEADS SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
                     "let p[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])/z[b,h,i]\n"
                     "y[b,h,i,d] = sum(j) p[b,h,i,j]*v[b,h,j,d]\n"},
    {"exponentials as a let, the values in front",
     HEADS SCORE TOP "let e[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n"
                     "let z[b,h,i] = sum(j) e[b,h,i,j]\n"
                     "y[b,h,i,d] = sum(j) v[b,h,j,d]*(e[b,h,i,j]/z[b,h,i])\n"},
    {"a reciprocal of the sum",
     HEADS SCORE TOP "let r[b,h,i] = 1/(sum(j) exp(s[b,h,i,j] - m[b,h,i]))\n"
                     "y[b,h,i,d] = sum(j) exp(s[b,h,i,j] - m[b,h,i])*r[b,h,i]*v[b,h,j,d]\n"},
    {"the scale on the query",
     HEADS "let t[b,h,i,d] = q[b,h,i,d]*0.125\n"
           "let s[b,h,i,j] = sum(d) t[b,h,i,d]*k[b,h,j,d]\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"the scale on the key",
     HEADS "let s[b,h,i,j] = sum(d) q[b,h,i,d]*(k[b,h,j,d]/sqrt(D))\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"the scale behind the maximum",
     HEADS "let s[b,h,i,j] = sum(d) q[b,h,i,d]*k[b,h,j,d]\n" TOP
           "let z[b,h,i] = sum(j) exp((s[b,h,i,j] - m[b,h,i])*0.125)\n"
           "y[b,h,i,d] = (sum(j) exp((s[b,h,i,j] - m[b,h,i])*0.125)*v[b,h,j,d])/z[b,h,i]\n"},
    {"the scale where scores are read",
     HEADS "let s[b,h,i,j] = sum(d) q[b,h,i,d]*k[b,h,j,d]\n"
           "let m[b,h,i] = max(j) s[b,h,i,j]*0.125\n"
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j]*0.125 - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j]*0.125 - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"without its maximum",
     HEADS SCORE "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j])*v[b,h,j,d])/(sum(j) exp(s[b,h,i,j]))\n"},
    {"without its maximum, division inside",
     HEADS SCORE "let z[b,h,i] = sum(j) exp(s[b,h,i,j])\n"
                 "y[b,h,i,d] = sum(j) exp(s[b,h,i,j])/z[b,h,i]*v[b,h,j,d]\n"},
    {"in one expression",
     HEADS "y[b,h,i,e] = sum(j) exp((sum(d) q[b,h,i,d]*k[b,h,j,d])*0.125"
           " - (max(l) (sum(d) q[b,h,i,d]*k[b,h,l,d])*0.125))"
           " / (sum(n) exp((sum(d) q[b,h,i,d]*k[b,h,n,d])*0.125"
           " - (max(l) (sum(d) q[b,h,i,d]*k[b,h,l,d])*0.125))) * v[b,h,j,e]\n"},
    {"a logarithm of the sum of exponentials",
     HEADS SCORE TOP "let l[b,h,i] = m[b,h,i] + log(sum(j) exp(s[b,h,i,j] - m[b,h,i]))\n"
                     "y[b,h,i,d] = sum(j) exp(s[b,h,i,j] - l[b,h,i])*v[b,h,j,d]\n"},
    {"that logarithm without the maximum",
     HEADS SCORE "let l[b,h,i] = log(sum(j) exp(s[b,h,i,j]))\n"
                 "y[b,h,i,d] = sum(j) exp(s[b,h,i,j] - l[b,h,i])*v[b,h,j,d]\n"},
    {"that logarithm stored, with the maximum",
     HEADS "out lse[B,H,L] : f32\nout top[B,H,L] : f32\n" SCORE TOP
           "let l[b,h,i] = m[b,h,i] + log(sum(j) exp(s[b,h,i,j] - m[b,h,i]))\n"
           "lse[b,h,i] = l[b,h,i]\ntop[b,h,i] = m[b,h,i]\n"
           "y[b,h,i,d] = sum(j) exp(s[b,h,i,j] - l[b,h,i])*v[b,h,j,d]\n"},
    {"that logarithm computed once more for an output",
     HEADS "out lse[B,H,L] : f32\n" SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"
           "let n[b,h,i] = max(j) s[b,h,i,j]\n"
           "lse[b,h,i] = n[b,h,i] + log(sum(j) exp(s[b,h,i,j] - n[b,h,i]))\n"},
    {"that logarithm beside weights of a type",
     HEADS "out lse[B,H,L] : f32\n" SCORE TOP "let p[b,h,i,j] : f32 = exp(s[b,h,i,j] - m[b,h,i])\n"
           "let z[b,h,i] = sum(j) p[b,h,i,j]\n"
           "y[b,h,i,d] = (sum(j) p[b,h,i,j]*v[b,h,j,d])/z[b,h,i]\n"
           "lse[b,h,i] = m[b,h,i] + log(sum(j) exp(s[b,h,i,j] - m[b,h,i]))\n"},
    {"lets of a type", HEADS "let s[b,h,i,j] : f32 = (sum(d) q[b,h,i,d]*k[b,h,j,d])/sqrt(D)\n"
                             "let m[b,h,i] : f32 = max(j) s[b,h,i,j]\n"
                             "let p[b,h,i,j] : f32 = exp(s[b,h,i,j] - m[b,h,i])\n"
                             "let z[b,h,i] : f32 = sum(j) p[b,h,i,j]\n"
                             "y[b,h,i,d] = sum(j) p[b,h,i,j]/z[b,h,i]*v[b,h,j,d]\n"},
    {"weights of the operands' type",
     HEADS SCORE TOP "let e[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n"
                     "let p[b,h,i,j] : bf16 = e[b,h,i,j]/(sum(l) e[b,h,i,l])\n"
                     "y[b,h,i,d] = sum(j) p[b,h,i,j]*v[b,h,j,d]\n"},
    {"grouped heads by division",
     SIZES "dim G = 2\nin q[B,H*G,L,D] : bf16 ~ normal(0,1)\nin k[B,H,L,D] : bf16 ~ normal(0,1)\n"
           "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H*G,L,D] : bf16\naccuracy bf16\n"
           "let s[b,h,i,j] = (sum(d) q[b,h,i,d]*k[b,h//G,j,d])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h//G,j,d])/z[b,h,i]\n"},
    {"grouped heads as an axis",
     SIZES "dim G = 2\nin q[B,H,G,L,D] : bf16 ~ normal(0,1)\nin k[B,H,L,D] : bf16 ~ normal(0,1)\n"
           "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H,G,L,D] : bf16\naccuracy bf16\n"
           "let s[b,h,g,i,j] = (sum(d) q[b,h,g,i,d]*k[b,h,j,d])/sqrt(D)\n"
           "let m[b,h,g,i] = max(j) s[b,h,g,i,j]\n"
           "let z[b,h,g,i] = sum(j) exp(s[b,h,g,i,j] - m[b,h,g,i])\n"
           "y[b,h,g,i,d] = (sum(j) exp(s[b,h,g,i,j] - m[b,h,g,i])*v[b,h,j,d])/z[b,h,g,i]\n"},
    {"keys transposed",
     SIZES "in q[B,H,L,D] : bf16 ~ normal(0,1)\nin k[B,H,D,L] : bf16 ~ normal(0,1)\n"
           "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H,L,D] : bf16\naccuracy bf16\n"
           "let s[b,h,i,j] = (sum(d) q[b,h,i,d]*k[b,h,d,j])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"heads last",
     SIZES "in q[B,L,H,D] : bf16 ~ normal(0,1)\nin k[B,L,H,D] : bf16 ~ normal(0,1)\n"
           "in v[B,L,H,D] : bf16 ~ normal(0,1)\nout y[B,L,H,D] : bf16\naccuracy bf16\n"
           "let s[b,h,i,j] = (sum(d) q[b,i,h,d]*k[b,j,h,d])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,i,h,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,j,h,d])/z[b,h,i]\n"},
    {"heads last, scores written out where they are read",
     SIZES "in q[B,L,H,D] : bf16 ~ normal(0,1)\nin k[B,L,H,D] : bf16 ~ normal(0,1)\n"
           "in v[B,L,H,D] : bf16 ~ normal(0,1)\nout y[B,L,H,D] : bf16\naccuracy bf16\n"
           "let m[b,h,i] = max(j) (sum(d) q[b,i,h,d]*k[b,j,h,d])*0.125\n"
           "let z[b,h,i] = sum(j) exp((sum(d) q[b,i,h,d]*k[b,j,h,d])*0.125 - m[b,h,i])\n"
           "y[b,i,h,e] = (sum(j) exp((sum(d) q[b,i,h,d]*k[b,j,h,d])*0.125 - m[b,h,i])"
           "*v[b,j,h,e])/z[b,h,i]\n"},
    {"heads side by side in rows of features",
     SIZES "in q[B,L,H,D] : bf16 ~ normal(0,1)\nin k[B,L,H,D] : bf16 ~ normal(0,1)\n"
           "in v[B,L,H*D] : bf16 ~ normal(0,1)\nout y[B,L,H*D] : bf16\naccuracy bf16\n"
           "let s[b,h,i,j] = (sum(d) q[b,i,h,d]*k[b,j,h,d])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "let p[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])/z[b,h,i]\n"
           "y[b,i,c] = sum(j) p[b,c//D,i,j]*v[b,j,c]\n"},
    {"heads put side by side behind it",
     HEADS "out x[B,L,H*D] : bf16\n" SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "let o[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"
           "y[b,h,i,d] = o[b,h,i,d]\nx[b,i,c] = o[b,c//D,i,c%D]\n"},
    {"one tensor of queries, keys and values by an index",
     SIZES "in x[B,L,3,H,D] : bf16 ~ normal(0,1)\nout y[B,L,H,D] : bf16\naccuracy bf16\n"
           "let s[b,h,i,j] = (sum(d) x[b,i,0,h,d]*x[b,j,1,h,d])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,i,h,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*x[b,j,2,h,d])/z[b,h,i]\n"},
    {"one tensor of queries, keys and values in rows of features",
     SIZES "in x[B,L,3*H*D] : bf16 ~ normal(0,1)\nout y[B,L,H,D] : bf16\naccuracy bf16\n"
           "let s[b,h < H,i,j] = (sum(d < D) x[b,i,h*D+d]*x[b,j,(H+h)*D+d])/sqrt(D)\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,i,h,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*x[b,j,(2*H+h)*D+d])/z[b,h,i]\n"},
};

/* The names of the families of its steps, or why there are none. */
static str families_of(const char *text) {
    size_t n;
    const struct family *const *families = expert_families(&n);
    struct briefing b;
    struct partition p;
    str names = S("");
    if (!brief(text, &b) || !partition_make(&b, families, n, mem, &p, &err))
        return str_view(err.text);
    for (size_t i = 0; i < p.n; i++)
        names = arena_printf(mem, "%.*s%s%s", STR_ARG(names), i ? " " : "", p.family[i]->name);
    return names;
}

static size_t count_of(str text, const char *what) {
    size_t n = 0;
    for (size_t at; (at = str_find(text, str_view(what))) < text.n; n++)
        text = str_from(text, at + 1);
    return n;
}

static str written_for(const char *text, const char *strategy) {
    struct briefing b;
    struct strategy s;
    if (!brief(text, &b) || !strategy_parse(catalogue, str_view(strategy), &s, &err))
        return S("");
    strategy_repair(catalogue, &b.ground, &s);
    return write_with(&b, &s);
}

static void test_phrasings(void) {
    for (size_t i = 0; i < sizeof phrasings / sizeof *phrasings; i++) {
        str names = families_of(phrasings[i].text);
        CHECKF(str_is(names, "attention"), "%s: %.*s", phrasings[i].name, STR_ARG(names));
        str text = written_for(phrasings[i].text, "");
        CHECKF(count_of(text, "//! launch") == 1, "%s: %d launches %s", phrasings[i].name,
               (int)count_of(text, "//! launch"), err.text);
    }
}

/* ---- masks ---- */

#define MASKED(keys)                                                                               \
    SIZES "dim W = 24\nin n[B] : i32 ~ randint(0,97)\nin seg[B,L] : i32 ~ randint(0,4)\n"          \
          "in q[B,H,L,D] : bf16 ~ normal(0,1)\nin k[B,H,L,D] : bf16 ~ normal(0,1)\n"               \
          "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H,L,D] : bf16\naccuracy bf16\n" SCORE       \
          "let m[b,h,i] = max(" keys ") s[b,h,i,j]\n"                                              \
          "let z[b,h,i] = sum(" keys ") exp(s[b,h,i,j] - m[b,h,i])\n"                              \
          "y[b,h,i,d] = (sum(" keys ") exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"
#define WHERE(score)                                                                               \
    HEADS "let s[b,h,i,j] = " score "\n" TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"  \
          "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"
#define PRODUCT "(sum(d) q[b,h,i,d]*k[b,h,j,d])*0.125"
#define HIGH    "end = min(end, cp_key("
#define LOW     "from = max(from, cp_key("

/* Bounds of the keys of a query in the kernel, and whether anything is left to be asked of a key.
 */
static const struct {
    const char *name, *text, *has, *also;
    bool guarded;
} masks[] = {
    {"causal by range", MASKED("j <= i"), HIGH "i + 1, L))", "gridDim.x - 1", false},
    {"causal by a guard", MASKED("j | i >= j"), HIGH "i + 1, L))", NULL, false},
    {"window, range and guard", MASKED("j <= i | i - j < W"), LOW "i - W + 1, L))",
     HIGH "i + 1, L))", false},
    {"window in one guard", MASKED("j | j <= i && j > i - W"), LOW "i - W + 1, L))",
     HIGH "i + 1, L))", false},
    {"window by range", MASKED("maximum(i - W + 1, 0) <= j <= i"), LOW "i - W + 1, L))",
     HIGH "i + 1, L))", false},
    {"both sides", MASKED("j | abs(i - j) <= W"), LOW "i - W, L))", HIGH "W + i + 1, L))", false},
    {"blocks", MASKED("j | i//W == j//W"), LOW, HIGH, false},
    {"lengths", MASKED("j | j < n[b]"), HIGH "n[b], L))", NULL, false},
    {"lengths and causal", MASKED("j <= i | !(j >= n[b])"), HIGH "n[b], L))", HIGH "i + 1, L))",
     false},
    {"segments are asked of each key", MASKED("j <= i | seg[b,i] == seg[b,j]"), HIGH "i + 1, L))",
     "seg[", true},
    {"by where", WHERE("if(j <= i, " PRODUCT ", -inf)"), HIGH "i + 1, L))", NULL, false},
    {"by where, the other way", WHERE("if(j > i, -inf, " PRODUCT ")"), HIGH "i + 1, L))", NULL,
     false},
    /* A score that is NaN stays one under a term. */
    {"not by a term", WHERE(PRODUCT " + if(j <= i, 0, -inf)"), "(j <= i ? 0.0f : -INFINITY)", NULL,
     false},
    /* A finite number is a score like any other: it counts where nothing is greater. */
    {"not by a large number", WHERE("if(j <= i, " PRODUCT ", -1000000000)"), "-1000000000", NULL,
     false},
};

static void test_masks(void) {
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        str names = families_of(masks[i].text), text = written_for(masks[i].text, "");
        CHECKF(str_is(names, "attention"), "%s: %.*s", masks[i].name, STR_ARG(names));
        CHECKF(count_of(text, masks[i].has), "%s: no %s", masks[i].name, masks[i].has);
        CHECKF(!masks[i].also || count_of(text, masks[i].also), "%s: no %s", masks[i].name,
               masks[i].also);
        CHECKF(!count_of(text, "if (!(") == !masks[i].guarded, "%s", masks[i].name);
    }
}

/* ---- what must stay as it is ---- */

static const struct {
    const char *name, *text;
} others[] = {
    {"a sum without a maximum that is stored",
     HEADS "out z[B,H,L] : f32\n" SCORE "let e[b,h,i,j] = exp(s[b,h,i,j])\n"
           "z[b,h,i] = sum(j) e[b,h,i,j]\n"
           "y[b,h,i,d] = (sum(j) e[b,h,i,j]*v[b,h,j,d])/(sum(j) e[b,h,i,j])\n"},
    {"scores that are stored",
     HEADS "out w[B,H,L,L] : f32\n" SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "w[b,h,i,j] = s[b,h,i,j]\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"scores that are rounded",
     HEADS "let s[b,h,i,j] : bf16 = sum(d) q[b,h,i,d]*k[b,h,j,d]\n" TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"sums over different keys",
     HEADS SCORE TOP "let z[b,h,i] = sum(j <= i) exp(s[b,h,i,j] - m[b,h,i])\n"
                     "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"another score in the mix",
     HEADS SCORE TOP "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
                     "y[b,h,i,d] = (sum(j) exp(2*s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
    {"class fp32 does not allow 16-bit weights",
     SIZES "in q[B,H,L,D] : bf16 ~ normal(0,1)\nin k[B,H,L,D] : bf16 ~ normal(0,1)\n"
           "in v[B,H,L,D] : bf16 ~ normal(0,1)\nout y[B,H,L,D] : f32\n" SCORE TOP
           "let z[b,h,i] = sum(j) exp(s[b,h,i,j] - m[b,h,i])\n"
           "y[b,h,i,d] = (sum(j) exp(s[b,h,i,j] - m[b,h,i])*v[b,h,j,d])/z[b,h,i]\n"},
};

/* In class tf32 weights in f16 may not vanish. */
static void test_class(void) {
    static const char head[] =
        "dim H = 4, L = 96, D = 64\nin q[H,L,D] : f16 ~ normal(0,1)\nin k[H,L,D] : f16 ~ "
        "normal(0,1)\n"
        "in v[H,L,D] : f16 ~ normal(0,1)\nout y[H,L,D] : f16\n"
        "let s[h,i,j] = sum(d) q[h,i,d]*k[h,j,d]\nlet m[h,i] = max(j) s[h,i,j]\n"
        "let z[h,i] = sum(j) exp(s[h,i,j] - m[h,i])\n"
        "y[h,i,d] = (sum(j) exp(s[h,i,j] - m[h,i])*v[h,j,d])/z[h,i]\naccuracy ";
    static const struct {
        const char *class;
        bool taken;
    } rows[] = {{"f16", true}, {"tf32", false}, {"bf16", false}, {"fp32", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str text = arena_printf(mem, "%s%s\n", head, rows[i].class);
        str names = families_of(text.p);
        CHECKF(str_is(names, "attention") == rows[i].taken, "%s: %.*s", rows[i].class,
               STR_ARG(names));
    }
}

static void test_others(void) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        str names = families_of(others[i].text);
        CHECKF(!str_starts(names, S("attention")) && names.n, "%s: %.*s", others[i].name,
               STR_ARG(names));
        CHECKF(written_for(others[i].text, "").n, "%s: %s", others[i].name, err.text);
    }
}

/* ---- decoding ---- */

#define CACHE                                                                                      \
    "dim B = 2, G = 2, R = 4, N = 4096, D = 128\nin n[B] : i32 ~ randint(0,4097)\n"                \
    "in k[B,G,N,D] : bf16 ~ normal(0,1)\nin v[B,G,N,D] : bf16 ~ normal(0,1)\naccuracy bf16\n"

static const struct {
    const char *name, *text, *has;
} decodings[] = {
    {"one query, groups by division: four heads of a group are rows of a tile",
     CACHE "in q[B,G*R,D] : bf16 ~ normal(0,1)\nout y[B,G*R,D] : bf16\n"
           "let s[b,h,j] = (sum(d) q[b,h,d]*k[b,h//R,j,d])/sqrt(D)\n"
           "let m[b,h] = max(j | j < n[b]) s[b,h,j]\n"
           "let z[b,h] = sum(j | j < n[b]) exp(s[b,h,j] - m[b,h])\n"
           "y[b,h,d] = (sum(j | j < n[b]) exp(s[b,h,j] - m[b,h])*v[b,h//R,j,d])/z[b,h]\n",
     "<<<[ceil_div(R, 16), B*((G*R) // R), 32], 128"},
    {"two queries, groups as an axis",
     CACHE
     "dim Q = 2\nin q[B,G,R,Q,D] : bf16 ~ normal(0,1)\nout y[B,G,R,Q,D] : bf16\n"
     "let s[b,g,r,i,j] = (sum(d) q[b,g,r,i,d]*k[b,g,j,d])/sqrt(D)\n"
     "let m[b,g,r,i] = max(j | j < n[b]) s[b,g,r,i,j]\n"
     "let z[b,g,r,i] = sum(j | j < n[b]) exp(s[b,g,r,i,j] - m[b,g,r,i])\n"
     "y[b,g,r,i,d] = (sum(j | j < n[b]) exp(s[b,g,r,i,j] - m[b,g,r,i])*v[b,g,j,d])/z[b,g,r,i]\n",
     ", 16), B*G, 32], 128"},
};

static void test_decoding(void) {
    for (size_t i = 0; i < sizeof decodings / sizeof *decodings; i++) {
        str names = families_of(decodings[i].text), text = written_for(decodings[i].text, "");
        CHECKF(str_is(names, "attention"), "%s: %.*s", decodings[i].name, STR_ARG(names));
        CHECKF(count_of(text, decodings[i].has), "%s: no %s", decodings[i].name, decodings[i].has);
        CHECKF(count_of(text, "//! launch") == 2, "%s: %s", decodings[i].name, err.text);
        CHECKF(count_of(text, HIGH "n[b], N))"), "%s: lengths", decodings[i].name);
    }
}

/* ---- warp groups ---- */

static void test_groups(void) {
    static const char path[] = "tensor-path=2 key-tile=128 stages=2";
    for (size_t i = 0; i < sizeof phrasings / sizeof *phrasings; i++) {
        str text = written_for(phrasings[i].text, path);
        CHECKF(count_of(text, "by warp groups") == 1, "%s: %s", phrasings[i].name, err.text);
    }
    /* Rows of 67 elements are no rows of 16 bytes. */
    str odd = written_for("dim H = 4, L = 96, D = 67\nin q[H,L,D] : f16 ~ normal(0,1)\n"
                          "in k[H,L,D] : f16 ~ normal(0,1)\nin v[H,L,D] : f16 ~ normal(0,1)\n"
                          "out y[H,L,D] : f16\naccuracy f16\n"
                          "let s[h,i,j] = sum(d) q[h,i,d]*k[h,j,d]\nlet m[h,i] = max(j) s[h,i,j]\n"
                          "let z[h,i] = sum(j) exp(s[h,i,j] - m[h,i])\n"
                          "y[h,i,d] = (sum(j) exp(s[h,i,j] - m[h,i])*v[h,j,d])/z[h,i]\n",
                          path);
    CHECK(odd.n && !count_of(odd, "by warp groups") && count_of(odd, "tensor-path=1"));
}

static const struct tap_case cases[] = {
    {"one kernel, however it is written", test_phrasings},
    {"masks are bounds of keys", test_masks},
    {"what is no attention", test_others},
    {"classes that allow weights in f16", test_class},
    {"few queries split their keys", test_decoding},
    {"warp groups", test_groups},
};

int main(void) {
    return writing_main(cases, sizeof cases / sizeof *cases);
}
