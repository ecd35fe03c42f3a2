/* Lexer, parser and evaluator of plan arithmetic.
 *
 * Precedence as in C, lowest first: || && == != < <= > >= + - * / // % and unary - !. Comparisons
 * do not chain, because `a < b < c` means something else in every language. `/` and `//` are both
 * floor division: plans have integers only, and a model writes either. Truth is 1 and 0. */
#include "kernel/plan.h"

#include "base/checked.h"
#include <stdio.h>

/* ---- tokens ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Longest first: `>>>` ends a launch configuration and is never a comparison. */
static const char *const signs[] = {
    "<<<", ">>>", "//", "&&", "||", "==", "!=", "<=", ">=", "+", "-", "*",
    "/",   "%",   "<",  ">",  "!",  "=",  "(",  ")",  "[",  "]", ",", ":"};

static size_t sign_length(str rest) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (str_starts(rest, str_view(signs[i])))
            return str_view(signs[i]).n;
    return 0;
}

static bool read_number(struct plan_reader *r, str text) {
    uint64_t v;
    if (!str_to_u64(text, &v) || v > INT64_MAX)
        return PLAN_FAIL(r, r->token.at, text.n, "plan arithmetic has 64-bit integers only",
                         "bad number '%.*s'", STR_ARG(text));
    r->token.number = (int64_t)v;
    return true;
}

bool reader_next(struct plan_reader *r) {
    while (r->at < r->end && is_blank(r->source.p[r->at]))
        r->at++;
    str rest = str_cut(r->source, r->at, r->end - r->at);
    r->token = (struct token){.kind = TOKEN_END, .at = r->at};
    if (rest.n == 0)
        return true;
    size_t n = 0;
    if (is_letter(rest.p[0]) || is_digit(rest.p[0])) {
        while (n < rest.n && (is_letter(rest.p[n]) || is_digit(rest.p[n])))
            n++;
        r->token.kind = is_digit(rest.p[0]) ? TOKEN_NUMBER : TOKEN_NAME;
    } else {
        n = sign_length(rest);
        r->token.kind = TOKEN_SIGN;
    }
    if (n == 0)
        return PLAN_FAIL(r, r->at, 1, NULL, "unexpected character in a plan");
    r->token.text = str_cut(rest, 0, n);
    r->at += n;
    return r->token.kind != TOKEN_NUMBER || read_number(r, r->token.text);
}

bool reader_is(const struct plan_reader *r, const char *sign) {
    return r->token.kind == TOKEN_SIGN && str_is(r->token.text, sign);
}

bool reader_expect(struct plan_reader *r, const char *sign, const char *after) {
    if (reader_is(r, sign))
        return reader_next(r);
    if (r->token.kind == TOKEN_END)
        return PLAN_FAIL(r, r->token.at, 1, NULL,
                         "expected '%s' after %s, found the end of the line", sign, after);
    return PLAN_FAIL(r, r->token.at, r->token.text.n, NULL, "expected '%s' after %s, found '%.*s'",
                     sign, after, STR_ARG(r->token.text));
}

bool reader_at_end(struct plan_reader *r, const char *after) {
    if (r->token.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, r->token.at, r->token.text.n, NULL, "unexpected '%.*s' after %s",
                     STR_ARG(r->token.text), after);
}

/* ---- names ---- */

int plan_dim_find(const struct task *t, str name) {
    for (size_t i = 0; i < t->ndims; i++)
        if (str_eq(t->dims[i].name, name))
            return (int)i;
    return -1;
}

static const struct {
    const char *name;
    enum plan_op op;
} functions[] = {{"min", PLAN_MIN}, {"max", PLAN_MAX}, {"ceil_div", PLAN_CEIL_DIV}};

bool plan_name_is_function(str name) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (str_is(name, functions[i].name))
            return true;
    return false;
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
    struct token t = r->token;
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
    return reader_next(r);
}

enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref) {
    return of == ARG_TENSOR ? c->task->tensors[ref].dtype : c->workspaces[ref].dtype;
}

/* One namespace for everything that plan lines refer to. Kernels have another. */
static const char *name_taken(const struct plan_reader *r, str name) {
    size_t ref;
    if (plan_name_is_function(name))
        return "a function of plans";
    if (plan_dim_find(r->task, name) >= 0)
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
    struct token t = r->token;
    if (t.kind != TOKEN_NAME)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, example, "expected a name after %s",
                         what);
    const char *taken = name_taken(r, t.text);
    if (taken)
        return PLAN_FAIL(r, t.at, t.text.n, "choose another name", "'%.*s' is %s", STR_ARG(t.text),
                         taken);
    *out = t.text;
    return reader_next(r);
}

bool reader_list(struct plan_reader *r, const char *after, struct plan_expr **out, size_t most,
                 size_t *n) {
    size_t at = r->token.at;
    if (!reader_expect(r, "[", after))
        return false;
    for (*n = 0; *n < most;) {
        if (!(out[*n] = plan_expr_parse(r)))
            return false;
        ++*n;
        if (!reader_is(r, ","))
            return reader_expect(r, "]", "the list");
        if (!reader_next(r))
            return false;
    }
    return PLAN_FAIL(r, at, r->token.at - at, NULL, "more than %zu numbers in the list", most);
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

static struct plan_expr *parse_or(struct plan_reader *r, unsigned depth);

static struct plan_expr *node(struct plan_reader *r, enum plan_op op, size_t at,
                              struct plan_expr *a, struct plan_expr *b) {
    struct plan_expr *e = arena_new_of(r->arena, struct plan_expr);
    unsigned below = a && b && b->depth > a->depth ? b->depth : a ? a->depth : 0;
    /* Up to the end of the last token taken, which lies before the one ahead. */
    size_t end = r->token.at;
    while (end > at && is_blank(r->source.p[end - 1]))
        end--;
    *e =
        (struct plan_expr){.op = op, .depth = below + 1, .at = at, .len = end - at, .a = a, .b = b};
    if (e->depth <= PLAN_MAX_DEPTH)
        return e;
    PLAN_FAIL(r, at, e->len, "split it with let lines", "expression nested deeper than %d",
              PLAN_MAX_DEPTH);
    return NULL;
}

static struct plan_expr *parse_call(struct plan_reader *r, struct token name, unsigned depth) {
    enum plan_op op = PLAN_NUMBER;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (str_is(name.text, functions[i].name))
            op = functions[i].op;
    if (op == PLAN_NUMBER) {
        PLAN_FAIL(r, name.at, name.text.n,
                  "plan functions are min(a, b), max(a, b) and ceil_div(a, b)",
                  "unknown function '%.*s'", STR_ARG(name.text));
        return NULL;
    }
    struct plan_expr *a, *b;
    if (!reader_expect(r, "(", "a function's name") || !(a = parse_or(r, depth)) ||
        !reader_expect(r, ",", "the first argument") || !(b = parse_or(r, depth)) ||
        !reader_expect(r, ")", "the second argument"))
        return NULL;
    return node(r, op, name.at, a, b);
}

/* `(x, n)` after aligned. */
static bool read_aligned(struct plan_reader *r, struct plan_aligned *out) {
    if (!reader_expect(r, "(", "aligned") || !reader_memory(r, "aligned()", &out->of, &out->ref) ||
        !reader_expect(r, ",", "the name"))
        return false;
    struct token n = r->token;
    if (n.kind != TOKEN_NUMBER || n.number < 1 || n.number > PLAN_MAX_ALIGN ||
        (n.number & (n.number - 1)))
        return PLAN_FAIL(r, n.at, n.text.n ? n.text.n : 1, "require aligned(x, 128)",
                         "an alignment is a power of two from 1 to %d, as a number",
                         PLAN_MAX_ALIGN);
    out->bytes = (uint32_t)n.number;
    return reader_next(r) && reader_expect(r, ")", "the alignment");
}

static struct plan_expr *parse_aligned(struct plan_reader *r, struct token name) {
    struct plan_aligned a;
    if (!r->aligned || r->naligned == PLAN_MAX_ALIGNED) {
        PLAN_FAIL(r, name.at, name.text.n, "//! require aligned(x, 128) && N % 4 == 0",
                  r->aligned ? "too many aligned() in one line"
                             : "aligned() can only stand in a require line");
        return NULL;
    }
    if (!read_aligned(r, &a))
        return NULL;
    struct plan_expr *e = node(r, PLAN_NUMBER, name.at, NULL, NULL);
    e->value = 1;
    a.node = e;
    r->aligned[r->naligned++] = a;
    return e;
}

static struct plan_expr *parse_name(struct plan_reader *r, unsigned depth) {
    struct token name = r->token;
    if (!reader_next(r))
        return NULL;
    if (str_is(name.text, "aligned"))
        return parse_aligned(r, name);
    if (reader_is(r, "(") || plan_name_is_function(name.text))
        return parse_call(r, name, depth);
    struct plan_expr *e = node(r, PLAN_DIM, name.at, NULL, NULL);
    int dim = plan_dim_find(r->task, name.text);
    if (dim >= 0) {
        e->ref = (size_t)dim;
        return e;
    }
    e->op = PLAN_LET;
    for (e->ref = 0; e->ref < r->nlets; e->ref++)
        if (str_eq(r->lets[e->ref].name, name.text))
            return e;
    char hint[512];
    size_t ref;
    enum arg_kind kind = plan_name_find(r, name.text, &ref);
    if (kind != ARG_INTEGER)
        PLAN_FAIL(r, name.at, name.text.n, "it can only be a whole argument of a launch",
                  "'%.*s' is %s, not a number", STR_ARG(name.text), plan_kind_name(kind));
    else
        PLAN_FAIL(r, name.at, name.text.n, known_names(r, hint, sizeof hint), "unknown name '%.*s'",
                  STR_ARG(name.text));
    return NULL;
}

static struct plan_expr *parse_primary(struct plan_reader *r, unsigned depth) {
    struct token t = r->token;
    if (t.kind == TOKEN_NAME)
        return parse_name(r, depth);
    if (t.kind == TOKEN_NUMBER) {
        if (!reader_next(r))
            return NULL;
        struct plan_expr *e = node(r, PLAN_NUMBER, t.at, NULL, NULL);
        e->value = t.number;
        return e;
    }
    if (reader_is(r, "(")) {
        struct plan_expr *e;
        if (!reader_next(r) || !(e = parse_or(r, depth)) ||
            !reader_expect(r, ")", "the expression in parentheses"))
            return NULL;
        return e;
    }
    PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, NULL, "expected a number, a name or '('%s",
              t.kind == TOKEN_END ? ", found the end of the line" : "");
    return NULL;
}

static struct plan_expr *parse_unary(struct plan_reader *r, unsigned depth) {
    size_t at = r->token.at;
    if (depth >= PLAN_MAX_DEPTH) {
        PLAN_FAIL(r, at, 1, "split it with let lines", "expression nested deeper than %d",
                  PLAN_MAX_DEPTH);
        return NULL;
    }
    bool neg = reader_is(r, "-");
    if (!neg && !reader_is(r, "!"))
        return parse_primary(r, depth + 1);
    struct plan_expr *a;
    if (!reader_next(r) || !(a = parse_unary(r, depth + 1)))
        return NULL;
    return node(r, neg ? PLAN_NEG : PLAN_NOT, at, a, NULL);
}

struct binary {
    const char *sign;
    enum plan_op op;
    int level;
};
enum { LEVEL_OR, LEVEL_AND, LEVEL_COMPARE, LEVEL_ADD, LEVEL_MUL, LEVEL_UNARY };
static const struct binary binaries[] = {
    {"||", PLAN_OR, LEVEL_OR},      {"&&", PLAN_AND, LEVEL_AND},    {"==", PLAN_EQ, LEVEL_COMPARE},
    {"!=", PLAN_NE, LEVEL_COMPARE}, {"<=", PLAN_LE, LEVEL_COMPARE}, {">=", PLAN_GE, LEVEL_COMPARE},
    {"<", PLAN_LT, LEVEL_COMPARE},  {">", PLAN_GT, LEVEL_COMPARE},  {"+", PLAN_ADD, LEVEL_ADD},
    {"-", PLAN_SUB, LEVEL_ADD},     {"*", PLAN_MUL, LEVEL_MUL},     {"//", PLAN_DIV, LEVEL_MUL},
    {"/", PLAN_DIV, LEVEL_MUL},     {"%", PLAN_MOD, LEVEL_MUL},
};

static const struct binary *binary_ahead(const struct plan_reader *r, int level) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (binaries[i].level == level && reader_is(r, binaries[i].sign))
            return &binaries[i];
    return NULL;
}

/* Bounded twice: by the levels below this one, and by `depth` where parentheses come back here. */
static struct plan_expr *parse_level(struct plan_reader *r, int level, unsigned depth) {
    if (level == LEVEL_UNARY)
        return parse_unary(r, depth);
    size_t at = r->token.at;
    struct plan_expr *a = parse_level(r, level + 1, depth);
    const struct binary *op;
    while (a && (op = binary_ahead(r, level))) {
        struct plan_expr *b;
        if (!reader_next(r) || !(b = parse_level(r, level + 1, depth)))
            return NULL;
        a = node(r, op->op, at, a, b);
        if (level == LEVEL_COMPARE && a && binary_ahead(r, level)) {
            PLAN_FAIL(r, r->token.at, r->token.text.n, "write a < b && b < c",
                      "comparisons cannot be chained");
            return NULL;
        }
    }
    return a;
}

static struct plan_expr *parse_or(struct plan_reader *r, unsigned depth) {
    return parse_level(r, LEVEL_OR, depth);
}

struct plan_expr *plan_expr_parse(struct plan_reader *r) {
    return parse_or(r, 0);
}

/* ---- values ---- */

struct evaluation {
    const int64_t *dims, *lets;
    const struct plan_expr **where;
    const char **why;
};

static bool no_value(const struct evaluation *ev, const struct plan_expr *e, const char *why) {
    *ev->where = e;
    *ev->why = why;
    return false;
}

static bool ceil_div(int64_t a, int64_t b, int64_t *out) {
    int64_t negated;
    return sub_i64(0, a, &negated) && floordiv_i64(negated, b, &negated) &&
           sub_i64(0, negated, out);
}

static bool eval_arithmetic(const struct evaluation *ev, const struct plan_expr *e, int64_t a,
                            int64_t b, int64_t *out) {
    bool divides = e->op == PLAN_DIV || e->op == PLAN_MOD || e->op == PLAN_CEIL_DIV;
    if (divides && b == 0)
        return no_value(ev, e, "division by zero");
    bool fits = true;
    switch (e->op) {
    case PLAN_NEG:
        fits = sub_i64(0, a, out);
        break;
    case PLAN_NOT:
        *out = !a;
        break;
    case PLAN_ADD:
        fits = add_i64(a, b, out);
        break;
    case PLAN_SUB:
        fits = sub_i64(a, b, out);
        break;
    case PLAN_MUL:
        fits = mul_i64(a, b, out);
        break;
    case PLAN_DIV:
        fits = floordiv_i64(a, b, out);
        break;
    case PLAN_MOD:
        fits = floormod_i64(a, b, out);
        break;
    case PLAN_CEIL_DIV:
        fits = ceil_div(a, b, out);
        break;
    case PLAN_EQ:
        *out = a == b;
        break;
    case PLAN_NE:
        *out = a != b;
        break;
    case PLAN_LT:
        *out = a < b;
        break;
    case PLAN_LE:
        *out = a <= b;
        break;
    case PLAN_GT:
        *out = a > b;
        break;
    case PLAN_GE:
        *out = a >= b;
        break;
    case PLAN_MIN:
        *out = a < b ? a : b;
        break;
    case PLAN_MAX:
        *out = a > b ? a : b;
        break;
    default:
        BUG_IF(true);
    }
    return fits || no_value(ev, e, "does not fit 64 bits");
}

/* No deeper than PLAN_MAX_DEPTH: node() saw to it. */
static bool eval(const struct evaluation *ev, const struct plan_expr *e, int64_t *out) {
    int64_t a = 0, b = 0;
    switch (e->op) {
    case PLAN_NUMBER:
        *out = e->value;
        return true;
    case PLAN_DIM:
        *out = ev->dims[e->ref];
        return true;
    case PLAN_LET:
        *out = ev->lets[e->ref];
        return true;
    case PLAN_AND:
    case PLAN_OR:
        if (!eval(ev, e->a, &a))
            return false;
        *out = a != 0;
        if ((a != 0) == (e->op == PLAN_OR))
            return true;
        if (!eval(ev, e->b, &b))
            return false;
        *out = b != 0;
        return true;
    default:
        return eval(ev, e->a, &a) && (!e->b || eval(ev, e->b, &b)) &&
               eval_arithmetic(ev, e, a, b, out);
    }
}

bool plan_expr_eval(const struct plan_expr *e, const int64_t *dims, const int64_t *lets,
                    int64_t *out, const struct plan_expr **where, const char **why) {
    struct evaluation ev = {dims, lets, where, why};
    return eval(&ev, e, out);
}
