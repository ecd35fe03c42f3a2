/* The `//!` lines of a candidate, bound to the names of its task: lets and requires, and what holds
 * for the plan as a whole. Workspaces, memsets and tensor maps are read in plan_memory.c, launches
 * in plan_launch.c. */
#include "kernel/candidate.h"

#include "base/file.h"
#include "kernel/plan.h"
#include <string.h>

struct parse {
    struct plan_reader r;
    size_t lines;
};

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

/* ---- the whole ---- */

static const struct {
    const char *word;
    bool (*parse)(struct plan_reader *r, size_t at);
} kinds[] = {
    {"let", parse_let},       {"require", parse_require},     {"workspace", parse_workspace},
    {"memset", parse_memset}, {"tensormap", parse_tensormap}, {"launch", parse_launch},
};
#define PLAN_HAS "a plan has let, require, workspace, tensormap, memset and launch"

static bool parse_line(struct parse *p, size_t at, size_t end) {
    struct plan_reader *r = &p->r;
    r->p.lx.at = at;
    r->p.lx.end = end;
    if (++p->lines > CANDIDATE_MAX_LINES)
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

static bool parse_lines(struct parse *p) {
    str source = p->r.p.lx.text, rest = source, line;
    while (str_line(&rest, &line)) {
        size_t at = (size_t)(line.p - source.p), end = at + line.n;
        while (at < end && (source.p[at] == ' ' || source.p[at] == '\t'))
            at++;
        if (str_starts(str_cut(source, at, end - at), S("//!")) && !parse_line(p, at + 3, end))
            return false;
    }
    return true;
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
            "%.*s: no launch: a candidate says how its kernels run\n"
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
    if (!file_read(path, CANDIDATE_MAX_BYTES, a, out, err))
        return false;
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
    struct parse p = {.r = plan_reader_on(c->file, c->source, t, a, err)};
    p.r.c = c;
    p.r.lets = c->lets;
    if (!parse_lines(&p) || !check_launches(c, err))
        return false;
    *out = c;
    return true;
}
