/* Static checks on the PTX, and the layout of a launch's arguments. Memory at
 * module scope is only read: the PTX is held to that, and so is the cubin. */
#include "kernel/inspect.h"

#include "kernel/cubin.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- tables of the compiler's own mathematics ----
 *
 * What sin, cos and tan reduce large arguments with, as libdevice brings it along: memory of the
 * module in .global, because .const has no room to spare. Anybody could define a variable of that
 * name, so its content counts too: these are mathematical constants, the same in every release. */

/* 2/pi as a fixed-point number of 1,152 bits, the lowest word first. */
static const uint64_t two_over_pi[] = {
    0x6bfb5fb11f8d5d08, 0x3d0739f78a5292ea, 0x7527bac7ebe5f17b, 0x4f463f669e5fea2d,
    0x6d367ecf27cb09b7, 0xef2f118b5a0a6d1f, 0x1ff897ffde05980f, 0x9c845f8bbdf9283b,
    0x3991d639835339f4, 0xe99c7026b45f7e41, 0xe88235f52ebb4484, 0xfe1deb1cb129a73e,
    0x06492eea09d1921c, 0xb7246e3a424dd2e0, 0xfe5163abdebbc561, 0xdb6295993c439041,
    0xfc2757d1f534ddc0, 0xa2f9836e4e441529,
};

/* Coefficients of the polynomials for the sine and the cosine, as doubles. */
static const uint64_t sin_cos[] = {
    0xbe5ae5f12cb0d246, 0x3ec71de369ace392, 0xbf2a01a019db62a1, 0x3f81111111110818,
    0xbfc5555555555554, 0x0000000000000000, 0x0000000000000000, 0xbda8ff8320fd8164,
    0x3e21eea7c1ef8528, 0xbe927e4f8e06e6d9, 0x3efa01a019ddbce9, 0xbf56c16c16c15d47,
    0x3fa5555555555551, 0xbfe0000000000000, 0x3ff0000000000000, 0x0000000000000000,
};

static const struct {
    const char *name;
    const uint64_t *words;
    size_t size;
} tables[] = {
    {"__cudart_i2opi_f", two_over_pi + 15, 24}, /* the highest 192 bits are enough for a float */
    {"__cudart_i2opi_d", two_over_pi, sizeof two_over_pi},
    {"__cudart_sin_cos_coeffs", sin_cos, sizeof sin_cos},
};

bool library_table(str name, const uint8_t *init, size_t size) {
    for (size_t i = 0; init && i < sizeof tables / sizeof *tables; i++)
        if (str_is(name, tables[i].name))
            return size == tables[i].size && memcmp(init, tables[i].words, size) == 0;
    return false;
}

/* ---- memory at module scope is only read ----
 *
 * A candidate keeps nothing between launches, and memory at module scope is the place to do so. PTX
 * does not say which of it is constant, and on a GPU even .const memory has an address that a store
 * could go to. So:
 *
 * 1. No instruction names a .global variable of the candidate's own. Those that nothing names (CuTe
 *    has such constants) are harmless. The compiled code is held to the same below.
 * 2. .const variables, and the tables that the compiler's own mathematics brings along, may be
 *    indexed: their address may go into registers, but from there only into the address of a load.
 *    A register that holds one holds nothing else; it may be moved, offset by a number,
 *    subtracted from another and compared with it for equality. Whatever else an instruction does
 * with it is refused: stores and atomics through it, storing it, passing it to a function, taking
 * it apart.
 *
 * The flow of addresses is followed through registers without regard to the order of instructions,
 * to a fixed point. Initial values that are addresses do not parse in the first place. */

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

static const struct ptx_var *table(const struct flow *f, const struct ptx_instr *in, size_t i) {
    if (i >= in->nops || in->ops[i].kind == PTX_OP_ADDRESS)
        return NULL;
    const struct ptx_var *v = reached(f, &in->ops[i]);
    return v && is_table(v) ? v : NULL;
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

/* ---- memory that outlives a launch, by the cubin itself ----
 *
 * The PTX was read as we understand it; what runs is what ptxas understood. So the variables that
 * the cubin places in writable memory are judged without that understanding. Two kinds are
 * harmless:
 *
 * 1. The tables of the compiler's own mathematics, by name, size and content.
 * 2. Variables without a user: no relocation of code refers to them, and their name stands once in
 *    the PTX, where they are declared. Code can only reach a variable by its name, so this needs
 *    words to be told apart and nothing more. Variables declared inside a function get another name
 *    in the cubin, which stands nowhere, and are refused. */

struct words {
    const struct cubin_variable *vars;
    size_t n, slots;
    size_t *table;  /* by hash: index + 1 of a variable; 0: none */
    size_t *counts; /* how often each one's name stands in the text */
};

static size_t hash_of(str s) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

/* The slot of a word: its own, or the free one where it would go. */
static size_t *slot_of(const struct words *w, str word) {
    size_t at = hash_of(word) & (w->slots - 1);
    while (w->table[at] && !str_eq(w->vars[w->table[at] - 1].name, word))
        at = (at + 1) & (w->slots - 1);
    return &w->table[at];
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* Comments and strings count like the rest: a word more can only refuse. */
static void count_words(const struct words *w, str text) {
    for (size_t at = 0; at < text.n;) {
        size_t end = at + 1;
        if (is_word(text.p[at]) || text.p[at] == '%') {
            while (end < text.n && is_word(text.p[end]))
                end++;
            size_t *slot = slot_of(w, str_cut(text, at, end - at));
            if (*slot)
                w->counts[*slot - 1]++;
        }
        at = end;
    }
}

static enum verdict refuse(const struct cubin_variable *v, struct err *why) {
    err_set(
        why, ERR_INPUT,
        "a candidate may not have writable memory at file scope: '%.*s', %zu bytes of the "
        "compiled code\nhint: tables of constants are declared __constant__, memory that several "
        "launches share is a workspace of the plan",
        STR_ARG(str_cut(v->name, 0, 200)), v->size);
    return VERDICT_FORBIDDEN;
}

static enum verdict judge(const struct cubin_variable *vars, size_t n, str ptx, struct arena *a,
                          struct err *why) {
    struct words w = {.vars = vars, .n = n, .slots = 8};
    while (w.slots < 2 * n)
        w.slots *= 2;
    w.table = arena_array(a, size_t, w.slots);
    w.counts = arena_array(a, size_t, n);
    for (size_t i = 0; i < n; i++) {
        size_t *slot = slot_of(&w, vars[i].name);
        if (*slot) /* two of one name cannot be told apart */
            return refuse(&vars[i], why);
        *slot = i + 1;
    }
    count_words(&w, ptx);
    for (size_t i = 0; i < n; i++) {
        const struct cubin_variable *v = &vars[i];
        bool unused = w.counts[i] == 1 && !v->used_by_code;
        if (v->writable && !unused && !library_table(v->name, v->init, v->size))
            return refuse(v, why);
    }
    return VERDICT_ACCEPTED;
}

enum verdict inspect_cubin(str cubin, str ptx, struct arena *a, struct err *why) {
    struct cubin_variable *vars;
    size_t n;
    if (!cubin_variables(cubin, a, &vars, &n, why))
        return VERDICT_UNSUPPORTED;
    return n ? judge(vars, n, ptx, a, why) : VERDICT_ACCEPTED;
}

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
