#include "import/chain.h"

void chain_release(struct chain *c) {
    mem_free(c->parts);
    mem_free(c->uses);
    c->parts = NULL;
    c->uses = NULL;
}

static void put_pair(struct buf *b, const char *key, str value) {
    buf_printf(b, "\"%s\": ", key);
    json_write_text(value, b);
}

/* A name, or an object where there is more to say. */
static void put_link(struct buf *b, const struct link *l) {
    json_write_text(l->tensor, b);
    buf_puts(b, S(": "));
    if (!l->picked && !l->each && !l->state && !l->last.n) {
        json_write_text(l->flow, b);
        return;
    }
    const char *between = "{";
    if (l->flow.n) {
        buf_puts(b, str_view(between));
        put_pair(b, l->each ? "each" : l->state ? "first" : "tensor", l->flow);
        between = ", ";
    } else if (l->state) {
        buf_puts(b, S("{\"first\": null"));
        between = ", ";
    }
    if (l->picked)
        buf_printf(b, ", \"axis\": %zu, \"index\": %lld", l->axis, (long long)l->index);
    if (l->next.n) {
        buf_puts(b, str_view(between));
        put_pair(b, "next", l->next);
        between = ", ";
    }
    if (l->last.n) {
        buf_puts(b, str_view(between));
        put_pair(b, "last", l->last);
    }
    buf_putc(b, '}');
}

static void put_links(struct buf *b, const char *key, const struct link *links, size_t n) {
    buf_printf(b, ", \"%s\": {", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? S(", ") : S(""));
        put_link(b, &links[i]);
    }
    buf_putc(b, '}');
}

static void put_use(struct buf *b, const struct chain *c, const struct use *u) {
    buf_puts(b, S("    {"));
    put_pair(b, "task", c->parts[u->part].name);
    buf_puts(b, S(", "));
    put_pair(b, "module", u->module);
    if (u->repeats) {
        buf_puts(b, S(", \"repeat\": {"));
        put_pair(b, "over", u->over);
        buf_printf(b, ", \"axis\": %zu, \"reverse\": %s}", u->axis, u->reverse ? "true" : "false");
    }
    put_links(b, "in", u->in, u->nin);
    put_links(b, "out", u->out, u->nout);
    buf_putc(b, '}');
}

static void put_leaves(struct buf *b, const struct chain *c, const char *key, bool inputs) {
    bool any = false;
    buf_printf(b, "  \"%s\": [", key);
    for (size_t i = 0; i < c->nleaves; i++) {
        const struct leaf *l = &c->leaves[i];
        if (l->is_input != inputs)
            continue;
        buf_puts(b, any ? S(",\n    {") : S("\n    {"));
        put_pair(b, "name", l->path);
        buf_puts(b, S(", "));
        put_pair(b, "shape", l->shape);
        buf_puts(b, S(", "));
        put_pair(b, "dtype", l->dtype);
        buf_puts(b, l->is_buffer ? S(", \"buffer\": true}") : S("}"));
        any = true;
    }
    buf_puts(b, S("],\n"));
}

static void put_dims(struct buf *b, const struct chain *c) {
    buf_puts(b, S("  \"dims\": ["));
    for (size_t i = 0; i < c->graph->ndims; i++) {
        const struct dimension *d = &c->graph->dims[i];
        buf_puts(b, i ? S(",\n    {") : S("\n    {"));
        put_pair(b, "name", d->name);
        buf_printf(b, ", \"value\": %lld", (long long)d->value);
        if (d->is.n) {
            buf_puts(b, S(", "));
            put_pair(b, "is", d->is);
        }
        buf_putc(b, '}');
    }
    buf_puts(b, S("],\n"));
}

/* What the module does in training and the tasks do not. */
static void put_left_out(struct buf *b, const struct chain *c) {
    buf_puts(b, S("  \"left_out\": ["));
    size_t n = json_len(c->graph->dropout);
    for (size_t i = 0; i < n; i++) {
        str name = {0};
        json_to_str(json_at(c->graph->dropout, i), &name);
        buf_printf(b, "%s\"dropout of %.*s\"", i ? ", " : "", STR_ARG(name));
    }
    if (json_len(c->graph->updates))
        buf_printf(b, "%s\"the update of running statistics\"", n ? ", " : "");
    buf_puts(b, S("],\n"));
}

void chain_write(const struct chain *c, struct buf *out) {
    buf_puts(out, S("{\n  "));
    put_pair(out, "module", c->name);
    buf_puts(out, S(",\n  "));
    put_pair(out, "title", c->title);
    buf_puts(out, S(",\n"));
    put_left_out(out, c);
    put_dims(out, c);
    put_leaves(out, c, "inputs", true);
    put_leaves(out, c, "parameters", false);
    buf_puts(out, S("  \"steps\": ["));
    for (size_t i = 0; i < c->nuses; i++) {
        buf_puts(out, i ? S(",\n") : S("\n"));
        put_use(out, c, &c->uses[i]);
    }
    buf_puts(out, S("],\n  \"outputs\": ["));
    for (size_t i = 0; i < c->noutputs; i++) {
        buf_puts(out, i ? S(", ") : S(""));
        json_write_text(c->outputs[i], out);
    }
    buf_puts(out, S("]\n}\n"));
}
