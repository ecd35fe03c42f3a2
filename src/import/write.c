#include "import/write.h"

#include "import/dist.h"
#include "import/plan.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    COLUMNS = 100,
    DEPTH = 160,           /* of operators inside one another */
    MOST_READS = 200000,   /* of operators in a task */
    TASK_TEXT = 512 << 10, /* of the statements */
    /* An operator reads its places from one of them on, as many as a tensor has dimensions. */
    PLACES = 2 * TASK_MAX_RANK + 2,
};

/* A statement being written: its variables, and whether what they index tells their ranges. */
struct scope {
    struct scope *outer;
    struct variable {
        str name, extent;
        enum { NOT_SEEN, SEEN, SEEN_OTHERWISE } state;
    } vars[TASK_MAX_VARS];
    size_t n;
};

struct made { /* a let beside a node's own */
    const struct node *node;
    const char *tag;
    str name;
    size_t rank;
    str extents[TASK_MAX_RANK];
};

struct writer {
    struct arena *arena;
    struct graph *g;
    const char *file; /* the user's, for messages */
    struct err *err;
    struct scope *scope;
    struct buf body;                  /* statements so far */
    str *names;                       /* that are taken, for good */
    size_t nnames, nwords, names_cap; /* the first are words of the language */
    struct made *made;
    size_t nmade, made_cap;
    str module; /* of the last comment */
    int depth;
    size_t reads;    /* of operators, so far */
    bool definition; /* of an input: there are no lets */
};

struct arena *writer_arena(struct writer *w) {
    return w->arena;
}

const struct graph *writer_graph(const struct writer *w) {
    return w->g;
}

struct ex cannot(struct writer *w, const struct node *n, const char *fmt, ...) {
    char what[256], at[512] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (!w->err->kind) {
        if (n->line)
            snprintf(at, sizeof at, "%s:%lld: ", w->file, (long long)n->line);
        err_set(w->err, ERR_NO, "%s%.*s: %s cannot be expressed as a task%s%.*s%s", at,
                STR_ARG(n->op), what, n->module.n ? " (in " : "", STR_ARG(n->module),
                n->module.n ? ")" : "");
    }
    return ex_of(S("0"));
}

/* ---- names ---- */

static bool is_taken(const struct writer *w, str name) {
    for (size_t i = 0; i < w->nnames; i++)
        if (str_eq(w->names[i], name))
            return true;
    return false;
}

static str take_name(struct writer *w, str name) {
    w->names = mem_grow(w->names, &w->names_cap, w->nnames + 1, sizeof *w->names);
    return w->names[w->nnames++] = name;
}

static bool is_word(const struct writer *w, str name) {
    for (size_t i = 0; i < w->nwords; i++)
        if (str_eq(w->names[i], name))
            return true;
    return false;
}

static bool in_scope(const struct writer *w, str name) {
    for (size_t i = 0; w->scope && i < w->scope->n; i++)
        if (str_eq(w->scope->vars[i].name, name))
            return true;
    return false;
}

static const char *const words[] = {
    "task",    "dim",       "in",    "param",    "inout",    "rand",   "out",     "let",
    "assume",  "check",     "torch", "accuracy", "inf",      "if",     "pad",     "sum",
    "prod",    "max",       "min",   "mean",     "argmax",   "argmin", "uniform", "normal",
    "randint", "bernoulli", "ones",  "zeros",    "symmetric"};

bool write_is_word(str name) {
    enum function f;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(name, words[i]))
            return true;
    return function_find(name, &f);
}

static void take_words(struct writer *w) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        take_name(w, str_view(words[i]));
    for (int f = 0; f < FUNCTION_COUNT; f++)
        take_name(w, str_view(function_info((enum function)f)->name));
    w->nwords = w->nnames;
}

/* Letters, digits and _ of a text. */
static str as_name(struct writer *w, str text) {
    struct buf b;
    buf_init(&b, 256);
    for (size_t i = 0; i < text.n && b.n < 40; i++)
        buf_putc(&b, isalnum((unsigned char)text.p[i]) && (unsigned char)text.p[i] < 128 ? text.p[i]
                                                                                         : '_');
    str name = arena_str(w->arena, buf_str(&b));
    buf_release(&b);
    while (name.n && name.p[0] == '_')
        name = str_from(name, 1);
    if (!name.n || isdigit((unsigned char)name.p[0]))
        name = arena_printf(w->arena, "part%.*s", STR_ARG(name));
    return name;
}

/* What an operator's result is called where its module has no name. */
static str op_title(str op) {
    static const char *const titles[][2] = {{"mm", "matmul"},
                                            {"bmm", "matmul"},
                                            {"addmm", "linear"},
                                            {"baddbmm", "matmul"},
                                            {"convolution", "conv"},
                                            {"native_batch_norm", "batch_norm"},
                                            {"native_layer_norm", "layer_norm"},
                                            {"native_group_norm", "group_norm"},
                                            {"max_pool2d_with_indices", "max_pool"},
                                            {"max_pool3d_with_indices", "max_pool"},
                                            {"linalg_vector_norm", "norm"},
                                            {"_to_copy", "cast"},
                                            {"_adaptive_avg_pool2d", "avg_pool"},
                                            {"_adaptive_avg_pool3d", "avg_pool"},
                                            {"_native_batch_norm_legit", "batch_norm"},
                                            {"_safe_softmax", "softmax"},
                                            {"view", "reshaped"},
                                            {"_unsafe_view", "reshaped"},
                                            {"permute", "permuted"},
                                            {"transpose", "transposed"},
                                            {"clone", "copy"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (str_is(op, titles[i][0]))
            return str_view(titles[i][1]);
    while (op.n && op.p[0] == '_')
        op = str_from(op, 1);
    return op;
}

/* A name for a let: the module's, or the operator's, then numbers. One letter is for indices. */
static str let_name(struct writer *w, const struct node *n, const char *tag) {
    n = n->origin ? n->origin : n;
    str op = as_name(w, op_title(n->op)), base = op;
    if (n->module.n)
        base = as_name(w, n->module);
    if (!tag && is_word(w, base))
        base = arena_printf(w->arena, "%.*s_value", STR_ARG(base));
    if (tag)
        base = arena_printf(w->arena, "%.*s_%s", STR_ARG(base), tag);
    str name = base.n == 1 ? arena_printf(w->arena, "%.*s1", STR_ARG(base)) : base;
    if (is_taken(w, name) && n->module.n && !tag)
        name = base = arena_printf(w->arena, "%.*s_%.*s", STR_ARG(base), STR_ARG(op));
    for (unsigned k = 2; is_taken(w, name); k++)
        name = arena_printf(w->arena, "%.*s%u", STR_ARG(base), k);
    return take_name(w, name);
}

struct ex variable(struct writer *w, const char *wish, str extent) {
    static const char letters[] = "ijklnmhwdpqrstuvecfgo";
    str name = str_view(wish);
    for (size_t i = 0; (is_taken(w, name) || in_scope(w, name)) && i < sizeof letters - 1; i++)
        name = arena_printf(w->arena, "%c", letters[i]);
    for (unsigned k = 1; is_taken(w, name) || in_scope(w, name); k++)
        name = arena_printf(w->arena, "i%u", k);
    if (w->scope->n == TASK_MAX_VARS) {
        err_set(w->err, ERR_NO, "a statement of more than %d variables", TASK_MAX_VARS);
        w->scope->n--;
    }
    w->scope->vars[w->scope->n++] = (struct variable){name, extent, NOT_SEEN};
    return ex_of(name);
}

/* A variable that stands alone as an index: the language takes its range from there. */
static void note_index(struct writer *w, str text, str extent) {
    for (size_t i = 0; w->scope && i < w->scope->n; i++) {
        struct variable *v = &w->scope->vars[i];
        if (str_eq(v->name, text) && v->state != SEEN_OTHERWISE)
            v->state = str_eq(v->extent, extent) ? SEEN : SEEN_OTHERWISE;
    }
}

static str ranged(struct writer *w, str name) {
    for (size_t i = 0; i < w->scope->n; i++) {
        const struct variable *v = &w->scope->vars[i];
        if (str_eq(v->name, name) && v->state != SEEN)
            return arena_printf(w->arena, "%.*s < %.*s", STR_ARG(name), STR_ARG(v->extent));
    }
    return name;
}

/* ---- arguments ---- */

bool arg_ref(struct writer *w, const struct node *n, const char *name, struct ref *out) {
    return graph_ref(w->g, json_get(n->args, name), out);
}

const struct value *arg_value(struct writer *w, const struct node *n, const char *name) {
    struct ref r;
    return arg_ref(w, n, name, &r) ? graph_value(w->g, r) : NULL;
}

int64_t arg_i64(const struct node *n, const char *name, int64_t fallback) {
    int64_t v;
    return json_get_i64(n->args, name, &v) ? v : fallback;
}

double arg_f64(const struct node *n, const char *name, double fallback) {
    double v;
    return json_get_f64(n->args, name, &v) ? v : fallback;
}

bool arg_bool(const struct node *n, const char *name) {
    bool v;
    return json_get_bool(n->args, name, &v) && v;
}

bool arg_is_null(const struct node *n, const char *name) {
    str text;
    double v;
    const json *j = json_get(n->args, name);
    return !j || (!json_is_object(j) && !json_is_array(j) && !json_to_str(j, &text) &&
                  !json_to_f64(j, &v));
}

int64_t arg_i64_at(const struct node *n, const char *name, size_t i, int64_t fallback) {
    int64_t v;
    return json_to_i64(json_at(json_get(n->args, name), i), &v) ? v : fallback;
}

int64_t arg_listed(const struct node *n, const char *name, size_t i, int64_t fallback) {
    size_t len = json_len(json_get(n->args, name));
    return len ? arg_i64_at(n, name, len == 1 ? 0 : i, fallback) : fallback;
}

struct ex number_of(struct writer *w, const struct node *n, const json *j) {
    double v;
    int64_t whole;
    str text;
    bool truth;
    if (json_to_i64(j, &whole))
        return ex_integer(w->arena, whole);
    if (json_to_f64(j, &v))
        return ex_number(w->arena, v);
    if (json_to_bool(j, &truth))
        return ex_of(truth ? S("1") : S("0"));
    if (json_is_object(j) && json_get_str(j, "number", &text)) {
        struct ex e = ex_size(text);
        return e;
    }
    if (json_to_str(j, &text) && str_is(text, "-inf"))
        return (struct ex){text, LEVEL_PREFIX};
    if (json_to_str(j, &text) && !str_is(text, "nan"))
        return ex_size(text); /* inf, or a size */
    return cannot(w, n, "an argument that is no number");
}

struct ex size_of(struct writer *w, const struct node *n, const json *j) {
    return number_of(w, n, j);
}

size_t axis_of(struct writer *w, const struct node *n, int64_t dim, size_t rank) {
    int64_t axis = dim < 0 ? dim + (int64_t)rank : dim;
    if (axis >= 0 && axis < (int64_t)rank)
        return (size_t)axis;
    if (rank) /* of a scalar, -1 and 0 are as good */
        cannot(w, n, "dimension %lld of %zu", (long long)dim, rank);
    return 0;
}

struct ex operand(struct writer *w, const struct node *n, const char *name, const struct place *at,
                  size_t rank) {
    struct ref r;
    if (!arg_ref(w, n, name, &r))
        return number_of(w, n, json_get(n->args, name));
    struct ex x = read_broadcast(w, r, at, rank);
    bool truth = graph_value(w->g, r)->dtype == DTYPE_BOOL && n->outs[0].dtype != DTYPE_BOOL;
    if (truth && strcmp(name, "condition") != 0 && strcmp(name, "mask") != 0)
        return ex_if(w->arena, x, ex_of(S("1")), ex_of(S("0")));
    return x;
}

/* ---- templates ---- */

static enum level level_beside(char before, char after) {
    enum level least = LEVEL_ANYTHING;
    const enum level left = after == '*' || after == '/' || after == '%' ? LEVEL_PRODUCT
                            : after == '+' || after == '-' || after == '<' || after == '>' ||
                                    after == '=' || after == '!'
                                ? LEVEL_SUM
                            : after == '&' || after == '|' ? LEVEL_COMPARISON
                                                           : LEVEL_ANYTHING;
    const enum level right = before == '*' || before == '/' || before == '%' || before == '!'
                                 ? LEVEL_PREFIX
                             : before == '+' || before == '-'                  ? LEVEL_REDUCTION
                             : before == '<' || before == '>' || before == '=' ? LEVEL_SUM
                             : before == '&' || before == '|'                  ? LEVEL_COMPARISON
                                                                               : LEVEL_ANYTHING;
    least = left > right ? left : right;
    return least;
}

/* How tightly a finished template binds: by the operators outside its brackets. */
static enum level level_of(const char *text) {
    enum level level = LEVEL_PRIMARY;
    int depth = 0;
    for (const char *c = text; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        enum level here = depth || c == text                                 ? LEVEL_PRIMARY
                          : *c == '|'                                        ? LEVEL_OR
                          : *c == '&'                                        ? LEVEL_AND
                          : *c == '<' || *c == '>' || *c == '=' || *c == '!' ? LEVEL_COMPARISON
                          : *c == '+' || *c == '-'                           ? LEVEL_SUM
                          : *c == '*' || *c == '/' || *c == '%'              ? LEVEL_PRODUCT
                                                                             : LEVEL_PRIMARY;
        level = here < level ? here : level;
    }
    bool prefix = text[0] == '-' || text[0] == '!';
    return prefix && level > LEVEL_PREFIX ? LEVEL_PREFIX : level;
}

struct ex fill_template(struct writer *w, const struct node *n, const char *text,
                        const struct place *at, size_t rank) {
    struct buf b;
    struct ex result;
    buf_init(&b, TASK_TEXT);
    char before = 0;
    for (const char *c = text; *c;) {
        if (*c != '@') {
            before = *c == ' ' ? before : *c;
            buf_putc(&b, *c++);
            continue;
        }
        char name[32];
        size_t len = 0;
        for (c++; (isalnum((unsigned char)*c) || *c == '_') && len < sizeof name - 1; c++)
            name[len++] = *c;
        name[len] = 0;
        const char *next = c;
        while (*next == ' ')
            next++;
        struct ex x = operand(w, n, name, at, rank);
        buf_puts(&b, ex_at_least(w->arena, x, level_beside(before, *next)));
        before = 'x';
    }
    if (!strcmp(text, "@self")) {
        result = operand(w, n, "self", at, rank);
    } else {
        result = (struct ex){arena_str(w->arena, buf_str(&b)), level_of(text)};
    }
    buf_release(&b);
    return result;
}

/* ---- reading ---- */

struct place place_of(struct ex e) {
    return (struct place){.e = e};
}

static void put_index(struct buf *b, str text) {
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != ' ')
            buf_putc(b, text.p[i]);
}

static struct ex read_tensor(struct writer *w, str name, const str *extents, size_t rank,
                             bool dropped, const struct place *at) {
    struct buf b;
    bool any = false;
    buf_init(&b, TASK_TEXT);
    buf_puts(&b, name);
    for (size_t i = 0; i < rank; i++) {
        if (dropped && str_is(extents[i], "1"))
            continue;
        note_index(w, at[i].e.text, extents[i]);
        buf_putc(&b, any ? ',' : '[');
        put_index(&b, at[i].e.text);
        any = true;
    }
    if (any)
        buf_putc(&b, ']');
    str text = arena_str(w->arena, buf_str(&b));
    buf_release(&b);
    return ex_of(text);
}

/* A graph may state ranks that do not go together. An operator that is asked for more places than
 * its reader has finds empty ones, here and never beyond the end: they are found where they are
 * used as an index, or by the parser of the task. */
static bool has_places(struct writer *w, const struct node *n, const struct value *v,
                       const struct place *at) {
    for (size_t i = 0; i < v->rank; i++)
        if (!at[i].e.text.n) {
            cannot(w, n, "a tensor of %zu dimensions that is read as one of %zu", v->rank, i);
            return false;
        }
    return true;
}

struct ex read_at(struct writer *w, struct ref r, const struct place *at) {
    const struct node *n = &w->g->nodes[r.node];
    const struct value *v = &n->outs[r.out];
    if (w->err->kind || !has_places(w, n, v, at))
        return ex_of(S("0"));
    if (v->name.n)
        return read_tensor(w, v->name, v->extent, v->rank, v->dropped, at);
    if (!n->info)
        return cannot(w, n, "this operator");
    if (++w->depth > DEPTH)
        return cannot(w, n, "so long a chain of operators");
    if (++w->reads > MOST_READS)
        return cannot(w, n, "an expression that repeats its arguments so often");
    struct place own[PLACES] = {0};
    memcpy(own, at, v->rank * sizeof *own);
    struct ex e = n->info->text ? fill_template(w, n, n->info->text, own, v->rank)
                                : n->info->read(w, n, r.out, own);
    w->depth--;
    return e;
}

struct ex read_broadcast(struct writer *w, struct ref r, const struct place *at, size_t rank) {
    const struct value *v = graph_value(w->g, r);
    struct place places[TASK_MAX_RANK] = {0};
    if (v->rank > rank)
        return cannot(w, &w->g->nodes[r.node], "a broadcast to fewer dimensions");
    for (size_t i = 0; i < v->rank; i++)
        places[i] = str_is(v->extent[i], "1") ? place_of(ex_of(S("0"))) : at[rank - v->rank + i];
    return read_at(w, r, places);
}

/* Of a let, dimensions of extent 1 are left out: an index that leaves one must be looked at. */
static struct ex inside(struct writer *w, const struct value *v, const struct place *at) {
    struct ex all = {0};
    for (size_t i = 0; i < v->rank; i++) {
        if (!str_is(v->extent[i], "1") || ex_is(at[i].e, "0") || (v->name.n && !v->dropped))
            continue;
        str index = ex_at_least(w->arena, at[i].e, LEVEL_SUM);
        struct ex one = {arena_printf(w->arena, "%.*s == 0", STR_ARG(index)), LEVEL_COMPARISON};
        all = all.text.n ? ex_and(w->arena, all, one) : one;
    }
    return all;
}

struct ex read_padded(struct writer *w, struct ref r, const struct place *at, const char *outside) {
    struct ex x = read_at(w, r, at), kept = inside(w, graph_value(w->g, r), at);
    if (!x.text.n || x.text.p[x.text.n - 1] != ']')
        return cannot(w, &w->g->nodes[r.node], "padding of an expression");
    struct ex padded = ex_of(arena_printf(w->arena, "pad(%.*s, %s)", STR_ARG(x.text), outside));
    return kept.text.n ? ex_if(w->arena, kept, padded, ex_of(str_view(outside))) : padded;
}

struct ex reduction(struct writer *w, const char *op, const struct ex *vars, size_t n,
                    struct ex guard, struct ex body) {
    struct buf b;
    buf_init(&b, TASK_TEXT);
    buf_printf(&b, "%s(", op);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_puts(&b, S(", "));
        buf_puts(&b, ranged(w, vars[i].text));
    }
    if (guard.text.n) {
        buf_puts(&b, S(" | "));
        buf_puts(&b, guard.text);
    }
    buf_puts(&b, S(") "));
    buf_puts(&b, ex_at_least(w->arena, body, LEVEL_REDUCTION));
    str text = arena_str(w->arena, buf_str(&b));
    buf_release(&b);
    return (struct ex){text, LEVEL_REDUCTION};
}

/* ---- statements ---- */

/* The names of a result's own indices. */
static void indices(struct writer *w, size_t rank, const str *extents, struct place *at) {
    static const char *const wishes[][5] = {
        {"i"}, {"i", "j"}, {"i", "j", "k"}, {"n", "c", "h", "w"}, {"n", "c", "d", "h", "w"}};
    for (size_t i = 0; i < rank; i++)
        at[i] = place_of(str_is(extents[i], "1")
                             ? ex_of(S("0"))
                             : variable(w, rank <= 5 ? wishes[rank - 1][i] : "i", extents[i]));
}

/* Where to break a line that is too long: after a comma or an operator, inside as few brackets as
 * possible, late. 0: nowhere. */
static size_t break_of(str text, size_t room) {
    size_t cut = 0;
    int depth = 0, least = INT_MAX;
    for (size_t i = 1; i + 1 < text.n && i < room; i++) {
        char c = text.p[i - 1];
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (text.p[i] != ' ' ||
            !(c == ',' || c == '+' || c == '-' || c == '|' || c == '&' || c == '='))
            continue;
        if (i > room / 3 && depth <= least) {
            cut = i + 1;
            least = depth;
        }
    }
    return cut;
}

/* A line of at most COLUMNS, broken where the language lets a line go on. */
static void put_line(struct buf *b, str text) {
    size_t indent = 0, cut;
    while (text.n + indent > COLUMNS && (cut = break_of(text, COLUMNS - indent)) > 0) {
        buf_printf(b, "%*s%.*s\n", (int)indent, "", STR_ARG(str_trim(str_cut(text, 0, cut))));
        text = str_from(text, cut);
        indent = 4;
    }
    buf_printf(b, "%*s%.*s\n", (int)indent, "", STR_ARG(text));
}

static void comment(struct writer *w, const struct node *n) {
    if (!n->module.n || str_eq(n->module, w->module))
        return;
    w->module = n->module;
    buf_printf(&w->body, "# %.*s", STR_ARG(n->module));
    if (n->line)
        buf_printf(&w->body, ", line %lld", (long long)n->line);
    buf_putc(&w->body, '\n');
}

static void put_let(struct writer *w, const struct node *n, str name, size_t rank,
                    const str *extents, const struct place *at, const char *type, struct ex e) {
    struct buf line;
    bool any = false;
    buf_init(&line, TASK_TEXT);
    buf_printf(&line, "let %.*s", STR_ARG(name));
    for (size_t i = 0; i < rank; i++)
        if (!str_is(extents[i], "1")) {
            buf_puts(&line, any ? S(", ") : S("["));
            buf_puts(&line, ranged(w, at[i].e.text));
            any = true;
        }
    buf_printf(&line, "%s%s%s = %.*s", any ? "]" : "", *type ? " : " : "", type, STR_ARG(e.text));
    comment(w, n);
    put_line(&w->body, buf_str(&line));
    buf_release(&line);
}

struct ex helper_let(struct writer *w, const struct node *n, const char *tag, size_t rank,
                     const str *extents, const struct place *at,
                     struct ex (*build)(struct writer *w, const struct node *n,
                                        const struct place *at)) {
    if (w->definition)
        return build(w, n, at);
    for (size_t i = 0; i < w->nmade; i++)
        if (w->made[i].node == n && !strcmp(w->made[i].tag, tag))
            return read_tensor(w, w->made[i].name, w->made[i].extents, rank, true, at);
    struct scope *inner = arena_new_of(w->arena, struct scope);
    struct place own[TASK_MAX_RANK] = {0};
    inner->outer = w->scope;
    w->scope = inner;
    indices(w, rank, extents, own);
    struct ex e = build(w, n, own);
    str name = let_name(w, n, tag);
    put_let(w, n, name, rank, extents, own, "", e);
    w->scope = inner->outer;
    w->made = mem_grow(w->made, &w->made_cap, w->nmade + 1, sizeof *w->made);
    struct made *m = &w->made[w->nmade++];
    *m = (struct made){.node = n, .tag = tag, .name = name, .rank = rank};
    memcpy(m->extents, extents, rank * sizeof *extents);
    return read_tensor(w, name, m->extents, rank, true, at);
}

/* The type that a let must have: what a cast rounds to, and whatever is whole or a truth value. */
static const char *let_type(const struct node *n, const struct value *v) {
    const struct dtype_info *info = dtype_info(v->dtype);
    bool cast = str_is(n->op, "_to_copy") || str_is(n->op, "convert_element_type");
    return info->kind != 'f' || (cast && info->bytes < 4) ? info->name : "";
}

static void write_let(struct writer *w, size_t node, size_t out) {
    struct node *n = &w->g->nodes[node];
    struct value *v = &n->outs[out];
    struct place at[TASK_MAX_RANK] = {0};
    w->scope = arena_new_of(w->arena, struct scope);
    indices(w, v->rank, v->extent, at);
    struct ex e = read_at(w, (struct ref){node, out}, at);
    str name = let_name(w, n, NULL);
    put_let(w, n, name, v->rank, v->extent, at, let_type(n, v), e);
    v->name = name;
    v->dropped = true;
    w->scope = NULL;
}

static void write_output(struct writer *w, size_t i, str name) {
    struct ref r = w->g->outputs[i];
    const struct value *v = graph_value(w->g, r);
    struct place at[TASK_MAX_RANK] = {0};
    struct buf line;
    w->scope = arena_new_of(w->arena, struct scope);
    indices(w, v->rank, v->extent, at);
    struct ex e = read_at(w, r, at);
    buf_init(&line, TASK_TEXT);
    buf_puts(&line, name);
    for (size_t k = 0; k < v->rank; k++)
        buf_printf(&line, "%s%.*s", k ? "," : "[", STR_ARG(at[k].e.text));
    buf_printf(&line, "%s = %.*s", v->rank ? "]" : "", STR_ARG(e.text));
    comment(w, &w->g->nodes[r.node]);
    put_line(&w->body, buf_str(&line));
    buf_release(&line);
    w->scope = NULL;
}

/* ---- declarations ---- */

static void put_shape(struct buf *b, const struct value *v) {
    for (size_t i = 0; i < v->rank; i++)
        buf_printf(b, "%s%.*s", i ? "," : "[", STR_ARG(v->extent[i]));
    if (v->rank)
        buf_putc(b, ']');
}

/* Random numbers that an input is computed from become `rand` tensors of their own. */
static void declare_random(struct writer *w, struct ref r, str of, unsigned *count, struct buf *b) {
    struct node *n = &w->g->nodes[r.node];
    struct value *v = &n->outs[r.out];
    str dist;
    if (n->info && n->info->kind == OP_RANDOM && !v->name.n && dist_drawn(w, n, &dist)) {
        str base = arena_printf(w->arena, "%.*s_random%.0u", STR_ARG(of), (*count)++);
        for (unsigned k = 2; is_taken(w, base); k++)
            base = arena_printf(w->arena, "%.*s_random%u", STR_ARG(of), k + *count);
        v->name = take_name(w, base);
        buf_printf(b, "rand %.*s", STR_ARG(v->name));
        put_shape(b, v);
        buf_printf(b, "%s%s ~ %.*s\n", v->dtype == DTYPE_F32 ? "" : " : ",
                   v->dtype == DTYPE_F32 ? "" : dtype_info(v->dtype)->name, STR_ARG(dist));
        return;
    }
    if (v->name.n || !n->info || n->info->kind == OP_RANDOM || n->info->kind == OP_LEAF ||
        n->searched)
        return;
    n->searched = true;
    const json *self;
    static const char *const names[] = {"self",   "other", "a",         "b",    "input",
                                        "weight", "end",   "condition", "mask", "src"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ref inner;
        self = json_get(n->args, names[i]);
        if (graph_ref(w->g, self, &inner))
            declare_random(w, inner, of, count, b);
    }
}

static void declare_defined(struct writer *w, struct node *n, const char *role, struct ref value,
                            struct buf *b) {
    struct value *v = &n->outs[0];
    struct place at[TASK_MAX_RANK] = {0};
    struct buf line;
    unsigned count = 0;
    struct ex index[TASK_MAX_RANK];
    str name = v->name;
    declare_random(w, value, name, &count, b);
    w->scope = arena_new_of(w->arena, struct scope);
    w->definition = true;
    indices(w, v->rank, v->extent, at);
    v->name = (str){0};
    struct ex e = read_at(w, value, at);
    v->name = name;
    for (size_t i = 0; i < v->rank; i++) /* all are named on the left side */
        index[i] = str_is(v->extent[i], "1") ? variable(w, "i", v->extent[i]) : at[i].e;
    w->definition = false;
    w->scope = NULL;
    buf_init(&line, TASK_TEXT);
    buf_printf(&line, "%s %.*s", role, STR_ARG(name));
    for (size_t i = 0; i < v->rank; i++)
        buf_printf(&line, "%s%.*s < %.*s", i ? ", " : "[", STR_ARG(index[i].text),
                   STR_ARG(v->extent[i]));
    buf_printf(&line, "%s : %s = %.*s", v->rank ? "]" : "", dtype_info(v->dtype)->name,
               STR_ARG(e.text));
    put_line(b, buf_str(&line));
    buf_release(&line);
}

static void declare(struct writer *w, struct node *n, struct buf *b) {
    struct ref value;
    str dist;
    const char *role = str_is(n->op, "in") ? "in" : "param";
    if (!arg_ref(w, n, "value", &value)) {
        cannot(w, n, "an input without a value");
        return;
    }
    if (!dist_of(w, value, &dist)) {
        declare_defined(w, n, role, value, b);
        return;
    }
    if (n->outs[0].dtype == DTYPE_BOOL)
        dist = S("bernoulli(0.5)");
    buf_printf(b, "%s %.*s", role, STR_ARG(n->outs[0].name));
    put_shape(b, &n->outs[0]);
    buf_printf(b, " : %s ~ %.*s\n", dtype_info(n->outs[0].dtype)->name, STR_ARG(dist));
}

/* Inputs and parameters have their names. Of buffers those do that are drawn, or are all zeros or
 * all ones, as running statistics are; others, such as masks, are what they were computed from. */
static void name_leaves(struct writer *w) {
    for (size_t i = 0; i < w->g->nnodes; i++) {
        struct node *n = &w->g->nodes[i];
        struct ref value;
        str name, dist;
        if (!n->info || n->info->kind != OP_LEAF || !n->nouts ||
            !json_get_str(n->args, "name", &name))
            continue;
        if (str_is(n->op, "buffer") &&
            (!arg_ref(w, n, "value", &value) || !dist_of(w, value, &dist)))
            continue;
        n->outs[0].name = take_name(w, name);
    }
}

/* Dimensions that nothing mentions, or only others that nothing mentions, are left out. */
static void drop_dims(struct writer *w, str text) {
    for (size_t i = w->g->ndims; i-- > 0;) {
        bool used = text_mentions(text, w->g->dims[i].name);
        for (size_t k = i + 1; k < w->g->ndims && !used; k++)
            used = !w->g->dims[k].unused && text_mentions(w->g->dims[k].is, w->g->dims[i].name);
        w->g->dims[i].unused = !used;
    }
}

static void put_dims(struct writer *w, struct buf *b) {
    bool any = false;
    for (size_t i = 0; i < w->g->ndims; i++)
        if (!w->g->dims[i].is.n && !w->g->dims[i].unused) {
            buf_printf(b, "%s%.*s = %lld", any ? ", " : "dim ", STR_ARG(w->g->dims[i].name),
                       (long long)w->g->dims[i].value);
            any = true;
        }
    if (any)
        buf_putc(b, '\n');
    for (size_t i = 0; i < w->g->ndims; i++)
        if (w->g->dims[i].is.n && !w->g->dims[i].unused)
            buf_printf(b, "dim %.*s = %.*s\n", STR_ARG(w->g->dims[i].name),
                       STR_ARG(w->g->dims[i].is));
}

/* Shapes that differ only in what is left out are one. */
static void put_checks(struct writer *w, struct buf *b) {
    for (size_t i = 0; i < json_len(w->g->checks); i++) {
        str line = S("check");
        for (size_t k = 0; k < w->g->ndims; k++) {
            const struct dimension *d = &w->g->dims[k];
            int64_t v;
            if (!d->unused && !d->is.n &&
                json_get_i64(json_at(w->g->checks, i), arena_cstr(w->arena, d->name), &v))
                line = arena_printf(w->arena, "%.*s%s %.*s = %lld", STR_ARG(line),
                                    line.n > 5 ? "," : "", STR_ARG(d->name), (long long)v);
        }
        str whole = arena_printf(w->arena, "%.*s\n", STR_ARG(line));
        if (line.n > 5 && str_find(buf_str(b), whole) == b->n)
            buf_puts(b, whole);
    }
}

/* The class of the module's own arithmetic: of its narrowest floats, or TF32 where PyTorch computes
 * f32 convolutions or products so. */
static const char *class_of(const struct graph *g) {
    bool f16 = false, bf16 = false, tf32 = false;
    for (size_t i = 0; i < g->nnodes; i++) {
        const struct node *n = &g->nodes[i];
        if (!n->needed || !n->nouts)
            continue;
        f16 = f16 || n->outs[0].dtype == DTYPE_F16;
        bf16 = bf16 || n->outs[0].dtype == DTYPE_BF16;
        if (str_is(n->op, "convolution"))
            tf32 = tf32 || g->convolution_tf32;
        else if (n->info && n->info->read && n->info->kind == OP_PRODUCT &&
                 str_ends(n->op, S("mm")))
            tf32 = tf32 || g->matmul_tf32;
    }
    return bf16 ? "bf16" : f16 ? "f16" : tf32 ? "tf32" : "fp32";
}

static str task_name(struct writer *w) {
    str name = w->g->name;
    while (name.n && (isdigit((unsigned char)name.p[0]) || name.p[0] == '_'))
        name = str_from(name, 1);
    char *text = arena_cstr(w->arena, as_name(w, name.n ? name : w->g->name));
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return is_taken(w, str_view(text)) ? arena_printf(w->arena, "%s_task", text) : str_view(text);
}

static void put_notes(const struct graph *g, struct buf *b) {
    for (size_t i = 0; i < json_len(g->dropout); i++) {
        str name;
        if (json_to_str(json_at(g->dropout, i), &name))
            buf_printf(b, "# %.*s: dropout is left out, as in evaluation.\n", STR_ARG(name));
    }
    if (json_len(g->updates))
        buf_puts(b, S("# The update of running statistics is left out.\n"));
}

static void put_torch(const struct graph *g, struct buf *b) {
    for (size_t i = 0; i < g->torch.n; i++)
        if (strchr("\"\\\n\r", g->torch.p[i]))
            return;
    if (g->torch.n)
        buf_printf(b, "torch \"%.*s\"\n", STR_ARG(g->torch));
}

/* Tensors and dimensions, of which a task has a limited number. */
static bool small_enough(const struct writer *w, size_t tensors, struct err *err) {
    size_t dims = 0;
    for (size_t i = 0; i < w->g->ndims; i++)
        dims += !w->g->dims[i].unused;
    if (tensors > TASK_MAX_TENSORS)
        return err_set(err, ERR_NO,
                       "%s: the module needs %zu tensors, inputs, parameters and lets; a "
                       "task has at most %d",
                       w->file, tensors, TASK_MAX_TENSORS);
    if (dims > TASK_MAX_DIMS)
        return err_set(err, ERR_NO, "%s: the module needs %zu dimensions; a task has at most %d",
                       w->file, dims, TASK_MAX_DIMS);
    return true;
}

static void write_statements(struct writer *w) {
    for (size_t i = 0; i < w->g->nnodes && !w->err->kind; i++) {
        struct node *n = &w->g->nodes[i];
        for (size_t k = 0; n->needed && n->is_let && k < n->nouts && !w->err->kind; k++)
            if (n->outs[k].exists && n->outs[k].uses)
                write_let(w, i, k);
    }
}

static size_t count_tensors(const struct writer *w) {
    size_t n = w->nmade + w->g->noutputs;
    for (size_t i = 0; i < w->g->nnodes; i++)
        for (size_t k = 0; w->g->nodes[i].needed && k < w->g->nodes[i].nouts; k++)
            n += w->g->nodes[i].outs[k].name.n > 0;
    return n;
}

static void write_all(struct writer *w, struct buf *out) {
    struct graph *g = w->g;
    struct buf decl;
    take_words(w);
    for (size_t i = 0; i < g->ndims; i++)
        take_name(w, g->dims[i].name);
    name_leaves(w);
    str *outputs = arena_array(w->arena, str, g->noutputs);
    for (size_t i = 0; i < g->noutputs; i++) {
        outputs[i] = as_name(w, g->output_names[i]);
        for (unsigned k = 1; is_taken(w, outputs[i]); k++)
            outputs[i] = arena_printf(w->arena, "y%u", k);
        take_name(w, outputs[i]);
    }
    plan_lets(g);
    buf_printf(out, "task %.*s \"%.*s of %.*s\"\n", STR_ARG(task_name(w)), STR_ARG(g->class),
               STR_ARG(g->source));
    put_notes(g, out);
    buf_init(&decl, TASK_TEXT);
    for (size_t i = 0; i < g->nnodes && !w->err->kind; i++)
        if (g->nodes[i].needed && g->nodes[i].info && g->nodes[i].info->kind == OP_LEAF &&
            g->nodes[i].outs[0].name.n)
            declare(w, &g->nodes[i], &decl);
    for (size_t i = 0; i < g->noutputs; i++) {
        const struct value *v = graph_value(g, g->outputs[i]);
        buf_printf(&decl, "out %.*s", STR_ARG(outputs[i]));
        put_shape(&decl, v);
        buf_printf(&decl, " : %s\n", dtype_info(v->dtype)->name);
    }
    write_statements(w);
    for (size_t i = 0; i < g->noutputs && !w->err->kind; i++)
        write_output(w, i, outputs[i]);
    buf_puts(&decl, buf_str(&w->body));
    drop_dims(w, buf_str(&decl));
    put_dims(w, out);
    buf_puts(out, buf_str(&decl));
    buf_release(&decl);
    buf_printf(out, "accuracy %s\n", class_of(g));
    put_checks(w, out);
    put_torch(g, out);
}

bool write_task(struct graph *g, const char *file, struct arena *a, struct buf *out,
                bool *too_large, struct err *err) {
    struct writer w = {.arena = a, .g = g, .file = file, .err = err};
    buf_init(&w.body, TASK_TEXT);
    write_all(&w, out);
    bool written = !err->kind;
    bool ok = written && small_enough(&w, count_tensors(&w), err);
    if (ok && (out->failed || w.body.failed))
        ok = err_set(err, ERR_NO, "%s: its task would be longer than a task may be", file);
    *too_large = written && !ok;
    buf_release(&w.body);
    mem_free(w.names);
    mem_free(w.made);
    return ok;
}
