/* Declarations of a task file, in two passes (parse.h). Every message names the place and, where
 * one is known, the remedy. */
#include "spec/parse.h"

#include "base/file.h"
#include <stdio.h>
#include <string.h>

#define CHECKS_MOST 64

struct reader {
    struct parser p;
    struct lexer bodies[TASK_MAX_TENSORS]; /* where each statement's right side begins */
};

static const char *const keywords[] = {"task", "dim",   "in",    "param",    "out",
                                       "let",  "check", "torch", "accuracy", "assume",
                                       "rand", "inout", "if",    "inf"};

static const struct {
    const char *word, *what;
} missing[] = {
    {"sum", "a reduction"},    {"prod", "a reduction"}, {"max", "a reduction"},
    {"min", "a reduction"},    {"mean", "a reduction"}, {"argmax", "a reduction"},
    {"argmin", "a reduction"}, {"pad", "padding"},
};

const char *word_missing(str name) {
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (str_is(name, missing[i].word))
            return missing[i].what;
    return NULL;
}

bool word_is_reserved(str name) {
    enum dtype t;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_is(name, keywords[i]))
            return true;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (str_is(name, function_name((enum function)i)))
            return true;
    return word_missing(name) || dtype_find(name, &t);
}

bool parse_next(struct parser *p) {
    p->end = p->tok.at + p->tok.len;
    return lex_next(&p->lx, &p->tok, p->err);
}

bool parse_fail(struct parser *p, size_t at, size_t len, const char *hint, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_at(p->err, p->lx.file, p->lx.text, at, len, hint, "%s", text);
}

bool parse_expected(struct parser *p, const char *what, const char *hint) {
    const struct token *t = &p->tok;
    if (t->kind == TOKEN_END)
        return parse_fail(p, t->at, 0, hint, "expected %s, found the end of the file", what);
    if (t->kind == TOKEN_LINE)
        return parse_fail(p, t->at, 0, hint, "expected %s, found the end of the line", what);
    return parse_fail(p, t->at, t->len, hint, "expected %s, found '%.*s'", what, STR_ARG(t->text));
}

bool parse_symbol(struct parser *p, const char *symbol, const char *hint) {
    return token_is(&p->tok, symbol) ? parse_next(p) : parse_expected(p, symbol, hint);
}

bool parse_at_line_end(const struct parser *p) {
    return p->tok.kind == TOKEN_LINE || p->tok.kind == TOKEN_END;
}

static bool finish_line(struct parser *p) {
    if (p->tok.kind == TOKEN_END)
        return true;
    return p->tok.kind == TOKEN_LINE ? parse_next(p)
                                     : parse_expected(p, "the end of the line", NULL);
}

static int dim_find(const struct task *t, str name) {
    for (size_t i = 0; i < t->ndims; i++)
        if (str_eq(t->dims[i].name, name))
            return (int)i;
    return -1;
}

int tensor_find(const struct task *t, str name) {
    for (size_t i = 0; i < t->ntensors; i++)
        if (str_eq(t->tensors[i].name, name))
            return (int)i;
    return -1;
}

/* A name that is about to be declared. */
static bool new_name(struct parser *p, const char *what, struct token *out) {
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
static bool dim_expression(struct parser *p, struct expr **out) {
    p->scope = NULL;
    if (!parse_expression(p, out))
        return false;
    return (*out)->value_kind == VALUE_INT ||
           parse_fail(p, (*out)->at, (*out)->len, "// divides integers",
                      "a dimension must be an integer");
}

static bool parse_dims(struct parser *p) {
    do {
        struct token name;
        struct dim d = {0};
        if (!parse_next(p) || !new_name(p, "the name of a dimension", &name) ||
            !parse_symbol(p, "=", "dim N = 1024") || !dim_expression(p, &d.value))
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

static bool parse_dtype(struct parser *p, enum dtype *out) {
    if (p->tok.kind != TOKEN_NAME || !dtype_find(p->tok.text, out))
        return parse_expected(p, "an element type",
                              "types are f64 f32 f16 bf16 i8 u8 i32 i64 bool");
    return parse_next(p);
}

static bool parse_extents(struct parser *p, struct tensor *t) {
    if (!token_is(&p->tok, "["))
        return true;
    do {
        if (t->rank == TASK_MAX_RANK)
            return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d dimensions in a tensor",
                              TASK_MAX_RANK);
        if (!parse_next(p) || !dim_expression(p, &t->extent[t->rank++]))
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

static bool add_tensor(struct parser *p, const struct tensor *t) {
    if (p->task->ntensors == TASK_MAX_TENSORS)
        return parse_fail(p, t->at, t->len, NULL, "more than %d tensors", TASK_MAX_TENSORS);
    p->task->tensors[p->task->ntensors++] = *t;
    return true;
}

static bool parse_tensor(struct parser *p, enum tensor_role role) {
    struct tensor t = {.role = role};
    struct token name;
    if (!parse_next(p) || !new_name(p, "the name of a tensor", &name) || !parse_extents(p, &t) ||
        !parse_symbol(p, ":", "every tensor states its type: x[N] : f32") ||
        !parse_dtype(p, &t.dtype))
        return false;
    t.name = name.text;
    t.at = name.at;
    t.len = p->end - name.at;
    if (role != TENSOR_OUT) {
        if (token_is(&p->tok, "="))
            return parse_fail(p, p->tok.at, p->tok.len, "~ uniform(0,1)",
                              "an input defined by an expression; this version's language covers "
                              "inputs by distribution");
        if (!parse_symbol(p, "~", "an input states its distribution: ~ uniform(0,1)") ||
            !parse_dist(p, &t))
            return false;
    } else if (token_is(&p->tok, "~")) {
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "an output has no distribution");
    }
    return add_tensor(p, &t);
}

/* One index variable on the left, with its range where a let states it: `i < N-1`. */
static bool parse_left_index(struct parser *p, struct statement *s, struct tensor *let) {
    struct token t = p->tok;
    if (t.kind == TOKEN_NUMBER)
        return parse_fail(p, t.at, t.len, NULL,
                          "a constant index on the left; this version's language covers pointwise "
                          "definitions, with an index variable for each dimension");
    if (s->nindex == TASK_MAX_RANK)
        return parse_fail(p, t.at, t.len, NULL, "more than %d dimensions in a tensor",
                          TASK_MAX_RANK);
    if (!new_name(p, "an index variable", &t))
        return false;
    for (size_t i = 0; i < s->nindex; i++)
        if (str_eq(s->index[i], t.text))
            return parse_fail(p, t.at, t.len, "each dimension has a variable of its own",
                              "the index variable '%.*s' stands twice on the left",
                              STR_ARG(t.text));
    s->index[s->nindex++] = t.text;
    if (!token_is(&p->tok, "<"))
        return true;
    if (!let)
        return parse_fail(p, p->tok.at, p->tok.len, NULL,
                          "the range of an output's index is its declared dimension");
    return parse_next(p) && dim_expression(p, &let->extent[s->nindex - 1]);
}

static bool parse_left(struct parser *p, struct statement *s, struct tensor *let) {
    if (!token_is(&p->tok, "["))
        return true;
    do {
        if (!parse_next(p) || !parse_left_index(p, s, let))
            return false;
    } while (token_is(&p->tok, ","));
    return parse_symbol(p, "]", "the index variables of the left side end with ]");
}

/* Notes where the right side begins and goes on to the next line. */
static bool skip_body(struct reader *r, const struct statement *s) {
    struct parser *p = &r->p;
    struct lexer before = p->lx;
    if (!token_is(&p->tok, "="))
        return parse_expected(p, "=", "y[i,j] = expression");
    r->bodies[p->task->nstatements] = before;
    p->task->statements[p->task->nstatements++] = *s;
    do {
        if (!parse_next(p))
            return false;
    } while (!parse_at_line_end(p));
    return true;
}

static bool parse_let(struct reader *r) {
    struct parser *p = &r->p;
    struct tensor t = {.role = TENSOR_LET, .dtype = DTYPE_F64};
    struct statement s = {0};
    struct token name;
    if (!parse_next(p) || !new_name(p, "the name of a let", &name) || !parse_left(p, &s, &t))
        return false;
    t.name = name.text;
    t.rank = s.nindex;
    t.at = s.at = name.at;
    t.len = s.len = p->end - name.at;
    if (token_is(&p->tok, ":") && (!parse_next(p) || !parse_dtype(p, &t.dtype)))
        return false;
    s.tensor = p->task->ntensors;
    return add_tensor(p, &t) && skip_body(r, &s);
}

static bool parse_definition(struct reader *r) {
    struct parser *p = &r->p;
    struct token name = p->tok;
    int found = tensor_find(p->task, name.text);
    struct statement s = {.at = name.at};
    if (found < 0)
        return parse_fail(p, name.at, name.len,
                          "a line begins with task dim in param out let check torch accuracy, or "
                          "with an output declared above",
                          "'%.*s' is neither a declaration nor an output", STR_ARG(name.text));
    const struct tensor *t = &p->task->tensors[found];
    if (t->role != TENSOR_OUT)
        return parse_fail(p, name.at, name.len, "only outputs are defined this way", "'%.*s' is %s",
                          STR_ARG(name.text),
                          t->role == TENSOR_LET ? "defined by its let" : "an input");
    for (size_t i = 0; i < p->task->nstatements; i++)
        if (p->task->statements[i].tensor == (size_t)found)
            return parse_fail(p, name.at, name.len, NULL, "'%.*s' is defined already",
                              STR_ARG(name.text));
    if (!parse_next(p) || !parse_left(p, &s, NULL))
        return false;
    s.tensor = (size_t)found;
    s.len = p->end - name.at;
    if (s.nindex != t->rank)
        return parse_fail(p, s.at, s.len, NULL, "'%.*s' has %zu dimension%s, here are %zu",
                          STR_ARG(name.text), t->rank, t->rank == 1 ? "" : "s", s.nindex);
    return skip_body(r, &s);
}

static bool parse_binding(struct parser *p, struct check_line *c) {
    struct token name = p->tok, value;
    int d = name.kind == TOKEN_NAME ? dim_find(p->task, name.text) : -1;
    if (d < 0)
        return parse_expected(p, "a dimension", "check N = 7, M = 257");
    if (p->task->dims[d].derived)
        return parse_fail(p, name.at, name.len, "set the dimensions it follows from",
                          "'%.*s' follows from other dimensions", STR_ARG(name.text));
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->set[i].name, name.text))
            return parse_fail(p, name.at, name.len, NULL, "'%.*s' is set twice",
                              STR_ARG(name.text));
    if (!parse_next(p) || !parse_symbol(p, "=", "check N = 7"))
        return false;
    value = p->tok;
    if (value.kind != TOKEN_NUMBER || !value.integral)
        return parse_expected(p, "a whole number", NULL);
    if (value.integer < 1)
        return parse_fail(p, value.at, value.len, NULL, "a dimension must be at least 1");
    c->set[c->n++] = (struct binding){name.text, value.integer};
    return parse_next(p);
}

static bool parse_check(struct parser *p) {
    struct check_line c = {.at = p->tok.at};
    if (p->task->nchecks == CHECKS_MOST)
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d check lines", CHECKS_MOST);
    c.set = arena_array(p->arena, struct binding, TASK_MAX_DIMS);
    do {
        if (!parse_next(p) || !parse_binding(p, &c))
            return false;
    } while (token_is(&p->tok, ","));
    c.len = p->end - c.at;
    p->task->checks[p->task->nchecks++] = c;
    return true;
}

static str unescape(struct arena *a, str s) {
    char *out = arena_array(a, char, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        i += s.p[i] == '\\' && i + 1 < s.n && (s.p[i + 1] == '"' || s.p[i + 1] == '\\');
        out[n++] = s.p[i];
    }
    return (str){out, n};
}

static bool parse_torch(struct parser *p) {
    if (p->task->torch.n)
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "a second torch line");
    if (!parse_next(p))
        return false;
    if (p->tok.kind != TOKEN_STRING || p->tok.text.n == 0)
        return parse_expected(p, "a text", "torch \"torch.relu(x)\"");
    p->task->torch = unescape(p->arena, p->tok.text);
    return parse_next(p);
}

static bool parse_accuracy(struct parser *p) {
    if (!parse_next(p))
        return false;
    for (int i = 0; i < ACCURACY_COUNT; i++)
        if (token_is_name(&p->tok, accuracy_name((enum accuracy)i))) {
            p->task->accuracy = (enum accuracy)i;
            return parse_next(p);
        }
    return parse_expected(p, "an accuracy class", "classes are fp32 tf32 f16 bf16");
}

static bool parse_head(struct parser *p) {
    if (!token_is_name(&p->tok, "task"))
        return parse_expected(p, "'task'", "a file begins with: task NAME \"title\"");
    if (!parse_next(p))
        return false;
    if (p->tok.kind != TOKEN_NAME)
        return parse_expected(p, "the task's name", "task relu \"Rectified linear unit\"");
    p->task->name = p->tok.text;
    if (!parse_next(p))
        return false;
    if (p->tok.kind != TOKEN_STRING || p->tok.text.n == 0)
        return parse_expected(p, "the task's title", "task relu \"Rectified linear unit\"");
    p->task->title = unescape(p->arena, p->tok.text);
    return parse_next(p) && finish_line(p);
}

static bool parse_line(struct reader *r) {
    struct parser *p = &r->p;
    const struct token *t = &p->tok;
    if (t->kind != TOKEN_NAME)
        return parse_expected(p, "a declaration or a definition", NULL);
    if (token_is_name(t, "dim"))
        return parse_dims(p);
    if (token_is_name(t, "in"))
        return parse_tensor(p, TENSOR_IN);
    if (token_is_name(t, "param"))
        return parse_tensor(p, TENSOR_PARAM);
    if (token_is_name(t, "out"))
        return parse_tensor(p, TENSOR_OUT);
    if (token_is_name(t, "let"))
        return parse_let(r);
    if (token_is_name(t, "check"))
        return parse_check(p);
    if (token_is_name(t, "torch"))
        return parse_torch(p);
    if (token_is_name(t, "accuracy"))
        return parse_accuracy(p);
    if (token_is_name(t, "assume") || token_is_name(t, "rand") || token_is_name(t, "inout"))
        return parse_fail(p, t->at, t->len, NULL,
                          "'%.*s' declarations are not in this version's language, which covers "
                          "pointwise expressions of inputs by distribution",
                          STR_ARG(t->text));
    if (token_is_name(t, "task"))
        return parse_fail(p, t->at, t->len, NULL, "a second task in one file");
    return parse_definition(r);
}

/* Whole by construction: what may be stored in an integer tensor. */
static bool is_whole(const struct expr *e) {
    if (e->value_kind == VALUE_INT || (e->kind == EXPR_CALL && e->function == FUNCTION_FLOOR))
        return true;
    bool keeps = e->kind == EXPR_NEG || e->kind == EXPR_ADD || e->kind == EXPR_SUB ||
                 e->kind == EXPR_MUL || e->kind == EXPR_IF ||
                 (e->kind == EXPR_CALL &&
                  (e->function == FUNCTION_ABS || e->function == FUNCTION_MAXIMUM ||
                   e->function == FUNCTION_MINIMUM || e->function == FUNCTION_CLAMP));
    for (size_t i = e->kind == EXPR_IF; keeps && i < e->nargs; i++)
        keeps = is_whole(e->args[i]);
    return keeps;
}

static bool check_store(struct parser *p, const struct statement *s) {
    const struct tensor *t = &p->task->tensors[s->tensor];
    const struct expr *e = s->body;
    const char *type = dtype_info(t->dtype)->name;
    char kind = dtype_info(t->dtype)->kind;
    bool truth = e->value_kind == VALUE_BOOL;
    if (truth && kind != 'b')
        return parse_fail(p, e->at, e->len,
                          t->role == TENSOR_LET ? "give the let the type bool: let m[i] : bool = …"
                                                : "if(condition, 1, 0) makes a number",
                          "a truth value for '%.*s' of type %s", STR_ARG(t->name), type);
    if (!truth && kind == 'b')
        return parse_fail(p, e->at, e->len, "compare it: x != 0",
                          "a number for '%.*s' of type bool", STR_ARG(t->name));
    if ((kind == 'i' || kind == 'u') && !is_whole(e))
        return parse_fail(p, e->at, e->len, "floor(…) makes it whole",
                          "a real number for '%.*s' of type %s", STR_ARG(t->name), type);
    return true;
}

static bool parse_body(struct reader *r, size_t i) {
    struct parser *p = &r->p;
    struct statement *s = &p->task->statements[i];
    p->lx = r->bodies[i];
    p->scope = s;
    if (!parse_next(p) || !parse_expression(p, &s->body))
        return false;
    if (!parse_at_line_end(p))
        return parse_expected(p, "an operator or the end of the line",
                              token_is(&p->tok, "=") ? "equality is ==" : NULL);
    s->len = p->end - s->at;
    return check_store(p, s);
}

static bool check_complete(struct parser *p) {
    const struct task *t = p->task;
    size_t outputs = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        bool defined = t->tensors[i].role != TENSOR_OUT;
        outputs += !defined;
        for (size_t k = 0; k < t->nstatements; k++)
            defined |= t->statements[k].tensor == i;
        if (!defined)
            return parse_fail(p, t->tensors[i].at, t->tensors[i].len, NULL,
                              "the output '%.*s' is never defined", STR_ARG(t->tensors[i].name));
    }
    return outputs || parse_fail(p, p->lx.text.n, 0, "out y[N] : f32", "the task has no output");
}

static bool read_all(struct reader *r) {
    struct parser *p = &r->p;
    if (!parse_next(p) || !parse_head(p))
        return false;
    while (p->tok.kind != TOKEN_END)
        if (!parse_line(r) || !finish_line(p))
            return false;
    if (!check_complete(p))
        return false;
    for (size_t i = 0; i < p->task->nstatements; i++)
        if (!parse_body(r, i))
            return false;
    return task_order(p);
}

bool task_parse(str file, str text, struct arena *a, struct task **out, struct err *err) {
    if (text.n > TASK_MAX_BYTES)
        return err_set(err, ERR_INPUT, "%.*s: a task file of %zu bytes; at most %u are read",
                       STR_ARG(file), text.n, TASK_MAX_BYTES);
    struct task *t = arena_new_of(a, struct task);
    struct reader *r = arena_new_of(a, struct reader);
    t->file = arena_str(a, file);
    t->text = arena_str(a, text);
    t->dims = arena_array(a, struct dim, TASK_MAX_DIMS);
    t->tensors = arena_array(a, struct tensor, TASK_MAX_TENSORS);
    t->statements = arena_array(a, struct statement, TASK_MAX_TENSORS);
    t->checks = arena_array(a, struct check_line, CHECKS_MOST);
    r->p = (struct parser){.lx = lex_start(t->file, t->text), .arena = a, .task = t, .err = err};
    if (!read_all(r))
        return false;
    *out = t;
    return true;
}

bool task_load(const char *path, struct arena *a, struct task **out, struct err *err) {
    str text;
    return file_read(path, TASK_MAX_BYTES, a, &text, err) &&
           task_parse(str_view(path), text, a, out, err);
}
