/* PTX text to a module: the cursor over the text, the names in sight, declarations, bodies of
 * functions, and the module with its header, variables, functions and kernels.
 *
 * Lines are counted as the cursor goes; an error is set once and carries `PTX line N`, what was met
 * and why. Growing lists live on the heap and are copied into the arena when their owner is
 * complete. What ptxas 13.0 does was tried case by case; where it accepts what no compiler writes,
 * the same is done here or the text is refused, never something else. */
#include "base/checked.h"
#include "ptx/ptx.h"
#include <string.h>

struct lexer {
    str text;
    size_t at;
    uint32_t line;
    struct err *err;
};

/* A number: 12, 0x1F, 0b1, 017, each with U; 0f3F800000, 0d…; 1.5e3. The sign belongs to it. */
struct lex_number {
    uint64_t bits;
    enum ptx_type type; /* PTX_S64, PTX_F32 or PTX_F64 */
};

#define PTX_MAX_REGISTERS (1u << 20)
#define PTX_MAX_SCOPES    64

struct name {
    str text;
    enum ptx_symbol kind;
    uint32_t index; /* in the list of its kind; of a family the first */
    uint32_t count; /* 0: the name itself, else a family of registers name0 … name<count-1> */
    uint32_t below; /* the name it hides or collides with in the table, +1; 0: none */
};

struct names {
    struct name *list;
    size_t n, cap;
    uint32_t *table; /* index + 1 of the newest name of each hash */
};

#define PTX_MAX_VAR_BYTES (64u << 20)
#define PTX_MAX_VECTOR    128u
#define PTX_MAX_INSTRS    (4u << 20)
#define PTX_MAX_FILES     4096u

struct list { /* of elements of one size */
    void *p;
    size_t n, cap;
};

struct parser {
    struct lexer lex;
    struct arena *arena;
    struct ptx_module *module;
    struct list entries, vars, functions, files;
    struct names names; /* of the module, and of the function that is being read */
};

static bool declare(struct parser *p, size_t scope, enum ptx_symbol kind, str name, size_t index);

/* ---- blanks, comments, words and numbers: all is bounds-checked, the text may be any bytes ----
 */

static void lex_report(struct lexer *l, const char *what) {
    size_t n = 0;
    while (l->at + n < l->text.n && n < 60 && l->text.p[l->at + n] != '\n')
        n++;
    char near[64];
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)l->text.p[l->at + i];
        near[i] = c >= ' ' && c < 127 ? (char)c : '?';
    }
    near[n] = 0;
    err_set(l->err, ERR_INPUT, "PTX line %u: %s at '%s'", l->line, what,
            n ? near : "the end of the line");
}

/* A function of its own, small enough to be inlined: then the compiler sees that it returns false,
 * and that no caller reads a result after it. */
static bool lex_fail(struct lexer *l, const char *what) {
    lex_report(l, what);
    return false;
}

static char lex_at(const struct lexer *l, size_t ahead) {
    return l->text.n - l->at > ahead ? l->text.p[l->at + ahead] : 0;
}

static void lex_step(struct lexer *l) {
    if (l->text.p[l->at] == '\n')
        l->line++;
    l->at++;
}

static void lex_comment(struct lexer *l) {
    if (lex_at(l, 1) == '/') {
        while (l->at < l->text.n && l->text.p[l->at] != '\n')
            l->at++;
        return;
    }
    l->at += 2;
    while (l->at < l->text.n && !(lex_at(l, 0) == '*' && lex_at(l, 1) == '/'))
        lex_step(l);
    l->at += l->text.n - l->at >= 2 ? 2 : l->text.n - l->at;
}

/* Skips blanks and comments. */
static void lex_blank(struct lexer *l) {
    while (l->at < l->text.n) {
        char c = lex_at(l, 0);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            lex_step(l);
        else if (c == '/' && (lex_at(l, 1) == '/' || lex_at(l, 1) == '*'))
            lex_comment(l);
        else
            return;
    }
}

/* Next character after blanks; 0 at the end. */
static char lex_peek(struct lexer *l) {
    lex_blank(l);
    return lex_at(l, 0);
}

/* Takes it if it is next. */
static bool lex_take(struct lexer *l, char c) {
    if (lex_peek(l) != c || c == 0)
        return false;
    l->at++;
    return true;
}

static bool lex_need(struct lexer *l, char c) {
    if (lex_take(l, c))
        return true;
    char what[] = "expected 'x'";
    what[10] = c;
    return lex_fail(l, what);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

/* A name: letters, digits, _ $ %, not starting with a digit. Empty when there is none. */
static str lex_name(struct lexer *l) {
    char c = lex_peek(l);
    str none = {l->text.p + l->at, 0};
    if ((!is_word(c) && c != '%') || is_digit(c))
        return none;
    size_t n = 1;
    while (is_word(lex_at(l, n)))
        n++;
    l->at += n;
    return (str){none.p, n};
}

static str lex_dotted(struct lexer *l) {
    str none = {l->text.p + l->at, 0};
    if (lex_at(l, 0) != '.' || !is_word(lex_at(l, 1)))
        return none;
    size_t n = 1;
    for (;;) {
        if (is_word(lex_at(l, n)))
            n++;
        else if (lex_at(l, n) == ':' && lex_at(l, n + 1) == ':')
            n += 2;
        else
            break;
    }
    l->at += n;
    return (str){none.p + 1, n - 1};
}

/* Takes it if it is next. */
static bool lex_dotted_is(struct lexer *l, const char *word) {
    lex_blank(l);
    struct lexer before = *l;
    if (str_is(lex_dotted(l), word))
        return true;
    *l = before;
    return false;
}

/* `.word`, without its dot, `::` included; empty when there is none. */
static bool lex_string(struct lexer *l, str *out) {
    if (!lex_need(l, '"'))
        return false;
    size_t start = l->at;
    while (l->at < l->text.n && l->text.p[l->at] != '"' && l->text.p[l->at] != '\n')
        l->at++;
    if (lex_at(l, 0) != '"')
        return lex_fail(l, "a string is not closed");
    *out = (str){l->text.p + start, l->at - start};
    l->at++;
    return true;
}

static int digit_of(char c) {
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static bool digits(str s, unsigned base, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)digit_of(s.p[i]);
        if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return s.n > 0;
}

static bool integer(str s, uint64_t *out) {
    if (s.n > 1 && (s.p[s.n - 1] == 'U' || s.p[s.n - 1] == 'u'))
        s.n--;
    if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X'))
        return digits(str_from(s, 2), 16, out);
    if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'b' || s.p[1] == 'B'))
        return digits(str_from(s, 2), 2, out);
    if (s.n > 1 && s.p[0] == '0')
        return digits(s, 8, out);
    return digits(s, 10, out);
}

static bool decimal_float(str s, struct lex_number *out) {
    double d;
    bool written_as_one = false; /* an integer that does not fit is an error, not a float */
    for (size_t i = 0; i < s.n; i++)
        written_as_one |= s.p[i] == '.' || s.p[i] == 'e' || s.p[i] == 'E';
    if (!written_as_one || !str_to_f64(s, &d))
        return false;
    memcpy(&out->bits, &d, 8);
    out->type = PTX_F64;
    return true;
}

static bool number_of(str s, struct lex_number *out) {
    *out = (struct lex_number){0, PTX_S64};
    if (s.n == 10 && s.p[0] == '0' && (s.p[1] == 'f' || s.p[1] == 'F')) {
        out->type = PTX_F32;
        return digits(str_from(s, 2), 16, &out->bits);
    }
    if (s.n == 18 && s.p[0] == '0' && (s.p[1] == 'd' || s.p[1] == 'D')) {
        out->type = PTX_F64;
        return digits(str_from(s, 2), 16, &out->bits);
    }
    return integer(s, &out->bits) || decimal_float(s, out);
}

static void negate(struct lex_number *n) {
    if (n->type == PTX_F32)
        n->bits ^= UINT64_C(1) << 31;
    else if (n->type == PTX_F64)
        n->bits ^= UINT64_C(1) << 63;
    else
        n->bits = 0 - n->bits;
}

static bool lex_number(struct lexer *l, struct lex_number *out) {
    struct lexer before = *l;
    bool minus = lex_take(l, '-');
    lex_blank(l);
    size_t start = l->at, n = 0;
    bool hex = lex_at(l, 0) == '0' && (lex_at(l, 1) == 'x' || lex_at(l, 1) == 'X');
    while (is_word(lex_at(l, n)) || lex_at(l, n) == '.' ||
           ((lex_at(l, n) == '+' || lex_at(l, n) == '-') && n > 0 && !hex &&
            (lex_at(l, n - 1) == 'e' || lex_at(l, n - 1) == 'E')))
        n++;
    l->at += n;
    if (n == 0 || !number_of((str){l->text.p + start, n}, out)) {
        *l = before;
        return lex_fail(l, "not a number");
    }
    if (minus)
        negate(out);
    return true;
}

/* An integer from 0 to max. */
static bool lex_u64(struct lexer *l, uint64_t max, uint64_t *out) {
    struct lexer before = *l;
    struct lex_number n;
    if (!lex_number(l, &n))
        return false;
    if (n.type != PTX_S64 || n.bits > max) {
        *l = before;
        return lex_fail(l, "number out of range");
    }
    *out = n.bits;
    return true;
}

/* ---- the names in sight ----
 *
 * Scopes are nested: the module, a function with its parameters, and the blocks `{ }` in it.
 * `%r<151>` declares a family of registers. A name of an inner scope hides the outer one until its
 * scope ends; in one scope a name is declared once. They are kept in a chained hash table whose
 * newest entries come first, so that ending a scope is popping the list, and what was declared
 * later is further inside. */

#define NAMES_BUCKETS 1024u
#define FAMILY_AFTER  1024u /* names of the same scope */

static uint32_t bucket_of(str s) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return (h ^ h >> 15) % NAMES_BUCKETS;
}

static void names_init(struct names *t) {
    *t = (struct names){.table = mem_alloc(NAMES_BUCKETS * sizeof *t->table)};
}

static void names_release(struct names *t) {
    mem_free(t->list);
    mem_free(t->table);
    *t = (struct names){0};
}

static const struct name *find(const struct names *t, size_t scope, str text, bool family,
                               uint64_t member) {
    for (uint32_t i = t->table[bucket_of(text)]; i > scope; i = t->list[i - 1].below) {
        const struct name *n = &t->list[i - 1];
        if ((n->count > 0) == family && str_eq(n->text, text) && (!family || member < n->count))
            return n;
    }
    return NULL;
}

/* `%r12` as the family %r and 12. A compiler writes no leading zeros; ptxas reads them. */
static bool member_of(str text, str *family, uint64_t *member) {
    size_t stem = text.n;
    while (stem > 0 && text.p[stem - 1] >= '0' && text.p[stem - 1] <= '9')
        stem--;
    *family = str_cut(text, 0, stem);
    return stem < text.n && str_to_u64(str_from(text, stem), member);
}

static const struct name *find_any(const struct names *t, size_t scope, str text, uint32_t *index) {
    const struct name *n = find(t, scope, text, false, 0), *f = NULL;
    str family;
    uint64_t member = 0;
    if (member_of(text, &family, &member))
        f = find(t, scope, family, true, member);
    if (f && (!n || f > n)) { /* declared later: in an inner scope */
        *index = f->index + (uint32_t)member;
        return f;
    }
    if (n)
        *index = n->index;
    return n;
}

/* A family may not have a member that the scope has already as a name of its own. Compilers declare
 * families first; one that comes after many names is refused rather than compared with all of them.
 */
static bool is_taken(const struct names *t, size_t scope, const struct name *n) {
    uint32_t index;
    if (!n->count)
        return find_any(t, scope, n->text, &index) != NULL;
    if (t->n - scope > FAMILY_AFTER)
        return true;
    for (size_t i = scope; i < t->n; i++) {
        const struct name *old = &t->list[i];
        str family;
        uint64_t member;
        if (old->count > 0 ? str_eq(old->text, n->text)
                           : member_of(old->text, &family, &member) && str_eq(family, n->text) &&
                                 member < n->count)
            return true;
    }
    return false;
}

static bool names_add(struct names *t, size_t scope, struct name n) {
    if (is_taken(t, scope, &n))
        return false;
    t->list = mem_grow(t->list, &t->cap, t->n + 1, sizeof *t->list);
    uint32_t *head = &t->table[bucket_of(n.text)];
    n.below = *head;
    t->list[t->n++] = n;
    *head = (uint32_t)t->n;
    return true;
}

/* false: the scope that begins at `scope` has the name already. */
static void names_drop(struct names *t, size_t n) {
    while (t->n > n) {
        const struct name *last = &t->list[--t->n];
        t->table[bucket_of(last->text)] = last->below;
    }
}

/* What the name stands for here, the innermost first; NULL: nothing. Of a family, *index is the
 * member's. */
static const struct name *names_find(const struct names *t, str text, uint32_t *index) {
    return find_any(t, 0, text, index);
}

/* The same among the names from `scope` on that are labels. */
static const struct name *names_find_label(const struct names *t, size_t scope, str text) {
    const struct name *n = find(t, scope, text, false, 0);
    return n && n->kind == PTX_SYM_LABEL ? n : NULL;
}

/* ---- declarations: types, variables with their initialisers, parameters ---- */

static const struct {
    const char *name;
    enum ptx_type type;
    size_t bytes;
} types[] = {
    {"pred", PTX_PRED, 1},   {"b8", PTX_B8, 1},     {"b16", PTX_B16, 2},
    {"b32", PTX_B32, 4},     {"b64", PTX_B64, 8},   {"b128", PTX_B128, 16},
    {"u8", PTX_U8, 1},       {"u16", PTX_U16, 2},   {"u32", PTX_U32, 4},
    {"u64", PTX_U64, 8},     {"s8", PTX_S8, 1},     {"s16", PTX_S16, 2},
    {"s32", PTX_S32, 4},     {"s64", PTX_S64, 8},   {"f16", PTX_F16, 2},
    {"f16x2", PTX_F16X2, 4}, {"bf16", PTX_BF16, 2}, {"bf16x2", PTX_BF16X2, 4},
    {"tf32", PTX_TF32, 4},   {"f32", PTX_F32, 4},   {"f64", PTX_F64, 8},
};

size_t ptx_type_bytes(enum ptx_type t) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == t)
            return types[i].bytes;
    return 0;
}

static bool ptx_type_named(str name, enum ptx_type *out) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(name, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static bool parse_type(struct parser *p, enum ptx_type *out) {
    lex_blank(&p->lex);
    struct lexer before = p->lex;
    if (ptx_type_named(lex_dotted(&p->lex), out))
        return true;
    p->lex = before;
    return lex_fail(&p->lex, "expected a type");
}

static bool parse_align(struct parser *p, size_t *align) {
    uint64_t a;
    if (!lex_u64(&p->lex, 1u << 20, &a))
        return false;
    if (a == 0 || (a & (a - 1)))
        return lex_fail(&p->lex, "an alignment must be a power of two");
    *align = a;
    return true;
}

/* `[24]`, `[2][3]`, `[]`; counts elements. An empty bracket gives 0. */
static bool parse_extents(struct parser *p, size_t *count) {
    while (lex_take(&p->lex, '[')) {
        uint64_t n = 0;
        if (lex_peek(&p->lex) != ']' && !lex_u64(&p->lex, PTX_MAX_VAR_BYTES, &n))
            return false;
        if (!mul_size(*count, n, count) || *count > PTX_MAX_VAR_BYTES)
            return lex_fail(&p->lex, "the array is too large");
        if (!lex_need(&p->lex, ']'))
            return false;
    }
    return true;
}

static bool put_number(struct parser *p, enum ptx_type t, uint8_t *at) {
    struct lex_number n;
    char first = lex_peek(&p->lex), letter = (char)(first | 0x20);
    if ((letter >= 'a' && letter <= 'z') || first == '_' || first == '$')
        return lex_fail(&p->lex, "tables of addresses (virtual functions, arrays of pointers to "
                                 "functions) are not read; choose by a switch");
    if (!lex_number(&p->lex, &n))
        return false;
    if (t == PTX_F32 && n.type == PTX_F64) {
        double d;
        memcpy(&d, &n.bits, 8);
        float f = (float)d;
        memcpy(at, &f, 4);
        return true;
    }
    uint64_t wide[2] = {n.bits, 0};
    memcpy(at, wide, ptx_type_bytes(t));
    return true;
}

/* Braces only group: what counts is the order of the numbers. */
static bool parse_initialiser(struct parser *p, enum ptx_type t, struct ptx_var *v) {
    size_t elem = ptx_type_bytes(t), at = 0, depth = 0;
    uint8_t *bytes = arena_alloc(p->arena, v->size ? v->size : 1, 16);
    do {
        while (lex_take(&p->lex, '{'))
            depth++;
        char c = lex_peek(&p->lex);
        if (c != '}') {
            if (at + elem > v->size)
                return lex_fail(&p->lex, "more initial values than the variable holds");
            if (!put_number(p, t, bytes + at))
                return false;
            at += elem;
        }
        while (depth > 0 && lex_take(&p->lex, '}'))
            depth--;
    } while (lex_take(&p->lex, ','));
    if (depth)
        return lex_need(&p->lex, '}');
    v->init = bytes;
    return true;
}

static bool parse_variable_mods(struct parser *p, size_t *align, size_t *vector) {
    for (;;) {
        if (lex_dotted_is(&p->lex, "align")) {
            if (!parse_align(p, align))
                return false;
        } else if (lex_dotted_is(&p->lex, "v2")) {
            *vector = 2;
        } else if (lex_dotted_is(&p->lex, "v4")) {
            *vector = 4;
        } else if (lex_dotted_is(&p->lex, "attribute")) {
            if (!lex_need(&p->lex, '('))
                return false;
            while (!lex_take(&p->lex, ')')) {
                if (p->lex.at >= p->lex.text.n)
                    return lex_fail(&p->lex, "an attribute is not closed");
                p->lex.at++;
            }
        } else {
            return true;
        }
    }
}

static bool parse_variable(struct parser *p, enum ptx_space space, bool external,
                           struct ptx_var *out) {
    *out = (struct ptx_var){.space = space, .external = external};
    enum ptx_type t;
    size_t align = 0, count = 1;
    if (!parse_variable_mods(p, &align, &count) || !parse_type(p, &t))
        return false;
    str name = lex_name(&p->lex);
    if (!name.n)
        return lex_fail(&p->lex, "expected a variable's name");
    out->name = arena_str(p->arena, name);
    size_t natural = ptx_type_bytes(t) * count;
    if (!parse_extents(p, &count))
        return false;
    out->size = count * ptx_type_bytes(t);
    out->align = align ? align : natural;
    if (out->size > PTX_MAX_VAR_BYTES)
        return lex_fail(&p->lex, "the variable is too large");
    if (lex_take(&p->lex, '='))
        return parse_initialiser(p, t, out);
    return true;
}

static bool parse_param(struct parser *p, struct ptx_param *out) {
    *out = (struct ptx_param){0};
    bool in_reg = lex_dotted_is(&p->lex, "reg");
    if (!in_reg && !lex_dotted_is(&p->lex, "param"))
        return lex_fail(&p->lex, "expected .param");
    size_t align = 0, count = 1;
    if (!parse_variable_mods(p, &align, &count) || !parse_type(p, &out->type))
        return false;
    size_t pointee = 0; /* .ptr's alignment is of what it points to */
    if (lex_dotted_is(&p->lex, "ptr")) {
        out->grid_constant_pointer = true;
        while (lex_dotted_is(&p->lex, "global") || lex_dotted_is(&p->lex, "const") ||
               lex_dotted_is(&p->lex, "shared") || lex_dotted_is(&p->lex, "local"))
            continue;
        if (!parse_variable_mods(p, &pointee, &count))
            return false;
    }
    str name = lex_name(&p->lex);
    if (!name.n)
        return lex_fail(&p->lex, "expected a parameter's name");
    out->name = arena_str(p->arena, name);
    if (!parse_extents(p, &count))
        return false;
    out->size = count * ptx_type_bytes(out->type);
    out->align = align ? align : ptx_type_bytes(out->type);
    return true;
}

/* A zeroed element. */
static void *list_add(struct list *l, size_t size) {
    l->p = mem_grow(l->p, &l->cap, l->n + 1, size);
    void *e = (char *)l->p + l->n++ * size;
    memset(e, 0, size);
    return e;
}

/* Releases the list. */
static void *list_finish(struct list *l, size_t size, struct arena *a, size_t *n) {
    void *out = arena_array_bytes(a, l->n ? l->n : 1, size, 16);
    if (l->n)
        memcpy(out, l->p, l->n * size);
    *n = l->n;
    mem_free(l->p);
    *l = (struct list){0};
    return out;
}

/* `( … )`. */
static bool parse_params(struct parser *p, struct ptx_param **out, size_t *n) {
    struct list l = {0};
    bool ok = lex_need(&p->lex, '(');
    if (ok && !lex_take(&p->lex, ')')) {
        do {
            ok = l.n < 4096 ? parse_param(p, list_add(&l, sizeof(struct ptx_param)))
                            : lex_fail(&p->lex, "too many parameters");
        } while (ok && lex_take(&p->lex, ','));
        ok = ok && lex_need(&p->lex, ')');
    }
    *out = list_finish(&l, sizeof(struct ptx_param), p->arena, n);
    return ok;
}

/* ---- a function's body: registers, variables, labels, source positions and instructions ---- */

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

/* After the state space: `.align 4 .b8 name[24] = {…}`, up to but without `;`. */
static bool parse_skip(struct parser *p, char until) {
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

/* `_`, WARP_SZ: never a name. */
static bool is_word_of_language(str name) {
    return str_is(name, "_") || str_is(name, "WARP_SZ");
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

/* `{ … }`. */
static bool parse_body(struct parser *p, struct ptx_entry *e) {
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

/* An error when the scope that begins at `scope` has the name already, or it is a word of PTX. */
static bool declare(struct parser *p, size_t scope, enum ptx_symbol kind, str name, size_t index) {
    struct name n = {.text = name, .kind = kind, .index = (uint32_t)index};
    if (is_word_of_language(name))
        return lex_fail(&p->lex, "a word of PTX is declared as a name");
    return names_add(&p->names, scope, n) || lex_fail(&p->lex, "a name is declared twice");
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
