/* Expressions: precedence climbing, and the kind (integer, real, truth value) of every node.
 *
 * Trees are walked by recursion everywhere in this room, so their height is limited here, once, for
 * all: both the nesting of the text and the height of the tree (`a + a + a …` nests to the left).
 */
#include "spec/parse.h"

#include <math.h>
#include <stdio.h>

struct node {
    struct expr *e;
    int height;
};

enum { COMPARISON = 3 };

static const struct binary {
    const char *symbol;
    enum expr_kind kind;
    int level;
} binaries[] = {
    {"||", EXPR_OR, 1},          {"&&", EXPR_AND, 2},         {"==", EXPR_EQ, COMPARISON},
    {"!=", EXPR_NE, COMPARISON}, {"<", EXPR_LT, COMPARISON},  {"<=", EXPR_LE, COMPARISON},
    {">", EXPR_GT, COMPARISON},  {">=", EXPR_GE, COMPARISON}, {"+", EXPR_ADD, 4},
    {"-", EXPR_SUB, 4},          {"*", EXPR_MUL, 5},          {"/", EXPR_DIV, 5},
    {"%", EXPR_MOD, 5},          {"//", EXPR_FLOORDIV, 5},
};

static const char *const kind_names[] = {"an integer", "a real number", "a truth value"};

static bool parse_binary(struct parser *p, int level, struct node *out);

static bool make(struct parser *p, enum expr_kind kind, size_t at, const struct node *args,
                 size_t n, struct node *out) {
    struct expr *e = arena_new_of(p->arena, struct expr);
    int height = 0;
    e->kind = kind;
    e->at = at;
    e->len = p->end - at;
    e->nargs = n;
    e->args = n ? arena_array(p->arena, struct expr *, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        e->args[i] = args[i].e;
        height = args[i].height > height ? args[i].height : height;
    }
    *out = (struct node){e, height + 1};
    if (out->height > TASK_MAX_DEPTH)
        return parse_fail(p, e->at, 1, "split it with a let",
                          "the expression nests more than %d levels", TASK_MAX_DEPTH);
    return true;
}

static bool need_number(struct parser *p, const struct expr *e) {
    return e->value_kind != VALUE_BOOL ||
           parse_fail(p, e->at, e->len, "if(condition, 1, 0) makes it one",
                      "a truth value where a number is needed");
}

static bool need_integer(struct parser *p, const struct expr *e, const char *what) {
    return e->value_kind == VALUE_INT ||
           parse_fail(p, e->at, e->len, NULL, "%s takes integers, this is %s", what,
                      kind_names[e->value_kind]);
}

static bool need_truth(struct parser *p, const struct expr *e) {
    return e->value_kind == VALUE_BOOL ||
           parse_fail(p, e->at, e->len, "compare it: x != 0", "%s where a truth value is needed",
                      kind_names[e->value_kind]);
}

static enum value_kind wider(const struct expr *a, const struct expr *b) {
    return a->value_kind == VALUE_INT && b->value_kind == VALUE_INT ? VALUE_INT : VALUE_REAL;
}

static bool settle_binary(struct parser *p, struct expr *e, const char *symbol) {
    const struct expr *a = e->args[0], *b = e->args[1];
    bool truths = a->value_kind == VALUE_BOOL && b->value_kind == VALUE_BOOL;
    switch (e->kind) {
    case EXPR_AND:
    case EXPR_OR:
        e->value_kind = VALUE_BOOL;
        return need_truth(p, a) && need_truth(p, b);
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        e->value_kind = VALUE_INT;
        return need_integer(p, a, symbol) && need_integer(p, b, symbol);
    case EXPR_DIV:
        e->value_kind = VALUE_REAL;
        return need_number(p, a) && need_number(p, b);
    case EXPR_EQ:
    case EXPR_NE:
        e->value_kind = VALUE_BOOL;
        return truths || (need_number(p, a) && need_number(p, b));
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
        e->value_kind = wider(a, b);
        return need_number(p, a) && need_number(p, b);
    default:
        e->value_kind = VALUE_BOOL;
        return need_number(p, a) && need_number(p, b);
    }
}

static bool function_find(str name, enum function *out) {
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (str_is(name, function_name((enum function)i))) {
            *out = (enum function)i;
            return true;
        }
    return false;
}

/* Functions that keep integers integers. */
static bool keeps_integers(enum function f) {
    return f == FUNCTION_ABS || f == FUNCTION_MAXIMUM || f == FUNCTION_MINIMUM ||
           f == FUNCTION_CLAMP;
}

/* The arguments after an opening bracket, up to and with `close`; at most `most`. */
static bool parse_list(struct parser *p, const char *close, size_t most, struct node *args,
                       size_t *n) {
    struct token open = p->tok;
    char hint[96];
    size_t line, col;
    text_position(p->lx.text, open.at, &line, &col);
    snprintf(hint, sizeof hint, "the bracket opened at %zu:%zu ends with %s", line, col, close);
    *n = 0;
    if (!parse_next(p))
        return false;
    while (!token_is(&p->tok, close)) {
        struct node extra;
        if (*n && !parse_symbol(p, ",", hint))
            return false;
        if (!parse_binary(p, 1, *n < most ? &args[*n] : &extra))
            return false;
        *n += 1;
        if (!token_is(&p->tok, ",") && !token_is(&p->tok, close))
            return parse_expected(p, close, hint);
    }
    return parse_next(p);
}

static bool wrong_count(struct parser *p, const struct token *name, size_t n, size_t want) {
    return parse_fail(p, name->at, name->len, NULL, "%.*s takes %zu argument%s, here are %zu",
                      STR_ARG(name->text), want, want == 1 ? "" : "s", n);
}

static bool parse_if(struct parser *p, const struct token *name, struct node *out) {
    struct node args[3];
    size_t n;
    if (!parse_list(p, ")", 3, args, &n))
        return false;
    if (n != 3)
        return wrong_count(p, name, n, 3);
    struct expr *c = args[0].e, *a = args[1].e, *b = args[2].e;
    if (!need_truth(p, c) || !make(p, EXPR_IF, name->at, args, 3, out))
        return false;
    if ((a->value_kind == VALUE_BOOL) != (b->value_kind == VALUE_BOOL))
        return parse_fail(p, b->at, b->len, NULL, "the sides of if differ: %s and %s",
                          kind_names[a->value_kind], kind_names[b->value_kind]);
    out->e->value_kind = a->value_kind == VALUE_BOOL ? VALUE_BOOL : wider(a, b);
    return true;
}

static bool parse_call(struct parser *p, const struct token *name, struct node *out) {
    enum function f;
    struct node args[3];
    size_t n;
    if (word_missing(name->text))
        return parse_fail(p, name->at, name->len,
                          str_is(name->text, "max")   ? "the larger of two values: maximum(a, b)"
                          : str_is(name->text, "min") ? "the smaller of two values: minimum(a, b)"
                                                      : NULL,
                          "'%.*s' is %s; this version's language covers pointwise expressions",
                          STR_ARG(name->text), word_missing(name->text));
    if (str_is(name->text, "if"))
        return parse_if(p, name, out);
    if (!function_find(name->text, &f))
        return parse_fail(p, name->at, name->len,
                          "functions are exp log sqrt rsqrt tanh erf sigmoid sin cos abs floor pow "
                          "maximum minimum clamp, and if; tensors take [ ]",
                          "there is no function '%.*s'", STR_ARG(name->text));
    if (!parse_list(p, ")", 3, args, &n))
        return false;
    if (n != (size_t)function_args(f))
        return wrong_count(p, name, n, (size_t)function_args(f));
    bool integers = keeps_integers(f);
    for (size_t i = 0; i < n; i++) {
        if (!need_number(p, args[i].e))
            return false;
        integers = integers && args[i].e->value_kind == VALUE_INT;
    }
    if (!make(p, EXPR_CALL, name->at, args, n, out))
        return false;
    out->e->function = f;
    out->e->value_kind = integers ? VALUE_INT : VALUE_REAL;
    return true;
}

static const struct expr *find_read(const struct expr *e) {
    if (e->kind == EXPR_READ)
        return e;
    for (size_t i = 0; i < e->nargs; i++) {
        const struct expr *r = find_read(e->args[i]);
        if (r)
            return r;
    }
    return NULL;
}

static bool check_index(struct parser *p, const struct expr *e) {
    const struct expr *r = find_read(e);
    if (r)
        return parse_fail(p, r->at, r->len, NULL,
                          "an index read from a tensor; this version's language covers pointwise "
                          "expressions, whose indices come from index variables and dimensions");
    return e->value_kind == VALUE_INT ||
           parse_fail(p, e->at, e->len, "// divides integers",
                      "an index must be an integer, this is %s", kind_names[e->value_kind]);
}

static enum value_kind kind_of_dtype(enum dtype t) {
    char k = dtype_info(t)->kind;
    return k == 'f' ? VALUE_REAL : k == 'b' ? VALUE_BOOL : VALUE_INT;
}

static bool parse_read(struct parser *p, const struct token *name, size_t ref, struct node *out) {
    const struct tensor *t = &p->task->tensors[ref];
    struct node args[TASK_MAX_RANK];
    size_t n = 0;
    if (t->role == TENSOR_OUT)
        return parse_fail(p, name->at, name->len, "name the value with a let and read that",
                          "'%.*s' is an output and cannot be read", STR_ARG(name->text));
    if (token_is(&p->tok, "[") && !parse_list(p, "]", TASK_MAX_RANK, args, &n))
        return false;
    if (n != t->rank)
        return parse_fail(p, name->at, p->end - name->at, NULL,
                          "'%.*s' has %zu dimension%s, here are %zu ind%s", STR_ARG(name->text),
                          t->rank, t->rank == 1 ? "" : "s", n, n == 1 ? "ex" : "ices");
    for (size_t i = 0; i < n; i++)
        if (!check_index(p, args[i].e))
            return false;
    if (!make(p, EXPR_READ, name->at, args, n, out))
        return false;
    out->e->ref = ref;
    out->e->value_kind = kind_of_dtype(t->dtype);
    return true;
}

static bool leaf(struct parser *p, enum expr_kind kind, const struct token *name, size_t ref,
                 struct node *out) {
    if (!make(p, kind, name->at, NULL, 0, out))
        return false;
    out->e->ref = ref;
    out->e->value_kind = VALUE_INT;
    return true;
}

static bool unknown_name(struct parser *p, const struct token *name) {
    if (word_is_reserved(name->text))
        return parse_fail(p, name->at, name->len, NULL,
                          "expected an expression, found the word '%.*s'", STR_ARG(name->text));
    if (!p->scope)
        return parse_fail(p, name->at, name->len, "only dimensions declared above may stand here",
                          "'%.*s' is not a dimension", STR_ARG(name->text));
    return parse_fail(p, name->at, name->len,
                      "an index variable is introduced on the left of '='; tensors and dimensions "
                      "by in, param, let and dim",
                      "'%.*s' is not known here", STR_ARG(name->text));
}

static bool parse_name(struct parser *p, struct node *out) {
    struct token name = p->tok;
    if (!parse_next(p))
        return false;
    if (token_is(&p->tok, "("))
        return parse_call(p, &name, out);
    if (str_is(name.text, "inf")) {
        if (!make(p, EXPR_NUMBER, name.at, NULL, 0, out))
            return false;
        out->e->number = INFINITY;
        out->e->value_kind = VALUE_REAL;
        return true;
    }
    const struct statement *s = p->scope;
    for (size_t i = 0; s && i < s->nindex; i++)
        if (str_eq(s->index[i], name.text))
            return leaf(p, EXPR_INDEX, &name, i, out);
    for (size_t i = 0; i < p->task->ndims; i++)
        if (str_eq(p->task->dims[i].name, name.text))
            return leaf(p, EXPR_DIM, &name, i, out);
    int t = s ? tensor_find(p->task, name.text) : -1;
    return t < 0 ? unknown_name(p, &name) : parse_read(p, &name, (size_t)t, out);
}

static bool parse_number(struct parser *p, struct node *out) {
    struct token t = p->tok;
    if (!parse_next(p) || !make(p, EXPR_NUMBER, t.at, NULL, 0, out))
        return false;
    out->e->number = t.number;
    out->e->integer = t.integer;
    out->e->integral = t.integral;
    out->e->value_kind = t.integral ? VALUE_INT : VALUE_REAL;
    return true;
}

static bool parse_primary(struct parser *p, struct node *out) {
    struct token open = p->tok;
    if (p->tok.kind == TOKEN_NUMBER)
        return parse_number(p, out);
    if (p->tok.kind == TOKEN_NAME)
        return parse_name(p, out);
    if (!token_is(&p->tok, "("))
        return parse_expected(p, "an expression", NULL);
    size_t line, col;
    char hint[96];
    text_position(p->lx.text, open.at, &line, &col);
    snprintf(hint, sizeof hint, "the bracket opened at %zu:%zu ends with )", line, col);
    return parse_next(p) && parse_binary(p, 1, out) && parse_symbol(p, ")", hint);
}

static bool parse_prefix(struct parser *p, struct node *out) {
    struct token op = p->tok;
    bool minus = token_is(&op, "-");
    struct node arg;
    if (!minus && !token_is(&op, "!"))
        return parse_primary(p, out);
    if (++p->depth > TASK_MAX_DEPTH)
        return parse_fail(p, op.at, 1, NULL, "the expression nests more than %d levels",
                          TASK_MAX_DEPTH);
    if (!parse_next(p) || !parse_prefix(p, &arg))
        return false;
    p->depth--;
    if (minus ? !need_number(p, arg.e) : !need_truth(p, arg.e))
        return false;
    if (!make(p, minus ? EXPR_NEG : EXPR_NOT, op.at, &arg, 1, out))
        return false;
    out->e->value_kind = arg.e->value_kind;
    return true;
}

static const struct binary *binary_find(const struct token *t) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (token_is(t, binaries[i].symbol))
            return &binaries[i];
    return NULL;
}

static bool refuse_operator(struct parser *p) {
    const struct token *t = &p->tok;
    if (token_is(t, "**") || token_is(t, "^"))
        return parse_fail(p, t->at, t->len, "powers are pow(x, y)", "there is no operator '%.*s'",
                          STR_ARG(t->text));
    if (token_is(t, "|"))
        return parse_fail(p, t->at, t->len, "'or' is ||",
                          "'|' begins a guard; this version's language covers pointwise "
                          "expressions, without guards");
    if (token_is(t, "&"))
        return parse_fail(p, t->at, t->len, "'and' is &&", "there is no operator '&'");
    if (token_is(t, "?"))
        return parse_fail(p, t->at, t->len, "write if(condition, a, b)",
                          "there is no operator '?'");
    return true;
}

static bool parse_operators(struct parser *p, int level, struct node *out) {
    const struct binary *op, *last = NULL;
    while ((op = binary_find(&p->tok)) && op->level >= level) {
        struct token sign = p->tok;
        struct node args[2] = {*out};
        if (op->level == COMPARISON && last && last->level == COMPARISON)
            return parse_fail(p, sign.at, sign.len, "join them: a < b && b < c",
                              "comparisons do not chain");
        if (!parse_next(p) || !parse_binary(p, op->level + 1, &args[1]))
            return false;
        if (!make(p, op->kind, args[0].e->at, args, 2, out) ||
            !settle_binary(p, out->e, op->symbol))
            return false;
        last = op;
    }
    return refuse_operator(p);
}

static bool parse_binary(struct parser *p, int level, struct node *out) {
    if (++p->depth > TASK_MAX_DEPTH)
        return parse_fail(p, p->tok.at, p->tok.len, "split it with a let",
                          "the expression nests more than %d levels", TASK_MAX_DEPTH);
    if (!parse_prefix(p, out) || !parse_operators(p, level, out))
        return false;
    p->depth--;
    return true;
}

bool parse_expression(struct parser *p, struct expr **out) {
    struct node n;
    p->depth = 0;
    if (!parse_binary(p, 1, &n))
        return false;
    *out = n.e;
    return true;
}
