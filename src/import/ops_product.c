/* Matrix products and convolutions. */
#include "import/ops_private.h"

#include <string.h>

static struct ex times(struct arena *a, struct ex x, struct ex y) {
    str l = ex_at_least(a, x, LEVEL_PRODUCT), r = ex_at_least(a, y, LEVEL_PREFIX);
    return (struct ex){arena_printf(a, "%.*s*%.*s", STR_ARG(l), STR_ARG(r)), LEVEL_PRODUCT};
}

/* The two factors go by several names. */
static bool factors_of(struct writer *w, const struct node *n, struct ref *x, struct ref *y) {
    static const char *const names[][2] = {{"mat1", "mat2"}, {"batch1", "batch2"},
                                           {"mat", "vec"},   {"self", "mat2"},
                                           {"self", "vec"},  {"self", "tensor"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (arg_ref(w, n, names[i][0], x) && arg_ref(w, n, names[i][1], y))
            return true;
    return false;
}

/* x[…,i,k]*y[…,k,j] over k; i, j or both may be missing. */
struct ex read_mm(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct ref x, y, self;
    if (!factors_of(w, n, &x, &y))
        return cannot(w, n, "a product of no two tensors");
    const struct value *vx = graph_value(writer_graph(w), x), *vy = graph_value(writer_graph(w), y);
    size_t rank = n->outs[out].rank, rows = vx->rank == 1 ? 0 : vx->rank - 1;
    struct place px[TASK_MAX_RANK] = {0}, py[TASK_MAX_RANK] = {0};
    if (!vx->rank || !vy->rank || rows > rank || (vy->rank == 3) != (vx->rank == 3) ||
        vy->rank > 3 || rank != rows + (vy->rank > 1))
        return cannot(w, n, "a product of ranks %zu and %zu", vx->rank, vy->rank);
    str size = vx->extent[vx->rank - 1];
    bool single = str_is(size, "1");
    struct ex k = single ? ex_of(S("0")) : variable(w, "k", size);
    for (size_t i = 0; i < rows; i++)
        px[i] = at[i];
    px[rows] = place_of(k);
    size_t batch = vy->rank == 3;
    if (batch)
        py[0] = at[0];
    py[batch] = place_of(k);
    if (vy->rank > 1)
        py[batch + 1] = at[rank - 1];
    struct ex left = read_at(w, x, px), body = times(a, left, read_at(w, y, py));
    struct ex sum = single ? body : reduction(w, "sum", &k, 1, (struct ex){0}, body);
    bool adds = str_starts(n->op, S("add")) || str_is(n->op, "baddbmm");
    if (!adds)
        return sum;
    double alpha = arg_f64(n, "alpha", 1), beta = arg_f64(n, "beta", 1);
    if (alpha != 1)
        sum = ex_mul(a, ex_number(a, alpha), sum);
    if (beta == 0 || !arg_ref(w, n, "self", &self))
        return sum;
    struct ex bias = read_broadcast(w, self, at, rank);
    return ex_add(a, sum, beta == 1 ? bias : ex_mul(a, ex_number(a, beta), bias));
}

/* ---- convolutions ---- */

struct taps {
    struct ref x, weight;
    const struct value *vx, *vw;
    size_t window; /* dimensions of the kernel */
    int64_t groups;
    struct place px[TASK_MAX_RANK], pw[TASK_MAX_RANK];
    struct ex vars[TASK_MAX_RANK + 1], guard;
    size_t nvars;
    bool leaves;
};

/* The variable of dimension i of the kernel, or 0 where it has one element. */
static struct ex tap(struct writer *w, struct taps *t, size_t i) {
    static const char *const names[][3] = {{"r"}, {"r", "s"}, {"t", "r", "s"}};
    str size = t->vw->extent[2 + i];
    if (str_is(size, "1"))
        return ex_of(S("0"));
    return t->vars[t->nvars++] = variable(w, names[t->window - 1][i], size);
}

/* A convolution reads stride*p + dilation*r - padding. */
static void forward_taps(struct writer *w, const struct node *n, struct taps *t,
                         const struct place *at) {
    struct arena *a = writer_arena(w);
    for (size_t i = 0; i < t->window; i++) {
        int64_t stride = arg_listed(n, "stride", i, 1), padding = arg_listed(n, "padding", i, 0);
        struct ex r = tap(w, t, i);
        struct ex e = ex_mul(a, ex_integer(a, stride), at[2 + i].e);
        e = ex_add(a, e, ex_mul(a, ex_integer(a, arg_listed(n, "dilation", i, 1)), r));
        t->px[2 + i] = place_of(ex_sub(a, e, ex_integer(a, padding)));
        t->pw[2 + i] = place_of(r);
        t->leaves = t->leaves || padding;
    }
}

/* Of a transposed one, input i reaches output stride*i + dilation*r - padding: the terms are those
 * with a whole i. */
static void transposed_taps(struct writer *w, const struct node *n, struct taps *t,
                            const struct place *at) {
    struct arena *a = writer_arena(w);
    for (size_t i = 0; i < t->window; i++) {
        int64_t stride = arg_listed(n, "stride", i, 1), padding = arg_listed(n, "padding", i, 0);
        struct ex r = tap(w, t, i);
        struct ex by = ex_mul(a, ex_integer(a, arg_listed(n, "dilation", i, 1)), r);
        struct ex e = ex_sub(a, ex_add(a, at[2 + i].e, ex_integer(a, padding)), by);
        if (stride > 1) {
            struct ex s = ex_integer(a, stride);
            struct ex whole = {arena_printf(a, "%.*s == 0", STR_ARG(ex_mod(a, e, s).text)),
                               LEVEL_COMPARISON};
            t->guard = ex_and(a, t->guard, whole);
            e = ex_floordiv(a, e, s);
        }
        t->px[2 + i] = place_of(e);
        t->pw[2 + i] = place_of(r);
    }
    t->leaves = true;
}

/* Channels: of group g those from g*size on. `own` is the number of the output's channels in one
 * group. False: there is no such size. */
static bool channels(struct writer *w, struct taps *t, bool transposed, str outputs,
                     const struct place *at) {
    struct arena *a = writer_arena(w);
    struct monomial own, groups = {.number = t->groups};
    if (!monomial_over(monomial_of(outputs), groups, &own))
        own = monomial_of(arena_printf(a, "%.*s//%lld", STR_ARG(outputs), (long long)t->groups));
    str inner = t->vw->extent[1]; /* channels of the input in a group */
    if (transposed) {
        struct monomial in;
        if (!monomial_over(monomial_of(t->vw->extent[0]), groups, &in))
            in = monomial_of(
                arena_printf(a, "%.*s//%lld", STR_ARG(t->vw->extent[0]), (long long)t->groups));
        inner = monomial_text(a, in);
    }
    struct ex size = ex_size(monomial_text(a, own)), o = at[1].e;
    bool single = str_is(inner, "1");
    struct ex c = single ? ex_of(S("0")) : variable(w, "c", inner);
    if (!single) { /* outermost, as one writes it */
        memmove(t->vars + 1, t->vars, t->nvars * sizeof *t->vars);
        t->vars[0] = c;
        t->nvars++;
    }
    struct ex group = t->groups == 1 ? ex_of(S("0")) : ex_floordiv(a, o, size);
    struct ex channel = ex_add(a, ex_mul(a, group, ex_size(inner)), c);
    if (t->groups == 1)
        channel = c;
    t->px[1] = place_of(channel);
    t->pw[0] = transposed ? t->px[1] : at[1];
    t->pw[1] = place_of(!transposed ? c : t->groups == 1 ? o : ex_mod(a, o, size));
    return true;
}

struct ex read_convolution(struct writer *w, const struct node *n, size_t out,
                           const struct place *at) {
    struct arena *a = writer_arena(w);
    struct taps t = {.groups = arg_i64(n, "groups", 1)};
    bool transposed = arg_bool(n, "transposed");
    if (!arg_ref(w, n, "input", &t.x) || !arg_ref(w, n, "weight", &t.weight))
        return cannot(w, n, "a convolution of no tensors");
    t.vx = graph_value(writer_graph(w), t.x);
    t.vw = graph_value(writer_graph(w), t.weight);
    if (t.vx->rank < 3 || t.vx->rank > 5 || t.vw->rank != t.vx->rank || t.groups < 1)
        return cannot(w, n, "a convolution of rank %zu", t.vx->rank);
    t.window = t.vx->rank - 2;
    t.px[0] = at[0];
    if (transposed)
        transposed_taps(w, n, &t, at);
    else
        forward_taps(w, n, &t, at);
    channels(w, &t, transposed, n->outs[out].extent[1], at);
    struct ex x = t.leaves ? read_padded(w, t.x, t.px, "0") : read_at(w, t.x, t.px);
    struct ex body = times(a, x, read_at(w, t.weight, t.pw));
    struct ex sum = t.nvars          ? reduction(w, "sum", t.vars, t.nvars, t.guard, body)
                    : t.guard.text.n ? ex_if(a, t.guard, body, ex_of(S("0")))
                                     : body;
    struct ref bias;
    return arg_ref(w, n, "bias", &bias) ? ex_add(a, sum, read_at(w, bias, at + 1)) : sum;
}
