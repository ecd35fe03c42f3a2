/* The kinds of options: what text each accepts, what it becomes, and the getters. A name that is
 * not in the table, or is asked for as another kind, is our own bug. */
#include "base/option_private.h"

#include <string.h>

/* ---- checking ---- */

static bool parse_bool(str s, bool *on) {
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (str_is(s, yes[i]) || str_is(s, no[i])) {
            *on = str_is(s, yes[i]);
            return true;
        }
    return false;
}

static bool parse_int(const struct option_def *d, str s, int64_t *n, struct err *err) {
    if (!str_to_i64(s, n))
        return err_set(err, ERR_INPUT, "expects a whole number, not '%.*s'", STR_ARG(s));
    if ((d->min == 0 && d->max == 0) || (*n >= d->min && *n <= d->max))
        return true;
    if (d->max == INT64_MAX)
        return err_set(err, ERR_INPUT, "must be at least %lld, not %.*s", (long long)d->min,
                       STR_ARG(s));
    return err_set(err, ERR_INPUT, "must lie between %lld and %lld, not be %.*s", (long long)d->min,
                   (long long)d->max, STR_ARG(s));
}

static bool parse_choice(const struct option_def *d, str s, struct err *err) {
    str rest = str_view(d->choices), word;
    while (str_word(&rest, '|', &word))
        if (str_eq(word, s))
            return true;
    return err_set(err, ERR_INPUT, "expects one of %s, not '%.*s'", d->choices, STR_ARG(s));
}

/* One clause: a positive number and its unit; each of time and candidates may be given once. */
static bool parse_budget_part(str s, struct budget *b) {
    static const struct {
        char unit;
        uint64_t ms;
    } times[] = {{'s', 1000}, {'m', 60 * 1000}, {'h', 60 * 60 * 1000}};
    uint64_t n;
    if (s.n < 2 || s.p[0] < '0' || s.p[0] > '9' || s.p[1] == 'x' ||
        !str_to_u64(str_cut(s, 0, s.n - 1), &n) || n == 0)
        return false;
    char unit = s.p[s.n - 1];
    if (unit == 'c') {
        bool first = b->candidates == 0;
        b->candidates = n;
        return first;
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].unit == unit && n <= UINT64_MAX / times[i].ms && b->ms == 0) {
            b->ms = n * times[i].ms;
            return true;
        }
    return false;
}

static bool parse_budget(str s, struct budget *b, struct err *err) {
    str rest = s, part;
    bool ok = s.n > 0 && s.p[s.n - 1] != ',';
    *b = (struct budget){0};
    while (ok && str_word(&rest, ',', &part))
        ok = parse_budget_part(part, b);
    return ok || err_set(err, ERR_INPUT,
                         "expects a budget such as 60s, 5m, 1h, 200c (candidates) or 60s,200c, "
                         "not '%.*s'",
                         STR_ARG(s));
}

static bool parse_kind(const struct option_def *d, str s, struct option_value *v, struct err *err) {
    switch (d->kind) {
    case OPTION_BOOL:
        return parse_bool(s, &v->on) ||
               err_set(err, ERR_INPUT, "expects yes or no, not '%.*s'", STR_ARG(s));
    case OPTION_INT:
        return parse_int(d, s, &v->number, err);
    case OPTION_CHOICE:
        return parse_choice(d, s, err);
    case OPTION_BUDGET:
        return parse_budget(s, &v->budget, err);
    case OPTION_PATH:
        return s.n > 0 || err_set(err, ERR_INPUT, "expects a path");
    case OPTION_TEXT:
    case OPTION_LIST:
        return true;
    }
    return false;
}

/* ---- keeping ---- */

void option_take_none(struct options *o, size_t i, enum option_source from) {
    struct option_value *v = &o->values[i];
    if (from > v->from)
        *v = (struct option_value){.from = from};
}

static void list_append(struct options *o, struct option_value *v, const char *text) {
    bool full = (v->nlist & (v->nlist - 1)) == 0; /* room is made at powers of two */
    if (full) {
        const char **more = arena_array(o->arena, const char *, v->nlist ? 2 * v->nlist : 1);
        if (v->nlist)
            memcpy(more, v->list, v->nlist * sizeof *more);
        v->list = more;
    }
    v->list[v->nlist++] = text;
}

bool option_take(struct options *o, size_t i, enum option_source from, str value, struct err *err) {
    const struct option_def *d = &o->set->defs[i];
    struct option_value parsed = {.from = from};
    if (value.n && memchr(value.p, 0, value.n))
        return err_set(err, ERR_INPUT, "contains a NUL byte");
    if (!parse_kind(d, value, &parsed, err))
        return false;
    option_take_none(o, i, from);
    if (o->values[i].from != from)
        return true; /* right, but outranked */
    const char *text = arena_cstr(o->arena, value);
    if (d->kind == OPTION_LIST) {
        list_append(o, &o->values[i], text);
    } else {
        parsed.text = text;
        o->values[i] = parsed;
    }
    return true;
}

bool option_take_split(struct options *o, size_t i, enum option_source from, str value,
                       struct err *err) {
    if (o->set->defs[i].kind != OPTION_LIST)
        return option_take(o, i, from, value, err);
    str rest = value, word;
    option_take_none(o, i, from);
    while (str_word(&rest, ',', &word)) {
        word = str_trim(word);
        if (word.n && !option_take(o, i, from, word, err))
            return false;
    }
    return true;
}

struct options *options_new(const struct option_set *set, size_t command, struct arena *a) {
    struct options *o = arena_new_of(a, struct options);
    *o = (struct options){.set = set, .command = command, .arena = a};
    o->values = arena_array(a, struct option_value, set->ndefs);
    for (size_t i = 0; i < set->ndefs; i++) {
        struct err err;
        const char *fallback = set->defs[i].fallback;
        BUG_IF(fallback && !option_take_split(o, i, FROM_DEFAULT, str_view(fallback), &err));
    }
    return o;
}

/* ---- getters ---- */

static const struct option_value *value_of(const struct options *o, const char *name,
                                           enum option_kind kind) {
    size_t i = option_find(o->set, OPTION_ANY_COMMAND, str_view(name));
    BUG_IF(i == o->set->ndefs);
    BUG_IF(o->set->defs[i].kind != kind);
    return &o->values[i];
}

bool option_bool(const struct options *o, const char *name) {
    return value_of(o, name, OPTION_BOOL)->on;
}

int64_t option_int(const struct options *o, const char *name) {
    return value_of(o, name, OPTION_INT)->number;
}

struct budget option_budget(const struct options *o, const char *name) {
    return value_of(o, name, OPTION_BUDGET)->budget;
}

size_t option_list(const struct options *o, const char *name, const char *const **values) {
    const struct option_value *v = value_of(o, name, OPTION_LIST);
    *values = v->list;
    return v->nlist;
}

/* Of every kind but a list: what was given, as it was given. */
const char *option_text(const struct options *o, const char *name) {
    size_t i = option_find(o->set, OPTION_ANY_COMMAND, str_view(name));
    BUG_IF(i == o->set->ndefs || o->set->defs[i].kind == OPTION_LIST);
    return o->values[i].text;
}

bool option_given(const struct options *o, const char *name) {
    size_t i = option_find(o->set, OPTION_ANY_COMMAND, str_view(name));
    BUG_IF(i == o->set->ndefs);
    return o->values[i].from > FROM_DEFAULT;
}

size_t options_args(const struct options *o, char *const **args) {
    *args = o->args;
    return o->nargs;
}

bool options_help_asked(const struct options *o) {
    return o->help;
}
