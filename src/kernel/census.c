/* Which group an instruction belongs to follows from its opcode, and for arithmetic from its type,
 * the last of its modifiers that is one. */
#include "kernel/census.h"

#include <string.h>

static const struct {
    const char *name;
    bool named;
} groups[] = {
#define CENSUS(id, name, named) {name, named},
#include "kernel/census.def"
#undef CENSUS
};

/* ---- which group ---- */

static const struct {
    const char *op;
    enum census_group group;
} opcodes[] = {
    {"ld", CENSUS_LOAD},           {"ldu", CENSUS_LOAD},           {"st", CENSUS_STORE},
    {"atom", CENSUS_ATOMIC},       {"red", CENSUS_ATOMIC},         {"multimem", CENSUS_ATOMIC},
    {"mma", CENSUS_MMA},           {"wmma", CENSUS_MMA},           {"ldmatrix", CENSUS_MMA},
    {"stmatrix", CENSUS_MMA},      {"movmatrix", CENSUS_MMA},      {"wgmma", CENSUS_WGMMA},
    {"cp", CENSUS_CP_ASYNC},       {"bar", CENSUS_BARRIER},        {"barrier", CENSUS_BARRIER},
    {"mbarrier", CENSUS_BARRIER},  {"membar", CENSUS_BARRIER},     {"fence", CENSUS_BARRIER},
    {"shfl", CENSUS_SHUFFLE},      {"vote", CENSUS_SHUFFLE},       {"match", CENSUS_SHUFFLE},
    {"redux", CENSUS_SHUFFLE},     {"activemask", CENSUS_SHUFFLE}, {"elect", CENSUS_SHUFFLE},
    {"bra", CENSUS_CONTROL},       {"brx", CENSUS_CONTROL},        {"ret", CENSUS_CONTROL},
    {"exit", CENSUS_CONTROL},      {"call", CENSUS_CONTROL},       {"trap", CENSUS_CONTROL},
    {"nanosleep", CENSUS_CONTROL}, {"mov", CENSUS_MOVE},           {"selp", CENSUS_MOVE},
    {"slct", CENSUS_MOVE},         {"cvta", CENSUS_MOVE},          {"mapa", CENSUS_MOVE},
    {"isspacep", CENSUS_MOVE},     {"cvt", CENSUS_CONVERT},        {"prefetch", CENSUS_OTHER},
    {"prefetchu", CENSUS_OTHER},
};

static const char *const arithmetic[] = {
    "add",      "sub",  "mul",  "mad",   "fma",   "min",   "max",  "neg",  "abs",  "div",  "rem",
    "and",      "or",   "xor",  "not",   "shl",   "shr",   "shf",  "lop3", "prmt", "popc", "clz",
    "brev",     "bfe",  "bfi",  "bfind", "fns",   "dp4a",  "dp2a", "sad",  "set",  "setp", "testp",
    "copysign", "addc", "subc", "madc",  "mul24", "mad24", "cnot", "sqrt", "rcp",  "bmsk", "szext",
};

static const char *const approximate[] = {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"};

static bool one_of(str op, const char *const *list, size_t n) {
    for (size_t i = 0; i < n && op.n; i++) /* every instruction is looked up: few get past a byte */
        if (list[i][0] == op.p[0] && str_is(op, list[i]))
            return true;
    return false;
}

static bool has_mod(const struct ptx_instr *in, const char *mod) {
    for (size_t i = 0; i < in->nmods; i++)
        if (str_is(in->mods[i], mod))
            return true;
    return false;
}

static bool last_mod_starts(const struct ptx_instr *in, str prefix) {
    return in->nmods && str_starts(in->mods[in->nmods - 1], prefix);
}

static enum census_group group_of_arithmetic(const struct ptx_instr *in) {
    if (has_mod(in, "approx") || has_mod(in, "full")) /* div.full: two units off at the most */
        return CENSUS_SPECIAL;
    if (last_mod_starts(in, S("f64")))
        return CENSUS_FP64;
    if (last_mod_starts(in, S("f16")) || last_mod_starts(in, S("bf16")))
        return CENSUS_HALF;
    if (!last_mod_starts(in, S("f32")))
        return CENSUS_INTEGER;
    return str_is(in->op, "fma") || str_is(in->op, "mad") ? CENSUS_FMA : CENSUS_FP32;
}

static enum census_group group_of(const struct ptx_instr *in) {
    if (one_of(in->op, approximate, sizeof approximate / sizeof *approximate))
        return CENSUS_SPECIAL;
    if (one_of(in->op, arithmetic, sizeof arithmetic / sizeof *arithmetic))
        return group_of_arithmetic(in);
    if (str_is(in->op, "cp") && has_mod(in, "bulk"))
        return CENSUS_TMA;
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (str_is(in->op, opcodes[i].op))
            return opcodes[i].group;
    return CENSUS_OTHER;
}

/* ---- its form ---- */

static const char *space_of(const struct ptx_instr *in) {
    static const char *const spaces[] = {"global", "shared", "local", "const", "param"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        for (size_t k = 0; k < in->nmods; k++)
            if (str_eq(str_cut(in->mods[k], 0, strlen(spaces[i])), str_view(spaces[i])))
                return spaces[i];
    return "generic";
}

/* Bits that one lane moves: those of the type times the length of the vector. */
static unsigned bits_of(const struct ptx_instr *in) {
    int64_t bits = 0, lanes = 1;
    for (size_t i = 0; i < in->nmods; i++) {
        str mod = in->mods[i];
        if (mod.n > 1 && mod.p[0] == 'v')
            str_to_i64(str_from(mod, 1), &lanes);
        else if (mod.n > 1 && strchr("bsuf", mod.p[0]))
            str_to_i64(str_from(mod, 1), &bits);
    }
    return (unsigned)(bits * lanes);
}

static str opcode_text(const struct ptx_instr *in) {
    size_t n = 0, start = str_find(in->text, in->op); /* past a guard */
    str text = str_from(in->text, start);
    while (n < text.n && text.p[n] != ' ' && text.p[n] != '\t' && text.p[n] != ';')
        n++;
    return str_cut(text, 0, n);
}

/* How the caches are asked to treat it: "" as usual, ".cs" to be evicted first, … */
static str hint_of(const struct ptx_instr *in, struct arena *a) {
    static const char *const hints[] = {"nc", "cs", "cg", "lu", "cv", "wt"};
    str text = S("");
    for (size_t i = 0; i < in->nmods; i++)
        if (one_of(in->mods[i], hints, sizeof hints / sizeof *hints) ||
            str_starts(in->mods[i], S("L1::")))
            text = arena_printf(a, "%.*s.%.*s", STR_ARG(text), STR_ARG(in->mods[i]));
    return text;
}

static str form_of(const struct ptx_instr *in, enum census_group g, struct arena *a) {
    if (g == CENSUS_LOAD || g == CENSUS_STORE)
        return arena_printf(a, "%.*s.%s%.*s.%u", STR_ARG(in->op), space_of(in),
                            STR_ARG(hint_of(in, a)), bits_of(in));
    if (g == CENSUS_CP_ASYNC && has_mod(in, "wait_group") && in->nops &&
        in->ops[0].kind == PTX_OP_IMM)
        return arena_printf(a, "cp.async.wait_group %llu", (unsigned long long)in->ops[0].imm);
    return opcode_text(in);
}

/* ---- counting ---- */

static void count_form(struct census *c, str name) {
    for (size_t i = 0; i < c->nforms; i++)
        if (str_eq(c->forms[i].name, name)) {
            c->forms[i].count++;
            return;
        }
    if (c->nforms < CENSUS_MAX_FORMS)
        c->forms[c->nforms++] = (struct census_count){name, 1};
}

/* Loads of parameters are how a kernel gets its arguments: counted, not named. */
static bool is_named(const struct ptx_instr *in, enum census_group g) {
    bool memory = g == CENSUS_LOAD || g == CENSUS_STORE;
    return groups[g].named && !(memory && strcmp(space_of(in), "param") == 0);
}

struct walk {
    const struct ptx_module *m;
    struct arena *a;
    struct census *out;
    int64_t groups[CENSUS_COUNT];
    bool *seen; /* by entry: counted, or waiting */
    size_t *todo, ntodo;
};

static void want(struct walk *w, size_t entry) {
    if (w->seen[entry])
        return;
    w->seen[entry] = true;
    w->todo[w->ntodo++] = entry;
}

static void count_instr(struct walk *w, const struct ptx_instr *in) {
    enum census_group g = group_of(in);
    w->out->instructions++;
    w->groups[g]++;
    if (is_named(in, g))
        count_form(w->out, form_of(in, g, w->a));
    for (size_t i = 0; str_is(in->op, "call") && i < in->nops; i++)
        if (in->ops[i].symbol == PTX_SYM_FUNCTION && w->m->functions[in->ops[i].index].entry >= 0)
            want(w, (size_t)w->m->functions[in->ops[i].index].entry);
}

void census_take(const struct ptx_module *m, const struct ptx_entry *kernel, struct arena *a,
                 struct census *out) {
    *out = (struct census){.groups = arena_array(a, struct census_count, CENSUS_COUNT),
                           .forms = arena_array(a, struct census_count, CENSUS_MAX_FORMS)};
    struct walk w = {.m = m, .a = a, .out = out};
    w.seen = arena_array(a, bool, m->nentries);
    w.todo = arena_array(a, size_t, m->nentries);
    want(&w, (size_t)(kernel - m->entries));
    while (w.ntodo) {
        const struct ptx_entry *e = &m->entries[w.todo[--w.ntodo]];
        for (size_t i = 0; i < e->ninstrs; i++)
            count_instr(&w, &e->instrs[i]);
    }
    for (int g = 0; g < CENSUS_COUNT; g++)
        if (w.groups[g])
            out->groups[out->ngroups++] =
                (struct census_count){str_view(groups[g].name), w.groups[g]};
}

int64_t census_group_count(const struct census *c, str group) {
    for (size_t i = 0; i < c->ngroups; i++)
        if (str_eq(c->groups[i].name, group))
            return c->groups[i].count;
    return 0;
}
