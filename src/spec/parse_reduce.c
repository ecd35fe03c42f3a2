/* Reductions: `sum(k) a[i,k]*b[k,j]`, `max(r < 8 | i + r < N) x[i+r]`, `sum(j <= k < N) x[k]`.
 *
 * A variable is in sight from the end of its range to the end of the reduction's body, so a range
 * may use those before it. It gets a number of its own in the statement; its name may serve again
 * in another reduction beside this one, but hides nothing. Ranges that are not stated are left to
 * order.c, which knows the extents of all tensors. */
#include "spec/parse.h"

static const char *const reduction_names[REDUCTION_COUNT] = {
    [REDUCTION_SUM] = "sum",       [REDUCTION_PROD] = "prod", [REDUCTION_MAX] = "max",
    [REDUCTION_MIN] = "min",       [REDUCTION_MEAN] = "mean", [REDUCTION_ARGMAX] = "argmax",
    [REDUCTION_ARGMIN] = "argmin",
};

const char *reduction_name(enum reduction r) {
    BUG_IF((unsigned)r >= REDUCTION_COUNT);
    return reduction_names[r];
}

bool reduction_find(str name, enum reduction *out) {
    for (int i = 0; i < REDUCTION_COUNT; i++)
        if (str_is(name, reduction_names[i])) {
            *out = (enum reduction)i;
            return true;
        }
    return false;
}

int local_find(const struct parser *p, str name) {
    const struct statement *s = p->scope;
    for (size_t i = 0; s && i < s->nindex; i++)
        if (str_eq(s->index[i], name))
            return (int)i;
    for (size_t i = 0; i < p->nlocals; i++)
        if (str_eq(p->locals[i].name, name))
            return (int)p->locals[i].var;
    return -1;
}

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
    return word_is_reserved(name)            ? "a word of the language"
           : local_find(p, name) >= 0        ? "a variable of this statement already"
           : dim_find(p->task, name) >= 0    ? "a dimension already"
           : tensor_find(p->task, name) >= 0 ? "a tensor already"
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

static bool parse_head(struct parser *p, struct head *h) {
    do {
        if (!parse_next(p) || !parse_variable(p, h))
            return false;
    } while (token_is(&p->tok, ","));
    if (!parse_guard(p, h))
        return false;
    if (!token_is(&p->tok, ")"))
        return parse_expected(p, h->guard ? "')'" : ", | or )", range_hint(h));
    return parse_next(p);
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

bool parse_reduce(struct parser *p, const struct token *name, enum reduction op, struct node *out) {
    struct head h = {.op = op};
    struct node body;
    size_t outer = p->nlocals;
    if (!p->scope || p->reading == READING_NOTHING)
        return parse_fail(p, name->at, name->len, NULL, "a reduction cannot stand here");
    if (!parse_head(p, &h))
        return false;
    if (is_arg(op) && h.nvars != 1)
        return parse_fail(p, name->at, name->len, NULL,
                          "%s gives the place of one variable, not of %zu", reduction_name(op),
                          h.nvars);
    if (parse_at_line_end(p))
        return parse_expected(p, "what is reduced", "sum(k) x[k]: the product that follows");
    if (!parse_level(p, LEVEL_PRODUCT, &body))
        return false;
    p->nlocals = outer;
    return finish(p, name, &h, &body, out);
}
