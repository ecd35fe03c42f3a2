/* sim_load: the driver of decoding. Walks the entry's instructions, inlines calls, resolves
 * branches, lays out memory, and refuses what cannot be run, with the line and what to do. */
#include "sim/decode.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

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

bool decode_refuse(struct decoder *d, const char *why) {
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
    return err_set(d->err, ERR_INPUT,
                   "PTX line %u%s: '%.*s' is not supported by the simulator%s%s; %s", in->line,
                   where, STR_ARG(in->text), why ? ": " : "", why ? why : "", remedy);
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

const struct lane_op *decode_find(const struct decoder *d, const char *name) {
    for (uint32_t h = op_hash(name) % OP_SLOTS; d->ops[h].op; h = (h + 1) % OP_SLOTS)
        if (!strcmp(d->ops[h].op->name, name))
            return d->ops[h].op;
    return NULL;
}

/* Room for 32 lanes in the register file. */
uint32_t decode_place(struct decoder *d, uint8_t bytes) {
    uint32_t at = d->prog->register_bytes;
    d->prog->register_bytes += bytes * SIM_LANES;
    d->places = mem_grow(d->places, &d->places_cap, d->nplaces + 1, sizeof *d->places);
    d->places[d->nplaces++] = (struct place){at, bytes};
    return at;
}

uint32_t decode_temp(struct decoder *d, int i) {
    if (!d->temp[i])
        d->temp[i] = decode_place(d, 8);
    return d->temp[i];
}

uint32_t decode_constant(struct decoder *d, uint64_t bits, uint8_t bytes, bool after_static) {
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

uint32_t decode_window(struct decoder *d, uint64_t base, int8_t sign) {
    for (size_t i = d->nconstants; i-- > 0 && d->nconstants - i < 256;)
        if (d->constants[i].bits == base && d->constants[i].window == sign)
            return d->constants[i].at;
    d->constants =
        mem_grow(d->constants, &d->constants_cap, d->nconstants + 1, sizeof *d->constants);
    uint32_t at = decode_place(d, 8);
    d->constants[d->nconstants++] = (struct constant){base, at, 8, false, sign};
    return at;
}

struct instr *decode_step(struct decoder *d, uint8_t kind, uint8_t class) {
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

bool decode_mod(const struct decoder *d, const char *mod) {
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

bool decode_symbol(struct decoder *d, const struct ptx_operand *op, struct symbol *out) {
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

static bool is_nothing(str op) {
    static const char *const names[] = {"prefetch", "prefetchu",      "applypriority", "pmevent",
                                        "discard",  "griddepcontrol", "brkpt"};
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
