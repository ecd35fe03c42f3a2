/* Names and functions of plan arithmetic, and what every kind of line reads.
 *
 * `/` and `//` are both floor division: plans have integers only, and a model writes either. */
#include "kernel/plan.h"

#include <stdio.h>

bool reader_expect(struct plan_reader *r, const char *sign, const char *after) {
    if (token_is(&r->p.tok, sign))
        return parse_next(&r->p);
    if (r->p.tok.kind == TOKEN_END)
        return PLAN_FAIL(r, r->p.tok.at, 1, NULL,
                         "expected '%s' after %s, found the end of the line", sign, after);
    return PLAN_FAIL(r, r->p.tok.at, r->p.tok.text.n, NULL, "expected '%s' after %s, found '%.*s'",
                     sign, after, STR_ARG(r->p.tok.text));
}

bool reader_at_end(struct plan_reader *r, const char *after) {
    if (r->p.tok.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, r->p.tok.at, r->p.tok.text.n, NULL, "unexpected '%.*s' after %s",
                     STR_ARG(r->p.tok.text), after);
}

/* ---- names ---- */

bool plan_name_is_function(str name) {
    return str_is(name, "min") || str_is(name, "max") || str_is(name, "ceil_div");
}

enum arg_kind plan_name_find(const struct plan_reader *r, str name, size_t *ref) {
    int tensor = tensor_find(r->task, name);
    *ref = (size_t)tensor;
    if (tensor >= 0)
        return ARG_TENSOR;
    for (*ref = 0; r->c && *ref < r->c->nworkspaces; ++*ref)
        if (str_eq(r->c->workspaces[*ref].name, name))
            return ARG_WORKSPACE;
    for (*ref = 0; r->c && *ref < r->c->nmaps; ++*ref)
        if (str_eq(r->c->maps[*ref].name, name))
            return ARG_TENSORMAP;
    return ARG_INTEGER;
}

const char *plan_kind_name(enum arg_kind kind) {
    static const char *const names[] = {[ARG_INTEGER] = "a number",
                                        [ARG_TENSOR] = "a tensor",
                                        [ARG_WORKSPACE] = "a workspace",
                                        [ARG_TENSORMAP] = "a tensormap"};
    return names[kind];
}

bool reader_memory(struct plan_reader *r, const char *what, enum arg_kind *of, size_t *ref) {
    struct token t = r->p.tok;
    if (t.kind != TOKEN_NAME)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, NULL,
                         "%s needs the name of a tensor or a workspace", what);
    *of = plan_name_find(r, t.text, ref);
    if (*of == ARG_INTEGER)
        return PLAN_FAIL(r, t.at, t.text.n, "a workspace is declared above the lines that use it",
                         "'%.*s' is neither a tensor nor a workspace", STR_ARG(t.text));
    if (*of == ARG_TENSORMAP)
        return PLAN_FAIL(r, t.at, t.text.n, NULL,
                         "'%.*s' is a tensormap: %s is of a tensor or a workspace", STR_ARG(t.text),
                         what);
    if (*of == ARG_TENSOR && !tensor_has_memory(&r->task->tensors[*ref]))
        return PLAN_FAIL(r, t.at, t.text.n, "kernels see inputs, parameters and outputs",
                         "'%.*s' is an intermediate of the task: it has no memory",
                         STR_ARG(t.text));
    return parse_next(&r->p);
}

enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref) {
    return of == ARG_TENSOR ? c->task->tensors[ref].dtype : c->workspaces[ref].dtype;
}

/* One namespace for everything that plan lines refer to. Kernels have another. */
static const char *name_taken(const struct plan_reader *r, str name) {
    size_t ref;
    if (plan_name_is_function(name))
        return "a function of plans";
    if (dim_find(r->task, name) >= 0)
        return "a dimension of the task";
    for (size_t i = 0; i < r->nlets; i++)
        if (str_eq(r->lets[i].name, name))
            return "already a let";
    switch (plan_name_find(r, name, &ref)) {
    case ARG_TENSOR:
        return "a tensor of the task";
    case ARG_WORKSPACE:
        return "already a workspace";
    case ARG_TENSORMAP:
        return "already a tensormap";
    default:
        return NULL;
    }
}

bool reader_new_name(struct plan_reader *r, const char *what, const char *example, str *out) {
    struct token t = r->p.tok;
    if (t.kind != TOKEN_NAME)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, example, "expected a name after %s",
                         what);
    const char *taken = name_taken(r, t.text);
    if (taken)
        return PLAN_FAIL(r, t.at, t.text.n, "choose another name", "'%.*s' is %s", STR_ARG(t.text),
                         taken);
    *out = t.text;
    return parse_next(&r->p);
}

bool reader_list(struct plan_reader *r, const char *after, struct expr **out, size_t most,
                 size_t *n) {
    size_t at = r->p.tok.at;
    if (!reader_expect(r, "[", after))
        return false;
    for (*n = 0; *n < most;) {
        if (!(out[*n] = plan_expr_parse(r)))
            return false;
        ++*n;
        if (!token_is(&r->p.tok, ","))
            return reader_expect(r, "]", "the list");
        if (!parse_next(&r->p))
            return false;
    }
    return PLAN_FAIL(r, at, r->p.tok.at - at, NULL, "more than %zu numbers in the list", most);
}

/* What arithmetic may refer to, for a hint. */
static const char *known_names(const struct plan_reader *r, char *space, size_t n) {
    size_t used = (size_t)snprintf(space, n, "known here:");
    for (size_t i = 0; i < r->task->ndims && used < n; i++)
        used += (size_t)snprintf(space + used, n - used, " %.*s", STR_ARG(r->task->dims[i].name));
    for (size_t i = 0; i < r->nlets && used < n; i++)
        used += (size_t)snprintf(space + used, n - used, " %.*s", STR_ARG(r->lets[i].name));
    return space;
}

/* ---- expressions ---- */

/* ceil_div(a, b) is -(-a // b). */
static bool parse_call(struct plan_reader *r, struct token name, struct node *out) {
    struct parser *p = &r->p;
    struct node v[2];
    bool min = str_is(name.text, "min");
    if (!plan_name_is_function(name.text))
        return PLAN_FAIL(r, name.at, name.text.n,
                         "plan functions are min(a, b), max(a, b) and ceil_div(a, b)",
                         "unknown function '%.*s'", STR_ARG(name.text));
    if (!reader_expect(r, "(", "a function's name") || !parse_level(p, LEVEL_ANY, &v[0]) ||
        !reader_expect(r, ",", "the first argument") || !parse_level(p, LEVEL_ANY, &v[1]) ||
        !reader_expect(r, ")", "the second argument"))
        return false;
    if (str_is(name.text, "ceil_div"))
        return node_make(p, EXPR_NEG, name.at, v, 1, &v[0]) &&
               node_make(p, EXPR_FLOORDIV, name.at, v, 2, &v[0]) &&
               node_make(p, EXPR_NEG, name.at, v, 1, out);
    if (!node_make(p, EXPR_CALL, name.at, v, 2, out))
        return false;
    out->e->function = min ? FUNCTION_MINIMUM : FUNCTION_MAXIMUM;
    return true;
}

/* `(x, n)` after aligned. */
static bool read_aligned(struct plan_reader *r, struct plan_aligned *out) {
    if (!reader_expect(r, "(", "aligned") || !reader_memory(r, "aligned()", &out->of, &out->ref) ||
        !reader_expect(r, ",", "the name"))
        return false;
    struct token n = r->p.tok;
    if (n.kind != TOKEN_NUMBER || n.integer < 1 || n.integer > PLAN_MAX_ALIGN ||
        (n.integer & (n.integer - 1)))
        return PLAN_FAIL(r, n.at, n.text.n ? n.text.n : 1, "require aligned(x, 128)",
                         "an alignment is a power of two from 1 to %d, as a number",
                         PLAN_MAX_ALIGN);
    out->bytes = (uint32_t)n.integer;
    return parse_next(&r->p) && reader_expect(r, ")", "the alignment");
}

static bool parse_aligned(struct plan_reader *r, struct token name, struct node *out) {
    struct plan_aligned a;
    if (!r->aligned || r->naligned == PLAN_MAX_ALIGNED)
        return PLAN_FAIL(r, name.at, name.text.n, "//! require aligned(x, 128) && N % 4 == 0",
                         r->aligned ? "too many aligned() in one line"
                                    : "aligned() can only stand in a require line");
    if (!read_aligned(r, &a) || !node_make(&r->p, EXPR_NUMBER, name.at, NULL, 0, out))
        return false;
    out->e->integer = 1;
    out->e->integral = true;
    a.node = out->e;
    r->aligned[r->naligned++] = a;
    return true;
}

/* No dimension and no let. */
static bool no_number(struct plan_reader *r, struct token name) {
    char hint[512];
    size_t ref;
    enum arg_kind kind = plan_name_find(r, name.text, &ref);
    if (kind != ARG_INTEGER)
        return PLAN_FAIL(r, name.at, name.text.n, "it can only be a whole argument of a launch",
                         "'%.*s' is %s, not a number", STR_ARG(name.text), plan_kind_name(kind));
    return PLAN_FAIL(r, name.at, name.text.n, known_names(r, hint, sizeof hint),
                     "unknown name '%.*s'", STR_ARG(name.text));
}

static bool parse_name(struct parser *p, struct node *out) {
    struct plan_reader *r = (struct plan_reader *)p; /* its first member */
    struct token name = p->tok;
    if (!parse_next(p))
        return false;
    if (str_is(name.text, "aligned"))
        return parse_aligned(r, name, out);
    if (token_is(&p->tok, "(") || plan_name_is_function(name.text))
        return parse_call(r, name, out);
    int dim = dim_find(r->task, name.text);
    size_t let = 0;
    while (let < r->nlets && !str_eq(r->lets[let].name, name.text))
        let++;
    if (dim < 0 && let == r->nlets)
        return no_number(r, name);
    if (!node_make(p, dim >= 0 ? EXPR_DIM : EXPR_INDEX, name.at, NULL, 0, out))
        return false;
    out->e->ref = dim >= 0 ? (size_t)dim : let;
    return true;
}

static bool no_operand(struct parser *p) {
    return parse_fail(p, p->tok.at, p->tok.len ? p->tok.len : 1, NULL,
                      "expected a number, a name or '('%s",
                      p->tok.kind == TOKEN_END ? ", found the end of the line" : "");
}

static bool close_bracket(struct parser *p, size_t open) {
    (void)open;
    return reader_expect((struct plan_reader *)p, ")", "the expression in parentheses");
}

/* Everything is an integer. */
static bool settle(struct parser *p, struct expr *e, const char *symbol) {
    (void)p, (void)symbol;
    e->kind = e->kind == EXPR_DIV ? EXPR_FLOORDIV : e->kind;
    return true;
}

static const struct language plan_language = {
    /* `>>>` ends a launch configuration and is never a comparison. */
    .lex = {.symbols = "<<< >>> // && || == != <= >= + - * / % < > ! = ( ) [ ] , :",
            .name_most = SIZE_MAX,
            .number = lex_plan_number,
            .stray = "unexpected character in a plan"},
    .depth_most = PLAN_MAX_DEPTH,
    .deep = "expression nested deeper than %d",
    .deep_hint = "split it with let lines",
    .deep_signs_hint = "split it with let lines",
    .chained = "comparisons cannot be chained",
    .chained_hint = "write a < b && b < c",
    .name = parse_name,
    .no_operand = no_operand,
    .close = close_bracket,
    .settle = settle,
};

struct plan_reader plan_reader_on(str file, str source, const struct task *t, struct arena *a,
                                  struct err *err) {
    return (struct plan_reader){.p = {.language = &plan_language,
                                      .lx = lex_start(&plan_language.lex, file, source),
                                      .arena = a,
                                      .err = err},
                                .task = t};
}

struct expr *plan_expr_parse(struct plan_reader *r) {
    struct node n;
    r->p.depth = 0;
    return parse_level(&r->p, LEVEL_ANY, &n) ? n.e : NULL;
}
