/* What the expert writes a plan accepts, however large a task's extents are and however many
 * results it keeps: grids have 65,535 blocks in y and z, plans 16 workspaces. */
#include "writing.h"

enum { STRATEGIES = 24 };

/* More than 65,535 planes, rows, columns or products in every family. */
static const struct {
    const char *name, *text;
} large[] = {
    {"pointwise", "dim B = 100000, N = 3\nin x[B,N] : f32 ~ normal(0,1)\nout y[B,N] : f32\n"
                  "y[b,i] = x[b,i] + 1\n"},
    {"transposition", "dim B = 100000, M = 3, N = 5\nin x[B,M,N] : f32 ~ normal(0,1)\n"
                      "out y[B,N,M] : f32\ny[b,i,j] = x[b,j,i]\n"},
    {"rows", "dim B = 100000, N = 5\nin x[B,N] : f32 ~ normal(0,1)\nout y[B,N] : f32\n"
             "let s[b] = sum(i) exp(x[b,i])\ny[b,i] = exp(x[b,i]) / s[b]\n"},
    {"outer rows", "dim B = 100000, M = 70, N = 5\nin x[B,M,N] : f32 ~ normal(0,1)\n"
                   "out y[B,N] : f32\ny[b,j] = sum(i) x[b,i,j]\n"},
    {"scan of rows", "dim B = 100000, N = 5\nin x[B,N] : f32 ~ normal(0,1)\nout y[B,N] : f32\n"
                     "y[b,i] = sum(j <= i) x[b,j]\n"},
    {"scan of columns", "dim B = 100000, M = 70, N = 5\nin x[B,M,N] : f32 ~ normal(0,1)\n"
                        "out y[B,M,N] : f32\ny[b,i,j] = sum(k <= i) x[b,k,j]\n"},
    {"window", "dim B = 100000\nin x[B,8,8] : f32 ~ normal(0,1)\nout y[B,4,4] : f32\n"
               "y[b,i,j] = max(r < 2, s < 2) x[b, 2*i+r, 2*j+s]\n"},
    {"depthwise", "dim B = 100000\nin x[B,8,8] : f32 ~ normal(0,1)\n"
                  "param w[3,3] : f32 ~ normal(0,1)\nout y[B,6,6] : f32\n"
                  "y[b,i,j] = sum(r < 3, s < 3) x[b, i+r, j+s] * w[r,s]\n"},
    {"batched product", "dim B = 100000, N = 16\nin x[B,N,N] : bf16 ~ normal(0,1)\n"
                        "in z[B,N,N] : bf16 ~ normal(0,1)\nout y[B,N,N] : bf16\n"
                        "y[b,i,j] = sum(k) x[b,i,k] * z[b,k,j]\naccuracy bf16\n"},
    {"tall product", "dim M = 20000000, N = 4\nin x[M,N] : f32 ~ normal(0,1)\n"
                     "in z[N,N] : f32 ~ normal(0,1)\nout y[M,N] : f32\n"
                     "y[i,j] = sum(k) x[i,k] * z[k,j]\n"},
    {"wide product", "dim M = 4, N = 20000000\nin x[M,M] : f32 ~ normal(0,1)\n"
                     "in z[M,N] : f32 ~ normal(0,1)\nout y[M,N] : f32\n"
                     "y[i,j] = sum(k) x[i,k] * z[k,j]\n"},
    {"convolution", "dim B = 100000\nin x[B,4,6,6] : f32 ~ normal(0,1)\n"
                    "param w[8,4,3,3] : f32 ~ normal(0,1)\nout y[B,8,4,4] : f32\n"
                    "y[b,f,i,j] = sum(c, r < 3, s < 3) x[b,c,i+r,j+s] * w[f,c,r,s]\n"},
    {"attention", "dim B = 400, H = 250, S = 4, D = 8\nin q[B,H,S,D] : bf16 ~ normal(0,1)\n"
                  "in k[B,H,S,D] : bf16 ~ normal(0,1)\nin v[B,H,S,D] : bf16 ~ normal(0,1)\n"
                  "out y[B,H,S,D] : bf16\n"
                  "let a[b,h,i,j] = sum(d) q[b,h,i,d] * k[b,h,j,d]\n"
                  "let m[b,h,i] = max(j) a[b,h,i,j]\n"
                  "let e[b,h,i,j] = exp(a[b,h,i,j] - m[b,h,i])\n"
                  "let s[b,h,i] = sum(j) e[b,h,i,j]\n"
                  "y[b,h,i,d] = (sum(j) e[b,h,i,j] * v[b,h,j,d]) / s[b,h,i]\naccuracy bf16\n"},
    {"generic", "dim B = 100000, N = 5\nin x[B,N] : f32 ~ normal(0,1)\n"
                "in n[B] : i32 ~ randint(0, N)\nout y[B] : f32\n"
                "y[b] = sum(i, j < N) if(x[b,i] > x[b,j], x[b,n[b]], 0)\n"},
};

struct planned {
    struct strategy s[STRATEGIES];
    size_t n;
};

static void on_plan(void *ctx, const struct strategy *list, size_t n, str reason,
                    const struct err *e) {
    struct planned *p = ctx;
    (void)reason, (void)e;
    for (p->n = 0; p->n < n && p->n < STRATEGIES; p->n++)
        p->s[p->n] = list[p->n];
}

/* Of the first strategies those that are written; one that its plan refuses is a failure. */
static size_t count_written(const char *name, const char *text, struct buf *first) {
    struct briefing b;
    struct planned p = {0};
    size_t n = 0;
    err = (struct err){0};
    bool ok = brief(text, &b);
    CHECKF(ok, "%s: %s", name, err.text);
    if (ok)
        expert.plan(expert.self, &b, STRATEGIES, rng_stream(1, S("limits")), on_plan, &p);
    for (size_t i = 0; i < p.n; i++) {
        struct written w = {0};
        expert.code(expert.self, &b, &p.s[i], on_code, &w);
        if (w.ok)
            CHECKF(parses(&b, w.source), "%s, strategy %zu: %s", name, i, err.text);
        else
            CHECKF(strstr(err.text, "room for") != NULL, "%s: %s", name, err.text);
        if (w.ok && n++ == 0 && first)
            buf_puts(first, w.source);
    }
    return n;
}

static void test_large(void) {
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        CHECKF(count_written(large[i].name, large[i].text, NULL) == STRATEGIES, "%s",
               large[i].name);
}

static size_t lines_of(const struct buf *text, str lead) {
    str rest = buf_str(text), line;
    size_t n = 0;
    while (str_line(&rest, &line))
        n += str_starts(line, lead);
    return n;
}

/* One after the other, and all at once in the end. */
static void test_many_lets(void) {
    struct buf chain, fan, last, source;
    buf_init(&chain, 1 << 16);
    buf_init(&fan, 1 << 16);
    buf_init(&last, 1 << 16);
    buf_init(&source, 1 << 24);
    buf_puts(&chain, S("dim N = 8\nin x[N,N] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
                       "let l0[i,j] = sum(k) x[i,k] * x[k,j]\n"));
    buf_puts(&fan, S("dim N = 8\nin x[N,N] : f32 ~ normal(0,1)\nin z[20,N,N] : f32 ~ normal(0,1)\n"
                     "out y[N,N] : f32\n"));
    for (int n = 0; n < 20; n++) {
        if (n)
            buf_printf(&chain, "let l%d[i,j] = sum(k) x[i,k] * l%d[k,j]\n", n, n - 1);
        buf_printf(&fan, "let l%d[i,j] = sum(k) x[i,k] * z[%d,k,j]\n", n, n);
        buf_printf(&last, "%sl%d[j,i]", n ? " + " : "", n);
    }
    buf_puts(&chain, S("y[i,j] = l19[i,j]\n"));
    buf_printf(&fan, "y[i,j] = %s\n", last.p);
    CHECK(count_written("a chain of lets", chain.p, NULL) > 0);
    CHECK(count_written("lets at once", fan.p, &source) > 0);
    CHECKF(lines_of(&source, S("//! workspace ")) == 1 && lines_of(&source, S("//! launch ")) == 21,
           "%s", source.p);
    buf_release(&chain);
    buf_release(&fan);
    buf_release(&last);
    buf_release(&source);
}

static const struct tap_case cases[] = {
    {"extents over what a grid has in y", test_large},
    {"more lets than a plan has workspaces", test_many_lets},
};

int main(void) {
    return writing_main(cases, sizeof cases / sizeof *cases);
}
