/* The module: its header, variables, functions and kernels. */
#include "ptx/parser.h"

#include <string.h>

void *list_add(struct list *l, size_t size) {
    l->p = mem_grow(l->p, &l->cap, l->n + 1, size);
    void *e = (char *)l->p + l->n++ * size;
    memset(e, 0, size);
    return e;
}

void *list_finish(struct list *l, size_t size, struct arena *a, size_t *n) {
    void *out = arena_array_bytes(a, l->n ? l->n : 1, size, 16);
    if (l->n)
        memcpy(out, l->p, l->n * size);
    *n = l->n;
    mem_free(l->p);
    *l = (struct list){0};
    return out;
}

bool is_word_of_language(str name) {
    return str_is(name, "_") || str_is(name, "WARP_SZ");
}

bool declare(struct parser *p, size_t scope, enum ptx_symbol kind, str name, size_t index) {
    struct name n = {.text = name, .kind = kind, .index = (uint32_t)index};
    if (is_word_of_language(name))
        return lex_fail(&p->lex, "a word of PTX is declared as a name");
    return names_add(&p->names, scope, n) || lex_fail(&p->lex, "a name is declared twice");
}

bool parse_skip(struct parser *p, char until) {
    struct lexer *l = &p->lex;
    size_t depth = 0;
    for (char c; (c = lex_peek(l)) != 0;) {
        if (c == '"') {
            str ignored;
            if (!lex_string(l, &ignored))
                return false;
            continue;
        }
        l->at++;
        if (c == '{')
            depth++;
        else if (c == '}' && depth > 0)
            depth--;
        if (c == until && depth == 0)
            return true;
    }
    return lex_fail(l, "the text ends too early");
}

/* `.maxntid 256, 1, 1` and its like: one to three numbers. */
static bool parse_three(struct parser *p, uint32_t out[3]) {
    for (int i = 0; i < 3; i++) {
        uint64_t v;
        if (!lex_u64(&p->lex, UINT32_MAX, &v))
            return false;
        out[i] = (uint32_t)v;
        if (!lex_take(&p->lex, ','))
            break;
    }
    return true;
}

static bool parse_tuning(struct parser *p, struct ptx_entry *e) {
    struct lexer *l = &p->lex;
    while (lex_peek(l) == '.') {
        uint32_t three[3] = {0};
        struct lexer before = *l;
        str word = lex_dotted(l);
        if (str_is(word, "maxntid") || str_is(word, "reqntid") ||
            str_is(word, "reqnctapercluster")) {
            uint32_t *to = str_is(word, "maxntid")   ? e->maxntid
                           : str_is(word, "reqntid") ? e->reqntid
                                                     : e->cluster;
            if (!parse_three(p, three))
                return false;
            for (int i = 0; i < 3; i++)
                to[i] = three[i] ? three[i] : 1;
        } else if (str_is(word, "minnctapersm")) {
            if (!parse_three(p, three))
                return false;
            e->minnctapersm = three[0];
        } else if (str_is(word, "maxnreg") || str_is(word, "maxclusterrank") ||
                   str_is(word, "maxnctapersm")) {
            if (!parse_three(p, three))
                return false;
        } else if (!str_is(word, "noreturn") && !str_is(word, "explicitcluster") &&
                   !str_is(word, "blocksareclusters")) {
            *l = before;
            return lex_fail(l, "this directive is not read before a function's body");
        }
    }
    return true;
}

/* The function of this name: declared before, or from here on. */
static bool declare_function(struct parser *p, str name, size_t *out) {
    uint32_t index;
    const struct name *known = names_find(&p->names, name, &index);
    if (known && known->kind == PTX_SYM_FUNCTION) {
        *out = index;
        return true;
    }
    *out = p->functions.n;
    if (!declare(p, 0, PTX_SYM_FUNCTION, name, *out))
        return false;
    *(struct ptx_function *)list_add(&p->functions, sizeof(struct ptx_function)) =
        (struct ptx_function){name, -1};
    return true;
}

static bool define_function(struct parser *p, size_t function, struct ptx_entry *e) {
    if (((struct ptx_function *)p->functions.p)[function].entry >= 0)
        return lex_fail(&p->lex, "a function is defined twice");
    if (!parse_body(p, e))
        return false;
    ((struct ptx_function *)p->functions.p)[function].entry = (int32_t)p->entries.n;
    *(struct ptx_entry *)list_add(&p->entries, sizeof *e) = *e;
    return true;
}

static bool parse_function(struct parser *p, bool kernel) {
    struct lexer *l = &p->lex;
    struct ptx_entry e = {.is_kernel = kernel};
    if (!kernel && lex_peek(l) == '(' && !parse_params(p, &e.rets, &e.nrets))
        return false;
    str name = lex_name(l);
    if (!name.n)
        return lex_fail(l, "expected a function's name");
    e.name = arena_str(p->arena, name);
    if (lex_peek(l) == '(' && !parse_params(p, &e.params, &e.nparams))
        return false;
    size_t function;
    if (!parse_tuning(p, &e) || !declare_function(p, e.name, &function))
        return false;
    return lex_take(l, ';') || define_function(p, function, &e);
}

static bool parse_file(struct parser *p) {
    uint64_t number;
    str name;
    if (!lex_u64(&p->lex, PTX_MAX_FILES, &number) || !lex_string(&p->lex, &name))
        return false;
    while (lex_take(&p->lex, ',')) { /* time stamp and size */
        uint64_t ignored;
        if (!lex_u64(&p->lex, UINT64_MAX, &ignored))
            return false;
    }
    while (p->files.n <= number)
        list_add(&p->files, sizeof(str));
    ((str *)p->files.p)[number] = arena_str(p->arena, name);
    return true;
}

static bool parse_header_word(struct parser *p, str *out) {
    lex_blank(&p->lex);
    size_t start = p->lex.at;
    while (p->lex.at < p->lex.text.n && !strchr(" \t\r\n", p->lex.text.p[p->lex.at]))
        p->lex.at++;
    str s = {p->lex.text.p + start, p->lex.at - start};
    if (!s.n || s.n > 64)
        return lex_fail(&p->lex, "expected a word");
    if (s.p[s.n - 1] == ',')
        s.n--;
    *out = arena_str(p->arena, s);
    return true;
}

static bool parse_module_variable(struct parser *p, str word, bool external, bool *known) {
    enum ptx_space space = str_is(word, "global")   ? PTX_GLOBAL
                           : str_is(word, "const")  ? PTX_CONST
                           : str_is(word, "shared") ? PTX_SHARED
                                                    : PTX_SPACE_NONE;
    *known = space != PTX_SPACE_NONE;
    if (!*known)
        return true;
    struct ptx_var v;
    if (!parse_variable(p, space, external, &v) || !lex_need(&p->lex, ';'))
        return false;
    if (!declare(p, 0, PTX_SYM_MODULE_VAR, v.name, p->vars.n))
        return false;
    *(struct ptx_var *)list_add(&p->vars, sizeof v) = v;
    return true;
}

static bool parse_target(struct parser *p) {
    if (!parse_header_word(p, &p->module->target))
        return false;
    while (p->lex.text.p[p->lex.at - 1] == ',' || lex_take(&p->lex, ',')) {
        str option; /* debug, texmode_… */
        if (!parse_header_word(p, &option))
            return false;
    }
    return true;
}

static bool parse_toplevel(struct parser *p) {
    struct lexer *l = &p->lex;
    bool external = false, known;
    lex_blank(l);
    struct lexer before = *l;
    str word = lex_dotted(l);
    while (str_is(word, "visible") || str_is(word, "weak") || str_is(word, "extern") ||
           str_is(word, "common")) {
        external |= str_is(word, "extern");
        lex_blank(l);
        word = lex_dotted(l);
    }
    if (str_is(word, "version"))
        return parse_header_word(p, &p->module->version);
    if (str_is(word, "target"))
        return parse_target(p);
    if (str_is(word, "address_size")) {
        uint64_t bits;
        if (!lex_u64(l, 64, &bits))
            return false;
        return bits == 64 || lex_fail(l, "only 64-bit addresses are read");
    }
    if (str_is(word, "file"))
        return parse_file(p);
    if (str_is(word, "section"))
        return parse_skip(p, '}');
    if (str_is(word, "pragma"))
        return parse_skip(p, ';');
    if (str_is(word, "entry") || str_is(word, "func"))
        return parse_function(p, str_is(word, "entry"));
    if (!parse_module_variable(p, word, external, &known))
        return false;
    if (known)
        return true;
    *l = before;
    return lex_fail(l, "not a PTX directive that is read here");
}

/* A function declared and then defined is not external. */
static void find_externs(struct ptx_module *m, struct arena *a) {
    m->externs = arena_array(a, str, m->nfunctions);
    for (size_t i = 0; i < m->nfunctions; i++)
        if (m->functions[i].entry < 0)
            m->externs[m->nexterns++] = m->functions[i].name;
}

bool ptx_parse(str text, struct arena *a, struct ptx_module **out, struct err *err) {
    if (text.n > PTX_MAX_BYTES)
        return err_set(err, ERR_INPUT, "the PTX text is larger than %u MiB", PTX_MAX_BYTES >> 20);
    struct ptx_module *m = arena_new_of(a, struct ptx_module);
    struct parser p = {.lex = {.text = text, .line = 1, .err = err}, .arena = a, .module = m};
    bool ok = true;
    names_init(&p.names);
    while (ok && lex_peek(&p.lex) != 0)
        ok = lex_take(&p.lex, ';') || parse_toplevel(&p);
    if (ok && p.lex.at < text.n)
        ok = lex_fail(&p.lex, "a NUL byte");
    if (ok && !m->version.n)
        ok = lex_fail(&p.lex, "no .version: this is not PTX");
    m->entries = list_finish(&p.entries, sizeof(struct ptx_entry), a, &m->nentries);
    m->vars = list_finish(&p.vars, sizeof(struct ptx_var), a, &m->nvars);
    m->functions = list_finish(&p.functions, sizeof(struct ptx_function), a, &m->nfunctions);
    m->files = list_finish(&p.files, sizeof(str), a, &m->nfiles);
    names_release(&p.names);
    find_externs(m, a);
    *out = m;
    return ok;
}

const struct ptx_entry *ptx_find_entry(const struct ptx_module *m, str name) {
    for (size_t i = 0; i < m->nentries; i++)
        if (str_eq(m->entries[i].name, name))
            return &m->entries[i];
    return NULL;
}
