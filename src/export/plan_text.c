/* Integer expressions of plans and tasks as text of C or Python.
 *
 * Both languages get the plan's meaning, not their own: division rounds down and what has no value
 * must be noticed. Python's integers do both by themselves (a division by zero raises); C goes
 * through the plan_… functions of assets/export/c/driver.c, which set `bad`. */
#include "export/export_private.h"
#include <inttypes.h>
#include <string.h>

struct forms {
    const char *c, *python; /* $: the operands, in order */
};

static str binary(const struct forms *f, str a, str b, enum export_language l, struct arena *mem) {
    struct buf out;
    const char *rest = l == EXPORT_C ? f->c : f->python;
    buf_init(&out, 1u << 20);
    for (const str *next = &a; *rest; rest++) {
        if (*rest != '$') {
            buf_putc(&out, *rest);
            continue;
        }
        buf_puts(&out, *next);
        next = &b;
    }
    str s = arena_str(mem, buf_str(&out));
    buf_release(&out);
    return s;
}

static const struct forms add = {"plan_add(&bad, $, $)", "($ + $)"},
                          sub = {"plan_sub(&bad, $, $)", "($ - $)"},
                          mul = {"plan_mul(&bad, $, $)", "($ * $)"},
                          div_floor = {"plan_div(&bad, $, $)", "($ // $)"},
                          mod = {"plan_mod(&bad, $, $)", "($ % $)"},
                          least = {"plan_min($, $)", "min($, $)"},
                          most = {"plan_max($, $)", "max($, $)"},
                          ceil_div = {"plan_ceil_div(&bad, $, $)", "-(-$ // $)"},
                          both = {"($ && $)", "int(bool($ and $))"},
                          either = {"($ || $)", "int(bool($ or $))"};
static const struct forms comparisons[] = {
    {"($ == $)", "int($ == $)"}, {"($ != $)", "int($ != $)"}, {"($ < $)", "int($ < $)"},
    {"($ <= $)", "int($ <= $)"}, {"($ > $)", "int($ > $)"},   {"($ >= $)", "int($ >= $)"}};

static str number(int64_t v, enum export_language l, struct arena *a) {
    bool small = v > INT32_MIN && v <= INT32_MAX;
    if (v == INT64_MIN && l == EXPORT_C)
        return S("INT64_MIN");
    return arena_printf(a, small || l == EXPORT_PYTHON ? "%" PRId64 : "INT64_C(%" PRId64 ")", v);
}

/* NULL: not an operation on two integers that a size may be made of. */
static const struct forms *forms_of(const struct expr *e) {
    switch (e->kind) {
    case EXPR_ADD:
        return &add;
    case EXPR_SUB:
        return &sub;
    case EXPR_MUL:
        return &mul;
    case EXPR_FLOORDIV:
        return &div_floor;
    case EXPR_MOD:
        return &mod;
    case EXPR_AND:
        return &both;
    case EXPR_OR:
        return &either;
    case EXPR_CALL:
        return e->function == FUNCTION_MAXIMUM   ? &most
               : e->function == FUNCTION_MINIMUM ? &least
                                                 : NULL;
    default:
        return e->kind >= EXPR_EQ && e->kind <= EXPR_GE ? &comparisons[e->kind - EXPR_EQ] : NULL;
    }
}

static str choice(str condition, str yes, str no, enum export_language l, struct arena *a) {
    if (l == EXPORT_C)
        return arena_printf(a, "(%.*s ? %.*s : %.*s)", STR_ARG(condition), STR_ARG(yes),
                            STR_ARG(no));
    return arena_printf(a, "(%.*s if %.*s else %.*s)", STR_ARG(yes), STR_ARG(condition),
                        STR_ARG(no));
}

/* -(-a // b), which is how a plan's ceil_div(a, b) is kept. */
static bool is_ceil_div(const struct expr *e) {
    return e->kind == EXPR_NEG && e->args[0]->kind == EXPR_FLOORDIV &&
           e->args[0]->args[0]->kind == EXPR_NEG;
}

/* `lets` are what EXPR_INDEX counts; NULL: there are none. */
static str integer_text(const struct expr *e, const struct task *t, const struct plan_let *lets,
                        enum export_language l, struct arena *a) {
    str part[3] = {{0}};
    if (e->kind == EXPR_NUMBER && e->integral)
        return number(e->integer, l, a);
    if (e->kind == EXPR_DIM)
        return arena_printf(a, "dim_%.*s", STR_ARG(t->dims[e->ref].name));
    if (e->kind == EXPR_INDEX && lets)
        return arena_printf(a, "let_%.*s", STR_ARG(lets[e->ref].name));
    if (is_ceil_div(e)) {
        const struct expr *quotient = e->args[0];
        str a_text = integer_text(quotient->args[0]->args[0], t, lets, l, a),
            b_text = integer_text(quotient->args[1], t, lets, l, a);
        return a_text.n && b_text.n ? binary(&ceil_div, a_text, b_text, l, a) : S("");
    }
    for (size_t i = 0; i < e->nargs && i < 3; i++) {
        part[i] = integer_text(e->args[i], t, lets, l, a);
        if (part[i].n == 0)
            return S("");
    }
    if (e->kind == EXPR_NEG)
        return binary(&sub, S("0"), part[0], l, a);
    if (e->kind == EXPR_NOT)
        return binary(&comparisons[0], part[0], S("0"), l, a);
    if (e->kind == EXPR_IF)
        return choice(part[0], part[1], part[2], l, a);
    const struct forms *f = forms_of(e);
    return f ? binary(f, part[0], part[1], l, a) : S("");
}

str plan_text(const struct expr *e, const struct candidate *c, enum export_language l,
              struct arena *a) {
    return integer_text(e, c->task, c->lets, l, a);
}

str dims_text(const struct expr *e, const struct task *t, enum export_language l, struct arena *a) {
    return integer_text(e, t, NULL, l, a);
}

str product_text(const str *factors, size_t n, enum export_language l, struct arena *a) {
    str s = n ? factors[0] : S("1");
    for (size_t i = 1; i < n; i++)
        s = binary(&mul, s, factors[i], l, a);
    return s;
}

/* ---- sizes of a module ---- */

/* An expression as order.json has it: sums, products, // and %, numbers and dimensions. */
struct sizing {
    str rest;
    enum export_language l;
    struct arena *mem;
    bool ok;
    size_t depth;
};

static bool take_word(struct sizing *s, str word) {
    s->rest = str_trim(s->rest);
    if (!str_starts(s->rest, word))
        return false;
    s->rest = str_from(s->rest, word.n);
    return true;
}

static str sum_text(struct sizing *s);

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static str atom_text(struct sizing *s) {
    int64_t value;
    size_t n = 0;
    s->ok = s->ok && s->depth++ < 200;
    if (s->ok && take_word(s, S("("))) {
        str inner = sum_text(s);
        s->ok = s->ok && take_word(s, S(")"));
        return inner;
    }
    if (s->ok && take_word(s, S("-")))
        return binary(&sub, S("0"), atom_text(s), s->l, s->mem);
    while (n < s->rest.n && is_word(s->rest.p[n]))
        n++;
    str word = str_cut(s->rest, 0, n);
    s->rest = str_from(s->rest, n);
    s->ok = s->ok && n > 0;
    if (s->ok && str_to_i64(word, &value))
        return number(value, s->l, s->mem);
    s->ok = s->ok && !(word.p[0] >= '0' && word.p[0] <= '9');
    return arena_printf(s->mem, "dim_%.*s", STR_ARG(word));
}

static str term_text(struct sizing *s) {
    str left = atom_text(s);
    while (s->ok) {
        const struct forms *f = take_word(s, S("//"))  ? &div_floor
                                : take_word(s, S("*")) ? &mul
                                : take_word(s, S("%")) ? &mod
                                                       : NULL;
        if (!f)
            break;
        left = binary(f, left, atom_text(s), s->l, s->mem);
    }
    return left;
}

static str sum_text(struct sizing *s) {
    str left = term_text(s);
    while (s->ok) {
        const struct forms *f = take_word(s, S("+")) ? &add : take_word(s, S("-")) ? &sub : NULL;
        if (!f)
            break;
        left = binary(f, left, term_text(s), s->l, s->mem);
    }
    return left;
}

str size_text(str text, enum export_language l, struct arena *a) {
    struct sizing s = {.rest = text, .l = l, .mem = a, .ok = true};
    str made = sum_text(&s);
    return s.ok && !str_trim(s.rest).n ? made : S("");
}

/* ---- names and lists ---- */

static const char *const c_words[] = {
    "auto",     "break",   "case",      "char",     "const",    "continue",  "default",  "do",
    "double",   "else",    "enum",      "extern",   "float",    "for",       "goto",     "if",
    "inline",   "int",     "long",      "register", "restrict", "return",    "short",    "signed",
    "sizeof",   "static",  "struct",    "switch",   "typedef",  "union",     "unsigned", "void",
    "volatile", "while",   "class",     "new",      "delete",   "this",      "template", "typename",
    "public",   "private", "protected", "virtual",  "operator", "namespace", "using",    "try",
    "catch",    "throw",   "bool",      "true",     "false",    "and",       "or",       "not",
    "xor",      "friend",  "explicit",  "export",   "mutable",  "asm",       "nullptr",  "alignas"};
static const char *const python_words[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
/* Folders and modules beside which a package of the same name could not be imported, headers that
 * its own would hide. */
static const char *const taken_words[] = {
    "cutepilot", "ctypes",     "evidence", "glob",   "json",    "math",
    "os",        "statistics", "stddef",   "stdint", "string",  "sys",
    "tests",     "threading",  "time",     "torch",  "warnings"};

static bool is_among(const char *const *words, size_t n, str name) {
    for (size_t i = 0; i < n; i++)
        if (str_is(name, words[i]))
            return true;
    return false;
}

str member_name(str name, struct arena *a) {
    bool taken = is_among(c_words, sizeof c_words / sizeof *c_words, name);
    return taken ? arena_printf(a, "%.*s_", STR_ARG(name)) : name;
}

bool export_name_ok(str name) {
    bool ok = name.n > 0 && name.n <= 100 && !(name.p[0] >= '0' && name.p[0] <= '9');
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        ok = ok && (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z'));
    }
    return ok && !is_among(c_words, sizeof c_words / sizeof *c_words, name) &&
           !is_among(python_words, sizeof python_words / sizeof *python_words, name) &&
           !is_among(taken_words, sizeof taken_words / sizeof *taken_words, name);
}

bool export_hub_name_ok(str name) {
    bool ok = name.n > 1 && name.p[0] >= 'a' && name.p[0] <= 'z' && name.p[name.n - 1] != '_';
    for (size_t i = 0; i < name.n; i++)
        ok = ok && !(name.p[i] >= 'A' && name.p[i] <= 'Z');
    return ok;
}

void put_item(struct buf *to, str item) {
    if (to->n)
        buf_puts(to, S(", "));
    buf_puts(to, item);
}

str kept(struct arena *a, struct buf *b) {
    str s = arena_str(a, buf_str(b));
    buf_clear(b);
    return s;
}
