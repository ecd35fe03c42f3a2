/* The tree is json-c's and so is the writing; `json` is its struct under another name and JSON null
 * its NULL. The reading is our own, because json-c's tokener, also when strict, takes NaN, control
 * bytes in strings and leading zeros, and silently turns integers that do not fit into the nearest
 * that does. A repeated key is refused too: two readers must not see two documents in one text. */
/* json-c's type has the name of our constructor. */
#define json_object json_c_object
#include <json-c/json.h>
#undef json_object

#include "base/json.h"

#include "base/arena.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct json_c_object node;

enum { DEPTH_MAX = 64 };

static node *inner(const json *j) {
    return (node *)j;
}

static json *outer(node *o) {
    return (json *)o;
}

static node *made(node *o) {
    if (!o)
        mem_exhausted();
    return o;
}

/* ---- values ---- */

/* The fewest digits that read back, always recognisable as a double. v is finite. */
static void f64_text(double v, char text[40]) {
    if (fabs(v) < 1e15 && v == trunc(v) && !(v == 0 && signbit(v))) {
        snprintf(text, 40, "%" PRId64 ".0", (int64_t)v);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        double back;
        int n = snprintf(text, 40, "%.*g", digits, v);
        if (str_to_f64((str){text, (size_t)n}, &back) && back == v)
            break;
    }
    if (!strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", 3);
}

/* As text when it is written, not before: most numbers are only read. */
static int print_f64(node *o, struct printbuf *to, int level, int flags) {
    char text[40];
    (void)level, (void)flags;
    f64_text(json_object_get_double(o), text);
    return printbuf_memappend(to, text, (int)strlen(text));
}

static node *new_f64(double v) {
    if (!isfinite(v))
        return NULL;
    node *o = made(json_object_new_double(v));
    json_object_set_serializer(o, print_f64, NULL, NULL);
    return o;
}

void json_write_f64(double v, struct buf *out) {
    char text[40] = "null";
    if (isfinite(v))
        f64_text(v, text);
    buf_puts(out, str_view(text));
}

static void write_escaped(unsigned char c, struct buf *out) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *hit = c ? strchr(from, c) : NULL;
    if (hit)
        buf_printf(out, "\\%c", to[hit - from]);
    else
        buf_printf(out, "\\u%04x", c);
}

void json_write_text(str s, struct buf *out) {
    buf_putc(out, '"');
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t plain = 0, n;
        while (i + plain < s.n && (c = (unsigned char)s.p[i + plain]) >= ' ' && c < 0x80 &&
               c != '"' && c != '\\')
            plain++;
        buf_put(out, s.p + i, plain);
        i += plain;
        if (i == s.n)
            break;
        if (c < 0x80) {
            write_escaped(c, out);
            i++;
        } else {
            n = str_utf8(str_from(s, i));
            buf_puts(out, n ? str_cut(s, i, n) : S("\xef\xbf\xbd"));
            i += n ? n : 1;
        }
    }
    buf_putc(out, '"');
}

static node *new_string(str s) {
    if (s.n > INT32_MAX)
        mem_exhausted();
    return made(json_object_new_string_len(s.n ? s.p : "", (int)s.n));
}

/* How many bytes from `at` on are whole characters of UTF-8. */
static size_t valid_bytes(str s, size_t at) {
    size_t n, to = at;
    while (to < s.n && (n = str_utf8(str_from(s, to))))
        to += n;
    return to - at;
}

json *json_string(str s) {
    size_t at = valid_bytes(s, 0), n;
    if (at == s.n)
        return outer(new_string(s));
    struct buf clean;
    buf_init(&clean, SIZE_MAX / 2);
    buf_put(&clean, s.p, at);
    while (at < s.n) {
        buf_puts(&clean, S("\xef\xbf\xbd"));
        n = valid_bytes(s, ++at);
        buf_put(&clean, s.p + at, n);
        at += n;
    }
    node *o = new_string(buf_str(&clean));
    buf_release(&clean);
    return outer(o);
}

json *json_of_i64(int64_t v) {
    return outer(made(json_object_new_int64(v)));
}

json *json_of_f64(double v) {
    return outer(new_f64(v));
}

json *json_of_bool(bool v) {
    return outer(made(json_object_new_boolean(v)));
}

json *json_object(void) {
    return outer(made(json_object_new_object()));
}

json *json_array(void) {
    return outer(made(json_object_new_array()));
}

void json_free(json *j) {
    json_object_put(inner(j));
}

json *json_copy(const json *j) {
    node *copy = NULL;
    if (j && json_object_deep_copy(inner(j), &copy, NULL) != 0)
        mem_exhausted();
    return outer(copy);
}

void json_set(json *obj, const char *key, json *value) {
    BUG_IF(!json_is_object(obj));
    if (json_object_object_add(inner(obj), key, inner(value)) != 0)
        mem_exhausted();
}

void json_set_str(json *obj, const char *key, str v) {
    json_set(obj, key, json_string(v));
}

void json_set_i64(json *obj, const char *key, int64_t v) {
    json_set(obj, key, json_of_i64(v));
}

void json_set_f64(json *obj, const char *key, double v) {
    json_set(obj, key, json_of_f64(v));
}

void json_set_bool(json *obj, const char *key, bool v) {
    json_set(obj, key, json_of_bool(v));
}

void json_push(json *arr, json *value) {
    BUG_IF(!json_is_array(arr));
    if (json_object_array_add(inner(arr), inner(value)) != 0)
        mem_exhausted();
}

void json_push_str(json *arr, str v) {
    json_push(arr, json_string(v));
}

void json_push_i64(json *arr, int64_t v) {
    json_push(arr, json_of_i64(v));
}

void json_push_f64(json *arr, double v) {
    json_push(arr, json_of_f64(v));
}

/* ---- looking ---- */

bool json_is_object(const json *j) {
    return json_object_is_type(inner(j), json_type_object) && j;
}

bool json_is_array(const json *j) {
    return json_object_is_type(inner(j), json_type_array) && j;
}

size_t json_len(const json *j) {
    if (json_is_object(j))
        return (size_t)json_object_object_length(inner(j));
    return json_is_array(j) ? json_object_array_length(inner(j)) : 0;
}

const json *json_get(const json *obj, const char *key) {
    return json_is_object(obj) ? outer(json_object_object_get(inner(obj), key)) : NULL;
}

const json *json_at(const json *arr, size_t i) {
    return i < json_len(arr) && json_is_array(arr) ? outer(json_object_array_get_idx(inner(arr), i))
                                                   : NULL;
}

bool json_to_str(const json *j, str *out) {
    if (!j || !json_object_is_type(inner(j), json_type_string))
        return false;
    *out = (str){json_object_get_string(inner(j)), (size_t)json_object_get_string_len(inner(j))};
    return true;
}

bool json_to_i64(const json *j, int64_t *out) {
    if (!j || !json_object_is_type(inner(j), json_type_int))
        return false;
    *out = json_object_get_int64(inner(j));
    return true;
}

bool json_to_f64(const json *j, double *out) {
    int64_t whole;
    if (json_to_i64(j, &whole)) {
        *out = (double)whole;
        return true;
    }
    if (!j || !json_object_is_type(inner(j), json_type_double))
        return false;
    *out = json_object_get_double(inner(j));
    return true;
}

bool json_to_bool(const json *j, bool *out) {
    if (!j || !json_object_is_type(inner(j), json_type_boolean))
        return false;
    *out = json_object_get_boolean(inner(j));
    return true;
}

bool json_get_str(const json *obj, const char *key, str *out) {
    return json_to_str(json_get(obj, key), out);
}

bool json_get_i64(const json *obj, const char *key, int64_t *out) {
    return json_to_i64(json_get(obj, key), out);
}

bool json_get_f64(const json *obj, const char *key, double *out) {
    return json_to_f64(json_get(obj, key), out);
}

bool json_get_bool(const json *obj, const char *key, bool *out) {
    return json_to_bool(json_get(obj, key), out);
}

void json_each(const json *obj, void (*f)(void *ctx, const char *key, const json *value),
               void *ctx) {
    if (!json_is_object(obj))
        return;
    struct lh_entry *member;
    lh_foreach(json_object_get_object(inner(obj)), member) {
        f(ctx, lh_entry_k(member), lh_entry_v(member));
    }
}

/* ---- writing ---- */

static void write_with(const json *j, int flags, struct buf *out) {
    size_t n;
    const char *text =
        json_object_to_json_string_length(inner(j), flags | JSON_C_TO_STRING_NOSLASHESCAPE, &n);
    if (!text)
        mem_exhausted();
    buf_put(out, text, n);
}

void json_write(const json *j, struct buf *out) {
    write_with(j, JSON_C_TO_STRING_PLAIN, out);
}

void json_write_pretty(const json *j, struct buf *out) {
    write_with(j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED, out);
}

/* ---- reading ---- */

struct reader {
    str text;
    size_t at;
    int depth;
    struct buf piece; /* the string that is being unescaped */
    struct err *err;
};

static bool fail_at(struct reader *r, size_t at, const char *what) {
    size_t line, col;
    text_position(r->text, at, &line, &col);
    return err_set(r->err, ERR_INPUT, "JSON line %zu column %zu: %s", line, col, what);
}

static bool fail(struct reader *r, const char *what) {
    return fail_at(r, r->at, r->at < r->text.n ? what : "the text ends too early");
}

static int peek(const struct reader *r) {
    return r->at < r->text.n ? (unsigned char)r->text.p[r->at] : -1;
}

static void skip_blanks(struct reader *r) {
    int c = peek(r);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        r->at++;
        c = peek(r);
    }
}

static bool take(struct reader *r, char c) {
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static size_t take_digits(struct reader *r) {
    size_t n = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; n++)
        r->at++;
    return n;
}

static bool read_number(struct reader *r, node **out) {
    size_t from = r->at;
    bool whole = true;
    take(r, '-');
    if (!take(r, '0') && !take_digits(r))
        return fail(r, "a digit is needed here");
    if (peek(r) >= '0' && peek(r) <= '9')
        return fail(r, "a number has no leading zeros");
    if (take(r, '.')) {
        whole = false;
        if (!take_digits(r))
            return fail(r, "a digit is needed after the point");
    }
    if (take(r, 'e') || take(r, 'E')) {
        whole = false;
        if (!take(r, '+'))
            take(r, '-');
        if (!take_digits(r))
            return fail(r, "a digit is needed in the exponent");
    }
    str s = str_cut(r->text, from, r->at - from);
    int64_t i;
    double d;
    /* "-0" is a double, or its sign would be lost. */
    if (whole && !str_is(s, "-0") && str_to_i64(s, &i)) {
        *out = made(json_object_new_int64(i));
        return true;
    }
    if (!str_to_f64(s, &d))
        return fail_at(r, from, "the number is out of range");
    *out = new_f64(d);
    return true;
}

static void put_codepoint(struct buf *b, uint32_t c) {
    if (c < 0x80) {
        buf_putc(b, (char)c);
    } else if (c < 0x800) {
        buf_putc(b, (char)(0xc0 | c >> 6));
        buf_putc(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_putc(b, (char)(0xe0 | c >> 12));
        buf_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(b, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_putc(b, (char)(0xf0 | c >> 18));
        buf_putc(b, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(b, (char)(0x80 | (c & 0x3f)));
    }
}

static bool read_hex4(struct reader *r, uint32_t *out) {
    char text[6] = "0x";
    uint64_t v;
    str digits = str_cut(r->text, r->at, 4);
    if (digits.n < 4)
        return fail_at(r, r->text.n, "the text ends too early");
    memcpy(text + 2, digits.p, 4);
    if (!str_to_u64((str){text, 6}, &v))
        return fail(r, "four hexadecimal digits are needed after \\u");
    r->at += 4;
    *out = (uint32_t)v;
    return true;
}

/* After `\u`. Half a surrogate pair stands for nothing: it becomes U+FFFD. */
static bool read_unicode(struct reader *r) {
    uint32_t c, low;
    if (!read_hex4(r, &c))
        return false;
    if (c >= 0xd800 && c < 0xdc00 && str_starts(str_from(r->text, r->at), S("\\u"))) {
        size_t back = r->at;
        r->at += 2;
        if (!read_hex4(r, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000) {
            put_codepoint(&r->piece, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
            return true;
        }
        r->at = back;
    }
    put_codepoint(&r->piece, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return true;
}

static bool read_escape(struct reader *r) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    if (c == 'u') {
        r->at++;
        return read_unicode(r);
    }
    const char *hit = c > 0 ? strchr(from, c) : NULL;
    if (!hit)
        return fail(r, "unknown escape");
    buf_putc(&r->piece, to[hit - from]);
    r->at++;
    return true;
}

/* Over characters that stand for themselves, up to a quote or a backslash. */
static bool skip_plain(struct reader *r) {
    for (;;) {
        int c = peek(r);
        if (c == '"' || c == '\\')
            return true;
        if (c < 0)
            return fail(r, "");
        if (c < 0x20)
            return fail(r, "a control byte in a string must be escaped");
        size_t n = c < 0x80 ? 1 : str_utf8(str_from(r->text, r->at));
        if (n == 0)
            return fail(r, "not UTF-8");
        r->at += n;
    }
}

/* Until the next one is read: a part of the text where nothing is escaped, otherwise r->piece. */
static bool read_text(struct reader *r, str *out) {
    if (!take(r, '"'))
        return fail(r, "a string is needed here");
    size_t from = r->at;
    if (!skip_plain(r))
        return false;
    *out = str_cut(r->text, from, r->at - from);
    if (take(r, '"'))
        return true;
    buf_clear(&r->piece);
    buf_puts(&r->piece, *out);
    while (!take(r, '"')) {
        if (take(r, '\\')) {
            if (!read_escape(r))
                return false;
            continue;
        }
        from = r->at;
        if (!skip_plain(r))
            return false;
        buf_put(&r->piece, r->text.p + from, r->at - from);
    }
    BUG_IF(r->piece.failed); /* unescaped, a string is no longer than it was */
    *out = buf_str(&r->piece);
    return true;
}

/* Into r->piece, which ends with a NUL. */
static bool read_key(struct reader *r) {
    str key;
    if (!read_text(r, &key))
        return false;
    if (key.p != r->piece.p) {
        buf_clear(&r->piece);
        buf_puts(&r->piece, key);
    }
    return true;
}

static bool read_value(struct reader *r, node **out);

static bool read_array(struct reader *r, node *arr) {
    skip_blanks(r);
    if (take(r, ']'))
        return true;
    for (;;) {
        node *item;
        if (!read_value(r, &item))
            return false;
        json_push(outer(arr), outer(item));
        if (take(r, ']'))
            return true;
        if (!take(r, ','))
            return fail(r, "',' or ']' is needed here");
    }
}

/* The key goes into the table first, with null: r->piece holds it no longer than that. */
static bool read_member(struct reader *r, node *obj) {
    skip_blanks(r);
    size_t key_at = r->at;
    if (!read_key(r))
        return false;
    const char *key = r->piece.p;
    if (memchr(key, 0, r->piece.n))
        return fail_at(r, key_at, "a key must not hold U+0000");
    if (json_object_object_get_ex(obj, key, NULL))
        return fail_at(r, key_at, "the key occurs twice");
    if (json_object_object_add_ex(obj, key, NULL, JSON_C_OBJECT_ADD_KEY_IS_NEW) != 0)
        mem_exhausted();
    node *value;
    skip_blanks(r);
    if (!take(r, ':'))
        return fail(r, "':' is needed here");
    if (!read_value(r, &value))
        return false;
    lh_entry_set_val(json_object_get_object(obj)->tail, value);
    return true;
}

static bool read_object(struct reader *r, node *obj) {
    skip_blanks(r);
    if (take(r, '}'))
        return true;
    for (;;) {
        if (!read_member(r, obj))
            return false;
        if (take(r, '}'))
            return true;
        if (!take(r, ','))
            return fail(r, "',' or '}' is needed here");
    }
}

static bool read_nested(struct reader *r, node **out) {
    bool array = peek(r) == '[';
    if (r->depth == DEPTH_MAX)
        return fail(r, "nested more than 64 levels deep");
    r->at++;
    r->depth++;
    *out = inner(array ? json_array() : json_object());
    bool ok = array ? read_array(r, *out) : read_object(r, *out);
    r->depth--;
    if (!ok)
        json_object_put(*out);
    return ok;
}

static bool read_literal(struct reader *r, node **out) {
    static const char *const words[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++) {
        if (!str_starts(str_from(r->text, r->at), str_view(words[i])))
            continue;
        r->at += strlen(words[i]);
        *out = i == 0 ? NULL : made(json_object_new_boolean(i == 2));
        return true;
    }
    return fail(r, "a value is needed here");
}

static bool read_value(struct reader *r, node **out) {
    skip_blanks(r);
    int c = peek(r);
    bool ok;
    str text;
    if (c == '{' || c == '[')
        ok = read_nested(r, out);
    else if (c == '"')
        ok = read_text(r, &text) && (*out = new_string(text));
    else if (c == '-' || (c >= '0' && c <= '9'))
        ok = read_number(r, out);
    else
        ok = read_literal(r, out);
    if (ok)
        skip_blanks(r);
    return ok;
}

json *json_parse(str text, struct err *err) {
    struct reader r = {.text = text, .err = err};
    node *root = NULL;
    buf_init(&r.piece, text.n);
    bool ok = read_value(&r, &root);
    buf_release(&r.piece);
    if (!ok)
        return NULL;
    if (r.at < text.n) {
        fail(&r, "more text after the document");
        json_object_put(root);
        return NULL;
    }
    if (!root)
        err_set(err, ERR_INPUT, "JSON: the document is null");
    return outer(root);
}
