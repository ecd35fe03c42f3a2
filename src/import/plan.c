/* Which values of a graph become lets.
 *
 * A pointwise result stands inside what reads it, unless that reads it more than once or the
 * expression gets long. A reduction, a product or a normalisation is a let; where nothing but a
 * change of shape follows, the let has the shape after it. Arguments of products are tensors. */
#include "import/plan.h"

#include <string.h>

enum { LONGEST = 10 }; /* operators in one expression */

static bool is_view(const struct node *n) {
    return n->info && n->info->kind == OP_VIEW;
}

static bool is_heavy(const struct node *n) {
    return n->info && (n->info->kind == OP_REDUCE || n->info->kind == OP_PRODUCT);
}

static bool is_one_of(str op, const char *const *names) {
    for (; *names; names++)
        if (str_is(op, *names))
            return true;
    return false;
}

/* All elements are read, each once, by whoever reads them all. */
static bool keeps_all(const struct node *n) {
    static const char *const names[] = {
        "clone", "alias",     "detach",  "view",      "_unsafe_view", "reshape", "_reshape_alias",
        "t",     "transpose", "permute", "unsqueeze", "squeeze",      NULL};
    return is_one_of(n->op, names);
}

static bool reshapes(const struct node *n) {
    static const char *const names[] = {"view", "_unsafe_view", "reshape", "_reshape_alias", NULL};
    return is_one_of(n->op, names);
}

/* An index that leaves the result leaves the argument too. */
static bool keeps_ends(const struct node *n) {
    static const char *const names[] = {"clone",   "alias",     "detach",  "t", "transpose",
                                        "permute", "unsqueeze", "squeeze", NULL};
    return is_one_of(n->op, names);
}

static bool pads(const struct node *n) {
    return str_is(n->op, "convolution") || str_starts(n->op, S("max_pool")) ||
           str_starts(n->op, S("avg_pool"));
}

bool plan_reads(const struct node *n, const char *name) {
    if (!n->info)
        return true;
    if (n->info->kind == OP_RANDOM || n->info->kind == OP_MADE)
        return str_is(n->op, "fill") && strcmp(name, "self") != 0;
    if (n->info->kind == OP_LEAF)
        return !n->outs[0].name.n;
    if (str_is(n->op, "expand_as"))
        return !strcmp(name, "self");
    if (str_starts(n->op, S("native_batch_norm")) || str_starts(n->op, S("_native_batch_norm"))) {
        bool training = false;
        json_get_bool(n->args, "training", &training);
        return !training || !str_starts(str_view(name), S("running_"));
    }
    return true;
}

struct pass {
    struct graph *g;
    size_t at; /* the node whose arguments are visited */
};

static void need(void *ctx, const char *name, struct ref r) {
    struct pass *p = ctx;
    if (plan_reads(&p->g->nodes[p->at], name))
        p->g->nodes[r.node].needed = true;
}

/* A view counts as often as it is read, since its elements are computed where it is. */
static void count(void *ctx, const char *name, struct ref r) {
    struct pass *p = ctx;
    struct node *n = &p->g->nodes[p->at], *from = &p->g->nodes[r.node];
    if (!plan_reads(n, name))
        return;
    size_t uses = n->info ? n->info->repeats : 1;
    if (is_view(n) && !n->forced) {
        uses = 0;
        for (size_t i = 0; i < n->nouts; i++)
            uses += n->outs[i].uses;
        uses = uses ? uses : 1;
    }
    from->outs[r.out].uses += uses;
    from->users += from->users == 0 || from->user != p->at;
    from->user = p->at;
}

static const struct node *source_of(const struct graph *g, const struct node *n) {
    struct ref r;
    return graph_ref(g, json_get(n->args, "self"), &r) ? &g->nodes[r.node] : NULL;
}

/* An argument of a product: what is at the end of its views is a tensor, or the views are one. */
static void force(void *ctx, const char *name, struct ref r) {
    struct pass *p = ctx;
    const struct node *n = &p->g->nodes[p->at];
    struct node *from = &p->g->nodes[r.node];
    if (!strcmp(name, "bias") || (!strcmp(name, "self") && str_starts(n->op, S("add"))) ||
        (!strcmp(name, "self") && str_is(n->op, "baddbmm")))
        return;
    bool clean = true;
    struct node *end = from;
    while (is_view(end)) {
        clean = clean && (!pads(n) || keeps_ends(end));
        const struct node *next = source_of(p->g, end);
        if (!next)
            return;
        end = &p->g->nodes[next - p->g->nodes];
    }
    if (!clean)
        from->forced = true;
    else if (end->info && (end->info->kind == OP_POINT || end->info->kind == OP_MADE))
        end->forced = true;
}

static void weigh(void *ctx, const char *name, struct ref r) {
    struct pass *p = ctx;
    const struct node *from = &p->g->nodes[r.node];
    if (plan_reads(&p->g->nodes[p->at], name) && !from->is_let)
        p->g->nodes[p->at].weight += from->weight;
}

static bool narrows(const struct graph *g, const struct node *n) {
    if (!str_is(n->op, "_to_copy") && !str_is(n->op, "convert_element_type"))
        return false;
    struct ref r;
    if (!graph_ref(g, json_get(n->args, "self"), &r) && !graph_ref(g, json_get(n->args, "a"), &r))
        return false;
    const struct dtype_info *from = dtype_info(graph_value(g, r)->dtype),
                            *to = dtype_info(n->outs[0].dtype);
    return to->kind != from->kind ? from->kind == 'f' && to->kind != 'f'
                                  : to->kind == 'f' && to->bytes < from->bytes;
}

static void decide(struct graph *g, size_t i) {
    struct node *n = &g->nodes[i];
    size_t uses = 0;
    for (size_t k = 0; k < n->nouts; k++)
        uses += n->outs[k].uses;
    bool last = n->is_output && !n->users; /* the output's own statement holds it */
    const struct node *user = n->users == 1 && !n->is_output ? &g->nodes[n->user] : NULL;
    const struct node *source = is_view(n) ? source_of(g, n) : NULL;
    bool heavy = is_heavy(n) || (source && source->pending);
    if (n->info && (n->info->kind == OP_LEAF || n->info->kind == OP_RANDOM))
        return;
    struct pass p = {g, i};
    n->weight = n->info && (n->info->kind == OP_POINT) ? 1 : 0;
    graph_each_ref(g, n, weigh, &p);
    if (heavy) {
        n->origin = source && source->pending ? (source->origin ? source->origin : source) : NULL;
        n->pending = user && keeps_all(user) && !reshapes(n) && !n->forced;
        n->is_let = !n->pending && !last;
    } else if (n->forced || narrows(g, n)) {
        n->is_let = !last;
    } else if (n->info && n->info->kind == OP_POINT) {
        n->is_let = !last && (uses > 1 || n->weight > LONGEST);
    }
    if (n->is_let)
        n->weight = 0;
}

void plan_lets(struct graph *g) {
    struct pass p = {g, 0};
    for (size_t i = 0; i < g->noutputs; i++) {
        g->nodes[g->outputs[i].node].needed = true;
        g->nodes[g->outputs[i].node].is_output = true;
        g->nodes[g->outputs[i].node].outs[g->outputs[i].out].uses++;
    }
    for (p.at = g->nnodes; p.at-- > 0;)
        if (g->nodes[p.at].needed)
            graph_each_ref(g, &g->nodes[p.at], need, &p);
    for (p.at = 0; p.at < g->nnodes; p.at++)
        if (g->nodes[p.at].needed && g->nodes[p.at].info && g->nodes[p.at].info->kind == OP_PRODUCT)
            graph_each_ref(g, &g->nodes[p.at], force, &p);
    for (p.at = g->nnodes; p.at-- > 0;)
        if (g->nodes[p.at].needed)
            graph_each_ref(g, &g->nodes[p.at], count, &p);
    for (size_t i = 0; i < g->nnodes; i++)
        if (g->nodes[i].needed)
            decide(g, i);
}
