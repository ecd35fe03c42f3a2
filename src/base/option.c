/* Options: the command line, then the environment, then the file, each value checked where it
 * stands and kept unless a higher source has spoken. Once --help is seen nothing else matters. */
#include "base/option.h"

#include "base/file.h"
#include "base/near.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

static size_t option_find(const struct option_set *set, size_t command, str name);

/* ---- the kinds of options: what text each accepts, what it becomes, and the getters ----
 *
 * A name that is not in the table, or is asked for as another kind, is our own bug. */

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

/* A list from this source begins, empty. */
static void option_take_none(struct options *o, size_t i, enum option_source from) {
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

/* Checks a value by the kind of option i and keeps it unless a higher source has spoken. The error
 * says only what is wrong; the caller adds where it stands. A list takes one more element. */
static bool option_take(struct options *o, size_t i, enum option_source from, str value,
                        struct err *err) {
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

/* The same, with a list's elements separated by commas. */
static bool option_take_split(struct options *o, size_t i, enum option_source from, str value,
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

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* ---- names ---- */

static bool option_of(const struct option_def *def, size_t command) {
    return command == OPTION_ANY_COMMAND || (command < 64 && (def->commands >> command & 1));
}

/* Index into set->defs, or set->ndefs. */
static size_t option_find(const struct option_set *set, size_t command, str name) {
    size_t i = 0;
    while (i < set->ndefs &&
           !(option_of(&set->defs[i], command) && str_is(name, set->defs[i].name)))
        i++;
    return i;
}

/* The name most like this one, or NULL where none is near. */
static const char *option_nearest(const struct option_set *set, size_t command, str name) {
    struct near near = near_begin(name);
    for (size_t i = 0; i < set->ndefs; i++)
        if (option_of(&set->defs[i], command))
            near_try(&near, str_view(set->defs[i].name));
    return near.best.p; /* the whole of a name of the table */
}

const char *options_nearest_command(const struct option_set *set, const char *word) {
    struct near near = near_begin(str_view(word));
    for (size_t i = 0; i < set->ncommands; i++)
        near_try(&near, str_view(set->commands[i].name));
    return near.best.p;
}

/* CUTEPILOT_COMPILE_JOBS */
static const char *option_env_name(const struct option_set *set, const struct option_def *def,
                                   char space[2 * OPTION_NAME_MAX]) {
    int n = snprintf(space, 2 * OPTION_NAME_MAX, "%s_%s", set->program, def->name);
    BUG_IF(n < 0 || n >= 2 * OPTION_NAME_MAX);
    for (char *p = space; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p == '-' ? '_' : *p;
    return space;
}

/* ---- flags ---- */

struct cursor {
    int argc, at; /* at: the next one */
    char *const *argv;
};

static const struct option_command *command_of(const struct options *o) {
    return &o->set->commands[o->command];
}

static bool unknown_flag(const struct options *o, str name, struct err *err) {
    const struct option_set *set = o->set;
    const char *near = option_nearest(set, o->command, name);
    if (option_find(set, OPTION_ANY_COMMAND, name) < set->ndefs)
        return err_set(err, ERR_INPUT, "--%.*s is not an option of '%s'; see %s %s --help",
                       STR_ARG(name), command_of(o)->name, set->program, command_of(o)->name);
    if (near)
        return err_set(err, ERR_INPUT, "unknown option --%.*s; did you mean --%s?", STR_ARG(name),
                       near);
    return err_set(err, ERR_INPUT, "unknown option --%.*s; see %s %s --help", STR_ARG(name),
                   set->program, command_of(o)->name);
}

/* inline_value.p is NULL where none was attached. */
static bool take_flag(struct options *o, size_t i, str inline_value, struct cursor *c,
                      struct err *err) {
    const struct option_def *d = &o->set->defs[i];
    str value = inline_value;
    if (!value.p && d->kind == OPTION_BOOL)
        value = S("yes");
    if (!value.p) {
        if (c->at == c->argc)
            return err_set(err, ERR_INPUT, "--%s needs a value%s%s", d->name,
                           d->value_name ? ": " : "", d->value_name ? d->value_name : "");
        value = str_view(c->argv[c->at++]);
    }
    return option_take(o, i, FROM_FLAG, value, err) || err_wrap(err, "--%s", d->name);
}

static bool take_long(struct options *o, str text, struct cursor *c, struct err *err) {
    size_t eq = str_find(text, S("="));
    str name = str_cut(text, 0, eq);
    str value = eq < text.n ? str_from(text, eq + 1) : (str){NULL, 0};
    size_t i = option_find(o->set, o->command, name);
    if (i < o->set->ndefs)
        return take_flag(o, i, value, c, err);
    if (str_is(name, "help") && !value.p)
        return o->help = true;
    if (str_starts(name, S("no-"))) {
        i = option_find(o->set, o->command, str_from(name, 3));
        if (i < o->set->ndefs && o->set->defs[i].kind == OPTION_BOOL) {
            if (value.p)
                return err_set(err, ERR_INPUT, "--%.*s takes no value", STR_ARG(name));
            return option_take(o, i, FROM_FLAG, S("no"), err);
        }
    }
    return unknown_flag(o, name, err);
}

static bool take_short(struct options *o, const char *text, struct cursor *c, struct err *err) {
    const struct option_set *set = o->set;
    for (size_t i = 0; i < set->ndefs; i++) {
        const struct option_def *d = &set->defs[i];
        if (!d->letter || d->letter != text[0] || !option_of(d, o->command))
            continue;
        if (!text[1])
            return take_flag(o, i, (str){NULL, 0}, c, err);
        if (d->kind == OPTION_BOOL)
            return err_set(err, ERR_INPUT, "-%c takes no value; say --%s=no to switch it off",
                           d->letter, d->name);
        return take_flag(o, i, str_view(text + 1), c, err);
    }
    if (strcmp(text, "h") == 0)
        return o->help = true;
    return err_set(err, ERR_INPUT, "unknown option -%s; see %s %s --help", text, set->program,
                   command_of(o)->name);
}

static bool read_flags(struct options *o, int argc, char *const *argv, struct err *err) {
    struct cursor c = {argc, 0, argv};
    bool only_arguments = false;
    o->args = arena_array(o->arena, char *, (size_t)argc + 1);
    while (c.at < argc && !o->help) {
        char *arg = argv[c.at++];
        bool ok = true;
        if (only_arguments || arg[0] != '-' || !arg[1])
            o->args[o->nargs++] = arg;
        else if (strcmp(arg, "--") == 0)
            only_arguments = true;
        else if (arg[1] == '-')
            ok = take_long(o, str_view(arg + 2), &c, err);
        else
            ok = take_short(o, arg + 1, &c, err);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- the other sources ---- */

static const char *env_get(char *const *env, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return env[i] + n + 1;
    return NULL;
}

static bool read_env(struct options *o, char *const *env, struct err *err) {
    char name[2 * OPTION_NAME_MAX];
    for (size_t i = 0; i < o->set->ndefs; i++) {
        if (!option_of(&o->set->defs[i], o->command))
            continue;
        const char *value = env_get(env, option_env_name(o->set, &o->set->defs[i], name));
        if (value && *value && !option_take_split(o, i, FROM_ENV, str_view(value), err))
            return err_wrap(err, "%s", name);
    }
    return true;
}

static bool read_config(struct options *o, const char *path, struct err *err) {
    str text;
    if (file_read(path, CONFIG_BYTES_MAX, o->arena, &text, err))
        return options_read_yaml(o, str_view(path), text, err);
    err->kind = ERR_INPUT; /* it was named, so it should be there */
    return err_wrap(err, "configuration file");
}

static bool check_args(const struct options *o, struct err *err) {
    const struct option_command *c = command_of(o);
    if (o->nargs < (size_t)c->min_args)
        return err_set(err, ERR_INPUT, "'%s' needs %s; see %s %s --help", c->name, c->arguments,
                       o->set->program, c->name);
    if (c->max_args >= 0 && o->nargs > (size_t)c->max_args)
        return err_set(err, ERR_INPUT, "'%s' takes no argument '%s'; see %s %s --help", c->name,
                       o->args[c->max_args], o->set->program, c->name);
    return true;
}

bool options_parse(const struct option_set *set, size_t command, int argc, char *const *argv,
                   char *const *env, const char *config_file, struct arena *a, struct options **out,
                   struct err *err) {
    BUG_IF(command >= set->ncommands || argc < 0);
    struct options *o = options_new(set, command, a);
    *out = o;
    return read_flags(o, argc, argv, err) &&
           (o->help || (check_args(o, err) && read_env(o, env, err) &&
                        (!config_file || read_config(o, config_file, err))));
}

/* ---- the configuration file: one YAML mapping of option names to scalars or lists of them ----
 *
 * It serves all commands, so the options of every command are known here. libyaml's events are read
 * as they come; nothing nested is ever built. */

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; always initialised */
    str file, text;
    struct options *o;
    bool *seen; /* one for each option */
    struct err *err;
};

/* libyaml counts characters, we count bytes. */
static size_t byte_offset(str text, size_t chars) {
    size_t at = str_starts(text, S("\xef\xbb\xbf")) ? 3 : 0;
    for (; chars && at < text.n; chars--) {
        at++;
        while (at < text.n && (text.p[at] & 0xc0) == 0x80)
            at++;
    }
    return at;
}

static size_t event_bytes(const struct reader *r, size_t *at) {
    *at = byte_offset(r->text, r->event.start_mark.index);
    size_t end = byte_offset(r->text, r->event.end_mark.index);
    return end > *at ? end - *at : 1;
}

static bool fail(struct reader *r, const char *hint, const char *what) {
    size_t at, n = event_bytes(r, &at);
    return err_at(r->err, r->file, r->text, at, n, hint, "%s", what);
}

static bool fail_parser(struct reader *r) {
    const yaml_parser_t *p = &r->parser;
    size_t at = p->error == YAML_READER_ERROR ? p->problem_offset
                                              : byte_offset(r->text, p->problem_mark.index);
    return err_at(r->err, r->file, r->text, at, 1, NULL, "%s%s%s",
                  p->context ? p->context : "not YAML", p->problem ? ": " : "",
                  p->problem ? p->problem : "");
}

static bool next(struct reader *r) {
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return true;
    memset(&r->event, 0, sizeof r->event);
    return fail_parser(r);
}

static str scalar(const struct reader *r) {
    return (str){(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
}

static bool is_null(const struct reader *r) {
    str s = scalar(r);
    return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (s.n == 0 || str_is(s, "~") || str_is(s, "null"));
}

/* Puts the place before what option_take said. */
static bool fail_value(struct reader *r, size_t i) {
    char what[512];
    snprintf(what, sizeof what, "%s: %.400s", r->o->set->defs[i].name, r->err->text);
    return fail(r, NULL, what);
}

static bool read_sequence(struct reader *r, size_t i) {
    if (r->o->set->defs[i].kind != OPTION_LIST)
        return fail(r, NULL, "this option takes one value, not a list");
    option_take_none(r->o, i, FROM_FILE);
    while (next(r)) {
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return true;
        if (r->event.type != YAML_SCALAR_EVENT)
            return fail(r, NULL, "expects a plain value here");
        if (!option_take(r->o, i, FROM_FILE, scalar(r), r->err))
            return fail_value(r, i);
    }
    return false;
}

static bool read_value(struct reader *r, size_t i) {
    if (r->event.type == YAML_SEQUENCE_START_EVENT)
        return read_sequence(r, i);
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail(r, NULL, "expects a value or a list of values here");
    return is_null(r) || option_take_split(r->o, i, FROM_FILE, scalar(r), r->err) ||
           fail_value(r, i);
}

/* The current event is a key. */
static bool read_entry(struct reader *r) {
    const struct option_set *set = r->o->set;
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail(r, NULL, "expects the name of an option");
    str key = scalar(r);
    size_t i = option_find(set, OPTION_ANY_COMMAND, key);
    if (i == set->ndefs) {
        const char *near = option_nearest(set, OPTION_ANY_COMMAND, key);
        char hint[OPTION_NAME_MAX + 32];
        snprintf(hint, sizeof hint, "did you mean '%s'?", near ? near : "");
        return fail(r, near ? hint : NULL, "no option has this name");
    }
    if (r->seen[i])
        return fail(r, NULL, "this option is set twice");
    r->seen[i] = true;
    return next(r) && read_value(r, i);
}

static bool read_document(struct reader *r) {
    if (!next(r))
        return false;
    if (r->event.type == YAML_SCALAR_EVENT && is_null(r))
        return next(r); /* nothing but comments */
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail(r, NULL, "expects lines of the form 'name: value'");
    while (next(r)) {
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return next(r);
        if (!read_entry(r))
            return false;
    }
    return false;
}

static bool read_stream(struct reader *r) {
    if (!next(r) || !next(r)) /* stream start, document start */
        return false;
    if (r->event.type == YAML_STREAM_END_EVENT)
        return true;
    if (!read_document(r) || !next(r)) /* read_document ends on the document's end */
        return false;
    return r->event.type == YAML_STREAM_END_EVENT || fail(r, NULL, "expects a single document");
}

bool options_read_yaml(struct options *o, str file, str text, struct err *err) {
    struct reader r = {.file = file, .text = text, .o = o, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_ENV, "out of memory");
    r.seen = arena_array(o->arena, bool, o->set->ndefs + 1);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    bool ok = read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return ok;
}

/* ---- help, man page and completion, all from the one list of options ----
 *
 * Nothing here prints: the text goes to a buf. Lines are wrapped at 80 columns; a line of a
 * command's detail that begins with a blank is an example and stays as it is. */

enum { COLUMNS = 80, LEFT_MAX = 28 };

/* ---- wrapping ---- */

static size_t columns(str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += (s.p[i] & 0xc0) != 0x80; /* UTF-8: one for each first byte */
    return n;
}

static void put_blanks(struct buf *out, size_t n) {
    buf_printf(out, "%*s", (int)n, "");
}

/* Words of `text` from column `at` on, further lines indented; ends the line. */
static void put_wrapped(struct buf *out, size_t at, size_t indent, str text) {
    str rest = text, word;
    bool first = true;
    while (str_word(&rest, ' ', &word)) {
        if (!word.n)
            continue;
        size_t width = columns(word);
        if (!first && at + 1 + width > COLUMNS) {
            buf_putc(out, '\n');
            put_blanks(out, indent);
            at = indent;
        } else if (!first) {
            buf_putc(out, ' ');
            at++;
        }
        buf_puts(out, word);
        at += width;
        first = false;
    }
    buf_putc(out, '\n');
}

static void put_detail(struct buf *out, const char *detail) {
    str rest = str_view(detail), line;
    while (str_line(&rest, &line)) {
        if (!line.n || line.p[0] == ' ') {
            buf_puts(out, line);
            buf_putc(out, '\n');
        } else {
            put_wrapped(out, 0, 0, line);
        }
    }
}

/* A term at the left, its explanation in a column at the right. */
static void put_entry(struct buf *out, str left, size_t left_width, str text) {
    size_t at = 2 + columns(left), indent = 2 + left_width + 2;
    buf_puts(out, S("  "));
    buf_puts(out, left);
    if (at + 2 > indent) {
        buf_putc(out, '\n');
        at = 0;
    }
    put_blanks(out, indent - at);
    put_wrapped(out, indent, indent, text);
}

/* ---- one option in words ---- */

static const char *value_name(const struct option_def *d) {
    static const char *const names[] = {
        [OPTION_BOOL] = "yes|no",   [OPTION_INT] = "N",       [OPTION_TEXT] = "TEXT",
        [OPTION_PATH] = "PATH",     [OPTION_CHOICE] = "NAME", [OPTION_LIST] = "TEXT",
        [OPTION_BUDGET] = "BUDGET",
    };
    return d->value_name ? d->value_name : names[d->kind];
}

static void put_flag(struct buf *out, const struct option_def *d) {
    if (d->letter)
        buf_printf(out, "-%c, ", d->letter);
    else
        buf_puts(out, S("    "));
    if (d->kind == OPTION_BOOL)
        buf_printf(out, "--[no-]%s", d->name);
    else
        buf_printf(out, "--%s %s", d->name, value_name(d));
}

static void put_note(struct buf *out, bool *any, const char *label, const char *text) {
    buf_printf(out, "%s%s%s", *any ? "; " : " (", label, text);
    *any = true;
}

static void put_choices(struct buf *out, bool *any, const char *choices) {
    str rest = str_view(choices), word;
    put_note(out, any, "one of ", "");
    for (bool first = true; str_word(&rest, '|', &word); first = false) {
        buf_puts(out, first ? S("") : S(", "));
        buf_puts(out, word);
    }
}

static void put_range(struct buf *out, bool *any, const struct option_def *d) {
    if (d->min == 0 && d->max == 0)
        return;
    put_note(out, any, "", "");
    if (d->max == INT64_MAX)
        buf_printf(out, "at least %lld", (long long)d->min);
    else
        buf_printf(out, "%lld to %lld", (long long)d->min, (long long)d->max);
}

/* "Compilers that run at once (1 to 64; default: 4)." */
static void put_meaning(struct buf *out, const struct option_def *d) {
    str help = str_trim(str_view(d->help));
    bool any = false;
    if (help.n && help.p[help.n - 1] == '.')
        help.n--;
    buf_puts(out, help);
    if (d->kind == OPTION_CHOICE)
        put_choices(out, &any, d->choices);
    if (d->kind == OPTION_INT)
        put_range(out, &any, d);
    if (d->kind == OPTION_LIST)
        put_note(out, &any, "may be repeated", "");
    if (d->kind == OPTION_BUDGET)
        put_note(out, &any, "such as 60s, 5m, 1h, 200c or 60s,200c", "");
    if (d->fallback && d->fallback[0])
        put_note(out, &any, "default: ", d->fallback);
    buf_puts(out, any ? S(").") : S("."));
}

/* ---- help ---- */

static void put_sources(const struct option_set *set, const struct option_def *example,
                        struct buf *out) {
    char name[2 * OPTION_NAME_MAX];
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text,
               "Every option can also be set in the environment (--%s as %s) and in the YAML "
               "configuration file (as '%s: VALUE'). A flag wins over the environment, the "
               "environment over the file.",
               example->name, option_env_name(set, example, name), example->name);
    put_wrapped(out, 0, 0, buf_str(&text));
    buf_release(&text);
}

static const struct option_def *first_of(const struct option_set *set, size_t command) {
    for (size_t i = 0; i < set->ndefs; i++)
        if (option_of(&set->defs[i], command))
            return &set->defs[i];
    return NULL;
}

static size_t flags_width(const struct option_set *set, size_t command, struct buf *scratch) {
    size_t width = strlen("-h, --help");
    for (size_t i = 0; i < set->ndefs; i++) {
        if (!option_of(&set->defs[i], command))
            continue;
        buf_clear(scratch);
        put_flag(scratch, &set->defs[i]);
        size_t n = columns(buf_str(scratch));
        if (n > width && n <= LEFT_MAX)
            width = n;
    }
    return width;
}

#define ALL_GROUPS UINT_MAX

static bool is_shown(const struct option_set *set, size_t i, size_t command, unsigned group) {
    return option_of(&set->defs[i], command) &&
           (group == ALL_GROUPS || set->defs[i].group == group);
}

static size_t count_shown(const struct option_set *set, size_t command, unsigned group) {
    size_t n = 0;
    for (size_t i = 0; i < set->ndefs; i++)
        n += is_shown(set, i, command, group);
    return n;
}

static void put_group(const struct option_set *set, size_t command, unsigned group, size_t width,
                      struct buf *out) {
    struct buf left, right;
    buf_init(&left, 1024);
    buf_init(&right, 8192);
    for (size_t i = 0; i < set->ndefs; i++) {
        if (!is_shown(set, i, command, group))
            continue;
        buf_clear(&left);
        buf_clear(&right);
        put_flag(&left, &set->defs[i]);
        put_meaning(&right, &set->defs[i]);
        put_entry(out, buf_str(&left), width, buf_str(&right));
    }
    buf_release(&left);
    buf_release(&right);
}

enum { LIST_MOST = 16 }; /* more options than this are shown by groups */

static void put_options(const struct option_set *set, size_t command, struct buf *out) {
    struct buf scratch;
    buf_init(&scratch, 1024);
    size_t width = flags_width(set, command, &scratch);
    buf_release(&scratch);
    if (!set->groups || count_shown(set, command, ALL_GROUPS) <= LIST_MOST) {
        buf_puts(out, S("\nOptions:\n"));
        put_group(set, command, ALL_GROUPS, width, out);
    } else {
        for (unsigned g = 0; g < set->ngroups; g++)
            if (count_shown(set, command, g)) {
                buf_printf(out, "\n%s:\n", set->groups[g]);
                put_group(set, command, g, width, out);
            }
        buf_puts(out, S("\n"));
    }
    put_entry(out, S("-h, --help"), width, S("Print this text."));
}

void options_help(const struct option_set *set, size_t command, struct buf *out) {
    const struct option_command *c = &set->commands[command];
    const struct option_def *example = first_of(set, command);
    buf_printf(out, "Usage: %s %s [OPTION]...%s%s\n\n", set->program, c->name,
               c->arguments[0] ? " " : "", c->arguments);
    put_wrapped(out, 0, 0, str_view(c->summary));
    if (c->detail) {
        buf_putc(out, '\n');
        put_detail(out, c->detail);
    }
    put_options(set, command, out);
    if (example) {
        buf_putc(out, '\n');
        put_sources(set, example, out);
    }
}

static void put_command(struct buf *out, const struct option_command *c) {
    buf_printf(out, "%s%s%s", c->name, c->arguments[0] ? " " : "", c->arguments);
}

static bool begins_with(const struct option_command *c, const char *word) {
    str name = str_view(c->name), first;
    return str_word(&name, ' ', &first) && name.n && str_is(first, word);
}

bool options_group(const struct option_set *set, const char *word) {
    for (size_t i = 0; i < set->ncommands; i++)
        if (begins_with(&set->commands[i], word))
            return true;
    return false;
}

void options_overview(const struct option_set *set, const char *word, struct buf *out) {
    struct buf left;
    size_t width = 0;
    buf_init(&left, 1024);
    for (size_t i = 0; i < set->ncommands; i++) {
        if (word && !begins_with(&set->commands[i], word))
            continue;
        buf_clear(&left);
        put_command(&left, &set->commands[i]);
        size_t n = columns(buf_str(&left));
        if (n > width && n <= LEFT_MAX)
            width = n;
    }
    if (!word)
        buf_printf(out, "%s %s: %s\n\n", set->program, set->version, set->tagline);
    buf_printf(out, "Usage: %s %s%sCOMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n", set->program,
               word ? word : "", word ? " " : "");
    for (size_t i = 0; i < set->ncommands; i++) {
        if (word && !begins_with(&set->commands[i], word))
            continue;
        buf_clear(&left);
        put_command(&left, &set->commands[i]);
        put_entry(out, buf_str(&left), width, str_view(set->commands[i].summary));
    }
    buf_release(&left);
    buf_printf(out, "\n'%s %s%sCOMMAND --help' explains a command and its options.\n", set->program,
               word ? word : "", word ? " " : "");
}

/* ---- man page ---- */

/* Text as text: no request at the start of a line, no escapes, dashes that can be copied. */
static void put_roff(struct buf *out, str s) {
    bool line_start = true;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (line_start && (c == '.' || c == '\''))
            buf_puts(out, S("\\&"));
        if (c == '\\')
            buf_puts(out, S("\\e"));
        else if (c == '-')
            buf_puts(out, S("\\-"));
        else
            buf_putc(out, c);
        line_start = c == '\n';
    }
}

static void put_roff_line(struct buf *out, const char *text) {
    put_roff(out, str_trim(str_view(text)));
    buf_putc(out, '\n');
}

static void man_flag(struct buf *out, const struct option_def *d) {
    buf_puts(out, S(".TP\n"));
    if (d->letter)
        buf_printf(out, "\\fB\\-%c\\fR, ", d->letter);
    buf_puts(out, S("\\fB\\-\\-"));
    if (d->kind == OPTION_BOOL)
        buf_puts(out, S("[no\\-]"));
    put_roff(out, str_view(d->name));
    buf_puts(out, S("\\fR"));
    if (d->kind != OPTION_BOOL) {
        buf_puts(out, S(" \\fI"));
        put_roff(out, str_view(value_name(d)));
        buf_puts(out, S("\\fR"));
    }
    buf_putc(out, '\n');
}

static void man_option(const struct option_set *set, const struct option_def *d, struct buf *out) {
    struct buf text;
    buf_init(&text, 8192);
    put_meaning(&text, d);
    bool any = false;
    for (size_t i = 0; i < set->ncommands; i++)
        if (option_of(d, i)) {
            buf_printf(&text, "%s%s", any ? ", " : "\nCommands: ", set->commands[i].name);
            any = true;
        }
    buf_puts(&text, any ? S(".") : S(""));
    man_flag(out, d);
    put_roff(out, buf_str(&text));
    buf_putc(out, '\n');
    buf_release(&text);
}

static void man_detail(struct buf *out, const char *detail) {
    str rest = str_view(detail), line;
    buf_puts(out, S(".PP\n"));
    while (str_line(&rest, &line)) {
        bool example = line.n && line.p[0] == ' ';
        if (!line.n)
            buf_puts(out, S(".PP\n"));
        if (example)
            buf_puts(out, S(".nf\n"));
        if (line.n) {
            put_roff(out, line);
            buf_putc(out, '\n');
        }
        if (example)
            buf_puts(out, S(".fi\n"));
    }
}

static void man_commands(const struct option_set *set, struct buf *out) {
    buf_puts(out, S(".SH COMMANDS\n"));
    for (size_t i = 0; i < set->ncommands; i++) {
        const struct option_command *c = &set->commands[i];
        buf_puts(out, S(".TP\n\\fB"));
        put_roff(out, str_view(c->name));
        buf_puts(out, S("\\fR \\fI"));
        put_roff(out, str_view(c->arguments));
        buf_puts(out, S("\\fR\n"));
        put_roff_line(out, c->summary);
    }
    for (size_t i = 0; i < set->ncommands; i++) {
        if (!set->commands[i].detail)
            continue;
        buf_puts(out, S(".SS "));
        put_roff_line(out, set->commands[i].name);
        man_detail(out, set->commands[i].detail);
    }
}

static void man_tail(const struct option_set *set, struct buf *out) {
    static const struct {
        int code; /* kinds of errors, and one that is none */
        const char *meaning;
    } exits[] = {
        {ERR_NONE, "Done; for a question, the answer is yes."},
        {ERR_NO, "The answer is no: a rejected kernel, nothing found."},
        {ERR_INPUT, "Bad input or usage."},
        {ERR_ENV, "The environment failed: no GPU, no compiler, a provider that is down."},
        {4, "A signal interrupted a search; the best kernel found by then is written."},
    };
    if (set->ndefs) {
        struct buf text;
        buf_init(&text, 4096);
        put_sources(set, &set->defs[0], &text);
        buf_puts(out, S(".SH ENVIRONMENT AND CONFIGURATION\n"));
        put_roff(out, buf_str(&text));
        buf_release(&text);
    }
    buf_puts(out, S(".SH EXIT STATUS\n"));
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
        buf_printf(out, ".TP\n.B %d\n%s\n", exits[i].code, exits[i].meaning);
}

/* No date: the same sources give the same page. */
void options_man(const struct option_set *set, struct buf *out) {
    buf_printf(out, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n", set->program,
               set->program, set->version);
    buf_printf(out, "%s \\- ", set->program);
    put_roff_line(out, set->tagline);
    buf_printf(out,
               ".SH SYNOPSIS\n.B %s\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]..."
               "\n",
               set->program);
    man_commands(set, out);
    buf_puts(out, S(".SH OPTIONS\n"));
    for (size_t i = 0; i < set->ndefs; i++)
        man_option(set, &set->defs[i], out);
    man_tail(set, out);
}

/* ---- completion for bash: commands of one or two words, their flags, the values of choices ----
 */

static str first_word(const struct option_command *c) {
    str name = str_view(c->name);
    return str_cut(name, 0, str_find(name, S(" ")));
}

static str second_word(const struct option_command *c) {
    str name = str_view(c->name);
    return str_from(name, first_word(c).n + 1);
}

static bool first_of_its_word(const struct option_set *set, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (str_eq(first_word(&set->commands[j]), first_word(&set->commands[i])))
            return false;
    return true;
}

static void put_flags(const struct option_set *set, size_t command, struct buf *out) {
    buf_puts(out, S("words='--help"));
    for (size_t i = 0; i < set->ndefs; i++)
        if (option_of(&set->defs[i], command)) {
            buf_printf(out, " --%s", set->defs[i].name);
            if (set->defs[i].kind == OPTION_BOOL)
                buf_printf(out, " --no-%s", set->defs[i].name);
        }
    buf_puts(out, S("'"));
}

/* The commands that begin with the same word as command i. */
static void put_family(const struct option_set *set, size_t i, struct buf *out) {
    str family = first_word(&set->commands[i]);
    buf_printf(out, "    %.*s)\n", STR_ARG(family));
    buf_puts(out, S("        second='"));
    bool any = false;
    for (size_t j = i; j < set->ncommands; j++) {
        str two = second_word(&set->commands[j]);
        if (str_eq(first_word(&set->commands[j]), family) && two.n) {
            buf_printf(out, "%s%.*s", any ? " " : "", STR_ARG(two));
            any = true;
        }
    }
    buf_puts(out, S("'\n        case \"${COMP_WORDS[2]-}\" in\n"));
    for (int pass = 0; pass < 2; pass++) /* the pattern for all others comes last */
        for (size_t j = i; j < set->ncommands; j++) {
            str two = second_word(&set->commands[j]);
            if (!str_eq(first_word(&set->commands[j]), family) || (pass == 0) != (two.n > 0))
                continue;
            buf_printf(out, "        %.*s) ", STR_ARG(two.n ? two : S("*")));
            put_flags(set, j, out);
            buf_puts(out, S(" ;;\n"));
        }
    buf_puts(out, S("        esac ;;\n"));
}

static void put_values(const struct option_set *set, struct buf *out) {
    buf_puts(out, S("    case $prev in\n"));
    for (size_t i = 0; i < set->ndefs; i++) {
        const struct option_def *d = &set->defs[i];
        if (d->kind == OPTION_BOOL)
            continue;
        buf_printf(out, "    --%s", d->name);
        if (d->letter)
            buf_printf(out, " | -%c", d->letter);
        buf_puts(out, S(") "));
        if (d->kind == OPTION_CHOICE) {
            str rest = str_view(d->choices), word;
            buf_puts(out, S("COMPREPLY=($(compgen -W '"));
            for (bool first = true; str_word(&rest, '|', &word); first = false)
                buf_printf(out, "%s%.*s", first ? "" : " ", STR_ARG(word));
            buf_puts(out, S("' -- \"$cur\")); "));
        }
        buf_puts(out, S("return ;;\n"));
    }
    buf_puts(out, S("    esac\n"));
}

static void completion_bash(const struct option_set *set, struct buf *out) {
    buf_printf(out, "# bash completion for %s\n_%s() {\n", set->program, set->program);
    buf_puts(out, S("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local words='' second=''\n"
                    "    COMPREPLY=()\n"
                    "    if [[ $cur == = ]]; then\n"
                    "        cur=''\n"
                    "    elif [[ $prev == = ]]; then\n"
                    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                    "    fi\n"
                    "    if ((COMP_CWORD == 1)); then\n"
                    "        COMPREPLY=($(compgen -W '"));
    bool any = false;
    for (size_t i = 0; i < set->ncommands; i++)
        if (first_of_its_word(set, i)) {
            buf_printf(out, "%s%.*s", any ? " " : "", STR_ARG(first_word(&set->commands[i])));
            any = true;
        }
    buf_puts(out, S("' -- \"$cur\"))\n        return\n    fi\n"));
    put_values(set, out);
    buf_puts(out, S("    case ${COMP_WORDS[1]} in\n"));
    for (size_t i = 0; i < set->ncommands; i++)
        if (first_of_its_word(set, i))
            put_family(set, i, out);
    buf_puts(out, S("    esac\n"
                    "    if [[ $cur == -* ]]; then\n"
                    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                    "    elif ((COMP_CWORD == 2)) && [[ -n $second ]]; then\n"
                    "        COMPREPLY=($(compgen -W \"$second\" -- \"$cur\"))\n"
                    "    fi\n}\n"));
    buf_printf(out, "complete -o default -F _%s %s\n", set->program, set->program);
}

/* ---- completion for zsh and fish: the same, with what each word means ---- */

/* Text between single quotes of a shell; `also` are further characters that get a backslash. */
static void put_quoted(struct buf *out, const char *text, const char *also) {
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_puts(out, S("'\\''"));
        else if (strchr(also, *p))
            buf_printf(out, "\\%c", *p);
        else
            buf_putc(out, *p);
    }
}

static void put_choice_words(struct buf *out, const struct option_def *d) {
    str rest = str_view(d->choices), word;
    for (bool first = true; str_word(&rest, '|', &word); first = false)
        buf_printf(out, "%s%.*s", first ? "" : " ", STR_ARG(word));
}

/* One form of an option (`--budget=`, `-b+`, `--no-json`) as _arguments of zsh wants it. */
static void put_zsh_form(struct buf *out, const struct option_def *d, const char *before,
                         const char *after) {
    buf_printf(out, " \\\n            '*%s%s[", before, after);
    put_quoted(out, d->help, "[]:\\");
    buf_putc(out, ']');
    if (d->kind != OPTION_BOOL) {
        buf_putc(out, ':');
        put_quoted(out, value_name(d), "[]:\\");
        buf_putc(out, ':');
    }
    if (d->kind == OPTION_PATH)
        buf_puts(out, S("_files"));
    if (d->kind == OPTION_CHOICE) {
        buf_putc(out, '(');
        put_choice_words(out, d);
        buf_putc(out, ')');
    }
    buf_putc(out, '\'');
}

static void put_zsh_option(struct buf *out, const struct option_def *d) {
    char form[OPTION_NAME_MAX + 8];
    bool flag = d->kind == OPTION_BOOL;
    snprintf(form, sizeof form, "--%s", d->name);
    put_zsh_form(out, d, form, flag ? "" : "=");
    snprintf(form, sizeof form, "--no-%s", d->name);
    if (flag)
        put_zsh_form(out, d, form, "");
    snprintf(form, sizeof form, "-%c", d->letter);
    if (d->letter)
        put_zsh_form(out, d, form, flag ? "" : "+");
}

/* A list of the words that commands have at this place, with what they do. */
static void put_zsh_words(const struct option_set *set, str family, struct buf *out) {
    buf_puts(out, S("found=("));
    for (size_t i = 0; i < set->ncommands; i++) {
        const struct option_command *c = &set->commands[i];
        str word = family.n ? second_word(c) : first_word(c);
        if (family.n ? !str_eq(first_word(c), family) || !word.n : !first_of_its_word(set, i))
            continue;
        buf_printf(out, "'%.*s:", STR_ARG(word));
        put_quoted(out, c->summary, "");
        buf_puts(out, S("' "));
    }
    buf_puts(out, S(")"));
}

static void completion_zsh(const struct option_set *set, struct buf *out) {
    buf_printf(out,
               "#compdef %s\n_%s() {\n    local -a found\n    if ((CURRENT == 2)); then\n        ",
               set->program, set->program);
    put_zsh_words(set, (str){0}, out);
    buf_puts(out, S("\n        _describe command found\n        return\n    fi\n"
                    "    local command=$words[2]\n    case $command in\n"));
    for (size_t i = 0; i < set->ncommands; i++) {
        str family = first_word(&set->commands[i]);
        if (!second_word(&set->commands[i]).n || !first_of_its_word(set, i))
            continue;
        buf_printf(out, "    %.*s)\n        if ((CURRENT == 3)); then\n            ",
                   STR_ARG(family));
        put_zsh_words(set, family, out);
        buf_puts(out, S("\n            _describe command found\n            return\n        fi\n"
                        "        command=\"$command $words[3]\"\n        shift words\n"
                        "        ((CURRENT--)) ;;\n"));
    }
    buf_puts(out, S("    esac\n    shift words\n    ((CURRENT--))\n    case $command in\n"));
    for (size_t i = 0; i < set->ncommands; i++) {
        buf_printf(out, "    '%s')\n        _arguments '*--help[explain the command]'",
                   set->commands[i].name);
        for (size_t j = 0; j < set->ndefs; j++)
            if (option_of(&set->defs[j], i))
                put_zsh_option(out, &set->defs[j]);
        buf_puts(out, S(" '*:file:_files' ;;\n"));
    }
    buf_printf(out, "    esac\n}\n_%s \"$@\"\n", set->program);
}

/* The condition that one of the commands with this option was typed. */
static void put_fish_commands(const struct option_set *set, const struct option_def *d,
                              struct buf *out) {
    buf_puts(out, S("-n '__fish_seen_subcommand_from"));
    for (size_t i = 0; i < set->ncommands; i++)
        if (option_of(d, i))
            buf_printf(out, " %.*s", STR_ARG(first_word(&set->commands[i])));
    buf_putc(out, '\'');
}

static void put_fish_option(const struct option_set *set, const struct option_def *d,
                            struct buf *out) {
    int forms = d->kind == OPTION_BOOL ? 2 : 1; /* --name and --no-name */
    for (int no = 0; no < forms; no++) {
        buf_printf(out, "complete -c %s ", set->program);
        put_fish_commands(set, d, out);
        buf_printf(out, " -l %s%s", no ? "no-" : "", d->name);
        if (d->letter && !no)
            buf_printf(out, " -s %c", d->letter);
        if (d->kind == OPTION_CHOICE) {
            buf_puts(out, S(" -x -a '"));
            put_choice_words(out, d);
            buf_putc(out, '\'');
        } else if (d->kind != OPTION_BOOL) {
            buf_puts(out, d->kind == OPTION_PATH ? S(" -r -F") : S(" -x"));
        }
        buf_puts(out, S(" -d '"));
        put_quoted(out, d->help, "\\");
        buf_puts(out, S("'\n"));
    }
}

static void completion_fish(const struct option_set *set, struct buf *out) {
    buf_printf(out, "# fish completion for %s\n", set->program);
    for (size_t i = 0; i < set->ncommands; i++) {
        const struct option_command *c = &set->commands[i];
        str one = first_word(c), two = second_word(c);
        if (first_of_its_word(set, i)) {
            buf_printf(out, "complete -c %s -f -n __fish_use_subcommand -a %.*s -d '", set->program,
                       STR_ARG(one));
            put_quoted(out, c->summary, "\\");
            buf_puts(out, S("'\n"));
        }
        if (two.n) {
            buf_printf(out,
                       "complete -c %s -f -n 'test (count (commandline -opc)) -eq 2; and "
                       "__fish_seen_subcommand_from %.*s' -a %.*s -d '",
                       set->program, STR_ARG(one), STR_ARG(two));
            put_quoted(out, c->summary, "\\");
            buf_puts(out, S("'\n"));
        }
    }
    for (size_t i = 0; i < set->ndefs; i++)
        put_fish_option(set, &set->defs[i], out);
}

bool options_completion(const struct option_set *set, const char *shell, struct buf *out) {
    static const struct {
        const char *shell;
        void (*put)(const struct option_set *, struct buf *);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shell, shells[i].shell)) {
            shells[i].put(set, out);
            return true;
        }
    return false;
}
