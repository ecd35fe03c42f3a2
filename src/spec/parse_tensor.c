/* Declarations of dimensions and tensors: everything that a line says before its mathematics. */
#include "spec/parse.h"

#include <stdio.h>

/* A name that is about to be declared. */
bool parse_new_name(struct parser *p, const char *what, struct token *out) {
    const struct token *t = &p->tok;
    if (t->kind != TOKEN_NAME)
        return parse_expected(p, what, NULL);
    if (word_is_reserved(t->text))
        return parse_fail(p, t->at, t->len, "choose another name",
                          "'%.*s' is a word of the language", STR_ARG(t->text));
    if (dim_find(p->task, t->text) >= 0 || tensor_find(p->task, t->text) >= 0)
        return parse_fail(p, t->at, t->len, NULL, "'%.*s' is declared already", STR_ARG(t->text));
    *out = *t;
    return parse_next(p);
}

static bool uses_dim(const struct expr *e) {
    if (e->kind == EXPR_DIM)
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (uses_dim(e->args[i]))
            return true;
    return false;
}

/* An integer over the dimensions declared so far. */
bool parse_dim_expression(struct parser *p, struct expr **out) {
    p->scope = NULL;
    p->reading = READING_NOTHING;
    if (!parse_expression(p, out))
        return false;
    return (*out)->value_kind == VALUE_INT ||
           parse_fail(p, (*out)->at, (*out)->len, "// divides integers",
                      "a dimension must be an integer");
}

bool parse_dims(struct parser *p) {
    do {
        struct token name;
        struct dim d = {0};
        if (!parse_next(p) || !parse_new_name(p, "the name of a dimension", &name) ||
            !parse_symbol(p, "=", "dim N = 1024") || !parse_dim_expression(p, &d.value))
            return false;
        if (p->task->ndims == TASK_MAX_DIMS)
            return parse_fail(p, name.at, name.len, NULL, "more than %d dimensions", TASK_MAX_DIMS);
        d.name = name.text;
        d.derived = uses_dim(d.value);
        d.at = name.at;
        d.len = p->end - name.at;
        p->task->dims[p->task->ndims++] = d;
    } while (token_is(&p->tok, ","));
    return true;
}

bool parse_dtype(struct parser *p, enum dtype *out) {
    if (p->tok.kind != TOKEN_NAME || !dtype_find(p->tok.text, out))
        return parse_expected(p, "an element type",
                              "types are f64 f32 f16 bf16 i8 u8 i32 i64 bool");
    return parse_next(p);
}

/* `i <` before an extent names the index of a definition. */
static bool names_index(const struct parser *p) {
    struct lexer ahead = p->lx;
    struct token next;
    struct err ignored = {0};
    return p->tok.kind == TOKEN_NAME && dim_find(p->task, p->tok.text) < 0 &&
           lex_next(&ahead, &next, &ignored) && token_is(&next, "<");
}

static bool parse_index_name(struct parser *p, struct statement *s) {
    struct token name;
    if (!parse_new_name(p, "an index variable", &name))
        return false;
    for (size_t i = 0; i < s->nindex; i++)
        if (str_eq(s->index[i], name.text))
            return parse_fail(p, name.at, name.len, NULL, "the index variable '%.*s' stands twice",
                              STR_ARG(name.text));
    s->index[s->nindex++] = name.text;
    return parse_next(p);
}

static bool parse_extents(struct parser *p, struct tensor *t, struct statement *s) {
    if (!token_is(&p->tok, "["))
        return true;
    do {
        if (t->rank == TASK_MAX_RANK)
            return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d dimensions in a tensor",
                              TASK_MAX_RANK);
        if (!parse_next(p) || (names_index(p) && !parse_index_name(p, s)) ||
            !parse_dim_expression(p, &t->extent[t->rank++]))
            return false;
    } while (token_is(&p->tok, ","));
    return parse_symbol(p, "]", "x[N, 2*M] : f32");
}

static const struct {
    const char *name;
    enum dist_kind kind;
    int args;
} dists[] = {
    {"uniform", DIST_UNIFORM, 2},     {"normal", DIST_NORMAL, 2}, {"randint", DIST_RANDINT, 2},
    {"bernoulli", DIST_BERNOULLI, 1}, {"ones", DIST_ONES, 0},     {"zeros", DIST_ZEROS, 0},
};

static bool check_dist(struct parser *p, const struct token *at, const struct tensor *t) {
    char kind = dtype_info(t->dtype)->kind;
    enum dist_kind d = t->dist.kind;
    if ((d == DIST_UNIFORM || d == DIST_NORMAL) && kind != 'f')
        return parse_fail(p, at->at, at->len,
                          kind == 'b' ? "bernoulli(p) makes truth values"
                                      : "randint(lo, hi) makes integers from lo to hi - 1",
                          "%.*s makes real numbers, the tensor is %s", STR_ARG(at->text),
                          dtype_info(t->dtype)->name);
    if (d == DIST_RANDINT && kind == 'b')
        return parse_fail(p, at->at, at->len, "bernoulli(p) makes truth values",
                          "randint makes integers, the tensor is bool");
    return true;
}

static bool dist_argument(struct parser *p, struct expr **out) {
    return parse_expression(p, out) &&
           ((*out)->value_kind != VALUE_BOOL ||
            parse_fail(p, (*out)->at, (*out)->len, NULL, "a distribution takes numbers"));
}

static bool parse_dist(struct parser *p, struct tensor *t) {
    struct token name = p->tok;
    size_t i = 0;
    while (i < sizeof dists / sizeof *dists && !token_is_name(&name, dists[i].name))
        i++;
    if (i == sizeof dists / sizeof *dists)
        return parse_expected(p, "a distribution",
                              "uniform(a, b) normal(mean, deviation) randint(lo, hi) bernoulli(p) "
                              "ones zeros");
    t->dist.kind = dists[i].kind;
    p->scope = NULL;
    p->reading = READING_NOTHING;
    if (!parse_next(p) || !check_dist(p, &name, t))
        return false;
    if (dists[i].args == 0)
        return true;
    char hint[64];
    snprintf(hint, sizeof hint, "%s takes %d argument%s", dists[i].name, dists[i].args,
             dists[i].args == 1 ? "" : "s");
    if (!parse_symbol(p, "(", hint) || !dist_argument(p, &t->dist.a))
        return false;
    if (dists[i].args == 2 && (!parse_symbol(p, ",", hint) || !dist_argument(p, &t->dist.b)))
        return false;
    return parse_symbol(p, ")", hint);
}

bool add_tensor(struct parser *p, const struct tensor *t) {
    if (p->task->ntensors == TASK_MAX_TENSORS)
        return parse_fail(p, t->at, t->len, NULL, "more than %d tensors", TASK_MAX_TENSORS);
    p->task->tensors[p->task->ntensors++] = *t;
    return true;
}

/* Where an input's content comes from: a distribution, or the expression after the `=`. */
static bool parse_content(struct parser *p, struct tensor *t, const struct statement *s) {
    bool defined = token_is(&p->tok, "=");
    if (t->role == TENSOR_RAND && defined)
        return parse_fail(p, p->tok.at, p->tok.len, "rand r[N] ~ uniform(0,1)",
                          "random numbers state a distribution");
    if (defined && s->nindex && s->nindex != t->rank)
        return parse_fail(p, t->at, t->len, "in a[i < N, j < N] : f32 = …",
                          "%zu of %zu indices are named; name all or none", s->nindex, t->rank);
    if (!defined && s->nindex)
        return parse_fail(p, t->at, t->len, "in x[N] : f32 ~ uniform(0,1)",
                          "indices are named where an expression defines the tensor");
    if (defined)
        t->dist.kind = DIST_DEFINED;
    return defined ||
           (parse_symbol(p, "~",
                         t->role == TENSOR_RAND
                             ? "random numbers state their distribution: ~ uniform(0,1)"
                             : "an input states its distribution, ~ uniform(0,1), or is defined "
                               "from random numbers, = 2*r[i]") &&
            parse_dist(p, t));
}

bool parse_tensor(struct parser *p, enum tensor_role role, struct statement *s) {
    struct tensor t = {.role = role, .dtype = DTYPE_F32};
    struct token name;
    if (!parse_next(p) || !parse_new_name(p, "the name of a tensor", &name) ||
        !parse_extents(p, &t, s))
        return false;
    bool typed = role != TENSOR_RAND || token_is(&p->tok, ":");
    if (typed && (!parse_symbol(p, ":", "every tensor states its type: x[N] : f32") ||
                  !parse_dtype(p, &t.dtype)))
        return false;
    t.name = name.text;
    t.at = s->at = name.at;
    t.len = s->len = p->end - name.at;
    s->tensor = p->task->ntensors;
    for (size_t i = 0; i < t.rank; i++)
        s->position[i] = (int)i;
    if (role == TENSOR_OUT && token_is(&p->tok, "~"))
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "an output has no distribution");
    if (role == TENSOR_OUT && token_is(&p->tok, "="))
        return parse_fail(p, p->tok.at, p->tok.len, "y[i] = … on a line of its own",
                          "an output is declared first and defined on another line");
    if (role == TENSOR_OUT && s->nindex)
        return parse_fail(p, t.at, t.len, "out y[N] : f32",
                          "the indices of an output are named where it is defined");
    return (role == TENSOR_OUT || parse_content(p, &t, s)) && add_tensor(p, &t);
}
