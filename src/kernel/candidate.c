/* A candidate from its text, and what holds for its plan as a whole. The lines are read in plan.c.
 */
#include "kernel/candidate.h"

#include "base/file.h"
#include "kernel/plan.h"
#include <string.h>

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
    if (!plan_parse(c, a, err) || !check_launches(c, err))
        return false;
    *out = c;
    return true;
}
