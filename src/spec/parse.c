/* A task file, line by line, in two passes (parse.h). Every message names the place and, where one
 * is known, the remedy. */
#include "spec/parse.h"

#include "base/file.h"
#include "spec/pattern.h"
#include <stdio.h>
#include <string.h>

#define CHECKS_MOST 64

/* Where right sides begin. */
struct reader {
    struct parser p;
    struct lexer bodies[TASK_MAX_STATEMENTS];
    struct lexer defined[TASK_MAX_TENSORS];
};

static const char *const keywords[] = {"task", "dim",   "in",    "param",    "out",
                                       "let",  "check", "torch", "accuracy", "assume",
                                       "rand", "inout", "if",    "inf",      "pad"};

bool word_is_reserved(str name) {
    enum dtype t;
    enum reduction r;
    enum function f;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_is(name, keywords[i]))
            return true;
    return function_find(name, &f) || reduction_find(name, &r) || dtype_find(name, &t);
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
    char quoted[8];
    snprintf(quoted, sizeof quoted, "'%s'", symbol);
    return token_is(&p->tok, symbol) ? parse_next(p) : parse_expected(p, quoted, hint);
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

int dim_find(const struct task *t, str name) {
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

/* Notes where the right side begins and goes on to the next line. */
static bool skip_body(struct reader *r, const struct statement *s, bool input) {
    struct parser *p = &r->p;
    struct task *t = p->task;
    struct lexer before = p->lx;
    if (!token_is(&p->tok, "="))
        return parse_expected(p, "'='", "y[i,j] = expression");
    if (!input && t->nstatements == TASK_MAX_STATEMENTS)
        return parse_fail(p, s->at, s->len, NULL, "more than %d definitions", TASK_MAX_STATEMENTS);
    if (input) {
        r->defined[t->ndefinitions] = before;
        t->definitions[t->ndefinitions++] = *s;
    } else {
        r->bodies[t->nstatements] = before;
        t->statements[t->nstatements++] = *s;
    }
    do {
        if (!parse_next(p))
            return false;
    } while (!parse_at_line_end(p));
    return true;
}

static bool read_tensor(struct reader *r, enum tensor_role role) {
    struct statement s = {0};
    return parse_tensor(&r->p, role, &s) && (!token_is(&r->p.tok, "=") || skip_body(r, &s, true));
}

static bool read_let(struct reader *r) {
    struct statement s = {0};
    return parse_let(&r->p, &s) && skip_body(r, &s, false);
}

static bool read_definition(struct reader *r) {
    struct statement s = {0};
    return parse_definition(&r->p, &s) && skip_body(r, &s, false);
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
    if (p->has_accuracy)
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "a second accuracy line");
    p->has_accuracy = true;
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
    static const struct {
        const char *word;
        enum tensor_role role;
    } roles[] = {{"in", TENSOR_IN},
                 {"param", TENSOR_PARAM},
                 {"out", TENSOR_OUT},
                 {"rand", TENSOR_RAND},
                 {"inout", TENSOR_INOUT}};
    struct parser *p = &r->p;
    const struct token *t = &p->tok;
    if (t->kind != TOKEN_NAME)
        return parse_expected(p, "a declaration or a definition", NULL);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (token_is_name(t, roles[i].word))
            return read_tensor(r, roles[i].role);
    if (token_is_name(t, "dim"))
        return parse_dims(p);
    if (token_is_name(t, "let"))
        return read_let(r);
    if (token_is_name(t, "assume"))
        return parse_assume(p);
    if (token_is_name(t, "check"))
        return parse_check(p);
    if (token_is_name(t, "torch"))
        return parse_torch(p);
    if (token_is_name(t, "accuracy"))
        return parse_accuracy(p);
    if (token_is_name(t, "task"))
        return parse_fail(p, t->at, t->len, NULL, "a second task in one file");
    return read_definition(r);
}

static bool keeps_whole(const struct expr *e) {
    switch (e->kind) {
    case EXPR_NEG:
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_IF:
    case EXPR_PAD:
        return true;
    case EXPR_CALL:
        return function_info(e->function)->result == RESULT_KEPT;
    case EXPR_REDUCE:
        return e->reduce->op != REDUCTION_MEAN;
    default:
        return false;
    }
}

/* Whole by construction: what may be stored in an integer tensor. */
static bool is_whole(const struct expr *e) {
    if (e->value_kind == VALUE_INT)
        return true;
    if (e->kind == EXPR_CALL && function_info(e->function)->result == RESULT_WHOLE)
        return true;
    bool whole = keeps_whole(e);
    for (size_t i = e->kind == EXPR_IF; whole && i < e->nargs; i++)
        whole = is_whole(e->args[i]);
    return whole;
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

/* A name declared further down must not be an index here. */
static bool check_indices(struct parser *p, const struct statement *s) {
    for (size_t i = 0; i < s->nindex; i++)
        if (dim_find(p->task, s->index[i]) >= 0 || tensor_find(p->task, s->index[i]) >= 0)
            return parse_fail(p, s->at, s->len, "choose another name for the index",
                              "the index '%.*s' is also the name of a %s", STR_ARG(s->index[i]),
                              dim_find(p->task, s->index[i]) >= 0 ? "dimension" : "tensor");
    return true;
}

static const char *hint_after(const struct token *t) {
    return token_is(t, "=")   ? "equality is =="
           : token_is(t, "|") ? "a guard stands in the brackets of a reduction, sum(k | k > 0); "
                                "'or' is ||"
                              : NULL;
}

static bool parse_body(struct parser *p, struct statement *s, struct lexer from) {
    p->lx = from;
    p->scope = s;
    if (!check_indices(p, s) || !parse_next(p) || !parse_expression(p, &s->body))
        return false;
    if (!parse_at_line_end(p))
        return parse_expected(p, "an operator or the end of the line", hint_after(&p->tok));
    s->len = p->end - s->at;
    return check_store(p, s);
}

static bool parse_statement(struct parser *p, struct statement *s, struct lexer from) {
    s->nvars = s->nindex;
    p->reading = READING_TASK;
    return parse_body(p, s, from);
}

/* An input's definition: its indices were named, or are as they come. */
static bool parse_input(struct parser *p, struct statement *s, struct lexer from) {
    const struct tensor *t = &p->task->tensors[s->tensor];
    s->nvars = t->rank;
    p->implicit = s->nindex ? 0 : t->rank;
    p->reading = READING_GIVEN;
    if (!parse_body(p, s, from))
        return false;
    p->implicit = 0;
    return s->nindex == t->rank ||
           parse_fail(p, s->at, t->len, "name them: in a[i < N, j < M] : f32 = …",
                      "the definition of '%.*s' uses %zu of its %zu indices", STR_ARG(t->name),
                      s->nindex, t->rank);
}

static bool parse_bodies(struct reader *r) {
    struct task *t = r->p.task;
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (!parse_input(&r->p, &t->definitions[i], r->defined[i]))
            return false;
    for (size_t i = 0; i < t->nstatements; i++)
        if (!parse_statement(&r->p, &t->statements[i], r->bodies[i]))
            return false;
    return true;
}

static bool check_complete(struct parser *p) {
    const struct task *t = p->task;
    size_t outputs = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        bool defined = !tensor_is_output(&t->tensors[i]);
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
    if (!check_complete(p) || !parse_bodies(r) || !task_order(p))
        return false;
    pattern_mark_factors(p->task);
    return true;
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
    t->statements = arena_array(a, struct statement, TASK_MAX_STATEMENTS);
    t->definitions = arena_array(a, struct statement, TASK_MAX_TENSORS);
    t->assumptions = arena_array(a, struct assumption, TASK_MAX_STATEMENTS);
    t->checks = arena_array(a, struct check_line, CHECKS_MOST);
    r->p = (struct parser){.language = &task_language,
                           .lx = lex_start(&task_language.lex, t->file, t->text),
                           .arena = a,
                           .task = t,
                           .err = err};
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
