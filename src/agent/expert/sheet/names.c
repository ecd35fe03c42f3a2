/* Names: those that templates use, those of CUDA, and those that a file has given out. */
#include "agent/expert/sheet/sheet_private.h"
#include "base/asset.h"
#include <ctype.h>

/* ---- words in text ---- */

bool text_is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

size_t text_find_word(str text, str word) {
    for (size_t at = 0; at < text.n;) {
        size_t i = at + str_find(str_from(text, at), word);
        if (i >= text.n)
            break;
        bool begins = i == 0 || !text_is_word_char(text.p[i - 1]);
        if (begins && (i + word.n == text.n || !text_is_word_char(text.p[i + word.n])))
            return i;
        at = i + 1;
    }
    return text.n;
}

bool text_has_word(str text, str word) {
    return text_find_word(text, word) < text.n;
}

/* ---- words of templates ---- */
/* A member of something (`.x`, `->x`, `::x`), text in quotes and comments are no names; a name that
 * touches a slot is the beginning or the end of a composed one. */

static bool is_in(const str *list, size_t n, str name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i], name))
            return true;
    return false;
}

static void add(str **list, size_t *n, size_t *cap, str name) {
    if (is_in(*list, *n, name))
        return;
    *list = mem_grow(*list, cap, *n + 1, sizeof **list);
    (*list)[(*n)++] = name;
}

/* Past a comment, a text in quotes, or a slot's own name; otherwise where it was. */
static size_t skip(str text, size_t at) {
    str rest = str_from(text, at);
    if (str_starts(rest, S("//")))
        return at + str_find(rest, S("\n"));
    if (str_starts(rest, S("${")))
        return at + str_find(rest, S("}")) + 1;
    if (rest.p[0] != '"')
        return at;
    size_t end = at + 1;
    while (end < text.n && text.p[end] != '"')
        end += text.p[end] == '\\' ? 2 : 1;
    return end + 1;
}

static void add_word(struct words *w, str text, size_t from, size_t end) {
    str name = str_cut(text, from, end - from), before = str_cut(text, 0, from);
    bool member =
        str_ends(before, S(".")) || str_ends(before, S("->")) || str_ends(before, S("::"));
    bool begins = str_starts(str_from(text, end), S("${")), ends = str_ends(before, S("}"));
    if (begins && !ends)
        add(&w->prefix, &w->nprefixes, &w->cap_prefixes, name);
    else if (ends)
        add(&w->suffix, &w->nsuffixes, &w->cap_suffixes, name);
    else if (!member)
        add(&w->name, &w->nnames, &w->cap_names, name);
}

static void words_of_template(struct words *w, str text) {
    if (str_starts(text, S("//% library\n")))
        return;
    for (size_t at = 0; at < text.n;) {
        size_t next = skip(text, at), end = at;
        if (next > at) {
            at = next;
            continue;
        }
        while (end < text.n && text_is_word_char(text.p[end]))
            end++;
        if (end > at && !isdigit((unsigned char)text.p[at]))
            add_word(w, text, at, end);
        at = end > at ? end : at + 1;
    }
}

static bool words_have(const struct words *w, str name) {
    bool found = is_in(w->name, w->nnames, name);
    for (size_t i = 0; i < w->nprefixes && !found; i++)
        found = str_starts(name, w->prefix[i]);
    for (size_t i = 0; i < w->nsuffixes && !found; i++)
        found = str_ends(name, w->suffix[i]);
    return found;
}

static void words_clear(struct words *w) {
    w->nnames = w->nprefixes = w->nsuffixes = 0;
}

/* ---- names ---- */

/* Words that a name of the task must not be in CUDA text: keywords and builtins. The task language
 * reserves its own functions and types, so `exp` or `max` cannot come from there. */
static const char *const reserved[] = {"alignas",     "alignof",    "and",
                                       "asm",         "auto",       "bitand",
                                       "bitor",       "blockDim",   "blockIdx",
                                       "bool",        "break",      "case",
                                       "catch",       "char",       "class",
                                       "compl",       "const",      "constexpr",
                                       "continue",    "decltype",   "default",
                                       "delete",      "do",         "double",
                                       "dynamic",     "else",       "enum",
                                       "explicit",    "export",     "extern",
                                       "false",       "float",      "for",
                                       "friend",      "goto",       "gridDim",
                                       "half",        "int",        "inline",
                                       "long",        "mutable",    "namespace",
                                       "new",         "noexcept",   "not",
                                       "nullptr",     "operator",   "or",
                                       "private",     "protected",  "public",
                                       "register",    "requires",   "return",
                                       "short",       "signed",     "sizeof",
                                       "static",      "struct",     "switch",
                                       "template",    "this",       "threadIdx",
                                       "throw",       "true",       "try",
                                       "typedef",     "typeid",     "typename",
                                       "uint2",       "uint4",      "union",
                                       "unsigned",    "using",      "virtual",
                                       "void",        "volatile",   "warpSize",
                                       "while",       "xor",        "concept",
                                       "co_await",    "co_yield",   "co_return",
                                       "fabsf",       "rintf",      "reinterpret_cast",
                                       "static_cast", "const_cast", "fmaxf",
                                       "fminf",       "fmodf",      "INFINITY",
                                       "NAN",         "CHAR_BIT",   "char8_t",
                                       "wchar_t",     "char16_t",   "char32_t",
                                       "consteval",   "constinit",  "cute",
                                       "float2",      "float4",     "llabs",
                                       "fmaf",        "cutlass",    "cuda",
                                       "int4"};

static bool is_cuda_word(str name) {
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
            str_is(str_cut(name, 0, name.n - 1), function_info((enum function)f)->name))
            return true;
    return false;
}

bool sheet_is_reserved(const struct sheet *sh, str name) {
    return is_cuda_word(name) || str_starts(name, S("gemm_")) || words_have(&sh->words, name);
}

bool sheet_begin_step(struct sheet *sh, const char *family) {
    str own = sheet_printf(sh, "expert/%s/", family), text;
    words_clear(&sh->words);
    for (const struct asset *a = asset_table; a->name; a++) {
        if (!str_starts(str_view(a->name), own) &&
            !str_starts(str_view(a->name), S("expert/sheet/")))
            continue;
        if (!asset_get(sh->assets, a->name, sh->mem, &text, sh->err))
            return false;
        words_of_template(&sh->words, text);
    }
    return true;
}

static bool is_taken(const struct sheet *sh, str name) {
    for (size_t i = 0; i < sh->ntaken; i++)
        if (str_eq(sh->taken[i], name))
            return true;
    for (size_t i = 0; i < sh->nlocal; i++)
        if (str_eq(sh->local[i], name))
            return true;
    return false;
}

static void take(struct sheet *sh, str name) {
    sh->taken = mem_grow(sh->taken, &sh->cap_taken, sh->ntaken + 1, sizeof *sh->taken);
    sh->taken[sh->ntaken++] = name;
}

str sheet_name(struct sheet *sh, str base) {
    str name = arena_str(sh->mem, base);
    if (is_cuda_word(name))
        name = arena_printf(sh->mem, "the_%.*s", STR_ARG(name));
    while (is_taken(sh, name))
        name = arena_printf(sh->mem, "%.*s_", STR_ARG(name));
    take(sh, name);
    return name;
}

str sheet_shared_name(struct sheet *sh, str key, const char *base) {
    for (size_t i = 0; i < sh->nshared; i++)
        if (str_eq(sh->shared[i].key, key))
            return sh->shared[i].name;
    str name = sheet_name(sh, str_view(base));
    if (sh->nshared == SHEET_SHARED && !sheet_failed(sh))
        err_set(sh->err, ERR_INPUT, "too many functions in one kernel");
    if (sh->nshared < SHEET_SHARED) {
        sh->shared[sh->nshared].key = arena_str(sh->mem, key);
        sh->shared[sh->nshared++].name = name;
    }
    return name;
}

static void take_variables(struct sheet *sh, const struct expr *e) {
    for (size_t i = 0; e->kind == EXPR_REDUCE && i < e->reduce->nvars; i++)
        take(sh, e->reduce->vars[i].name);
    for (size_t i = 0; i < expr_nparts(e); i++)
        take_variables(sh, expr_part(e, i));
}

/* The task's names, those of its statements' variables included: what is made is none of them. */
void sheet_init_names(struct sheet *sh) {
    const struct task *t = sh->briefing->inst->task;
    for (size_t i = 0; i < t->ndims; i++)
        take(sh, t->dims[i].name);
    for (size_t i = 0; i < t->ntensors; i++)
        take(sh, t->tensors[i].name);
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        for (size_t k = 0; k < s->nindex; k++)
            take(sh, s->index[k]);
        take_variables(sh, s->body);
    }
}

bool sheet_has_name(const struct sheet *sh, str name) {
    return is_cuda_word(name) || is_taken(sh, name);
}

void sheet_release_names(struct sheet *sh) {
    mem_free(sh->words.name);
    mem_free(sh->words.prefix);
    mem_free(sh->words.suffix);
    mem_free(sh->taken);
}
