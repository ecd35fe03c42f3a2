#include "import/line.h"

#include "import/ops.h"

#include <ctype.h>
#include <string.h>

enum { LINE_BYTES = 1 << 18 };

struct line {
    const struct graph *g;
    const struct task *task;
    struct arena *mem;
    bool *needed;
    struct buf text;
    bool ok;
};

static bool is_buffer(const struct node *n) {
    return str_is(n->op, "buffer");
}

/* A tensor of the task. A buffer that is none is what it was computed by. */
static bool is_leaf(const struct line *l, const struct node *n) {
    str name;
    return str_is(n->op, "in") || str_is(n->op, "param") ||
           (is_buffer(n) && json_get_str(n->args, "name", &name) &&
            tensor_find(l->task, name) >= 0);
}

/* ---- which operators there are ---- */

/* Running statistics are not updated: what is left out of the task is left out here. */
static bool is_left_out(const struct node *n, const char *argument) {
    bool training = false;
    json_get_bool(n->args, "training", &training);
    return training && !strncmp(argument, "running_", 8);
}

struct needing {
    struct line *l;
    const struct node *n;
};

static void need(void *ctx, const char *name, struct ref r) {
    struct needing *p = ctx;
    p->l->needed[r.node] = p->l->needed[r.node] || !is_left_out(p->n, name);
}

static void find_needed(struct line *l) {
    for (size_t i = 0; i < l->g->noutputs; i++)
        l->needed[l->g->outputs[i].node] = true;
    for (size_t i = l->g->nnodes; i-- > 0;)
        if (l->needed[i] && !is_leaf(l, &l->g->nodes[i]))
            graph_each_ref(l->g, &l->g->nodes[i], need, &(struct needing){l, &l->g->nodes[i]});
}

/* ---- values ---- */

static str dtype_text(str name) {
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_F64] = "torch.float64", [DTYPE_F32] = "torch.float32",
        [DTYPE_F16] = "torch.float16", [DTYPE_BF16] = "torch.bfloat16",
        [DTYPE_I8] = "torch.int8",     [DTYPE_U8] = "torch.uint8",
        [DTYPE_I32] = "torch.int32",   [DTYPE_I64] = "torch.int64",
        [DTYPE_BOOL] = "torch.bool"};
    enum dtype t;
    return dtype_find(name, &t) ? str_view(names[t]) : (str){0};
}

static bool is_dim(const struct line *l, str name) {
    for (size_t i = 0; i < l->task->ndims; i++)
        if (str_eq(l->task->dims[i].name, name))
            return true;
    return false;
}

/* An expression over dimensions of the task: "4*hidden". */
static bool is_size(const struct line *l, str text) {
    for (size_t i = 0; i < text.n;) {
        size_t n = 0;
        while (i + n < text.n && (isalnum((unsigned char)text.p[i + n]) || text.p[i + n] == '_'))
            n++;
        str word = str_cut(text, i, n);
        int64_t value;
        if (n ? !is_dim(l, word) && !str_to_i64(word, &value) : !strchr("+-*/%() ", text.p[i]))
            return false;
        i += n ? n : 1;
    }
    return text.n > 0;
}

/* A word such as 'none' in quotes. */
static bool is_plain(str text) {
    for (size_t i = 0; i < text.n; i++)
        if (!isalnum((unsigned char)text.p[i]) && !strchr("_-. ", text.p[i]))
            return false;
    return true;
}

static void put_ref(struct line *l, struct ref r) {
    const struct node *n = &l->g->nodes[r.node];
    struct ref value;
    str name;
    if (!is_leaf(l, n) && is_buffer(n) && graph_ref(l->g, json_get(n->args, "value"), &value)) {
        put_ref(l, value);
        return;
    }
    if (is_leaf(l, n) && json_get_str(n->args, "name", &name)) {
        l->ok = l->ok && tensor_find(l->task, name) >= 0;
        buf_puts(&l->text, name);
        return;
    }
    buf_printf(&l->text, n->nouts > 1 ? "_%zu[%zu]" : "_%zu", r.node, r.out);
}

static void put_text(struct line *l, const char *key, str text) {
    bool type = strstr(key, "dtype") != NULL;
    if (str_is(text, "inf") || str_is(text, "-inf") || str_is(text, "nan"))
        buf_printf(&l->text, "float('%.*s')", STR_ARG(text));
    else if (type && dtype_text(text).n)
        buf_puts(&l->text, dtype_text(text));
    else if (!type && is_size(l, text))
        buf_puts(&l->text, text);
    else if (!type && is_plain(text) && islower((unsigned char)text.p[0]) &&
             !strpbrk(arena_cstr(l->mem, text), "0123456789"))
        buf_printf(&l->text, "'%.*s'", STR_ARG(text));
    else
        l->ok = false; /* a size that is no dimension of this task, or an unknown type */
}

static void put_value(struct line *l, const char *key, const json *j) {
    struct ref r;
    str text;
    bool yes;
    int64_t whole;
    if (!j) {
        buf_puts(&l->text, S("None"));
    } else if (json_is_object(j)) {
        if (graph_ref(l->g, j, &r))
            put_ref(l, r);
        else
            l->ok = false;
    } else if (json_is_array(j)) {
        buf_putc(&l->text, '[');
        for (size_t i = 0; i < json_len(j) && l->ok; i++) {
            buf_puts(&l->text, i ? S(", ") : S(""));
            put_value(l, key, json_at(j, i));
        }
        buf_putc(&l->text, ']');
    } else if (json_to_bool(j, &yes)) {
        buf_puts(&l->text, yes ? S("True") : S("False"));
    } else if (json_to_str(j, &text)) {
        put_text(l, key, text);
    } else if (json_to_i64(j, &whole)) {
        buf_printf(&l->text, "%lld", (long long)whole);
    } else {
        json_write(j, &l->text);
    }
}

/* ---- calls ---- */

/* Where a tensor is made that follows from none. */
static str device_text(const struct line *l) {
    for (size_t i = 0; i < l->task->ntensors; i++)
        if (tensor_is_input(&l->task->tensors[i]))
            return arena_printf(l->mem, "%.*s.device", STR_ARG(l->task->tensors[i].name));
    return S("None");
}

struct call {
    struct line *l;
    const struct node *n;
    size_t count;
    bool by_name; /* arguments before `self` stand by their place, as does it */
};

static void put_argument(void *ctx, const char *key, const json *value) {
    struct call *c = ctx;
    struct line *l = c->l;
    buf_puts(&l->text, c->count++ ? S(", ") : S(""));
    if (c->by_name)
        buf_printf(&l->text, "%s=", key);
    c->by_name = c->by_name || !strcmp(key, "self");
    if (!strcmp(key, "device"))
        buf_puts(&l->text, device_text(l));
    else if (is_left_out(c->n, key))
        buf_puts(&l->text, S("None"));
    else
        put_value(l, key, value);
}

static bool has_self(const struct node *n) {
    return json_get(n->args, "self") != NULL;
}

static void put_call(struct line *l, size_t i) {
    const struct node *n = &l->g->nodes[i];
    struct call c = {.l = l, .n = n, .by_name = !has_self(n)};
    bool random = n->info && n->info->kind == OP_RANDOM;
    l->ok = l->ok && n->info && !random && !str_is(n->op, "scan") && is_plain(n->op);
    buf_printf(&l->text, "(_%zu := torch.ops.aten.%.*s(", i, STR_ARG(n->op));
    json_each(n->args, put_argument, &c);
    buf_puts(&l->text, S(")), "));
}

static bool names_clash(const struct line *l) {
    for (size_t i = 0; i < l->task->ntensors; i++)
        if (l->task->tensors[i].name.p[0] == '_')
            return true;
    for (size_t i = 0; i < l->task->ndims; i++)
        if (l->task->dims[i].name.p[0] == '_')
            return true;
    return false;
}

static void put_results(struct line *l) {
    buf_puts(&l->text, l->g->noutputs == 1 ? S("") : S("("));
    for (size_t i = 0; i < l->g->noutputs; i++) {
        buf_puts(&l->text, i ? S(", ") : S(""));
        put_ref(l, l->g->outputs[i]);
    }
    buf_puts(&l->text, l->g->noutputs == 1 ? S("") : S(")"));
}

str torch_line(const struct graph *g, const struct task *task, struct arena *a) {
    struct line l = {.g = g,
                     .task = task,
                     .mem = a,
                     .needed = arena_array(a, bool, g->nnodes + 1),
                     .ok = g->noutputs > 0};
    bool any = false;
    buf_init(&l.text, LINE_BYTES);
    find_needed(&l);
    buf_putc(&l.text, '(');
    for (size_t i = 0; i < g->nnodes && l.ok; i++)
        if (l.needed[i] && !is_leaf(&l, &g->nodes[i]) && !is_buffer(&g->nodes[i])) {
            put_call(&l, i);
            any = true;
        }
    if (l.ok)
        put_results(&l);
    buf_puts(&l.text, any ? S(")[-1]") : S(")"));
    l.ok = l.ok && !l.text.failed && !names_clash(&l);
    str made = l.ok ? arena_str(a, buf_str(&l.text)) : (str){0};
    buf_release(&l.text);
    return made;
}
