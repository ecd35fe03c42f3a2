/* Functions of a task's own and of the library: a call is its right side written out. */
#include "fixture.h"
#include "spec/expr.h"

#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 5, M = 6\nin x[N,M] : f32 ~ normal(0,1)\n"                              \
    "in w[M,N] : f32 ~ normal(0,1)\nout y[N] : f32\n"

static const struct pair {
    const char *called, *written;
} pairs[] = {
    {"y[i] = relu(x[i,0])", "y[i] = maximum(x[i,0], 0)"},
    {"y[i] = relu6(x[i,0])", "y[i] = clamp(x[i,0], 0, 6)"},
    {"y[i] = leaky_relu(x[i,0], 0.01)", "y[i] = if(x[i,0] > 0, x[i,0], 0.01*x[i,0])"},
    {"y[i] = elu(x[i,0], 1)", "y[i] = if(x[i,0] > 0, x[i,0], 1*expm1(x[i,0]))"},
    {"y[i] = celu(x[i,0], 2)", "y[i] = if(x[i,0] > 0, x[i,0], 2*expm1(x[i,0]/2))"},
    {"y[i] = selu(x[i,0])",
     "y[i] = 1.0507009873554805*if(x[i,0] > 0, x[i,0], 1.6732632423543772*expm1(x[i,0]))"},
    {"y[i] = silu(x[i,0])", "y[i] = x[i,0]*sigmoid(x[i,0])"},
    {"y[i] = gelu(x[i,0])", "y[i] = 0.5*x[i,0]*(1 + erf(x[i,0]*0.7071067811865476))"},
    {"y[i] = gelu_tanh(x[i,0])",
     "y[i] = 0.5*x[i,0]*(1 + tanh(0.7978845608028654*(x[i,0] + 0.044715*x[i,0]*x[i,0]*x[i,0])))"},
    {"y[i] = quick_gelu(x[i,0])", "y[i] = x[i,0]*sigmoid(1.702*x[i,0])"},
    {"y[i] = softplus(x[i,0])", "y[i] = maximum(x[i,0], 0) + log1p(exp(-abs(x[i,0])))"},
    {"y[i] = logsigmoid(x[i,0])", "y[i] = minimum(x[i,0], 0) - log1p(exp(-abs(x[i,0])))"},
    {"y[i] = mish(x[i,0])", "y[i] = x[i,0]*tanh(maximum(x[i,0], 0) + log1p(exp(-abs(x[i,0]))))"},
    {"y[i] = softsign(x[i,0])", "y[i] = x[i,0]/(1 + abs(x[i,0]))"},
    {"y[i] = tanhshrink(x[i,0])", "y[i] = x[i,0] - tanh(x[i,0])"},
    {"y[i] = hardtanh(x[i,0])", "y[i] = clamp(x[i,0], -1, 1)"},
    {"y[i] = hardsigmoid(x[i,0])", "y[i] = clamp((x[i,0] + 3)/6, 0, 1)"},
    {"y[i] = hardswish(x[i,0])", "y[i] = x[i,0]*clamp((x[i,0] + 3)/6, 0, 1)"},
    {"y[i] = hardshrink(x[i,0], 0.5)", "y[i] = if(abs(x[i,0]) > 0.5, x[i,0], 0)"},
    {"y[i] = softshrink(x[i,0], 0.5)",
     "y[i] = if(x[i,0] > 0.5, x[i,0] - 0.5, if(x[i,0] < -0.5, x[i,0] + 0.5, 0))"},
    {"y[i] = threshold(x[i,0], 0.1, 20)", "y[i] = if(x[i,0] > 0.1, x[i,0], 20)"},
    {"y[i] = square(x[i,0])", "y[i] = x[i,0]*x[i,0]"},
    {"y[i] = lerp(x[i,0], x[i,1], 0.25)", "y[i] = x[i,0] + 0.25*(x[i,1] - x[i,0])"},
    /* An argument with a reduction that serves twice is one let. */
    {"y[i] = silu(sum(k) x[i,k]*w[k,i])",
     "let t[i] = sum(k) x[i,k]*w[k,i]\ny[i] = t[i]*sigmoid(t[i])"},
    {"def glu(a, b) = silu(a)*b\ny[i] = glu(sum(k) x[i,k]*w[k,i], sum(k) x[i,k])",
     "let t[i] = sum(k) x[i,k]*w[k,i]\ny[i] = t[i]*sigmoid(t[i])*(sum(k) x[i,k])"},
    {"def first(a, b) = a\ny[i] = first(x[i,0], sum(k) x[i,k]) + sum(q) x[i,q]",
     "y[i] = x[i,0] + sum(k) x[i,k]"},
    {"y[i] = relu(sum(k) x[i,k]*w[k,i])", "y[i] = maximum(sum(k) x[i,k]*w[k,i], 0)"},
    {"y[i] = sum(k) silu(x[i,k])", "y[i] = sum(k) x[i,k]*sigmoid(x[i,k])"},
    /* Of the task's own. */
    {"def f(a, b) = a*b + N\ndef g(t) = f(t, 2) - f(3, t)\ny[i] = g(x[i,0])",
     "y[i] = x[i,0]*2 + N - (3*x[i,0] + N)"},
    {"y[i] = row(i)/2\ndef row(r) = sum(k) x[r,k]", "y[i] = (sum(k) x[i,k])/2"},
    {"def relu(t) = 2*t\ny[i] = relu(x[i,0])", "y[i] = 2*x[i,0]"},
    {"def both(c, d) = c && !d\ny[i] = if(both(x[i,0] > 0, i == 1), 1, 0)",
     "y[i] = if(x[i,0] > 0 && !(i == 1), 1, 0)"},
    {"def at(p, q) = x[p, q % M]\ny[i] = at(i, i + 3)", "y[i] = x[i, (i + 3) % M]"},
    /* Variables of its reductions are its own. */
    {"def f(t) = sum(k < 3) t*k\ny[i] = sum(k) f(x[i,k])", "y[i] = sum(k) sum(q < 3) x[i,k]*q"},
};

static bool same_task(const struct task *a, const struct task *b) {
    bool same = a->nstatements == b->nstatements;
    for (size_t i = 0; same && i < a->nstatements; i++)
        same = expr_same(a->statements[i].body, b->statements[i].body) &&
               a->statements[i].nvars == b->statements[i].nvars &&
               extents_same(&a->tensors[a->statements[i].tensor],
                            &b->tensors[b->statements[i].tensor]);
    return same;
}

static bool open_pair(const struct pair *r, struct fixture *a, struct fixture *b) {
    char text[2][1024];
    snprintf(text[0], sizeof text[0], "%s%s\n", HEAD, r->called);
    snprintf(text[1], sizeof text[1], "%s%s\n", HEAD, r->written);
    bool first = fixture_text(a, text[0]);
    return fixture_text(b, text[1]) && first;
}

static void check_references(struct fixture *a, struct fixture *b, const char *what) {
    for (int k = 0; k < DATA_COUNT; k++) {
        struct reference *x, *y;
        if (!fixture_data(a, (enum data_kind)k, 3) || !fixture_data(b, (enum data_kind)k, 3))
            return;
        x = &a->refs[0];
        y = &b->refs[0];
        CHECKF(memcmp(x->value, y->value, 5 * sizeof *x->value) == 0 &&
                   memcmp(x->estimate, y->estimate, 5 * sizeof *x->estimate) == 0,
               "%s on kind %d", what, k);
    }
}

static void calls_are_written_out(void) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct fixture a, b;
        if (open_pair(&pairs[i], &a, &b)) {
            CHECKF(same_task(a.task, b.task), "%s", pairs[i].called);
            check_references(&a, &b, pairs[i].called);
        }
        fixture_end(&a);
        fixture_end(&b);
    }
}

static const struct pair refused[] = {
    {"def f(t) = g(t)\ndef g(t) = t\ny[i] = f(1)", "t.task:6:12: the function 'g' is defined fur"},
    {"def f(t) = f(t)\ny[i] = f(1)", "t.task:6:12: the function 'f' calls itself"},
    {"def f(t) = t[0]\ny[i] = 1", "t.task:6:12: the parameter 't' is one value"},
    {"def f(t) = t + j\ny[i] = 1", "t.task:6:16: 'j' is not known here"},
    {"def f(t) = t + i\ny[i] = f(i)", "t.task:6:16: 'i' is not known here"},
    {"def f(c) = if(c, 1, 0)\ny[i] = f(x[i,0])",
     "t.task:7:10: a real number where a truth value is needed, in the function 'f' called at 7:8"},
    {"def f(p) = x[p+1,0]\ny[i] = f(i)", "the dimension has 5 elements (with N=5 M=6), in the "
                                         "function 'f' called at 7:8"},
    {"y[i] = relu(x[i,0] > 0)", "t.task:6:8: a truth value where a number is needed, in the "
                                "function 'relu'"},
    {"y[i] = relu(1, 2)", "t.task:6:8: relu takes 1 argument, not 2"},
    {"def sum(t) = t\ny[i] = 1", "t.task:6:5: 'sum' is a word of the language"},
    {"def f(t) = t\ndef f(t) = t\ny[i] = 1", "t.task:7:5: 'f' is defined already"},
    {"def f(t, t) = t\ny[i] = 1", "t.task:6:10: the parameter 't' stands twice"},
    {"def f(sum) = t\ny[i] = 1", "t.task:6:7: 'sum' is a word of the language"},
    {"def f() = 1\ny[i] = 1", "t.task:6:7: expected the name of a parameter"},
    {"def f(t) 1\ny[i] = 1", "t.task:6:10: expected '=', found '1'"},
    {"def f(t) = t 1\ny[i] = 1", "t.task:6:14: expected an operator or the end of the line"},
    {"def f(t) = t*t\ny[i] = f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(x[i,0])))))))))))))))))",
     "the functions of the task come to more than 65536 operations"},
    {"def f(t) = t*t + max(k) x[0,k]*t\ndef g(t) = f(f(f(f(f(f(f(f(t))))))))\n"
     "y[i] = sum(q) silu(g(g(x[i,q]))) + relu(g(g(sum(k) x[i,k])))",
     "the functions of the task come to more than 65536 operations"},
};

static void wrong_functions_are_explained(void) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct arena *a = arena_new((size_t)256 << 20);
        struct task *t;
        struct inst *in;
        struct err err = {0};
        char text[1024];
        snprintf(text, sizeof text, "%s%s\n", HEAD, refused[i].called);
        CHECKF(!task_parse(S("t.task"), str_view(text), a, &t, &err) ||
                   !task_bind(t, NULL, 0, a, &in, &err),
               "%s", refused[i].called);
        CHECKF(strstr(err.text, refused[i].written), "%s says %s", refused[i].called, err.text);
        arena_free(a);
    }
}

static const struct tap_case cases[] = {
    {"a call is its right side written out", calls_are_written_out},
    {"wrong functions and calls are explained", wrong_functions_are_explained},
};
TAP_CASES(cases)
