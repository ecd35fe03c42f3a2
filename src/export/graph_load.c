/* A folder of runs, one for each task of an imported module, becomes what is exported: every run is
 * held against the module that `suite` kept beside it, and the tensors of the tasks against each
 * other, so that what is written later fits together. */
#include "base/file.h"
#include "export/export_private.h"
#include "export/graph.h"
#include "export/run.h"

#include <ctype.h>
#include <string.h>

/* ---- what is known by name ---- */

const struct export_flow *graph_flow(const struct export_graph *g, str name) {
    for (size_t i = 0; i < g->nflows; i++)
        if (str_eq(g->flows[i].name, name))
            return &g->flows[i];
    return NULL;
}

const struct export_part *graph_part(const struct export_graph *g, const struct order_use *u) {
    return &g->parts[u->task];
}

const struct tensor *graph_tensor(const struct export_graph *g, const struct order_use *u,
                                  str name) {
    const struct task *t = graph_part(g, u)->task;
    int i = tensor_find(t, name);
    return i < 0 ? NULL : &t->tensors[i];
}

const struct order_link *graph_link(const struct order_link *links, size_t n, str tensor) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(links[i].tensor, tensor))
            return &links[i];
    return NULL;
}

/* ---- runs ---- */

struct loading {
    struct export_graph *g;
    const struct nvrtc_root *nvrtc;
    const char *cache, *folder;
    bool sampled;
    struct arena *mem;
    struct err *err;
};

bool export_is_graph(const char *folder) {
    return order_exists(folder);
}

/* The run must be of the task that `suite` was given. */
static bool check_task(const struct loading *l, const struct export_part *part,
                       const struct export_kernel *k) {
    const char *kept = arena_printf(l->mem, "%s/%.*s.task", l->folder, STR_ARG(part->name)).p;
    str text;
    if (!file_exists(kept))
        return err_set(l->err, ERR_INPUT,
                       "%s has no %.*s.task: the folder is not whole\nhint: the same 'cutepilot "
                       "suite' again writes it",
                       l->folder, STR_ARG(part->name));
    if (!file_read(kept, TASK_MAX_BYTES, l->mem, &text, l->err))
        return false;
    return str_eq(text, k->task->text) ||
           err_set(l->err, ERR_INPUT, "%s: the run is of another task than %s", k->run, kept);
}

static bool has_kernel(const char *run, struct arena *a) {
    return file_exists(arena_printf(a, "%s/kernel.cu", run).p) ||
           file_exists(arena_printf(a, "%s/outcome.json", run).p);
}

static bool add_run(const struct loading *l, struct export_part *part) {
    const char *run = arena_printf(l->mem, "%s/%.*s", l->folder, STR_ARG(part->name)).p;
    struct export_kernel k;
    if (!file_exists(run))
        return err_set(l->err, ERR_INPUT,
                       "%s: its task %.*s has no run\nhint: the same 'cutepilot suite' again goes "
                       "on where it stopped",
                       l->folder, STR_ARG(part->name));
    if (!export_run_task(run, l->mem, &k, l->err) || !check_task(l, part, &k))
        return false;
    if (part->task && !export_same_operation(part->task, k.task, l->err))
        return false;
    if (!part->task) {
        part->task = k.task;
        part->inst = k.inst;
    }
    if (!has_kernel(run, l->mem))
        return true;
    struct export_kernel *to = &part->kernels[part->n];
    if (!export_run_load(run, NULL, l->sampled, l->nvrtc, l->cache, l->mem, to, l->err))
        return false;
    to->label = arena_printf(l->mem, "%.*s_%zu", STR_ARG(part->name), part->n);
    part->n++;
    return true;
}

/* ---- the order and its tasks ---- */

static bool part_fails(const struct loading *l, const struct export_part *p, str tensor,
                       const char *why) {
    return err_set(l->err, ERR_INPUT, "%s: %.*s of %.*s %s", l->folder, STR_ARG(tensor),
                   STR_ARG(p->name), why);
}

/* As a whole, by whoever calls the module: only such can be prepared once. */
static bool is_given(const struct loading *l, const struct order_link *link) {
    return order_leaf(&l->g->order, link->flow) && !link->each && !link->picked && !link->state;
}

/* Every tensor of the task is connected, and nothing else is. */
static bool check_use(const struct loading *l, const struct order_use *u) {
    const struct export_part *p = graph_part(l->g, u);
    size_t in = 0, out = 0;
    for (size_t i = 0; i < p->task->ntensors; i++) {
        const struct tensor *t = &p->task->tensors[i];
        if (t->role == TENSOR_INOUT)
            return part_fails(l, p, t->name, "is written in place, which no module's task does");
        if (tensor_is_input(t) && !graph_link(u->in, u->nin, t->name))
            return part_fails(l, p, t->name, "is connected with nothing in " ORDER_FILE);
        if (t->role == TENSOR_OUT && !graph_link(u->out, u->nout, t->name))
            return part_fails(l, p, t->name, "is connected with nothing in " ORDER_FILE);
        if (t->role == TENSOR_PARAM && !is_given(l, graph_link(u->in, u->nin, t->name)))
            return part_fails(l, p, t->name, "is a parameter of the task and not of the module");
        in += tensor_is_input(t);
        out += t->role == TENSOR_OUT;
    }
    return (in == u->nin && out == u->nout) ||
           part_fails(l, p, S("a use"), "names tensors in " ORDER_FILE " that it does not have");
}

static bool check_dims(const struct loading *l, const struct export_part *p) {
    for (size_t i = 0; i < p->task->ndims; i++)
        if (!order_dim(&l->g->order, p->task->dims[i].name))
            return part_fails(l, p, p->task->dims[i].name, "is no dimension in " ORDER_FILE);
    return true;
}

/* ---- what flows ---- */

static bool id_taken(const struct export_graph *g, str id) {
    for (size_t i = 0; i < g->nflows; i++)
        if (str_eq(g->flows[i].id, id))
            return true;
    return false;
}

/* "layer1.0.conv1.weight" as layer1_0_conv1_weight. */
static str flow_id(const struct loading *l, str name) {
    char *s = arena_cstr(l->mem, name);
    for (char *p = s; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')))
            *p = '_';
    str base = s[0] >= '0' && s[0] <= '9' ? arena_printf(l->mem, "t_%s", s) : str_view(s),
        id = base;
    if (!export_name_ok(id)) /* a word of C or Python */
        base = id = arena_printf(l->mem, "%.*s_", STR_ARG(base));
    for (unsigned k = 2; id_taken(l->g, id); k++)
        id = arena_printf(l->mem, "%.*s_%u", STR_ARG(base), k);
    return id;
}

static struct export_flow *add_flow(const struct loading *l, str name) {
    struct export_graph *g = l->g;
    str id = flow_id(l, name);
    struct export_flow *f = &g->flows[g->nflows++];
    *f = (struct export_flow){.name = name, .id = id};
    return f;
}

/* Whether a size is an expression over the module's dimensions. */
static bool is_size(const struct loading *l, str text) {
    for (size_t i = 0, n; i < text.n; i += n ? n : 1) {
        int64_t value;
        for (n = 0;
             i + n < text.n && (isalnum((unsigned char)text.p[i + n]) || text.p[i + n] == '_');)
            n++;
        str word = str_cut(text, i, n);
        if (n && !str_to_i64(word, &value) && !order_dim(&l->g->order, word))
            return false;
    }
    return size_text(text, EXPORT_C, l->mem).n > 0;
}

static bool check_sizes(const struct loading *l) {
    const struct order *o = &l->g->order;
    for (size_t i = 0; i < o->ndims; i++)
        if (o->dims[i].is.n && !is_size(l, o->dims[i].is))
            return err_set(l->err, ERR_INPUT,
                           "%s: dimension %.*s is no expression that can be exported", l->folder,
                           STR_ARG(o->dims[i].name));
    for (size_t i = 0; i < o->nleaves; i++)
        for (size_t k = 0; k < o->leaves[i].rank; k++)
            if (!is_size(l, o->leaves[i].extent[k]))
                return err_set(l->err, ERR_INPUT,
                               "%s: the shape of %.*s is no expression over the dimensions",
                               l->folder, STR_ARG(o->leaves[i].name));
    return true;
}

static bool add_leaf(const struct loading *l, const struct order_leaf *leaf) {
    struct export_flow *f = add_flow(l, leaf->name);
    f->leaf = leaf;
    f->rank = leaf->rank;
    return dtype_find(leaf->dtype, &f->dtype) ||
           err_set(l->err, ERR_INPUT, "%s: %.*s has no known type", l->folder, STR_ARG(leaf->name));
}

static void add_result(const struct loading *l, size_t use, const struct order_link *link, str name,
                       bool is_sequence) {
    const struct order_use *u = &l->g->order.uses[use];
    struct export_flow *f = add_flow(l, name);
    f->tensor = graph_tensor(l->g, u, link->tensor);
    f->dtype = f->tensor->dtype;
    f->is_sequence = is_sequence;
    f->rank = f->tensor->rank + is_sequence;
    f->made = f->used = use;
}

/* A tensor that a use reads, against what it is connected with. */
static bool check_read(const struct loading *l, size_t use, const struct order_link *link) {
    const struct order_use *u = &l->g->order.uses[use];
    const struct tensor *t = graph_tensor(l->g, u, link->tensor);
    struct export_flow *f = (struct export_flow *)graph_flow(l->g, link->flow);
    bool slice = link->each || link->picked;
    if (link->state) {
        const struct tensor *next = graph_tensor(l->g, u, link->next);
        if (next->dtype != t->dtype || next->rank != t->rank)
            return part_fails(l, graph_part(l->g, u), t->name,
                              "is carried as another type or another number of dimensions");
    }
    if (!f)
        return true;
    f->used = use;
    if (f->dtype != t->dtype || f->rank != t->rank + slice)
        return part_fails(l, graph_part(l->g, u), t->name,
                          "has another type or another number of dimensions than what it reads");
    return !slice || (link->each ? u->axis : link->axis) < f->rank ||
           part_fails(l, graph_part(l->g, u), t->name,
                      "is a slice of a dimension that is not there");
}

static bool find_flows(const struct loading *l) {
    struct export_graph *g = l->g;
    size_t most = g->order.nleaves;
    bool ok = true;
    for (size_t i = 0; i < g->order.nuses; i++)
        most += 2 * g->order.uses[i].nout;
    g->flows = arena_array(l->mem, struct export_flow, most + 1);
    for (size_t i = 0; i < g->order.nleaves && ok; i++)
        ok = add_leaf(l, &g->order.leaves[i]);
    for (size_t i = 0; i < g->order.nuses && ok; i++) {
        const struct order_use *u = &g->order.uses[i];
        for (size_t k = 0; k < u->nin && ok; k++)
            ok = check_read(l, i, &u->in[k]);
        for (size_t k = 0; k < u->nout && ok; k++) {
            const struct order_link *out = &u->out[k];
            ok = !out->each || u->axis <= graph_tensor(g, u, out->tensor)->rank ||
                 part_fails(l, graph_part(g, u), out->tensor,
                            "is a slice of a dimension that is not there");
            if (out->flow.n)
                add_result(l, i, out, out->flow, out->each);
            if (out->last.n)
                add_result(l, i, out, out->last, false);
        }
        if (ok && u->repeats) {
            bool counted = false;
            for (size_t k = 0; k < u->nin; k++)
                counted |= u->in[k].each;
            ok = counted || part_fails(l, graph_part(g, u), S("a use"), "repeats over no sequence");
        }
    }
    for (size_t i = 0; i < g->order.noutputs && ok; i++)
        ((struct export_flow *)graph_flow(g, g->order.outputs[i]))->is_output = true;
    return ok;
}

/* ---- the whole ---- */

/* The orders of several folders may differ in the values of dimensions. */
static bool same_order(const struct export_graph *g, const char *folder, struct arena *a,
                       struct err *err) {
    struct order other;
    if (!order_read(folder, a, &other, err))
        return false;
    bool same = str_eq(other.module, g->order.module) && other.ntasks == g->order.ntasks &&
                other.nuses == g->order.nuses && other.nleaves == g->order.nleaves;
    for (size_t i = 0; i < other.nuses && same; i++)
        same = other.uses[i].task == g->order.uses[i].task;
    for (size_t i = 0; i < other.ntasks && same; i++)
        same = str_eq(other.tasks[i].name, g->order.tasks[i].name);
    for (size_t i = 0; i < other.nleaves && same; i++)
        same = str_eq(other.leaves[i].name, g->order.leaves[i].name) &&
               str_eq(other.leaves[i].dtype, g->order.leaves[i].dtype);
    return same || err_set(err, ERR_INPUT, "%s is of another module than the first folder", folder);
}

/* The parts of one operation are of one type each: the order says which. */
static bool same_types(const struct export_part *p, struct err *err) {
    for (size_t i = 0; i < p->n; i++)
        for (size_t t = 0; t < p->task->ntensors; t++)
            if (p->kernels[i].task->tensors[t].dtype != p->task->tensors[t].dtype)
                return err_set(err, ERR_INPUT,
                               "%s: the kernel is for other types than that of the first folder; "
                               "modules of several types are exported one by one",
                               p->kernels[i].run);
    return true;
}

bool export_graph_load(char *const *folders, size_t n, bool sampled, const struct nvrtc_root *nvrtc,
                       const char *cache, struct arena *a, struct export_graph *out,
                       struct err *err) {
    struct loading l = {
        .g = out, .nvrtc = nvrtc, .cache = cache, .sampled = sampled, .mem = a, .err = err};
    bool ok = true;
    memset(out, 0, sizeof *out);
    if (!order_read(folders[0], a, &out->order, err))
        return false;
    out->parts = arena_array(a, struct export_part, out->order.ntasks + 1);
    for (size_t i = 0; i < out->order.ntasks; i++) {
        out->parts[i].name = out->order.tasks[i].name;
        out->parts[i].kernels = arena_array(a, struct export_kernel, n);
    }
    for (size_t f = 0; f < n && ok; f++) {
        l.folder = folders[f];
        ok = f == 0 || same_order(out, folders[f], a, err);
        for (size_t i = 0; i < out->order.ntasks && ok; i++)
            ok = add_run(&l, &out->parts[i]);
    }
    l.folder = folders[0];
    for (size_t i = 0; i < out->order.ntasks && ok; i++) {
        ok = check_dims(&l, &out->parts[i]) && same_types(&out->parts[i], err);
        out->without += out->parts[i].n == 0;
    }
    for (size_t i = 0; i < out->order.nuses && ok; i++)
        ok = check_use(&l, &out->order.uses[i]);
    return ok && check_sizes(&l) && find_flows(&l);
}

void export_graph_kernels(const struct export_graph *g, struct arena *a, struct export_package *p) {
    size_t n = 0;
    for (size_t i = 0; i < g->order.ntasks; i++)
        n += g->parts[i].n;
    p->kernels = arena_array(a, struct export_kernel, n + 1);
    p->n = 0;
    for (size_t i = 0; i < g->order.ntasks; i++)
        for (size_t k = 0; k < g->parts[i].n; k++)
            p->kernels[p->n++] = g->parts[i].kernels[k];
    p->graph = g;
}
