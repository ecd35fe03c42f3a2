/* From PTX to steps (sim_load): walks the entry's instructions, inlines calls, resolves branches,
 * lays out memory, and refuses what cannot be run, with the line and what to do. Every operand is
 * checked here for kind and width; what runs later trusts it. */
#include "base/checked.h"
#include "sim/program.h"
#include <stdio.h>
#include <string.h>

#define DECODE_MAX_CALLS 16u

struct op_slot { /* of the hash table of lane_ops */
    const struct lane_op *op;
};

/* A function while it is inlined. Registers and variables are the function's, not the call's: there
 * is no recursion, so its calls never overlap. */
struct frame {
    const struct ptx_entry *f;
    uint32_t *reg_at;       /* place of each register; 0: not used yet */
    size_t *var_at;         /* place of each variable; SIZE_MAX: not placed yet */
    const size_t *param_at; /* of a .func: local memory of the caller's variables */
    const size_t *ret_at;
    bool active;
};

struct decoder {
    const struct ptx_module *m;
    struct arena *arena;
    struct err *err;
    struct sim_program *prog;
    struct frame *frames; /* one for each entry of the module */
    struct frame *frame;
    unsigned depth;
    struct instr *code;
    size_t ncode, code_cap;
    struct constant *constants;
    size_t nconstants, constants_cap;
    struct special_use *specials;
    size_t nspecials, specials_cap;
    struct param_use *params;
    size_t nparams, params_cap;
    struct place *places; /* all that were given out, in order */
    size_t nplaces, places_cap;
    size_t *module_at; /* place of each module variable; SIZE_MAX: not placed yet */
    struct op_slot *ops;
    const struct ptx_instr *in; /* being decoded */
    uint32_t temp[2];           /* places for steps between; 0: not made yet */
    bool first_step;            /* the next step is the one that counts */
};

struct symbol {
    enum ptx_space space;
    uint64_t at; /* in its window */
    size_t size;
    bool dynamic; /* add the size of static shared memory */
};

/* Registers of an instruction that has many, gathered before its step is made. */
#define DECODE_MAX_LIST 160u
struct operand_list {
    uint32_t reg[DECODE_MAX_LIST];
    uint16_t n;
};

static bool decode_register(struct decoder *d, const struct ptx_operand *op, char shape,
                            uint32_t *at);

/* ---- building blocks ---- */

#define OP_SLOTS 4096u

static const struct {
    const char *op, *remedy;
} remedies[] = {
    {"atom", "use one of the forms of atom and red that PTX has for sm_90"},
    {"red", "use one of the forms of atom and red that PTX has for sm_90"},
    {"tex", "read global memory instead"},
};

str program_file(const struct ptx_module *m, const struct ptx_instr *in) {
    str path = in->src_file < m->nfiles ? m->files[in->src_file] : S("");
    size_t at = path.n;
    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return path.n ? str_from(path, at) : S("kernel.cu");
}

static void report_unsupported(struct decoder *d, const char *why) {
    const struct ptx_instr *in = d->in;
    const char *remedy = "write it without this instruction, or run it on a GPU";
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (str_is(in->op, remedies[i].op))
            remedy = remedies[i].remedy;
    char where[160] = "";
    if (in->src_line) {
        str file = program_file(d->m, in);
        snprintf(where, sizeof where, " (%.*s line %u)", STR_ARG(str_cut(file, 0, 100)),
                 in->src_line);
    }
    err_set(d->err, ERR_INPUT, "PTX line %u%s: '%.*s' is not supported by the simulator%s%s; %s",
            in->line, where, STR_ARG(in->text), why ? ": " : "", why ? why : "", remedy);
}

/* A function of its own, small enough to be inlined: then the compiler sees that it returns false,
 * and that no caller reads a result after it. */
static bool decode_refuse(struct decoder *d, const char *why) {
    report_unsupported(d, why);
    return false;
}

/* The table of operations, hashed by name. */
static uint32_t op_hash(const char *s) {
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h ^ h >> 15;
}

static void ops_init(struct decoder *d) {
    size_t n;
    const struct lane_op *table = lanes_table(&n);
    d->ops = arena_array(d->arena, struct op_slot, OP_SLOTS);
    BUG_IF(n > OP_SLOTS / 2);
    for (size_t i = 0; i < n; i++) {
        uint32_t h = op_hash(table[i].name) % OP_SLOTS;
        while (d->ops[h].op)
            h = (h + 1) % OP_SLOTS;
        d->ops[h].op = &table[i];
    }
}

static const struct lane_op *decode_find(const struct decoder *d, const char *name) {
    for (uint32_t h = op_hash(name) % OP_SLOTS; d->ops[h].op; h = (h + 1) % OP_SLOTS)
        if (!strcmp(d->ops[h].op->name, name))
            return d->ops[h].op;
    return NULL;
}

/* Room for 32 lanes in the register file. */
static uint32_t decode_place(struct decoder *d, uint8_t bytes) {
    uint32_t at = d->prog->register_bytes;
    d->prog->register_bytes += bytes * SIM_LANES;
    d->places = mem_grow(d->places, &d->places_cap, d->nplaces + 1, sizeof *d->places);
    d->places[d->nplaces++] = (struct place){at, bytes};
    return at;
}

static uint32_t decode_temp(struct decoder *d, int i) {
    if (!d->temp[i])
        d->temp[i] = decode_place(d, 8);
    return d->temp[i];
}

static uint32_t decode_constant(struct decoder *d, uint64_t bits, uint8_t bytes,
                                bool after_static) {
    for (size_t i = d->nconstants; i-- > 0 && d->nconstants - i < 256;) {
        const struct constant *c = &d->constants[i];
        if (c->bits == bits && c->bytes == bytes && c->after_static_shared == after_static &&
            !c->window)
            return c->at;
    }
    d->constants =
        mem_grow(d->constants, &d->constants_cap, d->nconstants + 1, sizeof *d->constants);
    uint32_t at = decode_place(d, bytes);
    d->constants[d->nconstants++] = (struct constant){bits, at, bytes, after_static, 0};
    return at;
}

/* A constant of 8 bytes: the address of a window, or with sign -1 what takes it away. */
static uint32_t decode_window(struct decoder *d, uint64_t base, int8_t sign) {
    for (size_t i = d->nconstants; i-- > 0 && d->nconstants - i < 256;)
        if (d->constants[i].bits == base && d->constants[i].window == sign)
            return d->constants[i].at;
    d->constants =
        mem_grow(d->constants, &d->constants_cap, d->nconstants + 1, sizeof *d->constants);
    uint32_t at = decode_place(d, 8);
    d->constants[d->nconstants++] = (struct constant){base, at, 8, false, sign};
    return at;
}

static struct instr *decode_step(struct decoder *d, uint8_t kind, uint8_t class) {
    d->code = mem_grow(d->code, &d->code_cap, d->ncode + 1, sizeof *d->code);
    struct instr *i = &d->code[d->ncode++];
    *i = (struct instr){
        .kind = kind, .class = class, .guard = -1, .src = d->in, .counted = d->first_step};
    if (d->in->guard >= 0) {
        struct ptx_operand g = {.kind = PTX_OP_REG, .reg = (uint32_t)d->in->guard};
        uint32_t at = 0;
        BUG_IF(!decode_register(d, &g, 'p', &at));
        d->code[d->ncode - 1].guard = (int32_t)at;
        d->code[d->ncode - 1].guard_negated = d->in->guard_negated;
    }
    d->first_step = false;
    return &d->code[d->ncode - 1];
}

static bool decode_mod(const struct decoder *d, const char *mod) {
    for (size_t i = 0; i < d->in->nmods; i++)
        if (str_is(d->in->mods[i], mod))
            return true;
    return false;
}

/* Memory layout. */
static bool place(struct decoder *d, size_t *end, size_t size, size_t align, size_t max,
                  const char *what, size_t *at) {
    size_t start = (*end + align - 1) & ~(align - 1);
    if (size > max || start > max - size)
        return decode_refuse(d, what);
    *at = start;
    *end = start + size;
    return true;
}

/* Variables with contents: the first one makes room for all of the module's in its space. */
static bool image(struct decoder *d, uint8_t **bytes, size_t *end, const struct ptx_var *v,
                  size_t *at) {
    size_t room = 0;
    for (size_t i = 0; i < d->m->nvars; i++)
        if (d->m->vars[i].space == v->space)
            room += d->m->vars[i].size + d->m->vars[i].align;
    if (room > SIM_MAX_IMAGE)
        return decode_refuse(d, "the module's variables are too large");
    if (!*bytes)
        *bytes = arena_alloc(d->arena, room, 16);
    if (!place(d, end, v->size, v->align, room, "the module's variables are too large", at))
        return false;
    if (v->init && v->size)
        memcpy(*bytes + *at, v->init, v->size);
    return true;
}

static bool place_var(struct decoder *d, const struct ptx_var *v, size_t *at) {
    struct sim_program *p = d->prog;
    if (*at != SIZE_MAX)
        return true;
    if (v->external && v->space == PTX_SHARED) {
        p->dynamic_align = v->align > p->dynamic_align ? v->align : p->dynamic_align;
        *at = 0;
        return true;
    }
    switch (v->space) {
    case PTX_SHARED:
        return place(d, &p->static_shared, v->size, v->align, SIM_MAX_SHARED,
                     "more shared memory than a block may have", at);
    case PTX_LOCAL:
    case PTX_PARAM:
        return place(d, &p->local_bytes, v->size, v->align, SIM_MAX_LOCAL,
                     "more local memory than a thread may have", at);
    case PTX_CONST:
        return image(d, &p->const_image, &p->const_bytes, v, at);
    case PTX_GLOBAL:
        return image(d, &p->module_image, &p->module_bytes, v, at);
    default:
        return decode_refuse(d, "its variable's state space is not known");
    }
}

static bool var_symbol(struct decoder *d, const struct ptx_var *v, size_t *at, struct symbol *out) {
    if (!place_var(d, v, at))
        return false;
    *out = (struct symbol){v->space == PTX_PARAM ? PTX_LOCAL : v->space, *at, v->size,
                           v->external && v->space == PTX_SHARED};
    if (v->space == PTX_GLOBAL)
        out->at += MODULE_START;
    return true;
}

/* A kernel's parameters lie one after the other, a function's where its caller put them. */
static void param_symbol(const struct ptx_param *params, size_t i, const size_t *at,
                         struct symbol *out) {
    size_t end = 0;
    for (size_t k = 0; k <= i; k++) {
        end = (end + params[k].align - 1) & ~(params[k].align - 1);
        end += k < i ? params[k].size : 0;
    }
    *out = (struct symbol){at ? PTX_LOCAL : PTX_PARAM, at ? at[i] : end, params[i].size, false};
}

/* The variable or parameter that the operand names. */
static bool decode_symbol(struct decoder *d, const struct ptx_operand *op, struct symbol *out) {
    struct frame *fr = d->frame;
    const struct ptx_entry *f = fr->f;
    switch (op->symbol) {
    case PTX_SYM_VAR:
        return var_symbol(d, &f->vars[op->index], &fr->var_at[op->index], out);
    case PTX_SYM_MODULE_VAR:
        return var_symbol(d, &d->m->vars[op->index], &d->module_at[op->index], out);
    case PTX_SYM_PARAM:
        param_symbol(f->params, op->index, f->is_kernel ? NULL : fr->param_at, out);
        return true;
    case PTX_SYM_RET:
        param_symbol(f->rets, op->index, fr->ret_at, out);
        return true;
    default:
        return decode_refuse(d, "it names neither a variable nor a parameter");
    }
}

/* ---- arithmetic: operands, the name of the operation, and instructions that are several steps
 * ---- */

static const struct {
    const char *name;
    enum special what;
} special_names[] = {
    {"%tid.x", SPECIAL_TID_X},
    {"%tid.y", SPECIAL_TID_Y},
    {"%tid.z", SPECIAL_TID_Z},
    {"%ntid.x", SPECIAL_NTID_X},
    {"%ntid.y", SPECIAL_NTID_Y},
    {"%ntid.z", SPECIAL_NTID_Z},
    {"%ctaid.x", SPECIAL_CTAID_X},
    {"%ctaid.y", SPECIAL_CTAID_Y},
    {"%ctaid.z", SPECIAL_CTAID_Z},
    {"%nctaid.x", SPECIAL_NCTAID_X},
    {"%nctaid.y", SPECIAL_NCTAID_Y},
    {"%nctaid.z", SPECIAL_NCTAID_Z},
    {"%laneid", SPECIAL_LANEID},
    {"%warpid", SPECIAL_WARPID},
    {"%nwarpid", SPECIAL_NWARPID},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT},
    {"%lanemask_le", SPECIAL_LANEMASK_LE},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED},
    {"%total_smem_size", SPECIAL_TOTAL_SHARED},
    {"%aggr_smem_size", SPECIAL_AGGREGATE_SHARED},
    {"%smid", SPECIAL_SMID},
    {"%nsmid", SPECIAL_NSMID},
    {"%gridid", SPECIAL_GRIDID},
    {"%clusterid.x", SPECIAL_CLUSTERID_X},
    {"%clusterid.y", SPECIAL_CLUSTERID_Y},
    {"%clusterid.z", SPECIAL_CLUSTERID_Z},
    {"%nclusterid.x", SPECIAL_NCLUSTERID_X},
    {"%nclusterid.y", SPECIAL_NCLUSTERID_Y},
    {"%nclusterid.z", SPECIAL_NCLUSTERID_Z},
    {"%cluster_ctaid.x", SPECIAL_CLUSTER_CTAID_X},
    {"%cluster_ctaid.y", SPECIAL_CLUSTER_CTAID_Y},
    {"%cluster_ctaid.z", SPECIAL_CLUSTER_CTAID_Z},
    {"%cluster_nctaid.x", SPECIAL_CLUSTER_NCTAID_X},
    {"%cluster_nctaid.y", SPECIAL_CLUSTER_NCTAID_Y},
    {"%cluster_nctaid.z", SPECIAL_CLUSTER_NCTAID_Z},
    {"%cluster_ctarank", SPECIAL_CLUSTER_CTARANK},
    {"%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SPECIAL_EXPLICIT_CLUSTER},
    {"%envreg1", SPECIAL_WORKSPACE_HIGH},
    {"%envreg2", SPECIAL_WORKSPACE_LOW},
    {"%ctaid.w", SPECIAL_ZERO},
};

static enum ptx_type decode_reg_type(const struct decoder *d, uint32_t reg) {
    return d->frame->f->regs[reg];
}

/* 2, 4 or 8; 0: predicates and wider ones. */
static uint8_t decode_reg_bytes(enum ptx_type t) {
    size_t n = ptx_type_bytes(t);
    if (t == PTX_PRED || n > 8)
        return 0;
    return n <= 2 ? 2 : (uint8_t)n;
}

static bool shape_fits(enum ptx_type t, char shape) {
    uint8_t n = decode_reg_bytes(t);
    return shape == 'p' ? t == PTX_PRED : shape == 'h' ? n == 2 : n == (uint8_t)(shape - '0');
}

static uint8_t shape_bytes(char shape) {
    return shape == '8' ? 8 : 4;
}

static bool decode_register(struct decoder *d, const struct ptx_operand *op, char shape,
                            uint32_t *at) {
    if (op->kind == PTX_OP_SYMBOL && str_is(op->name, "_")) {
        *at = decode_place(d, 8);
        return true;
    }
    if (op->kind != PTX_OP_REG || op->negated || !shape_fits(decode_reg_type(d, op->reg), shape))
        return decode_refuse(d, "an operand is not a register of the instruction's width");
    uint32_t *slot = &d->frame->reg_at[op->reg];
    if (!*slot) {
        *slot = decode_place(d, shape_bytes(shape));
        d->places[d->nplaces - 1].shape = shape;
    }
    *at = *slot;
    return true;
}

static enum special special_named(str name) {
    for (size_t i = 0; i < sizeof special_names / sizeof *special_names; i++)
        if (str_is(name, special_names[i].name))
            return special_names[i].what;
    /* Of the driver's 32 words those for a grid's barrier are above; the others are zero. */
    uint64_t n = 32;
    bool env = str_starts(name, S("%envreg")) && str_to_u64(str_from(name, 7), &n) && n < 32;
    return env ? SPECIAL_ZERO : SPECIAL_COUNT;
}

static bool decode_special(struct decoder *d, str name, char shape, uint32_t *at) {
    enum special what = special_named(name);
    bool wide = what == SPECIAL_GRIDID && shape == '8';
    if (what == SPECIAL_COUNT || (shape != (what == SPECIAL_EXPLICIT_CLUSTER ? 'p' : '4') && !wide))
        return decode_refuse(d, "the simulator does not have this special register");
    for (size_t k = 0; k < d->nspecials; k++)
        if (d->specials[k].what == what && d->specials[k].wide == wide) {
            *at = d->specials[k].at;
            return true;
        }
    d->specials = mem_grow(d->specials, &d->specials_cap, d->nspecials + 1, sizeof *d->specials);
    *at = decode_place(d, wide ? 8 : 4);
    d->specials[d->nspecials++] = (struct special_use){what, *at, wide};
    return true;
}

static uint64_t immediate_bits(const struct ptx_operand *op, char shape) {
    if (shape == 'p')
        return op->imm ? UINT32_MAX : 0;
    if (shape == 'h')
        return op->imm & 0xffff;
    if (shape == '4' && op->imm_type == PTX_F64) {
        double v;
        memcpy(&v, &op->imm, 8);
        float f = (float)v;
        uint32_t u;
        memcpy(&u, &f, 4);
        return u;
    }
    return shape == '4' ? (uint32_t)op->imm : op->imm;
}

static bool decode_source(struct decoder *d, const struct ptx_operand *op, char shape,
                          uint32_t *at) {
    switch (op->kind) {
    case PTX_OP_REG:
        return decode_register(d, op, shape, at);
    case PTX_OP_IMM:
        *at = decode_constant(d, immediate_bits(op, shape), shape_bytes(shape), false);
        return true;
    case PTX_OP_SPECIAL:
        return decode_special(d, op->name, shape, at);
    case PTX_OP_SYMBOL: {
        struct symbol s;
        if (shape != '4' && shape != '8')
            return decode_refuse(d, "an address does not fit the instruction");
        if (str_is(op->name, "WARP_SZ")) {
            *at = decode_constant(d, SIM_LANES, shape_bytes(shape), false);
            return true;
        }
        if (!decode_symbol(d, op, &s))
            return false;
        *at = decode_constant(d, s.at, shape_bytes(shape), s.dynamic);
        return true;
    }
    default:
        return decode_refuse(d, "an operand of this form is not read here");
    }
}

static bool decode_shape_ok(const struct decoder *d, const struct ptx_operand *op, char shape) {
    return op->kind == PTX_OP_REG && shape_fits(decode_reg_type(d, op->reg), shape);
}

/* One step of a known operation with places that the caller made. */
static bool decode_lanes(struct decoder *d, const char *name, uint32_t to, uint32_t a, uint32_t b) {
    const struct lane_op *op = decode_find(d, name);
    if (!op)
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_LANES, op->class);
    i->fn = op->fn;
    i->flops = op->flops;
    i->dst_bytes = shape_bytes(op->shape[0]);
    i->d = to;
    i->a = a;
    i->b = b;
    return true;
}

struct alu_name {
    char text[96];
    uint8_t round;
    bool sat, ftz;
    str combine; /* setp.lt.and: and */
};

static bool is_float_type(str t) {
    return str_starts(t, S("f")) || str_starts(t, S("bf"));
}

/* The operation's name in the table: without rounding, .sat of floats, .ftz moved before the type.
 */
static bool alu_name(struct decoder *d, struct alu_name *out) {
    const struct ptx_instr *in = d->in;
    struct buf b;
    *out = (struct alu_name){0};
    if (!in->nmods)
        return decode_refuse(d, NULL);
    str type = in->mods[in->nmods - 1];
    bool compare = str_is(in->op, "setp") || str_is(in->op, "set");
    buf_init(&b, sizeof out->text - 1);
    buf_puts(&b, in->op);
    for (size_t i = 0; i + 1 < in->nmods; i++) {
        str m = in->mods[i];
        bool combine = compare && (str_is(m, "and") || str_is(m, "or") || str_is(m, "xor"));
        if (str_is(m, "rz") || str_is(m, "rm") || str_is(m, "rp"))
            out->round = str_is(m, "rz") ? 1 : str_is(m, "rm") ? 2 : 3;
        else if (str_is(m, "sat") && is_float_type(type))
            out->sat = true;
        else if (str_is(m, "ftz"))
            out->ftz = true;
        else if (combine)
            out->combine = m;
        else if (!str_is(m, "rn"))
            buf_printf(&b, ".%.*s", STR_ARG(m));
    }
    buf_printf(&b, "%s.%.*s", out->ftz ? ".ftz" : "", STR_ARG(type));
    bool ok = !b.failed;
    if (ok)
        memcpy(out->text, b.p, b.n + 1);
    buf_release(&b);
    return ok || decode_refuse(d, NULL);
}

static bool decode_operands(struct decoder *d, const struct lane_op *op, struct instr *i) {
    const struct ptx_instr *in = d->in;
    size_t nshape = strlen(op->shape);
    bool carry = op->shape[nshape - 1] == 'c';
    uint32_t *to[4] = {&i->a, &i->b, &i->c, &i->e};
    nshape -= carry;
    if (in->nops != nshape)
        return decode_refuse(d, "it has another number of operands");
    for (size_t k = 1; k < nshape; k++)
        if (!decode_source(d, &in->ops[k], op->shape[k], to[k - 1]))
            return false;
    if (carry) {
        if (!d->prog->carry)
            d->prog->carry = decode_place(d, 4);
        i->e = d->prog->carry;
    }
    return decode_register(d, &in->ops[0], op->shape[0], &i->d);
}

static bool decode_named(struct decoder *d, const struct lane_op *op, uint8_t round, bool sat) {
    struct instr t = {0};
    if (!decode_operands(d, op, &t))
        return false;
    bool carry = op->shape[strlen(op->shape) - 1] == 'c';
    struct instr *i = decode_step(d,
                                  carry   ? KIND_CARRY
                                  : round ? KIND_ROUND
                                          : KIND_LANES,
                                  op->class);
    i->fn = op->fn;
    i->flops = op->flops;
    i->round = round;
    i->dst_bytes = shape_bytes(op->shape[0]);
    i->d = t.d, i->a = t.a, i->b = t.b, i->c = t.c, i->e = t.e;
    if (!sat)
        return true;
    char name[32];
    snprintf(name, sizeof name, "%%sat.%.*s",
             STR_ARG(str_cut(d->in->mods[d->in->nmods - 1], 0, 16)));
    return decode_lanes(d, name, t.d, t.d, 0);
}

/* setp.lt.and.f32 p|q, a, b, c: the comparison into a place between; p is it and c, q its opposite
 * and c. The places between come first: p or q may be c. */
static bool combine_step(struct decoder *d, str combine, uint32_t to, uint32_t t, uint32_t c) {
    const char *name = str_is(combine, "and")  ? "and.pred"
                       : str_is(combine, "or") ? "or.pred"
                                               : "xor.pred";
    return combine.n ? decode_lanes(d, name, to, t, c) : decode_lanes(d, "mov.pred", to, t, 0);
}

static bool decode_setp(struct decoder *d, const struct lane_op *op, str combine) {
    const struct ptx_instr *in = d->in;
    uint32_t a, b, c = 0, p, q = 0, t = decode_temp(d, 0), u = decode_temp(d, 1), v = 0;
    const struct ptx_operand *to = &in->ops[0], *both = NULL;
    if (in->nops != (combine.n ? 4u : 3u))
        return decode_refuse(d, "it has another number of operands");
    if (to->kind == PTX_OP_VECTOR) {
        if (to->nelem != 2)
            return decode_refuse(d, NULL);
        both = &to->elem[1];
        to = &to->elem[0];
    }
    struct ptx_operand with = combine.n ? in->ops[3] : (struct ptx_operand){0};
    with.negated = false;
    if (!decode_source(d, &in->ops[1], op->shape[1], &a) ||
        !decode_source(d, &in->ops[2], op->shape[2], &b) ||
        (combine.n && !decode_source(d, &with, 'p', &c)) || !decode_register(d, to, 'p', &p) ||
        (both && !decode_register(d, both, 'p', &q)) || !decode_lanes(d, op->name, t, a, b))
        return false;
    if (combine.n && in->ops[3].negated) {
        if (!decode_lanes(d, "not.pred", u, c, 0))
            return false;
        c = u;
    }
    if (!both)
        return combine_step(d, combine, p, t, c);
    v = decode_place(d, 4);
    return decode_lanes(d, "not.pred", v, t, 0) && combine_step(d, combine, v, v, c) &&
           combine_step(d, combine, p, t, c) && decode_lanes(d, "mov.pred", q, v, 0);
}

/* set.lt.f16.f16 d, a, b: the comparison, then one or zero in the destination's type. */
static bool decode_set(struct decoder *d, bool *known) {
    static const struct {
        const char *type, *select;
        uint32_t one;
        char shape;
    } results[] = {
        {"u32", "selp.b32", ~0u, '4'},        {"s32", "selp.b32", ~0u, '4'},
        {"f32", "selp.b32", 0x3f800000, '4'}, {"f16", "selp.b16", 0x3c00, 'h'},
        {"bf16", "selp.b16", 0x3f80, 'h'},
    };
    const struct ptx_instr *in = d->in;
    *known = false;
    if (!str_is(in->op, "set") || in->nmods < 3 || in->nops != 3)
        return true;
    size_t r = 0, n = sizeof results / sizeof *results;
    while (r < n && !str_is(in->mods[in->nmods - 2], results[r].type))
        r++;
    char name[64];
    snprintf(name, sizeof name, "setp.%.*s%s.%.*s", STR_ARG(str_cut(in->mods[0], 0, 8)),
             decode_mod(d, "ftz") ? ".ftz" : "", STR_ARG(str_cut(in->mods[in->nmods - 1], 0, 8)));
    const struct lane_op *op = decode_find(d, name);
    if (r == n || !op)
        return true;
    *known = true;
    uint32_t to, a, b, t = decode_temp(d, 0);
    if (!decode_source(d, &in->ops[1], op->shape[1], &a) ||
        !decode_source(d, &in->ops[2], op->shape[2], &b) ||
        !decode_register(d, &in->ops[0], results[r].shape, &to) || !decode_lanes(d, name, t, a, b))
        return false;
    uint32_t one = decode_constant(d, results[r].one, 4, false);
    if (!decode_lanes(d, results[r].select, to, one, decode_constant(d, 0, 4, false)))
        return false;
    d->code[d->ncode - 1].c = t;
    return true;
}

static bool decode_alu(struct decoder *d) {
    struct alu_name n;
    bool set;
    if (!alu_name(d, &n))
        return false;
    const struct lane_op *op = decode_find(d, n.text);
    if (!op && (!decode_set(d, &set) || set))
        return set;
    if (!op || op->name[0] == '%')
        return decode_refuse(d, NULL);
    bool pair = d->in->nops && d->in->ops[0].kind == PTX_OP_VECTOR;
    if (str_is(d->in->op, "setp") && (n.combine.n || pair))
        return decode_setp(d, op, n.combine);
    if (n.combine.n)
        return decode_refuse(d, NULL);
    return decode_named(d, op, n.round, n.sat);
}

/* mov d, {a, b} and {a, b, c, d}. */
static bool decode_pack(struct decoder *d, const struct ptx_operand *v) {
    const struct ptx_operand *to = &d->in->ops[0];
    uint32_t at[4], out, t0 = decode_temp(d, 0), t1 = decode_temp(d, 1);
    bool words = v->nelem == 2 && decode_shape_ok(d, to, '8');
    bool halves = v->nelem == 2 && decode_shape_ok(d, to, '4');
    bool quarters = v->nelem == 4 && decode_shape_ok(d, to, '8');
    bool bytes = v->nelem == 2 && decode_shape_ok(d, to, 'h');
    if (!words && !halves && !quarters && !bytes)
        return decode_refuse(d, NULL);
    for (size_t i = 0; i < v->nelem; i++)
        if (!decode_source(d, &v->elem[i], words ? '4' : 'h', &at[i]))
            return false;
    if (!decode_register(d, to, bytes ? 'h' : halves ? '4' : '8', &out))
        return false;
    if (!quarters)
        return decode_lanes(d,
                            bytes   ? "%pack16"
                            : words ? "%pack64"
                                    : "%pack32",
                            out, at[0], at[1]);
    return decode_lanes(d, "%pack32", t0, at[0], at[1]) &&
           decode_lanes(d, "%pack32", t1, at[2], at[3]) && decode_lanes(d, "%pack64", out, t0, t1);
}

/* mov {a, b}, s. */
static bool decode_unpack(struct decoder *d, const struct ptx_operand *v) {
    static const char
        *const words[] = {"%low64", "%high64"},
               *const halves[] = {"%low32", "%high32"}, *const bytes[] = {"%low16", "%high16"},
               *const quarters[] = {"%quarter1", "%quarter2", "%quarter3", "%quarter4"};
    const struct ptx_operand *from = &d->in->ops[1];
    bool wide = decode_mod(d, "b64");
    const char *const *names = v->nelem == 4 && wide                   ? quarters
                               : v->nelem == 2 && wide                 ? words
                               : v->nelem == 2 && decode_mod(d, "b32") ? halves
                               : v->nelem == 2 && decode_mod(d, "b16") ? bytes
                                                                       : NULL;
    uint32_t s, at;
    if (!names)
        return decode_refuse(d, NULL);
    if (!decode_source(d, from, wide ? '8' : names == bytes ? 'h' : '4', &s))
        return false;
    for (size_t i = 0; i < v->nelem; i++)
        if (!decode_register(d, &v->elem[i], names == words ? '4' : 'h', &at) ||
            !decode_lanes(d, names[i], at, s, 0))
            return false;
    return true;
}

/* A 128-bit register is two places, lower half first. */
static bool decode_wide(struct decoder *d, const struct ptx_operand *op, uint32_t at[2]) {
    if (op->kind != PTX_OP_REG || decode_reg_type(d, op->reg) != PTX_B128)
        return decode_refuse(d, "an operand is not a register of 128 bits");
    uint32_t *slot = &d->frame->reg_at[op->reg];
    if (!*slot) {
        *slot = decode_place(d, 8);
        decode_place(d, 8);
    }
    at[0] = *slot;
    at[1] = *slot + 8 * SIM_LANES;
    return true;
}

/* mov.b128: between a 128-bit register and two of 64 bits, or another one. */
static bool decode_mov_wide(struct decoder *d) {
    uint32_t at[2][2];
    for (int k = 0; k < 2; k++) {
        const struct ptx_operand *op = &d->in->ops[k];
        if (op->kind != PTX_OP_VECTOR) {
            if (!decode_wide(d, op, at[k]))
                return false;
            continue;
        }
        if (op->nelem != 2)
            return decode_refuse(d, NULL);
        for (int i = 0; i < 2; i++)
            if (k == 0 ? !decode_register(d, &op->elem[i], '8', &at[k][i])
                       : !decode_source(d, &op->elem[i], '8', &at[k][i]))
                return false;
    }
    return decode_lanes(d, "mov.b64", at[0][0], at[1][0], 0) &&
           decode_lanes(d, "mov.b64", at[0][1], at[1][1], 0);
}

/* mov.u64 d, %clock64 and its like: the value is the one of the moment. */
static bool decode_clock(struct decoder *d, bool *known) {
    static const struct {
        const char *name;
        uint8_t mode, bytes;
    } clocks[] = {
        {"%clock", CLOCK_CYCLES, 4},
        {"%clock_hi", CLOCK_HIGH, 4},
        {"%clock64", CLOCK_CYCLES, 8},
        {"%globaltimer", CLOCK_NANOSECONDS, 8},
        {"%globaltimer_lo", CLOCK_NANOSECONDS, 4},
        {"%globaltimer_hi", CLOCK_NANOSECONDS_HIGH, 4},
    };
    const struct ptx_instr *in = d->in;
    *known = false;
    if (in->nops != 2 || in->ops[1].kind != PTX_OP_SPECIAL)
        return true;
    for (size_t k = 0; k < sizeof clocks / sizeof *clocks; k++) {
        uint32_t to;
        if (!str_is(in->ops[1].name, clocks[k].name))
            continue;
        *known = true;
        if (!decode_register(d, &in->ops[0], clocks[k].bytes == 8 ? '8' : '4', &to))
            return false;
        struct instr *i = decode_step(d, KIND_CLOCK, CLASS_INT);
        i->mode = clocks[k].mode;
        i->d = to;
        i->dst_bytes = clocks[k].bytes;
    }
    return true;
}

static bool decode_mov(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool clock;
    if (in->nops != 2)
        return decode_refuse(d, "it has another number of operands");
    if (!decode_clock(d, &clock) || clock)
        return clock;
    if (decode_mod(d, "b128"))
        return decode_mov_wide(d);
    if (in->ops[0].kind == PTX_OP_VECTOR)
        return decode_unpack(d, &in->ops[0]);
    if (in->ops[1].kind == PTX_OP_VECTOR)
        return decode_pack(d, &in->ops[1]);
    return decode_alu(d);
}

/* ---- cvt, as steps: source widened, rounded or saturated in the widest type, narrowed ---- */

enum domain { DOMAIN_SIGNED, DOMAIN_UNSIGNED, DOMAIN_FLOAT, DOMAIN_NONE };

static enum domain domain_of(enum ptx_type t) {
    switch (t) {
    case PTX_S8:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64:
        return DOMAIN_SIGNED;
    case PTX_U8:
    case PTX_U16:
    case PTX_U32:
    case PTX_U64:
        return DOMAIN_UNSIGNED;
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_F64:
        return DOMAIN_FLOAT;
    default:
        return DOMAIN_NONE;
    }
}

static const char *name_of(enum ptx_type t) {
    static const char *const names[] = {
        [PTX_U8] = "u8",   [PTX_U16] = "u16", [PTX_U32] = "u32",   [PTX_U64] = "u64",
        [PTX_S8] = "s8",   [PTX_S16] = "s16", [PTX_S32] = "s32",   [PTX_S64] = "s64",
        [PTX_F16] = "f16", [PTX_F32] = "f32", [PTX_BF16] = "bf16", [PTX_F64] = "f64",
    };
    return names[t];
}

static bool type_named(str s, enum ptx_type *out) {
    for (enum ptx_type t = PTX_U8; t <= PTX_F64; t++)
        if (domain_of(t) != DOMAIN_NONE && str_is(s, name_of(t))) {
            *out = t;
            return true;
        }
    return false;
}

struct conversion {
    enum ptx_type to, from;
    enum domain to_domain, from_domain;
    uint8_t round;        /* as in struct instr */
    const char *integral; /* "rni", …; NULL: none */
    bool ftz, sat, relu;
};

static bool step2(struct decoder *d, const char *prefix, const char *a, const char *b, uint32_t to,
                  uint32_t from) {
    char name[32];
    snprintf(name, sizeof name, "%s%s.%s", prefix, a, b);
    return decode_lanes(d, name, to, from, 0);
}

static void last_rounds(struct decoder *d, uint8_t round) {
    if (!round)
        return;
    d->code[d->ncode - 1].kind = KIND_ROUND;
    d->code[d->ncode - 1].round = round;
}

/* The source's value as a 64-bit integer in temp 0. Its register may be wider than its type. */
static bool widen(struct decoder *d, enum ptx_type t, uint32_t from, uint8_t reg_bytes) {
    uint32_t w = decode_temp(d, 0);
    if (ptx_type_bytes(t) == 8)
        return decode_lanes(d, "mov.b64", w, from, 0);
    return step2(d, reg_bytes == 8 ? "%cut" : "%widen", "", name_of(t), w, from);
}

/* Temp 0 into the destination register, whose width may exceed the type's. */
static bool narrow(struct decoder *d, enum ptx_type t, const struct ptx_operand *to) {
    uint32_t w = decode_temp(d, 0), at;
    uint8_t bytes = to->kind == PTX_OP_REG ? decode_reg_bytes(decode_reg_type(d, to->reg)) : 0;
    if (bytes < ptx_type_bytes(t))
        return decode_refuse(d, "the destination is too narrow");
    if (!decode_register(d, to, bytes == 2 ? 'h' : bytes == 4 ? '4' : '8', &at))
        return false;
    if (ptx_type_bytes(t) < bytes && !step2(d, "%cut", "", name_of(t), w, w))
        return false;
    return decode_lanes(d, bytes == 2 ? "%store2" : bytes == 4 ? "%store4" : "mov.b64", at, w, 0);
}

static bool source_bytes(struct decoder *d, enum ptx_type t, uint8_t *bytes) {
    const struct ptx_operand *from = &d->in->ops[1];
    *bytes = decode_reg_bytes(t);
    if (from->kind == PTX_OP_REG)
        *bytes = decode_reg_bytes(decode_reg_type(d, from->reg));
    if (*bytes < ptx_type_bytes(t))
        return decode_refuse(d, "the source is too narrow");
    return true;
}

static bool int_to_int(struct decoder *d, const struct conversion *c, uint32_t from,
                       uint8_t reg_bytes) {
    uint32_t w = decode_temp(d, 0);
    if (!widen(d, c->from, from, reg_bytes))
        return false;
    const char *sat = c->from_domain == DOMAIN_SIGNED ? "%sat_s" : "%sat_u";
    if (c->sat && !step2(d, sat, "", name_of(c->to), w, w))
        return false;
    return narrow(d, c->to, &d->in->ops[0]);
}

static bool float_place(struct decoder *d, enum ptx_type t, const struct ptx_operand *op,
                        uint32_t *at) {
    size_t n = ptx_type_bytes(t);
    return decode_register(d, op, n == 2 ? 'h' : n == 4 ? '4' : '8', at);
}

/* From a double, a single, or what was rounded to one in a way that no later rounding can tell. */
static bool towards(struct decoder *d, const struct conversion *c, uint32_t to, uint32_t from) {
    static const char *const singles[] = {"rn", "rz", "rm", "rp"};
    static const char *const doubles[] = {"f64", "f64.rz", "f64.rm", "f64.rp"};
    return step2(d, "%", name_of(c->to), (c->from == PTX_F64 ? doubles : singles)[c->round], to,
                 from);
}

static bool int_to_float(struct decoder *d, const struct conversion *c, uint32_t from,
                         uint8_t reg_bytes) {
    uint32_t to, w = decode_temp(d, 0);
    if (!float_place(d, c->to, &d->in->ops[0], &to))
        return false;
    bool half = ptx_type_bytes(c->to) == 2;
    if (c->from == PTX_S32 && reg_bytes == 4 && !half) {
        if (!step2(d, "%", name_of(c->to), "s32", to, from))
            return false;
        last_rounds(d, c->round);
        return true;
    }
    if (!widen(d, c->from, from, reg_bytes))
        return false;
    const char *wide = c->from_domain == DOMAIN_SIGNED ? "s64" : "u64";
    if (half && c->round)
        return step2(d, "%odd", "", wide, decode_temp(d, 1), w) &&
               towards(d, c, to, decode_temp(d, 1));
    if (!step2(d, "%", name_of(c->to), wide, to, w))
        return false;
    last_rounds(d, c->round);
    return true;
}

static bool flushed(struct decoder *d, const struct conversion *c, uint32_t *from) {
    if (!c->ftz || c->from != PTX_F32)
        return true;
    uint32_t t = decode_temp(d, 1);
    bool ok = decode_lanes(d, "%ftz.source", t, *from, 0);
    *from = t;
    return ok;
}

static bool float_to_int(struct decoder *d, const struct conversion *c, uint32_t from) {
    uint32_t w = decode_temp(d, 0);
    if (!c->integral)
        return decode_refuse(d, "it needs a rounding to integers");
    const char *kind = c->from == PTX_F64 ? "double" : "float";
    return flushed(d, c, &from) && step2(d, "%f64", "", name_of(c->from), w, from) &&
           step2(d, "%", c->integral, "f64", w, w) && step2(d, "%", name_of(c->to), kind, w, w) &&
           narrow(d, c->to, &d->in->ops[0]);
}

static bool float_finish(struct decoder *d, const struct conversion *c, uint32_t to) {
    if (c->to == PTX_F32 && c->ftz && !decode_lanes(d, "%ftz", to, to, 0))
        return false;
    if (!c->sat)
        return true;
    return step2(d, "%sat", "", name_of(c->to), to, to);
}

static bool float_to_float(struct decoder *d, const struct conversion *c, uint32_t from) {
    uint32_t to, t = decode_temp(d, 1);
    if (!float_place(d, c->to, &d->in->ops[0], &to) || !flushed(d, c, &from))
        return false;
    bool half_to = ptx_type_bytes(c->to) == 2, half_from = ptx_type_bytes(c->from) == 2;
    if (half_to && half_from) { /* through float, which holds both */
        if (c->relu)
            return decode_refuse(d, NULL);
        if (!step2(d, "%f32", "", name_of(c->from), t, from))
            return false;
        if (c->integral && !step2(d, "%", c->integral, "f32", t, t))
            return false;
        if (c->round ? !towards(d, c, to, t) : !step2(d, "%", name_of(c->to), "f32", to, t))
            return false;
        return float_finish(d, c, to);
    }
    if (c->integral && c->to != c->from)
        return decode_refuse(d, NULL);
    if (c->integral)
        return step2(d, "%", c->integral, name_of(c->to), to, from) && float_finish(d, c, to);
    if (half_to && c->round) {
        if (c->relu)
            return decode_refuse(d, NULL);
        return towards(d, c, to, from) && float_finish(d, c, to);
    }
    if (c->relu) {
        if (c->from != PTX_F32 || !decode_lanes(d, "%relu.f32", t, from, 0))
            return decode_refuse(d, NULL);
        from = t;
    }
    if (!step2(d, "%", name_of(c->to), name_of(c->from), to, from))
        return false;
    last_rounds(d, c->round);
    return float_finish(d, c, to);
}

/* Pairs: cvt.rn.f16x2.f32 d, a, b; cvt.rn.satfinite.e4m3x2.f32 d, a, b; cvt.rn.f16x2.e4m3x2 d, a.
 */
static bool pair_form(struct decoder *d, str to, str from) {
    const struct ptx_instr *in = d->in;
    bool two = str_is(from, "f32"), eight_to = str_starts(to, S("e")),
         eight_from = str_starts(from, S("e")), relu = decode_mod(d, "relu"),
         rz = decode_mod(d, "rz");
    uint32_t at, a, b = 0;
    char name[40];
    if (in->nops != (two ? 3u : 2u) || !(decode_mod(d, "rn") || rz) || (rz && (!two || eight_to)) ||
        (eight_to && !decode_mod(d, "satfinite")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], eight_to ? 'h' : '4', &at) ||
        !decode_source(d, &in->ops[1], eight_from ? 'h' : '4', &a) ||
        (two && !decode_source(d, &in->ops[2], '4', &b)))
        return false;
    if (relu && eight_to) { /* negative numbers are zero before they are rounded */
        uint32_t t0 = decode_temp(d, 0), t1 = decode_temp(d, 1);
        const char *step = two ? "%relu.f32" : "%relu.f16x2";
        if (!decode_lanes(d, step, t0, a, 0) || (two && !decode_lanes(d, step, t1, b, 0)))
            return false;
        a = t0;
        b = t1;
    }
    snprintf(name, sizeof name, "%%%.*s.%.*s", STR_ARG(to), STR_ARG(rz ? S("rz") : from));
    if (!decode_lanes(d, name, at, a, b))
        return false;
    if (!relu || eight_to)
        return true;
    return decode_lanes(d, str_is(to, "f16x2") ? "%relu.f16x2" : "%relu.bf16x2", at, at, 0);
}

/* cvt.pack.sat.{s8,u8}.s32.b32 d, a, b, c and cvt.pack.sat.{s16,u16}.s32 d, a, b. */
static bool pack_form(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_type t = PTX_U32;
    uint32_t at, a, b, c, both = decode_temp(d, 0);
    char name[32];
    bool named = in->nmods >= 4 && str_is(in->mods[0], "pack") && str_is(in->mods[1], "sat") &&
                 type_named(in->mods[2], &t) && str_is(in->mods[3], "s32");
    bool third = in->nmods == 5 && str_is(in->mods[4], "b32");
    if (!named || ptx_type_bytes(t) != (third ? 1 : 2) || in->nmods != (third ? 5 : 4) ||
        in->nops != (third ? 4 : 3))
        return decode_refuse(d, NULL);
    snprintf(name, sizeof name, "%%pack_sat.%s", name_of(t));
    if (!decode_register(d, &in->ops[0], '4', &at) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &b))
        return false;
    if (!third)
        return decode_lanes(d, name, at, a, b);
    return decode_source(d, &in->ops[3], '4', &c) && decode_lanes(d, name, both, a, b) &&
           decode_lanes(d, "%above", at, c, both);
}

/* Pairs, packs, and cvt.rna.tf32.f32. */
static bool special_form(struct decoder *d, bool *known) {
    const struct ptx_instr *in = d->in;
    static const char *const pairs[] = {"f16x2", "bf16x2", "e4m3x2", "e5m2x2"};
    uint32_t at, a;
    *known = decode_mod(d, "pack");
    if (*known)
        return pack_form(d);
    *known = false;
    if (in->nmods < 2)
        return true;
    str to = in->mods[in->nmods - 2], from = in->mods[in->nmods - 1];
    for (size_t i = 0; i < 4; i++)
        *known |= str_is(to, pairs[i]);
    if (*known)
        return pair_form(d, to, from);
    *known = str_is(to, "tf32");
    if (!*known)
        return true;
    bool nearest = decode_mod(d, "rn"), away = decode_mod(d, "rna");
    if (in->nops != 2 || !str_is(from, "f32") || !(nearest || away) || in->nmods != 3)
        return decode_refuse(d, NULL);
    return decode_register(d, &in->ops[0], '4', &at) && decode_source(d, &in->ops[1], '4', &a) &&
           decode_lanes(d, away ? "%tf32.rna" : "%tf32.rn", at, a, 0);
}

static bool read_mods(struct decoder *d, struct conversion *c) {
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi"};
    static const char *const rounds[] = {"rn", "rz", "rm", "rp"};
    const struct ptx_instr *in = d->in;
    if (in->nmods < 2 || in->nops != 2 || !type_named(in->mods[in->nmods - 2], &c->to) ||
        !type_named(in->mods[in->nmods - 1], &c->from))
        return decode_refuse(d, NULL);
    c->to_domain = domain_of(c->to);
    c->from_domain = domain_of(c->from);
    for (size_t i = 0; i + 2 < in->nmods; i++) {
        bool known = false;
        for (uint8_t k = 0; k < 4; k++) {
            if (str_is(in->mods[i], integral[k]))
                c->integral = integral[k], known = true;
            if (str_is(in->mods[i], rounds[k]))
                c->round = k, known = true;
        }
        c->ftz |= str_is(in->mods[i], "ftz");
        c->sat |= str_is(in->mods[i], "sat");
        c->relu |= str_is(in->mods[i], "relu");
        if (!known && !str_is(in->mods[i], "ftz") && !str_is(in->mods[i], "sat") &&
            !str_is(in->mods[i], "relu"))
            return decode_refuse(d, NULL);
    }
    return true;
}

static bool decode_cvt(struct decoder *d) {
    struct conversion c = {0};
    bool known;
    uint8_t bytes;
    uint32_t from;
    if (!special_form(d, &known))
        return false;
    if (known)
        return true;
    if (!read_mods(d, &c) || !source_bytes(d, c.from, &bytes))
        return false;
    if (c.from_domain == DOMAIN_FLOAT)
        bytes = decode_reg_bytes(c.from);
    if (!decode_source(d, &d->in->ops[1], bytes == 2 ? 'h' : bytes == 4 ? '4' : '8', &from))
        return false;
    if (c.from_domain == DOMAIN_FLOAT)
        return c.to_domain == DOMAIN_FLOAT ? float_to_float(d, &c, from)
                                           : float_to_int(d, &c, from);
    return c.to_domain == DOMAIN_FLOAT ? int_to_float(d, &c, from, bytes)
                                       : int_to_int(d, &c, from, bytes);
}

/* ---- lists of registers: what instructions with many operands read and write ---- */

static bool list_add(struct decoder *d, struct operand_list *l, uint32_t at) {
    if (l->n == DECODE_MAX_LIST)
        return decode_refuse(d, "it has too many registers");
    l->reg[l->n++] = at;
    return true;
}

static bool list_source(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                        char shape, uint8_t *index) {
    uint32_t at;
    *index = (uint8_t)l->n;
    return decode_source(d, op, shape, &at) && list_add(d, l, at);
}

static const struct ptx_operand *elements(const struct ptx_operand *op, size_t *n) {
    *n = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
    return op->kind == PTX_OP_VECTOR ? op->elem : op;
}

static bool list_sources(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                         size_t n, char shape) {
    size_t have;
    uint8_t index;
    const struct ptx_operand *e = elements(op, &have);
    if (have != n)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!list_source(d, l, &e[i], shape, &index))
            return false;
    return true;
}

static bool list_registers(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                           size_t n, char shape) {
    size_t have;
    uint32_t at;
    const struct ptx_operand *e = elements(op, &have);
    if (have != n)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!decode_register(d, &e[i], shape, &at) || !list_add(d, l, at))
            return false;
    return true;
}

/* The base's place; a symbol's address is a constant, and says which space it is in. */
static bool decode_base(struct decoder *d, const struct ptx_operand *op, struct access *a,
                        uint32_t *at) {
    if (op->kind != PTX_OP_ADDRESS || op->nelem)
        return decode_refuse(d, "its address is not of the form [base + offset]");
    a->offset = op->offset;
    a->base_wide = true;
    if (op->base_is_reg) {
        struct ptx_operand reg = {.kind = PTX_OP_REG, .reg = op->reg};
        a->base_wide = decode_shape_ok(d, &reg, '8');
        return decode_register(d, &reg, a->base_wide ? '8' : '4', at);
    }
    if (op->symbol == PTX_SYM_NONE) {
        *at = decode_constant(d, 0, 8, false);
        return true;
    }
    struct symbol s;
    if (!decode_symbol(d, op, &s))
        return false;
    if (a->space != s.space && !(a->space == PTX_PARAM && s.space == PTX_LOCAL))
        return decode_refuse(d, "the variable is in another state space");
    a->space = s.space;
    *at = decode_constant(d, s.at, 8, s.dynamic);
    return true;
}

static bool list_where(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                       enum ptx_space space, struct where *out) {
    struct ptx_operand plain = *op;
    struct access a = {.space = space};
    uint32_t at;
    plain.nelem = 0; /* a tensor's coordinates are the caller's */
    if (!decode_base(d, &plain, &a, &at))
        return false;
    *out = (struct where){(uint8_t)l->n, a.base_wide, a.space, a.offset};
    return list_add(d, l, at);
}

static uint32_t *keep_list(struct decoder *d, const struct operand_list *l) {
    uint32_t *copy = arena_array(d->arena, uint32_t, l->n + 1u);
    memcpy(copy, l->reg, l->n * sizeof *copy);
    return copy;
}

/* {a, b, …} or a alone: `n` of them. */
static void list_attach(struct decoder *d, struct instr *i, const struct operand_list *reads,
                        const struct operand_list *writes) {
    if (reads) {
        i->reads = keep_list(d, reads);
        i->nreads = reads->n;
    }
    if (writes) {
        i->writes = keep_list(d, writes);
        i->nwrites = writes->n;
    }
}

/* ---- loads, stores and addresses ---- */

static bool decode_space(str m, enum ptx_space *out) {
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
        {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
        {"local", PTX_LOCAL},        {"const", PTX_CONST},
        {"param", PTX_PARAM},        {"param::entry", PTX_PARAM},
        {"param::func", PTX_PARAM},
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (str_is(m, spaces[i].name)) {
            *out = spaces[i].space;
            return true;
        }
    return false;
}

/* What an access means to others: a strong one can be waited with, releases and acquires order the
 * accesses around them; of the scopes a block's own alone is less than the others. False: not a
 * word about order or caches. */
static bool decode_ordering(str m, struct access *a) {
    static const struct {
        const char *name;
        bool strong, acquire, release;
    } words[] = {
        {"weak", false, false, false},    {"volatile", true, false, false},
        {"relaxed", true, false, false},  {"acquire", true, true, false},
        {"release", true, false, true},   {"acq_rel", true, true, true},
        {"mmio", true, false, false},     {"cta", false, false, false},
        {"cluster", false, false, false}, {"gpu", false, false, false},
        {"sys", false, false, false},     {"ca", false, false, false},
        {"cg", false, false, false},      {"cs", false, false, false},
        {"lu", false, false, false},      {"cv", true, false, false},
        {"wb", false, false, false},      {"wt", false, false, false},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(m, words[i].name)) {
            a->strong |= words[i].strong;
            a->acquire |= words[i].acquire;
            a->release |= words[i].release;
            a->narrow |= str_is(m, "cta");
            a->unordered |= str_is(m, "volatile");
            return true;
        }
    a->fixed_content |= str_is(m, "nc");
    return str_is(m, "nc") || str_starts(m, S("L1::")) || str_starts(m, S("L2::"));
}

static bool access_type(str m, struct access *a) {
    static const struct {
        const char *name;
        uint8_t width;
        bool sign;
    } types[] = {
        {"b8", 1, false},    {"u8", 1, false},     {"s8", 1, true},     {"b16", 2, false},
        {"u16", 2, false},   {"s16", 2, true},     {"f16", 2, false},   {"bf16", 2, false},
        {"b32", 4, false},   {"u32", 4, false},    {"s32", 4, true},    {"f32", 4, false},
        {"b64", 8, false},   {"u64", 8, false},    {"s64", 8, true},    {"f64", 8, false},
        {"f16x2", 4, false}, {"bf16x2", 4, false}, {"b128", 16, false},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(m, types[i].name)) {
            a->width = types[i].width;
            a->sign = types[i].sign;
            return true;
        }
    return false;
}

static bool access_mods(struct decoder *d, struct access *a) {
    const struct ptx_instr *in = d->in;
    a->space = PTX_GENERIC;
    a->count = 1;
    for (size_t i = 0; i < in->nmods; i++) {
        str m = in->mods[i];
        if (str_is(m, "v2") || str_is(m, "v4") || str_is(m, "v8"))
            a->count = (uint8_t)(m.p[1] - '0');
        else if (!decode_space(m, &a->space) && !decode_ordering(m, a) && !access_type(m, a))
            return decode_refuse(d, NULL);
    }
    if (!a->width || a->count * a->width > 32)
        return decode_refuse(d, NULL);
    if (a->width == 16) { /* in 8-byte halves */
        a->width = 8;
        a->count = (uint8_t)(a->count * 2);
    }
    a->bytes = (uint8_t)(a->count * a->width);
    return true;
}

static bool access_register(struct decoder *d, const struct ptx_operand *op, bool store,
                            struct access *a, uint32_t *at) {
    uint8_t bytes = a->reg_bytes;
    if (op->kind == PTX_OP_REG)
        bytes = decode_reg_bytes(decode_reg_type(d, op->reg));
    else if (store && op->kind == PTX_OP_IMM)
        bytes = a->width <= 2 ? 2 : a->width;
    else if (!bytes)
        bytes = a->width <= 2 ? 2 : a->width;
    if (bytes < a->width || (a->reg_bytes && a->reg_bytes != bytes))
        return decode_refuse(d, "its registers do not have one fitting width");
    a->reg_bytes = bytes;
    char shape = bytes == 2 ? 'h' : bytes == 4 ? '4' : '8';
    return store ? decode_source(d, op, shape, at) : decode_register(d, op, shape, at);
}

static bool access_registers(struct decoder *d, const struct ptx_operand *op, bool store,
                             struct access *a) {
    if (decode_mod(d, "b128")) {
        const struct ptx_operand *one = op->kind == PTX_OP_VECTOR ? op->elem : op;
        size_t many = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
        a->reg_bytes = 8;
        if (many * 2 != a->count)
            return decode_refuse(d, "it names another number of registers");
        for (size_t i = 0; i < many; i++)
            if (!decode_wide(d, &one[i], &a->reg[2 * i]))
                return false;
        return true;
    }
    const struct ptx_operand *elem = op->kind == PTX_OP_VECTOR ? op->elem : op;
    size_t n = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
    if (n != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!access_register(d, &elem[i], store, a, &a->reg[i]))
            return false;
    return true;
}

static uint32_t param_place(struct decoder *d, struct param_use u) {
    for (size_t i = 0; i < d->nparams; i++) {
        const struct param_use *o = &d->params[i];
        if (o->offset == u.offset && o->width == u.width && o->reg_bytes == u.reg_bytes &&
            o->sign == u.sign)
            return o->at;
    }
    u.at = decode_place(d, u.reg_bytes == 8 ? 8 : 4);
    d->params = mem_grow(d->params, &d->params_cap, d->nparams + 1, sizeof *d->params);
    d->params[d->nparams++] = u;
    return u.at;
}

/* A parameter at a known place does not change during a launch. */
static bool decode_param(struct decoder *d, const struct access *a, uint64_t at) {
    uint64_t from = at + (uint64_t)a->offset;
    if (from > d->prog->params_bytes || d->prog->params_bytes - from < a->bytes ||
        from % a->bytes != 0)
        return decode_refuse(d, "it reads beside the kernel's parameters");
    for (unsigned k = 0; k < a->count; k++) {
        struct param_use u = {.offset = (uint32_t)(from + k * a->width),
                              .width = a->width,
                              .reg_bytes = a->reg_bytes,
                              .sign = a->sign};
        if (!decode_lanes(d, a->reg_bytes == 8 ? "mov.b64" : "mov.b32", a->reg[k],
                          param_place(d, u), 0))
            return false;
        d->code[d->ncode - 1].class = CLASS_MEMORY;
    }
    return true;
}

static bool decode_access(struct decoder *d, bool store) {
    const struct ptx_instr *in = d->in;
    struct access *a = arena_new_of(d->arena, struct access);
    uint32_t base;
    if (!access_mods(d, a))
        return false;
    bool policy = decode_mod(d, "L2::cache_hint"); /* its operand is a hint, nothing more */
    if (in->nops != 2u + policy)
        return decode_refuse(d, "it has another number of operands");
    if (!decode_base(d, &in->ops[store ? 0 : 1], a, &base) ||
        !access_registers(d, &in->ops[store ? 1 : 0], store, a))
        return false;
    if (store && (a->space == PTX_CONST || a->space == PTX_PARAM))
        return decode_refuse(d, "constants and parameters cannot be written");
    const struct ptx_operand *address = &in->ops[store ? 0 : 1];
    struct symbol s;
    if (a->space == PTX_PARAM && !address->base_is_reg && address->symbol != PTX_SYM_NONE)
        return decode_symbol(d, address, &s) && decode_param(d, a, s.at);
    a->result = !store;
    struct instr *i = decode_step(d, store ? KIND_STORE : KIND_LOAD, CLASS_MEMORY);
    i->mem = a;
    i->a = base;
    return true;
}

static bool has_window(enum ptx_space s) {
    return s == PTX_SHARED || s == PTX_LOCAL || s == PTX_CONST || s == PTX_PARAM;
}

static uint64_t window_of(enum ptx_space s) {
    return s == PTX_LOCAL   ? WINDOW_LOCAL
           : s == PTX_CONST ? WINDOW_CONST
           : s == PTX_PARAM ? WINDOW_PARAM
                            : WINDOW_SHARED;
}

/* cvta.shared.u64 d, a adds the window's base, cvta.to.shared.u64 takes it away. */
static bool decode_cvta(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_space s = PTX_SPACE_NONE;
    uint32_t to, a;
    bool back = decode_mod(d, "to");
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &s);
    if (s == PTX_SPACE_NONE || in->nops != 2 || !(decode_mod(d, "u64") || decode_mod(d, "s64")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], '8', &to) || !decode_source(d, &in->ops[1], '8', &a))
        return false;
    uint32_t base = has_window(s) ? decode_window(d, window_of(s), back ? -1 : 1)
                                  : decode_constant(d, 0, 8, false);
    return decode_lanes(d, "%add_base", to, a, base);
}

static bool decode_isspacep(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    enum ptx_space s;
    uint32_t p, a;
    if (in->nmods != 1 || in->nops != 2 || !decode_space(in->mods[0], &s))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], 'p', &p) || !decode_source(d, &in->ops[1], '8', &a))
        return false;
    if (str_is(in->mods[0], "shared::cta")) /* not another block's of the cluster */
        return decode_lanes(d, "%in_window", p, a, decode_window(d, WINDOW_SHARED, 1)) &&
               (d->code[d->ncode - 1].c = decode_constant(d, UINT64_C(1) << 24, 8, false), true);
    bool global = s == PTX_GLOBAL; /* whatever is in no other window */
    uint64_t size = global ? WINDOWS_BYTES : WINDOW_BYTES;
    uint32_t from = decode_window(d, window_of(s), 1), n = decode_constant(d, size, 8, false);
    if (!decode_lanes(d, global ? "%not_in_window" : "%in_window", p, a, from))
        return false;
    d->code[d->ncode - 1].c = n;
    return true;
}

/* ---- atom and red: every operation and type that PTX has for sm_80 to sm_90a ---- */

static const struct {
    const char *name;
    enum atomic_mode mode;
} modes[] = {
    {"add", ATOMIC_ADD},   {"min", ATOMIC_MIN}, {"max", ATOMIC_MAX}, {"and", ATOMIC_AND},
    {"or", ATOMIC_OR},     {"xor", ATOMIC_XOR}, {"inc", ATOMIC_INC}, {"dec", ATOMIC_DEC},
    {"exch", ATOMIC_EXCH}, {"cas", ATOMIC_CAS},
};

static const struct {
    const char *name;
    enum ptx_type type;
} atomic_types[] = {
    {"u32", PTX_U32},   {"s32", PTX_S32},       {"u64", PTX_U64}, {"s64", PTX_S64},
    {"b32", PTX_B32},   {"b64", PTX_B64},       {"b16", PTX_B16}, {"b128", PTX_B128},
    {"f32", PTX_F32},   {"f64", PTX_F64},       {"f16", PTX_F16}, {"f16x2", PTX_F16X2},
    {"bf16", PTX_BF16}, {"bf16x2", PTX_BF16X2},
};

static bool mode_named(str m, uint8_t *out) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (str_is(m, modes[i].name)) {
            *out = (uint8_t)modes[i].mode;
            return true;
        }
    return false;
}

static bool atomic_type_named(str m, enum ptx_type *out) {
    for (size_t i = 0; i < sizeof atomic_types / sizeof *atomic_types; i++)
        if (str_is(m, atomic_types[i].name)) {
            *out = atomic_types[i].type;
            return true;
        }
    return false;
}

static bool atomic_mods(struct decoder *d, struct access *a, uint8_t *mode) {
    bool has_mode = false, has_type = false;
    a->space = PTX_GENERIC;
    a->count = 1;
    a->strong = true;
    for (size_t i = 0; i < d->in->nmods; i++) {
        str m = d->in->mods[i];
        if (str_is(m, "v2") || str_is(m, "v4") || str_is(m, "v8"))
            a->count = (uint8_t)(m.p[1] - '0');
        else if (mode_named(m, mode))
            has_mode = true;
        else if (atomic_type_named(m, &a->type))
            has_type = true;
        else if (!decode_space(m, &a->space) && !decode_ordering(m, a) && !str_is(m, "noftz"))
            return decode_refuse(d, NULL);
    }
    return (has_mode && has_type) || decode_refuse(d, NULL);
}

static bool is_float(enum ptx_type t) {
    return t >= PTX_F16 && t != PTX_TF32;
}

/* Which operation goes with which type. */
static bool fits(const struct access *a, uint8_t mode) {
    enum ptx_type t = a->type;
    bool bits = t == PTX_B32 || t == PTX_B64, half = is_float(t) && t < PTX_TF32;
    bool integer = t == PTX_U32 || t == PTX_S32 || t == PTX_U64 || t == PTX_S64;
    if (a->count > 1 && (a->space == PTX_SHARED || !(half || t == PTX_F32)))
        return false;
    switch ((enum atomic_mode)mode) {
    case ATOMIC_ADD:
        return is_float(t) || integer;
    case ATOMIC_MIN:
    case ATOMIC_MAX:
        return integer || (half && a->count > 1);
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
        return bits;
    case ATOMIC_INC:
    case ATOMIC_DEC:
        return t == PTX_U32;
    case ATOMIC_EXCH:
        return bits || t == PTX_B128;
    case ATOMIC_CAS:
        return bits || t == PTX_B16 || t == PTX_B128;
    }
    return false;
}

static bool sources(struct decoder *d, const struct ptx_operand *op, const struct access *a,
                    uint32_t *at) {
    if (a->type == PTX_B128)
        return decode_wide(d, op, at);
    char shape = a->reg_bytes == 2 ? 'h' : a->reg_bytes == 4 ? '4' : '8';
    bool vector = op->kind == PTX_OP_VECTOR;
    if ((vector ? op->nelem : 1) != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < a->count; i++)
        if (!decode_source(d, vector ? &op->elem[i] : op, shape, &at[i]))
            return false;
    return true;
}

static bool results(struct decoder *d, const struct ptx_operand *op, struct access *a) {
    if (op->kind == PTX_OP_SYMBOL && str_is(op->name, "_"))
        return true;
    a->result = true;
    if (a->type == PTX_B128)
        return decode_wide(d, op, a->reg);
    char shape = a->reg_bytes == 2 ? 'h' : a->reg_bytes == 4 ? '4' : '8';
    bool vector = op->kind == PTX_OP_VECTOR;
    if ((vector ? op->nelem : 1) != a->count)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < a->count; i++)
        if (!decode_register(d, vector ? &op->elem[i] : op, shape, &a->reg[i]))
            return false;
    return true;
}

static bool decode_atomic(struct decoder *d, bool result) {
    const struct ptx_instr *in = d->in;
    struct access *a = arena_new_of(d->arena, struct access);
    uint8_t mode = 0;
    uint32_t base;
    if (!atomic_mods(d, a, &mode))
        return false;
    a->width = (uint8_t)ptx_type_bytes(a->type);
    a->bytes = (uint8_t)(a->width * a->count);
    a->reg_bytes = a->width == 16 ? 8 : a->width;
    size_t at = result ? 1 : 0, n = at + (mode == ATOMIC_CAS ? 3u : 2u);
    bool policy = decode_mod(d, "L2::cache_hint");
    bool space = a->space == PTX_GENERIC || a->space == PTX_GLOBAL || a->space == PTX_SHARED;
    if (!fits(a, mode) || !space || a->bytes > 16 || in->nops != n + policy)
        return decode_refuse(d, NULL);
    if (!decode_base(d, &in->ops[at], a, &base) || !sources(d, &in->ops[at + 1], a, a->from) ||
        (mode == ATOMIC_CAS && !sources(d, &in->ops[at + 2], a, a->other)) ||
        (result && !results(d, &in->ops[0], a)))
        return false;
    if (a->type == PTX_B128)
        a->count = 2;
    struct instr *i = decode_step(d, KIND_ATOMIC, CLASS_MEMORY);
    i->mode = mode;
    i->mem = a;
    i->a = base;
    i->flops = is_float(a->type) && mode == ATOMIC_ADD
                   ? (uint8_t)(a->count * (a->type == PTX_F16X2 || a->type == PTX_BF16X2 ? 2 : 1))
                   : 0;
    return true;
}

/* ---- copies that end later, and mbarriers, on which they end ---- */

static struct instr *async_step(struct decoder *d, uint8_t kind, struct async_op *a,
                                const struct operand_list *reads,
                                const struct operand_list *writes) {
    struct instr *i = decode_step(d, kind, CLASS_MEMORY);
    i->async = a;
    list_attach(d, i, reads, writes);
    d->prog->uses_async |= kind != KIND_COPY && kind != KIND_COPY_COMMIT && kind != KIND_COPY_WAIT;
    return i;
}

static enum ptx_space shared_or_generic(const struct decoder *d) {
    return decode_mod(d, "shared") || decode_mod(d, "shared::cta") ||
                   decode_mod(d, "shared::cluster")
               ? PTX_SHARED
               : PTX_GENERIC;
}

static bool waits_for(struct decoder *d, bool bulk) {
    const struct ptx_instr *in = d->in;
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    bool all = decode_mod(d, "wait_all");
    if (in->nops != (all ? 0u : 1u) || (!all && in->ops[0].kind != PTX_OP_IMM))
        return decode_refuse(d, NULL);
    a->grouped = bulk;
    a->read_only = decode_mod(d, "read");
    struct instr *i = async_step(d, KIND_COPY_WAIT, a, NULL, NULL);
    i->target = all                           ? UINT32_MAX
                : in->ops[0].imm > UINT16_MAX ? UINT16_MAX
                                              : (uint32_t)in->ops[0].imm;
    return true;
}

static bool commits(struct decoder *d, bool bulk) {
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    if (d->in->nops)
        return decode_refuse(d, NULL);
    a->grouped = bulk;
    async_step(d, KIND_COPY_COMMIT, a, NULL, NULL);
    return true;
}

/* cp.async.cg.shared.global [dst], [src], 16 {, src-size | ignore-src} {, policy}. */
static bool decode_copy(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    size_t policy = decode_mod(d, "L2::cache_hint"), n = in->nops - policy;
    bool cg = decode_mod(d, "cg");
    if ((!cg && !decode_mod(d, "ca")) || !decode_mod(d, "global") || in->nops < 3 + policy ||
        n > 4 || in->ops[2].kind != PTX_OP_IMM)
        return decode_refuse(d, NULL);
    uint64_t bytes = in->ops[2].imm;
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8)))
        return decode_refuse(d, "it copies 4, 8 or 16 bytes, .cg 16 alone");
    a->nbytes = (uint8_t)bytes;
    if (!list_where(d, &reads, &in->ops[0], PTX_SHARED, &a->to) ||
        !list_where(d, &reads, &in->ops[1], PTX_GLOBAL, &a->from))
        return false;
    if (n == 4) {
        const struct ptx_operand *op = &in->ops[3];
        a->ignorable = decode_shape_ok(d, op, 'p');
        if (!list_source(d, &reads, op, a->ignorable ? 'p' : '4', &a->source_size))
            return false;
    }
    async_step(d, KIND_COPY, a, &reads, NULL);
    return true;
}

/* cp.async.mbarrier.arrive{.noinc}.shared.b64 [bar]. */
static bool decode_copy_arrive(struct decoder *d) {
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    a->no_increase = decode_mod(d, "noinc");
    if (d->in->nops != 1)
        return decode_refuse(d, NULL);
    if (!list_where(d, &reads, &d->in->ops[0], shared_or_generic(d), &a->bar))
        return false;
    async_step(d, KIND_COPY_ARRIVE, a, &reads, NULL);
    return true;
}

static bool reduction(struct decoder *d, struct async_op *a) {
    static const struct {
        const char *name;
        enum tile_map_type type;
    } types[] = {
        {"u32", TILE_MAP_U32},   {"s32", TILE_MAP_S32}, {"u64", TILE_MAP_U64},
        {"s64", TILE_MAP_S64},   {"b32", TILE_MAP_U32}, {"b64", TILE_MAP_U64},
        {"f16", TILE_MAP_F16},   {"f32", TILE_MAP_F32}, {"f64", TILE_MAP_F64},
        {"bf16", TILE_MAP_BF16},
    };
    a->op = TILE_REDUCE_NONE;
    a->type = TILE_MAP_NO_TYPE;
    for (size_t i = 0; i < d->in->nmods; i++) {
        enum tile_reduce_op op = tile_reduce_find(d->in->mods[i]);
        if (op != TILE_REDUCE_NONE)
            a->op = op;
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (str_is(d->in->mods[i], types[k].name))
                a->type = types[k].type;
    }
    a->reduces = true;
    return a->op != TILE_REDUCE_NONE || decode_refuse(d, NULL);
}

static bool coordinates(struct decoder *d, struct operand_list *reads, struct async_op *a,
                        const struct ptx_operand *op) {
    const struct ptx_operand *list = op->elem;
    size_t n = op->nelem;
    if (n == 1 && list->kind == PTX_OP_VECTOR) {
        n = list->nelem;
        list = list->elem;
    }
    if (n != a->rank)
        return decode_refuse(d, "it has another number of coordinates");
    a->coordinate = (uint8_t)reads->n;
    for (size_t i = 0; i < n; i++) {
        uint8_t ignored;
        if (!list_source(d, reads, &list[i], '4', &ignored))
            return false;
    }
    return true;
}

static bool bulk_direction(struct decoder *d, struct async_op *a, uint8_t *mode) {
    size_t first = SIZE_MAX, second = SIZE_MAX;
    for (size_t i = 0; i < d->in->nmods; i++) {
        str m = d->in->mods[i];
        bool space =
            str_is(m, "global") || str_is(m, "shared::cta") || str_is(m, "shared::cluster");
        if (space && first == SIZE_MAX)
            first = i;
        else if (space)
            second = i;
        if (str_is(m, "1d") || str_is(m, "2d") || str_is(m, "3d") || str_is(m, "4d") ||
            str_is(m, "5d"))
            a->rank = (uint8_t)(m.p[0] - '0');
    }
    if (second == SIZE_MAX)
        return decode_refuse(d, NULL);
    bool to_global = str_is(d->in->mods[first], "global");
    bool from_global = str_is(d->in->mods[second], "global");
    *mode = to_global ? BULK_STORE : from_global ? BULK_LOAD : BULK_SHARE;
    a->grouped = decode_mod(d, "bulk_group");
    if ((to_global && from_global) || a->grouped != to_global ||
        (!a->grouped && !decode_mod(d, "mbarrier::complete_tx::bytes")))
        return decode_refuse(d, NULL);
    if (a->rank && *mode == BULK_SHARE)
        return decode_refuse(d, NULL);
    return true;
}

static bool refused_forms(struct decoder *d) {
    for (size_t i = 0; i < d->in->nmods; i++)
        if (str_starts(d->in->mods[i], S("im2col")))
            return decode_refuse(d, "im2col copies are not simulated; copy tiles");
    if (decode_mod(d, "cp_mask") || decode_mod(d, "tile::gather4") ||
        decode_mod(d, "tile::scatter4"))
        return decode_refuse(d, "it is not an instruction of sm_90");
    return true;
}

/* The operands are, of what there is: dst, src, size, mbarrier, mask, policy. A tensor's map and
 * coordinates are one operand. */
static bool decode_bulk(struct decoder *d, bool reduces) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    uint8_t mode = BULK_LOAD, ignored;
    if (!refused_forms(d) || !bulk_direction(d, a, &mode) || (reduces && !reduction(d, a)))
        return false;
    bool multicast = decode_mod(d, "multicast::cluster"), policy = decode_mod(d, "L2::cache_hint");
    size_t want = 2u + !a->rank + !a->grouped + multicast + policy, at = 2;
    if (in->nops != want || (multicast && mode != BULK_LOAD))
        return decode_refuse(d, "it has another number of operands");
    const struct ptx_operand *tensor = &in->ops[mode == BULK_LOAD ? 1 : 0];
    enum ptx_space to = mode == BULK_STORE ? (a->rank ? PTX_GENERIC : PTX_GLOBAL) : PTX_SHARED;
    enum ptx_space from = mode == BULK_LOAD ? (a->rank ? PTX_GENERIC : PTX_GLOBAL) : PTX_SHARED;
    if (!list_where(d, &reads, &in->ops[0], to, &a->to) ||
        !list_where(d, &reads, &in->ops[1], from, &a->from))
        return false;
    if (a->rank ? !coordinates(d, &reads, a, tensor)
                : !list_source(d, &reads, &in->ops[at++], '4', &a->size))
        return false;
    if (!a->grouped && !list_where(d, &reads, &in->ops[at++], PTX_SHARED, &a->bar))
        return false;
    if (multicast && !list_source(d, &reads, &in->ops[at++], 'h', &a->multicast))
        return false;
    if (policy && !list_source(d, &reads, &in->ops[at], '8', &ignored))
        return false;
    async_step(d, KIND_BULK, a, &reads, NULL)->mode = mode;
    return true;
}

/* st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [a], {…}, [bar]; red.async. */
static bool decode_remote_store(struct decoder *d, bool reduces) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    if (in->nops != 3 || (reduces && !reduction(d, a)))
        return decode_refuse(d, NULL);
    str type = in->mods[in->nmods - 1];
    bool wide = type.n == 3 && type.p[1] == '6' && type.p[2] == '4';
    a->nvalues = decode_mod(d, "v2") ? 2 : decode_mod(d, "v4") ? 4 : 1;
    a->nbytes = wide ? 8 : 4;
    if (!list_where(d, &reads, &in->ops[0], PTX_SHARED, &a->to) ||
        !list_where(d, &reads, &in->ops[2], PTX_SHARED, &a->bar))
        return false;
    a->value = (uint8_t)reads.n;
    if (!list_sources(d, &reads, &in->ops[1], a->nvalues, wide ? '8' : '4'))
        return false;
    async_step(d, KIND_BULK, a, &reads, NULL)->mode = BULK_WRITE;
    return true;
}

static bool mbarrier_mode(const struct decoder *d, uint8_t *out) {
    bool expect = decode_mod(d, "expect_tx");
    *out = decode_mod(d, "init")            ? MBARRIER_INIT
           : decode_mod(d, "inval")         ? MBARRIER_INVALIDATE
           : decode_mod(d, "arrive")        ? (expect ? MBARRIER_ARRIVE_EXPECT_TX : MBARRIER_ARRIVE)
           : decode_mod(d, "arrive_drop")   ? (expect ? MBARRIER_DROP_EXPECT_TX : MBARRIER_DROP)
           : expect                         ? MBARRIER_EXPECT_TX
           : decode_mod(d, "complete_tx")   ? MBARRIER_COMPLETE_TX
           : decode_mod(d, "test_wait")     ? MBARRIER_TEST
           : decode_mod(d, "try_wait")      ? MBARRIER_TRY
           : decode_mod(d, "pending_count") ? MBARRIER_PENDING
                                            : UINT8_MAX;
    return *out != UINT8_MAX;
}

/* The first operand is a result for all but init, inval, expect_tx and complete_tx; then the
 * address, then a count, a token or a parity. */
static bool decode_mbarrier(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    uint8_t mode;
    if (!mbarrier_mode(d, &mode))
        return decode_refuse(d, NULL);
    bool waits = mode == MBARRIER_TEST || mode == MBARRIER_TRY, pending = mode == MBARRIER_PENDING;
    bool result = waits || pending || mode == MBARRIER_ARRIVE || mode == MBARRIER_DROP ||
                  mode == MBARRIER_ARRIVE_EXPECT_TX || mode == MBARRIER_DROP_EXPECT_TX;
    size_t at = 0;
    a->parity = decode_mod(d, "parity");
    if (in->nops < (size_t)result + 1 || in->nops > (size_t)result + 3)
        return decode_refuse(d, "it has another number of operands");
    if (result) {
        const struct ptx_operand *to = &in->ops[at++];
        a->result = !(to->kind == PTX_OP_SYMBOL && str_is(to->name, "_"));
        char shape = waits ? 'p' : pending ? '4' : '8';
        if (a->result && !list_registers(d, &writes, to, 1, shape))
            return false;
    }
    if (pending) {
        if (in->nops != 2 || !list_source(d, &reads, &in->ops[1], '8', &a->value))
            return decode_refuse(d, NULL);
    } else if (!list_where(d, &reads, &in->ops[at++], shared_or_generic(d), &a->bar)) {
        return false;
    }
    if (!pending && at < in->nops) {
        a->counted = true;
        if (!list_source(d, &reads, &in->ops[at], waits && !a->parity ? '8' : '4', &a->value))
            return false;
    } else if (!pending && mode != MBARRIER_INVALIDATE && mode != MBARRIER_ARRIVE &&
               mode != MBARRIER_DROP) {
        return decode_refuse(d, "it has another number of operands");
    }
    async_step(d, KIND_MBARRIER, a, &reads, &writes)->mode = mode;
    return true;
}

/* tensormap.replace.tile.global_address.global.b1024.b64 [map], {ord,} value. */
static bool decode_map_replace(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    enum ptx_space space = PTX_GENERIC;
    if (!decode_mod(d, "replace") || in->nmods < 4 || in->nops < 2 || in->nops > 3)
        return decode_refuse(d, NULL);
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &space);
    a->field = in->mods[2];
    if (in->nops == 3) {
        if (in->ops[1].kind != PTX_OP_IMM || in->ops[1].imm >= TILE_MAX_RANK)
            return decode_refuse(d, NULL);
        a->ord = (uint32_t)in->ops[1].imm;
    }
    a->nbytes = decode_mod(d, "b64") ? 8 : 4;
    if (!list_where(d, &reads, &in->ops[0], space, &a->to) ||
        !list_source(d, &reads, &in->ops[in->nops - 1], a->nbytes == 8 ? '8' : '4', &a->value))
        return false;
    async_step(d, KIND_MAP_REPLACE, a, &reads, NULL);
    return true;
}

static bool decode_cp(struct decoder *d) {
    bool bulk = decode_mod(d, "bulk");
    if (decode_mod(d, "reduce"))
        return decode_bulk(d, true);
    if (!decode_mod(d, "async"))
        return decode_refuse(d, NULL);
    if (decode_mod(d, "commit_group"))
        return commits(d, bulk);
    if (decode_mod(d, "wait_group") || decode_mod(d, "wait_all"))
        return waits_for(d, bulk);
    if (decode_mod(d, "prefetch")) {
        decode_step(d, KIND_NOTHING, CLASS_MEMORY);
        return true;
    }
    if (decode_mod(d, "mbarrier"))
        return decode_copy_arrive(d);
    return bulk ? decode_bulk(d, false) : decode_copy(d);
}

static bool decode_async(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "cp"))
        return decode_cp(d);
    if (str_is(op, "mbarrier"))
        return decode_mbarrier(d);
    if (str_is(op, "tensormap"))
        return decode_map_replace(d);
    if (str_is(op, "st") || str_is(op, "red"))
        return decode_remote_store(d, str_is(op, "red"));
    if (str_is(op, "createpolicy")) { /* a hint's value means nothing here */
        uint32_t to;
        if (!d->in->nops || !decode_register(d, &d->in->ops[0], '8', &to))
            return decode_refuse(d, NULL);
        return decode_lanes(d, "mov.b64", to, decode_constant(d, 0, 8, false), 0);
    }
    *known = false;
    return true;
}

/* ---- what the lanes of a warp or the warps of a block do together ---- */

/* barrier.sync 0; barrier.sync 1, 64; bar.red.popc.u32 d, 0, p. */
static bool decode_barrier(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool popc = decode_mod(d, "popc"), all = decode_mod(d, "and"), any = decode_mod(d, "or");
    bool red = decode_mod(d, "red"), warp = decode_mod(d, "warp");
    uint32_t id, count = 0, pred = 0, to = 0;
    size_t at = red ? 1 : 0, end = in->nops - (red ? 1 : 0);
    if (warp) {
        if (in->nops != 1 || !decode_source(d, &in->ops[0], '4', &id))
            return decode_refuse(d, NULL);
        decode_step(d, KIND_WARP_SYNC, CLASS_CONTROL)->a = id;
        return true;
    }
    bool arrive = decode_mod(d, "arrive");
    if (!(decode_mod(d, "sync") || red || arrive) ||
        in->nops < (red      ? 3u
                    : arrive ? 2u
                             : 1u) ||
        end - at > 2)
        return decode_refuse(d, NULL);
    if (!decode_source(d, &in->ops[at], '4', &id) ||
        (end - at == 2 && !decode_source(d, &in->ops[at + 1], '4', &count)))
        return false;
    if (red && (in->ops[end].negated || !(popc || all || any) ||
                !decode_source(d, &in->ops[end], 'p', &pred) ||
                !decode_register(d, &in->ops[0], popc ? '4' : 'p', &to)))
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_BARRIER, CLASS_CONTROL);
    i->mode = arrive ? BARRIER_ARRIVE
              : !red ? BARRIER_SYNC
              : popc ? BARRIER_POPC
              : all  ? BARRIER_AND
                     : BARRIER_OR;
    i->d = to;
    i->a = id;
    i->b = count;
    i->c = pred;
    i->dst_bytes = red ? 4 : 0;
    i->wide = str_is(in->op, "bar") || decode_mod(d, "aligned");
    return true;
}

/* shfl.sync.bfly.b32 d|p, a, b, c, mask. */
static bool decode_shuffle(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    uint32_t to, pred = 0, a, b, c, mask;
    if (in->nops != 5 || !decode_mod(d, "sync") || !decode_mod(d, "b32"))
        return decode_refuse(d, NULL);
    const struct ptx_operand *dst = &in->ops[0];
    if (dst->kind == PTX_OP_VECTOR) {
        if (dst->nelem != 2 || !decode_register(d, &dst->elem[1], 'p', &pred))
            return decode_refuse(d, NULL);
        dst = &dst->elem[0];
    }
    if (!decode_register(d, dst, '4', &to) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &b) || !decode_source(d, &in->ops[3], '4', &c) ||
        !decode_source(d, &in->ops[4], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_SHUFFLE, CLASS_MEMORY);
    i->mode = decode_mod(d, "up")     ? SHUFFLE_UP
              : decode_mod(d, "down") ? SHUFFLE_DOWN
              : decode_mod(d, "bfly") ? SHUFFLE_BFLY
                                      : SHUFFLE_IDX;
    i->d = to, i->d2 = pred, i->a = a, i->b = b, i->c = c, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

/* vote.sync.ballot.b32 d, p, mask. */
static bool decode_vote(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool ballot = decode_mod(d, "ballot");
    uint32_t to, p, mask;
    if (in->nops != 3 || !decode_mod(d, "sync"))
        return decode_refuse(d, NULL);
    struct ptx_operand from = in->ops[1];
    from.negated = false;
    if (!decode_register(d, &in->ops[0], ballot ? '4' : 'p', &to) ||
        !decode_source(d, &from, 'p', &p) || !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_VOTE, CLASS_INT);
    i->mode = ballot                 ? VOTE_BALLOT
              : decode_mod(d, "all") ? VOTE_ALL
              : decode_mod(d, "any") ? VOTE_ANY
                                     : VOTE_UNI;
    i->negate = in->ops[1].negated;
    i->d = to, i->a = p, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

static bool decode_redux(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool s = decode_mod(d, "s32"), u = decode_mod(d, "u32"), b = decode_mod(d, "b32");
    uint32_t to, a, mask;
    if (in->nops != 3 || !decode_mod(d, "sync") || !(s || u || b))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], '4', &to) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_REDUX, CLASS_INT);
    i->mode = decode_mod(d, "add")   ? REDUX_ADD
              : decode_mod(d, "min") ? (s ? REDUX_MIN_S : REDUX_MIN_U)
              : decode_mod(d, "max") ? (s ? REDUX_MAX_S : REDUX_MAX_U)
              : decode_mod(d, "and") ? REDUX_AND
              : decode_mod(d, "or")  ? REDUX_OR
                                     : REDUX_XOR;
    i->d = to, i->a = a, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

static bool decode_active(struct decoder *d) {
    uint32_t to;
    if (d->in->nops != 1 || !decode_register(d, &d->in->ops[0], '4', &to))
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_ACTIVE, CLASS_INT);
    i->d = to;
    i->dst_bytes = 4;
    return true;
}

/* barrier.cluster.arrive, barrier.cluster.wait. */
static bool decode_cluster_barrier(struct decoder *d) {
    bool arrive = decode_mod(d, "arrive"), wait = decode_mod(d, "wait");
    if (arrive == wait || d->in->nops)
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_CLUSTER_BARRIER, CLASS_CONTROL);
    i->mode = arrive ? CLUSTER_ARRIVE : CLUSTER_WAIT;
    i->negate = decode_mod(d, "relaxed");
    d->prog->uses_cluster = true;
    return true;
}

/* match.any.sync.b32 d, a, mask; match.all.sync.b32 d|p, a, mask. */
static bool decode_match(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool wide = decode_mod(d, "b64");
    uint32_t to, pred = 0, a, mask;
    if (in->nops != 3 || !decode_mod(d, "sync") || !(wide || decode_mod(d, "b32")))
        return decode_refuse(d, NULL);
    const struct ptx_operand *dst = &in->ops[0];
    if (dst->kind == PTX_OP_VECTOR) {
        if (dst->nelem != 2 || !decode_register(d, &dst->elem[1], 'p', &pred))
            return decode_refuse(d, NULL);
        dst = &dst->elem[0];
    }
    if (!decode_register(d, dst, '4', &to) ||
        !decode_source(d, &in->ops[1], wide ? '8' : '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_MATCH, CLASS_INT);
    i->mode = decode_mod(d, "all") ? MATCH_ALL : MATCH_ANY;
    i->d = to, i->d2 = pred, i->a = a, i->e = mask;
    i->dst_bytes = 4;
    i->wide = wide;
    return true;
}

/* elect.sync d|p, mask. */
static bool decode_elect(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    const struct ptx_operand *dst = in->nops ? &in->ops[0] : NULL;
    uint32_t to, pred, mask;
    if (in->nops != 2 || dst->kind != PTX_OP_VECTOR || dst->nelem != 2)
        return decode_refuse(d, NULL);
    if (!decode_register(d, &dst->elem[0], '4', &to) ||
        !decode_register(d, &dst->elem[1], 'p', &pred) ||
        !decode_source(d, &in->ops[1], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_ELECT, CLASS_INT);
    i->d = to, i->d2 = pred, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

/* mapa.shared::cluster.u32 d, a, rank; getctarank.u64 d, a: without a space, generic addresses. */
static bool decode_mapa(struct decoder *d, bool map) {
    const struct ptx_instr *in = d->in;
    bool wide = decode_mod(d, "u64"), window = decode_mod(d, "shared::cluster");
    uint32_t to, a, rank = 0;
    if (in->nops != (map ? 3u : 2u) || !(wide || decode_mod(d, "u32")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], map && wide ? '8' : '4', &to) ||
        !decode_source(d, &in->ops[1], wide ? '8' : '4', &a) ||
        (map && !decode_source(d, &in->ops[2], '4', &rank)))
        return false;
    struct instr *i = decode_step(d, KIND_MAPA, CLASS_INT);
    i->mode = map ? MAPA_MAP : MAPA_RANK;
    i->negate = !window;
    i->wide = wide;
    i->d = to, i->a = a, i->b = rank;
    i->dst_bytes = map && wide ? 8 : 4;
    d->prog->uses_cluster = true;
    return true;
}

static bool decode_fence(struct decoder *d) {
    uint8_t mode = decode_mod(d, "proxy") || decode_mod(d, "proxy::async") ? FENCE_PROXY
                   : decode_mod(d, "cta")                                  ? FENCE_CTA
                   : decode_mod(d, "cluster")                              ? FENCE_CLUSTER
                                                                           : FENCE_GPU;
    decode_step(d, KIND_FENCE, CLASS_CONTROL)->mode = mode;
    return true;
}

/* setmaxnreg.inc.sync.aligned.u32 240. */
static bool decode_registers(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    if (in->nops != 1 || in->ops[0].kind != PTX_OP_IMM)
        return decode_refuse(d, NULL);
    if (in->ops[0].imm < 24 || in->ops[0].imm > 256 || in->ops[0].imm % 8 != 0)
        return decode_refuse(d, "it takes a multiple of 8 from 24 to 256");
    decode_step(d, KIND_REGISTERS, CLASS_CONTROL)->target = (uint32_t)in->ops[0].imm;
    return true;
}

static bool decode_sync(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "barrier") && decode_mod(d, "cluster"))
        return decode_cluster_barrier(d);
    if (str_is(op, "bar") || str_is(op, "barrier"))
        return decode_barrier(d);
    if (str_is(op, "match"))
        return decode_match(d);
    if (str_is(op, "elect"))
        return decode_elect(d);
    if (str_is(op, "mapa") || str_is(op, "getctarank"))
        return decode_mapa(d, str_is(op, "mapa"));
    if (str_is(op, "membar") || str_is(op, "fence"))
        return decode_fence(d);
    if (str_is(op, "nanosleep")) {
        decode_step(d, KIND_PAUSE, CLASS_CONTROL);
        return true;
    }
    if (str_is(op, "setmaxnreg"))
        return decode_registers(d);
    if (str_is(op, "shfl"))
        return decode_shuffle(d);
    if (str_is(op, "vote"))
        return decode_vote(d);
    if (str_is(op, "redux"))
        return decode_redux(d);
    if (str_is(op, "activemask"))
        return decode_active(d);
    *known = false;
    return true;
}

/* ---- tensor cores: matrices, mma, wmma, wgmma ----
 *
 * What their suffixes mean is known in tile_*.c; here their operands get places. */

static struct tile_op *tile_new(struct decoder *d) {
    return arena_new_of(d->arena, struct tile_op);
}

static struct instr *tile_step(struct decoder *d, uint8_t kind, uint8_t class, struct tile_op *t,
                               const struct operand_list *reads,
                               const struct operand_list *writes) {
    uint32_t all = decode_constant(d, UINT32_MAX, 4, false);
    struct instr *i = decode_step(d, kind, class);
    i->tile = t;
    i->e = all; /* all lanes have to be there */
    list_attach(d, i, reads, writes);
    return i;
}

/* ldmatrix {d…}, [a]; stmatrix [a], {s…}; movmatrix d, s. */
static bool decode_matrix(struct decoder *d, uint8_t mode) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    const char *why = NULL;
    if (!tile_matrix_parse(in->mods, in->nmods, &t->matrix, &why) || in->nops != 2)
        return decode_refuse(d, why);
    const struct ptx_operand *data = &in->ops[mode == MATRIX_LOAD ? 0 : 1];
    if (mode == MATRIX_MOVE) {
        if (!list_sources(d, &reads, data, 1, '4') ||
            !list_registers(d, &writes, &in->ops[0], 1, '4'))
            return false;
    } else if (!list_where(d, &reads, &in->ops[mode == MATRIX_LOAD ? 1 : 0],
                           decode_mod(d, "shared") || decode_mod(d, "shared::cta") ? PTX_SHARED
                                                                                   : PTX_GENERIC,
                           &t->at) ||
               !(mode == MATRIX_LOAD ? list_registers(d, &writes, data, t->matrix.count, '4')
                                     : list_sources(d, &reads, data, t->matrix.count, '4'))) {
        return false;
    }
    tile_step(d, KIND_MATRIX, CLASS_MEMORY, t, &reads, &writes)->mode = mode;
    return true;
}

static bool decode_mma(struct decoder *d, bool wmma) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    struct tile_mma *f = &t->mma;
    const char *why = NULL;
    bool ok = wmma ? tile_wmma_parse(in->mods, in->nmods, d->prog->sm, f, &why)
                   : tile_mma_parse(in->mods, in->nmods, d->prog->sm, f, &why);
    if (!ok || in->nops != 4)
        return decode_refuse(d, why);
    char ab = f->a == TILE_F64 ? '8' : '4', cd = f->d == TILE_F64 ? '8' : '4';
    if (!list_sources(d, &reads, &in->ops[1], f->na, ab) ||
        !list_sources(d, &reads, &in->ops[2], f->nb, ab) ||
        !list_sources(d, &reads, &in->ops[3], f->nc, cd) ||
        !list_registers(d, &writes, &in->ops[0], f->nd, cd))
        return false;
    tile_step(d, KIND_MMA, CLASS_TENSOR, t, &reads, &writes)->flops =
        2u * f->m * f->n * f->k * (f->quads ? 4u : 1u) / SIM_LANES;
    return true;
}

/* wmma.load.a… {d…}, [p], stride; wmma.store.d… [p], {s…}, stride. */
static bool decode_fragment(struct decoder *d, bool store) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    const char *why = NULL;
    uint8_t stride;
    enum ptx_space space = PTX_GENERIC;
    if (!tile_fragment_parse(in->mods, in->nmods, &t->fragment, &why) || in->nops < 2 ||
        in->nops > 3)
        return decode_refuse(d, why);
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &space);
    t->store = store;
    t->has_stride = t->fragment.has_stride = in->nops == 3;
    char shape = t->fragment.reg_bytes == 8 ? '8' : '4';
    const struct ptx_operand *data = &in->ops[store ? 1 : 0];
    if (!list_where(d, &reads, &in->ops[store ? 0 : 1], space, &t->at) ||
        (t->has_stride && !list_source(d, &reads, &in->ops[2], '4', &stride)) ||
        !(store ? list_sources(d, &reads, data, t->fragment.nregs, shape)
                : list_registers(d, &writes, data, t->fragment.nregs, shape)))
        return false;
    tile_step(d, KIND_FRAGMENT, CLASS_MEMORY, t, &reads, &writes);
    return true;
}

static bool immediate(struct decoder *d, const struct ptx_operand *op, int64_t *out) {
    if (op->kind != PTX_OP_IMM)
        return decode_refuse(d, "an operand has to be a number");
    *out = (int64_t)op->imm;
    return true;
}

/* After D, A, B: scale-d, then scales of A and B, then whether they are transposed. */
static bool wgmma_immediates(struct decoder *d, struct tile_wgmma *f, size_t at) {
    const struct ptx_instr *in = d->in;
    int64_t v[4] = {1, 1, 0, 0};
    size_t n = in->nops - at;
    if (n > 4 || (n != 0 && n != 2 && n != 3 && n != 4))
        return decode_refuse(d, "it has another number of operands");
    for (size_t i = 0; i < n; i++)
        if (!immediate(d, &in->ops[at + i], &v[i]))
            return false;
    if ((v[0] != 1 && v[0] != -1) || (v[1] != 1 && v[1] != -1) || v[2] < 0 || v[2] > 1 ||
        v[3] < 0 || v[3] > 1)
        return decode_refuse(d, "scales are 1 or -1, transpositions 0 or 1");
    f->negate_a = v[0] < 0;
    f->negate_b = v[1] < 0;
    if (n == 3) { /* A is in registers: B's alone */
        f->trans_b = v[2];
        return true;
    }
    f->trans_a = v[2];
    f->trans_b = v[3];
    return true;
}

static bool decode_wgmma_mma(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct tile_op *t = tile_new(d);
    struct tile_wgmma *f = &t->wgmma;
    const char *why = NULL;
    uint8_t ignored;
    if (!tile_wgmma_parse(in->mods, in->nmods, f, &why) || in->nops < 4)
        return decode_refuse(d, why);
    f->a_in_registers = in->ops[1].kind == PTX_OP_VECTOR;
    if (!wgmma_immediates(d, f, 4) || (why = tile_wgmma_check(f)))
        return why ? decode_refuse(d, why) : false;
    if (!list_source(d, &reads, &in->ops[3], 'p', &ignored) ||
        !list_source(d, &reads, &in->ops[2], '8', &ignored) ||
        !(f->a_in_registers ? list_sources(d, &reads, &in->ops[1], TILE_WGMMA_A_REGS, '4')
                            : list_source(d, &reads, &in->ops[1], '8', &ignored)) ||
        !list_registers(d, &writes, &in->ops[0], f->nd, '4'))
        return false;
    struct instr *i = tile_step(d, KIND_WGMMA, CLASS_TENSOR, t, &reads, &writes);
    i->flops = 2u * 64u * f->n * f->k / (SIM_LANES * TILE_WGMMA_WARPS);
    i->pinned = true;
    return true;
}

static bool decode_wgmma(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    d->prog->uses_wgmma = true;
    if (decode_mod(d, "mma_async"))
        return decode_wgmma_mma(d);
    if (decode_mod(d, "fence") && !in->nops) {
        tile_step(d, KIND_WGMMA_FENCE, CLASS_CONTROL, NULL, NULL, NULL);
        return true;
    }
    if (decode_mod(d, "commit_group") && !in->nops) {
        tile_step(d, KIND_WGMMA_COMMIT, CLASS_CONTROL, NULL, NULL, NULL);
        return true;
    }
    int64_t n = 0;
    if (!decode_mod(d, "wait_group") || in->nops != 1)
        return decode_refuse(d, NULL);
    if (!immediate(d, &in->ops[0], &n))
        return false;
    if (n < 0 || n > 7)
        return decode_refuse(d, "it waits for 0 to 7 groups");
    tile_step(d, KIND_WGMMA_WAIT, CLASS_CONTROL, NULL, NULL, NULL)->target = (uint32_t)n;
    return true;
}

static bool decode_tensor(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "mma"))
        return decode_mma(d, false);
    if (str_is(op, "wgmma"))
        return decode_wgmma(d);
    if (str_is(op, "ldmatrix"))
        return decode_matrix(d, MATRIX_LOAD);
    if (str_is(op, "stmatrix"))
        return decode_matrix(d, MATRIX_STORE);
    if (str_is(op, "movmatrix"))
        return decode_matrix(d, MATRIX_MOVE);
    if (str_is(op, "wmma") && decode_mod(d, "mma"))
        return decode_mma(d, true);
    if (str_is(op, "wmma"))
        return decode_fragment(d, decode_mod(d, "store"));
    *known = false;
    return true;
}

/* ---- the entry, its branches and calls ---- */

/* Control flow. */
static bool is_label(const struct ptx_operand *op) {
    return op->kind == PTX_OP_SYMBOL && op->symbol == PTX_SYM_LABEL;
}

static bool decode_branch(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    const struct ptx_operand *to = in->nops ? &in->ops[in->nops - 1] : NULL;
    if (in->nops != 1 || !is_label(to))
        return decode_refuse(d, "it needs a label");
    decode_step(d, KIND_BRANCH, CLASS_CONTROL)->target = to->index;
    return true;
}

static bool decode_branch_table(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    const struct ptx_entry *f = d->frame->f;
    if (!decode_mod(d, "idx") || in->nops != 2 || !is_label(&in->ops[1]))
        return decode_refuse(d, NULL);
    size_t at = f->labels[in->ops[1].index].target;
    if (at >= f->ninstrs || !str_is(f->instrs[at].op, "branchtargets") || !f->instrs[at].nops)
        return decode_refuse(d, "its table is not .branchtargets");
    const struct ptx_instr *table = &f->instrs[at];
    uint32_t index, *targets = arena_array(d->arena, uint32_t, table->nops);
    for (size_t i = 0; i < table->nops; i++) {
        if (!is_label(&table->ops[i]))
            return decode_refuse(d, "its table names no label");
        targets[i] = table->ops[i].index;
    }
    if (!decode_source(d, &in->ops[0], '4', &index))
        return false;
    struct instr *i = decode_step(d, KIND_BRANCH_TABLE, CLASS_CONTROL);
    i->a = index;
    i->targets = targets;
    i->ntargets = (uint32_t)table->nops;
    return true;
}

static bool decode_function(struct decoder *d, struct frame *fr);

static bool bind(struct decoder *d, const struct ptx_operand *list, const struct ptx_param *formal,
                 size_t n, size_t **out) {
    *out = arena_array(d->arena, size_t, n ? n : 1);
    if ((list ? list->nelem : 0) != n)
        return decode_refuse(d, "its arguments do not match the function");
    for (size_t i = 0; i < n; i++) {
        struct symbol s;
        if (list->elem[i].kind != PTX_OP_SYMBOL || !decode_symbol(d, &list->elem[i], &s))
            return decode_refuse(d, "its arguments are not .param variables");
        if (s.space != PTX_LOCAL || s.size < formal[i].size)
            return decode_refuse(d, "its arguments do not match the function");
        (*out)[i] = s.at;
    }
    return true;
}

static struct frame *callee_of(struct decoder *d, const struct ptx_function *f) {
    bool callable = f->entry >= 0 && !d->m->entries[f->entry].is_kernel;
    return callable ? &d->frames[f->entry] : NULL;
}

/* `call (ret), f, (args)`: the function's code follows, bound to the caller's variables. */
static bool decode_call(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    size_t at = in->nops && in->ops[0].kind == PTX_OP_VECTOR ? 1 : 0;
    if (at >= in->nops || in->ops[at].symbol != PTX_SYM_FUNCTION || in->nops > at + 2)
        return decode_refuse(d, "only direct calls of functions of the module are");
    const struct ptx_function *function = &d->m->functions[in->ops[at].index];
    struct frame *caller = d->frame, *callee = callee_of(d, function);
    if (!callee && str_is(function->name, "__assertfail")) {
        decode_step(d, KIND_TRAP, CLASS_CONTROL)->mode = TRAP_ASSERT;
        return true;
    }
    if (!callee)
        return decode_refuse(d, "the function is not defined in the module");
    if (callee->active || d->depth >= DECODE_MAX_CALLS)
        return decode_refuse(d, "it is recursive");
    size_t *params, *rets;
    const struct ptx_operand *args = at + 1 < in->nops ? &in->ops[at + 1] : NULL;
    if ((args && args->kind != PTX_OP_VECTOR) ||
        !bind(d, at ? &in->ops[0] : NULL, callee->f->rets, callee->f->nrets, &rets) ||
        !bind(d, args, callee->f->params, callee->f->nparams, &params))
        return decode_refuse(d, "its arguments do not match the function");
    size_t skip = d->ncode;
    struct instr *i = decode_step(d, in->guard >= 0 ? KIND_BRANCH : KIND_NOTHING, CLASS_CONTROL);
    i->guard_negated = !i->guard_negated;
    callee->param_at = params;
    callee->ret_at = rets;
    callee->active = true;
    d->frame = callee;
    d->depth++;
    bool ok = decode_function(d, callee);
    d->depth--;
    d->frame = caller;
    callee->active = false;
    d->code[skip].target = (uint32_t)d->ncode;
    return ok;
}

static bool decode_return(struct decoder *d, bool leave) {
    bool branch = !leave && !d->frame->f->is_kernel;
    decode_step(d, branch ? KIND_BRANCH : KIND_EXIT, CLASS_CONTROL)->target = UINT32_MAX;
    return true;
}

/* `discard` is none of them: it leaves indeterminate what was there, inputs and results included.
 * Nor is `brkpt`, at which a launch without a debugger ends. */
static bool is_nothing(str op) {
    static const char *const names[] = {"prefetch", "prefetchu", "applypriority", "pmevent",
                                        "griddepcontrol"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(op, names[i]))
            return true;
    return false;
}

static bool decode_instr(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool known;
    if (decode_mod(d, "async") && (str_is(in->op, "st") || str_is(in->op, "red")))
        return decode_async(d, &known);
    if (str_is(in->op, "ld") || str_is(in->op, "ldu"))
        return decode_access(d, false);
    if (str_is(in->op, "st"))
        return decode_access(d, true);
    if (str_is(in->op, "atom") || str_is(in->op, "red"))
        return decode_atomic(d, str_is(in->op, "atom"));
    if (str_is(in->op, "mov"))
        return decode_mov(d);
    if (str_is(in->op, "cvt"))
        return decode_cvt(d);
    if (str_is(in->op, "cvta"))
        return decode_cvta(d);
    if (str_is(in->op, "isspacep"))
        return decode_isspacep(d);
    if (str_is(in->op, "bra"))
        return decode_branch(d);
    if (str_is(in->op, "brx"))
        return decode_branch_table(d);
    if (str_is(in->op, "call"))
        return decode_call(d);
    if (str_is(in->op, "ret") || str_is(in->op, "exit"))
        return decode_return(d, str_is(in->op, "exit"));
    if (str_is(in->op, "trap")) {
        decode_step(d, KIND_TRAP, CLASS_CONTROL);
        return true;
    }
    if (is_nothing(in->op)) {
        decode_step(d, KIND_NOTHING, CLASS_CONTROL);
        return true;
    }
    if (!decode_sync(d, &known))
        return false;
    if (!known && !decode_tensor(d, &known))
        return false;
    if (!known && !decode_async(d, &known))
        return false;
    return known || decode_alu(d);
}

/* Branches hold a label's number until their function is complete; UINT32_MAX: its end. A call
 * inside has resolved its own by then, so each function notes which steps are its own. */
static void resolve(struct decoder *d, const struct ptx_entry *f, const uint32_t *start,
                    const size_t *own, size_t nown) {
    for (size_t k = 0; k < nown; k++) {
        struct instr *i = &d->code[own[k]];
        if (i->kind == KIND_BRANCH)
            i->target =
                i->target == UINT32_MAX ? start[f->ninstrs] : start[f->labels[i->target].target];
        for (uint32_t t = 0; i->kind == KIND_BRANCH_TABLE && t < i->ntargets; t++)
            ((uint32_t *)i->targets)[t] = start[f->labels[i->targets[t]].target];
    }
}

static bool decode_function(struct decoder *d, struct frame *fr) {
    const struct ptx_entry *f = fr->f;
    uint32_t *start = arena_array(d->arena, uint32_t, f->ninstrs + 1);
    const struct ptx_instr *call = d->in;
    size_t *own = NULL, nown = 0, cap = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < f->ninstrs; i++) {
        start[i] = (uint32_t)d->ncode;
        d->in = &f->instrs[i];
        d->first_step = true;
        if (str_is(d->in->op, "branchtargets"))
            continue;
        if (d->ncode > SIM_MAX_CODE || d->prog->register_bytes > SIM_MAX_REGISTER_BYTES)
            ok = decode_refuse(d, "the program is too large");
        ok = ok && decode_instr(d);
        bool branch = str_is(f->instrs[i].op, "bra") || str_is(f->instrs[i].op, "brx") ||
                      str_is(f->instrs[i].op, "ret");
        if (ok && branch) {
            own = mem_grow(own, &cap, nown + 1, sizeof *own);
            own[nown++] = d->ncode - 1;
        }
    }
    d->in = call;
    start[f->ninstrs] = (uint32_t)d->ncode;
    if (ok)
        resolve(d, f, start, own, nown);
    mem_free(own);
    return ok;
}

static struct frame *frames_new(struct decoder *d) {
    struct frame *frames = arena_array(d->arena, struct frame, d->m->nentries);
    for (size_t i = 0; i < d->m->nentries; i++) {
        const struct ptx_entry *f = &d->m->entries[i];
        frames[i].f = f;
        frames[i].reg_at = arena_array(d->arena, uint32_t, f->nregs + 1);
        frames[i].var_at = arena_array(d->arena, size_t, f->nvars + 1);
        for (size_t v = 0; v < f->nvars; v++)
            frames[i].var_at[v] = SIZE_MAX;
    }
    return frames;
}

static bool decode_params(struct decoder *d) {
    size_t end = 0;
    for (size_t i = 0; i < d->frame->f->nparams; i++) {
        const struct ptx_param *p = &d->frame->f->params[i];
        end = (end + p->align - 1) & ~(p->align - 1);
        if (!add_size(end, p->size, &end) || end > SIM_MAX_PARAMS)
            return err_set(d->err, ERR_INPUT, "kernel %.*s has more than %u bytes of parameters",
                           STR_ARG(d->frame->f->name), SIM_MAX_PARAMS);
    }
    d->prog->params_bytes = end;
    return true;
}

static bool decode_entry(struct decoder *d) {
    struct sim_program *p = d->prog;
    if (!decode_params(d))
        return false;
    d->frame->active = true;
    if (!decode_function(d, d->frame))
        return false;
    static const struct ptx_instr end = {.op = {"exit", 4}, .text = {"exit;", 5}, .guard = -1};
    d->in = &end;
    decode_step(d, KIND_EXIT, CLASS_CONTROL); /* uncounted: falling off the end */
    size_t align = p->dynamic_align ? p->dynamic_align : 1;
    p->static_shared = (p->static_shared + align - 1) & ~(align - 1);
    for (size_t i = 0; i < d->nconstants; i++)
        if (d->constants[i].after_static_shared)
            d->constants[i].bits += p->static_shared;
    return true;
}

static void *keep(struct arena *a, const void *p, size_t n, size_t size) {
    void *copy = arena_array_bytes(a, n ? n : 1, size, 16);
    if (n)
        memcpy(copy, p, n * size);
    return copy;
}

/* "sm_90a" is 90; what cannot be read counts as the newest there is. */
static unsigned target_sm(str target) {
    unsigned sm = 0;
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] >= '0' && target.p[i] <= '9' && sm < 1000)
            sm = sm * 10 + (unsigned)(target.p[i] - '0');
    return sm ? sm : 90;
}

bool sim_load(const struct ptx_module *m, const struct ptx_entry *e, struct arena *a,
              struct sim_program **out, struct err *err) {
    struct sim_program *p = arena_new_of(a, struct sim_program);
    struct decoder d = {.m = m, .arena = a, .err = err, .prog = p};
    *p = (struct sim_program){.module = m, .entry = e, .register_bytes = REGISTERS_START};
    p->sm = target_sm(m->target);
    if (!e->is_kernel)
        return err_set(err, ERR_INPUT, "%.*s is not a kernel", STR_ARG(e->name));
    ops_init(&d);
    d.frames = frames_new(&d);
    d.module_at = arena_array(a, size_t, m->nvars + 1);
    for (size_t i = 0; i < m->nvars; i++)
        d.module_at[i] = SIZE_MAX;
    d.frame = &d.frames[e - m->entries];
    bool ok = decode_entry(&d);
    p->code = keep(a, d.code, d.ncode, sizeof *d.code);
    p->ncode = d.ncode;
    p->constants = keep(a, d.constants, d.nconstants, sizeof *d.constants);
    p->nconstants = d.nconstants;
    p->specials = keep(a, d.specials, d.nspecials, sizeof *d.specials);
    p->nspecials = d.nspecials;
    mem_free(d.code);
    mem_free(d.constants);
    p->params = keep(a, d.params, d.nparams, sizeof *d.params);
    p->nparams = d.nparams;
    mem_free(d.specials);
    mem_free(d.params);
    if (ok) {
        flow_find_order(p);
        flow_mark_waits(p);
        slots_assign(p, a, d.places, d.nplaces);
        flow_find_watched(p);
        coverage_find_choices(p);
        reconverge_find(p);
        flow_find_straight(p, a);
    }
    mem_free(d.places);
    *out = ok ? p : NULL;
    return ok;
}
