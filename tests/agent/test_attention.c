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
    {"lets of a type", HEADS "let s[b,h,i,j] : f32 = (sum(d) q[b,h,i,d]*k[b,h,j,d])/sqrt(D)\n"
                             "let m[b,h,i] : f32 = max(j) s[b,h,i,j]\n"
                             "let p[b,h,i,j] : f32 = exp(s[b,h,i,j] - m[b,h,i])\n"
                             "let z[b,h,i] : f32 = sum(j) p[b,h,i,j]\n"
                             "y[b,h,i,d] = sum(j) p[b,h,i,j]/z[b,h,i]*v[b,h,j,d]\n"},
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

static str written_for(const char *text) {
    struct briefing b;
    struct strategy s;
    if (!brief(text, &b) || !strategy_parse(catalogue, S(""), &s, &err))
        return S("");
    strategy_repair(catalogue, &b.ground, &s);
    return write_with(&b, &s);
}

static void test_phrasings(void) {
    for (size_t i = 0; i < sizeof phrasings / sizeof *phrasings; i++) {
        str names = families_of(phrasings[i].text);
        CHECKF(str_is(names, "attention"), "%s: %.*s", phrasings[i].name, STR_ARG(names));
        str text = written_for(phrasings[i].text);
        CHECKF(count_of(text, "//! launch") == 1, "%s: %d launches %s", phrasings[i].name,
               (int)count_of(text, "//! launch"), err.text);
    }
}

static const struct tap_case cases[] = {
    {"one kernel, however it is written", test_phrasings},
};

int main(void) {
    return writing_main(cases, sizeof cases / sizeof *cases);
}
