/* The `//!` lines of a candidate: let, require and launch, bound to the names of its task. */
#include "kernel/candidate.h"

#include "kernel/plan.h"
#include <stdio.h>
#include <string.h>

struct parse {
    struct plan_reader r;
    struct candidate *c;
    size_t lines;
};

/* ---- let, require ---- */

static bool at_end(struct plan_reader *r, const char *after) {
    if (r->token.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, r->token.at, r->token.text.n, NULL, "unexpected '%.*s' after %s",
                     STR_ARG(r->token.text), after);
}

static bool let_name_free(struct parse *p, struct token name) {
    struct plan_reader *r = &p->r;
    const char *taken = NULL;
    if (plan_name_is_function(name.text))
        taken = "a function of plans";
    else if (plan_dim_find(r->task, name.text) >= 0)
        taken = "a dimension of the task";
    else if (tensor_find(r->task, name.text) >= 0)
        taken = "a tensor of the task";
    for (size_t i = 0; i < p->c->nlets; i++)
        if (str_eq(p->c->lets[i].name, name.text))
            taken = "already a let";
    if (!taken)
        return true;
    return PLAN_FAIL(r, name.at, name.text.n, "choose another name", "'%.*s' is %s",
                     STR_ARG(name.text), taken);
}

static bool parse_let(struct parse *p) {
    struct plan_reader *r = &p->r;
    struct token name = r->token;
    if (name.kind != TOKEN_NAME)
        return PLAN_FAIL(r, name.at, 1, "//! let V = 4", "expected a name after let");
    struct plan_expr *value;
    if (!let_name_free(p, name) || !reader_next(r) || !reader_expect(r, "=", "the name") ||
        !(value = plan_expr_parse(r)) || !at_end(r, "the value"))
        return false;
    p->c->lets[p->c->nlets++] = (struct plan_let){name.text, value};
    r->nlets = p->c->nlets;
    return true;
}

static bool parse_require(struct parse *p) {
    struct plan_reader *r = &p->r;
    struct plan_expr *condition = plan_expr_parse(r);
    if (!condition || !at_end(r, "the condition"))
        return false;
    str text = str_trim(str_cut(r->source, condition->at, r->end - condition->at));
    p->c->requires_[p->c->nrequires++] = (struct plan_require){condition, text};
    return true;
}

/* ---- launch ---- */

/* `N` or `[a, b, c]`. */
static bool parse_extent(struct plan_reader *r, struct plan_expr *out[3]) {
    if (!reader_is(r, "["))
        return (out[0] = plan_expr_parse(r)) != NULL;
    size_t at = r->token.at;
    for (int i = 0; i < 3; i++) {
        if (!reader_next(r) || !(out[i] = plan_expr_parse(r)))
            return false;
        if (reader_is(r, "]"))
            return reader_next(r);
        if (!reader_is(r, ","))
            return reader_expect(r, "]", "the extents");
    }
    return PLAN_FAIL(r, at, r->token.at - at, NULL, "more than three extents");
}

static bool parse_shared(struct plan_reader *r, struct plan_expr **out) {
    struct token name = r->token;
    if (name.kind == TOKEN_NAME && str_is(name.text, "cluster"))
        return PLAN_FAIL(
            r, name.at, name.text.n,
            "this version's plan has let, require and launch; a launch has grid, block "
            "and bytes of dynamic shared memory",
            "clusters cannot be planned");
    return (*out = plan_expr_parse(r)) != NULL;
}

static bool parse_configuration(struct plan_reader *r, struct plan_launch *l) {
    if (!reader_expect(r, "<<<", "the kernel's name") || !parse_extent(r, l->grid) ||
        !reader_expect(r, ",", "the grid") || !parse_extent(r, l->block))
        return false;
    if (reader_is(r, ",") && (!reader_next(r) || !parse_shared(r, &l->shared)))
        return false;
    if (reader_is(r, ","))
        return PLAN_FAIL(r, r->token.at, 1, "there are no streams: steps run one after the other",
                         "a launch has grid, block and bytes of dynamic shared memory");
    return reader_expect(r, ">>>", "the launch configuration");
}

/* A name alone that is a tensor's, or an integer expression. */
static bool parse_argument(struct plan_reader *r, struct plan_arg *out) {
    *out = (struct plan_arg){.tensor = -1};
    struct token t = r->token;
    int tensor = t.kind == TOKEN_NAME ? tensor_find(r->task, t.text) : -1;
    if (tensor < 0)
        return (out->value = plan_expr_parse(r)) != NULL;
    if (!tensor_has_memory(&r->task->tensors[tensor]))
        return PLAN_FAIL(r, t.at, t.text.n, "a launch is given inputs, parameters and outputs",
                         "'%.*s' is an intermediate of the task: it has no memory",
                         STR_ARG(t.text));
    out->tensor = tensor;
    if (!reader_next(r))
        return false;
    if (reader_is(r, ",") || reader_is(r, ")") || r->token.kind == TOKEN_END)
        return true;
    return PLAN_FAIL(r, t.at, t.text.n, "a tensor can only be a whole argument of a launch",
                     "'%.*s' is a tensor, not a number", STR_ARG(t.text));
}

static bool parse_arguments(struct plan_reader *r, struct plan_launch *l) {
    if (!reader_expect(r, "(", "'>>>'"))
        return false;
    struct plan_arg args[CANDIDATE_MAX_ARGS];
    while (!reader_is(r, ")")) {
        if (l->nargs == CANDIDATE_MAX_ARGS)
            return PLAN_FAIL(r, r->token.at, 1, NULL, "more than %d arguments", CANDIDATE_MAX_ARGS);
        if (!parse_argument(r, &args[l->nargs++]))
            return false;
        if (!reader_is(r, ","))
            break;
        if (!reader_next(r))
            return false;
        if (reader_is(r, ")"))
            return PLAN_FAIL(r, r->token.at, 1, NULL, "expected an argument after ','");
    }
    l->args = arena_array(r->arena, struct plan_arg, l->nargs);
    if (l->nargs)
        memcpy(l->args, args, l->nargs * sizeof *args);
    return reader_expect(r, ")", "the arguments");
}

static bool parse_launch(struct parse *p, size_t line_at) {
    struct plan_reader *r = &p->r;
    struct candidate *c = p->c;
    struct token name = r->token;
    if (name.kind != TOKEN_NAME)
        return PLAN_FAIL(r, name.at, name.text.n ? name.text.n : 1,
                         "//! launch kernel<<<grid, block>>>(x, y, N)",
                         "expected a kernel's name after launch");
    if (c->nlaunches == CANDIDATE_MAX_LAUNCHES)
        return PLAN_FAIL(r, name.at, name.text.n, NULL, "more than %d launches",
                         CANDIDATE_MAX_LAUNCHES);
    struct plan_launch *l = &c->launches[c->nlaunches++];
    l->kernel = name.text;
    l->at = line_at;
    l->len = r->end - line_at;
    return reader_next(r) && parse_configuration(r, l) && parse_arguments(r, l) &&
           at_end(r, "the launch");
}

/* ---- the whole ---- */

#define PLAN_HAS "this version's plan has let, require and launch"

static bool parse_line(struct parse *p, size_t at, size_t end) {
    struct plan_reader *r = &p->r;
    r->at = at;
    r->end = end;
    if (++p->lines > CANDIDATE_MAX_LINES)
        return PLAN_FAIL(r, at, 1, NULL, "more than %d lines of plan", CANDIDATE_MAX_LINES);
    if (!reader_next(r))
        return false;
    struct token word = r->token;
    if (word.kind == TOKEN_END)
        return true;
    if (word.kind != TOKEN_NAME)
        return PLAN_FAIL(r, word.at, word.text.n, PLAN_HAS, "expected let, require or launch");
    bool known =
        str_is(word.text, "let") || str_is(word.text, "require") || str_is(word.text, "launch");
    if (!known)
        return PLAN_FAIL(r, word.at, word.text.n, PLAN_HAS, "a plan has no '%.*s'",
                         STR_ARG(word.text));
    if (!reader_next(r))
        return false;
    return str_is(word.text, "let")       ? parse_let(p)
           : str_is(word.text, "require") ? parse_require(p)
                                          : parse_launch(p, word.at);
}

static bool parse_lines(struct parse *p) {
    str source = p->c->source, rest = source, line;
    while (str_line(&rest, &line)) {
        size_t at = (size_t)(line.p - source.p), end = at + line.n;
        while (at < end && (source.p[at] == ' ' || source.p[at] == '\t'))
            at++;
        if (str_starts(str_cut(source, at, end - at), S("//!")) && !parse_line(p, at + 3, end))
            return false;
    }
    return true;
}

static bool launches_take(const struct candidate *c, size_t tensor) {
    for (size_t i = 0; i < c->nlaunches; i++)
        for (size_t k = 0; k < c->launches[i].nargs; k++)
            if (c->launches[i].args[k].tensor == (int)tensor)
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
        return err_at(err, file, source, (size_t)(nul - source.p), 1, NULL,
                      "the source has a NUL byte");
    return true;
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
    struct parse p = {.c = c,
                      .r = {.file = c->file,
                            .source = c->source,
                            .task = t,
                            .lets = c->lets,
                            .arena = a,
                            .err = err}};
    if (!parse_lines(&p) || !check_launches(c, err))
        return false;
    *out = c;
    return true;
}
