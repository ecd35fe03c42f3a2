/* Reductions, normalisations and pooling. */
#include "import/ops_private.h"

#include <math.h>
#include <string.h>

static const char *const wishes[TASK_MAX_RANK] = {"r", "s", "t", "u", "v", "e", "f", "g"};

static const char *wish_for(const struct value *v, size_t axis) {
    static const char *const images[] = {"n", "c", "h", "w"}, *const volumes[] = {"n", "c", "d",
                                                                                  "h", "w"};
    if (v->rank == 4)
        return images[axis];
    if (v->rank == 5)
        return volumes[axis];
    return v->rank == 1 ? "k" : v->rank == 2 ? (axis ? "k" : "l") : wishes[axis];
}

/* Which dimensions an argument names: a number, a list, or nothing, which is all of them. */
static unsigned axes_of(struct writer *w, const struct node *n, const char *name, size_t rank) {
    const json *dim = json_get(n->args, name);
    int64_t one;
    if (json_to_i64(dim, &one))
        return rank ? 1u << axis_of(w, n, one, rank) : 0;
    if (!json_len(dim))
        return (1u << rank) - 1;
    unsigned axes = 0;
    for (size_t i = 0; i < json_len(dim); i++)
        if (json_to_i64(json_at(dim, i), &one) && rank)
            axes |= 1u << axis_of(w, n, one, rank);
    return axes;
}

/* A reduction of `self` over some of its dimensions. */
struct over {
    struct ref r;
    const struct value *v;
    unsigned axes;
    struct ex vars[TASK_MAX_RANK];
    size_t nvars;
    struct place places[TASK_MAX_RANK]; /* of the element that is reduced */
};

/* `at` are the places of the result, which has the reduced dimensions with extent 1, or not at all.
 */
static bool begin(struct writer *w, const struct node *n, const char *self, unsigned axes,
                  bool kept, const struct place *at, struct over *o) {
    memset(o, 0, sizeof *o);
    if (!arg_ref(w, n, self, &o->r)) {
        cannot(w, n, "a reduction of no tensor");
        return false;
    }
    o->v = graph_value(writer_graph(w), o->r);
    o->axes = axes;
    for (size_t i = 0, k = 0; i < o->v->rank; i++) {
        if (axes >> i & 1) {
            bool single = str_is(o->v->extent[i], "1");
            struct ex var =
                single ? ex_of(S("0")) : variable(w, wish_for(o->v, i), o->v->extent[i]);
            o->places[i] = place_of(var);
            if (!single)
                o->vars[o->nvars++] = var;
            k += kept;
        } else {
            o->places[i] = at[k++];
        }
    }
    return true;
}

static struct ex reduced(struct writer *w, const char *op, const struct over *o, struct ex body) {
    return o->nvars ? reduction(w, op, o->vars, o->nvars, (struct ex){0}, body) : body;
}

static struct ex plain(struct writer *w, const struct node *n, const char *op,
                       const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v)
        return cannot(w, n, "a reduction of no tensor");
    if (v->dtype == DTYPE_BOOL && (!strcmp(op, "max") || !strcmp(op, "min")))
        return cannot(w, n, "a maximum of truth values");
    if (!begin(w, n, "self", axes_of(w, n, "dim", v->rank), arg_bool(n, "keepdim"), at, &o))
        return ex_of(S("0"));
    struct ex x = read_at(w, o.r, o.places);
    if (v->dtype == DTYPE_BOOL)
        x = ex_if(writer_arena(w), x, ex_of(S("1")), ex_of(S("0")));
    return reduced(w, op, &o, x);
}

#define PLAIN(function, op)                                                                        \
    struct ex function(struct writer *w, const struct node *n, size_t out,                         \
                       const struct place *at) {                                                   \
        (void)out;                                                                                 \
        return plain(w, n, op, at);                                                                \
    }
PLAIN(read_sum, "sum")
PLAIN(read_mean, "mean")
PLAIN(read_prod, "prod")
PLAIN(read_amax, "max")
PLAIN(read_amin, "min")

/* The place of an extreme; over all dimensions it is that in the flattened tensor. */
static struct ex place_of_extreme(struct writer *w, const struct node *n, const char *op,
                                  const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v || (arg_is_null(n, "dim") && v->rank > 1))
        return cannot(w, n, "%s over several dimensions", op);
    if (!begin(w, n, "self", axes_of(w, n, "dim", v->rank), arg_bool(n, "keepdim"), at, &o))
        return ex_of(S("0"));
    return o.nvars ? reduction(w, op, o.vars, o.nvars, (struct ex){0}, read_at(w, o.r, o.places))
                   : ex_of(S("0"));
}

struct ex read_argmax(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return place_of_extreme(w, n, "argmax", at);
}

struct ex read_argmin(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return place_of_extreme(w, n, "argmin", at);
}

/* max of a tensor, of one dimension (values, and indices as the second result), or of two tensors.
 */
struct ex read_max(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    if (json_get(n->args, "other"))
        return fill_template(w, n, "maximum(@self, @other)", at, n->outs[out].rank);
    return out ? place_of_extreme(w, n, "argmax", at) : plain(w, n, "max", at);
}

struct ex read_min(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    if (json_get(n->args, "other"))
        return fill_template(w, n, "minimum(@self, @other)", at, n->outs[out].rank);
    return out ? place_of_extreme(w, n, "argmin", at) : plain(w, n, "min", at);
}

/* ---- with a mean beside them ---- */

/* Sizes and places of a let that has one element for all that is reduced together. */
struct kept {
    str extents[TASK_MAX_RANK];
    struct place at[TASK_MAX_RANK];
    size_t rank;
};

static struct kept kept_of(const struct over *o) {
    struct kept k = {.rank = 0};
    for (size_t i = 0; i < o->v->rank; i++)
        if (!(o->axes >> i & 1)) {
            k.extents[k.rank] = o->v->extent[i];
            k.at[k.rank++] = o->places[i];
        }
    return k;
}

static unsigned reduced_axes(struct writer *w, const struct node *n, size_t rank) {
    return axes_of(w, n, "dim", rank);
}

static struct ex build_mean(struct writer *w, const struct node *n, const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v || !begin(w, n, "self", reduced_axes(w, n, v->rank), false, at, &o))
        return ex_of(S("0"));
    return reduced(w, "mean", &o, read_at(w, o.r, o.places));
}

static struct ex square(struct arena *a, struct ex x) {
    str text = ex_at_least(a, x, LEVEL_PREFIX);
    return (struct ex){arena_printf(a, "%.*s*%.*s", STR_ARG(text), STR_ARG(text)), LEVEL_PRODUCT};
}

static struct ex deviation(struct writer *w, const struct node *n, const struct over *o) {
    struct kept k = kept_of(o);
    struct ex mean = helper_let(w, n, "mean", k.rank, k.extents, k.at, build_mean);
    return ex_sub(writer_arena(w), read_at(w, o->r, o->places), mean);
}

/* How many terms there are, as a size. */
static struct ex count_of(struct arena *a, const struct over *o) {
    struct monomial p = {.number = 1};
    for (size_t i = 0; i < o->v->rank; i++)
        if (o->axes >> i & 1)
            p = monomial_times(p, monomial_of(o->v->extent[i]));
    return ex_size(monomial_text(a, p));
}

static struct ex variance(struct writer *w, const struct node *n, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v || !begin(w, n, "self", reduced_axes(w, n, v->rank), arg_bool(n, "keepdim"), at, &o))
        return ex_of(S("0"));
    double correction = 1;
    bool unbiased;
    if (json_get_bool(n->args, "unbiased", &unbiased))
        correction = unbiased;
    else if (!arg_is_null(n, "correction"))
        correction = arg_f64(n, "correction", 1);
    struct ex body = square(a, deviation(w, n, &o));
    if (correction == 0)
        return reduced(w, "mean", &o, body);
    struct ex sum = reduced(w, "sum", &o, body);
    struct ex count = ex_sub(a, count_of(a, &o), ex_number(a, correction));
    return (struct ex){arena_printf(a, "%.*s/%.*s", STR_ARG(ex_at_least(a, sum, LEVEL_PRODUCT)),
                                    STR_ARG(ex_at_least(a, count, LEVEL_PREFIX))),
                       LEVEL_PRODUCT};
}

struct ex read_var(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return variance(w, n, at);
}

struct ex read_std(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return ex_of(arena_printf(writer_arena(w), "sqrt(%.*s)", STR_ARG(variance(w, n, at).text)));
}

struct ex read_var_mean(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    return out ? plain(w, n, "mean", at) : variance(w, n, at);
}

/* Norms of order 1, 2, infinity and p. */
struct ex read_norm(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    str text = {0};
    double order = arg_f64(n, json_get(n->args, "ord") ? "ord" : "p", 2);
    if (json_get_str(n->args, "ord", &text) || json_get_str(n->args, "p", &text))
        order = str_is(text, "-inf") ? -INFINITY : INFINITY;
    (void)out;
    if (!v || !begin(w, n, "self", axes_of(w, n, "dim", v->rank), arg_bool(n, "keepdim"), at, &o))
        return ex_of(S("0"));
    struct ex x = read_at(w, o.r, o.places);
    struct ex size = ex_of(arena_printf(a, "abs(%.*s)", STR_ARG(x.text)));
    if (order == 2)
        return ex_of(
            arena_printf(a, "sqrt(%.*s)", STR_ARG(reduced(w, "sum", &o, square(a, x)).text)));
    if (order == 1)
        return reduced(w, "sum", &o, size);
    if (isinf(order))
        return reduced(w, order > 0 ? "max" : "min", &o, size);
    struct ex power = ex_of(
        arena_printf(a, "pow(%.*s, %.*s)", STR_ARG(size.text), STR_ARG(ex_number(a, order).text)));
    return ex_of(arena_printf(a, "pow(%.*s, 1/%.*s)", STR_ARG(reduced(w, "sum", &o, power).text),
                              STR_ARG(ex_number(a, order).text)));
}

/* ---- softmax ---- */

static struct ex build_max(struct writer *w, const struct node *n, const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v || !begin(w, n, "self", axes_of(w, n, "dim", v->rank), false, at, &o))
        return ex_of(S("0"));
    return reduced(w, "max", &o, read_at(w, o.r, o.places));
}

static struct ex largest(struct writer *w, const struct node *n, const struct over *o) {
    struct kept k = kept_of(o);
    return helper_let(w, n, "max", k.rank, k.extents, k.at, build_max);
}

/* exp(x - max) of an element. */
static struct ex shifted(struct writer *w, const struct node *n, const struct over *o) {
    struct ex m = largest(w, n, o);
    return ex_sub(writer_arena(w), read_at(w, o->r, o->places), m);
}

static struct ex build_sum(struct writer *w, const struct node *n, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    if (!v || !begin(w, n, "self", axes_of(w, n, "dim", v->rank), false, at, &o))
        return ex_of(S("0"));
    struct ex e = ex_of(arena_printf(a, "exp(%.*s)", STR_ARG(shifted(w, n, &o).text)));
    return reduced(w, "sum", &o, e);
}

/* An element of the argument with everything that a softmax needs of its row. */
static bool row_of(struct writer *w, const struct node *n, const struct place *at, struct over *o,
                   struct ex *shift, struct ex *sum) {
    memset(o, 0, sizeof *o);
    if (!arg_ref(w, n, "self", &o->r)) {
        cannot(w, n, "a softmax of no tensor");
        return false;
    }
    o->v = graph_value(writer_graph(w), o->r);
    o->axes = axes_of(w, n, "dim", o->v->rank);
    for (size_t i = 0; i < o->v->rank; i++)
        o->places[i] = at[i];
    struct kept k = kept_of(o);
    *shift = shifted(w, n, o);
    *sum = helper_let(w, n, "sum", k.rank, k.extents, k.at, build_sum);
    return true;
}

struct ex read_softmax(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    struct ex shift, sum;
    (void)out;
    if (!row_of(w, n, at, &o, &shift, &sum))
        return ex_of(S("0"));
    return (struct ex){arena_printf(a, "exp(%.*s)/%.*s", STR_ARG(shift.text),
                                    STR_ARG(ex_at_least(a, sum, LEVEL_PREFIX))),
                       LEVEL_PRODUCT};
}

/* Whether a mask that is given is among what a value follows from. */
struct mask_search {
    const struct graph *g;
    bool *seen, found;
};

static void search_mask(void *ctx, const char *name, struct ref r) {
    struct mask_search *s = ctx;
    const struct node *n = &s->g->nodes[r.node];
    (void)name;
    if (s->seen[r.node] || s->found)
        return;
    s->seen[r.node] = true;
    if (str_is(n->op, "in"))
        s->found = n->outs[0].dtype == DTYPE_BOOL;
    else
        graph_each_ref(s->g, n, search_mask, s);
}

/* Attention's softmax: a row that a mask leaves nothing of is 0, and not the NaN of infinities.
 * Where no mask is given every row has something. */
struct ex read_safe_softmax(struct writer *w, const struct node *n, size_t out,
                            const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    struct ex shift, sum, softmax = read_softmax(w, n, out, at);
    const struct graph *g = writer_graph(w);
    struct mask_search s = {.g = g, .seen = arena_array(a, bool, g->nnodes + 1)};
    graph_each_ref(g, n, search_mask, &s);
    if (!s.found || !row_of(w, n, at, &o, &shift, &sum))
        return softmax;
    return ex_of(arena_printf(a, "if(%.*s > -inf, %.*s, 0)", STR_ARG(largest(w, n, &o).text),
                              STR_ARG(softmax.text)));
}

struct ex read_log_softmax(struct writer *w, const struct node *n, size_t out,
                           const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    struct ex shift, sum;
    (void)out;
    if (!row_of(w, n, at, &o, &shift, &sum))
        return ex_of(S("0"));
    return (struct ex){arena_printf(a, "%.*s - log(%.*s)",
                                    STR_ARG(ex_at_least(a, shift, LEVEL_SUM)), STR_ARG(sum.text)),
                       LEVEL_SUM};
}

struct ex read_logsumexp(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    struct arena *a = writer_arena(w);
    struct over o;
    const struct value *v = arg_value(w, n, "self");
    (void)out;
    if (!v || !begin(w, n, "self", axes_of(w, n, "dim", v->rank), arg_bool(n, "keepdim"), at, &o))
        return ex_of(S("0"));
    struct kept k = kept_of(&o);
    struct ex m = helper_let(w, n, "max", k.rank, k.extents, k.at, build_max);
    struct ex e = ex_of(arena_printf(a, "exp(%.*s)", STR_ARG(shifted(w, n, &o).text)));
    str sum = reduced(w, "sum", &o, e).text;
    return ex_add(a, m, ex_of(arena_printf(a, "log(%.*s)", STR_ARG(sum))));
}

/* ---- prefixes ---- */

static struct ex prefix(struct writer *w, const struct node *n, const char *op,
                        const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = arg_value(w, n, "self");
    if (!v || !arg_ref(w, n, "self", &r))
        return cannot(w, n, "a scan of no tensor");
    if (!v->rank)
        return read_at(w, r, at);
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    for (size_t i = 0; i < v->rank; i++)
        places[i] = at[i];
    struct ex k = variable(w, "k", v->extent[axis]);
    places[axis] = place_of(k);
    struct ex body = read_at(w, r, places);
    return (struct ex){arena_printf(a, "%s(%.*s <= %.*s) %.*s", op, STR_ARG(k.text),
                                    STR_ARG(ex_at_least(a, at[axis].e, LEVEL_SUM)),
                                    STR_ARG(ex_at_least(a, body, LEVEL_PRODUCT))),
                       LEVEL_REDUCTION};
}

struct ex read_cumsum(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return prefix(w, n, "sum", at);
}

struct ex read_cumprod(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return prefix(w, n, "prod", at);
}

/* ---- normalisation ---- */

/* (x - mean)*rsqrt(var + eps)*weight + bias */
static struct ex normalised(struct writer *w, const struct node *n, struct ex centred,
                            struct ex var, const struct place *scale_at, size_t scale_rank) {
    struct arena *a = writer_arena(w);
    struct ex eps = number_of(w, n, json_get(n->args, "eps"));
    struct ex root = ex_of(arena_printf(a, "rsqrt(%.*s)", STR_ARG(ex_add(a, var, eps).text)));
    struct ex y = ex_mul(a, centred, root);
    struct ref r;
    (void)scale_rank;
    if (arg_ref(w, n, "weight", &r))
        y = ex_mul(a, y, read_at(w, r, scale_at));
    if (arg_ref(w, n, "bias", &r))
        y = ex_add(a, y, read_at(w, r, scale_at));
    return y;
}

/* Mean and variance over some dimensions of `input`; which, each normalisation says. */
static unsigned norm_axes(struct writer *w, const struct node *n, size_t rank) {
    if (str_is(n->op, "native_layer_norm")) {
        size_t last = json_len(json_get(n->args, "normalized_shape"));
        return last <= rank ? ((1u << last) - 1) << (rank - last) : 0;
    }
    (void)w;
    return ((1u << rank) - 1) & ~2u; /* batch: all but the channel */
}

static struct ex build_norm_mean(struct writer *w, const struct node *n, const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "input");
    if (!v || !begin(w, n, "input", norm_axes(w, n, v->rank), false, at, &o))
        return ex_of(S("0"));
    return reduced(w, "mean", &o, read_at(w, o.r, o.places));
}

static struct ex build_norm_var(struct writer *w, const struct node *n, const struct place *at) {
    struct over o;
    const struct value *v = arg_value(w, n, "input");
    if (!v || !begin(w, n, "input", norm_axes(w, n, v->rank), false, at, &o))
        return ex_of(S("0"));
    struct kept k = kept_of(&o);
    struct ex mean = helper_let(w, n, "mean", k.rank, k.extents, k.at, build_norm_mean);
    struct arena *a = writer_arena(w);
    return reduced(w, "mean", &o, square(a, ex_sub(a, read_at(w, o.r, o.places), mean)));
}

static struct ex read_norm_of(struct writer *w, const struct node *n, const struct place *at,
                              const struct place *scale_at, size_t scale_rank) {
    struct over o = {.nvars = 0};
    if (!arg_ref(w, n, "input", &o.r))
        return cannot(w, n, "a normalisation of no tensor");
    o.v = graph_value(writer_graph(w), o.r);
    o.axes = norm_axes(w, n, o.v->rank);
    for (size_t i = 0; i < o.v->rank; i++)
        o.places[i] = at[i];
    struct kept k = kept_of(&o);
    struct ex mean = helper_let(w, n, "mean", k.rank, k.extents, k.at, build_norm_mean);
    struct ex var = helper_let(w, n, "var", k.rank, k.extents, k.at, build_norm_var);
    struct ex centred = ex_sub(writer_arena(w), read_at(w, o.r, o.places), mean);
    return normalised(w, n, centred, var, scale_at, scale_rank);
}

struct ex read_layer_norm(struct writer *w, const struct node *n, size_t out,
                          const struct place *at) {
    size_t last = json_len(json_get(n->args, "normalized_shape")), rank = n->outs[0].rank;
    if (out || last > rank)
        return cannot(w, n, "the statistics of a normalisation as a result");
    return read_norm_of(w, n, at, at + (rank - last), last);
}

struct ex read_batch_norm(struct writer *w, const struct node *n, size_t out,
                          const struct place *at) {
    struct arena *a = writer_arena(w);
    struct ref r, mean, var;
    if (out || n->outs[0].rank < 2)
        return cannot(w, n, "the statistics of a normalisation as a result");
    bool training = arg_bool(n, "training") ||
                    (!json_get(n->args, "training") && !arg_ref(w, n, "running_mean", &mean));
    if (training)
        return read_norm_of(w, n, at, at + 1, 1);
    if (!arg_ref(w, n, "input", &r) || !arg_ref(w, n, "running_mean", &mean) ||
        !arg_ref(w, n, "running_var", &var))
        return cannot(w, n, "a batch normalisation without statistics");
    struct ex centred = ex_sub(a, read_at(w, r, at), read_at(w, mean, at + 1));
    return normalised(w, n, centred, read_at(w, var, at + 1), at + 1, 1);
}

/* Groups of channels. One element of a group's let is for (n, group). */
struct groups {
    struct ref r;
    const struct value *v;
    str groups, channels; /* how many groups; how many channels in one */
};

static bool groups_of(struct writer *w, const struct node *n, struct groups *g) {
    struct monomial channels;
    if (!arg_ref(w, n, "input", &g->r))
        return false;
    g->v = graph_value(writer_graph(w), g->r);
    g->groups = size_of(w, n, json_get(n->args, "group")).text;
    if (g->v->rank < 2 ||
        !monomial_over(monomial_of(g->v->extent[1]), monomial_of(g->groups), &channels))
        channels = monomial_of(arena_printf(writer_arena(w), "%.*s//%.*s", STR_ARG(g->v->extent[1]),
                                            STR_ARG(g->groups)));
    g->channels = monomial_text(writer_arena(w), channels);
    return g->v->rank >= 2;
}

/* The element of the input that a reduction over a group of `at` (n, group) is at. */
static struct ex group_element(struct writer *w, const struct groups *g, const struct place *at,
                               struct ex *vars, size_t *nvars, struct place *places) {
    struct arena *a = writer_arena(w);
    *nvars = 0;
    places[0] = at[0];
    struct ex channel = ex_mul(a, at[1].e, ex_size(g->channels));
    if (!str_is(g->channels, "1")) {
        struct ex c = vars[(*nvars)++] = variable(w, "k", g->channels);
        channel = ex_add(a, channel, c);
    }
    places[1] = place_of(channel);
    for (size_t i = 2; i < g->v->rank; i++) {
        bool single = str_is(g->v->extent[i], "1");
        struct ex v = single ? ex_of(S("0")) : variable(w, wish_for(g->v, i), g->v->extent[i]);
        if (!single)
            vars[(*nvars)++] = v;
        places[i] = place_of(v);
    }
    return read_at(w, g->r, places);
}

static struct ex build_group_mean(struct writer *w, const struct node *n, const struct place *at) {
    struct groups g;
    struct ex vars[TASK_MAX_RANK];
    struct place places[TASK_MAX_RANK] = {0};
    size_t nvars;
    if (!groups_of(w, n, &g))
        return cannot(w, n, "groups");
    struct ex x = group_element(w, &g, at, vars, &nvars, places);
    return nvars ? reduction(w, "mean", vars, nvars, (struct ex){0}, x) : x;
}

static struct ex build_group_var(struct writer *w, const struct node *n, const struct place *at) {
    struct groups g;
    struct ex vars[TASK_MAX_RANK];
    struct place places[TASK_MAX_RANK] = {0};
    size_t nvars;
    if (!groups_of(w, n, &g))
        return cannot(w, n, "groups");
    str extents[] = {g.v->extent[0], g.groups};
    struct ex x = group_element(w, &g, at, vars, &nvars, places);
    struct ex mean = helper_let(w, n, "mean", 2, extents, at, build_group_mean);
    struct arena *a = writer_arena(w);
    struct ex term = square(a, ex_sub(a, x, mean));
    return nvars ? reduction(w, "mean", vars, nvars, (struct ex){0}, term) : term;
}

struct ex read_group_norm(struct writer *w, const struct node *n, size_t out,
                          const struct place *at) {
    struct arena *a = writer_arena(w);
    struct groups g;
    if (out || !groups_of(w, n, &g))
        return cannot(w, n, "the statistics of a normalisation as a result");
    str extents[] = {g.v->extent[0], g.groups};
    struct place group[] = {at[0], place_of(ex_floordiv(a, at[1].e, ex_size(g.channels)))};
    struct ex mean = helper_let(w, n, "mean", 2, extents, group, build_group_mean);
    struct ex var = helper_let(w, n, "var", 2, extents, group, build_group_var);
    return normalised(w, n, ex_sub(a, read_at(w, g.r, at), mean), var, at + 1, 1);
}

/* ---- pooling ---- */

/* A window's variables and the places they read: stride*p + dilation*r - padding. */
struct window {
    struct ref r;
    const struct value *v;
    struct place places[TASK_MAX_RANK];
    struct ex vars[TASK_MAX_RANK];
    size_t nvars;
    bool leaves; /* the window may leave the tensor */
};

static bool window_of(struct writer *w, const struct node *n, const struct place *at,
                      struct window *p) {
    static const char *const names[] = {"r", "s", "t"};
    struct arena *a = writer_arena(w);
    memset(p, 0, sizeof *p);
    if (!arg_ref(w, n, "self", &p->r))
        return false;
    p->v = graph_value(writer_graph(w), p->r);
    size_t window = json_len(json_get(n->args, "kernel_size"));
    window = str_starts(n->op, S("max_pool2d")) || str_starts(n->op, S("avg_pool2d"))   ? 2
             : str_starts(n->op, S("max_pool3d")) || str_starts(n->op, S("avg_pool3d")) ? 3
                                                                                        : window;
    if (p->v->rank < window || !window || window > 3)
        return false;
    size_t first = p->v->rank - window;
    for (size_t i = 0; i < first; i++)
        p->places[i] = at[i];
    for (size_t i = 0; i < window; i++) {
        int64_t size = arg_listed(n, "kernel_size", i, 1),
                stride = arg_listed(n, "stride", i, size);
        int64_t padding = arg_listed(n, "padding", i, 0),
                dilation = arg_listed(n, "dilation", i, 1);
        struct ex e = ex_mul(a, ex_integer(a, stride), at[first + i].e);
        if (size > 1) {
            struct ex r = variable(w, names[i], ex_integer(a, size).text);
            p->vars[p->nvars++] = r;
            e = ex_add(a, e, ex_mul(a, ex_integer(a, dilation), r));
        }
        p->places[first + i] = place_of(ex_sub(a, e, ex_integer(a, padding)));
        p->leaves = p->leaves || padding;
    }
    p->leaves = p->leaves || arg_bool(n, "ceil_mode");
    return true;
}

struct ex read_max_pool(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    struct window p;
    if (out)
        return cannot(w, n, "the indices of a pooling");
    if (!window_of(w, n, at, &p))
        return cannot(w, n, "a pooling window");
    struct ex x = p.leaves ? read_padded(w, p.r, p.places, "-inf") : read_at(w, p.r, p.places);
    return p.nvars ? reduction(w, "max", p.vars, p.nvars, (struct ex){0}, x) : x;
}

struct ex read_avg_pool(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    struct arena *a = writer_arena(w);
    struct window p;
    (void)out;
    if (!window_of(w, n, at, &p))
        return cannot(w, n, "a pooling window");
    if (arg_bool(n, "ceil_mode"))
        return cannot(w, n, "average pooling with ceil_mode");
    if (p.leaves && !arg_bool(n, "count_include_pad"))
        return cannot(w, n, "average pooling with count_include_pad=False");
    struct ex x = p.leaves ? read_padded(w, p.r, p.places, "0") : read_at(w, p.r, p.places);
    if (arg_is_null(n, "divisor_override"))
        return p.nvars ? reduction(w, "mean", p.vars, p.nvars, (struct ex){0}, x) : x;
    struct ex sum = p.nvars ? reduction(w, "sum", p.vars, p.nvars, (struct ex){0}, x) : x;
    return (struct ex){arena_printf(a, "%.*s/%lld", STR_ARG(ex_at_least(a, sum, LEVEL_PRODUCT)),
                                    (long long)arg_i64(n, "divisor_override", 1)),
                       LEVEL_PRODUCT};
}

/* Element i of O averages places i*H//O to ((i+1)*H + O-1)//O - 1 of H. */
struct ex read_adaptive_avg_pool(struct writer *w, const struct node *n, size_t out,
                                 const struct place *at) {
    static const char *const names[] = {"r", "s", "t"};
    struct arena *a = writer_arena(w);
    struct ref r;
    size_t window = str_is(n->op, "_adaptive_avg_pool2d") ? 2 : 3, nvars = 0;
    struct place places[TASK_MAX_RANK] = {0};
    const struct value *v = arg_value(w, n, "self"), *y = &n->outs[out];
    struct ex vars[3];
    if (!v || !arg_ref(w, n, "self", &r) || v->rank < window || v->rank != y->rank)
        return cannot(w, n, "adaptive pooling");
    size_t first = v->rank - window;
    for (size_t i = 0; i < first; i++)
        places[i] = at[i];
    for (size_t i = first; i < v->rank; i++) {
        struct monomial size;
        if (!monomial_over(monomial_of(v->extent[i]), monomial_of(y->extent[i]), &size))
            return cannot(w, n, "adaptive pooling from %.*s to %.*s, which do not divide",
                          STR_ARG(v->extent[i]), STR_ARG(y->extent[i]));
        str extent = monomial_text(a, size);
        struct ex from = ex_mul(a, at[i].e, ex_size(extent));
        if (str_is(y->extent[i], "1"))
            from = ex_of(S("0"));
        if (!str_is(extent, "1"))
            from = ex_add(a, from, vars[nvars++] = variable(w, names[i - first], extent));
        places[i] = place_of(from);
    }
    struct ex x = read_at(w, r, places);
    return nvars ? reduction(w, "mean", vars, nvars, (struct ex){0}, x) : x;
}
