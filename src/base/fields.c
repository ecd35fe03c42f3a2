#include "base/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A pair of a map: whatever it is called, a name and then an integer. */
struct pair {
    str name;
    int64_t value;
};

static const void *member(const void *of, size_t at) {
    return (const char *)of + at;
}

static void *member_of(void *of, size_t at) {
    return (char *)of + at;
}

static void *pointer_at(const void *at) {
    void *p;
    memcpy(&p, at, sizeof p);
    return p;
}

static void *pointer_make(const struct field_row *f, void *at, struct arena *a) {
    void *p = arena_alloc(a, f->size, _Alignof(max_align_t));
    memcpy(at, &p, sizeof p);
    return p;
}

/* The items of a list or map, and how many there are. */
static char *list_of(const struct field_row *f, const void *from, size_t *n) {
    memcpy(n, member(from, f->n), sizeof *n);
    return pointer_at(member(from, f->at));
}

static char *list_make(const struct field_row *f, void *to, size_t n, struct arena *a) {
    char *items = arena_array_bytes(a, n, f->size, _Alignof(max_align_t));
    memcpy(member_of(to, f->at), &items, sizeof items);
    memcpy(member_of(to, f->n), &n, sizeof n);
    return items;
}

/* ---- writing ---- */

static int64_t integer_at(const struct field_row *f, const void *at) {
    if (f->size == sizeof(uint32_t))
        return f->least < 0 ? *(const int32_t *)at : (int64_t) * (const uint32_t *)at;
    return *(const int64_t *)at;
}

static void write_i64(int64_t v, struct buf *out) {
    char text[24], *at = text + sizeof text;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        *--at = '-';
    buf_put(out, at, (size_t)(text + sizeof text - at));
}

static void write_value(const struct field_row *f, const void *at, struct buf *out) {
    char text[24];
    switch (f->kind) {
    case FIELD_FLAG:
        buf_puts(out, *(const bool *)at ? S("true") : S("false"));
        break;
    case FIELD_INT:
        write_i64(integer_at(f, at), out);
        break;
    case FIELD_REAL:
        json_write_f64(*(const double *)at, out);
        break;
    case FIELD_SEED:
        snprintf(text, sizeof text, "\"%" PRIu64 "\"", *(const uint64_t *)at);
        buf_puts(out, str_view(text));
        break;
    case FIELD_TEXT:
        json_write_text(*(const str *)at, out);
        break;
    case FIELD_CHARS:
        json_write_text(str_view(at), out);
        break;
    case FIELD_NAME:
        json_write_text(str_view(f->names->name(*(const unsigned *)at)), out);
        break;
    case FIELD_STRUCT:
        fields_write(f->of, at, out);
        break;
    }
}

static void write_items(const struct field_row *f, const char *items, size_t n, struct buf *out) {
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(out, ',');
        write_value(f, items + i * f->size, out);
    }
    buf_putc(out, ']');
}

static void write_map(const struct pair *pairs, size_t n, struct buf *out) {
    buf_putc(out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(out, ',');
        json_write_text(pairs[i].name, out);
        buf_putc(out, ':');
        write_i64(pairs[i].value, out);
    }
    buf_putc(out, '}');
}

static bool is_there(const struct field_row *f, const void *from) {
    const void *at = member(from, f->at);
    size_t n = 1;
    if (f->form == FORM_MAYBE && f->kind == FIELD_TEXT)
        return ((const str *)at)->p != NULL;
    if (f->form == FORM_MAYBE)
        return *(const bool *)member(from, f->has);
    if (f->form == FORM_ZERO)
        return integer_at(f, at) != 0;
    if (f->form == FORM_POINTER)
        return pointer_at(at) != NULL;
    if (f->form == FORM_SOME)
        list_of(f, from, &n);
    return n > 0;
}

static void write_field(const struct field_row *f, const void *from, struct buf *out) {
    const void *at = member(from, f->at);
    size_t n;
    const char *items;
    switch (f->form) {
    case FORM_ONE:
    case FORM_ZERO:
    case FORM_MAYBE:
        write_value(f, at, out);
        break;
    case FORM_POINTER:
        fields_write(f->of, pointer_at(at), out);
        break;
    case FORM_FIXED:
        write_items(f, at, f->most, out);
        break;
    case FORM_LIST:
    case FORM_OPEN:
    case FORM_SOME:
        items = list_of(f, from, &n);
        write_items(f, items, n, out);
        break;
    case FORM_MAP:
        items = list_of(f, from, &n);
        write_map((const struct pair *)(const void *)items, n, out);
        break;
    }
}

/* A key is a member's name: nothing in it is escaped. */
static void write_key(const char *key, struct buf *out) {
    buf_putc(out, '"');
    buf_put(out, key, strlen(key));
    buf_put(out, "\":", 2);
}

void fields_write(const struct fields *of, const void *from, struct buf *out) {
    size_t n, written = 0;
    const struct field_row *table = of->table(&n);
    buf_putc(out, of->as_array ? '[' : '{');
    for (size_t i = 0; i < n; i++) {
        if (!is_there(&table[i], from))
            continue;
        if (written++)
            buf_putc(out, ',');
        if (!of->as_array)
            write_key(table[i].key, out);
        write_field(&table[i], from, out);
    }
    buf_putc(out, of->as_array ? ']' : '}');
}

json *fields_to_json(const struct fields *of, const void *from) {
    struct buf text;
    struct err err;
    buf_init(&text, SIZE_MAX / 2);
    fields_write(of, from, &text);
    json *j = json_parse(buf_str(&text), &err);
    BUG_IF(!j);
    buf_release(&text);
    return j;
}

/* ---- reading ---- */

struct reading {
    struct arena *a;
    bool open; /* what is absent is 0 */
};

static bool struct_from_json(const struct fields *of, const json *j, struct reading r, void *to,
                             struct err *err);

static bool integer_from(const struct field_row *f, const json *j, void *to, struct err *err) {
    int64_t v;
    if (!json_to_i64(j, &v))
        return err_set(err, ERR_INPUT, "an integer is needed");
    if (v < f->least || v > f->largest)
        return err_set(err, ERR_INPUT, "%" PRId64 " is not from %" PRId64 " to %" PRId64, v,
                       f->least, f->largest);
    if (f->size == sizeof(uint32_t))
        *(uint32_t *)to = (uint32_t)v;
    else
        *(int64_t *)to = v;
    return true;
}

static bool name_from(const struct field_names *names, const json *j, unsigned *to,
                      struct err *err) {
    str name;
    if (!json_to_str(j, &name))
        return err_set(err, ERR_INPUT, "a name is needed");
    for (*to = 0; *to < names->n; ++*to)
        if (str_is(name, names->name(*to)))
            return true;
    return err_set(err, ERR_INPUT, "'%.*s' is unknown", STR_ARG(str_cut(name, 0, 64)));
}

static bool value_from_json(const struct field_row *f, const json *j, struct reading r, void *to,
                            struct err *err) {
    str text;
    switch (f->kind) {
    case FIELD_FLAG:
        return json_to_bool(j, to) || err_set(err, ERR_INPUT, "true or false is needed");
    case FIELD_INT:
        return integer_from(f, j, to, err);
    case FIELD_REAL:
        *(double *)to = NAN;
        return !j || json_to_f64(j, to) || err_set(err, ERR_INPUT, "a number is needed");
    case FIELD_SEED:
        return (json_to_str(j, &text) && str_to_u64(text, to)) ||
               err_set(err, ERR_INPUT, "64 bits in decimal are needed");
    case FIELD_TEXT:
        if (!json_to_str(j, &text))
            return err_set(err, ERR_INPUT, "a text is needed");
        *(str *)to = arena_str(r.a, text);
        return true;
    case FIELD_CHARS:
        if (!json_to_str(j, &text) || text.n >= f->size)
            return err_set(err, ERR_INPUT, "a text of less than %zu bytes is needed", f->size);
        memcpy(to, text.p, text.n);
        return true;
    case FIELD_NAME:
        return name_from(f->names, j, to, err);
    case FIELD_STRUCT:
        return struct_from_json(f->of, j, r, to, err);
    }
    return false;
}

static bool items_from_json(const struct field_row *f, const json *list, struct reading r,
                            char *items, struct err *err) {
    for (size_t i = 0; i < json_len(list); i++)
        if (!value_from_json(f, json_at(list, i), r, items + i * f->size, err))
            return err_wrap(err, "%zu", i);
    return true;
}

struct map_reader {
    struct arena *a;
    struct pair *pairs;
    size_t n;
    bool bad;
};

static void read_pair(void *ctx, const char *key, const json *value) {
    struct map_reader *r = ctx;
    r->pairs[r->n].name = arena_str(r->a, str_view(key));
    r->bad |= !json_to_i64(value, &r->pairs[r->n++].value);
}

static bool map_from_json(const struct field_row *f, const json *j, struct reading r, void *to,
                          struct err *err) {
    if (!json_is_object(j) || json_len(j) > f->most)
        return err_set(err, ERR_INPUT, "an object of at most %zu members is needed", f->most);
    struct map_reader m = {.a = r.a};
    m.pairs = (struct pair *)(void *)list_make(f, to, json_len(j), r.a);
    json_each(j, read_pair, &m);
    return !m.bad || err_set(err, ERR_INPUT, "an integer is needed for every name");
}

static bool list_from_json(const struct field_row *f, const json *j, struct reading r, void *to,
                           struct err *err) {
    bool fixed = f->form == FORM_FIXED;
    if (!j && (f->form == FORM_SOME || f->form == FORM_OPEN))
        return true;
    if (!json_is_array(j) || (fixed ? json_len(j) != f->most : json_len(j) > f->most))
        return err_set(err, ERR_INPUT, "a list of %s%zu is needed", fixed ? "" : "at most ",
                       f->most);
    char *items = fixed ? member_of(to, f->at) : list_make(f, to, json_len(j), r.a);
    return items_from_json(f, j, r, items, err);
}

static bool field_from_json(const struct field_row *f, const json *j, struct reading r, void *to,
                            struct err *err) {
    void *at = member_of(to, f->at);
    bool is_null = f->form == FORM_ONE && f->kind == FIELD_REAL; /* which may be what it is */
    if (!j && r.open && f->kind != FIELD_NAME && !is_null)
        return true;
    switch (f->form) {
    case FORM_MAYBE:
        if (j && f->kind != FIELD_TEXT)
            *(bool *)member_of(to, f->has) = true;
        return !j || value_from_json(f, j, r, at, err);
    case FORM_ZERO:
        return !j || value_from_json(f, j, r, at, err);
    case FORM_POINTER:
        return !j || value_from_json(f, j, r, pointer_make(f, at, r.a), err);
    case FORM_FIXED:
    case FORM_LIST:
    case FORM_OPEN:
    case FORM_SOME:
        return list_from_json(f, j, r, to, err);
    case FORM_MAP:
        return map_from_json(f, j, r, to, err);
    case FORM_ONE:
        return (!j && f->kind == FIELD_FLAG) || value_from_json(f, j, r, at, err);
    }
    return false;
}

static bool struct_from_json(const struct fields *of, const json *j, struct reading r, void *to,
                             struct err *err) {
    size_t n;
    const struct field_row *table = of->table(&n);
    memset(to, 0, of->size);
    r.open |= of->open;
    if (of->as_array ? !json_is_array(j) : !json_is_object(j))
        return err_set(err, ERR_INPUT, "%s is needed", of->as_array ? "a list" : "an object");
    for (size_t i = 0; i < n; i++) {
        const json *value = of->as_array ? json_at(j, i) : json_get(j, table[i].key);
        if (!field_from_json(&table[i], value, r, to, err))
            return err_wrap(err, "%s", table[i].key);
    }
    return true;
}

bool fields_from_json(const struct fields *of, const json *j, struct arena *a, void *to,
                      struct err *err) {
    return struct_from_json(of, j, (struct reading){.a = a}, to, err);
}

/* ---- copying ---- */

static void copy_inside(const struct field_row *f, struct arena *a, void *at) {
    if (f->kind == FIELD_TEXT && ((str *)at)->p)
        *(str *)at = arena_str(a, *(str *)at);
    else if (f->kind == FIELD_STRUCT)
        fields_copy(f->of, at, a, at);
}

static void copy_list(const struct field_row *f, const void *from, struct arena *a, void *to) {
    size_t n;
    const char *items = list_of(f, from, &n);
    char *copy = list_make(f, to, n, a);
    if (n)
        memcpy(copy, items, n * f->size);
    for (size_t i = 0; i < n && f->form == FORM_MAP; i++) {
        struct pair *p = (struct pair *)(void *)(copy + i * f->size);
        p->name = arena_str(a, p->name);
    }
    for (size_t i = 0; i < n && f->form != FORM_MAP; i++)
        copy_inside(f, a, copy + i * f->size);
}

/* In place where to is from: what it refers to becomes its own. */
void fields_copy(const struct fields *of, const void *from, struct arena *a, void *to) {
    size_t n;
    const struct field_row *table = of->table(&n);
    memmove(to, from, of->size);
    for (size_t i = 0; i < n; i++) {
        const struct field_row *f = &table[i];
        void *at = member_of(to, f->at);
        if (f->form >= FORM_LIST) {
            copy_list(f, from, a, to);
        } else if (f->form == FORM_POINTER && pointer_at(at)) {
            const void *one = pointer_at(at);
            fields_copy(f->of, one, a, pointer_make(f, at, a));
        } else if (f->form != FORM_POINTER && f->form != FORM_FIXED) {
            copy_inside(f, a, at);
        }
    }
}
