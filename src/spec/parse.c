/* Task files, line by line, in two passes.
 *
 * The first pass reads every declaration and the left side of every definition, and remembers where
 * the right sides begin; the second reads those, when all names are known. So a `let` may stand
 * before or after its use. Last comes what can be settled when the whole file is read: the order of
 * the statements, and the ranges that were left open.
 *
 * Every message names the place and, where one is known, the remedy. */
#include "base/asset.h"
#include "base/file.h"
#include "spec/infer.h"
#include "spec/pattern.h"
#include "spec/recur.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool parse_reduce(struct parser *p, const struct token *name, enum reduction op,
                         struct node *out);

/* ---- words ---- */

static const char *const keywords[] = {"task",  "dim",   "in",       "param",  "out",  "let",
                                       "check", "torch", "accuracy", "assume", "rand", "inout",
                                       "if",    "inf",   "pad",      "def"};

static const char *const reduction_names[REDUCTION_COUNT] = {
    [REDUCTION_SUM] = "sum",       [REDUCTION_PROD] = "prod", [REDUCTION_MAX] = "max",
    [REDUCTION_MIN] = "min",       [REDUCTION_MEAN] = "mean", [REDUCTION_ARGMAX] = "argmax",
    [REDUCTION_ARGMIN] = "argmin",
};

const char *reduction_name(enum reduction r) {
    BUG_IF((unsigned)r >= REDUCTION_COUNT);
    return reduction_names[r];
}

static bool reduction_find(str name, enum reduction *out) {
    for (int i = 0; i < REDUCTION_COUNT; i++)
        if (str_is(name, reduction_names[i])) {
            *out = (enum reduction)i;
            return true;
        }
    return false;
}

/* Words with a meaning of their own: no dimension, tensor or index may be called so. */
static bool word_is_reserved(str name) {
    enum dtype t;
    enum reduction r;
    enum function f;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_is(name, keywords[i]))
            return true;
    return function_find(name, &f) || reduction_find(name, &r) || dtype_find(name, &t);
}

/* ---- what other languages call it ----
 *
 * Words and signs that people bring along, and what says the same here. */

struct elsewhere {
    const char *word, *here;
};

static const struct elsewhere words_elsewhere[] = {
    {"where", "a choice is if(condition, a, b)"},
    {"select", "a choice is if(condition, a, b)"},
    {"and", "'and' is &&"},
    {"or", "'or' is ||"},
    {"not", "'not' is !"},
    {"xor", "of truth values that is a != b, of the bits of integers bit_xor(a, b)"},
    {"in",
     "a range is stated by its ends: sum(k < N) x[k], sum(j <= k < N) x[k], let v[i < N] = …"},
    {"for", "a reduction names its variable first: sum(k < N) x[k]"},
    {"range", "a range is stated by its ends: sum(k < N) x[k], sum(j <= k < N) x[k]"},
    {"else", "a choice is if(condition, a, b)"},
    {"True", "a condition that always holds is 0 == 0"},
    {"true", "a condition that always holds is 0 == 0"},
    {"False", "a condition that never holds is 0 != 0"},
    {"false", "a condition that never holds is 0 != 0"},
    {"pi", "write the number: 3.141592653589793"},
    {"ln", "the natural logarithm is log(x)"},
    {"log2", "log(x)/log(2)"},
    {"log10", "log(x)/log(10)"},
    {"exp2", "pow(2, x)"},
    {"power", "powers are pow(x, y)"},
    {"fabs", "abs(x)"},
    {"fmax", "the larger of two values is maximum(a, b)"},
    {"fmin", "the smaller of two values is minimum(a, b)"},
    {"clip", "clamp(x, low, high)"},
    {"mod", "of integers a % b; of reals a - b*floor(a/b)"},
    {"div", "integers are divided by //, reals by /"},
    {"tan", "sin(x)/cos(x)"},
    {"erfc", "1 - erf(x)"},
    {"trunc", "sign(x)*floor(abs(x))"},
    {"int", "floor(x), ceil(x) and round(x) are whole; integers turn into reals by themselves"},
    {"float", "integers turn into reals by themselves"},
    {"isnan", "x != x holds for NaN alone"},
    {"isinf", "abs(x) == inf"},
    {"any", "max(j) if(condition, 1, 0) is 1 where some element fulfils it"},
    {"all", "min(j) if(condition, 1, 0) is 1 where all elements fulfil it"},
    {"cumsum", "a prefix is sum(k <= j) x[i,k]"},
    {"cumprod", "a prefix is prod(k <= j) x[i,k]"},
    {"dot", "a product that is summed: sum(k) a[k]*b[k]"},
    {"matmul", "a product that is summed: sum(k) a[i,k]*b[k,j]"},
    {"softmax", "let m[i] = max(j) x[i,j], let s[i] = sum(j) exp(x[i,j] - m[i]), and "
                "exp(x[i,j] - m[i])/s[i]"},
    {"sort", "sorting is not in the language"},
    {"topk", "top-k is not in the language; the largest element is max(j) and argmax(j)"},
};

static const char *elsewhere_find(const struct token *t) {
    for (size_t i = 0;
         t->kind == TOKEN_NAME && i < sizeof words_elsewhere / sizeof *words_elsewhere; i++)
        if (str_is(t->text, words_elsewhere[i].word))
            return words_elsewhere[i].here;
    return NULL;
}

/* Signs after an operand. */
static const struct elsewhere signs_elsewhere[] = {
    {"**", "powers are pow(x, y)"},
    {"^", "powers are pow(x, y); of the bits of integers it is bit_xor(a, b)"},
    {"&", "'and' is &&; of the bits of integers it is bit_and(a, b)"},
    {"<<", "of integers it is shl(a, n), which is a times 2 to the n"},
    {">>", "of integers it is shr(a, n), which is a // 2 to the n"},
    {"@", "a matrix product is sum(k) a[i,k]*b[k,j]"},
    {"?", "write if(condition, a, b)"},
    {";", "the end of the line ends a definition"},
};

/* Signs where an operand should be. */
static const struct elsewhere signs_before[] = {
    {":", "no part of a tensor is a value: an element is x[i,k], a reduction over all of a row is "
          "sum(k) x[i,k]"},
    {"~", "the bits of an integer turned over are bit_xor(x, -1); 'not' is !"},
    {"+", "a sign + is left out"},
    {"{", "brackets are ( and )"},
};

static const char *sign_find(const struct token *t, const struct elsewhere *signs, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (token_is(t, signs[i].word))
            return signs[i].here;
    return NULL;
}

/* ---- expressions: what names and functions stand for, and the kind of every node ---- */

static const char *const kind_names[] = {"an integer", "a real number", "a truth value"};

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

static bool parse_expected(struct parser *p, const char *what, const char *hint) {
    const struct token *t = &p->tok;
    if (t->kind == TOKEN_END)
        return parse_fail(p, t->at, 0, hint, "expected %s, found the end of the file", what);
    if (t->kind == TOKEN_LINE)
        return parse_fail(p, t->at, 0, hint, "expected %s, found the end of the line", what);
    return parse_fail(p, t->at, t->len, hint, "expected %s, found '%.*s'", what, STR_ARG(t->text));
}

static bool not_closed(struct parser *p, size_t open, const char *close) {
    char hint[192], quoted[8];
    size_t line, col;
    text_position(p->lx.text, open, &line, &col);
    if (token_is(&p->tok, ":"))
        snprintf(hint, sizeof hint,
                 "a range of places is not a value: an element is x[i], a sum over some of them "
                 "sum(j <= k < N) x[k]");
    else if (token_is(&p->tok, "|"))
        snprintf(hint, sizeof hint,
                 "'or' is ||; of the bits of integers it is bit_or(a, b); a guard stands after the "
                 "variables of a reduction: sum(k | k > 0)");
    else
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

static bool leaf(struct parser *p, enum expr_kind kind, const struct token *name, size_t ref,
                 struct node *out) {
    if (!node_make(p, kind, name->at, NULL, 0, out))
        return false;
    out->e->ref = ref;
    out->e->value_kind = VALUE_INT;
    return true;
}

/* ---- functions of the task's own, and of the library ----
 *
 * A call is its right side with the arguments in place of the parameters. The right side is read
 * anew for each call, so that kinds settle by the arguments; names in it are parameters, variables
 * of its own reductions, dimensions and tensors, never the indices of the place that calls. It
 * calls functions further up, so that no call goes in a circle.
 *
 * An argument that stands in several places is copied; where it has a reduction it becomes a let
 * instead, so that the reduction is one. */

enum { PARAMETERS_MOST = 8, FUNCTIONS_MOST = 128, EXPANDED_MOST = 1 << 16 };

struct own_function {
    str name;
    str parameter[PARAMETERS_MOST];
    size_t nparameters;
    struct lexer body; /* after the = */
    bool library;
};

struct own_functions {
    struct own_function list[FUNCTIONS_MOST]; /* the library's first, once they are needed */
    size_t n, nlibrary;
    size_t nlets; /* that arguments have become */
};

struct frame {
    const struct own_function *f;
    const struct node *args;
    size_t first_local;        /* variables before it belong to the callers */
    const struct frame *outer; /* of the call around */
};

static struct own_function *own_find(const struct parser *p, str name) {
    for (size_t i = p->own->n; i-- > 0;)
        if (str_eq(p->own->list[i].name, name))
            return &p->own->list[i];
    return NULL;
}

static struct expr *copy(struct parser *p, const struct expr *e);

static struct reduce *copy_reduce(struct parser *p, const struct reduce *r) {
    struct reduce *c = arena_new_of(p->arena, struct reduce);
    *c = *r;
    c->vars = arena_array(p->arena, struct reduce_var, r->nvars);
    for (size_t i = 0; i < r->nvars; i++) {
        c->vars[i] = r->vars[i];
        c->vars[i].lo = copy(p, r->vars[i].lo);
        c->vars[i].hi = r->vars[i].hi ? copy(p, r->vars[i].hi) : NULL;
    }
    c->guard = r->guard ? copy(p, r->guard) : NULL;
    return c;
}

static struct expr *copy(struct parser *p, const struct expr *e) {
    struct expr *c = arena_new_of(p->arena, struct expr);
    p->expanded++;
    *c = *e;
    c->args = e->nargs ? arena_array(p->arena, struct expr *, e->nargs) : NULL;
    for (size_t i = 0; i < e->nargs && p->expanded <= EXPANDED_MOST; i++)
        c->args[i] = copy(p, e->args[i]);
    if (e->reduce && p->expanded <= EXPANDED_MOST)
        c->reduce = copy_reduce(p, e->reduce);
    return c;
}

/* Makes way for a variable of the left side or of a reduction: to[v] is its new number. */
static void renumber(struct expr *e, const size_t *to) {
    if (e->kind == EXPR_INDEX)
        e->ref = to[e->ref];
    for (size_t i = 0; i < e->nargs; i++)
        renumber(e->args[i], to);
    for (size_t i = 0; e->reduce && i < e->reduce->nvars; i++) {
        struct reduce_var *v = &e->reduce->vars[i];
        v->var = to[v->var];
        renumber(v->lo, to);
        if (v->hi)
            renumber(v->hi, to);
    }
    if (e->reduce && e->reduce->guard)
        renumber(e->reduce->guard, to);
}

/* New numbers from *next on for the variables of the reductions in e, in order of appearance. */
static void number_variables(const struct expr *e, size_t *to, size_t *next) {
    for (size_t i = 0; e->reduce && i < e->reduce->nvars; i++)
        if (to[e->reduce->vars[i].var] == SIZE_MAX)
            to[e->reduce->vars[i].var] = (*next)++;
    if (e->reduce && e->reduce->guard)
        number_variables(e->reduce->guard, to, next);
    for (size_t i = 0; i < e->nargs; i++)
        number_variables(e->args[i], to, next);
}

static void start_numbers(size_t *to) {
    for (size_t v = 0; v < TASK_MAX_VARS; v++)
        to[v] = SIZE_MAX;
}

/* Arguments that became lets, or that a function has no use for, took their variables along. */
static void close_gaps(struct statement *s, size_t first) {
    size_t to[TASK_MAX_VARS];
    start_numbers(to);
    for (size_t v = 0; v < first; v++)
        to[v] = v;
    s->nvars = first;
    number_variables(s->body, to, &s->nvars);
    renumber(s->body, to);
}

static uint32_t free_variables(const struct expr *e) {
    uint32_t vars = e->kind == EXPR_INDEX ? UINT32_C(1) << e->ref : 0;
    for (size_t i = 0; i < expr_nparts(e); i++)
        vars |= expr_part(e, i) ? free_variables(expr_part(e, i)) : 0;
    for (size_t i = 0; e->reduce && i < e->reduce->nvars; i++)
        vars &= ~(UINT32_C(1) << e->reduce->vars[i].var);
    return vars;
}

static size_t count_uses(const struct own_function *f, str parameter) {
    struct lexer lx = f->body;
    struct token t = {0};
    struct err ignored = {0};
    size_t n = 0;
    while (lex_next(&lx, &t, &ignored) && t.kind != TOKEN_END && t.kind != TOKEN_LINE)
        n += t.kind == TOKEN_NAME && str_eq(t.text, parameter);
    return n;
}

static str let_name(struct parser *p, const struct own_function *f, str parameter) {
    str name;
    do
        name = arena_printf(p->arena, "%.*s_%.*s_%zu", STR_ARG(f->name), STR_ARG(parameter),
                            ++p->own->nlets);
    while (tensor_find(p->task, name) >= 0 || dim_find(p->task, name) >= 0);
    return name;
}

/* Whether an argument can become a let: it has a reduction, serves several times, and depends on
 * the indices of the statement alone. */
static bool becomes_let(const struct parser *p, const struct own_function *f, size_t k,
                        const struct expr *e) {
    const struct task *t = p->task;
    return p->expanded <= EXPANDED_MOST && /* a copy beyond it has parts missing */
           p->scope && p->reading == READING_TASK && p->scope->body_of_task &&
           expr_has(e, EXPR_REDUCE) && count_uses(f, f->parameter[k]) > 1 &&
           free_variables(e) >> p->scope->nindex == 0 && t->ntensors < TASK_MAX_TENSORS &&
           t->nstatements < TASK_MAX_STATEMENTS;
}

/* The argument as a let of its own, and a read of it in its place. `vars`: as many variables had
 * the statement before the argument was read. */
static bool argument_let(struct parser *p, const struct own_function *f, size_t k, size_t vars,
                         struct node *arg) {
    static const enum dtype types[] = {
        [VALUE_INT] = DTYPE_I64, [VALUE_REAL] = DTYPE_F64, [VALUE_BOOL] = DTYPE_BOOL};
    struct expr *e = arg->e;
    struct statement *scope = p->scope,
                     s = {.tensor = p->task->ntensors, .at = e->at, .len = e->len};
    struct tensor t = {.name = let_name(p, f, f->parameter[k]),
                       .role = TENSOR_LET,
                       .dtype = types[e->value_kind],
                       .at = e->at,
                       .len = e->len};
    size_t to[TASK_MAX_VARS];
    struct node places[TASK_MAX_RANK], read;
    uint32_t used = free_variables(e);
    start_numbers(to);
    for (size_t v = 0; v < scope->nindex; v++) {
        if (!(used >> v & 1))
            continue;
        struct token name = {.at = e->at, .len = e->len, .text = scope->index[v]};
        if (!leaf(p, EXPR_INDEX, &name, v, &places[s.nindex]))
            return false;
        to[v] = s.nindex;
        s.position[s.nindex] = (int)s.nindex;
        s.index[s.nindex++] = scope->index[v];
    }
    s.nvars = s.nindex;
    number_variables(e, to, &s.nvars);
    scope->nvars = vars;
    renumber(e, to);
    s.body = e;
    s.body_of_task = true;
    t.rank = s.nindex;
    if (!node_make(p, EXPR_READ, e->at, places, s.nindex, &read))
        return false;
    read.e->ref = s.tensor;
    read.e->value_kind = e->value_kind;
    read.e->at = e->at;
    read.e->len = e->len;
    p->task->tensors[p->task->ntensors++] = t;
    p->task->statements[p->task->nstatements++] = s;
    *arg = read;
    return true;
}

static bool parse_arguments(struct parser *p, const struct own_function *f, struct node *args,
                            size_t *n) {
    size_t open = p->tok.at;
    *n = 0;
    if (!parse_next(p))
        return false;
    while (!token_is(&p->tok, ")")) {
        struct node extra = {0}, *arg = *n < PARAMETERS_MOST ? &args[*n] : &extra;
        size_t vars = p->scope ? p->scope->nvars : 0;
        if ((*n && !parse_next(p)) || !parse_level(p, LEVEL_ANY, arg))
            return false;
        if (*n < f->nparameters && becomes_let(p, f, *n, arg->e) &&
            !argument_let(p, f, *n, vars, arg))
            return false;
        *n += 1;
        if (!token_is(&p->tok, ",") && !token_is(&p->tok, ")"))
            return not_closed(p, open, ")");
    }
    return parse_next(p);
}

/* The right side, with these arguments. The parser goes on where it was. */
static bool expand(struct parser *p, const struct own_function *f, const struct calling *calling,
                   const struct node *args, struct node *out) {
    struct frame frame = {f, args, p->nlocals, p->frame};
    struct parser before = *p;
    p->frame = &frame;
    p->calling = calling;
    p->lx = f->body;
    bool ok = parse_next(p) && parse_level(p, LEVEL_ANY, out);
    if (ok && p->tok.kind != TOKEN_LINE && p->tok.kind != TOKEN_END)
        ok = parse_expected(p, "an operator or the end of the line", elsewhere_find(&p->tok));
    p->lx = before.lx;
    p->tok = before.tok;
    p->end = before.end;
    p->frame = before.frame;
    p->calling = before.calling;
    return ok;
}

static bool wrong_number(struct parser *p, const struct token *name, const struct own_function *f,
                         size_t n) {
    struct buf b;
    char hint[160];
    buf_init(&b, sizeof hint);
    buf_printf(&b, "%.*s(", STR_ARG(f->name));
    for (size_t i = 0; i < f->nparameters; i++)
        buf_printf(&b, "%s%.*s", i ? ", " : "", STR_ARG(f->parameter[i]));
    snprintf(hint, sizeof hint, "it is called as %.*s)", STR_ARG(buf_str(&b)));
    buf_release(&b);
    return parse_fail(p, name->at, name->len, hint, "%.*s takes %zu argument%s, not %zu",
                      STR_ARG(name->text), f->nparameters, f->nparameters == 1 ? "" : "s", n);
}

/* `name` was read, the bracket is next. */
static bool parse_own_call(struct parser *p, const struct token *name, const struct own_function *f,
                           struct node *out) {
    struct node args[PARAMETERS_MOST];
    size_t n;
    if (p->frame && f >= p->frame->f)
        return parse_fail(p, name->at, name->len,
                          "a function calls those that are defined above it",
                          f == p->frame->f ? "the function '%.*s' calls itself"
                                           : "the function '%.*s' is defined further down",
                          STR_ARG(name->text));
    if (!parse_arguments(p, f, args, &n))
        return false;
    if (n != f->nparameters)
        return wrong_number(p, name, f, n);
    struct calling *calling = arena_new_of(p->arena, struct calling);
    *calling = (struct calling){f->name, f->library, name->at, p->end - name->at};
    if (p->calling && p->calling->len) /* of calls within calls people look for the outermost */
        *calling = (struct calling){f->name, f->library, p->calling->at, p->calling->len};
    if (!expand(p, f, calling, args, out))
        return false;
    return p->expanded <= EXPANDED_MOST ||
           parse_fail(p, name->at, name->len, "name parts of it with lets",
                      "the functions of the task come to more than %d operations, written out",
                      EXPANDED_MOST);
}

/* A parameter of the function that is being read, as its argument; false: there is none. */
static bool parameter_find(const struct parser *p, str name, size_t *k) {
    for (*k = 0; p->frame && *k < p->frame->f->nparameters; *k += 1)
        if (str_eq(p->frame->f->parameter[*k], name))
            return true;
    return false;
}

static bool parse_parameter(struct parser *p, const struct token *name, size_t k,
                            struct node *out) {
    if (token_is(&p->tok, "["))
        return parse_fail(p, name->at, name->len, "a function reads tensors by their own names",
                          "the parameter '%.*s' is one value and has no elements",
                          STR_ARG(name->text));
    *out = (struct node){copy(p, p->frame->args[k].e), p->frame->args[k].height};
    return true;
}

/* def NAME(a, b) = …: the token after `def` is next. The right side is skipped. */
static bool parse_own_head(struct parser *p, struct own_function *f) {
    static const char form[] = "def scaled(t, by) = t*by";
    if (!parse_next(p) || p->tok.kind != TOKEN_NAME)
        return p->tok.kind == TOKEN_NAME || parse_expected(p, "the name of a function", form);
    struct token name = p->tok;
    if (word_is_reserved(name.text))
        return parse_fail(p, name.at, name.len, "choose another name",
                          "'%.*s' is a word of the language", STR_ARG(name.text));
    struct own_function *same = own_find(p, name.text);
    if (same && !same->library)
        return parse_fail(p, name.at, name.len, NULL, "'%.*s' is defined already",
                          STR_ARG(name.text));
    f->name = name.text;
    if (!parse_next(p))
        return false;
    if (!token_is(&p->tok, "("))
        return parse_expected(p, "'('", form);
    do {
        if (!parse_next(p))
            return false;
        if (p->tok.kind != TOKEN_NAME)
            return parse_expected(p, "the name of a parameter", form);
        if (word_is_reserved(p->tok.text))
            return parse_fail(p, p->tok.at, p->tok.len, "choose another name",
                              "'%.*s' is a word of the language", STR_ARG(p->tok.text));
        for (size_t i = 0; i < f->nparameters; i++)
            if (str_eq(f->parameter[i], p->tok.text))
                return parse_fail(p, p->tok.at, p->tok.len, NULL,
                                  "the parameter '%.*s' stands twice", STR_ARG(p->tok.text));
        if (f->nparameters == PARAMETERS_MOST)
            return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d parameters",
                              PARAMETERS_MOST);
        f->parameter[f->nparameters++] = p->tok.text;
        if (!parse_next(p))
            return false;
    } while (token_is(&p->tok, ","));
    if (!token_is(&p->tok, ")"))
        return parse_expected(p, ", or )", form);
    if (!parse_next(p))
        return false;
    if (!token_is(&p->tok, "="))
        return parse_expected(p, "'='", form);
    f->body = p->lx;
    do
        if (!parse_next(p))
            return false;
    while (p->tok.kind != TOKEN_LINE && p->tok.kind != TOKEN_END);
    return true;
}

static bool parse_own(struct parser *p) {
    struct own_functions *own = p->own;
    if (own->n == FUNCTIONS_MOST)
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d functions",
                          FUNCTIONS_MOST - (int)own->nlibrary);
    struct own_function f = {.library = p->calling && p->calling->library};
    if (!parse_own_head(p, &f))
        return false;
    own->list[own->n++] = f;
    return true;
}

/* The library's functions are the first, so that those of the task may call them, and may have the
 * name of one. */
static bool load_library(struct parser *p) {
    struct calling library = {.name = S("library"), .library = true};
    struct parser reader = *p;
    str text;
    if (!asset_get(NULL, "library/functions.task", p->arena, &text, p->err))
        return false;
    reader.lx = lex_start(&p->language->lex, S("library/functions.task"), text);
    reader.calling = &library;
    if (!parse_next(&reader))
        return false;
    while (reader.tok.kind != TOKEN_END) {
        if (!parse_own(&reader))
            return false;
        if (reader.tok.kind == TOKEN_LINE && !parse_next(&reader))
            return false;
    }
    p->own->nlibrary = p->own->n;
    return true;
}

/* A right side that no arguments fit is wrong, called or not: parameters are tried as integers,
 * which do for real numbers as well, and as truth values. */
static bool check_own(struct parser *p, const struct own_function *f) {
    struct expr values[2] = {
        {.kind = EXPR_NUMBER, .value_kind = VALUE_INT, .integral = true, .integer = 1, .number = 1},
        {.kind = EXPR_NUMBER,
         .value_kind = VALUE_BOOL,
         .integral = true,
         .integer = 1,
         .number = 1}};
    struct calling calling = {.name = f->name};
    struct node args[PARAMETERS_MOST], out;
    for (unsigned truths = 0; truths < 1u << f->nparameters; truths++) {
        struct statement scope = {.tensor = SIZE_MAX};
        struct parser trial = *p;
        struct err ignored = {0};
        trial.scope = &scope;
        trial.reading = READING_TASK;
        trial.nlocals = 0;
        trial.depth = 0;
        trial.expanded = 0;
        trial.err = &ignored;
        for (size_t k = 0; k < f->nparameters; k++)
            args[k] = (struct node){&values[truths >> k & 1], 1};
        if (expand(&trial, f, &calling, args, &out))
            return true;
        if (truths == 0)
            *p->err = ignored;
    }
    return false;
}

static bool check_functions(struct parser *p) {
    for (size_t i = p->own->nlibrary; i < p->own->n; i++)
        if (!check_own(p, &p->own->list[i]))
            return false;
    return true;
}

static bool unknown_function(struct parser *p, const struct token *name) {
    char hint[1024];
    if (elsewhere_find(name))
        return parse_fail(p, name->at, name->len, elsewhere_find(name),
                          "there is no function '%.*s'", STR_ARG(name->text));
    size_t n = (size_t)snprintf(hint, sizeof hint, "functions are");
    for (int i = 0; i < FUNCTION_COUNT; i++)
        n += (size_t)snprintf(hint + n, sizeof hint - n, " %s",
                              function_info((enum function)i)->name);
    n += (size_t)snprintf(hint + n, sizeof hint - n, ", if and pad; of the library");
    for (size_t i = 0; i < p->own->nlibrary && n < sizeof hint; i++)
        n += (size_t)snprintf(hint + n, sizeof hint - n, " %.*s", STR_ARG(p->own->list[i].name));
    if (n < sizeof hint)
        snprintf(hint + n, sizeof hint - n, "; def makes more; tensors take [ ]");
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
    if (!function_find(name->text, &f)) {
        const struct own_function *own = own_find(p, name->text);
        return own ? parse_own_call(p, name, own, out) : unknown_function(p, name);
    }
    if (!parse_list(p, ")", 3, args, &n))
        return false;
    if (n != function_info(f)->args)
        return wrong_count(p, name, n, function_info(f)->args);
    bool integers = function_info(f)->result == RESULT_KEPT || function_takes_integers(f);
    for (size_t i = 0; i < n; i++) {
        if (!need_number(p, args[i].e) ||
            (function_takes_integers(f) && !need_integer(p, args[i].e, function_info(f)->name)))
            return false;
        integers = integers && args[i].e->value_kind == VALUE_INT;
    }
    if (!node_make(p, EXPR_CALL, name->at, args, n, out))
        return false;
    out->e->function = f;
    out->e->value_kind =
        integers && function_info(f)->result != RESULT_DRAWN ? VALUE_INT : VALUE_REAL;
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

static const char recurrences[] =
    "what follows from the step before is a let that reads itself, and the output copies it: let "
    "h[t] = if(t == 0, x[0], a[t]*h[t-1] + x[t]), y[t] = h[t]";

/* Whether this expression may read that tensor. */
static bool check_access(struct parser *p, const struct token *name, const struct tensor *t) {
    const char *fault = NULL, *hint = NULL;
    if (p->reading == READING_NOTHING) {
        fault = "is a tensor; only indices and dimensions may stand here";
    } else if (t->role == TENSOR_OUT) {
        bool own = p->scope && p->scope->tensor == (size_t)(t - p->task->tensors);
        fault = "is an output and cannot be read";
        hint = own ? recurrences : "name the value with a let and read that";
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

static bool unknown_name(struct parser *p, const struct token *name) {
    if (elsewhere_find(name))
        return parse_fail(p, name->at, name->len, elsewhere_find(name),
                          "'%.*s' is not a word of the language here", STR_ARG(name->text));
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
    return p->scope && !p->frame && p->scope->nindex < p->implicit &&
           !word_is_reserved(name->text) && !token_is(&p->tok, "[");
}

/* A variable in sight, or -1. */
static int local_find(const struct parser *p, str name) {
    const struct statement *s = p->scope;
    for (size_t i = 0; s && !p->frame && i < s->nindex; i++)
        if (str_eq(s->index[i], name))
            return (int)i;
    for (size_t i = p->frame ? p->frame->first_local : 0; i < p->nlocals; i++)
        if (str_eq(p->locals[i].name, name))
            return (int)p->locals[i].var;
    return -1;
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
    size_t parameter;
    if (parameter_find(p, name.text, &parameter))
        return parse_parameter(p, &name, parameter, out);
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
    const char *hint =
        sign_find(t, signs_elsewhere, sizeof signs_elsewhere / sizeof *signs_elsewhere);
    if (token_is_name(t, "and") || token_is_name(t, "or") || token_is_name(t, "not") ||
        token_is_name(t, "xor") || token_is_name(t, "else") || token_is_name(t, "for"))
        hint = elsewhere_find(t);
    if (token_is_name(t, "if"))
        hint = "a choice is if(condition, a, b)";
    return !hint ||
           parse_fail(p, t->at, t->len, hint, "there is no operator '%.*s'", STR_ARG(t->text));
}

static bool no_operand(struct parser *p) {
    return parse_expected(
        p, "an expression",
        sign_find(&p->tok, signs_before, sizeof signs_before / sizeof *signs_before));
}

static bool close_bracket(struct parser *p, size_t open) {
    return token_is(&p->tok, ")") ? parse_next(p) : not_closed(p, open, ")");
}

static const struct language task_language = {
    .lex = {.symbols =
                "// ** && || == != <= >= << >> + - * / % = < > ! | & ^ ? , : ~ ( [ ) ] . @ ; { }",
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

static bool parse_expression(struct parser *p, struct expr **out) {
    struct node n;
    p->depth = 0;
    p->nlocals = 0;
    if (!parse_level(p, LEVEL_ANY, &n))
        return false;
    *out = n.e;
    return true;
}

/* ---- reductions ----
 *
 * `sum(k) a[i,k]*b[k,j]`, `max(r < 8 | i + r < N) x[i+r]`, `sum(j <= k < N) x[k]`.
 *
 * A variable is in sight from the end of its range to the end of the reduction's body, so a range
 * may use those before it. It gets a number of its own in the statement; its name may serve again
 * in another reduction beside this one, but hides nothing. Ranges that are not stated are settled
 * at the end, when the extents of all tensors are known. */

struct head {
    enum reduction op;
    struct reduce_var vars[TASK_MAX_VARS];
    size_t nvars;
    struct expr *guard;
    int height; /* of the highest bound or guard */
};

static const char *range_hint(const struct head *h) {
    return h->op == REDUCTION_MAX   ? "the larger of two values is maximum(a, b); a reduction is "
                                      "max(k) x[k], max(k < 8) x[k] or max(j <= k < N) x[k]"
           : h->op == REDUCTION_MIN ? "the smaller of two values is minimum(a, b); a reduction is "
                                      "min(k) x[k], min(k < 8) x[k] or min(j <= k < N) x[k]"
                                    : "sum(k) x[k], sum(k < 8) x[k] or sum(j <= k < N) x[k]";
}

static const char *meaning_of(const struct parser *p, str name) {
    size_t parameter;
    return word_is_reserved(name)                ? "a word of the language"
           : parameter_find(p, name, &parameter) ? "a parameter already"
           : local_find(p, name) >= 0            ? "a variable of this statement already"
           : dim_find(p->task, name) >= 0        ? "a dimension already"
           : tensor_find(p->task, name) >= 0     ? "a tensor already"
                                                 : NULL;
}

static bool name_taken(struct parser *p, const struct token *t, const char *hint) {
    return parse_fail(p, t->at, t->len, hint, "'%.*s' is %s; a reduction runs over a new name",
                      STR_ARG(t->text), meaning_of(p, t->text));
}

/* A bound is an integer over dimensions and the variables in sight. */
static bool parse_bound(struct parser *p, struct head *h, struct node *out) {
    if (!parse_level(p, LEVEL_SUM, out))
        return false;
    const struct expr *e = out->e, *read = expr_find(e, EXPR_READ);
    const struct expr *bad = read ? read : expr_find(e, EXPR_REDUCE);
    if (bad)
        return parse_fail(p, bad->at, bad->len, "select terms with a guard: sum(k | k < n[i]) x[k]",
                          "the range of a reduction depends on data");
    if (e->value_kind != VALUE_INT)
        return parse_fail(p, e->at, e->len, "// divides integers",
                          "a bound of a reduction must be an integer");
    h->height = out->height > h->height ? out->height : h->height;
    return true;
}

static struct expr *number(struct parser *p, const struct expr *near, int64_t v) {
    struct expr *e = arena_new_of(p->arena, struct expr);
    *e = (struct expr){.kind = EXPR_NUMBER,
                       .value_kind = VALUE_INT,
                       .at = near->at,
                       .len = near->len,
                       .number = (double)v,
                       .integer = v,
                       .integral = true};
    return e;
}

/* e + 1, for bounds of the other inclusion. */
static bool successor(struct parser *p, struct head *h, const struct node *n, struct expr **out) {
    struct node args[2] = {*n, {number(p, n->e, 1), 1}};
    struct node sum;
    if (!node_make(p, EXPR_ADD, n->e->at, args, 2, &sum))
        return false;
    sum.e->len = n->e->len;
    sum.e->value_kind = VALUE_INT;
    h->height = sum.height > h->height ? sum.height : h->height;
    *out = sum.e;
    return true;
}

/* `< e` or `<= e`: the end of the range. */
static bool parse_upper(struct parser *p, struct head *h, struct reduce_var *v) {
    bool with = token_is(&p->tok, "<=");
    struct node hi;
    if (!with && !token_is(&p->tok, "<"))
        return parse_expected(p, "< or <=", "state both ends: sum(j <= k < N)");
    if (!parse_next(p) || !parse_bound(p, h, &hi))
        return false;
    v->hi = hi.e;
    return !with || successor(p, h, &hi, &v->hi);
}

/* `e <=` or `e <`: the beginning, before the variable. */
static bool parse_lower(struct parser *p, struct head *h, struct reduce_var *v) {
    static const char other_name[] = "choose another name for the variable";
    struct token first = p->tok;
    struct node lo;
    if (!parse_bound(p, h, &lo))
        return false;
    bool bare = first.kind == TOKEN_NAME && p->end == first.at + first.len;
    bool strict = token_is(&p->tok, "<");
    if (!strict && !token_is(&p->tok, "<="))
        return bare ? name_taken(p, &first, other_name)
                    : parse_expected(p, "< or <=", range_hint(h));
    if (!parse_next(p))
        return false;
    v->lo = lo.e;
    if (p->tok.kind == TOKEN_NAME && !meaning_of(p, p->tok.text))
        return !strict || successor(p, h, &lo, &v->lo);
    if (bare)
        return name_taken(p, &first, other_name);
    return parse_expected(p, "the variable of the reduction", range_hint(h));
}

/* A tensor or a word where a variable should be: the commonest is max(a, b). */
static bool not_a_variable(struct parser *p, const struct head *h) {
    const struct token *t = &p->tok;
    if (t->kind != TOKEN_NAME)
        return parse_expected(p, "the variable of the reduction", range_hint(h));
    return name_taken(p, t, range_hint(h));
}

static bool begins_bound(const struct parser *p) {
    const struct token *t = &p->tok;
    return t->kind == TOKEN_NUMBER || token_is(t, "(") || token_is(t, "-") ||
           (t->kind == TOKEN_NAME &&
            (local_find(p, t->text) >= 0 || dim_find(p->task, t->text) >= 0 ||
             str_is(t->text, "maximum") || str_is(t->text, "minimum") || str_is(t->text, "abs") ||
             str_is(t->text, "clamp") || str_is(t->text, "if")));
}

static bool parse_variable(struct parser *p, struct head *h) {
    struct reduce_var v = {0};
    struct statement *s = p->scope;
    if (p->tok.kind == TOKEN_NAME && !meaning_of(p, p->tok.text))
        v.inferred = true;
    else if (!begins_bound(p))
        return not_a_variable(p, h);
    else if (!parse_lower(p, h, &v))
        return false;
    struct token name = p->tok;
    v.name = name.text;
    if (s->nvars == TASK_MAX_VARS)
        return parse_fail(p, name.at, name.len, "split it with a let",
                          "more than %d variables in one statement", TASK_MAX_VARS);
    if (!parse_next(p))
        return false;
    if (v.lo || token_is(&p->tok, "<") || token_is(&p->tok, "<=")) {
        v.inferred = false;
        if (!parse_upper(p, h, &v))
            return false;
    }
    if (!v.lo)
        v.lo = number(p, &(struct expr){.at = name.at, .len = name.len}, 0);
    v.var = s->nvars++;
    p->locals[p->nlocals++] = (struct local){v.name, v.var};
    if (p->frame) /* arguments may have a variable of this name */
        v.name = arena_printf(p->arena, "%.*s_%zu", STR_ARG(v.name), v.var);
    h->vars[h->nvars++] = v;
    return true;
}

static bool parse_guard(struct parser *p, struct head *h) {
    struct node guard;
    if (!token_is(&p->tok, "|"))
        return true;
    if (!parse_next(p) || !parse_level(p, LEVEL_ANY, &guard) || !need_truth(p, guard.e))
        return false;
    h->guard = guard.e;
    h->height = guard.height > h->height ? guard.height : h->height;
    return true;
}

static bool reduction_head(struct parser *p, struct head *h) {
    do {
        if (!parse_next(p) || !parse_variable(p, h))
            return false;
    } while (token_is(&p->tok, ","));
    if (!parse_guard(p, h))
        return false;
    if (token_is(&p->tok, ")"))
        return parse_next(p);
    const char *hint = elsewhere_find(&p->tok);
    if (token_is(&p->tok, "=") || token_is(&p->tok, ":"))
        hint = "a range is stated by its ends: sum(k < N) x[k], sum(j <= k < N) x[k]";
    if (h->guard && token_is(&p->tok, "|"))
        hint = "'or' is ||; of the bits of integers it is bit_or(a, b)";
    return parse_expected(p, h->guard ? "')'" : ", | or )", hint ? hint : range_hint(h));
}

static bool is_arg(enum reduction op) {
    return op == REDUCTION_ARGMAX || op == REDUCTION_ARGMIN;
}

static bool finish(struct parser *p, const struct token *name, const struct head *h,
                   struct node *body, struct node *out) {
    if (!need_number(p, body->e) || !node_make(p, EXPR_REDUCE, name->at, body, 1, out) ||
        !node_raise(p, out, h->height + 1))
        return false;
    struct reduce *r = arena_new_of(p->arena, struct reduce);
    *r = (struct reduce){.op = h->op, .nvars = h->nvars, .guard = h->guard};
    r->vars = arena_array(p->arena, struct reduce_var, h->nvars);
    for (size_t i = 0; i < h->nvars; i++)
        r->vars[i] = h->vars[i];
    out->e->reduce = r;
    out->e->value_kind = is_arg(h->op)             ? VALUE_INT
                         : h->op == REDUCTION_MEAN ? VALUE_REAL
                                                   : body->e->value_kind;
    return true;
}

/* At the token to look at: "… expected, found …". */
static bool parse_at_line_end(const struct parser *p) {
    return p->tok.kind == TOKEN_LINE || p->tok.kind == TOKEN_END;
}

/* `name` was read, the bracket is next. */
static bool parse_reduce(struct parser *p, const struct token *name, enum reduction op,
                         struct node *out) {
    struct head h = {.op = op};
    struct node body;
    size_t outer = p->nlocals;
    if (!p->scope || p->reading == READING_NOTHING)
        return parse_fail(p, name->at, name->len, NULL, "a reduction cannot stand here");
    if (!reduction_head(p, &h))
        return false;
    if (is_arg(op) && h.nvars != 1)
        return parse_fail(p, name->at, name->len, NULL,
                          "%s gives the place of one variable, not of %zu", reduction_name(op),
                          h.nvars);
    if (parse_at_line_end(p) || token_is(&p->tok, ":"))
        return parse_expected(p, "what is reduced",
                              "sum(k) x[k]: the product that follows the bracket");
    if (!parse_level(p, LEVEL_PRODUCT, &body))
        return false;
    p->nlocals = outer;
    return finish(p, name, &h, &body, out);
}

/* ---- dimensions and tensors: what a line says before its mathematics ---- */

/* A name that is about to be declared, or that an index is about to have. */
static bool parse_new_name(struct parser *p, const char *what, bool index, struct token *out) {
    const struct token *t = &p->tok;
    if (t->kind != TOKEN_NAME)
        return parse_expected(p, what, NULL);
    if (word_is_reserved(t->text))
        return parse_fail(p, t->at, t->len, "choose another name",
                          "'%.*s' is a word of the language", STR_ARG(t->text));
    bool dim = dim_find(p->task, t->text) >= 0;
    if ((dim || tensor_find(p->task, t->text) >= 0) && index)
        return parse_fail(p, t->at, t->len, "give the index another name",
                          "'%.*s' is declared already, as a %s; here it is an index",
                          STR_ARG(t->text), dim ? "dimension" : "tensor");
    if (dim || tensor_find(p->task, t->text) >= 0)
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
static bool parse_dim_expression(struct parser *p, struct expr **out) {
    p->scope = NULL;
    p->reading = READING_NOTHING;
    if (!parse_expression(p, out))
        return false;
    return (*out)->value_kind == VALUE_INT ||
           parse_fail(p, (*out)->at, (*out)->len, "// divides integers",
                      "a dimension must be an integer");
}

static bool parse_symbol(struct parser *p, const char *symbol, const char *hint) {
    char quoted[8];
    snprintf(quoted, sizeof quoted, "'%s'", symbol);
    return token_is(&p->tok, symbol) ? parse_next(p) : parse_expected(p, quoted, hint);
}

static bool parse_dims(struct parser *p) {
    do {
        struct token name;
        struct dim d = {0};
        if (!parse_next(p) || !parse_new_name(p, "the name of a dimension", false, &name) ||
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

static bool parse_dtype(struct parser *p, enum dtype *out) {
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
    if (!parse_new_name(p, "an index variable", true, &name))
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

static bool add_tensor(struct parser *p, const struct tensor *t) {
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

/* What follows the keyword, up to the end of the line or an `=`. */
static bool parse_tensor(struct parser *p, enum tensor_role role, struct statement *s) {
    struct tensor t = {.role = role, .dtype = DTYPE_F32};
    struct token name;
    if (!parse_next(p) || !parse_new_name(p, "the name of a tensor", false, &name) ||
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

/* ---- the left sides of lets and definitions, and assumptions, which have one too ---- */

static bool index_variable(struct parser *p, struct statement *s, size_t k) {
    struct token t;
    if (!parse_new_name(p, "an index variable", true, &t))
        return false;
    for (size_t i = 0; i < s->nindex; i++)
        if (str_eq(s->index[i], t.text))
            return parse_fail(p, t.at, t.len, "each dimension has a variable of its own",
                              "the index variable '%.*s' stands twice on the left",
                              STR_ARG(t.text));
    s->position[k] = (int)s->nindex;
    s->index[s->nindex++] = t.text;
    return true;
}

static bool is_constant(const struct parser *p) {
    const struct token *t = &p->tok;
    return t->kind == TOKEN_NUMBER || token_is(t, "(") || token_is(t, "-") ||
           (t->kind == TOKEN_NAME && dim_find(p->task, t->text) >= 0);
}

enum left_kind { LEFT_LET, LEFT_OUTPUT, LEFT_ASSUMPTION };

/* One position of the left: a variable, with its range where a let states it (`i < N-1`), or a
 * constant where an output is defined piece by piece. */
static bool parse_position(struct parser *p, struct statement *s, size_t k, enum left_kind kind,
                           struct tensor *let) {
    if (is_constant(p)) {
        if (kind != LEFT_OUTPUT)
            return parse_fail(p, p->tok.at, p->tok.len,
                              kind == LEFT_LET
                                  ? "let v[i] = …; outputs take constants: y[i,0] = …; the first "
                                    "step of a recurrence is let h[t] = if(t == 0, x[0], …h[t-1]…)"
                                  : "assume a[i,j] == 0 | i > j",
                              "expected an index variable, found a constant");
        s->position[k] = -1;
        return parse_dim_expression(p, &s->constant[k]);
    }
    if (!index_variable(p, s, k))
        return false;
    if (!token_is(&p->tok, "<"))
        return true;
    if (kind != LEFT_LET)
        return parse_fail(p, p->tok.at, p->tok.len, NULL,
                          "the range of this index is the declared dimension");
    return parse_next(p) && parse_dim_expression(p, &let->extent[k]);
}

static bool parse_left(struct parser *p, struct statement *s, enum left_kind kind,
                       struct tensor *let, size_t *rank) {
    *rank = 0;
    if (!token_is(&p->tok, "["))
        return true;
    do {
        if (!parse_next(p))
            return false;
        if (*rank == TASK_MAX_RANK)
            return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d dimensions in a tensor",
                              TASK_MAX_RANK);
        if (!parse_position(p, s, (*rank)++, kind, let))
            return false;
    } while (token_is(&p->tok, ","));
    return parse_symbol(
        p, "]",
        token_is_name(&p->tok, "in") || token_is(&p->tok, ":") || token_is(&p->tok, "=")
            ? "the range of an index of a let is stated by its end: let v[i < N] = …"
            : "the indices of the left side end with ]");
}

static bool parse_let(struct parser *p, struct statement *s) {
    struct tensor t = {.role = TENSOR_LET, .dtype = DTYPE_F64};
    struct token name;
    if (!parse_next(p) || !parse_new_name(p, "the name of a let", false, &name) ||
        !parse_left(p, s, LEFT_LET, &t, &t.rank))
        return false;
    t.name = name.text;
    t.at = s->at = name.at;
    t.len = s->len = p->end - name.at;
    if (token_is(&p->tok, ":") && (!parse_next(p) || !parse_dtype(p, &t.dtype)))
        return false;
    s->tensor = p->task->ntensors;
    return add_tensor(p, &t);
}

static bool check_rank(struct parser *p, const struct statement *s, size_t rank) {
    const struct tensor *t = &p->task->tensors[s->tensor];
    return rank == t->rank ||
           parse_fail(p, s->at, s->len, NULL, "'%.*s' has %zu dimension%s, not %zu",
                      STR_ARG(t->name), t->rank, t->rank == 1 ? "" : "s", rank);
}

/* Whatever the sizes, both define some element: no position has a constant in each. */
static bool surely_meet(const struct statement *a, const struct statement *b, size_t rank) {
    for (size_t k = 0; k < rank; k++)
        if (a->position[k] < 0 && b->position[k] < 0)
            return false;
    return true;
}

static bool is_definable(struct parser *p, const struct token *name, int found) {
    if (found < 0)
        return parse_fail(
            p, name->at, name->len,
            "a line begins with task dim def in param out inout rand let assume check "
            "torch accuracy, or with an output declared above",
            "'%.*s' is neither a declaration nor an output", STR_ARG(name->text));
    const struct tensor *t = &p->task->tensors[found];
    return tensor_is_output(t) ||
           parse_fail(p, name->at, name->len, "only outputs are defined this way", "'%.*s' is %s",
                      STR_ARG(name->text),
                      t->role == TENSOR_LET    ? "defined by its let"
                      : t->role == TENSOR_RAND ? "random numbers"
                                               : "an input");
}

static bool parse_definition(struct parser *p, struct statement *s) {
    struct token name = p->tok;
    int found = tensor_find(p->task, name.text);
    size_t rank;
    if (!is_definable(p, &name, found))
        return false;
    s->at = name.at;
    s->tensor = (size_t)found;
    if (!parse_next(p) || !parse_left(p, s, LEFT_OUTPUT, NULL, &rank))
        return false;
    s->len = p->end - name.at;
    if (!check_rank(p, s, rank))
        return false;
    for (size_t i = 0; i < p->task->nstatements; i++) {
        const struct statement *other = &p->task->statements[i];
        if (other->tensor == s->tensor && surely_meet(other, s, rank))
            return parse_fail(p, name.at, name.len, NULL, "'%.*s' is defined already",
                              STR_ARG(name.text));
    }
    return true;
}

/* The tensor that an assumption is about. */
static bool parse_assumed(struct parser *p, struct assumption *x) {
    struct token name = p->tok;
    int found = name.kind == TOKEN_NAME ? tensor_find(p->task, name.text) : -1;
    if (found < 0 || !tensor_is_input(&p->task->tensors[found]))
        return parse_expected(p, "an input declared above",
                              "assume symmetric(a), assume a[i,j] == 0 | i > j, assume x[i] > 0");
    x->tensor = x->s.tensor = (size_t)found;
    x->s.at = name.at;
    return parse_next(p);
}

static bool parse_symmetric(struct parser *p, struct assumption *x) {
    const char *hint = "assume symmetric(a)";
    x->kind = ASSUME_SYMMETRIC;
    if (!parse_next(p) || !parse_symbol(p, "(", hint))
        return false;
    struct token name = p->tok;
    if (!parse_assumed(p, x))
        return false;
    if (p->task->tensors[x->tensor].rank < 2)
        return parse_fail(p, name.at, name.len, NULL,
                          "'%.*s' has fewer than 2 dimensions and cannot be symmetric",
                          STR_ARG(name.text));
    return parse_symbol(p, ")", hint);
}

/* == 0 | condition */
static bool parse_zero(struct parser *p, struct assumption *x) {
    const char *hint = "assume a[i,j] == 0 | i > j";
    x->kind = ASSUME_ZERO;
    const struct expr *n = x->number;
    if (n->kind != EXPR_NUMBER || n->number != 0)
        return parse_fail(p, n->at, n->len, hint, "elements can be assumed equal to 0 only");
    if (!token_is(&p->tok, "|"))
        return parse_expected(p, "| and where they are 0", hint);
    p->scope = &x->s;
    p->reading = READING_NOTHING;
    if (!parse_next(p) || !parse_expression(p, &x->s.body))
        return false;
    const struct expr *c = x->s.body;
    return c->value_kind == VALUE_BOOL ||
           parse_fail(p, c->at, c->len, hint, "a condition is a truth value");
}

static bool parse_comparison(struct parser *p, struct assumption *x) {
    static const struct {
        const char *symbol;
        enum expr_kind op;
    } ops[] = {{"==", EXPR_EQ}, {"<", EXPR_LT}, {"<=", EXPR_LE}, {">", EXPR_GT}, {">=", EXPR_GE}};
    size_t i = 0, n = sizeof ops / sizeof *ops;
    while (i < n && !token_is(&p->tok, ops[i].symbol))
        i++;
    if (i == n)
        return parse_expected(p, "== < <= > or >=", "assume x[i] > 0");
    x->op = ops[i].op;
    x->kind = ASSUME_COMPARE;
    p->scope = NULL;
    p->reading = READING_NOTHING;
    if (!parse_next(p) || !parse_expression(p, &x->number))
        return false;
    if (x->number->value_kind == VALUE_BOOL)
        return parse_fail(p, x->number->at, x->number->len, NULL,
                          "a truth value where a number is needed");
    if (x->op == EXPR_EQ)
        return parse_zero(p, x);
    if (token_is(&p->tok, "|"))
        return parse_fail(p, p->tok.at, p->tok.len, "assume a[i,j] == 0 | i > j",
                          "a condition goes with == 0 only");
    return true;
}

static bool parse_elements(struct parser *p, struct assumption *x) {
    struct token name = p->tok;
    size_t rank;
    if (!parse_assumed(p, x))
        return false;
    if (dtype_info(p->task->tensors[x->tensor].dtype)->kind == 'b')
        return parse_fail(p, name.at, name.len, NULL,
                          "'%.*s' holds truth values; assumptions are about numbers",
                          STR_ARG(name.text));
    if (!parse_left(p, &x->s, LEFT_ASSUMPTION, NULL, &rank))
        return false;
    x->s.len = p->end - x->s.at;
    x->s.nvars = x->s.nindex;
    return check_rank(p, &x->s, rank) && parse_comparison(p, x);
}

static bool parse_assume(struct parser *p) {
    struct task *t = p->task;
    struct assumption x = {.at = p->tok.at};
    if (t->nassumptions == TASK_MAX_STATEMENTS)
        return parse_fail(p, p->tok.at, p->tok.len, NULL, "more than %d assumptions",
                          TASK_MAX_STATEMENTS);
    if (!parse_next(p))
        return false;
    if (token_is_name(&p->tok, "symmetric") ? !parse_symmetric(p, &x) : !parse_elements(p, &x))
        return false;
    x.len = p->end - x.at;
    t->assumptions[t->nassumptions++] = x;
    return true;
}

/* ---- what can be settled when the whole file is read ---- */

struct sorter {
    struct parser *p;
    const struct statement *of[TASK_MAX_TENSORS]; /* the statement that defines such a tensor */
    uint64_t reads[TASK_MAX_TENSORS];             /* those that it reads, by way of others, too */
    bool done[TASK_MAX_TENSORS];
    struct statement sorted[TASK_MAX_STATEMENTS];
    size_t n;
    size_t recurrences;
};

static uint64_t tensor_bit(size_t tensor) {
    return UINT64_C(1) << tensor;
}

static uint64_t direct_reads(const struct sorter *s, const struct expr *e) {
    uint64_t reads = e->kind == EXPR_READ && s->of[e->ref] ? tensor_bit(e->ref) : 0;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_part(e, i))
            reads |= direct_reads(s, expr_part(e, i));
    return reads;
}

/* What each reads, by way of others, too. */
static void close_reads(struct sorter *s, size_t ntensors) {
    for (size_t i = 0; i < ntensors; i++)
        s->reads[i] = s->of[i] ? direct_reads(s, s->of[i]->body) : 0;
    for (size_t k = 0; k < ntensors; k++)
        for (size_t i = 0; i < ntensors; i++)
            if (s->reads[i] >> k & 1)
                s->reads[i] |= s->reads[k];
}

/* Those that read this tensor and are read by it; 0: it does not read itself. */
static uint64_t circle_of(const struct sorter *s, size_t tensor) {
    uint64_t all = 0;
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        if (s->reads[tensor] >> i & 1 && s->reads[i] >> tensor & 1)
            all |= tensor_bit(i);
    return all;
}

static const struct expr *find_read(const struct expr *e, uint64_t of) {
    if (e->kind == EXPR_READ && of >> e->ref & 1)
        return e;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *found = expr_part(e, i) ? find_read(expr_part(e, i), of) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static bool visit(struct sorter *s, size_t tensor);

static bool visit_all(struct sorter *s, uint64_t tensors) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        if (tensors >> i & 1 && !visit(s, i))
            return false;
    return true;
}

/* The lets of a circle, in the order of a step; or a message. */
static bool visit_circle(struct sorter *s, uint64_t circle) {
    struct circle found = {.lets = circle};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
        if (!(circle >> i & 1))
            continue;
        found.of[i] = s->of[i];
        if (s->p->task->tensors[i].role != TENSOR_LET) {
            const struct expr *read = find_read(s->of[i]->body, circle);
            return parse_fail(s->p, read->at, read->len,
                              "an input is defined from random numbers and other inputs",
                              "the input '%.*s' is defined by itself",
                              STR_ARG(s->p->task->tensors[read->ref].name));
        }
        if (!visit_all(s, direct_reads(s, s->of[i]->body) & ~circle))
            return false;
    }
    if (!recurrence_settle(s->p, &found))
        return false;
    s->recurrences++;
    for (size_t k = 0; k < found.n; k++) {
        size_t tensor = found.order[k];
        s->done[tensor] = true;
        s->sorted[s->n] = *s->of[tensor];
        s->sorted[s->n++].recurs =
            (struct recurrence_place){s->recurrences, (size_t)found.axis[tensor], found.backwards};
    }
    return true;
}

/* As deep as there are lets, TASK_MAX_TENSORS at the most. */
static bool visit(struct sorter *s, size_t tensor) {
    uint64_t circle = circle_of(s, tensor);
    if (s->done[tensor])
        return true;
    if (circle)
        return visit_circle(s, circle);
    if (!visit_all(s, direct_reads(s, s->of[tensor]->body)))
        return false;
    s->done[tensor] = true;
    s->sorted[s->n++] = *s->of[tensor];
    return true;
}

/* Lets and defined inputs have one statement each and go before what reads them; outputs are read
 * by nothing and follow in the order of the file. */
static bool sort(struct parser *p, struct statement *list, size_t n) {
    const struct task *t = p->task;
    struct sorter *s = arena_new_of(p->arena, struct sorter);
    s->p = p;
    for (size_t i = 0; i < n; i++)
        if (list != t->statements || t->tensors[list[i].tensor].role == TENSOR_LET)
            s->of[list[i].tensor] = &list[i];
    close_reads(s, t->ntensors);
    for (size_t i = 0; i < t->ntensors; i++)
        if (s->of[i] && !visit(s, i))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!s->of[list[i].tensor])
            s->sorted[s->n++] = list[i];
    for (size_t i = 0; i < n; i++)
        list[i] = s->sorted[i];
    return true;
}

/* `place`: this expression is part of an index. */
static void mark_places(struct task *t, const struct expr *e, bool place) {
    if (e->kind == EXPR_READ && place)
        t->tensors[e->ref].indexes = true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        mark_places(t, expr_part(e, i), place || e->kind == EXPR_READ);
}

/* Backwards, so that what a let is made of is marked after the let itself; once more for the lets
 * of a recurrence, which are made of each other. */
static void mark_all(struct task *t, const struct statement *list, size_t n) {
    for (size_t i = n; i-- > 0;) {
        mark_places(t, list[i].body, t->tensors[list[i].tensor].indexes);
        bool begins =
            list[i].recurs.number && (i == 0 || list[i - 1].recurs.number != list[i].recurs.number);
        for (size_t k = i; begins && k < n && list[k].recurs.number == list[i].recurs.number; k++)
            for (size_t m = i; m <= k; m++)
                mark_places(t, list[m].body, t->tensors[list[m].tensor].indexes);
    }
}

/* Settles the order of the statements, the extents of `let` tensors, the inferred ranges of
 * reductions, and which tensors compute places. */
static bool task_order(struct parser *p) {
    struct task *t = p->task;
    if (!sort(p, t->definitions, t->ndefinitions) || !sort(p, t->statements, t->nstatements) ||
        !task_infer(p) || !recurrence_check_extents(p))
        return false;
    mark_all(t, t->statements, t->nstatements);
    mark_all(t, t->definitions, t->ndefinitions);
    return true;
}

#define CHECKS_MOST 64

/* ---- lines ---- */

/* Where right sides begin. */
struct reader {
    struct parser p;
    struct lexer bodies[TASK_MAX_STATEMENTS];
    struct lexer defined[TASK_MAX_TENSORS];
};

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
        return parse_expected(p, "'='",
                              token_is(&p->tok, ":")
                                  ? "the type of an output stands where it is declared: out y[N] : "
                                    "f32, and y[i] = … defines it"
                              : token_is(&p->tok, "[")
                                  ? "all indices stand in one bracket: y[i,j] = expression"
                              : token_is(&p->tok, "+") || token_is(&p->tok, "*")
                                  ? "the right side is the whole value; a running sum is sum(k) "
                                    "x[k], what is changed in place an inout tensor"
                                  : "y[i,j] = expression");
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

/* Of a line that begins with a sign. */
static const char *line_hint(const struct token *t) {
    static const char *const operators[] = {"+",  "-",  "*",  "/",  "//", "%", "&&",
                                            "||", "==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (token_is(t, operators[i]))
            return "a line goes on after an operator or inside brackets: write the operator at the "
                   "end of the line above, or brackets around the expression";
    return token_is(t, ":") ? "a ':' stands before a type: in x[N] : f32" : NULL;
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
        return parse_expected(p, "a declaration or a definition", line_hint(t));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (token_is_name(t, roles[i].word))
            return read_tensor(r, roles[i].role);
    if (token_is_name(t, "dim"))
        return parse_dims(p);
    if (token_is_name(t, "def"))
        return parse_own(p);
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
                                "'or' is ||; of the bits of integers it is bit_or(a, b)"
           : token_is(t, ":") ? "no ':' stands in an expression; a type is stated on the left, let "
                                "v[i] : f32 = …"
                              : elsewhere_find(t);
}

static bool parse_body(struct parser *p, struct statement *s, struct lexer from) {
    size_t expanded = p->expanded, first = s->nvars;
    p->lx = from;
    p->scope = s;
    if (!check_indices(p, s) || !parse_next(p) || !parse_expression(p, &s->body))
        return false;
    if (!parse_at_line_end(p))
        return parse_expected(p, "an operator or the end of the line", hint_after(&p->tok));
    s->len = p->end - s->at;
    if (p->expanded > expanded)
        close_gaps(s, first);
    return check_store(p, s);
}

static bool parse_statement(struct parser *p, struct statement *s, struct lexer from) {
    s->nvars = s->nindex;
    s->body_of_task = true;
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
    if (!check_functions(&r->p))
        return false;
    size_t n = t->nstatements; /* arguments may become more */
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (!parse_input(&r->p, &t->definitions[i], r->defined[i]))
            return false;
    for (size_t i = 0; i < n; i++)
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
    if (!load_library(p) || !parse_next(p) || !parse_head(p))
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
                           .own = arena_new_of(a, struct own_functions),
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
