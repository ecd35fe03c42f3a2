#include "import/cut.h"

#include "import/line.h"
#include "import/plan.h"
#include "import/refused.h"
#include "import/write.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { NAME_MOST = 48, NODES_TEXT = 64 << 20 };
#define NOWHERE SIZE_MAX

/* A run of operators that becomes one use: a submodule's call, or what lies between such. */
struct unit {
    size_t lo, hi; /* of `order` */
    str path;      /* the submodule that names it */
    bool product;  /* it has one, so it may begin a task */
};

struct cutter {
    const json *nodes;
    const struct graph *g;
    const char *file;
    struct arena *arena;
    struct err *err;
    bool *made;    /* a node that follows from sizes and buffers alone: repeated where it is read */
    bool *live;    /* a result of the module depends on it */
    size_t *order; /* the nodes that parts are made of, recurrences among them */
    size_t norder;
    size_t *position; /* of a node in `order` */
    size_t **last;    /* of each value: the position of its last reader; norder: it is an output */
    str **flow;       /* … and its name, once a use gives it */
    struct unit *units;
    size_t nunits, units_cap;
    struct chain *out;
    size_t parts_cap, uses_cap;
};

static bool is_leaf(const struct node *n) {
    return n->info && n->info->kind == OP_LEAF;
}

static bool is_scan(const struct node *n) {
    return str_is(n->op, "scan");
}

/* One slice of an input or a parameter: taken where it flows, so that steps which differ in it
 * alone are the same task. */
static bool is_pick(const struct cutter *c, size_t i, struct ref *source) {
    const struct node *n = &c->g->nodes[i];
    int64_t dim, index;
    return str_is(n->op, "select") && json_get_i64(n->args, "dim", &dim) && dim >= 0 &&
           json_get_i64(n->args, "index", &index) && index >= 0 &&
           graph_ref(c->g, json_get(n->args, "self"), source) &&
           is_leaf(&c->g->nodes[source->node]) && !str_is(c->g->nodes[source->node].op, "buffer") &&
           c->last[i] && c->last[i][0] != c->norder;
}

bool cut_needed(const struct graph *g) {
    for (size_t i = 0; i < g->nnodes; i++)
        if (is_scan(&g->nodes[i]))
            return true;
    return false;
}

/* ---- what reads what ---- */

struct reading {
    struct cutter *c;
    size_t node;
    bool only_made, found;
};

static void note_live(void *ctx, const char *name, struct ref r) {
    struct reading *p = ctx;
    const struct node *n = &p->c->g->nodes[p->node];
    if (!is_leaf(n) && plan_reads(n, name))
        p->c->live[r.node] = true;
}

static void note_made(void *ctx, const char *name, struct ref r) {
    struct reading *p = ctx;
    const struct node *from = &p->c->g->nodes[r.node];
    if (!plan_reads(&p->c->g->nodes[p->node], name))
        return;
    p->only_made = p->only_made && (p->c->made[r.node] || str_is(from->op, "buffer"));
}

static void note_last(void *ctx, const char *name, struct ref r) {
    struct reading *p = ctx;
    struct cutter *c = p->c;
    size_t at = c->position[p->node];
    struct ref source;
    if (at == NOWHERE || !plan_reads(&c->g->nodes[p->node], name))
        return;
    if (c->last[r.node][r.out] == NOWHERE || c->last[r.node][r.out] < at)
        c->last[r.node][r.out] = at;
    if (is_pick(c, r.node, &source) && c->last[source.node][source.out] != c->norder)
        c->last[source.node][source.out] = at;
}

static void arrange(struct cutter *c) {
    const struct graph *g = c->g;
    struct reading p = {.c = c};
    for (size_t i = 0; i < g->noutputs; i++)
        c->live[g->outputs[i].node] = true;
    for (p.node = g->nnodes; p.node-- > 0;)
        if (c->live[p.node])
            graph_each_ref(g, &g->nodes[p.node], note_live, &p);
    for (p.node = 0; p.node < g->nnodes; p.node++) {
        const struct node *n = &g->nodes[p.node];
        c->position[p.node] = NOWHERE;
        c->last[p.node] = arena_array(c->arena, size_t, n->nouts + 1);
        c->flow[p.node] = arena_array(c->arena, str, n->nouts + 1);
        for (size_t k = 0; k <= n->nouts; k++)
            c->last[p.node][k] = NOWHERE;
        p.only_made = !is_leaf(n) && !is_scan(n) && (!n->info || n->info->kind != OP_RANDOM);
        graph_each_ref(g, n, note_made, &p);
        c->made[p.node] = p.only_made;
    }
    for (size_t i = 0; i < g->noutputs; i++) { /* before picks are known: an output is none */
        c->made[g->outputs[i].node] = false;
        c->last[g->outputs[i].node][g->outputs[i].out] = g->nnodes + 1;
    }
    c->norder = g->nnodes + 1;
    struct ref source;
    size_t n = 0;
    for (size_t i = 0; i < g->nnodes; i++)
        if (c->live[i] && !c->made[i] && !is_leaf(&g->nodes[i]) && !is_pick(c, i, &source)) {
            c->position[i] = n;
            c->order[n++] = i;
        }
    for (size_t i = 0; i < g->noutputs; i++)
        c->last[g->outputs[i].node][g->outputs[i].out] = n;
    c->norder = n;
    for (p.node = 0; p.node < g->nnodes; p.node++)
        graph_each_ref(g, &g->nodes[p.node], note_last, &p);
}

/* ---- a piece: the graph of one task ---- */

struct crossing {
    struct ref r;
    bool picked;
    struct ref source; /* where it is picked */
    size_t at;         /* its number in the piece */
};
struct renamed { /* numbers in paths, counted anew in each piece */
    str path;
    size_t as;
};
struct piece {
    struct cutter *c;
    size_t lo, hi;
    str prefix; /* of the paths of its submodules */
    bool *included;
    size_t *map; /* node -> its number in the piece */
    struct crossing *in;
    size_t nin, in_cap;
    struct ref *outs;
    size_t nouts, outs_cap;
    struct renamed *renamed;
    size_t nrenamed, renamed_cap;
    str *names; /* of leaves that are taken */
    size_t nnames, names_cap;
    struct link *links;
    size_t nlinks, links_cap;
    json *nodes, *outputs;
    size_t count;
};

static bool is_member(const struct piece *p, size_t node) {
    size_t at = p->c->position[node];
    return at != NOWHERE && at >= p->lo && at < p->hi;
}

static bool all_digits(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (!isdigit((unsigned char)s.p[i]))
            return false;
    return s.n > 0;
}

/* The part of both paths that is the same, in whole words. */
static str common_path(str a, str b) {
    size_t n = 0, i = 0;
    for (; i < a.n && i < b.n && a.p[i] == b.p[i]; i++)
        if (a.p[i] == '.')
            n = i;
    bool whole = (i == a.n && (i == b.n || b.p[i] == '.')) || (i == b.n && a.p[i] == '.');
    return str_cut(a, 0, whole ? i : n);
}

static str last_word(str path) {
    str word, last = {0};
    while (str_word(&path, '.', &word))
        if (!all_digits(word))
            last = word;
    return last;
}

static size_t number_anew(struct piece *p, str path, str parent) {
    size_t below = 0;
    for (size_t i = 0; i < p->nrenamed; i++) {
        if (str_eq(p->renamed[i].path, path))
            return p->renamed[i].as;
        str rest = p->renamed[i].path;
        below += rest.n > parent.n && str_starts(rest, parent) &&
                 memchr(rest.p + parent.n + 1, '.', rest.n - parent.n - 1) == NULL;
    }
    p->renamed = mem_grow(p->renamed, &p->renamed_cap, p->nrenamed + 1, sizeof *p->renamed);
    p->renamed[p->nrenamed++] = (struct renamed){path, below};
    return below;
}

/* A path of the module as one of the piece: without what all have in common, and with numbers in
 * the order of their appearance, so that equal pieces have equal names. */
static str own_path(struct piece *p, str path) {
    struct arena *a = p->c->arena;
    str made = {0};
    if (!p->prefix.n || !str_starts(path, p->prefix) ||
        (path.n > p->prefix.n && path.p[p->prefix.n] != '.'))
        return path.n && p->prefix.n ? path : arena_str(a, path);
    for (size_t at = p->prefix.n + 1; at < path.n;) {
        const char *dot = memchr(path.p + at, '.', path.n - at);
        size_t end = dot ? (size_t)(dot - path.p) : path.n;
        str word = str_cut(path, at, end - at);
        if (all_digits(word))
            word = arena_printf(a, "%zu",
                                number_anew(p, str_cut(path, 0, end), str_cut(path, 0, at - 1)));
        if (!made.n && isdigit((unsigned char)word.p[0]))
            made = arena_printf(a, "%.*s%.*s", STR_ARG(last_word(p->prefix)), STR_ARG(word));
        else
            made = arena_printf(a, "%.*s%s%.*s", STR_ARG(made), made.n ? "." : "", STR_ARG(word));
        at = end + 1;
    }
    return made;
}

static bool name_taken(const struct piece *p, str name) {
    for (size_t i = 0; i < p->nnames; i++)
        if (str_eq(p->names[i], name))
            return true;
    for (size_t i = 0; i < p->c->g->ndims; i++)
        if (str_eq(p->c->g->dims[i].name, name))
            return true;
    return write_is_word(name);
}

/* A name of the task for a leaf: letters, digits and _, no other's. */
static str leaf_name(struct piece *p, str wish) {
    char text[NAME_MOST + 1];
    size_t n = 0;
    if (!wish.n || isdigit((unsigned char)wish.p[0]))
        text[n++] = 'p';
    for (size_t i = 0; i < wish.n && n < NAME_MOST; i++)
        text[n++] =
            isalnum((unsigned char)wish.p[i]) && (unsigned char)wish.p[i] < 128 ? wish.p[i] : '_';
    str base = arena_str(p->c->arena, (str){text, n}), name = base;
    for (unsigned k = 2; name_taken(p, name); k++)
        name = arena_printf(p->c->arena, "%.*s%s%u", STR_ARG(base),
                            isdigit((unsigned char)base.p[base.n - 1]) ? "_" : "", k);
    p->names = mem_grow(p->names, &p->names_cap, p->nnames + 1, sizeof *p->names);
    return p->names[p->nnames++] = name;
}

static struct link *add_link(struct piece *p, str tensor, str flow) {
    p->links = mem_grow(p->links, &p->links_cap, p->nlinks + 1, sizeof *p->links);
    p->links[p->nlinks] = (struct link){.tensor = tensor, .flow = flow};
    return &p->links[p->nlinks++];
}

/* A node that is repeated in the piece, with all that it follows from (push_included). */
static void include(struct piece *p, size_t node) {
    p->included[node] = true;
}

static void include_ref(void *ctx, const char *name, struct ref r) {
    (void)name;
    include(ctx, r.node);
}

static void cross(struct piece *p, struct ref r, bool picked, struct ref source) {
    for (size_t i = 0; i < p->nin; i++)
        if (p->in[i].r.node == r.node && p->in[i].r.out == r.out)
            return;
    p->in = mem_grow(p->in, &p->in_cap, p->nin + 1, sizeof *p->in);
    p->in[p->nin++] = (struct crossing){r, picked, source, NOWHERE};
}

struct collecting {
    struct piece *p;
    size_t node;
};

static void collect(void *ctx, const char *name, struct ref r) {
    struct piece *p = ((struct collecting *)ctx)->p;
    struct cutter *c = p->c;
    const struct node *from = &c->g->nodes[r.node];
    struct ref source = {0};
    if (is_member(p, r.node))
        return;
    if (str_is(from->op, "param") || str_is(from->op, "buffer") || c->made[r.node])
        include(p, r.node);
    else if (plan_reads(&c->g->nodes[((struct collecting *)ctx)->node], name))
        cross(p, r, is_pick(c, r.node, &source), source);
}

static void add_out(struct piece *p, size_t node, size_t out) {
    p->outs = mem_grow(p->outs, &p->outs_cap, p->nouts + 1, sizeof *p->outs);
    p->outs[p->nouts++] = (struct ref){node, out};
}

static void collect_all(struct piece *p) {
    struct cutter *c = p->c;
    for (size_t at = p->lo; at < p->hi; at++) {
        struct collecting one = {p, c->order[at]};
        const struct node *n = &c->g->nodes[one.node];
        graph_each_ref(c->g, n, collect, &one);
        for (size_t k = 0; k < n->nouts; k++)
            if (c->last[one.node][k] != NOWHERE && c->last[one.node][k] >= p->hi)
                add_out(p, one.node, k);
        p->prefix = at == p->lo ? n->module : common_path(p->prefix, n->module);
    }
}

/* ---- … as JSON ---- */

static json *json_ref(size_t node, size_t out) {
    json *j = json_object();
    json_set_i64(j, "node", (int64_t)node);
    json_set_i64(j, "out", (int64_t)out);
    return j;
}

static json *remap(struct piece *p, const json *j);

struct remapping {
    struct piece *p;
    json *into;
};

static void remap_member(void *ctx, const char *key, const json *value) {
    struct remapping *r = ctx;
    json_set(r->into, key, remap(r->p, value));
}

static json *remap(struct piece *p, const json *j) {
    struct ref r;
    if (json_is_array(j)) {
        json *made = json_array();
        for (size_t i = 0; i < json_len(j); i++)
            json_push(made, remap(p, json_at(j, i)));
        return made;
    }
    if (!json_is_object(j))
        return j ? json_copy(j) : NULL;
    if (graph_ref(p->c->g, j, &r)) {
        for (size_t i = 0; i < p->nin; i++)
            if (p->in[i].r.node == r.node && p->in[i].r.out == r.out)
                return p->in[i].at != NOWHERE ? json_ref(p->in[i].at, 0) : NULL;
        return p->map[r.node] != NOWHERE ? json_ref(p->map[r.node], r.out) : NULL;
    }
    struct remapping members = {p, json_object()};
    json_each(j, remap_member, &members);
    return members.into;
}

static json *node_json(const char *op, json *args, const json *outs, str module) {
    json *n = json_object();
    json_set_str(n, "op", str_view(op));
    json_set(n, "args", args);
    json_set(n, "outs", json_copy(outs));
    json_set_str(n, "module", module);
    return n;
}

static size_t push_node(struct piece *p, json *n) {
    json_push(p->nodes, n);
    return p->count++;
}

/* An input: what another part computes stands for random numbers; the module's own inputs are drawn
 * as the file draws them. */
static size_t push_input(struct piece *p, str name, const json *out, enum dtype dtype,
                         const struct ref *given) {
    json *outs = json_array(), *args = json_object();
    size_t value = given ? p->map[given->node] : p->count;
    json_push(outs, json_copy(out));
    if (!given) {
        json *range = json_object();
        json_set_i64(range, "low", 0);
        json_set_i64(range, "high", 2);
        push_node(
            p, node_json(dtype_info(dtype)->kind == 'f' ? "randn" : "randint", range, outs, S("")));
    }
    json_set_str(args, "name", name);
    json_set(args, "value", json_ref(value, given ? given->out : 0));
    size_t at = push_node(p, node_json("in", args, outs, S("")));
    json_free(outs);
    return at;
}

static str path_of(const struct node *n) {
    str path = {0};
    if (!json_get_str(n->args, "path", &path))
        json_get_str(n->args, "name", &path);
    return path;
}

static str flow_of(const struct cutter *c, struct ref r) {
    const struct node *n = &c->g->nodes[r.node];
    return is_leaf(n) ? path_of(n) : c->flow[r.node][r.out];
}

static const json *out_json(const struct cutter *c, struct ref r) {
    return json_at(json_get(json_at(c->nodes, r.node), "outs"), r.out);
}

static void pick(struct link *l, const struct node *n) {
    int64_t axis = 0;
    json_get_i64(n->args, "dim", &axis);
    json_get_i64(n->args, "index", &l->index);
    l->axis = (size_t)axis;
    l->picked = true;
}

/* What the file draws an input of the module from. */
static bool drawn_from(const struct cutter *c, struct ref r, struct ref *value) {
    const struct node *n = &c->g->nodes[r.node];
    return str_is(n->op, "in") && graph_ref(c->g, json_get(n->args, "value"), value);
}

static void push_inputs(struct piece *p) {
    for (size_t i = 0; i < p->nin; i++) {
        struct crossing *in = &p->in[i];
        const struct node *n = &p->c->g->nodes[in->r.node];
        struct ref value;
        str name = leaf_name(p, i ? arena_printf(p->c->arena, "x%zu", i + 1) : S("x"));
        struct link *l = add_link(p, name, flow_of(p->c, in->picked ? in->source : in->r));
        if (in->picked)
            pick(l, n);
        in->at = push_input(p, name, out_json(p->c, in->r), n->outs[in->r.out].dtype,
                            drawn_from(p->c, in->r, &value) ? &value : NULL);
    }
}

static void push_copy(struct piece *p, size_t i) {
    const struct node *n = &p->c->g->nodes[i];
    json *made = json_object(), *args = remap(p, n->args);
    if (is_leaf(n)) {
        str path = path_of(n), name = leaf_name(p, own_path(p, path));
        json_set_str(args, "name", name);
        add_link(p, name, path);
    }
    json_set_str(made, "op", n->op);
    json_set(made, "args", args);
    json_set(made, "outs", json_copy(json_get(json_at(p->c->nodes, i), "outs")));
    json_set_i64(made, "line", n->line);
    json_set_str(made, "module", own_path(p, n->module));
    p->map[i] = push_node(p, made);
}

static void push_included(struct piece *p) {
    for (size_t i = p->c->g->nnodes; i-- > 0;) /* arguments come before */
        if (p->included[i])
            graph_each_ref(p->c->g, &p->c->g->nodes[i], include_ref, p);
    for (size_t i = 0; i < p->c->g->nnodes; i++)
        if (p->included[i])
            push_copy(p, i);
}

static void piece_release(struct piece *p) {
    mem_free(p->included);
    mem_free(p->map);
    mem_free(p->in);
    mem_free(p->outs);
    mem_free(p->renamed);
    mem_free(p->names);
    mem_free(p->links);
    json_free(p->nodes);
    json_free(p->outputs);
}

static void piece_begin(struct cutter *c, struct piece *p) {
    memset(p, 0, sizeof *p);
    p->c = c;
    p->nodes = json_array();
    p->outputs = json_array();
    p->included = mem_alloc(c->g->nnodes + 1);
    p->map = mem_alloc((c->g->nnodes + 1) * sizeof *p->map);
    for (size_t i = 0; i < c->g->nnodes; i++)
        p->map[i] = NOWHERE;
}

static void piece_of(struct cutter *c, size_t lo, size_t hi, struct piece *p) {
    struct ref value;
    piece_begin(c, p);
    p->lo = lo;
    p->hi = hi;
    collect_all(p);
    for (size_t i = 0; i < p->nin; i++)
        if (drawn_from(c, p->in[i].r, &value))
            include(p, value.node);
    push_included(p);
    push_inputs(p);
    for (size_t at = lo; at < hi; at++)
        push_copy(p, c->order[at]);
    for (size_t i = 0; i < p->nouts; i++)
        json_push(p->outputs, json_ref(p->map[p->outs[i].node], p->outs[i].out));
}

/* ---- dimensions of a piece ---- */

struct closure {
    const struct graph *g;
    const bool *stop;
    bool *in;
};

static void close_over(struct closure *c, size_t dim) {
    for (size_t k = 0; k < c->g->ndims; k++)
        if (!c->in[k] && k != dim && text_mentions(c->g->dims[dim].is, c->g->dims[k].name)) {
            c->in[k] = true;
            if (!c->stop[k])
                close_over(c, k);
        }
}

/* A size that the module derives from its own dimensions is a dimension of the piece, where the
 * piece knows nothing else of what it is derived from. */
static void free_dims(const struct graph *g, const bool *mentioned, bool *freed, struct arena *a) {
    bool *below = arena_array(a, bool, g->ndims + 1), *other = arena_array(a, bool, g->ndims + 1);
    for (size_t i = 0; i < g->ndims; i++) {
        if (!mentioned[i] || !g->dims[i].is.n)
            continue;
        struct closure down = {g, freed, below}, across = {g, freed, other};
        memset(below, 0, g->ndims);
        close_over(&down, i);
        bool alone = true;
        freed[i] = true;
        for (size_t m = 0; m < g->ndims && alone; m++) {
            if (below[m] && mentioned[m])
                alone = false;
            if (!mentioned[m] || m == i)
                continue;
            memset(other, 0, g->ndims);
            if (!freed[m])
                close_over(&across, m);
            for (size_t k = 0; k < g->ndims; k++)
                alone = alone && !(other[k] && below[k]);
        }
        freed[i] = alone;
    }
}

static json *dims_json(const struct cutter *c, const struct piece *p, bool free) {
    const struct graph *g = c->g;
    bool *mentioned = arena_array(c->arena, bool, g->ndims + 1),
         *freed = arena_array(c->arena, bool, g->ndims + 1);
    struct buf text;
    buf_init(&text, NODES_TEXT);
    json_write(p->nodes, &text);
    for (size_t i = 0; i < g->ndims; i++)
        mentioned[i] = text_mentions(buf_str(&text), g->dims[i].name);
    buf_release(&text);
    if (free)
        free_dims(g, mentioned, freed, c->arena);
    json *dims = json_array();
    for (size_t i = 0; i < g->ndims; i++) {
        json *d = json_object();
        json_set_str(d, "name", g->dims[i].name);
        json_set_i64(d, "value", g->dims[i].value);
        if (g->dims[i].is.n && !freed[i])
            json_set_str(d, "is", g->dims[i].is);
        json_push(dims, d);
    }
    return dims;
}

static str piece_path(const struct cutter *c, str path) {
    return path.n ? arena_printf(c->arena, "%.*s, %.*s", STR_ARG(c->g->class), STR_ARG(path))
                  : c->g->class;
}

static json *piece_json(const struct cutter *c, const struct piece *p, str path, str name,
                        bool free) {
    json *j = json_object(), *names = json_array();
    json_set_str(j, "name",
                 arena_printf(c->arena, "%.*s_%.*s", STR_ARG(c->g->name), STR_ARG(name)));
    json_set_str(j, "class", piece_path(c, path));
    json_set_str(j, "source", c->g->source);
    json_set_bool(j, "tf32", c->g->matmul_tf32);
    json_set_bool(j, "conv_tf32", c->g->convolution_tf32);
    json_set(j, "dims", dims_json(c, p, free));
    json_set(j, "checks", c->g->checks ? json_copy(c->g->checks) : json_array());
    json_set(j, "nodes", json_copy(p->nodes));
    for (size_t i = 0; i < json_len(p->outputs); i++)
        json_push_str(names, i ? arena_printf(c->arena, "y%zu", i + 1) : S("y"));
    json_set(j, "outputs", json_copy(p->outputs));
    json_set(j, "output_names", names);
    return j;
}

/* The task of a piece. False with an error: it cannot be written; without: it is too large. */
static bool write_piece(struct cutter *c, const json *j, struct graph *g, str *text) {
    struct buf b;
    bool too_large = false;
    buf_init(&b, TASK_MAX_BYTES);
    bool ok = graph_read(j, c->arena, g, c->err) &&
              write_task(g, c->file, c->arena, &b, &too_large, c->err);
    if (ok)
        *text = arena_str(c->arena, buf_str(&b));
    if (too_large)
        *c->err = (struct err){0};
    buf_release(&b);
    return ok;
}

static size_t leaves_of(const struct piece *p) {
    return p->nlinks + p->nouts;
}

static bool fits(struct cutter *c, size_t lo, size_t hi) {
    struct piece p;
    str text;
    piece_of(c, lo, hi, &p);
    bool ok = false;
    if (p.nouts && leaves_of(&p) <= 2 * TASK_MAX_TENSORS) {
        json *j = piece_json(c, &p, (str){0}, (str){0}, false);
        struct graph g;
        ok = write_piece(c, j, &g, &text);
        json_free(j);
    }
    piece_release(&p);
    return ok;
}

/* ---- where to cut ---- */

static void note_parameter(void *ctx, const char *name, struct ref r) {
    struct reading *p = ctx;
    const struct graph *g = p->c->g;
    (void)name;
    while (g->nodes[r.node].info && g->nodes[r.node].info->kind == OP_VIEW &&
           graph_ref(g, json_get(g->nodes[r.node].args, "self"), &r)) {
    }
    p->found = p->found || str_is(g->nodes[r.node].op, "param");
}

/* The first product there that reads a parameter. */
static size_t find_product(struct cutter *c, size_t lo, size_t hi) {
    for (size_t at = lo; at < hi; at++) {
        struct reading p = {.c = c, .node = c->order[at]};
        const struct node *n = &c->g->nodes[p.node];
        if (n->info && n->info->kind == OP_PRODUCT)
            graph_each_ref(c->g, n, note_parameter, &p);
        if (p.found)
            return at;
    }
    return hi;
}

static bool has_product(struct cutter *c, size_t lo, size_t hi) {
    return find_product(c, lo, hi) < hi;
}

static void add_unit(struct cutter *c, size_t lo, size_t hi, str path) {
    c->units = mem_grow(c->units, &c->units_cap, c->nunits + 1, sizeof *c->units);
    size_t product = find_product(c, lo, hi);
    if (!path.n && !is_scan(&c->g->nodes[c->order[lo]])) /* called after what it computes first */
        path = c->g->nodes[c->order[product < hi ? product : lo]].module;
    c->units[c->nunits++] = (struct unit){lo, hi, path, product < hi};
}

/* The submodule at this place, one level below the path; the path itself: its own operators. */
static str child_of(const struct cutter *c, size_t at, str path) {
    str module = c->g->nodes[c->order[at]].module;
    if (module.n <= path.n || (path.n && !str_starts(module, path)))
        return path;
    size_t from = path.n ? path.n + 1 : 0;
    const char *dot = memchr(module.p + from, '.', module.n - from);
    return dot ? str_cut(module, 0, (size_t)(dot - module.p)) : module;
}

/* Operators without submodules: as many as fit, up to the last product. */
static bool split_flat(struct cutter *c, size_t lo, size_t hi, str path) {
    while (lo < hi) {
        size_t most = lo + 1;
        for (size_t step = 16; step; step /= 4)
            while (most + step <= hi && fits(c, lo, most + step))
                most += step;
        if (c->err->kind)
            return false;
        if (most == lo + 1 && !fits(c, lo, most)) {
            if (c->err->kind)
                return false;
            return err_set(c->err, ERR_NO, "%s: one operator of %.*s needs more than %d tensors",
                           c->file, STR_ARG(path), TASK_MAX_TENSORS);
        }
        size_t cut = most;
        for (size_t at = most; at > lo + 1 && most < hi; at--)
            if (has_product(c, at, at + 1)) {
                cut = at;
                break;
            }
        add_unit(c, lo, cut, path);
        lo = cut;
    }
    return true;
}

static bool split(struct cutter *c, size_t lo, size_t hi, str path) {
    if (fits(c, lo, hi)) {
        add_unit(c, lo, hi, path);
        return true;
    }
    if (c->err->kind)
        return false;
    size_t end = lo;
    while (end < hi && str_eq(child_of(c, end, path), child_of(c, lo, path)))
        end++;
    if (end == hi && str_eq(child_of(c, lo, path), path))
        return split_flat(c, lo, hi, path);
    for (size_t at = lo; at < hi; at = end) {
        str child = child_of(c, at, path);
        for (end = at; end < hi && str_eq(child_of(c, end, path), child);)
            end++;
        bool ok = str_eq(child, path) ? fits(c, at, end) || c->err->kind
                                            ? !c->err->kind && (add_unit(c, at, end, path), true)
                                            : split_flat(c, at, end, path)
                                      : split(c, at, end, child);
        if (!ok)
            return false;
    }
    return true;
}

/* What has no product goes with what is before it; at the beginning, with what follows. */
static bool join(struct cutter *c, size_t from) {
    size_t n = from;
    for (size_t i = from; i < c->nunits; i++) {
        struct unit u = c->units[i];
        struct unit *before = n > from ? &c->units[n - 1] : NULL;
        bool joins = before && (!u.product || !before->product) && fits(c, before->lo, u.hi);
        if (c->err->kind)
            return false;
        if (joins) {
            before->path = before->product || !u.product ? before->path : u.path;
            before->product = before->product || u.product;
            before->hi = u.hi;
        } else {
            c->units[n++] = u;
        }
    }
    c->nunits = n;
    return true;
}

/* Between recurrences, each of which is a unit. */
static bool split_all(struct cutter *c) {
    for (size_t lo = 0, hi; lo < c->norder; lo = hi) {
        size_t first = c->nunits;
        if (is_scan(&c->g->nodes[c->order[lo]])) {
            hi = lo + 1;
            add_unit(c, lo, hi, c->g->nodes[c->order[lo]].module);
            continue;
        }
        for (hi = lo; hi < c->norder && !is_scan(&c->g->nodes[c->order[hi]]);)
            hi++;
        if (!split(c, lo, hi, (str){0}) || !join(c, first))
            return false;
    }
    return true;
}

/* ---- parts and uses ---- */

/* Is it the same task, whatever it is called and what its comments say? */
static bool next_line(str *text, str *line) {
    while (str_line(text, line))
        if (!str_starts(*line, S("#")) && !str_starts(*line, S("task ")))
            return true;
    return false;
}

static bool same_task(str a, str b) {
    str x, y;
    for (;;) {
        bool more = next_line(&a, &x), also = next_line(&b, &y);
        if (!more || !also)
            return more == also;
        if (!str_eq(x, y))
            return false;
    }
}

static str file_name(const struct cutter *c, str path) {
    char *base = arena_cstr(c->arena, path.n ? path : S("rest"));
    for (char *at = base; *at; at++)
        if (!isalnum((unsigned char)*at))
            *at = '_';
    str name = str_view(base);
    bool taken = true;
    for (unsigned k = 2; taken; k++) {
        taken = false;
        for (size_t i = 0; i < c->out->nparts; i++)
            taken = taken || str_eq(c->out->parts[i].name, name);
        if (taken)
            name = arena_printf(c->arena, "%s_%u", base, k);
    }
    return name;
}

static bool binds(const struct cutter *c, const struct task *t, struct err *err) {
    struct inst *in;
    bool ok = task_bind(t, NULL, 0, c->arena, &in, err);
    for (size_t i = 0; i < t->nchecks && ok; i++)
        ok = task_bind_check(t, i, c->arena, &in, err);
    return ok;
}

/* With dimensions of its own where that is a task, else with the module's. */
static bool text_of_piece(struct cutter *c, const struct piece *p, str path, str file,
                          struct part *part, struct task **task) {
    *part = (struct part){.name = file};
    for (int free = 1; free >= 0; free--) {
        struct err why = {0};
        struct graph g, again;
        json *j = piece_json(c, p, path, file, free);
        bool ok = write_piece(c, j, &g, &part->text);
        str name = arena_printf(c->arena, "%.*s.task", STR_ARG(path));
        bool is_task =
            ok && task_parse(name, part->text, c->arena, task, &why) && binds(c, *task, &why);
        if (is_task && graph_read(j, c->arena, &again, &why)) /* as it was before it was written */
            part->line = torch_line(&again, *task, c->arena);
        json_free(j);
        if (!ok)
            return c->err->kind ? false
                                : err_set(c->err, ERR_NO, "%s: %.*s is too large for a task",
                                          c->file, STR_ARG(path));
        if (is_task)
            return true;
        if (!free) {
            *c->err = why;
            task_refused(c->err, c->file, part->text);
        }
    }
    return false;
}

static size_t part_of(struct cutter *c, const struct part *part) {
    struct chain *out = c->out;
    for (size_t i = 0; i < out->nparts; i++)
        if (same_task(out->parts[i].text, part->text))
            return i;
    out->parts = mem_grow(out->parts, &c->parts_cap, out->nparts + 1, sizeof *out->parts);
    out->parts[out->nparts] = *part;
    return out->nparts++;
}

static bool flow_taken(const struct cutter *c, str name) {
    for (size_t i = 0; i < c->out->nuses; i++)
        for (size_t k = 0; k < c->out->uses[i].nout; k++)
            if (str_eq(c->out->uses[i].out[k].flow, name) ||
                str_eq(c->out->uses[i].out[k].last, name))
                return true;
    for (size_t i = 0; i < c->g->nnodes; i++)
        if (is_leaf(&c->g->nodes[i]) && str_eq(path_of(&c->g->nodes[i]), name))
            return true;
    return false;
}

static str new_flow(const struct cutter *c, str path, const char *what) {
    str base = path.n ? path : S("value");
    if (*what)
        base = arena_printf(c->arena, "%.*s.%s", STR_ARG(base), what);
    str name = base;
    for (unsigned k = 2; flow_taken(c, name); k++)
        name = arena_printf(c->arena, "%.*s:%u", STR_ARG(base), k);
    return name;
}

static struct use *add_use(struct cutter *c, size_t part, str module) {
    struct chain *out = c->out;
    out->uses = mem_grow(out->uses, &c->uses_cap, out->nuses + 1, sizeof *out->uses);
    out->parts[part].uses++;
    out->uses[out->nuses] = (struct use){.part = part, .module = module};
    return &out->uses[out->nuses++];
}

/* Of what the piece could read, what its task does. */
static void link_inputs(struct cutter *c, const struct piece *p, const struct task *task,
                        struct use *u) {
    u->in = arena_array(c->arena, struct link, p->nlinks + 1);
    for (size_t i = 0; i < p->nlinks; i++) {
        int t = tensor_find(task, p->links[i].tensor);
        if (t >= 0 && tensor_is_input(&task->tensors[t]))
            u->in[u->nin++] = p->links[i];
    }
}

static str output_name(const struct task *task, size_t i) {
    for (size_t t = 0; t < task->ntensors; t++)
        if (tensor_is_output(&task->tensors[t]) && i-- == 0)
            return task->tensors[t].name;
    return (str){0};
}

static bool emit_piece(struct cutter *c, const struct unit *u) {
    struct piece p;
    struct part part;
    struct task *task;
    piece_of(c, u->lo, u->hi, &p);
    str file = file_name(c, u->path);
    bool ok = text_of_piece(c, &p, u->path, file, &part, &task);
    if (ok) {
        struct use *use = add_use(c, part_of(c, &part), u->path);
        struct link *out = arena_array(c->arena, struct link, p.nouts + 1);
        link_inputs(c, &p, task, use);
        use->out = out;
        for (size_t i = 0; i < p.nouts; i++) {
            str flow = new_flow(c, u->path, "");
            c->flow[p.outs[i].node][p.outs[i].out] = flow;
            out[use->nout++] =
                (struct link){.tensor = arena_str(c->arena, output_name(task, i)), .flow = flow};
        }
    }
    piece_release(&p);
    return ok;
}

/* ---- recurrences ---- */

/* References of a step are to nodes of the step. */
static json *remap_step(const json *j, const size_t *map, size_t n) {
    int64_t node, out;
    if (json_is_array(j)) {
        json *made = json_array();
        for (size_t i = 0; i < json_len(j); i++)
            json_push(made, remap_step(json_at(j, i), map, n));
        return made;
    }
    if (json_is_object(j) && json_get_i64(j, "node", &node) && json_get_i64(j, "out", &out))
        return node >= 0 && (size_t)node < n && out >= 0 ? json_ref(map[node], (size_t)out) : NULL;
    return j ? json_copy(j) : NULL;
}

struct step_args {
    json *into;
    const size_t *map;
    size_t n;
};

static void step_member(void *ctx, const char *key, const json *value) {
    struct step_args *s = ctx;
    json_set(s->into, key, remap_step(value, s->map, s->n));
}

/* A state that begins with zeros, as those of PyTorch do where none is given. */
static bool begins_with_zeros(const struct cutter *c, struct ref r) {
    while (c->made[r.node]) {
        str op = c->g->nodes[r.node].op;
        if (str_starts(op, S("zeros")) || str_is(op, "new_zeros"))
            return true;
        if (!graph_ref(c->g, json_get(c->g->nodes[r.node].args, "self"), &r))
            return false;
    }
    return false;
}

/* One tensor that a step reads. */
static bool bind_leaf(struct piece *p, const struct node *scan, const json *leaf, size_t k,
                      size_t *at) {
    struct cutter *c = p->c;
    struct ref r, source, value;
    str how = {0}, name = {0};
    json_get_str(json_get(leaf, "args"), "name", &name);
    json_to_str(json_at(json_get(scan->args, "how"), k), &how);
    if (!graph_ref(c->g, json_at(json_get(scan->args, "bind"), k), &r) || !name.n)
        return err_set(c->err, ERR_ENV, "a recurrence that reads what is not there");
    const struct node *from = &c->g->nodes[r.node];
    name = leaf_name(p, name);
    if (str_is(from->op, "param") && graph_ref(c->g, json_get(from->args, "value"), &value)) {
        json *args = json_object();
        json_set_str(args, "name", name);
        json_set(args, "value", json_ref(p->map[value.node], value.out));
        *at = push_node(p, node_json("param", args, json_get(leaf, "outs"), S("")));
        add_link(p, name, path_of(from));
        return true;
    }
    bool zeros = begins_with_zeros(c, r), picked = is_pick(c, r.node, &source);
    if (c->made[r.node] && !zeros)
        return err_set(c->err, ERR_NO,
                       "%s: a recurrence that begins with computed numbers cannot be expressed",
                       c->file);
    struct link *l = add_link(p, name, zeros ? (str){0} : flow_of(c, picked ? source : r));
    if (picked)
        pick(l, from);
    l->each = str_is(how, "each");
    l->state = str_is(how, "state");
    *at = push_input(p, name, json_at(json_get(leaf, "outs"), 0), from->outs[r.out].dtype, NULL);
    return true;
}

/* The step of a recurrence as a piece. */
static bool step_piece(struct cutter *c, size_t node, struct piece *p) {
    const struct node *scan = &c->g->nodes[node];
    const json *step = json_get(json_at(c->nodes, node), "step"), *nodes = json_get(step, "nodes");
    size_t n = json_len(nodes), leaves = 0;
    size_t *map = arena_array(c->arena, size_t, n + 1);
    struct ref r, value;
    piece_begin(c, p);
    for (size_t k = 0; k < json_len(json_get(scan->args, "bind")); k++)
        if (graph_ref(c->g, json_at(json_get(scan->args, "bind"), k), &r) &&
            str_is(c->g->nodes[r.node].op, "param") &&
            graph_ref(c->g, json_get(c->g->nodes[r.node].args, "value"), &value))
            include(p, value.node);
    push_included(p);
    for (size_t i = 0; i < n; i++) {
        const json *from = json_at(nodes, i);
        str op = {0};
        json_get_str(from, "op", &op);
        if (str_is(op, "in")) {
            if (!bind_leaf(p, scan, from, leaves++, &map[i]))
                return false;
            continue;
        }
        struct step_args members = {json_object(), map, i};
        json_each(json_get(from, "args"), step_member, &members);
        map[i] = push_node(
            p, node_json(arena_cstr(c->arena, op), members.into, json_get(from, "outs"), S("")));
    }
    for (size_t i = 0; i < json_len(json_get(step, "outputs")); i++)
        json_push(p->outputs, remap_step(json_at(json_get(step, "outputs"), i), map, n));
    return true;
}

/* What becomes of the step's results: sequences, last values, and the state of the next step. */
static void link_step(struct cutter *c, size_t node, const struct task *task, struct use *u) {
    const struct node *scan = &c->g->nodes[node];
    const json *gives = json_get(scan->args, "gives"), *next = json_get(scan->args, "next");
    size_t results = 0, states = 0;
    int64_t from;
    str how;
    while (output_name(task, results).n)
        results++;
    u->out = arena_array(c->arena, struct link, results + 1);
    u->nout = results;
    for (size_t i = 0; i < results; i++)
        u->out[i].tensor = arena_str(c->arena, output_name(task, i));
    for (size_t k = 0; k < scan->nouts; k++) {
        if (!json_to_i64(json_at(json_at(gives, k), 0), &from) || from < 0 ||
            (size_t)from >= results || !json_to_str(json_at(json_at(gives, k), 1), &how) ||
            c->last[node][k] == NOWHERE)
            continue;
        bool each = str_is(how, "each");
        str flow = new_flow(c, u->module, each ? "sequence" : "last");
        *(each ? &u->out[from].flow : &u->out[from].last) = flow;
        u->out[from].each = u->out[from].each || each;
        c->flow[node][k] = flow;
    }
    for (size_t i = 0; i < u->nin; i++)
        if (u->in[i].state && json_to_i64(json_at(next, states++), &from) && from >= 0 &&
            (size_t)from < results)
            u->in[i].next = u->out[from].tensor;
}

static bool emit_scan(struct cutter *c, const struct unit *u) {
    struct piece p;
    struct part part;
    struct task *task;
    size_t node = c->order[u->lo];
    const struct node *scan = &c->g->nodes[node];
    str file = file_name(c, u->path);
    bool ok = step_piece(c, node, &p) && text_of_piece(c, &p, u->path, file, &part, &task);
    if (ok) {
        struct use *use = add_use(c, part_of(c, &part), u->path);
        int64_t axis = 0;
        struct ref r;
        json_get_i64(scan->args, "axis", &axis);
        json_get_bool(scan->args, "reverse", &use->reverse);
        use->repeats = true;
        link_inputs(c, &p, task, use);
        link_step(c, node, task, use);
        if (graph_ref(c->g, json_at(json_get(scan->args, "bind"), 0), &r) && axis >= 0 &&
            (size_t)axis < graph_value(c->g, r)->rank) {
            use->axis = (size_t)axis;
            use->over = graph_value(c->g, r)->extent[axis];
        }
    }
    piece_release(&p);
    return ok;
}

/* ---- the whole ---- */

static str shape_text(struct arena *a, const struct value *v) {
    str s = S("[");
    for (size_t i = 0; i < v->rank; i++)
        s = arena_printf(a, "%.*s%s%.*s", STR_ARG(s), i ? "," : "", STR_ARG(v->extent[i]));
    return arena_printf(a, "%.*s]", STR_ARG(s));
}

static bool is_read(const struct chain *c, str path) {
    for (size_t i = 0; i < c->nuses; i++)
        for (size_t k = 0; k < c->uses[i].nin; k++)
            if (str_eq(c->uses[i].in[k].flow, path))
                return true;
    for (size_t i = 0; i < c->noutputs; i++)
        if (str_eq(c->outputs[i], path))
            return true;
    return false;
}

static void list_leaves(const struct graph *g, struct arena *a, struct chain *out) {
    out->leaves = arena_array(a, struct leaf, g->nnodes + 1);
    for (size_t i = 0; i < g->nnodes; i++) {
        const struct node *n = &g->nodes[i];
        str name;
        if (!is_leaf(n) || !json_get_str(n->args, "name", &name) || !is_read(out, path_of(n)))
            continue;
        out->leaves[out->nleaves++] =
            (struct leaf){.name = name,
                          .path = path_of(n),
                          .is_input = str_is(n->op, "in"),
                          .is_buffer = str_is(n->op, "buffer"),
                          .shape = shape_text(a, &n->outs[0]),
                          .dtype = str_view(dtype_info(n->outs[0].dtype)->name)};
    }
}

static void describe(const struct graph *g, struct arena *a, struct chain *out) {
    out->name = arena_str(a, g->name);
    out->title = arena_printf(a, "%.*s of %.*s", STR_ARG(g->class), STR_ARG(g->source));
    out->checks = g->checks;
    out->graph = g;
    list_leaves(g, a, out);
}

bool cut_graph(const json *whole, const struct graph *g, const char *file, struct arena *a,
               struct chain *out, struct err *err) {
    struct cutter c = {.nodes = json_get(whole, "nodes"),
                       .g = g,
                       .file = file,
                       .arena = a,
                       .err = err,
                       .made = arena_array(a, bool, g->nnodes + 1),
                       .live = arena_array(a, bool, g->nnodes + 1),
                       .order = arena_array(a, size_t, g->nnodes + 1),
                       .position = arena_array(a, size_t, g->nnodes + 1),
                       .last = arena_array(a, size_t *, g->nnodes + 1),
                       .flow = arena_array(a, str *, g->nnodes + 1),
                       .out = out};
    memset(out, 0, sizeof *out);
    arrange(&c);
    bool ok = split_all(&c);
    for (size_t i = 0; i < c.nunits && ok; i++)
        ok = is_scan(&g->nodes[c.order[c.units[i].lo]]) ? emit_scan(&c, &c.units[i])
                                                        : emit_piece(&c, &c.units[i]);
    mem_free(c.units);
    out->outputs = arena_array(a, str, g->noutputs + 1);
    for (size_t i = 0; i < g->noutputs && ok; i++) {
        out->outputs[i] = flow_of(&c, g->outputs[i]);
        if (!out->outputs[i].n)
            ok = err_set(err, ERR_NO, "%s: result %zu follows from nothing that is given", file, i);
    }
    out->noutputs = g->noutputs;
    if (ok)
        describe(g, a, out);
    return ok;
}

void cut_none(const struct graph *g, str name, str text, const struct task *task, struct arena *a,
              struct chain *out) {
    memset(out, 0, sizeof *out);
    out->parts = mem_alloc(sizeof *out->parts);
    out->uses = mem_alloc(sizeof *out->uses);
    out->nparts = out->nuses = 1;
    out->parts[0] = (struct part){.name = name, .text = text, .uses = 1};
    struct use *u = &out->uses[0];
    u->in = arena_array(a, struct link, task->ntensors + 1);
    u->out = arena_array(a, struct link, task->ntensors + 1);
    out->outputs = arena_array(a, str, task->ntensors + 1);
    for (size_t i = 0; i < g->nnodes; i++) {
        str leaf;
        if (!is_leaf(&g->nodes[i]) || !json_get_str(g->nodes[i].args, "name", &leaf))
            continue;
        int t = tensor_find(task, leaf);
        if (t >= 0 && tensor_is_input(&task->tensors[t]))
            u->in[u->nin++] = (struct link){.tensor = leaf, .flow = path_of(&g->nodes[i])};
    }
    for (size_t t = 0; t < task->ntensors; t++)
        if (tensor_is_output(&task->tensors[t])) {
            str y = task->tensors[t].name;
            u->out[u->nout++] = (struct link){.tensor = y, .flow = y};
            out->outputs[out->noutputs++] = y;
        }
    describe(g, a, out);
}
