/* Operators that work element by element and are more than a line of ops.def. */
#include "import/ops_private.h"

static size_t rank_of(const struct node *n, size_t out) {
    return n->outs[out].rank;
}

static bool is_integer(struct writer *w, const struct node *n, const char *name) {
    const struct value *v = arg_value(w, n, name);
    char kind = v ? dtype_info(v->dtype)->kind : 0;
    return kind == 'i' || kind == 'u';
}

/* The condition of if(condition, 1, 0), which is what a mask of numbers is made of. */
static bool is_choice(struct ex x, str *condition) {
    if (!str_starts(x.text, S("if(")) || !str_ends(x.text, S(", 1, 0)")))
        return false;
    *condition = str_cut(x.text, 3, x.text.n - 3 - 7);
    int depth = 0; /* nothing but the condition lies between */
    for (size_t i = 0; i < condition->n; i++) {
        depth += (condition->p[i] == '(' || condition->p[i] == '[') -
                 (condition->p[i] == ')' || condition->p[i] == ']');
        if (depth < 0 || (depth == 0 && condition->p[i] == ','))
            return false;
    }
    return true;
}

static struct ex equality(struct writer *w, const struct node *n, size_t out,
                          const struct place *at, bool equal) {
    struct arena *a = writer_arena(w);
    double other;
    str condition;
    struct ex x = operand(w, n, "self", at, rank_of(n, out));
    if (json_to_f64(json_get(n->args, "other"), &other) && other == 0 && is_choice(x, &condition))
        return equal ? (struct ex){arena_printf(a, "!(%.*s)", STR_ARG(condition)), LEVEL_PREFIX}
                     : (struct ex){condition, LEVEL_ANYTHING};
    return fill_template(w, n, equal ? "@self == @other" : "@self != @other", at, rank_of(n, out));
}

struct ex read_eq(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return equality(w, n, out, at, true);
}

struct ex read_ne(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return equality(w, n, out, at, false);
}

struct ex read_div(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    str mode = {0};
    json_get_str(n->args, "rounding_mode", &mode);
    if (!mode.n)
        return fill_template(w, n, "@self/@other", at, rank_of(n, out));
    if (str_is(mode, "floor"))
        return read_floor_divide(w, n, out, at);
    return cannot(w, n, "division with rounding_mode %.*s", STR_ARG(mode));
}

struct ex read_floor_divide(struct writer *w, const struct node *n, size_t out,
                            const struct place *at) {
    bool whole = is_integer(w, n, "self") && dtype_info(n->outs[out].dtype)->kind != 'f';
    return fill_template(w, n, whole ? "@self//@other" : "floor(@self/@other)", at,
                         rank_of(n, out));
}

struct ex read_remainder(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    bool whole = is_integer(w, n, "self") && dtype_info(n->outs[out].dtype)->kind != 'f';
    return fill_template(w, n, whole ? "@self%@other" : "@self - @other*floor(@self/@other)", at,
                         rank_of(n, out));
}

/* x + alpha*y */
static struct ex scaled_sum(struct writer *w, const struct node *n, struct ex x, struct ex y,
                            bool minus) {
    struct arena *a = writer_arena(w);
    double alpha = arg_f64(n, "alpha", 1);
    if (alpha != 1)
        y = ex_mul(a, ex_number(a, alpha), y);
    return minus ? ex_sub(a, x, y) : ex_add(a, x, y);
}

struct ex read_add(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return scaled_sum(w, n, operand(w, n, "self", at, rank_of(n, out)),
                      operand(w, n, "other", at, rank_of(n, out)), false);
}

struct ex read_sub(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return scaled_sum(w, n, operand(w, n, "self", at, rank_of(n, out)),
                      operand(w, n, "other", at, rank_of(n, out)), true);
}

struct ex read_rsub(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ex y = operand(w, n, "self", at, rank_of(n, out));
    return scaled_sum(w, n, operand(w, n, "other", at, rank_of(n, out)), y, true);
}

struct ex read_pow(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    const json *exponent = json_get(n->args, "exponent");
    double e;
    if (json_to_f64(exponent, &e)) {
        const char *text = e == 2      ? "@self*@self"
                           : e == 3    ? "@self*@self*@self"
                           : e == 1    ? "@self"
                           : e == 0.5  ? "sqrt(@self)"
                           : e == -0.5 ? "rsqrt(@self)"
                           : e == -1   ? "1/@self"
                                       : "pow(@self, @exponent)";
        return fill_template(w, n, text, at, rank_of(n, out));
    }
    return fill_template(w, n, "pow(@self, @exponent)", at, rank_of(n, out));
}

struct ex read_clamp(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    bool low = !arg_is_null(n, "min"), high = !arg_is_null(n, "max");
    const char *text = low && high ? "clamp(@self, @min, @max)"
                       : low       ? "maximum(@self, @min)"
                                   : "minimum(@self, @max)";
    return fill_template(w, n, text, at, rank_of(n, out));
}

struct ex read_gelu(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    str how = {0};
    json_get_str(n->args, "approximate", &how);
    const char *text =
        str_is(how, "tanh")
            ? "0.5*@self*(1 + tanh(0.7978845608028654*(@self + 0.044715*@self*@self*@self)))"
            : "0.5*@self*(1 + erf(@self*0.7071067811865476))";
    return fill_template(w, n, text, at, rank_of(n, out));
}

/* scale*(x > 0 ? x : alpha*(exp(input_scale*x) - 1)): elu, selu and celu. */
struct ex read_elu(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct ex x = operand(w, n, "self", at, rank_of(n, out));
    struct ex inner = ex_mul(a, ex_number(a, arg_f64(n, "input_scale", 1)), x);
    struct ex low = ex_of(arena_printf(a, "expm1(%.*s)", STR_ARG(inner.text)));
    low = ex_mul(a, ex_number(a, arg_f64(n, "alpha", 1)), low);
    struct ex positive = {arena_printf(a, "%.*s > 0", STR_ARG(ex_at_least(a, x, LEVEL_SUM))),
                          LEVEL_COMPARISON};
    return ex_mul(a, ex_number(a, arg_f64(n, "scale", 1)), ex_if(a, positive, x, low));
}

struct ex read_softplus(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    bool plain = arg_f64(n, "beta", 1) == 1;
    return fill_template(w, n,
                         plain ? "if(@self > @threshold, @self, log1p(exp(@self)))"
                               : "if(@self*@beta > @threshold, @self, "
                                 "log1p(exp(@self*@beta))/@beta)",
                         at, rank_of(n, out));
}

struct ex read_threshold(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    return fill_template(w, n, "if(@self > @threshold, @self, @value)", at, rank_of(n, out));
}

struct ex read_trunc(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return fill_template(w, n, "if(@self < 0, ceil(@self), floor(@self))", at, rank_of(n, out));
}

static struct ex logic(struct writer *w, const struct node *n, size_t out, const struct place *at,
                       const char *text) {
    if (n->outs[out].dtype != DTYPE_BOOL)
        return cannot(w, n, "bit operations on integers");
    return fill_template(w, n, text, at, rank_of(n, out));
}

struct ex read_and(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return logic(w, n, out, at, "@self && @other");
}

struct ex read_or(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return logic(w, n, out, at, "@self || @other");
}

struct ex read_not(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return logic(w, n, out, at, "!@self");
}

struct ex read_lerp(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return fill_template(w, n, "@self + @weight*(@end - @self)", at, rank_of(n, out));
}

struct ex read_addcmul(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return fill_template(w, n,
                         arg_f64(n, "value", 1) == 1 ? "@self + @tensor1*@tensor2"
                                                     : "@self + @value*@tensor1*@tensor2",
                         at, rank_of(n, out));
}

struct ex read_addcdiv(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    return fill_template(w, n,
                         arg_f64(n, "value", 1) == 1 ? "@self + @tensor1/@tensor2"
                                                     : "@self + @value*@tensor1/@tensor2",
                         at, rank_of(n, out));
}

/* Between types: widening changes nothing; narrowing is the rounding of a typed let (write.c). */
struct ex read_cast(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    const char *from = arg_value(w, n, "self") ? "self" : "a";
    const struct value *v = arg_value(w, n, from);
    struct ref r;
    if (!v || !arg_ref(w, n, from, &r))
        return cannot(w, n, "a cast of no tensor");
    char before = dtype_info(v->dtype)->kind, after = dtype_info(n->outs[out].dtype)->kind;
    struct arena *a = writer_arena(w);
    struct ex x = read_broadcast(w, r, at, rank_of(n, out));
    if (before == 'b' && after != 'b')
        return ex_if(a, x, ex_of(S("1")), ex_of(S("0")));
    if (before != 'b' && after == 'b')
        return (struct ex){arena_printf(a, "%.*s != 0", STR_ARG(ex_at_least(a, x, LEVEL_SUM))),
                           LEVEL_COMPARISON};
    if (before == 'f' && after != 'f')
        return ex_if(a,
                     (struct ex){arena_printf(a, "%.*s < 0", STR_ARG(ex_at_least(a, x, LEVEL_SUM))),
                                 LEVEL_COMPARISON},
                     ex_of(arena_printf(a, "ceil(%.*s)", STR_ARG(x.text))),
                     ex_of(arena_printf(a, "floor(%.*s)", STR_ARG(x.text))));
    return x;
}
