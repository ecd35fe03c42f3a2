/* A function's body: registers, variables, labels, source positions and instructions. */
#include "ptx/parser.h"

struct scope {
    size_t names, refs; /* how many there were when it opened */
};

/* A name that must turn out to be a label; operands stay where they are in the arena. */
struct ref {
    struct ptx_operand *op;
    uint32_t line;
};

#define UNRESOLVED UINT32_MAX

struct body {
    struct parser *p;
    struct ptx_entry *e;
    struct list regs, vars, instrs, labels, refs;
    struct scope scopes[PTX_MAX_SCOPES];
    size_t depth;
    uint32_t src_line, src_file, home_file; /* home: the file the function itself is in */
};

static size_t scope_begin(const struct body *b) {
    return b->scopes[b->depth - 1].names;
}

static bool add_registers(struct body *b, enum ptx_type t, str name, uint32_t count) {
    uint32_t n = count ? count : 1;
    if (b->regs.n + n > PTX_MAX_REGISTERS)
        return lex_fail(&b->p->lex, "too many registers");
    struct name new = {.text = arena_str(b->p->arena, name),
                       .kind = PTX_SYM_REG,
                       .index = (uint32_t)b->regs.n,
                       .count = count};
    if (!names_add(&b->p->names, scope_begin(b), new))
        return lex_fail(&b->p->lex, "a name is declared twice");
    for (uint32_t i = 0; i < n; i++)
        *(enum ptx_type *)list_add(&b->regs, sizeof t) = t;
    return true;
}

static bool parse_registers(struct body *b) {
    struct lexer *l = &b->p->lex;
    enum ptx_type t;
    if (!parse_type(b->p, &t))
        return false;
    do {
        str name = lex_name(l);
        uint64_t count = 0;
        if (!name.n)
            return lex_fail(l, "expected a register's name");
        if (lex_take(l, '<') && (!lex_u64(l, PTX_MAX_REGISTERS, &count) || !lex_need(l, '>')))
            return false;
        if (!add_registers(b, t, name, (uint32_t)count))
            return false;
    } while (lex_take(l, ','));
    return lex_need(l, ';');
}

/* Each call site declares its own `param0` in a block of its own. Where the earlier block has ended
 * they are never alive at the same time, and one variable that is large enough stands for both. */
static size_t ended_param(const struct body *b, const struct ptx_var *v) {
    const struct ptx_var *vars = b->vars.p;
    uint32_t index;
    const struct name *open = names_find(&b->p->names, v->name, &index);
    size_t i = v->space == PTX_PARAM && !(open && open->kind == PTX_SYM_VAR) ? 0 : b->vars.n;
    while (i < b->vars.n && !(vars[i].space == PTX_PARAM && str_eq(vars[i].name, v->name)))
        i++;
    return i;
}

static bool parse_variables(struct body *b, enum ptx_space space) {
    struct ptx_var v;
    if (!parse_variable(b->p, space, false, &v) || !lex_need(&b->p->lex, ';'))
        return false;
    size_t at = ended_param(b, &v);
    if (!declare(b->p, scope_begin(b), PTX_SYM_VAR, v.name, at))
        return false;
    if (at == b->vars.n) {
        *(struct ptx_var *)list_add(&b->vars, sizeof v) = v;
        return true;
    }
    struct ptx_var *old = (struct ptx_var *)b->vars.p + at;
    old->size = v.size > old->size ? v.size : old->size;
    old->align = v.align > old->align ? v.align : old->align;
    return true;
}

/* `.loc 2 31 7, function_name $L, inlined_at 1 12 5`: messages show the file the function is in,
 * so an inlined header's line counts as the line it was inlined at. */
static bool parse_loc(struct body *b) {
    struct lexer *l = &b->p->lex;
    uint64_t file, line, col;
    if (!lex_u64(l, UINT32_MAX, &file) || !lex_u64(l, UINT32_MAX, &line) ||
        !lex_u64(l, UINT32_MAX, &col))
        return false;
    if (!b->home_file)
        b->home_file = (uint32_t)file;
    while (lex_take(l, ',')) {
        str word = lex_name(l);
        if (str_is(word, "inlined_at")) {
            uint64_t at_file, at_line;
            if (!lex_u64(l, UINT32_MAX, &at_file) || !lex_u64(l, UINT32_MAX, &at_line) ||
                !lex_u64(l, UINT32_MAX, &col))
                return false;
            if (file != b->home_file) {
                file = at_file;
                line = at_line;
            }
        } else if (!str_is(word, "function_name") || !lex_name(l).n) {
            return lex_fail(l, "unknown part of .loc");
        } else if (lex_take(l, '+') && !lex_u64(l, UINT32_MAX, &col)) {
            return false;
        }
    }
    if (file == b->home_file) {
        b->src_file = (uint32_t)file;
        b->src_line = (uint32_t)line;
    }
    return true;
}

static bool parse_instr(struct body *b);

static bool parse_directive(struct body *b) {
    struct lexer *l = &b->p->lex;
    struct lexer before = *l;
    str word = lex_dotted(l);
    if (str_is(word, "reg"))
        return parse_registers(b);
    if (str_is(word, "local"))
        return parse_variables(b, PTX_LOCAL);
    if (str_is(word, "shared"))
        return parse_variables(b, PTX_SHARED);
    if (str_is(word, "param"))
        return parse_variables(b, PTX_PARAM);
    if (str_is(word, "loc"))
        return parse_loc(b);
    if (str_is(word, "pragma"))
        return parse_skip(b->p, ';');
    if (str_is(word, "branchtargets")) {
        before.at++; /* its dot */
        *l = before;
        return parse_instr(b);
    }
    *l = before;
    if (str_is(word, "callprototype"))
        return lex_fail(l, "calls through pointers to functions are not read; choose by a switch");
    return lex_fail(l, "this directive is not read inside a function");
}

static bool parse_operand(struct body *b, struct ptx_operand *out, unsigned depth);

static bool parse_list(struct body *b, char close, unsigned depth, struct ptx_operand *out) {
    struct lexer *l = &b->p->lex;
    struct list elems = {0};
    bool ok = true;
    if (!lex_take(l, close)) {
        do {
            struct ptx_operand op;
            ok = elems.n < PTX_MAX_VECTOR ? parse_operand(b, &op, depth + 1)
                                          : lex_fail(l, "a list is too long");
            if (ok)
                *(struct ptx_operand *)list_add(&elems, sizeof op) = op;
        } while (ok && lex_take(l, ','));
        ok = ok && lex_need(l, close);
    }
    out->elem = list_finish(&elems, sizeof *out, b->p->arena, &out->nelem);
    return ok;
}

static bool parse_named(struct body *b, struct ptx_operand *out) {
    struct lexer *l = &b->p->lex;
    str name = lex_name(l);
    if (!name.n)
        return lex_fail(l, "expected an operand");
    uint32_t index;
    const struct name *known = names_find(&b->p->names, name, &index);
    if (known && known->kind == PTX_SYM_REG) {
        out->kind = PTX_OP_REG;
        out->reg = index;
        return true;
    }
    if (!known && name.p[0] == '%') {
        str part = lex_dotted(l);
        out->kind = PTX_OP_SPECIAL;
        out->name = arena_str(b->p->arena,
                              (str){name.p, part.n ? (size_t)(part.p - name.p) + part.n : name.n});
        return true;
    }
    out->kind = PTX_OP_SYMBOL;
    out->name = arena_str(b->p->arena, name);
    /* A label waits for the end of its scope: one of the same name that comes later in an inner
     * scope hides the one that was met already. */
    out->symbol = is_word_of_language(name) ? PTX_SYM_WORD : known ? known->kind : PTX_SYM_LABEL;
    out->index = out->symbol == PTX_SYM_LABEL ? UNRESOLVED : known ? index : 0;
    return true;
}

static bool parse_address(struct body *b, struct ptx_operand *out, unsigned depth) {
    struct lexer *l = &b->p->lex;
    struct lex_number n;
    char c = lex_peek(l);
    bool number = c == '-' || (c >= '0' && c <= '9');
    if (number) {
        if (!lex_number(l, &n))
            return false;
        out->offset = (int64_t)n.bits;
    } else {
        if (!parse_named(b, out))
            return false;
        out->base_is_reg = out->kind == PTX_OP_REG;
        if (lex_take(l, '+')) {
            if (!lex_number(l, &n))
                return false;
            out->offset = (int64_t)n.bits;
        } else if (lex_peek(l) == '-') {
            if (!lex_number(l, &n))
                return false;
            out->offset = (int64_t)n.bits;
        }
    }
    out->kind = PTX_OP_ADDRESS;
    if (lex_take(l, ','))
        return parse_list(b, ']', depth, out);
    return lex_need(l, ']');
}

static bool parse_atom(struct body *b, struct ptx_operand *out, unsigned depth) {
    struct lexer *l = &b->p->lex;
    *out = (struct ptx_operand){0};
    if (depth > 4)
        return lex_fail(l, "operands are nested too deeply");
    char c = lex_peek(l);
    if (c == '{' || c == '(') {
        l->at++;
        out->kind = PTX_OP_VECTOR;
        return parse_list(b, c == '{' ? '}' : ')', depth, out);
    }
    if (lex_take(l, '['))
        return parse_address(b, out, depth);
    if (c == '-' || (c >= '0' && c <= '9')) {
        struct lex_number n;
        if (!lex_number(l, &n))
            return false;
        out->kind = PTX_OP_IMM;
        out->imm = n.bits;
        out->imm_type = n.type;
        return true;
    }
    bool negated = lex_take(l, '!');
    bool ok = parse_named(b, out);
    out->negated = negated;
    return ok;
}

static bool parse_operand(struct body *b, struct ptx_operand *out, unsigned depth) {
    struct ptx_operand first;
    if (!parse_atom(b, &first, depth))
        return false;
    if (!lex_take(&b->p->lex, '|')) {
        *out = first;
        return true;
    }
    struct ptx_operand *pair = arena_array(b->p->arena, struct ptx_operand, 2);
    pair[0] = first;
    *out = (struct ptx_operand){.kind = PTX_OP_VECTOR, .elem = pair, .nelem = 2};
    return parse_atom(b, &pair[1], depth);
}

static void note_refs(struct body *b, struct ptx_operand *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ops[i].symbol == PTX_SYM_LABEL)
            *(struct ref *)list_add(&b->refs, sizeof(struct ref)) =
                (struct ref){&ops[i], b->p->lex.line};
        note_refs(b, ops[i].elem, ops[i].nelem); /* at most 4 deep: parse_atom */
    }
}

static bool parse_guard(struct body *b, struct ptx_instr *in) {
    in->guard = -1;
    if (!lex_take(&b->p->lex, '@'))
        return true;
    in->guard_negated = lex_take(&b->p->lex, '!');
    uint32_t reg;
    const struct name *n = names_find(&b->p->names, lex_name(&b->p->lex), &reg);
    if (!n || n->kind != PTX_SYM_REG || ((enum ptx_type *)b->regs.p)[reg] != PTX_PRED)
        return lex_fail(&b->p->lex, "a guard must be a predicate register");
    in->guard = (int32_t)reg;
    return true;
}

/* The text for messages: one line, without the guard's alignment blanks. */
static str instr_text(struct body *b, size_t from) {
    size_t n = b->p->lex.at - from;
    str s = {b->p->lex.text.p + from, n > 200 ? 200 : n};
    char *copy = arena_cstr(b->p->arena, s);
    size_t w = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)copy[i];
        char shown = c == '\n' || c == '\t' || c == '\r' ? ' ' : c < ' ' || c > 126 ? '?' : (char)c;
        if (shown == ' ' && w && copy[w - 1] == ' ')
            continue;
        copy[w++] = shown;
    }
    copy[w] = 0;
    return (str){copy, w};
}

static bool parse_instr(struct body *b) {
    struct lexer *l = &b->p->lex;
    struct ptx_instr in = {.line = l->line, .src_line = b->src_line, .src_file = b->src_file};
    size_t from = l->at;
    struct list mods = {0};
    if (b->instrs.n >= PTX_MAX_INSTRS)
        return lex_fail(l, "too many instructions");
    if (!parse_guard(b, &in))
        return false;
    str op = lex_name(l);
    if (!op.n)
        return lex_fail(l, "expected an instruction");
    in.op = arena_str(b->p->arena, op);
    for (str m; (m = lex_dotted(l)).n;)
        *(str *)list_add(&mods, sizeof m) = arena_str(b->p->arena, m);
    in.mods = list_finish(&mods, sizeof(str), b->p->arena, &in.nmods);
    struct ptx_operand all = {0};
    if (lex_peek(l) != ';') {
        if (!parse_list(b, ';', 0, &all))
            return false;
    } else {
        l->at++;
    }
    in.ops = all.elem;
    in.nops = all.nelem;
    in.text = instr_text(b, from);
    note_refs(b, in.ops, in.nops);
    *(struct ptx_instr *)list_add(&b->instrs, sizeof in) = in;
    return true;
}

static bool open_scope(struct body *b) {
    if (b->depth == PTX_MAX_SCOPES)
        return lex_fail(&b->p->lex, "blocks are nested too deeply");
    b->scopes[b->depth++] = (struct scope){.names = b->p->names.n, .refs = b->refs.n};
    return true;
}

/* Names met in the scope find its labels, forwards and backwards; what is left must be a label of
 * the scope around it. */
static bool close_scope(struct body *b) {
    struct scope s = b->scopes[--b->depth];
    struct ref *refs = b->refs.p;
    size_t kept = s.refs;
    for (size_t r = s.refs; r < b->refs.n; r++) {
        const struct name *n = names_find_label(&b->p->names, s.names, refs[r].op->name);
        if (n)
            refs[r].op->index = n->index;
        else
            refs[kept++] = refs[r];
    }
    b->refs.n = kept;
    names_drop(&b->p->names, s.names);
    if (b->depth > 0 || kept == 0)
        return true;
    str name = str_cut(refs[0].op->name, 0, 100);
    return err_set(b->p->lex.err, ERR_INPUT, "PTX line %u: '%.*s' names nothing that is declared",
                   refs[0].line, STR_ARG(name));
}

static bool parse_statement(struct body *b) {
    struct lexer *l = &b->p->lex;
    char c = lex_peek(l);
    if (c == '.')
        return parse_directive(b);
    struct lexer before = *l;
    str name = lex_name(l);
    if (name.n && lex_peek(l) == ':') {
        l->at++;
        name = arena_str(b->p->arena, name);
        if (!declare(b->p, scope_begin(b), PTX_SYM_LABEL, name, b->labels.n))
            return false;
        *(struct ptx_label *)list_add(&b->labels, sizeof(struct ptx_label)) =
            (struct ptx_label){name, b->instrs.n};
        return true;
    }
    *l = before;
    return parse_instr(b);
}

/* Parameters are in the scope of the body, and its own declarations may not repeat them. */
static bool declare_params(struct body *b) {
    bool ok = true;
    for (size_t i = 0; i < b->e->nparams && ok; i++)
        ok = declare(b->p, scope_begin(b), PTX_SYM_PARAM, b->e->params[i].name, i);
    for (size_t i = 0; i < b->e->nrets && ok; i++)
        ok = declare(b->p, scope_begin(b), PTX_SYM_RET, b->e->rets[i].name, i);
    return ok;
}

static bool parse_statements(struct body *b) {
    struct lexer *l = &b->p->lex;
    if (!lex_need(l, '{') || !open_scope(b) || !declare_params(b))
        return false;
    while (b->depth > 0) {
        if (lex_take(l, '}')) {
            if (!close_scope(b))
                return false;
        } else if (lex_take(l, '{')) {
            if (!open_scope(b))
                return false;
        } else if (lex_peek(l) == 0) {
            return lex_fail(l, "a function is not closed");
        } else if (!lex_take(l, ';') && !parse_statement(b)) {
            return false;
        }
    }
    return true;
}

bool parse_body(struct parser *p, struct ptx_entry *e) {
    struct body b = {.p = p, .e = e};
    bool ok = parse_statements(&b);
    struct arena *a = p->arena;
    e->regs = list_finish(&b.regs, sizeof(enum ptx_type), a, &e->nregs);
    e->vars = list_finish(&b.vars, sizeof(struct ptx_var), a, &e->nvars);
    e->instrs = list_finish(&b.instrs, sizeof(struct ptx_instr), a, &e->ninstrs);
    e->labels = list_finish(&b.labels, sizeof(struct ptx_label), a, &e->nlabels);
    mem_free(b.refs.p);
    return ok;
}
