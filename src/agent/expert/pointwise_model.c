/* Groups, expansion, classification: everything about a pointwise task that does not depend on the
 * strategy. */
#include "agent/expert/pointwise.h"
#include <string.h>

/* ---- names ---- */

/* Words that a name of the task must not be in CUDA text: keywords and builtins. The task language
 * reserves its own functions and types, so `exp` or `max` cannot come from there. */
static const char *const reserved[] = {
    "alignas",   "alignof",  "and",      "asm",       "auto",      "bitand",   "bitor",
    "blockDim",  "blockIdx", "bool",     "break",     "case",      "catch",    "char",
    "class",     "compl",    "const",    "constexpr", "continue",  "decltype", "default",
    "delete",    "do",       "double",   "dynamic",   "else",      "enum",     "explicit",
    "export",    "extern",   "false",    "float",     "for",       "friend",   "goto",
    "gridDim",   "half",     "int",      "inline",    "long",      "mutable",  "namespace",
    "new",       "noexcept", "not",      "nullptr",   "operator",  "or",       "private",
    "protected", "public",   "register", "requires",  "return",    "short",    "signed",
    "sizeof",    "static",   "struct",   "switch",    "template",  "this",     "threadIdx",
    "throw",     "true",     "try",      "typedef",   "typeid",    "typename", "uint2",
    "uint4",     "union",    "unsigned", "using",     "virtual",   "void",     "volatile",
    "warpSize",  "while",    "xor",      "concept",   "co_await",  "co_yield", "co_return",
    "fabsf",     "fmaxf",    "fminf",    "fmodf",     "INFINITY",  "NAN",      "CHAR_BIT",
    "char8_t",   "wchar_t",  "char16_t", "char32_t",  "consteval", "constinit"};

static bool is_reserved(str name) {
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (str_is(name, reserved[i]))
            return true;
    /* Macros of the prelude and helpers of the emitted expressions. */
    if (str_starts(name, S("__")) || str_starts(name, S("cp_")) || str_starts(name, S("M_")) ||
        str_ends(name, S("_MAX")) || str_ends(name, S("_MIN")) || str_ends(name, S("_EPSILON")))
        return true;
    /* expf, tanhf, …: what emitted expressions call. */
    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (str_ends(name, S("f")) &&
            str_is(str_cut(name, 0, name.n - 1), function_name((enum function)f)))
            return true;
    return false;
}

static bool is_taken(const struct pw *p, str name) {
    for (size_t i = 0; i < p->ntaken; i++)
        if (str_eq(p->taken[i], name))
            return true;
    return false;
}

static void take(struct pw *p, str name) {
    p->taken = mem_grow(p->taken, &p->cap_taken, p->ntaken + 1, sizeof *p->taken);
    p->taken[p->ntaken++] = name;
}

str pw_name(struct pw *p, str base) {
    str name = arena_str(p->mem, base);
    if (is_reserved(name))
        name = arena_printf(p->mem, "the_%.*s", STR_ARG(name));
    while (is_taken(p, name))
        name = arena_printf(p->mem, "%.*s_", STR_ARG(name));
    take(p, name);
    return name;
}

/* A name of the task stays as it is where CUDA allows it. */
static str own_name(struct pw *p, str name) {
    return is_reserved(name) ? pw_name(p, name) : name;
}

/* Index variables may have the name of a tensor that is declared after them. */
static str coordinate_name(struct pw *p, str name) {
    for (size_t i = 0; i < p->task->ndims; i++)
        if (str_eq(p->task->dims[i].name, name))
            return pw_name(p, name);
    return tensor_find(p->task, name) >= 0 ? pw_name(p, name) : own_name(p, name);
}

static void take_task_names(struct pw *p) {
    const struct task *t = p->task;
    for (size_t i = 0; i < t->ndims; i++)
        take(p, t->dims[i].name);
    for (size_t i = 0; i < t->ntensors; i++)
        take(p, t->tensors[i].name);
    for (size_t i = 0; i < t->nstatements; i++)
        for (size_t k = 0; k < t->statements[i].nindex; k++)
            take(p, t->statements[i].index[k]);
    for (size_t i = 0; i < t->ntensors; i++) {
        p->tensor_name[i] = own_name(p, t->tensors[i].name);
        if (tensor_is_input(&t->tensors[i]))
            p->gather_name[i] =
                pw_name(p, arena_printf(p->mem, "%.*s_at", STR_ARG(p->tensor_name[i])));
    }
}

/* ---- expressions ---- */

bool pw_same(const struct expr *a, const struct expr *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->ref != b->ref || a->nargs != b->nargs ||
        a->function != b->function || a->integral != b->integral || a->integer != b->integer ||
        (a->kind == EXPR_NUMBER && a->number != b->number))
        return false;
    for (size_t i = 0; i < a->nargs; i++)
        if (!pw_same(a->args[i], b->args[i]))
            return false;
    return true;
}

bool pw_moves_with(const struct expr *e, size_t variable) {
    if (e->kind == EXPR_INDEX && e->ref == variable)
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (pw_moves_with(e->args[i], variable))
            return true;
    return false;
}

/* Infix, or function(a, b). */
static const struct {
    enum expr_kind kind;
    const char *sign;
} plan_signs[] = {{EXPR_ADD, " + "},
                  {EXPR_SUB, " - "},
                  {EXPR_MUL, "*"},
                  {EXPR_MOD, " % "},
                  {EXPR_FLOORDIV, " // "}};

static bool plan_call(struct pw *p, const struct expr *e, struct buf *out) {
    bool max = e->function == FUNCTION_MAXIMUM;
    if (!max && e->function != FUNCTION_MINIMUM)
        return err_set(p->err, ERR_INPUT, "an extent calls %s, which a launch plan does not have",
                       function_name(e->function));
    buf_puts(out, max ? S("max(") : S("min("));
    if (!pw_plan_text(p, e->args[0], out))
        return false;
    buf_puts(out, S(", "));
    if (!pw_plan_text(p, e->args[1], out))
        return false;
    buf_putc(out, ')');
    return true;
}

bool pw_plan_text(struct pw *p, const struct expr *e, struct buf *out) {
    if (e->kind == EXPR_NUMBER) {
        buf_printf(out, "%lld", (long long)e->integer);
        return true;
    }
    if (e->kind == EXPR_DIM) {
        buf_puts(out, p->task->dims[e->ref].name);
        return true;
    }
    if (e->kind == EXPR_CALL)
        return plan_call(p, e, out);
    const char *sign = e->kind == EXPR_NEG ? "-" : NULL;
    for (size_t i = 0; i < sizeof plan_signs / sizeof *plan_signs; i++)
        if (plan_signs[i].kind == e->kind)
            sign = plan_signs[i].sign;
    if (!sign)
        return err_set(p->err, ERR_INPUT, "an extent that a launch plan cannot express");
    buf_putc(out, '(');
    if (e->nargs == 2 && !pw_plan_text(p, e->args[0], out))
        return false;
    buf_puts(out, str_view(sign));
    if (!pw_plan_text(p, e->args[e->nargs - 1], out))
        return false;
    buf_putc(out, ')');
    return true;
}

bool pw_integer(struct pw *p, struct pw_group *g, const struct expr *e, str *name) {
    struct buf text;
    buf_init(&text, 4096);
    bool ok = pw_plan_text(p, e, &text);
    str plan = arena_str(p->mem, buf_str(&text));
    buf_release(&text);
    if (!ok)
        return false;
    *name = plan;
    if (e->kind == EXPR_NUMBER)
        return true;
    for (size_t i = 0; i < g->nparams; i++) {
        *name = g->params[i].name;
        if (str_eq(g->params[i].plan, plan))
            return true;
    }
    if (g->nparams == PW_PARAMS)
        return err_set(p->err, ERR_INPUT, "more than %d sizes in one kernel", PW_PARAMS);
    *name = e->kind == EXPR_DIM ? own_name(p, plan) : pw_name(p, S("size"));
    g->params[g->nparams++] = (struct pw_param){*name, plan};
    return true;
}

/* ---- expansion ---- */

struct expansion {
    struct pw *p;
    struct pw_group *g;
    struct pw_output *o;
    size_t depth;
};

static const struct statement *statement_of(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            return &t->statements[i];
    return NULL;
}

static struct expr *expand(struct expansion *x, const struct expr *e, struct expr *const *map);

static struct expr *copy_with(struct expansion *x, const struct expr *e, size_t nargs) {
    struct expr *c = arena_new_of(x->p->mem, struct expr);
    *c = *e;
    c->nargs = nargs;
    c->args = nargs ? arena_array(x->p->mem, struct expr *, nargs) : NULL;
    return c;
}

/* Are these indices variables of the group that run over exactly the let's range? Then it can be
 * evaluated for every element, whatever guards its readers stand behind. */
static bool is_local(const struct expansion *x, const struct tensor *let, struct expr *const *args,
                     size_t *variable) {
    for (size_t i = 0; i < let->rank; i++) {
        if (args[i]->kind != EXPR_INDEX ||
            !pw_same(let->extent[i], x->g->shape->extent[args[i]->ref]))
            return false;
        variable[i] = args[i]->ref;
    }
    return true;
}

static struct pw_local *find_local(const struct expansion *x, size_t tensor) {
    for (size_t i = 0; i < x->o->nlocals; i++)
        if (x->o->locals[i].tensor == tensor)
            return &x->o->locals[i];
    return NULL;
}

/* The local for a let at these variables; false where its name is taken for other variables. */
static bool use_local(struct expansion *x, size_t tensor, const size_t *variable,
                      struct expr *const *args, bool *usable) {
    const struct task *t = x->p->task;
    size_t rank = t->tensors[tensor].rank;
    struct pw_local *known = find_local(x, tensor);
    *usable = !known || memcmp(known->variable, variable, rank * sizeof *variable) == 0;
    if (known)
        return true;
    const struct expr *body = expand(x, statement_of(t, tensor)->body, args);
    if (!body)
        return false;
    struct pw_local l = {.tensor = tensor, .body = body, .name = x->p->tensor_name[tensor]};
    memcpy(l.variable, variable, rank * sizeof *variable);
    x->o->locals[x->o->nlocals++] = l;
    return true;
}

static struct expr *expand_let(struct expansion *x, const struct expr *e,
                               struct expr *const *args) {
    const struct task *t = x->p->task;
    size_t variable[TASK_MAX_RANK] = {0};
    bool usable = is_local(x, &t->tensors[e->ref], args, variable);
    if (usable && !use_local(x, e->ref, variable, args, &usable))
        return NULL;
    if (usable)
        return copy_with(x, e, 0);
    struct expr *c = copy_with(x, e, 1);
    c->args[0] = expand(x, statement_of(t, e->ref)->body, args);
    return c->args[0] ? c : NULL;
}

/* Substituted indices are shared in memory but written out each time, so each time counts. */
static size_t written_size(const struct expr *e) {
    size_t n = 1;
    for (size_t i = 0; i < e->nargs; i++)
        n += written_size(e->args[i]);
    return n;
}

static struct expr *expand_node(struct expansion *x, const struct expr *e,
                                struct expr *const *map) {
    if (e->kind == EXPR_INDEX) {
        x->p->nodes += written_size(map[e->ref]);
        return map[e->ref];
    }
    struct expr *c = copy_with(x, e, e->nargs);
    for (size_t i = 0; i < e->nargs; i++)
        if (!(c->args[i] = expand(x, e->args[i], map)))
            return NULL;
    bool let = e->kind == EXPR_READ && x->p->task->tensors[e->ref].role == TENSOR_LET;
    return let ? expand_let(x, e, c->args) : c;
}

static struct expr *expand(struct expansion *x, const struct expr *e, struct expr *const *map) {
    if (++x->p->nodes > PW_NODES_MAX || x->depth >= PW_DEPTH_MAX) {
        err_set(
            x->p->err, ERR_INPUT,
            "task %.*s: too large to inline: its lets, written out, have more than %u operations",
            STR_ARG(x->p->task->name), PW_NODES_MAX);
        return NULL;
    }
    x->depth++;
    struct expr *c = expand_node(x, e, map);
    x->depth--;
    return c;
}

static bool expand_output(struct pw *p, struct pw_group *g, struct pw_output *o) {
    struct expansion x = {p, g, o, 0};
    struct expr *identity[TASK_MAX_RANK];
    for (size_t i = 0; i < g->shape->rank; i++) {
        identity[i] = arena_new_of(p->mem, struct expr);
        *identity[i] = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = i};
    }
    o->locals = arena_array(p->mem, struct pw_local, p->task->ntensors);
    o->body = expand(&x, o->statement->body, identity);
    return o->body != NULL;
}

/* ---- reads ---- */

static bool is_flat(const struct pw_group *g, const struct tensor *t, const struct expr *e) {
    if (t->rank != g->shape->rank)
        return false;
    for (size_t i = 0; i < t->rank; i++)
        if (e->args[i]->kind != EXPR_INDEX || e->args[i]->ref != i ||
            !pw_same(t->extent[i], g->shape->extent[i]))
            return false;
    return true;
}

/* In bounds for every element by its form alone, whatever guards it stands behind. */
static bool is_safe(const struct pw_group *g, const struct tensor *t, const struct expr *e) {
    for (size_t i = 0; i < t->rank; i++) {
        const struct expr *a = e->args[i];
        bool zero = a->kind == EXPR_NUMBER && a->integer == 0;
        bool own = a->kind == EXPR_INDEX && pw_same(t->extent[i], g->shape->extent[a->ref]);
        if (!zero && !own)
            return false;
    }
    return true;
}

static enum pw_access access_of(const struct pw *p, const struct pw_group *g, const struct expr *e,
                                bool guarded) {
    const struct tensor *t = &p->task->tensors[e->ref];
    size_t rank = g->shape->rank, inner = rank - 1, moving = 0;
    if (is_flat(g, t, e))
        return PW_FLAT;
    if (guarded && !is_safe(g, t, e))
        return PW_GATHER;
    for (size_t i = 0; i < t->rank && rank > 0; i++)
        moving += pw_moves_with(e->args[i], inner);
    if (moving == 0)
        return PW_SPLAT;
    const struct expr *last = e->args[t->rank - 1];
    bool row = moving == 1 && last->kind == EXPR_INDEX && last->ref == inner &&
               pw_same(t->extent[t->rank - 1], g->shape->extent[inner]);
    return row ? PW_ROW : PW_GATHER;
}

int pw_find_read(const struct pw_group *g, const struct expr *e) {
    for (size_t i = 0; i < g->nreads; i++)
        if (pw_same(g->reads[i].e, e))
            return (int)i;
    return -1;
}

static bool add_read(struct pw *p, struct pw_group *g, const struct expr *e, bool guarded) {
    g->inputs[e->ref] = true;
    enum pw_access access = access_of(p, g, e, guarded);
    if (access == PW_GATHER || pw_find_read(g, e) >= 0 || g->nreads == PW_READS_MAX)
        return true;
    str base = p->tensor_name[e->ref];
    bool again = false;
    for (size_t i = 0; i < g->nreads; i++)
        again |= str_eq(g->reads[i].name, base);
    g->reads[g->nreads++] = (struct pw_read){
        .e = e,
        .access = access,
        .name = again ? pw_name(p, base) : base,
        .vector = pw_name(p, arena_printf(p->mem, "%.*s_v", STR_ARG(base))),
    };
    return true;
}

/* Guarded: behind a condition, so that the read's bounds hold only where the condition does. */
static bool find_reads(struct pw *p, struct pw_group *g, const struct expr *e, bool guarded) {
    bool let = e->kind == EXPR_READ && p->task->tensors[e->ref].role == TENSOR_LET;
    if (e->kind == EXPR_READ && !let)
        return add_read(p, g, e, guarded);
    bool guards = e->kind == EXPR_IF || e->kind == EXPR_AND || e->kind == EXPR_OR;
    for (size_t i = 0; i < e->nargs; i++)
        if (!find_reads(p, g, e->args[i], guarded || (guards && i > 0)))
            return false;
    return true;
}

static bool find_all_reads(struct pw *p, struct pw_group *g) {
    for (size_t k = 0; k < g->noutputs; k++) {
        const struct pw_output *o = &g->outputs[k];
        for (size_t i = 0; i < o->nlocals; i++)
            if (!find_reads(p, g, o->locals[i].body, false))
                return false;
        if (!find_reads(p, g, o->body, false))
            return false;
    }
    return true;
}

/* ---- groups ---- */

static bool same_shape(const struct tensor *a, const struct tensor *b) {
    if (a->rank != b->rank)
        return false;
    for (size_t i = 0; i < a->rank; i++)
        if (!pw_same(a->extent[i], b->extent[i]))
            return false;
    return true;
}

static bool check_task(struct pw *p) {
    for (size_t i = 0; i < p->task->ntensors; i++) {
        const struct tensor *t = &p->task->tensors[i];
        const char *fault = tensor_has_memory(t) && t->dtype == DTYPE_F64 ? "f64 is"
                            : t->role == TENSOR_INOUT ? "tensors written in place are"
                                                      : NULL;
        if (fault)
            return err_set(p->err, ERR_INPUT,
                           "tensor %.*s: %s not supported by the pointwise generator",
                           STR_ARG(t->name), fault);
    }
    for (size_t i = 0; i < p->task->nstatements; i++) {
        const struct tensor *t = &p->task->tensors[p->task->statements[i].tensor];
        if (p->task->statements[i].nindex != t->rank)
            return err_set(p->err, ERR_INPUT,
                           "tensor %.*s: definitions in pieces are not supported by the pointwise "
                           "generator",
                           STR_ARG(t->name));
    }
    return true;
}

/* Outputs cannot be read, so any two of one shape may share a kernel. */
static void make_groups(struct pw *p) {
    const struct task *t = p->task;
    p->groups = arena_array(p->mem, struct pw_group, t->nstatements);
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        const struct tensor *tensor = &t->tensors[s->tensor];
        if (tensor->role != TENSOR_OUT)
            continue;
        struct pw_group *g = p->groups;
        while (g < p->groups + p->ngroups && !same_shape(g->shape, tensor))
            g++;
        if (g == p->groups + p->ngroups) {
            p->ngroups++;
            g->shape = tensor;
            g->outputs = arena_array(p->mem, struct pw_output, t->nstatements);
            for (size_t k = 0; k < s->nindex; k++)
                g->coordinate[k] = coordinate_name(p, s->index[k]);
        }
        g->outputs[g->noutputs++] =
            (struct pw_output){.statement = s, .tensor = tensor, .index = s->tensor};
    }
}

static void size_group(struct pw *p, struct pw_group *g) {
    const struct inst *in = p->briefing->inst;
    g->count = in->tensors[g->outputs[0].index].count;
    g->wide = g->count > PW_INT_MAX;
    for (size_t i = 0; i < p->task->ntensors; i++)
        g->wide |= g->inputs[i] && in->tensors[i].count > PW_INT_MAX;
}

static bool build_group(struct pw *p, struct pw_group *g) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (!expand_output(p, g, &g->outputs[i]))
            return false;
    if (!find_all_reads(p, g))
        return false;
    size_group(p, g);
    str task = p->task->name, first = g->outputs[0].tensor->name;
    g->kernel = pw_name(p, p->ngroups == 1 ? arena_printf(p->mem, "%.*s_kernel", STR_ARG(task))
                                           : arena_printf(p->mem, "%.*s_%.*s_kernel", STR_ARG(task),
                                                          STR_ARG(first)));
    for (size_t i = 0; i < g->noutputs; i++) {
        struct pw_output *o = &g->outputs[i];
        str name = o->tensor->name;
        o->function = pw_name(p, arena_printf(p->mem, "compute_%.*s", STR_ARG(name)));
        o->vector = pw_name(p, arena_printf(p->mem, "%.*s_v", STR_ARG(name)));
    }
    return true;
}

bool pw_build(struct pw *p) {
    p->task = p->briefing->inst->task;
    take_task_names(p);
    if (!check_task(p))
        return false;
    make_groups(p);
    for (size_t i = 0; i < p->ngroups; i++)
        if (!build_group(p, &p->groups[i]))
            return false;
    return true;
}

void pw_release(struct pw *p) {
    mem_free(p->taken);
}
