#include "import/graph.h"

#include "import/ops.h"

#include <string.h>

/* A size: a number, or an expression that the helper wrote. */
static bool read_extent(const json *j, struct arena *a, str *out) {
    int64_t n;
    if (json_to_i64(j, &n)) {
        *out = arena_printf(a, "%lld", (long long)n);
        return n >= 0;
    }
    return json_to_str(j, out) && out->n > 0 && out->n < 512;
}

static bool read_value(const json *j, struct arena *a, struct value *v, struct err *err) {
    str dtype;
    const json *shape = json_get(j, "shape");
    if (!json_is_object(j))
        return true; /* null: left out */
    v->exists = true;
    v->rank = json_len(shape);
    if (!json_is_array(shape) || !json_get_str(j, "dtype", &dtype) || !dtype_find(dtype, &v->dtype))
        return err_set(err, ERR_ENV, "a tensor without shape and type");
    if (v->rank > TASK_MAX_RANK)
        return err_set(err, ERR_NO, "a tensor of %zu dimensions; a task's have at most %d", v->rank,
                       TASK_MAX_RANK);
    for (size_t i = 0; i < v->rank; i++)
        if (!read_extent(json_at(shape, i), a, &v->extent[i]))
            return err_set(err, ERR_ENV, "a size that is neither a number nor an expression");
    return true;
}

static bool read_node(const json *j, struct arena *a, struct node *n, struct err *err) {
    const json *outs = json_get(j, "outs");
    n->args = json_get(j, "args");
    n->nouts = json_len(outs);
    if (!json_get_str(j, "op", &n->op) || !json_is_object(n->args) || !json_is_array(outs) ||
        n->nouts > GRAPH_MAX_OUTS)
        return err_set(err, ERR_ENV, "a node without operator, arguments or results");
    if (json_get_str(j, "module", &n->module) && n->module.n > GRAPH_MAX_PATH)
        return err_set(err, ERR_ENV, "a submodule with a name of %zu letters", n->module.n);
    if (!json_get_i64(j, "line", &n->line))
        n->line = 0;
    n->info = op_find(n->op);
    n->outs = arena_array(a, struct value, n->nouts + 1);
    for (size_t i = 0; i < n->nouts; i++)
        if (!read_value(json_at(outs, i), a, &n->outs[i], err))
            return false;
    return true;
}

bool graph_ref(const struct graph *g, const json *j, struct ref *out) {
    int64_t node, at;
    if (!json_is_object(j) || !json_get_i64(j, "node", &node) || !json_get_i64(j, "out", &at))
        return false;
    if (node < 0 || (size_t)node >= g->nnodes || at < 0 || (size_t)at >= g->nodes[node].nouts ||
        !g->nodes[node].outs[at].exists)
        return false;
    *out = (struct ref){(size_t)node, (size_t)at};
    return true;
}

const struct value *graph_value(const struct graph *g, struct ref r) {
    return &g->nodes[r.node].outs[r.out];
}

struct each {
    const struct graph *g;
    void (*f)(void *ctx, const char *name, struct ref r);
    void *ctx;
    const char *name;
    size_t before; /* references must be to nodes before this one */
    bool later;    /* one was not */
};

static void visit(struct each *e, const json *j) {
    struct ref r;
    if (graph_ref(e->g, j, &r)) {
        e->later = e->later || r.node >= e->before;
        if (e->f)
            e->f(e->ctx, e->name, r);
    } else if (json_is_object(j) && json_get(j, "node")) {
        e->later = true;
    } else if (json_is_array(j)) {
        for (size_t i = 0; i < json_len(j); i++)
            visit(e, json_at(j, i));
    }
}

static void visit_member(void *ctx, const char *key, const json *value) {
    ((struct each *)ctx)->name = key;
    visit(ctx, value);
}

void graph_each_ref(const struct graph *g, const struct node *n,
                    void (*f)(void *ctx, const char *name, struct ref r), void *ctx) {
    struct each e = {g, f, ctx, NULL, g->nnodes, false};
    json_each(n->args, visit_member, &e);
}

static bool references_hold(const struct graph *g, struct err *err) {
    for (size_t i = 0; i < g->nnodes; i++) {
        struct each e = {g, NULL, NULL, NULL, i, false};
        json_each(g->nodes[i].args, visit_member, &e);
        if (e.later)
            return err_set(err, ERR_ENV, "node %zu reads what is not there yet", i);
    }
    return true;
}

static bool read_dims(const json *j, struct arena *a, struct graph *g, struct err *err) {
    g->ndims = json_len(j);
    if (g->ndims > GRAPH_MAX_DIMS)
        return err_set(err, ERR_NO, "%zu dimensions; a module has at most %d", g->ndims,
                       GRAPH_MAX_DIMS);
    g->dims = arena_array(a, struct dimension, g->ndims + 1);
    for (size_t i = 0; i < g->ndims; i++) {
        const json *d = json_at(j, i);
        if (!json_get_str(d, "name", &g->dims[i].name) ||
            !json_get_i64(d, "value", &g->dims[i].value))
            return err_set(err, ERR_ENV, "a dimension without name and value");
        json_get_str(d, "is", &g->dims[i].is);
    }
    return true;
}

static bool read_outputs(const json *j, struct arena *a, struct graph *g, struct err *err) {
    const json *outputs = json_get(j, "outputs"), *names = json_get(j, "output_names");
    g->noutputs = json_len(outputs);
    if (!g->noutputs || json_len(names) != g->noutputs || g->noutputs > GRAPH_MAX_LISTED)
        return err_set(err, ERR_ENV, "no outputs");
    g->outputs = arena_array(a, struct ref, g->noutputs);
    g->output_names = arena_array(a, str, g->noutputs);
    for (size_t i = 0; i < g->noutputs; i++)
        if (!graph_ref(g, json_at(outputs, i), &g->outputs[i]) ||
            !json_to_str(json_at(names, i), &g->output_names[i]))
            return err_set(err, ERR_ENV, "output %zu is no tensor of the graph", i);
    return true;
}

bool graph_read(const json *j, struct arena *a, struct graph *out, struct err *err) {
    const json *nodes = json_get(j, "nodes");
    memset(out, 0, sizeof *out);
    if (!json_is_array(nodes) || json_len(nodes) > GRAPH_MAX_NODES ||
        !json_get_str(j, "name", &out->name))
        return err_set(err, ERR_ENV, "not a graph");
    json_get_str(j, "class", &out->class);
    json_get_str(j, "source", &out->source);
    json_get_str(j, "pytorch", &out->pytorch);
    json_get_str(j, "torch", &out->torch);
    json_get_bool(j, "tf32", &out->matmul_tf32);
    json_get_bool(j, "conv_tf32", &out->convolution_tf32);
    out->checks = json_get(j, "checks");
    out->dropout = json_get(j, "dropout");
    out->updates = json_get(j, "updates");
    out->nnodes = json_len(nodes);
    out->nodes = arena_array(a, struct node, out->nnodes + 1);
    for (size_t i = 0; i < out->nnodes; i++)
        if (!read_node(json_at(nodes, i), a, &out->nodes[i], err))
            return false;
    return references_hold(out, err) && read_dims(json_get(j, "dims"), a, out, err) &&
           read_outputs(j, a, out, err);
}
