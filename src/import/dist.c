#include "import/dist.h"

#include <math.h>
#include <string.h>

enum kind { NONE, UNIFORM, NORMAL, CONSTANT, RANDINT };

/* Two numbers: bounds, mean and deviation, or a constant in `a`. A text where one follows sizes. */
struct amount {
    double number;
    str text; /* empty: the number */
};
struct spread {
    enum kind kind;
    struct amount a, b;
};

static struct amount amount_of(const struct node *n, const char *name, double fallback) {
    const json *j = json_get(n->args, name);
    struct amount v = {.number = fallback};
    if (json_is_object(j))
        json_get_str(j, "number", &v.text);
    else if (!json_to_f64(j, &v.number))
        json_to_str(j, &v.text);
    return v;
}

static struct amount constant(double v) {
    return (struct amount){.number = v};
}

static struct amount scaled(struct arena *a, struct amount v, double by) {
    if (!v.text.n)
        return constant(v.number * by);
    if (by != 1)
        v.text = arena_printf(a, "(%.*s)*%.*s", STR_ARG(v.text), STR_ARG(ex_number(a, by).text));
    return v;
}

static struct amount shifted(struct arena *a, struct amount v, double by) {
    if (!v.text.n)
        return constant(v.number + by);
    if (by != 0)
        v.text = arena_printf(a, "%.*s + %.*s", STR_ARG(v.text), STR_ARG(ex_number(a, by).text));
    return v;
}

static struct spread drawn(const struct node *n) {
    if (str_is(n->op, "rand") || str_is(n->op, "rand_like"))
        return (struct spread){UNIFORM, constant(0), constant(1)};
    if (str_is(n->op, "randn") || str_is(n->op, "randn_like"))
        return (struct spread){NORMAL, constant(0), constant(1)};
    if (str_is(n->op, "uniform"))
        return (struct spread){UNIFORM, amount_of(n, "from", 0), amount_of(n, "to", 1)};
    if (str_is(n->op, "normal"))
        return (struct spread){NORMAL, amount_of(n, "mean", 0), amount_of(n, "std", 1)};
    if (str_is(n->op, "randint"))
        return (struct spread){RANDINT, amount_of(n, "low", 0), amount_of(n, "high", 1)};
    return (struct spread){.kind = NONE};
}

static struct spread made(const struct node *n) {
    static const char *const fills[] = {"fill_value", "value", "s"};
    if (str_starts(n->op, S("ones")) || str_is(n->op, "new_ones"))
        return (struct spread){CONSTANT, constant(1), constant(0)};
    if (str_starts(n->op, S("zero")) || str_is(n->op, "new_zeros"))
        return (struct spread){CONSTANT, constant(0), constant(0)};
    for (size_t i = 0; i < 3; i++)
        if (json_get(n->args, fills[i]) && !json_is_object(json_get(n->args, fills[i])))
            return (struct spread){CONSTANT, amount_of(n, fills[i], 0), constant(0)};
    return (struct spread){.kind = NONE};
}

/* a*x + b of a distribution. */
static struct spread affine(struct arena *a, struct spread d, double by, double plus) {
    if (d.kind == RANDINT || d.kind == NONE)
        return (struct spread){.kind = by == 1 && plus == 0 ? d.kind : NONE, .a = d.a, .b = d.b};
    if (d.kind == NORMAL) {
        d.a = shifted(a, scaled(a, d.a, by), plus);
        d.b = scaled(a, d.b, fabs(by));
        return d;
    }
    struct amount x = shifted(a, scaled(a, d.a, by), plus),
                  y = shifted(a, scaled(a, d.b, by), plus);
    d.a = by < 0 && d.kind == UNIFORM ? y : x;
    d.b = by < 0 ? x : y;
    return d;
}

/* Of a normal one, as trunc_normal_ has it: what it cuts off is so little that it is left out. */
static bool clamps_far_out(const struct node *n, const struct spread *d) {
    double far = 2 * d->b.number;
    if (d->kind != NORMAL || d->a.text.n || d->b.text.n ||
        json_is_object(json_get(n->args, "min")) || json_is_object(json_get(n->args, "max")))
        return false;
    return arg_f64(n, "min", -INFINITY) <= d->a.number - far &&
           arg_f64(n, "max", INFINITY) >= d->a.number + far;
}

static struct spread find(struct writer *w, struct ref r, int depth) {
    static const char *const same[] = {"clone", "detach", "alias", "expand_as", "lift_fresh", NULL};
    struct arena *a = writer_arena(w);
    const struct graph *g = writer_graph(w);
    const struct node *n = &g->nodes[r.node];
    struct spread none = {.kind = NONE};
    struct ref self;
    double by;
    if (!n->info || depth > 64)
        return none;
    if (n->info->kind == OP_MADE)
        return made(n);
    bool has_self = graph_ref(g, json_get(n->args, "self"), &self);
    if (str_is(n->op, "erfinv") &&
        has_self) { /* of uniform(-1, 1): normal, as trunc_normal_ has it */
        struct spread d = find(w, self, depth + 1);
        return d.kind == UNIFORM ? (struct spread){NORMAL, constant(0), constant(sqrt(0.5))} : none;
    }
    if (n->info->kind == OP_RANDOM)
        return drawn(n);
    if (!has_self)
        return none;
    for (size_t i = 0; same[i]; i++)
        if (str_is(n->op, same[i]))
            return find(w, self, depth + 1);
    if (str_is(n->op, "clamp")) {
        struct spread d = find(w, self, depth + 1);
        return clamps_far_out(n, &d) ? d : none;
    }
    if (!json_to_f64(json_get(n->args, "other"), &by) || arg_f64(n, "alpha", 1) != 1)
        return none;
    struct spread d = find(w, self, depth + 1);
    return str_is(n->op, "mul")              ? affine(a, d, by, 0)
           : str_is(n->op, "div") && by != 0 ? affine(a, d, 1 / by, 0)
           : str_is(n->op, "add")            ? affine(a, d, 1, by)
           : str_is(n->op, "sub")            ? affine(a, d, 1, -by)
           : str_is(n->op, "rsub")           ? affine(a, d, -1, by)
                                             : none;
}

static str amount_text(struct arena *a, struct amount v) {
    return v.text.n ? v.text : ex_number(a, v.number).text;
}

static bool print(struct arena *a, struct spread d, str *out) {
    static const char *const names[] = {"", "uniform", "normal", "", "randint"};
    if (d.kind == NONE)
        return false;
    if (d.kind == CONSTANT) {
        if (d.a.text.n || (d.a.number != 0 && d.a.number != 1))
            return false;
        *out = d.a.number != 0 ? S("ones") : S("zeros");
        return true;
    }
    *out = arena_printf(a, "%s(%.*s, %.*s)", names[d.kind], STR_ARG(amount_text(a, d.a)),
                        STR_ARG(amount_text(a, d.b)));
    return true;
}

bool dist_of(struct writer *w, struct ref r, str *out) {
    return print(writer_arena(w), find(w, r, 0), out);
}

bool dist_drawn(struct writer *w, const struct node *n, str *out) {
    return print(writer_arena(w), drawn(n), out);
}
