/* The ranges of lets that no task states: from what an index indexes, or from how the let is read.
 */
#include "fixture.h"

#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 8, M = 6\nin x[N,M] : f32 ~ normal(0,1)\n"                              \
    "in q[N] : i32 ~ randint(0,6)\nout y[N] : f32\n"

static const struct row {
    const char *lines, *shown;
} rows[] = {
    {"let v[i] = i*2\ny[i] = v[i]\n", "let v[i < N] = i*2\n"},
    {"let v[i,j] = if(j <= i, 1, 0)\ny[i] = sum(k) v[i,k]*x[i,k]\n",
     "let v[i < N, j < M] = if(j <= i, 1, 0)\n"},
    {"let v[i] = i*2\ny[i] = v[i] + v[i+1]\n", "let v[i < N + 1] = i*2\n"},
    {"let v[i] = i*2\ny[i] = v[i+1] + v[i]\n", "let v[i < N + 1] = i*2\n"},
    {"let v[i] = i*2\ny[i] = sum(r < 3) v[2*i+r]\n", "let v[i < 2*N + 1] = i*2\n"},
    {"let v[i] = i*2\ny[i] = v[N-1-i]\n", "let v[i < N] = i*2\n"},
    {"let v[i] = i*2\ny[i] = v[i % M]\n", "let v[i < M] = i*2\n"},
    {"let v[f] = f\ny[i] = sum(k < M) v[i*M + k]\n", "let v[f < N*M] = f\n"},
    {"let v[i] = i*2\ny[i] = sum(f < N*M) v[f//M]\n", "let v[i < N] = i*2\n"},
    {"let v[i] = i*2\ny[i] = sum(f < 4*N) v[f//4]\n", "let v[i < N] = i*2\n"},
    {"let v[i] = i\ny[i] = sum(k <= i) v[k]\n", "let v[i < N] = i\n"},
    {"let v[i] = i\ny[i] = sum(i <= k < N) v[k-i]\n", "let v[i < N] = i\n"},
    {"let v[i] = i\ny[i] = v[clamp(q[i], 0, M-1)]\n", "let v[i < M] = i\n"},
    {"let v[i] = i\ny[i] = v[minimum(q[i], M-1)]\n", "let v[i < M] = i\n"},
    {"let v[i] = i\ny[i] = v[argmax(j) x[i,j]]\n", "let v[i < M] = i\n"},
    {"let v[i] = i\ny[i] = pad(v[i-1], 0) + v[i]\n", "let v[i < N] = i\n"},
    {"let v[i] = w[i]*2\nlet w[i] = i+1\ny[i] = v[i]\n", "let w[i < N] = i + 1\n"},
    {"let v[i] = i\nlet w[i] = sum(j < M) v[i+j]\ny[i] = w[i]\n", "let v[i < N + M - 1] = i\n"},
    /* What an index indexes by itself comes first, as ever. */
    {"let v[j] = x[0,j]\ny[i] = v[i % 2]\n", "let v[j < M] = x[0,j]\n"},
};

static void check_row(const struct row *r) {
    struct fixture f;
    char text[1024];
    struct buf shown;
    buf_init(&shown, 1 << 16);
    snprintf(text, sizeof text, "%s%s", HEAD, r->lines);
    if (fixture_text(&f, text)) {
        task_show(f.in, &shown);
        CHECKF(str_find(buf_str(&shown), str_view(r->shown)) < shown.n, "%s gives\n%.*s", r->lines,
               (int)shown.n, shown.p);
    }
    buf_release(&shown);
    fixture_end(&f);
}

static const struct row refused[] = {
    {"let v[i] = i*2\ny[i] = v[i] + sum(k) x[i,k]*v[k]\n",
     "t.task:6:5: the range of 'i' is not the same for all that read 'v'"},
    {"let v[i] = i*2\ny[i] = v[i//2] + v[i % M]\n", "is not the same for all that read 'v'"},
    {"let v[i] = i*2\ny[i] = v[q[i]]\n", "follows neither from what it indexes nor from how"},
    {"let v[i] = i*2\ny[i] = pad(v[i-1], 0)\n", "follows neither"},
    {"let v[i] = i*2\ny[i] = i\n", "follows neither"},
    {"let v[k] = sum(j) w[j]\nlet w[j] = j\ny[i] = v[i]\n", "the range of 'j' follows neither"},
};

static void check_refused(const struct row *r) {
    struct arena *a = arena_new((size_t)1 << 20);
    struct task *t;
    struct err err = {0};
    char text[1024];
    snprintf(text, sizeof text, "%s%s", HEAD, r->lines);
    CHECK(!task_parse(S("t.task"), str_view(text), a, &t, &err));
    CHECKF(strstr(err.text, r->shown), "%s says %s", r->lines, err.text);
    arena_free(a);
}

static void ranges_follow(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

static void what_is_open_is_refused(void) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(&refused[i]);
}

static const struct tap_case cases[] = {
    {"ranges follow from what is indexed and from how a let is read", ranges_follow},
    {"what neither gives is refused", what_is_open_is_refused},
};
TAP_CASES(cases)
