/* What names and functions stand for in a task's expressions, and the kind (integer, real, truth
 * value) of every node. */
#include "spec/parse.h"

#include <math.h>
#include <stdio.h>

static const char *const kind_names[] = {"an integer", "a real number", "a truth value"};

bool need_number(struct parser *p, const struct expr *e) {
    return e->value_kind != VALUE_BOOL ||
           parse_fail(p, e->at, e->len, "if(condition, 1, 0) makes it one",
                      "a truth value where a number is needed");
}

static bool need_integer(struct parser *p, const struct expr *e, const char *what) {
    return e->value_kind == VALUE_INT ||
           parse_fail(p, e->at, e->len, NULL, "%s takes integers, this is %s", what,
                      kind_names[e->value_kind]);
}

bool need_truth(struct parser *p, const struct expr *e) {
    return e->value_kind == VALUE_BOOL ||
           parse_fail(p, e->at, e->len, "compare it: x != 0", "%s where a truth value is needed",
                      kind_names[e->value_kind]);
}

static enum value_kind wider(const struct expr *a, const struct expr *b) {
    return a->value_kind == VALUE_INT && b->value_kind == VALUE_INT ? VALUE_INT : VALUE_REAL;
}

static bool settle(struct parser *p, struct expr *e, const char *symbol) {
    const struct expr *a = e->args[0], *b = e->args[e->nargs - 1];
    bool truths = a->value_kind == VALUE_BOOL && b->value_kind == VALUE_BOOL;
    switch (e->kind) {
    case EXPR_NEG:
    case EXPR_NOT:
        e->value_kind = a->value_kind;
        return e->kind == EXPR_NEG ? need_number(p, a) : need_truth(p, a);
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

static bool not_closed(struct parser *p, size_t open, const char *close) {
    char hint[96], quoted[8];
    size_t line, col;
    text_position(p->lx.text, open, &line, &col);
    snprintf(hint, sizeof hint, "the bracket opened at %zu:%zu ends with %s", line, col, close);
    snprintf(quoted, sizeof quoted, "'%s'", close);
    return parse_expected(p, quoted, hint);
}

/* The arguments after an opening bracket, up to and with `close`; at most `most`. */
static bool parse_list(struct parser *p, const char *close, size_t most, struct node *args,
                       size_t *n) {
    size_t open = p->tok.at;
    *n = 0;
    if (!parse_next(p))
        return false;
    while (!token_is(&p->tok, close)) {
        struct node extra;
        if (*n && !parse_next(p)) /* the comma */
            return false;
        if (!parse_level(p, LEVEL_ANY, *n < most ? &args[*n] : &extra))
            return false;
        *n += 1;
        if (!token_is(&p->tok, ",") && !token_is(&p->tok, close))
            return not_closed(p, open, close);
    }
    return parse_next(p);
}

static bool wrong_count(struct parser *p, const struct token *name, size_t n, size_t want) {
    return parse_fail(p, name->at, name->len, NULL, "%.*s takes %zu argument%s, not %zu",
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
    if (!need_truth(p, c) || !node_make(p, EXPR_IF, name->at, args, 3, out))
        return false;
    if ((a->value_kind == VALUE_BOOL) != (b->value_kind == VALUE_BOOL))
        return parse_fail(p, b->at, b->len, NULL, "the sides of if differ: %s and %s",
                          kind_names[a->value_kind], kind_names[b->value_kind]);
    out->e->value_kind = a->value_kind == VALUE_BOOL ? VALUE_BOOL : wider(a, b);
    return true;
}

/* pad(x[i+1], 0): the read may leave its tensor and is the value then. */
static bool parse_pad(struct parser *p, const struct token *name, struct node *out) {
    struct node args[2];
    size_t n;
    if (!parse_list(p, ")", 2, args, &n))
        return false;
    if (n != 2)
        return wrong_count(p, name, n, 2);
    const struct expr *read = args[0].e, *value = args[1].e;
    if (read->kind != EXPR_READ || read->nargs == 0)
        return parse_fail(p, read->at, read->len, "pad(x[i-1], 0)",
                          "pad takes a single read of a tensor with indices");
    if ((read->value_kind == VALUE_BOOL) != (value->value_kind == VALUE_BOOL))
        return parse_fail(p, value->at, value->len, NULL, "the tensor holds %s, the padding is %s",
                          kind_names[read->value_kind], kind_names[value->value_kind]);
    if (!node_make(p, EXPR_PAD, name->at, args, 2, out))
        return false;
    out->e->value_kind = read->value_kind == VALUE_BOOL ? VALUE_BOOL : wider(read, value);
    return true;
}

static bool unknown_function(struct parser *p, const struct token *name) {
    char hint[512];
    size_t n = (size_t)snprintf(hint, sizeof hint, "functions are");
    for (int i = 0; i < FUNCTION_COUNT; i++)
        n += (size_t)snprintf(hint + n, sizeof hint - n, " %s",
                              function_info((enum function)i)->name);
    snprintf(hint + n, sizeof hint - n, ", and if and pad; tensors take [ ]");
    return parse_fail(p, name->at, name->len, hint, "there is no function '%.*s'",
                      STR_ARG(name->text));
}

static bool parse_call(struct parser *p, const struct token *name, struct node *out) {
    enum reduction op;
    enum function f;
    struct node args[3];
    size_t n;
    if (reduction_find(name->text, &op))
        return parse_reduce(p, name, op, out);
    if (str_is(name->text, "if"))
        return parse_if(p, name, out);
    if (str_is(name->text, "pad"))
        return parse_pad(p, name, out);
    if (!function_find(name->text, &f))
        return unknown_function(p, name);
    if (!parse_list(p, ")", 3, args, &n))
        return false;
    if (n != function_info(f)->args)
        return wrong_count(p, name, n, function_info(f)->args);
    bool integers = function_info(f)->result == RESULT_KEPT;
    for (size_t i = 0; i < n; i++) {
        if (!need_number(p, args[i].e))
            return false;
        integers = integers && args[i].e->value_kind == VALUE_INT;
    }
    if (!node_make(p, EXPR_CALL, name->at, args, n, out))
        return false;
    out->e->function = f;
    out->e->value_kind = integers ? VALUE_INT : VALUE_REAL;
    return true;
}

static bool check_index(struct parser *p, const struct expr *e) {
    bool let = e->kind == EXPR_READ && p->task->tensors[e->ref].role == TENSOR_LET;
    return e->value_kind == VALUE_INT ||
           parse_fail(p, e->at, e->len,
                      let ? "give the let an integer type: let t[i] : i32 = …"
                          : "// divides integers",
                      "an index must be an integer, this is %s", kind_names[e->value_kind]);
}

static enum value_kind kind_of_dtype(enum dtype t) {
    char k = dtype_info(t)->kind;
    return k == 'f' ? VALUE_REAL : k == 'b' ? VALUE_BOOL : VALUE_INT;
}

/* Whether this expression may read that tensor. */
static bool check_access(struct parser *p, const struct token *name, const struct tensor *t) {
    const char *fault = NULL, *hint = NULL;
    if (p->reading == READING_NOTHING) {
        fault = "is a tensor; only indices and dimensions may stand here";
    } else if (t->role == TENSOR_OUT) {
        fault = "is an output and cannot be read";
        hint = "name the value with a let and read that";
    } else if (t->role == TENSOR_RAND && p->reading == READING_TASK) {
        fault = "is random numbers that no kernel sees";
        hint = "read an input defined from it: in a[N] : f32 = 2*r[i]";
    } else if (t->role == TENSOR_LET && p->reading == READING_GIVEN) {
        fault = "is a let; an input is defined from random numbers and other inputs";
    }
    return !fault ||
           parse_fail(p, name->at, name->len, hint, "'%.*s' %s", STR_ARG(name->text), fault);
}

static bool parse_read(struct parser *p, const struct token *name, size_t ref, struct node *out) {
    const struct tensor *t = &p->task->tensors[ref];
    struct node args[TASK_MAX_RANK];
    size_t n = 0;
    if (!check_access(p, name, t))
        return false;
    if (token_is(&p->tok, "[") && !parse_list(p, "]", TASK_MAX_RANK, args, &n))
        return false;
    if (n != t->rank)
        return parse_fail(p, name->at, p->end - name->at, NULL,
                          "'%.*s' has %zu dimension%s, not %zu", STR_ARG(name->text), t->rank,
                          t->rank == 1 ? "" : "s", n);
    for (size_t i = 0; i < n; i++)
        if (!check_index(p, args[i].e))
            return false;
    if (!node_make(p, EXPR_READ, name->at, args, n, out))
        return false;
    out->e->ref = ref;
    out->e->value_kind = kind_of_dtype(t->dtype);
    return true;
}

static bool leaf(struct parser *p, enum expr_kind kind, const struct token *name, size_t ref,
                 struct node *out) {
    if (!node_make(p, kind, name->at, NULL, 0, out))
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
                      "an index variable is introduced on the left of '=' or by a reduction; "
                      "tensors and dimensions by in, param, let and dim",
                      "'%.*s' is not known here", STR_ARG(name->text));
}

static bool parse_infinity(struct parser *p, const struct token *name, struct node *out) {
    if (!node_make(p, EXPR_NUMBER, name->at, NULL, 0, out))
        return false;
    out->e->number = INFINITY;
    out->e->value_kind = VALUE_REAL;
    return true;
}

/* The definition of an input names its indices by using them. */
static bool is_new_index(const struct parser *p, const struct token *name) {
    return p->scope && p->scope->nindex < p->implicit && !word_is_reserved(name->text) &&
           !token_is(&p->tok, "[");
}

static bool parse_name(struct parser *p, struct node *out) {
    struct token name = p->tok;
    if (!parse_next(p))
        return false;
    if (token_is(&p->tok, "("))
        return parse_call(p, &name, out);
    if (str_is(name.text, "inf"))
        return parse_infinity(p, &name, out);
    int var = local_find(p, name.text), dim = dim_find(p->task, name.text);
    if (var >= 0)
        return leaf(p, EXPR_INDEX, &name, (size_t)var, out);
    if (dim >= 0)
        return leaf(p, EXPR_DIM, &name, (size_t)dim, out);
    int t = p->scope ? tensor_find(p->task, name.text) : -1;
    if (t >= 0)
        return parse_read(p, &name, (size_t)t, out);
    if (!is_new_index(p, &name))
        return unknown_name(p, &name);
    p->scope->index[p->scope->nindex] = name.text;
    return leaf(p, EXPR_INDEX, &name, p->scope->nindex++, out);
}

static bool refuse_operator(struct parser *p) {
    const struct token *t = &p->tok;
    if (token_is(t, "**") || token_is(t, "^"))
        return parse_fail(p, t->at, t->len, "powers are pow(x, y)", "there is no operator '%.*s'",
                          STR_ARG(t->text));
    if (token_is(t, "&"))
        return parse_fail(p, t->at, t->len, "'and' is &&", "there is no operator '&'");
    if (token_is(t, "?"))
        return parse_fail(p, t->at, t->len, "write if(condition, a, b)",
                          "there is no operator '?'");
    return true;
}

static bool no_operand(struct parser *p) {
    return parse_expected(p, "an expression", NULL);
}

static bool close_bracket(struct parser *p, size_t open) {
    return token_is(&p->tok, ")") ? parse_next(p) : not_closed(p, open, ")");
}

const struct language task_language = {
    .lex = {.symbols = "// ** && || == != <= >= + - * / % = < > ! | & ^ ? , : ~ ( [ ) ] .",
            .file = true,
            .name_most = 64,
            .number = lex_task_number,
            .stray = "a character that the task language does not use"},
    .depth_most = TASK_MAX_DEPTH,
    .deep = "the expression nests more than %d levels",
    .deep_hint = "split it with a let",
    .chained = "comparisons do not chain",
    .chained_hint = "join them: a < b && b < c",
    .name = parse_name,
    .no_operand = no_operand,
    .close = close_bracket,
    .settle = settle,
    .after = refuse_operator,
};

bool parse_expression(struct parser *p, struct expr **out) {
    struct node n;
    p->depth = 0;
    p->nlocals = 0;
    if (!parse_level(p, LEVEL_ANY, &n))
        return false;
    *out = n.e;
    return true;
}
