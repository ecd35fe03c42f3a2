/* The left sides of lets and definitions, and assumptions, which have one too. */
#include "spec/parse.h"

static bool index_variable(struct parser *p, struct statement *s, size_t k) {
    struct token t;
    if (!parse_new_name(p, "an index variable", &t))
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
                              kind == LEFT_LET ? "let v[i] = …; outputs take constants: y[i,0] = …"
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
    return parse_symbol(p, "]", "the indices of the left side end with ]");
}

bool parse_let(struct parser *p, struct statement *s) {
    struct tensor t = {.role = TENSOR_LET, .dtype = DTYPE_F64};
    struct token name;
    if (!parse_next(p) || !parse_new_name(p, "the name of a let", &name) ||
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
        return parse_fail(p, name->at, name->len,
                          "a line begins with task dim in param out inout rand let assume check "
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

bool parse_definition(struct parser *p, struct statement *s) {
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

bool parse_assume(struct parser *p) {
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
