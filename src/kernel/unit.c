/* The text that is compiled: prelude, the candidate's source under its own name and line numbers,
 * and the checks of argument types, each under the number of the launch line it is about, so that a
 * failed one reads as an error of that line. */
#include "kernel/candidate.h"

#include "base/asset.h"
#include "kernel/plan.h"
#include <stdio.h>

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

/* The memory an argument gives access to; ARG_INTEGER: none. */
static struct plan_arg memory_of(const struct candidate *c, const struct plan_arg *a) {
    if (a->kind != ARG_TENSORMAP)
        return *a;
    return (struct plan_arg){.kind = c->maps[a->ref].of, .ref = c->maps[a->ref].ref};
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
    char check[64], expected[160];
    snprintf(check, sizeof check, "%s<%s%s,", writes ? "writes" : "reads", dtype_info(dtype)->name,
             dtype == DTYPE_BOOL ? "_" : "");
    snprintf(expected, sizeof expected, "a%s pointer to %s, a vector of it, or void",
             writes ? " non-const" : "", dtype_info(dtype)->cuda);
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
    buf_puts(out, S("#line 1 \"" CANDIDATE_UNIT_FILE "\"\n"));
    buf_puts(out, c->source);
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
