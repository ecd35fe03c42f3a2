/* `launch kernel<<<grid, block, shared, cluster=[x, y, z], cooperative>>>(arguments)`. */
#include "kernel/plan.h"

#include <string.h>

/* ---- the configuration ---- */

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

/* ---- arguments ---- */

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
    while (!token_is(&r->p.tok, ")")) {
        if (l->nargs == CANDIDATE_MAX_ARGS)
            return PLAN_FAIL(r, r->p.tok.at, 1, NULL, "more than %d arguments", CANDIDATE_MAX_ARGS);
        if (!parse_argument(r, &args[l->nargs++]))
            return false;
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
    return reader_expect(r, ")", "the arguments");
}

bool parse_launch(struct plan_reader *r, size_t at) {
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
    *l = (struct plan_launch){.kernel = name.text, .at = at, .len = r->p.lx.end - at};
    c->steps[c->nsteps++] = (struct plan_step){PLAN_LAUNCH, c->nlaunches++};
    return parse_next(&r->p) && parse_configuration(r, l) && parse_arguments(r, l) &&
           reader_at_end(r, "the launch");
}
