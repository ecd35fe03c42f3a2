/* Static checks on the PTX, and the layout of a launch's arguments. That memory at module scope is
 * only read is inspect_memory.c's. */
#include "kernel/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the plan's kernels ---- */

/* relu in _Z4reluPKfPfi: the kernel is there, but with C++ linkage. */
static bool looks_mangled(const struct ptx_module *m, str kernel) {
    for (size_t i = 0; i < m->nentries; i++) {
        str name = m->entries[i].name;
        if (str_starts(name, S("_Z")) && str_find(name, kernel) < name.n)
            return true;
    }
    return false;
}

static enum verdict bad_plan(const struct candidate *c, const struct plan_launch *l,
                             struct err *why, const char *hint, const char *what) {
    err_at(why, c->file, c->source, l->at, l->len, hint, "%s", what);
    return VERDICT_BAD_PLAN;
}

/* NULL: the parameter has the room for such an argument. */
static const char *param_wants(enum arg_kind kind, const struct ptx_param *p) {
    switch (kind) {
    case ARG_INTEGER:
        return p->size == 4 || p->size == 8 ? NULL : "an integer of 4 or 8";
    case ARG_TENSORMAP:
        return p->size == TENSORMAP_BYTES && p->align >= TENSORMAP_ALIGN
                   ? NULL
                   : "a CUtensorMap of 128, by value and aligned to 64 or more";
    default:
        return p->size == 8 ? NULL : "a pointer of 8";
    }
}

static enum verdict check_params(const struct candidate *c, const struct plan_launch *l,
                                 const struct ptx_entry *e, struct err *why) {
    char what[256];
    if (e->nparams != l->nargs) {
        snprintf(what, sizeof what, "kernel '%.*s' takes %zu arguments, the plan passes %zu",
                 STR_ARG(l->kernel), e->nparams, l->nargs);
        return bad_plan(c, l, why, NULL, what);
    }
    for (size_t i = 0; i < l->nargs; i++) {
        const struct ptx_param *p = &e->params[i];
        const char *expected = param_wants(l->args[i].kind, p);
        if (!expected)
            continue;
        snprintf(what, sizeof what, "kernel '%.*s', argument %zu: has %zu bytes, expected %s",
                 STR_ARG(l->kernel), i + 1, p->size, expected);
        return bad_plan(c, l, why, NULL, what);
    }
    return VERDICT_ACCEPTED;
}

static enum verdict check_launch(const struct candidate *c, const struct ptx_module *m,
                                 const struct plan_launch *l, struct err *why) {
    const struct ptx_entry *e = ptx_find_entry(m, l->kernel);
    if (e && e->is_kernel)
        return check_params(c, l, e, why);
    char what[256];
    snprintf(what, sizeof what, "kernel '%.*s' not found in the PTX%s", STR_ARG(l->kernel),
             e                             ? ": it is a __device__ function"
             : looks_mangled(m, l->kernel) ? " under this name: it has C++ linkage"
                                           : "");
    return bad_plan(c, l, why, "declare it extern \"C\" __global__ void", what);
}

/* ---- what is forbidden ---- */

static const struct {
    const char *name, *is;
} known_externs[] = {
    {"vprintf", "printf"},
    {"__assertfail", "assert"},
    {"malloc", "device malloc"},
    {"free", "device free"},
};

static enum verdict check_externs(const struct ptx_module *m, struct err *why) {
    for (size_t i = 0; i < m->nexterns; i++) {
        str name = m->externs[i];
        for (size_t k = 0; k < sizeof known_externs / sizeof *known_externs; k++)
            if (str_is(name, known_externs[k].name)) {
                err_set(why, ERR_INPUT, "a candidate may not use %s", known_externs[k].is);
                return VERDICT_FORBIDDEN;
            }
        bool launch = str_starts(name, S("cuda")) || str_starts(name, S("__cuda"));
        err_set(why, ERR_INPUT,
                launch ? "a candidate may not launch kernels or call the runtime (%.*s)"
                       : "a candidate may not call a function it does not define (%.*s)",
                STR_ARG(name));
        return VERDICT_FORBIDDEN;
    }
    return VERDICT_ACCEPTED;
}

enum verdict ptx_inspect(const struct candidate *c, const struct ptx_module *m, struct err *why) {
    enum verdict v = check_externs(m, why);
    if (v == VERDICT_ACCEPTED)
        v = inspect_memory(c, m, why);
    for (size_t i = 0; i < c->nlaunches && v == VERDICT_ACCEPTED; i++)
        v = check_launch(c, m, &c->launches[i], why);
    return v;
}

/* ---- arguments ---- */

static bool integer_fits(const struct bound_launch *l, size_t i, const struct ptx_param *p,
                         struct err *err) {
    int64_t v = l->args[i].value;
    /* PTX does not keep whether it is signed, and as an int it would turn negative. */
    if (p->size == 8 || (v >= INT32_MIN && v <= INT32_MAX))
        return true;
    return err_set(err, ERR_INPUT,
                   "kernel %.*s, argument %zu: %" PRId64 " does not fit an int of 4 bytes\n"
                   "hint: make the parameter 64 bits",
                   STR_ARG(l->kernel), i + 1, v);
}

/* The parameter's bytes, little endian as the device is; NULL: err says why there are none. */
static const void *argument_bytes(const struct bound_launch *l, size_t i, const struct ptx_param *p,
                                  const struct launch_memory *m, struct err *err) {
    const struct bound_arg *a = &l->args[i];
    if (param_wants(a->kind, p)) {
        err_set(err, ERR_INPUT, "kernel %.*s, argument %zu: a parameter of %zu bytes, expected %s",
                STR_ARG(l->kernel), i + 1, p->size, param_wants(a->kind, p));
        return NULL;
    }
    switch (a->kind) {
    case ARG_TENSOR:
        return &m->tensors[a->ref];
    case ARG_WORKSPACE:
        return &m->workspaces[a->ref];
    case ARG_TENSORMAP:
        return m->maps[a->ref];
    case ARG_INTEGER:
        break;
    }
    return integer_fits(l, i, p, err) ? &a->value : NULL;
}

bool launch_params(const struct bound_launch *l, const struct ptx_entry *e,
                   const struct launch_memory *m, uint8_t *params, size_t *size, struct err *err) {
    size_t at = 0;
    if (e->nparams != l->nargs)
        return err_set(err, ERR_INPUT, "kernel %.*s takes %zu arguments, the plan passes %zu",
                       STR_ARG(l->kernel), e->nparams, l->nargs);
    memset(params, 0, PARAMS_MAX);
    for (size_t i = 0; i < l->nargs; i++) {
        const struct ptx_param *p = &e->params[i];
        const void *bytes = argument_bytes(l, i, p, m, err);
        if (!bytes)
            return false;
        size_t align = p->align ? p->align : 1;
        at = (at + align - 1) / align * align;
        if (at + p->size > PARAMS_MAX)
            return err_set(err, ERR_INPUT, "kernel %.*s: more than %d bytes of arguments",
                           STR_ARG(l->kernel), PARAMS_MAX);
        memcpy(params + at, bytes, p->size);
        at += p->size;
    }
    *size = at;
    return true;
}
