/* Static checks on the PTX, and the layout of a launch's arguments.
 *
 * A candidate keeps nothing between launches. Memory at module scope is the place to do so, and PTX
 * does not say which of it is constant; so a .global variable may only be read, by a load that
 * names it. Then its address never reaches a register and nothing can write it. Variables that no
 * instruction names (CuTe has such constants) are harmless. Tables belong in __constant__ memory.
 * The one exception is the tables of the compiler's own mathematics, which it indexes. */
#include "kernel/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PARAMS_MAX 4096

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

static enum verdict check_params(const struct candidate *c, const struct plan_launch *l,
                                 const struct ptx_entry *e, struct err *why) {
    char what[256];
    if (e->nparams != l->nargs) {
        snprintf(what, sizeof what, "kernel '%.*s' takes %zu arguments, the plan passes %zu",
                 STR_ARG(l->kernel), e->nparams, l->nargs);
        return bad_plan(c, l, why, NULL, what);
    }
    for (size_t i = 0; i < l->nargs; i++) {
        size_t size = e->params[i].size;
        bool tensor = l->args[i].tensor >= 0;
        if (size == 8 || (!tensor && size == 4))
            continue;
        snprintf(what, sizeof what, "kernel '%.*s', argument %zu: has %zu bytes, expected %s",
                 STR_ARG(l->kernel), i + 1, size,
                 tensor ? "a pointer of 8" : "an integer of 4 or 8");
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

/* What sin, cos and tan reduce large arguments with, as libdevice brings it along. A candidate that
 * gives these names to tables of its own gains no memory: they must have initial values, which the
 * simulator lays out read-only as all of .global, so that a store to one is a fault. */
static const struct {
    const char *name;
    size_t size;
} library_tables[] = {
    {"__cudart_i2opi_f", 24},
    {"__cudart_i2opi_d", 144},
    {"__cudart_sin_cos_coeffs", 128},
};

static bool is_library_table(const struct ptx_var *v) {
    for (size_t i = 0; i < sizeof library_tables / sizeof *library_tables; i++)
        if (str_is(v->name, library_tables[i].name))
            return v->init && v->size == library_tables[i].size;
    return false;
}

/* A .global variable that the candidate, not the library, put there. */
static bool is_own_global(const struct ptx_module *m, const struct ptx_entry *e, str name) {
    for (size_t i = 0; i < e->nvars; i++)
        if (str_eq(e->vars[i].name, name))
            return e->vars[i].space == PTX_GLOBAL; /* hides one of the module */
    for (size_t i = 0; i < m->nvars; i++)
        if (str_eq(m->vars[i].name, name))
            return m->vars[i].space == PTX_GLOBAL && !is_library_table(&m->vars[i]);
    return false;
}

/* The name of a global that this operand refers to; an operand's elements have none of their own.
 */
static bool names_global(const struct ptx_module *m, const struct ptx_entry *e,
                         const struct ptx_operand *op, str *name) {
    for (size_t i = 0; i < op->nelem; i++)
        if (op->elem[i].kind != PTX_OP_REG && op->elem[i].name.n &&
            is_own_global(m, e, op->elem[i].name)) {
            *name = op->elem[i].name;
            return true;
        }
    if ((op->kind != PTX_OP_SYMBOL && op->kind != PTX_OP_ADDRESS) || !op->name.n ||
        !is_own_global(m, e, op->name))
        return false;
    *name = op->name;
    return true;
}

static enum verdict check_instr(const struct candidate *c, const struct ptx_module *m,
                                const struct ptx_entry *e, const struct ptx_instr *in,
                                struct err *why) {
    str name;
    for (size_t i = 0; i < in->nops; i++) {
        if (!names_global(m, e, &in->ops[i], &name))
            continue;
        if (str_is(in->op, "ld") && in->ops[i].kind == PTX_OP_ADDRESS)
            continue;
        err_set(why, ERR_INPUT,
                "a candidate may not have writable memory at file scope: '%.*s' (kernel %.*s, line "
                "%u of %.*s)\nhint: tables of constants are declared __constant__",
                STR_ARG(name), STR_ARG(e->name), in->src_line, STR_ARG(c->file));
        return VERDICT_FORBIDDEN;
    }
    return VERDICT_ACCEPTED;
}

static enum verdict check_globals(const struct candidate *c, const struct ptx_module *m,
                                  struct err *why) {
    for (size_t i = 0; i < m->nentries; i++)
        for (size_t k = 0; k < m->entries[i].ninstrs; k++) {
            enum verdict v = check_instr(c, m, &m->entries[i], &m->entries[i].instrs[k], why);
            if (v != VERDICT_ACCEPTED)
                return v;
        }
    return VERDICT_ACCEPTED;
}

enum verdict ptx_inspect(const struct candidate *c, const struct ptx_module *m, struct err *why) {
    enum verdict v = check_externs(m, why);
    if (v == VERDICT_ACCEPTED)
        v = check_globals(c, m, why);
    for (size_t i = 0; i < c->nlaunches && v == VERDICT_ACCEPTED; i++)
        v = check_launch(c, m, &c->launches[i], why);
    return v;
}

/* ---- arguments ---- */

static bool argument_bytes(const struct bound_launch *l, size_t i, const struct ptx_param *p,
                           const uint64_t *addresses, uint64_t *out, struct err *err) {
    const struct bound_arg *a = &l->args[i];
    *out = a->tensor >= 0 ? addresses[a->tensor] : (uint64_t)a->value;
    if (p->size == 8)
        return true;
    if (a->tensor >= 0 || p->size != 4)
        return err_set(err, ERR_INPUT, "kernel %.*s, argument %zu: a parameter of %zu bytes",
                       STR_ARG(l->kernel), i + 1, p->size);
    /* PTX does not keep whether it is signed, and as an int it would turn negative. */
    if (a->value < INT32_MIN || a->value > INT32_MAX)
        return err_set(err, ERR_INPUT,
                       "kernel %.*s, argument %zu: %" PRId64 " does not fit an int of 4 bytes\n"
                       "hint: make the parameter 64 bits",
                       STR_ARG(l->kernel), i + 1, a->value);
    return true;
}

bool launch_params(const struct bound_launch *l, const struct ptx_entry *e,
                   const uint64_t *addresses, uint8_t *params, size_t *size, struct err *err) {
    size_t at = 0;
    if (e->nparams != l->nargs)
        return err_set(err, ERR_INPUT, "kernel %.*s takes %zu arguments, the plan passes %zu",
                       STR_ARG(l->kernel), e->nparams, l->nargs);
    memset(params, 0, PARAMS_MAX);
    for (size_t i = 0; i < l->nargs; i++) {
        const struct ptx_param *p = &e->params[i];
        uint64_t bits;
        if (!argument_bytes(l, i, p, addresses, &bits, err))
            return false;
        size_t align = p->align > p->size ? p->align : p->size;
        at = (at + align - 1) / align * align;
        if (at + p->size > PARAMS_MAX)
            return err_set(err, ERR_INPUT, "kernel %.*s: more than %d bytes of arguments",
                           STR_ARG(l->kernel), PARAMS_MAX);
        memcpy(params + at, &bits, p->size); /* little endian, as the device is */
        at += p->size;
    }
    *size = at;
    return true;
}
