#include "export/order.h"

#include "base/file.h"
#include "base/json.h"

#include <string.h>

enum { ORDER_BYTES = 64 << 20, USES_MOST = 1 << 14 };

bool order_exists(const char *folder) {
    struct arena *a = arena_new(1 << 20);
    bool is = file_exists(arena_printf(a, "%s/" ORDER_FILE, folder).p);
    arena_free(a);
    return is;
}

/* ---- what is known by name ---- */

static size_t index_of(const struct order *o, str task) {
    size_t i = 0;
    while (i < o->ntasks && !str_eq(o->tasks[i].name, task))
        i++;
    return i;
}

const struct order_task *order_find(const struct order *o, str task) {
    size_t i = index_of(o, task);
    return i < o->ntasks ? &o->tasks[i] : NULL;
}

const struct order_dim *order_dim(const struct order *o, str name) {
    for (size_t i = 0; i < o->ndims; i++)
        if (str_eq(o->dims[i].name, name))
            return &o->dims[i];
    return NULL;
}

const struct order_leaf *order_leaf(const struct order *o, str name) {
    for (size_t i = 0; i < o->nleaves; i++)
        if (str_eq(o->leaves[i].name, name))
            return &o->leaves[i];
    return NULL;
}

struct reading {
    struct order *o;
    struct arena *mem;
    struct err *err;
    str *flows; /* that are there so far */
    size_t nflows, flows_cap;
};

static bool is_there(const struct reading *r, str flow) {
    for (size_t i = 0; i < r->nflows; i++)
        if (str_eq(r->flows[i], flow))
            return true;
    return false;
}

static bool add_flow(struct reading *r, str flow) {
    if (is_there(r, flow))
        return err_set(r->err, ERR_INPUT, "%.*s is there twice", STR_ARG(flow));
    r->flows = mem_grow(r->flows, &r->flows_cap, r->nflows + 1, sizeof *r->flows);
    r->flows[r->nflows++] = flow;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Something that can be part of the name of a file and of a function. */
static bool is_name(str s) {
    bool ok = s.n > 0 && s.n < 200;
    for (size_t i = 0; i < s.n; i++)
        ok = ok && (is_letter(s.p[i]) || (s.p[i] >= '0' && s.p[i] <= '9'));
    return ok;
}

static bool text_of(const struct reading *r, const json *j, const char *key, str *out) {
    str value;
    if (!json_get_str(j, key, &value))
        return false;
    *out = arena_str(r->mem, value);
    return true;
}

/* ---- dimensions and what the module is given ---- */

static bool read_dims(struct reading *r, const json *list) {
    struct order *o = r->o;
    o->dims = arena_array(r->mem, struct order_dim, json_len(list) + 1);
    for (size_t i = 0; i < json_len(list); i++) {
        const json *j = json_at(list, i);
        struct order_dim *d = &o->dims[o->ndims];
        if (!text_of(r, j, "name", &d->name) || !is_name(d->name) || !is_letter(d->name.p[0]) ||
            !json_get_i64(j, "value", &d->value) || d->value < 1)
            return err_set(r->err, ERR_INPUT, "dimension %zu has no name or no value", i);
        text_of(r, j, "is", &d->is);
        o->ndims++;
    }
    return true;
}

/* "[batch,3,height]" */
static bool read_shape(struct reading *r, str shape, struct order_leaf *l) {
    str word, rest = str_cut(shape, 1, shape.n - 2);
    if (shape.n < 2 || shape.p[0] != '[' || shape.p[shape.n - 1] != ']')
        return false;
    while (rest.n && str_word(&rest, ',', &word)) {
        if (l->rank == ORDER_MAX_RANK || !str_trim(word).n)
            return false;
        l->extent[l->rank++] = arena_str(r->mem, str_trim(word));
    }
    return true;
}

static bool read_leaves(struct reading *r, const json *list, bool parameters) {
    struct order *o = r->o;
    for (size_t i = 0; i < json_len(list); i++) {
        struct order_leaf *l = &o->leaves[o->nleaves];
        str shape = {0};
        *l = (struct order_leaf){.parameter = parameters};
        if (!text_of(r, json_at(list, i), "name", &l->name) || !l->name.n ||
            !text_of(r, json_at(list, i), "dtype", &l->dtype) ||
            !json_get_str(json_at(list, i), "shape", &shape) || !read_shape(r, shape, l))
            return err_set(r->err, ERR_INPUT, "%s %zu has no name, no type or no shape",
                           parameters ? "parameter" : "input", i);
        json_get_bool(json_at(list, i), "buffer", &l->buffer);
        if (!add_flow(r, l->name))
            return false;
        o->nleaves++;
        o->ninputs += !parameters;
    }
    return true;
}

/* ---- uses ---- */

struct links {
    struct reading *r;
    const struct order_use *u;
    struct order_link *at;
    size_t n;
    bool results, ok;
};

static bool link_fails(struct links *l, str tensor) {
    if (l->ok)
        err_set(l->r->err, ERR_INPUT, "what %.*s of %.*s is connected with is not known",
                STR_ARG(tensor), STR_ARG(l->r->o->tasks[l->u->task].name));
    return l->ok = false;
}

/* {"tensor", "axis", "index"}, {"each"}, {"first", "next"}, {"last"} */
static bool read_link(struct links *l, const json *j, struct order_link *out) {
    const struct reading *r = l->r;
    int64_t axis;
    out->each = text_of(r, j, "each", &out->flow);
    out->state = !out->each && json_get(j, "next");
    if (out->state && (!text_of(r, j, "next", &out->next) || l->results))
        return false;
    if (out->state)
        text_of(r, j, "first", &out->flow);
    text_of(r, j, "last", &out->last);
    bool whole = !out->each && !out->state && text_of(r, j, "tensor", &out->flow);
    if (json_get_i64(j, "index", &out->index)) {
        out->picked = json_get_i64(j, "axis", &axis) && axis >= 0 && axis < ORDER_MAX_RANK;
        out->axis = out->picked ? (size_t)axis : 0;
        if (!out->picked || out->each || l->results)
            return false;
    }
    bool repeating = out->each || out->state || out->last.n;
    return (!repeating || l->u->repeats) && (!out->last.n || l->results) &&
           (repeating || whole || out->last.n);
}

static void add_link(void *ctx, const char *key, const json *value) {
    struct links *l = ctx;
    struct reading *r = l->r;
    str tensor = arena_str(r->mem, str_view(key)), flow;
    struct order_link *out = &l->at[l->n++];
    *out = (struct order_link){.tensor = tensor};
    if (!l->ok)
        return;
    if (json_to_str(value, &flow)) {
        bool last = l->results && l->u->repeats; /* of all steps the last one's stays */
        *(last ? &out->last : &out->flow) = arena_str(r->mem, flow);
        if (!l->results && !flow.n)
            link_fails(l, tensor);
    } else if (!json_is_object(value) || !read_link(l, value, out)) {
        link_fails(l, tensor);
    }
    if (l->ok && !l->results && out->flow.n && !is_there(r, out->flow))
        l->ok = err_set(r->err, ERR_INPUT, "%.*s reads %.*s before it is there",
                        STR_ARG(r->o->tasks[l->u->task].name), STR_ARG(out->flow));
    if (l->ok && l->results && out->flow.n)
        l->ok = add_flow(r, out->flow);
    if (l->ok && l->results && out->last.n)
        l->ok = add_flow(r, out->last);
}

static bool read_links(struct reading *r, const json *j, bool results, struct order_use *u) {
    struct links l = {.r = r,
                      .u = u,
                      .at = arena_array(r->mem, struct order_link, json_len(j) + 1),
                      .results = results,
                      .ok = true};
    if (json_is_object(j))
        json_each(j, add_link, &l);
    *(results ? &u->out : &u->in) = l.at;
    *(results ? &u->nout : &u->nin) = l.n;
    return l.ok;
}

/* A state is carried from a result of the same use. */
static bool check_states(const struct reading *r, const struct order_use *u) {
    for (size_t i = 0; i < u->nin; i++) {
        bool known = !u->in[i].state;
        for (size_t k = 0; k < u->nout && !known; k++)
            known = str_eq(u->out[k].tensor, u->in[i].next);
        if (!known)
            return err_set(r->err, ERR_INPUT, "%.*s carries %.*s, which it does not give",
                           STR_ARG(r->o->tasks[u->task].name), STR_ARG(u->in[i].next));
    }
    return true;
}

/* How often it is run at the module's own sizes: a number, or a dimension. */
static bool length_of(const struct order *o, str over, double *out) {
    int64_t n;
    const struct order_dim *d = order_dim(o, over);
    if (d || str_to_i64(over, &n))
        *out = d ? (double)d->value : (double)n;
    return *out > 0;
}

static bool read_repeat(struct reading *r, const json *repeat, struct order_use *u, double *runs) {
    int64_t axis = 0;
    *runs = 0;
    if (!text_of(r, repeat, "over", &u->over) || !length_of(r->o, u->over, runs))
        return err_set(r->err, ERR_INPUT, "how often %.*s repeats is not known",
                       STR_ARG(r->o->tasks[u->task].name));
    json_get_i64(repeat, "axis", &axis);
    json_get_bool(repeat, "reverse", &u->reverse);
    if (axis < 0 || axis >= ORDER_MAX_RANK)
        return err_set(r->err, ERR_INPUT, "no tensor has a dimension %lld", (long long)axis);
    u->axis = (size_t)axis;
    u->repeats = true;
    return true;
}

static bool add_step(struct reading *r, const json *j) {
    struct order *o = r->o;
    struct order_use *u = &o->uses[o->nuses++];
    str task;
    double runs = 1;
    const json *repeat = json_get(j, "repeat");
    if (!json_get_str(j, "task", &task) || !is_name(task))
        return err_set(r->err, ERR_INPUT, "a step without a task");
    u->task = index_of(o, task);
    struct order_task *t = &o->tasks[u->task];
    if (!t->uses) {
        t->name = arena_str(r->mem, task);
        o->ntasks++;
    }
    text_of(r, j, "module", &u->module);
    if (repeat && !read_repeat(r, repeat, u, &runs))
        return false;
    t->uses++;
    t->runs += runs;
    o->runs += runs;
    return read_links(r, json_get(j, "in"), false, u) &&
           read_links(r, json_get(j, "out"), true, u) && check_states(r, u);
}

/* ---- the whole ---- */

static bool read_outputs(struct reading *r, const json *list) {
    struct order *o = r->o;
    o->outputs = arena_array(r->mem, str, json_len(list) + 1);
    for (size_t i = 0; i < json_len(list); i++) {
        str name;
        if (!json_to_str(json_at(list, i), &name) || !is_there(r, name))
            return err_set(r->err, ERR_INPUT, "nothing gives result %zu", i);
        o->outputs[o->noutputs++] = arena_str(r->mem, name);
    }
    return true;
}

static void read_left_out(struct reading *r, const json *list) {
    struct order *o = r->o;
    o->left_out = arena_array(r->mem, str, json_len(list) + 1);
    for (size_t i = 0; i < json_len(list); i++)
        if (json_to_str(json_at(list, i), &o->left_out[o->nleft_out])) {
            o->left_out[o->nleft_out] = arena_str(r->mem, o->left_out[o->nleft_out]);
            o->nleft_out++;
        }
}

static bool read_all(struct reading *r, const json *j) {
    struct order *o = r->o;
    const json *steps = json_get(j, "steps"), *inputs = json_get(j, "inputs"),
               *parameters = json_get(j, "parameters");
    if (!text_of(r, j, "module", &o->module) || !json_len(steps) || json_len(steps) > USES_MOST)
        return err_set(r->err, ERR_INPUT, "no order of tasks; cutepilot import writes one");
    if (!text_of(r, j, "title", &o->title))
        o->title = o->module;
    read_left_out(r, json_get(j, "left_out"));
    o->leaves = arena_array(r->mem, struct order_leaf, json_len(inputs) + json_len(parameters) + 1);
    o->tasks = arena_array(r->mem, struct order_task, json_len(steps) + 1);
    o->uses = arena_array(r->mem, struct order_use, json_len(steps) + 1);
    bool ok = read_dims(r, json_get(j, "dims")) && read_leaves(r, inputs, false) &&
              read_leaves(r, parameters, true);
    for (size_t i = 0; i < json_len(steps) && ok; i++)
        ok = add_step(r, json_at(steps, i));
    return ok && read_outputs(r, json_get(j, "outputs"));
}

bool order_read(const char *folder, struct arena *a, struct order *out, struct err *err) {
    const char *path = arena_printf(a, "%s/" ORDER_FILE, folder).p;
    struct reading r = {.o = out, .mem = a, .err = err};
    memset(out, 0, sizeof *out);
    if (!file_read(path, ORDER_BYTES, a, &out->text, err))
        return false;
    json *j = json_parse(out->text, err);
    bool ok = j && read_all(&r, j);
    json_free(j);
    mem_free(r.flows);
    return ok || err_wrap(err, "%s", path);
}
