/* The configuration file: one YAML mapping of option names to scalars, or sequences of scalars for
 * lists. It serves all commands, so the options of every command are known here. libyaml's events
 * are read as they come; nothing nested is ever built. */
#include "base/option_private.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

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
