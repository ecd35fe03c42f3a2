/* The `//!` lines of a candidate, bound to the names of its task, and their arithmetic.
 *
 * `/` and `//` are both floor division: plans have integers only, and a model writes either. */
#include "kernel/plan.h"
#include "base/asset.h"
#include "base/err.h"
#include "base/file.h"
#include "base/near.h"
#include "kernel/candidate.h"
#include "kernel/includes.h"
#include "kernel/verdict.h"
#include <stdio.h>
#include <string.h>

#define PLAN_FAIL(r, at, len, hint, ...)                                                           \
    err_at((r)->p.err, (r)->p.lx.file, (r)->p.lx.text, (at), (len), (hint), __VA_ARGS__)

static bool reader_expect(struct plan_reader *r, const char *sign, const char *after) {
    if (token_is(&r->p.tok, sign))
        return parse_next(&r->p);
    if (r->p.tok.kind == TOKEN_END)
        return PLAN_FAIL(r, r->p.tok.at, 1, NULL,
                         "expected '%s' after %s, found the end of the line", sign, after);
    return PLAN_FAIL(r, r->p.tok.at, r->p.tok.text.n, NULL, "expected '%s' after %s, found '%.*s'",
                     sign, after, STR_ARG(r->p.tok.text));
}

static bool reader_at_end(struct plan_reader *r, const char *after) {
    if (r->p.tok.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, r->p.tok.at, r->p.tok.text.n, NULL, "unexpected '%.*s' after %s",
                     STR_ARG(r->p.tok.text), after);
}

/* ---- names ---- */

static bool plan_name_is_function(str name) {
    return str_is(name, "min") || str_is(name, "max") || str_is(name, "ceil_div");
}

/* What a name alone stands for: a tensor, a workspace or a map. ARG_INTEGER: none of them. */
static enum arg_kind plan_name_find(const struct plan_reader *r, str name, size_t *ref) {
    int tensor = tensor_find(r->task, name);
    *ref = (size_t)tensor;
    if (tensor >= 0)
        return ARG_TENSOR;
    for (*ref = 0; r->c && *ref < r->c->nworkspaces; ++*ref)
        if (str_eq(r->c->workspaces[*ref].name, name))
            return ARG_WORKSPACE;
    for (*ref = 0; r->c && *ref < r->c->nmaps; ++*ref)
        if (str_eq(r->c->maps[*ref].name, name))
            return ARG_TENSORMAP;
    return ARG_INTEGER;
}

static const char *plan_kind_name(enum arg_kind kind) {
    static const char *const names[] = {[ARG_INTEGER] = "a number",
                                        [ARG_TENSOR] = "a tensor",
                                        [ARG_WORKSPACE] = "a workspace",
                                        [ARG_TENSORMAP] = "a tensormap"};
    return names[kind];
}

/* Takes the name of a tensor that has memory, or of a workspace. `what` wants it. */
static bool reader_memory(struct plan_reader *r, const char *what, enum arg_kind *of, size_t *ref) {
    struct token t = r->p.tok;
    if (t.kind != TOKEN_NAME)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, NULL,
                         "%s needs the name of a tensor or a workspace", what);
    *of = plan_name_find(r, t.text, ref);
    if (*of == ARG_INTEGER)
        return PLAN_FAIL(r, t.at, t.text.n, "a workspace is declared above the lines that use it",
                         "'%.*s' is neither a tensor nor a workspace", STR_ARG(t.text));
    if (*of == ARG_TENSORMAP)
        return PLAN_FAIL(r, t.at, t.text.n, NULL,
                         "'%.*s' is a tensormap: %s is of a tensor or a workspace", STR_ARG(t.text),
                         what);
    if (*of == ARG_TENSOR && !tensor_has_memory(&r->task->tensors[*ref]))
        return PLAN_FAIL(r, t.at, t.text.n, "kernels see inputs, parameters and outputs",
                         "'%.*s' is an intermediate of the task: it has no memory",
                         STR_ARG(t.text));
    return parse_next(&r->p);
}

enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref) {
    return of == ARG_TENSOR ? c->task->tensors[ref].dtype : c->workspaces[ref].dtype;
}

/* One namespace for everything that plan lines refer to. Kernels have another. */
static const char *name_taken(const struct plan_reader *r, str name) {
    size_t ref;
    if (plan_name_is_function(name))
        return "a function of plans";
    if (dim_find(r->task, name) >= 0)
        return "a dimension of the task";
    for (size_t i = 0; i < r->nlets; i++)
        if (str_eq(r->lets[i].name, name))
            return "already a let";
    switch (plan_name_find(r, name, &ref)) {
    case ARG_TENSOR:
        return "a tensor of the task";
    case ARG_WORKSPACE:
        return "already a workspace";
    case ARG_TENSORMAP:
        return "already a tensormap";
    default:
        return NULL;
    }
}

/* Takes a name that is still free in the plan; `example` is a whole line. */
static bool reader_new_name(struct plan_reader *r, const char *what, const char *example,
                            str *out) {
    struct token t = r->p.tok;
    if (t.kind != TOKEN_NAME)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, example, "expected a name after %s",
                         what);
    const char *taken = name_taken(r, t.text);
    if (taken)
        return PLAN_FAIL(r, t.at, t.text.n, "choose another name", "'%.*s' is %s", STR_ARG(t.text),
                         taken);
    *out = t.text;
    return parse_next(&r->p);
}

struct known_names {
    struct near near;
    struct buf list;
};

static void know(struct known_names *k, str name) {
    buf_printf(&k->list, " %.*s", STR_ARG(name));
    near_try(&k->near, name);
}

/* What may stand in arithmetic and, where an argument of a launch is read, what may be passed
 * whole, as a hint; first of all the name that is most like the unknown one. */
static str known_names(const struct plan_reader *r, str unknown) {
    struct known_names k = {.near = near_begin(unknown)};
    buf_init(&k.list, 1u << 16);
    for (size_t i = 0; r->argument && i < r->task->ntensors; i++)
        if (tensor_has_memory(&r->task->tensors[i]))
            know(&k, r->task->tensors[i].name);
    for (size_t i = 0; r->argument && r->c && i < r->c->nworkspaces; i++)
        know(&k, r->c->workspaces[i].name);
    for (size_t i = 0; r->argument && r->c && i < r->c->nmaps; i++)
        know(&k, r->c->maps[i].name);
    for (size_t i = 0; i < r->task->ndims; i++)
        know(&k, r->task->dims[i].name);
    for (size_t i = 0; i < r->nlets; i++)
        know(&k, r->lets[i].name);
    str best = k.near.best;
    str hint = arena_printf(r->p.arena, "%s%.*s%sknown here:%.*s", best.n ? "did you mean " : "",
                            STR_ARG(best), best.n ? "? " : "", STR_ARG(buf_str(&k.list)));
    buf_release(&k.list);
    return hint;
}

/* ---- expressions ---- */

/* ceil_div(a, b) is -(-a // b). */
static bool parse_call(struct plan_reader *r, struct token name, struct node *out) {
    struct parser *p = &r->p;
    struct node v[2];
    bool min = str_is(name.text, "min");
    if (!plan_name_is_function(name.text))
        return PLAN_FAIL(r, name.at, name.text.n,
                         "plan functions are min(a, b), max(a, b) and ceil_div(a, b)",
                         "unknown function '%.*s'", STR_ARG(name.text));
    if (!reader_expect(r, "(", "a function's name") || !parse_level(p, LEVEL_ANY, &v[0]) ||
        !reader_expect(r, ",", "the first argument") || !parse_level(p, LEVEL_ANY, &v[1]) ||
        !reader_expect(r, ")", "the second argument"))
        return false;
    if (str_is(name.text, "ceil_div"))
        return node_make(p, EXPR_NEG, name.at, v, 1, &v[0]) &&
               node_make(p, EXPR_FLOORDIV, name.at, v, 2, &v[0]) &&
               node_make(p, EXPR_NEG, name.at, v, 1, out);
    if (!node_make(p, EXPR_CALL, name.at, v, 2, out))
        return false;
    out->e->function = min ? FUNCTION_MINIMUM : FUNCTION_MAXIMUM;
    return true;
}

/* `(x, n)` after aligned. */
static bool read_aligned(struct plan_reader *r, struct plan_aligned *out) {
    if (!reader_expect(r, "(", "aligned") || !reader_memory(r, "aligned()", &out->of, &out->ref) ||
        !reader_expect(r, ",", "the name"))
        return false;
    struct token n = r->p.tok;
    if (n.kind != TOKEN_NUMBER || n.integer < 1 || n.integer > PLAN_MAX_ALIGN ||
        (n.integer & (n.integer - 1)))
        return PLAN_FAIL(r, n.at, n.text.n ? n.text.n : 1, "require aligned(x, 128)",
                         "an alignment is a power of two from 1 to %d, as a number",
                         PLAN_MAX_ALIGN);
    out->bytes = (uint32_t)n.integer;
    return parse_next(&r->p) && reader_expect(r, ")", "the alignment");
}

static bool parse_aligned(struct plan_reader *r, struct token name, struct node *out) {
    struct plan_aligned a;
    if (!r->aligned || r->naligned == PLAN_MAX_ALIGNED)
        return PLAN_FAIL(r, name.at, name.text.n, "//! require aligned(x, 128) && N % 4 == 0",
                         r->aligned ? "too many aligned() in one line"
                                    : "aligned() can only stand in a require line");
    if (!read_aligned(r, &a) || !node_make(&r->p, EXPR_NUMBER, name.at, NULL, 0, out))
        return false;
    out->e->integer = 1;
    out->e->integral = true;
    a.node = out->e;
    r->aligned[r->naligned++] = a;
    return true;
}

/* No dimension and no let. */
static bool no_number(struct plan_reader *r, struct token name) {
    size_t ref;
    enum arg_kind kind = plan_name_find(r, name.text, &ref);
    if (kind != ARG_INTEGER)
        return PLAN_FAIL(r, name.at, name.text.n, "it can only be a whole argument of a launch",
                         "'%.*s' is %s, not a number", STR_ARG(name.text), plan_kind_name(kind));
    return PLAN_FAIL(r, name.at, name.text.n, known_names(r, name.text).p, "unknown name '%.*s'",
                     STR_ARG(name.text));
}

static bool parse_name(struct parser *p, struct node *out) {
    struct plan_reader *r = (struct plan_reader *)p; /* its first member */
    struct token name = p->tok;
    if (!parse_next(p))
        return false;
    if (str_is(name.text, "aligned"))
        return parse_aligned(r, name, out);
    if (token_is(&p->tok, "(") || plan_name_is_function(name.text))
        return parse_call(r, name, out);
    int dim = dim_find(r->task, name.text);
    size_t let = 0;
    while (let < r->nlets && !str_eq(r->lets[let].name, name.text))
        let++;
    if (dim < 0 && let == r->nlets)
        return no_number(r, name);
    if (!node_make(p, dim >= 0 ? EXPR_DIM : EXPR_INDEX, name.at, NULL, 0, out))
        return false;
    out->e->ref = dim >= 0 ? (size_t)dim : let;
    return true;
}

static bool no_operand(struct parser *p) {
    return parse_fail(p, p->tok.at, p->tok.len ? p->tok.len : 1, NULL,
                      "expected a number, a name or '('%s",
                      p->tok.kind == TOKEN_END ? ", found the end of the line" : "");
}

static bool close_bracket(struct parser *p, size_t open) {
    (void)open;
    return reader_expect((struct plan_reader *)p, ")", "the expression in parentheses");
}

/* Everything is an integer. */
static bool settle(struct parser *p, struct expr *e, const char *symbol) {
    (void)p, (void)symbol;
    e->kind = e->kind == EXPR_DIV ? EXPR_FLOORDIV : e->kind;
    return true;
}

static const struct language plan_language = {
    /* `>>>` ends a launch configuration and is never a comparison. */
    .lex = {.symbols = "<<< >>> // && || == != <= >= + - * / % < > ! = ( ) [ ] , :",
            .name_most = SIZE_MAX,
            .number = lex_plan_number,
            .stray = "unexpected character in a plan"},
    .depth_most = PLAN_MAX_DEPTH,
    .deep = "expression nested deeper than %d",
    .deep_hint = "split it with let lines",
    .deep_signs_hint = "split it with let lines",
    .chained = "comparisons cannot be chained",
    .chained_hint = "write a < b && b < c",
    .name = parse_name,
    .no_operand = no_operand,
    .close = close_bracket,
    .settle = settle,
};

struct plan_reader plan_reader_on(str file, str source, const struct task *t, struct arena *a,
                                  struct err *err) {
    return (struct plan_reader){.p = {.language = &plan_language,
                                      .lx = lex_start(&plan_language.lex, file, source),
                                      .arena = a,
                                      .err = err},
                                .task = t};
}

struct expr *plan_expr_parse(struct plan_reader *r) {
    struct node n;
    r->p.depth = 0;
    return parse_level(&r->p, LEVEL_ANY, &n) ? n.e : NULL;
}

/* `[a, b, …]`, one to `most` expressions. */
static bool reader_list(struct plan_reader *r, const char *after, struct expr **out, size_t most,
                        size_t *n) {
    size_t at = r->p.tok.at;
    if (!reader_expect(r, "[", after))
        return false;
    for (*n = 0; *n < most;) {
        if (!(out[*n] = plan_expr_parse(r)))
            return false;
        ++*n;
        if (!token_is(&r->p.tok, ","))
            return reader_expect(r, "]", "the list");
        if (!parse_next(&r->p))
            return false;
    }
    return PLAN_FAIL(r, at, r->p.tok.at - at, NULL, "more than %zu numbers in the list", most);
}

/* ---- workspace NAME[extents] : dtype ---- */

#define WORKSPACE_LINE "//! workspace part[S, M] : f32"

static bool parse_dtype(struct plan_reader *r, enum dtype *out) {
    struct token t = r->p.tok;
    if (t.kind == TOKEN_NAME && dtype_find(t.text, out))
        return parse_next(&r->p);
    return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1,
                     "types are f64 f32 f16 bf16 i8 u8 i32 i64 bool",
                     "expected the type of the elements");
}

static bool parse_workspace(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct plan_workspace w = {.align = PLAN_ALIGN, .at = at, .len = r->p.lx.end - at};
    if (c->nworkspaces == PLAN_MAX_WORKSPACES)
        return PLAN_FAIL(r, at, r->p.lx.end - at, "one workspace can hold several arrays",
                         "more than %d workspaces", PLAN_MAX_WORKSPACES);
    if (!reader_new_name(r, "workspace", WORKSPACE_LINE, &w.name) ||
        !reader_list(r, "the workspace's name", w.extent, TASK_MAX_RANK, &w.rank) ||
        !reader_expect(r, ":", "the extents") || !parse_dtype(r, &w.dtype) ||
        !reader_at_end(r, "the type"))
        return false;
    c->workspaces[c->nworkspaces++] = w;
    return true;
}

/* ---- memset NAME = value ---- */

/* inf or -inf, which no arithmetic has. */
static bool infinity_ahead(const struct plan_reader *r, bool *negative) {
    struct plan_reader ahead = *r;
    struct err ignored = {0};
    ahead.p.err = &ignored;
    *negative = token_is(&r->p.tok, "-");
    if (*negative && !parse_next(&ahead.p))
        return false;
    return ahead.p.tok.kind == TOKEN_NAME && str_is(ahead.p.tok.text, "inf");
}

static bool parse_infinity(struct plan_reader *r, const struct plan_memset *m) {
    enum dtype t = plan_memory_dtype(r->c, m->of, m->ref);
    size_t at = r->p.tok.at;
    if (m->negative && !parse_next(&r->p))
        return false;
    if (dtype_info(t)->kind != 'f')
        return PLAN_FAIL(r, at, r->p.lx.at - at, NULL, "%s has no infinity", dtype_info(t)->name);
    return parse_next(&r->p);
}

#define ONCE_READS "it reads parameters (param in the task) and writes workspaces, nothing else"
#define ONCE_KEEPS "what is prepared once is only read by the other steps: take another workspace"

static bool may_memset(struct plan_reader *r, struct token name, const struct plan_memset *m) {
    if (m->of == ARG_WORKSPACE && !r->once && r->c->workspaces[m->ref].prepared)
        return PLAN_FAIL(r, name.at, name.text.n, ONCE_KEEPS,
                         "workspace %.*s is written by a step that is done once",
                         STR_ARG(name.text));
    if (m->of == ARG_TENSOR && r->once)
        return PLAN_FAIL(r, name.at, name.text.n, ONCE_READS,
                         "'%.*s' is a tensor: a step that is done once writes workspaces alone",
                         STR_ARG(name.text));
    if (m->of == ARG_WORKSPACE || tensor_is_output(&r->task->tensors[m->ref]))
        return true;
    return PLAN_FAIL(r, name.at, name.text.n, "a memset is of a workspace or an output",
                     "'%.*s' is an input of the task", STR_ARG(name.text));
}

static bool parse_memset(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct plan_memset m = {.at = at, .len = r->p.lx.end - at};
    struct token name = r->p.tok;
    if (c->nmemsets == PLAN_MAX_MEMSETS)
        return PLAN_FAIL(r, at, r->p.lx.end - at, NULL, "more than %d memsets", PLAN_MAX_MEMSETS);
    if (!reader_memory(r, "memset", &m.of, &m.ref) || !may_memset(r, name, &m) ||
        !reader_expect(r, "=", "the name"))
        return false;
    if (infinity_ahead(r, &m.negative) ? !parse_infinity(r, &m) : !(m.value = plan_expr_parse(r)))
        return false;
    if (!reader_at_end(r, "the value"))
        return false;
    if (r->once)
        c->workspaces[m.ref].prepared = true;
    c->steps[c->nsteps++] = (struct plan_step){PLAN_MEMSET, c->nmemsets};
    c->memsets[c->nmemsets++] = m;
    return true;
}

/* ---- tensormap NAME = tiled(MEMORY, box=[…], …) ---- */

#define MAP_LINE "//! tensormap tA = tiled(A, box=[64, 128], swizzle=128)"
#define MAP_HAS  "box=[…], shape=[…], step=[…], swizzle=0|32|64|128, fill=zero|nan"

/* How many numbers each list has; 0: not given. */
struct map_lists {
    size_t box, shape, step;
    bool fill;
};

static bool parse_fill(struct plan_reader *r, struct plan_tensormap *m) {
    struct token t = r->p.tok;
    bool zero = t.kind == TOKEN_NAME && str_is(t.text, "zero");
    m->fill_nan = t.kind == TOKEN_NAME && str_is(t.text, "nan");
    if (!zero && !m->fill_nan)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1,
                         "it is what a box reads beyond the tensor's edge", "fill is zero or nan");
    char kind = dtype_info(plan_memory_dtype(r->c, m->of, m->ref))->kind;
    if (m->fill_nan && kind != 'f')
        return PLAN_FAIL(r, t.at, t.text.n, "fill=zero", "integers have no nan");
    return parse_next(&r->p);
}

static bool parse_map_option(struct plan_reader *r, struct plan_tensormap *m,
                             struct map_lists *given) {
    struct token word = r->p.tok;
    const struct {
        const char *name;
        struct expr **list;
        size_t *n;
    } lists[] = {
        {"box", m->box, &given->box},
        {"shape", m->shape, &given->shape},
        {"step", m->step, &given->step},
    };
    bool swizzle = str_is(word.text, "swizzle"), fill = str_is(word.text, "fill");
    if (word.kind == TOKEN_NAME && ((swizzle && m->swizzle) || (fill && given->fill)))
        return PLAN_FAIL(r, word.at, word.text.n, NULL, "%s is given twice",
                         swizzle ? "swizzle" : "fill");
    if (!parse_next(&r->p) || !reader_expect(r, "=", "the option's name"))
        return false;
    if (swizzle)
        return (m->swizzle = plan_expr_parse(r)) != NULL;
    if (fill)
        return (given->fill = true) && parse_fill(r, m);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!str_is(word.text, lists[i].name))
            continue;
        if (*lists[i].n)
            return PLAN_FAIL(r, word.at, word.text.n, NULL, "%s is given twice", lists[i].name);
        return reader_list(r, "'='", lists[i].list, TENSORMAP_MAX_RANK, lists[i].n);
    }
    return PLAN_FAIL(r, word.at, word.text.n, MAP_HAS, "a tensormap has no '%.*s'",
                     STR_ARG(word.text));
}

static bool check_map_ranks(struct plan_reader *r, const struct plan_tensormap *m,
                            const struct map_lists *given) {
    size_t own =
        m->of == ARG_TENSOR ? r->task->tensors[m->ref].rank : r->c->workspaces[m->ref].rank;
    size_t shape = given->shape ? given->shape : own;
    if (!given->box)
        return PLAN_FAIL(r, m->at, m->len, MAP_LINE, "a tensormap needs a box");
    if (shape != given->box && !given->shape)
        return PLAN_FAIL(r, m->at, m->len,
                         "give shape=[…] with as many, innermost first: the same elements in "
                         "another shape",
                         "the box has %zu dimensions, the tensor %zu", given->box, own);
    if (shape != given->box)
        return PLAN_FAIL(r, m->at, m->len, NULL, "the box has %zu dimensions, the shape %zu",
                         given->box, shape);
    if (given->step && given->step != given->box)
        return PLAN_FAIL(r, m->at, m->len, NULL, "the box has %zu dimensions, step has %zu",
                         given->box, given->step);
    return true;
}

static bool parse_tiled(struct plan_reader *r, struct plan_tensormap *m, struct map_lists *given) {
    struct token word = r->p.tok;
    if (word.kind != TOKEN_NAME || !str_is(word.text, "tiled"))
        return PLAN_FAIL(r, word.at, word.text.n ? word.text.n : 1, MAP_LINE,
                         "expected tiled(…) after '='");
    if (!parse_next(&r->p) || !reader_expect(r, "(", "tiled") ||
        !reader_memory(r, "tiled()", &m->of, &m->ref))
        return false;
    while (token_is(&r->p.tok, ",")) {
        if (!parse_next(&r->p))
            return false;
        if (r->p.tok.kind != TOKEN_NAME)
            return PLAN_FAIL(r, r->p.tok.at, r->p.tok.text.n ? r->p.tok.text.n : 1, MAP_HAS,
                             "expected an option of the tensormap");
        if (!parse_map_option(r, m, given))
            return false;
    }
    return reader_expect(r, ")", "the options");
}

static bool parse_tensormap(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct plan_tensormap m = {.at = at, .len = r->p.lx.end - at};
    struct map_lists given = {0};
    if (c->nmaps == PLAN_MAX_MAPS)
        return PLAN_FAIL(r, at, r->p.lx.end - at, NULL, "more than %d tensormaps", PLAN_MAX_MAPS);
    if (!reader_new_name(r, "tensormap", MAP_LINE, &m.name) || !reader_expect(r, "=", "the name") ||
        !parse_tiled(r, &m, &given) || !reader_at_end(r, "tiled(…)") ||
        !check_map_ranks(r, &m, &given))
        return false;
    m.rank = given.box;
    c->maps[c->nmaps++] = m;
    return true;
}

/* ---- launch kernel<<<grid, block, shared, cluster=[x, y, z], cooperative>>>(arguments) ---- */

/* `N` or `[a, b, c]`. */
static bool parse_extent(struct plan_reader *r, struct expr *out[3]) {
    size_t n;
    if (!token_is(&r->p.tok, "["))
        return (out[0] = plan_expr_parse(r)) != NULL;
    return reader_list(r, "the launch's", out, 3, &n);
}

static bool name_ahead(const struct plan_reader *r, const char *name) {
    return r->p.tok.kind == TOKEN_NAME && str_is(r->p.tok.text, name);
}

static bool parse_cluster(struct plan_reader *r, struct plan_launch *l) {
    struct token word = r->p.tok;
    if (l->cluster[0])
        return PLAN_FAIL(r, word.at, word.text.n, NULL, "cluster is given twice");
    return parse_next(&r->p) && reader_expect(r, "=", "cluster") && parse_extent(r, l->cluster);
}

#define LAUNCH_HAS                                                                                 \
    "<<<grid, block, shared bytes, cluster=[x, y, z], cooperative>>>, the last three optional"

/* What may follow grid and block: bytes of shared memory first, then attributes. */
static bool parse_attribute(struct plan_reader *r, struct plan_launch *l) {
    struct token t = r->p.tok;
    if (name_ahead(r, "cluster"))
        return parse_cluster(r, l);
    if (name_ahead(r, "cooperative")) {
        l->cooperative = true;
        return parse_next(&r->p);
    }
    if (l->shared)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1,
                         "there are no streams: steps run one after the other",
                         "a launch has " LAUNCH_HAS);
    if (l->cluster[0] || l->cooperative)
        return PLAN_FAIL(r, t.at, t.text.n ? t.text.n : 1, LAUNCH_HAS,
                         "the bytes of shared memory stand right after the block");
    return (l->shared = plan_expr_parse(r)) != NULL;
}

static bool parse_configuration(struct plan_reader *r, struct plan_launch *l) {
    if (!reader_expect(r, "<<<", "the kernel's name") || !parse_extent(r, l->grid) ||
        !reader_expect(r, ",", "the grid") || !parse_extent(r, l->block))
        return false;
    while (token_is(&r->p.tok, ","))
        if (!parse_next(&r->p) || !parse_attribute(r, l))
            return false;
    return reader_expect(r, ">>>", "the launch configuration");
}

/* The memory an argument gives access to; ARG_INTEGER: none. */
static struct plan_arg memory_of(const struct candidate *c, const struct plan_arg *a) {
    if (a->kind != ARG_TENSORMAP)
        return *a;
    return (struct plan_arg){.kind = c->maps[a->ref].of, .ref = c->maps[a->ref].ref};
}

/* What a step that is done once is given: parameters, and workspaces, which it prepares. */
static bool take_once(struct plan_reader *r, struct token t, const struct plan_arg *a,
                      bool *prepares) {
    struct plan_arg of = memory_of(r->c, a);
    if (of.kind == ARG_WORKSPACE)
        *prepares = r->c->workspaces[of.ref].prepared = true;
    if (of.kind != ARG_TENSOR || r->task->tensors[of.ref].role == TENSOR_PARAM)
        return true;
    str name = r->task->tensors[of.ref].name;
    return PLAN_FAIL(r, t.at, t.text.n, ONCE_READS,
                     "%.*s is no parameter of the task: a step that is done once may not take it",
                     STR_ARG(name));
}

/* A name alone that is a tensor's, a workspace's or a map's, or an integer expression. */
static bool parse_argument(struct plan_reader *r, struct plan_arg *out) {
    struct token t = r->p.tok;
    *out = (struct plan_arg){.kind = ARG_INTEGER};
    if (t.kind == TOKEN_NAME)
        out->kind = plan_name_find(r, t.text, &out->ref);
    if (out->kind == ARG_INTEGER)
        return (out->value = plan_expr_parse(r)) != NULL;
    if (out->kind == ARG_TENSOR && !tensor_has_memory(&r->task->tensors[out->ref]))
        return PLAN_FAIL(r, t.at, t.text.n, "a launch is given inputs, parameters and outputs",
                         "'%.*s' is an intermediate of the task: it has no memory",
                         STR_ARG(t.text));
    if (!parse_next(&r->p))
        return false;
    if (token_is(&r->p.tok, ",") || token_is(&r->p.tok, ")") || r->p.tok.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, t.at, t.text.n, "pass it whole, and an offset as an argument of its own",
                     "'%.*s' is %s, not a number", STR_ARG(t.text), plan_kind_name(out->kind));
}

static bool parse_arguments(struct plan_reader *r, struct plan_launch *l) {
    if (!reader_expect(r, "(", "'>>>'"))
        return false;
    struct plan_arg args[CANDIDATE_MAX_ARGS];
    bool prepares = false;
    while (!token_is(&r->p.tok, ")")) {
        struct token t = r->p.tok;
        if (l->nargs == CANDIDATE_MAX_ARGS)
            return PLAN_FAIL(r, r->p.tok.at, 1, NULL, "more than %d arguments", CANDIDATE_MAX_ARGS);
        r->argument = true;
        bool read = parse_argument(r, &args[l->nargs]);
        r->argument = false;
        if (!read || (r->once && !take_once(r, t, &args[l->nargs], &prepares)))
            return false;
        l->nargs++;
        if (!token_is(&r->p.tok, ","))
            break;
        if (!parse_next(&r->p))
            return false;
        if (token_is(&r->p.tok, ")"))
            return PLAN_FAIL(r, r->p.tok.at, 1, NULL, "expected an argument after ','");
    }
    l->args = arena_array(r->p.arena, struct plan_arg, l->nargs);
    if (l->nargs)
        memcpy(l->args, args, l->nargs * sizeof *args);
    if (r->once && !prepares)
        return PLAN_FAIL(r, l->at, l->len, ONCE_READS,
                         "a launch that is done once is given no workspace to write to");
    return reader_expect(r, ")", "the arguments");
}

static bool parse_launch(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct token name = r->p.tok;
    if (name.kind != TOKEN_NAME)
        return PLAN_FAIL(r, name.at, name.text.n ? name.text.n : 1,
                         "//! launch kernel<<<grid, block>>>(x, y, N)",
                         "expected a kernel's name after launch");
    if (c->nlaunches == CANDIDATE_MAX_LAUNCHES)
        return PLAN_FAIL(r, name.at, name.text.n, NULL, "more than %d launches",
                         CANDIDATE_MAX_LAUNCHES);
    struct plan_launch *l = &c->launches[c->nlaunches];
    *l = (struct plan_launch){
        .kernel = name.text, .once = r->once, .at = at, .len = r->p.lx.end - at};
    c->steps[c->nsteps++] = (struct plan_step){PLAN_LAUNCH, c->nlaunches++};
    return parse_next(&r->p) && parse_configuration(r, l) && parse_arguments(r, l) &&
           reader_at_end(r, "the launch");
}

/* ---- once launch …, once memset … ---- */

static bool parse_once(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct token word = r->p.tok;
    bool memset = name_ahead(r, "memset");
    if (!memset && !name_ahead(r, "launch"))
        return PLAN_FAIL(r, word.at, word.text.n ? word.text.n : 1,
                         "//! once launch pack<<<grid, block>>>(w, packed, N)",
                         "expected launch or memset after once");
    if (c->once_steps < c->nsteps)
        return PLAN_FAIL(r, at, r->p.lx.end - at, "move it above the other launches and memsets",
                         "a step that is done once stands before all others");
    r->once = true;
    bool ok = parse_next(&r->p) && (memset ? parse_memset(r, at) : parse_launch(r, at));
    r->once = false;
    c->once_steps = c->nsteps;
    return ok;
}

/* ---- let, require ---- */

static bool parse_let(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct plan_let let;
    (void)at;
    if (!reader_new_name(r, "let", "//! let V = 4", &let.name) ||
        !reader_expect(r, "=", "the name") || !(let.value = plan_expr_parse(r)) ||
        !reader_at_end(r, "the value"))
        return false;
    c->lets[c->nlets++] = let;
    r->nlets = c->nlets;
    return true;
}

/* Is `node` one of the conditions that the && at the top of `e` join? No deeper than a tree is. */
static bool is_conjunct(const struct expr *e, const struct expr *node) {
    while (e->kind == EXPR_AND) { /* leans to the left, unless parentheses say otherwise */
        if (is_conjunct(e->args[1], node))
            return true;
        e = e->args[0];
    }
    return e == node;
}

static void grant(struct candidate *c, const struct plan_aligned *a) {
    uint32_t *to = a->of == ARG_TENSOR ? &c->align[a->ref] : &c->workspaces[a->ref].align;
    *to = a->bytes > *to ? a->bytes : *to;
}

static bool parse_require(struct plan_reader *r, size_t at) {
    struct candidate *c = r->c;
    struct plan_aligned aligned[PLAN_MAX_ALIGNED];
    (void)at;
    r->aligned = aligned;
    r->naligned = 0;
    struct expr *condition = plan_expr_parse(r);
    r->aligned = NULL;
    if (!condition || !reader_at_end(r, "the condition"))
        return false;
    for (size_t i = 0; i < r->naligned; i++) {
        if (!is_conjunct(condition, aligned[i].node))
            return PLAN_FAIL(r, aligned[i].node->at, aligned[i].node->len,
                             "it always holds: what it says is granted",
                             "aligned() stands alone or is joined with && at the top of a require");
        grant(c, &aligned[i]);
    }
    str text = str_trim(str_cut(r->p.lx.text, condition->at, r->p.lx.end - condition->at));
    c->requires_[c->nrequires++] = (struct plan_require){condition, text};
    return true;
}

/* ---- all lines ---- */

static const struct {
    const char *word;
    bool (*parse)(struct plan_reader *r, size_t at);
} kinds[] = {
    {"let", parse_let},       {"require", parse_require},     {"workspace", parse_workspace},
    {"memset", parse_memset}, {"tensormap", parse_tensormap}, {"launch", parse_launch},
    {"once", parse_once},
};
#define PLAN_HAS "a plan has let, require, workspace, tensormap, memset, launch and once"

static bool parse_line(struct plan_reader *r, size_t at, size_t end) {
    r->p.lx.at = at;
    r->p.lx.end = end;
    if (++r->lines > CANDIDATE_MAX_LINES)
        return PLAN_FAIL(r, at, 1, NULL, "more than %d lines of plan", CANDIDATE_MAX_LINES);
    if (!parse_next(&r->p))
        return false;
    struct token word = r->p.tok;
    if (word.kind == TOKEN_END)
        return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (word.kind == TOKEN_NAME && str_is(word.text, kinds[i].word))
            return parse_next(&r->p) && kinds[i].parse(r, word.at);
    return PLAN_FAIL(r, word.at, word.text.n, PLAN_HAS, "a plan line cannot begin with '%.*s'",
                     STR_ARG(word.text));
}

/* All `//!` lines of c->source into c, whose arrays have room for them. */
static bool plan_parse(struct candidate *c, struct arena *a, struct err *err) {
    struct plan_reader r = plan_reader_on(c->file, c->source, c->task, a, err);
    str source = c->source, rest = source, line;
    r.c = c;
    r.lets = c->lets;
    while (str_line(&rest, &line)) {
        size_t at = (size_t)(line.p - source.p), end = at + line.n;
        while (at < end && (source.p[at] == ' ' || source.p[at] == '\t'))
            at++;
        if (str_starts(str_cut(source, at, end - at), S("//!")) && !parse_line(&r, at + 3, end))
            return false;
    }
    return true;
}

/* ---- the text that is compiled ----
 *
 * Prelude, the candidate's source under its own name and line numbers, and the checks of argument
 * types, each under the number of the launch line it is about, so that a failed one reads as an
 * error of that line. */

/* The name under which NVRTC reports the source. */

static bool put_asset(const struct candidate *c, const char *name, struct buf *out,
                      struct err *err) {
    struct arena *a = arena_new(1u << 20);
    str text;
    bool ok = asset_get(c->assets, name, a, &text, err);
    if (ok)
        buf_puts(out, text);
    arena_free(a);
    return ok;
}

/* Does an earlier step of the plan have this memory to write to? The first to take an output or a
 * workspace must be able to write it; a later step may only read what an earlier one wrote. */
static bool taken_before(const struct candidate *c, size_t launch, size_t arg) {
    struct plan_arg of = memory_of(c, &c->launches[launch].args[arg]);
    for (size_t i = 0; i <= launch; i++)
        for (size_t k = 0; k < (i == launch ? arg : c->launches[i].nargs); k++) {
            struct plan_arg other = memory_of(c, &c->launches[i].args[k]);
            if (other.kind == of.kind && other.ref == of.ref)
                return true;
        }
    for (size_t i = 0; i < c->nmemsets && of.kind == ARG_WORKSPACE; i++)
        if (c->memsets[i].of == of.kind && c->memsets[i].ref == of.ref &&
            c->memsets[i].at < c->launches[launch].at)
            return true;
    return false;
}

/* A line of text that the compiler reports as the launch's own. */
static void put_line(size_t line, struct buf *out) {
    buf_printf(out, "#line %zu \"" CANDIDATE_UNIT_FILE "\"\n", line);
}

/* decltype of a call picks, from an overload set too, the function with that many arguments. */
static void put_picker(size_t launch, size_t n, struct buf *out) {
    if (n) {
        buf_puts(out, S("template <"));
        for (size_t i = 0; i < n; i++)
            buf_printf(out, "%sclass Arg%zu", i ? ", " : "", i);
        buf_puts(out, S("> "));
    }
    for (int side = 0; side < 2; side++) {
        if (side)
            buf_printf(out, "pick_%zu(void (*)(", launch);
        else
            buf_puts(out, S("__device__ arguments<"));
        for (size_t i = 0; i < n; i++)
            buf_printf(out, "%sArg%zu", i ? ", " : "", i);
        buf_puts(out, side ? S("));\n") : S("> "));
    }
    buf_printf(out, "template <class F> __device__ mismatch pick_%zu(F);\n", launch);
}

/* `name` is what the plan passes, `check` a template of checks.cuh over the parameter's type. */
static void put_assert(const struct candidate *c, size_t launch, size_t arg, const char *check,
                       str name, const char *expected, struct buf *out) {
    buf_printf(out,
               "static_assert(%s argument<%zu, of_%zu>::type>::ok, \"kernel %.*s, argument %zu "
               "(%.*s): expected %s\");\n",
               check, arg, launch, STR_ARG(c->launches[launch].kernel), arg + 1,
               STR_ARG(str_cut(name, 0, 200)), expected);
}

static void put_pointer_check(const struct candidate *c, size_t launch, size_t arg,
                              struct buf *out) {
    const struct plan_arg *a = &c->launches[launch].args[arg];
    bool tensor = a->kind == ARG_TENSOR;
    str name = tensor ? c->task->tensors[a->ref].name : c->workspaces[a->ref].name;
    enum dtype dtype = plan_memory_dtype(c, a->kind, a->ref);
    /* What is written in place may be read by a step before. */
    bool fresh = !tensor || c->task->tensors[a->ref].role == TENSOR_OUT;
    bool writes = fresh && !taken_before(c, launch, arg);
    bool keeps = !tensor && c->workspaces[a->ref].prepared && !c->launches[launch].once;
    char check[64], expected[240];
    snprintf(check, sizeof check, "%s<%s%s,",
             keeps    ? "keeps"
             : writes ? "writes"
                      : "reads",
             dtype_info(dtype)->name, dtype == DTYPE_BOOL ? "_" : "");
    snprintf(expected, sizeof expected, "a%s pointer to %s, a vector of it, or void%s",
             keeps    ? " const"
             : writes ? " non-const"
                      : "",
             dtype_info(dtype)->cuda,
             keeps ? ": only steps that are done once may write to it" : "");
    put_assert(c, launch, arg, check, name, expected, out);
}

static void put_argument_check(const struct candidate *c, size_t launch, size_t arg,
                               struct buf *out) {
    const struct plan_arg *a = &c->launches[launch].args[arg];
    if (a->kind == ARG_INTEGER)
        put_assert(c, launch, arg, "integer<", str_cut(c->source, a->value->at, a->value->len),
                   "an integer type of 4 or 8 bytes", out);
    else if (a->kind == ARG_TENSORMAP)
        put_assert(c, launch, arg, "tensormap<", c->maps[a->ref].name,
                   "const __grid_constant__ CUtensorMap, by value", out);
    else
        put_pointer_check(c, launch, arg, out);
}

static void put_launch_checks(const struct candidate *c, size_t launch, struct buf *out) {
    const struct plan_launch *l = &c->launches[launch];
    size_t line, col;
    text_position(c->source, l->at, &line, &col);
    buf_puts(out, S("namespace cutepilot_checks {\n"));
    put_picker(launch, l->nargs, out);
    put_line(line, out);
    /* Qualified: the kernel may be called what a check is called. */
    buf_printf(out, "using of_%zu = decltype(pick_%zu(&::%.*s));\n", launch, launch,
               STR_ARG(l->kernel));
    put_line(line, out);
    buf_printf(
        out,
        "static_assert(matches<of_%zu>::ok, \"kernel %.*s: the plan passes %zu arguments, the "
        "kernel takes another number\");\n",
        launch, STR_ARG(l->kernel), l->nargs);
    for (size_t i = 0; i < l->nargs; i++) {
        put_line(line, out);
        put_argument_check(c, launch, i, out);
    }
    buf_puts(out, S("}\n"));
}

bool candidate_unit(const struct candidate *c, struct buf *out, struct err *err) {
    if (!put_asset(c, "kernel/prelude.cuh", out, err))
        return false;
    str body = includes_body(c->source);
    size_t line, col;
    text_position(c->source, c->source.n - body.n, &line, &col);
    put_line(line, out);
    buf_puts(out, body);
    /* Twice: the source may end in a backslash. */
    buf_puts(out, S("\n\n#line 1 \"launch plan\"\n"));
    /* No template is declared inside a function: where a brace is missing this is the first error,
     * and the compiler quotes it. */
    buf_puts(out, S("template <int> struct a_brace_of_the_source_is_not_closed;\n"));
    if (!put_asset(c, "kernel/checks.cuh", out, err))
        return false;
    for (size_t i = 0; i < c->nlaunches; i++)
        put_launch_checks(c, i, out);
    if (out->failed)
        return err_set(err, ERR_INPUT, "%.*s: too large to compile", STR_ARG(c->file));
    return true;
}

/* ---- a candidate from its text, and what holds for its plan as a whole ---- */

static const struct {
    const char *name, *meaning;
} verdicts[VERDICT_COUNT] = {
#define VERDICT(id, name, what) [VERDICT_##id] = {name, what},
#include "kernel/verdict.def"
#undef VERDICT
};

const char *verdict_name(enum verdict v) {
    BUG_IF((unsigned)v >= VERDICT_COUNT);
    return verdicts[v].name;
}

const char *verdict_meaning(enum verdict v) {
    BUG_IF((unsigned)v >= VERDICT_COUNT);
    return verdicts[v].meaning;
}

bool verdict_find(str name, enum verdict *out) {
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (str_is(name, verdicts[v].name)) {
            *out = (enum verdict)v;
            return true;
        }
    return false;
}

/* Is it, or a map of it, an argument? */
static bool launch_takes(const struct candidate *c, const struct plan_launch *l, size_t tensor) {
    for (size_t k = 0; k < l->nargs; k++) {
        const struct plan_arg *a = &l->args[k];
        if (a->kind == ARG_TENSOR && a->ref == tensor)
            return true;
        if (a->kind == ARG_TENSORMAP && c->maps[a->ref].of == ARG_TENSOR &&
            c->maps[a->ref].ref == tensor)
            return true;
    }
    return false;
}

static bool launches_take(const struct candidate *c, size_t tensor) {
    for (size_t i = 0; i < c->nlaunches; i++)
        if (launch_takes(c, &c->launches[i], tensor))
            return true;
    return false;
}

static bool check_launches(struct candidate *c, struct err *err) {
    if (c->nlaunches == 0)
        return err_set(
            err, ERR_INPUT,
            "%.*s: it has no launch line, which says how its kernels are run\n"
            "hint: add a line like //! launch kernel<<<ceil_div(N, 256), 256>>>(x, y, N)",
            STR_ARG(c->file));
    for (size_t t = 0; t < c->task->ntensors; t++) {
        const struct tensor *tensor = &c->task->tensors[t];
        const struct plan_launch *last = &c->launches[c->nlaunches - 1];
        if (tensor_is_output(tensor) && !launches_take(c, t))
            return err_at(err, c->file, c->source, last->at, last->len,
                          "every output is an argument of some launch",
                          "output %.*s is never passed to a launch", STR_ARG(tensor->name));
    }
    return true;
}

static bool check_text(str file, str source, struct err *err) {
    if (source.n > CANDIDATE_MAX_BYTES)
        return err_set(err, ERR_INPUT, "%.*s: %zu bytes, more than the %u a candidate may have",
                       STR_ARG(file), source.n, CANDIDATE_MAX_BYTES);
    const char *nul = source.n ? memchr(source.p, 0, source.n) : NULL;
    if (nul) /* a compiler would stop reading there */
        return err_at(err, file, source, (size_t)(nul - source.p), 1,
                      "a kernel is source text, not a compiled file", "the source has a NUL byte");
    return true;
}

bool candidate_read_file(const char *path, struct arena *a, str *out, struct err *err) {
    if (!file_read(path, CANDIDATE_MAX_BYTES, a, out, err)) {
        const char *inside = arena_printf(a, "%s/kernel.cu", path).p; /* the folder of a run */
        return file_exists(inside) && err
                   ? err_set(err, err->kind, "%s\nhint: did you mean %s?", err->text, inside)
                   : false;
    }
    if (!str_trim(*out).n)
        return err_set(err, ERR_INPUT,
                       "%s: the file is empty\nhint: a kernel is device code with lines like //! "
                       "launch kernel<<<ceil_div(N, 256), 256>>>(x, y, N); see docs/KERNELS.md",
                       path);
    return check_text(str_view(path), *out, err);
}

bool candidate_parse(str file, str source, const struct task *t, struct arena *a,
                     struct candidate **out, struct err *err) {
    if (str_starts(source, S("\xef\xbb\xbf"))) /* a byte order mark, which some editors write */
        source = str_from(source, 3);
    if (!check_text(file, source, err))
        return false;
    struct candidate *c = arena_new_of(a, struct candidate);
    c->file = arena_str(a, file);
    c->source = arena_str(a, source);
    c->task = t;
    c->lets = arena_array(a, struct plan_let, CANDIDATE_MAX_LINES);
    c->requires_ = arena_array(a, struct plan_require, CANDIDATE_MAX_LINES);
    c->launches = arena_array(a, struct plan_launch, CANDIDATE_MAX_LAUNCHES);
    c->workspaces = arena_array(a, struct plan_workspace, PLAN_MAX_WORKSPACES);
    c->maps = arena_array(a, struct plan_tensormap, PLAN_MAX_MAPS);
    c->memsets = arena_array(a, struct plan_memset, PLAN_MAX_MEMSETS);
    c->steps = arena_array(a, struct plan_step, PLAN_MAX_STEPS);
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        c->align[i] = PLAN_ALIGN;
    if (!plan_parse(c, a, err) || !check_launches(c, err))
        return false;
    *out = c;
    return true;
}
