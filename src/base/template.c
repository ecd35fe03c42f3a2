/* One pass over the template. A slot's text is copied, never scanned: what a model or a user wrote
 * cannot name another slot. */
#include "base/template.h"

#include <string.h>

enum { DEPTH_MOST = 16 };

/* The slots that a part of the template sees: a row's before those around it. */
struct sight {
    const struct slot *slots;
    size_t n;
    const struct sight *around;
};

struct rendering {
    str name, text;
    struct buf *out;
    struct err *err;
};

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const struct slot *find(const struct sight *s, str name) {
    for (; s; s = s->around)
        for (size_t i = 0; i < s->n; i++)
            if (str_is(name, s->slots[i].name))
                return &s->slots[i];
    return NULL;
}

/* ---- slots in a line ---- */

/* Empty lines stay empty. */
static void put_indented(struct buf *out, str text, str indent) {
    for (size_t i = 0; i < text.n; i++) {
        buf_putc(out, text.p[i]);
        if (text.p[i] == '\n' && i + 1 < text.n && text.p[i + 1] != '\n')
            buf_puts(out, indent);
    }
}

/* The blanks before place `at` when nothing else stands in the line but [at, end). */
static str indentation(str line, size_t at, size_t end) {
    str before = str_cut(line, 0, at), after = str_from(line, end);
    return str_trim(before).n || str_trim(after).n ? S("") : before;
}

static size_t place_in(const struct rendering *r, str line) {
    return (size_t)(line.p - r->text.p);
}

static bool unknown(const struct rendering *r, str where, str name) {
    return err_at(r->err, r->name, r->text, place_in(r, where), where.n, NULL,
                  "unknown slot '%.*s'", STR_ARG(name));
}

/* `at` is the `$` of `${name}`; moves it past the `}`. */
static bool put_slot(struct rendering *r, const struct sight *sight, str line, size_t *at) {
    size_t from = *at + 2, end = from;
    while (end < line.n && is_name_char(line.p[end]))
        end++;
    str name = str_cut(line, from, end - from);
    if (name.n == 0 || end == line.n || line.p[end] != '}')
        return err_at(r->err, r->name, r->text, place_in(r, line) + *at, end - *at,
                      "write $${ for a literal ${", "a slot is ${name}");
    const struct slot *s = find(sight, name);
    if (!s)
        return unknown(r, str_cut(line, *at, end + 1 - *at), name);
    put_indented(r->out, s->text, indentation(line, *at, end + 1));
    *at = end + 1;
    return true;
}

static bool put_line(struct rendering *r, const struct sight *sight, str line) {
    size_t at = 0;
    while (at < line.n) {
        str rest = str_from(line, at);
        size_t plain = str_find(rest, S("$"));
        buf_puts(r->out, str_cut(rest, 0, plain));
        at += plain;
        rest = str_from(rest, plain);
        if (str_starts(rest, S("$${"))) {
            buf_puts(r->out, S("${"));
            at += 3;
        } else if (str_starts(rest, S("${"))) {
            if (!put_slot(r, sight, line, &at))
                return false;
        } else if (rest.n) {
            buf_putc(r->out, '$');
            at++;
        }
    }
    return true;
}

/* ---- lines ---- */

/* The next line with its end. */
static bool next_line(str *rest, str *line) {
    if (rest->n == 0)
        return false;
    size_t end = str_find(*rest, S("\n"));
    *line = str_cut(*rest, 0, end < rest->n ? end + 1 : rest->n);
    *rest = str_from(*rest, line->n);
    return true;
}

/* The words of `//% words`. */
static bool is_directive(str line, str *words) {
    str bare = str_trim(line);
    if (!str_starts(bare, S("//% ")))
        return false;
    *words = str_trim(str_from(bare, 4));
    return true;
}

static bool opens(str words) {
    return str_starts(words, S("if ")) || str_starts(words, S("each "));
}

/* Takes lines off `rest` up to the `//% end` that belongs here: `*body` up to `//% else` or the
 * end, `*other` from there. */
static bool take_block(const struct rendering *r, str words, str *rest, str *body, str *other) {
    str line, inner, all = *rest;
    size_t depth = 1, split = SIZE_MAX;
    while (next_line(rest, &line)) {
        size_t at = (size_t)(line.p - all.p);
        if (!is_directive(line, &inner))
            continue;
        depth += opens(inner);
        if (depth == 1 && str_is(inner, "else"))
            split = at;
        if (!str_is(inner, "end") || --depth)
            continue;
        *body = str_cut(all, 0, split < at ? split : at);
        *other = split < at ? str_cut(all, split, at - split) : S("");
        if (split < at)
            next_line(other, &line); /* the `else` itself */
        return true;
    }
    return err_at(r->err, r->name, r->text, place_in(r, words), words.n, NULL, "no //%% end");
}

static bool put_lines(struct rendering *r, const struct sight *sight, str text, int depth);

static bool put_if(struct rendering *r, const struct sight *sight, str words, str *rest,
                   int depth) {
    str body, other, name = str_trim(str_from(words, 3));
    if (!take_block(r, words, rest, &body, &other))
        return false;
    bool negated = str_starts(name, S("not "));
    if (negated)
        name = str_trim(str_from(name, 4));
    const struct slot *s = find(sight, name);
    if (!s)
        return unknown(r, name, name);
    bool holds = (s->text.n || s->nrows) != negated;
    return put_lines(r, sight, holds ? body : other, depth + 1);
}

static bool put_each(struct rendering *r, const struct sight *sight, str words, str *rest,
                     int depth) {
    str body, other, name = str_trim(str_from(words, 5));
    if (!take_block(r, words, rest, &body, &other))
        return false;
    const struct slot *s = find(sight, name);
    if (!s)
        return unknown(r, name, name);
    for (size_t i = 0; i < s->nrows; i++) {
        struct sight row = {s->rows[i]->at, s->rows[i]->n, sight};
        if (!put_lines(r, &row, body, depth + 1))
            return false;
    }
    return true;
}

static bool put_lines(struct rendering *r, const struct sight *sight, str text, int depth) {
    str line, words;
    if (depth > DEPTH_MOST)
        return err_at(r->err, r->name, r->text, place_in(r, text), 0, NULL,
                      "blocks in blocks, more than %d", DEPTH_MOST);
    while (next_line(&text, &line)) {
        bool ok;
        if (!is_directive(line, &words))
            ok = put_line(r, sight, line);
        else if (str_starts(words, S("if ")))
            ok = put_if(r, sight, words, &text, depth);
        else if (str_starts(words, S("each ")))
            ok = put_each(r, sight, words, &text, depth);
        else
            ok = str_is(words, "library") || err_at(r->err, r->name, r->text, place_in(r, words),
                                                    words.n, NULL, "nothing begins or ends here");
        if (!ok)
            return false;
    }
    return true;
}

/* ---- what a template mentions ---- */

static str line_at(str text, size_t at) {
    size_t from = at;
    while (from && text.p[from - 1] != '\n')
        from--;
    str rest = str_from(text, from);
    return str_cut(rest, 0, str_find(rest, S("\n")));
}

/* `${name}`, or the last word of a line that begins a block. */
static bool is_mention(str text, size_t at, size_t n) {
    str before = str_cut(text, 0, at), after = str_from(text, at + n), words;
    if (str_ends(before, S("${")))
        return after.n && after.p[0] == '}';
    return is_directive(line_at(text, at), &words) && opens(words) &&
           words.p + words.n == text.p + at + n && str_ends(before, S(" "));
}

bool template_mentions(str text, const char *name) {
    size_t n = strlen(name);
    for (size_t at = 0; at < text.n; at++) {
        at += str_find(str_from(text, at), (str){name, n});
        if (at < text.n && is_mention(text, at, n))
            return true;
    }
    return false;
}

/* ---- the whole ---- */

bool template_render(str name, str text, const struct slot *slots, size_t n, struct buf *out,
                     struct err *err) {
    struct rendering r = {name, text, out, err};
    struct sight sight = {slots, n, NULL};
    if (!put_lines(&r, &sight, text, 0))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!template_mentions(text, slots[i].name))
            return err_at(err, name, text, 0, 0, NULL, "the template has no slot '%s'",
                          slots[i].name);
    if (out->failed)
        return err_set(err, ERR_INPUT, "%.*s: the rendered text is over %zu bytes", STR_ARG(name),
                       out->max);
    return true;
}

/* ---- sets of slots ---- */

void slots_init(struct slots *s, struct arena *mem) {
    s->mem = mem;
    s->n = 0;
}

static struct slot *slot_named(struct slots *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, name) == 0)
            return &s->at[i];
    BUG_IF(s->n == SLOTS_MOST);
    s->at[s->n] = (struct slot){.name = name};
    return &s->at[s->n++];
}

void slots_put(struct slots *s, const char *name, str text) {
    slot_named(s, name)->text = text;
}

void slots_number(struct slots *s, const char *name, int64_t v) {
    slots_put(s, name, arena_printf(s->mem, "%lld", (long long)v));
}

void slots_flag(struct slots *s, const char *name, bool is_set) {
    slots_put(s, name, is_set ? S("1") : S(""));
}

void slots_list(struct slots *s, const char *list) {
    slot_named(s, list);
}

struct slots *slots_row(struct slots *s, const char *list) {
    struct slot *slot = slot_named(s, list);
    struct slots **rows = arena_array(s->mem, struct slots *, slot->nrows + 1);
    if (slot->nrows)
        memcpy(rows, slot->rows, slot->nrows * sizeof *rows);
    struct slots *row = rows[slot->nrows++] = arena_new_of(s->mem, struct slots);
    slots_init(row, s->mem);
    slot->rows = rows;
    return row;
}

str slots_get(const struct slots *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, name) == 0)
            return s->at[i].text;
    BUG_IF(true);
    return S("");
}

bool slots_has_rows(const struct slots *s, const char *list) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, list) == 0)
            return s->at[i].nrows > 0;
    return false;
}
