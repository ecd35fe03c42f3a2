/* The lines of a plan that are about memory: workspace, memset and tensormap. */
#include "kernel/plan.h"

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

bool parse_workspace(struct plan_reader *r, size_t at) {
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

static bool may_memset(struct plan_reader *r, struct token name, const struct plan_memset *m) {
    if (m->of == ARG_WORKSPACE || tensor_is_output(&r->task->tensors[m->ref]))
        return true;
    return PLAN_FAIL(r, name.at, name.text.n, "a memset is of a workspace or an output",
                     "'%.*s' is an input of the task", STR_ARG(name.text));
}

bool parse_memset(struct plan_reader *r, size_t at) {
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

bool parse_tensormap(struct plan_reader *r, size_t at) {
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
