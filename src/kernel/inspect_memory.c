/* Memory at module scope is only read.
 *
 * A candidate keeps nothing between launches, and memory at module scope is the place to do so. PTX
 * does not say which of it is constant, and on a GPU even .const memory has an address that a store
 * could go to. So:
 *
 * 1. No instruction names a .global variable of the candidate's own. Those that nothing names (CuTe
 *    has such constants) are harmless. inspect_cubin.c holds the compiled code to the same.
 * 2. .const variables, and the tables that the compiler's own mathematics brings along, may be
 *    indexed: their address may go into registers, but from there only into the address of a load.
 *    A register that holds one holds nothing else; it may be moved, offset by a number,
 *    subtracted from another and compared with it for equality. Whatever else an instruction does
 * with it is refused: stores and atomics through it, storing it, passing it to a function, taking
 * it apart.
 *
 * The flow of addresses is followed through registers without regard to the order of instructions,
 * to a fixed point. Initial values that are addresses do not parse in the first place. */
#include "kernel/inspect.h"

#include <string.h>

#define FLOW_ROUNDS 64 /* code that needs more is not a compiler's */

static bool is_table(const struct ptx_var *v) {
    return v->space == PTX_CONST || library_table(v->name, v->init, v->size);
}

/* ---- what an operand refers to ---- */

struct flow {
    const struct ptx_module *m;
    const struct ptx_entry *e;
    const struct ptx_var **holds; /* by register: the table it holds a place of, or NULL */
    bool changed;
};

static const struct ptx_var *var_named(const struct flow *f, const struct ptx_operand *op) {
    const struct ptx_var *v = op->symbol == PTX_SYM_VAR          ? &f->e->vars[op->index]
                              : op->symbol == PTX_SYM_MODULE_VAR ? &f->m->vars[op->index]
                                                                 : NULL;
    return v && (v->space == PTX_CONST || v->space == PTX_GLOBAL) ? v : NULL;
}

static const struct ptx_var *held(const struct flow *f, uint32_t reg) {
    return reg < f->e->nregs ? f->holds[reg] : NULL;
}

/* Memory at module scope that the operand itself refers to, not what it groups; or NULL. */
static const struct ptx_var *reached(const struct flow *f, const struct ptx_operand *op) {
    switch (op->kind) {
    case PTX_OP_REG:
        return held(f, op->reg);
    case PTX_OP_ADDRESS:
        return op->base_is_reg ? held(f, op->reg) : var_named(f, op);
    case PTX_OP_SYMBOL:
        return var_named(f, op);
    default:
        return NULL;
    }
}

/* With its elements, which the parser nests at most four deep: the first that is a table, or that
 * is not. */
static const struct ptx_var *reached_any(const struct flow *f, const struct ptx_operand *op,
                                         bool table) {
    const struct ptx_var *v = reached(f, op);
    if (v && is_table(v) == table)
        return v;
    v = NULL;
    for (size_t i = 0; i < op->nelem && !v; i++)
        v = reached_any(f, &op->elem[i], table);
    return v;
}

static const struct ptx_var *instr_reaches(const struct flow *f, const struct ptx_instr *in,
                                           bool table) {
    const struct ptx_var *v = NULL;
    for (size_t i = 0; i < in->nops && !v; i++)
        v = reached_any(f, &in->ops[i], table);
    return v;
}

/* ---- what an instruction makes of it ---- */

static bool has_mod(const struct ptx_instr *in, const char *mod) {
    for (size_t i = 0; i < in->nmods; i++)
        if (str_is(in->mods[i], mod))
            return true;
    return false;
}

static const struct ptx_var *table(const struct flow *f, const struct ptx_instr *in, size_t i) {
    if (i >= in->nops || in->ops[i].kind == PTX_OP_ADDRESS)
        return NULL;
    const struct ptx_var *v = reached(f, &in->ops[i]);
    return v && is_table(v) ? v : NULL;
}

/* The table of which it puts a place into its first operand; NULL: it does not. */
static const struct ptx_var *makes_address(const struct flow *f, const struct ptx_instr *in) {
    const struct ptx_var *a = table(f, in, 1), *b = table(f, in, 2), *c = table(f, in, 3);
    if (str_is(in->op, "mov") || str_is(in->op, "cvta"))
        return a;
    if (str_is(in->op, "add"))
        return a && b ? NULL : a ? a : b;
    if (str_is(in->op, "sub"))
        return b ? NULL : a;
    if (str_is(in->op, "mad"))
        return a || b ? NULL : c;
    return str_is(in->op, "selp") && b ? a : NULL;
}

/* Into registers that hold no place of their own. */
static bool is_fresh(const struct flow *f, const struct ptx_operand *op) {
    return !reached_any(f, op, true) && !reached_any(f, op, false);
}

/* Two of them, for equality or their distance: nothing of where they are comes out. */
static bool compares_addresses(const struct flow *f, const struct ptx_instr *in) {
    bool equality = str_is(in->op, "setp") && (has_mod(in, "eq") || has_mod(in, "ne"));
    return (equality || str_is(in->op, "sub")) && in->nops == 3 && in->ops[0].kind == PTX_OP_REG &&
           is_fresh(f, &in->ops[0]) && table(f, in, 1) && table(f, in, 2);
}

static bool is_load(const struct flow *f, const struct ptx_instr *in) {
    return (str_is(in->op, "ld") || str_is(in->op, "ldu")) && in->nops == 2 &&
           in->ops[1].kind == PTX_OP_ADDRESS && is_fresh(f, &in->ops[0]);
}

static void spread(struct flow *f, const struct ptx_instr *in) {
    if (in->nops < 2 || in->ops[0].kind != PTX_OP_REG || in->ops[0].reg >= f->e->nregs)
        return;
    const struct ptx_var **to = &f->holds[in->ops[0].reg];
    if (!*to && (*to = makes_address(f, in)))
        f->changed = true;
}

static bool follow(struct flow *f) {
    f->changed = true;
    for (int round = 0; f->changed; round++) {
        if (round == FLOW_ROUNDS)
            return false;
        f->changed = false;
        for (size_t i = 0; i < f->e->ninstrs; i++)
            spread(f, &f->e->instrs[i]);
    }
    return true;
}

/* ---- the verdict ---- */

static enum verdict refuse_own(const struct candidate *c, const struct flow *f,
                               const struct ptx_instr *in, const struct ptx_var *v,
                               struct err *why) {
    err_set(why, ERR_INPUT,
            "a candidate may not have writable memory at file scope: '%.*s' (kernel %.*s, line %u "
            "of %.*s)\nhint: tables of constants are declared __constant__, memory that several "
            "launches share is a workspace of the plan",
            STR_ARG(v->name), STR_ARG(f->e->name), in->src_line, STR_ARG(c->file));
    return VERDICT_FORBIDDEN;
}

static enum verdict refuse_table(const struct candidate *c, const struct flow *f,
                                 const struct ptx_instr *in, const struct ptx_var *v,
                                 struct err *why) {
    err_set(why, ERR_INPUT,
            "a table of constants may only be read: '%.*s' by '%.*s' (kernel %.*s, line %u of "
            "%.*s)\nhint: index the table where it is used, and pass no pointer to it on",
            STR_ARG(v->name), STR_ARG(str_cut(in->text, 0, 200)), STR_ARG(f->e->name), in->src_line,
            STR_ARG(c->file));
    return VERDICT_FORBIDDEN;
}

static enum verdict inspect_instr(const struct candidate *c, const struct flow *f,
                                  const struct ptx_instr *in, struct err *why) {
    const struct ptx_var *own = instr_reaches(f, in, false), *tab = instr_reaches(f, in, true);
    if (own)
        return refuse_own(c, f, in, own, why);
    if (!tab || is_load(f, in))
        return VERDICT_ACCEPTED;
    if (compares_addresses(f, in) || (in->ops[0].kind == PTX_OP_REG && makes_address(f, in)))
        return VERDICT_ACCEPTED;
    return refuse_table(c, f, in, tab, why);
}

static enum verdict inspect_entry(const struct candidate *c, struct flow *f, struct err *why) {
    enum verdict v = VERDICT_ACCEPTED;
    if (!follow(f)) {
        err_set(why, ERR_INPUT, "kernel %.*s: the use of its tables of constants is too tangled",
                STR_ARG(f->e->name));
        return VERDICT_FORBIDDEN;
    }
    for (size_t i = 0; i < f->e->ninstrs && v == VERDICT_ACCEPTED; i++)
        v = inspect_instr(c, f, &f->e->instrs[i], why);
    return v;
}

enum verdict inspect_memory(const struct candidate *c, const struct ptx_module *m,
                            struct err *why) {
    enum verdict v = VERDICT_ACCEPTED;
    for (size_t i = 0; i < m->nentries && v == VERDICT_ACCEPTED; i++) {
        struct flow f = {.m = m, .e = &m->entries[i]};
        f.holds = mem_alloc((f.e->nregs + 1) * sizeof *f.holds);
        v = inspect_entry(c, &f, why);
        mem_free(f.holds);
    }
    return v;
}
